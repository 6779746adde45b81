//! Which graphs may be in flight on several streams at once, by bare driver calls.
//!
//! Some drivers lose the context when certain graphs run side by side (docs/driver-quirks.md). This
//! program launches graphs from four threads, without anything of Gridloom but its bindings, and
//! prints how many launches it took until a call failed. Each variant runs in its own process,
//! because a lost context cannot be used again.
//!
//! ```sh
//! side_by_side                          # all variants of the list below, 2 s each
//! side_by_side --seconds 20 while,turns while,turns,cluster,shape
//! side_by_side --simulated while,turns  # on the simulated driver of the tests
//! ```
//!
//! A variant is a list of words:
//!
//! | word | meaning |
//! |---|---|
//! | `plain`, `fan`, `if`, `empty-if`, `while`, `tight-while`, `empty-while`, `device-launch`, `events` | what the graphs are; several words are dealt out to the threads. Graphs with `events` record one event and wait for that of the next thread. |
//! | `one` | all threads launch one executable instead of each its own |
//! | `turns`, `conditional-turns` | each launch, or each of a graph with a conditional, waits for the end of the one before it, by an event |
//! | `cluster`, `cooperative`, `priority` | how the kernels of the graphs are launched |
//! | `arguments`, `shape` | a kernel gets another argument, or another grid and block, before each launch |
//! | `recreate` | an executable is replaced after every 16 launches, while the last ones are in flight |
//! | `renew` | each launch has a new executable; the old one is destroyed while its launch is in flight |
//! | `recreate-idle` | an executable is replaced after each wait for its stream, while others run |
//! | `disable` | a kernel of a plain graph is left out of every other launch |
//! | `upload` | each new executable is uploaded on another stream |
//! | `upload-again` | an executable is uploaded on another stream before each launch, also while it runs |
//! | `early` | the last kernel of a loop's body, and those of `kernels`, start while what is before them runs |
//! | `transfers`, `nested`, `forked` | the body has a fill and a copy, another conditional, kernels that the others do not wait for |
//! | `callbacks` | each graph ends with a call of a function of the host |
//! | `single` | one thread instead of four |
//! | `streams` | each thread has 16 streams and executables and uses them by turns |
//! | `new-streams` | each launch has a stream of its own, which is destroyed while the launch is in flight |
//! | `deep` | a thread waits after 256 launches instead of 16 |
//! | `kernels` | a kernel of the same kind is launched on the stream before each graph |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its results")]

mod graphs;
// The simulated driver, for trying this program without a GPU.
#[path = "../../tests/simulator/mod.rs"]
mod simulator;
mod threads;
mod variant;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use variant::Variant;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What is tried if no variant is named: combinations that are known to fail, to work, or that are
/// suspected.
const VARIANTS: [&str; 70] = [
    "while",
    "while,one",
    "if",
    "if,while",
    "plain,while",
    "device-launch,while",
    "device-launch,while,turns",
    "if,while,turns",
    "while,turns",
    "while,turns,arguments",
    "while,turns,shape",
    "while,turns,recreate",
    "while,turns,upload,recreate",
    "plain,upload-again",
    "while,turns,upload-again",
    "plain,while,turns,upload-again",
    "while,turns,cluster,upload-again",
    "plain,while,turns,disable",
    "plain,cluster,disable",
    "plain,cooperative,disable",
    "plain,cooperative,arguments",
    "plain,cluster,arguments",
    "while,turns,cooperative,arguments",
    "while,turns,cluster,arguments",
    "events",
    "empty-if,turns",
    "empty-while,turns",
    "plain,empty-if,empty-while,turns,recreate",
    "while,turns,early",
    "while,turns,early,recreate",
    "plain,while,turns,early,kernels",
    "device-launch,while,turns,early,kernels",
    "device-launch,while,turns,recreate",
    "device-launch,while,turns,disable",
    "device-launch,if,while,turns,arguments,recreate",
    "while,turns,transfers",
    "while,turns,nested",
    "while,turns,forked",
    "while,turns,forked,arguments",
    "if,while,turns,forked,transfers,nested,recreate",
    "if,while,turns,transfers,nested,recreate",
    "while,turns,early,transfers,nested,arguments",
    "while,turns,cluster",
    "while,turns,cluster,shape",
    "while,turns,cooperative",
    "while,turns,cooperative,shape",
    "while,turns,priority",
    "while,turns,cluster,kernels",
    "while,turns,cooperative,kernels",
    "plain,cluster,shape",
    "plain,cooperative,shape",
    "plain,while,turns,cluster,shape,recreate",
    "plain,while,turns,cooperative,shape,recreate",
    "while,turns,callbacks",
    "while,turns,single,streams",
    "while,turns,single,streams,deep",
    "while,turns,single,streams,callbacks,deep",
    "while,turns,single,streams,callbacks,new-streams,recreate",
    "while,turns,streams,callbacks,deep,recreate",
    "while,turns,new-streams,callbacks",
    "while,turns,streams,recreate-idle",
    "while,turns,single,streams,callbacks,recreate-idle",
    "plain,while,turns,streams,callbacks,new-streams,recreate",
    "if,while,turns,streams,callbacks,deep,transfers,nested,recreate",
    "fan",
    "fan,while,turns",
    "plain,while,conditional-turns",
    "fan,while,conditional-turns",
    "fan,if,conditional-turns",
    "fan,plain,plain,while",
];

/// How much longer than its time a variant may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let mut seconds = 2.0;
    let (mut is_simulated, mut is_child) = (false, false);
    let mut names = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => seconds = args.next().ok_or("--seconds needs a number")?.parse()?,
            "--simulated" => is_simulated = true,
            "--child" => is_child = true,
            _ => names.push(arg),
        }
    }
    let variants: Vec<Variant> = match names.is_empty() {
        true => VARIANTS.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        false => names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
    };
    let time = Duration::try_from_secs_f64(seconds)?;
    if is_child {
        let (launches, failure) = threads::run(&variants[0], time, is_simulated)?;
        println!("{launches} launches, {}", failure.unwrap_or_else(|| "no failure".into()));
        return Ok(());
    }
    for variant in &variants {
        println!("{:<52} {}", variant.name, in_a_process(variant, time, is_simulated)?);
    }
    Ok(())
}

/// Runs a variant in its own process and returns what it says.
fn in_a_process(variant: &Variant, time: Duration, is_simulated: bool) -> Result<String, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", "--seconds", &time.as_secs_f64().to_string(), &variant.name]);
    if is_simulated {
        command.arg("--simulated");
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let end = Instant::now() + time + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(format!("no end after {:?}", time + PATIENCE));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(text);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Ok(format!("{}: {}", output.status, error.lines().last().unwrap_or("no message")))
}
