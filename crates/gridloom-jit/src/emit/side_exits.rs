//! Side exits: a group stores what it holds as it is, and one block of each region lets the runtime
//! move that to where the interpreter reads it. Most instructions have a side exit, for an invalid
//! address or a branch at which threads may diverge. Few are ever taken.

use super::Emitter;
use super::divergent::Running;
use super::scalarized::Scalarized;
use crate::analysis::flow::SlotSet;
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use crate::runtime;
use crate::spill_frame::{EntryShapes, FrameEntry, GroupExit};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{INTERPRET, REFUSED};
use gridloom_interp::lanes::{Slot, Source};
use std::rc::Rc;

/// The contents of a register.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) slot: Slot,
    as_is: As,
}

impl Held {
    /// Returns the values of its variables, unless it is a value of each thread by itself.
    pub(super) fn values(&self) -> Option<&[Value]> {
        match &self.as_is {
            As::Values(values, _) => Some(values),
            As::Scalarized(_) => None,
        }
    }
}

#[derive(Clone)]
enum As {
    /// The values of its variables, and whether a NaN may be non-canonical.
    Values(Vec<Value>, bool),
    /// A value of each thread by itself.
    Scalarized(Rc<Scalarized>),
}

/// A side exit to be emitted after the current block of the function.
struct Exit {
    block: Block,
    /// The instruction before which the group leaves, and whether that is known to fault.
    of: (Pc, bool),
    held: Vec<Held>,
    /// The threads that leave there, if others wait.
    running: Option<Running>,
}

/// The data that the code of a function refers to by address.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the code has the addresses")]
pub(crate) struct Tables {
    left: Vec<Box<GroupExit>>,
    entered: Vec<Box<EntryShapes>>,
    frames: Vec<Box<FrameEntry>>,
}

impl Tables {
    /// Makes a side exit take a register from the spill frame of the group.
    pub(super) fn take_from_frame(&mut self, exit: usize, slot: Slot, frame_bytes: u32, offset: u32) {
        self.left[exit].take_from_frame(slot, frame_bytes, offset);
    }
}

/// The state that the side exits of a function share.
#[derive(Default)]
pub(super) struct SideExits {
    exits: Vec<Exit>,
    pub(super) tables: Tables,
    /// For each region, the block through which groups leave. Its argument says how.
    blocks: Vec<(usize, Block)>,
    /// Memory for registers stored at side exits, and for arguments and results of calls.
    scratch: Option<StackSlot>,
    /// Memory for the accesses of threads that make none.
    pub(super) nowhere: Option<StackSlot>,
    /// Memory for masks of threads that make an access, and the masks that it holds at this point
    /// of a short block.
    pub(super) masks: Option<StackSlot>,
    pub(super) masks_held: Vec<Value>,
}

impl Emitter<'_> {
    /// Returns the address of memory of at least `bytes` bytes, for the arguments and results of
    /// the next call.
    pub(super) fn scratch(&mut self, bytes: u32) -> Value {
        let slot = self.reserve(bytes);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    fn reserve(&mut self, bytes: u32) -> StackSlot {
        let slot = match self.side_exits.scratch {
            Some(slot) => slot,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 4);
                *self.side_exits.scratch.insert(self.b.create_sized_stack_slot(data))
            }
        };
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = (*size).max(bytes);
        slot
    }

    /// Returns the current contents of registers.
    pub(super) fn held(&mut self, slots: impl IntoIterator<Item = Slot>) -> Vec<Held> {
        let mut held = Vec::new();
        for slot in slots {
            let as_is = match self.scalarized_of(slot) {
                Some(each) => As::Scalarized(each),
                None => {
                    let variables = self.variables[slot.0 as usize].clone();
                    let values = variables.into_iter().map(|variable| self.b.use_var(variable)).collect();
                    As::Values(values, self.holds_any_nan(slot))
                }
            };
            held.push(Held { slot, as_is });
        }
        held
    }

    /// Returns the exit that leaves the current instruction, and the rest of the block, to the
    /// interpreter. If the instruction is known to fault, the interpreter executes only that.
    pub(super) fn exit_here(&mut self, fault: bool) -> Block {
        if self.rematerializing {
            self.defect("an invariant that not all threads can compute");
            return self.next;
        }
        if let Some(party) = &self.party {
            // Nothing in the short block has had an effect yet.
            return party.given_up;
        }
        if let Some(speculation) = &self.speculation {
            // Leaves before the first speculative instruction.
            return speculation.exit;
        }
        let of = (self.pc, fault);
        if let Some(exit) = self.side_exits.exits.iter().rfind(|exit| exit.of == of) {
            return exit.block;
        }
        // If other threads wait, everything they need is stored too.
        let held = if fault && self.running.is_none() {
            let mut slots = Vec::new();
            self.plan.flow.instruction(self.pc).for_each_use(&mut |source| {
                if let Source::Slot(slot) = source {
                    slots.push(slot);
                }
            });
            slots.dedup();
            self.held(slots)
        } else {
            let live = self.live_here();
            self.held(live.iter())
        };
        let block = self.b.create_block();
        self.write_exit_later(block, self.pc, fault, held);
        block
    }

    /// Schedules a block that leaves the group before an instruction with these contents of
    /// registers.
    pub(super) fn write_exit_later(&mut self, block: Block, pc: Pc, fault: bool, held: Vec<Held>) {
        self.b.set_cold_block(block);
        let running = self.running.clone();
        self.side_exits.exits.push(Exit { block, of: (pc, fault), held, running });
    }

    /// Returns the registers that are live before the current instruction, in running or waiting
    /// threads.
    pub(super) fn live_here(&self) -> SlotSet {
        let mut live = self.live.clone();
        if let Some(kept) = self.kept_by_waiting() {
            live.union(kept);
        }
        live
    }

    /// Emits the exits before instructions of a block.
    pub(super) fn write_exits(&mut self) {
        for Exit { block, of: (pc, fault), held, running } in std::mem::take(&mut self.side_exits.exits) {
            self.go_on_in(block);
            let place = pc | INTERPRET | if fault { REFUSED } else { 0 };
            match running {
                None => self.leave_together(&held, place),
                Some(running) => {
                    let waiting = self.places_waited_at();
                    self.leave_apart(&held, Some((running.bits, place)), &waiting);
                }
            }
        }
    }

    /// Leaves the group with some threads at one place and the waiting threads where they wait.
    pub(super) fn leave_apart(&mut self, held: &[Held], running: Option<(Value, u32)>, waiting: &[usize]) {
        self.note_parted();
        let mut left = GroupExit::new(self.lanes);
        let frame = self.store_left(&mut left, held);
        let place = running.map_or(0, |(_, place)| place);
        let offset = left.scatter(place, self.waiting_lanes(waiting)) as i32;
        let bits = match running {
            Some((bits, _)) => bits,
            None => self.b.ins().iconst(I32, 0),
        };
        let words = self.words();
        self.b.ins().store(MemFlagsData::trusted(), words, frame, offset);
        self.b.ins().store(MemFlagsData::trusted(), bits, frame, offset + 8);
        self.go_and_leave(left);
    }

    /// Leaves the group with all threads at one place.
    pub(super) fn leave_together(&mut self, held: &[Held], place: u32) {
        let mut left = GroupExit::new(self.lanes);
        left.stay(place);
        self.store_left(&mut left, held);
        self.go_and_leave(left);
    }

    /// Leaves the group with the threads of a mask at the first of two places and the others at the
    /// second.
    pub(super) fn leave_parted(&mut self, held: &[Held], masks: &[Value], places: [u32; 2]) {
        let mut left = GroupExit::new(self.lanes);
        let frame = self.store_left(&mut left, held);
        let offset = left.part(places) as i32;
        for (part, &mask) in masks.iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), mask, frame, offset + self.length.offset(part));
        }
        self.go_and_leave(left);
    }

    /// Stores registers in the form they are held in.
    fn store_left(&mut self, left: &mut GroupExit, held: &[Held]) -> Value {
        let frame = self.scratch(0);
        let flags = MemFlagsData::trusted();
        for Held { slot, as_is } in held {
            match as_is {
                As::Scalarized(each) => {
                    let offset = left.keep(*slot, Shape::Varying, Class::B64, false) as i32;
                    for lane in 0..self.lanes as usize {
                        let bits = self.scalarized_lane(each, Class::B64, lane);
                        self.b.ins().store(flags, bits, frame, offset + 8 * lane as i32);
                    }
                }
                As::Values(values, lazy) => {
                    let (class, shape) = (self.storage(*slot), self.plan.uniformity.get(*slot));
                    let offset = left.keep(*slot, shape, class, *lazy) as i32;
                    let mut stores = Vec::new();
                    for (part, &value) in values.iter().enumerate() {
                        let stored = match (class, shape) {
                            (Class::Pred, Shape::Uniform) => self.convert(value, class, Class::B32),
                            _ => value,
                        };
                        let store =
                            self.b.ins().store(flags, stored, frame, offset + self.length.offset(part));
                        stores.push((value, store));
                    }
                    self.unchanged.left(self.side_exits.tables.left.len(), *slot, stores);
                }
            }
        }
        frame
    }

    fn go_and_leave(&mut self, left: GroupExit) {
        self.reserve(left.bytes());
        let left = Box::new(left);
        let address = self.b.ins().iconst(I64, std::ptr::from_ref(&*left) as i64);
        self.side_exits.tables.left.push(left);
        let region = self.region;
        let block = match self.side_exits.blocks.iter().find(|(other, _)| *other == region) {
            Some(&(_, block)) => block,
            None => {
                let block = self.b.create_block();
                self.b.append_block_param(block, I64);
                self.side_exits.blocks.push((region, block));
                block
            }
        };
        self.b.ins().jump(block, &[address.into()]);
    }

    /// Returns the truth of some registers having their shape in memory.
    pub(super) fn check_entered(&mut self, registers: Value, entered: EntryShapes) -> Value {
        let entered = Box::new(entered);
        let address = self.b.ins().iconst(I64, std::ptr::from_ref(&*entered) as i64);
        self.side_exits.tables.entered.push(entered);
        let answer = self.scratch(4);
        self.call_rarely(runtime::enter as *const () as usize, &[registers, address, answer]);
        self.b.ins().load(I32, MemFlagsData::trusted(), answer, 0)
    }

    /// Fills the frame of a group that is entered behind a barrier, and returns the truth of its
    /// registers having their shapes. If they do not, the threads are at `otherwise`.
    pub(super) fn fill_frame(&mut self, barrier: Pc, otherwise: u32) -> Option<Value> {
        let entered = Box::new(self.plan.frame_layout.entry(barrier, otherwise)?);
        let address = self.b.ins().iconst(I64, std::ptr::from_ref(&*entered) as i64);
        self.side_exits.tables.frames.push(entered);
        let answer = self.scratch(4);
        let arguments = [self.machine, self.thread, address, answer];
        self.call_rarely(runtime::enter_frame as *const () as usize, &arguments);
        Some(self.b.ins().load(I32, MemFlagsData::trusted(), answer, 0))
    }

    /// Emits the blocks through which groups leave.
    pub(super) fn write_side_exits(&mut self) {
        for (region, block) in std::mem::take(&mut self.side_exits.blocks) {
            self.visit(region, self.groups[region]);
            self.go_on_in(block);
            self.b.set_cold_block(block);
            let left = self.b.block_params(block)[0];
            let frame = self.scratch(0);
            self.call_rarely(runtime::leave as *const () as usize, &[self.machine, self.thread, left, frame]);
            self.note_left();
            self.b.ins().jump(self.next, &[]);
        }
    }
}
