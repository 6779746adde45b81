//! The trait of executables, and what it passes to the core.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::{Allocation, Stream};
use crate::error::{Result, bail};
use crate::executable::{MemoryUse, Report};
use crate::graph::{ConditionKey, Definition, Graph, NodeKey};
use crate::op::{KernelOp, Operation};
use crate::profile::Recording;

/// A function that cancels the unfinished launches of an executable that the host can reach. It may
/// be called at any time from any thread, even while a call on the executable waits. It does not
/// wait itself.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

/// A function that returns the number of passes of a conditional. It may wait for the device,
/// and is called while nothing is locked.
pub type Passes = Box<dyn FnOnce() -> Result<u64> + Send>;

/// A function that returns the recording of a finished launch.
pub type TakeRecording = Box<dyn FnOnce() -> Result<Recording> + Send>;

/// What can be asked of an executable while another thread launches or changes it.
///
/// Calls may come from any thread, including callbacks of the device. So no method waits for the
/// device, or for a lock that a thread holds while it waits for the device.
pub trait ExecutableStatus: Send + Sync {
    /// Returns the error of the latest failed launch, once.
    fn take_error(&self) -> Option<crate::Error>;
    /// Returns how each conditional runs, with remarks on the lowering.
    fn report(&self) -> Report;
    /// Returns the memory that the executable holds.
    fn memory(&self) -> MemoryUse;
}

/// A graph that can be launched. Calls arrive one at a time.
pub trait Executable: Send + Debug {
    /// Enqueues the whole graph. Launches of one executable run one after the other, on whichever
    /// streams they are.
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// Returns whether [`launch_recorded`](Executable::launch_recorded) works.
    fn records(&self) -> bool {
        false
    }
    /// Launches like [`launch`](Executable::launch), and records when each node runs. At most
    /// `max_runs` runs of each node are kept one by one. Returns a function for the recording. The
    /// core calls it after it has waited for the stream, while nothing is locked.
    fn launch_recorded(&mut self, _stream: &Arc<dyn Stream>, _max_runs: usize) -> Result<TakeRecording> {
        bail!(NotSupported, "this device does not record its launches")
    }
    /// Returns the stream of the latest launch, if an executable that does not
    /// [record](Executable::records) was launched. All earlier launches end before that one.
    fn latest_stream(&self) -> Option<Arc<dyn Stream>> {
        None
    }
    /// Makes a stream wait for the launches so far, if [`latest_stream`](Executable::latest_stream)
    /// knows none because the launches of an executable wait for each other by themselves.
    fn follow_launches(&mut self, _stream: &Arc<dyn Stream>) -> Result<()> {
        Ok(())
    }
    /// Returns whether the core calls [`adapt`](Executable::adapt) before each launch. The core
    /// asks once, after instantiation.
    fn adapts(&self) -> bool {
        false
    }
    /// Replaces the instantiated form of the graph before a launch on this stream, if the backend
    /// has a better one by now, for example an optimized one. `current` returns the definition with
    /// all changes so far. If anything fails, the executable keeps its present form.
    fn adapt(&mut self, _stream: &Arc<dyn Stream>, _current: &mut dyn FnMut() -> Arc<Definition>) {}
    /// Prepares the first launch ahead of time.
    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// Returns the memory that the latest launch allocated for an alloc node that nothing in the
    /// graph frees. Launches in flight keep it alive, even after the executable is gone. The core
    /// tracks whether it is freed.
    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>>;
    /// Returns a function for the number of passes of a loop in the latest finished launch, or
    /// 0 or 1 for other conditionals. A conditional that ran several times in the launch has those
    /// of its last execution. Fails if they were not counted.
    fn passes(&mut self, conditional: NodeKey) -> Result<Passes>;
    /// Returns the function that cancels the launches, or `None` if the host cannot reach any of
    /// them. The core calls this once, after instantiation.
    fn canceller(&self) -> Option<Cancel> {
        None
    }
    /// Returns what can be asked at any time. The core calls this once, after instantiation, so the
    /// answers follow later changes.
    fn status(&self) -> Arc<dyn ExecutableStatus>;
    /// Returns the graph that runs, if an optimiser gave the graph another form. `definition` is
    /// the graph as it was written, with all changes so far.
    fn optimized_graph(&self, _definition: &Definition) -> Option<Graph> {
        None
    }
    /// Takes over the operations of these nodes from the definition, all or none. `replaced` holds
    /// the previous operations. Launches in flight continue with those, so what they use must stay
    /// alive until the launches end. A node that was changed several times is listed as often. The
    /// topology is unchanged. `defaults` lists the conditions whose default changed as well.
    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()>;
    /// Prepares a kernel node for [`set_arguments`](Executable::set_arguments) under this number.
    /// Returns whether that is possible.
    fn prepare(&mut self, _number: usize, _node: NodeKey, _launch: &KernelOp) -> bool {
        false
    }
    /// Sets the argument bytes of prepared kernel nodes, by their numbers. Nothing else about the
    /// launches changes, and launches in flight keep their values. Returns `false`, and changes
    /// nothing, if that is not possible; [`update`](Executable::update) follows then. After a
    /// failure, any of the nodes may have changed; [`put_back`](Executable::put_back) and
    /// [`update`](Executable::update) follow.
    fn set_arguments(&mut self, _arguments: &[(usize, &[u8])]) -> Result<bool> {
        Ok(false)
    }
    /// Keeps memory alive for the launches in flight. No argument refers to it any more.
    fn keep(&mut self, _memory: &[&Arc<dyn Allocation>]) {}
    /// Resets kernel nodes to the definition before the next launch. A failed
    /// [`set_arguments`](Executable::set_arguments) may have changed them.
    fn put_back(&mut self, _definition: &Definition, _nodes: &[NodeKey]) {}
    /// Enables or disables a kernel, copy or fill from the next launch on.
    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()>;
    /// Returns the handle with which kernels launch the graph, if the executable was made with
    /// [`InstantiateOptions::device_launch`](crate::executable::InstantiateOptions::device_launch).
    fn device_handle(&self) -> Result<u64> {
        bail!(
            InvalidState,
            "the executable was not made for launches from kernels; instantiate with InstantiateOptions::device_launch"
        )
    }
    /// Returns the object as `Any`, so that a backend can recognize its own. An optimiser returns
    /// the object of the backend.
    fn as_any(&self) -> &dyn Any;
    /// Receives the final definition. This is the last call. Nobody else keeps the definition, so
    /// what launches in flight use of it must stay alive until they end.
    fn retire(&mut self, definition: &Arc<Definition>);
}
