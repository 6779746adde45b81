//! Who drives which conditional, and why.

use super::super::testing::Sketch;
use super::*;
use gridloom_core::graph::Node;

const NEW: CudaVersion = CudaVersion::new(13, 0);

fn decide(sketch: &Sketch, version: CudaVersion) -> Modes {
    Modes::decide(
        &sketch.definition(),
        &FxHashSet::default(),
        ConditionalMode::Auto,
        Capabilities::at(version),
    )
    .unwrap()
    .0
}

fn reason<'a>(modes: &'a Modes, node: &Node) -> &'a str {
    modes.reason_of(node.key()).unwrap_or("native")
}

#[test]
fn a_loop_of_kernels_is_native() {
    let sketch = Sketch::new();
    let again = sketch.graph.condition(Some(1));
    let (repeat, body) = sketch.while_in(&sketch.graph, &[], &again);
    sketch.kernel_in(&body, &[], &[&again]);
    assert_eq!(reason(&decide(&sketch, NEW), &repeat), "native");
}

#[test]
fn an_old_driver_hosts_every_conditional_and_the_reason_names_both_versions() {
    let sketch = Sketch::new();
    let (repeat, _) = sketch.repeat_in(&sketch.graph, &[], 3);
    let modes = decide(&sketch, CudaVersion::new(12, 2));
    assert_eq!(reason(&modes, &repeat), "it needs a driver for CUDA 12.4, this one supports 12.2");
}

#[test]
fn else_and_switch_need_a_newer_driver_than_if_and_while() {
    let sketch = Sketch::new();
    let forms =
        [ConditionalForm::If, ConditionalForm::IfElse, ConditionalForm::While, ConditionalForm::Switch];
    let nodes = forms.map(|form| {
        let condition = sketch.graph.condition(None);
        sketch.conditional_in(&sketch.graph, &[], form, Test::Condition(condition.key())).0
    });
    let hosted = |version| nodes.each_ref().map(|node| decide(&sketch, version).is_hosted(node.key()));
    assert_eq!(hosted(CudaVersion::new(12, 4)), [false, true, false, true]);
    assert_eq!(hosted(CudaVersion::new(12, 8)), [false; 4]);
}

#[test]
fn a_callback_in_a_body_makes_it_and_all_around_it_hosted() {
    let sketch = Sketch::new();
    let (outer, outer_body) = sketch.repeat_in(&sketch.graph, &[], 3);
    let (inner, inner_body) = sketch.repeat_in(&outer_body, &[], 3);
    sketch.callback_in(&inner_body, &[]);
    let (beside, _) = sketch.repeat_in(&sketch.graph, &[], 3);
    let modes = decide(&sketch, NEW);
    assert!(
        reason(&modes, &inner).contains("CUDA allows no callback node there"),
        "{}",
        reason(&modes, &inner)
    );
    assert!(reason(&modes, &outer).contains("which the host drives"), "{}", reason(&modes, &outer));
    assert_eq!(reason(&modes, &beside), "native");
}

#[test]
fn a_callback_in_a_child_of_a_body_counts_as_in_the_body() {
    let sketch = Sketch::new();
    let inner = sketch.other_graph();
    sketch.callback_in(&inner, &[]);
    let (repeat, body) = sketch.repeat_in(&sketch.graph, &[], 3);
    body.add_child(&[], &inner).unwrap();
    assert!(decide(&sketch, NEW).is_hosted(repeat.key()));
}

#[test]
fn a_condition_inside_a_hosted_loop_is_hosted_because_it_keeps_its_value() {
    let sketch = Sketch::new();
    let inner_condition = sketch.graph.condition(Some(1));
    let (outer, body) = sketch.repeat_in(&sketch.graph, &[], 3);
    sketch.callback_in(&body, &[]);
    let (inner, inner_body) = sketch.while_in(&body, &[], &inner_condition);
    sketch.kernel_in(&inner_body, &[], &[&inner_condition]);
    let (counted, _) = sketch.repeat_in(&body, &[], 2);
    let modes = decide(&sketch, NEW);
    assert!(modes.is_hosted(outer.key()));
    assert!(reason(&modes, &inner).contains("keeps its value"), "{}", reason(&modes, &inner));
    // A counter starts anew at each execution, so it needs no memory across passes.
    assert_eq!(reason(&modes, &counted), "native");
}

#[test]
fn a_condition_set_across_a_cut_is_hosted() {
    let sketch = Sketch::new();
    let condition = sketch.graph.condition(None);
    let setter = sketch.kernel(&[], &[&condition]);
    let (cut, body) = sketch.repeat_in(&sketch.graph, &[&setter], 3);
    sketch.callback_in(&body, &[]);
    let test = Test::Condition(condition.key());
    let (branch, _) = sketch.conditional_in(&sketch.graph, &[&cut], ConditionalForm::If, test);
    let modes = decide(&sketch, NEW);
    assert!(reason(&modes, &branch).contains("on the other side"), "{}", reason(&modes, &branch));
}

#[test]
fn a_kernel_sets_all_its_conditions_the_same_way() {
    let sketch = Sketch::new();
    let (native, hosted) = (sketch.graph.condition(None), sketch.graph.condition(None));
    let setter = sketch.kernel(&[], &[&native, &hosted]);
    let form = ConditionalForm::If;
    let (a, _) = sketch.conditional_in(&sketch.graph, &[&setter], form, Test::Condition(native.key()));
    let (b, bodies) = sketch.conditional_in(&sketch.graph, &[&setter], form, Test::Condition(hosted.key()));
    sketch.callback_in(&bodies[0], &[]);
    let modes = decide(&sketch, NEW);
    assert!(modes.is_hosted(b.key()));
    assert!(modes.is_hosted(a.key()));
}

#[test]
fn native_mode_refuses_and_names_the_node_and_the_reason() {
    let sketch = Sketch::new();
    let (repeat, body) = sketch.repeat_in(&sketch.graph, &[], 3);
    repeat.set_name("relax").unwrap();
    sketch.callback_in(&body, &[]);
    let error = Modes::decide(
        &sketch.definition(),
        &FxHashSet::default(),
        ConditionalMode::Native,
        Capabilities::at(NEW),
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert_eq!(error.node(), Some("relax"));
    assert!(error.message().contains("callback"), "{error}");
}

#[test]
fn the_report_lists_conditionals_outermost_first() {
    let sketch = Sketch::new();
    let (outer, body) = sketch.repeat_in(&sketch.graph, &[], 3);
    let (inner, _) = sketch.repeat_in(&body, &[], 3);
    let (beside, _) = sketch.repeat_in(&sketch.graph, &[], 3);
    let report = decide(&sketch, NEW).report(&sketch.definition());
    let nodes: Vec<NodeKey> = report.iter().map(|entry| entry.node).collect();
    assert_eq!(nodes, [outer.key(), beside.key(), inner.key()]);
    assert!(report.iter().all(|entry| entry.native));
}
