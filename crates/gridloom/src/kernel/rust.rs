//! Kernels written in Rust: their parameters, and the values that launches pass for them.

use std::any::TypeId;
use std::marker::PhantomData;

use bytemuck::Pod;
use gridloom_core::executable::ArgWriter;
use gridloom_core::op::contract::{Axis, Contract, Integer, ParamKind, ParamType, arg, block, grid};
use gridloom_core::op::{ArgPacker, ArgValue, PointerValue};
use gridloom_kernel::record;
pub use gridloom_kernel::record::{Conditional, Read, Share, Value, Write};
use smallvec::SmallVec;

use super::{Arguments, ConditionHandle, IntoArg, Kernel, Parameters, Ptr, PtrMut, sealed};
use crate::buffer::{Element, Memory};
use crate::callable::{CallArg, CallArguments, CallMemory, MemorySlot, Slot};
use crate::device::Device;
use crate::graph::Condition;
use crate::tuples::for_tuples;
use crate::{Error, ErrorKind, Result};

/// The parameters of a kernel written in Rust: a tuple of [`Value`], [`Read`], [`Write`], [`Share`]
/// and [`Conditional`].
///
/// A launch passes a plain value for a [`Value`], a condition for a [`Conditional`], and memory for
/// the others. The length of the memory is passed to the kernel with the address.
pub struct RustParams<P>(PhantomData<fn() -> P>);

/// A parameter of a kernel written in Rust. In PTX it is one parameter, or two: an address and a
/// length.
pub trait RustParam: sealed_rust::RustParam + 'static {
    /// The sizes of its PTX parameters in bytes. The second is 0 if there is only one.
    #[doc(hidden)]
    const SIZES: [usize; 2];

    /// Returns the types of its PTX parameters.
    #[doc(hidden)]
    fn param_types() -> SmallVec<[ParamType; 2]>;

    /// Whether the parameter is memory that the kernel writes.
    #[doc(hidden)]
    const IS_WRITTEN: bool = false;
}

mod sealed_rust {
    pub trait RustParam {}
}

impl<T: Pod> sealed_rust::RustParam for Value<T> {}
impl<T: Pod> RustParam for Value<T> {
    const SIZES: [usize; 2] = [size_of::<T>(), 0];

    fn param_types() -> SmallVec<[ParamType; 2]> {
        SmallVec::from_slice(&[ParamType::value::<T>()])
    }
}

fn memory_types<P: 'static>(element_size: usize, written: bool) -> SmallVec<[ParamType; 2]> {
    let element_size = u32::try_from(element_size).unwrap_or(u32::MAX);
    let length = ParamKind::Value(Some(Integer { bytes: 8, signed: false }));
    SmallVec::from_slice(&[
        ParamType::of::<P>(ParamKind::Pointer { element_size, nullable: false, written }),
        ParamType::of::<u64>(length),
    ])
}

impl<T: Element> sealed_rust::RustParam for Read<T> {}
impl<T: Element> RustParam for Read<T> {
    const SIZES: [usize; 2] = [8, 8];

    fn param_types() -> SmallVec<[ParamType; 2]> {
        memory_types::<Ptr<T>>(size_of::<T>(), Self::IS_WRITTEN)
    }
}

impl<T: Element> sealed_rust::RustParam for Write<T> {}
impl<T: Element> RustParam for Write<T> {
    const SIZES: [usize; 2] = [8, 8];
    const IS_WRITTEN: bool = true;

    fn param_types() -> SmallVec<[ParamType; 2]> {
        memory_types::<PtrMut<T>>(size_of::<T>(), Self::IS_WRITTEN)
    }
}

impl<T: Element> sealed_rust::RustParam for Share<T> {}
impl<T: Element> RustParam for Share<T> {
    const SIZES: [usize; 2] = [8, 8];
    const IS_WRITTEN: bool = true;

    fn param_types() -> SmallVec<[ParamType; 2]> {
        memory_types::<PtrMut<T>>(size_of::<T>(), Self::IS_WRITTEN)
    }
}

impl sealed_rust::RustParam for Conditional {}
impl RustParam for Conditional {
    const SIZES: [usize; 2] = [8, 0];

    fn param_types() -> SmallVec<[ParamType; 2]> {
        SmallVec::from_slice(&[ParamType::of::<ConditionHandle>(ParamKind::Condition)])
    }
}

/// A value that can be passed for a parameter of a kernel written in Rust.
///
/// # Safety
/// As for [`IntoArg`], for each PTX parameter in turn. A length is at most that of the memory
/// before it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter of type `{P}`",
    note = "pass `&buffer`, `&slice` or `&alloc` for memory, and a value of exactly the declared type for a plain parameter"
)]
pub unsafe trait IntoRustArg<P: RustParam> {
    /// Returns the arguments, with the objects they refer to.
    #[doc(hidden)]
    fn into_args(self) -> Result<SmallVec<[ArgValue; 2]>>;

    /// Writes the arguments over those of a node of an executable.
    #[doc(hidden)]
    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()>;
}

// SAFETY: the bytes of a value of the type.
unsafe impl<T: Pod> IntoRustArg<Value<T>> for T {
    fn into_args(self) -> Result<SmallVec<[ArgValue; 2]>> {
        Ok(SmallVec::from_iter([IntoArg::<T>::into_arg(self)?]))
    }

    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
        IntoArg::<T>::write(self, writer)
    }
}

macro_rules! memory_is_given_for {
    ($($param:ident),*) => {$(
        // SAFETY: memory of elements is aligned for them and as long as it says (`Memory`). The
        // contract checks the length.
        unsafe impl<T: Element, M: Memory<T>> IntoRustArg<$param<T>> for &M {
            fn into_args(self) -> Result<SmallVec<[ArgValue; 2]>> {
                let length = ArgValue::plain(&(self.len() as u64).to_ne_bytes());
                Ok(SmallVec::from_iter([ArgValue::Pointer(PointerValue::Region(self.region()?)), length]))
            }

            fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
                writer.memory(self.region_id(), || self.region())?;
                writer.plain(&(self.len() as u64).to_ne_bytes())
            }
        }
    )*};
}
memory_is_given_for!(Read, Write, Share);

// SAFETY: a condition.
unsafe impl IntoRustArg<Conditional> for &Condition {
    fn into_args(self) -> Result<SmallVec<[ArgValue; 2]>> {
        Ok(SmallVec::from_iter([IntoArg::<ConditionHandle>::into_arg(self)?]))
    }

    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
        IntoArg::<ConditionHandle>::write(self, writer)
    }
}

/// A value that can be passed for a parameter of a kernel written in Rust, inside a callable.
///
/// # Safety
/// As for [`IntoRustArg`], in every call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter of type `{P}` inside a callable",
    note = "pass `&param` or `&buffer` for memory, `&scalar` or a plain value of exactly the declared type"
)]
pub unsafe trait CallRustArg<P: RustParam> {
    /// Returns where the arguments come from.
    #[doc(hidden)]
    fn slots(self) -> Result<SmallVec<[Slot; 2]>>;
}

// SAFETY: as its `CallArg`.
unsafe impl<T: Pod, V: CallArg<T>> CallRustArg<Value<T>> for V {
    fn slots(self) -> Result<SmallVec<[Slot; 2]>> {
        Ok(SmallVec::from_iter([self.slot()?]))
    }
}

macro_rules! call_memory_is_given_for {
    ($($param:ident),*) => {$(
        // SAFETY: memory of these elements, by the promise of `CallMemory`, and its own length.
        unsafe impl<T: Element, M: CallMemory<T>> CallRustArg<$param<T>> for &M {
            fn slots(self) -> Result<SmallVec<[Slot; 2]>> {
                let memory = CallMemory::slot(self)?;
                let length = match &memory {
                    MemorySlot::Param(param) => Slot::length_of::<T>(*param),
                    MemorySlot::Fixed(region) => {
                        let elements = region.bytes / size_of::<T>().max(1) as u64;
                        Slot::Fixed(ArgValue::plain(&elements.to_ne_bytes()))
                    }
                };
                Ok(SmallVec::from_iter([Slot::Memory(memory), length]))
            }
        }
    )*};
}
call_memory_is_given_for!(Read, Write, Share);

/// The most PTX parameters of a kernel.
const MAX_PTX_PARAMS: usize = 32;

const fn flat(sizes: &[[usize; 2]]) -> ([usize; MAX_PTX_PARAMS], usize) {
    let (mut all, mut count, mut index) = ([0; MAX_PTX_PARAMS], 0, 0);
    while index < sizes.len() {
        all[count] = sizes[index][0];
        count += 1;
        if sizes[index][1] != 0 {
            all[count] = sizes[index][1];
            count += 1;
        }
        index += 1;
    }
    (all, count)
}

/// The facts about the parameters of a kernel that its contract needs.
pub trait RustSignature {
    /// Returns for each parameter whether it is memory, and whether the kernel writes it.
    #[doc(hidden)]
    fn memory() -> Vec<(bool, bool)>;
}

macro_rules! tuples {
    ($($P:ident $V:ident $index:tt),*) => {
        impl<$($P: RustParam),*> sealed::Parameters for RustParams<($($P,)*)> {}
        impl<$($P: RustParam),*> RustParams<($($P,)*)> {
            const FLAT: ([usize; MAX_PTX_PARAMS], usize) = flat(&[$($P::SIZES),*]);
        }
        impl<$($P: RustParam),*> Parameters for RustParams<($($P,)*)> {
            const SIZES: &'static [usize] = {
                let all: &'static [usize; MAX_PTX_PARAMS] = &Self::FLAT.0;
                all.split_at(Self::FLAT.1).0
            };

            fn param_types() -> Vec<ParamType> {
                let all: [SmallVec<[ParamType; 2]>; _] = [$($P::param_types()),*];
                all.into_iter().flatten().collect()
            }
        }
        impl<$($P: RustParam),*> RustSignature for RustParams<($($P,)*)> {
            fn memory() -> Vec<(bool, bool)> {
                vec![$(($P::SIZES[1] != 0, $P::IS_WRITTEN)),*]
            }
        }
        // SAFETY: each argument is one for its parameter, by the promise of `IntoRustArg`.
        unsafe impl<$($P: RustParam, $V: IntoRustArg<$P>),*> Arguments<RustParams<($($P,)*)>> for ($($V,)*) {
            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()> {
                $(self.$index.into_args()?.into_iter().try_for_each(|value| packer.push(value))?;)*
                Ok(())
            }

            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
                $(self.$index.write(writer)?;)*
                Ok(())
            }
        }
        // SAFETY: each slot is one for its parameter, by the promise of `CallRustArg`.
        unsafe impl<$($P: RustParam, $V: CallRustArg<$P>),*> CallArguments<RustParams<($($P,)*)>> for ($($V,)*) {
            fn slots(self) -> Result<SmallVec<[Slot; 8]>> {
                let all: [SmallVec<[Slot; 2]>; _] = [$(self.$index.slots()?),*];
                Ok(all.into_iter().flatten().collect())
            }
        }
    };
}
for_tuples!(tuples, 12);

/// Records a kernel, once for each set of generic types, and loads it onto a device.
///
/// # Safety
/// `record` records what the attribute macro made from a kernel with these parameters. What the
/// kernel promises in `unsafe` blocks holds.
pub unsafe fn load<P>(
    device: &Device,
    instance: TypeId,
    is_unchecked: bool,
    name: &str,
    record: fn(),
) -> Result<Kernel<RustParams<P>>>
where
    RustParams<P>: Parameters + RustSignature,
{
    let target = match device.kind() {
        crate::DeviceKind::Cuda => record::Target::Gpu,
        _ => record::Target::Any,
    };
    let recorded = record::record_kernel(instance, is_unchecked, target, name, record)
        .map_err(|error| Error::new(ErrorKind::InvalidModule, format!("kernel {name}: {error}")))?;
    let module = device.load_ptx(&recorded.ptx)?;
    let contract = contract::<RustParams<P>>(&recorded.rules);
    // SAFETY: the kernel accesses memory only through the slices it received. Each index is checked
    // against the length that came with the slice, or promised in an `unsafe` block. The contract
    // has checked the lengths.
    let kernel = unsafe { module.kernel_with(&recorded.name, contract)? };
    Ok(kernel.of_recorded(recorded))
}

/// Returns the contract that every launch of a kernel is checked against.
fn contract<P: RustSignature>(rules: &gridloom_kernel::ir::ShapeRules) -> Contract {
    let mut contract = Contract::new();
    let mut index = 0;
    let mut memory = Vec::new();
    for (is_memory, is_written) in P::memory() {
        if is_memory {
            contract = contract.holds(index, arg(index + 1));
            memory.push((index, is_written));
        }
        index += 1 + u32::from(is_memory);
    }
    for (place, &(one, is_written)) in memory.iter().enumerate() {
        for &(other, is_other_written) in &memory[place + 1..] {
            if is_written || is_other_written {
                contract = contract.disjoint(one, other);
            }
        }
    }
    let axes = [Axis::X, Axis::Y, Axis::Z];
    for axis in axes.into_iter().skip(rules.dimensions.unwrap_or(3) as usize) {
        contract = contract.at_most(grid(axis), 1).at_most(block(axis), 1);
    }
    contract
}
