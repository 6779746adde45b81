//! A kernel that breaks the context: in a process of its own, since nothing on the device works
//! after it.

mod common;

use common::*;
use gridloom_core::ErrorKind;
use gridloom_core::backend::StreamOptions;

#[test]
fn a_write_to_nowhere_loses_the_device_and_says_so_and_dropping_everything_is_safe() {
    let Some(gpu) = gpu() else { return };
    let buffer = gpu.words(&[1, 2, 3]);
    gpu.stream.enqueue(gpu.launch("fault", [ulong(8)])).unwrap();
    let error = gpu.stream.synchronize().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    assert_eq!(error.driver().unwrap().name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(error.message().contains("context is lost"), "{error}");
    let later = gpu.backend.create_stream(StreamOptions::new()).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::DeviceLost, "{later}");
    drop((buffer, gpu));
}
