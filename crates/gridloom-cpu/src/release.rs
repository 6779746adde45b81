//! The release threads, which drop user values.
//!
//! Dropping a value that work in flight held runs user code. It may block, panic, or call the
//! device. It therefore runs neither on a stream's thread, where it would delay the following work,
//! nor on a worker, nor under any lock. It is handed over, which never waits, and dropped here.
//!
//! One thread is usually enough. A drop that waits, perhaps for another value in the same queue,
//! must not delay the others. While one drop runs and more values are queued, a second thread
//! stands by and takes over after [`PATIENCE`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gridloom_core::{log, user_code};
use parking_lot::{Condvar, Mutex};

type Payload = Box<dyn Send>;

/// The time that a drop may take before another thread continues with the next value.
const PATIENCE: Duration = Duration::from_millis(5);

/// The values that a device hands over to be dropped. The threads end when the device is gone and
/// everything is dropped.
#[derive(Default)]
pub(crate) struct Release {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    payloads: VecDeque<Payload>,
    /// The number of threads.
    threads: usize,
    /// The number of threads that are inside a drop.
    dropping: usize,
    /// The number of values taken so far, which shows progress.
    taken: u64,
    closed: bool,
}

impl Release {
    /// Drops `payload` soon, on another thread.
    pub(crate) fn hand_over(&self, payload: impl Send + 'static) {
        let mut state = self.queue.state.lock();
        state.payloads.push_back(Box::new(payload));
        let started = self.queue.ensure_free_thread(&mut state);
        let is_leaked = state.threads == 0;
        if is_leaked {
            // Dropping it here could stop a stream.
            state.payloads.drain(..).for_each(std::mem::forget);
        }
        drop(state);
        self.queue.changed.notify_one();
        log_failure(started);
        if is_leaked {
            log!(error, "there is no thread to drop finished work on; it is leaked");
        }
    }
}

impl Queue {
    /// Starts a thread if all are inside a drop.
    fn ensure_free_thread(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        if state.threads == state.dropping {
            let queue = self.clone();
            let thread = thread::Builder::new().name("gridloom-release".into());
            thread.spawn(move || queue.serve())?;
            state.threads += 1;
        }
        Ok(())
    }

    /// Drops values on a release thread. It ends when nothing is left and others stand by, or when
    /// the device is gone.
    fn serve(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            // Stands by: the thread that is in a drop continues with the next value, unless its
            // drop waits.
            let (mut taken, mut deadline) = (state.taken, Instant::now() + PATIENCE);
            while state.dropping > 0 && !state.payloads.is_empty() {
                let late = self.changed.wait_until(&mut state, deadline).timed_out();
                if state.taken != taken {
                    (taken, deadline) = (state.taken, Instant::now() + PATIENCE);
                } else if late {
                    break;
                }
            }
            let Some(payload) = state.payloads.pop_front() else {
                if state.closed || state.threads - state.dropping > 2 {
                    state.threads -= 1;
                    return;
                }
                self.changed.wait(&mut state);
                continue;
            };
            state.taken += 1;
            state.dropping += 1;
            let started = match state.payloads.is_empty() {
                true => Ok(()),
                false => self.ensure_free_thread(&mut state),
            };
            drop(state);
            log_failure(started);
            if let Err(said) = user_code::contain(|| drop(payload)) {
                log!(error, said, "a value held by finished work panicked while it was dropped");
            }
            state = self.state.lock();
            state.dropping -= 1;
        }
    }
}

/// Logs that a thread could not be started. The queue is not locked: who receives the event may
/// drop values.
fn log_failure(started: std::io::Result<()>) {
    if let Err(error) = started {
        log!(warn, %error, "no thread to drop finished work on");
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Tells where it is dropped.
    struct Tell(Sender<Option<String>>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().name().map(str::to_owned));
        }
    }

    /// Waits in its drop until somebody sends, or nobody can any more.
    struct WaitingDrop(Receiver<()>);

    impl Drop for WaitingDrop {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn a_payload_is_dropped_on_the_release_thread_also_when_the_device_goes() {
        let (told, hear) = channel();
        let release = Release::default();
        (0..3).for_each(|_| release.hand_over(Tell(told.clone())));
        drop((release, told));
        let names: Vec<Option<String>> = hear.iter().collect();
        assert_eq!(names, vec![Some("gridloom-release".to_owned()); 3]);
    }

    #[test]
    fn drops_that_wait_hold_up_nothing() {
        let (told, hear) = channel();
        let release = Release::default();
        let senders: Vec<Sender<()>> = (0..3)
            .map(|_| {
                let (sender, receiver) = channel();
                release.hand_over(WaitingDrop(receiver));
                sender
            })
            .collect();
        release.hand_over(Tell(told));
        assert!(hear.recv().is_ok());
        drop(senders);
        drop(release);
    }

    #[test]
    fn a_drop_may_hand_over_more() {
        struct Chain(Arc<Release>, Option<Tell>);
        impl Drop for Chain {
            fn drop(&mut self) {
                self.0.hand_over(self.1.take());
            }
        }
        let (told, hear) = channel();
        let release = Arc::new(Release::default());
        release.hand_over(Chain(release.clone(), Some(Tell(told))));
        assert!(hear.recv().is_ok());
    }
}
