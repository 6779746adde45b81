//! Rematerialization: invariant definitions are computed once and reused where they are needed.

use super::Emitter;
use crate::native::Class;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::I32;
use gridloom_interp::code::Pc;
use gridloom_interp::lanes::Slot;
use std::collections::HashSet;

impl Emitter<'_> {
    /// Computes the invariant definitions that are the same in a whole block.
    pub(super) fn compute_for_block(&mut self) {
        let invariants = self.plan.rematerialization;
        let order = invariants.order.iter();
        self.rematerialize(order.filter(|(pc, _)| invariants.is_of_block(*pc)));
        self.share();
    }

    /// Computes the invariant definitions that a group needs where it is entered, and puts them
    /// into their registers. Other registers are overwritten meanwhile, so they are loaded after
    /// this.
    pub(super) fn compute_for_entry(&mut self, index: usize) {
        let (flow, invariants) = (self.plan.flow, self.plan.rematerialization);
        let live = &flow.blocks[index].live_in;
        let reaching: Vec<(Slot, Pc)> =
            live.iter().filter_map(|slot| Some((slot, invariants.at_block(index, slot)?))).collect();
        let mut needed: HashSet<Pc> = reaching.iter().map(|&(_, pc)| pc).collect();
        for (pc, reads) in invariants.order.iter().rev() {
            if needed.contains(pc) {
                needed.extend(reads.iter().map(|&(_, definition)| definition));
            }
        }
        let order = invariants.order.iter();
        self.rematerialize(order.filter(|(pc, _)| needed.contains(pc) && !invariants.is_of_block(*pc)));
        for (slot, definition) in reaching {
            self.recall(slot, definition);
        }
    }

    fn rematerialize<'i>(&mut self, order: impl Iterator<Item = &'i (Pc, Vec<(Slot, Pc)>)>) {
        self.rematerializing = true;
        for (pc, reads) in order {
            for &(slot, definition) in reads {
                self.recall(slot, definition);
            }
            self.pc = *pc;
            let instruction = self.plan.flow.instruction(*pc);
            self.instruction(instruction);
            let mut values = Vec::new();
            instruction.for_each_definition(&mut |slot| {
                let variables = self.variables[slot.0 as usize].clone();
                values.extend(variables.iter().map(|&variable| self.b.use_var(variable)));
            });
            self.rematerialized.insert(*pc, values);
        }
        self.rematerializing = false;
        self.forget_all();
    }

    /// Returns the value of a 32-bit invariant definition that a block shares.
    pub(crate) fn known_word(&mut self, definition: Pc) -> Value {
        let mut class = Class::B32;
        self.plan.flow.instruction(definition).for_each_definition(&mut |slot| class = self.storage(slot));
        let Some(value) = self.rematerialized.get(&definition).and_then(|values| values.first().copied())
        else {
            self.defect("an invariant that was not computed");
            return self.constant(0, Class::B32);
        };
        if self.b.func.dfg.value_type(value).is_vector() {
            // Another definition of the register differs between threads, so it is a vector.
            let value = self.vector_cast(value, self.length.by(I32));
            return self.lane_of(value, 0);
        }
        self.convert(value, class, Class::B32)
    }

    /// Assigns the value of an invariant definition to a register.
    pub(crate) fn recall(&mut self, slot: Slot, definition: Pc) {
        let Some(values) = self.rematerialized.get(&definition).cloned() else {
            return self.defect("an invariant that was not computed");
        };
        self.forget_register(slot);
        let variables = self.variables[slot.0 as usize].clone();
        for (variable, value) in variables.into_iter().zip(values) {
            let value = self.share_of(value);
            self.b.def_var(variable, value);
        }
    }
}
