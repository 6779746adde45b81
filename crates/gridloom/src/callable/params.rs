//! The parameters of a callable, and the values that a call passes for them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use gridloom_core::memory::{Base, Region, RegionId};
use smallvec::SmallVec;

use crate::buffer::{Element, Memory};
use crate::tuples::for_tuples;
use crate::{Error, ErrorKind, Result};

/// Identifies one run of a closure. Parameters are valid only in the run they were created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Origin(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Identifies a parameter and the run of the closure it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamId {
    pub(super) origin: Origin,
    pub(super) index: usize,
}

impl ParamId {
    /// Returns its bit in a set of parameters.
    pub(super) fn bit(self) -> u64 {
        1 << self.index
    }
}

impl fmt::Display for ParamId {
    /// Writes it as errors name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument {} of the call", self.index)
    }
}

/// A parameter in device memory: `Param<[T]>` stands for an array of any length, `Param<T>` for one
/// value.
pub struct Param<T: ?Sized> {
    pub(super) id: ParamId,
    kind: PhantomData<fn() -> Box<T>>,
}

/// A parameter that is a plain value, passed to kernels.
pub struct Scalar<T> {
    pub(super) id: ParamId,
    kind: PhantomData<fn() -> T>,
}

/// A parameter that decides the topology: a call with another value uses another graph. The closure
/// reads it with [`get`](Shape::get).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(u64);

impl Shape {
    /// Returns the value that this call passed.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The length of an array parameter, for passing to a kernel. Created by [`Param::len`].
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub(super) param: ParamId,
    element_size: usize,
}

impl Length {
    pub(super) fn of<T>(param: ParamId) -> Self {
        Length { param, element_size: size_of::<T>().max(1) }
    }

    pub(super) fn elements(&self, bindings: &[Binding]) -> u64 {
        bindings[self.param.index].region().bytes / self.element_size as u64
    }
}

impl<T: Element> Param<[T]> {
    /// Returns its number of elements, for a kernel parameter that is a `u32`, `i32`, `u64` or
    /// `i64`, or a [`Len`](crate::Len) of one.
    pub fn len(&self) -> Length {
        Length { param: self.id, element_size: size_of::<T>() }
    }
}

impl<T: ?Sized> Clone for Param<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for Param<T> {}
impl<T> Clone for Scalar<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Scalar<T> {}

impl<T: ?Sized> fmt::Debug for Param<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Param<{}>({})", std::any::type_name::<T>(), self.id.index)
    }
}
impl<T> fmt::Debug for Scalar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scalar<{}>({})", std::any::type_name::<T>(), self.id.index)
    }
}

/// The value that a call passes for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// Memory.
    Memory(Region),
    /// The bytes of a plain value.
    Value(SmallVec<[u8; 16]>),
    /// A value that decides the topology.
    Shape(u64),
}

impl Binding {
    pub(super) fn region(&self) -> &Region {
        match self {
            Binding::Memory(region) => region,
            _ => unreachable!("the types of a callable bind memory to its array parameters"),
        }
    }

    pub(super) fn value(&self) -> &[u8] {
        match self {
            Binding::Value(bytes) => bytes,
            _ => unreachable!("the types of a callable bind values to its scalar parameters"),
        }
    }
}

/// A kind of parameter: [`Param`], [`Scalar`] or [`Shape`]. Only a callable creates parameters:
///
/// ```compile_fail,E0576
/// # use gridloom::callable::{Binding, Param, ParamId, Spec};
/// fn of_another_type(id: ParamId, binding: &Binding) -> Param<[f64]> {
///     <Param<[f64]> as Spec>::at(id, binding)
/// }
/// ```
pub trait Spec: Copy + sealed::Spec {}

impl<T: ?Sized> Spec for Param<T> {}
impl<T> Spec for Scalar<T> {}
impl Spec for Shape {}

impl<T: ?Sized> sealed::Spec for Param<T> {
    fn at(id: ParamId, _: &Binding) -> Self {
        Param { id, kind: PhantomData }
    }
}
impl<T> sealed::Spec for Scalar<T> {
    fn at(id: ParamId, _: &Binding) -> Self {
        Scalar { id, kind: PhantomData }
    }
}
impl sealed::Spec for Shape {
    fn at(_: ParamId, binding: &Binding) -> Self {
        match binding {
            Binding::Shape(value) => Shape(*value),
            _ => unreachable!("the types of a callable bind shapes to its shape parameters"),
        }
    }
}

/// A value that can be passed for a parameter. The trait is sealed, because the crate relies on the
/// kind of binding.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the parameter `{S}` of a callable",
    note = "pass `&buffer` or `&slice` for `Param`, a value of exactly the declared type for `Scalar`, and a `usize` or `u64` for `Shape`"
)]
pub trait Bind<S: Spec>: sealed::Bind<S> {
    /// Returns the value as a binding.
    fn bind(&self) -> Result<Binding>;

    /// Returns the identity of the memory: `Some(None)` if the value is not memory, `None` if the
    /// identity is not known.
    #[doc(hidden)]
    fn region_id(&self) -> Option<Option<RegionId>> {
        Some(None)
    }

    /// Returns whether the value equals the one passed before. `id` comes from
    /// [`region_id`](Bind::region_id).
    #[doc(hidden)]
    fn is_bound(&self, id: Option<RegionId>, before: &Binding) -> bool;
}

impl<T: Element, M: Memory<T>> Bind<Param<[T]>> for &M {
    #[inline]
    fn bind(&self) -> Result<Binding> {
        bind_memory(self.region()?)
    }

    #[inline]
    fn region_id(&self) -> Option<Option<RegionId>> {
        Memory::region_id(*self).map(Some)
    }

    #[inline]
    fn is_bound(&self, id: Option<RegionId>, before: &Binding) -> bool {
        matches!(before, Binding::Memory(before) if id == RegionId::of(before))
    }
}

impl<T: Element, M: Memory<T>> Bind<Param<T>> for &M {
    fn bind(&self) -> Result<Binding> {
        if self.len() != 1 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("one value was expected, the memory has {}; take a slice of one", self.len()),
            ));
        }
        bind_memory(self.region()?)
    }

    #[inline]
    fn region_id(&self) -> Option<Option<RegionId>> {
        Memory::region_id(*self).map(Some)
    }

    #[inline]
    fn is_bound(&self, id: Option<RegionId>, before: &Binding) -> bool {
        matches!(before, Binding::Memory(before) if id == RegionId::of(before))
    }
}

fn bind_memory(region: Region) -> Result<Binding> {
    check_memory(&region)?;
    Ok(Binding::Memory(region))
}

#[inline]
fn check_memory(region: &Region) -> Result<()> {
    if matches!(region.base, Base::Allocation(_)) && region.bytes != 0 {
        Ok(())
    } else {
        refuse_memory(region)
    }
}

#[cold]
fn refuse_memory(region: &Region) -> Result<()> {
    if !matches!(region.base, Base::Allocation(_)) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the memory of an alloc node exists only inside its graph; call with a buffer",
        ));
    }
    Err(Error::new(ErrorKind::InvalidArgument, "the array has no elements; a callable needs at least one"))
}

impl<T: Pod> Bind<Scalar<T>> for T {
    #[inline]
    fn bind(&self) -> Result<Binding> {
        Ok(Binding::Value(SmallVec::from_slice(bytemuck::bytes_of(self))))
    }

    #[inline]
    fn is_bound(&self, _: Option<RegionId>, before: &Binding) -> bool {
        matches!(before, Binding::Value(before) if before.as_slice() == bytemuck::bytes_of(self))
    }
}

impl Bind<Shape> for u64 {
    fn bind(&self) -> Result<Binding> {
        Ok(Binding::Shape(*self))
    }

    #[inline]
    fn is_bound(&self, _: Option<RegionId>, before: &Binding) -> bool {
        matches!(before, Binding::Shape(before) if before == self)
    }
}

impl Bind<Shape> for usize {
    fn bind(&self) -> Result<Binding> {
        Ok(Binding::Shape(*self as u64))
    }

    #[inline]
    fn is_bound(&self, _: Option<RegionId>, before: &Binding) -> bool {
        matches!(before, Binding::Shape(before) if *before == *self as u64)
    }
}

/// The values that a call passes for all parameters.
pub type Bindings = SmallVec<[Binding; 6]>;

/// The parameters of a callable: a tuple of up to 16 [`Spec`]s.
pub trait Specs: Copy + sealed::Specs {}

/// The arguments of a call: a tuple with one value for each parameter.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the callable's parameters `{S}`",
    note = "pass a tuple with one value for each parameter; a single argument is written `(value,)`"
)]
pub trait BindAll<S: Specs>: sealed::BindAll<S> {
    /// Returns the bindings. An error names the wrong argument.
    fn bind_all(&self) -> Result<Bindings>;

    /// Returns the binding of one parameter.
    #[doc(hidden)]
    fn bind_one(&self, index: usize) -> Result<Binding>;

    /// Calls `take` with a function that compares these arguments with earlier ones and returns a
    /// bit for each that differs. Returns `None` if the identity of some memory is not known.
    #[doc(hidden)]
    fn compare<R>(&self, take: impl FnOnce(&dyn Fn(&[Binding]) -> u64) -> R) -> Option<R>;
}

pub(super) mod sealed {
    use super::{Binding, Origin, ParamId};

    pub trait Bind<S> {}
    pub trait BindAll<S> {}

    pub trait Spec: Copy {
        /// Creates the parameter `id` of a build whose call passed this binding.
        fn at(id: ParamId, binding: &Binding) -> Self;
    }

    pub trait Specs: Copy {
        /// Creates the parameters of a build whose call passed these bindings.
        fn of(origin: Origin, bindings: &[Binding]) -> Self;
    }
}

impl<T: Element, M: Memory<T>> sealed::Bind<Param<[T]>> for &M {}
impl<T: Element, M: Memory<T>> sealed::Bind<Param<T>> for &M {}
impl<T: Pod> sealed::Bind<Scalar<T>> for T {}
impl sealed::Bind<Shape> for u64 {}
impl sealed::Bind<Shape> for usize {}

macro_rules! tuples {
    ($($S:ident $V:ident $index:tt),*) => {
        impl<$($S: Spec),*> Specs for ($($S,)*) {}
        impl<$($S: Spec),*> sealed::Specs for ($($S,)*) {
            #[allow(unused_variables, clippy::unused_unit, reason = "the empty tuple has no parameters")]
            fn of(origin: Origin, bindings: &[Binding]) -> Self {
                ($($S::at(ParamId { origin, index: $index }, &bindings[$index]),)*)
            }
        }
        impl<$($S: Spec, $V: Bind<$S>),*> sealed::BindAll<($($S,)*)> for ($($V,)*) {}
        impl<$($S: Spec, $V: Bind<$S>),*> BindAll<($($S,)*)> for ($($V,)*) {
            fn bind_all(&self) -> Result<Bindings> {
                Ok([$(
                    self.$index.bind().map_err(|error| error.context(concat!("argument ", $index)))?
                ),*].into_iter().collect::<Bindings>())
            }

            #[inline]
            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            fn bind_one(&self, index: usize) -> Result<Binding> {
                match index {
                    $($index => {
                        self.$index.bind().map_err(|error| error.context(concat!("argument ", $index)))
                    })*
                    _ => unreachable!("the arguments of a callable are as many as its parameters"),
                }
            }

            #[inline]
            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            fn compare<R>(&self, take: impl FnOnce(&dyn Fn(&[Binding]) -> u64) -> R) -> Option<R> {
                // Asked before anything is locked, because it may run user code.
                let ids: [Option<RegionId>; _] = [$(self.$index.region_id()?),*];
                Some(take(&|before| {
                    0u64 $(| u64::from(!self.$index.is_bound(ids[$index], &before[$index])) << $index)*
                }))
            }
        }
    };
}
for_tuples!(tuples, 16);
