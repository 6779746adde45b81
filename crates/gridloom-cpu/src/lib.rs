//! stub
#![allow(missing_docs)]
use std::sync::Arc;
#[derive(Default, Clone, Debug)]
pub struct CpuOptions;
#[derive(Clone, Debug)]
pub enum Engine {
    I,
}
pub struct CpuDevice;
impl CpuDevice {
    pub fn new(_: CpuOptions) -> gridloom_core::Result<Arc<dyn gridloom_core::backend::Device>> {
        panic!()
    }
}
