//! Graphs in files.
//!
//! [`Graph::save`] writes a graph to a file, and [`Graph::load`] builds it again, on the same or
//! another device. A file holds topology, names, parameters, conditions, the PTX of modules, and
//! the contents of the buffers that are marked as inputs. The crate `gridloom-file` defines the
//! format.
//!
//! ```
//! use gridloom::prelude::*;
//!
//! # fn main() -> Result<()> {
//! # let folder = std::env::temp_dir().join(format!("gridloom-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("copy.gridloom");
//! let device = Device::cpu()?;
//! let (x, y) = (device.buffer_from(&[1.0f32, 2.0, 3.0])?, device.alloc::<f32>(3)?);
//! let graph = Graph::new(&device);
//! graph.memcpy(&y, &x)?.named("copy")?;
//! graph.saver().input("x", &x)?.output("y", &y)?.save(&path)?;
//!
//! // Somewhere else, on any device. SAFETY: the file was written above.
//! let loaded = unsafe { Graph::load(&path, &Device::best()?)? };
//! let stream = loaded.graph().device().stream()?;
//! loaded.buffer::<f32>("x")?.write(&[4.0, 5.0, 6.0])?;
//! loaded.graph().instantiate()?.launch(&stream)?;
//! stream.synchronize()?;
//! assert_eq!(loaded.buffer::<f32>("y")?.to_vec()?, [4.0, 5.0, 6.0]);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```

mod load;
mod save;
mod types;

use std::path::Path;

pub use gridloom_file::{Array, DType};

pub use load::{LoadOptions, LoadedGraph, Port};
pub use save::GraphSaver;

use crate::{Device, Error, ErrorKind, Graph, Result};

impl Graph {
    /// Saves the graph to a file, without inputs and outputs.
    ///
    /// Buffers are saved by their size. They are filled with 0 when the graph is loaded, unless
    /// [`saver`](Graph::saver) marks them as inputs. Module variables get the initial values that
    /// their module gives them.
    ///
    /// Fails, and names the node, for what a file cannot hold: callbacks, opaque nodes, kernels
    /// from machine code, arguments with an owner, memory that outlived a launch and is freed here,
    /// and waits for events that no node of the graph records. An address that a kernel without
    /// types was given as a plain number stays that number, which means nothing elsewhere.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.saver().save(path)
    }

    /// Prepares to save the graph, with inputs and outputs.
    pub fn saver(&self) -> GraphSaver {
        GraphSaver::new(self)
    }

    /// Loads a saved graph, with default options.
    ///
    /// Everything that a graph is checked for when it is built is checked again, so a damaged or
    /// hostile file is an error. What a check cannot know is what the kernels in the file do.
    ///
    /// # Safety
    /// The kernels in the file do what [`Module::kernel`](crate::Module::kernel) requires, with the
    /// types and contracts that the file states for them. That is so for a file that
    /// [`save`](Graph::save) wrote and nobody changed since. A contract in a file from elsewhere is
    /// only the word of its author: load such a file with [`load_checked`](Graph::load_checked).
    pub unsafe fn load(path: impl AsRef<Path>, device: &Device) -> Result<LoadedGraph> {
        // SAFETY: the caller makes the same promise.
        unsafe { LoadOptions::new().load(path, device) }
    }

    /// Loads a saved graph from anywhere, with default options, onto a CPU device that checks every
    /// memory access of kernels.
    ///
    /// A kernel that leaves the memory of the device fails its launch. It can still write to other
    /// buffers of the device, so keep what matters on another device.
    ///
    /// Fails if the device is not a CPU device in [checked](crate::CpuOptions::checked) mode.
    #[cfg(feature = "cpu")]
    pub fn load_checked(path: impl AsRef<Path>, device: &Device) -> Result<LoadedGraph> {
        LoadOptions::new().load_checked(path, device)
    }
}

/// Converts an error of the file format.
fn invalid(error: gridloom_file::Error) -> Error {
    Error::new(ErrorKind::InvalidFile, error.to_string())
}

/// Returns an error of the file system, with the path.
fn failed(path: &Path, what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{} cannot be {what}: {error}", path.display())).with_source(error)
}
