//! Accesses of the threads of a group to elements at known distances from each other.
//!
//! The elements of several threads that are neighbours in memory are moved at once. Elements that
//! are a few words apart are loaded with what lies between them and then picked: both ends are
//! accessed, so what is between them can be loaded too.

use super::Emitter;
use super::address::{Access, NEAR};
use super::interleaved::HostAddress;
use super::memory::shared_flags;
use super::parts::NARROW;
use super::value::{Val, per_vector, vector_type};
use crate::native::Class;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, F64X2, I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Load, MemoryOperand, Store};
use gridloom_interp::compiled::{Machine, SHARED_MARGIN};
use gridloom_interp::lanes::Source;
use std::mem::offset_of;

/// The most bytes between two elements for all that is between them to lie in their pages.
const SPREAD: i32 = 2048;

/// The most vectors that elements of one are picked from.
const MOST_SPANNED: i32 = 4;

impl Emitter<'_> {
    /// Returns how far the address of each thread is from that of the first, if that is known.
    fn lane_offsets(&self, address: &Val) -> Option<Vec<i64>> {
        match address {
            Val::Affine(_, step) => Some((0..i64::from(self.lanes)).map(|lane| lane * step).collect()),
            Val::Offsets(_, offsets) => {
                Some(offsets[..self.lanes as usize].iter().map(|&offset| offset.into()).collect())
            }
            _ => None,
        }
    }

    /// Returns where each thread accesses shared memory, if the distances between the threads are
    /// known: all are inside if the lowest and the highest are.
    pub(super) fn places_in_shared(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        address: &Val,
        offset: i64,
    ) -> Option<Vec<HostAddress>> {
        let offsets = self.offsets_in_shared(access, address, offset)?;
        let (least, most) = (*offsets.iter().min()?, *offsets.iter().max()?);
        let base = self.lane_address(operand, address, 0);
        let length = access.size + (most - least) as u32;
        let (host, at) = self.host_address(access, operand, base, offset + least, length, 0);
        Some(offsets.into_iter().map(|more| (host, at + (more - least) as i32)).collect())
    }

    fn offsets_in_shared(&self, access: Access, address: &Val, offset: i64) -> Option<Vec<i64>> {
        if access.space != Space::Shared || offset.unsigned_abs() >= 1 << 24 {
            return None;
        }
        let fits = |more: &i64| more % i64::from(access.align) == 0 && more.unsigned_abs() < NEAR as u64 / 2;
        self.lane_offsets(address).filter(|offsets| offsets.iter().all(fits))
    }

    /// Returns where each thread would access shared memory, if the accesses of all threads are
    /// harmless where a guard holds in one, and no two threads access the same element.
    fn places_of_some(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: &Val,
    ) -> Option<Vec<HostAddress>> {
        if !matches!(access.size, 4 | 8) {
            return None;
        }
        let offsets = self.offsets_in_shared(access, address, offset)?;
        let mut sorted = offsets.clone();
        sorted.sort_unstable();
        let whole = sorted.len().is_multiple_of(4);
        let apart = sorted.windows(2).all(|pair| pair[1] - pair[0] >= i64::from(access.size));
        let span = sorted[sorted.len() - 1] - sorted[0] + i64::from(access.size);
        if !whole || !apart || span as usize > SHARED_MARGIN {
            return None;
        }
        let (host, at) = match address {
            Val::Affine(..) => self.shared_start(access, operand, (address, offset), guard)?,
            _ if self.is_within_shared(access, operand) => {
                let base = self.lane_address(operand, address, 0);
                self.host_address(access, operand, base, offset, access.size, 0)
            }
            _ => return None,
        };
        Some(offsets.into_iter().map(|more| (host, at + more as i32)).collect())
    }

    /// Loads from shared memory where a guard holds in some thread. Returns whether it did.
    pub(super) fn load_near_of_some(
        &mut self,
        load: &Load,
        access: Access,
        address: (&Val, i64),
        guard: &Val,
        own: Option<&Val>,
    ) -> bool {
        if load.destinations.len() != 1 || load.extend.signed_to.is_some() {
            return false;
        }
        let Some(places) = self.places_of_some(access, &load.operand, address, guard) else {
            return false;
        };
        let class = Self::element(load.extend.size);
        let parts = self.load_near(&places, class);
        self.define(load.destinations[0], Val::Many(parts), class, own);
        true
    }

    /// Stores to shared memory where a guard holds in some thread, and leaves the elements of the
    /// other threads what they are. Returns whether it did.
    pub(super) fn store_near_of_some(
        &mut self,
        store: &Store,
        access: Access,
        address: (&Val, i64),
        values: &[Val],
        guard: &Val,
    ) -> bool {
        let [value] = values else { return false };
        let Some(places) = self.places_of_some(access, &store.operand, address, guard) else {
            return false;
        };
        let class = Self::element(store.size);
        let old = self.load_near(&places, class);
        let (new, masks) = (self.vectors(value, class), self.masks(guard, class));
        let mut parts = Vec::new();
        for ((new, old), mask) in new.into_iter().zip(old).zip(masks) {
            parts.push(self.b.ins().bitselect(mask, new, old));
        }
        self.store_near(&places, &parts, class);
        true
    }

    /// Returns whether the elements of a vector are at distances from one address.
    pub(super) fn is_near(&self, places: &[HostAddress], class: Class) -> bool {
        matches!(class.bits(), 32 | 64)
            && places.len().is_multiple_of(self.per_vector(class))
            && places.chunks(self.per_vector(class)).all(|some| some.iter().all(|place| place.0 == some[0].0))
    }

    /// Loads elements of four or eight bytes, each vector of them from [near](Self::is_near) places
    /// that all are accessed.
    pub(super) fn load_near(&mut self, places: &[HostAddress], class: Class) -> Vec<Value> {
        let size = class.bits() as i32 / 8;
        if self.is_wide() && Self::is_row_of_places(places, size) {
            let ty = self.vector_type(class).unwrap_or(I64);
            let (host, at) = places[0];
            let loads = (0..places.len() / self.per_vector(class)).map(|part| {
                let at = at + self.length.offset(part);
                self.b.ins().load(ty, shared_flags(), host, at)
            });
            return loads.collect();
        }
        let ty = vector_type(class, NARROW).unwrap_or(I32X4);
        let per = per_vector(class, NARROW);
        let mut parts = Vec::new();
        for some in places.chunks(per) {
            let host = some[0].0;
            let at: Vec<i32> = some.iter().map(|place| place.1).collect();
            let follow = |pair: &[i32]| pair[1] == pair[0] + size;
            if at.windows(2).all(follow) {
                parts.push(self.b.ins().load(ty, shared_flags(), host, at[0]));
                continue;
            }
            if size == 4 && at.chunks(2).all(follow) {
                let pair = self.load_pair(host, at[0], at[2]);
                parts.push(self.vector_cast(pair, ty));
                continue;
            }
            if size == 8 {
                let pair = self.load_pair(host, at[0], at[1]);
                parts.push(self.vector_cast(pair, ty));
                continue;
            }
            let picked = self.load_and_pick(host, &at).unwrap_or_else(|| {
                let mut vector = None;
                for (lane, &at) in at.iter().enumerate() {
                    let value = self.b.ins().load(I32, shared_flags(), host, at);
                    vector = Some(match vector {
                        None => self.b.ins().scalar_to_vector(I32X4, value),
                        Some(vector) => self.b.ins().insertlane(vector, value, lane as u8),
                    });
                }
                vector.unwrap_or(host)
            });
            parts.push(self.vector_cast(picked, ty));
        }
        self.joined(parts)
    }

    /// Loads elements from [near](Self::is_near) places that all are accessed, in vectors that are
    /// longer than 16 bytes: all that lies between those of a vector, if that fills few vectors,
    /// from which the elements are picked.
    pub(super) fn load_spans(&mut self, places: &[HostAddress], class: Class) -> Option<Vec<Value>> {
        let (size, length) = (class.bits() as i32 / 8, self.length.0 as i32);
        let ty = self.vector_type(class)?;
        let spans: Option<Vec<(i32, i32)>> = places
            .chunks(self.per_vector(class))
            .map(|some| {
                let at = || some.iter().map(|place| place.1);
                let (least, most) = (at().min()?, at().max()?);
                let span = most - least + size;
                let fits = (length..=MOST_SPANNED * length).contains(&span);
                (fits && at().all(|at| (at - least) % 4 == 0)).then_some((least, span))
            })
            .collect();
        if !self.is_wide() {
            return None;
        }
        let mut parts = Vec::new();
        for (some, (least, span)) in places.chunks(self.per_vector(class)).zip(spans?) {
            let words = self.length.by(I32);
            // The last vector ends where the last element does.
            let starts: Vec<i32> =
                (0..span).step_by(length as usize).map(|start| start.min(span - length)).collect();
            let mut picked: Option<Value> = None;
            for (number, &start) in starts.iter().enumerate() {
                let next = self.b.ins().load(words, shared_flags(), some[0].0, least + start);
                let count = length as usize / 4;
                let per = size as usize / 4;
                let first = picked.unwrap_or(next);
                // Words of earlier vectors are in their places already.
                picked = Some(self.pick_words(first, next, |word| {
                    let at = some[word / per].1 - least + 4 * (word % per) as i32;
                    let from = starts.iter().position(|&start| (start..start + length).contains(&at));
                    match from.is_some_and(|from| from == number) {
                        true => count + (at - start) as usize / 4,
                        false => word,
                    }
                }));
            }
            parts.push(self.vector_cast(picked?, ty));
        }
        Some(parts)
    }

    /// Returns whether elements follow each other.
    fn is_row_of_places(places: &[HostAddress], size: i32) -> bool {
        places.windows(2).all(|pair| pair[1] == (pair[0].0, pair[0].1 + size))
    }

    /// Loads two elements of eight bytes into a vector. As floats they need not pass through other
    /// registers.
    fn load_pair(&mut self, host: Value, low: i32, high: i32) -> Value {
        let low = self.b.ins().load(F64, shared_flags(), host, low);
        let low = self.b.ins().scalar_to_vector(F64X2, low);
        let high = self.b.ins().load(F64, shared_flags(), host, high);
        self.b.ins().insertlane(low, high, 1)
    }

    /// Loads four words that are spread over two vectors of memory, the first two over the first.
    /// Nothing in front of the lowest or behind the highest is loaded.
    fn load_and_pick(&mut self, host: Value, at: &[i32]) -> Option<Value> {
        let (least, most) = (*at.iter().min()?, *at.iter().max()?);
        // Farther apart there may be a page between them that nobody accesses.
        if !(12..SPREAD).contains(&(most - least)) || at.iter().any(|at| (at - least) % 4 != 0) {
            return None;
        }
        // The last word of the second vector is the highest.
        let starts = [least, most - 12];
        let within = |at: i32, start: i32| (start..=start + 12).contains(&at);
        let from_ends = at[..2].iter().all(|&at| within(at, starts[0]))
            && at[2..].iter().all(|&at| within(at, starts[1]));
        if !from_ends {
            return None;
        }
        let [low, high] = starts.map(|start| {
            let vector = self.b.ins().load(I32X4, shared_flags(), host, start);
            self.vector_cast(vector, I8X16)
        });
        let bytes = std::array::from_fn(|i| {
            let (lane, byte) = (i / 4, i as u8 % 4);
            let half = lane / 2;
            (at[lane] - starts[half]) as u8 + 16 * half as u8 + byte
        });
        let picked = self.shuffle(low, high, bytes);
        Some(self.vector_cast(picked, I32X4))
    }

    /// Stores elements of four or eight bytes, each vector of them to [near](Self::is_near) places.
    pub(super) fn store_near(&mut self, places: &[HostAddress], parts: &[Value], class: Class) {
        let size = class.bits() as i32 / 8;
        if self.is_wide() && Self::is_row_of_places(places, size) {
            let (host, at) = places[0];
            for (part, &value) in parts.iter().enumerate() {
                self.b.ins().store(shared_flags(), value, host, at + self.length.offset(part));
            }
            return;
        }
        let parts = self.split_up(parts);
        for (some, &part) in places.chunks(per_vector(class, NARROW)).zip(&parts) {
            let host = some[0].0;
            let at: Vec<i32> = some.iter().map(|place| place.1).collect();
            let follow = |pair: &[i32]| pair[1] == pair[0] + size;
            if at.windows(2).all(follow) {
                self.b.ins().store(shared_flags(), part, host, at[0]);
            } else if size == 8 || at.chunks(2).all(follow) {
                let part = self.vector_cast(part, I64X2);
                for (lane, at) in [at[0], at[at.len() / 2]].into_iter().enumerate() {
                    let value = self.b.ins().extractlane(part, lane as u8);
                    self.b.ins().store(shared_flags(), value, host, at);
                }
            } else {
                let part = self.vector_cast(part, I32X4);
                for (lane, at) in at.into_iter().enumerate() {
                    let value = self.b.ins().extractlane(part, lane as u8);
                    self.b.ins().store(shared_flags(), value, host, at);
                }
            }
        }
    }

    /// Returns whether a register is computed from the index of the thread and from what is the
    /// same in all threads, and not from anything loaded.
    fn is_computed_address(&self, access: Access, operand: &MemoryOperand, address: &Val) -> bool {
        let Base::Source(Source::Slot(slot)) = operand.base else { return false };
        access.space == Space::Shared
            && access.size == 4
            && self.lanes >= 8
            && matches!(address, Val::Many(_))
            && self.plan.uniformity.is_computed(slot)
    }

    /// Branches on whether the threads of each four access neighbouring words of shared memory.
    /// Sums of the index of a thread and a distance that is a power of two often are such, and are
    /// then moved in vectors. Returns the places of the first of each four, the blocks of both
    /// cases, and the places of each thread for the case that they are not. All addresses are
    /// checked.
    fn split_by_rows(
        &mut self,
        access: Access,
        operand: &MemoryOperand,
        (address, offset): (&Val, i64),
        guard: Option<&Val>,
    ) -> Option<Rows> {
        if !self.is_computed_address(access, operand, address) {
            return None;
        }
        let masks = guard.map(|guard| self.vectors(guard, Class::Pred));
        let words = self.shared_words(access, operand, address, offset, masks.as_deref())?;
        let mut same = Vec::new();
        for &part in &words {
            let steps = self.vector_of_each(Class::B32, |lane| 4 * (lane as u64 % 4));
            let starts = self.b.ins().isub(part, steps);
            let first = self.pick_words(starts, starts, |word| word & !3);
            same.push(self.b.ins().icmp(IntCC::Equal, starts, first));
        }
        let all = self.all_true(&same);
        let (row, each) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(all, row, &[], each, &[]);
        Some(Rows { row, each, words, masks })
    }

    /// Returns the place of the first word of each four, or one of the code's own if no thread of
    /// the four makes the access.
    fn row_starts(&mut self, rows: &Rows) -> Vec<Value> {
        let start = self.machine_field(offset_of!(Machine, shared), I64);
        let mut places = Vec::new();
        let (words, masks) =
            (self.split_up(&rows.words), rows.masks.as_deref().map(|masks| self.split_up(masks)));
        for (i, &part) in words.iter().enumerate() {
            let word = self.b.ins().extractlane(part, 0);
            // It may lie in front of the memory if the first thread does not make the access.
            let word = self.b.ins().sextend(I64, word);
            let mut place = self.b.ins().iadd(start, word);
            if let Some(masks) = &masks {
                let any = self.b.ins().vany_true(masks[i]);
                let nowhere = self.nowhere();
                place = self.b.ins().select(any, place, nowhere);
            }
            places.push(place);
        }
        places
    }

    /// Returns the places of all threads, with one of the code's own for those that do not make the
    /// access.
    fn row_places(&mut self, rows: &Rows, guard: Option<&Val>) -> Vec<HostAddress> {
        let mut places = Vec::new();
        let wide = guard.map(|guard| self.masks(guard, Class::B64));
        for (i, host) in self.hosts_of_words(&rows.words).into_iter().enumerate() {
            let host = match &wide {
                Some(wide) => {
                    let nowhere = self.nowhere();
                    let nowhere = self.b.ins().splat(self.length.by(I64), nowhere);
                    self.b.ins().bitselect(wide[i], host, nowhere)
                }
                None => host,
            };
            places.extend((0..self.per_vector(Class::B64)).map(|lane| (self.lane_of(host, lane), 0)));
        }
        places
    }

    /// Loads words of shared memory at computed addresses, where a guard holds or in all threads.
    /// Returns whether it did.
    pub(super) fn load_by_rows(
        &mut self,
        load: &Load,
        access: Access,
        address: (&Val, i64),
        guard: Option<&Val>,
        own: Option<&Val>,
    ) -> bool {
        let &[slot] = &load.destinations[..] else { return false };
        if load.extend.signed_to.is_some() || self.is_by_lane(slot) {
            return false;
        }
        let Some(rows) = self.split_by_rows(access, &load.operand, address, guard) else { return false };
        let done = self.b.create_block();
        let ty = self.length.by(I32);
        let parts: Vec<Value> = rows.words.iter().map(|_| self.b.append_block_param(done, ty)).collect();
        let before = self.mark();
        self.go_on_in(rows.row);
        let mut loaded = Vec::new();
        for place in self.row_starts(&rows) {
            loaded.push(self.b.ins().load(I32X4, shared_flags(), place, 0));
        }
        let loaded: Vec<BlockArg> = self.joined(loaded).into_iter().map(BlockArg::from).collect();
        self.b.ins().jump(done, &loaded);
        self.go_on_in(rows.each);
        self.forget(before);
        let gathered = match self.is_wide() {
            true => {
                let places = self.scattered_in_shared(rows.words.clone());
                self.gather_elements(&places, Class::B32, guard)
            }
            false => {
                let mut values = Vec::new();
                for (host, at) in self.row_places(&rows, guard) {
                    values.push(self.b.ins().load(I32, shared_flags(), host, at));
                }
                self.gather(&values, Class::B32)
            }
        };
        let gathered: Vec<BlockArg> = gathered.into_iter().map(BlockArg::from).collect();
        self.b.ins().jump(done, &gathered);
        self.go_on_in(done);
        self.forget(before);
        self.define(slot, Val::Many(parts), Class::B32, own);
        true
    }

    /// Stores words to shared memory at computed addresses, where a guard holds or in all threads.
    /// Returns whether it did.
    pub(super) fn store_by_rows(
        &mut self,
        store: &Store,
        access: Access,
        address: (&Val, i64),
        values: &[Val],
        guard: Option<&Val>,
    ) -> bool {
        let [value @ (Val::Many(_) | Val::One(_))] = values else { return false };
        if !self.is_computed_address(access, &store.operand, address.0) {
            return false;
        }
        let new = self.vectors(value, Class::B32);
        let Some(rows) = self.split_by_rows(access, &store.operand, address, guard) else { return false };
        let done = self.b.create_block();
        let before = self.mark();
        self.go_on_in(rows.row);
        let places = self.row_starts(&rows);
        let values = self.split_up(&new);
        let masks = rows.masks.as_deref().map(|masks| self.split_up(masks));
        for (i, place) in places.into_iter().enumerate() {
            let part = match &masks {
                // The elements of the other threads stay what they are.
                Some(masks) => {
                    let old = self.b.ins().load(I32X4, shared_flags(), place, 0);
                    self.b.ins().bitselect(masks[i], values[i], old)
                }
                None => values[i],
            };
            self.b.ins().store(shared_flags(), part, place, 0);
        }
        self.b.ins().jump(done, &[]);
        self.go_on_in(rows.each);
        self.forget(before);
        if self.is_wide() {
            let places = self.scattered_in_shared(rows.words.clone());
            self.scatter_elements(&places, Class::B32, guard, &new);
        } else {
            for (lane, (host, at)) in self.row_places(&rows, guard).into_iter().enumerate() {
                let per = self.per_vector(Class::B32);
                let value = self.lane_of(new[lane / per], lane % per);
                self.b.ins().store(shared_flags(), value, host, at);
            }
        }
        self.b.ins().jump(done, &[]);
        self.go_on_in(done);
        self.forget(before);
        true
    }
}

/// An access that is made in vectors or thread by thread, whichever the addresses allow.
struct Rows {
    row: Block,
    each: Block,
    /// The addresses in shared memory, in 32 bits.
    words: Vec<Value>,
    /// Where the access is made, unless in all threads.
    masks: Option<Vec<Value>>,
}
