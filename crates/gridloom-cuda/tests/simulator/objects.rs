//! Device, context, memory, streams and events.

use super::{INVALID, OK, exports, handle, world};
use gridloom_cuda::sys::*;
use std::alloc::Layout;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuInit" => init,
        "cuDriverGetVersion" => version,
        "cuGetErrorName" => error_name,
        "cuGetErrorString" => error_name,
        "cuDeviceGetCount" => count,
        "cuDeviceGet" => get_device,
        "cuDeviceGetName" => device_name,
        "cuDeviceGetUuid_v2" => uuid,
        "cuDeviceTotalMem_v2" => total_memory,
        "cuDeviceGetAttribute" => attribute,
        "cuDevicePrimaryCtxRetain" => retain,
        "cuDevicePrimaryCtxRelease_v2" => release,
        "cuCtxGetCurrent" => current,
        "cuCtxPushCurrent_v2" => push,
        "cuCtxPopCurrent_v2" => pop,
        "cuCtxSynchronize" => nothing,
        "cuMemPoolCreate" => pool_create,
        "cuMemPoolDestroy" => pool_destroy,
        "cuMemPoolSetAttribute" => pool_attribute,
        "cuMemPoolTrimTo" => pool_trim,
        "cuMemAllocFromPoolAsync" => alloc_async,
        "cuMemFreeAsync" => free_async,
        "cuMemHostAlloc" => host_alloc,
        "cuMemFreeHost" => host_free,
        "cuMemAllocManaged" => managed_alloc,
        "cuMemFree_v2" => free,
        "cuMemcpyAsync" => copy,
        "cuMemcpy3DAsync_v2" => copy_3d,
        "cuMemsetD8Async" => fill_8,
        "cuMemsetD32Async" => fill_32,
        "cuStreamCreateWithPriority" => stream_create,
        "cuStreamDestroy_v2" => stream_destroy,
        "cuStreamSynchronize" => stream_done,
        "cuStreamQuery" => stream_done,
        "cuStreamGetCtx" => stream_context,
        "cuPointerGetAttribute" => pointer,
        "cuStreamWaitEvent" => stream_wait,
        "cuLaunchHostFunc" => host_function,
        "cuEventCreate" => event_create,
        "cuEventDestroy_v2" => event_destroy,
        "cuEventRecord" => event_record,
        "cuEventQuery" => event_query,
        "cuEventSynchronize" => event_query,
        "cuEventElapsedTime_v2" => elapsed,
        "cuEventElapsedTime" => elapsed,
    }
}

unsafe extern "C" fn init(_: c_uint) -> CUresult {
    OK
}

unsafe extern "C" fn nothing() -> CUresult {
    OK
}

unsafe extern "C" fn version(out: *mut c_int) -> CUresult {
    unsafe { *out = 13000 };
    OK
}

unsafe extern "C" fn error_name(code: CUresult, out: *mut *const c_char) -> CUresult {
    let name = match code {
        CUresult::CUDA_ERROR_INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        CUresult::CUDA_ERROR_NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
        CUresult::CUDA_ERROR_NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        _ => return INVALID,
    };
    unsafe { *out = name.as_ptr() };
    OK
}

unsafe extern "C" fn count(out: *mut c_int) -> CUresult {
    unsafe { *out = 1 };
    OK
}

unsafe extern "C" fn get_device(out: *mut CUdevice, ordinal: c_int) -> CUresult {
    unsafe { *out = ordinal };
    OK
}

unsafe extern "C" fn device_name(out: *mut c_char, _: c_int, _: CUdevice) -> CUresult {
    let name = c"simulated";
    unsafe { out.copy_from_nonoverlapping(name.as_ptr(), name.to_bytes_with_nul().len()) };
    OK
}

unsafe extern "C" fn uuid(out: *mut CUuuid, _: CUdevice) -> CUresult {
    unsafe { (*out).bytes = [1; 16] };
    OK
}

unsafe extern "C" fn total_memory(out: *mut usize, _: CUdevice) -> CUresult {
    unsafe { *out = 1 << 34 };
    OK
}

unsafe extern "C" fn attribute(out: *mut c_int, attribute: CUdevice_attribute, _: CUdevice) -> CUresult {
    use CUdevice_attribute as A;
    let value = match attribute {
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
        A::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => 48 << 10,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => 227 << 10,
        A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED | A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => i32::MAX,
        _ => 1024,
    };
    unsafe { *out = value };
    OK
}

unsafe extern "C" fn retain(out: *mut CUcontext, _: CUdevice) -> CUresult {
    unsafe { *out = handle(16) };
    OK
}

unsafe extern "C" fn release(_: CUdevice) -> CUresult {
    OK
}

unsafe extern "C" fn current(out: *mut CUcontext) -> CUresult {
    unsafe { *out = handle(16) };
    OK
}

unsafe extern "C" fn push(_: CUcontext) -> CUresult {
    OK
}

unsafe extern "C" fn pop(_: *mut CUcontext) -> CUresult {
    OK
}

unsafe extern "C" fn pool_create(out: *mut CUmemoryPool, _: *const CUmemPoolProps) -> CUresult {
    unsafe { *out = handle(world(|world| world.fresh())) };
    OK
}

unsafe extern "C" fn pool_destroy(_: CUmemoryPool) -> CUresult {
    OK
}

unsafe extern "C" fn pool_attribute(_: CUmemoryPool, _: CUmemPool_attribute, _: *mut c_void) -> CUresult {
    OK
}

unsafe extern "C" fn pool_trim(_: CUmemoryPool, _: usize) -> CUresult {
    OK
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 256).ok().filter(|layout| layout.size() < 1 << 32)
}

unsafe fn allocate(out: *mut CUdeviceptr, bytes: usize) -> CUresult {
    let Some(layout) = layout(bytes) else { return CUresult::CUDA_ERROR_OUT_OF_MEMORY };
    let address = unsafe { std::alloc::alloc(layout) } as u64;
    // What nobody wrote is never 0 by luck.
    unsafe { (address as *mut u8).write_bytes(0xcd, bytes) };
    world(|world| world.memory.insert(address, bytes));
    unsafe { *out = address };
    OK
}

unsafe fn deallocate(address: u64) -> CUresult {
    match world(|world| world.memory.remove(&address)) {
        Some(bytes) => {
            unsafe { std::alloc::dealloc(address as *mut u8, layout(bytes).unwrap()) };
            OK
        }
        None => INVALID,
    }
}

unsafe extern "C" fn alloc_async(
    out: *mut CUdeviceptr,
    bytes: usize,
    _: CUmemoryPool,
    _: CUstream,
) -> CUresult {
    unsafe { allocate(out, bytes) }
}

unsafe extern "C" fn free_async(address: CUdeviceptr, _: CUstream) -> CUresult {
    unsafe { deallocate(address) }
}

unsafe extern "C" fn host_alloc(out: *mut *mut c_void, bytes: usize, _: c_uint) -> CUresult {
    unsafe { allocate(out.cast(), bytes) }
}

unsafe extern "C" fn host_free(address: *mut c_void) -> CUresult {
    unsafe { deallocate(address as u64) }
}

unsafe extern "C" fn managed_alloc(out: *mut CUdeviceptr, bytes: usize, _: c_uint) -> CUresult {
    unsafe { allocate(out, bytes) }
}

unsafe extern "C" fn free(address: CUdeviceptr) -> CUresult {
    unsafe { deallocate(address) }
}

unsafe extern "C" fn copy(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, _: CUstream) -> CUresult {
    unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, bytes) };
    OK
}

unsafe extern "C" fn copy_3d(parameters: *const CUDA_MEMCPY3D, _: CUstream) -> CUresult {
    unsafe { copy_planes(&*parameters) };
    OK
}

/// A copy as its description says.
pub unsafe fn copy_planes(p: &CUDA_MEMCPY3D) {
    let host = CUmemorytype::CU_MEMORYTYPE_HOST;
    let src = if p.srcMemoryType == host { p.srcHost as u64 } else { p.srcDevice };
    let dst = if p.dstMemoryType == host { p.dstHost as u64 } else { p.dstDevice };
    for plane in 0..p.Depth {
        for row in 0..p.Height {
            let from = src as usize + (plane * p.srcHeight + row) * p.srcPitch;
            let to = dst as usize + (plane * p.dstHeight + row) * p.dstPitch;
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, p.WidthInBytes) };
        }
    }
}

/// A fill as its description says.
pub unsafe fn fill(p: &CUDA_MEMSET_NODE_PARAMS) {
    let value = p.value.to_ne_bytes();
    for row in 0..p.height {
        for column in 0..p.width {
            let at = p.dst as usize + row * p.pitch + column * p.elementSize as usize;
            unsafe { std::ptr::copy(value.as_ptr(), at as *mut u8, p.elementSize as usize) };
        }
    }
}

unsafe extern "C" fn fill_8(dst: CUdeviceptr, value: u8, count: usize, _: CUstream) -> CUresult {
    unsafe { (dst as *mut u8).write_bytes(value, count) };
    OK
}

unsafe extern "C" fn fill_32(dst: CUdeviceptr, value: c_uint, count: usize, _: CUstream) -> CUresult {
    for index in 0..count {
        unsafe { (dst as *mut u32).add(index).write_unaligned(value) };
    }
    OK
}

unsafe extern "C" fn stream_create(out: *mut CUstream, _: c_uint, _: c_int) -> CUresult {
    unsafe { *out = handle(world(|world| world.fresh())) };
    OK
}

unsafe extern "C" fn stream_destroy(stream: CUstream) -> CUresult {
    world(|world| world.destroyed_streams.insert(stream.addr()));
    OK
}

/// Waiting for and asking a stream are the same: everything has run.
unsafe extern "C" fn stream_done(_: CUstream) -> CUresult {
    OK
}

/// A stream that belongs to another context than the one there is.
pub const FAR_STREAM: usize = 0xfa0;

unsafe extern "C" fn stream_context(stream: CUstream, out: *mut CUcontext) -> CUresult {
    unsafe { *out = handle(if stream.addr() == FAR_STREAM { 32 } else { 16 }) };
    OK
}

/// Every address within a known block is that of memory on GPU 0.
unsafe extern "C" fn pointer(
    out: *mut c_void,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> CUresult {
    let known = |world: &mut super::World| {
        world.memory.iter().any(|(&start, &bytes)| (start..start + bytes as u64).contains(&address))
    };
    if !world(known) {
        return INVALID;
    }
    let value = match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => CUmemorytype::CU_MEMORYTYPE_DEVICE.0,
        _ => 0,
    };
    unsafe { *out.cast::<u32>() = value };
    OK
}

unsafe extern "C" fn stream_wait(_: CUstream, _: CUevent, _: c_uint) -> CUresult {
    OK
}

unsafe extern "C" fn host_function(_: CUstream, function: CUhostFn, data: *mut c_void) -> CUresult {
    let Some(function) = function else { return INVALID };
    unsafe { function(data) };
    OK
}

unsafe extern "C" fn event_create(out: *mut CUevent, _: c_uint) -> CUresult {
    unsafe { *out = handle(world(|world| world.fresh())) };
    OK
}

unsafe extern "C" fn event_destroy(event: CUevent) -> CUresult {
    world(|world| world.events.remove(&event.addr()));
    OK
}

unsafe extern "C" fn event_record(event: CUevent, _: CUstream) -> CUresult {
    record(event.addr());
    OK
}

/// Notes the time of an event.
pub fn record(event: usize) {
    world(|world| {
        world.clock += 1;
        world.events.insert(event, world.clock);
    });
}

unsafe extern "C" fn event_query(_: CUevent) -> CUresult {
    OK
}

unsafe extern "C" fn elapsed(out: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    world(|world| match (world.events.get(&start.addr()), world.events.get(&end.addr())) {
        (Some(&start), Some(&end)) => {
            unsafe { *out = end as f32 - start as f32 };
            OK
        }
        _ => CUresult::CUDA_ERROR_INVALID_HANDLE,
    })
}
