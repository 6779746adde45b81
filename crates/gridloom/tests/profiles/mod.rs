//! Profiles of launches.
//!
//! Everything runs with both ways of measuring: the device's own, and timer kernels.

mod executables;
mod numbers;

use gridloom::prelude::*;
use gridloom::{Profile, ProfileOptions};

use crate::support::for_each_device;

/// Runs a test on each device with each way of measuring.
#[track_caller]
fn for_each_method(test: impl Fn(&Device, &ProfileOptions) -> Result<()>) {
    for timer_kernels in [false, true] {
        let options = ProfileOptions::new().timer_kernels(timer_kernels);
        for_each_device(|device| {
            test(device, &options)
                .map_err(|error| error.context(format_args!("timer kernels: {timer_kernels}")))
        });
    }
}

/// Checks what holds for every profile.
#[track_caller]
pub(crate) fn check(profile: &Profile) {
    let text = format!("{profile:#}");
    let path: u64 = profile.critical_path.iter().map(|piece| piece.end_ns - piece.start_ns).sum();
    assert_eq!(path, profile.critical_ns, "{text}");
    assert_eq!(profile.critical_ns + profile.critical_gap_ns, profile.launch_ns, "{text}");
    for pair in profile.critical_path.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns, "the path goes forward: {text}");
    }
    assert!(profile.launch_ns <= profile.measured_ns, "{text}");
    for span in &profile.spans {
        assert!(span.start_ns <= span.end_ns && span.end_ns <= profile.launch_ns, "{span:?} in {text}");
    }
    let kept: u64 = profile.spans.len() as u64;
    let is_measured = |kind: &str| kind != "child";
    let runs: u64 = profile.nodes.iter().filter(|node| is_measured(&node.kind)).map(|node| node.runs).sum();
    assert_eq!(kept + profile.spans_left_out, runs, "{text}");
    for node in profile.nodes.iter().filter(|node| node.runs > 0 && is_measured(&node.kind)) {
        assert!(node.min_ns <= node.max_ns && node.busy_ns <= node.max_ns * node.runs, "{node:?}");
        assert!(node.start_ns <= node.end_ns && node.critical_ns <= profile.critical_ns, "{node:?}");
    }
    // Traces and JSON are valid, and the JSON holds the whole profile.
    let trace: serde_json::Value = serde_json::from_str(&profile.to_chrome_trace()).unwrap();
    let pieces = profile.spans.len() + profile.critical_path.len();
    assert_eq!(trace["traceEvents"].as_array().map(Vec::len), Some(pieces + 2));
    // A reader may round the last digit of the shares, which are the only floating-point numbers.
    let counts = |profile: &Profile| {
        let mut counts = profile.clone();
        (counts.parallelism, counts.possible_parallelism, counts.ran_wide) = (0.0, 0.0, None);
        counts.nodes.iter_mut().for_each(|node| node.ran_wide = None);
        counts
    };
    let again: Profile = serde_json::from_str(&profile.to_json()).unwrap();
    assert_eq!(counts(&again), counts(profile));
}

/// Returns the row of a node.
#[track_caller]
fn row<'a>(profile: &'a Profile, name: &str) -> &'a gridloom::NodeProfile {
    profile.node(name).unwrap_or_else(|| panic!("no {name} in {profile:#}"))
}
