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
    note = "parameters are plain values, slices `&[T]` to read, `Out<T>` to write, `&[Atomic<T>]` to share, and `SetCondition`",
    note = "values and elements are numbers, or structs with `#[derive(KernelType)]` that are `bytemuck::Pod`; instead of a `bool`, take a `u8`"
)]
///
/// # Safety
/// What is recorded uses memory as the contract of `Param` says: it is read, owned by threads, or
/// shared by atomic operations.
pub unsafe trait KernelParam: Typed {
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

// SAFETY: no memory.
unsafe impl<T: KernelType + Pod> KernelParam for T {
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

// SAFETY: a `Slice` that is read alone.
unsafe impl<T: KernelType + Pod> KernelParam for &[T] {
    type Param = Read<T>;

    fn record() -> Slice<T> {
        let (base, len) = address_and_length();
        Slice::new(Space::ReadOnly, base, len)
    }
}

// SAFETY: `OutTwin` gives threads the elements that they own.
unsafe impl<T: KernelType + Pod> KernelParam for Out<'_, T> {
    type Param = Write<T>;

    fn record() -> OutTwin<T> {
        let param = with(|r| r.program.params.len() as u32);
        let (base, len) = address_and_length();
        OutTwin::new(param, base, len)
    }
}

// SAFETY: an element has atomic operations alone.
unsafe impl<T: AtomicNumber + Pod> KernelParam for &[Atomic<T>] {
    type Param = Share<T>;

    fn record() -> Slice<Atomic<T>> {
        let (base, len) = address_and_length();
        Slice::new(Space::Global, base, len)
    }
}

// SAFETY: no memory.
unsafe impl KernelParam for SetCondition<'_> {
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

/// Returns the next parameter of the kernel that is recorded.
pub fn param<T: KernelParam>() -> T::Twin {
    T::record()
}

/// States the exact size of the blocks of the kernel that is recorded. Launches with others are
/// refused, and what depends on it is computed when the kernel is loaded.
pub fn require_block(size: [u64; 3]) {
    with(|r| {
        let is_possible = size.iter().zip([1024, 1024, 64]).all(|(&size, most)| (1..=most).contains(&size))
            && size.iter().product::<u64>() <= 1024;
        if !is_possible {
            let [x, y, z] = size;
            r.refuse(format!("no device has blocks of {x} x {y} x {z} threads: a block has 1 to 1,024 threads, at most 64 along the third axis"));
            return;
        }
        r.program.rules.block = Some(size.map(|size| size as u32));
    });
}

/// Lets the kernel that is recorded add products without rounding them first.
pub fn fuse_products() {
    with(|r| r.program.is_fused = true);
}
