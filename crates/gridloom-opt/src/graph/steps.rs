//! Nodes that become steps of one block, with the conditionals around them.

use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{Context, has_full_edges};
use super::survey::Candidate;
use crate::optimizations::Optimization;
use crate::rewrite::{Control, ControlForm, LoopTest, Part, ProgramStep, Role};

/// The most instructions of one program. Without conditionals, each different kernel counts once.
const MAX_INSTRUCTIONS: usize = 12_000;
/// The most different kernels in one program.
const MAX_KERNELS: usize = 24;
/// The most conditionals in one program.
const MAX_CONTROLS: usize = 16;

/// Nodes that become one kernel of one block.
#[derive(Clone, Default)]
pub(super) struct Run {
    /// The kernels, fills and copies.
    pub(super) nodes: Vec<NodeKey>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) parts: Vec<Part>,
    /// The conditionals, in the order in which they start.
    pub(super) controls: Vec<NodeKey>,
    /// The conditions that they test, by number.
    conditions: Vec<ConditionKey>,
    /// The outermost nodes, which the kernel replaces.
    pub(super) replaced: Vec<NodeKey>,
    params: u64,
    instructions: usize,
    /// The number of different kernels.
    kinds: usize,
}

impl Run {
    /// Adds a node of the outermost graph. If it does not fit, returns the reason and changes
    /// nothing.
    pub(super) fn push(
        &mut self,
        context: &Context<'_>,
        definition: &Definition,
        node: NodeKey,
    ) -> Result<(), String> {
        match definition.node(node).operation() {
            Operation::Conditional(conditional) => {
                let mut with = self.clone();
                with.replaced.push(node);
                let part = with.conditional(context, definition, node, conditional)?;
                with.parts.push(part);
                *self = with;
            }
            _ => {
                let candidate = step(context, definition, node).ok_or("it cannot be a step")?;
                let part = self.step(node, candidate, context.combined_limit())?;
                self.parts.push(part);
                self.replaced.push(node);
            }
        }
        Ok(())
    }

    /// Adds a fill or copy that becomes a kernel of its own.
    pub(super) fn push_builtin(&mut self, node: NodeKey, candidate: Candidate, limit: u32) -> bool {
        self.step(node, candidate, limit).map(|part| self.parts.push(part)).is_ok()
    }

    fn step(&mut self, node: NodeKey, candidate: Candidate, limit: u32) -> Result<Part, String> {
        let known = self.candidates.iter().any(|other| other.source.same(&candidate.source));
        // Between conditionals, code is not shared.
        let is_free = known && self.controls.is_empty();
        // Including its entry of the table.
        let params = self.params + candidate.source.param_bytes().next_multiple_of(16) + 4;
        let instructions = self.instructions + if is_free { 0 } else { candidate.source.instructions() };
        let kinds = self.kinds + usize::from(!known);
        // Including alignment.
        let fits =
            params + 64 <= u64::from(limit) && instructions <= MAX_INSTRUCTIONS && kinds <= MAX_KERNELS;
        if !fits {
            return Err("it does not fit one kernel with the others".into());
        }
        if !self.goes_together(&candidate) {
            return Err("its block has another shape than that of the others".into());
        }
        (self.params, self.instructions, self.kinds) = (params, instructions, kinds);
        self.nodes.push(node);
        self.candidates.push(candidate);
        Ok(Part::Step(self.nodes.len() - 1))
    }

    fn conditional(
        &mut self,
        context: &Context<'_>,
        definition: &Definition,
        node: NodeKey,
        conditional: &ConditionalOp,
    ) -> Result<Part, String> {
        let wanted = match conditional.form {
            ConditionalForm::While => Optimization::Loops,
            _ => Optimization::Branches,
        };
        if !context.wanted.has(wanted) || context.hosted {
            return Err(format!("{} is switched off", wanted.name()));
        }
        if context.survey.pinned.contains(&node) || !has_full_edges(definition, node) {
            return Err("it has programmatic edges".into());
        }
        if self.controls.len() == MAX_CONTROLS {
            return Err(format!("there are more than {MAX_CONTROLS} conditionals around it"));
        }
        // Including its header.
        self.params += 32;
        self.controls.push(node);
        let test = match &conditional.test {
            Test::Count(_) => LoopTest::Count,
            Test::Value(region) => is_on_device(region)
                .then_some(LoopTest::Value)
                .ok_or("the value that it tests is in memory of the host")?,
            Test::Condition(condition) => {
                if self.replaced.first().is_some_and(|&first| is_inside_conditional(definition, first)) {
                    return Err("its condition keeps its value across the passes of a loop around it".into());
                }
                self.conditions.push(*condition);
                LoopTest::Condition(self.conditions.len() as u32 - 1)
            }
        };
        let form = match conditional.form {
            ConditionalForm::While => ControlForm::Loop { test_first: conditional.test_first },
            ConditionalForm::If | ConditionalForm::IfElse => ControlForm::If,
            ConditionalForm::Switch => ControlForm::Switch,
        };
        let steps_before = self.nodes.len();
        let mut bodies = Vec::with_capacity(conditional.bodies.len());
        for &body in &conditional.bodies {
            let mut parts = Vec::new();
            for &key in definition.topological(body).iter() {
                if !has_full_edges(definition, key) {
                    return Err("its body has programmatic edges".into());
                }
                let because = |reason: String| {
                    format!("its body does not fit one block: {}: {reason}", definition.label(key))
                };
                match definition.node(key).operation() {
                    Operation::Empty => {}
                    Operation::Conditional(inner) => {
                        parts.push(self.conditional(context, definition, key, inner).map_err(because)?);
                    }
                    _ => {
                        let candidate = step(context, definition, key)
                            .ok_or_else(|| because("it cannot be a step of one".into()))?;
                        parts.push(self.step(key, candidate, context.combined_limit()).map_err(because)?);
                    }
                }
            }
            bodies.push(parts);
        }
        if self.nodes.len() == steps_before {
            return Err("its body does nothing".into());
        }
        Ok(Part::Control(Control { form, test, bodies }))
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

    /// Returns why the conditions of the program cannot be inside it: something outside of it sets
    /// one, or a step sets another one. Returns `None` if they can.
    pub(super) fn conditions_obstacle(&self, setters: &Setters, definition: &Definition) -> Option<String> {
        if self.conditions.is_empty() {
            return None;
        }
        let nodes: FxHashSet<NodeKey> = self.nodes.iter().copied().collect();
        for condition in &self.conditions {
            let outside = setters.of(*condition).iter().find(|setter| !nodes.contains(setter));
            if let Some(setter) = outside {
                return Some(format!("{}, outside its body, sets its condition", definition.label(*setter)));
            }
        }
        for (index, &node) in self.nodes.iter().enumerate() {
            let (mut is_given, mut other) = (false, false);
            definition.node(node).operation().for_each_condition(|condition| {
                is_given = true;
                other |= !self.conditions.contains(&condition);
            });
            if other {
                return Some(format!("{} sets another condition too", definition.label(node)));
            }
            // A kernel may also have received a handle as a plain number. Only the device's own
            // function understands that.
            if self.candidates[index].source.sets_conditions() && !is_given {
                return Some(format!("{} sets conditions that it is not given", definition.label(node)));
            }
        }
        None
    }
}

/// The kernel nodes that are given each condition.
#[derive(Debug, Default)]
pub(super) struct Setters(FxHashMap<ConditionKey, Vec<NodeKey>>);

impl Setters {
    pub(super) fn new(definition: &Definition) -> Self {
        let mut setters: FxHashMap<ConditionKey, Vec<NodeKey>> = FxHashMap::default();
        for (key, node) in definition.all_nodes() {
            if let operation @ Operation::Kernel(_) = node.operation() {
                operation.for_each_condition(|condition| setters.entry(condition).or_default().push(key));
            }
        }
        Setters(setters)
    }

    pub(super) fn of(&self, condition: ConditionKey) -> &[NodeKey] {
        self.0.get(&condition).map_or(&[], Vec::as_slice)
    }
}

/// Returns whether a node is inside a conditional.
pub(super) fn is_inside_conditional(definition: &Definition, node: NodeKey) -> bool {
    let mut graph = definition.node(node).graph();
    while let Some((owner, _)) = definition.owner(graph) {
        if matches!(definition.node(owner).operation(), Operation::Conditional(_)) {
            return true;
        }
        graph = definition.node(owner).graph();
    }
    false
}

/// Returns whether kernels can read a region.
pub(super) fn is_on_device(region: &Region) -> bool {
    match &region.base {
        Base::Allocation(allocation) => allocation.kind() != MemoryKind::Host,
        Base::AllocNode(_) => true,
        Base::Bytes(_) => false,
    }
}

/// Returns a node as a step, if it can be one.
fn step(context: &Context<'_>, definition: &Definition, key: NodeKey) -> Option<Candidate> {
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
