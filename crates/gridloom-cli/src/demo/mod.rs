//! `gridloom demo`: three programs, each checked against the host.

mod bisect;
mod heat;
mod switch;

use gridloom::{Device, Graph};

use crate::args::{Demo, Program};
use crate::output::say;
use crate::{Failure, files, pick};

/// Runs the demonstration that was asked for.
pub(crate) fn run(demo: &Demo) -> Result<(), Failure> {
    if demo.size.is_some() && !matches!(demo.program, Program::Heat) {
        return Err("--size is for the heat demonstration".into());
    }
    if demo.passes.is_some() && matches!(demo.program, Program::Switch) {
        return Err("--passes is for the heat and bisect demonstrations".into());
    }
    let device = pick::device(&demo.device, None, None)?;
    say!("on {}", device.name())?;
    match demo.program {
        Program::Heat => heat::run(&device, demo),
        Program::Bisect => bisect::run(&device, demo),
        Program::Switch => switch::run(&device, demo),
    }
}

/// Writes the picture that `--dot` asks for.
fn write_dot(demo: &Demo, graph: &Graph) -> Result<(), Failure> {
    if let Some(path) = &demo.dot {
        files::write(path, graph.to_dot().as_bytes())?;
        say!("wrote {}", path.display())?;
    }
    Ok(())
}

/// Names the check and fails where it does not hold.
fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(format!("wrong result: {what}").into()) }
}

type Checked<T> = Result<T, Failure>;

/// A device with what every demonstration needs.
fn stream_of(device: &Device) -> Checked<gridloom::Stream> {
    Ok(device.stream()?)
}
