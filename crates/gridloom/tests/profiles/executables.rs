//! A profile leaves its executable as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gridloom::prelude::*;

use super::{check, for_each_method, row};
use crate::support::graph_kernels::read;
use crate::support::{Gate, GraphKernels, eventually, for_each_mode, refused};

#[test]
fn a_profile_takes_present_parameters_and_changes_nothing() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let add = kernels.bump(&graph, &value, 1)?.named("add")?;
        kernels.bump(&add, &other, 1)?.named("other")?;
        let executable = graph.instantiate()?;
        executable.node(&add)?.set_args(&kernels.increase, (&value, 1, 5))?;
        check(&executable.profile_with(&kernels.stream, options)?);
        assert_eq!(read(&value)?, 5);
        executable.node(&add)?.set_args(&kernels.increase, (&value, 1, 7))?;
        executable.launch(&kernels.stream)?;
        check(&executable.profile_with(&kernels.stream, options)?);
        executable.launch(&kernels.stream)?;
        assert_eq!((read(&value)?, read(&other)?), (5 + 3 * 7, 4));
        Ok(())
    });
}

#[test]
fn disabled_nodes_stay_disabled_and_have_no_times() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let off = kernels.bump(&graph, &value, 1)?.named("off")?;
        kernels.bump(&off, &other, 1)?.named("on")?;
        let executable = graph.instantiate()?;
        executable.node(&off)?.set_enabled(false)?;
        let profile = executable.profile_with(&kernels.stream, options)?;
        check(&profile);
        assert!(row(&profile, "off").disabled && row(&profile, "off").runs == 0, "{profile:#}");
        assert_eq!((read(&value)?, read(&other)?, row(&profile, "on").runs), (0, 1, 1));
        executable.node(&off)?.set_enabled(true)?;
        let profile = executable.profile_with(&kernels.stream, options)?;
        assert_eq!((read(&value)?, row(&profile, "off").runs), (1, 1));
        Ok(())
    });
}

#[test]
fn memory_that_outlives_a_profile_belongs_to_the_executable() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let kept = graph.alloc::<i32>(4)?.named("kept")?;
        kept.memset(&kept, 9i32)?;
        let executable = graph.instantiate()?;
        check(&executable.profile_with(&kernels.stream, options)?);
        let buffer = executable.buffer(&kept)?;
        assert_eq!(buffer.to_vec()?, [9; 4]);
        let again = executable.profile_with(&kernels.stream, options);
        refused(again, ErrorKind::InvalidState, &["still allocated", "kept"]);
        refused(executable.launch(&kernels.stream), ErrorKind::InvalidState, &["still allocated"]);
        let free = Graph::new(device);
        free.free(&buffer)?;
        kernels.run(&free)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(executable.buffer(&kept)?.to_vec()?, [9; 4]);

        let freeing = graph.instantiate_with(&InstantiateOptions::new().auto_free_on_launch(true))?;
        for _ in 0..2 {
            freeing.launch(&kernels.stream)?;
            let old = freeing.buffer(&kept)?;
            check(&freeing.profile_with(&kernels.stream, options)?);
            assert!(old.to_vec().is_err(), "the profile freed it");
            assert_eq!(freeing.buffer(&kept)?.to_vec()?, [9; 4]);
        }
        Ok(())
    });
}

#[test]
fn a_failed_launch_is_the_error_of_the_profile_and_is_reported_once() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let fails = Arc::new(AtomicBool::new(true));
        let asked = fails.clone();
        graph.callback(move || assert!(!asked.load(Ordering::SeqCst), "no more"))?.named("doubt")?;
        let executable = graph.instantiate()?;
        let failed = executable.profile_with(&kernels.stream, options);
        refused(failed, ErrorKind::CallbackPanicked, &["doubt", "no more"]);
        assert!(executable.take_error().is_none());
        kernels.stream.synchronize()?;
        fails.store(false, Ordering::SeqCst);
        check(&executable.profile_with(&kernels.stream, options)?);
        executable.launch(&kernels.stream)?;
        kernels.stream.synchronize()
    });
}

#[test]
fn a_profile_can_be_cancelled() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let passes = Arc::new(AtomicU32::new(0));
        let count = passes.clone();
        graph.while_loop(&again)?.body().callback(move || _ = count.fetch_add(1, Ordering::SeqCst))?;
        let hosted = InstantiateOptions::new().conditional_mode(ConditionalMode::Hosted);
        let executable = graph.instantiate_with(&hosted)?;
        std::thread::scope(|scope| {
            let profile = scope.spawn(|| executable.profile_with(&kernels.stream, options));
            eventually("the loop runs", || passes.load(Ordering::SeqCst) > 2);
            executable.cancel();
            refused(profile.join().unwrap(), ErrorKind::Cancelled, &["cancelled"]);
        });
        kernels.stream.synchronize()
    });
}

#[test]
fn a_capturing_stream_and_a_callback_cannot_profile() {
    for_each_method(|device, options| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let executable = Arc::new(graph.instantiate()?);
        let capture = stream.capture()?;
        let refusal = executable.profile_with(&stream, options);
        refused(refusal, ErrorKind::InvalidState, &["capturing"]);
        drop(capture);
        check(&executable.profile_with(&stream, options)?);

        let said = Arc::new(std::sync::Mutex::new(None));
        let (inside, told, options, own) = (executable.clone(), said.clone(), *options, stream.clone());
        let calling = Graph::new(device);
        calling.callback(move || {
            *told.lock().unwrap() = inside.profile_with(&own, &options).err().map(|error| error.kind());
        })?;
        calling.instantiate()?.launch(&stream)?;
        stream.synchronize()?;
        assert!(said.lock().unwrap().is_some(), "a profile in a callback is an error");
        Ok(())
    });
}

#[test]
fn a_profile_comes_after_earlier_launches_and_before_later_ones_on_other_streams() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let elsewhere = device.stream()?;
        let (running, overlapped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let (inside, overlap) = (running.clone(), overlapped.clone());
        let enter = graph.callback(move || {
            if inside.fetch_add(1, Ordering::SeqCst) != 0 {
                overlap.store(true, Ordering::SeqCst);
            }
        })?;
        let leaving = running.clone();
        kernels.bump(&enter, &value, 1)?.callback(move || _ = leaving.fetch_sub(1, Ordering::SeqCst))?;
        let executable = graph.instantiate()?;
        let gate = Gate::closed();
        elsewhere.callback(gate.waiter())?;
        executable.launch(&elsewhere)?;
        std::thread::scope(|scope| {
            let profile = scope.spawn(|| executable.profile_with(&kernels.stream, options));
            gate.open();
            check(&profile.join().unwrap().unwrap());
        });
        executable.launch(&elsewhere)?;
        executable.launch(&kernels.stream)?;
        device.synchronize()?;
        assert!(!overlapped.load(Ordering::SeqCst));
        assert_eq!(read(&value)?, 4);
        Ok(())
    });
}

#[test]
fn conditionals_that_the_host_decides_say_so() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for timers in [false, true] {
            let (left, value) = (kernels.value(6)?, kernels.value(0)?);
            let graph = Graph::new(device);
            let repeat = graph.while_nonzero(&left)?.named("loop")?;
            let add = kernels.bump(&repeat.body(), &value, 1)?.named("add")?;
            kernels.bump(&add, &left, -1)?;
            let executable = graph.instantiate_with(&InstantiateOptions::new().conditional_mode(mode))?;
            let options = gridloom::ProfileOptions::new().timer_kernels(timers);
            let profile = executable.profile_with(&kernels.stream, &options)?;
            check(&profile);
            assert_eq!((read(&value)?, row(&profile, "loop").passes), (6, Some(6)));
            let native = executable.report().conditionals[0].native;
            assert_eq!(row(&profile, "loop").on_host, !native, "{profile:#}");
        }
        Ok(())
    });
}
