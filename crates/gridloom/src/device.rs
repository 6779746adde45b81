//! Devices, and functions to select one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use gridloom_core::backend::{self, AsDevice, DeviceKind};
use gridloom_core::launch::Limits;
use gridloom_core::log;
#[cfg(feature = "cpu")]
pub use gridloom_cpu::{CpuOptions, Engine};
#[cfg(feature = "cuda")]
pub use gridloom_cuda::CudaVersion;
#[cfg(feature = "cuda")]
pub use gridloom_cuda::driver::DriverOptions;
#[cfg(feature = "cuda")]
pub use gridloom_cuda::nvrtc::{CompileOptions, Ptx};
#[cfg(feature = "cuda")]
use gridloom_cuda::nvrtc::{Nvrtc, NvrtcError};

use crate::buffer::{Buffer, Element, check_alignment};
use crate::module::Module;
use crate::{Error, ErrorKind, Event, EventOptions, GraphMemory, MemoryKind, Result, Stream, StreamOptions};

/// An NVIDIA GPU or the CPU: it owns memory and runs work. The handle is cheap to clone and
/// compares by identity.
#[derive(Clone)]
pub struct Device(Arc<dyn backend::Device>);

impl Device {
    /// Opens the first CUDA GPU, or the CPU if there is none. A build with only one of the features
    /// `cuda` and `cpu` opens that one.
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
                Err(error) => log!(debug, %error, "the device cannot be used; trying the next one"),
            }
        }
        outcome
    }

    /// Opens every device of this machine that the build supports: the GPUs in order, then the CPU.
    pub fn all() -> Result<Vec<Self>> {
        let kinds: &[fn() -> Result<Vec<Self>>] = &[
            #[cfg(feature = "cuda")]
            || (0..gridloom_cuda::device_count().unwrap_or(0)).map(Device::cuda).collect(),
            #[cfg(feature = "cpu")]
            || Ok(vec![Device::cpu()?]),
        ];
        Ok(kinds.iter().map(|devices| devices()).collect::<Result<Vec<_>>>()?.concat())
    }

    /// Opens the CPU with default options.
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Result<Self> {
        Device::cpu_with(CpuOptions::default())
    }

    /// Opens the CPU with these options.
    #[cfg(feature = "cpu")]
    pub fn cpu_with(options: CpuOptions) -> Result<Self> {
        Ok(Device(gridloom_cpu::CpuDevice::new(options)?))
    }

    /// Opens an NVIDIA GPU by its ordinal. The error says what is missing: a driver, a newer
    /// driver, or the device.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Ok(Device(gridloom_cuda::CudaDevice::open(ordinal)?))
    }

    /// Opens an NVIDIA GPU by its ordinal, through a driver opened with these options instead of
    /// those of the environment.
    #[cfg(feature = "cuda")]
    pub fn cuda_with(ordinal: u32, options: DriverOptions) -> Result<Self> {
        let driver = gridloom_cuda::Driver::open(options)?;
        Ok(Device(gridloom_cuda::CudaDevice::open_with(driver, ordinal)?))
    }

    /// Wraps a device of any backend.
    pub fn from_backend(backend: Arc<dyn backend::Device>) -> Self {
        Device(backend)
    }

    /// Returns its kind.
    pub fn kind(&self) -> DeviceKind {
        self.0.kind()
    }

    /// Returns its name, for display.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Returns its ordinal among the devices of its kind.
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal()
    }

    /// Returns the limits of launches on it.
    pub fn limits(&self) -> &Limits {
        self.0.limits()
    }

    /// Returns names and values of its properties, for display.
    pub fn properties(&self) -> Vec<(String, String)> {
        self.0.properties()
    }

    /// Returns the bytes of memory in use, and the capacity or limit if there is one.
    pub fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        self.0.memory_use()
    }

    /// Waits until everything enqueued so far on any of its streams has run. Failures are returned
    /// by the streams, not here.
    pub fn synchronize(&self) -> Result<()> {
        let _wait = gridloom_core::user_code::may_wait(self.0.id(), "synchronize of a device")?;
        self.0.wait_all()
    }

    /// Waits like [`synchronize`](Device::synchronize), but no longer than `timeout`. After that
    /// the error is of kind [`Timeout`](ErrorKind::Timeout), and the work continues.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        let _wait = gridloom_core::user_code::may_wait(self.0.id(), "synchronize of a device")?;
        self.0.wait_all_timeout(timeout)
    }

    /// Cancels the work enqueued so far on all its streams, as [`Stream::cancel`] does on one.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns the memory that graphs hold on this device: now, at most so far, and what the device
    /// keeps for later.
    ///
    /// An executable holds the memory of its alloc nodes from its instantiation until it and its
    /// launches in flight are gone. [`Executable::memory`](crate::Executable::memory) says how much
    /// one of them holds.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let graph = Graph::new(&device);
    /// let memory = graph.alloc::<f32>(1024)?;
    /// memory.memset(&memory, 0u8)?.free(&memory)?;
    /// let exec = graph.instantiate()?;
    /// assert_eq!(device.graph_memory()?.used, 4096);
    /// drop(exec);
    /// assert_eq!((device.graph_memory()?.used, device.graph_memory()?.used_high), (0, 4096));
    /// # Ok(())
    /// # }
    /// ```
    pub fn graph_memory(&self) -> Result<GraphMemory> {
        self.0.graph_memory()
    }

    /// Sets the high-water mark of [`graph_memory`](Device::graph_memory) to the current value.
    pub fn reset_graph_memory_high(&self) -> Result<()> {
        self.0.reset_graph_memory_high()
    }

    /// Returns memory to the system that the device keeps for later and nobody uses
    /// ([`GraphMemory::unused`]). The CPU device keeps none.
    pub fn trim(&self) -> Result<()> {
        gridloom_core::user_code::may_use(self.0.id(), "trim of a device")?;
        self.0.trim()
    }

    /// Creates a stream with default options.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(StreamOptions::default())
    }

    /// Creates a stream with these options.
    ///
    /// ```
    /// use gridloom::StreamOptions;
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::best()?;
    /// let urgent = device.stream_with(StreamOptions::new().priority(*device.priority_range()?.start()))?;
    /// assert!(urgent.priority()? <= device.stream()?.priority()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream_with(&self, options: StreamOptions) -> Result<Stream> {
        gridloom_core::Stream::with_options(self, options).map(Stream)
    }

    /// Returns the priorities that streams can have. The first, which is the smallest number, is
    /// served first. The CPU device has one, 0.
    pub fn priority_range(&self) -> Result<RangeInclusive<i32>> {
        gridloom_core::user_code::may_use(self.0.id(), "query of a device")?;
        self.0.priority_range()
    }

    /// Creates an event with timing.
    pub fn event(&self) -> Result<Event> {
        self.event_with(EventOptions::default())
    }

    /// Creates an event with these options.
    pub fn event_with(&self, options: EventOptions) -> Result<Event> {
        Ok(Event::new(gridloom_core::Event::new(self, options)?, &self.0))
    }

    /// Allocates device memory for `len` elements. Its contents are unspecified until written.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Allocates pinned host memory for `len` elements. The device can access it too.
    pub fn alloc_host<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Host)
    }

    /// Allocates managed memory for `len` elements, which host and device share.
    pub fn alloc_managed<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Managed)
    }

    /// Allocates memory of a given kind for `len` elements.
    pub fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>> {
        check_alignment::<T>()?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        match bytes {
            Some(0) => Err(Error::new(
                ErrorKind::InvalidArgument,
                "a buffer of 0 bytes cannot be allocated; it needs at least one element that has a size",
            )),
            Some(bytes) => Ok(Buffer::from_allocation(&self.0, self.0.allocate(bytes as u64, kind)?)),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{len} elements of {} bytes do not fit in the address space", size_of::<T>()),
            )),
        }
    }

    /// Allocates device memory and copies these values to it.
    pub fn buffer_from<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Loads kernels from PTX text. An error in the text names line and column and shows the place.
    pub fn load_ptx(&self, source: &str) -> Result<Module> {
        Ok(Module::new(self.0.clone(), self.0.load_ptx(source)?).with_ptx(source))
    }

    /// Compiles CUDA C++ and loads the kernels. NVRTC must be installed, from a CUDA toolkit or the
    /// Python package `nvidia-cuda-nvrtc`. It is found at run time; if it is missing, the error
    /// says where it was looked for. No GPU is needed: the result runs on the CPU device as well.
    ///
    /// If the options name no architecture, a GPU gets code for its own. If they say nothing about
    /// line information, a CPU device in checked mode gets it. Kernels are looked up by their names
    /// in the source, and those of [`CompileOptions::name_expressions`] by the expression.
    /// [`Module::ptx`] returns the PTX.
    #[cfg(feature = "cuda")]
    pub fn load_cuda(&self, source: &str, options: &CompileOptions) -> Result<Module> {
        let mut options = options.clone();
        let gpu = self.0.as_any().downcast_ref::<gridloom_cuda::CudaDevice>();
        if let Some(gpu) = gpu
            && options.architecture.is_none()
        {
            options.architecture = Some(gpu.compute_capability());
        }
        options.line_info = options.line_info.or(self.is_checked().then_some(true));
        let ptx = compile_cuda(source, &options)?;
        let ptx = match gpu.and_then(|gpu| gpu.driver().version().newest_ptx()) {
            Some((major, minor)) => ptx.at_most(major, minor),
            None => ptx,
        };
        let names = ptx.lowered_names().map(|(asked, name)| (asked.to_owned(), name.to_owned())).collect();
        Ok(self.load_ptx(ptx.text())?.with_names(names))
    }

    /// Returns whether the device checks every memory access of kernels.
    #[cfg(any(feature = "cpu", feature = "cuda"))]
    pub fn is_checked(&self) -> bool {
        #[cfg(feature = "cpu")]
        let checked =
            self.0.as_any().downcast_ref::<gridloom_cpu::CpuDevice>().is_some_and(|cpu| cpu.is_checked());
        #[cfg(not(feature = "cpu"))]
        let checked = false;
        checked
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

/// Compiles CUDA C++ to PTX, without a device. It needs NVRTC, as [`Device::load_cuda`] does.
///
/// ```no_run
/// use gridloom::CompileOptions;
///
/// let source = "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }";
/// let ptx = gridloom::compile_cuda(source, &CompileOptions::new().name_expressions(["scale<float>"]))?;
/// assert_eq!(ptx.lowered_name("scale<float>"), Some("_Z5scaleIfEvPT_S0_"));
/// std::fs::write("scale.ptx", ptx.text()).unwrap();
/// # Ok::<(), gridloom::Error>(())
/// ```
#[cfg(feature = "cuda")]
pub fn compile_cuda(source: &str, options: &CompileOptions) -> Result<Ptx> {
    let ptx = Nvrtc::get().and_then(|compiler| compiler.compile(source, options)).map_err(compile_error)?;
    if !ptx.log().is_empty() {
        log!(warn, name = options.name, log = ptx.log(), "the CUDA C++ compiler reports warnings");
    }
    Ok(ptx)
}

#[cfg(feature = "cuda")]
fn compile_error(error: NvrtcError) -> Error {
    let text = error.to_string();
    let (kind, message, log) = match &error {
        // A line for the message; the places that were looked in are the log.
        NvrtcError::Missing { .. } => {
            let (message, places) = text.split_once(" Looked in:\n").unwrap_or((&text, ""));
            (ErrorKind::NotSupported, message.to_owned(), places.to_owned())
        }
        NvrtcError::Compile { name, log } => {
            (ErrorKind::InvalidModule, format!("`{name}` does not compile"), log.clone())
        }
        _ => (ErrorKind::InvalidModule, text, String::new()),
    };
    Error::new(kind, message).with_log(log).with_source(error)
}
