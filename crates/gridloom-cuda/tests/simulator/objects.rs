//! The device and its context.

use super::entry::{current_context, pop_context, push_context};
use super::{INVALID, OK, Use, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
        "cuStreamGetCtx" => stream_context,
    }
}

/// The driver has taken itself down, as it does at the end of the process. A call from then on ends
/// the process at once.
pub static IS_GONE: AtomicBool = AtomicBool::new(false);

fn init(_: c_uint) -> CUresult {
    extern "C" fn go() {
        IS_GONE.store(true, Ordering::SeqCst);
        // Whoever still calls is to be seen.
        std::thread::sleep(Duration::from_millis(20));
    }
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> c_int;
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        unsafe { atexit(go) };
    });
    OK
}

fn version(out: *mut c_int) -> CUresult {
    unsafe { *out = 13000 };
    OK
}

fn error_name(code: CUresult, out: *mut *const c_char) -> CUresult {
    let name = match code {
        CUresult::CUDA_ERROR_INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        CUresult::CUDA_ERROR_NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
        CUresult::CUDA_ERROR_NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
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

fn count(out: *mut c_int) -> CUresult {
    unsafe { *out = 1 };
    OK
}

fn get_device(out: *mut CUdevice, ordinal: c_int) -> CUresult {
    unsafe { *out = ordinal };
    OK
}

fn device_name(out: *mut c_char, _: c_int, _: CUdevice) -> CUresult {
    let name = c"simulated";
    unsafe { out.copy_from_nonoverlapping(name.as_ptr(), name.to_bytes_with_nul().len()) };
    OK
}

fn uuid(out: *mut CUuuid, _: CUdevice) -> CUresult {
    unsafe { (*out).bytes = [1; 16] };
    OK
}

fn total_memory(out: *mut usize, _: CUdevice) -> CUresult {
    unsafe { *out = 1 << 34 };
    OK
}

fn attribute(out: *mut c_int, attribute: CUdevice_attribute, _: CUdevice) -> CUresult {
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

/// The one context there is.
const CONTEXT: usize = 16;

fn retain(out: *mut CUcontext, _: CUdevice) -> CUresult {
    let _alone = Use::of(handle::<()>(CONTEXT));
    world(|world| world.retained += 1);
    unsafe { *out = handle(CONTEXT) };
    OK
}

fn release(_: CUdevice) -> CUresult {
    let _alone = Use::of(handle::<()>(CONTEXT));
    world(|world| match world.retained.checked_sub(1) {
        Some(left) => {
            world.retained = left;
            OK
        }
        None => CUresult::CUDA_ERROR_INVALID_CONTEXT,
    })
}

fn current(out: *mut CUcontext) -> CUresult {
    unsafe { *out = current_context().map_or(std::ptr::null_mut(), handle) };
    OK
}

fn push(context: CUcontext) -> CUresult {
    world(|world| {
        if world.retained == 0 {
            world.violation("a context is used that nobody retains");
        }
    });
    push_context(context.addr());
    OK
}

fn pop(out: *mut CUcontext) -> CUresult {
    match pop_context() {
        Some(context) => {
            unsafe { *out = handle(context) };
            OK
        }
        None => CUresult::CUDA_ERROR_INVALID_CONTEXT,
    }
}

/// A stream that belongs to another context than the one there is.
pub const FAR_STREAM: usize = 0xfa0;

fn stream_context(stream: CUstream, out: *mut CUcontext) -> CUresult {
    unsafe { *out = handle(if stream.addr() == FAR_STREAM { 32 } else { CONTEXT }) };
    OK
}
