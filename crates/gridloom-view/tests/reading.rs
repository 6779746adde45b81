//! Reading of valid and invalid graphs, and the texts written from them.

use gridloom_view::{MOST_DEPTH, Picture, read};

/// As CUDA 12.8 writes a graph with an embedded one and a loop, without details.
const SHORT: &str = r#"digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="bold" shape="octagon" label="0
_Z4fillPi\<\<\<1,128,0\>\>\>
"];
"graph_1_node_1"[style="solid" shape="rectangle" label="1
graph_2
"];
"graph_1_node_0" -> "graph_1_node_1";
}
subgraph cluster_2 {
label="graph_2" graph[style="dashed"];
"graph_2_node_0"[style="bold" shape="octagon" label="0
_Z4stepPi
"];
}
}
"#;

fn refused(text: &str) -> String {
    read(text).expect_err("refused").to_string()
}

fn json(nodes: &str, edges: &str) -> String {
    format!(
        r#"{{ "format": "gridloom-graph", "version": 1, "graph": {{ "nodes": [{nodes}], "edges": [{edges}] }} }}"#
    )
}

fn names(picture: &Picture) -> Vec<&str> {
    picture.graph.nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn a_graph_of_cuda_has_its_embedded_graph_inside_its_node() {
    let picture = read(SHORT).expect("a graph");
    assert_eq!(names(&picture), ["fill", "graph_2"]);
    let child = &picture.graph.nodes[1];
    assert_eq!(child.kind, "child");
    assert_eq!(child.bodies[0].graph.nodes[0].name, "step");
    assert_eq!(picture.graph.edges.len(), 1);
}

#[test]
fn nested_clusters_become_nodes_with_bodies() {
    let picture =
        read("digraph g { a -> b; subgraph cluster_x { label=inner; b -> c [style=dashed]; c; } c -> d }")
            .expect("a graph");
    let inner = picture.graph.nodes.iter().find(|node| !node.bodies.is_empty()).expect("a body");
    assert_eq!(inner.name, "inner");
    assert_eq!(names(&picture), ["a", "b", "d", "inner"]);
    // The edges from b to c and from c to d end at the node that c is in.
    assert_eq!(picture.graph.edges.len(), 3);
}

#[test]
fn edges_of_subgraphs_are_those_of_all_their_nodes() {
    let picture =
        read("digraph { a -> {b; c} -> subgraph x { d -> e } [style=bold]; {a b} }").expect("a graph");
    let edges = |picture: &Picture| {
        let name = |id: usize| picture.graph.nodes.iter().find(|node| node.id == id).unwrap().name.clone();
        let mut edges: Vec<String> =
            picture.graph.edges.iter().map(|edge| name(edge.from) + &name(edge.to)).collect();
        edges.sort();
        edges.join(" ")
    };
    assert_eq!(edges(&picture), "ab ac bd be cd ce de");
    let many = |side: char| (0..5000).map(|node| format!("{side}{node} ")).collect::<String>();
    let reason = refused(&format!("digraph {{ {{{}}} -> {{{}}} }}", many('a'), many('b')));
    assert!(reason.contains("more than 4000000 edges"), "{reason}");
}

#[test]
fn a_node_belongs_to_the_innermost_cluster_that_lists_it() {
    let picture =
        read("digraph { a -> b; b -> c; subgraph cluster_0 { label=inner; b; c } c -> d }").expect("a graph");
    assert_eq!(names(&picture), ["a", "d", "inner"]);
    let inner = picture.graph.nodes.iter().find(|node| node.name == "inner").unwrap();
    assert_eq!(inner.bodies[0].graph.nodes.len(), 2);
}

#[test]
fn html_labels_are_text_and_invisible_things_are_left_out() {
    let picture = read(
        r#"digraph g {
            a [label=<<B>solve &lt;it&gt;</B><BR/><FONT COLOR="red">while</FONT><br/>condition 0 &#38; a\b>]
            subgraph cluster_x { label=body; b [label=<<B>kernel#0 step</B>>]; b -> gone [style=invis]
                gone [label="", style=invis] }
            a -> b; gone -> c
        }"#,
    )
    .expect("a graph");
    assert_eq!(names(&picture), ["solve <it>", "c", "body"]);
    let solve = &picture.graph.nodes[0];
    assert_eq!((solve.kind.as_str(), solve.facts[0].1.as_str()), ("while", "condition 0 & a\\b"));
    let body = &picture.graph.nodes[2];
    assert_eq!(body.bodies[0].graph.nodes.len(), 1);
    assert_eq!(body.bodies[0].graph.nodes[0].kind, "kernel");
    // What leads through an invisible node leads out of the cluster that it is in.
    let ids = |edge: &gridloom_view::Edge| (edge.from, edge.to);
    let expected = [(solve.id, body.id), (body.id, picture.graph.nodes[1].id)];
    assert_eq!(picture.graph.edges.iter().map(ids).collect::<Vec<_>>(), expected);
}

#[test]
fn labels_without_a_number_stay_the_names_of_nodes() {
    let picture = read(r#"digraph g { a [label="memcpy 3"]; b [label="MEMSET"]; a -> b }"#).expect("a graph");
    assert_eq!(names(&picture), ["memcpy 3", "MEMSET"]);
    let kinds: Vec<&str> = picture.graph.nodes.iter().map(|node| node.kind.as_str()).collect();
    assert_eq!(kinds, ["memcpy", "memset"]);
}

#[test]
fn parameters_of_the_json_form_become_facts() {
    let picture = read(&json(
        r#"{ "id": 4, "name": "fill", "kind": "memset", "params": { "dst": { "buffer": 2, "offset": 8, "bytes": 64 }, "value": 7 } }"#,
        "",
    ))
    .expect("a graph");
    let facts = &picture.graph.nodes[0].facts;
    assert!(facts.contains(&("dst".to_owned(), "buffer 2 + 8, 64 bytes".to_owned())), "{facts:?}");
    assert!(facts.contains(&("value".to_owned(), "7".to_owned())));
}

#[test]
fn the_tree_indents_bodies_and_says_what_nodes_wait_for() {
    let picture = read(&json(
        r#"{ "id": 0, "name": "start", "kind": "empty" },
           { "id": 1, "name": "choose", "kind": "if-else", "bodies": [
             { "nodes": [{ "id": 2, "name": "kernel#0 f", "kind": "kernel" }] }, { "nodes": [] }] }"#,
        r#"{ "from": 0, "to": 1 }"#,
    ))
    .expect("a graph");
    assert_eq!(
        picture.to_tree(),
        "graph (3 nodes)\n  start  [empty]\n  choose  [if-else]  after start\n    then:\n      kernel#0 f\n    else:\n"
    );
}

#[test]
fn the_tree_has_no_control_characters_of_names() {
    let picture = read(&json(
        r#"{ "id": 0, "name": "a\u001b[31m\n", "kind": "kernel\u0007" }, { "id": 1, "name": "b", "kind": "kernel" }"#,
        r#"{ "from": 0, "to": 1 }"#,
    ))
    .expect("a graph");
    let tree = picture.to_tree();
    assert!(!tree.contains(|c: char| c.is_control() && c != '\n'), "{tree:?}");
    assert_eq!(tree.lines().count(), 3, "{tree:?}");
}

#[test]
fn a_drawing_holds_every_name_escaped() {
    let picture =
        read(&json(r#"{ "id": 0, "name": "a<b>&\"c\u0001", "kind": "kernel" }"#, "")).expect("a graph");
    let svg = picture.to_svg();
    assert!(svg.contains("a&lt;b&gt;&amp;&quot;c\u{fffd}"), "{svg}");
    assert!(!svg.contains("a<b>"));
}

#[test]
fn texts_that_are_no_graph_are_refused_with_a_reason() {
    assert!(refused("").contains("empty"));
    assert!(refused("hello").contains("neither"));
    assert!(refused("{ \"a\": 1 }").contains("no graph in JSON"));
    assert!(refused("digraph { a -> }").contains("line 1"));
    assert!(refused("digraph { a [label=\"x }").contains("no end"));
    assert!(refused("digraph {\n\n a -- b }").starts_with("line 3"));
    assert!(refused("digraph { }").contains("no nodes"));
    assert!(refused("graph { a -- b }").contains("digraph"));
}

#[test]
fn edges_and_numbers_that_do_not_fit_are_refused() {
    let node = r#"{ "id": 0, "name": "a", "kind": "empty" }"#;
    assert!(refused(&json(node, r#"{ "from": 0, "to": 9 }"#)).contains("no node 9"));
    assert!(refused(&json(&format!("{node},{node}"), "")).contains("two nodes"));
    assert!(refused(&json(node, "").replace("\"version\": 1", "\"version\": 7")).contains("version 7"));
    assert!(refused(&json(node, "").replace("gridloom-graph", "other")).contains("'other'"));
}

#[test]
fn graphs_that_contain_each_other_end() {
    let text = r#"digraph { subgraph cluster_1 { label=graph_1; a [label="0\ngraph_2"]; z; }
        subgraph cluster_2 { label=graph_2; b [label="0\ngraph_3"]; } subgraph cluster_3 { label=graph_3; c [label="0\ngraph_2"]; } }"#;
    assert!(refused(text).contains("contain themselves"));
}

#[test]
fn nesting_without_end_is_refused() {
    let mut text = r#"{ "id": 0, "name": "n", "kind": "child" }"#.to_owned();
    for id in 1..MOST_DEPTH + 3 {
        text =
            format!(r#"{{ "id": {id}, "name": "n", "kind": "child", "bodies": [{{ "nodes": [{text}] }}] }}"#);
    }
    assert!(refused(&json(&text, "")).contains("nested deeper"));
    let dot = format!("digraph {}", "{".repeat(100_000));
    assert!(refused(&dot).contains("nested deeper"));
}

#[test]
fn json_is_read_as_deep_as_graphs_are_nested() {
    let mut text = r#"{ "id": 0, "name": "innermost {[\"", "kind": "child" }"#.to_owned();
    for id in 1..MOST_DEPTH + 1 {
        text =
            format!(r#"{{ "id": {id}, "name": "n", "kind": "child", "bodies": [{{ "nodes": [{text}] }}] }}"#);
    }
    let picture = read(&json(&text, "")).expect("a graph");
    assert!(picture.to_tree().contains("innermost {[\""));
    for drawn in [picture.to_svg(), picture.to_dot(), picture.to_mermaid(), picture.to_html(None)] {
        assert!(drawn.contains("innermost"));
    }
}

#[test]
fn the_page_is_whole() {
    let page = read(SHORT).expect("a graph").to_html(None);
    assert!(!page.contains("{{") && page.trim_end().ends_with("</html>"));
    for address in ["http://", "https://", "//cdn"] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn dot_that_is_written_is_read_again_with_the_same_nodes_and_edges() {
    let picture = read(SHORT).expect("a graph");
    let again = read(&picture.to_dot()).expect("a graph");
    assert_eq!(again.graph.edges.len(), 1);
    assert!(again.graph.nodes.iter().any(|node| node.name == "fill"));
    assert!(picture.to_mermaid().starts_with("flowchart TB\n  n0[\"fill\"]"));
}

/// A graph that a program wrote with `cuGraphDebugDotPrint` on a driver for CUDA 13.0.
fn written_by_cuda(name: &str) -> Picture {
    let path = format!("{}/tests/data/{name}.dot", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read_to_string(path).expect("a file of this test")).expect("a graph")
}

#[test]
fn loops_and_embedded_graphs_of_a_cuda_program_are_shown_short_and_verbose() {
    for name in ["conditional_plain", "conditional_verbose"] {
        let picture = written_by_cuda(name);
        let kinds: Vec<&str> = picture.graph.nodes.iter().map(|node| node.kind.as_str()).collect();
        assert_eq!(
            kinds,
            ["memset", "while", "child", "memcpy", "empty", "event_record", "callback"],
            "{name}"
        );
        assert_eq!(
            names(&picture),
            ["memset#0", "while#1", "graph_4", "memcpy#3", "empty#4", "event_record#5", "callback#6"]
        );
        let inside = |node: usize| {
            let graph = &picture.graph.nodes[node].bodies[0].graph;
            (graph.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), graph.edges.len())
        };
        assert_eq!(inside(1), (vec!["step"], 0));
        assert_eq!(inside(2), (vec!["plain", "plain"], 1));
        assert_eq!(picture.graph.edges.len(), 6);
    }
}

#[test]
fn a_graph_of_cuda_core_is_shown() {
    let picture = written_by_cuda("core");
    assert_eq!((names(&picture), picture.graph.edges.len()), (vec!["inc"; 4], 4));
    let layers: Vec<usize> = picture.graph.nodes.iter().map(|node| node.layer).collect();
    assert_eq!(layers, [0, 1, 1, 2]);
}

#[test]
fn a_graph_of_pytorch_is_shown_with_launch_shapes_and_readable_names() {
    let picture = written_by_cuda("torch");
    let first = &picture.graph.nodes[0];
    assert_eq!((first.name.as_str(), first.kind.as_str()), ("cutlass::Kernel2", "kernel"));
    assert!(first.facts.contains(&("grid".to_owned(), "4 × 1 × 4".to_owned())), "{:?}", first.facts);
    assert!(picture.graph.nodes.iter().any(|node| node.name == "at::native::vectorized_elementwise_kernel"));
    assert!(picture.graph.nodes.iter().any(|node| node.kind == "memset"));
}

/// An if/else with an empty branch inside a loop, between two nodes.
fn nested() -> Picture {
    read(&json(
        r#"{ "id": 0, "name": "", "kind": "memset" },
           { "id": 1, "name": "loop", "kind": "while", "bodies": [{ "nodes": [
             { "id": 2, "name": "choose", "kind": "if-else", "bodies": [
               { "nodes": [{ "id": 3, "name": "step", "kind": "kernel" }] }, { "nodes": [] }] }] }] },
           { "id": 4, "name": "copy", "kind": "memcpy" }"#,
        r#"{ "from": 0, "to": 1 }, { "from": 1, "to": 4 }"#,
    ))
    .expect("a graph")
}

#[test]
fn dot_puts_a_node_and_its_bodies_into_one_cluster() {
    let dot = nested().to_dot();
    let inside = |cluster: &str| {
        let start = dot.find(&format!("subgraph {cluster} {{")).unwrap_or_else(|| panic!("{cluster}: {dot}"));
        let indent = dot[..start].rsplit('\n').next().unwrap_or_default().len();
        let end = dot[start..].find(&format!("\n{}}}", " ".repeat(indent))).expect("it ends");
        dot[start..start + end].to_owned()
    };
    for (cluster, node) in [("cluster_n1", "n1 [label=\"loop\""), ("cluster_n1_0", "n2 [label=\"choose\"")] {
        assert!(inside(cluster).contains(node), "{cluster}: {dot}");
    }
    assert!(
        inside("cluster_n2_0").contains("label=\"then\"")
            && inside("cluster_n2_1").contains("label=\"else\"")
    );
    for edge in
        ["n0 -> n1 [lhead=cluster_n1]", "n1_out -> n4 [ltail=cluster_n1]", "n1 -> n2 [lhead=cluster_n1_0"]
    {
        assert!(dot.contains(edge), "{edge}: {dot}");
    }
}

#[test]
fn dot_that_is_written_is_read_again_with_the_same_bodies() {
    let again = read(&nested().to_dot()).expect("a graph");
    assert_eq!(again.node_count(), nested().node_count());
    // A node without a name is called as in the text. Those with bodies come last.
    assert_eq!(
        again.to_tree().split_once('\n').unwrap().1,
        "  n0  [memset]\n  copy  [memcpy]  after loop\n  loop  [while]  after n0\n    choose  [if-else]\n      \
         then:\n        step  [kernel]\n      else:\n"
    );
}

#[test]
fn mermaid_gets_no_empty_labels() {
    let chart = nested().to_mermaid();
    assert!(!chart.contains("\"\"") && chart.contains("n0[\"(no name)\"]"), "{chart}");
    assert!(
        chart.contains("subgraph n2_0[\"then\"]") && chart.contains("subgraph n2_1[\"else\"]"),
        "{chart}"
    );
}

#[test]
fn a_wide_layer_is_drawn_in_several_rows_and_nodes_cover_edges() {
    let nodes: Vec<String> =
        (0..200).map(|id| format!(r#"{{ "id": {id}, "name": "kernel {id}", "kind": "kernel" }}"#)).collect();
    let edges: Vec<String> = (1..200).map(|id| format!(r#"{{ "from": 0, "to": {id} }}"#)).collect();
    let svg = read(&json(&nodes.join(","), &edges.join(","))).expect("a graph").to_svg();
    let width: f64 =
        svg.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().parse().unwrap();
    assert!(width < 2500.0, "{width}");
    assert!(svg.rfind("<path").unwrap() < svg.find("<rect x").unwrap());
}

#[test]
fn edges_that_skip_nodes_go_straight_down_beside_all_of_them() {
    let names =
        ["first", "second", "a node with a name so long that it is the widest of them", "fourth", "last"];
    let nodes: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(id, name)| format!(r#"{{ "id": {id}, "name": "{name}", "kind": "kernel" }}"#))
        .collect();
    let edge = |from: usize, to: usize| format!(r#"{{ "from": {from}, "to": {to}, "kind": "full" }}"#);
    let edges = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4), edge(0, 3), edge(0, 4)];
    let svg = read(&json(&nodes.join(","), &edges.join(","))).expect("a graph").to_svg();
    let number = |text: &str| -> f64 {
        let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().expect("a number")
    };
    let right = |rect: &str| {
        let of = |name: &str| number(rect.split(name).nth(1).expect("an attribute"));
        of(" x=\"") + of(" width=\"")
    };
    let widest = svg.split("<rect").skip(2).map(right).fold(0.0, f64::max);
    // The place where the line runs straight down stands before its `V`.
    let lanes: Vec<f64> = svg
        .lines()
        .filter_map(|line| Some(line.split_once('V')?.0.rsplit(' ').nth(1)?.to_owned()))
        .map(|lane| number(&lane))
        .collect();
    assert_eq!(lanes.len(), 2, "{svg}");
    assert!(lanes.iter().all(|&lane| lane > widest) && lanes[0] != lanes[1], "{lanes:?} beside {widest}");
}
