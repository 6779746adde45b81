//! Threads that record and wait for the same events. In no order of calls does a stream wait for
//! itself.

use std::sync::Arc;

use gridloom::prelude::*;

use super::ends;
use crate::support::{for_each_device, is_cpu};

/// Returns how often two threads are brought together: a simulated driver is slow, and a GPU far
/// away.
fn rounds(device: &Device) -> usize {
    if is_cpu(device) { 2000 } else { 100 }
}

/// Runs both over and over at the same time, and waits for the streams.
fn together(
    what: &'static str,
    device: &Device,
    streams: &[&Stream],
    one: impl Fn() -> Result<()> + Send + Sync + 'static,
    other: impl Fn() -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    let (rounds, streams) =
        (rounds(device), streams.iter().map(|&stream| stream.clone()).collect::<Vec<_>>());
    ends(what, move || {
        let (one, other) = (Arc::new(one), Arc::new(other));
        for _ in 0..rounds {
            let (one, other) = (one.clone(), other.clone());
            let beside = std::thread::spawn(move || (0..8).try_for_each(|_| other()));
            (0..8).try_for_each(|_| one())?;
            beside.join().expect("no panic")?;
            streams.iter().try_for_each(Stream::synchronize)?;
        }
        Ok(())
    })
}

#[test]
fn one_thread_records_an_event_that_another_waits_for_on_the_same_stream() {
    for_each_device(|device| {
        let (stream, event) = (device.stream()?, device.event()?);
        let (recording, waiting) = ((stream.clone(), event.clone()), (stream.clone(), event));
        let record = move || recording.0.record(&recording.1);
        let wait = move || waiting.0.wait(&waiting.1);
        together("a stream that waits for its own event", device, &[&stream], record, wait)
    });
}

#[test]
fn a_graph_records_an_event_that_its_stream_waits_for() {
    for_each_device(|device| {
        let (stream, event) = (device.stream()?, device.event()?);
        let graph = Graph::new(device);
        graph.record(&event)?.wait(&event)?;
        let executable = graph.instantiate()?;
        let (launching, waiting) = (stream.clone(), (stream.clone(), event));
        let launch = move || executable.launch(&launching);
        let wait = move || waiting.0.wait(&waiting.1);
        together("a stream that waits for an event of its graph", device, &[&stream], launch, wait)
    });
}

#[test]
fn two_streams_hand_two_events_to_each_other() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let (first, second) = (device.event()?, device.event()?);
        let hand = |stream: &Stream, take: &Event, give: &Event| {
            let (stream, take, give) = (stream.clone(), take.clone(), give.clone());
            move || {
                stream.wait(&take)?;
                stream.record(&give)
            }
        };
        let (a, b) = (hand(&one, &first, &second), hand(&other, &second, &first));
        together("streams that wait for each other", device, &[&one, &other], a, b)
    });
}

#[test]
fn two_graphs_hand_two_events_to_each_other() {
    for_each_device(|device| {
        let streams = [device.stream()?, device.stream()?];
        let (first, second) = (device.event()?, device.event()?);
        let graph = |stream: &Stream, take: &Event, give: &Event| -> Result<_> {
            let graph = Graph::new(device);
            // The event that is recorded is named first, so that a launch which publishes node by
            // node gives it away before it looks at the other.
            graph.empty()?.record(give)?;
            graph.wait(take)?;
            let (executable, stream) = (graph.instantiate()?, stream.clone());
            Ok(move || executable.launch(&stream))
        };
        let one = graph(&streams[0], &first, &second)?;
        let other = graph(&streams[1], &second, &first)?;
        together("graphs that wait for each other", device, &[&streams[0], &streams[1]], one, other)
    });
}
