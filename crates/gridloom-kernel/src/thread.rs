//! Where a thread is in its launch. The functions work in device code, and on the host in whichever
//! thread of a launch is being [run](crate::host).

use crate::host;
use crate::ir::{Operand, Ty};
use crate::record::recorder::with;
use crate::record::value::V;

/// Defines a function of device code: for the host, and for the recorder.
macro_rules! device_function {
    ($(#[$meta:meta])* pub fn $name:ident() -> $result:ty { $($host:tt)* } records $recorded:expr) => {
        $(#[$meta])*
        pub fn $name() -> $result {
            $($host)*
        }

        #[allow(non_camel_case_types, reason = "it accompanies the function of that name")]
        #[doc(hidden)]
        pub struct $name {}

        impl $name {
            #[doc(hidden)]
            pub fn __twin() -> V<$result> {
                $recorded
            }
        }
    };
}
pub(crate) use device_function;

pub(crate) fn special(name: &'static str) -> V<u32> {
    with(|r| {
        r.program.uses_axes |= !name.ends_with(".x");
        V::of(r.compute("mov", "u32", Ty::U32, &[Operand::Special(name)]))
    })
}

/// Returns a special register of which the numbers of threads and blocks are computed, whatever
/// their shape.
fn special_of_rank(name: &'static str) -> V<u32> {
    with(|r| {
        r.program.uses_rank = true;
        V::of(r.compute("mov", "u32", Ty::U32, &[Operand::Special(name)]))
    })
}

/// Returns the index over all blocks, along one axis, in 64 bits.
pub(crate) fn global(block: &'static str, size: &'static str, thread: &'static str) -> V<usize> {
    let (block, size, thread) = (special(block), special(size), special(thread));
    with(|r| {
        let (block, size, thread) = (block.operand(r), size.operand(r), thread.operand(r));
        let thread = r.compute("cvt", "u64.u32", Ty::U64, &[thread]);
        V::of(r.compute("mad.wide", "u32", Ty::U64, &[block, size, thread]))
    })
}

/// Returns the number of the thread in its block.
pub(crate) fn rank_twin() -> V<usize> {
    let at = [special_of_rank("%tid.x"), special_of_rank("%tid.y"), special_of_rank("%tid.z")];
    let (width, height) = (special_of_rank("%ntid.x"), special_of_rank("%ntid.y"));
    with(|r| {
        let [x, y, z] = at.map(|index| index.operand(r));
        let (width, height) = (width.operand(r), height.operand(r));
        let row = r.compute("mad.lo", "u32", Ty::U32, &[z, height, y]);
        let rank = r.compute("mad.lo", "u32", Ty::U32, &[row, width, x]);
        V::of(r.compute("cvt", "u64.u32", Ty::U64, &[rank]))
    })
}

/// Returns how many threads the block has.
pub(crate) fn threads_twin() -> V<usize> {
    let sizes = [special_of_rank("%ntid.x"), special_of_rank("%ntid.y"), special_of_rank("%ntid.z")];
    with(|r| {
        let [x, y, z] = sizes.map(|size| size.operand(r));
        let plane = r.compute("mul.lo", "u32", Ty::U32, &[x, y]);
        let all = r.compute("mul.lo", "u32", Ty::U32, &[plane, z]);
        V::of(r.compute("cvt", "u64.u32", Ty::U64, &[all]))
    })
}

/// Returns the number of the block in its launch.
pub(crate) fn block_rank_twin() -> V<usize> {
    let at = [special_of_rank("%ctaid.x"), special_of_rank("%ctaid.y"), special_of_rank("%ctaid.z")];
    let (width, height) = (special_of_rank("%nctaid.x"), special_of_rank("%nctaid.y"));
    with(|r| {
        let [x, y, z] = at.map(|index| index.operand(r));
        let [x, y, z] = [x, y, z].map(|index| r.compute("cvt", "u64.u32", Ty::U64, &[index]));
        let [width, height] = [width, height]
            .map(|size| size.operand(r))
            .map(|size| r.compute("cvt", "u64.u32", Ty::U64, &[size]));
        let row = r.compute("mad.lo", "u64", Ty::U64, &[z, height, y]);
        V::of(r.compute("mad.lo", "u64", Ty::U64, &[row, width, x]))
    })
}

device_function! {
    /// Returns the number of the thread in its block, counted along the first axis, then the
    /// second, then the third.
    pub fn rank() -> usize { host::position().rank() } records rank_twin()
}
device_function! {
    /// Returns the index of the thread among all threads of the launch, along the first axis.
    pub fn index() -> usize { host::position().global(0) } records global("%ctaid.x", "%ntid.x", "%tid.x")
}
device_function! {
    /// Returns the index of the thread among all threads of the launch, along the second axis.
    pub fn index_y() -> usize { host::position().global(1) } records global("%ctaid.y", "%ntid.y", "%tid.y")
}
device_function! {
    /// Returns the index of the thread among all threads of the launch, along the third axis.
    pub fn index_z() -> usize { host::position().global(2) } records global("%ctaid.z", "%ntid.z", "%tid.z")
}
device_function! {
    /// Returns the index of the thread in its block, along the first axis.
    pub fn x() -> u32 { host::position().thread[0] } records special("%tid.x")
}
device_function! {
    /// Returns the index of the thread in its block, along the second axis.
    pub fn y() -> u32 { host::position().thread[1] } records special("%tid.y")
}
device_function! {
    /// Returns the index of the thread in its block, along the third axis.
    pub fn z() -> u32 { host::position().thread[2] } records special("%tid.z")
}
