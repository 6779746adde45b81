//! The parameters of a callable: how its closure names them, and what a call gives for them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use gridloom_core::memory::{Base, Region, RegionId};
use smallvec::SmallVec;

use crate::buffer::{Element, Memory};
use crate::{Error, ErrorKind, Result};

/// The one run of a closure that parameters were made for. They mean nothing in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Origin(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Which parameter, of which run of a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamId {
    pub(super) origin: Origin,
    pub(super) index: usize,
}

impl ParamId {
    /// Its place in a set of parameters.
    pub(super) fn bit(self) -> u64 {
        1 << self.index
    }
}

/// A parameter in device memory: `Param<[T]>` stands for an array of any length, `Param<T>` for one value.
pub struct Param<T: ?Sized> {
    pub(super) id: ParamId,
    kind: PhantomData<fn() -> Box<T>>,
}

/// A parameter that is a plain value, passed to kernels.
pub struct Scalar<T> {
    pub(super) id: ParamId,
    kind: PhantomData<fn() -> T>,
}

/// A parameter that decides what is built: a call with another value uses another graph. The closure reads it with [`get`](Shape::get).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(u64);

impl Shape {
    /// The value of this call.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The length of an array parameter, to be passed to a kernel. From [`Param::len`].
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
    /// Its number of elements, for a kernel parameter that is a `u32`, `i32`, `u64` or `i64`, or a [`Len`](crate::Len) of one.
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

/// What a call gives for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// Memory.
    Memory(Region),
    /// The bytes of a plain value.
    Value(SmallVec<[u8; 16]>),
    /// A value that decides what is built.
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

/// A kind of parameter: [`Param`], [`Scalar`] or [`Shape`]. Only a callable makes parameters, of the types that its calls bind:
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

/// What can be given for a parameter. Its kind of binding is relied on, so the crate alone says what can.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for the parameter `{S}` of a callable",
    note = "give `&buffer` or `&slice` for `Param`, the very type for `Scalar`, and a `usize` or `u64` for `Shape`"
)]
pub trait Bind<S: Spec>: sealed::Bind<S> {
    /// The binding.
    fn bind(&self) -> Result<Binding>;

    /// Which memory it is, or that it is none; `None` where that cannot be told.
    #[doc(hidden)]
    fn region_id(&self) -> Option<Option<RegionId>> {
        Some(None)
    }

    /// Returns whether it is what was given before. `id` is from [`region_id`](Bind::region_id).
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
    Err(Error::new(ErrorKind::InvalidArgument, "an array without elements"))
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

/// What a call gives for all parameters.
pub type Bindings = SmallVec<[Binding; 6]>;

/// The parameters of a callable: a tuple of up to 16 [`Spec`]s.
pub trait Specs: Copy + sealed::Specs {}

/// What a call gives: a tuple with one value for each parameter.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the callable's parameters `{S}`",
    note = "give a tuple with one value for each parameter; a single argument is written `(value,)`"
)]
pub trait BindAll<S: Specs>: sealed::BindAll<S> {
    /// The bindings. An error says which argument is wrong.
    fn bind_all(&self) -> Result<Bindings>;

    /// The binding of one parameter.
    #[doc(hidden)]
    fn bind_one(&self, index: usize) -> Result<Binding>;

    /// Has `take` ask which of the arguments are not what was given before: a bit for each. `None` where some cannot be told.
    #[doc(hidden)]
    fn compare<R>(&self, take: impl FnOnce(&dyn Fn(&[Binding]) -> u64) -> R) -> Option<R>;
}

pub(super) mod sealed {
    use super::{Binding, Origin, ParamId};

    pub trait Bind<S> {}
    pub trait BindAll<S> {}

    pub trait Spec: Copy {
        /// The parameter of a call with this binding.
        fn at(id: ParamId, binding: &Binding) -> Self;
    }

    pub trait Specs: Copy {
        /// The parameters of a call with these bindings.
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
                // Asked before anything is locked: who tells may be anybody.
                let ids: [Option<RegionId>; _] = [$(self.$index.region_id()?),*];
                Some(take(&|before| {
                    0u64 $(| u64::from(!self.$index.is_bound(ids[$index], &before[$index])) << $index)*
                }))
            }
        }
    };
}
tuples!();
tuples!(S0 V0 0);
tuples!(S0 V0 0, S1 V1 1);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10, S11 V11 11);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10, S11 V11 11, S12 V12 12);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10, S11 V11 11, S12 V12 12, S13 V13 13);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10, S11 V11 11, S12 V12 12, S13 V13 13, S14 V14 14);
tuples!(S0 V0 0, S1 V1 1, S2 V2 2, S3 V3 3, S4 V4 4, S5 V5 5, S6 V6 6, S7 V7 7, S8 V8 8, S9 V9 9, S10 V10 10, S11 V11 11, S12 V12 12, S13 V13 13, S14 V14 14, S15 V15 15);
