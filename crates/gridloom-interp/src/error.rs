//! Errors of modules and kernels that cannot run on the CPU device.

use std::fmt;

/// The most bytes of parameters that a launch can pass, as on GPUs.
pub(crate) const PARAMETER_BYTES: u64 = 32_764;

/// The reason why a module cannot be loaded, or a kernel cannot be run by the CPU device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The module has no kernel of that name.
    UnknownKernel {
        /// The requested name.
        name: String,
        /// The kernels of the module.
        known: Vec<String>,
    },
    /// The kernel, or a function that it can reach, uses an instruction that the CPU device does
    /// not execute.
    Unsupported {
        /// The requested kernel.
        kernel: String,
        /// The function that contains the instruction.
        function: String,
        /// The instruction, as written.
        instruction: String,
        /// Its line in the PTX.
        line: u32,
        /// What is not supported.
        reason: String,
    },
    /// The kernel can call a function that the module declares but does not define, and that the
    /// device does not provide.
    UndefinedFunction {
        /// The requested kernel.
        kernel: String,
        /// The function that refers to it.
        caller: String,
        /// The missing function.
        function: String,
        /// The line of the PTX that refers to the missing function.
        line: u32,
    },
    /// A module variable cannot be allocated or initialised.
    Variable {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The parameters of the kernel are larger than a launch can pass.
    Parameters {
        /// The requested kernel.
        kernel: String,
        /// The size of its parameters in bytes.
        bytes: u64,
    },
    /// The module does not use 64-bit addresses.
    AddressSize {
        /// Its `.address_size`.
        bits: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownKernel { name, known } if known.is_empty() => {
                write!(f, "no kernel `{name}`; the module defines none")
            }
            Error::UnknownKernel { name, known } => {
                write!(f, "no kernel `{name}`; the module defines {}", known.join(", "))
            }
            Error::Unsupported { kernel, function, instruction, line, reason } => {
                write!(
                    f,
                    "kernel `{kernel}` cannot run on the CPU device: {reason}: `{instruction}` at line {line}"
                )?;
                if function != kernel {
                    write!(f, ", in the function `{function}`")?;
                }
                Ok(())
            }
            Error::UndefinedFunction { kernel, caller, function, line } => {
                write!(
                    f,
                    "kernel `{kernel}` cannot run on the CPU device: the function `{function}`, used by `{caller}` at line \
                     {line}, is declared but not defined; link its definition into the module"
                )
            }
            Error::Variable { name, reason } => write!(f, "module variable `{name}`: {reason}"),
            Error::Parameters { kernel, bytes } => {
                write!(
                    f,
                    "kernel `{kernel}` takes {bytes} bytes of parameters, and a launch passes at most {PARAMETER_BYTES}; pass a \
                     pointer to the rest"
                )
            }
            Error::AddressSize { bits } => {
                write!(
                    f,
                    "the module has {bits}-bit addresses; compile it for 64-bit ones (`.address_size 64`)"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
