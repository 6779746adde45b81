//! Which register types fit where, and which types an instruction exists for.

use crate::model::op::{
    ApproxOp, AtomOp, AtomicOp, AtomicRmw, BitsOp, CompareOp, ConvertOp, FloatOp, FloatPrecision, IntArith,
    IntOp, MemoryOp, Op, ReduxOp, Rule, WarpOp,
};
use crate::model::{ScalarType, TypeClass};

/// Whether a register of type `reg` may stand where `rule` applies.
pub(super) fn fits(rule: Rule, reg: ScalarType) -> bool {
    match rule {
        Rule::Any => true,
        Rule::Pred => reg == ScalarType::Pred,
        _ if reg == ScalarType::Pred => false,
        Rule::Value => true,
        Rule::Address => matches!(reg.size(), 4 | 8) && !reg.is_float(),
        Rule::Is(ty) => same_kind(ty, reg) && width(ty) == width(reg),
        Rule::AtLeast(ty) => {
            let wide_enough = width(reg) >= width(ty);
            // A float register holds exactly its own width.
            let exact = !reg.is_float() || width(reg) == width(ty);
            same_kind(ty, reg) && wide_enough && exact
        }
    }
}

/// The width of a register; 8-bit types live in 16-bit registers, so both count as one where widths must agree.
fn width(ty: ScalarType) -> u32 {
    ty.size()
}

/// Untyped bits go with everything, integers with integers, and a float with its own format.
fn same_kind(ty: ScalarType, reg: ScalarType) -> bool {
    match (ty.class(), reg.class()) {
        (TypeClass::Opaque, _) | (_, TypeClass::Opaque) => true,
        (TypeClass::Bits, _) | (_, TypeClass::Bits) => true,
        (TypeClass::Float, TypeClass::Float) => ty == reg,
        // Packed halves and the small formats have no register type of their own in most compilers.
        (TypeClass::Float, _) => !matches!(ty, ScalarType::F32 | ScalarType::F64 | ScalarType::F16),
        (_, TypeClass::Float) => false,
        _ => true,
    }
}

/// The first type of the operation that it does not exist for, if any.
pub(super) fn wrong_type(op: &Op) -> Option<ScalarType> {
    match op {
        Op::Int(op) => int(op),
        Op::Bits(op) => bits(op),
        Op::Float(op) => float(op),
        Op::Compare(op) => compare(op),
        Op::Convert(op) => convert(op),
        Op::Memory(op) => memory(op),
        Op::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => atomic(rmw),
        Op::Warp(op) => warp(op),
        Op::Control(_) | Op::Sync(_) | Op::Unsupported(_) => None,
    }
}

fn unless(ok: bool, ty: ScalarType) -> Option<ScalarType> {
    (!ok).then_some(ty)
}

fn is_plain_int(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, U16 | U32 | U64 | S16 | S32 | S64)
}

fn int(op: &IntOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        IntOp::Arith { op, ty, sat, relu, .. } => {
            let packed = matches!(op, IntArith::Add | IntArith::Sub | IntArith::Min | IntArith::Max)
                && matches!(ty, U16x2 | S16x2);
            let modified = (!sat || matches!(ty, S32)) && (!relu || matches!(ty, S32 | S16x2));
            unless((packed || is_plain_int(*ty)) && modified, *ty)
        }
        IntOp::MulWide { ty, .. } => unless(matches!(ty, U16 | S16 | U32 | S32), *ty),
        IntOp::Mul24 { ty, .. } | IntOp::Mad24 { ty, .. } => unless(matches!(ty, U32 | S32), *ty),
        IntOp::Mad { mode, ty, sat, .. } => {
            let narrow = *mode != crate::model::op::MulMode::Wide || !matches!(ty, U64 | S64);
            unless(is_plain_int(*ty) && narrow && (!sat || *ty == S32), *ty)
        }
        IntOp::Carry { ty, .. } | IntOp::MadCarry { ty, .. } => {
            unless(matches!(ty, U32 | S32 | U64 | S64 | B32 | B64), *ty)
        }
        IntOp::Sad { ty, .. } => unless(is_plain_int(*ty), *ty),
        IntOp::Abs { ty, .. } | IntOp::Neg { ty, .. } => unless(matches!(ty, S16 | S32 | S64 | S16x2), *ty),
        IntOp::Dp4a { a_ty, b_ty, .. } | IntOp::Dp2a { a_ty, b_ty, .. } => {
            unless(matches!(a_ty, U32 | S32), *a_ty).or(unless(matches!(b_ty, U32 | S32), *b_ty))
        }
    }
}

fn bits(op: &BitsOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        BitsOp::Logic { ty, .. } | BitsOp::Not { ty, .. } => {
            unless(matches!(ty, Pred | B16 | B32 | B64), *ty)
        }
        BitsOp::Cnot { ty, .. } | BitsOp::Shl { ty, .. } => unless(matches!(ty, B16 | B32 | B64), *ty),
        BitsOp::Shr { ty, .. } => unless(is_plain_int(*ty) || matches!(ty, B16 | B32 | B64), *ty),
        BitsOp::Bfe { ty, .. } | BitsOp::Bfind { ty, .. } => unless(matches!(ty, U32 | U64 | S32 | S64), *ty),
        BitsOp::Bfi { ty, .. }
        | BitsOp::Brev { ty, .. }
        | BitsOp::Clz { ty, .. }
        | BitsOp::Popc { ty, .. } => unless(matches!(ty, B32 | B64), *ty),
        BitsOp::Szext { ty, .. } => unless(matches!(ty, U32 | S32), *ty),
        BitsOp::Lop3 { .. }
        | BitsOp::Shf { .. }
        | BitsOp::Fns { .. }
        | BitsOp::Prmt { .. }
        | BitsOp::Bmsk { .. } => None,
    }
}

fn is_half(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, F16 | F16x2 | Bf16 | Bf16x2)
}

fn float(op: &FloatOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        FloatOp::Arith { ty, .. } | FloatOp::Fma { ty, .. } => {
            unless(matches!(ty, F32 | F64 | F32x2) || is_half(*ty), *ty)
        }
        FloatOp::Mad { ty, .. } | FloatOp::Copysign { ty, .. } | FloatOp::Testp { ty, .. } => {
            unless(matches!(ty, F32 | F64), *ty)
        }
        FloatOp::Div { ty, precision, .. } => {
            unless(*ty == F32 || (*ty == F64 && matches!(precision, FloatPrecision::Rounded(_))), *ty)
        }
        FloatOp::Rcp { ty, .. } => unless(matches!(ty, F32 | F64), *ty),
        FloatOp::Sqrt { ty, precision, .. } => {
            unless(*ty == F32 || (*ty == F64 && matches!(precision, FloatPrecision::Rounded(_))), *ty)
        }
        FloatOp::Approx { op, ty, .. } => match op {
            ApproxOp::Rsqrt => unless(matches!(ty, F32 | F64), *ty),
            ApproxOp::Ex2 | ApproxOp::Tanh => unless(*ty == F32 || is_half(*ty), *ty),
            ApproxOp::Sin | ApproxOp::Cos | ApproxOp::Lg2 => unless(*ty == F32, *ty),
        },
        FloatOp::Abs { ty, .. } | FloatOp::Neg { ty, .. } | FloatOp::MinMax { ty, .. } => {
            unless(matches!(ty, F32 | F64 | F32x2) || is_half(*ty), *ty)
        }
    }
}

fn compare(op: &CompareOp) -> Option<ScalarType> {
    use ScalarType::*;
    let comparable =
        |ty: ScalarType| is_plain_int(ty) || is_half(ty) || matches!(ty, B16 | B32 | B64 | F32 | F64);
    match op {
        CompareOp::Set { dst_ty, ty, .. } => unless(comparable(*ty), *ty)
            .or(unless(matches!(dst_ty, U16 | S16 | U32 | S32 | F32) || is_half(*dst_ty), *dst_ty)),
        CompareOp::Setp { ty, .. } => unless(comparable(*ty), *ty),
        CompareOp::Selp { ty, .. } | CompareOp::Slct { ty, .. } => {
            unless(is_plain_int(*ty) || matches!(ty, B16 | B32 | B64 | F16 | Bf16 | F32 | F64), *ty)
        }
    }
}

fn convert(op: &ConvertOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        ConvertOp::Cvt(cvt) => {
            let convertible =
                |ty: ScalarType| ty.is_float() || is_plain_int(ty) || matches!(ty, U8 | S8 | B8 | B16 | B32);
            unless(convertible(cvt.dst_ty), cvt.dst_ty).or(unless(convertible(cvt.src_ty), cvt.src_ty))
        }
        ConvertOp::CvtPack { ty, .. } => unless(*ty == S32, *ty),
        ConvertOp::Cvta { ty, .. } | ConvertOp::Mapa { ty, .. } | ConvertOp::Getctarank { ty, .. } => {
            unless(matches!(ty, U32 | U64), *ty)
        }
        ConvertOp::Isspacep { .. } => None,
        ConvertOp::Mov { ty, .. } => unless(
            is_plain_int(*ty) || is_half(*ty) || matches!(ty, Pred | B16 | B32 | B64 | B128 | F32 | F64),
            *ty,
        ),
        ConvertOp::Pack { ty, .. } | ConvertOp::Unpack { ty, .. } => {
            unless(is_plain_int(*ty) || matches!(ty, B16 | B32 | B64 | B128 | F64), *ty)
        }
    }
}

fn memory(op: &MemoryOp) -> Option<ScalarType> {
    match op {
        MemoryOp::Ld { ty, .. } | MemoryOp::Ldu { ty, .. } | MemoryOp::St { ty, .. } => {
            unless(!matches!(ty.class(), TypeClass::Predicate | TypeClass::Opaque), *ty)
        }
        MemoryOp::Alloca { ty, .. } | MemoryOp::StackSave { ty, .. } | MemoryOp::StackRestore { ty, .. } => {
            unless(matches!(ty, ScalarType::U32 | ScalarType::U64 | ScalarType::B32 | ScalarType::B64), *ty)
        }
        _ => None,
    }
}

fn atomic(rmw: &AtomicRmw) -> Option<ScalarType> {
    use ScalarType::*;
    let ty = rmw.ty;
    let ok = match rmw.op {
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64),
        AtomOp::Cas => matches!(ty, B16 | B32 | B64 | B128 | U32 | S32 | U64 | S64),
        AtomOp::Exch => matches!(ty, B32 | B64 | B128 | U32 | S32 | U64 | S64 | F32),
        AtomOp::Add => matches!(ty, U32 | S32 | U64 | S64 | F32 | F64) || is_half(ty),
        AtomOp::Inc | AtomOp::Dec => ty == U32,
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | S32 | U64 | S64) || is_half(ty),
    };
    unless(ok, ty)
}

fn warp(op: &WarpOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        WarpOp::Match { ty, .. } => unless(matches!(ty, B32 | B64), *ty),
        WarpOp::Redux { op, ty, .. } => {
            let ok = match op {
                ReduxOp::Add => matches!(ty, U32 | S32),
                ReduxOp::Min | ReduxOp::Max => matches!(ty, U32 | S32 | F32),
                ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => *ty == B32,
            };
            unless(ok, *ty)
        }
        _ => None,
    }
}
