//! The module variables in device memory: their sizes and initial contents.

use super::error::Error;
use super::memory::FUNCTION_WINDOW;
use gridloom_ptx::{Linkage, LocalVarId, Module, Relocation, Symbol, SymbolId, VarSpace, Variable};
use std::collections::HashMap;

/// A variable of the module in global or constant memory, for the device to allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleVariable {
    /// Its name. Variables of different functions may share one.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// Whether it is in constant memory.
    pub constant: bool,
    /// Whether it is declared at module scope, where `module.global(name)` finds it.
    pub module_scope: bool,
    /// Its initial bytes. Bytes beyond the end are zero.
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

/// Identifies a variable: one of the module, or a static variable of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum VariableId {
    Module(SymbolId),
    Static(SymbolId, LocalVarId),
}

/// All variables of a module in global and constant memory.
///
/// The device allocates each of [`variables`](Self::variables), fills it with its
/// [`image`](Self::image), and hands layout and addresses to [`Program::new`](super::Program::new).
#[derive(Clone, Debug)]
pub struct Layout {
    variables: Vec<ModuleVariable>,
    index: HashMap<VariableId, usize>,
}

impl Layout {
    /// Returns the layout of a module.
    ///
    /// # Errors
    /// If addresses do not have 64 bits, or an initial value contains an address that does not
    /// exist on this device.
    pub fn of(module: &Module) -> Result<Self, Error> {
        if module.address_size != 64 {
            return Err(Error::AddressSize { bits: module.address_size });
        }
        let mut layout = Self { variables: Vec::new(), index: HashMap::new() };
        for (id, variable) in module.variables() {
            layout.add(VariableId::Module(id), variable, module)?;
        }
        for (id, function) in module.functions() {
            for (local, variable) in (0..).zip(function.body.iter().flat_map(|body| &body.locals)) {
                layout.add(VariableId::Static(id, LocalVarId(local)), variable, module)?;
            }
        }
        Ok(layout)
    }

    fn add(&mut self, id: VariableId, variable: &Variable, module: &Module) -> Result<(), Error> {
        let in_memory = matches!(variable.space, VarSpace::Global | VarSpace::Const);
        // A variable of another module has no memory here. Kernels that use it are refused.
        if !in_memory || variable.linkage == Linkage::Extern {
            return Ok(());
        }
        let image = variable.image().cloned().unwrap_or_default();
        for relocation in &image.relocations {
            let named = &module.symbols[relocation.symbol.index()];
            let reason = match named {
                Symbol::Function(_) => continue,
                Symbol::Variable(v) if !matches!(v.space, VarSpace::Global | VarSpace::Const) => {
                    format!(
                        "its initial value holds the address of `{}`, which is not in device memory",
                        v.name
                    )
                }
                Symbol::Variable(v) if v.linkage == Linkage::Extern => {
                    format!(
                        "its initial value holds the address of `{}`, which another module defines",
                        v.name
                    )
                }
                Symbol::Variable(_) => continue,
            };
            return Err(Error::Variable { name: variable.name.clone(), reason });
        }
        self.index.insert(id, self.variables.len());
        self.variables.push(ModuleVariable {
            name: variable.name.clone(),
            size: variable.size(),
            align: variable.alignment().max(1),
            constant: variable.space == VarSpace::Const,
            module_scope: matches!(id, VariableId::Module(_)),
            bytes: image.bytes,
            relocations: image.relocations,
        });
        Ok(())
    }

    /// Returns the variables. Addresses are passed in the same order.
    pub fn variables(&self) -> &[ModuleVariable] {
        &self.variables
    }

    pub(crate) fn index(&self, id: VariableId) -> Option<usize> {
        self.index.get(&id).copied()
    }

    /// Returns the initial bytes of a variable, given the addresses of all variables, up to the
    /// last byte that has a value. The rest is zero and is not returned, because one line of PTX
    /// can declare a terabyte of it.
    pub fn image(&self, index: usize, addresses: &[u64]) -> Vec<u8> {
        let variable = &self.variables[index];
        let mut bytes = variable.bytes.clone();
        let ends = variable
            .relocations
            .iter()
            .map(|relocation| relocation.offset + u64::from(relocation.size.min(8)));
        let end = ends.fold(bytes.len() as u64, u64::max).min(variable.size);
        bytes.resize(end as usize, 0);
        for relocation in &variable.relocations {
            let target = match self.index(VariableId::Module(relocation.symbol)) {
                Some(index) => addresses[index],
                // A symbol that is not a variable in memory is a function. `add` has refused
                // everything else.
                None => FUNCTION_WINDOW + u64::from(relocation.symbol.0),
            };
            let address = target.wrapping_add_signed(relocation.addend).to_le_bytes();
            let value = match relocation.byte {
                Some(byte) => &address[usize::from(byte).min(7)..][..1],
                None => &address[..(relocation.size as usize).min(8)],
            };
            let offset = relocation.offset as usize;
            if let Some(place) = bytes.get_mut(offset..offset + value.len()) {
                place.copy_from_slice(value);
            }
        }
        bytes
    }

    /// Returns the functions whose address is in the initial value of a variable.
    pub(crate) fn functions_in_images(&self) -> impl Iterator<Item = SymbolId> + '_ {
        let relocations = self.variables.iter().flat_map(|variable| &variable.relocations);
        relocations.map(|r| r.symbol).filter(|&symbol| self.index(VariableId::Module(symbol)).is_none())
    }
}
