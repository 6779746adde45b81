//! Arithmetic on operands that are constants, which nobody else folds: the code is compiled without an optimiser.

use super::Emitter;
use crate::native::Class;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Type, Value, ValueDef};

impl Emitter<'_> {
    /// The bits of an integer that is a constant, without those past its width.
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

    /// A sum of integers, or of vectors of them.
    pub(super) fn sum(&mut self, a: Value, b: Value) -> Value {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.b.ins().iadd(a, b),
        }
    }

    /// A sum with a constant.
    pub(super) fn sum_with(&mut self, a: Value, more: i64) -> Value {
        if more == 0 { a } else { self.b.ins().iadd_imm_s(a, more) }
    }

    /// A product of integers, or of vectors of them.
    pub(super) fn product(&mut self, a: Value, b: Value) -> Value {
        let power = |value: Option<u64>| value.filter(|value| value.is_power_of_two());
        match (power(self.constant_of(a)), power(self.constant_of(b))) {
            (_, Some(1)) => a,
            (Some(1), _) => b,
            (_, Some(power)) => self.b.ins().ishl_imm_u(a, i64::from(power.trailing_zeros())),
            (Some(power), _) => self.b.ins().ishl_imm_u(b, i64::from(power.trailing_zeros())),
            _ => self.b.ins().imul(a, b),
        }
    }

    /// An integer in twice its width.
    pub(super) fn widened(&mut self, value: Value, class: Class, signed: bool) -> Value {
        let (wide, bits) = (super::value::scalar_type(class), self.b.func.dfg.value_type(value).bits());
        match self.constant_of(value) {
            Some(constant) if wide == I64 && bits == 32 => {
                let constant = if signed { i64::from(constant as i32) } else { constant as i64 };
                self.b.ins().iconst(I64, constant)
            }
            _ if signed => self.b.ins().sextend(wide, value),
            _ => self.extended(value, wide),
        }
    }

    /// An integer, extended with zeros: what it was cut off from, where nothing was cut off.
    pub(super) fn extended(&mut self, value: Value, wide: Type) -> Value {
        let dfg = &self.b.func.dfg;
        if let ValueDef::Result(inst, _) = dfg.value_def(value)
            && let InstructionData::Unary { opcode: Opcode::Ireduce, arg } = dfg.insts[inst]
            && let ValueDef::Result(source, _) = dfg.value_def(arg)
            && let InstructionData::Binary { opcode: Opcode::Band, args: [_, mask] } = dfg.insts[source]
            && dfg.value_type(arg) == wide
            && self.constant_of(mask).is_some_and(|mask| mask >> dfg.value_type(value).bits() == 0)
        {
            return arg;
        }
        self.b.ins().uextend(wide, value)
    }

    /// Whether a shift by a count in 32 bits leaves something of so many bits, where the count is not a constant for which it does.
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
