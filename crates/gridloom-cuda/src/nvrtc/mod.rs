//! CUDA C++ to PTX, with NVIDIA's run-time compiler where one is found.
//!
//! NVRTC needs no GPU and no driver; the CPU device runs its output as well. Gridloom looks for it
//! in this order: `GRIDLOOM_NVRTC` (a library or its folder), `CUDA_HOME`, `CUDA_PATH`, the
//! loader's path, the usual toolkit folders, and the NVIDIA packages of Python environments.

mod headers;
mod library;
mod search;

pub use search::NVRTC_VARIABLE;

use gridloom_core::log;
use library::{Functions, Program};
use std::ffi::{CString, c_char, c_int};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A failure to find or run the compiler.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// The library was not found.
    #[error("{}", missing(.attempts))]
    Missing {
        /// Each place that was tried, with the reason it was not used.
        attempts: Vec<(String, String)>,
    },
    /// The source does not compile.
    #[error("`{name}` does not compile:\n{log}")]
    Compile {
        /// The name the source was given.
        name: String,
        /// The compiler's messages. If a header is missing, they end with where headers are looked
        /// for.
        log: String,
    },
    /// A text that cannot be passed on, because it holds a NUL byte.
    #[error("the {what} holds a NUL byte, which CUDA C++ cannot have")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The compiler itself failed.
    #[error("{call} failed: {text} ({code})")]
    Call {
        /// The function that was called.
        call: &'static str,
        /// Its result code.
        code: c_int,
        /// The compiler's name for the code.
        text: String,
    },
}

fn missing(attempts: &[(String, String)]) -> String {
    let mut text = format!(
        "no CUDA C++ compiler (NVRTC) was found: install a CUDA toolkit or the Python package nvidia-cuda-nvrtc, or \
         set {NVRTC_VARIABLE} to the library. Looked in:"
    );
    for (place, reason) in attempts {
        text.push_str(&format!("\n  {place}: {reason}"));
    }
    text
}

/// How a source is compiled.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The name of the source in messages.
    pub name: String,
    /// The oldest compute capability that the PTX is for, such as `(9, 0)`. `None` is the
    /// compiler's default.
    pub architecture: Option<(u32, u32)>,
    /// Options for the compiler, as on its command line: `-DN=4`, `--std=c++17`, `-I/path`.
    pub flags: Vec<String>,
    /// C++ names to look up in the PTX: `scale<float>`, `library::scale`, `&table`. Template
    /// instances that are named here are compiled.
    pub name_expressions: Vec<String>,
    /// Whether the PTX has line information. `None` leaves it to the device: a CPU device in
    /// checked mode requests it.
    pub line_info: Option<bool>,
}

impl CompileOptions {
    /// Returns the default options, to be changed with the methods below.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the source, for messages.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the oldest compute capability the PTX is for.
    #[must_use]
    pub fn architecture(mut self, architecture: impl Into<Option<(u32, u32)>>) -> Self {
        self.architecture = architecture.into();
        self
    }

    /// Adds options for the compiler, as on its command line.
    #[must_use]
    pub fn flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Adds C++ names to look up in the PTX, such as template instances (`scale<float>`).
    #[must_use]
    pub fn name_expressions(mut self, expressions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.name_expressions.extend(expressions.into_iter().map(Into::into));
        self
    }

    /// Sets whether the PTX has line information.
    #[must_use]
    pub fn line_info(mut self, line_info: impl Into<Option<bool>>) -> Self {
        self.line_info = line_info.into();
        self
    }

    /// Returns the options as the compiler takes them, without folders of headers.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = self.flags.clone();
        if let Some((major, minor)) = self.architecture {
            arguments.push(format!("--gpu-architecture=compute_{major}{minor}"));
        }
        const LINE_INFO: [&str; 4] = ["-lineinfo", "--generate-line-info", "-G", "--device-debug"];
        if self.line_info == Some(true) && !self.flags.iter().any(|flag| LINE_INFO.contains(&flag.as_str())) {
            arguments.push(LINE_INFO[1].to_owned());
        }
        arguments
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            name: "source.cu".to_owned(),
            architecture: None,
            flags: Vec::new(),
            name_expressions: Vec::new(),
            line_info: None,
        }
    }
}

/// PTX that NVRTC generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    text: String,
    log: String,
    /// Name expressions with the names they have in the text.
    names: Vec<(String, String)>,
}

impl Ptx {
    /// Returns the PTX as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the compiler's warnings. The text is empty if there were none.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Returns the name that one of [`CompileOptions::name_expressions`] has in the PTX.
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.lowered_names().find(|(asked, _)| *asked == expression).map(|(_, name)| name)
    }

    /// Returns each of [`CompileOptions::name_expressions`], with the name that it has in the PTX.
    pub fn lowered_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(expression, name)| (expression.as_str(), name.as_str()))
    }

    /// Returns the PTX by value.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the PTX language version in its header.
    pub fn version(&self) -> Option<(u32, u32)> {
        let (_, version, _) = split_version(&self.text)?;
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// Returns the same code, marked as PTX of version `major.minor` if it is marked as newer.
    ///
    /// A compiler marks everything with its own version. A driver refuses newer versions by that
    /// number alone, even if the code uses nothing new.
    #[must_use]
    pub fn at_most(mut self, major: u32, minor: u32) -> Self {
        if self.version().is_some_and(|version| version > (major, minor))
            && let Some((before, _, after)) = split_version(&self.text)
        {
            self.text = format!("{before}{major}.{minor}{after}");
        }
        self
    }
}

/// Returns the text around the version number of the `.version` directive.
fn split_version(text: &str) -> Option<(&str, &str, &str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.trim_start().strip_prefix(".version") {
            let number = rest.trim();
            let at = start + line.find(number).filter(|_| !number.is_empty())?;
            return Some((&text[..at], number, &text[at + number.len()..]));
        }
        start += line.len();
    }
    None
}

/// An opened compiler.
pub struct Nvrtc {
    functions: Functions,
    version: (u32, u32),
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).field("path", &self.functions.path()).finish()
    }
}

impl Nvrtc {
    /// Returns the process's compiler, looked for at the first call. Only success is remembered.
    pub fn get() -> Result<Arc<Self>, NvrtcError> {
        static NVRTC: OnceLock<Arc<Nvrtc>> = OnceLock::new();
        if let Some(nvrtc) = NVRTC.get() {
            return Ok(Arc::clone(nvrtc));
        }
        let nvrtc = Arc::new(Self::open()?);
        Ok(Arc::clone(NVRTC.get_or_init(|| nvrtc)))
    }

    fn open() -> Result<Self, NvrtcError> {
        let functions = Functions::find()?;
        let version = functions.version()?;
        log!(debug, path = functions.path(), ?version, "opened NVRTC");
        Ok(Self { functions, version })
    }

    /// Returns the CUDA version the compiler belongs to.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Returns the library, as it was opened.
    pub fn path(&self) -> &str {
        self.functions.path()
    }

    /// Compiles CUDA C++ to PTX
    /// ([`nvrtcCompileProgram`](https://docs.nvidia.com/cuda/nvrtc/index.html)).
    ///
    /// Headers of CUDA are found beside the compiler, in a toolkit and in NVIDIA's Python packages;
    /// `-I` in the options comes first. `cudaGraphSetConditional` needs no declaration.
    pub fn compile(&self, source: &str, options: &CompileOptions) -> Result<Ptx, NvrtcError> {
        let mut flags = options.arguments();
        let folders = headers::folders(Path::new(self.path()), self.version);
        flags.extend(folders.found.iter().map(|folder| format!("--include-path={}", folder.display())));
        let declares = headers::sets_conditions(source);
        if declares {
            flags.push(format!("--pre-include={}", headers::CONDITIONS_NAME.to_string_lossy()));
        }
        let flags = c_strings(flags, "option")?;
        let expressions = c_strings(options.name_expressions.iter().cloned(), "name expression")?;
        let source = CString::new(source).map_err(|_| NvrtcError::Nul { what: "source" })?;
        let name = CString::new(options.name.as_str()).map_err(|_| NvrtcError::Nul { what: "name" })?;
        let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
        let texts = [(headers::CONDITIONS_NAME, headers::CONDITIONS)];

        let program = Program::new(&self.functions, &source, &name, if declares { &texts } else { &[] })?;
        for expression in &expressions {
            program.add_name_expression(expression)?;
        }
        let outcome = program.compile(&pointers);
        let mut log = program.log()?;
        match outcome {
            Ok(()) => {
                let names = options.name_expressions.iter().zip(&expressions);
                let names = names
                    .map(|(asked, expression)| Ok((asked.clone(), program.lowered_name(expression)?)))
                    .collect::<Result<_, NvrtcError>>()?;
                Ok(Ptx { text: program.ptx()?, log, names })
            }
            Err(NvrtcError::Call { code, .. }) if code == library::COMPILATION_FAILED || !log.is_empty() => {
                if headers::is_about_a_missing_header(&log) {
                    log.push_str(&folders.explain());
                }
                Err(NvrtcError::Compile { name: options.name.clone(), log })
            }
            Err(error) => Err(error),
        }
    }
}

fn c_strings(
    texts: impl IntoIterator<Item = String>,
    what: &'static str,
) -> Result<Vec<CString>, NvrtcError> {
    texts.into_iter().map(|text| CString::new(text).map_err(|_| NvrtcError::Nul { what })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(text: &str) -> Ptx {
        Ptx { text: text.to_owned(), log: String::new(), names: Vec::new() }
    }

    #[test]
    fn the_version_of_ptx_is_read_from_its_header() {
        assert_eq!(ptx("//\n// made\n\n.version 9.4\n.target sm_90\n").version(), Some((9, 4)));
        assert_eq!(ptx("// no header").version(), None);
        assert_eq!(ptx(".version\n").version(), None);
    }

    #[test]
    fn a_newer_version_mark_is_lowered_and_nothing_else_changes() {
        let lowered = ptx("// 9.4\n.version 9.4\n.target sm_90\n").at_most(8, 7);
        assert_eq!(lowered.text(), "// 9.4\n.version 8.7\n.target sm_90\n");
    }

    #[test]
    fn an_older_version_mark_stays() {
        let text = ".version 7.8\n.target sm_52\n";
        assert_eq!(ptx(text).at_most(8, 7).text(), text);
    }

    #[test]
    fn a_missing_compiler_says_where_it_was_looked_for_and_what_to_install() {
        let error =
            NvrtcError::Missing { attempts: vec![("/opt/cuda/lib64".into(), "no such folder".into())] };
        let text = error.to_string();
        assert!(text.contains("nvidia-cuda-nvrtc"), "{text}");
        assert!(text.contains("GRIDLOOM_NVRTC"), "{text}");
        assert!(text.contains("/opt/cuda/lib64: no such folder"), "{text}");
    }

    #[test]
    fn line_information_is_asked_for_once() {
        let flag = "--generate-line-info".to_owned();
        assert_eq!(CompileOptions::new().arguments(), Vec::<String>::new());
        assert_eq!(CompileOptions::new().line_info(true).arguments(), [flag]);
        assert_eq!(CompileOptions::new().line_info(false).arguments(), Vec::<String>::new());
        for known in ["-lineinfo", "-G"] {
            assert_eq!(CompileOptions::new().flags([known]).line_info(true).arguments(), [known]);
        }
    }
}
