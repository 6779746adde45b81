//! Kernels and launches that stay as they are, and the reason that is given.

use gridloom_core::graph::EdgeKind;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::Operation;
use gridloom_core::{Executable, Graph};
use gridloom_opt::rewrite::{KernelSource, Role};
use gridloom_opt::{Optimization, Optimizations};

use crate::common::source;
use crate::graphs::{Kernels, only, optimized};

const ALL: [Role; 3] = [Role::Step, Role::Batched, Role::Prefixed];
const MOVED: [Role; 2] = [Role::Step, Role::Batched];
const STEP: [Role; 1] = [Role::Step];
const BATCH: [Role; 1] = [Role::Batched];

/// Returns the kernel `k` of a module with these declarations before it, and this in its body.
fn kernel(before: &str, directives: &str, body: &str) -> KernelSource {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{before}\n\
         .visible .entry k(.param .u64 p) {directives}\n{{\n\
         .reg .pred %t<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>;\n{body}\nret;\n}}\n"
    );
    source(&text, "k")
}

/// Checks that a kernel cannot take these roles for this reason, and can take the others.
fn check(roles: &[Role], reason: &str, kernel: &KernelSource) {
    for role in ALL {
        match (roles.contains(&role), kernel.obstacle(role)) {
            (true, Some(found)) => assert!(found.contains(reason), "{role:?}: {found} instead of {reason}"),
            (true, None) => panic!("no obstacle as {role:?}, but {reason}"),
            (false, Some(found)) => panic!("an obstacle as {role:?}: {found}"),
            (false, None) => {}
        }
    }
}

#[test]
fn an_instruction_that_cannot_be_moved_is_the_reason() {
    for (roles, reason, body) in [
        (&MOVED[..], "reads %gridid", "mov.u64 %d0, %gridid;"),
        (&MOVED, "reads %smid", "mov.u32 %r0, %smid;"),
        (&MOVED, "reads %nsmid", "mov.u32 %r0, %nsmid;"),
        (&MOVED, "reads %warpid", "mov.u32 %r0, %warpid;"),
        (&MOVED, "reads %clock", "mov.u32 %r0, %clock;"),
        (&MOVED, "reads %globaltimer", "mov.u64 %d0, %globaltimer;"),
        (&MOVED, "reads %dynamic_smem_size", "mov.u32 %r0, %dynamic_smem_size;"),
        (&MOVED, "reads %total_smem_size", "mov.u32 %r0, %total_smem_size;"),
        (&MOVED, "reads %cluster", "mov.u32 %r0, %cluster_ctarank;"),
        (&BATCH, "may stop the launch", "trap;"),
        (&MOVED, "may stop in a debugger", "brkpt;"),
        (&MOVED, "performance events", "pmevent 1;"),
        (&MOVED, "cluster", "barrier.cluster.arrive;\nbarrier.cluster.wait;"),
        (&MOVED, "cluster", "mapa.u64 %d0, %d1, %r0;"),
        (&MOVED, "cluster", "ld.shared::cluster.u32 %r0, [%d0];"),
        (&ALL, "griddepcontrol", "griddepcontrol.wait;"),
        (&ALL, "griddepcontrol", "griddepcontrol.launch_dependents;"),
        (&STEP, "without waiting", "barrier.arrive 1, 64;"),
        // The barrier between steps, and any barrier.
        (&STEP, "barriers are not known, or one is 15", "bar.sync 15, 64;"),
        (&STEP, "barriers are not known, or one is 15", "mov.u32 %r0, %ctaid.x;\nbar.sync %r0;"),
        (&MOVED, "by a fixed address", "ld.shared.u32 %r0, [16];"),
        (&MOVED, "by a fixed address", "atom.shared.add.u32 %r0, [16], %r1;"),
        (&STEP, "from the stack", "stacksave.u64 %d0;\nstackrestore.u64 %d0;"),
    ] {
        check(roles, reason, &kernel("", "", body));
    }
}

#[test]
fn a_declaration_that_cannot_be_moved_is_the_reason() {
    let called = ".func f() { ret; }";
    for (roles, reason, before, body) in [
        (&ALL[..], "v, a variable of its module", ".global .u32 v;", "ld.global.u32 %r0, [v];"),
        (&ALL, "c, a variable of its module", ".const .u32 c = 1;", "ld.const.u32 %r0, [c];"),
        (&ALL, "the address of the function f", called, "mov.u64 %d0, f;"),
        (
            &ALL,
            "elsewhere, which its module does not define",
            ".extern .func elsewhere();",
            "call elsewhere;",
        ),
        (
            &MOVED,
            "it prints",
            ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);",
            "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d0; call (r), vprintf, (a, b); }",
        ),
        (
            &BATCH,
            "may stop the launch",
            ".extern .func __assertfail(.param .b64 a);\n.global .align 1 .b8 text[2] = {65, 0};",
            "mov.u64 %d0, text; cvta.global.u64 %d1, %d0; { .param .b64 a; st.param.b64 [a], %d1; call __assertfail, (a); }",
        ),
        // A text that is also read, and one that goes to another function.
        (
            &ALL,
            "text, a variable of its module",
            ".extern .func __assertfail(.param .b64 a);\n.global .align 1 .b8 text[2] = {65, 0};",
            "mov.u64 %d0, text; ld.global.b8 %r0, [%d0]; { .param .b64 a; st.param.b64 [a], %d0; call __assertfail, (a); }",
        ),
        (
            &ALL,
            "text, a variable of its module",
            ".global .align 1 .b8 text[2] = {65, 0};\n.func g(.param .b64 a) { ret; }",
            "mov.u64 %d0, text; { .param .b64 a; st.param.b64 [a], %d0; call g, (a); }",
        ),
        (
            &MOVED,
            "the device's heap",
            ".extern .func (.param .b64 r) malloc(.param .b64 a);",
            "{ .param .b64 a; .param .b64 r; st.param.b64 [a], %d0; call (r), malloc, (a); }",
        ),
        (&STEP, "ends threads", ".func g() { exit; }", "call g;"),
        (&MOVED, "calls itself", ".func g();\n.func g() { call g; ret; }", "call g;"),
        (
            &MOVED,
            "calls itself",
            ".func h();\n.func g() { call h; ret; }\n.func h() { call g; ret; }",
            "call g;",
        ),
        (
            &BATCH,
            "reads the index of the block",
            ".func g() { .reg .b32 %r; mov.u32 %r, %ctaid.x; ret; }",
            "call g;",
        ),
        (
            &MOVED,
            "has shared memory",
            ".func g() { .shared .b32 s; .reg .b32 %r; ld.shared.b32 %r, [s]; ret; }",
            "call g;",
        ),
        (
            &MOVED,
            "uses shared memory of the module",
            ".shared .b32 s;\n.func g() { .reg .b32 %r; ld.shared.b32 %r, [s]; ret; }",
            "call g;",
        ),
    ] {
        check(roles, reason, &kernel(before, "", body));
    }
    check(&ALL, "clusters of its own", &kernel("", ".reqnctapercluster 2, 1, 1", ""));
    check(&ALL, "clusters of its own", &kernel("", ".maxclusterrank 4", ""));
}

#[test]
fn a_kernel_that_is_too_long_is_not_moved() {
    let body = "add.u32 %r0, %r0, 1;\n".repeat(20_000);
    check(&MOVED, "instructions, more than", &kernel("", "", &body));
}

#[test]
fn threads_that_return_while_others_meet_are_no_steps() {
    let body = "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %t0, %r0, 3;\n@%t0 ret;\nbar.sync 0;";
    check(&STEP, "may return while others", &kernel("", "", body));
    // All threads meet after the branch.
    let body = "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %t0, %r0, 3;\n@%t0 bra $A;\nadd.u32 %r0, %r0, 1;\n$A:\nbar.sync 0;";
    check(&[], "", &kernel("", "", body));
}

#[test]
fn kernels_that_read_through_textures_do_not_start_early() {
    let texture = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0}];";
    assert!(!kernel("", "", texture).can_start_early());
    assert!(kernel("", "", "ld.global.nc.u32 %r0, [%d0];").can_start_early());
}

/// Returns the reasons that an executable gives.
fn reasons(executable: &Executable) -> Vec<String> {
    executable.report().not_optimized.into_iter().map(|(_, reason)| reason).collect()
}

#[test]
fn a_launch_that_is_more_than_its_grid_stays_and_the_report_says_why() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let config = LaunchConfig::new(1u32, 32u32);
        let args = || vec![crate::graphs::pointer(&x), crate::graphs::value(1)];
        for (config, reason) in [(config.cooperative(), "cooperative"), (config.priority(0), "priority")] {
            let graph = Graph::new(&kernels.device);
            let Ok(first) = graph.add(&[], kernels.launch("mix", config, args())) else { continue };
            first.add(kernels.mix(&x, 1, 1, 32)).unwrap();
            let executable = optimized(&graph, Optimizations::ALL);
            assert!(
                reasons(&executable).iter().any(|found| found.contains(reason)),
                "{:?}",
                executable.report()
            );
        }
    }
}

#[test]
fn blocks_of_other_shapes_and_kernels_of_many_blocks_are_named() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let graph = Graph::new(&kernels.device);
        graph.add(&[], kernels.mix(&x, 1, 2, 32)).unwrap().add(kernels.mix(&x, 1, 1, 16)).unwrap();
        let executable = optimized(&graph, only(Optimization::Chains));
        assert!(reasons(&executable)[0].contains("it has 2 blocks"), "{:?}", executable.report());
        let big = kernels.words(&[1; 1200]);
        let graph = Graph::new(&kernels.device);
        graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        graph.add(&[], kernels.mix(&big, 1, 600, 2)).unwrap();
        let executable = optimized(&graph, only(Optimization::Batches));
        let found = reasons(&executable);
        assert!(found.iter().any(|reason| reason.contains("600 blocks, more than 512")), "{found:?}");
    }
}

#[test]
fn programmatic_edges_of_the_user_stay() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let second = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        if graph.add_edge(&first, &second, EdgeKind::Programmatic).is_err() {
            continue;
        }
        let executable = optimized(&graph, only(Optimization::Chains));
        let run = executable.optimized_graph().unwrap().unwrap();
        let kernels_run =
            run.nodes().iter().filter(|node| matches!(node.operation(), Ok(Operation::Kernel(_)))).count();
        assert_eq!(kernels_run, 2);
    }
}
