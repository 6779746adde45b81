//! `gridloom ptx info`: what a kernel takes, and what becomes of it on the CPU device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use gridloom::ptx::Module;
use gridloom_interp::KernelCode;
use gridloom_jit::CompiledKernel;

use super::{check, source};
use crate::Failure;
use crate::args::PtxInfo;
use crate::output::say;

/// Shows the kernels of one file.
pub(super) fn run(options: &PtxInfo, file: &Path) -> Result<(), Failure> {
    let source = source::read(file)?;
    let program = check::program(&source.name, source.module()?)?;
    let module = program.module();
    if options.files.len() > 1 {
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
            Err(error) if options.kernel.is_none() => say!("kernel {kernel}\n  {error}\n")?,
            Err(error) => return Err(format!("{}: {error}", source.name).into()),
        }
    }
    Ok(())
}

fn show(options: &PtxInfo, module: &Module, code: Arc<KernelCode>) -> Result<(), Failure> {
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
    let start = Instant::now();
    compiled.compile_first();
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
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

/// The registers that a kernel declares, by type.
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
