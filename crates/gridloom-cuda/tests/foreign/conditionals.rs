//! Foreign code in bodies of conditionals, and conditionals in foreign code.

use super::common::*;
use super::raw::*;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::op::{ConditionalForm, NodeKind, Test};
use gridloom_cuda::CudaVersion;
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::release;
use gridloom_cuda::sys::*;
use std::ffi::c_void;
use std::ptr;

fn three_times() -> ConditionalSpec {
    ConditionalSpec {
        form: ConditionalForm::While,
        test: Test::Count(3),
        test_first: true,
        max_passes: None,
        bodies: 1,
    }
}

#[test]
fn an_opaque_graph_of_kernels_runs_in_a_body_that_the_device_drives() {
    for_each_gpu_since(CudaVersion::new(12, 4), |gpu| {
        let add = gpu.kernel("add");
        let buffer = gpu.words(&[0; 4]);
        let capture = gpu.stream.capture().unwrap();
        let (node, bodies) = capture.conditional(&three_times()).unwrap();
        bodies[0]
            .fill(|body| {
                foreign(body, CaptureMode::ThreadLocal.opaque(), |raw| {
                    add_words(gpu, raw, function(&add), &buffer, 2);
                    Ok(())
                })
                .map(drop)
            })
            .unwrap();
        let executable = capture.end().unwrap().instantiate().unwrap();
        assert!(executable.report().conditionals[0].native, "{:?}", executable.report());
        executable.launch(&gpu.stream).unwrap();
        assert_eq!(gpu.read(&buffer), [6; 4]);
        assert_eq!(executable.passes(&node).unwrap(), 3);
    });
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

#[test]
fn an_opaque_graph_with_a_host_call_has_the_host_drive_the_body_around_it() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let buffer = gpu.words(&[0; 4]);
        let capture = gpu.stream.capture().unwrap();
        let (_, bodies) = capture.conditional(&three_times()).unwrap();
        bodies[0]
            .fill(|body| {
                foreign(body, CaptureMode::ThreadLocal.opaque(), |raw| {
                    add_words(gpu, raw, function(&add), &buffer, 2);
                    unsafe { driver(gpu).cu_launch_host_func(raw.raw(), Some(nothing), ptr::null_mut()) }
                        .unwrap();
                    Ok(())
                })
                .map(drop)
            })
            .unwrap();
        let executable = capture.end().unwrap().instantiate().unwrap();
        let report = executable.report();
        let old = gpu.device.driver().version() < CudaVersion::new(12, 4);
        let reason = if old { "12.4" } else { "opaque" };
        assert!(!report.conditionals[0].native && report.conditionals[0].reason.contains(reason));
        executable.launch(&gpu.stream).unwrap();
        gpu.stream.synchronize().unwrap();
        assert_eq!(gpu.read(&buffer), [6; 4]);
    });
}

/// Adds, to the graph that is captured, an IF whose condition starts with `value` and whose body
/// fills a buffer.
fn add_conditional(gpu: &Gpu, stream: CUstream, value: u32, dst: u64) {
    let (mut status, mut graph, mut handle) =
        (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, ptr::null_mut(), 0);
    let (mut id, mut before, mut data, mut count) = (0, ptr::null(), ptr::null(), 0);
    let (driver, context) = (driver(gpu), gpu.device.context().raw());
    unsafe {
        driver
            .cu_stream_get_capture_info_v3(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                &mut before,
                &mut data,
                &mut count,
            )
            .unwrap();
        driver
            .cu_graph_conditional_handle_create(
                &mut handle,
                graph,
                context,
                value,
                CU_GRAPH_COND_ASSIGN_DEFAULT,
            )
            .unwrap();
        let mut parameters = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            size: 1,
            phGraph_out: ptr::null_mut(),
            ctx: context,
        };
        let (mut node, mut inner) = (ptr::null_mut(), ptr::null_mut());
        driver.cu_graph_add_node(&mut node, graph, before, data, count, &mut parameters).unwrap();
        let body = *parameters.__bindgen_anon_1.conditional.phGraph_out;
        let fill = CUDA_MEMSET_NODE_PARAMS { dst, pitch: 16, value: 7, elementSize: 4, width: 4, height: 1 };
        driver.cu_graph_add_memset_node(&mut inner, body, ptr::null(), 0, &fill, context).unwrap();
        // CU_STREAM_SET_CAPTURE_DEPENDENCIES
        let flags = 1;
        driver.cu_stream_update_capture_dependencies_v2(stream, &mut node, ptr::null(), 1, flags).unwrap();
    }
}

#[test]
fn a_graph_with_a_conditional_stays_opaque_and_runs_by_itself_in_its_place() {
    for_each_gpu_since(CudaVersion::new(12, 4), |gpu| {
        let add = gpu.kernel("add");
        let (chosen, skipped, out) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]), gpu.words(&[0; 4]));
        let capture = gpu.stream.capture().unwrap();
        capture.add(fill(&whole(&chosen), 1, 4)).unwrap();
        let nodes = foreign(&capture, CaptureMode::ThreadLocal, |raw| {
            add_conditional(gpu, raw.raw(), 1, chosen.address());
            add_conditional(gpu, raw.raw(), 0, skipped.address());
            add_words(gpu, raw, function(&add), &chosen, 1);
            Ok(())
        })
        .unwrap();
        capture.add(copy(&whole(&out), &whole(&chosen))).unwrap();
        let graph = capture.end().unwrap();
        assert_eq!(kinds(&nodes), [NodeKind::Opaque]);
        // A driver compiles a graph with a conditional once at a time.
        for _ in 0..2 {
            let executable = graph.instantiate().unwrap();
            for _ in 0..2 {
                executable.launch(&gpu.stream).unwrap();
                assert_eq!([&out, &skipped].map(|buffer| gpu.read(buffer)), [[8; 4], [0; 4]]);
            }
            gpu.stream.synchronize().unwrap();
            drop(executable);
            release::flush();
        }
    });
}
