//! Changing single nodes of an executable.
//!
//! A change is prepared when it is requested, and can fail only then. It takes effect with the next
//! launch. Launches in flight continue with what they were enqueued with. While there are any,
//! changes wait in a list. The next launch carries the list and applies it before it runs.
//! (Launches of one executable run one at a time, in the order in which they were enqueued.) If no
//! launch is in flight, changes are applied at once, so that what they replace is released at once.

use std::collections::HashMap;
use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::lower::ConditionalRule;
use gridloom_core::op::Operation;

use super::events::Events;
use super::plan::{Addresses, Plan, PlannedTest, Step};
use super::{CpuExecutable, Front};

/// The plans of an executable, with the owners of everything they refer to.
pub(super) struct Planned {
    pub(super) plans: Vec<Plan>,
    keys: Arc<Keys>,
    hold: Hold,
    /// The steps of disabled nodes.
    disabled: HashMap<StepId, Step>,
    /// The value of each condition at the start of a launch, by its index.
    defaults: Vec<u32>,
}

/// The node of each step of each plan.
pub(super) type Keys = Vec<Box<[NodeKey]>>;

/// The owners of the memory, events and closures of the steps. They also name the nodes.
enum Hold {
    /// The definition as it was instantiated.
    Whole(Arc<Definition>),
    /// One part per step, after the first change. What is replaced is then no longer held.
    Parts(Vec<Vec<Part>>),
}

/// The parts of a node that its step needs.
struct Part {
    operation: Operation,
    /// The node's name, or the part of it that does not follow from the operation.
    name: Box<str>,
    /// Whether `name` is the whole name.
    whole_name: bool,
}

impl Part {
    fn new(definition: &Definition, key: NodeKey) -> Self {
        let node = definition.node(key);
        let (operation, mut name) = (node.operation().clone(), definition.label(key));
        let whole_name = match &operation {
            // The name of such a node includes that of its kernel, which an update may replace.
            Operation::Kernel(kernel) if node.given_name().is_none() => {
                let stem = name.strip_suffix(kernel.kernel().name()).map(|stem| stem.trim_end().len());
                name.truncate(stem.unwrap_or(name.len()));
                stem.is_none()
            }
            _ => true,
        };
        Part { operation, name: name.into(), whole_name }
    }

    fn label(&self) -> String {
        match &self.operation {
            Operation::Kernel(kernel) if !self.whole_name => {
                format!("{} {}", self.name, kernel.kernel().name())
            }
            _ => self.name.to_string(),
        }
    }
}

/// A step: the number of its plan and its index there.
pub(super) type StepId = (u32, u32);

/// A prepared change of one node. Once applied, it holds what it replaced, to be dropped where user
/// code may run.
pub(super) enum StepChange {
    /// Another step of the same kind.
    Step {
        at: StepId,
        step: Step,
        operation: Operation,
    },
    /// Another test or bound of a conditional.
    Test {
        at: StepId,
        test: PlannedTest,
        rule: ConditionalRule,
        operation: Operation,
    },
    Enabled {
        at: StepId,
        enabled: bool,
    },
    /// Another default of a condition.
    Default {
        condition: usize,
        value: u32,
    },
}

impl StepChange {
    /// Returns the change to the default that a condition has in a definition.
    pub(super) fn default_of(definition: &Definition, condition: ConditionKey) -> Self {
        let default = definition.get_condition(condition).and_then(|condition| condition.default_value());
        StepChange::Default { condition: condition.index(), value: default.unwrap_or(0) }
    }
}

/// What changes removed.
#[derive(Default)]
pub(super) struct Replaced {
    changes: Vec<Vec<StepChange>>,
    definition: Option<Arc<Definition>>,
}

impl Replaced {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl Planned {
    pub(super) fn new(
        plans: Vec<Plan>,
        keys: Arc<Keys>,
        defaults: Vec<u32>,
        definition: Arc<Definition>,
    ) -> Self {
        Planned { plans, keys, hold: Hold::Whole(definition), disabled: HashMap::new(), defaults }
    }

    /// Returns the value of each condition at the start of a launch, by its index.
    pub(super) fn defaults(&self) -> &[u32] {
        &self.defaults
    }

    /// Returns the name of the node of a step.
    #[cold]
    pub(super) fn label(&self, plan: u32, index: usize) -> String {
        match &self.hold {
            Hold::Whole(definition) => definition.label(self.keys[plan as usize][index]),
            Hold::Parts(parts) => parts[plan as usize][index].label(),
        }
    }

    /// Applies changes while no launch runs.
    pub(super) fn apply(&mut self, mut changes: Vec<StepChange>, replaced: &mut Replaced) {
        if changes.is_empty() {
            return;
        }
        for change in &mut changes {
            match change {
                StepChange::Step { at, step, operation } => {
                    std::mem::swap(self.step(*at), step);
                    self.swap_held(*at, operation, replaced);
                }
                StepChange::Test { at, test, rule, operation } => {
                    if let Step::Conditional(conditional) = self.step(*at) {
                        (conditional.test, conditional.rule) = (*test, *rule);
                    }
                    self.swap_held(*at, operation, replaced);
                }
                StepChange::Default { condition, value } => {
                    if let Some(there) = self.defaults.get_mut(*condition) {
                        *there = *value;
                    }
                }
                StepChange::Enabled { at, enabled } => {
                    let slot = &mut self.plans[at.0 as usize].steps[at.1 as usize];
                    if *enabled {
                        if let Some(step) = self.disabled.remove(at) {
                            *slot = step;
                        }
                    } else {
                        self.disabled.insert(*at, std::mem::replace(slot, Step::Nothing));
                    }
                }
            }
        }
        replaced.changes.push(changes);
    }

    /// Returns the step of a node, even if the node is disabled.
    fn step(&mut self, at: StepId) -> &mut Step {
        match self.disabled.get_mut(&at) {
            Some(step) => step,
            None => &mut self.plans[at.0 as usize].steps[at.1 as usize],
        }
    }

    /// Exchanges the operation that is held for a step.
    fn swap_held(&mut self, at: StepId, operation: &mut Operation, replaced: &mut Replaced) {
        if let Hold::Whole(definition) = &self.hold {
            let part = |&key: &NodeKey| Part::new(definition, key);
            let parts = self.keys.iter().map(|keys| keys.iter().map(part).collect()).collect();
            if let Hold::Whole(definition) = std::mem::replace(&mut self.hold, Hold::Parts(parts)) {
                replaced.definition = Some(definition);
            }
        }
        if let Hold::Parts(parts) = &mut self.hold {
            let part = &mut parts[at.0 as usize][at.1 as usize];
            std::mem::swap(&mut part.operation, operation);
        }
    }
}

impl CpuExecutable {
    /// Prepares changes of steps and lets them take effect.
    pub(super) fn change(
        &self,
        prepare: impl FnOnce(&mut StepMap, &mut Events) -> Result<Vec<StepChange>>,
    ) -> Result<()> {
        let inner = &*self.inner;
        let mut front = inner.front.lock();
        // A launch finishes under this lock, so the answer holds until the lock is released.
        let idle = inner.turns.finished() == front.given;
        let Front { events, changes, steps, .. } = &mut *front;
        let steps = steps.get_or_insert_with(|| StepMap::new(&inner.keys, &inner.event_steps));
        let mut new_events = Events::clone(events);
        let prepared = prepare(steps, &mut new_events)?;
        *events = Arc::new(new_events);
        changes.extend(prepared);
        let mut replaced = Replaced::default();
        if idle {
            inner.planned.lock().apply(std::mem::take(changes), &mut replaced);
        }
        drop(front);
        // The caller also holds all of it until it has released its own locks.
        drop(replaced);
        Ok(())
    }
}

/// The step of each node, and the number of the event of each event node.
pub(super) struct StepMap {
    /// Indexed by the node.
    steps: Vec<Option<StepId>>,
    events: HashMap<StepId, u32>,
}

impl StepMap {
    pub(super) fn new(keys: &Keys, events: &[(StepId, u32)]) -> Self {
        let nodes = keys.iter().flat_map(|keys| keys.iter().map(|key| key.index() + 1)).max();
        let mut steps = vec![None; nodes.unwrap_or(0)];
        for (plan, keys) in (0..).zip(keys) {
            for (at, key) in (0..).zip(keys) {
                steps[key.index()] = Some((plan, at));
            }
        }
        StepMap { steps, events: events.iter().copied().collect() }
    }

    /// Returns the step of a node of this executable. Nodes without work have none.
    pub(super) fn step(&self, node: NodeKey) -> Option<StepId> {
        self.steps.get(node.index()).copied().flatten()
    }

    /// Prepares the changes that bring these nodes to the definition, and records the events that
    /// the graph then uses. After a failure `events` must be discarded. Everything else is
    /// unchanged.
    pub(super) fn prepare(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        addresses: &Addresses,
        root: u32,
        events: &mut Events,
    ) -> Result<Vec<StepChange>> {
        let mut changes = Vec::with_capacity(replaced.len());
        let mut event_numbers = Vec::new();
        for of_one_node in replaced.chunk_by(|(one, _), (next, _)| one == next) {
            let key = of_one_node[0].0;
            // Nodes without work have nothing to change.
            let Some(at) = self.step(key) else {
                continue;
            };
            let operation = definition.node(key).operation().clone();
            if let Operation::Conditional(conditional) = &operation {
                let test = PlannedTest::new(&conditional.test, addresses)?;
                let rule = ConditionalRule::new(conditional);
                changes.push(StepChange::Test { at, test, rule, operation });
                continue;
            }
            let exactly_once = at.0 == root;
            let old_event = self.events.get(&at).copied();
            let step = match &operation {
                Operation::EventRecord(event) => events.record(event, exactly_once).map(|number| {
                    old_event.into_iter().for_each(|old| events.forget_record(old, exactly_once));
                    event_numbers.push((at, number));
                    Step::Record(number)
                }),
                Operation::EventWait(event) => events.wait(event).map(|number| {
                    old_event.into_iter().for_each(|old| events.forget_wait(old));
                    event_numbers.push((at, number));
                    Step::Wait(number)
                }),
                operation => Step::of(operation, addresses),
            };
            let step = step.map_err(|error| error.at_node(definition.label(key)))?;
            changes.push(StepChange::Step { at, step, operation });
        }
        self.events.extend(event_numbers);
        Ok(changes)
    }
}
