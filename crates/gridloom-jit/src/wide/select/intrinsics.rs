//! Selection of [intrinsics](crate::wide::intrinsic).

use super::super::intrinsic::Intrinsic;
use super::*;
use cranelift_codegen::ir::FuncRef;

impl Selector<'_> {
    pub(super) fn intrinsic(
        &mut self,
        inst: Clif,
        callee: FuncRef,
        into: Option<VReg>,
    ) -> Result<(), Unsupported> {
        let func = self.func;
        let Some(intrinsic) = Intrinsic::of(func, callee) else { return self.unsupported() };
        let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        let ty = func.dfg.inst_results(inst).first().map(|&result| self.type_of(result));
        let bytes = ty.map_or(0, |ty| ty.bytes());
        match (intrinsic, into) {
            (Intrinsic::Words, Some(into)) => {
                let indices = self.bytes_of(args[2]).unwrap_or_default();
                let indices = indices.chunks(4);
                let words =
                    indices.map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default())).collect();
                self.pick_words(into, [args[0], args[1]], words, bytes);
            }
            (Intrinsic::Bytes, Some(into)) => {
                let vector = self.register(args[0]);
                let pattern = self.bytes_of(args[1]).unwrap_or_default();
                let address = self.constant_address(&pattern);
                self.binary(VPSHUFB.of(bytes), into, vector, Source::Memory(address));
            }
            (Intrinsic::Join, Some(into)) => return self.join(&args, into),
            (Intrinsic::Quarter, Some(into)) => {
                let Some(i) = self.constant_of(args[1]) else { return self.unsupported() };
                let from = self.register(args[0]);
                let form = match i {
                    0 => Form::new(VMOVAPS.of(16)).reg(Use::Write(into)).rm(Source::Register(from)),
                    i => Form::new(VEXTRACTI32X4.of(self.type_of(args[0]).bytes()))
                        .reg(Use::Read(from))
                        .rm_use(Use::Write(into))
                        .byte(i as u8),
                };
                self.push(form);
            }
            (Intrinsic::PromoteLow | Intrinsic::PromoteHigh, Some(into)) => {
                let half = self.half(args[0], intrinsic == Intrinsic::PromoteHigh);
                self.unary(VCVTPS2PD.of(bytes), into, Source::Register(half));
            }
            (Intrinsic::Demote, Some(into)) => {
                let [low, high] = [args[0], args[1]].map(|arg| {
                    let (from, into) = (self.register(arg), self.vector());
                    self.unary(VCVTPD2PS.of(bytes), into, Source::Register(from));
                    into
                });
                let code = if bytes == 64 { VINSERTI64X4.of(64) } else { VINSERTI32X4.of(32) };
                let form = Form::new(code).reg(Use::Write(into)).vvvv(Use::Read(low));
                self.push(form.rm(Source::Register(high)).byte(1));
            }
            (
                Intrinsic::LoadBytes
                | Intrinsic::LoadSignedBytes
                | Intrinsic::LoadHalves
                | Intrinsic::LoadSignedHalves,
                Some(into),
            ) => {
                let (code, part) = match intrinsic {
                    Intrinsic::LoadBytes => (VPMOVZXBD, 4),
                    Intrinsic::LoadSignedBytes => (VPMOVSXBD, 4),
                    Intrinsic::LoadHalves => (VPMOVZXWD, 2),
                    _ => (VPMOVSXWD, 2),
                };
                let address = self.address_of(args[0], args[1])?;
                self.unary(code.of(bytes).accessing(bytes as u8 / part), into, Source::Memory(address));
            }
            (Intrinsic::StoreBytes | Intrinsic::StoreHalves, None) => {
                let words = self.type_of(args[0]).bytes();
                let (code, part) =
                    if intrinsic == Intrinsic::StoreBytes { (VPMOVDB, 4) } else { (VPMOVDW, 2) };
                let from = self.register(args[0]);
                let address = self.address_of(args[1], args[2])?;
                let form = Form::new(code.of(words).accessing(words as u8 / part)).reg(Use::Read(from));
                self.push(form.rm(Source::Memory(address)));
            }
            (Intrinsic::MultiplyPairs, Some(into)) => {
                let (a, b) = (self.register(args[0]), self.register(args[1]));
                self.binary(VPMADDWD.of(bytes), into, a, Source::Register(b));
            }
            (Intrinsic::Ternary, Some(into)) => {
                let (Some(ty), Some(table)) = (ty, self.constant_of(args[3])) else {
                    return self.unsupported();
                };
                let [a, b] = [args[0], args[1]].map(|arg| self.register(arg));
                let c = self.vector_source(args[2], ty);
                self.ternary(into, a, b, c, table as u8, ty);
            }
            (Intrinsic::Rotate, Some(into)) => {
                let Some(count) = self.constant_of(args[1]) else { return self.unsupported() };
                let from = self.register(args[0]);
                let form = Form::new(VPROLD_IMM.of(bytes)).reg(Use::Number(1)).vvvv(Use::Write(into));
                self.push(form.rm(Source::Register(from)).byte(count as u8 & 31));
            }
            (Intrinsic::ShiftLeft | Intrinsic::ShiftRight | Intrinsic::ShiftRightSigned, Some(into)) => {
                let quad = ty.is_some_and(|ty| ty.lane_bits() == 64);
                let code = match (intrinsic, quad) {
                    (Intrinsic::ShiftLeft, false) => VPSLLVD,
                    (Intrinsic::ShiftLeft, true) => VPSLLVQ,
                    (Intrinsic::ShiftRight, false) => VPSRLVD,
                    (Intrinsic::ShiftRight, true) => VPSRLVQ,
                    (_, false) => VPSRAVD,
                    (_, true) => VPSRAVQ,
                };
                let (a, b) = (self.register(args[0]), self.register(args[1]));
                self.binary(code.of(bytes), into, a, Source::Register(b));
            }
            (Intrinsic::LeadingZeros | Intrinsic::CountOnes, Some(into)) => {
                let quad = ty.is_some_and(|ty| ty.lane_bits() == 64);
                let code = match (intrinsic, quad) {
                    (Intrinsic::LeadingZeros, false) => VPLZCNTD,
                    (Intrinsic::LeadingZeros, true) => VPLZCNTQ,
                    (_, false) => VPOPCNTD,
                    (_, true) => VPOPCNTQ,
                };
                let from = self.register(args[0]);
                self.unary(code.of(bytes), into, Source::Register(from));
            }
            (Intrinsic::MultiplyHalves, Some(into)) => {
                let (a, b) = (self.register(args[0]), self.register(args[1]));
                self.binary(VPMULUDQ.of(bytes), into, a, Source::Register(b));
            }
            (Intrinsic::Divide | Intrinsic::DivideSigned, Some(into)) => {
                self.divide_words(intrinsic == Intrinsic::DivideSigned, into, [args[0], args[1]], bytes);
            }
            (Intrinsic::MultiplyAddDown, Some(into)) => {
                // The longest vectors, whatever their upper elements hold.
                let [a, b, c] = [args[0], args[1], args[2]].map(|arg| self.register(arg));
                let form = Form::new(fused(0xb8, false, false)).reg(Use::Over(into, c)).vvvv(Use::Read(a));
                self.push(form.rm(Source::Register(b)).down());
            }
            (Intrinsic::LookUp | Intrinsic::LookUpBytes, Some(into)) => {
                let (of_one, of_two) = match intrinsic {
                    Intrinsic::LookUp => (VPERMD, VPERMI2D),
                    _ => (VPERMB, VPERMI2B),
                };
                let [first, indices] = [args[0], args[2]].map(|arg| self.register(arg));
                if self.root(args[0]) == self.root(args[1]) && bytes > 16 {
                    self.binary(of_one.of(bytes), into, indices, Source::Register(first));
                } else {
                    let second = self.register(args[1]);
                    let form = Form::new(of_two.of(bytes)).reg(Use::Over(into, indices));
                    self.push(form.vvvv(Use::Read(first)).rm(Source::Register(second)));
                }
            }
            (Intrinsic::Prefetch | Intrinsic::PrefetchToWrite, None) => {
                let opcode = if intrinsic == Intrinsic::Prefetch { 0x18 } else { 0x0d };
                let address = self.address_of(args[0], args[1])?;
                let form = Form::new(Code::legacy(1, 0, opcode, false)).reg(Use::Number(1));
                self.push(form.rm(Source::Memory(address)));
            }
            (Intrinsic::LoadPart, Some(into)) => {
                let code = match self.constant_of(args[2]) {
                    Some(4) => VMOVSS.of(16).accessing(4),
                    Some(8) => VMOVSD.of(16).accessing(8),
                    Some(bytes @ (16 | 32 | 64)) => VMOVUPS.of(bytes as u32),
                    _ => return self.unsupported(),
                };
                let address = self.address_of(args[0], args[1])?;
                self.unary(code, into, Source::Memory(address));
            }
            (Intrinsic::StorePart, None) => {
                let code = match self.constant_of(args[3]) {
                    Some(4) => VMOVSS_STORE.of(16).accessing(4),
                    Some(8) => VMOVSD_STORE.of(16).accessing(8),
                    Some(bytes @ (16 | 32 | 64)) => VMOVUPS_STORE.of(bytes as u32),
                    _ => return self.unsupported(),
                };
                let from = self.register(args[0]);
                let address = self.address_of(args[1], args[2])?;
                self.push(Form::new(code).reg(Use::Read(from)).rm(Source::Memory(address)));
            }
            (Intrinsic::LoadMasked, Some(into)) => {
                let quad = ty.is_some_and(|ty| ty.lane_bits() == 64);
                let mask = self.mask_of_value(args[0])?;
                let address = self.address_of(args[1], args[2])?;
                let code = if quad { VMOVDQU64 } else { VMOVDQU32 };
                let form = Form::new(code.of(bytes)).reg(Use::Write(into)).rm(Source::Memory(address));
                self.push(form.under(mask, true));
            }
            (Intrinsic::StoreMasked, None) => {
                let ty = self.type_of(args[0]);
                let from = self.register(args[0]);
                let mask = self.mask_of_value(args[1])?;
                let address = self.address_of(args[2], args[3])?;
                let code = if ty.lane_bits() == 64 { VMOVDQU64_STORE } else { VMOVDQU32_STORE };
                let form = Form::new(code.of(ty.bytes())).reg(Use::Read(from)).rm(Source::Memory(address));
                self.push(form.under(mask, false));
            }
            (
                Intrinsic::GatherNear
                | Intrinsic::GatherWords
                | Intrinsic::GatherQuads
                | Intrinsic::ScatterNear
                | Intrinsic::ScatterWords
                | Intrinsic::ScatterQuads,
                _,
            ) => return self.access_each(intrinsic, &args, into),
            _ => return self.unsupported(),
        }
        Ok(())
    }

    /// Adds vectors of 16 bytes one behind the other.
    fn join(&mut self, parts: &[Value], into: VReg) -> Result<(), Unsupported> {
        let Some((&last, others)) = parts.split_last() else { return self.unsupported() };
        let last = self.source(last, 16);
        let others: Vec<VReg> = others.iter().map(|&part| self.register(part)).collect();
        let [first, second] = [0; 2].map(|_| self.vector());
        let mut insert = |code: Code, low: VReg, high: Source, into: VReg| {
            let form = Form::new(code.accessing(16)).reg(Use::Write(into)).vvvv(Use::Read(low));
            self.push(form.rm(high).byte(1));
        };
        match others[..] {
            [a] => insert(VINSERTI32X4.of(32), a, last, into),
            [a, b, c] => {
                insert(VINSERTI32X4.of(32), a, Source::Register(b), first);
                insert(VINSERTI32X4.of(32), c, last, second);
                insert(VINSERTI64X4.of(64), first, Source::Register(second), into);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }

    /// Adds a division of words in double precision. The quotient differs from any integer that it
    /// is not by more than its rounding, so that its integer part is exact.
    fn divide_words(&mut self, signed: bool, into: VReg, args: [Value; 2], bytes: u32) {
        let (to_double, to_word) = if signed { (VCVTDQ2PD, VCVTTPD2DQ) } else { (VCVTUDQ2PD, VCVTTPD2UDQ) };
        let [low, high] = [false, true].map(|high| {
            let [a, b] = args.map(|arg| {
                let (half, double) = (self.half(arg, high), self.vector());
                self.unary(to_double.of(bytes), double, Source::Register(half));
                double
            });
            let [quotient, word] = [0; 2].map(|_| self.vector());
            self.binary(float(0x5e, true, false).of(bytes), quotient, a, Source::Register(b));
            self.unary(to_word.of(bytes), word, Source::Register(quotient));
            word
        });
        let code = if bytes == 64 { VINSERTI64X4.of(64) } else { VINSERTI32X4.of(32) };
        let form = Form::new(code).reg(Use::Write(into)).vvvv(Use::Read(low));
        self.push(form.rm(Source::Register(high)).byte(1));
    }

    /// Adds a selection of words of two vectors behind each other.
    pub(super) fn pick_words(&mut self, into: VReg, [a, b]: [Value; 2], words: Vec<u32>, bytes: u32) {
        let first = self.register(a);
        let same = self.root(a) == self.root(b);
        let count = words.len() as u32;
        let words: Vec<u32> = words.into_iter().map(|word| if same { word % count } else { word }).collect();
        // The same order in each 16 bytes.
        let in_lanes = (words.iter().enumerate())
            .all(|(i, &word)| word / 4 == i as u32 / 4 && word % 4 == words[i % 4] % 4);
        if in_lanes {
            let order = (0..4).fold(0, |bits, i| bits | (words[i] as u8 & 3) << (2 * i));
            let form = Form::new(VPSHUFD.of(bytes)).reg(Use::Write(into));
            return self.push(form.rm(Source::Register(first)).byte(order));
        }
        // Elements of both, interleaved in each 16 bytes.
        let by_turns = |pattern: [u32; 4]| {
            words.iter().enumerate().all(|(i, &word)| {
                let (lane, from) = (i as u32 / 4, pattern[i % 4]);
                word == 4 * lane + from % 4 + if from > 3 { count } else { 0 }
            })
        };
        let interleaving = [
            ([0, 4, 1, 5], VPUNPCKLDQ),
            ([2, 6, 3, 7], VPUNPCKHDQ),
            ([0, 1, 4, 5], VPUNPCKLQDQ),
            ([2, 3, 6, 7], VPUNPCKHQDQ),
        ];
        if let Some((_, code)) = interleaving.into_iter().find(|&(pattern, _)| by_turns(pattern)) {
            let second = self.register(b);
            return self.binary(code.of(bytes), into, first, Source::Register(second));
        }
        let indices: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        if same && bytes > 16 {
            let indices = self.bytes_in_register(&indices);
            return self.binary(VPERMD.of(bytes), into, indices, Source::Register(first));
        }
        let second = self.register(b);
        let indices = self.bytes_in_register(&indices);
        let form = Form::new(VPERMI2D.of(bytes)).reg(Use::Over(into, indices));
        self.push(form.vvvv(Use::Read(first)).rm(Source::Register(second)));
    }

    /// Returns the mask register of a vector that may not be known to be a mask.
    pub(super) fn mask_of_value(&mut self, value: Value) -> Result<VReg, Unsupported> {
        let root = self.root(value);
        if self.is_mask[root] {
            return Ok(self.mask_of(root));
        }
        let ty = self.type_of(value);
        let vector = self.register(value);
        let mask = self.mask();
        let code = if ty.lane_bits() == 64 { VPMOVQ2M } else { VPMOVD2M };
        self.unary(code.of(ty.bytes()), mask, Source::Register(vector));
        Ok(mask)
    }

    fn address_of(&mut self, value: Value, offset: Value) -> Result<Address, Unsupported> {
        match self.constant_of(offset).and_then(|offset| i32::try_from(offset).ok()) {
            Some(offset) => Ok(self.address(value, offset)),
            None => self.unsupported(),
        }
    }
}
