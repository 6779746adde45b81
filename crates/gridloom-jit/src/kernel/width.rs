//! How many threads are run at once, and how long the rows of blocks are taken to be.

use super::{CompiledKernel, GROUPS};
use crate::analysis::flow::{Flow, SlotSet};
use crate::analysis::lanewise;
use crate::analysis::range::{self, Ranges, RowLength};
use crate::analysis::uniformity::{Shape, Uniformity};
use crate::emit;
use crate::native::{self, Native};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, MemoryOperand, Op};

/// Vectors that the registers in use at once should take at most.
const VECTORS: u32 = 16;

/// Accesses that may be made thread by thread in larger groups.
const FEW: usize = 2;

/// Instructions of a function that is too long to be looked at for several sizes of blocks.
const LONG: usize = 2048;

impl CompiledKernel {
    /// The most threads of a row with which as many accesses to shared memory as possible are inside it whatever they are given.
    pub(super) fn likely_row(&self, flow: &Flow<'_>, natives: &[Option<Native>], lanes: u32) -> u32 {
        let accesses = || flow.range.clone().filter_map(|pc| range::Access::of(flow, pc));
        let bytes = self.kernel.shared_bytes().into();
        let in_shared = |access: &range::Access<'_>| access.operand.space == Space::Shared;
        if bytes == 0 || flow.range.len() > LONG || !accesses().any(|access| in_shared(&access)) {
            return RowLength::MOST;
        }
        let mut best = (RowLength::MOST, 0);
        let mut row = RowLength::MOST;
        while row >= GROUPS[2] {
            let ranges = Ranges::of(flow, natives, RowLength { most: row, lanes });
            let inside =
                accesses().filter(|access| in_shared(access) && ranges.is_inside(access, bytes)).count();
            if inside > best.1 {
                best = (row, inside);
            }
            row /= 2;
        }
        best.0
    }

    /// The largest groups whose registers have room in those of the machine. What is done thread by thread, with what lies anywhere in memory,
    /// is written out for each, so that larger ones do not pay; unless there is little of it beside rows of bytes, of which a small group
    /// would take little at a time from where it is far to.
    pub(super) fn find_widest(&self) -> u32 {
        let code = self.kernel.code();
        let flow = Flow::of(code, 0, GROUPS[0]);
        if flow.range.clone().any(|pc| matches!(flow.instruction(pc).op, Op::Collective(_))) {
            // A warp executes it by itself.
            return GROUPS[2];
        }
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, 0, flow.instruction(pc)))
            .collect();
        let function = &code.functions[0];
        let (shapes, _) = Uniformity::of(&flow, &natives, function.slots);
        let (mut scattered, mut packed) = (0, false);
        for pc in flow.range.clone() {
            let in_row = match &flow.instruction(pc).op {
                Op::Load(load) => {
                    let row = in_row(&shapes, &load.operand, load.extend.size, load.destinations.len());
                    let narrow =
                        row == Some(Row::Packed) && load.extend.signed_to.is_none_or(|bits| bits <= 32);
                    packed |= narrow;
                    row == Some(Row::Whole) || narrow
                }
                Op::Store(store) => {
                    in_row(&shapes, &store.operand, store.size, store.sources.len()).is_some()
                }
                Op::Map(_) if natives[(pc - flow.range.start) as usize].is_none() => return GROUPS[0],
                Op::Atomic(_) => false,
                _ => true,
            };
            scattered += usize::from(!in_row);
        }
        if scattered > if packed { FEW } else { 0 } {
            return GROUPS[0];
        }
        let storage = emit::storage(&flow, &natives, &shapes);
        let lanewise = lanewise::registers(&flow, &natives, &shapes, &storage);
        // Vectors for eight threads.
        let vectors = |live: &SlotSet| {
            let varying =
                live.iter().filter(|&slot| shapes.get(slot) == Shape::Varying && !lanewise[slot.0 as usize]);
            varying.map(|slot| if function.type_of(slot).bits() == 64 { 4 } else { 2 }).sum::<u32>()
        };
        let blocks = flow.blocks.iter();
        let most = blocks.flat_map(|block| flow.live_before(block)).map(|live| vectors(&live)).max();
        let fits = |&&lanes: &&u32| most.unwrap_or(0) * (lanes / 8) <= VECTORS;
        GROUPS.iter().rev().find(fits).copied().unwrap_or(GROUPS[0])
    }
}

/// How an access of a group is made at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// As vectors, or as one element for all.
    Whole,
    /// As vectors of elements that are narrower than a register.
    Packed,
}

/// Whether an access of a group is one of elements that lie in a row, or of one element for all.
fn in_row(shapes: &Uniformity, operand: &MemoryOperand, size: u32, elements: usize) -> Option<Row> {
    let shared = !matches!(operand.space, Space::Local | Space::Generic);
    let shape = match operand.base {
        Base::Source(source) => shapes.source(source),
        Base::Frame => Shape::Varying,
    };
    match shape {
        _ if !shared => None,
        Shape::Uniform => Some(Row::Whole),
        Shape::Affine(step) if elements == 1 && step == i64::from(size) => match size {
            4 | 8 => Some(Row::Whole),
            1 | 2 => Some(Row::Packed),
            _ => None,
        },
        _ => None,
    }
}
