//! Where a block is in its launch, and how large it is.

use crate::host;
use crate::record::value::V;
use crate::thread::{device_function, special};

device_function! {
    /// Returns the index of the block, along the first axis.
    pub fn x() -> u32 { host::place().block[0] } records special("%ctaid.x")
}
device_function! {
    /// Returns the index of the block, along the second axis.
    pub fn y() -> u32 { host::place().block[1] } records special("%ctaid.y")
}
device_function! {
    /// Returns the index of the block, along the third axis.
    pub fn z() -> u32 { host::place().block[2] } records special("%ctaid.z")
}
device_function! {
    /// Returns how many threads a block has, along the first axis.
    pub fn size_x() -> u32 { host::place().block_size[0] } records special("%ntid.x")
}
device_function! {
    /// Returns how many threads a block has, along the second axis.
    pub fn size_y() -> u32 { host::place().block_size[1] } records special("%ntid.y")
}
device_function! {
    /// Returns how many threads a block has, along the third axis.
    pub fn size_z() -> u32 { host::place().block_size[2] } records special("%ntid.z")
}
