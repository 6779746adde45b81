//! Typed kernels: the parameter list is stated once, where the kernel is looked up.

mod parameters;
pub(crate) mod rust;
mod typed_arg;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use gridloom_core::backend;
use gridloom_core::executable::ArgWriter;
use gridloom_core::op::contract::{Contract, ParamType, Signature, without_signature};
use gridloom_core::op::{ArgPacker, ArgValue, ParamLayout, PointerValue};
pub(crate) use parameters::length;
pub use parameters::{ConditionHandle, IntoArg, Len, Null, Nullable, Parameter, Pointer, Ptr, PtrMut};
pub use rust::{CallRustArg, IntoRustArg, Read, RustParam, RustParams, Value, Write};
use smallvec::SmallVec;
pub use typed_arg::{MemoryArg, PlainArg, TypedArg};

use crate::buffer::{Element, Memory};
use crate::{Condition, Error, ErrorKind, Result};

mod sealed {
    pub trait Parameters {}
}

/// A parameter list: a tuple of up to 24 [`Parameter`]s.
pub trait Parameters: sealed::Parameters {
    /// Bytes of each parameter.
    const SIZES: &'static [usize];

    /// Returns what each parameter is for.
    #[doc(hidden)]
    fn param_types() -> Vec<ParamType>;
}

/// Arguments for a parameter list: a tuple of values, one for each parameter.
///
/// # Safety
/// [`pack`](Arguments::pack) and [`write`](Arguments::write) give, for each parameter, what [`IntoArg`] of its type asks for.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the kernel's parameters `{P}`",
    note = "give a tuple with one value for each parameter; a single argument is written `(value,)`"
)]
pub unsafe trait Arguments<P: Parameters> {
    /// Packs the arguments in their order.
    fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()>;

    /// Writes the arguments, in their order, over those that a node of an executable has.
    fn write(self, writer: &mut ArgWriter<'_>) -> Result<()>;
}

macro_rules! tuples {
    ($($P:ident $V:ident $index:tt),*) => {
        impl<$($P: Parameter),*> sealed::Parameters for ($($P,)*) {}
        impl<$($P: Parameter),*> Parameters for ($($P,)*) {
            const SIZES: &'static [usize] = &[$($P::SIZE),*];

            fn param_types() -> Vec<ParamType> {
                vec![$($P::param_type()),*]
            }
        }
        // SAFETY: each argument is one for its parameter, by the promise of `IntoArg`.
        unsafe impl<$($P: Parameter, $V: IntoArg<$P>),*> Arguments<($($P,)*)> for ($($V,)*) {
            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            #[inline]
            fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()> {
                $(self.$index.pack(packer)?;)*
                Ok(())
            }

            #[allow(unused_variables, reason = "the empty tuple has no arguments")]
            #[inline]
            fn write(self, writer: &mut ArgWriter<'_>) -> Result<()> {
                $(self.$index.write(writer)?;)*
                Ok(())
            }
        }
    };
}
tuples!();
tuples!(P0 V0 0);
tuples!(P0 V0 0, P1 V1 1);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21, P22 V22 22);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21, P22 V22 22, P23 V23 23);

/// A kernel whose parameters are known to the compiler. It checks the types of the arguments; every
/// launch is checked against the [contract](crate::contract) of the kernel.
///
/// It compares by identity: a kernel that is looked up twice, with the same contract, is the same.
pub struct Kernel<P> {
    /// With its signature.
    backend: Arc<dyn backend::Kernel>,
    parameters: PhantomData<fn(P)>,
}

impl<P: Parameters> Kernel<P> {
    /// Checks the parameter list against what is known of the kernel.
    pub(crate) fn new(backend: &Arc<dyn backend::Kernel>, contract: Contract) -> Result<Self> {
        if let Some(params) = backend.params() {
            let sizes: Vec<usize> = params.iter().map(|param| param.size as usize).collect();
            if sizes != P::SIZES {
                return Err(Error::new(
                    ErrorKind::ParameterMismatch,
                    format!(
                        "kernel {} has {} parameters of {sizes:?} bytes; it was looked up with {} of {:?}",
                        backend.name(),
                        sizes.len(),
                        P::SIZES.len(),
                        P::SIZES
                    ),
                ));
            }
        }
        let signature = Signature::new(P::param_types(), contract)
            .map_err(|error| error.context(format_args!("kernel {}", backend.name())))?;
        Ok(Kernel { backend: signature.of_kernel(backend), parameters: PhantomData })
    }
}

impl<P> Kernel<P> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Facts about it, for people.
    pub fn info(&self) -> Vec<(String, String)> {
        self.backend.properties()
    }

    /// Returns the contract that it was looked up with, beside what the types of its parameters ask for.
    pub fn contract(&self) -> Contract {
        self.backend.signature().map(|signature| signature.contract().clone()).unwrap_or_default()
    }

    /// The same kernel for tools that know its parameters only at run time, without its contract.
    pub fn untyped(&self) -> UntypedKernel {
        UntypedKernel { backend: without_signature(&self.backend) }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn backend::Kernel> {
        &self.backend
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Kernel { backend: self.backend.clone(), parameters: PhantomData }
    }
}

impl<P> PartialEq for Kernel<P> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl<P> Eq for Kernel<P> {}

impl<P> Hash for Kernel<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.backend).cast::<()>().hash(state);
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

/// A kernel for tools: its arguments are known only at run time, so launching it is `unsafe`. It compares by
/// identity.
#[derive(Clone)]
pub struct UntypedKernel {
    backend: Arc<dyn backend::Kernel>,
}

impl UntypedKernel {
    pub(crate) fn new(backend: Arc<dyn backend::Kernel>) -> Self {
        UntypedKernel { backend }
    }

    /// The same kernel with its parameters stated. Their number and sizes are checked against the kernel's own.
    ///
    /// # Safety
    /// As for [`Module::kernel`](crate::Module::kernel).
    pub unsafe fn typed<P: Parameters>(&self) -> Result<Kernel<P>> {
        Kernel::new(&self.backend, Contract::new())
    }

    /// The same kernel with its parameters and its contract stated.
    ///
    /// # Safety
    /// As for [`Module::kernel_with`](crate::Module::kernel_with).
    pub unsafe fn typed_with<P: Parameters>(&self, contract: Contract) -> Result<Kernel<P>> {
        Kernel::new(&self.backend, contract)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Its parameters, where they are known.
    pub fn params(&self) -> Option<&[ParamLayout]> {
        self.backend.params().map(|params| &**params)
    }

    /// Facts about it, for people.
    pub fn info(&self) -> Vec<(String, String)> {
        self.backend.properties()
    }

    pub(crate) fn backend(&self) -> &Arc<dyn backend::Kernel> {
        &self.backend
    }
}

impl PartialEq for UntypedKernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl Eq for UntypedKernel {}

impl Hash for UntypedKernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.backend).cast::<()>().hash(state);
    }
}

impl fmt::Debug for UntypedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UntypedKernel({})", self.name())
    }
}

/// An argument for an [`UntypedKernel`].
#[derive(Clone, Debug)]
pub struct Arg(pub(crate) ArgValue);

impl Arg {
    /// A plain value.
    pub fn value<T: Pod>(value: T) -> Self {
        Arg(ArgValue::Bytes(SmallVec::from_slice(bytemuck::bytes_of(&value))))
    }

    /// A plain value, given as its bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Arg(ArgValue::Bytes(SmallVec::from_slice(bytes)))
    }

    /// The address of memory.
    pub fn memory<T: Element>(memory: &impl Memory<T>) -> Result<Self> {
        Ok(Arg(ArgValue::Pointer(PointerValue::Region(memory.region()?))))
    }

    /// The handle of a condition.
    pub fn condition(condition: &Condition) -> Self {
        Arg(ArgValue::Pointer(PointerValue::Condition(condition.key())))
    }
}
