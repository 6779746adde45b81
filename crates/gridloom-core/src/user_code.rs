//! Code of the user's that runs inside the library: callbacks, print sinks, and drops of values that graphs hold.
//!
//! It may panic, wait, or call the library. A panic is contained where the code is called, along with what it panicked with, whose
//! drop may panic again. What would wait for the very work that the code is part of is refused ([`may_use`], [`may_wait`]).
//!
//! # Why nothing waits for itself
//!
//! A thread knows the devices whose callbacks it is in. Waiting for one of these is refused. Waiting for another device is allowed, and
//! noted for as long as it takes: a callback of device A waits for B. Where B waits for A already, by way of whichever
//! devices, the later of the two is refused. So devices never wait for each other in a circle.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use parking_lot::Mutex;

use crate::backend::DeviceId;
use crate::error::{Error, ErrorKind, Result};

/// Runs `code`. Where it panics, returns what it said.
pub fn contain<T>(code: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let said = said(&*payload);
        // The payload is the user's too. What its drop panics with in turn is kept for ever.
        if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(again);
        }
        said
    })
}

fn said(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "something that is not text".to_owned())
}

/// A value of the user's. A panic of its drop ends there: whoever holds several drops all of them.
pub struct UserValue<T>(ManuallyDrop<T>);

impl<T> UserValue<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        UserValue(ManuallyDrop::new(value))
    }
}

impl<T> std::ops::Deref for UserValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for UserValue<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Clone> Clone for UserValue<T> {
    fn clone(&self) -> Self {
        UserValue(self.0.clone())
    }
}

impl<T> Drop for UserValue<T> {
    fn drop(&mut self) {
        let value = &mut self.0;
        // SAFETY: dropped once, here, and not used after.
        if let Err(said) = contain(|| unsafe { ManuallyDrop::drop(value) }) {
            tracing::error!(said, "a value panicked while it was dropped");
        }
    }
}

/// Who calls code of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A device, on a thread of ours. The code may use other devices.
    Device(DeviceId),
    /// A driver, on a thread on which it allows no call. The code may use no device.
    Driver,
}

impl Caller {
    fn bars(self, device: DeviceId) -> bool {
        match self {
            Caller::Device(own) => own == device,
            Caller::Driver => true,
        }
    }
}

/// A callback that a thread is in.
struct Frame {
    caller: Caller,
    outer: *const Frame,
}

thread_local! {
    /// The innermost callback that this thread is in. It needs no destructor, so that values of the thread may be dropped at its end and ask.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Leaves a callback.
struct Leave(*const Frame);

impl Drop for Leave {
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// The callers of the callbacks that this thread is in, innermost first.
fn callers() -> impl Iterator<Item = Caller> {
    let mut frame: *const Frame = INNERMOST.get();
    std::iter::from_fn(move || {
        // SAFETY: a frame lies on the stack of `call` on this thread, which resets the pointer before it returns.
        let Frame { caller, outer } = unsafe { frame.as_ref() }?;
        frame = *outer;
        Some(*caller)
    })
}

/// Runs code of the user's as part of a device's work. Where it panics, returns what it said.
pub fn call<T>(caller: Caller, code: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let outer = INNERMOST.get();
    let frame = Frame { caller, outer };
    INNERMOST.set(&frame);
    // Declared after the frame, and so dropped before it.
    let _leave = Leave(outer);
    contain(code)
}

/// Returns whether this thread is inside code of the user's that some device called.
pub fn in_callback() -> bool {
    !INNERMOST.get().is_null()
}

/// Returns whether this thread may use a device: not from inside one of its own callbacks, where using it could mean waiting for oneself.
#[inline]
pub fn may_use(device: DeviceId, operation: &str) -> Result<()> {
    if in_callback() { check_use(device, operation) } else { Ok(()) }
}

#[cold]
fn check_use(device: DeviceId, operation: &str) -> Result<()> {
    match callers().any(|caller| caller.bars(device)) {
        true => Err(refused(operation, "which must not use the device: it could wait for itself")),
        false => Ok(()),
    }
}

/// Callbacks that wait: of which device, and for which.
static WAITS: Mutex<Vec<(DeviceId, DeviceId)>> = Mutex::new(Vec::new());

/// A wait for a device. It lasts until this is dropped.
#[must_use = "the wait lasts while this lives"]
pub struct Wait(Option<(DeviceId, DeviceId)>);

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            let mut waits = WAITS.lock();
            if let Some(place) = waits.iter().position(|&known| known == wait) {
                waits.swap_remove(place);
            }
        }
    }
}

/// Begins a wait for a device, where this thread [may use](may_use) it and the device does not wait for this thread.
#[inline]
pub fn may_wait(device: DeviceId, operation: &str) -> Result<Wait> {
    if in_callback() { wait_in_callback(device, operation) } else { Ok(Wait(None)) }
}

#[cold]
fn wait_in_callback(device: DeviceId, operation: &str) -> Result<Wait> {
    check_use(device, operation)?;
    let Some(Caller::Device(caller)) = callers().next() else { return Ok(Wait(None)) };
    let mut waits = WAITS.lock();
    // Everything that the device waits for, directly or not.
    let mut reached = vec![device];
    let mut next = 0;
    while let Some(&from) = reached.get(next) {
        next += 1;
        let ahead = waits.iter().filter(|(waiting, _)| *waiting == from).map(|&(_, awaited)| awaited);
        let new: Vec<DeviceId> = ahead.filter(|awaited| !reached.contains(awaited)).collect();
        reached.extend(new);
    }
    if reached.contains(&caller) {
        let why = "and the device waits for a callback of this one: they would wait for each other";
        return Err(refused(operation, why));
    }
    waits.push((caller, device));
    Ok(Wait(Some((caller, device))))
}

#[cold]
fn refused(operation: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidState, format!("{operation} was called inside a host callback, {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Panics when it is dropped, with another of its kind.
    struct Chain(Arc<AtomicUsize>);

    impl Drop for Chain {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::panic::panic_any(Chain(self.0.clone()));
        }
    }

    #[test]
    fn values_that_panic_without_end_when_they_are_dropped_are_dropped_all_the_same() {
        let dropped = Arc::new(AtomicUsize::new(0));
        drop([0; 3].map(|_| UserValue::new(Chain(dropped.clone()))));
        assert!(dropped.load(Ordering::SeqCst) >= 3);
    }

    #[test]
    fn what_was_said_is_returned() {
        assert_eq!(contain(|| 5), Ok(5));
        assert_eq!(contain(|| panic!("no {}", "more")), Err::<(), _>("no more".to_owned()));
        assert_eq!(contain(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
    }

    #[test]
    fn a_callback_may_use_and_await_other_devices_but_not_its_own() {
        let (own, other) = (DeviceId::fresh(), DeviceId::fresh());
        assert!(may_use(own, "it").is_ok() && may_wait(own, "it").is_ok() && !in_callback());
        call(Caller::Device(own), || {
            assert!(in_callback());
            assert!(may_use(own, "it").is_err() && may_wait(own, "it").is_err());
            assert!(may_use(other, "it").is_ok() && may_wait(other, "it").is_ok());
            let inside = || assert!(may_use(own, "it").is_err() && may_use(other, "it").is_err());
            call(Caller::Device(other), inside).unwrap();
        })
        .unwrap();
        call(Caller::Driver, || assert!(may_use(other, "it").is_err())).unwrap();
    }

    #[test]
    fn devices_that_would_wait_for_each_other_in_a_circle_are_refused() {
        let devices = [0; 3].map(|_| DeviceId::fresh());
        // A callback of each device waits for the next one, inside of the one before.
        let wait = |from: usize, to: usize, then: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        let waiting = || may_wait(devices[to], "it").map(|_wait| then());
                        call(Caller::Device(devices[from]), waiting).unwrap().is_ok()
                    })
                    .join()
                    .unwrap()
            })
        };
        let ends = wait(0, 1, &|| {
            assert!(!wait(1, 0, &|| {}), "both would wait for each other");
            let ends = wait(1, 2, &|| {
                assert!(!wait(2, 0, &|| {}), "all three would");
                assert!(wait(0, 2, &|| {}), "there is no circle");
            });
            assert!(ends);
        });
        assert!(ends);
        assert!(wait(1, 0, &|| {}), "nobody waits any more");
    }
}
