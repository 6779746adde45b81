//! A loaded module with a stream to run its kernels on.

use gridloom::contract::Contract;
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
        self.kernel_with(name, Contract::new())
    }

    /// Looks a kernel up that asks more of its arguments than their types say.
    pub fn kernel_with<P: Parameters>(&self, name: &str, contract: Contract) -> Result<Kernel<P>> {
        // SAFETY: the kernels of the tests do what the header of their source says, and each test
        // states the parameter list of that header, with a contract that keeps it within its
        // memory.
        unsafe { self.module.kernel_with::<P>(name, contract) }
    }

    /// Runs one kernel with arguments that it allows, whatever its contract would be, and waits for
    /// it.
    pub fn run<P: Parameters>(
        &self,
        name: &str,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<P>,
    ) -> Result<()> {
        // SAFETY: each test gives what the header of the kernel's source asks for, or a device that
        // checks every access.
        unsafe { self.stream.launch_unchecked(&self.kernel::<P>(name)?, config, args)? };
        self.stream.synchronize()
    }
}
