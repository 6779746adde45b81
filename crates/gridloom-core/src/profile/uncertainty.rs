//! How far off the times of a profile may be.
//!
//! The cost of measuring a run is an estimate, which may be off for a single run by as much as it
//! differs between nodes that do nothing, and by a step of the clock.
//!
//! Timer kernels around a fill or a copy have a further cost, which timers around nothing do not
//! show: many devices run fills and copies elsewhere than kernels, and going there and back takes
//! time. That is part of the measured time, so it is no more than the shortest fill or copy of the
//! launch took.

use rustc_hash::FxHashMap;

use super::Profile;

/// The most that going from a kernel to a fill or a copy and back is assumed to take. On an H200 it
/// takes up to 4.3 µs.
const MOST_SWITCHING_NS: u64 = 5_000;

/// Adds the uncertainty of each node.
pub(super) fn add(profile: &mut Profile) {
    let is_transfer = |kind: &str| kind == "memset" || kind == "memcpy";
    let shortest =
        profile.nodes.iter().filter(|row| is_transfer(&row.kind) && row.runs > 0).map(|row| row.min_ns).min();
    let switching = match (&*profile.method, shortest) {
        ("timer kernels", Some(shortest)) => {
            profile.remarks.push(
                "times of fills and copies include what the device takes to go from a kernel to them and back"
                    .to_owned(),
            );
            shortest.min(MOST_SWITCHING_NS)
        }
        _ => 0,
    };
    let rows: FxHashMap<usize, usize> =
        profile.nodes.iter().enumerate().map(|(row, node)| (node.id, row)).collect();
    // A node has a larger number than the node around it, so what is inside comes first.
    let mut inside = vec![0u64; profile.nodes.len()];
    for at in (0..profile.nodes.len()).rev() {
        let own = if profile.nodes[at].kind == "child" { 0 } else { profile.uncertainty_ns };
        let row = &mut profile.nodes[at];
        if row.runs == 0 {
            continue;
        }
        let own = own + if is_transfer(&row.kind) { switching } else { 0 };
        row.uncertainty_ns = own + inside[at] / row.runs;
        let all = row.uncertainty_ns.saturating_mul(row.runs);
        if let Some(&around) = row.parent.and_then(|parent| rows.get(&parent)) {
            inside[around] = inside[around].saturating_add(all);
        }
    }
}
