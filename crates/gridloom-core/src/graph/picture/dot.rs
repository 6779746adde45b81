//! The DOT language of Graphviz.
//!
//! A node with graphs inside is a cluster: its own box on top, its bodies as clusters below, and an
//! invisible point at the bottom where edges leave. Its successors are therefore drawn below its
//! bodies.

use std::fmt::Write;

use super::describe::Describe;
use super::numbering::Numbering;
use super::printable;
use super::style::{body_title, style};
use crate::graph::definition::{Definition, EdgeKind, GraphKey, NodeKey};
use crate::op::{NodeKind, Operation};

const HEAD: &str = "digraph gridloom {
  graph [compound=true, fontname=\"Helvetica\", fontsize=11, fontcolor=\"#475569\", nodesep=0.3, ranksep=0.4, splines=true, style=rounded]
  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11, fontcolor=\"#0f172a\", penwidth=1.2, margin=\"0.14,0.07\"]
  edge [color=\"#475569\", penwidth=1.1, arrowsize=0.7, fontname=\"Helvetica\", fontsize=9, fontcolor=\"#64748b\"]
";

pub(super) fn draw(definition: &Definition, graph: GraphKey) -> String {
    let numbering = &Numbering::new(definition, graph);
    let describe = Describe { definition, numbering };
    let mut drawing = Drawing { out: String::from(HEAD), describe };
    drawing.graph(graph, 1);
    drawing.settings(graph);
    drawing.out.push_str("}\n");
    drawing.out
}

struct Drawing<'a> {
    out: String,
    describe: Describe<'a>,
}

impl Drawing<'_> {
    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 2 * depth);
    }

    fn number(&self, node: NodeKey) -> usize {
        self.describe.numbering.node(node).expect("a node of the picture")
    }

    fn has_bodies(&self, node: NodeKey) -> bool {
        !self.describe.definition.node(node).bodies().is_empty()
    }

    /// Draws the nodes and edges of a graph. The nesting of graphs bounds the recursion.
    fn graph(&mut self, graph: GraphKey, depth: usize) {
        let definition = self.describe.definition;
        for node in definition.nodes(graph) {
            if self.has_bodies(node) {
                self.cluster(node, depth);
            } else {
                self.node(node, depth);
            }
        }
        for (from, to, kind) in definition.edges(graph) {
            self.edge(from, to, kind, depth);
        }
    }

    fn node(&mut self, key: NodeKey, depth: usize) {
        let number = self.number(key);
        let kind = self.describe.definition.node(key).operation.kind();
        let (style, label) = (style(kind), self.label(key));
        self.line(
            depth,
            format_args!(
                "n{number} [label=<{label}>, fillcolor=\"{}\", color=\"{}\"{}]",
                style.fill, style.line, style.dot
            ),
        );
    }

    /// Draws a node with its bodies.
    fn cluster(&mut self, key: NodeKey, depth: usize) {
        let definition = self.describe.definition;
        let number = self.number(key);
        let node = definition.node(key);
        let kind = node.operation.kind();
        let line = style(kind).line;
        self.line(depth, format_args!("subgraph cluster_n{number} {{"));
        self.line(
            depth + 1,
            format_args!("label=\"\"; color=\"{line}\"; bgcolor=\"#00000006\"; penwidth=1.2; margin=10;"),
        );
        self.node(key, depth + 1);
        for (index, &body) in node.bodies().iter().enumerate() {
            let name = format!("cluster_n{number}_{index}");
            let title = if kind == NodeKind::Child { String::new() } else { body_title(kind, index) };
            self.line(depth + 1, format_args!("subgraph {name} {{"));
            self.line(
                depth + 2,
                format_args!("label=\"{title}\"; labeljust=l; color=\"#cbd5e1\"; bgcolor=\"#ffffff\";"),
            );
            self.graph(body, depth + 2);
            if definition.node_count(body) == 0 {
                self.line(
                    depth + 2,
                    format_args!(
                        "n{number}_{index} [label=\"nothing\", shape=plaintext, style=\"\", fontcolor=\"#94a3b8\"]"
                    ),
                );
            }
            self.line(depth + 1, format_args!("}}"));
            self.body_lines(number, kind, index, body, depth + 1);
        }
        self.line(
            depth + 1,
            format_args!("n{number}_out [label=\"\", shape=point, width=0.01, style=invis]"),
        );
        self.line(depth, format_args!("}}"));
    }

    /// Draws the lines from a node to its body and back, and invisible ones that keep the body in
    /// between.
    fn body_lines(&mut self, number: usize, kind: NodeKind, index: usize, body: GraphKey, depth: usize) {
        let definition = self.describe.definition;
        let name = format!("cluster_n{number}_{index}");
        let style = "style=dashed, color=\"#94a3b8\"";
        if definition.node_count(body) == 0 {
            self.line(depth, format_args!("n{number} -> n{number}_{index} [lhead={name}, {style}]"));
            self.line(depth, format_args!("n{number}_{index} -> n{number}_out [style=invis]"));
            return;
        }
        let mut entered = false;
        let mut last = None;
        for node in definition.nodes(body) {
            let data = definition.node(node);
            if data.predecessors.is_empty() {
                let to = self.number(node);
                match std::mem::replace(&mut entered, true) {
                    false => self.line(depth, format_args!("n{number} -> n{to} [lhead={name}, {style}]")),
                    true => self.line(depth, format_args!("n{number} -> n{to} [style=invis]")),
                }
            }
            if data.successors.is_empty() {
                let from = self.exit(node);
                self.line(depth, format_args!("{from} -> n{number}_out [style=invis]"));
                last = Some(from);
            }
        }
        if let (NodeKind::While, Some(from)) = (kind, last) {
            self.line(
                depth,
                format_args!("{from}:e -> n{number}:e [constraint=false, tooltip=\"again\", {style}]"),
            );
        }
    }

    /// Returns the point where edges from a node start.
    fn exit(&self, node: NodeKey) -> String {
        let out = if self.has_bodies(node) { "_out" } else { "" };
        format!("n{}{out}", self.number(node))
    }

    fn edge(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind, depth: usize) {
        let mut attributes = Vec::new();
        if self.has_bodies(from) {
            attributes.push(format!("ltail=cluster_n{}", self.number(from)));
        }
        if self.has_bodies(to) {
            attributes.push(format!("lhead=cluster_n{}", self.number(to)));
        }
        if kind == EdgeKind::Programmatic {
            attributes
                .push("style=dashed, color=\"#2563eb\", arrowhead=empty, label=\"  programmatic\"".into());
        }
        let attributes =
            if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
        let (start, end) = (self.exit(from), self.number(to));
        self.line(depth, format_args!("{start} -> n{end}{attributes}"));
    }

    /// Draws dotted lines from kernels that get a condition to the nodes that test it.
    fn settings(&mut self, graph: GraphKey) {
        let definition = self.describe.definition;
        for graph in definition.graphs_inside(graph) {
            for node in definition.nodes(graph) {
                let operation = &definition.node(node).operation;
                let Operation::Kernel(_) = operation else { continue };
                operation.for_each_condition(|condition| {
                    let tested_by = definition.get_condition(condition).and_then(|data| data.used_by);
                    if let Some(to) = tested_by.and_then(|node| self.describe.numbering.node(node)) {
                        let from = self.number(node);
                        self.line(
                            1,
                            format_args!(
                                "n{from} -> n{to} [style=dotted, color=\"#7c3aed\", arrowhead=odot, constraint=false, tooltip=\"sets the condition\"]"
                            ),
                        );
                    }
                });
            }
        }
    }

    fn label(&self, key: NodeKey) -> String {
        let mut label = String::from("<B>");
        escape_into(&mut label, &self.describe.name(key));
        label.push_str("</B>");
        for line in self.describe.lines(key) {
            let _ = write!(label, "<BR/><FONT POINT-SIZE=\"9\" COLOR=\"#475569\">");
            escape_into(&mut label, &line);
            label.push_str("</FONT>");
        }
        label
    }
}

/// Escapes text for an HTML-like label.
fn escape_into(out: &mut String, text: &str) {
    // HTML-like labels do not allow empty elements.
    if text.is_empty() {
        out.push(' ');
    }
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character => out.push(printable(character)),
        }
    }
}
