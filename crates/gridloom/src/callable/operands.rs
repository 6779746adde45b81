//! The operands of operations in a callable: memory, kernel arguments and launch shapes that are
//! either fixed or depend on the parameters.

use std::sync::Arc;

use bytemuck::Pod;
use gridloom_core::executable::Changes;
use gridloom_core::graph::NodeKey;
use gridloom_core::memory::Region;
use gridloom_core::op::{ArgValue, PointerValue};
use smallvec::SmallVec;

use super::params::{Binding, Length, Param, ParamId, Scalar};
use crate::buffer::{Buffer, BufferSlice, Element, Memory};
use crate::kernel::{Len, Null, Nullable, Parameter, Parameters, Pointer, Ptr, PtrMut, length};
use crate::tuples::for_tuples;
use crate::{Error, ErrorKind, LaunchConfig, Result};

/// Memory that an operation of a callable uses: a parameter, or a buffer that is the same in every
/// call.
///
/// # Safety
/// [`slot`](CallMemory::slot) is a parameter of elements `T`, or a region that is aligned for them.
pub unsafe trait CallMemory<T> {
    /// Returns where the memory comes from.
    fn slot(&self) -> Result<MemorySlot>;
}

/// Where the memory of an operation comes from.
#[derive(Clone, Debug)]
pub enum MemorySlot {
    /// A parameter.
    #[non_exhaustive]
    Param(ParamId),
    /// The same memory in every call.
    #[non_exhaustive]
    Fixed(Region),
}

impl MemorySlot {
    /// Returns the parameter it comes from.
    pub(super) fn param(&self) -> Option<ParamId> {
        match self {
            MemorySlot::Param(param) => Some(*param),
            MemorySlot::Fixed(_) => None,
        }
    }

    pub(super) fn follows(&self) -> u64 {
        match self {
            MemorySlot::Param(param) => param.bit(),
            MemorySlot::Fixed(_) => 0,
        }
    }

    pub(super) fn region<'a>(&'a self, bindings: &'a [Binding]) -> &'a Region {
        match self {
            MemorySlot::Param(param) => bindings[param.index].region(),
            MemorySlot::Fixed(region) => region,
        }
    }

    /// Returns where the memory of a call comes from and how many elements it has, for errors.
    pub(super) fn described<T>(&self, bindings: &[Binding]) -> String {
        let elements = match self.region(bindings).bytes / size_of::<T>().max(1) as u64 {
            1 => "1 element".to_owned(),
            elements => format!("{elements} elements"),
        };
        match self {
            MemorySlot::Param(param) => format!("{param} ({elements})"),
            MemorySlot::Fixed(_) => format!("a buffer that the closure chose ({elements})"),
        }
    }
}

// SAFETY: a parameter of these elements.
unsafe impl<T: Element> CallMemory<T> for Param<[T]> {
    fn slot(&self) -> Result<MemorySlot> {
        Ok(MemorySlot::Param(self.id))
    }
}
// SAFETY: a parameter of these elements.
unsafe impl<T: Element> CallMemory<T> for Param<T> {
    fn slot(&self) -> Result<MemorySlot> {
        Ok(MemorySlot::Param(self.id))
    }
}
// SAFETY: aligned by the promise of `Memory`.
unsafe impl<T: Element> CallMemory<T> for Buffer<T> {
    fn slot(&self) -> Result<MemorySlot> {
        self.region().map(MemorySlot::Fixed)
    }
}
// SAFETY: aligned by the promise of `Memory`.
unsafe impl<T: Element> CallMemory<T> for BufferSlice<T> {
    fn slot(&self) -> Result<MemorySlot> {
        self.region().map(MemorySlot::Fixed)
    }
}

/// Where a kernel argument comes from.
#[derive(Clone, Debug)]
pub enum Slot {
    /// The same value in every call.
    Fixed(ArgValue),
    /// The address of memory.
    Memory(MemorySlot),
    /// The bytes of a scalar parameter.
    #[non_exhaustive]
    Scalar(ParamId),
    /// The length of an array parameter, as an integer of this many bytes; signed if `true`.
    Length(Length, usize, bool),
}

impl Slot {
    /// Returns the number of elements of an array parameter, as a `u64`.
    pub(crate) fn length_of<T>(param: ParamId) -> Self {
        Slot::Length(Length::of::<T>(param), 8, false)
    }

    /// Returns the parameter it comes from.
    pub(super) fn param(&self) -> Option<ParamId> {
        match self {
            Slot::Fixed(_) => None,
            Slot::Memory(memory) => memory.param(),
            Slot::Scalar(param) => Some(*param),
            Slot::Length(length, ..) => Some(length.param),
        }
    }

    pub(super) fn follows(&self) -> u64 {
        match self {
            Slot::Fixed(_) => 0,
            Slot::Memory(memory) => memory.follows(),
            Slot::Scalar(param) => param.bit(),
            Slot::Length(length, ..) => length.param.bit(),
        }
    }

    /// Returns the argument for one call.
    pub(super) fn value(&self, bindings: &[Binding]) -> Result<ArgValue> {
        Ok(match self {
            Slot::Fixed(value) => value.clone(),
            Slot::Memory(memory) => ArgValue::Pointer(PointerValue::Region(memory.region(bindings).clone())),
            Slot::Scalar(param) => ArgValue::plain(bindings[param.index].value()),
            Slot::Length(length, bytes, signed) => {
                ArgValue::plain(&length_bytes(length.elements(bindings), *bytes, *signed)?[..*bytes])
            }
        })
    }

    /// Writes the argument of a call to a node of an executable.
    ///
    /// # Safety
    /// As for [`Changes::argument`].
    #[inline]
    pub(super) unsafe fn write(
        &self,
        changes: &mut Changes<'_>,
        (node, index): (NodeKey, u32),
        bindings: &[Binding],
    ) -> Result<()> {
        // SAFETY: the caller makes the same promise.
        unsafe {
            match self {
                Slot::Fixed(value) => changes.argument(node, index, value),
                Slot::Memory(memory) => changes.memory(node, index, memory.region(bindings)),
                Slot::Scalar(param) => changes.plain(node, index, bindings[param.index].value()),
                Slot::Length(length, bytes, signed) => {
                    let elements = length_bytes(length.elements(bindings), *bytes, *signed)?;
                    changes.plain(node, index, &elements[..*bytes])
                }
            }
        }
    }
}

/// Returns a length as an integer of `bytes` bytes, signed or not, at the start of the array.
#[inline]
fn length_bytes(elements: u64, bytes: usize, signed: bool) -> Result<[u8; 8]> {
    let bits = 8 * bytes as u32 - u32::from(signed);
    if bits < 64 && elements >> bits != 0 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("an array of {elements} elements, whose length does not fit a parameter of {bits} bits"),
        ));
    }
    Ok(elements.to_le_bytes())
}

/// A value that can be passed for a kernel parameter of type `P` inside a callable.
///
/// ```compile_fail,E0200
/// # use gridloom::callable::{CallArg, Slot};
/// # use gridloom::kernel::PtrMut;
/// struct Anywhere(u64);
///
/// impl CallArg<PtrMut<f32>> for Anywhere {
///     fn slot(self) -> gridloom::Result<Slot> {
///         CallArg::<u64>::slot(self.0)
///     }
/// }
/// ```
///
/// # Safety
/// In every call, [`slot`](CallArg::slot) yields a value that [`IntoArg`](crate::kernel::IntoArg)
/// requires for `P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter of type `{P}` inside a callable",
    note = "pass `&param` or `&buffer` for a pointer, `&scalar` or a plain value of exactly the declared type, or `param.len()` or an integer for a length"
)]
pub unsafe trait CallArg<P: Parameter> {
    /// Returns where the argument comes from.
    fn slot(self) -> Result<Slot>;
}

// SAFETY: the bytes of a value of the type.
unsafe impl<T: Pod> CallArg<T> for T {
    fn slot(self) -> Result<Slot> {
        Ok(Slot::Fixed(ArgValue::Bytes(SmallVec::from_slice(bytemuck::bytes_of(&self)))))
    }
}
// SAFETY: a call gives a value of the type for the parameter.
unsafe impl<T: Pod> CallArg<T> for &Scalar<T> {
    fn slot(self) -> Result<Slot> {
        Ok(Slot::Scalar(self.id))
    }
}
macro_rules! memory_is_given_for {
    ($($pointer:ty),*) => {$(
        // SAFETY: memory of these elements, by the promise of `CallMemory`.
        unsafe impl<T: Element, M: CallMemory<T>> CallArg<$pointer> for &M {
            fn slot(self) -> Result<Slot> {
                CallMemory::slot(self).map(Slot::Memory)
            }
        }
    )*};
}
memory_is_given_for!(Ptr<T>, PtrMut<T>, Nullable<Ptr<T>>, Nullable<PtrMut<T>>);

// SAFETY: the null address.
unsafe impl<P: Pointer> CallArg<Nullable<P>> for Null {
    fn slot(self) -> Result<Slot> {
        CallArg::<u64>::slot(0u64)
    }
}
macro_rules! lengths {
    ($($integer:ty, $signed:literal: $($given:ty),*;)*) => {$(
        // SAFETY: the bytes of an integer of this size.
        unsafe impl CallArg<$integer> for Length {
            fn slot(self) -> Result<Slot> {
                Ok(Slot::Length(self, size_of::<$integer>(), $signed))
            }
        }
        // SAFETY: the bytes of an integer of this size.
        unsafe impl CallArg<Len<$integer>> for Length {
            fn slot(self) -> Result<Slot> {
                Ok(Slot::Length(self, size_of::<$integer>(), $signed))
            }
        }
        // SAFETY: a call gives a value of the type for the parameter.
        unsafe impl CallArg<Len<$integer>> for &Scalar<$integer> {
            fn slot(self) -> Result<Slot> {
                Ok(Slot::Scalar(self.id))
            }
        }
        $(
            // SAFETY: the bytes of a value of the type.
            unsafe impl CallArg<Len<$integer>> for $given {
                fn slot(self) -> Result<Slot> {
                    CallArg::<$integer>::slot(length::<$integer, _>(self)?)
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

/// Arguments for the parameters `P` of a kernel inside a callable: a tuple of values.
///
/// # Safety
/// [`slots`](CallArguments::slots) yields, for each parameter, what [`CallArg`] requires for its
/// type.
pub unsafe trait CallArguments<P: Parameters> {
    /// Returns where each argument comes from.
    fn slots(self) -> Result<SmallVec<[Slot; 8]>>;
}

macro_rules! tuples {
    ($($P:ident $V:ident $index:tt),*) => {
        // SAFETY: each slot is one for its parameter, by the promise of `CallArg`.
        unsafe impl<$($P: Parameter, $V: CallArg<$P>),*> CallArguments<($($P,)*)> for ($($V,)*) {
            fn slots(self) -> Result<SmallVec<[Slot; 8]>> {
                Ok([$(self.$index.slot()?),*].into_iter().collect::<SmallVec<[Slot; 8]>>())
            }
        }
    };
}
for_tuples!(tuples, 24);

/// Computes the shape of a launch from lengths.
type ShapeFn = Arc<dyn Fn(&[usize]) -> LaunchConfig + Send + Sync>;

/// The launch shape of a kernel inside a callable.
#[derive(Clone)]
pub enum LaunchShape {
    /// The same shape in every call.
    Fixed(LaunchConfig),
    /// One thread for each element of an array parameter.
    PerElement(Length),
    /// Computed from the lengths of parameters.
    Computed(SmallVec<[Length; 4]>, ShapeFn),
}

/// Returns a launch shape with one thread for each element of an array parameter, in blocks of
/// [`LaunchConfig::LINEAR_BLOCK`].
pub fn per_element<T: Element>(param: &Param<[T]>) -> LaunchShape {
    LaunchShape::PerElement(param.len())
}

/// Returns a launch shape that is computed from the lengths of array parameters:
/// `shape_of([x.len(), y.len()], |lengths| …)`.
///
/// The function is called when the graph is built, and again by calls with other lengths. It must
/// return the same shape for the same lengths, and calls no callable. If it panics, the call does
/// nothing.
pub fn shape_of(
    lengths: impl IntoIterator<Item = Length>,
    shape: impl Fn(&[usize]) -> LaunchConfig + Send + Sync + 'static,
) -> LaunchShape {
    LaunchShape::Computed(lengths.into_iter().collect(), Arc::new(shape))
}

impl From<LaunchConfig> for LaunchShape {
    fn from(config: LaunchConfig) -> Self {
        LaunchShape::Fixed(config)
    }
}

impl LaunchShape {
    /// Returns the parameters whose lengths determine the shape.
    pub(super) fn params(&self) -> SmallVec<[ParamId; 4]> {
        match self {
            LaunchShape::Fixed(_) => SmallVec::new(),
            LaunchShape::PerElement(length) => SmallVec::from_slice(&[length.param]),
            LaunchShape::Computed(lengths, _) => lengths.iter().map(|length| length.param).collect(),
        }
    }

    pub(super) fn follows(&self) -> u64 {
        match self {
            LaunchShape::Fixed(_) => 0,
            LaunchShape::PerElement(length) => length.param.bit(),
            LaunchShape::Computed(lengths, _) => {
                lengths.iter().fold(0, |follows, length| follows | length.param.bit())
            }
        }
    }

    pub(super) fn config(&self, bindings: &[Binding]) -> Result<LaunchConfig> {
        let elements = |length: &Length| length.elements(bindings) as usize;
        Ok(match self {
            LaunchShape::Fixed(config) => *config,
            LaunchShape::PerElement(length) => LaunchConfig::linear(elements(length)),
            LaunchShape::Computed(lengths, shape) => {
                shape(&lengths.iter().map(elements).collect::<SmallVec<[usize; 4]>>())
            }
        })
    }
}
