//! Scattered accesses with one or two instructions for each vector, where vectors are wide: gathers
//! and scatters. They access nothing in threads outside a mask, so that no branch is needed.

use super::Emitter;
use super::address::{Access, NEAR};
use super::value::Val;
use crate::native::Class;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Load, MemoryOperand, Store};
use gridloom_interp::compiled::Machine;
use gridloom_interp::lanes::Source;
use std::mem::offset_of;

/// Where the accesses of a group go, checked in the threads that make them.
pub(super) enum Scattered {
    /// Signed words, shifted by a constant, from one address, and an offset. They are no less than
    /// zero and no greater than `most`, if that is known.
    Near { start: Value, words: Vec<Value>, log: u32, offset: i32, most: Option<u32> },
    /// Addresses, and an offset.
    Far { hosts: Vec<Value>, offset: i32 },
}

impl Scattered {
    fn with_offset(&self, more: i32) -> Self {
        match self {
            Self::Near { start, words, log, offset, most } => {
                let offset = offset + more;
                Self::Near { start: *start, words: words.clone(), log: *log, offset, most: *most }
            }
            Self::Far { hosts, offset } => Self::Far { hosts: hosts.clone(), offset: offset + more },
        }
    }
}

impl Emitter<'_> {
    /// Returns where an access goes in the threads where a guard holds, or in all, if it is made by
    /// gathers or scatters.
    pub(super) fn scattered(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: Option<&Val>,
    ) -> Option<Scattered> {
        if !self.is_wide() || (self.lanes as usize) < self.per_vector(Class::B32) {
            return None;
        }
        let short = i32::try_from(offset).ok().filter(|offset| offset.abs() < 1 << 30);
        match (access.space, address) {
            (Space::Shared, _) => {
                let masks = guard.map(|guard| self.vectors(guard, Class::Pred));
                let words = self.shared_words(access, operand, address, offset, masks.as_deref())?;
                Some(self.scattered_in_shared(words))
            }
            (Space::Global, &Val::Affine(first, step))
                if !access.narrow
                    && step % i64::from(access.align) == 0
                    && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes) =>
            {
                if !self.plan.bounds_checks.is_good(operand, access.align) {
                    self.check_host(access, first, offset, access.size, 0);
                }
                let per = self.per_vector(Class::B32);
                let words = (0..self.lanes as usize / per).map(|part| {
                    self.vector_of_each(Class::B32, |lane| (step * (part * per + lane) as i64) as u64)
                });
                let (words, offset) = (words.collect(), short?);
                Some(Scattered::Near { words, start: first, log: 0, offset, most: None })
            }
            (Space::Global | Space::Const | Space::Generic, _) if !access.narrow => {
                let good = self.plan.bounds_checks.is_good(operand, access.align);
                let hosts = self.vectors(address, Class::B64);
                if !good
                    && guard.is_none()
                    && let Some(near) = self.checked_table(access, &hosts, offset)
                {
                    return Some(near);
                }
                match guard {
                    _ if good => {
                        if let Some(near) = self.near_words(&hosts, offset) {
                            return Some(near);
                        }
                    }
                    Some(guard) => self.check_some(access, &hosts, offset, guard),
                    None => {
                        if !self.check_group(access, operand, &Val::Many(hosts.clone()), offset) {
                            return None;
                        }
                    }
                }
                Some(match short {
                    Some(offset) => Scattered::Far { hosts, offset },
                    None => {
                        let more = self.vector_of(offset as u64, Class::B64);
                        let hosts = hosts.into_iter().map(|part| self.b.ins().iadd(part, more)).collect();
                        Scattered::Far { hosts, offset: 0 }
                    }
                })
            }
            _ => None,
        }
    }

    /// Returns where accesses to shared memory go, for addresses that are checked.
    pub(super) fn scattered_in_shared(&mut self, words: Vec<Value>) -> Scattered {
        let start = self.machine_field(offset_of!(Machine, shared), I64);
        Scattered::Near { start, words, log: 0, offset: 0, most: None }
    }

    /// Returns the masks of a guard, or of all threads.
    fn masks_or_all(&mut self, guard: Option<&Val>, class: Class) -> Vec<Value> {
        match guard {
            Some(guard) => self.masks(guard, class),
            None => {
                let all = self.vector_of(u64::MAX, class.untyped());
                vec![all; self.lanes as usize / self.per_vector(class)]
            }
        }
    }

    /// Loads words, or elements of 64 bits.
    pub(super) fn gather_elements(
        &mut self,
        places: &Scattered,
        class: Class,
        guard: Option<&Val>,
    ) -> Vec<Value> {
        let masks = self.masks_or_all(guard, class);
        match (places, class) {
            (Scattered::Near { start, words, log, offset, .. }, Class::B32) => {
                let [log, offset] =
                    [i64::from(*log), i64::from(*offset)].map(|n| self.b.ins().iconst(I64, n));
                let ty = self.length.by(I32);
                let each = words.iter().zip(masks);
                each.map(|(&words, mask)| {
                    self.operation(Intrinsic::GatherNear, &[*start, words, log, mask, offset], ty)
                })
                .collect()
            }
            (Scattered::Near { start, words, log, offset, .. }, _) => {
                let hosts = self.far_of(*start, words, *log);
                self.gather_elements(&Scattered::Far { hosts, offset: *offset }, class, guard)
            }
            (Scattered::Far { hosts, offset }, Class::B32) => {
                let masks = self.masks_or_all(guard, Class::B64);
                let offset = self.b.ins().iconst(I64, i64::from(*offset));
                let ty = self.length.by(I32);
                let each = hosts.chunks(2).zip(masks.chunks(2));
                each.map(|(hosts, masks)| {
                    let args = [hosts[0], hosts[1], masks[0], masks[1], offset];
                    self.operation(Intrinsic::GatherWords, &args, ty)
                })
                .collect()
            }
            (Scattered::Far { hosts, offset }, _) => {
                let offset = self.b.ins().iconst(I64, i64::from(*offset));
                let ty = self.length.by(I64);
                let each = hosts.iter().zip(masks);
                each.map(|(&host, mask)| self.operation(Intrinsic::GatherQuads, &[host, mask, offset], ty))
                    .collect()
            }
        }
    }

    /// Stores words, or elements of 64 bits. Of several to one place, that of the last thread
    /// stays.
    pub(super) fn scatter_elements(
        &mut self,
        places: &Scattered,
        class: Class,
        guard: Option<&Val>,
        values: &[Value],
    ) {
        let masks = self.masks_or_all(guard, class);
        match (places, class) {
            (Scattered::Near { start, words, log, offset, .. }, Class::B32) => {
                let [log, offset] =
                    [i64::from(*log), i64::from(*offset)].map(|n| self.b.ins().iconst(I64, n));
                for ((&words, mask), &value) in words.iter().zip(masks).zip(values) {
                    self.intrinsic(Intrinsic::ScatterNear, &[value, *start, words, log, mask, offset], None);
                }
            }
            (Scattered::Near { start, words, log, offset, .. }, _) => {
                let hosts = self.far_of(*start, words, *log);
                self.scatter_elements(&Scattered::Far { hosts, offset: *offset }, class, guard, values);
            }
            (Scattered::Far { hosts, offset }, Class::B32) => {
                let masks = self.masks_or_all(guard, Class::B64);
                let offset = self.b.ins().iconst(I64, i64::from(*offset));
                for ((hosts, masks), &value) in hosts.chunks(2).zip(masks.chunks(2)).zip(values) {
                    let args = [value, hosts[0], hosts[1], masks[0], masks[1], offset];
                    self.intrinsic(Intrinsic::ScatterWords, &args, None);
                }
            }
            (Scattered::Far { hosts, offset }, _) => {
                let offset = self.b.ins().iconst(I64, i64::from(*offset));
                for ((&host, mask), &value) in hosts.iter().zip(masks).zip(values) {
                    self.intrinsic(Intrinsic::ScatterQuads, &[value, host, mask, offset], None);
                }
            }
        }
    }

    /// Returns addresses of 64 bits for signed words from one address.
    fn far_of(&mut self, start: Value, words: &[Value], log: u32) -> Vec<Value> {
        let start = self.b.ins().splat(self.length.by(I64), start);
        let mut hosts = Vec::new();
        for &part in words {
            for half in [self.b.ins().swiden_low(part), self.b.ins().swiden_high(part)] {
                let half = if log == 0 { half } else { self.b.ins().ishl_imm_u(half, i64::from(log)) };
                hosts.push(self.b.ins().iadd(half, start));
            }
        }
        hosts
    }

    /// Loads by gathers in the threads where a guard holds, or in all. Registers are written where
    /// another guard holds, or in all threads. Returns whether it did.
    pub(super) fn load_scattered(
        &mut self,
        load: &Load,
        access: Access,
        (address, offset): (&Val, i64),
        guard: Option<&Val>,
        own: Option<&Val>,
    ) -> bool {
        let size = load.extend.size;
        let signed = load.extend.signed_to.filter(|&bits| bits > 8 * size);
        let fits = match size {
            1 | 2 => signed.is_none_or(|bits| bits <= 32),
            4 | 8 => signed.is_none(),
            _ => false,
        };
        if !fits {
            return false;
        }
        let Some(places) = self.scattered(access, &load.operand, (address, offset), guard) else {
            return false;
        };
        let class = if size == 8 { Class::B64 } else { Class::B32 };
        let computed = match load.operand.base {
            Base::Source(Source::Slot(slot)) => self.plan.uniformity.is_computed(slot),
            _ => false,
        };
        let mut columns = Vec::new();
        for element in 0..load.destinations.len() as u32 {
            let places = places.with_offset((element * size) as i32);
            columns.push(match size {
                // There are margins around shared memory.
                1 | 2 if access.space == Space::Shared => {
                    let words = self.gather_elements(&places, class, guard);
                    words.into_iter().map(|word| self.narrow_field(word, size, signed)).collect()
                }
                1 if signed.is_none() => self.gather_bytes_of_table(&places, guard, |emitter| {
                    emitter.gather_narrow_elements(&places, size, signed, guard, computed)
                }),
                1 | 2 => self.gather_narrow_elements(&places, size, signed, guard, computed),
                4 => self.gather_words(&places, guard, computed),
                _ => self.gather_elements(&places, class, guard),
            });
        }
        for (&slot, parts) in load.destinations.iter().zip(columns) {
            self.define(slot, Val::Many(parts), class, own);
        }
        true
    }

    /// Loads elements of one or two bytes, each with the word that it is in: that is in the same
    /// page of memory.
    fn gather_narrow_elements(
        &mut self,
        places: &Scattered,
        size: u32,
        signed: Option<u32>,
        guard: Option<&Val>,
        computed: bool,
    ) -> Vec<Value> {
        let (aligned, low) = match places {
            Scattered::Near { start, words, log: log @ (0 | 1), offset, .. } => {
                let start = self.sum_with(*start, (*offset).into());
                self.words_near(start, words, *log)
            }
            Scattered::Near { start, words, log, offset, .. } => {
                let start = self.sum_with(*start, (*offset).into());
                let hosts = self.far_of(start, words, *log);
                self.words_around(&hosts)
            }
            Scattered::Far { hosts, offset } => {
                let more = self.vector_of(i64::from(*offset) as u64, Class::B64);
                let hosts: Vec<Value> = match offset {
                    0 => hosts.clone(),
                    _ => hosts.iter().map(|&host| self.b.ins().iadd(host, more)).collect(),
                };
                self.words_around(&hosts)
            }
        };
        let words = self.gather_words(&aligned, guard, computed);
        let three = self.vector_of(3, Class::B32);
        let mut parts = Vec::new();
        for (word, low) in words.into_iter().zip(low) {
            let within = self.b.ins().band(low, three);
            let count = self.b.ins().ishl_imm_u(within, 3);
            let ty = self.length.by(I32);
            let value = self.operation(Intrinsic::ShiftRight, &[word, count], ty);
            parts.push(self.narrow_field(value, size, signed));
        }
        parts
    }

    /// Returns the lowest bytes of words, extended.
    fn narrow_field(&mut self, mut value: Value, size: u32, signed: Option<u32>) -> Value {
        if signed.is_some() {
            let count = self.b.ins().iconst(I32, i64::from(32 - 8 * size));
            value = self.b.ins().ishl(value, count);
            value = self.b.ins().sshr(value, count);
        }
        let bits = signed.unwrap_or(8 * size);
        if bits < 32 {
            let mask = self.vector_of((1 << bits) - 1, Class::B32);
            value = self.b.ins().band(value, mask);
        }
        value
    }

    /// Returns the words that bytes are in, and the lower halves of the addresses.
    fn words_around(&mut self, hosts: &[Value]) -> (Scattered, Vec<Value>) {
        let low = hosts.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect();
        let clear = self.vector_of(!3, Class::B64);
        let hosts = hosts.iter().map(|&host| self.b.ins().band(host, clear)).collect();
        (Scattered::Far { hosts, offset: 0 }, low)
    }

    /// Returns the words that bytes are in at signed distances from an address, shifted by at most
    /// one bit, and the lowest bits of the distances from a multiple of four.
    fn words_near(&mut self, start: Value, words: &[Value], log: u32) -> (Scattered, Vec<Value>) {
        let more = self.b.ins().band_imm_u(start, 3);
        let start = self.b.ins().isub(start, more);
        let more = self.b.ins().ireduce(I32, more);
        let more = self.b.ins().splat(self.length.by(I32), more);
        let three = self.vector_of(3, Class::B32);
        let up = self.b.ins().iconst(I32, i64::from(2 - log));
        let (mut places, mut low) = (Vec::new(), Vec::new());
        for &part in words {
            let shifted = if log == 0 { part } else { self.b.ins().ishl_imm_u(part, i64::from(log)) };
            let within = self.b.ins().band(shifted, three);
            let within = self.b.ins().iadd(within, more);
            let carried = self.b.ins().ushr_imm_u(within, 2);
            let whole = self.b.ins().sshr(part, up);
            places.push(self.b.ins().iadd(whole, carried));
            low.push(within);
        }
        (Scattered::Near { start, words: places, log: 2, offset: 0, most: None }, low)
    }

    /// Stores by scatters in the threads where a guard holds, or in all. Returns whether it did.
    pub(super) fn store_scattered(
        &mut self,
        store: &Store,
        access: Access,
        (address, offset): (&Val, i64),
        values: &[Val],
        guard: Option<&Val>,
    ) -> bool {
        let is_by_lane = |value: &Val| matches!(value, Val::Scalarized(_));
        if !matches!(store.size, 4 | 8) || values.iter().any(is_by_lane) {
            return false;
        }
        let Some(places) = self.scattered(access, &store.operand, (address, offset), guard) else {
            return false;
        };
        let class = Self::element(store.size);
        for (value, element) in values.iter().zip(0..) {
            let places = places.with_offset(element * store.size as i32);
            let parts = self.vectors(value, class);
            self.scatter_elements(&places, class, guard, &parts);
        }
        true
    }
}
