//! Changing single nodes of an executable.
//!
//! A change is prepared when it is asked for, where it may fail, and takes effect with the next launch. Launches in flight go on
//! with what they were enqueued with: as long as there are any, changes wait in a list that the next launch carries with it and
//! applies before it runs. (Launches of one executable run in the order they were enqueued, one at a time.) With none in
//! flight they are applied at once, so that what was replaced is let go at once.

use std::collections::HashMap;
use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::op::Operation;

use super::events::Events;
use super::plan::{Addresses, Plan, PlannedTest, Step, prepare};

/// The plans of an executable, with what keeps alive whatever they refer to.
pub(super) struct Planned {
    pub(super) plans: Vec<Plan>,
    keys: Arc<Keys>,
    hold: Hold,
    /// The steps of disabled nodes.
    disabled: HashMap<Place, Step>,
}

/// The node of each step of each plan.
pub(super) type Keys = Vec<Box<[NodeKey]>>;

/// What keeps memory, events and closures of the steps, and names the nodes.
enum Hold {
    /// The definition as it was instantiated.
    Whole(Arc<Definition>),
    /// Once something changed: operation and name of every step, so that what was replaced is not held any longer.
    Parts(Vec<Vec<(Operation, String)>>),
}

/// A step: the number of its plan, and its index there.
pub(super) type Place = (u32, u32);

/// A change of one node, prepared.
pub(super) enum Change {
    /// Another step of the same kind.
    Step {
        place: Place,
        step: Step,
        operation: Operation,
        label: String,
    },
    /// Another test, or other bounds, of a conditional.
    Test {
        place: Place,
        test: PlannedTest,
        limit: Option<u64>,
        operation: Operation,
        label: String,
    },
    Enabled {
        place: Place,
        enabled: bool,
    },
}

/// What a change took out, to be dropped where code of the user may run.
#[derive(Default)]
pub(super) struct Replaced {
    steps: Vec<Step>,
    operations: Vec<Operation>,
    definition: Option<Arc<Definition>>,
}

impl Replaced {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.operations.is_empty() && self.definition.is_none()
    }
}

impl Planned {
    pub(super) fn new(plans: Vec<Plan>, keys: Arc<Keys>, definition: Arc<Definition>) -> Self {
        Planned { plans, keys, hold: Hold::Whole(definition), disabled: HashMap::new() }
    }

    /// The name of the node of a step.
    #[cold]
    pub(super) fn label(&self, plan: u32, index: usize) -> String {
        match &self.hold {
            Hold::Whole(definition) => definition.label(self.keys[plan as usize][index]),
            Hold::Parts(parts) => parts[plan as usize][index].1.clone(),
        }
    }

    /// Applies changes. No launch runs.
    pub(super) fn apply(&mut self, changes: Vec<Change>, replaced: &mut Replaced) {
        for change in changes {
            match change {
                Change::Step { place, step, operation, label } => {
                    let old = std::mem::replace(self.step(place), step);
                    replaced.steps.push(old);
                    self.keep(place, operation, label, replaced);
                }
                Change::Test { place, test, limit, operation, label } => {
                    if let Step::Conditional(conditional) = self.step(place) {
                        (conditional.test, conditional.limit) = (test, limit);
                    }
                    self.keep(place, operation, label, replaced);
                }
                Change::Enabled { place, enabled } => {
                    let slot = &mut self.plans[place.0 as usize].steps[place.1 as usize];
                    if enabled {
                        if let Some(step) = self.disabled.remove(&place) {
                            *slot = step;
                        }
                    } else {
                        self.disabled.insert(place, std::mem::replace(slot, Step::Nothing));
                    }
                }
            }
        }
    }

    /// The step of a node, also where it is disabled.
    fn step(&mut self, place: Place) -> &mut Step {
        match self.disabled.get_mut(&place) {
            Some(step) => step,
            None => &mut self.plans[place.0 as usize].steps[place.1 as usize],
        }
    }

    fn keep(&mut self, place: Place, operation: Operation, label: String, replaced: &mut Replaced) {
        if let Hold::Whole(definition) = &self.hold {
            let part = |&key: &NodeKey| (definition.node(key).operation().clone(), definition.label(key));
            let parts = self.keys.iter().map(|keys| keys.iter().map(part).collect()).collect();
            if let Hold::Whole(definition) = std::mem::replace(&mut self.hold, Hold::Parts(parts)) {
                replaced.definition = Some(definition);
            }
        }
        if let Hold::Parts(parts) = &mut self.hold {
            let part = &mut parts[place.0 as usize][place.1 as usize];
            let (old, _) = std::mem::replace(part, (operation, label));
            replaced.operations.push(old);
        }
    }
}

/// Where the step of each node is, and the number of the event of each event node.
pub(super) struct Places {
    pub(super) steps: HashMap<NodeKey, Place>,
    events: HashMap<Place, u32>,
}

impl Places {
    pub(super) fn new(keys: &Keys, events: &[(Place, u32)]) -> Self {
        let plans = (0..).zip(keys);
        let steps =
            plans.flat_map(|(plan, keys)| keys.iter().zip(0..).map(move |(&key, at)| (key, (plan, at))));
        Places { steps: steps.collect(), events: events.iter().copied().collect() }
    }

    /// Prepares the changes that bring these nodes to what the definition says, and notes the events that the graph then
    /// uses. On failure `events` is of no use any more, and all else is as before.
    pub(super) fn prepare(
        &mut self,
        definition: &Definition,
        changed: &[NodeKey],
        addresses: &Addresses,
        root: u32,
        events: &mut Events,
    ) -> Result<Vec<Change>> {
        let mut changes = Vec::with_capacity(changed.len());
        let mut event_numbers = Vec::new();
        for &key in changed {
            // Nodes without work have no step, and nothing of them can change.
            let Some(&place) = self.steps.get(&key) else {
                continue;
            };
            let (operation, label) = (definition.node(key).operation().clone(), definition.label(key));
            if let Operation::Conditional(conditional) = &operation {
                let test = PlannedTest::new(&conditional.test, addresses);
                changes.push(Change::Test { place, test, limit: conditional.limit, operation, label });
                continue;
            }
            let exactly_once = place.0 == root;
            let old_event = self.events.get(&place).copied();
            let step = match &operation {
                Operation::EventRecord(event) => events.record(event, exactly_once).map(|number| {
                    old_event.into_iter().for_each(|old| events.forget_record(old, exactly_once));
                    event_numbers.push((place, number));
                    Step::Record(number)
                }),
                Operation::EventWait(event) => events.wait(event).map(|number| {
                    old_event.into_iter().for_each(|old| events.forget_wait(old));
                    event_numbers.push((place, number));
                    Step::Wait(number)
                }),
                operation => prepare(operation, addresses).map(Step::Run),
            };
            let step = step.map_err(|error| error.at_node(label.as_str()))?;
            changes.push(Change::Step { place, step, operation, label });
        }
        self.events.extend(event_numbers);
        Ok(changes)
    }
}
