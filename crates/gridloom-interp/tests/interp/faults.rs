//! Faults: what ends a launch early, and how it is reported.

use crate::support::{HEADER, Map, Module, Params, fault, kernel_text, line_of, run, try_threads};
use gridloom_interp::{AccessKind, FaultKind, Launch, SourceLine, Space};
use std::sync::atomic::AtomicBool;

#[test]
fn a_trap_names_block_thread_and_line() {
    let body = "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r2, 1; setp.eq.and.u32 %p0, %r1, 37, %p0;
        @%p0 trap; // here";
    let fault = try_threads("", body, 3, 64).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap);
    assert_eq!((fault.block, fault.thread, fault.kernel.as_str()), ([1, 0, 0], [37, 0, 0], "test"));
    assert_eq!(fault.line, Some(line_of(&format!("\n{}", kernel_text(body)), "// here")));
}

#[test]
fn a_fault_names_the_source_line_where_the_module_knows_it() {
    let module = Module::of(
        ".visible .entry test() {
            .loc 1 12 5
            trap;
        }
        .file 1 \"kernels/heat.cu\"",
    );
    let kernel = module.kernel("test");
    let fault = run(&Launch::new(&kernel, &module.heap)).unwrap_err();
    assert_eq!(fault.source, Some(SourceLine { file: "kernels/heat.cu".into(), line: 12 }));
}

#[test]
fn a_breakpoint_is_a_fault() {
    assert_eq!(fault("brkpt;", 1).kind, FaultKind::Breakpoint);
}

#[test]
fn a_misaligned_access_faults() {
    let fault = fault("add.u64 %rd1, %rd15, 2; ld.global.u32 %r0, [%rd1];", 1);
    assert!(matches!(fault.kind, FaultKind::Misaligned { space: Space::Global, size: 4, .. }), "{fault}");
    let fault = crate::support::fault("ld.global.v2.u32 {%r0, %r2}, [%rd15+4];", 4);
    assert!(matches!(fault.kind, FaultKind::Misaligned { size: 8, .. }), "{fault}");
}

#[test]
fn a_null_pointer_faults_with_its_address() {
    let fault = fault("mov.u64 %rd1, 16; st.global.u32 [%rd1], %r1;", 1);
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress { access: AccessKind::Write, address: 16, space: Space::Global, size: 4 }
    );
}

#[test]
fn shared_and_local_accesses_past_the_end_fault_even_when_unchecked() {
    let before = ".shared .align 4 .b8 mem[16];";
    let fault = try_threads(before, "st.shared.u32 [mem+16], %r1;", 1, 1).unwrap_err();
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress { access: AccessKind::Write, address: 16, space: Space::Shared, size: 4 }
    );
    let fault = crate::support::fault(
        ".local .align 4 .b8 own[8]; mov.u64 %rd1, own; ld.local.u32 %r0, [%rd1+8];",
        1,
    );
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress { access: AccessKind::Read, address: 8, space: Space::Local, size: 4 }
    );
}

#[test]
fn a_checked_launch_refuses_memory_outside_every_allocation() {
    let module = Module::of(&kernel_text("mov.u32 %r0, 5;"));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 8];
    let params = Params::default().buffer(&mut out);
    // The allocation ends before the element of thread 6.
    let map = Map::default().with(&out[..6]);
    let launch = Launch {
        block: [8, 1, 1],
        params: &params.0,
        memory_map: Some(&map),
        ..Launch::new(&kernel, &module.heap)
    };
    let fault = run(&launch).unwrap_err();
    let address = out[6..].as_ptr().addr() as u64;
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress { access: AccessKind::Write, address, space: Space::Global, size: 4 }
    );
    assert_eq!(fault.thread, [6, 0, 0]);
    assert_eq!(out[..6], [5; 6]);
}

#[test]
fn a_checked_launch_runs_within_its_allocations() {
    let module = Module::of(&kernel_text("mov.u32 %r0, 5;"));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 8];
    let params = Params::default().buffer(&mut out);
    let map = Map::default().with(&out);
    let launch = Launch {
        block: [8, 1, 1],
        params: &params.0,
        memory_map: Some(&map),
        ..Launch::new(&kernel, &module.heap)
    };
    run(&launch).unwrap();
    assert_eq!(out, [5; 8]);
}

#[test]
fn an_endless_loop_runs_into_the_step_limit() {
    let module = Module::of(&kernel_text("LOOP: add.u32 %r2, %r2, 1; bra LOOP;"));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 1];
    let params = Params::default().buffer(&mut out);
    let launch = Launch { params: &params.0, step_limit: Some(10_000), ..Launch::new(&kernel, &module.heap) };
    let fault = run(&launch).unwrap_err();
    assert_eq!(fault.kind, FaultKind::StepLimit { limit: 10_000 });
}

#[test]
fn a_cancelled_launch_ends() {
    let module = Module::of(&kernel_text("LOOP: add.u32 %r2, %r2, 1; bra LOOP;"));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 1];
    let params = Params::default().buffer(&mut out);
    let cancel = AtomicBool::new(true);
    let [one, two, _] = Launch::uncancelled();
    let launch =
        Launch { params: &params.0, cancel: [one, two, &cancel], ..Launch::new(&kernel, &module.heap) };
    assert_eq!(run(&launch).unwrap_err().kind, FaultKind::Cancelled);
}

#[test]
fn parameters_cannot_be_written() {
    let fault = fault("mov.b64 %rd1, out; cvta.param.u64 %rd1, %rd1; st.u32 [%rd1], %r1;", 1);
    assert!(matches!(fault.kind, FaultKind::IllegalAddress { space: Space::Param, .. }), "{fault}");
}

#[test]
fn the_device_stays_usable_after_a_fault() {
    let module = Module::of(&kernel_text("setp.eq.u32 %p0, %r1, 40; @%p0 trap; mov.u32 %r0, 1;"));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 64];
    let params = Params::default().buffer(&mut out);
    let mut scratch = gridloom_interp::Scratch::new();
    for (threads, fails) in [(64, true), (40, false), (64, true), (8, false)] {
        let launch =
            Launch { block: [threads, 1, 1], params: &params.0, ..Launch::new(&kernel, &module.heap) };
        // SAFETY: the kernel writes `out`, which only this launch uses.
        assert_eq!(unsafe { launch.run_blocks(0..1, &mut scratch) }.is_err(), fails);
    }
    assert!(HEADER.starts_with(".version"));
}
