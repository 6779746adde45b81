//! Bounds on what a text may ask of the reader. Real modules stay far below each of them.

/// Bytes of text; positions are 32 bits.
pub(crate) const TEXT_BYTES: usize = 1 << 30;
/// Scopes inside scopes.
pub(crate) const SCOPE_DEPTH: usize = 64;
/// Parentheses and operators inside each other in a constant expression.
pub(crate) const EXPR_DEPTH: u32 = 64;
/// Registers of one function. Each takes 256 bytes of every warp that the CPU device interprets.
pub(crate) const REGISTERS: u32 = 1 << 18;
/// Variables of a function, when declared as ranges.
pub(crate) const LOCAL_RANGE: u32 = 4096;
/// Bytes of the name of a range of variables.
pub(crate) const RANGE_NAME: usize = 256;
/// Array dimensions.
pub(crate) const DIMENSIONS: usize = 8;
/// Bytes of one variable.
pub(crate) const VARIABLE_BYTES: u64 = 1 << 40;
/// Zero bytes that nested braces may skip over in all initialisers of a module.
pub(crate) const IMAGE_PADDING: u64 = 1 << 24;
/// Modifiers of one instruction.
pub(crate) const MODIFIERS: usize = 32;
/// Elements of a vector operand.
pub(crate) const VECTOR: usize = 8;
/// Diagnostics before the parser or the checker gives up.
pub(crate) const DIAGNOSTICS: usize = 50;
/// Calls inlined into each other that are followed.
pub(crate) const INLINED: usize = 32;
/// Bytes of a source line that a diagnostic keeps.
pub(crate) const SOURCE_LINE: usize = 4096;
