//! Synchronization types: the ordinary ones or, under `--cfg loom`, those of the model checker.
//!
//! The model checker runs the `models` beside each protocol through every order of the steps of its
//! threads.

#[cfg(not(loom))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use {
    crossbeam_deque::{Steal, Stealer, Worker},
    std::sync::atomic,
    std::thread,
};

#[cfg(loom)]
pub(crate) use model::{Condvar, Mutex, MutexGuard, Steal, Stealer, Worker};
#[cfg(loom)]
pub(crate) use {loom::sync::atomic, loom::thread};

/// The model checker's types with the signatures of the ordinary ones.
#[cfg(loom)]
mod model {
    use std::ops::{Deref, DerefMut};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard { mutex: self, guard: Some(self.0.lock().expect("no model panics under a lock")) }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|guard| MutexGuard { mutex: self, guard: Some(guard) })
        }
    }

    /// A guard. It is empty only while the lock is temporarily released.
    pub(crate) struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        guard: Option<loom::sync::MutexGuard<'a, T>>,
    }

    impl<'a, T> MutexGuard<'a, T> {
        pub(crate) fn unlocked<R>(guard: &mut MutexGuard<'a, T>, work: impl FnOnce() -> R) -> R {
            guard.guard = None;
            let outcome = work();
            *guard = guard.mutex.lock();
            outcome
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.guard.as_ref().expect("held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.guard.as_mut().expect("held")
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Condvar(loom::sync::Condvar::new())
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.guard.take().expect("held");
            guard.guard = Some(self.0.wait(held).expect("no model panics under a lock"));
        }

        /// Waits without a timeout, because time does not pass in a model.
        pub(crate) fn wait_until<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _: std::time::Instant,
        ) -> NoTimeout {
            self.wait(guard);
            NoTimeout
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    pub(crate) struct NoTimeout;

    impl NoTimeout {
        pub(crate) fn timed_out(&self) -> bool {
            false
        }
    }

    /// A deque protected by the model checker's lock.
    #[derive(Debug)]
    pub(crate) struct Worker<T>(Stealer<T>);

    #[derive(Debug)]
    pub(crate) struct Stealer<T>(std::sync::Arc<Mutex<std::collections::VecDeque<T>>>);

    #[expect(dead_code, reason = "a lock has nothing to retry, but the ordinary deque does")]
    pub(crate) enum Steal<T> {
        Success(T),
        Retry,
        Empty,
    }

    impl<T> Worker<T> {
        pub(crate) fn new_lifo() -> Self {
            Worker(Stealer(std::sync::Arc::new(Mutex::new(std::collections::VecDeque::new()))))
        }

        pub(crate) fn stealer(&self) -> Stealer<T> {
            Stealer(self.0.0.clone())
        }

        pub(crate) fn push(&self, task: T) {
            self.0.0.lock().push_back(task);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.0.lock().pop_back()
        }
    }

    impl<T> Stealer<T> {
        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn steal(&self) -> Steal<T> {
            self.0.lock().pop_front().map_or(Steal::Empty, Steal::Success)
        }
    }
}
