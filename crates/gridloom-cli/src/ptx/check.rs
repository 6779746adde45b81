//! `gridloom ptx check`.

use std::path::Path;
use std::sync::Arc;

use gridloom::ptx::Module;
use gridloom_interp::{Layout, Program};

use super::source;
use crate::Failure;
use crate::output::say;

/// Where variables of the module are said to be. Nothing runs, so nothing is there.
const NOWHERE: u64 = 1 << 32;

/// Checks a file, lists its kernels, and says which of them the CPU device does not run.
pub(super) fn run(file: &Path, json: bool) -> Result<(), Failure> {
    let source = source::read(file)?;
    let program = program(&source.name, source.module()?)?;
    let kernels: Vec<&str> = program.module().entries().map(|(_, entry)| entry.name.as_str()).collect();
    if json {
        let kernel = |kernel: &&str| {
            let reason = program.kernel(kernel).err().map(|error| error.to_string());
            serde_json::json!({ "name": kernel, "not_on_cpu_because": reason })
        };
        let kernels: Vec<_> = kernels.iter().map(kernel).collect();
        return say!("{}", serde_json::json!({ "file": source.name, "kernels": kernels }));
    }
    let plural = if kernels.len() == 1 { "" } else { "s" };
    say!("{}: {} kernel{plural}: {}", source.name, kernels.len(), kernels.join(", "))?;
    for kernel in kernels {
        if let Err(error) = program.kernel(kernel) {
            say!("  {error}")?;
        }
    }
    Ok(())
}

/// Returns the module as the CPU device would load it.
pub(super) fn program(name: &str, module: Module) -> Result<Program, Failure> {
    let layout = Layout::of(&module).map_err(|error| format!("{name}: {error}"))?;
    let addresses = vec![NOWHERE; layout.variables().len()];
    Ok(Program::new(Arc::new(module), layout, addresses))
}
