//! The command line.

use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gridloom::{Dim3, Engine};

/// Graphs of device work, on NVIDIA GPUs and on any CPU.
#[derive(Parser)]
#[command(name = "gridloom", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the devices of this machine, and say why others are missing.
    Devices(Devices),
    /// Run a demonstration and check its result against the host.
    Demo(Demo),
    /// Show a graph in a file: a saved graph, what `Graph::to_json` wrote, or the DOT of CUDA's
    /// `cuGraphDebugDotPrint`.
    Show(Show),
    /// Run a saved graph.
    Run(Run),
    /// Say how two graphs differ. The status is 1 if they do, and 2 if one cannot be read.
    Diff(Diff),
    /// Launch a saved graph or a demonstration once and say when each node ran.
    Profile(Profile),
    /// Check or run PTX.
    #[command(subcommand)]
    Ptx(Ptx),
    /// Compile CUDA C++ to PTX with NVRTC, NVIDIA's run-time compiler. No GPU and no toolkit are
    /// needed.
    Cc(Cc),
    /// Print a script that completes this command in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of this command, or write the pages of all its parts to a folder.
    Man {
        /// The folder.
        #[arg(long, short, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct Devices {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A saved graph, with what is given to it.
#[derive(Args)]
pub(crate) struct Inputs {
    /// Give an input a value: one number for all its elements (`--set steps=100`), or an array
    /// (`--set x=data.npy`).
    #[arg(long = "set", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) set: Vec<String>,
    /// The most memory that the graph may use, in MiB. The default is 4096, or half of the free
    /// memory of the system if that is less.
    #[arg(long, value_name = "MIB", allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) memory: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Run {
    /// The saved graph.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write an output to a file when all launches are done: `--get y=result.npy`.
    #[arg(long = "get", value_name = "NAME=FILE")]
    pub(crate) get: Vec<String>,
    /// How often to launch the graph.
    #[arg(long, value_name = "LAUNCHES", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u64>(1, u64::MAX))]
    pub(crate) repeat: u64,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Profile the last launch and print the table.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

#[derive(Args)]
pub(crate) struct Diff {
    /// One graph, in any form that `show` reads.
    pub(crate) one: PathBuf,
    /// The other graph.
    pub(crate) other: PathBuf,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Profile {
    /// The saved graph, or the name of a demonstration.
    #[arg(value_name = "FILE|DEMO")]
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print all nodes, not only the slowest.
    #[arg(long)]
    pub(crate) all: bool,
    /// How many runs of each node to keep separately.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<u32>(1, u64::from(u32::MAX)))]
    pub(crate) runs: u32,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// How often to launch the graph first, to warm up.
    #[arg(long, default_value_t = 1, value_name = "LAUNCHES", allow_negative_numbers = true, value_parser = whole::<u32>(0, u64::from(u32::MAX)))]
    pub(crate) warm_up: u32,
    /// Write a page with the graph and its timeline to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a trace for Perfetto or chrome://tracing to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long, conflicts_with = "all")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// Returns a parser of whole numbers in a range.
fn whole<T: TryFrom<u64> + Clone + Send + Sync>(
    low: u64,
    high: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| (low..=high).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match high {
            u64::MAX => format!("write a whole number, at least {low} and at most {high}"),
            high => format!("write a whole number from {low} to {high}"),
        })
    }
}

/// Parses a number of seconds, at most a year.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
    match seconds > 0.0 && seconds <= 365.0 * 86400.0 {
        true => Ok(std::time::Duration::from_secs_f64(seconds)),
        false => Err("write a number of seconds above 0, at most a year".to_owned()),
    }
}

#[derive(Args)]
pub(crate) struct Cc {
    /// The file, or `-` for standard input.
    pub(crate) file: PathBuf,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The oldest GPU architecture that the PTX is for: sm_90 or 9.0. The default is the
    /// compiler's own.
    #[arg(long, value_parser = architecture)]
    pub(crate) arch: Option<(u32, u32)>,
    /// Compile this instance of a template (`scale<float>`), and print its name in the PTX.
    #[arg(long = "name", value_name = "C++ NAME")]
    pub(crate) names: Vec<String>,
    /// Print JSON instead of text: the PTX, names of instances, and what the compiler said.
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out line information.
    #[arg(long)]
    pub(crate) no_line_info: bool,
    /// Options for the compiler, after `--`: `-- -DN=4 --std=c++17 -I/path`.
    #[arg(last = true, value_name = "OPTION")]
    pub(crate) options: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Show {
    /// The file, or `-` for standard input.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) form: ShowForm,
    /// A profile of the graph, to be shown on the page.
    #[arg(long, value_name = "FILE", requires = "html")]
    pub(crate) profile: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The form in which a graph is shown. The default is an indented tree.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct ShowForm {
    /// Print Graphviz's DOT language.
    #[arg(long)]
    pub(crate) dot: bool,
    /// Print a Mermaid flow chart.
    #[arg(long)]
    pub(crate) mermaid: bool,
    /// Draw an SVG.
    #[arg(long)]
    pub(crate) svg: bool,
    /// Write an interactive page, in one file.
    #[arg(long)]
    pub(crate) html: bool,
    /// Print JSON, with the layer and position of each node.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// The demonstration.
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Passes of the loop (heat: 50, life: 200, bisect: 20, poisson: 2000).
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<u32>(1, i32::MAX as u64))]
    pub(crate) passes: Option<u32>,
    /// Points of the rod (heat: 32), or of a side of the square (life, poisson: 64).
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<u32>(3, 1 << 24))]
    pub(crate) size: Option<u32>,
    /// Run on every device and engine, and compare the times.
    #[arg(long, conflicts_with_all = ["device", "engine", "checked", "unchecked", "dot", "save", "svg", "png"])]
    pub(crate) compare: bool,
    /// Write the last picture as SVG to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the last picture as PNG to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Save the graph to this file, for `gridloom run`, `show` and `profile`.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print JSON instead of text and pictures.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the graph in Graphviz's DOT language to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Program {
    /// A rod cools: a WHILE loop of a kernel, a copy and a countdown on the device.
    Heat,
    /// The Game of Life on a torus: a WHILE loop of kernels written in Rust.
    Life,
    /// The square root of 2 by bisection: an IF/ELSE inside a WHILE, and an IF after it.
    Bisect,
    /// One number through a SWITCH, once for each case.
    Switch,
    /// The potential of two charges: a WHILE loop that ends when little changes.
    Poisson,
}

/// Which device to use, and how.
#[derive(Args, Clone)]
pub(crate) struct DeviceArgs {
    /// The device. The default is the first GPU if there is one, else the CPU. `ptx run` uses the
    /// CPU, which checks memory accesses.
    #[arg(long)]
    pub(crate) device: Option<DeviceChoice>,
    /// How the CPU device runs kernels.
    #[arg(long)]
    pub(crate) engine: Option<EngineChoice>,
    /// Check every memory access of kernels. This is the default of the CPU device.
    #[arg(long, conflicts_with = "unchecked")]
    pub(crate) checked: bool,
    /// Do not check the memory accesses of kernels. A kernel that accesses other memory can then
    /// crash the command.
    #[arg(long)]
    pub(crate) unchecked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// This machine's processors.
    Cpu,
    /// The first NVIDIA GPU.
    Cuda,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum EngineChoice {
    /// The reference interpreter.
    Interpreter,
    /// Machine code, which does not check accesses: it needs `--unchecked`.
    Jit,
}

impl From<EngineChoice> for Engine {
    fn from(choice: EngineChoice) -> Self {
        match choice {
            EngineChoice::Interpreter => Engine::Interpreter,
            EngineChoice::Jit => Engine::Jit,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Ptx {
    /// Check files: print errors with their positions, and what the CPU device does not run.
    Check {
        /// The files: PTX, CUDA C++ (`.cu`, compiled with NVRTC), or `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print JSON instead of text: a line for each file that could be read.
        #[arg(long)]
        json: bool,
    },
    /// Show the parameters of the kernels in files, and how the CPU device runs them.
    Info(PtxInfo),
    /// Launch one kernel of a file.
    Run(PtxRun),
}

#[derive(Args)]
pub(crate) struct PtxInfo {
    /// The files: PTX, CUDA C++ (`.cu`, compiled with NVRTC), or `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Show only this kernel.
    #[arg(long)]
    pub(crate) kernel: Option<String>,
    /// Print JSON instead of text: a line for each kernel.
    #[arg(long, conflicts_with_all = ["clif", "asm"])]
    pub(crate) json: bool,
    /// Also print Cranelift's intermediate code of the compiled kernels.
    #[arg(long)]
    pub(crate) clif: bool,
    /// Also print the machine code of the compiled kernels.
    #[arg(long)]
    pub(crate) asm: bool,
}

#[derive(Args)]
pub(crate) struct PtxRun {
    /// The file: PTX, CUDA C++ (`.cu`, compiled with NVRTC), or `-` for standard input.
    pub(crate) file: PathBuf,
    /// The kernel. It can be left out if the file has only one.
    #[arg(long)]
    pub(crate) kernel: Option<String>,
    /// The number of blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = dim3, default_value = "1", allow_hyphen_values = true)]
    pub(crate) grid: Dim3,
    /// The number of threads in a block: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = dim3, default_value = "1", allow_hyphen_values = true)]
    pub(crate) block: Dim3,
    /// Bytes of dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u32>(0, u64::from(u32::MAX)))]
    pub(crate) shared: u32,
    /// An argument, in order: a value (`f32:2.5`, `u32:7`, `i64:-1`, `f16:0.5`, `b64:0xff`,
    /// `pred:1`), a struct passed by value as its bytes in hex (`bytes:0000803f07000000`), memory
    /// from or to a raw file (`in:FILE`, `inout:FILE`, `out:FILE:BYTES`), or `null`.
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
    /// Stop a kernel that runs more instructions than this in one thread (CPU device only).
    #[arg(long, value_name = "INSTRUCTIONS", allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) step_limit: Option<u64>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// Parses a compute capability: `sm_90`, `compute_90`, `90` or `9.0`.
fn architecture(text: &str) -> Result<(u32, u32), String> {
    let number = text.strip_prefix("sm_").or(text.strip_prefix("compute_")).unwrap_or(text);
    let parsed = match number.split_once('.') {
        Some((major, minor)) => major.parse().ok().zip(minor.parse().ok()),
        None => {
            let last = number.len().checked_sub(1).filter(|&last| last > 0 && number.is_ascii());
            last.and_then(|last| number[..last].parse().ok().zip(number[last..].parse().ok()))
        }
    };
    parsed.ok_or_else(|| "write it as sm_90 or 9.0".to_owned())
}

fn dim3(text: &str) -> Result<Dim3, String> {
    let mut extents = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("at most three extents".into());
    }
    for (extent, part) in extents.iter_mut().zip(parts) {
        *extent = part.trim().parse().map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => format!("'{part}' is too large: an extent is at most {}", u32::MAX),
            _ => format!("'{part}' is not a whole number"),
        })?;
        if *extent == 0 {
            return Err("an extent is at least 1".into());
        }
    }
    Ok(Dim3::from(extents))
}
