//! Writers of Graphviz's DOT and of Mermaid.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use crate::colour::{colour_of, ink_on};
use crate::picture::{Graph, Node, Picture, printable};

impl Picture {
    /// Returns the graph in Graphviz's DOT language. A node with bodies is a cluster that holds the
    /// node and a cluster for each body.
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph \"{}\" {{\n", dot_escape(&self.title));
        text.push_str(
            "  graph [compound=true, fontname=\"Helvetica\", fontsize=11, nodesep=0.3, ranksep=0.4, style=rounded];\n  \
             node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11, penwidth=0];\n  \
             edge [color=\"#6b7482\", arrowsize=0.7];\n",
        );
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
        if node.bodies.is_empty() {
            dot_node(text, node, "", &indent);
        } else {
            dot_cluster(text, node, &indent, depth);
        }
    }
    let nodes: HashMap<usize, &Node> = graph.nodes.iter().map(|node| (node.id, node)).collect();
    let has_bodies = |id: usize| nodes.get(&id).is_some_and(|node| !node.bodies.is_empty());
    for edge in &graph.edges {
        // Edges of a node with bodies end at its cluster. Those that leave it come after its
        // bodies.
        let (from, to) = (edge.from, edge.to);
        let (out, tail) = if has_bodies(from) {
            ("_out", format!(" [ltail=cluster_n{from}]"))
        } else {
            ("", String::new())
        };
        let head = if has_bodies(to) { format!(" [lhead=cluster_n{to}]") } else { String::new() };
        let style = if edge.programmatic { " [style=dashed, tooltip=programmatic]" } else { "" };
        let _ = writeln!(text, "{indent}n{from}{out} -> n{to}{tail}{head}{style};");
    }
}

fn dot_node(text: &mut String, node: &Node, more: &str, indent: &str) {
    let (fill, ink) = (colour_of(&node.kind), ink_on(colour_of(&node.kind)));
    let _ = writeln!(
        text,
        "{indent}n{} [label=\"{}\", fillcolor=\"{fill}\", fontcolor=\"{ink}\", tooltip=\"{}\"{more}];",
        node.id,
        dot_escape(&node.name),
        dot_escape(&node.kind)
    );
}

/// Writes a node with its bodies. An invisible node stands for its end.
fn dot_cluster(text: &mut String, node: &Node, indent: &str, depth: usize) {
    let (id, inner) = (node.id, "  ".repeat(depth + 1));
    let colour = colour_of(&node.kind);
    let _ = writeln!(
        text,
        "{indent}subgraph cluster_n{id} {{\n{inner}label=\"\"; color=\"{colour}\"; bgcolor=\"#00000008\";"
    );
    dot_node(text, node, ", shape=hexagon, style=filled", &inner);
    for (index, body) in node.bodies.iter().enumerate() {
        let _ = writeln!(
            text,
            "{inner}subgraph cluster_n{id}_{index} {{\n{inner}  label=\"{}\"; color=\"#cbd5e1\"; bgcolor=\"#ffffff\";",
            dot_escape(&body.label)
        );
        dot_graph(text, &body.graph, depth + 2);
        let nodes = &body.graph.nodes;
        let (starts, ends): (HashSet<usize>, HashSet<usize>) =
            body.graph.edges.iter().map(|edge| (edge.from, edge.to)).unzip();
        let first = nodes.iter().find(|node| !ends.contains(&node.id));
        let last = nodes.iter().rev().find(|node| !starts.contains(&node.id));
        let (Some(first), Some(last)) = (first, last) else {
            let _ =
                writeln!(text, "{inner}  n{id}_{index} [label=\"\", shape=point, style=invis];\n{inner}}}");
            let _ = writeln!(text, "{inner}n{id} -> n{id}_{index} [style=invis];");
            let _ = writeln!(text, "{inner}n{id}_{index} -> n{id}_out [style=invis];");
            continue;
        };
        let out = if last.bodies.is_empty() { "" } else { "_out" };
        let _ = writeln!(text, "{inner}}}");
        let _ = writeln!(text, "{inner}n{id} -> n{} [lhead=cluster_n{id}_{index}, style=dashed];", first.id);
        let _ = writeln!(text, "{inner}n{}{out} -> n{id}_out [style=invis];", last.id);
    }
    let _ =
        writeln!(text, "{inner}n{id}_out [label=\"\", shape=point, width=0.01, style=invis];\n{indent}}}");
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

/// Returns a quoted label. Mermaid reads no empty ones.
fn mermaid_label(text: &str) -> String {
    let label = mermaid_escape(text);
    format!("\"{}\"", if label.trim().is_empty() { "(no name)" } else { &label })
}

fn mermaid_graph(text: &mut String, graph: &Graph, depth: usize) {
    let indent = "  ".repeat(depth);
    for node in &graph.nodes {
        let label = mermaid_label(&node.name);
        if node.bodies.is_empty() {
            let _ = writeln!(text, "{indent}n{}[{label}]", node.id);
            continue;
        }
        let _ = writeln!(text, "{indent}subgraph n{}[{label}]", node.id);
        for (index, body) in node.bodies.iter().enumerate() {
            if body.label.is_empty() {
                mermaid_graph(text, &body.graph, depth + 1);
                continue;
            }
            let label = mermaid_label(&body.label);
            let _ = writeln!(text, "{indent}  subgraph n{}_{index}[{label}]", node.id);
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
