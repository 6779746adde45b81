//! What captured code of others needs of the core: addresses inside structures, other memory in
//! their place, opaque graphs, and owners.

use std::sync::Arc;

use gridloom_core::graph::DifferenceKind;
use gridloom_core::memory::Region;
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Graph, Node};

use crate::common::*;

/// A kernel that takes an address, a structure of 24 bytes and a number.
fn structure_kernel(device: &NullDevice) -> Arc<dyn gridloom_core::backend::Kernel> {
    FakeKernel::new("structured").params([8, 24, 4]).on(device)
}

fn region_arg(region: Region) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(region))
}

/// A launch of it on one buffer, whose address is also at byte 8 of the structure.
fn structured(device: &NullDevice, region: &Region) -> KernelOp {
    let kernel = structure_kernel(device);
    let args = [region_arg(region.clone()), bytes_arg(&[1; 24]), bytes_arg(&[2; 4])];
    let mut args = KernelArgs::pack("structured", kernel.params(), args).unwrap();
    args.set("structured", 1, 8, region_arg(region.clone())).unwrap();
    kernel_op(kernel, gridloom_core::launch::LaunchConfig::one(), args)
}

fn places(args: &KernelArgs) -> Vec<(u32, u32)> {
    args.pointers.iter().map(|pointer| (pointer.index, pointer.offset)).collect()
}

fn kernel_of(node: &Node) -> Launch {
    match node.operation().unwrap() {
        Operation::Kernel(op) => op,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_address_in_a_structure_is_written_there_and_keeps_its_memory() {
    let (device, _, graph) = setup();
    let memory = buffer(&device, 64);
    let op = structured(&device, &Region::whole(memory.clone()).part(16, 8).unwrap());
    assert_eq!(places(op.args()), [(0, 0), (1, 8)]);
    let address = (memory.address() + 16).to_ne_bytes();
    assert_eq!(op.args().value(1).unwrap(), [&[1; 8][..], &address, &[1; 8]].concat());
    graph.add(&[], Operation::Kernel(Launch::new(op))).unwrap();
    drop(memory);
    assert_eq!(device.live_allocations(), 1);
    drop(graph);
    assert_eq!(device.live_allocations(), 0);
}

#[test]
fn a_value_takes_the_place_of_the_address_it_overwrites() {
    let (device, ..) = setup();
    let mut args = structured(&device, &Region::whole(buffer(&device, 64))).args().clone();
    args.set("structured", 1, 12, bytes_arg(&[9; 2])).unwrap();
    assert_eq!(places(&args), [(0, 0)]);
    assert_eq!(args.value(1).unwrap()[12..14], [9; 2]);
    args.set("structured", 0, 0, bytes_arg(&[0; 8])).unwrap();
    assert_eq!(places(&args), []);
    assert_eq!(device.live_allocations(), 0);
}

#[test]
fn a_value_past_the_end_of_an_argument_is_refused_and_changes_nothing() {
    let (device, ..) = setup();
    let args = structured(&device, &Region::whole(buffer(&device, 64))).args().clone();
    for (index, offset, mention) in
        [(1, 17, "24 bytes"), (1, usize::MAX, "24 bytes"), (2, 0, "4 bytes"), (3, 0, "no parameter 3")]
    {
        let mut changed = args.clone();
        let result = changed.set("structured", index, offset, bytes_arg(&[0; 8]));
        assert_error(result, ErrorKind::ParameterMismatch, &["structured", mention]);
        assert_eq!(changed, args);
    }
}

#[test]
fn addresses_are_looked_for_at_every_eighth_byte_of_the_parameters() {
    let kernel = FakeKernel::new("odd").params([4, 20, 8]).on(&NullDevice::new());
    let values = [bytes_arg(&[0; 4]), bytes_arg(&[0; 20]), bytes_arg(&7u64.to_ne_bytes())];
    let args = KernelArgs::pack("odd", kernel.params(), values).unwrap();
    let offsets: Vec<u32> = args.layout.iter().map(|place| place.offset).collect();
    let found: Vec<(u32, u32, u64)> = args.words().collect();
    assert!(found.iter().all(|&(index, offset, _)| (offsets[index as usize] + offset).is_multiple_of(8)));
    assert!(found.iter().all(|&(index, offset, _)| offset + 8 <= args.layout[index as usize].size));
    assert_eq!(found.last(), Some(&(2, 0, 7)));
}

#[test]
fn every_use_of_memory_in_a_graph_and_inside_it_is_moved_to_the_same_byte_of_other_memory() {
    let (device, _, graph) = setup();
    let (old, new, to) = (buffer(&device, 256), buffer(&device, 256), buffer(&device, 256));
    let whole = Region::whole(old.clone());
    let part = whole.part(64, 64).unwrap();
    let kernel = graph.add(&[], Operation::Kernel(Launch::new(structured(&device, &part)))).unwrap();
    let copy = graph.add(&[], memcpy_op(Region::whole(to), part, 64)).unwrap();
    let child = Graph::new(&device);
    child.add(&[], memset_op(whole.clone(), 0, 4, 64)).unwrap();
    let embedded = graph.add_child(&[], &child).unwrap();
    drop(child);
    let child = body(&embedded).nodes().remove(0);
    let test = Test::Value(whole.part(8, 4).unwrap());
    let choice = graph.add_conditional(&[], spec(ConditionalForm::If, test)).unwrap();
    // SAFETY: nothing runs on this device.
    let uses = unsafe { graph.replace_region(&whole, &Region::whole(new.clone())) }.unwrap();
    assert_eq!(uses, 5);
    let moved = |region: &Region| matches!(&region.base, gridloom_core::memory::Base::Allocation(base) if Arc::ptr_eq(base, &new));
    for (node, offset) in [(&kernel, 64), (&copy, 64), (&child, 0), (&choice, 8)] {
        let mut found = 0;
        node.operation().unwrap().for_each_region(|region| {
            if moved(region) {
                assert_eq!(region.offset, offset);
                found += 1;
            }
        });
        assert!(found > 0, "{}", node.label());
    }
    let address = (new.address() + 64).to_ne_bytes();
    assert_eq!(kernel_of(&kernel).args().value(0).unwrap(), address);
    assert_eq!(kernel_of(&kernel).args().value(1).unwrap()[8..16], address);
    assert_eq!(Arc::strong_count(&old), 2, "the test's own, and the region it asked with");
}

#[test]
fn memory_beside_the_one_to_replace_stays() {
    let (device, _, graph) = setup();
    let memory = buffer(&device, 256);
    let whole = Region::whole(memory);
    let (first, second) = (whole.part(0, 128).unwrap(), whole.part(128, 128).unwrap());
    let node = graph.add(&[], memcpy_op(first.clone(), second.clone(), 128)).unwrap();
    let new = Region::whole(buffer(&device, 128));
    // SAFETY: nothing runs on this device.
    assert_eq!(unsafe { graph.replace_region(&second, &new) }.unwrap(), 1);
    let Operation::Memcpy(op) = node.operation().unwrap() else { panic!() };
    assert_eq!((&op.dst.region, &op.src.region), (&first, &new));
}

#[test]
fn an_address_that_is_only_a_number_is_found_and_becomes_a_reference() {
    let (device, _, graph) = setup();
    let (old, new) = (buffer(&device, 64), buffer(&device, 64));
    let kernel = FakeKernel::new("raw").params([16]).on(&device);
    let mut bytes = [0xff; 16];
    bytes[8..].copy_from_slice(&(old.address() + 4).to_ne_bytes());
    let node = graph.add(&[], launch_op(&kernel, [bytes_arg(&bytes)])).unwrap();
    // SAFETY: nothing runs on this device.
    let replaced = unsafe { graph.replace_region(&Region::whole(old), &Region::whole(new.clone())) };
    assert_eq!(replaced.unwrap(), 1);
    assert_eq!(places(kernel_of(&node).args()), [(0, 8)]);
    assert_eq!(kernel_of(&node).args().value(0).unwrap()[8..], (new.address() + 4).to_ne_bytes());
}

#[test]
fn a_replacement_that_one_node_cannot_take_changes_no_node() {
    let (device, _, graph) = setup();
    let (old, short) = (buffer(&device, 256), buffer(&device, 64));
    let fill = graph.add(&[], memset_op(Region::whole(old.clone()).part(0, 16).unwrap(), 0, 4, 4)).unwrap();
    let late = graph.add(&[], memset_op(Region::whole(old.clone()), 0, 4, 64)).unwrap();
    let before = graph.to_json();
    // SAFETY: nothing runs on this device.
    let result = unsafe { graph.replace_region(&Region::whole(old.clone()), &Region::whole(short.clone())) };
    assert_error(result, ErrorKind::InvalidArgument, &[&late.label(), "256"]);
    assert_eq!(graph.to_json(), before);
    let executable = graph.instantiate().unwrap();
    // SAFETY: as above.
    let result = unsafe { executable.replace_region(&Region::whole(old), &Region::whole(short)) };
    assert_error(result, ErrorKind::InvalidArgument, &[&late.label()]);
    assert!(executable.node(&fill).unwrap().operation().same(&fill.operation().unwrap()));
}

#[test]
fn a_replacement_in_an_executable_leaves_its_graph_alone() {
    let (device, _, graph) = setup();
    let (old, new) = (Region::whole(buffer(&device, 256)), Region::whole(buffer(&device, 256)));
    let fill = memset(&graph, &[], old.clone()).unwrap();
    let executable = graph.instantiate().unwrap();
    // SAFETY: nothing runs on this device.
    assert_eq!(unsafe { executable.replace_region(&old, &new) }.unwrap(), 1);
    let destination = |operation| match operation {
        Operation::Memset(op) => op.dst.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(destination(executable.node(&fill).unwrap().operation()), new);
    assert_eq!(destination(fill.operation().unwrap()), old);
}

#[test]
fn the_owner_of_a_raw_callback_lives_as_long_as_the_callback() {
    unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}
    let (_, _, graph) = setup();
    let owner = Arc::new(3u8);
    // SAFETY: the function does nothing with its argument.
    let raw = unsafe {
        RawCallback::new(nothing, RawData::Pointer(SendPointer::new(Arc::as_ptr(&owner).cast_mut().cast())))
    };
    let callback = raw.keeping(owner.clone());
    let node = graph.add(&[], Operation::Callback(CallbackOp::Raw(callback))).unwrap();
    let executable = graph.instantiate().unwrap();
    node.delete().unwrap();
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(executable);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn an_opaque_graph_is_a_node_with_a_kind_a_name_and_pictures() {
    let (device, _, graph) = setup();
    let node = graph.add(&[], sealed(&device)).unwrap();
    assert_eq!((node.kind().unwrap(), node.label().as_str()), (NodeKind::Opaque, "opaque#0"));
    for picture in [graph.to_dot(), graph.to_mermaid()] {
        assert!(picture.contains("7 nodes") && picture.contains("it is sealed"), "{picture}");
    }
    let json = graph.to_json();
    assert!(json.contains("\"nodes\": 7") && json.contains("\"reason\": \"it is sealed\""), "{json}");
}

#[test]
fn an_opaque_graph_of_another_device_is_refused() {
    let (_, _, graph) = setup();
    assert_error(graph.add(&[], sealed(&NullDevice::new())), ErrorKind::WrongDevice, &["opaque graph"]);
}

#[test]
fn another_opaque_graph_is_another_parameter() {
    let (device, _, graph) = setup();
    let node = graph.add(&[], sealed(&device)).unwrap();
    let (copy, map) = graph.deep_clone().unwrap();
    assert_eq!(graph.diff(&copy), []);
    map.get(&node).unwrap().set_operation(sealed(&device)).unwrap();
    assert_eq!(graph.diff(&copy)[0].kind, DifferenceKind::Parameters);
    graph.instantiate().unwrap().update(&copy).unwrap();
}

#[test]
fn a_structure_with_addresses_is_drawn_with_what_they_lead_to() {
    let (device, _, graph) = setup();
    let op = structured(&device, &Region::whole(buffer(&device, 64)));
    graph.add(&[], Operation::Kernel(Launch::new(op))).unwrap();
    let dot = graph.to_dot();
    assert!(dot.contains("(buffer 0, 24 B with buffer 0, "), "{dot}");
    let json = graph.to_json();
    assert!(json.contains("\"at\": 8"), "{json}");
}
