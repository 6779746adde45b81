//! Finds shared memory that a block fills before it reads any of it, so that it need not be
//! cleared.
//!
//! Shared memory is zero at the start of a block. Suppose each thread stores the element of its
//! index, `s[t] = …`, before it reaches the first barrier, and nothing is loaded before all threads
//! have passed that barrier. If the memory has no more elements than the block has threads, each
//! byte is written before it can be read. That is so in whatever order threads stop and continue.

use crate::analysis::flow::{Flow, Role};
use crate::analysis::range::Ranges;
use crate::native::{Kind, Native};
use crate::spill_frame::is_passed;
use gridloom_interp::Space;
use gridloom_interp::code::{Base, MemoryOperand, Op, Pc, Store};
use gridloom_interp::lanes::{Slot, Source};

/// How far definitions are followed.
const DEPTH: u32 = 8;

/// The greatest steps and offsets considered. With the most threads of a block, nothing below wraps
/// or is negative.
const MOST: u64 = 1 << 16;

/// The progress of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Started,
    /// It has stored its element.
    Stored,
    /// All threads have stored theirs.
    Passed,
}

/// Returns the size of the elements that threads fill shared memory with, from its start in the
/// order of `%tid.x`. Returns `None` if the memory may be read before.
pub(crate) fn element(flow: &Flow<'_>, natives: &[Option<Native>], ranges: &Ranges) -> Option<u32> {
    if !flow.is_kernel {
        return None;
    }
    let stores = flow.range.clone().filter_map(|pc| Some((pc, fills(flow, natives, ranges, pc)?)));
    stores.into_iter().find(|&(pc, _)| is_before_all(flow, pc)).map(|(_, size)| size)
}

/// Returns the size of a store that writes the element of the thread's index in every thread that
/// reaches it.
fn fills(flow: &Flow<'_>, natives: &[Option<Native>], ranges: &Ranges, pc: Pc) -> Option<u32> {
    let instruction = flow.instruction(pc);
    let Op::Store(store) = &instruction.op else { return None };
    let Store {
        operand: MemoryOperand { space: Space::Shared, base: Base::Source(base), offset, .. },
        size,
        ..
    } = **store
    else {
        return None;
    };
    if instruction.guard.is_some() || store.sources.len() != 1 || size > 8 {
        return None;
    }
    let address = Index { flow, natives, ranges }.of(base, DEPTH)?;
    let start = i64::try_from(address.start).ok()?.checked_add(offset)?;
    (address.step == u64::from(size) && start == 0).then_some(size)
}

/// Returns whether every thread executes an instruction before it ends, and before any thread reads
/// shared memory, with a barrier of all threads in between.
fn is_before_all(flow: &Flow<'_>, fill: Pc) -> bool {
    let mut progress: Vec<Option<Progress>> = vec![None; flow.blocks.len()];
    let Some(first) = progress.first_mut() else { return false };
    *first = Some(Progress::Started);
    let mut work = vec![0];
    while let Some(index) = work.pop() {
        let (Some(mut at), block) = (progress[index], &flow.blocks[index]) else { continue };
        for pc in block.range.clone() {
            let instruction = flow.instruction(pc);
            let shared = |space: Space| matches!(space, Space::Shared | Space::Generic);
            let reads = match &instruction.op {
                Op::Load(load) => shared(load.operand.space),
                Op::Atomic(atomic) => shared(atomic.operand.space),
                _ => false,
            };
            match flow.role(pc) {
                _ if at == Progress::Passed => {}
                _ if pc == fill => at = Progress::Stored,
                _ if reads => return false,
                Role::Interpreted if at == Progress::Stored && is_passed(flow, pc) => at = Progress::Passed,
                Role::Interpreted => return false,
                Role::Terminator if at == Progress::Started => {
                    if matches!(instruction.op, Op::Exit | Op::Return) {
                        return false;
                    }
                }
                _ => {}
            }
        }
        for &successor in &block.successors {
            let Some(next) = flow.block_at(successor) else { return false };
            // The least progress on any path to it.
            let least = progress[next].map_or(at, |before| before.min(at));
            if progress[next] != Some(least) {
                progress[next] = Some(least);
                work.push(next);
            }
        }
    }
    true
}

/// A value that is `start` at `%tid.x` 0 and increases by `step` with each index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Linear {
    start: u64,
    step: u64,
}

impl Linear {
    fn constant(start: u64) -> Self {
        Self { start, step: 0 }
    }

    fn plus(self, other: Self) -> Self {
        Self { start: self.start + other.start, step: self.step + other.step }
    }

    fn times(self, other: Self) -> Option<Self> {
        let (value, factor) = if self.step == 0 { (other, self) } else { (self, other) };
        (factor.step == 0)
            .then(|| Self { start: value.start * factor.start, step: value.step * factor.start })
    }

    fn bounded(self) -> Option<Self> {
        (self.start <= MOST && self.step <= MOST).then_some(self)
    }
}

/// The values of registers as linear functions of the thread index.
struct Index<'a> {
    flow: &'a Flow<'a>,
    natives: &'a [Option<Native>],
    ranges: &'a Ranges,
}

impl Index<'_> {
    fn of(&self, source: Source, depth: u32) -> Option<Linear> {
        match source {
            Source::Constant(index) => {
                Linear::constant(self.flow.code.constants[index as usize][0]).bounded()
            }
            Source::Slot(slot) if self.ranges.is_thread_index(slot) => Some(Linear { start: 0, step: 1 }),
            Source::Slot(slot) => match self.ranges.constant(slot) {
                Some(value) => Linear::constant(value).bounded(),
                None => self.computed(slot, depth.checked_sub(1)?)?.bounded(),
            },
        }
    }

    /// Returns the function of a register that one instruction writes, before all reads.
    fn computed(&self, slot: Slot, depth: u32) -> Option<Linear> {
        let flow = self.flow;
        let writes = |pc: &Pc| {
            let mut found = false;
            flow.instruction(*pc).for_each_definition(&mut |written| found |= written == slot);
            found
        };
        let mut definitions = flow.range.clone().filter(writes);
        let (Some(pc), None) = (definitions.next(), definitions.next()) else { return None };
        let instruction = flow.instruction(pc);
        if instruction.guard.is_some() || flow.blocks.first()?.live_in.contains(slot) {
            return None;
        }
        let native = self.natives[(pc - flow.range.start) as usize].as_ref()?;
        let Op::Map(map) = &instruction.op else { return None };
        let wide = |bits: u32| bits >= 32;
        if map.destinations().len() != 1 || native.result.is_float() || !wide(native.result.bits()) {
            return None;
        }
        let operand = |i: usize| {
            let class = native.operands[i];
            let whole = !class.is_float() && wide(class.bits());
            whole.then_some(()).and_then(|()| self.of(*map.sources().get(i)?, depth))
        };
        match native.kind {
            Kind::Copy => operand(0),
            Kind::Extend { from, to, .. } if wide(from) && wide(to) => operand(0),
            Kind::Add => Some(operand(0)?.plus(operand(1)?)),
            Kind::AddConstant(value) => Some(operand(0)?.plus(Linear::constant(value).bounded()?)),
            Kind::Mul | Kind::MulWide { .. } => operand(0)?.times(operand(1)?),
            Kind::MadLow | Kind::MadWide { .. } => {
                Some(operand(0)?.times(operand(1)?)?.bounded()?.plus(operand(2)?))
            }
            Kind::ShiftLeft => match operand(1)? {
                Linear { start: count @ 0..16, step: 0 } => operand(0)?.times(Linear::constant(1 << count)),
                _ => None,
            },
            _ => None,
        }
    }
}
