//! The page in a real browser: what a person does with it, done by mouse and keys.
//!
//! Without Chromium one line says that the tests were skipped. `GRIDLOOM_CHROMIUM` names another
//! program, and `GRIDLOOM_SCREENSHOTS=FOLDER` keeps pictures of the page.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod chromium;

use chromium::{Browser, Folder};
use serde_json::{Value, json};

/// A loop of two kernels between a fill and two copies side by side.
fn sample() -> (gridloom_view::Picture, Value) {
    let kernel = |id: usize, name: &str| json!({ "id": id, "name": name, "kind": "kernel", "params": { "kernel": name, "grid": [4, 1, 1], "block": [256, 1, 1] } });
    let edge = |from: usize, to: usize| json!({ "from": from, "to": to, "kind": "full" });
    let body = json!({ "nodes": [kernel(3, "relax"), kernel(4, "residual")], "edges": [edge(3, 4)] });
    let graph = json!({ "format": "gridloom-graph", "version": 1, "title": "poisson", "graph": {
        "nodes": [
            { "id": 0, "name": "clear", "kind": "memset", "params": { "value": 0, "width": 1024 } },
            kernel(1, "boundary"),
            { "id": 2, "name": "solve", "kind": "while", "params": { "condition": 0 }, "bodies": [body] },
            { "id": 5, "name": "copy x", "kind": "memcpy" },
            { "id": 6, "name": "copy y", "kind": "memcpy" },
            { "id": 7, "name": "report", "kind": "callback" },
        ],
        "edges": [edge(0, 1), edge(1, 2), edge(2, 5), edge(2, 6), edge(5, 7), edge(6, 7)],
    }});
    let mut spans = vec![(0, 0, 2000, vec![]), (1, 2500, 5000, vec![]), (2, 5200, 61_200, vec![])];
    for pass in 0..20 {
        let start = 5200 + 2800 * pass;
        spans.push((3, start, start + 1500, vec![pass]));
        spans.push((4, start + 1700, start + 2700, vec![pass]));
    }
    spans.extend([(5, 61_500, 66_000, vec![]), (6, 61_500, 64_000, vec![]), (7, 67_000, 69_000, vec![])]);
    let row = |id: usize| {
        let own: Vec<_> = spans.iter().filter(|span| span.0 == id).collect();
        let times = own.iter().map(|span| span.2 - span.1);
        json!({ "id": id, "runs": own.len(), "start_ns": own[0].1, "end_ns": own[own.len() - 1].2,
            "busy_ns": times.clone().sum::<u64>(), "min_ns": times.clone().min(), "max_ns": times.max(),
            "uncertainty_ns": 30, "gap_ns": 200, "passes": if id == 2 { json!(20) } else { Value::Null } })
    };
    let step = |node: usize, start_ns: u64, end_ns: u64| json!({ "node": node, "start_ns": start_ns, "end_ns": end_ns });
    let profile = json!({ "format": "gridloom-profile", "version": 1, "device": "a device", "launch_ns": 70_000, "uncertainty_ns": 30, "parallelism": 1.1,
        "nodes": (0..8).map(row).collect::<Vec<_>>(),
        "spans": spans.iter().map(|(node, start, end, pass)| json!({ "node": node, "start_ns": start, "end_ns": end, "pass": pass })).collect::<Vec<_>>(),
        "critical_path": [step(0, 0, 2000), step(1, 2500, 5000), step(2, 5200, 61_200), step(5, 61_500, 66_000), step(7, 67_000, 69_000)] });
    (gridloom_view::read(&graph.to_string()).expect("a graph"), profile)
}

/// Opens a page, or says in one line why not.
fn open(name: &str, html: &str, dark: bool) -> Option<(Browser, Folder)> {
    let folder = Folder::new(&format!("{name}-page"));
    let page = folder.0.join("page.html");
    std::fs::write(&page, html).expect("a file to write");
    let browser = Browser::open(&page, name, (1280, 820), dark);
    if browser.is_none() {
        println!("skipped: no Chromium is installed (set GRIDLOOM_CHROMIUM to its program)");
    }
    Some((browser?, folder))
}

/// Returns the middle of a node on the screen.
fn middle(browser: &mut Browser, node: &str) -> (f64, f64) {
    let at = browser.value(&format!(
        "(() => {{ const node = [...nodes.values()].find(node => node.name === {node:?}); const area = canvas.getBoundingClientRect(); \
         return [area.left + (node.left + node.width / 2 - view.x) * view.scale, area.top + (node.top + Math.min(node.height, 30) / 2 - view.y) * view.scale]; }})()"
    ));
    (at[0].as_f64().expect("a number"), at[1].as_f64().expect("a number"))
}

fn picture_for_documents(browser: &mut Browser, name: &str) {
    if let Ok(folder) = std::env::var("GRIDLOOM_SCREENSHOTS") {
        browser.value("new Promise(done => requestAnimationFrame(done)) && null");
        std::thread::sleep(std::time::Duration::from_millis(200));
        browser.screenshot(&std::path::Path::new(&folder).join(name));
    }
}

#[test]
fn clicking_a_node_shows_what_it_does() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("click", &picture.to_html(Some(&profile)), false) else { return };
    let at = middle(&mut browser, "boundary");
    browser.click(at);
    let text = browser.value("panel.textContent").to_string();
    for part in ["boundary", "4 × 1 × 1", "critical path", "± 30 ns", "clear", "solve"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    picture_for_documents(&mut browser, "page-light.png");
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn a_loop_folds_and_unfolds_and_shows_its_passes() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("fold", &picture.to_html(Some(&profile)), true) else { return };
    picture_for_documents(&mut browser, "page-dark.png");
    assert_eq!(browser.value("drawn.length"), json!(8), "a small graph opens unfolded");
    browser.value("document.getElementById('fold').click()");
    assert_eq!(browser.value("drawn.length"), json!(6));
    assert_eq!(
        browser.value("label([...nodes.values()].find(node => node.name === 'solve'))"),
        json!("solve  ×20")
    );
    let at = middle(&mut browser, "solve");
    for count in [1, 2] {
        browser.mouse("mousePressed", at, "left", &json!({ "clickCount": count }));
        browser.mouse("mouseReleased", at, "left", &json!({ "clickCount": count }));
    }
    browser.until("drawn.length === 8");
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn search_finds_nodes_inside_folded_bodies_and_goes_to_them() {
    let (picture, _) = sample();
    let Some((mut browser, _folder)) = open("search", &picture.to_html(None), false) else { return };
    browser.value("foldAll(false)");
    browser.key("/");
    browser.until("document.activeElement === search");
    browser.write("residual");
    browser.until("foundText.textContent === '1 found'");
    browser.key("Enter");
    browser.until("selected && selected.name === 'residual'");
    assert_eq!(browser.value("selected.parent.open"), json!(true));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn the_wheel_zooms_at_the_pointer_and_dragging_moves() {
    let (picture, _) = sample();
    let Some((mut browser, _folder)) = open("zoom", &picture.to_html(None), false) else { return };
    let at = middle(&mut browser, "boundary");
    let before = browser.value("view.scale").as_f64().expect("a number");
    browser.wheel(at, -400.0);
    browser.until(&format!("view.scale > {before} * 1.5"));
    let now = middle(&mut browser, "boundary");
    assert!((now.0 - at.0).abs() < 1.5 && (now.1 - at.1).abs() < 1.5, "{at:?} moved to {now:?}");
    browser.mouse("mousePressed", at, "left", &json!({}));
    browser.mouse("mouseMoved", (at.0 + 60.0, at.1 + 40.0), "left", &json!({ "buttons": 1 }));
    browser.mouse("mouseReleased", (at.0 + 60.0, at.1 + 40.0), "left", &json!({}));
    let moved = middle(&mut browser, "boundary");
    assert!(
        (moved.0 - now.0 - 60.0).abs() < 1.5 && (moved.1 - now.1 - 40.0).abs() < 1.5,
        "{now:?} to {moved:?}"
    );
    assert_eq!(browser.value("selected"), Value::Null, "a drag selects nothing");
}

#[test]
fn a_window_of_another_size_shows_the_whole_graph_unless_someone_moved_it() {
    let (picture, _) = sample();
    let Some((mut browser, _folder)) = open("resize", &picture.to_html(None), false) else { return };
    let before = browser.value("view.scale").as_f64().expect("a number");
    browser.resize((800, 400));
    browser.until(&format!("view.scale < {before} * 0.8"));
    let chosen = browser.value("zoom(1.5), view.scale");
    browser.resize((1280, 820));
    browser.until("innerWidth === 1280 && canvas.width === stage.clientWidth");
    assert_eq!(browser.value("view.scale"), chosen);
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn a_bar_of_the_timeline_and_its_node_are_selected_together() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("bars", &picture.to_html(Some(&profile)), false) else { return };
    let at = browser.value(
        "(() => { const bar = bars.find(bar => bar.node.name === 'copy x'); const area = strip.getBoundingClientRect(); \
         const x = ((bar.start + bar.end) / 2 - range.from) / (range.to - range.from) * strip.clientWidth; \
         return [area.left + x, area.top + BAR.top + bar.lane * BAR.step + 5]; })()",
    );
    browser.click((at[0].as_f64().expect("a number"), at[1].as_f64().expect("a number")));
    browser.until("selected && selected.name === 'copy x'");
    let text = browser.value("panel.textContent").to_string();
    assert!(text.contains("This run") && text.contains("4.50 µs"), "{text}");
    let zoom = browser.value("range.to - range.from").as_f64().expect("a number");
    browser.wheel((at[0].as_f64().expect("x"), at[1].as_f64().expect("y")), -300.0);
    browser.until(&format!("range.to - range.from < {zoom} * 0.8"));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn selecting_a_node_brings_its_runs_into_sight() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("reveal", &picture.to_html(Some(&profile)), false) else {
        return;
    };
    browser.value("range.to = 3000; redraw()");
    let at = middle(&mut browser, "report");
    browser.click(at);
    browser.until("selected && selected.name === 'report'");
    assert_eq!(browser.value("range.from < 67000 && range.to > 69000"), json!(true));
    assert_eq!(browser.value("range.to - range.from"), json!(3000), "at the same scale");
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn more_lanes_than_fit_are_dragged_into_sight() {
    let nodes: Vec<_> =
        (0..40).map(|id| json!({ "id": id, "name": format!("side {id}"), "kind": "kernel" })).collect();
    let graph = json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": nodes, "edges": [] } });
    let span = |id: usize| json!({ "node": id, "start_ns": id, "end_ns": 1000 });
    let row = |id: usize| json!({ "id": id, "runs": 1, "start_ns": id, "end_ns": 1000, "busy_ns": 1000 - id, "min_ns": 1, "max_ns": 1, "gap_ns": 0 });
    let profile = json!({ "format": "gridloom-profile", "version": 1, "launch_ns": 1000,
        "nodes": (0..40).map(row).collect::<Vec<_>>(), "spans": (0..40).map(span).collect::<Vec<_>>() });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("lanes", &picture.to_html(Some(&profile)), false) else { return };
    assert!(
        browser.value("document.getElementById('times-title').textContent").to_string().contains("40 lanes")
    );
    let at = browser.value(
        "(() => { const area = strip.getBoundingClientRect(); return [area.left + 500, area.top + 200]; })()",
    );
    let at = (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"));
    browser.mouse("mousePressed", at, "left", &json!({}));
    browser.mouse("mouseMoved", (at.0, at.1 - 150.0), "left", &json!({ "buttons": 1 }));
    browser.mouse("mouseReleased", (at.0, at.1 - 150.0), "left", &json!({}));
    assert_eq!(browser.value("range.top"), json!(150));
    browser.click(at);
    browser.until("selected && selected.id === 16");
    // A node whose lane is out of sight comes into sight.
    browser.value("select(nodes.get(39), true)");
    assert_eq!(browser.value("range.top > 500"), json!(true));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn keys_walk_along_edges_into_bodies_and_to_the_side() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("keys", &picture.to_html(Some(&profile)), false) else { return };
    let steps = [
        ("ArrowDown", "clear"),
        ("ArrowDown", "boundary"),
        ("ArrowDown", "solve"),
        ("ArrowDown", "relax"),
        ("ArrowDown", "residual"),
        ("ArrowDown", "copy x"),
        ("ArrowRight", "copy y"),
        ("ArrowLeft", "copy x"),
        ("ArrowUp", "solve"),
    ];
    for (key, name) in steps {
        browser.key(key);
        browser.until(&format!("selected && selected.name === {name:?}"));
    }
    browser.key("Enter");
    browser.until("drawn.length === 6");
    let before = browser.value("view.scale").as_f64().expect("a number");
    browser.key("+");
    browser.until(&format!("view.scale > {before} * 1.2"));
    browser.key("Escape");
    browser.until("selected === null");
    // On the timeline the same keys move the time.
    browser.value("strip.focus()");
    browser.key("ArrowRight");
    browser.until("range.from > 0");
    assert_eq!(browser.value("selected"), Value::Null);
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn long_names_keep_beginning_and_end_and_a_graph_without_nodes_says_so() {
    let name = format!("void cutlass::Kernel{}::Params", "x".repeat(5000));
    let graph = json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": [{ "id": 0, "name": name, "kind": "kernel" }] } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("long", &picture.to_html(None), false) else { return };
    assert_eq!(browser.value("nodes.get(0).width <= NODE.maxWidth"), json!(true));
    let shown = browser.value("elide(nodes.get(0).name, 200)");
    let shown = shown.as_str().expect("a text");
    assert!(shown.starts_with("void cut") && shown.ends_with("Params") && shown.len() < 60, "{shown}");
    assert_eq!(browser.value("getComputedStyle(document.getElementById('empty')).display"), json!("none"));
    drop(browser);
    let nothing = json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": [] } });
    let picture = gridloom_view::read(&nothing.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("nothing", &picture.to_html(None), false) else { return };
    assert!(browser.value("document.body.innerText").to_string().contains("no nodes"));
    assert_eq!(browser.value("document.getElementById('legend').childElementCount"), json!(0));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn a_node_that_is_too_short_to_measure_says_so() {
    let (picture, mut profile) = sample();
    profile["nodes"][1]["uncertainty_ns"] = json!(4000);
    let Some((mut browser, _folder)) = open("short", &picture.to_html(Some(&profile)), false) else { return };
    let unsure = browser.value("[...nodes.values()].filter(isUnsure).map(node => node.name)");
    assert_eq!(unsure, json!(["boundary"]));
    let at = middle(&mut browser, "boundary");
    browser.click(at);
    let text = browser.value("panel.textContent").to_string();
    assert!(text.contains("± 4.00 µs") && text.contains("too short"), "{text}");
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn names_cannot_be_empty_or_reorder_what_is_beside_them() {
    let node = |id: usize, name: &str| json!({ "id": id, "name": name, "kind": "kernel" });
    let graph = json!({ "format": "gridloom-graph", "version": 1, "graph": {
        "nodes": [node(0, ""), node(1, "a\u{202e}b\n"), node(2, "שלום")] } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("names", &picture.to_html(None), false) else { return };
    let names = browser.value("[...nodes.values()].map(node => node.name)");
    assert_eq!(names, json!(["(no name)", "a b", "שלום"]));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn of_very_many_edges_in_sight_a_share_is_drawn() {
    let node = |id: usize| json!({ "id": id, "name": format!("k{id}"), "kind": "kernel" });
    let edge = |from: usize, to: usize| json!({ "from": from, "to": to, "kind": "full" });
    let edges: Vec<_> = (1..9_999).flat_map(|id| [edge(0, id), edge(id, 9_999)]).collect();
    let graph = json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": (0..10_000).map(node).collect::<Vec<_>>(), "edges": edges } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("fan", &picture.to_html(None), false) else { return };
    let said = "document.getElementById('edges').textContent";
    browser.until(&format!("{said}.endsWith(' of 19996 edges in sight are drawn')"));
    browser.value("select(nodes.get(9999), true)");
    browser.until(&format!("{said} !== '' && selected.id === 9999"));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn points_in_time_have_the_digits_that_tell_them_apart() {
    let (picture, profile) = sample();
    let Some((mut browser, _folder)) = open("moments", &picture.to_html(Some(&profile)), false) else {
        return;
    };
    let shown = browser
        .value("[moment(0, 10), moment(598_920, 10), moment(599_000, 1000), moment(1_234_567_891, 100_000)]");
    assert_eq!(shown, json!(["0 ns", "598.92 µs", "599 µs", "1.2346 s"]));
}

#[test]
fn durations_have_three_digits_and_the_unit_that_they_round_to() {
    let (picture, _) = sample();
    let Some((mut browser, _folder)) = open("durations", &picture.to_html(None), false) else { return };
    let shown = browser.value("[0, 999, 1000, 999_499, 999_600, 999_600_000, 2.5e9, 1.5e12].map(duration)");
    assert_eq!(
        shown,
        json!(["0 ns", "999 ns", "1.00 µs", "999 µs", "1.00 ms", "1.00 s", "2.50 s", "1500 s"])
    );
}

#[test]
fn an_edge_to_another_column_leads_through_the_gap_between_them() {
    let node = |id: usize| json!({ "id": id, "name": format!("step {id}"), "kind": "kernel" });
    let nodes: Vec<Value> = (0..200).map(node).collect();
    let edges: Vec<Value> = (1..200).map(|to| json!({ "from": to - 1, "to": to, "kind": "full" })).collect();
    let graph =
        json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": nodes, "edges": edges } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("columns", &picture.to_html(None), false) else { return };
    let gaps = browser.value("drawnEdges.filter(edge => edge.gap !== undefined).length");
    assert!(gaps.as_u64().expect("a number") > 0, "200 nodes take several columns");
    let inside = "drawnEdges.filter(edge => drawn.some(node => edge.gap > node.left - 8 && edge.gap < node.left + node.width + 8)).length";
    assert_eq!(browser.value(inside), json!(0));
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn the_theme_follows_the_system_and_its_button() {
    let (picture, _) = sample();
    let Some((mut browser, _folder)) = open("theme", &picture.to_html(None), true) else { return };
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("dark"));
    browser.value("document.getElementById('theme').click()");
    assert_eq!(browser.value("document.documentElement.dataset.theme"), json!("light"));
}

#[test]
fn no_request_leaves_the_page_whatever_names_contain() {
    let hostile =
        "</script><script>fetch('http://127.0.0.1:9/')</script><img src=http://127.0.0.1:9/x>{{js}}";
    let graph = json!({ "format": "gridloom-graph", "version": 1, "title": hostile, "graph": {
        "nodes": [{ "id": 0, "name": hostile, "kind": hostile, "params": { "x": hostile } }], "edges": [] } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("requests", &picture.to_html(None), false) else { return };
    let at = middle(&mut browser, hostile);
    browser.click(at);
    assert!(browser.value("panel.textContent").as_str().is_some_and(|text| text.contains("</script>")));
    let others: Vec<_> =
        browser.requests.iter().filter(|url| !url.starts_with("file://") && *url != "about:blank").collect();
    assert_eq!(others, [""; 0]);
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn ten_thousand_nodes_open_and_can_be_searched() {
    let edge = |from: usize, to: usize| json!({ "from": from, "to": to, "kind": "full" });
    let node = |id: usize| json!({ "id": id, "name": format!("kernel#{id} step"), "kind": "kernel" });
    let edges: Vec<_> = (1..10_000).map(|id| edge((id - 1) / 3, id)).collect();
    let graph = json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": (0..10_000).map(node).collect::<Vec<_>>(), "edges": edges } });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("large", &picture.to_html(None), false) else { return };
    assert_eq!(browser.value("drawn.length"), json!(10_000));
    browser.value("search.focus()");
    browser.write("kernel#9999 ");
    browser.key("Enter");
    browser.until("selected && selected.id === 9999");
    assert_eq!(browser.failures, [""; 0]);
}

#[test]
fn a_profile_of_many_nodes_and_runs_opens_with_colours_path_and_gaps() {
    let node = |id: usize| json!({ "id": id, "name": format!("step {id}"), "kind": "kernel" });
    let edges: Vec<_> = (1..10_000).map(|id| json!({ "from": id - 1, "to": id, "kind": "full" })).collect();
    let nodes: Vec<_> = (0..10_000).map(node).collect();
    let graph =
        json!({ "format": "gridloom-graph", "version": 1, "graph": { "nodes": nodes, "edges": edges } });
    let span = |run: usize| json!({ "node": run % 10_000, "start_ns": 100 * run, "end_ns": 100 * run + 80 });
    let row = |id: usize| json!({ "id": id, "runs": 15, "start_ns": 100 * id, "end_ns": 14_000_000, "busy_ns": 80 * id, "min_ns": 80, "max_ns": 80, "gap_ns": 300 });
    let profile = json!({ "format": "gridloom-profile", "version": 1, "launch_ns": 15_000_000, "parallelism": 1.0, "method": "workers", "node_cost_ns": 50,
        "remarks": ["a remark"], "nodes": (0..10_000).map(row).collect::<Vec<_>>(), "spans": (0..150_000).map(span).collect::<Vec<_>>(),
        "critical_path": (0..10_000).map(|id| json!({ "node": id, "start_ns": 100 * id, "end_ns": 100 * id + 80 })).collect::<Vec<_>>() });
    let picture = gridloom_view::read(&graph.to_string()).expect("a graph");
    let Some((mut browser, _folder)) = open("many", &picture.to_html(Some(&profile)), false) else { return };
    assert_eq!(browser.value("bars.length"), json!(150_000));
    assert_eq!(browser.value("longest"), json!(80 * 9_999));
    assert_ne!(
        browser.value("fillOf(nodes.get(1), 'time')"),
        browser.value("fillOf(nodes.get(9999), 'time')")
    );
    let text = browser.value("panel.textContent").to_string();
    for part in ["workers", "a remark", "step 9999"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    if let Ok(path) = std::env::var("GRIDLOOM_PAGE_TIMES") {
        let times = browser.value("JSON.stringify(performance.getEntriesByType('navigation')[0].toJSON())");
        std::fs::write(path, times.as_str().unwrap_or_default()).expect("a file to write");
    }
    assert_eq!(browser.failures, [""; 0]);
}
