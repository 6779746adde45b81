//! Graphs that stay as they were captured.

use super::common::*;
use super::raw::*;
use super::simulator::world;
use gridloom_core::Executable;
use gridloom_core::graph::DifferenceKind;
use gridloom_core::op::{NodeKind, Operation};
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::sys::*;
use gridloom_cuda::{CudaVersion, release};
use std::sync::Arc;

const OPAQUE: CaptureMode = CaptureMode::ThreadLocal;

fn reason(operation: &Operation) -> String {
    match operation {
        Operation::Opaque(opaque) => opaque.reason().to_owned(),
        other => panic!("{other:?}"),
    }
}

fn launch_and_wait(gpu: &Gpu, executable: &Executable) {
    executable.launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
}

#[test]
fn what_is_captured_can_be_left_as_it_is() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let (a, b) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
        let capture = gpu.stream.capture().unwrap();
        capture.add(fill(&whole(&a), 1, 4)).unwrap();
        let nodes = foreign(&capture, OPAQUE.opaque(), |raw| {
            add_words(gpu, raw, function(&add), &a, 2);
            copy_bytes(gpu, raw, b.address(), a.address(), 16);
            Ok(())
        })
        .unwrap();
        capture.add(gpu.add(&b, 10)).unwrap();
        let graph = capture.end().unwrap();
        assert_eq!(kinds(&nodes), [NodeKind::Opaque]);
        let executables = [graph.instantiate().unwrap(), graph.instantiate().unwrap()];
        executables.iter().chain(&executables).for_each(|executable| launch_and_wait(gpu, executable));
        assert_eq!(gpu.read(&b), [13; 4]);
    });
}

#[test]
fn an_old_driver_that_tells_no_parameters_leaves_kernels_of_others_opaque_and_they_run() {
    for_each_old_gpu(CudaVersion::new(12, 2), |gpu| {
        let (buffer, module) = (gpu.words(&[1; 4]), TheirModule::load(gpu));
        let add = module.function(c"add");
        let (graph, nodes) = plain(gpu, |raw| {
            add_words(gpu, raw, add, &buffer, 2);
            add_words(gpu, raw, add, &buffer, 3);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Opaque]);
        assert!(reason(&nodes[0].operation().unwrap()).contains("12.4"));
        gpu.run(&graph);
        assert_eq!(gpu.read(&buffer), [6; 4]);
    });
}

#[test]
fn an_old_driver_leaves_kernels_that_gridloom_loaded_from_ptx_as_they_are() {
    for_each_old_gpu(CudaVersion::new(12, 2), |gpu| {
        let (buffer, add) = (gpu.words(&[1; 4]), gpu.kernel("add"));
        let (graph, nodes) = plain(gpu, |raw| {
            fill_words(gpu, raw, &buffer, 4);
            add_words(gpu, raw, function(&add), &buffer, 2);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Memset, NodeKind::Kernel]);
        gpu.run(&graph);
        assert_eq!(gpu.read(&buffer), [6; 4]);
    });
}

#[test]
fn an_old_driver_is_no_hindrance_to_copies_and_fills() {
    for_each_old_gpu(CudaVersion::new(12, 2), |gpu| {
        let (a, b) = (gpu.words(&[1; 4]), gpu.words(&[0; 4]));
        let (graph, nodes) = plain(gpu, |raw| {
            fill_words(gpu, raw, &a, 4);
            copy_bytes(gpu, raw, b.address(), a.address(), 16);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Memset, NodeKind::Memcpy]);
        gpu.run(&graph);
        assert_eq!(gpu.read(&b), [4; 4]);
    });
}

#[test]
fn an_opaque_node_is_in_every_picture_with_the_reason() {
    for_each_gpu(|gpu| {
        let buffer = gpu.words(&[0; 4]);
        let (graph, nodes) = captured(gpu, OPAQUE.opaque(), |raw| {
            fill_words(gpu, raw, &buffer, 4);
            fill_words(gpu, raw, &buffer, 5);
        });
        for picture in [graph.to_dot(), graph.to_mermaid(), graph.to_json()] {
            assert!(picture.contains("opaque") && picture.contains("stay as it is"), "{picture}");
        }
        assert!(graph.to_json().contains("\"nodes\": 2"));
        assert_eq!(nodes[0].label(), "opaque#0");
    });
}

#[test]
fn an_opaque_node_travels_through_clones_and_embedding() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let buffer = gpu.words(&[0; 4]);
        let (inner, _) =
            captured(gpu, OPAQUE.opaque(), |raw| add_words(gpu, raw, function(&add), &buffer, 2));
        let (copy, _) = inner.deep_clone().unwrap();
        assert_eq!(inner.diff(&copy), []);
        let graph = gpu.graph();
        let first = graph.add_child(&[], &copy).unwrap();
        graph.add_child(&[&first], &inner).unwrap();
        drop((inner, copy));
        gpu.run(&graph);
        assert_eq!(gpu.read(&buffer), [4; 4]);
    });
}

#[test]
fn another_capture_is_another_parameter_that_executables_take_over() {
    for_each_gpu(|gpu| {
        let (a, b) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
        let capture =
            |buffer, value| captured(gpu, OPAQUE.opaque(), |raw| fill_words(gpu, raw, buffer, value)).0;
        let (one, other) = (capture(&a, 1), capture(&b, 2));
        let kinds: Vec<DifferenceKind> = one.diff(&other).iter().map(|difference| difference.kind).collect();
        assert_eq!(kinds, [DifferenceKind::Parameters]);
        let executable = one.instantiate().unwrap();
        executable.update(&other).unwrap();
        launch_and_wait(gpu, &executable);
        assert_eq!([&a, &b].map(|buffer| gpu.read(buffer)), [[0; 4], [2; 4]]);
        // Another number of nodes, which the driver does not take over in place.
        let (longer, _) = captured(gpu, OPAQUE.opaque(), |raw| {
            fill_words(gpu, raw, &a, 3);
            fill_words(gpu, raw, &b, 4);
        });
        executable.update(&longer).unwrap();
        launch_and_wait(gpu, &executable);
        assert_eq!([&a, &b].map(|buffer| gpu.read(buffer)), [[3; 4], [4; 4]]);
    });
}

#[test]
fn memory_of_gridlooms_in_an_opaque_graph_is_kept_where_the_driver_shows_it() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let buffers = [gpu.words(&[0; 4]), gpu.words(&[0; 4]), gpu.words(&[0; 4])];
        let watches = [0, 1, 2].map(|index: usize| Arc::downgrade(&buffers[index]));
        let (graph, nodes) = captured(gpu, OPAQUE.opaque(), |raw| {
            let [a, b, c] = &buffers;
            copy_bytes(gpu, raw, b.address(), a.address(), 16);
            add_words(gpu, raw, function(&add), c, 1);
        });
        drop(buffers);
        assert!(watches.iter().all(|watch| watch.strong_count() > 0));
        let executable = graph.instantiate().unwrap();
        drop((graph, nodes));
        launch_and_wait(gpu, &executable);
        assert!(watches.iter().all(|watch| watch.strong_count() > 0));
        drop(executable);
        while watches.iter().any(|watch| watch.strong_count() > 0) {
            release::flush();
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_copy_from_an_array_cannot_be_taken_apart() {
    on_simulator(|gpu| {
        let buffer = gpu.words(&[0; 4]);
        let parameters = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: std::ptr::without_provenance_mut(world(|world| world.fresh())),
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: buffer.address(),
            WidthInBytes: 16,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let (_, nodes) = plain(gpu, |raw| {
            unsafe { driver(gpu).cu_memcpy_3d_async(&parameters, raw.raw()) }.unwrap();
        });
        assert_eq!(kinds(&nodes), [NodeKind::Opaque]);
        assert!(reason(&nodes[0].operation().unwrap()).contains("array"));
    });
}

#[test]
fn an_old_driver_does_not_tell_of_programmatic_edges_so_the_graph_stays_whole() {
    on_simulator(|_| {
        let gpu = Gpu::new(super::simulator::device(Some(CudaVersion::new(12, 2))));
        let buffer = gpu.words(&[0; 4]);
        let mut early = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            ..Default::default()
        };
        let (_, nodes) = plain(&gpu, |raw| {
            fill_words(&gpu, raw, &buffer, 1);
            let mut address = buffer.address();
            let (mut value, mut words) = (1i32, 4u32);
            let mut arguments = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut words).cast()];
            let config = CUlaunchConfig {
                gridDimX: 1,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: 4,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: 0,
                hStream: raw.raw(),
                attrs: &mut early,
                numAttrs: 1,
            };
            let add = function(&gpu.kernel("add"));
            unsafe {
                driver(&gpu).cu_launch_kernel_ex(&config, add, arguments.as_mut_ptr(), std::ptr::null_mut())
            }
            .unwrap();
        });
        assert_eq!(kinds(&nodes), [NodeKind::Opaque]);
    });
}
