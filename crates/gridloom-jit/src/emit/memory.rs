//! Loads, stores and atomic operations.
//!
//! An access that is not aligned, or outside its window, leaves the code before it happens: the interpreter then makes it, and
//! raises the fault.

use super::Emitter;
use super::value::{Val, per_vector, scalar_type, vector_type};
use crate::flow::Role;
use crate::native::Class;
use crate::runtime;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, Block, InstBuilder, MemFlagsData, Type, Value};
use gridloom_interp::SHARED_WINDOW;
use gridloom_interp::Space;
use gridloom_interp::code::{Atomic, AtomicKind, Base, Guard, Load, Op, Place, Store};
use gridloom_interp::compiled::Machine;
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::ScalarType;
use gridloom_ptx::op::AtomOp;
use std::mem::offset_of;

/// No host memory lies below this address.
const LOWEST: i64 = 1 << 16;
/// Addresses this close to one that was checked are as good, since what is checked keeps as far from either end.
const NEAR: i64 = 1 << 14;

/// Whether an atomic operation is compiled.
pub(crate) fn atomic_role(atomic: &Atomic) -> Role {
    match &atomic.kind {
        AtomicKind::Update { operands, .. } if operands.len() == 1 => Role::Compiled,
        _ => Role::Interpreted,
    }
}

/// What an access needs to know of an address.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    /// Bytes of the whole access.
    size: u32,
    align: u32,
    writes: bool,
    /// Whether the address is one of 32 bits, where sums wrap.
    narrow: bool,
}

/// One past the last address that may be accessed in a window of so many bytes, in units of the alignment, rounded up.
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

/// Flags of an access to memory that kernels share.
fn shared_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Emitter<'_> {
    /// The address that a memory operand has, in its space, before its offset is added; and the offset.
    fn address(&mut self, place: &Place) -> (Val, i64) {
        match place.base {
            Base::Frame if self.flow.is_kernel => (Val::One(self.constant(0, Class::B64)), place.offset),
            Base::Frame => {
                let frames = self.machine_field(offset_of!(Machine, frames), I64);
                let index = self.b.ins().uextend(I64, self.thread);
                let at = self.b.ins().ishl_imm_u(index, 2);
                let at = self.b.ins().iadd(frames, at);
                let frame = self.b.ins().load(I32, MemFlagsData::trusted(), at, 0);
                (Val::One(self.b.ins().uextend(I64, frame)), place.offset)
            }
            Base::Source(Source::Constant(index)) => {
                let base = self.flow.code.constants[index as usize][0];
                let mut address = base.wrapping_add_signed(place.offset);
                if place.narrow {
                    address &= 0xffff_ffff;
                }
                (Val::One(self.constant(address, Class::B64)), 0)
            }
            // Sums that wrap in 32 bits are out of bounds in 64, and then the interpreter's.
            Base::Source(source) if place.narrow => {
                (self.get(source, Class::B32), i64::from(place.offset as i32))
            }
            Base::Source(source) => (self.get(source, Class::B64), place.offset),
        }
    }

    /// A constant address, where it is one.
    fn constant_address(&self, place: &Place) -> Option<u64> {
        match place.base {
            Base::Source(Source::Constant(index)) => {
                let address = self.flow.code.constants[index as usize][0].wrapping_add_signed(place.offset);
                Some(if place.narrow { address & 0xffff_ffff } else { address })
            }
            Base::Frame if self.flow.is_kernel => Some(place.offset as u64),
            _ => None,
        }
    }

    /// The address in one thread, in 64 bits.
    fn lane_address(&mut self, place: &Place, address: &Val, lane: usize) -> Value {
        let class = if place.narrow && !matches!(place.base, Base::Source(Source::Constant(_))) {
            Class::B32
        } else {
            Class::B64
        };
        let value = self.lane(address, class, lane);
        if class == Class::B64 {
            return value;
        }
        // The same each time, for checks to be known by it.
        if let Some(&(_, wide)) = self.widened.iter().find(|(narrow, _)| *narrow == value) {
            return wide;
        }
        let wide = self.b.ins().uextend(I64, value);
        self.widened.push((value, wide));
        wide
    }

    /// Truth of an address being one that the access may go to, of which `length` bytes from it on are accessed.
    fn is_valid(&mut self, access: Access, address: Value, offset: i64, length: u32, lane: usize) -> Value {
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

    /// One past the last address of shared memory that may be accessed, in units of the alignment.
    fn shared_limit(&mut self, length: u32, shift: i64) -> Value {
        if let Some(&limit) = self.limits.get(&(length, shift)) {
            return limit;
        }
        let bytes = self.machine_field(offset_of!(Machine, shared_length), I64);
        let limit = self.at_start(|start| limit!(start, bytes, length, shift));
        self.limits.insert((length, shift), limit);
        limit
    }

    /// An address in units of its alignment; huge, where it is not a multiple.
    fn turn(&mut self, address: Value, shift: i64) -> Value {
        if shift == 0 {
            return address;
        }
        let shift = self.b.ins().iconst(I32, shift);
        self.b.ins().rotr(address, shift)
    }

    /// Start and length of local memory of a thread.
    fn local(&mut self, lane: usize) -> (Value, Value) {
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

    /// What is known of addresses now, to be gone back to where a way ends that not all threads go.
    fn mark(&self) -> [usize; 3] {
        [self.checked.len(), self.checked_shared.len(), self.widened.len()]
    }

    fn forget(&mut self, [checked, shared, widened]: [usize; 3]) {
        self.checked.truncate(checked);
        self.checked_shared.truncate(shared);
        self.widened.truncate(widened);
    }

    /// Leaves the code unless a truth value holds; where it does not, the interpreter is sure to find a fault or not.
    fn require(&mut self, valid: Value, fault: bool) {
        let (go_on, cold) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(valid, go_on, &[], cold, &[]);
        self.go_on_in(cold);
        if fault {
            self.refuse_here();
        } else {
            self.interpret_here();
        }
        self.go_on_in(go_on);
    }

    /// The host address of an access in one thread that is checked, with the offset that is still to be added.
    fn host_address(
        &mut self,
        access: Access,
        place: &Place,
        address: Value,
        offset: i64,
        length: u32,
        lane: usize,
    ) -> (Value, i32) {
        let fixed = self.constant_address(place);
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
                    self.require(valid, !place.narrow);
                }
                let start = self.machine_field(offset_of!(Machine, params), I64);
                self.based(start, address, offset)
            }
            Space::Shared => {
                if !fits(self.shared_bytes) {
                    self.check_shared(access, place, address, offset, length);
                }
                let start = self.machine_field(offset_of!(Machine, shared), I64);
                self.based(start, address, offset)
            }
            Space::Local => {
                if !(self.flow.is_kernel && fits(self.frame_bytes)) {
                    let valid = self.is_valid(access, address, offset, length, lane);
                    self.require(valid, !place.narrow);
                }
                let (start, _) = self.local(lane);
                self.based(start, address, offset)
            }
            Space::Generic if self.lanes > 1 => {
                // A window's address is rare enough to be done thread by thread.
                self.check_host(access, address, offset, length, lane);
                self.based_host(address, offset)
            }
            Space::Generic => self.resolve(access, address, offset, lane),
            Space::Global | Space::Const => {
                let constant = fixed.is_some_and(|at| {
                    at.is_multiple_of(access.align.into())
                        && (LOWEST as u64..SHARED_WINDOW - LOWEST as u64).contains(&at)
                });
                if !constant {
                    self.check_host(access, address, offset, length, lane);
                }
                self.based_host(address, offset)
            }
        }
    }

    /// Checks a host address, unless one near it was checked in this block.
    fn check_host(&mut self, access: Access, address: Value, offset: i64, length: u32, lane: usize) {
        let known = self.checked.iter().any(|&(other, align, at)| {
            other == address
                && align >= access.align
                && (offset - at).abs() <= NEAR
                && (offset - at) % i64::from(access.align) == 0
        });
        if !known {
            let valid = self.is_valid(access, address, offset, length, lane);
            self.require(valid, access.space != Space::Generic && !access.narrow);
            self.checked.push((address, access.align, offset));
        }
    }

    /// Checks an address in shared memory together with those that follow from the same base in this block, so that they need no
    /// check of their own.
    fn check_shared(&mut self, access: Access, place: &Place, address: Value, offset: i64, length: u32) {
        let reach = offset..offset + i64::from(length);
        let known = self.checked_shared.iter().any(|(base, align, range)| {
            *base == address
                && *align >= access.align
                && range.start <= reach.start
                && reach.end <= range.end
                && (offset - range.start) % i64::from(access.align) == 0
        });
        if known {
            return;
        }
        let Base::Source(Source::Slot(slot)) = place.base else {
            let valid = self.is_valid(access, address, offset, length, 0);
            return self.require(valid, !place.narrow);
        };
        let mut range = reach.clone();
        let scale = i64::from(length / access.size.max(1));
        for pc in self.pc + 1..self.block_end {
            let instruction = self.flow.instruction(pc);
            let (other, size, align) = match &instruction.op {
                Op::Load(load) => {
                    (&load.place, load.extend.size * load.destinations.len() as u32, load.align)
                }
                Op::Store(store) => (&store.place, store.size * store.sources.len() as u32, store.align),
                Op::Map(_) | Op::Special { .. } => (place, 0, 1),
                _ => break,
            };
            let same = matches!(other.base, Base::Source(Source::Slot(other)) if other == slot);
            if size > 0 && same && other.space == Space::Shared && other.narrow == place.narrow {
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
        self.require(valid, alone && !place.narrow);
        self.checked_shared.push((address, access.align, range));
    }

    fn based(&mut self, start: Value, address: Value, offset: i64) -> (Value, i32) {
        let sum = self.b.ins().iadd(start, address);
        self.based_host(sum, offset)
    }

    fn based_host(&mut self, address: Value, offset: i64) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) if offset < i32::MAX - 256 => (address, offset),
            _ => (self.b.ins().iadd_imm_s(address, offset), 0),
        }
    }

    /// A generic address in one thread: the host's own, or what the runtime finds.
    fn resolve(&mut self, access: Access, address: Value, offset: i64, lane: usize) -> (Value, i32) {
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

    pub(crate) fn load(&mut self, load: &Load, guard: Option<Guard>) {
        let guard = self.guard(guard);
        let size = load.extend.size;
        let access = Access {
            space: load.place.space,
            size: size * load.destinations.len() as u32,
            align: load.align,
            writes: false,
            narrow: load.place.narrow,
        };
        let (address, offset) = self.address(&load.place);
        // Nothing reads what only goes to the sink.
        let wanted: Vec<Option<Slot>> = load.destinations.iter().map(|&slot| Some(slot)).collect();
        match &guard {
            None => self.load_all(load, access, &address, offset, &wanted, None),
            Some(Val::One(condition)) => {
                let (then, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(*condition, then, &[], done, &[]);
                let before = self.mark();
                self.go_on_in(then);
                self.load_all(load, access, &address, offset, &wanted, None);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
            Some(guard) if self.party.is_some() => {
                let before = self.mark();
                if self.is_row(access, &address, load.destinations.len()) && load.extend.signed_to.is_none() {
                    // What the others would load is there as well.
                    self.load_all(load, access, &address, offset, &wanted, Some(guard));
                } else {
                    self.load_some(load, access, &address, offset, guard);
                }
                self.forget(before);
            }
            Some(guard) => {
                let (every, some, done) = self.split(guard);
                let before = self.mark();
                self.go_on_in(every);
                self.load_all(load, access, &address, offset, &wanted, None);
                self.b.ins().jump(done, &[]);
                self.go_on_in(some);
                self.forget(before);
                self.load_some(load, access, &address, offset, guard);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
        }
        if load.acquire {
            self.b.ins().fence();
        }
    }

    /// Blocks for a guard that holds in every thread and in some, of which the current block picks; and where they meet.
    fn split(&mut self, guard: &Val) -> (Block, Block, Block) {
        let masks = self.vectors(guard, Class::Pred);
        let (every, some, test, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block(), self.b.create_block());
        let all = self.all_true(&masks);
        self.b.ins().brif(all, every, &[], test, &[]);
        self.go_on_in(test);
        let any = self.any_true(&masks);
        self.b.ins().brif(any, some, &[], done, &[]);
        (every, some, done)
    }

    /// The class that elements of a load or store have in memory.
    fn element(size: u32) -> Class {
        Class::of_bits(8 * size)
    }

    fn load_all(
        &mut self,
        load: &Load,
        access: Access,
        address: &Val,
        offset: i64,
        wanted: &[Option<Slot>],
        guard: Option<&Val>,
    ) {
        let size = load.extend.size;
        let own = matches!(access.space, Space::Local | Space::Generic);
        match address {
            Val::One(_) if self.lanes == 1 || !own => {
                let base = self.lane_address(&load.place, address, 0);
                let (host, at) = self.host_address(access, &load.place, base, offset, access.size, 0);
                for (i, slot) in wanted.iter().enumerate() {
                    let (value, class) = self.load_element(load, host, at + (i as u32 * size) as i32);
                    if let Some(slot) = slot {
                        self.define(*slot, Val::One(value), class, guard);
                    }
                }
            }
            Val::Affine(_, step)
                if !own
                    && *step == i64::from(access.size)
                    && wanted.len() == 1
                    && load.extend.signed_to.is_none()
                    && matches!(size, 4 | 8) =>
            {
                let base = self.lane_address(&load.place, address, 0);
                let length = access.size * self.lanes;
                let (host, at) = self.host_address(access, &load.place, base, offset, length, 0);
                let class = Self::element(size);
                let parts = (0..self.lanes as usize / per_vector(class))
                    .map(|part| {
                        let ty = vector_type(class).unwrap_or(I64);
                        self.b.ins().load(ty, shared_flags(), host, at + 16 * part as i32)
                    })
                    .collect();
                if let Some(slot) = wanted[0] {
                    self.define(slot, Val::Many(parts), class, guard);
                }
            }
            _ => {
                let mut columns: Vec<Vec<Value>> = vec![Vec::new(); wanted.len()];
                let mut class = Class::B64;
                for lane in 0..self.lanes as usize {
                    let base = self.lane_address(&load.place, address, lane);
                    let (host, at) = self.host_address(access, &load.place, base, offset, access.size, lane);
                    for (i, column) in columns.iter_mut().enumerate() {
                        let (value, element) = self.load_element(load, host, at + (i as u32 * size) as i32);
                        class = element;
                        column.push(value);
                    }
                }
                for (slot, column) in wanted.iter().zip(columns) {
                    if let Some(slot) = slot {
                        let parts = self.gather(&column, class);
                        self.define(*slot, Val::Many(parts), class, guard);
                    }
                }
            }
        }
    }

    /// Where an access goes in each thread where a guard holds, all of them checked; zero in the others.
    fn places(
        &mut self,
        access: Access,
        place: &Place,
        address: &Val,
        offset: i64,
        guard: Option<&Val>,
    ) -> Vec<(Value, Option<Value>)> {
        if let (Some(_), Val::Affine(base, step)) = (&self.party, address)
            && access.space == Space::Global
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64 / 8
        {
            // Addresses near one that is good are good.
            let base = *base;
            self.check_host(access, base, offset, access.size, 0);
            return (0..self.lanes as usize)
                .map(|lane| {
                    let more = step * lane as i64 + offset;
                    let condition = guard.map(|guard| self.lane(guard, Class::Pred, lane));
                    (self.b.ins().iadd_imm_s(base, more), condition)
                })
                .collect();
        }
        let before = self.mark();
        let mut places = Vec::new();
        for lane in 0..self.lanes as usize {
            let condition = guard.map(|guard| self.lane(guard, Class::Pred, lane));
            let done = condition.map(|condition| {
                let nowhere = self.constant(0, Class::B64);
                self.when(condition, nowhere, I64)
            });
            let base = self.lane_address(place, address, lane);
            let (host, at) = self.host_address(access, place, base, offset, access.size, lane);
            let mut host = self.b.ins().iadd_imm_s(host, i64::from(at));
            if let Some(done) = done {
                host = self.rejoin(done, host);
                self.forget(before);
            }
            places.push((host, condition));
        }
        places
    }

    /// Goes on in a new block where a truth value holds; [`rejoin`](Self::rejoin) ends that, and until then `otherwise` is the
    /// result.
    fn when(&mut self, condition: Value, otherwise: Value, ty: Type) -> Block {
        let (then, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(done, ty);
        self.b.ins().brif(condition, then, &[], done, &[otherwise.into()]);
        self.go_on_in(then);
        done
    }

    fn rejoin(&mut self, done: Block, value: Value) -> Value {
        self.b.ins().jump(done, &[value.into()]);
        self.go_on_in(done);
        self.b.block_params(done)[0]
    }

    /// Loads in the threads where a guard holds, one by one.
    fn load_some(&mut self, load: &Load, access: Access, address: &Val, offset: i64, guard: &Val) {
        let places = self.places(access, &load.place, address, offset, Some(guard));
        let class = match load.extend.signed_to {
            Some(bits) if bits > 8 * load.extend.size => Class::of_bits(bits),
            _ => Self::element(load.extend.size),
        };
        for (i, &slot) in load.destinations.iter().enumerate() {
            let at = (i as u32 * load.extend.size) as i32;
            let mut values = Vec::new();
            for &(host, condition) in &places {
                let nothing = self.constant(0, class);
                let done = condition.map(|condition| self.when(condition, nothing, scalar_type(class)));
                let mut value = self.load_element(load, host, at).0;
                if let Some(done) = done {
                    value = self.rejoin(done, value);
                }
                values.push(value);
            }
            let parts = self.gather(&values, class);
            self.define(slot, Val::Many(parts), class, Some(guard));
        }
    }

    /// One element, extended as the instruction says.
    fn load_element(&mut self, load: &Load, host: Value, at: i32) -> (Value, Class) {
        let class = Self::element(load.extend.size);
        let flags = match load.place.space {
            Space::Param => MemFlagsData::trusted().with_readonly().with_can_move(),
            _ => shared_flags(),
        };
        let value = self.b.ins().load(scalar_type(class), flags, host, at);
        match load.extend.signed_to {
            Some(bits) if bits > class.bits() => {
                let wide = Class::of_bits(bits);
                (self.b.ins().sextend(scalar_type(wide), value), wide)
            }
            _ => (value, class),
        }
    }

    pub(crate) fn store(&mut self, store: &Store, guard: Option<Guard>) {
        let guard = self.guard(guard);
        if store.release {
            self.b.ins().fence();
        }
        let access = Access {
            space: store.place.space,
            size: store.size * store.sources.len() as u32,
            align: store.align,
            writes: true,
            narrow: store.place.narrow,
        };
        let class = Self::element(store.size);
        let (address, offset) = self.address(&store.place);
        let values: Vec<Val> = store.sources.iter().map(|&source| self.get(source, class)).collect();
        match &guard {
            None => self.store_all(store, access, &address, offset, &values),
            Some(Val::One(condition)) => {
                let (then, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(*condition, then, &[], done, &[]);
                let before = self.mark();
                self.go_on_in(then);
                self.store_all(store, access, &address, offset, &values);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
            Some(guard) if self.party.is_some() && self.is_row(access, &address, values.len()) => {
                let before = self.mark();
                self.store_into_row(store, access, &address, offset, &values[0], guard);
                self.forget(before);
            }
            Some(guard) if self.party.is_some() => {
                let before = self.mark();
                self.store_some(store, access, &address, offset, &values, guard);
                self.forget(before);
            }
            Some(guard) => {
                let (every, some, done) = self.split(guard);
                let before = self.mark();
                self.go_on_in(every);
                self.store_all(store, access, &address, offset, &values);
                self.b.ins().jump(done, &[]);
                self.go_on_in(some);
                self.forget(before);
                self.store_some(store, access, &address, offset, &values, guard);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
            }
        }
    }

    /// Whether an access of a group goes to a row of elements in shared memory, which nobody else sees meanwhile.
    fn is_row(&self, access: Access, address: &Val, elements: usize) -> bool {
        access.space == Space::Shared
            && elements == 1
            && matches!(access.size, 4 | 8)
            && matches!(address, Val::Affine(_, step) if *step == i64::from(access.size))
    }

    /// Stores to a row of elements where a guard holds, and leaves the others what they are.
    fn store_into_row(
        &mut self,
        store: &Store,
        access: Access,
        address: &Val,
        offset: i64,
        value: &Val,
        guard: &Val,
    ) {
        let class = Self::element(store.size);
        let base = self.lane_address(&store.place, address, 0);
        let length = access.size * self.lanes;
        let (host, at) = self.host_address(access, &store.place, base, offset, length, 0);
        let (values, masks) = (self.vectors(value, class), self.masks(guard, class));
        for (part, (value, mask)) in values.into_iter().zip(masks).enumerate() {
            let at = at + 16 * part as i32;
            let ty = self.b.func.dfg.value_type(value);
            let old = self.b.ins().load(ty, shared_flags(), host, at);
            let new = self.b.ins().bitselect(mask, value, old);
            self.b.ins().store(shared_flags(), new, host, at);
        }
    }

    /// Stores in the threads where a guard holds, one by one.
    fn store_some(
        &mut self,
        store: &Store,
        access: Access,
        address: &Val,
        offset: i64,
        values: &[Val],
        guard: &Val,
    ) {
        let places = self.places(access, &store.place, address, offset, Some(guard));
        for (lane, (host, condition)) in places.into_iter().enumerate() {
            let next = self.b.create_block();
            if let Some(condition) = condition {
                let then = self.b.create_block();
                self.b.ins().brif(condition, then, &[], next, &[]);
                self.go_on_in(then);
            }
            self.store_elements(store, host, 0, values, lane);
            self.b.ins().jump(next, &[]);
            self.go_on_in(next);
        }
    }

    fn store_all(&mut self, store: &Store, access: Access, address: &Val, offset: i64, values: &[Val]) {
        let own = matches!(access.space, Space::Local | Space::Generic);
        let class = Self::element(store.size);
        match (address, values) {
            (Val::Affine(_, step), [value])
                if !own && *step == i64::from(access.size) && matches!(store.size, 4 | 8) =>
            {
                let base = self.lane_address(&store.place, address, 0);
                let length = access.size * self.lanes;
                let (host, at) = self.host_address(access, &store.place, base, offset, length, 0);
                for (part, value) in self.vectors(value, class).into_iter().enumerate() {
                    self.b.ins().store(shared_flags(), value, host, at + 16 * part as i32);
                }
            }
            _ => {
                // A fault in one thread must not come after the store of another is done twice: all are checked first.
                let places: Vec<(Value, i32)> = (0..self.lanes as usize)
                    .map(|lane| {
                        let base = self.lane_address(&store.place, address, lane);
                        self.host_address(access, &store.place, base, offset, access.size, lane)
                    })
                    .collect();
                for (lane, (host, at)) in places.into_iter().enumerate() {
                    self.store_elements(store, host, at, values, lane);
                }
            }
        }
    }

    fn store_elements(&mut self, store: &Store, host: Value, at: i32, values: &[Val], lane: usize) {
        let class = Self::element(store.size);
        for (i, value) in values.iter().enumerate() {
            let value = self.lane(value, class, lane);
            self.b.ins().store(shared_flags(), value, host, at + (i as u32 * store.size) as i32);
        }
    }

    pub(crate) fn atomic(&mut self, atomic: &Atomic, guard: Option<Guard>) {
        let AtomicKind::Update { size, function, operands } = &atomic.kind else {
            return self.defect("a wide atomic operation");
        };
        let size = *size;
        let class = Self::element(size);
        let narrow = atomic.place.narrow;
        let access = Access { space: atomic.place.space, size, align: size, writes: true, narrow };
        let guard = self.guard(guard);
        let (address, offset) = self.address(&atomic.place);
        let [b, c] = operands[0];
        let (b, c) = (self.get(b, class), self.get(c, class));
        let native = self.native_atomic();
        // All are checked before the first happens, so that none happens twice.
        let places = self.places(access, &atomic.place, &address, offset, guard.as_ref());
        let destination = atomic.destinations.first().copied();
        let mut results = Vec::new();
        for (lane, (host, condition)) in places.into_iter().enumerate() {
            let nothing = self.constant(0, class);
            let done = condition.map(|condition| self.when(condition, nothing, scalar_type(class)));
            let (b, c) = (self.lane(&b, class, lane), self.lane(&c, class, lane));
            let mut old = match native {
                // Nobody else sees shared memory while this block runs.
                Some(how) if access.space == Space::Shared => self.update_alone(how, class, host, b, c),
                Some(Atomically::Rmw(op)) => {
                    self.b.ins().atomic_rmw(scalar_type(class), MemFlagsData::trusted(), op, host, b)
                }
                Some(Atomically::Cas) => self.b.ins().atomic_cas(MemFlagsData::trusted(), host, b, c),
                None => {
                    let function = self.constant(std::ptr::from_ref(function) as u64, Class::B64);
                    let (b, c) = (self.convert(b, class, Class::B64), self.convert(c, class, Class::B64));
                    let size = self.b.ins().iconst(I32, i64::from(size));
                    let old = self
                        .call(runtime::update as *const () as usize, &[function, host, b, c, size], Some(I64))
                        .unwrap_or(host);
                    self.convert(old, Class::B64, class)
                }
            };
            if let Some(done) = done {
                old = self.rejoin(done, old);
            }
            results.push(old);
        }
        if let Some(slot) = destination {
            let value =
                if self.lanes == 1 { Val::One(results[0]) } else { Val::Many(self.gather(&results, class)) };
            self.define(slot, value, class, guard.as_ref());
        }
    }

    /// An atomic operation on memory that no other thread of the host accesses.
    fn update_alone(&mut self, how: Atomically, class: Class, host: Value, b: Value, c: Value) -> Value {
        let old = self.b.ins().load(scalar_type(class), shared_flags(), host, 0);
        let new = match how {
            Atomically::Cas => {
                let same = self.b.ins().icmp(IntCC::Equal, old, b);
                self.b.ins().select(same, c, old)
            }
            Atomically::Rmw(op) => match op {
                AtomicRmwOp::Add => self.b.ins().iadd(old, b),
                AtomicRmwOp::And => self.b.ins().band(old, b),
                AtomicRmwOp::Or => self.b.ins().bor(old, b),
                AtomicRmwOp::Xor => self.b.ins().bxor(old, b),
                AtomicRmwOp::Smin => self.b.ins().smin(old, b),
                AtomicRmwOp::Umin => self.b.ins().umin(old, b),
                AtomicRmwOp::Smax => self.b.ins().smax(old, b),
                AtomicRmwOp::Umax => self.b.ins().umax(old, b),
                _ => b,
            },
        };
        self.b.ins().store(shared_flags(), new, host, 0);
        old
    }

    /// The machine's own instruction for the atomic operation being compiled.
    fn native_atomic(&self) -> Option<Atomically> {
        let (op, ty) = self.atomic_operation()?;
        if ty.is_float() && op != AtomOp::Exch || ty.bits() < 32 || ty.packed().is_some() {
            return None;
        }
        Some(Atomically::Rmw(match (op, ty.is_signed()) {
            (AtomOp::Add, _) => AtomicRmwOp::Add,
            (AtomOp::And, _) => AtomicRmwOp::And,
            (AtomOp::Or, _) => AtomicRmwOp::Or,
            (AtomOp::Xor, _) => AtomicRmwOp::Xor,
            (AtomOp::Exch, _) => AtomicRmwOp::Xchg,
            (AtomOp::Min, true) => AtomicRmwOp::Smin,
            (AtomOp::Min, false) => AtomicRmwOp::Umin,
            (AtomOp::Max, true) => AtomicRmwOp::Smax,
            (AtomOp::Max, false) => AtomicRmwOp::Umax,
            (AtomOp::Cas, _) => return Some(Atomically::Cas),
            _ => return None,
        }))
    }

    fn atomic_operation(&self) -> Option<(AtomOp, ScalarType)> {
        use gridloom_interp::code::Meaning;
        use gridloom_ptx::op::{AtomicOp, Op as Ptx};
        let Meaning::Instruction(index) = self.flow.instruction(self.pc).meaning else { return None };
        let body = self.body?;
        match &body.instructions.get(index as usize)?.op {
            Ptx::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => Some((rmw.op, rmw.ty)),
            _ => None,
        }
    }
}

/// How the machine does an atomic operation.
#[derive(Clone, Copy)]
enum Atomically {
    Rmw(AtomicRmwOp),
    Cas,
}
