//! Every order of steps of a thread that enqueues, one that waits, and the release thread.

use super::*;
use loom::sync::atomic::AtomicBool;
use loom::thread;

/// A queue that a thread of the model runs.
#[derive(Default)]
struct Device {
    enqueued: AtomicU64,
    run: AtomicU64,
    watched: AtomicBool,
}

impl Queue for Arc<Device> {
    type Mark = u64;

    fn mark(&self) -> Marked<u64> {
        // Not a load: to mark is to enqueue, and whoever enqueues after it comes after what was
        // done before it.
        Marked::At(self.enqueued.fetch_add(0, Ordering::SeqCst))
    }

    fn passed(&self, mark: &u64) -> bool {
        self.run.load(Ordering::SeqCst) >= *mark
    }

    fn recycle(&self, _: u64) {}

    fn watch(in_flight: Arc<InFlight<Self>>) {
        let before = in_flight.queue.watched.swap(true, Ordering::SeqCst);
        assert!(!before, "it is watched already");
    }
}

/// What work number `number` uses. It may go only once that has run.
struct Resource {
    device: Arc<Device>,
    number: u64,
}

impl Drop for Resource {
    fn drop(&mut self) {
        let run = self.device.run.load(Ordering::SeqCst);
        assert!(run >= self.number, "work {} had not run when what it uses was dropped", self.number);
    }
}

fn enqueue(in_flight: &Arc<InFlight<Arc<Device>>>) {
    let device = in_flight.queue().clone();
    let number = device.enqueued.fetch_add(1, Ordering::SeqCst) + 1;
    in_flight.keep(Resource { device, number });
}

/// Polls once, as the release thread does.
fn poll(in_flight: &InFlight<Arc<Device>>) {
    if in_flight.queue.watched.load(Ordering::SeqCst) {
        // Cleared before the poll, because another thread may ask to watch again right after it.
        in_flight.queue.watched.store(false, Ordering::SeqCst);
        if in_flight.poll() || !in_flight.rest() {
            in_flight.queue.watched.store(true, Ordering::SeqCst);
        }
    }
}

/// Makes the device run everything that is enqueued now.
fn advance(device: &Device) {
    let enqueued = device.enqueued.load(Ordering::SeqCst);
    device.run.store(enqueued, Ordering::SeqCst);
}

#[test]
fn nothing_is_dropped_before_its_work_has_run_and_nothing_is_forgotten() {
    loom::model(|| {
        let in_flight = InFlight::new(Arc::<Device>::default());
        enqueue(&in_flight);
        let releasing = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || {
                poll(&in_flight);
                poll(&in_flight);
            })
        };
        let running = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || advance(in_flight.queue()))
        };
        enqueue(&in_flight);
        releasing.join().unwrap();
        running.join().unwrap();
        advance(in_flight.queue());
        poll(&in_flight);
        let state = in_flight.state.lock();
        assert!(state.open.is_empty() && state.closed.is_empty() && !state.watched);
    });
}

#[test]
fn a_thread_that_waits_and_the_release_thread_do_not_disturb_each_other() {
    loom::model(|| {
        let in_flight = InFlight::new(Arc::<Device>::default());
        enqueue(&in_flight);
        let releasing = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || poll(&in_flight))
        };
        let waiting = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || {
                let ((), released) = in_flight.wait(|| {
                    advance(in_flight.queue());
                    Waited::Over(())
                });
                drop(released);
            })
        };
        enqueue(&in_flight);
        releasing.join().unwrap();
        waiting.join().unwrap();
        advance(in_flight.queue());
        poll(&in_flight);
        let state = in_flight.state.lock();
        assert!(state.open.is_empty() && state.closed.is_empty());
    });
}

/// What several works use, the last of them number `used`.
struct Several {
    device: Arc<Device>,
    used: AtomicU64,
}

impl Drop for Several {
    fn drop(&mut self) {
        // Not loads: that whoever drops last comes after those who dropped before is known to
        // `Arc`, but not to the model.
        let latest = |number: &AtomicU64| number.fetch_add(0, Ordering::SeqCst);
        let (run, used) = (latest(&self.device.run), latest(&self.used));
        assert!(run >= used, "work {used} had not run when what it shares was dropped");
    }
}

#[test]
fn what_is_shared_and_used_again_after_a_wait_is_not_dropped_by_the_release_thread_meanwhile() {
    loom::model(|| {
        let in_flight = InFlight::new(Arc::<Device>::default());
        let device = in_flight.queue().clone();
        let shared = Arc::new(Several { device: Arc::clone(&device), used: AtomicU64::new(0) });
        let enqueue = || {
            let number = device.enqueued.fetch_add(1, Ordering::SeqCst) + 1;
            shared.used.store(number, Ordering::SeqCst);
            in_flight.keep_shared(&shared);
        };
        enqueue();
        let releasing = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || {
                poll(&in_flight);
                poll(&in_flight);
            })
        };
        let ((), released) = in_flight.wait(|| {
            advance(&device);
            Waited::Over(())
        });
        drop(released);
        enqueue();
        drop(shared);
        releasing.join().unwrap();
        advance(&device);
        poll(&in_flight);
        let state = in_flight.state.lock();
        assert!(state.open.is_empty() && state.closed.is_empty() && state.idle.is_empty());
    });
}

#[test]
fn what_is_in_the_open_batch_is_held_for_work_that_was_enqueued_before_the_batch_was_looked_at() {
    loom::model(|| {
        let in_flight = InFlight::new(Arc::<Device>::default());
        let device = in_flight.queue().clone();
        let shared = Arc::new(Several { device: Arc::clone(&device), used: AtomicU64::new(0) });
        let mut batch = None;
        let mut enqueue = || {
            let number = device.enqueued.fetch_add(1, Ordering::SeqCst) + 1;
            shared.used.store(number, Ordering::SeqCst);
            if !batch.is_some_and(|batch| in_flight.holds(batch)) {
                batch = Some(in_flight.keep_shared(&shared));
            }
        };
        enqueue();
        let releasing = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || {
                poll(&in_flight);
                advance(in_flight.queue());
                poll(&in_flight);
            })
        };
        enqueue();
        drop(shared);
        releasing.join().unwrap();
        advance(&device);
        poll(&in_flight);
        poll(&in_flight);
        let state = in_flight.state.lock();
        assert!(state.open.is_empty() && state.closed.is_empty() && state.idle.is_empty());
    });
}
