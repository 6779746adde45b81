//! A trace of each thread for reports, and the watchdog that reports a hang.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Steps of each thread that a report shows.
const SHOWN: usize = 40;

/// What one thread did lately, and what it does now.
pub(crate) struct Trace {
    name: String,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    done: VecDeque<String>,
    current: String,
    since: Option<Instant>,
}

impl Trace {
    pub(crate) fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Trace { name: name.into(), lines: Mutex::default() })
    }

    /// Begins a step. With `GRIDLOOM_ATTACK_TRACE=1` it is printed, for runs that end in a crash.
    pub(crate) fn begin(&self, step: usize, operation: &str) {
        let mut lines = self.lines.lock();
        lines.current = format!("{step} {operation}");
        lines.since = Some(Instant::now());
        if is_printed() {
            eprintln!("{} {step} {operation}", self.name);
        }
    }

    /// Adds what the current step uses.
    pub(crate) fn note(&self, what: std::fmt::Arguments<'_>) {
        let _ = write!(self.lines.lock().current, " {what}");
        if is_printed() {
            eprintln!("{}   {what}", self.name);
        }
    }

    pub(crate) fn end(&self, outcome: &str) {
        let mut lines = self.lines.lock();
        let done = format!("{} -> {outcome}", std::mem::take(&mut lines.current));
        lines.since = None;
        lines.done.push_back(done);
        if lines.done.len() > SHOWN {
            lines.done.pop_front();
        }
    }

    /// Returns how long the current step has taken so far.
    fn busy(&self) -> Option<Duration> {
        self.lines.lock().since.map(|since| since.elapsed())
    }

    pub(crate) fn report(&self) -> String {
        let lines = self.lines.lock();
        let mut text = format!("{}:\n", self.name);
        for line in &lines.done {
            let _ = writeln!(text, "    {line}");
        }
        if let Some(since) = lines.since {
            let _ = writeln!(text, "  > {} (for {:?})", lines.current, since.elapsed());
        }
        text
    }
}

fn is_printed() -> bool {
    static PRINTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *PRINTED.get_or_init(|| std::env::var("GRIDLOOM_ATTACK_TRACE").is_ok_and(|value| value == "1"))
}

/// Ends the process with a report when a step takes too long. It watches until it is dropped.
pub(crate) struct Watchdog {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn over(what: String, traces: Vec<Arc<Trace>>, patience: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let watch = move || {
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(Duration::from_millis(500));
                if traces.iter().any(|trace| trace.busy().is_some_and(|busy| busy > patience)) {
                    let traces: String = traces.iter().map(|trace| trace.report()).collect();
                    eprintln!("{what}: HANG\n{traces}");
                    eprintln!("{}", stacks());
                    std::process::exit(3);
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(watch).expect("a thread");
        Watchdog { stop, thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("the watchdog does not panic");
        }
    }
}

/// Returns the stacks of all threads, as a debugger sees them.
fn stacks() -> String {
    if cfg!(miri) {
        return String::new();
    }
    // To a file: the debugger stops this process, which could not empty a pipe.
    let id = std::process::id().to_string();
    let path = std::env::temp_dir().join(format!("gridloom-attack-{id}.stacks"));
    let Ok(file) = std::fs::File::create(&path) else { return "(no file for stacks)".into() };
    let debugger = std::process::Command::new("gdb")
        .args(["-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 24", "-p", &id])
        .stdin(std::process::Stdio::null())
        .stdout(file)
        .stderr(std::process::Stdio::null())
        .status();
    match debugger {
        Ok(_) => String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned(),
        Err(error) => format!("(stacks need gdb: {error})"),
    }
}
