//! Kernels, and launches of them in the driver's own terms.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::interop::Owner;
use crate::module::Module;
use crate::registry::{self, KERNELS};
use crate::sys::*;
use gridloom_core::backend::{self, DeviceId};
use gridloom_core::launch::{KernelLimits, LaunchConfig};
use gridloom_core::log;
use gridloom_core::op::{KernelArgs, ParamLayout, Params};
use gridloom_core::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The most blocks of a cluster that every device with clusters runs.
const PORTABLE_CLUSTER: u128 = 8;

/// Dynamic shared memory that a block may have without asking for more.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// A kernel, which keeps its code loaded.
#[derive(Debug)]
pub struct Kernel {
    home: Home,
    raw: CUfunction,
    name: CString,
    /// The name as text, for everything but the driver.
    text: String,
    params: Option<Params>,
    limits: KernelLimits,
    registers: c_int,
    /// The dynamic shared memory that was asked for so far.
    dynamic_shared: AtomicU32,
    /// Whether it is known to wait, before it ends, for the kernels it depends on.
    waits: AtomicBool,
}

/// Where the code of a kernel comes from.
#[derive(Debug)]
enum Home {
    /// A module of Gridloom's, which is kept alive.
    Module(Arc<Module>),
    /// Code that another library loaded.
    Borrowed { context: Arc<Context>, device: DeviceId, _owner: Option<Owner> },
}

impl Home {
    fn context(&self) -> &Arc<Context> {
        match self {
            Self::Module(module) => module.context(),
            Self::Borrowed { context, .. } => context,
        }
    }
}

// SAFETY: the handle may be used from any thread, and what is asked of it is thread-safe in the
// driver.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Returns the kernel of a module with this handle. The driver has one handle for each, and so
    /// there is one kernel.
    pub(crate) fn of_module(module: &Arc<Module>, raw: CUfunction, name: &CStr) -> DriverResult<Arc<Self>> {
        if let Some(known) = KERNELS.find(registry::key(raw))
            && matches!(&known.home, Home::Module(home) if Arc::ptr_eq(home, module))
        {
            return Ok(known);
        }
        let mut kernel = Self::new(Home::Module(Arc::clone(module)), raw, name.to_owned())?;
        if let Some(declared) = module.declared(name) {
            kernel.limits.required_block = declared.required_block;
            kernel.waits = AtomicBool::new(declared.waits);
            if kernel.params.is_none() {
                kernel.params.clone_from(&declared.params);
            }
        }
        let kernel = Arc::new(kernel);
        KERNELS.add(registry::key(raw), &kernel);
        Ok(kernel)
    }

    /// Wraps a kernel that another library loaded and unloads.
    pub(crate) fn borrow(
        context: &Arc<Context>,
        device: DeviceId,
        raw: CUfunction,
        owner: Option<Owner>,
    ) -> DriverResult<Self> {
        let _entered = context.enter()?;
        let name = function_name(context, raw);
        let home = Home::Borrowed { context: Arc::clone(context), device, _owner: owner };
        let kernel = Self::new(home, raw, name)?;
        // The library of the kernel may have asked for this much already. Gridloom never asks for
        // less.
        let asked = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let asked = u32::try_from(function_attribute(context, raw, asked)?).unwrap_or(0);
        kernel.dynamic_shared.store(asked, Ordering::Relaxed);
        Ok(kernel)
    }

    fn new(home: Home, raw: CUfunction, name: CString) -> DriverResult<Self> {
        let context = home.context();
        let attribute = |attribute| function_attribute(context, raw, attribute);
        let max_threads = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let static_shared = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let limits = KernelLimits {
            max_threads: u32::try_from(max_threads).ok(),
            required_block: None,
            static_shared: u32::try_from(static_shared).unwrap_or(0),
        };
        Ok(Self {
            params: parameters(context, raw)?,
            limits,
            registers: attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            dynamic_shared: AtomicU32::new(0),
            waits: AtomicBool::new(false),
            home,
            raw,
            text: name.to_str().unwrap_or_default().to_owned(),
            name,
        })
    }

    /// Returns the driver's handle, valid while this lives.
    pub fn raw(&self) -> CUfunction {
        self.raw
    }

    /// Returns the variant of the kernel that stores conditions in memory. It receives an address
    /// instead of the handle of each condition.
    pub(crate) fn with_stored_conditions(&self) -> Result<Arc<Self>> {
        match &self.home {
            Home::Module(module) => module.with_stored_conditions()?.find_kernel(&self.name),
            Home::Borrowed { .. } => Err(Error::new(
                ErrorKind::NotSupported,
                format!(
                    "kernel {} is given a condition that the host has to read, and was loaded by other code; load its PTX with \
                     load_ptx",
                    backend::Kernel::name(self)
                ),
            )),
        }
    }

    /// Returns whether its parameters are known, so that each argument is passed by its own
    /// pointer.
    pub(crate) fn has_known_parameters(&self) -> bool {
        self.params.is_some()
    }

    /// Returns whether the kernel may start before the kernels it depends on have ended.
    ///
    /// The GPU has to be able to, and the kernel has to be known to wait for them
    /// (`griddepcontrol.wait`) before it ends, as the PTX manual demands. The end of a kernel that
    /// does not wait says nothing about those before it: a launch could count as ended while they
    /// still run, and the next launch of the graph would start them a second time.
    #[inline]
    pub(crate) fn may_start_early(&self) -> bool {
        self.waits.load(Ordering::Relaxed) && self.home.context().overlaps_kernels()
    }

    /// Notes that other code launches this kernel of its own early, and so promises that the kernel
    /// waits.
    pub(crate) fn trust_to_wait(&self) {
        if matches!(self.home, Home::Borrowed { .. }) {
            self.waits.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the CUDA kernel behind a kernel of the core.
    pub(crate) fn from_backend(kernel: &dyn backend::Kernel) -> Result<&Self> {
        kernel
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Error::new(ErrorKind::WrongDevice, "the kernel does not belong to a CUDA device"))
    }

    /// Allows what the driver allows only if it is asked: more than 48 KiB of shared memory, and
    /// clusters of more than 8 blocks.
    /// ([`cuFuncSetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html))
    #[inline]
    pub(crate) fn allow(&self, config: &LaunchConfig) -> DriverResult<()> {
        if config.cluster.is_some_and(|cluster| cluster.volume() > PORTABLE_CLUSTER) {
            self.ask_for_large_clusters()?;
        }
        let bytes = config.shared;
        if bytes + self.limits.static_shared <= SHARED_WITHOUT_ASKING
            || self.dynamic_shared.load(Ordering::Relaxed) >= bytes
        {
            return Ok(());
        }
        self.ask_for_dynamic_shared(bytes)
    }

    #[cold]
    fn ask_for_large_clusters(&self) -> DriverResult<()> {
        let context = self.home.context();
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        let _entered = context.enter()?;
        // SAFETY: the function is alive while the module is.
        unsafe { context.driver().cu_func_set_attribute(self.raw, attribute, 1) }
    }

    /// Returns how many blocks of a launch run at once.
    /// ([`cuOccupancyMaxActiveClusters`,
    /// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__OCCUPANCY.html))
    fn resident(&self, config: &LaunchConfig) -> DriverResult<u64> {
        let context = self.home.context();
        let driver = context.driver();
        let _entered = context.enter()?;
        self.allow(config)?;
        let mut count = 0;
        let size = match config.cluster {
            Some(cluster) => {
                let mut attributes = attributes(config);
                let (grid, block) = (config.grid, config.block);
                let launch = CUlaunchConfig {
                    gridDimX: grid.x,
                    gridDimY: grid.y,
                    gridDimZ: grid.z,
                    blockDimX: block.x,
                    blockDimY: block.y,
                    blockDimZ: block.z,
                    sharedMemBytes: config.shared,
                    hStream: ptr::null_mut(),
                    attrs: attributes.as_mut_ptr(),
                    numAttrs: attributes.len() as u32,
                };
                // SAFETY: the function is alive; the description is read and one number is written.
                unsafe { driver.cu_occupancy_max_active_clusters(&mut count, self.raw, &launch)? };
                u64::try_from(cluster.volume()).unwrap_or(u64::MAX)
            }
            None => {
                let threads = c_int::try_from(config.block.volume()).unwrap_or(c_int::MAX);
                // SAFETY: the function is alive; one number is written.
                unsafe {
                    driver.cu_occupancy_max_active_blocks_per_multiprocessor_with_flags(
                        &mut count,
                        self.raw,
                        threads,
                        config.shared as usize,
                        0,
                    )?;
                }
                let mut processors = 0;
                let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
                // SAFETY: one number is written.
                unsafe { driver.cu_device_get_attribute(&mut processors, attribute, context.device())? };
                u64::try_from(processors).unwrap_or(0)
            }
        };
        Ok(u64::try_from(count).unwrap_or(0).saturating_mul(size))
    }

    #[cold]
    fn ask_for_dynamic_shared(&self, bytes: u32) -> DriverResult<()> {
        let context = self.home.context();
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let _entered = context.enter()?;
        // SAFETY: the function is alive while the module is. Two threads may race and leave the
        // smaller value; the loser of the `fetch_max` below sets the larger one again.
        unsafe { context.driver().cu_func_set_attribute(self.raw, attribute, value)? };
        let before = self.dynamic_shared.fetch_max(bytes, Ordering::Relaxed);
        if before > bytes {
            let value = c_int::try_from(before).unwrap_or(c_int::MAX);
            // SAFETY: as above.
            unsafe { context.driver().cu_func_set_attribute(self.raw, attribute, value)? };
        }
        Ok(())
    }
}

/// Returns the name of a function, or its address if the driver is older than 12.3 and does not
/// tell it.
/// ([`cuFuncGetName`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html))
fn function_name(context: &Context, function: CUfunction) -> CString {
    let mut name: *const c_char = ptr::null();
    // SAFETY: the function is alive; one pointer is written.
    match unsafe { context.driver().cu_func_get_name(&mut name, function) } {
        // SAFETY: a NUL-terminated string that lives as long as the function.
        Ok(()) if !name.is_null() => unsafe { CStr::from_ptr(name) }.to_owned(),
        _ => CString::new(format!("kernel at {function:p}")).unwrap_or_default(),
    }
}

/// Calls [`cuFuncGetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html).
fn function_attribute(
    context: &Context,
    function: CUfunction,
    attribute: CUfunction_attribute,
) -> DriverResult<c_int> {
    let mut value = 0;
    // SAFETY: the function is alive; one number is written.
    unsafe { context.driver().cu_func_get_attribute(&mut value, attribute, function)? };
    Ok(value)
}

/// Returns the parameters, if the driver tells them (since 12.4).
/// ([`cuFuncGetParamInfo`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html))
fn parameters(context: &Context, function: CUfunction) -> DriverResult<Option<Params>> {
    let driver = context.driver();
    let mut params = Params::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the function is alive; two sizes are written.
        let asked = unsafe { driver.cu_func_get_param_info(function, params.len(), &mut offset, &mut size) };
        match asked {
            Ok(CUresult::CUDA_SUCCESS) => {
                params.push(ParamLayout { offset: offset as u32, size: size as u32 });
            }
            Ok(CUresult::CUDA_ERROR_INVALID_VALUE) => {
                // The index is past the last parameter. The driver logs this as an error, which
                // must not be taken for that of a later call.
                driver.discard_log();
                return Ok(Some(params));
            }
            Ok(code) => return driver.check("cuFuncGetParamInfo", code).map(|()| None),
            // The driver is too old for this function.
            Err(_) => return Ok(None),
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        KERNELS.remove(registry::key(self.raw), self);
    }
}

// SAFETY: it belongs to the device that loaded it, and its parameters and limits are those of its
// code.
unsafe impl backend::Kernel for Kernel {
    fn device(&self) -> DeviceId {
        match &self.home {
            Home::Module(module) => backend::Module::device(&**module),
            Home::Borrowed { device, .. } => *device,
        }
    }

    fn name(&self) -> &str {
        &self.text
    }

    fn params(&self) -> Option<&Params> {
        self.params.as_ref()
    }

    fn limits(&self) -> &KernelLimits {
        &self.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        let context = self.home.context();
        let mut properties = vec![
            ("registers".to_owned(), self.registers.to_string()),
            ("static shared bytes".to_owned(), self.limits.static_shared.to_string()),
        ];
        for (name, attribute) in [
            ("local bytes", CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            ("constant bytes", CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
            ("PTX version", CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION),
            ("binary version", CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION),
        ] {
            if let Ok(value) = function_attribute(context, self.raw, attribute) {
                properties.push((name.to_owned(), value.to_string()));
            }
        }
        properties
    }

    fn resident_blocks(&self, config: &LaunchConfig) -> Result<Option<u64>> {
        match self.resident(config) {
            Ok(count) => Ok(Some(count)),
            // The driver has no clusters, or the device never runs such a launch.
            Err(error) => {
                log!(debug, %error, kernel = self.text, "the occupancy of a launch is not known");
                Ok(None)
            }
        }
    }

    fn ptx(&self) -> Option<&str> {
        match &self.home {
            Home::Module(module) => module.ptx(),
            Home::Borrowed { .. } => None,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The description of one launch for the driver. It borrows the bytes of the arguments.
pub(crate) struct Launch<'a> {
    kernel: &'a Kernel,
    config: &'a LaunchConfig,
    /// One pointer for each parameter, where the parameters are known.
    pointers: SmallVec<[*mut c_void; 8]>,
    /// The whole buffer with its size, for kernels whose parameters are not known. The driver would
    /// otherwise read as many pointers as the kernel has parameters.
    buffer: Option<PackedArguments>,
}

/// The `extra` form of kernel arguments: the whole buffer with its size.
pub(crate) struct PackedArguments {
    size: usize,
    list: [*mut c_void; 5],
}

impl PackedArguments {
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let start = bytes.as_ptr().cast_mut().cast();
        // The address of the size is filled in once this value does not move any more.
        let list = [BUFFER_POINTER, start, BUFFER_SIZE, ptr::null_mut(), BUFFER_END];
        PackedArguments { size: bytes.len(), list }
    }

    /// Returns the description for the driver. It points into `self` and the bytes.
    #[inline]
    pub(crate) fn list(&mut self) -> *mut *mut c_void {
        if self.size == 0 {
            return ptr::null_mut();
        }
        self.list[3] = (&raw mut self.size).cast();
        self.list.as_mut_ptr()
    }
}

/// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `CU_LAUNCH_PARAM_BUFFER_SIZE` and `CU_LAUNCH_PARAM_END`: casts
/// in the header.
const BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
const BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
const BUFFER_END: *mut c_void = ptr::null_mut();

impl<'a> Launch<'a> {
    pub(crate) fn new(
        kernel: &'a Kernel,
        config: &'a LaunchConfig,
        args: &'a KernelArgs,
    ) -> DriverResult<Self> {
        kernel.allow(config)?;
        let (mut pointers, mut buffer) = (SmallVec::new(), None);
        match &kernel.params {
            Some(params) => pointers.extend(addresses(params, &args.bytes)),
            None => buffer = Some(PackedArguments::new(&args.bytes)),
        }
        Ok(Self { kernel, config, pointers, buffer })
    }

    #[inline]
    fn arguments(&mut self) -> (*mut *mut c_void, *mut *mut c_void) {
        match &mut self.buffer {
            Some(packed) => (ptr::null_mut(), packed.list()),
            None if self.pointers.is_empty() => (ptr::null_mut(), ptr::null_mut()),
            None => (self.pointers.as_mut_ptr(), ptr::null_mut()),
        }
    }

    /// Launches on a stream; the context is current.
    /// ([`cuLaunchKernel` and
    /// `cuLaunchKernelEx`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html))
    ///
    /// # Safety
    ///
    /// The arguments have the types that the kernel declares, and what they point to lives until
    /// the kernel has run.
    pub(crate) unsafe fn enqueue(mut self, stream: CUstream) -> DriverResult<()> {
        let (grid, block) = (self.config.grid, self.config.block);
        let (params, extra) = self.arguments();
        let context = self.kernel.home.context();
        let driver = context.driver();
        let mut attributes = attributes(self.config);
        if self.config.programmatic && self.kernel.may_start_early() {
            // Needed on streams only. In a graph, edges are programmatic.
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            let mut attribute = CUlaunchAttribute { id, ..Default::default() };
            attribute.value.programmaticStreamSerializationAllowed = 1;
            attributes.push(attribute);
        }
        if attributes.is_empty() {
            // SAFETY: promised by the caller; the arrays live across the call, which copies the
            // arguments.
            return unsafe {
                driver.cu_launch_kernel(
                    self.kernel.raw,
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    self.config.shared,
                    stream,
                    params,
                    extra,
                )
            };
        }
        let config = CUlaunchConfig {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: self.config.shared,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as c_uint,
        };
        // SAFETY: as above.
        unsafe { driver.cu_launch_kernel_ex(&config, self.kernel.raw, params, extra) }
    }
}

/// The arguments of a kernel node, in one block. This takes the driver no longer than one address
/// per argument, and takes Gridloom less time. Driver 580.159 refuses a block for cooperative
/// launches, which get the address of each argument.
pub(crate) struct NodeArguments {
    packed: PackedArguments,
    pointers: Vec<*mut c_void>,
}

impl NodeArguments {
    #[inline]
    pub(crate) fn new(kernel: &Kernel, config: &LaunchConfig, bytes: &[u8]) -> Self {
        let pointers = match &kernel.params {
            Some(params) if config.cooperative => addresses(params, bytes).collect(),
            _ => Vec::new(),
        };
        Self { packed: PackedArguments::new(bytes), pointers }
    }

    /// Returns the description of the node, whose kernel [allows](Kernel::allow) the launch. It
    /// points into `self` and the bytes.
    #[inline]
    pub(crate) fn describe(&mut self, kernel: &Kernel, config: &LaunchConfig) -> CUDA_KERNEL_NODE_PARAMS_v2 {
        let (params, extra) = match self.pointers.as_mut_slice() {
            [] => (ptr::null_mut(), self.packed.list()),
            pointers => (pointers.as_mut_ptr(), ptr::null_mut()),
        };
        let (grid, block) = (config.grid, config.block);
        CUDA_KERNEL_NODE_PARAMS_v2 {
            func: kernel.raw,
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: config.shared,
            kernelParams: params,
            extra,
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        }
    }
}

/// Returns where each argument lies. The core has checked that there is one for each parameter, of
/// its size.
fn addresses(params: &[ParamLayout], bytes: &[u8]) -> impl Iterator<Item = *mut c_void> {
    params.iter().map(|place| bytes[place.offset as usize..].as_ptr().cast_mut().cast())
}

/// Returns the attributes of a launch. Most have none.
#[inline]
pub(crate) fn attributes(config: &LaunchConfig) -> SmallVec<[CUlaunchAttribute; 3]> {
    let LaunchConfig { cooperative, cluster, priority, .. } = config;
    if *cooperative || cluster.is_some() || priority.is_some() {
        special_attributes(config)
    } else {
        SmallVec::new()
    }
}

fn special_attributes(config: &LaunchConfig) -> SmallVec<[CUlaunchAttribute; 3]> {
    let mut attributes = SmallVec::new();
    let mut add = |id, set: &dyn Fn(&mut CUlaunchAttributeValue)| {
        let mut attribute = CUlaunchAttribute { id, ..Default::default() };
        set(&mut attribute.value);
        attributes.push(attribute);
    };
    if config.cooperative {
        add(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|value| value.cooperative = 1);
    }
    if let Some(cluster) = config.cluster {
        add(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|value| {
            value.clusterDim =
                CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster.x, y: cluster.y, z: cluster.z };
        });
    }
    if let Some(priority) = config.priority {
        add(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY, &|value| value.priority = priority);
    }
    attributes
}
