//! The structure of a graph, without its operands.

use gridloom::prelude::*;

/// One node: its kind, where it comes after what, and the graphs inside it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeShape {
    kind: NodeKind,
    after: Vec<(usize, EdgeKind)>,
    inside: Vec<Vec<NodeShape>>,
}

/// Returns the nodes of a graph in the order they were added, with edges as positions in it.
pub(crate) fn shape(graph: &Graph) -> Result<Vec<NodeShape>> {
    let (nodes, edges) = (graph.nodes(), graph.edges());
    let position = |node: &Node| nodes.iter().position(|other| other == node).expect("a node of the graph");
    nodes
        .iter()
        .map(|node| {
            let before = edges.iter().filter(|(_, to, _)| to == node);
            let mut after: Vec<(usize, EdgeKind)> =
                before.map(|(from, _, kind)| (position(from), *kind)).collect();
            after.sort_unstable_by_key(|&(position, _)| position);
            let inside = node.bodies()?.iter().map(shape).collect::<Result<_>>()?;
            Ok(NodeShape { kind: node.kind()?, after, inside })
        })
        .collect()
}

/// Returns the kinds of the nodes of a graph, and its edges as pairs of positions.
pub(crate) fn outline(graph: &Graph) -> Result<(Vec<NodeKind>, Vec<(usize, usize)>)> {
    let places = shape(graph)?;
    let edges = places
        .iter()
        .enumerate()
        .flat_map(|(to, place)| place.after.iter().map(move |&(from, _)| (from, to)))
        .collect();
    Ok((places.iter().map(|place| place.kind).collect(), edges))
}
