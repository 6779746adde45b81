//! How a register differs between neighbouring threads: not at all, by a constant step, or
//! arbitrarily.
//!
//! Neighbours are the threads of one *group*, which compiled code runs in lockstep. A value is the
//! same in all running threads if it is computed only from such values. It is the same in all
//! threads that need it, unless others that wait need another value ([`Divergence`]). Where a group
//! is entered with registers from memory, the code checks that they have the shape found here.

use crate::analysis::alignment;
use crate::analysis::divergence::Divergence;
use crate::analysis::flow::Flow;
use crate::analysis::lane_offsets::{self, Offsets};
use crate::native::{Kind, Native};
use gridloom_interp::code::{Base, CollectiveKind, Op};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};

/// How a value differs between the threads of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The same in all threads.
    Uniform,
    /// Greater by this step than in the thread before, modulo the width of the register.
    Affine(i64),
    /// Greater by these amounts than in the first thread, modulo the width of the register. Only in
    /// groups of eight.
    Offsets(Offsets),
    /// Arbitrary.
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
            Shape::Offsets(_) | Shape::Varying => None,
        }
    }

    fn of_step(step: i64, bits: u32) -> Self {
        let step = if bits == 32 { i64::from(step as i32) } else { step };
        if step == 0 { Shape::Uniform } else { Shape::Affine(step) }
    }
}

/// The shape of every slot of a function.
pub(crate) struct Uniformity {
    shapes: Vec<Shape>,
    /// The exponent of the power of two that divides each in the first thread of a group.
    exponents: Vec<u32>,
    /// Whether each is computed from the index of the thread and from uniform registers alone.
    computed: Vec<bool>,
    /// Threads of a group.
    lanes: u32,
}

impl Uniformity {
    /// Returns the shapes for groups of one thread.
    pub(crate) fn single(slots: u32) -> Self {
        let slots = slots as usize;
        Self {
            shapes: vec![Shape::Uniform; slots],
            exponents: vec![0; slots],
            computed: vec![false; slots],
            lanes: 1,
        }
    }

    /// Returns the shapes for groups of neighbours, and where their threads diverge.
    pub(crate) fn of(
        flow: &Flow<'_>,
        natives: &[Option<Native>],
        slots: u32,
        lanes: u32,
    ) -> (Self, Divergence) {
        let mut divided = vec![false; slots as usize];
        loop {
            let this = Self::of_divided(flow, natives, &divided, lanes);
            let divergence = Divergence::of(flow, |source| this.source(source) != Shape::Uniform);
            let mut changed = false;
            divergence.for_each_divided(flow, &mut |Slot(slot)| {
                changed |= this.shapes[slot as usize] != Shape::Varying && !divided[slot as usize];
                divided[slot as usize] = true;
            });
            if !changed {
                let offsets = lane_offsets::of(flow, natives, &divided, lanes);
                return (this.with_offsets(&offsets), divergence);
            }
        }
    }

    /// Gives registers whose threads are known distances apart that shape.
    fn with_offsets(mut self, offsets: &[Option<Offsets>]) -> Self {
        for (shape, offsets) in self.shapes.iter_mut().zip(offsets) {
            if let (Shape::Varying, Some(offsets)) = (&shape, offsets) {
                *shape = Shape::Offsets(*offsets);
            }
        }
        self
    }

    /// Returns the shapes for groups in which some registers are known to differ arbitrarily.
    fn of_divided(flow: &Flow<'_>, natives: &[Option<Native>], divided: &[bool], lanes: u32) -> Self {
        let mut exponents = vec![alignment::MOST; divided.len()];
        // `None` until the first definition determines it.
        let mut shapes: Vec<Option<Shape>> =
            divided.iter().map(|divided| divided.then_some(Shape::Varying)).collect();
        // A register that is read before it is written is zero.
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
                let found = result_shape(flow, (&shapes, &exponents, lanes), &instruction.op, native);
                let Some(mut shape) = found else { continue };
                let exponent = result_exponent(flow, &exponents, &instruction.op, native, lanes);
                // Under a guard that differs, some threads keep the old value.
                if let Some(guard) = instruction.guard
                    && shapes[guard.slot.0 as usize] != Some(Shape::Uniform)
                {
                    shape = Shape::Varying;
                }
                instruction.for_each_definition(&mut |Slot(slot)| {
                    changed |= exponent < exponents[slot as usize];
                    exponents[slot as usize] = exponents[slot as usize].min(exponent);
                    let known = &mut shapes[slot as usize];
                    let joined = known.map_or(shape, |known| known.join(shape));
                    if *known != Some(joined) {
                        *known = Some(joined);
                        changed = true;
                    }
                });
            }
        }
        let shapes: Vec<Shape> = shapes.into_iter().map(|shape| shape.unwrap_or(Shape::Uniform)).collect();
        let computed = computed(flow, natives, &shapes);
        Self { shapes, exponents, computed, lanes }
    }

    pub(crate) fn get(&self, Slot(slot): Slot) -> Shape {
        self.shapes[slot as usize]
    }

    /// Returns the exponent of the power of two that divides a register in the first thread of a
    /// group.
    pub(crate) fn exponent(&self, Slot(slot): Slot) -> u32 {
        self.exponents[slot as usize]
    }

    /// Returns whether a register is computed from the index of the thread and from uniform
    /// registers alone.
    pub(crate) fn is_computed(&self, Slot(slot): Slot) -> bool {
        self.computed[slot as usize]
    }

    /// Returns how many threads a group has.
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Returns the shape of an operand.
    pub(crate) fn source(&self, source: Source) -> Shape {
        match source {
            Source::Slot(slot) => self.get(slot),
            Source::Constant(_) => Shape::Uniform,
        }
    }
}

/// Returns for each slot whether only functions of such slots and of uniform and affine ones write
/// it.
fn computed(flow: &Flow<'_>, natives: &[Option<Native>], shapes: &[Shape]) -> Vec<bool> {
    let mut is = vec![true; shapes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for pc in flow.range.clone() {
            let instruction = flow.instruction(pc);
            let is_function = match &instruction.op {
                Op::Map(map) if natives[(pc - flow.range.start) as usize].is_some() => {
                    map.sources().iter().all(|source| match source {
                        Source::Slot(Slot(slot)) => {
                            shapes[*slot as usize] != Shape::Varying || is[*slot as usize]
                        }
                        Source::Constant(_) => true,
                    })
                }
                _ => false,
            };
            instruction.for_each_definition(&mut |Slot(slot)| {
                let fits = is_function || shapes[slot as usize] != Shape::Varying;
                changed |= is[slot as usize] && !fits;
                is[slot as usize] &= fits;
            });
        }
    }
    is
}

/// Returns the shape of an instruction's result, or `None` while an operand is not known yet.
fn result_shape(
    flow: &Flow<'_>,
    (shapes, exponents, lanes): (&[Option<Shape>], &[u32], u32),
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
                // Zero-extended to a wider operand, the value may wrap.
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
                (Some(native), 1) => affine(native, operands, constant)
                    .or_else(|| {
                        let exponent = |i: usize| exponent_of(flow, exponents, sources[i]);
                        alignment::shape(native, operands, exponent, constant, lanes)
                    })
                    .unwrap_or(Shape::Varying),
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
        // All participating threads get the same value.
        Op::Collective(collective)
            if matches!(collective.kind, CollectiveKind::Vote(_) | CollectiveKind::Redux { .. }) =>
        {
            let members = collective.mask.map_or(Some(Shape::Uniform), of)?;
            Some(if members == Shape::Uniform { Shape::Uniform } else { Shape::Varying })
        }
        Op::ActiveMask { .. } => Some(Shape::Uniform),
        _ => Some(Shape::Varying),
    }
}

/// Returns the exponent of the power of two that divides an operand in the first thread of a group.
fn exponent_of(flow: &Flow<'_>, exponents: &[u32], source: Source) -> u32 {
    match source {
        Source::Slot(Slot(slot)) => exponents[slot as usize],
        Source::Constant(index) => alignment::constant(flow.code.constants[index as usize][0]),
    }
}

/// Returns the same of what an instruction computes.
fn result_exponent(flow: &Flow<'_>, exponents: &[u32], op: &Op, native: Option<&Native>, lanes: u32) -> u32 {
    match (op, native) {
        (Op::Map(map), Some(native)) if map.destinations().len() == 1 => {
            let sources = map.sources();
            let constant = |i: usize| match sources.get(i) {
                Some(Source::Constant(index)) => Some(flow.code.constants[*index as usize][0]),
                _ => None,
            };
            alignment::of(native, |i| exponent_of(flow, exponents, sources[i]), constant)
        }
        (Op::Special { register, .. }, _) => alignment::special(*register, lanes),
        _ => 0,
    }
}

/// Returns the shape of a special register. A group never spans two rows of the block.
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

/// Returns the shape of a result of affine operands, if it is affine too.
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
    // The step of a product is known only if the uniform factor is a known constant.
    let product = |a: usize, b: usize| match (step(a)?, step(b)?) {
        (0, 0) => Some(0),
        (step, 0) => Some(step.wrapping_mul(sign_extend(constant(b)?, native.operands[b].bits()))),
        (0, step) => Some(step.wrapping_mul(sign_extend(constant(a)?, native.operands[a].bits()))),
        _ => None,
    };
    // A factor above the signed range would be read as negative.
    let small = |i: usize| constant(i).is_none_or(|value| value >> (native.operands[i].bits() - 1) == 0);
    // With such a step a group wraps at most once, which its last thread shows.
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

/// Returns whether the result widens an affine operand, which must then not wrap within the group.
/// The value tells whether it is sign-extended.
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
