//! `gridloom demo --compare`: the same program on every device and engine.

use std::time::Instant;

use gridloom::{CpuOptions, Device, Engine};
use serde_json::json;

use super::{Checked, Facts};
use crate::args::Demo;
use crate::output::say;
use crate::pick;

/// Launches that are timed. The table has the median.
const LAUNCHES: usize = 5;

/// One line of the table.
struct Row {
    name: String,
    /// The median time of a launch, or why there is none.
    outcome: Checked<f64>,
}

pub(super) fn run(demo: &Demo, facts: &Facts, size: u32, passes: u32) -> Checked<()> {
    let cpu = |engine| Device::cpu_with(CpuOptions::new().engine(engine).memory_limit(pick::memory_limit()));
    let mut rows = Vec::new();
    let mut add = |name: &str, device: gridloom::Result<Device>| {
        let outcome = match device {
            Ok(device) => time(facts, &device, size, passes),
            Err(error) => Err(error.into()),
        };
        rows.push(Row { name: name.to_owned(), outcome });
    };
    let cuda = Device::cuda(0);
    let has_no_gpu = cuda.is_err();
    add("cuda", cuda);
    add("cpu, compiled", cpu(Engine::Jit));
    add("cpu, interpreted", cpu(Engine::Interpreter));
    let best = rows.iter().filter_map(|row| row.outcome.as_ref().ok()).copied().fold(f64::INFINITY, f64::min);
    if demo.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| match &row.outcome {
                Ok(time) => json!({ "device": row.name, "milliseconds": time, "ratio": time / best }),
                Err(error) => json!({ "device": row.name, "error": error.to_string() }),
            })
            .collect();
        say!("{:#}", json!({ "passes": passes, "size": size, "devices": rows }))?;
    } else {
        say!("{passes} passes, median of {LAUNCHES} launches; each result was checked against the host")?;
        say!("{:18} {:>12} {:>8}", "device", "µs", "ratio")?;
        for row in &rows {
            match &row.outcome {
                Ok(time) => say!("{:18} {:>12.1} {:>8.2}", row.name, time * 1e3, time / best)?,
                Err(error) => {
                    // `gridloom devices` has the rest.
                    let message = error.to_string();
                    say!("{:18} {:>12} {}", row.name, "-", message.split("; ").next().unwrap_or(&message))?;
                }
            }
        }
    }
    // A device that is not there is no failure; a wrong result is.
    let failed = rows.into_iter().skip(usize::from(has_no_gpu)).find_map(|row| row.outcome.err());
    failed.map_or(Ok(()), Err)
}

/// Returns the median time of a launch in milliseconds, after the result was checked.
fn time(facts: &Facts, device: &Device, size: u32, passes: u32) -> Checked<f64> {
    let scene = (facts.build)(device, size, passes)?;
    let stream = device.stream()?;
    let executable = scene.graph().instantiate()?;
    let mut times = Vec::new();
    for launch in 0..=LAUNCHES {
        scene.begin()?;
        scene.set_passes(passes)?;
        let start = Instant::now();
        executable.launch(&stream)?;
        stream.synchronize()?;
        // The first launch warms up.
        if launch > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    scene.check(passes)?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
