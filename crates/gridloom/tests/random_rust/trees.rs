//! Programs that are trees: evaluated on the host, and run on every device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use gridloom::__kernel::Target;
use gridloom::prelude::*;

use crate::INPUT;
use crate::evaluate::{Failed, evaluate};
use crate::generate::{INPUT_LEN, generate};
use crate::record::{FILE, record};
use crate::support::{for_each_device, is_cpu};
use crate::tree::{Program, WORDS};

/// How many programs are run where nobody asks for more.
const FEW: u64 = 300;

type Results = Vec<Result<[u64; WORDS], Failed>>;

/// The input: numbers of all sizes.
fn input() -> Vec<i32> {
    let mut input = INPUT.to_vec();
    input.resize(INPUT_LEN, 5);
    input
}

/// Launches a program with one thread for each element that it can be run for.
fn launch(
    device: &Device,
    kernel: &Kernel<(Ptr<i32>, u64, PtrMut<[u64; WORDS]>, u64)>,
    input: &[i32],
    blocks: LaunchConfig,
) -> Result<Vec<[u64; WORDS]>> {
    let (x, out) = (device.buffer_from(input)?, device.buffer_from(&vec![[0u64; WORDS]; input.len()])?);
    let stream = device.stream()?;
    let args = (&x, input.len() as u64, &out, input.len() as u64);
    // SAFETY: the kernel was recorded with these parameters. It reads the elements of `x` whose
    // index is in range, and writes the element of `out` that belongs to the thread.
    unsafe { stream.launch_unchecked(kernel, blocks, args)? };
    stream.synchronize()?;
    out.to_vec()
}

/// Runs the program of a seed on a device, and compares it with what the host computed.
fn compare(device: &Device, seed: u64, program: &Program, expected: &Results, input: &[i32]) -> Result<()> {
    // CPUs run every second program as GPUs do, which optimises it in other ways.
    let target = if is_cpu(device) && seed.is_multiple_of(2) { Target::Any } else { Target::Gpu };
    let recorded = record(program, target).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    // SAFETY: these are the parameters that `record` declares.
    let kernel = unsafe { device.load_ptx(&recorded.ptx)?.kernel(&recorded.name)? };
    let failed = expected.iter().position(Result::is_err);
    match failed {
        None => {
            let found = launch(device, &kernel, input, LaunchConfig::new(1, 32))?;
            for (thread, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_eq!(Ok(*found), *expected, "seed {seed}, thread {thread}\n{}", recorded.ptx);
            }
        }
        // A failed check costs a GPU its context, which the other programs use.
        Some(_) if !is_cpu(device) => {}
        Some(_) => {
            // One of the threads that fail says where.
            let error = launch(device, &kernel, input, LaunchConfig::new(1, 32)).expect_err("a thread fails");
            let text = error.to_string();
            let lines: Vec<u32> = expected
                .iter()
                .filter_map(|result| result.as_ref().err().map(|Failed(line)| *line))
                .collect();
            let names = |line: &u32| text.contains(&format!("{FILE}:{line}"));
            assert!(
                lines.iter().any(names),
                "seed {seed}: expected a line of {lines:?} in: {text}\n{}",
                recorded.ptx
            );
        }
    }
    Ok(())
}

/// Seeds of programs that failed once. They run before the others.
const FAILED_ONCE: [u64; 4] = [500_723, 502_302, 502_597, 2_003_052];

#[test]
#[allow(clippy::print_stdout, reason = "`--nocapture` asks for it")]
fn compute_on_devices_what_they_compute_on_the_host() {
    let count =
        std::env::var("GRIDLOOM_RANDOM_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(FEW);
    let first: u64 =
        std::env::var("GRIDLOOM_RANDOM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for_each_device(|device| {
        let seeds = Mutex::new(FAILED_ONCE.into_iter().chain(first..first + count));
        let next = || seeds.lock().expect("no thread has panicked with it").next();
        let wrong = Mutex::new(Vec::new());
        let (fail, unchecked) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let input = input();
                    while let Some(seed) = next() {
                        if wrong.lock().expect("no thread has panicked with it").len() > 4 {
                            return;
                        }
                        let run = || {
                            let program = generate(seed);
                            let expected: Results =
                                (0..input.len()).map(|thread| evaluate(&program, &input, thread)).collect();
                            fail.fetch_add(u64::from(expected.iter().any(Result::is_err)), Ordering::Relaxed);
                            unchecked.fetch_add(u64::from(program.is_unchecked), Ordering::Relaxed);
                            compare(device, seed, &program, &expected, &input)
                                .map_err(|error| error.to_string())
                        };
                        let text = match catch_unwind(AssertUnwindSafe(run)) {
                            Ok(Ok(())) => continue,
                            Ok(Err(error)) => error,
                            Err(panic) => {
                                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".into())
                            }
                        };
                        wrong
                            .lock()
                            .expect("no thread has panicked with it")
                            .push(format!("seed {seed}: {text}"));
                    }
                });
            }
        });
        let wrong = wrong.into_inner().expect("no thread has panicked with it");
        println!(
            "{count} programs, of which {} fail in a thread, and {} are without checks",
            fail.load(Ordering::Relaxed),
            unchecked.load(Ordering::Relaxed)
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    });
}
