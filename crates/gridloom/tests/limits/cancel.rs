//! Cancellation of launches, streams and devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use gridloom::prelude::*;

use super::endless::{driven, endless_loop};
use crate::support::graph_kernels::read;
use crate::support::{Bench, GraphKernels, eventually, for_each_device, for_each_engine, is_cpu, refused};

const ENDLESS: &str = include_str!("endless.ptx");

/// Enqueues a callback. Returns a flag that it sets when it runs.
fn told(stream: &Stream) -> Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    let tell = told.clone();
    stream.callback(move || tell.store(true, Ordering::SeqCst))?;
    Ok(told)
}

#[test]
fn a_cancelled_launch_says_so_once_and_the_work_behind_it_runs() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (passes, after) = (kernels.value(0)?, kernels.value(0)?);
        let executable = endless_loop(&kernels, &passes)?;
        executable.launch(&kernels.stream)?;
        executable.cancel();
        kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&after, 1, 1))?;
        let error = refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &["cancelled"]);
        assert_eq!(executable.take_error().map(|error| error.kind()), Some(ErrorKind::Cancelled), "{error}");
        kernels.stream.synchronize()?;
        assert!(executable.take_error().is_none());
        assert_eq!(read(&after)?, 1);
        assert!(read(&passes)? >= 0, "what comes after the loop did not run");
        Ok(())
    });
}

#[test]
fn a_loop_that_runs_stops_and_names_its_node() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let repeat = graph.while_loop(&again)?.named("for ever")?;
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        repeat.body().callback(move || _ = count.fetch_add(1, Ordering::SeqCst))?;
        let executable = graph.instantiate_with(&driven())?;
        executable.launch(&kernels.stream)?;
        eventually("the loop has made some passes", || runs.load(Ordering::SeqCst) > 3);
        executable.cancel();
        refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &["for ever", "cancelled"]);
        let stopped = runs.load(Ordering::SeqCst);
        device.synchronize()?;
        assert_eq!(runs.load(Ordering::SeqCst), stopped);
        Ok(())
    });
}

#[test]
fn a_loop_without_nodes_can_be_cancelled() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let word = device.buffer_from(&[1i32])?;
        graph.while_nonzero(&word)?;
        let executable = graph.instantiate_with(&driven())?;
        executable.launch(&stream)?;
        executable.cancel();
        refused(stream.synchronize(), ErrorKind::Cancelled, &["cancelled"]);
        Ok(())
    });
}

#[test]
fn an_executable_runs_again_after_a_cancel() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (left, passes) = (kernels.value(-1)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let repeat = graph.while_nonzero(&left)?;
        kernels.bump(&repeat.body(), &passes, 1)?;
        kernels.bump(&repeat.body(), &left, -1)?;
        let executable = graph.instantiate_with(&driven())?;
        for _ in 0..3 {
            // It would take four thousand million passes.
            left.write(&[-1])?;
            executable.launch(&kernels.stream)?;
            executable.cancel();
            refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &[]);
            left.write(&[5])?;
            passes.write(&[0])?;
            executable.launch(&kernels.stream)?;
            kernels.stream.synchronize()?;
            assert_eq!((read(&passes)?, executable.passes(&repeat)?), (5, 5));
        }
        Ok(())
    });
}

#[test]
fn a_cancel_of_nothing_leaves_later_launches_alone() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        kernels.bump(&graph.repeat(3)?.body(), &value, 1)?;
        let executable = graph.instantiate_with(&driven())?;
        for launches in 1..=3 {
            executable.cancel();
            kernels.stream.cancel();
            device.cancel();
            executable.launch(&kernels.stream)?;
            kernels.stream.synchronize()?;
            assert_eq!(read(&value)?, 3 * launches);
        }
        Ok(())
    });
}

#[test]
fn launches_that_wait_for_their_turn_are_cancelled_too() {
    for_each_device(|device| {
        if !is_cpu(device) {
            // There, a launch behind one that the host drives waits in its call.
            return Ok(());
        }
        let kernels = GraphKernels::new(device)?;
        let other = device.stream()?;
        let passes = kernels.value(0)?;
        let executable = endless_loop(&kernels, &passes)?;
        executable.launch(&kernels.stream)?;
        executable.launch(&other)?;
        executable.launch(&kernels.stream)?;
        executable.cancel();
        refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &[]);
        refused(other.synchronize(), ErrorKind::Cancelled, &[]);
        Ok(())
    });
}

#[test]
fn a_stream_cancels_its_own_launches_and_no_others() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let other = device.stream()?;
        let (passes, others) = (kernels.value(0)?, kernels.value(0)?);
        let (one, two) = (endless_loop(&kernels, &passes)?, endless_loop(&kernels, &others)?);
        one.launch(&kernels.stream)?;
        two.launch(&other)?;
        kernels.stream.cancel();
        refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &["cancelled"]);
        assert!(!other.is_idle()?);
        other.cancel();
        refused(other.synchronize(), ErrorKind::Cancelled, &["cancelled"]);
        assert_eq!(two.take_error().map(|error| error.kind()), Some(ErrorKind::Cancelled));
        Ok(())
    });
}

#[test]
fn a_device_cancels_what_runs_on_all_its_streams_also_dropped_ones() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let passes = kernels.value(0)?;
        let executables = [endless_loop(&kernels, &passes)?, endless_loop(&kernels, &passes)?];
        executables[0].launch(&kernels.stream)?;
        executables[1].launch(&device.stream()?)?;
        drop(executables);
        device.cancel();
        device.synchronize()?;
        refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &[]);
        Ok(())
    });
}

#[test]
fn a_callback_may_cancel_its_own_launch() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let runs = Arc::new(AtomicU32::new(0));
        let (count, own) = (runs.clone(), stream.clone());
        graph.while_loop(&again)?.body().callback(move || {
            if count.fetch_add(1, Ordering::SeqCst) == 4 {
                own.cancel();
            }
        })?;
        graph.instantiate_with(&driven())?.launch(&stream)?;
        refused(stream.synchronize(), ErrorKind::Cancelled, &[]);
        assert_eq!(runs.load(Ordering::SeqCst), 5);
        Ok(())
    });
}

#[test]
fn a_call_of_a_callable_is_cancelled_by_its_stream() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let increase = kernels.increase.clone();
        let count = Callable::new(&device, move |graph, (left, x): (Param<i32>, Param<[i32]>)| {
            graph.do_while(&left, |body| body.launch(&increase, LaunchConfig::one(), (&x, 1, 1)))
        });
        let (left, x) = (kernels.value(1)?, kernels.value(0)?);
        count.call(&kernels.stream, (&left, &x))?;
        kernels.stream.cancel();
        refused(kernels.stream.synchronize(), ErrorKind::Cancelled, &[]);
        left.write(&[0])?;
        x.write(&[0])?;
        count.call(&kernels.stream, (&left, &x))?;
        kernels.stream.synchronize()?;
        assert_eq!(read(&x)?, 1);
        Ok(())
    });
}

#[test]
fn a_kernel_stops_whatever_kind_of_loop_it_is_in() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, ENDLESS)?;
        let word = bench.buffer(&[0u32])?;
        for name in ["compute", "diverge", "linger", "meet", "vote", "call"] {
            for config in [LaunchConfig::one(), LaunchConfig::new(3, 64), LaunchConfig::new(500, 32)] {
                if ["linger", "vote"].contains(&name) && config == LaunchConfig::one() {
                    continue;
                }
                bench.stream.launch(&bench.kernel::<()>(name)?, config, ())?;
                refused(
                    bench.stream.synchronize_timeout(Duration::from_millis(5)),
                    ErrorKind::Timeout,
                    &["stream"],
                );
                bench.stream.cancel();
                refused(bench.stream.synchronize(), ErrorKind::Cancelled, &[name, "cancelled"]);
            }
        }
        for name in ["spin", "atomic"] {
            bench.stream.launch(
                &bench.kernel::<(PtrMut<u32>,)>(name)?,
                LaunchConfig::new(2, 32),
                (&word,),
            )?;
            refused(
                bench.stream.synchronize_timeout(Duration::from_millis(5)),
                ErrorKind::Timeout,
                &["stream"],
            );
            bench.stream.cancel();
            refused(bench.stream.synchronize(), ErrorKind::Cancelled, &[name, "cancelled"]);
            word.write(&[0])?;
        }
        Ok(())
    });
}

#[test]
fn a_cooperative_kernel_stops() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, ENDLESS)?;
        for name in ["compute", "meet"] {
            let config = LaunchConfig::new(4, 64).cooperative();
            bench.stream.launch(&bench.kernel::<()>(name)?, config, ())?;
            bench.stream.cancel();
            refused(bench.stream.synchronize(), ErrorKind::Cancelled, &["cancelled"]);
        }
        Ok(())
    });
}

#[test]
fn a_kernel_inside_a_graph_stops_and_names_its_node() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let bench = Bench::new(&device, ENDLESS)?;
        let graph = Graph::new(&device);
        graph.launch(&bench.kernel::<()>("compute")?, LaunchConfig::new(8, 64), ())?.named("stuck")?;
        let executable = graph.instantiate()?;
        // A launch that is cancelled before it has come to its kernel does not name the node.
        for milliseconds in [5, 50, 500, 5000] {
            executable.launch(&bench.stream)?;
            let wait = Duration::from_millis(milliseconds);
            refused(bench.stream.synchronize_timeout(wait), ErrorKind::Timeout, &[]);
            executable.cancel();
            let error = bench.stream.synchronize().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
            let message = error.to_string();
            if ["stuck", "compute", "cancelled"].iter().all(|part| message.contains(part)) {
                return Ok(());
            }
        }
        panic!("no launch came to its kernel")
    });
}

#[test]
fn what_a_stream_itself_copies_and_calls_is_not_cancelled() {
    for_each_device(|device| {
        if !is_cpu(device) {
            return Ok(());
        }
        let kernels = GraphKernels::new(device)?;
        let (passes, copy) = (kernels.value(0)?, kernels.value(0)?);
        endless_loop(&kernels, &passes)?.launch(&kernels.stream)?;
        kernels.stream.memset(&copy, 7i32)?;
        let ran = told(&kernels.stream)?;
        let event = device.event()?;
        kernels.stream.record(&event)?;
        kernels.stream.cancel();
        event.synchronize()?;
        assert!(ran.load(Ordering::SeqCst));
        assert_eq!(read(&copy)?, 7);
        Ok(())
    });
}

#[test]
fn an_endless_loop_ends_soon_when_everything_is_dropped() {
    /// Tells when the graph that holds it is gone.
    struct Held(Arc<AtomicBool>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let gone: Vec<Arc<AtomicBool>> = (0..8).map(|_| Arc::default()).collect();
    let next = AtomicU32::new(0);
    let start = |device: Device| -> Result<()> {
        let stream = device.stream()?;
        let graph = Graph::new(&device);
        let again = graph.condition(Some(1))?;
        let held = Held(gone[next.fetch_add(1, Ordering::SeqCst) as usize].clone());
        let body = graph.while_loop(&again)?.body();
        body.callback(move || {
            let _held = &held;
        })?;
        graph.instantiate_with(&driven())?.launch(&stream)
    };
    for_each_engine(|options| start(Device::cpu_with(options)?));
    let started = next.load(Ordering::SeqCst) as usize;
    eventually("the loops have ended", || gone[..started].iter().all(|gone| gone.load(Ordering::SeqCst)));
}

#[test]
fn an_endless_kernel_ends_soon_when_everything_is_dropped() {
    for_each_engine(|options| {
        let printed = Arc::new(());
        let held = Arc::downgrade(&printed);
        // The device holds it, and what runs on the device holds the device.
        let print = move |_: &[u8]| drop(printed.clone());
        let device = Device::cpu_with(options.print(print))?;
        let bench = Bench::new(&device, ENDLESS)?;
        bench.stream.launch(&bench.kernel::<()>("compute")?, LaunchConfig::new(4, 64), ())?;
        drop((bench, device));
        eventually("the kernel has ended", || held.strong_count() == 0);
        Ok(())
    });
}

/// More blocks than any device runs in a lifetime.
fn without_end() -> LaunchConfig {
    LaunchConfig::new((i32::MAX as u32, 65_535, 65_535), 1)
}

#[test]
fn a_kernel_of_more_blocks_than_ever_end_can_be_cancelled() {
    for_each_engine(|options| {
        for threads in [1, 3] {
            let bench = Bench::new(&Device::cpu_with(options.clone().threads(threads))?, ENDLESS)?;
            let (kernel, stream) = (bench.kernel::<()>("nothing")?, &bench.stream);
            stream.launch(&kernel, without_end(), ())?;
            refused(stream.synchronize_timeout(Duration::from_millis(50)), ErrorKind::Timeout, &[]);
            stream.cancel();
            refused(stream.synchronize_timeout(Duration::from_secs(60)), ErrorKind::Cancelled, &["nothing"]);
        }
        Ok(())
    });
}

#[test]
fn a_failure_ends_a_kernel_however_many_blocks_are_left() {
    for_each_engine(|options| {
        for threads in [1, 3] {
            let bench = Bench::new(&Device::cpu_with(options.clone().threads(threads))?, ENDLESS)?;
            let (kernel, stream) = (bench.kernel::<()>("fail")?, &bench.stream);
            stream.launch(&kernel, without_end(), ())?;
            refused(stream.synchronize_timeout(Duration::from_secs(60)), ErrorKind::KernelFault, &["fail"]);
        }
        Ok(())
    });
}
