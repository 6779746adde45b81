//! The driver's handles of executables, and launches from kernels.

use std::collections::HashSet;
use std::process::Command;

use gridloom::interop::{executable_to_raw, node_to_raw};
use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, for_each_gpu, is_cpu, refused};

#[test]
fn an_executable_has_the_raw_handles_of_its_graph_and_nodes() {
    for_each_gpu(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(1)?;
        let graph = Graph::new(device);
        let first = kernels.bump(&graph, &value, 1)?;
        let second = kernels.bump(&first, &value, 2)?;
        let between = second.empty()?;
        let executable = graph.instantiate()?;
        if executable.optimized_graph()?.is_some() {
            // Both are steps of one kernel, which is no node of the graph.
            assert!(node_to_raw(&executable, &first)?.is_none());
            return Ok(());
        }
        let parts = executable_to_raw(&executable)?;
        assert_eq!(parts.len(), 1);
        assert!(!parts[0].graph.is_null() && !parts[0].executable.is_null());
        let raw = |node: &Node| node_to_raw(&executable, node);
        let nodes: HashSet<usize> =
            [&first, &second].into_iter().map(|node| raw(node).unwrap().unwrap().node.addr()).collect();
        assert_eq!(nodes.len(), 2);
        assert_eq!(raw(&first)?.unwrap().graph, 0);
        assert!(raw(&between)?.is_none(), "an empty node becomes edges");
        refused(raw(&Graph::new(device).empty()?), ErrorKind::WrongGraph, &["another graph"]);
        // The same handles while nothing changes.
        assert_eq!(executable_to_raw(&executable)?[0].executable, parts[0].executable);
        Ok(())
    });
}

#[test]
fn an_executable_that_the_host_drives_has_several_raw_graphs() {
    for_each_gpu(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(1)?;
        let graph = Graph::new(device);
        let repeat = kernels.bump(&graph, &value, 1)?.repeat(3)?;
        let inside = kernels.bump(&repeat.body(), &value, 1)?;
        let options = InstantiateOptions::new().conditional_mode(ConditionalMode::Hosted);
        let executable = graph.instantiate_with(&options)?;
        assert_eq!(executable_to_raw(&executable)?.len(), 2);
        assert_eq!(node_to_raw(&executable, &inside)?.unwrap().graph, 1);
        assert!(node_to_raw(&executable, &repeat)?.is_none());
        Ok(())
    });
}

#[test]
fn device_launch_is_refused_where_kernels_cannot_launch_graphs() {
    for_each_device(|device| {
        let options = InstantiateOptions::new().device_launch(true);
        let value = device.alloc::<i32>(1)?;
        let graph = Graph::new(device);
        graph.memset(&value, 1i32)?;
        refused(graph.instantiate()?.device_handle(), ErrorKind::InvalidState, &["device_launch"]);
        if is_cpu(device) {
            refused(graph.instantiate_with(&options), ErrorKind::NotSupported, &["the CPU device"]);
            return Ok(());
        }
        for says in ["callback", "record", "while", "leave memory allocated"] {
            let graph = Graph::new(device);
            graph.memset(&value, 1i32)?;
            match says {
                "callback" => drop(graph.callback(|| {})?),
                "record" => drop(graph.record(&device.event()?)?),
                "while" => drop(graph.repeat(2)?),
                _ => drop(graph.alloc::<i32>(1)?),
            }
            refused(graph.instantiate_with(&options), ErrorKind::NotSupported, &["kernels launch", says]);
        }
        let empty = Graph::new(device).instantiate_with(&options);
        refused(empty, ErrorKind::InvalidArgument, &["at least one kernel"]);
        let both = options.clone().auto_free_on_launch(true);
        refused(graph.instantiate_with(&both), ErrorKind::InvalidArgument, &["exclude each other"]);
        Ok(())
    });
}

#[test]
fn a_graph_for_device_launch_is_launched_by_the_host_as_well() {
    for_each_gpu(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, copy) = (kernels.value(1)?, kernels.value(0)?);
        let inner = Graph::new(device);
        kernels.bump(&inner, &value, 1)?;
        let graph = Graph::new(device);
        let scratch = graph.alloc::<i32>(1)?;
        let ends = [scratch.memset(&scratch, 3i32)?, graph.embed(&inner)?];
        // Two ends that meet before two starts: a join in the driver's graph.
        let met = graph.join(&ends)?;
        let used = kernels.bump(&met, &scratch, 4)?;
        let done = met.memcpy(&copy, &value)?;
        graph.join([&used, &done])?.free(&scratch)?;
        let stream = &kernels.stream;
        let options = InstantiateOptions::new().device_launch(true).upload(stream);
        let executable = graph.instantiate_with(&options)?;
        assert_ne!(executable.device_handle()?, 0);
        executable.launch(stream)?;
        executable.launch(stream)?;
        stream.synchronize()?;
        assert_eq!((value.to_vec()?, copy.to_vec()?), (vec![3], vec![3]));
        Ok(())
    });
}

/// A kernel that launches a graph. It is compiled and linked with the device runtime by the
/// toolkit, where there is one.
const LAUNCHER: &str = r#"
extern "C" __global__ void launch(cudaGraphExec_t graph, int *outcome) {
    *outcome = (int)cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}
"#;

/// The code of [`LAUNCHER`] for a GPU, or why there is none.
fn launcher(architecture: &str) -> std::result::Result<Vec<u8>, String> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| std::env::var(name).ok());
    let home = homes
        .chain(["/usr/local/cuda".to_owned()])
        .find(|home| std::path::Path::new(home).join("bin/nvcc").exists());
    let Some(home) = home else { return Err("there is no CUDA toolkit with nvcc".to_owned()) };
    let folder = std::env::temp_dir().join(format!("gridloom-device-launch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let file = |name: &str| folder.join(name).display().to_string();
    std::fs::write(file("launch.cu"), LAUNCHER).map_err(|error| error.to_string())?;
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(format!("{home}/bin/{program}")).args(arguments).output();
        let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    let arch = format!("-arch={architecture}");
    let outcome =
        run("nvcc", &[&arch, "-rdc=true", "-cubin", "-o", &file("launch.o.cubin"), &file("launch.cu")])
            .and_then(|()| {
                let (lib, other) = (format!("-L{home}/lib64"), format!("-L{home}/targets/x86_64-linux/lib"));
                let (output, input) = (file("launch.cubin"), file("launch.o.cubin"));
                run("nvlink", &[&arch, &lib, &other, &input, "-lcudadevrt", "-o", &output])
            })
            .and_then(|()| std::fs::read(file("launch.cubin")).map_err(|error| error.to_string()));
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

#[test]
fn a_kernel_launches_a_graph() {
    for_each_gpu(|device| {
        let Some((_, capability)) =
            device.properties().into_iter().find(|(name, _)| name == "compute capability")
        else {
            return Ok(());
        };
        if device.name().contains("simulated") {
            // The simulated driver runs no code of the toolkit's.
            return Ok(());
        }
        let code = match launcher(&format!("sm_{}", capability.replace('.', ""))) {
            Ok(code) => code,
            Err(reason) => {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "launch of a graph by a kernel skipped: {reason}");
                return Ok(());
            }
        };
        let kernels = GraphKernels::new(device)?;
        let (value, outcome) = (kernels.value(1)?, kernels.value(-1)?);
        let stream = &kernels.stream;
        let graph = Graph::new(device);
        kernels.bump(&graph, &value, 41)?;
        let launched =
            graph.instantiate_with(&InstantiateOptions::new().device_launch(true).upload(stream))?;
        let module = device.load_binary(&code)?;
        // SAFETY: the kernel launches the graph of its handle, which outlives the launch below, and
        // writes one integer.
        let launch = unsafe { module.kernel::<(u64, PtrMut<i32>)>("launch")? };
        let outer = Graph::new(device);
        outer.launch(&launch, LaunchConfig::one(), (launched.device_handle()?, &outcome))?;
        let outer = outer.instantiate()?;
        for times in 1..=3 {
            outer.launch(stream)?;
            stream.synchronize()?;
            assert_eq!(outcome.to_vec()?, [0], "the error of cudaGraphLaunch in the kernel");
            assert_eq!(value.to_vec()?, [1 + 41 * times]);
        }
        Ok(())
    });
}
