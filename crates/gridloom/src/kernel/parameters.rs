//! The types that kernel parameters are declared with, and the values that can be passed for each.

use std::marker::PhantomData;

use bytemuck::Pod;
use gridloom_core::executable::ArgWriter;
use gridloom_core::op::contract::{Integer, ParamKind, ParamType};
use gridloom_core::op::{ArgPacker, ArgValue, PointerValue};

use crate::buffer::{Element, Memory};
use crate::{Condition, Error, ErrorKind, Result};

/// A kernel parameter: the address of elements that the kernel only reads.
///
/// The memory has at least one element, and at least as many as every [`Len`] of the kernel says,
/// unless the kernel's [contract](crate::contract) says otherwise.
pub struct Ptr<T>(PhantomData<fn() -> T>);

/// A kernel parameter: the address of elements that the kernel reads and writes.
///
/// The memory has at least one element, and at least as many as every [`Len`] of the kernel says,
/// unless the kernel's [contract](crate::contract) says otherwise.
pub struct PtrMut<T>(PhantomData<fn() -> T>);

/// A kernel parameter: a [`Ptr`] or [`PtrMut`] that may also be [`Null`], because the kernel tests
/// for it.
///
/// ```
/// # use gridloom::prelude::*;
/// fn add(stream: &Stream, add: &Kernel<(PtrMut<f32>, Nullable<Ptr<f32>>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
///     stream.launch(add, LaunchConfig::linear(x.len()), (x, Null, x.len()))
/// }
/// ```
///
/// Other pointers cannot be null:
///
/// ```compile_fail,E0277
/// # use gridloom::prelude::*;
/// fn add(stream: &Stream, add: &Kernel<(PtrMut<f32>, Ptr<f32>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
///     stream.launch(add, LaunchConfig::linear(x.len()), (x, Null, x.len()))
/// }
/// ```
pub struct Nullable<P>(PhantomData<fn() -> P>);

/// A kernel parameter: the number of elements that the kernel uses of each pointer, as a `u32`,
/// `i32`, `u64` or `i64`.
///
/// A launch with shorter memory is refused on every device before anything runs. Any integer can be
/// passed for it, if its value fits:
///
/// ```
/// use gridloom::prelude::*;
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let module = device.load_ptx(gridloom::demo_kernels::HEAT)?;
/// // SAFETY: heat_step reads `n` floats from its second argument and writes `n` to its first.
/// let step = unsafe { module.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")? };
/// let (out, x) = (device.alloc::<f32>(8)?, device.buffer_from(&[1.0f32; 8])?);
/// let stream = device.stream()?;
/// stream.launch(&step, LaunchConfig::linear(8), (&out, &x, x.len(), 0.4))?;
///
/// let error = stream.launch(&step, LaunchConfig::linear(9), (&out, &x, 9, 0.4)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::ContractViolation);
/// # stream.synchronize()
/// # }
/// ```
pub struct Len<T>(PhantomData<fn() -> T>);

/// A kernel parameter: the handle of a condition, for `cudaGraphSetConditional`.
pub struct ConditionHandle(());

/// An argument for a [`Nullable`] parameter: the null pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Null;

mod sealed {
    pub trait Parameter {}
    pub trait Pointer {
        const ELEMENT_SIZE: usize;
        const WRITTEN: bool;
    }
}

/// A type of kernel parameter: a plain value, [`Ptr`], [`PtrMut`], [`Nullable`], [`Len`] or
/// [`ConditionHandle`]. The trait is sealed, because launches are checked by it.
pub trait Parameter: sealed::Parameter {
    /// The size in the kernel's parameter list, in bytes.
    const SIZE: usize;

    /// Returns the type, for checks at run time.
    #[doc(hidden)]
    fn param_type() -> ParamType;
}

/// A pointer parameter: [`Ptr`] or [`PtrMut`].
pub trait Pointer: sealed::Pointer + 'static {}

impl<T: 'static> sealed::Pointer for Ptr<T> {
    const ELEMENT_SIZE: usize = size_of::<T>();
    const WRITTEN: bool = false;
}
impl<T: 'static> sealed::Pointer for PtrMut<T> {
    const ELEMENT_SIZE: usize = size_of::<T>();
    const WRITTEN: bool = true;
}
impl<T: 'static> Pointer for Ptr<T> {}
impl<T: 'static> Pointer for PtrMut<T> {}

/// Returns the type of a pointer parameter.
fn pointer<P: Pointer>(nullable: bool) -> ParamType {
    let element_size = u32::try_from(P::ELEMENT_SIZE).unwrap_or(u32::MAX);
    ParamType::of::<P>(ParamKind::Pointer { element_size, nullable, written: P::WRITTEN })
}

impl<T: Pod> sealed::Parameter for T {}
impl<T: Pod> Parameter for T {
    const SIZE: usize = size_of::<T>();

    fn param_type() -> ParamType {
        ParamType::value::<T>()
    }
}

impl<T: 'static> sealed::Parameter for Ptr<T> {}
impl<T: 'static> Parameter for Ptr<T> {
    const SIZE: usize = 8;

    fn param_type() -> ParamType {
        pointer::<Self>(false)
    }
}

impl<T: 'static> sealed::Parameter for PtrMut<T> {}
impl<T: 'static> Parameter for PtrMut<T> {
    const SIZE: usize = 8;

    fn param_type() -> ParamType {
        pointer::<Self>(false)
    }
}

impl<P: Pointer> sealed::Parameter for Nullable<P> {}
impl<P: Pointer> Parameter for Nullable<P> {
    const SIZE: usize = 8;

    fn param_type() -> ParamType {
        pointer::<P>(true)
    }
}

impl sealed::Parameter for ConditionHandle {}
impl Parameter for ConditionHandle {
    const SIZE: usize = 8;

    fn param_type() -> ParamType {
        ParamType::of::<ConditionHandle>(ParamKind::Condition)
    }
}

/// A value that can be passed for a parameter of type `P`.
///
/// A kernel accesses what its pointers point to, so an implementation of this trait is `unsafe`:
///
/// ```compile_fail,E0200
/// # use gridloom::kernel::{IntoArg, PtrMut};
/// # use gridloom::op::ArgValue;
/// struct Anywhere(u64);
///
/// impl IntoArg<PtrMut<f32>> for Anywhere {
///     fn into_arg(self) -> gridloom::Result<ArgValue> {
///         IntoArg::<u64>::into_arg(self.0)
///     }
/// }
/// ```
///
/// # Safety
/// [`into_arg`](IntoArg::into_arg), [`pack`](IntoArg::pack) and [`write`](IntoArg::write) yield the
/// same value of type `P`:
///
/// - For [`Ptr`] and [`PtrMut`], a region that is aligned for the element. For unchecked launches
///   only, it may instead be the bytes of an address of such elements, which stay valid for as long
///   as anything that received the argument exists or runs.
/// - For [`Nullable`], the same or the null address.
/// - For [`Len`], the bytes of a value of its type.
/// - For [`ConditionHandle`], a condition.
/// - For a plain type, the bytes of a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter of type `{P}`",
    note = "pass `&buffer`, `&slice` or `&alloc` for a pointer, also `Null` where it is `Nullable`, `&condition` for a condition, any integer for a `Len`, and a value of exactly the declared type for a plain parameter"
)]
pub unsafe trait IntoArg<P: Parameter> {
    /// Returns the argument, with the objects it refers to.
    fn into_arg(self) -> Result<ArgValue>;

    /// Writes the argument over the one that a node of an executable has. The executable is locked
    /// meanwhile and must not be called.
    #[inline]
    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()>
    where
        Self: Sized,
    {
        writer.value(self.into_arg()?)
    }

    /// Packs the argument into a launch, without an intermediate value.
    #[inline]
    fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()>
    where
        Self: Sized,
    {
        packer.push(self.into_arg()?)
    }
}

// SAFETY: the bytes of a value of the type.
unsafe impl<T: Pod> IntoArg<T> for T {
    #[inline]
    fn into_arg(self) -> Result<ArgValue> {
        Ok(ArgValue::plain(bytemuck::bytes_of(&self)))
    }

    #[inline]
    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
        writer.plain(bytemuck::bytes_of(&self))
    }

    #[inline]
    fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()> {
        packer.push_bytes(bytemuck::bytes_of(&self))
    }
}

macro_rules! memory_is_given_for {
    ($($pointer:ty),*) => {$(
        // SAFETY: memory of elements is aligned for them, by the promise of `Memory`.
        unsafe impl<T: Element, M: Memory<T>> IntoArg<$pointer> for &M {
            #[inline]
            fn into_arg(self) -> Result<ArgValue> {
                Ok(ArgValue::Pointer(PointerValue::Region(self.region()?)))
            }

            #[inline]
            fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
                writer.memory(self.region_id(), || self.region())
            }

            #[inline]
            fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()> {
                packer.push_pointer(|| Ok(PointerValue::Region(self.region()?)))
            }
        }
    )*};
}
memory_is_given_for!(Ptr<T>, PtrMut<T>, Nullable<Ptr<T>>, Nullable<PtrMut<T>>);

// SAFETY: the null address.
unsafe impl<P: Pointer> IntoArg<Nullable<P>> for Null {
    fn into_arg(self) -> Result<ArgValue> {
        IntoArg::<u64>::into_arg(0u64)
    }
}

// SAFETY: a condition.
unsafe impl IntoArg<ConditionHandle> for &Condition {
    fn into_arg(self) -> Result<ArgValue> {
        Ok(ArgValue::Pointer(PointerValue::Condition(self.key())))
    }
}

/// Returns the bytes of a length that was passed as another integer type.
#[inline]
pub(crate) fn length<T: Pod, V: Copy + TryInto<T> + std::fmt::Display>(value: V) -> Result<T> {
    value.try_into().map_err(|_| length_does_not_fit::<T>(&value))
}

#[cold]
fn length_does_not_fit<T>(value: &dyn std::fmt::Display) -> Error {
    let name = std::any::type_name::<T>();
    Error::new(
        ErrorKind::InvalidArgument,
        format!("a length of {value} does not fit a parameter Len<{name}>"),
    )
}

macro_rules! lengths {
    ($($length:ty, $signed:literal: $($given:ty),*;)*) => {$(
        impl sealed::Parameter for Len<$length> {}
        impl Parameter for Len<$length> {
            const SIZE: usize = size_of::<$length>();

            fn param_type() -> ParamType {
                let integer = Integer { bytes: size_of::<$length>() as u8, signed: $signed };
                ParamType::of::<$length>(ParamKind::Length(integer))
            }
        }
        $(
            // SAFETY: the bytes of a value of the type.
            unsafe impl IntoArg<Len<$length>> for $given {
                #[inline]
                fn into_arg(self) -> Result<ArgValue> {
                    IntoArg::<$length>::into_arg(length::<$length, _>(self)?)
                }

                #[inline]
                fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
                    IntoArg::<$length>::write(length::<$length, _>(self)?, writer)
                }

                #[inline]
                fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()> {
                    IntoArg::<$length>::pack(length::<$length, _>(self)?, packer)
                }
            }
        )*
    )*};
}
lengths!(
    u32, false: u32, i32, u64, i64, usize;
    i32, true: u32, i32, u64, i64, usize;
    u64, false: u32, i32, u64, i64, usize;
    i64, true: u32, i32, u64, i64, usize;
);
