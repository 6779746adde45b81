//! Bounds on the values of registers: the greatest value, and a power of two that divides it.
//!
//! A loaded byte is at most 255. Four times that is at most 1020 and a multiple of four, so an
//! access to a table of 256 words at such an address needs no check. The analysis starts with no
//! knowledge. Each pass over the instructions derives bounds from earlier ones, so they are valid
//! after every pass. A register that grows in a loop gets no bound.
//!
//! The index of a thread is bounded by the row of its block and, after a branch that compares it,
//! by that comparison: after `if (t < 128)` there are only groups that have a thread below 128.

use crate::analysis::flow::{Flow, Role};
use crate::emit::integer_condition;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use gridloom_interp::code::{AtomicKind, Base, MemoryOperand, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::op::LogicOp;
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};

/// The number of passes over the instructions.
const PASSES: usize = 4;

/// Unsigned values from 0 to `most` that are multiples of a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) most: u64,
    /// The exponent of that power.
    pub(crate) zeros: u32,
}

impl Range {
    const ANY: Self = Self { most: u64::MAX, zeros: 0 };

    fn of(value: u64) -> Self {
        Self { most: value, zeros: value.trailing_zeros() }
    }

    fn up_to(most: u64) -> Self {
        Self { most, zeros: 0 }
    }

    /// Returns the range of values that are in either.
    fn join(self, other: Self) -> Self {
        Self { most: self.most.max(other.most), zeros: self.zeros.min(other.zeros) }
    }

    /// Returns the range of the lowest `bits` bits.
    fn in_bits(self, bits: u32) -> Self {
        let most = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        // Multiples of a power of two remain so when they wrap.
        if self.most <= most { self } else { Self { most, zeros: self.zeros } }
    }
}

/// An access to memory.
pub(crate) struct Access<'a> {
    pub(crate) operand: &'a MemoryOperand,
    /// The size of the whole access in bytes.
    pub(crate) size: u32,
    pub(crate) align: u32,
}

impl<'a> Access<'a> {
    /// Returns the access of an instruction.
    pub(crate) fn of(flow: &Flow<'a>, pc: Pc) -> Option<Self> {
        let (operand, size, align) = match &flow.instruction(pc).op {
            Op::Load(load) => (&load.operand, load.extend.size * load.destinations.len() as u32, load.align),
            Op::Store(store) => (&store.operand, store.size * store.sources.len() as u32, store.align),
            Op::Atomic(atomic) => match atomic.kind {
                AtomicKind::Update { size, .. } => (&atomic.operand, size, size),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { operand, size, align })
    }
}

/// What is assumed about the threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLength {
    /// The most threads of a row.
    pub(crate) most: u32,
    /// The number of threads of a group. All go where one of them goes.
    pub(crate) lanes: u32,
}

impl RowLength {
    /// The most threads of any row.
    pub(crate) const MOST: u32 = 1024;
}

/// The ranges of all slots of a function.
pub(crate) struct Ranges {
    of_slot: Vec<Range>,
    /// Whether a slot holds `%tid.x` wherever it is read.
    is_index: Vec<bool>,
    /// The constant that a slot holds wherever it is read, if it is one.
    constants: Vec<Option<u64>>,
}

impl Ranges {
    pub(crate) fn of(flow: &Flow<'_>, natives: &[Option<Native>], rows: RowLength) -> Self {
        let is_index = indices(flow, natives);
        let of_index: Vec<Range> =
            (0..flow.blocks.len()).map(|block| index_in(flow, natives, &is_index, rows, block)).collect();
        let function = &flow.code.functions[flow.function];
        let definitions = single_definitions(flow);
        let width = |slot: Slot| function.type_of(slot).bits();
        let mut known: Vec<Range> =
            (0..function.slots).map(|slot| Range::ANY.in_bits(width(Slot(slot)))).collect();
        for _ in 0..PASSES {
            // A register that is read before it is written is zero.
            let mut found: Vec<Option<Range>> = vec![None; known.len()];
            if let Some(first) = flow.blocks.first() {
                first.live_in.iter().for_each(|slot| found[slot.0 as usize] = Some(Range::of(0)));
            }
            for pc in flow.range.clone() {
                let instruction = flow.instruction(pc);
                let native = natives[(pc - flow.range.start) as usize].as_ref();
                let block = flow.blocks.partition_point(|block| block.range.end <= pc);
                let index = of_index.get(block).copied().unwrap_or(Range::ANY);
                let of = |slot: Slot| if is_index[slot.0 as usize] { index } else { known[slot.0 as usize] };
                let takes_own_bits = |a: Slot, b: Slot| takes_own_bits(flow, natives, &definitions, a, b);
                let range = result(flow, of, takes_own_bits, rows, &instruction.op, native);
                instruction.for_each_definition(&mut |slot| {
                    let range = range.in_bits(width(slot));
                    let found = &mut found[slot.0 as usize];
                    *found = Some(found.map_or(range, |found| found.join(range)));
                });
            }
            let next: Vec<Range> =
                found.iter().zip(&known).map(|(found, &known)| found.unwrap_or(known)).collect();
            if next == known {
                break;
            }
            known = next;
        }
        Self { of_slot: known, is_index, constants: constants(flow, natives) }
    }

    pub(crate) fn get(&self, Slot(slot): Slot) -> Range {
        self.of_slot[slot as usize]
    }

    /// Returns whether an access is inside memory of `bytes` bytes in every thread, whatever its
    /// base is.
    pub(crate) fn is_inside(&self, access: &Access<'_>, bytes: u64) -> bool {
        let &Access { operand, size, align } = access;
        let Base::Source(Source::Slot(slot)) = operand.base else { return false };
        let (range, offset) = (self.get(slot), operand.offset as u64);
        let aligned = 1 << range.zeros.min(31) >= align && offset.is_multiple_of(align.into());
        let end = range.most.checked_add(offset).and_then(|last| last.checked_add(size.into()));
        operand.offset >= 0 && aligned && end.is_some_and(|end| end <= bytes)
    }

    /// Returns the constant of a register that holds nothing else.
    pub(crate) fn constant(&self, Slot(slot): Slot) -> Option<u64> {
        self.constants[slot as usize]
    }

    /// Returns whether a 32-bit register holds `%tid.x` and nothing else.
    pub(crate) fn is_thread_index(&self, Slot(slot): Slot) -> bool {
        self.is_index[slot as usize]
    }
}

/// Returns the range of thread indexes in a block of the function.
fn index_in(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    is_index: &[bool],
    rows: RowLength,
    block: usize,
) -> Range {
    let row = u64::from(rows.most) - 1;
    // A thread runs if any thread of its group does.
    let most =
        compared_before(flow, natives, is_index, block).map_or(row, |most| most | u64::from(rows.lanes - 1));
    Range::up_to(most.min(row))
}

/// Returns the greatest thread index in a block that follows from the only branch leading there.
fn compared_before(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    is_index: &[bool],
    block: usize,
) -> Option<u64> {
    let before = &flow.blocks[flow.only_predecessor(block)?];
    let last = before.range.end - 1;
    let branch = flow.instruction(last);
    let (guard, target) = match (branch.guard, &branch.op) {
        (Some(guard), Op::Branch { target }) if flow.role(last) == Role::Terminator => (guard, *target),
        _ => return None,
    };
    let start = flow.blocks[block].range.start;
    // If both sides of a branch lead to the same block, the branch tells nothing.
    if (target == start) == (before.range.end == start) {
        return None;
    }
    let definition = (before.range.start..last).rev().find(|&pc| {
        let mut found = false;
        flow.instruction(pc).for_each_definition(&mut |slot| found |= slot == guard.slot);
        found
    })?;
    let instruction = flow.instruction(definition);
    let native = natives[(definition - flow.range.start) as usize].as_ref()?;
    let Op::Map(map) = &instruction.op else { return None };
    let Kind::Compare { compare, signed, combine: None, .. } = native.kind else { return None };
    if instruction.guard.is_some() || native.operands[0] != Class::B32 || map.destinations().len() != 1 {
        return None;
    }
    let condition = integer_condition(compare, signed)?;
    let index = |source: Source| matches!(source, Source::Slot(slot) if is_index[slot.0 as usize]);
    let (condition, bound) = match *map.sources() {
        [a, Source::Constant(bound)] if index(a) => (condition, bound),
        [Source::Constant(bound), b] if index(b) => (condition.swap_args(), bound),
        _ => return None,
    };
    let condition = if (target == start) != guard.negated { condition } else { condition.complement() };
    let bound = flow.code.constants[bound as usize][0] as u32;
    match condition {
        IntCC::Equal | IntCC::UnsignedLessThanOrEqual => Some(bound.into()),
        IntCC::UnsignedLessThan => bound.checked_sub(1).map(u64::from),
        // An index is not negative.
        IntCC::SignedLessThanOrEqual => u64::try_from(bound as i32).ok(),
        IntCC::SignedLessThan => u64::try_from(i64::from(bound as i32) - 1).ok(),
        _ => None,
    }
}

/// Returns for each slot whether it holds `%tid.x` wherever it is read.
fn indices(flow: &Flow<'_>, natives: &[Option<Native>]) -> Vec<bool> {
    let function = &flow.code.functions[flow.function];
    let mut written = vec![false; function.slots as usize];
    let mut is: Vec<bool> =
        (0..function.slots).map(|slot| function.type_of(Slot(slot)).bits() == 32).collect();
    // A register that is read before it is written is zero.
    if let Some(first) = flow.blocks.first() {
        first.live_in.iter().for_each(|slot| is[slot.0 as usize] = false);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for pc in flow.range.clone() {
            let instruction = flow.instruction(pc);
            let native = natives[(pc - flow.range.start) as usize].as_ref();
            let fits = instruction.guard.is_none()
                && match &instruction.op {
                    Op::Special { register, .. } => *register == SpecialReg::Dim(DimSpecial::Tid, Dim::X),
                    Op::Map(map) => {
                        native.is_some_and(|native| native.kind == Kind::Copy)
                            && matches!(map.sources(), [Source::Slot(Slot(slot))] if is[*slot as usize])
                    }
                    _ => false,
                };
            instruction.for_each_definition(&mut |Slot(slot)| {
                written[slot as usize] = true;
                changed |= !fits && is[slot as usize];
                is[slot as usize] &= fits;
            });
        }
    }
    is.iter().zip(written).map(|(&is, written)| is && written).collect()
}

/// Returns for each slot the constant that it holds wherever it is read.
fn constants(flow: &Flow<'_>, natives: &[Option<Native>]) -> Vec<Option<u64>> {
    let function = &flow.code.functions[flow.function];
    // Not known yet, one constant, or several values.
    let mut known: Vec<Option<Option<u64>>> = vec![None; function.slots as usize];
    // A register that is read before it is written is zero.
    if let Some(first) = flow.blocks.first() {
        first.live_in.iter().for_each(|slot| known[slot.0 as usize] = Some(None));
    }
    for pc in flow.range.clone() {
        let instruction = flow.instruction(pc);
        let native = natives[(pc - flow.range.start) as usize].as_ref();
        let value = match &instruction.op {
            Op::Map(map) if native.is_some_and(|native| native.kind == Kind::Copy) => match map.sources() {
                [Source::Constant(index)] => Some(flow.code.constants[*index as usize][0]),
                _ => None,
            },
            _ => None,
        };
        instruction.for_each_definition(&mut |slot| {
            let known = &mut known[slot.0 as usize];
            *known = Some(if known.is_none_or(|known| known == value) { value } else { None });
        });
    }
    let width = |slot: usize| function.type_of(Slot(slot as u32)).bits();
    let integer =
        known.into_iter().enumerate().map(|(slot, known)| known?.filter(|_| matches!(width(slot), 32 | 64)));
    integer.collect()
}

/// Returns for each slot the instruction that writes it, if there is only one and it always does.
fn single_definitions(flow: &Flow<'_>) -> Vec<Option<Pc>> {
    let slots = flow.code.functions[flow.function].slots as usize;
    let (mut found, mut count): (Vec<Option<Pc>>, Vec<u32>) = (vec![None; slots], vec![0; slots]);
    // A register that is read before it is written is zero.
    if let Some(first) = flow.blocks.first() {
        first.live_in.iter().for_each(|slot| count[slot.0 as usize] += 1);
    }
    for pc in flow.range.clone() {
        let instruction = flow.instruction(pc);
        instruction.for_each_definition(&mut |slot| {
            count[slot.0 as usize] += if instruction.guard.is_some() { 2 } else { 1 };
            found[slot.0 as usize] = Some(pc);
        });
    }
    found.into_iter().zip(count).map(|(pc, count)| pc.filter(|_| count == 1)).collect()
}

/// Returns the index of a thread and a mask, if the second value consists of the lowest bits of the
/// index and the first is a multiple of the index by a power of two: `2 * t - (t & 7)`.
fn takes_own_bits(
    flow: &Flow<'_>,
    natives: &[Option<Native>],
    definitions: &[Option<Pc>],
    a: Slot,
    b: Slot,
) -> Option<(Slot, u64)> {
    // The kind of the only definition of a register, and its operands if the second is a constant.
    let definition = |slot: Slot| {
        let pc = definitions[slot.0 as usize]?;
        let Op::Map(map) = &flow.instruction(pc).op else { return None };
        let native = natives[(pc - flow.range.start) as usize].as_ref()?;
        match *map.sources() {
            [Source::Slot(of), Source::Constant(index)] => {
                Some((native.kind, of, flow.code.constants[index as usize][0]))
            }
            _ => None,
        }
    };
    let (Kind::Logic(LogicOp::And), index, mask) = definition(b)? else { return None };
    let is_index = definitions[index.0 as usize].is_some_and(|pc| {
        let tid = SpecialReg::Dim(DimSpecial::Tid, Dim::X);
        matches!(flow.instruction(pc).op, Op::Special { register, .. } if register == tid)
    });
    let is_multiple = match definition(a) {
        _ if a == index => true,
        Some((Kind::ShiftLeft, of, count)) => of == index && count < 16,
        _ => false,
    };
    let is_low = mask.checked_add(1).is_some_and(u64::is_power_of_two);
    (is_index && is_multiple && is_low).then_some((index, mask))
}

/// Returns the range of an instruction's result before it is put into a register.
fn result(
    flow: &Flow<'_>,
    known: impl Fn(Slot) -> Range,
    takes_own_bits: impl Fn(Slot, Slot) -> Option<(Slot, u64)>,
    rows: RowLength,
    op: &Op,
    native: Option<&Native>,
) -> Range {
    match op {
        Op::Special { register, .. } => special(*register, rows),
        // Extended with zeros.
        Op::Load(load) if load.extend.signed_to.is_none() => Range::ANY.in_bits(8 * load.extend.size),
        Op::Map(map) if map.destinations().len() == 1 => {
            let Some(native) = native else { return Range::ANY };
            let mut operands = [Range::ANY; 4];
            for ((operand, &source), class) in operands.iter_mut().zip(map.sources()).zip(native.operands) {
                let range = match source {
                    Source::Slot(slot) => known(slot),
                    Source::Constant(index) => Range::of(flow.code.constants[index as usize][0]),
                };
                *operand = range.in_bits(class.bits());
            }
            let constant = |i: usize| match map.sources().get(i) {
                Some(Source::Constant(index)) => Some(flow.code.constants[*index as usize][0]),
                _ => None,
            };
            let range = match (native.kind, map.sources()) {
                (Kind::Sub, &[Source::Slot(a), Source::Slot(b)]) => {
                    let [a_range, b_range, ..] = operands;
                    let zeros = a_range.zeros.min(b_range.zeros);
                    // It does not fall where the index rises.
                    takes_own_bits(a, b).map(|(index, mask)| {
                        let less = known(index).most & mask;
                        Range { most: a_range.most.saturating_sub(less), zeros }
                    })
                }
                _ => computed(native, operands, constant),
            };
            range.unwrap_or(Range::ANY).in_bits(native.result.bits())
        }
        _ => Range::ANY,
    }
}

/// Returns the range of a function of values, or `None` if nothing is known or it could have
/// wrapped.
fn computed(
    native: &Native,
    [a, b, c, _]: [Range; 4],
    constant: impl Fn(usize) -> Option<u64>,
) -> Option<Range> {
    let bits = native.result.bits();
    if native.result.is_float() || native.operands[0].is_float() {
        return None;
    }
    let multiple = |zeros: u32| Range { most: u64::MAX, zeros: zeros.min(bits) };
    // A sum or product that can wrap remains a multiple.
    let sum = |a: Range, b: Range| match a.most.checked_add(b.most) {
        Some(most) => Range { most, zeros: a.zeros.min(b.zeros) },
        None => multiple(a.zeros.min(b.zeros)),
    };
    let product = |a: Range, b: Range| match a.most.checked_mul(b.most) {
        Some(most) => Range { most, zeros: a.zeros.saturating_add(b.zeros) },
        None => multiple(a.zeros.saturating_add(b.zeros)),
    };
    // A large value is negative if it is read as signed.
    let positive = |range: Range| range.most < 1 << (native.operands[0].bits() - 1);
    Some(match native.kind {
        Kind::Copy => a,
        Kind::Add => sum(a, b),
        Kind::AddConstant(value) => sum(a, Range::of(value)),
        Kind::Mul => product(a, b),
        Kind::MadLow => sum(product(a, b).in_bits(bits), c),
        Kind::MulWide { signed } if !signed || positive(a) && positive(b) => product(a, b),
        Kind::MadWide { signed } if !signed || positive(a) && positive(b) => sum(product(a, b), c),
        Kind::ShiftLeft => product(a, Range::of(1 << constant(1).filter(|&count| count < u64::from(bits))?)),
        Kind::ShiftRight { signed: false } => {
            let count = constant(1).filter(|&count| count < u64::from(bits));
            Range::up_to(a.most >> count.unwrap_or(0))
        }
        Kind::Logic(LogicOp::And) => Range { most: a.most.min(b.most), zeros: a.zeros.max(b.zeros) },
        Kind::Rem { signed: false } => {
            let last = constant(1)?.checked_sub(1)?;
            Range::up_to(a.most.min(last))
        }
        Kind::Min { signed: false } => Range { most: a.most.min(b.most), zeros: a.zeros.min(b.zeros) },
        Kind::Extend { from, signed, to, to_signed } => {
            let (a, wide) = (a.in_bits(from), from.min(to));
            // The value is unchanged if no sign bit is extended and nothing is cut off.
            let same = a.most < 1 << (wide - 1) || !signed && !to_signed && from <= to;
            return same.then_some(a);
        }
        Kind::Select => a.join(b),
        _ => return None,
    })
}

fn special(register: SpecialReg, rows: RowLength) -> Range {
    match register {
        SpecialReg::Dim(DimSpecial::Tid, Dim::X) => Range::up_to(u64::from(rows.most) - 1),
        SpecialReg::Dim(DimSpecial::NTid, Dim::X) => Range::up_to(rows.most.into()),
        SpecialReg::Dim(DimSpecial::Tid, Dim::Z) => Range::up_to(63),
        SpecialReg::Dim(DimSpecial::Tid, _) => Range::up_to(1023),
        SpecialReg::Dim(DimSpecial::NTid, _) => Range::up_to(1024),
        SpecialReg::Dim(DimSpecial::CtaId, Dim::X) => Range::up_to((1 << 31) - 2),
        SpecialReg::Dim(DimSpecial::CtaId, _) => Range::up_to(65_534),
        SpecialReg::Dim(DimSpecial::NCtaId, Dim::X) => Range::up_to((1 << 31) - 1),
        SpecialReg::Dim(DimSpecial::NCtaId, _) => Range::up_to(65_535),
        SpecialReg::Plain(PlainSpecial::LaneId | PlainSpecial::WarpId) => Range::up_to(31),
        _ => Range::ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(kind: Kind, class: Class, result: Class) -> Native {
        Native { kind, operands: [class; 4], result }
    }

    fn range(most: u64, zeros: u32) -> Range {
        Range { most, zeros }
    }

    #[track_caller]
    fn gives(kind: Kind, operands: [Range; 2], expected: Option<Range>) {
        let native = native(kind, Class::B32, Class::B32);
        let found = computed(&native, [operands[0], operands[1], Range::ANY, Range::ANY], |_| None);
        assert_eq!(found.map(|range| range.in_bits(32)), expected);
    }

    #[test]
    fn a_product_of_a_byte_is_bounded_and_a_multiple() {
        gives(Kind::Mul, [Range::up_to(255), Range::of(4)], Some(range(1020, 2)));
        gives(Kind::Add, [range(1020, 2), Range::of(64)], Some(range(1084, 2)));
    }

    #[test]
    fn what_may_wrap_is_not_bounded() {
        gives(Kind::Mul, [Range::up_to(1 << 31), Range::of(4)], Some(range(u32::MAX.into(), 2)));
        gives(Kind::Sub, [Range::of(1), Range::of(2)], None);
    }

    #[test]
    fn what_may_be_negative_is_not_bounded_when_it_is_widened() {
        let wide = native(Kind::MulWide { signed: true }, Class::B32, Class::B64);
        let of = |most| computed(&wide, [Range::up_to(most), Range::of(4), Range::ANY, Range::ANY], |_| None);
        assert_eq!(of(u32::MAX.into()), None);
        assert_eq!(of(i32::MAX as u64), Some(range(4 * i32::MAX as u64, 2)));
        let extend = Kind::Extend { from: 32, signed: true, to: 64, to_signed: true };
        let extend = native(extend, Class::B32, Class::B64);
        let of = |most| computed(&extend, [Range::up_to(most), Range::ANY, Range::ANY, Range::ANY], |_| None);
        assert_eq!((of(1 << 31), of(255)), (None, Some(Range::up_to(255))));
    }

    #[test]
    fn a_count_that_is_not_known_shifts_anywhere() {
        gives(Kind::ShiftLeft, [Range::up_to(1), Range::up_to(4)], None);
    }
}
