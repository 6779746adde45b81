//! A root graph with all that is inside it: one definition behind one lock.

use std::sync::Arc;

use parking_lot::Mutex;

use super::cow_definition::CowDefinition;
use super::definition::{Definition, GraphKey, NodeData, NodeKey};
use super::keys::LocalKey;
use crate::backend;
use crate::error::Result;
use crate::op::Operation;

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

/// A root graph with everything inside it.
pub(crate) struct Hierarchy {
    pub(crate) device: Arc<dyn backend::Device>,
    /// The number of the definition, which all its keys have.
    pub(super) number: u32,
    definition: Mutex<CowDefinition>,
}

impl Hierarchy {
    #[inline(always)]
    pub(super) fn new(device: &Arc<dyn backend::Device>, definition: CowDefinition) -> Arc<Self> {
        let number = definition.nodes.owner();
        Arc::new(Hierarchy { device: Arc::clone(device), number, definition: Mutex::new(definition) })
    }

    /// The definition as it is now.
    pub(crate) fn snapshot(&self) -> Arc<Definition> {
        self.definition.lock().share()
    }

    /// Reads the definition under the lock. `read` must not call back into the graph.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Definition) -> T) -> T {
        read(&self.definition.lock())
    }

    /// Changes the definition. What `edit` returns is dropped by the caller, after the lock is released.
    ///
    /// `edit` borrows what it puts into the definition and takes it only once nothing can fail any more: what it owned
    /// it would drop under the lock, and the drop of a user's closure may come back into the graph.
    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut Definition) -> T) -> T {
        edit(self.definition.lock().get_mut())
    }

    /// Adds a node after others. A failure leaves the operation where it is, so that the caller chooses when its drop, which may run a user's code, takes place.
    pub(super) fn add(
        &self,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        self.edit(|definition| definition.add(&*self.device, after, operation))
    }

    /// The same for who alone has the hierarchy, and so need not lock it.
    pub(super) fn add_alone(
        &mut self,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        self.definition.get_mut().get_mut().add(&*self.device, after, operation)
    }
}
