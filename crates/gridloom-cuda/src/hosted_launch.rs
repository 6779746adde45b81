//! Streams that a program driven by the host occupies.
//!
//! Such a program enqueues its later parts after it has read the outcome of the earlier ones. Work
//! that a user enqueues on the same stream meanwhile has to come after the whole program, so it
//! waits here until the program has enqueued its last part.

use crate::release;
use gridloom_core::{Error, ErrorKind, Result, backend};
use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

/// The name of the threads that drive programs.
pub(crate) const THREAD_NAME: &str = "gridloom-hosted";

/// A program that is running on a stream.
#[derive(Debug, Default)]
pub(crate) struct HostedLaunch {
    state: Mutex<Progress>,
    changed: Condvar,
    /// Whether it has to stop.
    cancelled: AtomicBool,
    /// Its thread, until it is joined. A thread that called the driver may end only while the
    /// driver is loaded.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    #[default]
    AtWork,
    /// The program has enqueued everything.
    Over,
    /// The process is ending, and the program does nothing more.
    Resting,
}

/// Every program of the process whose thread is not joined yet.
static UNJOINED: Mutex<Vec<Arc<HostedLaunch>>> = Mutex::new(Vec::new());

impl HostedLaunch {
    /// Runs `work` on a thread of its own.
    fn start(work: impl FnOnce() + Send + 'static) -> Result<Arc<Self>> {
        release::stop_work_at_exit();
        join_ended();
        let launch = Arc::new(Self::default());
        let ending = Ending(Arc::clone(&launch));
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
        let spawned = thread.spawn(move || {
            // Waiting threads must continue even if the work panics.
            let _ending = ending;
            crate::context::this_thread_is_ours();
            CURRENT.set(Some(Arc::clone(&_ending.0)));
            work();
            CURRENT.set(None);
        });
        match spawned {
            Ok(thread) => {
                *launch.thread.lock() = Some(thread);
                UNJOINED.lock().push(Arc::clone(&launch));
                Ok(launch)
            }
            Err(error) => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("no thread to drive the conditionals of a launch: {error}"),
            )),
        }
    }

    /// Waits until the program has enqueued everything, and its thread has ended. From within the
    /// program it returns at once.
    pub(crate) fn wait(&self) {
        if self.is_own() {
            return;
        }
        let mut progress = self.state.lock();
        while *progress == Progress::AtWork {
            self.changed.wait(&mut progress);
        }
        drop(progress);
        self.join();
    }

    /// Returns whether this thread drives it.
    fn is_own(&self) -> bool {
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(|own| ptr::eq(&**own, self)))
    }

    /// Waits likewise, but not past the deadline. Returns whether the program has enqueued
    /// everything.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        if self.is_own() {
            return true;
        }
        let mut progress = self.state.lock();
        while *progress == Progress::AtWork {
            if self.changed.wait_until(&mut progress, deadline).timed_out() {
                return *progress != Progress::AtWork;
            }
        }
        true
    }

    /// Makes the program stop before its next step.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn join(&self) {
        // The lock is held during the join, so that a second waiting thread also continues only
        // after the thread has ended.
        let mut thread = self.thread.lock();
        if *self.state.lock() == Progress::Over
            && let Some(thread) = thread.take()
        {
            // Only a drop can have panicked in the work. Nobody can be told.
            let _ = thread.join();
        }
    }

    /// Returns whether the program has enqueued everything.
    pub(crate) fn is_over(&self) -> bool {
        *self.state.lock() != Progress::AtWork
    }

    fn end(&self, progress: Progress) {
        *self.state.lock() = progress;
        self.changed.notify_all();
    }
}

thread_local! {
    /// The program that this thread drives.
    static CURRENT: RefCell<Option<Arc<HostedLaunch>>> = const { RefCell::new(None) };
}

/// Stops a thread that drives a program if the process is ending. Other threads are not affected.
pub(crate) fn stop_at_exit() {
    if release::is_stopped() && CURRENT.with_borrow(Option::is_some) {
        CURRENT.with_borrow(|current| {
            if let Some(own) = current {
                own.end(Progress::Resting);
            }
        });
        release::park_forever();
    }
}

/// Returns an error if the program that this thread drives was cancelled.
pub(crate) fn check_cancelled() -> Result<()> {
    let cancelled = |own: &Arc<HostedLaunch>| own.cancelled.load(Ordering::Relaxed);
    match CURRENT.with_borrow(|current| current.as_ref().is_some_and(cancelled)) {
        true => Err(backend::cancelled()),
        false => Ok(()),
    }
}

/// The latest program of a stream or an executable, for cancelling it.
#[derive(Debug, Default)]
pub(crate) struct Latest(Mutex<Weak<HostedLaunch>>);

impl Latest {
    pub(crate) fn set(&self, launch: &Arc<HostedLaunch>) {
        *self.0.lock() = Arc::downgrade(launch);
    }

    pub(crate) fn cancel(&self) {
        if let Some(launch) = self.0.lock().upgrade() {
            launch.cancel();
        }
    }
}

/// Joins the threads of programs that have ended.
fn join_ended() {
    let ended: Vec<Arc<HostedLaunch>> = {
        let mut all = UNJOINED.lock();
        let (ended, at_work) = all.drain(..).partition(|launch| launch.is_over());
        *all = at_work;
        ended
    };
    ended.iter().for_each(|launch| launch.join());
}

/// Waits, at the end of the process, until every program has ended or stopped, but not past the
/// deadline.
pub(crate) fn stop_all(deadline: Instant) {
    let all = std::mem::take(&mut *UNJOINED.lock());
    for launch in all {
        let mut progress = launch.state.lock();
        while *progress == Progress::AtWork {
            if launch.changed.wait_until(&mut progress, deadline).timed_out() {
                break;
            }
        }
        drop(progress);
        launch.join();
        // The thread may still run, and uses the launch.
        std::mem::forget(launch);
    }
}

struct Ending(Arc<HostedLaunch>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Progress::Over);
    }
}

/// The program on one stream, if there is one.
#[derive(Debug, Default)]
pub(crate) struct HostedSlot {
    /// The program. Locked while a thread waits for it.
    present: Mutex<Option<Arc<HostedLaunch>>>,
    /// The program, for callers that do not wait.
    latest: Latest,
    /// Whether there may be a program. Cleared once it was waited for. Every enqueue reads this,
    /// and mostly there is none.
    maybe: AtomicBool,
}

impl HostedSlot {
    /// Starts a program, after the one before it.
    pub(crate) fn start(
        &self,
        everywhere: &HostedLaunches,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<HostedLaunch>> {
        let mut present = self.present.lock();
        if let Some(before) = present.take() {
            before.wait();
        }
        self.maybe.store(true, Ordering::Release);
        let launch = HostedLaunch::start(work)?;
        everywhere.add(&launch);
        self.latest.set(&launch);
        *present = Some(Arc::clone(&launch));
        Ok(launch)
    }

    /// Cancels the program, if there is one.
    pub(crate) fn cancel(&self) {
        self.latest.cancel();
    }

    /// Waits until the stream is free, but not past the deadline. Returns whether it is.
    pub(crate) fn settle_until(&self, deadline: Instant) -> bool {
        if !self.maybe.load(Ordering::Acquire) {
            return true;
        }
        let Some(mut present) = self.present.try_lock_until(deadline) else { return false };
        if present.as_ref().is_some_and(|launch| !launch.wait_until(deadline)) {
            return false;
        }
        // The thread of the launch is about to end, so this wait is short.
        if let Some(launch) = present.take() {
            launch.wait();
        }
        self.maybe.store(false, Ordering::Release);
        true
    }

    /// Waits until the stream is free.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.maybe.load(Ordering::Acquire) {
            self.wait();
        }
    }

    fn wait(&self) {
        let mut present = self.present.lock();
        if let Some(launch) = present.take() {
            launch.wait();
        }
        self.maybe.store(false, Ordering::Release);
    }

    /// Returns whether a program is running.
    pub(crate) fn is_busy(&self) -> bool {
        self.present.try_lock().is_none_or(|present| present.as_ref().is_some_and(|there| !there.is_over()))
    }
}

/// All running programs of one device.
#[derive(Debug, Default)]
pub(crate) struct HostedLaunches(Mutex<Vec<Weak<HostedLaunch>>>);

impl HostedLaunches {
    fn add(&self, launch: &Arc<HostedLaunch>) {
        let mut all = self.0.lock();
        all.retain(|known| known.upgrade().is_some_and(|known| !known.is_over()));
        all.push(Arc::downgrade(launch));
    }

    fn all(&self) -> Vec<Arc<HostedLaunch>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for all that are at work now.
    pub(crate) fn wait_all(&self) {
        self.all().iter().for_each(|launch| launch.wait());
    }

    /// Waits likewise, but not past the deadline. Returns whether all have enqueued everything.
    pub(crate) fn wait_all_until(&self, deadline: Instant) -> bool {
        self.all().iter().all(|launch| launch.wait_until(deadline))
    }

    /// Cancels all programs that are running now.
    pub(crate) fn cancel_all(&self) {
        self.all().iter().for_each(|launch| launch.cancel());
    }

    /// Returns whether any program is running.
    pub(crate) fn are_busy(&self) -> bool {
        self.all().iter().any(|launch| !launch.is_over())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn who_settles_comes_after_the_program() {
        let (hosted, all) = (HostedSlot::default(), HostedLaunches::default());
        let (go, wait) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        hosted
            .start(&all, move || {
                let _ = wait.recv();
                let _ = done.send("program");
            })
            .unwrap();
        assert!(hosted.is_busy());
        go.send(()).unwrap();
        hosted.settle();
        assert!(!hosted.is_busy());
        assert_eq!(ended.try_recv(), Ok("program"));
    }

    #[test]
    fn programs_on_one_stream_run_one_after_the_other() {
        let (hosted, all) = (HostedSlot::default(), HostedLaunches::default());
        let (tell, hear) = mpsc::channel();
        for number in 0..8 {
            let tell = tell.clone();
            hosted.start(&all, move || tell.send(number).unwrap()).unwrap();
        }
        hosted.settle();
        drop(tell);
        assert_eq!(hear.iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_program_does_not_wait_for_itself() {
        let (hosted, all) = (HostedSlot::default(), Arc::new(HostedLaunches::default()));
        let own = Arc::clone(&all);
        hosted.start(&all, move || own.wait_all()).unwrap();
        hosted.settle();
    }

    #[test]
    fn who_waits_for_a_program_waits_for_the_end_of_its_thread() {
        struct Tell(mpsc::Sender<()>);
        impl Drop for Tell {
            fn drop(&mut self) {
                std::thread::yield_now();
                let _ = self.0.send(());
            }
        }
        thread_local!(static AT_THE_END: RefCell<Option<Tell>> = const { RefCell::new(None) });
        let (hosted, all) = (HostedSlot::default(), HostedLaunches::default());
        let (tell, hear) = mpsc::channel();
        hosted.start(&all, move || AT_THE_END.set(Some(Tell(tell)))).unwrap();
        hosted.settle();
        assert!(hear.try_recv().is_ok(), "what the thread had of its own is gone");
    }

    #[test]
    fn a_program_that_panics_frees_the_stream() {
        let (hosted, all) = (HostedSlot::default(), HostedLaunches::default());
        hosted.start(&all, || panic!("as the test wants")).unwrap();
        hosted.settle();
    }

    #[test]
    fn waiting_for_the_device_waits_for_the_programs_of_all_streams() {
        let all = HostedLaunches::default();
        let streams = [HostedSlot::default(), HostedSlot::default()];
        let (tell, hear) = mpsc::channel();
        for stream in &streams {
            let tell = tell.clone();
            stream.start(&all, move || tell.send(()).unwrap()).unwrap();
        }
        drop(tell);
        all.wait_all();
        assert_eq!(hear.try_iter().count(), 2);
    }
}
