//! A profile in the trace format of Chrome, which Perfetto reads too.

use serde_json::{Value, json};

use super::{Profile, Span};

impl Profile {
    /// Returns the runs in the JSON trace format of Chrome, for <https://ui.perfetto.dev> or
    /// `chrome://tracing`. A second row shows the critical path.
    pub fn to_chrome_trace(&self) -> String {
        let mut events = vec![
            json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": format!("Gridloom on {}", self.device) } }),
            json!({ "ph": "M", "pid": 2, "name": "process_name", "args": { "name": "critical path" } }),
        ];
        let mut rows = Rows::default();
        for span in &self.spans {
            let row = span
                .thread
                .map_or_else(|| rows.of(span, |outer| self.is_inside(span.node, outer)), u64::from);
            let node = self.nodes.binary_search_by_key(&span.node, |node| node.id);
            let Ok(node) = node.map(|at| &self.nodes[at]) else { continue };
            let mut facts = json!({ "node": span.node, "uncertainty_ns": node.uncertainty_ns });
            if !node.is_reliable() {
                facts["reliable"] = json!(false);
            }
            if !span.pass.is_empty() {
                facts["pass"] = json!(span.pass);
            }
            if let Some(bytes) = node.bytes {
                facts["bytes"] = json!(bytes);
            }
            events.push(event(1, row, &node.name, &node.kind, (span.start_ns, span.end_ns), facts));
        }
        for piece in &self.critical_path {
            let node = self.nodes.binary_search_by_key(&piece.node, |node| node.id);
            if let Ok(node) = node.map(|at| &self.nodes[at]) {
                let facts = json!({ "node": piece.node });
                events.push(event(2, 0, &node.name, &node.kind, (piece.start_ns, piece.end_ns), facts));
            }
        }
        json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
    }
}

impl Profile {
    /// Returns whether a node is inside another one.
    fn is_inside(&self, node: usize, outer: usize) -> bool {
        let row =
            |id: usize| self.nodes.binary_search_by_key(&id, |node| node.id).ok().map(|at| &self.nodes[at]);
        let mut around = row(node).and_then(|row| row.parent);
        while let Some(id) = around {
            if id == outer {
                return true;
            }
            around = row(id).and_then(|row| row.parent);
        }
        false
    }
}

fn event(process: u64, row: u64, name: &str, kind: &str, (start, end): (u64, u64), facts: Value) -> Value {
    // The format counts in microseconds.
    json!({ "ph": "X", "pid": process, "tid": row, "name": name, "cat": kind,
        "ts": start as f64 / 1e3, "dur": (end - start) as f64 / 1e3, "args": facts })
}

/// Rows for runs that overlap, where no thread is known. Runs inside another may lie in its row.
#[derive(Default)]
struct Rows(Vec<Vec<(u64, usize)>>);

impl Rows {
    /// Returns a row for the next span. Spans come by their start, longer ones first.
    fn of(&mut self, span: &Span, is_inside: impl Fn(usize) -> bool) -> u64 {
        for (row, open) in self.0.iter_mut().enumerate() {
            while open.last().is_some_and(|last| last.0 <= span.start_ns) {
                open.pop();
            }
            if open.last().is_none_or(|last| last.0 >= span.end_ns && is_inside(last.1)) {
                open.push((span.end_ns, span.node));
                return row as u64;
            }
        }
        self.0.push(vec![(span.end_ns, span.node)]);
        self.0.len() as u64 - 1
    }
}
