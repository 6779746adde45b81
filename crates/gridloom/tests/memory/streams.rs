//! Streams: order, waiting and failures.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use gridloom::StreamOptions;
use gridloom::prelude::*;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, for_each_device, refused};

#[test]
fn work_on_a_stream_runs_in_the_order_it_was_enqueued() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, copy) = (kernels.value(1)?, kernels.value(0)?);
        let stream = &kernels.stream;
        let one = LaunchConfig::one();
        let mut expected = 1i32;
        for by in 0..20 {
            stream.launch(&kernels.increase, one, (&value, 1, by))?;
            stream.memcpy(&copy, &value)?;
            stream.launch(&kernels.mix, one, (&value, &copy, 1))?;
            expected = expected.wrapping_add(by).wrapping_mul(32);
        }
        stream.synchronize()?;
        assert_eq!(value.to_vec()?, [expected]);
        Ok(())
    });
}

#[test]
fn enqueueing_does_not_wait() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[1, 2])?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        stream.callback(gate.waiter())?;
        for _ in 0..100 {
            stream.memset(&buffer, 0u8)?;
        }
        assert!(!stream.is_idle()?);
        gate.open();
        stream.synchronize()?;
        assert!(stream.is_idle()?);
        Ok(())
    });
}

#[test]
fn a_new_stream_is_idle() {
    for_each_device(|device| {
        let stream = device.stream()?;
        assert!(stream.is_idle()?);
        stream.synchronize()?;
        device.synchronize()
    });
}

#[test]
fn streams_do_not_wait_for_each_other() {
    for_each_device(|device| {
        let (held, free) = (device.stream()?, device.stream()?);
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        held.callback(gate.waiter())?;
        // Not a callback: a driver may have one thread for the callbacks of all streams.
        let filled = device.alloc_host::<u32>(4)?;
        free.memset(&filled, 7u32)?;
        free.synchronize()?;
        assert!(!held.is_idle()?);
        gate.open();
        held.synchronize()?;
        assert_eq!(filled.to_vec()?, [7; 4]);
        Ok(())
    });
}

#[test]
fn a_device_waits_for_all_its_streams() {
    for_each_device(|device| {
        let ran = Arc::new(AtomicU32::new(0));
        let streams: Vec<Stream> = (0..4).map(|_| device.stream()).collect::<Result<_>>()?;
        for stream in &streams {
            for _ in 0..10 {
                let count = ran.clone();
                stream.callback(move || {
                    count.fetch_add(1, Ordering::SeqCst);
                })?;
            }
        }
        device.synchronize()?;
        assert_eq!(ran.load(Ordering::SeqCst), 40);
        Ok(())
    });
}

#[test]
fn work_goes_on_after_the_handle_of_its_stream_is_dropped() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[0; 64])?;
        let gate = Gate::closed();
        stream.callback(gate.waiter())?;
        stream.memset(&buffer, 3i32)?;
        drop(stream);
        gate.open();
        assert_eq!(buffer.to_vec()?, [3; 64]);
        Ok(())
    });
}

#[test]
fn a_stream_can_be_fed_from_several_threads() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        std::thread::scope(|scope| {
            let feeders: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..25).try_for_each(|_| {
                            kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 1))
                        })
                    })
                })
                .collect();
            feeders.into_iter().try_for_each(|feeder| feeder.join().expect("no panic"))
        })?;
        kernels.stream.synchronize()?;
        assert_eq!(value.to_vec()?, [100]);
        Ok(())
    });
}

#[test]
fn a_failure_is_reported_once_by_the_next_synchronize_and_the_stream_goes_on() {
    for_each_device(|device| {
        let stream = device.stream()?;
        stream.callback(|| panic!("the first of two"))?;
        stream.callback(|| panic!("the second of two"))?;
        refused(stream.synchronize(), ErrorKind::CallbackPanicked, &["the first of two"]);
        stream.synchronize()?;
        let buffer = device.buffer_from(&[0; 8])?;
        stream.memset(&buffer, 1i32)?;
        stream.synchronize()?;
        assert_eq!(buffer.to_vec()?, [1; 8]);
        Ok(())
    });
}

#[test]
fn a_failure_stays_with_its_stream() {
    for_each_device(|device| {
        let (failing, other) = (device.stream()?, device.stream()?);
        failing.callback(|| panic!("of one stream"))?;
        device.synchronize()?;
        other.synchronize()?;
        // Asking does not take the failure away. The library may just have enqueued a mark of its
        // own behind the callback, so the stream can be busy for another moment.
        while !failing.is_idle()? {
            std::thread::yield_now();
        }
        refused(failing.synchronize(), ErrorKind::CallbackPanicked, &["of one stream"]);
        Ok(())
    });
}

#[test]
fn a_stream_takes_no_operation_that_belongs_in_a_graph() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let alloc = graph.alloc::<i32>(4)?;
        let host = device.alloc::<i32>(4)?;
        refused(stream.memcpy(&host, &alloc), ErrorKind::InvalidArgument, &["alloc node", "stream"]);
        refused(stream.memset(&alloc, 0u8), ErrorKind::InvalidArgument, &["alloc node", "stream"]);
        refused(stream.submit(alloc.operation()?), ErrorKind::InvalidArgument, &["alloc", "graph"]);
        let kernels = GraphKernels::new(device)?;
        let condition = graph.condition(None)?;
        let value = kernels.value(0)?;
        refused(
            stream.launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &value)),
            ErrorKind::InvalidArgument,
            &["condition", "stream"],
        );
        Ok(())
    });
}

#[test]
fn handles_of_streams_compare_by_identity() {
    for_each_device(|device| {
        let (one, other) = (device.stream()?, device.stream()?);
        assert!(one == one.clone() && one != other);
        let set: std::collections::HashSet<Stream> = [one.clone(), other, one].into();
        assert_eq!(set.len(), 2);
        Ok(())
    });
}

#[test]
fn order_holds_across_many_small_operations() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        for i in 0..1000 {
            let seen = seen.clone();
            stream.callback(move || seen.lock().expect("no panic").push(i))?;
        }
        stream.synchronize()?;
        assert_eq!(*seen.lock().expect("no panic"), (0..1000).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn a_stream_has_the_priority_it_was_made_with_within_the_range_of_the_device() {
    for_each_device(|device| {
        let range = device.priority_range()?;
        assert!(range.contains(&0), "{range:?}");
        assert_eq!(device.stream()?.priority()?, 0);
        for (asked, given) in [
            (*range.start(), *range.start()),
            (*range.end(), *range.end()),
            (i32::MIN, *range.start()),
            (i32::MAX, *range.end()),
        ] {
            let stream = device.stream_with(StreamOptions::new().priority(asked))?;
            assert_eq!(stream.priority()?, given, "{asked} of {range:?}");
            let buffer = device.alloc::<u32>(4)?;
            stream.memset(&buffer, 3u32)?;
            assert_eq!(buffer.to_vec_after(&stream)?, [3; 4]);
        }
        Ok(())
    });
}

#[test]
fn blocking_and_non_blocking_streams_run_work() {
    for_each_device(|device| {
        let buffer = device.alloc::<u32>(4)?;
        for non_blocking in [true, false] {
            let stream = device.stream_with(StreamOptions::new().non_blocking(non_blocking))?;
            stream.memset(&buffer, u32::from(non_blocking))?;
            stream.synchronize()?;
            assert_eq!(buffer.to_vec()?, [u32::from(non_blocking); 4]);
        }
        Ok(())
    });
}
