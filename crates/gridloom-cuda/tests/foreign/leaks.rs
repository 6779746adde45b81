//! Nothing of the driver's stays behind, whether a capture succeeds or fails.

use super::common::Gpu;
use super::raw::*;
use super::simulator::{self, Alive, Failure, uncounted};
use gridloom_core::{Error, ErrorKind};
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::release;
use gridloom_cuda::sys::{CUevent_record_flags, CUresult};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What exists, once what was let go of is gone: memory is freed on a stream.
fn alive(gpu: &Gpu) -> Alive {
    release::flush();
    unsafe { driver(gpu).cu_ctx_synchronize() }.unwrap();
    simulator::alive()
}

#[test]
fn streams_and_graphs_of_captures_are_gone_with_the_last_node() {
    on_simulator(|gpu| {
        let (buffer, before) = (gpu.words(&[0; 4]), alive(gpu));
        for mode in [CaptureMode::ThreadLocal.into(), CaptureMode::ThreadLocal.opaque()] {
            let (graph, nodes) = captured(gpu, mode, |raw| unsafe {
                let mut scratch = 0;
                add_words(gpu, raw, function(&gpu.kernel("add")), &buffer, 1);
                driver(gpu).cu_mem_alloc_async(&mut scratch, 16, raw.raw()).unwrap();
                driver(gpu).cu_mem_free_async(scratch, raw.raw()).unwrap();
            });
            gpu.run(&graph);
            drop((graph, nodes));
            gpu.stream.synchronize().unwrap();
            assert_eq!(alive(gpu), before);
        }
    });
}

#[test]
fn a_capture_that_fails_leaves_nothing() {
    on_simulator(|gpu| {
        let (buffer, before) = (gpu.words(&[0; 4]), alive(gpu));
        let capture = gpu.stream.capture().unwrap();
        for way in 0..4 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                foreign(&capture, CaptureMode::ThreadLocal, |raw| {
                    fill_words(gpu, raw, &buffer, 1);
                    match way {
                        0 => return Err(Error::new(ErrorKind::Io, "no")),
                        1 => panic!("no"),
                        2 => {
                            let mut address = 0;
                            let _ = unsafe { driver(gpu).cu_mem_alloc(&mut address, 8) };
                        }
                        _ => {
                            let _ = unsafe { driver(gpu).cu_stream_synchronize(raw.raw()) };
                        }
                    }
                    Ok(())
                })
            }));
            assert!(outcome.is_err() || outcome.is_ok_and(|outcome| outcome.is_err()), "{way}");
            assert_eq!(alive(gpu), before, "{way}");
        }
    });
}

#[test]
fn each_call_of_the_driver_that_fails_leaves_the_capture_as_it_was_or_the_graph_whole_and_nothing_behind() {
    on_simulator(|gpu| {
        let (buffer, add) = (gpu.words(&[0; 4]), gpu.kernel("add"));
        let event = TheirEvent::new(gpu);
        let (mut failed, mut whole, mut nth) = (0, 0, 0);
        loop {
            let before = alive(gpu);
            let capture = gpu.stream.capture().unwrap();
            let failure = Failure::of_call(nth, CUresult::CUDA_ERROR_UNKNOWN);
            let outcome = foreign(&capture, CaptureMode::ThreadLocal, |raw| {
                uncounted(|| unsafe {
                    let mut scratch = 0;
                    driver(gpu).cu_mem_alloc_async(&mut scratch, 16, raw.raw()).unwrap();
                    add_words(gpu, raw, function(&add), &buffer, 1);
                    copy_bytes(gpu, raw, scratch, buffer.address(), 16);
                    fill_words(gpu, raw, &buffer, 2);
                    let external = CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0;
                    driver(gpu).cu_event_record_with_flags(event.raw, raw.raw(), external).unwrap();
                    driver(gpu).cu_mem_free_async(scratch, raw.raw()).unwrap();
                });
                Ok(())
            });
            let done = failure.failed().is_empty();
            drop(failure);
            match outcome {
                Ok(nodes) if nodes.len() == 1 => whole += 1,
                Ok(nodes) => assert_eq!(nodes.len(), 6, "an attribute that cannot be read is not set"),
                Err(error) => {
                    assert_eq!(error.driver().unwrap().code, CUresult::CUDA_ERROR_UNKNOWN.0, "{error}");
                    failed += 1;
                }
            }
            capture.close();
            drop(capture);
            assert_eq!(alive(gpu), before, "call {nth}");
            if done {
                break;
            }
            nth += 1;
        }
        assert!(failed >= 3 && whole >= 10, "{failed} refused, {whole} left whole, of {nth}");
    });
}
