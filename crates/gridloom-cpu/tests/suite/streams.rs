//! Streams and events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::*;
use gridloom_core::backend::{Device, EventOptions};
use gridloom_core::memory::Region;
use gridloom_core::op::{CopySide, MemcpyOp, MemsetOp, Operation};
use gridloom_core::{ErrorKind, Event, Graph, Stream};
use parking_lot::Mutex;

fn event(device: &Arc<dyn Device>) -> Event {
    Event::new(device, EventOptions::default()).unwrap()
}

fn record(event: &Event) -> Operation {
    Operation::EventRecord(event.backend().clone())
}

fn wait(event: &Event) -> Operation {
    Operation::EventWait(event.backend().clone())
}

/// A callback that waits for a signal, and the means to give it.
fn gate() -> (Operation, impl FnOnce()) {
    let (open, opened) = channel::<()>();
    (callback(move || _ = opened.recv()), move || _ = open.send(()))
}

#[test]
fn work_of_a_stream_runs_in_order_and_asynchronously() {
    let device = device(2);
    let stream = stream(&device);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (gate, open) = gate();
    stream.enqueue(gate).unwrap();
    for index in 0..100 {
        let order = order.clone();
        stream.enqueue(callback(move || order.lock().push(index))).unwrap();
    }
    assert!(order.lock().is_empty());
    assert!(!stream.is_idle().unwrap());
    open();
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    assert_eq!(*order.lock(), (0..100).collect::<Vec<_>>());
}

#[test]
fn work_starts_without_anybody_waiting_for_it() {
    let device = device(1);
    let stream = stream(&device);
    for _ in 0..20 {
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        stream.enqueue(callback(move || flag.store(true, Ordering::SeqCst))).unwrap();
        eventually(|| ran.load(Ordering::SeqCst));
    }
}

#[test]
fn several_threads_may_enqueue_and_synchronize_one_stream() {
    let device = device(2);
    let stream = stream(&device);
    let (inside, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (inside, count) = (inside.clone(), count.clone());
                    let one_at_a_time = callback(move || {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        count.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                    stream.enqueue(one_at_a_time).unwrap();
                    stream.synchronize().unwrap();
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 200);
}

#[test]
fn a_dropped_stream_finishes_its_work_without_blocking() {
    let device = device(1);
    let count = Arc::new(AtomicU32::new(0));
    let stream = stream(&device);
    let (gate, open) = gate();
    stream.enqueue(gate).unwrap();
    for _ in 0..10 {
        let count = count.clone();
        stream.enqueue(callback(move || _ = count.fetch_add(1, Ordering::SeqCst))).unwrap();
    }
    drop(stream);
    drop(device);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    open();
    eventually(|| count.load(Ordering::SeqCst) == 10);
}

#[test]
fn waiting_for_the_device_waits_for_all_streams_also_dropped_ones() {
    let device = device(1);
    let count = Arc::new(AtomicU32::new(0));
    let streams: Vec<Stream> = (0..3).map(|_| stream(&device)).collect();
    for stream in &streams {
        let count = count.clone();
        let slow = callback(move || {
            std::thread::sleep(Duration::from_millis(2));
            count.fetch_add(1, Ordering::SeqCst);
        });
        stream.enqueue(slow).unwrap();
    }
    drop(streams);
    device.wait_all().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn the_first_failure_is_reported_once_and_later_work_runs() {
    let device = device(1);
    let stream = stream(&device);
    let ran = Arc::new(AtomicBool::new(false));
    let flag = ran.clone();
    stream.enqueue(callback(|| panic!("first"))).unwrap();
    stream.enqueue(callback(|| panic!("second"))).unwrap();
    stream.enqueue(callback(move || flag.store(true, Ordering::SeqCst))).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CallbackPanicked);
    assert!(error.message().contains("first"), "{error}");
    assert!(ran.load(Ordering::SeqCst));
    stream.synchronize().unwrap();
}

#[test]
fn a_callback_that_uses_the_device_is_refused() {
    let device = device(1);
    let stream = stream(&device);
    let (inner, outcome) = (stream.clone(), Arc::new(Mutex::new(None)));
    let seen = outcome.clone();
    let inner_device = device.clone();
    stream
        .enqueue(callback(move || {
            *seen.lock() = Some((inner.synchronize().unwrap_err(), inner_device.wait_all().unwrap_err()));
        }))
        .unwrap();
    stream.synchronize().unwrap();
    let (synchronize, wait_all) = outcome.lock().take().unwrap();
    assert_eq!(synchronize.kind(), ErrorKind::InvalidState);
    assert_eq!(wait_all.kind(), ErrorKind::InvalidState);
}

#[test]
fn an_event_never_recorded_holds_nobody_up() {
    let device = device(1);
    let (stream, event) = (stream(&device), event(&device));
    assert!(event.is_reached().unwrap());
    event.synchronize().unwrap();
    stream.enqueue(wait(&event)).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_wait_orders_streams() {
    let device = device(2);
    for _ in 0..50 {
        let [first, second] = [stream(&device), stream(&device)];
        let (event, done) = (event(&device), Arc::new(AtomicBool::new(false)));
        let (gate, open) = gate();
        let flag = done.clone();
        first.enqueue(gate).unwrap();
        first.enqueue(callback(move || flag.store(true, Ordering::SeqCst))).unwrap();
        first.enqueue(record(&event)).unwrap();
        assert!(!event.is_reached().unwrap());
        let seen = Arc::new(AtomicBool::new(false));
        let (flag, look) = (done.clone(), seen.clone());
        second.enqueue(wait(&event)).unwrap();
        second.enqueue(callback(move || look.store(flag.load(Ordering::SeqCst), Ordering::SeqCst))).unwrap();
        open();
        second.synchronize().unwrap();
        assert!(seen.load(Ordering::SeqCst));
        event.synchronize().unwrap();
    }
}

#[test]
fn a_wait_is_for_the_recording_that_was_the_latest_when_it_was_enqueued() {
    let device = device(1);
    let [slow, fast, waiting] = [stream(&device), stream(&device), stream(&device)];
    let event = event(&device);
    let (first_gate, open_first) = gate();
    slow.enqueue(first_gate).unwrap();
    slow.enqueue(record(&event)).unwrap();
    // This one waits for the slow recording, although the event is recorded again and reached
    // elsewhere.
    let passed = Arc::new(AtomicBool::new(false));
    let flag = passed.clone();
    waiting.enqueue(wait(&event)).unwrap();
    waiting.enqueue(callback(move || flag.store(true, Ordering::SeqCst))).unwrap();
    fast.enqueue(record(&event)).unwrap();
    fast.synchronize().unwrap();
    event.synchronize().unwrap();
    std::thread::sleep(Duration::from_millis(5));
    assert!(!passed.load(Ordering::SeqCst));
    open_first();
    waiting.synchronize().unwrap();
    assert!(passed.load(Ordering::SeqCst));
}

#[test]
fn events_measure_time() {
    let device = device(1);
    let stream = stream(&device);
    let [start, end] = [event(&device), event(&device)];
    assert_eq!(end.elapsed_since(&start).unwrap_err().kind(), ErrorKind::InvalidState);
    stream.enqueue(record(&start)).unwrap();
    stream.enqueue(callback(|| std::thread::sleep(Duration::from_millis(3)))).unwrap();
    stream.enqueue(record(&end)).unwrap();
    stream.synchronize().unwrap();
    assert!(end.elapsed_since(&start).unwrap() >= Duration::from_millis(3));
    let untimed = Event::new(&device, EventOptions::new().timing(false).blocking(true)).unwrap();
    stream.enqueue(record(&untimed)).unwrap();
    untimed.synchronize().unwrap();
    assert_eq!(untimed.elapsed_since(&start).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn events_in_a_graph_are_recorded_for_the_outside_and_waited_for_from_it() {
    let device = device(2);
    let [launching, other] = [stream(&device), stream(&device)];
    let [before, after] = [event(&device), event(&device)];
    let graph = Graph::new(&device);
    let waited = graph.add(&[], wait(&before)).unwrap();
    let ran = Arc::new(AtomicU32::new(0));
    let count = ran.clone();
    let work = graph.add(&[&waited], callback(move || _ = count.fetch_add(1, Ordering::SeqCst))).unwrap();
    graph.add(&[&work], record(&after)).unwrap();
    let executable = graph.instantiate().unwrap();
    for launch in 1..=3 {
        let (gate, open) = gate();
        other.enqueue(gate).unwrap();
        other.enqueue(record(&before)).unwrap();
        executable.launch(&launching).unwrap();
        assert!(!after.is_reached().unwrap(), "the launch records it, and has not begun");
        assert_eq!(ran.load(Ordering::SeqCst), launch - 1);
        open();
        after.synchronize().unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), launch);
    }
}

#[test]
fn a_graph_may_wait_for_what_it_records_itself_and_times_itself() {
    let device = device(2);
    let [start, end] = [event(&device), event(&device)];
    let graph = Graph::new(&device);
    // Waited for before it is recorded: that is the recording of the launch before.
    let first = graph.add(&[], wait(&start)).unwrap();
    let started = graph.add(&[&first], record(&start)).unwrap();
    let loop_node = graph.add_conditional(&[&started], repeat(3)).unwrap();
    let body = loop_node.bodies().unwrap().remove(0);
    let again = body.add(&[], record(&end)).unwrap();
    body.add(&[&again], callback(|| std::thread::sleep(Duration::from_millis(1)))).unwrap();
    let waited = graph.add(&[&loop_node], wait(&start)).unwrap();
    graph.add(&[&waited], record(&end)).unwrap();
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    for _ in 0..3 {
        executable.launch(&stream).unwrap();
        executable.launch(&stream).unwrap();
        end.synchronize().unwrap();
        assert!(end.elapsed_since(&start).unwrap() >= Duration::from_millis(3));
    }
    stream.synchronize().unwrap();
}

#[test]
fn a_record_in_a_branch_not_taken_leaves_the_event_as_it_was() {
    let device = device(1);
    let (stream, mark, later) = (stream(&device), event(&device), event(&device));
    let graph = Graph::new(&device);
    let no = graph.condition(None);
    let spec =
        conditional(gridloom_core::op::ConditionalForm::If, gridloom_core::op::Test::Condition(no.key()), 1);
    let branch = graph.add_conditional(&[], spec).unwrap();
    branch.bodies().unwrap()[0].add(&[], record(&mark)).unwrap();
    stream.enqueue(record(&mark)).unwrap();
    stream.enqueue(callback(|| std::thread::sleep(Duration::from_millis(2)))).unwrap();
    graph.instantiate().unwrap().launch(&stream).unwrap();
    stream.enqueue(record(&later)).unwrap();
    stream.synchronize().unwrap();
    mark.synchronize().unwrap();
    assert!(later.elapsed_since(&mark).unwrap() >= Duration::from_millis(2));
}

#[test]
fn fills_write_values_of_every_size_and_leave_gaps_between_rows() {
    let device = device(3);
    let stream = stream(&device);
    for (element_size, pattern) in [(1, vec![0x12]), (2, vec![0x12, 0x34]), (4, vec![0x12, 0x34, 0x56, 0x78])]
    {
        let value = u32::from_le_bytes([0x12, 0x34, 0x56, 0x78]);
        let memory = buffer(&device, 1000);
        let (width, height, pitch) = (10u64, 5u64, 64u64);
        let dst = Region::whole(memory.clone()).part(8, 900).unwrap();
        let op = MemsetOp { dst, value, element_size, width, height, pitch };
        stream.enqueue(Operation::Memset(Arc::new(op))).unwrap();
        stream.synchronize().unwrap();
        let bytes = read(&device, &memory);
        for (at, &byte) in bytes.iter().enumerate() {
            let inside = at >= 8 && (at as u64 - 8) / pitch < height;
            let column = (at as u64).wrapping_sub(8) % pitch;
            let expected = if inside && column < width * u64::from(element_size) {
                pattern[column as usize % pattern.len()]
            } else {
                0
            };
            assert_eq!(byte, expected, "byte {at} with elements of {element_size}");
        }
    }
}

#[test]
fn copies_of_one_two_and_three_dimensions_move_the_right_bytes() {
    let device = device(3);
    let stream = stream(&device);
    let source: Vec<u8> = (0..6000u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let (width, height, depth) = (13u64, 5u64, 4u64);
    let (dst, src) = ((40u64, 6u64), (17u64, 9u64));
    let memory = buffer(&device, 6000);
    let side = |region, (pitch, rows)| CopySide { region, pitch, rows };
    let op = MemcpyOp {
        dst: side(Region::whole(memory.clone()), dst),
        src: side(Region::from_bytes(source.clone()), src),
        width,
        height,
        depth,
    };
    stream.enqueue(Operation::Memcpy(Arc::new(op))).unwrap();
    stream.synchronize().unwrap();
    let mut expected = vec![0; 6000];
    for z in 0..depth {
        for y in 0..height {
            for x in 0..width {
                let to = (z * dst.1 + y) * dst.0 + x;
                let from = (z * src.1 + y) * src.0 + x;
                expected[to as usize] = source[from as usize];
            }
        }
    }
    assert_eq!(read(&device, &memory), expected);
}

#[test]
fn large_copies_and_fills_arrive_whole() {
    let device = device(4);
    let stream = stream(&device);
    let size = (9 << 20) + 13;
    let source: Vec<u8> = (0..size).map(|at: u32| (at / 1000) as u8 ^ at as u8).collect();
    let [there, back] = [buffer(&device, u64::from(size)), buffer(&device, u64::from(size))];
    stream.enqueue(copy(Region::whole(there.clone()), Region::from_bytes(source.clone()))).unwrap();
    stream.enqueue(fill(Region::whole(back.clone()), 0xee, 1)).unwrap();
    stream.synchronize().unwrap();
    assert!(read(&device, &back).iter().all(|&byte| byte == 0xee));
    stream.enqueue(copy(Region::whole(back.clone()), Region::whole(there))).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(&device, &back), source);
}
