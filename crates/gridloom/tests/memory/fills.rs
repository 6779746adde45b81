//! Fills.

use bytemuck::Pod;
use gridloom::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{for_each_device, refused};

#[test]
fn memory_is_filled_with_values_of_one_two_and_four_bytes() {
    fn check<V: Pod>(device: &Device, value: V) -> Result<()> {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[0xeeu8; 96])?;
        stream.memset(&buffer.slice(16..80)?, value)?;
        let mut expected = vec![0xee; 96];
        for chunk in expected[16..80].chunks_mut(size_of::<V>()) {
            chunk.copy_from_slice(bytemuck::bytes_of(&value));
        }
        assert_eq!(buffer.to_vec()?, expected, "{}", std::any::type_name::<V>());
        Ok(())
    }
    for_each_device(|device| {
        check(device, 0xabu8)?;
        check(device, -3i8)?;
        check(device, 0x1234u16)?;
        check(device, half::f16::from_f32(1.5))?;
        check(device, 0x0102_0304u32)?;
        check(device, -2.5f32)?;
        check(device, [1u8, 2, 3, 4])
    });
}

#[test]
fn a_value_of_another_size_is_refused() {
    for_each_device(|device| {
        let (stream, buffer) = (device.stream()?, device.alloc::<f64>(4)?);
        refused(stream.memset(&buffer, 1.0f64), ErrorKind::InvalidArgument, &["8 bytes", "f64", "1, 2 or 4"]);
        refused(stream.memset(&buffer, [0u8; 3]), ErrorKind::InvalidArgument, &["3 bytes"]);
        refused(stream.memset(&buffer, ()), ErrorKind::InvalidArgument, &["0 bytes"]);
        refused(Graph::new(device).memset(&buffer, 1u64), ErrorKind::InvalidArgument, &["8 bytes"]);
        Ok(())
    });
}

#[test]
fn a_fill_that_does_not_fit_is_refused() {
    for_each_device(|device| {
        let (stream, bytes) = (device.stream()?, device.alloc::<u8>(10)?);
        refused(stream.memset(&bytes, 1u32), ErrorKind::InvalidArgument, &["10 bytes", "4"]);
        refused(stream.memset(&bytes.slice(1..5)?, 1u32), ErrorKind::InvalidArgument, &["multiple"]);
        refused(stream.memset(&bytes.slice(3..3)?, 1u8), ErrorKind::InvalidArgument, &["at least 1"]);
        let rows = || bytes.rows(4);
        refused(stream.memset_2d(rows()?, 1u8, 3, 3), ErrorKind::InvalidArgument, &["11 bytes", "10"]);
        refused(stream.memset_2d(rows()?, 1u8, 5, 2), ErrorKind::InvalidArgument, &["pitch", "4", "5"]);
        refused(stream.memset_2d(rows()?, 1u8, 0, 2), ErrorKind::InvalidArgument, &["at least 1"]);
        refused(stream.memset_2d(rows()?, 1u8, 2, 0), ErrorKind::InvalidArgument, &["at least 1"]);
        refused(
            stream.memset_2d(bytes.rows(3)?, 1u16, 1, 2),
            ErrorKind::InvalidArgument,
            &["pitch", "multiple"],
        );
        refused(
            stream.memset_2d(bytes.rows(usize::MAX)?, 1u8, 1, 3),
            ErrorKind::InvalidArgument,
            &["addresses"],
        );
        stream.memset_2d(rows()?, 1u8, 2, 3)?;
        stream.synchronize()
    });
}

#[test]
fn the_pitch_is_ignored_when_there_is_one_row() {
    for_each_device(|device| {
        let (stream, buffer) = (device.stream()?, device.buffer_from(&[0u16; 8])?);
        stream.memset_2d(buffer.rows(1)?, 5u16, 8, 1)?;
        assert_eq!(buffer.to_vec()?, [5; 8]);
        Ok(())
    });
}

#[test]
fn rows_are_filled_and_what_is_between_them_is_not() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let shapes = (1usize..20, 0usize..9, 1usize..12, 0usize..5, prop_oneof![Just(1), Just(2), Just(4)]);
        let mut runner =
            TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&shapes, |(width, gap, height, offset, size)| {
            // In units of the value's size, so that everything is aligned to it.
            let pitch = width + gap;
            let len = (offset + (height - 1) * pitch + width + 3) * size;
            let buffer = device.buffer_from(&vec![0xccu8; len])?;
            let part = buffer.slice(offset * size..)?;
            let rows = part.rows(pitch * size)?;
            match size {
                1 => stream.memset_2d(rows, 0x5au8, width, height)?,
                2 => stream.memset_2d(rows, 0x5a5au16, width, height)?,
                _ => stream.memset_2d(rows, 0x5a5a_5a5au32, width, height)?,
            }
            let mut expected = vec![0xcc; len];
            for row in 0..height {
                let start = (offset + row * pitch) * size;
                expected[start..start + width * size].fill(0x5a);
            }
            prop_assert_eq!(buffer.to_vec()?, expected);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
}
