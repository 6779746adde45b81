//! Writer of an indented text tree.

use std::collections::HashMap;
use std::fmt::Write;

use crate::picture::{Graph, Picture, printable, reference};

impl Picture {
    /// Returns the graph as an indented tree: a line for each node with its dependencies, and its
    /// bodies below it. Control characters in names, which could affect a terminal, are replaced.
    pub fn to_tree(&self) -> String {
        let mut text = format!("{} ({} nodes)\n", printable(&self.title), self.node_count());
        write_graph(&mut text, &self.graph, 1);
        text
    }
}

fn write_graph(text: &mut String, graph: &Graph, depth: usize) {
    let names: HashMap<usize, String> =
        graph.nodes.iter().map(|node| (node.id, printable(&reference(&node.name)).into_owned())).collect();
    let mut waits: HashMap<usize, Vec<&str>> = HashMap::new();
    for edge in &graph.edges {
        waits.entry(edge.to).or_default().push(names.get(&edge.from).map_or("?", |name| name));
    }
    for node in &graph.nodes {
        let indent = "  ".repeat(depth);
        let _ = write!(text, "{indent}{}", printable(&node.name));
        if !node.name.starts_with(&node.kind) {
            let _ = write!(text, "  [{}]", printable(&node.kind));
        }
        match waits.get(&node.id).map(Vec::as_slice) {
            None | Some([]) => {}
            Some(names) if names.len() <= 4 => {
                let _ = write!(text, "  after {}", names.join(", "));
            }
            Some(names) => {
                let _ = write!(text, "  after {} and {} more", names[..3].join(", "), names.len() - 3);
            }
        }
        text.push('\n');
        for body in &node.bodies {
            if !body.label.is_empty() {
                let _ = writeln!(text, "{indent}  {}:", printable(&body.label));
            }
            write_graph(text, &body.graph, depth + 1 + usize::from(!body.label.is_empty()));
        }
    }
}
