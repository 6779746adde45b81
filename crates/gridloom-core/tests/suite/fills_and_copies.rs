//! The checks on memset and memcpy, one row a mistake.

use std::sync::Arc;

use gridloom_core::ErrorKind;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::null::{FakeModule, NullDevice};
use gridloom_core::op::*;

use crate::common::*;

/// 1,024 bytes, and a way to name parts of them.
struct Memory(Region);

impl Memory {
    fn new(device: &NullDevice) -> Self {
        Memory(Region::whole(buffer(device, 1024)))
    }

    fn part(&self, offset: u64, bytes: u64) -> Region {
        Region { offset, bytes, ..self.0.clone() }
    }
}

#[test]
fn memsets_that_fit_are_accepted() {
    let (device, _, graph) = setup();
    let memory = Memory::new(&device);
    // Offset and bytes of the destination, element size, width, height, pitch.
    for (offset, bytes, element_size, width, height, pitch) in [
        (0, 1024, 1, 1024, 1, 0),
        (0, 1024, 2, 512, 1, 0),
        (0, 1024, 4, 256, 1, 0),
        (1, 3, 1, 3, 1, 0),
        (4, 8, 4, 2, 1, 3),
        (0, 1024, 1, 16, 64, 16),
        (0, 1024, 4, 3, 10, 64),
        // The last row needs no padding behind it.
        (0, 136, 4, 2, 2, 128),
        (0, 4, 4, 1, 1, u64::MAX),
    ] {
        let op = MemsetOp { dst: memory.part(offset, bytes), value: 9, element_size, width, height, pitch };
        graph
            .add(&[], Operation::Memset(Arc::new(op.clone())))
            .unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }
}

#[test]
fn memsets_that_do_not_fit_are_refused_with_the_reason() {
    let (device, _, graph) = setup();
    let memory = Memory::new(&device);
    let address = format!(
        "{:#x}",
        match &memory.0.base {
            Base::Allocation(allocation) => allocation.address(),
            other => panic!("{other:?}"),
        }
    );
    // Offset and bytes of the destination, element size, width, height, pitch, and what the message
    // mentions.
    let cases: &[(u64, u64, u32, u64, u64, u64, &[&str])] = &[
        (0, 1024, 0, 1, 1, 0, &["0 bytes", "1, 2 or 4"]),
        (0, 1024, 3, 1, 1, 0, &["3 bytes", "1, 2 or 4"]),
        (0, 1024, 8, 1, 1, 0, &["8 bytes", "1, 2 or 4"]),
        (0, 1024, 1, 0, 1, 0, &["0 by 1", "at least 1"]),
        (0, 1024, 1, 1, 0, 0, &["1 by 0", "at least 1"]),
        (0, 1025, 1, 1, 1, 0, &["0..1025", "1024", &address, "destination of the memset"]),
        (1024, 1, 1, 1, 1, 0, &["1024..1025", &address]),
        (u64::MAX, 2, 1, 1, 1, 0, &["past the end", &address]),
        (0, 1024, 1, 1025, 1, 0, &["1025 bytes", "destination of 1024", &address]),
        (0, 16, 4, 5, 1, 0, &["20 bytes", "destination of 16", &address]),
        (0, 1024, 4, 16, 17, 64, &["1088 bytes", "destination of 1024"]),
        (0, 1024, 4, 16, 2, 63, &["pitch of 63", "row of 64"]),
        (0, 1024, 4, 1, 2, 0, &["pitch of 0", "row of 4"]),
        (2, 8, 4, 1, 1, 0, &["byte 2", "4-byte", &address]),
        (1, 8, 2, 1, 1, 0, &["byte 1", "2-byte"]),
        (0, 1024, 4, 1, 2, 6, &["pitch of 6", "4-byte"]),
        (0, 1024, 4, u64::MAX / 2, 1, 0, &["more bytes than there are addresses"]),
        (0, 1024, 1, 1, u64::MAX, u64::MAX, &["more bytes than there are addresses"]),
    ];
    for &(offset, bytes, element_size, width, height, pitch, mentions) in cases {
        let op = MemsetOp { dst: memory.part(offset, bytes), value: 0, element_size, width, height, pitch };
        assert_error(graph.add(&[], Operation::Memset(Arc::new(op))), ErrorKind::InvalidArgument, mentions);
    }
    assert!(graph.is_empty());
}

#[test]
fn a_memset_names_the_alloc_node_it_does_not_fit() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let result = graph.add(&[&memory], memset_op(memory_of(&memory), 0, 4, 65));
    assert_error(result, ErrorKind::InvalidArgument, &["260 bytes", "256", "scratch"]);
}

#[test]
fn copied_host_bytes_cannot_be_written() {
    let (device, _, graph) = setup();
    let host = || Region::from_bytes(vec![0; 8]);
    let device_memory = Memory::new(&device).part(0, 8);
    for operation in [memset_op(host(), 0, 1, 8), memcpy_op(host(), device_memory, 8)] {
        assert_error(graph.add(&[], operation), ErrorKind::InvalidArgument, &["not written", "host buffer"]);
    }
}

fn side(region: Region, pitch: u64, rows: u64) -> CopySide {
    CopySide { region, pitch, rows }
}

#[test]
fn copies_that_fit_are_accepted() {
    let (device, _, graph) = setup();
    let (to, from) = (Memory::new(&device), Memory::new(&device));
    let host = device.allocate(1024, MemoryKind::Host).unwrap();
    let copies = [
        MemcpyOp::linear(to.part(0, 1024), from.part(0, 1024), 1024),
        MemcpyOp::linear(to.part(1, 3), from.part(5, 3), 3),
        MemcpyOp::linear(Region::whole(host.clone()), from.part(0, 1024), 1024),
        MemcpyOp::linear(to.part(0, 1024), Region::whole(host), 1024),
        MemcpyOp::linear(to.part(0, 4), Region::from_bytes(vec![1, 2, 3, 4]), 4),
        // Parts of one buffer side by side.
        MemcpyOp::linear(to.part(0, 512), to.part(512, 512), 512),
        // The last row and the last plane need no padding behind them.
        MemcpyOp {
            dst: side(to.part(0, 136), 128, 2),
            src: side(from.part(0, 16), 8, 2),
            width: 8,
            height: 2,
            depth: 1,
        },
        MemcpyOp {
            dst: side(to.part(0, 1024), 16, 8),
            src: side(from.part(0, 200), 8, 6),
            width: 8,
            height: 5,
            depth: 4,
        },
        // Columns of one pitched buffer.
        MemcpyOp {
            dst: side(to.part(8, 1016), 32, 1),
            src: side(to.part(0, 1016), 32, 1),
            width: 8,
            height: 31,
            depth: 1,
        },
        MemcpyOp {
            dst: side(to.part(0, 1000), 32, 1),
            src: side(to.part(24, 1000), 32, 1),
            width: 8,
            height: 31,
            depth: 1,
        },
    ];
    for op in copies {
        graph
            .add(&[], Operation::Memcpy(Arc::new(op.clone())))
            .unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }
}

#[test]
fn copies_that_do_not_fit_are_refused_with_the_reason() {
    let (device, _, graph) = setup();
    let (to, from) = (Memory::new(&device), Memory::new(&device));
    let all = || (to.part(0, 1024), from.part(0, 1024));
    let planes = |(dst, src): (Region, Region),
                  dst_pitch,
                  dst_rows,
                  src_pitch,
                  src_rows,
                  [width, height, depth]: [u64; 3]| {
        MemcpyOp {
            dst: side(dst, dst_pitch, dst_rows),
            src: side(src, src_pitch, src_rows),
            width,
            height,
            depth,
        }
    };
    let cases: Vec<(MemcpyOp, &[&str])> = vec![
        (planes(all(), 8, 1, 8, 1, [0, 1, 1]), &["0 by 1 by 1", "at least 1"]),
        (planes(all(), 8, 1, 8, 1, [1, 0, 1]), &["1 by 0 by 1"]),
        (planes(all(), 8, 1, 8, 1, [1, 1, 0]), &["1 by 1 by 0"]),
        (MemcpyOp::linear(to.part(0, 8), from.part(0, 1024), 16), &["16 bytes of its destination", "has 8"]),
        (MemcpyOp::linear(to.part(0, 1024), from.part(0, 8), 16), &["16 bytes of its source", "has 8"]),
        (MemcpyOp::linear(to.part(1020, 8), from.part(0, 8), 8), &["destination of the copy", "1020..1028"]),
        (MemcpyOp::linear(to.part(0, 8), from.part(1024, 8), 8), &["source of the copy", "1024..1032"]),
        (planes(all(), 7, 1, 8, 1, [8, 2, 1]), &["destination's pitch of 7", "row of 8"]),
        (planes(all(), 8, 1, 7, 1, [8, 2, 1]), &["source's pitch of 7", "row of 8"]),
        (planes(all(), 0, 1, 8, 1, [8, 1, 2]), &["destination's pitch of 0", "row of 8"]),
        (planes(all(), 8, 3, 8, 4, [8, 4, 2]), &["destination has 3 rows", "takes 4"]),
        (planes(all(), 8, 4, 8, 3, [8, 4, 2]), &["source has 3 rows", "takes 4"]),
        (planes(all(), 128, 1, 8, 1, [8, 9, 1]), &["1032 bytes of its destination"]),
        (planes(all(), 8, 16, 8, 1, [8, 1, 9]), &["1032 bytes of its destination"]),
        (planes(all(), u64::MAX, 1, 8, 1, [8, 3, 1]), &["too many bytes of its destination"]),
        (planes(all(), 8, u64::MAX, 8, 1, [8, 1, 3]), &["too many bytes of its destination"]),
    ];
    for (op, mentions) in cases {
        assert_error(graph.add(&[], Operation::Memcpy(Arc::new(op))), ErrorKind::InvalidArgument, mentions);
    }
    assert!(graph.is_empty());
}

#[test]
fn overlapping_ranges_of_one_buffer_are_refused() {
    let (device, _, graph) = setup();
    let memory = Memory::new(&device);
    let rows = |dst, src, pitch, width, height| MemcpyOp {
        dst: side(memory.part(dst, 1024 - dst), pitch, 1),
        src: side(memory.part(src, 1024 - src), pitch, 1),
        width,
        height,
        depth: 1,
    };
    let cases = [
        MemcpyOp::linear(memory.part(0, 64), memory.part(0, 64), 64),
        MemcpyOp::linear(memory.part(63, 64), memory.part(0, 64), 64),
        MemcpyOp::linear(memory.part(0, 64), memory.part(63, 64), 64),
        // Rows that are shifted by less than their length.
        rows(4, 0, 32, 8, 10),
        // Rows that reach into the next row of the other side.
        rows(28, 0, 32, 8, 10),
        rows(32, 0, 32, 8, 10),
    ];
    for op in cases {
        let result = graph.add(&[], Operation::Memcpy(Arc::new(op)));
        assert_error(result, ErrorKind::InvalidArgument, &["must not overlap", "the device buffer at"]);
    }
}

#[test]
fn overlap_is_seen_through_two_handles_of_one_variable() {
    let (device, _, graph) = setup();
    let module = FakeModule::new().global("table", 64).on(&device);
    let [one, two] = std::array::from_fn(|_| Region::whole(module.clone().global("table").unwrap()));
    assert_error(graph.add(&[], memcpy_op(one, two, 64)), ErrorKind::InvalidArgument, &["must not overlap"]);
}

#[test]
fn overlap_within_an_alloc_node_is_refused_and_named() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let part = |offset| memory_of(&memory).part(offset, 64).unwrap();
    assert_error(
        graph.add(&[&memory], memcpy_op(part(0), part(60), 64)),
        ErrorKind::InvalidArgument,
        &["bytes 60..124", "bytes 0..64", "scratch"],
    );
    graph.add(&[&memory], memcpy_op(part(0), part(64), 64)).unwrap();
}

#[test]
fn equal_host_bytes_do_not_overlap_with_anything() {
    let (device, _, graph) = setup();
    let memory = Memory::new(&device);
    graph.add(&[], memcpy_op(memory.part(0, 4), Region::from_bytes(vec![0; 4]), 4)).unwrap();
}

#[test]
fn a_part_of_a_region_stays_inside_it() {
    let device = NullDevice::new();
    let whole = Region::whole(buffer(&device, 100));
    let part = whole.part(10, 50).unwrap();
    assert_eq!((part.offset, part.bytes), (10, 50));
    assert_eq!(part.part(40, 10).unwrap().offset, 50);
    for (offset, bytes) in [(0, 51), (51, 0), (1, 50), (u64::MAX, 1), (1, u64::MAX)] {
        assert_eq!(part.part(offset, bytes), None);
    }
}

#[test]
fn copied_bytes_do_not_follow_the_callers() {
    let (device, _, graph) = setup();
    let mut bytes = vec![1u8, 2, 3];
    let source = Region::from_bytes(bytes.as_slice());
    let node = graph.add(&[], memcpy_op(Region::whole(buffer(&device, 3)), source, 3)).unwrap();
    bytes.fill(9);
    let Operation::Memcpy(op) = node.operation().unwrap() else { panic!() };
    let Base::Bytes(held) = &op.src.region.base else { panic!() };
    assert_eq!(held[..], [1, 2, 3]);
}

#[test]
fn the_same_mistakes_are_caught_on_a_stream() {
    let (device, stream, graph) = setup();
    let memory = Memory::new(&device);
    let in_graph = alloc(&graph, &[]);
    let cases = [
        memset_op(memory.part(0, 1024), 0, 4, 257),
        memcpy_op(memory.part(0, 8), memory.part(4, 8), 8),
        memset_op(memory_of(&in_graph), 0, 4, 1),
    ];
    device.take_calls();
    for operation in cases {
        assert_error(stream.enqueue(operation), ErrorKind::InvalidArgument, &[]);
    }
    assert!(device.calls().is_empty(), "a refused operation does not reach the device");
}
