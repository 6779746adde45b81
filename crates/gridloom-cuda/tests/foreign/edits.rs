//! Captured nodes are edited like any others, and pointed at other memory.

use super::common::*;
use super::raw::*;
use gridloom_core::ErrorKind;
use gridloom_core::backend::EventOptions;
use gridloom_core::op::{ArgValue, Launch, Operation};
use gridloom_cuda::foreign::CaptureMode;
use gridloom_cuda::interop;
use gridloom_cuda::release;
use std::sync::Arc;

#[test]
fn every_use_of_one_buffer_is_pointed_at_another_in_the_definition_or_in_one_executable() {
    for_each_gpu(|gpu| {
        let (add, move_words) = (gpu.kernel("add"), gpu.kernel("move_words"));
        let (to, a, b) = (gpu.words(&[0; 4]), gpu.words(&[1; 4]), gpu.words(&[2; 4]));
        let last = gpu.words(&[0]);
        let (graph, _) = plain(gpu, |raw| {
            add_words(gpu, raw, function(&add), &a, 10);
            launch(gpu, raw.raw(), function(&move_words), 4, &[&move_argument(&to, &a)]);
            copy_bytes(gpu, raw, last.address(), a.address() + 12, 4);
        });
        let executable = graph.instantiate().unwrap();
        assert_eq!(unsafe { executable.replace_region(&whole(&a), &whole(&b)) }.unwrap(), 3);
        executable.launch(&gpu.stream).unwrap();
        assert_eq!([&to, &a, &b].map(|buffer| gpu.read(buffer)[3]), [12, 1, 12]);
        assert_eq!(gpu.read(&last), [12]);
        gpu.run(&graph);
        assert_eq!([&to, &a].map(|buffer| gpu.read(buffer)[0]), [11, 11], "the definition is as it was");
        assert_eq!(unsafe { graph.replace_region(&whole(&a), &whole(&b)) }.unwrap(), 3);
        gpu.run(&graph);
        assert_eq!([&to, &a, &b].map(|buffer| gpu.read(buffer)[0]), [22, 11, 22]);
        assert_eq!(unsafe { graph.replace_region(&whole(&a), &whole(&b)) }.unwrap(), 0);
    });
}

#[test]
fn what_is_replaced_is_let_go_and_what_replaces_it_is_kept() {
    for_each_gpu(|gpu| {
        let move_words = gpu.kernel("move_words");
        let (to, a, b) = (gpu.words(&[0; 4]), gpu.words(&[1; 4]), gpu.words(&[2; 4]));
        let (old, new) = (Arc::downgrade(&a), Arc::downgrade(&b));
        let (graph, nodes) = plain(gpu, |raw| {
            launch(gpu, raw.raw(), function(&move_words), 4, &[&move_argument(&to, &a)]);
        });
        unsafe { graph.replace_region(&whole(&a), &whole(&b)) }.unwrap();
        drop((a, b));
        while old.strong_count() > 0 {
            release::flush();
            std::thread::yield_now();
        }
        assert!(new.strong_count() > 0);
        gpu.run(&graph);
        assert_eq!(gpu.read(&to), [2; 4]);
        drop((graph, nodes));
    });
}

#[test]
fn memory_that_is_not_gridlooms_is_found_by_its_address() {
    for_each_gpu(|gpu| {
        let move_words = gpu.kernel("move_words");
        let (to, ours) = (gpu.words(&[0; 4]), gpu.words(&[7; 4]));
        let mut address = 0;
        unsafe { driver(gpu).cu_mem_alloc(&mut address, 16) }.unwrap();
        let theirs = unsafe { interop::memory_from_raw(&gpu.device, address, 16, None) }.unwrap();
        let (graph, nodes) = plain(gpu, |raw| {
            launch(gpu, raw.raw(), function(&move_words), 4, &[&move_argument(&to, &theirs)]);
        });
        assert_eq!(kernel_of(&nodes[0]).args().pointers.len(), 1, "nothing of Gridloom's is there");
        assert_eq!(unsafe { graph.replace_region(&whole(&theirs), &whole(&ours)) }.unwrap(), 1);
        unsafe { driver(gpu).cu_mem_free(address) }.unwrap();
        gpu.run(&graph);
        assert_eq!(gpu.read(&to), [7; 4]);
    });
}

#[test]
fn a_replacement_that_does_not_fit_changes_nothing() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let (to, a, short) = (gpu.words(&[0; 4]), gpu.words(&[1; 4]), gpu.words(&[2; 2]));
        let (graph, _) = plain(gpu, |raw| {
            add_words(gpu, raw, function(&add), &a, 1);
            copy_bytes(gpu, raw, to.address(), a.address(), 16);
        });
        let before = graph.definition().to_json(graph.key());
        let error = unsafe { graph.replace_region(&whole(&a), &whole(&short)) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(graph.definition().to_json(graph.key()), before);
    });
}

#[test]
fn one_argument_or_a_part_of_one_is_set_by_its_position() {
    for_each_gpu(|gpu| {
        let (add, move_words) = (gpu.kernel("add"), gpu.kernel("move_words"));
        let (to, a, b) = (gpu.words(&[0; 4]), gpu.words(&[1; 4]), gpu.words(&[2; 4]));
        let (graph, nodes) = plain(gpu, |raw| {
            launch(gpu, raw.raw(), function(&move_words), 4, &[&move_argument(&to, &a)]);
            add_words(gpu, raw, function(&add), &to, 1);
        });
        let changed = |node, index, offset, value: ArgValue| {
            let op: Launch = kernel_of(node);
            let mut args = op.args().clone();
            args.set("kernel", index, offset, value)
                .map(|()| Operation::Kernel(Launch::new(unsafe { op.with_args(args) })))
        };
        let executable = graph.instantiate().unwrap();
        executable.node(&nodes[0]).unwrap().set_operation(changed(&nodes[0], 0, 8, at(&b)).unwrap()).unwrap();
        nodes[1].set_operation(changed(&nodes[1], 1, 0, int(100)).unwrap()).unwrap();
        executable.launch(&gpu.stream).unwrap();
        assert_eq!(gpu.read(&to), [3; 4]);
        gpu.run(&graph);
        assert_eq!(gpu.read(&to), [101; 4]);
        for (index, offset) in [(0, 17), (1, 0)] {
            let error = changed(&nodes[0], index, offset, ulong(0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ParameterMismatch);
        }
    });
}

#[test]
fn an_executable_takes_over_what_was_captured_anew() {
    for_each_gpu(|gpu| {
        let add = gpu.kernel("add");
        let (a, b) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
        let capture = |buffer, value| {
            let (graph, _) = plain(gpu, |raw| {
                fill_words(gpu, raw, buffer, value);
                add_words(gpu, raw, function(&add), buffer, 1);
            });
            graph
        };
        let executable = capture(&a, 1).instantiate().unwrap();
        executable.update(&capture(&b, 5)).unwrap();
        executable.launch(&gpu.stream).unwrap();
        assert_eq!([&a, &b].map(|buffer| gpu.read(buffer)), [[0; 4], [6; 4]]);
    });
}

#[test]
fn the_owner_goes_with_the_arguments_it_was_for() {
    for_each_gpu(|gpu| {
        let event = gpu.backend.create_event(EventOptions::default()).unwrap();
        let owner = Arc::new(5u8);
        let (buffer, add) = (gpu.words(&[1; 4]), gpu.kernel("add"));
        let (graph, nodes) = captured(gpu, CaptureMode::Relaxed.keeping(owner.clone()), |raw| {
            add_words(gpu, raw, function(&add), &buffer, 1);
        });
        assert_eq!(Arc::strong_count(&owner), 2);
        nodes[0].set_operation(gpu.add(&buffer, 3)).unwrap();
        assert_eq!(Arc::strong_count(&owner), 1);
        drop((graph, event));
    });
}
