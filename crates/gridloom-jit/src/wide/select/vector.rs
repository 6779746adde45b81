//! Selection of instructions on vectors of integers and floats.

use super::*;

/// Returns the code for an operation on two vectors, for elements of 32 or of 64 bits.
fn integer_code(opcode: Opcode, quad: bool) -> Option<Code> {
    Some(match (opcode, quad) {
        (Opcode::Iadd, false) => VPADDD,
        (Opcode::Iadd, true) => VPADDQ,
        (Opcode::Isub, false) => VPSUBD,
        (Opcode::Isub, true) => VPSUBQ,
        (Opcode::Imul, false) => VPMULLD,
        (Opcode::Imul, true) => VPMULLQ,
        (Opcode::Band, false) => VPANDD,
        (Opcode::Band, true) => VPANDQ,
        (Opcode::Bor, false) => VPORD,
        (Opcode::Bor, true) => VPORQ,
        (Opcode::Bxor, false) => VPXORD,
        (Opcode::Bxor, true) => VPXORQ,
        (Opcode::Smin, false) => VPMINSD,
        (Opcode::Smin, true) => VPMINSQ,
        (Opcode::Umin, false) => VPMINUD,
        (Opcode::Umin, true) => VPMINUQ,
        (Opcode::Smax, false) => VPMAXSD,
        (Opcode::Smax, true) => VPMAXSQ,
        (Opcode::Umax, false) => VPMAXUD,
        (Opcode::Umax, true) => VPMAXUQ,
        _ => return None,
    })
}

/// Returns the opcode for an operation on two floats or vectors of them.
pub(super) fn float_opcode(opcode: Opcode) -> Option<u8> {
    Some(match opcode {
        Opcode::Fadd => 0x58,
        Opcode::Fmul => 0x59,
        Opcode::Fsub => 0x5c,
        Opcode::Fdiv => 0x5e,
        _ => return None,
    })
}

impl Selector<'_> {
    /// Returns a vector as an operand that may be in memory.
    pub(super) fn vector_source(&mut self, value: Value, ty: Type) -> Source {
        if let Some(bytes) = self.bytes_of(value) {
            let lane = ty.lane_type().bytes() as usize;
            let is_zero = bytes.iter().all(|&byte| byte == 0);
            if !is_zero && matches!(lane, 4 | 8) && bytes.chunks(lane).all(|chunk| chunk == &bytes[..lane]) {
                let address = self.constant_address(&bytes[..lane]);
                return Source::Element(address);
            }
            if !is_zero && bytes.len() as u32 == ty.bytes() {
                let address = self.constant_address(&bytes);
                return Source::Memory(address);
            }
            return Source::Register(self.register(value));
        }
        self.source(value, ty.bytes())
    }

    fn is_zero(&self, value: Value) -> bool {
        self.bytes_of(value).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
    }

    /// Swaps operands so that a constant, or a load that can be part of the instruction, is the
    /// second.
    pub(super) fn ordered(&self, [a, b]: [Value; 2]) -> [Value; 2] {
        let is_constant = |value: Value| self.bytes_of(value).is_some();
        let can_merge = |value: Value| self.mergeable_load(value, self.type_of(value).bytes()).is_some();
        if is_constant(a) || !is_constant(b) && can_merge(a) && !can_merge(b) { [b, a] } else { [a, b] }
    }

    /// Selects an instruction whose result is a vector and not a mask.
    pub(super) fn vector_instruction(&mut self, inst: Clif, into: VReg, ty: Type) -> Result<(), Unsupported> {
        let func = self.func;
        let bytes = ty.bytes();
        let quad = ty.lane_bits() == 64;
        let narrow = ty.lane_bits() < 32;
        if !matches!(bytes, 16 | 32 | 64) {
            return self.unsupported();
        }
        match func.dfg.insts[inst] {
            InstructionData::Binary { opcode, args } => match opcode {
                Opcode::Band | Opcode::Bor | Opcode::Bxor => {
                    let [a, b] = self.ordered(args);
                    let code = integer_code(opcode, quad).map(|code| code.of(bytes));
                    // A mask leaves elements or clears them.
                    if opcode == Opcode::Band {
                        for (mask, of) in [(a, b), (b, a)] {
                            let root = self.root(mask);
                            let fits = self.is_mask[root]
                                && self.bytes_of(root).is_none()
                                && self.type_of(root).lane_bits() == ty.lane_bits();
                            if fits {
                                let mask = self.mask_of(root);
                                let from = self.vector_plain_source(of, ty);
                                let code = if quad { VMOVDQU64 } else { VMOVDQU32 };
                                let form = Form::new(code.of(bytes)).reg(Use::Write(into)).rm(from);
                                self.push(form.under(mask, true));
                                return Ok(());
                            }
                        }
                    }
                    let Some(code) = code else { return self.unsupported() };
                    let (a, b) = (self.register(a), self.vector_source(b, ty));
                    self.binary(code, into, a, b);
                }
                Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => {
                    return self.shift_vector(opcode, into, args, ty);
                }
                Opcode::Imul if quad && self.is_widened_product(args).is_some() => {
                    let Some(signed) = self.is_widened_product(args) else { return self.unsupported() };
                    let (a, b) = (self.register(args[0]), self.register(args[1]));
                    let code = if signed { VPMULDQ } else { VPMULUDQ };
                    self.binary(code.of(bytes), into, a, Source::Register(b));
                }
                Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv => {
                    let [a, b] = match opcode {
                        Opcode::Fadd | Opcode::Fmul => self.ordered(args),
                        _ => args,
                    };
                    let code = float(float_opcode(opcode).unwrap_or_default(), quad, false).of(bytes);
                    let (a, b) = (self.register(a), self.vector_source(b, ty));
                    self.binary(code, into, a, b);
                }
                Opcode::Fmin | Opcode::Fmax => self.extremum(opcode == Opcode::Fmax, into, args, ty),
                Opcode::X86Pshufb => {
                    let (a, b) = (self.register(args[0]), self.vector_plain_source(args[1], ty));
                    self.binary(VPSHUFB.of(bytes), into, a, b);
                }
                opcode => {
                    let Some(code) = integer_code(opcode, quad).filter(|_| !narrow) else {
                        return self.unsupported();
                    };
                    let [a, b] = if opcode == Opcode::Isub { args } else { self.ordered(args) };
                    let (a, b) = (self.register(a), self.vector_source(b, ty));
                    self.binary(code.of(bytes), into, a, b);
                }
            },
            InstructionData::Unary { opcode, arg } => return self.unary_of_vector(opcode, into, arg, ty),
            InstructionData::Ternary { opcode, args: [a, b, c] } => match opcode {
                Opcode::Bitselect => self.pick(into, a, [b, c], ty),
                Opcode::Select => {
                    let condition = self.condition(a)?;
                    let [truth, all] = [0; 2].map(|_| self.general());
                    self.sequence.push(Op::Set(condition), &[Operand::reg_def(truth)]);
                    let form = Form::new(Code::legacy(0, 0, 0xf7, true)).reg(Use::Number(3));
                    self.push(form.rm_use(Use::Over(all, truth)));
                    let mask = self.mask();
                    self.unary(Code::vex(1, 0, 0x92, false, 0), mask, Source::Register(all));
                    let (b, c) = (self.register(b), self.register(c));
                    let code = if quad { VPBLENDMQ } else { VPBLENDMD };
                    let form = Form::new(code.of(bytes)).reg(Use::Write(into)).vvvv(Use::Read(c));
                    self.push(form.rm(Source::Register(b)).under(mask, false));
                }
                Opcode::Fma => self.multiply_add(into, [a, b, c], ty),
                Opcode::Blendv if !narrow => {
                    let vector = self.register(a);
                    let mask = self.mask();
                    let code = if quad { VPMOVQ2M } else { VPMOVD2M };
                    self.unary(code.of(bytes), mask, Source::Register(vector));
                    let (b, c) = (self.register(b), self.register(c));
                    let code = if quad { VPBLENDMQ } else { VPBLENDMD };
                    let form = Form::new(code.of(bytes)).reg(Use::Write(into)).vvvv(Use::Read(c));
                    self.push(form.rm(Source::Register(b)).under(mask, false));
                }
                _ => return self.unsupported(),
            },
            InstructionData::Shuffle { args, imm, .. } => {
                // Of whole words.
                let order =
                    func.dfg.immediates.get(imm).map(|order| order.as_slice().to_vec()).unwrap_or_default();
                let is_word = |word: &[u8]| {
                    word[0].is_multiple_of(4) && word.windows(2).all(|pair| pair[1] == pair[0] + 1)
                };
                if !order.chunks(4).all(is_word) {
                    return self.unsupported();
                }
                let words = order.chunks(4).map(|word| u32::from(word[0] / 4)).collect();
                self.pick_words(into, args, words, bytes);
            }
            InstructionData::TernaryImm8 { opcode: Opcode::Insertlane, args: [vector, value], imm }
                if bytes == 16 =>
            {
                return self.insert(into, [vector, value], imm, ty);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }

    /// Returns a vector as an operand that may be in memory, but not as one element.
    fn vector_plain_source(&mut self, value: Value, ty: Type) -> Source {
        if self.bytes_of(value).is_some() {
            return Source::Register(self.register(value));
        }
        self.source(value, ty.bytes())
    }

    pub(super) fn ternary(&mut self, into: VReg, a: VReg, b: VReg, c: Source, table: u8, ty: Type) {
        let code = if ty.lane_bits() == 64 { VPTERNLOGQ } else { VPTERNLOGD };
        let form = Form::new(code.of(ty.bytes())).reg(Use::Over(into, a)).vvvv(Use::Read(b));
        self.push(form.rm(c).byte(table));
    }

    /// Returns whether both operands are extended from 32 bits, with or without their signs.
    fn is_widened_product(&self, args: [Value; 2]) -> Option<bool> {
        let [a, b] = args.map(|arg| match self.func.dfg.insts[self.definition(arg)?] {
            InstructionData::Unary { opcode: Opcode::SwidenLow | Opcode::SwidenHigh, .. } => Some(true),
            InstructionData::Unary { opcode: Opcode::UwidenLow | Opcode::UwidenHigh, .. } => Some(false),
            _ => None,
        });
        a.filter(|_| a == b)
    }

    /// Selects elements, or bits, of two vectors by a third.
    fn pick(&mut self, into: VReg, which: Value, [a, b]: [Value; 2], ty: Type) {
        let root = self.root(which);
        let quad = self.type_of(root).lane_bits() == 64;
        if !self.is_mask[root] || self.bytes_of(root).is_some() {
            let (which, a, b) = (self.register(which), self.register(a), self.register(b));
            return self.ternary(into, which, a, Source::Register(b), 0xca, ty);
        }
        if let Some(code) = self.extremum_by_choice(root, [a, b], ty) {
            let (a, b) = (self.register(a), self.register(b));
            return self.binary(code.of(ty.bytes()), into, a, Source::Register(b));
        }
        let code = if quad { VMOVDQU64 } else { VMOVDQU32 };
        let lane = if quad { 8 } else { 4 };
        let element_type = self.type_of(root);
        let mask = self.mask_of(root);
        if self.is_zero(b) {
            let from = self.vector_plain_source(a, ty);
            let form = Form::new(code.of(ty.bytes())).reg(Use::Write(into)).rm(from);
            return self.push(form.under(mask, true));
        }
        debug_assert_eq!(element_type.lane_type().bytes(), lane);
        let b = self.register(b);
        let a = self.vector_source(a, element_type);
        let code = if quad { VPBLENDMQ } else { VPBLENDMD };
        let form = Form::new(code.of(ty.bytes())).reg(Use::Write(into)).vvvv(Use::Read(b));
        self.push(form.rm(a).under(mask, false));
    }

    /// Returns the instruction for the lesser or greater of two vectors, if a choice is that.
    fn extremum_by_choice(&self, mask: Value, [a, b]: [Value; 2], ty: Type) -> Option<Code> {
        use cranelift_codegen::ir::condcodes::FloatCC;
        let InstructionData::FloatCompare { cond, args, .. } = self.func.dfg.insts[self.definition(mask)?]
        else {
            return None;
        };
        let [x, y] = args.map(|arg| self.root(arg));
        let (a, b) = (self.root(a), self.root(b));
        let double = self.type_of(args[0]).lane_bits() == 64;
        if self.type_of(args[0]).bytes() != ty.bytes() {
            return None;
        }
        let opcode = match cond {
            FloatCC::LessThan if (a, b) == (x, y) => 0x5d,
            FloatCC::LessThan if (a, b) == (y, x) => 0x5f,
            FloatCC::GreaterThan if (a, b) == (x, y) => 0x5f,
            FloatCC::GreaterThan if (a, b) == (y, x) => 0x5d,
            _ => return None,
        };
        Some(float(opcode, double, false))
    }

    fn shift_vector(
        &mut self,
        opcode: Opcode,
        into: VReg,
        [value, count]: [Value; 2],
        ty: Type,
    ) -> Result<(), Unsupported> {
        let (bits, bytes) = (ty.lane_bits(), ty.bytes());
        let from = self.register(value);
        if bits < 16 {
            return self.unsupported();
        }
        if let Some(count) = self.constant_of(count) {
            let count = (count as u64 & u64::from(bits - 1)) as u8;
            let (number, code) = match (opcode, bits) {
                (Opcode::Ishl, 64) => (6, SHIFT_IMM_Q),
                (Opcode::Ushr, 64) => (2, SHIFT_IMM_Q),
                (_, 64) => (4, VPSRAQ_IMM),
                (Opcode::Ishl, 32) => (6, SHIFT_IMM_D),
                (Opcode::Ushr, 32) => (2, SHIFT_IMM_D),
                (_, 32) => (4, SHIFT_IMM_D),
                (Opcode::Ishl, _) => (6, SHIFT_IMM_W),
                (Opcode::Ushr, _) => (2, SHIFT_IMM_W),
                _ => (4, SHIFT_IMM_W),
            };
            let form = Form::new(code.of(bytes)).reg(Use::Number(number)).vvvv(Use::Write(into));
            self.push(form.rm(Source::Register(from)).byte(count));
            return Ok(());
        }
        let code = match (opcode, bits) {
            (Opcode::Ishl, 64) => VPSLLQ,
            (Opcode::Ushr, 64) => VPSRLQ,
            (_, 64) => VPSRAQ,
            (Opcode::Ishl, 32) => VPSLLD,
            (Opcode::Ushr, 32) => VPSRLD,
            (_, 32) => VPSRAD,
            (Opcode::Ishl, _) => VPSLLW,
            (Opcode::Ushr, _) => VPSRLW,
            _ => VPSRAW,
        };
        let count = self.register(count);
        let masked = self.general();
        let form = self.with_constant(4, false, bits as i32 - 1);
        self.push(form.rm_use(Use::Over(masked, count)));
        let by = self.vector();
        self.unary(VMOVD.of(16).accessing(4), by, Source::Register(masked));
        self.binary(code.of(bytes).accessing(16), into, from, Source::Register(by));
        Ok(())
    }

    fn unary_of_vector(
        &mut self,
        opcode: Opcode,
        into: VReg,
        arg: Value,
        ty: Type,
    ) -> Result<(), Unsupported> {
        let (bytes, quad) = (ty.bytes(), ty.lane_bits() == 64);
        match opcode {
            Opcode::Bnot => {
                let from = self.register(arg);
                self.ternary(into, from, from, Source::Register(from), 0x0f, ty);
            }
            Opcode::Ineg => {
                let zero = self.bytes_in_register(&[0; 16]);
                let from = self.vector_source(arg, ty);
                self.binary(if quad { VPSUBQ } else { VPSUBD }.of(bytes), into, zero, from);
            }
            Opcode::Iabs => {
                let from = self.register(arg);
                self.unary(if quad { VPABSQ } else { VPABSD }.of(bytes), into, Source::Register(from));
            }
            Opcode::Splat => {
                let from = self.register(arg);
                let code = match (self.type_of(arg).is_float(), quad) {
                    _ if ty.lane_bits() < 32 => return self.unsupported(),
                    (true, false) => VPBROADCASTD.of(bytes).accessing(4),
                    (true, true) => VPBROADCASTQ.of(bytes).accessing(8),
                    (false, false) => VPBROADCASTD_FROM.of(bytes),
                    (false, true) => VPBROADCASTQ_FROM.of(bytes),
                };
                self.unary(code, into, Source::Register(from));
            }
            Opcode::ScalarToVector => {
                let from = self.register(arg);
                match (self.type_of(arg).is_float(), self.type_of(arg).bits()) {
                    (false, 32) => self.unary(VMOVD.of(16).accessing(4), into, Source::Register(from)),
                    (false, 64) => self.unary(VMOVQ.of(16).accessing(8), into, Source::Register(from)),
                    (true, 64) => self.unary(VMOVQ_LOW.of(16).accessing(8), into, Source::Register(from)),
                    (true, 32) => {
                        let form = Form::new(VINSERTPS.of(16).accessing(4)).reg(Use::Write(into));
                        self.push(form.vvvv(Use::Read(from)).rm(Source::Register(from)).byte(0x0e));
                    }
                    _ => return self.unsupported(),
                }
            }
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let signed = matches!(opcode, Opcode::SwidenLow | Opcode::SwidenHigh);
                let high = matches!(opcode, Opcode::SwidenHigh | Opcode::UwidenHigh);
                let code = match (self.type_of(arg).lane_bits(), signed) {
                    (32, true) => VPMOVSXDQ,
                    (32, false) => VPMOVZXDQ,
                    (16, true) => VPMOVSXWD,
                    (16, false) => VPMOVZXWD,
                    (8, true) => VPMOVSXBW,
                    _ => VPMOVZXBW,
                };
                let half = self.half(arg, high);
                self.unary(code.of(bytes).accessing(bytes as u8 / 2), into, Source::Register(half));
            }
            _ => return self.float_vector(opcode, into, arg, ty),
        }
        Ok(())
    }

    /// Returns a register whose lower half is one half of a vector.
    pub(super) fn half(&mut self, value: Value, high: bool) -> VReg {
        let from = self.register(value);
        if !high {
            return from;
        }
        let into = self.vector();
        match self.type_of(value).bytes() {
            64 => self
                .push(Form::new(VEXTRACTI64X4.of(64)).reg(Use::Read(from)).rm_use(Use::Write(into)).byte(1)),
            32 => self
                .push(Form::new(VEXTRACTI32X4.of(32)).reg(Use::Read(from)).rm_use(Use::Write(into)).byte(1)),
            _ => self
                .push(Form::new(VPSHUFD.of(16)).reg(Use::Write(into)).rm(Source::Register(from)).byte(0xee)),
        }
        into
    }

    /// Inserts an element into a vector of 16 bytes.
    fn insert(
        &mut self,
        into: VReg,
        [vector, value]: [Value; 2],
        lane: u8,
        ty: Type,
    ) -> Result<(), Unsupported> {
        let (of, what) = (self.register(vector), self.register(value));
        let form = match (self.type_of(value).is_float(), ty.lane_bits()) {
            (false, 32) => Form::new(VPINSRD.of(16).accessing(4)).byte(lane),
            (false, 64) => Form::new(VPINSRQ.of(16).accessing(8)).byte(lane),
            (true, 32) => Form::new(VINSERTPS.of(16).accessing(4)).byte(lane << 4),
            // The low half of the vector, and the number behind it; or the number, and the high
            // half.
            (true, 64) if lane == 1 => Form::new(Code::either(1, 1, 0x14, true).of(16)),
            (true, 64) => {
                let form = Form::new(VMOVSD.of(16)).reg(Use::Write(into)).vvvv(Use::Read(of));
                self.push(form.rm(Source::Register(what)));
                return Ok(());
            }
            _ => return self.unsupported(),
        };
        self.push(form.reg(Use::Write(into)).vvvv(Use::Read(of)).rm(Source::Register(what)));
        Ok(())
    }

    /// Returns a register whose first element is one of a vector.
    fn first_of(&mut self, vector: VReg, ty: Type, lane: u8) -> (VReg, u8) {
        let per = 16 / ty.lane_type().bytes() as u8;
        if lane < per {
            return (vector, lane);
        }
        let into = self.vector();
        let form = Form::new(VEXTRACTI32X4.of(ty.bytes())).reg(Use::Read(vector)).rm_use(Use::Write(into));
        self.push(form.byte(lane / per));
        (into, lane % per)
    }

    /// Copies an element of a vector to a general-purpose register.
    pub(super) fn extract(&mut self, into: VReg, arg: Value, lane: u8) -> Result<(), Unsupported> {
        let (ty, root) = (self.type_of(arg), self.root(arg));
        if self.is_mask[root] && self.bytes_of(root).is_none() && ty.lane_bits() == 32 {
            let [bits, up] = [0; 2].map(|_| self.general());
            let mask = self.mask_of(root);
            self.bits_of_mask(bits, mask, ty.lane_count());
            let shift = Form::new(Code::legacy(0, 0, 0xc1, false));
            self.push(shift.reg(Use::Number(4)).rm_use(Use::Over(up, bits)).byte(31 - lane));
            self.push(shift.reg(Use::Number(7)).rm_use(Use::Over(into, up)).byte(31));
            return Ok(());
        }
        let vector = self.register(arg);
        let (vector, lane) = self.first_of(vector, ty, lane);
        let form = match (ty.lane_bits(), lane) {
            (32, 0) => Form::new(VMOVD_OUT.of(16).accessing(4)),
            (64, 0) => Form::new(VMOVQ_OUT.of(16).accessing(8)),
            (32, lane) => Form::new(VPEXTRD.of(16).accessing(4)).byte(lane),
            (64, lane) => Form::new(VPEXTRQ.of(16).accessing(8)).byte(lane),
            (16, lane) => Form::new(VPEXTRW.of(16).accessing(2)).byte(lane),
            (_, lane) => Form::new(VPEXTRB.of(16).accessing(1)).byte(lane),
        };
        self.push(form.reg(Use::Read(vector)).rm_use(Use::Write(into)));
        Ok(())
    }

    /// Copies an element of a vector of floats to a register of one float.
    pub(super) fn extract_float(&mut self, into: VReg, arg: Value, lane: u8) {
        let ty = self.type_of(arg);
        let vector = self.register(arg);
        let (vector, lane) = self.first_of(vector, ty, lane);
        // Words, or pairs of words, from the element on.
        let order = match ty.lane_bits() {
            64 if lane == 1 => 0xee,
            64 => 0xe4,
            _ => lane | lane << 2 | lane << 4 | lane << 6,
        };
        self.push(Form::new(VPSHUFD.of(16)).reg(Use::Write(into)).rm(Source::Register(vector)).byte(order));
    }
}
