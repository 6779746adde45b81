//! Streams that a program driven by the host occupies.
//!
//! Such a program enqueues its later parts when it has seen the outcome of the earlier ones. What a user enqueues on the
//! same stream in the meantime has to come after all of it, so it waits here until the program has enqueued its last part.

use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};

/// One program at work on a stream.
#[derive(Debug, Default)]
pub(crate) struct Occupation {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Occupation {
    /// Runs `work` on a thread of its own.
    fn start(work: impl FnOnce() + Send + 'static) -> Result<Arc<Self>> {
        let occupation = Arc::new(Self::default());
        let ending = Ending(Arc::clone(&occupation));
        let thread = std::thread::Builder::new().name("gridloom-hosted".to_owned());
        let spawned = thread.spawn(move || {
            // Also when the work panics, those who wait must go on.
            let _ending = ending;
            crate::context::this_thread_is_ours();
            work();
        });
        match spawned {
            Ok(_) => Ok(occupation),
            Err(error) => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("no thread to drive the conditionals of a launch: {error}"),
            )),
        }
    }

    /// Waits until the program has enqueued everything.
    pub(crate) fn wait(&self) {
        let mut over = self.over.lock();
        while !*over {
            self.changed.wait(&mut over);
        }
    }

    fn is_over(&self) -> bool {
        *self.over.lock()
    }
}

struct Ending(Arc<Occupation>);

impl Drop for Ending {
    fn drop(&mut self) {
        *self.0.over.lock() = true;
        self.0.changed.notify_all();
    }
}

/// The program on one stream, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Occupancy(Mutex<Option<Arc<Occupation>>>);

impl Occupancy {
    /// Starts a program, after the one before it.
    pub(crate) fn occupy(
        &self,
        everywhere: &Occupations,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Occupation>> {
        let mut present = self.0.lock();
        if let Some(before) = present.take() {
            before.wait();
        }
        let occupation = Occupation::start(work)?;
        everywhere.add(&occupation);
        *present = Some(Arc::clone(&occupation));
        Ok(occupation)
    }

    /// Waits until the stream is free.
    pub(crate) fn settle(&self) {
        let mut present = self.0.lock();
        if let Some(occupation) = present.take() {
            occupation.wait();
        }
    }

    /// Whether a program is at work.
    pub(crate) fn is_occupied(&self) -> bool {
        self.0.try_lock().is_none_or(|present| present.as_ref().is_some_and(|there| !there.is_over()))
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
