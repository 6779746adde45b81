//! Loaded code.

use std::fmt;
use std::sync::Arc;

use gridloom_core::backend;

use crate::buffer::{Buffer, Element};
use crate::kernel::{Kernel, Parameters, UntypedKernel};
use crate::{Error, ErrorKind, Result};

/// Kernels and variables loaded onto a device. The handle is cheap to clone; kernels keep their module alive.
#[derive(Clone)]
pub struct Module {
    device: Arc<dyn backend::Device>,
    backend: Arc<dyn backend::Module>,
}

impl Module {
    pub(crate) fn new(device: Arc<dyn backend::Device>, backend: Arc<dyn backend::Module>) -> Self {
        Module { device, backend }
    }

    /// Looks a kernel up and states its parameters. Their number and sizes are checked against the kernel's own.
    ///
    /// # Safety
    /// Whatever arguments of these types a launch is given, with whatever launch shape, the kernel stays within the memory
    /// that they lead to, and treats what it reaches through a [`Ptr`](crate::kernel::Ptr) as read-only.
    ///
    /// That promise is made where the kernel is looked up, and has to be written there:
    ///
    /// ```compile_fail,E0133
    /// # use gridloom::prelude::*;
    /// fn look_up(module: &Module) -> Result<Kernel<(PtrMut<f32>, u32)>> {
    ///     module.kernel("scale")
    /// }
    /// ```
    pub unsafe fn kernel<P: Parameters>(&self, name: &str) -> Result<Kernel<P>> {
        Kernel::new(self.backend.clone().kernel(name)?)
    }

    /// Looks a kernel up for a tool that knows its parameters only at run time. Launching it is `unsafe`.
    pub fn untyped_kernel(&self, name: &str) -> Result<UntypedKernel> {
        Ok(UntypedKernel::new(self.backend.clone().kernel(name)?))
    }

    /// The names of its kernels, where they are known.
    pub fn kernel_names(&self) -> Vec<String> {
        self.backend.kernel_names()
    }

    /// A variable of the module as a buffer. It keeps the module alive.
    pub fn global<T: Element>(&self, name: &str) -> Result<Buffer<T>> {
        let allocation = self.backend.clone().global(name)?;
        if allocation.bytes() == 0 || !allocation.bytes().is_multiple_of(size_of::<T>() as u64) {
            return Err(Error::new(
                ErrorKind::ParameterMismatch,
                format!(
                    "variable {name} has {} bytes, which are not whole elements of {} bytes ({})",
                    allocation.bytes(),
                    size_of::<T>(),
                    std::any::type_name::<T>()
                ),
            ));
        }
        Ok(Buffer::from_allocation(&self.device, allocation))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.kernel_names().join(", "))
    }
}
