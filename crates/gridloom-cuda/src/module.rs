//! Loaded code: PTX that the driver compiles, or machine code.

use crate::condition_ptx;
use crate::context::Context;
use crate::declared::{DeclaredKernel, DeclaredKernels};
use crate::driver::DriverError;
use crate::kernel::Kernel;
use crate::release::Handle;
use crate::retry_once::RetryOnce;
use crate::sys::*;
use crate::version::CudaVersion;
use gridloom_core::backend::{self, DeviceId};
use gridloom_core::log;
use gridloom_core::memory::MemoryKind;
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The first driver that tells the kernels of a module, and their parameters.
const PARAMETERS_SINCE: CudaVersion = CudaVersion::new(12, 4);

/// The first driver that has `cudaGraphSetConditional`.
const CONDITION_SETTER_SINCE: CudaVersion = CudaVersion::new(12, 3);

/// Bytes for each of the compiler's two logs.
const LOG_BYTES: usize = 16 << 10;

/// Code in a context, unloaded with its last kernel.
#[derive(Debug)]
pub struct Module {
    context: Arc<Context>,
    device: DeviceId,
    raw: CUmodule,
    conditions: Conditions,
    /// What the PTX tells and the driver does not.
    declared: Option<Arc<DeclaredKernels>>,
    /// The PTX that it was loaded from.
    ptx: Option<Arc<str>>,
}

/// How the code of a module sets conditions.
#[derive(Debug)]
enum Conditions {
    /// Not at all, or in machine code that cannot be changed.
    Fixed,
    /// Through the driver. The text is kept for the variant that stores conditions, which is
    /// compiled when it is first needed.
    Driver { source: Arc<str>, stored: Box<RetryOnce<Arc<Module>>> },
    /// By storing the value at the address passed as the handle.
    Stored,
}

// SAFETY: the handle may be used from any thread; the driver's functions on modules are
// thread-safe.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Compiles PTX for the GPU and loads it.
    pub(crate) fn from_ptx(context: &Arc<Context>, device: DeviceId, source: &str) -> Result<Self> {
        let text = CString::new(source).map_err(|error| {
            let at = error.nul_position();
            Error::new(ErrorKind::InvalidModule, format!("the PTX has a NUL byte at position {at}"))
        })?;
        if gridloom_ptx::looks_like_cuda(source) {
            return Err(Error::new(
                ErrorKind::InvalidModule,
                format!(
                    "the PTX cannot be read: it does not start with .version ({})",
                    gridloom_ptx::CUDA_HELP
                ),
            ));
        }
        let source: Arc<str> = Arc::from(source);
        let driver = context.driver();
        let declared = DeclaredKernels::of(&source, driver.supports(PARAMETERS_SINCE));
        let ptx = Some(Arc::clone(&source));
        if condition_ptx::sets_conditions(&source) && !driver.supports(CONDITION_SETTER_SINCE) {
            // The driver has no function to set a condition, so the module could not even be
            // linked.
            let mut module = Self::storing_conditions(context, device, &source, declared)?;
            module.ptx = ptx;
            return Ok(module);
        }
        let conditions = match condition_ptx::sets_conditions(&source) {
            true => Conditions::Driver { source, stored: Box::new(RetryOnce::new()) },
            false => Conditions::Fixed,
        };
        let mut module = Self::load(context, device, text.as_bytes_with_nul(), conditions, declared)?;
        module.ptx = ptx;
        Ok(module)
    }

    /// Returns the PTX that it was loaded from.
    pub(crate) fn ptx(&self) -> Option<&str> {
        self.ptx.as_deref()
    }

    /// Returns what the PTX says about a kernel, if it was kept.
    pub(crate) fn declared(&self, kernel: &CStr) -> Option<&DeclaredKernel> {
        self.declared.as_ref()?.find(kernel.to_str().ok()?)
    }

    /// Loads the variant of the code that stores conditions. It declares the same kernels.
    fn storing_conditions(
        context: &Arc<Context>,
        device: DeviceId,
        source: &str,
        declared: Option<Arc<DeclaredKernels>>,
    ) -> Result<Self> {
        let text = CString::new(condition_ptx::store_conditions(source))
            .map_err(|_| Error::new(ErrorKind::InvalidModule, "the PTX has a NUL byte"))?;
        Self::load(context, device, text.as_bytes_with_nul(), Conditions::Stored, declared)
    }

    /// Loads machine code: a cubin, or a fatbin with code for several GPUs.
    pub(crate) fn from_binary(context: &Arc<Context>, device: DeviceId, image: &[u8]) -> Result<Self> {
        check_binary(image)?;
        Self::load(context, device, image, Conditions::Fixed, None)
    }

    /// Calls [`cuModuleLoadDataEx`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html).
    fn load(
        context: &Arc<Context>,
        device: DeviceId,
        image: &[u8],
        conditions: Conditions,
        declared: Option<Arc<DeclaredKernels>>,
    ) -> Result<Self> {
        let mut errors = vec![0u8; LOG_BYTES];
        let mut remarks = vec![0u8; LOG_BYTES];
        let mut keys = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes sizes as values of pointer type.
        let mut values: [*mut c_void; 4] = [
            errors.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
            remarks.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut raw = ptr::null_mut();
        let _entered = context.enter()?;
        // SAFETY: the image is whole (PTX ends in NUL, binaries carry their size), and options and
        // logs live across the call.
        let loaded = unsafe {
            context.driver().cu_module_load_data_ex(
                &mut raw,
                image.as_ptr().cast(),
                keys.len() as u32,
                keys.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match loaded {
            Ok(()) => {
                let remarks = text_of(&remarks);
                if !remarks.is_empty() {
                    log!(debug, remarks, "the driver compiled a module");
                }
                Ok(Self { context: Arc::clone(context), device, raw, conditions, declared, ptx: None })
            }
            Err(error) => Err(load_error(error, text_of(&errors), image)),
        }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Looks a kernel up by its name.
    /// ([`cuModuleGetFunction`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html))
    pub(crate) fn find_kernel(self: &Arc<Self>, name: &CStr) -> Result<Arc<Kernel>> {
        let mut raw = ptr::null_mut();
        let _entered = self.context.enter()?;
        // SAFETY: module and name are alive; one handle is written.
        let found =
            unsafe { self.context.driver().cu_module_get_function(&mut raw, self.raw, name.as_ptr()) };
        match found {
            Ok(()) => Ok(Kernel::of_module(self, raw, name)?),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_FOUND) => {
                Err(self.no_such_kernel(&name.to_string_lossy()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn no_such_kernel(&self, name: &str) -> Error {
        let names = backend::Module::kernel_names(self);
        let hint = match names.len() {
            0 => String::new(),
            _ => format!("; it has {}", names.join(", ")),
        };
        Error::new(ErrorKind::NotFound, format!("the module has no kernel `{name}`{hint}"))
    }

    /// Returns a variant of the code in which `cudaGraphSetConditional` stores the value at the
    /// address that is passed as the handle.
    ///
    /// This variant sets conditions if the host drives the conditional, or if the driver has no
    /// conditionals.
    pub(crate) fn with_stored_conditions(self: &Arc<Self>) -> Result<Arc<Self>> {
        match &self.conditions {
            Conditions::Stored => Ok(Arc::clone(self)),
            Conditions::Driver { source, stored } => stored
                .get(|| {
                    let declared = self.declared.clone();
                    Self::storing_conditions(&self.context, self.device, source, declared).map(Arc::new)
                })
                .cloned(),
            Conditions::Fixed => Err(Error::new(
                ErrorKind::NotSupported,
                "the kernel is given a condition that the host has to read, which needs a module that was loaded from PTX and \
                 declares cudaGraphSetConditional; load this module from PTX",
            )),
        }
    }
}

/// Checks an image, so that the driver does not read beyond its end.
fn check_binary(image: &[u8]) -> Result<()> {
    const ELF: &[u8] = b"\x7fELF";
    const FATBIN: &[u8] = &0xBA55_ED50_u32.to_le_bytes();
    let known = image.starts_with(ELF) || image.starts_with(FATBIN);
    if !known || image.len() < 64 {
        return Err(Error::new(
            ErrorKind::InvalidModule,
            format!(
                "the image of {} bytes is neither a cubin nor a fatbin; load PTX text with load_ptx",
                image.len()
            ),
        ));
    }
    Ok(())
}

fn load_error(error: DriverError, log: String, image: &[u8]) -> Error {
    let unsupported_version = error.code() == Some(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    let mut error = Error::from(error);
    if unsupported_version {
        let version = String::from_utf8_lossy(image)
            .lines()
            .find_map(|line| line.trim().strip_prefix(".version").map(|rest| rest.trim().to_owned()))
            .unwrap_or_default();
        error = error.context(format_args!(
            "the PTX is marked as version {version}, newer than this driver knows; update the driver or compile for an older \
             PTX version"
        ));
    }
    if log.is_empty() { error } else { error.with_log(log) }
}

/// Returns the text in a log buffer, up to its NUL.
fn text_of(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim_end().to_owned()
}

impl Drop for Module {
    fn drop(&mut self) {
        let raw = Handle(self.raw);
        // SAFETY: unloaded once; kernels hold the module, and work in flight holds kernels.
        self.context.let_go("module", move |driver| unsafe { driver.cu_module_unload(raw.raw()) });
    }
}

impl backend::Module for Module {
    fn device(&self) -> DeviceId {
        self.device
    }

    /// Returns the names that the driver lists, or before CUDA 12.4 those that the PTX declares.
    /// ([`cuModuleEnumerateFunctions`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html))
    fn kernel_names(&self) -> Vec<String> {
        let driver = self.context.driver();
        let names = || -> crate::driver::DriverResult<Vec<String>> {
            let _entered = self.context.enter()?;
            let mut count = 0;
            // SAFETY: the module is alive; one number is written.
            unsafe { driver.cu_module_get_function_count(&mut count, self.raw)? };
            let mut functions: Vec<CUfunction> = vec![ptr::null_mut(); count as usize];
            // SAFETY: the array has room for as many handles as are asked for.
            unsafe { driver.cu_module_enumerate_functions(functions.as_mut_ptr(), count, self.raw)? };
            let mut names = Vec::with_capacity(functions.len());
            for function in functions {
                let mut name: *const c_char = ptr::null();
                // SAFETY: the function is of this module; one pointer is written.
                unsafe { driver.cu_func_get_name(&mut name, function)? };
                if !name.is_null() {
                    // SAFETY: a NUL-terminated string that lives as long as the module.
                    names.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
                }
            }
            Ok(names)
        };
        names().unwrap_or_else(|_| {
            let declared = self.declared.iter().flat_map(|declared| declared.all());
            declared.map(|kernel| kernel.name.clone()).collect()
        })
    }

    fn kernel(self: Arc<Self>, name: &str) -> Result<Arc<dyn backend::Kernel>> {
        let name = CString::new(name).map_err(|_| self.no_such_kernel(name))?;
        Ok(self.find_kernel(&name)?)
    }

    /// Calls [`cuModuleGetGlobal`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html).
    fn global(self: Arc<Self>, name: &str) -> Result<Arc<dyn backend::Allocation>> {
        let missing = || Error::new(ErrorKind::NotFound, format!("the module has no variable `{name}`"));
        let c_name = CString::new(name).map_err(|_| missing())?;
        let (mut address, mut bytes) = (0, 0);
        let entered = self.context.enter()?;
        // SAFETY: module and name are alive; an address and a size are written.
        let found = unsafe {
            self.context.driver().cu_module_get_global(&mut address, &mut bytes, self.raw, c_name.as_ptr())
        };
        drop(entered);
        match found {
            Ok(()) => {
                let name = name.to_owned();
                Ok(Arc::new(ModuleVariable { module: self, name, address, bytes: bytes as u64 }))
            }
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_FOUND) => Err(missing()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A variable of a module, which it keeps alive.
#[derive(Debug)]
struct ModuleVariable {
    module: Arc<Module>,
    name: String,
    address: CUdeviceptr,
    bytes: u64,
}

// SAFETY: the driver told address and size of the variable, which is there while the module, held
// here, is loaded.
unsafe impl backend::Allocation for ModuleVariable {
    fn device(&self) -> DeviceId {
        self.module.device
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn variable(&self) -> Option<backend::ModuleVariable<'_>> {
        Some(backend::ModuleVariable { ptx: self.module.ptx(), name: &self.name })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_machine_code_are_refused_before_the_driver_sees_them() {
        for image in [&b""[..], b".version 8.0", b"\x7fELF"] {
            let error = check_binary(image).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidModule);
        }
        assert!(check_binary(&[b"\x7fELF".as_slice(), &[0; 60]].concat()).is_ok());
    }

    #[test]
    fn a_log_ends_at_its_first_nul() {
        assert_eq!(text_of(b"line 1; error\n\0\0rest"), "line 1; error");
        assert_eq!(text_of(b"full"), "full");
    }
}
