//! A switch over numbers, with a body for each case.

use gridloom::prelude::*;
use gridloom::{GraphSaver, demo_kernels};

use super::{Checked, Scene, expect};
use crate::image::Image;

const START: i32 = 42;
/// The kernels, and what becomes of the number. The last case is out of range.
pub(super) const CASES: [(&str, i32); 4] =
    [("negate", -42), ("double_it", 84), ("square", 1764), ("none of them", 42)];
/// Columns of a picture.
const COLUMNS: usize = 48;

/// A launch runs the case that a number in host memory says, for the element of that number.
struct Choice {
    graph: Graph,
    case: Buffer<i32>,
    result: Buffer<i32>,
    results: std::cell::RefCell<Vec<i32>>,
}

pub(super) fn build(device: &Device, _size: u32, _passes: u32) -> Result<Box<dyn Scene>> {
    let module = device.load_ptx(demo_kernels::SWITCH)?;
    let (case, result) = (device.alloc_host::<i32>(1)?, device.alloc_host::<i32>(1)?);
    let chosen = device.alloc::<i32>(1)?;
    let graph = Graph::new(device);
    let value = graph.alloc::<i32>(1)?.named("value")?;
    let switch = value
        .memset(&value, START)?
        .memcpy(&chosen, &case)?
        .named("which case")?
        .switch_on(&chosen, CASES.len() - 1)?
        .named("which?")?;
    for (case, (name, _)) in CASES[..CASES.len() - 1].iter().enumerate() {
        // SAFETY: each of these kernels touches the one integer it is given.
        let kernel = unsafe { module.kernel::<(PtrMut<i32>,)>(name)? };
        switch.body(case)?.launch(&kernel, LaunchConfig::one(), (&value,))?;
    }
    switch.memcpy(&result, &value)?.free(&value)?;
    Ok(Box::new(Choice { graph, case, result, results: Default::default() }))
}

impl Scene for Choice {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn saver(&self) -> Result<GraphSaver> {
        self.graph.saver().input("case", &self.case)?.output("result", &self.result)
    }

    fn begin(&self) -> Result<()> {
        self.results.borrow_mut().clear();
        self.case.write(&[-1])
    }

    /// Goes on by so many cases.
    fn set_passes(&self, passes: u32) -> Result<()> {
        let case = self.case.to_vec()?[0] + passes as i32;
        self.case.write(&[case])
    }

    /// Returns the result as a bar, on a scale of square roots.
    fn picture(&self) -> Result<Image> {
        let result = self.result.to_vec()?[0];
        self.results.borrow_mut().push(result);
        let largest = CASES.iter().map(|(_, value)| value.abs()).max().unwrap_or(1);
        let length = (result.abs() as f32 / largest as f32).sqrt() * COLUMNS as f32;
        let bright = if result < 0 { 0.4 } else { 0.8 };
        let cell = |x: usize| if (x as f32) < length { bright } else { 0.0 };
        Ok(Image::new(COLUMNS, (0..COLUMNS).map(cell).collect()))
    }

    fn check(&self, _passes: u32) -> Checked<String> {
        let last = self.case.to_vec()?[0] as usize;
        let found = self.result.to_vec()?[0];
        let expected = CASES.get(last).map_or(START, |(_, value)| *value);
        expect(found == expected, &format!("case {last} made {found}, {expected} was expected"))?;
        let mut lines = Vec::new();
        for ((case, (name, expected)), found) in CASES.iter().enumerate().zip(&*self.results.borrow()) {
            expect(found == expected, &format!("case {case} made {found}, {expected} was expected"))?;
            lines.push(format!("case {case}, {name}: {START} becomes {found}"));
        }
        Ok(if lines.is_empty() { format!("case {last}: {START} becomes {found}") } else { lines.join("\n") })
    }
}
