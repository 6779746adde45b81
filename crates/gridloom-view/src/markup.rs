//! Writers of Graphviz's DOT and of Mermaid.

use std::fmt::Write;

use crate::picture::{Graph, Picture, printable};

impl Picture {
    /// Returns the graph in Graphviz's DOT language, bodies as clusters.
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph \"{}\" {{\n  node [shape=box];\n", dot_escape(&self.title));
        dot_graph(&mut text, &self.graph, 1);
        text.push_str("}\n");
        text
    }

    /// Returns the graph as a Mermaid flow chart, bodies as subgraphs.
    pub fn to_mermaid(&self) -> String {
        let mut text = "flowchart TB\n".to_owned();
        mermaid_graph(&mut text, &self.graph, 1);
        text
    }
}

fn dot_escape(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    printable(&escaped).into_owned()
}

fn dot_graph(text: &mut String, graph: &Graph, depth: usize) {
    let indent = "  ".repeat(depth);
    for node in &graph.nodes {
        let _ = writeln!(text, "{indent}n{} [label=\"{}\"];", node.id, dot_escape(&node.name));
        for (index, body) in node.bodies.iter().enumerate() {
            let label = if body.label.is_empty() { &node.name } else { &body.label };
            let _ = writeln!(
                text,
                "{indent}subgraph cluster_{}_{index} {{\n{indent}  label=\"{}\";",
                node.id,
                dot_escape(label)
            );
            dot_graph(text, &body.graph, depth + 1);
            let _ = writeln!(text, "{indent}}}");
        }
    }
    for edge in &graph.edges {
        let style = if edge.programmatic { " [style=dashed]" } else { "" };
        let _ = writeln!(text, "{indent}n{} -> n{}{style};", edge.from, edge.to);
    }
}

fn mermaid_escape(text: &str) -> String {
    // Inside quotes, Mermaid reads entities by number.
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '#' | '<' | '>' | '&' | '`' => {
                let _ = write!(escaped, "#{};", u32::from(character));
            }
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

fn mermaid_graph(text: &mut String, graph: &Graph, depth: usize) {
    let indent = "  ".repeat(depth);
    for node in &graph.nodes {
        if node.bodies.is_empty() {
            let _ = writeln!(text, "{indent}n{}[\"{}\"]", node.id, mermaid_escape(&node.name));
            continue;
        }
        let _ = writeln!(text, "{indent}subgraph n{}[\"{}\"]", node.id, mermaid_escape(&node.name));
        for (index, body) in node.bodies.iter().enumerate() {
            let _ = writeln!(
                text,
                "{indent}  subgraph n{}_{index}[\"{}\"]",
                node.id,
                mermaid_escape(&body.label)
            );
            mermaid_graph(text, &body.graph, depth + 2);
            let _ = writeln!(text, "{indent}  end");
        }
        let _ = writeln!(text, "{indent}end");
    }
    for edge in &graph.edges {
        let arrow = if edge.programmatic { "-.->" } else { "-->" };
        let _ = writeln!(text, "{indent}n{} {arrow} n{}", edge.from, edge.to);
    }
}
