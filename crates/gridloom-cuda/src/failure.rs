//! Failures that happen after the call that caused them has returned: a callback that panicked.

use gridloom_core::op::CallbackOp;
use gridloom_core::{Error, Result};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::Arc;

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

    /// What `synchronize` of a stream reports.
    pub(crate) fn take_for_stream(&self) -> Result<()> {
        self.0.lock().for_stream.take().map_or(Ok(()), Err)
    }

    /// What an executable reports.
    pub(crate) fn take_for_executable(&self) -> Option<Error> {
        self.0.lock().for_executable.take()
    }
}

/// A callback on its way through the driver, which calls [`HostCall::run`] with a pointer to it.
///
/// Whoever gives the pointer to the driver keeps the `HostCall` until the driver is done with it. It is never dropped on
/// the driver's thread.
#[derive(Debug)]
pub(crate) struct HostCall {
    callback: CallbackOp,
    failures: Arc<Failures>,
    /// The node it belongs to, for the error.
    label: Option<String>,
}

impl HostCall {
    pub(crate) fn new(callback: CallbackOp, failures: Arc<Failures>, label: Option<String>) -> Self {
        Self { callback, failures, label }
    }

    /// The argument for [`run`](Self::run).
    pub(crate) fn data(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// The function the driver calls. A panic of the callback becomes a failure, and never crosses into the driver.
    ///
    /// # Safety
    ///
    /// `data` is the [`data`](Self::data) of a call that is alive until this returns.
    pub(crate) unsafe extern "C" fn run(data: *mut c_void) {
        // SAFETY: promised by the caller.
        let call = unsafe { &*data.cast::<Self>() };
        if let Err(error) = call.callback.call() {
            call.failures.put(match &call.label {
                Some(label) => error.at_node(label.clone()),
                None => error,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridloom_core::ErrorKind;

    fn run(callback: CallbackOp, label: Option<&str>) -> Arc<Failures> {
        let failures = Arc::new(Failures::default());
        let call = Arc::new(HostCall::new(callback, Arc::clone(&failures), label.map(str::to_owned)));
        // SAFETY: `call` outlives the call.
        unsafe { HostCall::run(call.data()) };
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
    fn the_first_of_several_failures_is_kept() {
        let failures = Failures::default();
        for text in ["first", "second"] {
            failures.put(Error::new(ErrorKind::CallbackPanicked, text));
        }
        assert_eq!(failures.take_for_stream().unwrap_err().message(), "first");
    }
}
