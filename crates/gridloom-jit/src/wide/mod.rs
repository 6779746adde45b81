//! The code generator for hosts with AVX-512.
//!
//! It turns a function of Cranelift's intermediate code into machine code. The vectors of the
//! function may be longer than Cranelift supports. The README of the crate describes the steps.

mod allocate;
mod codes;
mod emit;
mod encode;
mod inst;
pub(crate) mod intrinsic;
mod listing;
mod masks;
mod moves;
mod preserve;
mod select;
#[cfg(test)]
mod tests;

pub(crate) use emit::MachineCode;
pub(crate) use intrinsic::Intrinsic;
pub(crate) use preserve::preserving;

use cranelift_codegen::ir::Function;
use memmap2::{Mmap, MmapMut};
use std::sync::OnceLock;

/// Returns whether the host has what this generator needs, and it is not turned off.
pub(crate) fn is_available() -> bool {
    longest() > 16
}

/// Returns the most bytes of a vector: 64, unless the environment says 256 or 128 bits. With no
/// more than 16, this generator is not used.
fn longest() -> usize {
    static LONGEST: OnceLock<usize> = OnceLock::new();
    *LONGEST.get_or_init(|| match std::env::var("GRIDLOOM_JIT_VECTORS").as_deref() {
        _ if !has_instructions() => 16,
        Ok("128") => 16,
        Ok("256") => 32,
        _ => 64,
    })
}

#[cfg(target_arch = "x86_64")]
fn has_instructions() -> bool {
    use std::arch::is_x86_feature_detected as has;
    // The operating system keeps these registers if the features are reported.
    has!("avx512f")
        && has!("avx512vl")
        && has!("avx512bw")
        && has!("avx512dq")
        && has!("avx512cd")
        && has!("fma")
        && has!("bmi1")
        && has!("bmi2")
        && has!("lzcnt")
        && has!("popcnt")
        && cfg!(unix)
}

#[cfg(not(target_arch = "x86_64"))]
fn has_instructions() -> bool {
    false
}

/// Returns whether the host counts the bits of each element of a vector with one instruction.
pub(crate) fn counts_ones() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512vpopcntdq");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Returns whether the host looks up each byte of a vector in two others with one instruction.
pub(crate) fn looks_up_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512vbmi");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Returns how many bytes vectors have in groups of so many threads: enough for a word of each.
pub(crate) fn vector_bytes(lanes: u32) -> usize {
    (4 * lanes as usize).clamp(16, longest())
}

/// Returns the machine code of a function, or why it is left to Cranelift.
pub(crate) fn generate(func: &Function) -> Result<MachineCode, String> {
    let mut selected = select::select(func)?;
    let placed = allocate::Placed::of(&mut selected);
    let mut output = allocate::allocate(&placed)?;
    moves::remove_useless(&placed, &mut output);
    Ok(emit::emit(&placed, &output, selected.frame, &selected.constants))
}

/// Copies code to memory that is then executable and no longer writable.
pub(crate) fn executable(code: &[u8]) -> Result<Mmap, String> {
    let mut memory = MmapMut::map_anon(code.len()).map_err(|error| error.to_string())?;
    memory[..code.len()].copy_from_slice(code);
    memory.make_exec().map_err(|error| error.to_string())
}
