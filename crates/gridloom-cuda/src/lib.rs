//! The CUDA device of Gridloom: a driver loaded at run time, and graphs lowered to CUDA graphs.

pub mod driver;
pub mod nvrtc;
pub mod release;
pub mod sys;
mod version;

pub use driver::{Driver, DriverError};
pub use version::{CudaVersion, ParseVersionError};
