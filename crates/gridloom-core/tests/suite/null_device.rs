//! The device that runs nothing: other tests rely on it.

use gridloom_core::backend::{AsDevice, DeviceKind, EventOptions};
use gridloom_core::memory::MemoryKind;
use gridloom_core::null::{Call, CallKind, FakeKernel, FakeModule, NullDevice};
use gridloom_core::{ErrorKind, Stream};

use crate::common::*;

#[test]
fn devices_differ_from_each_other() {
    let (one, two) = (NullDevice::new(), NullDevice::default());
    assert_ne!(one.as_device().id(), two.as_device().id());
    assert_eq!(one.clone().as_device().id(), one.as_device().id());
    assert_eq!(one.as_device().kind(), DeviceKind::Null);
}

#[test]
fn allocations_do_not_overlap_and_are_counted() {
    let device = NullDevice::new();
    let memory: Vec<_> = [1, 300, 1 << 50, 7].map(|bytes| buffer(&device, bytes)).into();
    for pair in memory.windows(2) {
        assert!(pair[0].address() + pair[0].bytes().min(1 << 40) <= pair[1].address());
        assert_eq!(pair[0].address() % 256, 0);
    }
    assert_eq!(device.as_device().memory_use().unwrap().0, 308 + (1 << 50));
    assert_eq!(device.live_allocations(), 4);
    drop(memory);
    assert_eq!((device.live_allocations(), device.as_device().memory_use().unwrap().0), (0, 0));
}

#[test]
fn memory_gives_back_what_was_written_and_zeros_elsewhere() {
    let device = NullDevice::new();
    let memory = device.allocate(16, MemoryKind::Managed).unwrap();
    device.as_device().write(&*memory, 4, &[1, 2, 3]).unwrap();
    let mut bytes = [9; 8];
    device.as_device().read(&*memory, 2, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 1, 2, 3, 0, 0, 0]);
    let past = device.as_device().write(&*memory, 15, &[0; 2]);
    assert_error(past, ErrorKind::InvalidArgument, &["2 bytes at 15", "16"]);
    assert_error(device.as_device().read(&*memory, u64::MAX, &mut bytes), ErrorKind::InvalidArgument, &[]);
}

#[test]
fn the_nth_call_of_a_kind_fails_and_no_other() {
    let device = NullDevice::new();
    device.fail(CallKind::Allocate, 3, ErrorKind::OutOfMemory);
    device.fail(CallKind::CreateStream, 1, ErrorKind::Driver);
    let outcomes: Vec<bool> = (0..5).map(|_| device.allocate(1, MemoryKind::Device).is_ok()).collect();
    assert_eq!(outcomes, [true, true, false, true, true]);
    assert_error(Stream::new(&device), ErrorKind::Driver, &["CreateStream"]);
    Stream::new(&device).unwrap();
}

#[test]
fn calls_are_recorded_until_they_are_taken() {
    let device = NullDevice::new();
    device.as_device().create_event(EventOptions::default()).unwrap();
    device.as_device().wait_all().unwrap();
    buffer(&device, 5);
    let kinds: Vec<CallKind> = device.calls().iter().map(Call::kind).collect();
    assert_eq!(kinds, [CallKind::CreateEvent, CallKind::WaitAll, CallKind::Allocate]);
    assert_eq!(device.take_calls().len(), 3);
    assert!(device.calls().is_empty());
}

#[test]
fn an_instantiated_definition_is_recorded_but_not_retained() {
    let (device, _, graph) = setup();
    let exec = graph.instantiate().unwrap();
    let Some(Call::Instantiate { definition, .. }) = device.take_calls().pop() else { panic!() };
    assert!(std::sync::Arc::ptr_eq(&definition.upgrade().unwrap(), &exec.definition()));
    drop((exec, graph));
    assert!(definition.upgrade().is_none());
}

#[test]
fn kernels_are_found_by_name_and_keep_their_module() {
    let device = NullDevice::new();
    let module = FakeModule::new()
        .kernel(FakeKernel::new("one").params([4]))
        .kernel(FakeKernel::new("two"))
        .global("table", 64)
        .on(&device);
    assert_eq!(module.kernel_names(), ["one", "two"]);
    assert_eq!(module.clone().kernel("one").unwrap().params().unwrap()[0].size, 4);
    assert_eq!(module.clone().kernel("two").unwrap().params(), None);
    assert_eq!(module.clone().global("table").unwrap().bytes(), 64);
    assert_error(module.clone().kernel("three"), ErrorKind::NotFound, &["three", "one, two"]);
    assert_error(module.clone().global("chair"), ErrorKind::NotFound, &["chair"]);
}

#[test]
fn kernels_of_text_are_known_by_name() {
    let device = NullDevice::new();
    let source = ".visible .entry first(.param .u64 a) { ret; }\n.entry second() { ret; }";
    let module = device.as_device().load_ptx(source).unwrap();
    assert_eq!(module.kernel_names(), ["first", "second"]);
    assert_error(device.as_device().load_binary(&[0]), ErrorKind::NotSupported, &[]);
}
