//! What is captured, and where it goes.

use super::common::*;
use super::raw::*;
use gridloom_core::Event;
use gridloom_core::backend::EventOptions;
use gridloom_core::capture::CaptureKind;
use gridloom_core::graph::EdgeKind::Full;
use gridloom_core::op::{CallbackOp, NodeKind, Operation};
use gridloom_cuda::foreign::{CaptureMode, ForeignStream};
use gridloom_cuda::sys::*;
use gridloom_cuda::{interop, release};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn what_foreign_code_enqueues_is_recorded_and_runs_with_every_launch() {
    for_each_gpu(|gpu| {
        let (a, b) = (gpu.words(&[0; 8]), gpu.words(&[0; 8]));
        let add = gpu.kernel("add");
        let (graph, nodes) = plain(gpu, |raw| {
            fill_words(gpu, raw, &a, 5);
            add_words(gpu, raw, function(&add), &a, 2);
            copy_bytes(gpu, raw, b.address(), a.address(), 32);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Memset, NodeKind::Kernel, NodeKind::Memcpy]);
        assert_eq!(edges(&graph), [(0, 1, Full), (1, 2, Full)]);
        assert_eq!(gpu.read(&b), [0; 8], "recorded, not run");
        let executable = graph.instantiate().unwrap();
        for _ in 0..2 {
            executable.launch(&gpu.stream).unwrap();
        }
        assert_eq!(gpu.read(&b), [7; 8]);
    });
}

#[test]
fn captured_nodes_come_after_what_was_recorded_before_and_before_what_is_recorded_next() {
    for_each_gpu(|gpu| {
        let (buffer, log) = (gpu.words(&[0; 4]), gpu.words(&[0; 8]));
        let append = gpu.kernel("append");
        let capture = gpu.stream.capture().unwrap();
        capture.add(gpu.append(&log, 1)).unwrap();
        let nodes = foreign(&capture, CaptureMode::ThreadLocal, |raw| {
            for tag in [2u32, 3] {
                let arguments = [&log.address().to_ne_bytes()[..], &tag.to_ne_bytes()];
                launch(gpu, raw.raw(), function(&append), 1, &arguments);
            }
            Ok(())
        })
        .unwrap();
        capture.add(gpu.append(&log, 4)).unwrap();
        capture.add(fill(&whole(&buffer), 9, 4)).unwrap();
        let graph = capture.end().unwrap();
        assert_eq!(nodes, graph.nodes()[1..3]);
        assert_eq!(edges(&graph), [(0, 1, Full), (1, 2, Full), (2, 3, Full), (3, 4, Full)]);
        gpu.run(&graph);
        assert_eq!(gpu.read(&log)[..5], [4, 1, 2, 3, 4]);
    });
}

#[test]
fn forks_of_the_code_are_branches_of_the_graph() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let (a, b) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
        let (side, forked, joined) = (TheirStream::new(gpu), TheirEvent::new(gpu), TheirEvent::new(gpu));
        let driver = driver(gpu);
        let (graph, _) = plain(gpu, |raw| unsafe {
            fill_words(gpu, raw, &a, 1);
            driver.cu_event_record(forked.raw, raw.raw()).unwrap();
            driver.cu_stream_wait_event(side.raw, forked.raw, 0).unwrap();
            driver.cu_memset_d32_async(b.address(), 2, 4, side.raw).unwrap();
            driver.cu_event_record(joined.raw, side.raw).unwrap();
            add_words(gpu, raw, function(&add), &a, 5);
            driver.cu_stream_wait_event(raw.raw(), joined.raw, 0).unwrap();
            copy_bytes(gpu, raw, a.address(), b.address(), 8);
        });
        let mut found = edges(&graph);
        found.sort_unstable_by_key(|&(from, to, _)| (from, to));
        assert_eq!(found, [(0, 1, Full), (0, 2, Full), (1, 3, Full), (2, 3, Full)]);
        gpu.run(&graph);
        assert_eq!(gpu.read(&a), [2, 2, 6, 6]);
    });
}

#[test]
fn code_that_enqueues_nothing_records_nothing() {
    for_each_gpu(|gpu| {
        let capture = gpu.stream.capture().unwrap();
        capture.add(Operation::Empty).unwrap();
        assert_eq!(foreign(&capture, CaptureMode::Global, |_| Ok(())).unwrap(), []);
        capture.add(Operation::Empty).unwrap();
        assert_eq!(edges(&capture.end().unwrap()), [(0, 1, Full)]);
    });
}

#[test]
fn foreign_code_is_captured_by_primary_forked_and_body_captures() {
    for_each_gpu(|gpu| {
        let kernel = gpu.kernel("add");
        let add = function(&kernel);
        let [a, b, c] = [(); 3].map(|()| gpu.words(&[0; 2]));
        let code = |buffer| {
            move |raw: &ForeignStream| {
                add_words(gpu, raw, add, buffer, 1);
                Ok(())
            }
        };
        let capture = gpu.stream.capture().unwrap();
        let forks = capture.fork(2).unwrap();
        foreign(&capture, CaptureMode::ThreadLocal, code(&a)).unwrap();
        assert_eq!(forks[0].kind(), CaptureKind::Forked);
        foreign(&forks[0], CaptureMode::ThreadLocal, code(&b)).unwrap();
        capture.join(&forks).unwrap();
        let spec = gridloom_core::graph::ConditionalSpec {
            form: gridloom_core::op::ConditionalForm::While,
            test: gridloom_core::op::Test::Count(3),
            test_first: true,
            max_passes: None,
            bodies: 1,
        };
        let (_, bodies) = capture.conditional(&spec).unwrap();
        bodies[0].fill(|body| foreign(body, CaptureMode::ThreadLocal, code(&c)).map(drop)).unwrap();
        gpu.run(&capture.end().unwrap());
        assert_eq!([&a, &b, &c].map(|buffer| gpu.read(buffer)), [[1, 1], [1, 1], [3, 3]]);
    });
}

unsafe extern "C" fn count(data: *mut c_void) {
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_host_call_keeps_function_and_data_and_the_owner_stays_until_nothing_can_call_it() {
    for_each_gpu(|gpu| {
        let calls = Arc::new(AtomicU32::new(0));
        let data = Arc::as_ptr(&calls).cast_mut().cast();
        let mode = CaptureMode::ThreadLocal.keeping(calls.clone());
        let (graph, nodes) = captured(gpu, mode, |raw| {
            unsafe { driver(gpu).cu_launch_host_func(raw.raw(), Some(count), data) }.unwrap();
        });
        let operation = nodes[0].operation().unwrap();
        assert!(matches!(operation, Operation::Callback(CallbackOp::Raw(_))), "{operation:?}");
        drop(operation);
        let executable = graph.instantiate().unwrap();
        drop((graph, nodes));
        for _ in 0..3 {
            executable.launch(&gpu.stream).unwrap();
        }
        gpu.stream.synchronize().unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        assert!(Arc::strong_count(&calls) > 1);
        drop(executable);
        while Arc::strong_count(&calls) > 1 {
            release::flush();
            std::thread::yield_now();
        }
    });
}

#[test]
fn an_event_of_gridlooms_comes_back_as_itself_and_another_is_borrowed() {
    for_each_gpu(|gpu| {
        let ours = Event::new(&gpu.backend, EventOptions::new().timing(false).blocking(true)).unwrap();
        let theirs = TheirEvent::new(gpu);
        let driver = driver(gpu);
        let (graph, nodes) = plain(gpu, |raw| unsafe {
            let (record, wait) = (
                CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0,
                CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL.0,
            );
            let our = interop::event_to_raw(&**ours.backend()).unwrap();
            driver.cu_event_record_with_flags(our, raw.raw(), record).unwrap();
            driver.cu_event_record_with_flags(theirs.raw, raw.raw(), record).unwrap();
            driver.cu_stream_wait_event(raw.raw(), our, wait).unwrap();
        });
        assert_eq!(kinds(&nodes), [NodeKind::EventRecord, NodeKind::EventRecord, NodeKind::EventWait]);
        let events: Vec<_> = nodes
            .iter()
            .map(|node| match node.operation().unwrap() {
                Operation::EventRecord(event) | Operation::EventWait(event) => event,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(Arc::ptr_eq(&events[0], ours.backend()) && Arc::ptr_eq(&events[2], ours.backend()));
        assert_eq!(interop::event_to_raw(&*events[1]).unwrap(), theirs.raw);
        gpu.run(&graph);
        drop((graph, nodes, events));
        gpu.stream.synchronize().unwrap();
    });
}

#[test]
fn what_the_code_ties_to_the_captured_graph_stays_until_nothing_can_use_it() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let (buffer, released) = (gpu.words(&[0; 4]), Arc::new(AtomicU32::new(0)));
        let driver = driver(gpu);
        let (graph, nodes) = plain(gpu, |raw| unsafe {
            let (mut status, mut captured) =
                (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, ptr::null_mut());
            let (mut id, mut before, mut count_of) = (0, ptr::null(), 0);
            driver
                .cu_stream_get_capture_info_v2(
                    raw.raw(),
                    &mut status,
                    &mut id,
                    &mut captured,
                    &mut before,
                    &mut count_of,
                )
                .unwrap();
            let mut object = ptr::null_mut();
            let tell = Arc::as_ptr(&released).cast_mut().cast();
            let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
            driver.cu_user_object_create(&mut object, tell, Some(count), 1, flags).unwrap();
            let flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
            driver.cu_graph_retain_user_object(captured, object, 1, flags).unwrap();
            add_words(gpu, raw, function(&add), &buffer, 1);
        });
        assert_eq!(kinds(&nodes), [NodeKind::Kernel]);
        let executable = graph.instantiate().unwrap();
        drop((graph, nodes));
        executable.launch(&gpu.stream).unwrap();
        gpu.stream.synchronize().unwrap();
        assert_eq!(released.load(Ordering::SeqCst), 0);
        drop(executable);
        while released.load(Ordering::SeqCst) == 0 {
            release::flush();
            std::thread::yield_now();
        }
    });
}
