//! Finds registers that need not be kept across a suspension, because they can be computed again.
//!
//! A definition is *invariant* if its value depends only on the launch, the block and the thread: a
//! parameter, `%tid`, and what is computed from those alone. It has the same value whenever it is
//! computed. So all of them are computed once before the code of a group is entered, outside the
//! loop over groups if they do not depend on the thread. Where only an invariant definition
//! reaches, the register is neither stored when threads are suspended, nor loaded and checked for
//! its shape when they continue.

use crate::analysis::flow::{Flow, Role, SlotSet};
use crate::analysis::uniformity;
use crate::native::{Kind, Native};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::op::LogicOp;
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};

/// The definition that reaches a point in a register.
type Reaching = u32;

/// Not known yet.
const NOTHING: Reaching = u32::MAX;
/// More than one definition, or one under a guard.
const SEVERAL: Reaching = u32::MAX - 1;
/// The zero that registers start with.
const START: Reaching = u32::MAX - 2;

/// The most blocks times registers. Larger functions are not analysed.
const MOST: usize = 1 << 22;

/// Bounds are not tracked from this value on.
const FAR: u64 = 1 << 40;

/// What is known about an invariant value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    /// Whether it differs between the threads of a row.
    varies: bool,
    /// Whether it is the same in all threads of a block.
    of_block: bool,
    /// The greatest unsigned value.
    most: Option<u64>,
}

/// Returns what is known about a special register.
fn special(register: SpecialReg) -> Value {
    let (varies, most) = match register {
        SpecialReg::Dim(DimSpecial::Tid, dim) => (dim == Dim::X, Some(1023)),
        SpecialReg::Dim(DimSpecial::NTid, _) => (false, Some(1024)),
        SpecialReg::Plain(PlainSpecial::LaneId) => (true, Some(31)),
        SpecialReg::Plain(
            PlainSpecial::LaneMaskEq
            | PlainSpecial::LaneMaskLe
            | PlainSpecial::LaneMaskLt
            | PlainSpecial::LaneMaskGe
            | PlainSpecial::LaneMaskGt,
        ) => (true, None),
        SpecialReg::Plain(PlainSpecial::WarpId) => (false, Some(31)),
        _ => (false, None),
    };
    let in_block =
        matches!(register, SpecialReg::Dim(DimSpecial::Tid, _) | SpecialReg::Plain(PlainSpecial::WarpId));
    Value { varies, of_block: !varies && !in_block, most }
}

/// Returns the greatest result of an instruction.
fn most(kind: Kind, operands: &[Value]) -> Option<u64> {
    let of = |i: usize| operands.get(i)?.most;
    match kind {
        Kind::Copy | Kind::Extend { from: 32 | 64, .. } => of(0),
        Kind::Add => of(0)?.checked_add(of(1)?),
        Kind::Mul | Kind::MulWide { .. } => of(0)?.checked_mul(of(1)?),
        Kind::MadLow | Kind::MadWide { .. } => of(0)?.checked_mul(of(1)?)?.checked_add(of(2)?),
        Kind::ShiftLeft => of(0)?.checked_mul(1u64.checked_shl(u32::try_from(of(1)?).ok()?)?),
        Kind::ShiftRight { signed: false } => of(0),
        Kind::Logic(LogicOp::And) => match (of(0), of(1)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        _ => None,
    }
}

/// The invariant definitions of a function, and the definitions that reach its blocks.
pub(crate) struct Rematerialization {
    /// The definitions in an order in which they can be computed, each with those it reads.
    pub(crate) order: Vec<(Pc, Vec<(Slot, Pc)>)>,
    /// For each instruction that is one, what is known about its value.
    is: Vec<Option<Value>>,
    /// For each block and slot, the definition that reaches its start.
    at: Vec<Vec<Reaching>>,
    first: Pc,
}

impl Rematerialization {
    /// Analyses the kernel itself. Called functions have no invariant definitions.
    pub(crate) fn of(flow: &Flow<'_>, natives: &[Option<Native>], param_bytes: u64) -> Self {
        let length = (flow.range.end - flow.range.start) as usize;
        let mut this = Rematerialization {
            order: Vec::new(),
            is: vec![None; length],
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
                    if this.is[offset].is_none()
                        && let Some(value) =
                            this.value(flow, natives[offset].as_ref(), pc, &state, param_bytes)
                    {
                        this.is[offset] = Some(value);
                        let mut reads = Vec::new();
                        flow.instruction(pc).for_each_use(&mut |source| {
                            if let Source::Slot(slot) = source {
                                reads.push((slot, state[slot.0 as usize]));
                            }
                        });
                        this.order.push((pc, reads));
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

    /// Returns what is known about an instruction's result if it is invariant.
    fn value(
        &self,
        flow: &Flow<'_>,
        native: Option<&Native>,
        pc: Pc,
        state: &[Reaching],
        param_bytes: u64,
    ) -> Option<Value> {
        let instruction = flow.instruction(pc);
        if instruction.guard.is_some() || flow.role(pc) != Role::Compiled {
            return None;
        }
        let constant = |source: Source| match source {
            Source::Constant(index) => Some(flow.code.constants[index as usize][0]),
            Source::Slot(_) => None,
        };
        match &instruction.op {
            Op::Special { register, .. } => Some(special(*register)),
            Op::FrameAddress { .. } => Some(Value { varies: false, of_block: true, most: None }),
            Op::Load(load) if load.operand.space == Space::Param && load.destinations.len() == 1 => {
                let Base::Source(base) = load.operand.base else { return None };
                let at = constant(base)?.wrapping_add_signed(load.operand.offset);
                let inside = at.is_multiple_of(load.align.into())
                    && at.saturating_add(load.extend.size.into()) <= param_bytes;
                inside.then_some(Value { varies: false, of_block: true, most: None })
            }
            Op::Map(map) if map.destinations().len() == 1 => {
                let native = native?;
                let integer = !native.result.is_float() && native.operands.iter().all(|o| !o.is_float());
                let cheap = integer && !matches!(native.kind, Kind::Div { .. } | Kind::Rem { .. });
                if !cheap && native.kind != Kind::Copy {
                    return None;
                }
                let mut operands = Vec::new();
                for &source in map.sources() {
                    operands.push(match source {
                        Source::Slot(Slot(slot)) => self.known(state[slot as usize])?,
                        source => Value { varies: false, of_block: true, most: constant(source) },
                    });
                }
                let value = Value {
                    varies: operands.iter().any(|operand| operand.varies),
                    of_block: operands.iter().all(|operand| operand.of_block),
                    most: most(native.kind, &operands).filter(|&most| most < FAR),
                };
                // A widened 32-bit value must be known not to wrap within a group, so that no check
                // is needed.
                let bounded = |operand: &Value| operand.most.is_some_and(|most| most < 1 << 30);
                let narrow = operands.iter().zip(native.operands).filter(|(_, class)| class.bits() <= 32);
                let safe = !value.varies
                    || uniformity::widens(native).is_none()
                    || narrow.map(|(operand, _)| operand).all(bounded);
                safe.then_some(value)
            }
            _ => None,
        }
    }

    fn known(&self, reaching: Reaching) -> Option<Value> {
        if reaching < START { self.is[(reaching - self.first) as usize] } else { None }
    }

    fn is_value(&self, reaching: Reaching) -> bool {
        self.known(reaching).is_some()
    }

    /// Returns whether an instruction is an invariant definition.
    pub(crate) fn contains(&self, pc: Pc) -> bool {
        self.is[(pc - self.first) as usize].is_some()
    }

    /// Returns whether an invariant definition is the same in all threads of a block.
    pub(crate) fn is_of_block(&self, pc: Pc) -> bool {
        self.is[(pc - self.first) as usize].is_some_and(|value| value.of_block)
    }

    /// Returns the invariant definition that is the only one to reach a slot at the start of a
    /// block.
    pub(crate) fn at_block(&self, block: usize, Slot(slot): Slot) -> Option<Pc> {
        let reaching = *self.at.get(block)?.get(slot as usize)?;
        self.is_value(reaching).then_some(reaching)
    }

    /// Returns the registers that must be in memory when a thread is suspended before an
    /// instruction: those that are live there and not computed again where the thread is entered
    /// next, and those that the interpreter reads before that.
    ///
    /// The point of entry decides, not the point of suspension: paths may join there, and not all
    /// of them can compute the value again. A group may be entered before a collective, but threads
    /// that have parted are not: the interpreter executes the collective and what follows it.
    pub(crate) fn kept(&self, flow: &Flow<'_>, pc: Pc, live: &SlotSet) -> SlotSet {
        let mut entry = pc;
        while entry < flow.range.end && flow.is_interpreted_alone(entry) {
            entry += 1;
        }
        let mut kept = live.clone();
        if let Some(block) = flow.block_at(entry) {
            for slot in live.iter() {
                if self.at_block(block, slot).is_some() {
                    kept.remove(slot);
                }
            }
        }
        for next in pc..entry {
            flow.instruction(next).for_each_use(&mut |source| {
                if let Source::Slot(slot) = source
                    && live.contains(slot)
                {
                    kept.insert(slot);
                }
            });
        }
        kept
    }
}

/// Applies an instruction to the reaching definitions.
fn step(flow: &Flow<'_>, pc: Pc, state: &mut [Reaching]) {
    let instruction = flow.instruction(pc);
    let certain = instruction.guard.is_none() && !matches!(instruction.op, Op::Call(_));
    let mut count = 0;
    instruction.for_each_definition(&mut |_| count += 1);
    instruction.for_each_definition(&mut |Slot(slot)| {
        state[slot as usize] = if certain && count == 1 { pc } else { SEVERAL };
    });
}
