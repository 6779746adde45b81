//! Cancelling: a flag that launches take along, and that whoever cancels them sets.
//!
//! All launches of a source share one flag until somebody cancels them; then the source gets another flag for those to come. So
//! nothing has to be listed or counted, and what is enqueued after a cancel is never hit by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where launches get their flags from: a stream, or an executable. It lies under a lock of its owner.
#[derive(Default)]
pub(crate) struct CancelSource(CancelToken);

/// The flag of a launch.
#[derive(Clone, Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

impl CancelSource {
    /// The flag for a launch that is enqueued now.
    pub(crate) fn token(&self) -> CancelToken {
        self.0.clone()
    }

    /// Cancels everything that has a flag from here.
    pub(crate) fn cancel(&mut self) {
        std::mem::take(&mut self.0).0.store(true, Ordering::Relaxed);
    }
}

impl CancelToken {
    /// The flag, which is looked at between pieces of work.
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
