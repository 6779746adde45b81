//! Captures that go wrong end cleanly, say why, and leave the capture around them as it was.

use super::common::*;
use super::raw::*;
use gridloom_core::memory::MemoryKind;
use gridloom_core::null::NullDevice;
use gridloom_core::op::Operation;
use gridloom_core::{Capture, Error, ErrorKind, Result, Stream};
use gridloom_cuda::foreign::{CaptureMode, ForeignStream};
use gridloom_cuda::sys::*;
use gridloom_cuda::{interop, release};
use std::panic::{AssertUnwindSafe, catch_unwind};

const MODES: [CaptureMode; 3] = [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];

/// Runs code that fails within a capture that has recorded something and goes on afterwards.
fn survives(gpu: &Gpu, attempt: impl FnOnce(&Capture)) {
    let buffer = gpu.words(&[0; 2]);
    let capture = gpu.stream.capture().unwrap();
    capture.add(fill(&whole(&buffer), 1, 4)).unwrap();
    attempt(&capture);
    foreign(&capture, CaptureMode::ThreadLocal, |raw| {
        add_words(gpu, raw, function(&gpu.kernel("add")), &buffer, 1);
        Ok(())
    })
    .unwrap();
    let graph = capture.end().unwrap();
    assert_eq!((graph.len(), graph.edges().len()), (2, 1), "nothing was added by the failed one");
    gpu.run(&graph);
    assert_eq!(gpu.read(&buffer), [2; 2]);
}

fn fails(gpu: &Gpu, mode: CaptureMode, code: impl FnOnce(&ForeignStream)) -> Error {
    let mut found = None;
    survives(gpu, |capture| {
        let outcome = foreign(capture, mode, |raw| {
            code(raw);
            Ok(())
        });
        found = Some(outcome.unwrap_err());
    });
    found.unwrap()
}

#[test]
fn an_error_of_the_code_is_returned_as_it_is() {
    for_each_gpu(|gpu| {
        survives(gpu, |capture| {
            let buffer = gpu.words(&[0; 2]);
            let error = foreign(capture, CaptureMode::Global, |raw| {
                fill_words(gpu, raw, &buffer, 3);
                Err(Error::new(ErrorKind::Io, "the library gave up"))
            })
            .unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the library gave up"));
        });
    });
}

#[test]
fn a_panic_of_the_code_goes_on_and_ends_the_capture() {
    for_each_gpu(|gpu| {
        survives(gpu, |capture| {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                foreign(capture, CaptureMode::Global, |_| -> Result<()> { panic!("gone") })
            }));
            assert_eq!(*outcome.unwrap_err().downcast_ref::<&str>().unwrap(), "gone");
        });
    });
}

#[test]
fn a_prohibited_call_invalidates_the_capture_unless_it_is_relaxed() {
    for_each_gpu(|gpu| {
        let buffer = gpu.words(&[0; 2]);
        let allocate = |raw: &ForeignStream| {
            let mut address = 0;
            fill_words(gpu, raw, &buffer, 1);
            let allocated = unsafe { driver(gpu).cu_mem_alloc(&mut address, 64) };
            if allocated.is_ok() {
                unsafe { driver(gpu).cu_mem_free(address) }.unwrap();
            }
            allocated.is_ok()
        };
        for mode in [CaptureMode::Global, CaptureMode::ThreadLocal] {
            let error = fails(gpu, mode, |raw| assert!(!allocate(raw)));
            assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
            assert!(
                error.message().contains("invalidated") && error.message().contains("Relaxed"),
                "{error}"
            );
            assert_eq!(error.driver().unwrap().code, 901);
        }
        let (graph, _) = captured(gpu, CaptureMode::Relaxed, |raw| assert!(allocate(raw)));
        assert_eq!(graph.len(), 1);
    });
}

#[test]
fn only_the_global_mode_prohibits_calls_to_other_threads() {
    for_each_gpu(|gpu| {
        let allocates_elsewhere = || {
            std::thread::scope(|scope| {
                let elsewhere = scope.spawn(|| {
                    let (driver, mut address) = (driver(gpu), 0);
                    unsafe {
                        driver.cu_ctx_push_current(gpu.device.context().raw()).unwrap();
                        let allocated = driver.cu_mem_alloc(&mut address, 64).is_ok();
                        if allocated {
                            driver.cu_mem_free(address).unwrap();
                        }
                        driver.cu_ctx_pop_current(&mut std::ptr::null_mut()).unwrap();
                        allocated
                    }
                });
                elsewhere.join().unwrap()
            })
        };
        let error = fails(gpu, CaptureMode::Global, |_| assert!(!allocates_elsewhere()));
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        for mode in [CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            captured(gpu, mode, |_| assert!(allocates_elsewhere()));
        }
    });
}

#[test]
fn what_gridloom_releases_meanwhile_does_not_disturb_the_strictest_mode() {
    for_each_gpu(|gpu| {
        let pinned = gpu.backend.allocate(64, MemoryKind::Host).unwrap();
        let buffer = gpu.words(&[0; 2]);
        gpu.stream.enqueue(fill(&whole(&buffer), 1, 4)).unwrap();
        let (graph, _) = captured(gpu, CaptureMode::Global, |raw| {
            release::hand_over(Box::new(pinned));
            release::flush();
            fill_words(gpu, raw, &buffer, 2);
        });
        assert_eq!(graph.len(), 1);
    });
}

#[test]
fn a_fork_that_is_not_joined_is_named_as_the_reason() {
    for_each_gpu(|gpu| {
        for mode in MODES {
            let (side, event) = (TheirStream::new(gpu), TheirEvent::new(gpu));
            let buffer = gpu.words(&[0; 2]);
            let error = fails(gpu, mode, |raw| unsafe {
                driver(gpu).cu_event_record(event.raw, raw.raw()).unwrap();
                driver(gpu).cu_stream_wait_event(side.raw, event.raw, 0).unwrap();
                driver(gpu).cu_memset_d32_async(buffer.address(), 1, 2, side.raw).unwrap();
            });
            assert_eq!(error.kind(), ErrorKind::InvalidState);
            assert!(error.message().contains("did not join"), "{error}");
            // The forked stream is an ordinary one again.
            unsafe { driver(gpu).cu_memset_d32_async(buffer.address(), 5, 2, side.raw) }.unwrap();
            unsafe { driver(gpu).cu_stream_synchronize(side.raw) }.unwrap();
            assert_eq!(gpu.read(&buffer), [5; 2]);
        }
    });
}

#[test]
fn waiting_for_work_outside_of_the_capture_invalidates_it() {
    for_each_gpu(|gpu| {
        let event = TheirEvent::new(gpu);
        unsafe {
            driver(gpu).cu_event_record(event.raw, interop::stream_to_raw(&**gpu.stream.backend()).unwrap())
        }
        .unwrap();
        let error = fails(gpu, CaptureMode::Relaxed, |raw| {
            let waited = unsafe { driver(gpu).cu_stream_wait_event(raw.raw(), event.raw, 0) }.unwrap_err();
            assert_eq!(waited.code(), Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
        });
        assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
    });
}

#[test]
fn waiting_for_the_captured_stream_invalidates_the_capture() {
    for_each_gpu(|gpu| {
        let error = fails(gpu, CaptureMode::Relaxed, |raw| {
            assert!(unsafe { driver(gpu).cu_stream_synchronize(raw.raw()) }.is_err());
        });
        assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
    });
}

#[test]
fn code_that_ends_the_capture_itself_is_told_to_leave_that_alone() {
    for_each_gpu(|gpu| {
        let error = fails(gpu, CaptureMode::ThreadLocal, |raw| unsafe {
            let mut graph = std::ptr::null_mut();
            driver(gpu).cu_stream_end_capture(raw.raw(), &mut graph).unwrap();
            driver(gpu).cu_graph_destroy(graph).unwrap();
        });
        assert!(error.message().contains("captur"), "{error}");
    });
}

#[test]
fn a_capture_that_does_not_record_refuses_and_the_code_is_not_run() {
    for_each_gpu(|gpu| {
        let capture = gpu.stream.capture().unwrap();
        capture.end().unwrap();
        let error = foreign(&capture, CaptureMode::Global, |_| panic!("not to be run")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.message().contains("has ended"), "{error}");
    });
}

#[test]
fn a_device_that_is_no_gpu_refuses_and_the_code_is_not_run() {
    let stream = Stream::new(&NullDevice::new()).unwrap();
    let capture = stream.capture().unwrap();
    let error = foreign(&capture, CaptureMode::Global, |_| panic!("not to be run")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.message().contains("needs a CUDA device"), "{error}");
    capture.add(Operation::Empty).unwrap();
    assert_eq!(capture.end().unwrap().len(), 1);
}

#[test]
fn a_stream_that_the_driver_captures_cannot_be_borrowed() {
    for_each_gpu(|gpu| {
        captured(gpu, CaptureMode::ThreadLocal, |raw| {
            let error = unsafe { interop::stream_from_raw(&gpu.device, raw.raw(), None) }.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState);
        });
    });
}
