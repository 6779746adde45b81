//! Why a module cannot be laid out, or a kernel of it not be run here.

use std::fmt;

/// Bytes of parameters that a launch can pass, as on GPUs.
pub(crate) const PARAMETER_BYTES: u64 = 32_764;

/// Why a module cannot be laid out, or a kernel of it not be run by the CPU device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The module has no kernel of that name.
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The kernels there are.
        known: Vec<String>,
    },
    /// The kernel, or a function that it can reach, uses an instruction that the CPU device does not execute.
    Unsupported {
        /// The kernel looked up.
        kernel: String,
        /// The function the instruction stands in.
        function: String,
        /// The instruction, as written.
        instruction: String,
        /// Its line in the PTX.
        line: u32,
        /// What is not executed about it.
        reason: String,
    },
    /// The kernel can call a function that the module declares but does not define, and that the device does not provide.
    UndefinedFunction {
        /// The kernel looked up.
        kernel: String,
        /// The function that refers to it.
        caller: String,
        /// The function missing.
        function: String,
        /// The line of the PTX that refers to it.
        line: u32,
    },
    /// A module variable cannot be given memory or an initial value.
    Variable {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The parameters of the kernel take more than a launch can pass.
    Parameters {
        /// The kernel looked up.
        kernel: String,
        /// Bytes of its parameters.
        bytes: u64,
    },
    /// The module is not one for 64-bit addresses.
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
