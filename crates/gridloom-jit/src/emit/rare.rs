//! Rare ways out of the code: what a group holds is stored as it is, and one block of each region has the runtime put it where the interpreter looks
//! for it. An address that may be bad, a branch at which threads may part: most instructions have such a way, and few are ever gone.

use super::Emitter;
use crate::kept::Left;
use crate::native::Class;
use crate::runtime;
use crate::shape::Shape;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use gridloom_interp::lanes::Slot;

/// What the rare ways of a function share.
#[derive(Default)]
pub(super) struct Rare {
    /// How groups are left. The code has their addresses.
    #[expect(clippy::vec_box, reason = "the code has their addresses")]
    pub(super) left: Vec<Box<Left>>,
    /// For each region where it is left, given how.
    blocks: Vec<(usize, Block)>,
    /// Memory for what is stored on the way, and for what calls take and give.
    scratch: Option<StackSlot>,
}

impl Emitter<'_> {
    /// The address of memory of at least so many bytes, for what is passed to the next call and back.
    pub(super) fn scratch(&mut self, bytes: u32) -> Value {
        let slot = self.reserve(bytes);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    fn reserve(&mut self, bytes: u32) -> StackSlot {
        let slot = match self.rare.scratch {
            Some(slot) => slot,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 4);
                *self.rare.scratch.insert(self.b.create_sized_stack_slot(data))
            }
        };
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = (*size).max(bytes);
        slot
    }

    /// Leaves the group with some registers, all threads at one place.
    pub(super) fn leave_rarely(&mut self, slots: impl IntoIterator<Item = Slot>, place: u32) {
        let mut left = Left::new(self.lanes);
        left.stay(place);
        self.store_left(&mut left, slots);
        self.go_and_leave(left);
    }

    /// Leaves the group with some registers, the threads of a mask at the first of two places, the others at the second.
    pub(super) fn leave_parted(
        &mut self,
        slots: impl IntoIterator<Item = Slot>,
        masks: &[Value],
        places: [u32; 2],
    ) {
        let mut left = Left::new(self.lanes);
        let frame = self.store_left(&mut left, slots);
        let offset = left.part(places) as i32;
        for (part, &mask) in masks.iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), mask, frame, offset + 16 * part as i32);
        }
        self.go_and_leave(left);
    }

    /// Stores registers as they are held.
    fn store_left(&mut self, left: &mut Left, slots: impl IntoIterator<Item = Slot>) -> Value {
        let frame = self.scratch(0);
        let flags = MemFlagsData::trusted();
        for slot in slots {
            if let Some(each) = self.each_of(slot) {
                let offset = left.keep(slot, Shape::Varying, Class::B64, false) as i32;
                for lane in 0..self.lanes as usize {
                    let bits = self.each_lane(&each, Class::B64, lane);
                    self.b.ins().store(flags, bits, frame, offset + 8 * lane as i32);
                }
                continue;
            }
            let (class, shape) = (self.storage(slot), self.shapes.get(slot));
            let offset = left.keep(slot, shape, class, self.holds_any_nan(slot)) as i32;
            for (part, variable) in self.variables[slot.0 as usize].clone().into_iter().enumerate() {
                let mut value = self.b.use_var(variable);
                if (class, shape) == (Class::Pred, Shape::Uniform) {
                    value = self.convert(value, class, Class::B32);
                }
                self.b.ins().store(flags, value, frame, offset + 16 * part as i32);
            }
        }
        frame
    }

    fn go_and_leave(&mut self, left: Left) {
        self.reserve(left.bytes());
        let left = Box::new(left);
        let address = self.b.ins().iconst(I64, std::ptr::from_ref(&*left) as i64);
        self.rare.left.push(left);
        let region = self.region;
        let block = match self.rare.blocks.iter().find(|(other, _)| *other == region) {
            Some(&(_, block)) => block,
            None => {
                let block = self.b.create_block();
                self.b.append_block_param(block, I64);
                self.rare.blocks.push((region, block));
                block
            }
        };
        self.b.ins().jump(block, &[address.into()]);
    }

    /// Writes the blocks where groups are left.
    pub(super) fn write_rare(&mut self) {
        for (region, block) in std::mem::take(&mut self.rare.blocks) {
            self.visit(region, self.groups[region]);
            self.go_on_in(block);
            self.b.set_cold_block(block);
            let left = self.b.block_params(block)[0];
            let frame = self.scratch(0);
            self.call(runtime::leave as *const () as usize, &[self.machine, self.thread, left, frame], None);
            self.note_left();
            self.b.ins().jump(self.next, &[]);
        }
    }
}
