//! Events of record and wait nodes.

use gridloom::prelude::*;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, for_each_device};

/// A graph that waits at a gate and then records an event, and that node.
fn recording(device: &Device, gate: &Gate, event: &Event) -> Result<(Graph, Node)> {
    let graph = Graph::new(device);
    let node = graph.callback(gate.waiter())?.record(event)?;
    Ok((graph, node))
}

/// Which of two events a launch records.
fn recorded(device: &Device, executable: &Executable, gate: &Gate, events: [&Event; 2]) -> Result<[bool; 2]> {
    let stream = device.stream()?;
    executable.launch(&stream)?;
    let [first, second] = events;
    // An event whose recording is still to be reached is one that the launch in flight records.
    let answer = [!first.is_reached()?, !second.is_reached()?];
    gate.open();
    stream.synchronize()?;
    assert!(first.is_reached()? && second.is_reached()?);
    Ok(answer)
}

#[test]
fn a_record_node_takes_another_event_in_later_instantiations_only() {
    for_each_device(|device| {
        let (first, second) = (device.event()?, device.event()?);
        for (edited_before, expected) in [(true, [false, true]), (false, [true, false])] {
            let gate = Gate::closed();
            let _opens = OpenOnDrop(&gate);
            let (graph, node) = recording(device, &gate, &first)?;
            if edited_before {
                node.set_event(&second)?;
            }
            let executable = graph.instantiate()?;
            node.set_event(if edited_before { &first } else { &second })?;
            assert_eq!(recorded(device, &executable, &gate, [&first, &second])?, expected);
        }
        Ok(())
    });
}

#[test]
fn a_record_node_of_an_executable_takes_another_event() {
    for_each_device(|device| {
        let (first, second) = (device.event()?, device.event()?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let (graph, node) = recording(device, &gate, &first)?;
        let executable = graph.instantiate()?;
        executable.node(&node)?.set_event(&second)?;
        assert_eq!(recorded(device, &executable, &gate, [&first, &second])?, [false, true]);
        Ok(())
    });
}

#[test]
fn a_record_node_of_a_whole_update_takes_another_event() {
    for_each_device(|device| {
        let (first, second) = (device.event()?, device.event()?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let executable = recording(device, &gate, &first)?.0.instantiate()?;
        executable.update(&recording(device, &gate, &second)?.0)?;
        assert_eq!(recorded(device, &executable, &gate, [&first, &second])?, [false, true]);
        Ok(())
    });
}

#[test]
fn a_wait_node_takes_another_event() {
    for_each_device(|device| {
        let (free, held) = (device.event()?, device.event()?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let node = graph.wait(&held)?;
        let original = graph.instantiate()?;
        let changed = graph.instantiate()?;
        changed.node(&node)?.set_event(&free)?;
        node.set_event(&free)?;
        let later = graph.instantiate()?;

        let busy = device.stream()?;
        busy.callback(gate.waiter())?;
        busy.record(&held)?;
        // Both that wait for the other event are done while the gate is closed.
        let stream = device.stream()?;
        changed.launch(&stream)?;
        later.launch(&stream)?;
        stream.synchronize()?;
        let waiting = device.stream()?;
        original.launch(&waiting)?;
        assert!(!waiting.is_idle()?);
        gate.open();
        waiting.synchronize()
    });
}

#[test]
fn the_event_of_a_launch_in_flight_stays_its_event() {
    for_each_device(|device| {
        let (first, second) = (device.event()?, device.event()?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let (graph, node) = recording(device, &gate, &first)?;
        let executable = graph.instantiate()?;
        let stream = device.stream()?;
        executable.launch(&stream)?;
        executable.node(&node)?.set_event(&second)?;
        assert!(!first.is_reached()?);
        assert!(second.is_reached()?, "no launch records it yet");
        gate.open();
        stream.synchronize()?;
        assert!(first.is_reached()?);
        executable.launch(&stream)?;
        stream.synchronize()
    });
}

#[test]
fn timing_between_replaced_events_can_be_read() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let start = graph.record(&device.event()?)?;
        let end = start.callback(|| ())?.record(&device.event()?)?;
        let executable = graph.instantiate()?;
        let (from, to) = (device.event()?, device.event()?);
        executable.node(&start)?.set_event(&from)?;
        executable.node(&end)?.set_event(&to)?;
        let stream = device.stream()?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        // It fails for events that were never recorded.
        to.elapsed_since(&from).map(drop)
    });
}
