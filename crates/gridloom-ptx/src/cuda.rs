//! Telling CUDA C++ from PTX, for errors about the one given for the other.

/// What to do with CUDA C++ where PTX is wanted.
pub const CUDA_HELP: &str = "this looks like CUDA C++: load it with `load_cuda`, or compile it to PTX first, with `gridloom cc FILE.cu` or \
                             `nvcc -ptx FILE.cu`";

/// Words of CUDA C++ that PTX does not have.
const WORDS: &[&str] =
    &["__global__", "__device__", "__host__", "#include", "#define", "#pragma", "extern \"C\"", "template"];

/// How much of a text is looked at.
const LOOKED_AT: usize = 1 << 16;

/// Returns whether a text is more likely CUDA C++ than PTX.
///
/// ```
/// use gridloom_ptx::looks_like_cuda;
///
/// assert!(looks_like_cuda("extern \"C\" __global__ void nothing() {}"));
/// assert!(!looks_like_cuda(".version 8.0\n.target sm_80\n// made from __global__ void nothing()"));
/// ```
#[must_use]
pub fn looks_like_cuda(text: &str) -> bool {
    let end = (0..=text.len().min(LOOKED_AT)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let text = &text[..end];
    !text.lines().any(|line| line.trim_start().starts_with(".version"))
        && WORDS.iter().any(|word| text.contains(word))
}
