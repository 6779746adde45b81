//! Checks on allocations that need the whole graph. Instantiation makes them.
//!
//! - Every use of an alloc node's memory is ordered after the alloc node.
//! - A free is ordered after the alloc node and after every use.
//! - A launch frees an allocation at most once.
//! - Memory that another executable left is freed once, after its uses here, and outside of
//!   conditionals.
//! - Memory allocated in the body of a conditional is freed in that body, so that a pass
//!   leaves nothing behind.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::definition::{Definition, EdgeList, NodeData, NodeKey, Order};
use crate::backend;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Base;
use crate::op::{FreeTarget, NodeKind, Operation};

/// The alloc nodes whose memory outlives a launch because nothing in the graph frees it.
pub(crate) type Outliving = Vec<NodeKey>;

/// The uses and frees of one allocation: that of an alloc node, or one that another executable
/// left.
#[derive(Default)]
struct Life {
    /// The nodes that use the memory. For an alloc node, they are nodes of the graph that allocates
    /// it.
    uses: Vec<NodeKey>,
    frees: Vec<NodeKey>,
}

/// Checks all allocations and returns those that nothing frees.
pub(crate) fn check(definition: &Definition) -> Result<Outliving> {
    // A deleted alloc node still counts.
    if !definition.may_have(NodeKind::MEMORY) {
        return Ok(Vec::new());
    }
    let mut lives: FxHashMap<NodeKey, Life> = FxHashMap::default();
    let mut frees_elsewhere = false;
    for (key, node) in definition.nodes.iter() {
        match &node.operation {
            Operation::Alloc(_) => {
                lives.entry(key).or_default();
            }
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                if definition.get_node(*alloc).is_none() {
                    return Err(uses_deleted_memory(definition, key));
                }
                lives.entry(*alloc).or_default().frees.push(key);
            }
            Operation::Free(FreeTarget::Outliving(_)) => frees_elsewhere = true,
            operation => {
                let mut failure = None;
                operation.for_each_alloc_node(|alloc| match definition.get_node(alloc) {
                    Some(alloc_node) => {
                        let user = definition.ancestor_in(alloc_node.graph, key);
                        lives.entry(alloc).or_default().uses.extend(user);
                    }
                    None => failure = Some(uses_deleted_memory(definition, key)),
                });
                if let Some(error) = failure {
                    return Err(error);
                }
            }
        }
    }
    if frees_elsewhere {
        check_frees_elsewhere(definition)?;
    }
    if lives.is_empty() {
        return Ok(Vec::new());
    }
    let mut reach = Reach::new(definition);
    let mut outliving = Vec::new();
    let mut allocs: Vec<NodeKey> = lives.keys().copied().collect();
    allocs.sort_unstable();
    for alloc in allocs {
        let life = &lives[&alloc];
        check_uses_after(definition, &mut reach, alloc, life)?;
        if let Some(&free) = life.frees.first() {
            let (name, first) = (definition.label(alloc), definition.node(alloc).order);
            check_freed_once(definition, &name, &life.frees)?;
            check_freed_last(definition, &mut reach, &name, free, &life.uses, first)?;
        }
        if life.frees.is_empty() {
            if let Some(conditional) = innermost_conditional(definition, alloc) {
                return Err(Error::new(
                    ErrorKind::InvalidState,
                    format!(
                        "this memory is allocated in a body of {} and not freed there; free it in the same body, or allocate it outside",
                        definition.label(conditional)
                    ),
                )
                .at_node(definition.label(alloc)));
            }
            outliving.push(alloc);
        }
    }
    Ok(outliving)
}

/// Checks that the uses and frees of an alloc node's memory are ordered after the node.
fn check_uses_after(
    definition: &Definition,
    reach: &mut Reach<'_>,
    alloc: NodeKey,
    life: &Life,
) -> Result<()> {
    let users = || life.uses.iter().chain(&life.frees);
    let Some(last) = users().map(|&key| definition.node(key).order).max() else {
        return Ok(());
    };
    reach.forward(alloc, last);
    let Some(&user) = users().find(|&&user| !reach.reached(user)) else { return Ok(()) };
    reach.backward(alloc, definition.node(user).order);
    let name = definition.label(alloc);
    let message = if reach.reached(user) {
        format!("uses the memory of {name}, which allocates it only later; allocate it before its first use")
    } else {
        format!("uses the memory of {name} but is not ordered after it; add an edge")
    };
    Err(unordered(definition, user, message))
}

/// Checks that memory is freed at most once. All nodes of a graph run in each launch, so two frees
/// would free twice.
fn check_freed_once(definition: &Definition, name: &str, frees: &[NodeKey]) -> Result<()> {
    if let [earlier, again, ..] = *frees {
        let message =
            format!("frees the memory of {name}, which {} frees already", definition.label(earlier));
        return Err(Error::new(ErrorKind::InvalidState, message).at_node(definition.label(again)));
    }
    Ok(())
}

/// Checks that a free is ordered after these uses in the same graph. `first` is the smallest
/// position among them.
fn check_freed_last(
    definition: &Definition,
    reach: &mut Reach<'_>,
    name: &str,
    free: NodeKey,
    uses: &[NodeKey],
    first: Order,
) -> Result<()> {
    reach.backward(free, first);
    let Some(&user) = uses.iter().find(|&&user| !reach.reached(user)) else { return Ok(()) };
    reach.forward(free, definition.node(user).order);
    if reach.reached(user) {
        let message = format!(
            "uses the memory of {name} after {} has freed it; free it after its last use",
            definition.label(free)
        );
        return Err(unordered(definition, user, message));
    }
    let message = format!(
        "frees the memory of {name} but is not ordered after its use in {}; add an edge",
        definition.label(user)
    );
    Err(unordered(definition, free, message))
}

/// Checks the nodes that free memory of other executables: outside of conditionals, once, and after
/// all uses.
pub(crate) fn check_frees_elsewhere(definition: &Definition) -> Result<()> {
    let identity = |memory: &Arc<dyn backend::Allocation>| Arc::as_ptr(memory).cast::<()>();
    let mut lives: FxHashMap<*const (), Life> = FxHashMap::default();
    for (key, node) in definition.nodes.iter() {
        if let Operation::Free(FreeTarget::Outliving(memory)) = &node.operation {
            if let Some(conditional) = innermost_conditional(definition, key) {
                let message = format!(
                    "frees memory of another executable in a body of {}, which may run never or often; free it outside",
                    definition.label(conditional)
                );
                return Err(Error::new(ErrorKind::InvalidState, message).at_node(definition.label(key)));
            }
            lives.entry(identity(memory)).or_default().frees.push(key);
        }
    }
    for (key, node) in definition.nodes.iter() {
        node.operation.for_each_region(|region| {
            if let Base::Allocation(memory) = &region.base
                && let Some(life) = lives.get_mut(&identity(memory))
            {
                life.uses.push(key);
            }
        });
    }
    let mut lives: Vec<Life> = lives.into_values().collect();
    lives.sort_unstable_by_key(|life| life.frees[0]);
    let mut reach = Reach::new(definition);
    for life in lives {
        check_freed_once(definition, "another executable", &life.frees)?;
        for user in life.uses {
            // For a use in another graph, the order is checked in the innermost graph around both
            // nodes.
            let (free, user) = definition.in_common_graph(life.frees[0], user);
            let first = definition.node(user).order;
            check_freed_last(definition, &mut reach, "another executable", free, &[user], first)?;
        }
    }
    Ok(())
}

fn unordered(definition: &Definition, node: NodeKey, message: String) -> Error {
    Error::new(ErrorKind::Unordered, message).at_node(definition.label(node))
}

pub(crate) fn uses_deleted_memory(definition: &Definition, user: NodeKey) -> Error {
    Error::new(
        ErrorKind::InvalidHandle,
        "uses the memory of an alloc node that was deleted; delete this node too or give it other memory",
    )
    .at_node(definition.label(user))
}

/// Returns the innermost conditional node around `node`. Embedded children in between are skipped.
fn innermost_conditional(definition: &Definition, node: NodeKey) -> Option<NodeKey> {
    let mut graph = definition.node(node).graph;
    while let Some((owner, _)) = definition.owner(graph) {
        if matches!(definition.node(owner).operation, Operation::Conditional(_)) {
            return Some(owner);
        }
        graph = definition.node(owner).graph;
    }
    None
}

/// Searches of one graph, bounded by the topological order. The marks are reused between searches.
struct Reach<'a> {
    definition: &'a Definition,
    marks: Vec<u32>,
    round: u32,
    stack: Vec<NodeKey>,
}

impl<'a> Reach<'a> {
    fn new(definition: &'a Definition) -> Self {
        Reach { definition, marks: vec![0; definition.node_bound()], round: 0, stack: Vec::new() }
    }

    fn forward(&mut self, start: NodeKey, last: Order) {
        self.search(start, |node| &node.successors, |order| order <= last);
    }

    fn backward(&mut self, start: NodeKey, first: Order) {
        self.search(start, |node| &node.predecessors, |order| order >= first);
    }

    fn search(
        &mut self,
        start: NodeKey,
        next: impl Fn(&NodeData) -> &EdgeList,
        within: impl Fn(Order) -> bool,
    ) {
        self.round += 1;
        self.marks[start.index()] = self.round;
        self.stack.push(start);
        while let Some(key) = self.stack.pop() {
            for edge in next(self.definition.node(key)) {
                let mark = &mut self.marks[edge.node.index()];
                if *mark != self.round && within(self.definition.node(edge.node).order) {
                    *mark = self.round;
                    self.stack.push(edge.node);
                }
            }
        }
    }

    fn reached(&self, key: NodeKey) -> bool {
        self.marks[key.index()] == self.round
    }
}
