//! A graph ready to be launched, and its launches.

use super::inner::{Inner, Operations};
use super::ready::ReadyNode;
use super::resources::Held;
use super::update::Undo;
use crate::device::Shared;
use crate::event::RawEvent;
use crate::hosted_launch::{self, HostedLaunch, Latest};
use crate::in_flight::Batch;
use crate::release;
use crate::stream::Stream;
use gridloom_core::backend::{self, EventOptions};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions, MemoryUse, Report};
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::log;
use gridloom_core::op::{KernelOp, NodeKind, Operation};
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A compiled graph on a GPU.
pub(super) struct Executable {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: Settings,
    pub(super) state: State,
    status: Arc<Status>,
}

/// The compiled graph, for questions that other threads ask while a launch or a change may wait for
/// the device.
///
/// The lock is held only while a question is answered. Callers get no reference of their own: it
/// might be the last one, and they may run on a thread of the driver, where nothing may be dropped.
struct Status(Mutex<Arc<Inner>>);

impl Status {
    /// Replaces the graph and returns the old one.
    fn set(&self, inner: &Arc<Inner>) -> Arc<Inner> {
        std::mem::replace(&mut *self.0.lock(), Arc::clone(inner))
    }
}

impl backend::ExecutableStatus for Status {
    fn take_error(&self) -> Option<Error> {
        self.0.lock().resources.known_failures()?.take_for_executable()
    }

    fn report(&self) -> Report {
        self.0.lock().report.clone()
    }

    fn memory(&self) -> MemoryUse {
        let (allocations, overhead) = self.0.lock().resources.bytes();
        MemoryUse::new(allocations, overhead)
    }
}

/// The options of an executable, kept for compiling it again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) mode: ConditionalMode,
    pub(super) node_priority: bool,
    pub(super) count_passes: bool,
    /// Whether kernels launch it.
    pub(super) device_launch: bool,
}

pub(super) struct State {
    pub(super) inner: Arc<Inner>,
    /// What the launches of `inner` use now, besides what the operations hold.
    pub(super) held: Held,
    /// Disabled nodes.
    pub(super) disabled: FxHashSet<NodeKey>,
    /// The stream of the latest launch.
    pub(super) last: Option<Arc<Stream>>,
    /// Where that stream holds `inner`.
    kept: Option<Batch>,
    /// The latest hosted launch. The next one comes after it.
    running: Option<Running>,
    /// The latest hosted launch, for cancelling it, if the graph has conditionals.
    hosted: Option<Arc<Latest>>,
    /// What the next launch waits for after the graph was uploaded or compiled again. The driver
    /// orders only launches of one `CUgraphExec`.
    pub(super) barrier: Option<Barrier>,
    /// Nodes that a failed update changed and that are not changed back yet.
    pub(super) undone: Undo,
    /// Nodes of `inner` that are prepared for new arguments, by the numbers that the core gave
    /// them.
    pub(super) ready: Vec<Option<ReadyNode>>,
}

/// A launch that the host drives, or drove.
struct Running {
    launch: Arc<HostedLaunch>,
    /// Whether the driving thread waits for the device. Otherwise it only enqueues, and ends soon.
    waits: bool,
}

/// The end of an upload, or of the launches from before the graph was compiled again.
pub(super) enum Barrier {
    At(RawEvent),
    /// Not recorded yet, because the host still drives a launch, or because a launch failed half
    /// way. The next launch records it.
    ToBeMade,
}

impl Executable {
    pub(super) fn new(
        shared: &Arc<Shared>,
        definition: &Definition,
        options: &InstantiateOptions,
    ) -> Result<Box<Self>> {
        let settings = Settings {
            mode: options.conditional_mode,
            node_priority: options.node_priority,
            count_passes: options.count_passes,
            device_launch: options.device_launch,
        };
        let disabled = FxHashSet::default();
        let (inner, held) = Inner::new(shared, None, definition, &disabled, settings)?;
        warn_of_hosted(&inner.report, settings.mode);
        let hosted = definition.may_have(NodeKind::CONDITIONALS).then(Arc::default);
        let status = Arc::new(Status(Mutex::new(Arc::clone(&inner))));
        Ok(Box::new(Self {
            status,
            shared: Arc::clone(shared),
            settings,
            state: State {
                inner,
                held,
                disabled,
                last: None,
                kept: None,
                running: None,
                hosted,
                barrier: None,
                undone: Undo::new(),
                ready: Vec::new(),
            },
        }))
    }
}

/// Logs one warning if the host has to drive conditionals that nobody asked it to drive.
fn warn_of_hosted(report: &Report, mode: ConditionalMode) {
    if mode != ConditionalMode::Auto {
        return;
    }
    let mut hosted = report.conditionals.iter().filter(|conditional| !conditional.native);
    if let Some(first) = hosted.next() {
        log!(
            warn,
            node = %first.name,
            reason = %first.reason,
            others = hosted.count(),
            "the host drives a conditional, which takes a round trip for each decision; Executable::report lists all of them"
        );
    }
}

impl State {
    /// Hands over to the launches in flight what they use.
    fn retire(&mut self, operations: Operations) {
        let held = std::mem::take(&mut self.held);
        self.inner.retire(held, operations);
    }

    /// Waits until the latest hosted launch has enqueued everything. Its failure stays with its
    /// stream and the executable.
    #[inline]
    pub(super) fn settle(&mut self) {
        if let Some(running) = self.running.take() {
            running.launch.wait();
        }
    }

    /// Returns whether the host still drives the latest launch and may be waiting for the device,
    /// so that settling could take long.
    #[inline]
    pub(super) fn is_held_up(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.waits && !running.launch.is_over())
    }

    /// Returns whether the host drives no launch and nothing is left to be undone, which takes it a
    /// moment at most.
    #[inline]
    pub(super) fn is_at_rest(&mut self) -> bool {
        self.undone.is_empty() && (self.running.is_none() || self.comes_to_rest())
    }

    #[cold]
    fn comes_to_rest(&mut self) -> bool {
        let can = !self.is_held_up();
        if can {
            self.settle();
        }
        can
    }

    /// Marks the end of everything launched so far. The host drives nothing.
    fn mark_end(&self) -> Result<Option<RawEvent>> {
        let Some(stream) = &self.last else { return Ok(None) };
        let event = RawEvent::new(stream.context(), EventOptions::new().timing(false))?;
        event.record(stream.raw())?;
        Ok(Some(event))
    }

    /// Makes a stream wait for launches from before the graph was compiled again.
    fn pass_barrier(&mut self, stream: &Stream) -> Result<()> {
        if matches!(self.barrier, Some(Barrier::ToBeMade)) {
            self.settle();
            self.barrier = self.mark_end()?.map(Barrier::At);
        }
        if let Some(Barrier::At(barrier)) = &self.barrier {
            stream.settle();
            let context = stream.context();
            let _entered = context.enter()?;
            // SAFETY: both handles are alive; 0 is the one flag there is.
            unsafe { context.driver().cu_stream_wait_event(stream.raw(), barrier.raw(), 0) }?;
        }
        // Taken only now: if the wait failed, the next launch still has to wait for the barrier.
        if let Some(Barrier::At(barrier)) = self.barrier.take() {
            stream.keep(barrier);
        }
        Ok(())
    }

    /// Makes the next launch or upload, on whichever stream, come after what this stream was given.
    /// The driver orders uploads after launches, but not launches after uploads on other streams.
    fn come_after(&mut self, stream: &Stream) -> Result<()> {
        let marked = RawEvent::new(stream.context(), EventOptions::new().timing(false))
            .and_then(|event| event.record(stream.raw()).map(|()| event));
        match marked {
            Ok(event) => self.barrier = Some(Barrier::At(event)),
            Err(_) => stream.wait_for_device()?,
        }
        Ok(())
    }

    /// Makes the next wait for the stream report failures on the host. The launch is enqueued by
    /// now: a thread that waited before it would take the report too early.
    fn report_to(&self, stream: &Stream) {
        if self.inner.may_fail {
            stream.report(self.inner.resources.failures());
        }
    }

    /// Notes the stream of the latest launch.
    fn launched_on(&mut self, stream: Arc<Stream>) {
        self.last = Some(stream);
        self.kept = None;
    }

    /// Returns whether a launch is one driver call, with nothing else to do but keep what it uses.
    #[inline]
    fn is_simple(&self) -> bool {
        self.inner.alone.is_some() && self.undone.is_empty() && self.barrier.is_none()
    }

    /// Launches a graph that needs nothing but its one call, on the stream of the latest launch.
    #[inline]
    fn launch_again(&mut self) -> Result<()> {
        let (Some(stream), Some(unit)) = (&self.last, self.inner.alone) else { return Ok(()) };
        stream.settle();
        let launched = self.inner.launch_unit(unit, stream);
        // Done even after a failure, because a part of the launch may be running.
        if !self.kept.is_some_and(|kept| stream.holds(kept)) {
            self.kept = Some(stream.keep_shared(&self.inner));
        }
        if launched.is_err() {
            // What the failed launch came after, the next one has to come after too, on whichever
            // stream.
            self.barrier = Some(Barrier::ToBeMade);
        }
        launched
    }

    /// Launches a program in which the host decides, on a thread of its own.
    fn launch_hosted(&mut self, stream: &Arc<Stream>) -> Result<()> {
        self.settle();
        let reads = self.inner.program.reads();
        // Kernels of the last launch may write conditions until they have run, and the graphs of
        // two launches must not overlap, which on one stream they do not.
        let last = self.last.clone().filter(|last| reads || !Arc::ptr_eq(last, stream));
        let waits = reads || last.is_some();
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(stream));
        let launch = stream.start_hosted(move || {
            hosted_launch::stop_at_exit();
            let waited = last.as_ref().map_or(Ok(()), |last| Ok(last.wait_for_device()?));
            let outcome = waited.and_then(|()| hosted_launch::check_cancelled()).and_then(|()| {
                let outcome = inner.run_hosted(&held);
                // Done even after a failure, because a part of the program may be running.
                held.keep_shared(&inner);
                outcome
            });
            if let Err(error) = outcome {
                inner.resources.failures().put(error);
            }
            // These may be the last references. They are dropped on the release thread, because a
            // user value may wait for this thread when it is dropped.
            release::hand_over(Box::new((inner, held, last)));
        })?;
        if let Some(hosted) = &self.hosted {
            hosted.set(&launch);
        }
        self.running = Some(Running { launch, waits });
        Ok(())
    }
}

impl backend::Executable for Executable {
    fn launch(&mut self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let state = &mut self.state;
        if !state.last.as_ref().is_some_and(|last| ptr::addr_eq(&raw const **last, &raw const **stream)) {
            return self.launch_on(&Stream::keep_from_backend(stream)?);
        }
        if state.is_simple() {
            return state.launch_again();
        }
        let stream = Arc::clone(state.last.as_ref().expect("found above"));
        self.launch_on(&stream)
    }

    fn latest_stream(&self) -> Option<Arc<dyn backend::Stream>> {
        self.state.last.clone().map(|last| last as Arc<dyn backend::Stream>)
    }

    fn upload(&mut self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let stream = Stream::from_backend(&**stream)?;
        let state = &mut self.state;
        state.settle();
        state.pass_barrier(stream)?;
        stream.settle();
        let uploaded = state.inner.upload(stream);
        // Also after a failure: a part of it may be under way.
        stream.keep(Arc::clone(&state.inner));
        state.come_after(stream)?;
        uploaded
    }

    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn backend::Allocation>> {
        match self.state.inner.resources.outliving(alloc) {
            // Launches in flight hold the memory through `inner`.
            Some(memory) => Ok(Arc::clone(memory) as Arc<dyn backend::Allocation>),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                "the memory of this alloc node is freed inside the graph",
            )),
        }
    }

    fn passes(&mut self, conditional: NodeKey) -> Result<backend::Passes> {
        let state = &mut self.state;
        let running = state.running.as_ref().map(|running| Arc::clone(&running.launch));
        let (inner, last) = (Arc::clone(&state.inner), state.last.clone());
        if inner.hosted(conditional).is_none() && inner.resources.counter(conditional).is_none() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "only kernels decide this conditional, so its passes are not counted; instantiate with InstantiateOptions::count_passes",
            ));
        }
        Ok(Box::new(move || {
            if let Some(running) = running {
                running.wait();
            }
            if let Some(hosted) = inner.hosted(conditional) {
                return Ok(hosted.passes.load(Ordering::Relaxed));
            }
            let resources = &inner.resources;
            let Some(counter) = resources.counter(conditional) else { return Ok(0) };
            if let Some(last) = &last {
                last.wait_for_device()?;
            }
            let mut passes = 0u64;
            resources.shared.allocator.copy_now((&raw mut passes) as u64, counter, size_of::<u64>())?;
            Ok(passes)
        }))
    }

    fn canceller(&self) -> Option<backend::Cancel> {
        let hosted = Arc::clone(self.state.hosted.as_ref()?);
        Some(Arc::new(move || hosted.cancel()))
    }

    fn status(&self) -> Arc<dyn backend::ExecutableStatus> {
        Arc::clone(&self.status) as Arc<dyn backend::ExecutableStatus>
    }

    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()> {
        self.take_over(definition, replaced, !defaults.is_empty())
    }

    fn prepare(&mut self, number: usize, node: NodeKey, launch: &KernelOp) -> bool {
        self.state.prepare(number, node, launch)
    }

    fn set_arguments(&mut self, arguments: &[(usize, &[u8])]) -> Result<bool> {
        self.set_ready(arguments)
    }

    fn keep(&mut self, memory: &[&Arc<dyn backend::Allocation>]) {
        self.state.keep_memory(memory);
    }

    fn put_back(&mut self, definition: &Definition, nodes: &[NodeKey]) {
        self.state.leave_undone(definition, nodes);
    }

    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        self.enable(definition, node, enabled)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device_handle(&self) -> Result<u64> {
        match &self.state.inner.units[..] {
            [unit] if self.settings.device_launch => Ok(unit.executable.raw() as u64),
            _ => Err(Error::new(
                ErrorKind::InvalidState,
                "the executable was not made for launches from kernels; instantiate with InstantiateOptions::device_launch",
            )),
        }
    }

    fn retire(&mut self, definition: &Arc<Definition>) {
        self.state.retire(Operations::Definition(Arc::clone(definition)));
    }
}

impl Executable {
    /// Launches the graph on a stream, in the general case.
    fn launch_on(&mut self, stream: &Arc<Stream>) -> Result<()> {
        let state = &mut self.state;
        state.take_back()?;
        state.pass_barrier(stream)?;
        if state.last.is_some() && state.inner.resources.has_outliving() {
            // Memory that outlived the last launch is used again, and whoever used it meanwhile may
            // be on any stream.
            self.shared.hosted_launches.wait_all();
            stream.come_after_everything()?;
        }
        if state.inner.program.is_hosted() {
            state.launch_hosted(stream)?;
            state.report_to(stream);
            state.launched_on(Arc::clone(stream));
            return Ok(());
        }
        stream.settle();
        let launched = state.inner.run(stream);
        // Done even after a failure, because a part of the program may be running.
        let kept = stream.keep_shared(&state.inner);
        state.report_to(stream);
        state.launched_on(Arc::clone(stream));
        state.kept = Some(kept);
        if launched.is_err() {
            // What the failed launch came after, the next one has to come after too, on whichever
            // stream.
            state.barrier = Some(Barrier::ToBeMade);
        }
        launched
    }

    /// Compiles the graph again and replaces the present one, which does `replaced` instead of what
    /// the definition says, and in which `undo` was changed already. `undo` is empty afterwards or,
    /// on failure, unchanged. The disabled nodes are the given ones, or those from before.
    pub(super) fn compile_anew(
        &mut self,
        definition: &Definition,
        (replaced, undo): (&[(NodeKey, Operation)], &mut Undo),
        disabled: Option<&FxHashSet<NodeKey>>,
    ) -> Result<()> {
        let disabled = disabled.unwrap_or(&self.state.disabled);
        let failures = self.state.inner.resources.known_failures().cloned();
        let (inner, held) = Inner::new(&self.shared, failures, definition, disabled, self.settings)?;
        let state = &mut self.state;
        let barrier = if state.is_held_up() {
            Some(Barrier::ToBeMade)
        } else {
            state.settle();
            state.mark_end()?.map(Barrier::At)
        };
        // If nothing was launched since an earlier barrier was set, no stream has waited for that
        // one. A new barrier then marks the same point; without a new one, the earlier one stays.
        state.barrier = barrier.or(state.barrier.take());
        let undo = std::mem::take(undo);
        state.retire(match state.last {
            Some(_) => {
                let both = definition.all_nodes().map(|(_, node)| node.operation());
                let operations = both.chain(replaced.iter().map(|(_, operation)| operation));
                Operations::Apart(operations.cloned().collect(), undo)
            }
            None => Operations::Unused,
        });
        let old = self.status.set(&inner);
        (state.inner, state.held, state.kept) = (inner, held, None);
        drop(old);
        state.undone.clear();
        state.ready.clear();
        Ok(())
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = &self.state;
        f.debug_struct("Executable")
            .field("parts", &state.inner.program.parts.len())
            .field("conditionals", &state.inner.report.conditionals.len())
            .finish_non_exhaustive()
    }
}
