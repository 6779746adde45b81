//! Typed handles to raw ones and back, on the CPU, which has none, and on a simulated CUDA driver.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the simulated driver's handles are numbers that each test makes up"
)]

#[path = "../../gridloom-cuda/tests/simulator/mod.rs"]
mod simulator;

use gridloom::interop::*;
use gridloom::prelude::*;
use std::sync::Arc;

fn gpu() -> Device {
    Device::from_backend(simulator::device(None))
}

#[test]
fn the_cpu_has_no_handles_of_the_driver() -> Result<()> {
    let device = Device::cpu()?;
    let kernels = device.load_ptx(gridloom::demo_kernels::HEAT)?;
    let null = std::ptr::null_mut();
    for error in [
        context_to_raw(&device).unwrap_err(),
        stream_to_raw(&device.stream()?).unwrap_err(),
        event_to_raw(&device.event()?).unwrap_err(),
        buffer_to_raw(&device.alloc::<u32>(1)?).unwrap_err(),
        kernel_to_raw(&kernels.untyped_kernel("heat_step")?).unwrap_err(),
        executable_to_raw(&Graph::new(&device).instantiate()?).unwrap_err(),
        unsafe { stream_from_raw(&device, null, None) }.unwrap_err(),
        unsafe { buffer_from_raw::<u32>(&device, 16, 1, None) }.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    }
    Ok(())
}

#[test]
fn a_stream_comes_back_with_the_capture_it_takes_part_in() -> Result<()> {
    let device = gpu();
    let stream = device.stream()?;
    let raw = stream_to_raw(&stream)?;
    let capture = stream.capture()?;
    let back = unsafe { stream_from_raw(&device, raw, None) }?;
    assert!(back == stream && back.is_capturing());
    capture.end()?;
    Ok(())
}

#[test]
fn an_event_comes_back_with_the_capture_it_was_recorded_in() -> Result<()> {
    let device = gpu();
    let (stream, other) = (device.stream()?, device.stream()?);
    let event = device.event()?;
    let raw = event_to_raw(&event)?;
    let capture = stream.capture()?;
    stream.record(&event)?;
    let back = unsafe { event_from_raw(&device, raw, EventOptions::default(), None) }?;
    assert!(back == event);
    other.wait(&back)?;
    assert!(other.is_capturing());
    drop(capture);
    Ok(())
}

#[test]
fn a_buffer_comes_back_as_itself_and_a_part_of_it_as_another() -> Result<()> {
    let device = gpu();
    let buffer = device.buffer_from(&[1u32, 2, 3, 4])?;
    let address = buffer_to_raw(&buffer)?;
    let back = unsafe { buffer_from_raw::<u32>(&device, address, 4, None) }?;
    assert!(back == buffer);
    let part = unsafe { buffer_from_raw::<u32>(&device, address + 8, 2, None) }?;
    buffer.close();
    assert!(back.is_closed());
    assert_eq!(part.to_vec()?, [3, 4]);
    Ok(())
}

#[test]
fn an_address_that_is_not_aligned_for_the_elements_is_refused() -> Result<()> {
    let device = gpu();
    let buffer = device.buffer_from(&[0u32; 4])?;
    let error = unsafe { buffer_from_raw::<u32>(&device, buffer_to_raw(&buffer)? + 2, 1, None) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    Ok(())
}

#[test]
fn borrowed_memory_keeps_its_owner_until_the_last_buffer_goes() -> Result<()> {
    let device = gpu();
    let mut theirs = Box::new([5u32; 2]);
    let address = theirs.as_mut_ptr() as u64;
    simulator::world(|world| world.memory.insert(address, 8));
    let owner = Arc::new(());
    let buffer = unsafe { buffer_from_raw::<u32>(&device, address, 2, Some(owner.clone().into())) }?;
    assert_eq!(buffer.to_vec()?, [5, 5]);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(buffer);
    assert_eq!(Arc::strong_count(&owner), 1);
    simulator::world(|world| world.memory.remove(&address));
    Ok(())
}

#[test]
fn the_parameters_of_a_kernel_from_outside_are_checked_when_they_are_stated() -> Result<()> {
    let device = gpu();
    let module =
        device.load_ptx(".visible .entry add(.param .u64 a, .param .s32 b, .param .u32 c) { ret; }")?;
    let raw = kernel_to_raw(&module.untyped_kernel("add")?)?;
    // Nothing of ours holds the kernel any more.
    let kernel = unsafe { kernel_from_raw(&device, raw, Some(Arc::new(module).into())) }?;
    assert_eq!(kernel.name(), "add");
    assert!(unsafe { kernel.typed::<(PtrMut<i32>, i32, u32)>() }.is_ok());
    let error = unsafe { kernel.typed::<(PtrMut<i32>, i32)>() }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ParameterMismatch);
    Ok(())
}
