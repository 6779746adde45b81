//! Executables: graphs ready to be launched.

mod changes;
mod current;
mod device_launch;
mod journal;
mod memory_pool;
mod options;
mod profile;
mod report;
mod row;
mod table;
mod update;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use changes::{ArgWriter, Changes, Replaced};
use current::Current;
pub use options::{ConditionalMode, InstantiateOptions, Optimizer};
use parking_lot::{Mutex, MutexGuard};
use profile::AfterProfile;
pub use report::{ConditionalReport, MemoryUse, NodeReport, Report};
use rustc_hash::FxHashSet;
pub use update::ExecutableNode;
pub(crate) use update::check_replaceable;

use crate::backend;
use crate::capture::Capture;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::graph::{
    Definition, Graph, Hierarchy, Keys, Node, NodeData, NodeKey, check_nothing_freed, find_use, lifetimes,
    uses_outliving,
};
use crate::memory::{Claims, OutlivingMemory};
use crate::op::{FreeTarget, NodeKind, NodeKinds, Operation};
use crate::stream::Stream;
use crate::user_code;

struct State {
    /// The definition that the executable was made from, with all updates since.
    current: Current,
    /// The backend's part of the executable.
    backend: Box<dyn backend::Executable>,
    /// The disabled nodes.
    disabled: FxHashSet<NodeKey>,
    /// Memory of the latest launch that nothing has freed yet, with its alloc node.
    outstanding: Vec<(NodeKey, Arc<OutlivingMemory>)>,
    /// Whether a node uses, or once used, memory that another executable left. Each launch then
    /// checks that it was not freed.
    uses_outliving: bool,
    /// Set after a profile that launched a copy of the graph, until the next launch.
    after_profile: Option<Box<AfterProfile>>,
}

impl State {
    /// Lets the backend replace its form of the graph by a better one.
    #[inline]
    fn adapt(&mut self, stream: &Stream) {
        let State { current, backend, .. } = self;
        backend.adapt(stream.backend(), &mut || current.share());
    }
}

/// A number that tells the executables of a process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExecutableId(u64);

impl ExecutableId {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ExecutableId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A graph prepared for launching. It keeps alive what it needs, so the graph may be changed or
/// dropped.
///
/// Launches of one executable never overlap, no matter which threads and streams they come from.
pub struct Executable {
    device: Arc<dyn backend::Device>,
    device_id: backend::DeviceId,
    id: ExecutableId,
    /// The graph that the executable was made from, to recognize its nodes. The reference is weak
    /// because the executable does not need what the graph holds later.
    origin: Weak<Hierarchy>,
    /// The keys of the nodes. Updates change operations but add and remove no nodes.
    nodes: Keys<NodeData>,
    outliving: Vec<NodeKey>,
    /// Whether a launch neither leaves memory allocated nor frees memory of another executable.
    leaves_no_memory: bool,
    /// The nodes that free memory of other executables, with that memory.
    freed_elsewhere: Vec<(NodeKey, Arc<dyn backend::Allocation>)>,
    auto_free: bool,
    node_priority: bool,
    conditional_mode: ConditionalMode,
    /// Whether the backend may replace its form of the graph before a launch.
    adapts: bool,
    /// Outside of the lock, because a launch may hold the lock while it waits.
    cancel: Option<backend::Cancel>,
    /// Outside of the lock for the same reason.
    status: Arc<dyn backend::ExecutableStatus>,
    /// Cancels the launch of a profile that runs a copy of the graph.
    profiled: Mutex<Option<backend::Cancel>>,
    state: Mutex<State>,
}

impl Executable {
    pub(crate) fn new(
        hierarchy: &Arc<Hierarchy>,
        definition: Arc<Definition>,
        outliving: Vec<NodeKey>,
        options: &InstantiateOptions,
    ) -> Result<Self> {
        if let Some(stream) = &options.upload {
            if stream.backend().device() != hierarchy.device.id() {
                bail!(
                    WrongDevice,
                    "the stream to upload on belongs to another device than the graph ({})",
                    hierarchy.device.name()
                );
            }
            refuse_upload(stream)?;
        }
        if options.device_launch {
            device_launch::check(&*hierarchy.device, &definition, &outliving, options)?;
        }
        let freed_elsewhere = freed_elsewhere(&definition);
        let uses_outliving = definition.nodes.iter().any(|(_, node)| uses_outliving(&node.operation));
        if uses_outliving {
            check_nothing_freed(&definition, |_| true)?;
        }
        let device = hierarchy.device.clone();
        // A graph that kernels launch stays as it was written.
        let optimizer = options.optimizer.as_ref().filter(|_| !options.device_launch);
        let mut backend = match optimizer {
            Some(optimizer) if !optimizer.is_automatic() => {
                optimizer.compile(Graph::under_same_keys(&device, definition.clone()), options)?
            }
            _ => {
                // SAFETY: every operation was checked for this device when it was added, and the
                // caller checked the whole definition. Only this executable calls the result, under
                // its lock, with streams of the device and with operations that were checked in the
                // same way. So does an optimiser that takes it.
                let plain = unsafe { device.instantiate(&definition, options) }?;
                match optimizer {
                    Some(optimizer) => optimizer.adaptive(&device, plain, options),
                    None => plain,
                }
            }
        };
        if let Some(stream) = &options.upload {
            backend.upload(stream.backend())?;
        }
        Ok(Executable {
            device_id: device.id(),
            id: ExecutableId::new(),
            device,
            origin: Arc::downgrade(hierarchy),
            nodes: Keys::of(&definition.nodes),
            leaves_no_memory: outliving.is_empty() && freed_elsewhere.is_empty(),
            outliving,
            freed_elsewhere,
            auto_free: options.auto_free_on_launch,
            node_priority: options.node_priority,
            conditional_mode: options.conditional_mode,
            adapts: backend.adapts(),
            cancel: backend.canceller(),
            status: backend.status(),
            profiled: Mutex::new(None),
            state: Mutex::new(State {
                current: Current::new(definition),
                backend,
                disabled: FxHashSet::default(),
                outstanding: Vec::new(),
                uses_outliving,
                after_profile: None,
            }),
        })
    }

    /// Launches the graph on a stream. It runs after the work enqueued there before and before the
    /// work enqueued later.
    ///
    /// On a capturing stream or a capture, the call records a copy of the graph as a child node
    /// instead.
    pub fn launch(&self, target: &impl LaunchTarget) -> Result<()> {
        target.launch_executable(self)
    }

    fn launch_on(&self, stream: &Stream) -> Result<()> {
        self.check_stream(stream)?;
        let mut state = self.state.lock();
        if self.adapts {
            state.adapt(stream);
        }
        self.launch_with(&mut state, stream, profile::launch)
    }

    /// Launches as [`launch`](Executable::launch) does, without locking.
    #[inline]
    pub fn launch_exclusively(&mut self, stream: &Stream) -> Result<()> {
        if !self.leaves_no_memory || stream.is_capturing() {
            return self.launch(stream);
        }
        self.check_stream(stream)?;
        let state = self.state.get_mut();
        if state.uses_outliving || state.after_profile.is_some() {
            return self.launch(stream);
        }
        if self.adapts {
            state.adapt(stream);
        }
        state.backend.launch(stream.backend())
    }

    /// Launches on a stream of the device, with the given call of the backend.
    #[inline]
    fn launch_with<T>(
        &self,
        state: &mut State,
        stream: &Stream,
        launch: impl FnOnce(&mut dyn backend::Executable, &Arc<dyn backend::Stream>) -> Result<T>,
    ) -> Result<T> {
        if state.after_profile.is_some() {
            Self::pass_profile(state, stream)?;
        }
        if let Some((node, _)) = self.freed_elsewhere.iter().find(|(_, memory)| is_freed(&**memory)) {
            return Err(freed_already(state.current.get(), *node));
        }
        if state.uses_outliving {
            self.check_outliving_uses(state)?;
        }
        if self.leaves_no_memory {
            return launch(&mut *state.backend, stream.backend());
        }
        self.check_outstanding(state)?;
        // Until the launch is enqueued, nobody else can free the same memory. A failed launch frees
        // nothing.
        let freed = self.freed_elsewhere.iter().map(|(node, memory)| (*node, memory));
        let claims = Claims::new(freed).map_err(|node| freed_already(state.current.get(), node))?;
        let launched = launch(&mut *state.backend, stream.backend())?;
        claims.free();
        // The new launch takes over the memory that the previous one left.
        state.outstanding.drain(..).for_each(|(_, memory)| memory.free());
        for &key in &self.outliving {
            let memory = OutlivingMemory::new(state.backend.outliving(key)?);
            state.outstanding.push((key, Arc::new(memory)));
        }
        Ok(launched)
    }

    /// Fails if a node uses memory of a launch that was freed since, or that this launch frees
    /// before the node runs. Changes since the instantiation may have given it to the node.
    #[cold]
    fn check_outliving_uses(&self, state: &mut State) -> Result<()> {
        let State { current, disabled, outstanding, .. } = state;
        let definition = current.get();
        let runs = |node| !disabled.contains(&node);
        check_nothing_freed(definition, runs)?;
        let is_own = |memory: &Arc<dyn backend::Allocation>| {
            let address = Arc::as_ptr(memory).cast::<()>();
            outstanding.iter().any(|(_, own)| Arc::as_ptr(own).cast::<()>() == address)
        };
        if self.auto_free
            && let Some(node) = find_use(definition, |node, memory| runs(node) && is_own(memory))
        {
            let message = "uses memory that the previous launch left, which this launch frees first; give the node other memory, or copy what the memory holds before the launch";
            return Err(Error::new(ErrorKind::InvalidHandle, message).at_node(definition.label(node)));
        }
        if self.freed_elsewhere.is_empty() { Ok(()) } else { lifetimes::check_frees_elsewhere(definition) }
    }

    /// Fails if memory of the last launch is still allocated and a launch does not free it.
    fn check_outstanding(&self, state: &mut State) -> Result<()> {
        state.outstanding.retain(|(_, memory)| !memory.is_given_back());
        if self.auto_free || state.outstanding.is_empty() {
            return Ok(());
        }
        let definition = state.current.get();
        let names: Vec<String> = state.outstanding.iter().map(|(key, _)| definition.label(*key)).collect();
        bail!(
            InvalidState,
            "memory of the last launch is still allocated: {}; free it in this graph or another, or instantiate with auto_free_on_launch",
            names.join(", ")
        );
    }

    /// Prepares the first launch on this stream ahead of time.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        refuse_upload(stream)?;
        self.check_stream(stream)?;
        self.state.lock().backend.upload(stream.backend())
    }

    /// Returns the memory of an alloc node that nothing in the graph frees. It is valid from a
    /// launch until it is freed.
    pub fn outliving(&self, alloc: &Node) -> Result<Arc<dyn backend::Allocation>> {
        let key = self.own_key(alloc)?;
        let mut state = self.lock("memory of an executable")?;
        if !self.outliving.contains(&key) {
            bail!(
                InvalidArgument,
                "{} is freed inside the graph or is not an alloc node; only memory that outlives a launch can be read after it",
                state.current.get().label(key)
            );
        }
        match state.outstanding.iter().find(|(outstanding, _)| *outstanding == key) {
            Some((_, memory)) if !memory.is_freed() => Ok(memory.clone()),
            _ => bail!(
                InvalidState,
                "{} has no memory now: the graph was not launched, or the memory was freed since",
                state.current.get().label(key)
            ),
        }
    }

    /// Returns the number of passes of a loop in the latest finished launch. For other
    /// conditionals, returns 1 if a body ran and 0 if not. A conditional inside a loop runs several
    /// times in a launch; the result is that of its last execution.
    ///
    /// Fails if they were not counted. [`InstantiateOptions::count_passes`] says which are.
    pub fn passes(&self, conditional: &Node) -> Result<u64> {
        let key = self.own_key(conditional)?;
        let definition = self.definition_for("passes of a conditional")?;
        if definition.node(key).operation().as_conditional().is_none() {
            bail!(InvalidArgument, "{} is not a conditional", definition.label(key));
        }
        // Reading the count may wait for the device. The lock is not held meanwhile.
        let passes = {
            let mut state = self.state.lock();
            let profiled = state.after_profile.as_ref().and_then(|after| after.passes.get(&key));
            if let Some(&passes) = profiled {
                return Ok(passes);
            }
            state.backend.passes(key)
        };
        passes.and_then(|passes| passes()).map_err(|error| error.at_node(definition.label(key)))
    }

    /// Cancels the unfinished launches of this executable, on all streams.
    ///
    /// Each fails with [`Cancelled`](ErrorKind::Cancelled), as described at [`Stream::cancel`]. The
    /// executable, its streams and the device stay usable. The call does not wait. It may come from
    /// any thread, including a callback of the graph itself.
    pub fn cancel(&self) {
        if let Some(cancel) = &self.cancel {
            cancel();
        }
        let profiled = self.profiled.lock().clone();
        if let Some(cancel) = profiled {
            cancel();
        }
    }

    /// Returns the error of the latest failed launch, once. It never waits.
    pub fn take_error(&self) -> Option<Error> {
        self.status.take_error()
    }

    /// Returns how each conditional runs, and why. It never waits.
    pub fn report(&self) -> Report {
        self.status.report()
    }

    /// Returns the graph in the form that the optimiser gave it, as a graph of its own, or `None`
    /// if the graph runs as it was written. Fails inside callbacks of the device.
    pub fn optimized_graph(&self) -> Result<Option<Graph>> {
        let mut state = self.lock("graph of an executable")?;
        let State { current, backend, .. } = &mut *state;
        Ok(backend.optimized_graph(current.get()))
    }

    /// Returns the memory that the executable holds. It never waits.
    pub fn memory(&self) -> MemoryUse {
        self.status.memory()
    }

    /// Returns the handle with which kernels launch the graph: the `cudaGraphExec_t` for
    /// `cudaGraphLaunch` in device code. Fails unless the executable was made with
    /// [`InstantiateOptions::device_launch`].
    ///
    /// The handle is valid until the executable is dropped or changed. Changes need another upload,
    /// and may need another handle.
    pub fn device_handle(&self) -> Result<u64> {
        self.lock("handle of an executable")?.backend.device_handle()
    }

    /// Reads the backend's part of the executable. `read` must not use the executable. Fails inside
    /// callbacks of the device.
    pub fn with_backend<T>(&self, read: impl FnOnce(&dyn backend::Executable) -> Result<T>) -> Result<T> {
        read(&*self.lock("handle of an executable")?.backend)
    }

    /// Returns the key under which the backend knows a node of this executable.
    pub fn key_of(&self, node: &Node) -> Result<NodeKey> {
        self.own_key(node)
    }

    /// Returns the device that the executable runs on.
    pub fn device(&self) -> &Arc<dyn backend::Device> {
        &self.device
    }

    /// Returns a snapshot of the current definition: the one the executable was made from, with all
    /// updates since. Do not call it inside callbacks of the device: a launch may hold the lock of
    /// the executable while it waits for the callback.
    pub fn definition(&self) -> Arc<Definition> {
        self.state.lock().current.share()
    }

    /// Returns a snapshot of the current definition, for an operation that callbacks of the device
    /// are refused.
    pub(crate) fn definition_for(&self, operation: &str) -> Result<Arc<Definition>> {
        Ok(self.lock(operation)?.current.share())
    }

    /// Returns the current work of the executable as a new graph. Editing that graph does not
    /// affect the executable. The nodes of the graph can be used to name the nodes of this
    /// executable.
    ///
    /// Fails inside callbacks of the device: a thread that launches or changes the executable may
    /// wait for the device, and the device for the callback.
    pub fn graph(&self) -> Result<Graph> {
        let definition = self.definition_for("graph of an executable")?;
        Ok(Graph::from_executable(&self.device, &definition, self.id))
    }

    /// Locks the state for an operation. A thread may hold the lock while it waits for the device,
    /// so callbacks of the device are refused.
    #[inline]
    fn lock(&self, operation: &str) -> Result<MutexGuard<'_, State>> {
        user_code::may_use(self.device_id, operation)?;
        Ok(self.state.lock())
    }

    /// Creates another executable with the current definition of this one. Its nodes have the same
    /// keys.
    pub fn instantiate_again(&self, options: &InstantiateOptions) -> Result<Executable> {
        Graph::under_same_keys(&self.device, self.definition_for("instantiate")?).instantiate_with(options)
    }

    #[inline]
    fn check_stream(&self, stream: &Stream) -> Result<()> {
        user_code::may_use(self.device_id, "launch of an executable")?;
        if stream.device_id() != self.device_id {
            bail!(
                WrongDevice,
                "the stream belongs to another device than the executable ({})",
                self.device.name()
            );
        }
        Ok(())
    }

    /// Returns the key of a node of this executable.
    fn own_key(&self, node: &Node) -> Result<NodeKey> {
        if self.owns(node) { Ok(node.key()) } else { self.key_of_copy(node) }
    }

    /// Returns this executable's key for a node of a graph that [`graph`](Executable::graph)
    /// returned. Fails if the node is not a node of this executable.
    #[cold]
    fn key_of_copy(&self, node: &Node) -> Result<NodeKey> {
        let key = self.nodes.renumbered(node.key());
        if self.is_copy(node) && self.nodes.contains(key) { Ok(key) } else { Err(self.not_own(node)) }
    }

    /// Returns whether a node is in a graph that [`graph`](Executable::graph) returned.
    fn is_copy(&self, node: &Node) -> bool {
        node.hierarchy.executable == Some(self.id)
    }

    /// Returns whether a node was in the graph when this executable was made from it.
    #[inline]
    fn owns(&self, node: &Node) -> bool {
        self.is_from_origin(node) && self.nodes.contains(node.key())
    }

    #[inline]
    fn is_from_origin(&self, node: &Node) -> bool {
        // No other hierarchy can have this address while the weak reference exists.
        Arc::as_ptr(&node.hierarchy) == self.origin.as_ptr()
    }

    /// Returns the error that says why a node is not a node of this executable.
    #[cold]
    fn not_own(&self, node: &Node) -> Error {
        let (kind, why) = if self.is_from_origin(node) || self.is_copy(node) {
            (
                ErrorKind::InvalidHandle,
                "is not in this executable: it was added after the executable was made, or deleted before",
            )
        } else {
            (ErrorKind::WrongGraph, "belongs to another graph than the one this executable was made from")
        };
        Error::new(kind, format!("{} {why}", node.label()))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.backend.retire(&state.current.share());
    }
}

fn is_freed(memory: &dyn backend::Allocation) -> bool {
    memory.outliving().is_some_and(OutlivingMemory::is_freed)
}

#[cold]
fn freed_already(definition: &Definition, node: NodeKey) -> Error {
    let message = "the memory of another executable that this node frees was freed already";
    Error::new(ErrorKind::InvalidState, message).at_node(definition.label(node))
}

/// Returns the nodes that free memory of other executables, with that memory.
fn freed_elsewhere(definition: &Definition) -> Vec<(NodeKey, Arc<dyn backend::Allocation>)> {
    if !definition.may_have(NodeKinds::of(&[NodeKind::Free])) {
        return Vec::new();
    }
    let frees = definition.nodes.iter().filter_map(|(key, node)| {
        let Operation::Free(FreeTarget::Outliving(allocation)) = &node.operation else { return None };
        Some((key, allocation.clone()))
    });
    frees.collect()
}

fn refuse_upload(stream: &Stream) -> Result<()> {
    if stream.is_capturing() {
        bail!(
            InvalidState,
            "an upload on a capturing stream; an upload cannot be recorded, so use another stream, or end the capture first"
        );
    }
    Ok(())
}

/// A target for launches: a stream, or a capture, which records the graph.
pub trait LaunchTarget {
    /// Launches or records the executable.
    fn launch_executable(&self, executable: &Executable) -> Result<()>;
}

impl LaunchTarget for Stream {
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        match self.branch() {
            Some(branch) => branch.embed_executable(executable).map(drop),
            None => executable.launch_on(self),
        }
    }
}

impl LaunchTarget for Capture {
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        self.launch_graph(executable).map(drop)
    }
}

impl<T: LaunchTarget + ?Sized> LaunchTarget for &T {
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        (**self).launch_executable(executable)
    }
}

impl PartialEq for Executable {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Executable {}

impl Hash for Executable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Another thread may hold the lock while it waits for the device.
        let Some(mut state) = self.state.try_lock() else { return f.write_str("Executable(in use)") };
        let definition = state.current.get();
        write!(f, "Executable({} nodes on {})", definition.node_count(definition.root()), self.device.name())
    }
}
