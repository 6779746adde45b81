//! Host calls in a capture.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom::prelude::*;

use crate::support::{GraphKernels, eventually, for_each_device, refused};

static RAW_SUM: AtomicU32 = AtomicU32::new(0);

/// Adds the four bytes it is given.
unsafe extern "C" fn add_bytes(bytes: *mut c_void) {
    // SAFETY: the tests pass a copy of four bytes.
    let bytes = unsafe { bytes.cast::<[u8; 4]>().read_unaligned() };
    RAW_SUM.fetch_add(u32::from_le_bytes(bytes), Ordering::Relaxed);
}

/// Adds one to the counter it is given.
unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the launch.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn closures_run_in_their_place_at_each_launch_and_are_dropped_with_the_graph() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (x, calls) = (device.alloc_host::<i32>(1)?, Arc::new(AtomicU32::new(0)));
        let held = calls.clone();
        let graph = k.stream.capture_scope(move |capture| {
            capture.callback(move || {
                held.fetch_add(1, Ordering::Relaxed);
            })?;
            Ok(())
        })?;
        k.stream.memset(&x, 0i32)?;
        let executable = graph.instantiate()?;
        drop(graph);
        for _ in 0..3 {
            executable.launch(&k.stream)?;
        }
        k.stream.synchronize()?;
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        drop(executable);
        eventually("the closure is dropped", || Arc::strong_count(&calls) == 1);
        Ok(())
    });
}

#[test]
fn raw_functions_get_a_copy_of_their_bytes_or_the_very_pointer() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let counter = AtomicU32::new(0);
        let pointer = (&raw const counter).cast_mut().cast();
        RAW_SUM.store(0, Ordering::Relaxed);
        let graph = k.stream.capture_scope(|capture| {
            let mut bytes = 40u32.to_le_bytes();
            // SAFETY: the functions take what they are given here, on any thread; `counter`
            // outlives the launch below.
            unsafe {
                capture.callback_raw(add_bytes, &bytes)?;
                capture.callback_raw_pointer(count, pointer)?;
            }
            bytes.fill(0xff);
            Ok(())
        })?;
        k.run(&graph)?;
        assert_eq!(RAW_SUM.load(Ordering::Relaxed), 40);
        assert_eq!(counter.load(Ordering::Relaxed), 1);
        Ok(())
    });
}

#[test]
fn a_callback_that_is_refused_leaves_nothing_behind() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let held = Arc::new(());
        let capture = stream.capture()?;
        let fork = capture.fork(2)?.remove(0);
        capture.join([&fork])?;
        let copy = held.clone();
        refused(fork.callback(move || drop(copy.clone())), ErrorKind::InvalidState, &["joined"]);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(capture.end()?.is_empty());
        Ok(())
    });
}

#[test]
fn a_closure_is_dropped_with_the_capture_that_was_given_up() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let held = Arc::new(());
        let capture = stream.capture()?;
        let copy = held.clone();
        stream.callback(move || drop(copy.clone()))?;
        assert_eq!(Arc::strong_count(&held), 2);
        drop(capture);
        assert_eq!(Arc::strong_count(&held), 1);
        Ok(())
    });
}
