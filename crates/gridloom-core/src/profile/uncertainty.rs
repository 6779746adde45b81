//! How far off the times of a profile may be.
//!
//! The cost of measuring a run is an estimate, which may be off for a single run by as much as it
//! differs between nodes that do nothing, and by a step of the clock. For fills and copies between
//! timer kernels, what the device takes to go there and back is an estimate too, which differs more
//! ([`Switching`](super::Switching)).

use rustc_hash::FxHashMap;

use super::Profile;

/// Adds the uncertainty of each node. The rows have that of what going to the node and back takes.
pub(super) fn add(profile: &mut Profile) {
    let rows: FxHashMap<usize, usize> =
        profile.nodes.iter().enumerate().map(|(row, node)| (node.id, row)).collect();
    let spread_ns = profile.uncertainty_ns - profile.clock_step_ns;
    // A node has a larger number than the node around it, so what is inside comes first.
    let mut inside = vec![0u64; profile.nodes.len()];
    for at in (0..profile.nodes.len()).rev() {
        let row = &mut profile.nodes[at];
        if row.runs == 0 {
            continue;
        }
        let own =
            if row.kind == "child" { 0 } else { row.uncertainty_ns.max(spread_ns) + profile.clock_step_ns };
        row.uncertainty_ns = own + inside[at] / row.runs;
        let all = row.uncertainty_ns.saturating_mul(row.runs);
        if let Some(&around) = row.parent.and_then(|parent| rows.get(&parent)) {
            inside[around] = inside[around].saturating_add(all);
        }
    }
}
