//! Values that are the same in a whole block: they are computed once and loaded in each region that
//! needs them. Also the initialisation of shared memory.

use super::Emitter;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    InstBuilder, InstructionData, Opcode, StackSlotData, StackSlotKind, Value, ValueDef,
};
use gridloom_interp::compiled::Machine;
use std::collections::HashSet;
use std::mem::offset_of;

impl Emitter<'_> {
    /// Stores values that are the same in a whole block to memory, for its regions to load, if that
    /// is better.
    pub(super) fn share(&mut self) {
        if !self.round.forward {
            return;
        }
        let values: HashSet<Value> = self.rematerialized.values().flatten().copied().collect();
        let mut values: Vec<Value> = values.into_iter().collect();
        values.sort_unstable();
        for value in values {
            let ty = self.b.func.dfg.value_type(value);
            if ty.is_vector() || self.constant_of(value).is_some() || self.float_constant_of(value).is_some()
            {
                continue;
            }
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            let slot = self.b.create_sized_stack_slot(data);
            self.b.ins().stack_store(I64, value, slot, 0);
            self.round.shared.insert(value, (slot, ty));
        }
    }

    /// Returns a value that is the same in a whole block, computed again or loaded if that is
    /// better.
    pub(super) fn share_of(&mut self, value: Value) -> Value {
        match self.round.shared.get(&value) {
            _ if !self.round.forward => value,
            Some(&(slot, ty)) => self.b.ins().stack_load(I64, ty, slot, 0),
            None => self.constant_again(value),
        }
    }

    /// Returns a value, or a copy of it made in the current block if it is a constant vector.
    /// Making it takes one instruction. Keeping it takes a register, or a spill and a reload in
    /// each group.
    fn constant_again(&mut self, value: Value) -> Value {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return value };
        let InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } = dfg.insts[inst] else {
            return value;
        };
        let ty = dfg.value_type(value);
        let bytes = dfg.constants.get(constant_handle).as_slice().to_vec();
        self.vector_constant(ty, bytes)
    }

    /// Returns the truth of shared memory having to be cleared: there is some, and the threads of a
    /// row do not fill it.
    pub(super) fn clears(&mut self, one_row: Value) -> Value {
        let length = self.rare_field(offset_of!(Machine, shared_length), I64);
        let any = self.b.ins().icmp_imm_u(IntCC::NotEqual, length, 0);
        let clears = match self.plan.shared_init {
            Some(size) => {
                let threads = self.machine_field(offset_of!(Machine, block), I32);
                let threads = self.b.ins().uextend(I64, threads);
                let filled = self.b.ins().imul_imm_u(threads, i64::from(size));
                let less = self.b.ins().icmp(IntCC::UnsignedLessThan, filled, length);
                let several = self.b.ins().icmp_imm_u(IntCC::Equal, one_row, 0);
                let not_filled = self.b.ins().bor(less, several);
                self.b.ins().band(any, not_filled)
            }
            None => any,
        };
        self.b.ins().uextend(I32, clears)
    }
}
