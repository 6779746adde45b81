//! Registers of groups between barriers.
//!
//! Where all threads of a block come to a barrier, their groups go on behind it, in the same code: what they still need is kept as it is held,
//! a uniform or affine register as one word and vectors as they are, in a frame of the group's. Only where the interpreter is to
//! go on with a thread is that put into the slots where it looks ([`Layout::expand`]).

use crate::flow::{Flow, Role, SlotSet};
use crate::invariant::Invariants;
use crate::native::Class;
use crate::shape::{Shape, Shapes};
use gridloom_interp::code::Pc;
use gridloom_interp::lanes::Slot;

/// Where a register is kept in the frame of a group, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) slot: Slot,
    pub(crate) offset: u32,
    shape: Shape,
    class: Class,
    /// Whether it may hold a NaN that is not the canonical one.
    lazy: bool,
}

/// The frames of a function's groups.
pub(crate) struct Layout {
    /// Bytes of a frame, a multiple of 16.
    pub(crate) bytes: u32,
    lanes: u32,
    /// For each barrier that groups pass together, in rising order, what is kept there.
    barriers: Vec<(Pc, Vec<Kept>)>,
}

/// Whether all threads of a block can pass a barrier inside compiled code.
pub(crate) fn is_passed(flow: &Flow<'_>, pc: Pc) -> bool {
    flow.is_kernel
        && flow.instruction(pc).is_plain_barrier(flow.code)
        && pc + 1 < flow.range.end
        && flow.role(pc + 1) != Role::Interpreted
}

impl Layout {
    /// Of a function whose barriers nobody passes inside.
    pub(crate) fn none() -> Self {
        Self { bytes: 0, lanes: 1, barriers: Vec::new() }
    }

    pub(crate) fn of(
        flow: &Flow<'_>,
        (shapes, invariants): (&Shapes, &Invariants),
        (storage, lazy): (&[Class], &[bool]),
        lanes: u32,
    ) -> Self {
        let mut offsets: Vec<Option<u32>> = vec![None; storage.len()];
        let mut bytes = 0;
        let mut barriers = Vec::new();
        for block in &flow.blocks {
            let pc = block.range.end - 1;
            if !is_passed(flow, pc) {
                continue;
            }
            let mut kept = Vec::new();
            for slot in passed_by(flow, invariants, pc).iter() {
                let index = slot.0 as usize;
                let (shape, class) = (shapes.get(slot), storage[index]);
                let offset = *offsets[index].get_or_insert_with(|| {
                    let offset = bytes;
                    bytes += match shape {
                        Shape::Varying => lanes * class.bits().max(32) / 8,
                        _ => 16,
                    };
                    offset
                });
                kept.push(Kept { slot, offset, shape, class, lazy: lazy[index] });
            }
            barriers.push((pc, kept));
        }
        Self { bytes, lanes, barriers }
    }

    /// The barriers that groups pass together.
    pub(crate) fn barriers(&self) -> impl Iterator<Item = Pc> + '_ {
        self.barriers.iter().map(|&(pc, _)| pc)
    }

    /// The number of a barrier among them, and what is kept at it.
    pub(crate) fn at(&self, pc: Pc) -> Option<(usize, &[Kept])> {
        let index = self.barriers.binary_search_by_key(&pc, |&(pc, _)| pc).ok()?;
        Some((index, &self.barriers[index].1))
    }

    /// Puts what a group keeps at a barrier into the slots of its threads.
    ///
    /// # Safety
    /// `frame` is the frame of a group that has come to the barrier, and `registers` the first slot in its first lane.
    pub(crate) unsafe fn expand(&self, pc: Pc, frame: *const u8, registers: *mut u64) {
        let Some((_, kept)) = self.at(pc) else { return };
        for kept in kept {
            for lane in 0..self.lanes as usize {
                // SAFETY: the layout has room for all lanes of the register; slots have 32 lanes each.
                unsafe {
                    let at = frame.add(kept.offset as usize);
                    let value = kept.value(at, lane);
                    *registers.add(kept.slot.0 as usize * 32 + lane) = value;
                }
            }
        }
    }
}

impl Kept {
    /// Its value in a lane, as a slot holds it.
    ///
    /// # Safety
    /// `at` is where the register is kept.
    unsafe fn value(&self, at: *const u8, lane: usize) -> u64 {
        // SAFETY: the caller's promise; as many elements are there as the layout has lanes.
        let bits = unsafe {
            match self.shape {
                Shape::Varying if self.class.bits() == 64 => *at.cast::<u64>().add(lane),
                Shape::Varying => u64::from(*at.cast::<u32>().add(lane)),
                Shape::Uniform => *at.cast::<u64>(),
                Shape::Affine(step) => {
                    (*at.cast::<u64>()).wrapping_add_signed(step.wrapping_mul(lane as i64))
                }
            }
        };
        match self.class {
            Class::Pred => u64::from(bits as u32 != 0),
            class if class.bits() == 64 => bits,
            _ => {
                let bits = bits as u32;
                let nan = bits & 0x7fff_ffff > 0x7f80_0000;
                u64::from(if self.lazy && nan { 0x7fff_ffff } else { bits })
            }
        }
    }
}

/// What must be kept at a barrier that groups pass.
fn passed_by(flow: &Flow<'_>, invariants: &Invariants, pc: Pc) -> SlotSet {
    let block = flow.blocks.partition_point(|block| block.range.end <= pc);
    invariants.kept(flow, pc, &flow.blocks[block].live_out)
}
