//! Calls at the same time: from several threads, and in flight on several streams.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use gridloom::callable::{CallableOptions, per_element};
use gridloom::prelude::*;

use super::{assert_built_once, for_each_way, with_graphs};
use crate::support::graph_kernels::read;
use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, for_each_device};

type Add = Callable<(Param<[i32]>, Scalar<i32>)>;

fn adder(kernels: &GraphKernels, options: &CallableOptions) -> Add {
    let increase = kernels.increase.clone();
    Callable::with_options(
        &kernels.device,
        options.clone(),
        move |g, (x, by): (Param<[i32]>, Scalar<i32>)| {
            g.launch(&increase, per_element(&x), (&x, x.len(), &by))
        },
    )
}

/// One that was called before, so often at once that it has these instances: a first launch of a
/// kernel, and making an executable, may wait for the whole device, which must not happen behind a
/// closed gate.
fn warm(kernels: &GraphKernels, options: &CallableOptions, instances: usize) -> Result<Add> {
    let add = adder(kernels, options);
    let (late, x) = (kernels.value(0)?, kernels.value(0)?);
    let streams: Vec<Stream> = (0..instances).map(|_| kernels.device.stream()).collect::<Result<_>>()?;
    for stream in &streams {
        stream.launch(&kernels.late, LaunchConfig::one(), (&late, 20_000))?;
        add.call(stream, (&x, 1))?;
    }
    streams.iter().try_for_each(Stream::synchronize)?;
    Ok(add)
}

/// Calls of each thread; `GRIDLOOM_CALLABLE_CALLS` asks for more or fewer.
fn calls() -> i32 {
    let asked = std::env::var("GRIDLOOM_CALLABLE_CALLS").ok().and_then(|calls| calls.parse().ok());
    asked.unwrap_or(10_000)
}

#[test]
fn two_threads_call_with_their_own_arguments_on_their_own_streams() {
    for_each_way(|kernels, options| {
        let (add, calls) = (adder(kernels, options), calls());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..=2)
                .map(|worker| {
                    let (add, device) = (&add, &kernels.device);
                    scope.spawn(move || -> Result<()> {
                        let stream = device.stream()?;
                        // Of different lengths, so that a launch shape of the other thread would
                        // show.
                        let arrays = [
                            device.buffer_from(&vec![0; 3 * worker])?,
                            device.buffer_from(&vec![0; 300 * worker])?,
                        ];
                        for call in 0..calls {
                            let by = call % 7 + worker as i32;
                            add.call(&stream, (&arrays[call as usize % 2], by))?;
                        }
                        for (place, array) in arrays.iter().enumerate() {
                            let total: i32 = (0..calls)
                                .filter(|call| *call as usize % 2 == place)
                                .map(|call| call % 7 + worker as i32)
                                .sum();
                            assert_eq!(array.to_vec()?, vec![total; array.len()], "thread {worker}");
                        }
                        Ok(())
                    })
                })
                .collect();
            for worker in workers {
                worker.join().expect("the thread did not panic")?;
            }
            Ok::<(), Error>(())
        })?;
        assert_built_once(&add, options, 2 * calls as u64);
        Ok(())
    });
}

#[test]
fn first_calls_from_several_threads_build_once() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (runs, increase) = (Arc::new(AtomicU32::new(0)), kernels.increase.clone());
        let inside = runs.clone();
        let work = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<i32>,)| {
            inside.fetch_add(1, Ordering::Relaxed);
            // Long enough for the others to arrive.
            std::thread::sleep(std::time::Duration::from_millis(20));
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
        });
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| -> Result<i32> {
                        let (stream, x) = (device.stream()?, device.buffer_from(&[1])?);
                        barrier.wait();
                        work.call(&stream, (&x,))?;
                        read(&x)
                    })
                })
                .collect();
            for worker in workers {
                assert_eq!(worker.join().expect("the thread did not panic")?, 2);
            }
            Ok::<(), Error>(())
        })?;
        assert_eq!((runs.load(Ordering::Relaxed), work.stats().builds), (1, 1));
        Ok(())
    });
}

#[test]
fn a_call_in_flight_keeps_its_arguments_while_others_are_called() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let add = warm(&kernels, &with_graphs(), 2)?;
        let gate = Gate::closed();
        let _open = OpenOnDrop(&gate);
        let (held, free) = (device.stream()?, device.stream()?);
        let (x, y, z) = (kernels.buffer(&[0; 2])?, kernels.buffer(&[0; 500])?, kernels.buffer(&[0; 5])?);
        held.callback(gate.waiter())?;
        add.call(&held, (&x, 1))?;
        add.call(&held, (&z, 2))?;
        // Another executable, since the first one's launches have not run.
        add.call(&free, (&y, 3))?;
        free.synchronize()?;
        assert!(!held.is_idle()?);
        assert_eq!(add.stats().instances, 2);
        gate.open();
        held.synchronize()?;
        assert_eq!((x.to_vec()?, y.to_vec()?, z.to_vec()?), (vec![1; 2], vec![3; 500], vec![2; 5]));
        assert_eq!(add.stats().builds, 1);
        Ok(())
    });
}

#[test]
fn more_calls_in_flight_than_executables_wait_for_each_other() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let options = with_graphs().max_instances(2);
        let add = warm(&kernels, &options, 2)?;
        let gate = Gate::closed();
        let _open = OpenOnDrop(&gate);
        let streams: Vec<Stream> = (0..5).map(|_| device.stream()).collect::<Result<_>>()?;
        let arrays: Vec<Buffer<i32>> =
            (1..=5).map(|len| kernels.buffer(&vec![0; 100 * len])).collect::<Result<_>>()?;
        for stream in &streams {
            stream.callback(gate.waiter())?;
        }
        for (place, (stream, array)) in streams.iter().zip(&arrays).enumerate() {
            add.call(stream, (array, place as i32 + 1))?;
        }
        gate.open();
        for stream in &streams {
            stream.synchronize()?;
        }
        for (place, array) in arrays.iter().enumerate() {
            assert_eq!(array.to_vec()?, vec![place as i32 + 1; array.len()]);
        }
        let stats = add.stats();
        assert_eq!((stats.builds, stats.instances, stats.calls), (1, 2, 7));
        Ok(())
    });
}

#[test]
fn threads_that_displace_each_others_graphs_all_succeed() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let options = with_graphs().max_graphs(1);
        let increase = kernels.increase.clone();
        let work = Callable::with_options(device, options, move |g, (x, steps): (Param<i32>, Shape)| {
            for _ in 0..steps.get() {
                g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
            }
            Ok(())
        });
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..=3u64)
                .map(|steps| {
                    let work = &work;
                    scope.spawn(move || -> Result<()> {
                        let (stream, x) = (device.stream()?, device.buffer_from(&[0])?);
                        for _ in 0..40 {
                            work.call(&stream, (&x, steps))?;
                        }
                        assert_eq!(read(&x)?, 40 * steps as i32);
                        Ok(())
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("the thread did not panic"))
        })?;
        assert_eq!((work.stats().calls, work.stats().graphs), (120, 1));
        Ok(())
    });
}

#[test]
fn a_reset_during_calls_of_another_thread_loses_none() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (add, x) = (adder(&kernels, &with_graphs()), kernels.value(0)?);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| (0..200).try_for_each(|_| add.call(&kernels.stream, (&x, 1))));
            for _ in 0..50 {
                add.reset()?;
                std::thread::yield_now();
            }
            caller.join().expect("the thread did not panic")
        })?;
        assert_eq!(read(&x)?, 200);
        Ok(())
    });
}
