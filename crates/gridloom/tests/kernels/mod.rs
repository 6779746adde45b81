//! Kernels compiled from CUDA C++, against host references. Each module tests the `.cu` of its
//! name; `README.md` lists what they compute.

mod atomics;
mod barriers;
mod bfloat;
mod compare;
mod convert;
mod dispatch;
mod divergence;
mod dynamic_shared;
mod elementary;
mod finance;
mod functions;
mod globals;
mod gradient;
mod half;
mod heap;
mod histogram;
mod integers;
mod local_arrays;
mod matmul;
mod nbody;
mod pipeline;
mod printing;
mod recursion;
mod reduce;
mod saxpy;
mod scan;
mod sort;
mod sparse;
mod special;
mod stencil;
mod structs;
mod vectors;
mod warp;

/// A launch of at least `n` threads in blocks of 128.
fn threads(n: usize) -> gridloom::LaunchConfig {
    gridloom::LaunchConfig::new(n.div_ceil(128) as u32, 128)
}
