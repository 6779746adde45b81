//! Kernels compiled from CUDA C++. Each can be looked up. Those that are hard to execute compute
//! what their sources say, in checked mode.

use crate::support::{Map, Module, Params, run, run_cooperative};
use gridloom_interp::{FaultKind, Heap, Launch};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Returns the kernels of the `gridloom` crate, both those of its tests and those of its examples.
fn folders() -> [PathBuf; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gridloom");
    [root.join("tests/kernels"), root.join("kernels")]
}

struct Compiled {
    module: Module,
    map: Map,
    params: Params,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    heap: Heap,
    printed: Mutex<Vec<u8>>,
    cooperative: bool,
}

impl Compiled {
    fn load(name: &str) -> Self {
        let path = folders()[0].join(format!("{name}.ptx"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let module = Module::new(&text);
        let mut map = Map::default();
        for memory in &module.memory {
            map = map.with(memory);
        }
        Self {
            module,
            map,
            params: Params::default(),
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            heap: Heap::new(1 << 16),
            printed: Mutex::default(),
            cooperative: false,
        }
    }

    fn shape(mut self, grid: u32, block: u32) -> Self {
        (self.grid, self.block) = ([grid, 1, 1], [block, 1, 1]);
        self
    }

    /// The address of a buffer as the next parameter; the buffer is the kernel's until it is read.
    fn buffer<T>(mut self, buffer: &mut [T]) -> Self {
        self.map = self.map.with(buffer);
        self.params = self.params.buffer(buffer);
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.params = self.params.u32(value);
        self
    }

    fn try_run(&mut self, kernel: &str) -> Result<(), FaultKind> {
        let kernel = self.module.kernel(kernel);
        let params = std::mem::take(&mut self.params);
        let print = |text: &[u8]| self.printed.lock().unwrap().extend_from_slice(text);
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.shared,
            params: &params.0,
            memory_map: Some(&self.map),
            print: &print,
            step_limit: Some(20_000_000),
            ..Launch::new(&kernel, &self.heap)
        };
        let result = if self.cooperative { run_cooperative(&launch) } else { run(&launch) };
        result.map_err(|fault| fault.kind)
    }

    fn run(mut self, kernel: &str) -> Self {
        self.try_run(kernel).unwrap_or_else(|fault| panic!("{kernel}: {fault}"));
        self
    }
}

/// Numbers without a pattern, the same at every run.
fn numbers(count: usize) -> Vec<u32> {
    let mut state = 0x2545_f491u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn every_kernel_can_be_looked_up() {
    let mut count = 0;
    for folder in folders() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ptx") {
                continue;
            }
            let module = Module::new(&std::fs::read_to_string(&path).unwrap());
            let names: Vec<_> = module.program.module().entries().map(|(_, f)| f.name.clone()).collect();
            for name in names {
                let found = module.program.kernel(&name);
                found.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                count += 1;
            }
        }
    }
    assert!(count > 100, "found {count} kernels");
}

#[test]
fn saxpy_is_fused() {
    let x: Vec<f32> = numbers(300).iter().map(|&v| v as f32 / 7.0).collect();
    let start: Vec<f32> = numbers(300).iter().map(|&v| v as f32 / 3.0).collect();
    let mut y = start.clone();
    Compiled::load("saxpy")
        .shape(3, 128)
        .buffer(&mut y)
        .buffer(&mut x.clone())
        .u32(300)
        .u32(1.3f32.to_bits())
        .run("saxpy");
    let expected: Vec<f32> = x.iter().zip(&start).map(|(x, y)| 1.3f32.mul_add(*x, *y)).collect();
    assert_eq!(y, expected);
}

#[test]
fn a_block_reduces_through_shuffles_and_shared_memory() {
    let mut x = numbers(2000);
    let mut partial = vec![0u32; 3];
    Compiled::load("reduce")
        .shape(3, 256)
        .buffer(&mut partial)
        .buffer(&mut x)
        .u32(2000)
        .run("reduce_sum_s32");
    let sum =
        |block: usize| (0..2000).filter(|i| i / 256 % 3 == block).fold(0u32, |sum, i| sum.wrapping_add(x[i]));
    assert_eq!(partial, [sum(0), sum(1), sum(2)]);
}

#[test]
fn a_chained_scan_waits_for_the_block_before() {
    let mut input: Vec<u32> = numbers(1500).iter().map(|v| v % 100).collect();
    let (mut out, mut carry) = (vec![0u32; 1500], vec![0u32; 13]);
    Compiled::load("scan")
        .shape(6, 256)
        .buffer(&mut out)
        .buffer(&mut carry)
        .buffer(&mut input)
        .u32(1500)
        .run("scan_chained");
    let expected: Vec<u32> = input
        .iter()
        .scan(0, |sum, v| {
            *sum += v;
            Some(*sum)
        })
        .collect();
    assert_eq!(out, expected);
}

#[test]
fn sorts_sort() {
    let keys = numbers(1000);
    let mut sorted = keys.clone();
    sorted.sort_unstable();

    let mut bitonic = keys.clone();
    Compiled::load("sort").shape(1, 512).buffer(&mut bitonic).u32(1000).run("bitonic_block");
    assert_eq!(bitonic, sorted);

    let (mut from, mut to) = (keys.clone(), vec![0; 1000]);
    for shift in (0..32).step_by(4) {
        Compiled::load("sort")
            .shape(1, 256)
            .buffer(&mut to)
            .buffer(&mut from)
            .u32(1000)
            .u32(shift)
            .run("radix_pass");
        std::mem::swap(&mut from, &mut to);
    }
    assert_eq!(from, sorted);

    let mut rows: Vec<i32> = keys.iter().map(|&key| key as i32).collect();
    let mut expected = rows.clone();
    expected.chunks_mut(20).for_each(<[i32]>::sort_unstable);
    Compiled::load("sort").shape(1, 64).buffer(&mut rows).u32(20).u32(50).run("insertion_sort");
    assert_eq!(rows, expected);
}

#[test]
fn divergent_loops_count_their_own_passes() {
    let mut input: Vec<u32> = (1..200).collect();
    let mut out = vec![0u32; 199];
    Compiled::load("divergence").shape(2, 128).buffer(&mut out).buffer(&mut input).u32(199).run("collatz");
    let steps = |mut x: u64| {
        let mut steps = 0;
        while x != 1 {
            x = if x.is_multiple_of(2) { x / 2 } else { 3 * x + 1 };
            steps += 1;
        }
        steps
    };
    assert_eq!(out, input.iter().map(|&x| steps(x.into())).collect::<Vec<u32>>());
}

#[test]
fn recursive_functions_recurse() {
    let mut input: Vec<u32> = (0..15).collect();
    let mut out = vec![0u32; 15];
    Compiled::load("recursion").shape(1, 32).buffer(&mut out).buffer(&mut input).u32(15).run("fibonacci");
    assert_eq!(out, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]);

    let mut rows: Vec<i32> = numbers(40 * 33).iter().map(|&v| v as i32).collect();
    let mut expected = rows.clone();
    expected.chunks_mut(33).for_each(<[i32]>::sort_unstable);
    Compiled::load("recursion").shape(1, 64).buffer(&mut rows).u32(33).u32(40).run("quicksort");
    assert_eq!(rows, expected);
}

#[test]
fn functions_are_called_through_tables_and_addresses_of_other_kernels() {
    let apply = |which: u32, x: i32| match which % 4 {
        0 => -x,
        1 => x * 2,
        2 => x * x,
        _ => x + 1,
    };
    let mut input: Vec<i32> = (0..50).map(|i| i * 3 - 70).collect();
    let mut which: Vec<u32> = numbers(50);
    let mut out = vec![0i32; 50];
    let mut functions = Compiled::load("functions").shape(1, 64);
    functions = functions.buffer(&mut out).buffer(&mut input).buffer(&mut which).u32(50).run("apply_table");
    assert_eq!(out, input.iter().zip(&which).map(|(&x, &w)| apply(w, x)).collect::<Vec<i32>>());

    let mut slot = [0u64];
    functions = functions.shape(1, 1).buffer(&mut slot).u32(2).run("take_address");
    functions.shape(1, 64).buffer(&mut out).buffer(&mut input).buffer(&mut slot).u32(50).run("apply_address");
    assert_eq!(out, input.iter().map(|&x| x * x).collect::<Vec<i32>>());
}

#[test]
fn structures_travel_through_calls() {
    let (mut a, mut b) = (vec![17i32, -17, 9, 100], vec![5i32, 5, -2, 7]);
    let mut out = vec![0i32; 8];
    Compiled::load("functions")
        .shape(1, 4)
        .buffer(&mut out)
        .buffer(&mut a)
        .buffer(&mut b)
        .u32(4)
        .run("returns_struct");
    assert_eq!(out, [3, 2, -3, -2, -4, 1, 14, 2]);
}

#[test]
fn a_spin_lock_between_threads_of_all_blocks_is_fair() {
    let (mut lock, mut total) = ([0u32], [0u32]);
    Compiled::load("atomics").shape(3, 64).buffer(&mut lock).buffer(&mut total).u32(150).run("spin_lock");
    assert_eq!((lock, total), ([0], [150 * 151 / 2]));
}

#[test]
fn compare_and_swap_loops_lose_nothing() {
    let mut cell = [1u64];
    Compiled::load("atomics").shape(2, 64).buffer(&mut cell).u32(100).run("cas_multiply");
    assert_eq!(cell[0], (0..100).fold(1u64, |product, _| product.wrapping_mul(3)));
    let mut cells = [7u16, 9];
    let mut words = [u32::from(cells[0]) | u32::from(cells[1]) << 16];
    Compiled::load("atomics").shape(1, 64).buffer(&mut words).u32(51).run("cas_half");
    cells = [words[0] as u16, (words[0] >> 16) as u16];
    assert_eq!(cells, [7 + 26, 9 + 25]);
}

#[test]
fn barriers_of_block_and_grid_hold() {
    let mut out = vec![0i32; 32];
    Compiled::load("barriers").shape(1, 64).buffer(&mut out).run("named_barriers");
    assert_eq!(out, (0..32).map(|lane| 3 * lane + 1).collect::<Vec<i32>>());

    let mut out = [0u32];
    Compiled::load("barriers").shape(1, 128).buffer(&mut out).run("early_exit");
    assert_eq!(out, [64]);

    let mut x = numbers(1000);
    let (mut out, mut partial, mut counter) = ([0u32], vec![0u32; 5], [0u32]);
    let barriers =
        Compiled::load("barriers").shape(5, 128).buffer(&mut out).buffer(&mut partial).buffer(&mut counter);
    barriers.buffer(&mut x).u32(1000).run("last_block");
    assert_eq!((out[0], counter), (x.iter().fold(0u32, |sum, &v| sum.wrapping_add(v)), [0]));

    let start = numbers(4 * 40);
    let (mut data, mut state) = (start.clone(), [0u32; 2]);
    let mut barriers = Compiled::load("barriers").shape(4, 40).buffer(&mut data).buffer(&mut state).u32(3);
    barriers.cooperative = true;
    barriers.run("grid_barrier");
    let mut expected = start;
    for _ in 0..3 {
        let before = expected.clone();
        for (i, value) in expected.iter_mut().enumerate() {
            *value = before[i].wrapping_add(before[(i + 1) % before.len()]);
        }
    }
    assert_eq!(data, expected);
}

#[test]
fn warps_vote_shuffle_and_compact() {
    let mut x: Vec<i32> = numbers(64).iter().map(|&v| v as i32).collect();
    let mut out = vec![0i32; 5 * 64];
    Compiled::load("warp").shape(2, 32).buffer(&mut out).buffer(&mut x).run("shuffles");
    for t in 0..64 {
        let (lane, warp) = (t % 32, t / 32 * 32);
        let from = |lane: usize| x[warp + lane];
        let expected = [
            from((lane + 1) % 32),
            from(lane.checked_sub(3).unwrap_or(lane)),
            from(if lane + 5 < 32 { lane + 5 } else { lane }),
            from(lane ^ 9),
            from(lane / 8 * 8 + 2),
        ];
        assert_eq!(out[5 * t..][..5], expected, "thread {t}");
    }

    let (mut out, mut count) = (vec![0i32; 64], [0u32]);
    Compiled::load("warp")
        .shape(1, 64)
        .buffer(&mut out)
        .buffer(&mut count)
        .buffer(&mut x)
        .u32(60)
        .run("compact");
    let expected: Vec<i32> = x[..60].iter().copied().filter(|&v| v > 0).collect();
    assert_eq!(count[0] as usize, expected.len());
    assert_eq!(out[..expected.len()], expected);
}

#[test]
fn asynchronous_copies_feed_a_pipeline() {
    let mut input: Vec<[f32; 4]> = numbers(5 * 64).chunks(1).map(|v| [(v[0] % 1000) as f32; 4]).collect();
    let mut out = vec![[0f32; 4]; 64];
    // Sixteen-byte alignment, by way of a wider type.
    let mut aligned: Vec<u128> = input.iter().map(|v| u128::from_le_bytes(bytes(v))).collect();
    let mut sums = vec![0u128; 64];
    Compiled::load("pipeline")
        .shape(1, 64)
        .buffer(&mut sums)
        .buffer(&mut aligned)
        .u32(5)
        .run("pipelined_sum");
    for (out, sum) in out.iter_mut().zip(&sums) {
        let bytes = sum.to_le_bytes();
        *out = std::array::from_fn(|i| f32::from_le_bytes(bytes[4 * i..][..4].try_into().unwrap()));
    }
    for (t, out) in out.iter().enumerate() {
        let sum: f32 = input.iter_mut().skip(t).step_by(64).map(|v| v[0]).sum();
        assert_eq!(*out, [sum; 4], "thread {t}");
    }
}

fn bytes(values: &[f32; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, value) in bytes.chunks_mut(4).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

#[test]
fn the_device_heap_serves_threads_and_outlives_a_launch() {
    let mut out = vec![0i32; 20];
    let heap = Compiled::load("heap").shape(1, 32).buffer(&mut out).u32(20).run("heap_sum");
    assert_eq!(out, (0..20).map(|i| (i + 1) * (i + 2) / 2).collect::<Vec<i32>>());
    assert_eq!(heap.heap.used(), 0);

    let mut slots = vec![0u64; 20];
    let heap = heap.buffer(&mut slots).u32(20).run("heap_make");
    assert_ne!(heap.heap.used(), 0);
    let heap = heap.buffer(&mut out).buffer(&mut slots).u32(20).run("heap_take");
    assert_eq!(out, (0..20).map(|i| 80 * i + 28).collect::<Vec<i32>>());
    assert_eq!(heap.heap.used(), 0);

    let mut out = [0i32];
    let heap = heap.shape(1, 1).buffer(&mut out).u32(9).run("new_delete");
    assert_eq!((out, heap.heap.used()), ([63], 0));
}

#[test]
fn tiles_in_shared_memory_multiply_matrices() {
    let (m, n, k) = (20, 35, 18);
    let mut a: Vec<f32> = numbers(m * k).iter().map(|&v| v as f32 / 4e9 - 0.5).collect();
    let mut b: Vec<f32> = numbers(k * n).iter().map(|&v| v as f32 / 4e9 - 0.5).collect();
    let mut c = vec![0f32; m * n];
    let mut matmul = Compiled::load("matmul").buffer(&mut c).buffer(&mut a).buffer(&mut b);
    (matmul.grid, matmul.block) = ([3, 2, 1], [16, 16, 1]);
    matmul.u32(m as u32).u32(n as u32).u32(k as u32).run("matmul_tiled");
    for row in 0..m {
        for column in 0..n {
            let sum = (0..k).fold(0f32, |sum, i| a[row * k + i].mul_add(b[i * n + column], sum));
            assert_eq!(c[row * n + column], sum, "({row}, {column})");
        }
    }
}

#[test]
fn indirect_branches_take_each_lane_its_way() {
    let mut input: Vec<u32> = (0..70).collect();
    let mut out = vec![0u32; 70];
    Compiled::load("dispatch").shape(1, 96).buffer(&mut out).buffer(&mut input).u32(70).run("branch_table");
    let expected = |x: u32| match x % 4 {
        0 => x + 100,
        1 => x * 3,
        2 => 7u32.wrapping_sub(x),
        _ => !x,
    };
    assert_eq!(out, input.iter().map(|&x| expected(x)).collect::<Vec<u32>>());
}

#[test]
fn local_arrays_are_indexed_at_run_time() {
    let mut input = vec![1203u32, 7, 120, 4_294_967];
    let mut out = vec![0u32; 4];
    Compiled::load("local_arrays").shape(1, 4).buffer(&mut out).buffer(&mut input).u32(4).run("digits");
    assert_eq!(out, [3021, 7, 21, 7_694_924]);
}

#[test]
fn module_variables_keep_their_values_between_launches() {
    let mut out = vec![0i32; 9];
    let globals = Compiled::load("globals").shape(1, 8).buffer(&mut out).u32(8).run("read_primes");
    assert_eq!(out[..8], [2, 3, 5, 7, 11, 13, 17, 19]);
    let globals = globals.shape(1, 1).u32(100).run("bump_primes");
    globals.shape(1, 8).buffer(&mut out).u32(8).run("read_primes");
    assert_eq!(out[..8], [102, 103, 105, 107, 111, 113, 117, 119]);
}

#[test]
fn printf_formats_what_the_compiler_packed() {
    let printed = Compiled::load("printing").shape(2, 2).run("hello").printed.into_inner().unwrap();
    assert_eq!(
        String::from_utf8(printed).unwrap(),
        "hello from block 0, thread 0\nhello from block 0, thread 1\n\
         hello from block 1, thread 0\nhello from block 1, thread 1\n"
    );
    let mut printing = Compiled::load("printing").u32(-5i32 as u32).u32(0xbeef);
    printing.params = printing.params.u64(-7i64 as u64).u64(2.5f64.to_bits());
    let printed = printing.run("print_formats").printed.into_inner().unwrap();
    assert_eq!(
        String::from_utf8(printed).unwrap(),
        "int -5, unsigned 48879, hex 0000beef, char L\n\
         long -7, unsigned long 18446744073709551609, hex fffffffffffffff9\n\
         float 2.500, scientific 2.500000e+00, general 2.5, right [      2.50], left [2.50      ]\n\
         string text, percent %, pointer end\n\
         nothing to convert\n"
    );
}

#[test]
fn failures_are_told_apart() {
    let mut data = vec![1i32, 2, -3, 4];
    let fault = Compiled::load("failing")
        .shape(1, 32)
        .buffer(&mut data)
        .u32(4)
        .try_run("assert_positive")
        .unwrap_err();
    let FaultKind::Assert { message, line, .. } = &fault else { panic!("{fault}") };
    assert_eq!(message, "data[i] > 0");
    assert!(*line > 0);

    let mut data = vec![0u32; 8];
    let fault =
        Compiled::load("failing").shape(1, 8).buffer(&mut data).u32(8).u32(3).try_run("trap_at").unwrap_err();
    assert_eq!(fault, FaultKind::Trap);

    let mut failing = Compiled::load("failing").buffer(&mut data);
    failing.params = failing.params.u64(1 << 20);
    assert!(matches!(failing.try_run("out_of_bounds"), Err(FaultKind::IllegalAddress { .. })));
    assert!(matches!(Compiled::load("failing").try_run("endless"), Err(FaultKind::StepLimit { .. })));
    assert!(matches!(Compiled::load("failing").try_run("null_write"), Err(FaultKind::IllegalAddress { .. })));
    let mut bytes = vec![0u32; 4];
    let mut failing = Compiled::load("failing").buffer(&mut bytes);
    assert!(matches!(failing.try_run("misaligned"), Err(FaultKind::Misaligned { .. })));
}
