//! The graph in the form in which it runs: children flattened, and cut where the host drives a
//! conditional.

use super::modes::Modes;
use crate::foreign::OpaqueGraph;
use gridloom_core::backend::Opaque;
use gridloom_core::graph::{Definition, EdgeKind, GraphKey, NodeData, NodeKey};
use gridloom_core::op::Operation;
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
    /// The program of a whole definition. Disabled nodes keep their place in the order and do
    /// nothing.
    pub(super) fn new(definition: &Definition, modes: &Modes, disabled: &FxHashSet<NodeKey>) -> Self {
        let mut ends = Ends::new(definition);
        Source { definition, modes, disabled }.program(definition.root(), &mut ends)
    }

    /// Returns whether the host has to decide anything.
    pub(super) fn is_hosted(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Hosted { .. }))
    }

    /// Which `CUgraph` each step is in, by a number; conditionals that the host drives are in none.
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

/// What programs are made from.
#[derive(Clone, Copy)]
struct Source<'a> {
    definition: &'a Definition,
    modes: &'a Modes,
    disabled: &'a FxHashSet<NodeKey>,
}

/// The steps at whose end a node has ended. Nodes that do nothing have no step of their own.
///
/// One table serves all lists of steps: a node is in one graph, and only nodes of that graph look
/// it up.
struct Ends {
    /// By the index of a node: its one step, or [`Ends::OTHERS`].
    one: Vec<u32>,
    /// The steps of nodes that have none or several.
    others: FxHashMap<NodeKey, Dependencies>,
}

impl Ends {
    const OTHERS: u32 = u32::MAX;

    fn new(definition: &Definition) -> Self {
        Self { one: vec![Self::OTHERS; definition.node_bound()], others: FxHashMap::default() }
    }

    fn set(&mut self, node: NodeKey, ends: Dependencies) {
        match ends.as_slice() {
            &[(step, _)] => self.one[node.index()] = step,
            _ => {
                self.others.insert(node, ends);
            }
        }
    }

    /// Adds those of a node to what a step waits for.
    fn add_to(&self, after: &mut Dependencies, node: NodeKey, kind: EdgeKind) {
        match self.one[node.index()] {
            Self::OTHERS => {
                let others = self.others.get(&node).into_iter().flatten();
                after.extend(others.map(|&(step, _)| (step, kind)));
            }
            step => after.push((step, kind)),
        }
    }
}

impl Source<'_> {
    fn program(self, graph: GraphKey, ends: &mut Ends) -> Program {
        Program { parts: split(self.flatten(graph, ends)) }
    }

    /// The steps of one graph with its children dissolved into it, each after what it waits for.
    fn flatten(self, graph: GraphKey, ends: &mut Ends) -> Vec<Step> {
        let steps = Vec::with_capacity(self.definition.node_count(graph));
        let mut flattening = Flattening { source: self, steps, ends };
        flattening.add_graph(graph, &Dependencies::new());
        flattening.steps
    }
}

struct Flattening<'a> {
    source: Source<'a>,
    steps: Vec<Step>,
    ends: &'a mut Ends,
}

impl Flattening<'_> {
    /// Adds all nodes of `graph`, the first ones after `entry`, and returns the ends of the last
    /// ones.
    fn add_graph(&mut self, graph: GraphKey, entry: &Dependencies) -> Dependencies {
        let mut last = Dependencies::new();
        let mut any = false;
        let definition = self.source.definition;
        for &key in &*definition.topological(graph) {
            any = true;
            let node = definition.node(key);
            let after = if node.predecessors().is_empty() { entry.clone() } else { self.ends_before(node) };
            let ends = self.add_node(key, node, after);
            if node.successors().is_empty() {
                last.extend(ends.iter().map(|&(step, _)| (step, EdgeKind::Full)));
            }
            self.ends.set(key, ends);
        }
        if any { merged(last) } else { entry.clone() }
    }

    fn ends_before(&self, node: &NodeData) -> Dependencies {
        let mut after = Dependencies::new();
        for edge in node.predecessors() {
            // Only a kernel's own step can release a successor early.
            let is_early = edge.kind == EdgeKind::Programmatic
                && matches!(self.source.definition.node(edge.node).operation(), Operation::Kernel(_));
            let kind = if is_early { EdgeKind::Programmatic } else { EdgeKind::Full };
            self.ends.add_to(&mut after, edge.node, kind);
        }
        merged(after)
    }

    fn add_node(&mut self, key: NodeKey, node: &NodeData, after: Dependencies) -> Dependencies {
        let fan_out = node.successors().len();
        match node.operation() {
            Operation::Empty | Operation::Alloc(_) | Operation::Free(_) => self.meet(key, after, fan_out),
            Operation::Child(graph) => {
                let first = self
                    .source
                    .definition
                    .nodes(*graph)
                    .filter(|&inner| self.source.definition.node(inner).predecessors().is_empty())
                    .count();
                let entry = self.meet(key, after, first);
                let last = self.add_graph(*graph, &entry);
                self.meet(key, last, fan_out)
            }
            Operation::Conditional(conditional) => {
                let (source, bodies) = (self.source, &conditional.bodies);
                let work = if source.modes.is_hosted(key) {
                    Work::Hosted(bodies.iter().map(|&body| source.program(body, self.ends)).collect())
                } else {
                    Work::Native(bodies.iter().map(|&body| source.flatten(body, self.ends)).collect())
                };
                self.push(key, work, after)
            }
            Operation::Opaque(opaque) if runs_alone(&**opaque) => self.push(key, Work::Alone, after),
            _ if self.source.disabled.contains(&key) => self.meet(key, after, fan_out),
            _ => self.push(key, Work::Node, after),
        }
    }

    fn push(&mut self, origin: NodeKey, work: Work, after: Dependencies) -> Dependencies {
        self.steps.push(Step { origin, work, after });
        let mut ends = Dependencies::new();
        ends.push((self.steps.len() as u32 - 1, EdgeKind::Full));
        ends
    }

    /// Adds a point where edges meet. It becomes a step only if that saves edges.
    fn meet(&mut self, origin: NodeKey, mut after: Dependencies, fan_out: usize) -> Dependencies {
        after.iter_mut().for_each(|(_, kind)| *kind = EdgeKind::Full);
        if after.len() <= 1 || fan_out <= 1 { after } else { self.push(origin, Work::Join, after) }
    }
}

/// Returns whether a captured graph holds what no graph within another may hold.
fn runs_alone(opaque: &dyn Opaque) -> bool {
    OpaqueGraph::from_backend(opaque).is_ok_and(|opaque| opaque.contents().alone)
}

/// Each step once. A full dependency includes a programmatic one on the same step.
///
/// Sorted rather than searched: a node may wait for all the others of a large graph.
fn merged(mut after: Dependencies) -> Dependencies {
    if after.len() <= 1 {
        return after;
    }
    after.sort_unstable_by_key(|&(step, _)| step);
    after.dedup_by(|again, first| {
        let same = again.0 == first.0;
        if same && again.1 == EdgeKind::Full {
            first.1 = EdgeKind::Full;
        }
        same
    });
    after
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
                        // What is in an earlier graph has ended: the stream sees to it.
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
