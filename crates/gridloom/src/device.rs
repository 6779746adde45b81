//! Devices, and how to pick one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use gridloom_core::backend::{self, AsDevice, DeviceKind};
use gridloom_core::launch::Limits;
#[cfg(feature = "cpu")]
pub use gridloom_cpu::{CpuOptions, Engine};
#[cfg(feature = "cuda")]
pub use gridloom_cuda::CudaVersion;
#[cfg(feature = "cuda")]
pub use gridloom_cuda::driver::DriverOptions;
#[cfg(feature = "cuda")]
pub use gridloom_cuda::nvrtc::CompileOptions;
#[cfg(feature = "cuda")]
use gridloom_cuda::nvrtc::{Nvrtc, NvrtcError};

use crate::buffer::{Buffer, Element, check_alignment};
use crate::module::Module;
use crate::{Error, ErrorKind, Event, EventOptions, MemoryKind, Result, Stream};

/// Something that owns memory and runs work: an NVIDIA GPU, or the CPU. The handle is cheap to clone and compares by identity.
#[derive(Clone)]
pub struct Device(Arc<dyn backend::Device>);

impl Device {
    /// The first CUDA GPU, or the CPU where there is none. Of a build without one of them, it is the other.
    pub fn best() -> Result<Self> {
        let candidates: &[fn() -> Result<Self>] = &[
            #[cfg(feature = "cuda")]
            || Device::cuda(0),
            #[cfg(feature = "cpu")]
            Device::cpu,
        ];
        let mut outcome = Err(Error::new(
            ErrorKind::NotSupported,
            "this build has no devices; build the crate gridloom with the feature cpu or cuda",
        ));
        for candidate in candidates {
            outcome = candidate();
            match &outcome {
                Ok(_) => break,
                Err(error) => tracing::debug!(%error, "not the device to use"),
            }
        }
        outcome
    }

    /// Every device of this machine that the build knows: the GPUs in order, then the CPU.
    pub fn all() -> Result<Vec<Self>> {
        let kinds: &[fn() -> Result<Vec<Self>>] = &[
            #[cfg(feature = "cuda")]
            || (0..gridloom_cuda::device_count().unwrap_or(0)).map(Device::cuda).collect(),
            #[cfg(feature = "cpu")]
            || Ok(vec![Device::cpu()?]),
        ];
        Ok(kinds.iter().map(|devices| devices()).collect::<Result<Vec<_>>>()?.concat())
    }

    /// The CPU, with default options.
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Result<Self> {
        Device::cpu_with(CpuOptions::default())
    }

    /// The CPU, with these options.
    #[cfg(feature = "cpu")]
    pub fn cpu_with(options: CpuOptions) -> Result<Self> {
        Ok(Device(gridloom_cpu::CpuDevice::new(options)?))
    }

    /// An NVIDIA GPU by its number. The error says what is missing: a driver, a newer driver, such a device.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Ok(Device(gridloom_cuda::CudaDevice::open(ordinal)?))
    }

    /// An NVIDIA GPU by its number, through a driver that is opened with these options instead of those of the
    /// environment.
    #[cfg(feature = "cuda")]
    pub fn cuda_with(ordinal: u32, options: DriverOptions) -> Result<Self> {
        let driver = gridloom_cuda::Driver::open(options)?;
        Ok(Device(gridloom_cuda::CudaDevice::open_with(driver, ordinal)?))
    }

    /// Wraps a device of any backend.
    pub fn from_backend(backend: Arc<dyn backend::Device>) -> Self {
        Device(backend)
    }

    /// What kind of hardware it is.
    pub fn kind(&self) -> DeviceKind {
        self.0.kind()
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Its number among the devices of its kind.
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal()
    }

    /// What it allows of a launch.
    pub fn limits(&self) -> &Limits {
        self.0.limits()
    }

    /// Facts about it, for people.
    pub fn properties(&self) -> Vec<(String, String)> {
        self.0.properties()
    }

    /// Bytes of memory in use, and the capacity or limit where there is one.
    pub fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        self.0.memory_use()
    }

    /// Waits until everything enqueued on any of its streams so far has run. Failures stay with their streams.
    pub fn synchronize(&self) -> Result<()> {
        let _wait = gridloom_core::user_code::may_wait(self.0.id(), "synchronize of a device")?;
        self.0.wait_all()
    }

    /// Waits like [`synchronize`](Device::synchronize), but no longer than `timeout`. Where that is not enough, the error is of
    /// kind [`Timeout`](ErrorKind::Timeout), and the work goes on.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        let _wait = gridloom_core::user_code::may_wait(self.0.id(), "synchronize of a device")?;
        self.0.wait_all_timeout(timeout)
    }

    /// Cancels what was enqueued so far on any of its streams, as [`Stream::cancel`] does on one.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        gridloom_core::Stream::new(self).map(Stream)
    }

    /// A new event, with timing.
    pub fn event(&self) -> Result<Event> {
        self.event_with(EventOptions::default())
    }

    /// A new event, with these options.
    pub fn event_with(&self, options: EventOptions) -> Result<Event> {
        Ok(Event::new(gridloom_core::Event::new(self, options)?, &self.0))
    }

    /// Memory of the device for `len` elements. Its contents are unspecified until written.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Host memory for `len` elements that the device reaches too (pinned).
    pub fn alloc_host<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Host)
    }

    /// Memory for `len` elements that host and device share.
    pub fn alloc_managed<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Managed)
    }

    /// Memory of a given kind for `len` elements.
    pub fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>> {
        check_alignment::<T>()?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        match bytes {
            Some(0) => Err(Error::new(
                ErrorKind::InvalidArgument,
                "a buffer of 0 bytes; it needs at least one element that has a size",
            )),
            Some(bytes) => Ok(Buffer::from_allocation(&self.0, self.0.allocate(bytes as u64, kind)?)),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{len} elements of {} bytes are more than there are addresses", size_of::<T>()),
            )),
        }
    }

    /// Device memory that holds a copy of these values.
    pub fn buffer_from<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Loads kernels from PTX text. A text that does not parse is an error with line, column and a caret.
    pub fn load_ptx(&self, source: &str) -> Result<Module> {
        Ok(Module::new(self.0.clone(), self.0.load_ptx(source)?))
    }

    /// Compiles CUDA C++ and loads the kernels. It needs NVRTC, from a CUDA toolkit or the Python package `nvidia-cuda-nvrtc`, which is looked
    /// for at run time; the error says where. No GPU is needed: what it makes runs on the CPU device as well.
    ///
    /// Where the options name no architecture, a GPU gets code for its own.
    #[cfg(feature = "cuda")]
    pub fn load_cuda(&self, source: &str, options: &CompileOptions) -> Result<Module> {
        let mut options = options.clone();
        let gpu = self.0.as_any().downcast_ref::<gridloom_cuda::CudaDevice>();
        if let Some(gpu) = gpu
            && options.architecture.is_none()
        {
            options.architecture = Some(gpu.compute_capability());
        }
        let ptx =
            Nvrtc::get().and_then(|compiler| compiler.compile(source, &options)).map_err(compile_error)?;
        if !ptx.log().is_empty() {
            tracing::warn!(
                name = options.name,
                log = ptx.log(),
                "the CUDA C++ compiler has something to say"
            );
        }
        let ptx = match gpu.and_then(|gpu| gpu.driver().version().newest_ptx()) {
            Some((major, minor)) => ptx.at_most(major, minor),
            None => ptx,
        };
        self.load_ptx(ptx.text())
    }

    /// Loads kernels from machine code of the device: a cubin or fatbin.
    pub fn load_binary(&self, image: &[u8]) -> Result<Module> {
        Ok(Module::new(self.0.clone(), self.0.load_binary(image)?))
    }
}

impl AsDevice for Device {
    fn as_device(&self) -> &Arc<dyn backend::Device> {
        &self.0
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}
impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

#[cfg(feature = "cuda")]
fn compile_error(error: NvrtcError) -> Error {
    let (kind, log) = match &error {
        NvrtcError::Missing { .. } => (ErrorKind::NotSupported, String::new()),
        NvrtcError::Compile { log, .. } => (ErrorKind::InvalidModule, log.clone()),
        _ => (ErrorKind::InvalidModule, String::new()),
    };
    let message = match &error {
        NvrtcError::Compile { name, .. } => format!("`{name}` does not compile"),
        other => other.to_string(),
    };
    Error::new(kind, message).with_log(log).with_source(error)
}
