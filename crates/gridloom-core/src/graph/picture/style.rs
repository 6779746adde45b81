//! How each kind of node looks.

use crate::op::NodeKind;

/// The look of a kind of node.
pub(super) struct Style {
    pub(super) fill: &'static str,
    pub(super) line: &'static str,
    /// Attributes for Graphviz, after others.
    pub(super) dot: &'static str,
    /// The brackets around a label in Mermaid.
    pub(super) mermaid: (&'static str, &'static str),
}

/// Returns the look of a kind.
pub(super) fn style(kind: NodeKind) -> Style {
    const BOX: (&str, &str) = ("[", "]");
    let (fill, line, dot, mermaid) = match kind {
        NodeKind::Empty => ("#f8fafc", "#94a3b8", ", shape=ellipse, margin=\"0.06,0.03\"", ("((", "))")),
        NodeKind::Kernel => ("#dbeafe", "#2563eb", "", BOX),
        NodeKind::Alloc => ("#dcfce7", "#16a34a", ", shape=cylinder, style=filled", ("[(", ")]")),
        NodeKind::Free => ("#f0fdf4", "#86a893", ", shape=cylinder, style=\"filled,dashed\"", ("[(", ")]")),
        NodeKind::Memset => ("#fef9c3", "#ca8a04", "", BOX),
        NodeKind::Memcpy => ("#ffedd5", "#ea580c", "", BOX),
        NodeKind::Child => ("#f1f5f9", "#64748b", ", shape=tab, style=filled", BOX),
        NodeKind::Opaque => ("#e2e8f0", "#334155", ", shape=box3d, style=filled", BOX),
        NodeKind::Callback => ("#fce7f3", "#db2777", ", shape=note, style=filled", ("[/", "/]")),
        NodeKind::EventRecord | NodeKind::EventWait => {
            ("#ccfbf1", "#0d9488", ", shape=oval, style=filled, margin=\"0.02,0.02\"", (">", "]"))
        }
        NodeKind::If | NodeKind::IfElse | NodeKind::While | NodeKind::Switch => {
            ("#ede9fe", "#7c3aed", ", shape=hexagon, style=filled", ("{{", "}}"))
        }
    };
    Style { fill, line, dot, mermaid }
}

/// Returns the title of a body.
pub(super) fn body_title(kind: NodeKind, index: usize) -> String {
    match kind {
        NodeKind::If => "then".into(),
        NodeKind::IfElse => (if index == 0 { "then" } else { "else" }).into(),
        NodeKind::Switch => format!("case {index}"),
        // Only loops and embedded graphs come here; the others have no bodies.
        NodeKind::While
        | NodeKind::Child
        | NodeKind::Empty
        | NodeKind::Kernel
        | NodeKind::Alloc
        | NodeKind::Free
        | NodeKind::Memset
        | NodeKind::Memcpy
        | NodeKind::Callback
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Opaque => "body".into(),
    }
}
