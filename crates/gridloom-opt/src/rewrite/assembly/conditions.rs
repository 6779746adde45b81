//! What sets conditions in kernels that test them elsewhere than the device does: a function, or its
//! code in the place of a call.

use gridloom_ptx::op::{
    Access, BitsOp, CallArg, CallTarget, Compare, CompareOp, ControlOp, ConvertOp, Instruction, IntArith,
    IntOp, LogicOp, MemoryOp, MulMode, Op, OperandMut, Order,
};
use gridloom_ptx::{
    Address, AddressBase, Body, Directives, Function, FunctionKind, Guard, Imm, Item, Linkage, LocalVarId,
    Module, Operand, Param, ParamId, PredOperand, RegId, ScalarType, Space, Span, Symbol, SymbolId, VarRef,
    VarSpace,
};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use crate::rewrite::program::announced::{SET_TO_NONZERO, SET_TO_ZERO};
use crate::rewrite::source::{KernelSource, SET_CONDITION};

use super::{Assembly, Conditions, access, at, bytes, int};

impl Assembly {
    /// Returns the function that sets conditions.
    pub(super) fn condition_setter(&mut self) -> SymbolId {
        if let Some(id) = self.condition_setter {
            return id;
        }
        let body = self.keeper().map(in_function);
        let (name, linkage) = match body {
            None => (SET_CONDITION, Linkage::Extern),
            Some(_) => ("set_condition", Linkage::Internal),
        };
        let function = Function { linkage, body: body.map(Box::new), ..declaration(name) };
        let is_defined = function.body.is_some();
        let id = self.declare(Symbol::Function(Box::new(function)));
        self.declared.push(Item::Declare(id));
        if is_defined {
            self.defined.push(Item::Define(id));
        }
        self.condition_setter = Some(id);
        id
    }

    /// Returns where conditions are, or `None` if the device keeps them.
    fn keeper(&mut self) -> Option<Keeper> {
        Some(match self.conditions {
            Conditions::Device => return None,
            Conditions::Shared => Keeper::Shared(self.condition_words()),
            Conditions::Memory => Keeper::Memory,
            Conditions::Phased => Keeper::Phases { word: self.phase_word(), announcement: None },
            Conditions::Announced => {
                Keeper::Phases { word: self.phase_word(), announcement: Some(self.announcement()) }
            }
        })
    }

    /// Returns registers for the arguments of a kernel's calls that set conditions, by the variables
    /// that pass them. They are in the place of the variables if the code of the function is in the
    /// place of the calls, which saves the time of a call in the one thread that all others wait
    /// for. Empty if some of the calls stay calls.
    pub(super) fn condition_arguments(&mut self, source: &KernelSource) -> FxHashMap<LocalVarId, RegId> {
        if self.conditions == Conditions::Device || !source.facts().sets_conditions {
            return FxHashMap::default();
        }
        let (module, body) = (source.module(), source.body());
        let mut sizes = FxHashMap::default();
        for instruction in &body.instructions {
            let Some(args) = setter_call(module, instruction) else { continue };
            let Some([handle, value]) = args.filter(|_| instruction.guard.is_none()) else {
                return FxHashMap::default();
            };
            for (var, size) in [(handle, 8), (value, 4)] {
                if *sizes.entry(var).or_insert(size) != size {
                    return FxHashMap::default();
                }
            }
        }
        let is_argument = |var: VarRef| matches!(var, VarRef::Local(id) if sizes.contains_key(&id));
        for instruction in &body.instructions {
            if setter_call(module, instruction).is_some() {
                continue;
            }
            if let Some((var, ty, src)) = passed(&instruction.op)
                && let Some(&size) = sizes.get(&var)
            {
                let fits = match src {
                    Operand::Reg(reg) => body.registers.ty(reg).size() == size,
                    Operand::Imm(Imm::Int(_)) => true,
                    _ => false,
                };
                if !fits || ty.size() != size {
                    return FxHashMap::default();
                }
                continue;
            }
            let mut has_other_use = false;
            instruction.clone().for_each_name_mut(&mut |place| {
                has_other_use |= match place {
                    OperandMut::Var(var) => is_argument(*var),
                    OperandMut::Addr(Address { base: AddressBase::Var(var), .. })
                    | OperandMut::Src(Operand::Address { base: var, .. }) => is_argument(*var),
                    _ => false,
                };
            });
            if has_other_use {
                return FxHashMap::default();
            }
        }
        let mut vars: Vec<(LocalVarId, u32)> = sizes.into_iter().collect();
        vars.sort_unstable();
        let ty = |size| if size == 8 { ScalarType::B64 } else { ScalarType::B32 };
        vars.into_iter().map(|(var, size)| (var, self.register(ty(size)))).collect()
    }

    /// Emits what an instruction of an inlined kernel does for a call that sets a condition: passing
    /// an argument, or the call itself. Returns whether it is one. `registers` are those of
    /// [`condition_arguments`](Self::condition_arguments).
    pub(super) fn sets_condition_here(
        &mut self,
        module: &Module,
        instruction: &Instruction,
        registers: &FxHashMap<LocalVarId, RegId>,
        first_register: u32,
    ) -> bool {
        if registers.is_empty() {
            return false;
        }
        if let Some(Some([handle, value])) = setter_call(module, instruction) {
            let (handle, value, phase) = (registers[&handle], registers[&value], self.phase);
            if let Some(keeper) = self.keeper() {
                store(self, keeper, phase, (handle, value));
            }
            return true;
        }
        let Some((var, ty, mut src)) = passed(&instruction.op) else { return false };
        let Some(&dst) = registers.get(&var) else { return false };
        if let Operand::Reg(reg) = &mut src {
            reg.0 += first_register;
        }
        let guard =
            instruction.guard.map(|guard| Guard { reg: RegId(guard.reg.0 + first_register), ..guard });
        let ty = if ty.size() == 8 { ScalarType::B64 } else { ScalarType::B32 };
        self.emit_if(guard, ConvertOp::Mov { ty, dst, src });
        true
    }
}

/// Returns the variables that a call passes to the function that sets conditions, if they are two
/// of the caller's. `None` if the instruction is no such call.
fn setter_call(module: &Module, instruction: &Instruction) -> Option<Option<[LocalVarId; 2]>> {
    let Op::Control(ControlOp::Call { target: CallTarget::Direct(id), args, .. }) = &instruction.op else {
        return None;
    };
    let function = module.function(*id)?;
    if function.body.is_some() || function.name != SET_CONDITION {
        return None;
    }
    Some(match args[..] {
        [CallArg::Var(VarRef::Local(handle)), CallArg::Var(VarRef::Local(value))] => Some([handle, value]),
        _ => None,
    })
}

/// Returns what a store to the whole of a variable for arguments stores.
fn passed(op: &Op) -> Option<(LocalVarId, ScalarType, Operand)> {
    let Op::Memory(MemoryOp::St { ty, srcs, access }) = op else { return None };
    match (access.space, access.addr, &srcs[..]) {
        (Space::Param, Address { base: AddressBase::Var(VarRef::Local(var)), offset: 0 }, &[src]) => {
            Some((var, *ty, src))
        }
        _ => None,
    }
}

/// Where conditions are.
#[derive(Clone, Copy)]
enum Keeper {
    /// In words of shared memory. A handle is the offset of its word.
    Shared(SymbolId),
    /// In memory, with a mark. A handle is the address.
    Memory,
    /// In memory, with the number of the phase, which is in a word of shared memory too. A handle is
    /// the address of two entries, of which phases use the first and the second by turns.
    /// `announcement` is a word of shared memory that says that the block set the condition, and
    /// whether to 0.
    Phases { word: SymbolId, announcement: Option<SymbolId> },
}

/// Returns the body of a function that sets a condition.
fn in_function(keeper: Keeper) -> Body {
    let mut code = FunctionCode::default();
    let (handle, value) = code.parameters();
    store(&mut code, keeper, None, (handle, value));
    code.end()
}

/// Emits the stores for a condition. `phase` is the number of the phase, if a register has it.
fn store(code: &mut impl Code, keeper: Keeper, phase: Option<RegId>, (handle, value): (RegId, RegId)) {
    match keeper {
        Keeper::Shared(words) => {
            let place = code.register(ScalarType::U64);
            let base = Operand::Address { base: VarRef::Symbol(words), offset: 0 };
            code.emit(ConvertOp::Mov { ty: ScalarType::U64, dst: place, src: base });
            code.emit(IntOp::Arith {
                op: IntArith::Add,
                ty: ScalarType::U64,
                sat: false,
                relu: false,
                dst: place,
                a: place.into(),
                b: handle.into(),
            });
            let access = Box::new(access(Space::Shared, Order::Weak, at(place, 0)));
            code.emit(MemoryOp::St { ty: ScalarType::B32, srcs: smallvec![value.into()], access });
        }
        Keeper::Memory => {
            let mark = code.register(ScalarType::B32);
            code.emit(ConvertOp::Mov { ty: ScalarType::B32, dst: mark, src: int(1) });
            let access = Box::new(access(Space::Global, Order::Weak, at(handle, 0)));
            let srcs = smallvec![value.into(), mark.into()];
            code.emit(MemoryOp::St { ty: ScalarType::B32, srcs, access });
        }
        Keeper::Phases { word, announcement } => {
            let phase = phase.unwrap_or_else(|| {
                let phase = code.register(ScalarType::B64);
                // All threads store it there, each before it calls the function.
                let access = Box::new(volatile(word));
                code.emit(MemoryOp::Ld { ty: ScalarType::B64, dsts: smallvec![Some(phase)], access });
                phase
            });
            store_in_phase(code, phase, (handle, value));
            if let Some(word) = announcement {
                announce(code, word, value);
            }
        }
    }
}

fn store_in_phase(code: &mut impl Code, phase: RegId, (handle, value): (RegId, RegId)) {
    let place = code.register(ScalarType::B64);
    let wide = code.register(ScalarType::B64);
    let (a, b) = (phase.into(), int(1));
    code.emit(BitsOp::Logic { op: LogicOp::And, ty: ScalarType::B64, dst: place, a, b });
    code.emit(IntOp::Mad {
        mode: MulMode::Lo,
        ty: ScalarType::U64,
        sat: false,
        dst: place,
        a: place.into(),
        b: int(16),
        c: handle.into(),
    });
    code.emit(ConvertOp::Pack { ty: ScalarType::B64, dst: wide, srcs: smallvec![value.into(), int(0)] });
    for (offset, part) in [(0, wide), (8, phase)] {
        let access = Box::new(access(Space::Global, Order::Weak, at(place, offset)));
        code.emit(MemoryOp::St { ty: ScalarType::B64, srcs: smallvec![part.into()], access });
    }
}

/// Emits the store that tells the first thread of the block.
fn announce(code: &mut impl Code, word: SymbolId, value: RegId) {
    let is_set = code.register(ScalarType::Pred);
    let says = code.register(ScalarType::B32);
    code.emit(CompareOp::Setp {
        cmp: Compare::Ne,
        combine: None,
        ftz: false,
        ty: ScalarType::U32,
        p: Some(is_set),
        q: None,
        a: value.into(),
        b: int(0),
    });
    code.emit(CompareOp::Selp {
        ty: ScalarType::B32,
        dst: says,
        a: int(SET_TO_NONZERO),
        b: int(SET_TO_ZERO),
        cond: PredOperand::Reg { reg: is_set, negated: false },
    });
    let access = Box::new(volatile(word));
    code.emit(MemoryOp::St { ty: ScalarType::U32, srcs: smallvec![says.into()], access });
}

/// Returns an access to a word of shared memory that several threads may store to.
fn volatile(word: SymbolId) -> Access {
    let word = Address { base: AddressBase::Var(VarRef::Symbol(word)), offset: 0 };
    Access { order: Order::Volatile, ..access(Space::Shared, Order::Weak, word) }
}

/// Code under construction.
trait Code {
    fn register(&mut self, ty: ScalarType) -> RegId;
    fn emit(&mut self, op: impl Into<Op>);
}

impl Code for Assembly {
    fn register(&mut self, ty: ScalarType) -> RegId {
        Assembly::register(self, ty)
    }

    fn emit(&mut self, op: impl Into<Op>) {
        Assembly::emit(self, op);
    }
}

/// The body of a function under construction.
#[derive(Default)]
struct FunctionCode(Body);

impl Code for FunctionCode {
    fn register(&mut self, ty: ScalarType) -> RegId {
        let name = format!("%v{}", self.0.registers.len());
        self.0.registers.declare(&name, None, ty, Span::default()).expect("few registers")
    }

    fn emit(&mut self, op: impl Into<Op>) {
        let (op, span) = (op.into(), Span::default());
        self.0.instructions.push(Instruction { guard: None, op, location: None, span });
    }
}

impl FunctionCode {
    /// Returns the handle and the value.
    fn parameters(&mut self) -> (RegId, RegId) {
        let (handle, value) = (self.register(ScalarType::B64), self.register(ScalarType::B32));
        for (index, ty, dst) in [(0, ScalarType::B64, handle), (1, ScalarType::B32, value)] {
            let addr = Address { base: AddressBase::Var(VarRef::Param(ParamId(index))), offset: 0 };
            let access = Box::new(access(Space::Param, Order::Weak, addr));
            self.emit(MemoryOp::Ld { ty, dsts: smallvec![Some(dst)], access });
        }
        (handle, value)
    }

    fn end(mut self) -> Body {
        self.emit(ControlOp::Ret { uni: false });
        self.0
    }
}

/// Returns the declaration of a function that takes a handle and a value.
fn declaration(name: &str) -> Function {
    let param = |name: &str, ty, offset| {
        let mut var = bytes(name.into(), VarSpace::Param, 1, 1);
        (var.ty, var.dims, var.align) = (ty, Vec::new(), None);
        Param { var, pointer: None, register: None, offset }
    };
    Function {
        name: name.into(),
        kind: FunctionKind::Func,
        linkage: Linkage::Internal,
        attributes: Vec::new(),
        returns: Vec::new(),
        params: vec![param("handle", ScalarType::B64, 0), param("value", ScalarType::B32, 8)],
        directives: Directives::default(),
        body: None,
        alias_of: None,
        span: Span::default(),
    }
}
