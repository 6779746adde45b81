//! Selection of scalar integer instructions, in general-purpose registers. Above the bits of a type
//! narrower than 32 bits, a register holds anything.

use super::*;

impl Selector<'_> {
    /// Returns an operation with a constant, by its number in the instruction.
    pub(super) fn with_constant(&self, number: u8, wide: bool, constant: i32) -> Form {
        match u8::try_from(constant).is_ok_and(|constant| constant < 128) || (-128..0).contains(&constant) {
            true => Form::new(Code::legacy(0, 0, 0x83, wide)).reg(Use::Number(number)).byte(constant as u8),
            false => Form::new(Code::legacy(0, 0, 0x81, wide)).reg(Use::Number(number)).word(constant),
        }
    }

    /// Returns an integer whose bits above its width are zeros or signs, if it has less than 32.
    pub(super) fn extended(&mut self, value: Value, signed: bool) -> VReg {
        let bits = self.type_of(value).bits();
        if bits >= 32 {
            return self.register(value);
        }
        if let Some(constant) = self.constant_of(value) {
            let constant = if signed { constant } else { constant & ((1 << bits) - 1) };
            return self.constant_in_register(i64::from(constant as u32));
        }
        let result = self.general();
        self.extend_into(result, value, signed, false);
        result
    }

    /// Extends an integer to 32 or 64 bits.
    fn extend_into(&mut self, into: VReg, value: Value, signed: bool, wide: bool) {
        let bits = self.type_of(value).bits();
        let source = self.source(value, bits / 8);
        let code = match (bits, signed) {
            (8, false) => Code::legacy(1, 0, 0xb6, false).with_bytes(false, true),
            (8, true) => Code::legacy(1, 0, 0xbe, wide).with_bytes(false, true),
            (16, false) => Code::legacy(1, 0, 0xb7, false),
            (16, true) => Code::legacy(1, 0, 0xbf, wide),
            (32, true) if wide => Code::legacy(0, 0, 0x63, true),
            (32, _) => arithmetic(0x8b, false),
            _ => arithmetic(0x8b, true),
        };
        self.unary(code, into, source);
    }

    /// Adds `result = a op b`, where the result takes the register of `a`.
    fn arithmetic(&mut self, opcode: u8, number: u8, into: VReg, [a, b]: [Value; 2], ty: Type) {
        let wide = ty.bits() == 64;
        let swaps = opcode != 0x2b;
        let (a, b) = if swaps && self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        let left = self.register(a);
        match self.constant_of(b).and_then(|constant| i32::try_from(constant).ok()) {
            Some(constant) => {
                let form = self.with_constant(number, wide, constant);
                self.push(form.rm_use(Use::Over(into, left)));
            }
            None => {
                let right = if ty.bits() >= 32 {
                    self.source(b, ty.bytes())
                } else {
                    Source::Register(self.register(b))
                };
                self.push(Form::new(arithmetic(opcode, wide)).reg(Use::Over(into, left)).rm(right));
            }
        }
    }

    /// Sets a register to the truth of a condition.
    fn set(&mut self, into: VReg, condition: Condition) {
        self.sequence.push(Op::Set(condition), &[Operand::reg_def(into)]);
    }

    fn shift(&mut self, opcode: Opcode, into: VReg, [value, count]: [Value; 2], ty: Type) {
        let bits = ty.bits();
        let wide = bits == 64;
        let from = match opcode {
            Opcode::Ishl => self.register(value),
            _ => self.extended(value, opcode == Opcode::Sshr),
        };
        if let Some(count) = self.constant_of(count) {
            let count = (count as u64 & u64::from(bits - 1)) as u8;
            if opcode == Opcode::Ishl && count == 1 {
                let (base, index) = (AddressBase::Register(from), Some((from, 0)));
                let address = Address { base, index, displacement: 0 };
                return self.unary(arithmetic(0x8d, wide), into, Source::Memory(address));
            }
            let number = match opcode {
                Opcode::Ishl => 4,
                Opcode::Ushr => 5,
                _ => 7,
            };
            let form = Form::new(Code::legacy(0, 0, 0xc1, wide)).reg(Use::Number(number));
            return self.push(form.rm_use(Use::Over(into, from)).byte(count));
        }
        let mut by = self.register(count);
        if bits < 32 {
            let masked = self.general();
            let form = self.with_constant(4, false, bits as i32 - 1);
            self.push(form.rm_use(Use::Over(masked, by)));
            by = masked;
        }
        let prefix = match opcode {
            Opcode::Ishl => 1,
            Opcode::Ushr => 3,
            _ => 2,
        };
        let code = Code::vex(2, prefix, 0xf7, wide, 0);
        self.push(Form::new(code).reg(Use::Write(into)).vvvv(Use::Read(by)).rm(Source::Register(from)));
    }

    fn rotate(
        &mut self,
        right: bool,
        into: VReg,
        [value, count]: [Value; 2],
        ty: Type,
    ) -> Result<(), Unsupported> {
        let bits = ty.bits();
        if bits < 32 {
            return self.unsupported();
        }
        let wide = bits == 64;
        let from = self.register(value);
        if let Some(count) = self.constant_of(count) {
            let count = if right { count } else { -count };
            let count = (count as u64 & u64::from(bits - 1)) as u8;
            let code = Code::vex(3, 3, 0xf0, wide, 0);
            self.push(Form::new(code).reg(Use::Write(into)).rm(Source::Register(from)).byte(count));
            return Ok(());
        }
        let count = self.register(count);
        let form = Form::new(Code::legacy(0, 0, 0xd3, wide)).reg(Use::Number(u8::from(right)));
        // The count is in a register of its own that no field names.
        self.push(form.rm_use(Use::Over(into, from)).vvvv(Use::Fixed(count, RCX)));
        Ok(())
    }

    /// Adds a division, whose operands have 32 or 64 bits.
    fn divide(&mut self, opcode: Opcode, into: VReg, [a, b]: [Value; 2], ty: Type) {
        let signed = matches!(opcode, Opcode::Sdiv | Opcode::Srem);
        let remainder = matches!(opcode, Opcode::Urem | Opcode::Srem);
        let (a, b) = (self.extended(a, signed), self.extended(b, signed));
        let wide = ty.bits() == 64;
        let (result, lost) = if remainder { (RDX, RAX) } else { (RAX, RDX) };
        let operands = [
            Operand::reg_use_at_end(b),
            Operand::reg_fixed_use(a, general(RAX)),
            Operand::reg_fixed_def(into, general(result)),
        ];
        self.sequence.push_clobbering(Op::Divide { signed, wide }, &operands, Clobbers::Register(lost));
    }

    fn multiply(&mut self, into: VReg, [a, b]: [Value; 2], ty: Type) {
        let wide = ty.bits() == 64;
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        if let Some(constant) = self.constant_of(b).and_then(|constant| i32::try_from(constant).ok()) {
            let a = self.register(a);
            let form = Form::new(arithmetic(0x69, wide)).reg(Use::Write(into)).rm(Source::Register(a));
            return self.push(form.word(constant));
        }
        let a = self.register(a);
        let b = if ty.bits() >= 32 { self.source(b, ty.bytes()) } else { Source::Register(self.register(b)) };
        self.push(Form::new(Code::legacy(1, 0, 0xaf, wide)).reg(Use::Over(into, a)).rm(b));
    }

    /// Adds the upper half of a product.
    fn multiply_high(&mut self, signed: bool, into: VReg, [a, b]: [Value; 2], ty: Type) {
        let (a, b) = (self.register(a), self.register(b));
        let number = if signed { 5 } else { 4 };
        let mut form = Form::new(Code::legacy(0, 0, 0xf7, ty.bits() == 64)).reg(Use::Number(number));
        form.clobbers = Clobbers::Register(RAX);
        let operands = [
            Operand::reg_use(b),
            Operand::reg_fixed_use(a, general(RAX)),
            Operand::reg_fixed_def(into, general(RDX)),
        ];
        let encoded = Encoded {
            code: form.code,
            reg: Field::Number(number),
            vvvv: Field::None,
            rm: Field::Operand(0),
            memory: None,
            mask: Field::None,
            zero: false,
            broadcast: false,
            immediate: Immediate::None,
            lock: false,
        };
        self.sequence.push_clobbering(Op::Encoded(encoded), &operands, form.clobbers);
    }

    /// Selects one of two integers by the flags: `into = condition ? a : b`.
    fn choose(&mut self, into: VReg, condition: Condition, a: VReg, b: VReg) {
        let code = Code::legacy(1, 0, 0x40 + condition as u8, true);
        self.push(Form::new(code).reg(Use::Over(into, b)).rm(Source::Register(a)));
    }

    /// Reverses the bits of a word of 32 or 64 bits.
    fn reverse_bits(&mut self, into: VReg, value: Value, wide: bool) {
        let mut word = self.register(value);
        for (count, mask) in [(1u8, 0x55u64), (2, 0x33), (4, 0x0f)] {
            let [up, down, low, high, sum] = [0; 5].map(|_| self.general());
            let ones = if wide { u64::MAX } else { u32::MAX.into() };
            let mask = self.constant_in_register((ones / 0xff * mask) as i64);
            let and = Form::new(arithmetic(0x23, wide)).rm(Source::Register(mask));
            self.push(and.reg(Use::Over(low, word)));
            let shift = Form::new(Code::legacy(0, 0, 0xc1, wide));
            self.push(shift.reg(Use::Number(4)).rm_use(Use::Over(up, low)).byte(count));
            self.push(shift.reg(Use::Number(5)).rm_use(Use::Over(down, word)).byte(count));
            self.push(and.reg(Use::Over(high, down)));
            self.push(Form::new(arithmetic(0x0b, wide)).reg(Use::Over(sum, up)).rm(Source::Register(high)));
            word = sum;
        }
        let operands = [Operand::reg_use(word), Operand::reg_reuse_def(into, 0)];
        self.sequence.push(Op::SwapBytes { wide }, &operands);
    }

    /// Selects an instruction whose result is an integer.
    pub(super) fn general_instruction(
        &mut self,
        inst: Clif,
        into: VReg,
        ty: Type,
    ) -> Result<(), Unsupported> {
        let func = self.func;
        let (bits, wide) = (ty.bits(), ty.bits() == 64);
        match func.dfg.insts[inst] {
            InstructionData::Binary { opcode, args } => match opcode {
                Opcode::Iadd => {
                    // Three operands, and constants, by the arithmetic of addresses.
                    if bits >= 32
                        && self.constant_of(args[1]).is_none()
                        && self.constant_of(args[0]).is_none()
                        || self.constant_of(args[1]).is_some_and(|constant| i32::try_from(constant).is_ok())
                    {
                        let address = self.sum_address(args, wide);
                        self.unary(arithmetic(0x8d, wide), into, Source::Memory(address));
                    } else {
                        self.arithmetic(0x03, 0, into, args, ty);
                    }
                }
                Opcode::Isub => self.arithmetic(0x2b, 5, into, args, ty),
                Opcode::Band => {
                    let [a, b] = if self.constant_of(args[0]).is_some() { [args[1], args[0]] } else { args };
                    let code = match self.constant_of(b) {
                        Some(0xff) if bits >= 32 => Code::legacy(1, 0, 0xb6, false).with_bytes(false, true),
                        Some(0xffff) if bits >= 32 => Code::legacy(1, 0, 0xb7, false),
                        Some(0xffff_ffff) if wide => arithmetic(0x8b, false),
                        _ => {
                            self.arithmetic(0x23, 4, into, args, ty);
                            return Ok(());
                        }
                    };
                    let from = self.register(a);
                    self.unary(code, into, Source::Register(from));
                }
                Opcode::Bor => self.arithmetic(0x0b, 1, into, args, ty),
                Opcode::Bxor => self.arithmetic(0x33, 6, into, args, ty),
                Opcode::Imul => self.multiply(into, args, ty),
                Opcode::Umulhi | Opcode::Smulhi if bits >= 32 => {
                    self.multiply_high(opcode == Opcode::Smulhi, into, args, ty);
                }
                Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => self.shift(opcode, into, args, ty),
                Opcode::Rotr | Opcode::Rotl => return self.rotate(opcode == Opcode::Rotr, into, args, ty),
                Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem => {
                    self.divide(opcode, into, args, ty)
                }
                Opcode::Umin | Opcode::Umax | Opcode::Smin | Opcode::Smax => {
                    let signed = matches!(opcode, Opcode::Smin | Opcode::Smax);
                    let (a, b) = (self.extended(args[0], signed), self.extended(args[1], signed));
                    let form = Form::new(arithmetic(0x3b, wide)).reg(Use::Read(a));
                    self.push(form.rm(Source::Register(b)));
                    let condition = match opcode {
                        Opcode::Umin => Condition::Below,
                        Opcode::Umax => Condition::Above,
                        Opcode::Smin => Condition::Less,
                        _ => Condition::Greater,
                    };
                    self.choose(into, condition, a, b);
                }
                _ => return self.unsupported(),
            },
            InstructionData::Unary { opcode, arg } => match opcode {
                Opcode::Uextend | Opcode::Sextend => {
                    self.extend_into(into, arg, opcode == Opcode::Sextend, wide)
                }
                Opcode::Ineg | Opcode::Bnot => {
                    let from = self.register(arg);
                    let number = if opcode == Opcode::Ineg { 3 } else { 2 };
                    let form = Form::new(Code::legacy(0, 0, 0xf7, wide)).reg(Use::Number(number));
                    self.push(form.rm_use(Use::Over(into, from)));
                }
                Opcode::Iabs => {
                    let from = self.extended(arg, true);
                    let negative = self.general();
                    let form = Form::new(Code::legacy(0, 0, 0xf7, wide)).reg(Use::Number(3));
                    self.push(form.rm_use(Use::Over(negative, from)));
                    let form = Form::new(arithmetic(0x85, wide)).reg(Use::Read(from));
                    self.push(form.rm(Source::Register(from)));
                    self.choose(into, Condition::Less, negative, from);
                }
                Opcode::Bmask => {
                    let condition = self.condition(arg)?;
                    let truth = self.general();
                    self.set(truth, condition);
                    let form = Form::new(Code::legacy(0, 0, 0xf7, true)).reg(Use::Number(3));
                    self.push(form.rm_use(Use::Over(into, truth)));
                }
                Opcode::Popcnt | Opcode::Clz | Opcode::Ctz if bits >= 32 => {
                    let opcode = match opcode {
                        Opcode::Popcnt => 0xb8,
                        Opcode::Clz => 0xbd,
                        _ => 0xbc,
                    };
                    let from = self.register(arg);
                    self.unary(Code::legacy(1, 2, opcode, wide), into, Source::Register(from));
                }
                Opcode::Bitrev if bits >= 32 => self.reverse_bits(into, arg, wide),
                Opcode::VanyTrue | Opcode::VallTrue => {
                    let condition = if opcode == Opcode::VanyTrue {
                        self.test_any(arg);
                        Condition::NotZero
                    } else {
                        self.test_all(arg)
                    };
                    self.set(into, condition);
                }
                Opcode::VhighBits => self.high_bits(into, arg)?,
                Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => {
                    return self.integer_of_float(opcode == Opcode::FcvtToSintSat, into, arg, ty);
                }
                _ => return self.unsupported(),
            },
            InstructionData::IntCompare { cond, args, .. } => {
                let condition = self.compare(cond, args);
                self.set(into, condition);
            }
            InstructionData::FloatCompare { .. } => {
                let mask = self.mask();
                self.compare_floats(inst, mask);
                self.bits_of_mask(into, mask, 8);
            }
            InstructionData::Ternary { opcode: Opcode::Select, args: [condition, a, b] } => {
                let (a, b) = (self.register(a), self.register(b));
                let condition = self.condition(condition)?;
                self.choose(into, condition, a, b);
            }
            InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. } => {
                let from = self.register(arg);
                let code = if wide { VMOVQ_OUT } else { VMOVD_OUT };
                self.push(Form::new(code.of(16)).reg(Use::Read(from)).rm_use(Use::Write(into)));
            }
            InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, arg, imm } => {
                return self.extract(into, arg, imm);
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let displacement = self.stack_slots[stack_slot.as_u32() as usize] as i32 + i32::from(offset);
                let address = Address { base: AddressBase::Frame, index: None, displacement };
                self.unary(arithmetic(0x8d, true), into, Source::Memory(address));
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }
}
