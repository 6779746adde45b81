//! Objects that go in any order and at any moment: in their own callbacks, while work is in flight,
//! and at the end of a thread.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::ends;
use crate::support::{GraphKernels, for_each_device, for_each_engine};

/// Calls `visit` with every order of `0..count`.
fn orders(count: usize, visit: &mut impl FnMut(&[usize])) {
    fn go(left: &mut Vec<usize>, taken: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
        if left.is_empty() {
            return visit(taken);
        }
        for place in 0..left.len() {
            taken.push(left.remove(place));
            go(left, taken, visit);
            left.insert(place, taken.pop().expect("pushed above"));
        }
    }
    go(&mut (0..count).collect(), &mut Vec::new(), visit);
}

#[test]
fn what_a_launch_in_flight_needs_may_go_in_any_order() {
    for_each_engine(|options| {
        let ran = Arc::new(AtomicUsize::new(0));
        let mut launched = 0;
        let launch = |order: &[usize]| -> Result<()> {
            let device = Device::cpu_with(options.clone())?;
            let kernels = GraphKernels::new(&device)?;
            let (x, y) = (kernels.buffer(&[1; 50])?, kernels.buffer(&[0; 50])?);
            let graph = Graph::new(&device);
            let memory = graph.alloc::<i32>(50)?;
            let counter = ran.clone();
            let node = memory.memcpy(&memory, &x)?.launch(
                &kernels.increase,
                LaunchConfig::linear(50),
                (&memory, 50, 4),
            )?;
            let last = node.memcpy(&y, &memory)?.callback(move || {
                counter.fetch_add(1, Ordering::SeqCst);
            })?;
            let executable = graph.instantiate()?;
            executable.launch(&kernels.stream)?;
            let wait = device.stream()?;
            let done = device.event()?;
            kernels.stream.record(&done)?;
            let mut parts: Vec<Option<Box<dyn Any>>> = vec![
                Some(Box::new(device)),
                Some(Box::new(kernels)),
                Some(Box::new((graph, memory, node, last))),
                Some(Box::new(executable)),
                Some(Box::new((x, y))),
            ];
            order.iter().for_each(|&part| drop(parts[part].take()));
            wait.wait(&done)?;
            wait.synchronize()
        };
        let mut outcome = Ok(());
        orders(5, &mut |order| {
            launched += 1;
            if outcome.is_ok() {
                outcome = launch(order);
            }
        });
        outcome?;
        assert_eq!(ran.load(Ordering::SeqCst), launched);
        Ok(())
    });
}

#[test]
fn an_executable_may_be_dropped_by_its_own_callback() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        for _ in 0..20 {
            let place: Arc<Mutex<Option<Executable>>> = Arc::default();
            let inside = place.clone();
            let graph = Graph::new(device);
            let drops = graph.callback(move || drop(inside.lock().take()))?;
            kernels.bump(&drops, &value, 1)?;
            let mut guard = place.lock();
            *guard = Some(graph.instantiate()?);
            let executable = guard.as_ref().expect("put there above");
            executable.launch(&kernels.stream)?;
            drop(guard);
            let stream = kernels.stream.clone();
            ends("an executable that goes in its own callback", move || stream.synchronize())?;
        }
        assert_eq!(value.to_vec()?, [20]);
        Ok(())
    });
}

/// Does something when it is dropped.
struct AtTheEnd(Box<dyn FnOnce()>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        std::mem::replace(&mut self.0, Box::new(|| ()))();
    }
}

thread_local!(static LATE: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) });

#[test]
fn everything_works_in_the_destructors_of_a_thread_that_ends() {
    for_each_device(|device| {
        let kernels = Arc::new(GraphKernels::new(device)?);
        for is_registered_first in [true, false] {
            let value = kernels.value(0)?;
            let (inside, target) = (kernels.clone(), value.clone());
            let work = move || {
                let graph = Graph::new(&inside.device);
                let mut last = graph.empty().unwrap();
                for _ in 0..20 {
                    last = inside.bump(&last, &target, 1).unwrap();
                }
                inside.bump(&last.repeat(2).unwrap().body(), &target, 10).unwrap();
                last.callback(|| ()).unwrap();
                let stream = inside.device.stream().unwrap();
                drop(stream.capture().unwrap());
                let executable = graph.instantiate().unwrap();
                executable.launch(&stream).unwrap();
                stream.synchronize().unwrap();
            };
            let device = device.clone();
            let thread = move || {
                let at_the_end = AtTheEnd(Box::new(work));
                if is_registered_first {
                    LATE.with_borrow_mut(|late| late.push(at_the_end));
                    Graph::new(&device).empty().unwrap();
                } else {
                    Graph::new(&device).empty().unwrap();
                    LATE.with_borrow_mut(|late| late.push(at_the_end));
                }
            };
            ends("a thread whose destructors build graphs", move || std::thread::spawn(thread).join())
                .expect("no panic");
            assert_eq!(value.to_vec()?, [40]);
        }
        Ok(())
    });
}
