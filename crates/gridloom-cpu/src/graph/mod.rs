//! Executables: definitions prepared for replay.
//!
//! | module | subject |
//! |---|---|
//! | `memory`, `arena` | the memory of alloc nodes, and the plan of which share addresses |
//! | `plan` | the steps of a launch, and the tasks that they form |
//! | `choice` | the choice between one thread and several |
//! | `replay` | running a plan |
//! | `recorder` | when each step of a launch ran, for profiles |
//! | `turns` | the order of launches |
//! | `events` | the recordings that launches make and wait for |
//! | `update` | changing single nodes of an executable |

mod arena;
mod choice;
mod events;
mod memory;
mod plan;
mod recorder;
mod replay;
mod turns;
mod update;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use gridloom_core::backend::{self, Allocation, Stream};
use gridloom_core::executable::{ConditionalReport, InstantiateOptions, MemoryUse, Report};
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::lower::Flattener;
use gridloom_core::memory::MeteredBytes;
use gridloom_core::op::Operation;
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::cancel::{CancelSource, CancelToken};
use crate::device::Shared;
use crate::operation::contain;
use crate::stream::{CpuStream, Work};
use events::{Events, LaunchEvent};
use memory::AllocNodeMemory;
use plan::{Plan, Planner, Step};
use recorder::{LaunchRecorder, NoRecorder, Recorder};
use replay::Replay;
use turns::Turns;
use update::{Keys, Planned, Replaced, StepChange, StepId, StepMap};

/// The state that an executable and its launches in flight share.
pub(crate) struct Inner {
    device: Arc<Shared>,
    /// The plans. The running launch holds the lock.
    planned: Mutex<Planned>,
    /// The number of the root's plan.
    root: u32,
    keys: Arc<Keys>,
    /// The steps of event nodes, with the numbers of their events when the plan was made.
    event_steps: Vec<(StepId, u32)>,
    front: Mutex<Front>,
    /// The memory of alloc nodes. Launches in flight use it, so it lives as long as they do.
    memory: AllocNodeMemory,
    memory_use: MemoryUse,
    _metered: MeteredBytes,
    conditions: Box<[AtomicU32]>,
    conditionals: HashMap<NodeKey, u32>,
    /// The passes of each conditional in the running launch. `finished_passes` holds those of
    /// the latest finished launch.
    passes: Box<[AtomicU64]>,
    finished_passes: Mutex<Box<[u64]>>,
    failure: Mutex<Option<Error>>,
    turns: Turns,
    report: Report,
}

/// The state for the next launch, while others may run.
struct Front {
    /// The number of launches enqueued so far.
    given: u64,
    /// The events that the graph uses.
    events: Arc<Events>,
    /// Cancels launches in flight.
    cancel: CancelSource,
    /// Changes that no launch has taken yet.
    changes: Vec<StepChange>,
    /// The step of each node, and the event of each event node. Built at the first change.
    steps: Option<StepMap>,
}

/// A launch of an executable on a stream.
pub(crate) struct Launch {
    inner: Arc<Inner>,
    turn: u64,
    events: Arc<Events>,
    recordings: Box<[LaunchEvent]>,
    /// Set when the launches of the executable are cancelled.
    cancel: CancelToken,
    /// The changes to apply. They are taken when the launch runs.
    changes: Mutex<Vec<StepChange>>,
    /// Set for the launch of a profile.
    recorder: Option<Arc<LaunchRecorder>>,
    /// Whether it waits for its turn and runs nothing.
    is_empty: bool,
}

impl Launch {
    /// Runs the launch, after all earlier launches of the same executable. `stream` is the token of
    /// its stream.
    pub(crate) fn run(&self, stream: &CancelToken) -> Result<()> {
        let inner = &*self.inner;
        inner.turns.wait_for(self.turn);
        let mut planned = inner.planned.lock();
        let mut replaced = Replaced::default();
        // Nothing unwinds from here: others wait for the turn and the recordings of this launch.
        let outcome = contain(|| {
            planned.apply(std::mem::take(&mut self.changes.lock()), &mut replaced);
            if self.is_empty {
                return Ok(());
            }
            let Some(recorder) = &self.recorder else {
                return self.replay(&planned, stream, &NoRecorder);
            };
            recorder.begin(&planned.plans);
            let outcome = self.replay(&planned, stream, &**recorder);
            recorder.finish();
            outcome
        });
        for recording in &self.recordings {
            recording.end();
        }
        if !inner.passes.is_empty() {
            let mut finished = inner.finished_passes.lock();
            for (finished, passes) in finished.iter_mut().zip(&inner.passes) {
                *finished = passes.load(Ordering::Relaxed);
            }
        }
        if let Err(error) = &outcome {
            *inner.failure.lock() = Some(error.clone());
        }
        self.end(planned, replaced);
        outcome
    }

    /// Runs the plans from the start.
    fn replay<R: Recorder>(&self, planned: &Planned, stream: &CancelToken, recorder: &R) -> Result<()> {
        let inner = &*self.inner;
        for (condition, &default) in inner.conditions.iter().zip(planned.defaults()) {
            condition.store(default, Ordering::Relaxed);
        }
        for passes in &inner.passes {
            passes.store(0, Ordering::Relaxed);
        }
        let replay = Replay {
            recorder,
            device: &inner.device,
            planned,
            conditions: &inner.conditions,
            passes: &inner.passes,
            events: &self.events,
            recordings: &self.recordings,
            cancel: [self.cancel.flag(), stream.flag()],
            nodes: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        replay.run_all(inner.root);
        replay.failure.into_inner().map_or(Ok(()), Err)
    }

    /// Passes the turn to the next launch. If there is none, pending changes are applied now, so
    /// that what they replace is not held any longer.
    fn end(&self, mut planned: MutexGuard<'_, Planned>, mut replaced: Replaced) {
        let mut front = self.inner.front.lock();
        if front.given == self.turn + 1 {
            planned.apply(std::mem::take(&mut front.changes), &mut replaced);
        }
        drop(planned);
        self.inner.turns.finish(self.turn);
        drop(front);
        if !replaced.is_empty() {
            self.inner.device.hand_over(replaced);
        }
    }

    /// Returns the state of the executable if this launch was the last to hold it.
    pub(crate) fn into_last(self) -> Option<Inner> {
        Arc::into_inner(self.inner)
    }
}

/// A graph prepared for the CPU device.
pub(crate) struct CpuExecutable {
    /// Everything is shared with the launches.
    inner: Arc<Inner>,
}

impl CpuExecutable {
    pub(crate) fn new(
        device: Arc<Shared>,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Self> {
        let memory = AllocNodeMemory::allocate(&device, definition)?;
        let mut planner = Planner {
            device: &device,
            definition,
            addresses: &memory.addresses,
            flattener: Flattener::new(definition),
            events: Events::default(),
            plans: Vec::new(),
            keys: Vec::new(),
            conditionals: Vec::new(),
            depth: 0,
        };
        let root = planner.plan(definition.root())?;
        let Planner { events, plans, keys, conditionals, .. } = planner;
        let keys = Arc::new(keys);
        let mut defaults = vec![0; definition.condition_bound()];
        for (key, condition) in definition.conditions() {
            defaults[key.index()] = condition.default_value().unwrap_or(0);
        }
        let plan_bytes: u64 = plans.iter().map(Plan::bytes).sum();
        let overhead = plan_bytes + (8 * defaults.len() + 16 * conditionals.len()) as u64;
        let inner = Inner {
            report: report(definition, &conditionals, options),
            memory_use: MemoryUse::new(memory.bytes, overhead),
            _metered: device.graph_memory.hold(memory.bytes),
            conditions: defaults.iter().map(|_| AtomicU32::new(0)).collect(),
            passes: conditionals.iter().map(|_| AtomicU64::new(0)).collect(),
            finished_passes: Mutex::new(conditionals.iter().map(|_| 0).collect()),
            conditionals: conditionals.into_iter().zip(0..).collect(),
            event_steps: event_steps(&plans),
            planned: Mutex::new(Planned::new(plans, keys.clone(), defaults, definition.clone())),
            root,
            keys,
            front: Mutex::new(Front {
                given: 0,
                events: Arc::new(events),
                cancel: CancelSource::default(),
                changes: Vec::new(),
                steps: None,
            }),
            memory,
            failure: Mutex::new(None),
            turns: Turns::default(),
            device,
        };
        Ok(CpuExecutable { inner: Arc::new(inner) })
    }

    /// Enqueues a launch, which records its steps if there is a recorder.
    #[inline]
    fn enqueue(&self, stream: &Arc<dyn Stream>, recorder: Option<Arc<LaunchRecorder>>) -> Result<()> {
        let inner = &self.inner;
        let Some(stream) = stream.as_any().downcast_ref::<CpuStream>() else {
            return Err(Error::new(ErrorKind::WrongDevice, "the stream is not one of the CPU device"));
        };
        // Everything that can fail comes first, because waiters for an event or a turn rely on the
        // launch to run.
        stream.start()?;
        let (launch, events) = {
            let mut front = inner.front.lock();
            let turn = front.given;
            front.given += 1;
            let changes = Mutex::new(std::mem::take(&mut front.changes));
            let (events, recordings) = (front.events.clone(), front.events.begin());
            let cancel = front.cancel.token();
            let launch = Launch {
                inner: inner.clone(),
                turn,
                events: events.clone(),
                recordings,
                cancel,
                changes,
                recorder,
                is_empty: false,
            };
            (launch, events)
        };
        let recordings: Vec<_> = launch.recordings.iter().map(LaunchEvent::recording).collect();
        stream.push_and(Work::Graph(launch), || events.publish(&recordings));
        Ok(())
    }
}

/// Returns the steps of event nodes, with the numbers of their events.
fn event_steps(plans: &[Plan]) -> Vec<(StepId, u32)> {
    let mut steps = Vec::new();
    for (number, plan) in (0..).zip(plans) {
        for (index, step) in (0..).zip(&plan.steps) {
            if let Step::Record(event) | Step::Wait(event) = step {
                steps.push(((number, index), *event));
            }
        }
    }
    steps
}

fn report(definition: &Definition, conditionals: &[NodeKey], options: &InstantiateOptions) -> Report {
    let mut report = Report::default();
    let runs_here =
        |&node| ConditionalReport::new(node, definition.label(node), true, "runs on the CPU device itself");
    report.conditionals = conditionals.iter().map(runs_here).collect();
    if options.node_priority {
        report.notes.push(
            "the CPU device runs nodes as they become ready; priorities of kernels have no effect".to_owned(),
        );
    }
    report
}

impl backend::ExecutableStatus for Inner {
    fn take_error(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    fn report(&self) -> Report {
        self.report.clone()
    }

    fn memory(&self) -> MemoryUse {
        self.memory_use
    }
}

impl backend::Executable for CpuExecutable {
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.enqueue(stream, None)
    }

    fn records(&self) -> bool {
        true
    }

    fn launch_recorded(
        &mut self,
        stream: &Arc<dyn Stream>,
        max_runs: usize,
    ) -> Result<backend::TakeRecording> {
        let recorder = Arc::new(LaunchRecorder::new(&self.inner.keys, max_runs));
        self.enqueue(stream, Some(recorder.clone()))?;
        Ok(Box::new(move || Ok(recorder.take())))
    }

    fn follow_launches(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        let Some(stream) = stream.as_any().downcast_ref::<CpuStream>() else {
            return Err(Error::new(ErrorKind::WrongDevice, "the stream is not one of the CPU device"));
        };
        stream.start()?;
        let launch = {
            let mut front = self.inner.front.lock();
            let turn = front.given;
            front.given += 1;
            Launch {
                inner: self.inner.clone(),
                turn,
                events: front.events.clone(),
                recordings: Box::default(),
                cancel: front.cancel.token(),
                changes: Mutex::new(std::mem::take(&mut front.changes)),
                recorder: None,
                is_empty: true,
            }
        };
        stream.push_and(Work::Graph(launch), || ());
        Ok(())
    }

    fn upload(&mut self, _: &Arc<dyn Stream>) -> Result<()> {
        // Instantiation has prepared everything.
        Ok(())
    }

    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>> {
        match self.inner.memory.outliving.get(&alloc) {
            Some(memory) => Ok(memory.clone()),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("the memory of alloc node {alloc:?} is freed inside the graph"),
            )),
        }
    }

    fn passes(&mut self, conditional: NodeKey) -> Result<backend::Passes> {
        match self.inner.conditionals.get(&conditional) {
            Some(&number) => {
                let passes = self.inner.finished_passes.lock()[number as usize];
                Ok(Box::new(move || Ok(passes)))
            }
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("node {conditional:?} is not a conditional"),
            )),
        }
    }

    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()> {
        let (addresses, root) = (&self.inner.memory.addresses, self.inner.root);
        self.change(|steps, events| {
            let mut changes = steps.prepare(definition, replaced, addresses, root, events)?;
            changes.extend(defaults.iter().map(|&condition| StepChange::default_of(definition, condition)));
            Ok(changes)
        })
    }

    fn set_enabled(&mut self, _: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        self.change(|steps, _| {
            let step = steps.step(node);
            Ok(step.map(|step| StepChange::Enabled { at: step, enabled }).into_iter().collect())
        })
    }

    fn canceller(&self) -> Option<backend::Cancel> {
        let inner = self.inner.clone();
        Some(Arc::new(move || inner.front.lock().cancel.cancel()))
    }

    fn status(&self) -> Arc<dyn backend::ExecutableStatus> {
        self.inner.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, _: &Arc<Definition>) {
        // Plans have their own operations, and launches in flight hold the plans.
    }
}

impl fmt::Debug for CpuExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches = self.inner.front.lock().given;
        write!(f, "CpuExecutable({} bytes of plans, {launches} launches)", self.inner.memory_use.overhead)
    }
}
