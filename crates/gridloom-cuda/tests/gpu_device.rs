//! The objects of a GPU: device, memory, modules, kernels, streams, events.

mod common;

use common::*;
use gridloom_core::backend::{Device as _, EventOptions, StreamOptions};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{CallbackOp, CopySide, Launch, MemcpyOp, MemsetOp, Operation};
use gridloom_core::{ErrorKind, Event, Stream};
use gridloom_cuda::{CudaDevice, CudaVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_device_says_what_it_is() {
    let Some(gpu) = gpu() else { return };
    assert!(!gpu.device.name().is_empty());
    assert!(gpu.device.compute_capability() >= (5, 0));
    assert!(gpu.device.total_memory() > 1 << 28);
    assert_ne!(gpu.device.uuid(), [0; 16]);
    let limits = gpu.device.limits();
    assert_eq!(limits.warp_size, 32);
    assert!(limits.max_threads_per_block >= 512);
    assert!(gpu.device.properties().iter().any(|(name, _)| name == "compute capability"));
    let (highest, lowest) = gpu.device.priority_range().unwrap().into_inner();
    assert!(highest <= lowest);
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_its_number() {
    let Some(_gpu) = gpu() else { return };
    let error = CudaDevice::open(4096).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("4096"), "{error}");
}

#[test]
fn bytes_written_to_every_kind_of_memory_are_read_back() {
    let Some(gpu) = gpu() else { return };
    for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
        let memory = gpu.device.memory(1000, kind).unwrap();
        let bytes: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        gpu.device.write(&*memory, 0, &bytes).unwrap();
        let mut back = vec![0; 990];
        gpu.device.read(&*memory, 10, &mut back).unwrap();
        assert_eq!(back, bytes[10..], "{kind:?}");
    }
}

#[test]
fn reading_past_the_end_is_refused() {
    let Some(gpu) = gpu() else { return };
    let memory = gpu.buffer(16);
    let error = gpu.device.read(&*memory, 8, &mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn too_much_memory_is_out_of_memory_and_the_device_stays_usable() {
    let Some(gpu) = gpu() else { return };
    let error = gpu.device.memory(1 << 50, MemoryKind::Device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(error.to_string().contains("1125899906842624"), "{error}");
    let words = gpu.words(&[1, 2, 3]);
    assert_eq!(gpu.read(&words), [1, 2, 3]);
}

#[test]
fn freed_memory_goes_back_to_the_pool_and_the_pool_to_the_system() {
    let Some(gpu) = gpu() else { return };
    // A device of its own, so that no other test allocates from the same pool.
    let device = CudaDevice::open(0).unwrap();
    device.trim().unwrap();
    let baseline = device.reserved_memory().unwrap();
    for _ in 0..8 {
        let blocks: Vec<_> = (0..8).map(|_| device.memory(4 << 20, MemoryKind::Device).unwrap()).collect();
        assert_eq!(device.memory_use().unwrap().0, 32 << 20);
        drop(blocks);
    }
    assert_eq!(device.memory_use().unwrap().0, 0);
    device.trim().unwrap();
    assert_eq!(device.reserved_memory().unwrap(), baseline);
    drop(gpu);
}

#[test]
fn fills_of_every_element_size_and_shape() {
    let Some(gpu) = gpu() else { return };
    for (element_size, value, expected) in
        [(1, 0xab, [0xabu8; 4]), (2, 0x1234, [0x34, 0x12, 0x34, 0x12]), (4, 0x0102_0304, [4, 3, 2, 1])]
    {
        let memory = gpu.buffer(64);
        gpu.stream.enqueue(fill(&whole(&memory), 0, 1)).unwrap();
        // Two rows of 8 bytes, 32 bytes apart, 16 bytes in.
        let dst = whole(&memory).part(16, 48).unwrap();
        let width = 8 / u64::from(element_size);
        let op = MemsetOp { dst, value, element_size, width, height: 2, pitch: 32 };
        gpu.stream.enqueue(Operation::Memset(Arc::new(op))).unwrap();
        gpu.stream.synchronize().unwrap();
        let mut bytes = vec![0; 64];
        gpu.device.read(&*memory, 0, &mut bytes).unwrap();
        let mut wanted = vec![0; 64];
        for row in [16, 48] {
            wanted[row..row + 4].copy_from_slice(&expected);
            wanted[row + 4..row + 8].copy_from_slice(&expected);
        }
        assert_eq!(bytes, wanted, "elements of {element_size}");
    }
}

#[test]
fn copies_between_all_kinds_of_memory_in_all_directions() {
    let Some(gpu) = gpu() else { return };
    let kinds = [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed];
    for from in kinds {
        for to in kinds {
            let src = gpu.backend.allocate(256, from).unwrap();
            let dst = gpu.backend.allocate(256, to).unwrap();
            let bytes: Vec<u8> = (0..=255).collect();
            gpu.stream.enqueue(copy(&whole(&src), &Region::from_bytes(bytes.clone()))).unwrap();
            gpu.stream.enqueue(copy(&whole(&dst), &whole(&src))).unwrap();
            gpu.stream.synchronize().unwrap();
            let mut back = vec![0; 256];
            gpu.device.read(&*dst, 0, &mut back).unwrap();
            assert_eq!(back, bytes, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn copies_of_rows_and_planes_take_each_sides_pitch() {
    let Some(gpu) = gpu() else { return };
    // 2 planes of 3 rows of 4 bytes, out of 5 x 8 bytes and into 3 x 6.
    let (src, dst) = (gpu.buffer(80), gpu.buffer(36));
    let bytes: Vec<u8> = (0..80).collect();
    gpu.device.write(&*src, 0, &bytes).unwrap();
    gpu.device.write(&*dst, 0, &[0xff; 36]).unwrap();
    let op = MemcpyOp {
        dst: CopySide { region: whole(&dst), pitch: 6, rows: 3 },
        src: CopySide { region: whole(&src), pitch: 8, rows: 5 },
        width: 4,
        height: 3,
        depth: 2,
    };
    gpu.stream.enqueue(Operation::Memcpy(Arc::new(op))).unwrap();
    gpu.stream.synchronize().unwrap();
    let mut back = vec![0; 36];
    gpu.device.read(&*dst, 0, &mut back).unwrap();
    let mut wanted = vec![0xff; 36];
    for plane in 0..2 {
        for row in 0..3 {
            for x in 0..4 {
                wanted[plane * 18 + row * 6 + x] = (plane * 40 + row * 8 + x) as u8;
            }
        }
    }
    assert_eq!(back, wanted);
}

#[test]
fn bad_ptx_is_an_error_with_the_compilers_log() {
    let Some(gpu) = gpu() else { return };
    let source =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry bad() { no_such_op.u32 %r1; }\n";
    let error = gpu.device.load_ptx(source).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModule, "{error}");
    let log = error.log().unwrap_or_default();
    assert!(log.contains("line 4"), "{error}");
}

#[test]
fn an_unknown_kernel_lists_those_there_are() {
    let Some(gpu) = gpu() else { return };
    let error = gpu.module.clone().kernel("subtract").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("subtract"), "{error}");
    assert!(error.message().contains("countdown"), "{error}");
}

#[test]
fn a_kernel_knows_its_parameters() {
    let Some(gpu) = gpu() else { return };
    let kernel = gpu.kernel("add");
    let params = kernel.params().expect("told by the driver or the PTX");
    let places: Vec<(u32, u32)> = params.iter().map(|param| (param.offset, param.size)).collect();
    assert_eq!(places, [(0, 8), (8, 4), (12, 4)]);
    assert!(kernel.limits().max_threads.unwrap() >= 256);
}

#[test]
fn a_kernel_runs_over_a_buffer() {
    let Some(gpu) = gpu() else { return };
    let buffer = gpu.words(&(0..1000).collect::<Vec<_>>());
    gpu.stream.enqueue(gpu.add(&buffer, 5)).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&buffer), (5..1005).collect::<Vec<_>>());
}

#[test]
fn a_kernel_of_an_older_driver_has_the_parameters_of_its_ptx() {
    let Some(gpu) = gpu_capped(CudaVersion::new(12, 2)) else { return };
    let params = gpu.kernel("add").params().expect("told by the PTX").to_vec();
    let places: Vec<(u32, u32)> = params.iter().map(|param| (param.offset, param.size)).collect();
    assert_eq!(places, [(0, 8), (8, 4), (12, 4)]);
    let buffer = gpu.words(&[1, 2, 3]);
    gpu.stream.enqueue(gpu.add(&buffer, 5)).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&buffer), [6, 7, 8]);
}

#[test]
fn a_block_may_have_more_than_48_kib_of_dynamic_shared_memory() {
    let Some(gpu) = gpu() else { return };
    let bytes = 64 << 10;
    if gpu.device.limits().max_shared_per_block < bytes {
        return;
    }
    let out = gpu.words(&[0]);
    let config = LaunchConfig::new(1, 128).shared(bytes);
    let words = bytes / 4;
    let op = gpu.launch_with(&gpu.kernel("sum_shared"), config, [at(&out), uint(words)]);
    gpu.stream.enqueue(op).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&out), [(words * (words - 1) / 2) as i32]);
}

#[test]
fn a_cooperative_launch_runs() {
    let Some(gpu) = gpu() else { return };
    let buffer = gpu.words(&[0; 64]);
    let config = LaunchConfig::new(2, 32).cooperative();
    let op = gpu.launch_with(&gpu.kernel("add"), config, [at(&buffer), int(3), uint(64)]);
    gpu.stream.enqueue(op).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&buffer), [3; 64]);
}

#[test]
fn a_variable_of_a_module_is_memory() {
    let Some(gpu) = gpu() else { return };
    let variable = gpu.module.clone().global("module_variable").unwrap();
    assert_eq!(variable.bytes(), 4);
    let out = gpu.words(&[0]);
    gpu.device.write(&*variable, 0, &41i32.to_ne_bytes()).unwrap();
    gpu.stream.enqueue(gpu.launch("read_variable", [at(&out)])).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&out), [41]);
    let error = gpu.module.clone().global("no_such_variable").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn events_order_two_streams_and_tell_the_time_between_them() {
    let Some(gpu) = gpu() else { return };
    let other = Stream::new(&gpu.backend).unwrap();
    let (start, end) = (
        Event::new(&gpu.backend, EventOptions::default()).unwrap(),
        Event::new(&gpu.backend, EventOptions::default()).unwrap(),
    );
    let log = gpu.words(&[0; 4]);
    gpu.stream.enqueue(Operation::EventRecord(start.backend().clone())).unwrap();
    gpu.stream.enqueue(gpu.append(&log, 1)).unwrap();
    gpu.stream.enqueue(Operation::EventRecord(end.backend().clone())).unwrap();
    other.enqueue(Operation::EventWait(end.backend().clone())).unwrap();
    other.enqueue(gpu.append(&log, 2)).unwrap();
    other.synchronize().unwrap();
    assert!(end.is_reached().unwrap());
    assert!(end.elapsed_since(&start).unwrap() > std::time::Duration::ZERO);
    assert_eq!(gpu.read(&log), [2, 1, 2, 0]);
}

#[test]
fn the_time_since_an_event_that_was_never_recorded_is_an_error() {
    let Some(gpu) = gpu() else { return };
    let events = [0, 1].map(|_| Event::new(&gpu.backend, EventOptions::default()).unwrap());
    let error = events[1].elapsed_since(&events[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
}

#[test]
fn a_callback_runs_in_the_order_of_its_stream() {
    let Some(gpu) = gpu() else { return };
    let host = gpu.backend.allocate(4, MemoryKind::Host).unwrap();
    let (seen, address) = (Arc::new(AtomicU32::new(0)), host.address());
    gpu.stream.enqueue(fill(&whole(&host), 77, 4)).unwrap();
    let noted = Arc::clone(&seen);
    let callback = CallbackOp::closure(move || {
        // SAFETY: pinned memory of four bytes that the fill before has written and nothing writes
        // now.
        noted.store(unsafe { (address as *const u32).read_volatile() }, Ordering::SeqCst);
    });
    gpu.stream.enqueue(Operation::Callback(callback)).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 77);
}

#[test]
fn a_callback_that_panics_is_reported_once_and_the_stream_goes_on() {
    let Some(gpu) = gpu() else { return };
    let buffer = gpu.words(&[1]);
    gpu.stream.enqueue(Operation::Callback(CallbackOp::closure(|| panic!("not today")))).unwrap();
    gpu.stream.enqueue(gpu.add(&buffer, 1)).unwrap();
    let error = gpu.stream.synchronize().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CallbackPanicked);
    assert!(error.message().contains("not today"), "{error}");
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&buffer), [2]);
}

#[test]
fn what_finished_work_used_is_released_without_a_further_call() {
    let Some(gpu) = gpu() else { return };
    let (dropped, hear) = std::sync::mpsc::channel::<()>();
    let callback = CallbackOp::closure(move || dropped.send(()).unwrap());
    gpu.stream.enqueue(Operation::Callback(callback)).unwrap();
    assert!(hear.recv().is_ok());
    // The channel closes when the closure, and the sender in it, are dropped.
    assert!(hear.recv().is_err());
}

#[test]
fn dropping_a_stream_with_work_in_flight_is_safe() {
    let Some(gpu) = gpu() else { return };
    let stream = Stream::new(&gpu.backend).unwrap();
    let buffer = gpu.words(&[0; 1000]);
    for _ in 0..100 {
        stream.enqueue(gpu.add(&buffer, 1)).unwrap();
    }
    drop(stream);
    assert_eq!(gpu.read(&buffer), [100; 1000]);
}

#[test]
fn everything_made_on_a_device_outlives_the_handle_to_it() {
    let Some(gpu) = gpu() else { return };
    let Gpu { device, backend, module, stream } = gpu;
    let kernel = module.kernel("append").unwrap();
    let log = backend.allocate(16, MemoryKind::Device).unwrap();
    backend.write(&*log, 0, &[0; 16]).unwrap();
    drop((device, backend));
    let args = gridloom_core::op::KernelArgs::pack("append", kernel.params(), [at(&log), uint(9)]).unwrap();
    // SAFETY: the kernel takes nothing else.
    let op = unsafe { gridloom_core::op::KernelOp::new(kernel, LaunchConfig::one(), args) };
    stream.enqueue(Operation::Kernel(Launch::new(op))).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn machine_code_that_is_none_is_refused() {
    let Some(gpu) = gpu() else { return };
    let error = gpu.device.load_binary(b"not a cubin").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModule);
}

#[test]
fn streams_have_priorities() {
    let Some(gpu) = gpu() else { return };
    let highest = *gpu.device.priority_range().unwrap().start();
    let stream = gpu.backend.create_stream(StreamOptions::new().priority(highest)).unwrap();
    assert_eq!(stream.priority().unwrap(), highest);
}
