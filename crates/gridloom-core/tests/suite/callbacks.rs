//! Host callbacks: calling them, their panics, and what they must not do.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom_core::ErrorKind;
use gridloom_core::op::*;
use gridloom_core::user_code::{Caller, in_callback};

use crate::common::*;

unsafe extern "C" fn add_up(bytes: *mut c_void) {
    // SAFETY: the callbacks below pass a pointer to an `AtomicU32`'s address, as native-endian
    // bytes, and keep it alive.
    let total =
        unsafe { &*std::ptr::with_exposed_provenance::<AtomicU32>(bytes.cast::<usize>().read_unaligned()) };
    total.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn count_here(counter: *mut c_void) {
    // SAFETY: the callback below passes a pointer to a live `AtomicU32`.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn do_nothing(_: *mut c_void) {}

#[test]
fn a_closure_is_called_each_time_and_keeps_its_state() {
    let seen = Arc::new(AtomicU32::new(0));
    let mut calls = 0;
    let callback = CallbackOp::closure({
        let seen = seen.clone();
        move || {
            calls += 1;
            seen.store(calls, Ordering::Relaxed);
        }
    });
    for expected in 1..=3 {
        callback.clone().call(Caller::Driver).unwrap();
        assert_eq!(seen.load(Ordering::Relaxed), expected);
    }
}

#[test]
fn a_function_gets_the_bytes_that_were_copied() {
    let total = AtomicU32::new(0);
    let mut bytes = (&raw const total).expose_provenance().to_ne_bytes();
    // SAFETY: `add_up` reads an address from its argument; `total` lives until the end of this
    // test.
    let raw = unsafe { RawCallback::new(add_up, RawData::Bytes(bytes.as_slice().into())) };
    bytes.fill(0);
    CallbackOp::Raw(raw).call(Caller::Driver).unwrap();
    assert_eq!(total.load(Ordering::Relaxed), 1);
}

#[test]
fn a_function_can_be_called_with_no_bytes() {
    // SAFETY: `do_nothing` ignores its argument.
    let raw = unsafe { RawCallback::new(do_nothing, RawData::Bytes(Arc::new([]))) };
    CallbackOp::Raw(raw).call(Caller::Driver).unwrap();
}

#[test]
fn a_function_gets_the_pointer_it_was_given() {
    let counter = AtomicU32::new(0);
    // SAFETY: an atomic may be used from any thread, and it lives until the end of this test.
    let pointer = unsafe { SendPointer::new((&raw const counter).cast_mut().cast()) };
    // SAFETY: `count_here` accepts a pointer to an atomic.
    let raw = unsafe { RawCallback::new(count_here, RawData::Pointer(pointer)) };
    CallbackOp::Raw(raw).call(Caller::Driver).unwrap();
    assert_eq!(counter.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_becomes_an_error_with_what_was_said() {
    let said = |callback: CallbackOp, mention: &str| {
        assert_error(callback.call(Caller::Driver), ErrorKind::CallbackPanicked, &["panicked", mention]);
    };
    said(CallbackOp::closure(|| panic!("plain text")), "plain text");
    said(CallbackOp::closure(|| panic!("number {}", 7)), "number 7");
    said(CallbackOp::closure(|| std::panic::panic_any(7)), "not text");
}

#[test]
fn a_panic_whose_value_panics_when_dropped_is_caught_too() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            std::panic::panic_any(Grenade);
        }
    }
    let callback = CallbackOp::closure(|| std::panic::panic_any(Grenade));
    assert_error(callback.call(Caller::Driver), ErrorKind::CallbackPanicked, &["not text"]);
}

#[test]
fn a_callback_can_be_called_after_it_panicked() {
    let mut calls = 0;
    let callback = CallbackOp::closure(move || {
        calls += 1;
        assert!(calls > 1, "the first call fails");
    });
    callback.call(Caller::Driver).unwrap_err();
    assert!(!in_callback(), "a panic leaves the callback as well");
    callback.call(Caller::Driver).unwrap();
}

#[test]
fn work_is_refused_inside_a_callback_only() {
    let (device, stream, graph) = setup();
    let exec = graph.instantiate().unwrap();
    let (exec, event) = (Arc::new(exec), event(&device));
    type Attempt = Box<dyn Fn() -> gridloom_core::Result<()> + Send>;
    let attempts: Vec<(&str, Attempt)> = vec![
        (
            "launch",
            Box::new({
                let (exec, stream) = (exec.clone(), stream.clone());
                move || exec.launch(&stream)
            }),
        ),
        (
            "upload",
            Box::new({
                let (exec, stream) = (exec.clone(), stream.clone());
                move || exec.upload(&stream)
            }),
        ),
        (
            "synchronize",
            Box::new({
                let stream = stream.clone();
                move || stream.synchronize()
            }),
        ),
        (
            "is_idle",
            Box::new({
                let stream = stream.clone();
                move || stream.is_idle().map(drop)
            }),
        ),
        (
            "event",
            Box::new({
                let event = event.clone();
                move || event.synchronize()
            }),
        ),
        (
            "is_reached",
            Box::new({
                let event = event.clone();
                move || event.is_reached().map(drop)
            }),
        ),
        (
            "instantiate",
            Box::new({
                let graph = graph.clone();
                move || graph.instantiate().map(drop)
            }),
        ),
        (
            "enqueue",
            Box::new({
                let operation = launch_op(&plain_kernel(&device), []);
                move || stream.enqueue(operation.clone())
            }),
        ),
    ];
    for (name, attempt) in attempts {
        attempt().unwrap_or_else(|error| panic!("{name} outside of a callback: {error}"));
        let (sender, outcome) = std::sync::mpsc::channel();
        CallbackOp::closure(move || sender.send(attempt()).unwrap()).call(Caller::Driver).unwrap();
        assert_error(outcome.recv().unwrap(), ErrorKind::InvalidState, &["inside a host callback"]);
    }
    assert!(!in_callback());
}

#[test]
fn being_in_a_callback_is_a_matter_of_the_thread() {
    let (sender, outcome) = std::sync::mpsc::channel();
    let callback = CallbackOp::closure(move || {
        let elsewhere = std::thread::spawn(in_callback).join().unwrap();
        sender.send((in_callback(), elsewhere)).unwrap();
    });
    callback.call(Caller::Driver).unwrap();
    assert_eq!(outcome.recv().unwrap(), (true, false));
}

#[test]
fn a_graph_can_be_edited_inside_a_callback() {
    let (_, _, graph) = setup();
    let inner = graph.clone();
    CallbackOp::closure(move || drop(empty(&inner, &[]))).call(Caller::Driver).unwrap();
    assert_eq!(graph.len(), 1);
}

#[test]
fn a_nested_callback_is_still_inside_the_outer_one() {
    CallbackOp::closure(|| {
        CallbackOp::closure(|| {}).call(Caller::Driver).unwrap();
        assert!(in_callback());
    })
    .call(Caller::Driver)
    .unwrap();
}

#[test]
fn sameness_is_identity_for_closures_and_equality_for_functions() {
    let make = || CallbackOp::closure(|| {});
    let raw = |bytes: &[u8]| {
        // SAFETY: `do_nothing` ignores its argument.
        CallbackOp::Raw(unsafe { RawCallback::new(do_nothing, RawData::Bytes(bytes.into())) })
    };
    let closure = make();
    assert!(closure.same(&closure.clone()));
    assert!(!closure.same(&make()));
    assert!(raw(&[1]).same(&raw(&[1])));
    assert!(!raw(&[1]).same(&raw(&[2])));
    assert!(!raw(&[1]).same(&closure));
}

#[test]
fn debug_tells_closures_from_functions() {
    // SAFETY: `do_nothing` ignores its argument.
    let raw = unsafe { RawCallback::new(do_nothing, RawData::Bytes(Arc::new([0; 5]))) };
    assert_eq!(format!("{:?}", CallbackOp::closure(|| {})), "closure");
    assert!(format!("{:?}", CallbackOp::Raw(raw)).contains("(5 bytes)"));
}
