//! Executables that are optimised while they run.
//!
//! An executable starts with the graph as it was written. Once it has been launched a number of
//! times, it is planned, and the rewritten kernels are made [on another thread](crate::worker).
//! When they are ready, the next launch fills the current operations into the plan and takes the
//! optimised form over. If the graph changed too much for that, it plans the graph again, and finds
//! every kernel in the cache. A change that the optimised form cannot express brings the written
//! form back, so that no change ever waits for a compiler, and the count starts again.
//!
//! Nothing here fails a launch or a change: whatever goes wrong leaves the executable in the form
//! it has, and the report says why.

use std::any::Any;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gridloom_core::backend::{
    Allocation, Cancel, Device, EventOptions, Executable, ExecutableStatus, Passes, Stream, TakeRecording,
};
use gridloom_core::executable::{InstantiateOptions, Report};
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::log;
use gridloom_core::lower::conditionals;
use gridloom_core::op::{FreeTarget, KernelOp, Operation};
use gridloom_core::{Graph, Result};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::executable::{OptimizedExecutable, leaves_memory};
use crate::graph::{Kernels, Profile};
use crate::optimizations::Optimizations;
use crate::status::Status;
use crate::succession::Succession;
use crate::worker::{self, Job, Outcome, Planned, Request};

/// How often the written form may come back before it stays.
const MAX_RETURNS: u32 = 3;

/// What all executables of an optimiser share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) wanted: Optimizations,
    pub(crate) profile: Option<Profile>,
    /// The launches after which kernels are made.
    pub(crate) launches: u32,
}

/// An executable that takes the optimised form over when it is ready.
#[derive(Debug)]
pub(crate) struct AutomaticExecutable {
    device: Arc<dyn Device>,
    options: InstantiateOptions,
    settings: Settings,
    form: Form,
    stage: Stage,
    /// How often the written form came back, or kernels were made in vain.
    returns: u32,
    /// The nodes that the core prepared, by its numbers.
    prepared: Vec<Option<NodeKey>>,
    disabled: FxHashSet<NodeKey>,
    /// `None` until the form changes, if there is nothing to cancel.
    succession: Option<Succession>,
    /// The passes of the latest launch, if another form made it.
    passes: FxHashMap<NodeKey, EarlierPasses>,
    status: Arc<Status>,
    /// Whether a caller has seen the backend's object and may have its handles. The form must then
    /// not change any more.
    is_exposed: AtomicBool,
}

/// The passes of a conditional in a launch that another form made.
#[derive(Clone)]
struct EarlierPasses(Arc<Mutex<Count>>);

enum Count {
    /// The function finds out, once.
    Unknown(Option<Passes>),
    Known(u64),
}

impl EarlierPasses {
    fn new(passes: Passes) -> Self {
        EarlierPasses(Arc::new(Mutex::new(Count::Unknown(Some(passes)))))
    }

    /// Waits for the launch, if nobody did before.
    fn get(&self) -> Result<u64> {
        let mut count = self.0.lock();
        match &mut *count {
            Count::Known(passes) => Ok(*passes),
            Count::Unknown(passes) => {
                let passes = passes.take().map_or(Ok(0), |passes| passes())?;
                *count = Count::Known(passes);
                Ok(passes)
            }
        }
    }
}

impl fmt::Debug for EarlierPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlierPasses")
    }
}

#[derive(Debug)]
enum Form {
    Written(Box<dyn Executable>),
    Optimized(Box<OptimizedExecutable>),
}

impl Form {
    #[inline]
    fn get(&self) -> &dyn Executable {
        match self {
            Form::Written(executable) => &**executable,
            Form::Optimized(executable) => &**executable,
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut dyn Executable {
        match self {
            Form::Written(executable) => &mut **executable,
            Form::Optimized(executable) => &mut **executable,
        }
    }
}

/// How far the optimisation has come.
#[derive(Debug)]
enum Stage {
    /// The number of launches left before kernels are made.
    Counting(u32),
    /// Kernels are being made.
    Making(Job),
    /// The optimised form runs.
    Taken,
    /// The written form stays.
    Never,
}

impl AutomaticExecutable {
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        plain: Box<dyn Executable>,
        options: &InstantiateOptions,
        settings: Settings,
    ) -> Self {
        let status = Arc::new(Status::new(plain.status(), Report::default()));
        status.count(settings.launches);
        AutomaticExecutable {
            device: device.clone(),
            options: InstantiateOptions { upload: None, optimizer: None, ..options.clone() },
            succession: plain.canceller().map(|cancel| Succession::new(Some(cancel))),
            form: Form::Written(plain),
            stage: Stage::Counting(settings.launches),
            settings,
            returns: 0,
            prepared: Vec::new(),
            disabled: FxHashSet::default(),
            passes: FxHashMap::default(),
            status,
            is_exposed: AtomicBool::new(false),
        }
    }

    /// Asks for the kernels of the graph.
    #[cold]
    fn make_kernels(&mut self, definition: &Definition) {
        if let Some(reason) = obstacle(definition) {
            self.give_up(reason.into());
            return;
        }
        // SAFETY: the worker only plans, and runs nothing.
        let outline = Arc::new(unsafe { definition.outline() });
        let job = worker::start(Request {
            device: Arc::downgrade(&self.device),
            outline,
            options: self.options.clone(),
            wanted: self.settings.wanted,
            profile: self.settings.profile,
            disabled: self.disabled.clone(),
        });
        match job {
            Some(job) => {
                self.stage = Stage::Making(job);
                self.status.explain(Some("its kernels are being rewritten".into()));
            }
            None => self.count(self.settings.launches),
        }
    }

    fn count(&mut self, launches: u32) {
        self.stage = Stage::Counting(launches);
        self.status.explain(None);
        self.status.count(launches);
    }

    /// Stays with the written form, for this reason.
    fn give_up(&mut self, reason: String) {
        self.stage = Stage::Never;
        self.status.explain(Some(reason));
    }

    /// Takes the optimised form over, for a launch on this stream.
    #[cold]
    fn take_over(&mut self, outcome: Outcome, stream: &Arc<dyn Stream>, definition: &Arc<Definition>) {
        let planned = match outcome {
            Outcome::Ready(planned) => *planned,
            Outcome::NoGain(report) => {
                let reason = report.not_optimized.first();
                let reason = reason.map(|(node, reason)| format!("; {node}: {reason}"));
                self.give_up(format!("there is nothing to gain{}", reason.unwrap_or_default()));
                self.status.explain_nodes(report.nodes);
                return;
            }
            Outcome::Failed(reason) => {
                self.give_up(reason);
                return;
            }
        };
        match self.optimized(planned, stream, definition) {
            Ok(Some(optimized)) => {
                self.stage = Stage::Taken;
                self.replace(Form::Optimized(Box::new(optimized)), definition);
            }
            Ok(None) => self.count_again("the graph changes more often than it can be optimised"),
            Err(error) => {
                log!(debug, %error, "the optimised form of a graph was not taken over");
                self.give_up(error.message().to_owned());
            }
        }
    }

    /// Returns the optimised form, ordered after the launches so far. `None` if the cache lacks
    /// kernels, because the graph changed.
    fn optimized(
        &mut self,
        planned: Planned,
        stream: &Arc<dyn Stream>,
        definition: &Arc<Definition>,
    ) -> Result<Option<OptimizedExecutable>> {
        let profile = self.settings.profile.unwrap_or_else(|| Profile::of(&*self.device));
        let wanted = (self.settings.wanted, profile);
        let place = (&self.device, &self.options);
        let made = match OptimizedExecutable::adopt(planned, definition, place, wanted, &self.disabled)? {
            Some(made) => Some(made),
            None => {
                // SAFETY: it is the current definition of the executable that this belongs to. Its
                // operations were checked for this device.
                let graph = unsafe { Graph::with_definition(&self.device, definition.clone()) };
                let disabled = self.disabled.clone();
                OptimizedExecutable::new(graph, &self.options, wanted, disabled, Kernels::Known)?
            }
        };
        let Some(mut made) = made.filter(OptimizedExecutable::has_effect) else { return Ok(None) };
        for (number, node) in self.prepared.iter().enumerate() {
            let operation = node.and_then(|node| definition.get_node(node)).map(|node| node.operation());
            if let (Some(node), Some(Operation::Kernel(launch))) = (*node, operation) {
                made.prepare(number, node, launch);
            }
        }
        let written = self.form.get_mut();
        match written.latest_stream() {
            Some(last) => {
                let event = self.device.create_event(EventOptions::new().timing(false))?;
                // SAFETY: both streams and the event are of this device.
                unsafe {
                    last.enqueue(&Operation::EventRecord(event.clone()))?;
                    if !Arc::ptr_eq(&last, stream) {
                        stream.enqueue(&Operation::EventWait(event.clone()))?;
                    }
                }
                let succession = self.succession.get_or_insert_with(|| Succession::new(None));
                succession.replace(Some(event), made.canceller());
            }
            None => {
                written.follow_launches(stream)?;
                let end = Succession::end(&*self.device, Some(stream))?;
                let succession = self.succession.get_or_insert_with(|| Succession::new(None));
                succession.replace(end, made.canceller());
            }
        }
        Ok(Some(made))
    }

    /// Puts a form in the place of the current one, which gets the final definition.
    fn replace(&mut self, form: Form, definition: &Arc<Definition>) {
        self.status.replace(form.get().status(), Report::default());
        let mut old = mem::replace(&mut self.form, form);
        old.get_mut().retire(definition);
        // A driver destroys a graph of many nodes more slowly than it instantiates a small one, and
        // a launch may wait for this.
        self.device.drop_later(Box::new(old));
    }

    /// Brings the written form back for a change that the optimised form cannot express.
    #[cold]
    fn write_back(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        disabled: FxHashSet<NodeKey>,
    ) -> Result<()> {
        let definition = Arc::new(definition.clone());
        // SAFETY: it is the definition of the executable that this belongs to. Its operations were
        // checked for this device.
        let mut written = unsafe { self.device.instantiate(&definition, &self.options) }?;
        for &node in &disabled {
            written.set_enabled(&definition, node, false)?;
        }
        let last = self.form.get().latest_stream();
        let end = Succession::end(&*self.device, last.as_ref())?;
        // Where passes are counted, they are those of the latest launch until there is another one.
        let form = self.form.get_mut();
        let passes = |node| Some((node, EarlierPasses::new(form.passes(node).ok()?)));
        self.passes = conditionals(&definition).into_iter().filter_map(passes).collect();
        for (number, node) in self.prepared.iter().enumerate() {
            let operation = node.and_then(|node| definition.get_node(node)).map(|node| node.operation());
            if let (Some(node), Some(Operation::Kernel(launch))) = (*node, operation) {
                written.prepare(number, node, launch);
            }
        }
        if let Form::Optimized(form) = &mut self.form {
            form.keep_unnamed(&definition, replaced);
        }
        let succession = self.succession.get_or_insert_with(|| Succession::new(None));
        succession.replace(end, written.canceller());
        self.disabled = disabled;
        self.replace(Form::Written(written), &definition);
        self.count_again("changes of the graph need other kernels");
        Ok(())
    }

    fn count_again(&mut self, reason: &str) {
        self.returns += 1;
        if self.returns > MAX_RETURNS {
            self.give_up(reason.to_owned());
        } else {
            // Each time it takes longer, because the graph may change again.
            self.count(self.settings.launches.saturating_mul(1 << (2 * self.returns)));
        }
    }
}

/// Returns why a graph is not optimised while it runs, or `None` if it is.
fn obstacle(definition: &Definition) -> Option<&'static str> {
    let frees_others = |operation: &Operation| matches!(operation, Operation::Free(FreeTarget::Outliving(_)));
    if definition.all_nodes().count() < 2 {
        return Some("it has one node");
    }
    if definition.all_nodes().any(|(_, node)| frees_others(node.operation())) || leaves_memory(definition) {
        return Some("it leaves or frees memory that outlives a launch");
    }
    None
}

impl Executable for AutomaticExecutable {
    #[inline]
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        if let Some(succession) = &mut self.succession {
            succession.before_launch(stream)?;
        }
        self.form.get_mut().launch(stream)?;
        if let Some(succession) = &mut self.succession {
            succession.launched();
        }
        if !self.passes.is_empty() {
            self.passes = FxHashMap::default();
        }
        Ok(())
    }

    fn records(&self) -> bool {
        self.form.get().records()
    }

    fn launch_recorded(&mut self, stream: &Arc<dyn Stream>, max_runs: usize) -> Result<TakeRecording> {
        if let Some(succession) = &mut self.succession {
            succession.before_launch(stream)?;
        }
        let take = self.form.get_mut().launch_recorded(stream, max_runs)?;
        if let Some(succession) = &mut self.succession {
            succession.launched();
        }
        self.passes = FxHashMap::default();
        Ok(take)
    }

    fn latest_stream(&self) -> Option<Arc<dyn Stream>> {
        self.form.get().latest_stream()
    }

    fn follow_launches(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        if let Some(succession) = &mut self.succession {
            succession.before_launch(stream)?;
        }
        self.form.get_mut().follow_launches(stream)
    }

    fn adapts(&self) -> bool {
        true
    }

    #[inline]
    fn adapt(&mut self, stream: &Arc<dyn Stream>, current: &mut dyn FnMut() -> Arc<Definition>) {
        if *self.is_exposed.get_mut() && matches!(self.form, Form::Written(_)) {
            if !matches!(self.stage, Stage::Never) {
                self.give_up("handles of the driver were asked for".into());
            }
            return;
        }
        match &mut self.stage {
            Stage::Taken | Stage::Never => {}
            Stage::Counting(0) => self.make_kernels(&current()),
            Stage::Counting(left) => {
                *left -= 1;
                self.status.count(*left);
            }
            Stage::Making(job) => {
                if let Some(outcome) = job.outcome() {
                    self.take_over(outcome, stream, &current());
                }
            }
        }
    }

    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.form.get_mut().upload(stream)
    }

    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>> {
        self.form.get_mut().outliving(alloc)
    }

    fn passes(&mut self, conditional: NodeKey) -> Result<Passes> {
        match self.passes.get(&conditional).cloned() {
            Some(passes) => Ok(Box::new(move || passes.get())),
            None => self.form.get_mut().passes(conditional),
        }
    }

    fn canceller(&self) -> Option<Cancel> {
        self.succession.as_ref().map(Succession::canceller)
    }

    fn status(&self) -> Arc<dyn ExecutableStatus> {
        self.status.clone()
    }

    fn optimized_graph(&self, definition: &Definition) -> Option<Graph> {
        self.form.get().optimized_graph(definition)
    }

    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()> {
        match &mut self.form {
            Form::Written(executable) => executable.update(definition, replaced, defaults),
            Form::Optimized(executable) => match executable.try_update(definition, replaced, defaults)? {
                true => Ok(()),
                false => self.write_back(definition, replaced, self.disabled.clone()),
            },
        }
    }

    fn prepare(&mut self, number: usize, node: NodeKey, launch: &KernelOp) -> bool {
        if self.prepared.len() <= number {
            self.prepared.resize(number + 1, None);
        }
        self.prepared[number] = Some(node);
        self.form.get_mut().prepare(number, node, launch)
    }

    #[inline]
    fn set_arguments(&mut self, arguments: &[(usize, &[u8])]) -> Result<bool> {
        self.form.get_mut().set_arguments(arguments)
    }

    fn keep(&mut self, memory: &[&Arc<dyn Allocation>]) {
        self.form.get_mut().keep(memory);
    }

    fn put_back(&mut self, definition: &Definition, nodes: &[NodeKey]) {
        self.form.get_mut().put_back(definition, nodes);
    }

    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        let mut disabled = self.disabled.clone();
        if enabled {
            disabled.remove(&node);
        } else {
            disabled.insert(node);
        }
        match &mut self.form {
            Form::Written(executable) => executable.set_enabled(definition, node, enabled)?,
            Form::Optimized(executable) => {
                if !executable.try_set_enabled(definition, node, enabled)? {
                    return self.write_back(definition, &[], disabled);
                }
            }
        }
        self.disabled = disabled;
        Ok(())
    }

    fn device_handle(&self) -> Result<u64> {
        self.form.get().device_handle()
    }

    fn as_any(&self) -> &dyn Any {
        self.is_exposed.store(true, Ordering::Relaxed);
        self.form.get().as_any()
    }

    fn retire(&mut self, definition: &Arc<Definition>) {
        self.form.get_mut().retire(definition);
    }
}
