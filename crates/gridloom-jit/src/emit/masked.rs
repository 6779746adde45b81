//! Accesses of some threads of a group on a short way, at addresses that are a step apart: the runtime makes them one by one. Few groups go such a
//! way, and to write the accesses out for each thread is most of what compiling a small kernel takes.

use super::Emitter;
use super::address::{Access, NEAR};
use super::value::{Val, per_vector, vector_type};
use crate::native::Class;
use crate::runtime;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Load, MemoryOperand, Store};

/// Threads of the largest group.
const MOST_LANES: u32 = 32;

impl Emitter<'_> {
    /// The address in the first thread, checked for all, and the step, where the runtime can make an access of elements of so many bytes.
    fn masked_address(
        &mut self,
        (access, size): (Access, u32),
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Option<[Value; 2]> {
        let &Val::Affine(base, step) = address else { return None };
        let near = self.party.is_some()
            && access.space == Space::Global
            && !access.narrow
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes);
        if !near || !matches!(size, 4 | 8) {
            return None;
        }
        // Addresses near one that is good are good.
        if !self.plan.bounds_checks.is_good(operand, access.align) {
            self.check_host(access, base, offset, access.size, 0);
        }
        Some([self.sum_with(base, offset), self.b.ins().iconst(I64, step)])
    }

    /// Loads in the threads where a guard holds; false, where that is to be done in another way.
    pub(super) fn load_masked(
        &mut self,
        load: &Load,
        access: Access,
        address: &Val,
        offset: i64,
        guard: &Val,
    ) -> bool {
        let (size, elements) = (load.extend.size, load.destinations.len() as u32);
        if load.extend.signed_to.is_some_and(|bits| bits > 8 * size) {
            return false;
        }
        let Some([first, step]) = self.masked_address((access, size), &load.operand, address, offset) else {
            return false;
        };
        let (masks, frame) = (self.store_masks(guard), self.scratch(self.lanes * elements * size));
        self.call_masked(runtime::load_masked, [first, step, masks, frame], size, elements);
        let class = Self::element(size);
        let ty = vector_type(class).unwrap_or(I64);
        let mut at = 0;
        for &slot in &load.destinations {
            let mut parts = Vec::new();
            for _ in 0..self.lanes as usize / per_vector(class) {
                parts.push(self.b.ins().load(ty, MemFlagsData::trusted(), frame, at));
                at += 16;
            }
            self.define(slot, Val::Many(parts), class, Some(guard));
        }
        true
    }

    /// Stores in the threads where a guard holds; false, where that is to be done in another way.
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
        let (masks, frame) = (self.store_masks(guard), self.scratch(self.lanes * elements * size));
        let class = Self::element(size);
        let mut at = 0;
        for value in values {
            for part in self.vectors(value, class) {
                self.b.ins().store(MemFlagsData::trusted(), part, frame, at);
                at += 16;
            }
        }
        self.call_masked(runtime::store_masked, [first, step, masks, frame], size, elements);
        true
    }

    /// Where masks are in memory: they are stored, unless an access before on the same way has stored them.
    fn store_masks(&mut self, guard: &Val) -> Value {
        let masks = self.vectors(guard, Class::Pred);
        let slot = *self.side_exits.masks.get_or_insert_with(|| {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * MOST_LANES, 4);
            self.b.create_sized_stack_slot(data)
        });
        let at = self.b.ins().stack_addr(I64, slot, 0);
        if self.side_exits.masks_held != masks {
            for (part, &mask) in masks.iter().enumerate() {
                self.b.ins().store(MemFlagsData::trusted(), mask, at, 16 * part as i32);
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
}
