//! `graph.json` as text: one line for each kernel, buffer, node and port.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::check::check_format;
use crate::document::Document;
use crate::error::{Error, Result, bail};

/// The largest `graph.json` that is read.
const MOST_BYTES: usize = 256 << 20;

/// Writes a document.
pub(crate) fn write(document: &Document) -> String {
    let Document { format, version, .. } = document;
    let mut out = format!("{{\n  \"format\": \"{format}\",\n  \"version\": {version},\n");
    let _ = writeln!(out, "  \"modules\": {},", document.modules);
    list(&mut out, "kernels", &document.kernels);
    list(&mut out, "buffers", &document.buffers);
    let _ = writeln!(out, "  \"constants\": {},", document.constants);
    list(&mut out, "events", &document.events);
    list(&mut out, "conditions", &document.conditions);
    list(&mut out, "inputs", &document.inputs);
    list(&mut out, "outputs", &document.outputs);
    out.push_str("  \"graphs\": [");
    for (number, graph) in document.graphs.iter().enumerate() {
        out.push_str(if number == 0 { "\n    {\"nodes\": [" } else { ",\n    {\"nodes\": [" });
        for (number, node) in graph.nodes.iter().enumerate() {
            out.push_str(if number == 0 { "\n      " } else { ",\n      " });
            out.push_str(&line(node));
        }
        out.push_str(if graph.nodes.is_empty() { "]}" } else { "\n    ]}" });
    }
    out.push_str("\n  ]\n}\n");
    out
}

fn list(out: &mut String, name: &str, items: &[impl Serialize]) {
    let _ = write!(out, "  \"{name}\": [");
    for (number, item) in items.iter().enumerate() {
        out.push_str(if number == 0 { "\n    " } else { ",\n    " });
        out.push_str(&line(item));
    }
    out.push_str(if items.is_empty() { "],\n" } else { "\n  ],\n" });
}

fn line(item: &impl Serialize) -> String {
    // Writing numbers, strings and lists to a string cannot fail.
    serde_json::to_string(item).unwrap_or_default()
}

/// The beginning of `graph.json`, which every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Reads a document. It is not checked yet.
pub(crate) fn read(bytes: &[u8]) -> Result<Document> {
    if bytes.len() > MOST_BYTES {
        bail!("graph.json has {} bytes; at most {MOST_BYTES} are read", bytes.len());
    }
    let wrong = |error: serde_json::Error| Error::new(format!("graph.json: {error}"));
    let head: Head = serde_json::from_slice(bytes).map_err(wrong)?;
    check_format(&head.format, head.version)?;
    serde_json::from_slice(bytes).map_err(wrong)
}
