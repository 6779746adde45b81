//! Visitor that can change the names in an instruction: registers, variables, labels, tables and
//! functions.

use super::{
    AtomicOp, BarrierKind, BitsOp, CallArg, CallTarget, CompareOp, ControlOp, ConvertOp, FloatOp,
    Instruction, IntOp, MbarrierOp, MemoryOp, Op, RawToken, SyncOp, WarpOp,
};
use crate::model::{
    Address, BranchTableId, CallTableId, LabelId, Operand, PredOperand, PrototypeId, RegId, SymbolId, VarRef,
};

/// A name in an instruction, to be changed in place.
#[derive(Debug)]
pub enum OperandMut<'a> {
    /// A register that is written.
    Def(&'a mut RegId),
    /// A register that is read, where only a register is allowed.
    Use(&'a mut RegId),
    /// A value that is read.
    Src(&'a mut Operand),
    /// A predicate that is read.
    Pred(&'a mut PredOperand),
    /// An address.
    Addr(&'a mut Address),
    /// A `.param` variable that a call passes, or a variable among the operands of an instruction
    /// outside the model.
    Var(&'a mut VarRef),
    /// A label.
    Label(&'a mut LabelId),
    /// A list of labels.
    BranchTable(&'a mut BranchTableId),
    /// A list of functions.
    CallTable(&'a mut CallTableId),
    /// The prototype of an indirect call.
    Prototype(&'a mut PrototypeId),
    /// A function that is called.
    Function(&'a mut SymbolId),
}

struct Visit<'v>(&'v mut dyn FnMut(OperandMut<'_>));

impl Visit<'_> {
    fn def(&mut self, reg: &mut RegId) {
        (self.0)(OperandMut::Def(reg));
    }

    fn defs<'a>(&mut self, regs: impl IntoIterator<Item = &'a mut RegId>) {
        regs.into_iter().for_each(|reg| self.def(reg));
    }

    fn srcs<'a>(&mut self, operands: impl IntoIterator<Item = &'a mut Operand>) {
        operands.into_iter().for_each(|operand| (self.0)(OperandMut::Src(operand)));
    }

    fn pred(&mut self, pred: &mut PredOperand) {
        (self.0)(OperandMut::Pred(pred));
    }

    fn addr(&mut self, address: &mut Address) {
        (self.0)(OperandMut::Addr(address));
    }
}

impl Instruction {
    /// Calls `f` with every name in the instruction, that of its guard first.
    pub fn for_each_name_mut(&mut self, f: &mut dyn FnMut(OperandMut<'_>)) {
        if let Some(guard) = &mut self.guard {
            f(OperandMut::Use(&mut guard.reg));
        }
        self.op.for_each_name_mut(f);
    }
}

impl Op {
    /// Calls `f` with every name in the operation: destinations first, then sources, in the order
    /// of the text.
    pub fn for_each_name_mut(&mut self, f: &mut dyn FnMut(OperandMut<'_>)) {
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
                for token in &mut op.operands {
                    match token {
                        RawToken::Reg(reg) => (v.0)(OperandMut::Use(reg)),
                        RawToken::Var(var) => (v.0)(OperandMut::Var(var)),
                        RawToken::Label(label) => (v.0)(OperandMut::Label(label)),
                        RawToken::Special(_) | RawToken::Text(_) => {}
                    }
                }
            }
        }
    }
}

fn int(v: &mut Visit<'_>, op: &mut IntOp) {
    match op {
        IntOp::Arith { dst, a, b, .. }
        | IntOp::Mul24 { dst, a, b, .. }
        | IntOp::Carry { dst, a, b, .. }
        | IntOp::MulWide { dst, a, b, .. } => {
            v.def(dst);
            v.srcs([a, b]);
        }
        IntOp::Mad { dst, a, b, c, .. }
        | IntOp::Mad24 { dst, a, b, c, .. }
        | IntOp::MadCarry { dst, a, b, c, .. }
        | IntOp::Sad { dst, a, b, c, .. }
        | IntOp::Dp4a { dst, a, b, c, .. }
        | IntOp::Dp2a { dst, a, b, c, .. } => {
            v.def(dst);
            v.srcs([a, b, c]);
        }
        IntOp::Abs { dst, a, .. } | IntOp::Neg { dst, a, .. } => {
            v.def(dst);
            v.srcs([a]);
        }
    }
}

fn bits(v: &mut Visit<'_>, op: &mut BitsOp) {
    match op {
        BitsOp::Logic { dst, a, b, .. }
        | BitsOp::Shl { dst, a, b, .. }
        | BitsOp::Shr { dst, a, b, .. }
        | BitsOp::Szext { dst, a, b, .. }
        | BitsOp::Bmsk { dst, a, b, .. } => {
            v.def(dst);
            v.srcs([a, b]);
        }
        BitsOp::Not { dst, a, .. }
        | BitsOp::Cnot { dst, a, .. }
        | BitsOp::Brev { dst, a, .. }
        | BitsOp::Bfind { dst, a, .. }
        | BitsOp::Clz { dst, a, .. }
        | BitsOp::Popc { dst, a, .. } => {
            v.def(dst);
            v.srcs([a]);
        }
        BitsOp::Lop3 { dst, pred, a, b, c, .. } => {
            v.defs(dst);
            if let Some(pred) = pred {
                v.def(&mut pred.dst);
            }
            v.srcs([a, b, c]);
            if let Some(pred) = pred {
                v.pred(&mut pred.q);
            }
        }
        BitsOp::Shf { dst, a, b, c, .. }
        | BitsOp::Prmt { dst, a, b, c, .. }
        | BitsOp::Bfe { dst, a, b, c, .. }
        | BitsOp::Fns { dst, mask: a, base: b, offset: c } => {
            v.def(dst);
            v.srcs([a, b, c]);
        }
        BitsOp::Bfi { dst, a, b, c, d, .. } => {
            v.def(dst);
            v.srcs([a, b, c, d]);
        }
    }
}

fn float(v: &mut Visit<'_>, op: &mut FloatOp) {
    match op {
        FloatOp::Arith { dst, a, b, .. }
        | FloatOp::Div { dst, a, b, .. }
        | FloatOp::Copysign { dst, a, b, .. } => {
            v.def(dst);
            v.srcs([a, b]);
        }
        FloatOp::Fma { dst, a, b, c, .. } | FloatOp::Mad { dst, a, b, c, .. } => {
            v.def(dst);
            v.srcs([a, b, c]);
        }
        FloatOp::Rcp { dst, a, .. }
        | FloatOp::Sqrt { dst, a, .. }
        | FloatOp::Approx { dst, a, .. }
        | FloatOp::Abs { dst, a, .. }
        | FloatOp::Neg { dst, a, .. }
        | FloatOp::Testp { dst, a, .. } => {
            v.def(dst);
            v.srcs([a]);
        }
        FloatOp::MinMax { dst, a, b, c, .. } => {
            v.def(dst);
            v.srcs([a, b]);
            v.srcs(c);
        }
    }
}

fn compare(v: &mut Visit<'_>, op: &mut CompareOp) {
    match op {
        CompareOp::Set { combine, dst, a, b, .. } => {
            v.def(dst);
            v.srcs([a, b]);
            if let Some(combine) = combine {
                v.pred(&mut combine.pred);
            }
        }
        CompareOp::Setp { combine, p, q, a, b, .. } => {
            v.defs(p);
            v.defs(q);
            v.srcs([a, b]);
            if let Some(combine) = combine {
                v.pred(&mut combine.pred);
            }
        }
        CompareOp::Selp { dst, a, b, cond, .. } => {
            v.def(dst);
            v.srcs([a, b]);
            v.pred(cond);
        }
        CompareOp::Slct { dst, a, b, c, .. } => {
            v.def(dst);
            v.srcs([a, b, c]);
        }
    }
}

fn convert(v: &mut Visit<'_>, op: &mut ConvertOp) {
    match op {
        ConvertOp::Cvt(cvt) => {
            v.def(&mut cvt.dst);
            v.srcs(&mut cvt.srcs);
            v.srcs(&mut cvt.random);
            v.srcs(&mut cvt.scale);
        }
        ConvertOp::CvtPack { dst, a, b, c, .. } => {
            v.def(dst);
            v.srcs([a, b]);
            v.srcs(c);
        }
        ConvertOp::Cvta { dst, src, .. }
        | ConvertOp::Isspacep { dst, src, .. }
        | ConvertOp::Getctarank { dst, src, .. }
        | ConvertOp::Mov { dst, src, .. } => {
            v.def(dst);
            v.srcs([src]);
        }
        ConvertOp::Mapa { dst, src, rank, .. } => {
            v.def(dst);
            v.srcs([src, rank]);
        }
        ConvertOp::MovVector { dsts, srcs, .. } => {
            v.defs(dsts.iter_mut().flatten());
            v.srcs(srcs);
        }
        ConvertOp::Pack { dst, srcs, .. } => {
            v.def(dst);
            v.srcs(srcs);
        }
        ConvertOp::Unpack { dsts, src, .. } => {
            v.defs(dsts.iter_mut().flatten());
            v.srcs([src]);
        }
    }
}

fn memory(v: &mut Visit<'_>, op: &mut MemoryOp) {
    match op {
        MemoryOp::Ld { dsts, access, .. } => {
            v.defs(dsts.iter_mut().flatten());
            v.addr(&mut access.addr);
            v.srcs(&mut access.policy);
        }
        MemoryOp::Ldu { dsts, addr, .. } => {
            v.defs(dsts.iter_mut().flatten());
            v.addr(addr);
        }
        MemoryOp::St { srcs, access, .. } => {
            v.addr(&mut access.addr);
            v.srcs(srcs);
            v.srcs(&mut access.policy);
        }
        MemoryOp::Prefetch { addr, .. }
        | MemoryOp::PrefetchUniform { addr }
        | MemoryOp::Discard { addr, .. }
        | MemoryOp::ApplyPriority { addr, .. }
        | MemoryOp::CpAsyncMbarrierArrive { addr, .. } => v.addr(addr),
        MemoryOp::CreatePolicyFractional { dst, fraction, .. } => {
            v.def(dst);
            v.srcs(fraction);
        }
        MemoryOp::CreatePolicyRange { dst, addr, primary_size, total_size, .. } => {
            v.def(dst);
            v.addr(addr);
            v.srcs([primary_size, total_size]);
        }
        MemoryOp::CreatePolicyCvt { dst, src } => {
            v.def(dst);
            v.srcs([src]);
        }
        MemoryOp::CpAsync(copy) => {
            v.addr(&mut copy.dst);
            v.addr(&mut copy.src);
            v.srcs(&mut copy.src_size);
            if let Some(pred) = &mut copy.ignore_src {
                v.pred(pred);
            }
            v.srcs(&mut copy.policy);
        }
        MemoryOp::CpAsyncCommitGroup | MemoryOp::CpAsyncWaitGroup { .. } | MemoryOp::CpAsyncWaitAll => {}
        MemoryOp::Alloca { dst, size, .. } => {
            v.def(dst);
            v.srcs([size]);
        }
        MemoryOp::StackSave { dst, .. } => v.def(dst),
        MemoryOp::StackRestore { src, .. } => v.srcs([src]),
    }
}

fn atomic(v: &mut Visit<'_>, op: &mut AtomicOp) {
    let rmw = match op {
        AtomicOp::Atom { dsts, rmw } => {
            v.defs(dsts.iter_mut().flatten());
            rmw
        }
        AtomicOp::Red { rmw } => rmw,
    };
    v.addr(&mut rmw.addr);
    v.srcs(&mut rmw.b);
    v.srcs(&mut rmw.c);
    v.srcs(&mut rmw.policy);
}

fn control(v: &mut Visit<'_>, op: &mut ControlOp) {
    match op {
        ControlOp::Bra { target, .. } => (v.0)(OperandMut::Label(target)),
        ControlOp::BrxIdx { index, table, .. } => {
            v.srcs([index]);
            (v.0)(OperandMut::BranchTable(table));
        }
        ControlOp::Call { target, returns, args, .. } => {
            for place in returns {
                match place {
                    CallArg::Reg(reg) => v.def(reg),
                    CallArg::Var(var) => (v.0)(OperandMut::Var(var)),
                    CallArg::Imm(_) | CallArg::Sink => {}
                }
            }
            match target {
                CallTarget::Direct(function) => (v.0)(OperandMut::Function(function)),
                CallTarget::Prototype(reg, prototype) => {
                    (v.0)(OperandMut::Use(reg));
                    (v.0)(OperandMut::Prototype(prototype));
                }
                CallTarget::Table(reg, table) => {
                    (v.0)(OperandMut::Use(reg));
                    (v.0)(OperandMut::CallTable(table));
                }
            }
            for arg in args {
                match arg {
                    CallArg::Reg(reg) => (v.0)(OperandMut::Use(reg)),
                    CallArg::Var(var) => (v.0)(OperandMut::Var(var)),
                    CallArg::Imm(_) | CallArg::Sink => {}
                }
            }
        }
        ControlOp::Nanosleep { duration } => v.srcs([duration]),
        ControlOp::PmEvent { event, .. } => v.srcs([event]),
        ControlOp::Ret { .. }
        | ControlOp::Exit
        | ControlOp::Trap
        | ControlOp::Brkpt
        | ControlOp::GridDepControl { .. }
        | ControlOp::SetMaxNReg { .. } => {}
    }
}

fn sync(v: &mut Visit<'_>, op: &mut SyncOp) {
    match op {
        SyncOp::Barrier { kind, id, threads, .. } => {
            if let BarrierKind::Red { dst, .. } = kind {
                v.def(dst);
            }
            v.srcs([id]);
            v.srcs(threads);
            if let BarrierKind::Red { pred, .. } = kind {
                v.pred(pred);
            }
        }
        SyncOp::WarpBarrier { mask } => v.srcs([mask]),
        SyncOp::FenceProxyTensormap { object: Some((addr, _)), .. } => v.addr(addr),
        SyncOp::Mbarrier(op) => match &mut **op {
            MbarrierOp::Init { addr, count, .. } | MbarrierOp::Tx { addr, count, .. } => {
                v.addr(addr);
                v.srcs([count]);
            }
            MbarrierOp::Inval { addr, .. } => v.addr(addr),
            MbarrierOp::Arrive { state, addr, count, .. } => {
                v.defs(state);
                v.addr(addr);
                v.srcs(count);
            }
            MbarrierOp::Wait { dst, addr, state, time_limit, .. } => {
                v.def(dst);
                v.addr(addr);
                v.srcs([state]);
                v.srcs(time_limit);
            }
            MbarrierOp::PendingCount { dst, state } => {
                v.def(dst);
                v.srcs([state]);
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

fn warp(v: &mut Visit<'_>, op: &mut WarpOp) {
    match op {
        WarpOp::Shfl { dst, pred, a, b, c, mask, .. } => {
            v.defs(dst);
            v.defs(pred);
            v.srcs([a, b, c]);
            v.srcs(mask);
        }
        WarpOp::Vote { dst, pred, mask, .. } => {
            v.def(dst);
            v.pred(pred);
            v.srcs(mask);
        }
        WarpOp::Match { dst, pred, a, mask, .. } => {
            v.defs(dst);
            v.defs(pred);
            v.srcs([a, mask]);
        }
        WarpOp::Redux { dst, src, mask, .. } => {
            v.def(dst);
            v.srcs([src, mask]);
        }
        WarpOp::ActiveMask { dst } => v.def(dst),
        WarpOp::Elect { dst, pred, mask } => {
            v.defs(dst);
            v.def(pred);
            v.srcs([mask]);
        }
    }
}
