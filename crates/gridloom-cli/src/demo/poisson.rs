//! The potential of two opposite charges, relaxed until it changes no more.
//!
//! The kernels are written in Rust. The loop ends on the device: a kernel looks at the largest
//! change of the pass and at the passes that are left.

use std::sync::atomic::Ordering;

use gridloom::prelude::*;
use gridloom::{Atomic, GraphSaver, Out, kernel};

use super::{Checked, Scene, expect, greatest_difference};
use crate::image::Image;

/// The change per pass at which the loop ends.
const TOLERANCE: f32 = 5e-4;
/// How far the device may be from the host.
const ACCURACY: f32 = 1e-4;
/// The potential beside a charge, which pictures show brightest.
const HIGHEST: f32 = 2.0;
/// How much more pictures tell small potentials apart than large ones.
const SPREAD: f32 = 8.0;

/// One pass over a square of rows of `width`, whose edge stays 0. Collects the largest change.
#[kernel]
fn relax(width: usize, now: &[f32], charge: &[f32], next: Out<f32>, change: &[Atomic<u32>]) {
    if let Some((i, cell)) = next.mine() {
        let (x, y) = (i % width, i / width);
        let mut value = 0.0;
        if x > 0 && y > 0 && x + 1 < width && y + 1 < now.len() / width {
            value = 0.25 * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] + charge[i]);
            let difference = (value - now[i]).abs();
            // Floats that are not negative are ordered like their bits.
            change[0].fetch_max(difference.to_bits(), Ordering::Relaxed);
        }
        *cell = value;
    }
}

/// Counts one pass, and ends the loop if little changed.
#[kernel]
fn decide(tolerance: f32, change: &[u32], left: Out<i32>) {
    if let Some((_, left)) = left.mine() {
        *left = if f32::from_bits(change[0]) < tolerance { 0 } else { *left - 1 };
    }
}

struct Field {
    graph: Graph,
    now: Buffer<f32>,
    charge: Buffer<f32>,
    passes: Buffer<i32>,
    width: usize,
}

pub(super) fn build(device: &Device, size: u32, _passes: u32) -> Result<Box<dyn Scene>> {
    let (width, cells) = (size as usize, (size as usize).pow(2));
    let (relax, decide) = (relax::load(device)?, decide::load(device)?);
    let (now, next) = (device.alloc::<f32>(cells)?, device.alloc::<f32>(cells)?);
    let charge = device.buffer_from(&charges(width))?;
    let (left, passes) = (device.alloc::<i32>(1)?, device.alloc_host::<i32>(1)?);
    let graph = Graph::new(device);
    let change = graph.alloc::<u32>(1)?.named("largest change")?;
    let repeat =
        change.memcpy(&left, &passes)?.named("passes at most")?.while_nonzero(&left)?.named("relax")?;
    repeat
        .body()
        .memset(&change, 0u32)?
        .launch(&relax, LaunchConfig::linear(cells), (width, &now, &charge, &next, &change))?
        .memcpy(&now, &next)?
        .launch(&decide, LaunchConfig::one(), (TOLERANCE, &change, &left))?;
    repeat.free(&change)?;
    Ok(Box::new(Field { graph, now, charge, passes, width }))
}

/// Returns a positive charge on the left and a negative one on the right.
fn charges(width: usize) -> Vec<f32> {
    let mut charge = vec![0.0; width * width];
    for (x, y, value) in [(width / 4, width / 3, 4.0), (3 * width / 4, 2 * width / 3, -4.0)] {
        charge[y * width + x] = value;
    }
    charge
}

/// Returns the host's own result, and the passes it took.
fn reference(width: usize, passes: u32) -> (Vec<f32>, u32) {
    let charge = charges(width);
    let (mut now, mut next) = (vec![0.0f32; width * width], vec![0.0f32; width * width]);
    for pass in 0..passes {
        let mut change = 0.0f32;
        for y in 1..width - 1 {
            for x in 1..width - 1 {
                let i = y * width + x;
                next[i] = 0.25 * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] + charge[i]);
                change = change.max((next[i] - now[i]).abs());
            }
        }
        std::mem::swap(&mut now, &mut next);
        if change < TOLERANCE {
            return (now, pass + 1);
        }
    }
    (now, passes)
}

impl Scene for Field {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn saver(&self) -> Result<GraphSaver> {
        let saver = self.graph.saver().input("field", &self.now)?.output("field", &self.now)?;
        let saver = saver.input("charge", &self.charge)?.input("passes", &self.passes)?;
        let square = [self.width, self.width];
        saver.shape("field", &square)?.shape("charge", &square)
    }

    fn begin(&self) -> Result<()> {
        self.now.write(&vec![0.0; self.now.len()])
    }

    fn set_passes(&self, passes: u32) -> Result<()> {
        self.passes.write(&[passes as i32])
    }

    fn picture(&self) -> Result<Image> {
        // Close to the charges the potential is many times what it is elsewhere.
        let shown = |value: &f32| 0.5 + 0.5 * (SPREAD * value).asinh() / (SPREAD * HIGHEST).asinh();
        Ok(Image::new(self.width, self.now.to_vec()?.iter().map(shown).collect()))
    }

    fn check(&self, passes: u32) -> Checked<String> {
        // Passes after the end of the loop change less than its tolerance each.
        let (field, taken) = reference(self.width, passes);
        let difference = greatest_difference(&self.now.to_vec()?, &field);
        let accuracy = ACCURACY + if taken < passes { 100.0 * TOLERANCE } else { 0.0 };
        expect(difference <= accuracy, &format!("{difference:e} from the host's own result"))?;
        Ok(format!(
            "the host needs {taken} passes over {0} × {0} points; at most {difference:e} from its result",
            self.width
        ))
    }
}
