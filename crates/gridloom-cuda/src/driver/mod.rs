//! The CUDA driver, opened at run time.
//!
//! [`Driver`] opens `libcuda` when it is first needed, never when the program starts, so a program
//! that uses Gridloom also runs on machines without a GPU. Entry points are looked up at their
//! first use by the exact name that has the wanted meaning (see `functions.rs`), so one binary
//! serves drivers from CUDA 12.0 to 13.x. What is missing is an [`Err`](DriverError) that says what
//! is needed and what was found.

mod error;
#[cfg(test)]
pub(crate) mod fake;
mod functions;
mod log;
mod source;
mod table;

pub use error::{CallError, DriverError, DriverResult, MissingDriver, UnavailableFunction};
pub(crate) use source::reason as loader_reason;
pub use source::{DRIVER_NAMES, DriverLibrary, SymbolSource};

use crate::host_pages::HostPages;
use crate::pools::Pools;
use crate::retry_once::RetryOnce;
use crate::sys::CUresult;
use crate::version::CudaVersion;
use functions::Slots;
use gridloom_core::log;
use parking_lot::Mutex;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use table::{Function, Slot};

/// The environment variable that caps the driver version: `GRIDLOOM_CUDA_MAX_VERSION=12.2`.
pub const MAX_VERSION_VARIABLE: &str = "GRIDLOOM_CUDA_MAX_VERSION";

/// How a driver is opened.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DriverOptions {
    /// Behaves like a driver of this version: newer entry points are missing, and the reported
    /// version is no higher. For testing against old drivers on a new one.
    pub max_version: Option<CudaVersion>,
}

impl DriverOptions {
    /// Makes the driver behave like one of this version.
    #[must_use]
    pub fn max_version(mut self, version: impl Into<Option<CudaVersion>>) -> Self {
        self.max_version = version.into();
        self
    }

    /// Returns the options that environment variables set.
    pub fn from_environment() -> DriverResult<Self> {
        Self::from_text(variable(MAX_VERSION_VARIABLE)?)
    }

    fn from_text(max_version: Option<String>) -> DriverResult<Self> {
        let max_version = max_version
            .map(|text| text.parse::<CudaVersion>())
            .transpose()
            .map_err(|error| unclear(MAX_VERSION_VARIABLE, error.to_string()))?;
        Ok(Self { max_version })
    }
}

/// Returns the text of an environment variable, if it has any.
fn variable(name: &'static str) -> DriverResult<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(unclear(name, error.to_string())),
    }
}

fn unclear(variable: &'static str, reason: String) -> DriverError {
    DriverError::Environment { variable, reason }
}

/// An initialised CUDA driver, and its functions.
#[derive(Debug)]
pub struct Driver {
    slots: Slots,
    source: Box<dyn SymbolSource>,
    version: CudaVersion,
    cap: Option<CudaVersion>,
    pools: Pools,
    host_pages: HostPages,
}

impl Driver {
    /// Returns the process's driver, opened at the first call with
    /// [`DriverOptions::from_environment`].
    ///
    /// Only success is remembered: a driver that is not there yet may be later.
    pub fn get() -> DriverResult<Arc<Self>> {
        static DRIVER: RetryOnce<Arc<Driver>> = RetryOnce::new();
        DRIVER.get(|| Self::open(DriverOptions::from_environment()?)).cloned()
    }

    /// Opens the machine's driver with options of its own, beside the one that [`Driver::get`]
    /// shares.
    pub fn open(options: DriverOptions) -> DriverResult<Arc<Self>> {
        Self::with_source(Box::new(DriverLibrary::open()?), options)
    }

    /// Makes a driver of any source of entry points, and initialises it.
    pub fn with_source(source: Box<dyn SymbolSource>, options: DriverOptions) -> DriverResult<Arc<Self>> {
        let cap = options.max_version;
        let mut driver = Self {
            slots: Slots::default(),
            source,
            // Until the driver has told its version, only the cap hides anything.
            version: cap.unwrap_or(CudaVersion::from_raw(u32::MAX)),
            cap,
            pools: Pools::default(),
            host_pages: HostPages::default(),
        };
        // SAFETY: 0 is the one value `cuInit` takes; it may be called any number of times.
        unsafe { driver.cu_init(0)? };
        let mut raw: c_int = 0;
        // SAFETY: writes one integer, which lives across the call.
        unsafe { driver.cu_driver_get_version(&mut raw)? };
        let reported = CudaVersion::from_raw(u32::try_from(raw).unwrap_or(0));
        driver.version = cap.map_or(reported, |cap| cap.min(reported));
        if driver.version < CudaVersion::OLDEST_SUPPORTED {
            return Err(DriverError::TooOld {
                found: driver.version,
                needed: CudaVersion::OLDEST_SUPPORTED,
                cap,
            });
        }
        driver.listen_to_log();
        log!(
            debug,
            library = driver.source.describe(),
            %reported,
            version = %driver.version,
            "opened the CUDA driver"
        );
        Ok(Arc::new(driver))
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Returns its pages of pinned memory.
    pub(crate) fn host_pages(&self) -> &HostPages {
        &self.host_pages
    }

    /// Returns the newest CUDA version that the driver supports, or the cap if that is lower.
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// Returns the cap on the version, if one is set.
    pub fn cap(&self) -> Option<CudaVersion> {
        self.cap
    }

    /// Returns whether the driver is of `version` or newer, the cap counted in.
    pub fn supports(&self, version: CudaVersion) -> bool {
        self.version >= version
    }

    /// Returns the name or path of the library.
    pub fn library(&self) -> &str {
        self.source.describe()
    }

    /// Looks a function up and remembers it.
    #[cold]
    fn resolve(&self, slot: &Slot, function: &Function) -> DriverResult<NonNull<c_void>> {
        for &(symbol, since) in function.symbols {
            if self.cap.is_some_and(|cap| CudaVersion::from_raw(since) > cap) {
                continue;
            }
            if let Some(address) = self.source.symbol(symbol) {
                slot.set(address);
                return Ok(address);
            }
        }
        Err(DriverError::Unavailable(Box::new(UnavailableFunction {
            function: function.name,
            symbols: function.symbols,
            found: self.version,
            cap: self.cap,
        })))
    }

    /// Turns a result code into a `Result`, with everything the driver says about it.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> DriverResult<()> {
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(self.call_error(call, code)) }
    }

    /// Returns the error for a call that returned `code`.
    #[cold]
    pub(crate) fn call_error(&self, call: &'static str, code: CUresult) -> DriverError {
        let log = log::take();
        // SAFETY: both write one pointer to a string with static lifetime, or null for a code they
        // do not know.
        let name = self.text_of(|text| unsafe { self.cu_get_error_name(code, text) });
        // SAFETY: as above.
        let description = self.text_of(|text| unsafe { self.cu_get_error_string(code, text) });
        DriverError::Call(Box::new(CallError { call, code, name, description, log }))
    }

    /// Forgets what was logged on this thread, after a call whose failure was an answer.
    pub(crate) fn discard_log(&self) {
        drop(log::take());
    }

    fn text_of(&self, ask: impl FnOnce(*mut *const c_char) -> DriverResult<CUresult>) -> String {
        let mut text: *const c_char = ptr::null();
        match ask(&mut text) {
            Ok(CUresult::CUDA_SUCCESS) if !text.is_null() => {
                // SAFETY: on success the driver has stored a NUL-terminated string of static
                // lifetime.
                unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
            }
            _ => String::new(),
        }
    }

    /// Subscribes to the driver's log, if there is one, once for each driver of the process and
    /// forever, so that opening and dropping a driver does not disturb calls on other threads.
    /// Without a log, errors are less readable.
    fn listen_to_log(&self) {
        static HEARD: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        let Some(function) = self.source.symbol("cuLogsRegisterCallback") else { return };
        let mut heard = HEARD.lock();
        if heard.contains(&function.as_ptr().addr()) {
            return;
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the callback is a plain function without state, valid for the whole program.
        let registered =
            unsafe { self.cu_logs_register_callback(Some(log::remember), ptr::null_mut(), &mut handle) };
        match registered {
            Ok(()) => heard.push(function.as_ptr().addr()),
            Err(error) => log!(debug, %error, "the driver keeps no log of errors"),
        }
    }
}

#[cfg(test)]
mod tests;
