//! Vectors of 64-bit addresses that are 32-bit indices times a size.
//!
//! An index into an array in shared memory is multiplied to 64 bits (`mul.wide`) and added to the
//! address of the array. An access needs only 32 bits of the sum. It is made, and checked, from the
//! vector of indices: half as many vectors as of addresses, and no test of upper halves or of the
//! alignment. The addresses themselves are then not computed.

use super::Emitter;
use super::address::{Access, NEAR};
use super::scattered::Scattered;
use super::value::Val;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::lanes::{Slot, Source};

/// The largest size of an element, and the farthest that an array is from the start of the memory.
const LARGEST: u64 = 16;
const FARTHEST: i64 = 1 << 24;

/// What addresses in vectors were computed from: `index · size + offset + base`.
#[derive(Clone)]
pub(super) struct Indices {
    /// The indices, in vectors.
    parts: Vec<Value>,
    /// Whether they were extended with their sign.
    signed: bool,
    /// A power of two.
    size: u64,
    offset: i64,
    /// What is added beside that, in all threads.
    base: Option<Value>,
    /// The greatest index, as an unsigned number, if it is known and no sign bit is set.
    most: Option<u32>,
}

impl Emitter<'_> {
    /// Records what the 64-bit results of an instruction were computed from.
    pub(super) fn note_indices(
        &mut self,
        native: &Native,
        operands: &[Val],
        sources: &[Source],
        result: &Val,
    ) {
        let Val::Many(results) = result else { return };
        if native.result != Class::B64 {
            return;
        }
        let constant = |this: &Self, i: usize| match operands.get(i) {
            Some(&Val::One(value)) => this.constant_of(value),
            _ => None,
        };
        let known = |this: &Self, i: usize| match operands.get(i) {
            Some(Val::Many(parts)) => this.indices.get(parts.first()?).cloned(),
            _ => None,
        };
        let most = match sources.first() {
            Some(&Source::Slot(slot)) => u32::try_from(self.plan.ranges.get(slot).most).ok(),
            _ => None,
        };
        let most = most.filter(|&most| most <= i32::MAX as u32);
        let indices = match native.kind {
            Kind::MulWide { signed } if native.operands[0] == Class::B32 => {
                let (Some(Val::Many(parts)), Some(size)) = (operands.first(), constant(self, 1)) else {
                    return;
                };
                Indices { parts: parts.clone(), signed, size, offset: 0, base: None, most }
            }
            Kind::Extend { from: 32, signed, to: 64, .. } if native.operands[0] == Class::B32 => {
                let Some(Val::Many(parts)) = operands.first() else { return };
                Indices { parts: parts.clone(), signed, size: 1, offset: 0, base: None, most }
            }
            // In a register of 16 bits, the upper ones of each word are zero.
            Kind::Extend { from: 16, signed: false, to: 64, .. } if native.operands[0] == Class::B16 => {
                let Some(Val::Many(parts)) = operands.first() else { return };
                Indices { parts: parts.clone(), signed: true, size: 1, offset: 0, base: None, most }
            }
            Kind::ShiftLeft => {
                let (Some(known), Some(by @ 0..5)) = (known(self, 0), constant(self, 1)) else { return };
                if known.base.is_some() {
                    return;
                }
                Indices { size: known.size << by, offset: known.offset << by, ..known }
            }
            Kind::AddConstant(more) => {
                let Some(known) = known(self, 0) else { return };
                Indices { offset: known.offset.wrapping_add(more as i64), ..known }
            }
            Kind::Add => {
                let found = [(0, 1), (1, 0)].map(|(a, b)| match operands.get(b) {
                    Some(&Val::One(value)) => Some((known(self, a)?, value)),
                    _ => None,
                });
                let Some((known, value)) = found.into_iter().flatten().next() else { return };
                let is_far = |more: u64| (more as i64).unsigned_abs() >= FARTHEST as u64;
                match (self.constant_of(value), known.base) {
                    // The address of a variable.
                    (Some(more), None) if is_far(more) => Indices { base: Some(value), ..known },
                    (Some(more), _) => Indices { offset: known.offset.wrapping_add(more as i64), ..known },
                    (None, None) => Indices { base: Some(value), ..known },
                    _ => return,
                }
            }
            _ => return,
        };
        let fits = indices.size.is_power_of_two()
            && indices.size <= LARGEST
            && indices.offset.unsigned_abs() < FARTHEST as u64
            && indices.parts.iter().all(|&part| self.b.func.dfg.value_type(part) == self.length.by(I32));
        if let (Some(&first), true) = (results.first(), fits) {
            self.indices.insert(first, indices);
        }
    }

    /// Records that a register of 64 bits, just written in all threads, holds these bytes or
    /// halves.
    pub(super) fn note_loaded_indices(&mut self, slot: Slot, parts: Vec<Value>) {
        if self.storage(slot) != Class::B64 {
            return;
        }
        if let Val::Many(results) = self.get(Source::Slot(slot), Class::B64)
            && let (Some(&first), true) = (results.first(), results.len() == 2 * parts.len())
        {
            let most = u32::try_from(self.plan.ranges.get(slot).most).ok();
            let indices = Indices { parts, signed: true, size: 1, offset: 0, base: None, most };
            self.indices.insert(first, indices);
        }
    }

    /// Returns addresses in shared memory in 32 bits, if what they were computed from is known, and
    /// vectors that are not zero where an access is outside. Whatever the operands are, the
    /// addresses are right in the low 32 bits.
    pub(super) fn words_of_indices(
        &mut self,
        access: Access,
        addresses: &[Value],
        offset: i64,
    ) -> Option<(Vec<Value>, Vec<Value>)> {
        let Indices { parts, signed, size, offset: start, base: None, .. } =
            self.indices.get(addresses.first()?)?.clone()
        else {
            return None;
        };
        let offset = start.checked_add(offset).filter(|offset| offset.abs() < FARTHEST)?;
        let more = offset / size as i64;
        // A sum with an unsigned index must not wrap around to a good one.
        if offset % size as i64 != 0
            || size % u64::from(access.align) != 0
            || !signed && more > 0
            || 2 * parts.len() != addresses.len()
        {
            return None;
        }
        let shift = i64::from(size.trailing_zeros());
        let end = self.shared_limit(access.size, shift);
        let end = self.b.ins().ireduce(I32, end);
        let end = self.b.ins().splat(self.length.by(I32), end);
        let (mut words, mut bad) = (Vec::new(), Vec::new());
        for part in parts {
            let index = match more {
                0 => part,
                more => {
                    let more = self.vector_of(more as u32 as u64, Class::B32);
                    self.b.ins().iadd(part, more)
                }
            };
            bad.push(self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, end));
            words.push(if shift == 0 { index } else { self.b.ins().ishl_imm_u(index, shift) });
        }
        Some((words, bad))
    }

    /// Returns addresses as words from one address, if they were computed so and all are near it,
    /// and checks that address.
    pub(super) fn checked_table(
        &mut self,
        access: Access,
        addresses: &[Value],
        offset: i64,
    ) -> Option<Scattered> {
        let places = self.near_words(addresses, offset)?;
        let &Scattered::Near { start, log, offset, most: Some(most), .. } = &places else { return None };
        if i64::from(most) << log > NEAR || (1u32 << log) < access.align {
            return None;
        }
        let valid = self.is_valid(access, start, offset.into(), access.size, 0);
        self.require(valid, false);
        Some(places)
    }

    /// Returns addresses as signed words from one address, if they were computed so.
    pub(super) fn near_words(&mut self, addresses: &[Value], offset: i64) -> Option<Scattered> {
        let Indices { parts, signed, size: size @ 1..=8, offset: start, base: Some(base), most } =
            self.indices.get(addresses.first()?)?.clone()
        else {
            return None;
        };
        let offset = start.checked_add(offset).filter(|offset| offset.abs() < FARTHEST)?;
        if 2 * parts.len() != addresses.len() {
            return None;
        }
        let (log, offset) = (size.trailing_zeros(), offset as i32);
        if signed || most.is_some() {
            return Some(Scattered::Near { start: base, words: parts, log, offset, most });
        }
        // An unsigned index is a signed one and the half of all indices.
        let half = 1u64 << 31;
        let start = self.b.ins().iadd_imm_s(base, (half << log) as i64);
        let sign = self.vector_of(half, Class::B32);
        let words = parts.into_iter().map(|part| self.b.ins().bxor(part, sign)).collect();
        Some(Scattered::Near { start, words, log, offset, most: None })
    }
}
