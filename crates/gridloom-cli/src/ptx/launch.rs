//! `gridloom ptx run`.

use gridloom::prelude::*;

use super::argument::Argument;
use crate::args::PtxRun;
use crate::{Failure, pick};

/// Loads the file, launches the kernel, and writes back what it wrote.
pub(super) fn run(options: &PtxRun) -> Result<(), Failure> {
    let arguments: Vec<Argument> = options.args.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let device = pick::device(&options.device, options.step_limit)?;
    let module = device.load_ptx(&super::read(&options.file)?)?;
    let names = module.kernel_names();
    let name = match (&options.kernel, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, names) => {
            return Err(format!(
                "name one with --kernel; the file has {}: {}",
                names.len(),
                names.join(", ")
            )
            .into());
        }
    };
    let kernel = module.untyped_kernel(name)?;
    let prepared =
        arguments.iter().map(|argument| argument.prepare(&device)).collect::<Result<Vec<_>, Failure>>()?;

    let stream = device.stream()?;
    let config = LaunchConfig::new(options.grid, options.block).shared(options.shared);
    let args = prepared.iter().map(|prepared| prepared.arg.clone());
    // SAFETY: whoever runs this command vouches for the kernel and its arguments, as with any program; `--checked` verifies every access.
    unsafe { stream.launch_untyped(&kernel, config, args)? };
    stream.synchronize()?;

    for (path, buffer) in prepared.iter().filter_map(|prepared| prepared.output.as_ref()) {
        std::fs::write(path, buffer.to_vec()?).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {} bytes to {}", buffer.len(), path.display());
    }
    Ok(())
}
