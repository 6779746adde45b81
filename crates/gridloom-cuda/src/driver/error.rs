//! What can go wrong between Gridloom and the CUDA driver.

use crate::sys::CUresult;
use crate::version::CudaVersion;
use std::fmt;

/// A result of a driver call.
pub type DriverResult<T> = Result<T, DriverError>;

/// A driver that is missing, too old, or that refused a call.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// No driver library could be opened.
    #[error("{0}")]
    Missing(Box<MissingDriver>),

    /// The driver is older than anything Gridloom supports.
    #[error(
        "the CUDA driver is too old: it supports CUDA {found}{}, Gridloom needs {needed} or newer; \
         update the NVIDIA driver",
        capped(*.cap)
    )]
    TooOld {
        /// What the driver reports, or the cap where that is lower.
        found: CudaVersion,
        /// The oldest version that is supported.
        needed: CudaVersion,
        /// The cap in force, if any.
        cap: Option<CudaVersion>,
    },

    /// The driver does not have a function that is needed.
    #[error("{0}")]
    Unavailable(Box<UnavailableFunction>),

    /// The driver refused a call, or reports an earlier failure through it.
    #[error("{0}")]
    Call(Box<CallError>),

    /// The call would come from inside a callback, where the driver allows none.
    #[error(
        "`{function}` was needed inside a host callback, where CUDA allows no call; use the device \
         after the callback, or on a thread that the callback does not wait for"
    )]
    InCallback {
        /// The function.
        function: &'static str,
    },

    /// The environment variable that caps the driver version cannot be read.
    #[error("environment variable {variable}: {reason}")]
    Environment {
        /// Which variable.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl DriverError {
    /// Returns the driver's result code, if a call failed.
    pub fn code(&self) -> Option<CUresult> {
        match self {
            Self::Call(call) => Some(call.code),
            _ => None,
        }
    }

    /// Returns the failed call, if there was one.
    pub fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns whether the context is lost: see [`CallError::is_sticky`].
    pub fn is_sticky(&self) -> bool {
        self.call().is_some_and(CallError::is_sticky)
    }

    /// Returns whether this says that there is no usable GPU here, as opposed to one that failed.
    pub fn is_no_device(&self) -> bool {
        match self {
            Self::Missing(_) => true,
            Self::Call(call) => {
                matches!(
                    call.code,
                    CUresult::CUDA_ERROR_NO_DEVICE
                        | CUresult::CUDA_ERROR_STUB_LIBRARY
                        | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
                        | CUresult::CUDA_ERROR_SYSTEM_NOT_READY
                )
            }
            _ => false,
        }
    }
}

/// The places where the driver library was looked for, and why none was used.
#[derive(Debug, Clone)]
pub struct MissingDriver {
    /// Each name or path that was tried, with the reason it was not used.
    pub attempts: Vec<(String, String)>,
}

impl fmt::Display for MissingDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no CUDA driver was found; install the NVIDIA driver, or use the CPU device. Tried")?;
        for (i, (name, reason)) in self.attempts.iter().enumerate() {
            write!(f, "{} {name} ({reason})", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A function that the driver does not offer.
#[derive(Debug, Clone)]
pub struct UnavailableFunction {
    /// The newest name of the function.
    pub function: &'static str,
    /// The exported names that would have served, each with the version that introduced it.
    pub symbols: &'static [(&'static str, u32)],
    /// What the driver reports, or the cap where that is lower.
    pub found: CudaVersion,
    /// The cap in force, if any.
    pub cap: Option<CudaVersion>,
}

impl UnavailableFunction {
    /// Returns the oldest version that has the function.
    pub fn needed(&self) -> CudaVersion {
        CudaVersion::from_raw(self.symbols.iter().map(|s| s.1).min().unwrap_or(0))
    }
}

impl fmt::Display for UnavailableFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = self.needed();
        write!(f, "the CUDA driver has no `{}`: it needs CUDA {needed}, ", self.function)?;
        write!(f, "the driver supports {}{}", self.found, capped(self.cap))?;
        if self.found >= needed {
            f.write_str(" but does not export it; the driver installation looks incomplete")
        } else {
            f.write_str("; update the NVIDIA driver")
        }
    }
}

fn capped(cap: Option<CudaVersion>) -> String {
    cap.map(|cap| format!(" (capped at {cap} by request)")).unwrap_or_default()
}

/// A driver call that returned something other than success.
#[derive(Debug, Clone)]
pub struct CallError {
    /// The function that was called, by its exported name.
    pub call: &'static str,
    /// The result code.
    pub code: CUresult,
    /// The driver's name for the code, `CUDA_ERROR_INVALID_VALUE`; empty for a code the driver does
    /// not know.
    pub name: String,
    /// The driver's sentence for the code; empty for a code the driver does not know.
    pub description: String,
    /// What the driver logged about it on this thread (drivers from 12.9 on).
    pub log: Option<String>,
}

impl CallError {
    /// Returns whether the error stays: every later call in this context fails with it, and its
    /// memory is lost.
    ///
    /// The process has to drop the device, or end, before the GPU is usable again.
    pub fn is_sticky(&self) -> bool {
        matches!(
            self.code,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
                | CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
                | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
                | CUresult::CUDA_ERROR_CONTAINED
                | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
                | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
                | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
                | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
        )
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: ", self.call)?;
        if self.name.is_empty() {
            write!(f, "the driver returned {}, a code it has no name for", self.code.0)?;
        } else {
            write!(f, "{} ({})", self.name, self.code.0)?;
        }
        if !self.description.is_empty() {
            write!(f, ": {}", self.description)?;
        }
        if let Some(log) = &self.log {
            write!(f, "; the driver logged: {log}")?;
        }
        if self.is_sticky() {
            f.write_str(
                "; the CUDA context is lost: every later call on this device in this process fails the same way, \
                 drop everything that uses the device or restart the process",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(code: u32) -> CallError {
        CallError {
            call: "cuLaunchKernel",
            code: CUresult(code),
            name: String::new(),
            description: String::new(),
            log: None,
        }
    }

    #[test]
    fn an_illegal_address_is_sticky_and_says_that_the_context_is_lost() {
        let error = call(700);
        assert!(error.is_sticky());
        assert!(error.to_string().contains("context is lost"));
    }

    #[test]
    fn a_refused_argument_is_not_sticky() {
        assert!(!call(1).is_sticky());
        assert!(!call(2).is_sticky());
    }

    #[test]
    fn a_code_without_a_name_is_shown_by_number() {
        assert_eq!(
            call(4242).to_string(),
            "cuLaunchKernel failed: the driver returned 4242, a code it has no name for"
        );
    }

    #[test]
    fn a_missing_driver_names_every_place_that_was_tried() {
        let error = MissingDriver {
            attempts: vec![
                ("libcuda.so.1".into(), "no such file".into()),
                ("libcuda.so".into(), "wrong format".into()),
            ],
        };
        let text = error.to_string();
        assert!(text.contains("libcuda.so.1 (no such file), libcuda.so (wrong format)"), "{text}");
    }
}
