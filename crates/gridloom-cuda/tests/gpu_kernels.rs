//! What kernels ask of a launch on a stream: the block they demand, and to begin early. On a
//! simulated driver everywhere, and on a GPU where there is one.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod common;
mod simulator;

use common::*;
use gridloom_core::ErrorKind;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::Operation;
use gridloom_cuda::sys::CUlaunchAttributeID;

fn gpus() -> impl Iterator<Item = Gpu> {
    [Some(Gpu::new(simulator::device(None))), gpu()].into_iter().flatten()
}

#[test]
fn a_block_other_than_the_one_a_kernel_demands_is_refused_before_the_launch() {
    const PTX: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
                       .visible .entry demands_32_threads() .reqntid 32 { ret; }\n";
    for gpu in gpus() {
        let kernel = gpu.backend.load_ptx(PTX).unwrap().kernel("demands_32_threads").unwrap();
        let launch = |threads: u32| gpu.launch_with(&kernel, LaunchConfig::new(1, threads), []);
        let error = gpu.graph().add(&[], launch(64)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("requires 32x1x1 (.reqntid)"), "{error}");
        gpu.stream.enqueue(launch(64)).unwrap_err();
        gpu.stream.enqueue(launch(32)).unwrap();
        gpu.stream.synchronize().unwrap();
    }
}

/// Launches on a stream that add 1 to 20, each allowed to begin before the one before it has ended.
fn add_early(gpu: &Gpu) -> Vec<i32> {
    let module = gpu.backend.load_ptx(include_str!("kernels/programmatic.ptx")).unwrap();
    let kernel = module.kernel("add_overlapped").unwrap();
    let buffer = gpu.words(&[0; 4096]);
    let add = |value| -> Operation {
        let config = LaunchConfig::linear(4096).programmatic();
        gpu.launch_with(&kernel, config, [at(&buffer), int(value), uint(4096)])
    };
    (1..=20).for_each(|value| gpu.stream.enqueue(add(value)).unwrap());
    gpu.stream.synchronize().unwrap();
    gpu.read(&buffer)
}

#[test]
fn launches_that_may_begin_early_see_what_those_before_them_wrote() {
    for gpu in gpus() {
        // The kernel itself waits with an instruction of that generation.
        if gpu.device.compute_capability() >= (9, 0) {
            assert_eq!(add_early(&gpu), [210; 4096]);
        }
    }
}

#[test]
fn the_driver_is_told_that_a_launch_on_a_stream_may_begin_early() {
    let early = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let gpu = Gpu::new(simulator::device(None));
    simulator::world(|world| world.launch_attributes.clear());
    add_early(&gpu);
    assert_eq!(simulator::world(|world| world.launch_attributes.clone()), [early]);
}
