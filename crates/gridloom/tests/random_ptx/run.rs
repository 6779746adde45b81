//! Runs a program on an engine and returns the memory afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gridloom::kernel::{Arg, UntypedKernel};
use gridloom::prelude::*;
use gridloom::{Error, ErrorKind};

use super::program::Program;

/// What the buffers hold after each launch with other blocks, or why there was none.
pub(crate) type Outcome = std::result::Result<Vec<Vec<u8>>, String>;

/// Runs a program. A panic is an outcome too.
pub(crate) fn run(device: &Device, program: &Program) -> Outcome {
    let text = program.text();
    match catch_unwind(AssertUnwindSafe(|| launches(device, program, &text))) {
        Ok(Ok(buffers)) => Ok(buffers),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("panicked".to_owned()),
    }
}

/// Launches of one kernel on a device that compiles it. How threads are run is decided anew for
/// each launch, from what was seen in those before.
const LAUNCHES: u32 = 2;

fn launches(device: &Device, program: &Program, text: &str) -> Result<Vec<Vec<u8>>> {
    let module = device.load_ptx(text)?;
    let kernel = module.untyped_kernel("random")?;
    // Nothing in these programs is left to the interpreter as a whole: if it is, compiling it
    // failed.
    let said = |name: &str| kernel.info().into_iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let compiles = device.properties().iter().any(|(name, value)| name == "engine" && value == "jit");
    if compiles && (said("engine").as_deref(), said("vectorized").as_deref()) != (Some("jit"), Some("true")) {
        return Err(Error::new(ErrorKind::NotSupported, format!("not compiled: {:?}", kernel.info())));
    }
    let stream = device.stream()?;
    let before = program.buffers(text);
    let mut after = Vec::new();
    for block in [Some(program.block), program.then].into_iter().flatten() {
        let first = launch(device, &stream, &kernel, (program, block), &before)?;
        for _ in 1..if compiles { LAUNCHES } else { 1 } {
            let again = launch(device, &stream, &kernel, (program, block), &before)?;
            if again != first {
                let message = "two launches of one kernel leave different memory";
                return Err(Error::new(ErrorKind::InvalidState, message));
            }
        }
        after.extend(first);
    }
    Ok(after)
}

fn launch(
    device: &Device,
    stream: &Stream,
    kernel: &UntypedKernel,
    (program, block): (&Program, [u32; 3]),
    before: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>> {
    let buffers: Vec<Buffer<u8>> =
        before.iter().map(|bytes| device.buffer_from(bytes.as_slice())).collect::<Result<_>>()?;
    let mut args: Vec<Arg> = buffers.iter().map(Arg::memory).collect::<Result<_>>()?;
    args.push(Arg::bytes(&program.n.to_le_bytes()));
    args.push(Arg::bytes(&program.x.to_le_bytes()));
    args.push(Arg::bytes(&program.z.to_le_bytes()));
    let config = LaunchConfig::new(program.grid, block).shared(program.shared_bytes());
    // SAFETY: a program stays within the buffers that are made for it; the reference runs it in
    // checked mode.
    unsafe { stream.launch_untyped(kernel, config, args)? };
    stream.synchronize()?;
    buffers.iter().map(Buffer::to_vec).collect()
}
