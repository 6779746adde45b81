//! A loaded module with a stream to try its kernels on.

use gridloom::kernel::{Arguments, Parameters};
use gridloom::prelude::*;

/// A device, a module and a stream: what a test of kernels needs.
pub struct Bench {
    pub device: Device,
    pub stream: Stream,
    pub module: Module,
}

impl Bench {
    /// Loads PTX onto a device.
    pub fn new(device: &Device, ptx: &str) -> Result<Self> {
        Ok(Bench { device: device.clone(), stream: device.stream()?, module: device.load_ptx(ptx)? })
    }

    /// A buffer with these values.
    pub fn buffer<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        self.device.buffer_from(values)
    }

    /// A buffer of zeros.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.device.buffer_from(&vec![T::zeroed(); len])
    }

    /// Looks a kernel up.
    pub fn kernel<P: Parameters>(&self, name: &str) -> Result<Kernel<P>> {
        // SAFETY: the kernels of the tests do what the header of their source says, and each test states the
        // parameter list of that header and gives arguments that it allows.
        unsafe { self.module.kernel::<P>(name) }
    }

    /// Runs one kernel, and waits for it.
    pub fn run<P: Parameters>(
        &self,
        name: &str,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<P>,
    ) -> Result<()> {
        self.stream.launch(&self.kernel::<P>(name)?, config, args)?;
        self.stream.synchronize()
    }
}
