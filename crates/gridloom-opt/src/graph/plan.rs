//! The plan: a graph and the changes that the passes made to it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gridloom_core::backend::{Device, Kernel};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions, NodeReport};
use gridloom_core::graph::{ConditionKey, Definition, EdgeEnd, EdgeKind, NodeKey};
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::log;
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalOp, KernelArgs, Operation, Test};
use gridloom_core::{Graph, Node, Result, user_code};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::fusion::{Call, Form, Fusion, Piece, planned, unexpected};
use super::state::PlanMemory;
use super::survey::Survey;
use super::{Profile, batches, builtin, chains, control, early, edges, fills, names, report};
use crate::cache::{Cache, Made, Recipe};
use crate::executable::leaves_memory;
use crate::optimizations::{Optimization, Optimizations};
use crate::rewrite::{Case, TeamBarrier};

/// An optimised graph, and what became of its nodes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph to run: a copy with the same keys, in which nodes were replaced.
    pub(crate) graph: Graph,
    /// The launches that replace nodes.
    pub(crate) fusions: Vec<Fusion>,
    /// The replacements that each node went into.
    pub(crate) fused: FxHashMap<NodeKey, SmallVec<[usize; 1]>>,
    /// Conditionals that are kernels now.
    pub(crate) expanded: Vec<Expanded>,
    /// The names of conditionals inside rewritten kernels.
    names: FxHashMap<NodeKey, String>,
    /// Nodes that were removed because they do nothing.
    pub(crate) removed: FxHashSet<NodeKey>,
    /// The number of edges that were removed because others imply them.
    pub(crate) removed_edges: usize,
    /// The names of original nodes that were not changed, and why.
    pub(crate) kept: Vec<(String, String)>,
    /// What was done.
    pub(crate) done: Vec<Done>,
    /// What became of each original node.
    pub(crate) nodes: Vec<NodeReport>,
    /// The copies that run before the first launch.
    pub(crate) writes: Vec<Operation>,
}

/// What a pass did.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) description: String,
    /// The original nodes that it concerns.
    pub(crate) nodes: Vec<NodeKey>,
}

/// A conditional that became kernels which test its value themselves.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) node: NodeKey,
    pub(crate) name: String,
    pub(crate) passes: Counted,
}

/// Where the passes of a conditional are known.
#[derive(Clone, Debug)]
pub(crate) enum Counted {
    /// In a word of memory.
    In(Region),
    /// Every launch makes as many.
    Always(u64),
    /// Nowhere.
    Not,
}

/// The state that the passes share.
pub(crate) struct Context<'a> {
    pub(crate) device: Arc<dyn Device>,
    /// The graph before any change.
    pub(crate) original: Arc<Definition>,
    pub(crate) survey: Survey,
    pub(crate) profile: Profile,
    pub(crate) plan: Plan,
    pub(crate) wanted: Optimizations,
    /// Whether the host drives conditionals.
    pub(crate) hosted: bool,
    /// Whether passes are counted that nothing else needs.
    counts_passes: bool,
    /// The handles of all nodes of the hierarchy.
    pub(crate) handles: FxHashMap<NodeKey, Node>,
    /// The launches that replace nodes, by their node.
    fusions: FxHashMap<NodeKey, Fusion>,
    /// The words of the conditions that are stored in memory.
    pub(crate) conditions: FxHashMap<ConditionKey, Region>,
    memory: Option<PlanMemory>,
    /// The kernels that were made for this device before.
    cache: Arc<Cache>,
    kernels: Kernels<'a>,
    /// Whether a kernel was needed that the cache does not have, and none may be made.
    is_incomplete: Cell<bool>,
}

/// Where a plan gets rewritten kernels from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernels<'a> {
    /// From the cache, or the device compiles them.
    Make,
    /// As [`Make`](Kernels::Make), until another thread sets one of these flags.
    MakeUntil(&'a AtomicBool, &'a AtomicBool),
    /// From the cache only. A plan that needs others fails.
    Known,
}

impl Plan {
    /// Runs the passes. Disabled nodes and the nodes around them are not changed. Returns `None` if
    /// kernels are missing that may not be made.
    ///
    /// `graph` is a copy that nothing else edits.
    pub(crate) fn new(
        graph: Graph,
        wanted: Optimizations,
        profile: Profile,
        options: &InstantiateOptions,
        disabled: &FxHashSet<NodeKey>,
        kernels: Kernels<'_>,
    ) -> Result<Option<Self>> {
        let (device, original) = (graph.device().clone(), graph.definition());
        // Some passes find out late that a device does not take a kernel.
        let fewer = wanted.without(&[Optimization::Branches, Optimization::EarlyStart]);
        let cautious = Profile { costly_conditionals: false, ..profile };
        let mut attempts =
            [(wanted, profile), (fewer, cautious), (Optimizations::NONE, cautious)].into_iter().peekable();
        let mut reasons = Vec::new();
        while let Some((wanted, profile)) = attempts.next() {
            // SAFETY: it is the definition of the same graph before any change, for its device.
            let graph = unsafe { Graph::with_definition(&device, original.clone()) };
            let planned =
                user_code::contain(|| Plan::with(graph, wanted, profile, options, disabled, kernels));
            let error = match planned {
                Ok(Ok(plan)) => {
                    return Ok(plan.map(|mut plan| {
                        plan.kept.extend(reasons);
                        plan
                    }));
                }
                Ok(Err(error)) => error,
                Err(said) => unexpected(&format!("panicked: {said}")),
            };
            log!(debug, %error, "a graph is optimised again with fewer passes");
            if attempts.peek().is_none() {
                return Err(error);
            }
            reasons.push(("the graph".to_owned(), error.message().to_owned()));
        }
        Ok(None)
    }

    fn with(
        graph: Graph,
        wanted: Optimizations,
        profile: Profile,
        options: &InstantiateOptions,
        disabled: &FxHashSet<NodeKey>,
        kernels: Kernels<'_>,
    ) -> Result<Option<Self>> {
        let original = graph.definition();
        let cache = Cache::of(&**graph.device());
        let plan = Plan {
            graph: graph.clone(),
            fusions: Vec::new(),
            fused: FxHashMap::default(),
            expanded: Vec::new(),
            names: FxHashMap::default(),
            removed: FxHashSet::default(),
            removed_edges: 0,
            kept: Vec::new(),
            done: Vec::new(),
            nodes: Vec::new(),
            writes: Vec::new(),
        };
        let mut context = Context {
            device: graph.device().clone(),
            original,
            survey: Survey::new(disabled.clone(), cache.clone()),
            profile,
            plan,
            wanted,
            hosted: options.conditional_mode == ConditionalMode::Hosted,
            counts_passes: options.count_passes || profile.counts_passes,
            handles: handles(&graph)?,
            fusions: FxHashMap::default(),
            conditions: FxHashMap::default(),
            memory: None,
            cache,
            kernels,
            is_incomplete: Cell::new(false),
        };
        let obstacle = if leaves_memory(&context.original) {
            Some("the graph leaves memory allocated after a launch")
        } else if profile.limits_nodes {
            Some("the device limits the nodes of a launch, and counts those that were written")
        } else {
            None
        };
        if let Some(reason) = obstacle {
            context.plan.kept.push(("the graph".into(), reason.into()));
            context.survey.hold(reason);
        } else {
            context.visit(&graph)?;
            control::run(&mut context, &graph)?;
            context.add_reset(&graph)?;
            if wanted.has(Optimization::EarlyStart) {
                context.visit_early(&graph)?;
            }
            context.add_prefixes()?;
        }
        Ok((!context.is_incomplete.get()).then(|| context.finish()))
    }

    /// Returns whether the graph runs in another form than it was written.
    pub(crate) fn has_effect(&self) -> bool {
        !self.fusions.is_empty() || !self.expanded.is_empty()
    }

    /// Returns the name of a conditional inside a rewritten kernel.
    pub(crate) fn label(&self, conditional: NodeKey) -> String {
        self.names.get(&conditional).cloned().unwrap_or_default()
    }

    /// Returns where the passes of a conditional are known, if it is no conditional any more.
    pub(crate) fn passes(&self, conditional: NodeKey) -> Option<Counted> {
        if let Some(expanded) = self.expanded.iter().find(|expanded| expanded.node == conditional) {
            return Some(expanded.passes.clone());
        }
        let fusion = &self.fusions[*self.fused.get(&conditional)?.first()?];
        let Form::Program(controls) = &fusion.call.form else { return None };
        let control = controls.iter().find(|control| control.node == conditional)?;
        Some(Counted::In(control.passes.clone()))
    }
}

impl Context<'_> {
    fn finish(self) -> Plan {
        let Context { mut plan, survey, original, fusions, memory, wanted, profile, .. } = self;
        plan.writes = memory.map(PlanMemory::into_writes).unwrap_or_default();
        plan.fusions = fusions.into_values().collect();
        plan.fusions.sort_unstable_by_key(|fusion| fusion.node.key().index());
        for (index, fusion) in plan.fusions.iter().enumerate() {
            let mut add = |node: NodeKey| plan.fused.entry(node).or_default().push(index);
            fusion.call.pieces.iter().for_each(|piece| add(piece.node));
            if let Form::Program(controls) = &fusion.call.form {
                for control in controls {
                    add(control.node);
                    plan.names.insert(control.node, original.label(control.node));
                }
            }
        }
        report::describe(&mut plan, survey, &original, (wanted, profile));
        plan
    }

    /// Runs the passes over a graph and the graphs inside it.
    fn visit(&mut self, graph: &Graph) -> Result<()> {
        if self.wanted.has(Optimization::Edges) {
            edges::run(self, graph)?;
        }
        let in_block = [Optimization::Chains, Optimization::Loops, Optimization::Branches];
        if self.profile.costly_nodes && in_block.iter().any(|&pass| self.wanted.has(pass)) {
            chains::run(self, graph)?;
        }
        for body in inner_graphs(graph)? {
            self.visit(&body)?;
        }
        if self.wanted.has(Optimization::Batches) {
            batches::run(self, graph)?;
        }
        if self.profile.costly_nodes && self.wanted.has(Optimization::Fills) {
            fills::run(self, graph)?;
        }
        Ok(())
    }

    fn visit_early(&mut self, graph: &Graph) -> Result<()> {
        for body in inner_graphs(graph)? {
            self.visit_early(&body)?;
        }
        early::run(self, graph)
    }

    /// Returns the most bytes of kernel parameters.
    pub(crate) fn limit(&self) -> u32 {
        self.device.limits().max_parameter_bytes
    }

    /// Returns the most bytes of parameters of a kernel that combines nodes.
    pub(crate) fn combined_limit(&self) -> u32 {
        self.limit().min(self.profile.max_argument_bytes)
    }

    /// Returns the kernel of a recipe, or the reason why there is none.
    fn make(&self, recipe: &Recipe) -> std::result::Result<Arc<Made>, String> {
        let may_make = match self.kernels {
            Kernels::Make => true,
            Kernels::MakeUntil(one, other) => !one.load(Ordering::Relaxed) && !other.load(Ordering::Relaxed),
            Kernels::Known => false,
        };
        if may_make {
            return self.cache.kernel(&*self.device, recipe);
        }
        self.cache.known(recipe).unwrap_or_else(|| {
            self.is_incomplete.set(true);
            Err("its kernel was not made yet".into())
        })
    }

    /// Returns new words of the plan's memory, or `None` if there are none left.
    pub(crate) fn words(&mut self, values: &[u64]) -> Result<Option<Region>> {
        Ok(self.memory()?.words(values))
    }

    fn memory(&mut self) -> Result<&mut PlanMemory> {
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => PlanMemory::new(&*self.device)?,
        };
        Ok(self.memory.insert(memory))
    }

    /// Makes every launch start with the initial values of all words, if `is_needed`.
    pub(crate) fn reset_words(&mut self, is_needed: bool) {
        if let Some(memory) = &mut self.memory {
            memory.is_reset |= is_needed;
        }
    }

    /// Returns whether a kernel must copy the value that decides a branch before its bodies run.
    pub(crate) fn needs_decision(&self, conditional: &ConditionalOp, definition: &Definition) -> bool {
        let Test::Condition(condition) = conditional.test else { return true };
        let sets = |key: NodeKey| {
            let mut sets = false;
            definition.node(key).operation().for_each_condition(|other| sets |= other == condition);
            sets
        };
        self.counts_passes
            || conditional.bodies.iter().any(|&body| definition.nodes(body).any(sets))
            // Something deeper inside may set it. Such bodies are rare.
            || conditional.bodies.iter().any(|&body| {
                definition.nodes(body).any(|key| !definition.node(key).bodies().is_empty())
            })
    }

    /// Adds the node that resets the plan's memory, before all others.
    fn add_reset(&mut self, graph: &Graph) -> Result<()> {
        let Some(memory) = self.memory.as_mut().filter(|memory| memory.is_reset) else { return Ok(()) };
        let (used, image) = memory.image(&*self.device)?;
        let args = builtin::copy_words(&used, &image);
        let first: Vec<Node> = {
            let definition = graph.definition();
            let is_first = |node: &Node| definition.node(node.key()).predecessors().is_empty();
            graph.nodes().into_iter().filter(is_first).collect()
        };
        let reset = self.add_builtin(graph, &[], builtin::COPY, args, "sets conditions to their defaults")?;
        for node in first {
            graph.add_edge(&reset, &node, EdgeKind::Full)?;
        }
        Ok(())
    }

    /// Adds a node that launches a kernel of the optimiser's own, with one block.
    pub(crate) fn add_builtin(
        &mut self,
        graph: &Graph,
        before: &[Node],
        kernel: &'static str,
        args: KernelArgs,
        name: &str,
    ) -> Result<Node> {
        let threads = if kernel == builtin::COPY { 128 } else { 32 };
        let recipe = Recipe::Builtin { text: builtin::TEXT, name: kernel };
        let kernel = self.make(&recipe).map_err(|reason| unexpected(&reason))?.kernel.clone();
        let call =
            Call::new(Form::Builtin(Box::new(args)), Vec::new(), kernel, LaunchConfig::new(1u32, threads));
        self.put(graph, before, Some(call), name)
    }

    /// Returns the launch that replaces what a kernel node of the optimised graph does.
    pub(crate) fn single(&mut self, key: NodeKey) -> Result<&mut Fusion> {
        if !self.fusions.contains_key(&key) {
            let Some(Operation::Kernel(launch)) = self.original.get_node(key).map(|node| node.operation())
            else {
                return Err(unexpected("found a node that it has not planned"));
            };
            let pieces = vec![Piece::new(&self.original, key, 0)];
            let call = Call::new(Form::Single, pieces, launch.kernel().clone(), *launch.config());
            let (node, name) = (self.handles[&key].clone(), self.original.label(key));
            self.survey.pinned.insert(key);
            self.fusions.insert(key, Fusion { node, name, call });
        }
        self.fusions.get_mut(&key).ok_or_else(|| unexpected("lost a node"))
    }

    /// Records what was done with original nodes.
    pub(crate) fn done(&mut self, description: String, nodes: Vec<NodeKey>) {
        self.plan.done.push(Done { description, nodes });
    }

    /// Records what was done with a conditional and everything inside it.
    pub(crate) fn done_with(&mut self, description: String, conditional: NodeKey) {
        let mut nodes = vec![conditional];
        chains::inside(&self.original, conditional, &mut nodes);
        self.done(description, nodes);
    }

    /// Returns the original nodes whose work a node does.
    pub(crate) fn originals(&self, key: NodeKey) -> Vec<NodeKey> {
        match self.fusions.get(&key) {
            Some(fusion) => fusion.call.pieces.iter().map(|piece| piece.node).collect(),
            None => vec![key],
        }
    }

    /// Returns whether a node replaces others.
    pub(crate) fn is_fusion(&self, key: NodeKey) -> bool {
        self.fusions.contains_key(&key)
    }

    /// Takes the launch of a node of a body, to [`put`](Context::put) it elsewhere. Returns `None`
    /// for an empty node. The node itself is deleted with its body.
    pub(crate) fn take(&mut self, node: &Node) -> Result<(Option<Call>, String)> {
        let key = node.key();
        if let Operation::Empty = node.operation()? {
            return Ok((None, node.label()));
        }
        self.single(key)?;
        let fusion = self.fusions.remove(&key).ok_or_else(|| unexpected("lost a node"))?;
        Ok((Some(fusion.call), fusion.name))
    }

    /// Adds a node that makes this launch, or an empty node.
    pub(crate) fn put(
        &mut self,
        graph: &Graph,
        before: &[Node],
        call: Option<Call>,
        name: &str,
    ) -> Result<Node> {
        let operation = match &call {
            Some(call) => planned(call.operation(&self.original))?,
            None => Operation::Empty,
        };
        let node = graph.add(&before.iter().collect::<Vec<_>>(), operation)?;
        node.set_name(name)?;
        self.handles.insert(node.key(), node.clone());
        self.survey.pinned.insert(node.key());
        if let Some(call) = call {
            self.fusions.insert(node.key(), Fusion { node: node.clone(), name: name.to_owned(), call });
        }
        Ok(node)
    }

    /// Gives every launch the kernel with its prefix.
    fn add_prefixes(&mut self) -> Result<()> {
        let mut keys: Vec<NodeKey> = self
            .fusions
            .values()
            .filter(|fusion| !fusion.call.prefix.is_empty())
            .map(|f| f.node.key())
            .collect();
        keys.sort_unstable_by_key(|key| key.index());
        for key in keys {
            let Some(fusion) = self.fusions.get(&key) else { continue };
            let (kernel, prefix) = (fusion.call.kernel.clone(), fusion.call.prefix.clone());
            let source = self.survey.source(&kernel).ok_or("the PTX of a kernel is not known".into());
            let (source, made) = source
                .and_then(|source| {
                    let recipe = Recipe::Prefixed { source: source.clone(), prefix };
                    Ok((source, self.make(&recipe)?))
                })
                .map_err(|reason: String| unexpected(&format!("meets a kernel: {reason}")))?;
            let names_faults = self.profile.names_faults;
            let Some(fusion) = self.fusions.get_mut(&key) else { continue };
            let is_single = names_faults && matches!(fusion.call.form, Form::Single);
            let single = is_single.then(|| (fusion.name.clone(), source));
            fusion.call.prefixed = Some(names::prefixed(&made, &kernel, single));
            fusion.node.set_operation(planned(fusion.operation(&self.original))?)?;
        }
        Ok(())
    }

    /// Makes a rewritten kernel and replaces nodes by one that launches it. If that is not
    /// possible, returns the reason and changes nothing.
    pub(crate) fn fuse(
        &mut self,
        graph: &Graph,
        recipe: &Recipe,
        form: Form,
        nodes: &[NodeKey],
        shared: u32,
        replaced: &[NodeKey],
    ) -> Result<std::result::Result<(), String>> {
        let rewritten = match self.make(recipe) {
            Ok(rewritten) => rewritten,
            Err(reason) => return Ok(Err(reason)),
        };
        let kernel = self.named(&rewritten, recipe, nodes);
        let mut config = LaunchConfig::new(rewritten.blocks, Dim3::from(rewritten.block)).shared(shared);
        match recipe.barrier() {
            TeamBarrier::Block | TeamBarrier::Thread => {}
            TeamBarrier::Cluster => config = config.cluster(rewritten.blocks),
            TeamBarrier::Grid => config = config.cooperative(),
        }
        if let Err(error) = config.check(self.device.limits(), kernel.limits()) {
            return Ok(Err(error.message().to_owned()));
        }
        let blocks = u64::from(rewritten.blocks);
        if matches!(recipe.barrier(), TeamBarrier::Cluster | TeamBarrier::Grid)
            && kernel.resident_blocks(&config)?.is_none_or(|most| most < blocks)
        {
            return Ok(Err(format!("{blocks} blocks of the rewritten kernel do not run at once")));
        }
        let mut state = None;
        if let Some(needed) = rewritten.state {
            let Some(words) = self.memory()?.state(needed.words) else {
                return Ok(Err("there is no memory left for its conditions".into()));
            };
            // A launch that was cancelled leaves it in any state.
            self.reset_words(self.profile.cancels);
            state = Some((needed, words));
        }
        let original = self.original.clone();
        let pieces: Vec<Piece> = nodes
            .iter()
            .zip(&rewritten.slices)
            .map(|(&node, &slice)| Piece::new(&original, node, slice))
            .collect();
        let call =
            Call { header: rewritten.header.clone(), state, ..Call::new(form, pieces, kernel, config) };
        let name = match nodes {
            [] => String::new(),
            [one] => original.label(*one),
            [first, .., last] => {
                format!("{} nodes, {} to {}", nodes.len(), original.label(*first), original.label(*last))
            }
        };
        let (before, after) = self.around(graph, replaced);
        for key in replaced {
            self.handles[key].delete()?;
        }
        let node = self.put(graph, &before, Some(call), &name)?;
        for to in after {
            graph.add_edge(&node, &to, EdgeKind::Full)?;
        }
        Ok(Ok(()))
    }

    /// Returns a launch of kernels of which at most one runs, as the word says, or the reason why
    /// there is none. The nodes launch them now.
    pub(crate) fn choose(
        &mut self,
        cases: Vec<Case>,
        nodes: &[NodeKey],
        (block, shared): ([u32; 3], u32),
        word: &Region,
    ) -> std::result::Result<Call, String> {
        let recipe = Recipe::Choice { cases, block, limit: self.combined_limit() };
        let made = self.make(&recipe)?;
        let config = LaunchConfig::new(made.blocks, Dim3::from(block)).shared(shared);
        let checked = config.check(self.device.limits(), made.kernel.limits());
        checked.map_err(|error| error.message().to_owned())?;
        let piece = |(&node, &slice): (&NodeKey, &u32)| Piece::new(&self.original, node, slice);
        let pieces = nodes.iter().zip(&made.slices).map(piece).collect();
        let state = made.state.map(|state| (state, word.clone()));
        let call = Call::new(Form::Batch, pieces, self.named(&made, &recipe, nodes), config);
        Ok(Call { header: made.header.clone(), state, ..call })
    }

    /// Returns a rewritten kernel that does the work of these nodes.
    fn named(&self, made: &Made, recipe: &Recipe, nodes: &[NodeKey]) -> Arc<dyn Kernel> {
        if !self.profile.names_faults {
            return made.kernel.clone();
        }
        names::combined(made, recipe, nodes.iter().map(|&node| self.original.label(node)).collect())
    }

    /// Returns the nodes that some nodes depend on, and those that depend on them.
    fn around(&self, graph: &Graph, nodes: &[NodeKey]) -> (Vec<Node>, Vec<Node>) {
        let gone: FxHashSet<NodeKey> = nodes.iter().copied().collect();
        let definition = graph.definition();
        let mut seen = (FxHashSet::default(), FxHashSet::default());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for &key in nodes {
            let node = definition.node(key);
            let outside = |end: &EdgeEnd| Some(end.node).filter(|key| !gone.contains(key));
            let other = node.predecessors().iter().filter_map(outside).filter(|&key| seen.0.insert(key));
            before.extend(other.map(|key| self.handles[&key].clone()));
            let other = node.successors().iter().filter_map(outside).filter(|&key| seen.1.insert(key));
            after.extend(other.map(|key| self.handles[&key].clone()));
        }
        (before, after)
    }
}

/// Returns the graphs inside a graph.
fn inner_graphs(graph: &Graph) -> Result<Vec<Graph>> {
    let definition = graph.definition();
    let nodes = graph.nodes().into_iter().filter(|node| !definition.node(node.key()).bodies().is_empty());
    let mut found = Vec::new();
    for node in nodes {
        found.extend(node.bodies()?);
    }
    Ok(found)
}

/// Returns the handles of all nodes of a graph and of the graphs inside it.
pub(crate) fn handles(graph: &Graph) -> Result<FxHashMap<NodeKey, Node>> {
    let (mut found, mut open) = (FxHashMap::default(), vec![graph.clone()]);
    while let Some(graph) = open.pop() {
        open.extend(inner_graphs(&graph)?);
        found.extend(graph.nodes().into_iter().map(|node| (node.key(), node)));
    }
    Ok(found)
}

/// Returns whether all edges of a node are full edges. Other kinds mean more than an order.
pub(crate) fn has_full_edges(definition: &Definition, key: NodeKey) -> bool {
    let node = definition.node(key);
    node.predecessors().iter().chain(node.successors()).all(|end| end.kind == EdgeKind::Full)
}
