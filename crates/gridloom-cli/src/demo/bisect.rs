//! The square root of 2 by halving a bracket, the decisions made on the device.

use gridloom::contract::Contract;
use gridloom::demo_kernels;
use gridloom::prelude::*;

use super::{Checked, expect, stream_of, write_dot};
use crate::args::Demo;
use crate::output::say;

const TARGET: f64 = 2.0;

pub(super) fn run(device: &Device, demo: &Demo) -> Checked<()> {
    let passes = demo.passes.unwrap_or(20);
    let root = device.alloc_host::<f64>(1)?;
    let graph = build(device, passes, &root)?;
    write_dot(demo, &graph)?;
    let exec = graph.instantiate()?;
    let stream = stream_of(device)?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    let found = root.to_vec()?[0];
    let difference = (found - TARGET.sqrt()).abs();
    say!(
        "after {passes} passes on [0, 2] and a Newton step where needed: {found}, {difference:e} from the host's root of {TARGET}"
    )?;
    // The bracket halves with each pass, and a Newton step squares what is left.
    let bound = (2.0f64.powi(-(passes.min(1000) as i32)).powi(2)).max(1e-6);
    expect(difference <= bound, &format!("more than {bound:e} off"))
}

fn build(device: &Device, passes: u32, host: &Buffer<f64>) -> Result<Graph> {
    let module = device.load_ptx(demo_kernels::BISECT)?;
    let two_at = |index| Contract::new().holds(index, 2);
    // SAFETY: the kernels touch two ends, one counter and one root.
    let (set_bracket, evaluate, raise_low, lower_high, countdown, check, newton) = unsafe {
        (
            module.kernel_with::<(PtrMut<f64>, PtrMut<i32>, f64, f64, i32)>("set_bracket", two_at(0))?,
            module.kernel_with::<(ConditionHandle, Ptr<f64>, f64)>("evaluate", two_at(1))?,
            module.kernel_with::<(PtrMut<f64>,)>("raise_low", two_at(0))?,
            module.kernel_with::<(PtrMut<f64>,)>("lower_high", two_at(0))?,
            module.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")?,
            module.kernel_with::<(ConditionHandle, PtrMut<f64>, Ptr<f64>, f64, f64)>("check", two_at(2))?,
            module.kernel::<(PtrMut<f64>, f64)>("newton")?,
        )
    };
    let one = LaunchConfig::one();
    let graph = Graph::new(device);
    let (again, right, refine) = (graph.condition(Some(1))?, graph.condition(None)?, graph.condition(None)?);
    let ends = graph.alloc::<f64>(2)?.named("ends")?;
    let left = ends.alloc::<i32>(1)?.named("passes left")?;
    let root = left.alloc::<f64>(1)?.named("root")?;

    let repeat = root
        .launch(&set_bracket, one, (&ends, &left, 0.0, 2.0, passes as i32))?
        .while_loop(&again)?
        .named("halve")?;
    let body = repeat.body();
    let side = body.launch(&evaluate, one, (&right, &ends, TARGET))?.if_else(&right)?.named("which half?")?;
    side.then_body().launch(&raise_low, one, (&ends,))?;
    side.else_body().launch(&lower_high, one, (&ends,))?;
    side.launch(&countdown, one, (&again, &left))?;

    let polish = repeat
        .launch(&check, one, (&refine, &root, &ends, TARGET, 1e-12))?
        .if_then(&refine)?
        .named("not there yet?")?;
    polish.body().launch(&newton, one, (&root, TARGET))?;
    polish.memcpy(host, &root)?.free(&ends)?.free(&left)?.free(&root)?;
    Ok(graph)
}
