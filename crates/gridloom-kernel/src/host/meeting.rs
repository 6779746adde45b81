//! Barriers and exchanges between the threads of a block on the host.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// A barrier that fails instead of waiting for ever when threads call it in different functions of
/// the block, or have ended.
pub(crate) struct Meeting {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// The value that each thread gives to an exchange.
    slots: Box<[AtomicU64]>,
}

#[derive(Default)]
struct State {
    arrived: usize,
    generation: u64,
    /// The function that the threads called that have arrived.
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

    /// Waits until all threads have called this with the same reason, which names the function of
    /// the block that they called.
    ///
    /// # Panics
    /// Panics if a thread has ended or called it with another reason. On a device, such a launch
    /// would not end.
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

    /// Records that a thread ends. Threads that wait for it fail.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended += 1;
        if state.arrived > 0 {
            state.failed = true;
            self.changed.notify_all();
        }
    }

    /// Returns the bits that each thread gives, in the order of the threads.
    pub(crate) fn exchange(&self, reason: &'static str, own: usize, bits: u64) -> Vec<u64> {
        self.slots[own].store(bits, Ordering::Relaxed);
        self.wait(reason);
        let all = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).collect();
        self.wait(reason);
        all
    }
}
