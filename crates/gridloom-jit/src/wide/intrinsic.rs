//! Intrinsics: operations for which Cranelift's intermediate code has no instruction. They appear
//! as calls of functions that only this generator knows.

use cranelift_codegen::ir::{ExternalName, FuncRef, Function, UserExternalName};

/// The namespace of their names.
pub(crate) const NAMESPACE: u32 = 0x5749_4445;

/// An operation on vectors of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Intrinsic {
    /// `(a, b, indices)`: 32-bit words of two vectors behind each other, by a constant vector.
    Words,
    /// `(vector, bytes)`: bytes within each 16 bytes, by a constant vector. An index of 128 or more
    /// gives zero.
    Bytes,
    /// `(parts…)`: vectors of 16 bytes one behind the other.
    Join,
    /// `(vector, i)`: the i-th 16 bytes.
    Quarter,
    /// Doubles of the lower, and of the upper, half of a vector of floats.
    PromoteLow,
    PromoteHigh,
    /// `(low, high)`: floats of two vectors of doubles.
    Demote,
    /// `(address, offset)`: bytes or halves that become words.
    LoadBytes,
    LoadSignedBytes,
    LoadHalves,
    LoadSignedHalves,
    /// `(words, address, offset)`: the lowest bytes or halves.
    StoreBytes,
    StoreHalves,
    /// `(a, b)`: sums of the products of two neighbouring signed halves each.
    MultiplyPairs,
    /// Masks of 32-bit words from bits.
    MasksOfBits,
    /// `(a, b, c, table)`: any function of three bits, by a constant table.
    Ternary,
    /// `(words, count)`: words rotated to the left by a constant.
    Rotate,
    /// `(values, counts)`: shifts of each element by its own count; zeros, or signs, come in.
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    /// `(address, offset, bytes)`: a load of the first so many bytes, with zeros behind them.
    LoadPart,
    /// `(values, address, offset, bytes)`: a store of the first so many bytes.
    StorePart,
    /// `(mask, address, offset)`: a load of a row where a mask is set, and zeros elsewhere.
    LoadMasked,
    /// `(values, mask, address, offset)`: a store of a row where a mask is set.
    StoreMasked,
    /// `(address, words, log, mask, offset)`: loads of words, each at the address plus a signed
    /// word shifted by a constant, where a mask is set, and zeros elsewhere.
    GatherNear,
    /// `(low, high, low mask, high mask, offset)`: loads of words at addresses in two vectors.
    GatherWords,
    /// `(addresses, mask, offset)`: loads of 64 bits.
    GatherQuads,
    /// `(values, …)`: stores to the same places, in the order of the elements.
    ScatterNear,
    ScatterWords,
    ScatterQuads,
    /// Zeros above the highest bit of each element.
    LeadingZeros,
    /// Bits that are set in each element, on hosts that [count](super::counts_ones) them.
    CountOnes,
    /// `(a, b)`: products, in 64 bits, of the lower halves of elements of 64 bits.
    MultiplyHalves,
    /// `(a, b)`: quotients of words. Where the divisor is zero, unsigned ones are all ones. The
    /// smallest number divided by minus one is the smallest number.
    Divide,
    DivideSigned,
    /// `(a, b, c)`: products and sums of floats, rounded once, towards minus infinity.
    MultiplyAddDown,
    /// `(a, b, indices)`: for each word, that of two vectors behind each other at its own index.
    /// Bits above those of an index are ignored.
    LookUp,
    /// The same for each byte, on hosts that [look up bytes](super::looks_up_bytes).
    LookUpBytes,
    /// `(address, offset)`: a line of memory is brought to the caches, to be read, or to be
    /// written.
    Prefetch,
    PrefetchToWrite,
}

const ALL: [Intrinsic; 40] = [
    Intrinsic::Words,
    Intrinsic::Bytes,
    Intrinsic::Join,
    Intrinsic::Quarter,
    Intrinsic::PromoteLow,
    Intrinsic::PromoteHigh,
    Intrinsic::Demote,
    Intrinsic::LoadBytes,
    Intrinsic::LoadSignedBytes,
    Intrinsic::LoadHalves,
    Intrinsic::LoadSignedHalves,
    Intrinsic::StoreBytes,
    Intrinsic::StoreHalves,
    Intrinsic::MultiplyPairs,
    Intrinsic::MasksOfBits,
    Intrinsic::Ternary,
    Intrinsic::Rotate,
    Intrinsic::ShiftLeft,
    Intrinsic::ShiftRight,
    Intrinsic::ShiftRightSigned,
    Intrinsic::LoadPart,
    Intrinsic::StorePart,
    Intrinsic::LoadMasked,
    Intrinsic::StoreMasked,
    Intrinsic::GatherNear,
    Intrinsic::GatherWords,
    Intrinsic::GatherQuads,
    Intrinsic::ScatterNear,
    Intrinsic::ScatterWords,
    Intrinsic::ScatterQuads,
    Intrinsic::LeadingZeros,
    Intrinsic::CountOnes,
    Intrinsic::MultiplyHalves,
    Intrinsic::Divide,
    Intrinsic::DivideSigned,
    Intrinsic::MultiplyAddDown,
    Intrinsic::LookUp,
    Intrinsic::LookUpBytes,
    Intrinsic::Prefetch,
    Intrinsic::PrefetchToWrite,
];

impl Intrinsic {
    /// Returns the name of its function.
    pub(crate) fn name(self) -> UserExternalName {
        UserExternalName::new(NAMESPACE, self as u32)
    }

    /// Returns the operation that a function stands for.
    pub(crate) fn of(func: &Function, callee: FuncRef) -> Option<Self> {
        let ExternalName::User(name) = func.dfg.ext_funcs[callee].name else { return None };
        let name = func.params.user_named_funcs().get(name)?;
        if name.namespace != NAMESPACE {
            return None;
        }
        ALL.into_iter().find(|&intrinsic| intrinsic as u32 == name.index)
    }

    /// Returns whether it accesses memory.
    pub(super) fn accesses_memory(self) -> bool {
        matches!(
            self,
            Self::LoadBytes
                | Self::LoadSignedBytes
                | Self::LoadHalves
                | Self::LoadSignedHalves
                | Self::StoreBytes
                | Self::StoreHalves
                | Self::LoadPart
                | Self::StorePart
                | Self::LoadMasked
                | Self::StoreMasked
                | Self::GatherNear
                | Self::GatherWords
                | Self::GatherQuads
                | Self::ScatterNear
                | Self::ScatterWords
                | Self::ScatterQuads
                | Self::Prefetch
                | Self::PrefetchToWrite
        )
    }
}
