//! GPUs: how many there are, what each can do, and the memory, streams, events, modules and graphs
//! that are made on one.

use crate::context::Context;
use crate::context_wait;
use crate::driver::{Driver, DriverResult};
use crate::event::Event;
use crate::graph;
use crate::hosted_launch::HostedLaunches;
use crate::memory::{Allocator, Memory};
use crate::module::Module;
use crate::polling::PollingWait;
use crate::release;
use crate::retry_once::RetryOnce;
use crate::stream::{Stream, StreamsInFlight};
use crate::sys::*;
use crate::turns::Turns;
use crate::version::CudaVersion;
use gridloom_core::backend::{self, DeviceId, DeviceKind, EventOptions, StreamOptions};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::Definition;
use gridloom_core::launch::{Dim3, Limits};
use gridloom_core::log;
use gridloom_core::memory::{GraphMemory, GraphMemoryMeter, MemoryKind};
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::ffi::{CStr, c_char, c_int};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Returns how many CUDA GPUs there are, or an error if the system has no driver.
/// ([`cuDeviceGetCount`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html))
pub fn device_count() -> Result<u32> {
    count(&*Driver::get()?)
}

fn count(driver: &Driver) -> Result<u32> {
    let mut count = 0;
    // SAFETY: one number is written.
    unsafe { driver.cu_device_get_count(&mut count) }?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// The first driver whose graphs can be launched by kernels.
const DEVICE_LAUNCH_SINCE: CudaVersion = CudaVersion::new(12, 0);

/// An opened GPU.
#[derive(Debug)]
pub struct CudaDevice {
    shared: Arc<Shared>,
    ordinal: u32,
    name: String,
    uuid: [u8; 16],
    capability: (u32, u32),
    limits: Limits,
    total_memory: u64,
    attachment: backend::Attachment,
}

/// State that a device shares with its objects. They keep it when the device is dropped.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: DeviceId,
    pub(crate) context: Arc<Context>,
    pub(crate) allocator: Arc<Allocator>,
    pub(crate) hosted_launches: Arc<HostedLaunches>,
    pub(crate) streams: Arc<StreamsInFlight>,
    builtins: RetryOnce<Arc<Module>>,
    /// The memory that executables hold for alloc nodes.
    pub(crate) graph_memory: Arc<GraphMemoryMeter>,
    /// The turns that graphs with conditionals take.
    pub(crate) turns: Arc<Turns>,
}

impl Shared {
    /// Returns Gridloom's own kernels, compiled at their first use.
    pub(crate) fn builtins(&self) -> Result<Arc<Module>> {
        let text = || graph::builtin_text(self.context.overlaps_kernels());
        let load = || Module::from_ptx(&self.context, self.id, &text()).map(Arc::new);
        self.builtins.get(load).cloned()
    }
}

impl CudaDevice {
    /// Opens a GPU by its number, with the process's driver.
    pub fn open(ordinal: u32) -> Result<Arc<Self>> {
        Self::open_with(Driver::get()?, ordinal)
    }

    /// Opens a GPU of a driver that was opened separately.
    pub fn open_with(driver: Arc<Driver>, ordinal: u32) -> Result<Arc<Self>> {
        let count = count(&driver)?;
        if ordinal >= count {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no CUDA GPU number {ordinal}; the driver knows {count}, counted from 0"),
            ));
        }
        let mut device = 0;
        // SAFETY: the number is within the count; one handle is written.
        unsafe { driver.cu_device_get(&mut device, ordinal as c_int) }?;
        Ok(Arc::new(Self::new(&driver, device, ordinal)?))
    }

    fn new(driver: &Arc<Driver>, device: CUdevice, ordinal: u32) -> DriverResult<Self> {
        let context = Context::retain(driver, device)?;
        let facts = Facts { driver, device };
        let id = DeviceId::fresh();
        let pools = facts.flag(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
        let managed = facts.flag(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
        let allocator = Allocator::new(Arc::clone(&context), id, pools, managed)?;
        Ok(Self {
            ordinal,
            name: facts.name()?,
            uuid: facts.uuid()?,
            capability: facts.capability()?,
            limits: facts.limits()?,
            total_memory: facts.total_memory()?,
            attachment: backend::Attachment::default(),
            shared: Arc::new(Shared {
                id,
                turns: Turns::of(&context)?,
                context,
                allocator,
                hosted_launches: Arc::default(),
                streams: Arc::default(),
                builtins: RetryOnce::new(),
                graph_memory: Arc::default(),
            }),
        })
    }

    /// Returns the driver it was opened with.
    pub fn driver(&self) -> &Arc<Driver> {
        self.shared.context.driver()
    }

    /// Returns its context, for use together with other CUDA libraries.
    pub fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns its identity, the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Returns its compute capability: `(9, 0)`.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.capability
    }

    /// Returns how many bytes of memory the card has.
    pub fn total_memory(&self) -> u64 {
        self.total_memory
    }

    /// Returns how many bytes are free on the card right now, for all processes.
    /// ([`cuMemGetInfo`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html))
    pub fn free_memory(&self) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        let _entered = self.shared.context.enter()?;
        // SAFETY: the context is current; two sizes are written.
        unsafe { self.driver().cu_mem_get_info(&mut free, &mut total) }?;
        Ok(free as u64)
    }

    /// Returns how many bytes the device's memory pool holds: those in use, and those that it keeps
    /// for the next allocation.
    pub fn reserved_memory(&self) -> Result<u64> {
        Ok(self.shared.allocator.reserved()?)
    }

    /// Returns a property of the GPU by the driver's number for it.
    /// ([`cuDeviceGetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html))
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        let facts = Facts { driver: self.driver(), device: self.shared.context.device() };
        Ok(facts.attribute(attribute)?)
    }

    /// Returns an attribute of the memory that the driver holds for the alloc nodes of captured
    /// graphs.
    /// ([`cuDeviceGetGraphMemAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn driver_graph_memory(&self, attribute: CUgraphMem_attribute) -> Result<u64> {
        let mut bytes: u64 = 0;
        let device = self.shared.context.device();
        // SAFETY: every attribute is a 64-bit number, which is written.
        unsafe {
            self.driver().cu_device_get_graph_mem_attribute(device, attribute, (&raw mut bytes).cast())
        }?;
        Ok(bytes)
    }

    /// Allocates memory, as an object of this backend.
    pub fn memory(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<Memory>> {
        self.shared.allocator.check_kind(kind)?;
        self.shared.allocator.allocate(bytes, kind)
    }

    /// Lets `peer` reach this GPU's memory, where the hardware allows it.
    /// ([`cuCtxEnablePeerAccess`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html))
    pub fn allow_access_from(&self, peer: &CudaDevice) -> Result<()> {
        let (own, other) = (self.shared.context.device(), peer.shared.context.device());
        if own == other {
            return Ok(());
        }
        let mut can = 0;
        // SAFETY: both are devices of the driver; one number is written.
        unsafe { self.driver().cu_device_can_access_peer(&mut can, other, own) }?;
        if can == 0 {
            return Err(Error::new(
                ErrorKind::NotSupported,
                format!("{} cannot reach the memory of {}; copy through the host", peer.name, self.name),
            ));
        }
        let _entered = peer.shared.context.enter()?;
        // SAFETY: the peer's context is current, this one's is alive; 0 is the one flag there is.
        match unsafe { self.driver().cu_ctx_enable_peer_access(self.shared.context.raw(), 0) } {
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) => {}
            enabled => enabled?,
        }
        Ok(self.shared.allocator.allow_peer(other)?)
    }

    /// Returns the range of `memory` from `offset` on, which must hold `bytes`.
    fn address(&self, memory: &dyn backend::Allocation, offset: u64, bytes: usize) -> Result<u64> {
        backend::check_access(self.shared.id, memory, offset, bytes)?;
        Ok(memory.address() + offset)
    }
}

// SAFETY: what it says of itself is so.
unsafe impl backend::Device for CudaDevice {
    fn id(&self) -> DeviceId {
        self.shared.id
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Cuda
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ordinal(&self) -> u32 {
        self.ordinal
    }

    fn has_peer(&self, ordinal: u32) -> bool {
        if ordinal == self.ordinal {
            return true;
        }
        let (mut other, mut can) = (0, 0);
        let Ok(number) = i32::try_from(ordinal) else { return false };
        // SAFETY: one device is written. A number that is none is answered by an error.
        let found = unsafe { self.driver().cu_device_get(&mut other, number) };
        // SAFETY: one number is written; both devices are there.
        let asked = found.and_then(|()| unsafe {
            self.driver().cu_device_can_access_peer(&mut can, other, self.shared.context.device())
        });
        asked.is_ok() && can != 0
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn drop_later(&self, value: Box<dyn Send>) {
        release::hand_over(value);
    }

    fn properties(&self) -> Vec<(String, String)> {
        let mut properties = vec![
            ("driver".to_owned(), format!("CUDA {}", self.driver().version())),
            ("compute capability".to_owned(), format!("{}.{}", self.capability.0, self.capability.1)),
            ("memory".to_owned(), format!("{} MiB", self.total_memory >> 20)),
            ("uuid".to_owned(), self.uuid.iter().map(|byte| format!("{byte:02x}")).collect()),
        ];
        for (name, attribute) in [
            ("multiprocessors", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            ("clock kHz", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            ("L2 bytes", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            ("memory pools", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
            ("managed memory", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY),
            ("cooperative launch", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
            ("clusters", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
        ] {
            if let Ok(value) = self.attribute(attribute) {
                properties.push((name.to_owned(), value.to_string()));
            }
        }
        properties
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn backend::Allocation>> {
        Ok(self.memory(bytes, kind)?)
    }

    fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        Ok((self.shared.allocator.used(), Some(self.total_memory)))
    }

    /// Returns the memory of all graphs. Alloc nodes of captured graphs that stay opaque get their
    /// memory from the driver, which counts it for the whole process.
    fn graph_memory(&self) -> Result<GraphMemory> {
        let of_driver = |attribute| self.driver_graph_memory(attribute);
        let used = of_driver(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?;
        let high = of_driver(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?;
        let reserved = of_driver(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?;
        let (meter, unused) = (&self.shared.graph_memory, self.shared.allocator.unused()?);
        Ok(GraphMemory::new(
            meter.used() + used,
            meter.used_high() + high,
            unused + reserved.saturating_sub(used),
        ))
    }

    /// Calls [`cuDeviceSetGraphMemAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn reset_graph_memory_high(&self) -> Result<()> {
        let mut zero: u64 = 0;
        let (device, high) =
            (self.shared.context.device(), CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
        // SAFETY: the attribute is a 64-bit number, which is read.
        unsafe { self.driver().cu_device_set_graph_mem_attribute(device, high, (&raw mut zero).cast()) }?;
        self.shared.graph_memory.reset_high();
        Ok(())
    }

    /// Calls [`cuDeviceGraphMemTrim`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn trim(&self) -> Result<()> {
        release::flush_briefly();
        self.shared.allocator.trim()?;
        // SAFETY: the device is one of the driver's.
        Ok(unsafe { self.driver().cu_device_graph_mem_trim(self.shared.context.device()) }?)
    }

    /// Calls [`cuCtxGetStreamPriorityRange`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html).
    fn priority_range(&self) -> Result<RangeInclusive<i32>> {
        let (mut lowest, mut highest) = (0, 0);
        let _entered = self.shared.context.enter()?;
        // SAFETY: the context is current; two numbers are written.
        unsafe { self.driver().cu_ctx_get_stream_priority_range(&mut lowest, &mut highest) }?;
        Ok(highest.min(lowest)..=lowest)
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn backend::Stream>> {
        Ok(Stream::new(&self.shared, options)?)
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn backend::Event>> {
        Ok(Event::new(&self.shared.context, self.shared.id, options)?)
    }

    fn load_ptx(&self, source: &str) -> Result<Arc<dyn backend::Module>> {
        Ok(Arc::new(Module::from_ptx(&self.shared.context, self.shared.id, source)?))
    }

    fn load_binary(&self, image: &[u8]) -> Result<Arc<dyn backend::Module>> {
        Ok(Arc::new(Module::from_binary(&self.shared.context, self.shared.id, image)?))
    }

    /// Waits for the whole context, and so for streams of other code too. The driver refuses that
    /// while it captures a stream. Then only the streams that this device knows are waited for.
    /// ([`cuCtxSynchronize`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html))
    fn wait_all(&self) -> Result<()> {
        self.shared.hosted_launches.wait_all();
        let _entered = self.shared.context.enter()?;
        // SAFETY: the context is current.
        match context_wait::unless_capturing(|| unsafe { self.driver().cu_ctx_synchronize() }) {
            None => {}
            Some(Err(error)) if error.code() == Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
                log!(debug, %error, "other code captures a stream");
            }
            Some(waited) => return Ok(waited?),
        }
        for end in self.shared.streams.ends()? {
            end.synchronize()?;
        }
        Ok(())
    }

    fn wait_all_timeout(&self, timeout: Duration) -> Result<()> {
        let wait = PollingWait::new(timeout);
        let late = || backend::timed_out("the work on the device", timeout);
        if !self.shared.hosted_launches.wait_all_until(wait.deadline()) {
            return Err(late());
        }
        for end in self.shared.streams.ends()? {
            if !wait.until(|| end.is_reached())? {
                return Err(late());
            }
        }
        Ok(())
    }

    fn cancel(&self) {
        self.shared.hosted_launches.cancel_all();
    }

    fn read(&self, src: &dyn backend::Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        let address = self.address(src, offset, dst.len())?;
        if dst.is_empty() {
            return Ok(());
        }
        Ok(self.shared.allocator.copy_now(dst.as_mut_ptr() as u64, address, dst.len())?)
    }

    fn write(&self, dst: &dyn backend::Allocation, offset: u64, src: &[u8]) -> Result<()> {
        let address = self.address(dst, offset, src.len())?;
        if src.is_empty() {
            return Ok(());
        }
        Ok(self.shared.allocator.copy_now(address, src.as_ptr() as u64, src.len())?)
    }

    fn check_device_launch(&self) -> Result<()> {
        let (found, needed) = (self.driver().version(), DEVICE_LAUNCH_SINCE);
        if found < needed {
            return Err(Error::new(
                ErrorKind::NotSupported,
                format!("launches from kernels need a driver for CUDA {needed}, this one supports {found}"),
            ));
        }
        Ok(())
    }

    unsafe fn instantiate(
        &self,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Box<dyn backend::Executable>> {
        graph::instantiate(&self.shared, definition, options)
    }

    fn attachment(&self) -> Option<&backend::Attachment> {
        Some(&self.attachment)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaDevice {
    /// Cancels hosted launches after a grace period. The last handle is gone, so nobody can wait
    /// for them or cancel them.
    fn drop(&mut self) {
        let launches = Arc::clone(&self.shared.hosted_launches);
        if !launches.are_busy() {
            return;
        }
        let end = move || {
            thread::sleep(backend::GRACE);
            launches.cancel_all();
        };
        if let Err(error) = thread::Builder::new().name("gridloom-grace".to_owned()).spawn(end) {
            log!(warn, %error, "no thread to end what the host drives on a device that was dropped");
        }
    }
}

/// Questions to the driver about one GPU.
struct Facts<'a> {
    driver: &'a Driver,
    device: CUdevice,
}

impl Facts<'_> {
    fn attribute(&self, attribute: CUdevice_attribute) -> DriverResult<c_int> {
        let mut value = 0;
        // SAFETY: one number is written.
        unsafe { self.driver.cu_device_get_attribute(&mut value, attribute, self.device)? };
        Ok(value)
    }

    fn number(&self, attribute: CUdevice_attribute) -> DriverResult<u32> {
        Ok(u32::try_from(self.attribute(attribute)?).unwrap_or(0))
    }

    /// Returns whether the GPU has a feature. A feature that the driver does not know counts as
    /// missing.
    fn flag(&self, attribute: CUdevice_attribute) -> bool {
        self.attribute(attribute).is_ok_and(|value| value != 0)
    }

    fn name(&self) -> DriverResult<String> {
        let mut buffer = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is passed; the driver ends the name with NUL.
        unsafe { self.driver.cu_device_get_name(buffer.as_mut_ptr(), buffer.len() as c_int, self.device)? };
        buffer[buffer.len() - 1] = 0;
        // SAFETY: there is a NUL in the buffer.
        Ok(unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned())
    }

    fn uuid(&self) -> DriverResult<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: sixteen bytes are written.
        unsafe { self.driver.cu_device_get_uuid(&mut uuid, self.device)? };
        Ok(uuid.bytes.map(|byte| byte as u8))
    }

    fn total_memory(&self) -> DriverResult<u64> {
        let mut bytes = 0;
        // SAFETY: one size is written.
        unsafe { self.driver.cu_device_total_mem(&mut bytes, self.device)? };
        Ok(bytes as u64)
    }

    fn capability(&self) -> DriverResult<(u32, u32)> {
        Ok((
            self.number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    fn limits(&self) -> DriverResult<Limits> {
        let dim = |x, y, z| -> DriverResult<Dim3> {
            Ok(Dim3::new(self.number(x)?, self.number(y)?, self.number(z)?))
        };
        // 32 KiB of parameters need both the hardware and a driver of 12.1.
        let large = self.capability()? >= (7, 0) && self.driver.supports(CudaVersion::new(12, 1));
        let shared = self.number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
        let opt_in =
            self.number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(Limits {
            max_grid: dim(
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
            )?,
            max_block: dim(
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
            )?,
            max_threads_per_block: self
                .number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_shared_per_block: opt_in.max(shared),
            warp_size: self.number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            max_parameter_bytes: if large { 32_764 } else { 4_096 },
        })
    }
}
