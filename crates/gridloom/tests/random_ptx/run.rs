//! Runs a program on an engine and returns the memory afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gridloom::kernel::Arg;
use gridloom::prelude::*;
use gridloom::{Error, ErrorKind};

use super::program::Program;

/// What the buffers hold after a launch, or why there was none.
pub(crate) type Outcome = std::result::Result<Vec<Vec<u8>>, String>;

/// Runs a program. A panic is an outcome too.
pub(crate) fn run(device: &Device, program: &Program) -> Outcome {
    let text = program.text();
    match catch_unwind(AssertUnwindSafe(|| launch(device, program, &text))) {
        Ok(Ok(buffers)) => Ok(buffers),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("panicked".to_owned()),
    }
}

fn launch(device: &Device, program: &Program, text: &str) -> Result<Vec<Vec<u8>>> {
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
    let buffers: Vec<Buffer<u8>> = program
        .buffers(text)
        .iter()
        .map(|bytes| device.buffer_from(bytes.as_slice()))
        .collect::<Result<_>>()?;
    let mut args: Vec<Arg> = buffers.iter().map(Arg::memory).collect::<Result<_>>()?;
    args.push(Arg::bytes(&program.n.to_le_bytes()));
    args.push(Arg::bytes(&program.x.to_le_bytes()));
    args.push(Arg::bytes(&program.z.to_le_bytes()));
    let config = LaunchConfig::new(program.grid, program.block).shared(program.shared_bytes());
    // SAFETY: a program stays within the buffers that are made for it; the reference runs it in
    // checked mode.
    unsafe { stream.launch_untyped(&kernel, config, args)? };
    stream.synchronize()?;
    buffers.iter().map(Buffer::to_vec).collect()
}
