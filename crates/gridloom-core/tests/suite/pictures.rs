//! Pictures: everything shown, valid, the same each time.
use crate::common::*;
use gridloom_core::backend::EventOptions;
use gridloom_core::graph::{ConditionalSpec, EdgeKind, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Event, Result};
use std::sync::Arc;

/// A rod that cools: a graph with a node of nearly every kind.
fn heat(device: &NullDevice) -> Result<Graph> {
    let graph = Graph::new(device);
    let again = graph.condition(Some(1));
    let alloc = |name: &str, len: u64| -> Result<Node> {
        graph.add(&[], alloc_op(len, 4, MemoryKind::Device))?.named(name)
    };
    let (now, next, left) = (alloc("now", 32)?, alloc("next", 32)?, alloc("left", 1)?);
    let whole = |node: &Node, bytes| Region { bytes, ..memory_of(node) };
    let (now_all, next_all, left_all) = (whole(&now, 128), whole(&next, 128), whole(&left, 4));
    let pointer = |region: &Region| ArgValue::Pointer(PointerValue::Region(region.clone()));
    let fill_now = graph.add(&[&now], memset_op(now_all.clone(), 0, 1, 128))?;
    let fill_next = graph.add(&[&next], memset_op(next_all.clone(), 0, 1, 128))?;
    let fill_left = graph.add(&[&left], memset_op(left_all.clone(), 50, 4, 1))?;
    let ready = graph.add(&[&fill_now, &fill_next, &fill_left], Operation::Empty)?.named("ready")?;
    let ends = Graph::new(device);
    let buffer = buffer(device, 128);
    let set = FakeKernel::new("set_value").params([8, 4]).on(device);
    let left_end = ends.add(
        &[],
        launch_op(&set, [pointer(&Region::whole(buffer.clone())), bytes_arg(&100f32.to_le_bytes())]),
    )?;
    let right_end = ends.add(
        &[],
        launch_op(
            &set,
            [pointer(&Region::whole(buffer.clone()).part(124, 4).unwrap()), bytes_arg(&0f32.to_le_bytes())],
        ),
    )?;
    ends.add_edge(&left_end, &right_end, EdgeKind::Programmatic)?;
    let boundary = graph.embed(&[&ready], &ends)?.named("boundary")?;
    let clock = Event::new(device, EventOptions::default())?;
    let start = graph.add(&[&boundary], Operation::EventRecord(clock.backend().clone()))?.named("start")?;
    let repeat = graph
        .add_conditional(
            &[&start],
            ConditionalSpec {
                form: ConditionalForm::While,
                test: Test::Condition(again.key()),
                test_first: true,
                limit: Some(1000),
                bodies: 1,
            },
        )?
        .named("repeat")?;
    let body = body(&repeat);
    let step = FakeKernel::new("heat_step").params([8, 8, 4, 4]).on(device);
    let args = KernelArgs::pack(
        "heat_step",
        step.params(),
        [
            pointer(&next_all),
            pointer(&now_all),
            bytes_arg(&32u32.to_le_bytes()),
            bytes_arg(&0.4f32.to_le_bytes()),
        ],
    )?;
    let step = body.add(
        &[],
        Operation::Kernel(Arc::new(KernelOp {
            kernel: step,
            config: LaunchConfig::linear(32).shared(2048).priority(-1),
            args,
        })),
    )?;
    let copy = body.add(&[&step], memcpy_op(now_all.clone(), next_all.clone(), 128))?.named("copy back")?;
    let countdown = FakeKernel::new("countdown").params([8, 8]).on(device);
    body.add(&[&copy], launch_op(&countdown, [condition_arg(&again), pointer(&left_all)]))?;
    let hot = graph
        .add_conditional(
            &[&repeat],
            ConditionalSpec {
                form: ConditionalForm::IfElse,
                test: Test::Value(left_all.clone()),
                test_first: true,
                limit: None,
                bodies: 2,
            },
        )?
        .named("too hot?")?;
    hot.bodies()?[0]
        .add(&[], Operation::Callback(CallbackOp::closure(|| {})))?
        .named("call <the> \"brigade\" & wait")?;
    let wait = graph.add(&[&hot], Operation::EventWait(clock.backend().clone()))?;
    let host = device.allocate(128, MemoryKind::Host)?;
    let out = graph.add(&[&wait], memcpy_op(Region::whole(host), now_all, 128))?.named("result")?;
    for node in [&now, &next, &left] {
        free(&graph, &[&out], node)?;
    }
    Ok(graph)
}

#[test]
fn dump() {
    let device = NullDevice::new();
    let graph = heat(&device).unwrap();
    graph.instantiate().unwrap();
    std::fs::write("/tmp/heat.dot", graph.to_dot()).unwrap();
    std::fs::write("/tmp/heat.mmd", graph.to_mermaid()).unwrap();
    std::fs::write("/tmp/heat.json", graph.to_json()).unwrap();
}
