//! Kernels that trust their lengths: every launch is checked against the contract.

use gridloom::contract::{Axis, Contract, arg, block, grid, len};
use gridloom::kernel::Arg;
use gridloom::prelude::*;

use crate::support::{Bench, GraphKernels, for_each_device, refused};

const BROKEN: ErrorKind = ErrorKind::ContractViolation;
const PTX: &str = include_str!("../support/graph.ptx");

#[test]
fn a_length_past_the_memory_is_refused_wherever_a_kernel_is_launched() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (x, y) = (kernels.buffer(&[1, 2, 3, 4])?, kernels.buffer(&[5, 6, 7])?);
        let config = LaunchConfig::linear(4);
        let says = ["argument 1 of mix", "has 3 elements", "needs 4", "argument 2"];
        refused(kernels.stream.launch(&kernels.mix, config, (&x, &y, 4)), BROKEN, &says);
        let graph = Graph::new(device);
        refused(graph.launch(&kernels.mix, config, (&x, &y, 4)), BROKEN, &says);
        let node = graph.launch(&kernels.mix, config, (&x, &y, 3))?;
        refused(node.launch(&kernels.mix, config, (&x, &y, 4)), BROKEN, &says);
        let capture = kernels.stream.capture()?;
        refused(capture.launch(&kernels.mix, config, (&x, &y, 4)), BROKEN, &says);
        drop(capture);
        assert_eq!(graph.len(), 1);
        kernels.run(&graph)?;
        assert_eq!(x.to_vec()?, [31 + 5, 62 + 6, 93 + 7, 4]);
        Ok(())
    });
}

#[test]
fn slices_empty_memory_and_alloc_nodes_have_lengths_too() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let x = kernels.buffer(&[0; 8])?;
        let config = LaunchConfig::linear(8);
        let launch = |memory: &BufferSlice<i32>, n: usize| {
            kernels.stream.launch(&kernels.increase, config, (memory, n, 1))
        };
        launch(&x.slice(2..6)?, 4)?;
        refused(launch(&x.slice(2..6)?, 5), BROKEN, &["has 4 elements", "needs 5"]);
        refused(launch(&x.slice(8..)?, 0), BROKEN, &["has 0 elements", "needs 1"]);
        kernels.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [0, 0, 1, 1, 1, 1, 0, 0]);

        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?;
        let says = ["has 8 elements", "needs 9"];
        refused(memory.launch(&kernels.increase, config, (&memory, 9, 1)), BROKEN, &says);
        let part = memory.slice(4..)?;
        refused(memory.launch(&kernels.increase, config, (&part, 5, 1)), BROKEN, &["has 4 elements"]);
        Ok(())
    });
}

#[test]
fn a_definition_refuses_arguments_that_break_the_contract() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (x, short) = (kernels.buffer(&[0; 4])?, kernels.buffer(&[0; 2])?);
        let graph = Graph::new(device);
        let node = graph.launch(&kernels.increase, LaunchConfig::linear(4), (&x, 4, 1))?;
        let node = node.named("four")?;
        refused(node.set_args(&kernels.increase, (&short, 4, 1)), BROKEN, &["four", "argument 0", "needs 4"]);
        refused(node.set_args(&kernels.increase, (&x, 5, 1)), BROKEN, &["four", "needs 5"]);
        // SAFETY: what would leave the memory is refused.
        unsafe {
            refused(node.set_arg_unchecked(1, Arg::value(5u32)), BROKEN, &["four", "needs 5"]);
            refused(node.set_arg_unchecked(0, Arg::memory(&short)?), BROKEN, &["four", "has 2 elements"]);
            refused(node.set_arg_unchecked(0, Arg::value(0u64)), BROKEN, &["four", "null"]);
            refused(node.replace_memory(&x, &short), BROKEN, &["four", "has 2 elements"]);
            refused(graph.replace_memory(&x, &short), BROKEN, &["four", "has 2 elements"]);
        }
        kernels.run(&graph)?;
        assert_eq!((x.to_vec()?, short.to_vec()?), (vec![1; 4], vec![0; 2]));
        Ok(())
    });
}

#[test]
fn an_executable_refuses_arguments_that_break_the_contract_however_often_they_change() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (x, y, short) = (kernels.buffer(&[0; 4])?, kernels.buffer(&[0; 4])?, kernels.buffer(&[0; 2])?);
        let graph = Graph::new(device);
        let node = graph.launch(&kernels.increase, LaunchConfig::linear(4), (&x, 4, 1))?.named("four")?;
        let executable = graph.instantiate()?;
        let at = executable.node(&node)?;
        for round in 1..5 {
            refused(at.set_args(&kernels.increase, (&x, 5, round)), BROKEN, &["four", "needs 5"]);
            refused(at.set_args(&kernels.increase, (&short, 4, round)), BROKEN, &["four", "has 2"]);
            // SAFETY: what would leave the memory is refused.
            unsafe {
                refused(at.set_arg_unchecked(1, Arg::value(5u32)), BROKEN, &["four", "needs 5"]);
                refused(at.set_arg_unchecked(1, Arg::value(u32::MAX)), BROKEN, &["four", "needs 4294967295"]);
                refused(at.set_arg_unchecked(0, Arg::memory(&short)?), BROKEN, &["four", "has 2"]);
                at.set_arg_unchecked(2, Arg::value(round))?;
            }
            executable.launch(&kernels.stream)?;
            at.set_args(&kernels.increase, (&short, 2, round))?;
            executable.launch(&kernels.stream)?;
            at.set_args(&kernels.increase, (&y, 4, round))?;
            executable.launch(&kernels.stream)?;
            at.set_args(&kernels.increase, (&x, 4, round))?;
        }
        kernels.stream.synchronize()?;
        assert_eq!((x.to_vec()?, y.to_vec()?, short.to_vec()?), (vec![10; 4], vec![10; 4], vec![10; 2]));
        Ok(())
    });
}

#[test]
fn another_launch_shape_is_checked_where_the_contract_counts_blocks_or_threads() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let all_threads = Contract::new().holds(0, grid(Axis::X) * block(Axis::X)).holds(0, arg(1));
        let increase = bench.kernel_with::<(PtrMut<i32>, u32, i32)>("increase", all_threads)?;
        let x = bench.buffer(&[0; 64])?;
        let graph = Graph::new(device);
        refused(
            graph.launch(&increase, LaunchConfig::new(3, 32), (&x, 1, 1)),
            BROKEN,
            &["needs 96", "grid.x"],
        );
        let node = graph.launch(&increase, LaunchConfig::new(2, 32), (&x, 1, 1))?;
        refused(node.set_config(LaunchConfig::new(2, 33)), BROKEN, &["has 64", "needs 66"]);
        let executable = graph.instantiate()?;
        refused(executable.node(&node)?.set_config(LaunchConfig::new(3, 32)), BROKEN, &["needs 96"]);
        executable.node(&node)?.set_config(LaunchConfig::new(1, 64))?;
        executable.launch(&bench.stream)?;
        bench.stream.synchronize()
    });
}

#[test]
fn null_is_given_only_for_parameters_that_are_declared_nullable() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let contract = || Contract::new().at_most(arg(1), len(0));
        let any = bench.kernel_with::<(Nullable<PtrMut<i32>>, u32, i32)>("increase", contract())?;
        let x = bench.buffer(&[0; 2])?;
        bench.stream.launch(&any, LaunchConfig::linear(2), (&x, 2, 1))?;
        bench.stream.launch(&any, LaunchConfig::linear(2), (Null, 0, 1))?;
        let says = ["argument 1 (2)", "length of argument 0 (0)"];
        refused(bench.stream.launch(&any, LaunchConfig::linear(2), (Null, 2, 1)), BROKEN, &says);
        bench.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [1; 2]);
        Ok(())
    });
}

#[test]
fn a_launch_that_is_promised_for_is_not_checked() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let four =
            bench.kernel_with::<(PtrMut<i32>, Len<u32>, i32)>("increase", Contract::new().holds(0, 4))?;
        let x = bench.buffer(&[0; 2])?;
        let config = LaunchConfig::linear(2);
        refused(bench.stream.launch(&four, config, (&x, 2, 1)), BROKEN, &["has 2", "needs 4"]);
        // SAFETY: the kernel touches two elements, and there are two.
        unsafe { bench.stream.launch_unchecked(&four, config, (&x, 2, 1))? };
        bench.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [1; 2]);
        Ok(())
    });
}

#[test]
fn lengths_of_any_integer_type_must_fit_the_parameter() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let kernel = bench.kernel::<(PtrMut<i32>, Len<i32>, i32)>("increase")?;
        let x = bench.buffer(&[0; 3])?;
        let config = LaunchConfig::linear(3);
        bench.stream.launch(&kernel, config, (&x, 3u32, 1))?;
        bench.stream.launch(&kernel, config, (&x, 3i64, 1))?;
        bench.stream.launch(&kernel, config, (&x, x.len(), 1))?;
        let invalid = ErrorKind::InvalidArgument;
        refused(bench.stream.launch(&kernel, config, (&x, 1u64 << 31, 1)), invalid, &["2147483648", "i32"]);
        refused(bench.stream.launch(&kernel, config, (&x, -1, 1)), BROKEN, &["-1"]);
        bench.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [3; 3]);
        Ok(())
    });
}

#[test]
fn a_contract_that_does_not_fit_the_parameters_is_refused_at_look_up() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let look_up = |contract| bench.kernel_with::<(PtrMut<i32>, u32, i32)>("increase", contract);
        let mismatch = ErrorKind::ParameterMismatch;
        refused(look_up(Contract::new().holds(1, 1)), mismatch, &["increase", "argument 1"]);
        refused(look_up(Contract::new().holds(0, arg(0))), mismatch, &["increase", "argument 0"]);
        refused(look_up(Contract::new().at_most(arg(3), 1)), mismatch, &["increase", "3 parameters"]);
        let kernel = look_up(Contract::new().holds(0, arg(1)))?;
        assert_eq!(kernel.contract().to_string(), "argument 0 holds argument 1");
        Ok(())
    });
}
