//! Finds the first and the last running thread of a group. Their addresses bound those of the
//! threads in between.
//!
//! A value that rises by a step from thread to thread may wrap around in threads that do not run,
//! and a row in shared memory may begin before it or go past its end there. So only running threads
//! decide. Margins around shared memory allow a row of which one element is inside to be accessed
//! as a whole.

use super::Emitter;
use super::address::{Access, NEAR};
use super::interleaved::HostAddress;
use super::value::Val;
use crate::analysis::uniformity::Shape;
use crate::native::{Class, Native};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::Space;
use gridloom_interp::code::MemoryOperand;
use gridloom_interp::compiled::{Machine, SHARED_MARGIN};
use std::mem::offset_of;

/// A thread of a group.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    Known(u32),
    /// In 32 bits.
    Found(Value),
}

impl Emitter<'_> {
    /// Returns the first and the last of some threads, of which there are any.
    pub(super) fn ends_of(&mut self, bits: Value) -> [Value; 2] {
        let first = self.b.ins().ctz(bits);
        let above = self.b.ins().clz(bits);
        let last = self.b.ins().bxor_imm_u(above, 31);
        [first, last]
    }

    /// Returns the first and the last of the threads where a guard holds, or of those that run.
    fn active_ends(&mut self, guard: Option<&Val>) -> [Lane; 2] {
        let own = self.plan.flow.instruction(self.pc).guard;
        if let Some(party) = &self.party
            && let Some(known) = party.known().filter(|_| own.is_none() || guard.is_none())
        {
            return [Lane::Known(known.start), Lane::Known(known.end - 1)];
        }
        let masks = match (guard, &self.party) {
            (Some(guard), _) => self.vectors(guard, Class::Pred),
            (None, Some(party)) => party.masks().map(<[Value]>::to_vec).unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        let ends = match &self.running {
            Some(running) if masks.is_empty() || *running.masks == masks => running.ends,
            None if masks.is_empty() => return [Lane::Known(0), Lane::Known(self.lanes - 1)],
            _ => {
                let bits = self.bits_of(&masks);
                self.ends_of(bits)
            }
        };
        ends.map(Lane::Found)
    }

    /// Returns a step times the number of a thread, in 64 bits.
    fn distance(&mut self, lane: Lane, step: i64) -> Value {
        match lane {
            Lane::Known(lane) => self.b.ins().iconst(I64, step.wrapping_mul(i64::from(lane))),
            Lane::Found(lane) => {
                let lane = self.b.ins().uextend(I64, lane);
                let step = self.constant(step as u64, Class::B64);
                self.product(lane, step)
            }
        }
    }

    /// Returns a value in one thread.
    fn at_lane(&mut self, value: &Val, class: Class, lane: Lane) -> Value {
        match (value, lane) {
            (&Val::Affine(first, step), Lane::Found(_)) => {
                let more = self.distance(lane, step);
                let more = if self.b.func.dfg.value_type(first) == I32 {
                    self.b.ins().ireduce(I32, more)
                } else {
                    more
                };
                self.b.ins().iadd(first, more)
            }
            (value, Lane::Known(lane)) => self.lane(value, class, lane as usize),
            (value, Lane::Found(_)) => self.lane(value, class, 0),
        }
    }

    /// Returns a result that is affine because its operands are, in the threads that run: what
    /// others would compute may have wrapped around.
    pub(super) fn evaluate_affine_of_some(&mut self, native: &Native, operands: &[Val], shape: Shape) -> Val {
        let step = match shape {
            Shape::Affine(step) => step,
            _ => 0,
        };
        let ends = self.active_ends(None);
        let [low, high] = ends.map(|lane| {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| self.at_lane(operand, class, lane))
                .collect();
            self.lower(native, &values, false).value
        });
        let [to_low, to_high] = ends.map(|lane| self.distance(lane, step));
        // As it is in the first thread, or would be if that ran.
        let first = self.b.ins().isub(low, to_low);
        let expected = self.b.ins().iadd(first, to_high);
        let same = self.b.ins().icmp(IntCC::Equal, high, expected);
        self.go_on_if(same);
        if step == 0 { Val::One(first) } else { Val::Affine(first, step) }
    }

    /// Returns where a row of elements in shared memory starts that the threads access in which a
    /// guard holds. All elements that they access are checked. Returns `None` if the access is no
    /// such row.
    pub(super) fn shared_row(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: &Val,
    ) -> Option<HostAddress> {
        let &Val::Affine(_, step) = address else { return None };
        let fits = access.space == Space::Shared
            && step == i64::from(access.size)
            && (access.size * self.lanes) as usize <= SHARED_MARGIN;
        if !fits {
            return None;
        }
        let whole = offset..offset + i64::from(access.size * self.lanes);
        let base = self.lane_address(operand, address, 0);
        let known = self.facts.checked_shared.iter().any(|(other, align, range)| {
            *other == base
                && *align >= access.align
                && range.start <= whole.start
                && whole.end <= range.end
                && (offset - range.start) % i64::from(access.align) == 0
        });
        if known {
            let start = self.machine_field(offset_of!(Machine, shared), I64);
            return Some(self.based(start, base, offset));
        }
        let place = self.shared_start(access, operand, (address, offset), guard)?;
        if !operand.narrow {
            self.facts.checked_shared.push((base, access.align, whole));
        }
        Some(place)
    }

    /// Returns where elements in shared memory start that are a step apart in the threads in which
    /// a guard holds: the address that the first thread has, or would have. All elements that are
    /// accessed are checked.
    pub(super) fn shared_start(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: &Val,
    ) -> Option<HostAddress> {
        let &Val::Affine(first, step) = address else { return None };
        let fits = access.space == Space::Shared
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64
            && offset.unsigned_abs() < 1 << 24;
        if !fits {
            return None;
        }
        let start = self.machine_field(offset_of!(Machine, shared), I64);
        if self.is_within_shared(access, operand) {
            let base = self.lane_address(operand, address, 0);
            return Some(self.based(start, base, offset));
        }
        let ends = self.active_ends(Some(guard));
        let is_narrow = self.b.func.dfg.value_type(first) == I32;
        let [low, high] = ends.map(|lane| {
            let address = self.at_lane(address, if is_narrow { Class::B32 } else { Class::B64 }, lane);
            if is_narrow { self.b.ins().uextend(I64, address) } else { address }
        });
        for end in [low, high] {
            let valid = self.is_valid(access, end, offset, access.size, 0);
            self.require(valid, false);
        }
        let to_low = self.distance(ends[0], step);
        let first = self.b.ins().isub(low, to_low);
        Some(self.based(start, first, offset))
    }
}
