//! Finds registers that only single threads of a group need.
//!
//! Scattered elements are loaded and stored thread by thread. An index that was loaded so, the
//! address computed from it, and the value stored there need not be assembled into vectors in
//! between. This finds the registers that are used only so, in the block where they are written.

use crate::analysis::flow::Flow;
use crate::analysis::uniformity::{Shape, Uniformity};
use crate::native::{Class, Kind, Native};
use gridloom_interp::code::{AtomicKind, Base, Op};
use gridloom_interp::lanes::{Slot, Source};

/// Returns whether an instruction costs no more thread by thread than in vectors.
pub(crate) fn is_simple(native: &Native) -> bool {
    let is_word = |class: Class| matches!(class, Class::B32 | Class::B64);
    let kind = match native.kind {
        Kind::Copy
        | Kind::AddConstant(_)
        | Kind::Add
        | Kind::Sub
        | Kind::Mul
        | Kind::MadLow
        | Kind::MulWide { .. }
        | Kind::MadWide { .. }
        | Kind::Logic(_)
        | Kind::BitNot
        | Kind::Neg
        | Kind::ShiftLeft
        | Kind::ShiftRight { .. } => is_word(native.operands[0]),
        Kind::Extend { .. } => true,
        _ => false,
    };
    kind && is_word(native.result)
}

/// Returns for each slot whether it is such a register. `gathers` says whether vectors of words are
/// loaded and stored by gathers and scatters, which need their addresses in vectors.
pub(crate) fn registers(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    shapes: &Uniformity,
    storage: &[Class],
    gathers: bool,
) -> Vec<bool> {
    let fits = |slot: usize| {
        shapes.get(Slot(slot as u32)) == Shape::Varying && matches!(storage[slot], Class::B32 | Class::B64)
    };
    let mut is: Vec<bool> = (0..storage.len()).map(fits).collect();
    for block in &flow.blocks {
        block.live_in.iter().for_each(|slot| is[slot.0 as usize] = false);
    }
    for pc in flow.range.clone() {
        let instruction = flow.instruction(pc);
        let mut count = 0;
        instruction.for_each_definition(&mut |_| count += 1);
        if instruction.guard.is_some() || count > 1 && !matches!(instruction.op, Op::Load(_)) {
            instruction.for_each_definition(&mut |slot| is[slot.0 as usize] = false);
        }
    }
    // A value that is computed where it is needed must be needed only once.
    let mut uses = vec![0u32; storage.len()];
    for pc in flow.range.clone() {
        flow.instruction(pc).for_each_use(&mut |source| {
            if let Source::Slot(slot) = source {
                uses[slot.0 as usize] += 1;
            }
        });
    }
    is.iter_mut().zip(&uses).for_each(|(is, &uses)| *is &= uses == 1);
    let mut changed = true;
    while changed {
        changed = false;
        for pc in flow.range.clone() {
            let instruction = flow.instruction(pc);
            let varying =
                |base: Base| matches!(base, Base::Source(source) if shapes.source(source) == Shape::Varying);
            let native = natives[(pc - flow.range.start) as usize].as_ref();
            let alone = match &instruction.op {
                Op::Load(load) => varying(load.operand.base) && !gathers,
                Op::Store(store) => varying(store.operand.base) && !(gathers && store.size >= 4),
                Op::Atomic(atomic) => {
                    matches!(&atomic.kind, AtomicKind::Update { operands, .. } if operands.len() == 1)
                }
                Op::Map(map) => {
                    native.is_some_and(is_simple)
                        && matches!(map.destinations(), [slot] if is[slot.0 as usize])
                }
                _ => false,
            };
            if !alone {
                instruction.for_each_use(&mut |source| {
                    if let Source::Slot(slot) = source {
                        changed |= is[slot.0 as usize];
                        is[slot.0 as usize] = false;
                    }
                });
            }
        }
    }
    is
}
