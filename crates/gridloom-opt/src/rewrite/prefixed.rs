//! A kernel with instructions before its own.

use gridloom_ptx::op::{Compare, GridDep, Order};
use gridloom_ptx::{Address, AddressBase, Module, ScalarType, Space, VarRef};

use super::assembly::{Assembly, Conditions, at, int};
use super::source::{KernelSource, Role};

/// What a word in memory has to be for a kernel to do anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// Not 0.
    NonZero,
    /// 0.
    Zero,
    /// This number.
    Equals(u32),
}

/// What comes before the instructions of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Kernels that follow over programmatic edges may start.
    pub trigger: bool,
    /// Waits until kernels that it follows over programmatic edges have ended.
    pub wait: bool,
    /// Returns unless the word at the address that is its last parameter, which is added, holds.
    pub predicate: Option<Predicate>,
    /// Conditions are stored at the address that is passed as their handle.
    pub stored_conditions: bool,
}

/// A module with a copy of a kernel, under its name, that runs this first.
pub fn prefixed(source: &KernelSource, prefix: Prefix) -> Result<Module, String> {
    if let Some(reason) = source.obstacle(Role::Prefixed) {
        return Err(format!("{}: {reason}", source.name()));
    }
    let conditions = if prefix.stored_conditions { Conditions::Memory } else { Conditions::Device };
    let asm = Assembly::new(conditions);
    let write = |asm: &mut Assembly, decision: Option<gridloom_ptx::ParamId>| {
        if prefix.trigger {
            asm.grid_dependency(GridDep::LaunchDependents);
        }
        if prefix.wait {
            asm.grid_dependency(GridDep::Wait);
        }
        if let (Some(predicate), Some(decision)) = (prefix.predicate, decision) {
            let param = Address { base: AddressBase::Var(VarRef::Param(decision)), offset: 0 };
            let address = asm.load(Space::Param, Order::Weak, ScalarType::U64, param);
            let value = asm.load(Space::Global, Order::Weak, ScalarType::U32, at(address, 0));
            let (cmp, with) = match predicate {
                Predicate::NonZero => (Compare::Ne, 0),
                Predicate::Zero => (Compare::Eq, 0),
                Predicate::Equals(number) => (Compare::Eq, number),
            };
            let holds = asm.compare(cmp, ScalarType::U32, value.into(), int(with.into()));
            let go_on = asm.label();
            asm.branch_if(holds, false, go_on);
            asm.ret();
            asm.place(go_on);
        }
    };
    asm.finish_prefixed(source, write, prefix.predicate.is_some())
}
