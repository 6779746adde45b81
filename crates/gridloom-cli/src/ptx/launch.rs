//! `gridloom ptx run`.

use gridloom::DeviceKind;
use gridloom::prelude::*;

use super::argument::Argument;
use super::prepare::Prepared;
use super::source;
use crate::args::{DeviceChoice, PtxRun};
use crate::files::Destination;
use crate::output::say;
use crate::{Failure, files, pick};

/// Loads the file, launches the kernel, and writes back what it wrote.
pub(super) fn run(options: &PtxRun) -> Result<(), Failure> {
    let arguments: Vec<Argument> = options.args.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let source = source::read(&options.file)?;
    let limits = pick::Limits { steps: options.step_limit, ..pick::Limits::default() };
    let device = pick::device(&options.device, Some(DeviceChoice::Cpu), limits)?;
    if device.kind() == DeviceKind::Cpu {
        // The same complaints as those of `ptx check`, with line and caret.
        source.module()?;
    }
    let module = device.load_ptx(&source.text).map_err(|error| error.context(&source.name))?;
    let names = module.kernel_names();
    let name = match (&options.kernel, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => return Err(format!("{}: there is no kernel in it", source.name).into()),
        (None, names) => {
            return Err(format!(
                "name one with --kernel; {} has {}: {}",
                source.name,
                names.len(),
                names.join(", ")
            )
            .into());
        }
    };
    let kernel = module.untyped_kernel(name)?;
    // What can be found wrong about files is, before the kernel runs.
    let destinations: Vec<Option<Destination>> =
        arguments.iter().map(Argument::destination).collect::<Result<_, Failure>>()?;
    files::refuse_two_writers(destinations.iter().flatten())?;
    let prepared: Vec<Prepared> =
        arguments.iter().map(|argument| argument.prepare(&device)).collect::<Result<_, Failure>>()?;

    let stream = device.stream()?;
    let config = LaunchConfig::new(options.grid, options.block).shared(options.shared);
    let args = prepared.iter().map(|prepared| prepared.arg.clone());
    // SAFETY: the CPU device checks every access, unless `--unchecked` was given: whoever gives it
    // vouches for the kernel and its arguments, as with any program. A GPU does not reach memory of
    // this process, other than what was given to it.
    unsafe { stream.launch_untyped(&kernel, config, args)? };
    stream.synchronize()?;

    let mut written = Vec::new();
    for (destination, prepared) in destinations.into_iter().zip(&prepared) {
        if let (Some(destination), Some(buffer)) = (destination, &prepared.buffer) {
            let path = destination.path().display().to_string();
            destination.write(&buffer.to_vec()?)?;
            written.push(format!("wrote {} bytes to {path}", buffer.len()));
        }
    }
    written.iter().try_for_each(|line| say!("{line}"))
}
