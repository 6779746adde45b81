//! `match`: which lanes have the same value.
//!
//! One pass finds the lanes of one value, so there are as many passes as there are different
//! values. Where vectors are wide, the value of each lane is compared with all others instead: no
//! comparison waits for another one, and there are few.

use super::Emitter;
use super::collective::{Given, Members};
use super::each_active::AT_ONCE;
use super::value::{Val, scalar_type};
use crate::native::Class;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use gridloom_interp::lanes::Source;

impl Emitter<'_> {
    /// Returns the class of the values that lanes contribute.
    fn class_of_matched(&self, source: Source) -> Class {
        match source {
            Source::Slot(slot) => {
                let function = &self.plan.flow.code.functions[self.plan.function];
                Class::of_bits(function.type_of(slot).bits()).untyped()
            }
            // The same in all lanes, so that its width does not matter.
            Source::Constant(_) => Class::B32,
        }
    }

    /// Stores the values of the lanes where they can be loaded by lane, with room for a word of
    /// each lane behind them.
    fn store_matched(&mut self, parts: &[Value]) -> Value {
        let bytes = self.length.offset(parts.len()) as u32;
        let area = self.scratch(bytes + 4 * self.lanes);
        for (part, &value) in parts.iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), value, area, self.length.offset(part));
        }
        area
    }

    /// Returns the lanes that have the value of the first of some, as masks and as bits.
    fn same_as_first(
        &mut self,
        parts: &[Value],
        class: Class,
        area: Value,
        lanes: Value,
    ) -> (Vec<Value>, Value) {
        let first = self.b.ins().ctz(lanes);
        let first = self.b.ins().uextend(I64, first);
        let at = self.matched_in(class, area, first);
        self.same_as(parts, class, (at, 0))
    }

    /// Returns where the value of a lane is stored.
    fn matched_in(&mut self, class: Class, area: Value, lane: Value) -> Value {
        let offset = self.b.ins().ishl_imm_u(lane, i64::from((class.bits() / 8).trailing_zeros()));
        self.b.ins().iadd(area, offset)
    }

    /// Returns the lanes that have a value in memory, as masks and as bits.
    fn same_as(&mut self, parts: &[Value], class: Class, (at, more): (Value, i32)) -> (Vec<Value>, Value) {
        let value = self.b.ins().load(scalar_type(class), MemFlagsData::trusted(), at, more);
        let ty = self.vector_type(class).unwrap_or(self.length.by(I32));
        let all = self.b.ins().splat(ty, value);
        let same: Vec<Value> = parts.iter().map(|&part| self.b.ins().icmp(IntCC::Equal, part, all)).collect();
        let masks: Vec<Value> = match class.bits() {
            64 => same.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect(),
            _ => same,
        };
        let bits = self.bits_of(&masks);
        (masks, bits)
    }

    /// Emits `match.any`.
    pub(super) fn match_any(&mut self, source: Source, members: Members) -> Given {
        let class = self.class_of_matched(source);
        let value = self.get(source, class);
        if self.is_one(&value) {
            return Given { value: Some(Val::One(members.bits)), predicate: None };
        }
        let flags = MemFlagsData::trusted();
        let parts = self.vectors(&value, class);
        let area = self.store_matched(&parts);
        let results = self.length.offset(parts.len());
        if self.is_wide() {
            self.each_thread(AT_ONCE, |emitter, lane| {
                let at = emitter.matched_in(class, area, lane);
                let to = emitter.matched_in(Class::B32, area, lane);
                for more in 0..AT_ONCE as i32 {
                    let (_, same) = emitter.same_as(&parts, class, (at, more * class.bits() as i32 / 8));
                    emitter.b.ins().store(flags, same, to, results + 4 * more);
                }
            });
            let members = self.b.ins().splat(self.length.by(I32), members.bits);
            let found = (0..self.lanes as usize / self.per_vector(Class::B32)).map(|part| {
                let at = results + self.length.offset(part);
                let same = self.b.ins().load(self.length.by(I32), flags, area, at);
                self.b.ins().band(same, members)
            });
            return Given { value: Some(Val::Many(found.collect())), predicate: None };
        }
        let (head, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(head, I32);
        self.b.ins().jump(head, &[members.bits.into()]);
        self.b.switch_to_block(head);
        let rest = self.b.block_params(head)[0];
        let (masks, same) = self.same_as_first(&parts, class, area, rest);
        let same = self.b.ins().band(same, rest);
        let word = self.b.ins().splat(self.length.by(I32), same);
        for (part, &mask) in masks.iter().enumerate() {
            let at = results + self.length.offset(part);
            let old = self.b.ins().load(self.length.by(I32), flags, area, at);
            let new = self.b.ins().bitselect(mask, word, old);
            self.b.ins().store(flags, new, area, at);
        }
        let rest = self.b.ins().bxor(rest, same);
        self.b.ins().brif(rest, head, &[rest.into()], done, &[]);
        self.b.seal_block(head);
        self.go_on_in(done);
        let found = (0..masks.len()).map(|part| {
            let at = results + self.length.offset(part);
            self.b.ins().load(self.length.by(I32), flags, area, at)
        });
        Given { value: Some(Val::Many(found.collect())), predicate: None }
    }

    /// Emits `match.all`.
    pub(super) fn match_all(&mut self, source: Source, members: Members) -> Given {
        let class = self.class_of_matched(source);
        let value = self.get(source, class);
        let same = if self.is_one(&value) {
            members.bits
        } else {
            let parts = self.vectors(&value, class);
            let area = self.store_matched(&parts);
            let (_, same) = self.same_as_first(&parts, class, area, members.bits);
            self.b.ins().band(same, members.bits)
        };
        let all = self.b.ins().icmp(IntCC::Equal, same, members.bits);
        let none = self.b.ins().iconst(I32, 0);
        let lanes = self.b.ins().select(all, members.bits, none);
        Given { value: Some(Val::One(lanes)), predicate: Some(Val::One(all)) }
    }
}
