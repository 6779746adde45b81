//! `gridloom ptx`: check, look into and run PTX.

mod argument;
mod info;
mod launch;

use std::path::Path;

use crate::Failure;
use crate::args::Ptx;

/// Runs the subcommand.
pub(crate) fn run(command: &Ptx) -> Result<(), Failure> {
    match command {
        Ptx::Check { file } => check(file),
        Ptx::Info(options) => info::run(options),
        Ptx::Run(options) => launch::run(options),
    }
}

/// Parses and checks a file, and lists its kernels where nothing is wrong.
fn check(file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let module = gridloom::ptx::parse(&read(file)?).map_err(|error| error.render(&name))?;
    let problems = gridloom::ptx::check(&module);
    if !problems.is_empty() {
        let rendered: Vec<String> = problems.iter().map(|problem| problem.render(&name)).collect();
        return Err(rendered.join("\n").into());
    }
    let kernels: Vec<&str> = module.entries().map(|(_, entry)| entry.name.as_str()).collect();
    let plural = if kernels.len() == 1 { "" } else { "s" };
    println!("{name}: {} kernel{plural}: {}", kernels.len(), kernels.join(", "));
    Ok(())
}

/// The text of a file; bytes that are no UTF-8 are shown as such by the parser's error.
fn read(file: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
