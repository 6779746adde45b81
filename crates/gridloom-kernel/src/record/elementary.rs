//! Recording of elementary functions: exact ones, which are device code of [`math`](crate::math),
//! and fast ones.

use crate::ir::{Operand, Ty};
use crate::math::double;
use crate::record::arithmetic::{OpAdd, OpDiv, OpRem, lt};
use crate::record::convert::cast;
use crate::record::float_methods::WholeFloat;
use crate::record::integer_methods::select as select_operand;
use crate::record::number::{Euclid, Signed};
use crate::record::recorder::with;
use crate::record::value::{Scalar, V, lit};

/// The functions of single precision as methods have them: on GPUs, `exp` and `exp2` use the
/// instruction that approximates powers of two, as those of CUDA C++ do. Computed by IEEE
/// operations alone, they take twice as many instructions.
mod single_on_device {
    use std::f32::consts::LOG2_E;

    use crate::ir::Target;
    use crate::math::single as exact;
    use crate::record::arithmetic::lt;
    use crate::record::recorder::with;
    use crate::record::value::{V, lit};

    use super::{approx, select};

    pub(super) use crate::math::single::*;

    fn is_for_gpu() -> bool {
        with(|r| r.target()) == Target::Gpu
    }

    #[allow(non_camel_case_types, reason = "it stands for the function of that name")]
    pub(super) struct exp {}
    impl exp {
        /// e^x = 2^n · 2^f with n from -126 to 126: what is past these bounds is left in f. The
        /// result is within 2 ulp, as the instruction is that close and scaling is exact, except
        /// where the result is subnormal and rounded.
        pub(super) fn __twin(x: V<f32>) -> V<f32> {
            if !is_for_gpu() {
                return exact::exp::__twin(x);
            }
            // (n + 126) / 252, between 0 and 1; NaN becomes 0, and is still in f.
            let place = approx("fma.rn.sat", &[x, lit(LOG2_E / 252.0), lit(0.5)]);
            // The lowest bits of the sum are the bits of the exponent of 2^n.
            let shifted = approx("fma.rm", &[place, lit(252.0), lit(12_582_913.0)]);
            let minus_n = approx("sub.rn", &[lit(12_583_039.0), shifted]);
            let f = approx("fma.rn", &[x, lit(LOG2_E), minus_n]);
            let f = approx("fma.rn", &[x, lit(1.925_963e-8), f]);
            let scale = V::<f32>::from_bits(shifted.to_bits().wrapping_shl(lit(23)));
            approx("mul.rn", &[approx("ex2.approx.ftz", &[f]), scale])
        }
    }

    #[allow(non_camel_case_types, reason = "it stands for the function of that name")]
    pub(super) struct exp2 {}
    impl exp2 {
        pub(super) fn __twin(x: V<f32>) -> V<f32> {
            if !is_for_gpu() {
                return exact::exp2::__twin(x);
            }
            // The instruction has no subnormal results: such a one is a product of two roots.
            let is_small = lt(x, lit(-126.0));
            let power = approx("ex2.approx.ftz", &[select(is_small, approx("mul.rn", &[x, lit(0.5)]), x)]);
            select(is_small, approx("mul.rn", &[power, power]), power)
        }
    }
}

/// One of two values, without a branch.
pub fn select<T: Scalar>(cond: V<bool>, a: V<T>, b: V<T>) -> V<T> {
    with(|r| {
        let (cond, a, b) = (cond.operand(r), a.operand(r), b.operand(r));
        V::of(select_operand(r, T::TY, cond, a, b))
    })
}

macro_rules! functions {
    ($($one:ident),*; $($two:ident),*) => {
        /// A floating-point type with elementary functions.
        pub trait Elementary: WholeFloat + OpRem + Signed {
            $(#[doc(hidden)] fn $one(x: V<Self>) -> V<Self>;)*
            $(#[doc(hidden)] fn $two(x: V<Self>, y: V<Self>) -> V<Self>;)*
            #[doc(hidden)]
            fn powi(x: V<Self>, n: V<i32>) -> V<Self>;
            #[doc(hidden)]
            fn sin_cos(x: V<Self>) -> (V<Self>, V<Self>);
            #[doc(hidden)]
            fn number(value: f64) -> V<Self>;
        }
        functions!(f32, single_on_device; $($one),*; $($two),*);
        functions!(f64, double; $($one),*; $($two),*);

        impl<T: Elementary> V<T> {
            $(
                /// Does what the method of Rust does, within the bound that [`math`](crate::math)
                /// states.
                pub fn $one(self) -> V<T> {
                    T::$one(self)
                }
            )*
            $(
                /// Does what the method of Rust does, within the bound that [`math`](crate::math)
                /// states.
                pub fn $two(self, other: V<T>) -> V<T> {
                    T::$two(self, other)
                }
            )*
        }
    };
    ($t:ty, $module:ident; $($one:ident),*; $($two:ident),*) => {
        impl Elementary for $t {
            $(fn $one(x: V<Self>) -> V<Self> {
                $module::$one::__twin(x)
            })*
            $(fn $two(x: V<Self>, y: V<Self>) -> V<Self> {
                $module::$two::__twin(x, y)
            })*
            fn powi(x: V<Self>, n: V<i32>) -> V<Self> {
                $module::powi::__twin(x, n)
            }
            fn sin_cos(x: V<Self>) -> (V<Self>, V<Self>) {
                $module::sin_cos::__twin(x)
            }
            fn number(value: f64) -> V<Self> {
                lit(value as $t)
            }
        }
    };
}
functions!(
    sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, exp2, exp_m1, ln, log2, log10, ln_1p,
    cbrt; powf, atan2, hypot
);

impl<T: Elementary> V<T> {
    /// Does what the method of the standard library does.
    pub fn powi(self, n: V<i32>) -> V<T> {
        T::powi(self, n)
    }
    /// Does what the method of the standard library does.
    pub fn sin_cos(self) -> (V<T>, V<T>) {
        T::sin_cos(self)
    }
    /// Does what the method of the standard library does.
    pub fn log(self, base: V<T>) -> V<T> {
        T::div(self.ln(), base.ln())
    }
    /// Does what the method of the standard library does.
    pub fn to_degrees(self) -> V<T> {
        let factor = match T::TY {
            Ty::F32 => f64::from(57.295_78_f32),
            _ => 180.0 / std::f64::consts::PI,
        };
        T::mul(self, <T as Elementary>::number(factor))
    }
    /// Does what the method of the standard library does.
    pub fn to_radians(self) -> V<T> {
        let factor = match T::TY {
            Ty::F32 => f64::from(0.017_453_292_f32),
            _ => std::f64::consts::PI / 180.0,
        };
        T::mul(self, <T as Elementary>::number(factor))
    }
}

macro_rules! euclid {
    ($($t:ty),*) => {$(
        impl Euclid for $t {
            fn rem_euclid(a: V<$t>, b: V<$t>) -> V<$t> {
                let rest = <$t as OpRem>::rem(a, b);
                select(lt(rest, lit(0.0)), <$t as OpAdd>::add(rest, <$t as Signed>::abs(b)), rest)
            }
            fn div_euclid(a: V<$t>, b: V<$t>) -> V<$t> {
                let quotient = <$t as OpDiv>::div(a, b).trunc();
                let is_below = lt(<$t as OpRem>::rem(a, b), lit(0.0));
                let step = select(lt(lit(0.0), b), lit(-1.0), lit(1.0));
                select(is_below, <$t as OpAdd>::add(quotient, step), quotient)
            }
        }
    )*};
}
euclid!(f32, f64);

impl OpRem for f32 {
    fn rem(a: V<f32>, b: V<f32>) -> V<f32> {
        crate::math::rem_f32::__twin(a, b)
    }
}
impl OpRem for f64 {
    fn rem(a: V<f64>, b: V<f64>) -> V<f64> {
        crate::math::rem_f64::__twin(a, b)
    }
}
macro_rules! half_remainder {
    ($($t:ty),*) => {$(
        // The remainder of two numbers of half precision is one: nothing is rounded.
        impl OpRem for $t {
            fn rem(a: V<$t>, b: V<$t>) -> V<$t> {
                cast(<f32 as OpRem>::rem(cast(a), cast(b)))
            }
        }
    )*};
}
half_remainder!(half::f16, half::bf16);

fn approx(op: &'static str, args: &[V<f32>]) -> V<f32> {
    with(|r| {
        let args: Vec<Operand> = args.iter().map(|arg| arg.operand(r)).collect();
        V::of(r.compute(op, "f32", Ty::F32, &args))
    })
}

fn times(a: V<f32>, factor: f32) -> V<f32> {
    approx("mul.rn", &[a, lit(factor)])
}

/// The fast functions: what `gridloom::math::FastMath` is on the host.
impl V<f32> {
    /// Does what [`FastMath::fast_sin`](crate::math::FastMath::fast_sin) does.
    pub fn fast_sin(self) -> V<f32> {
        approx("sin.approx", &[self])
    }
    /// Does what [`FastMath::fast_cos`](crate::math::FastMath::fast_cos) does.
    pub fn fast_cos(self) -> V<f32> {
        approx("cos.approx", &[self])
    }
    /// Does what [`FastMath::fast_tan`](crate::math::FastMath::fast_tan) does.
    pub fn fast_tan(self) -> V<f32> {
        approx("div.approx", &[self.fast_sin(), self.fast_cos()])
    }
    /// Does what [`FastMath::fast_exp`](crate::math::FastMath::fast_exp) does.
    pub fn fast_exp(self) -> V<f32> {
        approx("ex2.approx", &[times(self, std::f32::consts::LOG2_E)])
    }
    /// Does what [`FastMath::fast_exp2`](crate::math::FastMath::fast_exp2) does.
    pub fn fast_exp2(self) -> V<f32> {
        approx("ex2.approx", &[self])
    }
    /// Does what [`FastMath::fast_ln`](crate::math::FastMath::fast_ln) does.
    pub fn fast_ln(self) -> V<f32> {
        times(self.fast_log2(), std::f32::consts::LN_2)
    }
    /// Does what [`FastMath::fast_log2`](crate::math::FastMath::fast_log2) does.
    pub fn fast_log2(self) -> V<f32> {
        approx("lg2.approx", &[self])
    }
    /// Does what [`FastMath::fast_log10`](crate::math::FastMath::fast_log10) does.
    pub fn fast_log10(self) -> V<f32> {
        times(self.fast_log2(), std::f32::consts::LOG10_2)
    }
    /// Does what [`FastMath::fast_powf`](crate::math::FastMath::fast_powf) does.
    pub fn fast_powf(self, exponent: V<f32>) -> V<f32> {
        approx("ex2.approx", &[approx("mul.rn", &[self.fast_log2(), exponent])])
    }
    /// Does what [`FastMath::fast_tanh`](crate::math::FastMath::fast_tanh) does. The instruction of
    /// newer devices is far less exact.
    pub fn fast_tanh(self) -> V<f32> {
        // 1 - 2 / (e^2x + 1)
        let power = approx("ex2.approx", &[times(self, 2.0 * std::f32::consts::LOG2_E)]);
        let quotient = approx("div.approx", &[lit(2.0), approx("add.rn", &[power, lit(1.0)])]);
        approx("sub.rn", &[lit(1.0), quotient])
    }
    /// Does what [`FastMath::fast_sqrt`](crate::math::FastMath::fast_sqrt) does.
    pub fn fast_sqrt(self) -> V<f32> {
        approx("sqrt.approx", &[self])
    }
    /// Does what [`FastMath::fast_rsqrt`](crate::math::FastMath::fast_rsqrt) does.
    pub fn fast_rsqrt(self) -> V<f32> {
        approx("rsqrt.approx", &[self])
    }
    /// Does what [`FastMath::fast_recip`](crate::math::FastMath::fast_recip) does.
    pub fn fast_recip(self) -> V<f32> {
        approx("rcp.approx", &[self])
    }
    /// Does what [`FastMath::fast_div`](crate::math::FastMath::fast_div) does.
    pub fn fast_div(self, divisor: V<f32>) -> V<f32> {
        approx("div.approx", &[self, divisor])
    }
}
