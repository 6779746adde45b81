//! Kernel launches: shapes within limits, arguments that fit.

use std::sync::Arc;

use gridloom_core::backend::Kernel;
use gridloom_core::graph::Graph;
use gridloom_core::launch::{Dim3, KernelLimits, LaunchConfig, Limits};
use gridloom_core::memory::{Base, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Error, ErrorKind};

use crate::common::*;

fn launch(graph: &Graph, kernel: &Arc<dyn Kernel>, config: LaunchConfig) -> gridloom_core::Result<()> {
    let args = KernelArgs::default();
    graph.add(&[], Operation::Kernel(Launch::new(kernel_op(kernel.clone(), config, args)))).map(drop)
}

#[test]
fn a_linear_launch_covers_all_threads() {
    for (threads, blocks) in [(1, 1), (255, 1), (256, 1), (257, 2), (1_000_000, 3907)] {
        let config = LaunchConfig::linear(threads);
        assert_eq!((config.grid, config.block), (Dim3::new(blocks, 1, 1), Dim3::new(256, 1, 1)));
    }
}

#[test]
fn a_linear_launch_of_none_or_too_many_is_refused_at_the_call() {
    let (device, _, graph) = setup();
    let kernel = plain_kernel(&device);
    assert_error(
        launch(&graph, &kernel, LaunchConfig::linear(0)),
        ErrorKind::InvalidArgument,
        &["at least 1"],
    );
    let many = LaunchConfig::linear(usize::MAX);
    assert_error(launch(&graph, &kernel, many), ErrorKind::InvalidArgument, &["at most 2147483647 along x"]);
}

#[test]
fn dimensions_are_made_from_one_two_or_three_extents() {
    assert_eq!(Dim3::from(5), Dim3::new(5, 1, 1));
    assert_eq!(Dim3::from((5, 6)), Dim3::new(5, 6, 1));
    assert_eq!(Dim3::from((5, 6, 7)), Dim3::new(5, 6, 7));
    assert_eq!(Dim3::from([5, 6, 7]).to_array(), [5, 6, 7]);
    assert_eq!(Dim3::new(u32::MAX, u32::MAX, u32::MAX).volume(), u128::from(u32::MAX).pow(3));
    assert_eq!(Dim3::ONE.to_string(), "1x1x1");
}

#[test]
fn a_launch_within_the_limits_is_accepted() {
    let (device, _, graph) = setup();
    let kernel = plain_kernel(&device);
    for config in [
        LaunchConfig::one(),
        LaunchConfig::new(0x7fff_ffff, 1024),
        LaunchConfig::new((1, 65_535, 65_535), (1, 1, 64)),
        LaunchConfig::new(1, (4, 256)),
        LaunchConfig::one().shared(48 << 10),
        LaunchConfig::new((8, 4), 1).cluster((4, 2)),
        LaunchConfig::one().cooperative().priority(i32::MIN),
    ] {
        launch(&graph, &kernel, config).unwrap_or_else(|error| panic!("{config:?}: {error}"));
    }
}

#[test]
fn a_launch_past_the_limits_is_refused_with_kernel_and_limit_named() {
    let (device, _, graph) = setup();
    let kernel = plain_kernel(&device);
    let cases: Vec<(LaunchConfig, &[&str])> = vec![
        (LaunchConfig::new(0, 1), &["the grid is 0x1x1", "at least 1"]),
        (LaunchConfig::new((1, 0), 1), &["the grid is 1x0x1"]),
        (LaunchConfig::new((1, 1, 0), 1), &["the grid is 1x1x0"]),
        (LaunchConfig::new(1, 0), &["the block is 0x1x1"]),
        (LaunchConfig::new(1, (1, 1, 0)), &["the block is 1x1x0"]),
        (LaunchConfig::new(0x8000_0000, 1), &["at most 2147483647 along x"]),
        (LaunchConfig::new((1, 65_536), 1), &["at most 65535 along y"]),
        (LaunchConfig::new((1, 1, 65_536), 1), &["at most 65535 along z"]),
        (LaunchConfig::new(1, 1025), &["the block is 1025x1x1", "at most 1024 along x"]),
        (LaunchConfig::new(1, (1, 1, 65)), &["at most 64 along z"]),
        (LaunchConfig::new(1, (32, 33)), &["32x33x1 has 1056 threads", "at most 1024"]),
        (LaunchConfig::new(1, (1024, 1024, 64)), &["67108864 threads"]),
        (LaunchConfig::one().shared((48 << 10) + 1), &["49153 bytes of shared memory", "49152"]),
        (LaunchConfig::new(3, 1).cluster(2), &["clusters of 2x1x1", "grid of 3x1x1"]),
        (LaunchConfig::new(4, 1).cluster((1, 2)), &["clusters of 1x2x1"]),
        (LaunchConfig::new(4, 1).cluster(0), &["clusters of 0x1x1"]),
    ];
    for (config, mentions) in cases {
        let error = assert_error(launch(&graph, &kernel, config), ErrorKind::InvalidArgument, mentions);
        assert!(error.to_string().contains("launch of step"), "{error}");
    }
    assert!(graph.is_empty());
}

#[test]
fn the_kernels_own_limits_hold_too() {
    let (device, _, graph) = setup();
    let limited = |limits| FakeKernel::new("picky").params([]).limits(limits).on(&device);
    let small = limited(KernelLimits { max_threads: Some(128), ..KernelLimits::default() });
    launch(&graph, &small, LaunchConfig::new(1, 128)).unwrap();
    let result = launch(&graph, &small, LaunchConfig::new(1, 129));
    assert_error(result, ErrorKind::InvalidArgument, &["picky", "this kernel runs with at most 128"]);

    let exact = limited(KernelLimits { required_block: Some(Dim3::new(8, 8, 1)), ..KernelLimits::default() });
    launch(&graph, &exact, LaunchConfig::new(1, (8, 8))).unwrap();
    let result = launch(&graph, &exact, LaunchConfig::new(1, 64));
    assert_error(result, ErrorKind::InvalidArgument, &["64x1x1", "requires 8x8x1", ".reqntid"]);

    let hungry = limited(KernelLimits { static_shared: 40 << 10, ..KernelLimits::default() });
    launch(&graph, &hungry, LaunchConfig::one().shared(8 << 10)).unwrap();
    let result = launch(&graph, &hungry, LaunchConfig::one().shared((8 << 10) + 1));
    assert_error(result, ErrorKind::InvalidArgument, &["8193 dynamic", "40960 declared"]);
}

#[test]
fn limits_are_those_of_the_device() {
    let device = NullDevice::with_limits(Limits { max_threads_per_block: 16, ..NullDevice::LIMITS });
    let graph = Graph::new(&device);
    let kernel = plain_kernel(&device);
    launch(&graph, &kernel, LaunchConfig::new(1, 16)).unwrap();
    assert_error(
        launch(&graph, &kernel, LaunchConfig::new(1, 17)),
        ErrorKind::InvalidArgument,
        &["at most 16"],
    );
}

#[test]
fn a_launch_packed_in_its_place_is_the_one_that_its_parts_make() {
    let device = NullDevice::new();
    let kernel = FakeKernel::new("step").params([8, 4]).on(&device);
    let memory = buffer(&device, 64);
    let pointer = || PointerValue::Region(Region::whole(memory.clone()));
    // SAFETY: nothing runs on this device.
    let packed = unsafe {
        KernelOp::pack(&kernel, LaunchConfig::linear(500), |packer| {
            packer.push_pointer(|| Ok(pointer()))?;
            packer.push_bytes(&7u32.to_ne_bytes())
        })
    };
    let args = KernelArgs::pack(
        "step",
        kernel.params(),
        [ArgValue::Pointer(pointer()), bytes_arg(&7u32.to_ne_bytes())],
    )
    .unwrap();
    let made = Operation::Kernel(Launch::new(kernel_op(kernel.clone(), LaunchConfig::linear(500), args)));
    assert!(Operation::Kernel(packed.unwrap()).same(&made));
    // SAFETY: as above.
    let refused = unsafe {
        KernelOp::pack(&kernel, LaunchConfig::one(), |packer| packer.push_pointer(|| Ok(pointer())))
    };
    assert_error(refused, ErrorKind::ParameterMismatch, &["2 parameters", "1 arguments"]);
    // What was packed before the refusal is let go of.
    drop(made);
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn an_argument_that_fails_is_not_packed_and_leaves_its_place_to_the_next() {
    let device = NullDevice::new();
    let memory = buffer(&device, 64);
    let pointer = || Ok(PointerValue::Region(Region::whole(memory.clone())));
    let failing = || Err(Error::new(ErrorKind::InvalidHandle, "closed"));
    for kernel in [FakeKernel::new("step").params([8]), FakeKernel::new("unknown")] {
        let kernel = kernel.on(&device);
        // SAFETY: nothing runs on this device.
        let packed = unsafe {
            KernelOp::pack(&kernel, LaunchConfig::one(), |packer| {
                assert_error(packer.push_pointer(failing), ErrorKind::InvalidHandle, &["closed"]);
                packer.push_pointer(pointer)
            })
        };
        let whole = KernelArgs::pack("same", kernel.params(), [ArgValue::Pointer(pointer().unwrap())]);
        assert_eq!(*packed.unwrap().args(), whole.unwrap());
    }
}

#[test]
fn arguments_are_packed_where_the_kernel_wants_them() {
    let device = NullDevice::new();
    let kernel = FakeKernel::new("mixed").params([1, 8, 2, 4, 12]).on(&device);
    let memory = buffer(&device, 64);
    let region = Region::whole(memory.clone()).part(24, 8).unwrap();
    let values = [
        bytes_arg(&[7]),
        ArgValue::Pointer(PointerValue::Region(region.clone())),
        bytes_arg(&[1, 2]),
        bytes_arg(&[3, 4, 5, 6]),
        bytes_arg(&[9; 12]),
    ];
    let args = KernelArgs::pack("mixed", kernel.params(), values).unwrap();
    assert_eq!(Some(&args.layout), kernel.params());
    let last = kernel.params().unwrap()[4];
    assert_eq!(args.bytes.len() as u32, last.offset + last.size);
    assert_eq!(args.value(0).unwrap(), [7]);
    assert_eq!(args.value(1).unwrap(), (memory.address() + 24).to_ne_bytes());
    assert_eq!(args.value(2).unwrap(), [1, 2]);
    assert_eq!(args.value(3).unwrap(), [3, 4, 5, 6]);
    assert_eq!(args.value(4).unwrap(), [9; 12]);
    assert_eq!(args.value(5), None);
    assert_eq!(args.bytes[1..8], [0; 7], "what lies between arguments is zero");
    assert_eq!(
        args.pointers.as_slice(),
        [PointerArg { index: 1, offset: 0, value: PointerValue::Region(region) }]
    );
}

#[test]
fn arguments_of_a_kernel_with_unknown_parameters_are_aligned_by_their_sizes() {
    // Sizes, and the offsets they get: a size is a multiple of its type's alignment, so 12 bytes
    // need at most 4.
    for (sizes, offsets) in [
        (&[1, 1, 2, 4, 8][..], &[0, 1, 2, 4, 8][..]),
        (&[4, 12, 8], &[0, 4, 16]),
        (&[1, 16], &[0, 16]),
        (&[4, 64], &[0, 16]),
        (&[4, 24], &[0, 8]),
        (&[3, 2], &[0, 4]),
    ] {
        let values: Vec<ArgValue> = sizes.iter().map(|&size| bytes_arg(&vec![0xee; size])).collect();
        let args = KernelArgs::pack("unknown", None, values).unwrap();
        let packed: Vec<usize> = args.layout.iter().map(|place| place.offset as usize).collect();
        assert_eq!(packed, offsets, "{sizes:?}");
    }
}

#[test]
fn arguments_that_do_not_match_are_refused_with_kernel_and_place_named() {
    let device = NullDevice::new();
    let kernel = FakeKernel::new("axpy").params([4, 8]).on(&device);
    let pointer = || ArgValue::Pointer(PointerValue::Region(Region::whole(buffer(&device, 8))));
    let cases: [(Vec<ArgValue>, &[&str]); 6] = [
        (vec![], &["axpy takes 2 parameters", "0 arguments"]),
        (vec![bytes_arg(&[0; 4])], &["axpy takes 2 parameters", "1 arguments"]),
        (vec![bytes_arg(&[0; 4]), pointer(), pointer()], &["axpy takes 2 parameters", "more"]),
        (vec![bytes_arg(&[0; 8]), pointer()], &["parameter 0 of kernel axpy has 4 bytes", "argument has 8"]),
        (vec![bytes_arg(&[0; 4]), bytes_arg(&[0; 4])], &["parameter 1", "has 8 bytes", "argument has 4"]),
        (vec![pointer(), pointer()], &["parameter 0", "has 4 bytes", "argument has 8"]),
    ];
    for (values, mentions) in cases {
        let result = KernelArgs::pack("axpy", kernel.params(), values);
        assert_error(result, ErrorKind::ParameterMismatch, mentions);
    }
}

#[test]
fn arguments_packed_for_another_kernel_are_refused() {
    let (device, _, graph) = setup();
    let wanted = FakeKernel::new("axpy").params([4, 8]).on(&device);
    let args = KernelArgs::pack("other", None, [bytes_arg(&[0; 8]), bytes_arg(&[0; 4])]).unwrap();
    let op = kernel_op(wanted, LaunchConfig::one(), args);
    let result = graph.add(&[], Operation::Kernel(Launch::new(op)));
    assert_error(result, ErrorKind::ParameterMismatch, &["axpy", "[4, 8]", "[8, 4]"]);
}

#[test]
fn arguments_made_by_hand_must_hold_together() {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("loose").on(&device);
    let place = |offset, size| ParamLayout { offset, size };
    let pointer = |index| PointerArg {
        index,
        offset: 0,
        value: PointerValue::Region(Region::whole(buffer(&device, 8))),
    };
    let cases = [
        (
            "reach past their buffer",
            KernelArgs { layout: [place(0, 8)].into_iter().collect(), ..Default::default() },
        ),
        (
            "reach past their buffer",
            KernelArgs { layout: [place(u32::MAX, u32::MAX)].into_iter().collect(), ..Default::default() },
        ),
        (
            "argument 1 of loose",
            KernelArgs {
                bytes: [0; 8].into_iter().collect(),
                layout: [place(0, 8)].into_iter().collect(),
                pointers: [pointer(1)].into_iter().collect(),
                ..Default::default()
            },
        ),
        (
            "a pointer at byte 0 of a parameter of 4 bytes",
            KernelArgs {
                bytes: [0; 8].into_iter().collect(),
                layout: [place(0, 4)].into_iter().collect(),
                pointers: [pointer(0)].into_iter().collect(),
                ..Default::default()
            },
        ),
    ];
    for (mention, args) in cases {
        let op = kernel_op(kernel.clone(), LaunchConfig::one(), args);
        let result = graph.add(&[], Operation::Kernel(Launch::new(op)));
        assert_error(result, ErrorKind::ParameterMismatch, &["loose", mention]);
    }
}

#[test]
fn more_arguments_than_the_device_passes_are_refused() {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("wide").params([4097]).on(&device);
    let result = graph.add(&[], launch_op(&kernel, [bytes_arg(&vec![0; 4097])]));
    assert_error(result, ErrorKind::ParameterMismatch, &["wide", "4097 bytes", "at most 4096"]);
}

#[test]
fn a_pointer_argument_is_checked_and_named() {
    let (device, _, graph) = setup();
    let memory = buffer(&device, 64);
    let good = Region::whole(memory.clone());
    let bad = Region { base: Base::Allocation(memory), offset: 60, bytes: 8 };
    let result = kernel_on(&device, &graph, &[], [good, bad]);
    assert_error(result, ErrorKind::InvalidArgument, &["argument 1 of step", "60..68", "64"]);
}

#[test]
fn copied_host_bytes_are_no_pointer_argument() {
    let (device, stream, graph) = setup();
    let result = kernel_on(&device, &graph, &[], [Region::from_bytes(vec![1, 2])]);
    assert_error(result, ErrorKind::InvalidArgument, &["argument 0 of step", "no address on the device"]);
    let kernel = FakeKernel::new("step").params([8]).on(&device);
    let argument = ArgValue::Pointer(PointerValue::Region(Region::from_bytes(vec![1, 2])));
    assert_error(stream.enqueue(launch_op(&kernel, [argument])), ErrorKind::InvalidArgument, &["argument 0"]);
}
