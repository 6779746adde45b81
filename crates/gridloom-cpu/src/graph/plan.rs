//! The replay plan: the work of a launch as lists of prepared operations.
//!
//! A plan is one list of steps in topological order. One thread can always run it from front to
//! back. Chains of nodes are adjacent and form tasks. If there is more than one task, several
//! threads can run the plan.

use std::collections::HashMap;

use gridloom_core::graph::{ConditionKey, Definition, GraphKey, NodeKey};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Error, ErrorKind, Result};

use super::choice::Choice;
use super::events::Events;
use super::flatten::{Flat, WaitTable};
use crate::device::Shared;
use crate::operation::{self, Names, Prepared};
use crate::pool::{Dag, Edges};

/// The work of one node.
pub(super) enum Step {
    /// Nothing, because the node is disabled.
    Nothing,
    Run(Prepared),
    /// Records the event with this number.
    Record(u32),
    /// Waits for the event with this number.
    Wait(u32),
    Conditional(Box<Conditional>),
}

/// A conditional node with the plans of its bodies.
pub(super) struct Conditional {
    /// The number of the node among the conditionals of the executable.
    pub(super) number: u32,
    pub(super) form: ConditionalForm,
    pub(super) test: PlannedTest,
    pub(super) test_first: bool,
    pub(super) max_passes: Option<u64>,
    /// The numbers of the plans of its bodies.
    pub(super) bodies: Box<[u32]>,
}

/// The value that decides.
#[derive(Clone, Copy)]
pub(super) enum PlannedTest {
    /// The number of a condition.
    Condition(u32),
    /// The address of an aligned 32-bit value.
    Value(u64),
    Count(u64),
}

/// The plan of one graph: the root, or a body.
pub(super) struct Plan {
    pub(super) steps: Box<[Step]>,
    pub(super) tasks: Option<Box<Tasks>>,
}

/// The tasks of a plan for several threads.
pub(super) struct Tasks {
    /// The start of each task's steps, and the end of the last task.
    pub(super) starts: Box<[u32]>,
    pub(super) dag: Dag,
    pub(super) choice: Choice,
}

/// The addresses of alloc nodes.
pub(super) type Addresses = HashMap<NodeKey, u64>;

impl Names for Addresses {
    fn address(&self, alloc: NodeKey) -> u64 {
        self[&alloc]
    }

    fn handle(&self, condition: ConditionKey) -> u64 {
        crate::kernel::condition_handle(condition.index() as u32)
    }
}

/// Builds the plans of a definition.
pub(super) struct Planner<'a> {
    pub(super) device: &'a Shared,
    pub(super) definition: &'a Definition,
    pub(super) addresses: &'a Addresses,
    pub(super) wait_table: WaitTable,
    pub(super) events: Events,
    /// The plans built so far. The root's plan comes last.
    pub(super) plans: Vec<Plan>,
    /// The node of each step of each plan.
    pub(super) keys: Vec<Box<[NodeKey]>>,
    /// The conditional nodes in the order of discovery, outer ones first.
    pub(super) conditionals: Vec<NodeKey>,
    /// The number of conditionals around the graph that is being planned.
    pub(super) depth: usize,
}

impl Planner<'_> {
    /// Builds the plan of a graph and of the bodies inside it. Returns its number.
    pub(super) fn plan(&mut self, graph: GraphKey) -> Result<u32> {
        let flat = Flat::new(self.definition, graph, &mut self.wait_table);
        let task_of = chains(&flat);
        let tasks = task_of.last_new;
        let (plan, keys) = if tasks <= 1 || self.device.pool.threads() == 1 {
            let keys: Vec<NodeKey> = flat.nodes.iter().copied().flatten().collect();
            (Plan { steps: self.steps(&keys)?, tasks: None }, keys)
        } else {
            let (starts, keys) = in_task_order(&flat, &task_of);
            let steps = self.steps(&keys)?;
            let dag = Dag::new(task_edges(&flat, &task_of), self.device.pool.threads());
            let choice = Choice::new(estimate(&self.plans, &steps), tasks);
            let tasks = Tasks { starts: starts.into(), dag, choice };
            (Plan { steps, tasks: Some(Box::new(tasks)) }, keys)
        };
        self.plans.push(plan);
        self.keys.push(keys.into());
        Ok(self.plans.len() as u32 - 1)
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
            // In a body a node may run any number of times.
            Operation::EventRecord(event) => Step::Record(self.events.record(event, self.depth == 0)?),
            Operation::EventWait(event) => Step::Wait(self.events.wait(event)?),
            Operation::Conditional(op) => Step::Conditional(Box::new(self.conditional(key, op)?)),
            operation => Step::Run(prepare(operation, self.addresses)?),
        })
    }

    fn conditional(&mut self, key: NodeKey, op: &ConditionalOp) -> Result<Conditional> {
        let number = self.conditionals.len() as u32;
        self.conditionals.push(key);
        self.depth += 1;
        let bodies: Result<Vec<u32>> = op.bodies.iter().map(|&body| self.plan(body)).collect();
        self.depth -= 1;
        Ok(Conditional {
            number,
            form: op.form,
            test: PlannedTest::new(&op.test, self.addresses),
            test_first: op.test_first,
            max_passes: op.max_passes,
            bodies: bodies?.into(),
        })
    }
}

impl PlannedTest {
    pub(super) fn new(test: &Test, addresses: &Addresses) -> Self {
        match test {
            Test::Condition(condition) => PlannedTest::Condition(condition.index() as u32),
            Test::Value(region) => PlannedTest::Value(operation::address(region, addresses)),
            Test::Count(count) => PlannedTest::Count(*count),
        }
    }
}

/// Prepares an operation that is neither an event operation nor a conditional.
pub(super) fn prepare(operation: &Operation, addresses: &Addresses) -> Result<Prepared> {
    Ok(match operation {
        Operation::Kernel(op) => Prepared::kernel(op, addresses)?,
        Operation::Memset(op) => Prepared::memset(op, addresses),
        Operation::Memcpy(op) => Prepared::memcpy(op, addresses),
        Operation::Callback(op) => Prepared::callback(op),
        Operation::Opaque(_) => {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "an opaque graph, captured on another device from code that Gridloom does not know; only that device can run it",
            ));
        }
        other => unreachable!("{} nodes have no work to prepare", other.kind().name()),
    })
}

/// Returns the approximate time of these steps in nanoseconds.
fn estimate(plans: &[Plan], steps: &[Step]) -> u64 {
    let step = |step: &Step| match step {
        Step::Nothing => 0,
        Step::Run(prepared) => prepared.estimate(),
        Step::Record(_) | Step::Wait(_) => 50,
        Step::Conditional(conditional) => {
            // The number of iterations is unknown. A few are assumed.
            let passes = if conditional.form == ConditionalForm::While { 8 } else { 1 };
            let bodies = conditional.bodies.iter().map(|&body| estimate(plans, &plans[body as usize].steps));
            bodies.max().unwrap_or(0).saturating_mul(passes)
        }
    };
    steps.iter().map(step).fold(0, u64::saturating_add)
}

impl Plan {
    /// Returns the approximate size of the plan in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let own = self.steps.len() * (size_of::<Step>() + size_of::<NodeKey>());
        let tasks = self.tasks.as_ref().map_or(0, |tasks| size_of_val(&*tasks.starts) + tasks.dag.bytes());
        (own + tasks) as u64
    }
}

/// The task of each node of a flat graph.
struct TaskOf {
    tasks: Vec<u32>,
    /// The number of tasks.
    last_new: usize,
}

/// Makes a task of every chain. In a chain each node is the only successor of the previous one and
/// has no other predecessor. Tasks are numbered by their first nodes. That is also a topological
/// order of the tasks, because an edge between tasks leads from the last node of one to the first
/// node of the other.
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

/// Returns the start of each task, and the nodes with work, task by task.
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

/// Returns the edges between tasks.
fn task_edges(flat: &Flat, task_of: &TaskOf) -> Edges {
    let mut starts = Vec::with_capacity(task_of.last_new + 1);
    let mut predecessors = Vec::with_capacity(flat.predecessors.len());
    for node in 0..flat.len() {
        let task = task_of.tasks[node] as usize;
        // Only the first node of a task is not in the task of its predecessor, and tasks are
        // numbered by it.
        if task == starts.len() {
            starts.push(predecessors.len() as u32);
            predecessors.extend(flat.predecessors(node).iter().map(|&from| task_of.tasks[from as usize]));
        }
    }
    starts.push(predecessors.len() as u32);
    Edges::from_predecessors(&starts, &predecessors)
}
