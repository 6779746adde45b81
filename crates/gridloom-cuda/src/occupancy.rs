//! Streams that a program driven by the host occupies.
//!
//! Such a program enqueues its later parts when it has seen the outcome of the earlier ones. What a user enqueues on the
//! same stream in the meantime has to come after all of it, so it waits here until the program has enqueued its last part.

use crate::release;
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

/// The name of the threads that drive programs.
pub(crate) const THREAD_NAME: &str = "gridloom-hosted";

/// One program at work on a stream.
#[derive(Debug, Default)]
pub(crate) struct Occupation {
    state: Mutex<Progress>,
    changed: Condvar,
    /// Its thread, until somebody has joined it: a thread that called the driver is let end only while the driver is there.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    #[default]
    AtWork,
    /// It has enqueued everything.
    Over,
    /// The process is ending, and it will do nothing more.
    Resting,
}

/// Every program of the process whose thread was not joined yet.
static UNJOINED: Mutex<Vec<Arc<Occupation>>> = Mutex::new(Vec::new());

impl Occupation {
    /// Runs `work` on a thread of its own.
    fn start(work: impl FnOnce() + Send + 'static) -> Result<Arc<Self>> {
        release::mind_exit();
        join_ended();
        let occupation = Arc::new(Self::default());
        let ending = Ending(Arc::clone(&occupation));
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
        let spawned = thread.spawn(move || {
            // Also when the work panics, those who wait must go on.
            let _ending = ending;
            crate::context::this_thread_is_ours();
            CURRENT.set(Some(Arc::clone(&_ending.0)));
            work();
            CURRENT.set(None);
        });
        match spawned {
            Ok(thread) => {
                *occupation.thread.lock() = Some(thread);
                UNJOINED.lock().push(Arc::clone(&occupation));
                Ok(occupation)
            }
            Err(error) => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("no thread to drive the conditionals of a launch: {error}"),
            )),
        }
    }

    /// Waits until the program has enqueued everything, and its thread has ended. From within the program it returns at once.
    pub(crate) fn wait(&self) {
        if CURRENT.with_borrow(|current| current.as_ref().is_some_and(|own| ptr::eq(&**own, self))) {
            return;
        }
        let mut progress = self.state.lock();
        while *progress == Progress::AtWork {
            self.changed.wait(&mut progress);
        }
        drop(progress);
        self.join();
    }

    fn join(&self) {
        // The lock is held meanwhile, so that a second who waits comes after the end of the thread too.
        let mut thread = self.thread.lock();
        if *self.state.lock() == Progress::Over
            && let Some(thread) = thread.take()
        {
            // A panic in the work was that of a drop; there is nobody to tell.
            let _ = thread.join();
        }
    }

    /// Whether the program has enqueued everything.
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
    static CURRENT: RefCell<Option<Arc<Occupation>>> = const { RefCell::new(None) };
}

/// A thread that drives a program goes no further once the process is ending; any other is not concerned.
pub(crate) fn stop_at_exit() {
    if release::is_stopped() && CURRENT.with_borrow(Option::is_some) {
        CURRENT.with_borrow(|current| {
            if let Some(own) = current {
                own.end(Progress::Resting);
            }
        });
        release::rest();
    }
}

/// Joins the threads of programs that have ended.
fn join_ended() {
    let ended: Vec<Arc<Occupation>> = {
        let mut all = UNJOINED.lock();
        let (ended, at_work) = all.drain(..).partition(|occupation| occupation.is_over());
        *all = at_work;
        ended
    };
    ended.iter().for_each(|occupation| occupation.join());
}

/// At the end of the process: waits until every program has ended or rests, but not past the deadline.
pub(crate) fn stop_all(deadline: Instant) {
    let all = std::mem::take(&mut *UNJOINED.lock());
    for occupation in all {
        let mut progress = occupation.state.lock();
        while *progress == Progress::AtWork {
            if occupation.changed.wait_until(&mut progress, deadline).timed_out() {
                break;
            }
        }
        drop(progress);
        occupation.join();
        // Its thread, where it goes on, must not find it gone.
        std::mem::forget(occupation);
    }
}

struct Ending(Arc<Occupation>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Progress::Over);
    }
}

/// The program on one stream, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    present: Mutex<Option<Arc<Occupation>>>,
    /// Whether there may be one: cleared once it was waited for. Whoever enqueues asks, and mostly there is none.
    maybe: AtomicBool,
}

impl Occupancy {
    /// Starts a program, after the one before it.
    pub(crate) fn occupy(
        &self,
        everywhere: &Occupations,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Occupation>> {
        let mut present = self.present.lock();
        if let Some(before) = present.take() {
            before.wait();
        }
        self.maybe.store(true, Ordering::Release);
        let occupation = Occupation::start(work)?;
        everywhere.add(&occupation);
        *present = Some(Arc::clone(&occupation));
        Ok(occupation)
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
        if let Some(occupation) = present.take() {
            occupation.wait();
        }
        self.maybe.store(false, Ordering::Release);
    }

    /// Whether a program is at work.
    pub(crate) fn is_occupied(&self) -> bool {
        self.present.try_lock().is_none_or(|present| present.as_ref().is_some_and(|there| !there.is_over()))
    }
}

/// All programs at work on one device.
#[derive(Debug, Default)]
pub(crate) struct Occupations(Mutex<Vec<Weak<Occupation>>>);

impl Occupations {
    fn add(&self, occupation: &Arc<Occupation>) {
        let mut all = self.0.lock();
        all.retain(|known| known.upgrade().is_some_and(|known| !known.is_over()));
        all.push(Arc::downgrade(occupation));
    }

    /// Waits for all that are at work now.
    pub(crate) fn wait_all(&self) {
        let all: Vec<Arc<Occupation>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|occupation| occupation.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn who_settles_comes_after_the_program() {
        let (occupancy, all) = (Occupancy::default(), Occupations::default());
        let (go, wait) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        occupancy
            .occupy(&all, move || {
                let _ = wait.recv();
                let _ = done.send("program");
            })
            .unwrap();
        assert!(occupancy.is_occupied());
        go.send(()).unwrap();
        occupancy.settle();
        assert!(!occupancy.is_occupied());
        assert_eq!(ended.try_recv(), Ok("program"));
    }

    #[test]
    fn programs_on_one_stream_run_one_after_the_other() {
        let (occupancy, all) = (Occupancy::default(), Occupations::default());
        let (tell, hear) = mpsc::channel();
        for number in 0..8 {
            let tell = tell.clone();
            occupancy.occupy(&all, move || tell.send(number).unwrap()).unwrap();
        }
        occupancy.settle();
        drop(tell);
        assert_eq!(hear.iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_program_does_not_wait_for_itself() {
        let (occupancy, all) = (Occupancy::default(), Arc::new(Occupations::default()));
        let own = Arc::clone(&all);
        occupancy.occupy(&all, move || own.wait_all()).unwrap();
        occupancy.settle();
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
        let (occupancy, all) = (Occupancy::default(), Occupations::default());
        let (tell, hear) = mpsc::channel();
        occupancy.occupy(&all, move || AT_THE_END.set(Some(Tell(tell)))).unwrap();
        occupancy.settle();
        assert!(hear.try_recv().is_ok(), "what the thread had of its own is gone");
    }

    #[test]
    fn a_program_that_panics_frees_the_stream() {
        let (occupancy, all) = (Occupancy::default(), Occupations::default());
        occupancy.occupy(&all, || panic!("as the test wants")).unwrap();
        occupancy.settle();
    }

    #[test]
    fn waiting_for_the_device_waits_for_the_programs_of_all_streams() {
        let all = Occupations::default();
        let streams = [Occupancy::default(), Occupancy::default()];
        let (tell, hear) = mpsc::channel();
        for stream in &streams {
            let tell = tell.clone();
            stream.occupy(&all, move || tell.send(()).unwrap()).unwrap();
        }
        drop(tell);
        all.wait_all();
        assert_eq!(hear.try_iter().count(), 2);
    }
}
