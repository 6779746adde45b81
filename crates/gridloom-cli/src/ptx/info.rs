//! `gridloom ptx info`: what a kernel takes, and what becomes of it on the CPU device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gridloom::ptx::Module;
use gridloom_interp::KernelCode;
use gridloom_jit::CompiledKernel;
use serde_json::{Value, json};

use super::{check, source};
use crate::Failure;
use crate::args::PtxInfo;
use crate::output::say;

/// Shows the kernels of one file.
pub(super) fn run(options: &PtxInfo, file: &Path) -> Result<(), Failure> {
    let source = source::read(file)?;
    let program = check::program(&source.name, source.module()?)?;
    let module = program.module();
    if options.files.len() > 1 && !options.json {
        say!("file {}\n", source.name)?;
    }
    let kernels: Vec<String> = match &options.kernel {
        Some(kernel) => vec![kernel.clone()],
        None => module.entries().map(|(_, entry)| entry.name.clone()).collect(),
    };
    for kernel in kernels {
        match program.kernel(&kernel) {
            Ok(code) => show(options, module, code)?,
            // One that cannot run here says why; the others are shown all the same.
            Err(error) if options.kernel.is_none() && options.json => {
                say!("{}", json!({ "kernel": kernel, "not_on_cpu_because": error.to_string() }))?;
            }
            Err(error) if options.kernel.is_none() => say!("kernel {kernel}\n  {error}\n")?,
            Err(error) => return Err(format!("{}: {error}", source.name).into()),
        }
    }
    Ok(())
}

/// Shows one kernel as a line of JSON.
fn show_json(module: &Module, code: Arc<KernelCode>) -> Result<(), Failure> {
    let params: Vec<Value> = code
        .params()
        .iter()
        .map(|param| {
            json!({
                "name": param.name, "offset": param.offset, "bytes": param.size,
                "type": param.ty.to_string(), "pointer": param.pointer,
            })
        })
        .collect();
    let mut facts = json!({
        "kernel": code.name(),
        "parameters": params,
        "registers": registers(module, code.name()),
        "shared_bytes": code.shared_bytes(),
        "local_bytes": code.local_bytes(),
        "required_threads": code.required_threads(),
        "max_threads": code.max_threads(),
        "instructions": code.instruction_count(),
    });
    match CompiledKernel::new(code) {
        Ok(compiled) => {
            compiled.compile_first();
            facts["engine"] = "jit".into();
            facts["vectorized"] = compiled.is_vectorized().into();
            facts["code_bytes"] = compiled.code_bytes().into();
        }
        Err(reason) => {
            facts["engine"] = "interpreter".into();
            facts["interpreted_because"] = reason.into();
        }
    }
    say!("{facts}")
}

fn show(options: &PtxInfo, module: &Module, code: Arc<KernelCode>) -> Result<(), Failure> {
    if options.json {
        return show_json(module, code);
    }
    say!("kernel {}", code.name())?;
    for param in code.params() {
        let pointer = if param.pointer { ", a pointer" } else { "" };
        say!(
            "  parameter  {} at {}: {} bytes, .{}{pointer}",
            param.name,
            param.offset,
            param.size,
            param.ty
        )?;
    }
    say!("  registers  {}", registers(module, code.name()))?;
    say!("  shared     {} bytes", code.shared_bytes())?;
    say!("  local      {} bytes a thread", code.local_bytes())?;
    if let Some([x, y, z]) = code.required_threads() {
        say!("  threads    {x} x {y} x {z} a block")?;
    } else if let Some([x, y, z]) = code.max_threads() {
        say!("  threads    at most {x} x {y} x {z} a block")?;
    }
    say!("  code       {} instructions", code.instruction_count())?;
    let compiled = match CompiledKernel::new(code) {
        Ok(compiled) => compiled,
        Err(reason) => {
            say!("  engine     interpreter: {reason}\n")?;
            return Ok(());
        }
    };
    say!("  engine     jit")?;
    let start = processor_time();
    compiled.compile_first();
    let milliseconds = processor_time().saturating_sub(start).as_secs_f64() * 1e3;
    let bytes = compiled.code_bytes();
    say!("  vectorized {}", if compiled.is_vectorized() { "yes" } else { "no" })?;
    say!("  compiled   {bytes} bytes in {milliseconds:.1} ms\n")?;
    if !options.clif && !options.asm {
        return Ok(());
    }
    for listing in compiled.listings()? {
        if options.clif {
            say!("; {}\n{}", listing.name, listing.clif)?;
        }
        if options.asm {
            say!("; {}\n{}", listing.name, listing.assembly)?;
        }
    }
    Ok(())
}

/// Returns the time that this thread has been on a processor. Other programs do not add to it.
#[cfg(unix)]
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, which lives until it returns.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "threads have a clock of their own");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the time since the first call, where the time of a thread is not known.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Returns the registers that a kernel declares, by type.
fn registers(module: &Module, kernel: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    if let Some(body) = module.entry(kernel).and_then(|(_, function)| function.body.as_deref()) {
        for ty in body.registers.types() {
            *counts.entry(ty.to_string()).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return "none".to_owned();
    }
    counts.iter().map(|(ty, count)| format!("{count} .{ty}")).collect::<Vec<_>>().join(", ")
}
