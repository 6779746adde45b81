//! A check that a captured graph orders everything that must be ordered, even if a device happens
//! to run it in order.

use std::collections::{HashMap, HashSet};

use gridloom::prelude::*;
use gridloom_core::memory::Base;

/// Asserts that the nodes of a graph that touch the same memory come one after the other, in the
/// order in which they were recorded.
pub(crate) fn assert_ordered(graph: &Graph) -> Result<()> {
    let mut ancestors: HashMap<Node, HashSet<Node>> = HashMap::new();
    let mut last_touch: HashMap<u64, Node> = HashMap::new();
    for node in graph.nodes() {
        let mut before = HashSet::new();
        for predecessor in node.predecessors()? {
            before.extend(ancestors[&predecessor].iter().cloned());
            before.insert(predecessor);
        }
        for address in touched(&node)? {
            if let Some(earlier) = last_touch.insert(address, node.clone()) {
                assert!(before.contains(&earlier), "{earlier:?} and {node:?} touch {address:#x} in no order");
            }
        }
        ancestors.insert(node.clone(), before);
        node.bodies()?.iter().try_for_each(assert_ordered)?;
    }
    Ok(())
}

/// Returns the addresses that a node works on, with all that is inside it.
fn touched(node: &Node) -> Result<HashSet<u64>> {
    let mut addresses = HashSet::new();
    node.operation()?.for_each_region(|region| {
        if let Base::Allocation(allocation) = &region.base {
            addresses.insert(allocation.address());
        }
    });
    for body in node.bodies()? {
        for inner in body.nodes() {
            addresses.extend(touched(&inner)?);
        }
    }
    Ok(addresses)
}
