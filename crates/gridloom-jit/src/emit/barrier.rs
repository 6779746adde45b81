//! Barriers for the whole block, as one group sees them: the registers it keeps before a barrier
//! and restores after it.

use super::Emitter;
use super::value::{per_vector, vector_type};
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use crate::spill_frame::Kept;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{INTERPRET, KEPT, Machine};
use std::mem::offset_of;

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
                    self.b.ins().store(flags, value, frame, offset + 16 * part as i32);
                }
            } else {
                let value = self.b.use_var(variables[0]);
                let bits = self.convert(value, class, Class::B64);
                self.b.ins().store(flags, bits, frame, offset);
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
                debug_assert_eq!(variables.len(), self.lanes as usize / per_vector(class));
                for (part, &variable) in variables.iter().enumerate() {
                    let ty = vector_type(class).unwrap_or(I64);
                    let value = self.b.ins().load(ty, flags, frame, offset + 16 * part as i32);
                    self.b.def_var(variable, value);
                }
            } else {
                let bits = self.b.ins().load(I64, flags, frame, offset);
                let value = self.convert(bits, Class::B64, class);
                self.b.def_var(variables[0], value);
            }
        }
        self.b.ins().jump(self.blocks[index], &[]);
    }
}
