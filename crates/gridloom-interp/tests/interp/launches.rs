//! Launches: many blocks, cooperative ones, and memory used again.

use crate::support::{Module, Params, kernel_text, run_cooperative, try_threads};
use gridloom_interp::{FaultKind, Launch, Scratch};

/// A barrier of the whole grid: every block arrives once and spins until all have.
const GRID_BARRIER: &str = "
    bar.sync 0;
    setp.ne.u32 %p0, %r1, 0; @%p0 bra PASSED;
    atom.global.add.u32 %r2, [arrived], 1;
    SPIN: ld.volatile.global.u32 %r3, [arrived]; mov.u32 %r4, %nctaid.x; setp.lt.u32 %p1, %r3, %r4; @%p1 bra SPIN;
    PASSED: bar.sync 0;
    ld.volatile.global.u32 %r0, [arrived];";

#[test]
fn blocks_of_a_cooperative_launch_wait_for_each_other() {
    let module = Module::of(&format!(".global .u32 arrived;\n{}", kernel_text(GRID_BARRIER)));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 9 * 40];
    let params = Params::default().buffer(&mut out);
    let launch = Launch {
        grid: [9, 1, 1],
        block: [40, 1, 1],
        params: &params.0,
        ..Launch::new(&kernel, &module.heap)
    };
    run_cooperative(&launch).unwrap();
    assert_eq!(out, vec![9; 9 * 40]);
}

#[test]
fn a_cooperative_launch_may_be_shared_by_workers() {
    let module = Module::of(&format!(".global .u32 arrived;\n{}", kernel_text(GRID_BARRIER)));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 6 * 32];
    let params = Params::default().buffer(&mut out);
    let launch = Launch {
        grid: [6, 1, 1],
        block: [32, 1, 1],
        params: &params.0,
        ..Launch::new(&kernel, &module.heap)
    };
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let launch = &launch;
            scope.spawn(move || {
                // SAFETY: the kernel writes `out` and its own variable, which only this launch
                // uses.
                unsafe { launch.run_cooperative(worker * 3..(worker + 1) * 3, &mut Scratch::new()) }.unwrap();
            });
        }
    });
    assert_eq!(out, vec![6; 6 * 32]);
}

#[test]
fn blocks_run_one_after_the_other_cannot_wait_for_a_later_one() {
    let fault = try_threads(".global .u32 arrived;", GRID_BARRIER, 2, 32).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::StepLimit { .. }), "{fault}");
}

#[test]
fn a_fault_of_one_block_ends_a_cooperative_launch() {
    let module = Module::of(&kernel_text(
        "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r2, 3; @%p0 trap; SPIN: add.u32 %r3, %r3, 1; bra SPIN;",
    ));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 8];
    let params = Params::default().buffer(&mut out);
    let launch = Launch { grid: [8, 1, 1], params: &params.0, ..Launch::new(&kernel, &module.heap) };
    let fault = run_cooperative(&launch).unwrap_err();
    assert_eq!((fault.kind, fault.block), (FaultKind::Trap, [3, 0, 0]));
}

#[test]
fn a_block_does_not_see_what_the_block_before_left() {
    let out = try_threads(
        ".shared .u32 word;",
        "bar.sync 0; ld.shared.u32 %r0, [word]; bar.sync 0; st.shared.u32 [word], 77; add.u32 %r0, %r0, %r9; mov.u32 %r9, 1;",
        4,
        32,
    );
    assert_eq!(out, Ok(vec![0; 128]));
}

#[test]
fn an_empty_range_runs_nothing() {
    let module = Module::of(".visible .entry test() { trap; }");
    let kernel = module.kernel("test");
    // SAFETY: nothing runs.
    unsafe { Launch::new(&kernel, &module.heap).run_blocks(1..1, &mut Scratch::new()) }.unwrap();
}

#[test]
fn a_launch_that_the_kernel_cannot_run_with_is_refused() {
    let module = Module::of(&kernel_text("mov.u32 %r0, 1;"));
    let kernel = module.kernel("test");
    let mut out = [0u32];
    let params = Params::default().buffer(&mut out);
    let good = Launch { params: &params.0, ..Launch::new(&kernel, &module.heap) };
    for (launch, words) in [
        (Launch { block: [33, 32, 1], ..good }, "a block of 1056 threads"),
        (Launch { block: [u32::MAX; 3], ..good }, "threads"),
        (Launch { block: [0, 1, 1], ..good }, "a block of 0 threads"),
        (Launch { params: &params.0[..4], ..good }, "4 bytes of parameters; the kernel needs 8"),
    ] {
        let fault = run_cooperative(&launch).unwrap_err();
        let FaultKind::InvalidLaunch { reason } = &fault.kind else { panic!("{fault}") };
        assert!(reason.contains(words), "{reason}");
    }
}
