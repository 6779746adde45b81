//! The release thread at the end of a process: each test runs this program again as a child and looks at how it ends.

use gridloom_cuda::release;
use std::process::{Command, ExitStatus};
use std::time::Duration;

const CHILD: &str = "GRIDLOOM_TEST_EXIT_CHILD";

fn run_child(case: &str) -> ExitStatus {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "the_child_process", "--nocapture"]).env(CHILD, case);
    command.status().unwrap()
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
        _ => {}
    }
}

#[test]
fn a_process_with_a_busy_queue_ends_with_its_own_status() {
    assert_eq!(run_child("busy").code(), Some(21));
}

#[test]
fn a_drop_that_never_ends_does_not_keep_the_process() {
    assert_eq!(run_child("stuck").code(), Some(22));
}
