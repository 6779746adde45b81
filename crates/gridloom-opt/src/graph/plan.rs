//! The plan: a graph and the changes that the passes made to it.

use std::sync::Arc;

use gridloom_core::backend::{Device, Kernel};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::{Definition, EdgeKind, NodeKey};
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::op::Operation;
use gridloom_core::{Graph, Node, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fusion::{Form, Fusion, Parts, Piece, planned};
use super::survey::Survey;
use super::{Profile, batches, chains, early, edges, fills, loops};
use crate::executable::leaves_memory;
use crate::optimizations::{Optimization, Optimizations};
use crate::rewrite::{ENTRY, Rewritten};

/// An optimised graph, and what became of its nodes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph to run: a copy with the same keys, in which nodes were replaced.
    pub(crate) graph: Graph,
    /// The replacements.
    pub(crate) fusions: Vec<Fusion>,
    /// The replacement that each node went into.
    pub(crate) fused: FxHashMap<NodeKey, usize>,
    /// Nodes that were removed because they do nothing.
    pub(crate) removed: FxHashSet<NodeKey>,
    /// The number of edges that were removed because others imply them.
    pub(crate) removed_edges: usize,
    /// The names of original nodes that were not changed, and why.
    pub(crate) kept: Vec<(String, String)>,
    /// Descriptions of what was done.
    pub(crate) done: Vec<String>,
}

/// The state that the passes share.
pub(crate) struct Context {
    pub(crate) device: Arc<dyn Device>,
    /// The graph before any change.
    pub(crate) original: Arc<Definition>,
    pub(crate) survey: Survey,
    pub(crate) profile: Profile,
    pub(crate) plan: Plan,
    pub(crate) wanted: Optimizations,
    /// Whether the host drives conditionals.
    pub(crate) hosted: bool,
    /// The rewritten kernels by their text.
    loaded: FxHashMap<String, Arc<dyn Kernel>>,
}

impl Plan {
    /// Runs the passes. Disabled nodes and the nodes around them are not changed.
    ///
    /// `graph` is a copy that nothing else edits.
    pub(crate) fn new(
        graph: Graph,
        wanted: Optimizations,
        profile: Profile,
        options: &InstantiateOptions,
        disabled: &FxHashSet<NodeKey>,
    ) -> Result<Self> {
        let original = graph.definition();
        let plan = Plan {
            graph: graph.clone(),
            fusions: Vec::new(),
            fused: FxHashMap::default(),
            removed: FxHashSet::default(),
            removed_edges: 0,
            kept: Vec::new(),
            done: Vec::new(),
        };
        let mut context = Context {
            device: graph.device().clone(),
            original,
            survey: Survey::new(disabled.clone()),
            profile,
            plan,
            wanted,
            hosted: options.conditional_mode == ConditionalMode::Hosted,
            loaded: FxHashMap::default(),
        };
        if leaves_memory(&context.original) {
            context.plan.done.push("nothing: the graph leaves memory allocated after a launch".into());
        } else {
            context.visit(&graph)?;
        }
        let Context { mut plan, survey, original, .. } = context;
        for (node, reason) in survey.into_reasons() {
            if !plan.fused.contains_key(&node) && original.get_node(node).is_some() {
                plan.kept.push((original.label(node), reason));
            }
        }
        Ok(plan)
    }
}

impl Context {
    /// Runs the passes over a graph and the graphs inside it.
    fn visit(&mut self, graph: &Graph) -> Result<()> {
        if self.wanted.has(Optimization::Edges) {
            edges::run(self, graph)?;
        }
        if self.wanted.has(Optimization::Loops) && !self.hosted {
            loops::run(self, graph)?;
        }
        let definition = graph.definition();
        let inside: Vec<Node> = graph
            .nodes()
            .into_iter()
            .filter(|node| !definition.node(node.key()).bodies().is_empty())
            .collect();
        drop(definition);
        for node in inside {
            for body in node.bodies()? {
                self.visit(&body)?;
            }
        }
        if self.wanted.has(Optimization::Chains) {
            chains::run(self, graph)?;
        }
        if self.wanted.has(Optimization::Batches) {
            batches::run(self, graph)?;
        }
        if self.wanted.has(Optimization::Fills) {
            fills::run(self, graph)?;
        }
        if self.wanted.has(Optimization::EarlyStart) {
            early::run(self, graph)?;
        }
        Ok(())
    }

    /// Returns the most bytes of kernel parameters.
    pub(crate) fn limit(&self) -> u32 {
        self.device.limits().max_parameter_bytes
    }

    /// Loads a rewritten kernel. Returns the reason if the device rejects it.
    pub(crate) fn load(&mut self, text: String, name: &str) -> std::result::Result<Arc<dyn Kernel>, String> {
        if let Some(kernel) = self.loaded.get(&text) {
            return Ok(kernel.clone());
        }
        let kernel = self
            .device
            .load_ptx(&text)
            .and_then(|module| module.kernel(name))
            .map_err(|error| format!("the device does not take the rewritten kernel: {error}"))?;
        self.loaded.insert(text, kernel.clone());
        Ok(kernel)
    }

    /// Loads a rewritten kernel and replaces nodes by one that launches it. If that is not
    /// possible, returns the reason and changes nothing.
    pub(crate) fn fuse(
        &mut self,
        graph: &Graph,
        rewritten: &Rewritten,
        form: Form,
        nodes: &[NodeKey],
        shared: u32,
        replaced: &[NodeKey],
    ) -> Result<std::result::Result<(), String>> {
        let kernel = match self.load(rewritten.text(), ENTRY) {
            Ok(kernel) => kernel,
            Err(reason) => return Ok(Err(reason)),
        };
        let config = LaunchConfig::new(rewritten.blocks, Dim3::from(rewritten.block)).shared(shared);
        if let Err(error) = config.check(self.device.limits(), kernel.limits()) {
            return Ok(Err(error.message().to_owned()));
        }
        let original = self.original.clone();
        let pieces: Vec<Piece> = nodes
            .iter()
            .zip(&rewritten.slices)
            .map(|(&node, &slice)| Piece::new(&original, node, slice))
            .collect();
        let header = rewritten.header.clone();
        let parts = Parts { form: &form, pieces: &pieces, kernel: &kernel, config, header: &header };
        let operation = planned(parts.operation(&original))?;
        let names: Vec<String> = match nodes {
            [] => Vec::new(),
            [one] => vec![original.label(*one)],
            [first, .., last] => vec![original.label(*first), original.label(*last)],
        };
        let name = match nodes.len() {
            1 => names.join(""),
            count => format!("{count} nodes, {}", names.join(" to ")),
        };
        let node = replace(graph, replaced, operation, &name)?;
        let name = match form {
            Form::Loop { node, .. } => original.label(node),
            _ => name,
        };
        self.add(Fusion { node, name, form, pieces, kernel, config, header });
        Ok(Ok(()))
    }

    pub(crate) fn add(&mut self, fusion: Fusion) {
        let index = self.plan.fusions.len();
        for piece in &fusion.pieces {
            self.plan.fused.insert(piece.node, index);
        }
        if let Form::Loop { node, .. } = fusion.form {
            self.plan.fused.insert(node, index);
        }
        self.survey.pinned.insert(fusion.node.key());
        self.plan.fusions.push(fusion);
    }
}

/// Replaces nodes by one, which takes over all their dependencies and dependents.
fn replace(graph: &Graph, replaced: &[NodeKey], operation: Operation, name: &str) -> Result<Node> {
    let gone: FxHashSet<NodeKey> = replaced.iter().copied().collect();
    let handles: FxHashMap<NodeKey, Node> =
        graph.nodes().into_iter().map(|node| (node.key(), node)).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    {
        let definition = graph.definition();
        let mut seen = (FxHashSet::default(), FxHashSet::default());
        for &key in replaced {
            let node = definition.node(key);
            before.extend(
                node.predecessors()
                    .iter()
                    .map(|end| end.node)
                    .filter(|key| !gone.contains(key) && seen.0.insert(*key)),
            );
            after.extend(
                node.successors()
                    .iter()
                    .map(|end| end.node)
                    .filter(|key| !gone.contains(key) && seen.1.insert(*key)),
            );
        }
    }
    let before: Vec<&Node> = before.iter().map(|key| &handles[key]).collect();
    for key in replaced {
        handles[key].delete()?;
    }
    let node = graph.add(&before, operation)?;
    node.set_name(name)?;
    for key in after {
        graph.add_edge(&node, &handles[&key], EdgeKind::Full)?;
    }
    Ok(node)
}

/// Returns whether all edges of a node are full edges. Other kinds mean more than an order.
pub(crate) fn has_full_edges(definition: &Definition, key: NodeKey) -> bool {
    let node = definition.node(key);
    node.predecessors().iter().chain(node.successors()).all(|end| end.kind == EdgeKind::Full)
}
