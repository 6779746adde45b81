//! Files that are made to take forever, or more memory than they have bytes.
//!
//! Each is loaded in an instant, or refused. Loaded in the obvious way, each takes hours or the
//! memory of the machine.

use gridloom::prelude::*;
use gridloom::{LoadOptions, LoadedGraph, Result};
use gridloom_file::GraphFile;
use gridloom_file::document::{
    Arg, Condition, Document, Graph, Kernel, Launch, Node, Operation, Port, Region, Test,
};

use super::archive;
use crate::support::refused;

const PTX: &str =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing(.param .u64 n)\n{\n\tret;\n}\n";

fn node(operation: Operation) -> Node {
    Node { name: None, after: vec![], programmatic: vec![], operation }
}

fn launch(kernel: usize, args: Vec<Arg>) -> Node {
    node(Operation::Kernel(Launch {
        kernel,
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        cluster: None,
        cooperative: false,
        priority: None,
        programmatic: true,
        args,
    }))
}

/// A file of one module, with as many entries for its kernel.
fn with_kernels(kernels: usize, document: Document) -> GraphFile {
    let kernel = Kernel { module: 0, name: "nothing".into(), signature: None };
    let document = Document { modules: 1, kernels: vec![kernel; kernels], ..document };
    GraphFile { document, modules: vec![PTX.to_owned()], ..GraphFile::default() }
}

fn load(file: &GraphFile) -> Result<LoadedGraph> {
    let device = Device::cpu_with(CpuOptions::new().checked(true).threads(1)).unwrap();
    let bytes = file.to_bytes().map_err(|error| Error::new(ErrorKind::InvalidFile, error.to_string()))?;
    LoadOptions::new().memory_limit(64 << 20).load_bytes_checked(&bytes, &device)
}

#[test]
fn many_graphs_with_a_condition_at_the_end_are_loaded() {
    let many = 100_000;
    let mut graphs: Vec<Graph> =
        vec![Graph { nodes: (1..=many).map(|graph| node(Operation::Child(graph))).collect() }];
    graphs.resize(many + 1, Graph::default());
    let conditions = vec![Condition { graph: many, default: Some(1) }; many];
    let document = Document { graphs, conditions, ..Document::default() };
    let loaded = load(&GraphFile { document, ..GraphFile::default() }).unwrap();
    assert_eq!(loaded.graph().nodes().len(), many);
}

#[test]
fn many_edges_that_are_programmatic_are_loaded() {
    let many = 30_000;
    let mut nodes = vec![launch(0, vec![Arg::Bytes("0000000000000000".into())]); many];
    let after: Vec<usize> = (0..many).collect();
    // Every second edge is full.
    let programmatic = after.iter().copied().filter(|after| after % 2 == 0).collect();
    let last = launch(0, vec![Arg::Bytes("0000000000000000".into())]);
    nodes.push(Node { after, programmatic, ..last });
    let document = Document { graphs: vec![Graph { nodes }], ..Document::default() };
    let file = with_kernels(1, document);
    let loaded = load(&file).unwrap();
    let again = GraphFile::from_bytes(&loaded.saver().to_bytes().unwrap(), &Default::default()).unwrap();
    assert_eq!(again.document.graphs, file.document.graphs);
}

#[test]
fn many_entries_for_one_kernel_are_loaded() {
    let document = Document { graphs: vec![Graph::default()], ..Document::default() };
    assert!(load(&with_kernels(100_000, document)).is_ok());
}

#[test]
fn numbers_of_things_that_are_not_there_are_refused_at_the_first() {
    let huge = 1_000_000_000;
    let document = |modules, constants| Document {
        modules,
        constants,
        graphs: vec![Graph::default()],
        ..Document::default()
    };
    let device = Device::cpu_with(CpuOptions::new().checked(true)).unwrap();
    for (document, said) in [(document(huge, 0), "modules/0.ptx"), (document(0, huge), "constants/0.npy")] {
        let text = serde_json::to_string(&document).unwrap();
        let bytes = archive(&[("graph.json", text.as_bytes())]);
        refused(LoadOptions::new().load_bytes_checked(&bytes, &device), ErrorKind::InvalidFile, &[said]);
    }
}

#[test]
fn many_inputs_and_outputs_are_compared_by_name() {
    let many = 60_000;
    let region = Region { of: gridloom_file::document::Memory::Buffer(0), offset: 0, bytes: 1 };
    let port =
        |number: usize| Port { name: format!("p{number}"), region, dtype: "|u1".into(), shape: vec![1] };
    let document = Document {
        buffers: vec![gridloom_file::document::Buffer::Device(1)],
        graphs: vec![Graph::default()],
        inputs: (0..many).map(port).collect(),
        outputs: (0..10 * many).map(port).collect(),
        ..Document::default()
    };
    let array =
        gridloom_file::Array::new(gridloom_file::DType::parse("|u1").unwrap(), vec![1], vec![7]).unwrap();
    let loaded = load(&GraphFile { document, inputs: vec![array; many], ..GraphFile::default() }).unwrap();
    assert_eq!(loaded.outputs().count(), 10 * many);
}

#[test]
fn a_condition_of_a_graph_elsewhere_is_refused() {
    // The second loop tests a condition of the body of the first.
    let repeat = |body| {
        node(Operation::While { test: Test::Condition(0), body, at_least_once: false, max_passes: None })
    };
    let document = Document {
        conditions: vec![Condition { graph: 1, default: Some(1) }],
        graphs: vec![Graph { nodes: vec![repeat(1), repeat(2)] }, Graph::default(), Graph::default()],
        ..Document::default()
    };
    refused(load(&GraphFile { document, ..GraphFile::default() }), ErrorKind::InvalidFile, &["condition"]);
}
