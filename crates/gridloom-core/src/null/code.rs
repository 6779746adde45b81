//! Modules and kernels that contain no code.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::NullDevice;
use super::memory::{FakeAllocation, Ledger};
use crate::backend::{Allocation, DeviceId, Kernel, Module};
use crate::error::{Result, bail};
use crate::launch::KernelLimits;
use crate::memory::MemoryKind;
use crate::op::{ParamLayout, Params};

/// The description of a kernel: its name, and what launches are checked against.
///
/// ```
/// use gridloom_core::null::{FakeKernel, NullDevice};
///
/// let device = NullDevice::new();
/// let kernel = FakeKernel::new("axpy").params([4, 8, 8]).on(&device);
/// assert_eq!(kernel.name(), "axpy");
/// assert_eq!(kernel.params().unwrap()[1].offset, 8);
/// ```
#[derive(Clone, Debug)]
pub struct FakeKernel {
    name: String,
    params: Option<Params>,
    limits: KernelLimits,
}

impl FakeKernel {
    /// Creates a kernel with this name, unknown parameters and no limits.
    pub fn new(name: impl Into<String>) -> Self {
        FakeKernel { name: name.into(), params: None, limits: KernelLimits::default() }
    }

    /// Sets parameters of these sizes, each aligned to its size, up to 8.
    #[must_use]
    pub fn params(mut self, sizes: impl IntoIterator<Item = u32>) -> Self {
        let mut end = 0u32;
        let place = |size: u32| {
            let offset = end.next_multiple_of(size.clamp(1, 8).next_power_of_two());
            end = offset + size;
            ParamLayout { offset, size }
        };
        self.params = Some(sizes.into_iter().map(place).collect());
        self
    }

    /// Sets the kernel's limits.
    #[must_use]
    pub fn limits(mut self, limits: KernelLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the kernel on a device, in a module of its own.
    pub fn on(self, device: &NullDevice) -> Arc<dyn Kernel> {
        let id = device.shared.id;
        let module = Arc::new(LoadedModule { device: id, kernels: Vec::new(), globals: Vec::new() });
        Arc::new(LoadedKernel { kernel: self, module })
    }
}

/// The description of a module: kernels and variables.
#[derive(Clone, Debug, Default)]
pub struct FakeModule {
    kernels: Vec<FakeKernel>,
    globals: Vec<(String, u64)>,
}

impl FakeModule {
    /// Creates an empty module.
    pub fn new() -> Self {
        FakeModule::default()
    }

    /// Adds a kernel.
    #[must_use]
    pub fn kernel(mut self, kernel: FakeKernel) -> Self {
        self.kernels.push(kernel);
        self
    }

    /// Adds a variable of this many bytes.
    #[must_use]
    pub fn global(mut self, name: impl Into<String>, bytes: u64) -> Self {
        self.globals.push((name.into(), bytes));
        self
    }

    /// Returns the module on a device.
    pub fn on(self, device: &NullDevice) -> Arc<dyn Module> {
        self.build(device.shared.id, &device.shared.memory)
    }

    pub(super) fn build(self, device: DeviceId, ledger: &Arc<Ledger>) -> Arc<dyn Module> {
        let globals = self.globals.into_iter().map(|(name, bytes)| {
            (name, Arc::new(FakeAllocation::new(device, ledger, bytes, MemoryKind::Device)))
        });
        Arc::new(LoadedModule { device, globals: globals.collect(), kernels: self.kernels })
    }
}

#[derive(Debug)]
struct LoadedModule {
    device: DeviceId,
    kernels: Vec<FakeKernel>,
    globals: Vec<(String, Arc<FakeAllocation>)>,
}

impl Module for LoadedModule {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn kernel_names(&self) -> Vec<String> {
        self.kernels.iter().map(|kernel| kernel.name.clone()).collect()
    }

    fn kernel(self: Arc<Self>, name: &str) -> Result<Arc<dyn Kernel>> {
        match self.kernels.iter().find(|kernel| kernel.name == name).cloned() {
            Some(kernel) => Ok(Arc::new(LoadedKernel { kernel, module: self })),
            None => {
                bail!(NotFound, "the module has no kernel {name}; it has: {}", self.kernel_names().join(", "))
            }
        }
    }

    fn global(self: Arc<Self>, name: &str) -> Result<Arc<dyn Allocation>> {
        match self.globals.iter().find(|(global, _)| global == name) {
            Some((_, memory)) => Ok(memory.clone()),
            None => bail!(NotFound, "the module has no variable {name}"),
        }
    }
}

struct LoadedKernel {
    kernel: FakeKernel,
    /// Kept alive, as every kernel keeps its module alive.
    module: Arc<LoadedModule>,
}

// SAFETY: the device runs nothing.
unsafe impl Kernel for LoadedKernel {
    fn device(&self) -> DeviceId {
        self.module.device
    }

    fn name(&self) -> &str {
        &self.kernel.name
    }

    fn params(&self) -> Option<&Params> {
        self.kernel.params.as_ref()
    }

    fn limits(&self) -> &KernelLimits {
        &self.kernel.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeKernel({})", self.kernel.name)
    }
}
