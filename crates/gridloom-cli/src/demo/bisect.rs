//! The square root of 2 by bisection. The device decides which half to keep.

use gridloom::contract::Contract;
use gridloom::prelude::*;
use gridloom::{GraphSaver, demo_kernels};

use super::{Checked, Scene, expect};
use crate::image::Image;

const TARGET: f64 = 2.0;
/// Columns of a picture, which show the numbers from 0 to 2.
const COLUMNS: usize = 48;

struct Bisection {
    graph: Graph,
    passes: Buffer<i32>,
    /// The ends of the bracket.
    ends: Buffer<f64>,
    root: Buffer<f64>,
}

pub(super) fn build(device: &Device, _size: u32, _passes: u32) -> Result<Box<dyn Scene>> {
    let module = device.load_ptx(demo_kernels::BISECT)?;
    let two_at = |index| Contract::new().holds(index, 2);
    // SAFETY: the kernels touch two ends, one counter and one root.
    let (evaluate, raise_low, lower_high, countdown, check, newton) = unsafe {
        (
            module.kernel_with::<(ConditionHandle, Ptr<f64>, f64)>("evaluate", two_at(1))?,
            module.kernel_with::<(PtrMut<f64>,)>("raise_low", two_at(0))?,
            module.kernel_with::<(PtrMut<f64>,)>("lower_high", two_at(0))?,
            module.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")?,
            module.kernel_with::<(ConditionHandle, PtrMut<f64>, Ptr<f64>, f64, f64)>("check", two_at(2))?,
            module.kernel::<(PtrMut<f64>, f64)>("newton")?,
        )
    };
    let one = LaunchConfig::one();
    let (passes, ends) = (device.alloc_host::<i32>(1)?, device.alloc::<f64>(2)?);
    let root = device.alloc_host::<f64>(1)?;
    let graph = Graph::new(device);
    let (again, right, refine) = (graph.condition(Some(1))?, graph.condition(None)?, graph.condition(None)?);
    let left = graph.alloc::<i32>(1)?.named("passes left")?;
    let found = left.alloc::<f64>(1)?.named("root")?;

    let repeat = found.memcpy(&left, &passes)?.while_loop(&again)?.named("halve")?;
    let body = repeat.body();
    let side = body.launch(&evaluate, one, (&right, &ends, TARGET))?.if_else(&right)?.named("which half?")?;
    side.then_body().launch(&raise_low, one, (&ends,))?;
    side.else_body().launch(&lower_high, one, (&ends,))?;
    side.launch(&countdown, one, (&again, &left))?;

    let polish = repeat
        .launch(&check, one, (&refine, &found, &ends, TARGET, 1e-12))?
        .if_then(&refine)?
        .named("not there yet?")?;
    polish.body().launch(&newton, one, (&found, TARGET))?;
    polish.memcpy(&root, &found)?.free(&left)?.free(&found)?;
    Ok(Box::new(Bisection { graph, passes, ends, root }))
}

impl Scene for Bisection {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn saver(&self) -> Result<GraphSaver> {
        let saver = self.graph.saver().input("bracket", &self.ends)?.output("bracket", &self.ends)?;
        saver.input("passes", &self.passes)?.output("root", &self.root)
    }

    fn begin(&self) -> Result<()> {
        self.ends.write(&[0.0, 2.0])
    }

    fn set_passes(&self, passes: u32) -> Result<()> {
        self.passes.write(&[passes as i32])
    }

    /// Draws the bracket on the numbers from 0 to 2. The smaller it is, the brighter.
    fn picture(&self) -> Result<Image> {
        let ends = self.ends.to_vec()?;
        let cell = |x: usize| {
            let (low, high) = (2.0 * x as f64 / COLUMNS as f64, 2.0 * (x + 1) as f64 / COLUMNS as f64);
            let halvings = (2.0 / (ends[1] - ends[0]).max(1e-6)).log2() as f32;
            if high > ends[0] && low < ends[1] { 0.3 + halvings / 30.0 } else { 0.0 }
        };
        Ok(Image::new(COLUMNS, (0..COLUMNS).map(cell).collect()))
    }

    fn check(&self, passes: u32) -> Checked<String> {
        let found = self.root.to_vec()?[0];
        let difference = (found - TARGET.sqrt()).abs();
        // The bracket halves with each pass, and a Newton step squares what is left.
        let bound = (2.0f64.powi(-(passes.min(1000) as i32)).powi(2)).max(1e-6);
        expect(difference <= bound, &format!("more than {bound:e} off"))?;
        Ok(format!(
            "after {passes} passes on [0, 2] and a Newton step where needed: {found}, {difference:e} from the host's root of {TARGET}"
        ))
    }
}
