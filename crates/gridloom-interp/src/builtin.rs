//! The functions of CUDA's device runtime, implemented by the interpreter.

use super::code::Builtin;
use super::fault::{AccessKind, FaultKind, Raised, Space};
use super::memory::Access;
use super::printf;
use super::warp::Context;
use std::sync::atomic::Ordering;

/// The tag of condition handles. The handle of condition `i` for `cudaGraphSetConditional` is
/// `CONDITION_TAG | i`. The tag distinguishes handles from pointers and small numbers.
pub const CONDITION_TAG: u64 = 0x0c0d_0000_0000_0000;

/// Calls a builtin in one lane and returns its result, or 0 if it has none.
pub(crate) fn call(
    cx: &mut Context<'_>,
    builtin: Builtin,
    arguments: [u64; 5],
    lane: u32,
) -> Result<u64, Raised> {
    let [a, b, c, d, _] = arguments;
    match builtin {
        Builtin::Vprintf => {
            let mut read = |address, size| read(cx, address, size, lane);
            let (text, taken) = printf::format(a, b, &mut read)?;
            (cx.launch.print)(&text);
            Ok(taken.into())
        }
        Builtin::AssertFail => {
            let mut text = |address: u64| -> Result<String, Raised> {
                if address == 0 {
                    return Ok("?".to_owned());
                }
                let bytes = printf::read_text(address, &mut |address, size| read(cx, address, size, lane))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            };
            let (message, file, function) = (text(a)?, text(b)?, text(d)?);
            Err(FaultKind::Assert { message, file, line: c as u32, function }.in_lane(lane))
        }
        Builtin::Malloc => Ok(cx.launch.heap.allocate(a)),
        Builtin::Free if a == 0 || cx.launch.heap.free(a) => Ok(0),
        Builtin::Free => Err(FaultKind::InvalidFree { address: a }.in_lane(lane)),
        Builtin::SetConditional => {
            let index = usize::try_from(a ^ CONDITION_TAG).unwrap_or(usize::MAX);
            match cx.launch.conditions.get(index) {
                Some(condition) => condition.store(b as u32, Ordering::Release),
                None => return Err(FaultKind::BadCondition { handle: a }.in_lane(lane)),
            }
            Ok(0)
        }
    }
}

fn read(cx: &mut Context<'_>, address: u64, size: u32, lane: u32) -> Result<u64, Raised> {
    cx.memory.load(Access { kind: AccessKind::Read, space: Space::Generic, address, size, align: size, lane })
}
