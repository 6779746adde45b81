//! The loader against fake drivers: what is missing, too old, hidden or unknown.

use super::fake::FakeDriver;
use super::functions::ALL;
use super::*;
use crate::sys::*;
use std::ffi::c_uint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const V12_2: CudaVersion = CudaVersion::new(12, 2);
const V13: CudaVersion = CudaVersion::new(13, 0);

unsafe extern "C" fn no_device(_flags: c_uint) -> CUresult {
    CUresult::CUDA_ERROR_NO_DEVICE
}

unsafe extern "C" fn refuse() -> CUresult {
    CUresult::CUDA_ERROR_INVALID_VALUE
}

unsafe extern "C" fn return_unheard_of() -> CUresult {
    CUresult(98765)
}

unsafe extern "C" fn elapsed<const MILLISECONDS: u32>(out: *mut f32, _: CUevent, _: CUevent) -> CUresult {
    // SAFETY: the caller passes a place for one float.
    unsafe { *out = MILLISECONDS as f32 };
    CUresult::CUDA_SUCCESS
}

fn elapsed_time(driver: &Driver) -> f32 {
    let mut out = 0.0;
    // SAFETY: the fake writes one float and looks at nothing else.
    unsafe { driver.cu_event_elapsed_time(&mut out, ptr::null_mut(), ptr::null_mut()) }.unwrap();
    out
}

#[test]
fn a_missing_library_is_an_error_that_names_what_was_tried() {
    let error =
        DriverLibrary::open_first(&["libgridloom-no-such-driver.so.1", "/nowhere/libcuda.so"]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, DriverError::Missing(_)));
    assert!(error.is_no_device());
    assert!(text.contains("libgridloom-no-such-driver.so.1"), "{text}");
    assert!(text.contains("/nowhere/libcuda.so"), "{text}");
    assert!(text.contains("CPU device"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_is_no_driver_is_passed_over() {
    let error = DriverLibrary::open_first(&["libc.so.6"]).unwrap_err();
    assert!(error.to_string().contains("libc.so.6 (opened, but it exports no cuInit)"), "{error}");
}

#[test]
fn a_driver_without_a_device_is_told_apart_from_one_that_failed() {
    let error = FakeDriver::new(V13).with("cuInit", no_device as *const c_void).open().unwrap_err();
    assert!(error.is_no_device(), "{error}");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NO_DEVICE));
    assert!(error.to_string().contains("cuInit failed: CUDA_ERROR_NO_DEVICE (100)"), "{error}");
}

#[test]
fn a_driver_before_12_0_is_refused_with_both_versions() {
    let error = FakeDriver::new(CudaVersion::new(11, 8)).open().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("supports CUDA 11.8"), "{text}");
    assert!(text.contains("needs 12.0 or newer"), "{text}");
}

#[test]
fn a_missing_function_is_an_error_that_says_what_is_needed_and_found() {
    let driver = FakeDriver::new(V12_2).open().unwrap();
    let mut handle = 0;
    // SAFETY: the function is not there, so nothing is called.
    let error = unsafe {
        driver.cu_graph_conditional_handle_create(&mut handle, ptr::null_mut(), ptr::null_mut(), 0, 0)
    }
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cuGraphConditionalHandleCreate"), "{text}");
    assert!(text.contains("needs CUDA 12.3"), "{text}");
    assert!(text.contains("supports 12.2"), "{text}");
    assert!(text.contains("update the NVIDIA driver"), "{text}");
}

#[test]
fn a_function_missing_from_a_new_driver_blames_the_installation() {
    let driver = FakeDriver::new(V13).open().unwrap();
    // SAFETY: the function is not there, so nothing is called.
    let error = unsafe { driver.cu_ctx_synchronize() }.unwrap_err();
    assert!(error.to_string().contains("installation looks incomplete"), "{error}");
}

#[test]
fn a_cap_lowers_the_version_and_is_named_in_errors() {
    let driver = FakeDriver::new(V13).open_capped(V12_2).unwrap();
    assert_eq!(driver.version(), V12_2);
    assert!(!driver.supports(CudaVersion::new(12, 3)));
    let mut handle = 0;
    // SAFETY: the function is hidden, so nothing is called.
    let error = unsafe {
        driver.cu_graph_conditional_handle_create(&mut handle, ptr::null_mut(), ptr::null_mut(), 0, 0)
    }
    .unwrap_err();
    assert!(error.to_string().contains("12.2 (capped at 12.2 by request)"), "{error}");
}

#[test]
fn a_cap_above_the_driver_changes_nothing() {
    let driver = FakeDriver::new(V12_2).open_capped(V13).unwrap();
    assert_eq!(driver.version(), V12_2);
}

#[test]
fn a_cap_below_the_oldest_supported_version_is_refused() {
    let error = FakeDriver::new(V13).open_capped(CudaVersion::new(11, 4)).unwrap_err();
    assert!(error.to_string().contains("11.4 (capped at 11.4 by request)"), "{error}");
}

#[test]
fn the_newest_name_is_preferred() {
    let driver = FakeDriver::new(V13)
        .with("cuEventElapsedTime", elapsed::<1> as *const c_void)
        .with("cuEventElapsedTime_v2", elapsed::<2> as *const c_void)
        .open()
        .unwrap();
    assert_eq!(elapsed_time(&driver), 2.0);
}

#[test]
fn an_older_name_serves_where_the_newest_is_missing() {
    let driver =
        FakeDriver::new(V12_2).with("cuEventElapsedTime", elapsed::<1> as *const c_void).open().unwrap();
    assert_eq!(elapsed_time(&driver), 1.0);
}

#[test]
fn a_cap_hides_newer_names_but_not_older_ones_of_the_same_function() {
    let driver = FakeDriver::new(V13)
        .with("cuEventElapsedTime", elapsed::<1> as *const c_void)
        .with("cuEventElapsedTime_v2", elapsed::<2> as *const c_void)
        .open_capped(V12_2)
        .unwrap();
    assert_eq!(elapsed_time(&driver), 1.0);
}

#[test]
fn a_name_is_looked_up_once() {
    let fake = FakeDriver::new(V13).with("cuEventElapsedTime_v2", elapsed::<2> as *const c_void);
    let lookups = fake.lookups();
    let driver = fake.open().unwrap();
    assert!(!driver.slots.cu_event_elapsed_time.is_resolved());
    elapsed_time(&driver);
    assert!(driver.slots.cu_event_elapsed_time.is_resolved());
    let after_first = lookups.load(Ordering::Relaxed);
    elapsed_time(&driver);
    assert_eq!(lookups.load(Ordering::Relaxed), after_first);
}

#[test]
fn a_failed_call_keeps_the_drivers_name_number_text_and_the_call() {
    let driver = FakeDriver::new(V13).with("cuCtxSynchronize", refuse as *const c_void).open().unwrap();
    // SAFETY: the fake takes no argument.
    let error = unsafe { driver.cu_ctx_synchronize() }.unwrap_err();
    let call = error.call().unwrap();
    assert_eq!((call.call, call.code.0), ("cuCtxSynchronize", 1));
    assert_eq!(call.name, "CUDA_ERROR_INVALID_VALUE");
    assert_eq!(call.description, "invalid argument");
    assert_eq!(error.to_string(), "cuCtxSynchronize failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

#[test]
fn an_unknown_result_code_is_an_error_with_its_number() {
    let driver =
        FakeDriver::new(V13).with("cuCtxSynchronize", return_unheard_of as *const c_void).open().unwrap();
    // SAFETY: the fake takes no argument.
    let error = unsafe { driver.cu_ctx_synchronize() }.unwrap_err();
    assert_eq!(error.code(), Some(CUresult(98765)));
    assert!(error.to_string().contains("98765"), "{error}");
    assert!(!error.is_sticky());
}

#[test]
fn what_the_driver_logs_while_a_call_fails_is_part_of_the_error() {
    static CALLBACK: OnceLock<CUlogsCallback> = OnceLock::new();
    unsafe extern "C" fn register(
        callback: CUlogsCallback,
        _data: *mut c_void,
        handle: *mut CUlogsCallbackHandle,
    ) -> CUresult {
        CALLBACK.get_or_init(|| callback);
        // SAFETY: the loader passes a place for the handle.
        unsafe { *handle = ptr::null_mut() };
        CUresult::CUDA_SUCCESS
    }
    unsafe extern "C" fn refuse_and_say_why() -> CUresult {
        let text = c"a handle was used twice\n";
        let callback = CALLBACK.get().unwrap().unwrap();
        // SAFETY: the callback reads `length` bytes of the text.
        unsafe {
            callback(
                ptr::null_mut(),
                CUlogLevel::CU_LOG_LEVEL_ERROR,
                text.as_ptr().cast_mut(),
                text.count_bytes(),
            );
        }
        CUresult::CUDA_ERROR_INVALID_VALUE
    }
    let driver = FakeDriver::new(V13)
        .with("cuLogsRegisterCallback", register as *const c_void)
        .with("cuCtxSynchronize", refuse_and_say_why as *const c_void)
        .open()
        .unwrap();
    // SAFETY: the fake takes no argument.
    let error = unsafe { driver.cu_ctx_synchronize() }.unwrap_err();
    assert_eq!(error.call().unwrap().log.as_deref(), Some("a handle was used twice"));
    assert!(error.to_string().ends_with("the driver logged: a handle was used twice"), "{error}");
}

#[test]
fn the_log_is_subscribed_to_once_however_often_a_driver_is_opened_and_never_given_back() {
    static REGISTERED: AtomicUsize = AtomicUsize::new(0);
    static UNREGISTERED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn register(
        _callback: CUlogsCallback,
        _data: *mut c_void,
        _handle: *mut CUlogsCallbackHandle,
    ) -> CUresult {
        REGISTERED.fetch_add(1, Ordering::SeqCst);
        CUresult::CUDA_SUCCESS
    }
    unsafe extern "C" fn unregister(_handle: CUlogsCallbackHandle) -> CUresult {
        UNREGISTERED.fetch_add(1, Ordering::SeqCst);
        CUresult::CUDA_SUCCESS
    }
    for _ in 0..3 {
        let fake = FakeDriver::new(V13)
            .with("cuLogsRegisterCallback", register as *const c_void)
            .with("cuLogsUnregisterCallback", unregister as *const c_void);
        drop(fake.open().unwrap());
    }
    assert_eq!((REGISTERED.load(Ordering::SeqCst), UNREGISTERED.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn options_are_read_from_the_environments_texts() {
    let read = |cap: Option<&str>| DriverOptions::from_text(cap.map(str::to_owned));
    assert_eq!(read(Some("12.2")).unwrap().max_version, Some(V12_2));
    assert_eq!(read(None).unwrap().max_version, None);
    let error = read(Some("newest")).unwrap_err();
    assert!(error.to_string().contains("GRIDLOOM_CUDA_MAX_VERSION: `newest`"), "{error}");
}

#[test]
fn every_function_lists_its_names_newest_first_and_only_one_function_claims_a_name() {
    let mut seen = std::collections::HashSet::new();
    for function in ALL {
        assert!(function.symbols.is_sorted_by(|a, b| a.1 > b.1), "{function:?}");
        for (symbol, _) in function.symbols {
            assert!(seen.insert(symbol), "{symbol} is declared twice");
        }
    }
}

#[test]
fn the_driver_is_shared_between_threads() {
    fn sendable<T: Send + Sync>() {}
    sendable::<Driver>();
    sendable::<DriverError>();
}
