//! Shows what the optimiser makes of a graph.
//!
//! ```sh
//! cargo run --example optimized -- FOLDER
//! gridloom show --svg FOLDER/before.json > before.svg
//! gridloom show --svg FOLDER/after.json > after.svg
//! ```
//!
//! The graph prepares six arrays side by side, then repeats a relaxation of a small array until it
//! has made eight passes. On a GPU the six kernels become one launch, and the loop becomes one
//! kernel. On the CPU only the first is worthwhile; `GRIDLOOM_OPTIMIZE=everything` makes both.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::PathBuf;

use gridloom::Optimizations;
use gridloom::prelude::*;

const LEN: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let module = device.load_ptx(gridloom::demo_kernels::HEAT)?;
    // SAFETY: heat_step reads `n` floats from its second argument and writes `n` to its first.
    let step = unsafe { module.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")? };
    let arrays = || (0..6).map(|_| device.buffer_from(&[1.0f32; LEN])).collect::<Result<Vec<_>>>();
    let (inputs, outputs) = (arrays()?, arrays()?);
    let (now, next) = (device.buffer_from(&[1.0f32; LEN])?, device.alloc::<f32>(LEN)?);

    let graph = Graph::new(&device);
    let start = graph.memset(&next, 0.0f32)?.named("clear")?;
    let mut prepared = Vec::new();
    for (input, output) in inputs.iter().zip(&outputs) {
        let node = start.launch(&step, LaunchConfig::linear(LEN), (output, input, LEN as u32, 0.1))?;
        prepared.push(node.named(&format!("prepare {}", prepared.len() + 1))?);
    }
    let ready = graph.join(&prepared)?;
    let repeat = ready.repeat(8)?;
    repeat
        .body()
        .launch(&step, LaunchConfig::linear(LEN), (&next, &now, LEN as u32, 0.4))?
        .named("relax")?
        .memcpy(&now, &next)?
        .named("copy back")?;

    let exec = graph.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::ALL))?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    let report = exec.report();
    report.optimized.iter().for_each(|line| println!("{line}"));
    report.not_optimized.iter().for_each(|(node, reason)| println!("not {node}: {reason}"));
    if let (Some(folder), Some(optimized)) = (std::env::args_os().nth(1), exec.optimized_graph()?) {
        let folder = PathBuf::from(folder);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("before.json"), graph.to_json())?;
        std::fs::write(folder.join("after.json"), optimized.to_json())?;
    }
    Ok(())
}
