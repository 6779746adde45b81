//! Compares each selection with Cranelift's own code, for random and special operands.

mod scattered;

use crate::host::Machine;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, MemFlagsData, Signature, Type, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// Builds a result from two or three operands.
type Make = fn(&mut FunctionBuilder<'_>, &[Value]) -> Value;

/// Bytes of operands, and of results.
const BYTES: usize = 64;

/// Builds a function of the address of three operands and of the result, which makes the result in
/// vectors of so many bytes, or of single elements.
fn build(func: &mut Function, element: Type, bytes: usize, make: Make) {
    func.signature = Signature::new(CallConv::SystemV);
    func.signature.params.extend([AbiParam::new(I64); 2]);
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(func, &mut context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let &[from, to] = b.block_params(block) else { panic!("a function of two addresses") };
    let ty = element.by(bytes as u32 / element.bytes()).expect("a vector");
    let flags = MemFlagsData::new().with_notrap();
    for at in (0..BYTES).step_by(bytes) {
        let operands = [0, 1, 2].map(|i| b.ins().load(ty, flags, from, (BYTES * i + at) as i32));
        let result = make(&mut b, &operands);
        let size = b.func.dfg.value_type(result).bytes() as usize;
        // Results of other lengths lie one behind the other too.
        b.ins().store(flags, result, to, (at / bytes * size) as i32);
    }
    b.ins().return_(&[]);
    b.seal_all_blocks();
    let isa = crate::host::target().expect("a host that code is generated for");
    b.finalize(isa.frontend_config());
}

/// Operands: special ones and any.
fn operands(element: Type, seed: &mut u64) -> Vec<u8> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    };
    let floats = [
        0f64,
        -0.0,
        1.0,
        -1.5,
        2147483648.0,
        -2147483649.0,
        4294967296.0,
        1e19,
        9.3e18,
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        1e-310,
        0.5,
        -2.5,
    ];
    let integers = [0u64, 1, u64::MAX, 1 << 31, (1 << 31) - 1, 1 << 63, (1 << 63) - 1, 31, 32, 64];
    let size = element.bytes() as usize;
    (0..3 * BYTES / size)
        .flat_map(|_| {
            let bits = match (next() % 3, element) {
                (0, F32) => u64::from((floats[next() as usize % floats.len()] as f32).to_bits()),
                (0, F64) => floats[next() as usize % floats.len()].to_bits(),
                (0, _) => integers[next() as usize % integers.len()],
                (1, F32) => u64::from(((next() % 2000) as f32 / 7.0 - 100.0).to_bits()),
                (1, F64) => ((next() % 2000) as f64 / 7.0 - 100.0).to_bits(),
                (1, _) => next() % 100,
                _ => next(),
            };
            bits.to_le_bytes().into_iter().take(size)
        })
        .collect()
}

fn run(machine: &Machine, operands: &[u8]) -> Vec<u8> {
    let mut results = vec![0u8; 8 * BYTES];
    // SAFETY: the code is a function of the addresses of operands and results, which are as long as
    // it reads and writes.
    unsafe {
        let function: unsafe extern "C" fn(*const u8, *mut u8) = std::mem::transmute(machine.entry());
        function(operands.as_ptr(), results.as_mut_ptr());
    }
    results
}

/// Compares both generators, where one makes results of `lengths[0]` bytes and Cranelift of
/// `lengths[1]`. A disassembler must know what is made.
fn compare(name: &str, element: Type, lengths: [usize; 2], make: Make) {
    if !super::is_available() {
        return;
    }
    let ours = Machine::compile_wide(true, |func, _| {
        build(func, element, lengths[0], make);
        Ok(())
    });
    let theirs = Machine::compile(false, |func, _| {
        build(func, element, lengths[1], make);
        Ok(())
    });
    let (ours, theirs) =
        (ours.unwrap_or_else(|error| panic!("{name} of {element}: {error}")), theirs.expect(name));
    let [_, listing] = ours.listing.as_ref().expect("it was requested");
    assert!(listing.contains("ret") && !listing.contains("(bad)"), "{name} of {element}: {listing}");
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..200 {
        let operands = operands(element, &mut seed);
        let (found, expected) = (run(&ours, &operands), run(&theirs, &operands));
        assert_eq!(found, expected, "{name} of {element} in {lengths:?}: {operands:?}");
    }
}

macro_rules! each {
    ($elements:expr; $($name:ident $make:expr;)*) => {
        $(
            for element in $elements {
                let make: Make = $make;
                for length in [16, 32, 64] {
                    compare(stringify!($name), element, [length, 16], make);
                }
            }
        )*
    };
}

macro_rules! each_single {
    ($elements:expr; $($name:ident $make:expr;)*) => {
        $(
            for element in $elements {
                let make: Make = $make;
                compare(stringify!($name), element, [element.bytes() as usize; 2], make);
            }
        )*
    };
}

/// Compares with every condition, and keeps the result as a mask, as a choice, and as bits.
fn conditions(
    make: impl Fn(&mut FunctionBuilder<'_>, IntCC, &[Value]) -> Value,
) -> impl Fn(&mut FunctionBuilder<'_>, &[Value]) -> Value {
    move |b, x| {
        let mut sum = x[2];
        for cond in IntCC::all() {
            let result = make(b, *cond, x);
            let twice = b.ins().iadd(sum, sum);
            sum = b.ins().bxor(twice, result);
        }
        sum
    }
}

#[test]
fn arithmetic_of_integers_in_vectors_is_that_of_cranelift() {
    each! { [I32, I64];
        iadd |b, x| b.ins().iadd(x[0], x[1]);
        isub |b, x| b.ins().isub(x[0], x[1]);
        imul |b, x| b.ins().imul(x[0], x[1]);
        band |b, x| b.ins().band(x[0], x[1]);
        bor |b, x| b.ins().bor(x[0], x[1]);
        bxor |b, x| b.ins().bxor(x[0], x[1]);
        bnot |b, x| b.ins().bnot(x[0]);
        ineg |b, x| b.ins().ineg(x[0]);
        iabs |b, x| b.ins().iabs(x[0]);
        bitselect |b, x| b.ins().bitselect(x[0], x[1], x[2]);
        shifts |b, x| {
            let count = b.ins().iconst(I32, 5);
            let [left, right, signed] = [b.ins().ishl(x[0], count), b.ins().ushr(x[1], count), b.ins().sshr(x[2], count)];
            let sum = b.ins().iadd(left, right);
            b.ins().isub(sum, signed)
        };
        far_shifts |b, x| {
            let count = b.ins().iconst(I32, 77);
            let [left, right] = [b.ins().ishl(x[0], count), b.ins().sshr(x[1], count)];
            b.ins().iadd(left, right)
        };
        chosen |b, x| {
            let choose = conditions(|b, cond, x| {
                let mask = b.ins().icmp(cond, x[0], x[1]);
                b.ins().bitselect(mask, x[1], x[2])
            });
            choose(b, x)
        };
        masks |b, x| {
            let choose = conditions(|b, cond, x| {
                let [first, second] = [b.ins().icmp(cond, x[0], x[1]), b.ins().icmp(cond, x[1], x[2])];
                let [both, any] = [b.ins().band(first, second), b.ins().bor(first, second)];
                let not = b.ins().bnot(any);
                let odd = b.ins().bxor(not, first);
                let kept = b.ins().band(odd, x[0]);
                let mixed = b.ins().bitselect(both, odd, first);
                let sum = b.ins().iadd(kept, mixed);
                b.ins().bxor(sum, both)
            });
            choose(b, x)
        };
    }
    each! { [I32];
        smin |b, x| b.ins().smin(x[0], x[1]);
        umin |b, x| b.ins().umin(x[0], x[1]);
        smax |b, x| b.ins().smax(x[0], x[1]);
        umax |b, x| b.ins().umax(x[0], x[1]);
        to_float |b, x| {
            let ty = b.func.dfg.value_type(x[0]);
            let ty = F32.by(ty.lane_count()).expect("a vector");
            let [signed, unsigned] = [b.ins().fcvt_from_sint(ty, x[0]), b.ins().fcvt_from_uint(ty, x[1])];
            b.ins().fadd(signed, unsigned)
        };
    }
}

#[test]
fn arithmetic_of_floats_in_vectors_is_that_of_cranelift() {
    each! { [F32, F64];
        fadd |b, x| b.ins().fadd(x[0], x[1]);
        fsub |b, x| b.ins().fsub(x[0], x[1]);
        fmul |b, x| b.ins().fmul(x[0], x[1]);
        fdiv |b, x| b.ins().fdiv(x[0], x[1]);
        fneg |b, x| b.ins().fneg(x[0]);
        fabs |b, x| b.ins().fabs(x[0]);
        sqrt |b, x| b.ins().sqrt(x[0]);
        ceil |b, x| b.ins().ceil(x[0]);
        floor |b, x| b.ins().floor(x[0]);
        trunc |b, x| b.ins().trunc(x[0]);
        nearest |b, x| b.ins().nearest(x[0]);
        least |b, x| {
            let less = b.ins().fcmp(FloatCC::LessThan, x[0], x[1]);
            let ty = b.func.dfg.value_type(x[0]);
            let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
            let less = b.ins().bitcast(ty, flags, less);
            b.ins().bitselect(less, x[0], x[1])
        };
        greatest |b, x| {
            let less = b.ins().fcmp(FloatCC::LessThan, x[1], x[0]);
            let ty = b.func.dfg.value_type(x[0]);
            let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
            let less = b.ins().bitcast(ty, flags, less);
            b.ins().bitselect(less, x[0], x[1])
        };
        comparisons |b, x| {
            let mut sum = None;
            for &cond in FloatCC::all() {
                // Cranelift has no vector instruction for these.
                if matches!(cond, FloatCC::OrderedNotEqual | FloatCC::UnorderedOrEqual) {
                    continue;
                }
                let result = b.ins().fcmp(cond, x[0], x[1]);
                sum = Some(sum.map_or(result, |sum| {
                    let twice = b.ins().iadd(sum, sum);
                    b.ins().bxor(twice, result)
                }));
            }
            sum.expect("a comparison")
        };
    }
    each! { [F32];
        to_integer |b, x| {
            let ty = b.func.dfg.value_type(x[0]);
            let ty = I32.by(ty.lane_count()).expect("a vector");
            let [signed, unsigned] = [b.ins().fcvt_to_sint_sat(ty, x[0]), b.ins().fcvt_to_uint_sat(ty, x[1])];
            b.ins().iadd(signed, unsigned)
        };
    }
}

/// The sum of a product, and the first operand where that is a NaN, whose bits are anything.
fn fused(b: &mut FunctionBuilder<'_>, x: &[Value]) -> Value {
    let sum = b.ins().fma(x[0], x[1], x[2]);
    let is_number = b.ins().fcmp(FloatCC::Ordered, sum, sum);
    let ty = b.func.dfg.value_type(sum);
    if !ty.is_vector() {
        return b.ins().select(is_number, sum, x[0]);
    }
    let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
    let is_number = b.ins().bitcast(ty, flags, is_number);
    b.ins().bitselect(is_number, sum, x[0])
}

#[test]
fn sums_of_products_are_rounded_once() {
    each! { [F32, F64]; fma fused; }
    each_single! { [F32, F64]; fma fused; }
}

#[test]
fn arithmetic_of_single_integers_is_that_of_cranelift() {
    each_single! { [I8, I16, I32, I64];
        iadd |b, x| b.ins().iadd(x[0], x[1]);
        isub |b, x| b.ins().isub(x[0], x[1]);
        imul |b, x| b.ins().imul(x[0], x[1]);
        bits |b, x| {
            let [and, or] = [b.ins().band(x[0], x[1]), b.ins().bor(x[1], x[2])];
            let not = b.ins().bnot(or);
            b.ins().bxor(and, not)
        };
        ineg |b, x| b.ins().ineg(x[0]);
        iabs |b, x| b.ins().iabs(x[0]);
        smin |b, x| b.ins().smin(x[0], x[1]);
        umin |b, x| b.ins().umin(x[0], x[1]);
        smax |b, x| b.ins().smax(x[0], x[1]);
        umax |b, x| b.ins().umax(x[0], x[1]);
        ishl |b, x| b.ins().ishl(x[0], x[1]);
        ushr |b, x| b.ins().ushr(x[0], x[1]);
        sshr |b, x| b.ins().sshr(x[0], x[1]);
        constant_shifts |b, x| {
            let [left, once, right, signed] = [
                b.ins().ishl_imm_u(x[0], 3),
                b.ins().ishl_imm_u(x[0], 1),
                b.ins().ushr_imm_u(x[1], 5),
                b.ins().sshr_imm_u(x[2], 2),
            ];
            let sum = b.ins().iadd(left, right);
            let sum = b.ins().isub(sum, once);
            b.ins().bxor(sum, signed)
        };
        constants |b, x| {
            let sum = b.ins().iadd_imm_s(x[0], -3);
            let product = b.ins().imul_imm_s(sum, 100);
            let some = b.ins().band_imm_u(product, 0x5a);
            b.ins().bxor_imm_u(some, 0x7f)
        };
        conditions |b, x| {
            let choose = conditions(|b, cond, x| {
                let truth = b.ins().icmp(cond, x[0], x[1]);
                let constant = b.ins().icmp_imm_s(cond, x[2], 17);
                let not = b.ins().bxor_imm_u(truth, 1);
                let some = b.ins().select(truth, x[0], x[2]);
                let more = b.ins().select(constant, some, x[1]);
                let ty = b.func.dfg.value_type(x[0]);
                let all = b.ins().bmask(ty, not);
                b.ins().bxor(more, all)
            });
            choose(b, x)
        };
        division |b, x| {
            let one = {
                let ty = b.func.dfg.value_type(x[0]);
                b.ins().iconst(ty, 1)
            };
            let divisor = b.ins().bor(x[1], one);
            let ty = b.func.dfg.value_type(x[0]);
            let ones = b.ins().iconst(ty, if ty == I64 { -1 } else { (1 << ty.bits()) - 1 });
            let is_ones = b.ins().icmp(IntCC::Equal, divisor, ones);
            let divisor = b.ins().select(is_ones, one, divisor);
            let [a, c, d, e] = [
                b.ins().udiv(x[0], divisor),
                b.ins().sdiv(x[0], divisor),
                b.ins().urem(x[2], divisor),
                b.ins().srem(x[2], divisor),
            ];
            let sum = b.ins().iadd(a, c);
            let sum = b.ins().bxor(sum, d);
            b.ins().isub(sum, e)
        };
    }
    each_single! { [I32, I64];
        rotr |b, x| b.ins().rotr(x[0], x[1]);
        rotr_by_constant |b, x| b.ins().rotr_imm_u(x[0], 13);
        counts |b, x| {
            let [a, c, d] = [b.ins().clz(x[0]), b.ins().ctz(x[1]), b.ins().popcnt(x[2])];
            let sum = b.ins().iadd(a, c);
            b.ins().iadd(sum, d)
        };
        bitrev |b, x| b.ins().bitrev(x[0]);
        high_products |b, x| {
            let [unsigned, signed] = [b.ins().umulhi(x[0], x[1]), b.ins().smulhi(x[1], x[2])];
            b.ins().bxor(unsigned, signed)
        };
    }
    each_single! { [I8, I16, I32];
        extended |b, x| {
            let [unsigned, signed] = [b.ins().uextend(I64, x[0]), b.ins().sextend(I64, x[1])];
            let sum = b.ins().isub(signed, unsigned);
            let some = b.ins().ireduce(I8, sum);
            let some = b.ins().sextend(I64, some);
            b.ins().bxor(sum, some)
        };
    }
}

#[test]
fn arithmetic_of_single_floats_is_that_of_cranelift() {
    each_single! { [F32, F64];
        fadd |b, x| b.ins().fadd(x[0], x[1]);
        fsub |b, x| b.ins().fsub(x[0], x[1]);
        fmul |b, x| b.ins().fmul(x[0], x[1]);
        fdiv |b, x| b.ins().fdiv(x[0], x[1]);
        signs |b, x| {
            let [negative, magnitude] = [b.ins().fneg(x[0]), b.ins().fabs(x[1])];
            let less = b.ins().fcmp(FloatCC::LessThan, x[2], x[0]);
            b.ins().select(less, negative, magnitude)
        };
        sqrt |b, x| b.ins().sqrt(x[0]);
        ceil |b, x| b.ins().ceil(x[0]);
        floor |b, x| b.ins().floor(x[0]);
        trunc |b, x| b.ins().trunc(x[0]);
        nearest |b, x| b.ins().nearest(x[0]);
        to_words |b, x| {
            let [signed, unsigned] = [b.ins().fcvt_to_sint_sat(I32, x[0]), b.ins().fcvt_to_uint_sat(I32, x[1])];
            b.ins().bxor(signed, unsigned)
        };
        to_long_words |b, x| {
            let [signed, unsigned] = [b.ins().fcvt_to_sint_sat(I64, x[0]), b.ins().fcvt_to_uint_sat(I64, x[1])];
            b.ins().bxor(signed, unsigned)
        };
        comparisons |b, x| {
            let mut sum = b.ins().iconst(I32, 0);
            for &cond in FloatCC::all() {
                let truth = b.ins().fcmp(cond, x[0], x[1]);
                let truth = b.ins().uextend(I32, truth);
                let twice = b.ins().iadd(sum, sum);
                sum = b.ins().bxor(twice, truth);
            }
            sum
        };
    }
    each_single! { [I32, I64];
        to_floats |b, x| {
            let [signed, unsigned] = [b.ins().fcvt_from_sint(F32, x[0]), b.ins().fcvt_from_uint(F32, x[1])];
            b.ins().fadd(signed, unsigned)
        };
        to_doubles |b, x| {
            let [signed, unsigned] = [b.ins().fcvt_from_sint(F64, x[0]), b.ins().fcvt_from_uint(F64, x[1])];
            b.ins().fadd(signed, unsigned)
        };
    }
    each_single! { [F32]; fpromote |b, x| b.ins().fpromote(F64, x[0]); }
    each_single! { [F64]; fdemote |b, x| b.ins().fdemote(F32, x[0]); }
}

#[test]
fn the_lesser_and_greater_of_floats_are_those_of_cranelift_but_for_the_bits_of_a_nan() {
    each_single! { [F32, F64];
        extrema |b, x| {
            let [least, most] = [b.ins().fmin(x[0], x[1]), b.ins().fmax(x[0], x[1])];
            let ty = b.func.dfg.value_type(x[0]);
            let is_number = b.ins().fcmp(FloatCC::Ordered, least, most);
            let nothing = if ty == F32 { b.ins().f32const(7.0) } else { b.ins().f64const(7.0) };
            let least = b.ins().select(is_number, least, nothing);
            let most = b.ins().select(is_number, most, nothing);
            // Both, with the signs of zeros.
            let one = if ty == F32 { b.ins().f32const(1.0) } else { b.ins().f64const(1.0) };
            let [low, high] = [b.ins().fdiv(one, least), b.ins().fdiv(one, most)];
            b.ins().fsub(low, high)
        };
    }
}

#[test]
fn what_a_vector_tells_of_all_elements_is_that_of_cranelift() {
    for element in [I32, I64] {
        let make: Make = |b, x| {
            let mask = b.ins().icmp(IntCC::SignedLessThan, x[0], x[1]);
            let other = b.ins().icmp(IntCC::UnsignedLessThan, x[1], x[2]);
            let either = b.ins().bor(mask, other);
            let truths = [
                b.ins().vany_true(mask),
                b.ins().vall_true(mask),
                b.ins().vany_true(either),
                b.ins().vall_true(either),
                b.ins().vany_true(x[0]),
                b.ins().vall_true(x[0]),
            ];
            let mut bits = b.ins().vhigh_bits(I32, mask);
            let more = b.ins().vhigh_bits(I32, x[2]);
            let more = b.ins().ishl_imm_u(more, 4);
            bits = b.ins().bor(bits, more);
            for truth in truths {
                let truth = b.ins().uextend(I32, truth);
                bits = b.ins().ishl_imm_u(bits, 1);
                bits = b.ins().bor(bits, truth);
            }
            bits
        };
        compare("truths", element, [16, 16], make);
    }
}
