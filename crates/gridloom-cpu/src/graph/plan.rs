//! The replay plan: the work of a launch as lists of prepared operations.
//!
//! A plan is one list of steps in topological order. One thread can always run it from front to
//! back. Chains of nodes are adjacent and form tasks. If there is more than one task, several
//! threads can run the plan.

use std::collections::HashMap;

use gridloom_core::Result;
use gridloom_core::graph::{ConditionKey, Definition, GraphKey, NodeKey};
use gridloom_core::lower::{ConditionalRule, FlatGraph, Flattener, Locate, Location};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};

use super::choice::Choice;
use super::events::Events;
use crate::device::Shared;
use crate::operation::Prepared;
use crate::pool::{Dag, Edges};

/// The work of one node.
pub(super) enum Step {
    /// Nothing, because the node is disabled or has no work.
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
    pub(super) rule: ConditionalRule,
    pub(super) test: PlannedTest,
    /// Whether it is a loop.
    pub(super) repeats: bool,
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
    /// None. The rule of the conditional has the count.
    Count,
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

/// The memory of alloc nodes.
#[derive(Default)]
pub(super) struct Addresses(pub(super) HashMap<NodeKey, Location>);

impl Locate for Addresses {
    fn alloc_node(&self, alloc: NodeKey) -> Option<Location> {
        self.0.get(&alloc).copied()
    }

    fn condition(&self, condition: ConditionKey) -> Option<u64> {
        Some(crate::kernel::condition_handle(condition.index() as u32))
    }
}

/// Builds the plans of a definition.
pub(super) struct Planner<'a> {
    pub(super) device: &'a Shared,
    pub(super) definition: &'a Definition,
    pub(super) addresses: &'a Addresses,
    pub(super) flattener: Flattener<'a>,
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
        let flat = self.flattener.flatten(graph);
        let task_of = chains(&flat);
        let tasks = task_of.last_new;
        let (plan, keys) = if tasks <= 1 || self.device.pool.threads() == 1 {
            let keys: Vec<NodeKey> = flat.nodes().collect();
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
            operation => Step::of(operation, self.addresses)?,
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
            rule: ConditionalRule::new(op),
            test: PlannedTest::new(&op.test, self.addresses)?,
            repeats: op.form == ConditionalForm::While,
            bodies: bodies?.into(),
        })
    }
}

impl PlannedTest {
    pub(super) fn new(test: &Test, addresses: &Addresses) -> Result<Self> {
        Ok(match test {
            Test::Condition(condition) => PlannedTest::Condition(condition.index() as u32),
            Test::Value(region) => PlannedTest::Value(addresses.locate(region)?.address),
            Test::Count(_) => PlannedTest::Count,
        })
    }
}

impl Step {
    /// Returns the step of an operation that is neither an event operation nor a conditional.
    pub(super) fn of(operation: &Operation, addresses: &Addresses) -> Result<Self> {
        Ok(Prepared::new(operation, addresses)?.map_or(Step::Nothing, Step::Run))
    }
}

/// Returns the approximate time of these steps in nanoseconds.
fn estimate(plans: &[Plan], steps: &[Step]) -> u64 {
    let step = |step: &Step| match step {
        Step::Nothing => 0,
        Step::Run(prepared) => prepared.estimate(),
        Step::Record(_) | Step::Wait(_) => 50,
        Step::Conditional(conditional) => {
            // The number of passes is unknown. A few are assumed.
            let passes = if conditional.repeats { 8 } else { 1 };
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
fn chains(flat: &FlatGraph) -> TaskOf {
    let mut successors = vec![0u32; flat.len()];
    flat.edges().iter().for_each(|edge| successors[edge.step as usize] += 1);
    let mut tasks = Vec::with_capacity(flat.len());
    let mut next = 0;
    for node in 0..flat.len() {
        let task = match flat.predecessors(node) {
            [before] if successors[before.step as usize] == 1 => tasks[before.step as usize],
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
fn in_task_order(flat: &FlatGraph, task_of: &TaskOf) -> (Vec<u32>, Vec<NodeKey>) {
    let mut starts = vec![0u32; task_of.last_new + 1];
    let work = || {
        let steps = flat.steps().iter().zip(&task_of.tasks).filter(|(step, _)| !step.is_join);
        steps.map(|(step, &task)| (task, step.origin))
    };
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
fn task_edges(flat: &FlatGraph, task_of: &TaskOf) -> Edges {
    let mut starts = Vec::with_capacity(task_of.last_new + 1);
    let mut predecessors = Vec::with_capacity(flat.edges().len());
    for node in 0..flat.len() {
        let task = task_of.tasks[node] as usize;
        // Only the first node of a task is not in the task of its predecessor, and tasks are
        // numbered by it.
        if task == starts.len() {
            starts.push(predecessors.len() as u32);
            let from = flat.predecessors(node).iter().map(|edge| task_of.tasks[edge.step as usize]);
            predecessors.extend(from);
        }
    }
    starts.push(predecessors.len() as u32);
    Edges::from_predecessors(&starts, &predecessors)
}
