//! Nothing of the driver's stays behind, whether a capture succeeds or fails.

use crate::raw::*;
use crate::simulator::world;
use gridloom_core::{Error, ErrorKind};
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::release;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What exists: streams, graphs, nodes, executables, captures, memory.
fn alive() -> [usize; 6] {
    release::flush();
    world(|world| {
        [
            world.streams.len(),
            world.graphs.len(),
            world.nodes.len(),
            world.executables.len(),
            world.captures.len(),
            world.memory.len(),
        ]
    })
}

#[test]
fn streams_and_graphs_of_captures_are_gone_with_the_last_node() {
    on_simulator(|gpu| {
        let (buffer, before) = (gpu.words(&[0; 4]), alive());
        for mode in [CaptureMode::ThreadLocal.into(), CaptureMode::ThreadLocal.opaque()] {
            let (graph, nodes) = captured(gpu, mode, |raw| unsafe {
                let mut scratch = 0;
                add_words(gpu, raw, function(&gpu.kernel("add")), &buffer, 1);
                driver(gpu).cu_mem_alloc_async(&mut scratch, 16, raw.raw()).unwrap();
                driver(gpu).cu_mem_free_async(scratch, raw.raw()).unwrap();
            });
            gpu.run(&graph);
            drop((graph, nodes));
            gpu.stream.synchronize().unwrap();
            assert_eq!(alive(), before);
        }
    });
}

#[test]
fn a_capture_that_fails_leaves_nothing() {
    on_simulator(|gpu| {
        let (buffer, before) = (gpu.words(&[0; 4]), alive());
        let capture = gpu.stream.capture().unwrap();
        for way in 0..4 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                foreign(&capture, CaptureMode::ThreadLocal, |raw| {
                    fill_words(gpu, raw, &buffer, 1);
                    match way {
                        0 => return Err(Error::new(ErrorKind::Io, "no")),
                        1 => panic!("no"),
                        2 => {
                            let mut address = 0;
                            let _ = unsafe { driver(gpu).cu_mem_alloc(&mut address, 8) };
                        }
                        _ => {
                            let _ = unsafe { driver(gpu).cu_stream_synchronize(raw.raw()) };
                        }
                    }
                    Ok(())
                })
            }));
            assert!(outcome.is_err() || outcome.is_ok_and(|outcome| outcome.is_err()), "{way}");
            assert_eq!(alive(), before, "{way}");
        }
    });
}
