//! A root graph with all that is inside it: one definition behind one lock.

use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::definition::{Definition, GraphKey, NodeData, NodeKey};
use super::keys::LocalKey;
use crate::backend;
use crate::error::{Result, bail};
use crate::executable::ExecutableId;
use crate::op::Operation;
use crate::speed::CowDefinition;

/// What a new node comes after.
#[derive(Clone, Copy)]
pub(super) enum After<'a> {
    /// These nodes of this graph, which may be none.
    All(GraphKey, &'a [NodeKey]),
    /// This node, in its graph.
    One(&'a NodeKey),
}

impl After<'_> {
    pub(super) fn nodes(&self) -> &[NodeKey] {
        match self {
            After::All(_, nodes) => nodes,
            After::One(node) => std::slice::from_ref(node),
        }
    }
}

/// Who changes a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Whoever has a handle. Refused while a capture records the graph.
    Handle,
    /// The capture that records it.
    Capture,
}

/// A root graph with everything inside it.
pub(crate) struct Hierarchy {
    pub(crate) device: Arc<dyn backend::Device>,
    /// The number of the definition, which all its keys have.
    pub(super) number: u32,
    /// The executable whose nodes these are, where the graph was made from one.
    pub(crate) executable: Option<ExecutableId>,
    state: Mutex<State>,
}

struct State {
    definition: CowDefinition,
    /// The graphs that captures record now: the root, bodies, or none, as in most hierarchies.
    recorded: SmallVec<[GraphKey; 1]>,
}

impl State {
    /// Refuses to have anybody but the capture write a graph that one records.
    #[inline]
    fn check_writer(
        &self,
        writer: Writer,
        graph: impl FnOnce(&Definition) -> Option<GraphKey>,
    ) -> Result<()> {
        if self.recorded.is_empty() || writer == Writer::Capture {
            return Ok(());
        }
        self.check_recorded(graph(&self.definition))
    }

    #[cold]
    fn check_recorded(&self, graph: Option<GraphKey>) -> Result<()> {
        if graph.is_some_and(|graph| self.recorded.contains(&graph)) {
            bail!(
                InvalidState,
                "a capture records this graph, and it alone can change it until it ends; record the operation, or change the graph afterwards"
            );
        }
        Ok(())
    }
}

impl Hierarchy {
    #[inline(always)]
    pub(super) fn new(device: &Arc<dyn backend::Device>, definition: CowDefinition) -> Arc<Self> {
        Self::from_executable(device, definition, None)
    }

    /// A hierarchy with the nodes of an executable.
    #[inline(always)]
    pub(super) fn from_executable(
        device: &Arc<dyn backend::Device>,
        definition: CowDefinition,
        executable: Option<ExecutableId>,
    ) -> Arc<Self> {
        let number = definition.nodes.owner();
        let state = Mutex::new(State { definition, recorded: SmallVec::new() });
        Arc::new(Hierarchy { device: Arc::clone(device), number, executable, state })
    }

    /// The definition as it is now.
    pub(crate) fn snapshot(&self) -> Arc<Definition> {
        self.state.lock().definition.share()
    }

    /// Reads the definition under the lock. `read` must not call back into the graph.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Definition) -> T) -> T {
        read(&self.state.lock().definition)
    }

    /// Changes what adds no work to a graph and takes none away: names, bounds of loops, and conditions that
    /// nothing uses yet. See [`write`](Self::write).
    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut Definition) -> T) -> T {
        edit(self.state.lock().definition.get_mut())
    }

    /// Changes a graph. What `edit` returns is dropped by the caller, after the lock is released.
    ///
    /// `edit` borrows what it puts into the definition and takes it only once nothing can fail any more: what it owned
    /// it would drop under the lock, and the drop of a user's closure may come back into the graph.
    pub(crate) fn write<T>(
        &self,
        writer: Writer,
        graph: GraphKey,
        edit: impl FnOnce(&mut Definition) -> Result<T>,
    ) -> Result<T> {
        self.write_found(writer, |_| Some(graph), edit)
    }

    /// Changes a graph and the graphs inside it.
    pub(crate) fn write_all_inside<T>(
        &self,
        graph: GraphKey,
        edit: impl FnOnce(&mut Definition) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.state.lock();
        for &recorded in &state.recorded {
            if state.definition.encloses(graph, recorded) {
                state.check_recorded(Some(recorded))?;
            }
        }
        edit(state.definition.get_mut())
    }

    /// Changes the graph of a node.
    pub(crate) fn write_at<T>(
        &self,
        node: NodeKey,
        edit: impl FnOnce(&mut Definition) -> Result<T>,
    ) -> Result<T> {
        self.write_found(Writer::Handle, |definition| Some(definition.get_node(node)?.graph()), edit)
    }

    #[inline]
    fn write_found<T>(
        &self,
        writer: Writer,
        graph: impl FnOnce(&Definition) -> Option<GraphKey>,
        edit: impl FnOnce(&mut Definition) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.state.lock();
        state.check_writer(writer, graph)?;
        edit(state.definition.get_mut())
    }

    /// Lets a capture alone write a graph, until [`end_recording`](Self::end_recording).
    pub(crate) fn begin_recording(&self, graph: GraphKey) {
        self.state.lock().recorded.push(graph);
    }

    /// Lets everybody write a graph again.
    pub(crate) fn end_recording(&self, graph: GraphKey) {
        self.state.lock().recorded.retain(|recorded| *recorded != graph);
    }

    /// Adds a node after others. A failure leaves the operation where it is, so that the caller chooses when its drop, which may run a user's code, takes place.
    pub(super) fn add(
        &self,
        writer: Writer,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        let graph = |definition: &Definition| match after {
            After::All(graph, _) => Some(graph),
            After::One(node) => Some(definition.get_node(*node)?.graph()),
        };
        self.write_found(writer, graph, |definition| definition.add(&*self.device, after, operation))
    }

    /// The same for a capture that alone has the hierarchy, and so need not lock it.
    pub(super) fn add_alone(
        &mut self,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        self.state.get_mut().definition.get_mut().add(&*self.device, after, operation)
    }
}
