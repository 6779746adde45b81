//! `gridloom cc`: CUDA C++ to PTX.

use gridloom::CompileOptions;
use serde_json::{Map, Value, json};

use crate::args::Cc;
use crate::output::say;
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
    if args.json {
        let names: Map<String, Value> =
            ptx.lowered_names().map(|(asked, lowered)| (asked.to_owned(), lowered.into())).collect();
        let log = ptx.log().trim_end();
        let written = destination.as_ref().map(|destination| destination.path().display().to_string());
        let text = if destination.is_none() { json!(ptx.text()) } else { Value::Null };
        if let Some(destination) = destination {
            destination.write(ptx.text().as_bytes())?;
        }
        return say!(
            "{:#}",
            json!({ "file": name, "written": written, "names": names, "log": log, "ptx": text })
        );
    }
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
