//! Entries to and exits from the code: registers are loaded from and stored to memory.

use super::value::Val;
use super::{Emitter, SINGLE};
use crate::analysis::flow::SlotSet;
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use crate::runtime;
use crate::spill_frame::EntryShapes;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{INTERPRET, Machine};
use gridloom_interp::lanes::Slot;
use std::mem::offset_of;

/// The distance of two slots in bytes.
const SLOT: i32 = 256;

impl Emitter<'_> {
    /// Returns where the registers of the group's first thread are in memory.
    fn registers(&mut self) -> Value {
        let warp = self.b.ins().ushr_imm_u(self.thread, 5);
        let warp = self.b.ins().uextend(I64, warp);
        let at = self.b.ins().ishl_imm_u(warp, 3);
        let table = self.machine_field(offset_of!(Machine, registers), I64);
        let at = self.b.ins().iadd(table, at);
        let registers = self.b.ins().load(I64, MemFlagsData::trusted(), at, 0);
        let lane = self.b.ins().band_imm_u(self.thread, 31);
        let lane = self.b.ins().uextend(I64, lane);
        let lane = self.b.ins().ishl_imm_u(lane, 3);
        self.b.ins().iadd(registers, lane)
    }

    fn slot_offset(slot: Slot, lane: usize) -> i32 {
        slot.0 as i32 * SLOT + 8 * lane as i32
    }

    /// Fills the frame of the group and continues as after the barrier before an entry. If
    /// registers do not have the shapes that the code relies on, the group goes to the code for
    /// single threads.
    pub(super) fn enter_passed(&mut self, pc: Pc, passed: Block) {
        let Some(holds) = self.fill_frame(pc - 1, pc | SINGLE) else {
            return self.defect("an entry behind no barrier");
        };
        let apart = self.b.create_block();
        self.b.set_cold_block(apart);
        self.b.ins().brif(holds, passed, &[], apart, &[]);
        self.go_on_in(apart);
        self.note_parted();
        self.note_left();
        self.b.ins().jump(self.next, &[]);
    }

    /// Loads the live registers at an entry and goes there. If registers do not have the shape that
    /// the code relies on, the group goes to the code for single threads.
    pub(super) fn enter(&mut self, pc: Pc) {
        let Some(index) = self.plan.flow.block_at(pc) else {
            return self.defect("an entry inside a block");
        };
        let flow = self.plan.flow;
        let target = self.blocks[index];
        // At the start of the kernel, a register that was never written is zero.
        let fresh = pc == flow.range.start && flow.is_kernel;
        if !fresh {
            self.compute_for_entry(index);
        }
        let base = if fresh { self.machine } else { self.registers() };
        let mut entered = EntryShapes::new(self.lanes);
        for slot in flow.blocks[index].live_in.iter() {
            if fresh {
                self.clear(slot);
            } else if self.plan.rematerialization.at_block(index, slot).is_none() {
                self.reload(base, slot);
                let shape = self.plan.uniformity.get(slot);
                if self.lanes > 1 && shape != Shape::Varying {
                    entered.expect(slot, shape, self.storage(slot));
                }
            }
        }
        if entered.is_empty() {
            self.b.ins().jump(target, &[]);
            return;
        }
        let holds = self.check_entered(base, entered);
        let apart = self.b.create_block();
        self.b.set_cold_block(apart);
        self.b.ins().brif(holds, target, &[], apart, &[]);
        self.go_on_in(apart);
        self.note_parted();
        self.leave_at(pc | SINGLE);
    }

    fn clear(&mut self, slot: Slot) {
        let class = self.storage(slot);
        let variables = self.variables[slot.0 as usize].clone();
        for variable in variables {
            let zero = match self.plan.uniformity.get(slot) {
                Shape::Varying => self.vector_of(0, class),
                _ => self.constant(0, class),
            };
            self.b.def_var(variable, zero);
        }
    }

    /// Loads a register.
    fn reload(&mut self, base: Value, slot: Slot) {
        let class = self.storage(slot);
        let flags = MemFlagsData::trusted();
        let variables = self.variables[slot.0 as usize].clone();
        let at = |lane: usize| Self::slot_offset(slot, lane);
        match self.plan.uniformity.get(slot) {
            Shape::Varying => {
                let per = self.per_vector(class);
                let pairs = self.length.by(I64);
                for (part, &variable) in variables.iter().enumerate() {
                    let first = part * per;
                    let low = self.b.ins().load(pairs, flags, base, at(first));
                    let value = match class.untyped() {
                        Class::B64 => low,
                        class => {
                            let high = self.b.ins().load(pairs, flags, base, at(first + per / 2));
                            let value = self.narrow(low, high);
                            if class == Class::Pred {
                                let zero = self.vector_of(0, Class::B32);
                                self.b.ins().icmp(IntCC::NotEqual, value, zero)
                            } else {
                                value
                            }
                        }
                    };
                    let value = self.vector_cast(value, self.vector_type(class).unwrap_or(pairs));
                    self.b.def_var(variable, value);
                }
            }
            _ => {
                let bits = self.b.ins().load(I64, flags, base, at(0));
                let value = self.convert(bits, Class::B64, class);
                self.b.def_var(variables[0], value);
            }
        }
    }

    /// Stores a register.
    fn spill(&mut self, base: Value, slot: Slot) {
        let class = self.storage(slot);
        let flags = MemFlagsData::trusted();
        let variables = self.variables[slot.0 as usize].clone();
        let at = |lane: usize| Self::slot_offset(slot, lane);
        if let Some(each) = self.scalarized_of(slot) {
            for lane in 0..self.lanes as usize {
                let bits = self.scalarized_lane(&each, Class::B64, lane);
                self.b.ins().store(flags, bits, base, at(lane));
            }
            return;
        }
        match self.plan.uniformity.get(slot) {
            Shape::Varying => {
                let per = self.per_vector(class);
                for (part, &variable) in variables.iter().enumerate() {
                    let first = part * per;
                    let mut value = self.b.use_var(variable);
                    if self.holds_any_nan(slot) {
                        value = self.settle(value, class, true);
                    }
                    if class.bits() == 64 {
                        self.b.ins().store(flags, value, base, at(first));
                        continue;
                    }
                    value = self.vector_cast(value, self.length.by(I32));
                    if class == Class::Pred {
                        let one = self.vector_of(1, Class::B32);
                        value = self.b.ins().band(value, one);
                    }
                    let (low, high) = (self.b.ins().uwiden_low(value), self.b.ins().uwiden_high(value));
                    self.b.ins().store(flags, low, base, at(first));
                    self.b.ins().store(flags, high, base, at(first + per / 2));
                }
            }
            Shape::Uniform => {
                let mut value = self.b.use_var(variables[0]);
                if self.holds_any_nan(slot) {
                    value = self.settle(value, class, false);
                }
                let bits = self.convert(value, class, Class::B64);
                if self.lanes == 1 {
                    self.b.ins().store(flags, bits, base, at(0));
                } else {
                    let both = self.b.ins().splat(self.length.by(I64), bits);
                    for lane in (0..self.lanes as usize).step_by(self.per_vector(Class::B64)) {
                        self.b.ins().store(flags, both, base, at(lane));
                    }
                }
            }
            Shape::Affine(step) if self.lanes > 8 => {
                let value = self.b.use_var(variables[0]);
                let bits = self.convert(value, class, Class::B64);
                let at = self.b.ins().iadd_imm_s(base, i64::from(at(0)));
                let arguments = [
                    at,
                    bits,
                    self.b.ins().iconst(I64, step),
                    self.b.ins().iconst(I32, i64::from(self.lanes)),
                    self.b.ins().iconst(I32, i64::from(class.bits())),
                ];
                self.call(runtime::store_affine as *const () as usize, &arguments, None);
            }
            Shape::Offsets(offsets) => {
                let value = self.b.use_var(variables[0]);
                for lane in 0..self.lanes as usize {
                    let value = self.lane(&Val::Offsets(value, offsets), class, lane);
                    let bits = self.convert(value, class, Class::B64);
                    self.b.ins().store(flags, bits, base, at(lane));
                }
            }
            Shape::Affine(step) => {
                let value = self.b.use_var(variables[0]);
                for lane in 0..self.lanes as usize {
                    let value = self.lane(&Val::Affine(value, step), class, lane);
                    let bits = self.convert(value, class, Class::B64);
                    self.b.ins().store(flags, bits, base, at(lane));
                }
            }
        }
    }

    fn spill_all(&mut self, live: &SlotSet) {
        let mut slots: Vec<Slot> = live.iter().collect();
        // Registers that are stored by a call come last. No vector stays in a register across the
        // call.
        slots.sort_by_key(|&slot| matches!(self.plan.uniformity.get(slot), Shape::Affine(_)));
        let base = self.registers();
        for slot in slots {
            self.spill(base, slot);
        }
    }

    /// Leaves the threads of the group at an instruction for others to continue.
    pub(super) fn leave_at(&mut self, at: u32) {
        self.note_left();
        self.note_place(at);
    }

    /// Records where the threads of the group are, and continues with the next group.
    pub(super) fn note_place(&mut self, at: u32) {
        if self.lanes == 1 {
            let at = self.b.ins().iconst(I32, i64::from(at));
            return self.note_places(&[at]);
        }
        let at = self.vector_of(at.into(), Class::B32);
        let count = self.lanes as usize / self.per_vector(Class::B32);
        self.note_places(&vec![at; count]);
    }

    /// Records where all threads of the group are, in the entry of the first. The entries of the
    /// others still say that they have exited, as at the start of the call, unless the group has
    /// left. The reader of the table copies the first entry to them.
    pub(super) fn note_group(&mut self, at: u32) {
        let at = self.b.ins().iconst(I32, i64::from(at));
        self.note_places(&[at]);
    }

    fn note_places(&mut self, places: &[Value]) {
        let table = self.machine_field(offset_of!(Machine, pcs), I64);
        let index = self.b.ins().uextend(I64, self.thread);
        let offset = self.b.ins().ishl_imm_u(index, 2);
        let address = self.b.ins().iadd(table, offset);
        for (part, &place) in places.iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), place, address, self.length.offset(part));
        }
        self.b.ins().jump(self.next, &[]);
    }

    /// Leaves the instruction at the end of a block to the interpreter, which returns after it.
    pub(super) fn interpret_next(&mut self) {
        if self.running.is_some() {
            let exit = self.exit_here(false);
            self.b.ins().jump(exit, &[]);
            return;
        }
        let layout = self.plan.frame_layout;
        if let Some((number, kept)) = layout.at(self.pc) {
            return self.wait(number, kept);
        }
        let kept = self.plan.rematerialization.kept(self.plan.flow, self.pc, &self.live);
        self.spill_all(&kept);
        self.leave_at(self.pc | INTERPRET);
    }
}
