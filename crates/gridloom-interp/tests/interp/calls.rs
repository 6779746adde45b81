//! Calls: direct, indirect, recursive, and their parameters.

use crate::support::{Module, Params, run, try_threads};
use gridloom_interp::{FaultKind, Launch};

const SQUARE: &str = "
    .func (.param .b32 result) square(.param .b32 x) {
        .reg .b32 %a;
        ld.param.u32 %a, [x];
        mul.lo.u32 %a, %a, %a;
        st.param.b32 [result], %a;
        ret;
    }
    .func (.param .b32 result) twice(.param .b32 x) {
        .reg .b32 %a;
        ld.param.u32 %a, [x];
        add.u32 %a, %a, %a;
        st.param.b32 [result], %a;
        ret;
    }";

#[test]
fn a_call_passes_parameters_and_returns_a_value() {
    let out = try_threads(
        SQUARE,
        "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call.uni (q), square, (p); ld.param.b32 %r0, [q]; }",
        1,
        5,
    );
    assert_eq!(out, Ok(vec![0, 1, 4, 9, 16]));
}

#[test]
fn a_predicated_call_happens_only_in_some_lanes() {
    let out = try_threads(
        SQUARE,
        "mov.u32 %r0, 77; setp.ge.u32 %p0, %r1, 2;
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; st.param.b32 [q], %r0;
           @%p0 call (q), square, (p); ld.param.b32 %r0, [q]; }",
        1,
        4,
    );
    assert_eq!(out, Ok(vec![77, 77, 4, 9]));
}

#[test]
fn register_parameters_are_passed_in_registers() {
    let out = try_threads(
        ".func (.reg .u32 sum) add3(.reg .u32 a, .reg .u32 b, .reg .u32 c) {
            add.u32 sum, a, b; add.u32 sum, sum, c; ret;
        }",
        "call (%r0), add3, (%r1, 10, %r1);",
        1,
        3,
    );
    assert_eq!(out, Ok(vec![10, 12, 14]));
}

#[test]
fn an_aggregate_is_passed_byte_for_byte() {
    let out = try_threads(
        ".func (.param .align 8 .b8 result[12]) rotate(.param .align 8 .b8 x[12]) {
            .reg .b32 %a<3>;
            ld.param.v2.b32 {%a0, %a1}, [x]; ld.param.b32 %a2, [x+8];
            st.param.v2.b32 [result], {%a1, %a2}; st.param.b32 [result+8], %a0;
            ret;
        }",
        "{ .param .align 8 .b8 p[12]; .param .align 8 .b8 q[12];
           st.param.v2.b32 [p], {1, 2}; st.param.b32 [p+8], 3;
           call (q), rotate, (p);
           ld.param.v2.b32 {%r2, %r3}, [q]; ld.param.b32 %r4, [q+8]; }
         mad.lo.u32 %r0, %r2, 10, %r3; mad.lo.u32 %r0, %r0, 10, %r4;",
        1,
        1,
    );
    assert_eq!(out, Ok(vec![231]));
}

#[test]
fn a_function_calls_itself_with_locals_of_its_own_in_every_call() {
    // fib(n) keeps n in local memory across the recursion.
    let out = try_threads(
        ".func (.param .b32 result) fib(.param .b32 n) {
            .local .b32 keep;
            .reg .b32 %a<6>; .reg .pred %p;
            ld.param.u32 %a0, [n];
            st.local.u32 [keep], %a0;
            setp.lt.u32 %p, %a0, 2;
            @%p st.param.b32 [result], %a0;
            @%p ret;
            sub.u32 %a1, %a0, 1;
            { .param .b32 p; .param .b32 q; st.param.b32 [p], %a1; call (q), fib, (p); ld.param.b32 %a2, [q]; }
            ld.local.u32 %a3, [keep];
            sub.u32 %a3, %a3, 2;
            { .param .b32 p; .param .b32 q; st.param.b32 [p], %a3; call (q), fib, (p); ld.param.b32 %a4, [q]; }
            add.u32 %a5, %a2, %a4;
            st.param.b32 [result], %a5;
            ret;
        }",
        "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), fib, (p); ld.param.b32 %r0, [q]; }",
        1,
        12,
    );
    assert_eq!(out, Ok(vec![0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]));
}

#[test]
fn lanes_call_different_functions_through_a_pointer() {
    let out = try_threads(
        SQUARE,
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p0, %r2, 0;
         mov.u64 %rd1, square; mov.u64 %rd2, twice; selp.b64 %rd3, %rd1, %rd2, %p0;
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
           proto: .callprototype (.param .b32 _) _ (.param .b32 _);
           call (q), %rd3, (p), proto; ld.param.b32 %r0, [q]; }",
        1,
        6,
    );
    assert_eq!(out, Ok(vec![0, 2, 4, 6, 16, 10]));
}

#[test]
fn a_table_of_function_addresses_in_memory_is_called_through() {
    let out = try_threads(
        &format!("{SQUARE} .global .align 8 .u64 table[2] = {{square, twice}};"),
        "and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 8;
         mov.u64 %rd1, table; add.u64 %rd1, %rd1, %rd2; ld.global.u64 %rd3, [%rd1];
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
           proto: .callprototype (.param .b32 _) _ (.param .b32 _);
           call (q), %rd3, (p), proto; ld.param.b32 %r0, [q]; }",
        1,
        6,
    );
    assert_eq!(out, Ok(vec![0, 2, 4, 6, 16, 10]));
}

#[test]
fn a_call_through_a_list_of_targets_reaches_them() {
    let out = try_threads(
        SQUARE,
        "mov.u64 %rd3, twice;
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
           list: .calltargets square, twice;
           call (q), %rd3, (p), list; ld.param.b32 %r0, [q]; }",
        1,
        3,
    );
    assert_eq!(out, Ok(vec![0, 2, 4]));
}

#[test]
fn a_call_of_what_is_no_function_faults() {
    let fault = try_threads(
        SQUARE,
        "mov.u64 %rd3, 4096;
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
           proto: .callprototype (.param .b32 _) _ (.param .b32 _);
           call (q), %rd3, (p), proto; ld.param.b32 %r0, [q]; }",
        1,
        1,
    )
    .unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidIndirectCall { target: 4096 });
}

#[test]
fn endless_recursion_is_a_stack_overflow() {
    let fault = try_threads(
        ".func down(.param .b32 n) {
            .reg .b32 %a;
            ld.param.u32 %a, [n];
            { .param .b32 p; st.param.b32 [p], %a; call down, (p); }
            ret;
        }",
        "{ .param .b32 p; st.param.b32 [p], %r1; call down, (p); }",
        1,
        1,
    )
    .unwrap_err();
    assert!(matches!(fault.kind, FaultKind::StackOverflow { .. }), "{fault}");
}

#[test]
fn a_barrier_inside_a_function_holds_lanes_of_different_calls() {
    let out = try_threads(
        ".shared .u32 count;
         .func meet() { .reg .b32 %a; atom.shared.add.u32 %a, [count], 1; bar.sync 0; ret; }",
        "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [count], 0; bar.sync 0;
         setp.lt.u32 %p0, %r1, 10; @%p0 bra FIRST;
         call meet; bra JOIN;
         FIRST: call meet;
         JOIN: ld.shared.u32 %r0, [count];",
        1,
        48,
    );
    assert_eq!(out, Ok(vec![48; 48]));
}

#[test]
fn an_alias_calls_the_function_it_stands_for() {
    let module = Module::of(&format!(
        "{SQUARE}
         .func (.param .b32 result) other(.param .b32 x);
         .alias other, square;
         .visible .entry test(.param .u64 out) {{
            .reg .b32 %r<2>; .reg .b64 %rd;
            {{ .param .b32 p; .param .b32 q; st.param.b32 [p], 12; call (q), other, (p); ld.param.b32 %r0, [q]; }}
            ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r0; ret;
         }}"
    ));
    let kernel = module.kernel("test");
    let mut out = [0u32];
    let params = Params::default().buffer(&mut out);
    run(&Launch { params: &params.0, ..Launch::new(&kernel, &module.heap) }).unwrap();
    assert_eq!(out, [144]);
}

#[test]
fn recursion_without_a_loop_runs_into_the_step_limit() {
    // Twice itself at every depth down to 40: no backward branch, and no end in sight.
    let fault = try_threads(
        ".func tree(.param .b32 n) {
            .reg .b32 %a; .reg .pred %p;
            ld.param.u32 %a, [n]; setp.eq.u32 %p, %a, 0; @%p ret; sub.u32 %a, %a, 1;
            { .param .b32 p; st.param.b32 [p], %a; call tree, (p); }
            { .param .b32 p; st.param.b32 [p], %a; call tree, (p); }
            ret;
        }",
        "{ .param .b32 p; st.param.b32 [p], 40; call tree, (p); }",
        1,
        1,
    )
    .unwrap_err();
    assert!(matches!(fault.kind, FaultKind::StepLimit { .. }), "{fault}");
}
