//! The handle of a condition.

use std::fmt;
use std::sync::Arc;

use super::{ConditionKey, Graph, Hierarchy, Node};
use crate::error::{Result, bail};

/// A value that kernels set and a conditional node tests.
///
/// It can be used in the graph that made it and in all graphs inside that graph. At most one
/// conditional node tests it.
#[derive(Clone)]
pub struct Condition {
    pub(crate) hierarchy: Arc<Hierarchy>,
    pub(crate) key: ConditionKey,
}

impl Condition {
    /// Returns whether the condition still exists. It does not once the graph that made it is
    /// deleted.
    pub fn is_valid(&self) -> bool {
        self.hierarchy.read(|definition| definition.get_condition(self.key).is_some())
    }

    /// Returns the value that every launch sets, if one was given.
    pub fn default_value(&self) -> Option<u32> {
        self.hierarchy.read(|definition| definition.conditions.get(self.key)?.default)
    }

    /// Returns the conditional node that tests the condition, if there is one.
    pub fn used_by(&self) -> Option<Node> {
        let key = self.hierarchy.read(|definition| definition.conditions.get(self.key)?.used_by)?;
        Some(Node::new(&self.hierarchy, key))
    }

    /// Returns whether the condition belongs to the hierarchy of `graph`.
    pub fn belongs_to(&self, graph: &Graph) -> bool {
        Arc::ptr_eq(&self.hierarchy, &graph.hierarchy)
    }

    /// Returns the condition's key in its definition.
    pub fn key(&self) -> ConditionKey {
        self.key
    }

    /// Returns the key for use in an operation of `graph`. Fails if `graph` is in another
    /// hierarchy.
    pub fn key_in(&self, graph: &Graph) -> Result<ConditionKey> {
        if !self.belongs_to(graph) {
            bail!(WrongGraph, "the condition belongs to another graph; make one with graph.condition()");
        }
        Ok(self.key)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?}, default {:?})", self.key, self.default_value())
    }
}
