//! Threads that launch graphs until a call fails or the time is over.

use crate::graphs::{Bare, Executable, words};
use crate::variant::Variant;
use crate::{Error, simulator};
use gridloom_cuda::CudaDevice;
use gridloom_cuda::driver::Driver;
use gridloom_cuda::sys::*;
use parking_lot::Mutex;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const THREADS: usize = 4;
/// Launches between two waits.
const BATCH: u32 = 16;

/// A stream and an event, which live until the process ends.
#[derive(Clone, Copy)]
struct Handles {
    stream: CUstream,
    other: CUstream,
    end: CUevent,
}

// SAFETY: handles of the driver may be used on any thread.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

/// What the threads share.
struct Shared<'a> {
    bare: Bare,
    variant: &'a Variant,
    /// The executable of all threads, if they share one.
    one: Option<Executable>,
    /// The end of the latest launch, if launches take turns.
    turn: Mutex<Handles>,
    launches: AtomicU64,
    failure: Mutex<Option<String>>,
    is_over: AtomicBool,
}

/// Runs a variant. Returns how many launches were made, and the first failure.
pub(crate) fn run(
    variant: &Variant,
    time: Duration,
    is_simulated: bool,
) -> Result<(u64, Option<String>), Error> {
    let device = match is_simulated {
        true => simulator::device(None),
        false => CudaDevice::open_with(Driver::get()?, 0)?,
    };
    let bare = Bare::new(device.driver(), device.context().raw())?;
    let one = match variant.shares_one {
        true => Some(Executable::new(&bare, variant.forms[0], variant, words(&bare)?, 0)?),
        false => None,
    };
    let turn = Mutex::new(handles(&bare)?);
    let shared = Shared {
        bare,
        variant,
        one,
        turn,
        launches: AtomicU64::new(0),
        failure: Mutex::new(None),
        is_over: AtomicBool::new(false),
    };
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                if let Err(error) = shared.launch_until(end, number) {
                    shared.failure.lock().get_or_insert_with(|| error.to_string());
                    shared.is_over.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    let launches = shared.launches.load(Ordering::Relaxed);
    // The simulated driver runs everything, and notes what a driver does not support.
    let violation = || is_simulated.then(simulator::violations)?.into_iter().next();
    let failure = shared.failure.lock().take().or_else(violation);
    // After a lost context nothing can be destroyed.
    std::mem::forget(shared);
    std::mem::forget(device);
    Ok((launches, failure))
}

impl Shared<'_> {
    /// Launches graphs until the time is over or any thread has failed.
    fn launch_until(&self, end: Instant, number: usize) -> Result<(), Error> {
        let (driver, variant) = (&self.bare.driver, self.variant);
        // SAFETY: the context is alive, and current on this thread until it ends.
        unsafe { driver.cu_ctx_push_current(self.bare.context) }?;
        let own = handles(&self.bare)?;
        let form = variant.forms[number % variant.forms.len()];
        let memory = words(&self.bare)?;
        let mut executable = None;
        for count in 0.. {
            if self.is_over.load(Ordering::Relaxed) || Instant::now() > end {
                break;
            }
            if executable.is_none() && self.one.is_none() {
                let new = Executable::new(&self.bare, form, variant, memory, number)?;
                if variant.uploads {
                    new.upload(own.other)?;
                }
                executable = Some(new);
            }
            let target = self.one.as_ref().or(executable.as_ref()).expect("made above");
            if let Some(change) = variant.change {
                target.change(change, count)?;
            }
            if variant.launches_kernels {
                self.bare.launch_kernel(variant, memory, own.stream)?;
            }
            if variant.uploads_again {
                target.upload(own.other)?;
            }
            self.launch(target, own.stream)?;
            self.launches.fetch_add(1, Ordering::Relaxed);
            if (count + 1) % BATCH == 0 {
                if variant.recreates {
                    executable = None;
                }
                // SAFETY: the stream is alive.
                unsafe { driver.cu_stream_synchronize(own.stream) }?;
            }
        }
        // SAFETY: as above.
        Ok(unsafe { driver.cu_stream_synchronize(own.stream) }?)
    }

    fn launch(&self, executable: &Executable, stream: CUstream) -> Result<(), Error> {
        if !self.variant.takes_turns {
            // A driver wants one call at a time on an executable.
            let _alone = self.variant.shares_one.then(|| self.turn.lock());
            return executable.launch(stream);
        }
        let turn = self.turn.lock();
        let driver = &self.bare.driver;
        // SAFETY: event and stream are alive and of one context.
        unsafe { driver.cu_stream_wait_event(stream, turn.end, 0) }?;
        executable.launch(stream)?;
        // SAFETY: as above.
        Ok(unsafe { driver.cu_event_record(turn.end, stream) }?)
    }
}

/// Makes streams and an event in the current context.
fn handles(bare: &Bare) -> Result<Handles, Error> {
    let non_blocking = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
    let mut handles = Handles { stream: ptr::null_mut(), other: ptr::null_mut(), end: ptr::null_mut() };
    // SAFETY: one handle is written each.
    unsafe {
        bare.driver.cu_stream_create_with_priority(&mut handles.stream, non_blocking, 0)?;
        bare.driver.cu_stream_create_with_priority(&mut handles.other, non_blocking, 0)?;
        bare.driver.cu_event_create(&mut handles.end, CUevent_flags::CU_EVENT_DISABLE_TIMING.0)?;
    }
    Ok(handles)
}
