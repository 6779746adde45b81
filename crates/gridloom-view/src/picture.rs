//! The model of a picture.

use std::borrow::Cow;

use serde::Serialize;

/// A graph with a title, ready to be drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// The title above the graph.
    pub title: String,
    /// The outermost graph.
    pub graph: Graph,
}

/// Nodes and edges of one graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Graph {
    /// The nodes, in the order of the text.
    pub nodes: Vec<Node>,
    /// The edges. Both ends are nodes of this graph.
    pub edges: Vec<Edge>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Node {
    /// Its number, unique in the picture.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Its kind, in the words of Gridloom: `kernel`, `memcpy`, `while` …
    pub kind: String,
    /// Names and values of its parameters, in order.
    pub facts: Vec<(String, String)>,
    /// Graphs inside it: the bodies of a conditional, or an embedded graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<Body>,
    /// Its layer, from the top. Set by [`Picture::arrange`].
    pub layer: usize,
    /// Its place within the layer, from the left. Set by [`Picture::arrange`].
    pub place: usize,
}

/// A graph inside a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Body {
    /// When it runs: `then`, `else`, `case 2`, or nothing.
    pub label: String,
    /// The graph.
    #[serde(flatten)]
    pub graph: Graph,
}

/// A dependency between two nodes of one graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The number of the node that runs first.
    pub from: usize,
    /// The number of the node that depends on it.
    pub to: usize,
    /// Whether the second node may start before the first has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
}

impl Picture {
    /// Returns the number of nodes, including those of bodies.
    pub fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    /// Assigns every node its layer and its place within the layer, in every graph.
    pub fn arrange(&mut self) {
        self.graph.arrange();
    }
}

impl Graph {
    /// Returns the number of nodes, including those of bodies.
    pub fn node_count(&self) -> usize {
        let inside = |node: &Node| node.bodies.iter().map(|body| body.graph.node_count()).sum::<usize>();
        self.nodes.iter().map(|node| 1 + inside(node)).sum()
    }

    fn arrange(&mut self) {
        crate::layers::assign(self);
        for body in self.nodes.iter_mut().flat_map(|node| &mut node.bodies) {
            body.graph.arrange();
        }
    }
}

/// The most characters of a name where another node refers to it.
const MOST_REFERENCE: usize = 200;

/// Returns a name as other nodes show it. A long name is cut: it may be that of many nodes, and all
/// of them together would take more memory than the file.
pub(crate) fn reference(name: &str) -> String {
    match name.char_indices().nth(MOST_REFERENCE) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Returns a name without control characters.
pub(crate) fn printable(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) {
        Cow::Owned(name.replace(char::is_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(name)
    }
}

/// Returns the label above a body of a node.
pub(crate) fn body_label(kind: &str, index: usize) -> String {
    match (kind, index) {
        ("if-else" | "if_else", 0) => "then".to_owned(),
        ("if-else" | "if_else", 1) => "else".to_owned(),
        ("switch", index) => format!("case {index}"),
        _ => String::new(),
    }
}
