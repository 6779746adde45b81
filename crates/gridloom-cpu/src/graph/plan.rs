//! The replay plan: what a launch does, as lists of prepared operations.
//!
//! A plan is one list of steps in an order that respects every edge, so that running it from front to back on one thread is
//! always right. Chains of nodes lie next to each other and form tasks; where there is more than one task, the plan can
//! also be run by several threads.

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

/// What one node does.
pub(super) enum Step {
    /// Nothing, since the node is disabled.
    Nothing,
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
    pub(super) max_passes: Option<u64>,
    /// The numbers of the plans of its bodies.
    pub(super) bodies: Box<[u32]>,
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

/// The plan of one graph: the root, or a body.
pub(super) struct Plan {
    pub(super) steps: Box<[Step]>,
    pub(super) tasks: Option<Box<Tasks>>,
}

/// How the steps of a plan are shared between threads.
pub(super) struct Tasks {
    /// Where the steps of each task start, and one past the end of the last.
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

/// Makes the plans of a definition.
pub(super) struct Planner<'a> {
    pub(super) device: &'a Shared,
    pub(super) definition: &'a Definition,
    pub(super) addresses: &'a Addresses,
    pub(super) wait_table: WaitTable,
    pub(super) events: Events,
    /// The plans made so far. That of the root comes last.
    pub(super) plans: Vec<Plan>,
    /// The node of each step of each plan.
    pub(super) keys: Vec<Box<[NodeKey]>>,
    /// The conditional nodes in the order they are met, outer ones first.
    pub(super) conditionals: Vec<NodeKey>,
    /// How many conditionals there are around what is planned now.
    pub(super) depth: usize,
}

impl Planner<'_> {
    /// Makes the plan of a graph and of the bodies inside it, and returns its number.
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
            // In a body a node may run often, or never.
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

/// Prepares an operation that is neither about events nor a conditional.
pub(super) fn prepare(operation: &Operation, addresses: &Addresses) -> Result<Prepared> {
    Ok(match operation {
        Operation::Kernel(op) => Prepared::kernel(op, addresses)?,
        Operation::Memset(op) => Prepared::memset(op, addresses),
        Operation::Memcpy(op) => Prepared::memcpy(op, addresses),
        Operation::Callback(op) => Prepared::callback(op),
        Operation::Opaque(_) => {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "an opaque graph of another device, captured there from code that Gridloom does not know; only that device can run it",
            ));
        }
        other => unreachable!("{} nodes have no work to prepare", other.kind().name()),
    })
}

/// About how long these steps take, in nanoseconds.
fn estimate(plans: &[Plan], steps: &[Step]) -> u64 {
    let step = |step: &Step| match step {
        Step::Nothing => 0,
        Step::Run(prepared) => prepared.estimate(),
        Step::Record(_) | Step::Wait(_) => 50,
        Step::Conditional(conditional) => {
            // The passes of a loop are not known; some are assumed.
            let passes = if conditional.form == ConditionalForm::While { 8 } else { 1 };
            let bodies = conditional.bodies.iter().map(|&body| estimate(plans, &plans[body as usize].steps));
            bodies.max().unwrap_or(0).saturating_mul(passes)
        }
    };
    steps.iter().map(step).fold(0, u64::saturating_add)
}

impl Plan {
    /// Bytes it takes, about.
    pub(super) fn bytes(&self) -> u64 {
        let own = self.steps.len() * (size_of::<Step>() + size_of::<NodeKey>());
        let tasks = self.tasks.as_ref().map_or(0, |tasks| size_of_val(&*tasks.starts) + tasks.dag.bytes());
        (own + tasks) as u64
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
