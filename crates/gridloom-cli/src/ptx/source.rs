//! The PTX of a file: PTX itself, or CUDA C++ that is compiled first.

use std::path::Path;

use gridloom::CompileOptions;
use gridloom::ptx::Module;

use crate::{Failure, files};

/// PTX, and the name of the file it came from.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads a file, or standard input where the path is `-`. A `.cu` file, and CUDA C++ from standard
/// input, is compiled with line information.
pub(super) fn read(path: &Path) -> Result<Source, Failure> {
    let name = if path.as_os_str() == "-" { "<stdin>".to_owned() } else { path.display().to_string() };
    let text = files::read_text(path)?;
    let is_cuda = path.extension().is_some_and(|extension| extension == "cu")
        || path.as_os_str() == "-" && gridloom::ptx::looks_like_cuda(&text);
    if !is_cuda {
        return Ok(Source { name, text });
    }
    let options = CompileOptions::new().name(&name).line_info(true);
    let ptx =
        gridloom::compile_cuda(&text, &options).map_err(|error| crate::compile_failure(&name, error))?;
    Ok(Source { name, text: ptx.into_text() })
}

impl Source {
    /// Parses and checks it.
    pub(super) fn module(&self) -> Result<Module, Failure> {
        let module = gridloom::ptx::parse(&self.text).map_err(|error| error.render(&self.name))?;
        let problems = gridloom::ptx::check(&module);
        if problems.is_empty() {
            return Ok(module);
        }
        let rendered: Vec<String> = problems.iter().map(|problem| problem.render(&self.name)).collect();
        Err(rendered.join("\n").into())
    }
}
