//! The threads on which things are released.
//!
//! The drop of a value that work in flight held is code of the user: it may block, panic, or come back to the device. So it runs
//! neither on a stream's thread, where it would hold up the work behind it, nor on a worker, nor under any lock. It is
//! handed over, which never waits, and dropped here.
//!
//! Mostly that takes one thread. A drop that waits, maybe for another value that is to be dropped here, must not hold up the
//! others: while one waits and more is handed over, a second thread stands by, and takes over after [`PATIENCE`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gridloom_core::user_code;
use parking_lot::{Condvar, Mutex};

type Payload = Box<dyn Send>;

/// How long a drop may take before another thread goes on with what comes after it.
const PATIENCE: Duration = Duration::from_millis(5);

/// What a device hands over to be dropped. The threads end when the device is gone and everything is dropped.
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
    /// Threads that there are.
    threads: usize,
    /// Threads that are inside of a drop.
    dropping: usize,
    /// How many payloads were taken, which tells whether there is progress.
    taken: u64,
    closed: bool,
}

impl Release {
    /// Drops `payload` soon, on another thread.
    pub(crate) fn hand_over(&self, payload: impl Send + 'static) {
        let mut state = self.queue.state.lock();
        state.payloads.push_back(Box::new(payload));
        if !self.queue.has_free_thread(&mut state) {
            // Not dropped here, where it could stop a stream.
            tracing::error!("there is no thread to drop finished work on; it is leaked");
            state.payloads.drain(..).for_each(std::mem::forget);
        }
        drop(state);
        self.queue.changed.notify_one();
    }
}

impl Queue {
    /// Sees to it that a thread is there that is not inside of a drop. Returns whether there is any thread at all.
    fn has_free_thread(self: &Arc<Self>, state: &mut State) -> bool {
        if state.threads == state.dropping {
            let queue = self.clone();
            let thread = thread::Builder::new().name("gridloom-release".into());
            match thread.spawn(move || queue.serve()) {
                Ok(_) => state.threads += 1,
                Err(error) => tracing::warn!(%error, "no thread to drop finished work on"),
            }
        }
        state.threads > 0
    }

    /// The life of a thread: it ends when there is nothing left and others are there, or the device is gone.
    fn serve(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            // Stands by: whoever drops now goes on with the next, unless its drop waits.
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
            if !state.payloads.is_empty() {
                self.has_free_thread(&mut state);
            }
            drop(state);
            if let Err(said) = user_code::contain(|| drop(payload)) {
                tracing::error!(said, "a value held by finished work panicked while it was dropped");
            }
            state = self.state.lock();
            state.dropping -= 1;
        }
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
    struct Block(Receiver<()>);

    impl Drop for Block {
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
                release.hand_over(Block(receiver));
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
