//! Sharing a GPU with cudarc. Without a GPU one line says so.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use cudarc::driver::CudaContext;
use cudarc::nvrtc::Ptx;
use gridloom::interop::{self, cudarc as shared};
use gridloom::prelude::*;
use std::sync::Arc;

/// A GPU as both libraries see it, or `None` with a line. `GRIDLOOM_REQUIRE_CUDA=1` makes that a failure.
fn gpu() -> Option<(Device, Arc<CudaContext>)> {
    match Device::cuda(0) {
        Ok(device) => {
            let context = shared::to_context(&device).unwrap();
            Some((device, context))
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
    let Some((device, context)) = gpu() else { return Ok(()) };
    let again = shared::device(&context)?;
    assert_eq!(again.ordinal(), device.ordinal());
    assert_eq!(interop::context_to_raw(&again)?.addr(), context.cu_ctx().addr());
    Ok(())
}

#[test]
fn a_graph_runs_on_a_stream_and_in_a_slice_of_cudarc() -> Result<()> {
    let Some((device, context)) = gpu() else { return Ok(()) };
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
    let Some((device, context)) = gpu() else { return Ok(()) };
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
    let Some((device, context)) = gpu() else { return Ok(()) };
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
    let Some((device, context)) = gpu() else { return Ok(()) };
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
