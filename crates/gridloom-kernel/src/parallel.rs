//! The ranges of parallel loops, on the host.

use std::ops::Range;

/// What [`par`] takes: a range, or a tuple of two or three.
#[diagnostic::on_unimplemented(
    message = "a parallel loop cannot go over `{Self}`",
    note = "it goes over indices: `par(0..n)` with a `usize`, or `par((0..width, 0..height))`"
)]
pub trait ParallelRange {
    /// The indices.
    type Indices: Iterator;
    #[doc(hidden)]
    fn indices(self) -> Self::Indices;
}

impl ParallelRange for Range<usize> {
    type Indices = Range<usize>;

    fn indices(self) -> Range<usize> {
        self
    }
}

impl ParallelRange for (Range<usize>, Range<usize>) {
    type Indices = std::vec::IntoIter<(usize, usize)>;

    fn indices(self) -> Self::Indices {
        let (x, y) = self;
        let all: Vec<_> = y.flat_map(|y| x.clone().map(move |x| (x, y))).collect();
        all.into_iter()
    }
}

impl ParallelRange for (Range<usize>, Range<usize>, Range<usize>) {
    type Indices = std::vec::IntoIter<(usize, usize, usize)>;

    fn indices(self) -> Self::Indices {
        let (x, y, z) = self;
        let plane = |z| {
            y.clone().flat_map({
                let x = x.clone();
                move |y| x.clone().map(move |x| (x, y, z))
            })
        };
        let all: Vec<_> = z.flat_map(plane).collect();
        all.into_iter()
    }
}

/// Returns the range of a parallel loop: `for i in par(0..n)`,
/// `for (x, y) in par((0..width, 0..height))`.
///
/// In a program each pass is a thread of a kernel. On the host the passes come one after the other,
/// the first index fastest.
///
/// ```
/// use gridloom_kernel::par;
///
/// assert_eq!(par((0..2, 0..2)).collect::<Vec<_>>(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
/// ```
pub fn par<R: ParallelRange>(range: R) -> R::Indices {
    range.indices()
}
