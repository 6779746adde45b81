//! One number through a switch, once for each case.

use gridloom::demo_kernels;
use gridloom::prelude::*;

use super::{Checked, expect, stream_of, write_dot};
use crate::args::Demo;
use crate::output::say;

const START: i32 = 42;
const CASES: [(&str, i32); 4] = [("negate", -42), ("double_it", 84), ("square", 1764), ("none of them", 42)];

pub(super) fn run(device: &Device, demo: &Demo) -> Checked<()> {
    let stream = stream_of(device)?;
    let host = device.alloc_host::<i32>(1)?;
    for (case, (name, expected)) in CASES.into_iter().enumerate() {
        let graph = build(device, case as u32, &host)?;
        if case == 0 {
            write_dot(demo, &graph)?;
        }
        graph.instantiate()?.launch(&stream)?;
        stream.synchronize()?;
        let found = host.to_vec()?[0];
        say!("case {case}, {name}: {START} becomes {found}")?;
        expect(found == expected, &format!("{expected} was expected"))?;
    }
    Ok(())
}

fn build(device: &Device, case: u32, host: &Buffer<i32>) -> Result<Graph> {
    let module = device.load_ptx(demo_kernels::SWITCH)?;
    let graph = Graph::new(device);
    let chosen = graph.condition(Some(case))?;
    let value = graph.alloc::<i32>(1)?.named("value")?;
    let switch = value.memset(&value, START)?.switch(&chosen, CASES.len() - 1)?.named("which?")?;
    for (case, (name, _)) in CASES[..CASES.len() - 1].iter().enumerate() {
        // SAFETY: each of these kernels touches the one integer it is given.
        let kernel = unsafe { module.kernel::<(PtrMut<i32>,)>(name)? };
        switch.body(case)?.launch(&kernel, LaunchConfig::one(), (&value,))?;
    }
    switch.memcpy(host, &value)?.free(&value)?;
    Ok(graph)
}
