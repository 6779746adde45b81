//! Expressions: numbers that a contract computes from a launch.

use std::fmt;
use std::ops::{Add, Deref, Mul, Sub};

use super::Launched;
use super::signature::Integer;

/// How deep the terms of an expression can be nested. Deeper ones could overflow the stack of a
/// thread that computes or drops them.
const MAX_DEPTH: u16 = 256;

/// An axis of a grid or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The fastest-changing index.
    X,
    /// The second index.
    Y,
    /// The third index.
    Z,
}

/// A number that a [`Contract`](super::Contract) computes from the arguments and the shape of a
/// launch.
///
/// Expressions are built with [`arg`], [`len`], [`grid`], [`block`], integers, `+`, `-`, `*` and
/// [`max`](Expr::max). They are computed in 64-bit signed integers; a launch for which one
/// overflows breaks the contract. Terms nest at most 256 deep.
///
/// ```
/// use gridloom_core::op::contract::{arg, block, Axis};
///
/// let last = (arg(2) - 1) * arg(3) + 1;
/// assert_eq!(last.to_string(), "(argument 2 - 1) * argument 3 + 1");
/// assert_eq!(block(Axis::X).max(32).to_string(), "max(block.x, 32)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expr {
    /// A fixed number.
    Constant(i64),
    /// The value of an argument, which must be an integer.
    Argument(u32),
    /// The number of elements in the memory of a pointer argument. It is 0 for a null pointer.
    Length(u32),
    /// The number of blocks along an axis.
    Grid(Axis),
    /// The number of threads of a block along an axis.
    Block(Axis),
    /// The sum of two numbers.
    Sum(Box<Terms>),
    /// The first number minus the second.
    Difference(Box<Terms>),
    /// The product of two numbers.
    Product(Box<Terms>),
    /// The larger of two numbers.
    Max(Box<Terms>),
    /// What is left of an expression whose terms were nested too deep. No contract can have it.
    TooDeep,
}

/// The two numbers that an operator combines. Only the operators of [`Expr`] create them, so their
/// depth is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    both: (Expr, Expr),
    depth: u16,
}

impl Deref for Terms {
    type Target = (Expr, Expr);

    fn deref(&self) -> &(Expr, Expr) {
        &self.both
    }
}

/// Returns the value of argument `index`, which must be an integer.
pub fn arg(index: u32) -> Expr {
    Expr::Argument(index)
}

/// Returns the number of elements in the memory of pointer argument `index`.
pub fn len(index: u32) -> Expr {
    Expr::Length(index)
}

/// Returns the number of blocks along an axis.
pub fn grid(axis: Axis) -> Expr {
    Expr::Grid(axis)
}

/// Returns the number of threads of a block along an axis.
pub fn block(axis: Axis) -> Expr {
    Expr::Block(axis)
}

impl Expr {
    /// Returns the larger of this and another number.
    #[must_use]
    pub fn max(self, other: impl Into<Expr>) -> Expr {
        self.with(other.into(), Expr::Max)
    }

    /// Combines two numbers, unless the result is nested too deep.
    fn with(self, other: Expr, operator: impl FnOnce(Box<Terms>) -> Expr) -> Expr {
        let is_too_deep = |expr: &Expr| matches!(expr, Expr::TooDeep);
        let depth = 1 + self.depth().max(other.depth());
        if depth > MAX_DEPTH || is_too_deep(&self) || is_too_deep(&other) {
            return Expr::TooDeep;
        }
        operator(Box::new(Terms { both: (self, other), depth }))
    }

    fn depth(&self) -> u16 {
        match self {
            Expr::Sum(two) | Expr::Difference(two) | Expr::Product(two) | Expr::Max(two) => two.depth,
            _ => 1,
        }
    }

    /// Calls `visit` with this expression and every one inside it.
    pub(super) fn visit(&self, visit: &mut impl FnMut(&Expr)) {
        visit(self);
        if let Expr::Sum(two) | Expr::Difference(two) | Expr::Product(two) | Expr::Max(two) = self {
            two.0.visit(visit);
            two.1.visit(visit);
        }
    }

    /// Computes the number for a launch. Returns `None` if it overflows or an argument is not an
    /// integer.
    pub(super) fn evaluate(&self, facts: &Facts<'_>, launch: &impl Launched) -> Option<i64> {
        let both = |two: &Terms| Some((two.0.evaluate(facts, launch)?, two.1.evaluate(facts, launch)?));
        match self {
            Expr::Constant(value) => Some(*value),
            Expr::Argument(index) => {
                let integer = *facts.integers.get(*index as usize)?;
                launch.integer(*index as usize, integer?)
            }
            Expr::Length(index) => {
                let size = *facts.element_sizes.get(*index as usize)?;
                let bytes = match launch.memory(*index as usize) {
                    super::GivenMemory::Bytes(bytes) => bytes,
                    super::GivenMemory::Null => 0,
                    super::GivenMemory::Unknown => return None,
                };
                i64::try_from(bytes.checked_div(u64::from(size))?).ok()
            }
            Expr::Grid(axis) => Some(axis.of(launch.config().grid)),
            Expr::Block(axis) => Some(axis.of(launch.config().block)),
            Expr::Sum(two) => both(two).and_then(|(one, other)| one.checked_add(other)),
            Expr::Difference(two) => both(two).and_then(|(one, other)| one.checked_sub(other)),
            Expr::Product(two) => both(two).and_then(|(one, other)| one.checked_mul(other)),
            Expr::Max(two) => both(two).map(|(one, other)| one.max(other)),
            Expr::TooDeep => None,
        }
    }

    /// Returns the precedence of the expression when it is displayed.
    fn precedence(&self) -> u8 {
        match self {
            Expr::Sum(_) | Expr::Difference(_) => 0,
            Expr::Product(_) => 1,
            _ => 2,
        }
    }
}

/// Facts about the parameters of a kernel, by their index.
pub(super) struct Facts<'a> {
    /// The kind of integer of each integer parameter.
    pub(super) integers: &'a [Option<Integer>],
    /// The element size of each pointer parameter in bytes, and 0 for other parameters.
    pub(super) element_sizes: &'a [u32],
}

impl Axis {
    fn of(self, extents: crate::launch::Dim3) -> i64 {
        i64::from(match self {
            Axis::X => extents.x,
            Axis::Y => extents.y,
            Axis::Z => extents.z,
        })
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        })
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = |f: &mut fmt::Formatter<'_>, inner: &Expr, least: u8| {
            if inner.precedence() < least { write!(f, "({inner})") } else { write!(f, "{inner}") }
        };
        match self {
            Expr::Constant(value) => write!(f, "{value}"),
            Expr::Argument(index) => write!(f, "argument {index}"),
            Expr::Length(index) => write!(f, "length of argument {index}"),
            Expr::Grid(axis) => write!(f, "grid.{axis}"),
            Expr::Block(axis) => write!(f, "block.{axis}"),
            Expr::Sum(two) => {
                operand(f, &two.0, 0)?;
                f.write_str(" + ")?;
                operand(f, &two.1, 0)
            }
            Expr::Difference(two) => {
                operand(f, &two.0, 0)?;
                f.write_str(" - ")?;
                operand(f, &two.1, 1)
            }
            Expr::Product(two) => {
                operand(f, &two.0, 1)?;
                f.write_str(" * ")?;
                operand(f, &two.1, 1)
            }
            Expr::Max(two) => write!(f, "max({}, {})", two.0, two.1),
            Expr::TooDeep => f.write_str("a number of more than 256 nested terms"),
        }
    }
}

macro_rules! constants {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Expr {
            /// Converts a number. One that is too large becomes the largest number of an
            /// expression.
            fn from(value: $integer) -> Self {
                Expr::Constant(i64::try_from(value).unwrap_or(i64::MAX))
            }
        }
    )*};
}
constants!(u32, u64, usize);

impl From<i32> for Expr {
    fn from(value: i32) -> Self {
        Expr::Constant(value.into())
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Expr::Constant(value)
    }
}

impl<T: Into<Expr>> Add<T> for Expr {
    type Output = Expr;

    fn add(self, other: T) -> Expr {
        self.with(other.into(), Expr::Sum)
    }
}

impl<T: Into<Expr>> Sub<T> for Expr {
    type Output = Expr;

    fn sub(self, other: T) -> Expr {
        self.with(other.into(), Expr::Difference)
    }
}

impl<T: Into<Expr>> Mul<T> for Expr {
    type Output = Expr;

    fn mul(self, other: T) -> Expr {
        self.with(other.into(), Expr::Product)
    }
}
