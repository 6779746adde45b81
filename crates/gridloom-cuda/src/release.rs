//! The thread on which things are released.
//!
//! A graph or a stream releases what it keeps alive when the device is done with it. The device
//! reports that on threads where nothing may be dropped: destructors of CUDA user objects and host
//! functions run on a driver thread that must not call CUDA, and dropping a user's closure may call
//! anything. So these threads hand their payload over ([`hand_over`], which never waits), and this
//! thread drops it.
//!
//! The same thread polls work in flight ([`watch`]). It releases the memory, modules and closures
//! of a launch soon after the launch has ended, without any further call by the program.
//!
//! # At the end of the process
//!
//! The thread is never joined by a static destructor. When it starts it registers an exit handler,
//! which runs before the driver's own (handlers run in reverse order, and the driver was opened
//! first). The handler asks the thread to stop and waits for the drop it is in, but no longer than
//! [`EXIT_PATIENCE`]: user code that blocks must not keep a process from ending. What is still
//! queued then is leaked to the operating system.
//!
//! The stopped thread does not exit. The driver keeps data for each thread that called it and frees
//! the data when the thread exits, which must not happen while the driver unloads. The threads that
//! drive conditionals stop the same way (`hosted_launch.rs`).

use crate::hosted_launch;
use gridloom_core::log;
use gridloom_core::user_code::{self, in_callback};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The interval at which work in flight is polled.
const TICK: Duration = Duration::from_millis(1);

/// The number of further polls of an object that has nothing in flight, while other code holds it.
/// A program that alternates between launching, waiting and computing then does not have to wake
/// the thread, which costs as much as one or two launches.
const LINGER: u32 = 100;

/// The longest time that the end of the process waits for a drop in progress.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// An object with work in flight. The release thread polls it until the work is done.
pub trait Watched: Send + Sync {
    /// Releases what is finished. Returns whether anything is still in flight.
    fn poll(&self) -> bool;

    /// Notifies the object that it is not polled any more until it calls [`watch`] again. Returns
    /// `false` if something came into flight since the last poll; it is then still polled.
    fn rest(&self) -> bool {
        true
    }
}

/// A watched object, and how many polls in a row found nothing in flight.
struct Watching {
    watched: Arc<dyn Watched>,
    idle: u32,
}

impl Watching {
    /// Polls the object once. Returns whether to poll it again.
    fn poll(&mut self) -> bool {
        if self.watched.poll() {
            self.idle = 0;
            return true;
        }
        self.idle += 1;
        let lingers = self.idle < LINGER && Arc::strong_count(&self.watched) > 1;
        lingers || !self.watched.rest()
    }
}

enum Message {
    Drop(Box<dyn Send>),
    Watch(Arc<dyn Watched>),
    Flush(Sender<()>),
    Stop(Sender<()>),
}

/// Set once the process is ending: from then on nothing is released any more.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Gives `payload` to the release thread, which drops it. Never waits, and may be called from a
/// driver thread.
pub fn hand_over(payload: Box<dyn Send>) {
    post(Message::Drop(payload));
}

/// Releases an object of the driver on this thread. If this thread runs a callback, it must not
/// call the driver, and the release thread does it instead.
pub(crate) fn let_go(release: impl FnOnce() + Send + 'static) {
    struct Later<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Later<F> {
        fn drop(&mut self) {
            if let Some(release) = self.0.take() {
                release();
            }
        }
    }
    if in_callback() {
        hand_over(Box::new(Later(Some(release))));
    } else {
        release();
    }
}

/// A handle of the driver that is passed to the thread that releases it.
pub(crate) struct Handle<T>(pub(crate) *mut T);

// SAFETY: the driver's handles are not bound to a thread.
unsafe impl<T> Send for Handle<T> {}

impl<T> Handle<T> {
    /// Returns the handle. A method, so that closures capture the whole struct.
    pub(crate) fn raw(&self) -> *mut T {
        self.0
    }
}

/// Makes the release thread poll `watched` until nothing is in flight.
pub fn watch(watched: Arc<dyn Watched>) {
    post(Message::Watch(watched));
}

/// Waits until everything handed over so far has been dropped, and everything watched has been
/// polled once. During a foreign capture nothing is dropped, and this does not wait.
///
/// Must not be called from inside a drop on the release thread; there it returns at once.
pub fn flush() {
    if IS_RELEASE_THREAD.get() {
        return;
    }
    let (done, wait) = mpsc::channel();
    post(Message::Flush(done));
    // An error means that the process is ending and the message was dropped; there is nothing to
    // wait for.
    let _ = wait.recv();
}

/// Waits as [`flush`] does, but at most a second. The caller may hold locks, and a drop of the user
/// on the release thread may wait for one of them.
pub(crate) fn flush_briefly() {
    if IS_RELEASE_THREAD.get() {
        return;
    }
    let (done, wait) = mpsc::channel();
    post(Message::Flush(done));
    let _ = wait.recv_timeout(FLUSH_PATIENCE);
}

/// The longest time that [`flush_briefly`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

const THREAD_NAME: &str = "gridloom-release";

thread_local! {
    /// Whether this is the release thread. Other backends have threads of the same name.
    static IS_RELEASE_THREAD: Cell<bool> = const { Cell::new(false) };
}

fn post(message: Message) {
    if STOPPED.load(Ordering::Acquire) {
        leak(message);
        return;
    }
    match queue() {
        Some(queue) => {
            if let Err(mpsc::SendError(message)) = queue.send(message) {
                leak(message);
            }
        }
        None => leak(message),
    }
}

/// Handles a message when the process is ending or has no release thread. A payload is leaked,
/// because this may be a driver thread. A `Flush` is dropped, which wakes its waiter.
fn leak(message: Message) {
    match message {
        Message::Drop(payload) => std::mem::forget(payload),
        Message::Watch(watched) => std::mem::forget(watched),
        Message::Flush(_) | Message::Stop(_) => {}
    }
}

/// Returns the queue to the thread, which starts at the first use, or `None` if the system refused
/// to start the thread.
fn queue() -> Option<&'static Sender<Message>> {
    static QUEUE: OnceLock<Option<Sender<Message>>> = OnceLock::new();
    QUEUE
        .get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
            match thread.spawn(move || run(&receiver)) {
                Ok(_) => {
                    at_exit();
                    Some(sender)
                }
                Err(error) => {
                    log!(error, %error, "cannot start the thread that releases resources; they are leaked");
                    None
                }
            }
        })
        .as_ref()
}

/// The number of guards that pause the thread, and the lock that it holds while it works.
static PAUSES: AtomicUsize = AtomicUsize::new(0);
static BUSY: Mutex<()> = Mutex::new(());

/// The longest time that pausing the thread waits for a drop in progress.
const PAUSE_PATIENCE: Duration = Duration::from_secs(1);

/// A guard. Nothing is released while it lives.
#[derive(Debug)]
#[must_use = "the thread pauses only while the guard lives"]
pub(crate) struct Paused(());

/// Pauses the thread until the guard is dropped. While a driver captures in the strictest mode,
/// freeing memory on any thread fails the capture.
pub(crate) fn pause() -> Paused {
    PAUSES.fetch_add(1, Ordering::SeqCst);
    // A drop of a user value may take long, or wait for this very thread, so the wait is bounded.
    drop(BUSY.try_lock_for(PAUSE_PATIENCE));
    Paused(())
}

impl Drop for Paused {
    fn drop(&mut self) {
        PAUSES.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(messages: &Receiver<Message>) {
    crate::context::this_thread_is_ours();
    IS_RELEASE_THREAD.set(true);
    let mut watched: Vec<Watching> = Vec::new();
    // Values that arrived during a pause.
    let mut held: VecDeque<Box<dyn Send>> = VecDeque::new();
    loop {
        let message = if watched.is_empty() && held.is_empty() {
            messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            messages.recv_timeout(TICK)
        };
        let _busy = BUSY.lock();
        let paused = PAUSES.load(Ordering::SeqCst) > 0;
        while !paused && let Some(payload) = held.pop_front() {
            if STOPPED.load(Ordering::Acquire) {
                std::mem::forget(payload);
            } else {
                guarded(|| drop(payload));
            }
        }
        match message {
            // The process is ending: what is still queued is left to the operating system.
            Ok(message @ Message::Drop(_)) if STOPPED.load(Ordering::Acquire) => leak(message),
            Ok(Message::Drop(payload)) if paused => held.push_back(payload),
            Ok(Message::Drop(payload)) => guarded(|| drop(payload)),
            Ok(Message::Watch(new)) => watched.push(Watching { watched: new, idle: 0 }),
            Ok(Message::Flush(done)) => {
                if !paused {
                    poll(&mut watched);
                }
                let _ = done.send(());
            }
            Ok(Message::Stop(done)) => {
                // Dropping these values would call a driver that is shutting down.
                std::mem::forget((watched, held));
                let _ = done.send(());
                park_forever();
            }
            Err(RecvTimeoutError::Timeout) if paused => {}
            Err(RecvTimeoutError::Timeout) => poll(&mut watched),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn poll(watched: &mut Vec<Watching>) {
    watched.retain_mut(|watching| {
        let mut again = false;
        guarded(|| again = watching.poll());
        again
    });
}

/// Runs code that may drop what belongs to users: a panic there must not end the thread.
fn guarded(work: impl FnOnce()) {
    if let Err(said) = user_code::contain(work) {
        log!(error, said, "a drop panicked on the release thread");
    }
}

/// Returns whether the process is ending, so that Gridloom's threads must not call the driver any
/// more.
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::Acquire)
}

/// Registers the exit handler, which stops the threads that call the driver. Code that starts such
/// a thread calls this first.
pub(crate) fn stop_work_at_exit() {
    let _ = queue();
}

/// Parks this thread until the process is gone.
pub(crate) fn park_forever() -> ! {
    loop {
        std::thread::park();
    }
}

fn at_exit() {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
    }

    extern "C" fn stop() {
        if STOPPED.swap(true, Ordering::AcqRel) {
            return;
        }
        let deadline = Instant::now() + EXIT_PATIENCE;
        hosted_launch::stop_all(deadline);
        if let Some(queue) = queue() {
            let (done, wait) = mpsc::channel();
            if queue.send(Message::Stop(done)).is_ok() {
                let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            }
        }
    }

    // SAFETY: `atexit` is the C library's; the handler is a plain function that does not unwind:
    // sending to a channel, waiting with a limit and joining threads do not panic.
    if unsafe { atexit(stop) } != 0 {
        log!(warn, "no exit handler could be registered; a release in progress may be cut off at exit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Tells when and where it is dropped.
    struct Tell(Sender<Option<String>>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }

    #[test]
    fn a_payload_is_dropped_on_the_release_thread() {
        let (told, hear) = mpsc::channel();
        hand_over(Box::new(Tell(told)));
        assert_eq!(hear.recv().unwrap().as_deref(), Some(THREAD_NAME));
    }

    #[test]
    fn flush_waits_for_everything_handed_over_before() {
        static DROPPED: AtomicUsize = AtomicUsize::new(0);
        struct Count;
        impl Drop for Count {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Ordering::SeqCst);
            }
        }
        for _ in 0..64 {
            hand_over(Box::new(Count));
        }
        flush();
        assert_eq!(DROPPED.load(Ordering::SeqCst), 64);
    }

    #[test]
    fn a_panic_in_a_drop_does_not_end_the_thread() {
        struct Panic;
        impl Drop for Panic {
            fn drop(&mut self) {
                panic!("in a drop, as the test wants");
            }
        }
        hand_over(Box::new(Panic));
        let (told, hear) = mpsc::channel();
        hand_over(Box::new(Tell(told)));
        assert!(hear.recv().is_ok());
    }

    #[test]
    fn a_drop_may_hand_over_more_and_flush() {
        struct Chain(Option<Box<dyn Send>>);
        impl Drop for Chain {
            fn drop(&mut self) {
                hand_over(self.0.take().unwrap());
                flush();
            }
        }
        let (told, hear) = mpsc::channel();
        hand_over(Box::new(Chain(Some(Box::new(Tell(told))))));
        assert!(hear.recv().is_ok());
    }

    #[test]
    fn handing_over_does_not_wait_for_a_drop_in_progress() {
        struct WaitingDrop(Receiver<()>, Sender<()>);
        impl Drop for WaitingDrop {
            fn drop(&mut self) {
                let _ = self.1.send(());
                let _ = self.0.recv();
            }
        }
        let (go, wait) = mpsc::channel();
        let (started, has_started) = mpsc::channel();
        hand_over(Box::new(WaitingDrop(wait, started)));
        has_started.recv().unwrap();
        let (told, hear) = mpsc::channel();
        // The thread is inside the first drop; this returns all the same.
        hand_over(Box::new(Tell(told)));
        go.send(()).unwrap();
        assert!(hear.recv().is_ok());
    }

    #[test]
    fn what_is_watched_is_polled_until_nothing_is_in_flight_and_then_let_go() {
        struct Three(AtomicUsize, Sender<usize>);
        impl Watched for Three {
            fn poll(&self) -> bool {
                let polls = self.0.fetch_add(1, Ordering::SeqCst) + 1;
                let _ = self.1.send(polls);
                polls < 3
            }
        }
        let (told, hear) = mpsc::channel();
        let three = Arc::new(Three(AtomicUsize::new(0), told));
        watch(Arc::clone(&three) as Arc<dyn Watched>);
        drop(three);
        // The channel closes when the thread lets go.
        assert_eq!(hear.iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn what_somebody_has_is_looked_at_for_a_while_longer_and_then_rests() {
        struct Idle(AtomicUsize, Sender<usize>);
        impl Watched for Idle {
            fn poll(&self) -> bool {
                self.0.fetch_add(1, Ordering::SeqCst);
                false
            }

            fn rest(&self) -> bool {
                let _ = self.1.send(self.0.load(Ordering::SeqCst));
                true
            }
        }
        let (told, hear) = mpsc::channel();
        let idle = Arc::new(Idle(AtomicUsize::new(0), told));
        watch(Arc::clone(&idle) as Arc<dyn Watched>);
        assert_eq!(hear.recv(), Ok(LINGER as usize));
        // The thread is still about to let go.
        flush();
        assert_eq!(Arc::strong_count(&idle), 1);
    }
}
