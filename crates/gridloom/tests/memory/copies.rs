//! Copies in one to three dimensions.

use gridloom::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{for_each_device, refused};

const KINDS: [MemoryKind; 3] = [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed];

fn filled<T: Element>(device: &Device, kind: MemoryKind, values: &[T]) -> Result<Buffer<T>> {
    let buffer = device.alloc_in(values.len(), kind)?;
    buffer.write(values)?;
    Ok(buffer)
}

#[test]
fn memory_of_every_kind_is_copied_to_every_kind() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let values: Vec<i32> = (0..777).collect();
        for from in KINDS {
            for to in KINDS {
                let (src, dst) = (filled(device, from, &values)?, filled(device, to, &[-1; 1000])?);
                stream.memcpy(&dst.slice(100..877)?, &src)?;
                stream.memcpy(&dst.slice(..10)?, &src.slice(700..710)?)?;
                let mut expected = vec![-1; 1000];
                expected[100..877].copy_from_slice(&values);
                expected[..10].copy_from_slice(&values[700..710]);
                assert_eq!(dst.to_vec()?, expected, "{from:?} to {to:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_host_slice_is_copied_at_the_call_and_may_be_dropped() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (on_stream, in_graph) = (device.alloc::<u16>(500)?, device.alloc::<u16>(500)?);
        let graph = Graph::new(device);
        {
            let mut values = vec![7u16; 500];
            stream.memcpy(&on_stream, &values)?;
            graph.memcpy(&in_graph, &values)?;
            values.fill(8);
        }
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        assert_eq!((on_stream.to_vec()?, in_graph.to_vec()?), (vec![7; 500], vec![7; 500]));
        in_graph.write(&[0; 500])?;
        drop(graph);
        executable.launch(&stream)?;
        assert_eq!(in_graph.to_vec()?, [7; 500]);
        Ok(())
    });
}

#[test]
fn arrays_slices_and_vectors_are_sources() {
    for_each_device(|device| {
        let (stream, buffer) = (device.stream()?, device.alloc::<u8>(4)?);
        stream.memcpy(&buffer, &[1, 2, 3, 4])?;
        assert_eq!(buffer.to_vec()?, [1, 2, 3, 4]);
        stream.memcpy(&buffer, &vec![5, 6, 7, 8])?;
        assert_eq!(buffer.to_vec()?, [5, 6, 7, 8]);
        stream.memcpy(&buffer.slice(1..3)?, &[9u8, 9, 9][..2])?;
        assert_eq!(buffer.to_vec()?, [5, 9, 9, 8]);
        Ok(())
    });
}

#[test]
fn copies_that_cannot_be_made_are_refused() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (ten, twenty) = (device.alloc::<i32>(10)?, device.alloc::<i32>(20)?);
        refused(stream.memcpy(&ten, &twenty), ErrorKind::InvalidArgument, &["20 elements to 10", "slice"]);
        refused(stream.memcpy(&twenty, &[1, 2]), ErrorKind::InvalidArgument, &["2 elements to 20"]);
        let none = ten.slice(3..3)?;
        refused(stream.memcpy(&none, &none), ErrorKind::InvalidArgument, &["at least 1"]);
        let overlap = stream.memcpy(&twenty.slice(..10)?, &twenty.slice(9..19)?);
        refused(overlap, ErrorKind::InvalidArgument, &["36..76", "0..40", "overlap"]);
        refused(stream.memcpy(&ten, &ten), ErrorKind::InvalidArgument, &["overlap"]);
        let two_d = |width, height| stream.memcpy_2d(ten.rows(4)?, twenty.rows(8)?, width, height);
        refused(two_d(5, 2), ErrorKind::InvalidArgument, &["pitch", "16", "20", "destination"]);
        refused(two_d(4, 3), ErrorKind::InvalidArgument, &["48 bytes", "destination", "40"]);
        refused(two_d(0, 1), ErrorKind::InvalidArgument, &["at least 1"]);
        refused(two_d(1, 0), ErrorKind::InvalidArgument, &["at least 1"]);
        let deep = stream.memcpy_3d(ten.planes(2, 2)?, twenty.planes(2, 1)?, [2, 2, 2]);
        refused(deep, ErrorKind::InvalidArgument, &["source", "1 rows", "2"]);
        let vast = stream.memcpy_3d(ten.planes(usize::MAX / 8, 2)?, twenty.planes(2, 2)?, [1, 2, 2]);
        refused(vast, ErrorKind::InvalidArgument, &["destination"]);
        let more = stream.memcpy_2d(ten.rows(4)?, twenty.rows(4)?, usize::MAX / 2, 1);
        refused(more, ErrorKind::InvalidArgument, &["address space"]);
        stream.synchronize()
    });
}

#[test]
fn neighbouring_parts_of_one_buffer_may_be_copied() {
    for_each_device(|device| {
        let (stream, buffer) = (device.stream()?, device.buffer_from(&[1, 2, 3, 4])?);
        stream.memcpy(&buffer.slice(2..)?, &buffer.slice(..2)?)?;
        assert_eq!(buffer.to_vec()?, [1, 2, 1, 2]);
        Ok(())
    });
}

/// One side of a random copy: where it starts and how rows and planes lie.
#[derive(Clone, Copy, Debug)]
struct Side {
    kind: usize,
    offset: usize,
    gap: usize,
    spare_rows: usize,
}

impl Side {
    fn index(self, [width, height, _]: [usize; 3], x: usize, y: usize, z: usize) -> usize {
        self.offset + (z * (height + self.spare_rows) + y) * (width + self.gap) + x
    }

    /// Elements that a buffer needs, with some behind.
    fn len(self, extents: [usize; 3]) -> usize {
        let [width, height, depth] = extents;
        self.index(extents, width - 1, height - 1, depth - 1) + 1 + self.gap
    }
}

fn side() -> impl Strategy<Value = Side> {
    (0..3usize, 0..7usize, 0..6usize, 0..4usize).prop_map(|(kind, offset, gap, spare_rows)| Side {
        kind,
        offset,
        gap,
        spare_rows,
    })
}

/// Copies random blocks of `T` by `copy` and compares with loops on the host.
fn check_blocks<T: Element + PartialEq + std::fmt::Debug>(
    device: &Device,
    extents: impl Strategy<Value = [usize; 3]>,
    value: impl Fn(usize) -> T,
) -> Result<()> {
    let stream = device.stream()?;
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(extents, side(), side()), |(extents, from, to)| {
        let [width, height, depth] = extents;
        let source: Vec<T> = (0..from.len(extents)).map(&value).collect();
        let mut expected = vec![value(9999); to.len(extents)];
        let src = filled(device, KINDS[from.kind], &source)?;
        let dst = filled(device, KINDS[to.kind], &expected)?;
        let planes = |buffer: &Buffer<T>, side: Side| {
            buffer.slice(side.offset..)?.planes(width + side.gap, height + side.spare_rows)
        };
        stream.memcpy_3d(planes(&dst, to)?, planes(&src, from)?, extents)?;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    expected[to.index(extents, x, y, z)] = source[from.index(extents, x, y, z)];
                }
            }
        }
        prop_assert_eq!(dst.to_vec()?, expected);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    Ok(())
}

#[test]
fn planes_are_copied_with_any_pitch_between_any_kinds() {
    for_each_device(|device| {
        check_blocks(device, [1..9usize, 1..7usize, 1..5usize], |i| i as i32)?;
        check_blocks(device, [1..9usize, 1..7usize, 1..5usize], |i| i as u8)?;
        check_blocks(device, [1..40usize, 1..12usize, 1..2usize], |i| [i as u16, 1, 2])
    });
}

#[test]
fn rows_are_copied_inside_a_graph_as_on_a_stream() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let values: Vec<i32> = (0..60).collect();
        let src = device.buffer_from(&values)?;
        let (on_stream, in_graph) = (device.buffer_from(&[0; 40])?, device.buffer_from(&[0; 40])?);
        stream.memcpy_2d(on_stream.rows(8)?, src.slice(3..)?.rows(10)?, 6, 5)?;
        let graph = Graph::new(device);
        graph.memcpy_2d(in_graph.rows(8)?, src.slice(3..)?.rows(10)?, 6, 5)?;
        graph.instantiate()?.launch(&stream)?;
        let got = in_graph.to_vec()?;
        assert_eq!(got, on_stream.to_vec()?);
        let expected: Vec<i32> =
            (0..40).map(|i| if i % 8 < 6 { 3 + i / 8 * 10 + i % 8 } else { 0 }).collect();
        assert_eq!(got, expected);
        Ok(())
    });
}

#[test]
fn large_copies_and_fills_are_whole() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let n = 3_000_001;
        let values: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
        let (a, b) = (device.buffer_from(&values)?, device.alloc::<u8>(n)?);
        stream.memcpy(&b, &a)?;
        stream.memset(&a, 0x11u8)?;
        assert!(b.to_vec()? == values, "a copy of {n} bytes differs");
        assert!(a.to_vec()?.iter().all(|&byte| byte == 0x11), "a fill of {n} bytes differs");
        Ok(())
    });
}
