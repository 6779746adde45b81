//! Typed kernels: the parameter types are stated once, where the kernel is looked up.

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
use gridloom_kernel::record::Recorded;
pub(crate) use parameters::length;
pub use parameters::{ConditionHandle, IntoArg, Len, Null, Nullable, Parameter, Pointer, Ptr, PtrMut};
pub use rust::{CallRustArg, Conditional, IntoRustArg, Read, RustParam, RustParams, Share, Value, Write};
use smallvec::SmallVec;
pub use typed_arg::{MemoryArg, PlainArg, TypedArg};

use crate::buffer::{Element, Memory};
use crate::tuples::for_tuples;
use crate::{Condition, Error, ErrorKind, Result};

mod sealed {
    pub trait Parameters {}
}

/// A parameter list: a tuple of up to 24 [`Parameter`]s.
pub trait Parameters: sealed::Parameters {
    /// The size of each parameter in bytes.
    const SIZES: &'static [usize];

    /// Returns the type of each parameter.
    #[doc(hidden)]
    fn param_types() -> Vec<ParamType>;
}

/// Arguments for a parameter list: a tuple of values, one for each parameter.
///
/// # Safety
/// [`pack`](Arguments::pack) and [`write`](Arguments::write) yield, for each parameter, what
/// [`IntoArg`] requires for its type.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the kernel's parameters `{P}`",
    note = "pass a tuple with one value for each parameter; a single argument is written `(value,)`"
)]
pub unsafe trait Arguments<P: Parameters> {
    /// Packs the arguments in order.
    fn pack(self, packer: &mut ArgPacker<'_>) -> Result<()>;

    /// Writes the arguments, in order, over those of a node of an executable.
    fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()>;
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
            fn write(self, writer: &mut ArgWriter<'_, '_>) -> Result<()> {
                $(self.$index.write(writer)?;)*
                Ok(())
            }
        }
    };
}
for_tuples!(tuples, 24);

/// A kernel whose parameter types are known at compile time. The compiler checks the types of the
/// arguments. Every launch is checked against the kernel's [contract](crate::contract).
///
/// Kernels compare by identity: looking a kernel up twice with the same contract gives the same
/// kernel.
pub struct Kernel<P> {
    /// The backend's kernel, with the signature attached.
    backend: Arc<dyn backend::Kernel>,
    /// What a kernel written in Rust was recorded as.
    recorded: Option<Arc<Recorded>>,
    parameters: PhantomData<fn(P)>,
}

impl<P: Parameters> Kernel<P> {
    /// Checks the parameter types against what is known about the kernel.
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
        Ok(Kernel { backend: signature.of_kernel(backend), recorded: None, parameters: PhantomData })
    }
}

impl<P> Kernel<P> {
    /// Returns its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Returns the PTX of a kernel written in Rust. `None` for kernels of a module, whose PTX is
    /// that of the [module](crate::Module::ptx).
    ///
    /// ```
    /// use gridloom::{Out, kernel};
    ///
    /// #[kernel]
    /// fn double(x: Out<f32>) {
    ///     if let Some((_, x)) = x.mine() {
    ///         *x *= 2.0;
    ///     }
    /// }
    ///
    /// let double = double::load(&gridloom::Device::cpu()?)?;
    /// assert!(double.ptx().is_some_and(|ptx| ptx.contains("mul.rn.f32")));
    /// # Ok::<(), gridloom::Error>(())
    /// ```
    pub fn ptx(&self) -> Option<&str> {
        self.recorded.as_ref().map(|recorded| recorded.ptx.as_str())
    }

    /// Returns the kernel with its recorded form.
    pub(crate) fn of_recorded(mut self, recorded: Arc<Recorded>) -> Self {
        self.recorded = Some(recorded);
        self
    }

    /// Returns names and values of its properties, for display.
    pub fn info(&self) -> Vec<(String, String)> {
        self.backend.properties()
    }

    /// Returns the contract it was looked up with. It does not include the rules that follow from
    /// the parameter types.
    pub fn contract(&self) -> Contract {
        self.backend.signature().map(|signature| signature.contract().clone()).unwrap_or_default()
    }

    /// Returns the same kernel without parameter types and contract, for tools that know its
    /// parameters only at run time.
    pub fn untyped(&self) -> UntypedKernel {
        UntypedKernel { backend: without_signature(&self.backend) }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn backend::Kernel> {
        &self.backend
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Kernel { backend: self.backend.clone(), recorded: self.recorded.clone(), parameters: PhantomData }
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

/// A kernel whose parameters are known only at run time, for tools. Launching it is `unsafe`. It
/// compares by identity.
#[derive(Clone)]
pub struct UntypedKernel {
    backend: Arc<dyn backend::Kernel>,
}

impl UntypedKernel {
    pub(crate) fn new(backend: Arc<dyn backend::Kernel>) -> Self {
        UntypedKernel { backend }
    }

    /// Returns the same kernel with stated parameter types. Their number and sizes are checked
    /// against the kernel's own parameters.
    ///
    /// # Safety
    /// As for [`Module::kernel`](crate::Module::kernel).
    pub unsafe fn typed<P: Parameters>(&self) -> Result<Kernel<P>> {
        Kernel::new(&self.backend, Contract::new())
    }

    /// Returns the same kernel with stated parameter types and a contract.
    ///
    /// # Safety
    /// As for [`Module::kernel_with`](crate::Module::kernel_with).
    pub unsafe fn typed_with<P: Parameters>(&self, contract: Contract) -> Result<Kernel<P>> {
        Kernel::new(&self.backend, contract)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Returns the layout of its parameters, if it is known.
    pub fn params(&self) -> Option<&[ParamLayout]> {
        self.backend.params().map(|params| &**params)
    }

    /// Returns names and values of its properties, for display.
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
    /// Creates an argument from a plain value.
    pub fn value<T: Pod>(value: T) -> Self {
        Arg(ArgValue::Bytes(SmallVec::from_slice(bytemuck::bytes_of(&value))))
    }

    /// Creates an argument from the bytes of a plain value.
    pub fn bytes(bytes: &[u8]) -> Self {
        Arg(ArgValue::Bytes(SmallVec::from_slice(bytes)))
    }

    /// Creates an argument that is the address of memory.
    pub fn memory<T: Element>(memory: &impl Memory<T>) -> Result<Self> {
        Ok(Arg(ArgValue::Pointer(PointerValue::Region(memory.region()?))))
    }

    /// Creates an argument that is the handle of a condition.
    pub fn condition(condition: &Condition) -> Self {
        Arg(ArgValue::Pointer(PointerValue::Condition(condition.key())))
    }
}
