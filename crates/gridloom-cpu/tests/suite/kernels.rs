//! Modules, kernels and their launches.

use std::sync::Arc;

use crate::common::*;
use gridloom_core::backend::Device;
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{ArgValue, Operation};
use gridloom_core::{ErrorKind, Graph, Stream};
use gridloom_cpu::CpuOptions;
use parking_lot::Mutex;

/// Runs one operation on a stream and waits for it.
fn run_one(device: &Arc<dyn Device>, operation: &Operation) -> gridloom_core::Result<()> {
    let stream = stream(device);
    stream.enqueue(operation.clone())?;
    stream.synchronize()
}

#[test]
fn a_kernel_runs_every_thread_of_every_block() {
    for threads in [1, 4] {
        let device = device(threads);
        let module = module(&device);
        // Small enough to stay on one thread, and large enough to be shared out.
        for n in [1, 1000, 300_000u32] {
            let data = buffer(&device, u64::from(n) * 4);
            let args = [pointer(Region::whole(data.clone())), value(n), value(3)];
            let add = launch(&module, "add", LaunchConfig::linear(n as usize), args);
            run_one(&device, &add).unwrap();
            run_one(&device, &add).unwrap();
            assert!(read_u32(&device, &data).iter().all(|&value| value == 6), "{n} on {threads}");
        }
    }
}

#[test]
fn text_that_is_no_ptx_is_an_error_with_the_place() {
    let error =
        device(1).load_ptx(".version 8.3\n.target sm_80\n.address_size 64\nnonsense here\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModule);
    assert!(error.message().contains("line 4"), "{error}");
    assert!(error.log().unwrap().contains("nonsense here"), "{error}");
}

#[test]
fn an_unknown_kernel_is_an_error_that_lists_those_there_are() {
    let module = module(&device(1));
    let error = module.clone().kernel("subtract").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for name in module.kernel_names() {
        assert!(error.message().contains(&name), "{error}");
    }
}

#[test]
fn an_instruction_that_is_not_known_fails_the_look_up_of_its_kernel_only() {
    let text = ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry fine() { ret; }\n\
                .visible .entry strange() { .reg .b32 %r<3>;\n  unheard.of.u32 %r1, %r2;\n  ret;\n}\n";
    let module = device(1).load_ptx(text).unwrap();
    module.clone().kernel("fine").unwrap();
    let error = module.kernel("strange").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.message().contains("unheard.of.u32") && error.message().contains("line 6"), "{error}");
}

#[test]
fn a_module_variable_is_memory_that_kernels_and_copies_share() {
    let device = device(1);
    let module = module(&device);
    let counter = module.clone().global("counter").unwrap();
    assert_eq!(read_u32(&device, &counter), [5]);
    run_one(&device, &launch(&module, "bump", LaunchConfig::one(), [value(7)])).unwrap();
    assert_eq!(read_u32(&device, &counter), [12]);
    let factors = module.clone().global("factors").unwrap();
    assert_eq!(read_u32(&device, &factors), [2, 3, 4]);
    drop(module.clone());
    let error = module.global("numbers").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("counter") && error.message().contains("factors"), "{error}");
}

#[test]
fn a_kernel_keeps_the_variables_of_a_dropped_module() {
    let device = device(1);
    let module = module(&device);
    let counter = module.clone().global("counter").unwrap();
    let bump = launch(&module, "bump", LaunchConfig::one(), [value(1)]);
    drop(module);
    run_one(&device, &bump).unwrap();
    assert_eq!(read_u32(&device, &counter), [6]);
}

#[test]
fn a_kernel_says_what_it_allows_of_a_launch() {
    let module = module(&device(1));
    let kernel = module.kernel("exact").unwrap();
    let limits = kernel.limits();
    assert_eq!(limits.required_block, Some(Dim3::new(32, 1, 1)));
    assert_eq!(limits.max_threads, Some(64));
    assert_eq!(limits.static_shared, 256);
}

#[test]
fn a_fault_fails_its_launch_with_kernel_block_and_thread_and_leaves_the_stream_usable() {
    for threads in [1, 3] {
        let device = device(threads);
        let (module, stream) = (module(&device), stream(&device));
        let number = number(&device, 0);
        stream.enqueue(launch(&module, "stop", LaunchConfig::new(200, 64), [value(150), value(33)])).unwrap();
        stream.enqueue(increment(&module, &number)).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KernelFault);
        for part in ["stop", "(150, 0, 0)", "(33, 0, 0)", "line "] {
            assert!(error.message().contains(part), "{error}");
        }
        stream.synchronize().expect("a failure is reported once");
        stream.enqueue(increment(&module, &number)).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read_u32(&device, &number), [2]);
    }
}

#[test]
fn a_step_limit_ends_a_kernel_that_does_not() {
    let device = device_with(CpuOptions::new().step_limit(10_000).threads(2));
    let module = module(&device);
    let error = run_one(&device, &launch(&module, "forever", LaunchConfig::new(4, 32), [])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KernelFault);
    assert!(error.message().contains("10000"), "{error}");
}

#[test]
fn checked_mode_refuses_an_access_outside_every_allocation() {
    let device = device_with(CpuOptions::new().checked(true).threads(1));
    let (module, data) = (module(&device), buffer(&device, 400));
    let add = |n: u32| {
        launch(
            &module,
            "add",
            LaunchConfig::linear(256),
            [pointer(Region::whole(data.clone())), value(n), value(1)],
        )
    };
    run_one(&device, &add(100)).unwrap();
    let error = run_one(&device, &add(101)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KernelFault);
    assert!(error.message().contains("(100, 0, 0)"), "{error}");
    let freed = buffer(&device, 64).address();
    let add = launch(
        &module,
        "add",
        LaunchConfig::one(),
        [ArgValue::Bytes(freed.to_ne_bytes().as_slice().into()), value(1), value(1)],
    );
    assert_eq!(run_one(&device, &add).unwrap_err().kind(), ErrorKind::KernelFault);
}

#[test]
fn checked_mode_keeps_alloc_nodes_apart() {
    let device = device_with(CpuOptions::new().checked(true).threads(1));
    let module = module(&device);
    let graph = Graph::new(&device);
    let first = graph.add(&[], alloc(256)).unwrap();
    let second = graph.add(&[&first], alloc(256)).unwrap();
    let args = [pointer(memory_of(&first)), value(65), value(1)];
    let add = graph.add(&[&second], launch(&module, "add", LaunchConfig::new(1, 65), args)).unwrap();
    let add = add.named("overrun").unwrap();
    let freed = graph.add(&[&add], free(&first)).unwrap();
    graph.add(&[&freed], free(&second)).unwrap();
    let error = run(&graph).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::KernelFault, Some("overrun")));
}

#[test]
fn clusters_are_refused_where_they_would_run() {
    let device = device(1);
    let module = module(&device);
    let clustered = launch(&module, "bump", LaunchConfig::new(4, 1).cluster(2), [value(1)]);
    assert_eq!(stream(&device).enqueue(clustered.clone()).unwrap_err().kind(), ErrorKind::NotSupported);
    let graph = Graph::new(&device);
    graph.add(&[], clustered).unwrap().named("clustered").unwrap();
    let error = graph.instantiate().unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::NotSupported, Some("clustered")));
}

#[test]
fn blocks_of_a_cooperative_launch_may_wait_for_each_other() {
    // Every block adds 1 and waits until all have.
    let text = ".version 8.3\n.target sm_80\n.address_size 64\n\
        .visible .entry meet(.param .u64 count) {\n\
        .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<2>;\n\
        ld.param.u64 %rd1, [count];\n\
        atom.global.add.u32 %r1, [%rd1], 1;\n\
        mov.u32 %r2, %nctaid.x;\n\
        again:\n\
        ld.volatile.global.u32 %r3, [%rd1];\n\
        setp.lt.u32 %p, %r3, %r2;\n\
        @%p bra again;\n\
        ret;\n}\n";
    let device = device(2);
    let module = device.load_ptx(text).unwrap();
    let count = number(&device, 0);
    let args = [pointer(Region::whole(count.clone()))];
    run_one(&device, &launch(&module, "meet", LaunchConfig::new(40, 1).cooperative(), args)).unwrap();
    assert_eq!(read_u32(&device, &count), [40]);
}

#[test]
fn what_a_kernel_prints_goes_to_the_sink() {
    let text = ".version 8.3\n.target sm_80\n.address_size 64\n\
        .extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);\n\
        .global .align 1 .b8 text[10] = {110, 117, 109, 98, 101, 114, 32, 37, 100, 0};\n\
        .visible .entry say(.param .u32 value) {\n\
        .local .align 8 .b8 stack[8]; .reg .b32 %r<3>; .reg .b64 %rd<5>;\n\
        ld.param.u32 %r1, [value];\n\
        mov.u64 %rd1, stack; cvta.local.u64 %rd2, %rd1;\n\
        st.local.u32 [%rd1], %r1;\n\
        mov.u64 %rd3, text; cvta.global.u64 %rd4, %rd3;\n\
        { .param .b64 a; .param .b64 b; .param .b32 c;\n\
        st.param.b64 [a], %rd4; st.param.b64 [b], %rd2;\n\
        call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }\n\
        ret;\n}\n";
    let printed = Arc::new(Mutex::new(Vec::new()));
    let sink = printed.clone();
    let options = CpuOptions::new().print(move |bytes: &[u8]| sink.lock().extend_from_slice(bytes));
    let device = device_with(options);
    let module = device.load_ptx(text).unwrap();
    run_one(&device, &launch(&module, "say", LaunchConfig::one(), [value(42)])).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.lock()), "number 42");
}

#[test]
fn machine_code_and_no_threads_are_refused() {
    let device = device(1);
    assert_eq!(device.load_binary(&[1, 2, 3]).unwrap_err().kind(), ErrorKind::NotSupported);
    let none = gridloom_cpu::CpuDevice::new(CpuOptions::new().threads(0));
    assert_eq!(none.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!("jti".parse::<gridloom_cpu::Engine>().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn objects_of_another_device_are_refused() {
    let (here, there) = (device(1), device(1));
    let foreign = there.allocate(64, MemoryKind::Device).unwrap();
    let stream = Stream::new(&here).unwrap();
    let error = stream.enqueue(fill(Region::whole(foreign), 0, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongDevice);
}
