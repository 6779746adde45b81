//! Memory that a thread keeps at hand.
//!
//! Small graphs are built and dropped again and again, also where that is what one waits for. Their nodes and launches take pieces of memory that are too large for what
//! allocators keep at hand themselves (1 KiB with glibc). Whoever asks for such a piece first sorts all that was freed since, and a driver that lets go of a compiled graph frees
//! a lot: beside a GPU that was a third of the time for defining ten kernels. So a thread keeps a few of these pieces for its next graph.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Pieces of memory that a thread has at hand, at most `MOST`.
pub(crate) struct Spares<M, const MOST: usize> {
    pieces: RefCell<Vec<M>>,
}

impl<M, const MOST: usize> Spares<M, MOST> {
    pub(crate) const fn new() -> Self {
        Spares { pieces: RefCell::new(Vec::new()) }
    }

    /// One that this thread has, if any.
    pub(crate) fn take(spares: &'static LocalKey<Self>) -> Option<M> {
        // A thread that ends has none.
        spares.try_with(|spares| spares.pieces.borrow_mut().pop()).ok().flatten()
    }

    /// Keeps one, or lets go of it where there are enough. It must hold nothing whose drop might call for a piece.
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
