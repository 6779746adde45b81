//! Where entry points come from: the driver library, or a stand-in for tests.

use super::error::{DriverError, MissingDriver};
use libloading::Library;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Something that knows addresses by exported name.
///
/// # Safety
///
/// An address handed out under a name must be a function with the signature that the CUDA driver
/// exports under that name, callable for as long as the source lives.
pub unsafe trait SymbolSource: Send + Sync + fmt::Debug {
    /// Returns the address exported under `name`, if there is one.
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>>;

    /// Returns the name or path of the library, for messages.
    fn describe(&self) -> &str;
}

/// The NVIDIA driver's user-mode library, opened at run time.
#[derive(Debug)]
pub struct DriverLibrary {
    /// Never closed: the driver has threads of its own, and handlers that run when threads and the
    /// process end.
    library: ManuallyDrop<Library>,
    name: String,
}

/// The names under which the driver is looked for, in order.
///
/// `libcuda.so` alone comes with development packages and may be a stub, so the versioned name is
/// first. Under WSL the library is outside the loader's path on some distributions.
pub const DRIVER_NAMES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
};

impl DriverLibrary {
    /// Opens the driver under one of its usual names.
    pub fn open() -> Result<Self, DriverError> {
        Self::open_first(DRIVER_NAMES)
    }

    /// Opens the first of `names` that is a library with `cuInit` in it.
    pub fn open_first(names: &[&str]) -> Result<Self, DriverError> {
        let mut attempts = Vec::new();
        for &name in names {
            // SAFETY: the NVIDIA driver's initialisers are made to run when a program opens it, on
            // any thread.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    let opened = Self { library: ManuallyDrop::new(library), name: name.to_owned() };
                    if opened.symbol("cuInit").is_some() {
                        return Ok(opened);
                    }
                    attempts.push((name.to_owned(), "opened, but it exports no cuInit".to_owned()));
                }
                Err(error) => attempts.push((name.to_owned(), reason(&error))),
            }
        }
        Err(DriverError::Missing(Box::new(MissingDriver { attempts })))
    }
}

/// Returns the loader's reason, without the name that it repeats in front.
pub(crate) fn reason(error: &libloading::Error) -> String {
    let text =
        std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string());
    match text.split_once(": ") {
        Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
        _ => text,
    }
}

// SAFETY: a library that exports `cuInit` under the driver's file name is the driver, whose
// exported names have the signatures that NVIDIA documents; it is never closed.
unsafe impl SymbolSource for DriverLibrary {
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        // SAFETY: the symbol is taken as a bare address; who turns it into a function answers for
        // the type.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
        NonNull::new(*symbol)
    }

    fn describe(&self) -> &str {
        &self.name
    }
}
