//! Collectives, for groups that are whole warps: shuffles, votes, matches, reductions, elections
//! and the warp barrier.
//!
//! The lanes of a mask must be those that execute the instruction now, except lanes that have
//! exited. If they are not, the interpreter lets the others arrive or raises a fault. Moves between
//! lanes that are known at compile time take a few vector instructions. The runtime computes the
//! rest, as the interpreter does.

use super::Emitter;
use super::value::Val;
use crate::native::Class;
use crate::runtime;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::{Collective, CollectiveKind, Guard};
use gridloom_interp::collective::shuffle_source;
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::ScalarType;
use gridloom_ptx::op::{ReduxOp, ShuffleMode, VoteMode};

/// Lanes of a warp.
const WARP: u32 = 32;

/// The lanes that execute a collective.
#[derive(Clone, Copy)]
pub(super) struct Members {
    /// Their bits.
    pub(super) bits: Value,
    /// Whether these are all lanes.
    all: bool,
}

/// The results of the lanes: a 32-bit value and a truth value.
pub(super) struct Given {
    pub(super) value: Option<Val>,
    pub(super) predicate: Option<Val>,
}

impl Emitter<'_> {
    pub(super) fn collective(&mut self, collective: &Collective, guard: Option<Guard>) {
        if self.lanes != WARP {
            return self.defect("a warp in parts");
        }
        let own = self.guard(guard);
        let done = match &own {
            None => None,
            Some(own) => {
                let (then, done) = (self.b.create_block(), self.b.create_block());
                let any = match own {
                    Val::One(condition) => *condition,
                    own => {
                        let guard = self.guard_of_running(Some(own.clone()));
                        let masks = self.vectors(guard.as_ref().unwrap_or(own), Class::Pred);
                        self.any_true(&masks)
                    }
                };
                self.b.ins().brif(any, then, &[], done, &[]);
                self.go_on_in(then);
                Some(done)
            }
        };
        let before = self.mark();
        let members = self.members(own.as_ref());
        let mask = collective.mask.map(|mask| match self.constant_word(mask) {
            Some(bits) => Val::One(self.constant(bits.into(), Class::B32)),
            None => self.get(mask, Class::B32),
        });
        let given = match mask {
            Some(Val::One(mask)) => {
                self.require_members(mask, members);
                self.exchange(collective, members)
            }
            // Without a mask, those that execute it now are its lanes.
            None => self.exchange(collective, members),
            _ => None,
        };
        let given = match given {
            Some(given) => given,
            None => self.exchange_by_call(collective, members),
        };
        if let (Some(slot), Some(value)) = (collective.destination, given.value) {
            self.define(slot, value, Class::B32, own.as_ref());
        }
        if let (Some(slot), Some(predicate)) = (collective.predicate, given.predicate) {
            let predicate = Val::Many(self.vectors(&predicate, Class::Pred));
            self.define(slot, predicate, Class::Pred, own.as_ref());
        }
        if let Some(done) = done {
            self.b.ins().jump(done, &[]);
            self.go_on_in(done);
            self.forget(before);
        }
    }

    /// Returns the value of a source if it is the same constant whenever this instruction runs,
    /// whatever else its register holds elsewhere.
    fn constant_word(&mut self, source: Source) -> Option<u32> {
        let slot = match source {
            Source::Constant(index) => {
                return Some(self.plan.flow.code.constants[index as usize][0] as u32);
            }
            Source::Slot(slot) => slot,
        };
        let known = self.plan.ranges.constant(slot).or_else(|| match self.get(source, Class::B32) {
            Val::One(value) => self.constant_of(value),
            Val::Many(parts) => {
                let first = self.element_of(parts[0])?;
                parts[1..].iter().all(|&part| self.element_of(part) == Some(first)).then_some(first)
            }
            _ => None,
        });
        known.map(|value| value as u32)
    }

    /// Returns the lanes that execute an instruction, whose own guard is given.
    fn members(&mut self, own: Option<&Val>) -> Members {
        let all = self.running.is_none() && own.is_none_or(|own| self.is_one(own));
        let bits = match (&self.running, own) {
            _ if all => self.b.ins().iconst(I32, i64::from(u32::MAX)),
            (Some(running), None | Some(Val::One(_))) => running.bits,
            _ => {
                let guard = self.guard_of_running(own.cloned());
                let masks = guard.map(|guard| self.vectors(&guard, Class::Pred)).unwrap_or_default();
                self.bits_of(&masks)
            }
        };
        Members { bits, all }
    }

    /// Returns the lanes that execute the instruction, which run together as the interpreter would
    /// run them: threads that have parted run the first block first that any of them is at.
    pub(super) fn active_mask(&mut self, destination: Slot, guard: Option<Guard>) {
        if self.lanes != WARP {
            return self.defect("a warp in parts");
        }
        let own = self.guard(guard);
        let members = self.members(own.as_ref());
        self.define(destination, Val::One(members.bits), Class::B32, own.as_ref());
    }

    /// Returns the lanes that have not exited.
    fn live_lanes(&mut self) -> Value {
        let all = self.b.ins().iconst(I32, i64::from(u32::MAX));
        match self.exited_lanes() {
            Some(exited) => self.b.ins().bxor(all, exited),
            None => all,
        }
    }

    /// Leaves the instruction to the interpreter unless the lanes of a mask are those that execute
    /// it.
    fn require_members(&mut self, mask: Value, members: Members) {
        if members.all && self.constant_of(mask).is_some_and(|mask| mask as u32 == u32::MAX) {
            return;
        }
        let live = self.live_lanes();
        let named = self.b.ins().band(mask, live);
        let here = self.b.ins().icmp(IntCC::Equal, named, members.bits);
        self.require(here, false);
    }

    /// Returns the results of the lanes, if that takes a few instructions.
    fn exchange(&mut self, collective: &Collective, members: Members) -> Option<Given> {
        let value = |emitter: &mut Self| emitter.get(collective.value, Class::B32);
        match collective.kind {
            CollectiveKind::Barrier => Some(Given { value: None, predicate: None }),
            CollectiveKind::Vote(mode) => {
                let predicate = self.get(collective.value, Class::Pred);
                let masks = self.vectors(&predicate, Class::Pred);
                let mut set = self.bits_of(&masks);
                if !members.all {
                    set = self.b.ins().band(set, members.bits);
                }
                let is_all = |emitter: &mut Self| emitter.b.ins().icmp(IntCC::Equal, set, members.bits);
                let value = match mode {
                    VoteMode::Ballot => set,
                    VoteMode::All => is_all(self),
                    VoteMode::Any => self.b.ins().icmp_imm_u(IntCC::NotEqual, set, 0),
                    VoteMode::Uni => {
                        let (all, none) = (is_all(self), self.b.ins().icmp_imm_u(IntCC::Equal, set, 0));
                        self.b.ins().bor(all, none)
                    }
                };
                let value = match mode {
                    VoteMode::Ballot => value,
                    _ => self.b.ins().uextend(I32, value),
                };
                Some(Given { value: Some(Val::One(value)), predicate: None })
            }
            CollectiveKind::Redux { op, ty, abs: false, .. } if ty != ScalarType::F32 => {
                let value = value(self);
                Some(Given { value: Some(self.reduce(op, ty, &value, members)), predicate: None })
            }
            CollectiveKind::MatchAny => Some(self.match_any(collective.value, members)),
            CollectiveKind::MatchAll => Some(self.match_all(collective.value, members)),
            CollectiveKind::Elect => {
                let leader = self.b.ins().ctz(members.bits);
                let leaders = self.vectors(&Val::One(leader), Class::B32);
                let zero = self.constant(0, Class::B32);
                let lanes = self.vectors(&Val::Affine(zero, 1), Class::B32);
                let is = lanes
                    .iter()
                    .zip(leaders)
                    .map(|(&lane, leader)| self.b.ins().icmp(IntCC::Equal, lane, leader));
                let is = is.collect();
                Some(Given { value: Some(Val::One(leader)), predicate: Some(Val::Many(is)) })
            }
            CollectiveKind::Shuffle(mode) if members.all => {
                let (b, c) = (self.constant_word(collective.b), self.constant_word(collective.c)?);
                let value = value(self);
                if let Some(b) = b {
                    return Some(self.shuffle_known(mode, &value, b, c));
                }
                let Val::One(b) = self.get(collective.b, Class::B32) else { return None };
                (c >> 8 & 31 == 0).then(|| self.shuffle_by(mode, &value, b, c)).flatten()
            }
            _ => None,
        }
    }

    /// Emits a shuffle whose source lanes are known at compile time.
    fn shuffle_known(&mut self, mode: ShuffleMode, value: &Val, b: u32, c: u32) -> Given {
        let parts = self.vectors(value, Class::B32);
        let sources: Vec<(u32, bool)> = (0..WARP)
            .map(|lane| match shuffle_source(mode, lane, b, c) {
                (source, true) if source < WARP => (source, true),
                (_, valid) => (lane, valid),
            })
            .collect();
        let mut picked = Vec::new();
        let mut valid = Vec::new();
        for some in sources.chunks(self.per_vector(Class::B32)) {
            let lanes: Vec<u32> = some.iter().map(|&(source, _)| source).collect();
            picked.push(self.pick_lanes(&parts, &lanes));
            let holds = |lane: usize| if some[lane].1 { u32::MAX.into() } else { 0 };
            valid.push(self.vector_of_each(Class::B32, holds));
        }
        Given { value: Some(Val::Many(picked)), predicate: Some(Val::Many(valid)) }
    }

    /// Returns a vector of some lanes of several.
    fn pick_lanes(&mut self, parts: &[Value], lanes: &[u32]) -> Value {
        let per = self.per_vector(Class::B32);
        let lanes: Vec<usize> = lanes.iter().map(|&lane| lane as usize).collect();
        let in_order = lanes.iter().enumerate().all(|(i, &lane)| lane == lanes[0] / per * per + i);
        if in_order {
            return parts[lanes[0] / per];
        }
        let mut found: Option<Value> = None;
        let mut done = vec![false; per];
        while let Some(next) = (0..per).find(|&i| !done[i]) {
            let part = lanes[next] / per;
            let second = parts[part];
            // Lanes found before stay; the others are selected from this part.
            let first = found.unwrap_or(second);
            let from = |i: usize| if lanes[i] / per == part { per + lanes[i] % per } else { i };
            found = Some(self.pick_words(first, second, from));
            (0..per).for_each(|i| done[i] |= lanes[i] / per == part);
        }
        found.unwrap_or(parts[0])
    }

    /// Emits a shuffle by a uniform distance or from a uniform lane, in segments of the whole warp.
    fn shuffle_by(&mut self, mode: ShuffleMode, value: &Val, b: Value, c: u32) -> Option<Given> {
        let clamp = i64::from(c & 31);
        if mode == ShuffleMode::Bfly {
            return None;
        }
        let b = self.b.ins().band_imm_u(b, 31);
        let parts = self.vectors(value, Class::B32);
        let flags = MemFlagsData::trusted();
        // The values are stored between two areas of unspecified words of the same size.
        let bytes = 4 * WARP as i32;
        let words = self.scratch(3 * bytes as u32);
        for (part, &value) in parts.iter().enumerate() {
            self.b.ins().store(flags, value, words, bytes + self.length.offset(part));
        }
        let distance = self.b.ins().uextend(I64, b);
        let distance = self.b.ins().ishl_imm_u(distance, 2);
        if mode == ShuffleMode::Idx {
            let valid = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, b, clamp);
            let at = self.b.ins().iadd(words, distance);
            let there = self.b.ins().load(I32, flags, at, bytes);
            let there = self.vectors(&Val::One(there), Class::B32);
            let valid = self.vectors(&Val::One(valid), Class::Pred);
            let picked = parts
                .iter()
                .zip(there)
                .zip(&valid)
                .map(|((&own, there), &valid)| self.b.ins().bitselect(valid, there, own));
            let picked = picked.collect();
            return Some(Given { value: Some(Val::Many(picked)), predicate: Some(Val::Many(valid)) });
        }
        let up = mode == ShuffleMode::Up;
        let at = if up { self.b.ins().isub(words, distance) } else { self.b.ins().iadd(words, distance) };
        let zero = self.constant(0, Class::B32);
        let lanes = self.vectors(&Val::Affine(zero, 1), Class::B32);
        let distances = self.vectors(&Val::One(b), Class::B32);
        let clamp = self.vector_of(clamp as u64, Class::B32);
        let ends = self.vector_of(u64::from(WARP) - 1, Class::B32);
        let (mut picked, mut valid) = (Vec::new(), Vec::new());
        for (part, &own) in parts.iter().enumerate() {
            let there = self.b.ins().load(self.length.by(I32), flags, at, bytes + self.length.offset(part));
            let (lane, distance) = (lanes[part], distances[part]);
            let (source, is_valid) = if up {
                let source = self.b.ins().isub(lane, distance);
                (source, self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, source, clamp))
            } else {
                let source = self.b.ins().iadd(lane, distance);
                (source, self.b.ins().icmp(IntCC::SignedLessThanOrEqual, source, clamp))
            };
            let inside = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, source, ends);
            let reads = self.b.ins().band(is_valid, inside);
            picked.push(self.b.ins().bitselect(reads, there, own));
            valid.push(is_valid);
        }
        Some(Given { value: Some(Val::Many(picked)), predicate: Some(Val::Many(valid)) })
    }

    /// Emits a reduction of integers.
    fn reduce(&mut self, op: ReduxOp, ty: ScalarType, value: &Val, members: Members) -> Val {
        let mut parts = self.vectors(value, Class::B32);
        if !members.all {
            let signed = ty == ScalarType::S32;
            let neutral = match op {
                ReduxOp::And => u32::MAX,
                ReduxOp::Min if signed => i32::MAX as u32,
                ReduxOp::Max if signed => i32::MIN as u32,
                ReduxOp::Min => u32::MAX,
                _ => 0,
            };
            let neutral = self.vector_of(neutral.into(), Class::B32);
            let masks = self.masks_of(members.bits);
            for (part, mask) in parts.iter_mut().zip(masks) {
                *part = self.b.ins().bitselect(mask, *part, neutral);
            }
        }
        let both = |emitter: &mut Self, a: Value, b: Value| {
            let signed = ty == ScalarType::S32;
            match op {
                ReduxOp::And => emitter.b.ins().band(a, b),
                ReduxOp::Or => emitter.b.ins().bor(a, b),
                ReduxOp::Xor => emitter.b.ins().bxor(a, b),
                ReduxOp::Add => emitter.b.ins().iadd(a, b),
                ReduxOp::Min if signed => emitter.b.ins().smin(a, b),
                ReduxOp::Max if signed => emitter.b.ins().smax(a, b),
                ReduxOp::Min => emitter.b.ins().umin(a, b),
                ReduxOp::Max => emitter.b.ins().umax(a, b),
            }
        };
        let mut all = parts[0];
        for &part in &parts[1..] {
            all = both(self, all, part);
        }
        let mut distance = self.per_vector(Class::B32);
        while distance > 1 {
            distance /= 2;
            let other = self.pick_words(all, all, |word| word ^ distance);
            all = both(self, all, other);
        }
        Val::One(self.lane_of(all, 0))
    }

    /// Returns the results of the lanes, computed by the runtime.
    fn exchange_by_call(&mut self, collective: &Collective, members: Members) -> Given {
        let flags = MemFlagsData::trusted();
        let frame = self.scratch(runtime::EXCHANGE_BYTES);
        let mut once = 0;
        let mask = match collective.mask {
            Some(mask) => self.get(mask, Class::B64),
            None => Val::One(self.b.ins().uextend(I64, members.bits)),
        };
        let operands =
            [collective.value, collective.b, collective.c].map(|source| self.get(source, Class::B64));
        for (i, value) in std::iter::once(mask).chain(operands).enumerate() {
            let at = 8 * (i as u32 * WARP) as i32;
            match value {
                Val::One(value) => {
                    self.b.ins().store(flags, value, frame, at);
                    once |= 1 << i;
                }
                value => {
                    for (part, value) in self.vectors(&value, Class::B64).into_iter().enumerate() {
                        self.b.ins().store(flags, value, frame, at + self.length.offset(part));
                    }
                }
            }
        }
        let live = self.live_lanes();
        let arguments = [
            self.b.ins().iconst(I64, std::ptr::from_ref(&collective.kind) as i64),
            frame,
            members.bits,
            live,
            self.b.ins().iconst(I32, once),
        ];
        let answer = self.call(runtime::exchange as *const () as usize, &arguments, Some(I64));
        let Some(answer) = answer else {
            self.defect("a call without an answer");
            return Given { value: None, predicate: None };
        };
        let together = self.b.ins().ushr_imm_u(answer, 32);
        self.require(together, false);
        let parts = (0..WARP as usize / self.per_vector(Class::B64))
            .map(|part| {
                let at = runtime::EXCHANGED + self.length.offset(part);
                self.b.ins().load(self.length.by(I64), flags, frame, at)
            })
            .collect();
        let value = Val::Many(self.convert_parts(parts, Class::B64, Class::B32));
        let predicate = self.b.ins().ireduce(I32, answer);
        let predicate = Val::Many(self.masks_of(predicate));
        Given { value: Some(value), predicate: Some(predicate) }
    }
}
