//! `gridloom run`: launches a saved graph.

use std::sync::Arc;
use std::time::Instant;

use gridloom::ProfileOptions;
use gridloom::file::LoadedGraph;
use serde_json::json;

use crate::args::Run;
use crate::files::Destination;
use crate::output::say;
use crate::timeout::Launches;
use crate::{Failure, files, progress, saved};

/// Runs the subcommand.
pub(crate) fn run(options: &Run) -> Result<(), Failure> {
    let name = options.file.display().to_string();
    let bytes = saved::read(&options.file)?;
    let device = saved::device(&options.device, &options.inputs)?;
    let loaded = saved::load(&name, &bytes, &device, &options.inputs)?;
    let mut gets = Vec::new();
    for get in &options.get {
        let (output, path) = saved::split("--get", "NAME=FILE", get)?;
        if !loaded.outputs().chain(loaded.inputs()).any(|port| port.name == output) {
            let names: Vec<&str> = loaded.outputs().map(|port| port.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("--get {get}: no output is called {output}; the graph has {known}").into());
        }
        gets.push((output, Destination::open(path.as_ref())?));
    }
    files::refuse_two_writers(gets.iter().map(|(_, destination)| destination))?;
    let executable = Arc::new(loaded.graph().instantiate()?);
    let within = Launches::new(executable, device.stream()?, options.timeout);
    let start = Instant::now();
    let launches = if options.profile { options.repeat - 1 } else { options.repeat };
    let bar = progress::bar(launches, "launches");
    within.launch(launches, |done| bar.set_position(done))?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let mut profile = options.profile.then(|| within.profile(ProfileOptions::new())).transpose()?;
    if let Some(profile) = &mut profile {
        crate::profile::remark(profile, &device);
    }
    let mut written = Vec::new();
    for (output, destination) in gets {
        let path = destination.path().display().to_string();
        destination.write(&loaded.get(output)?.to_npy())?;
        written.push((output, path));
    }
    if options.json {
        let written: serde_json::Map<_, _> =
            written.into_iter().map(|(output, path)| (output.to_owned(), path.into())).collect();
        let profile: Option<serde_json::Value> =
            profile.map(|profile| serde_json::from_str(&profile.to_json())).transpose()?;
        let report = json!({
            "device": device.name(), "launches": options.repeat, "seconds": seconds,
            "outputs": outputs(&loaded)?, "written": written, "profile": profile,
        });
        return say!("{report:#}");
    }
    say!("on {}", device.name())?;
    if launches > 0 {
        let each = seconds * 1e6 / launches as f64;
        let times = if launches == 1 { "launch".to_owned() } else { format!("launches, {each:.1} µs each") };
        say!("{launches} {times} ({:.3} ms)", seconds * 1e3)?;
    }
    for port in loaded.outputs() {
        say!("{} {}", port.name, saved::describe(&loaded.get(&port.name)?))?;
    }
    for (output, path) in written {
        say!("wrote {output} to {path}")?;
    }
    profile.map_or(Ok(()), |profile| crate::output::write(&format!("\n{profile}")))
}

/// Returns the outputs with their first elements.
fn outputs(loaded: &LoadedGraph) -> Result<Vec<serde_json::Value>, Failure> {
    const MOST: usize = 64;
    let output = |port: &gridloom::file::Port| {
        let array = loaded.get(&port.name)?;
        let elements = array.data.chunks_exact(array.dtype.size as usize).take(MOST);
        let first: Vec<String> = elements.map(|bytes| saved::element(array.dtype, bytes)).collect();
        Ok(json!({
            "name": port.name, "dtype": array.dtype.to_string(), "shape": array.shape, "first": first,
        }))
    };
    loaded.outputs().map(output).collect()
}
