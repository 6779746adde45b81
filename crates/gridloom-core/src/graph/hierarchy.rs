//! A root graph and everything inside it: one definition behind one lock.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::definition::{Definition, GraphKey, NodeData, NodeKey};
use super::keys::LocalKey;
use crate::backend;
use crate::error::{Result, bail};
use crate::executable::ExecutableId;
use crate::op::Operation;
use crate::speed::CowDefinition;

/// The predecessors of a new node.
#[derive(Clone, Copy)]
pub(super) enum After<'a> {
    /// These nodes of this graph. There may be none.
    All(GraphKey, &'a [NodeKey]),
    /// This node, whose graph gets the new node.
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

/// The writer of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The holder of a handle. Refused while a capture records the graph.
    Handle,
    /// The capture that records the graph.
    Capture,
}

/// A root graph and everything inside it.
pub(crate) struct Hierarchy {
    pub(crate) device: Arc<dyn backend::Device>,
    /// The number of the definition. All its keys carry it.
    pub(super) number: u32,
    /// The executable that the graph was made from, if any.
    pub(crate) executable: Option<ExecutableId>,
    state: Mutex<State>,
}

struct State {
    definition: CowDefinition,
    /// The graphs that captures record at the moment. Most hierarchies have none.
    recorded: SmallVec<[GraphKey; 1]>,
    /// The places of recordings that became edges, until no capture records any more.
    bypassed: FxHashMap<NodeKey, InsertionPoint>,
}

/// A place in a graph: after these nodes. Without nodes it is the start of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsertionPoint {
    pub(crate) graph: GraphKey,
    pub(crate) nodes: SmallVec<[NodeKey; 2]>,
}

impl State {
    /// Refuses a write to a graph under capture, except by the capture itself.
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
                "a capture records this graph, and only the capture can change it until it ends; record the operation, or change the graph afterwards"
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

    /// Creates a hierarchy from the definition of an executable.
    #[inline(always)]
    pub(super) fn from_executable(
        device: &Arc<dyn backend::Device>,
        definition: CowDefinition,
        executable: Option<ExecutableId>,
    ) -> Arc<Self> {
        let number = definition.nodes.owner();
        let state =
            Mutex::new(State { definition, recorded: SmallVec::new(), bypassed: FxHashMap::default() });
        Arc::new(Hierarchy { device: Arc::clone(device), number, executable, state })
    }

    /// Returns a snapshot of the definition.
    pub(crate) fn snapshot(&self) -> Arc<Definition> {
        self.state.lock().definition.share()
    }

    /// Reads the definition under the lock. `read` must not call back into the graph.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Definition) -> T) -> T {
        read(&self.state.lock().definition)
    }

    /// Changes what adds no work to a graph and removes none: names, loop bounds and unused
    /// conditions. A capture does not prevent it. See also [`write`](Self::write).
    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut Definition) -> T) -> T {
        edit(self.state.lock().definition.get_mut())
    }

    /// Changes a graph. The caller drops what `edit` returns, after the lock is released.
    ///
    /// `edit` borrows what it puts into the definition and takes it only when nothing can fail any
    /// more. A value that `edit` owned would be dropped under the lock on failure, and the drop of
    /// a user's closure may call back into the graph.
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

    /// Lets only a capture write the graph, until [`end_recording`](Self::end_recording).
    pub(crate) fn begin_recording(&self, graph: GraphKey) {
        self.state.lock().recorded.push(graph);
    }

    /// Lets handles write the graph again.
    pub(crate) fn end_recording(&self, graph: GraphKey) {
        let mut state = self.state.lock();
        state.recorded.retain(|recorded| *recorded != graph);
        if state.recorded.is_empty() {
            state.bypassed.clear();
        }
    }

    /// Replaces a node that a capture recorded by edges from its predecessors to its successors.
    /// Returns the predecessors. [`place`](Self::place) still finds the node.
    pub(crate) fn bypass(&self, node: NodeKey) -> SmallVec<[NodeKey; 2]> {
        let mut state = self.state.lock();
        let Some(data) = state.definition.get_node(node) else { return SmallVec::new() };
        let graph = data.graph();
        let (nodes, removed) = state.definition.get_mut().bypass_node(node);
        state.bypassed.insert(node, InsertionPoint { graph, nodes: nodes.clone() });
        drop(state);
        drop(removed);
        nodes
    }

    /// Returns the place after a node of this hierarchy, also if the node was
    /// [bypassed](Self::bypass). Returns `None` for any other node.
    pub(crate) fn place(&self, node: NodeKey) -> Option<InsertionPoint> {
        let state = self.state.lock();
        if let Some(data) = state.definition.get_node(node) {
            return Some(InsertionPoint { graph: data.graph(), nodes: SmallVec::from_slice(&[node]) });
        }
        let bypassed = state.bypassed.get(&node)?;
        let mut place = InsertionPoint { graph: bypassed.graph, nodes: SmallVec::new() };
        let mut open = bypassed.nodes.to_vec();
        while let Some(node) = open.pop() {
            match state.bypassed.get(&node) {
                Some(earlier) => open.extend(&earlier.nodes),
                None if place.nodes.contains(&node) => {}
                None => place.nodes.push(node),
            }
        }
        Some(place)
    }

    /// Adds a node. A failure leaves the operation with the caller. Dropping it may run user code,
    /// so the caller chooses when that happens.
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

    /// Adds a node without locking, for a capture that has the only handle.
    pub(super) fn add_alone(
        &mut self,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        self.state.get_mut().definition.get_mut().add(&*self.device, after, operation)
    }
}
