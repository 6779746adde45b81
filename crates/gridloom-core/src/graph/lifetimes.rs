//! The checks on allocations that need the whole graph: they are made when it is instantiated.
//!
//! - every use of an alloc node's memory is ordered after the alloc node;
//! - a free is ordered after the alloc node and after every use;
//! - no two frees of one allocation can run in the same launch;
//! - memory allocated in the body of a conditional is freed in that body, so that a pass leaves nothing behind.

use std::collections::HashMap;

use super::definition::{Definition, NodeKey};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Base;
use crate::op::{FreeTarget, Operation};

/// The alloc nodes whose memory outlives a launch, because nothing in the graph frees it.
pub(crate) type Outliving = Vec<NodeKey>;

#[derive(Default)]
struct Life {
    /// Nodes of the alloc node's own graph in which the memory is used.
    uses: Vec<NodeKey>,
    frees: Vec<NodeKey>,
}

/// Checks all allocations and returns those that nothing frees.
pub(crate) fn check(definition: &Definition) -> Result<Outliving> {
    let mut lives: HashMap<NodeKey, Life> = HashMap::new();
    for (key, node) in definition.nodes.iter() {
        match &node.operation {
            Operation::Alloc(_) => {
                lives.entry(key).or_default();
            }
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                if definition.get_node(*alloc).is_none() {
                    return Err(deleted(definition, key));
                }
                lives.entry(*alloc).or_default().frees.push(key);
            }
            operation => {
                let mut failure = None;
                operation.for_each_region(|region| {
                    if let Base::AllocNode(alloc) = region.base {
                        match definition.get_node(alloc) {
                            Some(alloc_node) => {
                                let user = definition.ancestor_in(alloc_node.graph, key);
                                lives.entry(alloc).or_default().uses.extend(user);
                            }
                            None => failure = Some(deleted(definition, key)),
                        }
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
            }
        }
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
        check_one(definition, &mut reach, alloc, life)?;
        if life.frees.is_empty() {
            let inside = innermost_conditional(definition, alloc);
            if let Some(conditional) = inside {
                return Err(error(
                    definition,
                    alloc,
                    format!(
                        "this memory is allocated in a body of {} and not freed there; free it in the same body, or allocate it outside",
                        definition.label(conditional)
                    ),
                ));
            }
            outliving.push(alloc);
        }
    }
    Ok(outliving)
}

fn check_one(definition: &Definition, reach: &mut Reach<'_>, alloc: NodeKey, life: &Life) -> Result<()> {
    let name = || definition.label(alloc);
    if !life.uses.is_empty() || !life.frees.is_empty() {
        let last =
            life.uses.iter().chain(&life.frees).map(|&key| definition.node(key).order).max().unwrap_or(0);
        reach.forward(alloc, last);
        for &user in life.uses.iter().chain(&life.frees) {
            if !reach.reached(user) {
                return Err(error(
                    definition,
                    user,
                    format!("uses the memory of {} but is not ordered after it; add an edge", name()),
                ));
            }
        }
    }
    for (position, &free) in life.frees.iter().enumerate() {
        reach.backward(free, definition.node(alloc).order);
        for &user in &life.uses {
            if !reach.reached(user) {
                return Err(error(
                    definition,
                    free,
                    format!(
                        "frees the memory of {} but is not ordered after its use in {}; add an edge",
                        name(),
                        definition.label(user)
                    ),
                ));
            }
        }
        // All nodes of one graph run in a launch of it, so a second free in the same graph always frees twice.
        if position > 0 {
            return Err(error(
                definition,
                free,
                format!(
                    "frees the memory of {}, which {} frees already",
                    name(),
                    definition.label(life.frees[0])
                ),
            ));
        }
    }
    Ok(())
}

fn error(definition: &Definition, node: NodeKey, message: String) -> Error {
    Error::new(ErrorKind::Unordered, message).at_node(definition.label(node))
}

fn deleted(definition: &Definition, user: NodeKey) -> Error {
    Error::new(
        ErrorKind::InvalidHandle,
        "uses the memory of an alloc node that was deleted; delete this node too or give it other memory",
    )
    .at_node(definition.label(user))
}

/// The innermost conditional node around `node`, looking through embedded children.
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

/// Searches over one graph, bounded by the topological order, reusing its marks.
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

    fn forward(&mut self, start: NodeKey, last: u64) {
        self.search(start, |node| &node.successors, |order| order <= last);
    }

    fn backward(&mut self, start: NodeKey, first: u64) {
        self.search(start, |node| &node.predecessors, |order| order >= first);
    }

    fn search(
        &mut self,
        start: NodeKey,
        next: impl Fn(&super::definition::NodeData) -> &super::definition::EdgeList,
        within: impl Fn(u64) -> bool,
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
