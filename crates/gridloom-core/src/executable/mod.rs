//! Executables: graphs ready to be launched.

mod changes;
mod current;
mod memory_pool;
mod table;
mod update;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use changes::{ArgWriter, Changes, Replaced};
use current::Current;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
pub use update::ExecutableNode;
pub(crate) use update::check_replaceable;

use crate::backend;
use crate::capture::Capture;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::graph::{
    Definition, Graph, Hierarchy, Keys, Node, NodeData, NodeKey, check_nothing_freed, uses_outliving,
};
use crate::memory::{Claims, OutlivingMemory};
use crate::op::{FreeTarget, NodeKind, NodeKinds, Operation};
use crate::stream::Stream;
use crate::user_code;

/// How conditionals are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConditionalMode {
    /// By the device itself where it can, else by the host.
    #[default]
    Auto,
    /// By the device itself, or not at all: instantiation fails and names the node and the reason.
    Native,
    /// By the host, which reads the condition back after each pass.
    Hosted,
}

/// How a graph is compiled.
#[derive(Clone, Default)]
pub struct InstantiateOptions {
    /// Free memory that the graph leaves allocated when it is launched again, rather than refusing the launch.
    pub auto_free_on_launch: bool,
    /// Prepare the first launch on this stream already.
    pub upload: Option<Stream>,
    /// Honour the priorities of kernel nodes.
    pub node_priority: bool,
    /// How conditionals are run.
    pub conditional_mode: ConditionalMode,
    /// Count the passes of every conditional for [`Executable::passes`].
    ///
    /// Where it costs nothing they are counted anyway: on the CPU, by the host, and of conditionals that test a value in memory, count, or have
    /// a limit. What this adds is a node in the bodies of conditionals that a GPU runs by itself and that only kernels decide.
    pub count_passes: bool,
}

impl fmt::Debug for InstantiateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstantiateOptions")
            .field("auto_free_on_launch", &self.auto_free_on_launch)
            .field("upload", &self.upload.is_some())
            .field("node_priority", &self.node_priority)
            .field("conditional_mode", &self.conditional_mode)
            .field("count_passes", &self.count_passes)
            .finish()
    }
}

/// How one conditional node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalReport {
    /// The node.
    pub node: NodeKey,
    /// Its name.
    pub name: String,
    /// Whether the device itself decides.
    pub native: bool,
    /// Why.
    pub reason: String,
}

/// What there is to say about how a graph was lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One entry for each conditional, outermost first.
    pub conditionals: Vec<ConditionalReport>,
    /// Further remarks, for people.
    pub notes: Vec<String>,
}

/// Bytes that an executable holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// For allocations of alloc nodes.
    pub allocations: u64,
    /// For everything else it made for itself: plans, staging, argument buffers.
    pub overhead: u64,
}

struct State {
    /// What it does now: the definition it was made from, with what updates put in place of parts of it.
    current: Current,
    /// The device's part of it.
    backend: Box<dyn backend::Executable>,
    /// Nodes that do nothing.
    disabled: FxHashSet<NodeKey>,
    /// Memory of the latest launch that nothing freed yet, with its alloc node.
    outstanding: Vec<(NodeKey, Arc<OutlivingMemory>)>,
    /// Whether a node uses memory that another executable left, or did once. Each launch then looks whether it was freed.
    uses_outliving: bool,
}

/// Tells the executables of a process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExecutableId(u64);

impl ExecutableId {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ExecutableId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A graph compiled for launching. It keeps all it needs; the graph may be changed or dropped.
///
/// Launches of one executable never overlap each other, from whichever threads and streams they come.
pub struct Executable {
    device: Arc<dyn backend::Device>,
    device_id: backend::DeviceId,
    id: ExecutableId,
    /// Tells whose nodes it knows. Weak, since what the graph came to hold later is none of its business.
    origin: Weak<Hierarchy>,
    /// The nodes it has. Updates change what they do, never which there are.
    nodes: Keys<NodeData>,
    outliving: Vec<NodeKey>,
    /// Whether a launch neither leaves memory allocated nor frees that of others.
    leaves_no_memory: bool,
    /// Free nodes for memory of other executables, and that memory.
    freed_elsewhere: Vec<(NodeKey, Arc<dyn backend::Allocation>)>,
    auto_free: bool,
    /// Beside the lock, which a launch may hold while it waits.
    cancel: Option<backend::Cancel>,
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
                bail!(WrongDevice, "the stream to upload on belongs to another device");
            }
            refuse_upload(stream)?;
        }
        let freed_elsewhere = freed_elsewhere(&definition);
        let uses_outliving = definition.nodes.iter().any(|(_, node)| uses_outliving(&node.operation));
        if uses_outliving {
            check_nothing_freed(&definition, |_| true)?;
        }
        let device = hierarchy.device.clone();
        // SAFETY: every operation was checked for this device when it was added, and the caller checked the whole. The result is called
        // by this executable alone, under its lock, with streams of the device and operations that were checked in the same way.
        let mut backend = unsafe { device.instantiate(&definition, options) }?;
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
            cancel: backend.canceller(),
            state: Mutex::new(State {
                current: Current::new(definition),
                backend,
                disabled: FxHashSet::default(),
                outstanding: Vec::new(),
                uses_outliving,
            }),
        })
    }

    /// Launches the graph on a stream: it runs after what was enqueued there before, and before what comes later.
    ///
    /// On a stream that is capturing, or on a capture, a copy of the graph is recorded as a child node instead.
    pub fn launch(&self, target: &impl LaunchTarget) -> Result<()> {
        target.launch_executable(self)
    }

    fn launch_on(&self, stream: &Stream) -> Result<()> {
        self.check_stream(stream)?;
        self.launch_with(&mut self.state.lock(), stream)
    }

    /// The same as [`launch`](Executable::launch) for whoever has the executable to itself.
    #[inline]
    pub fn launch_exclusively(&mut self, stream: &Stream) -> Result<()> {
        if !self.leaves_no_memory || stream.is_capturing() {
            return self.launch(stream);
        }
        self.check_stream(stream)?;
        let state = self.state.get_mut();
        if state.uses_outliving {
            return self.launch(stream);
        }
        state.backend.launch(stream.backend())
    }

    /// Launches it on a stream of its device.
    fn launch_with(&self, state: &mut State, stream: &Stream) -> Result<()> {
        if let Some((node, _)) = self.freed_elsewhere.iter().find(|(_, memory)| is_freed(&**memory)) {
            return Err(freed_already(state.current.get(), *node));
        }
        if state.uses_outliving {
            let State { current, disabled, .. } = &mut *state;
            check_nothing_freed(current.get(), |node| !disabled.contains(&node))?;
        }
        if self.leaves_no_memory {
            return state.backend.launch(stream.backend());
        }
        state.outstanding.retain(|(_, memory)| !memory.is_given_back());
        if !self.auto_free && !state.outstanding.is_empty() {
            let definition = state.current.get();
            let names: Vec<String> =
                state.outstanding.iter().map(|(key, _)| definition.label(*key)).collect();
            bail!(
                InvalidState,
                "memory of the last launch is still allocated: {}; free it in this graph or another, or instantiate with auto_free_on_launch",
                names.join(", ")
            );
        }
        // From here to the end of the launch nobody else can free the same memory. A launch that fails frees nothing.
        let freed = self.freed_elsewhere.iter().map(|(node, memory)| (*node, memory));
        let claims = Claims::new(freed).map_err(|node| freed_already(state.current.get(), node))?;
        state.backend.launch(stream.backend())?;
        claims.free();
        // What the launch before had left is this one's now.
        state.outstanding.drain(..).for_each(|(_, memory)| memory.free());
        for &key in &self.outliving {
            let memory = OutlivingMemory::new(state.backend.outliving(key)?);
            state.outstanding.push((key, Arc::new(memory)));
        }
        Ok(())
    }

    /// Does ahead, on this stream, what the first launch would otherwise do.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        refuse_upload(stream)?;
        self.check_stream(stream)?;
        self.state.lock().backend.upload(stream.backend())
    }

    /// The memory of an alloc node that nothing in the graph frees: valid from a launch on until it is freed.
    pub fn outliving(&self, alloc: &Node) -> Result<Arc<dyn backend::Allocation>> {
        let key = self.own_key(alloc)?;
        let mut state = self.state.lock();
        if !self.outliving.contains(&key) {
            bail!(
                InvalidArgument,
                "{} is freed inside the graph, or is no alloc node; only memory that outlives a launch can be read after it",
                state.current.get().label(key)
            );
        }
        match state.outstanding.iter().find(|(outstanding, _)| *outstanding == key) {
            Some((_, memory)) if !memory.is_freed() => Ok(memory.clone()),
            _ => bail!(
                InvalidState,
                "{} has no memory now: the graph was not launched, or it was freed since",
                state.current.get().label(key)
            ),
        }
    }

    /// Passes that a loop made in the latest finished launch; 1 or 0 for other conditionals, as a body ran or not.
    ///
    /// An error where they were not counted; [`InstantiateOptions::count_passes`] says which are.
    pub fn passes(&self, conditional: &Node) -> Result<u64> {
        let key = self.own_key(conditional)?;
        let definition = self.definition();
        match definition.node(key).operation() {
            Operation::Conditional(_) => {
                // What is asked may wait for the device, which must not hold up others.
                let passes = self.state.lock().backend.passes(key);
                passes.and_then(|passes| passes()).map_err(|error| error.at_node(definition.label(key)))
            }
            _ => bail!(InvalidArgument, "{} is not a conditional", definition.label(key)),
        }
    }

    /// Cancels the launches of this executable that were enqueued so far, on whichever streams, and have not ended.
    ///
    /// Each fails with [`Cancelled`](ErrorKind::Cancelled), as [`Stream::cancel`] says; the executable, its streams and the
    /// device stay usable. The call waits for nothing, and may come from any thread, or from a callback of the graph itself.
    pub fn cancel(&self) {
        if let Some(cancel) = &self.cancel {
            cancel();
        }
    }

    /// The failure of the latest launch that failed, once.
    pub fn take_error(&self) -> Option<Error> {
        self.state.lock().backend.take_error()
    }

    /// How each conditional runs, and why.
    pub fn report(&self) -> Report {
        self.state.lock().backend.report()
    }

    /// Bytes held by the executable.
    pub fn memory(&self) -> MemoryUse {
        self.state.lock().backend.memory()
    }

    /// The device it runs on.
    pub fn device(&self) -> &Arc<dyn backend::Device> {
        &self.device
    }

    /// What it does now: the definition it was made from, as updates have changed it since.
    pub fn definition(&self) -> Arc<Definition> {
        self.state.lock().current.share()
    }

    /// Returns what it does now, as a graph of its own, with nodes and conditions of its own. Editing that
    /// graph leaves the executable as it is. Its nodes name those of this executable.
    pub fn graph(&self) -> Graph {
        Graph::from_executable(&self.device, &self.definition(), self.id)
    }

    /// Another executable that does what this one does now. Its nodes have the same keys.
    pub fn instantiate_again(&self, options: &InstantiateOptions) -> Result<Executable> {
        Graph::under_same_keys(&self.device, self.definition()).instantiate_with(options)
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

    /// The key of a node, where it is one of this executable's.
    fn own_key(&self, node: &Node) -> Result<NodeKey> {
        if self.owns(node) { Ok(node.key()) } else { self.key_of_copy(node) }
    }

    /// The key of a node of [`graph`](Executable::graph), which is another one there, or why the node is none of
    /// this executable's.
    #[cold]
    fn key_of_copy(&self, node: &Node) -> Result<NodeKey> {
        let key = self.nodes.renumbered(node.key());
        if self.is_copy(node) && self.nodes.contains(key) { Ok(key) } else { Err(self.not_own(node)) }
    }

    /// Whether a node is of a graph that [`graph`](Executable::graph) returned.
    fn is_copy(&self, node: &Node) -> bool {
        node.hierarchy.executable == Some(self.id)
    }

    /// Whether a node is one of the graph that this executable was made from, as that was then.
    #[inline]
    fn owns(&self, node: &Node) -> bool {
        self.is_from_origin(node) && self.nodes.contains(node.key())
    }

    #[inline]
    fn is_from_origin(&self, node: &Node) -> bool {
        // While the weak reference exists no other hierarchy can be at its address.
        Arc::as_ptr(&node.hierarchy) == self.origin.as_ptr()
    }

    /// Why a node is not one of this executable's.
    #[cold]
    fn not_own(&self, node: &Node) -> Error {
        let (kind, why) = if self.is_from_origin(node) || self.is_copy(node) {
            (
                ErrorKind::InvalidHandle,
                "is not in this executable: it was added after, or deleted before, it was made",
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

/// The free nodes for memory of other executables, and that memory.
fn freed_elsewhere(definition: &Definition) -> Vec<(NodeKey, Arc<dyn backend::Allocation>)> {
    if !definition.may_have(NodeKinds::of(&[NodeKind::Free])) {
        return Vec::new();
    }
    let frees = definition.nodes.iter().filter_map(|(key, node)| match &node.operation {
        Operation::Free(FreeTarget::Outliving(allocation)) => Some((key, allocation.clone())),
        _ => None,
    });
    frees.collect()
}

fn refuse_upload(stream: &Stream) -> Result<()> {
    if stream.is_capturing() {
        bail!(
            InvalidState,
            "an upload on a stream that is capturing: it is no work that could be recorded; use another stream, or end the capture first"
        );
    }
    Ok(())
}

/// Where an executable can be launched: on a stream, or on a capture, which records its graph.
pub trait LaunchTarget {
    /// Launches or records it.
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
        write!(
            f,
            "Executable({} nodes on {})",
            self.definition().node_count(self.definition().root()),
            self.device.name()
        )
    }
}
