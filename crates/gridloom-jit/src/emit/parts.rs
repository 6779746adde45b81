//! Vectors of any length: their elements, their parts of 16 bytes, and operations that Cranelift's
//! intermediate code offers for 16 bytes only.

use super::Emitter;
use super::interleaved::HostAddress;
use crate::native::Class;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::types::{F32, F64, I8X16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, ConstantData, ExtFuncData, ExternalName, InstBuilder, Signature, Type, Value,
};
use cranelift_codegen::isa::CallConv;

/// Bytes of the vectors that all machines have.
pub(super) const NARROW: usize = 16;

/// How long vectors are, in bytes.
#[derive(Clone, Copy)]
pub(super) struct VectorLength(pub(super) usize);

impl VectorLength {
    /// Returns the type of vectors of some elements.
    pub(super) fn by(self, lane: Type) -> Type {
        lane.by(self.0 as u32 / lane.bytes()).unwrap_or(lane)
    }

    /// Returns how far a vector of several is from the first in memory.
    pub(super) fn offset(self, part: usize) -> i32 {
        (self.0 * part) as i32
    }
}

impl Emitter<'_> {
    /// Returns whether vectors are longer than Cranelift supports.
    pub(crate) fn is_wide(&self) -> bool {
        self.length.0 > NARROW
    }

    /// Forgets vectors that were made for the instruction being compiled.
    pub(super) fn forget_constants(&mut self) {
        self.vector_constants.clear();
        self.quarters.clear();
    }

    /// Emits an operation of the generator for wide vectors. Returns its result, if it has one.
    pub(super) fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        args: &[Value],
        result: Option<Type>,
    ) -> Option<Value> {
        let types = args.iter().map(|&arg| self.b.func.dfg.value_type(arg)).chain(result);
        let key = (intrinsic, types.collect::<Vec<Type>>());
        let callee = match self.intrinsics.get(&key) {
            Some(&callee) => callee,
            None => {
                let mut signature = Signature::new(CallConv::Fast);
                signature.params.extend(key.1[..args.len()].iter().copied().map(AbiParam::new));
                signature.returns.extend(result.map(AbiParam::new));
                let signature = self.b.import_signature(signature);
                let name = self.b.func.declare_imported_user_function(intrinsic.name());
                let name = ExternalName::user(name);
                let data = ExtFuncData { name, signature, colocated: false, patchable: false };
                let callee = self.b.import_function(data);
                self.intrinsics.insert(key, callee);
                callee
            }
        };
        let call = self.b.ins().call(callee, args);
        self.b.inst_results(call).first().copied()
    }

    /// Emits an operation of the generator for wide vectors that has a result.
    pub(super) fn operation(&mut self, intrinsic: Intrinsic, args: &[Value], result: Type) -> Value {
        match self.intrinsic(intrinsic, args, Some(result)) {
            Some(value) => value,
            None => {
                self.defect("an operation without a result");
                args[0]
            }
        }
    }

    /// Selects bytes of two vectors of 16 bytes.
    pub(crate) fn shuffle(&mut self, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        self.b.ins().shuffle(a, b, mask)
    }

    /// Selects words of two vectors behind each other, which have one length. The result is a
    /// vector of words.
    pub(super) fn pick_words(&mut self, a: Value, b: Value, word: impl Fn(usize) -> usize) -> Value {
        let count = self.b.func.dfg.value_type(a).bytes() / 4;
        let words = I32.by(count).unwrap_or(I32);
        if !self.is_wide() {
            let (a, b) = (self.vector_cast(a, I8X16), self.vector_cast(b, I8X16));
            let bytes = std::array::from_fn(|i| (4 * word(i / 4) + i % 4) as u8);
            let picked = self.shuffle(a, b, bytes);
            return self.vector_cast(picked, words);
        }
        let order: Vec<u8> = (0..count as usize).flat_map(|i| (word(i) as u32).to_le_bytes()).collect();
        let order = self.vector_constant(words, order);
        self.operation(Intrinsic::Words, &[a, b, order], words)
    }

    /// Selects bytes within each word of two vectors: from the first, or from 4 on from the second.
    pub(super) fn pick_bytes(&mut self, a: Value, b: Value, bytes: [u8; 4]) -> Value {
        let words = self.length.by(I32);
        if !self.is_wide() {
            let (a, b) = (self.vector_cast(a, I8X16), self.vector_cast(b, I8X16));
            let bytes = std::array::from_fn(|i| {
                let from = bytes[i % 4];
                (i as u8 & !3) + from % 4 + if from > 3 { 16 } else { 0 }
            });
            let picked = self.shuffle(a, b, bytes);
            return self.vector_cast(picked, words);
        }
        let mut both = None;
        for (of, first) in [(a, 0u8), (b, 4)] {
            if !bytes.iter().any(|from| (first..first + 4).contains(from)) {
                continue;
            }
            let order: Vec<u8> = (0..self.length.0)
                .map(|i| match bytes[i % 4] {
                    from if (first..first + 4).contains(&from) => (i as u8 & 12) + from - first,
                    _ => 0x80,
                })
                .collect();
            let order = self.vector_constant(words, order);
            let of = self.vector_cast(of, words);
            let picked = self.operation(Intrinsic::Bytes, &[of, order], words);
            both = Some(both.map_or(picked, |other| self.b.ins().bor(other, picked)));
        }
        both.unwrap_or(a)
    }

    /// Returns an element of a vector.
    pub(super) fn lane_of(&mut self, vector: Value, lane: usize) -> Value {
        let ty = self.b.func.dfg.value_type(vector);
        if ty.bytes() as usize <= NARROW {
            return self.b.ins().extractlane(vector, lane as u8);
        }
        let per = NARROW / ty.lane_type().bytes() as usize;
        let quarter = self.quarter(vector, lane / per);
        self.b.ins().extractlane(quarter, (lane % per) as u8)
    }

    /// Returns 16 bytes of a vector.
    pub(super) fn quarter(&mut self, vector: Value, number: usize) -> Value {
        if let Some(&part) = self.quarters.get(&(vector, number)) {
            return part;
        }
        let lane = self.b.func.dfg.value_type(vector).lane_type();
        let ty = lane.by(NARROW as u32 / lane.bytes()).unwrap_or(lane);
        let index = self.b.ins().iconst(I64, number as i64);
        let part = self.operation(Intrinsic::Quarter, &[vector, index], ty);
        self.quarters.insert((vector, number), part);
        part
    }

    /// Returns vectors in parts of 16 bytes.
    pub(super) fn split_up(&mut self, vectors: &[Value]) -> Vec<Value> {
        if !self.is_wide() {
            return vectors.to_vec();
        }
        let count = self.length.0 / NARROW;
        let parts = vectors.iter().flat_map(|&vector| (0..count).map(move |number| (vector, number)));
        parts.map(|(vector, number)| self.quarter(vector, number)).collect()
    }

    /// Returns vectors of parts of 16 bytes.
    pub(super) fn joined(&mut self, parts: Vec<Value>) -> Vec<Value> {
        if !self.is_wide() {
            return parts;
        }
        let count = self.length.0 / NARROW;
        let lane = self.b.func.dfg.value_type(parts[0]).lane_type();
        let ty = self.length.by(lane);
        parts.chunks(count).map(|some| self.operation(Intrinsic::Join, some, ty)).collect()
    }

    /// Converts a vector of floats to two of doubles.
    pub(super) fn doubles_of(&mut self, value: Value) -> [Value; 2] {
        if self.is_wide() {
            let ty = self.length.by(F64);
            return [Intrinsic::PromoteLow, Intrinsic::PromoteHigh]
                .map(|half| self.operation(half, &[value], ty));
        }
        let high = self.pick_words(value, value, |word| 2 + word % 2);
        let high = self.vector_cast(high, self.length.by(F32));
        [self.b.ins().fvpromote_low(value), self.b.ins().fvpromote_low(high)]
    }

    /// Converts two vectors of doubles to one of floats.
    pub(super) fn floats_of_doubles(&mut self, low: Value, high: Value) -> Value {
        let ty = self.length.by(F32);
        if self.is_wide() {
            return self.operation(Intrinsic::Demote, &[low, high], ty);
        }
        let (low, high) = (self.b.ins().fvdemote(low), self.b.ins().fvdemote(high));
        let both = self.pick_words(low, high, |word| word % 2 + 4 * (word / 2));
        self.vector_cast(both, ty)
    }

    /// Loads a row of elements of one or two bytes, each as a word.
    pub(super) fn load_widened(&mut self, (host, at): HostAddress, size: u32, signed: bool) -> Vec<Value> {
        let how = match (size, signed) {
            (1, false) => Intrinsic::LoadBytes,
            (1, true) => Intrinsic::LoadSignedBytes,
            (_, false) => Intrinsic::LoadHalves,
            (_, true) => Intrinsic::LoadSignedHalves,
        };
        let (words, per) = (self.length.by(I32), self.per_vector(Class::B32));
        (0..self.lanes as usize / per)
            .map(|part| {
                let offset = i64::from(at) + (part * per * size as usize) as i64;
                let offset = self.b.ins().iconst(I64, offset);
                self.operation(how, &[host, offset], words)
            })
            .collect()
    }

    /// Stores the lowest one or two bytes of words as a row.
    pub(super) fn store_narrowed(&mut self, (host, at): HostAddress, parts: &[Value], size: u32) {
        let how = if size == 1 { Intrinsic::StoreBytes } else { Intrinsic::StoreHalves };
        let per = self.per_vector(Class::B32);
        for (part, &value) in parts.iter().enumerate() {
            let offset = i64::from(at) + (part * per * size as usize) as i64;
            let offset = self.b.ins().iconst(I64, offset);
            self.intrinsic(how, &[value, host, offset], None);
        }
    }
}
