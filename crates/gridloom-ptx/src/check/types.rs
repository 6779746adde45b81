//! Which register types an operand accepts, and which types an instruction exists for.

use crate::model::op::{
    ApproxOp, AtomOp, AtomicOp, AtomicRmw, BitsOp, Compare, CompareOp, ConvertOp, FloatOp, FloatPrecision,
    IntArith, IntOp, MemoryOp, Op, ReduxOp, Rule, WarpOp,
};
use crate::model::{ScalarType, TypeClass};

/// Returns whether a register of type `reg` is allowed where `rule` applies.
pub(super) fn fits(rule: Rule, reg: ScalarType) -> bool {
    match rule {
        Rule::Any => true,
        Rule::Pred => reg == ScalarType::Pred,
        _ if reg == ScalarType::Pred => false,
        Rule::Value => true,
        Rule::Address => matches!(reg.size(), 2 | 4 | 8) && !reg.is_float(),
        Rule::Is(ty) => same_kind(ty, reg) && ty.size() == reg.size(),
        Rule::AtLeast(ty) => {
            let wide_enough = reg.size() >= ty.size();
            // A float register holds exactly its own width.
            let exact = !reg.is_float() || reg.size() == ty.size();
            same_kind(ty, reg) && wide_enough && exact
        }
    }
}

/// Returns whether types are compatible: untyped bits with everything, integers with integers, a
/// float with its own format.
fn same_kind(ty: ScalarType, reg: ScalarType) -> bool {
    match (ty.class(), reg.class()) {
        (TypeClass::Opaque, _) | (_, TypeClass::Opaque) => true,
        (TypeClass::Bits, _) | (_, TypeClass::Bits) => true,
        (TypeClass::Float, TypeClass::Float) => ty == reg,
        // Most compilers have no register types for packed halves and the small formats.
        (TypeClass::Float, _) => !matches!(ty, ScalarType::F32 | ScalarType::F64 | ScalarType::F16),
        (_, TypeClass::Float) => false,
        _ => true,
    }
}

/// Returns the first type of the operation for which it does not exist, if any.
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
            let packed =
                matches!(op, IntArith::Add | IntArith::Min | IntArith::Max) && matches!(ty, U16x2 | S16x2);
            let modified = (!sat || matches!(ty, S32)) && (!relu || matches!(ty, S32 | S16x2));
            unless((packed || is_plain_int(*ty)) && modified, *ty)
        }
        IntOp::MulWide { ty, .. } => unless(matches!(ty, U16 | S16 | U32 | S32), *ty),
        IntOp::Mul24 { ty, .. } | IntOp::Mad24 { ty, .. } => unless(matches!(ty, U32 | S32), *ty),
        IntOp::Mad { mode, ty, sat, .. } => {
            let narrow = *mode != crate::model::op::MulMode::Wide || !matches!(ty, U64 | S64);
            unless(is_plain_int(*ty) && narrow && (!sat || *ty == S32), *ty)
        }
        IntOp::Carry { carry_out, ty, .. } => {
            unless(matches!(ty, U32 | S32 | U64 | S64) || (!carry_out && matches!(ty, U16 | S16)), *ty)
        }
        IntOp::MadCarry { ty, .. } => unless(matches!(ty, U32 | S32 | U64 | S64), *ty),
        IntOp::Sad { ty, .. } => unless(is_plain_int(*ty), *ty),
        IntOp::Abs { ty, .. } | IntOp::Neg { ty, .. } => unless(matches!(ty, S16 | S32 | S64), *ty),
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
        FloatOp::Arith { ty, ftz, sat, .. } | FloatOp::Fma { ty, ftz, sat, .. } => {
            let flushes = matches!(ty, F32 | F32x2 | F16 | F16x2);
            let clamps = matches!(ty, F32 | F16 | F16x2);
            let exists = matches!(ty, F32 | F64 | F32x2) || is_half(*ty);
            unless(exists && (!ftz || flushes) && (!sat || clamps), *ty)
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
        FloatOp::Approx { op, ty, ftz, .. } => match op {
            ApproxOp::Rsqrt => unless(matches!(ty, F32 | F64), *ty),
            // `ex2` on `.f16` never has `.ftz`; on `.bf16` it always has.
            ApproxOp::Ex2 if matches!(ty, F16 | F16x2) => unless(!ftz, *ty),
            ApproxOp::Ex2 if matches!(ty, Bf16 | Bf16x2) => unless(*ftz, *ty),
            ApproxOp::Ex2 | ApproxOp::Tanh => unless(*ty == F32 || is_half(*ty), *ty),
            ApproxOp::Sin | ApproxOp::Cos | ApproxOp::Lg2 => unless(*ty == F32, *ty),
        },
        FloatOp::Abs { ty, .. } | FloatOp::Neg { ty, .. } => {
            unless(matches!(ty, F32 | F64) || is_half(*ty), *ty)
        }
        FloatOp::MinMax { ty, nan, .. } => unless(*ty == F32 || (*ty == F64 && !nan) || is_half(*ty), *ty),
    }
}

fn compare(op: &CompareOp) -> Option<ScalarType> {
    use ScalarType::*;
    let comparable =
        |ty: ScalarType| is_plain_int(ty) || is_half(ty) || matches!(ty, B16 | B32 | B64 | F32 | F64);
    let ordered = |cmp: Compare, ty: ScalarType| match cmp {
        Compare::Eq | Compare::Ne => true,
        Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge => ty.class() != TypeClass::Bits,
        Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs => ty.class() == TypeClass::Unsigned,
        _ => ty.is_float(),
    };
    match op {
        CompareOp::Set { cmp, dst_ty, ty, .. } => {
            let holds = match dst_ty {
                U32 | S32 | F32 | F16 | Bf16 => true,
                U16 | S16 => matches!(ty, F16 | Bf16),
                F16x2 | Bf16x2 => ty == dst_ty,
                _ => false,
            };
            unless(comparable(*ty) && ordered(*cmp, *ty), *ty).or(unless(holds, *dst_ty))
        }
        CompareOp::Setp { cmp, ty, q, .. } => {
            let one_result = matches!(ty, F16 | Bf16) && q.is_some();
            unless(comparable(*ty) && ordered(*cmp, *ty) && !one_result, *ty)
        }
        CompareOp::Selp { ty, .. } => unless(is_selectable(*ty), *ty),
        CompareOp::Slct { ty, cond_ty, .. } => {
            unless(is_selectable(*ty), *ty).or(unless(matches!(cond_ty, S32 | F32), *cond_ty))
        }
    }
}

fn is_selectable(ty: ScalarType) -> bool {
    use ScalarType::*;
    is_plain_int(ty) || matches!(ty, B16 | B32 | B64 | F32 | F64)
}

fn convert(op: &ConvertOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        ConvertOp::Cvt(cvt) => {
            let convertible = |ty: ScalarType| ty.is_float() || is_plain_int(ty) || matches!(ty, U8 | S8);
            unless(convertible(cvt.dst_ty), cvt.dst_ty).or(unless(convertible(cvt.src_ty), cvt.src_ty))
        }
        ConvertOp::CvtPack { ty, .. } => unless(*ty == S32, *ty),
        ConvertOp::Cvta { ty, .. } => unless(matches!(ty, U32 | U64), *ty),
        ConvertOp::Mapa { ty, .. } | ConvertOp::Getctarank { ty, .. } => {
            unless(matches!(ty, U32 | U64 | S32 | S64), *ty)
        }
        ConvertOp::Isspacep { .. } => None,
        ConvertOp::Mov { ty, .. } => unless(is_selectable(*ty) || matches!(ty, Pred | B128), *ty),
        ConvertOp::MovVector { ty, .. } => unless(is_selectable(*ty), *ty),
        ConvertOp::Pack { ty, .. } | ConvertOp::Unpack { ty, .. } => {
            unless(is_plain_int(*ty) || matches!(ty, B16 | B32 | B64 | B128 | F64), *ty)
        }
    }
}

fn memory(op: &MemoryOp) -> Option<ScalarType> {
    use ScalarType::*;
    match op {
        MemoryOp::Ld { ty, .. } | MemoryOp::Ldu { ty, .. } | MemoryOp::St { ty, .. } => {
            unless(is_selectable(*ty) || matches!(ty, U8 | S8 | B8 | B128), *ty)
        }
        MemoryOp::Alloca { ty, .. } | MemoryOp::StackSave { ty, .. } | MemoryOp::StackRestore { ty, .. } => {
            unless(matches!(ty, U32 | U64), *ty)
        }
        _ => None,
    }
}

fn atomic(rmw: &AtomicRmw) -> Option<ScalarType> {
    use ScalarType::*;
    let ty = rmw.ty;
    let ok = match rmw.op {
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64),
        AtomOp::Cas => matches!(ty, B16 | B32 | B64 | B128),
        AtomOp::Exch => matches!(ty, B32 | B64 | B128),
        AtomOp::Add => matches!(ty, U32 | S32 | U64 | F32 | F64) || is_half(ty),
        AtomOp::Inc | AtomOp::Dec => ty == U32,
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | S32 | U64 | S64) || (is_half(ty) && rmw.b.len() > 1),
    };
    // Additions of halves never flush, and must say `.noftz`.
    unless(ok && rmw.noftz == is_half(ty), ty)
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
