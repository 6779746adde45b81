//! Elementary functions of device code, written as device code.
//!
//! PTX has no exact `sin` or `exp`, and a driver has no library of them without a toolkit.
//! `x.sin()` in a kernel is a function of this module. The functions use only operations that IEEE
//! 754 rounds exactly, in a fixed order, so each of them gives the same bits on every device, and
//! on the host when it is called by its name here. `x.sin()` on the host is the function of the
//! standard library, whose last bit may differ.
//!
//! Two methods differ between devices: on a GPU, `x.exp()` and `x.exp2()` of an `f32` use the
//! instruction of the GPU for powers of two, as CUDA C++ does, because the exact operations are
//! twice as many instructions. They are within the same bound. Where the bits matter, call the
//! function by its name: `math::single::exp(x)` has the same bits everywhere.
//!
//! | function | greatest error, `f32` | greatest error, `f64` |
//! |---|---|---|
//! | `sqrt`, `mul_add`, `%`, `floor`, `round`, … | none: as Rust defines it | the same |
//! | `exp`, `exp2`, `ln`, `log2`, `log10` | 2 ulp | 2 ulp |
//! | `sin`, `cos` | 2 ulp, for every argument | 2 ulp |
//! | `tanh` | 2 ulp | 4 ulp |
//! | `tan`, `sinh`, `cosh`, `exp_m1`, `ln_1p`, `cbrt`, `hypot` | 1 ulp | 3 ulp |
//! | `asin`, `acos`, `atan`, `atan2`, `asinh`, `acosh`, `atanh` | 1 ulp | 4 ulp |
//! | `powf` | 1 ulp | 2 ulp |
//! | `powi` | products by repeated squaring, as the host computes them | the same |
//!
//! The functions of `f32` in the last rows but one compute in double precision. [`FastMath`] has
//! variants that use the approximate instructions of a GPU.
//!
//! ```
//! use gridloom_kernel::math;
//!
//! assert_eq!(math::single::exp(1.0), std::f32::consts::E);
//! assert_eq!(math::double::powf(2.0, 10.0), 1024.0);
//! ```

pub mod double;
mod fast;
mod intrinsic;
mod power;
mod reduction;
mod remainder;
pub mod single;

pub use fast::FastMath;
pub(crate) use intrinsic::{mul_hi, select_f32, select_f64};
pub(crate) use remainder::{rem_f32, rem_f64};
