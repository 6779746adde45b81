//! What stops a launch: traps and assertions. And what never changes: the texts of assertions and
//! the tables of functions.
//!
//! A thread that stops the launch never goes on, and nothing of the graph runs after it. So nobody
//! waits for it in vain, and what follows in the text is not reached by it.

use gridloom_ptx::op::{CallArg, CallTarget, ControlOp, MemoryOp, Op, OperandRef, RawToken};
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

/// Returns the variables of a module that keep their initial value for ever, so that a copy serves
/// as well. They are known inside the module only, and their addresses go nowhere but
///
/// - to the functions that report assertions and output: texts;
/// - to loads, if the variable belongs to a function: its tables.
pub(super) fn constants(module: &Module) -> FxHashSet<SymbolId> {
    let mut texts: FxHashSet<SymbolId> = module
        .variables()
        .filter(|(_, variable)| {
            variable.space == VarSpace::Global
                && variable.linkage == Linkage::Internal
                && variable.image().is_some_and(|image| image.relocations.is_empty())
        })
        .map(|(id, _)| id)
        .collect();
    for (_, variable) in module.variables() {
        for relocation in variable.image().iter().flat_map(|image| &image.relocations) {
            texts.remove(&relocation.symbol);
        }
    }
    // The host can find variables by their names, but hardly those of functions, which compilers
    // name after the function.
    let is_of_function =
        |id: &SymbolId| module.variable(*id).is_some_and(|variable| variable.name.starts_with("_ZZ"));
    let mut tables: FxHashSet<SymbolId> = texts.iter().copied().filter(is_of_function).collect();
    texts.retain(|id| module.variable(*id).is_some_and(|variable| variable.ty.size() == 1));
    for (_, function) in module.functions() {
        if texts.is_empty() && tables.is_empty() {
            break;
        }
        if let Some(body) = &function.body {
            let uses = Uses::of(module, body);
            tables.retain(|id| !uses.others.contains(id));
            texts.retain(|id| !uses.others.contains(id) && !uses.loads.contains(id));
        }
    }
    texts.extend(tables);
    texts
}

type Symbols = SmallVec<[SymbolId; 1]>;
/// The variables whose addresses registers may hold.
type Held = FxHashMap<RegId, Symbols>;

/// The variables whose addresses a function uses, other than as arguments of the functions that
/// report.
#[derive(Default)]
struct Uses {
    /// Those that it loads from.
    loads: FxHashSet<SymbolId>,
    /// Those that it may use in any other way.
    others: FxHashSet<SymbolId>,
}

impl Uses {
    fn of(module: &Module, body: &Body) -> Self {
        let mut uses = Uses::default();
        let found = &mut uses.others;
        let loaded = &mut uses.loads;
        // The variables whose addresses registers may hold, however computed.
        let mut held = Held::default();
        let of = |held: &Held, operand: &Operand| match operand {
            Operand::Address { base: VarRef::Symbol(id), .. } => SmallVec::from_slice(&[*id]),
            Operand::Reg(reg) => held.get(reg).cloned().unwrap_or_default(),
            _ => Symbols::new(),
        };
        let computes = |op: &Op| matches!(op, Op::Int(_) | Op::Bits(_) | Op::Convert(_));
        loop {
            let mut changed = false;
            for instruction in body.instructions.iter().filter(|instruction| computes(&instruction.op)) {
                let (mut from, mut to) = (Symbols::new(), SmallVec::<[RegId; 2]>::new());
                instruction.op.for_each_operand(&mut |operand, _| match operand {
                    OperandRef::Def(reg) => to.push(reg),
                    OperandRef::Use(reg) => from.extend(of(&held, &reg.into())),
                    OperandRef::Src(operand) => from.extend(of(&held, operand)),
                    OperandRef::Pred(_) | OperandRef::Addr(_) => {}
                });
                for reg in to {
                    let there = held.entry(reg).or_default();
                    for &id in &from {
                        if !there.contains(&id) {
                            there.push(id);
                            changed = true;
                        }
                    }
                }
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
                op if computes(op) => continue,
                Op::Memory(MemoryOp::Ld { access, .. }) => {
                    match access.addr.base {
                        AddressBase::Reg(reg) => loaded.extend(of(&held, &reg.into())),
                        AddressBase::Var(VarRef::Symbol(id)) => loaded.extend([id]),
                        _ => {}
                    }
                    continue;
                }
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
                            CallArg::Reg(reg) if !is_report => found.extend(of(&held, &(*reg).into())),
                            _ => {}
                        }
                    }
                    continue;
                }
                _ => {}
            }
            instruction.op.for_each_operand(&mut |operand, _| match operand {
                OperandRef::Def(_) | OperandRef::Pred(_) => {}
                OperandRef::Use(reg) => found.extend(of(&held, &reg.into())),
                OperandRef::Src(operand) => found.extend(of(&held, operand)),
                OperandRef::Addr(address) => match address.base {
                    AddressBase::Reg(reg) => found.extend(of(&held, &reg.into())),
                    AddressBase::Var(VarRef::Symbol(id)) => found.extend([id]),
                    _ => {}
                },
            });
            if let Op::Unsupported(unsupported) = &instruction.op {
                // What it does with its operands is not known.
                for token in &unsupported.operands {
                    match token {
                        RawToken::Var(VarRef::Symbol(id)) => found.extend([*id]),
                        RawToken::Reg(reg) => found.extend(of(&held, &(*reg).into())),
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
        uses
    }
}

fn is_argument(space: Space) -> bool {
    matches!(space, Space::Param | Space::ParamFunc)
}
