//! Functions and tables of other modules, brought into the module under construction.

use std::sync::Arc;

use gridloom_ptx::op::OperandMut;
use gridloom_ptx::{
    Address, AddressBase, Item, Linkage, Module, Operand, Span, Symbol, SymbolId, VarRef, VarSpace, Variable,
};

use crate::rewrite::source::{KernelSource, SET_CONDITION};

use super::{Assembly, Refusal, make_coherent};

impl Assembly {
    /// Links the functions and tables that a kernel uses into the module. The functions of a kernel
    /// that stays whole may use shared memory of its module, as a program does that was made
    /// before.
    pub(super) fn link(&mut self, source: &KernelSource, is_whole: bool) -> Result<(), Refusal> {
        self.require_of(source.module());
        let module = source.module().clone();
        let key = Arc::as_ptr(&module) as usize;
        let prefix = self.modules.iter().position(|known| Arc::ptr_eq(known, &module)).unwrap_or(0);
        for &id in &source.facts().tables {
            if !self.linked.contains_key(&(key, id)) {
                let mut table = module.variable(id).ok_or("a table is missing")?.clone();
                table.name = format!("m{prefix}_{}", table.name);
                let new = self.declare(Symbol::Variable(table));
                self.declared.push(Item::Declare(new));
                self.linked.insert((key, id), new);
            }
        }
        let mut fresh = Vec::new();
        for &id in &source.facts().functions {
            if !self.linked.contains_key(&(key, id)) {
                let mut function = module.function(id).ok_or("a function is missing")?.clone();
                function.name = format!("m{prefix}_{}", function.name);
                function.linkage = Linkage::Internal;
                function.alias_of = None;
                function.span = Span::default();
                let new = self.declare(Symbol::Function(Box::new(function)));
                self.declared.push(Item::Declare(new));
                self.defined.push(Item::Define(new));
                self.linked.insert((key, id), new);
                fresh.push(new);
            }
        }
        for new in fresh {
            let Symbol::Function(function) = &mut self.symbols[new.index()] else { continue };
            let Some(mut body) = function.body.take() else { continue };
            body.locations.clear();
            body.pragmas.clear();
            for instruction in &mut body.instructions {
                instruction.location = None;
                instruction.span = Span::default();
                // Functions are shared by all kernels of the module, some of which may need it.
                make_coherent(&mut instruction.op);
                let mut failed = None;
                instruction.for_each_name_mut(&mut |place| {
                    let result = match place {
                        OperandMut::Function(id) => self.linked_function(&module, id),
                        OperandMut::Src(Operand::Address { base: VarRef::Symbol(id), .. })
                        | OperandMut::Var(VarRef::Symbol(id))
                        | OperandMut::Addr(Address { base: AddressBase::Var(VarRef::Symbol(id)), .. }) => {
                            match is_whole {
                                true => self.module_symbol(&module, key, id),
                                false => self.linked_symbol(key, id),
                            }
                        }
                        _ => Ok(()),
                    };
                    failed = failed.take().or(result.err());
                });
                if let Some(failed) = failed {
                    return Err(failed);
                }
            }
            if let Symbol::Function(function) = &mut self.symbols[new.index()] {
                function.body = Some(body);
            }
        }
        Ok(())
    }

    pub(super) fn linked_function(&mut self, module: &Arc<Module>, id: &mut SymbolId) -> Result<(), Refusal> {
        let key = Arc::as_ptr(module) as usize;
        if let Some(&new) = self.linked.get(&(key, *id)) {
            *id = new;
            return Ok(());
        }
        let function = module.function(*id).ok_or("a call of nothing")?;
        if function.body.is_none() && function.name == SET_CONDITION {
            *id = self.condition_setter();
            return Ok(());
        }
        if function.body.is_none() {
            // Kernels of several modules may call it.
            let is_same = |symbol: &Symbol| matches!(symbol, Symbol::Function(other) if other.body.is_none() && other.name == function.name);
            let new = match self.symbols.iter().position(is_same) {
                Some(at) => SymbolId(at as u32),
                None => {
                    let mut declared = function.clone();
                    declared.span = Span::default();
                    let new = self.declare(Symbol::Function(Box::new(declared)));
                    self.declared.push(Item::Declare(new));
                    new
                }
            };
            self.linked.insert((key, *id), new);
            *id = new;
            return Ok(());
        }
        // An alias. Its target was linked.
        let stands_for = self.linked.iter().find_map(|(&(of, old), &new)| {
            (of == key && module.function(old).is_some_and(|other| std::ptr::eq(other, function)))
                .then_some(new)
        });
        *id = stands_for.ok_or_else(|| format!("the function {} was not linked", function.name))?;
        Ok(())
    }

    pub(super) fn linked_symbol(&mut self, key: usize, id: &mut SymbolId) -> Result<(), Refusal> {
        *id = *self.linked.get(&(key, *id)).ok_or("a variable of the module was not linked")?;
        Ok(())
    }

    /// Links a module variable of a kernel that stays whole.
    pub(super) fn module_symbol(
        &mut self,
        module: &Module,
        key: usize,
        id: &mut SymbolId,
    ) -> Result<(), Refusal> {
        if !self.linked.contains_key(&(key, *id)) {
            let variable = module.variable(*id).ok_or("the address of a function")?;
            if variable.space != VarSpace::Shared {
                return Err(format!("{} is a variable of the module", variable.name));
            }
            let new = self.declare(Symbol::Variable(Variable { span: Span::default(), ..variable.clone() }));
            self.declared.push(Item::Declare(new));
            self.linked.insert((key, *id), new);
        }
        self.linked_symbol(key, id)
    }
}
