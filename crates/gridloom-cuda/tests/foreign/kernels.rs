//! Kernels and their arguments.

use super::raw::*;
use gridloom_core::graph::EdgeKind;
use gridloom_core::launch::Dim3;
use gridloom_core::memory::Base;
use gridloom_core::op::{NodeKind, PointerArg, PointerValue};
use gridloom_cuda::CudaVersion;
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::release;
use gridloom_cuda::sys::*;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

#[test]
fn a_kernel_of_gridlooms_comes_back_as_itself_with_its_arguments() {
    for_each_gpu(|gpu| {
        let (buffer, add) = (gpu.words(&[1; 8]), gpu.kernel("add"));
        let (_, nodes) = plain(gpu, |raw| add_words(gpu, raw, function(&add), &buffer, 41));
        let op = kernel_of(&nodes[0]);
        assert!(Arc::ptr_eq(op.kernel(), &add));
        assert_eq!((op.config().grid, op.config().block), (Dim3::ONE, Dim3::new(8, 1, 1)));
        assert_eq!(Some(&op.args().layout), add.params());
        assert_eq!(op.args().value(1), Some(&41i32.to_ne_bytes()[..]));
        let [PointerArg { index: 0, offset: 0, value: PointerValue::Region(region) }] =
            &op.args().pointers[..]
        else {
            panic!("{:?}", op.args());
        };
        assert!(matches!(&region.base, Base::Allocation(found) if Arc::ptr_eq(found, &buffer)));
    });
}

#[test]
fn a_kernel_of_others_has_its_name_and_keeps_the_owner() {
    for_each_gpu_since(CudaVersion::new(12, 4), |gpu| {
        let buffer = gpu.words(&[1; 4]);
        let module = Arc::new(TheirModule::load(gpu));
        let watch = Arc::downgrade(&module);
        let add = module.function(c"add");
        let (graph, nodes) = captured(gpu, CaptureMode::Global.keeping(module), |raw| {
            add_words(gpu, raw, add, &buffer, 1);
            add_words(gpu, raw, add, &buffer, 2);
        });
        assert_eq!(kernel_of(&nodes[0]).kernel().name(), "add");
        assert!(Arc::ptr_eq(kernel_of(&nodes[0]).kernel(), kernel_of(&nodes[1]).kernel()));
        let executable = graph.instantiate().unwrap();
        drop((graph, nodes));
        executable.launch(&gpu.stream).unwrap();
        assert_eq!(gpu.read(&buffer), [4; 4]);
        assert!(watch.strong_count() > 0);
        drop(executable);
        while watch.strong_count() > 0 {
            release::flush();
            std::thread::yield_now();
        }
    });
}

#[test]
fn memory_behind_an_address_in_a_structure_is_kept_by_the_node() {
    for_each_gpu(|gpu| {
        let (to, from) = (gpu.words(&[0; 4]), gpu.words(&[1, 2, 3, 4]));
        let watch = Arc::downgrade(&from);
        let kernel = gpu.kernel("move_words");
        let (graph, nodes) = plain(gpu, |raw| {
            launch(gpu, raw.raw(), function(&kernel), 4, &[&move_argument(&to, &from)]);
        });
        let op = kernel_of(&nodes[0]);
        let offsets: Vec<u32> = op.args().pointers.iter().map(|pointer| pointer.offset).collect();
        assert_eq!(offsets, [0, 8]);
        drop((op, from));
        assert!(watch.strong_count() > 0);
        gpu.run(&graph);
        assert_eq!(gpu.read(&to), [1, 2, 3, 4]);
        drop((graph, nodes));
        while watch.strong_count() > 0 {
            release::flush();
            std::thread::yield_now();
        }
    });
}

#[test]
fn arguments_given_as_one_buffer_are_read_like_any_others() {
    for_each_gpu(|gpu| {
        let (buffer, add) = (gpu.words(&[1; 4]), gpu.kernel("add"));
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&buffer.address().to_ne_bytes());
        bytes[8..12].copy_from_slice(&6i32.to_ne_bytes());
        bytes[12..].copy_from_slice(&4u32.to_ne_bytes());
        let (graph, nodes) = plain(gpu, |raw| {
            let mut size = bytes.len();
            let name = ptr::without_provenance_mut::<c_void>;
            let mut list =
                [name(1), bytes.as_mut_ptr().cast(), name(2), (&raw mut size).cast(), ptr::null_mut()];
            unsafe {
                driver(gpu).cu_launch_kernel(
                    function(&add),
                    1,
                    1,
                    1,
                    4,
                    1,
                    1,
                    0,
                    raw.raw(),
                    ptr::null_mut(),
                    list.as_mut_ptr(),
                )
            }
            .unwrap();
        });
        let op = kernel_of(&nodes[0]);
        assert_eq!(op.args().layout.len(), 3);
        assert_eq!(op.args().value(1), Some(&6i32.to_ne_bytes()[..]));
        assert_eq!(op.args().pointers.len(), 1);
        gpu.run(&graph);
        assert_eq!(gpu.read(&buffer), [7; 4]);
    });
}

#[test]
fn a_launch_that_may_start_early_gives_a_programmatic_edge_and_attributes_are_read() {
    for_each_gpu_since(CudaVersion::new(12, 3), |gpu| {
        let (buffer, add) = (gpu.words(&[1; 4]), gpu.kernel("add"));
        let launch = |raw: CUstream, attributes: &mut [CUlaunchAttribute]| {
            let (address, value, words) = (buffer.address(), 1i32, 4u32);
            let mut arguments: [*mut c_void; 3] = [
                (&raw const address).cast_mut().cast(),
                (&raw const value).cast_mut().cast(),
                (&raw const words).cast_mut().cast(),
            ];
            let config = CUlaunchConfig {
                gridDimX: 1,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: 4,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: 64,
                hStream: raw,
                attrs: attributes.as_mut_ptr(),
                numAttrs: attributes.len() as u32,
            };
            unsafe {
                driver(gpu).cu_launch_kernel_ex(
                    &config,
                    function(&add),
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            }
            .unwrap();
        };
        let mut cooperative = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            ..Default::default()
        };
        cooperative.value.cooperative = 1;
        let mut early = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            ..Default::default()
        };
        early.value.programmaticStreamSerializationAllowed = 1;
        let (graph, nodes) = plain(gpu, |raw| {
            launch(raw.raw(), &mut [cooperative]);
            launch(raw.raw(), &mut []);
            launch(raw.raw(), &mut [early]);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Kernel; 3]);
        assert_eq!(edges(&graph), [(0, 1, EdgeKind::Full), (1, 2, EdgeKind::Programmatic)]);
        let configs = [0, 1, 2].map(|index: usize| *kernel_of(&nodes[index]).config());
        assert_eq!(configs.map(|config| config.cooperative), [true, false, false]);
        assert_eq!(configs.map(|config| config.programmatic), [false, false, true]);
        assert_eq!(configs.map(|config| config.shared), [64; 3]);
        graph.instantiate().unwrap();
    });
}
