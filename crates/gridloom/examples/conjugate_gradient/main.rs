//! Poisson's equation by conjugate gradients, solved on the device: the loop ends there, on the
//! residual, without the host.
//!
//! ```text
//! cargo run --release -p gridloom --example conjugate_gradient -- [--device cpu|cuda|all] [--plot FILE]
//! ```
//!
//! One callable serves two rectangles of different sizes. It is built at the first call; the second
//! only gives its nodes, also those inside the loop, other arrays and launch shapes. Both solutions
//! are checked against a solver on the host, and the residuals are drawn as an SVG picture.

mod host;
mod plot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use gridloom::contract::{Axis, Contract, arg, block, grid};
use gridloom::prelude::*;
use gridloom::{DeviceKind, demo_kernels};

/// The residual to reach, in parts of the one at the start.
const TOLERANCE: f64 = 1e-10;
/// Most passes of the loop.
const LIMIT: usize = 1000;
/// What the kernel `dot` is made for: blocks, and threads in each.
const DOT: (u32, u32) = (16, 256);

/// A rectangle of inner points, row by row, with the sources of heat on it. The border is cold.
struct Problem {
    name: &'static str,
    width: usize,
    sources: Vec<f64>,
}

/// What came of a solve.
struct Solution {
    values: Vec<f64>,
    /// The residual after each pass.
    history: Vec<f64>,
}

type Array = Param<[f64]>;
/// Unknowns, sources, residual, direction and the matrix times it; shares of sums, three scalars,
/// history; passes, whether to go on; width, tolerance.
type Arguments = (
    Array,
    Array,
    Array,
    Array,
    Array,
    Array,
    Array,
    Array,
    Param<i32>,
    Param<i32>,
    Scalar<u32>,
    Scalar<f64>,
);

struct Solver {
    device: Device,
    callable: Callable<Arguments>,
}

impl Solver {
    fn new(device: &Device) -> Result<Self> {
        type In = Ptr<f64>;
        type Out = PtrMut<f64>;
        type Int = PtrMut<i32>;
        let module = device.load_ptx(demo_kernels::POISSON)?;
        let shares_at = |index| Contract::new().holds(index, DOT.0);
        // SAFETY: the header of poisson.cu lists these very parameters, and what each kernel reads
        // and writes: as many elements of its vectors as `n` says, but for the shares of sums and
        // the scalars, whose numbers the contracts say. `judge` needs more, and is launched so.
        let (laplacian, dot, begin, curvature, advance, judge, redirect) = unsafe {
            (
                module.kernel_with::<(Out, In, u32, Len<u32>)>(
                    "laplacian",
                    Contract::new().multiple_of(arg(3), arg(2)),
                )?,
                module.kernel_with::<(Out, In, In, Len<u32>)>(
                    "dot",
                    Contract::new().holds(0, grid(Axis::X)).at_most(block(Axis::X), DOT.1),
                )?,
                module.kernel_with::<(Out, In, Int, Int)>("begin", shares_at(1))?,
                module.kernel_with::<(Out, In)>("curvature", shares_at(1).holds(0, 2))?,
                module.kernel_with::<(Out, Out, In, In, In, Len<u32>)>(
                    "advance",
                    Contract::new().holds(4, 2),
                )?,
                module
                    .kernel_with::<(Out, In, Out, Int, Int, i32, f64)>("judge", shares_at(1).holds(0, 3))?,
                module.kernel_with::<(Out, In, In, Len<u32>)>("redirect", Contract::new().holds(2, 3))?,
            )
        };
        let (one, shares) = (LaunchConfig::one(), LaunchConfig::new(DOT.0, DOT.1));
        let callable = Callable::new(
            device,
            move |g, (x, b, r, p, ap, partial, scalars, history, passes, again, width, tolerance): Arguments| {
                let n = x.len();
                // From x = 0 the residual, and the first direction, are the sources.
                g.memset(&x, 0u32)?;
                g.memcpy(&r, &b)?;
                g.memcpy(&p, &b)?;
                g.launch(&dot, shares, (&partial, &r, &r, n))?;
                g.launch(&begin, one, (&scalars, &partial, &passes, &again))?;
                g.do_while(&again, |pass| {
                    pass.launch(&laplacian, per_element(&p), (&ap, &p, &width, n))?;
                    pass.launch(&dot, shares, (&partial, &p, &ap, n))?;
                    pass.launch(&curvature, one, (&scalars, &partial))?;
                    pass.launch(&advance, per_element(&x), (&x, &r, &p, &ap, &scalars, n))?;
                    pass.launch(&dot, shares, (&partial, &r, &r, n))?;
                    let limit = history.len();
                    let judged = (&scalars, &partial, &history, &passes, &again, limit, &tolerance);
                    // SAFETY: it writes the element of `history` whose number is in `passes`. That
                    // begins with 0, grows by 1 a pass, and ends the loop when it is the length of
                    // `history`. `solve` gives the other two memories their sizes, and nothing else
                    // writes `passes`.
                    unsafe { pass.launch_unchecked(&judge, one, judged)? };
                    pass.launch(&redirect, per_element(&p), (&p, &r, &scalars, n))
                })
            },
        );
        Ok(Solver { device: device.clone(), callable })
    }

    /// Solves one problem: one call, and the results are read when it is done.
    fn solve(&self, stream: &Stream, problem: &Problem) -> Result<Solution> {
        let n = problem.sources.len();
        let vector = || self.device.alloc::<f64>(n);
        let (x, b) = (vector()?, self.device.buffer_from(&problem.sources)?);
        let (r, p, ap) = (vector()?, vector()?, vector()?);
        let partial = self.device.alloc(DOT.0 as usize)?;
        let (scalars, history) = (self.device.alloc(3)?, self.device.alloc(LIMIT)?);
        let (passes, again) = (self.device.alloc::<i32>(1)?, self.device.alloc(1)?);
        let tolerance = TOLERANCE * host::norm(&problem.sources);
        self.callable.call(
            stream,
            (
                &x,
                &b,
                &r,
                &p,
                &ap,
                &partial,
                &scalars,
                &history,
                &passes,
                &again,
                problem.width as u32,
                tolerance,
            ),
        )?;
        stream.synchronize()?;
        let made = passes.to_vec()?[0] as usize;
        Ok(Solution { values: x.to_vec()?, history: history.slice(..made)?.to_vec()? })
    }
}

/// A plate with a hot spot and a cold one.
fn solve_plate(solver: &Solver, stream: &Stream) -> Result<(Problem, Solution)> {
    let (width, height) = (48, 36);
    let mut sources = vec![0.0; width * height];
    sources[10 * width + 12] = 1.0;
    sources[25 * width + 33] = -0.5;
    let problem = Problem { name: "plate, 48 × 36", width, sources };
    let solution = solver.solve(stream, &problem)?;
    Ok((problem, solution))
}

/// A beam that is heated evenly along one half.
fn solve_beam(solver: &Solver, stream: &Stream) -> Result<(Problem, Solution)> {
    let (width, height) = (96, 10);
    let sources = (0..width * height).map(|i| if i % width < width / 2 { 0.01 } else { 0.0 }).collect();
    let problem = Problem { name: "beam, 96 × 10", width, sources };
    let solution = solver.solve(stream, &problem)?;
    Ok((problem, solution))
}

/// Returns the largest difference from the host's solution, in parts of its largest value.
fn difference(problem: &Problem, solution: &Solution) -> f64 {
    let reference = host::solve(&problem.sources, problem.width, TOLERANCE, LIMIT);
    let largest = reference.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let pairs = reference.iter().zip(&solution.values);
    pairs.fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs())) / largest
}

/// Solves both problems on a device and checks them. The curves for the picture, one for each.
#[allow(clippy::print_stdout, reason = "an example says what it does")]
pub(crate) fn run(device: &Device) -> Result<Vec<plot::Curve>> {
    println!("{}", device.name());
    let (solver, stream) = (Solver::new(device)?, device.stream()?);
    let mut curves = Vec::new();
    for solve in [solve_plate, solve_beam] {
        let start = Instant::now();
        let (problem, solution) = solve(&solver, &stream)?;
        let took = start.elapsed();
        let first = host::norm(&problem.sources);
        let residual = host::residual(&problem.sources, &solution.values, problem.width) / first;
        let difference = difference(&problem, &solution);
        println!(
            "  {}: {} passes, residual {residual:.1e}, off the host's solution by {difference:.1e}, {took:.1?}",
            problem.name,
            solution.history.len()
        );
        if residual > 2.0 * TOLERANCE || difference > 1e-8 {
            return Err(Error::new(ErrorKind::InvalidState, format!("{} was not solved", problem.name)));
        }
        let points = solution.history.iter().map(|residual| residual / first).collect();
        curves.push(plot::Curve { name: problem.name.into(), points });
    }
    let stats = solver.callable.stats();
    let loops = stats.hosted.as_deref().unwrap_or("by the device");
    println!("  graphs built: {}, calls: {}, loop run: {loops}", stats.builds, stats.calls);
    Ok(curves)
}

/// Returns the devices named on the command line, and where to draw.
fn arguments() -> Result<(Vec<Device>, PathBuf)> {
    let usage = |what: String| Error::new(ErrorKind::InvalidArgument, what);
    let (mut devices, mut path) = (Device::all()?, std::env::temp_dir().join("conjugate_gradient.svg"));
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| usage(format!("{option} needs a value")))?;
        match (option.as_str(), value.as_str()) {
            ("--device", "all") => {}
            ("--device", "cpu") => devices.retain(|device| device.kind() == DeviceKind::Cpu),
            ("--device", "cuda") => devices = vec![Device::cuda(0)?],
            ("--plot", file) => path = file.into(),
            _ => return Err(usage(format!("{option} {value}: use --device cpu|cuda|all, or --plot FILE"))),
        }
    }
    Ok((devices, path))
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "an example says what it does")]
fn main() -> ExitCode {
    let outcome = arguments().and_then(|(devices, path)| {
        let mut picture = String::new();
        for device in &devices {
            picture = plot::draw(&device.name(), &run(device)?, TOLERANCE);
        }
        std::fs::write(&path, picture)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
        println!("residuals drawn in {}", path.display());
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
