//! User code that runs inside the library: callbacks, print sinks, receivers of log events, and
//! drops of values that graphs hold.
//!
//! Such code may panic, wait, or call the library. A panic is caught where the code is called. So
//! is a panic in the drop of the panic's payload. Calls that would wait for the very work that the
//! code is part of are refused ([`may_use`], [`may_wait`]).
//!
//! # Why no callback waits for itself
//!
//! A thread knows the devices whose callbacks it is in. Waiting for one of these is refused.
//! Waiting for another device is allowed and noted while it lasts: a callback of device A waits for
//! B. If B already waits for A, directly or through other devices, the later wait is refused.
//! Devices therefore never wait for each other in a circle.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use parking_lot::Mutex;

use crate::backend::DeviceId;
use crate::error::{Error, ErrorKind, Result};
use crate::log;

/// Runs `code`. If it panics, returns the panic message.
pub fn contain<T>(code: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let said = said(&*payload);
        // The payload is a user value too. If its drop panics, the second payload is leaked.
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

/// A user value whose drop may panic. The panic is caught and logged, so that an owner of several
/// values drops all of them.
///
/// A value may own a graph that owns another value, and so on, as in a list. Drops that are inside
/// each other too deep wait until the outermost one has ended, so that no list overflows the stack.
pub struct UserValue<T: 'static>(ManuallyDrop<T>);

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
        // SAFETY: the value is taken once, here, and not used afterwards.
        drop_value(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// How many drops of user values can be inside each other on one thread.
const MAX_NESTED_DROPS: usize = 32;

/// The drops of user values that a thread is in.
struct Drops {
    depth: Cell<usize>,
    /// Values that were too deep inside.
    waiting: RefCell<Vec<Box<dyn Any>>>,
}

thread_local! {
    /// The drops that this thread is in. It has no destructor, so drops at the end of the thread
    /// can still use it.
    static DROPS: Cell<*const Drops> = const { Cell::new(ptr::null()) };
}

fn drop_value<T: 'static>(value: T) {
    // SAFETY: the drops lie on the stack of the outermost call of this function on this thread,
    // which resets the pointer before it returns. Nothing below unwinds.
    let Some(drops) = (unsafe { DROPS.get().as_ref() }) else {
        let drops = Drops { depth: Cell::new(1), waiting: RefCell::default() };
        DROPS.set(&drops);
        drop_contained(value);
        loop {
            let next = drops.waiting.borrow_mut().pop();
            match next {
                Some(next) => drop_contained(next),
                None => break,
            }
        }
        DROPS.set(ptr::null());
        return;
    };
    let depth = drops.depth.get();
    if depth < MAX_NESTED_DROPS {
        drops.depth.set(depth + 1);
        drop_contained(value);
        drops.depth.set(depth);
    } else {
        drops.waiting.borrow_mut().push(Box::new(value));
    }
}

fn drop_contained<T>(value: T) {
    if let Err(said) = contain(|| drop(value)) {
        log!(error, said, "a value panicked while it was dropped");
    }
}

/// The caller of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A device, on a thread of this library. The code may use other devices.
    Device(DeviceId),
    /// A driver, on a thread where it allows no calls. The code may not use any device.
    Driver,
    /// The library, which logs something, perhaps while it holds locks. The code may not use any
    /// device.
    Log,
}

impl Caller {
    fn bars(self, device: DeviceId) -> bool {
        match self {
            Caller::Device(own) => own == device,
            Caller::Driver | Caller::Log => true,
        }
    }
}

/// A callback that a thread is in.
struct Frame {
    caller: Caller,
    outer: *const Frame,
}

thread_local! {
    /// The innermost callback that this thread is in. It has no destructor, so drops at the end of
    /// the thread can still read it.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Leaves a callback when dropped.
struct Leave(*const Frame);

impl Drop for Leave {
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// Returns the callers of the callbacks that this thread is in, innermost first.
fn callers() -> impl Iterator<Item = Caller> {
    let mut frame: *const Frame = INNERMOST.get();
    std::iter::from_fn(move || {
        // SAFETY: a frame lies on the stack of `call` on this thread, and `call` resets the pointer
        // before it returns.
        let Frame { caller, outer } = unsafe { frame.as_ref() }?;
        frame = *outer;
        Some(*caller)
    })
}

/// Runs user code as part of a device's work. If it panics, returns the panic message.
pub fn call<T>(caller: Caller, code: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let outer = INNERMOST.get();
    let frame = Frame { caller, outer };
    INNERMOST.set(&frame);
    // Declared after the frame and so dropped before it.
    let _leave = Leave(outer);
    contain(code)
}

/// Runs work of a device that this thread does instead of waiting for it. The callbacks that the
/// thread is in do not count inside, as if a thread of the device did the work.
pub fn on_behalf<T>(work: impl FnOnce() -> T) -> T {
    if !in_callback() {
        return work();
    }
    let _leave = Leave(INNERMOST.replace(ptr::null()));
    work()
}

/// Logs an event: `log!(debug, …)` is `tracing::debug!(…)`.
///
/// What receives the event is user code. It may panic or call the library. Here a panic is
/// ignored, so logging is possible in drops and on threads that must not stop. Calls that use a
/// device are refused, so logging is possible under locks.
#[macro_export]
macro_rules! log {
    ($level:ident, $($event:tt)*) => {{
        let event = || ::tracing::$level!($($event)*);
        let _ = $crate::user_code::call($crate::user_code::Caller::Log, event);
    }};
}

/// Returns whether this thread is inside user code that a device called.
#[inline]
pub fn in_callback() -> bool {
    !INNERMOST.get().is_null()
}

/// Returns whether this thread is inside user code that a driver called. The driver allows no call
/// there.
#[inline]
pub fn in_driver_callback() -> bool {
    in_callback() && called_by_driver()
}

#[cold]
fn called_by_driver() -> bool {
    callers().any(|caller| caller == Caller::Driver)
}

/// Checks that this thread may use a device. It may not from inside a callback of that device,
/// because the call could wait for the callback itself.
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

/// The waits of callbacks: the device of the callback, and the device it waits for.
static WAITS: Mutex<Vec<(DeviceId, DeviceId)>> = Mutex::new(Vec::new());

/// A wait for a device. It lasts until this value is dropped.
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

/// Begins a wait for a device. Fails if this thread may not [use](may_use) the device, or if the
/// device waits for this thread.
#[inline]
pub fn may_wait(device: DeviceId, operation: &str) -> Result<Wait> {
    if in_callback() { wait_in_callback(device, operation) } else { Ok(Wait(None)) }
}

#[cold]
fn wait_in_callback(device: DeviceId, operation: &str) -> Result<Wait> {
    check_use(device, operation)?;
    let Some(Caller::Device(caller)) = callers().next() else { return Ok(Wait(None)) };
    let mut waits = WAITS.lock();
    // All devices that the device waits for, directly or indirectly.
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
    let place = match callers().next() {
        Some(Caller::Log) => "while the library logs",
        _ => "inside a host callback",
    };
    Error::new(ErrorKind::InvalidState, format!("{operation} was called {place}, {why}"))
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
    fn a_long_list_of_values_is_dropped_without_a_deep_stack() {
        struct Link(Arc<AtomicUsize>, #[expect(dead_code, reason = "dropped")] Option<UserValue<Box<Link>>>);
        impl Drop for Link {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let dropped = Arc::new(AtomicUsize::new(0));
        let counter = dropped.clone();
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
            let mut list = Link(counter.clone(), None);
            for _ in 0..50_000 {
                list = Link(counter.clone(), Some(UserValue::new(Box::new(list))));
            }
        });
        thread.unwrap().join().unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 50_001);
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
        for caller in [Caller::Driver, Caller::Log] {
            call(caller, || assert!(may_use(other, "it").is_err())).unwrap();
        }
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
