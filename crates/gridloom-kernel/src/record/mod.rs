//! The recorder: the types and functions that the attribute macros expand to.
//!
//! The *twin* of a kernel has the structure of the kernel, but computes with [`V`]s instead of
//! numbers and records each computation. It runs once, when the kernel is first loaded. The
//! compiler resolves types, generics, traits and methods, as in the function itself.

mod adaptors;
pub(crate) mod arithmetic;
mod assigning;
mod bytes;
pub(crate) mod control;
mod convert;
mod elementary;
mod float_methods;
mod integer_methods;
mod integer_results;
pub(crate) mod iterate;
mod kernel;
pub(crate) mod memory;
pub(crate) mod number;
mod option;
mod output;
mod param;
mod passes;
pub(crate) mod recorder;
mod slice_parts;
pub(crate) mod value;

pub use crate::ir::Target;
pub use adaptors::{
    Compared, Copied, EachPass, Enumerate, Filter, IsIterator, IteratorMethods, Map, Skip, Take, TakeWhile,
    Zip,
};
pub use arithmetic::*;
pub use assigning::*;
pub use control::*;
pub use convert::cast;
pub use elementary::{Elementary, select};
pub use float_methods::{Float, WholeFloat};
pub use integer_methods::Unsigned;
pub use iterate::{
    Elements, Iter, Iterate, Loop, Parts, RangeMethods, Rev, Reversible, Step, StepBy, Stridable, iterate,
};
pub use kernel::{Recorded, as_for_gpus, record_anew, record_kernel};
pub use memory::{
    ArrayElement, ArrayHandle, ArrayIndex, PassedAs, Slice, SliceElement, SliceIndex, array, passed, repeat,
};
pub use number::{Bounded, Euclid, Signed};
pub use output::{Printed, print, printed};
pub use param::{Conditional, KernelParam, Read, Share, Value, Write, fuse_products, param, require_block};
pub use passes::{Passes, has_pass, nth_pass};
pub use recorder::{Entered, RecordError, at, enter};
pub use slice_parts::RestOfArray;
pub use value::{
    Cast, Constant, DefaultTwin, Dereference, KernelType, Opt, Phantom, R, SameFunction, Scalar,
    ScalarHandle, Twin, Typed, V, Var, assign, captured, constant, declare, deref, fresh_like, get,
    is_of_standard_library, lit, never, none, of_handle, phantom, receiver, refer, replace, some, stamp,
    swap, unchanged, var,
};

pub use crate::ir::{Label, Mem};
