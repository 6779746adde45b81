//! Visitor of an instruction's operands, with the type each must have.

use super::{
    AtomicOp, BarrierKind, BitsOp, CallArg, CallTarget, CompareOp, ControlOp, ConvertOp, FloatOp, IntOp,
    MbarrierOp, MemoryOp, MulMode, Op, RawToken, RedOp, SyncOp, VoteMode, WarpOp,
};
use crate::model::{Address, AddressBase, Operand, PredOperand, RegId, ScalarType};

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperandRef<'a> {
    /// A register that is written.
    Def(RegId),
    /// A register that is read, where only a register is allowed.
    Use(RegId),
    /// A value that is read.
    Src(&'a Operand),
    /// A predicate that is read.
    Pred(&'a PredOperand),
    /// An address. Its register, if it has one, is read.
    Addr(&'a Address),
}

impl OperandRef<'_> {
    /// Returns the register read or written here, if there is one.
    #[must_use]
    pub fn reg(&self) -> Option<RegId> {
        match self {
            OperandRef::Def(reg) | OperandRef::Use(reg) => Some(*reg),
            OperandRef::Src(operand) => operand.as_reg(),
            OperandRef::Pred(PredOperand::Reg { reg, .. }) => Some(*reg),
            OperandRef::Pred(PredOperand::Const(_)) => None,
            OperandRef::Addr(address) => match address.base {
                AddressBase::Reg(reg) => Some(reg),
                _ => None,
            },
        }
    }
}

/// The type that a register must have as an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Compatible with this type: the same size, and no mix of integer and floating point.
    Is(ScalarType),
    /// As [`Rule::Is`], or wider: loads, stores and conversions.
    AtLeast(ScalarType),
    /// A predicate.
    Pred,
    /// An address: 32 or 64 bits, not floating point.
    Address,
    /// Anything but a predicate.
    Value,
    /// Anything.
    Any,
}

/// Calls the visitor with each kind of operand.
struct Visit<'v, 'a>(&'v mut dyn FnMut(OperandRef<'a>, Rule));

impl<'a> Visit<'_, 'a> {
    fn def(&mut self, reg: RegId, ty: ScalarType) {
        let rule = if ty == ScalarType::Pred { Rule::Pred } else { Rule::Is(ty) };
        (self.0)(OperandRef::Def(reg), rule);
    }

    fn maybe_def(&mut self, reg: Option<RegId>, ty: ScalarType) {
        if let Some(reg) = reg {
            self.def(reg, ty);
        }
    }

    fn srcs(&mut self, ty: ScalarType, operands: impl IntoIterator<Item = &'a Operand>) {
        let rule = if ty == ScalarType::Pred { Rule::Pred } else { Rule::Is(ty) };
        for operand in operands {
            (self.0)(OperandRef::Src(operand), rule);
        }
    }

    fn pred(&mut self, pred: &'a PredOperand) {
        (self.0)(OperandRef::Pred(pred), Rule::Pred);
    }

    fn addr(&mut self, address: &'a Address) {
        (self.0)(OperandRef::Addr(address), Rule::Address);
    }
}

/// Returns the type twice as wide, as far as there is one.
pub(crate) const fn twice(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::S32 => ScalarType::S64,
        _ => ScalarType::U64,
    }
}

impl Op {
    /// Calls `f` with each operand and the type it must have: destinations first, then sources, in
    /// the order of the text. The guard is not included.
    pub fn for_each_operand<'a>(&'a self, f: &mut dyn FnMut(OperandRef<'a>, Rule)) {
        let mut v = Visit(f);
        match self {
            Op::Int(op) => int(&mut v, op),
            Op::Bits(op) => bits(&mut v, op),
            Op::Float(op) => float(&mut v, op),
            Op::Compare(op) => compare(&mut v, op),
            Op::Convert(op) => convert(&mut v, op),
            Op::Memory(op) => memory(&mut v, op),
            Op::Atomic(op) => atomic(&mut v, op),
            Op::Control(op) => control(&mut v, op),
            Op::Sync(op) => sync(&mut v, op),
            Op::Warp(op) => warp(&mut v, op),
            Op::Unsupported(op) => {
                for token in &op.operands {
                    if let RawToken::Reg(reg) = token {
                        (v.0)(OperandRef::Use(*reg), Rule::Any);
                    }
                }
            }
        }
    }
}

fn int<'a>(v: &mut Visit<'_, 'a>, op: &'a IntOp) {
    match op {
        IntOp::Arith { ty, dst, a, b, .. }
        | IntOp::Mul24 { ty, dst, a, b, .. }
        | IntOp::Carry { ty, dst, a, b, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
        }
        IntOp::MulWide { ty, dst, a, b } => {
            v.def(*dst, twice(*ty));
            v.srcs(*ty, [a, b]);
        }
        IntOp::Mad { mode, ty, dst, a, b, c, .. } => {
            let wide = if *mode == MulMode::Wide { twice(*ty) } else { *ty };
            v.def(*dst, wide);
            v.srcs(*ty, [a, b]);
            v.srcs(wide, [c]);
        }
        IntOp::Mad24 { ty, dst, a, b, c, .. } | IntOp::MadCarry { ty, dst, a, b, c, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b, c]);
        }
        IntOp::Sad { ty, dst, a, b, c } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b, c]);
        }
        IntOp::Abs { ty, dst, a } | IntOp::Neg { ty, dst, a } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
        }
        IntOp::Dp4a { dst, a, b, c, .. } | IntOp::Dp2a { dst, a, b, c, .. } => {
            v.def(*dst, ScalarType::S32);
            v.srcs(ScalarType::S32, [a, b, c]);
        }
    }
}

fn bits<'a>(v: &mut Visit<'_, 'a>, op: &'a BitsOp) {
    use ScalarType::{B32, U32};
    match op {
        BitsOp::Logic { ty, dst, a, b, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
        }
        BitsOp::Not { ty, dst, a } | BitsOp::Cnot { ty, dst, a } | BitsOp::Brev { ty, dst, a } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
        }
        BitsOp::Lop3 { dst, pred, a, b, c, .. } => {
            v.maybe_def(*dst, B32);
            if let Some(pred) = pred {
                v.def(pred.dst, ScalarType::Pred);
            }
            v.srcs(B32, [a, b, c]);
            if let Some(pred) = pred {
                v.pred(&pred.q);
            }
        }
        BitsOp::Shl { ty, dst, a, b } | BitsOp::Shr { ty, dst, a, b } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
            v.srcs(U32, [b]);
        }
        BitsOp::Shf { dst, a, b, c, .. } | BitsOp::Prmt { dst, a, b, c, .. } => {
            v.def(*dst, B32);
            v.srcs(B32, [a, b, c]);
        }
        BitsOp::Bfe { ty, dst, a, b, c } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
            v.srcs(U32, [b, c]);
        }
        BitsOp::Bfi { ty, dst, a, b, c, d } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
            v.srcs(U32, [c, d]);
        }
        BitsOp::Bfind { ty, dst, a, .. } | BitsOp::Clz { ty, dst, a } | BitsOp::Popc { ty, dst, a } => {
            v.def(*dst, U32);
            v.srcs(*ty, [a]);
        }
        BitsOp::Fns { dst, mask, base, offset } => {
            v.def(*dst, B32);
            v.srcs(B32, [mask, base, offset]);
        }
        BitsOp::Szext { ty, dst, a, b, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
            v.srcs(U32, [b]);
        }
        BitsOp::Bmsk { dst, a, b, .. } => {
            v.def(*dst, B32);
            v.srcs(B32, [a, b]);
        }
    }
}

fn float<'a>(v: &mut Visit<'_, 'a>, op: &'a FloatOp) {
    match op {
        FloatOp::Arith { ty, dst, a, b, .. }
        | FloatOp::Div { ty, dst, a, b, .. }
        | FloatOp::Copysign { ty, dst, a, b } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
        }
        FloatOp::Fma { ty, dst, a, b, c, .. } | FloatOp::Mad { ty, dst, a, b, c, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b, c]);
        }
        FloatOp::Rcp { ty, dst, a, .. }
        | FloatOp::Sqrt { ty, dst, a, .. }
        | FloatOp::Approx { ty, dst, a, .. }
        | FloatOp::Abs { ty, dst, a, .. }
        | FloatOp::Neg { ty, dst, a, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a]);
        }
        FloatOp::MinMax { ty, dst, a, b, c, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
            v.srcs(*ty, c);
        }
        FloatOp::Testp { ty, dst, a, .. } => {
            v.def(*dst, ScalarType::Pred);
            v.srcs(*ty, [a]);
        }
    }
}

fn compare<'a>(v: &mut Visit<'_, 'a>, op: &'a CompareOp) {
    match op {
        CompareOp::Set { combine, dst_ty, ty, dst, a, b, .. } => {
            // For a packed comparison with a scalar result type, the destination holds both
            // results.
            v.def(*dst, *dst_ty);
            v.srcs(*ty, [a, b]);
            if let Some(combine) = combine {
                v.pred(&combine.pred);
            }
        }
        CompareOp::Setp { combine, ty, p, q, a, b, .. } => {
            v.maybe_def(*p, ScalarType::Pred);
            v.maybe_def(*q, ScalarType::Pred);
            v.srcs(*ty, [a, b]);
            if let Some(combine) = combine {
                v.pred(&combine.pred);
            }
        }
        CompareOp::Selp { ty, dst, a, b, cond } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
            v.pred(cond);
        }
        CompareOp::Slct { ty, cond_ty, dst, a, b, c, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [a, b]);
            v.srcs(*cond_ty, [c]);
        }
    }
}

fn convert<'a>(v: &mut Visit<'_, 'a>, op: &'a ConvertOp) {
    match op {
        ConvertOp::Cvt(cvt) => {
            (v.0)(OperandRef::Def(cvt.dst), Rule::AtLeast(cvt.dst_ty));
            for src in &cvt.srcs {
                (v.0)(OperandRef::Src(src), Rule::AtLeast(cvt.src_ty));
            }
            v.srcs(ScalarType::B32, &cvt.random);
            if let Some(scale) = &cvt.scale {
                (v.0)(OperandRef::Src(scale), Rule::AtLeast(ScalarType::B16));
            }
        }
        ConvertOp::CvtPack { ty, dst, a, b, c, .. } => {
            v.def(*dst, ScalarType::B32);
            v.srcs(*ty, [a, b]);
            v.srcs(ScalarType::B32, c);
        }
        ConvertOp::Cvta { ty, dst, src, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [src]);
        }
        ConvertOp::Isspacep { dst, src, .. } => {
            v.def(*dst, ScalarType::Pred);
            (v.0)(OperandRef::Src(src), Rule::Address);
        }
        ConvertOp::Mapa { ty, dst, src, rank, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [src]);
            v.srcs(ScalarType::U32, [rank]);
        }
        ConvertOp::Getctarank { ty, dst, src, .. } => {
            v.def(*dst, ScalarType::U32);
            v.srcs(*ty, [src]);
        }
        ConvertOp::Mov { ty, dst, src } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [src]);
        }
        ConvertOp::MovVector { ty, dsts, srcs } => {
            for dst in dsts.iter().flatten() {
                v.def(*dst, *ty);
            }
            v.srcs(*ty, srcs);
        }
        ConvertOp::Pack { ty, dst, srcs } => {
            v.def(*dst, *ty);
            for src in srcs {
                (v.0)(OperandRef::Src(src), Rule::Value);
            }
        }
        ConvertOp::Unpack { ty, dsts, src } => {
            for dst in dsts.iter().flatten() {
                (v.0)(OperandRef::Def(*dst), Rule::Value);
            }
            v.srcs(*ty, [src]);
        }
    }
}

fn memory<'a>(v: &mut Visit<'_, 'a>, op: &'a MemoryOp) {
    use ScalarType::{B64, U32};
    match op {
        MemoryOp::Ld { ty, dsts, access } => {
            for dst in dsts.iter().flatten() {
                (v.0)(OperandRef::Def(*dst), Rule::AtLeast(*ty));
            }
            v.addr(&access.addr);
            v.srcs(B64, &access.policy);
        }
        MemoryOp::Ldu { ty, dsts, addr, .. } => {
            for dst in dsts.iter().flatten() {
                (v.0)(OperandRef::Def(*dst), Rule::AtLeast(*ty));
            }
            v.addr(addr);
        }
        MemoryOp::St { ty, srcs, access } => {
            v.addr(&access.addr);
            for src in srcs {
                (v.0)(OperandRef::Src(src), Rule::AtLeast(*ty));
            }
            v.srcs(B64, &access.policy);
        }
        MemoryOp::Prefetch { addr, .. }
        | MemoryOp::PrefetchUniform { addr }
        | MemoryOp::Discard { addr, .. }
        | MemoryOp::ApplyPriority { addr, .. }
        | MemoryOp::CpAsyncMbarrierArrive { addr, .. } => v.addr(addr),
        MemoryOp::CreatePolicyFractional { dst, fraction, .. } => {
            v.def(*dst, B64);
            v.srcs(ScalarType::F32, fraction);
        }
        MemoryOp::CreatePolicyRange { dst, addr, primary_size, total_size, .. } => {
            v.def(*dst, B64);
            v.addr(addr);
            v.srcs(U32, [primary_size, total_size]);
        }
        MemoryOp::CreatePolicyCvt { dst, src } => {
            v.def(*dst, B64);
            v.srcs(B64, [src]);
        }
        MemoryOp::CpAsync(copy) => {
            v.addr(&copy.dst);
            v.addr(&copy.src);
            v.srcs(U32, &copy.src_size);
            if let Some(pred) = &copy.ignore_src {
                v.pred(pred);
            }
            v.srcs(B64, &copy.policy);
        }
        MemoryOp::CpAsyncCommitGroup | MemoryOp::CpAsyncWaitGroup { .. } | MemoryOp::CpAsyncWaitAll => {}
        MemoryOp::Alloca { ty, dst, size, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [size]);
        }
        MemoryOp::StackSave { ty, dst } => v.def(*dst, *ty),
        MemoryOp::StackRestore { ty, src } => v.srcs(*ty, [src]),
    }
}

fn atomic<'a>(v: &mut Visit<'_, 'a>, op: &'a AtomicOp) {
    let (AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) = op;
    if let AtomicOp::Atom { dsts, .. } = op {
        for dst in dsts {
            v.maybe_def(*dst, rmw.ty);
        }
    }
    v.addr(&rmw.addr);
    v.srcs(rmw.ty, &rmw.b);
    v.srcs(rmw.ty, &rmw.c);
    v.srcs(ScalarType::B64, &rmw.policy);
}

fn control<'a>(v: &mut Visit<'_, 'a>, op: &'a ControlOp) {
    match op {
        ControlOp::BrxIdx { index, .. } => v.srcs(ScalarType::U32, [index]),
        ControlOp::Call { target, returns, args, .. } => {
            for place in returns {
                if let CallArg::Reg(reg) = place {
                    (v.0)(OperandRef::Def(*reg), Rule::Any);
                }
            }
            if let CallTarget::Prototype(reg, _) | CallTarget::Table(reg, _) = target {
                (v.0)(OperandRef::Use(*reg), Rule::Address);
            }
            for arg in args {
                if let CallArg::Reg(reg) = arg {
                    (v.0)(OperandRef::Use(*reg), Rule::Any);
                }
            }
        }
        ControlOp::Nanosleep { duration } => v.srcs(ScalarType::U32, [duration]),
        ControlOp::PmEvent { event, .. } => v.srcs(ScalarType::U32, [event]),
        ControlOp::Bra { .. }
        | ControlOp::Ret { .. }
        | ControlOp::Exit
        | ControlOp::Trap
        | ControlOp::Brkpt
        | ControlOp::GridDepControl { .. }
        | ControlOp::SetMaxNReg { .. } => {}
    }
}

fn sync<'a>(v: &mut Visit<'_, 'a>, op: &'a SyncOp) {
    use ScalarType::{B64, Pred, U32};
    match op {
        SyncOp::Barrier { kind, id, threads, .. } => {
            if let BarrierKind::Red { op, dst, .. } = kind {
                v.def(*dst, if *op == RedOp::Popc { U32 } else { Pred });
            }
            v.srcs(U32, [id]);
            v.srcs(U32, threads);
            if let BarrierKind::Red { pred, .. } = kind {
                v.pred(pred);
            }
        }
        SyncOp::WarpBarrier { mask } => v.srcs(U32, [mask]),
        SyncOp::FenceProxyTensormap { object: Some((addr, _)), .. } => v.addr(addr),
        SyncOp::Mbarrier(op) => match &**op {
            MbarrierOp::Init { addr, count, .. } | MbarrierOp::Tx { addr, count, .. } => {
                v.addr(addr);
                v.srcs(U32, [count]);
            }
            MbarrierOp::Inval { addr, .. } => v.addr(addr),
            MbarrierOp::Arrive { state, addr, count, .. } => {
                v.maybe_def(*state, B64);
                v.addr(addr);
                v.srcs(U32, count);
            }
            MbarrierOp::Wait { parity, dst, addr, state, time_limit, .. } => {
                v.def(*dst, Pred);
                v.addr(addr);
                v.srcs(if *parity { U32 } else { B64 }, [state]);
                v.srcs(U32, time_limit);
            }
            MbarrierOp::PendingCount { dst, state } => {
                v.def(*dst, U32);
                v.srcs(B64, [state]);
            }
        },
        SyncOp::ClusterBarrier(_)
        | SyncOp::Membar { .. }
        | SyncOp::Fence { .. }
        | SyncOp::FenceMbarrierInit
        | SyncOp::FenceProxy { .. }
        | SyncOp::FenceProxyTensormap { .. }
        | SyncOp::FenceProxyAsyncGeneric { .. } => {}
    }
}

fn warp<'a>(v: &mut Visit<'_, 'a>, op: &'a WarpOp) {
    use ScalarType::{B32, Pred};
    match op {
        WarpOp::Shfl { dst, pred, a, b, c, mask, .. } => {
            v.maybe_def(*dst, B32);
            v.maybe_def(*pred, Pred);
            v.srcs(B32, [a, b, c]);
            v.srcs(B32, mask);
        }
        WarpOp::Vote { mode, dst, pred, mask } => {
            v.def(*dst, if *mode == VoteMode::Ballot { B32 } else { Pred });
            v.pred(pred);
            v.srcs(B32, mask);
        }
        WarpOp::Match { ty, dst, pred, a, mask, .. } => {
            v.maybe_def(*dst, B32);
            v.maybe_def(*pred, Pred);
            v.srcs(*ty, [a]);
            v.srcs(B32, [mask]);
        }
        WarpOp::Redux { ty, dst, src, mask, .. } => {
            v.def(*dst, *ty);
            v.srcs(*ty, [src]);
            v.srcs(B32, [mask]);
        }
        WarpOp::ActiveMask { dst } => v.def(*dst, B32),
        WarpOp::Elect { dst, pred, mask } => {
            v.maybe_def(*dst, B32);
            v.def(*pred, Pred);
            v.srcs(B32, [mask]);
        }
    }
}
