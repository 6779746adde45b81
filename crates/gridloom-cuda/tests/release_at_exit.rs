//! The release thread at the end of a process: each test runs this program again as a child and
//! looks at how it ends.

mod common;
mod simulator;

use common::*;
use gridloom_core::op::{CallbackOp, ConditionalForm, Operation, Test};
use gridloom_cuda::release;
use std::cell::RefCell;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const CHILD: &str = "GRIDLOOM_TEST_EXIT_CHILD";

fn run_child(case: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    // Tests are named from below the crate on.
    let module = module_path!().split_once("::").map_or(String::new(), |(_, module)| format!("{module}::"));
    command.args(["--exact", &format!("{module}the_child_process"), "--nocapture"]).env(CHILD, case);
    command.output().unwrap()
}

/// Says on standard output that the thread it belongs to has ended.
struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), "the thread has ended");
    }
}

thread_local!(static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) });

/// Gives the thread that drops it something to drop at its end.
struct Follows;

impl Drop for Follows {
    fn drop(&mut self) {
        AT_THE_END.set(Some(AtTheEnd));
    }
}

/// Starts a loop that the host drives and that never ends.
fn drive_for_ever() {
    let gpu = Gpu::new(simulator::device(None));
    let (word, log) = (gpu.words(&[1]), gpu.words(&[0]));
    let graph = gpu.graph();
    let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Value(whole(&word)), 1);
    let passes = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&passes);
    let count = CallbackOp::closure(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    bodies[0].add(&[], Operation::Callback(count)).unwrap();
    graph.instantiate().unwrap().launch(&gpu.stream).unwrap();
    while passes.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    std::mem::forget((gpu, word, log));
}

/// Drops slowly, and would write to standard error if it were cut off half way.
struct Slow;

impl Drop for Slow {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Says that its drop has begun, and never finishes it.
struct Stuck(std::sync::mpsc::Sender<()>);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.send(());
        loop {
            std::thread::park();
        }
    }
}

/// Not a test of its own: the body of the child processes.
#[test]
fn the_child_process() {
    match std::env::var(CHILD).as_deref() {
        Ok("busy") => {
            for _ in 0..10_000 {
                release::hand_over(Box::new(Slow));
            }
            std::process::exit(21);
        }
        Ok("stuck") => {
            let (begun, has_begun) = std::sync::mpsc::channel();
            release::hand_over(Box::new(Stuck(begun)));
            has_begun.recv().unwrap();
            std::process::exit(22);
        }
        Ok("resting") => {
            // Its driver goes slowly, after the thread was told to stop.
            drop(simulator::device(None));
            release::hand_over(Box::new(Follows));
            release::flush();
            std::process::exit(23);
        }
        Ok("driven") => {
            drive_for_ever();
            std::process::exit(24);
        }
        _ => {}
    }
}

#[test]
fn a_process_with_a_busy_queue_ends_with_its_own_status() {
    assert_eq!(run_child("busy").status.code(), Some(21));
}

#[test]
fn a_drop_that_never_ends_does_not_keep_the_process() {
    assert_eq!(run_child("stuck").status.code(), Some(22));
}

#[test]
fn the_thread_does_not_end_while_the_driver_takes_itself_down() {
    let output = run_child("resting");
    assert_eq!(output.status.code(), Some(23));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("the thread has ended"), "{said}");
}

#[test]
fn a_loop_that_the_host_drives_makes_no_call_after_the_driver_is_gone() {
    assert_eq!(run_child("driven").status.code(), Some(24));
}
