//! Integers of 8 and 16 bits in vectors. Each takes 32 bits, and in a register the upper ones are
//! zero.

use super::Emitter;
use super::memory::shared_flags;
use super::value::Val;
use crate::native::{Class, Kind, Native};
use crate::wide::Intrinsic;
use crate::{host, runtime};
use cranelift_codegen::ir::types::{F32, F64, F64X2, I8, I8X16, I16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Opcode, Value, ValueDef};
use gridloom_ptx::op::ApproxOp;

/// How many instructions back a bound on a value is looked for.
const DEPTH: u32 = 6;

/// In a mask that picks bytes: a byte that becomes zero.
const NOTHING: u8 = 0x80;

impl Emitter<'_> {
    /// Extends the lowest bits of 32-bit elements, by sign or with zeros.
    fn extended_in_vector(&mut self, value: Value, bits: u32, signed: bool) -> Value {
        if bits >= 32 {
            return value;
        }
        if !signed {
            return self.lowest_bits(value, bits);
        }
        let count = self.b.ins().iconst(I32, i64::from(32 - bits));
        let value = self.b.ins().ishl(value, count);
        self.b.ins().sshr(value, count)
    }

    /// Returns the lowest bits of 32-bit elements, with zeros above them.
    fn lowest_bits(&mut self, value: Value, bits: u32) -> Value {
        if self.greatest(value, DEPTH) >> bits == 0 {
            return value;
        }
        // What an earlier mask has cut off, this one cuts off too.
        let dfg = &self.b.func.dfg;
        let all = (1 << bits) - 1;
        let mut value = dfg.resolve_aliases(value);
        if let ValueDef::Result(inst, _) = dfg.value_def(value)
            && let InstructionData::Binary { opcode: Opcode::Band, args: [whole, mask] } = dfg.insts[inst]
            && self.element_of(mask).is_some_and(|mask| mask & all == all)
        {
            value = whole;
        }
        let mask = self.vector_of(all, Class::B32);
        self.b.ins().band(value, mask)
    }

    /// Returns a bound on the elements of a vector of 32-bit integers, from the last few
    /// instructions that made it.
    fn greatest(&self, value: Value, depth: u32) -> u64 {
        const ANY: u64 = u32::MAX as u64;
        let dfg = &self.b.func.dfg;
        let value = dfg.resolve_aliases(value);
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return ANY };
        if dfg.value_type(value) != self.length.by(I32) {
            return ANY;
        }
        if let Some(element) = self.element_of(value) {
            return element;
        }
        let Some(depth) = depth.checked_sub(1) else { return ANY };
        let of = |arg: Value| self.greatest(arg, depth);
        let most = match dfg.insts[inst] {
            InstructionData::Binary { opcode, args: [a, b] } => match opcode {
                Opcode::Band | Opcode::Umin => of(a).min(of(b)),
                Opcode::Bor | Opcode::Bxor => (of(a).max(of(b)) + 1).next_power_of_two() - 1,
                Opcode::Iadd => of(a) + of(b),
                Opcode::Imul => of(a).saturating_mul(of(b)),
                Opcode::Ushr => match self.constant_of(b) {
                    Some(count) if count < 32 => of(a) >> count,
                    _ => ANY,
                },
                Opcode::Ishl => match self.constant_of(b) {
                    Some(count) if count < 32 => of(a) << count,
                    _ => ANY,
                },
                _ => ANY,
            },
            InstructionData::Unary { opcode: Opcode::UwidenLow | Opcode::UwidenHigh, arg } => {
                match dfg.value_def(dfg.resolve_aliases(arg)) {
                    ValueDef::Result(inst, _) if dfg.insts[inst].opcode() == Opcode::Uload8x8 => 0xff,
                    _ => 0xffff,
                }
            }
            InstructionData::Load { opcode: Opcode::Uload16x4, .. } => 0xffff,
            InstructionData::Call { func_ref, .. } => match Intrinsic::of(self.b.func, func_ref) {
                Some(Intrinsic::LoadBytes) => 0xff,
                Some(Intrinsic::LoadHalves) => 0xffff,
                _ => ANY,
            },
            InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. } => self.spread_bytes(arg),
            _ => ANY,
        };
        if most > ANY { ANY } else { most }
    }

    /// Returns a bound on the words of a vector of bytes: a byte if each word is one that was
    /// picked by [`load_bytes`](Self::load_bytes).
    fn spread_bytes(&self, value: Value) -> u64 {
        let dfg = &self.b.func.dfg;
        let picks = |mask: Value| match dfg.value_def(dfg.resolve_aliases(mask)) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } => {
                    let bytes = dfg.constants.get(constant_handle).as_slice();
                    bytes.chunks(4).all(|word| word[1..] == [NOTHING; 3])
                }
                _ => false,
            },
            _ => false,
        };
        match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::Binary { opcode: Opcode::X86Pshufb, args: [_, mask] } if picks(mask) => 0xff,
                _ => u32::MAX.into(),
            },
            _ => u32::MAX.into(),
        }
    }

    /// Loads a byte for each thread into the words of vectors. Returns `None` if the machine cannot
    /// pick bytes, or the threads are not eight or a multiple of sixteen.
    pub(super) fn load_bytes(&mut self, host: Value, at: i32) -> Option<Vec<Value>> {
        if self.is_wide() || !host::picks_bytes() || !(self.lanes == 8 || self.lanes.is_multiple_of(16)) {
            return None;
        }
        let mut parts = Vec::new();
        for first in (0..self.lanes as i32).step_by(16) {
            let (bytes, words) = if self.lanes == 8 {
                let bytes = self.b.ins().load(F64, shared_flags(), host, at);
                (self.b.ins().scalar_to_vector(F64X2, bytes), 2)
            } else {
                (self.b.ins().load(I8X16, shared_flags(), host, at + first), 4)
            };
            let bytes = self.vector_cast(bytes, I8X16);
            for word in 0..words {
                let picked: [u8; 16] =
                    std::array::from_fn(|i| if i % 4 == 0 { 4 * word + i as u8 / 4 } else { NOTHING });
                let picked = self.vector_constant(I8X16, picked);
                let spread = self.b.ins().x86_pshufb(bytes, picked);
                parts.push(self.vector_cast(spread, I32X4));
            }
        }
        Some(parts)
    }

    /// Returns an operand in vectors of 32 bits.
    fn narrow_operand(&mut self, operand: &Val, class: Class, signed: bool) -> Option<Vec<Value>> {
        let parts = match operand {
            // Extended once, before it is copied to all elements.
            Val::One(value) => {
                let value = self.convert(*value, class, Class::B32);
                self.vectors(&Val::One(value), Class::B32)
            }
            Val::Many(parts) if class.bits() <= 32 => parts.clone(),
            value if class.bits() == 32 => self.vectors(value, class),
            _ => return None,
        };
        let bits = class.bits();
        Some(parts.into_iter().map(|part| self.extended_in_vector(part, bits, signed)).collect())
    }

    /// Emits an instruction on integers of fewer than 32 bits, or one that produces them. Returns
    /// `None` if there are no vector instructions for it.
    pub(super) fn lower_narrow(&mut self, native: &Native, operands: &[Val]) -> Option<Vec<Value>> {
        let classes = native.operands;
        if native.result.is_float()
            || native.result == Class::B64 && !matches!(native.kind, Kind::Extend { .. })
        {
            return None;
        }
        if let Kind::Extend { from, signed, to, to_signed } = native.kind {
            let mut parts = if classes[0] == Class::B64 {
                let wide = self.vectors(&operands[0], Class::B64);
                wide.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect()
            } else {
                self.narrow_operand(&operands[0], classes[0], false)?
            };
            for part in &mut parts {
                *part = self.extended_in_vector(*part, from, signed);
                *part = self.extended_in_vector(*part, to, to_signed);
            }
            if native.result == Class::B64 {
                let with_sign = if to == 64 { signed } else { to_signed };
                let halves = parts.into_iter().flat_map(|part| {
                    if with_sign {
                        [self.b.ins().swiden_low(part), self.b.ins().swiden_high(part)]
                    } else {
                        [self.b.ins().uwiden_low(part), self.b.ins().uwiden_high(part)]
                    }
                });
                return Some(halves.collect());
            }
            let bits = native.result.bits();
            return Some(parts.into_iter().map(|part| self.extended_in_vector(part, bits, false)).collect());
        }
        match native.kind {
            Kind::Pair { bits: bits @ (8 | 16) } => {
                let low = self.narrow_operand(&operands[0], classes[0], false)?;
                let high = self.narrow_operand(&operands[1], classes[1], false)?;
                let count = self.b.ins().iconst(I32, i64::from(bits));
                let pairs = low.into_iter().zip(high).map(|(low, high)| {
                    let high = self.b.ins().ishl(high, count);
                    self.b.ins().bor(low, high)
                });
                return Some(pairs.collect());
            }
            Kind::Field { start, bits } if classes[0] == Class::B32 => {
                let count = self.b.ins().iconst(I32, i64::from(start));
                let mut fields = Vec::new();
                for part in self.vectors(&operands[0], Class::B32) {
                    let part = self.b.ins().ushr(part, count);
                    fields.push(self.extended_in_vector(part, bits, false));
                }
                return Some(fields);
            }
            _ => {}
        }
        let (kind, signed) = match native.kind {
            Kind::Copy
            | Kind::Add
            | Kind::Sub
            | Kind::Mul
            | Kind::MadLow
            | Kind::Neg
            | Kind::Logic(_)
            | Kind::BitNot
            | Kind::Select
            | Kind::ShiftLeft => (native.kind, false),
            Kind::MulWide { signed } => (Kind::Mul, signed),
            Kind::MadWide { signed } => (Kind::MadLow, signed),
            Kind::Abs => (native.kind, true),
            Kind::Min { signed } | Kind::Max { signed } | Kind::ShiftRight { signed } => {
                (native.kind, signed)
            }
            Kind::Compare { signed, .. } => (native.kind, signed),
            _ => return None,
        };
        let is_shift = matches!(kind, Kind::ShiftLeft | Kind::ShiftRight { .. });
        if let (true, value) = (is_shift, operands.get(1))
            && !matches!(value, Some(Val::One(_)))
        {
            return None;
        }
        let mut wide = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            wide.push(match classes[i] {
                Class::B8 | Class::B16 => Val::Many(self.narrow_operand(operand, classes[i], signed)?),
                Class::B32 | Class::Pred => operand.clone(),
                _ => return None,
            });
        }
        let operands32 = classes.map(|class| if class == Class::Pred { class } else { Class::B32 });
        let result = if native.result == Class::Pred { Class::Pred } else { Class::B32 };
        let (values, rare) = self.lower_vectors(&Native { kind, operands: operands32, result }, &wide)?;
        if !rare.is_empty() {
            return None;
        }
        let bits = native.result.bits();
        if native.result == Class::Pred {
            return Some(values);
        }
        Some(values.into_iter().map(|value| self.extended_in_vector(value, bits, false)).collect())
    }

    /// Emits an approximate function of the values of a group, which the runtime computes at once.
    pub(super) fn approximate_many(&mut self, op: ApproxOp, ftz: bool, operand: &Val) -> Option<Vec<Value>> {
        let function = runtime::approximate_many(op)?;
        let parts = self.vectors(operand, Class::F32);
        if op == ApproxOp::Ex2 && self.is_wide() {
            return Some(parts.into_iter().map(|part| self.power_of_two(part, ftz)).collect());
        }
        let flags = MemFlagsData::trusted();
        let buffer = self.scratch(4 * self.lanes);
        for (part, &value) in parts.iter().enumerate() {
            self.b.ins().store(flags, value, buffer, self.length.offset(part));
        }
        let arguments = [
            buffer,
            self.b.ins().iconst(I32, i64::from(self.lanes)),
            self.b.ins().iconst(I32, i64::from(ftz)),
        ];
        self.call(function as *const () as usize, &arguments, None);
        let loads = (0..parts.len()).map(|part| {
            let at = self.length.offset(part);
            self.b.ins().load(self.length.by(F32), flags, buffer, at)
        });
        Some(loads.collect())
    }

    /// Emits `prmt` with a constant selector in a vector. Returns `None` if the selector replicates
    /// signs.
    pub(super) fn permute_by(&mut self, a: Value, b: Value, selector: u32) -> Option<Value> {
        let nibble = |byte: usize| (selector >> (4 * byte) & 15) as u8;
        if (0..4).any(|byte| nibble(byte) > 7) {
            return None;
        }
        Some(self.pick_bytes(a, b, std::array::from_fn(nibble)))
    }

    /// Emits `prmt` in one thread.
    pub(super) fn permute(&mut self, x: &[Value]) -> Value {
        let (low, high) = (self.b.ins().uextend(I64, x[0]), self.b.ins().uextend(I64, x[1]));
        let high = self.b.ins().ishl_imm_u(high, 32);
        let pair = self.b.ins().bor(low, high);
        let mut word = None;
        for byte in 0..4 {
            let nibble = self.b.ins().ushr_imm_u(x[2], 4 * byte);
            let index = self.b.ins().band_imm_u(nibble, 7);
            let count = self.b.ins().ishl_imm_u(index, 3);
            let picked = self.b.ins().ushr(pair, count);
            let picked = self.b.ins().ireduce(I8, picked);
            // Or the sign of the byte in all its bits.
            let sign = self.b.ins().sshr_imm_u(picked, 7);
            let repeats = self.b.ins().band_imm_u(nibble, 8);
            let picked = self.b.ins().select(repeats, sign, picked);
            let picked = self.b.ins().uextend(I32, picked);
            let picked = self.b.ins().ishl_imm_u(picked, 8 * byte);
            word = Some(word.map_or(picked, |word| self.b.ins().bor(word, picked)));
        }
        word.unwrap_or(x[0])
    }

    /// Emits `dp4a`, in one thread or element by element.
    pub(super) fn dot_product(&mut self, signed: [bool; 2], x: &[Value], vector: bool) -> Value {
        if vector {
            return self.dot_product_of_vectors(signed, x);
        }
        let mut sum = x[2];
        for byte in 0..4 {
            let [a, b] = [0, 1].map(|i| {
                if signed[i] {
                    let value = self.b.ins().ishl_imm_u(x[i], 24 - 8 * byte);
                    self.b.ins().sshr_imm_u(value, 24)
                } else {
                    let value = self.b.ins().ushr_imm_u(x[i], 8 * byte);
                    self.b.ins().band_imm_u(value, 255)
                }
            });
            let product = self.b.ins().imul(a, b);
            sum = self.b.ins().iadd(sum, product);
        }
        sum
    }

    /// Emits `dp4a` in vectors: every second byte at a time, in 16 bits, because a machine adds the
    /// products of two neighbours of those.
    fn dot_product_of_vectors(&mut self, signed: [bool; 2], x: &[Value]) -> Value {
        let mut sum = x[2];
        for odd in [false, true] {
            let [a, b] = [0, 1].map(|i| {
                if let Some(bytes) = self.element_of(x[i]) {
                    let half = |byte: u32| {
                        let byte = (bytes >> (8 * byte)) as u8;
                        if signed[i] { i16::from(byte as i8) as u16 } else { byte.into() }
                    };
                    let first = u32::from(odd);
                    let both = u64::from(half(first)) | u64::from(half(first + 2)) << 16;
                    let vector = self.vector_of(both, Class::B32);
                    return self.vector_cast(vector, self.length.by(I16));
                }
                let halves = self.vector_cast(x[i], self.length.by(I16));
                let count = self.b.ins().iconst(I32, 8);
                match (signed[i], odd) {
                    (true, true) => self.b.ins().sshr(halves, count),
                    (true, false) => {
                        let high = self.b.ins().ishl(halves, count);
                        self.b.ins().sshr(high, count)
                    }
                    (false, true) => self.b.ins().ushr(halves, count),
                    (false, false) => {
                        let mask = self.vector_of(0x00ff_00ff, Class::B32);
                        let even = self.b.ins().band(x[i], mask);
                        self.vector_cast(even, self.length.by(I16))
                    }
                }
            });
            let products = self.products_of_halves(a, b);
            sum = self.sum(sum, products);
        }
        sum
    }

    /// Returns the sums of the products of two neighbours each, of signed 16-bit integers.
    fn products_of_halves(&mut self, a: Value, b: Value) -> Value {
        if self.is_wide() {
            let words = self.length.by(I32);
            return self.operation(Intrinsic::MultiplyPairs, &[a, b], words);
        }
        let (low_a, low_b) = (self.b.ins().swiden_low(a), self.b.ins().swiden_low(b));
        let (high_a, high_b) = (self.b.ins().swiden_high(a), self.b.ins().swiden_high(b));
        let (low, high) = (self.b.ins().imul(low_a, low_b), self.b.ins().imul(high_a, high_b));
        self.b.ins().iadd_pairwise(low, high)
    }

    /// Emits `dp2a` in a vector if the halves of the first operand are known not to be negative and
    /// the second is a constant of two bytes, given as its halves.
    pub(super) fn half_dot_product_of_vectors(&mut self, a: Value, halves: u32, c: Value) -> Option<Value> {
        let dfg = &self.b.func.dfg;
        let is_small = |value: Value| self.greatest(value, DEPTH) < 1 << 15;
        let pair = match dfg.value_def(dfg.resolve_aliases(a)) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::Binary { opcode: Opcode::Bor, args } => Some(args),
                _ => None,
            },
            _ => None,
        };
        // The upper half of a pair is shifted into place.
        let shifted = |value: Value| match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::Binary { opcode: Opcode::Ishl, args: [of, count] } => {
                    self.constant_of(count) == Some(16) && is_small(of)
                }
                _ => false,
            },
            _ => false,
        };
        let fits = is_small(a) || pair.is_some_and(|[low, high]| is_small(low) && shifted(high));
        if !fits {
            return None;
        }
        let a = self.vector_cast(a, self.length.by(I16));
        let b = self.vector_of(halves.into(), Class::B32);
        let b = self.vector_cast(b, self.length.by(I16));
        let products = self.products_of_halves(a, b);
        Some(self.sum(c, products))
    }

    /// Returns the lowest one or two bytes of 32-bit elements, packed into 64-bit words.
    pub(super) fn packed(&mut self, parts: &[Value], size: u32) -> Vec<Value> {
        let parts: Vec<Value> = parts.iter().map(|&part| self.lowest_bits(part, 8 * size)).collect();
        let mut halves: Vec<Value> =
            parts.chunks(2).map(|pair| self.b.ins().unarrow(pair[0], pair[pair.len() - 1])).collect();
        if size == 1 {
            halves =
                halves.chunks(2).map(|pair| self.b.ins().unarrow(pair[0], pair[pair.len() - 1])).collect();
        }
        let mut words = Vec::new();
        for vector in halves {
            let vector = self.vector_cast(vector, I8X16);
            let vector = self.vector_cast(vector, I64X2);
            words.extend([0, 1].map(|word| self.b.ins().extractlane(vector, word)));
        }
        debug_assert!(words.iter().all(|&word| self.b.func.dfg.value_type(word) == I64));
        words.truncate(parts.len() * 4 * size as usize / 8);
        words
    }
}
