//! Values that the first successful caller makes.

use parking_lot::Mutex;
use std::sync::OnceLock;

/// A value that the first successful caller makes while others wait. Unlike with a `OnceLock`, a
/// caller that fails leaves it to the next one, who may find memory or a driver.
#[derive(Debug)]
pub(crate) struct RetryOnce<T> {
    value: OnceLock<T>,
    trying: Mutex<()>,
}

impl<T> RetryOnce<T> {
    pub(crate) const fn new() -> Self {
        Self { value: OnceLock::new(), trying: Mutex::new(()) }
    }

    /// Returns the value. `make` creates it if there is none yet.
    pub(crate) fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _one_at_a_time = self.trying.lock();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.value.get_or_init(|| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_that_ask_at_once_make_one_value() {
        let (once, made) = (RetryOnce::new(), AtomicUsize::new(0));
        let make = || -> Result<usize, ()> {
            std::thread::yield_now();
            Ok(made.fetch_add(1, Ordering::SeqCst))
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(once.get(make), Ok(&0)));
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_could_not_be_made_is_tried_again() {
        let once = RetryOnce::new();
        assert_eq!(once.get(|| Err::<u32, _>("not there yet")), Err("not there yet"));
        assert_eq!(once.get(|| Ok::<_, &str>(7)), Ok(&7));
        assert_eq!(once.get(|| Err("asked again")), Ok(&7));
    }
}
