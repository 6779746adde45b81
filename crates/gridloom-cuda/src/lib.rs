//! stub
#![allow(missing_docs)]
use std::sync::Arc;
pub fn device_count() -> gridloom_core::Result<u32> {
    Ok(0)
}
pub struct CudaDevice;
impl CudaDevice {
    pub fn open(_: u32) -> gridloom_core::Result<Arc<dyn gridloom_core::backend::Device>> {
        panic!()
    }
}
