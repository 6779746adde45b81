//! Waiting for what happens soon, and holding work back until a test lets it go.

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

/// A gate that callbacks wait at, so that a test knows that work behind it has not run yet.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn closed() -> Self {
        Gate::default()
    }

    /// A closure that waits until the gate is open.
    pub fn waiter(&self) -> impl FnMut() + Send + 'static {
        let gate = self.clone();
        move || gate.wait()
    }

    pub fn wait(&self) {
        let (open, changed) = &*self.0;
        let guard = open.lock().expect("no holder panics");
        drop(changed.wait_while(guard, |open| !*open).expect("no holder panics"));
    }

    pub fn open(&self) {
        let (open, changed) = &*self.0;
        *open.lock().expect("no holder panics") = true;
        changed.notify_all();
    }
}

/// A test that fails must not leave a stream waiting for ever.
pub struct OpenOnDrop<'a>(pub &'a Gate);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}
