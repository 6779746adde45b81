//! Streams and events: each stream is a thread that runs what is enqueued, later.

use super::{INVALID, OK, capture, exports, graphs, handle, world};
use gridloom_cuda::sys::*;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuStreamCreateWithPriority" => stream_create,
        "cuStreamDestroy_v2" => stream_destroy,
        "cuStreamGetPriority" => stream_priority,
        "cuCtxGetStreamPriorityRange" => priority_range,
        "cuStreamSynchronize" => stream_synchronize,
        "cuStreamQuery" => stream_query,
        "cuStreamWaitEvent" => stream_wait,
        "cuCtxSynchronize" => context_synchronize,
        "cuLaunchHostFunc" => host_function,
        "cuEventCreate" => event_create,
        "cuEventDestroy_v2" => event_destroy,
        "cuEventRecord" => event_record,
        "cuEventRecordWithFlags" => event_record_with_flags,
        "cuEventQuery" => event_query,
        "cuEventSynchronize" => event_synchronize,
        "cuEventElapsedTime_v2" => elapsed,
        "cuEventElapsedTime" => elapsed,
    }
}

/// A piece of work of a stream.
type Work = Box<dyn FnOnce() + Send>;

/// A stream, whose thread starts with its first work.
#[derive(Default)]
pub struct Stream {
    queue: Mutex<Queue>,
    changed: Condvar,
    priority: c_int,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    enqueued: u64,
    done: u64,
    running: bool,
    held: bool,
}

impl Stream {
    fn push(self: &Arc<Self>, work: Work) {
        let mut queue = self.queue.lock();
        queue.work.push_back(work);
        queue.enqueued += 1;
        self.changed.notify_all();
        if !queue.running {
            queue.running = true;
            let stream = Arc::clone(self);
            std::thread::Builder::new().name("simulated stream".into()).spawn(move || stream.run()).unwrap();
        }
    }

    /// Runs what there is, and ends: the next work starts another thread.
    fn run(&self) {
        loop {
            let work = {
                let mut queue = self.queue.lock();
                while queue.held {
                    self.changed.wait(&mut queue);
                }
                match queue.work.pop_front() {
                    Some(work) => work,
                    None => {
                        queue.running = false;
                        return;
                    }
                }
            };
            // Late, so that whoever does not wait is seen.
            std::thread::yield_now();
            work();
            self.queue.lock().done += 1;
            self.changed.notify_all();
        }
    }

    fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.done == queue.enqueued
    }

    fn wait(&self) {
        let mut queue = self.queue.lock();
        let end = queue.enqueued;
        while queue.done < end {
            self.changed.wait(&mut queue);
        }
    }
}

/// The stream with this handle. One that was not made here exists from its first use on.
fn stream(raw: CUstream) -> Arc<Stream> {
    world(|world| {
        if world.destroyed_streams.contains(&raw.addr()) {
            world.violation(format!("stream {raw:p} is used after it was destroyed"));
        }
        Arc::clone(world.streams.entry(raw.addr()).or_default())
    })
}

/// Has a stream do something, after what was enqueued before.
pub fn enqueue(raw: CUstream, work: impl FnOnce() + Send + 'static) {
    stream(raw).push(Box::new(work));
}

/// While this lives, a stream runs nothing.
pub struct Held(Arc<Stream>);

/// Holds a stream back.
pub fn hold(raw: CUstream) -> Held {
    let stream = stream(raw);
    stream.queue.lock().held = true;
    Held(stream)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.queue.lock().held = false;
        self.0.changed.notify_all();
    }
}

/// The highest priority, and the lowest.
const PRIORITIES: (c_int, c_int) = (-5, 0);

fn priority_range(lowest: *mut c_int, highest: *mut c_int) -> CUresult {
    unsafe { (*highest, *lowest) = PRIORITIES };
    OK
}

fn stream_priority(raw: CUstream, out: *mut c_int) -> CUresult {
    unsafe { *out = stream(raw).priority };
    OK
}

fn stream_create(out: *mut CUstream, _: c_uint, priority: c_int) -> CUresult {
    world(|world| {
        let number = world.fresh();
        let priority = priority.clamp(PRIORITIES.0, PRIORITIES.1);
        world.streams.insert(number, Arc::new(Stream { priority, ..Stream::default() }));
        unsafe { *out = handle(number) };
    });
    OK
}

fn stream_destroy(stream: CUstream) -> CUresult {
    // Its work goes on: the thread holds the stream.
    world(|world| {
        world.streams.remove(&stream.addr());
        world.destroyed_streams.insert(stream.addr());
    });
    OK
}

/// Waiting for and asking a captured stream are errors.
fn stream_synchronize(raw: CUstream) -> CUresult {
    let outcome = capture::ask(raw);
    if outcome == OK {
        stream(raw).wait();
    }
    outcome
}

fn stream_query(raw: CUstream) -> CUresult {
    let outcome = capture::ask(raw);
    if outcome != OK {
        return outcome;
    }
    if stream(raw).is_idle() { OK } else { CUresult::CUDA_ERROR_NOT_READY }
}

/// Waiting for everything is an error while anything is captured, by whichever thread, in whatever
/// mode, and invalidates what is captured.
fn context_synchronize() -> CUresult {
    let outcome = capture::ask_all();
    if outcome == OK {
        synchronize_all();
    }
    outcome
}

pub fn synchronize_all() {
    let all: Vec<Arc<Stream>> = world(|world| world.streams.values().cloned().collect());
    all.iter().for_each(|stream| stream.wait());
}

/// An event: the latest recording of it.
#[derive(Default)]
pub struct Event(Mutex<Option<Arc<Recording>>>);

/// A point that a stream reaches.
#[derive(Default)]
pub struct Recording {
    time: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Recording {
    pub fn reach(&self) {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        let nanoseconds = START.elapsed().as_nanos() as u64;
        let now = world(|world| {
            world.clock = nanoseconds.max(world.clock + 1000);
            world.clock
        });
        *self.time.lock() = Some(now);
        self.changed.notify_all();
    }

    pub fn wait(&self) {
        let mut time = self.time.lock();
        while time.is_none() {
            self.changed.wait(&mut time);
        }
    }
}

/// The event with this handle. One that was not made here exists from its first use on.
fn event(number: usize) -> Arc<Event> {
    world(|world| {
        if world.destroyed_events.contains(&number) {
            world.violation(format!("event {number:#x} is used after it was destroyed"));
            return Arc::default();
        }
        Arc::clone(world.events.entry(number).or_default())
    })
}

/// Notes that an event was reached now.
pub fn record(number: usize) {
    expect(number).reach();
}

/// Has an event stand for a point that is to be reached.
pub fn expect(number: usize) -> Arc<Recording> {
    let recording = Arc::new(Recording::default());
    *event(number).0.lock() = Some(Arc::clone(&recording));
    recording
}

/// Notes a use of an event by work that runs.
pub fn use_event(number: usize) {
    event(number);
}

/// The latest recording of an event.
pub fn latest(number: usize) -> Option<Arc<Recording>> {
    event(number).0.lock().clone()
}

/// Enqueues work on events in one step, as a driver does: whoever finds a recording finds it
/// enqueued.
pub fn in_one_step<T>(enqueue: impl FnOnce() -> T) -> T {
    static STEP: Mutex<()> = Mutex::new(());
    let _step = STEP.lock();
    enqueue()
}

fn event_create(out: *mut CUevent, _: c_uint) -> CUresult {
    world(|world| {
        let number = world.fresh();
        world.events.insert(number, Arc::default());
        unsafe { *out = handle(number) };
    });
    OK
}

fn event_destroy(event: CUevent) -> CUresult {
    world(|world| {
        world.destroyed_events.insert(event.addr());
        if world.events.remove(&event.addr()).is_some() { OK } else { INVALID }
    })
}

fn event_record(raw: CUevent, stream: CUstream) -> CUresult {
    event_record_with_flags(raw, stream, 0)
}

fn event_record_with_flags(raw: CUevent, stream: CUstream, flags: c_uint) -> CUresult {
    if flags == CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0 {
        return capture::add(stream, graphs::Work::Record(raw.addr())).unwrap_or(INVALID);
    }
    if !capture::record(raw, stream) {
        in_one_step(|| {
            let recording = expect(raw.addr());
            enqueue(stream, move || recording.reach());
        });
    }
    OK
}

fn stream_wait(stream: CUstream, raw: CUevent, flags: c_uint) -> CUresult {
    if flags == CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL.0 {
        return capture::add(stream, graphs::Work::Wait(raw.addr())).unwrap_or(INVALID);
    }
    if let Some(outcome) = capture::wait(stream, raw) {
        return outcome;
    }
    in_one_step(|| {
        if let Some(recording) = latest(raw.addr()) {
            enqueue(stream, move || recording.wait());
        }
    });
    OK
}

fn event_query(raw: CUevent) -> CUresult {
    let recording = event(raw.addr()).0.lock().clone();
    let is_reached = recording.is_none_or(|recording| recording.time.lock().is_some());
    if is_reached { OK } else { CUresult::CUDA_ERROR_NOT_READY }
}

fn event_synchronize(raw: CUevent) -> CUresult {
    if let Some(recording) = latest(raw.addr()) {
        recording.wait();
    }
    OK
}

fn elapsed(out: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    let recordings = [start, end].map(|raw| event(raw.addr()).0.lock().clone());
    let [Some(start), Some(end)] = recordings else { return CUresult::CUDA_ERROR_INVALID_HANDLE };
    // One after the other: both may be the same.
    let start = *start.time.lock();
    let end = *end.time.lock();
    match (start, end) {
        (Some(start), Some(end)) => {
            unsafe { *out = (end as f64 - start as f64) as f32 / 1e6 };
            OK
        }
        _ => CUresult::CUDA_ERROR_NOT_READY,
    }
}

/// The thread on which host functions run.
const HOST_FUNCTIONS: &str = "simulated host functions";

/// Whether this thread is the driver's own for host functions.
pub fn in_host_function() -> bool {
    std::thread::current().name() == Some(HOST_FUNCTIONS)
}

/// Runs a host function on the driver's thread, and waits for it.
pub fn call(function: CUhostFn, data: *mut c_void) {
    static CALLS: LazyLock<Mutex<Sender<Work>>> = LazyLock::new(|| {
        let (sender, receiver) = channel::<Work>();
        let thread = std::thread::Builder::new().name(HOST_FUNCTIONS.into());
        thread.spawn(move || receiver.iter().for_each(|work| work())).unwrap();
        Mutex::new(sender)
    });
    let Some(function) = function else { return };
    let data = data as usize;
    let (done, wait) = channel();
    let work: Work = Box::new(move || {
        unsafe { function(data as *mut c_void) };
        let _ = done.send(());
    });
    CALLS.lock().send(work).unwrap();
    let _ = wait.recv();
}

fn host_function(stream: CUstream, function: CUhostFn, data: *mut c_void) -> CUresult {
    if function.is_none() {
        return INVALID;
    }
    let parameters = CUDA_HOST_NODE_PARAMS_v1 { fn_: function, userData: data };
    let data = data as usize;
    capture::add(stream, graphs::Work::Host(parameters)).unwrap_or_else(|| {
        enqueue(stream, move || call(function, data as *mut c_void));
        OK
    })
}
