//! Limits of the parser. Real modules stay far below each of them.

/// The size of the text in bytes. Positions have 32 bits.
pub(crate) const TEXT_BYTES: usize = 1 << 30;
/// The depth of nested scopes.
pub(crate) const SCOPE_DEPTH: usize = 64;
/// The depth of parentheses and operators in a constant expression.
pub(crate) const EXPR_DEPTH: u32 = 64;
/// The number of registers of one function. Each takes 256 bytes of every warp that the CPU device
/// interprets.
pub(crate) const REGISTERS: u32 = 1 << 18;
/// The number of variables of a function that are declared as ranges.
pub(crate) const LOCAL_RANGE: u32 = 4096;
/// The length of the name of a range of variables in bytes.
pub(crate) const RANGE_NAME: usize = 256;
/// The number of array dimensions.
pub(crate) const DIMENSIONS: usize = 8;
/// The size of one variable in bytes.
pub(crate) const VARIABLE_BYTES: u64 = 1 << 40;
/// The number of zero bytes that nested braces may skip, in all initialisers of a module.
pub(crate) const IMAGE_PADDING: u64 = 1 << 24;
/// The number of modifiers of one instruction.
pub(crate) const MODIFIERS: usize = 32;
/// The number of elements of a vector operand.
pub(crate) const VECTOR: usize = 8;
/// The number of diagnostics before the parser or the checker stops.
pub(crate) const DIAGNOSTICS: usize = 50;
/// The depth of inlined calls that are followed.
pub(crate) const INLINED: usize = 32;
/// The number of bytes of a source line that a diagnostic keeps.
pub(crate) const SOURCE_LINE: usize = 4096;
