//! Code for diverged threads: each block is emitted once more for some threads of a group, while
//! the others wait at the blocks they are at.
//!
//! Each block that threads can wait at has a word with a bit for each of them. After divergence,
//! blocks are *visited* in order. If no thread is at a block, the next block that can have threads
//! is visited. If all threads are there, they continue as a group. Otherwise the threads that are
//! there run the block under a mask. Then they are recorded at the blocks they go to, and the first
//! block that can have threads is visited next (`analysis::divergence`). At an invalid address, or
//! an instruction for the interpreter, each thread continues separately in the code for single
//! threads.

use super::branch::Way;
use super::rounds::FUEL;
use super::value::Val;
use super::{Emitter, Facts, SINGLE};
use crate::analysis::flow::SlotSet;
use crate::native::Class;
use crate::spill_frame::WaitingLanes;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I16X8, I32, I64};
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use gridloom_interp::code::{BranchTable, Instruction, Op};
use gridloom_interp::compiled::{EXITED, INTERPRET};
use gridloom_interp::lanes::Slot;
use std::rc::Rc;

/// The most targets of a branch table that threads are sorted by. The interpreter handles larger
/// tables.
const MOST_TARGETS: usize = 32;

/// The threads that run a block while others wait.
#[derive(Clone)]
pub(super) struct Running {
    /// Those threads, as masks and as bits.
    pub(super) masks: Rc<Vec<Value>>,
    pub(super) bits: Value,
    /// The first and the last of them.
    pub(super) ends: [Value; 2],
    /// The block they run.
    block: usize,
}

/// The state of waiting threads.
#[derive(Default)]
pub(super) struct Apart {
    /// A word for each block, and one for threads that have exited.
    words: Option<StackSlot>,
    /// The code that visits each block after divergence.
    meetings: Vec<Option<Block>>,
    /// For each region, the block for when all threads have exited, but not all at once.
    ends: Vec<Option<Block>>,
}

impl Emitter<'_> {
    /// Prepares for diverged threads.
    pub(super) fn prepare_apart(&mut self) {
        let divergence = self.plan.divergence;
        let blocks = self.plan.flow.blocks.len();
        self.apart.meetings =
            (0..blocks).map(|index| divergence.is_met(index).then(|| self.b.create_block())).collect();
        self.apart.ends = vec![None; self.plan.regions.list.len()];
        if !(0..blocks).any(|index| divergence.is_met(index)) {
            return;
        }
        let bytes = (4 * (blocks as u32 + 1)).next_multiple_of(self.length.0 as u32);
        let words = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4));
        self.apart.words = Some(words);
        let zero = self.vector_of(0, Class::B32);
        let at = self.b.ins().stack_addr(I64, words, 0);
        for part in 0..bytes as usize / self.length.0 {
            self.b.ins().store(MemFlagsData::trusted(), zero, at, self.length.offset(part));
        }
    }

    fn waiting_at(&mut self, place: usize) -> Option<Value> {
        let words = self.apart.words?;
        Some(self.b.ins().stack_load(I64, I32, words, 4 * place as i32))
    }

    fn set_waiting_at(&mut self, place: usize, bits: Value) {
        match self.apart.words {
            Some(words) => {
                self.b.ins().stack_store(I64, bits, words, 4 * place as i32);
            }
            None => self.defect("threads that wait nowhere"),
        }
    }

    /// Returns whether threads can reach a block after they have diverged.
    pub(super) fn is_met(&self, place: usize) -> bool {
        self.apart.meetings.get(place).is_none_or(Option::is_some) && self.apart.words.is_some()
    }

    /// Returns the bits of all threads of a group.
    pub(super) fn all_bits(&self) -> i64 {
        i64::from(u32::MAX >> (32 - self.plan.lanes))
    }

    /// Returns the block that a branch target is in, or the end.
    pub(super) fn place_on(&self, way: Way) -> Option<usize> {
        match way {
            Way::To(pc) => self.plan.flow.block_at(pc),
            Way::Exit => Some(self.plan.divergence.end()),
        }
    }

    /// Converts masks to bits, one for each thread.
    pub(super) fn bits_of(&mut self, masks: &[Value]) -> Value {
        if self.is_wide() {
            let per = self.per_vector(Class::B32) as i64;
            let some = masks.iter().map(|&mask| self.b.ins().vhigh_bits(I32, mask)).collect::<Vec<Value>>();
            let shifted = (0..).zip(some).map(|(part, some)| match part {
                0 => some,
                part => self.b.ins().ishl_imm_u(some, per * part),
            });
            let shifted: Vec<Value> = shifted.collect();
            let bits = shifted.into_iter().reduce(|a, b| self.b.ins().bor(a, b));
            return bits.unwrap_or_else(|| self.constant(0, Class::B32));
        }
        let halves: Vec<Value> = masks
            .chunks(2)
            .map(|pair| match *pair {
                [low, high] => self.b.ins().snarrow(low, high),
                _ => self.b.ins().snarrow(pair[0], pair[0]),
            })
            .collect();
        let mut bits: Option<Value> = None;
        for (i, pair) in halves.chunks(2).enumerate() {
            let some = match *pair {
                [low, high] => {
                    let bytes = self.b.ins().snarrow(low, high);
                    self.b.ins().vhigh_bits(I32, bytes)
                }
                _ => {
                    debug_assert_eq!(self.b.func.dfg.value_type(pair[0]), I16X8);
                    self.b.ins().vhigh_bits(I32, pair[0])
                }
            };
            bits = Some(match bits {
                None => some,
                Some(bits) => {
                    let some = self.b.ins().ishl_imm_u(some, 16 * i as i64);
                    self.b.ins().bor(bits, some)
                }
            });
        }
        let bits = bits.unwrap_or_else(|| self.constant(0, Class::B32));
        if masks.len() == 1 { self.b.ins().band_imm_u(bits, 15) } else { bits }
    }

    /// Converts bits to masks.
    pub(super) fn masks_of(&mut self, bits: Value) -> Vec<Value> {
        let per = self.per_vector(Class::B32);
        let count = self.lanes as usize / per;
        if self.is_wide() {
            let words = self.length.by(I32);
            return (0..count)
                .map(|part| {
                    let some = match part {
                        0 => bits,
                        part => self.b.ins().ushr_imm_u(bits, (per * part) as i64),
                    };
                    self.operation(Intrinsic::MasksOfBits, &[some], words)
                })
                .collect();
        }
        let all = self.b.ins().splat(self.length.by(I32), bits);
        (0..count)
            .map(|part| {
                let lanes = self.vector_of_each(Class::B32, |lane| 1 << (part * per + lane));
                let own = self.b.ins().band(all, lanes);
                self.b.ins().icmp(IntCC::Equal, own, lanes)
            })
            .collect()
    }

    /// Returns whether an instruction writes a register that waiting threads need.
    pub(super) fn is_divided(&self, instruction: &Instruction) -> bool {
        let Some(kept) = self.kept_by_waiting() else { return false };
        let mut found = false;
        instruction.for_each_definition(&mut |slot| found |= kept.contains(slot));
        found
    }

    /// Returns the registers that waiting threads need while the current block runs.
    pub(super) fn kept_by_waiting(&self) -> Option<&SlotSet> {
        let running = self.running.as_ref()?;
        self.plan.divergence.kept(running.block)
    }

    /// Returns whether waiting threads need a register while the current block runs.
    pub(super) fn is_kept(&self, slot: Slot) -> bool {
        self.kept_by_waiting().is_some_and(|kept| kept.contains(slot))
    }

    /// Returns a guard restricted to the running threads.
    pub(super) fn guard_of_running(&mut self, guard: Option<Val>) -> Option<Val> {
        let Some(Running { masks, .. }) = self.running.clone() else { return guard };
        let Some(guard) = guard else { return Some(Val::Many(masks.to_vec())) };
        let own = self.vectors(&guard, Class::Pred);
        Some(Val::Many(
            own.iter().zip(masks.iter()).map(|(&own, &mask)| self.b.ins().band(own, mask)).collect(),
        ))
    }

    /// Returns whether all threads can reach a block together after they have diverged.
    pub(super) fn rejoins(&self, index: usize) -> bool {
        let (flow, divergence) = (self.plan.flow, self.plan.divergence);
        let is_table = |before: usize| {
            matches!(flow.instruction(flow.blocks[before].range.end - 1).op, Op::BranchTable(_))
        };
        let before = index.checked_sub(1).filter(|&before| flow.follows(index) && !is_table(before));
        // Threads that come from only one block, with no thread waiting here, cannot be all
        // threads: else they would not have diverged.
        before.is_none_or(|before| divergence.waiting(before).is_some_and(|waiting| waiting.contains(index)))
    }

    /// Emits the code that visits a block after divergence.
    pub(super) fn meet(&mut self, index: usize) {
        let Some(meeting) = self.apart.meetings[index] else { return };
        let (flow, divergence) = (self.plan.flow, self.plan.divergence);
        let region = self.plan.regions.of_block(index);
        self.visit(region, self.groups[region]);
        self.b.switch_to_block(meeting);
        if !flow.loops.iter().any(|&(head, _)| head == flow.blocks[index].range.start) {
            self.b.seal_block(meeting);
        }
        self.forget_constants();
        let Some(waiting) = divergence.waiting(index) else { return };
        let Some(bits) = self.waiting_at(index) else { return self.defect("threads that wait nowhere") };
        let zero = self.b.ins().iconst(I32, 0);
        let Some(next) = waiting.first() else {
            // No thread is elsewhere.
            self.set_waiting_at(index, zero);
            self.b.ins().jump(self.blocks[index], &[]);
            return;
        };
        let some = self.b.create_block();
        let next = self.meeting_at(next);
        self.b.ins().brif(bits, some, &[], next, &[]);
        self.go_on_in(some);
        let zero = self.b.ins().iconst(I32, 0);
        self.set_waiting_at(index, zero);
        if self.rejoins(index) {
            let not_all = self.b.create_block();
            let all = i64::from(self.all_bits() as i32);
            let all = self.b.ins().icmp_imm_s(IntCC::Equal, bits, all);
            self.b.ins().brif(all, self.blocks[index], &[], not_all, &[]);
            self.go_on_in(not_all);
        }
        let masks = Rc::new(self.masks_of(bits));
        // Threads that come here only from the whole group, at the end of the block before, go to
        // addresses that it has checked.
        let from_group = flow.follows(index) && index > 0 && self.apart.meetings[index - 1].is_none();
        let known = if from_group { self.facts_before.of_addresses() } else { Facts::default() };
        let facts = std::mem::take(&mut self.facts_before);
        let ends = self.ends_of(bits);
        self.running = Some(Running { masks, bits, ends, block: index });
        self.forget_all();
        self.facts = known;
        self.write_instructions(index);
        self.write_exits();
        self.running = None;
        self.facts_before = facts;
    }

    /// Returns the code that visits a place after divergence: a block, or the end.
    fn meeting_at(&mut self, place: usize) -> Block {
        if place < self.apart.meetings.len() {
            return match self.apart.meetings[place] {
                Some(block) => block,
                None => {
                    self.defect("a block that threads are not expected at");
                    self.next
                }
            };
        }
        let region = self.region;
        if let Some(block) = self.apart.ends[region] {
            return block;
        }
        let block = self.b.create_block();
        *self.apart.ends[region].insert(block)
    }

    /// Records threads at the places they go to from the current block, and visits the first place
    /// that can have threads.
    pub(super) fn go_apart(&mut self, ways: &[(usize, Value)]) {
        let divergence = self.plan.divergence;
        let block = self.running.as_ref().map(|running| running.block);
        let waiting = block.and_then(|block| divergence.waiting(block));
        let mut noted = Vec::new();
        for &(place, bits) in ways {
            let may_wait = waiting.is_some_and(|waiting| waiting.contains(place)) || noted.contains(&place);
            let bits = match may_wait.then(|| self.waiting_at(place)).flatten() {
                Some(others) => self.b.ins().bor(bits, others),
                None => bits,
            };
            self.set_waiting_at(place, bits);
            noted.push(place);
        }
        let at = divergence.behind(block, &noted);
        let Some(first) = at.first() else { return self.defect("threads that go nowhere") };
        let meeting = self.meeting_at(first);
        let back =
            self.plan.flow.blocks.get(first).map(|block| block.range.start).filter(|&pc| pc <= self.pc);
        let Some(pc) = back else {
            self.b.ins().jump(meeting, &[]);
            return;
        };
        // Some targets lead back, so the number of passes must be bounded.
        let over = self.b.create_block();
        self.b.set_cold_block(over);
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, -1);
        self.b.def_var(self.fuel, fuel);
        self.b.ins().brif(fuel, meeting, &[], over, &[]);
        self.go_on_in(over);
        let waits = self.plan.flow.loops.iter().any(|&(head, waits)| head == pc && waits);
        if !waits {
            let cancelled = self.is_cancelled();
            let (stop, again) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(cancelled, stop, &[], again, &[]);
            self.go_on_in(again);
            let fuel = self.b.ins().iconst(I32, FUEL);
            self.b.def_var(self.fuel, fuel);
            self.b.ins().jump(meeting, &[]);
            self.go_on_in(stop);
        }
        let mut live = SlotSet::new(self.plan.noncanonical_nan.len() as u32);
        for place in at.iter().filter(|&place| place < divergence.end()) {
            live.union(&self.plan.flow.blocks[place].live_in);
        }
        let held = self.held(live.iter());
        let places = at.iter().collect::<Vec<usize>>();
        self.leave_apart(&held, None, &places);
    }

    /// Returns the bits of threads that exited before the current block, or `None` if none can
    /// have.
    pub(super) fn exited_lanes(&mut self) -> Option<Value> {
        let end = self.plan.divergence.end();
        let block = self.running.as_ref()?.block;
        let waiting = self.plan.divergence.waiting(block)?;
        waiting.contains(end).then(|| self.waiting_at(end)).flatten()
    }

    /// Returns where waiting threads continue, and which words hold them.
    pub(super) fn waiting_lanes(&self, places: &[usize]) -> Vec<WaitingLanes> {
        let flow = self.plan.flow;
        let of = |&place: &usize| {
            let at = match flow.blocks.get(place).map(|block| block.range.start) {
                None => EXITED,
                Some(pc) if flow.is_interpreted_alone(pc) => pc | INTERPRET,
                Some(pc) => pc | SINGLE,
            };
            WaitingLanes { word: place as u32, place: at }
        };
        places.iter().map(of).collect()
    }

    /// Returns where threads can wait while the current block runs.
    pub(super) fn places_waited_at(&self) -> Vec<usize> {
        let block = self.running.as_ref().map(|running| running.block);
        let waiting = block.and_then(|block| self.plan.divergence.waiting(block));
        waiting.into_iter().flat_map(crate::analysis::divergence::BlockSet::iter).collect()
    }

    /// Returns the words of waiting threads.
    pub(super) fn words(&mut self) -> Value {
        match self.apart.words {
            Some(words) => self.b.ins().stack_addr(I64, words, 0),
            None => {
                self.defect("threads that wait nowhere");
                self.machine
            }
        }
    }

    /// Emits the end of a block that some threads run.
    pub(super) fn terminator_of_some(&mut self, instruction: &Instruction) {
        let Some(Running { bits, masks, .. }) = self.running.clone() else { return };
        let taken = match &instruction.op {
            Op::Branch { target } => Way::To(*target),
            Op::BranchTable(table) => {
                let index = self.get(table.index, Class::B32);
                let guard = self.guard(instruction.guard);
                if let (Val::One(index), None | Some(Val::One(_))) = (&index, &guard) {
                    return self.branch_table_together(table, *index, guard.as_ref(), bits);
                }
                if !self.branch_table_of_some(table, &index, guard.as_ref(), bits) {
                    let exit = self.exit_here(false);
                    self.b.ins().jump(exit, &[]);
                }
                return;
            }
            _ => Way::Exit,
        };
        let (Some(taken), Some(behind)) =
            (self.place_on(taken), self.place_on(Way::To(self.pc + 1)).or(Some(0)))
        else {
            return self.defect("a branch into a block");
        };
        match self.guard(instruction.guard) {
            None => self.go_apart(&[(taken, bits)]),
            Some(Val::One(condition) | Val::Affine(condition, _)) => {
                let (all, none) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(condition, all, &[], none, &[]);
                self.go_on_in(all);
                self.go_apart(&[(taken, bits)]);
                self.go_on_in(none);
                self.go_apart(&[(behind, bits)]);
            }
            Some(guard) => {
                let own = self.vectors(&guard, Class::Pred);
                let both: Vec<Value> =
                    own.iter().zip(masks.iter()).map(|(&own, &mask)| self.b.ins().band(own, mask)).collect();
                let go = self.bits_of(&both);
                let stay = self.b.ins().bxor(bits, go);
                self.go_apart(&[(taken, go), (behind, stay)]);
            }
        }
    }

    /// Emits a branch table that some threads take together.
    fn branch_table_together(&mut self, table: &BranchTable, index: Value, guard: Option<&Val>, bits: Value) {
        let behind = self.plan.flow.block_at(self.pc + 1);
        if let (Some(Val::One(condition)), Some(behind)) = (guard, behind) {
            let (then, otherwise) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(*condition, then, &[], otherwise, &[]);
            self.go_on_in(otherwise);
            self.go_apart(&[(behind, bits)]);
            self.go_on_in(then);
        }
        let places: Option<Vec<usize>> =
            table.targets.iter().map(|&target| self.plan.flow.block_at(target)).collect();
        let Some(places) = places.filter(|places| !places.is_empty()) else {
            return self.defect("a branch into a block");
        };
        let blocks: Vec<Block> = places.iter().map(|_| self.b.create_block()).collect();
        self.branch_by(index, &blocks);
        for (place, block) in places.into_iter().zip(blocks) {
            self.go_on_in(block);
            self.go_apart(&[(place, bits)]);
        }
    }

    /// Emits a branch table that some threads take to different targets. Returns `false` if that is
    /// left to the interpreter.
    pub(super) fn branch_table_of_some(
        &mut self,
        table: &BranchTable,
        index: &Val,
        guard: Option<&Val>,
        bits: Value,
    ) -> bool {
        let places: Option<Vec<usize>> =
            table.targets.iter().map(|&target| self.plan.flow.block_at(target)).collect();
        let (Some(places), Some(behind)) = (places, self.plan.flow.block_at(self.pc + 1).or(Some(0))) else {
            return false;
        };
        let mut all = places.clone();
        all.extend(guard.map(|_| behind));
        let block = self.running.as_ref().map(|running| running.block);
        let first = self.plan.divergence.behind(block, &all).first();
        let fits = places.len() <= MOST_TARGETS && first.is_some_and(|first| self.is_met(first));
        let Some((&last, others)) = places.split_last().filter(|_| fits) else { return false };
        let mut rest = bits;
        let mut ways = Vec::new();
        if let Some(guard) = guard {
            let masks = self.vectors(guard, Class::Pred);
            let go = self.bits_of(&masks);
            let go = self.b.ins().band(bits, go);
            ways.push((behind, self.b.ins().bxor(bits, go)));
            rest = go;
        }
        let values = self.vectors(index, Class::B32);
        for (number, &place) in (0..).zip(others) {
            let number = self.vector_of(number, Class::B32);
            let masks: Vec<Value> =
                values.iter().map(|&value| self.b.ins().icmp(IntCC::Equal, value, number)).collect();
            let here = self.bits_of(&masks);
            let here = self.b.ins().band(here, rest);
            rest = self.b.ins().bxor(rest, here);
            ways.push((place, here));
        }
        // An index past the end takes the last target.
        ways.push((last, rest));
        self.go_apart(&ways);
        true
    }

    /// Emits the blocks for when all threads of a diverged group have exited.
    pub(super) fn write_ends(&mut self) {
        for region in 0..self.apart.ends.len() {
            let Some(block) = self.apart.ends[region] else { continue };
            self.visit(region, self.groups[region]);
            self.go_on_in(block);
            let zero = self.b.ins().iconst(I32, 0);
            self.set_waiting_at(self.plan.divergence.end(), zero);
            self.leave_exited();
        }
    }
}
