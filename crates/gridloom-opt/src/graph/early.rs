//! Early start: kernels start before the kernel they depend on has ended.
//!
//! Rule: a kernel depends on one other kernel only, over a full edge, and is the only node that
//! depends on that one. Both can take instructions before their own. The second kernel first waits
//! until the first has ended and its writes are visible (`griddepcontrol.wait`), so only its start
//! is earlier. It reads memory with loads only, not through textures and the like. This is
//! worthwhile if both grids fit on the device together.

use gridloom_core::graph::{Definition, EdgeKind, NodeKey};
use gridloom_core::launch::Dim3;
use gridloom_core::op::Operation;
use gridloom_core::{Graph, Result};

use super::plan::Context;
use crate::rewrite::Role;

pub(super) fn run(context: &mut Context<'_>, graph: &Graph) -> Result<()> {
    let Some(room) = context.profile.early_blocks else { return Ok(()) };
    let edges = find(context, &graph.definition(), graph, room);
    for &(from, to) in &edges {
        context.single(from)?.call.prefix.trigger = true;
        context.single(to)?.call.prefix.wait = true;
        // A fault inside names its line, which the passes of a loop then no longer have in common,
        // and which is counted from the end of the prefix.
        let unrolls = !context.profile.names_faults;
        for key in [from, to] {
            let prefix = &mut context.single(key)?.call.prefix;
            (prefix.unroll, prefix.late_wait) = (unrolls, unrolls);
        }
        let (from, to) = (context.handles[&from].clone(), context.handles[&to].clone());
        graph.remove_edge(&from, &to)?;
        graph.add_edge(&from, &to, EdgeKind::Programmatic)?;
    }
    if !edges.is_empty() {
        let description = format!(
            "early-start: {} kernels start before the one that they follow has ended, about 0.7 µs each instead of 1.0",
            edges.len()
        );
        let nodes = edges.iter().flat_map(|&(_, to)| context.originals(to)).collect();
        context.done(description, nodes);
    }
    Ok(())
}

fn find(context: &Context<'_>, definition: &Definition, graph: &Graph, room: u64) -> Vec<(NodeKey, NodeKey)> {
    let blocks = |key: NodeKey| match definition.node(key).operation() {
        Operation::Kernel(launch) => {
            let config = launch.config();
            let plain = !config.cooperative
                && !config.programmatic
                && config.cluster.is_none_or(|cluster| cluster == Dim3::ONE)
                && config.priority.is_none();
            let source = context.survey.source(launch.kernel())?;
            let free = !context.survey.pinned.contains(&key) || context.is_fusion(key);
            (plain && free && source.can_start_early() && source.obstacle(Role::Prefixed).is_none())
                .then(|| u64::try_from(config.grid.volume()).unwrap_or(u64::MAX))
        }
        _ => None,
    };
    let mut found = Vec::new();
    for &from in definition.topological(graph.key()).iter() {
        let [end] = definition.node(from).successors() else { continue };
        let to = end.node;
        if end.kind != EdgeKind::Full || definition.node(to).predecessors().len() != 1 {
            continue;
        }
        let (Some(one), Some(other)) = (blocks(from), blocks(to)) else { continue };
        if one.saturating_add(other) <= room {
            found.push((from, to));
        } else {
            context.survey.note(to, format!("{one} and {other} blocks do not fit on the device together; it starts after the one before it"));
        }
    }
    found
}
