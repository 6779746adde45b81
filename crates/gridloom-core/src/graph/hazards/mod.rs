//! The check for missing dependencies.
//!
//! If one of two nodes writes what the other uses, they need an order between them. The check walks
//! all graphs of a hierarchy once, in topological order. For every byte of memory it keeps the
//! accesses that a later one must follow (`history`). A new access that conflicts with one of
//! them must be reachable from it (`order`). In practice the time is linear, because most nodes
//! depend directly on what they use, or some node between the two orders them (`dominators`).
//!
//! The check knows these accesses: fills write; copies read and write; kernels read the memory of
//! their `Ptr` parameters and write that of their `PtrMut` parameters, all of the memory given for
//! each; a conditional on a value in memory reads the value; a callback reads the memory that it is
//! given. A kernel that is given a condition may set it, and the conditional of the condition tests
//! it (`conditions`). The check knows nothing about other callbacks, opaque nodes and kernels
//! without typed parameters. [`Hazards::unknown`] counts those.

mod access;
mod conditions;
mod dominators;
mod footprint;
mod history;
mod loops;
mod order;

use std::fmt;

use rustc_hash::FxHashSet;

use self::access::Access;
use self::history::History;
use self::order::Search;
use super::definition::{Definition, GraphKey, NodeKey};

/// The largest number of findings in a list. Further ones are only counted.
pub const MOST_FINDINGS: usize = 100;
/// The largest number of edges that a check follows. [`Hazards::complete`] says whether that was
/// enough.
const MOST_STEPS: u64 = 50_000_000;
/// The number of unordered pairs at which a check ends. Nodes that all write the same memory beside
/// each other make a pair for every two of them.
const MOST_PAIRS: usize = 100_000;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hazards {
    /// The findings in the order of the nodes, at most [`MOST_FINDINGS`].
    pub findings: Vec<Hazard>,
    /// The number of findings that are not listed.
    pub more: usize,
    /// The number of nodes whose memory accesses are unknown.
    pub unknown: usize,
    /// Whether every pair of accesses was compared. A graph with a very complex order, or with very
    /// many unordered pairs, takes too long.
    pub complete: bool,
}

impl Hazards {
    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, finding: Hazard) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Hazards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            f.write_str("no missing dependency was found")?;
        }
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{finding}")?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        if !self.complete {
            f.write_str("; the graph is too complex to compare all of its nodes")?;
        }
        Ok(())
    }
}

/// The way in which a node uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// The node reads the memory.
    Read,
    /// The node writes the memory, and may read it.
    Write,
}

impl AccessKind {
    fn verb(self) -> &'static str {
        match self {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
        }
    }
}

/// One finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// Two nodes use the same memory without an order between them, and one of them writes it.
    Unordered {
        /// The node that was reached first, and its access.
        first: (NodeKey, AccessKind),
        /// The other node, and its access.
        second: (NodeKey, AccessKind),
        /// The nodes that an edge should order: these two, or the nodes of one graph that contain
        /// them.
        edge: (NodeKey, NodeKey),
        /// The names of both nodes, and of both ends of the edge.
        names: [String; 4],
        /// A description of the memory: the name of the alloc node, or the kind and address of a
        /// buffer.
        memory: String,
        /// The first byte of the memory that both use, and the number of shared bytes at least.
        bytes: (u64, u64),
    },
    /// A kernel can set the condition that a conditional tests, without an order between them.
    UnorderedCondition {
        /// The kernel.
        setter: NodeKey,
        /// The conditional.
        conditional: NodeKey,
        /// The nodes that an edge should order: these two, or the nodes of one graph that contain
        /// them.
        edge: (NodeKey, NodeKey),
        /// The names of both nodes, and of both ends of the edge.
        names: [String; 4],
    },
    /// A loop that nothing ends once it has begun.
    EndlessLoop {
        /// The loop.
        node: NodeKey,
        /// The name of the loop.
        name: String,
        /// What the loop tests, and what is missing.
        reason: &'static str,
    },
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hazard::Unordered { first, second, names, memory, bytes, edge } => {
                let [one, other, from, to] = names;
                write!(
                    f,
                    "{one} {} and {other} {} bytes {} to {} of {memory} with no order between them",
                    first.1.verb(),
                    second.1.verb(),
                    bytes.0,
                    bytes.0.saturating_add(bytes.1)
                )?;
                if *edge == (first.0, second.0) {
                    write!(f, "; add an edge from one to the other")
                } else {
                    write!(f, "; add an edge between {from} and {to}, which they are inside of")
                }
            }
            Hazard::UnorderedCondition { setter, conditional, edge, names } => {
                let [one, other, from, to] = names;
                write!(f, "{one} can set the condition that {other} tests with no order between them")?;
                if *edge == (*setter, *conditional) {
                    write!(f, "; add an edge from one to the other")
                } else {
                    write!(f, "; add an edge between {from} and {to}, which they are inside of")
                }
            }
            Hazard::EndlessLoop { name, reason, .. } => write!(f, "{name} {reason}"),
        }
    }
}

/// Checks a whole hierarchy.
pub(crate) fn check(definition: &Definition) -> Hazards {
    let mut checker = Checker {
        definition,
        history: History::default(),
        search: Search::new(definition, MOST_STEPS),
        reported: FxHashSet::default(),
        hazards: Hazards { complete: true, ..Hazards::default() },
    };
    checker.graph(definition.root());
    let Checker { history, mut search, reported, mut hazards, .. } = checker;
    for finding in conditions::unordered(definition, &mut search) {
        hazards.add(finding);
    }
    hazards.complete &= !search.gave_up() && !history.gave_up() && reported.len() < MOST_PAIRS;
    for finding in loops::endless(definition) {
        hazards.add(finding);
    }
    hazards
}

struct Checker<'a> {
    definition: &'a Definition,
    history: History,
    search: Search<'a>,
    /// The pairs that were reported, by the edge that they lack.
    reported: FxHashSet<(NodeKey, NodeKey)>,
    hazards: Hazards,
}

impl<'a> Checker<'a> {
    /// Checks a graph and the graphs inside it. The nesting of graphs bounds the recursion.
    fn graph(&mut self, graph: GraphKey) {
        for &key in self.definition.topological(graph).iter() {
            let operation = self.definition.node(key).operation();
            match access::of(operation) {
                Some(accesses) => {
                    for access in &accesses {
                        self.access(key, access);
                    }
                }
                None => self.hazards.unknown += 1,
            }
            for &body in operation.bodies() {
                self.graph(body);
            }
        }
    }

    fn access(&mut self, key: NodeKey, access: &Access<'a>) {
        let Checker { definition, history, search, reported, hazards } = self;
        if reported.len() >= MOST_PAIRS {
            return;
        }
        let earlier = history.conflicts(key, access);
        let mut unordered: Vec<_> = Vec::new();
        if !earlier.is_empty() {
            search.unordered(key, &earlier, &mut unordered);
        }
        for conflict in &unordered {
            let (from, to) = definition.in_common_graph(conflict.node, key);
            if !reported.insert((from, to)) {
                continue;
            }
            let label = |node| definition.label(node);
            hazards.add(Hazard::Unordered {
                first: (conflict.node, conflict.kind),
                second: (key, access.kind),
                edge: (from, to),
                names: [label(conflict.node), label(key), label(from), label(to)],
                memory: access.memory(definition),
                bytes: (conflict.start - access.origin(), conflict.bytes),
            });
        }
        let unordered: FxHashSet<NodeKey> = unordered.iter().map(|conflict| conflict.node).collect();
        history.add(key, access, |node| !unordered.contains(&node));
    }
}

#[cfg(test)]
mod tests;
