//! Callbacks on streams.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gridloom::prelude::*;

use crate::support::{Gate, eventually, for_each_device, refused};

#[test]
fn a_closure_runs_in_order_with_the_devices_work() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let host = device.alloc_host::<i32>(1)?;
        host.write(&[0])?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        for value in 1..=3 {
            stream.memset(&host, value)?;
            let (seen, host) = (seen.clone(), host.clone());
            stream.callback(move || {
                // SAFETY: the fill before is done, and the next one comes after this callback.
                let value = unsafe { host.as_slice() }.expect("host memory")[0];
                seen.lock().expect("no panic").push(value);
            })?;
        }
        stream.synchronize()?;
        assert_eq!(*seen.lock().expect("no panic"), [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn a_closure_keeps_its_state_between_launches_of_a_graph() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (out, mut calls) = (seen.clone(), 0);
        graph.callback(move || {
            calls += 1;
            out.lock().expect("no panic").push(calls);
        })?;
        let executable = graph.instantiate()?;
        for _ in 0..3 {
            executable.launch(&stream)?;
        }
        stream.synchronize()?;
        assert_eq!(*seen.lock().expect("no panic"), [1, 2, 3]);
        Ok(())
    });
}

/// Adds a number, given as its bytes, to a counter, given as its address.
extern "C" fn add_bytes(data: *mut c_void) {
    // SAFETY: the tests below pass 16 bytes: the address of a live counter and a number. They need
    // not be aligned.
    unsafe {
        let counter = data.cast::<u64>().read_unaligned() as *const AtomicU64;
        let number = data.cast::<u64>().add(1).read_unaligned();
        (*counter).fetch_add(number, Ordering::SeqCst);
    }
}

extern "C" fn add_one(counter: *mut c_void) {
    // SAFETY: the tests below pass the address of a live counter.
    unsafe { (*counter.cast::<AtomicU64>()).fetch_add(1, Ordering::SeqCst) };
}

static EMPTY_CALLS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_call(_: *mut c_void) {
    EMPTY_CALLS.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_raw_function_gets_a_copy_of_the_callers_bytes() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let counter = AtomicU64::new(0);
        let mut bytes = (&raw const counter as u64).to_ne_bytes().to_vec();
        bytes.extend(5u64.to_ne_bytes());
        let graph = Graph::new(device);
        // SAFETY: the counter outlives all launches, which are waited for.
        unsafe {
            stream.callback_raw(add_bytes, &bytes)?;
            graph.callback_raw(add_bytes, &bytes)?;
        }
        bytes.fill(0);
        drop(bytes);
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(counter.load(Ordering::SeqCst), 15);
        Ok(())
    });
}

#[test]
fn a_raw_function_gets_the_very_pointer_or_no_bytes() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let counter = AtomicU64::new(0);
        let pointer = (&raw const counter).cast_mut().cast::<c_void>();
        EMPTY_CALLS.store(0, Ordering::SeqCst);
        // SAFETY: the counter outlives the work, which is waited for; the other function ignores
        // its argument.
        unsafe {
            stream.callback_raw_pointer(add_one, pointer)?;
            stream.callback_raw(count_call, &[])?;
        }
        stream.synchronize()?;
        assert_eq!((counter.load(Ordering::SeqCst), EMPTY_CALLS.load(Ordering::SeqCst)), (1, 1));
        Ok(())
    });
}

#[test]
fn a_panic_becomes_the_launchs_error_and_names_the_node() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        graph.callback(|| panic!("{} went wrong", "something"))?.named("notify")?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        let says = ["notify", "something went wrong"];
        refused(stream.synchronize(), ErrorKind::CallbackPanicked, &says);
        let error = executable.take_error().expect("the executable reports it too");
        assert_eq!((error.kind(), error.node()), (ErrorKind::CallbackPanicked, Some("notify")));
        assert!(executable.take_error().is_none(), "once");
        Ok(())
    });
}

#[test]
fn using_the_device_inside_a_callback_is_refused_and_does_not_hang() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (buffer, event) = (device.buffer_from(&[1, 2])?, device.event()?);
        let executable = Arc::new(Graph::new(device).instantiate()?);
        let answers = Arc::new(Mutex::new(Vec::new()));
        let out = answers.clone();
        let (inner, device_handle) = (stream.clone(), device.clone());
        stream.callback(move || {
            let tries = [
                inner.synchronize(),
                inner.memset(&buffer, 0u8),
                inner.record(&event),
                event.synchronize(),
                device_handle.synchronize(),
                executable.launch(&inner),
                buffer.to_vec().map(drop),
                buffer.write(&[3, 4]),
            ];
            out.lock().expect("no panic").extend(tries);
        })?;
        stream.synchronize()?;
        let answers = std::mem::take(&mut *answers.lock().expect("no panic"));
        assert_eq!(answers.len(), 8);
        for answer in answers {
            refused(answer, ErrorKind::InvalidState, &["callback"]);
        }
        Ok(())
    });
}

#[test]
fn a_callbacks_captures_are_dropped_after_it_ran_on_a_stream() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let alive = Arc::new(());
        let held = alive.clone();
        let gate = Gate::closed();
        stream.callback(gate.waiter())?;
        stream.callback(move || drop(held.clone()))?;
        assert_eq!(Arc::strong_count(&alive), 2);
        gate.open();
        stream.synchronize()?;
        eventually("the closure is dropped", || Arc::strong_count(&alive) == 1);
        Ok(())
    });
}

#[test]
fn a_callback_given_a_buffer_reads_what_the_work_before_it_left() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (x, host) = (device.alloc::<i32>(4)?, device.alloc_host::<i32>(8)?);
        host.write(&[0; 8])?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let see = |seen: &Arc<Mutex<Vec<Vec<i32>>>>| {
            let seen = seen.clone();
            move |values: &[i32]| seen.lock().expect("no panic").push(values.to_vec())
        };
        let graph = Graph::new(device);
        let copied = graph.memset(&x, 7i32)?.memcpy(&host.slice(2..6)?, &x)?;
        let whole = copied.callback_with(&host, see(&seen))?;
        whole.callback_with(&host.slice(1..3)?, see(&seen))?.memset(&host, 1i32)?;
        assert!(graph.check().is_empty() && graph.check().unknown == 0, "{}", graph.check());
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        stream.callback_with(&host, see(&seen))?;
        stream.synchronize()?;
        let expected = [vec![0, 0, 7, 7, 7, 7, 0, 0], vec![0, 7], vec![1; 8]];
        assert_eq!(*seen.lock().expect("no panic"), expected);

        // Other memory, and a capture.
        let other = device.alloc_host::<i32>(1)?;
        other.write(&[5])?;
        executable.node(&whole)?.set_callback_with(&other, see(&seen))?;
        let captured = stream.capture_scope(|_| stream.callback_with(&other, see(&seen)))?;
        executable.launch(&stream)?;
        captured.instantiate()?.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(seen.lock().expect("no panic")[3..], [vec![5], vec![1, 7], vec![5]]);
        Ok(())
    });
}

#[test]
fn a_callback_keeps_the_buffer_it_is_given() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let host = device.alloc_host::<u8>(3)?;
        host.write(&[1, 2, 3])?;
        let sum = Arc::new(AtomicU32::new(0));
        let graph = Graph::new(device);
        let out = sum.clone();
        graph.callback_with(&host, move |bytes| {
            out.fetch_add(bytes.iter().map(|&byte| u32::from(byte)).sum(), Ordering::Relaxed);
        })?;
        let executable = graph.instantiate()?;
        drop(graph);
        host.close();
        drop(host);
        executable.launch(&stream)?;
        drop(executable);
        stream.synchronize()?;
        assert_eq!(sum.load(Ordering::Relaxed), 6);
        Ok(())
    });
}

#[test]
fn memory_that_the_host_cannot_read_in_a_callback_is_refused() {
    for_each_device(|device| {
        let (stream, graph) = (device.stream()?, Graph::new(device));
        for kind in [MemoryKind::Device, MemoryKind::Managed] {
            let buffer = device.alloc_in::<i32>(4, kind)?;
            let says = ["a callback reads host memory only", "alloc_host"];
            refused(graph.callback_with(&buffer, |_| {}), ErrorKind::InvalidArgument, &says);
            refused(stream.callback_with(&buffer, |_| {}), ErrorKind::InvalidArgument, &says);
        }
        let alloc = graph.alloc::<i32>(4)?;
        refused(alloc.callback_with(&alloc, |_| {}), ErrorKind::InvalidArgument, &["host memory only"]);
        let elsewhere = Device::cpu()?.alloc_host::<i32>(4)?;
        refused(graph.callback_with(&elsewhere, |_| {}), ErrorKind::WrongDevice, &["another device"]);
        assert_eq!(graph.len(), 1);
        Ok(())
    });
}

#[test]
fn a_callback_beside_a_write_of_the_buffer_it_reads_is_a_hazard() {
    for_each_device(|device| {
        let host = device.alloc_host::<i32>(4)?;
        let graph = Graph::new(device);
        graph.memset(&host, 1i32)?.named("fill")?;
        graph.callback_with(&host, |_| {})?.named("look")?;
        let found = graph.check().to_string();
        assert!(found.contains("fill writes and look reads"), "{found}");
        Ok(())
    });
}
