//! What cannot be saved, and who cannot load.

use gridloom::LoadOptions;
use gridloom::prelude::*;

use super::{load, run};
use crate::support::{GraphKernels, for_each_device, refused};

#[track_caller]
fn cannot_be_saved(graph: &Graph, says: &[&str]) {
    refused(graph.saver().to_bytes(), ErrorKind::NotSupported, says);
}

#[test]
fn what_a_file_cannot_hold_is_refused_by_the_name_of_the_node() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        graph.repeat(2)?.body().callback(|| ())?.named("shout")?;
        cannot_be_saved(&graph, &["shout", "code of this program"]);

        let graph = Graph::new(device);
        graph.wait(&device.event()?)?.named("wait for them")?;
        cannot_be_saved(&graph, &["wait for them", "no node of the graph records"]);

        let leaving = Graph::new(device);
        let kept = leaving.alloc::<i32>(1)?;
        let executable = leaving.instantiate()?;
        executable.launch(&kernels.stream)?;
        let graph = Graph::new(device);
        graph.free(&executable.buffer(&kept)?)?.named("late free")?;
        cannot_be_saved(&graph, &["late free", "left allocated"]);
        run(&graph)?;

        Ok(())
    });
}

#[test]
fn wrong_names_and_memory_of_alloc_nodes_cannot_be_inputs() {
    let device = Device::cpu().unwrap();
    let x = device.alloc::<f32>(4).unwrap();
    let graph = Graph::new(&device);
    let alloc = graph.alloc::<f32>(4).unwrap();
    for name in ["", ".hidden", "a/b", "..", "name with spaces", "é", &"x".repeat(65)] {
        refused(graph.saver().input(name, &x).map(drop), ErrorKind::InvalidArgument, &["cannot be the name"]);
    }
    refused(graph.saver().output("a", &alloc).map(drop), ErrorKind::InvalidArgument, &["alloc node"]);
    refused(graph.saver().shape("a", &[4]).map(drop), ErrorKind::NotFound, &["a"]);
    let saver = graph.saver().input("a", &x).unwrap();
    refused(saver.clone().shape("a", &[3]).map(drop), ErrorKind::InvalidArgument, &["4 elements"]);
    refused(saver.input("a", &x).unwrap().to_bytes(), ErrorKind::InvalidFile, &["a", "twice"]);
    x.close();
    refused(graph.saver().input("a", &x).map(drop), ErrorKind::InvalidHandle, &["closed"]);
}

#[test]
fn a_file_from_elsewhere_needs_a_device_that_checks() {
    let plain = Device::cpu().unwrap();
    let checked = Device::cpu_with(CpuOptions::new().checked(true)).unwrap();
    let kernels = GraphKernels::new(&plain).unwrap();
    let x = kernels.value(41).unwrap();
    let graph = Graph::new(&plain);
    kernels.bump(&graph, &x, 1).unwrap().named("wild").unwrap();
    let bytes = graph.saver().input("x", &x).unwrap().to_bytes().unwrap();
    refused(
        LoadOptions::new().load_bytes_checked(&bytes, &plain),
        ErrorKind::InvalidArgument,
        &["CpuOptions::checked"],
    );
    let loaded = LoadOptions::new().load_bytes_checked(&bytes, &checked).unwrap();
    run(loaded.graph()).unwrap();
    assert_eq!(loaded.buffer::<i32>("x").unwrap().to_vec().unwrap(), [42]);

    // A contract that lies: it says one element, and the launch says that the kernel writes many.
    let mut file = gridloom_file::GraphFile::from_bytes(&bytes, &gridloom_file::Limits::default()).unwrap();
    file.document.kernels[0].signature = None;
    let gridloom_file::document::Operation::Kernel(launch) = &mut file.document.graphs[0].nodes[0].operation
    else {
        panic!("a kernel")
    };
    launch.grid = [1000, 1, 1];
    launch.block = [256, 1, 1];
    launch.args[1] = gridloom_file::document::Arg::Bytes("ffffff7f".into());
    launch.args[2] = gridloom_file::document::Arg::Bytes("01000000".into());
    let loaded = LoadOptions::new().load_bytes_checked(&file.to_bytes().unwrap(), &checked).unwrap();
    let error = run(loaded.graph()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KernelFault, "{error}");
    assert!(error.to_string().contains("wild"), "{error}");
}

#[test]
fn a_graph_for_more_memory_than_the_limit_is_refused_before_it_is_allocated() {
    let device = Device::cpu().unwrap();
    let graph = Graph::new(&device);
    let x = device.alloc::<u8>(1 << 20).unwrap();
    graph.memset(&x, 1u8).unwrap();
    graph.alloc::<u8>(1 << 20).unwrap();
    let bytes = graph.saver().to_bytes().unwrap();
    // SAFETY: there are no kernels in the file.
    let limited = |limit| unsafe { LoadOptions::new().memory_limit(limit).load_bytes(&bytes, &device) };
    refused(limited((2 << 20) - 1), ErrorKind::InvalidFile, &["2097152 bytes", "limit"]);
    assert!(limited(2 << 20).is_ok());
    assert!(load(&bytes, &device).is_ok());
}
