//! Events of record and wait nodes.

use gridloom::prelude::*;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, for_each_device};

/// Events that were never recorded, one that was, and a stream.
struct Clock {
    first: Event,
    second: Event,
    before: Event,
    stream: Stream,
}

impl Clock {
    fn new(device: &Device) -> Result<Self> {
        let [first, second, before] = [device.event()?, device.event()?, device.event()?];
        let stream = device.stream()?;
        stream.record(&before)?;
        Ok(Clock { first, second, before, stream })
    }

    /// Returns which of the two events have been recorded: no time can be read from one that was
    /// not.
    fn recorded(&self) -> Result<[bool; 2]> {
        self.stream.synchronize()?;
        Ok([&self.first, &self.second].map(|event| event.elapsed_since(&self.before).is_ok()))
    }

    /// Launches an executable. Returns which of the two events have been recorded.
    fn recorded_by(&self, executable: &Executable) -> Result<[bool; 2]> {
        executable.launch(&self.stream)?;
        self.recorded()
    }
}

#[test]
fn a_record_node_takes_another_event_in_later_instantiations_only() {
    for_each_device(|device| {
        for (edited_before, expected) in [(true, [false, true]), (false, [true, false])] {
            let clock = Clock::new(device)?;
            let graph = Graph::new(device);
            let node = graph.record(&clock.first)?;
            if edited_before {
                node.set_event(&clock.second)?;
            }
            let executable = graph.instantiate()?;
            node.set_event(if edited_before { &clock.first } else { &clock.second })?;
            assert_eq!(clock.recorded()?, [false; 2]);
            assert_eq!(clock.recorded_by(&executable)?, expected);
        }
        Ok(())
    });
}

#[test]
fn a_record_node_of_an_executable_takes_another_event() {
    for_each_device(|device| {
        let clock = Clock::new(device)?;
        let graph = Graph::new(device);
        let node = graph.record(&clock.first)?;
        let [changed, other] = [graph.instantiate()?, graph.instantiate()?];
        changed.node(&node)?.set_event(&clock.second)?;
        assert_eq!(clock.recorded_by(&changed)?, [false, true]);
        assert_eq!(clock.recorded_by(&other)?, [true, true]);
        Ok(())
    });
}

#[test]
fn a_record_node_of_a_whole_update_takes_another_event() {
    for_each_device(|device| {
        let clock = Clock::new(device)?;
        let [graph, other] = [Graph::new(device), Graph::new(device)];
        graph.record(&clock.first)?;
        other.record(&clock.second)?;
        let executable = graph.instantiate()?;
        executable.update(&other)?;
        assert_eq!(clock.recorded_by(&executable)?, [false, true]);
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
        let clock = Clock::new(device)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let node = graph.callback(gate.waiter())?.record(&clock.first)?;
        let executable = graph.instantiate()?;
        executable.launch(&clock.stream)?;
        executable.node(&node)?.set_event(&clock.second)?;
        gate.open();
        assert_eq!(clock.recorded()?, [true, false]);
        assert_eq!(clock.recorded_by(&executable)?, [true, true]);
        Ok(())
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
