//! Instruction selection, from the last instruction to the first. What nothing uses is never
//! selected, and what became part of another instruction is not selected again.

mod control;
mod convert;
mod float;
mod form;
mod gather;
mod general;
mod intrinsics;
mod masks;
mod memory;
mod vector;

use super::codes::*;
use super::encode::{Code, Condition};
use super::inst::*;
use super::masks as mask_analysis;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst as Clif, InstructionData, Opcode, Type, Value, ValueDef};
use form::{Address, AddressBase, Form, Source, Use};
use regalloc2::{Operand, VReg};
use std::collections::HashMap;

/// The reason why a function is left to Cranelift.
pub(super) type Unsupported = String;

/// A block of the machine's code.
pub(super) struct MachineBlock {
    pub(super) insts: Vec<Inst>,
    pub(super) successors: Vec<u32>,
    pub(super) params: Vec<VReg>,
    /// What is passed to the only successor.
    pub(super) arguments: Vec<VReg>,
    /// Whether the block seldom runs, and is placed behind the others.
    pub(super) cold: bool,
}

/// A function whose instructions have been selected.
pub(super) struct Selected {
    pub(super) blocks: Vec<MachineBlock>,
    /// The first of the blocks on edges of others.
    pub(super) first_edge: u32,
    pub(super) operands: Vec<Operand>,
    pub(super) vregs: usize,
    pub(super) constants: Vec<Vec<u8>>,
    /// Bytes of the function's own memory.
    pub(super) frame: u32,
}

/// The state of a selection.
pub(super) struct Selector<'a> {
    func: &'a Function,
    is_mask: SecondaryMap<Value, bool>,
    /// How often each value is used.
    uses: SecondaryMap<Value, u32>,
    /// The registers of values that are needed: general ones or vectors, and masks.
    registers: SecondaryMap<Value, Option<VReg>>,
    masks: SecondaryMap<Value, Option<VReg>>,
    /// For each instruction, how many before it in its block access memory.
    order_in_memory: SecondaryMap<Clif, u32>,
    /// Loads that have become part of another instruction.
    merged: SecondaryMap<Clif, bool>,
    next: usize,
    sequence: Sequence,
    operands: Vec<Operand>,
    constants: Vec<Vec<u8>>,
    constant_numbers: HashMap<Vec<u8>, u32>,
    blocks: SecondaryMap<Block, u32>,
    predecessors: SecondaryMap<Block, u32>,
    stack_slots: Vec<u32>,
    /// The instruction being selected.
    at: Option<Clif>,
    /// Whether other instructions also use what is being selected. It must then not contain a load.
    shared: bool,
}

/// Returns the blocks that can be reached, each before those that it dominates.
fn reverse_postorder(func: &Function) -> Vec<Block> {
    let mut order = Vec::new();
    let Some(entry) = func.layout.entry_block() else { return order };
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    seen[entry] = true;
    let successors = |block: Block| -> Vec<Block> {
        let Some(last) = func.layout.last_inst(block) else { return Vec::new() };
        let calls =
            func.dfg.insts[last].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        calls.iter().map(|call| call.block(&func.dfg.value_lists)).collect()
    };
    let mut stack = vec![(entry, successors(entry))];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                stack.push((next, successors(next)));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Selects instructions for a function.
pub(super) fn select(func: &Function) -> Result<Selected, Unsupported> {
    let order = reverse_postorder(func);
    let is_mask = mask_analysis::find(func, &order);
    let values = func.dfg.num_values();
    let mut selector = Selector {
        func,
        is_mask,
        uses: SecondaryMap::with_capacity(values),
        registers: SecondaryMap::with_capacity(values),
        masks: SecondaryMap::with_capacity(values),
        order_in_memory: SecondaryMap::with_capacity(func.dfg.num_insts()),
        merged: SecondaryMap::with_capacity(func.dfg.num_insts()),
        next: 0,
        sequence: Sequence::default(),
        operands: Vec::new(),
        constants: Vec::new(),
        constant_numbers: HashMap::new(),
        blocks: SecondaryMap::new(),
        predecessors: SecondaryMap::new(),
        stack_slots: Vec::new(),
        at: None,
        shared: false,
    };
    let mut frame = 0u32;
    for data in func.sized_stack_slots.values() {
        frame = frame.next_multiple_of((1 << data.align_shift).max(8));
        selector.stack_slots.push(frame);
        frame += data.size;
    }
    selector.count(&order);
    // In the order of the layout, seldom run blocks last.
    let mut reachable: SecondaryMap<Block, bool> = SecondaryMap::new();
    order.iter().for_each(|&block| reachable[block] = true);
    let mut numbered: Vec<Block> = func.layout.blocks().filter(|&block| reachable[block]).collect();
    numbered.sort_by_key(|&block| func.layout.is_cold(block));
    for (number, &block) in numbered.iter().enumerate() {
        selector.blocks[block] = number as u32;
    }
    let mut blocks: Vec<Option<MachineBlock>> = numbered.iter().map(|_| None).collect();
    let mut edges = Vec::new();
    let first_edge = numbered.len() as u32;
    for &block in order.iter().rev() {
        let made = selector.block(block, first_edge, &mut edges)?;
        blocks[selector.blocks[block] as usize] = Some(made);
    }
    let mut blocks: Vec<MachineBlock> = blocks.into_iter().flatten().collect();
    for (&block, made) in numbered.iter().zip(&mut blocks) {
        if func.layout.entry_block() != Some(block) {
            made.params = selector.params(block);
        }
    }
    blocks.extend(edges);
    Ok(Selected {
        blocks,
        first_edge,
        operands: selector.operands,
        vregs: selector.next,
        constants: selector.constants,
        frame,
    })
}

impl Selector<'_> {
    /// Counts how often values are used, and accesses to memory.
    fn count(&mut self, order: &[Block]) {
        let func = self.func;
        for &block in order {
            let mut accesses = 0;
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    let root = self.root(value);
                    self.uses[root] += 1;
                }
                self.order_in_memory[inst] = accesses;
                accesses += u32::from(self.accesses_memory(inst));
            }
            let Some(last) = func.layout.last_inst(block) else { continue };
            let data = &func.dfg.insts[last];
            for call in data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables) {
                self.predecessors[call.block(&func.dfg.value_lists)] += 1;
            }
        }
    }

    fn accesses_memory(&self, inst: Clif) -> bool {
        let data = &self.func.dfg.insts[inst];
        let opcode = data.opcode();
        match data {
            InstructionData::Call { func_ref, .. } => super::intrinsic::Intrinsic::of(self.func, *func_ref)
                .is_none_or(super::intrinsic::Intrinsic::accesses_memory),
            _ => opcode.can_load() || opcode.can_store() || opcode.is_call() || opcode.other_side_effects(),
        }
    }

    fn vreg(&mut self, class: regalloc2::RegClass) -> VReg {
        self.next += 1;
        VReg::new(self.next - 1, class)
    }

    fn general(&mut self) -> VReg {
        self.vreg(GENERAL)
    }

    fn vector(&mut self) -> VReg {
        self.vreg(VECTOR)
    }

    fn mask(&mut self) -> VReg {
        self.vreg(MASK)
    }

    fn type_of(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// Returns the value whose register holds this one: casts and truncations change nothing.
    fn root(&self, value: Value) -> Value {
        let dfg = &self.func.dfg;
        let mut value = dfg.resolve_aliases(value);
        while let ValueDef::Result(inst, _) = dfg.value_def(value) {
            let from = match dfg.insts[inst] {
                InstructionData::Unary { opcode: Opcode::Ireduce, arg } => arg,
                InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. }
                    if in_vector(dfg.value_type(arg)) == in_vector(dfg.value_type(value)) =>
                {
                    arg
                }
                _ => return value,
            };
            value = dfg.resolve_aliases(from);
        }
        value
    }

    /// Returns the instruction that makes a value.
    fn definition(&self, value: Value) -> Option<Clif> {
        match self.func.dfg.value_def(self.root(value)) {
            ValueDef::Result(inst, _) => Some(inst),
            _ => None,
        }
    }

    /// Returns a constant integer, extended with its sign from its width.
    fn constant_of(&self, value: Value) -> Option<i64> {
        let inst = self.definition(value)?;
        let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } = self.func.dfg.insts[inst] else {
            return None;
        };
        let unused = 64 - self.type_of(value).bits().min(64);
        Some(imm.bits() << unused >> unused)
    }

    /// Returns the bytes of a constant vector or float.
    fn bytes_of(&self, value: Value) -> Option<Vec<u8>> {
        let inst = self.definition(value)?;
        match self.func.dfg.insts[inst] {
            InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } => {
                Some(self.func.dfg.constants.get(constant_handle).as_slice().to_vec())
            }
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().to_le_bytes().to_vec()),
            InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits().to_le_bytes().to_vec()),
            _ => None,
        }
    }

    fn constant_number(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&number) = self.constant_numbers.get(bytes) {
            return number;
        }
        let number = self.constants.len() as u32;
        self.constants.push(bytes.to_vec());
        self.constant_numbers.insert(bytes.to_vec(), number);
        number
    }

    fn constant_address(&mut self, bytes: &[u8]) -> Address {
        let number = self.constant_number(bytes);
        Address { base: AddressBase::Constant(number), index: None, displacement: 0 }
    }

    /// Returns the register of a value: a general one or a vector.
    fn register(&mut self, value: Value) -> VReg {
        let root = self.root(value);
        if let Some(inst) = self.definition(root) {
            match self.func.dfg.insts[inst] {
                InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                    let bits = self.type_of(root).bits();
                    let constant = match bits {
                        64 => imm.bits(),
                        bits => imm.bits() & ((1 << bits) - 1),
                    };
                    return self.constant_in_register(constant);
                }
                InstructionData::UnaryConst { .. }
                | InstructionData::UnaryIeee32 { .. }
                | InstructionData::UnaryIeee64 { .. } => {
                    let bytes = self.bytes_of(root).unwrap_or_default();
                    return self.bytes_in_register(&bytes);
                }
                _ => {}
            }
        }
        if let Some(register) = self.registers[root] {
            return register;
        }
        let class = if in_vector(self.type_of(root)) { VECTOR } else { GENERAL };
        let register = self.vreg(class);
        self.registers[root] = Some(register);
        register
    }

    fn constant_in_register(&mut self, constant: i64) -> VReg {
        let register = self.general();
        self.sequence.push(Op::Constant(constant), &[Operand::reg_def(register)]);
        register
    }

    fn bytes_in_register(&mut self, bytes: &[u8]) -> VReg {
        let register = self.vector();
        let length = bytes.len().max(16) as u32;
        let mut operands = Operands::new();
        if bytes.iter().all(|&byte| byte == 0) {
            let field = operands.add(Operand::reg_def(register));
            self.push_encoded(VPXORD.of(16), [field; 3], &operands, Immediate::None);
        } else if length >= 16 && bytes.len() >= 16 && bytes.iter().all(|&byte| byte == 0xff) {
            let field = operands.add(Operand::reg_def(register));
            self.push_encoded(VPTERNLOGD.of(length), [field; 3], &operands, Immediate::Byte(0xff));
        } else if bytes.len() >= 16 && bytes.chunks(4).all(|chunk| chunk == &bytes[..4]) {
            let address = self.constant_address(&bytes[..4]);
            let form = Form::new(VPBROADCASTD.of(length).accessing(4)).reg(Use::Write(register));
            self.push(form.rm(Source::Memory(address)));
        } else if bytes.len() >= 16 && bytes.chunks(8).all(|chunk| chunk == &bytes[..8]) {
            let address = self.constant_address(&bytes[..8]);
            let form = Form::new(VPBROADCASTQ.of(length).accessing(8)).reg(Use::Write(register));
            self.push(form.rm(Source::Memory(address)));
        } else {
            let address = self.constant_address(bytes);
            let code = match bytes.len() {
                4 => VMOVSS.of(16).accessing(4),
                8 => VMOVSD.of(16).accessing(8),
                _ => VMOVUPS.of(length),
            };
            self.push(Form::new(code).reg(Use::Write(register)).rm(Source::Memory(address)));
        }
        register
    }

    fn push_encoded(&mut self, code: Code, fields: [Field; 3], operands: &Operands, immediate: Immediate) {
        let encoded = Encoded {
            code,
            reg: fields[0],
            vvvv: fields[1],
            rm: fields[2],
            memory: None,
            mask: Field::None,
            zero: false,
            broadcast: false,
            immediate,
            lock: false,
        };
        self.sequence.push(Op::Encoded(encoded), operands.list());
    }

    /// Returns the register that a value is to be written to, if it is needed.
    fn wanted(&self, value: Value) -> Option<VReg> {
        self.registers[value]
    }

    /// Adds an instruction.
    fn push(&mut self, form: Form) {
        let mut operands = Operands::new();
        let mut field = |operand: Use| match operand {
            Use::None => Field::None,
            Use::Number(number) => Field::Number(number),
            Use::Read(register) => operands.add(Operand::reg_use(register)),
            Use::Fixed(register, number) => operands.add(Operand::reg_fixed_use(register, general(number))),
            Use::Write(register) => operands.add(Operand::reg_def(register)),
            Use::Over(register, old) => {
                let Field::Operand(index) = operands.add(Operand::reg_use(old)) else { return Field::None };
                operands.add(Operand::reg_reuse_def(register, index.into()))
            }
        };
        let (reg, vvvv) = (field(form.reg), field(form.vvvv));
        let (mut memory, mut broadcast) = (None, form.rounds);
        let rm = match form.rm {
            Err(operand) => field(operand),
            Ok(Source::Register(register)) => field(Use::Read(register)),
            Ok(source @ (Source::Memory(address) | Source::Element(address))) => {
                broadcast = matches!(source, Source::Element(_));
                let number = |field: Field| match field {
                    Field::Operand(number) => number,
                    _ => 0,
                };
                let base = match address.base {
                    AddressBase::Register(base) => Base::Operand(number(field(Use::Read(base)))),
                    AddressBase::Frame => Base::Frame,
                    AddressBase::Constant(constant) => Base::Constant(constant),
                };
                let index = address.index.map(|(index, log)| (number(field(Use::Read(index))), log));
                memory = Some(Memory { base, index, displacement: address.displacement, each: false });
                Field::None
            }
        };
        let mask = form.mask.map_or(Field::None, |mask| field(Use::Read(mask)));
        let encoded = Encoded {
            code: form.code,
            reg,
            vvvv,
            rm,
            memory,
            mask,
            zero: form.zero,
            broadcast,
            immediate: form.immediate,
            lock: form.lock,
        };
        self.sequence.push_clobbering(Op::Encoded(encoded), operands.list(), form.clobbers);
    }

    /// Adds `result = a op b`.
    fn binary(&mut self, code: Code, result: VReg, a: VReg, b: Source) {
        self.push(Form::new(code).reg(Use::Write(result)).vvvv(Use::Read(a)).rm(b));
    }

    /// Adds `result = op a`.
    fn unary(&mut self, code: Code, result: VReg, a: Source) {
        self.push(Form::new(code).reg(Use::Write(result)).rm(a));
    }

    /// Returns the registers of a block's parameters.
    fn params(&mut self, block: Block) -> Vec<VReg> {
        let params = self.func.dfg.block_params(block).to_vec();
        params.into_iter().map(|param| self.passed(param)).collect()
    }

    /// Returns the register in which a value is passed to a block, as the parameter is.
    fn passed(&mut self, param: Value) -> VReg {
        if self.is_mask[param] {
            if let Some(mask) = self.masks[param] {
                return mask;
            }
            let mask = self.mask();
            self.masks[param] = Some(mask);
            return mask;
        }
        self.register(param)
    }

    /// Selects the instructions of a block. Blocks on edges of it are added to others.
    fn block(
        &mut self,
        block: Block,
        first_edge: u32,
        edges: &mut Vec<MachineBlock>,
    ) -> Result<MachineBlock, Unsupported> {
        let func = self.func;
        let cold = func.layout.is_cold(block);
        let mut made = MachineBlock {
            insts: Vec::new(),
            successors: Vec::new(),
            params: Vec::new(),
            arguments: Vec::new(),
            cold,
        };
        let mut inst = func.layout.last_inst(block);
        while let Some(current) = inst {
            self.at = Some(current);
            if func.dfg.insts[current].opcode().is_terminator() {
                self.terminator(current, &mut made, first_edge, edges)?;
            } else if !self.merged[current] {
                self.instruction(current)?;
            }
            self.flush(&mut made.insts);
            inst = func.layout.prev_inst(current);
        }
        self.at = None;
        if func.layout.entry_block() == Some(block) {
            let mut operands = Vec::new();
            for (i, &param) in func.dfg.block_params(block).iter().enumerate() {
                let number = *ARGUMENTS.get(i).ok_or("a function of many parameters")?;
                let register = self.register(param);
                operands.push(Operand::reg_fixed_def(register, general(number)));
            }
            self.sequence.push(Op::Arguments, &operands);
        } else {
            // Masks that are needed as vectors too.
            for &param in func.dfg.block_params(block) {
                if self.is_mask[param] {
                    self.passed(param);
                    self.expand(param);
                }
            }
        }
        self.flush(&mut made.insts);
        made.insts.reverse();
        Ok(made)
    }

    /// Moves the sequence to the end of a list that is in reverse.
    fn flush(&mut self, insts: &mut Vec<Inst>) {
        let first = self.operands.len() as u32;
        self.operands.append(&mut self.sequence.operands);
        for mut inst in self.sequence.insts.drain(..).rev() {
            inst.operands.0 += first;
            inst.operands.1 += first;
            insts.push(inst);
        }
    }

    fn unsupported<T>(&self) -> Result<T, Unsupported> {
        Err(match self.at {
            Some(inst) => format!("an instruction without a selection: {}", self.func.dfg.display_inst(inst)),
            None => "an instruction without a selection".into(),
        })
    }

    fn instruction(&mut self, inst: Clif) -> Result<(), Unsupported> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let opcode = data.opcode();
        let results = func.dfg.inst_results(inst);
        if !self.accesses_memory(inst) {
            let Some(&result) = results.first() else { return Ok(()) };
            // Roots alone have registers.
            if self.root(result) != result {
                return Ok(());
            }
            if self.is_mask[result] && self.masks[result].is_none() && self.registers[result].is_none() {
                return Ok(());
            }
            if self.is_mask[result] {
                return self.make_mask(inst, result);
            }
            let Some(into) = self.wanted(result) else { return Ok(()) };
            let ty = self.type_of(result);
            if let InstructionData::Call { func_ref, .. } = *data {
                return self.intrinsic(inst, func_ref, Some(into));
            }
            return match (ty.is_vector(), ty.is_float()) {
                (true, _) => self.vector_instruction(inst, into, ty),
                (false, true) => self.float_instruction(inst, into, ty),
                (false, false) => self.general_instruction(inst, into, ty),
            };
        }
        match *data {
            InstructionData::Call { func_ref, .. } => {
                let into = results.first().map(|&result| self.register(result));
                self.intrinsic(inst, func_ref, into)
            }
            InstructionData::CallIndirect { sig_ref, .. } => self.call(inst, sig_ref),
            _ => {
                debug_assert!(opcode != Opcode::Call);
                self.memory_instruction(inst)
            }
        }
    }
}

/// Returns whether values of a type are in vector registers.
fn in_vector(ty: Type) -> bool {
    ty.is_vector() || ty.is_float()
}
