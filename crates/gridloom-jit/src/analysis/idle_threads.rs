//! Threads that have nothing to do between two barriers.
//!
//! A tree in shared memory halves the threads that work from one barrier to the next: `if (t < 32) …` with a barrier before and behind. Which
//! threads pass by is told by their index alone, so whole groups of them need not be visited: they are at the next barrier as soon as they
//! are behind the one before, with the registers that they kept there.

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

/// What the index of a thread is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Constant(u32),
    /// The invariant definition at an instruction, which is the same in the whole block.
    Definition(Pc),
}

/// Threads that go from a barrier to a place straight away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleThreads {
    /// Of `%tid.x` with the bound, where a thread does *not* pass by.
    pub(crate) works: IntCC,
    pub(crate) bound: Bound,
    /// Where the others come to: the number of the barrier, or none at the end.
    pub(crate) barrier: Option<usize>,
}

/// For each barrier that groups pass, which threads are idle behind it.
pub(crate) fn of(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    invariants: &Rematerialization,
    layout: &FrameLayout,
    regions: &Regions,
    entries: &[Pc],
) -> Vec<Option<IdleThreads>> {
    let of_barrier = (entries.len()..).zip(layout.barriers()).map(|(number, barrier)| {
        // Where a region is entered elsewhere too, what is idle in one round works in another.
        let region = regions.list.iter().find(|region| region.entries.contains(&(number as u32)))?;
        let is_here = |&entry: &u32| {
            entry as usize == number || entries.get(entry as usize).is_some_and(|&pc| pc == barrier + 1)
        };
        let alone = region.entries.iter().all(is_here);
        if alone { behind(flow, natives, invariants, layout, barrier) } else { None }
    });
    of_barrier.collect()
}

/// Which threads are idle behind a barrier, if that is told by their index.
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
    // Those that take the branch are idle, or those that do not.
    let ways = [(taken, holds.complement()), (Some(block.range.end), holds)];
    ways.into_iter().find_map(|(target, works)| {
        let barrier = arrival(flow, layout, target, (index, kept))?;
        (works != IntCC::NotEqual).then_some(IdleThreads { works, bound, barrier })
    })
}

/// Whether an instruction has no effect but on registers, in whatever thread it is executed.
fn is_quiet(flow: &Flow<'_>, pc: Pc) -> bool {
    matches!(flow.instruction(pc).op, Op::Map(_) | Op::Special { .. } | Op::Nothing)
        && flow.role(pc) == Role::Compiled
}

fn defines(flow: &Flow<'_>, pc: Pc, slot: Slot) -> bool {
    let mut found = false;
    flow.instruction(pc).for_each_definition(&mut |defined| found |= defined == slot);
    found
}

/// The comparison of `%tid.x` with a bound that an invariant definition makes.
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

/// Whether an invariant definition is `%tid.x`, or a copy of it.
fn is_thread_index(
    flow: &Flow<'_>,
    invariants: &Rematerialization,
    natives: &[Option<Native>],
    mut definition: Pc,
) -> bool {
    // A definition reads others only, but for defects.
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

/// The barrier that threads come to from an instruction on without doing anything, or none if they come to their end so; if they
/// keep nothing there that they have not kept at the barrier before the block of that index.
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
