//! Pictures: all that is in a graph is shown, escaped, in a stable form.

use std::sync::Arc;

use gridloom_core::backend::EventOptions;
use gridloom_core::graph::picture::JSON_VERSION;
use gridloom_core::graph::{ConditionalSpec, EdgeKind, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Event, Result};
use serde_json::{Value, json};

use crate::common::*;

fn pointer(region: &Region) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(region.clone()))
}

/// A rod that cools: a graph with a node of nearly every kind.
fn heat(device: &NullDevice) -> Result<Graph> {
    let graph = Graph::new(device);
    let again = graph.condition(Some(1));
    let alloc = |name: &str, len| graph.add(&[], alloc_op(len, 4, MemoryKind::Device))?.named(name);
    let (now, next, left) = (alloc("now", 32)?, alloc("next", 32)?, alloc("left", 1)?);
    let [now_all, next_all, left_all] =
        [(&now, 128), (&next, 128), (&left, 4)].map(|(node, bytes)| Region { bytes, ..memory_of(node) });
    let ready = [
        graph.add(&[&now], memset_op(now_all.clone(), 0, 1, 128))?,
        graph.add(&[&next], memset_op(next_all.clone(), 0, 1, 128))?,
        graph.add(&[&left], memset_op(left_all.clone(), 50, 4, 1))?,
    ];
    let ready = graph.add(&ready.each_ref(), Operation::Empty)?.named("ready")?;

    let boundary = Graph::new(device);
    let rod = Region::whole(buffer(device, 128));
    let set = FakeKernel::new("set_value").params([8, 4]).on(device);
    let hot = boundary.add(&[], launch_op(&set, [pointer(&rod), bytes_arg(&100f32.to_le_bytes())]))?;
    let end = rod.part(124, 4).expect("inside");
    let cold = boundary.add(&[], launch_op(&set, [pointer(&end), bytes_arg(&0f32.to_le_bytes())]))?;
    cold.after_with([&hot], EdgeKind::Programmatic)?;
    let boundary = graph.add_child(&[&ready], &boundary)?.named("boundary")?;

    let clock = Event::new(device, EventOptions::default())?;
    let start = graph.add(&[&boundary], Operation::EventRecord(clock.backend().clone()))?.named("start")?;
    let repeat = ConditionalSpec {
        max_passes: Some(1000),
        ..spec(ConditionalForm::While, Test::Condition(again.key()))
    };
    let repeat = graph.add_conditional(&[&start], repeat)?.named("repeat")?;
    let pass = body(&repeat);
    let kernel = FakeKernel::new("heat_step").params([8, 8, 4, 4]).on(device);
    let args = [
        pointer(&next_all),
        pointer(&now_all),
        bytes_arg(&32u32.to_le_bytes()),
        bytes_arg(&0.4f32.to_le_bytes()),
    ];
    let args = KernelArgs::pack("heat_step", kernel.params(), args)?;
    let config = LaunchConfig::linear(32).shared(2048).priority(-1);
    let step = pass.add(&[], Operation::Kernel(Launch::new(kernel_op(kernel, config, args))))?;
    let copy = pass.add(&[&step], memcpy_op(now_all.clone(), next_all, 128))?.named("copy back")?;
    let countdown = FakeKernel::new("countdown").params([8, 8]).on(device);
    pass.add(&[&copy], launch_op(&countdown, [condition_arg(&again), pointer(&left_all)]))?;

    let check = graph.add_conditional(&[&repeat], spec(ConditionalForm::IfElse, Test::Value(left_all)))?;
    let check = check.named("too hot?")?;
    callback(&body(&check), &[], || {}).named("call the \"brigade\"")?;
    let wait = graph.add(&[&check], Operation::EventWait(clock.backend().clone()))?;
    let host = device.allocate(128, MemoryKind::Host)?;
    let result = graph.add(&[&wait], memcpy_op(Region::whole(host), now_all, 128))?.named("result")?;
    for node in [&now, &next, &left] {
        free(&graph, &[&result], node)?;
    }
    graph.instantiate()?;
    Ok(graph)
}

fn parse(graph: &Graph) -> Value {
    serde_json::from_str(&graph.to_json()).unwrap()
}

/// The node of this name at any level.
fn find<'a>(graph: &'a Value, name: &str) -> Option<&'a Value> {
    graph["nodes"].as_array()?.iter().find_map(|node| {
        if node["name"] == name {
            return Some(node);
        }
        node["bodies"].as_array()?.iter().find_map(|body| find(body, name))
    })
}

#[test]
fn the_dot_picture_of_a_whole_program() {
    insta::assert_snapshot!(heat(&NullDevice::new()).unwrap().to_dot());
}

#[test]
fn the_mermaid_picture_of_a_whole_program() {
    insta::assert_snapshot!(heat(&NullDevice::new()).unwrap().to_mermaid());
}

#[test]
fn the_json_of_a_whole_program() {
    insta::assert_snapshot!(heat(&NullDevice::new()).unwrap().to_json());
}

#[test]
fn equal_graphs_have_equal_pictures_wherever_their_memory_is() {
    let device = NullDevice::new();
    let first = heat(&device).unwrap();
    // Other addresses, and other keys behind the same nodes.
    let second = heat(&device).unwrap();
    let extra = empty(&second, &[]);
    extra.delete().unwrap();
    assert_eq!(first.to_dot(), second.to_dot());
    assert_eq!(first.to_mermaid(), second.to_mermaid());
    assert_eq!(first.to_json(), second.to_json());
}

#[test]
fn a_program_of_every_size_has_a_picture() {
    let (_, _, graph) = setup();
    assert_eq!(parse(&graph)["graph"], json!({ "nodes": [], "edges": [] }));
    assert!(graph.to_dot().ends_with("]\n}\n"));
    assert!(graph.to_mermaid().starts_with("flowchart TD\n"));
    let mut sizes = Vec::new();
    for _ in 0..3 {
        (0..20_000).fold(empty(&graph, &[]), |last, _| empty(&graph, &[&last]));
        sizes.push([graph.to_dot().len(), graph.to_mermaid().len(), graph.to_json().len()]);
    }
    // Numbers grow by a digit, so that equal additions are nearly equal steps.
    for ((first, second), third) in sizes[0].iter().zip(sizes[1]).zip(sizes[2]) {
        let (step, next) = (second - first, third - second);
        assert!(next.abs_diff(step) < step / 5, "{step} then {next}");
    }
    assert_eq!(parse(&graph)["graph"]["nodes"].as_array().unwrap().len(), 60_003);
}

#[test]
fn json_says_what_it_is() {
    let (_, _, graph) = setup();
    let file = parse(&graph);
    assert_eq!(file["format"], "gridloom-graph");
    assert_eq!(file["version"], JSON_VERSION);
}

#[test]
fn json_has_the_parameters_of_every_kind_as_documented() {
    let (device, _, graph) = setup();
    let condition = graph.condition(Some(3));
    let memory = alloc(&graph, &[]);
    let region = memory_of(&memory);
    let part = region.part(8, 16).unwrap();
    let outside = Region::whole(buffer(&device, 4096));
    let host = Region::whole(device.allocate(64, MemoryKind::Host).unwrap());
    let clock = Event::new(&device, EventOptions::new().timing(false).blocking(true)).unwrap();
    let kernel = FakeKernel::new("all").params([8, 8, 2, 8]).on(&device);
    let args = [pointer(&part), pointer(&outside), bytes_arg(&[1, 0xab]), condition_arg(&condition)];
    let args = KernelArgs::pack("all", kernel.params(), args).unwrap();
    let config = LaunchConfig::new((8, 4, 2), (32, 2))
        .shared(64)
        .cluster((2, 2))
        .cooperative()
        .programmatic()
        .priority(5);
    let peers = Operation::Alloc(Arc::new(AllocOp {
        len: 3,
        element_size: 12,
        kind: MemoryKind::Managed,
        peers: [1, 2].into_iter().collect(),
    }));
    let rows = MemsetOp { dst: part.clone(), value: 0xff, element_size: 2, width: 2, height: 3, pitch: 6 };
    let planes = MemcpyOp {
        dst: CopySide { region: host.clone(), pitch: 8, rows: 2 },
        src: CopySide { region: outside.clone(), pitch: 16, rows: 4 },
        width: 4,
        height: 2,
        depth: 3,
    };
    unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}
    // SAFETY: the function ignores its argument.
    let raw = unsafe { RawCallback::new(nothing, RawData::Bytes(Arc::new([0; 9]))) };
    // SAFETY: as above; the pointer is never followed.
    let null = unsafe { SendPointer::new(std::ptr::null_mut()) };
    // SAFETY: as above.
    let with_pointer = unsafe { RawCallback::new(nothing, RawData::Pointer(null)) };
    let do_while = ConditionalSpec {
        test_first: false,
        max_passes: Some(7),
        ..spec(ConditionalForm::While, Test::Value(part.clone()))
    };
    let add = |name: &str, operation| graph.add(&[], operation).unwrap().set_name(name).unwrap();
    let decide = |name: &str, spec| graph.add_conditional(&[], spec).unwrap().set_name(name).unwrap();
    add("kernel", Operation::Kernel(Launch::new(kernel_op(kernel, config, args))));
    add("alloc", peers);
    add("free", free_op(&memory));
    add("memset", Operation::Memset(Arc::new(rows)));
    add("memcpy", Operation::Memcpy(Arc::new(planes)));
    add("upload", memcpy_op(part, Region::from_bytes(vec![0; 16]), 16));
    add("closure", Operation::Callback(CallbackOp::closure(|| {})));
    add("raw", Operation::Callback(CallbackOp::Raw(raw)));
    add("pointer", Operation::Callback(CallbackOp::Raw(with_pointer)));
    add("record", Operation::EventRecord(clock.backend().clone()));
    add("wait", Operation::EventWait(clock.backend().clone()));
    decide("if", spec(ConditionalForm::If, Test::Condition(condition.key())));
    decide("do while", do_while);
    decide("repeat", spec(ConditionalForm::While, Test::Count(9)));

    let in_alloc =
        |offset: u64, bytes: u64| json!({ "alloc": 0, "name": "alloc#0", "offset": offset, "bytes": bytes });
    let in_buffer = |buffer: u64, bytes: u64| json!({ "buffer": buffer, "offset": 0, "bytes": bytes });
    let expected = [
        ("alloc#0", json!({ "len": 64, "element_size": 4, "memory": "device" })),
        (
            "kernel",
            json!({
                "kernel": "all", "grid": [8, 4, 2], "block": [32, 2, 1], "shared": 64,
                "cluster": [2, 2, 1], "cooperative": true, "programmatic": true, "priority": 5,
                "args": [{ "memory": in_alloc(8, 16) }, { "memory": in_buffer(0, 4096) }, { "value": "01ab" }, { "condition": 0 }],
            }),
        ),
        ("alloc", json!({ "len": 3, "element_size": 12, "memory": "managed", "peers": [1, 2] })),
        ("free", json!({ "alloc": 0 })),
        (
            "memset",
            json!({ "dst": in_alloc(8, 16), "value": 255, "element_size": 2, "width": 2, "height": 3, "pitch": 6 }),
        ),
        (
            "memcpy",
            json!({
                "dst": { "region": in_buffer(1, 64), "memory": "host", "pitch": 8, "rows": 2 },
                "src": { "region": in_buffer(0, 4096), "memory": "device", "pitch": 16, "rows": 4 },
                "width": 4, "height": 2, "depth": 3,
            }),
        ),
        (
            "upload",
            json!({
                "dst": { "region": in_alloc(8, 16), "memory": "device", "pitch": 16, "rows": 1 },
                "src": { "region": { "host": true, "offset": 0, "bytes": 16 }, "memory": "host", "pitch": 16, "rows": 1 },
                "width": 16, "height": 1, "depth": 1,
            }),
        ),
        ("closure", json!({ "function": "closure" })),
        ("raw", json!({ "function": "raw", "bytes": 9 })),
        ("pointer", json!({ "function": "raw", "pointer": true })),
        ("record", json!({ "event": 0 })),
        ("wait", json!({ "event": 0 })),
        ("if", json!({ "condition": 0 })),
        ("do while", json!({ "value": in_alloc(8, 16), "test_first": false, "max_passes": 7 })),
        ("repeat", json!({ "count": 9, "test_first": true })),
    ];
    let file = parse(&graph);
    for (name, params) in expected {
        assert_eq!(find(&file["graph"], name).unwrap()["params"], params, "{name}");
    }
    let tester = find(&file["graph"], "if").unwrap()["id"].clone();
    assert_eq!(file["conditions"], json!([{ "id": 0, "default": 3, "tested_by": tester }]));
    assert_eq!(file["events"], json!([{ "id": 0, "timing": false, "blocking": true }]));
    assert_eq!(
        file["buffers"],
        json!([{ "id": 0, "memory": "device", "bytes": 4096 }, { "id": 1, "memory": "host", "bytes": 64 }])
    );
}

#[test]
fn json_ids_are_unique_and_edges_stay_in_their_graph() {
    fn collect(graph: &Value, ids: &mut Vec<u64>) {
        let nodes = graph["nodes"].as_array().unwrap();
        let own: Vec<u64> = nodes.iter().map(|node| node["id"].as_u64().unwrap()).collect();
        for edge in graph["edges"].as_array().unwrap() {
            assert!(
                own.contains(&edge["from"].as_u64().unwrap()) && own.contains(&edge["to"].as_u64().unwrap())
            );
        }
        ids.extend(own);
        for body in nodes.iter().filter_map(|node| node["bodies"].as_array()).flatten() {
            collect(body, ids);
        }
    }
    let file = parse(&heat(&NullDevice::new()).unwrap());
    let mut ids = Vec::new();
    collect(&file["graph"], &mut ids);
    ids.sort_unstable();
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_body_alone_has_a_picture_that_names_what_is_outside() {
    let (device, _, graph) = setup();
    let again = graph.condition(Some(1));
    let memory = alloc(&graph, &[]).named("outside").unwrap();
    let repeat = graph
        .add_conditional(&[&memory], spec(ConditionalForm::While, Test::Condition(again.key())))
        .unwrap();
    let kernel = FakeKernel::new("step").params([8, 8]).on(&device);
    let pass = body(&repeat);
    pass.add(&[], launch_op(&kernel, [pointer(&memory_of(&memory)), condition_arg(&again)])).unwrap();
    let file = parse(&pass);
    let args = &file["graph"]["nodes"][0]["params"]["args"];
    assert_eq!(args[0]["memory"]["alloc"], Value::Null);
    assert_eq!(args[0]["memory"]["name"], "outside");
    assert_eq!(args[1]["condition"], 0);
    assert_eq!(file["conditions"][0]["tested_by"], Value::Null);
    assert!(pass.to_dot().contains("outside") && !pass.to_dot().contains("cluster"));
}

#[test]
fn a_deleted_graph_has_an_empty_picture_and_deleted_memory_is_called_so() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::If);
    let inside = body(&outer);
    empty(&inside, &[]);
    outer.delete().unwrap();
    assert_eq!(parse(&inside)["graph"], json!({ "nodes": [], "edges": [] }));
    assert!(!inside.to_dot().contains("n0"));
    let memory = alloc(&graph, &[]);
    let fill = memset(&graph, &[&memory], memory_of(&memory)).unwrap();
    free(&graph, &[&fill], &memory).unwrap();
    memory.delete().unwrap();
    for picture in [graph.to_dot(), graph.to_mermaid(), graph.to_json()] {
        assert!(picture.contains("deleted node"), "{picture}");
    }
}

/// Checks what graphviz checks of the syntax: quotes, braces and the tags of HTML-like labels.
fn assert_valid_dot(text: &str) {
    let (mut braces, mut rest) = (0i32, text);
    while let Some(position) = rest.find(['{', '}', '"', '<']) {
        let (found, after) = (rest.as_bytes()[position], &rest[position + 1..]);
        rest = match found {
            b'{' => {
                braces += 1;
                after
            }
            b'}' => {
                braces -= 1;
                after
            }
            b'"' => &after[after.find('"').expect("a closing quote") + 1..],
            _ => {
                let end = after.find(">, fillcolor").expect("the end of a label");
                assert_valid_label(&after[..end]);
                &after[end + 1..]
            }
        };
        assert!(braces >= 0);
    }
    assert_eq!(braces, 0);
}

fn assert_valid_label(label: &str) {
    let mut open = Vec::new();
    let mut rest = label;
    while let Some(position) = rest.find(['<', '&']) {
        assert!(!rest[..position].contains(['>', '"']), "{label}");
        let after = &rest[position + 1..];
        if rest.as_bytes()[position] == b'&' {
            let end = after.find(';').expect("the end of an entity");
            assert!(["amp", "lt", "gt", "quot", "#39"].contains(&&after[..end]), "{label}");
            rest = &after[end + 1..];
            continue;
        }
        let end = after.find('>').expect("the end of a tag");
        match &after[..end] {
            "BR/" => {}
            "/B" => assert_eq!(open.pop(), Some("B"), "{label}"),
            "/FONT" => assert_eq!(open.pop(), Some("FONT"), "{label}"),
            "B" => open.push("B"),
            tag if tag.starts_with("FONT ") => open.push("FONT"),
            tag => panic!("unknown tag {tag} in {label}"),
        }
        rest = &after[end + 1..];
    }
    assert!(open.is_empty(), "{label}");
    assert!(!label.contains(char::is_control), "{label}");
}

/// Checks that every label is quoted and that subgraphs end.
fn assert_valid_mermaid(text: &str) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    let mut depth = 0i32;
    for line in lines.map(str::trim) {
        assert!(
            line.matches('"').count() % 2 == 0 && !line.contains('`') && !line.contains(char::is_control),
            "{line}"
        );
        let outside: String = line.split('"').step_by(2).collect();
        let label = line.split('"').nth(1).unwrap_or_default().replace("<br/>", "");
        assert!(!label.contains(['<', '>', '&']), "{line}");
        match outside.split(' ').next().unwrap() {
            "subgraph" => depth += 1,
            "end" => depth -= 1,
            "class" | "classDef" => {}
            node => assert!(node.starts_with('n'), "{line}"),
        }
    }
    assert_eq!(depth, 0);
}

const NASTY: [&str; 12] = [
    "",
    "\"quoted\" \\ back\\slash",
    "<b>bold</b> & <br/>",
    "-->|x| end",
    "end",
    "{ } [ ] ( ) ; | # #35; %%",
    "`markdown` **x** _y_",
    "new\nline\r\ttab",
    "\0\u{1}\u{1b}[31m\u{7f}\u{fffe}\u{ffff}",
    "日本語 → naïve \u{1F600}",
    "</FONT></B>>",
    "subgraph class click",
];

#[test]
fn any_name_gives_a_valid_picture() {
    for name in NASTY {
        let (device, _, graph) = setup();
        let node = empty(&graph, &[]).named(name).unwrap();
        let kernel = FakeKernel::new(name).params([]).on(&device);
        let kernel = graph.add(&[&node], launch_op(&kernel, [])).unwrap();
        let outer = conditional(&graph, &[&kernel], ConditionalForm::IfElse).named(name).unwrap();
        body(&outer).add(&[], alloc_op(1, 1, MemoryKind::Device)).unwrap().named(name).unwrap();
        assert_valid_dot(&graph.to_dot());
        assert_valid_mermaid(&graph.to_mermaid());
        assert_eq!(parse(&graph)["graph"]["nodes"][0]["name"], name);
    }
}

#[test]
fn the_pictures_of_a_whole_program_are_valid() {
    let graph = heat(&NullDevice::new()).unwrap();
    assert_valid_dot(&graph.to_dot());
    assert_valid_mermaid(&graph.to_mermaid());
}

#[test]
fn many_arguments_are_cut_short_for_people_and_whole_for_programs() {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("wide").params([4; 40]).on(&device);
    graph.add(&[], launch_op(&kernel, (0..40u32).map(|value| bytes_arg(&value.to_le_bytes())))).unwrap();
    assert!(graph.to_dot().contains("(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28 more)"));
    assert_eq!(parse(&graph)["graph"]["nodes"][0]["params"]["args"].as_array().unwrap().len(), 40);
}

#[test]
fn an_executable_can_be_drawn_as_it_was_made() {
    let (_, _, graph) = setup();
    let node: Node = empty(&graph, &[]);
    let exec = graph.instantiate().unwrap();
    let before = graph.to_dot();
    node.delete().unwrap();
    assert_eq!(exec.definition().to_dot(exec.definition().root()), before);
}
