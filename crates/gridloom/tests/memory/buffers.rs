//! Buffers and slices of them.

use gridloom::prelude::*;
use gridloom_core::backend::AsDevice;
use gridloom_core::null::NullDevice;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, for_each_device, for_each_engine, refused};

const KINDS: [MemoryKind; 3] = [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed];

#[test]
fn a_buffer_of_every_kind_holds_what_was_written() {
    for_each_device(|device| {
        for kind in KINDS {
            let buffer = device.alloc_in::<u64>(100, kind)?;
            assert_eq!((buffer.len(), buffer.is_empty(), buffer.kind()), (100, false, kind));
            assert_eq!(buffer.device(), *device);
            let values: Vec<u64> = (0..100).map(|i| i * 0x0123_4567_89ab).collect();
            buffer.write(&values)?;
            assert_eq!(buffer.to_vec()?, values);
            let mut read = vec![0; 100];
            buffer.read_into(&mut read)?;
            assert_eq!(read, values);
        }
        assert_eq!(device.alloc_host::<u8>(1)?.kind(), MemoryKind::Host);
        assert_eq!(device.alloc_managed::<u8>(1)?.kind(), MemoryKind::Managed);
        Ok(())
    });
}

#[test]
fn elements_of_every_size_survive() {
    for_each_device(|device| {
        assert_eq!(device.buffer_from(&[1u8, 2, 3])?.to_vec()?, [1, 2, 3]);
        assert_eq!(device.buffer_from(&[-1i16])?.to_vec()?, [-1]);
        assert_eq!(device.buffer_from(&[1.5f32, -0.0])?.to_vec()?, [1.5, -0.0]);
        assert_eq!(device.buffer_from(&[u128::MAX; 3])?.to_vec()?, [u128::MAX; 3]);
        assert_eq!(device.buffer_from(&[[1i32, 2, 3]; 5])?.to_vec()?, [[1, 2, 3]; 5]);
        assert_eq!(device.buffer_from(&[half::f16::ONE])?.to_vec()?, [half::f16::ONE]);
        Ok(())
    });
}

#[test]
fn buffers_start_where_the_largest_vector_may() {
    for_each_device(|device| {
        for kind in KINDS {
            for len in [1, 3, 1000] {
                assert_eq!(device.alloc_in::<u8>(len, kind)?.address()? % 256, 0);
            }
        }
        Ok(())
    });
}

#[test]
fn a_slice_is_a_part_of_its_buffer() {
    for_each_device(|device| {
        let buffer = device.buffer_from(&[0, 1, 2, 3, 4, 5, 6, 7])?;
        assert_eq!(buffer.slice(2..5)?.to_vec()?, [2, 3, 4]);
        assert_eq!(buffer.slice(..=1)?.to_vec()?, [0, 1]);
        assert_eq!(buffer.slice(6..)?.to_vec()?, [6, 7]);
        assert_eq!(buffer.slice(2..7)?.slice(1..3)?.to_vec()?, [3, 4]);
        buffer.slice(3..6)?.slice(1..)?.write(&[40, 50])?;
        assert_eq!(buffer.to_vec()?, [0, 1, 2, 3, 40, 50, 6, 7]);
        let empty = buffer.slice(8..)?;
        assert!(empty.is_empty() && empty.to_vec()?.is_empty());
        Ok(())
    });
}

#[test]
fn a_range_outside_the_buffer_is_refused() {
    for_each_device(|device| {
        let buffer = device.alloc::<i32>(8)?;
        refused(buffer.slice(..9), ErrorKind::InvalidArgument, &["9", "8 elements"]);
        refused(buffer.slice(9..), ErrorKind::InvalidArgument, &["9"]);
        #[expect(clippy::reversed_empty_ranges, reason = "it is what must be refused")]
        refused(buffer.slice(5..2), ErrorKind::InvalidArgument, &["5", "2"]);
        refused(buffer.slice(0..=usize::MAX), ErrorKind::InvalidArgument, &[]);
        refused(buffer.slice(2..6)?.slice(..5), ErrorKind::InvalidArgument, &["4 elements"]);
        Ok(())
    });
}

#[test]
fn lengths_that_differ_are_refused() {
    for_each_device(|device| {
        let buffer = device.buffer_from(&[1, 2, 3])?;
        refused(buffer.write(&[1, 2]), ErrorKind::InvalidArgument, &["2 elements", "3", "slice"]);
        refused(buffer.read_into(&mut [0; 4]), ErrorKind::InvalidArgument, &["4 elements", "3"]);
        refused(buffer.slice(1..)?.write(&[0; 3]), ErrorKind::InvalidArgument, &["3 elements", "2"]);
        assert_eq!(buffer.to_vec()?, [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn a_buffer_of_no_bytes_is_refused() {
    for_each_device(|device| {
        for kind in KINDS {
            refused(device.alloc_in::<f32>(0, kind), ErrorKind::InvalidArgument, &["0 bytes"]);
        }
        refused(device.alloc::<[u8; 0]>(10), ErrorKind::InvalidArgument, &["0 bytes"]);
        refused(device.buffer_from::<u8>(&[]), ErrorKind::InvalidArgument, &["0 bytes"]);
        Ok(())
    });
}

#[test]
fn more_bytes_than_addresses_are_refused() {
    for_each_device(|device| {
        refused(
            device.alloc::<u64>(usize::MAX),
            ErrorKind::InvalidArgument,
            &["do not fit in the address space"],
        );
        refused(
            device.alloc::<u8>(usize::MAX),
            ErrorKind::InvalidArgument,
            &["do not fit in the address space"],
        );
        Ok(())
    });
}

#[test]
fn memory_that_is_not_there_is_out_of_memory_and_the_device_goes_on() {
    for_each_device(|device| {
        let error =
            refused(device.alloc::<u8>(1 << 50), ErrorKind::OutOfMemory, &[&(1u64 << 50).to_string()]);
        assert!(error.to_string().contains("bytes"), "{error}");
        assert_eq!(device.buffer_from(&[1, 2])?.to_vec()?, [1, 2]);
        Ok(())
    });
}

#[test]
fn a_memory_limit_is_kept() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options.memory_limit(10_000))?;
        assert_eq!(device.memory_use()?, (0, Some(10_000)));
        let first = device.alloc::<u8>(6000)?;
        let used = device.memory_use()?.0;
        assert!((6000..10_000).contains(&used), "{used}");
        refused(device.alloc::<u8>(6000), ErrorKind::OutOfMemory, &["6000", "10000"]);
        assert_eq!(device.memory_use()?.0, used, "a refused allocation takes nothing");
        drop(first);
        assert_eq!(device.memory_use()?.0, 0);
        device.alloc::<u8>(6000)?;
        Ok(())
    });
}

#[test]
fn a_closed_buffer_is_unusable_through_every_handle() {
    for_each_device(|device| {
        let buffer = device.buffer_from(&[1, 2, 3])?;
        let (clone, slice) = (buffer.clone(), buffer.slice(1..)?);
        assert!(buffer == clone && !buffer.is_closed());
        clone.close();
        assert!(buffer.is_closed() && clone.is_closed());
        let closed = |result: Result<()>| refused(result, ErrorKind::InvalidHandle, &["closed"]);
        closed(buffer.to_vec().map(drop));
        closed(slice.to_vec().map(drop));
        closed(slice.write(&[1, 2]));
        closed(buffer.address().map(drop));
        let stream = device.stream()?;
        closed(stream.memset(&buffer, 0u8));
        closed(stream.memcpy(&slice, &[1, 2]));
        closed(Graph::new(device).memset(&buffer, 0u8).map(drop));
        buffer.close();
        assert_eq!(buffer.len(), 3);
        Ok(())
    });
}

/// Returns whether a thread that must wait does so. One that does not is given a moment to show it.
fn still_running<T>(thread: &std::thread::ScopedJoinHandle<'_, T>) -> bool {
    std::thread::sleep(std::time::Duration::from_millis(5));
    !thread.is_finished()
}

#[test]
fn reading_waits_for_work_enqueued_before_on_any_stream() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let buffer = device.buffer_from(&[0; 1000])?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        one.callback(gate.waiter())?;
        one.memset(&buffer.slice(..500)?, 1i32)?;
        other.callback(gate.waiter())?;
        other.memset(&buffer.slice(500..)?, 2i32)?;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| buffer.to_vec());
            assert!(still_running(&reader));
            gate.open();
            let values = reader.join().expect("no panic")?;
            assert_eq!(values, [[1; 500], [2; 500]].concat());
            Ok(())
        })
    });
}

#[test]
fn writing_waits_for_work_enqueued_before() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (buffer, copy) = (device.buffer_from(&[5; 100])?, device.alloc::<i32>(100)?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        stream.callback(gate.waiter())?;
        stream.memcpy(&copy, &buffer)?;
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| buffer.write(&[6; 100]));
            assert!(still_running(&writer));
            gate.open();
            writer.join().expect("no panic")
        })?;
        assert_eq!((copy.to_vec()?, buffer.to_vec()?), (vec![5; 100], vec![6; 100]));
        Ok(())
    });
}

#[test]
fn host_and_managed_memory_can_be_borrowed_device_memory_cannot() {
    for_each_device(|device| {
        for kind in KINDS {
            let buffer = device.alloc_in::<i32>(3, kind)?;
            buffer.write(&[7, 8, 9])?;
            // SAFETY: nothing is enqueued that writes the buffer, and no handle is closed while the
            // slice is in use.
            let slice = unsafe { buffer.as_slice() };
            if kind == MemoryKind::Device {
                refused(slice, ErrorKind::InvalidArgument, &["device memory", "to_vec"]);
            } else {
                assert_eq!(slice?, [7, 8, 9]);
            }
        }
        Ok(())
    });
}

#[test]
fn memory_is_counted_while_it_is_held() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let buffers: Vec<Buffer<u8>> =
            KINDS.iter().map(|kind| device.alloc_in(10_000, *kind)).collect::<Result<_>>()?;
        assert!(device.memory_use()?.0 >= 30_000);
        let clone = buffers[0].clone();
        drop(buffers);
        let one = device.memory_use()?.0;
        assert!((10_000..20_000).contains(&one), "a clone holds its memory: {one}");
        drop(clone);
        assert_eq!(device.memory_use()?.0, 0);
        Ok(())
    });
}

#[test]
fn a_buffer_outlives_the_handle_of_its_device() {
    for_each_engine(|options| {
        let buffer = Device::cpu_with(options)?.buffer_from(&[1, 2, 3])?;
        assert_eq!(buffer.to_vec()?, [1, 2, 3]);
        buffer.device().stream()?.memset(&buffer, 0u8)?;
        assert_eq!(buffer.to_vec()?, [0; 3]);
        Ok(())
    });
}

#[test]
fn memory_of_one_device_is_refused_by_another() {
    for_each_engine(|options| {
        let (ours, theirs) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        assert_ne!(ours, theirs);
        let (mine, foreign) = (ours.alloc::<i32>(4)?, theirs.alloc::<i32>(4)?);
        let stream = ours.stream()?;
        refused(stream.memset(&foreign, 0u8), ErrorKind::WrongDevice, &["another device"]);
        refused(stream.memcpy(&mine, &foreign), ErrorKind::WrongDevice, &["source", "another device"]);
        refused(stream.memcpy(&foreign, &mine), ErrorKind::WrongDevice, &["destination", "another device"]);
        refused(Graph::new(&ours).memset(&foreign, 0u8), ErrorKind::WrongDevice, &["another device"]);
        refused(stream.record(&theirs.event()?), ErrorKind::WrongDevice, &["event"]);
        refused(stream.wait(&theirs.event()?), ErrorKind::WrongDevice, &["event"]);
        Ok(())
    });
}

#[test]
fn reading_after_one_stream_does_not_wait_for_the_others() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        let buffer = device.buffer_from(&[0; 1000])?;
        one.memset(&buffer.slice(..500)?, 1i32)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        other.callback(gate.waiter())?;
        other.memset(&buffer.slice(500..)?, 2i32)?;
        // The other stream is still held back, and stays so.
        assert_eq!(buffer.slice(..500)?.to_vec_after(&one)?, [1; 500]);
        let mut values = vec![7; 1000];
        buffer.read_into_after(&one, &mut values)?;
        assert_eq!(values, [[1; 500], [0; 500]].concat());
        gate.open();
        assert_eq!(buffer.to_vec_after(&other)?, [[1; 500], [2; 500]].concat());
        Ok(())
    });
}

#[test]
fn reading_after_a_stream_waits_for_the_work_on_it_and_leaves_its_failures() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[0; 4])?;
        stream.callback(|| panic!("on purpose"))?;
        stream.callback(|| std::thread::sleep(std::time::Duration::from_millis(2)))?;
        stream.memset(&buffer, 5i32)?;
        assert_eq!(buffer.to_vec_after(&stream)?, [5; 4]);
        refused(stream.synchronize(), ErrorKind::CallbackPanicked, &["on purpose"]);
        Ok(())
    });
}

#[test]
fn reading_after_a_stream_is_refused_where_it_cannot_be_done() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[0; 4])?;
        refused(buffer.read_into_after(&stream, &mut [0; 3]), ErrorKind::InvalidArgument, &["3 elements"]);
        let capture = stream.capture()?;
        refused(buffer.to_vec_after(&stream), ErrorKind::InvalidState, &["capturing"]);
        drop(capture);
        let elsewhere = Device::cpu()?.stream()?;
        refused(buffer.to_vec_after(&elsewhere), ErrorKind::WrongDevice, &["another device"]);
        buffer.close();
        refused(buffer.to_vec_after(&stream), ErrorKind::InvalidHandle, &["closed"]);
        Ok(())
    });
}

#[test]
fn memory_that_the_host_has_no_room_for_is_not_read() -> Result<()> {
    // The null device has no memory behind its addresses, so it allocates any size.
    let device = Device::from_backend(NullDevice::new().as_device().clone());
    let (buffer, stream) = (device.alloc::<u8>(1 << 62)?, device.stream()?);
    refused(buffer.to_vec(), ErrorKind::OutOfMemory, &["the host has no room"]);
    refused(buffer.to_vec_after(&stream), ErrorKind::OutOfMemory, &["the host has no room"]);
    Ok(())
}
