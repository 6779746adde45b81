//! `gridloom cc`: CUDA C++ to PTX.

use gridloom::CompileOptions;

use crate::args::Cc;
use crate::{Failure, files, output};

/// Runs the subcommand.
pub(crate) fn run(args: &Cc) -> Result<(), Failure> {
    let destination = files::open(args.output.as_deref())?;
    let source = files::read_text(&args.file)?;
    let name =
        if args.file.as_os_str() == "-" { "<stdin>".to_owned() } else { args.file.display().to_string() };
    let options = CompileOptions::new()
        .name(&name)
        .architecture(args.arch)
        .line_info(!args.no_line_info)
        .name_expressions(&args.names)
        .flags(&args.options);
    let ptx =
        gridloom::compile_cuda(&source, &options).map_err(|error| crate::compile_failure(&name, error))?;
    if !ptx.log().is_empty() {
        output::note(ptx.log().trim_end());
    }
    for (asked, lowered) in ptx.lowered_names() {
        output::note(&format!("{asked} is {lowered}"));
    }
    match destination {
        Some(destination) => destination.write(ptx.text().as_bytes()),
        None => output::write(ptx.text()),
    }
}
