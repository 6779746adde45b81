//! Values of a group of threads: registers, operands and results.

use super::Emitter;
use super::branch::Party;
use super::parts::NARROW;
use super::scalarized::Scalarized;
use crate::analysis::flow::SlotSet;
use crate::analysis::lane_offsets::Offsets;
use crate::analysis::uniformity::Shape;
use crate::native::Class;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I32X4, I64};
use cranelift_codegen::ir::{
    BlockArg, ConstantData, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, ValueDef,
};
use cranelift_frontend::Variable;
use gridloom_interp::code::Guard;
use gridloom_interp::lanes::{Slot, Source};
use std::rc::Rc;

/// A value in all threads of a group.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// The same in all threads.
    One(Value),
    /// This value in the first thread, and a step more in each that follows.
    Affine(Value, i64),
    /// This value in the first thread, and so much more in each.
    Offsets(Value, Offsets),
    /// Vectors, each for as many threads as it has elements.
    Many(Vec<Value>),
    /// A value of each thread by itself.
    Scalarized(Rc<Scalarized>),
}

/// Returns the type of a value of one thread.
pub(crate) fn scalar_type(class: Class) -> Type {
    match class {
        Class::Pred | Class::B8 => I8,
        Class::B16 => I16,
        Class::B32 => I32,
        Class::B64 => I64,
        Class::F32 => F32,
        Class::F64 => F64,
    }
}

/// Returns the vector type of a class with so many bytes, if there is one. A predicate is all ones
/// or all zeros in 32 bits.
pub(crate) fn vector_type(class: Class, bytes: usize) -> Option<Type> {
    let lane = match class {
        Class::Pred | Class::B32 => I32,
        Class::B64 => I64,
        Class::F32 => F32,
        Class::F64 => F64,
        Class::B8 | Class::B16 => return None,
    };
    lane.by(bytes as u32 / lane.bytes())
}

/// Returns how many values a vector of so many bytes holds.
pub(crate) fn per_vector(class: Class, bytes: usize) -> usize {
    bytes / if class.bits() == 64 { 8 } else { 4 }
}

impl Emitter<'_> {
    /// Returns the vector type of a class, if there is one.
    pub(crate) fn vector_type(&self, class: Class) -> Option<Type> {
        vector_type(class, self.length.0)
    }

    /// Returns how many values a vector holds.
    pub(crate) fn per_vector(&self, class: Class) -> usize {
        per_vector(class, self.length.0)
    }

    /// Returns how the value of a slot is held: in 1, 32 or 64 bits, as an integer or a float.
    pub(crate) fn storage(&self, slot: Slot) -> Class {
        self.plan.storage[slot.0 as usize]
    }

    /// Returns the same bits as another type of vector.
    pub(crate) fn vector_cast(&mut self, value: Value, ty: Type) -> Value {
        let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        self.cast(value, ty, flags)
    }

    /// Returns the same bits as another type of one value.
    pub(crate) fn bitcast(&mut self, value: Value, ty: Type) -> Value {
        self.cast(value, ty, MemFlagsData::new())
    }

    fn cast(&mut self, value: Value, ty: Type, flags: MemFlagsData) -> Value {
        let dfg = &self.b.func.dfg;
        if dfg.value_type(value) == ty {
            return value;
        }
        // Undoes an earlier cast, which is then often not needed.
        if let ValueDef::Result(inst, _) = dfg.value_def(value)
            && let InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. } = dfg.insts[inst]
        {
            return self.cast(arg, ty, flags);
        }
        match self.float_constant_of(value) {
            Some(bits) if ty.is_int() => self.b.ins().iconst(ty, bits as i64),
            _ => self.b.ins().bitcast(ty, flags, value),
        }
    }

    /// Converts a value of one thread to another class: truncates or zero-extends its bits.
    pub(crate) fn convert(&mut self, value: Value, from: Class, to: Class) -> Value {
        if from == to {
            return value;
        }
        if let (Some(bits), Class::B8 | Class::B16 | Class::B32 | Class::B64) = (self.constant_of(value), to)
        {
            return self.constant(bits, to);
        }
        // First to an integer of its own width, last to the result's class.
        let (value, from) = match from {
            Class::F32 => (self.bitcast(value, I32), Class::B32),
            Class::F64 => (self.bitcast(value, I64), Class::B64),
            Class::Pred => (value, Class::B8),
            from => (value, from),
        };
        match to {
            Class::Pred => {
                let zero = self.b.ins().iconst(scalar_type(from), 0);
                self.b.ins().icmp(cranelift_codegen::ir::condcodes::IntCC::NotEqual, value, zero)
            }
            Class::F32 => {
                let value = self.convert(value, from, Class::B32);
                self.bitcast(value, F32)
            }
            Class::F64 => {
                let value = self.convert(value, from, Class::B64);
                self.bitcast(value, F64)
            }
            to if to.bits() > from.bits() => self.extended(value, scalar_type(to)),
            to if to.bits() < from.bits() => self.b.ins().ireduce(scalar_type(to), value),
            _ => value,
        }
    }

    /// Returns a constant of a class.
    pub(crate) fn constant(&mut self, bits: u64, class: Class) -> Value {
        match class {
            Class::Pred => self.b.ins().iconst(I8, i64::from(bits != 0)),
            Class::F32 => {
                self.b.ins().f32const(cranelift_codegen::ir::immediates::Ieee32::with_bits(bits as u32))
            }
            Class::F64 => self.b.ins().f64const(cranelift_codegen::ir::immediates::Ieee64::with_bits(bits)),
            class => {
                let ty = scalar_type(class);
                let bits = if class.bits() == 64 { bits } else { bits & ((1 << class.bits()) - 1) };
                self.b.ins().iconst(ty, bits as i64)
            }
        }
    }

    /// Returns a constant vector.
    pub(crate) fn vector_constant(&mut self, ty: Type, bytes: impl Into<Vec<u8>>) -> Value {
        let bytes = bytes.into();
        let known = self.vector_constants.iter().find(|((other, same), _)| *other == ty && *same == bytes);
        if let Some(&(_, value)) = known {
            return value;
        }
        let data = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        let value = self.b.ins().vconst(ty, data);
        self.vector_constants.push(((ty, bytes), value));
        value
    }

    /// Returns the same bits in each element of a vector of a class.
    pub(crate) fn vector_of(&mut self, bits: u64, class: Class) -> Value {
        self.vector_of_each(class, |_| bits)
    }

    /// Returns a vector of a class with a constant for each element.
    pub(crate) fn vector_of_each(&mut self, class: Class, bits: impl Fn(usize) -> u64) -> Value {
        let per = self.per_vector(class);
        let size = self.length.0 / per;
        let bytes: Vec<u8> =
            (0..per).flat_map(|lane| bits(lane).to_le_bytes().into_iter().take(size)).collect();
        let ty = self.vector_type(class).unwrap_or(self.length.by(I32));
        self.vector_constant(ty, bytes)
    }

    /// Returns an operand of an instruction.
    pub(crate) fn get(&mut self, source: Source, class: Class) -> Val {
        match source {
            Source::Constant(index) => {
                let bits = self.plan.flow.code.constants[index as usize][0];
                Val::One(self.constant(bits, class))
            }
            Source::Slot(slot) => match self.plan.ranges.constant(slot) {
                Some(bits) if !class.is_float() && self.plan.uniformity.get(slot) == Shape::Uniform => {
                    Val::One(self.constant(bits, class))
                }
                _ => self.read(slot, class),
            },
        }
    }

    fn read(&mut self, slot: Slot, class: Class) -> Val {
        let storage = self.storage(slot);
        if let Some(each) = self.scalarized_of(slot) {
            return Val::Scalarized(each);
        }
        let variables = self.variables[slot.0 as usize].clone();
        match self.plan.uniformity.get(slot) {
            Shape::Uniform => {
                let mut value = self.b.use_var(variables[0]);
                if self.holds_any_nan(slot) && !(self.any_nan && class == Class::F32) {
                    value = self.settle(value, storage, false);
                }
                Val::One(self.convert(value, storage, class))
            }
            Shape::Affine(step) => {
                let value = self.b.use_var(variables[0]);
                let whole = Val::Affine(value, step);
                let is_kept = class.bits() == storage.bits() || class.bits() == 32 && storage.bits() == 64;
                if is_kept && !class.is_float() {
                    return Val::Affine(self.convert(value, storage, class), step);
                }
                // Zero-extended, it may no longer be affine.
                let parts = self.vectors(&whole, storage);
                Val::Many(self.convert_parts(parts, storage, class))
            }
            Shape::Offsets(offsets) => {
                let whole = Val::Offsets(self.b.use_var(variables[0]), offsets);
                if class.untyped() == storage.untyped() && !class.is_float() {
                    return whole;
                }
                let parts = self.vectors(&whole, storage);
                Val::Many(self.convert_parts(parts, storage, class))
            }
            Shape::Varying => {
                let count = self.lanes as usize / self.per_vector(storage);
                let mut parts: Vec<Value> =
                    variables.iter().take(count).map(|&variable| self.b.use_var(variable)).collect();
                if self.holds_any_nan(slot) && !(self.any_nan && class == Class::F32) {
                    parts = self.settle_all(parts, storage);
                }
                Val::Many(self.convert_parts(parts, storage, class))
            }
        }
    }

    /// Returns whether a NaN in a register may be non-canonical. It then stands for the canonical
    /// one.
    pub(crate) fn holds_any_nan(&self, slot: Slot) -> bool {
        self.plan.noncanonical_nan[slot.0 as usize] || self.pending.contains(slot)
    }

    /// Makes NaNs canonical in the live registers that may hold others only in this block.
    pub(super) fn settle_pending(&mut self) {
        for slot in std::mem::replace(&mut self.pending, SlotSet::new(0)).iter() {
            if self.live.contains(slot) {
                self.settle_register(slot);
            }
        }
        self.pending = SlotSet::new(self.plan.noncanonical_nan.len() as u32);
    }

    /// Makes NaNs canonical in a register that may hold others only in this block, before some
    /// threads write it.
    pub(super) fn settle_if_pending(&mut self, slot: Slot) {
        if self.pending.contains(slot) {
            self.settle_register(slot);
            self.pending.remove(slot);
        }
    }

    fn settle_register(&mut self, slot: Slot) {
        let class = self.storage(slot);
        let variables = self.variables[slot.0 as usize].clone();
        let values: Vec<Value> = variables.iter().map(|&variable| self.b.use_var(variable)).collect();
        let values = match self.plan.uniformity.get(slot) {
            Shape::Varying => self.settle_all(values, class),
            _ => values.into_iter().map(|value| self.settle(value, class, false)).collect(),
        };
        for (variable, value) in variables.into_iter().zip(values) {
            self.b.def_var(variable, value);
        }
    }

    /// Makes NaNs canonical in vectors that may hold others. NaNs are rare, so one check covers all
    /// vectors.
    fn settle_all(&mut self, parts: Vec<Value>, class: Class) -> Vec<Value> {
        let mut rare = Vec::new();
        for pair in parts.chunks(2) {
            let [a, b] =
                [pair[0], pair[pair.len() - 1]].map(|part| self.vector_cast(part, self.length.by(F32)));
            rare.push(self.b.ins().fcmp(FloatCC::Unordered, a, b));
        }
        let any = self.any_true(&rare);
        let (cold, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        let arguments: Vec<BlockArg> = parts.iter().map(|&part| part.into()).collect();
        for &part in &parts {
            let ty = self.b.func.dfg.value_type(part);
            self.b.append_block_param(done, ty);
        }
        self.b.ins().brif(any, cold, &[], done, &arguments);
        self.go_on_in(cold);
        let settled: Vec<BlockArg> =
            parts.into_iter().map(|part| self.settle(part, class, true).into()).collect();
        self.b.ins().jump(done, &settled);
        self.go_on_in(done);
        self.b.block_params(done).to_vec()
    }

    /// Makes a NaN canonical in a register that may hold another.
    pub(crate) fn settle(&mut self, value: Value, class: Class, vector: bool) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        let float = if vector {
            self.vector_cast(value, self.length.by(F32))
        } else {
            self.convert(value, class, Class::F32)
        };
        let keeps = std::mem::replace(&mut self.keeps_nan, false);
        let float = self.canonical(float, vector);
        self.keeps_nan = keeps;
        if vector { self.vector_cast(float, ty) } else { self.convert(float, Class::F32, class) }
    }

    /// Converts vectors to another class. Classes of 8 and 16 bits stay in 32 bits.
    pub(super) fn convert_parts(&mut self, parts: Vec<Value>, from: Class, to: Class) -> Vec<Value> {
        let ty = self.vector_type(to).unwrap_or(self.length.by(I32));
        match (from, to) {
            (Class::Pred, Class::Pred) => parts,
            (Class::Pred, to) => {
                let one = self.vector_of(1, Class::B32);
                let parts = parts.iter().map(|&part| self.b.ins().band(part, one)).collect();
                self.convert_parts(parts, Class::B32, to)
            }
            (from, Class::Pred) => {
                let parts = self.convert_parts(parts, from, Class::B32);
                let zero = self.vector_of(0, Class::B32);
                let ne = cranelift_codegen::ir::condcodes::IntCC::NotEqual;
                parts.iter().map(|&part| self.b.ins().icmp(ne, part, zero)).collect()
            }
            (from, to) if from.bits() == 64 && to.bits() < 64 => {
                let parts: Vec<Value> = parts.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect();
                parts.into_iter().map(|part| self.vector_cast(part, ty)).collect()
            }
            (from, to) if from.bits() < 64 && to.bits() == 64 => {
                let parts: Vec<Value> = parts
                    .into_iter()
                    .flat_map(|part| {
                        let part = self.vector_cast(part, self.length.by(I32));
                        [self.b.ins().uwiden_low(part), self.b.ins().uwiden_high(part)]
                    })
                    .collect();
                parts.into_iter().map(|part| self.vector_cast(part, ty)).collect()
            }
            _ => parts.into_iter().map(|part| self.vector_cast(part, ty)).collect(),
        }
    }

    /// Returns the lower halves of values of 64 bits.
    pub(crate) fn narrow(&mut self, low: Value, high: Value) -> Value {
        self.pick_words(low, high, |word| 2 * word)
    }

    /// Returns the value in each thread, as vectors. The class must have vectors.
    pub(crate) fn vectors(&mut self, value: &Val, class: Class) -> Vec<Value> {
        match value {
            Val::Many(parts) => parts.clone(),
            Val::Scalarized(_) => {
                let values: Vec<Value> =
                    (0..self.lanes as usize).map(|lane| self.lane(value, class, lane)).collect();
                self.gather(&values, class)
            }
            &Val::One(value) => self.spread(value, 0, class),
            &Val::Affine(base, step) => self.spread(base, step, class),
            Val::Offsets(base, offsets) => {
                let all = self.spread(*base, 0, class);
                let mut parts = Vec::new();
                for (offsets, all) in offsets.chunks(self.per_vector(class)).zip(all) {
                    let more = self.vector_of_each(class, |lane| i64::from(offsets[lane]) as u64);
                    parts.push(self.b.ins().iadd(all, more));
                }
                parts
            }
        }
    }

    /// Converts an affine value to vectors. Vectors made earlier in this block are reused.
    fn spread(&mut self, first: Value, step: i64, class: Class) -> Vec<Value> {
        let ty = self.vector_type(class).unwrap_or(self.length.by(I32));
        let key = (first, step, ty, self.lanes);
        // If the instruction has already branched, the code after it may not be dominated by this
        // point. Vectors that only a side exit needs are made there.
        let on_trunk = self.trunk.is_some() && self.b.current_block() == self.trunk;
        if let Some(parts) = self.spreads.get(&key).filter(|_| on_trunk) {
            return parts.clone();
        }
        let count = self.lanes as usize / self.per_vector(class);
        let value = if class == Class::Pred { self.b.ins().bmask(I32, first) } else { first };
        let all = match self.constant_of(value).or_else(|| self.float_constant_of(value)) {
            Some(bits) => self.vector_of(bits, class),
            None => self.b.ins().splat(ty, value),
        };
        let parts: Vec<Value> = (0..count)
            .map(|part| {
                if step == 0 {
                    return all;
                }
                let first = part * self.per_vector(class);
                let more = self.vector_of_each(class, |lane| step.wrapping_mul((first + lane) as i64) as u64);
                self.b.ins().iadd(all, more)
            })
            .collect();
        if on_trunk {
            self.spreads.insert(key, parts.clone());
        }
        parts
    }

    /// Returns the value in one thread of the group.
    pub(crate) fn lane(&mut self, value: &Val, class: Class, lane: usize) -> Value {
        match value {
            Val::One(value) => *value,
            Val::Scalarized(each) => self.scalarized_lane(each, class, lane),
            Val::Affine(base, step) if lane == 0 || *step == 0 => *base,
            Val::Affine(base, step) => self.b.ins().iadd_imm_s(*base, step.wrapping_mul(lane as i64)),
            Val::Offsets(base, offsets) => match offsets[lane] {
                0 => *base,
                more => self.b.ins().iadd_imm_s(*base, i64::from(more)),
            },
            Val::Many(parts) => {
                let per = self.per_vector(class);
                let element = self.lane_of(parts[lane / per], lane % per);
                match class {
                    Class::Pred => self.convert(element, Class::B32, Class::Pred),
                    // It is held in 32 bits.
                    Class::B8 | Class::B16 => self.convert(element, Class::B32, class),
                    _ => element,
                }
            }
        }
    }

    /// Assembles the values of single threads into vectors.
    pub(crate) fn gather(&mut self, values: &[Value], class: Class) -> Vec<Value> {
        let parts = self.gather_narrow(values, class);
        self.joined(parts)
    }

    /// Assembles the values of single threads into vectors of 16 bytes.
    pub(super) fn gather_narrow(&mut self, values: &[Value], class: Class) -> Vec<Value> {
        let ty = vector_type(class, NARROW).unwrap_or(I32X4);
        values
            .chunks(per_vector(class, NARROW))
            .map(|values| {
                let mut vector = None;
                for (lane, &value) in values.iter().enumerate() {
                    let value = match class {
                        Class::Pred => self.b.ins().bmask(I32, value),
                        Class::B8 | Class::B16 => self.convert(value, class, Class::B32),
                        _ => value,
                    };
                    vector = Some(match vector {
                        None => self.b.ins().scalar_to_vector(ty, value),
                        Some(vector) => self.b.ins().insertlane(vector, value, lane as u8),
                    });
                }
                vector.unwrap_or(values[0])
            })
            .collect()
    }

    /// Returns whether a value is the same in all threads.
    pub(crate) fn is_one(&self, value: &Val) -> bool {
        matches!(value, Val::One(_))
    }

    /// Returns the predicate of an access: true where it is made.
    pub(crate) fn access_guard(&mut self, guard: Option<Guard>) -> Option<Val> {
        let own = self.guard(guard);
        self.guard_of_running(own)
    }

    /// Returns the predicate of an instruction, true in the running threads that execute it.
    pub(crate) fn guard(&mut self, guard: Option<Guard>) -> Option<Val> {
        let own = guard.map(|guard| self.own_guard(guard));
        self.guard_on_short_way(own)
    }

    fn own_guard(&mut self, guard: Guard) -> Val {
        let value = self.get(Source::Slot(guard.slot), Class::Pred);
        if !guard.negated {
            return value;
        }
        match value {
            Val::One(value) | Val::Affine(value, _) | Val::Offsets(value, _) => {
                Val::One(self.b.ins().bxor_imm_u(value, 1))
            }
            value => {
                let parts = self.vectors(&value, Class::Pred);
                Val::Many(parts.into_iter().map(|part| self.b.ins().bnot(part)).collect())
            }
        }
    }

    /// Writes a register, where the guard holds.
    pub(crate) fn define(&mut self, slot: Slot, value: Val, class: Class, guard: Option<&Val>) {
        let in_running = if self.is_kept(slot) { self.guard_of_running(guard.cloned()) } else { None };
        let guard = in_running.as_ref().or(guard);
        if guard.is_some() {
            self.settle_if_pending(slot);
        }
        self.forget_register(slot);
        let guard = guard.filter(|_| self.party.as_ref().is_none_or(Party::selects));
        let storage = self.storage(slot);
        let variables = self.variables[slot.0 as usize].clone();
        match (self.plan.uniformity.get(slot), value) {
            (Shape::Uniform, Val::One(value)) => {
                let value = self.convert(value, class, storage);
                self.define_by_uniform_guard(variables[0], value, guard);
            }
            (Shape::Affine(expected), Val::Affine(value, step)) if step == expected => {
                let value = self.convert(value, class, storage);
                self.define_by_uniform_guard(variables[0], value, guard);
            }
            (Shape::Offsets(expected), Val::Offsets(value, offsets))
                if offsets == expected && guard.is_none() =>
            {
                let value = self.convert(value, class, storage);
                self.b.def_var(variables[0], value);
            }
            (Shape::Varying, value) => {
                let parts = match value {
                    // Converted once, before it is copied to all elements.
                    Val::One(value) => {
                        let value = self.convert(value, class, storage);
                        self.vectors(&Val::One(value), storage)
                    }
                    value => {
                        let parts = match class {
                            Class::B8 | Class::B16 => match value {
                                Val::Many(parts) => parts,
                                value @ Val::Scalarized(_) => self.vectors(&value, class),
                                _ => return self.defect("an affine value of 16 bits"),
                            },
                            class => self.vectors(&value, class),
                        };
                        self.convert_parts(parts, class, storage)
                    }
                };
                let old = guard.map(|guard| {
                    let old: Vec<Value> =
                        variables.iter().map(|&variable| self.b.use_var(variable)).collect();
                    (old, self.masks(guard, storage))
                });
                for (i, (&variable, part)) in variables.iter().zip(parts).enumerate() {
                    let part = match &old {
                        Some((old, masks)) => self.pick(masks[i], part, old[i]),
                        None => part,
                    };
                    self.b.def_var(variable, part);
                }
            }
            _ => self.defect("a value that is not of the shape of its register"),
        }
    }

    /// Writes the one variable of a register if a guard holds, which is the same in all threads.
    fn define_by_uniform_guard(&mut self, variable: Variable, value: Value, guard: Option<&Val>) {
        let value = match guard {
            Some(Val::One(guard)) => {
                let old = self.b.use_var(variable);
                self.b.ins().select(*guard, value, old)
            }
            None => value,
            Some(_) => return self.defect("a register of one variable under a guard that differs"),
        };
        self.b.def_var(variable, value);
    }

    /// Selects elements of two vectors by a mask. The mask keeps the type that compared it, so that
    /// it is known to be all ones or zeros.
    fn pick(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let (ty, bits) = (self.b.func.dfg.value_type(a), self.b.func.dfg.value_type(mask));
        let (a, b) = (self.vector_cast(a, bits), self.vector_cast(b, bits));
        let picked = self.b.ins().bitselect(mask, a, b);
        self.vector_cast(picked, ty)
    }

    /// Returns a predicate as masks of a class's width.
    pub(crate) fn masks(&mut self, predicate: &Val, class: Class) -> Vec<Value> {
        let parts = self.vectors(predicate, Class::Pred);
        if class.bits() < 64 {
            return parts;
        }
        parts
            .into_iter()
            .flat_map(|part| [self.b.ins().swiden_low(part), self.b.ins().swiden_high(part)])
            .collect()
    }
}

impl Class {
    /// Returns the integer class of the same width.
    pub(crate) fn untyped(self) -> Self {
        match self {
            Class::F32 => Class::B32,
            Class::F64 => Class::B64,
            class => class,
        }
    }
}
