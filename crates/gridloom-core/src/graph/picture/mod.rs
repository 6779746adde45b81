//! Pictures of a graph: for Graphviz, for Mermaid, and as JSON for programs.
//!
//! A picture is drawn from a snapshot. Equal graphs give equal pictures: nodes, buffers, events and
//! conditions are numbered in the order of appearance, and addresses are left out. Size and drawing
//! time are linear in the size of the graph.
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
mod style;

use super::Graph;
use super::definition::{Definition, GraphKey};

/// The version of the format of [`Graph::to_json`]. It is raised when an older reader would
/// misunderstand the new format.
pub const JSON_VERSION: u32 = 1;

impl Graph {
    /// Returns the graph in the DOT language of Graphviz, for `dot -Tsvg`.
    ///
    /// Nodes are coloured by kind and show their parameters. Bodies and embedded graphs are
    /// clusters. Programmatic edges are dashed. A dotted line leads from a kernel that gets a
    /// condition to the node that tests it. The type of plain arguments is unknown and guessed from
    /// the value. The picture of a deleted graph is empty.
    pub fn to_dot(&self) -> String {
        self.definition().to_dot(self.key())
    }

    /// Returns the graph as a Mermaid flowchart, which many Markdown viewers draw.
    ///
    /// It shows what [`to_dot`](Graph::to_dot) shows. By default Mermaid draws at most 500 edges
    /// and 50,000 characters. `maxEdges` and `maxTextSize` raise these limits.
    pub fn to_mermaid(&self) -> String {
        self.definition().to_mermaid(self.key())
    }

    /// Returns the graph as JSON.
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
    /// - Ids count from 0 in the order of appearance. Node ids are unique across all graphs of the
    ///   file.
    /// - `kind` is a [`NodeKind::name`](crate::op::NodeKind::name); `bodies` holds graphs like the
    ///   outer one. It is left out if there are none. `params` is left out for empty nodes and
    ///   children.
    /// - `params` by kind:
    ///   - kernel: `kernel`, `grid`, `block` (arrays of three), `shared`, and if set `cluster`,
    ///     `cooperative`, `programmatic`, `priority`; `args`, each `{ "value": hex }` in memory
    ///     order, `{ "memory": region }` or `{ "condition": id }`; a structure that holds pointers
    ///     is a value with `pointers`, each `{ "at": byte, "memory": region }` or `{ "at": byte,
    ///     "condition": id }`
    ///   - alloc: `len`, `element_size`, `memory`, and `peers` if there are any; free: `alloc` (a
    ///     node) or `buffer`
    ///   - memset: `dst`, `value`, `element_size`, `width`, `height`, `pitch`
    ///   - memcpy: `dst` and `src` (each `region`, `memory`, `pitch`, `rows`), `width`, `height`,
    ///     `depth`
    ///   - callback: `function` (`"closure"` or `"raw"`), and for raw ones `bytes` or `pointer:
    ///     true`
    ///   - record and wait: `event`
    ///   - opaque: `nodes` (how many) and `reason`
    ///   - conditionals: `condition`, `value` (a region) or `count`; loops also `test_first`, and
    ///     `max_passes` if set
    /// - A region is `{ "alloc": node, "name": …, "offset": …, "bytes": … }`, or has `buffer: id`
    ///   or `host: true` instead of `alloc` and `name`. The node is `null` if it is outside of the
    ///   picture or deleted.
    pub fn to_json(&self) -> String {
        self.definition().to_json(self.key())
    }
}

impl Definition {
    /// Returns a graph of this definition and everything inside it in the form of
    /// [`Graph::to_dot`].
    pub fn to_dot(&self, graph: GraphKey) -> String {
        dot::draw(self, graph)
    }

    /// Returns a graph of this definition and everything inside it in the form of
    /// [`Graph::to_mermaid`].
    pub fn to_mermaid(&self, graph: GraphKey) -> String {
        mermaid::draw(self, graph)
    }

    /// Returns a graph of this definition and everything inside it in the form of
    /// [`Graph::to_json`].
    pub fn to_json(&self, graph: GraphKey) -> String {
        json::write(self, graph)
    }
}

/// Replaces characters that some format cannot carry: control characters and non-characters.
fn printable(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        character if character.is_control() => char::REPLACEMENT_CHARACTER,
        character => character,
    }
}
