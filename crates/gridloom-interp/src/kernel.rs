//! A kernel decoded for execution, with the facts that a launch must respect.

use super::code::Code;
use gridloom_ptx::{Module, ScalarType};
use std::sync::Arc;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParam {
    /// Its name.
    pub name: String,
    /// Its offset from the start of the parameters, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// Its declared type. For an array, the type of an element.
    pub ty: ScalarType,
    /// Whether it is declared as a pointer (`.ptr`).
    pub pointer: bool,
}

/// A kernel ready for launching: its instructions and those of every function it can call.
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
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its parameters.
    pub fn params(&self) -> &[KernelParam] {
        &self.params
    }

    /// Returns the size of the parameters in bytes.
    pub fn param_bytes(&self) -> u64 {
        self.params.iter().map(|param| param.offset + param.size).max().unwrap_or(0)
    }

    /// Returns the size of static shared memory in bytes.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Returns the local memory of the kernel itself in bytes per thread. Functions that it calls
    /// use more.
    pub fn local_bytes(&self) -> u32 {
        self.code.functions[0].frame
    }

    /// Returns `.maxntid`: the dimensions whose product is the most threads of a block.
    pub fn max_threads(&self) -> Option<[u32; 3]> {
        self.max_threads
    }

    /// Returns `.reqntid`: the dimensions that a block must have.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.required_threads
    }

    /// Returns the decoded instructions, for a compiler.
    #[doc(hidden)]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Returns its module, for a compiler.
    #[doc(hidden)]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the number of instructions, including those of every function it can call.
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
