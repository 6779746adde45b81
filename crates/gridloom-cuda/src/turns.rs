//! Graphs that the device runs one after another, on all streams.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::event::RawEvent;
use crate::sys::CUstream;
use gridloom_core::backend::EventOptions;
use parking_lot::Mutex;
use std::sync::Arc;

/// Whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    context: Arc<Context>,
    /// The end of the latest launch.
    latest: Mutex<Option<RawEvent>>,
}

impl Turns {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { context: Arc::clone(context), latest: Mutex::new(None) }
    }

    /// Makes what `launch` enqueues on a stream begin when the previous launch through here has
    /// ended.
    pub(crate) fn take(
        &self,
        stream: CUstream,
        launch: impl FnOnce() -> DriverResult<()>,
    ) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        let mut latest = self.latest.lock();
        let end = match &mut *latest {
            Some(end) => {
                // SAFETY: both handles are alive and of the context that is current.
                unsafe { self.context.driver().cu_stream_wait_event(stream, end.raw(), 0) }?;
                end
            }
            none => none.insert(RawEvent::new(&self.context, EventOptions::default())?),
        };
        launch()?;
        end.record(stream)
    }
}
