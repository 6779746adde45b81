//! A fault inside a rewritten kernel names the node, the kernel and the place that the user wrote.

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, KernelArgs, KernelOp, Launch, Operation, Test};
use gridloom_core::{Error, Executable, Graph, Node, Stream};
use gridloom_cpu::{CpuDevice, CpuOptions, Engine};
use gridloom_opt::{Optimizations, Profile};

use crate::common::{buffer, kernel};
use crate::graphs::{GPU, PACKED_GPU, WIDE_GPU, optimized_for, pointer, value};

/// Kernels that write one word per thread. One thread of one block writes 32 GiB behind the end,
/// where no other memory of the device is. The last kernel waits in one block for threads that it
/// does not have.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.func fault(.param .b64 at) {
    .reg .b64 %d<1>; .reg .b32 %r<1>;
    ld.param.u64 %d0, [at];
    mov.u32 %r0, 7;
    st.global.u32 [%d0], %r0;
    ret;
}
.visible .entry direct(.param .u64 data, .param .u32 bad_block, .param .u32 bad_thread) {
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [bad_block]; ld.param.u32 %r1, [bad_thread];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x;
    mad.lo.u32 %r5, %r3, %r4, %r2;
    mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y; mov.u32 %r8, %ntid.x;
    mad.lo.u32 %r9, %r7, %r8, %r6;
    mad.lo.u32 %r10, %r5, 32, %r9;
    mul.wide.u32 %d1, %r10, 4; add.u64 %d2, %d0, %d1;
    setp.eq.u32 %p0, %r5, %r0; setp.eq.u32 %p1, %r9, %r1; and.pred %p2, %p0, %p1;
    @%p2 add.u64 %d2, %d2, 34359738368;
    st.global.u32 [%d2], %r9;
    ret;
}
.visible .entry called(.param .u64 data, .param .u32 bad_block, .param .u32 bad_thread) {
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u32 %r0, [bad_block]; ld.param.u32 %r1, [bad_thread];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x;
    mad.lo.u32 %r5, %r3, %r4, %r2;
    mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y; mov.u32 %r8, %ntid.x;
    mad.lo.u32 %r9, %r7, %r8, %r6;
    setp.ne.u32 %p0, %r5, %r0; setp.ne.u32 %p1, %r9, %r1; or.pred %p2, %p0, %p1;
    @%p2 ret;
    ld.param.u64 %d0, [data];
    add.u64 %d1, %d0, 34359738368;
    { .param .b64 at; st.param.b64 [at], %d1; call fault, (at); }
    ret;
}
.visible .entry stuck(.param .u64 data, .param .u32 bad_block, .param .u32 bad_thread) {
    .reg .pred %p<1>; .reg .b32 %r<2>;
    ld.param.u32 %r0, [bad_block]; mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p0, %r1, %r0;
    @%p0 ret;
    barrier.sync 1, 64;
    ret;
}
";

/// Kernels of which one thread fails an assertion or traps, with a barrier after that.
const STOPPING: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 message[8] = {110, 111, 32, 114, 111, 111, 109, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.func fails() {
    .reg .b64 %d<2>;
    mov.u64 %d0, message; cvta.global.u64 %d0, %d0;
    mov.u64 %d1, file; cvta.global.u64 %d1, %d1;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    st.param.b64 [a], %d0; st.param.b64 [b], %d1; st.param.b32 [c], 77; st.param.b64 [d], %d1; st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e); }
    trap;
    ret;
}
.visible .entry asserts(.param .u64 data, .param .u32 bad_block, .param .u32 bad_thread) {
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [bad_block]; ld.param.u32 %r1, [bad_thread];
    mov.u32 %r2, %ctaid.x; mov.u32 %r6, %tid.x;
    setp.eq.u32 %p0, %r2, %r0; setp.eq.u32 %p1, %r6, %r1; and.pred %p2, %p0, %p1;
    @%p2 bra $BAD;
    bar.sync 0;
    mad.lo.u32 %r10, %r2, 32, %r6; mul.wide.u32 %d1, %r10, 4; add.u64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r6;
    ret;
$BAD:
    call fails;
    bra.uni $STOP;
$STOP:
    trap;
    ret;
}
.visible .entry traps(.param .u64 data, .param .u32 bad_block, .param .u32 bad_thread) {
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [bad_block]; ld.param.u32 %r1, [bad_thread];
    mov.u32 %r2, %ctaid.x; mov.u32 %r6, %tid.x;
    setp.eq.u32 %p0, %r2, %r0; setp.eq.u32 %p1, %r6, %r1; and.pred %p2, %p0, %p1;
    @%p2 trap;
    bar.sync 0;
    mad.lo.u32 %r10, %r2, 32, %r6; mul.wide.u32 %d1, %r10, 4; add.u64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r6;
    ret;
}
";

const NOBODY: u32 = u32::MAX;

struct Faulty {
    device: Arc<dyn Device>,
    data: Vec<Arc<dyn Allocation>>,
}

impl Faulty {
    fn all() -> Vec<Self> {
        let device = |engine| -> Arc<dyn Device> {
            CpuDevice::new(CpuOptions::new().engine(engine).threads(2).checked(true)).unwrap()
        };
        [Engine::Interpreter, Engine::Jit]
            .map(device)
            .into_iter()
            .map(|device| Faulty {
                data: (0..8).map(|_| buffer(&device, &[0; 4 * 32 * 6])).collect(),
                device,
            })
            .collect()
    }

    fn launch(&self, name: &str, data: usize, shape: (Dim3, Dim3), bad: (u32, u32)) -> Operation {
        let text = if STOPPING.contains(&format!(".entry {name}(")) { STOPPING } else { TEXT };
        let kernel = kernel(&self.device, text, name).unwrap();
        let args = vec![pointer(&self.data[data]), value(bad.0), value(bad.1)];
        let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
        let config = LaunchConfig::new(shape.0, shape.1);
        // SAFETY: the device checks every access.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
    }

    fn error(&self, executable: &Executable) -> Error {
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).and_then(|()| stream.synchronize()).expect_err("a fault")
    }

    /// Checks that a graph, optimised, says what it says as it was written.
    fn check(&self, graph: &Graph, profiles: &[Profile], node: &Node, wanted: &str) {
        let expected = self.error(&graph.instantiate().unwrap());
        assert_eq!(expected.node(), Some(&*node.label()));
        for &profile in profiles {
            let executable = optimized_for(profile, graph, Optimizations::ALL);
            let report = executable.report();
            assert!(report.optimized.iter().any(|line| line.contains(wanted)), "{report:#?}");
            // In a called function, the line is that of the call.
            let expected = expected.to_string();
            let expected = match expected.contains("assertion") {
                true => expected.replace("PTX line 14:", "PTX line 29:"),
                false => expected.replace("PTX line 9:", "PTX line 37:"),
            };
            assert_eq!(self.error(&executable).to_string(), expected, "{report:#?}");
        }
    }
}

fn line(blocks: u32, threads: u32) -> (Dim3, Dim3) {
    (Dim3::from(blocks), Dim3::from(threads))
}

#[test]
fn a_fault_in_a_batch_names_the_launch_block_and_thread() {
    for faulty in Faulty::all() {
        for name in ["direct", "called", "stuck"] {
            for shapes in [[line(3, 32); 4], [line(1, 32), line(2, 32), line(4, 32), line(3, 32)]] {
                let graph = Graph::new(&faulty.device);
                let mut nodes = Vec::new();
                for (at, &shape) in shapes.iter().enumerate() {
                    let bad = if at == 2 { (2, 5) } else { (NOBODY, NOBODY) };
                    nodes.push(graph.add(&[], faulty.launch(name, at, shape, bad)).unwrap());
                }
                faulty.check(&graph, &[GPU], &nodes[2], "batches:");
            }
        }
    }
}

#[test]
fn a_fault_in_a_step_names_the_step() {
    for faulty in Faulty::all() {
        let ok = (NOBODY, NOBODY);
        for names in [["direct", "called"].repeat(3), ["direct"; 6].to_vec(), ["called"; 6].to_vec()] {
            for bad in [0, 3, 5] {
                for (profiles, blocks) in [(&[GPU][..], 1), (&[PACKED_GPU], 3)] {
                    // Kernels that call functions do not share a block.
                    if blocks > 1 && names.contains(&"called") {
                        continue;
                    }
                    let graph = Graph::new(&faulty.device);
                    let mut last = graph.add(&[], Operation::Empty).unwrap();
                    let mut failing = last.clone();
                    for (at, name) in names.iter().enumerate() {
                        let bad_at = if at == bad { (blocks - 1, 7) } else { ok };
                        last = last.add(faulty.launch(name, 0, line(blocks, 32), bad_at)).unwrap();
                        if at == bad {
                            last.set_name("the failing one").unwrap();
                            failing = last.clone();
                        }
                    }
                    faulty.check(&graph, profiles, &failing, "chains:");
                }
            }
        }
    }
}

#[test]
fn a_fault_in_a_loop_or_a_branch_names_the_node_of_its_body() {
    for faulty in Faulty::all() {
        for (form, test, wanted) in [
            (ConditionalForm::While, Test::Count(3), "loops:"),
            (
                ConditionalForm::If,
                Test::Value(Region { bytes: 4, ..Region::whole(faulty.data[1].clone()) }),
                "branches:",
            ),
        ] {
            for blocks in [1, 2] {
                for name in ["direct", "called"] {
                    // The first word of this memory decides the branch.
                    faulty.device.write(&*faulty.data[1], 0, &1u32.to_le_bytes()).unwrap();
                    let graph = Graph::new(&faulty.device);
                    let shape = line(blocks, 32);
                    let spec = ConditionalSpec {
                        form,
                        test: test.clone(),
                        test_first: true,
                        max_passes: None,
                        bodies: 1,
                    };
                    let node = graph.add_conditional(&[], spec).unwrap();
                    let body = node.bodies().unwrap().remove(0);
                    let first = body.add(&[], faulty.launch(name, 0, shape, (NOBODY, NOBODY))).unwrap();
                    let failing = first.add(faulty.launch(name, 0, shape, (blocks - 1, 9))).unwrap();
                    faulty.check(
                        &graph,
                        &[GPU, PACKED_GPU, Profile { names_faults: true, ..WIDE_GPU }],
                        &failing,
                        wanted,
                    );
                }
            }
        }
    }
}

#[test]
fn an_assertion_or_a_trap_in_a_step_names_the_node_and_says_what_it_says_alone() {
    for faulty in Faulty::all() {
        for names in [
            ["asserts"; 4],
            ["asserts", "direct", "traps", "asserts"],
            ["traps", "called", "traps", "direct"],
        ] {
            for bad in [0, 2] {
                // Steps of one block, of blocks that wait for each other, and of each thread by
                // itself.
                for (profile, blocks) in [(GPU, 1), (Profile { names_faults: true, ..WIDE_GPU }, 2), (GPU, 2)]
                {
                    let graph = Graph::new(&faulty.device);
                    let mut last = graph.add(&[], Operation::Empty).unwrap();
                    let mut failing = last.clone();
                    for (at, name) in names.iter().enumerate() {
                        let bad_at = if at == bad { (blocks - 1, 7) } else { (NOBODY, NOBODY) };
                        last = last.add(faulty.launch(name, 0, line(blocks, 32), bad_at)).unwrap();
                        if at == bad {
                            failing = last.clone();
                        }
                    }
                    if blocks > 1 && names.contains(&"called") {
                        continue;
                    }
                    faulty.check(&graph, &[profile], &failing, "chains:");
                }
            }
        }
    }
}
