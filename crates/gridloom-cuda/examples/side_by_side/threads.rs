//! Threads that launch graphs until a call fails or the time is over.

use crate::graphs::{Bare, Executable, words};
use crate::variant::{Form, Turns, Variant};
use crate::{Error, simulator};
use gridloom_cuda::CudaDevice;
use gridloom_cuda::driver::Driver;
use gridloom_cuda::sys::*;
use parking_lot::Mutex;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of threads, unless a variant has another.
pub(crate) const THREADS: usize = 4;

/// What one stream of a thread uses. It lives until the process ends, except for the executable.
struct Lane {
    stream: CUstream,
    other: CUstream,
    end: CUevent,
    memory: CUdeviceptr,
    executable: Option<Executable>,
}

impl Lane {
    fn new(bare: &Bare) -> Result<Self, Error> {
        let (stream, other) = (stream(bare)?, stream(bare)?);
        Ok(Self { stream, other, end: event(bare)?, memory: words(bare)?, executable: None })
    }

    /// Makes the stream wait for what is on another.
    fn wait_for_next(&self, driver: &Driver, before: CUstream) -> Result<(), Error> {
        // SAFETY: the streams and the event are alive and of one context.
        unsafe {
            driver.cu_event_record(self.end, before)?;
            driver.cu_stream_wait_event(self.stream, self.end, 0)?;
        }
        Ok(())
    }
}

/// An event that marks the end of a launch.
struct End(CUevent);

// SAFETY: handles of the driver may be used on any thread.
unsafe impl Send for End {}

/// What the threads share.
struct Shared<'a> {
    bare: Bare,
    variant: &'a Variant,
    /// The executable of all threads, if they share one.
    one: Option<Executable>,
    /// The end of the latest launch, if launches take turns.
    turn: Mutex<End>,
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
    let turn = Mutex::new(End(event(&bare)?));
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
        for number in 0..variant.threads {
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
        let form = variant.forms[number % variant.forms.len()];
        let lanes = (0..variant.lanes).map(|_| Lane::new(&self.bare)).collect::<Result<Vec<_>, _>>();
        let mut lanes = lanes?;
        for count in 0.. {
            if self.is_over.load(Ordering::Relaxed) || Instant::now() > end {
                break;
            }
            let lane = &mut lanes[count as usize % variant.lanes];
            if lane.executable.is_none() && self.one.is_none() {
                let new = Executable::new(&self.bare, form, variant, lane.memory, number)?;
                if variant.uploads {
                    new.upload(lane.other)?;
                }
                lane.executable = Some(new);
            }
            let target = self.one.as_ref().or(lane.executable.as_ref()).expect("made above");
            if let Some(change) = variant.change {
                target.change(change, count)?;
            }
            if variant.launches_kernels {
                self.bare.launch_kernel(variant, lane.memory, lane.stream)?;
            }
            if variant.uploads_again {
                target.upload(lane.other)?;
            }
            self.launch(target, form, lane.stream)?;
            self.launches.fetch_add(1, Ordering::Relaxed);
            if variant.renews_streams {
                let new = stream(&self.bare)?;
                let old = std::mem::replace(&mut lane.stream, new);
                // Another launch of the executable would wait for this one anyway.
                lane.wait_for_next(driver, old)?;
                // SAFETY: destroyed once; the driver lets its work finish.
                unsafe { driver.cu_stream_destroy(old) }?;
            }
            if variant.renews {
                lane.executable = None;
            }
            if (count + 1) % variant.batch == 0 {
                for lane in &mut lanes {
                    if variant.recreates {
                        lane.executable = None;
                    }
                    // SAFETY: the stream is alive.
                    unsafe { driver.cu_stream_synchronize(lane.stream) }?;
                    if variant.recreates_idle {
                        lane.executable = None;
                    }
                }
            }
        }
        for lane in &lanes {
            // SAFETY: as above.
            unsafe { driver.cu_stream_synchronize(lane.stream) }?;
        }
        Ok(())
    }

    fn launch(&self, executable: &Executable, form: Form, stream: CUstream) -> Result<(), Error> {
        let takes_turns = match self.variant.turns {
            Turns::None => false,
            Turns::Conditionals => form.is_conditional(),
            Turns::All => true,
        };
        if !takes_turns {
            // A driver wants one call at a time on an executable.
            let _alone = self.variant.shares_one.then(|| self.turn.lock());
            return executable.launch(stream);
        }
        let turn = self.turn.lock();
        let driver = &self.bare.driver;
        // SAFETY: event and stream are alive and of one context.
        unsafe { driver.cu_stream_wait_event(stream, turn.0, 0) }?;
        executable.launch(stream)?;
        // SAFETY: as above.
        Ok(unsafe { driver.cu_event_record(turn.0, stream) }?)
    }
}

/// Makes a stream in the current context.
fn stream(bare: &Bare) -> Result<CUstream, Error> {
    let mut stream = ptr::null_mut();
    let non_blocking = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
    // SAFETY: one handle is written.
    unsafe { bare.driver.cu_stream_create_with_priority(&mut stream, non_blocking, 0) }?;
    Ok(stream)
}

/// Makes an event in the current context.
fn event(bare: &Bare) -> Result<CUevent, Error> {
    let mut event = ptr::null_mut();
    // SAFETY: one handle is written.
    unsafe { bare.driver.cu_event_create(&mut event, CUevent_flags::CU_EVENT_DISABLE_TIMING.0) }?;
    Ok(event)
}
