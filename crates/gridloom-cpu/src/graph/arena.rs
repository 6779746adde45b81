//! Where the memory of alloc nodes lies: one arena for an executable, planned over the graph's order.
//!
//! Two allocations share memory only if one is freed before the other is made *by the order of the graph*, whatever the
//! timing. The plan walks the graph once and lets freed ranges travel along its edges: a range is in the hands of one node
//! at a time, which passes what it does not use to one of its successors. So a range found at a node was freed by an
//! ancestor of it, and by nobody else's leave is used anywhere else. It is no optimal packing, but linear in the graph, and
//! exact on chains and on fans that join.
//!
//! The bodies of a conditional are planned by themselves and placed in a range that the conditional node holds while it runs;
//! bodies of which only one runs share it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gridloom_core::graph::{Definition, GraphKey, NodeKey};
use gridloom_core::op::{FreeTarget, Operation};

use crate::memory::ALIGNMENT;

/// Where each allocation lies in the arena.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) offsets: HashMap<NodeKey, u64>,
    pub(super) bytes: u64,
    /// Alloc nodes that nothing frees; they lie elsewhere.
    pub(super) outliving: Vec<NodeKey>,
}

/// Plans the memory of all alloc nodes of a definition.
pub(super) fn plan(definition: &Definition, allocs: &[NodeKey], freed: &HashSet<NodeKey>) -> Layout {
    if allocs.is_empty() {
        return Layout::default();
    }
    let mut planner = Planner { definition, freed, wanting: vec![false; definition.node_bound()] };
    let part = planner.part(definition.root());
    let outliving = allocs.iter().copied().filter(|alloc| !freed.contains(alloc)).collect();
    Layout { offsets: part.offsets.into_iter().collect(), bytes: part.bytes, outliving }
}

/// The plan of a graph by itself.
#[derive(Default)]
struct Part {
    offsets: Vec<(NodeKey, u64)>,
    bytes: u64,
}

struct Planner<'a> {
    definition: &'a Definition,
    freed: &'a HashSet<NodeKey>,
    /// Whether memory is wanted at a node or after it.
    wanting: Vec<bool>,
}

impl Planner<'_> {
    fn part(&mut self, graph: GraphKey) -> Part {
        let mut part = Part::default();
        self.graph(graph, Ranges::default(), &mut part);
        part
    }

    /// Plans a graph that starts with `free` ranges, and returns those that are free when it has ended.
    fn graph(&mut self, graph: GraphKey, free: Ranges, part: &mut Part) -> Ranges {
        let order = self.definition.topological(graph);
        for &key in order.iter().rev() {
            let node = self.definition.node(key);
            self.wanting[key.index()] = match node.operation() {
                Operation::Alloc(_) | Operation::Child(_) | Operation::Conditional(_) => true,
                _ => node.successors().iter().any(|edge| self.wanting[edge.node.index()]),
            };
        }
        let mut at: HashMap<NodeKey, Ranges> = HashMap::new();
        let mut left = Ranges::default();
        if let Some(&first) = order.first() {
            at.insert(first, free);
        } else {
            left = free;
        }
        let mut made: HashMap<NodeKey, (u64, u64)> = HashMap::new();
        for key in order {
            let node = self.definition.node(key);
            let mut free = at.remove(&key).unwrap_or_default();
            match node.operation() {
                Operation::Alloc(alloc) if self.freed.contains(&key) => {
                    let bytes = alloc.bytes().next_multiple_of(ALIGNMENT);
                    let offset = free.take(bytes, &mut part.bytes);
                    made.insert(key, (offset, bytes));
                    part.offsets.push((key, offset));
                }
                Operation::Free(FreeTarget::AllocNode(alloc)) => {
                    if let Some((offset, bytes)) = made.remove(alloc) {
                        free.give(offset, bytes);
                    }
                }
                Operation::Child(child) => free = self.graph(*child, free, part),
                Operation::Conditional(conditional) => {
                    let bodies: Vec<Part> = conditional.bodies.iter().map(|&body| self.part(body)).collect();
                    let bytes = bodies.iter().map(|body| body.bytes).max().unwrap_or(0);
                    if bytes > 0 {
                        let base = free.take(bytes, &mut part.bytes);
                        free.give(base, bytes);
                        let inside = bodies.into_iter().flat_map(|body| body.offsets);
                        part.offsets.extend(inside.map(|(key, offset)| (key, base + offset)));
                    }
                }
                _ => {}
            }
            if free.is_empty() {
                continue;
            }
            let heir = node.successors().iter().find(|edge| self.wanting[edge.node.index()]);
            match heir {
                Some(edge) => at.entry(edge.node).or_default().absorb(free),
                None => left.absorb(free),
            }
        }
        left
    }
}

/// Free ranges of the arena, neighbours joined.
#[derive(Default)]
struct Ranges {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Ranges {
    fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }

    /// Takes the smallest range that fits, or new memory from the end of the arena.
    fn take(&mut self, bytes: u64, end: &mut u64) -> u64 {
        let Some(&(size, offset)) = self.by_size.range((bytes, 0)..).next() else {
            let offset = *end;
            *end = end.saturating_add(bytes);
            return offset;
        };
        self.remove(offset, size);
        if size > bytes {
            self.insert(offset + bytes, size - bytes);
        }
        offset
    }

    fn give(&mut self, mut offset: u64, mut bytes: u64) {
        if let Some((&before, &size)) = self.by_offset.range(..offset).next_back()
            && before + size == offset
        {
            self.remove(before, size);
            (offset, bytes) = (before, size + bytes);
        }
        if let Some(&size) = self.by_offset.get(&(offset + bytes)) {
            self.remove(offset + bytes, size);
            bytes += size;
        }
        self.insert(offset, bytes);
    }

    /// Takes over all ranges of another, the fewer into the more.
    fn absorb(&mut self, mut other: Ranges) {
        if self.by_offset.len() < other.by_offset.len() {
            std::mem::swap(self, &mut other);
        }
        other.by_offset.into_iter().for_each(|(offset, bytes)| self.give(offset, bytes));
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        self.by_offset.insert(offset, bytes);
        self.by_size.insert((bytes, offset));
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(bytes, offset));
    }
}
