//! The loops around the code of a group: over the blocks of a call, over the rounds between barriers, over the groups.
//!
//! ```text
//! for each block:
//!   round, from an entry:
//!     for each group of threads: run it to its next suspension
//!   if all groups are at one barrier: another round, from behind it
//!   if all have exited: the next block
//!   otherwise return: others go on with the threads, from where each is noted to be
//! ```
//!
//! The code for single threads is that of one round.

use super::Emitter;
use super::value::per_vector;
use crate::kept::Kept;
use crate::native::Class;
use crate::runtime;
use crate::shape::Shape;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, Block, InstBuilder, JumpTableData, MemFlagsData, Value};
use cranelift_frontend::Variable;
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{EXITED, INTERPRET, KEPT, Machine};
use std::mem::offset_of;

/// Backward branches that a group takes before it lets others run, or asks whether the launch is cancelled.
pub(super) const FUEL: i64 = 1 << 14;

/// Barriers that the threads of a block pass before others are let run.
const ROUNDS: i64 = 1 << 12;

/// What is counted over the groups of a round.
pub(super) struct Round {
    /// All the places that groups have come to, as bits that some has and bits that all have. A place is the entry behind a barrier, or
    /// all ones at the end.
    some: Variable,
    all: Variable,
    /// Not 0 once a group is to be gone on with by others.
    left: Variable,
    /// Groups whose threads went different ways.
    pub(super) parted: Variable,
}

impl Round {
    pub(super) fn declare(b: &mut cranelift_frontend::FunctionBuilder<'_>) -> Self {
        let [some, all, left, parted] = [0; 4].map(|_| b.declare_var(I32));
        Self { some, all, left, parted }
    }
}

impl Emitter<'_> {
    /// Writes the loops, and the ways in.
    pub(super) fn loops(&mut self, [entry, first, last]: [Value; 3]) {
        let zero = self.b.ins().iconst(I32, 0);
        self.b.def_var(self.round.parted, zero);
        let passes = self.lanes > 1;
        let start = [0, 1, 2].map(|i| self.machine_field(offset_of!(Machine, index) + 4 * i, I32));
        let (block, round) = (self.b.create_block(), self.b.create_block());
        let mut arguments: Vec<ir::BlockArg> = start.iter().map(|&value| value.into()).collect();
        arguments.push(zero.into());
        self.b.ins().jump(block, &arguments);
        for index in &mut self.index {
            *index = self.b.append_block_param(block, I32);
        }
        let ended = self.b.append_block_param(block, I32);
        self.b.switch_to_block(block);
        self.compute_for_block();
        let rounds = self.b.ins().iconst(I32, ROUNDS);
        self.b.ins().jump(round, &[entry.into(), rounds.into()]);

        let entry_of_round = self.b.append_block_param(round, I32);
        let rounds = self.b.append_block_param(round, I32);
        self.b.switch_to_block(round);
        let zero = self.b.ins().iconst(I32, 0);
        self.b.def_var(self.round.some, zero);
        self.b.def_var(self.round.left, zero);
        let ones = self.b.ins().iconst(I32, i64::from(u32::MAX));
        self.b.def_var(self.round.all, ones);
        let over = self.groups(entry_of_round, first, last);

        self.b.switch_to_block(over);
        let give_back = self.b.create_block();
        if passes {
            self.end_of_round(give_back, [block, round], [ended, rounds]);
        } else {
            self.b.ins().jump(give_back, &[ended.into()]);
        }
        let ended = self.b.append_block_param(give_back, I32);
        self.b.switch_to_block(give_back);
        let parted = self.b.use_var(self.round.parted);
        let parted = self.b.ins().uextend(I64, parted);
        let parted = self.b.ins().ishl_imm_u(parted, 32);
        let ended = self.b.ins().uextend(I64, ended);
        let outcome = self.b.ins().bor(parted, ended);
        self.b.ins().return_(&[outcome]);
    }

    /// Another round, another block, or back to whoever has called.
    fn end_of_round(&mut self, give_back: Block, [block, round]: [Block; 2], [ended, rounds]: [Value; 2]) {
        let (together, exited) = (self.b.create_block(), self.b.create_block());
        let left = self.b.use_var(self.round.left);
        let some = self.b.use_var(self.round.some);
        if self.layout.barriers().next().is_none() {
            self.b.ins().brif(left, give_back, &[ended.into()], exited, &[]);
            self.b.switch_to_block(together);
            self.b.ins().jump(give_back, &[ended.into()]);
        } else {
            let all = self.b.use_var(self.round.all);
            let differs = self.b.ins().bxor(some, all);
            let other = self.b.ins().bor(differs, left);
            self.b.ins().brif(other, give_back, &[ended.into()], together, &[]);
            self.b.switch_to_block(together);
            let (waiting, allowed) = (self.b.create_block(), self.b.create_block());
            let is_exit = self.b.ins().icmp_imm_s(IntCC::Equal, some, -1);
            self.b.ins().brif(is_exit, exited, &[], waiting, &[]);
            self.b.switch_to_block(waiting);
            let whole = self.machine_field(offset_of!(Machine, whole), I32);
            let rounds = self.b.ins().iadd_imm_s(rounds, -1);
            let zero = self.b.ins().iconst(I32, 0);
            let rounds_left = self.b.ins().select(whole, rounds, zero);
            self.b.ins().brif(rounds_left, allowed, &[], give_back, &[ended.into()]);
            self.b.switch_to_block(allowed);
            self.b.ins().jump(round, &[some.into(), rounds.into()]);
        }
        self.b.switch_to_block(exited);
        let ended = self.b.ins().iadd_imm_u(ended, 1);
        let blocks = self.machine_field(offset_of!(Machine, blocks), I32);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, ended, blocks);
        let next = self.b.create_block();
        self.b.ins().brif(more, next, &[], give_back, &[ended.into()]);
        self.b.switch_to_block(next);
        let mut arguments = Vec::new();
        let mut carry = self.b.ins().iconst(I32, 1);
        for (i, at) in self.index.into_iter().enumerate() {
            let sum = self.b.ins().iadd(at, carry);
            let extent = self.machine_field(offset_of!(Machine, grid) + 4 * i, I32);
            let over = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, sum, extent);
            let zero = self.b.ins().iconst(I32, 0);
            arguments.push(ir::BlockArg::from(self.b.ins().select(over, zero, sum)));
            carry = self.b.ins().uextend(I32, over);
        }
        arguments.push(ended.into());
        let (clear, go_on) = (self.b.create_block(), self.b.create_block());
        let shared = self.machine_field(offset_of!(Machine, shared_length), I64);
        self.b.ins().brif(shared, clear, &[], go_on, &[]);
        self.b.switch_to_block(clear);
        self.call(runtime::clear_shared as *const () as usize, &[self.machine], None);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.ins().jump(block, &arguments);
    }

    /// The loop over groups. Returns the block behind it.
    fn groups(&mut self, entry: Value, first: Value, last: Value) -> Block {
        let dimensions = self.dimensions();
        let head = self.b.create_block();
        let (body, over) = (self.b.create_block(), self.b.create_block());
        let thread = self.b.append_block_param(head, I32);
        let start = self.start_position(first, dimensions);
        let mut arguments = vec![first.into()];
        for (i, start) in start.iter().enumerate() {
            if let Some(start) = start {
                self.position[i] = Some(self.b.append_block_param(head, I32));
                arguments.push((*start).into());
            }
        }
        self.b.ins().jump(head, &arguments);
        self.b.switch_to_block(head);
        self.thread = thread;
        let end = self.b.ins().iadd_imm_u(thread, i64::from(self.lanes));
        let more = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, last);
        self.b.ins().brif(more, body, &[], over, &[]);

        self.b.switch_to_block(self.next);
        let mut arguments = vec![end.into()];
        arguments.extend(self.next_position().into_iter().map(ir::BlockArg::from));
        self.b.ins().jump(head, &arguments);

        self.go_on_in(body);
        let fuel = self.b.ins().iconst(I32, FUEL);
        self.b.def_var(self.fuel, fuel);
        self.ways_in(entry);
        over
    }

    /// Goes where the code is entered: one of the entries, or behind a barrier that the groups have passed.
    fn ways_in(&mut self, entry: Value) {
        let layout = self.layout;
        let stubs: Vec<Block> = self.entries.iter().map(|_| self.b.create_block()).collect();
        let passed: Vec<(Block, Pc)> =
            layout.barriers().map(|barrier| (self.b.create_block(), barrier)).collect();
        let all: Vec<Block> = stubs.iter().copied().chain(passed.iter().map(|&(stub, _)| stub)).collect();
        match all[..] {
            [only] => {
                self.b.ins().jump(only, &[]);
            }
            _ => {
                let calls: Vec<ir::BlockCall> =
                    all.iter().map(|&stub| self.b.func.dfg.block_call(stub, &[])).collect();
                // One of its own: a call's arguments are a list that nobody else may hold.
                let default = self.b.func.dfg.block_call(all[0], &[]);
                let table = self.b.create_jump_table(JumpTableData::new(default, &calls));
                self.b.ins().br_table(entry, table);
            }
        }
        for (&pc, stub) in self.entries.iter().zip(stubs) {
            self.go_on_in(stub);
            self.enter(pc);
        }
        for (stub, barrier) in passed {
            self.go_on_in(stub);
            self.pass(barrier);
        }
    }

    /// The frame of the group.
    fn frame(&mut self) -> Value {
        let frames = self.machine_field(offset_of!(Machine, kept), I64);
        let thread = self.b.ins().uextend(I64, self.thread);
        let group = self.b.ins().ushr_imm_u(thread, i64::from(self.lanes.trailing_zeros()));
        let offset = self.b.ins().imul_imm_u(group, i64::from(self.layout.bytes));
        self.b.ins().iadd(frames, offset)
    }

    /// Leaves the group at a barrier that all may pass together.
    pub(super) fn wait(&mut self, number: usize, kept: &[Kept]) {
        let frame = self.frame();
        let flags = MemFlagsData::trusted();
        for kept in kept {
            let class = self.storage(kept.slot);
            let offset = kept.offset as i32;
            let variables = self.variables[kept.slot.0 as usize].clone();
            if self.shapes.get(kept.slot) == Shape::Varying {
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
        let place = (self.entries.len() + number) as u32;
        self.arrive(place);
        self.note_place(self.pc | INTERPRET | KEPT);
    }

    /// Goes on behind a barrier.
    fn pass(&mut self, barrier: Pc) {
        let (flow, layout) = (self.flow, self.layout);
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
            if self.shapes.get(kept.slot) == Shape::Varying {
                debug_assert_eq!(variables.len(), self.lanes as usize / per_vector(class));
                for (part, &variable) in variables.iter().enumerate() {
                    let ty = super::value::vector_type(class.untyped()).unwrap_or(I64);
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

    /// Counts a group that has come to a place where all may go on together.
    fn arrive(&mut self, place: u32) {
        if self.lanes == 1 {
            return;
        }
        let place = self.b.ins().iconst(I32, i64::from(place));
        let (some, all) = (self.b.use_var(self.round.some), self.b.use_var(self.round.all));
        let (some, all) = (self.b.ins().bor(some, place), self.b.ins().band(all, place));
        self.b.def_var(self.round.some, some);
        self.b.def_var(self.round.all, all);
    }

    /// Leaves the group, all of whose threads have exited.
    pub(super) fn leave_exited(&mut self) {
        if self.lanes > 1 && self.layout.barriers().next().is_none() {
            // That is where threads are noted to be before anything is run.
            self.b.ins().jump(self.next, &[]);
            return;
        }
        self.arrive(EXITED);
        self.note_place(EXITED);
    }

    /// Notes that others go on with the group.
    pub(super) fn note_left(&mut self) {
        let one = self.b.ins().iconst(I32, 1);
        self.b.def_var(self.round.left, one);
    }
}
