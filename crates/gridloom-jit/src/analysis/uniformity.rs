//! How a register differs between neighbouring threads: not at all, by a constant step, or in any way.
//!
//! Neighbours are the threads of one *group*, which compiled code runs in lockstep. A value is the same in all of those that run where it is computed
//! from such values alone. It is the same in all threads that need it unless others wait meanwhile that need another one ([`Divergence`]). Where a
//! group is entered with registers from memory, the code checks that they have the shape found here.

use crate::analysis::divergence::Divergence;
use crate::analysis::flow::Flow;
use crate::native::{Kind, Native};
use gridloom_interp::code::{Base, CollectiveKind, Op};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};

/// How a value differs between the threads of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The same in all.
    Uniform,
    /// More by this in each than in the one before, modulo the width of the register.
    Affine(i64),
    /// Anything.
    Varying,
}

impl Shape {
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Shape::Varying }
    }

    fn step(self) -> Option<i64> {
        match self {
            Shape::Uniform => Some(0),
            Shape::Affine(step) => Some(step),
            Shape::Varying => None,
        }
    }

    fn of_step(step: i64, bits: u32) -> Self {
        let step = if bits == 32 { i64::from(step as i32) } else { step };
        if step == 0 { Shape::Uniform } else { Shape::Affine(step) }
    }
}

/// The shape of every slot of a function.
pub(crate) struct Uniformity(Vec<Shape>);

impl Uniformity {
    /// Of groups of one thread.
    pub(crate) fn single(slots: u32) -> Self {
        Self(vec![Shape::Uniform; slots as usize])
    }

    /// Of groups of neighbours, and where their threads part.
    pub(crate) fn of(flow: &Flow<'_>, natives: &[Option<Native>], slots: u32) -> (Self, Divergence) {
        let mut divided = vec![false; slots as usize];
        loop {
            let this = Self::of_divided(flow, natives, &divided);
            let divergence = Divergence::of(flow, |source| this.source(source) != Shape::Uniform);
            let mut changed = false;
            divergence.for_each_divided(flow, &mut |Slot(slot)| {
                changed |= this.0[slot as usize] != Shape::Varying && !divided[slot as usize];
                divided[slot as usize] = true;
            });
            if !changed {
                return (this, divergence);
            }
        }
    }

    /// Of groups in which some registers are known to differ in any way.
    fn of_divided(flow: &Flow<'_>, natives: &[Option<Native>], divided: &[bool]) -> Self {
        // Not known yet, which is whatever the first definition says.
        let mut shapes: Vec<Option<Shape>> =
            divided.iter().map(|divided| divided.then_some(Shape::Varying)).collect();
        // What is read before it is written is zero.
        if let Some(first) = flow.blocks.first() {
            for Slot(slot) in first.live_in.iter() {
                shapes[slot as usize].get_or_insert(Shape::Uniform);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for pc in flow.range.clone() {
                let instruction = flow.instruction(pc);
                let native = natives[(pc - flow.range.start) as usize].as_ref();
                let Some(mut shape) = result_shape(flow, &shapes, &instruction.op, native) else { continue };
                // Under a guard that differs, what was there before stays in some.
                if let Some(guard) = instruction.guard
                    && shapes[guard.slot.0 as usize] != Some(Shape::Uniform)
                {
                    shape = Shape::Varying;
                }
                instruction.for_each_definition(&mut |Slot(slot)| {
                    let known = &mut shapes[slot as usize];
                    let joined = known.map_or(shape, |known| known.join(shape));
                    if *known != Some(joined) {
                        *known = Some(joined);
                        changed = true;
                    }
                });
            }
        }
        Self(shapes.into_iter().map(|shape| shape.unwrap_or(Shape::Uniform)).collect())
    }

    pub(crate) fn get(&self, Slot(slot): Slot) -> Shape {
        self.0[slot as usize]
    }

    /// The shape of an operand.
    pub(crate) fn source(&self, source: Source) -> Shape {
        match source {
            Source::Slot(slot) => self.get(slot),
            Source::Constant(_) => Shape::Uniform,
        }
    }
}

/// The shape of what an instruction computes; none while an operand is not known yet.
fn result_shape(
    flow: &Flow<'_>,
    shapes: &[Option<Shape>],
    op: &Op,
    native: Option<&Native>,
) -> Option<Shape> {
    let of = |source: Source| match source {
        Source::Slot(Slot(slot)) => shapes[slot as usize],
        Source::Constant(_) => Some(Shape::Uniform),
    };
    match op {
        Op::Map(map) => {
            let mut operands = [Shape::Uniform; 8];
            let sources = map.sources();
            for (i, (shape, &source)) in operands.iter_mut().zip(sources).enumerate() {
                *shape = of(source)?;
                // Extended with zeros to a wider operand, it may wrap.
                if let (Source::Slot(slot), Shape::Affine(_), Some(native)) = (source, *shape, native) {
                    let held = flow.code.functions[flow.function].type_of(slot).bits().max(32);
                    let read = native.operands.get(i).map_or(0, |class| class.bits());
                    if read != held && (read, held) != (32, 64) {
                        *shape = Shape::Varying;
                    }
                }
            }
            let operands = &operands[..sources.len()];
            if operands.iter().all(|&shape| shape == Shape::Uniform) {
                return Some(Shape::Uniform);
            }
            let constant = |i: usize| match sources.get(i) {
                Some(Source::Constant(index)) => Some(flow.code.constants[*index as usize][0]),
                _ => None,
            };
            Some(match (native, map.destinations().len()) {
                (Some(native), 1) => affine(native, operands, constant).unwrap_or(Shape::Varying),
                _ => Shape::Varying,
            })
        }
        Op::Special { register, .. } => Some(special(*register)),
        Op::FrameAddress { .. } => Some(if flow.is_kernel { Shape::Uniform } else { Shape::Varying }),
        Op::Load(load) => {
            let address = match load.operand.base {
                Base::Source(source) => of(source)?,
                // Local memory is each thread's own.
                Base::Frame => Shape::Varying,
            };
            let own = load.operand.space == gridloom_interp::Space::Local
                || load.operand.space == gridloom_interp::Space::Generic;
            Some(if address == Shape::Uniform && !own { Shape::Uniform } else { Shape::Varying })
        }
        // All that take part get the same.
        Op::Collective(collective)
            if matches!(collective.kind, CollectiveKind::Vote(_) | CollectiveKind::Redux { .. }) =>
        {
            let members = of(collective.mask?)?;
            Some(if members == Shape::Uniform { Shape::Uniform } else { Shape::Varying })
        }
        _ => Some(Shape::Varying),
    }
}

/// The shape of a special register. Groups are never across rows of the block.
fn special(register: SpecialReg) -> Shape {
    match register {
        SpecialReg::Dim(DimSpecial::Tid, Dim::X) => Shape::Affine(1),
        SpecialReg::Plain(PlainSpecial::LaneId) => Shape::Affine(1),
        SpecialReg::Plain(
            PlainSpecial::LaneMaskEq
            | PlainSpecial::LaneMaskLe
            | PlainSpecial::LaneMaskLt
            | PlainSpecial::LaneMaskGe
            | PlainSpecial::LaneMaskGt,
        ) => Shape::Varying,
        _ => Shape::Uniform,
    }
}

/// The shape of a result of affine operands, where it is affine too.
pub(crate) fn affine(
    native: &Native,
    operands: &[Shape],
    constant: impl Fn(usize) -> Option<u64>,
) -> Option<Shape> {
    let bits = native.result.bits();
    if bits != 32 && bits != 64 || native.result.is_float() {
        return None;
    }
    let step = |i: usize| operands.get(i)?.step();
    // A factor that is the same everywhere must be known to tell the step.
    let product = |a: usize, b: usize| match (step(a)?, step(b)?) {
        (0, 0) => Some(0),
        (step, 0) => Some(step.wrapping_mul(sign_extend(constant(b)?, native.operands[b].bits()))),
        (0, step) => Some(step.wrapping_mul(sign_extend(constant(a)?, native.operands[a].bits()))),
        _ => None,
    };
    // An unsigned factor above the signed range is not what it looks like.
    let small = |i: usize| constant(i).is_none_or(|value| value >> (native.operands[i].bits() - 1) == 0);
    // So that a group can wrap around at most once, which is then seen at its last thread.
    let slow = |i: usize| step(i).is_none_or(|step| step.unsigned_abs() < 1 << 26);
    if widens(native).is_some() && !(slow(0) && (slow(1) || operands.len() < 2)) {
        return None;
    }
    let step = match native.kind {
        Kind::Copy | Kind::AddConstant(_) => step(0)?,
        Kind::Add => step(0)?.wrapping_add(step(1)?),
        Kind::Sub => step(0)?.wrapping_sub(step(1)?),
        Kind::Neg => step(0)?.wrapping_neg(),
        Kind::Mul => product(0, 1)?,
        Kind::MadLow => product(0, 1)?.wrapping_add(step(2)?),
        Kind::ShiftLeft => step(0)?.checked_shl(u32::try_from(constant(1)?).ok().filter(|&c| c < bits)?)?,
        Kind::MulWide { .. } if native.operands[0].bits() == 32 && small(0) && small(1) => product(0, 1)?,
        Kind::MadWide { .. } if native.operands[0].bits() == 32 && small(0) && small(1) => {
            product(0, 1)?.wrapping_add(step(2)?)
        }
        Kind::Extend { from: 32 | 64, to: 32 | 64, .. } if native.operands[0].bits() >= 32 => step(0)?,
        _ => return None,
    };
    Some(Shape::of_step(step, bits))
}

/// Whether the result widens an affine operand, which must then not wrap within the group.
pub(crate) fn widens(native: &Native) -> Option<bool> {
    match native.kind {
        Kind::MulWide { signed } | Kind::MadWide { signed } => Some(signed),
        Kind::Extend { from: 32, signed, to: 64, .. } => Some(signed),
        // To 32 bits, then to the register's 64.
        Kind::Extend { to: 32, to_signed, .. } if native.result.bits() == 64 => Some(to_signed),
        _ => None,
    }
}

fn sign_extend(value: u64, bits: u32) -> i64 {
    if bits == 32 { i64::from(value as i32) } else { value as i64 }
}
