//! Atomic operations.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use super::sync::{FenceSem, Scope};
use crate::model::names::words;
use crate::model::operand::{Address, Dsts, Operand, Srcs};
use crate::model::types::{ScalarType, Space};

words! {
    /// What happens to the value in memory.
    pub enum AtomOp {
        And = "and", Or = "or", Xor = "xor",
        /// Compare with `b`, and if equal store `c`.
        Cas = "cas",
        Exch = "exch",
        Add = "add",
        /// Increment, wrapping to 0 beyond `b`.
        Inc = "inc",
        /// Decrement, wrapping to `b` below 0 or above `b`.
        Dec = "dec",
        Min = "min", Max = "max",
    }
}

/// The fields that `atom` and `red` share.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicRmw {
    pub op: AtomOp,
    pub ty: ScalarType,
    pub space: Space,
    /// `None` is `.relaxed`.
    pub sem: Option<FenceSem>,
    /// `None` is `.gpu`.
    pub scope: Option<Scope>,
    /// Keeps subnormals (16-bit float addition).
    pub noftz: bool,
    pub addr: Address,
    /// One operand, or the elements of a vector.
    pub b: Srcs,
    /// The value stored by [`AtomOp::Cas`].
    pub c: Option<Operand>,
    /// The cache policy operand of `.L2::cache_hint`.
    pub policy: Option<Operand>,
}

/// Atomic operations.
#[derive(Clone, Debug, PartialEq)]
pub enum AtomicOp {
    /// `atom`: as many destinations as elements; `None` is `_`.
    Atom { dsts: Dsts, rmw: Box<AtomicRmw> },
    /// `red`: no result.
    Red { rmw: Box<AtomicRmw> },
}
