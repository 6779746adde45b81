//! Failures that several threads could report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gridloom::prelude::*;

use super::ends;
use crate::support::{for_each_mode, is_cpu};

#[test]
fn a_failure_is_told_to_one_of_the_threads_that_wait_and_never_lost() {
    for_each_mode(|device, conditional_mode| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        // The host drives the loop in one of the modes.
        graph.repeat(1)?.body().callback(|| panic!("as the test wants"))?;
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        let executable = graph.instantiate_with(&options)?;
        let rounds = if is_cpu(device) { 200 } else { 10 };
        ends("waiting from two threads", move || {
            for _ in 0..rounds {
                let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
                let waiting = (stream.clone(), stop.clone(), told.clone());
                let beside = std::thread::spawn(move || {
                    while !waiting.1.load(Ordering::SeqCst) {
                        waiting.2.fetch_add(u32::from(waiting.0.synchronize().is_err()), Ordering::SeqCst);
                    }
                });
                executable.launch(&stream)?;
                told.fetch_add(u32::from(stream.synchronize().is_err()), Ordering::SeqCst);
                stop.store(true, Ordering::SeqCst);
                beside.join().expect("no panic");
                assert_eq!(told.load(Ordering::SeqCst), 1);
            }
            Ok(())
        })
    });
}
