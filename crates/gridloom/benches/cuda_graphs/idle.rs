//! A driver that does nothing and returns at once, so that only Gridloom takes time. It has the
//! calls of the comparisons that need no GPU.

use gridloom::Result;
use gridloom_cuda::CudaDevice;
use gridloom_cuda::driver::{Driver, DriverOptions, SymbolSource};
use gridloom_cuda::sys::*;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A device that no kernel runs on.
pub(crate) fn device() -> Result<Arc<CudaDevice>> {
    let driver = Driver::with_source(Box::new(Idle), DriverOptions::default())?;
    CudaDevice::open_with(driver, 0)
}

#[derive(Debug)]
struct Idle;

// SAFETY: each function below has the parameters that the driver's of that name has.
unsafe impl SymbolSource for Idle {
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        NonNull::new(address(name)?.cast_mut())
    }

    fn describe(&self) -> &str {
        "a driver that does nothing"
    }
}

thread_local! {
    static CURRENT: Cell<CUcontext> = const { Cell::new(ptr::null_mut()) };
    /// The latest handle of this thread: it is enough that those of one graph differ.
    static HANDLE: Cell<usize> = const { Cell::new(0x1000) };
}

const DONE: CUresult = CUresult::CUDA_SUCCESS;

/// Writes a result.
fn put<T>(out: *mut T, value: T) -> CUresult {
    // SAFETY: whoever calls the driver has a place for what it asks for.
    unsafe { out.write(value) };
    DONE
}

fn put_handle<T>(out: *mut *mut T) -> CUresult {
    let handle = HANDLE.get() + 16;
    HANDLE.set(handle);
    put(out, ptr::without_provenance_mut(handle))
}

/// Memory of the host, which stays.
fn put_memory(out: *mut CUdeviceptr, bytes: usize) -> CUresult {
    put(out, vec![0u64; bytes.div_ceil(8)].leak().as_mut_ptr().expose_provenance() as CUdeviceptr)
}

/// Functions of the driver, each with what it returns.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) => $result:expr;)*) => {
        fn address(name: &str) -> Option<*const c_void> {
            match name {
                $(stringify!($name) => {
                    #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
                    extern "C" fn $name($($argument: $type),*) -> CUresult {
                        $result
                    }
                    Some($name as *const c_void)
                })*
                _ => None,
            }
        }
    };
}

functions! {
    cuInit(flags: c_uint) => DONE;
    cuDriverGetVersion(out: *mut c_int) => put(out, 13_000);
    cuGetErrorName(code: CUresult, out: *mut *const c_char) => put(out, c"an error".as_ptr());
    cuGetErrorString(code: CUresult, out: *mut *const c_char) => put(out, c"of a driver that does nothing".as_ptr());

    cuDeviceGetCount(out: *mut c_int) => put(out, 1);
    cuDeviceGet(out: *mut CUdevice, ordinal: c_int) => put(out, 0);
    cuDeviceGetName(out: *mut c_char, len: c_int, device: CUdevice) => put_name(out, len);
    cuDeviceGetUuid_v2(out: *mut CUuuid, device: CUdevice) => put(out, CUuuid { bytes: [1; 16] });
    cuDeviceTotalMem_v2(out: *mut usize, device: CUdevice) => put(out, 1 << 36);
    cuDeviceGetAttribute(out: *mut c_int, which: CUdevice_attribute, device: CUdevice) => put(out, attribute(which));
    cuDevicePrimaryCtxRetain(out: *mut CUcontext, device: CUdevice) => put_handle(out);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice) => DONE;
    cuCtxPushCurrent_v2(context: CUcontext) => { CURRENT.set(context); DONE };
    cuCtxPopCurrent_v2(out: *mut CUcontext) => put(out, CURRENT.replace(ptr::null_mut()));
    cuCtxGetCurrent(out: *mut CUcontext) => put(out, CURRENT.get());
    cuCtxSynchronize() => DONE;
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => { put(least, 0); put(greatest, 0) };
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) => DONE;

    cuMemAlloc_v2(out: *mut CUdeviceptr, bytes: usize) => put_memory(out, bytes);
    cuMemFree_v2(address: CUdeviceptr) => DONE;
    cuMemPoolCreate(out: *mut CUmemoryPool, properties: *const CUmemPoolProps_v1) => put_handle(out);
    cuMemPoolSetAttribute(pool: CUmemoryPool, which: CUmemPool_attribute, value: *mut c_void) => DONE;
    cuMemAllocFromPoolAsync(out: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream) => put_memory(out, bytes);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) => DONE;
    cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) => DONE;

    cuStreamCreateWithPriority(out: *mut CUstream, flags: c_uint, priority: c_int) => put_handle(out);
    cuStreamDestroy_v2(stream: CUstream) => DONE;
    cuStreamSynchronize(stream: CUstream) => DONE;
    cuStreamQuery(stream: CUstream) => DONE;
    cuStreamIsCapturing(stream: CUstream, out: *mut CUstreamCaptureStatus) => put(out, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    cuEventCreate(out: *mut CUevent, flags: c_uint) => put_handle(out);
    cuEventDestroy_v2(event: CUevent) => DONE;
    cuEventRecord(event: CUevent, stream: CUstream) => DONE;
    cuEventQuery(event: CUevent) => DONE;
    cuEventSynchronize(event: CUevent) => DONE;

    cuModuleLoadDataEx(out: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void) => put_handle(out);
    cuModuleUnload(module: CUmodule) => DONE;
    cuModuleGetFunction(out: *mut CUfunction, module: CUmodule, name: *const c_char) => put_handle(out);
    cuFuncGetAttribute(out: *mut c_int, which: CUfunction_attribute, function: CUfunction) => put(out, limit(which));
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize) => put_parameter(index, offset, size);

    cuGraphCreate(out: *mut CUgraph, flags: c_uint) => put_handle(out);
    cuGraphDestroy(graph: CUgraph) => DONE;
    cuGraphAddKernelNode_v2(out: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, parameters: *const CUDA_KERNEL_NODE_PARAMS_v2) => put_handle(out);
    cuGraphInstantiateWithFlags(out: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong) => put_handle(out);
    cuGraphInstantiateWithParams(out: *mut CUgraphExec, graph: CUgraph, parameters: *mut CUDA_GRAPH_INSTANTIATE_PARAMS) => put_handle(out);
    cuGraphExecDestroy(executable: CUgraphExec) => DONE;
    cuGraphExecKernelNodeSetParams_v2(executable: CUgraphExec, node: CUgraphNode, parameters: *const CUDA_KERNEL_NODE_PARAMS_v2) => DONE;
    cuGraphExecUpdate_v2(executable: CUgraphExec, graph: CUgraph, outcome: *mut CUgraphExecUpdateResultInfo) => DONE;
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream) => DONE;
}

fn put_name(out: *mut c_char, len: c_int) -> CUresult {
    let name = c"a device that does nothing".to_bytes_with_nul();
    let fits = usize::try_from(len).is_ok_and(|len| name.len() <= len);
    if fits {
        // SAFETY: the caller has room for `len` bytes.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len()) };
    }
    DONE
}

fn attribute(which: CUdevice_attribute) -> c_int {
    match which {
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        // Extents, and what a device can or cannot.
        _ => 1024,
    }
}

fn limit(which: CUfunction_attribute) -> c_int {
    match which {
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
        _ => 0,
    }
}

/// Every kernel takes an address and a word.
fn put_parameter(index: usize, offset: *mut usize, size: *mut usize) -> CUresult {
    let Some(&(at, bytes)) = [(0, 8), (8, 4)].get(index) else {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    };
    put(offset, at);
    put(size, bytes)
}
