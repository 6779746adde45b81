//! Addresses of accesses in each space, and checks that they are valid.
//!
//! An access that is misaligned or outside its window leaves compiled code before it happens. The
//! interpreter then makes it and raises the fault.

use super::value::Val;
use super::{Emitter, Facts};
use crate::analysis::range;
use crate::native::Class;
use crate::runtime;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::{Base, MemoryOperand, Op};
use gridloom_interp::compiled::Machine;
use gridloom_interp::lanes::Source;
use gridloom_interp::{SHARED_WINDOW, Space};
use std::mem::offset_of;

/// No host memory lies below this address.
const LOWEST: i64 = 1 << 16;
/// The addresses at which host memory can lie.
pub(crate) const HOST: std::ops::Range<u64> = LOWEST as u64..SHARED_WINDOW - LOWEST as u64;
/// An address this close to a checked one is also valid, because the check keeps this distance from
/// either end.
pub(super) const NEAR: i64 = 1 << 14;

/// Below this, any address of at least [`LOWEST`] is near host memory, so a test of one bit
/// suffices. Hardly any host memory lies above it.
const USUAL: u64 = SHARED_WINDOW / 2;

/// What an access needs to know about an address.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) space: Space,
    /// The size of the whole access in bytes.
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) writes: bool,
    /// Whether the address has 32 bits, so that sums wrap.
    pub(super) narrow: bool,
}

/// One past the last valid address in a window of so many bytes, in units of the alignment, rounded
/// up.
macro_rules! limit {
    ($b:expr, $bytes:expr, $length:expr, $shift:expr) => {{
        let (bytes, length, shift) = ($bytes, i64::from($length), $shift);
        let enough = $b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, bytes, length);
        let limit = $b.ins().iadd_imm_s(bytes, 1 - length + (1 << shift) - 1);
        let limit = $b.ins().ushr_imm_u(limit, shift);
        let zero = $b.ins().iconst(I64, 0);
        $b.ins().select(enough, limit, zero)
    }};
}

impl Emitter<'_> {
    /// Returns the address of a memory operand in its space without its offset, and the offset.
    pub(super) fn address(&mut self, operand: &MemoryOperand) -> (Val, i64) {
        match operand.base {
            Base::Frame if self.plan.flow.is_kernel => {
                (Val::One(self.constant(0, Class::B64)), operand.offset)
            }
            Base::Frame => {
                let frames = self.machine_field(offset_of!(Machine, frames), I64);
                let index = self.b.ins().uextend(I64, self.thread);
                let at = self.b.ins().ishl_imm_u(index, 2);
                let at = self.b.ins().iadd(frames, at);
                let frame = self.b.ins().load(I32, MemFlagsData::trusted(), at, 0);
                (Val::One(self.b.ins().uextend(I64, frame)), operand.offset)
            }
            Base::Source(Source::Constant(index)) => {
                let base = self.plan.flow.code.constants[index as usize][0];
                let mut address = base.wrapping_add_signed(operand.offset);
                if operand.narrow {
                    address &= 0xffff_ffff;
                }
                (Val::One(self.constant(address, Class::B64)), 0)
            }
            // A sum that wraps in 32 bits is out of bounds in 64 bits, and is then left to the
            // interpreter.
            Base::Source(source) if operand.narrow => {
                (self.get(source, Class::B32), i64::from(operand.offset as i32))
            }
            Base::Source(source) => (self.get(source, Class::B64), operand.offset),
        }
    }

    /// Returns the address if it is a constant.
    pub(super) fn constant_address(&self, operand: &MemoryOperand) -> Option<u64> {
        match operand.base {
            Base::Source(Source::Constant(index)) => {
                let address =
                    self.plan.flow.code.constants[index as usize][0].wrapping_add_signed(operand.offset);
                Some(if operand.narrow { address & 0xffff_ffff } else { address })
            }
            Base::Frame if self.plan.flow.is_kernel => Some(operand.offset as u64),
            _ => None,
        }
    }

    /// Returns the address in one thread, in 64 bits.
    pub(super) fn lane_address(&mut self, operand: &MemoryOperand, address: &Val, lane: usize) -> Value {
        let class = if operand.narrow && !matches!(operand.base, Base::Source(Source::Constant(_))) {
            Class::B32
        } else {
            Class::B64
        };
        let value = self.lane(address, class, lane);
        if class == Class::B64 {
            return value;
        }
        // The same value is reused, so that earlier checks of it are found.
        if let Some(&(_, wide)) = self.facts.widened.iter().find(|(narrow, _)| *narrow == value) {
            return wide;
        }
        let wide = self.b.ins().uextend(I64, value);
        self.facts.widened.push((value, wide));
        wide
    }

    /// Returns the address in one thread of an access that all threads make, as the address of
    /// another thread plus a distance. If it is near, a check of that one suffices.
    pub(super) fn near_address(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        lane: usize,
    ) -> (Value, i64) {
        match address {
            Val::Affine(first, step)
                if matches!(access.space, Space::Global | Space::Const)
                    && !access.narrow
                    && step % i64::from(access.align) == 0
                    && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes) =>
            {
                (*first, step * lane as i64)
            }
            _ => (self.lane_address(operand, address, lane), 0),
        }
    }

    /// Returns the truth of an address being valid for an access of `length` bytes.
    pub(super) fn is_valid(
        &mut self,
        access: Access,
        address: Value,
        offset: i64,
        length: u32,
        lane: usize,
    ) -> Value {
        let shift = i64::from(access.align.trailing_zeros());
        let limit = match access.space {
            Space::Shared | Space::Local | Space::Param => {
                let limit = match access.space {
                    Space::Shared => self.shared_limit(length, shift),
                    Space::Param => {
                        let places = self.param_bytes.checked_sub(length.into());
                        self.constant(places.map_or(0, |last| (last >> shift) + 1), Class::B64)
                    }
                    _ => {
                        let bytes = self.local(lane).1;
                        limit!(self.b, bytes, length, shift)
                    }
                };
                let address = self.b.ins().iadd_imm_s(address, offset);
                let turned = self.turn(address, shift);
                return self.b.ins().icmp(IntCC::UnsignedLessThan, turned, limit);
            }
            Space::Global | Space::Const | Space::Generic => SHARED_WINDOW as i64 - 2 * LOWEST,
        };
        let address = self.b.ins().iadd_imm_s(address, offset - LOWEST);
        let turned = self.turn(address, shift);
        let limit = self.constant((limit >> shift) as u64, Class::B64);
        self.b.ins().icmp(IntCC::UnsignedLessThan, turned, limit)
    }

    /// Returns one past the last valid address of shared memory, in units of the alignment.
    pub(super) fn shared_limit(&mut self, length: u32, shift: i64) -> Value {
        if let Some(&limit) = self.limits.get(&(length, shift)) {
            return limit;
        }
        let bytes = self.machine_field(offset_of!(Machine, shared_length), I64);
        let limit = self.at_start(|start| limit!(start, bytes, length, shift));
        self.limits.insert((length, shift), limit);
        limit
    }

    /// Returns an address in units of its alignment. The result is huge if the address is not a
    /// multiple.
    pub(super) fn turn(&mut self, address: Value, shift: i64) -> Value {
        if shift == 0 {
            return address;
        }
        let shift = self.b.ins().iconst(I32, shift);
        self.b.ins().rotr(address, shift)
    }

    /// Returns the start and length of a thread's local memory.
    pub(super) fn local(&mut self, lane: usize) -> (Value, Value) {
        let table = self.machine_field(offset_of!(Machine, local), I64);
        let index = self.b.ins().uextend(I64, self.thread);
        let at = self.b.ins().ishl_imm_u(index, 4);
        let at = self.b.ins().iadd(table, at);
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let at_lane = 16 * lane as i32;
        let start = self.b.ins().load(I64, flags, at, at_lane);
        let length = self.b.ins().load(I64, flags, at, at_lane + 8);
        (start, length)
    }

    /// Returns the current number of known facts about addresses, to be restored after a path that
    /// not all threads take.
    pub(super) fn mark(&self) -> [usize; 6] {
        let Facts { checked, checked_groups, checked_words, checked_shared, widened, fields, .. } =
            &self.facts;
        let lengths = [checked.len(), checked_groups.len(), checked_words.len(), checked_shared.len()];
        let [a, b, c, d] = lengths;
        [a, b, c, d, widened.len(), fields.len()]
    }

    pub(super) fn forget(&mut self, [checked, groups, words, shared, widened, fields]: [usize; 6]) {
        self.facts.fields.truncate(fields);
        self.facts.checked_words.truncate(words);
        self.facts.checked.truncate(checked);
        self.facts.checked_groups.truncate(groups);
        self.facts.checked_shared.truncate(shared);
        self.facts.widened.truncate(widened);
    }

    /// Leaves compiled code unless a truth value holds. `fault` says whether the interpreter is
    /// then certain to raise a fault.
    pub(super) fn require(&mut self, valid: Value, fault: bool) {
        let (exit, go_on) = (self.exit_before(fault), self.b.create_block());
        self.b.ins().brif(valid, go_on, &[], exit, &[]);
        self.go_on_in(go_on);
    }

    /// Returns the checked host address of an access in one thread, and the offset still to be
    /// added.
    pub(super) fn host_address(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: Value,
        offset: i64,
        length: u32,
        lane: usize,
    ) -> (Value, i32) {
        let fixed = self.constant_address(operand);
        let fits = |bytes: u64| {
            fixed.is_some_and(|at| {
                at.is_multiple_of(access.align.into())
                    && at.checked_add(length.into()).is_some_and(|end| end <= bytes)
            })
        };
        match access.space {
            Space::Param => {
                if !fits(self.param_bytes) {
                    let valid = self.is_valid(access, address, offset, length, lane);
                    self.require(valid, !operand.narrow);
                }
                let start = self.machine_field(offset_of!(Machine, params), I64);
                self.based(start, address, offset)
            }
            Space::Shared => {
                if !fits(self.shared_bytes) && !self.is_within_shared(access, operand) {
                    self.check_shared(access, operand, address, offset, length);
                }
                let start = self.machine_field(offset_of!(Machine, shared), I64);
                self.based(start, address, offset)
            }
            Space::Local => {
                if !(self.plan.flow.is_kernel && fits(self.frame_bytes)) {
                    let valid = self.is_valid(access, address, offset, length, lane);
                    self.require(valid, !operand.narrow);
                }
                let (start, _) = self.local(lane);
                self.based(start, address, offset)
            }
            Space::Generic if self.lanes > 1 => {
                // An address in a window is rare enough to be handled thread by thread.
                if !self.plan.bounds_checks.is_good(operand, access.align) {
                    self.check_host(access, address, offset, length, lane);
                }
                self.based_host(address, offset)
            }
            Space::Generic => self.resolve(access, address, offset, lane),
            Space::Global | Space::Const => {
                let constant =
                    fixed.is_some_and(|at| at.is_multiple_of(access.align.into()) && HOST.contains(&at));
                if !constant && !self.plan.bounds_checks.is_good(operand, access.align) {
                    self.check_host(access, address, offset, length, lane);
                }
                self.based_host(address, offset)
            }
        }
    }

    /// Checks the host addresses of all threads at once if they are in vectors. Returns whether it
    /// did; then they are the addresses of the access. Invalid addresses, and a few valid ones, are
    /// left to the interpreter.
    pub(super) fn check_group(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> bool {
        let Val::Many(parts) = address else { return false };
        let on_host = matches!(access.space, Space::Global | Space::Const | Space::Generic);
        if !on_host
            || self.lanes == 1
            || access.narrow
            || self.plan.bounds_checks.is_good(operand, access.align)
        {
            return false;
        }
        let known = self.facts.checked_groups.iter().any(|(others, align, at)| {
            others == parts
                && *align >= access.align
                && (offset - at).abs() <= NEAR
                && (offset - at) % i64::from(access.align) == 0
        });
        if !known {
            let more = self.vector_of((offset - LOWEST) as u64, Class::B64);
            let from_lowest: Vec<Value> = parts.iter().map(|&part| self.b.ins().iadd(part, more)).collect();
            let all = from_lowest.into_iter().reduce(|a, b| self.b.ins().bor(a, b));
            let bad = self.vector_of(!(USUAL - 1) | (u64::from(access.align) - 1), Class::B64);
            let found = self.b.ins().band(all.unwrap_or(bad), bad);
            let any = self.b.ins().vany_true(found);
            let (exit, go_on) = (self.exit_before(false), self.b.create_block());
            self.b.ins().brif(any, exit, &[], go_on, &[]);
            self.go_on_in(go_on);
            self.facts.checked_groups.push((parts.clone(), access.align, offset));
        }
        true
    }

    /// Checks host addresses in vectors, in the threads where a guard holds.
    pub(super) fn check_some(&mut self, access: Access, addresses: &[Value], offset: i64, guard: &Val) {
        let masks = self.masks(guard, Class::B64);
        let more = self.vector_of((offset - LOWEST) as u64, Class::B64);
        let mut all: Option<Value> = None;
        for (&part, mask) in addresses.iter().zip(masks) {
            let from_lowest = self.b.ins().iadd(part, more);
            let some = self.b.ins().band(from_lowest, mask);
            all = Some(all.map_or(some, |all| self.b.ins().bor(all, some)));
        }
        let bad = self.vector_of(!(USUAL - 1) | (u64::from(access.align) - 1), Class::B64);
        let found = self.b.ins().band(all.unwrap_or(bad), bad);
        self.leave_if_any(found, false);
    }

    /// Leaves the instruction to the interpreter if any bit of a vector is set. `fault` says
    /// whether the interpreter is then certain to raise a fault.
    pub(super) fn leave_if_any(&mut self, bits: Value, fault: bool) {
        let any = self.b.ins().vany_true(bits);
        let (exit, go_on) = (self.exit_before(fault), self.b.create_block());
        self.b.ins().brif(any, exit, &[], go_on, &[]);
        self.go_on_in(go_on);
    }

    /// Returns whether an access to shared memory is valid in every thread, whatever its base is.
    pub(super) fn is_within_shared(&self, access: Access, operand: &MemoryOperand) -> bool {
        let access = range::Access { operand, size: access.size, align: access.align };
        self.plan.ranges.is_inside(&access, self.shared_bytes)
    }

    /// Checks a host address, unless one near it was checked in this block.
    pub(super) fn check_host(
        &mut self,
        access: Access,
        address: Value,
        offset: i64,
        length: u32,
        lane: usize,
    ) {
        let known = self.facts.checked.iter().any(|&(other, align, at)| {
            other == address
                && align >= access.align
                && (offset - at).abs() <= NEAR
                && (offset - at) % i64::from(access.align) == 0
        });
        if !known {
            let valid = self.is_valid(access, address, offset, length, lane);
            self.require(valid, access.space != Space::Generic && !access.narrow);
            self.facts.checked.push((address, access.align, offset));
        }
    }

    /// Checks an address in shared memory together with the later ones from the same base in this
    /// block, so that those need no check.
    pub(super) fn check_shared(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: Value,
        offset: i64,
        length: u32,
    ) {
        let reach = offset..offset + i64::from(length);
        let known = self.facts.checked_shared.iter().any(|(base, align, range)| {
            *base == address
                && *align >= access.align
                && range.start <= reach.start
                && reach.end <= range.end
                && (offset - range.start) % i64::from(access.align) == 0
        });
        if known {
            return;
        }
        let Base::Source(Source::Slot(slot)) = operand.base else {
            let valid = self.is_valid(access, address, offset, length, 0);
            return self.require(valid, !operand.narrow);
        };
        let mut range = reach.clone();
        let scale = i64::from(length / access.size.max(1));
        for pc in self.pc + 1..self.block_end {
            let instruction = self.plan.flow.instruction(pc);
            let (other, size, align) = match &instruction.op {
                Op::Load(load) => {
                    (&load.operand, load.extend.size * load.destinations.len() as u32, load.align)
                }
                Op::Store(store) => (&store.operand, store.size * store.sources.len() as u32, store.align),
                Op::Map(_) | Op::Special { .. } => (operand, 0, 1),
                _ => break,
            };
            let same = matches!(other.base, Base::Source(Source::Slot(other)) if other == slot);
            if size > 0 && same && other.space == Space::Shared && other.narrow == operand.narrow {
                let aligned = (other.offset - offset) % i64::from(access.align) == 0;
                if aligned && align <= access.align && instruction.guard.is_none() {
                    range.start = range.start.min(other.offset);
                    range.end = range.end.max(other.offset + i64::from(size) * scale);
                }
            }
            let mut redefined = false;
            instruction.for_each_definition(&mut |defined| redefined |= defined == slot);
            if redefined {
                break;
            }
        }
        let whole = (range.end - range.start).min(i64::from(u32::MAX >> 2)) as u32;
        let alone = range == reach;
        let valid = self.is_valid(access, address, range.start, whole, 0);
        self.require(valid, alone && !operand.narrow);
        self.facts.checked_shared.push((address, access.align, range));
    }

    pub(super) fn based(&mut self, start: Value, address: Value, offset: i64) -> (Value, i32) {
        let sum = self.b.ins().iadd(start, address);
        self.based_host(sum, offset)
    }

    pub(super) fn based_host(&mut self, address: Value, offset: i64) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) if offset < i32::MAX - 256 => (address, offset),
            _ => (self.b.ins().iadd_imm_s(address, offset), 0),
        }
    }

    /// Returns the host address of a generic address in one thread: the address itself, or what the
    /// runtime finds.
    pub(super) fn resolve(
        &mut self,
        access: Access,
        address: Value,
        offset: i64,
        lane: usize,
    ) -> (Value, i32) {
        let address = self.b.ins().iadd_imm_s(address, offset);
        let valid = self.is_valid(access, address, 0, access.size, lane);
        let (done, window) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(done, I64);
        self.b.set_cold_block(window);
        self.b.ins().brif(valid, done, &[address.into()], window, &[]);
        self.go_on_in(window);
        let low = self.b.ins().band_imm_u(address, i64::from(access.align) - 1);
        let aligned = self.b.ins().icmp_imm_u(IntCC::Equal, low, 0);
        self.require(aligned, true);
        let (size, writes, params) = (
            self.b.ins().iconst(I32, i64::from(access.size)),
            self.b.ins().iconst(I32, i64::from(access.writes)),
            self.constant(self.param_bytes, Class::B64),
        );
        let thread = self.thread;
        let found = self
            .call(
                runtime::resolve as *const () as usize,
                &[self.machine, thread, address, size, writes, params],
                Some(I64),
            )
            .unwrap_or(address);
        let there = self.b.ins().icmp_imm_u(IntCC::NotEqual, found, 0);
        self.require(there, true);
        self.b.ins().jump(done, &[found.into()]);
        self.go_on_in(done);
        (self.b.block_params(done)[0], 0)
    }
}
