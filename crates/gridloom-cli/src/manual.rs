//! `gridloom completions` and `gridloom man`.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Options;
use crate::{Failure, files, output};

/// Prints the script for a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "gridloom", &mut script);
    output::write(&String::from_utf8_lossy(&script))
}

/// Prints the page of the whole command, or writes one page for each part to a folder.
pub(crate) fn man(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Options::command()).render(&mut page)?;
        return output::write(&String::from_utf8_lossy(&page));
    };
    let fail = |error| files::about(folder, error);
    std::fs::create_dir_all(folder).map_err(fail)?;
    clap_mangen::generate_to(Options::command(), folder).map_err(fail)
}
