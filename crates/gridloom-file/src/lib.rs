//! The file format of saved Gridloom graphs.
//!
//! A saved graph is a zip archive whose entries are stored without compression:
//!
//! | entry | contents |
//! |---|---|
//! | `graph.json` | the graph: nodes, edges, parameters, conditions, names ([`document`]) |
//! | `modules/N.ptx` | the PTX of the modules |
//! | `constants/N.npy` | bytes that copies read |
//! | `inputs/NAME.npy` | the contents of the inputs |
//!
//! This crate knows the format and no device. The crate `gridloom` makes files from graphs and graphs
//! from files. `docs/file-format.md` in the repository describes every field.
//!
//! Files may come from anywhere. Reading a file checks every number before it is used, refuses an
//! inconsistent file, and allocates no more than a small multiple of the size of the file. Equal
//! graphs make equal files.
//!
//! ```
//! use gridloom_file::{GraphFile, Limits};
//! use gridloom_file::document::{Document, Graph, Node, Operation};
//!
//! let node = Node { name: Some("begin".into()), after: vec![], programmatic: vec![], operation: Operation::Empty };
//! let document = Document { graphs: vec![Graph { nodes: vec![node] }], ..Document::default() };
//! let file = GraphFile { document, ..GraphFile::default() };
//! let bytes = file.to_bytes()?;
//! assert_eq!(GraphFile::from_bytes(&bytes, &Limits::default())?, file);
//! # Ok::<(), gridloom_file::Error>(())
//! ```

mod archive;
mod check;
pub mod document;
mod error;
pub mod hex;
mod npy;
mod text;

pub use archive::crc32;
pub use check::check_name;
use document::Document;
use error::bail;
pub use error::{Error, Result};
pub use npy::{Array, DType};

/// The usual ending of the names of saved graphs.
pub const EXTENSION: &str = "gridloom";

/// Limits on what a file may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most memory for buffers and alloc nodes together, in bytes.
    pub memory: u64,
}

impl Limits {
    /// Sets the most memory for buffers and alloc nodes together, in bytes.
    #[must_use]
    pub fn memory(mut self, memory: u64) -> Self {
        self.memory = memory;
        self
    }
}

impl Default for Limits {
    /// Returns limits of 4 GiB of memory.
    fn default() -> Self {
        Limits { memory: 4 << 30 }
    }
}

/// A saved graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphFile {
    /// The graph as data.
    pub document: Document,
    /// The PTX of the modules.
    pub modules: Vec<String>,
    /// The bytes that copies read.
    pub constants: Vec<Vec<u8>>,
    /// The contents of the inputs, in their order.
    pub inputs: Vec<Array>,
}

impl GraphFile {
    /// Returns whether bytes look like a zip archive, which every saved graph is.
    pub fn is_archive(bytes: &[u8]) -> bool {
        bytes.starts_with(b"PK\x03\x04")
    }

    /// Returns the contents of the file. Fails if the parts do not fit each other.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let document = &self.document;
        // Memory that exists needs no limit.
        document.check(&Limits::default().memory(u64::MAX))?;
        self.check_parts()?;
        let mut entries = vec![("graph.json".to_owned(), text::write(document).into_bytes())];
        entries.extend(
            self.modules.iter().enumerate().map(|(n, ptx)| (module_name(n), ptx.clone().into_bytes())),
        );
        for (number, bytes) in self.constants.iter().enumerate() {
            let array = Array::new(DType { code: 'u', size: 1 }, vec![bytes.len() as u64], bytes.clone())?;
            entries.push((constant_name(number), array.to_npy()));
        }
        for (port, array) in document.inputs.iter().zip(&self.inputs) {
            entries.push((input_name(&port.name), array.to_npy()));
        }
        archive::write(&entries)
    }

    /// Reads a file.
    pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let archive = archive::Archive::open(bytes)?;
        let document = text::read(archive.get("graph.json")?)?;
        document.check(limits)?;
        let mut file = GraphFile { document, ..GraphFile::default() };
        for number in 0..file.document.modules {
            let name = module_name(number);
            match std::str::from_utf8(archive.get(&name)?) {
                Ok(ptx) => file.modules.push(ptx.to_owned()),
                Err(_) => bail!("{name} is not text"),
            }
        }
        for number in 0..file.document.constants {
            let name = constant_name(number);
            let array = Array::from_npy(archive.get(&name)?).map_err(|error| error.at(&name))?;
            file.constants.push(array.data);
        }
        for port in &file.document.inputs {
            let name = input_name(&port.name);
            file.inputs.push(Array::from_npy(archive.get(&name)?).map_err(|error| error.at(&name))?);
        }
        file.check_parts()?;
        Ok(file)
    }

    /// Checks that modules, constants and inputs are those that the document names.
    fn check_parts(&self) -> Result<()> {
        let document = &self.document;
        for (what, has, says) in [
            ("modules", self.modules.len(), document.modules),
            ("constants", self.constants.len(), document.constants),
            ("arrays for inputs", self.inputs.len(), document.inputs.len()),
        ] {
            if has != says {
                bail!("{has} {what}; the graph has {says}");
            }
        }
        for (port, array) in document.inputs.iter().zip(&self.inputs) {
            if (array.dtype, &array.shape) != (DType::parse(&port.dtype)?, &port.shape) {
                bail!(
                    "the input {} is an array {} of shape {}, and its file has {} of shape {}",
                    port.name,
                    port.dtype,
                    npy::Shape(&port.shape),
                    array.dtype,
                    npy::Shape(&array.shape)
                );
            }
        }
        Ok(())
    }
}

fn module_name(number: usize) -> String {
    format!("modules/{number}.ptx")
}

fn constant_name(number: usize) -> String {
    format!("constants/{number}.npy")
}

fn input_name(name: &str) -> String {
    format!("inputs/{name}.npy")
}
