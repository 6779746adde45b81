//! Mermaid flowcharts.
//!
//! A node with graphs inside is a subgraph that holds its bodies as subgraphs. Edges lead to and
//! from the outer one.

use std::fmt::Write;

use super::describe::Describe;
use super::numbering::Numbering;
use super::printable;
use super::style::{Style, body_title, style};
use crate::graph::definition::{Definition, EdgeKind, GraphKey, NodeKey};
use crate::op::NodeKind;

pub(super) fn draw(definition: &Definition, graph: GraphKey) -> String {
    let numbering = &Numbering::new(definition, graph);
    let describe = Describe { definition, numbering };
    let mut drawing = Drawing { out: String::from("flowchart TD\n"), describe };
    drawing.graph(graph, 1);
    for &kind in NodeKind::ALL {
        let (class, Style { fill, line, .. }) = (class(kind), style(kind));
        drawing.line(1, format_args!("classDef {class} fill:{fill},stroke:{line},color:#0f172a"));
    }
    drawing.line(1, format_args!("classDef body fill:#ffffff,stroke:#cbd5e1,color:#475569"));
    drawing.out
}

/// Returns the name of a kind's style. The suffix avoids keywords of the language.
fn class(kind: NodeKind) -> String {
    format!("{}_node", kind.name().replace('-', "_"))
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

    /// Draws the nodes and edges of a graph. The nesting of graphs bounds the recursion.
    fn graph(&mut self, graph: GraphKey, depth: usize) {
        let definition = self.describe.definition;
        for key in definition.nodes(graph) {
            let number = self.number(key);
            let node = definition.node(key);
            let kind = node.operation.kind();
            let (class, label) = (class(kind), self.label(key));
            if node.bodies().is_empty() {
                let (open, close) = style(kind).mermaid;
                self.line(depth, format_args!("n{number}{open}\"{label}\"{close}:::{class}"));
                continue;
            }
            self.line(depth, format_args!("subgraph n{number}[\"{label}\"]"));
            for (index, &body) in node.bodies().iter().enumerate() {
                if kind == NodeKind::Child {
                    self.body(number, index, body, depth + 1);
                    continue;
                }
                let title = body_title(kind, index);
                self.line(depth + 1, format_args!("subgraph n{number}_{index}[\"{title}\"]"));
                self.body(number, index, body, depth + 2);
                self.line(depth + 1, format_args!("end"));
                self.line(depth + 1, format_args!("class n{number}_{index} body"));
            }
            self.line(depth, format_args!("end"));
            self.line(depth, format_args!("class n{number} {class}"));
        }
        for (from, to, kind) in definition.edges(graph) {
            let arrow = match kind {
                EdgeKind::Full => "-->",
                EdgeKind::Programmatic => "-. programmatic .->",
            };
            let (from, to) = (self.number(from), self.number(to));
            self.line(depth, format_args!("n{from} {arrow} n{to}"));
        }
    }

    fn body(&mut self, number: usize, index: usize, body: GraphKey, depth: usize) {
        self.graph(body, depth);
        if self.describe.definition.node_count(body) == 0 {
            // A subgraph must not be empty.
            self.line(depth, format_args!("n{number}_{index}_none[\"nothing\"]:::body"));
        }
    }

    fn label(&self, key: NodeKey) -> String {
        let mut label = String::new();
        escape_into(&mut label, &self.describe.name(key));
        for line in self.describe.lines(key) {
            label.push_str("<br/>");
            escape_into(&mut label, &line);
        }
        label
    }
}

/// Escapes text for a quoted label, where `#…;` is an entity and a backtick would start Markdown.
fn escape_into(out: &mut String, text: &str) {
    if text.is_empty() {
        out.push(' ');
    }
    for character in text.chars() {
        match character {
            '#' | '"' | '<' | '>' | '&' | '`' | '\\' | ';' | '*' | '_' | '~' | '[' | ']' | '{' | '}' => {
                let _ = write!(out, "#{};", u32::from(character));
            }
            character => out.push(printable(character)),
        }
    }
}
