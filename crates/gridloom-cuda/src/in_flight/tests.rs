//! What is kept, and until when, on a queue whose progress the test decides.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A queue whose progress the test decides.
#[derive(Default)]
struct Manual {
    enqueued: AtomicU64,
    run: AtomicU64,
    dead: AtomicBool,
    /// No mark can be made.
    unmarkable: AtomicBool,
    marks: AtomicU64,
}

impl Queue for Arc<Manual> {
    type Mark = u64;

    fn mark(&self) -> Marked<u64> {
        if self.dead.load(Ordering::SeqCst) {
            Marked::Dead
        } else if self.unmarkable.load(Ordering::SeqCst) {
            Marked::NotNow
        } else if self.run.load(Ordering::SeqCst) >= self.enqueued.load(Ordering::SeqCst) {
            Marked::Idle
        } else {
            self.marks.fetch_add(1, Ordering::SeqCst);
            Marked::At(self.enqueued.load(Ordering::SeqCst))
        }
    }

    fn passed(&self, mark: &u64) -> bool {
        self.run.load(Ordering::SeqCst) >= *mark
    }

    fn recycle(&self, _: u64) {}
}

struct Fixture {
    queue: Arc<Manual>,
    in_flight: Arc<InFlight<Arc<Manual>>>,
}

impl Fixture {
    fn new() -> Self {
        let queue = Arc::<Manual>::default();
        let in_flight = InFlight::new(Arc::clone(&queue));
        // Only the test polls.
        in_flight.state.lock().watched = true;
        Self { queue, in_flight }
    }

    /// Enqueues work that uses something, and returns a way to see whether that is still alive.
    fn enqueue(&self) -> std::sync::Weak<()> {
        let resource = Arc::new(());
        let alive = Arc::downgrade(&resource);
        self.queue.enqueued.fetch_add(1, Ordering::SeqCst);
        self.in_flight.keep(resource);
        alive
    }

    fn run_to(&self, position: u64) {
        self.queue.run.store(position, Ordering::SeqCst);
    }
}

fn alive(weak: &std::sync::Weak<()>) -> bool {
    weak.strong_count() > 0
}

#[test]
fn a_payload_lives_until_its_work_has_run() {
    let fixture = Fixture::new();
    let resource = fixture.enqueue();
    assert!(fixture.in_flight.poll());
    assert!(alive(&resource));
    fixture.run_to(1);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&resource));
}

#[test]
fn work_enqueued_after_a_mark_is_not_released_with_it() {
    let fixture = Fixture::new();
    let first = fixture.enqueue();
    assert!(fixture.in_flight.poll());
    let second = fixture.enqueue();
    fixture.run_to(1);
    assert!(fixture.in_flight.poll());
    assert!(!alive(&first));
    assert!(alive(&second));
}

#[test]
fn waiting_releases_everything_enqueued_before_but_only_after_the_wait() {
    let fixture = Fixture::new();
    let first = fixture.enqueue();
    fixture.in_flight.poll();
    let second = fixture.enqueue();
    let ((), released) = fixture.in_flight.wait(|| {
        assert!(alive(&first));
        assert!(alive(&second));
        Waited::Over(())
    });
    drop(released);
    assert!(!alive(&first));
    assert!(!alive(&second));
}

#[test]
fn what_is_enqueued_while_another_thread_waits_is_kept() {
    let fixture = Fixture::new();
    let (late, released) = fixture.in_flight.wait(|| Waited::Over(fixture.enqueue()));
    drop(released);
    assert!(alive(&late));
}

#[test]
fn what_is_shared_lives_until_the_last_work_that_uses_it_has_run() {
    let fixture = Fixture::new();
    let resource = Arc::new(());
    let watch = Arc::downgrade(&resource);
    for _ in 0..2 {
        fixture.queue.enqueued.fetch_add(1, Ordering::SeqCst);
        fixture.in_flight.keep_shared(&resource);
    }
    assert_eq!(watch.strong_count(), 2, "kept once for both");
    assert!(fixture.in_flight.poll());
    fixture.queue.enqueued.fetch_add(1, Ordering::SeqCst);
    fixture.in_flight.keep_shared(&resource);
    drop(resource);
    fixture.run_to(2);
    assert!(fixture.in_flight.poll());
    assert!(alive(&watch), "the third is still to run");
    fixture.run_to(3);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&watch));
}

#[test]
fn what_is_shared_by_turns_is_kept_once_in_a_batch() {
    let fixture = Fixture::new();
    let (one, other) = (Arc::new(1), Arc::new(2));
    for _ in 0..3 {
        fixture.queue.enqueued.fetch_add(1, Ordering::SeqCst);
        fixture.in_flight.keep_shared(&one);
        fixture.in_flight.keep_shared(&other);
    }
    assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (2, 2));
    fixture.run_to(2);
    assert!(fixture.in_flight.poll());
    assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (2, 2), "the third is still to run");
    fixture.run_to(3);
    assert!(!fixture.in_flight.poll());
    assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (1, 1));
}

#[test]
fn what_others_share_stays_after_a_wait_until_the_next_poll() {
    let fixture = Fixture::new();
    let (shared, alone) = (Arc::new(1), fixture.enqueue());
    fixture.in_flight.keep_shared(&shared);
    let ((), released) = fixture.in_flight.wait(|| Waited::Over(()));
    assert!(!released.is_empty() && alive(&alone));
    drop(released);
    assert!(!alive(&alone));
    assert_eq!(Arc::strong_count(&shared), 2);
    fixture.in_flight.keep_shared(&shared);
    assert_eq!(Arc::strong_count(&shared), 2, "used again");
    fixture.run_to(1);
    fixture.in_flight.wait(|| Waited::Over(()));
    assert!(!fixture.in_flight.poll());
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn what_is_used_again_after_a_wait_lives_until_that_work_has_run() {
    let fixture = Fixture::new();
    let shared = Arc::new(1);
    let watch = Arc::downgrade(&shared);
    fixture.in_flight.keep_shared(&shared);
    drop(fixture.in_flight.wait(|| Waited::Over(())));
    fixture.queue.enqueued.fetch_add(1, Ordering::SeqCst);
    fixture.in_flight.keep_shared(&shared);
    drop(shared);
    assert!(fixture.in_flight.poll());
    assert!(watch.strong_count() > 0);
    fixture.run_to(1);
    assert!(!fixture.in_flight.poll());
    assert_eq!(watch.strong_count(), 0);
}

#[test]
fn a_wait_that_fails_releases_nothing_until_the_work_has_run() {
    let fixture = Fixture::new();
    let marked = fixture.enqueue();
    fixture.in_flight.poll();
    let unmarked = fixture.enqueue();
    drop(fixture.in_flight.wait(|| Waited::Unknown(())));
    assert!(alive(&marked) && alive(&unmarked));
    fixture.run_to(1);
    assert!(fixture.in_flight.poll());
    assert!(!alive(&marked) && alive(&unmarked));
    fixture.run_to(2);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&unmarked));
}

#[test]
fn a_queue_that_cannot_be_marked_now_keeps_everything_and_is_looked_at_again() {
    let fixture = Fixture::new();
    let resource = fixture.enqueue();
    fixture.queue.unmarkable.store(true, Ordering::SeqCst);
    fixture.run_to(1);
    for _ in 0..3 {
        assert!(fixture.in_flight.poll());
        assert!(alive(&resource));
    }
    fixture.queue.unmarkable.store(false, Ordering::SeqCst);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&resource));
}

#[test]
fn a_queue_that_has_run_everything_is_not_marked() {
    let fixture = Fixture::new();
    let resource = fixture.enqueue();
    fixture.run_to(1);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&resource));
    assert_eq!(fixture.queue.marks.load(Ordering::SeqCst), 0);
}

#[test]
fn a_dead_queue_releases_at_once() {
    let fixture = Fixture::new();
    let resource = fixture.enqueue();
    fixture.queue.dead.store(true, Ordering::SeqCst);
    assert!(!fixture.in_flight.poll());
    assert!(!alive(&resource));
}

#[test]
fn the_release_thread_finishes_the_work_without_further_calls() {
    let queue = Arc::<Manual>::default();
    let in_flight = InFlight::new(Arc::clone(&queue));
    let (dropped, hear) = std::sync::mpsc::channel::<()>();
    queue.enqueued.fetch_add(1, Ordering::SeqCst);
    in_flight.keep(dropped);
    queue.run.store(1, Ordering::SeqCst);
    // The sender is the payload; the channel closes when it is dropped.
    assert!(hear.recv().is_err());
}

#[test]
fn a_queue_is_watched_again_after_it_was_idle() {
    let fixture = Fixture::new();
    fixture.enqueue();
    fixture.run_to(1);
    assert!(!fixture.in_flight.poll());
    assert!(fixture.in_flight.state.lock().watched, "who enqueues more soon need not wake the thread");
    assert!(fixture.in_flight.rest());
    assert!(!fixture.in_flight.state.lock().watched);
}

#[test]
fn a_queue_that_got_work_after_the_last_look_does_not_rest() {
    let fixture = Fixture::new();
    fixture.enqueue();
    fixture.run_to(1);
    assert!(!fixture.in_flight.poll());
    fixture.enqueue();
    assert!(!fixture.in_flight.rest());
    assert!(fixture.in_flight.state.lock().watched);
}

#[test]
fn a_queue_where_a_wait_left_something_after_the_last_poll_does_not_rest() {
    let fixture = Fixture::new();
    let shared = Arc::new(1);
    let watch = Arc::downgrade(&shared);
    assert!(!fixture.in_flight.poll());
    fixture.in_flight.keep_shared(&shared);
    drop(fixture.in_flight.wait(|| Waited::Over(())));
    drop(shared);
    assert!(!fixture.in_flight.rest(), "nobody else would let go of it");
    assert!(!fixture.in_flight.poll());
    assert_eq!(watch.strong_count(), 0);
    assert!(fixture.in_flight.rest());
}

#[test]
fn a_queue_that_is_waited_for_stays_watched_until_the_wait_is_over() {
    let fixture = Fixture::new();
    fixture.enqueue();
    drop(fixture.in_flight.wait(|| {
        assert!(fixture.in_flight.poll());
        Waited::Over(())
    }));
    assert!(!fixture.in_flight.poll());
}
