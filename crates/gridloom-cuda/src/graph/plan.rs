//! The graph in the form in which it runs: flattened, and cut where the host drives a conditional.

use super::modes::Modes;
use crate::foreign::OpaqueGraph;
use gridloom_core::graph::{Definition, EdgeKind, GraphKey, NodeKey};
use gridloom_core::lower::{FlatStep, Flattener};
use gridloom_core::op::{Operation, Role};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// What a step waits for: earlier steps of the same list.
pub(super) type Dependencies = SmallVec<[(u32, EdgeKind); 2]>;

/// A future node of a `CUgraph`.
#[derive(Debug)]
pub(super) struct Step {
    /// The node of the definition that it comes from.
    pub(super) origin: NodeKey,
    pub(super) work: Work,
    pub(super) after: Dependencies,
}

impl Step {
    /// Returns whether it is a conditional that the device drives.
    pub(super) fn is_native(&self) -> bool {
        matches!(self.work, Work::Native(_))
    }
}

#[derive(Debug)]
pub(super) enum Work {
    /// What the node of the definition does.
    Node,
    /// Nothing: edges meet here.
    Join,
    /// A conditional that the device drives, with its bodies.
    Native(Vec<Vec<Step>>),
    /// What the node does, in a `CUgraph` of its own. Between splitting and lowering it is the one
    /// step of its list.
    Alone,
    /// A conditional that the host drives, with its bodies. Only between flattening and splitting.
    Hosted(Vec<Program>),
}

/// A sequence of parts that run one after another, on one stream.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The parts, mostly one.
    pub(super) parts: SmallVec<[Part; 1]>,
}

#[derive(Debug)]
pub(super) enum Part {
    /// A `CUgraph`.
    Graph(Vec<Step>),
    /// A conditional that the host drives.
    Hosted { node: NodeKey, bodies: Vec<Program> },
}

impl Program {
    /// Returns the program of a whole definition. Disabled nodes keep their place in the order and
    /// do nothing.
    pub(super) fn new(definition: &Definition, modes: &Modes, disabled: &FxHashSet<NodeKey>) -> Self {
        let flattener = Flattener::new(definition).without(disabled);
        Planner { definition, modes, flattener }.program(definition.root())
    }

    /// Returns whether the host has to decide anything.
    pub(super) fn is_hosted(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Hosted { .. }))
    }

    /// Returns which `CUgraph` each step is in, by a number; conditionals that the host drives are
    /// in none.
    pub(super) fn units(&self) -> FxHashMap<NodeKey, usize> {
        let mut units = FxHashMap::default();
        let mut next = 0;
        self.number_units(&mut next, &mut units);
        units
    }

    fn number_units(&self, next: &mut usize, units: &mut FxHashMap<NodeKey, usize>) {
        for part in &self.parts {
            match part {
                Part::Graph(steps) => {
                    number_steps(steps, *next, units);
                    *next += 1;
                }
                Part::Hosted { bodies, .. } => {
                    for body in bodies {
                        body.number_units(next, units);
                    }
                }
            }
        }
    }

    /// Calls `visit` with every step, also inside bodies.
    pub(super) fn for_each_step<'a>(&'a self, visit: &mut impl FnMut(&'a Step)) {
        for part in &self.parts {
            match part {
                Part::Graph(steps) => for_each(steps, visit),
                Part::Hosted { bodies, .. } => {
                    bodies.iter().for_each(|body| body.for_each_step(visit));
                }
            }
        }
    }
}

fn number_steps(steps: &[Step], unit: usize, units: &mut FxHashMap<NodeKey, usize>) {
    for_each(steps, &mut |step| {
        units.insert(step.origin, unit);
    });
}

fn for_each<'a>(steps: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in steps {
        visit(step);
        if let Work::Native(bodies) = &step.work {
            bodies.iter().for_each(|body| for_each(body, visit));
        }
    }
}

/// Makes programs of the graphs of a definition.
struct Planner<'a> {
    definition: &'a Definition,
    modes: &'a Modes,
    flattener: Flattener<'a>,
}

impl Planner<'_> {
    fn program(&mut self, graph: GraphKey) -> Program {
        Program { parts: split(self.steps(graph)) }
    }

    /// Returns the steps of one graph, with those of its children among them.
    fn steps(&mut self, graph: GraphKey) -> Vec<Step> {
        let flat = self.flattener.flatten(graph);
        let step = |(number, step): (usize, &FlatStep)| Step {
            origin: step.origin,
            work: if step.is_join { Work::Join } else { self.work(step.origin) },
            after: flat.predecessors(number).iter().map(|edge| (edge.step, edge.kind)).collect(),
        };
        flat.steps().iter().enumerate().map(step).collect()
    }

    fn work(&mut self, node: NodeKey) -> Work {
        let operation = self.definition.node(node).operation();
        let bodies = operation.bodies().iter();
        match operation.kind().facts().role {
            Role::Conditional if self.modes.is_hosted(node) => {
                Work::Hosted(bodies.map(|&body| self.program(body)).collect())
            }
            Role::Conditional => Work::Native(bodies.map(|&body| self.steps(body)).collect()),
            Role::Opaque if runs_alone(operation) => Work::Alone,
            Role::Opaque | Role::Work => Work::Node,
            // Flattening leaves no such nodes.
            Role::Order | Role::Child => Work::Join,
        }
    }
}

/// Returns whether a captured graph holds what no graph within another may hold.
fn runs_alone(operation: &Operation) -> bool {
    let Operation::Opaque(opaque) = operation else { return false };
    OpaqueGraph::from_backend(&**opaque).is_ok_and(|opaque| opaque.contents().alone)
}

/// Cuts a list of steps at the conditionals that the host drives, and at what runs in a `CUgraph`
/// of its own.
///
/// These run one after another. A step runs in the graph after the last one it depends on, as early
/// as possible.
fn split(steps: Vec<Step>) -> SmallVec<[Part; 1]> {
    if !steps.iter().any(|step| matches!(step.work, Work::Hosted(_) | Work::Alone)) {
        return if steps.is_empty() { SmallVec::new() } else { smallvec![Part::Graph(steps)] };
    }
    let mut graphs: Vec<Vec<Step>> = vec![Vec::new()];
    let mut cuts: Vec<Part> = Vec::new();
    // For each step: the graph it runs in, and its place there. One that cuts is placed in the
    // graph after it.
    let mut places: Vec<(usize, Option<u32>)> = Vec::with_capacity(steps.len());
    for step in steps {
        let graph = step.after.iter().map(|&(before, _)| places[before as usize].0).max().unwrap_or(0);
        let cut = match step.work {
            Work::Hosted(bodies) => Part::Hosted { node: step.origin, bodies },
            Work::Alone => {
                let (origin, after) = (step.origin, Dependencies::new());
                Part::Graph(vec![Step { origin, work: Work::Alone, after }])
            }
            work => {
                let after = step
                    .after
                    .into_iter()
                    .filter_map(|(before, kind)| match places[before as usize] {
                        // A step of an earlier graph has ended before this graph starts, by the
                        // order of the stream.
                        (earlier, Some(place)) if earlier == graph => Some((place, kind)),
                        _ => None,
                    })
                    .collect();
                places.push((graph, Some(graphs[graph].len() as u32)));
                graphs[graph].push(Step { origin: step.origin, work, after });
                continue;
            }
        };
        cuts.push(cut);
        graphs.push(Vec::new());
        places.push((cuts.len(), None));
    }
    let mut parts = SmallVec::new();
    let mut cuts = cuts.into_iter();
    for graph in graphs {
        if !graph.is_empty() {
            parts.push(Part::Graph(graph));
        }
        parts.extend(cuts.next());
    }
    parts
}

#[cfg(test)]
mod tests;
