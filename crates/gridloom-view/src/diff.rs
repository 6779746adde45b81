//! The differences between two pictures.
//!
//! Nodes are paired graph by graph: first those with the same name and kind in the same order, then
//! those with the same name and kind in any order, then the remaining nodes of one kind. Numbers in
//! names that Gridloom made (`kernel#3`) do not count, since every node that is added shifts them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use serde::Serialize;

use crate::picture::{Graph, Node, Picture, printable, reference};

/// The largest table for pairing the nodes of two graphs. Larger graphs are paired by name alone.
const MOST_CELLS: usize = 16 << 20;

/// How far a node of the same kind is looked for.
const FARTHEST: usize = 1000;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DifferenceKind {
    /// The node is only in the first graph.
    Removed,
    /// The node is only in the second graph.
    Added,
    /// The node has other parameters, or another name.
    Changed,
    /// The node depends on other nodes.
    Edges,
}

/// One difference between two graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// What differs.
    pub kind: DifferenceKind,
    /// The node, with the names of the nodes around it.
    pub node: String,
    /// How it differs.
    pub detail: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            DifferenceKind::Removed => '-',
            DifferenceKind::Added => '+',
            DifferenceKind::Changed | DifferenceKind::Edges => '~',
        };
        // Control characters could affect a terminal.
        let (node, detail) = (printable(&self.node), printable(&self.detail));
        match detail.is_empty() {
            true => write!(f, "{sign} {node}"),
            false => write!(f, "{sign} {node}: {detail}"),
        }
    }
}

impl Picture {
    /// Returns how another graph differs from this one. Nothing if they are equal but for their
    /// titles.
    pub fn diff(&self, other: &Picture) -> Vec<Difference> {
        let mut found = Vec::new();
        compare(&self.graph, &other.graph, "", &mut found);
        found
    }
}

/// Returns the name without the number that Gridloom gave it.
fn key(node: &Node) -> (&str, &str, &str) {
    match node.name.split_once('#') {
        Some((kind, rest)) if kind == node.kind => {
            (kind, rest.trim_start_matches(|c: char| c.is_ascii_digit()), &node.kind)
        }
        _ => (&node.name, "", &node.kind),
    }
}

/// Compares two graphs. The nesting of graphs, which the readers bound, bounds the recursion.
fn compare(old: &Graph, new: &Graph, path: &str, found: &mut Vec<Difference>) {
    let pairs = pair(&old.nodes, &new.nodes);
    let mut partners: Vec<Option<usize>> = vec![None; new.nodes.len()];
    for (one, other) in pairs.iter().enumerate() {
        if let Some(other) = other {
            partners[*other] = Some(one);
        }
    }
    let before = |graph: &Graph| {
        let places: HashMap<usize, usize> =
            graph.nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        let mut before: Vec<Vec<(usize, bool)>> = vec![Vec::new(); graph.nodes.len()];
        for edge in &graph.edges {
            if let (Some(&from), Some(&to)) = (places.get(&edge.from), places.get(&edge.to)) {
                before[to].push((from, edge.programmatic));
            }
        }
        before
    };
    let (old_before, new_before) = (before(old), before(new));
    for (place, node) in old.nodes.iter().enumerate() {
        let name = format!("{path}{}", reference(&node.name));
        let mut add = |kind, detail: String| found.push(Difference { kind, node: name.clone(), detail });
        let Some(partner) = pairs[place] else {
            add(DifferenceKind::Removed, kind_of(node));
            continue;
        };
        let other = &new.nodes[partner];
        if key(node) != key(other) {
            add(
                DifferenceKind::Changed,
                format!("name: {} -> {}", reference(&node.name), reference(&other.name)),
            );
        }
        for detail in changed_facts(node, other) {
            add(DifferenceKind::Changed, detail);
        }
        let edges = changed_edges(&old_before[place], &new_before[partner], &pairs, &old.nodes, &new.nodes);
        if !edges.is_empty() {
            add(DifferenceKind::Edges, edges.join(", "));
        }
        for index in 0..node.bodies.len().max(other.bodies.len()) {
            let nothing = Graph::default();
            let body = |node: &Node| node.bodies.get(index).map(|body| body.label.clone());
            let label = body(node).or_else(|| body(other)).filter(|label| !label.is_empty());
            let inside = match label {
                Some(label) => format!("{name}[{label}]/"),
                None => format!("{name}/"),
            };
            let one = node.bodies.get(index).map_or(&nothing, |body| &body.graph);
            let two = other.bodies.get(index).map_or(&nothing, |body| &body.graph);
            compare(one, two, &inside, found);
        }
    }
    for (node, _) in new.nodes.iter().zip(&partners).filter(|(_, partner)| partner.is_none()) {
        found.push(Difference {
            kind: DifferenceKind::Added,
            node: format!("{path}{}", reference(&node.name)),
            detail: kind_of(node),
        });
    }
}

fn kind_of(node: &Node) -> String {
    if node.name.starts_with(&node.kind) { String::new() } else { node.kind.clone() }
}

fn changed_facts(node: &Node, other: &Node) -> Vec<String> {
    // Where a kernel stands in its source is not a property of the graph.
    let counts = |fact: &&(String, String)| fact.0 != "source" && !fact.0.is_empty();
    let values = |node: &Node| -> HashMap<String, String> {
        node.facts.iter().rev().filter(counts).cloned().collect()
    };
    let (ours, theirs) = (values(node), values(other));
    let names = node.facts.iter().filter(counts);
    let names = names.chain(other.facts.iter().filter(counts).filter(|fact| !ours.contains_key(&fact.0)));
    let mut changes = Vec::new();
    for (name, _) in names {
        match (ours.get(name), theirs.get(name)) {
            (Some(one), Some(two)) if one != two => changes.push(format!("{name}: {one} -> {two}")),
            (Some(one), None) => changes.push(format!("{name}: {one} -> nothing")),
            (None, Some(two)) => changes.push(format!("{name}: nothing -> {two}")),
            _ => {}
        }
    }
    // Lines of a label of DOT have no names.
    let nameless = |node: &Node| -> Vec<String> {
        node.facts.iter().filter(|fact| fact.0.is_empty()).map(|fact| fact.1.clone()).collect()
    };
    let (ours, theirs) = (nameless(node), nameless(other));
    let gone = ours.iter().filter(|line| !theirs.contains(line)).map(|line| format!("no longer {line}"));
    let come = theirs.iter().filter(|line| !ours.contains(line)).map(|line| format!("now {line}"));
    changes.extend(gone.chain(come));
    changes
}

fn changed_edges(
    old: &[(usize, bool)],
    new: &[(usize, bool)],
    pairs: &[Option<usize>],
    old_nodes: &[Node],
    new_nodes: &[Node],
) -> Vec<String> {
    let word = |programmatic: bool| if programmatic { " (programmatic)" } else { "" };
    let ours: HashSet<(Option<usize>, bool)> = old.iter().map(|&(from, kind)| (pairs[from], kind)).collect();
    let theirs: HashSet<(Option<usize>, bool)> = new.iter().map(|&(from, kind)| (Some(from), kind)).collect();
    let gone = old.iter().filter(|&&(from, kind)| !theirs.contains(&(pairs[from], kind)));
    let gone = gone
        .map(|&(from, kind)| format!("no longer after {}{}", reference(&old_nodes[from].name), word(kind)));
    let come = new.iter().filter(|&&(from, kind)| !ours.contains(&(Some(from), kind)));
    let come =
        come.map(|&(from, kind)| format!("now after {}{}", reference(&new_nodes[from].name), word(kind)));
    gone.chain(come).collect()
}

/// Returns the place in `new` that each node of `old` is paired with.
fn pair(old: &[Node], new: &[Node]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; old.len()];
    let start = old.iter().zip(new).take_while(|(one, two)| key(one) == key(two)).count();
    let rest = old.len().min(new.len()) - start;
    let end = (0..rest)
        .take_while(|back| key(&old[old.len() - 1 - back]) == key(&new[new.len() - 1 - back]))
        .count();
    for (place, pair) in pairs.iter_mut().take(start).enumerate() {
        *pair = Some(place);
    }
    for back in 1..=end {
        pairs[old.len() - back] = Some(new.len() - back);
    }
    let (one, two) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    if (one.len() + 1).saturating_mul(two.len() + 1) <= MOST_CELLS {
        for (place, partner) in longest_common(one, two).iter().enumerate() {
            pairs[start + place] = partner.map(|partner| start + partner);
        }
    }
    pair_moved(old, new, &mut pairs);
    pair_kinds(old, new, &mut pairs);
    pairs
}

/// Pairs nodes by the longest sequence of keys that both have.
fn longest_common(old: &[Node], new: &[Node]) -> Vec<Option<usize>> {
    let columns = new.len() + 1;
    let mut lengths = vec![0u32; (old.len() + 1) * columns];
    let (ours, theirs): (Vec<_>, Vec<_>) = (old.iter().map(key).collect(), new.iter().map(key).collect());
    for one in (0..old.len()).rev() {
        for two in (0..new.len()).rev() {
            lengths[one * columns + two] = match ours[one] == theirs[two] {
                true => lengths[(one + 1) * columns + two + 1] + 1,
                false => lengths[(one + 1) * columns + two].max(lengths[one * columns + two + 1]),
            };
        }
    }
    let mut pairs = vec![None; old.len()];
    let (mut one, mut two) = (0, 0);
    while one < old.len() && two < new.len() {
        if ours[one] == theirs[two] {
            pairs[one] = Some(two);
            (one, two) = (one + 1, two + 1);
        } else if lengths[(one + 1) * columns + two] >= lengths[one * columns + two + 1] {
            one += 1;
        } else {
            two += 1;
        }
    }
    pairs
}

/// Pairs what is left over with the same key, in any order: the order in which a file lists nodes
/// means nothing.
fn pair_moved(old: &[Node], new: &[Node], pairs: &mut [Option<usize>]) {
    let taken: HashSet<usize> = pairs.iter().flatten().copied().collect();
    let free: Vec<usize> = (0..new.len()).filter(|place| !taken.contains(place)).collect();
    let mut places: HashMap<_, VecDeque<usize>> = HashMap::new();
    for place in free {
        places.entry(key(&new[place])).or_default().push_back(place);
    }
    for (node, partner) in old.iter().zip(pairs).filter(|(_, partner)| partner.is_none()) {
        *partner = places.get_mut(&key(node)).and_then(VecDeque::pop_front);
    }
}

/// Pairs what is left over between two pairs: nodes of the same kind, in order.
fn pair_kinds(old: &[Node], new: &[Node], pairs: &mut [Option<usize>]) {
    let mut is_taken = vec![false; new.len()];
    pairs.iter().flatten().for_each(|&place| is_taken[place] = true);
    // For each node, the partner of the next node that has one.
    let mut ends = vec![new.len(); old.len()];
    let mut end = new.len();
    for place in (0..old.len()).rev() {
        end = pairs[place].unwrap_or(end);
        ends[place] = end;
    }
    let mut from = 0;
    for place in 0..old.len() {
        if let Some(partner) = pairs[place] {
            from = partner + 1;
            continue;
        }
        let until = ends[place].min(from + FARTHEST);
        let partner = (from..until).find(|&other| !is_taken[other] && new[other].kind == old[place].kind);
        if let Some(partner) = partner {
            (pairs[place], is_taken[partner], from) = (Some(partner), true, partner + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Body, Edge};

    fn node(id: usize, name: &str, kind: &str, facts: &[(&str, &str)]) -> Node {
        let facts = facts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Node { id, name: name.into(), kind: kind.into(), facts, ..Node::default() }
    }

    fn chain(nodes: Vec<Node>) -> Graph {
        let edges = nodes.windows(2).map(|two| Edge { from: two[0].id, to: two[1].id, programmatic: false });
        Graph { edges: edges.collect(), nodes: nodes.clone() }
    }

    fn lines(old: Graph, new: Graph) -> Vec<String> {
        let picture = |graph| Picture { title: "a".into(), graph };
        picture(old).diff(&picture(new)).iter().map(ToString::to_string).collect()
    }

    fn three() -> Vec<Node> {
        vec![
            node(0, "memset#0", "memset", &[("value", "1")]),
            node(1, "kernel#1 step", "kernel", &[("grid", "4")]),
            node(2, "copy back", "memcpy", &[]),
        ]
    }

    #[test]
    fn equal_graphs_have_no_differences() {
        assert!(lines(chain(three()), chain(three())).is_empty());
    }

    #[test]
    fn an_added_node_shifts_numbers_but_not_names() {
        let mut more = three();
        more.insert(1, node(7, "memset#1", "memset", &[("value", "1")]));
        more[2].name = "kernel#2 step".into();
        assert_eq!(
            lines(chain(three()), chain(more.clone())),
            ["~ kernel#1 step: no longer after memset#0, now after memset#1", "+ memset#1"]
        );
        assert_eq!(
            lines(chain(more), chain(three())),
            ["- memset#1", "~ kernel#2 step: no longer after memset#1, now after memset#0"]
        );
    }

    #[test]
    fn changed_parameters_names_and_kernels_are_told() {
        let mut other = three();
        other[0].facts[0].1 = "2".into();
        other[1] = node(1, "kernel#1 leap", "kernel", &[("grid", "4"), ("shared", "64")]);
        other[2].name = "copy home".into();
        assert_eq!(
            lines(chain(three()), chain(other)),
            [
                "~ memset#0: value: 1 -> 2",
                "~ kernel#1 step: name: kernel#1 step -> kernel#1 leap",
                "~ kernel#1 step: shared: nothing -> 64",
                "~ copy back: name: copy back -> copy home",
            ]
        );
    }

    #[test]
    fn nodes_that_a_file_lists_in_another_order_are_the_same_nodes() {
        let mut graph = chain(three());
        graph.nodes.swap(0, 2);
        assert!(lines(chain(three()), graph.clone()).is_empty());
        graph.nodes[2].facts[0].1 = "2".into();
        assert_eq!(lines(chain(three()), graph), ["~ memset#0: value: 1 -> 2"]);
    }

    #[test]
    fn lines_without_names_are_compared_line_by_line() {
        let with = |lines: &[(&str, &str)]| chain(vec![node(0, "copy", "memcpy", lines)]);
        let (one, two) = (with(&[("", "a → b"), ("", "4 B")]), with(&[("", "a → b"), ("", "8 B")]));
        assert_eq!(lines(one, two), ["~ copy: no longer 4 B", "~ copy: now 8 B"]);
    }

    #[test]
    fn bodies_are_compared_inside_their_nodes() {
        let with = |value: &str| {
            let mut outer = node(9, "which?", "if-else", &[]);
            for label in ["then", "else"] {
                let graph = chain(vec![node(
                    10,
                    "fill",
                    "memset",
                    &[("value", if label == "then" { "1" } else { value })],
                )]);
                outer.bodies.push(Body { label: label.into(), graph });
            }
            chain(vec![outer])
        };
        assert_eq!(lines(with("3"), with("4")), ["~ which?[else]/fill: value: 3 -> 4"]);
    }
}
