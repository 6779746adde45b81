//! Edges: removes redundant edges and empty nodes.
//!
//! Rule: an edge from `p` to `n` is removed if a path of full edges leads from `p` to another node
//! that `n` depends on over a full edge. An empty node is removed if it has at most one dependency
//! or at most one dependent, so that the edges that replace it are not more than before.

use gridloom_core::graph::{Definition, EdgeKind, NodeKey};
use gridloom_core::op::Operation;
use gridloom_core::{Graph, Node, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{Context, has_full_edges};

/// The most steps of the search in one graph. Redundant edges not found by then stay.
const MAX_STEPS: usize = 2_000_000;

pub(super) fn run(context: &mut Context<'_>, graph: &Graph) -> Result<()> {
    remove_empty_nodes(context, graph)?;
    let handles: FxHashMap<NodeKey, Node> =
        graph.nodes().into_iter().map(|node| (node.key(), node)).collect();
    let implied = implied(&graph.definition(), graph);
    for (from, to) in &implied {
        graph.remove_edge(&handles[from], &handles[to])?;
    }
    context.plan.removed_edges += implied.len();
    Ok(())
}

fn remove_empty_nodes(context: &mut Context<'_>, graph: &Graph) -> Result<()> {
    for node in graph.nodes() {
        let key = node.key();
        let (before, after) = {
            let definition = graph.definition();
            let data = definition.node(key);
            let few = data.predecessors().len() <= 1 || data.successors().len() <= 1;
            let plain = matches!(data.operation(), Operation::Empty) && has_full_edges(&definition, key);
            if !plain || !few || context.survey.pinned.contains(&key) {
                continue;
            }
            (node.predecessors()?, node.successors()?)
        };
        node.delete()?;
        for to in &after {
            for from in &before {
                graph.add_edge(from, to, EdgeKind::Full)?;
            }
        }
        context.plan.removed.insert(key);
    }
    Ok(())
}

fn implied(definition: &Definition, graph: &Graph) -> Vec<(NodeKey, NodeKey)> {
    let order = definition.topological(graph.key());
    let position: FxHashMap<NodeKey, usize> = order.iter().enumerate().map(|(at, &key)| (key, at)).collect();
    let (mut found, mut steps) = (Vec::new(), 0);
    for &key in order.iter() {
        let before: Vec<NodeKey> = full(definition, key).collect();
        if before.len() < 2 {
            continue;
        }
        let first = before.iter().map(|key| position[key]).min().unwrap_or(0);
        // All transitive dependencies of its dependencies.
        let mut earlier: FxHashSet<NodeKey> = FxHashSet::default();
        let mut open = before.clone();
        while let Some(at) = open.pop() {
            for next in full(definition, at) {
                steps += 1;
                if position[&next] >= first && earlier.insert(next) {
                    open.push(next);
                }
            }
            if steps > MAX_STEPS {
                return found;
            }
        }
        found.extend(before.iter().filter(|key| earlier.contains(*key)).map(|&from| (from, key)));
    }
    found
}

fn full(definition: &Definition, key: NodeKey) -> impl Iterator<Item = NodeKey> + '_ {
    definition.node(key).predecessors().iter().filter(|end| end.kind == EdgeKind::Full).map(|end| end.node)
}
