//! A stand-in for the driver library, for tests: a table of names and plain functions.

use super::{Driver, DriverOptions, DriverResult, SymbolSource};
use crate::sys::CUresult;
use crate::version::CudaVersion;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A driver that consists of the functions of a test, and `cuInit`, `cuDriverGetVersion` and the
/// error texts.
#[derive(Debug)]
pub(crate) struct FakeDriver {
    symbols: HashMap<&'static str, usize>,
    lookups: Arc<AtomicUsize>,
}

impl FakeDriver {
    pub(crate) fn new(version: CudaVersion) -> Self {
        let fake = Self { symbols: HashMap::new(), lookups: Arc::default() };
        // A fake reports one of a few versions through functions of their own, so that tests need
        // no shared state.
        let report: unsafe extern "C" fn(*mut c_int) -> CUresult = match version.raw() {
            11080 => report_version::<11080>,
            12020 => report_version::<12020>,
            12040 => report_version::<12040>,
            13000 => report_version::<13000>,
            other => panic!("add {other} to the versions a fake driver can report"),
        };
        fake.with("cuInit", succeed_with_flags as *const c_void)
            .with("cuDriverGetVersion", report as *const c_void)
            .with("cuGetErrorName", error_name as *const c_void)
            .with("cuGetErrorString", error_text as *const c_void)
    }

    /// Exports `function` as `name`. The caller gives it the driver's signature for that name.
    pub(crate) fn with(mut self, name: &'static str, function: *const c_void) -> Self {
        self.symbols.insert(name, function as usize);
        self
    }

    /// Returns a counter of lookups from now on.
    pub(crate) fn lookups(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.lookups)
    }

    pub(crate) fn open(self) -> DriverResult<Arc<Driver>> {
        Driver::with_source(Box::new(self), DriverOptions::default())
    }

    pub(crate) fn open_capped(self, cap: CudaVersion) -> DriverResult<Arc<Driver>> {
        Driver::with_source(Box::new(self), DriverOptions::default().max_version(cap))
    }
}

// SAFETY: tests give each function the signature of the name they export it under.
unsafe impl SymbolSource for FakeDriver {
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        NonNull::new(*self.symbols.get(name)? as *mut c_void)
    }

    fn describe(&self) -> &str {
        "a fake driver"
    }
}

unsafe extern "C" fn report_version<const RAW: c_int>(out: *mut c_int) -> CUresult {
    // SAFETY: the caller passes a place for one integer.
    unsafe { *out = RAW };
    CUresult::CUDA_SUCCESS
}

pub(crate) unsafe extern "C" fn succeed_with_flags(_flags: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn error_name(code: CUresult, out: *mut *const c_char) -> CUresult {
    let name = match code {
        CUresult::CUDA_ERROR_INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        CUresult::CUDA_ERROR_NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
        _ => return CUresult::CUDA_ERROR_INVALID_VALUE,
    };
    // SAFETY: the caller passes a place for one pointer.
    unsafe { *out = name.as_ptr() };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn error_text(code: CUresult, out: *mut *const c_char) -> CUresult {
    let text = match code {
        CUresult::CUDA_ERROR_INVALID_VALUE => c"invalid argument",
        CUresult::CUDA_ERROR_NO_DEVICE => c"no CUDA-capable device is detected",
        _ => return CUresult::CUDA_ERROR_INVALID_VALUE,
    };
    // SAFETY: the caller passes a place for one pointer.
    unsafe { *out = text.as_ptr() };
    CUresult::CUDA_SUCCESS
}
