//! How large a launch is.

use crate::host;
use crate::record::value::V;
use crate::thread::{device_function, special};

device_function! {
    /// Returns how many blocks the launch has, along the first axis.
    pub fn size_x() -> u32 { host::place().grid_size[0] } records special("%nctaid.x")
}
device_function! {
    /// Returns how many blocks the launch has, along the second axis.
    pub fn size_y() -> u32 { host::place().grid_size[1] } records special("%nctaid.y")
}
device_function! {
    /// Returns how many blocks the launch has, along the third axis.
    pub fn size_z() -> u32 { host::place().grid_size[2] } records special("%nctaid.z")
}
