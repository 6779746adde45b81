//! Selection of scalar floating-point arithmetic, and of arithmetic that scalars and vectors share.

use super::vector::float_opcode;
use super::*;

impl Selector<'_> {
    /// Returns a float as an operand that may be in memory.
    pub(super) fn scalar_source(&mut self, value: Value, ty: Type) -> Source {
        match self.bytes_of(value) {
            Some(bytes) if bytes.iter().any(|&byte| byte != 0) => {
                Source::Memory(self.constant_address(&bytes))
            }
            Some(_) => Source::Register(self.register(value)),
            None => self.source(value, ty.bytes()),
        }
    }

    /// Returns a float or a vector of them as an operand that may be in memory.
    fn float_source(&mut self, value: Value, ty: Type) -> Source {
        if ty.is_vector() { self.vector_source(value, ty) } else { self.scalar_source(value, ty) }
    }

    /// Sets the length of an instruction.
    fn sized(&self, code: Code, ty: Type) -> Code {
        if ty.is_vector() { code.of(ty.bytes()) } else { code.of(16).accessing(ty.bytes() as u8) }
    }

    /// Adds `into = a * b + c`, rounded once.
    pub(super) fn multiply_add(&mut self, into: VReg, [a, b, c]: [Value; 3], ty: Type) {
        let (double, scalar) = (ty.lane_bits() == 64, !ty.is_vector());
        let [a, b] = self.ordered([a, b]);
        let left = self.register(a);
        if self.bytes_of(c).is_some() && self.bytes_of(b).is_none() {
            // The constant is the operand in memory; the result takes the register of a factor.
            let (right, sum) = (self.register(b), self.float_source(c, ty));
            let code = self.sized(fused(0xa8, double, scalar), ty);
            return self.push(Form::new(code).reg(Use::Over(into, left)).vvvv(Use::Read(right)).rm(sum));
        }
        let sum = self.register(c);
        let right = self.float_source(b, ty);
        let code = self.sized(fused(0xb8, double, scalar), ty);
        self.push(Form::new(code).reg(Use::Over(into, sum)).vvvv(Use::Read(left)).rm(right));
    }

    /// Adds the lesser or greater of floats: a NaN if either is, and the lesser zero.
    pub(super) fn extremum(&mut self, largest: bool, into: VReg, [a, b]: [Value; 2], ty: Type) {
        let (double, scalar) = (ty.lane_bits() == 64, !ty.is_vector());
        let (a, b) = (self.register(a), self.register(b));
        let code = self.sized(float(if largest { 0x5f } else { 0x5d }, double, scalar), ty);
        let [first, second, number] = [0; 3].map(|_| self.vector());
        self.binary(code, first, a, Source::Register(b));
        self.binary(code, second, b, Source::Register(a));
        // The results in both orders have the signs of both zeros.
        let join = if largest { VPANDD } else { VPORD };
        let bytes = ty.bytes().max(16);
        self.binary(join.of(bytes), number, first, Source::Register(second));
        let mask = self.mask();
        let compare = match (double, scalar) {
            (false, false) => VCMPPS,
            (true, false) => VCMPPD,
            (false, true) => VCMPSS,
            (true, true) => VCMPSD,
        };
        let compare = self.sized(compare, ty);
        self.push(
            Form::new(compare).reg(Use::Write(mask)).vvvv(Use::Read(a)).rm(Source::Register(b)).byte(3),
        );
        // The sum is a NaN then.
        let sum = self.sized(float(0x58, double, scalar), ty);
        self.push_merging(sum, into, number, a, b, mask);
    }

    /// Adds `into = mask ? a op b : old`.
    fn push_merging(&mut self, code: Code, into: VReg, old: VReg, a: VReg, b: VReg, mask: VReg) {
        let form = Form::new(code).reg(Use::Over(into, old)).vvvv(Use::Read(a)).rm(Source::Register(b));
        self.push(form.under(mask, false));
    }

    /// Adds a rounding to an integral number.
    pub(super) fn round(&mut self, opcode: Opcode, into: VReg, arg: Value, ty: Type) {
        let (double, scalar) = (ty.lane_bits() == 64, !ty.is_vector());
        let how = match opcode {
            Opcode::Nearest => 8,
            Opcode::Floor => 9,
            Opcode::Ceil => 10,
            _ => 11,
        };
        let code = match (double, scalar) {
            (false, false) => VRNDSCALEPS,
            (true, false) => VRNDSCALEPD,
            (false, true) => VRNDSCALESS,
            (true, true) => VRNDSCALESD,
        };
        let code = self.sized(code, ty);
        let from = self.register(arg);
        let form = Form::new(code).reg(Use::Write(into)).rm(Source::Register(from)).byte(how);
        self.push(if scalar { form.vvvv(Use::Read(from)) } else { form });
    }

    /// Adds the square root.
    pub(super) fn square_root(&mut self, into: VReg, arg: Value, ty: Type) {
        let (double, scalar) = (ty.lane_bits() == 64, !ty.is_vector());
        let code = match (double, scalar) {
            (false, false) => VSQRTPS,
            (true, false) => VSQRTPD,
            (false, true) => VSQRTSS,
            (true, true) => VSQRTSD,
        };
        let code = self.sized(code, ty);
        let from = self.register(arg);
        let form = Form::new(code).reg(Use::Write(into)).rm(Source::Register(from));
        self.push(if scalar { form.vvvv(Use::Read(from)) } else { form });
    }

    /// Adds an operation on the sign.
    pub(super) fn change_sign(&mut self, opcode: Opcode, into: VReg, arg: Value, ty: Type) {
        let double = ty.lane_bits() == 64;
        let sign: u64 = if double { 1 << 63 } else { 1 << 31 };
        let (code, bits) = match (opcode, double) {
            (Opcode::Fneg, false) => (VPXORD, sign),
            (Opcode::Fneg, true) => (VPXORQ, sign),
            (_, false) => (VPANDD, sign - 1),
            (_, true) => (VPANDQ, sign - 1),
        };
        let from = self.register(arg);
        let address = self.constant_address(&bits.to_le_bytes()[..ty.lane_type().bytes() as usize]);
        self.binary(code.of(ty.bytes().max(16)), into, from, Source::Element(address));
    }

    /// Selects an instruction whose result is a float of one thread.
    pub(super) fn float_instruction(&mut self, inst: Clif, into: VReg, ty: Type) -> Result<(), Unsupported> {
        let func = self.func;
        let double = ty.bits() == 64;
        match func.dfg.insts[inst] {
            InstructionData::Binary { opcode: opcode @ (Opcode::Fmin | Opcode::Fmax), args } => {
                self.extremum(opcode == Opcode::Fmax, into, args, ty);
            }
            InstructionData::Binary { opcode, args } => {
                let Some(number) = float_opcode(opcode) else { return self.unsupported() };
                let [a, b] = match opcode {
                    Opcode::Fadd | Opcode::Fmul => self.ordered(args),
                    _ => args,
                };
                let code = self.sized(float(number, double, true), ty);
                let (a, b) = (self.register(a), self.scalar_source(b, ty));
                self.binary(code, into, a, b);
            }
            InstructionData::Ternary { opcode: Opcode::Fma, args } => self.multiply_add(into, args, ty),
            InstructionData::Ternary { opcode: Opcode::Select, args: [condition, a, b] } => {
                let mask = self.mask();
                let compare = self.definition(condition).filter(|&inst| {
                    matches!(func.dfg.insts[inst], InstructionData::FloatCompare { .. })
                        && self.uses[self.root(condition)] == 1
                });
                match compare {
                    Some(inst) => self.compare_floats(inst, mask),
                    None => {
                        let condition = self.condition(condition)?;
                        let truth = self.general();
                        self.sequence.push(Op::Set(condition), &[Operand::reg_def(truth)]);
                        self.unary(Code::vex(1, 0, 0x92, false, 0), mask, Source::Register(truth));
                    }
                }
                let (a, b) = (self.register(a), self.register(b));
                let code = if double { VMOVSD } else { VMOVSS };
                let form = Form::new(code.of(16)).reg(Use::Over(into, b)).vvvv(Use::Read(b));
                self.push(form.rm(Source::Register(a)).under(mask, false));
            }
            InstructionData::Unary { opcode, arg } => match opcode {
                Opcode::Sqrt => self.square_root(into, arg, ty),
                Opcode::Fneg | Opcode::Fabs => self.change_sign(opcode, into, arg, ty),
                Opcode::Ceil | Opcode::Floor | Opcode::Trunc | Opcode::Nearest => {
                    self.round(opcode, into, arg, ty)
                }
                Opcode::Fpromote | Opcode::Fdemote => {
                    let from = self.register(arg);
                    let (code, bytes) =
                        if opcode == Opcode::Fpromote { (VCVTSS2SD, 4) } else { (VCVTSD2SS, 8) };
                    let form = Form::new(code.of(16).accessing(bytes)).reg(Use::Write(into));
                    self.push(form.vvvv(Use::Read(from)).rm(Source::Register(from)));
                }
                Opcode::FcvtFromSint | Opcode::FcvtFromUint => {
                    return self.float_of_integer(opcode == Opcode::FcvtFromSint, into, arg, ty);
                }
                _ => return self.unsupported(),
            },
            InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. } => {
                let from = self.register(arg);
                let code = if double { VMOVQ } else { VMOVD };
                self.unary(code.of(16).accessing(ty.bytes() as u8), into, Source::Register(from));
            }
            InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, arg, imm } => {
                self.extract_float(into, arg, imm);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }
}
