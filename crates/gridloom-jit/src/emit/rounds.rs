//! The loops around the code of a group: over the blocks of a call, over the rounds between
//! barriers, and over the groups.
//!
//! ```text
//! for each block:
//!   round, from an entry:
//!     for each group of threads that has something to do: run it to its next suspension
//!   if all groups are at one barrier: another round, from behind it
//!   if all have exited: the next block
//!   otherwise return: others go on with the threads, from where each is noted to be
//! ```
//!
//! Each region has its own loop over the groups. Code for single threads has one round.

mod idle_threads;

use super::Emitter;
use crate::analysis::region::Region;
use crate::runtime;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    self, Block, InstBuilder, JumpTableData, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type,
    Value,
};
use cranelift_frontend::Variable;
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{EXITED, INTERPRET, KEPT, Machine};
use std::collections::HashMap;
use std::mem::offset_of;

/// The backward branches that a group takes before it lets others run or checks for cancellation.
pub(super) const FUEL: i64 = 1 << 14;

/// The barriers that the threads of a block pass before others may run.
const ROUNDS: i64 = 1 << 12;

/// In [`Cell::Left`]: a group has left. The code then returns at the end of the round.
const LEFT: i64 = 1;
/// In [`Cell::Left`]: some threads of the block are outside this call, so no barrier can be passed
/// in it.
const STAYS: i64 = 2;

/// The state of a round over all groups.
pub(super) struct Round {
    /// The places that groups have reached, in regions with more than one exit: the bits that some
    /// place has, and the bits that all have. A place is the entry after a barrier, or all ones at
    /// the end.
    some: Variable,
    all: Variable,
    /// Words of the call that are kept in memory, because they would occupy registers.
    cells: StackSlot,
    /// The starts of groups, limited to the threads of the block.
    bounds: Vec<((i64, Value), Value)>,
    /// Whether there are barriers and each is passed once, so that regions follow each other and
    /// their loops are short. Values that are the same in a whole block, or in all blocks, are then
    /// kept in memory. Otherwise they would be live through all regions and be spilled and reloaded
    /// in each group.
    pub(super) forward: bool,
    /// The values that a block shares, if they are in memory.
    pub(super) shared: HashMap<Value, (StackSlot, Type)>,
}

/// A word of the call that is read between rounds.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// [`LEFT`] once others must continue a group, and [`STAYS`] before that if no barrier may be
    /// passed.
    Left,
    /// The number of groups that diverged.
    Parted,
    /// The number of rounds left.
    Rounds,
    /// The number of blocks that have ended.
    Ended,
    /// Whether shared memory is cleared for each block.
    Clears,
    /// The index of the block in the grid, on one axis.
    Index(usize),
    /// The first thread, and one past the last.
    First,
    Last,
}

impl Cell {
    const COUNT: u32 = 10;

    fn offset(self) -> i32 {
        4 * match self {
            Cell::Left => 0,
            Cell::Parted => 1,
            Cell::Rounds => 2,
            Cell::Ended => 3,
            Cell::Index(axis) => 4 + axis as i32,
            Cell::First => 7,
            Cell::Last => 8,
            Cell::Clears => 9,
        }
    }
}

impl Round {
    pub(super) fn declare(b: &mut cranelift_frontend::FunctionBuilder<'_>) -> Self {
        let [some, all] = [0; 2].map(|_| b.declare_var(I32));
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * Cell::COUNT, 2);
        Self {
            some,
            all,
            cells: b.create_sized_stack_slot(data),
            bounds: Vec::new(),
            forward: false,
            shared: HashMap::new(),
        }
    }
}

/// The loop over the groups of one region.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    /// The first thread of the group, and its position in its block.
    thread: Value,
    position: [Option<Value>; 3],
    /// The block that ends a group.
    next: Block,
}

/// The blocks that connect the loops.
struct Meeting {
    /// The start of a round from each entry.
    rounds: Vec<Block>,
    /// All threads of a block have exited.
    exited: Block,
    /// Returns to the caller.
    give_back: Block,
    first: Value,
    last: Value,
    /// The position of the first thread.
    start: [Option<Value>; 3],
    /// Whether the block is one row of threads.
    one_row: Value,
}

impl Emitter<'_> {
    /// Emits the loops and the entries.
    pub(super) fn loops(&mut self, [entry, first, last]: [Value; 3]) {
        let zero = self.b.ins().iconst(I32, 0);
        self.put(Cell::Parted, zero);
        self.put(Cell::Ended, zero);
        self.round.forward = self.is_forward();
        self.put(Cell::First, first);
        self.put(Cell::Last, last);
        let whole = self.machine_field(offset_of!(Machine, whole), I32);
        let stays = self.b.ins().iconst(I32, STAYS);
        let left = self.b.ins().select(whole, zero, stays);
        self.put(Cell::Left, left);
        let dimensions = self.dimensions();
        let position = self.start_position(first, dimensions);
        let [y, z] = [1, 2].map(|i| self.machine_field(offset_of!(Machine, block) + 4 * i, I32));
        let rows = self.b.ins().imul(y, z);
        let one_row = self.b.ins().icmp_imm_u(IntCC::Equal, rows, 1);
        let clears = self.clears(one_row);
        self.put(Cell::Clears, clears);
        let (one, many) = (self.b.ins().iconst(I32, 1), self.b.ins().iconst(I32, ROUNDS));
        let rounds = self.b.ins().select(whole, many, one);
        let start = [0, 1, 2].map(|i| self.machine_field(offset_of!(Machine, index) + 4 * i, I32));
        let block = self.b.create_block();
        for (axis, value) in start.into_iter().enumerate() {
            self.put(Cell::Index(axis), value);
        }
        self.b.ins().jump(block, &[]);
        self.b.switch_to_block(block);
        self.block_start = Some(block);
        self.index = [0, 1, 2].map(|axis| self.word(Cell::Index(axis)));
        self.put(Cell::Rounds, rounds);
        self.compute_for_block();
        let entries = self.plan.entries.len() + self.plan.frame_layout.barriers().count();
        let meeting = Meeting {
            rounds: (0..entries).map(|_| self.b.create_block()).collect(),
            exited: self.b.create_block(),
            give_back: self.b.create_block(),
            first,
            last,
            start: position,
            one_row,
        };
        let ways: Vec<Block> = meeting.rounds[..self.plan.entries.len()].to_vec();
        self.jump_by(entry, &ways);

        self.groups =
            (0..self.plan.regions.list.len()).map(|region| self.region_loop(region, &meeting)).collect();

        self.b.switch_to_block(meeting.exited);
        self.next_block(&meeting, block);
        self.b.switch_to_block(meeting.give_back);
        let (parted, ended) = (self.word(Cell::Parted), self.word(Cell::Ended));
        let parted = self.b.ins().uextend(I64, parted);
        let parted = self.b.ins().ishl_imm_u(parted, 32);
        let ended = self.b.ins().uextend(I64, ended);
        let outcome = self.b.ins().bor(parted, ended);
        self.b.ins().return_(&[outcome]);
    }

    /// Returns whether each barrier is passed once.
    fn is_forward(&self) -> bool {
        let ends =
            |region: usize| self.plan.regions.list[region].arrivals.iter().all(|&place| place == EXITED);
        self.lanes > 1
            && self.plan.frame_layout.barriers().next().is_some()
            && (0..self.plan.regions.list.len())
                .all(|region| ends(region) || self.leads_onward(region).is_some())
    }

    /// Returns the first thread of the call, and one past the last.
    fn all_threads(&mut self, meeting: &Meeting) -> (Value, Value) {
        if self.round.forward {
            (self.word(Cell::First), self.word(Cell::Last))
        } else {
            (meeting.first, meeting.last)
        }
    }

    /// Returns the current value of a word of the call.
    fn word(&mut self, cell: Cell) -> Value {
        self.b.ins().stack_load(I64, I32, self.round.cells, cell.offset())
    }

    fn put(&mut self, cell: Cell, value: Value) {
        self.b.ins().stack_store(I64, value, self.round.cells, cell.offset());
    }

    /// Returns a field of the machine that is rarely needed, loaded here.
    pub(super) fn rare_field(&mut self, offset: usize, ty: Type) -> Value {
        self.b.ins().load(ty, MemFlagsData::trusted().with_readonly(), self.machine, offset as i32)
    }

    /// Branches to one of several blocks by index.
    fn jump_by(&mut self, number: Value, blocks: &[Block]) {
        if let [only] = blocks {
            self.b.ins().jump(*only, &[]);
            return;
        }
        let calls: Vec<ir::BlockCall> =
            blocks.iter().map(|&block| self.b.func.dfg.block_call(block, &[])).collect();
        // A separate one, because argument lists of block calls must not be shared.
        let default = self.b.func.dfg.block_call(blocks[0], &[]);
        let table = self.b.create_jump_table(JumpTableData::new(default, &calls));
        self.b.ins().br_table(number, table);
    }

    /// Continues with the next block after all threads of one have exited, if this call must run
    /// it.
    fn next_block(&mut self, meeting: &Meeting, block: Block) {
        let ended = self.word(Cell::Ended);
        let ended = self.b.ins().iadd_imm_u(ended, 1);
        self.put(Cell::Ended, ended);
        let blocks = self.rare_field(offset_of!(Machine, blocks), I32);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, ended, blocks);
        let next = self.b.create_block();
        self.b.ins().brif(more, next, &[], meeting.give_back, &[]);
        self.b.switch_to_block(next);
        let (clear, go_on) = (self.b.create_block(), self.b.create_block());
        let advanced = self.b.create_block();
        // Advances the first axis, and each further axis only if those before it are at their ends.
        for axis in 0..3 {
            let at = self.word(Cell::Index(axis));
            let at = self.b.ins().iadd_imm_u(at, 1);
            self.put(Cell::Index(axis), at);
            let extent = self.rare_field(offset_of!(Machine, grid) + 4 * axis, I32);
            let within = self.b.ins().icmp(IntCC::UnsignedLessThan, at, extent);
            let over = self.b.create_block();
            self.b.set_cold_block(over);
            self.b.ins().brif(within, advanced, &[], over, &[]);
            self.b.switch_to_block(over);
            let zero = self.b.ins().iconst(I32, 0);
            self.put(Cell::Index(axis), zero);
        }
        self.b.ins().jump(advanced, &[]);
        self.b.switch_to_block(advanced);
        let clears = self.word(Cell::Clears);
        self.b.ins().brif(clears, clear, &[], go_on, &[]);
        self.b.switch_to_block(clear);
        self.call(runtime::clear_shared as *const () as usize, &[self.machine], None);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.ins().jump(block, &[]);
    }

    /// Emits the loop over the groups of one region, from the starts of its rounds to what follows
    /// them.
    fn region_loop(&mut self, region: usize, meeting: &Meeting) -> Groups {
        let regions = self.plan.regions;
        let entries = &regions.list[region].entries;
        let (start, head) = (self.b.create_block(), self.b.create_block());
        let (over, next) = (self.b.create_block(), self.b.create_block());
        // The entry, and the threads to visit.
        let [entry, from, to, x] = [0; 4].map(|_| self.b.append_block_param(start, I32));
        for &number in entries {
            self.b.switch_to_block(meeting.rounds[number as usize]);
            self.start_round(number, start, meeting);
        }
        self.b.switch_to_block(start);
        let thread = self.b.append_block_param(head, I32);
        let mut arguments = vec![from.into()];
        let mut position = [None; 3];
        for (i, at) in meeting.start.iter().enumerate() {
            if let Some(at) = at {
                position[i] = Some(self.b.append_block_param(head, I32));
                arguments.push(if i == 0 { x.into() } else { (*at).into() });
            }
        }
        // The last thread that a group can start with. There may be none.
        let lanes = i64::from(self.lanes);
        let last = self.b.ins().iadd_imm_s(to, -lanes);
        let any = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, from, last);
        self.b.ins().brif(any, head, &arguments, over, &[]);
        let groups = Groups { thread, position, next };
        self.visit(region, groups);

        self.b.switch_to_block(next);
        let end = self.b.ins().iadd_imm_u(thread, lanes);
        let mut arguments = vec![end.into()];
        arguments.extend(self.next_position().into_iter().map(ir::BlockArg::from));
        let more = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, end, last);
        self.b.ins().brif(more, head, &arguments, over, &[]);

        self.b.switch_to_block(over);
        self.end_of_round(region, [from, last], meeting);

        self.b.switch_to_block(head);
        self.forget_constants();
        let fuel = self.b.ins().iconst(I32, FUEL);
        self.b.def_var(self.fuel, fuel);
        self.ways_in(entries, entry);
        groups
    }

    /// Continues with code of a region.
    pub(super) fn visit(&mut self, region: usize, groups: Groups) {
        self.region = region;
        (self.thread, self.position, self.next) = (groups.thread, groups.position, groups.next);
    }

    /// Starts a round from an entry: selects the threads to visit.
    fn start_round(&mut self, number: u32, start: Block, meeting: &Meeting) {
        let zero = self.b.ins().iconst(I32, 0);
        let ones = self.b.ins().iconst(I32, i64::from(u32::MAX));
        let (first, last) = self.all_threads(meeting);
        let (mut from, mut to) = (first, last);
        let mut x = meeting.start[0].unwrap_or(zero);
        let (mut some, mut all) = (zero, ones);
        if let Some(idle) = self.idle_behind(number) {
            let bounds = self.threads_that_work(idle, meeting);
            from = if bounds.0 == meeting.first { first } else { bounds.0 };
            to = if bounds.1 == meeting.last { last } else { bounds.1 };
            // A block passes barriers as a whole, so the first thread is 0.
            x = from;
            let place = self.place_of(idle);
            let place = self.b.ins().iconst(I32, i64::from(place));
            let (before, behind) = (
                self.b.ins().icmp(IntCC::NotEqual, from, first),
                self.b.ins().icmp(IntCC::NotEqual, to, last),
            );
            let any = self.b.ins().bor(before, behind);
            some = self.b.ins().select(any, place, zero);
            all = self.b.ins().select(any, place, ones);
        }
        self.b.def_var(self.round.some, some);
        self.b.def_var(self.round.all, all);
        let number = self.b.ins().iconst(I32, i64::from(number));
        self.b.ins().jump(start, &[number.into(), from.into(), to.into(), x.into()]);
    }

    /// Ends a round: continues with another round or block, or returns to the caller.
    fn end_of_round(&mut self, region: usize, [from, last_start]: [Value; 2], meeting: &Meeting) {
        if self.lanes == 1 {
            self.b.ins().jump(meeting.give_back, &[]);
            return;
        }
        let (together, leave) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(leave);
        let regions = self.plan.regions;
        let onward = self.leads_onward(region);
        let mut left = self.word(Cell::Left);
        if onward.is_none() {
            left = self.b.ins().band_imm_u(left, LEFT);
        }
        self.b.ins().brif(left, leave, &[], together, &[]);
        self.b.switch_to_block(together);
        match regions.list[region].arrivals[..] {
            [] => {
                self.b.ins().jump(leave, &[]);
            }
            [_] if let Some(place) = onward => {
                self.b.ins().jump(meeting.rounds[place as usize], &[]);
            }
            [only] => self.go_to(only, leave, meeting),
            ref several => {
                let (some, all) = (self.b.use_var(self.round.some), self.b.use_var(self.round.all));
                let same = self.b.ins().icmp(IntCC::Equal, some, all);
                let mut test = self.b.create_block();
                self.b.ins().brif(same, test, &[], leave, &[]);
                for &place in several {
                    self.b.switch_to_block(test);
                    let (there, other) = (self.b.create_block(), self.b.create_block());
                    let is_there = self.b.ins().icmp_imm_s(IntCC::Equal, some, i64::from(place as i32));
                    self.b.ins().brif(is_there, there, &[], other, &[]);
                    self.b.switch_to_block(there);
                    self.go_to(place, leave, meeting);
                    test = other;
                }
                self.b.switch_to_block(test);
                self.b.ins().jump(leave, &[]);
            }
        }
        self.b.switch_to_block(leave);
        let Region { entries, arrivals } = &regions.list[region];
        // Only a region after one barrier has idle threads.
        let idle = entries.iter().find_map(|&entry| self.idle_behind(entry));
        let (first, last) = self.all_threads(meeting);
        match (&arrivals[..], idle) {
            _ if self.plan.frame_layout.barriers().next().is_none() => {}
            (&[only], _) => self.note_place_of(only, [first, last], runtime::note_arrived),
            (_, Some(idle)) => {
                let place = self.place_of(idle);
                let to = self.b.ins().iadd_imm_s(last_start, i64::from(self.lanes));
                for threads in [[first, from], [to, last]] {
                    self.note_place_of(place, threads, runtime::note_idle);
                }
            }
            _ => {}
        }
        self.b.ins().jump(meeting.give_back, &[]);
    }

    /// Returns the only exit of a region, if that is a barrier after the whole region. Such
    /// barriers are passed a limited number of times, so they are not counted.
    fn leads_onward(&self, region: usize) -> Option<u32> {
        let Region { entries, arrivals } = &self.plan.regions.list[region];
        let pc = |place: u32| match (place as usize).checked_sub(self.plan.entries.len()) {
            Some(barrier) => self.plan.frame_layout.barriers().nth(barrier),
            None => self.plan.entries.get(place as usize).copied(),
        };
        let [only] = arrivals[..] else { return None };
        let end = pc(only).filter(|_| only as usize >= self.plan.entries.len() && only != EXITED)?;
        entries.iter().all(|&entry| pc(entry).is_some_and(|start| start < end)).then_some(only)
    }

    /// Records that groups of threads in a range have reached a place.
    fn note_place_of(&mut self, place: u32, [from, to]: [Value; 2], note: runtime::Note) {
        let barrier = (place as usize).checked_sub(self.plan.entries.len());
        let place = match barrier.and_then(|barrier| self.plan.frame_layout.barriers().nth(barrier)) {
            Some(pc) => pc | INTERPRET | KEPT,
            None => EXITED,
        };
        let field = offset_of!(Machine, pcs);
        let pcs =
            if self.round.forward { self.rare_field(field, I64) } else { self.machine_field(field, I64) };
        let arguments = [
            pcs,
            from,
            to,
            self.b.ins().iconst(I32, i64::from(self.lanes)),
            self.b.ins().iconst(I32, i64::from(place)),
        ];
        self.call(note as *const () as usize, &arguments, None);
    }

    /// Continues all groups from a place that they have reached together.
    fn go_to(&mut self, place: u32, leave: Block, meeting: &Meeting) {
        if place == EXITED {
            self.b.ins().jump(meeting.exited, &[]);
            return;
        }
        let rounds = self.word(Cell::Rounds);
        let rounds = self.b.ins().iadd_imm_s(rounds, -1);
        self.put(Cell::Rounds, rounds);
        self.b.ins().brif(rounds, meeting.rounds[place as usize], &[], leave, &[]);
    }

    /// Goes to where the code is entered: one of the entries, or after a barrier that the groups
    /// have passed.
    fn ways_in(&mut self, numbers: &[u32], entry: Value) {
        let barriers: Vec<Pc> = self.plan.frame_layout.barriers().collect();
        let stubs: Vec<Block> = numbers.iter().map(|_| self.b.create_block()).collect();
        match (numbers, &stubs[..]) {
            (_, &[only]) => {
                self.b.ins().jump(only, &[]);
            }
            // One entry after a barrier and one from the caller: a comparison suffices instead of a
            // table.
            (&[number, barrier], &[other, passed]) => {
                if self.round.forward && number > 0 && barrier as usize >= self.plan.entries.len() {
                    self.b.set_cold_block(other);
                }
                let is_passed = self.b.ins().icmp_imm_u(IntCC::Equal, entry, i64::from(barrier));
                self.b.ins().brif(is_passed, passed, &[], other, &[]);
            }
            _ => {
                // Nearly all threads start at the first entry.
                let others = self.b.create_block();
                if self.lanes == 1 {
                    self.b.set_cold_block(others);
                    stubs[1..].iter().for_each(|&stub| self.b.set_cold_block(stub));
                }
                let is_first = self.b.ins().icmp_imm_u(IntCC::Equal, entry, i64::from(numbers[0]));
                self.b.ins().brif(is_first, stubs[0], &[], others, &[]);
                self.go_on_in(others);
                let most = numbers.iter().max().map_or(0, |&most| most as usize);
                let mut table = vec![stubs[0]; most + 1];
                numbers.iter().zip(&stubs).for_each(|(&number, &stub)| table[number as usize] = stub);
                self.jump_by(entry, &table);
            }
        }
        let (mut entered, mut passed) = (Vec::new(), Vec::new());
        for (&number, stub) in numbers.iter().zip(stubs) {
            match self.plan.entries.get(number as usize) {
                Some(&pc) => entered.push((pc, stub)),
                None => passed.push((barriers[number as usize - self.plan.entries.len()], stub)),
            }
        }
        for (pc, stub) in entered {
            self.go_on_in(stub);
            match passed.iter().find(|&&(barrier, _)| barrier + 1 == pc) {
                Some(&(_, passed)) => {
                    self.b.set_cold_block(stub);
                    self.enter_passed(pc, passed);
                }
                None => self.enter(pc),
            }
        }
        for (barrier, stub) in passed {
            self.go_on_in(stub);
            self.pass(barrier);
        }
    }

    /// Counts a group that has reached a place where all may continue together, and records it. It
    /// is not recorded if there is only one such place.
    pub(super) fn arrive(&mut self, place: u32, at: u32) {
        if self.plan.regions.list[self.region].arrivals.len() < 2 {
            self.b.ins().jump(self.next, &[]);
            return;
        }
        let place = self.b.ins().iconst(I32, i64::from(place));
        let (some, all) = (self.b.use_var(self.round.some), self.b.use_var(self.round.all));
        let (some, all) = (self.b.ins().bor(some, place), self.b.ins().band(all, place));
        self.b.def_var(self.round.some, some);
        self.b.def_var(self.round.all, all);
        self.note_group(at);
    }

    /// Leaves a group whose threads have all exited.
    pub(super) fn leave_exited(&mut self) {
        if self.lanes == 1 || self.plan.frame_layout.barriers().next().is_none() {
            // The table already says so, since before the call.
            self.b.ins().jump(self.next, &[]);
            return;
        }
        self.arrive(EXITED, EXITED);
    }

    /// Records that others continue the group.
    pub(super) fn note_left(&mut self) {
        let left = self.b.ins().iconst(I32, LEFT);
        self.put(Cell::Left, left);
    }

    /// Counts a group that diverged.
    pub(super) fn note_parted(&mut self) {
        let parted = self.word(Cell::Parted);
        let parted = self.b.ins().iadd_imm_u(parted, 1);
        self.put(Cell::Parted, parted);
    }
}
