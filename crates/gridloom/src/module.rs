//! Modules: code loaded onto a device.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use gridloom_core::backend;
use gridloom_core::op::contract::Contract;
use parking_lot::Mutex;

use crate::buffer::{Buffer, Element};
use crate::kernel::{Kernel, Parameters, UntypedKernel};
use crate::{Error, ErrorKind, Result};

/// Kernels and variables loaded onto a device. The handle is cheap to clone and compares by
/// identity; kernels keep their module alive.
#[derive(Clone)]
pub struct Module {
    device: Arc<dyn backend::Device>,
    backend: Arc<dyn backend::Module>,
    /// Weak references to the kernels and variables that were looked up, by name.
    found: Arc<Mutex<LookupCache>>,
    /// What it was loaded from.
    source: Arc<Source>,
}

/// What a module was loaded from.
#[derive(Default)]
struct Source {
    ptx: Option<String>,
    /// C++ names, with those that the kernels and variables have.
    names: HashMap<String, String>,
}

#[derive(Default)]
struct LookupCache {
    kernels: HashMap<String, Weak<dyn backend::Kernel>>,
    variables: HashMap<String, Weak<dyn backend::Allocation>>,
}

/// Returns the object that was looked up before under this name, if it still exists. Else calls
/// `look_up`.
fn cached_or_look_up<T: ?Sized>(
    module: &Mutex<LookupCache>,
    names: impl Fn(&mut LookupCache) -> &mut HashMap<String, Weak<T>>,
    name: &str,
    look_up: impl FnOnce() -> Result<Arc<T>>,
) -> Result<Arc<T>> {
    let known = |found: &mut LookupCache| names(found).get(name).and_then(Weak::upgrade);
    // A separate statement, so that the lock is released before the next one.
    let before = known(&mut module.lock());
    if let Some(before) = before {
        return Ok(before);
    }
    // Runs without the lock, because it may compile. If another thread looked the name up
    // meanwhile, that thread's object is used.
    let new = look_up()?;
    let mut found = module.lock();
    if let Some(meanwhile) = known(&mut found) {
        drop(found);
        return Ok(meanwhile);
    }
    names(&mut found).insert(name.to_owned(), Arc::downgrade(&new));
    Ok(new)
}

impl Module {
    pub(crate) fn new(device: Arc<dyn backend::Device>, backend: Arc<dyn backend::Module>) -> Self {
        Module { device, backend, found: Arc::default(), source: Arc::default() }
    }

    /// Returns the same module, with the PTX that it was loaded from.
    pub(crate) fn with_ptx(mut self, ptx: &str) -> Self {
        self.source = Arc::new(Source { ptx: Some(ptx.to_owned()), names: HashMap::new() });
        self
    }

    /// Returns the same module, with names of C++ for what is in it.
    #[cfg(feature = "cuda")]
    pub(crate) fn with_names(mut self, names: HashMap<String, String>) -> Self {
        self.source = Arc::new(Source { ptx: self.source.ptx.clone(), names });
        self
    }

    /// Returns the PTX that it was loaded from, or that was made from CUDA C++. `None` for machine
    /// code.
    ///
    /// ```
    /// use gridloom::Device;
    ///
    /// let module = Device::cpu()?.load_ptx(gridloom::demo_kernels::HEAT)?;
    /// assert_eq!(module.ptx(), Some(gridloom::demo_kernels::HEAT));
    /// # Ok::<(), gridloom::Error>(())
    /// ```
    pub fn ptx(&self) -> Option<&str> {
        self.source.ptx.as_deref()
    }

    /// Returns the name in the PTX of what a C++ name stands for.
    fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.source.names.get(name).map_or(name, String::as_str)
    }

    /// Returns the backend's kernel. Lookups of one name share one object while it exists.
    fn lookup(&self, name: &str) -> Result<Arc<dyn backend::Kernel>> {
        let name = self.name(name);
        cached_or_look_up(&self.found, |found| &mut found.kernels, name, || self.backend.clone().kernel(name))
    }

    /// Looks a kernel up with stated parameter types. Their number and sizes are checked against
    /// the kernel's own parameters.
    ///
    /// The parameter types form a contract. Every launch, and every change of a launch, is checked
    /// against it on every device before it takes effect:
    ///
    /// - A [`Ptr`](crate::kernel::Ptr) or [`PtrMut`](crate::kernel::PtrMut) is the address of
    ///   memory that has at least one element; [`Nullable`](crate::kernel::Nullable) may be null
    ///   instead.
    /// - That memory has at least as many elements as each [`Len`](crate::kernel::Len) parameter
    ///   says.
    ///
    /// [`kernel_with`](Module::kernel_with) adds further rules.
    ///
    /// # Safety
    /// Whenever a launch keeps the contract, with any plain values and in any shape, the kernel
    /// accesses only: memory that its pointers point to, within the length that was passed for
    /// each; variables of its own module; and its own shared and local memory. It only reads what
    /// it receives as a `Ptr`.
    ///
    /// The caller makes that promise where the kernel is looked up, in an `unsafe` block:
    ///
    /// ```compile_fail,E0133
    /// # use gridloom::prelude::*;
    /// fn look_up(module: &Module) -> Result<Kernel<(PtrMut<f32>, Len<u32>)>> {
    ///     module.kernel("scale")
    /// }
    /// ```
    pub unsafe fn kernel<P: Parameters>(&self, name: &str) -> Result<Kernel<P>> {
        Kernel::new(&self.lookup(name)?, Contract::new())
    }

    /// Looks a kernel up with stated parameter types and a contract between its arguments.
    ///
    /// ```
    /// use gridloom::contract::{Contract, arg};
    /// use gridloom::prelude::*;
    ///
    /// # const TRANSPOSE: &str = "
    /// # .version 7.0
    /// # .target sm_70
    /// # .address_size 64
    /// # .visible .entry transpose(.param .u64 out, .param .u64 x, .param .u32 rows, .param .u32 columns) { ret; }";
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let module = device.load_ptx(TRANSPOSE)?;
    /// let matrices = Contract::new().holds(0, arg(2) * arg(3)).holds(1, arg(2) * arg(3));
    /// // SAFETY: transpose reads a matrix of so many rows and columns, and writes another one.
    /// let transpose =
    ///     unsafe { module.kernel_with::<(PtrMut<f32>, Ptr<f32>, u32, u32)>("transpose", matrices)? };
    ///
    /// let (x, out) = (device.buffer_from(&[1.0f32; 12])?, device.alloc::<f32>(12)?);
    /// let stream = device.stream()?;
    /// stream.launch(&transpose, LaunchConfig::new(1, (4, 3)), (&out, &x, 3, 4))?;
    /// let error = stream.launch(&transpose, LaunchConfig::new(1, (4, 4)), (&out, &x, 4, 4)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::ContractViolation);
    /// assert!(error.to_string().contains("argument 0 of transpose has 12 elements, the launch needs 16"));
    /// # stream.synchronize()
    /// # }
    /// ```
    ///
    /// # Safety
    /// As for [`kernel`](Module::kernel), with this contract.
    pub unsafe fn kernel_with<P: Parameters>(&self, name: &str, contract: Contract) -> Result<Kernel<P>> {
        Kernel::new(&self.lookup(name)?, contract)
    }

    /// Looks a kernel up for a tool that knows its parameters only at run time. Launching such a
    /// kernel is `unsafe`.
    pub fn untyped_kernel(&self, name: &str) -> Result<UntypedKernel> {
        Ok(UntypedKernel::new(self.lookup(name)?))
    }

    /// Returns the names of its kernels, if they are known.
    pub fn kernel_names(&self) -> Vec<String> {
        self.backend.kernel_names()
    }

    /// Returns a variable of the module as a buffer. The buffer keeps the module alive.
    pub fn global<T: Element>(&self, name: &str) -> Result<Buffer<T>> {
        let name = self.name(name);
        let look_up = || self.backend.clone().global(name);
        let allocation = cached_or_look_up(&self.found, |found| &mut found.variables, name, look_up)?;
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
        if !allocation.address().is_multiple_of(align_of::<T>() as u64) {
            return Err(Error::new(
                ErrorKind::ParameterMismatch,
                format!(
                    "variable {name} is at {:#x}, which is not aligned for {}; declare it with .align {} or read it as bytes",
                    allocation.address(),
                    std::any::type_name::<T>(),
                    align_of::<T>()
                ),
            ));
        }
        Ok(Buffer::from_allocation(&self.device, allocation))
    }
}

impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl Eq for Module {}

impl Hash for Module {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.backend).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.kernel_names().join(", "))
    }
}
