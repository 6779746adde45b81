//! Where a block is in its launch, how large it is, and what its threads do together.
//!
//! Either all threads of a block call a function that waits, or none does. This is checked when a
//! kernel is loaded.

use std::hash::{DefaultHasher, Hasher};

use crate::atomic::{AtomicNumber, SharedAtomics, SharedAtomicsTwin};
use crate::host;
use crate::ir::{Operand, Reached, Target, Ty};
use crate::record::arithmetic::{bit_or, eq, lt};
use crate::record::control::{if_begin, if_end, leave_unless, loop_begin, loop_end, loop_step};
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Twin, V, Var, assign, get, lit, var};
use crate::record::{cast, select};
use crate::shared::{Phase, PhaseTwin, Shared, SharedTwin, Synced, barrier_twin};
use crate::thread::{device_function, rank_twin, special, threads_twin};
use crate::warp::{Combine, Number, host_scan, index_twin, lane_twin, scan_twin, shuffled, warp_function};

device_function! {
    /// Returns the index of the block, along the first axis.
    pub fn x() -> u32 { host::position().block[0] } records special("%ctaid.x")
}
device_function! {
    /// Returns the index of the block, along the second axis.
    pub fn y() -> u32 { host::position().block[1] } records special("%ctaid.y")
}
device_function! {
    /// Returns the index of the block, along the third axis.
    pub fn z() -> u32 { host::position().block[2] } records special("%ctaid.z")
}
device_function! {
    /// Returns how many threads a block has, along the first axis.
    pub fn size_x() -> u32 { host::position().block_size[0] } records special("%ntid.x")
}
device_function! {
    /// Returns how many threads a block has, along the second axis.
    pub fn size_y() -> u32 { host::position().block_size[1] } records special("%ntid.y")
}
device_function! {
    /// Returns how many threads a block has, along the third axis.
    pub fn size_z() -> u32 { host::position().block_size[2] } records special("%ntid.z")
}
device_function! {
    /// Returns how many threads a block has.
    pub fn threads() -> usize { host::position().threads() } records threads_twin()
}

/// Returns new memory of the block: `N` elements, each with this value.
///
/// It is declared once: a call in a loop is refused when the kernel is loaded. At most 48 KiB of it
/// work on every device.
pub fn shared<T: KernelType + Send + Sync, const N: usize>(value: T) -> Shared<'static, T> {
    Shared::filled(N, value)
}

/// Returns new memory of the block: `N` elements, each of which the thread that owns it computes
/// from its index.
///
/// It is declared once: a call in a loop is refused when the kernel is loaded.
///
/// ```
/// use gridloom_kernel::{block, host};
///
/// host::run_blocks(1, 32, || {
///     let squares = block::sync(block::shared_from_fn::<u32, 64>(|i| (i * i) as u32));
///     assert_eq!(squares[63], 3969);
/// });
/// ```
pub fn shared_from_fn<T: KernelType + Send + Sync + Default, const N: usize>(
    value: impl Fn(usize) -> T,
) -> Shared<'static, T> {
    let mut all = Shared::filled(N, T::default());
    for (index, element) in all.each_mine() {
        *element = value(index);
    }
    all
}

/// Returns the memory of the block that the launch adds: as many elements as fit into its bytes,
/// each with this value.
///
/// A kernel has one such memory.
pub fn shared_dynamic<T: KernelType + Send + Sync>(value: T) -> Shared<'static, T> {
    Shared::filled(host::dynamic_bytes() / size_of::<T>().max(1), value)
}

/// Returns new memory of the block: `N` atomic numbers, each with this value. Waits for all threads
/// of the block.
pub fn shared_atomics<T: AtomicNumber + Send + Sync, const N: usize>(value: T) -> SharedAtomics<T> {
    SharedAtomics::filled(N, value)
}

/// Waits for all threads of the block, and turns memory of the block to its other phase: what was
/// written can be read, by all, and what was read can be written, each thread its own elements.
///
/// It takes [`Shared`], [`SharedView`](crate::SharedView), tuples of them, and `()`.
pub fn sync<P: Phase>(memory: P) -> P::Next {
    let own = hashed(&memory);
    let all = host::exchange_in_block("block::sync", own);
    assert!(
        all.iter().all(|&other| other == own),
        "the threads of a block call `block::sync` with different memory"
    );
    memory.next(Synced::new())
}

/// Returns a number that tells memory apart.
fn hashed<P: Phase>(memory: &P) -> u64 {
    let mut hasher = DefaultHasher::new();
    memory.identify(&mut hasher);
    hasher.finish()
}

macro_rules! twin_of {
    ($name:ident, $($twin:tt)*) => {
        #[allow(non_camel_case_types, reason = "it accompanies the function of that name")]
        #[doc(hidden)]
        pub struct $name {}

        impl $name {
            #[doc(hidden)]
            $($twin)*
        }
    };
}
twin_of!(
    shared,
    pub fn __twin<T: KernelType, const N: usize>(value: V<T>) -> SharedTwin<T> {
        SharedTwin::filled(N, value)
    }
);
twin_of!(
    shared_from_fn,
    pub fn __twin<T: KernelType, const N: usize>(value: impl Fn(V<usize>) -> V<T>) -> SharedTwin<T> {
        SharedTwin::from_fn(N, value)
    }
);
twin_of!(
    shared_dynamic,
    pub fn __twin<T: KernelType>(value: V<T>) -> SharedTwin<T> {
        SharedTwin::dynamic(value)
    }
);
twin_of!(
    shared_atomics,
    pub fn __twin<T: AtomicNumber, const N: usize>(value: V<T>) -> SharedAtomicsTwin<T> {
        SharedAtomicsTwin::filled(N, value)
    }
);
twin_of!(
    sync,
    pub fn __twin<P: PhaseTwin>(memory: P) -> P::Next {
        barrier_twin();
        memory.next()
    }
);

fn gathered<T: Number>(reason: &'static str, value: T) -> Vec<T> {
    host::exchange_in_block(reason, value.memory_bits()).into_iter().map(T::from_memory_bits).collect()
}

/// Computes a tree over the threads of the block: at each step a thread takes what the one so far
/// above it has, if there is one, and the distance is halved.
fn host_reduce<T: Number>(mut values: Vec<T>, combine: Combine) -> T {
    let count = values.len();
    let mut distance = count.next_power_of_two() / 2;
    while distance > 0 {
        for index in 0..distance.min(count - distance) {
            values[index] = combine.host(values[index], values[index + distance]);
        }
        distance /= 2;
    }
    values[0]
}

/// Scratch memory. In a loop, threads may still read what the pass before left in it.
fn scratch<T: Number>(count: usize) -> Slice<T> {
    let is_in_loop = with(|r| r.is_in_loop());
    let all = SharedTwin::<T>::unfilled(count).slice();
    if is_in_loop {
        barrier_twin();
    }
    all
}

/// Returns the most threads that a block of the kernel has.
fn most_threads() -> usize {
    with(|r| r.program.rules.block.map_or(1024, |block| block.iter().product::<u32>() as usize))
}

/// The same tree as on the host, in memory of the block. On a GPU the last steps are shuffles of
/// the first warp, which need no barriers. A CPU runs a block's threads in one thread of its own:
/// barriers cost it nothing, and steps in memory run fewer threads each.
fn reduce_twin<T: Number>(value: V<T>, combine: Combine, what: &'static str) -> V<T> {
    let all = scratch::<T>(most_threads());
    let rank: V<u32> = cast(rank_twin());
    let threads: V<u32> = cast(threads_twin());
    let ends_in_shuffles = with(|r| r.target()) == Target::Gpu;
    let at = |index: V<u32>| all.unchecked(cast(index));
    let own = at(rank);
    own.assign(value);
    barrier_twin();
    // Half the next power of two: the highest bit of the last rank.
    let last = bit_or(threads.wrapping_sub(lit(1)), lit(1), 0);
    let highest = lit::<u32>(31).wrapping_sub(last.leading_zeros());
    let distance: V<u32> = var(lit::<u32>(1).wrapping_shl(highest));
    let around = loop_begin();
    leave_unless(around, lt(lit(if ends_in_shuffles { 16u32 } else { 0 }), get(&distance)));
    let now = get(&distance);
    let takes = if_begin(lt(rank, now.min(threads.wrapping_sub(now))));
    own.assign(combine.twin(get(&own), get(&at(rank.wrapping_add(now)))));
    if_end(takes);
    barrier_twin();
    loop_step();
    assign(&distance, get(&distance).wrapping_shr(lit(1)));
    loop_end(around);
    if ends_in_shuffles {
        reduce_in_first_warp(own, rank, threads, combine, what);
        barrier_twin();
    }
    get(&all.in_phase(true).unchecked(lit(0)))
}

/// The last steps of the tree, in shuffles: the first thread writes the result to its place.
fn reduce_in_first_warp<T: Number>(
    own: V<T>,
    rank: V<u32>,
    threads: V<u32>,
    combine: Combine,
    what: &'static str,
) {
    let in_first_warp = if_begin(eq(index_twin(), lit(0)));
    let mut total = get(&own);
    for distance in [16u32, 8, 4, 2, 1] {
        let other = rank.wrapping_add(lit(distance));
        let above = with(|r| {
            r.reached_by(Reached::Warp, what);
            let total = total.operand(r);
            V::of(shuffled::<T>(r, "shfl.sync.down", total, Operand::Imm(Ty::U32, distance.into())))
        });
        total = select(lt(other, threads), combine.twin(total, above), total);
    }
    let is_first = if_begin(eq(rank, lit(0)));
    own.assign(total);
    if_end(is_first);
    if_end(in_first_warp);
}

warp_function! {
    /// Returns the sum over the threads of the block, to all of them. Integers wrap around;
    /// floating-point numbers are added in the order of a tree.
    pub fn sum<T>(value: T => V<T>) -> T => V<T> { host_reduce(gathered("block::sum", value), Combine::Add) }
    records reduce_twin(value, Combine::Add, "block::sum")
}
warp_function! {
    /// Returns the least value of the threads of the block, to all of them.
    pub fn min<T>(value: T => V<T>) -> T => V<T> { host_reduce(gathered("block::min", value), Combine::Min) }
    records reduce_twin(value, Combine::Min, "block::min")
}
warp_function! {
    /// Returns the greatest value of the threads of the block, to all of them.
    pub fn max<T>(value: T => V<T>) -> T => V<T> { host_reduce(gathered("block::max", value), Combine::Max) }
    records reduce_twin(value, Combine::Max, "block::max")
}
warp_function! {
    /// Returns the sum over the threads of the block up to this one, itself included.
    pub fn scan<T>(value: T => V<T>) -> T => V<T> {
        let all = gathered("block::scan", value);
        host_scan_of_block(&all)[host::position().rank()]
    } records scan_block_twin(value, "block::scan").0
}

fn host_scan_of_block<T: Number>(values: &[T]) -> Vec<T> {
    let warps: Vec<Vec<T>> = values.chunks(host::WARP).map(|warp| host_scan(warp.to_vec())).collect();
    let before = host_scan(warps.iter().map(|warp| warp[warp.len() - 1]).collect());
    let add = |(index, sums): (usize, Vec<T>)| match index {
        0 => sums,
        index => sums.into_iter().map(|sum| before[index - 1].host_add(sum)).collect(),
    };
    warps.into_iter().enumerate().flat_map(add).collect()
}

/// Returns the sum over the threads of the block up to this one, itself included, and the sum over
/// all of them.
pub fn scan_and_sum<T: Number>(value: T) -> (T, T) {
    let all = host_scan_of_block(&gathered("block::scan_and_sum", value));
    (all[host::position().rank()], all[all.len() - 1])
}
twin_of!(
    scan_and_sum,
    pub fn __twin<T: Number>(value: V<T>) -> (V<T>, V<T>) {
        scan_block_twin(value, "block::scan_and_sum")
    }
);

/// Returns the sums up to each thread, and the sum over all.
fn scan_block_twin<T: Number>(value: V<T>, what: &'static str) -> (V<T>, V<T>) {
    let of_warp = scan_twin(value, host::WARP as u32, what);
    let most_warps = most_threads().div_ceil(host::WARP);
    let all = scratch::<T>(most_warps);
    let (lane, warp) = (lane_twin(), index_twin());
    let last = crate::warp::size::__twin().wrapping_sub(lit(1));
    let is_last = if_begin(eq(lane, last));
    all.unchecked(cast(warp)).assign(of_warp);
    if_end(is_last);
    barrier_twin();
    let warps: V<u32> = cast(threads_twin().wrapping_add(lit(31)).wrapping_shr(lit(5)));
    let in_first_warp = if_begin(eq(warp, lit(0)));
    let exists = lt(lane, warps);
    let partial = all.unchecked(cast(select(exists, lane, lit(0)))).get();
    let sums = scan_twin(partial, most_warps as u32, what);
    let writes = if_begin(exists);
    all.unchecked(cast(lane)).assign(sums);
    if_end(writes);
    if_end(in_first_warp);
    barrier_twin();
    let is_later = lt(lit(0), warp);
    let index: V<usize> = cast(select(is_later, warp.wrapping_sub(lit(1)), lit(0)));
    let sums = all.in_phase(true);
    let before = sums.unchecked(index).get();
    let total = sums.unchecked(cast(warps.wrapping_sub(lit(1)))).get();
    (select(is_later, Combine::Add.twin(before, of_warp), of_warp), total)
}
