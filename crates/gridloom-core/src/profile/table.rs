//! A profile as a table for people.

use std::fmt;

use super::{NodeProfile, Profile};

/// The most rows of a table, unless all are asked for.
const ROWS: usize = 40;
/// The longest name that is shown whole.
const NAME: usize = 40;

/// Shows a summary and a table of the nodes in the order of the graph. Large graphs show the nodes
/// that took longest; `{:#}` shows all.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |time: u64| Time(time).to_string();
        writeln!(
            f,
            "one launch on {}: {} ({} with measuring, about {} a node)",
            self.device,
            ns(self.launch_ns),
            ns(self.measured_ns),
            ns(self.node_cost_ns)
        )?;
        writeln!(
            f,
            "critical path {} and gaps of {}; parallelism {:.2} of {:.2} possible",
            ns(self.critical_ns),
            ns(self.critical_gap_ns),
            self.parallelism,
            self.possible_parallelism
        )?;
        write!(f, "nodes on the device {}, callbacks {}", ns(self.device_ns), ns(self.host_ns))?;
        if let Some(share) = self.ran_wide {
            write!(f, "; {:.1} % of kernel threads ran in vectors", 100.0 * share)?;
        }
        writeln!(f)?;
        if self.added_nodes > 0 {
            let before = ns(self.before_ns);
            writeln!(f, "measuring added {} nodes, and {before} before the graph", self.added_nodes)?;
        }
        for remark in &self.remarks {
            writeln!(f, "note: {remark}")?;
        }
        let shown = self.shown(f.alternate());
        let names: Vec<String> = shown.iter().map(|row| self.indented(row)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
        writeln!(f)?;
        writeln!(
            f,
            "{:<width$}  {:<8}  {:>7}  {:>9}  {:>6}  {:>9}  {:>9}  {:>9}  {:>9}",
            "node", "kind", "runs", "time", "share", "each", "±", "gap", "critical"
        )?;
        for (row, name) in shown.iter().zip(&names) {
            if row.disabled {
                writeln!(f, "{name:<width$}  {:<8}  disabled", row.kind)?;
                continue;
            }
            let share = 100.0 * row.busy_ns as f64 / self.launch_ns.max(1) as f64;
            write!(
                f,
                "{name:<width$}  {:<8}  {:>7}  {:>9}  {share:>5.1}%  {:>9}  {:>9}  {:>9}  {:>9}",
                row.kind,
                row.runs,
                ns(row.busy_ns),
                ns(row.mean_ns()),
                ns(row.uncertainty_ns),
                ns(row.gap_ns),
                ns(row.critical_ns)
            )?;
            let remarks = remarks(row);
            if remarks.is_empty() { writeln!(f)? } else { writeln!(f, "  {remarks}")? }
        }
        let left_out = self.nodes.len() - shown.len();
        if left_out > 0 {
            writeln!(f, "({left_out} nodes that took less are left out)")?;
        }
        Ok(())
    }
}

impl Profile {
    /// Returns the rows to show: all, or those that took longest with what is around them.
    fn shown(&self, all: bool) -> Vec<&NodeProfile> {
        if all || self.nodes.len() <= ROWS {
            return self.nodes.iter().collect();
        }
        let mut slowest: Vec<&NodeProfile> = self.nodes.iter().collect();
        slowest.sort_by_key(|row| std::cmp::Reverse(row.busy_ns));
        slowest.truncate(ROWS);
        let mut wanted: Vec<usize> = slowest.iter().map(|row| row.id).collect();
        wanted.sort_unstable();
        self.nodes.iter().filter(|row| wanted.binary_search(&row.id).is_ok()).collect()
    }

    fn indented(&self, row: &NodeProfile) -> String {
        let mut depth = 0;
        let mut parent = row.parent;
        while let Some(id) = parent {
            depth += 1;
            let at = self.nodes.binary_search_by_key(&id, |node| node.id);
            parent = at.ok().and_then(|at| self.nodes[at].parent);
        }
        // The path of the nodes around it is shown by the indentation.
        let inner = if row.parent.is_some() { row.name.rsplit('/').next().unwrap_or("") } else { &row.name };
        // Control characters could affect a terminal.
        let shown = inner.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
        let mut name: String = shown.take(NAME).collect();
        if inner.chars().count() > NAME {
            name.pop();
            name.push('…');
        }
        format!("{:indent$}{name}", "", indent = 2 * depth)
    }
}

/// Returns what is special about a node.
fn remarks(row: &NodeProfile) -> String {
    let mut remarks = Vec::new();
    if let Some(passes) = row.passes {
        remarks.push(format!("{passes} {}", if passes == 1 { "pass" } else { "passes" }));
    }
    if let Some(rate) = row.bytes_per_second() {
        remarks.push(format!("{:.3} GB/s", rate / 1e9));
    }
    if let Some(share) = row.ran_wide {
        remarks.push(format!("{:.0} % wide", 100.0 * share));
    }
    if row.on_host {
        remarks.push("on the host".to_owned());
    }
    if row.runs > 0 && !row.is_reliable() {
        remarks.push("too short to tell".to_owned());
    }
    remarks.join(", ")
}

/// A time with three digits and its unit.
pub(super) struct Time(pub(super) u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (self.0 as f64 / 1e3, "µs"),
            1_000_000..1_000_000_000 => (self.0 as f64 / 1e6, "ms"),
            _ => (self.0 as f64 / 1e9, "s"),
        };
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown = [0, 999, 1_000, 12_345, 123_456, 1_234_567, 2_500_000_000].map(|ns| Time(ns).to_string());
        assert_eq!(shown, ["0 ns", "999 ns", "1.00 µs", "12.3 µs", "123 µs", "1.23 ms", "2.50 s"]);
    }
}
