//! Memory that is divided among threads: each writes its own part.

use crate::host;
use crate::ir::{Space, Stmt};
use crate::own::{Own, OwnTwin};
use crate::record::Label;
use crate::record::arithmetic::{bit_and, bit_or, le, lt, not};
use crate::record::control::leave_unless;
use crate::record::iterate::Iterate;
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, Twin, Typed, V, assign, get, lit, var};
use crate::shared::{Shared, SharedTwin};
use crate::thread::{block_rank_twin, global};

/// A kernel parameter: memory in which each thread owns the elements at its own place, to read and
/// to write.
///
/// No two threads own the same element, so that writing to it is safe. What a thread owns follows
/// from its place in the launch alone, and it can be asked for once.
///
/// ```
/// use gridloom_kernel::{Out, host};
///
/// fn double(x: Out<f32>) {
///     if let Some((_, x)) = x.mine() {
///         *x *= 2.0;
///     }
/// }
///
/// let mut x = [1.0, 2.0, 3.0];
/// host::run(1, 4, || double(Out::new(&mut x)));
/// assert_eq!(x, [2.0, 4.0, 6.0]);
/// ```
pub struct Out<'a, T> {
    elements: *mut [T],
    /// How the memory is divided, where other threads have it at the same time, and the place of
    /// the thread that it was given to.
    division: Option<(&'a host::Division, host::ThreadPosition)>,
    lifetime: std::marker::PhantomData<&'a mut [T]>,
}

impl<'a, T> Out<'a, T> {
    /// Makes host memory what one thread of a launch is given.
    pub fn new(elements: &'a mut [T]) -> Self {
        Out { elements, division: None, lifetime: std::marker::PhantomData }
    }

    /// # Safety
    /// The elements live for `'a`. Nothing else accesses those that a thread at this place owns,
    /// once they are divided as `division` says.
    pub(crate) unsafe fn shared(
        elements: *mut [T],
        division: &'a host::Division,
        place: host::ThreadPosition,
    ) -> Self {
        Out { elements, division: Some((division, place)), lifetime: std::marker::PhantomData }
    }

    /// Returns the place whose elements these are. The caller may have taken another one since.
    fn place(&self) -> host::ThreadPosition {
        self.division.map_or_else(host::position, |(_, place)| place)
    }

    /// Notes how the memory is divided.
    fn claim(&self, way: &'static str, size: usize) {
        if let Some((division, _)) = self.division {
            division.claim(way, size);
        }
    }

    /// Returns the element at an index that this place owns.
    fn element(self, index: usize) -> Option<&'a mut T> {
        // SAFETY: the index is in range, and the element is this thread's alone, by the promise of
        // `shared` or because the borrow is exclusive.
        (index < self.elements.len()).then(|| unsafe { &mut *self.elements.cast::<T>().add(index) })
    }

    /// Returns how many elements the memory has, of all threads together.
    #[allow(clippy::len_without_is_empty, reason = "a thread asks for what it owns")]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns the element of this thread with its index, which is that of the thread along the
    /// first axis. Returns `None` if the memory has no such element.
    ///
    /// A kernel that asks for it can be launched in one dimension only.
    pub fn mine(self) -> Option<(usize, &'a mut T)> {
        let place = self.place();
        let index = place.global(0);
        if (1..3).any(|axis| place.global(axis) != 0) {
            return None;
        }
        self.claim("mine", 1);
        self.element(index).map(|element| (index, element))
    }

    /// Returns the element of this thread under its index: it is indexed as the memory is. Returns
    /// `None` if the memory has no such element.
    ///
    /// A kernel that asks for it can be launched in one dimension only.
    pub fn own(self) -> Option<Own<'a, T>> {
        let len = self.len();
        self.mine().map(|(index, element)| Own::new(index, len, element))
    }

    /// Returns the element of this thread in memory that is rows of `width` elements, with its
    /// column and row, which are the indices of the thread along the first and second axis. Returns
    /// `None` if the row or the memory ends before them.
    ///
    /// `width` must be the same for all threads, which is checked when the kernel is loaded. A
    /// kernel that asks for it can be launched in one or two dimensions.
    pub fn mine_2d(self, width: usize) -> Option<((usize, usize), &'a mut T)> {
        let place = self.place();
        let (x, y) = (place.global(0), place.global(1));
        self.claim("mine_2d", width);
        if x >= width || place.global(2) != 0 {
            return None;
        }
        let index = y.checked_mul(width)?.checked_add(x)?;
        self.element(index).map(|element| ((x, y), element))
    }

    /// Returns the `count` elements of this thread: from the index of the thread times `count` on.
    /// Returns `None` if the memory ends before the last of them.
    ///
    /// `count` must be the same for all threads, which is checked when the kernel is loaded. A
    /// kernel that asks for it can be launched in one dimension only.
    pub fn chunk(self, count: usize) -> Option<&'a mut [T]> {
        let place = self.place();
        if (1..3).any(|axis| place.global(axis) != 0) {
            return None;
        }
        self.claim("chunk", count);
        let start = place.global(0).checked_mul(count)?;
        let is_inside = start.checked_add(count).is_some_and(|end| end <= self.elements.len());
        // SAFETY: the elements are in range, and this thread's alone: as for `element`.
        is_inside
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.elements.cast::<T>().add(start), count) })
    }

    /// Returns the element of this thread in memory that is planes of `height` rows of `width`
    /// elements, with its column, row and plane, which are the indices of the thread along the
    /// three axes. Returns `None` if the row, the plane or the memory ends before them.
    ///
    /// `width` and `height` must be the same for all threads, which is checked when the kernel is
    /// loaded.
    pub fn mine_3d(self, width: usize, height: usize) -> Option<((usize, usize, usize), &'a mut T)> {
        let place = self.place();
        let (x, y, z) = (place.global(0), place.global(1), place.global(2));
        self.claim("mine_3d", width);
        self.claim_height(height);
        if x >= width || y >= height {
            return None;
        }
        let index = z.checked_mul(height)?.checked_add(y)?.checked_mul(width)?.checked_add(x)?;
        self.element(index).map(|element| ((x, y, z), element))
    }

    /// Returns the elements of this thread in memory that is rows of `width` elements: one below
    /// the other, in the column of the thread and in `rows` rows from `rows` times its index along
    /// the second axis on, each with its column and row.
    ///
    /// With several elements for each thread, a GPU has more loads in flight than with one.
    ///
    /// `width` and `rows` must be the same for all threads, which is checked when the kernel is
    /// loaded. A kernel that asks for it can be launched in one or two dimensions.
    ///
    /// ```
    /// use gridloom_kernel::{Out, host};
    ///
    /// fn number(width: usize, out: Out<usize>) {
    ///     for ((x, y), element) in out.each_mine_2d(width, 2) {
    ///         *element = 10 * y + x;
    ///     }
    /// }
    ///
    /// let mut out = [0; 9];
    /// host::run(1, (3, 2), || number(3, Out::new(&mut out)));
    /// assert_eq!(out, [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    /// ```
    pub fn each_mine_2d(
        self,
        width: usize,
        rows: usize,
    ) -> impl Iterator<Item = ((usize, usize), &'a mut T)> + use<'a, T> {
        let place = self.place();
        let (x, y) = (place.global(0), place.global(1));
        self.claim("each_mine_2d", width);
        self.claim_height(rows);
        let first = y.checked_mul(rows).filter(|_| x < width && place.global(2) == 0);
        let (elements, len) = (self.elements.cast::<T>(), self.elements.len());
        (0..rows).map_while(move |below| {
            let row = first?.checked_add(below)?;
            let index = row.checked_mul(width)?.checked_add(x).filter(|&index| index < len)?;
            // SAFETY: the index is in range, and comes once. The element is this thread's alone, by
            // the promise of `shared` or because the borrow is exclusive.
            Some(((x, row), unsafe { &mut *elements.add(index) }))
        })
    }

    fn claim_height(&self, height: usize) {
        if let Some((division, _)) = self.division {
            division.claim_height(height);
        }
    }

    /// Returns the `count` elements of the block: from the number of the block times `count` on.
    /// Its threads write and read them as they do [shared memory](crate::block::shared). Returns
    /// `None` if the memory ends before the last of them.
    ///
    /// `count` must be the same for all threads, which is checked when the kernel is loaded.
    pub fn tile(self, count: usize) -> Option<Shared<'a, T>> {
        self.claim("tile", count);
        let place = self.place();
        let start = place.block_rank().checked_mul(count)?;
        let is_inside = start.checked_add(count).is_some_and(|end| end <= self.elements.len());
        // SAFETY: the elements are in range. They are the block's alone, by the promise of
        // `shared`; without it the borrow is exclusive and the only thread of a block has them.
        is_inside.then(|| unsafe { Shared::of(self.elements.cast::<T>().add(start), count, place) })
    }
}

/// An [`Out`] while a kernel is recorded.
pub struct OutTwin<T> {
    all: Slice<T>,
    /// Which parameter of the kernel it is.
    param: u32,
}

impl<T> Clone for OutTwin<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for OutTwin<T> {}

impl<T> Twin for OutTwin<T> {
    fn get(&self) -> Self {
        *self
    }
}

impl<T> Typed for Out<'_, T> {
    type Twin = OutTwin<T>;
}

fn at_most_dimensions(dimensions: u32) {
    with(|r| {
        let rule = &mut r.program.rules.dimensions;
        *rule = Some(rule.map_or(dimensions, |before| before.min(dimensions)));
    });
}

impl<T: KernelType> OutTwin<T> {
    pub(crate) fn new(param: u32, base: V<u64>, len: V<usize>) -> Self {
        OutTwin { all: Slice::new(Space::Global, base, len), param }
    }

    /// Does what the method of [`Out`] does.
    #[allow(clippy::len_without_is_empty, reason = "it stands for the method of that name")]
    pub fn len(self) -> V<usize> {
        self.all.len()
    }

    /// Does what the method of [`Out`] does.
    pub fn mine(self) -> Opt<(V<usize>, R<V<T>>)> {
        at_most_dimensions(1);
        self.claim("mine", lit(1));
        let index = global("%ctaid.x", "%ntid.x", "%tid.x");
        let is_inside = lt(index, self.all.len());
        Opt { __some: is_inside, __value: (index, R { __place: self.all.unchecked(index) }) }
    }

    /// Does what the method of [`Out`] does.
    pub fn own(self) -> Opt<OwnTwin<T>> {
        let Opt { __some, __value: (index, element) } = self.mine();
        Opt { __some, __value: OwnTwin::new(index, self.all.len(), element.__place) }
    }

    /// Does what the method of [`Out`] does.
    pub fn mine_2d(self, width: V<usize>) -> Opt<((V<usize>, V<usize>), R<V<T>>)> {
        at_most_dimensions(2);
        self.claim("mine_2d", width);
        let (x, y) = (global("%ctaid.x", "%ntid.x", "%tid.x"), global("%ctaid.y", "%ntid.y", "%tid.y"));
        let (start, is_lost) = y.overflowing_mul(width);
        let (index, is_lost_too) = start.overflowing_add(x);
        let fits = not(bit_or(is_lost, is_lost_too, 0));
        let is_inside = bit_and(bit_and(lt(x, width), lt(index, self.all.len()), 0), fits, 0);
        Opt { __some: is_inside, __value: ((x, y), R { __place: self.all.unchecked(index) }) }
    }

    /// Does what the method of [`Out`] does.
    pub fn mine_3d(
        self,
        width: V<usize>,
        height: V<usize>,
    ) -> Opt<((V<usize>, V<usize>, V<usize>), R<V<T>>)> {
        self.claim("mine_3d", width);
        self.claim_second("mine_3d", height);
        let (x, y) = (global("%ctaid.x", "%ntid.x", "%tid.x"), global("%ctaid.y", "%ntid.y", "%tid.y"));
        let z = global("%ctaid.z", "%ntid.z", "%tid.z");
        let (planes, lost) = z.overflowing_mul(height);
        let (row, lost_too) = planes.overflowing_add(y);
        let (start, lost_again) = row.overflowing_mul(width);
        let (index, lost_at_last) = start.overflowing_add(x);
        let is_lost = bit_or(bit_or(lost, lost_too, 0), bit_or(lost_again, lost_at_last, 0), 0);
        let is_inside = bit_and(bit_and(lt(x, width), lt(y, height), 0), lt(index, self.all.len()), 0);
        let is_inside = bit_and(is_inside, not(is_lost), 0);
        Opt { __some: is_inside, __value: ((x, y, z), R { __place: self.all.unchecked(index) }) }
    }

    /// Does what the method of [`Out`] does.
    pub fn each_mine_2d(self, width: V<usize>, rows: V<usize>) -> EachMine2d<T> {
        at_most_dimensions(2);
        self.claim("each_mine_2d", width);
        self.claim_second("each_mine_2d", rows);
        let (x, y) = (global("%ctaid.x", "%ntid.x", "%tid.x"), global("%ctaid.y", "%ntid.y", "%tid.y"));
        let (first, is_lost) = y.overflowing_mul(rows);
        let (start, is_lost_too) = first.overflowing_mul(width);
        let (index, is_lost_at_last) = start.overflowing_add(x);
        let fits = not(bit_or(bit_or(is_lost, is_lost_too, 0), is_lost_at_last, 0));
        let exists = bit_and(lt(x, width), fits, 0);
        EachMine2d { all: self.all, x, first, index, width, rows, exists }
    }

    /// Does what the method of [`Out`] does.
    pub fn tile(self, count: V<usize>) -> Opt<SharedTwin<T>> {
        self.claim("tile", count);
        let (start, is_lost) = block_rank_twin().overflowing_mul(count);
        let (end, is_lost_too) = start.overflowing_add(count);
        let fits = not(bit_or(is_lost, is_lost_too, 0));
        let is_inside = bit_and(le(end, self.all.len()), fits, 0);
        Opt { __some: is_inside, __value: SharedTwin::of(self.all.part_of(start, count)) }
    }

    /// Does what the method of [`Out`] does.
    pub fn chunk(self, count: V<usize>) -> Opt<Slice<T>> {
        at_most_dimensions(1);
        self.claim("chunk", count);
        let index = global("%ctaid.x", "%ntid.x", "%tid.x");
        let (start, is_lost) = index.overflowing_mul(count);
        let (end, is_lost_too) = start.overflowing_add(count);
        let fits = not(bit_or(is_lost, is_lost_too, 0));
        let is_inside = bit_and(le(end, self.all.len()), fits, 0);
        Opt { __some: is_inside, __value: self.all.part_of(start, count) }
    }
}

impl<T> OutTwin<T> {
    /// Notes how the memory is shared out. Threads own different elements only where all of them
    /// share it out alike, wherever in the kernel they ask.
    fn claim(&self, way: &'static str, size: V<usize>) {
        with(|r| {
            let size = size.operand(r);
            if !r.claim(self.param, way, size) {
                r.refuse(TWO_WAYS);
            }
        });
        self.same_for_all(way, size);
    }

    /// Notes the second number by which the memory is shared out.
    fn claim_second(&self, way: &'static str, size: V<usize>) {
        with(|r| {
            let size = size.operand(r);
            if !r.claim_height(self.param, size) {
                r.refuse(TWO_WAYS);
            }
        });
        self.same_for_all(way, size);
    }

    fn same_for_all(&self, way: &'static str, size: V<usize>) {
        with(|r| {
            let size = size.operand(r);
            let site = r.site(&format!(
                "the size that `{way}` is given must be the same for all threads; compute it from constants, arguments and the shape of the launch"
            ));
            r.push(Stmt::SameForAll { value: size, is_in_block: false, site });
        });
    }
}

const TWO_WAYS: &str = "an `Out` is divided in two ways: threads would own each other's elements; ask for its parts in one place";

/// The elements of a thread in a column.
#[derive(Clone, Copy)]
pub struct EachMine2d<T> {
    all: Slice<T>,
    x: V<usize>,
    first: V<usize>,
    index: V<usize>,
    width: V<usize>,
    rows: V<usize>,
    /// Whether the thread has a first element, if the memory is large enough.
    exists: V<bool>,
}

impl<T: KernelType> Iterate for EachMine2d<T> {
    /// The elements, how many were given out, and the index of the next.
    type State = (EachMine2d<T>, V<usize>, V<usize>);
    type Item = ((V<usize>, V<usize>), R<V<T>>);

    fn start(self) -> Self::State {
        (self, var(lit(0)), var(self.index))
    }

    fn next((each, given, index): &Self::State, around: Label) -> Self::Item {
        leave_unless(around, lt(get(given), each.rows));
        leave_unless(around, each.exists);
        leave_unless(around, lt(get(index), each.all.len()));
        let row = each.first.wrapping_add(get(given));
        ((each.x, row), R { __place: each.all.unchecked(get(index)) })
    }

    fn step((each, given, index): &Self::State) {
        assign(given, get(given).wrapping_add(lit(1)));
        // Past the largest index, the memory ends as well.
        assign(index, get(index).saturating_add(each.width));
    }
}
