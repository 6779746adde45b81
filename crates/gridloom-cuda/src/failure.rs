//! Failures that happen after the call that caused them has returned: a callback that panicked.

use crate::release;
use crate::sys::CUDA_HOST_NODE_PARAMS_v1;
use gridloom_core::op::CallbackOp;
use gridloom_core::user_code::Caller;
use gridloom_core::{Error, Result};
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Weak};

/// Keeps the first failure, once for the stream it ran on and once for the executable it came from.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    for_stream: Option<Error>,
    for_executable: Option<Error>,
}

impl Failures {
    pub(crate) fn put(&self, error: Error) {
        let mut kept = self.0.lock();
        kept.for_executable.get_or_insert_with(|| error.clone());
        kept.for_stream.get_or_insert(error);
    }

    /// Returns what `synchronize` of a stream reports.
    pub(crate) fn take_for_stream(&self) -> Result<()> {
        self.0.lock().for_stream.take().map_or(Ok(()), Err)
    }

    /// Returns what an executable reports.
    pub(crate) fn take_for_executable(&self) -> Option<Error> {
        self.0.lock().for_executable.take()
    }
}

/// A callback that is passed to the driver. The driver calls [`HostCall::run`] with its number.
///
/// The code that gives the number to the driver keeps the `HostCall` until the driver is done with
/// it. The driver has no pointer to it: a call that comes after the `HostCall` is gone, as it may
/// on a lost device, does nothing. A running callback is kept alive, and it is never dropped on the
/// driver's thread.
#[derive(Debug)]
pub(crate) struct HostCall {
    number: usize,
    callback: CallbackOp,
    failures: Arc<Failures>,
    /// The node it belongs to, for the error.
    label: Option<String>,
}

/// All live calls, by number.
static CALLS: Mutex<Calls> = Mutex::new(Calls { last: 0, known: FxHashMap::with_hasher(FxBuildHasher) });

struct Calls {
    last: usize,
    known: FxHashMap<usize, Weak<HostCall>>,
}

impl HostCall {
    pub(crate) fn new(callback: CallbackOp, failures: Arc<Failures>, label: Option<String>) -> Arc<Self> {
        let mut calls = CALLS.lock();
        calls.last += 1;
        let number = calls.last;
        let call = Arc::new(Self { number, callback, failures, label });
        calls.known.insert(number, Arc::downgrade(&call));
        call
    }

    /// Returns the argument for [`run`](Self::run).
    pub(crate) fn data(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.number)
    }

    /// Returns the description of a node that calls it.
    pub(crate) fn parameters(&self) -> CUDA_HOST_NODE_PARAMS_v1 {
        CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(Self::run), userData: self.data() }
    }

    /// Runs a callback for the driver. A panic of the callback becomes a failure, and never crosses
    /// into the driver.
    pub(crate) extern "C" fn run(data: *mut c_void) {
        let call = CALLS.lock().known.get(&data.addr()).and_then(Weak::upgrade);
        let Some(call) = call else { return };
        if let Err(error) = call.callback.call(Caller::Driver) {
            call.failures.put(match &call.label {
                Some(label) => error.at_node(label.clone()),
                None => error,
            });
        }
        if let Some(last) = Arc::into_inner(call) {
            release::hand_over(Box::new(last));
        }
    }
}

impl Drop for HostCall {
    fn drop(&mut self) {
        CALLS.lock().known.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridloom_core::ErrorKind;
    use std::sync::mpsc;

    fn run(callback: CallbackOp, label: Option<&str>) -> Arc<Failures> {
        let failures = Arc::new(Failures::default());
        let call = HostCall::new(callback, Arc::clone(&failures), label.map(str::to_owned));
        HostCall::run(call.data());
        failures
    }

    #[test]
    fn a_callback_that_returns_leaves_no_failure() {
        assert!(run(CallbackOp::closure(|| {}), None).take_for_stream().is_ok());
    }

    #[test]
    fn a_panic_is_reported_with_its_node_once_by_the_stream_and_once_by_the_executable() {
        let failures = run(CallbackOp::closure(|| panic!("no more")), Some("callback#2"));
        let error = failures.take_for_stream().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CallbackPanicked);
        assert_eq!(error.to_string(), "callback#2: the callback panicked: no more");
        assert!(failures.take_for_stream().is_ok());
        assert!(failures.take_for_executable().is_some());
        assert!(failures.take_for_executable().is_none());
    }

    #[test]
    fn a_call_that_is_gone_does_nothing() {
        let (told, hear) = mpsc::channel();
        let callback = CallbackOp::closure(move || told.send(()).unwrap());
        let data = HostCall::new(callback, Arc::default(), None).data();
        HostCall::run(data);
        assert!(hear.recv().is_err(), "it was dropped, and not called");
    }

    #[test]
    fn a_call_that_is_let_go_of_while_it_runs_is_kept_to_its_end_and_dropped_on_the_release_thread() {
        struct Tell(mpsc::Sender<Option<String>>);
        impl Drop for Tell {
            fn drop(&mut self) {
                let _ = self.0.send(std::thread::current().name().map(str::to_owned));
            }
        }
        let (told, hear) = mpsc::channel();
        let slot: Arc<Mutex<Option<Arc<HostCall>>>> = Arc::default();
        let (own, tell) = (Arc::clone(&slot), Tell(told));
        let callback = CallbackOp::closure(move || {
            drop(own.lock().take());
            let _ = tell.0.send(Some("called".to_owned()));
        });
        let call = HostCall::new(callback, Arc::default(), None);
        let data = call.data();
        *slot.lock() = Some(call);
        HostCall::run(data);
        let heard: Vec<_> = hear.iter().map(Option::unwrap).collect();
        assert_eq!(heard, ["called", "gridloom-release"]);
    }

    #[test]
    fn the_first_of_several_failures_is_kept() {
        let failures = Failures::default();
        for text in ["first", "second"] {
            failures.put(Error::new(ErrorKind::CallbackPanicked, text));
        }
        assert_eq!(failures.take_for_stream().unwrap_err().message(), "first");
    }
}
