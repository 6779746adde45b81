//! Branches, calls, exits, guards and labels.

use crate::common::{assert_canonical, assert_round_trip, check_errors, first, module, op, parse_errors};
use gridloom_ptx::op::{CallArg, CallTarget, ControlOp, Op};
use gridloom_ptx::{Guard, RegId, VarRef};

#[test]
fn simple_control() {
    assert_canonical(
        "bra end
         bra.uni end
         ret
         ret.uni
         exit
         trap
         brkpt
         nanosleep.u32 100
         nanosleep.u32 %r1
         griddepcontrol.wait
         griddepcontrol.launch_dependents
         pmevent 7
         pmevent.mask 255
         setmaxnreg.inc.sync.aligned.u32 232
         setmaxnreg.dec.sync.aligned.u32 40",
    );
    assert_eq!(check_errors("setmaxnreg.inc.sync.aligned.u32 30;").len(), 1);
}

#[test]
fn guards() {
    assert_canonical("@%p1 bra end\n@!%p2 add.s32 %r1, %r2, %r3\n@%p3 ret");
    assert_eq!(first(&module("@!%p2 ret;")).guard, Some(Guard { reg: RegId(2), negated: true }));
    assert_eq!(check_errors("@%r1 ret;"), ["`@%r1`: a guard is a predicate, not a .b32"]);
}

#[test]
fn a_label_is_the_index_of_the_instruction_after_it() {
    let module = module("bra forward; add.s32 %r1, %r1, 1; forward: second: ret; bra second;");
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    let targets: Vec<(&str, u32)> =
        body.labels.iter().map(|label| (label.name.as_str(), label.target)).collect();
    assert_eq!(targets, [("forward", 2), ("second", 2), ("end", 4)]);
    assert_round_trip(&module);
}

#[test]
fn a_statement_starts_with_an_instruction() {
    assert_eq!(parse_errors("%r1 = 5;"), ["expected an instruction, found `%r1`"]);
    assert_eq!(parse_errors("5;"), ["expected an instruction, found `5`"]);
}

#[test]
fn an_unknown_label_suggests_a_near_one() {
    assert_eq!(parse_errors("bra edn;"), ["unknown label `edn` (did you mean `end`?)"]);
    assert_eq!(parse_errors("bra nowhere;"), ["unknown label `nowhere`"]);
}

#[test]
fn a_label_in_an_inner_scope_is_not_seen_outside() {
    assert_eq!(parse_errors("bra inner; { inner: ret; }"), ["unknown label `inner`"]);
    let both = module("bra twin; { bra twin; twin: exit; } twin: ret;");
    let (_, kernel) = both.entry("kernel").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    let targets: Vec<usize> = body
        .instructions
        .iter()
        .filter_map(|instruction| match &instruction.op {
            Op::Control(ControlOp::Bra { target, .. }) => Some(body.target(*target)),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [3, 2]);
    assert_round_trip(&both);
}

#[test]
fn a_label_defined_twice_is_an_error() {
    assert_eq!(parse_errors("again: ret; again: ret;"), ["`again` is declared twice in this scope"]);
}

#[test]
fn branch_tables() {
    let module =
        module("table1: .branchtargets a, b, end; brx.idx %r1, table1; a: exit; b: brx.idx.uni %r2, table1;");
    assert_round_trip(&module);
    let Op::Control(ControlOp::BrxIdx { table, .. }) = &first(&module).op else { panic!("a branch") };
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    let targets: Vec<usize> =
        body.branch_tables[table.index()].targets.iter().map(|label| body.target(*label)).collect();
    assert_eq!(targets, [1, 2, 3]);
    assert_eq!(parse_errors("brx.idx %r1, end;"), ["`end` is not the label of a .branchtargets list"]);
}

#[test]
fn direct_calls() {
    assert_canonical(
        "call (out), twice, (arg)
         call.uni (out), vprintf, (arg2, arg2)
         call (%r1), twice, (%r2)
         call (_), twice, (5)",
    );
    let Op::Control(ControlOp::Call { target, returns, args, .. }) = op("call.uni (out), twice, (arg);")
    else {
        panic!("a call")
    };
    assert!(matches!(target, CallTarget::Direct(id) if id.0 == 1));
    assert!(matches!(returns[..], [CallArg::Var(VarRef::Local(_))]));
    assert!(matches!(args[..], [CallArg::Var(VarRef::Local(_))]));
    assert_eq!(check_errors("call (out), twice, (arg, arg);"), ["`twice` has 1 arguments, not 2"]);
    assert_eq!(check_errors("call twice, (arg);"), ["`twice` has 1 return values, not 0"]);
    assert_eq!(check_errors("call (out), twice, (arg2);"), ["`arg2` has 8 bytes; `twice` takes 4 here"]);
    assert_eq!(
        parse_errors("call (out), twise, (arg);"),
        ["unknown variable or function `twise` (did you mean `twice`?)"]
    );
    assert_eq!(parse_errors("call table;"), ["`table` is a variable, not a function"]);
}

#[test]
fn indirect_calls_through_a_prototype_or_a_list() {
    let statements = "
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        list: .calltargets twice;
        call (out), %rd1, (arg), proto;
        call.uni (out), %rd2, (arg), list;
        nothing: .callprototype _ () .noreturn;
        call %rd1, nothing;";
    let module = module(statements);
    assert!(gridloom_ptx::check(&module).is_empty());
    assert_round_trip(&module);
    let Op::Control(ControlOp::Call { target, .. }) = &first(&module).op else { panic!("a call") };
    assert!(matches!(target, CallTarget::Prototype(_, id) if id.0 == 0));
    assert_eq!(parse_errors("call (out), %rd1, (arg);").len(), 1);
    assert_eq!(
        check_errors("proto: .callprototype _ (.param .b32 _); call %rd1, (arg, arg), proto;"),
        ["`proto` has 1 arguments, not 2"]
    );
}

#[test]
fn call_sequences_in_braces_keep_their_parameters_apart() {
    let module = module(
        "{ .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0;
           call.uni (retval0), twice, (param0); ld.param.b32 %r2, [retval0]; }
         { .param .b32 param0; st.param.b32 [param0], %r3; .param .b32 retval0;
           call.uni (retval0), twice, (param0); ld.param.b32 %r4, [retval0]; }",
    );
    assert!(gridloom_ptx::check(&module).is_empty());
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    let names: Vec<&str> = body.locals[5..].iter().map(|local| local.name.as_str()).collect();
    assert_eq!(names, ["param0", "retval0", "param0$1_", "retval0$1_"]);
    assert_round_trip(&module);
}

fn always_waits(code: &str) -> bool {
    let module = module(code);
    let (_, kernel) = module.entry("kernel").expect("the kernel");
    kernel.body.as_ref().expect("a body").always_waits()
}

#[test]
fn a_kernel_always_waits_if_no_path_to_its_end_leaves_out_the_wait() {
    for code in [
        "griddepcontrol.wait; ret;",
        "griddepcontrol.launch_dependents; add.s32 %r1, %r1, 1; griddepcontrol.wait; @%p1 ret; exit;",
        "@%p1 bra other; griddepcontrol.wait; ret; other: griddepcontrol.wait; bra back; back: exit;",
        "again: @%p1 bra again; griddepcontrol.wait; call (out), twice, (arg); ret;",
        "@%p1 trap; griddepcontrol.wait; ret;",
        "griddepcontrol.wait;",
    ] {
        assert!(always_waits(code), "{code}");
    }
}

#[test]
fn a_kernel_does_not_always_wait_if_a_path_to_its_end_has_no_wait() {
    for code in [
        "ret;",
        "",
        "add.s32 %r1, %r1, 1;",
        "@%p1 griddepcontrol.wait; ret;",
        "@%p1 ret; griddepcontrol.wait; ret;",
        "@%p1 bra over; griddepcontrol.wait; over: ret;",
        "call (out), twice, (arg); griddepcontrol.wait; ret;",
        "griddepcontrol.launch_dependents; ret;",
        "ts: .branchtargets one, two; brx.idx %r1, ts; one: griddepcontrol.wait; ret; two: exit;",
    ] {
        assert!(!always_waits(code), "{code}");
    }
}
