//! A map from driver handles to Gridloom's objects, so that a handle that was passed out comes back
//! as the same object.
//!
//! The tables hold weak references and are process-wide, as the driver's handles are. An object
//! removes itself in its `Drop`, before the driver's object is destroyed, because the driver may
//! then reuse the handle.

use crate::event::Event;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::stream::Stream;
use gridloom_core::backend::Allocation;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Objects by their handle or address.
#[derive(Debug)]
pub(crate) struct Registry<T>(Mutex<BTreeMap<u64, Weak<T>>>);

pub(crate) static STREAMS: Registry<Stream> = Registry::new();
pub(crate) static EVENTS: Registry<Event> = Registry::new();
pub(crate) static KERNELS: Registry<Kernel> = Registry::new();
pub(crate) static MEMORY: Registry<Memory> = Registry::new();

impl<T> Registry<T> {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Remembers `object` under its handle.
    pub(crate) fn add(&self, handle: u64, object: &Arc<T>) {
        self.0.lock().insert(handle, Arc::downgrade(object));
    }

    /// Returns the object with this handle, if it is Gridloom's and alive.
    pub(crate) fn find(&self, handle: u64) -> Option<Arc<T>> {
        self.0.lock().get(&handle)?.upgrade()
    }

    /// Forgets `object`, unless another one has its handle by now.
    pub(crate) fn remove(&self, handle: u64, object: *const T) {
        let mut known = self.0.lock();
        if known.get(&handle).is_some_and(|entry| Weak::as_ptr(entry) == object) {
            known.remove(&handle);
        }
    }
}

impl Registry<Memory> {
    /// Returns the block of Gridloom's that contains `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<Arc<Memory>> {
        let known = self.0.lock();
        let (_, entry) = known.range(..=address).next_back()?;
        let memory = entry.upgrade()?;
        // Unlocked first: if the address is beyond this block, `memory` is dropped here, and it may
        // be the last reference.
        drop(known);
        (address - memory.address() < memory.bytes()).then_some(memory)
    }
}

/// Returns the handle of a driver object as a key.
pub(crate) fn key<T>(handle: *mut T) -> u64 {
    handle.addr() as u64
}
