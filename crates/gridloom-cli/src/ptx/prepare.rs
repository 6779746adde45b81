//! The memory of kernel arguments, filled from files and written to files.

use gridloom::kernel::Arg;
use gridloom::{Buffer, Device};

use super::argument::Argument;
use crate::Failure;
use crate::files::{self, Destination};
use crate::pick::memory_limit;

/// The most bytes that are read from a file where the system does not say how much memory it has.
const MOST_DATA: u64 = 1 << 34;

/// An argument with the memory it needs.
pub(super) struct Prepared {
    pub(super) arg: Arg,
    /// The memory, where it is some.
    pub(super) buffer: Option<Buffer<u8>>,
}

impl Argument {
    /// Opens the file that is written after the launch, if there is one.
    pub(super) fn destination(&self) -> Result<Option<Destination>, Failure> {
        match self {
            Argument::File { path, back: true } | Argument::Out { path, .. } => {
                Destination::open(path).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Allocates and fills what it needs on the device.
    pub(super) fn prepare(&self, device: &Device) -> Result<Prepared, Failure> {
        let buffer = match self {
            Argument::Value(bytes) => return Ok(Prepared { arg: Arg::bytes(bytes), buffer: None }),
            Argument::Null => return Ok(Prepared { arg: Arg::value(0u64), buffer: None }),
            Argument::File { path, .. } => {
                let contents = files::read(path, memory_limit().unwrap_or(MOST_DATA))?;
                if contents.is_empty() {
                    return Err(files::about(path, "the file is empty"));
                }
                device.buffer_from(&contents).map_err(|error| files::about(path, error))?
            }
            Argument::Out { path, bytes } => {
                let buffer = device.alloc::<u8>(*bytes).map_err(|error| files::about(path, error))?;
                let stream = device.stream()?;
                stream.memset(&buffer, 0u8)?;
                stream.synchronize()?;
                buffer
            }
        };
        Ok(Prepared { arg: Arg::memory(&buffer)?, buffer: Some(buffer) })
    }
}
