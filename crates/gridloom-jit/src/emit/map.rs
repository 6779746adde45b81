//! Instructions that only compute: functions of registers, for each thread of a group or once for
//! all.

use super::Emitter;
use super::speculative_nan::Doubt;
use super::value::Val;
use crate::analysis::alignment;
use crate::analysis::lanewise;
use crate::analysis::nan_canonicalization;
use crate::analysis::uniformity::{self, Shape};
use crate::native::{Class, Kind, Native};
use crate::runtime::{self, MOST};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::Instruction;
use gridloom_interp::lanes::{Lanewise, Slot, Source};

impl Emitter<'_> {
    /// Emits a function of registers.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    pub(super) fn map(&mut self, instruction: &Instruction, map: &Box<dyn Lanewise>) {
        self.keeps_nan = false;
        let guard = self.guard(instruction.guard);
        let Some(native) = self.plan.natives[(self.pc - self.plan.flow.range.start) as usize] else {
            let results = self.call_map(map);
            for (&slot, value) in map.destinations().iter().zip(results) {
                let class = self.storage(slot);
                self.define(slot, value, class, guard.as_ref());
            }
            return;
        };
        let destinations = map.destinations();
        let lazy = destinations.iter().all(|slot| self.plan.noncanonical_nan[slot.0 as usize]);
        let pending = !lazy && guard.is_none() && self.can_be_pending(&native, map.as_ref());
        self.keeps_nan = lazy || pending;
        // A plain move may pass any NaN to a register that may hold any.
        self.any_nan = nan_canonicalization::ignores_payload(&native)
            || self.keeps_nan && matches!(native.kind, Kind::Copy | Kind::Select);
        let mut operands: Vec<Val> = map
            .sources()
            .iter()
            .zip(native.operands)
            .map(|(&source, class)| self.get(source, class))
            .collect();
        self.any_nan = false;
        if let (Kind::FloatFma { .. }, &[a, b, _]) = (native.kind, map.sources())
            && !(matches!(operands[0], Val::Many(_)) && self.ends_here(a, destinations))
            && (matches!(operands[1], Val::Many(_)) && self.ends_here(b, destinations))
        {
            // The result takes the register of the first factor, which is copied if it is needed
            // later.
            operands.swap(0, 1);
        }
        let by_lane = operands.iter().any(|operand| matches!(operand, Val::Scalarized(_)));
        if let (&[slot], true) = (destinations, by_lane && lanewise::is_simple(&native))
            && self.is_by_lane(slot)
        {
            self.keeps_nan = false;
            return self.define_computed(slot, native, operands);
        }
        if let (&[p, q], Kind::Compare { compare, signed, ftz, combine }) = (destinations, native.kind) {
            let alone = Native { kind: Kind::Compare { compare, signed, ftz, combine: None }, ..native };
            let holds = self.evaluate(&alone, &operands[..2], map);
            let opposite = match &holds {
                Val::One(value) | Val::Affine(value, _) | Val::Offsets(value, _) => {
                    Val::One(self.b.ins().bxor_imm_u(*value, 1))
                }
                value => {
                    let parts = self.vectors(value, Class::Pred);
                    Val::Many(parts.iter().map(|&part| self.b.ins().bnot(part)).collect())
                }
            };
            for (slot, value) in [(p, holds), (q, opposite)] {
                let value = match combine {
                    None => value,
                    Some(op) => {
                        let kind = Kind::Logic(match op {
                            gridloom_ptx::op::BoolOp::And => gridloom_ptx::op::LogicOp::And,
                            gridloom_ptx::op::BoolOp::Or => gridloom_ptx::op::LogicOp::Or,
                            gridloom_ptx::op::BoolOp::Xor => gridloom_ptx::op::LogicOp::Xor,
                        });
                        let logic = Native { kind, operands: [Class::Pred; 4], result: Class::Pred };
                        self.evaluate(&logic, &[value, operands[2].clone()], map)
                    }
                };
                let value = self.fit(slot, value, Class::Pred);
                self.define(slot, value, Class::Pred, guard.as_ref());
            }
            return;
        }
        let value = self.evaluate(&native, &operands, map);
        self.keeps_nan = false;
        self.note_indices(&native, &operands, map.sources(), &value);
        for &slot in destinations {
            let value = self.fit(slot, value.clone(), native.result);
            self.define(slot, value, native.result, guard.as_ref());
            if pending {
                self.pending.insert(slot);
            }
            self.note_speculative(slot, &native);
        }
        if let (&[slot], None) = (destinations, &guard) {
            self.note_predicate(slot, &native, &operands, map.sources());
        }
    }

    /// Returns whether an operand is dead after the instruction.
    fn ends_here(&self, source: Source, destinations: &[Slot]) -> bool {
        match source {
            Source::Slot(slot) => destinations.contains(&slot) || !self.live_after.contains(slot),
            Source::Constant(_) => false,
        }
    }

    /// Returns whether the result may stay a non-canonical NaN until the end of the block. Every
    /// NaN in it then stands for the canonical one.
    fn can_be_pending(&self, native: &Native, map: &dyn Lanewise) -> bool {
        let passes_on = |count: usize| {
            map.sources().iter().take(count).all(|&source| match source {
                Source::Slot(slot) => self.holds_any_nan(slot),
                Source::Constant(_) => false,
            })
        };
        self.party.is_none()
            && !self.rematerializing
            // Waiting threads may hold a NaN that was loaded.
            && matches!(map.destinations(), &[slot] if self.storage(slot).bits() == 32 && !self.is_kept(slot))
            && match native.kind {
                Kind::Copy => native.result == Class::F32 && passes_on(1),
                Kind::Select => native.result == Class::F32 && passes_on(2),
                _ => nan_canonicalization::computes(native),
            }
    }

    /// Converts a value that is the same in all threads to the form of a register that may differ
    /// between them.
    fn fit(&mut self, slot: Slot, value: Val, class: Class) -> Val {
        match (self.plan.uniformity.get(slot), &value) {
            (Shape::Varying, Val::One(one)) if class == Class::Pred => {
                let parts = self.vectors(&Val::One(*one), class);
                Val::Many(parts)
            }
            _ => value,
        }
    }

    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn evaluate(&mut self, native: &Native, operands: &[Val], map: &Box<dyn Lanewise>) -> Val {
        if let &[slot] = map.destinations()
            && let Shape::Offsets(offsets) = self.plan.uniformity.get(slot)
        {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| self.lane(operand, class, 0))
                .collect();
            return Val::Offsets(self.lower(native, &values, false).value, offsets);
        }
        if operands.iter().all(|operand| self.is_one(operand)) {
            let values: Vec<Value> =
                operands.iter().map(|operand| self.lane(operand, Class::B64, 0)).collect();
            let lowered = self.lower(native, &values, false);
            let Some(rare) = lowered.rare else { return Val::One(lowered.value) };
            if self.can_speculate(native) {
                self.speculate(native, operands, &[lowered.value], Doubt::One(rare));
                return Val::One(lowered.value);
            }
            let joined = self.unless(rare, &[lowered.value], native.result, map);
            return Val::One(joined[0]);
        }
        let shapes: Vec<Shape> = operands
            .iter()
            .map(|operand| match operand {
                Val::One(_) => Shape::Uniform,
                Val::Affine(_, step) => Shape::Affine(*step),
                Val::Offsets(_, offsets) => Shape::Offsets(*offsets),
                Val::Many(_) | Val::Scalarized(_) => Shape::Varying,
            })
            .collect();
        let constant = |i: usize| match map.sources().get(i) {
            Some(Source::Constant(index)) => Some(self.plan.flow.code.constants[*index as usize][0]),
            _ => None,
        };
        if shapes.iter().all(|&shape| shape != Shape::Varying)
            && let Some(shape) = uniformity::affine(native, &shapes, constant)
        {
            return self.evaluate_affine(native, operands, shape);
        }
        if let Some(shape) = self.aligned_shape(native, &shapes, map.sources()) {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| self.lane(operand, class, 0))
                .collect();
            let first = self.lower(native, &values, false).value;
            return match shape {
                Shape::Affine(step) => Val::Affine(first, step),
                _ => Val::One(first),
            };
        }
        if let Some((values, rare)) = self.lower_vectors(native, operands) {
            if rare.is_empty() {
                return Val::Many(values);
            }
            if self.can_speculate(native) {
                self.speculate(native, operands, &values, Doubt::Many(&rare));
                return Val::Many(values);
            }
            let any = self.any_true(&rare);
            return Val::Many(self.unless(any, &values, native.result, map));
        }
        let mut results = Vec::new();
        let mut rare = None;
        for lane in 0..self.lanes as usize {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| self.lane(operand, class, lane))
                .collect();
            let lowered = self.lower(native, &values, false);
            results.push(lowered.value);
            if let Some(new) = lowered.rare {
                rare = Some(match rare {
                    None => new,
                    Some(old) => self.b.ins().bor(old, new),
                });
            }
        }
        let parts = self.gather(&results, native.result);
        Val::Many(match rare {
            None => parts,
            Some(rare) => self.unless(rare, &parts, native.result, map),
        })
    }

    /// Returns the shape of a result of an operand that rises from a multiple of a power of two.
    fn aligned_shape(&self, native: &Native, operands: &[Shape], sources: &[Source]) -> Option<Shape> {
        let uniformity = self.plan.uniformity;
        let constant = |i: usize| match sources.get(i) {
            Some(Source::Constant(index)) => Some(self.plan.flow.code.constants[*index as usize][0]),
            _ => None,
        };
        let exponent = |i: usize| match sources[i] {
            Source::Slot(slot) => uniformity.exponent(slot),
            Source::Constant(_) => 0,
        };
        alignment::shape(native, operands, exponent, constant, uniformity.lanes())
    }

    /// Emits a result that is affine because its operands are. If it widens an operand, that must
    /// not wrap within the group.
    fn evaluate_affine(&mut self, native: &Native, operands: &[Val], shape: Shape) -> Val {
        let at = |emitter: &mut Self, lane: usize| {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| emitter.lane(operand, class, lane))
                .collect();
            emitter.lower(native, &values, false).value
        };
        if uniformity::widens(native).is_some()
            && !self.plan.rematerialization.contains(self.pc)
            && (self.party.is_some() || self.running.is_some())
        {
            return self.evaluate_affine_of_some(native, operands, shape);
        }
        let first = at(self, 0);
        let step = match shape {
            Shape::Affine(step) => step,
            _ => 0,
        };
        // An invariant value is known not to wrap.
        if let Some(signed) = uniformity::widens(native)
            && !self.plan.rematerialization.contains(self.pc)
        {
            let narrow = operands
                .iter()
                .zip(native.operands)
                .take(2)
                .all(|(operand, class)| class.bits() == 32 || matches!(operand, Val::One(_)));
            if !narrow || matches!(native.kind, Kind::Extend { to: 32, .. }) {
                let lane = self.lanes as usize - 1;
                let last = at(self, lane);
                let expected = self.b.ins().iadd_imm_s(first, step.wrapping_mul(lane as i64));
                let same = self.b.ins().icmp(IntCC::Equal, last, expected);
                self.go_on_if(same);
            } else {
                for (operand, class) in operands.iter().zip(native.operands).take(2) {
                    if let (&Val::Affine(value, step), 32) = (operand, class.bits()) {
                        self.require_no_wrap(value, step, signed);
                    }
                }
            }
        }
        if step == 0 { Val::One(first) } else { Val::Affine(first, step) }
    }

    /// Leaves the instruction to the interpreter unless a truth value holds.
    pub(super) fn go_on_if(&mut self, holds: Value) {
        self.require(holds, false);
    }

    /// Returns the truth of an affine value of 32 or 64 bits with a small step not wrapping within
    /// the group.
    pub(super) fn does_not_wrap(&mut self, first: Value, step: i64, signed: bool) -> Value {
        let ty = self.b.func.dfg.value_type(first);
        let span = i128::from(step) * i128::from(self.lanes - 1);
        let (most, least): (i128, i128) = match (ty == I64, signed) {
            (false, true) => (i32::MAX.into(), i32::MIN.into()),
            (false, false) => (u32::MAX.into(), 0),
            (true, true) => (i64::MAX.into(), i64::MIN.into()),
            (true, false) => (u64::MAX.into(), 0),
        };
        let (limit, compare) = match (step > 0, signed) {
            (true, true) => (most - span, IntCC::SignedLessThanOrEqual),
            (true, false) => (most - span, IntCC::UnsignedLessThanOrEqual),
            (false, true) => (least - span, IntCC::SignedGreaterThanOrEqual),
            (false, false) => (least - span, IntCC::UnsignedGreaterThanOrEqual),
        };
        let limit = if ty == I64 { limit as i64 } else { i64::from(limit as u32) };
        let limit = self.b.ins().iconst(ty, limit);
        self.b.ins().icmp(compare, first, limit)
    }

    /// Leaves the instruction to the interpreter if an affine operand wraps within the group,
    /// unless it is known not to.
    pub(super) fn require_no_wrap(&mut self, first: Value, step: i64, signed: bool) {
        if !self.facts.unwrapped.contains(&(first, step, signed)) {
            let holds = self.does_not_wrap(first, step, signed);
            self.go_on_if(holds);
            self.facts.unwrapped.push((first, step, signed));
        }
    }

    /// Returns values or, if a truth value holds, the results of the interpreter's function.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn unless(&mut self, rare: Value, values: &[Value], class: Class, map: &Box<dyn Lanewise>) -> Vec<Value> {
        let (cold, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        for &value in values {
            let ty = self.b.func.dfg.value_type(value);
            self.b.append_block_param(done, ty);
        }
        let arguments: Vec<ir::BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.b.ins().brif(rare, cold, &[], done, &arguments);
        self.go_on_in(cold);
        let classes = vec![class; map.destinations().len()];
        let result = self.call_map_with(map, &classes, true).swap_remove(0);
        let exact = match result {
            Val::Many(parts) => parts,
            value @ Val::Scalarized(_) => self.vectors(&value, class),
            Val::One(value) | Val::Affine(value, _) | Val::Offsets(value, _) => vec![value],
        };
        let arguments: Vec<ir::BlockArg> = exact.iter().map(|&value| value.into()).collect();
        if arguments.len() != values.len() {
            self.defect("a result of two shapes");
        }
        self.b.ins().jump(done, &arguments);
        self.go_on_in(done);
        self.b.block_params(done).to_vec()
    }

    /// Calls the interpreter's function for an instruction. The results have the classes of their
    /// registers.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn call_map(&mut self, map: &Box<dyn Lanewise>) -> Vec<Val> {
        let classes: Vec<Class> = map.destinations().iter().map(|&slot| self.storage(slot)).collect();
        self.call_map_with(map, &classes, false)
    }

    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn call_map_with(&mut self, map: &Box<dyn Lanewise>, classes: &[Class], rarely: bool) -> Vec<Val> {
        let (sources, destinations) = (map.sources(), map.destinations());
        if sources.len() > MOST || destinations.len() > MOST {
            self.defect("an instruction of too many operands");
        }
        let uniform = sources.iter().all(|&source| self.plan.uniformity.source(source) == Shape::Uniform);
        let lanes = if uniform { 1 } else { self.lanes as usize };
        let half = 8 * (lanes * MOST) as i32;
        let buffer = self.scratch(2 * half as u32);
        let flags = MemFlagsData::trusted();
        let mut once = 0;
        for (i, &source) in sources.iter().enumerate() {
            let at = 8 * (i * lanes) as i32;
            match self.get(source, Class::B64) {
                Val::One(value) => {
                    self.b.ins().store(flags, value, buffer, at);
                    once |= 1 << i;
                }
                value => {
                    for (part, value) in self.vectors(&value, Class::B64).into_iter().enumerate() {
                        self.b.ins().store(flags, value, buffer, at + self.length.offset(part));
                    }
                }
            }
        }
        let arguments = [
            self.b.ins().iconst(I64, std::ptr::from_ref(map) as i64),
            buffer,
            self.b.ins().iadd_imm_s(buffer, i64::from(half)),
            self.b.ins().iconst(I32, lanes as i64),
            self.b.ins().iconst(I32, once),
        ];
        let function = runtime::call_map as *const () as usize;
        if rarely {
            self.call_rarely(function, &arguments);
        } else {
            self.call(function, &arguments, None);
        }
        let mut results = Vec::new();
        for (i, &class) in classes.iter().enumerate() {
            let at = half + 8 * (i * lanes) as i32;
            if uniform {
                let value = self.b.ins().load(I64, flags, buffer, at);
                results.push(Val::One(self.convert(value, Class::B64, class)));
                continue;
            }
            let parts = (0..lanes / self.per_vector(Class::B64))
                .map(|part| {
                    let at = at + self.length.offset(part);
                    self.b.ins().load(self.length.by(I64), flags, buffer, at)
                })
                .collect();
            let mut parts = self.convert_parts(parts, Class::B64, class);
            if matches!(class, Class::B8 | Class::B16) {
                let mask = self.vector_of((1 << class.bits()) - 1, Class::B32);
                parts.iter_mut().for_each(|part| *part = self.b.ins().band(*part, mask));
            }
            results.push(Val::Many(parts));
        }
        results
    }
}
