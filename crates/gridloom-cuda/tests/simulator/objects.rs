//! Device, context, memory, streams and events.

use super::graphs::Work;
use super::{FAULTY, INVALID, OK, capture, exports, handle, is_faulty, world};
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
        "cuMemAlloc_v2" => alloc_now,
        "cuMemAllocFromPoolAsync" => alloc_from_pool,
        "cuMemAllocAsync" => alloc_async,
        "cuMemFreeAsync" => free_async,
        "cuMemHostAlloc" => host_alloc,
        "cuMemFreeHost" => host_free,
        "cuMemAllocManaged" => managed_alloc,
        "cuMemFree_v2" => free,
        "cuMemcpyAsync" => copy,
        "cuMemcpyHtoDAsync_v2" => copy_from_host,
        "cuMemcpy3DAsync_v2" => copy_3d,
        "cuMemsetD8Async" => fill_8,
        "cuMemsetD32Async" => fill_32,
        "cuStreamCreateWithPriority" => stream_create,
        "cuStreamDestroy_v2" => stream_destroy,
        "cuStreamSynchronize" => stream_done,
        "cuStreamQuery" => stream_done,
        "cuStreamGetCtx" => stream_context,
        "cuPointerGetAttribute" => pointer,
        "cuLaunchHostFunc" => host_function,
        "cuEventCreate" => event_create,
        "cuEventDestroy_v2" => event_destroy,
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
        CUresult::CUDA_ERROR_ILLEGAL_STATE => c"CUDA_ERROR_ILLEGAL_STATE",
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED => c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED => c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
        CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE => c"CUDA_ERROR_STREAM_CAPTURE_MERGE",
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

unsafe extern "C" fn alloc_from_pool(
    out: *mut CUdeviceptr,
    bytes: usize,
    _: CUmemoryPool,
    stream: CUstream,
) -> CUresult {
    unsafe { alloc_async(out, bytes, stream) }
}

/// On a captured stream the address is that of the node, which gets its memory with the graph.
unsafe extern "C" fn alloc_async(out: *mut CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    let address = unsafe { std::alloc::alloc(layout(bytes).unwrap()) } as u64;
    match capture::add(stream, Work::Alloc { address, bytes }) {
        Some(outcome) => {
            unsafe { *out = address };
            outcome
        }
        None => {
            unsafe { std::alloc::dealloc(address as *mut u8, layout(bytes).unwrap()) };
            unsafe { allocate(out, bytes) }
        }
    }
}

/// Gives back the memory of an alloc node.
pub unsafe fn free_of_graph(address: u64, bytes: usize) {
    unsafe { std::alloc::dealloc(address as *mut u8, layout(bytes).unwrap()) };
}

unsafe extern "C" fn alloc_now(out: *mut CUdeviceptr, bytes: usize) -> CUresult {
    match capture::prohibited() {
        OK => unsafe { allocate(out, bytes) },
        refused => refused,
    }
}

unsafe extern "C" fn free_async(address: CUdeviceptr, stream: CUstream) -> CUresult {
    capture::add(stream, Work::Free(address)).unwrap_or_else(|| unsafe { deallocate(address) })
}

unsafe extern "C" fn host_alloc(out: *mut *mut c_void, bytes: usize, _: c_uint) -> CUresult {
    unsafe { allocate(out.cast(), bytes) }
}

unsafe extern "C" fn host_free(address: *mut c_void) -> CUresult {
    match capture::prohibited() {
        OK => unsafe { deallocate(address as u64) },
        refused => refused,
    }
}

unsafe extern "C" fn managed_alloc(out: *mut CUdeviceptr, bytes: usize, _: c_uint) -> CUresult {
    unsafe { allocate(out, bytes) }
}

unsafe extern "C" fn free(address: CUdeviceptr) -> CUresult {
    unsafe { deallocate(address) }
}

unsafe extern "C" fn copy(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    let parameters = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcDevice: src,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstDevice: dst,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    unsafe { copy_3d(&parameters, stream) }
}

unsafe extern "C" fn copy_from_host(
    dst: CUdeviceptr,
    src: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let parameters = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: src,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: dst,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    unsafe { copy_3d(&parameters, stream) }
}

unsafe extern "C" fn copy_3d(parameters: *const CUDA_MEMCPY3D, stream: CUstream) -> CUresult {
    let parameters = unsafe { *parameters };
    capture::add(stream, Work::Copy(parameters)).unwrap_or_else(|| {
        unsafe { copy_planes(&parameters) };
        OK
    })
}

/// A copy as its description says.
pub unsafe fn copy_planes(p: &CUDA_MEMCPY3D) {
    let host = CUmemorytype::CU_MEMORYTYPE_HOST;
    let src = if p.srcMemoryType == host { p.srcHost as u64 } else { p.srcDevice };
    let dst = if p.dstMemoryType == host { p.dstHost as u64 } else { p.dstDevice };
    for plane in 0..p.Depth {
        for row in 0..p.Height {
            let from = (p.srcZ + plane) * p.srcHeight + p.srcY + row;
            let to = (p.dstZ + plane) * p.dstHeight + p.dstY + row;
            let from = src as usize + from * p.srcPitch + p.srcXInBytes;
            let to = dst as usize + to * p.dstPitch + p.dstXInBytes;
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

unsafe fn fill_row(dst: CUdeviceptr, value: u32, element: u32, count: usize, stream: CUstream) -> CUresult {
    let pitch = count * element as usize;
    let parameters =
        CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize: element, width: count, height: 1 };
    capture::add(stream, Work::Fill(parameters)).unwrap_or_else(|| {
        unsafe { fill(&parameters) };
        OK
    })
}

unsafe extern "C" fn fill_8(dst: CUdeviceptr, value: u8, count: usize, stream: CUstream) -> CUresult {
    unsafe { fill_row(dst, value.into(), 1, count, stream) }
}

unsafe extern "C" fn fill_32(dst: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) -> CUresult {
    unsafe { fill_row(dst, value, 4, count, stream) }
}

unsafe extern "C" fn stream_create(out: *mut CUstream, _: c_uint, _: c_int) -> CUresult {
    if is_faulty() {
        return FAULTY;
    }
    let number = world(|world| {
        let number = world.fresh();
        world.streams.insert(number);
        number
    });
    unsafe { *out = handle(number) };
    OK
}

unsafe extern "C" fn stream_destroy(stream: CUstream) -> CUresult {
    world(|world| {
        world.streams.remove(&stream.addr());
        world.destroyed_streams.insert(stream.addr());
    });
    OK
}

/// Waiting for and asking a stream are the same: everything has run, unless it is captured.
unsafe extern "C" fn stream_done(stream: CUstream) -> CUresult {
    capture::ask(stream)
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

unsafe extern "C" fn host_function(stream: CUstream, function: CUhostFn, data: *mut c_void) -> CUresult {
    let Some(run) = function else { return INVALID };
    let parameters = CUDA_HOST_NODE_PARAMS_v1 { fn_: function, userData: data };
    capture::add(stream, Work::Host(parameters)).unwrap_or_else(|| {
        unsafe { run(data) };
        OK
    })
}

unsafe extern "C" fn event_create(out: *mut CUevent, _: c_uint) -> CUresult {
    unsafe { *out = handle(world(|world| world.fresh())) };
    OK
}

unsafe extern "C" fn event_destroy(event: CUevent) -> CUresult {
    world(|world| world.events.remove(&event.addr()));
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
