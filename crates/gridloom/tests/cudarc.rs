//! Sharing a GPU with cudarc. Without a GPU one line says so.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use cudarc::driver::{CudaContext, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gridloom::interop::{self, cudarc as shared};
use gridloom::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A GPU as both libraries see it, for one test at a time: a driver that captures for one refuses
/// others to wait for the device. `None`, with a line, without one. `GRIDLOOM_REQUIRE_CUDA=1` makes
/// that a failure.
fn gpu() -> Option<(Device, Arc<CudaContext>, MutexGuard<'static, ()>)> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    match Device::cuda(0) {
        Ok(device) => {
            let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            let context = shared::to_context(&device).unwrap();
            Some((device, context, alone))
        }
        Err(error) => {
            let required = std::env::var_os("GRIDLOOM_REQUIRE_CUDA").is_some_and(|value| value == "1");
            assert!(!required, "a GPU is required: {error}");
            eprintln!("skipped: {}", error.message());
            None
        }
    }
}

#[test]
fn both_libraries_use_one_context() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let again = shared::device(&context)?;
    assert_eq!(again.ordinal(), device.ordinal());
    assert_eq!(interop::context_to_raw(&again)?.addr(), context.cu_ctx().addr());
    Ok(())
}

#[test]
fn a_graph_runs_on_a_stream_and_in_a_slice_of_cudarc() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let theirs = context.new_stream().unwrap();
    let slice = Arc::new(theirs.clone_htod(&[1u32, 2, 3, 4]).unwrap());
    let buffer = shared::buffer(&device, slice.clone())?;
    assert_eq!(buffer.to_vec()?, [1, 2, 3, 4]);
    let graph = Graph::new(&device);
    graph.memset(&buffer.slice(2..)?, 9u32)?;
    // SAFETY: nobody captures the stream.
    let stream = unsafe { shared::stream(&device, &theirs) }?;
    graph.instantiate()?.launch(&stream)?;
    // The same stream: what cudarc does next comes after the graph.
    assert_eq!(theirs.clone_dtoh(&*slice).unwrap(), [1, 2, 9, 9]);
    Ok(())
}

#[test]
fn the_memory_of_a_slice_outlives_the_launch_that_uses_it() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let slice = Arc::new(context.default_stream().clone_htod(&[7u32; 1024]).unwrap());
    let watch = Arc::downgrade(&slice);
    let (stream, out) = (device.stream()?, device.alloc::<u32>(1024)?);
    let buffer = shared::buffer(&device, slice)?;
    stream.memcpy(&out, &buffer)?;
    drop(buffer);
    stream.synchronize()?;
    while watch.strong_count() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(out.to_vec()?, [7; 1024]);
    Ok(())
}

#[test]
fn a_function_of_cudarc_is_a_kernel_of_a_graph() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let module = context.load_module(Ptx::from_src(gridloom::demo_kernels::SWITCH)).unwrap();
    let function = module.load_function("negate").unwrap();
    // SAFETY: it was loaded into the context of the device.
    let kernel = unsafe { shared::kernel(&device, &function) }?;
    drop((module, function));
    // SAFETY: it negates the one integer it is given the address of.
    let kernel = unsafe { kernel.typed::<(PtrMut<i32>,)>() }?;
    let (stream, value) = (device.stream()?, device.buffer_from(&[5i32])?);
    let graph = Graph::new(&device);
    graph.launch(&kernel, LaunchConfig::new(1u32, 1u32), (&value,))?;
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(value.to_vec()?, [-5]);
    Ok(())
}

#[test]
fn a_buffer_lent_to_cudarc_comes_back_written() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let (stream, buffer) = (device.stream()?, device.buffer_from(&[0u32; 3])?);
    // SAFETY: used while `stream` lives.
    let theirs = unsafe { shared::to_stream(&stream, &context) }?;
    // SAFETY: used on this stream only, and not moved.
    let mut slice = unsafe { shared::to_slice(&buffer, &theirs) }?;
    theirs.memcpy_htod(&[1u32, 2, 3], &mut *slice).unwrap();
    drop(slice);
    assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    Ok(())
}

#[test]
fn a_launch_of_cudarc_is_captured_launched_again_and_pointed_at_another_buffer() -> Result<()> {
    let Some((device, context, _alone)) = gpu() else { return Ok(()) };
    let module = context.load_module(Ptx::from_src(gridloom::demo_kernels::SWITCH)).unwrap();
    let function = module.load_function("double_it").unwrap();
    let (stream, a, b) = (device.stream()?, device.buffer_from(&[5i32])?, device.buffer_from(&[7i32])?);
    let mut nodes = Vec::new();
    let graph = stream.capture_scope(|capture| {
        let mode = CaptureMode::ThreadLocal.keeping(Arc::new(function.clone()));
        // SAFETY: the function keeps its module loaded, and touches the one integer it is given the
        // address of.
        nodes = unsafe {
            capture.foreign(mode, |raw| {
                let theirs = shared::foreign_stream(raw, &context)?;
                let address = a.address()?;
                let config = cudarc::driver::LaunchConfig {
                    grid_dim: (1, 1, 1),
                    block_dim: (1, 1, 1),
                    shared_mem_bytes: 0,
                };
                for _ in 0..2 {
                    theirs.launch_builder(&function).arg(&address).launch(config).unwrap();
                }
                Ok(())
            })?
        };
        Ok(())
    })?;
    drop((module, function));
    let exec = graph.instantiate()?;
    exec.launch(&stream)?;
    assert_eq!(a.to_vec()?, [20]);
    if nodes[0].kind()? == NodeKind::Opaque {
        // A driver before 12.4 tells no parameters.
        return Ok(());
    }
    assert_eq!(nodes.len(), 2);
    // SAFETY: both are one integer.
    assert_eq!(unsafe { exec.replace_memory(&a, &b)? }, 2);
    exec.launch(&stream)?;
    exec.launch(&stream)?;
    assert_eq!((a.to_vec()?, b.to_vec()?), (vec![20], vec![112]));
    // SAFETY: as above.
    unsafe { nodes[0].set_arg_unchecked(0, gridloom::kernel::Arg::memory(&b)?)? };
    graph.instantiate()?.launch(&stream)?;
    assert_eq!((a.to_vec()?, b.to_vec()?), (vec![40], vec![224]));
    Ok(())
}
