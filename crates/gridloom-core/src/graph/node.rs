//! The handle of a node.

use std::fmt;
use std::sync::Arc;

use super::definition::{EdgeEnd, EdgeKind, GraphData, NodeData, NodeKey};
use super::{After, Checker, Graph, Hierarchy, LocalKey, Writer};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::executable::check_replaceable;
use crate::op::{ConditionalForm, ConditionalOp, NodeKind, Operation};

/// A node of a graph. The handle is cheap to clone, compares by identity and keeps the graph alive.
///
/// A handle to a deleted node can still be compared and hashed. [`is_valid`](Node::is_valid)
/// returns `false`, and operations on the node fail.
#[derive(Clone)]
pub struct Node {
    pub(crate) hierarchy: Arc<Hierarchy>,
    /// The key without the number of the definition, which the hierarchy knows. This keeps the
    /// handle at two words, which move in registers.
    local: LocalKey<NodeData>,
}

impl Node {
    pub(crate) fn new(hierarchy: &Arc<Hierarchy>, key: NodeKey) -> Self {
        debug_assert_eq!(key, key.local().of(hierarchy.number), "a key of this hierarchy");
        Node { hierarchy: Arc::clone(hierarchy), local: key.local() }
    }

    /// Returns whether the node is still part of its graph.
    pub fn is_valid(&self) -> bool {
        self.hierarchy.read(|definition| definition.get_node(self.key()).is_some())
    }

    /// Returns the node's key in its definition.
    #[inline]
    pub fn key(&self) -> NodeKey {
        self.local.of(self.hierarchy.number)
    }

    /// Returns the key for use in an operation of `graph`. Fails if `graph` is in another
    /// hierarchy.
    pub fn key_in(&self, graph: &Graph) -> Result<NodeKey> {
        if Arc::ptr_eq(&self.hierarchy, &graph.hierarchy) {
            return Ok(self.key());
        }
        Err(Error::new(
            ErrorKind::WrongGraph,
            format!("{} belongs to another graph; use a node of this one", self.label()),
        ))
    }

    /// Returns the graph that the node is in.
    pub fn graph(&self) -> Result<Graph> {
        let key = self.read(NodeData::graph)?;
        Ok(Graph { hierarchy: self.hierarchy.clone(), key })
    }

    /// Returns the kind of the node.
    pub fn kind(&self) -> Result<NodeKind> {
        self.read(|node| node.operation.kind())
    }

    /// Returns the node's operation, with everything it holds.
    pub fn operation(&self) -> Result<Operation> {
        self.read(|node| node.operation.clone())
    }

    /// Names the node. Errors and pictures show the name.
    pub fn set_name(&self, name: &str) -> Result<()> {
        let old = self.hierarchy.edit(|definition| {
            let node = definition.nodes.get_mut(self.key()).ok_or_else(|| deleted(self.key()))?;
            Ok::<_, Error>(node.name.replace(name.into()))
        })?;
        drop(old);
        Ok(())
    }

    /// Names the node and returns it.
    pub fn named(&self, name: &str) -> Result<Self> {
        self.set_name(name)?;
        Ok(self.clone())
    }

    /// Returns the name that the user gave, or else one made of the node's kind, number and kernel.
    pub fn label(&self) -> String {
        self.hierarchy.read(|definition| definition.label(self.key()))
    }

    /// Returns the nodes that this one depends on, in the order in which the edges were added.
    pub fn predecessors(&self) -> Result<Vec<Node>> {
        let edges = self.read(|node| node.predecessors.clone())?;
        Ok(self.handles(&edges))
    }

    /// Returns the nodes that depend on this one, in the order in which the edges were added.
    pub fn successors(&self) -> Result<Vec<Node>> {
        let edges = self.read(|node| node.successors.clone())?;
        Ok(self.handles(&edges))
    }

    /// Returns the graphs inside the node: the bodies of a conditional or the graph of a child
    /// node.
    pub fn bodies(&self) -> Result<Vec<Graph>> {
        let keys = self.hierarchy.read(|definition| {
            definition.get_node(self.key()).ok_or_else(|| deleted(self.key()))?;
            Ok::<_, Error>(definition.bodies(self.key()))
        })?;
        Ok(keys.into_iter().map(|key| Graph { hierarchy: self.hierarchy.clone(), key }).collect())
    }

    /// Returns the graph inside the node at `index`, for callers that know there is one. If the
    /// node was deleted or `index` is past the end, [`Graph::is_valid`] is `false` for the result.
    pub fn body_handle(&self, index: usize) -> Graph {
        let key = self.hierarchy.read(|definition| {
            let key = definition.bodies(self.key()).get(index).copied();
            key.unwrap_or_else(|| definition.graphs.nowhere())
        });
        Graph { hierarchy: self.hierarchy.clone(), key }
    }

    /// Bounds the passes of a loop. `None` removes the bound.
    pub fn set_max_passes(&self, max_passes: Option<u64>) -> Result<()> {
        let old = self.hierarchy.edit(|definition| {
            let node = definition.nodes.get_mut(self.key()).ok_or_else(|| deleted(self.key()))?;
            match &node.operation {
                Operation::Conditional(conditional) if conditional.form == ConditionalForm::While => {
                    let conditional = ConditionalOp { max_passes, ..(**conditional).clone() };
                    Ok(std::mem::replace(&mut node.operation, Operation::Conditional(Arc::new(conditional))))
                }
                _ => Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "{} is not a loop; only loops have passes to bound",
                        definition.label(self.key())
                    ),
                )),
            }
        })?;
        drop(old);
        Ok(())
    }

    /// Adds a node to the same graph that depends on this one. Conditionals and children are added
    /// with [`Graph::add_conditional`] and [`Graph::add_child`].
    // Inlined because moving the operation and the handle through a call is a measurable part of
    // the time of adding a node.
    #[inline]
    pub fn add(&self, operation: Operation) -> Result<Node> {
        let local = self.hierarchy.add(Writer::Handle, After::One(&self.key()), &mut Some(operation))?;
        Ok(Node { hierarchy: Arc::clone(&self.hierarchy), local })
    }

    /// Replaces the operation by another one of the same kind. On failure nothing changes. Existing
    /// executables are not affected.
    pub fn set_operation(&self, operation: Operation) -> Result<()> {
        let device = &*self.hierarchy.device;
        // The edit borrows the operation, so that neither the old one nor a refused new one is
        // dropped under the lock.
        let mut operation = operation;
        self.hierarchy.write_at(self.key(), |definition| {
            let node = definition.get_node(self.key()).ok_or_else(|| deleted(self.key()))?;
            check_replaceable(&node.operation, &operation)
                .and_then(|()| {
                    let checker = Checker { device, graph: Some((definition, node.graph)) };
                    checker.check_replacing(&operation)
                })
                .map_err(|error| error.at_node(definition.label(self.key())))?;
            let node = definition.nodes.get_mut(self.key()).expect("checked");
            std::mem::swap(&mut node.operation, &mut operation);
            Ok(())
        })
    }

    /// Replaces the graph of this child node by a copy of another graph. Handles to nodes of the
    /// old copy become invalid.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        if Arc::ptr_eq(&self.hierarchy, &graph.hierarchy) {
            bail!(
                WrongGraph,
                "a graph cannot be embedded into a graph of its own hierarchy; embed a clone of it"
            );
        }
        if self.hierarchy.device.id() != graph.hierarchy.device.id() {
            bail!(
                WrongDevice,
                "the graph to embed is for another device ({})",
                graph.hierarchy.device.name()
            );
        }
        let source = graph.hierarchy.snapshot();
        let removed = self.hierarchy.write_at(self.key(), |definition| {
            let node = definition.get_node(self.key()).ok_or_else(|| deleted(self.key()))?;
            if !matches!(node.operation, Operation::Child(_)) {
                bail!(InvalidArgument, "{} is not a child node", definition.label(self.key()));
            }
            if source.graphs.get(graph.key).is_none() {
                bail!(InvalidHandle, "the graph to embed was deleted with the node around it");
            }
            definition.check_depth(node.graph, 1 + source.depth_inside(graph.key))?;
            let child =
                definition.graphs.insert(GraphData { owner: Some((self.key(), 0)), ..GraphData::default() });
            if let Err(error) = definition.copy_from(&source, graph.key, child) {
                definition.graphs.remove(child);
                return Err(error);
            }
            let removed = definition.remove_bodies(self.key());
            definition.nodes.get_mut(self.key()).expect("checked").operation = Operation::Child(child);
            Ok(removed)
        })?;
        drop(removed);
        Ok(())
    }

    /// Adds full edges from the other nodes to this one. Either all edges are added or none.
    pub fn after<'a>(&self, others: impl IntoIterator<Item = &'a Node>) -> Result<()> {
        self.after_with(others, EdgeKind::Full)
    }

    /// Adds edges of this kind from the other nodes to this one. Either all edges are added or
    /// none.
    pub fn after_with<'a>(&self, others: impl IntoIterator<Item = &'a Node>, kind: EdgeKind) -> Result<()> {
        let graph = self.graph()?;
        let others: Vec<&Node> = others.into_iter().collect();
        let keys = graph.own_keys(&others)?;
        self.hierarchy.write(Writer::Handle, graph.key, |definition| {
            definition.check_alive(graph.key, &[self.key()])?;
            definition.check_alive(graph.key, &keys)?;
            definition.add_edges(&keys, self.key(), kind)
        })
    }

    /// Deletes the node, its edges and everything inside it. What the node holds is released at
    /// once, unless an executable or another snapshot still holds it.
    pub fn delete(&self) -> Result<()> {
        let removed = self.hierarchy.write_at(self.key(), |definition| {
            definition.get_node(self.key()).ok_or_else(|| deleted(self.key()))?;
            Ok(definition.delete_node(self.key()))
        })?;
        drop(removed);
        Ok(())
    }

    fn read<T>(&self, read: impl FnOnce(&NodeData) -> T) -> Result<T> {
        self.hierarchy
            .read(|definition| definition.get_node(self.key()).map(read))
            .ok_or_else(|| deleted(self.key()))
    }

    fn handles(&self, edges: &[EdgeEnd]) -> Vec<Node> {
        edges.iter().map(|edge| Node::new(&self.hierarchy, edge.node)).collect()
    }
}

pub(super) fn deleted(key: NodeKey) -> Error {
    Error::new(
        ErrorKind::InvalidHandle,
        format!("node {key:?} was deleted; its handle can only be compared and hashed"),
    )
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.label())
    }
}
