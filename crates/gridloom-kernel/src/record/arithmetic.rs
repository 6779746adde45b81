//! Recording of operators, with the meaning that Rust gives them.

use crate::ir::{Operand, Ty};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{KernelType, R, Scalar, Twin, V};

/// An operator of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
        }
    }

    fn overflow(self) -> &'static str {
        match self {
            Op::Add => "attempt to add with overflow",
            Op::Sub => "attempt to subtract with overflow",
            Op::Mul => "attempt to multiply with overflow",
        }
    }
}

/// Returns the value of `bits` in a type, as 64 bits of its value.
pub(crate) fn narrow_bits(ty: Ty, bits: u64) -> u64 {
    match ty {
        Ty::U8 => bits & 0xff,
        Ty::I8 => i64::from(bits as i8) as u64,
        Ty::U16 => bits & 0xffff,
        Ty::I16 => i64::from(bits as i16) as u64,
        Ty::U32 => bits & 0xffff_ffff,
        Ty::I32 => i64::from(bits as i32) as u64,
        _ => bits,
    }
}

/// Brings the 32-bit result of a computation into the range of a narrower integer.
pub(crate) fn normalize(r: &mut Recorder, ty: Ty, value: Operand) -> Operand {
    let (op, suffix) = match ty {
        Ty::U8 => ("and", "b32"),
        Ty::U16 => ("and", "b32"),
        Ty::I8 => ("cvt", "s32.s8"),
        Ty::I16 => ("cvt", "s32.s16"),
        _ => return value,
    };
    match ty {
        Ty::U8 => r.compute(op, suffix, ty, &[value, Operand::Imm(Ty::U32, 0xff)]),
        Ty::U16 => r.compute(op, suffix, ty, &[value, Operand::Imm(Ty::U32, 0xffff)]),
        _ => r.compute(op, suffix, ty, &[value]),
    }
}

/// Returns the wrapped result of an integer operator on known numbers, and whether it is exact.
fn fold(op: Op, ty: Ty, a: u64, b: u64) -> (u64, bool) {
    let (wide_a, wide_b) = if ty.is_signed() {
        (i128::from(a as i64), i128::from(b as i64))
    } else {
        (i128::from(a), i128::from(b))
    };
    let exact = match op {
        Op::Add => wide_a.wrapping_add(wide_b),
        Op::Sub => wide_a.wrapping_sub(wide_b),
        Op::Mul => wide_a.wrapping_mul(wide_b),
    };
    let bits = narrow_bits(ty, exact as u64);
    let value = if ty.is_signed() { i128::from(bits as i64) } else { i128::from(bits) };
    (bits, value == exact)
}

/// Records an integer operator that wraps around.
pub(crate) fn wrapping(r: &mut Recorder, op: Op, ty: Ty, a: Operand, b: Operand) -> Operand {
    if let (Operand::Imm(_, a), Operand::Imm(_, b)) = (a, b) {
        return Operand::Imm(ty, fold(op, ty, a, b).0);
    }
    let name = match op {
        Op::Mul => "mul.lo",
        other => other.name(),
    };
    let raw = r.compute(name, ty.suffix(), ty, &[a, b]);
    normalize(r, ty, raw)
}

/// Records an integer operator. Returns its result, and whether it overflowed.
pub(crate) fn overflowing(r: &mut Recorder, op: Op, ty: Ty, a: Operand, b: Operand) -> (Operand, Operand) {
    if let (Operand::Imm(_, a), Operand::Imm(_, b)) = (a, b) {
        let (bits, is_exact) = fold(op, ty, a, b);
        return (Operand::Imm(ty, bits), Operand::Imm(Ty::Bool, (!is_exact).into()));
    }
    if ty.is_narrow() {
        // Exact in 32 bits: the result overflows where bringing it into range changes it.
        let name = if op == Op::Mul { "mul.lo" } else { op.name() };
        let raw = r.compute(name, "s32", Ty::I32, &[a, b]);
        let value = normalize(r, ty, raw);
        let lost = r.compute("setp.ne", "s32", Ty::Bool, &[raw, value]);
        return (value, lost);
    }
    let suffix = ty.suffix();
    let value = wrapping(r, op, ty, a, b);
    let zero = Operand::Imm(ty, 0);
    let lost = match (op, ty.is_signed()) {
        (Op::Add, false) => r.compute("setp.lt", suffix, Ty::Bool, &[value, a]),
        (Op::Sub, false) => r.compute("setp.lt", suffix, Ty::Bool, &[a, b]),
        (Op::Add | Op::Sub, true) => {
            // The sign of the result is wrong.
            let bits = ty.bit_suffix();
            let first = r.compute("xor", bits, ty, &[a, value]);
            let second = r.compute(
                "xor",
                bits,
                ty,
                &[if op == Op::Add { b } else { a }, { if op == Op::Add { value } else { b } }],
            );
            let both = r.compute("and", bits, ty, &[first, second]);
            r.compute("setp.lt", suffix, Ty::Bool, &[both, zero])
        }
        (Op::Mul, false) => {
            let high = r.compute("mul.hi", suffix, ty, &[a, b]);
            r.compute("setp.ne", suffix, Ty::Bool, &[high, zero])
        }
        (Op::Mul, true) => {
            let high = r.compute("mul.hi", suffix, ty, &[a, b]);
            let shift = Operand::Imm(Ty::U32, u64::from(ty.bits()) - 1);
            let sign = r.compute("shr", suffix, ty, &[value, shift]);
            r.compute("setp.ne", suffix, Ty::Bool, &[high, sign])
        }
    };
    (value, lost)
}

/// Records an integer operator as Rust has it: overflow fails where the program checks for it, else
/// wraps around.
fn integer(r: &mut Recorder, op: Op, ty: Ty, a: Operand, b: Operand) -> Operand {
    if !r.is_overflow_checked() {
        return wrapping(r, op, ty, a, b);
    }
    let (value, lost) = overflowing(r, op, ty, a, b);
    r.check(lost, true, op.overflow());
    value
}

/// Converts a half-precision number to single precision, in which it is computed with. Results are
/// rounded once, as each operation demands.
pub(crate) fn widened(r: &mut Recorder, ty: Ty, value: Operand) -> Operand {
    match (ty, value) {
        (Ty::F16, Operand::Imm(_, bits)) => {
            Operand::Imm(Ty::F32, half::f16::from_bits(bits as u16).to_f32().to_bits().into())
        }
        (Ty::Bf16, Operand::Imm(_, bits)) => Operand::Imm(Ty::F32, bits << 16),
        (Ty::F16, _) => r.compute("cvt", "f32.f16", Ty::F32, &[value]),
        (Ty::Bf16, _) => {
            let bits = r.compute("cvt", "u32.u16", Ty::U32, &[value]);
            let bits = r.compute("shl", "b32", Ty::U32, &[bits, Operand::Imm(Ty::U32, 16)]);
            r.compute("mov", "b32", Ty::F32, &[bits])
        }
        _ => value,
    }
}

/// Rounds a single-precision number to half precision.
pub(crate) fn rounded(r: &mut Recorder, ty: Ty, value: Operand) -> Operand {
    match (ty, value) {
        (Ty::F16, Operand::Imm(_, bits)) => {
            Operand::Imm(ty, half::f16::from_f32(f32::from_bits(bits as u32)).to_bits().into())
        }
        (Ty::Bf16, Operand::Imm(_, bits)) => {
            Operand::Imm(ty, half::bf16::from_f32(f32::from_bits(bits as u32)).to_bits().into())
        }
        (Ty::F16, _) => r.compute("cvt.rn", "f16.f32", ty, &[value]),
        (Ty::Bf16, _) => {
            // Devices before 8.0 have no instruction for it: to nearest, ties to even, and quiet
            // NaN stays NaN.
            let bits = r.compute("mov", "b32", Ty::U32, &[value]);
            let sixteen = Operand::Imm(Ty::U32, 16);
            let low = r.compute("shr", "u32", Ty::U32, &[bits, sixteen]);
            let odd = r.compute("and", "b32", Ty::U32, &[low, Operand::Imm(Ty::U32, 1)]);
            let bias = r.compute("add", "u32", Ty::U32, &[odd, Operand::Imm(Ty::U32, 0x7fff)]);
            let sum = r.compute("add", "u32", Ty::U32, &[bits, bias]);
            let number = r.compute("shr", "u32", Ty::U32, &[sum, sixteen]);
            let quiet = r.compute("or", "b32", Ty::U32, &[low, Operand::Imm(Ty::U32, 0x40)]);
            let is_nan = r.compute("setp.nan", "f32", Ty::Bool, &[value, value]);
            let result = r.compute("selp", "b32", Ty::U32, &[quiet, number, is_nan]);
            r.compute("cvt", "u16.u32", ty, &[result])
        }
        _ => value,
    }
}

/// Records an operation on floating-point numbers, in the precision that the device has for it.
pub(crate) fn floating(r: &mut Recorder, op: &'static str, ty: Ty, args: &[Operand]) -> Operand {
    match ty {
        Ty::F16 | Ty::Bf16 => {
            let wide: Vec<Operand> = args.iter().map(|arg| widened(r, ty, *arg)).collect();
            let result = r.compute(op, "f32", Ty::F32, &wide);
            rounded(r, ty, result)
        }
        // The reciprocal is rounded like the quotient, and costs less.
        _ if op == "div.rn" && is_one(args[0]) => r.compute("rcp.rn", ty.suffix(), ty, &args[1..]),
        _ => r.compute(op, ty.suffix(), ty, args),
    }
}

/// Returns whether an operand is the number one.
fn is_one(operand: Operand) -> bool {
    match operand {
        Operand::Imm(Ty::F32, bits) => bits == u64::from(1.0f32.to_bits()),
        Operand::Imm(Ty::F64, bits) => bits == 1.0f64.to_bits(),
        _ => false,
    }
}

fn arithmetic(r: &mut Recorder, op: Op, ty: Ty, a: Operand, b: Operand) -> Operand {
    if ty.is_integer() {
        return integer(r, op, ty, a, b);
    }
    // Rounded explicitly, or the device would fuse them.
    let name = match op {
        Op::Add => "add.rn",
        Op::Sub => "sub.rn",
        Op::Mul => "mul.rn",
    };
    floating(r, name, ty, &[a, b])
}

/// Returns the least value of a signed integer.
pub(crate) fn least(ty: Ty) -> Operand {
    Operand::Imm(ty, (-1i64 << (ty.bits() - 1)) as u64)
}

/// Fails where an integer division has no result.
fn check_division(r: &mut Recorder, ty: Ty, a: Operand, b: Operand, is_remainder: bool) {
    let suffix = ty.suffix();
    let zero = match b {
        Operand::Imm(_, bits) => Operand::Imm(Ty::Bool, (bits == 0).into()),
        b => r.compute("setp.eq", suffix, Ty::Bool, &[b, Operand::Imm(ty, 0)]),
    };
    let message = if is_remainder {
        "attempt to calculate the remainder with a divisor of zero"
    } else {
        "attempt to divide by zero"
    };
    r.check(zero, true, message);
    if !ty.is_signed() || matches!(b, Operand::Imm(_, bits) if bits != u64::MAX) {
        return;
    }
    let is_least = r.compute("setp.eq", suffix, Ty::Bool, &[a, least(ty)]);
    let by_minus_one = r.compute("setp.eq", suffix, Ty::Bool, &[b, Operand::Imm(ty, u64::MAX)]);
    let overflows = r.compute("and", "pred", Ty::Bool, &[is_least, by_minus_one]);
    let message = if is_remainder {
        "attempt to calculate the remainder with overflow"
    } else {
        "attempt to divide with overflow"
    };
    r.check(overflows, true, message);
}

fn division(r: &mut Recorder, ty: Ty, a: Operand, b: Operand) -> Operand {
    if ty.is_float() {
        return floating(r, "div.rn", ty, &[a, b]);
    }
    check_division(r, ty, a, b, false);
    r.compute("div", ty.suffix(), ty, &[a, b])
}

fn remainder(r: &mut Recorder, ty: Ty, a: Operand, b: Operand) -> Operand {
    check_division(r, ty, a, b, true);
    r.compute("rem", ty.suffix(), ty, &[a, b])
}

fn negation(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    if let Operand::Imm(_, bits) = a
        && ty.is_integer()
    {
        let (value, is_exact) = fold(Op::Sub, ty, 0, bits);
        if is_exact || !r.is_overflow_checked() {
            return Operand::Imm(ty, value);
        }
    }
    if ty.is_float() {
        // The sign bit alone, of NaN too.
        return flip_sign(r, ty, a);
    }
    if r.is_overflow_checked() {
        let is_least = r.compute("setp.eq", ty.suffix(), Ty::Bool, &[a, least(ty)]);
        r.check(is_least, true, "attempt to negate with overflow");
    }
    let raw = r.compute("neg", ty.suffix(), ty, &[a]);
    normalize(r, ty, raw)
}

fn flip_sign(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    let sign = 1u64 << (ty.bits() - 1);
    match (ty, a) {
        (_, Operand::Imm(_, bits)) => Operand::Imm(ty, bits ^ sign),
        (Ty::F16 | Ty::Bf16, _) => r.compute("xor", "b16", ty, &[a, Operand::Imm(Ty::U16, sign)]),
        _ => r.compute("neg", ty.suffix(), ty, &[a]),
    }
}

/// What an operator takes: a value, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "an operator of device code cannot take `{Self}`",
    note = "operators take two values of one type, or references to them; for your own type, write `#[gridloom::device]` on the `impl` of the operator"
)]
pub trait Given<T: KernelType> {
    #[doc(hidden)]
    fn given(self) -> V<T>;
}
impl<T: KernelType> Given<T> for V<T> {
    fn given(self) -> V<T> {
        self
    }
}
impl<T: KernelType> Given<T> for R<V<T>> {
    fn given(self) -> V<T> {
        self.__place.get()
    }
}

macro_rules! operators {
    ($($op:ident, $method:ident, $doc:literal;)*) => {$(
        #[doc = concat!("A type with the operator `", $doc, "`, whose result has the type of the left side.")]
        #[diagnostic::on_unimplemented(
            message = "device code has no such operator for `{Self}` and `{Right}`",
            note = "for your own type, write `#[gridloom::device]` on the `impl` of the operator"
        )]
        pub trait $op<Right: KernelType = Self>: KernelType {
            #[doc(hidden)]
            fn $method(a: V<Self>, b: V<Right>) -> V<Self>;
        }

        #[doc = concat!("`a ", $doc, " b`.")]
        pub fn $method<T: $op<U>, U: KernelType>(a: impl Given<T>, b: impl Given<U>, line: u32) -> V<T> {
            let (a, b) = (a.given(), b.given());
            with(|r| r.at(line));
            T::$method(a, b)
        }
    )*};
}
operators!(
    OpAdd, add, "+";
    OpSub, sub, "-";
    OpMul, mul, "*";
    OpDiv, div, "/";
    OpRem, rem, "%";
    OpBitAnd, bit_and, "&";
    OpBitOr, bit_or, "|";
    OpBitXor, bit_xor, "^";
);

/// `a * b` at the current line.
pub(crate) fn mul_of<T: OpMul>(a: V<T>, b: V<T>) -> V<T> {
    T::mul(a, b)
}

/// A type with the operator `-` of one value.
#[diagnostic::on_unimplemented(message = "device code has no operator `-` for `{Self}`")]
pub trait OpNeg: KernelType {
    #[doc(hidden)]
    fn neg(a: V<Self>) -> V<Self>;
}

/// `-a`.
pub fn neg<T: OpNeg>(a: impl Given<T>, line: u32) -> V<T> {
    let a = a.given();
    with(|r| r.at(line));
    T::neg(a)
}

/// A type with the operator `!`.
#[diagnostic::on_unimplemented(message = "device code has no operator `!` for `{Self}`")]
pub trait OpNot: KernelType {
    #[doc(hidden)]
    fn not(a: V<Self>) -> V<Self>;
}

/// `!a`.
pub fn not<T: OpNot>(a: impl Given<T>) -> V<T> {
    T::not(a.given())
}

fn two<T: Scalar>(
    a: V<T>,
    b: V<T>,
    act: impl FnOnce(&mut Recorder, Ty, Operand, Operand) -> Operand,
) -> V<T> {
    with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        V::of(act(r, T::TY, a, b))
    })
}

pub(crate) fn bitwise(r: &mut Recorder, op: &'static str, ty: Ty, a: Operand, b: Operand) -> Operand {
    if let (Operand::Imm(_, a), Operand::Imm(_, b)) = (a, b) {
        return Operand::Imm(
            ty,
            match op {
                "and" => a & b,
                "or" => a | b,
                _ => a ^ b,
            },
        );
    }
    if ty == Ty::Bool
        && let (Operand::Imm(_, known), other) | (other, Operand::Imm(_, known)) = (a, b)
    {
        return match (op, known != 0) {
            ("and", true) | ("or" | "xor", false) => other,
            ("and", false) => Operand::Imm(ty, 0),
            ("or", true) => Operand::Imm(ty, 1),
            _ => r.compute("not", "pred", ty, &[other]),
        };
    }
    r.compute(op, ty.bit_suffix(), ty, &[a, b])
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl OpAdd for $t {
            fn add(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| arithmetic(r, Op::Add, ty, a, b))
            }
        }
        impl OpSub for $t {
            fn sub(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| arithmetic(r, Op::Sub, ty, a, b))
            }
        }
        impl OpMul for $t {
            fn mul(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| arithmetic(r, Op::Mul, ty, a, b))
            }
        }
        impl OpDiv for $t {
            fn div(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, division)
            }
        }
    )*};
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, half::f16, half::bf16, f32, f64);

macro_rules! negatable {
    ($($t:ty),*) => {$(
        impl OpNeg for $t {
            fn neg(a: V<Self>) -> V<Self> {
                with(|r| {
                    let a = a.operand(r);
                    V::of(negation(r, Self::TY, a))
                })
            }
        }
    )*};
}
negatable!(i8, i16, i32, i64, isize, half::f16, half::bf16, f32, f64);

/// An integer type.
pub trait Int: Scalar + OpAdd + OpSub + OpMul + OpDiv + OpRem {}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Int for $t {}
        impl OpRem for $t {
            fn rem(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, remainder)
            }
        }
        impl OpNot for $t {
            fn not(a: V<Self>) -> V<Self> {
                with(|r| {
                    let ty = Self::TY;
                    V::of(match a.operand(r) {
                        Operand::Imm(_, bits) => Operand::Imm(ty, narrow_bits(ty, !bits)),
                        a => {
                            let raw = r.compute("not", ty.bit_suffix(), ty, &[a]);
                            normalize(r, ty, raw)
                        }
                    })
                })
            }
        }
    )*};
}
integers!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

macro_rules! bits {
    ($($t:ty),*) => {$(
        impl OpBitAnd for $t {
            fn bit_and(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| bitwise(r, "and", ty, a, b))
            }
        }
        impl OpBitOr for $t {
            fn bit_or(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| bitwise(r, "or", ty, a, b))
            }
        }
        impl OpBitXor for $t {
            fn bit_xor(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| bitwise(r, "xor", ty, a, b))
            }
        }
    )*};
}
bits!(bool, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

impl OpNot for bool {
    fn not(a: V<bool>) -> V<bool> {
        with(|r| {
            V::of(match a.operand(r) {
                Operand::Imm(_, bits) => Operand::Imm(Ty::Bool, u64::from(bits == 0)),
                a => r.compute("not", "pred", Ty::Bool, &[a]),
            })
        })
    }
}

/// `a && b`, where computing `b` does nothing else.
pub fn both(a: impl Given<bool>, b: impl Given<bool>) -> V<bool> {
    <bool as OpBitAnd>::bit_and(a.given(), b.given())
}

/// `a || b`, where computing `b` does nothing else.
pub fn either(a: impl Given<bool>, b: impl Given<bool>) -> V<bool> {
    <bool as OpBitOr>::bit_or(a.given(), b.given())
}

/// Returns the amount of a shift in 32 bits, below the number of bits of the type.
pub(crate) fn shift_amount(r: &mut Recorder, ty: Ty, by_ty: Ty, by: Operand) -> Operand {
    let mask = Operand::Imm(Ty::U32, u64::from(ty.bits()) - 1);
    match by {
        Operand::Imm(_, bits) => Operand::Imm(Ty::U32, bits & (u64::from(ty.bits()) - 1)),
        by => {
            let low = if by_ty.bits() == 64 { r.compute("cvt", "u32.u64", Ty::U32, &[by]) } else { by };
            r.compute("and", "b32", Ty::U32, &[low, mask])
        }
    }
}

pub(crate) fn shift(r: &mut Recorder, is_left: bool, ty: Ty, a: Operand, by: Operand) -> Operand {
    if let (Operand::Imm(_, a), Operand::Imm(_, by)) = (a, by) {
        let bits = match (is_left, ty.is_signed()) {
            (true, _) => a << by,
            (false, true) => ((a as i64) >> by) as u64,
            (false, false) => a >> by,
        };
        return Operand::Imm(ty, narrow_bits(ty, bits));
    }
    if is_left {
        let raw = r.compute("shl", ty.bit_suffix(), ty, &[a, by]);
        normalize(r, ty, raw)
    } else {
        r.compute("shr", ty.suffix(), ty, &[a, by])
    }
}

fn checked_shift<T: Int, U: Int>(a: V<T>, b: V<U>, line: u32, is_left: bool) -> V<T> {
    with(|r| {
        r.at(line);
        let (a, by) = (a.operand(r), b.operand(r));
        if r.is_overflow_checked() {
            // As unsigned numbers, negative amounts are too large.
            let bits = u64::from(T::TY.bits());
            let too_far = match by {
                Operand::Imm(_, by) => Operand::Imm(Ty::Bool, (by >= bits).into()),
                by => {
                    let suffix = if U::TY.bits() == 64 { "u64" } else { "u32" };
                    let ty = if U::TY.bits() == 64 { Ty::U64 } else { Ty::U32 };
                    r.compute("setp.ge", suffix, Ty::Bool, &[by, Operand::Imm(ty, bits)])
                }
            };
            let message = if is_left {
                "attempt to shift left with overflow"
            } else {
                "attempt to shift right with overflow"
            };
            r.check(too_far, true, message);
        }
        let by = shift_amount(r, T::TY, U::TY, by);
        V::of(shift(r, is_left, T::TY, a, by))
    })
}

/// `a << b`.
pub fn shl<T: Int, U: Int>(a: impl Given<T>, b: impl Given<U>, line: u32) -> V<T> {
    checked_shift(a.given(), b.given(), line, true)
}

/// `a >> b`.
pub fn shr<T: Int, U: Int>(a: impl Given<T>, b: impl Given<U>, line: u32) -> V<T> {
    checked_shift(a.given(), b.given(), line, false)
}

/// A type whose values can be equal.
#[diagnostic::on_unimplemented(
    message = "device code cannot compare values of type `{Self}`",
    note = "compare scalars, or the fields one by one; for `==`, write `#[gridloom::device] impl PartialEq for {Self}` instead of deriving it"
)]
pub trait OpEq: KernelType {
    #[doc(hidden)]
    fn equal(a: V<Self>, b: V<Self>) -> V<bool>;
    #[doc(hidden)]
    fn different(a: V<Self>, b: V<Self>) -> V<bool> {
        not(Self::equal(a, b))
    }
}
impl<T: OpOrd> OpEq for T {
    fn equal(a: V<T>, b: V<T>) -> V<bool> {
        T::compare("setp.eq", a, b)
    }
    fn different(a: V<T>, b: V<T>) -> V<bool> {
        T::compare("setp.ne", a, b)
    }
}

/// A type whose values have an order.
#[diagnostic::on_unimplemented(
    message = "device code cannot compare values of type `{Self}`",
    note = "compare scalars, or the fields one by one"
)]
pub trait OpOrd: KernelType {
    #[doc(hidden)]
    fn compare(op: &'static str, a: V<Self>, b: V<Self>) -> V<bool>;
}

pub(crate) fn compare(r: &mut Recorder, op: &'static str, ty: Ty, a: Operand, b: Operand) -> Operand {
    if let (Operand::Imm(_, x), Operand::Imm(_, y)) = (a, b)
        && !ty.is_float()
    {
        let order = if ty.is_signed() { (x as i64).cmp(&(y as i64)) } else { x.cmp(&y) };
        let holds = match op {
            "setp.eq" => order.is_eq(),
            "setp.ne" | "setp.neu" => order.is_ne(),
            "setp.lt" => order.is_lt(),
            "setp.le" => order.is_le(),
            "setp.gt" => order.is_gt(),
            _ => order.is_ge(),
        };
        return Operand::Imm(Ty::Bool, holds.into());
    }
    match ty {
        Ty::Bool => {
            let flag = |r: &mut Recorder, value| {
                let (one, zero) = (Operand::Imm(Ty::U32, 1), Operand::Imm(Ty::U32, 0));
                match value {
                    Operand::Imm(_, bits) => Operand::Imm(Ty::U32, bits),
                    value => r.compute("selp", "u32", Ty::U32, &[one, zero, value]),
                }
            };
            let (a, b) = (flag(r, a), flag(r, b));
            compare(r, op, Ty::U32, a, b)
        }
        Ty::F16 | Ty::Bf16 => {
            let (a, b) = (widened(r, ty, a), widened(r, ty, b));
            compare(r, op, Ty::F32, a, b)
        }
        _ => {
            // What is not equal to anything differs from everything.
            let op = if op == "setp.ne" && ty.is_float() { "setp.neu" } else { op };
            r.compute(op, ty.suffix(), Ty::Bool, &[a, b])
        }
    }
}

macro_rules! comparable {
    ($($t:ty),*) => {$(
        impl OpOrd for $t {
            fn compare(op: &'static str, a: V<Self>, b: V<Self>) -> V<bool> {
                with(|r| {
                    let (a, b) = (a.operand(r), b.operand(r));
                    V::of(compare(r, op, Self::TY, a, b))
                })
            }
        }
    )*};
}
comparable!(bool, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, half::f16, half::bf16, f32, f64);

/// `a == b`.
pub fn eq<T: OpEq>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::equal(a, b)
}
/// `a != b`.
pub fn ne<T: OpEq>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::different(a, b)
}
/// `a < b`.
pub fn lt<T: OpOrd>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::compare("setp.lt", a, b)
}
/// `a <= b`.
pub fn le<T: OpOrd>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::compare("setp.le", a, b)
}
/// `a > b`.
pub fn gt<T: OpOrd>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::compare("setp.gt", a, b)
}
/// `a >= b`.
pub fn ge<T: OpOrd>(a: impl Given<T>, b: impl Given<T>) -> V<bool> {
    let (a, b) = (a.given(), b.given());
    T::compare("setp.ge", a, b)
}
