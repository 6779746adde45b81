//! Finds registers whose values in the threads of a group are known distances apart, though not by
//! a constant step.
//!
//! The first thread of a group has an index that is a multiple of eight. So in groups of eight
//! `2 * t - (t & 1)` is 0, 1, 4, 5, 8, 9, 12 and 13 more than in the first thread. Sorting
//! networks, butterflies and swizzled tiles access shared memory at such addresses. An access then
//! needs the address of the first thread alone, and threads that are neighbours in memory are moved
//! together.
//!
//! Only registers that are written once, as a function of `%tid.x`, constants and registers of that
//! kind, are considered. Their values are then the same wherever a thread reads them.

use crate::analysis::flow::Flow;
use crate::analysis::range::RowLength;
use crate::native::{Kind, Native};
use gridloom_interp::code::Op;
use gridloom_interp::lanes::Source;
use gridloom_ptx::op::LogicOp;
use gridloom_ptx::{Dim, DimSpecial, SpecialReg};

/// The number of threads of the groups that are analysed.
pub(crate) const LANES: usize = 8;

/// The greatest distance between two threads.
const FARTHEST: i64 = 1 << 20;

/// How far the value of each thread is from that of the first.
pub(crate) type Offsets = [i32; LANES];

/// A value that is a base, the same in all threads, plus an offset that is known for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    offsets: [i64; LANES],
    /// The greatest value of the base, if the values of all threads are known not to wrap.
    most: Option<u64>,
    /// The base is a multiple of two to this power: 63 for zero.
    zeros: u32,
}

impl Known {
    fn uniform(most: Option<u64>, zeros: u32) -> Self {
        Self { offsets: [0; LANES], most, zeros }
    }

    fn constant(value: u64) -> Self {
        Self::uniform(Some(value), value.trailing_zeros().min(63))
    }

    fn is_uniform(&self) -> bool {
        self.offsets == [0; LANES]
    }

    /// Returns whether the base has none of the bits that the offsets have.
    fn is_aligned(&self) -> bool {
        let most = self.offsets.iter().copied().max().unwrap_or(0);
        self.offsets.iter().all(|&offset| offset >= 0) && (self.zeros >= 62 || most < 1 << self.zeros)
    }

    /// Drops the bound unless every thread's value fits in so many bits.
    fn in_bits(self, bits: u32) -> Option<Self> {
        let (least, most) = (self.offsets.iter().min()?, self.offsets.iter().max()?);
        if *least < -FARTHEST || *most > FARTHEST {
            return None;
        }
        let fits = |first: &u64| {
            let last = first.checked_add_signed(*most);
            *least >= 0 && last.is_some_and(|last| bits >= 64 || last >> bits == 0)
        };
        Some(Self { most: self.most.filter(fits), ..self })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            offsets: std::array::from_fn(|lane| self.offsets[lane] + other.offsets[lane]),
            most: self.most.zip(other.most).and_then(|(a, b)| a.checked_add(b)),
            zeros: self.zeros.min(other.zeros),
        }
    }

    fn minus(self, other: Self) -> Self {
        // Without the values only the difference to zero is known not to wrap.
        let most = if other.zeros >= 63 { self.most } else { None };
        let offsets = std::array::from_fn(|lane| self.offsets[lane] - other.offsets[lane]);
        Self { offsets, most, zeros: self.zeros.min(other.zeros) }
    }

    fn times(self, factor: u64) -> Option<Self> {
        let by = i64::try_from(factor).ok().filter(|by| (0..FARTHEST).contains(by))?;
        Some(Self {
            offsets: self.offsets.map(|offset| offset * by),
            most: self.most.and_then(|most| most.checked_mul(factor)),
            zeros: (self.zeros + factor.trailing_zeros()).min(63),
        })
    }

    /// Returns the result of a function that acts on each bit, or moves all of them down. The bits
    /// of the base and of the offsets must be apart.
    fn bitwise(self, most: Option<u64>, zeros: u32, function: impl Fn(u64) -> u64) -> Option<Self> {
        if !self.is_aligned() {
            return None;
        }
        let offsets = self.offsets.map(|offset| function(offset as u64) as i64);
        Some(Self { offsets, most, zeros })
    }
}

/// Returns for each slot the offsets of the threads of a group from the first, if they are known
/// and not all the same. Registers that threads of a group may hold at different times are
/// `divided`.
pub(crate) fn of(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    divided: &[bool],
    lanes: u32,
) -> Vec<Option<Offsets>> {
    let function = &flow.code.functions[flow.function];
    let slots = function.slots as usize;
    if lanes as usize != LANES || !flow.is_kernel {
        return vec![None; slots];
    }
    let mut written = vec![0u32; slots];
    // A register that is read before it is written is zero.
    if let Some(first) = flow.blocks.first() {
        first.live_in.iter().for_each(|slot| written[slot.0 as usize] += 1);
    }
    for pc in flow.range.clone() {
        flow.instruction(pc).for_each_definition(&mut |slot| written[slot.0 as usize] += 1);
    }
    let mut known: Vec<Option<Known>> = vec![None; slots];
    for pc in flow.range.clone() {
        let instruction = flow.instruction(pc);
        if instruction.guard.is_some() {
            continue;
        }
        let native = natives[(pc - flow.range.start) as usize].as_ref();
        let (slot, found) = match &instruction.op {
            Op::Special { destination, register } => {
                let found = match register {
                    SpecialReg::Dim(DimSpecial::Tid, Dim::X) => {
                        let offsets = std::array::from_fn(|lane| lane as i64);
                        Some(Known {
                            offsets,
                            most: Some(u64::from(RowLength::MOST) - 1),
                            zeros: LANES.trailing_zeros(),
                        })
                    }
                    SpecialReg::Dim(DimSpecial::CtaId | DimSpecial::NTid | DimSpecial::NCtaId, _) => {
                        Some(Known::uniform(None, 0))
                    }
                    _ => None,
                };
                (*destination, found)
            }
            Op::Map(map) if map.destinations().len() == 1 => {
                let found = native.and_then(|native| {
                    let operand = |i: usize| match *map.sources().get(i)? {
                        Source::Constant(index) => {
                            let value = flow.code.constants[index as usize][0];
                            let bits = native.operands[i].bits();
                            Some(Known::constant(if bits < 64 { value & ((1 << bits) - 1) } else { value }))
                        }
                        Source::Slot(slot) => {
                            let same = function.type_of(slot).bits() == native.operands[i].bits();
                            known[slot.0 as usize].filter(|_| same)
                        }
                    };
                    let constant = |i: usize| match map.sources().get(i) {
                        Some(Source::Constant(index)) => Some(flow.code.constants[*index as usize][0]),
                        _ => None,
                    };
                    computed(native, operand, constant)?.in_bits(native.result.bits())
                });
                (map.destinations()[0], found)
            }
            _ => continue,
        };
        let width = native.map_or(32, |native| native.result.bits());
        let is_whole = function.type_of(slot).bits() == width;
        if written[slot.0 as usize] == 1 && !divided[slot.0 as usize] && is_whole {
            known[slot.0 as usize] = found;
        }
    }
    let from_first = |known: Known| known.offsets.map(|offset| (offset - known.offsets[0]) as i32);
    let varies = |known: &Known| !known.is_uniform();
    known.into_iter().map(|known| known.filter(varies).map(from_first)).collect()
}

fn computed(
    native: &Native,
    operand: impl Fn(usize) -> Option<Known>,
    constant: impl Fn(usize) -> Option<u64>,
) -> Option<Known> {
    let bits = native.result.bits();
    let (from, is_word) = (native.operands[0].bits(), matches!(bits, 32 | 64));
    if native.result.is_float() || native.operands[0].is_float() || !is_word || !matches!(from, 32 | 64) {
        return None;
    }
    // A product of which one factor is a constant.
    let product = || match (constant(0), constant(1)) {
        (_, Some(factor)) => operand(0)?.times(factor),
        (Some(factor), None) => operand(1)?.times(factor),
        (None, None) => None,
    };
    // A value that is widened must not have wrapped, nor be negative.
    let widened = |known: Known| known.in_bits(31).filter(|known| known.most.is_some());
    let wide_product = || match (constant(0), constant(1)) {
        (_, Some(factor)) if factor < 1 << 31 => widened(operand(0)?)?.times(factor),
        (Some(factor), None) if factor < 1 << 31 => widened(operand(1)?)?.times(factor),
        _ => None,
    };
    // The operand that varies and the constant beside it.
    let with_constant = || match (constant(0), constant(1)) {
        (_, Some(value)) => Some((operand(0)?, value)),
        (Some(value), None) => Some((operand(1)?, value)),
        (None, None) => None,
    };
    match native.kind {
        Kind::Copy => operand(0),
        Kind::Add => Some(operand(0)?.plus(operand(1)?)),
        Kind::AddConstant(value) => Some(operand(0)?.plus(Known::constant(value))),
        Kind::Sub => Some(operand(0)?.minus(operand(1)?)),
        Kind::Mul => product(),
        Kind::MadLow => Some(product()?.plus(operand(2)?)),
        Kind::MulWide { .. } if from == 32 => wide_product(),
        Kind::MadWide { .. } if from == 32 => Some(wide_product()?.plus(operand(2)?)),
        Kind::ShiftLeft => {
            let count = constant(1).filter(|&count| count < 20)?;
            operand(0)?.times(1 << count)
        }
        Kind::ShiftRight { signed: false } => {
            let count = constant(1).filter(|&count| count < u64::from(bits))? as u32;
            let of = operand(0).filter(|of| of.zeros >= count)?;
            let zeros = if of.zeros >= 63 { 63 } else { of.zeros - count };
            of.bitwise(of.most.map(|most| most >> count), zeros, |value| value >> count)
        }
        Kind::Logic(LogicOp::And) => {
            let (of, mask) = with_constant()?;
            let is_zero = of.zeros >= 63 || mask >> of.zeros == 0;
            let most = Some(of.most.unwrap_or(u64::MAX).min(mask));
            let zeros = if is_zero { 63 } else { of.zeros.max(mask.trailing_zeros().min(63)) };
            of.bitwise(most, zeros, |value| value & mask)
        }
        Kind::Logic(op @ (LogicOp::Or | LogicOp::Xor)) => {
            let (of, other) = with_constant()?;
            // The lowest bits change the offsets, the others the base.
            let low = if of.zeros >= 63 { u64::MAX } else { (1 << of.zeros) - 1 };
            let high = other & !low;
            let most = of.most.and_then(|most| most.checked_add(high));
            of.bitwise(most, of.zeros.min(high.trailing_zeros().min(63)), |value| match op {
                LogicOp::Or => value | other & low,
                _ => value ^ other & low,
            })
        }
        Kind::Extend { from: 32, to: 64, .. } => widened(operand(0)?),
        Kind::Extend { from: 32, to: 32, .. } if bits == 32 => operand(0),
        Kind::Extend { from: 64, to: 32, .. } if bits == 32 => {
            operand(0)?.in_bits(32).filter(|known| known.most.is_some())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Class;

    fn apply(kind: Kind, a: Known, b: Known) -> Option<Known> {
        let native = Native { kind, operands: [Class::B32; 4], result: Class::B32 };
        let value = |known: &Known| known.most.filter(|_| known.is_uniform());
        computed(&native, |i| Some([a, b][i]), |i| [a, b].get(i).and_then(value).filter(|_| i == 1))?
            .in_bits(32)
    }

    fn index() -> Known {
        Known { offsets: std::array::from_fn(|lane| lane as i64), most: Some(1023), zeros: 3 }
    }

    #[test]
    fn partners_of_a_sorting_network_are_known_distances_apart() {
        let low = apply(Kind::Logic(LogicOp::And), index(), Known::constant(1)).unwrap();
        assert_eq!((low.offsets, low.zeros), ([0, 1, 0, 1, 0, 1, 0, 1], 63));
        let twice = apply(Kind::ShiftLeft, index(), Known::constant(1)).unwrap();
        let place = twice.minus(low).in_bits(32).unwrap();
        assert_eq!((place.offsets, place.most), ([0, 1, 4, 5, 8, 9, 12, 13], Some(2046)));
    }

    #[test]
    fn an_exchange_with_a_neighbour_goes_back_and_forth() {
        let other = apply(Kind::Logic(LogicOp::Xor), index(), Known::constant(1)).unwrap();
        assert_eq!((other.offsets, other.most), ([1, 0, 3, 2, 5, 4, 7, 6], Some(1023)));
        let far = apply(Kind::Logic(LogicOp::Xor), index(), Known::constant(8 + 7)).unwrap();
        assert_eq!((far.offsets, far.most, far.zeros), ([7, 6, 5, 4, 3, 2, 1, 0], Some(1031), 3));
    }

    #[test]
    fn bits_that_the_base_may_have_are_not_known() {
        let shifted = index().plus(Known::uniform(None, 0));
        assert_eq!(apply(Kind::Logic(LogicOp::And), shifted, Known::constant(1)), None);
    }

    #[test]
    fn what_may_wrap_is_not_widened() {
        let wide =
            Native { kind: Kind::MulWide { signed: false }, operands: [Class::B32; 4], result: Class::B64 };
        let of = |known: Known| computed(&wide, |_| Some(known), |i| (i == 1).then_some(4));
        assert_eq!(of(index()).map(|known| known.offsets[7]), Some(28));
        assert_eq!(of(Known { most: None, ..index() }), None);
    }
}
