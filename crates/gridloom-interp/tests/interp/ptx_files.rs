//! The PTX files that carry their own expectations, on the interpreter.

#[path = "../../../gridloom/tests/support/ptx_file.rs"]
mod ptx_file;

use crate::support::{Chunk, Map, Module, Params, run};
use gridloom_interp::Launch;
use ptx_file::{Argument, Case, Device, Outcome};
use std::path::Path;

/// Runs a case and returns the buffers, one per argument, or the words of the failure.
fn outcome(text: &str, case: &Case) -> Result<Vec<Vec<u8>>, String> {
    let module = Module::load(text)?;
    let kernel = module.program.kernel(&case.kernel).map_err(|error| error.to_string())?;
    let mut params = Params::default();
    let mut map = Map::default();
    let mut buffers: Vec<Vec<Chunk>> = Vec::new();
    for memory in &module.memory {
        map = map.with(memory);
    }
    for argument in &case.args {
        match argument {
            Argument::Scalar(bytes) => {
                params.0.resize(params.0.len().next_multiple_of(bytes.len()), 0);
                params.0.extend_from_slice(bytes);
                buffers.push(Vec::new());
            }
            Argument::Buffer(bytes) => {
                let mut buffer = Chunk::holding(bytes);
                map = map.with(&buffer);
                params = params.buffer(&mut buffer);
                buffers.push(buffer);
            }
        }
    }
    let launch = Launch {
        grid: case.grid,
        block: case.block,
        dynamic_shared: case.shared,
        params: &params.0,
        memory_map: Some(&map),
        step_limit: Some(10_000_000),
        ..Launch::new(&kernel, &module.heap)
    };
    run(&launch).map_err(|fault| fault.to_string())?;
    let bytes = |(buffer, argument): (&Vec<Chunk>, &Argument)| match argument {
        Argument::Buffer(bytes) => Chunk::bytes(buffer, bytes.len()),
        Argument::Scalar(_) => Vec::new(),
    };
    Ok(buffers.iter().zip(&case.args).map(bytes).collect())
}

/// Returns what is wrong with the outcome of a case.
fn complaint(text: &str, case: &Case) -> Option<String> {
    match (outcome(text, case), &case.outcome) {
        (Ok(buffers), Outcome::Contents(contents)) => {
            contents.iter().find_map(|expected| expected.check(&buffers[expected.argument]).err())
        }
        (Err(error), Outcome::Error(wanted)) if error.contains(wanted.as_str()) => None,
        (Err(error), Outcome::Error(wanted)) => Some(format!("failed with `{error}`, expected `{wanted}`")),
        (Err(error), Outcome::Contents(_)) => Some(error),
        (Ok(_), Outcome::Error(wanted)) => Some(format!("succeeded, expected `{wanted}`")),
    }
}

#[test]
fn every_file_gives_what_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gridloom/tests/ptx");
    let (mut cases, mut complaints) = (0, Vec::new());
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for case in ptx_file::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}")) {
            if case.only == Some(Device::Cuda) {
                continue;
            }
            cases += 1;
            if let Some(complaint) = complaint(&text, &case) {
                complaints.push(format!("{name}:{}: {}: {complaint}", case.line, case.kernel));
            }
        }
    }
    assert!(complaints.is_empty(), "{} of {cases} cases:\n{}", complaints.len(), complaints.join("\n"));
    assert!(cases > 100, "found {cases} cases");
}
