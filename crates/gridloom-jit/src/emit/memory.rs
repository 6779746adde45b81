//! Loads and stores.

use super::Emitter;
use super::address::{Access, NEAR};
use super::branch::Party;
use super::interleaved::HostAddress;
use super::value::{Val, scalar_type};
use crate::native::Class;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Guard, Load, MemoryOperand, Store};
use gridloom_interp::lanes::Slot;

/// Flags of an access to memory that kernels share.
pub(super) fn shared_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Emitter<'_> {
    pub(crate) fn load(&mut self, load: &Load, guard: Option<Guard>) {
        let guard = self.guard(guard);
        let size = load.extend.size;
        let access = Access {
            space: load.operand.space,
            size: size * load.destinations.len() as u32,
            align: load.align,
            writes: false,
            narrow: load.operand.narrow,
        };
        let (address, offset) = self.address(&load.operand);
        if guard.is_some() {
            // What the register holds now may stay in it.
            load.destinations.iter().for_each(|&slot| self.settle_if_pending(slot));
        }
        match &guard {
            _ if self.running.is_some() => self.load_of_running(load, access, (&address, offset), guard),
            None => self.load_all(load, access, &address, offset, None),
            Some(Val::One(condition)) => {
                let (then, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(*condition, then, &[], done, &[]);
                let before = self.mark();
                self.go_on_in(then);
                self.load_all(load, access, &address, offset, None);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
            Some(guard) if self.party.is_some() => {
                let before = self.mark();
                let is_row =
                    self.is_row(access, &address, load.destinations.len()) && load.extend.signed_to.is_none();
                if is_row && let Some(row) = self.shared_row(access, &load.operand, (&address, offset), guard)
                {
                    self.load_row(load, row, Some(guard));
                } else if !self.load_near_of_some(load, access, (&address, offset), guard, Some(guard)) {
                    self.load_some(load, access, &address, offset, guard);
                }
                self.forget(before);
            }
            Some(guard) => {
                let (every, some, done) = self.split(guard);
                let before = self.mark();
                self.go_on_in(every);
                self.load_all(load, access, &address, offset, None);
                self.b.ins().jump(done, &[]);
                self.go_on_in(some);
                self.forget(before);
                self.load_by_masks(load, access, (&address, offset), guard, Some(guard));
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
        }
        if load.acquire {
            self.b.ins().fence();
        }
    }

    /// Branches on whether a guard holds in every thread or only in some. Returns the blocks for
    /// both, and the block behind them, which is also where the branch goes if the guard holds in
    /// none.
    pub(super) fn split(&mut self, guard: &Val) -> (Block, Block, Block) {
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

    /// Returns the class that elements of a load or store have in memory.
    pub(super) fn element(size: u32) -> Class {
        Class::of_bits(8 * size)
    }

    pub(super) fn load_all(
        &mut self,
        load: &Load,
        access: Access,
        address: &Val,
        offset: i64,
        guard: Option<&Val>,
    ) {
        let size = load.extend.size;
        let own = matches!(access.space, Space::Local | Space::Generic);
        match address {
            Val::One(_) if self.lanes == 1 || !own => {
                let base = self.lane_address(&load.operand, address, 0);
                let (host, at) = self.host_address(access, &load.operand, base, offset, access.size, 0);
                for (i, &slot) in load.destinations.iter().enumerate() {
                    let at = at + (i as u32 * size) as i32;
                    // A float is loaded as one, so that it need not move between registers.
                    let held = self.storage(slot);
                    if held.is_float() && 8 * size == held.bits() && load.operand.space != Space::Param {
                        let value = self.b.ins().load(scalar_type(held), shared_flags(), host, at);
                        self.define(slot, Val::One(value), held, guard);
                        continue;
                    }
                    let (value, class) = self.load_element(load, host, at);
                    self.define(slot, Val::One(value), class, guard);
                }
            }
            Val::Affine(_, step)
                if !own
                    && *step == i64::from(access.size)
                    && load.destinations.len() == 1
                    && load.extend.signed_to.is_none()
                    && matches!(size, 4 | 8) =>
            {
                let base = self.lane_address(&load.operand, address, 0);
                let length = access.size * self.lanes;
                let (host, at) = self.host_address(access, &load.operand, base, offset, length, 0);
                if guard.is_none() {
                    self.prefetch(load, host);
                }
                self.load_row(load, (host, at), guard);
            }
            Val::Affine(_, step)
                if !own
                    && *step == i64::from(access.size)
                    && load.destinations.len() == 1
                    && load.extend.signed_to.is_none_or(|bits| bits <= 32)
                    && (self.lanes * size).is_multiple_of(8)
                    && matches!(size, 1 | 2) =>
            {
                self.load_packed(load, access, address, offset, guard);
            }
            _ if self.load_by_rows(load, access, (address, offset), None, guard) => {}
            _ if guard.is_none() && self.load_field(load, access, (address, offset)) => {}
            Val::Many(_)
                if !self.is_interleaved_load(load)
                    && self.load_scattered(load, access, (address, offset), None, guard) => {}
            _ => {
                if !self.is_interleaved_load(load)
                    && let Some(hosts) = self.hosts_of_warp(access, &load.operand, address, offset)
                {
                    return self.load_each_of_warp(load, hosts, guard);
                }
                let places = self.places_of_all(access, &load.operand, address, offset);
                let by_lane = |slot: &Slot| guard.is_none() && self.is_by_lane(*slot);
                if self.is_interleaved_load(load) && !load.destinations.iter().any(by_lane) {
                    let (columns, class) = self.load_interleaved(load, &places);
                    for (&slot, parts) in load.destinations.iter().zip(columns) {
                        self.define(slot, Val::Many(parts), class, guard);
                    }
                    return;
                }
                let class = Self::element(size);
                if let (&[slot], None) = (&load.destinations[..], load.extend.signed_to)
                    && self.is_near(&places, class)
                    && !by_lane(&slot)
                {
                    let whole = match access.space {
                        // What was stored in parts a moment ago is better loaded in parts.
                        Space::Shared => None,
                        _ => self.load_spans(&places, class),
                    };
                    let parts = whole.unwrap_or_else(|| self.load_near(&places, class));
                    return self.define(slot, Val::Many(parts), class, guard);
                }
                let mut columns: Vec<Vec<Value>> = vec![Vec::new(); load.destinations.len()];
                let mut class = Class::B64;
                for (host, at) in places {
                    for (i, column) in columns.iter_mut().enumerate() {
                        let (value, element) = self.load_element(load, host, at + (i as u32 * size) as i32);
                        class = element;
                        column.push(value);
                    }
                }
                for (&slot, column) in load.destinations.iter().zip(columns) {
                    if guard.is_none() && self.is_by_lane(slot) {
                        self.define_each(slot, column, class);
                        continue;
                    }
                    let parts = self.gather(&column, class);
                    self.define(slot, Val::Many(parts), class, guard);
                }
            }
        }
    }

    /// Returns where an access of all threads goes in each, all of them checked.
    pub(super) fn places_of_all(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Vec<HostAddress> {
        if let Some(places) = self.places_in_shared(access, operand, address, offset) {
            return places;
        }
        if let (Val::Many(_), Space::Shared) = (address, access.space)
            && let Some(hosts) = self.shared_hosts(access, operand, address, offset, None)
        {
            let mut places = Vec::new();
            for host in hosts {
                places.extend((0..self.per_vector(Class::B64)).map(|lane| (self.lane_of(host, lane), 0)));
            }
            return places;
        }
        let checked = self.check_group(access, operand, address, offset);
        (0..self.lanes as usize)
            .map(|lane| {
                let (base, more) = self.near_address(access, operand, address, lane);
                match checked {
                    true => self.based_host(base, offset),
                    false => self.host_address(access, operand, base, offset + more, access.size, lane),
                }
            })
            .collect()
    }

    /// Loads a row of elements of four or eight bytes.
    pub(super) fn load_row(&mut self, load: &Load, (host, at): HostAddress, guard: Option<&Val>) {
        // As it is held: a load that one instruction uses, with no cast between them, is an operand
        // of it.
        let held = self.storage(load.destinations[0]);
        let class = Self::element(load.extend.size);
        let class = if held.untyped() == class { held } else { class };
        let parts = (0..self.lanes as usize / self.per_vector(class))
            .map(|part| self.load_vector(class, part, host, at + self.length.offset(part)))
            .collect::<Vec<Value>>();
        if guard.is_none() && !load.acquire {
            self.note_row(class, &parts);
        }
        self.define(load.destinations[0], Val::Many(parts), class, guard);
    }

    /// Returns a vector of a row of elements. Where it is known that only its first threads load,
    /// no more than these do: what lies behind may have been stored apart and just now, and a load
    /// of the two would wait until both are in memory.
    fn load_vector(&mut self, class: Class, part: usize, host: Value, at: i32) -> Value {
        let ty = self.vector_type(class).unwrap_or(I64);
        let per = self.per_vector(class);
        let is_needed = |lane: &usize| self.is_known_to_go(part * per + lane) != Some(false);
        let needed = (0..per).rfind(is_needed).map_or(0, |last| last + 1) as u32 * class.bits() / 8;
        if self.is_wide() && (needed as usize) < self.length.0 {
            let bytes = i64::from(needed.max(4).next_power_of_two());
            let [at, bytes] = [i64::from(at), bytes].map(|number| self.b.ins().iconst(I64, number));
            return self.operation(Intrinsic::LoadPart, &[host, at, bytes], ty);
        }
        let (scalar, wide) = match needed {
            1..=4 => (I32, self.length.by(I32)),
            5..=8 => (I64, self.length.by(I64)),
            _ => return self.b.ins().load(ty, shared_flags(), host, at),
        };
        let value = self.b.ins().load(scalar, shared_flags(), host, at);
        let value = self.b.ins().scalar_to_vector(wide, value);
        self.vector_cast(value, ty)
    }

    /// Loads a row of elements of one or two bytes.
    fn load_packed(&mut self, load: &Load, access: Access, address: &Val, offset: i64, guard: Option<&Val>) {
        let (slot, size) = (load.destinations[0], load.extend.size);
        let base = self.lane_address(&load.operand, address, 0);
        let length = access.size * self.lanes;
        let (host, at) = self.host_address(access, &load.operand, base, offset, length, 0);
        if guard.is_none() {
            self.prefetch(load, host);
        }
        let words = (0..(length / 8) as i32).map(|word| at + 8 * word);
        if guard.is_none() && load.extend.signed_to.is_none() && self.is_by_lane(slot) {
            let words = words.map(|at| self.b.ins().load(I64, shared_flags(), host, at)).collect();
            return self.define_packed(slot, words, size);
        }
        let signed = load.extend.signed_to.filter(|&bits| bits > 8 * size);
        if self.is_wide() {
            let mut parts = self.load_widened((host, at), size, signed.is_some());
            if signed == Some(16) {
                let mask = self.vector_of(0xffff, Class::B32);
                parts.iter_mut().for_each(|part| *part = self.b.ins().band(*part, mask));
            }
            self.define(slot, Val::Many(parts.clone()), Class::B32, guard);
            if signed.is_none() && guard.is_none() {
                self.note_loaded_indices(slot, parts);
            }
            return;
        }
        if size == 1
            && signed.is_none()
            && let Some(parts) = self.load_bytes(host, at)
        {
            return self.define(slot, Val::Many(parts), Class::B32, guard);
        }
        let mut parts = Vec::new();
        for at in words {
            if size == 2 && signed.is_some() {
                parts.push(self.b.ins().sload16x4(shared_flags(), host, at));
            } else if signed.is_some() {
                let halves = self.b.ins().sload8x8(shared_flags(), host, at);
                parts.extend([self.b.ins().swiden_low(halves), self.b.ins().swiden_high(halves)]);
            } else if size == 2 {
                parts.push(self.b.ins().uload16x4(shared_flags(), host, at));
            } else {
                let halves = self.b.ins().uload8x8(shared_flags(), host, at);
                parts.extend([self.b.ins().uwiden_low(halves), self.b.ins().uwiden_high(halves)]);
            }
        }
        if signed == Some(16) {
            let mask = self.vector_of(0xffff, Class::B32);
            parts.iter_mut().for_each(|part| *part = self.b.ins().band(*part, mask));
        }
        self.define(slot, Val::Many(parts), Class::B32, guard);
    }

    /// Returns whether a thread makes the access being compiled, where that is known: on a short
    /// way of certain threads.
    pub(super) fn is_known_to_go(&self, lane: usize) -> Option<bool> {
        let own = self.plan.flow.instruction(self.pc).guard;
        let known = self.party.as_ref().filter(|_| own.is_none()).and_then(Party::known)?;
        Some(known.contains(&(lane as u32)))
    }

    /// Returns the truth of a guard in a thread, or none where it is known to hold.
    fn condition(&mut self, guard: Option<&Val>, lane: usize) -> Option<Value> {
        let guard = guard.filter(|_| self.is_known_to_go(lane) != Some(true))?;
        Some(self.lane(guard, Class::Pred, lane))
    }

    /// Returns where an access goes in each thread where a guard holds, checked, and zero in the
    /// other threads.
    pub(super) fn places(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
        guard: Option<&Val>,
    ) -> Vec<(Value, Option<Value>)> {
        if let (true, Val::Affine(base, step)) = (self.party.is_some() || self.running.is_some(), address)
            && access.space == Space::Global
            && !access.narrow
            && step % i64::from(access.align) == 0
            && step.unsigned_abs() < NEAR as u64 / u64::from(self.lanes)
        {
            // An address near a valid one is valid.
            let base = *base;
            if !self.plan.bounds_checks.is_good(operand, access.align) {
                self.check_host(access, base, offset, access.size, 0);
            }
            return (0..self.lanes as usize)
                .map(|lane| {
                    let more = step * lane as i64 + offset;
                    let condition = self.condition(guard, lane);
                    (self.b.ins().iadd_imm_s(base, more), condition)
                })
                .collect();
        }
        if guard.is_none() && self.check_group(access, operand, address, offset) {
            return (0..self.lanes as usize)
                .map(|lane| {
                    let base = self.lane_address(operand, address, lane);
                    (self.sum_with(base, offset), None)
                })
                .collect();
        }
        let before = self.mark();
        let mut places = Vec::new();
        for lane in 0..self.lanes as usize {
            let condition = self.condition(guard, lane);
            if self.is_known_to_go(lane) == Some(false) {
                let nowhere = self.constant(0, Class::B64);
                places.push((nowhere, condition));
                continue;
            }
            let done = condition.map(|condition| {
                let nowhere = self.constant(0, Class::B64);
                self.when(condition, nowhere, I64)
            });
            let base = self.lane_address(operand, address, lane);
            let (host, at) = self.host_address(access, operand, base, offset, access.size, lane);
            let mut host = self.sum_with(host, at.into());
            if let Some(done) = done {
                host = self.rejoin(done, host);
                self.forget(before);
            }
            places.push((host, condition));
        }
        places
    }

    /// Begins a block that runs if a truth value holds. [`rejoin`](Self::rejoin) ends it with a
    /// result. If the value does not hold, the result is `otherwise`.
    pub(super) fn when(&mut self, condition: Value, otherwise: Value, ty: Type) -> Block {
        let (then, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(done, ty);
        self.b.ins().brif(condition, then, &[], done, &[otherwise.into()]);
        self.go_on_in(then);
        done
    }

    pub(super) fn rejoin(&mut self, done: Block, value: Value) -> Value {
        self.b.ins().jump(done, &[value.into()]);
        self.go_on_in(done);
        self.b.block_params(done)[0]
    }

    /// Loads in the threads where a guard holds, one by one.
    pub(super) fn load_some(&mut self, load: &Load, access: Access, address: &Val, offset: i64, guard: &Val) {
        if self.load_masked(load, access, address, offset, guard, Some(guard)) {
            return;
        }
        if self.load_scattered(load, access, (address, offset), Some(guard), Some(guard)) {
            return;
        }
        let places = self.places(access, &load.operand, address, offset, Some(guard));
        self.load_at(load, &places, Some(guard));
    }

    /// Loads in threads where a truth value holds, or in all, each at an address that was checked.
    pub(super) fn load_at(&mut self, load: &Load, places: &[(Value, Option<Value>)], guard: Option<&Val>) {
        let class = match load.extend.signed_to {
            Some(bits) if bits > 8 * load.extend.size => Class::of_bits(bits),
            _ => Self::element(load.extend.size),
        };
        let everywhere: Option<Vec<HostAddress>> =
            places.iter().map(|&(host, condition)| condition.is_none().then_some((host, 0))).collect();
        if let Some(places) = everywhere.filter(|_| self.is_interleaved_load(load)) {
            let (columns, class) = self.load_interleaved(load, &places);
            for (&slot, parts) in load.destinations.iter().zip(columns) {
                self.define(slot, Val::Many(parts), class, guard);
            }
            return;
        }
        for (i, &slot) in load.destinations.iter().enumerate() {
            let at = (i as u32 * load.extend.size) as i32;
            let mut values = Vec::new();
            for &(host, condition) in places {
                let nothing = self.constant(0, class);
                let done = condition.map(|condition| self.when(condition, nothing, scalar_type(class)));
                let mut value = self.load_element(load, host, at).0;
                if let Some(done) = done {
                    value = self.rejoin(done, value);
                }
                values.push(value);
            }
            let parts = self.gather(&values, class);
            self.define(slot, Val::Many(parts), class, guard);
        }
    }

    /// Loads one element and extends it as the instruction says.
    pub(super) fn load_element(&mut self, load: &Load, host: Value, at: i32) -> (Value, Class) {
        let class = Self::element(load.extend.size);
        let flags = match load.operand.space {
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
            space: store.operand.space,
            size: store.size * store.sources.len() as u32,
            align: store.align,
            writes: true,
            narrow: store.operand.narrow,
        };
        let class = Self::element(store.size);
        let (address, offset) = self.address(&store.operand);
        let values: Vec<Val> = store.sources.iter().map(|&source| self.get(source, class)).collect();
        match &guard {
            _ if self.running.is_some() => {
                self.store_of_running(store, access, (&address, offset), &values, guard);
            }
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
            Some(guard) if self.party.is_some() => {
                let before = self.mark();
                let is_row = self.is_row(access, &address, values.len());
                if is_row
                    && let Some(row) = self.shared_row(access, &store.operand, (&address, offset), guard)
                {
                    self.store_into_row(store, row, &values[0], guard);
                } else if !self.store_near_of_some(store, access, (&address, offset), &values, guard) {
                    self.store_some(store, access, &address, offset, &values, guard);
                }
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
                self.store_by_masks(store, access, (&address, offset), &values, guard);
                self.b.ins().jump(done, &[]);
                self.go_on_in(done);
                self.forget(before);
            }
        }
    }

    /// Returns whether an access of a group goes to a row of elements in shared memory, which
    /// nobody else sees meanwhile.
    pub(super) fn is_row(&self, access: Access, address: &Val, elements: usize) -> bool {
        access.space == Space::Shared
            && elements == 1
            && matches!(access.size, 4 | 8)
            && matches!(address, Val::Affine(_, step) if *step == i64::from(access.size))
    }

    /// Stores to a row of elements where a guard holds, and leaves the others what they are.
    pub(super) fn store_into_row(
        &mut self,
        store: &Store,
        (host, at): HostAddress,
        value: &Val,
        guard: &Val,
    ) {
        let class = Self::element(store.size);
        if self.is_wide() {
            return self.store_masked_row((host, at), value, guard, class);
        }
        let (values, masks) = (self.vectors(value, class), self.masks(guard, class));
        for (part, (value, mask)) in values.into_iter().zip(masks).enumerate() {
            let at = at + self.length.offset(part);
            let ty = self.b.func.dfg.value_type(value);
            let old = self.b.ins().load(ty, shared_flags(), host, at);
            let new = self.b.ins().bitselect(mask, value, old);
            self.b.ins().store(shared_flags(), new, host, at);
        }
    }

    /// Stores in the threads where a guard holds, one by one.
    pub(super) fn store_some(
        &mut self,
        store: &Store,
        access: Access,
        address: &Val,
        offset: i64,
        values: &[Val],
        guard: &Val,
    ) {
        if self.store_masked(store, access, address, offset, values, guard) {
            return;
        }
        if self.store_scattered(store, access, (address, offset), values, Some(guard)) {
            return;
        }
        let places = self.places(access, &store.operand, address, offset, Some(guard));
        for (lane, (host, condition)) in places.into_iter().enumerate() {
            if self.is_known_to_go(lane) == Some(false) {
                continue;
            }
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

    pub(super) fn store_all(
        &mut self,
        store: &Store,
        access: Access,
        address: &Val,
        offset: i64,
        values: &[Val],
    ) {
        let own = matches!(access.space, Space::Local | Space::Generic);
        let class = Self::element(store.size);
        match (address, values) {
            (Val::Affine(_, step), [value])
                if !own && *step == i64::from(access.size) && matches!(store.size, 4 | 8) =>
            {
                let base = self.lane_address(&store.operand, address, 0);
                let length = access.size * self.lanes;
                let (host, at) = self.host_address(access, &store.operand, base, offset, length, 0);
                for (part, value) in self.vectors(value, class).into_iter().enumerate() {
                    self.b.ins().store(shared_flags(), value, host, at + self.length.offset(part));
                }
            }
            (Val::Affine(_, step), [value])
                if !own
                    && *step == i64::from(access.size)
                    && matches!(store.size, 1 | 2)
                    && (self.lanes * store.size).is_multiple_of(8) =>
            {
                let base = self.lane_address(&store.operand, address, 0);
                let length = access.size * self.lanes;
                let (host, at) = self.host_address(access, &store.operand, base, offset, length, 0);
                let parts = match value {
                    Val::One(value) => {
                        let value = self.convert(*value, class, Class::B32);
                        self.vectors(&Val::One(value), Class::B32)
                    }
                    value => self.vectors(value, class),
                };
                if self.is_wide() {
                    return self.store_narrowed((host, at), &parts, store.size);
                }
                for (word, value) in self.packed(&parts, store.size).into_iter().enumerate() {
                    self.b.ins().store(shared_flags(), value, host, at + 8 * word as i32);
                }
            }
            // The last thread's is what stays.
            (Val::One(_), _) if !own => {
                let base = self.lane_address(&store.operand, address, 0);
                let (host, at) = self.host_address(access, &store.operand, base, offset, access.size, 0);
                self.store_elements(store, host, at, values, self.lanes as usize - 1);
            }
            _ if self.store_by_rows(store, access, (address, offset), values, None) => {}
            (Val::Many(_), _)
                if !self.is_interleaved_store(store)
                    && self.store_scattered(store, access, (address, offset), values, None) => {}
            _ if !self.is_interleaved_store(store)
                && let Some(hosts) = self.hosts_of_warp(access, &store.operand, address, offset) =>
            {
                self.store_each_of_warp(store, hosts, values);
            }
            _ => {
                // A fault in one thread must not come after the store of another is done twice: all
                // are checked first.
                let places = self.places_of_all(access, &store.operand, address, offset);
                self.store_at(store, &places, values);
            }
        }
    }

    /// Stores in all threads, each at an address that was checked.
    pub(super) fn store_at(&mut self, store: &Store, places: &[HostAddress], values: &[Val]) {
        let is_by_lane = |value: &Val| matches!(value, Val::Scalarized(_));
        if self.is_interleaved_store(store) && !values.iter().any(is_by_lane) {
            return self.store_interleaved(store, places, values);
        }
        let class = Self::element(store.size);
        if let [value] = values
            && self.is_near(places, class)
            && !is_by_lane(value)
        {
            let parts = self.vectors(value, class);
            return self.store_near(places, &parts, class);
        }
        for (lane, &(host, at)) in places.iter().enumerate() {
            self.store_elements(store, host, at, values, lane);
        }
    }

    pub(super) fn store_elements(
        &mut self,
        store: &Store,
        host: Value,
        at: i32,
        values: &[Val],
        lane: usize,
    ) {
        let class = Self::element(store.size);
        for (i, value) in values.iter().enumerate() {
            let value = self.lane(value, class, lane);
            self.b.ins().store(shared_flags(), value, host, at + (i as u32 * store.size) as i32);
        }
    }
}
