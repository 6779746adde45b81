//! Selection of loads, stores and atomic operations.

use super::super::intrinsic::Intrinsic;
use super::*;
use cranelift_codegen::ir::AtomicRmwOp;

impl Selector<'_> {
    /// Returns the address of a value and an offset. Sums are part of the address.
    pub(super) fn address(&mut self, value: Value, offset: i32) -> Address {
        let func = self.func;
        let mut displacement = i64::from(offset);
        let mut value = value;
        for _ in 0..4 {
            let Some(inst) = self.definition(value) else { break };
            match func.dfg.insts[inst] {
                InstructionData::StackAddr { stack_slot, offset, .. } => {
                    let at = i64::from(self.stack_slots[stack_slot.as_u32() as usize])
                        + i64::from(i32::from(offset));
                    let Ok(displacement) = i32::try_from(displacement + at) else { break };
                    return Address { base: AddressBase::Frame, index: None, displacement };
                }
                InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } => {
                    let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
                    match self.constant_of(b) {
                        Some(constant) => {
                            let sum = displacement.wrapping_add(constant);
                            if i32::try_from(sum).is_err() {
                                break;
                            }
                            (displacement, value) = (sum, a);
                        }
                        // A sum that is needed anyway is not added twice.
                        None if self.uses[self.root(value)] <= 2 => {
                            let mut address = self.sum_address([a, b], true);
                            match i32::try_from(displacement + i64::from(address.displacement)) {
                                Ok(sum) => {
                                    address.displacement = sum;
                                    return address;
                                }
                                Err(_) => break,
                            }
                        }
                        None => break,
                    }
                }
                _ => break,
            }
        }
        let base = AddressBase::Register(self.register(value));
        Address { base, index: None, displacement: displacement as i32 }
    }

    /// Returns a sum as an address.
    pub(super) fn sum_address(&mut self, [a, b]: [Value; 2], wide: bool) -> Address {
        if let Some(constant) = self.constant_of(b)
            && let Ok(displacement) = i32::try_from(constant)
        {
            let base = AddressBase::Register(self.register(a));
            return Address { base, index: None, displacement };
        }
        let scaled = |selector: &Self, value: Value| {
            let inst = selector.definition(value)?;
            let InstructionData::Binary { opcode: Opcode::Ishl, args: [of, count] } =
                selector.func.dfg.insts[inst]
            else {
                return None;
            };
            let is_whole = selector.type_of(selector.root(value)).bits() == 64;
            let count = selector.constant_of(count).filter(|count| (0..=3).contains(count))?;
            (wide && is_whole).then_some((of, count as u8))
        };
        let (base, index) = match (scaled(self, a), scaled(self, b)) {
            (_, Some((index, log))) => (a, (index, log)),
            (Some((index, log)), _) => (b, (index, log)),
            _ => (a, (b, 0)),
        };
        let base = AddressBase::Register(self.register(base));
        let (number, log) = index;
        // A constant that is added to the index moves the address.
        if let Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [number, more] }) =
            self.definition(number).map(|inst| self.func.dfg.insts[inst])
            && wide
            && self.type_of(self.root(index.0)).bits() == 64
            && let Some(Ok(displacement)) = self.constant_of(more).map(|more| i32::try_from(more << log))
        {
            return Address { base, index: Some((self.register(number), log)), displacement };
        }
        Address { base, index: Some((self.register(number), log)), displacement: 0 }
    }

    /// Returns a value as an operand that may be in memory: a load that only this instruction uses,
    /// if nothing between the two accesses memory.
    pub(super) fn source(&mut self, value: Value, bytes: u32) -> Source {
        match self.merged_load(value, bytes) {
            Some(address) => Source::Memory(address),
            None => Source::Register(self.register(value)),
        }
    }

    pub(super) fn merged_load(&mut self, value: Value, bytes: u32) -> Option<Address> {
        let (load, arg, offset) = self.mergeable_load(value, bytes)?;
        self.merged[load] = true;
        Some(self.address(arg, offset))
    }

    /// Returns the load of a value that can be part of the instruction being selected, with its
    /// address and offset.
    pub(super) fn mergeable_load(&self, value: Value, bytes: u32) -> Option<(Clif, Value, i32)> {
        let func = self.func;
        let (at, load) = (self.at?, self.definition(value)?);
        let InstructionData::Load { opcode: Opcode::Load, arg, offset, .. } = func.dfg.insts[load] else {
            return None;
        };
        let root = self.root(value);
        let is_next = func.layout.inst_block(load) == func.layout.inst_block(at)
            && self.order_in_memory[at] == self.order_in_memory[load] + 1;
        if self.shared
            || self.uses[root] != 1
            || !is_next
            || self.type_of(root).bytes() != bytes
            || self.registers[root].is_some()
        {
            return None;
        }
        Some((load, arg, offset.into()))
    }

    /// Adds an instruction that loads, combines and stores one value, if that is all that a stored
    /// value is made of. Returns whether it did.
    fn combine_in_memory(&mut self, value: Value, at: Value, offset: i32) -> bool {
        let func = self.func;
        let ty = self.type_of(value);
        let Some(inst) = self.definition(value).filter(|_| matches!(ty.bits(), 32 | 64)) else {
            return false;
        };
        let InstructionData::Binary { opcode, args } = func.dfg.insts[inst] else { return false };
        let (register, number) = match opcode {
            Opcode::Iadd => (0x01, 0),
            Opcode::Bor => (0x09, 1),
            Opcode::Band => (0x21, 4),
            Opcode::Isub => (0x29, 5),
            Opcode::Bxor => (0x31, 6),
            _ => return false,
        };
        let root = self.root(value);
        if in_vector(ty) || self.uses[root] != 1 || self.type_of(root) != ty || self.registers[root].is_some()
        {
            return false;
        }
        let is_same = |selector: &Self, value: Value| {
            let load = selector.definition(value).map(|load| &func.dfg.insts[load]);
            matches!(load, Some(&InstructionData::Load { opcode: Opcode::Load, arg, offset: from, .. })
                if selector.root(arg) == selector.root(at) && i32::from(from) == offset)
        };
        let [a, b] = args;
        let (loaded, other) = match opcode {
            _ if is_same(self, a) => (a, b),
            Opcode::Isub => return false,
            _ if is_same(self, b) => (b, a),
            _ => return false,
        };
        if self.root(loaded) == self.root(other) || self.merged_load(loaded, ty.bytes()).is_none() {
            return false;
        }
        let wide = ty.bits() == 64;
        let constant = self.constant_of(other).and_then(|constant| i32::try_from(constant).ok());
        let other = if constant.is_some() { None } else { Some(self.register(other)) };
        let place = Source::Memory(self.address(at, offset));
        self.push(match (constant, other) {
            (Some(constant), _) => self.with_constant(number, wide, constant).rm(place),
            (_, Some(other)) => Form::new(arithmetic(register, wide)).reg(Use::Read(other)).rm(place),
            (None, None) => return false,
        });
        true
    }

    /// Adds an instruction that stores 16 bytes of a longer vector, if a stored value is nothing
    /// else. Returns whether it did.
    fn store_quarter(&mut self, value: Value, at: Value, offset: i32) -> bool {
        let (func, root) = (self.func, self.root(value));
        let Some(inst) = self.definition(value) else { return false };
        let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return false };
        if Intrinsic::of(func, func_ref) != Some(Intrinsic::Quarter)
            || self.uses[root] != 1
            || self.registers[root].is_some()
        {
            return false;
        }
        let &[vector, number] = func.dfg.inst_args(inst) else { return false };
        let Some(number) = self.constant_of(number) else { return false };
        let from = self.register(vector);
        let address = self.address(at, offset);
        let form = match number {
            0 => Form::new(VMOVUPS_STORE.of(16)),
            number => {
                let code = VEXTRACTI32X4.of(self.type_of(vector).bytes()).accessing(16);
                Form::new(code).byte(number as u8)
            }
        };
        self.push(form.reg(Use::Read(from)).rm(Source::Memory(address)));
        true
    }

    pub(super) fn memory_instruction(&mut self, inst: Clif) -> Result<(), Unsupported> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::Load { opcode, arg, offset, .. } => {
                let result = func.dfg.first_result(inst);
                let ty = self.type_of(result);
                let into = self.register(result);
                let address = self.address(arg, offset.into());
                let code = match opcode {
                    Opcode::Load => match (ty.is_vector() || ty.is_float(), ty.bytes()) {
                        (true, 4) => VMOVSS.of(16).accessing(4),
                        (true, 8) => VMOVSD.of(16).accessing(8),
                        (true, bytes @ (16 | 32 | 64)) => VMOVUPS.of(bytes),
                        (false, 1) => Code::legacy(1, 0, 0xb6, false),
                        (false, 2) => Code::legacy(1, 0, 0xb7, false),
                        (false, 4) => arithmetic(0x8b, false),
                        (false, 8) => arithmetic(0x8b, true),
                        _ => return self.unsupported(),
                    },
                    Opcode::Uload8 => Code::legacy(1, 0, 0xb6, false),
                    Opcode::Uload16 => Code::legacy(1, 0, 0xb7, false),
                    Opcode::Uload32 => arithmetic(0x8b, false),
                    Opcode::Sload8 => Code::legacy(1, 0, 0xbe, ty.bits() == 64),
                    Opcode::Sload16 => Code::legacy(1, 0, 0xbf, ty.bits() == 64),
                    Opcode::Sload32 => Code::legacy(0, 0, 0x63, true),
                    Opcode::Uload16x4 => VPMOVZXWD.of(16).accessing(8),
                    Opcode::Sload16x4 => VPMOVSXWD.of(16).accessing(8),
                    Opcode::Uload8x8 => VPMOVZXBW.of(16).accessing(8),
                    Opcode::Sload8x8 => VPMOVSXBW.of(16).accessing(8),
                    _ => return self.unsupported(),
                };
                let code = if matches!(
                    opcode,
                    Opcode::Uload16x4 | Opcode::Sload16x4 | Opcode::Uload8x8 | Opcode::Sload8x8
                ) {
                    Code { access: 8, ..code }
                } else {
                    code
                };
                self.unary(code, into, Source::Memory(address));
            }
            InstructionData::Store { opcode, args: [value, at], offset, .. } => {
                let ty = self.type_of(value);
                if opcode == Opcode::Store
                    && (self.combine_in_memory(value, at, offset.into())
                        || self.store_quarter(value, at, offset.into()))
                {
                    return Ok(());
                }
                let from = self.register(value);
                let address = self.address(at, offset.into());
                let bytes = match opcode {
                    Opcode::Store => ty.bytes(),
                    Opcode::Istore8 => 1,
                    Opcode::Istore16 => 2,
                    Opcode::Istore32 => 4,
                    _ => return self.unsupported(),
                };
                let code = match (in_vector(ty), bytes) {
                    (true, 4) => VMOVSS_STORE.of(16).accessing(4),
                    (true, 8) => VMOVSD_STORE.of(16).accessing(8),
                    (true, bytes @ (16 | 32 | 64)) => VMOVUPS_STORE.of(bytes),
                    (false, 1) => Code::legacy(0, 0, 0x88, false).with_bytes(true, false),
                    (false, 2) => Code::legacy(0, 1, 0x89, false),
                    (false, 4) => arithmetic(0x89, false),
                    (false, 8) => arithmetic(0x89, true),
                    _ => return self.unsupported(),
                };
                self.push(Form::new(code).reg(Use::Read(from)).rm(Source::Memory(address)));
            }
            InstructionData::NullAry { opcode: Opcode::Fence } => {
                self.push(
                    Form::new(Code::legacy(1, 0, 0xae, false)).reg(Use::Number(6)).rm_use(Use::Number(0)),
                );
            }
            InstructionData::AtomicCas { args: [at, expected, new], .. } => {
                let result = func.dfg.first_result(inst);
                let ty = self.type_of(result);
                if ty.bits() < 32 {
                    return self.unsupported();
                }
                let into = self.register(result);
                let (at, expected, new) = (self.register(at), self.register(expected), self.register(new));
                let operands = [
                    Operand::reg_use(new),
                    Operand::reg_use(at),
                    Operand::reg_fixed_use(expected, general(RAX)),
                    Operand::reg_fixed_def(into, general(RAX)),
                ];
                let memory = Memory { base: Base::Operand(1), index: None, displacement: 0, each: false };
                let encoded = Encoded {
                    code: Code::legacy(1, 0, 0xb1, ty.bits() == 64),
                    reg: Field::Operand(0),
                    vvvv: Field::None,
                    rm: Field::None,
                    memory: Some(memory),
                    mask: Field::None,
                    zero: false,
                    broadcast: false,
                    immediate: Immediate::None,
                    lock: true,
                };
                self.sequence.push(Op::Encoded(encoded), &operands);
            }
            InstructionData::AtomicRmw { op, args: [at, value], .. } => {
                let result = func.dfg.first_result(inst);
                let ty = self.type_of(result);
                if ty.bits() < 32 {
                    return self.unsupported();
                }
                let wide = ty.bits() == 64;
                let into = self.register(result);
                let (at, value) = (self.register(at), self.register(value));
                let combine = match op {
                    AtomicRmwOp::Add
                    | AtomicRmwOp::Sub
                    | AtomicRmwOp::And
                    | AtomicRmwOp::Or
                    | AtomicRmwOp::Xor
                        if self.uses[result] == 0 =>
                    {
                        let opcode = match op {
                            AtomicRmwOp::Add => 0x01,
                            AtomicRmwOp::Sub => 0x29,
                            AtomicRmwOp::And => 0x21,
                            AtomicRmwOp::Or => 0x09,
                            _ => 0x31,
                        };
                        let base = AddressBase::Register(at);
                        let address = Address { base, index: None, displacement: 0 };
                        let form = Form::new(arithmetic(opcode, wide)).reg(Use::Read(value));
                        self.push(Form { lock: true, ..form.rm(Source::Memory(address)) });
                        return Ok(());
                    }
                    AtomicRmwOp::Add | AtomicRmwOp::Xchg => {
                        let code = match op {
                            AtomicRmwOp::Add => Code::legacy(1, 0, 0xc1, wide),
                            _ => Code::legacy(0, 0, 0x87, wide),
                        };
                        let base = AddressBase::Register(at);
                        let address = Address { base, index: None, displacement: 0 };
                        let mut form =
                            Form::new(code).reg(Use::Over(into, value)).rm(Source::Memory(address));
                        form.lock = op == AtomicRmwOp::Add;
                        self.push(form);
                        return Ok(());
                    }
                    AtomicRmwOp::And => Combine::Arithmetic(0x23),
                    AtomicRmwOp::Or => Combine::Arithmetic(0x0b),
                    AtomicRmwOp::Xor => Combine::Arithmetic(0x33),
                    AtomicRmwOp::Sub => Combine::Arithmetic(0x2b),
                    AtomicRmwOp::Umin => Combine::Choose(Condition::Below),
                    AtomicRmwOp::Umax => Combine::Choose(Condition::Above),
                    AtomicRmwOp::Smin => Combine::Choose(Condition::Less),
                    AtomicRmwOp::Smax => Combine::Choose(Condition::Greater),
                    AtomicRmwOp::Nand => return self.unsupported(),
                };
                let own = self.general();
                let operands = [
                    Operand::reg_use_at_end(at),
                    Operand::reg_use_at_end(value),
                    Operand::reg_fixed_def_at_start(into, general(RAX)),
                    Operand::reg_def_at_start(own),
                ];
                self.sequence.push(Op::AtomicLoop(AtomicLoop { combine, wide }), &operands);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }
}
