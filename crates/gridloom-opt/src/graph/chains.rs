//! Chains: consecutive kernels of one block become steps of one kernel.
//!
//! Rule: each node except the first depends only on the one before it, and each except the last is
//! the only dependency of the one after it, over full edges. Every kernel is launched with one
//! block and can be a step, and the block shapes are compatible. Then no other node can run between
//! two of them or see the result of one without the others.

use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::{Graph, Result};
use rustc_hash::FxHashSet;

use super::fusion::Form;
use super::plan::{Context, has_full_edges};
use super::survey::Candidate;
use crate::rewrite::{ProgramStep, Role, block_program};

/// The most instructions of one chain. Each different kernel counts once.
const MAX_INSTRUCTIONS: usize = 12_000;
/// The most different kernels in one chain.
const MAX_KERNELS: usize = 24;

/// Nodes with one block that become one kernel.
#[derive(Default)]
pub(super) struct Run {
    pub(super) nodes: Vec<NodeKey>,
    pub(super) candidates: Vec<Candidate>,
    params: u64,
    instructions: usize,
    /// The number of different kernels.
    kinds: usize,
}

impl Run {
    /// Adds a node if everything still fits one kernel. Returns whether it does.
    pub(super) fn push(&mut self, node: NodeKey, candidate: Candidate, limit: u32) -> bool {
        let known = self.candidates.iter().any(|other| other.source.same(&candidate.source));
        // Including its entry of the table.
        let params = self.params + candidate.source.param_bytes().next_multiple_of(16) + 4;
        let instructions = self.instructions + if known { 0 } else { candidate.source.instructions() };
        let kinds = self.kinds + usize::from(!known);
        // Including the header of a loop, and alignment.
        let fits =
            params + 64 <= u64::from(limit) && instructions <= MAX_INSTRUCTIONS && kinds <= MAX_KERNELS;
        if !fits || !self.goes_together(&candidate) {
            return false;
        }
        (self.params, self.instructions, self.kinds) = (params, instructions, kinds);
        self.nodes.push(node);
        self.candidates.push(candidate);
        true
    }

    fn goes_together(&self, candidate: &Candidate) -> bool {
        let Some(block) = candidate.block else { return true };
        let line = |block: [u32; 3]| block[1..] == [1, 1];
        self.candidates
            .iter()
            .filter_map(|other| other.block)
            .all(|other| other == block || line(other) && line(block))
    }

    /// Returns the threads of the block: those of the largest step, or a few warps if there are
    /// only fills and copies.
    fn block(&self) -> [u32; 3] {
        let threads = |block: &[u32; 3]| block.iter().map(|&extent| u64::from(extent)).product::<u64>();
        self.candidates
            .iter()
            .filter_map(|candidate| candidate.block)
            .max_by_key(threads)
            .unwrap_or([256, 1, 1])
    }

    pub(super) fn steps(&self) -> Vec<ProgramStep> {
        let block = self.block();
        self.candidates
            .iter()
            .map(|candidate| ProgramStep {
                kernel: candidate.source.clone(),
                block: candidate.block.unwrap_or(block),
            })
            .collect()
    }

    pub(super) fn shared(&self) -> u32 {
        self.candidates.iter().map(|candidate| candidate.shared).max().unwrap_or(0)
    }
}

/// Returns a node as a step, if it can be one.
pub(super) fn step(context: &Context, definition: &Definition, key: NodeKey) -> Option<Candidate> {
    let candidate = context.survey.candidate(definition, key, Role::Step)?;
    if candidate.blocks() != 1 {
        context.survey.note(
            key,
            format!("it has {} blocks; only what has one is put into one block", candidate.blocks()),
        );
        return None;
    }
    Some(candidate)
}

pub(super) fn run(context: &mut Context, graph: &Graph) -> Result<()> {
    let runs = find(context, graph);
    for run in runs {
        let count = run.nodes.len();
        let outcome = match block_program(&run.steps(), None, context.limit()) {
            Ok(program) => {
                context.fuse(graph, &program, Form::Chain, &run.nodes, run.shared(), &run.nodes)?
            }
            Err(reason) => Err(reason),
        };
        match outcome {
            Ok(()) => {
                let names = ends(context, &run.nodes);
                context.plan.done.push(format!(
                    "chains: {names} run as {count} steps of one block, about {:.1} µs instead of {:.1}",
                    0.19 * count as f64,
                    0.88 * count as f64
                ));
            }
            Err(reason) => run.nodes.iter().for_each(|&node| context.survey.note(node, reason.clone())),
        }
    }
    Ok(())
}

/// Returns the names of the first and the last of some nodes.
pub(super) fn ends(context: &Context, nodes: &[NodeKey]) -> String {
    let label = |key: &NodeKey| context.original.label(*key);
    match nodes {
        [] => String::new(),
        [one] => label(one),
        [first, .., last] => format!("{} to {}", label(first), label(last)),
    }
}

fn find(context: &Context, graph: &Graph) -> Vec<Run> {
    let definition = graph.definition();
    let (mut taken, mut runs) = (FxHashSet::default(), Vec::new());
    let limit = context.limit();
    for &first in definition.topological(graph.key()).iter() {
        let mut next = Some(first).filter(|key| !taken.contains(key) && has_full_edges(&definition, *key));
        let mut run = Run::default();
        while let Some(key) = next.take() {
            let Some(candidate) = step(context, &definition, key) else { break };
            if !run.push(key, candidate, limit) {
                break;
            }
            if let [only] = definition.node(key).successors()
                && definition.node(only.node).predecessors().len() == 1
                && has_full_edges(&definition, only.node)
            {
                next = Some(only.node);
            }
        }
        if run.nodes.len() > 1 {
            taken.extend(run.nodes.iter().copied());
            runs.push(run);
        }
    }
    runs
}
