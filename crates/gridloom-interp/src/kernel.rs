//! A kernel decoded for execution, with what a launch of it must respect.

use super::code::Code;
use gridloom_ptx::{Module, ScalarType};
use std::sync::Arc;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParam {
    /// Its name.
    pub name: String,
    /// Bytes from the start of the parameters.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// What its offset is a multiple of.
    pub align: u64,
    /// The type declared; that of an element, for an array.
    pub ty: ScalarType,
    /// Whether it is declared as a pointer (`.ptr`).
    pub pointer: bool,
}

/// A kernel, ready to be launched: its own instructions and those of every function it can reach.
pub struct KernelCode {
    pub(crate) name: String,
    pub(crate) params: Vec<KernelParam>,
    pub(crate) shared_bytes: u32,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) module: Arc<Module>,
    pub(crate) code: Code,
}

impl KernelCode {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters.
    pub fn params(&self) -> &[KernelParam] {
        &self.params
    }

    /// Bytes of the parameters of a launch.
    pub fn param_bytes(&self) -> u64 {
        self.params.iter().map(|param| param.offset + param.size).max().unwrap_or(0)
    }

    /// Bytes of static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Bytes of local memory that the kernel itself takes per thread; functions it calls take more.
    pub fn local_bytes(&self) -> u32 {
        self.code.functions[0].frame
    }

    /// `.maxntid`: the threads that a block may have, as a product.
    pub fn max_threads(&self) -> Option<[u32; 3]> {
        self.max_threads
    }

    /// `.reqntid`: the threads that a block must have.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.required_threads
    }

    /// The decoded instructions, for a compiler.
    #[doc(hidden)]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The module it is from, for a compiler.
    #[doc(hidden)]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Instructions, with those of every function it can reach: what decoding cost, and a first guess at what running does.
    pub fn instruction_count(&self) -> usize {
        self.code.instructions.len()
    }
}

impl std::fmt::Debug for KernelCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelCode")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
