//! Layered layout: every node is below the nodes it depends on, and near to them.

use crate::picture::Graph;

/// How often the order within layers is improved. Each sweep visits every edge once.
const SWEEPS: usize = 4;

/// Sets `layer` and `place` of every node of this graph (not of its bodies).
///
/// A node's layer is the length of the longest path to it. Within a layer nodes are ordered by the
/// mean place of their neighbours above and below, alternately. Edges that close a cycle, which a
/// text may contain, are ignored.
pub(crate) fn assign(graph: &mut Graph) {
    let count = graph.nodes.len();
    let index_of: std::collections::HashMap<usize, usize> =
        graph.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    let mut above = vec![Vec::new(); count];
    let mut below = vec![Vec::new(); count];
    for edge in &graph.edges {
        let (Some(&from), Some(&to)) = (index_of.get(&edge.from), index_of.get(&edge.to)) else { continue };
        above[to].push(from);
        below[from].push(to);
    }
    let layers = longest_paths(&above, &below);
    let depth = layers.iter().max().map_or(0, |deepest| deepest + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); depth];
    for (node, &layer) in layers.iter().enumerate() {
        rows[layer].push(node);
    }
    let mut place = vec![0.0; count];
    number(&rows, &mut place);
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let neighbours = if down { &above } else { &below };
        let order: Vec<usize> = if down { (0..depth).collect() } else { (0..depth).rev().collect() };
        for row in order {
            let mut keyed: Vec<(f64, usize)> = rows[row]
                .iter()
                .map(|&node| (mean(&neighbours[node], &place).unwrap_or(place[node]), node))
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            let width = keyed.len().max(1) as f64;
            for (position, &(_, node)) in keyed.iter().enumerate() {
                rows[row][position] = node;
                place[node] = (position as f64 + 0.5) / width;
            }
        }
    }
    for (layer, row) in rows.iter().enumerate() {
        for (position, &node) in row.iter().enumerate() {
            graph.nodes[node].layer = layer;
            graph.nodes[node].place = position;
        }
    }
}

/// Sets the places of nodes as fractions of their layer's width, so that wide and narrow layers
/// compare.
fn number(rows: &[Vec<usize>], place: &mut [f64]) {
    for row in rows {
        for (position, &node) in row.iter().enumerate() {
            place[node] = (position as f64 + 0.5) / row.len() as f64;
        }
    }
}

fn mean(neighbours: &[usize], place: &[f64]) -> Option<f64> {
    let sum: f64 = neighbours.iter().map(|&node| place[node]).sum();
    (!neighbours.is_empty()).then(|| sum / neighbours.len() as f64)
}

/// Returns the length of the longest path to each node. Nodes of a cycle are released one by one,
/// in order.
fn longest_paths(above: &[Vec<usize>], below: &[Vec<usize>]) -> Vec<usize> {
    let count = above.len();
    let mut waits: Vec<usize> = above.iter().map(Vec::len).collect();
    let mut layers = vec![0; count];
    let mut done = vec![false; count];
    let mut ready: std::collections::VecDeque<usize> = (0..count).filter(|&node| waits[node] == 0).collect();
    let mut next_stuck = 0;
    loop {
        while let Some(node) = ready.pop_front() {
            if std::mem::replace(&mut done[node], true) {
                continue;
            }
            for &after in &below[node] {
                if done[after] {
                    continue;
                }
                layers[after] = layers[after].max(layers[node] + 1);
                waits[after] -= 1;
                if waits[after] == 0 {
                    ready.push_back(after);
                }
            }
        }
        match (next_stuck..count).find(|&node| !done[node]) {
            Some(node) => {
                next_stuck = node;
                ready.push_back(node);
            }
            None => return layers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Edge, Node};

    fn graph(count: usize, edges: &[(usize, usize)]) -> Graph {
        let node = |id| Node { id, ..Node::default() };
        let edge = |&(from, to)| Edge { from, to, programmatic: false };
        Graph { nodes: (0..count).map(node).collect(), edges: edges.iter().map(edge).collect() }
    }

    fn layers_of(mut graph: Graph) -> Vec<usize> {
        assign(&mut graph);
        graph.nodes.iter().map(|node| node.layer).collect()
    }

    #[test]
    fn a_node_is_below_the_longest_way_to_it() {
        assert_eq!(layers_of(graph(4, &[(0, 1), (1, 2), (0, 2), (0, 3)])), [0, 1, 2, 1]);
    }

    #[test]
    fn a_cycle_ends_all_the_same() {
        assert_eq!(layers_of(graph(3, &[(0, 1), (1, 2), (2, 0)])).len(), 3);
        assert_eq!(layers_of(graph(1, &[(0, 0)])), [0]);
    }

    #[test]
    fn a_long_chain_takes_no_deep_recursion() {
        let edges: Vec<_> = (1..100_000).map(|node| (node - 1, node)).collect();
        assert_eq!(layers_of(graph(100_000, &edges))[99_999], 99_999);
    }

    #[test]
    fn crossings_that_a_swap_removes_are_removed() {
        let mut graph = graph(4, &[(0, 3), (1, 2)]);
        assign(&mut graph);
        let place = |id: usize| graph.nodes[id].place;
        assert_eq!(place(0) < place(1), place(3) < place(2));
    }
}
