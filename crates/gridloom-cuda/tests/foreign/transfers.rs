//! Copies, fills and allocations.

use super::raw::*;
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::memory::{Base, MemoryKind};
use gridloom_core::op::{NodeKind, Operation};
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::sys::*;
use std::sync::Arc;

#[test]
fn a_copy_in_three_dimensions_keeps_its_extents_and_starts_where_it_did() {
    for_each_gpu(|gpu| {
        // Two planes of three rows of four words; the copy takes two rows of two words of each
        // plane, from the second row and word on.
        let words: Vec<i32> = (0..24).collect();
        let (src, dst) = (gpu.words(&words), gpu.words(&[-1; 8]));
        let parameters = CUDA_MEMCPY3D {
            srcXInBytes: 4,
            srcY: 1,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: src.address(),
            srcPitch: 16,
            srcHeight: 3,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: dst.address(),
            dstPitch: 8,
            dstHeight: 2,
            WidthInBytes: 8,
            Height: 2,
            Depth: 2,
            ..Default::default()
        };
        let (graph, nodes) = plain(gpu, |raw| {
            unsafe { driver(gpu).cu_memcpy_3d_async(&parameters, raw.raw()) }.unwrap();
        });
        let Operation::Memcpy(op) = nodes[0].operation().unwrap() else { panic!("{nodes:?}") };
        assert_eq!((op.width, op.height, op.depth), (8, 2, 2));
        assert_eq!((op.src.region.offset, op.src.pitch, op.src.rows), (20, 16, 3));
        assert!(matches!(&op.src.region.base, Base::Allocation(found) if Arc::ptr_eq(found, &src)));
        gpu.run(&graph);
        assert_eq!(gpu.read(&dst), [5, 6, 9, 10, 17, 18, 21, 22]);
    });
}

#[test]
fn a_copy_of_host_memory_reads_it_at_each_launch_and_keeps_its_owner() {
    for_each_gpu(|gpu| {
        let (mut host, dst) = (Arc::new([1i32, 2, 3, 4]), gpu.words(&[0; 4]));
        let address = Arc::get_mut(&mut host).unwrap().as_mut_ptr();
        let (graph, nodes) = captured(gpu, CaptureMode::ThreadLocal.keeping(host.clone()), |raw| {
            unsafe { driver(gpu).cu_memcpy_h_to_d_async(dst.address(), address.cast(), 16, raw.raw()) }
                .unwrap();
        });
        let Operation::Memcpy(op) = nodes[0].operation().unwrap() else { panic!("{nodes:?}") };
        let Base::Allocation(source) = &op.src.region.base else { panic!("{op:?}") };
        assert_eq!((source.kind(), source.address()), (MemoryKind::Host, address as u64));
        assert_eq!(Arc::strong_count(&host), 2);
        gpu.run(&graph);
        assert_eq!(gpu.read(&dst), [1, 2, 3, 4]);
        unsafe { address.write(9) };
        gpu.run(&graph);
        assert_eq!(gpu.read(&dst), [9, 2, 3, 4]);
    });
}

#[test]
fn memory_that_the_code_allocates_and_frees_is_the_graphs_own() {
    for_each_gpu(|gpu| {
        let (out, add) = (gpu.words(&[0; 4]), gpu.kernel("add"));
        let driver = driver(gpu);
        let (graph, nodes) = plain(gpu, |raw| unsafe {
            let mut scratch = 0;
            driver.cu_mem_alloc_async(&mut scratch, 16, raw.raw()).unwrap();
            driver.cu_memset_d32_async(scratch, 10, 4, raw.raw()).unwrap();
            let arguments = [&scratch.to_ne_bytes()[..], &5i32.to_ne_bytes(), &4u32.to_ne_bytes()];
            launch(gpu, raw.raw(), function(&add), 4, &arguments);
            driver.cu_memcpy_async(out.address(), scratch + 4, 12, raw.raw()).unwrap();
            driver.cu_mem_free_async(scratch, raw.raw()).unwrap();
        });
        assert_eq!(
            kinds(&nodes),
            [NodeKind::Alloc, NodeKind::Memset, NodeKind::Kernel, NodeKind::Memcpy, NodeKind::Free]
        );
        // Several at once, and again and again, as for any graph.
        let executables = [graph.instantiate().unwrap(), graph.instantiate().unwrap()];
        for executable in executables.iter().chain(&executables) {
            executable.launch(&gpu.stream).unwrap();
        }
        assert_eq!(gpu.read(&out), [15, 15, 15, 0]);
    });
}

#[test]
fn memory_that_the_code_allocates_and_leaves_outlives_the_launch() {
    for_each_gpu(|gpu| {
        let (graph, nodes) = plain(gpu, |raw| unsafe {
            let mut left = 0;
            driver(gpu).cu_mem_alloc_async(&mut left, 16, raw.raw()).unwrap();
            driver(gpu).cu_memset_d32_async(left, 6, 4, raw.raw()).unwrap();
        });
        let options = InstantiateOptions { auto_free_on_launch: true, ..Default::default() };
        let executable = graph.instantiate_with(&options).unwrap();
        executable.launch(&gpu.stream).unwrap();
        let left = executable.outliving(&nodes[0]).unwrap();
        assert_eq!(gpu.read(&left), [6; 4]);
    });
}
