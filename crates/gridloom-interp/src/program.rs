//! A module placed in memory, whose kernels can be looked up.

use super::decode;
use super::error::Error;
use super::kernel::KernelCode;
use super::layout::Layout;
use gridloom_ptx::op::{ConvertOp, MemoryOp, Op};
use gridloom_ptx::{Function, Module, Operand, SymbolId, VarRef};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A module whose variables have addresses. A kernel is decoded when it is first looked up.
pub struct Program {
    pub(crate) module: Arc<Module>,
    pub(crate) layout: Layout,
    pub(crate) addresses: Vec<u64>,
    kernels: Mutex<HashMap<String, Arc<KernelCode>>>,
    functions_by_address: OnceLock<Vec<SymbolId>>,
    /// The kernels of the module by name. A module may have thousands.
    entries: OnceLock<HashMap<String, SymbolId>>,
}

impl Program {
    /// Creates a program from a module and the addresses of its variables, in the order of
    /// [`Layout::variables`].
    ///
    /// # Panics
    /// If the numbers of addresses and variables differ.
    pub fn new(module: Arc<Module>, layout: Layout, addresses: Vec<u64>) -> Self {
        assert_eq!(layout.variables().len(), addresses.len(), "one address per variable");
        Self {
            module,
            layout,
            addresses,
            kernels: Mutex::default(),
            functions_by_address: OnceLock::new(),
            entries: OnceLock::new(),
        }
    }

    /// Returns the module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the layout of its variables.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the address of the module-scope variable of that name, with its index in
    /// [`Layout::variables`].
    pub fn variable(&self, name: &str) -> Option<(usize, u64)> {
        let found = self.layout.variables().iter().position(|v| v.module_scope && v.name == name)?;
        Some((found, self.addresses[found]))
    }

    /// Returns a kernel by name, decoded with every function it can call.
    ///
    /// # Errors
    /// If there is no such kernel, or it can reach an instruction that is not supported or a
    /// function that is not defined.
    pub fn kernel(&self, name: &str) -> Result<Arc<KernelCode>, Error> {
        if let Some(kernel) = self.kernels.lock().get(name) {
            return Ok(kernel.clone());
        }
        let Some(&id) = self.entries().get(name) else {
            let known = self.module.entries().map(|(_, function)| function.name.clone()).collect();
            return Err(Error::UnknownKernel { name: name.to_owned(), known });
        };
        let kernel = Arc::new(decode::kernel(self, id)?);
        Ok(self.kernels.lock().entry(name.to_owned()).or_insert(kernel).clone())
    }

    fn entries(&self) -> &HashMap<String, SymbolId> {
        let named = |(id, entry): (SymbolId, &Function)| (entry.name.clone(), id);
        self.entries.get_or_init(|| self.module.entries().map(named).collect())
    }

    /// Returns the functions whose address is taken anywhere in the module, by an instruction or in
    /// an initial value. An indirect call may reach any of them, because addresses can pass from
    /// one kernel to another through memory.
    pub(crate) fn functions_by_address(&self) -> &[SymbolId] {
        self.functions_by_address.get_or_init(|| {
            let mut found: Vec<SymbolId> = self.layout.functions_in_images().collect();
            let bodies = self.module.functions().filter_map(|(_, function)| function.body.as_deref());
            for instruction in bodies.flat_map(|body| &body.instructions) {
                let operands = match &instruction.op {
                    Op::Convert(ConvertOp::Mov { src, .. } | ConvertOp::Cvta { src, .. }) => {
                        std::slice::from_ref(src)
                    }
                    Op::Memory(MemoryOp::St { srcs, .. })
                    | Op::Convert(ConvertOp::MovVector { srcs, .. }) => &srcs[..],
                    _ => &[],
                };
                found.extend(operands.iter().filter_map(|operand| match operand {
                    Operand::Address { base: VarRef::Symbol(id), .. } => Some(*id),
                    _ => None,
                }));
            }
            found.retain(|&id| self.module.function(id).is_some_and(|function| function.body.is_some()));
            found.sort_unstable();
            found.dedup();
            found
        })
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("layout", &self.layout).finish_non_exhaustive()
    }
}
