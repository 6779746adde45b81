//! Compares gathers and scatters, which Cranelift does not have, with single loads and stores.

use super::super::Intrinsic;
use crate::host::Machine;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// Calls an operation of this generator.
fn operation(
    b: &mut FunctionBuilder<'_>,
    intrinsic: Intrinsic,
    args: &[Value],
    result: Option<Type>,
) -> Option<Value> {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.extend(args.iter().map(|&arg| AbiParam::new(b.func.dfg.value_type(arg))));
    signature.returns.extend(result.map(AbiParam::new));
    let signature = b.import_signature(signature);
    let name = ExternalName::user(b.func.declare_imported_user_function(intrinsic.name()));
    let callee = b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false });
    let call = b.ins().call(callee, args);
    b.inst_results(call).first().copied()
}

/// Words or quads in memory, and where the elements of a vector are among them.
struct Elements {
    memory: [u64; 64],
    /// Byte offsets, all inside.
    offsets: [i64; 16],
    chosen: [bool; 16],
    values: [u64; 16],
    /// Vectors of 64 bytes for the code: addresses, 32-bit offsets, masks of words and of quads,
    /// values as words and as quads.
    vectors: [[u8; 128]; 6],
}

impl Elements {
    fn new(size: usize, next: &mut dyn FnMut() -> u64) -> Self {
        let mut elements = Elements {
            memory: std::array::from_fn(|_| next()),
            offsets: std::array::from_fn(|_| (next() % (512 / size as u64)) as i64 * size as i64),
            chosen: std::array::from_fn(|_| next().is_multiple_of(2)),
            values: std::array::from_fn(|_| next()),
            vectors: [[0; 128]; 6],
        };
        if next().is_multiple_of(8) {
            elements.chosen = [next().is_multiple_of(2); 16];
        }
        elements
    }

    /// Fills the vectors. Elements that are not chosen are at addresses that fault.
    fn fill(&mut self, displacement: i64) {
        let start = self.memory.as_ptr() as i64 - displacement;
        for i in 0..16 {
            let wild = !self.chosen[i];
            let address = if wild { 0x10 } else { start + self.offsets[i] };
            let offset = if wild { i32::MIN } else { self.offsets[i] as i32 };
            let mask = if wild { [0u8; 8] } else { [0xff; 8] };
            self.vectors[0][8 * i..][..8].copy_from_slice(&address.to_le_bytes());
            self.vectors[1][4 * i..][..4].copy_from_slice(&offset.to_le_bytes());
            self.vectors[2][4 * i..][..4].copy_from_slice(&mask[..4]);
            self.vectors[3][8 * i..][..8].copy_from_slice(&mask);
            self.vectors[4][4 * i..][..4].copy_from_slice(&(self.values[i] as u32).to_le_bytes());
            self.vectors[5][8 * i..][..8].copy_from_slice(&self.values[i].to_le_bytes());
        }
    }
}

/// Returns code that gathers or scatters the elements of vectors of `bytes` bytes. It is given the
/// address of the vectors, of the memory and of the results.
fn code_of_accesses(intrinsic: Intrinsic, bytes: usize, displacement: i64) -> Machine {
    let build = |func: &mut Function| {
        func.signature = Signature::new(CallConv::SystemV);
        func.signature.params.extend([AbiParam::new(I64); 3]);
        let mut context = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(func, &mut context);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let &[vectors, start, to] = b.block_params(block) else { panic!("three addresses") };
        let flags = MemFlagsData::new().with_notrap();
        let [words, quads] = [I32, I64].map(|ty| ty.by(bytes as u32 / ty.bytes()).expect("a vector"));
        let load = |b: &mut FunctionBuilder<'_>, ty: Type, which: usize, at: usize| {
            b.ins().load(ty, flags, vectors, (128 * which + at) as i32)
        };
        // What is not zero is a mask.
        let mask = |b: &mut FunctionBuilder<'_>, value: Value| {
            let zero = b.ins().iconst(I64, 0);
            let ty = b.func.dfg.value_type(value);
            let zero = if ty.lane_bits() == 32 { b.ins().ireduce(I32, zero) } else { zero };
            let zero = b.ins().splat(ty, zero);
            b.ins().icmp(IntCC::NotEqual, value, zero)
        };
        let offset = b.ins().iconst(I64, displacement);
        let is_quads = matches!(intrinsic, Intrinsic::GatherQuads | Intrinsic::ScatterQuads);
        let all = if is_quads { 128 } else { 64 };
        for at in (0..all).step_by(bytes) {
            let (ty, value) = if is_quads {
                (quads, load(&mut b, quads, 5, at))
            } else {
                (words, load(&mut b, words, 4, at))
            };
            let mut args = match intrinsic {
                Intrinsic::GatherNear | Intrinsic::ScatterNear => {
                    let base = b.ins().iadd_imm_s(start, -displacement);
                    let index = load(&mut b, words, 1, at);
                    // The offsets are multiples of the scale.
                    let count = b.ins().iconst(I32, 2);
                    let index = b.ins().sshr(index, count);
                    let log = b.ins().iconst(I64, 2);
                    let chosen = load(&mut b, words, 2, at);
                    let chosen = mask(&mut b, chosen);
                    vec![base, index, log, chosen]
                }
                _ => {
                    let parts: Vec<usize> = if is_quads { vec![at] } else { vec![2 * at, 2 * at + bytes] };
                    let mut args: Vec<Value> = parts.iter().map(|&at| load(&mut b, quads, 0, at)).collect();
                    for &at in &parts {
                        let chosen = load(&mut b, quads, 3, at);
                        args.push(mask(&mut b, chosen));
                    }
                    args
                }
            };
            args.push(offset);
            if matches!(intrinsic, Intrinsic::ScatterNear | Intrinsic::ScatterWords | Intrinsic::ScatterQuads)
            {
                args.insert(0, value);
                operation(&mut b, intrinsic, &args, None);
            } else {
                let found = operation(&mut b, intrinsic, &args, Some(ty)).expect("a result");
                b.ins().store(flags, found, to, at as i32);
            }
        }
        b.ins().return_(&[]);
        b.seal_all_blocks();
        let isa = crate::host::target().expect("a host that code is generated for");
        b.finalize(isa.frontend_config());
    };
    let code = Machine::compile_wide(true, |func, _| {
        build(func);
        Ok(())
    });
    code.unwrap_or_else(|error| panic!("{intrinsic:?} in {bytes} bytes: {error}"))
}

#[test]
fn gathers_and_scatters_access_the_chosen_elements_alone() {
    use Intrinsic::*;
    if !super::super::is_available() {
        return;
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for (intrinsic, name) in [
        (GatherNear, "gatherdd"),
        (GatherWords, "gatherqd"),
        (GatherQuads, "gatherqq"),
        (ScatterNear, "scatterdd"),
        (ScatterWords, "scatterqd"),
        (ScatterQuads, "scatterqq"),
    ] {
        let size = if matches!(intrinsic, GatherQuads | ScatterQuads) { 8 } else { 4 };
        let scatters = matches!(intrinsic, ScatterNear | ScatterWords | ScatterQuads);
        for (bytes, displacement) in [(64, 0), (32, 0), (64, 40), (32, -4096), (64, 1 << 20)] {
            let code = code_of_accesses(intrinsic, bytes, displacement);
            let [_, listing] = code.listing.as_ref().expect("it was requested");
            assert!(!listing.contains("(bad)"), "{listing}");
            assert!(!listing.contains("vp") || listing.contains(name), "{listing}");
            for _ in 0..100 {
                let mut elements = Elements::new(size, &mut next);
                elements.fill(displacement);
                let mut expected = elements.memory;
                let mut results = [0u8; 128];
                let mut loaded = [0u8; 128];
                for i in 0..16 {
                    if !elements.chosen[i] {
                        continue;
                    }
                    let (at, by) = (elements.offsets[i] as usize, elements.offsets[i] as usize % 8 * 8);
                    let old = &mut expected[at / 8];
                    if size == 8 {
                        loaded[8 * i..][..8].copy_from_slice(&old.to_le_bytes());
                    } else {
                        loaded[4 * i..][..4].copy_from_slice(&((*old >> by) as u32).to_le_bytes());
                    }
                    if scatters && size == 8 {
                        *old = elements.values[i];
                    } else if scatters {
                        let value = u64::from(elements.values[i] as u32);
                        *old = *old & !(u64::from(u32::MAX) << by) | value << by;
                    }
                }
                // SAFETY: the code is a function of the addresses of the vectors, of the memory
                // that the chosen elements lie in, and of the results, which are as long as it
                // writes.
                unsafe {
                    let function: unsafe extern "C" fn(*const u8, *mut u64, *mut u8) =
                        std::mem::transmute(code.entry());
                    let vectors = elements.vectors.as_ptr().cast();
                    function(vectors, elements.memory.as_mut_ptr(), results.as_mut_ptr());
                }
                assert_eq!(elements.memory, expected, "{intrinsic:?} in {bytes} bytes");
                if !scatters {
                    assert_eq!(results, loaded, "{intrinsic:?} in {bytes} bytes");
                }
            }
        }
    }
}

#[test]
fn words_and_bytes_are_looked_up_in_two_vectors() {
    if !super::super::is_available() {
        return;
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for (intrinsic, size) in [(Intrinsic::LookUp, 4), (Intrinsic::LookUpBytes, 1)] {
        if size == 1 && !super::super::looks_up_bytes() {
            continue;
        }
        for (bytes, of_one) in [(64, false), (64, true), (32, false), (32, true)] {
            let build = |func: &mut Function| {
                func.signature = Signature::new(CallConv::SystemV);
                func.signature.params.extend([AbiParam::new(I64); 2]);
                let mut context = FunctionBuilderContext::new();
                let mut b = FunctionBuilder::new(func, &mut context);
                let block = b.create_block();
                b.append_block_params_for_function_params(block);
                b.switch_to_block(block);
                let &[from, to] = b.block_params(block) else { panic!("two addresses") };
                let ty = I32.by(bytes as u32 / 4).expect("a vector");
                let flags = MemFlagsData::new().with_notrap();
                let [a, other, indices] = [0, 1, 2].map(|i| b.ins().load(ty, flags, from, i * bytes as i32));
                let args = [a, if of_one { a } else { other }, indices];
                let found = operation(&mut b, intrinsic, &args, Some(ty)).expect("a result");
                b.ins().store(flags, found, to, 0);
                b.ins().return_(&[]);
                b.seal_all_blocks();
                let isa = crate::host::target().expect("a host that code is generated for");
                b.finalize(isa.frontend_config());
            };
            let code = Machine::compile_wide(true, |func, _| {
                build(func);
                Ok(())
            });
            let code = code.unwrap_or_else(|error| panic!("{intrinsic:?} in {bytes} bytes: {error}"));
            let [_, listing] = code.listing.as_ref().expect("it was requested");
            assert!(!listing.contains("(bad)"), "{listing}");
            for _ in 0..50 {
                let operands: Vec<u8> = (0..3 * bytes).map(|_| next() as u8).collect();
                let mut expected = Vec::new();
                for element in operands[2 * bytes..].chunks(size) {
                    let index = element[0] as usize % (2 * bytes / size) * size;
                    let index = if of_one { index % bytes } else { index };
                    expected.extend_from_slice(&operands[index..][..size]);
                }
                let mut found = vec![0u8; bytes];
                // SAFETY: the code is a function of the addresses of three vectors and of the
                // result, which are as long as it reads and writes.
                unsafe {
                    let function: unsafe extern "C" fn(*const u8, *mut u8) =
                        std::mem::transmute(code.entry());
                    function(operands.as_ptr(), found.as_mut_ptr());
                }
                assert_eq!(found, expected, "{intrinsic:?} in {bytes} bytes");
            }
        }
    }
}
