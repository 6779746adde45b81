//! Registers that need not be kept across a suspension, because they can be computed again.
//!
//! A definition is *invariant* where its value depends on nothing but the launch, the block and the thread: a parameter, `%tid`, and
//! what is computed from such alone. It is the same whenever it is computed, so all of them are computed once before the code of a
//! group is entered, outside the loop over groups where the thread does not matter. Where only an invariant definition reaches, the
//! register is neither stored when threads are suspended nor loaded, nor checked for its shape, when they go on.

use crate::flow::{Flow, Role, SlotSet};
use crate::native::{Kind, Native};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};

/// What reaches a place in a register.
type Reaching = u32;

/// Nothing known yet.
const NOTHING: Reaching = u32::MAX;
/// More than one definition, or one under a guard.
const SEVERAL: Reaching = u32::MAX - 1;
/// The zero that registers start with.
const START: Reaching = u32::MAX - 2;

/// Blocks times registers that are looked at; larger functions do without.
const MOST: usize = 1 << 22;

/// The invariant definitions of a function, and what reaches its blocks.
pub(crate) struct Invariants {
    /// In an order in which they can be computed.
    pub(crate) order: Vec<Pc>,
    /// For each instruction whether it is one.
    is: Vec<bool>,
    /// For each block and slot what reaches its start.
    at: Vec<Vec<Reaching>>,
    first: Pc,
}

impl Invariants {
    /// Of the kernel itself; a function has none.
    pub(crate) fn of(flow: &Flow<'_>, natives: &[Option<Native>], param_bytes: u64) -> Self {
        let length = (flow.range.end - flow.range.start) as usize;
        let mut this = Invariants {
            order: Vec::new(),
            is: vec![false; length],
            at: Vec::new(),
            first: flow.range.start,
        };
        let slots = flow.code.functions[flow.function].slots as usize;
        if !flow.is_kernel || flow.blocks.len() * slots > MOST {
            return this;
        }
        this.reach(flow, slots);
        let mut changed = true;
        while changed {
            changed = false;
            for (index, block) in flow.blocks.iter().enumerate() {
                let mut state = this.at[index].clone();
                for pc in block.range.clone() {
                    let offset = (pc - this.first) as usize;
                    if !this.is[offset]
                        && this.is_invariant(flow, natives[offset].as_ref(), pc, &state, param_bytes)
                    {
                        this.is[offset] = true;
                        this.order.push(pc);
                        changed = true;
                    }
                    step(flow, pc, &mut state);
                }
            }
        }
        this
    }

    fn reach(&mut self, flow: &Flow<'_>, slots: usize) {
        self.at = vec![vec![NOTHING; slots]; flow.blocks.len()];
        if let Some(first) = self.at.first_mut() {
            first.fill(START);
        }
        let mut work: Vec<usize> = (0..flow.blocks.len()).rev().collect();
        let mut queued = vec![true; flow.blocks.len()];
        while let Some(index) = work.pop() {
            queued[index] = false;
            let mut state = self.at[index].clone();
            for pc in flow.blocks[index].range.clone() {
                step(flow, pc, &mut state);
            }
            for &successor in &flow.blocks[index].successors {
                let Some(next) = flow.block_at(successor) else { continue };
                let mut changed = false;
                for (known, &new) in self.at[next].iter_mut().zip(&state) {
                    let joined = match (*known, new) {
                        (known, NOTHING) => known,
                        (NOTHING, new) => new,
                        (known, new) if known == new => known,
                        _ => SEVERAL,
                    };
                    changed |= joined != *known;
                    *known = joined;
                }
                if changed && !queued[next] {
                    queued[next] = true;
                    work.push(next);
                }
            }
        }
    }

    fn is_invariant(
        &self,
        flow: &Flow<'_>,
        native: Option<&Native>,
        pc: Pc,
        state: &[Reaching],
        param_bytes: u64,
    ) -> bool {
        let instruction = flow.instruction(pc);
        if instruction.guard.is_some() || flow.role(pc) != Role::Compiled {
            return false;
        }
        let constant = |source: Source| match source {
            Source::Constant(index) => Some(flow.code.constants[index as usize][0]),
            Source::Slot(_) => None,
        };
        let simple = match &instruction.op {
            Op::Special { .. } | Op::FrameAddress { .. } => true,
            Op::Load(load) if load.place.space == Space::Param && load.destinations.len() == 1 => {
                let Base::Source(base) = load.place.base else { return false };
                constant(base).is_some_and(|base| {
                    let at = base.wrapping_add_signed(load.place.offset);
                    at.is_multiple_of(load.align.into())
                        && at.saturating_add(load.extend.size.into()) <= param_bytes
                })
            }
            Op::Map(map) if map.destinations().len() == 1 => native.is_some_and(|native| {
                let integer = !native.result.is_float() && native.operands.iter().all(|o| !o.is_float());
                integer && !matches!(native.kind, Kind::Div { .. } | Kind::Rem { .. })
                    || native.kind == Kind::Copy
            }),
            _ => false,
        };
        let mut known = true;
        instruction.for_each_use(&mut |source| {
            if let Source::Slot(Slot(slot)) = source {
                known &= self.is_value(state[slot as usize]);
            }
        });
        simple && known
    }

    fn is_value(&self, reaching: Reaching) -> bool {
        reaching < START && self.is[(reaching - self.first) as usize]
    }

    /// Whether an instruction is an invariant definition.
    pub(crate) fn contains(&self, pc: Pc) -> bool {
        self.is[(pc - self.first) as usize]
    }

    /// The invariant definition that alone reaches a slot at the start of a block.
    pub(crate) fn at_block(&self, block: usize, Slot(slot): Slot) -> Option<Pc> {
        let reaching = *self.at.get(block)?.get(slot as usize)?;
        self.is_value(reaching).then_some(reaching)
    }

    /// What reaches an instruction, by slot.
    pub(crate) fn before(&self, flow: &Flow<'_>, block: usize, pc: Pc) -> Vec<Option<Pc>> {
        let Some(at) = self.at.get(block) else { return Vec::new() };
        let mut state = at.clone();
        for pc in flow.blocks[block].range.start..pc {
            step(flow, pc, &mut state);
        }
        state.into_iter().map(|reaching| self.is_value(reaching).then_some(reaching)).collect()
    }

    /// The registers that must be in memory when a thread is suspended before an instruction of a block: those live there that
    /// cannot be computed again, and those that the interpreter reads before it comes to compiled code.
    pub(crate) fn kept(&self, flow: &Flow<'_>, block: usize, pc: Pc, live: &SlotSet) -> SlotSet {
        let invariant = self.before(flow, block, pc);
        let mut kept = live.clone();
        for slot in live.iter() {
            if invariant.get(slot.0 as usize).is_some_and(Option::is_some) {
                kept.remove(slot);
            }
        }
        let mut next = pc;
        while next < flow.range.end && flow.role(next) == Role::Interpreted {
            flow.instruction(next).for_each_use(&mut |source| {
                if let Source::Slot(slot) = source
                    && live.contains(slot)
                {
                    kept.insert(slot);
                }
            });
            next += 1;
        }
        kept
    }
}

/// What reaches behind an instruction.
fn step(flow: &Flow<'_>, pc: Pc, state: &mut [Reaching]) {
    let instruction = flow.instruction(pc);
    let certain = instruction.guard.is_none() && !matches!(instruction.op, Op::Call(_));
    let mut count = 0;
    instruction.for_each_definition(&mut |_| count += 1);
    instruction.for_each_definition(&mut |Slot(slot)| {
        state[slot as usize] = if certain && count == 1 { pc } else { SEVERAL };
    });
}
