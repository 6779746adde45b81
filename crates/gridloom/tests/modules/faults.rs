//! Kernels that fail. On the CPU only the launch fails. A GPU loses its context, so these tests run
//! on the CPU.

use gridloom::prelude::*;

use crate::support::{Bench, GraphKernels, for_each_engine, refused};

const PTX: &str = include_str!("../kernels/failing.ptx");

/// Asserts that the device still works.
fn still_works(device: &Device) -> Result<()> {
    let kernels = GraphKernels::new(device)?;
    let value = kernels.value(1)?;
    kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 1))?;
    assert_eq!(value.to_vec()?, [2]);
    Ok(())
}

#[test]
fn a_failed_assertion_names_expression_kernel_block_thread_and_line() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, PTX)?;
        let mut data = vec![1; 100];
        data[70] = -1;
        let data = bench.buffer(&data)?;
        let launch = bench.run::<(Ptr<i32>, u32)>("assert_positive", LaunchConfig::new(4, 32), (&data, 100));
        let says = ["assert_positive", "data[i] > 0", "block (2, 0, 0)", "thread (6, 0, 0)", "failing.cu:16"];
        refused(launch, ErrorKind::KernelFault, &says);
        bench.stream.synchronize()?;
        data.write(&[1; 100])?;
        bench.run::<(Ptr<i32>, u32)>("assert_positive", LaunchConfig::new(4, 32), (&data, 100))?;
        still_works(&device)
    });
}

#[test]
fn a_trap_names_kernel_block_thread_and_line() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, PTX)?;
        let data = bench.zeros::<u32>(100)?;
        let launch =
            bench.run::<(PtrMut<u32>, u32, u32)>("trap_at", LaunchConfig::new(4, 32), (&data, 100, 37));
        let says = ["trap", "trap_at", "block (1, 0, 0)", "thread (5, 0, 0)", "failing.cu:23"];
        refused(launch, ErrorKind::KernelFault, &says);
        still_works(&device)
    });
}

#[test]
fn a_fault_inside_a_graph_names_its_node() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, PTX)?;
        let data = bench.zeros::<u32>(8)?;
        let after = bench.buffer(&[0u32])?;
        let graph = Graph::new(&device);
        let trap = bench.kernel::<(PtrMut<u32>, Len<u32>, u32)>("trap_at")?;
        let repeat = graph.repeat(3)?.named("again")?;
        repeat.body().launch(&trap, LaunchConfig::new(1, 8), (&data, 8, 3))?.named("breaks")?;
        repeat.memset(&after, 1u32)?;
        let executable = graph.instantiate()?;
        executable.launch(&bench.stream)?;
        let error = refused(bench.stream.synchronize(), ErrorKind::KernelFault, &["breaks", "trap_at"]);
        assert!(error.node().is_some_and(|node| node.contains("breaks")), "{error:?}");
        assert_eq!(after.to_vec()?, [0], "what depends on a failed node does not run");
        assert_eq!(executable.take_error().map(|error| error.kind()), Some(ErrorKind::KernelFault));
        still_works(&device)
    });
}

#[test]
fn an_endless_kernel_ends_at_the_step_limit() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.step_limit(100_000))?;
        let bench = Bench::new(&device, PTX)?;
        let launch = bench.run::<()>("endless", LaunchConfig::new(3, 64), ());
        refused(launch, ErrorKind::KernelFault, &["endless", "100000", "block", "thread"]);
        still_works(&device)
    });
}

#[test]
fn checked_memory_catches_accesses_outside_every_allocation() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.checked(true))?;
        let bench = Bench::new(&device, PTX)?;
        let data = bench.buffer(&[0; 64])?;
        type Parameters = (PtrMut<i32>, i64);
        let one = LaunchConfig::one();
        bench.run::<Parameters>("out_of_bounds", one, (&data, 63))?;
        assert_eq!(data.to_vec()?[63], 1);
        for index in [64, -1, 1 << 40] {
            let launch = bench.run::<Parameters>("out_of_bounds", one, (&data, index));
            refused(launch, ErrorKind::KernelFault, &["out_of_bounds", "0x", "4 bytes", "failing.cu:31"]);
        }
        refused(bench.run::<()>("null_write", one, ()), ErrorKind::KernelFault, &["null_write", "0x0"]);
        let freed = {
            let gone = bench.buffer(&[0; 64])?;
            gone.address()? as i64
        };
        let index = (freed - data.address()? as i64) / 4;
        let launch = bench.run::<Parameters>("out_of_bounds", one, (&data, index));
        refused(launch, ErrorKind::KernelFault, &["out_of_bounds"]);
        still_works(&device)
    });
}

#[test]
fn checked_memory_lets_real_kernels_through() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.checked(true))?;
        let bench = Bench::new(&device, include_str!("../kernels/reduce.ptx"))?;
        let (partial, x) = (bench.zeros::<i32>(2)?, bench.buffer(&[1; 500])?);
        let config = LaunchConfig::new(2, 256);
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("reduce_sum_s32", config, (&partial, &x, 500))?;
        assert_eq!(partial.to_vec()?, [256, 244]);

        let kernels = GraphKernels::new(&device)?;
        let (graph, out) = (Graph::new(&device), kernels.value(0)?);
        let memory = graph.alloc::<i32>(1)?;
        let filled = memory.memset(&memory, 4i32)?;
        let bumped = kernels.bump(&filled, &memory, 1)?;
        bumped.memcpy(&out, &memory)?.free(&memory)?;
        kernels.run(&graph)?;
        assert_eq!(out.to_vec()?, [5]);
        Ok(())
    });
}

#[test]
fn checked_memory_catches_a_step_from_one_alloc_node_into_the_next() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.checked(true))?;
        let bench = Bench::new(&device, PTX)?;
        let write = bench.kernel::<(PtrMut<i32>, i64)>("out_of_bounds")?;
        let graph = Graph::new(&device);
        let (a, b) = (graph.alloc::<i32>(16)?, graph.alloc::<i32>(16)?);
        let both = graph.join([&*a, &*b])?;
        // SAFETY: the device checks every access.
        unsafe { both.launch_unchecked(&write, LaunchConfig::one(), (&a, 16))? }.free(&a)?.free(&b)?;
        graph.instantiate()?.launch(&bench.stream)?;
        refused(bench.stream.synchronize(), ErrorKind::KernelFault, &["out_of_bounds"]);
        Ok(())
    });
}

#[test]
fn a_misaligned_access_is_a_fault() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.checked(true))?;
        let bench = Bench::new(&device, PTX)?;
        let bytes = bench.zeros::<u8>(16)?;
        let launch = bench.run::<(PtrMut<u8>,)>("misaligned", LaunchConfig::one(), (&bytes,));
        refused(launch, ErrorKind::KernelFault, &["misaligned", "not a multiple of 4", "failing.cu:45"]);
        Ok(())
    });
}

#[test]
fn dividing_by_zero_fails_nothing_as_on_a_gpu() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, PTX)?;
        let out = bench.zeros::<i32>(1)?;
        bench.run::<(PtrMut<i32>, i32, i32)>("divide", LaunchConfig::one(), (&out, 7, 0))?;
        bench.run::<(PtrMut<i32>, i32, i32)>("divide", LaunchConfig::one(), (&out, 7, 2))?;
        assert_eq!(out.to_vec()?, [3]);
        Ok(())
    });
}

#[test]
fn threads_that_wait_for_each_other_for_ever_are_a_fault() {
    const DEADLOCK: &str = "\
.version 8.3
.target sm_75
.address_size 64
.visible .entry half_wait()
{
\t.reg .pred %p;
\t.reg .u32 %t;
\tmov.u32 %t, %tid.x;
\tsetp.lt.u32 %p, %t, 32;
\t@%p bra first;
\tbar.sync 1, 64;
\tret;
first:
\tbar.sync 2, 64;
\tret;
}
";
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, DEADLOCK)?;
        let launch = bench.run::<()>("half_wait", LaunchConfig::new(1, 64), ());
        refused(launch, ErrorKind::KernelFault, &["half_wait", "barrier 1", "barrier 2"]);
        still_works(&device)
    });
}

#[test]
fn work_before_and_after_a_fault_on_the_stream_runs() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, PTX)?;
        let trap = bench.kernel::<(PtrMut<u32>, Len<u32>, u32)>("trap_at")?;
        let data = bench.zeros::<u32>(2)?;
        let values = bench.zeros::<u32>(2)?;
        bench.stream.memset(&values.slice(..1)?, 1u32)?;
        bench.stream.launch(&trap, LaunchConfig::one(), (&data, 1, 0))?;
        bench.stream.memset(&values.slice(1..)?, 2u32)?;
        refused(bench.stream.synchronize(), ErrorKind::KernelFault, &["trap_at"]);
        assert_eq!(values.to_vec()?, [1, 2]);
        Ok(())
    });
}
