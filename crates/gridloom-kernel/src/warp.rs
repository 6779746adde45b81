//! What the 32 threads of a warp do together. Either all threads of a warp call a function, or none
//! does. This is checked when a kernel is loaded.
//!
//! The last warp of a block has fewer threads if their number is not a multiple of 32.

use crate::host;
use crate::ir::{Operand, Reached, Ty};
use crate::record::arithmetic::{Op, OpAdd, le, lt, wrapping};
use crate::record::number::Bounded;
use crate::record::recorder::{Recorder, with};
use crate::record::select;
use crate::record::value::{Scalar, V, lit};
use crate::thread::{device_function, rank_twin, threads_twin};

mod sealed {
    pub trait Number {}
}

/// A number that threads exchange, add and compare.
pub trait Number: Scalar + Bounded + OpAdd + sealed::Number {
    #[doc(hidden)]
    fn host_add(self, other: Self) -> Self;
    #[doc(hidden)]
    fn host_min(self, other: Self) -> Self;
    #[doc(hidden)]
    fn host_max(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty: $add:expr;)*) => {$(
        impl sealed::Number for $t {}
        impl Number for $t {
            fn host_add(self, other: Self) -> Self {
                $add(self, other)
            }
            fn host_min(self, other: Self) -> Self {
                self.min(other)
            }
            fn host_max(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}
numbers! {
    u8: u8::wrapping_add; i8: i8::wrapping_add; u16: u16::wrapping_add; i16: i16::wrapping_add;
    u32: u32::wrapping_add; i32: i32::wrapping_add; u64: u64::wrapping_add; i64: i64::wrapping_add;
    usize: usize::wrapping_add; isize: isize::wrapping_add; f32: |a, b| a + b; f64: |a, b| a + b;
}

/// How two numbers become one.
#[derive(Clone, Copy)]
pub(crate) enum Combine {
    Add,
    Min,
    Max,
}

impl Combine {
    pub(crate) fn host<T: Number>(self, a: T, b: T) -> T {
        match self {
            Combine::Add => a.host_add(b),
            Combine::Min => a.host_min(b),
            Combine::Max => a.host_max(b),
        }
    }

    /// Integers wrap around, whether the program checks for overflow or not.
    pub(crate) fn twin<T: Number>(self, a: V<T>, b: V<T>) -> V<T> {
        match self {
            Combine::Add if T::TY.is_integer() => with(|r| {
                let (a, b) = (a.operand(r), b.operand(r));
                V::of(wrapping(r, Op::Add, T::TY, a, b))
            }),
            Combine::Add => T::add(a, b),
            Combine::Min => T::min(a, b),
            Combine::Max => T::max(a, b),
        }
    }
}

/// Returns the result of a tree over the threads of a warp: at each step a thread takes what the
/// one so far above it has, if there is one.
pub(crate) fn host_tree<T: Number>(mut values: Vec<T>, combine: Combine) -> T {
    let count = values.len();
    for distance in [16, 8, 4, 2, 1] {
        for index in 0..count.saturating_sub(distance) {
            values[index] = combine.host(values[index], values[index + distance]);
        }
    }
    values[0]
}

fn gathered<T: Number>(reason: &'static str, value: T) -> (Vec<T>, usize) {
    let (all, own) = host::exchange_in_warp(reason, value.memory_bits());
    (all.into_iter().map(T::from_memory_bits).collect(), own)
}

device_function! {
    /// Returns the number of the thread in its warp.
    pub fn lane() -> u32 { (host::position().rank() % host::WARP) as u32 } records lane_twin()
}
device_function! {
    /// Returns the number of the warp in its block.
    pub fn index() -> u32 { (host::position().rank() / host::WARP) as u32 } records index_twin()
}
device_function! {
    /// Returns how many threads the warp has: 32, or fewer in the last warp of a block.
    pub fn size() -> u32 {
        let place = host::position();
        (place.threads() - place.rank() / host::WARP * host::WARP).min(host::WARP) as u32
    } records size_twin()
}

pub(crate) fn lane_twin() -> V<u32> {
    let rank = rank_twin();
    with(|r| {
        let rank = rank.operand(r);
        let low = r.compute("cvt", "u32.u64", Ty::U32, &[rank]);
        V::of(r.compute("and", "b32", Ty::U32, &[low, Operand::Imm(Ty::U32, 31)]))
    })
}

pub(crate) fn index_twin() -> V<u32> {
    let rank = rank_twin();
    with(|r| {
        let rank = rank.operand(r);
        let low = r.compute("cvt", "u32.u64", Ty::U32, &[rank]);
        let warp = r.compute("shr", "u32", Ty::U32, &[low, Operand::Imm(Ty::U32, 5)]);
        r.same_in_warp(warp);
        V::of(warp)
    })
}

fn size_twin() -> V<u32> {
    let (warp, threads) = (index_twin(), threads_twin());
    with(|r| {
        let (warp, threads) = (warp.operand(r), threads.operand(r));
        let threads = r.compute("cvt", "u32.u64", Ty::U32, &[threads]);
        let first = r.compute("shl", "b32", Ty::U32, &[warp, Operand::Imm(Ty::U32, 5)]);
        let left = r.compute("sub", "u32", Ty::U32, &[threads, first]);
        V::of(r.compute("min", "u32", Ty::U32, &[left, Operand::Imm(Ty::U32, 32)]))
    })
}

const ALL: Operand = Operand::Imm(Ty::U32, 0xffff_ffff);

/// Records a shuffle of 32 bits.
fn shuffle_word(r: &mut Recorder, mode: &'static str, word: Operand, by: Operand) -> Operand {
    // Upwards, the lowest lane is the bound; else the highest.
    let clamp = Operand::Imm(Ty::U32, if mode == "shfl.sync.up" { 0 } else { 31 });
    r.compute(mode, "b32", Ty::U32, &[word, by, clamp, ALL])
}

pub(crate) fn shuffled<T: Scalar>(
    r: &mut Recorder,
    mode: &'static str,
    value: Operand,
    by: Operand,
) -> Operand {
    let ty = T::TY;
    match ty {
        Ty::F32 => {
            let bits = r.compute("mov", "b32", Ty::U32, &[value]);
            let moved = shuffle_word(r, mode, bits, by);
            r.compute("mov", "b32", ty, &[moved])
        }
        _ if ty.bits() == 64 => {
            let bits = if ty == Ty::F64 { r.compute("mov", "b64", Ty::U64, &[value]) } else { value };
            let thirty_two = Operand::Imm(Ty::U32, 32);
            let low = r.compute("cvt", "u32.u64", Ty::U32, &[bits]);
            let high = r.compute("shr", "u64", Ty::U64, &[bits, thirty_two]);
            let high = r.compute("cvt", "u32.u64", Ty::U32, &[high]);
            let (low, high) = (shuffle_word(r, mode, low, by), shuffle_word(r, mode, high, by));
            let (low, high) =
                (r.compute("cvt", "u64.u32", Ty::U64, &[low]), r.compute("cvt", "u64.u32", Ty::U64, &[high]));
            let high = r.compute("shl", "b64", Ty::U64, &[high, thirty_two]);
            let both = r.compute("or", "b64", if ty == Ty::F64 { Ty::U64 } else { ty }, &[high, low]);
            if ty == Ty::F64 { r.compute("mov", "b64", ty, &[both]) } else { both }
        }
        // Narrower integers are in registers of 32 bits.
        _ => {
            let moved = shuffle_word(r, mode, value, by);
            r.compute("mov", "b32", ty, &[moved])
        }
    }
}

/// Records a shuffle that gives each thread its own value where there is no other.
fn shuffle_or_own<T: Number>(
    mode: &'static str,
    value: V<T>,
    by: V<u32>,
    exists: V<bool>,
    what: &'static str,
) -> V<T> {
    select(exists, shuffle_any(mode, value, by, what), value)
}

/// Records a shuffle whose result is used only where the other thread exists.
fn shuffle_any<T: Number>(mode: &'static str, value: V<T>, by: V<u32>, what: &'static str) -> V<T> {
    with(|r| {
        r.reached_by(Reached::Warp, what);
        let (value, by) = (value.operand(r), by.operand(r));
        let value = r.in_register(T::TY, value);
        V::of(shuffled::<T>(r, mode, value, by))
    })
}

/// Defines a function of two halves: for the host, and for the recorder.
macro_rules! warp_function {
    ($(#[$meta:meta])* pub fn $name:ident<T>($($arg:ident: $ty:ty => $twin:ty),*) -> $result:ty => $recorded:ty { $($host:tt)* } records $record:expr) => {
        $(#[$meta])*
        pub fn $name<T: Number>($($arg: $ty),*) -> $result {
            $($host)*
        }

        #[allow(non_camel_case_types, reason = "it accompanies the function of that name")]
        #[doc(hidden)]
        pub struct $name {}

        impl $name {
            #[doc(hidden)]
            pub fn __twin<T: Number>($($arg: $twin),*) -> $recorded {
                $record
            }
        }
    };
}
pub(crate) use warp_function;

warp_function! {
    /// Returns the value of another thread of the warp, or the thread's own where there is none.
    pub fn shuffle<T>(value: T => V<T>, lane: u32 => V<u32>) -> T => V<T> {
        gathered("warp::shuffle", value).0.get(lane as usize).copied().unwrap_or(value)
    } records shuffle_or_own("shfl.sync.idx", value, lane, lt(lane, size_twin()), "warp::shuffle")
}
warp_function! {
    /// Returns the value of the thread so many below in the warp, or the thread's own where there
    /// is none.
    pub fn shuffle_up<T>(value: T => V<T>, by: u32 => V<u32>) -> T => V<T> {
        let (all, own) = gathered("warp::shuffle_up", value);
        own.checked_sub(by as usize).map_or(value, |index| all[index])
    } records shuffle_or_own("shfl.sync.up", value, by, le(by, lane_twin()), "warp::shuffle_up")
}
warp_function! {
    /// Returns the value of the thread so many above in the warp, or the thread's own where there
    /// is none.
    pub fn shuffle_down<T>(value: T => V<T>, by: u32 => V<u32>) -> T => V<T> {
        let (all, own) = gathered("warp::shuffle_down", value);
        all.get(own.saturating_add(by as usize)).copied().unwrap_or(value)
    } records shuffle_or_own("shfl.sync.down", value, by, exists_above(by), "warp::shuffle_down")
}
warp_function! {
    /// Returns the value of the thread whose number in the warp differs in these bits, or the
    /// thread's own where there is none.
    pub fn shuffle_xor<T>(value: T => V<T>, bits: u32 => V<u32>) -> T => V<T> {
        let (all, own) = gathered("warp::shuffle_xor", value);
        all.get(own ^ bits as usize).copied().unwrap_or(value)
    } records {
        let other = with(|r| r.line_now());
        let other = crate::record::bit_xor(lane_twin(), bits, other);
        shuffle_or_own("shfl.sync.idx", value, other, lt(other, size_twin()), "warp::shuffle_xor")
    }
}

/// Returns whether there is a thread so many above in the warp.
fn exists_above(by: V<u32>) -> V<bool> {
    let left = size_twin().wrapping_sub(lane_twin());
    lt(by, left)
}

/// Records the same tree as on the host. Returns its result for all threads of the warp.
pub(crate) fn tree_twin<T: Number>(value: V<T>, combine: Combine, what: &'static str) -> V<T> {
    let mut value = value;
    for distance in [16u32, 8, 4, 2, 1] {
        let exists = exists_above(lit(distance));
        let above = shuffle_any("shfl.sync.down", value, lit(distance), what);
        value = select(exists, combine.twin(value, above), value);
    }
    let first = shuffle_any("shfl.sync.idx", value, lit(0), what);
    with(|r| {
        let first = first.operand(r);
        r.same_in_warp(first);
        V::of(first)
    })
}

warp_function! {
    /// Returns the sum over the threads of the warp, to all of them. Integers wrap around;
    /// floating-point numbers are added in the order of a tree.
    pub fn sum<T>(value: T => V<T>) -> T => V<T> { host_tree(gathered("warp::sum", value).0, Combine::Add) }
    records tree_twin(value, Combine::Add, "warp::sum")
}
warp_function! {
    /// Returns the least value of the threads of the warp, to all of them.
    pub fn min<T>(value: T => V<T>) -> T => V<T> { host_tree(gathered("warp::min", value).0, Combine::Min) }
    records tree_twin(value, Combine::Min, "warp::min")
}
warp_function! {
    /// Returns the greatest value of the threads of the warp, to all of them.
    pub fn max<T>(value: T => V<T>) -> T => V<T> { host_tree(gathered("warp::max", value).0, Combine::Max) }
    records tree_twin(value, Combine::Max, "warp::max")
}
warp_function! {
    /// Returns the sum over the threads of the warp up to this one, itself included.
    pub fn scan<T>(value: T => V<T>) -> T => V<T> {
        let (values, own) = gathered("warp::scan", value);
        host_scan(values)[own]
    } records scan_twin(value, host::WARP as u32, "warp::scan")
}

/// Returns the sums up to each number: at each step a thread takes what the one so far below it
/// has.
pub(crate) fn host_scan<T: Number>(mut values: Vec<T>) -> Vec<T> {
    for distance in [1, 2, 4, 8, 16] {
        for index in (distance..values.len()).rev() {
            values[index] = values[index - distance].host_add(values[index]);
        }
    }
    values
}

/// Returns the sums over the first `count` threads of a warp.
pub(crate) fn scan_twin<T: Number>(value: V<T>, count: u32, what: &'static str) -> V<T> {
    let mut value = value;
    for distance in [1u32, 2, 4, 8, 16].into_iter().take_while(|&distance| distance < count) {
        let exists = le(lit(distance), lane_twin());
        let below = shuffle_any("shfl.sync.up", value, lit(distance), what);
        value = select(exists, Combine::Add.twin(below, value), value);
    }
    value
}

/// Defines a vote.
macro_rules! vote {
    ($(#[$meta:meta])* $name:ident -> $result:ty, $ty:ident, $op:literal, $suffix:literal, $host:expr) => {
        $(#[$meta])*
        pub fn $name(condition: bool) -> $result {
            let (all, _) = host::exchange_in_warp(concat!("warp::", stringify!($name)), condition.into());
            let result: fn(&[u64]) -> $result = $host;
            result(&all)
        }

        #[allow(non_camel_case_types, reason = "it accompanies the function of that name")]
        #[doc(hidden)]
        pub struct $name {}

        impl $name {
            #[doc(hidden)]
            pub fn __twin(condition: V<bool>) -> V<$result> {
                with(|r| {
                    r.reached_by(Reached::Warp, concat!("warp::", stringify!($name)));
                    let condition = condition.operand(r);
                    let condition = r.in_register(Ty::Bool, condition);
                    let result = r.compute($op, $suffix, Ty::$ty, &[condition, ALL]);
                    r.same_in_warp(result);
                    V::of(result)
                })
            }
        }
    };
}
vote! {
    /// Returns whether the condition holds in all threads of the warp.
    all -> bool, Bool, "vote.sync.all", "pred", |all| all.iter().all(|&holds| holds != 0)
}
vote! {
    /// Returns whether the condition holds in a thread of the warp.
    any -> bool, Bool, "vote.sync.any", "pred", |all| all.iter().any(|&holds| holds != 0)
}
vote! {
    /// Returns in which threads of the warp the condition holds, one bit for each.
    ballot -> u32, U32, "vote.sync.ballot", "b32", |all| all.iter().rev().fold(0, |bits, &holds| bits << 1 | holds as u32)
}
