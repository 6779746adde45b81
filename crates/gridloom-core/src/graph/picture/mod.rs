//! Pictures of a graph: for graphviz, for Mermaid, and as JSON for programs.
//!
//! A picture is drawn from a snapshot and is the same for the same graph: nodes, buffers, events and conditions are
//! numbered as they are met, addresses are left out. Its size, and the time to draw it, grow with the graph and no faster.
//!
//! ```
//! use gridloom_core::graph::Graph;
//! use gridloom_core::null::NullDevice;
//! use gridloom_core::op::Operation;
//!
//! let graph = Graph::new(&NullDevice::new());
//! let first = graph.add(&[], Operation::Empty)?.named("first")?;
//! graph.add(&[&first], Operation::Empty)?.named("second")?;
//! assert!(graph.to_dot().contains("n0 -> n1"));
//! assert!(graph.to_mermaid().contains("n0 --> n1"));
//! assert!(graph.to_json().contains(r#""name": "second""#));
//! # Ok::<(), gridloom_core::Error>(())
//! ```

mod describe;
mod dot;
mod json;
mod mermaid;
mod numbering;

use super::Graph;
use super::definition::{Definition, GraphKey};
use crate::op::NodeKind;

/// The format of [`Graph::to_json`]: raised when a reader of an older one would misunderstand.
pub const JSON_VERSION: u32 = 1;

impl Graph {
    /// The graph in the DOT language of graphviz: `dot -Tsvg`.
    ///
    /// Nodes are coloured by kind and show their parameters; bodies and embedded graphs are clusters; programmatic edges are
    /// dashed; a dotted line leads from a kernel that is given a condition to the node that tests it. What four or eight bytes of
    /// an argument mean is not known and guessed from the value. A handle to a deleted graph gives an empty picture.
    pub fn to_dot(&self) -> String {
        self.definition().to_dot(self.key())
    }

    /// The graph as a Mermaid flowchart, which many viewers of Markdown draw.
    ///
    /// It shows what [`to_dot`](Graph::to_dot) shows. Mermaid draws 500 edges and 50,000 characters unless `maxEdges` and
    /// `maxTextSize` are set higher.
    pub fn to_mermaid(&self) -> String {
        self.definition().to_mermaid(self.key())
    }

    /// The graph as JSON.
    ///
    /// ```json
    /// {
    ///   "format": "gridloom-graph", "version": 1,
    ///   "conditions": [{ "id": 0, "default": 1, "tested_by": 4 }],
    ///   "buffers":    [{ "id": 0, "memory": "device", "bytes": 4096 }],
    ///   "events":     [{ "id": 0, "timing": true, "blocking": false }],
    ///   "graph": {
    ///     "nodes": [{ "id": 0, "name": "relax", "kind": "kernel", "params": { … }, "bodies": [ … ] }],
    ///     "edges": [{ "from": 0, "to": 1, "kind": "full" }]
    ///   }
    /// }
    /// ```
    ///
    /// - Ids count from 0 in the order of appearance; those of nodes are unique across all graphs of the file.
    /// - `kind` is a [`NodeKind::name`]; `bodies` holds graphs like the outer one and is left out where there are none. So is
    ///   `params` for kinds without any: empty nodes and children.
    /// - `params` by kind:
    ///   - kernel: `kernel`, `grid`, `block` (arrays of three), `shared`, and where set `cluster`, `cooperative`, `programmatic`, `priority`; `args`, each
    ///     `{ "value": hex }` in the order of memory, `{ "memory": region }` or `{ "condition": id }`; a structure is a value with `pointers` where it
    ///     holds some, each `{ "at": byte, "memory": region }` or `{ "at": byte, "condition": id }`
    ///   - alloc: `len`, `element_size`, `memory`, and `peers` where there are any; free: `alloc` (a node) or `buffer`
    ///   - memset: `dst`, `value`, `element_size`, `width`, `height`, `pitch`
    ///   - memcpy: `dst` and `src` (each `region`, `memory`, `pitch`, `rows`), `width`, `height`, `depth`
    ///   - callback: `function` (`"closure"` or `"raw"`), and for raw ones `bytes` or `pointer: true`
    ///   - record and wait: `event`
    ///   - opaque: `nodes` (how many) and `reason`
    ///   - conditionals: `condition`, `value` (a region) or `count`; loops also `test_first`, and `max_passes` where set
    /// - A region is `{ "alloc": node, "name": …, "offset": …, "bytes": … }`, or has `buffer: id` or `host: true` instead of
    ///   `alloc` and `name`. The node is `null` where it is outside of the picture or deleted.
    pub fn to_json(&self) -> String {
        self.definition().to_json(self.key())
    }
}

impl Definition {
    /// A graph of this definition, with all inside it, as [`Graph::to_dot`].
    pub fn to_dot(&self, graph: GraphKey) -> String {
        dot::draw(self, graph)
    }

    /// A graph of this definition, with all inside it, as [`Graph::to_mermaid`].
    pub fn to_mermaid(&self, graph: GraphKey) -> String {
        mermaid::draw(self, graph)
    }

    /// A graph of this definition, with all inside it, as [`Graph::to_json`].
    pub fn to_json(&self, graph: GraphKey) -> String {
        json::write(self, graph)
    }
}

/// The colours of a kind of node: inside and outline.
struct Colors {
    fill: &'static str,
    line: &'static str,
}

fn colors(kind: NodeKind) -> Colors {
    let (fill, line) = match kind {
        NodeKind::Empty => ("#f8fafc", "#94a3b8"),
        NodeKind::Kernel => ("#dbeafe", "#2563eb"),
        NodeKind::Alloc => ("#dcfce7", "#16a34a"),
        NodeKind::Free => ("#f0fdf4", "#86a893"),
        NodeKind::Memset => ("#fef9c3", "#ca8a04"),
        NodeKind::Memcpy => ("#ffedd5", "#ea580c"),
        NodeKind::Child => ("#f1f5f9", "#64748b"),
        NodeKind::Opaque => ("#e2e8f0", "#334155"),
        NodeKind::Callback => ("#fce7f3", "#db2777"),
        NodeKind::EventRecord | NodeKind::EventWait => ("#ccfbf1", "#0d9488"),
        NodeKind::If | NodeKind::IfElse | NodeKind::While | NodeKind::Switch => ("#ede9fe", "#7c3aed"),
    };
    Colors { fill, line }
}

/// What a body is to its node.
fn body_title(kind: NodeKind, index: usize) -> String {
    match (kind, index) {
        (NodeKind::IfElse | NodeKind::If, 0) => "then".into(),
        (NodeKind::IfElse, _) => "else".into(),
        (NodeKind::Switch, index) => format!("case {index}"),
        _ => "body".into(),
    }
}

/// A character as text that every format can carry: control characters and non-characters are replaced.
fn printable(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        character if character.is_control() => char::REPLACEMENT_CHARACTER,
        character => character,
    }
}
