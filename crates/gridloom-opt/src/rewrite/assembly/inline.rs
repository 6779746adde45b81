//! Inlining of a kernel: its code with parameters, indices, variables and returns replaced.

use std::sync::Arc;

use gridloom_ptx::op::{ControlOp, Instruction, IntArith, IntOp, MemoryOp, Op, OperandMut, SyncOp};
use gridloom_ptx::{
    Address, AddressBase, BranchTable, BranchTableId, DimSpecial, Label, LabelId, LocalVarId, Operand,
    ParamId, RegId, ScalarType, Span, SpecialReg, SymbolId, VarRef, VarSpace, Variable,
};
use rustc_hash::FxHashMap;

use crate::rewrite::source::KernelSource;

use super::slots::{Start, address_type};
use super::{Assembly, Refusal, int, make_coherent, param_address};

/// The location of an inlined kernel's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamsAt {
    /// At this offset in the parameters of the new kernel.
    Offset(u64),
    /// At the address in parameter space that a register holds.
    Register(RegId),
}

/// The values of `%ctaid` and `%nctaid` in an inlined kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockIndex {
    /// Those of the new kernel.
    Own,
    /// Those in these registers.
    Registers { index: [RegId; 3], count: [RegId; 3] },
}

/// What threads do when an inlined kernel returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AfterReturn {
    /// They exit.
    Ends,
    /// They continue at a label.
    GoesOn(LabelId),
}

/// How a kernel is inlined into another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inlining {
    pub(crate) params: ParamsAt,
    pub(crate) index: BlockIndex,
    pub(crate) after: AfterReturn,
    /// The threads of its blocks, if they are others than those of the new kernel.
    pub(crate) block: Option<[u32; 3]>,
    /// The index of the thread in its block, if it is another one than in the new kernel.
    pub(crate) thread: Option<[RegId; 3]>,
    /// Whether memory it reads may be written in the same launch.
    pub(crate) coherent: bool,
}

impl Assembly {
    /// Appends the code of a kernel. Returns the index of the first instruction for each one of the
    /// kernel, and of the one after the last.
    pub(crate) fn inline(&mut self, source: &KernelSource, how: Inlining) -> Result<Vec<u32>, Refusal> {
        self.link(source, false)?;
        let number = self.inlined;
        self.inlined += 1;
        let body = source.body();
        let first_register = self.body.registers.len() as u32;
        for (at, group) in body.registers.groups().iter().enumerate() {
            let name = format!("%k{number}_{at}_");
            self.body
                .registers
                .declare(&name, Some(group.count()), group.ty, Span::default())
                .ok_or("too many registers")?;
        }
        let mut places = NewVars::default();
        let mut static_shared = 0;
        for local in &body.locals {
            let place = match local.space {
                VarSpace::Shared if local.is_unsized() => self.in_dynamic(local),
                VarSpace::Shared => self.in_arena(local, &mut static_shared),
                _ => {
                    let id = LocalVarId(self.body.locals.len() as u32);
                    let name = format!("k{number}_{}", local.name);
                    self.body.locals.push(Variable { name, span: Span::default(), ..local.clone() });
                    NewVar::at(VarRef::Local(id))
                }
            };
            places.locals.push(place);
        }
        let first_label = self.body.labels.len() as u32;
        for label in &body.labels {
            let name = format!("$k{number}_{}", label.name.trim_start_matches('$'));
            self.body.labels.push(Label { name, target: u32::MAX, span: Span::default() });
        }
        let first_table = self.body.branch_tables.len() as u32;
        for table in &body.branch_tables {
            let targets = table.targets.iter().map(|label| LabelId(label.0 + first_label)).collect();
            let name = format!("$k{number}_{}", table.name.trim_start_matches('$'));
            self.body.branch_tables.push(BranchTable { name, targets, span: Span::default() });
        }
        // A kernel waits at its end for the copies that it started, also of threads that return early.
        let waits = how.coherent && source.facts().async_copies;
        let end = waits.then(|| self.label());
        let block = how.block.map(|block| block.map(|extent| self.mov(ScalarType::U32, int(extent.into()))));
        let condition_arguments = self.condition_arguments(source);
        let mut starts = Vec::with_capacity(body.instructions.len() + 1);
        let last = body.instructions.len().saturating_sub(1);
        for (at, original) in body.instructions.iter().enumerate() {
            starts.push(self.body.instructions.len() as u32);
            if self.sets_condition_here(source.module(), original, &condition_arguments, first_register) {
                continue;
            }
            let mut instruction = Instruction { location: None, span: Span::default(), ..original.clone() };
            if let Op::Control(ControlOp::Ret { .. } | ControlOp::Exit) = instruction.op {
                match how.after {
                    AfterReturn::Ends => instruction.op = ControlOp::Ret { uni: false }.into(),
                    AfterReturn::GoesOn(_) if at == last => continue,
                    AfterReturn::GoesOn(target) => {
                        let target = end.unwrap_or(target);
                        instruction.op = ControlOp::Bra { uni: false, target }.into();
                    }
                }
                if let Some(guard) = &mut instruction.guard {
                    guard.reg.0 += first_register;
                }
                self.body.instructions.push(instruction);
                continue;
            }
            self.adjust(&mut instruction.op, how);
            let mut failed = None;
            let mut before = Vec::new();
            let address_type = address_type(&instruction.op);
            instruction.for_each_name_mut(&mut |place| {
                let result = match place {
                    OperandMut::Def(reg) | OperandMut::Use(reg) => {
                        reg.0 += first_register;
                        Ok(())
                    }
                    OperandMut::Pred(gridloom_ptx::PredOperand::Reg { reg, .. }) => {
                        reg.0 += first_register;
                        Ok(())
                    }
                    OperandMut::Pred(_) => Ok(()),
                    OperandMut::Label(label) => {
                        label.0 += first_label;
                        Ok(())
                    }
                    OperandMut::BranchTable(table) => {
                        *table = BranchTableId(table.0 + first_table);
                        Ok(())
                    }
                    OperandMut::Function(id) => self.linked_function(source.module(), id),
                    OperandMut::CallTable(_) | OperandMut::Prototype(_) => Err("an indirect call".into()),
                    OperandMut::Src(operand) => self.operand(
                        operand,
                        source,
                        &mut places,
                        &mut static_shared,
                        how,
                        (block, address_type),
                        &mut before,
                        first_register,
                    ),
                    OperandMut::Addr(address) => {
                        self.address(address, source, &mut places, &mut static_shared, how, first_register)
                    }
                    OperandMut::Var(var) => {
                        match self.variable(*var, source, &mut places, &mut static_shared) {
                            Ok(NewVar { var: new, offset: 0, start: None }) => {
                                *var = new;
                                Ok(())
                            }
                            _ => Err("a call passes what is no variable of its own".into()),
                        }
                    }
                };
                failed = failed.take().or(result.err());
            });
            if let Some(failed) = failed {
                return Err(failed);
            }
            self.body.instructions.append(&mut before);
            if let Op::Sync(SyncOp::Barrier { id, .. }) = &mut instruction.op {
                *id = self.slot_barrier(*id);
            }
            self.body.instructions.push(instruction);
        }
        starts.push(self.body.instructions.len() as u32);
        for (at, label) in body.labels.iter().enumerate() {
            self.body.labels[first_label as usize + at].target = starts[label.target as usize];
        }
        self.arena_bytes = self.arena_bytes.max(static_shared);
        if let Some(end) = end {
            self.place(end);
            self.emit(MemoryOp::CpAsyncWaitAll);
        }
        Ok(starts)
    }

    /// Adjusts an instruction whose meaning depends on its kernel being alone.
    fn adjust(&mut self, op: &mut Op, how: Inlining) {
        if how.coherent {
            make_coherent(op);
        }
        if let Op::Sync(SyncOp::Barrier { threads: threads @ None, .. }) = op {
            *threads = how.block.map(|block| int(block.iter().map(|&extent| i64::from(extent)).product()));
        }
    }

    fn in_arena(&mut self, variable: &Variable, used: &mut u64) -> NewVar {
        let arena = self.arena();
        let align = variable.alignment().max(1);
        let offset = used.next_multiple_of(align);
        *used = offset + variable.size();
        self.arena_align = self.arena_align.max(align);
        let start = self.slots.as_ref().map(|slots| slots.statics);
        NewVar { var: VarRef::Local(arena), offset: offset as i64, start }
    }

    fn in_dynamic(&mut self, variable: &Variable) -> NewVar {
        let start = self.slots.as_ref().and_then(|slots| slots.dynamics);
        NewVar { start, ..NewVar::at(VarRef::Symbol(self.dynamic_shared(variable))) }
    }

    fn variable(
        &mut self,
        var: VarRef,
        source: &KernelSource,
        places: &mut NewVars,
        static_shared: &mut u64,
    ) -> Result<NewVar, Refusal> {
        match var {
            VarRef::Local(id) => Ok(places.locals[id.index()]),
            VarRef::Symbol(id) => {
                if let Some(place) = places.symbols.get(&id) {
                    return Ok(*place);
                }
                let module = source.module();
                let place = match module.variable(id) {
                    Some(variable) if variable.space == VarSpace::Shared && variable.is_unsized() => {
                        self.in_dynamic(variable)
                    }
                    Some(variable) if variable.space == VarSpace::Shared => {
                        self.in_arena(variable, static_shared)
                    }
                    _ => {
                        let mut linked = id;
                        self.linked_symbol(Arc::as_ptr(module) as usize, &mut linked)?;
                        NewVar::at(VarRef::Symbol(linked))
                    }
                };
                places.symbols.insert(id, place);
                Ok(place)
            }
            VarRef::Param(_) | VarRef::Return(_) => Err("a parameter where none can be".into()),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call, and all of it is about one operand")]
    fn operand(
        &mut self,
        operand: &mut Operand,
        source: &KernelSource,
        places: &mut NewVars,
        static_shared: &mut u64,
        how: Inlining,
        (block, address_type): (Option<[RegId; 3]>, Option<ScalarType>),
        before: &mut Vec<Instruction>,
        first_register: u32,
    ) -> Result<(), Refusal> {
        match operand {
            Operand::Reg(reg) => reg.0 += first_register,
            Operand::Imm(_) => {}
            Operand::Special(SpecialReg::Dim(special, dim)) => {
                let at = *dim as usize;
                let register = match (special, how.index, block) {
                    (DimSpecial::CtaId, BlockIndex::Registers { index, .. }, _) => Some(index[at]),
                    (DimSpecial::NCtaId, BlockIndex::Registers { count, .. }, _) => Some(count[at]),
                    (DimSpecial::NTid, _, Some(block)) => Some(block[at]),
                    (DimSpecial::Tid, _, _) => how.thread.map(|thread| thread[at]),
                    _ => None,
                };
                if let Some(register) = register {
                    *operand = register.into();
                }
            }
            Operand::Special(_) => {}
            Operand::Address { base: VarRef::Param(id), offset } => {
                let inside = source.function().params[id.index()].offset as i64 + *offset;
                match how.params {
                    ParamsAt::Offset(at) => {
                        *operand =
                            Operand::Address { base: VarRef::Param(ParamId(0)), offset: at as i64 + inside };
                    }
                    ParamsAt::Register(base) => {
                        *operand = self.sum(ScalarType::U64, base, inside, before).into();
                    }
                }
            }
            Operand::Address { base, offset } => {
                let place = self.variable(*base, source, places, static_shared)?;
                let offset_in_place = *offset + place.offset;
                match place.start {
                    None => (*base, *offset) = (place.var, offset_in_place),
                    Some(start) => {
                        let ty = address_type.ok_or("the address of shared memory in an instruction")?;
                        let (ty, start) = match ty.size() {
                            4 => (ScalarType::U32, start.narrow),
                            8 => (ScalarType::U64, start.wide),
                            _ => return Err("an address that is no address".into()),
                        };
                        *operand = self.sum(ty, start, offset_in_place, before).into();
                    }
                }
            }
        }
        Ok(())
    }

    fn address(
        &mut self,
        address: &mut Address,
        source: &KernelSource,
        places: &mut NewVars,
        static_shared: &mut u64,
        how: Inlining,
        first_register: u32,
    ) -> Result<(), Refusal> {
        match &mut address.base {
            AddressBase::Reg(reg) => reg.0 += first_register,
            AddressBase::Absolute => {}
            AddressBase::Var(VarRef::Param(id)) => {
                let inside = source.function().params[id.index()].offset as i64 + address.offset;
                *address = match how.params {
                    ParamsAt::Offset(at) => param_address(at.wrapping_add_signed(inside)),
                    ParamsAt::Register(base) => Address { base: AddressBase::Reg(base), offset: inside },
                };
            }
            AddressBase::Var(var) => {
                let place = self.variable(*var, source, places, static_shared)?;
                address.offset += place.offset;
                match place.start {
                    None => *var = place.var,
                    Some(start) => address.base = AddressBase::Reg(start.wide),
                }
            }
        }
        Ok(())
    }

    /// Adds `before` an instruction that adds a number to a register, and returns the sum.
    fn sum(&mut self, ty: ScalarType, a: RegId, b: i64, before: &mut Vec<Instruction>) -> RegId {
        let dst = self.register(ty);
        let op = IntOp::Arith { op: IntArith::Add, ty, sat: false, relu: false, dst, a: a.into(), b: int(b) };
        before.push(Instruction { guard: None, op: op.into(), location: None, span: Span::default() });
        dst
    }
}

/// The new locations of an inlined kernel's variables.
#[derive(Default)]
struct NewVars {
    locals: Vec<NewVar>,
    symbols: FxHashMap<SymbolId, NewVar>,
}

/// A variable or a part of one.
#[derive(Clone, Copy)]
struct NewVar {
    var: VarRef,
    offset: i64,
    /// The start of the thread's slot in it, if each slot has a part of its own.
    start: Option<Start>,
}

impl NewVar {
    fn at(var: VarRef) -> Self {
        NewVar { var, offset: 0, start: None }
    }
}
