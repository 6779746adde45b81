//! Files that are made to take forever, or more memory than they have bytes.
//!
//! Each is read in an instant, or refused. Read in the obvious way, each takes hours or the memory
//! of the machine.

use std::fmt::Write;

use gridloom_file::document::{
    Arg, Buffer, Document, Graph, Kernel, Launch, Memory, Node, NodeRef, Operation, Port, Region,
};
use gridloom_file::{Array, DType, GraphFile};
use gridloom_view::{Picture, read, saved};

fn refused(text: &str) -> String {
    read(text).expect_err("refused").to_string()
}

/// The numbers of all nodes.
fn ids(graph: &gridloom_view::Graph) -> Vec<usize> {
    let inside = |node: &gridloom_view::Node| -> Vec<usize> {
        node.bodies.iter().flat_map(|body| ids(&body.graph)).collect()
    };
    graph.nodes.iter().flat_map(|node| [vec![node.id], inside(node)].concat()).collect()
}

fn node(operation: Operation) -> Node {
    Node { name: None, after: vec![], programmatic: vec![], operation }
}

fn launch(kernel: usize, args: Vec<Arg>) -> Operation {
    Operation::Kernel(Launch {
        kernel,
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        cluster: None,
        cooperative: false,
        priority: None,
        programmatic: false,
        args,
    })
}

fn with_nodes(nodes: Vec<Node>) -> Document {
    Document { graphs: vec![Graph { nodes }], ..Document::default() }
}

fn picture(document: Document, modules: Vec<String>) -> Picture {
    let inputs = document.inputs.iter().map(|port| {
        Array::new(
            DType::parse(&port.dtype).unwrap(),
            port.shape.clone(),
            vec![0; port.region.bytes as usize],
        )
        .unwrap()
    });
    let file = GraphFile { modules, inputs: inputs.collect(), document, ..GraphFile::default() };
    saved::picture(&file).unwrap()
}

#[test]
fn many_clusters_with_many_edges_are_read() {
    let mut text = "digraph {\n".to_owned();
    for cluster in 0..50_000 {
        let _ = writeln!(text, "subgraph cluster_{cluster} {{ a{cluster} -> b{cluster} }}");
    }
    for edge in 1..500_000 {
        let _ = writeln!(text, "a{} -> a{}", edge % 50_000, edge * 7 % 50_000);
    }
    let picture = read(&(text + "}")).unwrap();
    assert_eq!(picture.graph.nodes.len(), 50_000);
    assert!(picture.graph.nodes.iter().all(|node| node.bodies[0].graph.edges.len() == 1));
}

#[test]
fn a_graph_inside_several_nodes_has_other_numbers_in_each() {
    let mut text = "digraph { subgraph cluster_1 { label=graph_1; ".to_owned();
    (0..20).for_each(|node| _ = write!(text, "n{node} [label=\"{node}\\ngraph_2\"]; "));
    text += "} subgraph cluster_2 { label=graph_2; x -> y } }";
    let picture = read(&text).unwrap();
    let mut numbers = ids(&picture.graph);
    assert_eq!(numbers.len(), 20 * 3);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 20 * 3, "each number is unique");
}

#[test]
fn graphs_that_multiply_are_refused() {
    // Each node of a level contains the next level twice.
    let mut text = "digraph { ".to_owned();
    for level in 1..40 {
        let _ = write!(text, "subgraph cluster_{level} {{ label=graph_{level}; ");
        for copy in 0..2 {
            let _ = write!(text, "n{level}_{copy} [label=\"{copy}\\ngraph_{}\"]; ", level + 1);
        }
        text += "} ";
    }
    assert!(refused(&(text + "}")).contains("nodes"));

    // A graph without nodes of its own, but with many clusters and edges, inside many nodes.
    let mut text = "digraph { subgraph cluster_1 { label=graph_1; ".to_owned();
    (0..20_000).for_each(|node| _ = write!(text, "n{node} [label=\"{node}\\ngraph_2\"]; "));
    text += "} subgraph cluster_2 { label=graph_2; x; ";
    (0..20_000).for_each(|inner| _ = write!(text, "subgraph cluster_i{inner} {{ }} "));
    assert!(refused(&(text.clone() + "} }")).contains("nodes"));

    // One with a huge label, and one with many edges.
    let begin = &text[..text.find("x; ").unwrap()];
    assert!(refused(&format!("{begin} x [label=\"{}\"] }} }}", "y".repeat(1 << 20))).contains("too large"));
    let edges: String = (0..20_000).map(|_| "x -> y;").collect();
    assert!(refused(&format!("{begin} {edges} }} }}")).contains("too many edges"));
}

#[test]
fn a_graph_that_contains_itself_is_refused() {
    let text = "digraph { subgraph cluster_1 { label=graph_1; a [label=\"0\\ngraph_2\"] } \
                subgraph cluster_2 { label=graph_2; b [label=\"0\\ngraph_1\"] } c [label=\"0\\ngraph_1\"] }";
    assert!(refused(text).contains("contain themselves"));
}

#[test]
fn a_label_with_many_names_of_graphs_is_read() {
    let names: String = (0..300_000).map(|graph| format!(" graph_{graph}")).collect();
    let picture = read(&format!("digraph {{ a [label=\"0\\n{names}\"] }}")).unwrap();
    assert!(picture.graph.nodes[0].bodies.is_empty());
}

/// The mangled name of a function whose last parameter has two parts, each like the parameter
/// before it.
fn doubling(levels: u32) -> String {
    let number = |number: u32| char::from_digit(number, 36).unwrap().to_ascii_uppercase();
    let mut name = "_Z1f1aIiE".to_owned();
    for level in 0..levels {
        let before = number(2 * level);
        let _ = write!(name, "1bIS{before}_S{before}_E");
    }
    name
}

#[test]
fn a_mangled_name_that_stands_for_a_huge_one_stays_as_it_is() {
    let read = |name: &str| read(&format!("digraph {{ a [shape=octagon, label=\"0\\n{name}\"] }}")).unwrap();
    assert_eq!(read(&doubling(5)).graph.nodes[0].name, "f");
    for name in
        [doubling(17), "_Z".to_owned() + &"N".repeat(100_000), "_ZN".to_owned() + &"1a".repeat(50_000)]
    {
        assert_eq!(read(&name).graph.nodes[0].name, name);
    }
}

#[test]
fn tokens_take_no_more_memory_than_a_part_of_the_text() {
    let text = format!("digraph {{ {} a }}", ";".repeat(64 << 20));
    assert_eq!(read(&text).unwrap().node_count(), 1);
}

#[test]
fn a_long_name_that_many_nodes_refer_to_is_cut_where_they_do() {
    let long = "n".repeat(1 << 20);
    let kernel = Kernel { module: 0, name: long.clone(), signature: None };
    let variable = Buffer::Variable { module: 0, name: long.clone(), bytes: 4 };
    let region = |of| Arg::Memory(Region { of, offset: 0, bytes: 4 });
    let alloc = Operation::Alloc {
        len: 1,
        element_size: 4,
        memory: gridloom_file::document::MemoryKind::Device,
        peers: vec![],
    };
    let mut nodes = vec![Node { name: Some(long.clone()), ..node(alloc) }];
    for _ in 0..20_000 {
        let args = vec![region(Memory::Buffer(0)), region(Memory::Alloc(NodeRef(0, 0)))];
        nodes.push(Node { after: vec![0], ..node(launch(0, args)) });
        nodes.push(node(Operation::Free(NodeRef(0, 0))));
    }
    let mut document = with_nodes(nodes);
    (document.modules, document.kernels, document.buffers) = (1, vec![kernel], vec![variable]);
    let picture = picture(document, vec![format!(".file 1 \"{long}\"\n.entry {long}(\n.loc 1 2\n")]);
    assert_eq!(picture.graph.nodes[0].name, long, "its own name is whole");
    let sum = |text: String| text.len();
    assert!(sum(picture.to_tree()) + sum(picture.to_html(None)) < 100 << 20);
    assert!(
        picture.diff(&Picture { graph: gridloom_view::Graph::default(), ..picture.clone() }).len() > 20_000
    );
}

#[test]
fn many_kernels_ports_and_edges_are_read() {
    let many = 60_000;
    let ptx: String = (0..many).map(|kernel| format!(".entry k{kernel}()\n.loc 1 {kernel}\n")).collect();
    let name = |kernel| format!("k{kernel}");
    let kernels = (0..many).map(|kernel| Kernel { module: 0, name: name(kernel), signature: None });
    let buffer = |buffer| Region { of: Memory::Buffer(buffer), offset: 0, bytes: 1 };
    let nodes = (0..many).map(|kernel| node(launch(kernel, vec![Arg::Memory(buffer(kernel))])));
    let mut document = with_nodes(nodes.collect());
    let after: Vec<usize> = (0..many).collect();
    document.graphs[0].nodes.push(Node {
        after: after.clone(),
        programmatic: after,
        ..node(launch(0, vec![]))
    });
    (document.modules, document.kernels) = (1, kernels.collect());
    document.buffers = vec![Buffer::Device(1); many];
    let port =
        |number| Port { name: name(number), region: buffer(number), dtype: "|u1".into(), shape: vec![1] };
    (document.inputs, document.outputs) = ((0..many).map(port).collect(), (0..many).map(port).collect());
    let picture = picture(document, vec![ptx]);
    let last = &picture.graph.nodes[many - 1];
    assert!(last.facts.contains(&("args[0]".to_owned(), format!("k{}, 1 bytes", many - 1))), "{last:?}");
    assert!(last.facts.contains(&("source".to_owned(), format!("source:{}", many - 1))), "{last:?}");
    assert!(picture.graph.edges.iter().all(|edge| edge.programmatic));
    assert!(picture.diff(&picture.clone()).is_empty());
}

#[test]
fn keys_and_facts_of_json_without_end_are_read() {
    let long = "k".repeat(1 << 20);
    let leaves: String = (0..20_000).map(|leaf| format!(", \"{leaf}\": 1")).collect();
    let text = format!(
        r#"{{ "format": "gridloom-graph", "version": 1, "graph": {{ "nodes": [
            {{ "id": 0, "name": "a", "kind": "kernel", "params": {{ "{long}": {{ "x": 1{leaves} }} }} }}] }} }}"#
    );
    let picture = read(&text).unwrap();
    let facts = &picture.graph.nodes[0].facts;
    assert!(facts.iter().map(|(name, _)| name.len()).sum::<usize>() < 10 << 20);

    let many: String = (0..200_000).map(|fact| format!("\"{fact}\": {fact},")).collect();
    let text = |last: u32| {
        format!(
            r#"{{ "format": "gridloom-graph", "version": 1, "graph": {{ "nodes": [
                {{ "id": 0, "name": "a", "kind": "kernel", "params": {{ {many} "last": {last} }} }}] }} }}"#
        )
    };
    let found = read(&text(1)).unwrap().diff(&read(&text(2)).unwrap());
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn deep_and_repeated_json_is_refused() {
    let deep = "[".repeat(100_000);
    let node = |params: &str, more: &str| {
        format!(
            r#"{{ "format": "gridloom-graph", "version": 1{more}, "graph": {{ "nodes": [
                {{ "id": 0, "name": "a", "kind": "kernel", "params": {params} }}] }} }}"#
        )
    };
    assert!(refused(&node(&deep, "")).contains("nested deeper"));
    assert!(refused(&node("1", ", \"version\": 1")).contains("duplicate"));
    assert!(refused(&node("1e999", "")).contains("number out of range"));
    assert!(refused(&node("NaN", "")).contains("no graph in JSON"));
}
