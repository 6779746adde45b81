//! How large a launch is.

use crate::host;
use crate::ir::Ty;
use crate::record::recorder::with;
use crate::record::value::V;
use crate::thread::{device_function, special, threads_twin};

device_function! {
    /// Returns how many blocks the launch has, along the first axis.
    pub fn size_x() -> u32 { host::position().grid_size[0] } records special("%nctaid.x")
}
device_function! {
    /// Returns how many blocks the launch has, along the second axis.
    pub fn size_y() -> u32 { host::position().grid_size[1] } records special("%nctaid.y")
}
device_function! {
    /// Returns how many blocks the launch has, along the third axis.
    pub fn size_z() -> u32 { host::position().grid_size[2] } records special("%nctaid.z")
}
device_function! {
    /// Returns how many blocks the launch has.
    pub fn blocks() -> usize { host::position().blocks() } records blocks_twin()
}
device_function! {
    /// Returns how many threads the launch has, in all its blocks. Threads that share any number of
    /// elements step by it:
    /// `for i in (thread::index()..data.len()).step_by(grid::threads())`.
    pub fn threads() -> usize { host::position().blocks() * host::position().threads() } records {
        let (blocks, threads) = (blocks_twin(), threads_twin());
        with(|r| {
            let (blocks, threads) = (blocks.operand(r), threads.operand(r));
            V::of(r.compute("mul.lo", "u64", Ty::U64, &[blocks, threads]))
        })
    }
}

fn blocks_twin() -> V<usize> {
    let sizes = [special("%nctaid.x"), special("%nctaid.y"), special("%nctaid.z")];
    with(|r| {
        let [x, y, z] =
            sizes.map(|size| size.operand(r)).map(|size| r.compute("cvt", "u64.u32", Ty::U64, &[size]));
        let plane = r.compute("mul.lo", "u64", Ty::U64, &[x, y]);
        V::of(r.compute("mul.lo", "u64", Ty::U64, &[plane, z]))
    })
}
