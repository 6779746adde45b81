//! Runs every PTX test file on every device; `tests/ptx/README.md` says how a file states what it
//! expects.

use crate::support::ptx_file;
use crate::support::{for_each_device, is_cpu};
use gridloom::kernel::Arg;
use gridloom::prelude::*;
use ptx_file::{Argument, Case, Outcome, parse};

/// Every test file: its name and its text.
fn files() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(crate::support::data::folder("tests/ptx")).unwrap();
    let mut files: Vec<_> = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .map(|path| {
            (path.file_name().unwrap().display().to_string(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn kernels_leave_what_their_file_expects() {
    let files = files();
    for_each_device(|device| {
        let mut wrong = Vec::new();
        for (name, text) in &files {
            let module = device.load_ptx(text);
            for case in parse(text).unwrap_or_else(|error| panic!("{name}: {error}")) {
                let meant = case.only.is_none_or(|only| is_cpu(device) == (only == ptx_file::Device::Cpu));
                if meant {
                    let outcome = match &module {
                        Ok(module) => run(device, module, &case).map_err(|error| error.to_string()),
                        Err(error) => Err(error.to_string()),
                    };
                    let complaints = check(&case, outcome);
                    wrong.extend(complaints.into_iter().map(|complaint| format!("{name}, {complaint}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        Ok(())
    });
}

/// Returns what each buffer holds after the launch; empty for arguments that are values.
fn run(device: &Device, module: &Module, case: &Case) -> Result<Vec<Vec<u8>>> {
    let kernel = module.untyped_kernel(&case.kernel)?;
    let stream = device.stream()?;
    let mut buffers = Vec::new();
    let mut args = Vec::new();
    for argument in &case.args {
        match argument {
            Argument::Buffer(bytes) => {
                let buffer = device.buffer_from(bytes.as_slice())?;
                args.push(Arg::memory(&buffer)?);
                buffers.push(Some(buffer));
            }
            Argument::Scalar(bytes) => {
                args.push(Arg::bytes(bytes));
                buffers.push(None);
            }
        }
    }
    let config = LaunchConfig::new(case.grid, case.block).shared(case.shared);
    // SAFETY: a file states the arguments that its kernels take, and its kernels stay within those
    // buffers.
    unsafe { stream.launch_untyped(&kernel, config, args)? };
    stream.synchronize()?;
    buffers.iter().map(|buffer| buffer.as_ref().map_or(Ok(Vec::new()), Buffer::to_vec)).collect()
}

/// Returns what is wrong with the outcome of a case.
fn check(case: &Case, outcome: std::result::Result<Vec<Vec<u8>>, String>) -> Vec<String> {
    let complain = |message: String| format!("kernel `{}`: {message}", case.kernel);
    match (&case.outcome, outcome) {
        (Outcome::Contents(contents), Ok(buffers)) => contents
            .iter()
            .filter_map(|expected| expected.check(&buffers[expected.argument]).err().map(complain))
            .collect(),
        (Outcome::Contents(_), Err(error)) => vec![complain(error)],
        (Outcome::Error(text), Err(error)) if error.contains(text) => Vec::new(),
        (Outcome::Error(text), Err(error)) => vec![complain(format!("expected {text:?} in: {error}"))],
        (Outcome::Error(text), Ok(_)) => vec![complain(format!("expected an error that says {text:?}"))],
    }
}
