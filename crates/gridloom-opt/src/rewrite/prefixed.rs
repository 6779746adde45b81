//! Kernels with instructions before their own.

use gridloom_ptx::op::{Compare, GridDep, Order};
use gridloom_ptx::{Address, AddressBase, Module, ScalarType, Space, VarRef};

use super::assembly::{Assembly, Conditions, at, int};
use super::source::{KernelSource, Role};

/// The value that a word in memory must have for a kernel to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// Not 0.
    NonZero,
    /// 0.
    Zero,
    /// This number.
    Equals(u32),
}

/// The instructions before those of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Lets kernels start that depend on this one over programmatic edges.
    pub trigger: bool,
    /// Waits until the kernels that it depends on over programmatic edges have ended.
    pub wait: bool,
    /// Returns at once unless a word in memory meets the predicate. Its address is an additional
    /// last parameter.
    pub predicate: Option<Predicate>,
    /// Stores conditions at the address that is passed as their handle.
    pub stored_conditions: bool,
}

/// Returns a module with a copy of a kernel, under its name, that starts with this prefix.
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
