//! Kernels with instructions before their own.

use gridloom_ptx::op::{Compare, GridDep, Order};
use gridloom_ptx::{Address, AddressBase, Module, ParamId, ScalarType, Space, VarRef};

use super::assembly::{Assembly, Changes, Conditions, at, int};
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

/// A test before the first instruction of a kernel. Threads return at once if it fails.
///
/// The words that it reads must not change while the kernel runs. Each test has additional
/// parameters of 8 bytes at the end of the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The 32-bit word at an address meets the predicate. The parameter is the address.
    Word(Predicate),
    /// The latest marked word at or before an address is not 0. Words have 8 bytes: the value, and
    /// a mark that is not 0 where the word was set. The first word is always marked. The parameter
    /// is the address.
    Latest,
    /// The 64-bit number at an address is below a bound. The parameters are the address and the
    /// bound.
    Below,
}

impl Gate {
    /// Returns how many parameters of 8 bytes it adds.
    #[must_use]
    pub fn params(self) -> usize {
        match self {
            Gate::Word(_) | Gate::Latest => 1,
            Gate::Below => 2,
        }
    }
}

/// The instructions before those of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Lets kernels start that depend on this one over programmatic edges.
    pub trigger: bool,
    /// Waits until the kernels that it depends on over programmatic edges have ended.
    pub wait: bool,
    /// Waits only after the first instructions of the kernel, as far as these compute from its
    /// arguments and the place of the thread. They are then done while the other kernel runs.
    pub late_wait: bool,
    /// Tests that decide whether the kernel runs, in order.
    pub gates: Vec<Gate>,
    /// Stores conditions, with a mark, at the address that is passed as their handle.
    pub stored_conditions: bool,
    /// Lets loops make several passes between two tests, so that their loads are under way
    /// together.
    pub unroll: bool,
}

impl Prefix {
    /// Returns whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Prefix::default()
    }
}

/// Returns a module with a copy of a kernel, under its name, that starts with this prefix.
pub fn prefixed(source: &KernelSource, prefix: &Prefix) -> Result<Module, String> {
    if let Some(reason) = source.obstacle(Role::Prefixed) {
        return Err(format!("{}: {reason}", source.name()));
    }
    let conditions = if prefix.stored_conditions { Conditions::Memory } else { Conditions::Device };
    let asm = Assembly::new(conditions);
    let count = prefix.gates.iter().map(|gate| gate.params()).sum();
    let start = |asm: &mut Assembly| {
        if prefix.trigger {
            asm.grid_dependency(GridDep::LaunchDependents);
        }
    };
    let write = |asm: &mut Assembly, params: &[ParamId]| {
        if prefix.wait {
            asm.grid_dependency(GridDep::Wait);
        }
        let mut params = params;
        for &gate in &prefix.gates {
            let (own, others) = params.split_at(gate.params());
            params = others;
            write_gate(asm, gate, own);
        }
    };
    let changes = Changes { unrolls: prefix.unroll, is_late: prefix.wait && prefix.late_wait };
    asm.finish_prefixed(source, (start, write), count, changes)
}

fn write_gate(asm: &mut Assembly, gate: Gate, params: &[ParamId]) {
    let param = |asm: &mut Assembly, index: usize| {
        let address = Address { base: AddressBase::Var(VarRef::Param(params[index])), offset: 0 };
        asm.load(Space::Param, Order::Weak, ScalarType::U64, address)
    };
    let address = param(asm, 0);
    let holds = match gate {
        Gate::Word(predicate) => {
            let value = asm.load(Space::Global, Order::Weak, ScalarType::U32, at(address, 0));
            let (cmp, with) = match predicate {
                Predicate::NonZero => (Compare::Ne, 0),
                Predicate::Zero => (Compare::Eq, 0),
                Predicate::Equals(number) => (Compare::Eq, number),
            };
            asm.compare(cmp, ScalarType::U32, value.into(), int(with.into()))
        }
        Gate::Latest => {
            let (again, found) = (asm.label(), asm.label());
            asm.place(again);
            let mark = asm.load(Space::Global, Order::Weak, ScalarType::U32, at(address, 4));
            let is_marked = asm.compare(Compare::Ne, ScalarType::U32, mark.into(), int(0));
            asm.branch_if(is_marked, false, found);
            asm.arith_to(address, gridloom_ptx::op::IntArith::Sub, ScalarType::U64, address.into(), int(8));
            asm.branch(again);
            asm.place(found);
            let value = asm.load(Space::Global, Order::Weak, ScalarType::U32, at(address, 0));
            asm.compare(Compare::Ne, ScalarType::U32, value.into(), int(0))
        }
        Gate::Below => {
            let bound = param(asm, 1);
            let number = asm.load(Space::Global, Order::Weak, ScalarType::U64, at(address, 0));
            asm.compare(Compare::Lt, ScalarType::U64, number.into(), bound.into())
        }
    };
    let go_on = asm.label();
    asm.branch_if(holds, false, go_on);
    asm.ret();
    asm.place(go_on);
}
