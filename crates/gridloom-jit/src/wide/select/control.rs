//! Selection of branches, calls and conditions.

use super::*;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{BlockCall, SigRef};
use cranelift_codegen::isa::CallConv;

/// Returns the condition of the flags after a comparison.
pub(super) fn condition_of(code: IntCC) -> Condition {
    match code {
        IntCC::Equal => Condition::Zero,
        IntCC::NotEqual => Condition::NotZero,
        IntCC::SignedLessThan => Condition::Less,
        IntCC::SignedGreaterThanOrEqual => Condition::NotLess,
        IntCC::SignedGreaterThan => Condition::Greater,
        IntCC::SignedLessThanOrEqual => Condition::NotGreater,
        IntCC::UnsignedLessThan => Condition::Below,
        IntCC::UnsignedGreaterThanOrEqual => Condition::NotBelow,
        IntCC::UnsignedGreaterThan => Condition::Above,
        IntCC::UnsignedLessThanOrEqual => Condition::NotAbove,
    }
}

/// Returns the number of a floating-point comparison in an instruction.
pub(super) fn float_condition(code: FloatCC) -> u8 {
    match code {
        FloatCC::Equal => 0x00,
        FloatCC::LessThan => 0x01,
        FloatCC::LessThanOrEqual => 0x02,
        FloatCC::Unordered => 0x03,
        FloatCC::NotEqual => 0x04,
        FloatCC::UnorderedOrGreaterThanOrEqual => 0x05,
        FloatCC::UnorderedOrGreaterThan => 0x06,
        FloatCC::Ordered => 0x07,
        FloatCC::UnorderedOrEqual => 0x08,
        FloatCC::UnorderedOrLessThan => 0x09,
        FloatCC::UnorderedOrLessThanOrEqual => 0x0a,
        FloatCC::OrderedNotEqual => 0x0c,
        FloatCC::GreaterThanOrEqual => 0x0d,
        FloatCC::GreaterThan => 0x0e,
    }
}

impl Selector<'_> {
    /// Selects the last instruction of a block.
    pub(super) fn terminator(
        &mut self,
        inst: Clif,
        made: &mut MachineBlock,
        first_edge: u32,
        edges: &mut Vec<MachineBlock>,
    ) -> Result<(), Unsupported> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                made.arguments = self.arguments(&destination);
                made.successors = vec![self.blocks[destination.block(&func.dfg.value_lists)]];
                self.sequence.push(Op::Jump, &[]);
            }
            InstructionData::Brif { arg, ref blocks, .. } => {
                let cold = made.cold;
                made.successors =
                    blocks.iter().map(|call| self.edge(call, cold, first_edge, edges)).collect::<Vec<u32>>();
                let condition = self.condition(arg)?;
                self.sequence.push(Op::JumpIf(condition), &[]);
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let table = &func.dfg.jump_tables[table];
                let calls: Vec<BlockCall> =
                    table.as_slice().iter().copied().chain([table.default_block()]).collect();
                made.successors =
                    calls.iter().map(|call| self.forced_edge(call, made.cold, first_edge, edges)).collect();
                let index = self.register(arg);
                let (a, b) = (self.general(), self.general());
                let operands =
                    [Operand::reg_use(index), Operand::reg_def_at_start(a), Operand::reg_def_at_start(b)];
                self.sequence.push(Op::JumpTable, &operands);
            }
            InstructionData::MultiAry { opcode: Opcode::Return, ref args } => {
                let args = args.as_slice(&func.dfg.value_lists);
                let mut operands = Vec::new();
                match *args {
                    [] => {}
                    [value] if !in_vector(self.type_of(value)) => {
                        let register = self.register(value);
                        operands.push(Operand::reg_fixed_use(register, general(RAX)));
                    }
                    _ => return self.unsupported(),
                }
                self.sequence.push(Op::Return, &operands);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }

    fn arguments(&mut self, call: &BlockCall) -> Vec<VReg> {
        let func = self.func;
        let params = func.dfg.block_params(call.block(&func.dfg.value_lists));
        let mut arguments = Vec::new();
        for (&param, arg) in params.iter().zip(call.args(&func.dfg.value_lists)) {
            let Some(arg) = arg.as_value() else { continue };
            arguments.push(if self.is_mask[param] { self.mask_of(arg) } else { self.register(arg) });
        }
        arguments
    }

    /// Returns the block that a branch leads to: its target, or one on the way to it.
    fn edge(&mut self, call: &BlockCall, cold: bool, first_edge: u32, edges: &mut Vec<MachineBlock>) -> u32 {
        let target = call.block(&self.func.dfg.value_lists);
        match self.predecessors[target] {
            0 | 1 if self.func.dfg.block_params(target).is_empty() => self.blocks[target],
            _ => self.forced_edge(call, cold, first_edge, edges),
        }
    }

    fn forced_edge(
        &mut self,
        call: &BlockCall,
        cold: bool,
        first_edge: u32,
        edges: &mut Vec<MachineBlock>,
    ) -> u32 {
        let target = call.block(&self.func.dfg.value_lists);
        let arguments = self.arguments(call);
        self.sequence.push(Op::Jump, &[]);
        let mut insts = Vec::new();
        self.flush(&mut insts);
        insts.reverse();
        let cold = cold || self.func.layout.is_cold(target);
        edges.push(MachineBlock {
            insts,
            successors: vec![self.blocks[target]],
            params: Vec::new(),
            arguments,
            cold,
        });
        first_edge + edges.len() as u32 - 1
    }

    /// Sets the flags by a truth value. Returns the condition under which it is true.
    pub(super) fn condition(&mut self, value: Value) -> Result<Condition, Unsupported> {
        let is_shared = self.shared || self.uses[self.root(value)] != 1;
        let before = std::mem::replace(&mut self.shared, is_shared);
        let condition = self.condition_alone(value);
        self.shared = before;
        condition
    }

    fn condition_alone(&mut self, value: Value) -> Result<Condition, Unsupported> {
        let func = self.func;
        if let Some(inst) = self.definition(value) {
            match func.dfg.insts[inst] {
                InstructionData::IntCompare { cond, args, .. } if !in_vector(self.type_of(args[0])) => {
                    return Ok(self.compare(cond, args));
                }
                InstructionData::FloatCompare { .. } if !self.type_of(value).is_vector() => {
                    let mask = self.mask();
                    self.compare_floats(inst, mask);
                    self.test_mask(mask, 8);
                    return Ok(Condition::NotZero);
                }
                InstructionData::Unary { opcode: Opcode::VanyTrue, arg } => {
                    self.test_any(arg);
                    return Ok(Condition::NotZero);
                }
                InstructionData::Unary { opcode: Opcode::VallTrue, arg } => return Ok(self.test_all(arg)),
                // A truth value inverted.
                InstructionData::Binary { opcode: Opcode::Bxor, args: [of, one] }
                    if self.constant_of(one) == Some(1) && self.is_truth(of) =>
                {
                    return Ok(self.condition(of)?.not());
                }
                InstructionData::Binary { opcode: Opcode::Band, args: [a, b] }
                    if self.type_of(value).bits() >= 32 =>
                {
                    let wide = self.type_of(value).bits() == 64;
                    self.test(a, b, wide);
                    return Ok(Condition::NotZero);
                }
                _ => {}
            }
        }
        if self.sum_with_flags(value) {
            return Ok(Condition::NotZero);
        }
        let bits = self.type_of(value).bits();
        if bits >= 32
            && let Some(address) = self.merged_load(value, bits / 8)
        {
            let form = self.with_constant(7, bits == 64, 0);
            self.push(form.rm(Source::Memory(address)));
            return Ok(Condition::NotZero);
        }
        let register = self.register(value);
        let code = match bits {
            8 => Code::legacy(0, 0, 0x84, false).with_bytes(true, true),
            16 => Code::legacy(0, 1, 0x85, false),
            bits => Code::legacy(0, 0, 0x85, bits == 64),
        };
        self.push(Form::new(code).reg(Use::Read(register)).rm(Source::Register(register)));
        Ok(Condition::NotZero)
    }

    /// Adds the sum with a constant that a value is, in front of the branch that tests it, so that
    /// the flags tell whether it is zero. Returns `false` if something else in the block needs the
    /// value earlier.
    fn sum_with_flags(&mut self, value: Value) -> bool {
        let func = self.func;
        let Some(branch) = self.at.filter(|&at| func.dfg.insts[at].opcode() == Opcode::Brif) else {
            return false;
        };
        let dfg = &func.dfg;
        let value = dfg.resolve_aliases(value);
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return false };
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [of, more] } = dfg.insts[inst] else {
            return false;
        };
        let ty = self.type_of(value);
        let is_here = func.layout.inst_block(inst) == func.layout.inst_block(branch);
        let Some(more) = self.constant_of(more).and_then(|more| i32::try_from(more).ok()) else {
            return false;
        };
        if !is_here || ty.bits() < 32 || self.constant_of(of).is_some() {
            return false;
        }
        let mut between = func.layout.next_inst(inst);
        while let Some(other) = between.filter(|&other| other != branch) {
            if dfg.inst_values(other).any(|used| self.root(used) == value) {
                return false;
            }
            between = func.layout.next_inst(other);
        }
        self.merged[inst] = true;
        let (into, of) = (self.register(value), self.register(of));
        let form = self.with_constant(0, ty.bits() == 64, more);
        self.push(form.rm_use(Use::Over(into, of)));
        true
    }

    /// Returns whether a value is known to be 0 or 1.
    fn is_truth(&self, value: Value) -> bool {
        self.definition(value).is_some_and(|inst| match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Unary { opcode, .. } => {
                matches!(opcode, Opcode::VanyTrue | Opcode::VallTrue)
            }
            InstructionData::Binary { opcode: Opcode::Bxor, args: [of, one] } => {
                self.constant_of(one) == Some(1) && self.is_truth(of)
            }
            _ => false,
        })
    }

    fn test(&mut self, a: Value, b: Value, wide: bool) {
        let a = self.register(a);
        match self.constant_of(b).and_then(|constant| i32::try_from(constant).ok()) {
            Some(constant) => {
                let code = Code::legacy(0, 0, 0xf7, wide);
                self.push(Form::new(code).reg(Use::Number(0)).rm(Source::Register(a)).word(constant));
            }
            None => {
                let b = self.register(b);
                let code = Code::legacy(0, 0, 0x85, wide);
                self.push(Form::new(code).reg(Use::Read(a)).rm(Source::Register(b)));
            }
        }
    }

    /// Compares integers, which sets the flags.
    pub(super) fn compare(&mut self, cond: IntCC, args: [Value; 2]) -> Condition {
        let ty = self.type_of(args[0]);
        let signed = matches!(
            cond,
            IntCC::SignedLessThan
                | IntCC::SignedLessThanOrEqual
                | IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
        );
        let wide = ty.bits() == 64;
        let constant = match ty.bits() {
            // Both are extended.
            8 | 16 => self.constant_of(args[1]).map(|constant| match signed {
                true => constant,
                false => constant & ((1 << ty.bits()) - 1),
            }),
            _ => self.constant_of(args[1]),
        };
        if constant == Some(0) && ty.bits() >= 32 && matches!(cond, IntCC::Equal | IntCC::NotEqual) {
            if let Some(inst) = self.definition(args[0])
                && let InstructionData::Binary { opcode: Opcode::Band, args: both } =
                    self.func.dfg.insts[inst]
                && self.root(args[0]) == self.func.dfg.resolve_aliases(args[0])
            {
                self.test(both[0], both[1], wide);
                return condition_of(cond);
            }
            if self.sum_with_flags(args[0]) {
                return condition_of(cond);
            }
            let register = self.register(args[0]);
            let code = Code::legacy(0, 0, 0x85, wide);
            self.push(Form::new(code).reg(Use::Read(register)).rm(Source::Register(register)));
            return condition_of(cond);
        }
        let a = self.extended(args[0], signed);
        match constant.and_then(|constant| i32::try_from(constant).ok()) {
            Some(constant) => self.push(self.with_constant(7, wide, constant).rm(Source::Register(a))),
            None => {
                let b = match ty.bits() {
                    8 | 16 => Source::Register(self.extended(args[1], signed)),
                    _ => self.source(args[1], ty.bytes()),
                };
                self.push(Form::new(arithmetic(0x3b, wide)).reg(Use::Read(a)).rm(b));
            }
        }
        condition_of(cond)
    }

    pub(super) fn call(&mut self, inst: Clif, signature: SigRef) -> Result<(), Unsupported> {
        let func = self.func;
        let signature = &func.dfg.signatures[signature];
        let args = func.dfg.inst_args(inst);
        let mut operands = vec![Operand::reg_use(self.register(args[0]))];
        for (i, &arg) in args[1..].iter().enumerate() {
            let (Some(&number), false) = (ARGUMENTS.get(i), in_vector(self.type_of(arg))) else {
                return self.unsupported();
            };
            let register = self.register(arg);
            operands.push(Operand::reg_fixed_use(register, general(number)));
        }
        let preserves = signature.call_conv == CallConv::PreserveAll;
        match (func.dfg.inst_results(inst), preserves) {
            ([], _) => {}
            (&[result], false) if !in_vector(self.type_of(result)) => {
                let register = self.register(result);
                operands.push(Operand::reg_fixed_def(register, general(RAX)));
            }
            _ => return self.unsupported(),
        }
        let clobbers = if preserves { Clobbers::Nothing } else { Clobbers::Call };
        self.sequence.push_clobbering(Op::Call, &operands, clobbers);
        Ok(())
    }
}
