//! The `gridloom` command: look at devices, run demonstrations, check and run PTX.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints; that is what it is for")]

mod args;
mod demo;
mod devices;
mod output;
mod pick;
mod ptx;
mod show;
mod strip;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Command, Options};

/// What a command can fail with: a message for a person is all that is needed at the top.
pub(crate) type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Devices => devices::list(),
        Command::Demo(demo) => demo::run(&demo),
        Command::Show(show) => show::run(&show),
        Command::Ptx(command) => ptx::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
