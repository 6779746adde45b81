//! `gridloom ptx`: check, look into and run PTX.

mod argument;
mod check;
mod info;
mod launch;
mod prepare;
mod source;

use std::path::{Path, PathBuf};

use crate::args::Ptx;
use crate::{Failure, Reported, describe, output};

/// Runs the subcommand.
pub(crate) fn run(command: &Ptx) -> Result<(), Failure> {
    match command {
        Ptx::Check { files, json } => for_each(files, |file| check::run(file, *json)),
        Ptx::Info(options) => for_each(&options.files, |file| info::run(options, file)),
        Ptx::Run(options) => launch::run(options),
    }
}

/// Calls `each` for every file. A file that fails is reported, and the next one follows.
fn for_each(files: &[PathBuf], each: impl Fn(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    if files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err("`-` stands for standard input, which can be read once; name it once".into());
    }
    let mut failed = false;
    for file in files {
        match each(file) {
            Ok(()) => {}
            Err(failure) if failure.is::<output::Closed>() || failure.is::<output::Unwritable>() => {
                return Err(failure);
            }
            Err(failure) => {
                output::complain(&describe(&*failure));
                failed = true;
            }
        }
    }
    if failed { Err(Box::new(Reported)) } else { Ok(()) }
}
