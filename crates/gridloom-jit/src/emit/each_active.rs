//! Scattered accesses in loops over threads: over those of a group that make the access, or over
//! all 32 of a warp. The code is as long for 32 threads as for a few, and threads that make no
//! access cost nothing.

use super::Emitter;
use super::address::{Access, NEAR};
use super::interleaved::HostAddress;
use super::memory::shared_flags;
use super::value::{Val, scalar_type};
use crate::native::Class;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Load, MemoryOperand, Store};

/// The addresses of an access, checked in the threads that make it.
pub(super) enum ActiveAddresses {
    /// To addresses in vectors.
    Vectors(Vec<Value>),
    /// To addresses that rise by a step from that of the first thread.
    Step(HostAddress, i64),
}

/// How many threads a pass of a loop over all threads is for.
pub(super) const AT_ONCE: u32 = 4;

impl Emitter<'_> {
    /// Returns the addresses of an access of all threads if a loop over them makes it: in groups of
    /// whole warps, to addresses in vectors.
    pub(super) fn hosts_of_warp(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Option<Vec<Value>> {
        let Val::Many(parts) = address else { return None };
        if self.lanes < 32 || access.narrow && access.space != Space::Shared {
            return None;
        }
        match access.space {
            Space::Shared => self.shared_hosts(access, operand, address, offset, None),
            Space::Global | Space::Const | Space::Generic => {
                let checked = self.check_group(access, operand, address, offset);
                if !checked && !self.plan.bounds_checks.is_good(operand, access.align) {
                    return None;
                }
                let more = self.vector_of(offset as u64, Class::B64);
                Some(match offset {
                    0 => parts.clone(),
                    _ => parts.iter().map(|&part| self.b.ins().iadd(part, more)).collect(),
                })
            }
            _ => None,
        }
    }

    /// Loads in all threads of a warp.
    pub(super) fn load_each_of_warp(&mut self, load: &Load, hosts: Vec<Value>, guard: Option<&Val>) {
        let class = match load.extend.signed_to {
            Some(bits) if bits > 8 * load.extend.size => Class::of_bits(bits),
            _ => Self::element(load.extend.size),
        };
        let held = Self::held_as(class);
        let count = load.destinations.len() as u32;
        let (area, found) = self.area(&ActiveAddresses::Vectors(hosts), count * self.column(held));
        self.load_each_thread(load, held, (area, found));
        for (element, &slot) in load.destinations.iter().enumerate() {
            let parts = self.column_of(area, found + (element as u32 * self.column(held)) as i32, held);
            self.define(slot, Val::Many(parts), class, guard);
        }
    }

    /// Stores in all threads of a warp.
    pub(super) fn store_each_of_warp(&mut self, store: &Store, hosts: Vec<Value>, values: &[Val]) {
        let class = Self::element(store.size);
        let held = Self::held_as(class);
        let (area, given) =
            self.area(&ActiveAddresses::Vectors(hosts), values.len() as u32 * self.column(held));
        for (element, value) in values.iter().enumerate() {
            self.put_column(area, given + (element as u32 * self.column(held)) as i32, value, class);
        }
        self.store_each_thread(store, held, values.len() as u32, (area, given));
    }

    /// Loads in all threads, from the addresses at the start of an area to behind them.
    fn load_each_thread(&mut self, load: &Load, held: Class, (area, found): (Value, i32)) {
        let count = load.destinations.len() as u32;
        self.each_thread(AT_ONCE, |emitter, lane| {
            let from = emitter.element_in(area, Class::B64, lane);
            let to = emitter.element_in(area, held, lane);
            for more in 0..AT_ONCE {
                let host = emitter.b.ins().load(I64, MemFlagsData::trusted(), from, 8 * more as i32);
                for element in 0..count {
                    let (value, class) =
                        emitter.load_element(load, host, (element * load.extend.size) as i32);
                    let value = emitter.convert(value, class, held);
                    let at = element * emitter.column(held) + more * held.bits() / 8;
                    emitter.b.ins().store(MemFlagsData::trusted(), value, to, found + at as i32);
                }
            }
        });
    }

    /// Stores in all threads, to the addresses at the start of an area what is behind them.
    fn store_each_thread(&mut self, store: &Store, held: Class, count: u32, (area, given): (Value, i32)) {
        let ty = scalar_type(Self::element(store.size));
        self.each_thread(AT_ONCE, |emitter, lane| {
            let to = emitter.element_in(area, Class::B64, lane);
            let from = emitter.element_in(area, held, lane);
            for more in 0..AT_ONCE {
                let host = emitter.b.ins().load(I64, MemFlagsData::trusted(), to, 8 * more as i32);
                for element in 0..count {
                    let at = element * emitter.column(held) + more * held.bits() / 8;
                    let value = emitter.b.ins().load(ty, MemFlagsData::trusted(), from, given + at as i32);
                    emitter.b.ins().store(shared_flags(), value, host, (element * store.size) as i32);
                }
            }
        });
    }

    /// Emits code for the first of each few threads of the group, in a loop. The code is given the
    /// number of that thread, in 64 bits.
    pub(super) fn each_thread(&mut self, at_once: u32, code: impl FnOnce(&mut Self, Value)) {
        let (head, done): (Block, Block) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(head, I64);
        let zero = self.b.ins().iconst(I64, 0);
        self.b.ins().jump(head, &[zero.into()]);
        self.b.switch_to_block(head);
        let lane = self.b.block_params(head)[0];
        code(self, lane);
        let next = self.b.ins().iadd_imm_s(lane, i64::from(at_once));
        let more = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, next, i64::from(self.lanes));
        self.b.ins().brif(more, head, &[next.into()], done, &[]);
        self.b.seal_block(head);
        self.go_on_in(done);
    }

    /// Returns where accesses go in the threads where a guard holds, or in all. Returns `None` if
    /// the addresses have neither form of [`ActiveAddresses`].
    pub(super) fn places_of_active(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: Option<&Val>,
    ) -> Option<ActiveAddresses> {
        if let &Val::Affine(first, step) = address
            && access.space == Space::Global
            && !access.narrow
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes)
        {
            if !self.plan.bounds_checks.is_good(operand, access.align) {
                self.check_host(access, first, offset, access.size, 0);
            }
            return Some(ActiveAddresses::Step((self.sum_with(first, offset), 0), step));
        }
        if let (&Val::Affine(_, step), Some(guard)) = (address, guard)
            && let Some(first) = self.shared_start(access, operand, (address, offset), guard)
        {
            return Some(ActiveAddresses::Step(first, step));
        }
        let hosts = match access.space {
            Space::Global | Space::Const | Space::Generic if !access.narrow => {
                let is_good = self.plan.bounds_checks.is_good(operand, access.align);
                let addresses = self.vectors(address, Class::B64);
                match guard {
                    _ if is_good => {}
                    Some(guard) => self.check_some(access, &addresses, offset, guard),
                    None => {
                        self.check_group(access, operand, &Val::Many(addresses.clone()), offset);
                    }
                }
                let more = self.vector_of(offset as u64, Class::B64);
                match offset {
                    0 => addresses,
                    _ => addresses.into_iter().map(|part| self.b.ins().iadd(part, more)).collect(),
                }
            }
            Space::Shared => {
                let masks = guard.map(|guard| self.vectors(guard, Class::Pred));
                self.shared_hosts(access, operand, address, offset, masks.as_deref())?
            }
            _ => return None,
        };
        Some(ActiveAddresses::Vectors(hosts))
    }

    /// Loads in the threads where a guard holds, which it does in some thread.
    pub(super) fn load_each_active(
        &mut self,
        load: &Load,
        places: &ActiveAddresses,
        guard: &Val,
        own: Option<&Val>,
    ) {
        let class = match load.extend.signed_to {
            Some(bits) if bits > 8 * load.extend.size => Class::of_bits(bits),
            _ => Self::element(load.extend.size),
        };
        let held = Self::held_as(class);
        let count = load.destinations.len() as u32;
        let (area, found) = self.area(places, count * self.column(held));
        let bits = self.bits_of_guard(guard);
        let done = self.unless_many(places, bits, |emitter, hosts| {
            let hosts = emitter.hosts_or_nowhere(hosts, guard);
            let (area, found) = emitter.area(&ActiveAddresses::Vectors(hosts), count * emitter.column(held));
            emitter.load_each_thread(load, held, (area, found));
        });
        self.each_active(bits, |emitter, lane| {
            let (host, at) = emitter.place_of_lane(places, area, lane);
            let to = emitter.element_in(area, held, lane);
            for element in 0..count {
                let (value, class) =
                    emitter.load_element(load, host, at + (element * load.extend.size) as i32);
                let value = emitter.convert(value, class, held);
                let column = found + (element * emitter.column(held)) as i32;
                emitter.b.ins().store(MemFlagsData::trusted(), value, to, column);
            }
        });
        self.join(done);
        for (element, &slot) in load.destinations.iter().enumerate() {
            let parts = self.column_of(area, found + (element as u32 * self.column(held)) as i32, held);
            self.define(slot, Val::Many(parts), class, own);
        }
    }

    /// Stores in the threads where a guard holds, which it does in some thread.
    pub(super) fn store_each_active(
        &mut self,
        store: &Store,
        places: &ActiveAddresses,
        values: &[Val],
        guard: &Val,
    ) {
        let class = Self::element(store.size);
        let held = Self::held_as(class);
        let (area, given) = self.area(places, values.len() as u32 * self.column(held));
        for (element, value) in values.iter().enumerate() {
            self.put_column(area, given + (element as u32 * self.column(held)) as i32, value, class);
        }
        let bits = self.bits_of_guard(guard);
        let done = self.unless_many(places, bits, |emitter, hosts| {
            let hosts = emitter.hosts_or_nowhere(hosts, guard);
            emitter.area(&ActiveAddresses::Vectors(hosts), values.len() as u32 * emitter.column(held));
            emitter.store_each_thread(store, held, values.len() as u32, (area, given));
        });
        self.each_active(bits, |emitter, lane| {
            let (host, at) = emitter.place_of_lane(places, area, lane);
            let from = emitter.element_in(area, held, lane);
            for element in 0..values.len() as u32 {
                let column = given + (element * emitter.column(held)) as i32;
                let ty = scalar_type(class);
                let value = emitter.b.ins().load(ty, MemFlagsData::trusted(), from, column);
                let at = at + (element * store.size) as i32;
                emitter.b.ins().store(shared_flags(), value, host, at);
            }
        });
        self.join(done);
    }

    /// Emits code for the case that many threads make an access to addresses in vectors, which is
    /// then faster for all threads: those that make none go to memory of the code's own. Continues
    /// with the other case. Returns the block behind both.
    fn unless_many(
        &mut self,
        places: &ActiveAddresses,
        bits: Value,
        code: impl FnOnce(&mut Self, &[Value]),
    ) -> Option<Block> {
        let ActiveAddresses::Vectors(hosts) = places else { return None };
        let (many, few, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let count = self.b.ins().popcnt(bits);
        let limit = i64::from(self.lanes / 4);
        let is_many = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, count, limit);
        self.b.ins().brif(is_many, many, &[], few, &[]);
        self.go_on_in(many);
        code(self, hosts);
        self.b.ins().jump(done, &[]);
        self.go_on_in(few);
        Some(done)
    }

    fn join(&mut self, done: Option<Block>) {
        if let Some(done) = done {
            self.b.ins().jump(done, &[]);
            self.go_on_in(done);
        }
    }

    /// Returns the given addresses where a guard holds, and the address of scratch memory
    /// elsewhere.
    fn hosts_or_nowhere(&mut self, hosts: &[Value], guard: &Val) -> Vec<Value> {
        let masks = self.masks(guard, Class::B64);
        let nowhere = Val::One(self.nowhere());
        let nowhere = self.vectors(&nowhere, Class::B64)[0];
        hosts.iter().zip(masks).map(|(&host, mask)| self.b.ins().bitselect(mask, host, nowhere)).collect()
    }

    /// Makes an atomic access in the threads where a guard holds, or in all, one after the other,
    /// given how one of them makes it with its operands. Returns the old values if they are wanted.
    pub(super) fn update_each_active(
        &mut self,
        places: &ActiveAddresses,
        operands: [&Val; 2],
        (class, guard, wants): (Class, Option<&Val>, bool),
        update: impl FnOnce(&mut Self, Value, [Value; 2]) -> Value,
    ) -> Vec<Value> {
        let held = Self::held_as(class);
        // An operand that all threads have in common stays in its register.
        let given = operands.map(|operand| match *operand {
            Val::One(value) => Err(value),
            _ => Ok(operand),
        });
        let (area, first) = self.area(places, 3 * self.column(held));
        let columns = [0, 1, 2].map(|i| first + (i * self.column(held)) as i32);
        for (operand, column) in given.into_iter().zip(columns) {
            if let Ok(operand) = operand {
                self.put_column(area, column, operand, class);
            }
        }
        let code = |emitter: &mut Self, lane: Value| {
            let (host, at) = emitter.place_of_lane(places, area, lane);
            let host = emitter.sum_with(host, at.into());
            let element = emitter.element_in(area, held, lane);
            let flags = MemFlagsData::trusted();
            let ty = scalar_type(class);
            let [b, c] = [0, 1].map(|i| match given[i] {
                Ok(_) => emitter.b.ins().load(ty, flags, element, columns[i]),
                Err(value) => value,
            });
            let old = update(emitter, host, [b, c]);
            if wants {
                let old = emitter.convert(old, class, held);
                emitter.b.ins().store(flags, old, element, columns[2]);
            }
        };
        match guard {
            Some(guard) => {
                let bits = self.bits_of_guard(guard);
                let (some, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(bits, some, &[], done, &[]);
                self.go_on_in(some);
                self.each_active(bits, code);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
            }
            None => self.each_thread(1, code),
        }
        if wants { self.column_of(area, columns[2], held) } else { Vec::new() }
    }

    /// Returns the class in which an element of a thread is passed through memory.
    fn held_as(class: Class) -> Class {
        if class.bits() <= 32 { Class::B32 } else { Class::B64 }
    }

    /// Returns the bytes of one element for each thread.
    fn column(&self, held: Class) -> u32 {
        self.lanes * held.bits() / 8
    }

    /// Returns memory for the addresses of threads, which are stored there, and for as many bytes
    /// behind them, with their offset.
    fn area(&mut self, places: &ActiveAddresses, bytes: u32) -> (Value, i32) {
        let addresses = match places {
            ActiveAddresses::Vectors(_) => 8 * self.lanes,
            ActiveAddresses::Step(..) => 0,
        };
        let area = self.scratch(addresses + bytes);
        if let ActiveAddresses::Vectors(hosts) = places {
            for (part, &host) in hosts.iter().enumerate() {
                self.b.ins().store(MemFlagsData::trusted(), host, area, self.length.offset(part));
            }
        }
        (area, addresses as i32)
    }

    /// Stores an element for each thread.
    fn put_column(&mut self, area: Value, at: i32, value: &Val, class: Class) {
        let parts = match value {
            Val::One(value) if class.bits() < 32 => {
                let value = self.convert(*value, class, Class::B32);
                self.vectors(&Val::One(value), Class::B32)
            }
            value => self.vectors(value, class),
        };
        for (part, value) in parts.into_iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), value, area, at + self.length.offset(part));
        }
    }

    /// Loads an element for each thread.
    fn column_of(&mut self, area: Value, at: i32, held: Class) -> Vec<Value> {
        let ty = self.vector_type(held).unwrap_or(I64);
        (0..self.column(held) as usize / self.length.0)
            .map(|part| self.b.ins().load(ty, MemFlagsData::trusted(), area, at + self.length.offset(part)))
            .collect()
    }

    /// Returns where the elements of a thread are, from the start of each column.
    fn element_in(&mut self, area: Value, held: Class, lane: Value) -> Value {
        let offset = self.b.ins().ishl_imm_u(lane, if held == Class::B64 { 3 } else { 2 });
        self.b.ins().iadd(area, offset)
    }

    fn place_of_lane(&mut self, places: &ActiveAddresses, area: Value, lane: Value) -> HostAddress {
        match *places {
            ActiveAddresses::Vectors(_) => {
                let offset = self.b.ins().ishl_imm_u(lane, 3);
                let at = self.b.ins().iadd(area, offset);
                (self.b.ins().load(I64, MemFlagsData::trusted(), at, 0), 0)
            }
            ActiveAddresses::Step((first, at), step) => {
                let more = self.b.ins().imul_imm_s(lane, step);
                (self.b.ins().iadd(first, more), at)
            }
        }
    }

    fn bits_of_guard(&mut self, guard: &Val) -> Value {
        let masks = self.vectors(guard, Class::Pred);
        match &self.running {
            Some(running) if *running.masks == masks => running.bits,
            _ => self.bits_of(&masks),
        }
    }

    /// Emits code for the threads of some bits, of which one at least is set, in a loop. The code
    /// is given the number of the thread, in 64 bits.
    fn each_active(&mut self, bits: Value, code: impl FnOnce(&mut Self, Value)) {
        let (head, done): (Block, Block) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(head, I32);
        self.b.ins().jump(head, &[bits.into()]);
        self.b.switch_to_block(head);
        let bits = self.b.block_params(head)[0];
        let lane = self.b.ins().ctz(bits);
        let lane = self.b.ins().uextend(I64, lane);
        code(self, lane);
        let below = self.b.ins().iadd_imm_s(bits, -1);
        let rest = self.b.ins().band(bits, below);
        self.b.ins().brif(rest, head, &[rest.into()], done, &[]);
        self.b.seal_block(head);
        self.go_on_in(done);
    }
}
