//! The code between inlined kernels: registers, labels and single instructions.

use gridloom_ptx::op::{
    Access, AtomOp, AtomicOp, AtomicRmw, BarrierKind, BitsOp, ClusterBarrier, Compare, CompareOp, ControlOp,
    ConvertOp, FenceSem, GridDep, Instruction, IntArith, IntOp, LogicOp, MemoryOp, MulMode, Op, Order, Scope,
    SyncOp,
};
use gridloom_ptx::{
    Address, AddressBase, Dim, DimSpecial, Guard, Imm, Label, LabelId, Operand, ParamId, PredOperand, RegId,
    ScalarType, Space, Span, SpecialReg, VarRef, Version,
};
use smallvec::smallvec;

use crate::rewrite::source::STEP_BARRIER;

use super::Assembly;

impl Assembly {
    /// Chooses names that the body does not have yet, for example because it is that of a rewritten
    /// kernel.
    pub(super) fn name_glue(&mut self) {
        let registers = self.body.registers.groups().iter().map(|group| &group.name);
        let labels = self.body.labels.iter().map(|label| &label.name);
        let names: Vec<&String> = registers.chain(labels).collect();
        while names.iter().any(|name| name[1..].starts_with(&self.glue_name)) {
            self.glue_name.push('_');
        }
    }

    pub(crate) fn register(&mut self, ty: ScalarType) -> RegId {
        self.glue += 1;
        let name = format!("%{}{}", self.glue_name, self.glue);
        self.body.registers.declare(&name, None, ty, Span::default()).expect("fewer registers than numbers")
    }

    /// Creates a label that is not placed yet.
    pub(crate) fn label(&mut self) -> LabelId {
        let id = LabelId(self.body.labels.len() as u32);
        let name = format!("${}_{}", self.glue_name, id.0);
        self.body.labels.push(Label { name, target: u32::MAX, span: Span::default() });
        id
    }

    /// Places a label before the next instruction.
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

    /// Emits a barrier of the block. Writes before it are visible to all threads after it.
    pub(crate) fn barrier(&mut self) {
        self.emit(SyncOp::Barrier {
            kind: BarrierKind::Sync,
            aligned: false,
            id: int(STEP_BARRIER),
            threads: None,
        });
        // What follows may have barriers that need converged warps.
        self.emit(SyncOp::WarpBarrier { mask: int(0xffff_ffff) });
    }

    /// Emits a barrier of the cluster. Writes before it are visible to all its threads after it.
    pub(crate) fn cluster_barrier(&mut self) {
        self.require(Version { major: 7, minor: 8 }, 90);
        self.emit(SyncOp::ClusterBarrier(ClusterBarrier::Arrive { relaxed: false, aligned: false }));
        self.emit(SyncOp::ClusterBarrier(ClusterBarrier::Wait { aligned: false }));
        self.emit(SyncOp::WarpBarrier { mask: int(0xffff_ffff) });
    }

    /// Emits an addition to a word in memory that releases what the thread has seen and written.
    pub(crate) fn arrive(&mut self, addr: Address, by: Operand) {
        self.add_released(ScalarType::U32, addr, by);
    }

    /// Emits an addition to a word of 64 bits that releases what the thread has seen and written.
    pub(crate) fn arrive_wide(&mut self, addr: Address, by: Operand) {
        self.add_released(ScalarType::U64, addr, by);
    }

    fn add_released(&mut self, ty: ScalarType, addr: Address, by: Operand) {
        let rmw = AtomicRmw {
            op: AtomOp::Add,
            ty,
            space: Space::Global,
            sem: Some(FenceSem::Release),
            scope: Some(Scope::Gpu),
            noftz: false,
            addr,
            b: smallvec![by],
            c: None,
            policy: None,
        };
        self.emit(AtomicOp::Red { rmw: Box::new(rmw) });
    }

    /// Emits a load of a word in memory that acquires what others released with it.
    pub(crate) fn load_acquire(&mut self, addr: Address) -> RegId {
        self.load_acquired(ScalarType::U32, addr)
    }

    /// Emits a load of a word of 64 bits that acquires what others released with it.
    pub(crate) fn load_acquire_wide(&mut self, addr: Address) -> RegId {
        self.load_acquired(ScalarType::U64, addr)
    }

    fn load_acquired(&mut self, ty: ScalarType, addr: Address) -> RegId {
        let dst = self.register(ty);
        let mut access = access(Space::Global, Order::Acquire, addr);
        access.scope = Some(Scope::Gpu);
        self.emit(MemoryOp::Ld { ty, dsts: smallvec![Some(dst)], access: Box::new(access) });
        dst
    }

    pub(crate) fn set_if(&mut self, reg: RegId, ty: ScalarType, dst: RegId, src: Operand) {
        self.emit_if(Some(Guard { reg, negated: false }), ConvertOp::Mov { ty, dst, src });
    }

    pub(crate) fn xor(&mut self, a: Operand, b: Operand) -> RegId {
        let dst = self.register(ScalarType::B32);
        self.xor_to(dst, a, b);
        dst
    }

    pub(crate) fn xor_to(&mut self, dst: RegId, a: Operand, b: Operand) {
        self.emit(BitsOp::Logic { op: LogicOp::Xor, ty: ScalarType::B32, dst, a, b });
    }

    pub(crate) fn and_wide(&mut self, a: Operand, mask: i64) -> RegId {
        let dst = self.register(ScalarType::B64);
        self.emit(BitsOp::Logic { op: LogicOp::And, ty: ScalarType::B64, dst, a, b: int(mask) });
        dst
    }

    /// Computes `a · by + plus` in 64 bits from 64 bits.
    pub(crate) fn mul_add(&mut self, a: RegId, by: i64, plus: RegId) -> RegId {
        self.mad(ScalarType::U64, a, by, plus)
    }

    /// Computes `a · by + plus` in 32 bits.
    pub(crate) fn mul_add_low(&mut self, a: RegId, by: u32, plus: RegId) -> RegId {
        self.mad(ScalarType::U32, a, by.into(), plus)
    }

    fn mad(&mut self, ty: ScalarType, a: RegId, by: i64, plus: RegId) -> RegId {
        let dst = self.register(ty);
        let (a, b, c) = (a.into(), int(by), plus.into());
        self.emit(IntOp::Mad { mode: MulMode::Lo, ty, sat: false, dst, a, b, c });
        dst
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

    /// Emits a store to a word that other threads may store the same value to at the same time.
    pub(crate) fn store_volatile(&mut self, space: Space, ty: ScalarType, addr: Address, src: Operand) {
        let access = Box::new(access(space, Order::Volatile, addr));
        self.emit(MemoryOp::St { ty, srcs: smallvec![src], access });
    }

    /// Emits such a store for the threads in which a predicate is true.
    pub(crate) fn store_volatile_if(
        &mut self,
        reg: RegId,
        space: Space,
        ty: ScalarType,
        addr: Address,
        src: Operand,
    ) {
        let access = Box::new(access(space, Order::Volatile, addr));
        let guard = Some(Guard { reg, negated: false });
        self.emit_if(guard, MemoryOp::St { ty, srcs: smallvec![src], access });
    }

    /// Returns `a` where a predicate is true, and else `b`.
    pub(crate) fn select(&mut self, reg: RegId, a: Operand, b: Operand) -> RegId {
        let dst = self.register(ScalarType::B32);
        let cond = PredOperand::Reg { reg, negated: false };
        self.emit(CompareOp::Selp { ty: ScalarType::B32, dst, a, b, cond });
        dst
    }

    /// Computes `a · by + plus` in 64 bits.
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
}

/// Makes a load that bypasses the coherent caches a plain one.
pub(super) fn make_coherent(op: &mut Op) {
    match op {
        Op::Memory(MemoryOp::Ld { access, .. }) => access.nc = false,
        Op::Memory(MemoryOp::Ldu { space, ty, dsts, addr }) => {
            let access = Box::new(access(*space, Order::Weak, *addr));
            *op = MemoryOp::Ld { ty: *ty, dsts: std::mem::take(dsts), access }.into();
        }
        _ => {}
    }
}

/// Returns an integer constant.
pub(crate) fn int(value: i64) -> Operand {
    Operand::Imm(Imm::Int(value))
}

/// Returns `%tid.x` and the like.
pub(crate) fn special(special: DimSpecial, dim: Dim) -> Operand {
    Operand::Special(SpecialReg::Dim(special, dim))
}

pub(crate) fn at(reg: RegId, offset: i64) -> Address {
    Address { base: AddressBase::Reg(reg), offset }
}

pub(super) fn param_address(offset: u64) -> Address {
    Address { base: AddressBase::Var(VarRef::Param(ParamId(0))), offset: offset as i64 }
}

pub(super) fn access(space: Space, order: Order, addr: Address) -> Access {
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
