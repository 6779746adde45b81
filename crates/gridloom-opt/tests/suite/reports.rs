//! The report says of each node what was done with it, or why not.

use gridloom_core::executable::{NodeReport, Report};
use gridloom_core::op::{CallbackOp, Operation};
use gridloom_core::{Executable, Graph, Node};
use gridloom_opt::{Optimization, Optimizations};

use crate::graphs::{GPU, Kernels, fill, only, optimized, optimized_for};

/// Checks that the report has each node once, either with what was done or with a reason.
pub(crate) fn check(executable: &Executable, nodes: &[Node]) -> Report {
    let report = executable.report();
    let mut reported: Vec<_> = report.nodes.iter().map(|node| node.node).collect();
    let mut all: Vec<_> = nodes.iter().map(|node| node.key()).collect();
    reported.sort_unstable_by_key(|key| key.index());
    all.sort_unstable_by_key(|key| key.index());
    assert_eq!(reported, all, "{report:#?}");
    for node in &report.nodes {
        assert_eq!(node.optimized.is_empty(), node.reason.is_some(), "{report:#?}");
        assert!(node.optimized.iter().all(|&line| line < report.optimized.len()), "{report:#?}");
    }
    report
}

fn of<'r>(report: &'r Report, node: &Node) -> &'r NodeReport {
    report.nodes.iter().find(|entry| entry.node == node.key()).unwrap()
}

#[test]
fn each_node_has_what_was_done_with_it_or_the_reason_why_not() {
    for kernels in Kernels::all() {
        let (x, y) = (kernels.words(&[1; 64]), kernels.words(&[1; 64]));
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let empty = first.add(Operation::Empty).unwrap();
        let second = empty.add(kernels.mix(&x, 2, 1, 32)).unwrap();
        let third = second.add(fill(&y, 3)).unwrap();
        let callback = third.add(Operation::Callback(CallbackOp::closure(|| {}))).unwrap();
        let alone = callback.add(kernels.mix(&x, 2, 1, 32)).unwrap();
        let nodes = [first, empty, second, third, callback, alone];
        let report = check(&optimized(&graph, Optimizations::ALL), &nodes);
        for node in [&nodes[0], &nodes[2], &nodes[3]] {
            let lines: Vec<_> =
                of(&report, node).optimized.iter().map(|&line| report.optimized[line].as_str()).collect();
            assert!(lines.iter().any(|line| line.starts_with("chains:")), "{report:#?}");
        }
        assert!(report.optimized[of(&report, &nodes[1]).optimized[0]].starts_with("edges:"), "{report:#?}");
        for (node, reason) in [(&nodes[4], "no work that a kernel could do"), (&nodes[5], "no node before")] {
            let found = of(&report, node).reason.as_deref().unwrap_or_default();
            assert!(found.contains(reason), "{report:#?}");
        }
        // In topological order.
        assert!(report.nodes.iter().map(|node| node.node).eq(nodes.iter().map(Node::key)), "{report:#?}");
    }
}

#[test]
fn a_node_that_does_not_join_those_before_it_says_why() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 128]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 1, 16)).unwrap();
        let second = first.add(kernels.mix(&x, 2, 4, 32)).unwrap();
        let executable = optimized(&graph, only(Optimization::Chains));
        let report = check(&executable, &[first, second.clone()]);
        assert!(of(&report, &second).reason.as_deref().unwrap().contains("it has 4 blocks"), "{report:#?}");
    }
}

#[test]
fn a_disabled_node_and_a_pass_that_is_off_are_reasons() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let second = first.add(kernels.mix(&x, 2, 1, 32)).unwrap();
        let nodes = [first.clone(), second];
        let executable = optimized_for(GPU, &graph, Optimizations::ALL);
        executable.node(&first).unwrap().set_enabled(false).unwrap();
        let report = check(&executable, &nodes);
        assert_eq!(of(&report, &first).reason.as_deref(), Some("it is disabled"), "{report:#?}");
        let report = check(&optimized(&graph, only(Optimization::Fills)), &nodes);
        assert!(of(&report, &first).reason.as_deref().unwrap().contains("switched off"), "{report:#?}");
    }
}
