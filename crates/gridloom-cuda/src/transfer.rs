//! Copies and fills in the driver's own terms, the same for streams and graph nodes.

use crate::sys::*;
use gridloom_core::lower::Location;
use gridloom_core::memory::MemoryKind;
use gridloom_core::op::{CopySide, MemcpyOp, MemsetOp};
use std::ffi::c_void;

/// Returns the driver's name for a kind of memory.
fn driver_kind(kind: MemoryKind) -> CUmemorytype {
    match kind {
        MemoryKind::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
        MemoryKind::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        MemoryKind::Managed => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
    }
}

/// Returns the driver's description of a copy.
pub(crate) fn copy_parameters(op: &MemcpyOp, dst: Location, src: Location) -> CUDA_MEMCPY3D {
    let (src_pitch, src_height) = pitches(op, &op.src);
    let (dst_pitch, dst_height) = pitches(op, &op.dst);
    let host = |location: Location| {
        let is_host = location.kind == MemoryKind::Host;
        if is_host { (location.address as *mut c_void, 0) } else { (std::ptr::null_mut(), location.address) }
    };
    let (src_host, src_device) = host(src);
    let (dst_host, dst_device) = host(dst);
    CUDA_MEMCPY3D {
        srcMemoryType: driver_kind(src.kind),
        srcHost: src_host,
        srcDevice: src_device,
        srcPitch: src_pitch,
        srcHeight: src_height,
        dstMemoryType: driver_kind(dst.kind),
        dstHost: dst_host,
        dstDevice: dst_device,
        dstPitch: dst_pitch,
        dstHeight: dst_height,
        WidthInBytes: op.width as usize,
        Height: op.height as usize,
        Depth: op.depth as usize,
        ..Default::default()
    }
}

/// Returns pitch and rows of one side. A single row has none: a pitch is limited to 2 GiB, a row is
/// not.
fn pitches(op: &MemcpyOp, side: &CopySide) -> (usize, usize) {
    let pitch = if op.height > 1 || op.depth > 1 { side.pitch as usize } else { 0 };
    let rows = if op.depth > 1 { side.rows as usize } else { 0 };
    (pitch, rows)
}

/// Returns whether a copy is one row, for which the driver has shorter calls.
pub(crate) fn is_linear(op: &MemcpyOp) -> bool {
    op.height == 1 && op.depth == 1
}

/// Returns the driver's description of a fill.
pub(crate) fn fill_parameters(op: &MemsetOp, address: u64) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: address,
        // The driver requires a pitch of at least a row, even for a single row.
        pitch: if op.height > 1 {
            op.pitch as usize
        } else {
            (op.width * u64::from(op.element_size)) as usize
        },
        value: op.value,
        elementSize: op.element_size,
        width: op.width as usize,
        height: op.height as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridloom_core::lower::{Locate, OnStream};
    use gridloom_core::memory::Region;

    fn device(address: u64) -> Location {
        Location { address, kind: MemoryKind::Device }
    }

    fn bytes(len: usize) -> Region {
        Region::from_bytes(vec![0u8; len])
    }

    #[test]
    fn a_row_has_no_pitch_so_that_its_length_is_not_limited_by_one() {
        let op = MemcpyOp::linear(bytes(8), bytes(8), 8);
        let parameters = copy_parameters(&op, device(64), device(128));
        assert_eq!((parameters.srcPitch, parameters.dstPitch), (0, 0));
        assert_eq!((parameters.WidthInBytes, parameters.Height, parameters.Depth), (8, 1, 1));
        assert_eq!((parameters.dstDevice, parameters.srcDevice), (64, 128));
        assert!(is_linear(&op));
    }

    #[test]
    fn planes_keep_pitch_and_rows_of_each_side() {
        let side = |pitch, rows| CopySide { region: bytes(4096), pitch, rows };
        let op = MemcpyOp { dst: side(32, 6), src: side(16, 4), width: 12, height: 4, depth: 3 };
        let parameters = copy_parameters(&op, device(0), device(0));
        assert_eq!((parameters.dstPitch, parameters.dstHeight), (32, 6));
        assert_eq!((parameters.srcPitch, parameters.srcHeight), (16, 4));
        assert!(!is_linear(&op));
    }

    #[test]
    fn a_host_side_is_passed_as_a_host_pointer() {
        let source = bytes(8);
        let location = OnStream.locate(&source).unwrap();
        let op = MemcpyOp::linear(bytes(8), source, 8);
        let parameters = copy_parameters(&op, device(64), location);
        assert_eq!(parameters.srcMemoryType, CUmemorytype::CU_MEMORYTYPE_HOST);
        assert_eq!(parameters.srcHost as u64, location.address);
        assert_eq!(parameters.srcDevice, 0);
    }

    #[test]
    fn a_fill_of_one_row_has_the_pitch_of_its_row() {
        let op = MemsetOp { dst: bytes(16), value: 7, element_size: 4, width: 4, height: 1, pitch: 0 };
        let parameters = fill_parameters(&op, 256);
        assert_eq!((parameters.pitch, parameters.width, parameters.height), (16, 4, 1));
    }
}
