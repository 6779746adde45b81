//! Operations on executables.

use std::sync::{Arc, OnceLock};

use gridloom::ProfileOptions;
use gridloom::prelude::*;

use super::step::{Step, ends_soon, outline, runs};
use super::{graphs, is_left_out};
use crate::support::is_cpu;

fn executable(step: &mut Step<'_>) -> Result<Arc<Executable>> {
    match step.maybe(&step.world.executables) {
        Some(executable) => Ok(executable),
        None => {
            graphs::instantiate(step)?;
            let none = || Error::new(ErrorKind::NotFound, "thrown out by another thread");
            step.maybe(&step.world.executables).ok_or_else(none)
        }
    }
}

/// Returns whether launches of a graph leave memory allocated.
fn leaves_memory(graph: &Graph) -> bool {
    let nodes = graph.nodes();
    let count = |kind| nodes.iter().filter(|node| node.kind().ok() == Some(kind)).count();
    count(NodeKind::Alloc) > count(NodeKind::Free)
}

/// Notes the structure of what is launched, if the environment asks for it.
fn note_structure(step: &Step<'_>, executable: &Executable) -> Result<()> {
    static ASKED: OnceLock<bool> = OnceLock::new();
    if *ASKED.get_or_init(|| std::env::var_os("GRIDLOOM_ATTACK_STRUCTURE").is_some()) {
        step.trace.note(format_args!("[{}]", outline(&executable.graph()?)));
    }
    Ok(())
}

/// Launches one on a stream or a capture.
pub(crate) fn launch(step: &mut Step<'_>) -> Result<()> {
    let executable = executable(step)?;
    note_structure(step, &executable)?;
    if is_left_out("outliving") && leaves_memory(&executable.graph()?) {
        return Ok(());
    }
    match step.below(12) {
        0 => match step.maybe(&step.world.captures) {
            Some(capture) => executable.launch(&*capture),
            None => Ok(()),
        },
        1 if !is_left_out("uploads") => executable.upload(&step.stream()?),
        2 => {
            executable.launch(&step.stream()?)?;
            executable.cancel();
            Ok(())
        }
        3 => {
            let stream = step.stream()?;
            executable.launch(&stream)?;
            executable.launch(&stream)
        }
        4 if step.choices.one_in(4) => {
            // So often that an optimiser takes over on the way.
            let stream = step.stream()?;
            (0..40).try_for_each(|_| executable.launch(&stream))
        }
        _ => executable.launch(&step.stream()?),
    }
}

/// Launches one and lets go of it at once.
pub(crate) fn launch_and_drop(step: &mut Step<'_>) -> Result<()> {
    let (graph, stream) = (step.graph()?, step.stream()?);
    let executable = graph.instantiate()?;
    if !ends_soon(&executable)? {
        return Ok(());
    }
    if is_left_out("outliving") && leaves_memory(&executable.graph()?) {
        return Ok(());
    }
    note_structure(step, &executable)?;
    executable.launch(&stream)?;
    drop(executable);
    if step.choices.one_in(2) {
        let taken = step.world.executables.take(step.choices);
        drop(taken);
    }
    Ok(())
}

/// Takes over the parameters of a graph.
pub(crate) fn update(executable: &Executable, graph: &Graph) -> Result<()> {
    if is_cpu(&executable.device()) {
        return executable.update(graph);
    }
    // A loop may have no limit yet.
    let (copy, _) = graph.deep_clone()?;
    if runs(&copy)? == u64::MAX { Ok(()) } else { executable.update(&copy) }
}

/// Changes or asks one.
pub(crate) fn change(step: &mut Step<'_>) -> Result<()> {
    let executable = executable(step)?;
    match step.below(18) {
        15 => {
            let stream = step.stream()?;
            if is_left_out("profiles") {
                return Ok(());
            }
            let options = ProfileOptions::new().max_runs(step.choices.below(4));
            let profile = executable.profile_with(&stream, &options.timer_kernels(step.choices.one_in(4)))?;
            let _ = (profile.to_string(), profile.to_json(), profile.to_chrome_trace());
            Ok(())
        }
        16 | 17 => {
            let (node, value, place) = (step.node()?, step.choices.i32(), step.choices.below(4));
            let node = executable.node(&node)?;
            match step.choices.below(3) {
                0 => node.set_arg(place, value),
                1 => node.set_arg(place, value as u32),
                _ => node.set_arg(place, &step.buffer()?),
            }
        }
        0 | 1 => update(&executable, &step.graph()?),
        2 => {
            let (copy, _) = executable.graph()?.deep_clone()?;
            executable.update(&copy)
        }
        3 => {
            let graph = executable.graph()?;
            step.world.graphs.put(step.choices, graph);
            Ok(())
        }
        4 => {
            let _ = (executable.report(), executable.memory(), format!("{executable:?}"));
            match executable.take_error() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        }
        5 => executable.passes(&step.node()?).map(drop),
        6 => match step.maybe(&step.world.allocs) {
            Some(alloc) => {
                let buffer = executable.buffer(&alloc)?;
                step.world.buffers.put(step.choices, buffer.clone());
                buffer.to_vec().map(drop)
            }
            None => Ok(()),
        },
        8 => {
            let raw = gridloom::interop::executable_to_raw(&executable);
            gridloom::interop::node_to_raw(&executable, &step.node()?)?;
            executable.device_handle()?;
            raw.map(drop)
        }
        7 => {
            let changes = [step.node()?, step.node()?];
            let operations: Vec<_> =
                changes.iter().map(|node| Ok((node, node.operation()?))).collect::<Result<_>>()?;
            executable.set_operations(operations)
        }
        _ => {
            let node = step.node()?;
            let node = executable.node(&node)?;
            match step.below(8) {
                0 if !is_left_out("disabled-nodes") => node.set_enabled(false),
                1 => node.set_enabled(true),
                2 => {
                    let _ = (node.is_enabled(), node.label(), format!("{:?}", node.operation()));
                    Ok(())
                }
                3 => node.set_child(&step.graph()?),
                _ => graphs::edit_executable(step, &node),
            }
        }
    }
}
