//! Constant folding. The code is compiled without an optimiser, so it must happen here.

use super::Emitter;
use crate::native::Class;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Type, Value, ValueDef};

impl Emitter<'_> {
    /// Returns the bits of a constant integer, cut to its width.
    pub(super) fn constant_of(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return None };
        match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                let bits = dfg.value_type(value).bits();
                let all = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                Some(imm.bits() as u64 & all)
            }
            _ => None,
        }
    }

    /// Returns the bits of a constant floating-point number.
    pub(super) fn float_constant_of(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return None };
        match dfg.insts[inst] {
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().into()),
            InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits()),
            _ => None,
        }
    }

    /// Returns the bits of a constant floating-point number, or of each element of a constant
    /// vector.
    pub(super) fn element_of(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        match dfg.value_def(value) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } => {
                    let bytes = dfg.constants.get(constant_handle).as_slice();
                    let size = dfg.value_type(value).lane_type().bytes() as usize;
                    let mut elements = bytes.chunks(size);
                    let first = elements.next()?;
                    let bits = first.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                    elements.all(|element| element == first).then_some(bits)
                }
                _ => self.float_constant_of(value),
            },
            _ => None,
        }
    }

    /// Returns the sum of integers or of vectors of them.
    pub(super) fn sum(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ if self.element_of(b) == Some(0) => a,
            _ if self.element_of(a) == Some(0) => b,
            _ => self.b.ins().iadd(a, b),
        }
    }

    /// Returns the sum with a constant.
    pub(super) fn sum_with(&mut self, a: Value, more: i64) -> Value {
        if more == 0 { a } else { self.b.ins().iadd_imm_s(a, more) }
    }

    /// Returns the product of integers or of vectors of them.
    pub(super) fn product(&mut self, a: Value, b: Value) -> Value {
        let power = |value: Option<u64>| value.filter(|value| value.is_power_of_two());
        match (power(self.constant_of(a)), power(self.constant_of(b))) {
            (_, Some(1)) => a,
            (Some(1), _) => b,
            (_, Some(power)) => self.b.ins().ishl_imm_u(a, i64::from(power.trailing_zeros())),
            (Some(power), _) => self.b.ins().ishl_imm_u(b, i64::from(power.trailing_zeros())),
            _ => match (power(self.element_of(a)), power(self.element_of(b))) {
                (_, Some(1)) => a,
                (Some(1), _) => b,
                (_, Some(power)) => self.shifted_up(a, power),
                (Some(power), _) => self.shifted_up(b, power),
                _ => self.product_by_sums(a, b).unwrap_or_else(|| self.b.ins().imul(a, b)),
            },
        }
    }

    /// Returns a product with a constant as a sum of few shifted values, if that is faster: a
    /// multiplication takes three cycles in a scalar, and several instructions in a vector of
    /// 64-bit elements.
    fn product_by_sums(&mut self, a: Value, b: Value) -> Option<Value> {
        let ty = self.b.func.dfg.value_type(a);
        let constant = |value: Value| self.constant_of(value).or_else(|| self.element_of(value));
        let (value, factor) = match (constant(a), constant(b)) {
            (None, Some(factor)) => (a, factor),
            (Some(factor), None) => (b, factor),
            _ => return None,
        };
        let fits = match ty {
            I32 | I64 => matches!(factor, 3 | 5 | 9),
            I64X2 => factor.count_ones() <= 3,
            _ => false,
        };
        let mut terms = Vec::new();
        let mut rest = if fits { factor } else { return None };
        while rest != 0 {
            let count = rest.trailing_zeros();
            let by = self.b.ins().iconst(I32, i64::from(count));
            terms.push(if count == 0 { value } else { self.b.ins().ishl(value, by) });
            rest &= rest - 1;
        }
        terms.into_iter().reduce(|sum, term| self.b.ins().iadd(sum, term))
    }

    /// Returns the elements of a vector times a power of two.
    fn shifted_up(&mut self, vector: Value, power: u64) -> Value {
        let count = self.b.ins().iconst(I32, i64::from(power.trailing_zeros()));
        self.b.ins().ishl(vector, count)
    }

    /// Returns the product of two values. If both are the same in a whole block, it is computed
    /// once for all groups.
    pub(super) fn product_of_block(&mut self, a: Value, b: Value) -> Value {
        let (start, block) = (self.start, self.block_start);
        let of_block = |value: Value| {
            let dfg = &self.b.func.dfg;
            let at = match dfg.value_def(dfg.resolve_aliases(value)) {
                ValueDef::Result(inst, _) => self.b.func.layout.inst_block(inst),
                ValueDef::Param(block, _) => Some(block),
                ValueDef::Union(..) => None,
            };
            at == Some(start) || at == block
        };
        let is_constant = self.constant_of(a).or(self.constant_of(b)).is_some();
        let Some(block) = block.filter(|_| !is_constant && of_block(a) && of_block(b)) else {
            return self.product(a, b);
        };
        if let Some(&(_, product)) = self.products.iter().find(|(factors, _)| *factors == (a, b)) {
            return product;
        }
        let mut cursor = FuncCursor::new(self.b.func);
        match cursor.func.layout.last_inst(block) {
            Some(last) if cursor.func.dfg.insts[last].opcode().is_terminator() => cursor.goto_inst(last),
            // The block is still being emitted.
            _ => return self.product(a, b),
        }
        let product = cursor.ins().imul(a, b);
        self.products.push(((a, b), product));
        product
    }

    /// Returns an integer in twice its width.
    pub(super) fn widened(&mut self, value: Value, class: Class, signed: bool) -> Value {
        let (wide, bits) = (super::value::scalar_type(class), self.b.func.dfg.value_type(value).bits());
        match self.constant_of(value) {
            Some(constant) if wide == I64 && bits == 32 => {
                let constant = if signed { i64::from(constant as i32) } else { constant as i64 };
                self.b.ins().iconst(I64, constant)
            }
            _ if signed => self.sign_extended(value, wide),
            _ => self.extended(value, wide),
        }
    }

    /// Returns the number of the element of a pass in 64 bits, if an integer is that.
    fn number_of_element(&self, value: Value, wide: Type, signed: bool) -> Option<Value> {
        let (short, number, with_sign) = self.widened_number?;
        (short == value && wide == I64 && signed == with_sign).then_some(number)
    }

    /// Returns a sign-extended integer. An earlier result in this block is reused.
    pub(super) fn sign_extended(&mut self, value: Value, wide: Type) -> Value {
        if let Some(number) = self.number_of_element(value, wide, true) {
            return number;
        }
        let on_trunk = self.trunk.is_some() && self.b.current_block() == self.trunk;
        if let Some(&extended) = self.extended.get(&(value, wide)).filter(|_| on_trunk) {
            return extended;
        }
        let extended = self.b.ins().sextend(wide, value);
        if on_trunk {
            self.extended.insert((value, wide), extended);
        }
        extended
    }

    /// Returns a zero-extended integer. If it was truncated from a value without loss, that value
    /// is returned; if it is made of one with a constant mask, that is done in the larger width.
    pub(super) fn extended(&mut self, value: Value, wide: Type) -> Value {
        if let Some(number) = self.number_of_element(value, wide, false) {
            return number;
        }
        let dfg = &self.b.func.dfg;
        let bits = dfg.value_type(value).bits();
        let definition = |value: Value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => Some(dfg.insts[inst]),
            _ => None,
        };
        let truncated = |value: Value| match definition(value)? {
            InstructionData::Unary { opcode: Opcode::Ireduce, arg } => {
                (dfg.value_type(arg) == wide).then_some(arg)
            }
            _ => None,
        };
        let mask_of = |mask: Value| self.constant_of(mask).filter(|mask| bits >= 64 || mask >> bits == 0);
        if let Some(whole) = truncated(value) {
            let fits = match definition(whole) {
                Some(InstructionData::Binary { opcode: Opcode::Band, args: [_, mask] }) => {
                    mask_of(mask).is_some()
                }
                Some(InstructionData::Unary { opcode: Opcode::Uextend, arg }) => {
                    dfg.value_type(arg).bits() <= bits
                }
                _ => false,
            };
            if fits {
                return whole;
            }
        }
        if let Some(InstructionData::Binary { opcode: Opcode::Band, args: [of, mask] }) = definition(value)
            && let (Some(whole), Some(mask)) = (truncated(of), mask_of(mask))
        {
            return self.b.ins().band_imm_u(whole, mask as i64);
        }
        self.b.ins().uextend(wide, value)
    }

    /// Returns the condition under which a shift by a 32-bit count leaves anything of `bits` bits.
    /// Returns `None` if the count is a constant for which it does.
    pub(super) fn shifts_within(&mut self, count: Value, bits: u32) -> Option<Value> {
        match self.constant_of(count) {
            Some(count) if count < u64::from(bits) => None,
            _ => {
                debug_assert_eq!(self.b.func.dfg.value_type(count), I32);
                Some(self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, count, i64::from(bits)))
            }
        }
    }
}
