//! Accesses that only some threads of a group make.
//!
//! A row is loaded as a whole where that cannot fault: it does not cross a page of memory, and some
//! thread loads from the page. Otherwise the threads make it in a loop (`each_active`). Only the
//! addresses of threads that make the access are checked. Where elements are a step apart and the
//! access is rare, the runtime makes the accesses one by one, because emitting code for each thread
//! would take most of the time that a small kernel is compiled in.

use super::Emitter;
use super::address::{Access, NEAR};
use super::interleaved::HostAddress;
use super::value::Val;
use crate::native::Class;
use crate::runtime;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Load, MemoryOperand, Store};
use gridloom_interp::compiled::Machine;
use std::mem::offset_of;

/// Threads of the largest group.
const MOST_LANES: u32 = 32;

/// Threads of the largest group for which stores are emitted thread by thread, without a loop.
const INLINE: u32 = 16;

/// Bytes of memory that can all be loaded if one of them can, where they start at a multiple of as
/// many.
const PAGE: i64 = 4096;

impl Emitter<'_> {
    /// Returns the address in the first thread, checked for all threads, and the step between
    /// threads. Returns `None` if the runtime cannot make an access of elements of so many bytes.
    fn masked_address(
        &mut self,
        (access, size): (Access, u32),
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Option<[Value; 2]> {
        let &Val::Affine(base, step) = address else { return None };
        let near = access.space == Space::Global
            && !access.narrow
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes);
        if !near || !matches!(size, 1 | 2 | 4 | 8) {
            return None;
        }
        // An address near a valid one is valid.
        if !self.plan.bounds_checks.is_good(operand, access.align) {
            self.check_host(access, base, offset, access.size, 0);
        }
        Some([self.sum_with(base, offset), self.b.ins().iconst(I64, step)])
    }

    /// Loads in the threads where a guard holds. Returns `false`, and emits nothing, if the access
    /// has no form for the runtime.
    pub(super) fn load_masked(
        &mut self,
        load: &Load,
        access: Access,
        address: &Val,
        offset: i64,
        guard: &Val,
        own: Option<&Val>,
    ) -> bool {
        let (size, elements) = (load.extend.size, load.destinations.len() as u32);
        if load.extend.signed_to.is_some_and(|bits| bits > 8 * size) {
            return false;
        }
        let Some([first, step]) = self.masked_address((access, size), &load.operand, address, offset) else {
            return false;
        };
        if self.is_masked_row(address, size, elements) {
            let class = self.storage(load.destinations[0]);
            let class = if class.untyped() == Self::element(size) { class } else { Self::element(size) };
            let ty = self.vector_type(class).unwrap_or(I64);
            let mut parts = Vec::new();
            for (part, mask) in self.masks(guard, class).into_iter().enumerate() {
                let at = self.b.ins().iconst(I64, i64::from(self.length.offset(part)));
                parts.push(self.operation(Intrinsic::LoadMasked, &[mask, first, at], ty));
            }
            self.define(load.destinations[0], Val::Many(parts), class, own);
            return true;
        }
        let (masks, frame) = (self.store_masks(guard), self.scratch(self.lanes * elements * size.max(4)));
        self.call_masked(runtime::load_masked, [first, step, masks, frame], size, elements);
        let class = Self::element(size.max(4));
        let ty = self.vector_type(class).unwrap_or(I64);
        let mut at = 0;
        for &slot in &load.destinations {
            let mut parts = Vec::new();
            for _ in 0..self.lanes as usize / self.per_vector(class) {
                parts.push(self.b.ins().load(ty, MemFlagsData::trusted(), frame, at));
                at += self.length.offset(1);
            }
            self.define(slot, Val::Many(parts), class, own);
        }
        true
    }

    /// Stores in the threads where a guard holds. Returns `false`, and emits nothing, if the access
    /// has no form for the runtime.
    pub(super) fn store_masked(
        &mut self,
        store: &Store,
        access: Access,
        address: &Val,
        offset: i64,
        values: &[Val],
        guard: &Val,
    ) -> bool {
        let (size, elements) = (store.size, values.len() as u32);
        let Some([first, step]) = self.masked_address((access, size), &store.operand, address, offset) else {
            return false;
        };
        if self.is_masked_row(address, size, elements) {
            self.store_masked_row((first, 0), &values[0], guard, Self::element(size));
            return true;
        }
        let (masks, frame) = (self.store_masks(guard), self.scratch(self.lanes * elements * size.max(4)));
        let class = Self::element(size);
        let mut at = 0;
        for value in values {
            let parts = match value {
                Val::One(value) if size < 4 => {
                    let value = self.convert(*value, class, Class::B32);
                    self.vectors(&Val::One(value), Class::B32)
                }
                value => self.vectors(value, class),
            };
            for part in parts {
                self.b.ins().store(MemFlagsData::trusted(), part, frame, at);
                at += self.length.offset(1);
            }
        }
        self.call_masked(runtime::store_masked, [first, step, masks, frame], size, elements);
        true
    }

    /// Returns whether an access of some threads is one of a row, which takes one instruction for
    /// each vector.
    pub(super) fn is_masked_row(&self, address: &Val, size: u32, elements: u32) -> bool {
        self.is_wide()
            && elements == 1
            && matches!(size, 4 | 8)
            && matches!(address, Val::Affine(_, step) if *step == i64::from(size))
    }

    /// Stores to a row of elements where a guard holds.
    pub(super) fn store_masked_row(
        &mut self,
        (host, at): HostAddress,
        value: &Val,
        guard: &Val,
        class: Class,
    ) {
        let (values, masks) = (self.vectors(value, class), self.masks(guard, class));
        let (per, size) = (self.per_vector(class), class.bits() as usize / 8);
        for (part, (value, mask)) in values.into_iter().zip(masks).enumerate() {
            let at = self.b.ins().iconst(I64, i64::from(at + self.length.offset(part)));
            // Loads see at once what was stored without a mask.
            let known: Option<Vec<bool>> =
                (0..per).map(|lane| self.is_known_to_go(part * per + lane)).collect();
            if let Some(known) = known {
                let count = known.iter().filter(|&&goes| goes).count();
                if count == 0 {
                    continue;
                }
                if known[..count].iter().all(|&goes| goes) && (count * size).is_power_of_two() {
                    let bytes = self.b.ins().iconst(I64, (count * size) as i64);
                    self.intrinsic(Intrinsic::StorePart, &[value, host, at, bytes], None);
                    continue;
                }
            }
            self.intrinsic(Intrinsic::StoreMasked, &[value, mask, host, at], None);
        }
    }

    /// Returns where masks are in memory: they are stored, unless an access before on the same way
    /// has stored them.
    fn store_masks(&mut self, guard: &Val) -> Value {
        let masks = self.vectors(guard, Class::Pred);
        let slot = *self.side_exits.masks.get_or_insert_with(|| {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * MOST_LANES, 4);
            self.b.create_sized_stack_slot(data)
        });
        let at = self.b.ins().stack_addr(I64, slot, 0);
        if self.party.is_none() || self.side_exits.masks_held != masks {
            for (part, &mask) in masks.iter().enumerate() {
                self.b.ins().store(MemFlagsData::trusted(), mask, at, self.length.offset(part));
            }
            self.side_exits.masks_held = masks;
        }
        at
    }

    fn call_masked(&mut self, function: runtime::Masked, arguments: [Value; 4], size: u32, elements: u32) {
        let [first, step, masks, frame] = arguments;
        let shape = runtime::masked_shape(self.lanes, size, elements);
        let shape = self.b.ins().iconst(I32, i64::from(shape));
        self.call_rarely(function as *const () as usize, &[first, step, masks, frame, shape]);
    }

    /// Loads in the threads that run a block while others wait, where its own guard holds.
    pub(super) fn load_of_running(
        &mut self,
        load: &Load,
        access: Access,
        (address, offset): (&Val, i64),
        guard: Option<Val>,
    ) {
        let own_memory = matches!(access.space, Space::Local | Space::Generic);
        let before = self.mark();
        let everywhere = self.guard_of_running(guard.clone());
        match (address, &guard, &everywhere) {
            // Some thread runs it.
            (Val::One(_), None, _) if !own_memory => {
                return self.load_all(load, access, address, offset, None);
            }
            (Val::One(_), Some(own), Some(guard)) if !own_memory => {
                let condition = match own {
                    Val::One(condition) => *condition,
                    _ => {
                        let masks = self.vectors(guard, Class::Pred);
                        self.any_true(&masks)
                    }
                };
                let (then, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(condition, then, &[], done, &[]);
                self.go_on_in(then);
                self.load_all(load, access, address, offset, Some(own).filter(|own| !self.is_one(own)));
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
            }
            (_, None, Some(guard)) => self.load_by_masks(load, access, (address, offset), guard, None),
            (_, Some(own), Some(guard)) => {
                // Nobody may load at all.
                let masks = self.vectors(guard, Class::Pred);
                let any = self.any_true(&masks);
                let (then, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(any, then, &[], done, &[]);
                self.go_on_in(then);
                self.load_by_masks(load, access, (address, offset), guard, Some(own));
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
            }
            _ => self.defect("a load that no thread makes"),
        }
        self.forget(before);
    }

    /// Returns the truth of a row of elements being loadable as a whole, if any element of it is.
    /// Returns `None` if the row has no such test. Checks the elements that some thread loads.
    fn is_row_loadable(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Option<Value> {
        let &Val::Affine(first, step) = address else { return None };
        let length = access.size * self.lanes;
        if step != i64::from(access.size) || !(self.lanes * access.size).is_multiple_of(8) {
            return None;
        }
        match access.space {
            Space::Global if !access.narrow && access.align == access.size => {
                // An address near a valid one is valid.
                if !self.plan.bounds_checks.is_good(operand, access.align) {
                    self.check_host(access, first, offset, access.size, 0);
                }
                let first = self.sum_with(first, offset);
                let within = self.b.ins().band_imm_u(first, PAGE - 1);
                Some(self.b.ins().icmp_imm_u(
                    IntCC::UnsignedLessThanOrEqual,
                    within,
                    PAGE - i64::from(length),
                ))
            }
            _ => None,
        }
    }

    /// Loads in the threads where a guard holds, of which there is at least one. Writes the
    /// register where the guard `own` holds, or in all threads. Threads that do not load get any
    /// value.
    pub(super) fn load_by_masks(
        &mut self,
        load: &Load,
        access: Access,
        (address, offset): (&Val, i64),
        guard: &Val,
        own: Option<&Val>,
    ) {
        let is_plain = load.destinations.len() == 1 && load.extend.signed_to.is_none();
        if is_plain
            && self.is_row(access, address, 1)
            && let Some(row) = self.shared_row(access, &load.operand, (address, offset), guard)
        {
            return self.load_row(load, row, own);
        }
        if self.load_near_of_some(load, access, (address, offset), guard, own)
            || self.load_by_rows(load, access, (address, offset), Some(guard), own)
        {
            return;
        }
        let size = load.extend.size;
        if is_plain
            && self.is_masked_row(address, size, 1)
            && self.load_masked(load, access, address, offset, guard, own)
        {
            return;
        }
        let row = if is_plain { self.is_row_loadable(access, &load.operand, address, offset) } else { None };
        let Some(loadable) = row else {
            return self.load_each(load, access, (address, offset), guard, own);
        };
        let (row, each, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(each);
        self.b.ins().brif(loadable, row, &[], each, &[]);
        let before = self.mark();
        self.go_on_in(row);
        self.load_all(load, access, address, offset, own);
        self.b.ins().jump(done, &[]);
        self.go_on_in(each);
        self.forget(before);
        if !self.load_masked(load, access, address, offset, guard, own) {
            self.load_each(load, access, (address, offset), guard, own);
        }
        self.b.ins().jump(done, &[]);
        self.go_on_in(done);
        self.forget(before);
    }

    fn load_each(
        &mut self,
        load: &Load,
        access: Access,
        (address, offset): (&Val, i64),
        guard: &Val,
        own: Option<&Val>,
    ) {
        if self.load_scattered(load, access, (address, offset), Some(guard), own) {
            return;
        }
        if let Some(places) = self.places_of_active(access, &load.operand, (address, offset), Some(guard)) {
            return self.load_each_active(load, &places, guard, own);
        }
        let places = self.places(access, &load.operand, address, offset, Some(guard));
        self.load_at(load, &places, own);
    }

    /// Stores in the threads that run a block while others wait, where its own guard holds.
    pub(super) fn store_of_running(
        &mut self,
        store: &Store,
        access: Access,
        (address, offset): (&Val, i64),
        values: &[Val],
        guard: Option<Val>,
    ) {
        let before = self.mark();
        let own_memory = matches!(access.space, Space::Local | Space::Generic);
        let is_one = matches!(address, Val::One(_)) && values.iter().all(|value| self.is_one(value));
        match (self.guard_of_running(guard.clone()), guard) {
            (_, None) if is_one && !own_memory => self.store_all(store, access, address, offset, values),
            (Some(everywhere), guard) => {
                let done = guard.map(|_| {
                    let masks = self.vectors(&everywhere, Class::Pred);
                    let any = self.any_true(&masks);
                    let (then, done) = (self.b.create_block(), self.b.create_block());
                    self.b.ins().brif(any, then, &[], done, &[]);
                    self.go_on_in(then);
                    done
                });
                self.store_by_masks(store, access, (address, offset), values, &everywhere);
                if let Some(done) = done {
                    self.b.ins().jump(done, &[]);
                    self.go_on_in(done);
                }
            }
            _ => self.defect("a store that no thread makes"),
        }
        self.forget(before);
    }

    /// Stores where a guard holds, which it does in some thread.
    pub(super) fn store_by_masks(
        &mut self,
        store: &Store,
        access: Access,
        (address, offset): (&Val, i64),
        values: &[Val],
        guard: &Val,
    ) {
        if self.is_row(access, address, values.len())
            && let Some(row) = self.shared_row(access, &store.operand, (address, offset), guard)
        {
            return self.store_into_row(store, row, &values[0], guard);
        }
        if self.store_near_of_some(store, access, (address, offset), values, guard)
            || self.store_by_rows(store, access, (address, offset), values, Some(guard))
        {
            return;
        }
        self.store_each(store, access, (address, offset), values, guard);
    }

    fn store_each(
        &mut self,
        store: &Store,
        access: Access,
        (address, offset): (&Val, i64),
        values: &[Val],
        guard: &Val,
    ) {
        // Rows of narrow elements are rarely stored in part.
        let rare = self.lanes > INLINE
            || store.size < 4
            || self.is_masked_row(address, store.size, values.len() as u32);
        if rare && self.store_masked(store, access, address, offset, values, guard) {
            return;
        }
        if self.store_scattered(store, access, (address, offset), values, Some(guard)) {
            return;
        }
        match self.places_of_active(access, &store.operand, (address, offset), Some(guard)) {
            Some(places) => self.store_each_active(store, &places, values, guard),
            None => self.store_some(store, access, address, offset, values, guard),
        }
    }

    /// Returns host addresses for addresses in shared memory, checked where masks are set, or in
    /// all threads.
    pub(super) fn shared_hosts(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
        masks: Option<&[Value]>,
    ) -> Option<Vec<Value>> {
        let words = self.shared_words(access, operand, address, offset, masks)?;
        Some(self.hosts_of_words(&words))
    }

    /// Returns host addresses for addresses in shared memory of 32 bits.
    pub(super) fn hosts_of_words(&mut self, words: &[Value]) -> Vec<Value> {
        let start = self.machine_field(offset_of!(Machine, shared), I64);
        let start = self.b.ins().splat(self.length.by(I64), start);
        let mut hosts = Vec::new();
        for &part in words {
            let halves = [self.b.ins().uwiden_low(part), self.b.ins().uwiden_high(part)];
            hosts.extend(halves.map(|half| self.b.ins().iadd(half, start)));
        }
        hosts
    }

    /// Returns addresses in shared memory in 32 bits, checked where masks are set, or in all
    /// threads.
    pub(super) fn shared_words(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
        masks: Option<&[Value]>,
    ) -> Option<Vec<Value>> {
        let class = match address {
            Val::One(value) | Val::Affine(value, _) | Val::Offsets(value, _)
                if self.b.func.dfg.value_type(*value) == I64 =>
            {
                Class::B64
            }
            Val::One(_) | Val::Affine(..) | Val::Offsets(..) => Class::B32,
            _ if operand.narrow => Class::B32,
            _ => Class::B64,
        };
        let parts = self.vectors(address, class);
        let known = self.facts.checked_words.iter().any(|(others, align, size, at)| {
            *others == parts && *align >= access.align && *size >= access.size && *at == offset
        });
        let known = known || self.is_within_shared(access, operand);
        if class == Class::B64
            && let Some((words, bad)) = self.words_of_indices(access, &parts, offset)
        {
            if !known {
                self.leave_if_bad(bad, masks, operand);
                if masks.is_none() {
                    self.facts.checked_words.push((parts, access.align, access.size, offset));
                }
            }
            return Some(words);
        }
        let mut addresses = parts.clone();
        if offset != 0 {
            // Sums wrap, as these addresses do.
            let more = self.vector_of(offset as u64, class);
            addresses.iter_mut().for_each(|part| *part = self.b.ins().iadd(*part, more));
        }
        let words: Vec<Value> = match class {
            Class::B64 => addresses.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect(),
            _ => addresses.clone(),
        };
        if known {
            return Some(words);
        }
        let end = self.shared_limit(access.size, 0);
        let end = self.b.ins().ireduce(I32, end);
        let end = self.b.ins().splat(self.length.by(I32), end);
        let low = self.vector_of(u64::from(access.align) - 1, Class::B32);
        let mut bad = Vec::new();
        for (i, &part) in words.iter().enumerate() {
            let mut wrong = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, part, end);
            if access.align > 1 {
                let odd = self.b.ins().band(part, low);
                wrong = self.b.ins().bor(wrong, odd);
            }
            if class == Class::B64 {
                let high = self.upper_halves(addresses[2 * i], addresses[2 * i + 1]);
                wrong = self.b.ins().bor(wrong, high);
            }
            bad.push(wrong);
        }
        self.leave_if_bad(bad, masks, operand);
        if masks.is_none() {
            self.facts.checked_words.push((parts, access.align, access.size, offset));
        }
        Some(words)
    }

    /// Leaves the instruction to the interpreter if any of some vectors is not zero where masks are
    /// set.
    fn leave_if_bad(&mut self, bad: Vec<Value>, masks: Option<&[Value]>, operand: &MemoryOperand) {
        let mut any: Option<Value> = None;
        for (i, mut wrong) in bad.into_iter().enumerate() {
            if let Some(masks) = masks {
                wrong = self.b.ins().band(wrong, masks[i]);
            }
            any = Some(any.map_or(wrong, |any| self.b.ins().bor(any, wrong)));
        }
        match any {
            Some(any) => self.leave_if_any(any, operand.narrow),
            None => self.defect("an access that no thread makes"),
        }
    }

    /// Returns the upper halves of values of 64 bits.
    pub(super) fn upper_halves(&mut self, low: Value, high: Value) -> Value {
        self.pick_words(low, high, |word| 2 * word + 1)
    }

    /// Returns the address of scratch memory, which threads access that do not make an access.
    pub(super) fn nowhere(&mut self) -> Value {
        let slot = *self.side_exits.nowhere.get_or_insert_with(|| {
            self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 32, 5))
        });
        self.b.ins().stack_addr(I64, slot, 0)
    }
}
