//! Cancelling: a flag that launches carry and that a cancel sets.
//!
//! All launches of a source share one flag until somebody cancels them. The source then creates
//! another flag for later launches. Nothing has to be listed or counted, and a cancel never affects
//! work that is enqueued after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The source of flags for launches: a stream or an executable. A lock of its owner protects it.
#[derive(Default)]
pub(crate) struct CancelSource(CancelToken);

/// The flag of a launch.
#[derive(Clone, Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

impl CancelSource {
    /// Returns the flag for a launch that is enqueued now.
    pub(crate) fn token(&self) -> CancelToken {
        self.0.clone()
    }

    /// Cancels everything that has a flag from this source.
    pub(crate) fn cancel(&mut self) {
        std::mem::take(&mut self.0).0.store(true, Ordering::Relaxed);
    }
}

impl CancelToken {
    /// Returns the flag, which is checked between items of work.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_reaches_what_came_before_it_and_nothing_after() {
        let mut source = CancelSource::default();
        let before = [source.token(), source.token()];
        let is_cancelled = |token: &CancelToken| token.flag().load(Ordering::Relaxed);
        assert!(!is_cancelled(&before[0]));
        source.cancel();
        let after = source.token();
        assert_eq!([&before[0], &before[1], &after].map(is_cancelled), [true, true, false]);
    }
}
