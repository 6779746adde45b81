//! The check for forgotten dependencies.
//!
//! Two nodes of which one writes what the other uses need an order between them. The check walks all
//! graphs of a hierarchy once, in topological order, and keeps for every byte of memory the accesses that
//! nothing later is ordered after ([`history`]). A new access that conflicts with one of them must be
//! reachable from it ([`order`]). The work is linear in practice: what a node waits for is mostly near.
//!
//! What it knows of a node: fills write; copies read and write; kernels read what their `Ptr` parameters lead
//! to and write what their `PtrMut` parameters lead to, all of the memory given for each; a conditional on
//! a value in memory reads the value. It knows nothing of callbacks, of opaque nodes, and of kernels
//! whose parameters have no types; those are counted in [`Hazards::unknown`].

mod access;
mod history;
mod loops;
mod order;

use std::fmt;

use rustc_hash::FxHashSet;

use self::access::Access;
use self::history::History;
use self::order::Search;
use super::definition::{Definition, GraphKey, NodeKey};
use crate::op::Operation;

/// The most findings that a check lists. The others are counted.
pub const MOST_FINDINGS: usize = 100;
/// The most edges that a check follows. It says so where it gives up.
const MOST_STEPS: u64 = 200_000_000;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hazards {
    /// What is wrong, in the order of the nodes, at most [`MOST_FINDINGS`].
    pub findings: Vec<Hazard>,
    /// How many findings are not listed.
    pub more: usize,
    /// How many nodes there are of whose memory nothing is known.
    pub unknown: usize,
    /// Whether every pair was looked at. A graph whose order is very tangled may take too long.
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
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{finding}")?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

/// How a node uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It reads it.
    Read,
    /// It writes it, and may read it.
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

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// Two nodes use the same memory without an order between them, and one of them writes it.
    Unordered {
        /// The node that was added first, and what it does.
        first: (NodeKey, AccessKind),
        /// The other one.
        second: (NodeKey, AccessKind),
        /// The nodes that an edge between them would order: these two, or the nodes of one graph that they
        /// take place in.
        edge: (NodeKey, NodeKey),
        /// The names of both nodes, and of both ends of the edge.
        names: [String; 4],
        /// Which memory: the alloc node's name, or kind and address of a buffer.
        memory: String,
        /// The first byte of the memory that both use, and how many bytes they share at least.
        bytes: (u64, u64),
    },
    /// A loop that, once begun, nothing ends.
    EndlessLoop {
        /// The loop.
        node: NodeKey,
        /// Its name.
        name: String,
        /// What it tests, and what is missing.
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
    checker.hazards.complete &= !checker.search.gave_up();
    for finding in loops::endless(definition) {
        checker.hazards.add(finding);
    }
    checker.hazards
}

struct Checker<'a> {
    definition: &'a Definition,
    history: History,
    search: Search<'a>,
    /// Pairs that were reported, by the edge that they lack.
    reported: FxHashSet<(NodeKey, NodeKey)>,
    hazards: Hazards,
}

impl<'a> Checker<'a> {
    /// Nesting is limited, so recursion is.
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
            if matches!(operation, Operation::Child(_) | Operation::Conditional(_)) {
                for &body in self.definition.node(key).bodies() {
                    self.graph(body);
                }
            }
        }
    }

    fn access(&mut self, key: NodeKey, access: &Access<'a>) {
        let Checker { definition, history, search, reported, hazards } = self;
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
        let ordered = |node| !unordered.iter().any(|conflict| conflict.node == node);
        history.add(key, access, ordered);
    }
}

#[cfg(test)]
mod tests;
