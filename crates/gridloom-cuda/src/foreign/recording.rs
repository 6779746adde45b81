//! A capture by the driver, on a stream of its own.

use super::CaptureMode;
use crate::context::Context;
use crate::context_wait::{self, Capturing};
use crate::driver::{DriverError, DriverResult};
use crate::graph::CudaGraph;
use crate::release::{self, Handle, Paused};
use crate::sys::*;
use gridloom_core::error::DriverFailure;
use gridloom_core::log;
use gridloom_core::{Error, ErrorKind, Result};
use std::ptr;
use std::sync::Arc;

/// A stream that the driver captures. Dropped half way, it ends the capture and throws the graph
/// away.
#[derive(Debug)]
pub(super) struct Recording {
    context: Arc<Context>,
    stream: CUstream,
    capturing: bool,
    /// Nothing of Gridloom's own is released meanwhile, and nobody waits for the whole context.
    _quiet: (Paused, Capturing),
}

impl Recording {
    /// Calls [`cuStreamBeginCapture`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    pub(super) fn begin(context: &Arc<Context>, mode: CaptureMode) -> Result<Self> {
        let _entered = context.enter()?;
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        // SAFETY: the context is current; one handle is written.
        unsafe { context.driver().cu_stream_create_with_priority(&mut stream, flags, 0) }?;
        let quiet = (release::pause(), context_wait::capturing());
        let mut recording = Self { context: Arc::clone(context), stream, capturing: false, _quiet: quiet };
        // SAFETY: the stream was just made and nobody else has it.
        unsafe { context.driver().cu_stream_begin_capture(stream, mode.raw()) }.map_err(explain)?;
        recording.capturing = true;
        Ok(recording)
    }

    pub(super) fn stream(&self) -> CUstream {
        self.stream
    }

    /// Ends the capture, on the thread that began it, and gives the graph.
    pub(super) fn end(mut self) -> Result<CudaGraph> {
        let context = Arc::clone(&self.context);
        let _entered = context.enter()?;
        self.end_capture()
            .map_err(explain)?
            .ok_or_else(|| Error::new(ErrorKind::Driver, "the driver ended the capture and gave no graph"))
    }

    /// Calls [`cuStreamEndCapture`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    fn end_capture(&mut self) -> DriverResult<Option<CudaGraph>> {
        self.capturing = false;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive; one handle is written. Whatever the outcome, the stream does
        // not capture any more.
        unsafe { self.context.driver().cu_stream_end_capture(self.stream, &mut graph)? };
        // SAFETY: the driver hands a captured graph over to the caller that ends the capture.
        Ok((!graph.is_null()).then(|| unsafe { CudaGraph::from_raw(&self.context, graph) }))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let context = Arc::clone(&self.context);
        // Also where it cannot be entered now: the stream knows its context, and must not be
        // destroyed while it is captured.
        let _entered = context.enter();
        if self.capturing
            && let Err(error) = self.end_capture()
        {
            log!(debug, %error, "a capture that was given up");
            context.driver().discard_log();
        }
        let raw = Handle(self.stream);
        // SAFETY: made here, and destroyed once.
        context.let_go("capture stream", move |driver| unsafe { driver.cu_stream_destroy(raw.raw()) });
    }
}

/// Adds what an error of a capture means, and what to do about it.
fn explain(error: DriverError) -> Error {
    let why = match error.code() {
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "the code made a call that is prohibited while a stream is captured; make it before the capture, or capture with CaptureMode::Relaxed"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) => {
            "the capture was invalidated: a call of the code was prohibited in this mode, or waited for or asked about a captured stream; make such calls before the capture, or capture with CaptureMode::Relaxed"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE) => {
            "the code would have merged two captures into one; keep their streams apart"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) => {
            "the capture was not begun on this stream; leave beginning and ending it to the call"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => {
            "the code forked work to other streams and did not join it; record an event after the work on each of them, and have the captured stream wait for it"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION) => {
            "the code made captured work wait for work outside of the capture; finish that before, or wait for its event with cuStreamWaitEvent and CU_EVENT_WAIT_EXTERNAL"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
            "the code used the legacy default stream, which waits for the captured one; give it the captured stream instead"
        }
        Some(CUresult::CUDA_ERROR_CAPTURED_EVENT) => {
            "the code waited for or asked about an event that was recorded in the capture"
        }
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => {
            "the capture was begun on another thread; only CaptureMode::Relaxed allows to end it on this one"
        }
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE) => {
            "the code ended the capture of the stream itself; leave beginning and ending it to the call"
        }
        _ => return Error::from(error).context("capturing foreign code"),
    };
    let explained = Error::new(ErrorKind::InvalidState, why);
    match error {
        DriverError::Call(call) => {
            let failure = DriverFailure::new(call.call, call.name.clone(), call.code.0);
            explained.with_driver(failure).with_log(call.log.unwrap_or_default())
        }
        _ => explained,
    }
}
