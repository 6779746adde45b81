//! A module placed in memory, whose kernels can be looked up.

use super::decode;
use super::error::Error;
use super::kernel::KernelCode;
use super::layout::Layout;
use gridloom_ptx::Module;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// A module whose variables have addresses. It decodes a kernel when it is first looked up.
pub struct Program {
    pub(crate) module: Arc<Module>,
    pub(crate) source: Arc<str>,
    /// Where each line of the source starts.
    line_starts: Vec<u32>,
    pub(crate) layout: Layout,
    pub(crate) addresses: Vec<u64>,
    kernels: Mutex<HashMap<String, Arc<KernelCode>>>,
}

impl Program {
    /// A program from a module, its text, and the addresses of its variables in the order of [`Layout::variables`]. The text
    /// gives lines to errors and faults; an empty one gives none.
    ///
    /// # Panics
    /// If there are not as many addresses as variables.
    pub fn new(module: Arc<Module>, source: Arc<str>, layout: Layout, addresses: Vec<u64>) -> Self {
        assert_eq!(layout.variables().len(), addresses.len(), "one address per variable");
        let newlines = source.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        Self { module, source, line_starts, layout, addresses, kernels: Mutex::default() }
    }

    /// The module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The layout of its variables.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The address of the module-scope variable of that name, with its index in [`Layout::variables`].
    pub fn variable(&self, name: &str) -> Option<(usize, u64)> {
        let found = self.layout.variables().iter().position(|v| v.module_scope && v.name == name)?;
        Some((found, self.addresses[found]))
    }

    /// The kernel of that name, decoded with every function it can reach.
    ///
    /// # Errors
    /// If there is none, or it can reach an instruction that is not executed here, or a function that nobody defines.
    pub fn kernel(&self, name: &str) -> Result<Arc<KernelCode>, Error> {
        if let Some(kernel) = self.kernels.lock().get(name) {
            return Ok(kernel.clone());
        }
        let Some((id, _)) = self.module.entry(name) else {
            let known = self.module.entries().map(|(_, function)| function.name.clone()).collect();
            return Err(Error::UnknownKernel { name: name.to_owned(), known });
        };
        let kernel = Arc::new(decode::kernel(self, id)?);
        Ok(self.kernels.lock().entry(name.to_owned()).or_insert(kernel).clone())
    }

    /// The line of the source, from 1, that a byte of it is on.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        self.line_starts.partition_point(|&start| start as usize <= offset) as u32
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("layout", &self.layout).finish_non_exhaustive()
    }
}
