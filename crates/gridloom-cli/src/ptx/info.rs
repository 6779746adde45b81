//! `gridloom ptx info`: what a kernel takes, and what becomes of it on the CPU device.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridloom::ptx::Module;
use gridloom_interp::{KernelCode, Layout, Program};
use gridloom_jit::CompiledKernel;

use super::read;
use crate::Failure;
use crate::args::PtxInfo;

/// Where variables of the module are said to be. Nothing runs, so nothing is there.
const NOWHERE: u64 = 1 << 32;

/// Runs the subcommand.
pub(crate) fn run(options: &PtxInfo) -> Result<(), Failure> {
    let name = options.file.display().to_string();
    let module = gridloom::ptx::parse(&read(&options.file)?).map_err(|error| error.render(&name))?;
    let layout = Layout::of(&module).map_err(|error| format!("{name}: {error}"))?;
    let module = Arc::new(module);
    let addresses = vec![NOWHERE; layout.variables().len()];
    let program = Program::new(module.clone(), layout, addresses);
    let kernels: Vec<String> = match &options.kernel {
        Some(kernel) => vec![kernel.clone()],
        None => module.entries().map(|(_, entry)| entry.name.clone()).collect(),
    };
    for kernel in kernels {
        match program.kernel(&kernel) {
            Ok(code) => show(options, &module, code)?,
            // One that cannot run here says why; the others are shown all the same.
            Err(error) if options.kernel.is_none() => println!("kernel {kernel}\n  {error}\n"),
            Err(error) => return Err(format!("{name}: {error}").into()),
        }
    }
    Ok(())
}

fn show(options: &PtxInfo, module: &Module, code: Arc<KernelCode>) -> Result<(), Failure> {
    println!("kernel {}", code.name());
    for param in code.params() {
        let pointer = if param.pointer { ", a pointer" } else { "" };
        println!(
            "  parameter  {} at {}: {} bytes, .{}{pointer}",
            param.name, param.offset, param.size, param.ty
        );
    }
    println!("  registers  {}", registers(module, code.name()));
    println!("  shared     {} bytes", code.shared_bytes());
    println!("  local      {} bytes a thread", code.local_bytes());
    if let Some([x, y, z]) = code.required_threads() {
        println!("  threads    {x} x {y} x {z} a block");
    } else if let Some([x, y, z]) = code.max_threads() {
        println!("  threads    at most {x} x {y} x {z} a block");
    }
    println!("  code       {} instructions", code.instruction_count());
    let compiled = match CompiledKernel::new(code) {
        Ok(compiled) => compiled,
        Err(reason) => {
            println!("  engine     interpreter: {reason}\n");
            return Ok(());
        }
    };
    println!("  engine     jit");
    println!("  vectorized {}\n", if compiled.is_vectorized() { "yes" } else { "no" });
    if !options.clif && !options.asm {
        return Ok(());
    }
    for listing in compiled.listings()? {
        if options.clif {
            println!("; {}\n{}", listing.name, listing.clif);
        }
        if options.asm {
            println!("; {}\n{}", listing.name, listing.assembly);
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
