//! What stops a launch: traps, and assertions with their messages.
//!
//! A thread that stops the launch never goes on, and nothing of the graph runs after it. So nobody
//! waits for it in vain, and what follows in the text is not reached by it.

use gridloom_ptx::op::{CallArg, CallTarget, ControlOp, ConvertOp, MemoryOp, Op, OperandRef, RawToken};
use gridloom_ptx::{
    AddressBase, Body, Function, Linkage, LocalVarId, Module, Operand, RegId, Space, SymbolId, VarRef,
    VarSpace,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::flow::Flow;

/// The function that reports a failed assertion and stops the launch.
pub(super) const ASSERTION: &str = "__assertfail";
/// The function that prints.
const PRINT: &str = "vprintf";

/// The functions of a module that always stop the launch.
#[derive(Debug, Default)]
pub(crate) struct Stops(FxHashSet<SymbolId>);

impl Stops {
    /// Finds those among some functions.
    pub(super) fn among(module: &Module, functions: &[SymbolId]) -> Self {
        let mut stops = Stops::default();
        let is_assertion =
            |(_, function): &(SymbolId, &Function)| function.body.is_none() && function.name == ASSERTION;
        stops.0.extend(module.functions().filter(is_assertion).map(|(id, _)| id));
        // A function may stop because one that it calls does.
        loop {
            let found: Vec<SymbolId> = functions
                .iter()
                .copied()
                .filter(|id| !stops.0.contains(id))
                .filter(|&id| {
                    let body = module.function(id).and_then(|function| function.body.as_deref());
                    body.is_some_and(|body| !body.instructions.is_empty() && stops.reaching(body)[0])
                })
                .collect();
            if found.is_empty() {
                return stops;
            }
            stops.0.extend(found);
        }
    }

    /// Returns whether a function always stops the launch.
    pub(super) fn has(&self, id: SymbolId) -> bool {
        self.0.contains(&id)
    }

    /// Returns whether an instruction stops the launch in every thread that executes it.
    fn at(&self, op: &Op) -> bool {
        match op {
            Op::Control(ControlOp::Trap) => true,
            Op::Control(ControlOp::Call { target: CallTarget::Direct(id), .. }) => self.has(*id),
            _ => false,
        }
    }

    /// Returns for each instruction whether every thread that reaches it stops the launch.
    pub(super) fn reaching(&self, body: &Body) -> Vec<bool> {
        let flow = Flow::of(body);
        // Whether a thread may get from an instruction to the end, or go round for ever, without
        // stopping the launch: the others cannot.
        let mut stops: Vec<bool> = body
            .instructions
            .iter()
            .map(|instruction| instruction.guard.is_none() && self.at(&instruction.op))
            .collect();
        stops.push(false);
        loop {
            let mut changed = false;
            for at in (0..body.instructions.len()).rev() {
                if !stops[at] && flow.successors[at].iter().all(|&next| stops[next]) {
                    stops[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return stops;
            }
        }
    }
}

/// Returns the variables of a module that are nothing but the texts of assertions and of output:
/// they have initial values, are known inside the module only, and their addresses go to the
/// functions that report, and nowhere else.
pub(super) fn messages(module: &Module) -> FxHashSet<SymbolId> {
    let mut found: FxHashSet<SymbolId> = module
        .variables()
        .filter(|(_, variable)| {
            variable.space == VarSpace::Global
                && variable.linkage == Linkage::Internal
                && variable.ty.size() == 1
                && variable.image().is_some_and(|image| image.relocations.is_empty())
        })
        .map(|(id, _)| id)
        .collect();
    for (_, variable) in module.variables() {
        for relocation in variable.image().iter().flat_map(|image| &image.relocations) {
            found.remove(&relocation.symbol);
        }
    }
    for (_, function) in module.functions() {
        if found.is_empty() {
            break;
        }
        if let Some(body) = &function.body {
            for id in used_otherwise(module, body) {
                found.remove(&id);
            }
        }
    }
    found
}

type Symbols = SmallVec<[SymbolId; 1]>;
/// The variables whose addresses registers may hold.
type Held = FxHashMap<RegId, Symbols>;

/// Returns the symbols of a function whose addresses it uses for anything but the arguments of the
/// functions that report.
fn used_otherwise(module: &Module, body: &Body) -> FxHashSet<SymbolId> {
    let mut found = FxHashSet::default();
    let mut held = Held::default();
    let of = |held: &Held, operand: &Operand| match operand {
        Operand::Address { base: VarRef::Symbol(id), .. } => SmallVec::from_slice(&[*id]),
        Operand::Reg(reg) => held.get(reg).cloned().unwrap_or_default(),
        _ => Symbols::new(),
    };
    let moved = |op: &Op| match op {
        Op::Convert(ConvertOp::Mov { dst, src, .. } | ConvertOp::Cvta { dst, src, .. }) => Some((*dst, *src)),
        _ => None,
    };
    loop {
        let mut changed = false;
        for instruction in &body.instructions {
            let Some((dst, src)) = moved(&instruction.op) else { continue };
            let there = held.entry(dst).or_default();
            let before = there.len();
            let mut all = std::mem::take(there);
            for id in of(&held, &src) {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
            changed |= all.len() != before;
            held.insert(dst, all);
        }
        if !changed {
            break;
        }
    }
    // What each argument variable holds, and those that other functions get.
    let mut arguments: FxHashMap<LocalVarId, Symbols> = FxHashMap::default();
    let mut given: FxHashSet<LocalVarId> = FxHashSet::default();
    for instruction in &body.instructions {
        match &instruction.op {
            op if moved(op).is_some() => continue,
            Op::Memory(MemoryOp::St { srcs, access, .. }) if is_argument(access.space) => {
                if let AddressBase::Var(VarRef::Local(local)) = access.addr.base {
                    for src in srcs {
                        arguments.entry(local).or_default().extend(of(&held, src));
                    }
                    continue;
                }
            }
            Op::Control(ControlOp::Call { target, returns, args, .. }) => {
                let reports = |id: SymbolId| {
                    module.function(id).is_some_and(|function| {
                        function.body.is_none() && matches!(function.name.as_str(), ASSERTION | PRINT)
                    })
                };
                let is_report = matches!(target, CallTarget::Direct(id) if reports(*id));
                for argument in args.iter().chain(returns) {
                    match argument {
                        CallArg::Var(VarRef::Local(local)) if !is_report => {
                            given.insert(*local);
                        }
                        CallArg::Reg(reg) if !is_report => {
                            found.extend(held.get(reg).cloned().unwrap_or_default());
                        }
                        _ => {}
                    }
                }
                continue;
            }
            _ => {}
        }
        instruction.op.for_each_operand(&mut |operand, _| match operand {
            OperandRef::Def(_) | OperandRef::Pred(_) => {}
            OperandRef::Use(reg) => found.extend(held.get(&reg).cloned().unwrap_or_default()),
            OperandRef::Src(Operand::Address { base: VarRef::Symbol(id), .. }) => {
                found.insert(*id);
            }
            OperandRef::Src(operand) => found.extend(of(&held, operand)),
            OperandRef::Addr(address) => match address.base {
                AddressBase::Reg(reg) => found.extend(held.get(&reg).cloned().unwrap_or_default()),
                AddressBase::Var(VarRef::Symbol(id)) => {
                    found.insert(id);
                }
                _ => {}
            },
        });
        if let Op::Unsupported(unsupported) = &instruction.op {
            // What it does with its operands is not known.
            for token in &unsupported.operands {
                match token {
                    RawToken::Var(VarRef::Symbol(id)) => found.extend([*id]),
                    RawToken::Reg(reg) => found.extend(held.get(reg).cloned().unwrap_or_default()),
                    _ => {}
                }
            }
        }
    }
    for (local, held) in arguments {
        if given.contains(&local) {
            found.extend(held);
        }
    }
    found
}

fn is_argument(space: Space) -> bool {
    matches!(space, Space::Param | Space::ParamFunc)
}
