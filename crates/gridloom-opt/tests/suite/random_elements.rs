//! Random kernels over elements, in chains: which of them share elements decides what may be
//! combined, and each result depends on the order.

use std::fmt::Write;
use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device, Kernel};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ArgValue, ConditionalForm, KernelArgs, KernelOp, Launch, Operation, PointerValue, Test,
};
use gridloom_core::{Executable, Graph, Node, Stream};
use gridloom_opt::{Optimization, Optimizations};

use crate::automatic::automatic;
use crate::common::{buffer, devices, read};
use crate::graphs::{GPU, PACKED_GPU, WIDE_GPU, only, optimized_for, value};
use crate::random::{Random, count};

/// The kernels of a module, and the graphs of each.
const KERNELS: u64 = 12;
const GRAPHS: u64 = 12;
/// The words of each allocation, the most threads of a launch, and the words after the start of a
/// pointer that a kernel may read.
const WORDS: u32 = 1200;
const MAX_THREADS: u32 = 320;

/// What a kernel reads from its source for each thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reads {
    /// The element that it writes, from the destination.
    Own,
    Element,
    Next,
    First,
    Reversed,
    Indirect,
    Twice,
    /// A number of elements, one after the other, in a loop.
    Sum {
        step: i32,
        test: &'static str,
    },
    Pair,
}

/// Returns a module of random kernels, and whether each reads another allocation than it writes.
fn module(random: &mut Random) -> (String, Vec<bool>) {
    let mut text = ".version 7.0\n.target sm_70\n.address_size 64\n".to_owned();
    let mut reads_other = Vec::new();
    for number in 0..KERNELS {
        let reads = match random.below(11) {
            0 | 1 => Reads::Own,
            2 | 3 => Reads::Element,
            4 => Reads::Next,
            5 => Reads::First,
            6 => Reads::Reversed,
            7 => Reads::Indirect,
            8 => Reads::Twice,
            9 => Reads::Pair,
            _ => match random.below(4) {
                0 => Reads::Sum { step: 1, test: "setp.lt.s32 %p, %j, %c" },
                1 => Reads::Sum { step: 3, test: "setp.lt.u32 %p, %j, %c" },
                2 => Reads::Sum { step: -2, test: "setp.gt.s32 %p, %j, -7" },
                _ => Reads::Sum { step: 1, test: "setp.ne.s32 %p, %j, %c" },
            },
        };
        reads_other.push(reads != Reads::Own);
        write_kernel(&mut text, number, reads, random);
    }
    (text, reads_other)
}

fn write_kernel(text: &mut String, number: u64, reads: Reads, random: &mut Random) {
    let _ = writeln!(
        text,
        ".visible .entry k{number}(.param .u64 dst, .param .u64 src, .param .u32 n, .param .u32 by) {{
         .reg .pred %p, %q; .reg .b32 %w, %t, %b, %s, %n, %by, %v, %u, %x, %j, %c, %sum;
         .reg .b64 %d, %f, %o, %a, %e;
         .shared .b32 tile[64];
         ld.param.u64 %d, [dst]; ld.param.u64 %f, [src]; ld.param.u32 %n, [n]; ld.param.u32 %by, [by];
         mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mad.lo.s32 %w, %b, %s, %t;"
    );
    if random.one_in(2) {
        text.push_str("cvta.to.global.u64 %d, %d; cvta.to.global.u64 %f, %f;\n");
    }
    // Only some threads do anything. Those that meet others all stay.
    let meets = random.one_in(5);
    if !meets {
        match random.below(4) {
            0 => text.push_str("setp.ge.u32 %p, %w, %n; @%p ret;\n"),
            1 => text.push_str("setp.ge.u32 %p, %w, %n; @%p bra $end;\n"),
            2 => text.push_str("and.b32 %x, %w, 3; setp.eq.u32 %p, %x, 1; @%p exit;\n"),
            _ => {}
        }
    }
    // Where it writes: one element for each thread.
    let to = random.below(6);
    let place = match to {
        0 => "mul.wide.u32 %o, %w, 4; add.s64 %a, %d, %o;".to_owned(),
        1 => format!("add.s32 %x, %w, {}; mul.wide.s32 %o, %x, 4; add.s64 %a, %d, %o;", random.below(4)),
        2 => "shl.b32 %x, %w, 1; mul.wide.u32 %o, %x, 4; add.s64 %a, %d, %o;".to_owned(),
        3 => "shl.b32 %x, %w, 1; or.b32 %x, %x, 1; mul.wide.u32 %o, %x, 4; add.s64 %a, %d, %o;".to_owned(),
        4 => "cvt.u64.u32 %o, %w; shl.b64 %o, %o, 3; add.s64 %a, %o, %d; add.s64 %a, %a, 4;".to_owned(),
        _ => "mul.lo.s32 %x, %w, 12; cvt.s64.s32 %o, %x; add.s64 %a, %d, %o; sub.s64 %a, %a, 0;".to_owned(),
    };
    let _ = writeln!(text, "{place}");
    match reads {
        Reads::Own => text.push_str("ld.global.u32 %v, [%a];\n"),
        Reads::Element => {
            text.push_str("mul.wide.u32 %o, %w, 4; add.s64 %e, %f, %o; ld.global.nc.u32 %v, [%e];\n");
        }
        Reads::Next => {
            text.push_str("mul.wide.u32 %o, %w, 4; add.s64 %e, %f, %o; ld.global.u32 %v, [%e+4];\n")
        }
        Reads::First => text.push_str("ld.global.u32 %v, [%f];\n"),
        Reads::Reversed => text.push_str(
            "sub.s32 %x, 320, %w; mul.wide.s32 %o, %x, 4; add.s64 %e, %f, %o; ld.global.u32 %v, [%e];\n",
        ),
        Reads::Indirect => text.push_str(
            "mul.wide.u32 %o, %w, 4; add.s64 %e, %f, %o; ld.global.u32 %x, [%e]; rem.u32 %x, %x, 320;
             mul.wide.u32 %o, %x, 4; add.s64 %e, %f, %o; ld.volatile.global.u32 %v, [%e];\n",
        ),
        Reads::Twice => {
            text.push_str("mul.wide.u32 %o, %w, 8; add.s64 %e, %f, %o; ld.global.u32 %v, [%e];\n")
        }
        Reads::Pair => text.push_str(
            "mul.wide.u32 %o, %w, 8; add.s64 %e, %f, %o; and.b64 %e, %e, -8; ld.global.v2.u32 {%v, %u}, [%e];
             mad.lo.u32 %v, %v, 3, %u;\n",
        ),
        Reads::Sum { step, test } => {
            // Starts and ends differ from thread to thread.
            let (first, last) = match step {
                -2 => ("and.b32 %j, %w, 63;", "mov.u32 %c, 0;"),
                _ => ("and.b32 %j, %w, 7;", "rem.u32 %c, %n, 61; add.u32 %c, %c, %j; add.u32 %c, %c, 1;"),
            };
            let _ = writeln!(
                text,
                "{first} {last} mov.u32 %v, 7;
                 $again: and.b32 %x, %j, 255; mul.wide.u32 %o, %x, 4; add.s64 %e, %f, %o;
                 ld.global.u32 %u, [%e]; mad.lo.u32 %v, %v, 13, %u; add.s32 %j, %j, {step}; {test};
                 @%p bra $again;"
            );
        }
    }
    if meets {
        // Words go around within a warp and within the block.
        match random.below(3) {
            0 => text.push_str("shfl.sync.bfly.b32 %v, %v, 5, 31, -1;\n"),
            1 => text.push_str(
                "shl.b32 %x, %t, 2; mov.u32 %u, tile; add.u32 %u, %u, %x; st.shared.u32 [%u], %v; bar.sync 0;
                 xor.b32 %x, %x, 4; mov.u32 %u, tile; add.u32 %u, %u, %x; ld.shared.u32 %v, [%u];\n",
            ),
            _ => text
                .push_str("setp.lt.u32 %q, %v, 1000; vote.sync.ballot.b32 %u, %q, -1; xor.b32 %v, %v, %u;\n"),
        }
    }
    text.push_str("mad.lo.u32 %v, %v, 31, %by;\n");
    match random.below(4) {
        0 => text.push_str("and.b32 %x, %v, 2; setp.ne.u32 %q, %x, 0; @%q st.global.u32 [%a], %v;\n"),
        1 => text.push_str("red.global.xor.b32 [%a], %v;\n"),
        2 => text.push_str("mov.u32 %x, %nctaid.x; add.u32 %v, %v, %x; st.global.u32 [%a], %v;\n"),
        _ => text.push_str("st.global.u32 [%a], %v;\n"),
    }
    text.push_str("$end: ret;\n}\n");
}

/// The kernels and memory of a module on one device.
struct Stage {
    device: Arc<dyn Device>,
    kernels: Vec<Arc<dyn Kernel>>,
    reads_other: Vec<bool>,
    data: Vec<Arc<dyn Allocation>>,
}

impl Stage {
    fn new(device: Arc<dyn Device>, text: &str, reads_other: &[bool]) -> Self {
        let module = device.load_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let kernel = |number| module.clone().kernel(&format!("k{number}")).unwrap();
        let data = (0..3).map(|_| buffer(&device, &[0; 4 * WORDS as usize])).collect();
        Stage { kernels: (0..KERNELS).map(kernel).collect(), reads_other: reads_other.to_vec(), data, device }
    }

    fn pointer(&self, data: usize, random: &mut Random) -> ArgValue {
        let memory = &self.data[data];
        let offset = 8 * [0, 0, 0, 1, 3][random.below(5) as usize];
        let bytes = memory.bytes() - offset;
        ArgValue::Pointer(PointerValue::Region(Region { offset, bytes, ..Region::whole(memory.clone()) }))
    }

    /// Returns a launch of a random kernel with random arguments.
    fn launch(&self, random: &mut Random) -> Operation {
        let number = random.below(KERNELS) as usize;
        let to = random.below(3);
        let from = if self.reads_other[number] { (to + 1 + random.below(2)) % 3 } else { to };
        let threads = [64, 64, 64, 32][random.below(4) as usize];
        let config = LaunchConfig::new(1 + random.below(5) as u32, threads);
        assert!(config.grid.x * config.block.x <= MAX_THREADS);
        let args = vec![
            self.pointer(to as usize, random),
            self.pointer(from as usize, random),
            value(random.below(330) as u32),
            value(random.below(1000) as u32),
        ];
        let kernel = &self.kernels[number];
        let args = KernelArgs::pack(kernel.name(), kernel.params(), args).unwrap();
        // SAFETY: the kernels stay inside the memory, for these numbers of threads.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel.clone(), config, args) }))
    }

    fn run(&self, executable: &Executable) -> Vec<Vec<u8>> {
        for (at, memory) in self.data.iter().enumerate() {
            let words = (0..WORDS).flat_map(|word| (word * 2_654_435 + at as u32 * 77).to_le_bytes());
            self.device.write(&**memory, 0, &words.collect::<Vec<u8>>()).unwrap();
        }
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        self.data.iter().map(|memory| read(&self.device, memory)).collect()
    }

    /// Returns a graph of a few launches in a row, some of them in a loop or a branch.
    fn graph(&self, random: &mut Random) -> (Graph, Vec<Node>) {
        let graph = Graph::new(&self.device);
        let (mut nodes, mut last) = (Vec::new(), None::<Node>);
        for _ in 0..2 + random.below(6) {
            let after: Vec<&Node> = last.iter().collect();
            if random.one_in(6) {
                let form = [ConditionalForm::While, ConditionalForm::If][random.below(2) as usize];
                let test = match form {
                    ConditionalForm::While => Test::Count(random.below(4)),
                    _ => Test::Value(Region { bytes: 4, ..Region::whole(self.data[0].clone()) }),
                };
                let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 1 };
                let node = graph.add_conditional(&after, spec).unwrap();
                let body = node.bodies().unwrap().remove(0);
                let mut inner = body.add(&[], self.launch(random)).unwrap();
                for _ in 0..random.below(4) {
                    nodes.push(inner.clone());
                    inner = inner.add(self.launch(random)).unwrap();
                }
                nodes.push(inner);
                last = Some(node);
            } else {
                let node = graph.add(&after, self.launch(random)).unwrap();
                nodes.push(node.clone());
                last = Some(node);
            }
        }
        (graph, nodes)
    }
}

#[test]
fn chains_of_random_kernels_over_elements_leave_the_same() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 20).div_ceil(4) {
        let (text, reads_other) = module(&mut Random::new(seed));
        let mut together = 0;
        for device in devices() {
            let stage = Stage::new(device, &text, &reads_other);
            for number in 0..GRAPHS {
                let mut random = Random::new(seed * 1000 + number);
                let (graph, nodes) = stage.graph(&mut random);
                let plain = graph.instantiate().unwrap();
                let mut expected = vec![stage.run(&plain)];
                let edits: Vec<(&Node, Operation)> = (0..3)
                    .map(|_| (&nodes[random.below(nodes.len() as u64) as usize], stage.launch(&mut random)))
                    .collect();
                for edit in &edits {
                    plain.set_operations([edit.clone()]).unwrap();
                    expected.push(stage.run(&plain));
                }
                let all = [GPU, PACKED_GPU, WIDE_GPU].map(|profile| (profile, Optimizations::ALL));
                let chains = (GPU, only(Optimization::Chains));
                let chosen: Vec<_> = all
                    .into_iter()
                    .chain([chains])
                    .map(|(profile, wanted)| optimized_for(profile, &graph, wanted))
                    .chain([automatic(&graph, 0)])
                    .collect();
                for executable in &chosen {
                    let report = executable.report().optimized.join("\n");
                    together += usize::from(report.contains("each thread by itself"));
                    for (round, expected) in expected.iter().enumerate() {
                        if round > 0 {
                            executable.set_operations([edits[round - 1].clone()]).unwrap();
                        }
                        assert!(
                            stage.run(executable) == *expected,
                            "seed {seed}, graph {number}, round {round}: {:#?}\n{}\n{text}",
                            executable.report(),
                            graph.to_dot()
                        );
                    }
                }
            }
        }
        assert!(together > 0, "no kernels of seed {seed} were combined");
    }
}
