//! Barriers for the whole block, as one group sees them: the registers it keeps before a barrier
//! and restores after it.
//!
//! A register has one place in the frame. One that has not changed since the last barrier is still
//! there: neither the next barrier nor a side exit stores it ([`Unchanged`]). A register that is
//! only kept is not even loaded.

use super::side_exits::Tables;
use super::{Emitter, dead};
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use crate::spill_frame::Kept;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, MemFlagsData, Value, ValueDef};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{INTERPRET, KEPT, Machine};
use gridloom_interp::lanes::Slot;
use std::collections::HashMap;
use std::mem::offset_of;

/// Which values were loaded from the frame after a barrier, and where they are stored again.
/// Whether a value is the same is known once all of the function is emitted.
#[derive(Default)]
pub(super) struct Unchanged {
    /// The values of each register in the frame, by register, with its offset there.
    values: HashMap<(u32, Value), u32>,
    loads: Vec<Inst>,
    /// Stores at barriers.
    kept: Vec<(Slot, Value, Inst)>,
    /// Stores at side exits, by the number of the exit.
    left: Vec<(usize, Slot, Vec<(Value, Inst)>)>,
}

impl Unchanged {
    /// Notes that a value of a register was made of one loaded from an offset in the frame.
    fn loaded(&mut self, func: &Function, (slot, offset): (Slot, u32), loaded: Value, value: Value) {
        self.values.insert((slot.0, value), offset);
        if let ValueDef::Result(load, _) = func.dfg.value_def(loaded) {
            self.loads.push(load);
        }
    }

    fn stored(&mut self, slot: Slot, value: Value, store: Inst) {
        self.kept.push((slot, value, store));
    }

    /// Notes the stores of a register's values at a side exit.
    pub(super) fn left(&mut self, exit: usize, slot: Slot, stores: Vec<(Value, Inst)>) {
        self.left.push((exit, slot, stores));
    }

    fn offset(&self, func: &Function, slot: Slot, value: Value) -> Option<u32> {
        self.values.get(&(slot.0, func.dfg.resolve_aliases(value))).copied()
    }

    /// Removes the stores of what is in the frame already, and the loads that nothing else needs.
    pub(super) fn remove_stores(&self, func: &mut Function, tables: &mut Tables, frame_bytes: u32) {
        for &(slot, value, store) in &self.kept {
            if self.offset(func, slot, value).is_some() {
                func.layout.remove_inst(store);
            }
        }
        for (exit, slot, stores) in &self.left {
            let mut offsets = stores.iter().map(|&(value, _)| self.offset(func, *slot, value));
            let Some(Some(offset)) = offsets.next().filter(|_| offsets.all(|offset| offset.is_some())) else {
                continue;
            };
            tables.take_from_frame(*exit, *slot, frame_bytes, offset);
            stores.iter().for_each(|&(_, store)| func.layout.remove_inst(store));
        }
        dead::remove_loads(func, &self.loads);
    }
}

impl Emitter<'_> {
    /// Returns the frame of the group.
    fn frame(&mut self) -> Value {
        let frames = self.machine_field(offset_of!(Machine, kept), I64);
        let thread = self.b.ins().uextend(I64, self.thread);
        let group = self.b.ins().ushr_imm_u(thread, i64::from(self.lanes.trailing_zeros()));
        let offset = self.b.ins().imul_imm_u(group, i64::from(self.plan.frame_layout.bytes));
        self.b.ins().iadd(frames, offset)
    }

    /// Suspends the group at a barrier that all threads may pass together.
    pub(super) fn wait(&mut self, number: usize, kept: &[Kept]) {
        let frame = self.frame();
        let flags = MemFlagsData::trusted();
        for kept in kept {
            let class = self.storage(kept.slot);
            let offset = kept.offset as i32;
            let variables = self.variables[kept.slot.0 as usize].clone();
            if self.plan.uniformity.get(kept.slot) == Shape::Varying {
                for (part, &variable) in variables.iter().enumerate() {
                    let value = self.b.use_var(variable);
                    let store = self.b.ins().store(flags, value, frame, offset + self.length.offset(part));
                    self.unchanged.stored(kept.slot, value, store);
                }
            } else {
                let value = self.b.use_var(variables[0]);
                let bits = self.convert(value, class, Class::B64);
                let store = self.b.ins().store(flags, bits, frame, offset);
                self.unchanged.stored(kept.slot, value, store);
            }
        }
        let place = (self.plan.entries.len() + number) as u32;
        self.arrive(place, self.pc | INTERPRET | KEPT);
    }

    /// Continues after a barrier.
    pub(super) fn pass(&mut self, barrier: Pc) {
        let (flow, layout) = (self.plan.flow, self.plan.frame_layout);
        let (Some(index), Some((_, kept))) = (flow.block_at(barrier + 1), layout.at(barrier)) else {
            return self.defect("a barrier inside a block");
        };
        self.compute_for_entry(index);
        let frame = self.frame();
        let flags = MemFlagsData::trusted();
        for kept in kept {
            let class = self.storage(kept.slot);
            let offset = kept.offset as i32;
            let variables = self.variables[kept.slot.0 as usize].clone();
            if self.plan.uniformity.get(kept.slot) == Shape::Varying {
                debug_assert_eq!(variables.len(), self.lanes as usize / self.per_vector(class));
                for (part, &variable) in variables.iter().enumerate() {
                    let ty = self.vector_type(class).unwrap_or(I64);
                    let value = self.b.ins().load(ty, flags, frame, offset + self.length.offset(part));
                    self.unchanged.loaded(self.b.func, (kept.slot, kept.offset), value, value);
                    self.b.def_var(variable, value);
                }
            } else {
                let bits = self.b.ins().load(I64, flags, frame, offset);
                let value = self.convert(bits, Class::B64, class);
                self.unchanged.loaded(self.b.func, (kept.slot, kept.offset), bits, value);
                self.b.def_var(variables[0], value);
            }
        }
        self.b.ins().jump(self.blocks[index], &[]);
    }
}
