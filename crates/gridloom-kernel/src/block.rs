//! Where a block is in its launch, how large it is, and what its threads do together.
//!
//! All threads of a block come to each function that waits, or none: that is checked when a kernel
//! is loaded.

use std::hash::{DefaultHasher, Hasher};

use crate::atomic::{AtomicNumber, SharedAtomics, SharedAtomicsTwin};
use crate::host;
use crate::record::arithmetic::{eq, lt};
use crate::record::control::{if_begin, if_end};
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Twin, V, Var, get, lit};
use crate::record::{cast, select};
use crate::shared::{Phase, PhaseTwin, Shared, SharedTwin, Synced, barrier_twin};
use crate::thread::{device_function, special, threads_twin};
use crate::warp::{
    Combine, Number, host_scan, host_tree, index_twin, lane_twin, scan_twin, tree_twin, warp_function,
};

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

/// A number that tells memory apart.
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

/// A tree over the threads of each warp, and one over the warps.
fn host_reduce<T: Number>(values: &[T], combine: Combine) -> T {
    host_tree(values.chunks(host::WARP).map(|warp| host_tree(warp.to_vec(), combine)).collect(), combine)
}

/// Scratch memory for one number of each warp, and one more. In a loop, threads may still read what
/// the pass before left in it.
fn scratch<T: Number>() -> Slice<T> {
    let is_in_loop = with(|r| r.is_in_loop());
    let all = SharedTwin::<T>::unfilled(host::WARP + 1).slice();
    if is_in_loop {
        barrier_twin();
    }
    all
}

fn reduce_twin<T: Number>(value: V<T>, combine: Combine, what: &'static str) -> V<T> {
    let of_warp = tree_twin(value, combine, what);
    let all = scratch::<T>();
    let (lane, warp) = (lane_twin(), index_twin());
    let is_first = if_begin(eq(lane, lit(0)));
    all.unchecked(cast(warp)).assign(of_warp);
    if_end(is_first);
    barrier_twin();
    // The first warp has a thread for each warp.
    let in_first_warp = if_begin(eq(warp, lit(0)));
    let warps = threads_twin().wrapping_add(lit(31)).wrapping_shr(lit(5));
    let lane_index: V<usize> = cast(lane);
    let exists = lt(lane_index, warps);
    let partial = all.unchecked(select(exists, lane_index, lit(0))).get();
    let mut total = partial;
    for distance in [16u32, 8, 4, 2, 1] {
        let other: V<usize> = cast(lane.wrapping_add(lit(distance)));
        let above = crate::warp::shuffle_down::__twin(total, lit(distance));
        total = select(lt(other, warps), combine.twin(total, above), total);
    }
    let is_first = if_begin(eq(lane, lit(0)));
    all.unchecked(lit(host::WARP)).assign(total);
    if_end(is_first);
    if_end(in_first_warp);
    barrier_twin();
    get(&all.in_phase(true).unchecked(lit(host::WARP)))
}

warp_function! {
    /// Returns the sum over the threads of the block, to all of them. Integers wrap around;
    /// floating-point numbers are added in the order of a tree.
    pub fn sum<T>(value: T => V<T>) -> T => V<T> { host_reduce(&gathered("block::sum", value), Combine::Add) }
    records reduce_twin(value, Combine::Add, "block::sum")
}
warp_function! {
    /// Returns the least value of the threads of the block, to all of them.
    pub fn min<T>(value: T => V<T>) -> T => V<T> { host_reduce(&gathered("block::min", value), Combine::Min) }
    records reduce_twin(value, Combine::Min, "block::min")
}
warp_function! {
    /// Returns the greatest value of the threads of the block, to all of them.
    pub fn max<T>(value: T => V<T>) -> T => V<T> { host_reduce(&gathered("block::max", value), Combine::Max) }
    records reduce_twin(value, Combine::Max, "block::max")
}
warp_function! {
    /// Returns the sum over the threads of the block up to this one, itself included.
    pub fn scan<T>(value: T => V<T>) -> T => V<T> {
        let all = gathered("block::scan", value);
        host_scan_of_block(&all)[host::position().rank()]
    } records scan_block_twin(value)
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

fn scan_block_twin<T: Number>(value: V<T>) -> V<T> {
    const WHAT: &str = "block::scan";
    let of_warp = scan_twin(value, WHAT);
    let all = scratch::<T>();
    let (lane, warp) = (lane_twin(), index_twin());
    let last = crate::warp::size::__twin().wrapping_sub(lit(1));
    let is_last = if_begin(eq(lane, last));
    all.unchecked(cast(warp)).assign(of_warp);
    if_end(is_last);
    barrier_twin();
    let in_first_warp = if_begin(eq(warp, lit(0)));
    let warps = threads_twin().wrapping_add(lit(31)).wrapping_shr(lit(5));
    let lane_index: V<usize> = cast(lane);
    let exists = lt(lane_index, warps);
    let partial = all.unchecked(select(exists, lane_index, lit(0))).get();
    let sums = scan_twin(partial, WHAT);
    let writes = if_begin(exists);
    all.unchecked(lane_index).assign(sums);
    if_end(writes);
    if_end(in_first_warp);
    barrier_twin();
    let is_later = lt(lit(0), warp);
    let index: V<usize> = cast(select(is_later, warp.wrapping_sub(lit(1)), lit(0)));
    let before = all.unchecked(index).get();
    select(is_later, Combine::Add.twin(before, of_warp), of_warp)
}
