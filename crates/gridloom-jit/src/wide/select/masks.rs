//! Selection of masks: truth values of the elements of vectors, in mask registers. Bits above those
//! of the elements are zero.

use super::*;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};

/// Returns the comparison of the operands in the other order.
fn swapped(cond: FloatCC) -> FloatCC {
    match cond {
        FloatCC::LessThan => FloatCC::GreaterThan,
        FloatCC::LessThanOrEqual => FloatCC::GreaterThanOrEqual,
        FloatCC::GreaterThan => FloatCC::LessThan,
        FloatCC::GreaterThanOrEqual => FloatCC::LessThanOrEqual,
        FloatCC::UnorderedOrLessThan => FloatCC::UnorderedOrGreaterThan,
        FloatCC::UnorderedOrLessThanOrEqual => FloatCC::UnorderedOrGreaterThanOrEqual,
        FloatCC::UnorderedOrGreaterThan => FloatCC::UnorderedOrLessThan,
        FloatCC::UnorderedOrGreaterThanOrEqual => FloatCC::UnorderedOrLessThanOrEqual,
        cond => cond,
    }
}

impl Selector<'_> {
    /// Returns the mask register of a mask.
    pub(super) fn mask_of(&mut self, value: Value) -> VReg {
        let root = self.root(value);
        if let Some(bytes) = self.bytes_of(root) {
            let lane = self.type_of(root).lane_type().bytes().max(1) as usize;
            let bits = bytes
                .chunks(lane)
                .enumerate()
                .fold(0u64, |bits, (i, lane)| bits | u64::from(lane[0] != 0) << i);
            return self.constant_mask(bits, self.type_of(root).lane_count());
        }
        if let Some(mask) = self.masks[root] {
            return mask;
        }
        let mask = self.mask();
        self.masks[root] = Some(mask);
        mask
    }

    pub(super) fn constant_mask(&mut self, bits: u64, lanes: u32) -> VReg {
        let mask = self.mask();
        let all = u64::MAX >> (64 - lanes);
        if bits == 0 || bits == all && lanes >= 8 {
            let mut operands = Operands::new();
            let field = operands.add(Operand::reg_def(mask));
            let code = of_masks(if bits == 0 { 0x47 } else { 0x46 }, lanes);
            self.push_encoded(code, [field; 3], &operands, Immediate::None);
            return mask;
        }
        let bits = self.constant_in_register(bits as i64);
        self.unary(Code::vex(1, 3, 0x92, false, 0), mask, Source::Register(bits));
        mask
    }

    /// Makes a vector of a mask if it is needed as one.
    pub(super) fn expand(&mut self, value: Value) {
        let Some(into) = self.registers[value] else { return };
        let mask = self.mask_of(value);
        let ty = self.type_of(value);
        let code = if ty.lane_bits() == 64 { VPMOVM2Q } else { VPMOVM2D };
        self.unary(code.of(ty.bytes()), into, Source::Register(mask));
    }

    /// Selects an instruction that makes a mask.
    pub(super) fn make_mask(&mut self, inst: Clif, result: Value) -> Result<(), Unsupported> {
        let func = self.func;
        if self.bytes_of(result).is_some() {
            return Ok(());
        }
        let into = self.mask_of(result);
        let first = std::mem::take(&mut self.sequence);
        self.expand(result);
        let expansion = std::mem::replace(&mut self.sequence, first);
        let ty = self.type_of(result);
        let lanes = ty.lane_count();
        match func.dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } => self.compare_vectors(cond, args, into, None),
            InstructionData::FloatCompare { .. } => self.compare_floats(inst, into),
            InstructionData::Binary { opcode, args: [a, b] } => {
                // A comparison of those elements alone that another mask selects.
                let narrowing = |selector: &Self, value: Value| {
                    let root = selector.root(value);
                    selector.definition(root).filter(|&inst| {
                        let is_compare = matches!(
                            selector.func.dfg.insts[inst],
                            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. }
                        );
                        is_compare && selector.uses[root] == 1 && selector.masks[root].is_none()
                    })
                };
                if opcode == Opcode::Band {
                    for (a, b) in [(a, b), (b, a)] {
                        if let Some(compare) = narrowing(self, a) {
                            let under = self.mask_of(b);
                            self.compare_under(compare, into, under);
                            self.append(expansion);
                            return Ok(());
                        }
                    }
                }
                let (a, b) = (self.mask_of(a), self.mask_of(b));
                let (opcode, a, b) = match opcode {
                    Opcode::Band => (0x41, a, b),
                    Opcode::Bor => (0x45, a, b),
                    _ => (0x47, a, b),
                };
                self.binary(of_masks(opcode, lanes), into, a, Source::Register(b));
            }
            InstructionData::Unary { opcode: Opcode::Bnot, arg } => {
                let arg = self.mask_of(arg);
                self.not_mask(into, arg, lanes);
            }
            InstructionData::Unary { opcode: Opcode::SwidenLow, arg } => {
                let from = self.type_of(arg).lane_count();
                let arg = self.mask_of(arg);
                self.low_of_mask(into, arg, from / 2);
            }
            InstructionData::Unary { opcode: Opcode::SwidenHigh, arg } => {
                let from = self.type_of(arg).lane_count();
                let arg = self.mask_of(arg);
                self.shift_mask(into, arg, from, from as u8 / 2, false);
            }
            InstructionData::Unary { opcode: Opcode::Splat, arg } => {
                // The mask is all ones or zeros in 32 or 64 bits.
                let all = self.register(arg);
                if lanes >= 8 {
                    let prefix = u8::from(lanes == 8);
                    self.unary(Code::vex(1, prefix, 0x92, false, 0), into, Source::Register(all));
                } else {
                    let some = self.general();
                    let form = self.with_constant(4, false, (1 << lanes) - 1);
                    self.push(form.rm_use(Use::Over(some, all)));
                    self.unary(Code::vex(1, 0, 0x92, false, 0), into, Source::Register(some));
                }
            }
            InstructionData::Ternary { opcode: Opcode::Bitselect, args: [which, a, b] } => {
                let [which, a, b] = [which, a, b].map(|value| self.mask_of(value));
                let [first, second] = [0; 2].map(|_| self.mask());
                self.binary(of_masks(0x41, lanes), first, which, Source::Register(a));
                self.binary(of_masks(0x42, lanes), second, which, Source::Register(b));
                self.binary(of_masks(0x45, lanes), into, first, Source::Register(second));
            }
            InstructionData::Call { ref args, func_ref, .. } => {
                let args = args.as_slice(&func.dfg.value_lists);
                match super::super::intrinsic::Intrinsic::of(func, func_ref) {
                    Some(super::super::intrinsic::Intrinsic::MasksOfBits) => {
                        let bits = self.register(args[0]);
                        let prefix = u8::from(lanes <= 8);
                        self.unary(Code::vex(1, prefix, 0x92, false, 0), into, Source::Register(bits));
                    }
                    _ => {
                        let (low, high) = (self.mask_of(args[0]), self.mask_of(args[1]));
                        if lanes == 16 {
                            // The first operand is the upper half.
                            let code = Code::vex(1, 1, 0x4b, false, 1);
                            self.binary(code, into, high, Source::Register(low));
                        } else {
                            let up = self.mask();
                            self.shift_mask(up, high, 8, lanes as u8 / 2, true);
                            self.binary(of_masks(0x45, 8), into, up, Source::Register(low));
                        }
                    }
                }
            }
            _ => return self.unsupported(),
        }
        self.append(expansion);
        Ok(())
    }

    fn append(&mut self, mut other: Sequence) {
        let first = self.sequence.operands.len() as u32;
        self.sequence.operands.append(&mut other.operands);
        for mut inst in other.insts {
            inst.operands.0 += first;
            inst.operands.1 += first;
            self.sequence.insts.push(inst);
        }
    }

    fn not_mask(&mut self, into: VReg, mask: VReg, lanes: u32) {
        let code = Code::vex(1, u8::from(lanes <= 8), 0x44, false, 0);
        if lanes >= 8 {
            return self.unary(code, into, Source::Register(mask));
        }
        let not = self.mask();
        self.unary(code, not, Source::Register(mask));
        self.low_of_mask(into, not, lanes);
    }

    /// Keeps the lowest bits of a mask.
    fn low_of_mask(&mut self, into: VReg, mask: VReg, lanes: u32) {
        if lanes == 8 {
            return self.unary(Code::vex(1, 1, 0x90, false, 0), into, Source::Register(mask));
        }
        let up = self.mask();
        self.shift_mask(up, mask, 8, 8 - lanes as u8, true);
        self.shift_mask(into, up, 8, 8 - lanes as u8, false);
    }

    /// Shifts a mask of so many elements.
    fn shift_mask(&mut self, into: VReg, mask: VReg, lanes: u32, count: u8, left: bool) {
        let opcode = if left { 0x32 } else { 0x30 };
        let code = Code::vex(3, 1, opcode, lanes > 8, 0);
        self.push(Form::new(code).reg(Use::Write(into)).rm(Source::Register(mask)).byte(count));
    }

    /// Copies the bits of a mask to a general-purpose register.
    pub(super) fn bits_of_mask(&mut self, into: VReg, mask: VReg, lanes: u32) {
        let prefix = u8::from(lanes <= 8);
        self.unary(Code::vex(1, prefix, 0x93, false, 0), into, Source::Register(mask));
    }

    /// Tests a mask: the flags tell whether it is all zeros, and whether all ones.
    pub(super) fn test_mask(&mut self, mask: VReg, lanes: u32) {
        let code = Code::vex(1, u8::from(lanes <= 8), 0x98, false, 0);
        self.push(Form::new(code).reg(Use::Read(mask)).rm(Source::Register(mask)));
    }

    /// Compares vectors of integers, in all elements or under a mask.
    fn compare_vectors(&mut self, cond: IntCC, [a, b]: [Value; 2], into: VReg, under: Option<VReg>) {
        let ty = self.type_of(a);
        let (number, signed) = match cond {
            IntCC::Equal => (0, true),
            IntCC::SignedLessThan => (1, true),
            IntCC::SignedLessThanOrEqual => (2, true),
            IntCC::NotEqual => (4, true),
            IntCC::SignedGreaterThanOrEqual => (5, true),
            IntCC::SignedGreaterThan => (6, true),
            IntCC::UnsignedLessThan => (1, false),
            IntCC::UnsignedLessThanOrEqual => (2, false),
            IntCC::UnsignedGreaterThanOrEqual => (5, false),
            IntCC::UnsignedGreaterThan => (6, false),
        };
        let quad = ty.lane_bits() == 64;
        let is_zero = self.bytes_of(b).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
        let form = if is_zero && matches!(cond, IntCC::Equal | IntCC::NotEqual) {
            let a = self.register(a);
            let code = match (cond, quad) {
                (IntCC::Equal, false) => VPTESTNMD,
                (IntCC::Equal, true) => VPTESTNMQ,
                (_, false) => VPTESTMD,
                (_, true) => VPTESTMQ,
            };
            Form::new(code.of(ty.bytes())).reg(Use::Write(into)).vvvv(Use::Read(a)).rm(Source::Register(a))
        } else {
            let code = match (signed, quad) {
                (true, false) => VPCMPD,
                (false, false) => VPCMPUD,
                (true, true) => VPCMPQ,
                (false, true) => VPCMPUQ,
            };
            let (a, b) = (self.register(a), self.vector_source(b, ty));
            Form::new(code.of(ty.bytes())).reg(Use::Write(into)).vvvv(Use::Read(a)).rm(b).byte(number)
        };
        self.push(Form { mask: under, ..form });
    }

    /// Compares floats, of vectors or of one thread.
    pub(super) fn compare_floats(&mut self, inst: Clif, into: VReg) {
        self.compare_floats_under(inst, into, None);
    }

    fn compare_floats_under(&mut self, inst: Clif, into: VReg, under: Option<VReg>) {
        let InstructionData::FloatCompare { cond, args: [a, b], .. } = self.func.dfg.insts[inst] else {
            return;
        };
        let ty = self.type_of(a);
        let double = ty.lane_bits() == 64;
        // A constant is the second operand.
        let (a, b, cond) = match self.bytes_of(a) {
            Some(_) => (b, a, swapped(cond)),
            None => (a, b, cond),
        };
        let number = control::float_condition(cond);
        let left = self.register(a);
        let (code, right) = if ty.is_vector() {
            let right =
                if self.root(a) == self.root(b) { Source::Register(left) } else { self.vector_source(b, ty) };
            (if double { VCMPPD } else { VCMPPS }.of(ty.bytes()), right)
        } else {
            let right =
                if self.root(a) == self.root(b) { Source::Register(left) } else { self.scalar_source(b, ty) };
            (if double { VCMPSD } else { VCMPSS }.of(16).accessing(ty.bytes() as u8), right)
        };
        let code = if ty.is_vector() { code } else { Code { access: ty.bytes() as u8, ..code } };
        let form = Form::new(code).reg(Use::Write(into)).vvvv(Use::Read(left)).rm(right).byte(number);
        self.push(Form { mask: under, ..form });
    }

    /// Compares under a mask: elements that it does not select are false.
    fn compare_under(&mut self, inst: Clif, into: VReg, under: VReg) {
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } => {
                self.compare_vectors(cond, args, into, Some(under))
            }
            _ => self.compare_floats_under(inst, into, Some(under)),
        }
    }

    /// Sets the flags to whether any element of a vector is not zero.
    pub(super) fn test_any(&mut self, value: Value) {
        let (ty, root) = (self.type_of(value), self.root(value));
        if self.is_mask[root] && self.bytes_of(root).is_none() {
            // A disjunction is tested as such.
            if let Some(inst) = self.definition(root)
                && let InstructionData::Binary { opcode: Opcode::Bor, args: [a, b] } =
                    self.func.dfg.insts[inst]
                && self.uses[root] == 1
            {
                let lanes = self.type_of(root).lane_count();
                let (a, b) = (self.mask_of(a), self.mask_of(b));
                let code = Code::vex(1, u8::from(lanes <= 8), 0x98, false, 0);
                return self.push(Form::new(code).reg(Use::Read(a)).rm(Source::Register(b)));
            }
            let mask = self.mask_of(root);
            return self.test_mask(mask, self.type_of(root).lane_count());
        }
        let mask = self.mask();
        let mut both = [root; 2];
        if let Some(inst) = self.definition(root)
            && let InstructionData::Binary { opcode: Opcode::Band, args } = self.func.dfg.insts[inst]
            && self.uses[root] == 1
            && !args.into_iter().any(|arg| self.is_mask[self.root(arg)])
        {
            both = args;
        }
        let a = self.register(both[0]);
        let b = if both[0] == both[1] { Source::Register(a) } else { self.vector_source(both[1], ty) };
        let code = if ty.lane_bits() == 64 { VPTESTMQ } else { VPTESTMD };
        self.binary(code.of(ty.bytes()), mask, a, b);
        self.test_mask(mask, 16);
    }

    /// Sets the flags to whether all elements of a vector are not zero.
    pub(super) fn test_all(&mut self, value: Value) -> Condition {
        let (ty, root) = (self.type_of(value), self.root(value));
        let lanes = ty.lane_count();
        if self.is_mask[root] && self.type_of(root).lane_count() == lanes {
            let mask = self.mask_of(root);
            if lanes >= 8 {
                self.test_mask(mask, lanes);
                return Condition::Below;
            }
            let bits = self.general();
            self.bits_of_mask(bits, mask, lanes);
            let form = self.with_constant(7, false, (1 << lanes) - 1);
            self.push(form.rm(Source::Register(bits)));
            return Condition::Zero;
        }
        let mask = self.mask();
        let vector = self.register(value);
        let code = if ty.lane_bits() == 64 { VPTESTNMQ } else { VPTESTNMD };
        self.binary(code.of(ty.bytes()), mask, vector, Source::Register(vector));
        self.test_mask(mask, 16);
        Condition::Zero
    }

    /// Copies the highest bits of the elements of a vector.
    pub(super) fn high_bits(&mut self, into: VReg, value: Value) -> Result<(), Unsupported> {
        let (ty, root) = (self.type_of(value), self.root(value));
        let lanes = ty.lane_count();
        if self.is_mask[root] && self.type_of(root).lane_count() == lanes {
            let mask = self.mask_of(root);
            self.bits_of_mask(into, mask, lanes);
            return Ok(());
        }
        let code = match ty.lane_bits() {
            64 => VPMOVQ2M,
            32 => VPMOVD2M,
            16 => VPMOVW2M,
            _ => VPMOVB2M,
        };
        let mask = self.mask();
        let vector = self.register(value);
        self.unary(code.of(ty.bytes()), mask, Source::Register(vector));
        if lanes > 16 {
            return self.unsupported();
        }
        self.bits_of_mask(into, mask, lanes);
        Ok(())
    }
}
