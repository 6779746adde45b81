//! Nothing of the driver's stays behind: every object that was made is destroyed, on a simulated
//! driver that counts them.
//!
//! One test in a process of its own, so that no other makes objects meanwhile.

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::EventOptions;
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::memory::Region;
use gridloom_core::op::{CallbackOp, ConditionalForm, Operation, Test};
use gridloom_core::{Event, Executable};
use gridloom_cuda::release;
use simulator::{Alive, alive, violations};

#[test]
fn after_the_last_holder_lets_go_nothing_of_the_drivers_is_left() {
    for mode in [ConditionalMode::Auto, ConditionalMode::Hosted] {
        let gpu = Gpu::new(simulator::device(None));
        let (buffer, other, log) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]), gpu.words(&[0; 64]));
        let left = gpu.words(&[3]);
        let event = Event::new(&gpu.backend, EventOptions::default()).unwrap();
        let graph = gpu.graph();
        let again = graph.condition(Some(1));
        let test = Test::Condition(again.key());
        let (node, bodies) = conditional(&graph, &[], ConditionalForm::While, test, 1);
        bodies[0].add(&[], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
        let bytes = Region::from_bytes(vec![1u8; 16]);
        let copied = graph.add(&[&node], copy(&whole(&buffer), &bytes)).unwrap();
        graph.add(&[&copied], Operation::EventRecord(event.backend().clone())).unwrap();
        graph.add(&[&copied], Operation::Callback(CallbackOp::closure(|| {}))).unwrap();
        let added = graph.add(&[&copied], gpu.append(&log, 1)).unwrap();
        let options = InstantiateOptions { conditional_mode: mode, ..Default::default() };
        let executables: Vec<Executable> =
            (0..3).map(|_| graph.instantiate_with(&options).unwrap()).collect();
        for executable in &executables {
            executable.launch(&gpu.stream).unwrap();
            let bytes = Region::from_bytes(vec![2u8; 16]);
            executable.node(&copied).unwrap().set_operation(copy(&whole(&buffer), &bytes)).unwrap();
            executable.node(&added).unwrap().set_operation(gpu.append(&log, 2)).unwrap();
            // In place or compiled anew: the old and the new both have to go.
            executable.node(&copied).unwrap().set_enabled(false).unwrap();
            executable.node(&copied).unwrap().set_operation(copy(&whole(&other), &bytes)).unwrap();
            executable.launch(&gpu.stream).unwrap();
        }
        assert_ne!(alive(), Alive::default());
        drop((executables, graph, again, node, bodies, copied, added));
        drop((buffer, other, log, left, event, gpu));
        // What launches kept is let go of by the release thread, without a further call.
        while alive() != Alive::default() {
            release::flush();
            std::thread::yield_now();
        }
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}
