//! Writer of an indented text tree.

use std::fmt::Write;

use crate::picture::{Graph, Picture};

impl Picture {
    /// Returns the graph as an indented tree: a line for each node with its dependencies, and its
    /// bodies below it.
    pub fn to_tree(&self) -> String {
        let mut text = format!("{} ({} nodes)\n", self.title, self.node_count());
        write_graph(&mut text, &self.graph, 1);
        text
    }
}

fn write_graph(text: &mut String, graph: &Graph, depth: usize) {
    let names: std::collections::HashMap<usize, &str> =
        graph.nodes.iter().map(|node| (node.id, node.name.as_str())).collect();
    let mut waits: std::collections::HashMap<usize, Vec<&str>> = std::collections::HashMap::new();
    for edge in &graph.edges {
        waits.entry(edge.to).or_default().push(names.get(&edge.from).copied().unwrap_or("?"));
    }
    for node in &graph.nodes {
        let indent = "  ".repeat(depth);
        let _ = write!(text, "{indent}{}", node.name);
        if !node.name.starts_with(&node.kind) {
            let _ = write!(text, "  [{}]", node.kind);
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
                let _ = writeln!(text, "{indent}  {}:", body.label);
            }
            write_graph(text, &body.graph, depth + 1 + usize::from(!body.label.is_empty()));
        }
    }
}
