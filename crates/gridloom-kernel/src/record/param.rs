//! The parameters of kernels.

use std::any::TypeId;
use std::marker::PhantomData;

use bytemuck::Pod;

use crate::atomic::AtomicNumber;
use crate::condition::SetConditionTwin;
use crate::ir::{Array, Base, Mem, Space};
use crate::out::OutTwin;
use crate::record::memory::{Slice, param_scalar};
use crate::record::recorder::with;
use crate::record::value::{KernelType, Twin, Typed, V};
use crate::{Atomic, Out, SetCondition};

/// A kernel parameter that is a plain value.
pub struct Value<T>(PhantomData<fn() -> T>);

/// A kernel parameter that is memory which nothing writes while the kernel runs: an address and a
/// length.
pub struct Read<T>(PhantomData<fn() -> T>);

/// A kernel parameter that is memory which the threads of the kernel own, each its part: an address
/// and a length.
pub struct Write<T>(PhantomData<fn() -> T>);

/// A kernel parameter that is memory which threads change by atomic operations: an address and a
/// length.
pub struct Share<T>(PhantomData<fn() -> T>);

/// A kernel parameter that is a condition of a graph.
pub struct Conditional(());

/// A type that a kernel parameter can have.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot have a parameter of type `{Self}`",
    note = "parameters are plain values (`Pod`), slices `&[T]` to read, `Out<T>` to write, `&[Atomic<T>]` to share, and `SetCondition`"
)]
pub trait KernelParam: Typed {
    /// What a launch gives for it.
    type Param: 'static;
    #[doc(hidden)]
    fn record() -> Self::Twin;
}

fn declare(bytes: usize, align: usize) -> u32 {
    with(|r| {
        r.program.params.push(Array { bytes, align });
        r.program.params.len() as u32 - 1
    })
}

impl<T: KernelType + Pod> KernelParam for T {
    type Param = Value<T>;

    fn record() -> V<T> {
        let param = declare(size_of::<T>(), align_of::<T>());
        if TypeId::of::<T>() == TypeId::of::<usize>() {
            with(|r| r.program.sizes.push(param));
        }
        let mem = Mem { space: Space::Param, base: Base::Param(param), index: None, offset: 0 };
        V::<T>::new(T::place(mem)).get()
    }
}

impl<T: KernelType + Pod> KernelParam for &[T] {
    type Param = Read<T>;

    fn record() -> Slice<T> {
        let (base, len) = address_and_length();
        Slice::new(Space::ReadOnly, base, len)
    }
}

impl<T: KernelType + Pod> KernelParam for Out<'_, T> {
    type Param = Write<T>;

    fn record() -> OutTwin<T> {
        let param = with(|r| r.program.params.len() as u32);
        let (base, len) = address_and_length();
        OutTwin::new(param, base, len)
    }
}

impl<T: AtomicNumber + Pod> KernelParam for &[Atomic<T>] {
    type Param = Share<T>;

    fn record() -> Slice<Atomic<T>> {
        let (base, len) = address_and_length();
        Slice::new(Space::Global, base, len)
    }
}

impl KernelParam for SetCondition<'_> {
    type Param = Conditional;

    fn record() -> SetConditionTwin {
        let handle = declare(8, 8);
        SetConditionTwin::of(param_scalar(handle, 0))
    }
}

fn address_and_length() -> (V<u64>, V<usize>) {
    let (address, length) = (declare(8, 8), declare(8, 8));
    with(|r| r.program.sizes.push(length));
    (param_scalar(address, 0), param_scalar(length, 0))
}

/// The next parameter of the kernel that is recorded.
pub fn param<T: KernelParam>() -> T::Twin {
    T::record()
}
