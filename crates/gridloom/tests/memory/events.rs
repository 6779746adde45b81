//! Events on streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gridloom::prelude::*;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, for_each_device, refused};

#[test]
fn an_event_never_recorded_counts_as_reached() {
    for_each_device(|device| {
        let event = device.event()?;
        assert!(event.is_reached()?);
        event.synchronize()?;
        let stream = device.stream()?;
        stream.wait(&event)?;
        stream.synchronize()
    });
}

#[test]
fn an_event_is_reached_when_the_work_before_it_has_run() {
    for_each_device(|device| {
        for blocking in [false, true] {
            let stream = device.stream()?;
            let event = device.event_with(EventOptions::new().timing(false).blocking(blocking))?;
            assert_eq!(event.options(), EventOptions::new().timing(false).blocking(blocking));
            let gate = Gate::closed();
            let _opens = OpenOnDrop(&gate);
            stream.callback(gate.waiter())?;
            stream.record(&event)?;
            assert!(!event.is_reached()?);
            gate.open();
            event.synchronize()?;
            assert!(event.is_reached()?);
        }
        Ok(())
    });
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let event = device.event()?;
        let buffer = device.buffer_from(&[0; 16])?;
        let copy = device.buffer_from(&[0; 16])?;
        let gate = Gate::closed();
        one.callback(gate.waiter())?;
        one.memset(&buffer, 7i32)?;
        one.record(&event)?;
        other.wait(&event)?;
        other.memcpy(&copy, &buffer)?;
        assert!(!other.is_idle()?);
        gate.open();
        other.synchronize()?;
        assert_eq!(copy.to_vec()?, [7; 16]);
        Ok(())
    });
}

#[test]
fn a_wait_is_for_the_recording_before_it_not_for_later_ones() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let event = device.event()?;
        one.record(&event)?;
        other.wait(&event)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        one.callback(gate.waiter())?;
        one.record(&event)?;
        other.synchronize()?;
        assert!(!event.is_reached()?);
        gate.open();
        one.synchronize()?;
        assert!(event.is_reached()?);
        Ok(())
    });
}

#[test]
fn streams_hand_work_back_and_forth() {
    for_each_device(|device| {
        let streams = [device.stream()?, device.stream()?];
        let order = Arc::new(AtomicU32::new(0));
        for step in 0..50 {
            let event = device.event()?;
            let here = &streams[step as usize % 2];
            let order = order.clone();
            here.callback(move || {
                let found = order.swap(step + 1, Ordering::SeqCst);
                assert_eq!(found, step);
            })?;
            here.record(&event)?;
            streams[(step as usize + 1) % 2].wait(&event)?;
        }
        streams[0].synchronize()?;
        streams[1].synchronize()?;
        assert_eq!(order.load(Ordering::SeqCst), 50);
        Ok(())
    });
}

#[test]
fn time_passes_between_two_recordings() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (start, middle, end) = (device.event()?, device.event()?, device.event()?);
        let nap = Duration::from_millis(2);
        stream.record(&start)?;
        stream.callback(move || std::thread::sleep(nap))?;
        stream.record(&middle)?;
        stream.callback(move || std::thread::sleep(nap))?;
        stream.record(&end)?;
        stream.synchronize()?;
        assert!(middle.elapsed_since(&start)? >= nap);
        assert!(end.elapsed_since(&start)? >= middle.elapsed_since(&start)? + nap / 2);
        assert_eq!(start.elapsed_since(&start)?, Duration::ZERO);
        Ok(())
    });
}

#[test]
fn time_can_be_read_between_recordings_on_two_streams() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let (start, end) = (device.event()?, device.event()?);
        one.record(&start)?;
        other.wait(&start)?;
        other.callback(|| std::thread::sleep(Duration::from_millis(2)))?;
        other.record(&end)?;
        other.synchronize()?;
        assert!(end.elapsed_since(&start)? >= Duration::from_millis(2));
        Ok(())
    });
}

#[test]
fn time_can_be_read_between_record_nodes_of_one_launch() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (start, end) = (device.event()?, device.event()?);
        let graph = Graph::new(device);
        graph.record(&start)?.callback(|| std::thread::sleep(Duration::from_millis(2)))?.record(&end)?;
        let executable = graph.instantiate()?;
        for _ in 0..2 {
            executable.launch(&stream)?;
            stream.synchronize()?;
            assert!(end.elapsed_since(&start)? >= Duration::from_millis(2));
        }
        Ok(())
    });
}

#[test]
fn a_time_that_cannot_be_known_is_refused() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let untimed = device.event_with(EventOptions::new().timing(false))?;
        let (timed, never) = (device.event()?, device.event()?);
        stream.record(&untimed)?;
        stream.record(&timed)?;
        stream.synchronize()?;
        refused(timed.elapsed_since(&untimed), ErrorKind::InvalidArgument, &["timing"]);
        refused(untimed.elapsed_since(&timed), ErrorKind::InvalidArgument, &["timing"]);
        refused(timed.elapsed_since(&never), ErrorKind::InvalidState, &["record"]);
        refused(never.elapsed_since(&timed), ErrorKind::InvalidState, &["record"]);
        Ok(())
    });
}

#[test]
fn a_time_is_refused_while_the_work_before_it_is_still_running() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (start, end) = (device.event()?, device.event()?);
        stream.record(&start)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        stream.callback(gate.waiter())?;
        stream.record(&end)?;
        refused(end.elapsed_since(&start), ErrorKind::InvalidState, &[]);
        gate.open();
        stream.synchronize()?;
        end.elapsed_since(&start)?;
        Ok(())
    });
}

#[test]
fn a_graph_waits_for_an_event_recorded_outside_it() {
    for_each_device(|device| {
        let (outside, inside) = (device.stream()?, device.stream()?);
        let (event, buffer) = (device.event()?, device.buffer_from(&[0; 4])?);
        let copy = device.buffer_from(&[0; 4])?;
        let graph = Graph::new(device);
        graph.wait(&event)?.memcpy(&copy, &buffer)?;
        let executable = graph.instantiate()?;
        for value in 1..=2 {
            let gate = Gate::closed();
            outside.callback(gate.waiter())?;
            outside.memset(&buffer, value)?;
            outside.record(&event)?;
            executable.launch(&inside)?;
            gate.open();
            inside.synchronize()?;
            assert_eq!(copy.to_vec()?, [value; 4]);
        }
        Ok(())
    });
}

#[test]
fn a_stream_waits_for_an_event_recorded_in_a_graph() {
    for_each_device(|device| {
        let (inside, outside) = (device.stream()?, device.stream()?);
        let (event, buffer) = (device.event()?, device.buffer_from(&[0; 4])?);
        let copy = device.buffer_from(&[0; 4])?;
        let graph = Graph::new(device);
        let gate = Gate::closed();
        graph.callback(gate.waiter())?.memset(&buffer, 9i32)?.record(&event)?;
        graph.instantiate()?.launch(&inside)?;
        outside.wait(&event)?;
        outside.memcpy(&copy, &buffer)?;
        gate.open();
        outside.synchronize()?;
        assert_eq!(copy.to_vec()?, [9; 4]);
        Ok(())
    });
}

#[test]
fn a_graph_keeps_its_events_alive() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        {
            let event = device.event()?;
            graph.record(&event)?.wait(&event)?;
        }
        let executable = graph.instantiate()?;
        drop(graph);
        executable.launch(&stream)?;
        stream.synchronize()
    });
}

#[test]
fn the_time_between_reversed_events_is_zero() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (start, end) = (device.event()?, device.event()?);
        stream.record(&start)?;
        stream.callback(|| std::thread::sleep(Duration::from_millis(2)))?;
        stream.record(&end)?;
        stream.synchronize()?;
        assert!(end.elapsed_since(&start)? >= Duration::from_millis(2));
        assert_eq!(start.elapsed_since(&end)?, Duration::ZERO);
        Ok(())
    });
}
