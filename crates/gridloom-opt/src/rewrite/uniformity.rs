//! Which threads of a block go the same way at every branch of a kernel.
//!
//! Each register has one class for the whole kernel: its value is the same in the whole block, in
//! each warp, or in each thread only. A branch parts the threads that its predicate is not the same
//! for, until they meet again at its post-dominator. What a register gets in between is no longer
//! the same for these threads, however it is computed.

use gridloom_ptx::op::{
    BarrierKind, BitsOp, Compare, CompareOp, ControlOp, ConvertOp, IntArith, IntOp, LogicOp, MemoryOp, Op,
    OperandRef, SyncOp, WarpOp,
};
use gridloom_ptx::{
    AddressBase, Body, Dim, DimSpecial, Imm, Operand, PredOperand, ScalarType, Space, SpecialReg, VarRef,
};

use super::flow::Flow;
use super::settled::settled_loads;

/// The threads of a warp.
const WARP: i64 = 32;

/// The threads for which something is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Same {
    /// All threads of a block.
    Block,
    /// All threads of each warp.
    Warp,
    /// Each thread alone.
    Thread,
}

/// What is known about the value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Same(Same),
    /// The index of the thread along x.
    Index,
}

impl Value {
    fn same(self) -> Same {
        match self {
            Value::Same(same) => same,
            Value::Index => Same::Thread,
        }
    }

    fn join(self, other: Self) -> Self {
        if self == other { self } else { Value::Same(self.same().max(other.same())) }
    }
}

/// What a kernel knows about its blocks and its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Each warp has consecutive threads of one row, and starts at a multiple of its size.
    pub(super) warps_along_x: bool,
    /// The parameters are those of the launch, and so the same in all threads.
    pub(super) is_entry: bool,
}

/// The threads that decide alike at each instruction: those for which its guard, or what it
/// branches on, is the same.
pub(super) struct Uniformity(Vec<Same>);

impl Uniformity {
    /// Returns the threads that decide alike at an instruction. All threads of a block decide alike
    /// where there is nothing to decide.
    pub(super) fn decide(&self, at: usize) -> Same {
        self.0[at]
    }

    pub(super) fn of(body: &Body, flow: &Flow, post: &[Option<usize>], known: Known) -> Self {
        let count = body.instructions.len();
        let mut values: Vec<Option<Value>> = vec![None; body.registers.len()];
        // The threads that reach an instruction together, as far as branches parted them.
        let mut together = vec![Same::Block; count + 1];
        let mut decide = vec![Same::Block; count];
        let settled = settled_loads(body, flow);
        loop {
            let mut changed = false;
            for (at, instruction) in body.instructions.iter().enumerate() {
                let registers = Registers { values: &values, known };
                let guard = instruction.guard.map_or(Same::Block, |guard| registers.of(guard.reg).same());
                let parted = guard.max(together[at]);
                let mut defined = smallvec::SmallVec::<[_; 4]>::new();
                instruction.op.for_each_operand(&mut |operand, _| {
                    if let OperandRef::Def(reg) = operand {
                        defined.push(reg);
                    }
                });
                if !defined.is_empty() {
                    let mut value = match settled[at] {
                        true => Value::Same(registers.operands(&instruction.op)),
                        false => registers.result(&instruction.op),
                    };
                    if parted > Same::Block {
                        value = Value::Same(value.same().max(parted));
                    }
                    for reg in defined {
                        let joined = values[reg.index()].map_or(value, |there| there.join(value));
                        changed |= values[reg.index()] != Some(joined);
                        values[reg.index()] = Some(joined);
                    }
                }
                let registers = Registers { values: &values, known };
                let mut decides = guard;
                if let Op::Control(ControlOp::BrxIdx { .. }) = &instruction.op {
                    decides = decides.max(registers.operands(&instruction.op));
                }
                if decides > decide[at] {
                    decide[at] = decides;
                    changed = true;
                    if flow.successors[at].len() > 1 {
                        for inside in flow.region(at, post[at]) {
                            together[inside] = together[inside].max(decides);
                        }
                    }
                }
            }
            if !changed {
                return Uniformity(decide);
            }
        }
    }
}

struct Registers<'a> {
    /// `None` for registers that nothing was seen to write yet.
    values: &'a [Option<Value>],
    known: Known,
}

impl Registers<'_> {
    fn of(&self, reg: gridloom_ptx::RegId) -> Value {
        self.values[reg.index()].unwrap_or(Value::Same(Same::Block))
    }

    fn operand(&self, operand: &Operand) -> Value {
        match operand {
            Operand::Reg(reg) => self.of(*reg),
            Operand::Imm(_) | Operand::Address { .. } => Value::Same(Same::Block),
            Operand::Special(SpecialReg::Dim(special, dim)) => match (special, dim) {
                (DimSpecial::Tid, Dim::X) if self.known.warps_along_x => Value::Index,
                (DimSpecial::Tid, _) if self.known.warps_along_x => Value::Same(Same::Warp),
                (DimSpecial::CtaId | DimSpecial::NCtaId | DimSpecial::NTid, _) => Value::Same(Same::Block),
                _ => Value::Same(Same::Thread),
            },
            Operand::Special(_) => Value::Same(Same::Thread),
        }
    }

    /// Returns the threads for which all operands that are read are the same.
    fn operands(&self, op: &Op) -> Same {
        let mut same = Same::Block;
        op.for_each_operand(&mut |operand, _| {
            let value = match operand {
                OperandRef::Def(_) => return,
                OperandRef::Use(reg) => self.of(reg),
                OperandRef::Pred(PredOperand::Reg { reg, .. }) => self.of(*reg),
                OperandRef::Src(operand) => self.operand(operand),
                OperandRef::Addr(address) => match address.base {
                    AddressBase::Reg(reg) => self.of(reg),
                    _ => return,
                },
                OperandRef::Pred(PredOperand::Const(_)) => return,
            };
            same = same.max(value.same());
        });
        same
    }

    /// Returns what an instruction writes to its registers, for the threads that execute it.
    fn result(&self, op: &Op) -> Value {
        if let Some(value) = self.of_index(op) {
            return value;
        }
        Value::Same(match op {
            Op::Int(_) | Op::Bits(_) | Op::Float(_) | Op::Compare(_) | Op::Convert(_) => self.operands(op),
            Op::Memory(MemoryOp::Ld { access, .. }) => match (access.space, access.addr.base) {
                (Space::Param | Space::ParamEntry, AddressBase::Var(VarRef::Param(_)))
                    if self.known.is_entry =>
                {
                    Same::Block
                }
                // Nothing writes it while the kernel runs.
                (Space::Const, _) => self.operands(op),
                _ => Same::Thread,
            },
            Op::Warp(WarpOp::Vote { .. } | WarpOp::Redux { .. }) => Same::Warp,
            Op::Sync(SyncOp::Barrier { kind: BarrierKind::Red { .. }, threads: None, .. }) => Same::Block,
            _ => Same::Thread,
        })
    }

    /// Returns the result of an instruction on the index of the thread, if more is known of it than
    /// that it is the thread's own.
    fn of_index(&self, op: &Op) -> Option<Value> {
        let is_index = |operand: &Operand| self.operand(operand) == Value::Index;
        let constant = |operand: &Operand| match operand {
            Operand::Imm(Imm::Int(number)) => Some(*number),
            _ => None,
        };
        let warps = Value::Same(Same::Warp);
        match op {
            Op::Convert(ConvertOp::Mov { ty, src, .. }) => {
                (is_index(src) && is_integer(*ty)).then_some(Value::Index)
            }
            // An index is less than 2^10.
            Op::Convert(ConvertOp::Cvt(cvt)) => match &cvt.srcs[..] {
                [src] if is_index(src) && is_integer(cvt.src_ty) && is_integer(cvt.dst_ty) => {
                    Some(Value::Index)
                }
                _ => None,
            },
            Op::Bits(BitsOp::Shr { a, b, .. }) if is_index(a) => {
                constant(b).filter(|by| (5..32).contains(by)).map(|_| warps)
            }
            Op::Bits(BitsOp::Logic { op: LogicOp::And, a, b, .. }) => {
                let mask = if is_index(a) { constant(b) } else { constant(a).filter(|_| is_index(b)) };
                mask.filter(|mask| mask & (WARP - 1) == 0).map(|_| warps)
            }
            Op::Int(IntOp::Arith { op: IntArith::Div, a, b, .. }) if is_index(a) => {
                constant(b).filter(|by| *by > 0 && by % WARP == 0).map(|_| warps)
            }
            Op::Compare(CompareOp::Setp { cmp, combine, ty, a, b, .. }) if is_index(a) && is_integer(*ty) => {
                let bound = constant(b).filter(|bound| (0..1 << 20).contains(bound))?;
                let first = match cmp {
                    Compare::Lt | Compare::Ge | Compare::Lo | Compare::Hs => bound,
                    Compare::Le | Compare::Gt | Compare::Ls | Compare::Hi => bound + 1,
                    _ => return None,
                };
                let with = match combine {
                    None => Same::Block,
                    Some(_) => {
                        let mut same = Same::Block;
                        op.for_each_operand(&mut |operand, _| {
                            if let OperandRef::Pred(PredOperand::Reg { reg, .. }) = operand {
                                same = same.max(self.of(*reg).same());
                            }
                        });
                        same
                    }
                };
                (first % WARP == 0).then_some(Value::Same(with.max(Same::Warp)))
            }
            _ => None,
        }
    }
}

fn is_integer(ty: ScalarType) -> bool {
    use ScalarType::{B32, B64, S32, S64, U32, U64};
    matches!(ty, B32 | B64 | S32 | S64 | U32 | U64)
}
