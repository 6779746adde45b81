//! What PTX instructions compute: pure functions from operand bits to result bits.
//!
//! The interpreter calls these for every arithmetic instruction, and compiled code calls the ones
//! that have no machine instruction of their own, so that there is one definition of each
//! operation. Nothing here touches memory, threads or the host's floating-point environment, and
//! nothing panics, whatever the operands.
//!
//! # Conventions
//!
//! - **Integers** are Rust's own types: a function over [`Integer`](integer::Integer) serves `u8`
//!   to `i64`, and the type parameter is the instruction's type suffix (`integer::mul_hi::<i32>` is
//!   `mul.hi.s32`).
//! - **Floating-point values are bit patterns** (`u16`, `u32`, `u64`), never Rust floats, so that
//!   NaN payloads and signs are exactly what is written here. A function over [`Float`] takes the
//!   format as its type parameter: `float::add::<F32>` is `add.f32`, `float::add::<Bf16>` is
//!   `add.bf16`.
//! - **Modifiers** that change a result are arguments: [`Mode`] carries rounding, `.ftz`, and
//!   `.sat` or `.relu`. The functions do not check that PTX allows a combination; that is the
//!   verifier's work. Every combination is defined.
//!
//! # Modules
//!
//! | module | instructions |
//! |---|---|
//! | [`integer`] | `add` `sub` `mul` `mad` `mul24` `mad24` `sad` `div` `rem` `abs` `neg` `min` `max` |
//! | [`carry`] | `add.cc` `addc` `sub.cc` `subc` `mad.cc` `madc` |
//! | [`bits`] | `shl` `shr` `shf` `bfe` `bfi` `bfind` `brev` `clz` `popc` `fns` `szext` `bmsk` `cnot` |
//! | [`permute`] | `prmt` `lop3` |
//! | [`dot`] | `dp4a` `dp2a` |
//! | [`float`] | `add` `sub` `mul` `fma` `div` `rcp` `sqrt` `abs` `neg` `copysign` `testp` on every format |
//! | [`compare`] | `set` `setp` and `min` `max` on every format |
//! | [`approx`] | `div.full` and every `.approx` instruction |
//! | [`packed`] | the `x2` forms of integers and halves |
//! | [`convert`] | `cvt` and `cvt.pack` |
//! | [`atomic`] | the arithmetic of `atom` and `red` |

pub mod approx;
pub mod atomic;
pub mod bits;
pub mod carry;
pub mod compare;
pub mod convert;
pub mod dot;
pub mod elementary;
pub mod exact;
pub mod float;
pub mod format;
pub mod integer;
pub mod packed;
pub mod permute;

#[cfg(test)]
mod oracle;

pub use format::{Bf16, F16, F32, F64, Float};

/// The direction in which an inexact result is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to the value with an even last bit.
    #[default]
    NearestEven,
    /// `.rna`: to nearest, ties away from zero. Only conversions to `tf32` use it.
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: towards minus infinity.
    Down,
    /// `.rp`: towards plus infinity.
    Up,
}

/// What is done to a floating-point result before it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clamp {
    /// Nothing.
    #[default]
    None,
    /// `.sat`: into [0, 1], and NaN becomes +0.
    Saturate,
    /// `.relu`: a negative result becomes +0, and NaN becomes the canonical NaN.
    Relu,
}

/// The modifiers of a floating-point instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// `.rn`, `.rz`, `.rm` or `.rp`.
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zero of the same sign.
    pub ftz: bool,
    /// `.sat` or `.relu`.
    pub clamp: Clamp,
}

impl Mode {
    /// Round to nearest even, keep subnormals, clamp nothing.
    pub const RN: Self = Self { rounding: Rounding::NearestEven, ftz: false, clamp: Clamp::None };

    /// Returns this mode with another rounding.
    #[must_use]
    pub const fn rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// Returns this mode with `.ftz` set or not.
    #[must_use]
    pub const fn ftz(self, ftz: bool) -> Self {
        Self { ftz, ..self }
    }

    /// Returns this mode with another clamp.
    #[must_use]
    pub const fn clamp(self, clamp: Clamp) -> Self {
        Self { clamp, ..self }
    }
}
