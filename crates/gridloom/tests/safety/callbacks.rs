//! Callbacks that ask what belongs to other threads.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::ends;
use crate::support::{GraphKernels, for_each_device, for_each_engine, refused};

/// What a callback was told by an executable and a callable.
struct Told {
    report: usize,
    memory: u64,
    calls: u64,
    refusals: [Option<Error>; 4],
}

#[test]
fn a_callback_reads_numbers_of_executables_and_callables_and_is_refused_the_rest() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let scratch = graph.alloc::<i32>(64)?;
        let body = scratch.memset(&scratch, 1)?.repeat(2)?;
        kernels.bump(&body.body(), &scratch.slice(0..1)?, 1)?;
        body.free(&scratch)?;
        let executable = Arc::new(graph.instantiate()?);
        let increase = kernels.increase.clone();
        let add = Callable::new(device, move |g, (x, by): (Param<[i32]>, Scalar<i32>)| {
            g.launch(&increase, per_element(&x), (&x, x.len(), &by))
        });
        let x = kernels.buffer(&[0; 5])?;
        add.call(&kernels.stream, (&x, 1))?;
        kernels.stream.synchronize()?;

        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let (asked, called) = (executable.clone(), add.clone());
        kernels.stream.callback(move || {
            let answers = Told {
                report: asked.report().conditionals.len(),
                memory: asked.memory().allocations,
                calls: called.stats().calls,
                refusals: [
                    asked.graph().err(),
                    asked.optimized_graph().err(),
                    called.graph().err(),
                    called.reset().err(),
                ],
            };
            assert!(asked.take_error().is_none() && !format!("{asked:?} {called:?}").is_empty());
            tell.lock().send(answers).unwrap();
        })?;
        kernels.stream.synchronize()?;
        let told = told.recv_timeout(Duration::from_secs(60)).expect("the callback ran");
        assert_eq!((told.report, told.calls), (1, 1));
        assert!(told.memory >= 64 * 4, "{}", told.memory);
        for refusal in told.refusals {
            refused(refusal.map_or(Ok(()), Err), ErrorKind::InvalidState, &["callback"]);
        }
        // Nothing was changed by what was refused.
        assert_eq!((add.stats().graphs, executable.graph()?.len()), (1, graph.len()));
        Ok(())
    });
}

#[test]
fn a_closure_that_runs_itself_on_another_device_gets_an_error_and_no_hang() {
    for_each_engine(|options| {
        let (device, other) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        let (stream, inner) = (device.stream()?, other.stream()?);
        let itself = Arc::new(Mutex::new(None));
        let (tell, told) = mpsc::channel();
        let (again, tell) = (itself.clone(), Mutex::new(tell));
        let graph = Graph::new(&device);
        let node = graph.callback(move || {
            let Some(operation) = again.lock().take() else { return };
            inner.submit(operation).unwrap();
            tell.lock().send(inner.synchronize()).unwrap();
        })?;
        *itself.lock() = Some(node.operation()?);
        graph.instantiate()?.launch(&stream)?;
        ends("a callback that waits for itself", move || stream.synchronize())?;
        let waited = told.recv_timeout(Duration::from_secs(60)).expect("the callback ran");
        refused(waited, ErrorKind::InvalidState, &["another device"]);
        Ok(())
    });
}

#[test]
fn a_callback_uses_other_devices_also_where_a_callback_of_them_waits_for_it() {
    for_each_engine(|options| {
        let (device, other) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        for round in 0..50i32 {
            let (stream, inner, target) = (device.stream()?, other.stream()?, device.stream()?);
            let value = device.buffer_from(&[-1])?;
            let (tell, told) = mpsc::channel();
            let (to, on) = (value.clone(), target.clone());
            stream.callback(move || {
                let (to, on, tell) = (to.clone(), on.clone(), tell.clone());
                // The thread of this callback may run that one while it waits.
                inner.callback(move || tell.send(on.memset(&to, round)).unwrap()).unwrap();
                inner.synchronize().unwrap();
            })?;
            stream.synchronize()?;
            told.recv_timeout(Duration::from_secs(60)).expect("the inner callback ran")?;
            target.synchronize()?;
            assert_eq!(value.to_vec()?, [round]);
        }
        Ok(())
    });
}
