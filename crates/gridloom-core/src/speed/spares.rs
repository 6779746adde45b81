//! Blocks of memory that a thread keeps for reuse.
//!
//! Nodes and launches of a graph live in blocks larger than the small sizes that glibc caches per
//! thread (1 KiB). Allocating a block of this size makes glibc sort the chunks that were freed
//! since, and a driver that drops a compiled graph frees many. Each thread therefore keeps a few
//! blocks for its next graph.

use std::cell::RefCell;
use std::thread::LocalKey;

/// At most `MOST` spare blocks of a thread.
pub(crate) struct Spares<M, const MOST: usize> {
    pieces: RefCell<Vec<M>>,
}

impl<M, const MOST: usize> Spares<M, MOST> {
    pub(crate) const fn new() -> Self {
        Spares { pieces: RefCell::new(Vec::new()) }
    }

    /// Takes a spare block of this thread, if there is one.
    pub(crate) fn take(spares: &'static LocalKey<Self>) -> Option<M> {
        // A thread that is ending has none.
        spares.try_with(|spares| spares.pieces.borrow_mut().pop()).ok().flatten()
    }

    /// Keeps a block, or frees it if there are enough. The block must hold nothing whose drop might
    /// take a spare.
    pub(crate) fn keep(spares: &'static LocalKey<Self>, piece: M) {
        let _ = spares.try_with(|spares| {
            let mut pieces = spares.pieces.borrow_mut();
            if pieces.len() < MOST {
                pieces.push(piece);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local!(static SPARE: Spares<Box<u32>, 2> = const { Spares::new() });

    #[test]
    fn a_piece_that_was_kept_is_taken_once() {
        assert_eq!(Spares::take(&SPARE), None);
        let piece = Box::new(7);
        let at = std::ptr::from_ref(&*piece);
        Spares::keep(&SPARE, piece);
        assert_eq!(Spares::take(&SPARE).map(|piece| std::ptr::from_ref(&*piece)), Some(at));
        assert_eq!(Spares::take(&SPARE), None);
    }

    #[test]
    fn no_more_are_kept_than_there_may_be() {
        (0..5).for_each(|number| Spares::keep(&SPARE, Box::new(number)));
        let kept: Vec<_> = std::iter::from_fn(|| Spares::take(&SPARE)).map(|piece| *piece).collect();
        assert_eq!(kept, [1, 0]);
    }

    #[test]
    fn each_thread_has_its_own() {
        Spares::keep(&SPARE, Box::new(1));
        let elsewhere = std::thread::spawn(|| Spares::take(&SPARE)).join().expect("no panic");
        assert_eq!((elsewhere, Spares::take(&SPARE)), (None, Some(Box::new(1))));
    }
}
