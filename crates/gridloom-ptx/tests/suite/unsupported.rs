//! Instructions outside the model load, print back, and can be found.

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
    add.u8x4 %r1, %r2, %r3";

const NOT_THERE: &str = "
    mov.b64 {%r1, %r2}, {%r3, %r4}
    brandnew.modifier %r1, -5 + 3, [buffer+4], end, %tid.x, \"text\"";

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[test]
fn instructions_outside_the_model_are_kept() {
    for line in lines(KNOWN_TO_EXIST).chain(lines(NOT_THERE)) {
        let module = module(&format!("@%p1 {line};"));
        let instruction = first(&module);
        let Op::Unsupported(unsupported) = &instruction.op else { panic!("{line} is in the model") };
        assert_eq!(unsupported.full_name(), line.split(' ').next().unwrap_or_default());
        assert!(instruction.guard.is_some());
        assert_round_trip(&module);
    }
}

#[test]
fn instructions_that_exist_are_not_wrong() {
    for line in lines(KNOWN_TO_EXIST) {
        assert_eq!(check(&module(&format!("{line};"))), [], "{line}");
    }
}

#[test]
fn instructions_that_do_not_exist_are_wrong_and_underlined() {
    let cases = [
        ("brandnew.foo %r1, %r2;", "there is no instruction `brandnew`", "brandnew", None),
        ("@%p1 ad.s32 %r1, %r2, %r3;", "there is no instruction `ad`", "ad", Some("did you mean `add`?")),
        ("mna.sync %r1;", "there is no instruction `mna`", "mna", Some("did you mean `mma`?")),
        ("add.sideways.s32 %r1, %r2, %r3;", "`add` has no `.sideways`", "sideways", None),
        ("ld.global.u99 %r1, [%rd1];", "`ld` has no `.u99`", "u99", None),
        ("wgmma.fences.sync.aligned;", "`wgmma` has no `.fences`", "fences", None),
        ("tcgen05.steal %r1;", "`tcgen05` has no `.steal`", "steal", None),
        ("cp.sync %r1;", "`cp` needs `.async`", "cp.sync", None),
    ];
    for (text, message, culprit, help) in cases {
        let found = check(&module(text));
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].message, message);
        assert_eq!(found[0].help.as_deref(), help);
        let rendered = found[0].render("k");
        let [_, line, caret, ..] = rendered.lines().collect::<Vec<_>>()[..] else { panic!("{rendered}") };
        assert_eq!(line.find(culprit), caret.find('^'), "{rendered}");
    }
}

#[test]
fn newer_ptx_is_said_to_be_newer() {
    let text = ".version 99.1\n.target sm_80\n.entry k() { zzzzzzzz; }";
    let found = check(&gridloom_ptx::parse(text).expect("a module"));
    assert_eq!(found[0].help.as_deref(), Some("the module is PTX 99.1, and Gridloom knows PTX up to 9.2"));
    // A newer version may have given an instruction a new modifier.
    let text = ".version 99.1\n.target sm_80\n.entry k() { wgmma.fences; }";
    assert_eq!(check(&gridloom_ptx::parse(text).expect("a module")), []);
}

#[test]
fn a_text_always_has_the_same_suggestions() {
    let declared: String = (0..50).rev().map(|index| format!(".func f{index}() {{ ret; }}\n")).collect();
    let text = format!(".version 7.0\n.target sm_70\n{declared}.entry k() {{ call f; ret; }}");
    let help = || gridloom_ptx::parse(&text).expect_err("f is not declared").diagnostics()[0].help.clone();
    assert_eq!(help().as_deref(), Some("did you mean `f0`?"));
    assert_eq!(help(), help());
}

#[test]
fn every_mnemonic_of_the_model_is_known() {
    // Wrong operands are an error of the parser; a mnemonic nobody knows is not.
    for mnemonic in ["add", "mapa", "elect", "setmaxnreg", "mbarrier"] {
        let text = format!(".version 8.0 .target sm_80 .entry k() {{ {mnemonic}x; }}");
        let found = check(&gridloom_ptx::parse(&text).expect("a module"));
        assert_eq!(found[0].help, Some(format!("did you mean `{mnemonic}`?")));
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
