//! Tells which PTX instructions become machine instructions, and how.
//!
//! All others call the interpreter's own function for the instruction; see
//! [`runtime`](crate::runtime).

use gridloom_interp::code::{Code, Instruction, Meaning, Op as Decoded};
use gridloom_interp::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use gridloom_ptx::op::{
    ApproxOp, BfindMode, BitsOp, BoolOp, Compare, CompareOp, ConvertOp, Cvt, CvtRounding, FloatArith,
    FloatOp, FloatPrecision, FunnelMode, Half, IntArith, IntOp, LogicOp, MinMax, MulMode, Op, PrmtMode,
    Rounding, ShiftDirection,
};
use gridloom_ptx::{Imm, Module, Operand, ScalarType, Space, SymbolId};

/// How the bits of a value are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Pred,
    B8,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Class::Pred => 1,
            Class::B8 => 8,
            Class::B16 => 16,
            Class::B32 | Class::F32 => 32,
            Class::B64 | Class::F64 => 64,
        }
    }

    /// Returns the class of untyped bits of a width.
    pub(crate) fn of_bits(bits: u32) -> Self {
        match bits {
            1 => Class::Pred,
            8 => Class::B8,
            16 => Class::B16,
            32 => Class::B32,
            _ => Class::B64,
        }
    }

    /// Returns the class of values of a type.
    pub(crate) fn of(ty: ScalarType) -> Self {
        match ty {
            ScalarType::F32 => Class::F32,
            ScalarType::F64 => Class::F64,
            ty => Class::of_bits(ty.bits().min(64)),
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Class::F32 | Class::F64)
    }
}

/// A direction of rounding to an integral value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integral {
    Nearest,
    Zero,
    Down,
    Up,
}

/// Arithmetic on `.f16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfArith {
    Add,
    Sub,
    Mul,
    Fma,
}

/// An operation that one or a few machine instructions compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Copy,
    Not,
    Pair {
        bits: u32,
    },
    Field {
        start: u32,
        bits: u32,
    },
    AddConstant(u64),
    /// Selects bytes of two words by the nibbles of a third.
    Permute,
    /// The sum of four byte products and a third word.
    DotProduct {
        signed: [bool; 2],
    },
    /// The sum of the products of two halves and two bytes, and a third word.
    HalfDotProduct {
        signed: [bool; 2],
        high: bool,
    },
    /// The bits of a field inside a word, extended.
    BitField {
        start: u32,
        bits: u32,
        signed: bool,
    },
    /// The second word with a field that lies inside it replaced by the low bits of the first.
    InsertField {
        start: u32,
        bits: u32,
    },
    /// The difference of two words without its sign, and a third word.
    AbsDifference {
        signed: bool,
    },
    /// Clamps an integer of at most 32 bits to the range of a narrower type.
    Saturate {
        signed: bool,
        bits: u32,
        to_signed: bool,
    },
    Add,
    Sub,
    Mul,
    MulHigh {
        signed: bool,
    },
    Div {
        signed: bool,
    },
    Rem {
        signed: bool,
    },
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    Abs,
    Neg,
    MulWide {
        signed: bool,
    },
    MadLow,
    MadWide {
        signed: bool,
    },
    Logic(LogicOp),
    BitNot,
    Lop3(u8),
    ShiftLeft,
    ShiftRight {
        signed: bool,
    },
    Funnel {
        left: bool,
        wrap: bool,
    },
    CountZeros,
    CountOnes,
    /// The place of the highest bit that differs from the sign, counted from the lowest bit or from
    /// the highest; all ones if there is none.
    FindBit {
        signed: bool,
        from_top: bool,
    },
    Reverse,
    /// Compares integers or floats, by the class of the operands. There are one or two results: the
    /// comparison and its negation.
    Compare {
        compare: Compare,
        signed: bool,
        ftz: bool,
        combine: Option<BoolOp>,
    },
    Select,
    FloatAdd {
        ftz: bool,
    },
    FloatSub {
        ftz: bool,
    },
    FloatMul {
        ftz: bool,
    },
    FloatFma {
        ftz: bool,
    },
    FloatDiv {
        ftz: bool,
    },
    FloatDivApprox {
        ftz: bool,
    },
    FloatReciprocal {
        ftz: bool,
    },
    FloatSqrt {
        ftz: bool,
    },
    FloatRsqrt {
        ftz: bool,
    },
    /// `fma.rm` in single precision: rounded towards minus infinity.
    FloatFmaDown,
    /// An approximate function in single precision, computed by the runtime.
    FloatApprox {
        op: ApproxOp,
        ftz: bool,
    },
    /// Clamps to [0, 1].
    FloatSaturate {
        ftz: bool,
    },
    FloatMin {
        ftz: bool,
        nan: bool,
    },
    FloatMax {
        ftz: bool,
        nan: bool,
    },
    FloatAbs {
        ftz: bool,
    },
    FloatNeg {
        ftz: bool,
    },
    /// Converts from `from` bits to `to` bits, then to the width of the result's class.
    Extend {
        from: u32,
        signed: bool,
        to: u32,
        to_signed: bool,
    },
    IntToFloat {
        signed: bool,
    },
    FloatToInt {
        signed: bool,
        integral: Integral,
        ftz: bool,
    },
    /// Converts single precision to a type of 8 or 16 bits, clamped to its range.
    FloatToNarrow {
        signed: bool,
        bits: u32,
        integral: Integral,
        ftz: bool,
    },
    Promote {
        ftz: bool,
    },
    Demote {
        ftz: bool,
    },
    /// `.f16` to single precision, which is exact.
    HalfToFloat,
    /// `.bf16` to single precision, which moves its bits.
    BfloatToFloat,
    /// Single precision to the nearest `.f16`.
    FloatToHalf,
    /// Single precision to the nearest `.bf16`.
    FloatToBfloat,
    /// Two numbers to the nearest `.f16x2`, the first in the upper half.
    FloatsToHalves,
    /// Two numbers to the nearest `.bf16x2`, the first in the upper half.
    FloatsToBfloats,
    /// Arithmetic on `.f16`, or on the halves of `.f16x2`.
    Half {
        op: HalfArith,
        packed: bool,
    },
    RoundIntegral {
        integral: Integral,
        ftz: bool,
    },
}

impl Kind {
    /// Returns whether it is floating-point arithmetic with IEEE rounding.
    pub(crate) fn is_float_arithmetic(self) -> bool {
        matches!(
            self,
            Kind::FloatAdd { .. }
                | Kind::FloatSub { .. }
                | Kind::FloatMul { .. }
                | Kind::FloatFma { .. }
                | Kind::FloatDiv { .. }
                | Kind::FloatReciprocal { .. }
                | Kind::FloatSqrt { .. }
                | Kind::FloatMin { .. }
                | Kind::FloatMax { .. }
        )
    }
}

/// An instruction that is compiled, with the classes of its operands and result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Native {
    pub(crate) kind: Kind,
    pub(crate) operands: [Class; 4],
    pub(crate) result: Class,
}

impl Native {
    fn new(kind: Kind, operands: &[Class], result: Class) -> Option<Self> {
        let mut all = [Class::B64; 4];
        all[..operands.len()].copy_from_slice(operands);
        Some(Native { kind, operands: all, result })
    }

    /// Returns an instruction whose operands and result have one class.
    fn same(kind: Kind, class: Class) -> Option<Self> {
        Some(Native { kind, operands: [class; 4], result: class })
    }
}

/// Returns how an instruction is compiled, or `None` if it is not.
pub(crate) fn native(
    module: &Module,
    code: &Code,
    function: usize,
    instruction: &Instruction,
) -> Option<Native> {
    let Decoded::Map(map) = &instruction.op else { return None };
    let result = Class::of(code.functions[function].type_of(*map.destinations().first()?));
    match instruction.meaning {
        Meaning::Copy => Native::same(Kind::Copy, result),
        Meaning::Not => Native::same(Kind::Not, Class::Pred),
        Meaning::Pair { bits } => {
            let half = Class::of_bits(bits);
            Native::new(Kind::Pair { bits }, &[half, half], Class::of_bits(2 * bits))
        }
        Meaning::Field { start, bits } => {
            let from = if start + bits <= 32 { Class::B32 } else { Class::B64 };
            Native::new(Kind::Field { start, bits }, &[from], Class::of_bits(bits))
        }
        Meaning::Instruction(index) => {
            let id = SymbolId(code.functions[function].symbol);
            let body = module.function(id)?.body.as_deref()?;
            from_op(&body.instructions.get(index as usize)?.op, result)
        }
        Meaning::Other => None,
    }
}

fn from_op(op: &Op, result: Class) -> Option<Native> {
    match op {
        Op::Int(op) => integer(op),
        Op::Bits(op) => bits(op),
        Op::Float(op) => float(op),
        Op::Compare(op) => compare(op, result),
        Op::Convert(ConvertOp::Cvt(cvt)) => convert(cvt, result),
        Op::Convert(ConvertOp::Cvta { to, space, .. }) => {
            let start = match space {
                Space::Shared | Space::SharedCta | Space::SharedCluster => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                Space::Global | Space::Const => 0,
                Space::Param | Space::ParamEntry => PARAM_WINDOW,
                _ => return None,
            };
            // In a function, `.param` is local memory. Only the interpreter can tell which.
            if start == PARAM_WINDOW || result != Class::B64 {
                return None;
            }
            Native::same(Kind::AddConstant(if *to { start.wrapping_neg() } else { start }), Class::B64)
        }
        _ => None,
    }
}

fn integer(op: &IntOp) -> Option<Native> {
    let plain = |ty: ScalarType| ty.packed().is_none() && ty.bits() <= 64;
    match op {
        IntOp::Arith { op, ty, sat: false, relu: false, .. } if plain(*ty) => {
            let signed = ty.is_signed();
            let kind = match op {
                IntArith::Add => Kind::Add,
                IntArith::Sub => Kind::Sub,
                IntArith::MulLo => Kind::Mul,
                IntArith::MulHi => Kind::MulHigh { signed },
                IntArith::Div => Kind::Div { signed },
                IntArith::Rem => Kind::Rem { signed },
                IntArith::Min => Kind::Min { signed },
                IntArith::Max => Kind::Max { signed },
            };
            Native::same(kind, Class::of(*ty))
        }
        IntOp::MulWide { ty, .. } => {
            let class = Class::of(*ty);
            Native::new(
                Kind::MulWide { signed: ty.is_signed() },
                &[class, class],
                Class::of_bits(2 * ty.bits()),
            )
        }
        IntOp::Mad { mode: MulMode::Wide, ty, .. } => {
            let (class, wide) = (Class::of(*ty), Class::of_bits(2 * ty.bits()));
            Native::new(Kind::MadWide { signed: ty.is_signed() }, &[class, class, wide], wide)
        }
        IntOp::Mad { mode: MulMode::Lo, ty, sat: false, .. } if plain(*ty) => {
            Native::same(Kind::MadLow, Class::of(*ty))
        }
        IntOp::Dp4a { a_ty, b_ty, .. } => {
            let signed = [a_ty.is_signed(), b_ty.is_signed()];
            Native::same(Kind::DotProduct { signed }, Class::B32)
        }
        IntOp::Dp2a { half, a_ty, b_ty, .. } => {
            let (signed, high) = ([a_ty.is_signed(), b_ty.is_signed()], *half == Half::Hi);
            Native::same(Kind::HalfDotProduct { signed, high }, Class::B32)
        }
        IntOp::Sad { ty, .. } if ty.bits() == 32 => {
            Native::same(Kind::AbsDifference { signed: ty.is_signed() }, Class::B32)
        }
        IntOp::Abs { ty, .. } if plain(*ty) => Native::same(Kind::Abs, Class::of(*ty)),
        IntOp::Neg { ty, .. } if plain(*ty) => Native::same(Kind::Neg, Class::of(*ty)),
        _ => None,
    }
}

fn bits(op: &BitsOp) -> Option<Native> {
    match op {
        BitsOp::Logic { op, ty, .. } if ty.bits() <= 64 => Native::same(Kind::Logic(*op), Class::of(*ty)),
        BitsOp::Not { ty: ScalarType::Pred, .. } => Native::same(Kind::Not, Class::Pred),
        BitsOp::Not { ty, .. } if ty.bits() <= 64 => Native::same(Kind::BitNot, Class::of(*ty)),
        BitsOp::Lop3 { pred: None, lut, .. } => Native::same(Kind::Lop3(*lut), Class::B32),
        BitsOp::Shl { ty, .. } => Native::new(Kind::ShiftLeft, &[Class::of(*ty), Class::B32], Class::of(*ty)),
        BitsOp::Shr { ty, .. } => Native::new(
            Kind::ShiftRight { signed: ty.is_signed() },
            &[Class::of(*ty), Class::B32],
            Class::of(*ty),
        ),
        BitsOp::Shf { direction, mode, .. } => {
            let (left, wrap) = (*direction == ShiftDirection::Left, *mode == FunnelMode::Wrap);
            Native::same(Kind::Funnel { left, wrap }, Class::B32)
        }
        BitsOp::Prmt { mode: PrmtMode::Generic, .. } => Native::same(Kind::Permute, Class::B32),
        BitsOp::Bfe { ty, b, c, .. } => {
            let (start, bits) = field(*ty, b, c)?;
            let kind = Kind::BitField { start, bits, signed: ty.is_signed() };
            Native::new(kind, &[Class::of(*ty), Class::B32, Class::B32], Class::of(*ty))
        }
        BitsOp::Bfi { ty, c, d, .. } => {
            let (start, bits) = field(*ty, c, d)?;
            let class = Class::of(*ty);
            Native::new(Kind::InsertField { start, bits }, &[class, class, Class::B32, Class::B32], class)
        }
        BitsOp::Clz { ty, .. } => Native::new(Kind::CountZeros, &[Class::of(*ty)], Class::B32),
        BitsOp::Popc { ty, .. } => Native::new(Kind::CountOnes, &[Class::of(*ty)], Class::B32),
        BitsOp::Bfind { ty, mode, .. } => {
            let kind = Kind::FindBit { signed: ty.is_signed(), from_top: *mode == BfindMode::ShiftAmount };
            Native::new(kind, &[Class::of(*ty)], Class::B32)
        }
        BitsOp::Brev { ty, .. } => Native::same(Kind::Reverse, Class::of(*ty)),
        _ => None,
    }
}

/// Returns the start and length of a field, if both are constants and it lies inside the type.
fn field(ty: ScalarType, start: &Operand, length: &Operand) -> Option<(u32, u32)> {
    let (Operand::Imm(Imm::Int(start)), Operand::Imm(Imm::Int(length))) = (start, length) else {
        return None;
    };
    let (start, length) = (u32::try_from(*start).ok()?, u32::try_from(*length).ok()?);
    (length > 0 && start.checked_add(length)? <= ty.bits()).then_some((start, length))
}

/// Returns the class of single and double precision, which the machine has itself.
fn machine_float(ty: ScalarType) -> Option<Class> {
    matches!(ty, ScalarType::F32 | ScalarType::F64).then(|| Class::of(ty))
}

/// Returns arithmetic on `.f16` or `.f16x2`.
fn half(op: HalfArith, ty: ScalarType) -> Option<Native> {
    let (class, packed) = match ty {
        ScalarType::F16 => (Class::B16, false),
        ScalarType::F16x2 => (Class::B32, true),
        _ => return None,
    };
    Native::same(Kind::Half { op, packed }, class)
}

fn float(op: &FloatOp) -> Option<Native> {
    let nearest = |rounding: Option<Rounding>| rounding.is_none_or(|rounding| rounding == Rounding::Rn);
    match op {
        FloatOp::Arith { op, ty: ty @ (ScalarType::F16 | ScalarType::F16x2), rounding, ftz, sat, .. } => {
            let op = match op {
                FloatArith::Add => HalfArith::Add,
                FloatArith::Sub => HalfArith::Sub,
                FloatArith::Mul => HalfArith::Mul,
            };
            half(op, *ty).filter(|_| nearest(*rounding) && !ftz && !sat)
        }
        FloatOp::Fma {
            ty: ty @ (ScalarType::F16 | ScalarType::F16x2),
            rounding: Rounding::Rn,
            ftz: false,
            sat: false,
            relu: false,
            oob: false,
            ..
        } => half(HalfArith::Fma, *ty),
        FloatOp::Arith { op, ty, rounding, ftz, sat: false, .. } if nearest(*rounding) => {
            let kind = match op {
                FloatArith::Add => Kind::FloatAdd { ftz: *ftz },
                FloatArith::Sub => Kind::FloatSub { ftz: *ftz },
                FloatArith::Mul => Kind::FloatMul { ftz: *ftz },
            };
            Native::same(kind, machine_float(*ty)?)
        }
        FloatOp::Fma {
            ty: ScalarType::F32,
            rounding: Rounding::Rm,
            ftz: false,
            sat: false,
            relu: false,
            oob: false,
            ..
        } => Native::same(Kind::FloatFmaDown, Class::F32),
        FloatOp::Fma { ty, rounding: Rounding::Rn, ftz, sat: false, relu: false, oob: false, .. } => {
            Native::same(Kind::FloatFma { ftz: *ftz }, machine_float(*ty)?)
        }
        FloatOp::Mad { ty, rounding, ftz, sat: false, .. } if nearest(*rounding) => {
            Native::same(Kind::FloatFma { ftz: *ftz }, machine_float(*ty)?)
        }
        FloatOp::Div { ty, precision, ftz, .. } => {
            let kind = match precision {
                FloatPrecision::Rounded(Rounding::Rn) | FloatPrecision::Full => Kind::FloatDiv { ftz: *ftz },
                FloatPrecision::Approx => Kind::FloatDivApprox { ftz: *ftz },
                FloatPrecision::Rounded(_) => return None,
            };
            Native::same(kind, machine_float(*ty)?)
        }
        FloatOp::Rcp {
            ty: ScalarType::F32,
            precision: FloatPrecision::Rounded(Rounding::Rn) | FloatPrecision::Approx,
            ftz,
            ..
        } => Native::same(Kind::FloatReciprocal { ftz: *ftz }, Class::F32),
        FloatOp::Rcp {
            ty: ScalarType::F64, precision: FloatPrecision::Rounded(Rounding::Rn), ftz, ..
        } => Native::same(Kind::FloatReciprocal { ftz: *ftz }, Class::F64),
        FloatOp::Sqrt { ty, precision, ftz, .. } => match precision {
            FloatPrecision::Rounded(Rounding::Rn) => {
                Native::same(Kind::FloatSqrt { ftz: *ftz }, machine_float(*ty)?)
            }
            FloatPrecision::Approx if *ty == ScalarType::F32 => {
                Native::same(Kind::FloatSqrt { ftz: *ftz }, Class::F32)
            }
            _ => None,
        },
        FloatOp::Approx { op: ApproxOp::Rsqrt, ty: ScalarType::F32, ftz, .. } => {
            Native::same(Kind::FloatRsqrt { ftz: *ftz }, Class::F32)
        }
        FloatOp::Approx { op, ty: ScalarType::F32, ftz, .. } => {
            Native::same(Kind::FloatApprox { op: *op, ftz: *ftz }, Class::F32)
        }
        FloatOp::Abs { ty, ftz, .. } => Native::same(Kind::FloatAbs { ftz: *ftz }, machine_float(*ty)?),
        FloatOp::Neg { ty, ftz, .. } => Native::same(Kind::FloatNeg { ftz: *ftz }, machine_float(*ty)?),
        FloatOp::MinMax { op, ty, ftz, nan, xorsign_abs: false, abs: false, c: None, .. } => {
            let (ftz, nan) = (*ftz, *nan);
            let kind = match op {
                MinMax::Min => Kind::FloatMin { ftz, nan },
                MinMax::Max => Kind::FloatMax { ftz, nan },
            };
            Native::same(kind, machine_float(*ty)?)
        }
        _ => None,
    }
}

fn compare(op: &CompareOp, result: Class) -> Option<Native> {
    match op {
        CompareOp::Setp { cmp, combine, ftz, ty, .. } => {
            if ty.packed().is_some() || matches!(ty, ScalarType::F16 | ScalarType::Bf16) || ty.bits() > 64 {
                return None;
            }
            let class = Class::of(*ty);
            let unsigned = matches!(cmp, Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs);
            let kind = Kind::Compare {
                compare: *cmp,
                signed: ty.is_signed() && !unsigned,
                ftz: *ftz,
                combine: combine.map(|combine| combine.op),
            };
            Native::new(kind, &[class, class, Class::Pred], Class::Pred)
        }
        CompareOp::Selp { ty, .. } => {
            let class = if result.bits() == ty.bits() { result } else { Class::of(*ty) };
            Native::new(Kind::Select, &[class, class, Class::Pred], class)
        }
        _ => None,
    }
}

fn convert(cvt: &Cvt, result: Class) -> Option<Native> {
    let &Cvt { dst_ty: to, src_ty: from, rounding, ftz, sat, satfinite, relu, scaled, .. } = cvt;
    if satfinite || relu || scaled {
        return None;
    }
    if cvt.srcs.len() != 1 {
        let kind = match to {
            ScalarType::F16x2 => Kind::FloatsToHalves,
            ScalarType::Bf16x2 => Kind::FloatsToBfloats,
            _ => return None,
        };
        let fits = from == ScalarType::F32
            && rounding == Some(CvtRounding::Rn)
            && !ftz
            && !sat
            && cvt.srcs.len() == 2
            && result.bits() == 32;
        return fits.then(|| Native::new(kind, &[Class::F32, Class::F32], Class::B32))?;
    }
    if sat {
        let plain = (from, to) == (ScalarType::F32, ScalarType::F32) && rounding.is_none();
        if plain {
            return Native::same(Kind::FloatSaturate { ftz }, Class::F32);
        }
        if !(from.is_integer() && to.is_integer() && from.bits() <= 32 && to.bits() < from.bits()) {
            return None;
        }
        let kind = Kind::Saturate { signed: from.is_signed(), bits: to.bits(), to_signed: to.is_signed() };
        let fits = matches!(result, Class::B16 | Class::B32);
        return fits.then(|| Native::new(kind, &[Class::of_bits(from.bits())], result))?;
    }
    let integer = |ty: ScalarType| ty.class() != gridloom_ptx::TypeClass::Float && ty.packed().is_none();
    let nearest = matches!(rounding, None | Some(CvtRounding::Rn));
    let integral = match rounding {
        Some(CvtRounding::Rni) => Some(Integral::Nearest),
        Some(CvtRounding::Rzi) => Some(Integral::Zero),
        Some(CvtRounding::Rmi) => Some(Integral::Down),
        Some(CvtRounding::Rpi) => Some(Integral::Up),
        _ => None,
    };
    if from.bits() > 64 || to.bits() > 64 || from == ScalarType::Pred || to == ScalarType::Pred {
        return None;
    }
    match (integer(from), integer(to)) {
        (true, true) => {
            let kind = Kind::Extend {
                from: from.bits(),
                signed: from.is_signed(),
                to: to.bits(),
                to_signed: to.is_signed(),
            };
            // The register may be wider than the type.
            let bits = result.bits().max(to.bits());
            Native::new(kind, &[Class::of_bits(from.bits())], Class::of_bits(bits))
        }
        // Such an integer is exact in either precision.
        (true, false) if nearest || from.bits() < 32 => {
            let kind = Kind::IntToFloat { signed: from.is_signed() };
            Native::new(kind, &[Class::of_bits(from.bits())], machine_float(to)?)
        }
        (false, true) if to.bits() >= 32 && result.bits() == to.bits() => {
            let kind = Kind::FloatToInt { signed: to.is_signed(), integral: integral?, ftz };
            Native::new(kind, &[machine_float(from)?], Class::of_bits(to.bits()))
        }
        (false, true) if to.bits() < 32 && from == ScalarType::F32 => {
            let (signed, bits) = (to.is_signed(), to.bits());
            let kind = Kind::FloatToNarrow { signed, bits, integral: integral?, ftz };
            matches!(result, Class::B16 | Class::B32).then(|| Native::new(kind, &[Class::F32], result))?
        }
        (false, false) if result.bits() == to.bits() && (from.bits() == 16 || to.bits() == 16) => {
            let nearest = rounding == Some(CvtRounding::Rn);
            let (kind, from, to) = match (from, to) {
                (ScalarType::F16, ScalarType::F32) => (Kind::HalfToFloat, Class::B16, Class::F32),
                (ScalarType::Bf16, ScalarType::F32) if !ftz => (Kind::BfloatToFloat, Class::B16, Class::F32),
                (ScalarType::F32, ScalarType::F16) if nearest => (Kind::FloatToHalf, Class::F32, Class::B16),
                (ScalarType::F32, ScalarType::Bf16) if nearest && !ftz => {
                    (Kind::FloatToBfloat, Class::F32, Class::B16)
                }
                _ => return None,
            };
            Native::new(kind, &[from], to)
        }
        (false, false) => match (machine_float(from)?, machine_float(to)?) {
            (Class::F32, Class::F64) if integral.is_none() => {
                Native::new(Kind::Promote { ftz }, &[Class::F32], Class::F64)
            }
            (Class::F64, Class::F32) if nearest => {
                Native::new(Kind::Demote { ftz }, &[Class::F64], Class::F32)
            }
            (a, b) if a == b => Native::new(Kind::RoundIntegral { integral: integral?, ftz }, &[a], a),
            _ => None,
        },
        _ => None,
    }
}
