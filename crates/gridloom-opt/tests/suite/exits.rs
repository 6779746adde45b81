//! What a kernel does at its end, as a step of a program: threads return while others of their
//! block still synchronise, and caches and copies are finished.

use gridloom_opt::rewrite::{KernelSource, Prefix, ProgramStep, block_program, prefixed};
use gridloom_ptx::op::{ControlOp, MemoryOp, Op};

use crate::common::{buffer, devices, kernel, launch, launch_rewritten, read, source};

const LIMIT: u32 = 32_764;

/// Returns a module with a kernel `k` over the words `p`, whose body finds the thread's index in
/// `%i` and the address of its word in `%a`, and another kernel `add` that adds 1 to each word.
fn module(body: &str) -> String {
    let open = "ld.param.u64 %a, [p];\nmov.u32 %i, %tid.x;\nmul.wide.u32 %o, %i, 4;\nadd.u64 %a, %a, %o;\n";
    let registers =
        ".reg .pred %t<4>; .reg .b32 %i, %v, %w, %r<8>; .reg .b64 %a, %o, %d<4>;\n.shared .b32 tile[256];";
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 p) {{\n{registers}\n{open}{body}\n}}\n\
         .visible .entry add(.param .u64 p) {{\n{registers}\n{open}\
         ld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\nst.global.u32 [%a], %v;\nret;\n}}\n"
    )
}

/// Runs `k`, `add`, `k`, `add` as launches and, if it is allowed, as one program of 128 threads.
/// Returns whether it is allowed.
fn is_step(body: &str) -> bool {
    const THREADS: u32 = 128;
    let text = module(body);
    let step = |name| ProgramStep { kernel: source(&text, name), grid: [1; 3], block: [THREADS, 1, 1] };
    let steps = ["k", "add", "k", "add"].map(step);
    let program = block_program(&steps, None, LIMIT);
    for device in devices() {
        let words: Vec<u8> = (0..THREADS).flat_map(|i| (i * 7 + 3).to_le_bytes()).collect();
        let run = |program: bool| -> Result<Vec<u8>, String> {
            let data = buffer(&device, &words);
            let slice = data.address().to_le_bytes().to_vec();
            match block_program(&steps, None, LIMIT) {
                Ok(rewritten) if program => {
                    launch_rewritten(&device, &rewritten, 0, &vec![slice; 4])?;
                }
                _ => {
                    for name in ["k", "add", "k", "add"] {
                        let kernel = kernel(&device, &text, name)?;
                        launch(&device, &kernel, ([1; 3], [THREADS, 1, 1], 0), &slice)?;
                    }
                }
            }
            Ok(read(&device, &data))
        };
        let plain = run(false).expect("the launches by themselves");
        assert_eq!(run(true), Ok(plain), "{body}");
    }
    program.is_ok()
}

/// A reduction of the words of the threads below `%r0` through shared memory, with a barrier.
const MEET: &str = "shl.b32 %r1, %i, 2;\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r1;\n\
     ld.global.u32 %v, [%a];\nst.shared.u32 [%r2], %v;\nbar.sync 0;\n\
     xor.b32 %r1, %r1, 4;\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r1;\n\
     ld.shared.u32 %w, [%r2];\nadd.u32 %v, %v, %w;\nst.global.u32 [%a], %v;\n";

#[test]
fn threads_that_skip_a_barrier_and_end_leave_the_same() {
    for (name, body) in [
        (
            "the rest of the kernel is skipped",
            format!("setp.ge.u32 %t0, %i, 64;\n@%t0 bra $end;\n{MEET}$end:\nret;"),
        ),
        ("they return", format!("setp.ge.u32 %t0, %i, 64;\n@%t0 ret;\n{MEET}ret;")),
        (
            "they skip it under a guard",
            "setp.lt.u32 %t0, %i, 64;\n@%t0 bar.sync 0;\nst.global.u32 [%a], %i;\nret;".to_owned(),
        ),
        (
            "they store before they end",
            format!("setp.ge.u32 %t0, %i, 96;\n@%t0 bra $end;\n{MEET}$end:\nst.global.u32 [%a], %i;\nret;"),
        ),
        (
            "they pass fewer barriers",
            format!("setp.ge.u32 %t0, %i, 64;\n@%t0 bra $end;\nbar.sync 0;\n$end:\n{MEET}ret;"),
        ),
        (
            "they leave a loop earlier",
            "shr.u32 %r0, %i, 5;\n$again:\nbar.sync 0;\nsub.u32 %r0, %r0, 1;\n\
             setp.ge.s32 %t0, %r0, 0;\n@%t0 bra $again;\nst.global.u32 [%a], %i;\nret;"
                .to_owned(),
        ),
    ] {
        assert!(!is_step(&body), "{name}");
    }
}

#[test]
fn lanes_that_skip_a_warp_operation_and_end_leave_the_same() {
    let shuffle = "ld.global.u32 %v, [%a];\nshfl.sync.bfly.b32 %w, %v, 1, 31, 0xffffffff;\n\
         add.u32 %v, %v, %w;\nst.global.u32 [%a], %v;\n";
    let body = format!("setp.ge.u32 %t0, %i, 72;\n@%t0 bra $end;\n{shuffle}$end:\nret;");
    assert!(!is_step(&body));
    let body = "setp.lt.u32 %t0, %i, 72;\n@%t0 bar.warp.sync 0xffffffff;\nst.global.u32 [%a], %i;\nret;";
    assert!(!is_step(body));
    // Whole warps end, so no lane waits for one that does not come.
    let body = format!("setp.ge.u32 %t0, %i, 64;\n@%t0 bra $end;\n{shuffle}$end:\nret;");
    assert!(is_step(&body));
    let body = format!("shr.u32 %r0, %i, 5;\nsetp.ne.u32 %t0, %r0, 1;\n@%t0 ret;\n{shuffle}ret;");
    assert!(is_step(&body));
}

#[test]
fn kernels_whose_threads_meet_where_all_go_the_same_way_are_steps() {
    for (name, body) in [
        (
            "a reduction in a loop",
            "shl.b32 %r1, %i, 2;\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r1;\n\
             ld.global.u32 %v, [%a];\nst.shared.u32 [%r2], %v;\nmov.u32 %r3, 64;\n\
             $again:\nbar.sync 0;\nsetp.ge.u32 %t0, %i, %r3;\n@%t0 bra $skip;\n\
             shl.b32 %r4, %r3, 2;\nadd.u32 %r4, %r4, %r2;\nld.shared.u32 %w, [%r4];\nld.shared.u32 %v, [%r2];\n\
             add.u32 %v, %v, %w;\nst.shared.u32 [%r2], %v;\n$skip:\nshr.u32 %r3, %r3, 1;\n\
             setp.ne.u32 %t1, %r3, 0;\n@%t1 bra $again;\nbar.sync 0;\nld.shared.u32 %v, [tile];\n\
             st.global.u32 [%a], %v;\nret;"
                .to_owned(),
        ),
        (
            "blocks return as a whole",
            format!("mov.u32 %r0, %ctaid.x;\nsetp.ne.u32 %t0, %r0, 0;\n@%t0 ret;\n{MEET}ret;"),
        ),
        (
            "lanes skip a warp operation, but wait for the others",
            format!(
                "setp.ge.u32 %t0, %i, 16;\n@%t0 bra $all;\nbar.warp.sync 0xffff;\n$all:\n{MEET}ret;"
            ),
        ),
        ("threads return after the last barrier", format!("{MEET}setp.gt.u32 %t0, %i, 5;\n@%t0 ret;\nst.global.u32 [%a], %i;\nret;")),
    ] {
        assert!(is_step(&body), "{name}");
    }
}

#[test]
fn functions_in_which_threads_skip_a_barrier_are_no_steps() {
    let text = |guard: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
             .func meet() {{ .reg .pred %t; .reg .b32 %i; mov.u32 %i, %tid.x; setp.lt.u32 %t, %i, 64; \
             {guard} bar.sync 0; ret; }}\n\
             .visible .entry k(.param .u64 p) {{ call meet; ret; }}\n"
        )
    };
    let refused = |text: &str| {
        let kernel: KernelSource = source(text, "k");
        block_program(&[ProgramStep { kernel, grid: [1; 3], block: [128, 1, 1] }], None, LIMIT).is_err()
    };
    assert!(refused(&text("@%t")));
    assert!(!refused(&text("")));
}

#[test]
fn functions_read_through_the_coherent_caches_like_the_kernel_that_calls_them() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
         .func (.reg .b32 %r) get(.reg .b64 %a) { .reg .b32 %s; ld.global.nc.b32 %r, [%a]; \
         ldu.global.b32 %s, [%a]; add.u32 %r, %r, %s; ret; }\n\
         .visible .entry k(.param .u64 p) { .reg .b64 %a; .reg .b32 %r; ld.param.b64 %a, [p]; \
         call (%r), get, (%a); st.global.b32 [%a], %r; ret; }\n";
    let kernel = source(text, "k");
    let step = ProgramStep { kernel: kernel.clone(), grid: [1; 3], block: [32, 1, 1] };
    let program = block_program(&vec![step; 2], None, LIMIT).unwrap().text();
    let early = prefixed(&kernel, &Prefix { wait: true, ..Prefix::default() }).unwrap().to_string();
    for text in [program, early] {
        assert!(!text.contains(".nc") && !text.contains("ldu"), "{text}");
    }
}

#[test]
fn threads_that_return_early_wait_for_the_copies_that_they_started() {
    let text = module(
        "cvta.to.global.u64 %d0, %a;\nmov.u32 %r0, tile;\ncp.async.ca.shared.global [%r0], [%d0], 4;\n\
         setp.gt.u32 %t0, %i, 5;\n@%t0 ret;\nadd.u32 %v, %v, 1;\n@%t1 bra $out;\nadd.u32 %v, %v, 1;\n\
         $out:\nret;",
    );
    let step = ProgramStep { kernel: source(&text, "k"), grid: [1; 3], block: [32, 1, 1] };
    let rewritten = block_program(&[step], None, LIMIT).unwrap();
    let (_, entry) = rewritten.module.entry(&rewritten.name).unwrap();
    let body = entry.body.as_ref().unwrap();
    let wait = body
        .instructions
        .iter()
        .position(|instruction| matches!(instruction.op, Op::Memory(MemoryOp::CpAsyncWaitAll)))
        .expect("the threads wait");
    for instruction in &body.instructions[..wait] {
        if let Op::Control(ControlOp::Bra { target, .. }) = instruction.op {
            assert!(body.target(target) <= wait, "{}", rewritten.text());
        }
    }
}
