//! A module with one kernel that is put together from the code of others.

use std::sync::Arc;

use gridloom_ptx::op::{
    Access, BarrierKind, BitsOp, Compare, CompareOp, ControlOp, ConvertOp, GridDep, Instruction, IntArith,
    IntOp, LogicOp, MemoryOp, MulMode, Op, Order, PlaceMut, SyncOp,
};
use gridloom_ptx::{
    Address, AddressBase, Body, BranchTable, BranchTableId, Dim, DimSpecial, Directives, Function,
    FunctionKind, Guard, Imm, Item, Label, LabelId, Linkage, LocalVarId, Module, Operand, Param, ParamId,
    RegId, ScalarType, Source, Space, Span, SpecialReg, Symbol, SymbolId, Target, VarRef, VarSpace, Variable,
    Version,
};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::source::{KernelSource, SET_CONDITION, STEP_BARRIER};

/// Parameters beyond this need PTX 8.1 and compute capability 7.0.
pub(crate) const SMALL_PARAMETERS: u64 = 4096;

/// Where the parameters of an inlined kernel lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamsAt {
    /// So many bytes into the parameters of the new kernel.
    Offset(u64),
    /// At the address, in parameter space, that a register holds.
    Register(RegId),
}

/// What `%ctaid` and `%nctaid` are for an inlined kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockIndex {
    /// What they are for the new kernel.
    Own,
    /// What these registers hold.
    Registers { index: [RegId; 3], count: [RegId; 3] },
}

/// Where threads go when an inlined kernel ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AfterReturn {
    /// They end.
    Ends,
    /// They go on at a label.
    GoesOn(LabelId),
}

/// How a kernel is put into another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inlining {
    pub(crate) params: ParamsAt,
    pub(crate) index: BlockIndex,
    pub(crate) after: AfterReturn,
    /// Threads of the step along x, where they are fewer than those of the block, whose other extents are 1.
    pub(crate) threads: Option<u32>,
    /// Whether what it reads may be written in the same launch.
    pub(crate) coherent: bool,
}

/// Where the inlined kernels' calls of `cudaGraphSetConditional` lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conditions {
    /// To the device's own function.
    Device,
    /// To a word of shared memory: there is one condition.
    Shared,
    /// To the address that is passed as the handle.
    Memory,
}

/// A module with one kernel under construction.
pub(crate) struct Assembly {
    symbols: Vec<Symbol>,
    declared: Vec<Item>,
    defined: Vec<Item>,
    body: Body,
    version: Version,
    target: (u32, String),
    /// Symbols of other modules, by the module's address, and what they became.
    linked: FxHashMap<(usize, SymbolId), SymbolId>,
    /// Keeps the modules whose addresses are in `linked`.
    modules: Vec<Arc<Module>>,
    /// Shared memory that the inlined kernels use one after the other.
    arena: Option<LocalVarId>,
    arena_bytes: u64,
    arena_align: u64,
    dynamic_shared: Option<SymbolId>,
    conditions: Conditions,
    condition_setter: Option<SymbolId>,
    condition_word: Option<SymbolId>,
    inlined: usize,
    glue: usize,
}

/// Why a kernel could not be put together.
pub(crate) type Refusal = String;

impl Assembly {
    pub(crate) fn new(conditions: Conditions) -> Self {
        Assembly {
            symbols: Vec::new(),
            declared: Vec::new(),
            defined: Vec::new(),
            body: Body::default(),
            version: Version { major: 6, minor: 4 },
            target: (70, "sm_70".into()),
            linked: FxHashMap::default(),
            modules: Vec::new(),
            arena: None,
            arena_bytes: 0,
            arena_align: 1,
            dynamic_shared: None,
            conditions,
            condition_setter: None,
            condition_word: None,
            inlined: 0,
            glue: 0,
        }
    }

    /// Makes the module one of at least this version, for at least this compute capability.
    pub(crate) fn require(&mut self, version: Version, sm: u32) {
        self.version = self.version.max(version);
        if sm > self.target.0 {
            self.target = (sm, format!("sm_{sm}"));
        }
    }

    fn require_of(&mut self, module: &Arc<Module>) {
        self.version = self.version.max(module.version);
        if let Some(sm) = module.target.sm()
            && let Some(word) = module.target.words.iter().find(|word| word.starts_with("sm_"))
            // `sm_90a` has what `sm_90` has, and more.
            && (sm, word.len()) > (self.target.0, self.target.1.len())
        {
            self.target = (sm, word.clone());
        }
        if !self.modules.iter().any(|known| Arc::ptr_eq(known, module)) {
            self.modules.push(Arc::clone(module));
        }
    }

    // The code between the inlined kernels.

    pub(crate) fn register(&mut self, ty: ScalarType) -> RegId {
        self.glue += 1;
        let name = format!("%glue{}", self.glue);
        self.body.registers.declare(&name, None, ty, Span::default()).expect("fewer registers than numbers")
    }

    /// A label that stands nowhere yet.
    pub(crate) fn label(&mut self) -> LabelId {
        let id = LabelId(self.body.labels.len() as u32);
        let name = format!("$glue_{}", id.0);
        self.body.labels.push(Label { name, target: u32::MAX, span: Span::default() });
        id
    }

    /// Has a label stand before the next instruction.
    pub(crate) fn place(&mut self, label: LabelId) {
        self.body.labels[label.index()].target = self.body.instructions.len() as u32;
    }

    pub(crate) fn emit(&mut self, op: impl Into<Op>) {
        self.emit_if(None, op);
    }

    pub(crate) fn emit_if(&mut self, guard: Option<Guard>, op: impl Into<Op>) {
        self.body.instructions.push(Instruction {
            guard,
            op: op.into(),
            location: None,
            span: Span::default(),
        });
    }

    pub(crate) fn mov(&mut self, ty: ScalarType, src: Operand) -> RegId {
        let dst = self.register(ty);
        self.emit(ConvertOp::Mov { ty, dst, src });
        dst
    }

    pub(crate) fn set(&mut self, ty: ScalarType, dst: RegId, src: Operand) {
        self.emit(ConvertOp::Mov { ty, dst, src });
    }

    pub(crate) fn arith(&mut self, op: IntArith, ty: ScalarType, a: Operand, b: Operand) -> RegId {
        let dst = self.register(ty);
        self.arith_to(dst, op, ty, a, b);
        dst
    }

    pub(crate) fn arith_to(&mut self, dst: RegId, op: IntArith, ty: ScalarType, a: Operand, b: Operand) {
        self.emit(IntOp::Arith { op, ty, sat: false, relu: false, dst, a, b });
    }

    pub(crate) fn and(&mut self, a: Operand, mask: i64) -> RegId {
        let dst = self.register(ScalarType::B32);
        let b = Operand::Imm(Imm::Int(mask));
        self.emit(BitsOp::Logic { op: LogicOp::And, ty: ScalarType::B32, dst, a, b });
        dst
    }

    pub(crate) fn shr(&mut self, a: Operand, by: i64) -> RegId {
        let dst = self.register(ScalarType::U32);
        self.emit(BitsOp::Shr { ty: ScalarType::U32, dst, a, b: int(by) });
        dst
    }

    pub(crate) fn compare(&mut self, cmp: Compare, ty: ScalarType, a: Operand, b: Operand) -> RegId {
        let p = self.register(ScalarType::Pred);
        self.emit(CompareOp::Setp { cmp, combine: None, ftz: false, ty, p: Some(p), q: None, a, b });
        p
    }

    pub(crate) fn branch(&mut self, target: LabelId) {
        self.emit(ControlOp::Bra { uni: false, target });
    }

    pub(crate) fn branch_if(&mut self, reg: RegId, negated: bool, target: LabelId) {
        self.emit_if(Some(Guard { reg, negated }), ControlOp::Bra { uni: false, target });
    }

    pub(crate) fn ret(&mut self) {
        self.emit(ControlOp::Ret { uni: false });
    }

    /// All threads of the block wait for each other; what they wrote before is seen by all after.
    pub(crate) fn barrier(&mut self) {
        self.emit(SyncOp::Barrier {
            kind: BarrierKind::Sync,
            aligned: false,
            id: int(STEP_BARRIER),
            threads: None,
        });
        // What follows may have barriers that want whole warps.
        self.emit(SyncOp::WarpBarrier { mask: int(0xffff_ffff) });
    }

    pub(crate) fn grid_dependency(&mut self, action: GridDep) {
        self.require(Version { major: 7, minor: 8 }, 90);
        self.emit(ControlOp::GridDepControl { action });
    }

    pub(crate) fn load(&mut self, space: Space, order: Order, ty: ScalarType, addr: Address) -> RegId {
        let dst = self.register(ty);
        let access = Box::new(access(space, order, addr));
        self.emit(MemoryOp::Ld { ty, dsts: smallvec![Some(dst)], access });
        dst
    }

    pub(crate) fn load_param(&mut self, ty: ScalarType, offset: u64) -> RegId {
        self.load(Space::Param, Order::Weak, ty, param_address(offset))
    }

    pub(crate) fn store(
        &mut self,
        guard: Option<Guard>,
        space: Space,
        ty: ScalarType,
        addr: Address,
        src: Operand,
    ) {
        let access = Box::new(access(space, Order::Weak, addr));
        self.emit_if(guard, MemoryOp::St { ty, srcs: smallvec![src], access });
    }

    /// `a · by + plus`, in 64 bits.
    pub(crate) fn mul_add_wide(&mut self, a: Operand, by: u64, plus: RegId) -> RegId {
        let dst = self.register(ScalarType::U64);
        self.emit(IntOp::Mad {
            mode: MulMode::Wide,
            ty: ScalarType::U32,
            sat: false,
            dst,
            a,
            b: int(by as i64),
            c: plus.into(),
        });
        dst
    }

    // Shared memory.

    fn arena(&mut self) -> LocalVarId {
        *self.arena.get_or_insert_with(|| {
            let id = LocalVarId(self.body.locals.len() as u32);
            self.body.locals.push(bytes("shared_by_steps".into(), VarSpace::Shared, 1, 1));
            id
        })
    }

    /// The word in shared memory that holds the one condition.
    pub(crate) fn condition_word(&mut self) -> SymbolId {
        if let Some(id) = self.condition_word {
            return id;
        }
        let mut word = bytes("condition_word".into(), VarSpace::Shared, 4, 4);
        (word.ty, word.dims) = (ScalarType::U32, Vec::new());
        let id = self.declare(Symbol::Variable(word));
        self.declared.push(Item::Declare(id));
        self.condition_word = Some(id);
        id
    }

    fn declare(&mut self, symbol: Symbol) -> SymbolId {
        let id = SymbolId(self.symbols.len() as u32);
        self.symbols.push(symbol);
        id
    }

    fn dynamic_shared(&mut self, variable: &Variable) -> SymbolId {
        let id = match self.dynamic_shared {
            Some(id) => id,
            None => {
                let mut whole = bytes("dynamic_shared".into(), VarSpace::Shared, 0, 16);
                (whole.dims, whole.linkage) = (vec![None], Linkage::Extern);
                let id = self.declare(Symbol::Variable(whole));
                // Behind nothing: others refer to it.
                self.declared.insert(0, Item::Declare(id));
                self.dynamic_shared = Some(id);
                id
            }
        };
        if let Symbol::Variable(whole) = &mut self.symbols[id.index()] {
            let align = variable.alignment().max(u64::from(whole.align.unwrap_or(16)));
            whole.align = Some(align as u32);
        }
        id
    }

    // Functions and tables of other modules.

    /// The function that sets conditions.
    fn condition_setter(&mut self) -> SymbolId {
        if let Some(id) = self.condition_setter {
            return id;
        }
        let word = (self.conditions == Conditions::Shared).then(|| self.condition_word());
        let name = if self.conditions == Conditions::Device { SET_CONDITION } else { "set_condition" };
        let mut function = condition_setter(name);
        match self.conditions {
            Conditions::Device => function.linkage = Linkage::Extern,
            Conditions::Shared | Conditions::Memory => {
                let mut body = Body::default();
                let span = Span::default();
                let handle = body.registers.declare("%handle", None, ScalarType::B64, span).expect("few");
                let value = body.registers.declare("%value", None, ScalarType::B32, span).expect("few");
                let param =
                    |index| Address { base: AddressBase::Var(VarRef::Param(ParamId(index))), offset: 0 };
                let mut emit = |op: Op| {
                    body.instructions.push(Instruction { guard: None, op, location: None, span });
                };
                let load = |ty, dst, index| MemoryOp::Ld {
                    ty,
                    dsts: smallvec![Some(dst)],
                    access: Box::new(access(Space::Param, Order::Weak, param(index))),
                };
                emit(load(ScalarType::B64, handle, 0).into());
                emit(load(ScalarType::B32, value, 1).into());
                let (space, base) = match word {
                    Some(word) => (Space::Shared, AddressBase::Var(VarRef::Symbol(word))),
                    None => (Space::Global, AddressBase::Reg(handle)),
                };
                let access = Box::new(access(space, Order::Weak, Address { base, offset: 0 }));
                emit(MemoryOp::St { ty: ScalarType::B32, srcs: smallvec![value.into()], access }.into());
                emit(ControlOp::Ret { uni: false }.into());
                function.body = Some(Box::new(body));
            }
        }
        let defined = function.body.is_some();
        let id = self.declare(Symbol::Function(Box::new(function)));
        self.declared.push(Item::Declare(id));
        if defined {
            self.defined.push(Item::Define(id));
        }
        self.condition_setter = Some(id);
        id
    }

    /// Brings what a kernel calls and reads into the module.
    fn link(&mut self, source: &KernelSource) -> Result<(), Refusal> {
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
                let mut failed = None;
                instruction.for_each_name_mut(&mut |place| {
                    let result = match place {
                        PlaceMut::Function(id) => self.linked_function(&module, id),
                        PlaceMut::Src(Operand::Address { base: VarRef::Symbol(id), .. })
                        | PlaceMut::Var(VarRef::Symbol(id)) => self.linked_symbol(key, id),
                        PlaceMut::Addr(Address { base: AddressBase::Var(VarRef::Symbol(id)), .. }) => {
                            self.linked_symbol(key, id)
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

    fn linked_function(&mut self, module: &Arc<Module>, id: &mut SymbolId) -> Result<(), Refusal> {
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
            // Only a kernel that stays whole calls it.
            let mut declared = function.clone();
            declared.span = Span::default();
            let new = self.declare(Symbol::Function(Box::new(declared)));
            self.declared.push(Item::Declare(new));
            self.linked.insert((key, *id), new);
            *id = new;
            return Ok(());
        }
        // An alias: what it stands for was linked.
        let stands_for = self.linked.iter().find_map(|(&(of, old), &new)| {
            (of == key && module.function(old).is_some_and(|other| std::ptr::eq(other, function)))
                .then_some(new)
        });
        *id = stands_for.ok_or_else(|| format!("the function {} was not linked", function.name))?;
        Ok(())
    }

    fn linked_symbol(&mut self, key: usize, id: &mut SymbolId) -> Result<(), Refusal> {
        *id = *self.linked.get(&(key, *id)).ok_or("a variable of the module was not linked")?;
        Ok(())
    }

    // Kernels.

    /// Appends the code of a kernel.
    pub(crate) fn inline(&mut self, source: &KernelSource, how: Inlining) -> Result<(), Refusal> {
        self.link(source)?;
        let number = self.inlined;
        self.inlined += 1;
        let body = source.body();
        let first_register = self.body.registers.len() as u32;
        for (at, group) in body.registers.groups().iter().enumerate() {
            let name = format!("%k{number}_{at}_");
            self.body
                .registers
                .declare(&name, Some(group.count()), group.ty, Span::default())
                .ok_or("too many registers")?;
        }
        let mut places = Places::default();
        let mut static_shared = 0;
        for local in &body.locals {
            let place = match local.space {
                VarSpace::Shared if local.is_unsized() => {
                    VarPlace::at(VarRef::Symbol(self.dynamic_shared(local)))
                }
                VarSpace::Shared => self.in_arena(local, &mut static_shared),
                _ => {
                    let id = LocalVarId(self.body.locals.len() as u32);
                    let name = format!("k{number}_{}", local.name);
                    self.body.locals.push(Variable { name, span: Span::default(), ..local.clone() });
                    VarPlace::at(VarRef::Local(id))
                }
            };
            places.locals.push(place);
        }
        let first_label = self.body.labels.len() as u32;
        for label in &body.labels {
            let name = format!("$k{number}_{}", label.name.trim_start_matches('$'));
            self.body.labels.push(Label { name, target: u32::MAX, span: Span::default() });
        }
        let first_table = self.body.branch_tables.len() as u32;
        for table in &body.branch_tables {
            let targets = table.targets.iter().map(|label| LabelId(label.0 + first_label)).collect();
            let name = format!("$k{number}_{}", table.name.trim_start_matches('$'));
            self.body.branch_tables.push(BranchTable { name, targets, span: Span::default() });
        }
        let block = how.threads.map(|threads| {
            let one = self.mov(ScalarType::U32, int(1));
            [self.mov(ScalarType::U32, int(threads.into())), one, one]
        });
        let mut starts = Vec::with_capacity(body.instructions.len() + 1);
        let last = body.instructions.len().saturating_sub(1);
        for (at, original) in body.instructions.iter().enumerate() {
            starts.push(self.body.instructions.len() as u32);
            let mut instruction = Instruction { location: None, span: Span::default(), ..original.clone() };
            if let Op::Control(ControlOp::Ret { .. } | ControlOp::Exit) = instruction.op {
                match how.after {
                    AfterReturn::Ends => instruction.op = ControlOp::Ret { uni: false }.into(),
                    AfterReturn::GoesOn(_) if at == last => continue,
                    AfterReturn::GoesOn(target) => {
                        instruction.op = ControlOp::Bra { uni: false, target }.into();
                    }
                }
                if let Some(guard) = &mut instruction.guard {
                    guard.reg.0 += first_register;
                }
                self.body.instructions.push(instruction);
                continue;
            }
            self.adjust(&mut instruction.op, how);
            let mut failed = None;
            let mut before = Vec::new();
            instruction.for_each_name_mut(&mut |place| {
                let result = match place {
                    PlaceMut::Def(reg) | PlaceMut::Use(reg) => {
                        reg.0 += first_register;
                        Ok(())
                    }
                    PlaceMut::Pred(gridloom_ptx::PredOperand::Reg { reg, .. }) => {
                        reg.0 += first_register;
                        Ok(())
                    }
                    PlaceMut::Pred(_) => Ok(()),
                    PlaceMut::Label(label) => {
                        label.0 += first_label;
                        Ok(())
                    }
                    PlaceMut::BranchTable(table) => {
                        *table = BranchTableId(table.0 + first_table);
                        Ok(())
                    }
                    PlaceMut::Function(id) => self.linked_function(source.module(), id),
                    PlaceMut::CallTable(_) | PlaceMut::Prototype(_) => Err("an indirect call".into()),
                    PlaceMut::Src(operand) => self.operand(
                        operand,
                        source,
                        &mut places,
                        &mut static_shared,
                        how,
                        block,
                        &mut before,
                        first_register,
                    ),
                    PlaceMut::Addr(address) => {
                        self.address(address, source, &mut places, &mut static_shared, how, first_register)
                    }
                    PlaceMut::Var(var) => {
                        match self.variable(*var, source, &mut places, &mut static_shared) {
                            Ok(VarPlace { var: new, offset: 0 }) => {
                                *var = new;
                                Ok(())
                            }
                            _ => Err("a call passes what is no variable of its own".into()),
                        }
                    }
                };
                failed = failed.take().or(result.err());
            });
            if let Some(failed) = failed {
                return Err(failed);
            }
            self.body.instructions.append(&mut before);
            self.body.instructions.push(instruction);
        }
        starts.push(self.body.instructions.len() as u32);
        for (at, label) in body.labels.iter().enumerate() {
            self.body.labels[first_label as usize + at].target = starts[label.target as usize];
        }
        self.arena_bytes = self.arena_bytes.max(static_shared);
        if how.coherent && source.facts().async_copies {
            // The end of a kernel waits for the copies that it started.
            self.emit(MemoryOp::CpAsyncWaitAll);
        }
        Ok(())
    }

    /// Changes what an instruction means where its kernel is not alone any more.
    fn adjust(&mut self, op: &mut Op, how: Inlining) {
        match op {
            Op::Memory(MemoryOp::Ld { access, .. }) if how.coherent => access.nc = false,
            Op::Memory(MemoryOp::Ldu { space, ty, dsts, addr }) if how.coherent => {
                let access = Box::new(access(*space, Order::Weak, *addr));
                *op = MemoryOp::Ld { ty: *ty, dsts: std::mem::take(dsts), access }.into();
            }
            Op::Sync(SyncOp::Barrier { threads: threads @ None, .. }) => {
                *threads = how.threads.map(|threads| int(threads.into()));
            }
            _ => {}
        }
    }

    fn in_arena(&mut self, variable: &Variable, used: &mut u64) -> VarPlace {
        let arena = self.arena();
        let align = variable.alignment().max(1);
        let offset = used.next_multiple_of(align);
        *used = offset + variable.size();
        self.arena_align = self.arena_align.max(align);
        VarPlace { var: VarRef::Local(arena), offset: offset as i64 }
    }

    fn variable(
        &mut self,
        var: VarRef,
        source: &KernelSource,
        places: &mut Places,
        static_shared: &mut u64,
    ) -> Result<VarPlace, Refusal> {
        match var {
            VarRef::Local(id) => Ok(places.locals[id.index()]),
            VarRef::Symbol(id) => {
                if let Some(place) = places.symbols.get(&id) {
                    return Ok(*place);
                }
                let module = source.module();
                let place = match module.variable(id) {
                    Some(variable) if variable.space == VarSpace::Shared && variable.is_unsized() => {
                        VarPlace::at(VarRef::Symbol(self.dynamic_shared(variable)))
                    }
                    Some(variable) if variable.space == VarSpace::Shared => {
                        self.in_arena(variable, static_shared)
                    }
                    _ => {
                        let mut linked = id;
                        self.linked_symbol(Arc::as_ptr(module) as usize, &mut linked)?;
                        VarPlace::at(VarRef::Symbol(linked))
                    }
                };
                places.symbols.insert(id, place);
                Ok(place)
            }
            VarRef::Param(_) | VarRef::Return(_) => Err("a parameter where none can be".into()),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call, and all of it is about one operand")]
    fn operand(
        &mut self,
        operand: &mut Operand,
        source: &KernelSource,
        places: &mut Places,
        static_shared: &mut u64,
        how: Inlining,
        block: Option<[RegId; 3]>,
        before: &mut Vec<Instruction>,
        first_register: u32,
    ) -> Result<(), Refusal> {
        match operand {
            Operand::Reg(reg) => reg.0 += first_register,
            Operand::Imm(_) => {}
            Operand::Special(SpecialReg::Dim(special, dim)) => {
                let at = *dim as usize;
                let register = match (special, how.index, block) {
                    (DimSpecial::CtaId, BlockIndex::Registers { index, .. }, _) => Some(index[at]),
                    (DimSpecial::NCtaId, BlockIndex::Registers { count, .. }, _) => Some(count[at]),
                    (DimSpecial::NTid, _, Some(block)) => Some(block[at]),
                    _ => None,
                };
                if let Some(register) = register {
                    *operand = register.into();
                }
            }
            Operand::Special(_) => {}
            Operand::Address { base: VarRef::Param(id), offset } => {
                let inside = source.function().params[id.index()].offset as i64 + *offset;
                match how.params {
                    ParamsAt::Offset(at) => {
                        *operand =
                            Operand::Address { base: VarRef::Param(ParamId(0)), offset: at as i64 + inside };
                    }
                    ParamsAt::Register(base) => {
                        let dst = self.register(ScalarType::U64);
                        let op = IntOp::Arith {
                            op: IntArith::Add,
                            ty: ScalarType::U64,
                            sat: false,
                            relu: false,
                            dst,
                            a: base.into(),
                            b: int(inside),
                        };
                        before.push(Instruction {
                            guard: None,
                            op: op.into(),
                            location: None,
                            span: Span::default(),
                        });
                        *operand = dst.into();
                    }
                }
            }
            Operand::Address { base, offset } => {
                let place = self.variable(*base, source, places, static_shared)?;
                (*base, *offset) = (place.var, *offset + place.offset);
            }
        }
        Ok(())
    }

    fn address(
        &mut self,
        address: &mut Address,
        source: &KernelSource,
        places: &mut Places,
        static_shared: &mut u64,
        how: Inlining,
        first_register: u32,
    ) -> Result<(), Refusal> {
        match &mut address.base {
            AddressBase::Reg(reg) => reg.0 += first_register,
            AddressBase::Absolute => {}
            AddressBase::Var(VarRef::Param(id)) => {
                let inside = source.function().params[id.index()].offset as i64 + address.offset;
                *address = match how.params {
                    ParamsAt::Offset(at) => param_address(at.wrapping_add_signed(inside)),
                    ParamsAt::Register(base) => Address { base: AddressBase::Reg(base), offset: inside },
                };
            }
            AddressBase::Var(var) => {
                let place = self.variable(*var, source, places, static_shared)?;
                (*var, address.offset) = (place.var, address.offset + place.offset);
            }
        }
        Ok(())
    }

    /// The module, with a kernel of this name, of blocks of this shape, whose one parameter has so many bytes.
    pub(crate) fn finish(
        mut self,
        name: &str,
        block: [u32; 3],
        params: u64,
        align: u64,
    ) -> Result<Module, Refusal> {
        if params > SMALL_PARAMETERS {
            self.require(Version { major: 8, minor: 1 }, 70);
        }
        if let Some(arena) = self.arena {
            let variable = &mut self.body.locals[arena.index()];
            variable.dims = vec![Some(self.arena_bytes.max(1))];
            variable.align = Some(self.arena_align.max(4) as u32);
        }
        let var = bytes("parameters".into(), VarSpace::Param, params.max(1), align as u32);
        let function = Function {
            name: name.into(),
            kind: FunctionKind::Entry,
            linkage: Linkage::Visible,
            attributes: Vec::new(),
            returns: Vec::new(),
            params: vec![Param { var, pointer: None, register: None, offset: 0 }],
            directives: Directives { maxntid: Some(block), ..Directives::default() },
            body: Some(Box::new(std::mem::take(&mut self.body))),
            alias_of: None,
            span: Span::default(),
        };
        self.finish_with(function)
    }

    /// The module with this kernel, whose body is what was put together where it has none.
    fn finish_with(mut self, function: Function) -> Result<Module, Refusal> {
        let entry = self.declare(Symbol::Function(Box::new(function)));
        let mut items = self.declared;
        items.append(&mut self.defined);
        items.push(Item::Define(entry));
        let module = Module {
            version: self.version,
            target: Target { words: vec![self.target.1] },
            address_size: 64,
            symbols: self.symbols,
            items,
            files: Vec::new(),
            sections: Vec::new(),
            source: Source::default(),
        };
        // Every name was unique by construction and every type came from code that was checked; if not, the kernels stay as they were.
        match gridloom_ptx::check(&module).first() {
            None => Ok(module),
            Some(wrong) => Err(format!("the rewritten kernel does not check: {}", wrong.message)),
        }
    }

    /// The module with a copy of a kernel that has the instructions put together so far before its own, one more parameter of 8 bytes if
    /// `parameter`, and no loads that bypass the coherent caches.
    pub(crate) fn finish_prefixed(
        mut self,
        source: &KernelSource,
        prefix: impl FnOnce(&mut Assembly, Option<ParamId>),
        parameter: bool,
    ) -> Result<Module, Refusal> {
        self.link(source)?;
        let key = Arc::as_ptr(source.module()) as usize;
        let mut function = source.function().clone();
        function.span = Span::default();
        function.linkage = Linkage::Visible;
        let mut body = function.body.take().ok_or("a kernel without a body")?;
        body.locations.clear();
        let mut added = None;
        if parameter {
            let id = ParamId(function.params.len() as u32);
            let offset = function.param_bytes().next_multiple_of(8);
            let mut var = bytes("decision_address".into(), VarSpace::Param, 8, 8);
            (var.ty, var.dims, var.align) = (ScalarType::U64, Vec::new(), None);
            function.params.push(Param { var, pointer: None, register: None, offset });
            added = Some(id);
        }
        // Symbols that the body names become those of this module.
        for instruction in &mut body.instructions {
            instruction.location = None;
            instruction.span = Span::default();
            match &mut instruction.op {
                Op::Memory(MemoryOp::Ld { access, .. }) => access.nc = false,
                Op::Memory(MemoryOp::Ldu { space, ty, dsts, addr }) => {
                    let access = Box::new(access(*space, Order::Weak, *addr));
                    instruction.op = MemoryOp::Ld { ty: *ty, dsts: std::mem::take(dsts), access }.into();
                }
                _ => {}
            }
            let mut failed = None;
            instruction.for_each_name_mut(&mut |place| {
                let result = match place {
                    PlaceMut::Function(id) => self.linked_function(source.module(), id),
                    PlaceMut::Src(Operand::Address { base: VarRef::Symbol(id), .. })
                    | PlaceMut::Var(VarRef::Symbol(id))
                    | PlaceMut::Addr(Address { base: AddressBase::Var(VarRef::Symbol(id)), .. }) => {
                        self.module_symbol(source.module(), key, id)
                    }
                    _ => Ok(()),
                };
                failed = failed.take().or(result.err());
            });
            if let Some(failed) = failed {
                return Err(failed);
            }
        }
        // The prefix is written with the body's registers in place, so that its own come after them.
        let instructions = std::mem::take(&mut body.instructions);
        self.body = *body;
        let first_label = self.body.labels.len();
        prefix(&mut self, added);
        let shift = self.body.instructions.len() as u32;
        for label in &mut self.body.labels[..first_label] {
            label.target += shift;
        }
        for pragma in &mut self.body.pragmas {
            pragma.at += shift;
        }
        self.body.instructions.extend(instructions);
        function.body = Some(Box::new(std::mem::take(&mut self.body)));
        self.finish_with(function)
    }

    /// A variable of the module of a kernel that stays whole.
    fn module_symbol(&mut self, module: &Module, key: usize, id: &mut SymbolId) -> Result<(), Refusal> {
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

/// Where variables of an inlined kernel went.
#[derive(Default)]
struct Places {
    locals: Vec<VarPlace>,
    symbols: FxHashMap<SymbolId, VarPlace>,
}

/// A variable, or a part of one.
#[derive(Clone, Copy)]
struct VarPlace {
    var: VarRef,
    offset: i64,
}

impl VarPlace {
    fn at(var: VarRef) -> Self {
        VarPlace { var, offset: 0 }
    }
}

/// An integer constant.
pub(crate) fn int(value: i64) -> Operand {
    Operand::Imm(Imm::Int(value))
}

/// `%tid.x` and the like.
pub(crate) fn special(special: DimSpecial, dim: Dim) -> Operand {
    Operand::Special(SpecialReg::Dim(special, dim))
}

pub(crate) fn at(reg: RegId, offset: i64) -> Address {
    Address { base: AddressBase::Reg(reg), offset }
}

fn param_address(offset: u64) -> Address {
    Address { base: AddressBase::Var(VarRef::Param(ParamId(0))), offset: offset as i64 }
}

fn access(space: Space, order: Order, addr: Address) -> Access {
    Access {
        space,
        order,
        scope: None,
        nc: false,
        cache: None,
        eviction: None,
        l2_eviction: None,
        prefetch: None,
        policy: None,
        unified: false,
        addr,
    }
}

/// An array of bytes.
fn bytes(name: String, space: VarSpace, size: u64, align: u32) -> Variable {
    Variable {
        name,
        linkage: Linkage::Internal,
        space,
        align: Some(align),
        ty: ScalarType::B8,
        vector: 1,
        dims: vec![Some(size)],
        init: None,
        attributes: Vec::new(),
        span: Span::default(),
    }
}

/// The declaration of a function that takes a handle and a value.
fn condition_setter(name: &str) -> Function {
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
