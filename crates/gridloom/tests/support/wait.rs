//! Waiting for an event that happens soon, and holding work back until a test releases it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Waits until `condition` holds. Only a condition that never comes true takes long.
#[track_caller]
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited in vain until {what}");
}

/// A gate that callbacks wait at, so that a test knows that work behind it has not run yet. It
/// opens when it is dropped: a test that fails leaves no stream waiting, which would hold up the
/// other tests, and the end of the process.
#[derive(Clone, Default)]
pub struct Gate(Arc<State>);

#[derive(Default)]
struct State {
    open: Mutex<bool>,
    changed: Condvar,
}

impl State {
    fn wait(&self) {
        let guard = self.open.lock().expect("no holder panics");
        drop(self.changed.wait_while(guard, |open| !*open).expect("no holder panics"));
    }
}

impl Gate {
    pub fn closed() -> Self {
        Gate::default()
    }

    /// A closure that waits until the gate is open.
    pub fn waiter(&self) -> impl FnMut() + Send + 'static {
        let state = self.0.clone();
        move || state.wait()
    }

    pub fn wait(&self) {
        self.0.wait();
    }

    pub fn open(&self) {
        *self.0.open.lock().expect("no holder panics") = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// A test that fails must not leave a stream waiting for ever.
pub struct OpenOnDrop<'a>(pub &'a Gate);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}
