//! The memory of alloc nodes: one arena per executable, planned from the order of the graph.
//!
//! Two allocations share memory only if the *order of the graph* guarantees that one is freed
//! before the other is made, whatever the timing. The plan walks the graph once and moves free
//! ranges along its edges. One node at a time holds a range, and passes what it does not use to one
//! of its successors. A range found at a node was therefore freed by an ancestor, and no other node
//! can use it. The packing is not optimal, but it is linear in the graph, and exact on chains and
//! on fans that join.
//!
//! The bodies of a conditional are planned separately and placed in a range that the conditional
//! node holds while it runs. Bodies of which only one runs share the range.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gridloom_core::graph::{Definition, GraphKey, NodeKey};
use gridloom_core::lower::Allocations;
use gridloom_core::op::{FreeTarget, Operation, Role};
use rustc_hash::FxHashSet;

use crate::memory::ALIGNMENT;

/// The position of each allocation in the arena.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) offsets: HashMap<NodeKey, u64>,
    pub(super) bytes: u64,
    /// Alloc nodes that nothing frees. They lie outside of the arena.
    pub(super) outliving: Vec<NodeKey>,
}

/// Plans the memory of all alloc nodes of a definition.
pub(super) fn plan(definition: &Definition, allocations: &Allocations) -> Layout {
    if allocations.nodes.is_empty() {
        return Layout::default();
    }
    let freed = &allocations.freed;
    let mut planner = Planner { definition, freed, wanting: vec![false; definition.node_bound()] };
    let part = planner.part(definition.root());
    let outliving = allocations.outliving().collect();
    Layout { offsets: part.offsets.into_iter().collect(), bytes: part.bytes, outliving }
}

/// The plan of a single graph.
#[derive(Default)]
struct Part {
    offsets: Vec<(NodeKey, u64)>,
    bytes: u64,
}

struct Planner<'a> {
    definition: &'a Definition,
    freed: &'a FxHashSet<NodeKey>,
    /// Whether memory is needed at each node or after it.
    wanting: Vec<bool>,
}

impl Planner<'_> {
    fn part(&mut self, graph: GraphKey) -> Part {
        let mut part = Part::default();
        self.graph(graph, Ranges::default(), &mut part);
        part
    }

    /// Plans a graph that starts with the ranges `free`. Returns the ranges that are free at its
    /// end.
    fn graph(&mut self, graph: GraphKey, free: Ranges, part: &mut Part) -> Ranges {
        let order = self.definition.topological(graph);
        for &key in order.iter().rev() {
            let node = self.definition.node(key);
            let operation = node.operation();
            self.wanting[key.index()] = matches!(operation, Operation::Alloc(_))
                || operation.kind().facts().role.has_bodies()
                || node.successors().iter().any(|edge| self.wanting[edge.node.index()]);
        }
        let mut at: HashMap<NodeKey, Ranges> = HashMap::new();
        let mut left = Ranges::default();
        if let Some(&first) = order.first() {
            at.insert(first, free);
        } else {
            left = free;
        }
        let mut made: HashMap<NodeKey, (u64, u64)> = HashMap::new();
        for &key in &*order {
            let node = self.definition.node(key);
            let mut free = at.remove(&key).unwrap_or_default();
            let operation = node.operation();
            match operation.kind().facts().role {
                // Memory that outlives the launch is not in the arena.
                Role::Order => {
                    if let Operation::Alloc(alloc) = operation
                        && self.freed.contains(&key)
                    {
                        let bytes = alloc.bytes().next_multiple_of(ALIGNMENT);
                        let offset = free.take(bytes, &mut part.bytes);
                        made.insert(key, (offset, bytes));
                        part.offsets.push((key, offset));
                    }
                    if let Operation::Free(FreeTarget::AllocNode(alloc)) = operation
                        && let Some((offset, bytes)) = made.remove(alloc)
                    {
                        free.give(offset, bytes);
                    }
                }
                Role::Child => {
                    for &child in operation.bodies() {
                        free = self.graph(child, free, part);
                    }
                }
                Role::Conditional => {
                    let bodies: Vec<Part> = operation.bodies().iter().map(|&body| self.part(body)).collect();
                    let bytes = bodies.iter().map(|body| body.bytes).max().unwrap_or(0);
                    if bytes > 0 {
                        let base = free.take(bytes, &mut part.bytes);
                        free.give(base, bytes);
                        let inside = bodies.into_iter().flat_map(|body| body.offsets);
                        part.offsets.extend(inside.map(|(key, offset)| (key, base.saturating_add(offset))));
                    }
                }
                Role::Opaque | Role::Work => {}
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

/// Free ranges of the arena. Adjacent ranges are merged.
///
/// An arena of more bytes than there are addresses ends at the last one. Its ranges then overlap,
/// which does no harm: no memory is that large, so the instantiation fails.
#[derive(Default)]
struct Ranges {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Ranges {
    fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }

    /// Takes the smallest range that fits, or new memory at the end of the arena.
    fn take(&mut self, bytes: u64, end: &mut u64) -> u64 {
        let Some(&(size, offset)) = self.by_size.range((bytes, 0)..).next() else {
            let offset = *end;
            *end = end.saturating_add(bytes);
            return offset;
        };
        self.remove(offset, size);
        if size > bytes {
            self.insert(offset.saturating_add(bytes), size - bytes);
        }
        offset
    }

    fn give(&mut self, mut offset: u64, mut bytes: u64) {
        if let Some((&before, &size)) = self.by_offset.range(..offset).next_back()
            && before.saturating_add(size) == offset
        {
            self.remove(before, size);
            (offset, bytes) = (before, size.saturating_add(bytes));
        }
        let end = offset.saturating_add(bytes);
        if let Some(&size) = self.by_offset.get(&end) {
            self.remove(end, size);
            bytes = bytes.saturating_add(size);
        }
        self.insert(offset, bytes);
    }

    /// Takes over all ranges of another set. The smaller set is merged into the larger one.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gridloom_core::backend::Device;
    use gridloom_core::graph::{ConditionalSpec, Graph, Node};
    use gridloom_core::memory::MemoryKind;
    use gridloom_core::op::{AllocOp, ConditionalForm, Test};
    use proptest::prelude::*;

    use super::*;
    use crate::{CpuDevice, CpuOptions};

    fn device() -> Arc<dyn Device> {
        CpuDevice::new(CpuOptions::default()).unwrap()
    }

    fn alloc(bytes: u64) -> Operation {
        let op = AllocOp { len: bytes, element_size: 1, kind: MemoryKind::Device, peers: Default::default() };
        Operation::Alloc(Arc::new(op))
    }

    fn free(alloc: &Node) -> Operation {
        Operation::Free(FreeTarget::AllocNode(alloc.key()))
    }

    fn layout(graph: &Graph) -> (Arc<Definition>, Layout) {
        let definition = graph.definition();
        let layout = plan(&definition, &Allocations::of(&definition));
        (definition, layout)
    }

    /// What to add next to a random graph.
    #[derive(Clone, Debug)]
    enum Action {
        Alloc { bytes: u64, after: Vec<prop::sample::Index> },
        Free { which: prop::sample::Index, after: Vec<prop::sample::Index> },
        Body { loops: bool, actions: Vec<Action>, after: Vec<prop::sample::Index> },
        Empty { after: Vec<prop::sample::Index> },
    }

    fn action() -> impl Strategy<Value = Action> {
        let after = || prop::collection::vec(any::<prop::sample::Index>(), 0..3);
        let leaf = prop_oneof![
            3 => (1u64..2000, after()).prop_map(|(bytes, after)| Action::Alloc { bytes, after }),
            3 => (any::<prop::sample::Index>(), after()).prop_map(|(which, after)| Action::Free { which, after }),
            1 => after().prop_map(|after| Action::Empty { after }),
        ];
        leaf.prop_recursive(2, 40, 8, move |inner| {
            (any::<bool>(), prop::collection::vec(inner, 1..8), after())
                .prop_map(|(loops, actions, after)| Action::Body { loops, actions, after })
        })
    }

    fn fill(graph: &Graph, actions: &[Action]) {
        let mut nodes: Vec<Node> = Vec::new();
        let mut alive: Vec<Node> = Vec::new();
        let pick = |nodes: &[Node], after: &[prop::sample::Index]| -> Vec<Node> {
            if nodes.is_empty() {
                return vec![];
            }
            let mut picked: Vec<Node> = after.iter().map(|index| index.get(nodes).clone()).collect();
            picked.dedup();
            picked
        };
        for action in actions {
            let node = match action {
                Action::Alloc { bytes, after } => {
                    let after = pick(&nodes, after);
                    let node = graph.add(&after.iter().collect::<Vec<_>>(), alloc(*bytes)).unwrap();
                    alive.push(node.clone());
                    node
                }
                Action::Free { which, after } => {
                    if alive.is_empty() {
                        continue;
                    }
                    let made = alive.swap_remove(which.index(alive.len()));
                    let mut after = pick(&nodes, after);
                    after.push(made.clone());
                    graph.add(&after.iter().collect::<Vec<_>>(), free(&made)).unwrap()
                }
                Action::Body { loops, actions, after } => {
                    let after = pick(&nodes, after);
                    let (form, bodies) =
                        if *loops { (ConditionalForm::While, 1) } else { (ConditionalForm::Switch, 2) };
                    let condition = graph.condition(None);
                    let test = Test::Condition(condition.key());
                    let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies };
                    let node = graph.add_conditional(&after.iter().collect::<Vec<_>>(), spec).unwrap();
                    node.bodies().unwrap().iter().for_each(|body| fill(body, actions));
                    node
                }
                Action::Empty { after } => {
                    let after = pick(&nodes, after);
                    graph.add(&after.iter().collect::<Vec<_>>(), Operation::Empty).unwrap()
                }
            };
            nodes.push(node);
        }
        // What is left is freed at the end, as bodies must.
        for made in alive {
            graph.add(&[&made], free(&made)).unwrap();
        }
    }

    /// Returns whether there is a path from `from` to `to`.
    fn leads(definition: &Definition, from: NodeKey, to: NodeKey) -> bool {
        let mut seen = std::collections::HashSet::from([from]);
        let mut stack = vec![from];
        while let Some(key) = stack.pop() {
            if key == to {
                return true;
            }
            let next = definition.node(key).successors().iter().map(|edge| edge.node);
            stack.extend(next.filter(|&key| seen.insert(key)));
        }
        false
    }

    /// Returns the node that frees an allocation.
    fn freed_by(definition: &Definition, alloc: NodeKey) -> NodeKey {
        let frees = |&key: &NodeKey| matches!(definition.node(key).operation(), Operation::Free(FreeTarget::AllocNode(which)) if *which == alloc);
        definition.nodes(definition.node(alloc).graph()).find(frees).unwrap()
    }

    /// Returns whether the life of `first` ends before that of `second` begins, or only one of them
    /// is lived in a launch.
    fn apart(definition: &Definition, first: NodeKey, second: NodeKey) -> bool {
        let mut graph = definition.node(first).graph();
        while !definition.encloses(graph, definition.node(second).graph()) {
            graph = definition.node(definition.owner(graph).unwrap().0).graph();
        }
        let [(from, to), (other_from, other_to)] = [first, second].map(|alloc| {
            let whole = definition.node(alloc).graph() == graph;
            let around = definition.ancestor_in(graph, alloc).unwrap();
            if whole { (alloc, freed_by(definition, alloc)) } else { (around, around) }
        });
        if from == other_from {
            // In different bodies of one switch.
            return from == to && other_from == other_to;
        }
        leads(definition, to, other_from) || leads(definition, other_to, from)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn allocations_share_memory_only_if_the_order_keeps_their_lives_apart(
            actions in prop::collection::vec(action(), 1..40),
        ) {
            let graph = Graph::new(&device());
            fill(&graph, &actions);
            let (definition, layout) = layout(&graph);
            let placed: Vec<(NodeKey, u64, u64)> = layout
                .offsets
                .iter()
                .map(|(&key, &offset)| {
                    let alloc = definition.node(key).operation().as_alloc();
                    (key, offset, alloc.expect("only alloc nodes have memory").bytes())
                })
                .collect();
            for (index, &(first, at, bytes)) in placed.iter().enumerate() {
                prop_assert!(at % ALIGNMENT == 0 && at + bytes <= layout.bytes);
                for &(second, other_at, other_bytes) in &placed[..index] {
                    if at < other_at + other_bytes && other_at < at + bytes {
                        prop_assert!(apart(&definition, first, second), "{} and {}",
                            definition.label(first), definition.label(second));
                    }
                }
            }
        }
    }

    #[test]
    fn a_fan_that_joins_gives_its_memory_to_what_comes_after() {
        let graph = Graph::new(&device());
        let made: Vec<Node> = (0..4).map(|_| graph.add(&[], alloc(1024)).unwrap()).collect();
        let freed: Vec<Node> = made.iter().map(|made| graph.add(&[made], free(made)).unwrap()).collect();
        let join = graph.add(&freed.iter().collect::<Vec<_>>(), Operation::Empty).unwrap();
        let after = graph.add(&[&join], alloc(4096)).unwrap();
        graph.add(&[&after], free(&after)).unwrap();
        assert_eq!(layout(&graph).1.bytes, 4096);
    }

    #[test]
    fn freed_memory_goes_where_memory_is_wanted() {
        let graph = Graph::new(&device());
        let first = graph.add(&[], alloc(512)).unwrap();
        let freed = graph.add(&[&first], free(&first)).unwrap();
        // The first way on wants none.
        graph.add(&[&freed], Operation::Empty).unwrap();
        let second = graph.add(&[&freed], alloc(512)).unwrap();
        graph.add(&[&second], free(&second)).unwrap();
        assert_eq!(layout(&graph).1.bytes, 512);
    }

    #[test]
    fn memory_that_nothing_frees_is_not_in_the_arena() {
        let graph = Graph::new(&device());
        let kept = graph.add(&[], alloc(512)).unwrap();
        let (_, layout) = layout(&graph);
        assert_eq!((layout.bytes, layout.outliving), (0, vec![kept.key()]));
    }
}
