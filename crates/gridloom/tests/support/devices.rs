//! The devices a test runs on: the CPU with each of its engines, and every CUDA GPU.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gridloom::{ConditionalMode, CpuOptions, Device, DeviceKind, Engine, Error, ErrorKind, Result};

/// The engines of the CPU device, with the names under which failures are reported.
const ENGINES: &[(&str, Engine)] =
    &[("the CPU (interpreter)", Engine::Interpreter), ("the CPU (compiled)", Engine::Jit)];

/// Runs a test on the CPU with each engine and on each CUDA GPU. It fails after the last device,
/// with the names of those it failed on.
///
/// Without a GPU one line says so; with `GRIDLOOM_REQUIRE_CUDA=1` in the environment that is a
/// failure.
#[track_caller]
pub fn for_each_device(test: impl Fn(&Device) -> Result<()>) {
    let mut failures = Vec::new();
    for (name, engine) in ENGINES {
        run(&mut failures, name, || test(&Device::cpu_with(engine_options(*engine))?));
    }
    run_on_gpus(&mut failures, test);
    report(&failures);
}

/// Runs a test on each CUDA GPU. It fails after the last, with the names of those it failed on.
///
/// Without a GPU one line says so; with `GRIDLOOM_REQUIRE_CUDA=1` in the environment that is a
/// failure.
#[track_caller]
pub fn for_each_gpu(test: impl Fn(&Device) -> Result<()>) {
    let mut failures = Vec::new();
    run_on_gpus(&mut failures, test);
    report(&failures);
}

fn run_on_gpus(failures: &mut Vec<String>, test: impl Fn(&Device) -> Result<()>) {
    match cuda_devices() {
        Ok(count) => {
            let _alone = alone();
            for ordinal in 0..*count {
                run(failures, &format!("GPU {ordinal}"), || test(&Device::cuda(ordinal)?));
            }
            // What the test has dropped goes now: a module waits for the device when it is
            // unloaded, and the next test may close a gate.
            (0..3).for_each(|_| gridloom_cuda::release::flush());
        }
        Err(error) if cuda_required() => {
            failures.push(format!("GRIDLOOM_REQUIRE_CUDA=1 but there is no CUDA device: {error}"));
        }
        Err(_) => {}
    }
}

/// Runs a test with each engine of the CPU. It gets the options to open the device with, to extend
/// them first.
#[track_caller]
pub fn for_each_engine(test: impl Fn(CpuOptions) -> Result<()>) {
    let mut failures = Vec::new();
    for (name, engine) in ENGINES {
        run(&mut failures, name, || test(engine_options(*engine)));
    }
    report(&failures);
}

/// Runs a test on each device with conditionals run by the device where it can, and by the host.
#[track_caller]
pub fn for_each_mode(test: impl Fn(&Device, ConditionalMode) -> Result<()>) {
    for mode in [ConditionalMode::Auto, ConditionalMode::Hosted] {
        for_each_device(|device| test(device, mode).map_err(|error| error.context(format_args!("{mode:?}"))));
    }
}

/// Returns whether it is the CPU, whose memory use nothing else in this process changes and whose
/// kernels may fail without losing the device.
pub fn is_cpu(device: &Device) -> bool {
    device.kind() == DeviceKind::Cpu
}

fn engine_options(engine: Engine) -> CpuOptions {
    // More threads than some machines have, so that work is shared out on all of them.
    CpuOptions::new().engine(engine).threads(4)
}

fn run(failures: &mut Vec<String>, name: &str, test: impl FnOnce() -> Result<()>) {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => failures.push(format!("on {name}: {error:?}")),
        // The panic's own message and place were shown when it happened.
        Err(_) => failures.push(format!("on {name}: panicked, see above")),
    }
}

#[track_caller]
fn report(failures: &[String]) {
    assert!(failures.is_empty(), "failed {}", failures.join("\n"));
}

/// Lets one test at a time use the GPUs. A process shares one context and one thread for callbacks
/// on each, so a test that holds a callback back would hold up all others. With
/// `GRIDLOOM_TESTS_TOGETHER=1` in the environment tests run side by side all the same.
pub fn alone() -> Option<MutexGuard<'static, ()>> {
    static GPUS: Mutex<()> = Mutex::new(());
    let together = std::env::var("GRIDLOOM_TESTS_TOGETHER").is_ok_and(|value| value == "1");
    (!together).then(|| GPUS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn cuda_required() -> bool {
    std::env::var("GRIDLOOM_REQUIRE_CUDA").is_ok_and(|value| value == "1")
}

/// Returns how many GPUs there are, or why there are none. The reason is shown once, past the
/// capture of test output.
fn cuda_devices() -> &'static Result<u32> {
    static COUNT: OnceLock<Result<u32>> = OnceLock::new();
    COUNT.get_or_init(|| {
        let count = count_cuda_devices();
        if let Err(error) = &count {
            use std::io::Write;
            // A direct write, since `eprintln!` is captured by the test harness and the reason
            // belongs to no one test.
            let _ = writeln!(std::io::stderr(), "CUDA skipped: {error}");
        }
        count
    })
}

fn count_cuda_devices() -> Result<u32> {
    if cfg!(miri) {
        return Err(Error::new(ErrorKind::NotSupported, "Miri cannot call a driver"));
    }
    // Opening the first device says more about what is missing than counting does.
    let first = Device::cuda(0)?;
    let gpus = Device::all()?.iter().filter(|device| device.kind() == first.kind()).count();
    u32::try_from(gpus).map_err(|_| Error::new(ErrorKind::NotFound, "more GPUs than numbers"))
}
