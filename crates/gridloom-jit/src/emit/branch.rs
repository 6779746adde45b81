//! Branches that all threads of a group take together, branches at which they diverge, and short
//! blocks that only some of them run.

use super::rounds::FUEL;
use super::value::Val;
use super::{Emitter, SINGLE};
use crate::analysis::flow::{Role, SlotSet};
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{self, Block, InstBuilder, JumpTableData, MemFlagsData, Value};
use cranelift_frontend::Variable;
use gridloom_interp::CANCEL_FLAGS;
use gridloom_interp::code::{Base, Instruction, Op, Pc};
use gridloom_interp::compiled::{EXITED, INTERPRET, Machine, YIELDED};
use std::mem::offset_of;
use std::ops::Range;

/// The most instructions of a block that some threads run while the others wait, and the most
/// accesses among them, which are made thread by thread.
const SHORT: usize = 20;
const FEW: usize = 4;

/// The target of a branch.
#[derive(Clone, Copy)]
pub(super) enum Way {
    To(Pc),
    Exit,
}

/// The threads of a group that run a short block while the others wait at its end.
#[derive(Clone)]
pub(super) struct Party {
    /// The masks of those threads.
    masks: Vec<Value>,
    /// Whether they are all threads that the code is emitted for now. Those may be fewer than the
    /// group has.
    all: bool,
    /// Those threads, if they are known at compile time.
    known: Option<Range<u32>>,
    /// The instruction at which the others wait.
    end: Pc,
    /// The block to go to if an instruction cannot be executed: the threads diverge there, before
    /// the short block.
    pub(super) given_up: Block,
    /// Whether the current instruction must be executed in these threads only.
    guards: bool,
    /// Whether the current instruction must leave the other threads' registers unchanged: it has a
    /// guard, or writes a register that is read after the short block.
    selects: bool,
}

impl Party {
    /// Returns the threads that run the short block, if they are known at compile time.
    pub(super) fn known(&self) -> Option<Range<u32>> {
        self.known.clone()
    }

    /// Returns which threads go the way, as masks, unless all do.
    pub(super) fn masks(&self) -> Option<&[Value]> {
        (!self.all).then_some(&self.masks)
    }

    /// Returns whether the other threads must keep the value of a register.
    pub(super) fn selects(&self) -> bool {
        self.selects
    }
}

impl Emitter<'_> {
    /// Returns the state recorded for a thread that takes a branch by itself.
    fn note(&self, way: Way) -> u32 {
        match way {
            Way::Exit => EXITED,
            Way::To(pc) if self.plan.flow.is_interpreted_alone(pc) => pc | INTERPRET,
            Way::To(pc) => pc | SINGLE,
        }
    }

    fn kept_on(&self, way: Way) -> Option<SlotSet> {
        let Way::To(pc) = way else { return None };
        let index = self.plan.flow.block_at(pc)?;
        Some(self.plan.rematerialization.kept(self.plan.flow, pc, &self.plan.flow.blocks[index].live_in))
    }

    pub(super) fn terminator(&mut self, instruction: &Instruction) {
        if self.running.is_some() {
            return self.terminator_of_some(instruction);
        }
        let behind = Way::To(self.pc + 1);
        let taken = match &instruction.op {
            Op::Branch { target } => Way::To(*target),
            Op::BranchTable(table) => return self.branch_table(instruction, table),
            _ => Way::Exit,
        };
        if let Some(guard) = instruction.guard
            && let Some(predicate) = self.predicate(guard)
        {
            let ways = [self.way(taken), self.way(behind)];
            let differs = self.sort_out_by_ends(&predicate, ways);
            let mut evaluate = |emitter: &mut Self| emitter.evaluate_predicate(&predicate);
            if differs
                && let Some((index, end)) = self.short_way(taken)
                && let Some(first) = self.first_threads(&predicate)
            {
                return self.go_short_way_first((index, end), (taken, behind), first, &mut evaluate);
            }
            let masks = evaluate(self);
            return self.branch_apart(taken, behind, &masks, (!differs).then_some(ways));
        }
        match self.guard(instruction.guard) {
            None => {
                let target = self.way(taken);
                self.b.ins().jump(target, &[]);
            }
            Some(Val::One(condition) | Val::Affine(condition, _)) => {
                let (taken, behind) = (self.way(taken), self.way(behind));
                self.b.ins().brif(condition, taken, &[], behind, &[]);
            }
            Some(guard) => {
                let ways = [self.way(taken), self.way(behind)];
                let masks = self.vectors(&guard, Class::Pred);
                self.branch_apart(taken, behind, &masks, Some(ways));
            }
        }
    }

    /// Emits a branch at which threads may diverge, given the mask of those that take it. `ways`
    /// are the blocks for all threads and for none, unless it is known that neither happens.
    fn branch_apart(&mut self, taken: Way, behind: Way, masks: &[Value], ways: Option<[Block; 2]>) {
        if let Some(ways) = ways {
            let apart = self.b.create_block();
            self.b.set_cold_block(apart);
            self.sort_out(masks, ways, apart);
            self.go_on_in(apart);
        }
        match self.short_way(taken) {
            Some((index, end)) => {
                let others = masks.iter().map(|&mask| self.b.ins().bnot(mask)).collect();
                let given_up = self.b.create_block();
                let held = self.hold(&self.live_on_both(taken, behind));
                let party = Party {
                    masks: others,
                    all: false,
                    known: None,
                    end,
                    given_up,
                    guards: true,
                    selects: true,
                };
                self.go_short_way(index, party);
                self.give_up(given_up, held);
                self.part(masks, taken, behind);
            }
            None => self.part(masks, taken, behind),
        }
    }

    /// Runs a short block with some of the first threads of a group, in as few vectors as they
    /// need. The others take the branch, as `evaluate` tells for the threads that code is emitted
    /// for.
    fn go_short_way_first(
        &mut self,
        (index, end): (usize, Pc),
        (taken, behind): (Way, Way),
        (threads, every): (u32, bool),
        evaluate: &mut dyn FnMut(&mut Self) -> Vec<Value>,
    ) {
        let lanes = self.lanes;
        let whole = self.per_vector(Class::B32) as u32;
        let fits = |&few: &u32| threads <= few && few < lanes && few >= whole;
        self.lanes = [4, 8, 16].into_iter().find(fits).unwrap_or(lanes);
        let all = every && threads == self.lanes;
        let known = if every { 0..threads } else { threads - 1..threads };
        let masks = if all { Vec::new() } else { self.mask_of(&known) };
        let given_up = self.b.create_block();
        let held = self.hold(&self.live_on_both(taken, behind));
        let party = Party { masks, all, known: Some(known), end, given_up, guards: true, selects: true };
        self.go_short_way(index, party);
        self.lanes = lanes;
        self.give_up(given_up, held);
        let masks = evaluate(self);
        self.part(&masks, taken, behind);
    }

    /// Returns the mask of some threads.
    fn mask_of(&mut self, threads: &Range<u32>) -> Vec<Value> {
        let per = self.per_vector(Class::B32);
        (0..self.lanes as usize / per)
            .map(|part| {
                let holds = |lane: usize| threads.contains(&((part * per + lane) as u32));
                self.vector_of_each(Class::B32, |lane| if holds(lane) { u32::MAX.into() } else { 0 })
            })
            .collect()
    }

    /// Continues where a short block was abandoned, with registers as they were before it.
    fn give_up(&mut self, given_up: Block, held: Vec<(Variable, Value)>) {
        self.go_on_in(given_up);
        self.b.set_cold_block(given_up);
        for (variable, value) in held {
            self.b.def_var(variable, value);
        }
    }

    /// Returns the current values of some registers.
    pub(super) fn hold(&mut self, slots: &SlotSet) -> Vec<(Variable, Value)> {
        let variables: Vec<Variable> =
            slots.iter().flat_map(|slot| self.variables[slot.0 as usize].clone()).collect();
        variables.into_iter().map(|variable| (variable, self.b.use_var(variable))).collect()
    }

    /// Returns the registers that are live at either of two targets.
    fn live_on_both(&self, taken: Way, behind: Way) -> SlotSet {
        let mut live = self.live.clone();
        live.clear();
        for way in [taken, behind] {
            if let Way::To(pc) = way
                && let Some(index) = self.plan.flow.block_at(pc)
            {
                live.union(&self.plan.flow.blocks[index].live_in);
            }
        }
        live
    }

    /// Returns the registers that are kept at either of two targets.
    fn kept_on_both(&self, taken: Way, behind: Way) -> SlotSet {
        let mut kept = self.live.clone();
        kept.clear();
        for way in [taken, behind] {
            if let Some(more) = self.kept_on(way) {
                kept.union(&more);
            }
        }
        kept
    }

    /// Branches to where all threads go, to where none goes, or to where they diverge.
    fn sort_out(&mut self, masks: &[Value], [all_go, none_goes]: [Block; 2], apart: Block) {
        let test = self.b.create_block();
        let all = self.all_true(masks);
        self.b.ins().brif(all, all_go, &[], test, &[]);
        self.go_on_in(test);
        let any = self.any_true(masks);
        self.b.ins().brif(any, apart, &[], none_goes, &[]);
    }

    /// Returns the short block that a branch skips and its end, if some threads can run it while
    /// the others wait after it.
    fn short_way(&self, taken: Way) -> Option<(usize, Pc)> {
        let flow = self.plan.flow;
        let Way::To(end) = taken else { return None };
        let index = flow.block_at(self.pc + 1)?;
        let block = &flow.blocks[index];
        if block.range.end != end || block.range.len() > SHORT {
            return None;
        }
        let mut accesses = 0;
        for pc in block.range.clone() {
            let place = match &flow.instruction(pc).op {
                Op::Load(load) => &load.operand,
                Op::Store(store) => &store.operand,
                Op::Atomic(atomic) => &atomic.operand,
                // The threads of a warp meet in it, and must not be split between groups.
                Op::Collective(_) | Op::ActiveMask { .. } => return None,
                _ => continue,
            };
            let in_order = match place.base {
                Base::Source(source) => self.plan.uniformity.source(source) != Shape::Varying,
                Base::Frame => false,
            };
            accesses += 1;
            let writes = !matches!(flow.instruction(pc).op, Op::Load(_));
            // Nothing has an effect before the last instruction, so that the short block can be
            // abandoned.
            if !in_order || accesses > FEW || writes && pc + 1 != end {
                return None;
            }
        }
        let after = &flow.blocks[flow.block_at(end)?].live_in;
        for pc in block.range.clone() {
            if flow.role(pc) != Role::Compiled {
                return None;
            }
            let (mut seen, mut varying) = (false, true);
            flow.instruction(pc).for_each_definition(&mut |slot| {
                seen |= after.contains(slot);
                varying &= self.plan.uniformity.get(slot) == Shape::Varying;
            });
            // A register that is read afterwards must be able to differ between running and waiting
            // threads.
            let one = matches!(&flow.instruction(pc).op, Op::Load(load) if load.destinations.len() > 1);
            let fits = (!one || varying) && (!seen || varying && !self.plan.rematerialization.contains(pc));
            if !fits {
                return None;
            }
        }
        Some((index, end))
    }

    /// Runs a short block with some of the threads.
    fn go_short_way(&mut self, index: usize, mut party: Party) {
        let flow = self.plan.flow;
        let block = &flow.blocks[index];
        let (branch, before, end) = (self.pc, self.live.clone(), party.end);
        let Some(target) = flow.block_at(end) else { return self.defect("a branch into a block") };
        let after = &flow.blocks[target].live_in;
        self.side_exits.masks_held.clear();
        for (pc, live) in block.range.clone().zip(flow.live_before(block)) {
            let instruction = flow.instruction(pc);
            let mut seen = false;
            instruction.for_each_definition(&mut |slot| seen |= after.contains(slot));
            party.guards = match &instruction.op {
                Op::Store(_) | Op::Atomic(_) => true,
                // If the address is the same for all, one of the threads makes the access.
                Op::Load(load) => {
                    load.destinations.iter().any(|&slot| self.plan.uniformity.get(slot) == Shape::Varying)
                }
                _ => seen,
            };
            party.selects = seen || instruction.guard.is_some();
            self.party = Some(party.clone());
            (self.pc, self.live) = (pc, live);
            self.instruction(instruction);
        }
        self.party = None;
        (self.pc, self.live) = (branch, before);
        self.b.ins().jump(self.blocks[target], &[]);
    }

    /// Returns the guard of an instruction in a short block: its own guard, in the running threads.
    pub(super) fn guard_on_short_way(&mut self, guard: Option<Val>) -> Option<Val> {
        let Some(Party { masks, all: false, guards: true, .. }) = self.party.clone() else { return guard };
        let Some(guard) = guard else { return Some(Val::Many(masks)) };
        let own = self.vectors(&guard, Class::Pred);
        let both = own.iter().zip(&masks).map(|(&own, &mask)| self.b.ins().band(own, mask)).collect();
        Some(Val::Many(both))
    }

    /// Records for each thread of the group which side of the branch it takes.
    fn part(&mut self, masks: &[Value], taken: Way, behind: Way) {
        if let (Some(taken), Some(behind)) = (self.place_on(taken), self.place_on(behind))
            && self
                .plan
                .divergence
                .behind(None, &[taken, behind])
                .first()
                .is_some_and(|first| self.is_met(first))
        {
            let go = self.bits_of(masks);
            let all = self.all_bits();
            let stay = self.b.ins().bxor_imm_u(go, all);
            return self.go_apart(&[(taken, go), (behind, stay)]);
        }
        let live = self.kept_on_both(taken, behind);
        self.note_parted();
        let places = [self.note(taken), self.note(behind)];
        let held = self.held(live.iter());
        self.leave_parted(&held, masks, places);
    }

    /// Returns a block that leads to a target. It is emitted after the current one.
    fn way(&mut self, way: Way) -> Block {
        match way {
            Way::To(pc) if pc > self.pc => match self.plan.flow.block_at(pc) {
                Some(index) => self.blocks[index],
                None => {
                    self.defect("a branch into a block");
                    self.next
                }
            },
            way => {
                let block = self.b.create_block();
                self.ways.push((block, way));
                block
            }
        }
    }

    /// Emits the blocks that lead to other blocks. Groups whose turn is over leave at backward
    /// branches.
    pub(super) fn write_ways(&mut self) {
        for (block, way) in std::mem::take(&mut self.ways) {
            self.go_on_in(block);
            match way {
                Way::Exit => self.leave_exited(),
                Way::To(pc) => self.go_back(pc),
            }
        }
    }

    /// Returns the truth of the launch having been cancelled, by a fault or by the user.
    pub(super) fn is_cancelled(&mut self) -> Value {
        let flags = MemFlagsData::trusted();
        let mut cancelled = self.b.ins().iconst(I8, 0);
        for flag in 0..CANCEL_FLAGS {
            let offset = offset_of!(Machine, cancel) + flag * size_of::<*const u8>();
            let flag = self.b.ins().load(I64, flags, self.machine, offset as i32);
            let flag = self.b.ins().load(I8, flags, flag, 0);
            cancelled = self.b.ins().bor(cancelled, flag);
        }
        cancelled
    }

    pub(super) fn go_back(&mut self, pc: Pc) {
        let Some(index) = self.plan.flow.block_at(pc) else {
            return self.defect("a branch into a block");
        };
        let target = self.blocks[index];
        let waits = self.plan.flow.loops.iter().any(|&(head, waits)| head == pc && waits);
        let over = self.b.create_block();
        self.b.set_cold_block(over);
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, -1);
        self.b.def_var(self.fuel, fuel);
        self.b.ins().brif(fuel, target, &[], over, &[]);
        self.go_on_in(over);
        if !waits {
            // The loop ends by itself, so only cancellation is checked.
            let cancelled = self.is_cancelled();
            let (stop, again) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(cancelled, stop, &[], again, &[]);
            self.go_on_in(again);
            let fuel = self.b.ins().iconst(I32, FUEL);
            self.b.def_var(self.fuel, fuel);
            self.b.ins().jump(target, &[]);
            self.go_on_in(stop);
        }
        let kept = self.kept_on(Way::To(pc));
        let held = self.held(kept.iter().flat_map(SlotSet::iter));
        self.leave_together(&held, pc | YIELDED);
    }

    fn branch_table(&mut self, instruction: &Instruction, table: &gridloom_interp::code::BranchTable) {
        let index = self.get(table.index, Class::B32);
        let guard = self.guard(instruction.guard);
        let (Val::One(index), None | Some(Val::One(_))) = (index.clone(), &guard) else {
            let all = self.all_bits();
            let all = self.b.ins().iconst(I32, all);
            if self.branch_table_of_some(table, &index, guard.as_ref(), all) {
                return;
            }
            // The interpreter handles threads that take many different targets.
            let exit = self.exit_here(false);
            self.b.ins().jump(exit, &[]);
            return;
        };
        if let Some(Val::One(condition)) = guard {
            let (then, behind) = (self.b.create_block(), self.way(Way::To(self.pc + 1)));
            self.b.ins().brif(condition, then, &[], behind, &[]);
            self.go_on_in(then);
        }
        let targets: Vec<Block> = table.targets.iter().map(|&target| self.way(Way::To(target))).collect();
        self.branch_by(index, &targets);
    }

    /// Branches to one of several blocks by index. An index past the end takes the last.
    pub(super) fn branch_by(&mut self, index: Value, targets: &[Block]) {
        let calls: Vec<ir::BlockCall> =
            targets.iter().map(|&target| self.b.func.dfg.block_call(target, &[])).collect();
        let Some(&last) = targets.last() else { return self.defect("a branch table without targets") };
        let last = self.b.func.dfg.block_call(last, &[]);
        let table = self.b.create_jump_table(JumpTableData::new(last, &calls));
        self.b.ins().br_table(index, table);
    }
}
