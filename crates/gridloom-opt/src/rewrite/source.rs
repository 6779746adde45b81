//! A kernel as PTX, and the obstacles to moving its code.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use gridloom_ptx::op::{
    BarrierKind, CallTarget, ControlOp, ConvertOp, MemoryOp, Op, RawToken, SyncOp, WarpOp,
};
use gridloom_ptx::{
    Address, AddressBase, Body, DimSpecial, Function, Imm, Linkage, Module, Operand, PlainSpecial, Space,
    SpecialReg, Symbol, SymbolId, VarRef, VarSpace, Variable,
};
use rustc_hash::FxHashSet;

use super::calls::{is_recursive, meeting_inside};
use super::flow;
use super::meetings::{Meeting, leaves_others_waiting};
use super::stops::{ASSERTION, Stops, constants};
use super::uniformity::Known;

/// The function by which kernels set conditions.
pub(crate) const SET_CONDITION: &str = "cudaGraphSetConditional";

/// The role of a kernel in a rewritten one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Its blocks are some of the blocks of a larger launch.
    Batched,
    /// It is one of several steps of one block, with other steps before or after it.
    Step,
    /// It stays a launch of its own, with instructions put before its first.
    Prefixed,
}

/// The barrier between steps. Threads without a part in a step wait there while the others use the
/// step's own barriers.
pub(crate) const STEP_BARRIER: i64 = 15;

/// The reason why a kernel is no step if its threads rely on others having returned.
const LEAVES_OTHERS_WAITING: &str =
    "threads may return while others of their block still meet, and would then be waited for";

/// The reason why a kernel stays in its own blocks if it may stop the launch.
const MAY_STOP: &str = "it may stop the launch, and the report of that names the block";

/// The most instructions of a kernel that is moved, including the functions it calls.
const MAX_INSTRUCTIONS: usize = 4000;

/// A kernel of a PTX module, with what is known about its code.
#[derive(Clone)]
pub struct KernelSource {
    module: Arc<Module>,
    entry: SymbolId,
    facts: Arc<Facts>,
}

/// What is known about the code of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The functions that it calls, directly or indirectly, each once.
    pub(crate) functions: Vec<SymbolId>,
    /// Constant tables that it reads, and the texts of its assertions.
    pub(crate) tables: Vec<SymbolId>,
    /// The functions that always stop the launch.
    pub(crate) stops: Stops,
    /// Whether it may stop the launch. The report of that may name the block and the thread.
    pub(crate) may_stop: bool,
    /// Whether threads of a block synchronise in it: block barriers or warp operations.
    pub(crate) meets: bool,
    /// Whether its threads wait for each other only where all come, if the threads of each warp are
    /// consecutive along x. In blocks of other shapes it cannot be a step.
    pub(crate) needs_warps_along_x: bool,
    /// Whether it has dynamic shared memory.
    pub(crate) dynamic_shared: bool,
    /// Whether it has shared memory of any kind.
    pub(crate) shared: bool,
    /// Whether it sets conditions.
    pub(crate) sets_conditions: bool,
    /// Whether it starts asynchronous copies that it may leave unfinished.
    pub(crate) async_copies: bool,
    /// Whether a function that it calls reads the size of a block.
    pub(crate) callee_reads_block: bool,
    /// Whether a function that it calls reads the index of a thread or block, or the number of
    /// blocks.
    pub(crate) callee_reads_place: bool,
    /// Whether a function that it calls has barriers of the whole block.
    pub(crate) callee_has_barriers: bool,
    /// The largest number of a barrier that it uses.
    pub(crate) last_barrier: Option<i64>,
    /// The number of instructions, including those of called functions.
    pub(crate) instructions: usize,
    /// Whether it has instructions that are not known here, which may read memory in other ways
    /// than loads.
    pub(crate) has_unknown: bool,
    /// The obstacles, and the roles they exclude.
    obstacles: Vec<(Reach, String)>,
}

/// The roles that an obstacle excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Every,
    /// Those in which its code becomes part of another kernel.
    Moved,
    Steps,
    Batches,
}

impl Reach {
    fn covers(self, role: Role) -> bool {
        match self {
            Reach::Every => true,
            Reach::Moved => role != Role::Prefixed,
            Reach::Steps => role == Role::Step,
            Reach::Batches => role == Role::Batched,
        }
    }
}

impl KernelSource {
    /// Returns the kernel named `name`, or `None` where the module has no such kernel.
    #[must_use]
    pub fn new(module: Arc<Module>, name: &str) -> Option<Self> {
        let (entry, _) = module.entry(name)?;
        let facts = Arc::new(Facts::of(&module, entry));
        Some(KernelSource { module, entry, facts })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.module.name_of(self.entry)
    }

    /// Returns why it cannot take this role, or `None` if it can.
    #[must_use]
    pub fn obstacle(&self, role: Role) -> Option<&str> {
        self.facts.obstacles.iter().find(|(reach, _)| reach.covers(role)).map(|(_, reason)| reason.as_str())
    }

    /// Returns whether all that it reads from memory, it reads with loads that see what was written
    /// before `griddepcontrol.wait`. Textures and the like have caches of their own.
    #[must_use]
    pub fn can_start_early(&self) -> bool {
        !self.facts.has_unknown
    }

    /// Returns whether it sets conditions.
    #[must_use]
    pub fn sets_conditions(&self) -> bool {
        self.facts.sets_conditions
    }

    /// Returns whether threads of a block synchronise in it.
    #[must_use]
    pub fn meets(&self) -> bool {
        self.facts.meets
    }

    /// Returns whether the threads of a block synchronise in it or share memory.
    pub(crate) fn shares_block(&self) -> bool {
        self.facts.meets || self.facts.shared
    }

    /// Returns the number of instructions, including those of called functions.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.facts.instructions
    }

    /// Returns whether each thread runs at most this many instructions, one after the other: the
    /// kernel has no loops, no calls and no meetings of threads.
    #[must_use]
    pub fn is_short(&self, instructions: usize) -> bool {
        self.facts.instructions <= instructions
            && !self.facts.meets
            && !self.has_calls()
            && !flow::has_loop(self.body())
    }

    /// Returns whether each thread runs at most this many instructions, one after the other, and
    /// waits at most for others of its block: the kernel has no loops and no calls.
    #[must_use]
    pub fn is_light(&self, instructions: usize) -> bool {
        self.facts.instructions <= instructions && !self.has_calls() && !flow::has_loop(self.body())
    }

    /// Returns why its blocks keep their numbers, in launches of this grid and block, with so many
    /// slots in each block of the new kernel. Returns `None` if they need not.
    pub(crate) fn obstacle_to_other_numbers(
        &self,
        (grid, block): ([u32; 3], [u32; 3]),
        slots: u32,
    ) -> Option<&'static str> {
        let keeps = slots == 1 && grid[1..] == [1, 1] && block[1..] == [1, 1];
        (self.facts.may_stop && !keeps).then_some(MAY_STOP)
    }

    /// Returns whether it calls functions that return.
    pub(crate) fn has_calls(&self) -> bool {
        self.facts.functions.iter().any(|&id| !self.facts.stops.has(id))
    }

    /// Returns how many barriers of a block it uses, numbered from 0.
    pub(crate) fn barriers(&self) -> u32 {
        self.facts.last_barrier.map_or(0, |last| u32::try_from(last + 1).unwrap_or(u32::MAX))
    }

    /// Returns the size of its parameters in bytes.
    #[must_use]
    pub fn param_bytes(&self) -> u64 {
        self.function().param_bytes()
    }

    /// Returns the offset and size of each of its parameters.
    #[must_use]
    pub fn layout(&self) -> Vec<(u64, u64)> {
        self.function().params.iter().map(|param| (param.offset, param.var.size())).collect()
    }

    /// Returns the largest alignment of its parameters.
    pub(crate) fn param_align(&self) -> u64 {
        self.function().params.iter().map(|param| param.var.alignment()).max().unwrap_or(1)
    }

    /// Returns whether both are the same kernel of the same module.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.module, &other.module) && self.entry == other.entry
    }

    /// Returns its identity, which does not keep the module alive.
    pub(crate) fn id(&self) -> SourceId {
        SourceId { module: Arc::downgrade(&self.module), entry: self.entry }
    }

    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn function(&self) -> &Function {
        self.module.function(self.entry).expect("a kernel of this module")
    }

    pub(crate) fn body(&self) -> &Body {
        self.function().body.as_ref().expect("an entry has a body")
    }

    /// Returns why it cannot be a step in blocks of this shape, or `None` if it can.
    pub(crate) fn obstacle_in_block(&self, block: [u32; 3]) -> Option<&str> {
        let warps_along_x = block[0].is_multiple_of(32) || block[1..] == [1, 1];
        (self.facts.needs_warps_along_x && !warps_along_x).then_some(LEAVES_OTHERS_WAITING)
    }

    /// Returns why it cannot run in a step of `threads` threads of a block, or `None` if it can.
    pub(crate) fn obstacle_in_part_of_block(&self, threads: u32) -> Option<String> {
        if self.facts.callee_reads_block {
            return Some("a function that it calls reads the size of the block".into());
        }
        if self.facts.callee_has_barriers {
            return Some("a function that it calls has barriers of the whole block".into());
        }
        (self.facts.meets && !threads.is_multiple_of(32))
            .then(|| format!("its threads meet, and {threads} of them are no whole number of warps"))
    }
}

impl KernelSource {
    /// Returns why its blocks cannot run at other places of a grid, as blocks of `threads` threads
    /// next to each other, `slots` in each block of the new kernel. Returns `None` if they can.
    pub(crate) fn obstacle_at_other_places(&self, threads: u32, slots: u32) -> Option<String> {
        if self.facts.callee_reads_place {
            return Some("a function that it calls reads the index of its thread or block".into());
        }
        if let Some(reason) = self.obstacle_in_part_of_block(threads) {
            return Some(reason);
        }
        let barriers = self.facts.last_barrier.map_or(0, |last| (last + 1) * i64::from(slots));
        (barriers > STEP_BARRIER)
            .then(|| format!("{slots} of its blocks need {barriers} barriers, and there are {STEP_BARRIER}"))
    }
}

/// The identity of a kernel of a parsed module.
///
/// The address of a module is not used again while there is a weak reference to it, so two
/// identities are equal only if they are of the same module.
#[derive(Clone, Debug)]
pub(crate) struct SourceId {
    module: Weak<Module>,
    entry: SymbolId,
}

impl SourceId {
    /// Returns the module and the kernel in it, if somebody still has the module.
    pub(crate) fn get(&self) -> Option<(Arc<Module>, SymbolId)> {
        Some((self.module.upgrade()?, self.entry))
    }
}

impl PartialEq for SourceId {
    fn eq(&self, other: &Self) -> bool {
        self.module.ptr_eq(&other.module) && self.entry == other.entry
    }
}

impl Eq for SourceId {}

impl Hash for SourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.module.as_ptr().hash(state);
        self.entry.hash(state);
    }
}

impl fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelSource({})", self.name())
    }
}

impl Facts {
    fn of(module: &Module, entry: SymbolId) -> Self {
        let mut facts = Facts::default();
        let Some(function) = module.function(entry) else { return facts };
        let Some(body) = &function.body else { return facts };
        facts.directives(function);
        let mut search = Search {
            module,
            facts: &mut facts,
            seen: FxHashSet::default(),
            open: Vec::new(),
            constants: None,
        };
        search.body(body, true);
        while let Some(id) = search.open.pop() {
            search.callee(id);
        }
        facts.stops = Stops::among(module, &facts.functions);
        if is_recursive(module, body, &mut Vec::new(), &mut FxHashSet::default()) {
            // How much of the stack there is depends on the limit that was set for the kernel
            // alone.
            facts.hinder(Reach::Moved, "a function that it calls calls itself");
        }
        if facts.instructions > MAX_INSTRUCTIONS {
            let message = format!("it has {} instructions, more than {MAX_INSTRUCTIONS}", facts.instructions);
            facts.hinder(Reach::Moved, message);
        } else if facts.meets {
            facts.find_meetings(module, body);
        }
        facts
    }

    /// Finds out whether threads may wait for others that have returned.
    fn find_meetings(&mut self, module: &Module, entry: &Body) {
        let meeting = |op: &Op| match op {
            Op::Control(ControlOp::Call { target: CallTarget::Direct(id), .. }) => {
                meeting_inside(module, *id, &mut FxHashSet::default())
            }
            op => Meeting::of(op),
        };
        let leaves = |warps_along_x: bool| {
            let called = self.functions.iter().filter_map(|&id| module.function(id)?.body.as_deref());
            let bodies = called.map(|body| (body, false)).chain([(entry, true)]);
            let known = |is_entry| Known { warps_along_x, is_entry };
            let leaves = |body, is_entry| leaves_others_waiting(body, known(is_entry), &meeting, &self.stops);
            bodies.into_iter().any(|(body, is_entry)| leaves(body, is_entry))
        };
        if leaves(true) {
            self.hinder(Reach::Steps, LEAVES_OTHERS_WAITING);
        } else {
            self.needs_warps_along_x = leaves(false);
        }
    }

    fn hinder(&mut self, reach: Reach, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.obstacles.contains(&(reach, reason.clone())) {
            self.obstacles.push((reach, reason));
        }
    }

    fn directives(&mut self, function: &Function) {
        let directives = &function.directives;
        if directives.reqnctapercluster.is_some()
            || directives.maxclusterrank.is_some()
            || directives.explicitcluster
            || directives.blocksareclusters
        {
            self.hinder(Reach::Every, "it asks for clusters of its own");
        }
        if let Some((word, _)) = directives.other.first() {
            self.hinder(Reach::Moved, format!("its directive .{word} is not known"));
        }
        if directives.noreturn {
            self.hinder(Reach::Moved, "it is declared .noreturn");
        }
        if !function.attributes.is_empty() {
            self.hinder(Reach::Every, "it has attributes");
        }
    }
}

/// Visits a kernel and the functions that it calls.
struct Search<'a> {
    module: &'a Module,
    facts: &'a mut Facts,
    seen: FxHashSet<SymbolId>,
    /// Called functions that are not visited yet.
    open: Vec<SymbolId>,
    /// The variables that never change, once somebody asked.
    constants: Option<FxHashSet<SymbolId>>,
}

impl Search<'_> {
    fn callee(&mut self, id: SymbolId) {
        if !self.seen.insert(id) {
            return;
        }
        let Some(function) = self.module.function(id) else { return };
        match &function.body {
            Some(body) => {
                self.facts.functions.push(id);
                self.body(body, false);
            }
            None => self.external(&function.name),
        }
    }

    fn external(&mut self, name: &str) {
        match name {
            SET_CONDITION => self.facts.sets_conditions = true,
            "vprintf" => {
                self.facts.hinder(Reach::Moved, "it prints, in an order that moving it would change")
            }
            ASSERTION => self.stop(),
            "malloc" | "free" => self.facts.hinder(Reach::Moved, "it uses the device's heap"),
            name if name.starts_with("cudaLaunch") || name.starts_with("cudaGetParameterBuffer") => {
                self.facts.hinder(Reach::Every, "it launches kernels itself");
            }
            name => {
                self.facts.hinder(Reach::Every, format!("it calls {name}, which its module does not define"))
            }
        }
    }

    fn body(&mut self, body: &Body, is_entry: bool) {
        self.facts.instructions += body.instructions.len();
        for local in &body.locals {
            self.local(local, is_entry);
        }
        if !body.call_tables.is_empty() || !body.prototypes.is_empty() {
            self.facts.hinder(Reach::Every, "it calls functions through pointers");
        }
        for instruction in &body.instructions {
            self.op(&instruction.op, is_entry);
        }
    }

    fn local(&mut self, local: &Variable, is_entry: bool) {
        self.facts.shared |= local.space == VarSpace::Shared;
        match local.space {
            VarSpace::Local | VarSpace::Param | VarSpace::Reg => {}
            VarSpace::Shared if local.is_unsized() => self.facts.dynamic_shared = true,
            VarSpace::Shared if is_entry => {}
            VarSpace::Shared => self.facts.hinder(Reach::Moved, "a function that it calls has shared memory"),
            VarSpace::Global | VarSpace::Const | VarSpace::Tex => {
                self.facts.hinder(Reach::Every, format!("it has the static variable {}", local.name));
            }
        }
    }

    fn symbol(&mut self, id: SymbolId, is_entry: bool) {
        let variable = match self.module.symbols.get(id.index()) {
            Some(Symbol::Variable(variable)) => variable,
            Some(Symbol::Function(function)) => {
                let message = format!("it takes the address of the function {}", function.name);
                return self.facts.hinder(Reach::Every, message);
            }
            None => return,
        };
        self.facts.shared |= variable.space == VarSpace::Shared;
        match variable.space {
            VarSpace::Shared if variable.is_unsized() => {
                self.facts.dynamic_shared = true;
                if !is_entry {
                    let message = "a function that it calls uses shared memory of the module";
                    self.facts.hinder(Reach::Moved, message);
                }
            }
            VarSpace::Shared if is_entry => {}
            VarSpace::Shared => {
                self.facts.hinder(Reach::Moved, "a function that it calls uses shared memory of the module");
            }
            VarSpace::Global
                if self.constants.get_or_insert_with(|| constants(self.module)).contains(&id) =>
            {
                if !self.facts.tables.contains(&id) {
                    self.facts.tables.push(id);
                }
            }
            // The tables of the compiler's own mathematical functions, which are never written.
            VarSpace::Global | VarSpace::Const
                if variable.name.starts_with("__cudart_")
                    && variable.linkage == Linkage::Internal
                    && variable.image().is_some_and(|image| image.relocations.is_empty()) =>
            {
                if !self.facts.tables.contains(&id) {
                    self.facts.tables.push(id);
                }
            }
            _ => {
                let message = format!("it uses {}, a variable of its module", variable.name);
                self.facts.hinder(Reach::Every, message);
            }
        }
    }

    fn op(&mut self, op: &Op, is_entry: bool) {
        op.for_each_operand(&mut |place, _| match place {
            gridloom_ptx::op::OperandRef::Src(Operand::Special(special)) => self.special(*special, is_entry),
            gridloom_ptx::op::OperandRef::Src(Operand::Address { base: VarRef::Symbol(id), .. }) => {
                self.symbol(*id, is_entry);
            }
            gridloom_ptx::op::OperandRef::Addr(address) => {
                if let AddressBase::Var(VarRef::Symbol(id)) = address.base {
                    self.symbol(id, is_entry);
                }
            }
            _ => {}
        });
        self.facts.meets |= Meeting::of(op).is_some();
        match op {
            Op::Control(op) => self.control(op, is_entry),
            Op::Sync(op) => self.sync(op, is_entry),
            Op::Memory(op) => self.memory(op),
            Op::Atomic(op) => {
                let (gridloom_ptx::op::AtomicOp::Atom { rmw, .. } | gridloom_ptx::op::AtomicOp::Red { rmw }) =
                    op;
                self.address(rmw.space, &rmw.addr);
            }
            Op::Convert(ConvertOp::Mapa { .. } | ConvertOp::Getctarank { .. }) => self.cluster(),
            Op::Warp(WarpOp::Shfl { mask: None, .. } | WarpOp::Vote { mask: None, .. }) => {
                self.facts.hinder(Reach::Moved, "it has warp operations of the kind before .sync")
            }
            Op::Unsupported(unsupported) => {
                self.facts.has_unknown = true;
                let message = format!("what {} does is not known here", unsupported.full_name());
                self.facts.hinder(Reach::Moved, message);
                for token in &unsupported.operands {
                    if let RawToken::Var(VarRef::Symbol(id)) = token {
                        self.symbol(*id, is_entry);
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that it may stop the launch. Parts of a batch have blocks of other numbers than the
    /// report of an assertion should name.
    fn stop(&mut self) {
        self.facts.may_stop = true;
        self.facts.hinder(Reach::Batches, MAY_STOP);
    }

    fn cluster(&mut self) {
        self.facts.hinder(Reach::Moved, "it reaches for other blocks of a cluster");
    }

    fn space(&mut self, space: Space) {
        if space == Space::SharedCluster {
            self.cluster();
        }
    }

    fn address(&mut self, space: Space, address: &Address) {
        self.space(space);
        let is_own = !matches!(space, Space::Global | Space::Generic);
        if is_own && matches!(address.base, AddressBase::Absolute) {
            self.facts.hinder(Reach::Moved, "it accesses memory other than global by a fixed address");
        }
    }

    fn special(&mut self, special: SpecialReg, is_entry: bool) {
        use PlainSpecial::*;
        match special {
            SpecialReg::Dim(DimSpecial::Tid, _) => self.facts.callee_reads_place |= !is_entry,
            SpecialReg::Dim(DimSpecial::NTid, _) => self.facts.callee_reads_block |= !is_entry,
            SpecialReg::Dim(DimSpecial::CtaId | DimSpecial::NCtaId, _) => {
                if !is_entry {
                    self.facts.callee_reads_place = true;
                    let message = "a function that it calls reads the index of the block";
                    self.facts.hinder(Reach::Batches, message);
                }
            }
            SpecialReg::Plain(LaneId | LaneMaskEq | LaneMaskLe | LaneMaskLt | LaneMaskGe | LaneMaskGt) => {}
            other => self.facts.hinder(Reach::Moved, format!("it reads {other}")),
        }
    }

    fn control(&mut self, op: &ControlOp, is_entry: bool) {
        match op {
            ControlOp::Call { target: CallTarget::Direct(id), .. } => self.open.push(*id),
            ControlOp::Call { .. } => self.facts.hinder(Reach::Every, "it calls functions through pointers"),
            ControlOp::Exit if !is_entry => {
                self.facts.hinder(Reach::Steps, "a function that it calls ends threads");
            }
            ControlOp::Trap => self.stop(),
            ControlOp::Brkpt => self.facts.hinder(Reach::Moved, "it may stop in a debugger"),
            ControlOp::GridDepControl { .. } => {
                self.facts.hinder(Reach::Every, "it orders itself with griddepcontrol");
            }
            ControlOp::PmEvent { .. } => self.facts.hinder(Reach::Moved, "it triggers performance events"),
            ControlOp::SetMaxNReg { .. } => self.facts.hinder(Reach::Moved, "it changes its registers"),
            ControlOp::Bra { .. }
            | ControlOp::BrxIdx { .. }
            | ControlOp::Ret { .. }
            | ControlOp::Exit
            | ControlOp::Nanosleep { .. } => {}
        }
    }

    fn sync(&mut self, op: &SyncOp, is_entry: bool) {
        if let SyncOp::Barrier { id, .. } = op {
            match id {
                Operand::Imm(Imm::Int(number)) if *number != STEP_BARRIER => {
                    self.facts.last_barrier = self.facts.last_barrier.max(Some(*number));
                }
                _ => self.facts.hinder(
                    Reach::Steps,
                    format!("the numbers of its barriers are not known, or one is {STEP_BARRIER}"),
                ),
            }
            // The code of a called function is shared, so its barriers cannot get a number of
            // threads.
            self.facts.callee_has_barriers |= !is_entry;
        }
        match op {
            SyncOp::ClusterBarrier(_) | SyncOp::FenceMbarrierInit => self.cluster(),
            SyncOp::Mbarrier(_) => {
                self.facts.hinder(Reach::Steps, "it leaves mbarrier objects in shared memory");
            }
            SyncOp::Barrier { kind: BarrierKind::Arrive, .. } => {
                self.facts.hinder(Reach::Steps, "it arrives at barriers without waiting");
            }
            SyncOp::FenceProxy { .. }
            | SyncOp::FenceProxyTensormap { .. }
            | SyncOp::FenceProxyAsyncGeneric { .. } => {
                self.facts.hinder(Reach::Moved, "it orders accesses of other proxies");
            }
            SyncOp::Barrier { .. }
            | SyncOp::WarpBarrier { .. }
            | SyncOp::Membar { .. }
            | SyncOp::Fence { .. } => {}
        }
    }

    fn memory(&mut self, op: &MemoryOp) {
        match op {
            MemoryOp::Ld { access, .. } | MemoryOp::St { access, .. } => {
                self.address(access.space, &access.addr)
            }
            MemoryOp::CpAsync(copy) => {
                self.address(copy.dst_space, &copy.dst);
                self.facts.async_copies = true;
            }
            MemoryOp::Alloca { .. } | MemoryOp::StackSave { .. } | MemoryOp::StackRestore { .. } => {
                self.facts.hinder(Reach::Steps, "it takes memory from the stack as it runs");
            }
            MemoryOp::CpAsyncCommitGroup => self.facts.async_copies = true,
            MemoryOp::CpAsyncMbarrierArrive { .. } => {
                self.facts.hinder(Reach::Steps, "it leaves mbarrier objects in shared memory");
            }
            _ => {}
        }
    }
}
