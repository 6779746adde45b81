//! Raw handles out and in, on a simulated driver.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the simulated driver's handles are numbers that each test makes up"
)]

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{EventOptions, StreamOptions};
use gridloom_core::op::{KernelArgs, KernelOp, Launch, Operation};
use gridloom_core::{ErrorKind, launch::LaunchConfig};
use gridloom_cuda::interop::*;
use gridloom_cuda::release;
use simulator::{FAR_STREAM, handle as raw_handle, world};
use std::sync::{Arc, Weak};

fn gpu() -> Gpu {
    Gpu::new(simulator::device(None))
}

/// An owner, and a way to see whether it is still kept.
fn owner() -> (Option<Owner>, Weak<u32>) {
    let owner = Arc::new(7u32);
    let watch = Arc::downgrade(&owner);
    (Some(owner.into()), watch)
}

fn same<T: ?Sized, U: ?Sized>(one: &Arc<T>, other: &Arc<U>) -> bool {
    Arc::as_ptr(one).addr() == Arc::as_ptr(other).addr()
}

/// Waits until the release thread has let go of what launches kept.
fn until_dropped(watch: &Weak<u32>) {
    while watch.strong_count() > 0 {
        release::flush();
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_of_ours_comes_back_as_itself() {
    let gpu = gpu();
    let raw = stream_to_raw(&**gpu.stream.backend()).unwrap();
    let back = unsafe { stream_from_raw(&gpu.device, raw, None) }.unwrap();
    assert!(same(&back, gpu.stream.backend()));
}

#[test]
fn an_event_of_ours_comes_back_as_itself_whatever_options_are_claimed() {
    let gpu = gpu();
    let options = EventOptions::new().timing(false).blocking(true);
    let event = gpu.backend.create_event(options).unwrap();
    let raw = event_to_raw(&*event).unwrap();
    let back = unsafe { event_from_raw(&gpu.device, raw, EventOptions::default(), None) }.unwrap();
    assert!(same(&back, &event));
    assert_eq!(back.options(), options);
}

#[test]
fn a_kernel_of_ours_comes_back_as_itself() {
    let gpu = gpu();
    let kernel = gpu.module.clone().kernel("add").unwrap();
    let raw = kernel_to_raw(&*kernel).unwrap();
    let back = unsafe { kernel_from_raw(&gpu.device, raw, None) }.unwrap();
    assert!(same(&back, &kernel));
}

#[test]
fn memory_of_ours_comes_back_as_itself_and_a_part_of_it_keeps_it() {
    let gpu = gpu();
    let memory = gpu.buffer(64);
    let watch = Arc::downgrade(&memory);
    let back = unsafe { memory_from_raw(&gpu.device, memory.address(), 64, None) }.unwrap();
    assert!(same(&back, &memory));
    let part = unsafe { memory_from_raw(&gpu.device, memory.address() + 16, 8, None) }.unwrap();
    assert_eq!((part.address(), part.bytes()), (memory.address() + 16, 8));
    drop((memory, back));
    assert_eq!(watch.strong_count(), 1);
    drop(part);
    assert_eq!(watch.strong_count(), 0);
}

#[test]
fn a_part_that_leaves_its_block_is_refused() {
    let gpu = gpu();
    let memory = gpu.buffer(64);
    let error = unsafe { memory_from_raw(&gpu.device, memory.address() + 60, 8, None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_handle_of_a_stream_that_is_gone_is_no_longer_ours() {
    let gpu = gpu();
    let stream = gpu.backend.create_stream(StreamOptions::new()).unwrap();
    let raw = stream_to_raw(&*stream).unwrap();
    drop(stream);
    assert!(world(|world| world.destroyed_streams.remove(&raw.addr())));
    // As if the driver had given the handle to somebody else's stream.
    let back = unsafe { stream_from_raw(&gpu.device, raw, None) }.unwrap();
    drop(back);
    assert!(!world(|world| world.destroyed_streams.contains(&raw.addr())));
}

#[test]
fn an_object_of_another_handle_of_the_gpu_is_refused_with_the_remedy() {
    let (gpu, other) = (gpu(), gpu());
    let raw = stream_to_raw(&**gpu.stream.backend()).unwrap();
    let error = unsafe { stream_from_raw(&other.device, raw, None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongDevice);
    let memory = gpu.buffer(8);
    let error = unsafe { memory_from_raw(&other.device, memory.address(), 8, None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongDevice);
}

#[test]
fn a_borrowed_stream_runs_work_and_is_not_destroyed() {
    let gpu = gpu();
    let raw = raw_handle(world(|world| world.fresh()));
    let (owner, watch) = owner();
    let stream = unsafe { stream_from_raw(&gpu.device, raw, owner) }.unwrap();
    let words = gpu.words(&[1, 2]);
    unsafe { stream.enqueue(&fill(&whole(&words), 5, 4)) }.unwrap();
    drop(stream);
    until_dropped(&watch);
    let mut out = [0; 8];
    gpu.backend.read(&*words, 0, &mut out).unwrap();
    assert_eq!(out, [5, 0, 0, 0, 5, 0, 0, 0]);
    assert!(!world(|world| world.destroyed_streams.contains(&raw.addr())));
}

#[test]
fn a_stream_of_another_context_is_refused() {
    let gpu = gpu();
    let error = unsafe { stream_from_raw(&gpu.device, raw_handle(FAR_STREAM), None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongDevice);
}

#[test]
fn the_stream_of_each_thread_is_refused_and_the_default_stream_is_not() {
    let gpu = gpu();
    let error = unsafe { stream_from_raw(&gpu.device, raw_handle(2), None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let stream = unsafe { stream_from_raw(&gpu.device, raw_handle(0), None) }.unwrap();
    unsafe { stream.enqueue(&fill(&whole(&gpu.words(&[0])), 1, 4)) }.unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_borrowed_event_is_not_destroyed_and_its_owner_stays_with_the_executable() {
    let gpu = gpu();
    let number = world(|world| world.fresh());
    simulator::record(number);
    let (owner, watch) = owner();
    let options = EventOptions::default();
    let event = unsafe { event_from_raw(&gpu.device, raw_handle(number), options, owner) }.unwrap();
    let graph = gpu.graph();
    graph.add(&[], Operation::EventRecord(event)).unwrap();
    let executable = graph.instantiate().unwrap();
    drop(graph);
    executable.launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
    assert!(watch.strong_count() > 0);
    drop(executable);
    until_dropped(&watch);
    assert!(world(|world| world.events.contains_key(&number)));
}

#[test]
fn a_borrowed_kernel_has_its_name_and_parameters_and_keeps_its_owner_for_a_launch() {
    let gpu = gpu();
    // With the last object of ours gone, the handle is one like any other.
    let ours = gpu.module.clone().kernel("add").unwrap();
    let raw = kernel_to_raw(&*ours).unwrap();
    drop(ours);
    let (owner, watch) = owner();
    let kernel = unsafe { kernel_from_raw(&gpu.device, raw, owner) }.unwrap();
    assert_eq!(kernel.name(), "add");
    assert_eq!(kernel.params().unwrap().iter().map(|param| param.size).collect::<Vec<_>>(), [8, 4, 4]);
    let words = gpu.words(&[1, 2]);
    let args = KernelArgs::pack("add", kernel.params(), [at(&words), int(10), uint(2)]).unwrap();
    // SAFETY: the kernel takes just that.
    let op = unsafe { KernelOp::new(kernel.clone(), LaunchConfig::new(1u32, 2u32), args) };
    gpu.stream.enqueue(Operation::Kernel(Launch::new(op))).unwrap();
    drop(kernel);
    until_dropped(&watch);
    let mut out = [0; 8];
    gpu.backend.read(&*words, 0, &mut out).unwrap();
    assert_eq!(out, [11, 0, 0, 0, 12, 0, 0, 0]);
}

#[test]
fn borrowed_memory_is_not_freed_and_its_owner_stays_with_the_graph() {
    let gpu = gpu();
    let mut theirs = Box::new([0u32; 4]);
    let address = theirs.as_mut_ptr() as u64;
    world(|world| world.memory.insert(address, 16));
    let (owner, watch) = owner();
    let memory = unsafe { memory_from_raw(&gpu.device, address, 16, owner) }.unwrap();
    let graph = gpu.graph();
    graph.add(&[], fill(&whole(&memory), 9, 4)).unwrap();
    drop(memory);
    assert_eq!(watch.strong_count(), 1);
    graph.instantiate().unwrap().launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
    drop(graph);
    until_dropped(&watch);
    assert_eq!(world(|world| world.memory.remove(&address)), Some(16));
    assert_eq!(*theirs, [9; 4]);
}

#[test]
fn an_address_that_the_driver_does_not_know_is_refused() {
    let gpu = gpu();
    let error = unsafe { memory_from_raw(&gpu.device, 0x10, 4, None) }.unwrap_err();
    assert!(error.to_string().contains("0x10"), "{error}");
}

#[test]
fn a_null_handle_is_no_event_and_no_kernel() {
    let gpu = gpu();
    let null = std::ptr::null_mut();
    let error = unsafe { event_from_raw(&gpu.device, null, EventOptions::default(), None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHandle);
    let error = unsafe { kernel_from_raw(&gpu.device, std::ptr::null_mut(), None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHandle);
}
