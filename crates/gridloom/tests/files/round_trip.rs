//! What is saved comes back.

use bytemuck::{Pod, Zeroable};
use gridloom::contract::{Axis, Contract, arg, block, len};
use gridloom::file::{Array, DType};
use gridloom::prelude::*;
use gridloom::{EdgeKind, Out, kernel};

use super::{for_each_pair, load, run};
use crate::support::{GraphKernels, for_each_device};

#[test]
fn every_kind_of_node_comes_back_with_its_parameters() {
    for_each_pair(|device, other| {
        let kernels = GraphKernels::new(device)?;
        let (x, flag) = (kernels.buffer(&[1, 2, 3, 4])?, kernels.value(2)?);
        let host = device.alloc_host::<i32>(4)?;
        let managed = device.alloc_managed::<i32>(4)?;
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        graph.condition(None)?;
        let scratch = graph.alloc::<i32>(16)?.named("scratch")?;
        let fill = scratch.memset_2d(scratch.rows(4)?, 7i32, 2, 3)?;
        let upload = fill.memcpy(&scratch.slice(8..12)?, &[5, 6, 7, 8])?.named("upload")?;
        let event = device.event()?;
        let waited = upload.record(&event)?.wait(&event)?;
        let repeat = waited.while_loop(&again)?.named("repeat")?;
        repeat.set_max_passes(Some(5))?;
        let one = LaunchConfig::one();
        repeat.body().launch(&kernels.countdown, one, (&again, &flag))?.named("count")?;
        let inner = Graph::new(device);
        kernels.bump(&inner, &x, 10)?.named("inside")?;
        let child = repeat.embed(&inner)?.named("child")?;
        let choice = child.switch_on(&flag, 2)?;
        kernels.bump(&choice.body(0)?, &x.slice(1..2)?, 100)?;
        let then = choice.if_else_nonzero(&flag)?;
        kernels.bump(&then.else_body(), &x.slice(2..3)?, 1000)?;
        then.repeat(3)?.body().memcpy(&managed, &x)?.memcpy(&host, &managed)?;
        graph.free(&scratch)?.after([then.node()])?;

        let bytes = graph.saver().input("x", &x)?.input("flag", &flag)?.output("x", &x)?.to_bytes()?;
        let loaded = load(&bytes, other)?;
        let there = loaded.graph();
        assert_eq!(there.len(), graph.len());
        let kinds = |graph: &Graph| -> Result<Vec<NodeKind>> {
            let mut kinds = graph.nodes().iter().map(Node::kind).collect::<Result<Vec<_>>>()?;
            kinds.sort_by_key(|kind| kind.name());
            Ok(kinds)
        };
        assert_eq!(kinds(there)?, kinds(&graph)?);
        let text = there.to_mermaid();
        for shown in
            ["scratch", "upload", "repeat", "count", "inside", "child", "at most 5 passes", "3 passes"]
        {
            assert!(text.contains(shown), "{shown} in {text}");
        }
        assert_eq!(loaded.saver().to_bytes()?, bytes);

        run(&graph)?;
        run(there)?;
        assert_eq!(loaded.buffer::<i32>("x")?.to_vec()?, x.to_vec()?);
        assert_eq!(x.to_vec()?, [11, 102, 1003, 4]);
        Ok(())
    });
}

#[test]
fn programmatic_edges_and_launch_attributes_come_back() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let x = kernels.value(0)?;
        let graph = Graph::new(device);
        let first = kernels.bump(&graph, &x, 1)?;
        let early = LaunchConfig::one().programmatic().priority(-1).shared(64);
        let second = first.launch(&kernels.increase, early, (&x, 1, 2))?;
        let third = second.launch(&kernels.increase, LaunchConfig::one().cooperative(), (&x, 1, 3))?;
        graph.add_edge(&first, &third, EdgeKind::Full)?;
        let bytes = graph.saver().to_bytes()?;
        let loaded = load(&bytes, device)?;
        let edges: Vec<EdgeKind> = loaded.graph().edges().into_iter().map(|(.., kind)| kind).collect();
        assert_eq!(edges, graph.edges().into_iter().map(|(.., kind)| kind).collect::<Vec<_>>());
        assert!(edges.contains(&EdgeKind::Programmatic) && edges.contains(&EdgeKind::Full));
        assert_eq!(loaded.saver().to_bytes()?, bytes);
        Ok(())
    });
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Pair {
    factor: f32,
    shift: i32,
}

const ARGUMENTS: &str = "
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 total[4] = {1, 2, 3, 4};
.visible .entry mixed(.param .u64 out, .param .u8 a, .param .u16 b, .param .u64 c, .param .f32 d, .param .f64 e,
    .param .align 4 .b8 pair[8], .param .u64 nothing, .param .u32 n)
{ ret; }
.visible .entry add_total(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [total+8];
    st.global.u32 [%rd1], %r1;
    add.u32 %r2, %r1, 10;
    st.global.u32 [total+8], %r2;
    ret;
}";

type Mixed = (PtrMut<f32>, u8, i16, u64, f32, f64, Pair, Nullable<Ptr<f64>>, Len<u32>);

#[test]
fn arguments_of_every_type_come_back_bit_for_bit() {
    for_each_device(|device| {
        let module = device.load_ptx(ARGUMENTS)?;
        let contract = Contract::new()
            .holds(0, (arg(8) + 1) * 2)
            .at_most(block(Axis::X), len(0).max(4))
            .multiple_of(arg(8), 2);
        // SAFETY: the kernel does nothing.
        let mixed = unsafe { module.kernel_with::<Mixed>("mixed", contract)? };
        let out = device.alloc::<f32>(16)?;
        for (float, double) in [
            (0.1f32, 1e300f64),
            (-0.0, f64::INFINITY),
            (f32::from_bits(0x7fc0_0001), -f64::NAN),
            (1e-45, 5e-324),
        ] {
            let graph = Graph::new(device);
            let pair = Pair { factor: float, shift: -3 };
            let args = (&out, 255u8, -7i16, u64::MAX, float, double, pair, Null, 4);
            graph.launch(&mixed, LaunchConfig::one(), args)?;
            let bytes = graph.saver().output("out", &out)?.to_bytes()?;
            let loaded = load(&bytes, device)?;
            let values = |graph: &Graph| -> Result<Vec<Vec<u8>>> {
                let gridloom::op::Operation::Kernel(launch) = graph.nodes()[0].operation()? else { panic!() };
                Ok((1..9).map(|index| launch.args().value(index).unwrap().to_vec()).collect())
            };
            assert_eq!(values(loaded.graph())?, values(&graph)?);
            // The contract is part of the file.
            let node = &loaded.graph().nodes()[0];
            assert!(node.set_arg(8, 8u32).unwrap_err().to_string().contains("needs 18"));
            assert!(node.set_arg(8, 5u32).unwrap_err().to_string().contains("multiple of 2"));
            assert!(node.set_arg(1, 8u32).unwrap_err().to_string().contains("u8"));
            assert_eq!(loaded.saver().to_bytes()?, bytes);
        }
        Ok(())
    });
}

#[test]
fn module_variables_stay_variables_with_their_initial_values() {
    for_each_pair(|device, other| {
        let module = device.load_ptx(ARGUMENTS)?;
        // SAFETY: the kernel writes one integer.
        let add = unsafe { module.kernel::<(PtrMut<u32>,)>("add_total")? };
        let (out, copy) = (device.alloc::<u32>(1)?, device.alloc::<u32>(4)?);
        let total = module.global::<u32>("total")?;
        let graph = Graph::new(device);
        graph.launch(&add, LaunchConfig::one(), (&out,))?.memcpy(&copy, &total)?;
        run(&graph)?;
        let bytes = graph.saver().output("out", &out)?.output("copy", &copy)?.to_bytes()?;
        let loaded = load(&bytes, other)?;
        run(loaded.graph())?;
        assert_eq!(loaded.buffer::<u32>("out")?.to_vec()?, [3]);
        assert_eq!(
            loaded.buffer::<u32>("copy")?.to_vec()?,
            [1, 2, 13, 4],
            "kernel and copy use one variable"
        );
        Ok(())
    });
}

#[kernel]
fn double(x: Out<f32>) {
    if let Some((_, x)) = x.mine() {
        *x *= 2.0;
    }
}

#[test]
fn kernels_written_in_rust_can_be_saved() {
    for_each_pair(|device, other| {
        let x = device.buffer_from(&[1.5f32, -2.0, 0.25])?;
        let graph = Graph::new(device);
        graph.launch(&double::load(device)?, LaunchConfig::linear(3), (&x,))?;
        let loaded = load(&graph.saver().input("x", &x)?.to_bytes()?, other)?;
        run(loaded.graph())?;
        assert_eq!(loaded.buffer::<f32>("x")?.to_vec()?, [3.0, -4.0, 0.5]);
        Ok(())
    });
}

#[test]
fn buffers_are_zero_unless_they_are_inputs() {
    for_each_device(|device| {
        let (x, y) = (device.buffer_from(&[9u8; 5000])?, device.buffer_from(&[8u8; 300])?);
        let host = device.alloc_host::<u8>(70_000)?;
        host.write(&[3; 70_000])?;
        let graph = Graph::new(device);
        graph.memset(&x, 1u8)?;
        graph.memset(&y, 1u8)?;
        graph.memset(&host, 1u8)?;
        let saver = graph.saver().output("x", &x)?.input("y", &y.slice(100..200)?)?.output("host", &host)?;
        let loaded = load(&saver.to_bytes()?, device)?;
        assert_eq!(loaded.buffer::<u8>("x")?.to_vec()?, [0; 5000]);
        assert_eq!(loaded.buffer::<u8>("y")?.to_vec()?, [8; 100]);
        assert_eq!(loaded.buffer::<u8>("host")?.to_vec()?, vec![0; 70_000]);
        Ok(())
    });
}

#[test]
fn inputs_and_outputs_are_found_by_name_type_and_shape() {
    let device = Device::cpu().unwrap();
    let (x, pairs) = (device.buffer_from(&[1.0f32; 6]).unwrap(), device.alloc::<Pair>(2).unwrap());
    let graph = Graph::new(&device);
    graph.memset(&x, 0u8).unwrap();
    graph.memset(&pairs, 0u8).unwrap();
    let saver =
        graph.saver().input("x", &x).unwrap().shape("x", &[2, 3]).unwrap().output("pairs", &pairs).unwrap();
    let loaded = load(&saver.to_bytes().unwrap(), &device).unwrap();
    let port = loaded.inputs().next().unwrap();
    assert_eq!(
        (port.name.as_str(), port.shape.as_slice(), port.dtype.to_string()),
        ("x", &[2, 3][..], "<f4".into())
    );
    assert_eq!(loaded.outputs().next().unwrap().dtype.to_string(), "|V8");
    let says = |error: Error, what: &str| assert!(error.to_string().contains(what), "{error}");
    says(loaded.buffer::<u32>("x").unwrap_err(), "<f4");
    says(loaded.buffer::<f64>("x").unwrap_err(), "<f8");
    says(loaded.buffer::<f32>("y").unwrap_err(), "pairs, x");
    assert_eq!(loaded.buffer::<Pair>("pairs").unwrap().len(), 2);
    let array = Array::new(DType::parse("<f4").unwrap(), vec![6], vec![0; 24]).unwrap();
    loaded.set("x", &array).unwrap();
    assert_eq!(loaded.get("x").unwrap().shape, [2, 3]);
    says(loaded.set("pairs", &array).unwrap_err(), "|V8");
    let short = Array::new(DType::parse("<f4").unwrap(), vec![5], vec![0; 20]).unwrap();
    says(loaded.set("x", &short).unwrap_err(), "the array has 5");
}

#[test]
fn a_body_is_saved_as_a_graph_of_its_own() {
    let device = Device::cpu().unwrap();
    let kernels = GraphKernels::new(&device).unwrap();
    let x = kernels.value(5).unwrap();
    let graph = Graph::new(&device);
    let repeat = graph.repeat(3).unwrap();
    kernels.bump(&repeat.body(), &x, 1).unwrap().named("add").unwrap();
    let loaded = load(&repeat.body().saver().input("x", &x).unwrap().to_bytes().unwrap(), &device).unwrap();
    run(loaded.graph()).unwrap();
    assert_eq!(loaded.buffer::<i32>("x").unwrap().to_vec().unwrap(), [6]);
}

#[test]
fn files_are_written_whole_and_read_back() {
    let folder = std::env::temp_dir().join(format!("gridloom-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("graph.gridloom");
    let device = Device::cpu().unwrap();
    let graph = Graph::new(&device);
    graph.empty().unwrap().named("only").unwrap();
    graph.save(&path).unwrap();
    graph.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    // SAFETY: there are no kernels in the file.
    let loaded = unsafe { Graph::load(&path, &device) }.unwrap();
    assert_eq!(loaded.graph().nodes()[0].label(), "only");
    let missing = graph.save(folder.join("no/such/folder")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn ten_thousand_nodes_are_saved_and_loaded() {
    let device = Device::cpu().unwrap();
    let kernels = GraphKernels::new(&device).unwrap();
    let x = kernels.value(0).unwrap();
    let graph = Graph::new(&device);
    let mut last = graph.empty().unwrap();
    for _ in 0..10_000 {
        last = kernels.bump(&last, &x, 1).unwrap();
    }
    let loaded = load(&graph.saver().output("x", &x).unwrap().to_bytes().unwrap(), &device).unwrap();
    run(loaded.graph()).unwrap();
    assert_eq!(loaded.buffer::<i32>("x").unwrap().to_vec().unwrap(), [10_000]);
}

#[test]
fn the_same_text_loaded_twice_stays_two_modules() {
    let device = Device::cpu().unwrap();
    let graph = Graph::new(&device);
    let out = device.alloc::<u32>(2).unwrap();
    for index in 0..2 {
        let module = device.load_ptx(ARGUMENTS).unwrap();
        // SAFETY: the kernel writes one integer.
        let add = unsafe { module.kernel::<(PtrMut<u32>,)>("add_total") }.unwrap();
        graph.launch(&add, LaunchConfig::one(), (&out.slice(index..=index).unwrap(),)).unwrap();
    }
    let loaded = load(&graph.saver().output("out", &out).unwrap().to_bytes().unwrap(), &device).unwrap();
    run(loaded.graph()).unwrap();
    assert_eq!(loaded.buffer::<u32>("out").unwrap().to_vec().unwrap(), [3, 3]);
}
