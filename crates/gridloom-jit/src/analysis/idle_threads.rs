//! Finds threads that have nothing to do between two barriers.
//!
//! A tree reduction in shared memory halves the working threads from one barrier to the next: `if
//! (t < 32) …` with a barrier before and after. The index of a thread alone tells that it skips the
//! branch. So whole groups of such threads need not be visited: they are at the next barrier at
//! once, with the registers they kept at the one before.

use crate::analysis::flow::{Flow, Role};
use crate::analysis::region::Regions;
use crate::analysis::rematerialization::Rematerialization;
use crate::emit::integer_condition;
use crate::native::{Class, Kind, Native};
use crate::spill_frame::{FrameLayout, Kept};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use gridloom_interp::code::{Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::{Dim, DimSpecial, SpecialReg};

/// The value that the index of a thread is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Constant(u32),
    /// The invariant definition at an instruction, which is the same in the whole block.
    Definition(Pc),
}

/// The threads that go directly from one barrier to the next or to the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleThreads {
    /// The comparison of `%tid.x` with the bound for threads that *do* work.
    pub(crate) works: IntCC,
    pub(crate) bound: Bound,
    /// The barrier that the idle threads reach, by number, or `None` for the end.
    pub(crate) barrier: Option<usize>,
}

/// Returns for each barrier that groups pass which threads are idle after it.
pub(crate) fn of(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    invariants: &Rematerialization,
    layout: &FrameLayout,
    regions: &Regions,
    entries: &[Pc],
) -> Vec<Option<IdleThreads>> {
    let of_barrier = (entries.len()..).zip(layout.barriers()).map(|(number, barrier)| {
        // A region with a second entry may have work for the same threads in another round.
        let region = regions.list.iter().find(|region| region.entries.contains(&(number as u32)))?;
        let is_here = |&entry: &u32| {
            entry as usize == number || entries.get(entry as usize).is_some_and(|&pc| pc == barrier + 1)
        };
        let alone = region.entries.iter().all(is_here);
        if alone { behind(flow, natives, invariants, layout, barrier) } else { None }
    });
    of_barrier.collect()
}

/// Returns which threads are idle after a barrier, if their index tells it.
fn behind(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    invariants: &Rematerialization,
    layout: &FrameLayout,
    barrier: Pc,
) -> Option<IdleThreads> {
    let (_, kept) = layout.at(barrier)?;
    let index = flow.block_at(barrier + 1)?;
    let block = &flow.blocks[index];
    let last = block.range.end - 1;
    let branch = flow.instruction(last);
    let guard = branch.guard?;
    if flow.role(last) != Role::Terminator || !block.range.clone().all(|pc| pc == last || is_quiet(flow, pc))
    {
        return None;
    }
    let inside = (block.range.start..last).rev().find(|&pc| defines(flow, pc, guard.slot));
    let definition = inside.or_else(|| invariants.at_block(index, guard.slot))?;
    let (holds, bound) = comparison(flow, natives, invariants, definition)?;
    let holds = if guard.negated { holds.complement() } else { holds };
    let taken = match &branch.op {
        Op::Branch { target } => Some(*target),
        Op::Exit | Op::Return => None,
        _ => return None,
    };
    // Either the threads that take the branch are idle, or the others.
    let ways = [(taken, holds.complement()), (Some(block.range.end), holds)];
    ways.into_iter().find_map(|(target, works)| {
        let barrier = arrival(flow, layout, target, (index, kept))?;
        (works != IntCC::NotEqual).then_some(IdleThreads { works, bound, barrier })
    })
}

/// Returns whether an instruction only affects registers, in every thread.
fn is_quiet(flow: &Flow<'_>, pc: Pc) -> bool {
    matches!(flow.instruction(pc).op, Op::Map(_) | Op::Special { .. } | Op::Nothing)
        && flow.role(pc) == Role::Compiled
}

fn defines(flow: &Flow<'_>, pc: Pc, slot: Slot) -> bool {
    let mut found = false;
    flow.instruction(pc).for_each_definition(&mut |defined| found |= defined == slot);
    found
}

/// Returns the comparison of `%tid.x` with a bound, if an invariant definition is one.
fn comparison(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    invariants: &Rematerialization,
    definition: Pc,
) -> Option<(IntCC, Bound)> {
    let (_, reads) = invariants.order.iter().find(|(pc, _)| *pc == definition)?;
    let Op::Map(map) = &flow.instruction(definition).op else { return None };
    let native = natives[(definition - flow.range.start) as usize].as_ref()?;
    let Kind::Compare { compare, signed, combine: None, .. } = native.kind else { return None };
    if native.operands[0] != Class::B32 {
        return None;
    }
    let condition = integer_condition(compare, signed)?;
    let read = |slot: Slot| reads.iter().find(|(read, _)| *read == slot).map(|&(_, pc)| pc);
    let is_index = |source: Source| match source {
        Source::Slot(slot) => read(slot).is_some_and(|pc| is_thread_index(flow, invariants, natives, pc)),
        Source::Constant(_) => false,
    };
    let bound = |source: Source| match source {
        Source::Constant(index) => Some(Bound::Constant(flow.code.constants[index as usize][0] as u32)),
        Source::Slot(slot) => {
            let narrow = flow.code.functions[flow.function].type_of(slot).bits() == 32;
            read(slot).filter(|&pc| narrow && invariants.is_of_block(pc)).map(Bound::Definition)
        }
    };
    match *map.sources() {
        [index, other] if is_index(index) => Some((condition, bound(other)?)),
        [other, index] if is_index(index) => Some((condition.swap_args(), bound(other)?)),
        _ => None,
    }
}

/// Returns whether an invariant definition is `%tid.x` or a copy of it.
fn is_thread_index(
    flow: &Flow<'_>,
    invariants: &Rematerialization,
    natives: &[Option<Native>],
    mut definition: Pc,
) -> bool {
    // The bound ends the loop even if the definitions were cyclic by mistake.
    for _ in 0..invariants.order.len() {
        match &flow.instruction(definition).op {
            Op::Special { destination, register: SpecialReg::Dim(DimSpecial::Tid, Dim::X) } => {
                return flow.code.functions[flow.function].type_of(*destination).bits() == 32;
            }
            Op::Map(_) => {
                let native = natives[(definition - flow.range.start) as usize].as_ref();
                let is_copy =
                    native.is_some_and(|native| native.kind == Kind::Copy && native.result == Class::B32);
                let order = invariants.order.iter().find(|(pc, _)| *pc == definition);
                match order.map(|(_, reads)| &reads[..]) {
                    Some([(_, source)]) if is_copy => definition = *source,
                    _ => return false,
                }
            }
            _ => return false,
        }
    }
    false
}

/// Returns the barrier that threads reach from an instruction without doing anything, or `None` if
/// they reach the end. The registers they keep there must be ones that they kept at the barrier
/// before that block.
fn arrival(
    flow: &Flow<'_>,
    layout: &FrameLayout,
    target: Option<Pc>,
    (before, kept): (usize, &[Kept]),
) -> Option<Option<usize>> {
    let Some(target) = target else { return Some(None) };
    let block = &flow.blocks[flow.block_at(target)?];
    let last = block.range.end - 1;
    if !block.range.clone().all(|pc| pc == last || is_quiet(flow, pc)) {
        return None;
    }
    if let Op::Exit | Op::Return = flow.instruction(last).op {
        let ends = flow.instruction(last).guard.is_none() && flow.role(last) == Role::Terminator;
        return ends.then_some(None);
    }
    let (barrier, needed) = layout.at(last)?;
    let changes = |slot: Slot| {
        let mut range = flow.blocks[before].range.clone().chain(block.range.clone());
        range.any(|pc| defines(flow, pc, slot))
    };
    let same = |needed: &Kept| {
        kept.iter().any(|kept| kept.slot == needed.slot && kept.offset == needed.offset)
            && !changes(needed.slot)
    };
    needed.iter().all(same).then_some(Some(barrier))
}
