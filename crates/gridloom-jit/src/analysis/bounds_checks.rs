//! Finds addresses near a pointer parameter, which need no check of their own.
//!
//! An access to global memory is checked for its alignment and for an address that can be host
//! memory. Most addresses are a parameter plus an index times the size of an element, and the index
//! has 32 bits or is that of a thread over all blocks. If the pointer is aligned and that far from
//! either end of the host's addresses, all of them are valid. That is checked once per call
//! ([`BoundsChecks::hold`]) instead of at each access. If it does not hold, code that checks every
//! access runs.
//!
//! A pointer that a loop advances by a constant is near it too: no loop makes so many passes that
//! it would leave the host's addresses.
//!
//! As in [`range`](crate::analysis::range), the analysis starts with no knowledge, and its results
//! are valid after every pass.

use crate::analysis::flow::Flow;
use crate::analysis::range::{Access, Ranges, RowLength};
use crate::native::{Class, Kind, Native};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, MemoryOperand, Op};
use gridloom_interp::lanes::{Slot, Source};
use std::ops::Range;

/// The number of passes over the instructions.
const PASSES: usize = 4;

/// The greatest distance of an address from its pointer. The index of a thread over all blocks, in
/// 64 bits, times 16 bytes is less. On most hosts memory lies that far above zero.
const FAR: u64 = 1 << 45;

/// The most passes of a loop that advances a pointer. More take longer than any kernel may run.
const MOST_PASSES: u64 = 1 << 32;

/// A 64-bit value: a pointer parameter, or zero, plus or minus a bounded distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Near {
    /// The offset of the pointer among the parameters.
    pointer: Option<u64>,
    most: u64,
    /// The distance is a multiple of two to this power.
    zeros: u32,
}

impl Near {
    fn of(value: u64) -> Option<Self> {
        let most = (value as i64).unsigned_abs();
        Self { pointer: None, most, zeros: value.trailing_zeros() }.bounded()
    }

    fn up_to(most: u64) -> Self {
        Self { pointer: None, most, zeros: 0 }
    }

    fn bounded(self) -> Option<Self> {
        (self.most <= FAR).then_some(self)
    }

    fn join(self, other: Self) -> Option<Self> {
        let most = self.most.max(other.most);
        (self.pointer == other.pointer).then_some(Self { most, zeros: self.zeros.min(other.zeros), ..self })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let pointer = match (self.pointer, other.pointer) {
            (pointer, None) | (None, pointer) => pointer,
            _ => return None,
        };
        let most = self.most.checked_add(other.most)?;
        Self { pointer, most, zeros: self.zeros.min(other.zeros) }.bounded()
    }

    fn minus(self, other: Self) -> Option<Self> {
        if other.pointer.is_none() { self.plus(other) } else { None }
    }

    fn times(self, other: Self) -> Option<Self> {
        if self.pointer.or(other.pointer).is_some() {
            return None;
        }
        let most = self.most.checked_mul(other.most)?;
        Self { pointer: None, most, zeros: self.zeros.saturating_add(other.zeros) }.bounded()
    }
}

/// The conditions that a pointer parameter must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PointerBounds {
    /// Its offset among the parameters.
    pointer: u64,
    align: u32,
    /// The greatest distance at which memory is accessed.
    far: u64,
}

/// What is known about the addresses of a function, and the assumptions that it rests on.
pub(crate) struct BoundsChecks {
    of_slot: Vec<Option<Near>>,
    list: Vec<PointerBounds>,
    /// The most threads of a row of the block.
    row: u32,
}

impl BoundsChecks {
    /// Returns an analysis without assumptions.
    pub(crate) fn none() -> Self {
        Self { of_slot: Vec::new(), list: Vec::new(), row: RowLength::MOST }
    }

    /// Analyses the kernel itself, with ranges for rows of that many threads. There is none for
    /// called functions.
    pub(crate) fn of(
        flow: &Flow<'_>,
        natives: &[Option<Native>],
        (ranges, row): (&Ranges, u32),
        param_bytes: u64,
    ) -> Self {
        let mut this = Self { row, ..Self::none() };
        if !flow.is_kernel {
            return this;
        }
        let slots = flow.code.functions[flow.function].slots as usize;
        let mut known: Vec<Option<Near>> = vec![None; slots];
        for _ in 0..PASSES {
            // `None` for a register not written yet, else what all writes so far have in common.
            let mut found: Vec<Option<Option<Near>>> = vec![None; slots];
            // A register that is read before it is written is zero.
            if let Some(first) = flow.blocks.first() {
                first.live_in.iter().for_each(|slot| found[slot.0 as usize] = Some(Near::of(0)));
            }
            // How far loops advance registers.
            let mut advanced: Vec<Option<Near>> = vec![Near::of(0); slots];
            for pc in flow.range.clone() {
                let instruction = flow.instruction(pc);
                let native = natives[(pc - flow.range.start) as usize].as_ref();
                if let Some((Slot(slot), step)) = step(flow, &instruction.op, native) {
                    let advanced = &mut advanced[slot as usize];
                    let way = step.unsigned_abs().checked_mul(MOST_PASSES);
                    let way = way.map(|most| Near { zeros: step.trailing_zeros(), ..Near::up_to(most) });
                    *advanced = advanced.zip(way).and_then(|(advanced, way)| advanced.plus(way));
                    continue;
                }
                let near = result(flow, &known, ranges, &instruction.op, native, param_bytes);
                instruction.for_each_definition(&mut |Slot(slot)| {
                    let found = &mut found[slot as usize];
                    *found = Some(match *found {
                        None => near,
                        Some(before) => before.zip(near).and_then(|(before, near)| before.join(near)),
                    });
                });
            }
            let next: Vec<Option<Near>> = found
                .into_iter()
                .zip(advanced)
                .map(|(found, advanced)| found.flatten()?.plus(advanced?))
                .collect();
            if next == known {
                break;
            }
            known = next;
        }
        this.of_slot = known;
        for pc in flow.range.clone() {
            let Some(Access { operand, size, align }) = Access::of(flow, pc) else { continue };
            if let Some(near) = this.near(operand).filter(|_| this.is_good(operand, align))
                && let Some(pointer) = near.pointer
            {
                let far = near.most + operand.offset.unsigned_abs() + u64::from(size);
                this.need(PointerBounds { pointer, align, far });
            }
        }
        this
    }

    fn need(&mut self, anchor: PointerBounds) {
        match self.list.iter_mut().find(|other| other.pointer == anchor.pointer) {
            Some(other) => {
                other.align = other.align.max(anchor.align);
                other.far = other.far.max(anchor.far);
            }
            None => self.list.push(anchor),
        }
    }

    /// Returns the pointer that an access is near.
    fn near(&self, operand: &MemoryOperand) -> Option<Near> {
        let Base::Source(Source::Slot(Slot(slot))) = operand.base else { return None };
        let host = matches!(operand.space, Space::Global | Space::Const | Space::Generic);
        let near = (*self.of_slot.get(slot as usize)?)?;
        let fits = host && !operand.narrow && near.pointer.is_some() && operand.offset.unsigned_abs() <= FAR;
        fits.then_some(near)
    }

    /// Returns whether an access is valid in every thread if the assumptions hold.
    pub(crate) fn is_good(&self, operand: &MemoryOperand, align: u32) -> bool {
        self.near(operand).is_some_and(|near| {
            let zeros = align.trailing_zeros();
            near.zeros >= zeros && operand.offset.trailing_zeros() >= zeros
        })
    }

    /// Returns whether the assumptions hold for a block shape.
    pub(crate) fn hold_for(&self, block: [u32; 3]) -> bool {
        block[0] <= self.row
    }

    /// Returns whether the assumptions hold for all pointers, for code that may access host memory
    /// at these addresses.
    ///
    /// # Safety
    /// `params` are the parameters of a launch of the kernel.
    pub(crate) unsafe fn hold(&self, params: *const u8, addresses: Range<u64>) -> bool {
        self.list.iter().all(|&PointerBounds { pointer, align, far }| {
            // SAFETY: the caller's promise. Only pointers inside the parameters are recorded.
            let pointer = unsafe { params.add(pointer as usize).cast::<u64>().read_unaligned() };
            let inside = pointer.checked_sub(far).is_some_and(|lowest| addresses.contains(&lowest))
                && pointer.checked_add(far).is_some_and(|highest| addresses.contains(&highest));
            pointer.is_multiple_of(align.into()) && inside
        })
    }
}

/// Returns the register that an instruction advances by a constant.
fn step(flow: &Flow<'_>, op: &Op, native: Option<&Native>) -> Option<(Slot, i64)> {
    let (Op::Map(map), Some(native)) = (op, native) else { return None };
    let constant = |i: usize| match *map.sources().get(i)? {
        Source::Constant(index) => Some(flow.code.constants[index as usize][0] as i64),
        Source::Slot(_) => None,
    };
    let step = match native.kind {
        Kind::Add => constant(1)?,
        Kind::Sub => constant(1)?.checked_neg()?,
        Kind::AddConstant(value) => value as i64,
        _ => return None,
    };
    match (map.destinations(), map.sources().first()) {
        (&[to], Some(&Source::Slot(from))) if to == from && native.result == Class::B64 => Some((to, step)),
        _ => None,
    }
}

/// Returns what an instruction computes.
fn result(
    flow: &Flow<'_>,
    known: &[Option<Near>],
    ranges: &Ranges,
    op: &Op,
    native: Option<&Native>,
    param_bytes: u64,
) -> Option<Near> {
    match op {
        Op::Load(load) if load.operand.space == Space::Param => {
            let Base::Source(Source::Constant(index)) = load.operand.base else { return None };
            let at = flow.code.constants[index as usize][0].wrapping_add_signed(load.operand.offset);
            let whole = load.extend.size == 8 && load.destinations.len() == 1;
            let inside = at.is_multiple_of(load.align.into()) && at.checked_add(8)? <= param_bytes;
            let pointer = Near { pointer: Some(at), most: 0, zeros: 63 };
            (whole && inside).then_some(pointer)
        }
        Op::Map(map) if map.destinations().len() == 1 => {
            let native = native?;
            let bits = |slot: Slot| flow.code.functions[flow.function].type_of(slot).bits();
            if native.result.bits() != 64 || native.result.is_float() || bits(map.destinations()[0]) != 64 {
                return None;
            }
            // An operand of 64 bits, or one that is sign- or zero-extended to 64 bits.
            let operand = |i: usize, signed: bool| match *map.sources().get(i)? {
                Source::Constant(index) => {
                    let value = flow.code.constants[index as usize][0];
                    Near::of(match native.operands[i].bits() {
                        64 => value,
                        32 if signed => i64::from(value as i32) as u64,
                        32 => u64::from(value as u32),
                        _ => return None,
                    })
                }
                Source::Slot(slot) => {
                    let range = ranges.get(slot);
                    let near = match native.operands[i].bits() {
                        64 if bits(slot) == 64 => {
                            let bound = Near { zeros: range.zeros, ..Near::up_to(range.most) };
                            known[slot.0 as usize].or(bound.bounded())?
                        }
                        32 if bits(slot) == 32 => {
                            let most = if signed { range.most.min(1 << 31) } else { range.most };
                            // A large unsigned value is a negative signed one.
                            Near { zeros: range.zeros, ..Near::up_to(most) }
                        }
                        _ => return None,
                    };
                    near.bounded()
                }
            };
            let wide =
                matches!(native.kind, Kind::MulWide { .. } | Kind::MadWide { .. } | Kind::Extend { .. });
            if !wide && native.operands[0].bits() != 64 {
                return None;
            }
            match native.kind {
                Kind::Copy => operand(0, false),
                Kind::Add => operand(0, false)?.plus(operand(1, false)?),
                Kind::AddConstant(value) => operand(0, false)?.plus(Near::of(value)?),
                Kind::Sub => operand(0, false)?.minus(operand(1, false)?),
                Kind::Mul => operand(0, false)?.times(operand(1, false)?),
                Kind::MadLow => operand(0, false)?.times(operand(1, false)?)?.plus(operand(2, false)?),
                Kind::MulWide { signed } => operand(0, signed)?.times(operand(1, signed)?),
                Kind::MadWide { signed } => {
                    operand(0, signed)?.times(operand(1, signed)?)?.plus(operand(2, signed)?)
                }
                Kind::ShiftLeft => {
                    let Source::Constant(index) = *map.sources().get(1)? else { return None };
                    let count = flow.code.constants[index as usize][0];
                    operand(0, false)?.times(Near::of(1 << u32::try_from(count).ok().filter(|&c| c < 40)?)?)
                }
                // The extension may be signed by the source or by the result.
                Kind::Extend { from: 32, signed, to: 64, .. } => operand(0, signed),
                _ => None,
            }
        }
        _ => None,
    }
}
