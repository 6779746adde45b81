//! The typed handles behind the raw handles that were handed out. A raw handle that comes back
//! becomes the same typed handle again, with the state that the driver does not know.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use gridloom_core::backend::Allocation;
use gridloom_core::event::WeakEvent;
use gridloom_core::stream::WeakStream;
use gridloom_core::{Event, Stream};
use parking_lot::Mutex;

use crate::buffer::{Buffer, Element, WeakBuffer};

/// Weak references to objects, by raw handle.
pub(super) struct HandedOut<W>(Mutex<HashMap<usize, W>>);

pub(super) static STREAMS: LazyLock<HandedOut<WeakStream>> = LazyLock::new(HandedOut::new);
pub(super) static EVENTS: LazyLock<HandedOut<WeakEvent>> = LazyLock::new(HandedOut::new);
pub(super) static BUFFERS: LazyLock<HandedOut<WeakBuffer<u8>>> = LazyLock::new(HandedOut::new);

trait Expires {
    /// Returns whether the object no longer exists.
    fn is_gone(&self) -> bool;
}

impl Expires for WeakStream {
    fn is_gone(&self) -> bool {
        self.is_expired()
    }
}

impl Expires for WeakEvent {
    fn is_gone(&self) -> bool {
        self.is_expired()
    }
}

impl Expires for WeakBuffer<u8> {
    fn is_gone(&self) -> bool {
        !self.is_alive()
    }
}

#[expect(private_bounds, reason = "the trait only names what the three have in common")]
impl<W: Expires + Clone> HandedOut<W> {
    fn new() -> Self {
        HandedOut(Mutex::default())
    }

    /// Adds an object, and removes those that no longer exist.
    pub(super) fn add(&self, handle: usize, object: W) {
        let mut known = self.0.lock();
        known.retain(|_, object| !object.is_gone());
        known.insert(handle, object);
    }

    /// Returns the entry of a handle. The caller upgrades it after the lock is released, because
    /// dropping the upgraded reference may run user code.
    fn entry(&self, handle: usize) -> Option<W> {
        self.0.lock().get(&handle).cloned()
    }
}

impl HandedOut<WeakStream> {
    pub(super) fn find(&self, handle: usize) -> Option<Stream> {
        self.entry(handle)?.upgrade()
    }
}

impl HandedOut<WeakEvent> {
    pub(super) fn find(&self, handle: usize) -> Option<Event> {
        self.entry(handle)?.upgrade()
    }
}

impl HandedOut<WeakBuffer<u8>> {
    /// Returns the buffer at an address if its memory is `allocation`.
    pub(super) fn find<T: Element>(
        &self,
        address: usize,
        allocation: &Arc<dyn Allocation>,
    ) -> Option<Buffer<T>> {
        let buffer: Buffer<T> = self.entry(address)?.cast().upgrade()?;
        buffer.allocation().is_ok_and(|own| Arc::ptr_eq(&own, allocation)).then_some(buffer)
    }
}
