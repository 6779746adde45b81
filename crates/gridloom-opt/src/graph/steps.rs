//! Nodes that become steps of one kernel, with the conditionals around them.

use std::sync::Arc;

use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Profile;
use super::fusion::Pointees;
use super::plan::{Context, has_full_edges};
use super::survey::Candidate;
use crate::optimizations::Optimization;
use crate::rewrite::{Accesses, Control, ControlForm, LoopTest, Part, ProgramStep, Role, Team, TeamBarrier};

/// The most instructions of one program. Without conditionals, each different kernel counts once.
const MAX_INSTRUCTIONS: usize = 12_000;
/// The most different kernels in one program.
const MAX_KERNELS: usize = 24;
/// The most conditionals in one program.
const MAX_CONTROLS: usize = 16;

/// The most instructions of a kernel of which several blocks share a multiprocessor that would else
/// be spread over several. It has no loops.
const MAX_PACKED_INSTRUCTIONS: usize = 250;
/// The most steps that each thread makes by itself.
const MAX_THREAD_STEPS: usize = 64;
/// The most instructions of such a step. Longer ones may need many more registers than the others,
/// which then run in fewer warps at once.
const MAX_THREAD_INSTRUCTIONS: usize = 1000;
/// The most static shared memory of a kernel in bytes.
const MAX_STATIC_SHARED: u64 = 48 << 10;

/// The blocks that a run may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Width {
    /// One, with the threads of its largest step.
    #[default]
    Block,
    /// Several that run at once.
    Team,
    /// Those of the widest step. All have the same threads, and none needs what another one wrote.
    Threads,
}

/// What the steps of a run need together.
#[derive(Clone, Copy, Debug)]
struct Needs {
    blocks: u64,
    threads: u64,
    shared: u32,
    static_shared: u64,
    barriers: u32,
    /// Whether several blocks on one multiprocessor take hardly longer than one.
    is_light: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Needs { blocks: 1, threads: 1, shared: 0, static_shared: 0, barriers: 0, is_light: true }
    }
}

/// What a run may do because it saves more than that costs.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    /// Whether several blocks of a kernel share a block of a cluster. A step then takes longer than
    /// the start of a kernel, but less than a pass of a loop.
    packs: bool,
    /// Whether blocks wait for each other in memory. That takes still longer.
    waits: bool,
}

impl Needs {
    fn with(self, candidate: &Candidate) -> Self {
        let volume = |extents: [u32; 3]| extents.iter().map(|&extent| u64::from(extent)).product();
        Needs {
            blocks: self.blocks.max(candidate.blocks()),
            threads: self.threads.max(candidate.block.map_or(1, volume)),
            shared: self.shared.max(candidate.shared),
            static_shared: self.static_shared.max(candidate.static_shared.into()),
            barriers: self.barriers.max(candidate.source.barriers()),
            is_light: self.is_light
                && (candidate.is_builtin() || candidate.source.is_light(MAX_PACKED_INSTRUCTIONS)),
        }
    }

    /// Returns the team that runs the steps, or `None` if there is none for so many blocks.
    fn team(self, profile: &Profile, allowed: Allowed) -> Option<Team> {
        let (blocks, threads) = (u32::try_from(self.blocks).ok()?, Team::slot_threads(self.threads));
        let team = |blocks: u32, slots: u32, barrier| {
            // Where slots are side by side, each starts at a boundary that any variable may need.
            let shared = if slots == 1 { self.shared } else { self.shared.next_multiple_of(128) };
            let most = if slots == 1 { 1024 } else { profile.packed_threads };
            let fits = threads * u64::from(slots) <= most.into()
                && self.static_shared.next_multiple_of(128) * u64::from(slots) <= MAX_STATIC_SHARED
                && self.barriers.saturating_mul(slots) < 15
                && (slots == 1 || self.is_light);
            fits.then_some(Team { blocks, slots, shared, barrier })
        };
        if let Some(team) = team(1, blocks, TeamBarrier::Block) {
            return Some(team);
        }
        let (most, barrier) = match (profile.cluster_blocks, profile.without_clusters) {
            (0, true) => (profile.resident_blocks, TeamBarrier::Grid),
            (most, _) => (most, TeamBarrier::Cluster),
        };
        let packed = || {
            let slots = blocks.div_ceil(most.min(blocks));
            team(blocks.div_ceil(slots), slots, barrier)
        };
        let spread = || team(blocks, 1, TeamBarrier::Grid);
        (most > 0 && (allowed.packs || blocks <= most))
            .then(packed)
            .flatten()
            .or_else(|| (allowed.waits && blocks <= profile.resident_blocks).then(spread).flatten())
    }
}

/// Nodes that become one kernel.
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
    width: Width,
    needs: Needs,
    /// What each step accesses, if each thread makes all steps by itself.
    pub(super) accesses: Vec<Arc<Accesses>>,
    pointees: Vec<Arc<Pointees>>,
}

impl Run {
    pub(super) fn new(width: Width) -> Self {
        Run { width, ..Run::default() }
    }

    /// Returns the blocks that run it, or `None` if the device has no room for them.
    pub(super) fn team(&self, context: &Context<'_>) -> Option<Team> {
        match self.width {
            Width::Block => Some(Team { shared: self.needs.shared, ..Team::ONE_BLOCK }),
            Width::Team => self.needs.team(&context.profile, self.allowed(context, self.nodes.len())),
            Width::Threads => {
                let (blocks, shared) = (u32::try_from(self.needs.blocks).ok()?, self.needs.shared);
                Some(Team { blocks, slots: 1, shared, barrier: TeamBarrier::Thread })
            }
        }
    }

    /// Returns what it may do with so many steps.
    fn allowed(&self, context: &Context<'_>, steps: usize) -> Allowed {
        let is_loop = |&key: &NodeKey| {
            let operation = context.original.get_node(key).map(|node| node.operation());
            matches!(operation, Some(Operation::Conditional(op)) if op.form == ConditionalForm::While)
        };
        let packs = self.controls.iter().any(is_loop);
        // A loop of one kernel.
        let waits = packs && self.replaced.len() == 1 && self.controls.len() == 1 && steps == 1;
        Allowed { packs: packs || context.profile.without_clusters, waits }
    }

    /// Adds a node of the outermost graph. If it does not fit, returns the reason and changes
    /// nothing.
    pub(super) fn push(
        &mut self,
        context: &Context<'_>,
        definition: &Definition,
        node: NodeKey,
    ) -> Result<(), String> {
        match definition.node(node).operation() {
            Operation::Conditional(_) if self.width == Width::Threads => {
                return Err("threads by themselves make no decisions".into());
            }
            Operation::Conditional(conditional) => {
                let mut with = self.clone();
                with.replaced.push(node);
                let part = with.conditional(context, definition, node, conditional)?;
                with.parts.push(part);
                *self = with;
            }
            _ => {
                let candidate = step(context, definition, node, self.width).ok_or("it cannot be a step")?;
                // What a run may do depends on what else it replaces.
                self.replaced.push(node);
                let added = self.apart(context, definition, node, &candidate);
                match added.and_then(|()| self.step(context, node, candidate)) {
                    Ok(part) => self.parts.push(part),
                    Err(reason) => {
                        self.replaced.pop();
                        return Err(reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a fill or copy that becomes a kernel of its own.
    pub(super) fn push_builtin(
        &mut self,
        context: &Context<'_>,
        node: NodeKey,
        candidate: Candidate,
    ) -> bool {
        self.step(context, node, candidate).map(|part| self.parts.push(part)).is_ok()
    }

    /// Adds what a step accesses, if each thread makes all steps by itself. Returns the reason if a
    /// thread may need what another one writes.
    fn apart(
        &mut self,
        context: &Context<'_>,
        definition: &Definition,
        node: NodeKey,
        candidate: &Candidate,
    ) -> Result<(), String> {
        if self.width != Width::Threads {
            return Ok(());
        }
        let ([blocks, 1, 1], Some([threads, 1, 1])) = (candidate.grid, candidate.block) else {
            return Err("its grid is not along x".into());
        };
        let shape = |other: &Candidate| other.block == candidate.block;
        if self.nodes.len() == MAX_THREAD_STEPS || !self.candidates.iter().all(shape) {
            return Err("its blocks have another shape than those of the others".into());
        }
        let sets = |other: &Candidate| other.source.sets_conditions();
        if sets(candidate) && self.candidates.iter().any(sets) {
            return Err("another one sets conditions too".into());
        }
        if candidate.source.instructions() > MAX_THREAD_INSTRUCTIONS {
            return Err("it is too long".into());
        }
        let accesses = context.survey.accesses(&candidate.source, blocks, threads);
        let accesses = accesses.ok_or("what its threads access is not known")?;
        let memory = Arc::new(Pointees::of(definition, node));
        let earlier = self.accesses.iter().zip(&self.pointees);
        for (other, theirs) in earlier {
            if !other.allow(&accesses, &|at| theirs.get(at), &|at| memory.get(at)) {
                return Err("its threads may need what other threads wrote".into());
            }
        }
        self.accesses.push(accesses);
        self.pointees.push(memory);
        Ok(())
    }

    fn step(&mut self, context: &Context<'_>, node: NodeKey, candidate: Candidate) -> Result<Part, String> {
        let limit = context.combined_limit();
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
        let needs = self.needs.with(&candidate);
        match self.width {
            Width::Block if !self.goes_together(&candidate) => {
                return Err("its block has another shape than that of the others".into());
            }
            Width::Team => {
                let threads = needs.threads as u32;
                if let Some(reason) = candidate.source.obstacle_at_other_places(threads, 1) {
                    return Err(reason);
                }
                let allowed = self.allowed(context, self.nodes.len() + 1);
                let Some(team) = needs.team(&context.profile, allowed) else {
                    return Err("no cluster has room for its blocks beside those of the others".into());
                };
                for candidate in self.candidates.iter().chain([&candidate]) {
                    let Some(block) = candidate.block else { continue };
                    let (source, shape) = (&candidate.source, (candidate.grid, block));
                    if let Some(reason) = source.obstacle_to_other_numbers(shape, team.slots) {
                        return Err(reason.into());
                    }
                }
            }
            Width::Block | Width::Threads => {}
        }
        self.needs = needs;
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
                        let candidate = step(context, definition, key, self.width)
                            .ok_or_else(|| because("it cannot be a step of one".into()))?;
                        parts.push(self.step(context, key, candidate).map_err(because)?);
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
        // Fills and copies run in any number of blocks.
        let every = [self.needs.blocks as u32, 1, 1];
        self.candidates
            .iter()
            .map(|candidate| ProgramStep {
                kernel: candidate.source.clone(),
                grid: if candidate.is_builtin() { every } else { candidate.grid },
                block: candidate.block.unwrap_or(block),
            })
            .collect()
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
fn step(context: &Context<'_>, definition: &Definition, key: NodeKey, width: Width) -> Option<Candidate> {
    let candidate = context.survey.candidate(definition, key, Role::Step)?;
    if width == Width::Block && candidate.blocks() != 1 {
        context.survey.note(
            key,
            format!("it has {} blocks; only what has one is put into one block", candidate.blocks()),
        );
        return None;
    }
    Some(candidate)
}
