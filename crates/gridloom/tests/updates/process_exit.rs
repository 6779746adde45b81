//! A process that exits while launches run and updates wait.

use gridloom::prelude::*;

use crate::support::{for_each_device, in_own_process};

/// Leaves everything behind that a program can: launches in flight, changes that wait, handles
/// nobody drops.
fn leave_behind(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    for _ in 0..64 {
        let graph = Graph::new(device);
        let buffer = device.buffer_from(&[1; 1000])?;
        let node = graph.callback(std::thread::yield_now)?;
        let fill = node.memset(&buffer, 1i32)?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.node(&fill)?.set_memset(&buffer, 2i32)?;
        executable.node(&node)?.set_callback(|| ())?;
        executable.launch(&stream)?;
        std::mem::forget((executable, stream.clone()));
    }
    Ok(())
}

#[test]
fn a_process_may_return_from_main_with_work_in_flight() {
    if in_own_process(module_path!(), "a_process_may_return_from_main_with_work_in_flight") {
        for_each_device(leave_behind);
    }
}

#[test]
fn a_process_may_exit_with_work_in_flight() {
    if in_own_process(module_path!(), "a_process_may_exit_with_work_in_flight") {
        for_each_device(leave_behind);
        std::process::exit(0);
    }
}

#[test]
fn what_thread_locals_hold_may_be_dropped_with_their_thread() {
    use std::cell::RefCell;
    thread_local! {
        static HELD: RefCell<Vec<(Graph, Executable, Stream)>> = const { RefCell::new(Vec::new()) };
    }
    for_each_device(|device| {
        let outcome = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let (graph, stream) = (Graph::new(device), device.stream()?);
                let node = graph.callback(std::thread::yield_now)?;
                let executable = graph.instantiate()?;
                executable.launch(&stream)?;
                executable.node(&node)?.set_callback(|| ())?;
                HELD.with_borrow_mut(|held| held.push((graph, executable, stream)));
                Ok(())
            });
            thread.join().expect("no panic")
        });
        outcome.and_then(|()| device.synchronize())
    });
}
