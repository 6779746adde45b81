//! A rod, hot at one end and cold at the other, whose heat spreads.
//!
//! There are two graphs over the same memory. One sets the rod up, the other advances it by the
//! number of passes in host memory. The second is instantiated once and launched for every line of
//! the picture.

use gridloom::contract::{Contract, arg};
use gridloom::prelude::*;
use gridloom::{Module, demo_kernels};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Checked, expect, stream_of, write_dot};
use crate::args::Demo;
use crate::output::say;
use crate::strip::Strip;
use crate::terminal::Terminal;

const HOT: f32 = 100.0;
const COLD: f32 = 0.0;
const ALPHA: f32 = 0.4;
/// Lines of the picture.
const FRAMES: u32 = 10;
/// Cells of a line.
const COLUMNS: usize = 48;
/// Columns of the number of passes before a line, and the space after it.
const LABEL: usize = 9;
/// Columns that the progress bar takes, with room for large numbers.
const BAR_COLUMNS: usize = 62;
/// How far the device may be from the host, in degrees.
const TOLERANCE: f32 = 1e-5 * HOT;

struct Kernels {
    step: Kernel<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>,
    set_ends: Kernel<(PtrMut<f32>, Len<u32>, f32, f32)>,
    countdown: Kernel<(ConditionHandle, PtrMut<i32>)>,
}

impl Kernels {
    fn load(module: &Module) -> Result<Self> {
        // SAFETY: the kernels touch the first `n` elements of the rods, or the one counter, as
        // their source says. The last of `n` elements is there where `n` is not 0.
        unsafe {
            Ok(Kernels {
                step: module.kernel("heat_step")?,
                set_ends: module.kernel_with("set_ends", Contract::new().at_least(arg(1), 1))?,
                countdown: module.kernel("countdown")?,
            })
        }
    }
}

/// The rod on the device, and the host memory it is read and steered through.
struct Rod {
    now: Buffer<f32>,
    next: Buffer<f32>,
    left: Buffer<i32>,
    passes: Buffer<i32>,
    shown: Buffer<f32>,
    len: usize,
}

impl Rod {
    fn new(device: &Device, len: usize) -> Result<Self> {
        Ok(Rod {
            now: device.alloc(len)?,
            next: device.alloc(len)?,
            left: device.alloc(1)?,
            passes: device.alloc_host(1)?,
            shown: device.alloc_host(len)?,
            len,
        })
    }

    fn set_up(&self, device: &Device, kernels: &Kernels) -> Result<Graph> {
        let graph = Graph::new(device);
        let ends = (&self.now, self.len, HOT, COLD);
        graph.memset(&self.now, 0.0f32)?.launch(&kernels.set_ends, LaunchConfig::one(), ends)?;
        Ok(graph)
    }

    fn advance(&self, device: &Device, kernels: &Kernels) -> Result<Graph> {
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let repeat = graph.memcpy(&self.left, &self.passes)?.named("passes to make")?.while_loop(&again)?;
        repeat
            .body()
            .launch(&kernels.step, LaunchConfig::linear(self.len), (&self.next, &self.now, self.len, ALPHA))?
            .memcpy(&self.now, &self.next)?
            .launch(&kernels.countdown, LaunchConfig::one(), (&again, &self.left))?;
        repeat.memcpy(&self.shown, &self.now)?.named("rod to host")?;
        Ok(graph)
    }
}

pub(super) fn run(device: &Device, demo: &Demo) -> Checked<()> {
    let len = demo.size.unwrap_or(32) as usize;
    let passes = demo.passes.unwrap_or(50);
    let kernels = Kernels::load(&device.load_ptx(demo_kernels::HEAT)?)?;
    let rod = Rod::new(device, len)?;
    let stream = stream_of(device)?;
    rod.set_up(device, &kernels)?.instantiate()?.launch(&stream)?;
    let graph = rod.advance(device, &kernels)?;
    write_dot(demo, &graph)?;
    let advance = graph.instantiate()?;

    let bar = progress(passes);
    let strip = Strip::new(HOT, COLUMNS, LABEL, Terminal::stdout());
    let frames = FRAMES.min(passes);
    let mut done = 0;
    for frame in 1..=frames {
        let target = (u64::from(passes) * u64::from(frame) / u64::from(frames)) as u32;
        rod.passes.write(&[(target - done) as i32])?;
        advance.launch(&stream)?;
        stream.synchronize()?;
        done = target;
        bar.set_position(u64::from(done));
        let line = strip.line(&rod.shown.to_vec()?);
        bar.suspend(|| say!("{done:>8} {line}"))?;
    }
    bar.finish_and_clear();

    let difference = greatest_difference(&rod.shown.to_vec()?, &reference(len, passes));
    say!("{passes} passes over {len} points; at most {difference:e} degrees from the host's own result")?;
    expect(difference <= TOLERANCE, &format!("more than {TOLERANCE:e} degrees from the host's own result"))
}

/// A bar on standard error, where that is a terminal that can rewrite its lines and has room for
/// one.
fn progress(passes: u32) -> ProgressBar {
    let terminal = Terminal::stderr();
    if !terminal.rewrites || terminal.columns < BAR_COLUMNS {
        return ProgressBar::hidden();
    }
    ProgressBar::new(u64::from(passes)).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} passes")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}

/// The same recurrence on the host.
fn reference(len: usize, passes: u32) -> Vec<f32> {
    let mut now = vec![0.0; len];
    now[0] = HOT;
    now[len - 1] = COLD;
    let mut next = now.clone();
    for _ in 0..passes {
        for i in 1..len - 1 {
            next[i] = now[i] + ALPHA * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

/// Returns the greatest difference. A NaN counts as infinity.
fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |worst, d| if d.is_nan() { f32::INFINITY } else { worst.max(d) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_a_number_is_infinitely_far() {
        assert_eq!(greatest_difference(&[f32::NAN, 1.0], &[0.0, 1.0]), f32::INFINITY);
        assert_eq!(greatest_difference(&[1.0, 2.5], &[1.0, 2.0]), 0.5);
    }

    #[test]
    fn the_ends_of_the_reference_stay_as_they_are() {
        let rod = reference(8, 100);
        assert_eq!((rod[0], rod[7]), (HOT, COLD));
    }
}
