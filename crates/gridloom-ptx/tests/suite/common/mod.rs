//! What the tests of single instructions share: a kernel with registers of every type.
#![allow(dead_code, reason = "each test file uses a part of it")]

use gridloom_ptx::op::{Instruction, Op};
use gridloom_ptx::{Module, check, instruction_text, parse};

const BEFORE: &str = "
.version 8.8
.target sm_100a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 result) twice (.param .b32 x);
.global .align 16 .b8 table[64];
.visible .entry kernel(.param .u64 p, .param .u32 n) {
    .reg .pred %p<8>;
    .reg .b16 %rs<16>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<16>;
    .reg .f64 %fd<16>;
    .reg .b128 %q<4>;
    .shared .align 16 .b8 buffer[256];
    .local .align 8 .b8 depot[32];
    .param .b32 arg; .param .b64 arg2; .param .b32 out;
";
const AFTER: &str = "\nend: ret; }";

/// A module whose kernel holds `statements`.
pub(crate) fn module(statements: &str) -> Module {
    let text = format!("{BEFORE}{statements}{AFTER}");
    parse(&text).unwrap_or_else(|error| panic!("{statements}\n{error}"))
}

/// Returns the diagnostics of parsing `statements`, as messages with their help.
pub(crate) fn parse_errors(statements: &str) -> Vec<String> {
    let text = format!("{BEFORE}{statements}{AFTER}");
    let Err(error) = parse(&text) else { panic!("no error in {statements}") };
    error
        .diagnostics()
        .iter()
        .map(|diagnostic| match &diagnostic.help {
            Some(help) => format!("{} ({help})", diagnostic.message),
            None => diagnostic.message.clone(),
        })
        .collect()
}

/// Returns what the checker says of `statements`.
pub(crate) fn check_errors(statements: &str) -> Vec<String> {
    check(&module(statements)).into_iter().map(|diagnostic| diagnostic.message).collect()
}

/// Returns the first instruction of the kernel.
pub(crate) fn first(module: &Module) -> &Instruction {
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    &kernel.body.as_ref().expect("a body").instructions[0]
}

/// Returns the operation that `statement` is.
pub(crate) fn op(statement: &str) -> Op {
    first(&module(statement)).op.clone()
}

/// Returns how `statement` prints.
pub(crate) fn printed(statement: &str) -> String {
    let module = module(statement);
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    instruction_text(&module, kernel, first(&module))
}

/// Each line is one instruction that is in the model, has the right types, prints as it is written,
/// and reads back.
pub(crate) fn assert_canonical(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let statement = format!("{line};");
        let module = module(&statement);
        let instruction = first(&module);
        if let Op::Unsupported(unsupported) = &instruction.op {
            panic!("{line}: {}", unsupported.reason);
        }
        let wrong: Vec<String> = check(&module).iter().map(ToString::to_string).collect();
        assert!(wrong.is_empty(), "{line}: {}", wrong.join("\n"));
        assert_eq!(printed(&statement), line);
        assert_round_trip(&module);
    }
}

/// Each pair is an instruction and the form it prints in.
pub(crate) fn assert_prints_as(pairs: &[(&str, &str)]) {
    for (written, canonical) in pairs {
        assert_eq!(printed(&format!("{written};")), *canonical, "{written}");
        assert_eq!(op(&format!("{written};")), op(&format!("{canonical};")), "{written}");
    }
}

/// What is printed parses to the same module.
pub(crate) fn assert_round_trip(module: &Module) {
    let text = module.to_string();
    let again = parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert_eq!(&again, module, "{text}");
}
