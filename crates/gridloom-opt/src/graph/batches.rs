//! Batches: independent kernels become parts of one grid.
//!
//! Rule: the nodes depend on the same nodes, where nodes in one batch count as one. They are then
//! unordered among themselves and may run at once. Each batch is one level after its dependencies,
//! so no order is reversed. All kernels have blocks of the same shape, and each can be part of a
//! batch.

use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::{Graph, Result};
use rustc_hash::FxHashMap;

use super::chains::ends;
use super::fusion::Form;
use super::plan::{Context, has_full_edges};
use super::survey::Candidate;
use crate::cache::Recipe;
use crate::rewrite::{BatchGroup, Role};

/// The most different kernels in one batch.
const MAX_KERNELS: usize = 16;
/// The most instructions of one batch. Each different kernel counts once.
const MAX_INSTRUCTIONS: usize = 12_000;

pub(super) fn run(context: &mut Context<'_>, graph: &Graph) -> Result<()> {
    let groups = find(context, &graph.definition(), graph);
    for group in groups {
        for part in split(group, context.combined_limit()) {
            fuse(context, graph, part)?;
        }
    }
    Ok(())
}

fn fuse(context: &mut Context<'_>, graph: &Graph, members: Vec<(NodeKey, Candidate)>) -> Result<()> {
    let Some(block) = members.first().and_then(|(_, candidate)| candidate.block) else { return Ok(()) };
    if members.len() < 2 {
        return Ok(());
    }
    // Launches of the same kernel are adjacent.
    let mut kernels: Vec<(BatchGroup, Vec<NodeKey>)> = Vec::new();
    for (node, candidate) in &members {
        match kernels.iter_mut().find(|(group, _)| group.kernel.same(&candidate.source)) {
            Some((group, nodes)) => {
                group.grids.push(candidate.grid);
                nodes.push(*node);
            }
            None => {
                let group = BatchGroup { kernel: candidate.source.clone(), grids: vec![candidate.grid] };
                kernels.push((group, vec![*node]));
            }
        }
    }
    let nodes: Vec<NodeKey> = kernels.iter().flat_map(|(_, nodes)| nodes.iter().copied()).collect();
    let groups: Vec<BatchGroup> = kernels.into_iter().map(|(group, _)| group).collect();
    let shared = members[0].1.shared;
    let recipe = Recipe::Batch { groups, block, limit: context.combined_limit() };
    match context.fuse(graph, &recipe, Form::Batch, &nodes, shared, &nodes)? {
        Ok(()) => {
            let names = ends(context, &nodes);
            let count = nodes.len();
            let description = format!(
                "batches: {names}, {count} kernels side by side, are one launch, about {:.1} µs instead of {:.1}",
                0.9 + 0.008 * count as f64,
                0.78 * count as f64
            );
            context.done(description, nodes);
        }
        Err(reason) => nodes.iter().for_each(|&node| context.survey.note_failure(node, &reason)),
    }
    Ok(())
}

/// Splits a batch into parts whose arguments and code fit one kernel.
fn split(members: Vec<(NodeKey, Candidate)>, limit: u32) -> Vec<Vec<(NodeKey, Candidate)>> {
    let mut parts: Vec<Vec<(NodeKey, Candidate)>> = Vec::new();
    let (mut bytes, mut instructions, mut kinds) = (0, 0, 0);
    for (node, candidate) in members {
        // Including the shape of its grid.
        let needed = candidate.source.param_bytes().next_multiple_of(16) + 16;
        let known = |part: &Vec<(NodeKey, Candidate)>| {
            part.iter().rev().any(|(_, other)| other.source.same(&candidate.source))
        };
        let is_new = !parts.last().is_some_and(known);
        let code = if is_new { candidate.source.instructions() } else { 0 };
        let fits = bytes + needed <= u64::from(limit)
            && instructions + code <= MAX_INSTRUCTIONS
            && kinds + usize::from(is_new) <= MAX_KERNELS;
        match parts.last_mut() {
            Some(part) if fits => {
                part.push((node, candidate));
                (bytes, instructions, kinds) =
                    (bytes + needed, instructions + code, kinds + usize::from(is_new));
            }
            _ => {
                (bytes, instructions, kinds) = (needed, candidate.source.instructions(), 1);
                parts.push(vec![(node, candidate)]);
            }
        }
    }
    parts
}

/// What the nodes of a batch have in common: the groups they depend on, the block shape and the
/// shared memory.
type Kind = (Vec<usize>, [u32; 3], u32);

fn find(context: &Context<'_>, definition: &Definition, graph: &Graph) -> Vec<Vec<(NodeKey, Candidate)>> {
    let mut number: FxHashMap<NodeKey, usize> = FxHashMap::default();
    let mut open: FxHashMap<Kind, usize> = FxHashMap::default();
    let mut groups: Vec<Vec<(NodeKey, Candidate)>> = Vec::new();
    for &key in definition.topological(graph.key()).iter() {
        let candidate = Some(key)
            .filter(|&key| has_full_edges(definition, key))
            .and_then(|key| context.survey.candidate(definition, key, Role::Batched))
            .filter(|candidate| !candidate.is_builtin());
        let candidate = candidate.filter(|candidate| {
            let (blocks, most) = (candidate.blocks(), context.profile.max_batched_blocks);
            if blocks > most {
                context.survey.note(key, format!("it has {blocks} blocks, more than {most}"));
            }
            let is_short = context.profile.max_batched_instructions.is_none_or(|most| {
                let is_short = candidate.source.is_short(most);
                if !is_short {
                    context.survey.note(key, "it is long enough to be a launch of its own on this device");
                }
                is_short
            });
            blocks <= most && is_short
        });
        let mut after: Vec<usize> =
            definition.node(key).predecessors().iter().map(|end| number[&end.node]).collect();
        after.sort_unstable();
        after.dedup();
        let group = match &candidate {
            Some(candidate) => {
                let kind = (after, candidate.block.unwrap_or_default(), candidate.shared);
                *open.entry(kind).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                })
            }
            None => {
                groups.push(Vec::new());
                groups.len() - 1
            }
        };
        number.insert(key, group);
        groups[group].extend(candidate.map(|candidate| (key, candidate)));
    }
    groups.retain(|group| group.len() > 1);
    groups
}
