//! Instructions outside the model load, print back, and are found by who wants to execute them.

use crate::common::{assert_round_trip, first, module, parse_errors};
use gridloom_ptx::check;
use gridloom_ptx::op::{Op, RawToken};

const KNOWN_TO_EXIST: &str = "
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}
    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%rd1+16]
    wgmma.fence.sync.aligned
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [buffer], 128
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}]
    suld.b.1d.b32.trap %r1, [%rd1, {%r2}]
    vadd.u32.u32.u32 %r1, %r2.b0, %r3.b1
    add.f32.bf16 %f1, %rs1, %f2
    add.u8x4 %r1, %r2, %r3
    mov.b64 {%r1, %r2}, {%r3, %r4}
    brandnew.modifier %r1, -5 + 3, [buffer+4], end, %tid.x, \"text\"";

#[test]
fn unknown_instructions_are_kept() {
    for line in KNOWN_TO_EXIST.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let module = module(&format!("@%p1 {line};"));
        let instruction = first(&module);
        let Op::Unsupported(unsupported) = &instruction.op else { panic!("{line} is in the model") };
        assert_eq!(unsupported.full_name(), line.split(' ').next().unwrap_or_default());
        assert!(instruction.guard.is_some());
        assert!(check(&module).is_empty());
        assert_round_trip(&module);
    }
}

#[test]
fn the_function_that_holds_one_says_so() {
    let module = module("ret; tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];");
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    let (instruction, unsupported) = kernel.unsupported().expect("an unsupported instruction");
    assert_eq!(unsupported.mnemonic, "tex");
    assert!(module.source.slice(instruction.span).starts_with("tex.1d"));
}

#[test]
fn their_operands_are_resolved() {
    let module = module("{ .reg .b32 %r<2>; brandnew %r1, %r5, end; }");
    let Op::Unsupported(unsupported) = &first(&module).op else { panic!("in the model") };
    let regs: Vec<&RawToken> = unsupported
        .operands
        .iter()
        .filter(|token| matches!(token, RawToken::Reg(_) | RawToken::Label(_)))
        .collect();
    assert_eq!(regs.len(), 3);
    assert!(module.to_string().contains("brandnew %r$1_1 , %r5 , end"));
    assert_eq!(parse_errors("brandnew %x1;"), ["unknown register `%x1`"]);
    assert_eq!(parse_errors("brandnew foo;"), ["unknown name `foo`"]);
}
