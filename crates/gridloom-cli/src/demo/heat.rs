//! A rod, hot at one end and cold at the other, whose heat spreads.
//!
//! The graph makes as many passes as a number in host memory says. It is instantiated once and
//! launched for every line of the picture.

use gridloom::prelude::*;
use gridloom::{GraphSaver, demo_kernels};

use super::{Checked, Scene, expect, greatest_difference};
use crate::image::Image;

const HOT: f32 = 100.0;
const COLD: f32 = 0.0;
const ALPHA: f32 = 0.4;
/// How far the device may be from the host, in degrees.
const TOLERANCE: f32 = 1e-5 * HOT;

/// The rod on the device, and the host memory it is read and steered through.
struct Rod {
    graph: Graph,
    now: Buffer<f32>,
    passes: Buffer<i32>,
    shown: Buffer<f32>,
}

pub(super) fn build(device: &Device, size: u32, _passes: u32) -> Result<Box<dyn Scene>> {
    let len = size as usize;
    let module = device.load_ptx(demo_kernels::HEAT)?;
    // SAFETY: the kernels touch the first `n` elements of the rods, or the one counter, as their
    // source says.
    let (step, countdown) = unsafe {
        (
            module.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")?,
            module.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")?,
        )
    };
    let (now, next) = (device.alloc::<f32>(len)?, device.alloc::<f32>(len)?);
    let left = device.alloc::<i32>(1)?;
    let (passes, shown) = (device.alloc_host(1)?, device.alloc_host(len)?);
    let graph = Graph::new(device);
    let again = graph.condition(Some(1))?;
    let repeat =
        graph.memcpy(&left, &passes)?.named("passes to make")?.while_loop(&again)?.named("spread")?;
    repeat
        .body()
        .launch(&step, LaunchConfig::linear(len), (&next, &now, len, ALPHA))?
        .memcpy(&now, &next)?
        .launch(&countdown, LaunchConfig::one(), (&again, &left))?;
    repeat.memcpy(&shown, &now)?.named("rod to host")?;
    Ok(Box::new(Rod { graph, now, passes, shown }))
}

impl Scene for Rod {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn saver(&self) -> Result<GraphSaver> {
        self.graph.saver().input("rod", &self.now)?.input("passes", &self.passes)?.output("rod", &self.now)
    }

    fn begin(&self) -> Result<()> {
        self.now.write(&first(self.now.len()))
    }

    fn set_passes(&self, passes: u32) -> Result<()> {
        self.passes.write(&[passes as i32])
    }

    fn picture(&self) -> Result<Image> {
        let values = self.shown.to_vec()?.iter().map(|degrees| degrees / HOT).collect();
        Ok(Image::new(self.now.len(), values))
    }

    fn check(&self, passes: u32) -> Checked<String> {
        let len = self.now.len();
        let difference = greatest_difference(&self.shown.to_vec()?, &reference(len, passes));
        let said = format!("more than {TOLERANCE:e} degrees from the host's own result");
        expect(difference <= TOLERANCE, &said)?;
        Ok(format!(
            "{passes} passes over {len} points; at most {difference} degrees from the host's own result"
        ))
    }
}

fn first(len: usize) -> Vec<f32> {
    let mut rod = vec![0.0; len];
    (rod[0], rod[len - 1]) = (HOT, COLD);
    rod
}

/// Computes the same recurrence on the host.
fn reference(len: usize, passes: u32) -> Vec<f32> {
    let mut now = first(len);
    let mut next = now.clone();
    for _ in 0..passes {
        for i in 1..len - 1 {
            next[i] = now[i] + ALPHA * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_reference_stay_as_they_are() {
        let rod = reference(8, 100);
        assert_eq!((rod[0], rod[7]), (HOT, COLD));
    }
}
