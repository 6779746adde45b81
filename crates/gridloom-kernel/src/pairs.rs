//! Shared memory of a block whose elements threads change in pairs.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::host;
use crate::ir::{Label, Operand, Stmt};
use crate::record::arithmetic::{bit_and, eq, lt, ne};
use crate::record::control::{if_begin, if_end, leave_unless, loop_begin, loop_end, loop_step};
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Twin, Typed, V, Var, assign, get, lit, var};
use crate::shared::{
    Cells, Phase, PhaseTwin, Shared, SharedTwin, SharedView, SharedViewTwin, Synced, barrier_twin, sealed,
};
use crate::thread::{rank_twin, threads_twin};

/// Memory of a block whose elements its threads change in pairs: sorting networks, butterflies of
/// Fourier transforms.
///
/// [`Shared::pairs`] makes it. [`block::sync`](crate::block::sync) makes it a
/// [`SharedView`](crate::SharedView), which all threads read.
///
/// ```
/// use gridloom_kernel::{block, host, thread};
///
/// // A bitonic sort of eight numbers by four threads.
/// host::run_blocks(1, 4, || {
///     let mut keys = block::shared_from_fn::<u32, 8>(|i| [5, 2, 8, 1, 9, 3, 7, 4][i]).pairs();
///     let mut k = 2;
///     while k <= 8 {
///         let mut j = k / 2;
///         while j > 0 {
///             keys.exchange(j, |i, a, b| if (a > b) == (i & k == 0) { (b, a) } else { (a, b) });
///             j /= 2;
///         }
///         k *= 2;
///     }
///     let keys = block::sync(keys);
///     assert_eq!(keys[thread::rank()], [1, 2, 3, 4][thread::rank()]);
/// });
/// ```
pub struct Pairs<'a, T> {
    memory: Cells<'a, T>,
}

impl<'a, T> Shared<'a, T> {
    /// Returns the memory to change in pairs.
    pub fn pairs(self) -> Pairs<'a, T> {
        Pairs { memory: self.into_cells() }
    }
}

/// Returns the lower index of a pair. Pairs are numbered by their lower index.
fn lower(pair: usize, distance: usize) -> Option<usize> {
    pair.checked_mul(2).map(|twice| twice - (pair & (distance - 1)))
}

impl<T: Copy> Pairs<'_, T> {
    /// Returns how many elements the memory has.
    #[allow(clippy::len_without_is_empty, reason = "as that of `Shared`")]
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Waits for all threads of the block, then replaces each pair of elements that are `distance`
    /// apart: `change` is given the lower index and both elements, and returns the new ones.
    ///
    /// Element *i* is in a pair with element *i* + `distance` where bit `distance` of *i* is zero
    /// and both exist. Each pair is changed by one thread.
    ///
    /// `distance` must be the same for all threads, which is checked when the kernel is loaded.
    ///
    /// # Panics
    /// When `distance` is no power of two.
    pub fn exchange(&mut self, distance: usize, mut change: impl FnMut(usize, T, T) -> (T, T)) {
        assert!(distance.is_power_of_two(), "the distance of a pair is a power of two");
        let mut hasher = DefaultHasher::new();
        self.memory.identify("pairs", &mut hasher);
        distance.hash(&mut hasher);
        let own = hasher.finish();
        let all = host::exchange_in_block("Pairs::exchange", own);
        assert!(
            all.iter().all(|&other| other == own),
            "the threads of a block call `Pairs::exchange` with different memory or distances"
        );
        let place = self.memory.place;
        let mut pair = place.rank();
        while let Some(low) = lower(pair, distance)
            && let Some(high) = low.checked_add(distance).filter(|&high| high < self.memory.len)
        {
            // SAFETY: both indices are in range. All threads have met, so none reads the memory or
            // owns elements of it in another way, and no two pairs have an element in common.
            let (a, b) = unsafe { (&mut *self.memory.start.add(low), &mut *self.memory.start.add(high)) };
            (*a, *b) = change(low, *a, *b);
            pair += place.threads();
        }
    }
}

impl<T> sealed::Phase for Pairs<'_, T> {}
impl<'a, T> Phase for Pairs<'a, T> {
    type Next = SharedView<'a, T>;

    fn identify(&self, to: &mut DefaultHasher) {
        self.memory.identify("pairs", to);
    }

    fn next(self, synced: Synced) -> SharedView<'a, T> {
        SharedView::of_cells(self.memory, synced)
    }
}

/// A [`Pairs`] while a kernel is recorded.
pub struct PairsTwin<T>(Slice<T>);

crate::shared::twins!(PairsTwin);

impl<T> Typed for Pairs<'_, T> {
    type Twin = PairsTwin<T>;
}

impl<T: KernelType> PhaseTwin for PairsTwin<T> {
    type Next = SharedViewTwin<T>;

    fn next(self) -> SharedViewTwin<T> {
        SharedTwin::of(self.0).next()
    }
}

impl<T: KernelType> SharedTwin<T> {
    /// Does what the method of [`Shared`] does.
    pub fn pairs(self) -> PairsTwin<T> {
        PairsTwin(self.slice())
    }
}

impl<T: KernelType> PairsTwin<T> {
    /// Does what the method of [`Pairs`] does.
    #[allow(clippy::len_without_is_empty, reason = "it stands for the method of that name")]
    pub fn len(self) -> V<usize> {
        self.0.len()
    }

    /// Does what the method of [`Pairs`] does.
    pub fn exchange(self, distance: V<usize>, change: impl Fn(V<usize>, V<T>, V<T>) -> (V<T>, V<T>)) {
        with(|r| {
            let value = distance.operand(r);
            let site = r.site("the distance of `exchange` must be the same for all threads of a block; compute it from constants, arguments and the place of the block");
            r.push(Stmt::SameForAll { value, is_in_block: true, site });
        });
        let below = distance.wrapping_sub(lit(1));
        let is_power = bit_and(eq(bit_and(distance, below, 0), lit(0)), ne(distance, lit(0)), 0);
        with(|r| {
            let is_power = is_power.operand(r);
            r.check(is_power, false, "the distance of a pair is a power of two");
        });
        barrier_twin();
        let (all, step) = (self.0, threads_twin());
        let body = |pair: V<usize>, high_exists: Option<Label>| {
            let low = pair.wrapping_add(pair).wrapping_sub(bit_and(pair, below, 0));
            let high = low.wrapping_add(distance);
            if let Some(around) = high_exists {
                leave_unless(around, lt(high, all.len()));
            }
            let (a, b) = (all.unchecked(low), all.unchecked(high));
            let (new_a, new_b) = change(low, a.get(), b.get());
            let (new_a, new_b) = (new_a.get(), new_b.get());
            a.assign(new_a);
            b.assign(new_b);
        };
        // How many pairs there are is known where their number does not depend on the distance.
        let len = all.len();
        let known = with(|r| match len.operand(r) {
            Operand::Imm(_, len) => Some(len),
            _ => None,
        });
        let pair = var(rank_twin());
        if let Some(len) = known.filter(|len| len.is_power_of_two() && *len >= 2) {
            let exists = if_begin(lt(distance, lit(len as usize)));
            let around = loop_begin();
            leave_unless(around, lt(get(&pair), lit(len as usize / 2)));
            body(get(&pair), None);
            loop_step();
            assign(&pair, get(&pair).wrapping_add(step));
            loop_end(around);
            if_end(exists);
        } else {
            let around = loop_begin();
            // Neither index of a pair below this wraps around: no memory of a block has more
            // elements.
            leave_unless(around, lt(get(&pair), all.len()));
            let is_near = lt(distance, all.len());
            leave_unless(around, is_near);
            body(get(&pair), Some(around));
            loop_step();
            assign(&pair, get(&pair).wrapping_add(step));
            loop_end(around);
        }
    }
}
