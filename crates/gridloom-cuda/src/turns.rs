//! Work that must not run on the device at the same time, on whichever streams.
//!
//! Driver 580.159 (CUDA 13.0) lets graphs with conditionals of several streams run at the same
//! time, and then launches kernels that are still active: the GPU reports
//! `SKEDCHECK22_INVALIDATE_ACTIVE_QMD` and the context is lost, within a few hundred launches.
//! `docs/driver-quirks.md` has what was tried. So such graphs run one after another: each waits for
//! the end of the one before it, by an event.
//!
//! One object serves all devices of a context, because that is what the driver mixes up.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::event::RawEvent;
use crate::sys::CUstream;
use gridloom_core::backend::EventOptions;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Weak};

/// The stream that is another one on each thread (`CU_STREAM_PER_THREAD`).
const PER_THREAD: usize = 2;

/// Orders launches of a context.
#[derive(Debug)]
pub(crate) struct Turns {
    context: Arc<Context>,
    latest: Mutex<Latest>,
}

/// The launch that had the latest turn.
#[derive(Debug)]
struct Latest {
    /// Its stream, as the address of the driver's handle. A stream is not destroyed before its work
    /// has ended, so another stream at the same address has nothing to wait for.
    stream: usize,
    /// Its end. Waiting for an event that was never recorded is no wait.
    end: RawEvent,
}

impl Turns {
    /// Returns the turns of a context.
    pub(crate) fn of(context: &Arc<Context>) -> DriverResult<Arc<Self>> {
        static CONTEXTS: LazyLock<Mutex<FxHashMap<usize, Weak<Turns>>>> = LazyLock::new(Mutex::default);
        let mut contexts = CONTEXTS.lock();
        contexts.retain(|_, turns| turns.strong_count() > 0);
        if let Some(known) = contexts.get(&context.raw().addr()).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let end = RawEvent::new(context, EventOptions::new().timing(false))?;
        let latest = Mutex::new(Latest { stream: 0, end });
        let turns = Arc::new(Self { context: Arc::clone(context), latest });
        contexts.insert(context.raw().addr(), Arc::downgrade(&turns));
        Ok(turns)
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
        let Latest { stream: before, end } = &mut *latest;
        if *before != stream.addr() || *before == PER_THREAD {
            // SAFETY: both handles are alive and of the context that is current.
            unsafe { self.context.driver().cu_stream_wait_event(stream, end.raw(), 0) }?;
        }
        let launched = launch();
        // The end is recorded even after a failure, because a part of the launch may be running. If it
        // cannot be recorded, the next launch must still not begin before this one has ended.
        let driver = self.context.driver();
        // SAFETY: both handles are alive and of the context that is current.
        let recorded = unsafe { driver.cu_event_record(end.raw(), stream) };
        // SAFETY: the stream is alive.
        let recorded = recorded.or_else(|_| unsafe { driver.cu_stream_synchronize(stream) });
        *before = stream.addr();
        launched.and(recorded)
    }
}
