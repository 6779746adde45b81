//! What receives the log events of the library is user code: it may panic and call the library.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridloom::prelude::*;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event as LogEvent, Metadata, Subscriber};

use super::ends;
use crate::support::{eventually, for_each_device, for_each_engine, in_own_process, refused};

/// Calls a function for each event of the library.
struct Receiver(fn());

impl Subscriber for Receiver {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("gridloom")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &LogEvent<'_>) {
        (self.0)();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Panics when it is dropped.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("meant, in a drop");
    }
}

/// Has a stream fail on its own thread and on this one, and values panic when they are dropped: by
/// the release thread, and on this thread while it unwinds.
fn make_events(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    stream.callback(|| panic!("meant"))?;
    eventually("the stream is idle", || stream.is_idle().unwrap());
    refused(stream.synchronize(), ErrorKind::CallbackPanicked, &["meant"]);
    stream.callback(|| panic!("meant"))?;
    refused(stream.synchronize(), ErrorKind::CallbackPanicked, &["meant"]);
    for _ in 0..3 {
        let value = Panics;
        stream.callback(move || {
            let _ = &value;
        })?;
        stream.synchronize()?;
    }
    let (graph, value) = (Graph::new(device), Panics);
    graph.callback(move || {
        let _ = &value;
    })?;
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _dropped_meanwhile = graph;
        panic!("meant, to unwind");
    }));
    assert!(unwound.is_err());
    // The stream and the release thread go on.
    let alive = Arc::new(());
    let held = alive.clone();
    stream.callback(move || {
        let _ = &held;
    })?;
    stream.synchronize()?;
    eventually("the value is dropped", || Arc::strong_count(&alive) == 1);
    Ok(())
}

#[test]
fn what_receives_log_events_may_panic() {
    if in_own_process(module_path!(), "what_receives_log_events_may_panic") {
        let receiver = Receiver(|| panic!("meant, on a log event"));
        tracing::subscriber::set_global_default(receiver).expect("the first one");
        for_each_device(|device| {
            let device = device.clone();
            ends("work whose log events panic", move || make_events(&device))
        });
    }
}

#[test]
fn what_receives_log_events_is_refused_the_device_and_does_not_hang() {
    static USED: Mutex<Option<(Device, Stream)>> = Mutex::new(None);
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    /// Uses the device in every way that waits or takes locks.
    fn call_in() {
        let used = USED.lock().unwrap().clone();
        let Some((device, stream)) = used else { return };
        let _ = (stream.is_idle(), format!("{stream:?}"));
        let outcomes = [
            stream.synchronize(),
            device.synchronize(),
            stream.synchronize_timeout(Duration::from_secs(100)),
            Graph::new(&device).instantiate().map(drop),
        ];
        let is_refused = |outcome: &Result<()>| {
            outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidState)
        };
        if outcomes.iter().all(is_refused) {
            REFUSED.fetch_add(1, Ordering::SeqCst);
        }
    }
    if in_own_process(module_path!(), "what_receives_log_events_is_refused_the_device_and_does_not_hang") {
        tracing::subscriber::set_global_default(Receiver(call_in)).expect("the first one");
        for_each_engine(|options| {
            let device = Device::cpu_with(options)?;
            *USED.lock().unwrap() = Some((device.clone(), device.stream()?));
            let before = REFUSED.load(Ordering::SeqCst);
            ends("work whose log events call in", move || make_events(&device))?;
            assert!(REFUSED.load(Ordering::SeqCst) > before, "no event was received");
            *USED.lock().unwrap() = None;
            Ok(())
        });
    }
}
