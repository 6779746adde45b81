//! Contracts: what a kernel requires of its arguments.
//!
//! A kernel trusts a length that it is given. A kernel that is looked up with a [`Signature`]
//! states the types of its parameters and a [`Contract`] between them. Every launch, and every
//! change of the arguments or shape of a launch, is checked against it before anything else
//! happens.

mod expr;
mod signature;
#[cfg(test)]
mod tests;

use std::fmt;

pub use expr::{Axis, Expr, Terms, arg, block, grid, len};
pub use signature::{Integer, ParamKind, ParamType, Signature, param_type, without_signature};

use super::{KernelOp, PointerArg, PointerValue};
use crate::launch::LaunchConfig;

/// The requirements of a kernel on its arguments, beyond their types.
///
/// If a contract says nothing about a pointer, the memory behind it must have at least one element,
/// and at least as many elements as each length parameter says.
///
/// ```
/// use gridloom_core::op::contract::{Axis, Contract, arg, block, grid};
///
/// // reduce(out, x, n): each block adds up to 1024 numbers of x, and writes one number to out.
/// let contract = Contract::new()
///     .holds(0, grid(Axis::X))
///     .holds(1, arg(2))
///     .at_most(block(Axis::X), 1024);
/// assert_eq!(
///     contract.to_string(),
///     "argument 0 holds grid.x, argument 1 holds argument 2, block.x is at most 1024"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    holds: Vec<(u32, Expr)>,
    bounds: Vec<Bound>,
    disjoint: Vec<(u32, u32)>,
}

/// A relation between two numbers of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// The first number is at most the second.
    AtMost,
    /// The first number is a multiple of the second, which is at least 1.
    MultipleOf,
}

/// Two numbers and the relation that must hold between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The first number.
    pub number: Expr,
    /// The relation of the first number to the second.
    pub relation: Relation,
    /// The second number.
    pub other: Expr,
}

impl Relation {
    fn holds(self, number: i64, other: i64) -> bool {
        match self {
            Relation::AtMost => number <= other,
            Relation::MultipleOf => other >= 1 && number % other == 0,
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::AtMost => "at most",
            Relation::MultipleOf => "a multiple of",
        })
    }
}

impl Contract {
    /// Creates a contract without requirements beyond the types of the parameters.
    pub fn new() -> Self {
        Contract::default()
    }

    /// Requires that the memory of pointer argument `index` has at least this many elements. The
    /// length parameters then do not apply to this pointer. A null pointer, where allowed, is
    /// exempt.
    #[must_use]
    pub fn holds(mut self, index: u32, elements: impl Into<Expr>) -> Self {
        self.holds.push((index, elements.into()));
        self
    }

    /// Requires that a number is at most another one.
    #[must_use]
    pub fn at_most(mut self, number: impl Into<Expr>, bound: impl Into<Expr>) -> Self {
        self.bounds.push(Bound { number: number.into(), relation: Relation::AtMost, other: bound.into() });
        self
    }

    /// Requires that a number is at least another one.
    #[must_use]
    pub fn at_least(self, number: impl Into<Expr>, bound: impl Into<Expr>) -> Self {
        self.at_most(bound, number)
    }

    /// Requires that a number is a multiple of another one, which is at least 1.
    #[must_use]
    pub fn multiple_of(mut self, number: impl Into<Expr>, unit: impl Into<Expr>) -> Self {
        let (number, other) = (number.into(), unit.into());
        self.bounds.push(Bound { number, relation: Relation::MultipleOf, other });
        self
    }

    /// Asks that the memory given for one pointer argument has no byte in common with that given
    /// for another one.
    #[must_use]
    pub fn disjoint(mut self, one: u32, other: u32) -> Self {
        self.disjoint.push((one, other));
        self
    }

    /// Returns the pairs of pointers whose memory has to be apart.
    pub fn disjoint_pairs(&self) -> &[(u32, u32)] {
        &self.disjoint
    }

    /// Returns the pointers with a required number of elements, and that number.
    pub fn held(&self) -> impl Iterator<Item = (u32, &Expr)> {
        self.holds.iter().map(|(index, elements)| (*index, elements))
    }

    /// Returns the pairs of numbers with a required relation.
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (index, elements) in &self.holds {
            write!(f, "{separator}argument {index} holds {elements}")?;
            separator = ", ";
        }
        for Bound { number, relation, other } in &self.bounds {
            write!(f, "{separator}{number} is {relation} {other}")?;
            separator = ", ";
        }
        for (one, other) in &self.disjoint {
            write!(f, "{separator}argument {one} and argument {other} are apart")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The memory behind a pointer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenMemory {
    /// Memory of this many bytes.
    Bytes(u64),
    /// The null pointer.
    Null,
    /// An address given as a plain value. The size of its memory is unknown.
    Unknown,
}

/// The parts of a launch that contracts look at.
pub(crate) trait Launched {
    /// Returns the value of argument `index`, or `None` if it has another size or does not fit.
    fn integer(&self, index: usize, integer: Integer) -> Option<i64>;

    /// Returns the memory behind argument `index`.
    fn memory(&self, index: usize) -> GivenMemory;

    /// Returns whether the memory of two arguments may have a byte in common.
    fn may_overlap(&self, one: usize, other: usize) -> bool;

    /// Returns the shape of the launch.
    fn config(&self) -> &LaunchConfig;
}

impl Launched for KernelOp {
    fn integer(&self, index: usize, integer: Integer) -> Option<i64> {
        integer.read(self.args.value(index)?)
    }

    fn memory(&self, index: usize) -> GivenMemory {
        match self.args.pointers_in(index).find(|pointer| pointer.offset == 0).map(|pointer| &pointer.value) {
            Some(PointerValue::Region(region)) => GivenMemory::Bytes(region.bytes),
            Some(PointerValue::Condition(_)) => GivenMemory::Unknown,
            None => plain_address(self.args.value(index)),
        }
    }

    fn may_overlap(&self, one: usize, other: usize) -> bool {
        let region = |index| match self.args.pointers_in(index).find(|pointer| pointer.offset == 0) {
            Some(PointerArg { value: PointerValue::Region(region), .. }) => Some(region),
            _ => None,
        };
        match (region(one), region(other)) {
            (Some(one), Some(other)) => one.overlaps(other),
            _ => false,
        }
    }

    fn config(&self) -> &LaunchConfig {
        &self.config
    }
}

/// Classifies a pointer that is given as a plain value.
pub(crate) fn plain_address(bytes: Option<&[u8]>) -> GivenMemory {
    match bytes {
        Some(bytes) if bytes.iter().all(|&byte| byte == 0) => GivenMemory::Null,
        _ => GivenMemory::Unknown,
    }
}
