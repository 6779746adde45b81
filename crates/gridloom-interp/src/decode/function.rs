//! Decoding of one function: its registers, frame, labels and operands.

use super::{Decoder, Refusal};
use crate::code::{Base, Function, Guard, Instruction, Meaning, MemoryOperand, Op, Passed, Position};
use crate::fault::Space;
use crate::lanes::{self, Slot, Source};
use crate::layout::VariableId;
use crate::memory::FUNCTION_WINDOW;
use crate::special;
use gridloom_ptx::{
    self as ptx, Address, AddressBase, Body, FunctionKind, Imm, LabelId, Param, PredOperand, RegId,
    ScalarType, SymbolId, TypeClass, VarRef, VarSpace, Variable,
};

/// The least alignment of frames, so that vectors in them are aligned.
const FRAME_ALIGN: u32 = 16;
/// The most local memory of one function. GPUs have the same limit per thread.
const MAX_FRAME: u32 = 512 << 10;

/// The location of a variable.
enum Located {
    /// In the frame of the function, in local memory.
    Frame(u32),
    /// At an address in a space.
    At(Space, u64),
    /// In dynamic shared memory. The address is a constant that is set last.
    Dynamic(u32),
}

/// The state of decoding one function.
pub(super) struct FunctionDecoder<'d, 'a> {
    pub(super) decoder: &'d mut Decoder<'a>,
    id: SymbolId,
    function: &'d ptx::Function,
    pub(super) body: &'d Body,
    /// The first slot and the type of each register.
    registers: Vec<(Slot, ScalarType)>,
    slots: u32,
    /// The type of each slot.
    types: Vec<ScalarType>,
    /// Receives results that are not used.
    sink: Slot,
    /// The carry flag.
    pub(super) carry: Slot,
    /// The offsets of locals, parameters and returns in the frame; `None` for those elsewhere.
    locals: Vec<Option<u32>>,
    params: Vec<Option<u32>>,
    returns: Vec<Option<u32>>,
    frame: u32,
    align: u32,
    entry: u32,
    /// The first decoded instruction of each instruction of the body.
    starts: Vec<u32>,
    guard: Option<Guard>,
    /// The meaning of the maps that are appended next.
    meaning: Meaning,
}

impl<'d, 'a> FunctionDecoder<'d, 'a> {
    pub(super) fn new(
        decoder: &'d mut Decoder<'a>,
        id: SymbolId,
        function: &'d ptx::Function,
        body: &'d Body,
    ) -> Result<Self, Refusal> {
        let mut slots = 0;
        let mut new_slot = |count| {
            slots += count;
            Slot(slots - count)
        };
        let registers =
            body.registers.types().map(|ty| (new_slot(if ty.bits() > 64 { 2 } else { 1 }), ty)).collect();
        let (sink, carry) = (new_slot(1), new_slot(1));
        let mut types = Vec::with_capacity(slots as usize);
        for ty in body.registers.types() {
            types.extend(if ty.bits() > 64 { vec![ScalarType::B64; 2] } else { vec![ty] });
        }
        types.extend([ScalarType::B64, ScalarType::Pred]);
        let entry = decoder.code.instructions.len() as u32;
        let mut this = Self {
            decoder,
            id,
            function,
            body,
            registers,
            slots,
            types,
            sink,
            carry,
            locals: Vec::new(),
            params: Vec::new(),
            returns: Vec::new(),
            frame: 0,
            align: FRAME_ALIGN,
            entry,
            starts: Vec::with_capacity(body.instructions.len()),
            guard: None,
            meaning: Meaning::Other,
        };
        let in_frame = |variable: &Variable| matches!(variable.space, VarSpace::Local | VarSpace::Param);
        for variable in &body.locals {
            let offset = if in_frame(variable) { Some(this.reserve(variable)?) } else { None };
            this.locals.push(offset);
        }
        // The parameters of a kernel have a window of their own.
        if function.kind == FunctionKind::Func {
            for param in &function.params {
                let offset = if in_frame(&param.var) { Some(this.reserve(&param.var)?) } else { None };
                this.params.push(offset);
            }
            for param in &function.returns {
                let offset = if in_frame(&param.var) { Some(this.reserve(&param.var)?) } else { None };
                this.returns.push(offset);
            }
        }
        Ok(this)
    }

    /// Reserves room for a variable in the frame.
    fn reserve(&mut self, variable: &Variable) -> Result<u32, Refusal> {
        let align = u32::try_from(variable.alignment().max(1)).unwrap_or(u32::MAX);
        let offset = self.frame.checked_next_multiple_of(align);
        let end = offset.and_then(|offset| offset.checked_add(u32::try_from(variable.size()).ok()?));
        match (offset, end) {
            (Some(offset), Some(end)) if end <= MAX_FRAME => {
                self.align = self.align.max(align);
                self.frame = end;
                Ok(offset)
            }
            _ => Err(Refusal::because(format!(
                "the local variables of a function take at most {MAX_FRAME} bytes, and `{}` goes past that",
                variable.name
            ))),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.decoder.code.instructions.len()
    }

    pub(super) fn begin_instruction(&mut self) {
        self.starts.push(self.decoder.code.instructions.len() as u32);
    }

    pub(super) fn note_positions(&mut self, start: usize, position: Position) {
        let count = self.len() - start;
        self.decoder.code.positions.extend(std::iter::repeat_n(position, count));
    }

    /// Ends the function: appends a return and resolves the labels of branches.
    pub(super) fn finish(mut self) -> Function {
        let end = self.len() as u32;
        self.guard = None;
        self.emit(Op::Return);
        let nowhere = Position { line: 0, source: None, instruction: 0 };
        let last = self.decoder.code.positions.last().cloned().unwrap_or(nowhere);
        self.decoder.code.positions.push(last);
        let at = |target: u32| self.starts.get(target as usize).copied().unwrap_or(end);
        for instruction in &mut self.decoder.code.instructions[self.entry as usize..] {
            match &mut instruction.op {
                Op::Branch { target } => *target = at(*target),
                Op::BranchTable(table) => table.targets.iter_mut().for_each(|target| *target = at(*target)),
                // A call saves the registers of this function. Their number is known only now.
                Op::Call(call) => call.slots = self.slots,
                _ => {}
            }
        }
        let passed = |(param, offset): (&Param, Option<u32>)| match (offset, param.register) {
            (Some(offset), _) => Passed::Frame { offset, size: param.var.size() as u32 },
            (None, Some(register)) => {
                let (slot, ty) = self.registers[register.index()];
                Passed::Slot { slot, size: ty.size() }
            }
            (None, None) => Passed::Nowhere,
        };
        let offsets = |offsets: &[Option<u32>], i: usize| offsets.get(i).copied().flatten();
        let params =
            self.function.params.iter().enumerate().map(|(i, p)| passed((p, offsets(&self.params, i))));
        let returns =
            self.function.returns.iter().enumerate().map(|(i, p)| passed((p, offsets(&self.returns, i))));
        Function {
            symbol: self.id.0,
            types: self.types,
            entry: self.entry,
            slots: self.slots,
            frame: self.frame,
            align: self.align,
            params: params.collect(),
            returns: returns.collect(),
        }
    }

    pub(super) fn instruction(&mut self, instruction: &ptx::op::Instruction) -> Result<(), Refusal> {
        self.guard =
            instruction.guard.map(|guard| Guard { slot: self.slot(guard.reg), negated: guard.negated });
        self.meaning = Meaning::Instruction(self.starts.len() as u32 - 1);
        match &instruction.op {
            ptx::op::Op::Int(op) => self.integer(op),
            ptx::op::Op::Bits(op) => self.bits(op),
            ptx::op::Op::Float(op) => self.float(op),
            ptx::op::Op::Compare(op) => self.compare(op),
            ptx::op::Op::Convert(op) => self.convert(op),
            ptx::op::Op::Memory(op) => self.memory(op),
            ptx::op::Op::Atomic(op) => self.atomic(op),
            ptx::op::Op::Control(op) => self.control(op),
            ptx::op::Op::Sync(op) => self.sync(op),
            ptx::op::Op::Warp(op) => self.warp(op),
            ptx::op::Op::Unsupported(op) => Err(Refusal::because(op.reason.clone())),
        }
    }

    /// Appends an instruction under the guard of the current one.
    pub(super) fn emit(&mut self, op: Op) {
        self.decoder.code.instructions.push(Instruction { guard: self.guard, op, meaning: self.meaning });
    }

    /// Appends a function of registers with its own meaning: one that is only a part of the current
    /// instruction, or has a simpler description.
    pub(super) fn map_as<const N: usize, const M: usize>(
        &mut self,
        meaning: Meaning,
        destinations: [Slot; M],
        sources: [Source; N],
        function: impl Fn([u64; N]) -> [u64; M] + Send + Sync + 'static,
    ) {
        let whole = std::mem::replace(&mut self.meaning, meaning);
        self.map(destinations, sources, function);
        self.meaning = whole;
    }

    /// Appends a function of registers.
    pub(super) fn map<const N: usize, const M: usize>(
        &mut self,
        destinations: [Slot; M],
        sources: [Source; N],
        function: impl Fn([u64; N]) -> [u64; M] + Send + Sync + 'static,
    ) {
        self.emit(Op::Map(lanes::map(destinations, sources, function)));
    }

    /// Allocates a temporary register.
    pub(super) fn temporary(&mut self, ty: ScalarType) -> Slot {
        self.slots += 1;
        self.types.push(ty);
        Slot(self.slots - 1)
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.function.kind == FunctionKind::Entry
    }

    pub(super) fn slot(&self, register: RegId) -> Slot {
        self.registers[register.index()].0
    }

    pub(super) fn type_of(&self, register: RegId) -> ScalarType {
        self.registers[register.index()].1
    }

    /// Returns the slot of a result, or the sink if there is no destination.
    pub(super) fn slot_or_sink(&self, register: Option<RegId>) -> Slot {
        register.map_or(self.sink, |register| self.slot(register))
    }

    /// Returns the two slots of a 128-bit register.
    pub(super) fn wide_slots(&self, register: Option<RegId>) -> [Slot; 2] {
        match register {
            Some(register) if self.type_of(register).bits() > 64 => {
                let Slot(low) = self.slot(register);
                [Slot(low), Slot(low + 1)]
            }
            _ => [self.sink; 2],
        }
    }

    pub(super) fn wide_sources(&mut self, operand: &ptx::Operand) -> Result<[Source; 2], Refusal> {
        match operand {
            ptx::Operand::Reg(register) if self.type_of(*register).bits() > 64 => {
                Ok(self.wide_slots(Some(*register)).map(Source::Slot))
            }
            ptx::Operand::Imm(Imm::Int(value)) => {
                Ok([self.constant(*value as u64), self.constant((*value >> 63) as u64)])
            }
            _ => Err(Refusal::because("an operand of 128 bits must be a register of that size")),
        }
    }

    pub(super) fn constant(&mut self, value: u64) -> Source {
        Source::Constant(self.decoder.constant(value))
    }

    /// Decodes an operand that is read as a type.
    pub(super) fn source(&mut self, operand: &ptx::Operand, ty: ScalarType) -> Result<Source, Refusal> {
        match operand {
            ptx::Operand::Reg(register) => Ok(Source::Slot(self.slot(*register))),
            ptx::Operand::Imm(imm) => {
                let value = immediate(*imm, ty)?;
                Ok(self.constant(value))
            }
            ptx::Operand::Special(register) => {
                if !special::is_supported(*register) {
                    return Err(Refusal::because(format!(
                        "the special register {register} has no value here"
                    )));
                }
                let destination = self.temporary(special::type_of(*register));
                self.emit(Op::Special { destination, register: *register });
                Ok(Source::Slot(destination))
            }
            ptx::Operand::Address { base, offset } => self.address_source(*base, *offset),
        }
    }

    pub(super) fn sources<const N: usize>(
        &mut self,
        operands: [&ptx::Operand; N],
        ty: ScalarType,
    ) -> Result<[Source; N], Refusal> {
        let mut sources = [Source::Constant(0); N];
        for (source, operand) in sources.iter_mut().zip(operands) {
            *source = self.source(operand, ty)?;
        }
        Ok(sources)
    }

    /// Decodes a predicate operand. Its value is 0 or 1.
    pub(super) fn predicate(&mut self, operand: &PredOperand) -> Source {
        match *operand {
            PredOperand::Const(value) => self.constant(value.into()),
            PredOperand::Reg { reg, negated: false } => Source::Slot(self.slot(reg)),
            PredOperand::Reg { reg, negated: true } => {
                let (source, inverse) = (Source::Slot(self.slot(reg)), self.temporary(ScalarType::Pred));
                self.map_as(Meaning::Not, [inverse], [source], |[p]| [p ^ 1]);
                Source::Slot(inverse)
            }
        }
    }

    /// Returns the location of a variable.
    fn locate(&mut self, variable: VarRef, offset: i64) -> Result<Located, Refusal> {
        let in_frame = |at: u32| Ok(Located::Frame(at));
        match variable {
            VarRef::Local(id) => match self.locals[id.index()] {
                Some(at) => in_frame(at),
                None => {
                    let body = self.body;
                    self.locate_static(VariableId::Static(self.id, id), &body.locals[id.index()], offset)
                }
            },
            VarRef::Param(id) if self.is_kernel() => {
                Ok(Located::At(Space::Param, self.function.params[id.index()].offset))
            }
            VarRef::Param(id) => match self.params.get(id.index()).copied().flatten() {
                Some(at) => in_frame(at),
                None => Err(Refusal::because("a register parameter has no address")),
            },
            VarRef::Return(id) => match self.returns.get(id.index()).copied().flatten() {
                Some(at) => in_frame(at),
                None => Err(Refusal::because("a register return value has no address")),
            },
            VarRef::Symbol(id) => {
                let module = self.decoder.module;
                match module.symbol(id) {
                    ptx::Symbol::Variable(variable) => {
                        self.locate_static(VariableId::Module(id), variable, offset)
                    }
                    ptx::Symbol::Function(_) => {
                        self.find_function(id)?;
                        Ok(Located::At(Space::Global, FUNCTION_WINDOW + u64::from(id.0)))
                    }
                }
            }
        }
    }

    fn locate_static(
        &mut self,
        id: VariableId,
        variable: &Variable,
        offset: i64,
    ) -> Result<Located, Refusal> {
        match variable.space {
            VarSpace::Shared if variable.is_unsized() => {
                Ok(Located::Dynamic(self.decoder.dynamic_shared(variable, offset)))
            }
            VarSpace::Shared => Ok(Located::At(Space::Shared, self.decoder.shared_offset(id, variable))),
            VarSpace::Global | VarSpace::Const => match self.decoder.program.layout.index(id) {
                Some(index) => {
                    let space = if variable.space == VarSpace::Const { Space::Const } else { Space::Global };
                    Ok(Located::At(space, self.decoder.program.addresses[index]))
                }
                None => Err(Refusal::because(format!(
                    "the variable `{}` is declared but not defined; link its definition into the module",
                    variable.name
                ))),
            },
            space => Err(Refusal::because(format!(
                "the variable `{}` at module scope in .{space} space",
                variable.name
            ))),
        }
    }

    /// Returns the index of a function with a body.
    pub(super) fn find_function(&mut self, id: SymbolId) -> Result<u32, Refusal> {
        let module = self.decoder.module;
        match module.function(id) {
            Some(function) if function.body.is_some() => Ok(self.decoder.find(id)),
            _ => Err(Refusal::Undefined(module.symbol(id).name().to_owned())),
        }
    }

    /// Registers every function that an indirect call may reach.
    pub(super) fn find_functions_by_address(&mut self) {
        for &id in self.decoder.program.functions_by_address() {
            self.decoder.find(id);
        }
    }

    fn address_source(&mut self, base: VarRef, offset: i64) -> Result<Source, Refusal> {
        match self.locate(base, offset)? {
            Located::At(_, address) => Ok(self.constant(address.wrapping_add_signed(offset))),
            Located::Dynamic(constant) => Ok(Source::Constant(constant)),
            Located::Frame(at) => {
                let destination = self.temporary(ScalarType::B64);
                let at = u32::try_from(i64::from(at) + offset)
                    .map_err(|_| Refusal::because("an address before the start of local memory"))?;
                self.emit(Op::FrameAddress { destination, offset: at });
                Ok(Source::Slot(destination))
            }
        }
    }

    /// Decodes a memory operand. A variable in it determines the space.
    pub(super) fn memory_operand(
        &mut self,
        space: ptx::Space,
        address: &Address,
    ) -> Result<MemoryOperand, Refusal> {
        let offset = address.offset;
        match address.base {
            AddressBase::Var(variable) => match self.locate(variable, offset)? {
                Located::Frame(at) => Ok(MemoryOperand {
                    space: Space::Local,
                    base: Base::Frame,
                    offset: i64::from(at) + offset,
                    narrow: false,
                }),
                Located::At(space, at) => {
                    let base = Base::Source(self.constant(at));
                    Ok(MemoryOperand { space, base, offset, narrow: false })
                }
                Located::Dynamic(constant) => {
                    let base = Base::Source(Source::Constant(constant));
                    Ok(MemoryOperand { space: Space::Shared, base, offset: 0, narrow: false })
                }
            },
            AddressBase::Reg(register) => {
                let base = Base::Source(Source::Slot(self.slot(register)));
                let narrow = self.type_of(register).bits() <= 32;
                Ok(MemoryOperand { space: self.space(space), base, offset, narrow })
            }
            AddressBase::Absolute => {
                let base = Base::Source(self.constant(0));
                Ok(MemoryOperand { space: self.space(space), base, offset, narrow: false })
            }
        }
    }

    /// Returns the space that an instruction names. The parameters of a kernel are in their window,
    /// those of a function in its frame.
    pub(super) fn space(&self, space: ptx::Space) -> Space {
        match space {
            ptx::Space::Generic => Space::Generic,
            ptx::Space::Global => Space::Global,
            ptx::Space::Const => Space::Const,
            ptx::Space::Local | ptx::Space::ParamFunc => Space::Local,
            ptx::Space::Shared | ptx::Space::SharedCta | ptx::Space::SharedCluster => Space::Shared,
            ptx::Space::ParamEntry => Space::Param,
            ptx::Space::Param if self.is_kernel() => Space::Param,
            ptx::Space::Param => Space::Local,
        }
    }

    /// Returns the placeholder of a label: an instruction of the body. `finish` replaces it.
    pub(super) fn label(&self, label: LabelId) -> u32 {
        self.body.target(label) as u32
    }

    /// Returns the place of a value that is passed through a `.param` variable.
    pub(super) fn passed_variable(&self, variable: VarRef) -> Result<Passed, Refusal> {
        let (offset, size) = match variable {
            VarRef::Local(id) => (self.locals[id.index()], self.body.locals[id.index()].size()),
            VarRef::Param(id) => {
                (self.params.get(id.index()).copied().flatten(), self.function.params[id.index()].var.size())
            }
            VarRef::Return(id) => (
                self.returns.get(id.index()).copied().flatten(),
                self.function.returns[id.index()].var.size(),
            ),
            VarRef::Symbol(_) => (None, 0),
        };
        match offset {
            Some(offset) => Ok(Passed::Frame { offset, size: size as u32 }),
            None => Err(Refusal::because("a call passes .param variables of its own function only")),
        }
    }
}

/// Returns the bits of a constant read as a type.
pub(super) fn immediate(imm: Imm, ty: ScalarType) -> Result<u64, Refusal> {
    let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
    match (imm, ty) {
        (_, ScalarType::F32) => Ok(imm.to_f32_bits().into()),
        (_, ScalarType::F64) => Ok(imm.to_f64_bits()),
        (Imm::Int(value), ScalarType::Pred) => Ok((value != 0).into()),
        // Half and packed types have no literals. Their bits are written as an integer.
        (Imm::Int(value), _) => Ok(value as u64 & mask),
        (Imm::F32(bits), _) if ty.bits() == 32 => Ok(bits.into()),
        (Imm::F64(bits), _) if ty.bits() == 64 && ty.class() != TypeClass::Opaque => Ok(bits),
        (Imm::F64(_), ScalarType::B32) => Ok(imm.to_f32_bits().into()),
        _ => Err(Refusal::because(format!("a floating-point constant as .{ty}"))),
    }
}
