//! Waits with a timeout.

use std::time::Duration;

use gridloom::prelude::*;

use super::endless::endless_loop;
use crate::support::{Gate, GraphKernels, for_each_device, refused};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn a_wait_with_a_timeout_ends_as_one_without_where_the_work_ends() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, event) = (kernels.value(0)?, device.event()?);
        for timeout in [Duration::MAX, Duration::from_secs(600)] {
            kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 1))?;
            kernels.stream.record(&event)?;
            kernels.stream.synchronize_timeout(timeout)?;
            kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 1))?;
            event.synchronize_timeout(timeout)?;
            device.synchronize_timeout(timeout)?;
        }
        assert_eq!(value.to_vec()?, [4]);
        Ok(())
    });
}

#[test]
fn nothing_to_wait_for_needs_no_time() {
    for_each_device(|device| {
        let (stream, event) = (device.stream()?, device.event()?);
        stream.synchronize_timeout(Duration::ZERO)?;
        event.synchronize_timeout(Duration::ZERO)?;
        device.synchronize_timeout(Duration::ZERO)
    });
}

#[test]
fn stream_event_and_device_say_that_the_time_is_over_and_the_work_goes_on() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, event, gate) = (kernels.value(0)?, device.event()?, Gate::closed());
        kernels.stream.callback(gate.waiter())?;
        kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 1))?;
        kernels.stream.record(&event)?;
        for timeout in [Duration::ZERO, SHORT] {
            refused(kernels.stream.synchronize_timeout(timeout), ErrorKind::Timeout, &["stream"]);
            refused(event.synchronize_timeout(timeout), ErrorKind::Timeout, &["event"]);
            refused(device.synchronize_timeout(timeout), ErrorKind::Timeout, &["device"]);
        }
        gate.open();
        kernels.stream.synchronize_timeout(Duration::MAX)?;
        assert_eq!(value.to_vec()?, [1]);
        Ok(())
    });
}

#[test]
fn a_failure_is_not_lost_to_a_wait_that_was_given_up() {
    for_each_device(|device| {
        let (stream, gate) = (device.stream()?, Gate::closed());
        stream.callback(|| panic!("as the test wants"))?;
        stream.callback(gate.waiter())?;
        refused(stream.synchronize_timeout(SHORT), ErrorKind::Timeout, &[]);
        gate.open();
        refused(stream.synchronize_timeout(Duration::MAX), ErrorKind::CallbackPanicked, &[]);
        stream.synchronize()
    });
}

#[test]
fn waits_for_an_endless_loop_can_be_given_up_and_the_loop_cancelled_then() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let passes = kernels.value(0)?;
        let executable = endless_loop(&kernels, &passes)?;
        executable.launch(&kernels.stream)?;
        refused(kernels.stream.synchronize_timeout(SHORT), ErrorKind::Timeout, &["stream"]);
        refused(device.synchronize_timeout(SHORT), ErrorKind::Timeout, &["device"]);
        // While somebody else waits without a timeout.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| kernels.stream.synchronize());
            let _ = kernels.stream.synchronize_timeout(SHORT);
            executable.cancel();
            let _ = waiting.join().expect("no panic");
        });
        kernels.stream.synchronize_timeout(Duration::MAX).or_else(|error| match error.kind() {
            ErrorKind::Cancelled => Ok(()),
            _ => Err(error),
        })
    });
}

#[test]
fn a_capturing_stream_and_a_callback_cannot_wait_with_a_timeout_either() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let capture = stream.capture()?;
        refused(stream.synchronize_timeout(SHORT), ErrorKind::InvalidState, &["captur"]);
        drop(capture);
        let (own, all) = (stream.clone(), device.clone());
        let (tell, hear) = std::sync::mpsc::channel();
        stream.callback(move || {
            let _ = tell.send([own.synchronize_timeout(SHORT), all.synchronize_timeout(SHORT)]);
        })?;
        stream.synchronize()?;
        for refusal in hear.recv().expect("the callback ran") {
            refused(refusal, ErrorKind::InvalidState, &["callback"]);
        }
        Ok(())
    });
}
