//! The replay plan: what a launch does, as lists of prepared operations.
//!
//! A plan is one list of steps in an order that respects every edge, so that running it from front to back on one thread is
//! always right. Chains of nodes lie next to each other and form tasks; where there is more than one task, the plan can
//! also be run by several threads.

use std::collections::HashMap;
use std::sync::Arc;

use gridloom_core::graph::{ConditionKey, Definition, GraphKey, NodeKey};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Result, backend};

use super::choice::Choice;
use super::events::EventUse;
use super::flatten::{Flat, Places};
use crate::device::Shared;
use crate::operation::{self, Names, Prepared};
use crate::pool::{Dag, Edges};

/// What one node does.
pub(super) enum Step {
    Run(Prepared),
    /// Records the event of this number.
    Record(u32),
    /// Waits for the event of this number.
    Wait(u32),
    Conditional(Box<Conditional>),
}

/// A conditional node with the plans of its bodies.
pub(super) struct Conditional {
    /// Its number among the conditionals of the executable.
    pub(super) number: u32,
    pub(super) form: ConditionalForm,
    pub(super) test: PlannedTest,
    pub(super) test_first: bool,
    pub(super) limit: Option<u64>,
    pub(super) bodies: Box<[Plan]>,
}

/// What decides.
#[derive(Clone, Copy)]
pub(super) enum PlannedTest {
    /// The number of a condition.
    Condition(u32),
    /// The address of an aligned 32-bit value.
    Value(u64),
    Count(u64),
}

/// The plan of one graph.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Box<[Step]>,
    /// The node of each step, for errors.
    pub(super) keys: Box<[NodeKey]>,
    pub(super) tasks: Option<Box<Tasks>>,
}

/// How the steps of a plan are shared between threads.
pub(super) struct Tasks {
    /// Where the steps of each task start, and one past the end of the last.
    pub(super) starts: Box<[u32]>,
    pub(super) dag: Dag,
    pub(super) choice: Choice,
}

/// Makes the plans of a definition.
pub(super) struct Planner<'a> {
    pub(super) device: &'a Shared,
    pub(super) definition: &'a Definition,
    /// The addresses of alloc nodes.
    pub(super) addresses: &'a HashMap<NodeKey, u64>,
    pub(super) places: Places,
    pub(super) events: Vec<EventUse>,
    /// The number of each event in `events`.
    pub(super) event_numbers: HashMap<*const (), u32>,
    /// The conditional nodes in the order they are met, outer ones first.
    pub(super) conditionals: Vec<NodeKey>,
    /// How many conditionals there are around what is planned now.
    pub(super) depth: usize,
}

impl Names for Planner<'_> {
    fn address(&self, alloc: NodeKey) -> u64 {
        self.addresses[&alloc]
    }

    fn handle(&self, condition: ConditionKey) -> u64 {
        crate::kernel::condition_handle(condition.index() as u32)
    }
}

impl Planner<'_> {
    pub(super) fn plan(&mut self, graph: GraphKey) -> Result<Plan> {
        let flat = Flat::new(self.definition, graph, &mut self.places);
        let task_of = chains(&flat);
        let tasks = task_of.last_new;
        if tasks <= 1 || self.device.pool.threads() == 1 {
            let keys: Vec<NodeKey> = flat.nodes.iter().copied().flatten().collect();
            return Ok(Plan { steps: self.steps(&keys)?, keys: keys.into(), tasks: None });
        }
        let (starts, keys) = in_task_order(&flat, &task_of);
        let steps = self.steps(&keys)?;
        let estimate = steps.iter().map(Step::estimate).fold(0, u64::saturating_add);
        let dag = Dag::new(task_edges(&flat, &task_of), self.device.pool.threads());
        let choice = Choice::new(estimate, tasks);
        let tasks = Tasks { starts: starts.into(), dag, choice };
        Ok(Plan { steps, keys: keys.into(), tasks: Some(Box::new(tasks)) })
    }

    fn steps(&mut self, keys: &[NodeKey]) -> Result<Box<[Step]>> {
        let mut steps = Vec::with_capacity(keys.len());
        for &key in keys {
            let step = self.step(key).map_err(|error| error.at_node(self.definition.label(key)))?;
            steps.push(step);
        }
        Ok(steps.into())
    }

    fn step(&mut self, key: NodeKey) -> Result<Step> {
        let definition = self.definition;
        Ok(match definition.node(key).operation() {
            Operation::Kernel(op) => Step::Run(Prepared::kernel(op, self)?),
            Operation::Memset(op) => Step::Run(Prepared::memset(op, self)),
            Operation::Memcpy(op) => Step::Run(Prepared::memcpy(op, self)),
            Operation::Callback(op) => Step::Run(Prepared::callback(op)),
            Operation::EventRecord(event) => Step::Record(self.event(event, true)?),
            Operation::EventWait(event) => Step::Wait(self.event(event, false)?),
            Operation::Conditional(op) => Step::Conditional(Box::new(self.conditional(key, op)?)),
            other => unreachable!("{} nodes have no work and no step", other.kind().name()),
        })
    }

    fn event(&mut self, event: &Arc<dyn backend::Event>, records: bool) -> Result<u32> {
        crate::event::own(event)?;
        let next = self.events.len() as u32;
        let number = *self.event_numbers.entry(Arc::as_ptr(event).cast()).or_insert(next);
        if number == next {
            self.events.push(EventUse::new(event.clone()));
        }
        if records {
            // In a body a node may run often, or never.
            self.events[number as usize].add_record(self.depth == 0);
        }
        Ok(number)
    }

    fn conditional(&mut self, key: NodeKey, op: &ConditionalOp) -> Result<Conditional> {
        let number = self.conditionals.len() as u32;
        self.conditionals.push(key);
        let test = match &op.test {
            Test::Condition(condition) => PlannedTest::Condition(condition.index() as u32),
            Test::Value(region) => PlannedTest::Value(operation::address(region, self)),
            Test::Count(count) => PlannedTest::Count(*count),
        };
        self.depth += 1;
        let bodies: Result<Vec<Plan>> = op.bodies.iter().map(|&body| self.plan(body)).collect();
        self.depth -= 1;
        Ok(Conditional {
            number,
            form: op.form,
            test,
            test_first: op.test_first,
            limit: op.limit,
            bodies: bodies?.into(),
        })
    }
}

impl Step {
    /// About how long it takes, in nanoseconds.
    fn estimate(&self) -> u64 {
        match self {
            Step::Run(prepared) => prepared.estimate(),
            Step::Record(_) | Step::Wait(_) => 50,
            Step::Conditional(conditional) => {
                // The passes of a loop are not known; some are assumed.
                let passes = if conditional.form == ConditionalForm::While { 8 } else { 1 };
                let bodies = conditional.bodies.iter().map(Plan::estimate);
                bodies.max().unwrap_or(0).saturating_mul(passes)
            }
        }
    }
}

impl Plan {
    fn estimate(&self) -> u64 {
        self.steps.iter().map(Step::estimate).fold(0, u64::saturating_add)
    }

    /// Bytes it takes, about.
    pub(super) fn bytes(&self) -> u64 {
        let own = size_of_val(&*self.steps) + size_of_val(&*self.keys);
        let tasks = self.tasks.as_ref().map_or(0, |tasks| size_of_val(&*tasks.starts) + tasks.dag.bytes());
        let bodies = self.steps.iter().filter_map(|step| match step {
            Step::Conditional(conditional) => Some(conditional.bodies.iter().map(Plan::bytes).sum::<u64>()),
            _ => None,
        });
        (own + tasks) as u64 + bodies.sum::<u64>()
    }
}

/// Which task each node of a flat graph belongs to.
struct TaskOf {
    tasks: Vec<u32>,
    /// How many tasks there are.
    last_new: usize,
}

/// Makes a task of every chain: nodes of which each is the only successor of the one before, and has no other
/// predecessor. Tasks are numbered by their first nodes, which is a topological order of them too: an edge between tasks leads from
/// the last node of one to the first of the other.
fn chains(flat: &Flat) -> TaskOf {
    let mut successors = vec![0u32; flat.len()];
    flat.predecessors.iter().for_each(|&from| successors[from as usize] += 1);
    let mut tasks = Vec::with_capacity(flat.len());
    let mut next = 0;
    for node in 0..flat.len() {
        let task = match flat.predecessors(node) {
            &[before] if successors[before as usize] == 1 => tasks[before as usize],
            _ => {
                next += 1;
                next - 1
            }
        };
        tasks.push(task);
    }
    TaskOf { tasks, last_new: next as usize }
}

/// The nodes with work, task by task, and where each task starts.
fn in_task_order(flat: &Flat, task_of: &TaskOf) -> (Vec<u32>, Vec<NodeKey>) {
    let mut starts = vec![0u32; task_of.last_new + 1];
    let work = || flat.nodes.iter().zip(&task_of.tasks).filter_map(|(key, &task)| Some((task, (*key)?)));
    work().for_each(|(task, _)| starts[task as usize + 1] += 1);
    for task in 0..task_of.last_new {
        starts[task + 1] += starts[task];
    }
    let Some((_, filler)) = work().next() else {
        return (starts, Vec::new());
    };
    let mut keys = vec![filler; starts[task_of.last_new] as usize];
    let mut next = starts.clone();
    for (task, key) in work() {
        let place = &mut next[task as usize];
        keys[*place as usize] = key;
        *place += 1;
    }
    (starts, keys)
}

/// The edges between tasks.
fn task_edges(flat: &Flat, task_of: &TaskOf) -> Edges {
    let mut starts = Vec::with_capacity(task_of.last_new + 1);
    let mut predecessors = Vec::with_capacity(flat.predecessors.len());
    for node in 0..flat.len() {
        let task = task_of.tasks[node] as usize;
        // The first node of a task is the one that is not in the task of its predecessor, and tasks are numbered by it.
        if task == starts.len() {
            starts.push(predecessors.len() as u32);
            predecessors.extend(flat.predecessors(node).iter().map(|&from| task_of.tasks[from as usize]));
        }
    }
    starts.push(predecessors.len() as u32);
    Edges::from_predecessors(&starts, &predecessors)
}
