//! Meeting points of the threads of a block on the host.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// A barrier that fails instead of waiting for ever: when threads come for different reasons, or
/// have ended.
pub(crate) struct Meeting {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// What each thread brings to an exchange.
    slots: Box<[AtomicU64]>,
}

#[derive(Default)]
struct State {
    arrived: usize,
    generation: u64,
    /// Why the threads meet that have arrived.
    reason: &'static str,
    ended: usize,
    failed: bool,
}

impl Meeting {
    pub(crate) fn new(size: usize) -> Self {
        Meeting {
            size,
            state: Mutex::default(),
            changed: Condvar::new(),
            slots: (0..size).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Waits until all threads have come, for the same reason.
    ///
    /// # Panics
    /// When a thread has ended or came for another reason: on a device, that launch would not end.
    pub(crate) fn wait(&self, reason: &'static str) {
        let mut state = self.state.lock();
        if state.arrived > 0 && state.reason != reason {
            state.failed = true;
            self.changed.notify_all();
        }
        if state.ended > 0 {
            state.failed = true;
            self.changed.notify_all();
        }
        state.reason = reason;
        state.arrived += 1;
        if state.arrived == self.size && !state.failed {
            state.arrived = 0;
            state.generation += 1;
            self.changed.notify_all();
            return;
        }
        let generation = state.generation;
        while state.generation == generation && !state.failed {
            self.changed.wait(&mut state);
        }
        if state.generation == generation {
            drop(state);
            panic!("not all threads of the block come to `{reason}`");
        }
    }

    /// A thread ends. Threads that wait for it fail.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended += 1;
        if state.arrived > 0 {
            state.failed = true;
            self.changed.notify_all();
        }
    }

    /// Gives what every thread brings, in the order of the threads.
    pub(crate) fn exchange(&self, reason: &'static str, own: usize, bits: u64) -> Vec<u64> {
        self.slots[own].store(bits, Ordering::Relaxed);
        self.wait(reason);
        let all = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).collect();
        self.wait(reason);
        all
    }
}
