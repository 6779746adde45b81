//! Random instructions.

use gridloom_ptx::op::*;
use gridloom_ptx::{PredOperand, RegId, ScalarType, Space, SymbolId};

use super::{Choices, PREDICATES};

impl Choices<'_> {
    pub(super) fn op(&mut self) -> Op {
        match self.below(11) {
            0 => self.int().into(),
            1 => self.bits().into(),
            2 => self.float().into(),
            3 => self.compare().into(),
            4 => self.convert().into(),
            5 => self.memory().into(),
            6 => self.atomic().into(),
            7 => self.control().into(),
            8 => self.sync().into(),
            9 => self.warp().into(),
            _ => self.unsupported(),
        }
    }

    fn int(&mut self) -> IntOp {
        let (dst, a, b, c) = (self.reg(), self.src(), self.src(), self.src());
        let ty = self.int_type();
        let half = self.pick(Half::ALL);
        match self.below(12) {
            0 => {
                let op = self.pick(IntArith::ALL);
                // `add.sat` of these types is outside the model.
                let outside = matches!(ty, ScalarType::U32 | ScalarType::U16x2 | ScalarType::S16x2);
                let sat = match op {
                    IntArith::Add => self.flag() && !outside,
                    IntArith::Sub => self.flag(),
                    _ => false,
                };
                let relu = matches!(op, IntArith::Min | IntArith::Max) && self.flag();
                IntOp::Arith { op, ty, sat, relu, dst, a, b }
            }
            1 => IntOp::MulWide { ty, dst, a, b },
            2 => IntOp::Mul24 { half, ty, dst, a, b },
            3 => IntOp::Mad { mode: self.pick(MulMode::ALL), ty, sat: self.flag(), dst, a, b, c },
            4 => IntOp::Mad24 { half, ty, sat: self.flag(), dst, a, b, c },
            5 => {
                let carry_in = self.flag();
                // Without either it is no carry chain.
                let carry_out = !carry_in || self.flag();
                IntOp::Carry { subtract: self.flag(), carry_in, carry_out, ty, dst, a, b }
            }
            6 => {
                let carry_in = self.flag();
                let carry_out = !carry_in || self.flag();
                IntOp::MadCarry { half, carry_in, carry_out, ty, dst, a, b, c }
            }
            7 => IntOp::Sad { ty, dst, a, b, c },
            8 => IntOp::Abs { ty, dst, a },
            9 => IntOp::Neg { ty, dst, a },
            10 => IntOp::Dp4a { a_ty: ty, b_ty: self.int_type(), dst, a, b, c },
            _ => IntOp::Dp2a { half, a_ty: ty, b_ty: self.int_type(), dst, a, b, c },
        }
    }

    fn bits(&mut self) -> BitsOp {
        let (dst, a, b, c) = (self.reg(), self.src(), self.src(), self.src());
        let ty = self.int_type();
        match self.below(17) {
            0 => BitsOp::Logic { op: self.pick(LogicOp::ALL), ty, dst, a, b },
            1 => BitsOp::Not { ty, dst, a },
            2 => BitsOp::Cnot { ty, dst, a },
            3 => {
                let op = self.pick(&[LogicOp::And, LogicOp::Or]);
                let pred = self.maybe(|c| Lop3Pred { op, dst: c.reg(), q: c.pred() });
                BitsOp::Lop3 { dst: self.maybe_reg(), pred, a, b, c, lut: self.below(256) as u8 }
            }
            4 => BitsOp::Shl { ty, dst, a, b },
            5 => BitsOp::Shr { ty, dst, a, b },
            6 => {
                let (direction, mode) = (self.pick(ShiftDirection::ALL), self.pick(FunnelMode::ALL));
                BitsOp::Shf { direction, mode, dst, a, b, c }
            }
            7 => BitsOp::Bfe { ty, dst, a, b, c },
            8 => BitsOp::Bfi { ty, dst, a, b, c, d: self.src() },
            9 => BitsOp::Bfind { ty, mode: self.pick(BfindMode::ALL), dst, a },
            10 => BitsOp::Brev { ty, dst, a },
            11 => BitsOp::Clz { ty, dst, a },
            12 => BitsOp::Popc { ty, dst, a },
            13 => BitsOp::Fns { dst, mask: a, base: b, offset: c },
            14 => BitsOp::Prmt { mode: self.pick(PrmtMode::ALL), dst, a, b, c },
            15 => BitsOp::Szext { mode: self.pick(MaskMode::ALL), ty, dst, a, b },
            _ => BitsOp::Bmsk { mode: self.pick(MaskMode::ALL), dst, a, b },
        }
    }

    fn precision(&mut self) -> FloatPrecision {
        match self.below(2) {
            0 => FloatPrecision::Approx,
            _ => FloatPrecision::Rounded(self.pick(Rounding::ALL)),
        }
    }

    fn float(&mut self) -> FloatOp {
        let (dst, a, b, c) = (self.reg(), self.src(), self.src(), self.src());
        let (ty, ftz) = (self.float_type(), self.flag());
        match self.below(12) {
            0 => {
                let (op, rounding) = (self.pick(FloatArith::ALL), self.maybe(|c| c.pick(Rounding::ALL)));
                FloatOp::Arith { op, ty, rounding, ftz, sat: self.flag(), dst, a, b }
            }
            1 => {
                let rounding = self.pick(Rounding::ALL);
                let (sat, relu, oob) = (self.flag(), self.flag(), self.flag());
                FloatOp::Fma { ty, rounding, ftz, sat, relu, oob, dst, a, b, c }
            }
            2 => {
                let rounding = self.maybe(|c| c.pick(Rounding::ALL));
                FloatOp::Mad { ty, rounding, ftz, sat: self.flag(), dst, a, b, c }
            }
            3 => {
                let precision = if self.flag() { FloatPrecision::Full } else { self.precision() };
                FloatOp::Div { ty, precision, ftz, dst, a, b }
            }
            4 => FloatOp::Rcp { ty, precision: self.precision(), ftz, dst, a },
            5 => FloatOp::Sqrt { ty, precision: self.precision(), ftz, dst, a },
            6 => FloatOp::Approx { op: self.pick(ApproxOp::ALL), ty, ftz, dst, a },
            7 => FloatOp::Abs { ty, ftz, dst, a },
            8 => FloatOp::Neg { ty, ftz, dst, a },
            9 => {
                let (op, nan, xorsign_abs) = (self.pick(MinMax::ALL), self.flag(), self.flag());
                let abs = !xorsign_abs && self.flag();
                let c = self.maybe(|_| c);
                FloatOp::MinMax { op, ty, ftz, nan, xorsign_abs, abs, dst, a, b, c }
            }
            10 => FloatOp::Copysign { ty, dst, a, b },
            _ => FloatOp::Testp { op: self.pick(TestpOp::ALL), ty, dst, a },
        }
    }

    fn compare(&mut self) -> CompareOp {
        let (dst, a, b) = (self.reg(), self.src(), self.src());
        let ty = if self.flag() { self.int_type() } else { self.float_type() };
        let (cmp, ftz) = (self.pick(Compare::ALL), self.flag());
        let combine = self.maybe(|c| Combine { op: c.pick(BoolOp::ALL), pred: c.pred() });
        match self.below(4) {
            0 => CompareOp::Set { cmp, combine, ftz, dst_ty: self.int_type(), ty, dst, a, b },
            1 => CompareOp::Setp { cmp, combine, ftz, ty, p: self.maybe_reg(), q: self.maybe_reg(), a, b },
            2 => CompareOp::Selp { ty, dst, a, b, cond: self.pred() },
            _ => CompareOp::Slct { ty, cond_ty: self.int_type(), ftz, dst, a, b, c: self.src() },
        }
    }

    fn cvt(&mut self) -> Cvt {
        use ScalarType::*;
        let (dst_ty, src_ty, count) = match self.below(3) {
            0 => (self.pick(&[F16x2, Bf16x2, E4m3x2, E5m2x2, E2m3x2, E3m2x2, E2m1x2, Ue8m0x2]), F32, 2),
            1 => (self.pick(&[E4m3x4, E5m2x4, E2m3x4, E3m2x4, E2m1x4]), F32, 4),
            _ => (
                self.pick(&[U8, S16, U32, S64, F16, F32, F64, Tf32]),
                self.pick(&[S8, U16, F32, F64, Bf16]),
                1,
            ),
        };
        let rounding = self.maybe(|c| c.pick(CvtRounding::ALL));
        let scaled = self.flag();
        Cvt {
            dst_ty,
            src_ty,
            rounding,
            ftz: self.flag(),
            sat: self.flag(),
            satfinite: self.flag(),
            relu: self.flag(),
            scaled,
            dst: self.reg(),
            srcs: self.srcs(count),
            random: (rounding == Some(CvtRounding::Rs)).then(|| self.src()),
            scale: scaled.then(|| self.src()),
        }
    }

    fn convert(&mut self) -> ConvertOp {
        let (dst, src, ty) = (self.reg(), self.src(), self.int_type());
        let space = self.pick(&Space::ALL[1..]);
        match self.below(10) {
            0 => ConvertOp::Cvt(Box::new(self.cvt())),
            1 => {
                let (b, c) = (self.src(), self.maybe(Self::src));
                ConvertOp::CvtPack {
                    dst_ty: self.pick(PackType::ALL),
                    ty: ScalarType::S32,
                    dst,
                    a: src,
                    b,
                    c,
                }
            }
            2 => ConvertOp::Cvta { to: self.flag(), space, ty, dst, src },
            3 => ConvertOp::Isspacep { space, dst, src },
            4 => ConvertOp::Mapa { space: self.space(), ty, dst, src, rank: self.src() },
            5 => ConvertOp::Getctarank { space: self.space(), ty, dst, src },
            6 => ConvertOp::Mov { ty, dst, src },
            7 => ConvertOp::Pack { ty, dst, srcs: self.srcs(2) },
            8 => ConvertOp::MovVector { ty, dsts: self.dsts(2), srcs: self.srcs(2) },
            _ => ConvertOp::Unpack { ty, dsts: self.dsts(4), src },
        }
    }

    fn access(&mut self, load: bool) -> Box<Access> {
        Box::new(Access {
            space: self.space(),
            order: self.pick(Order::ALL),
            scope: self.maybe(|c| c.pick(Scope::ALL)),
            nc: load && self.flag(),
            cache: self.maybe(|c| c.pick(CacheOp::ALL)),
            eviction: self.maybe(|c| c.pick(Eviction::ALL)),
            l2_eviction: self.maybe(|c| c.pick(L2Eviction::ALL)),
            prefetch: self.maybe(|c| c.pick(PrefetchSize::ALL)),
            policy: self.maybe(Self::src),
            unified: load && self.flag(),
            addr: self.addr(),
        })
    }

    fn memory(&mut self) -> MemoryOp {
        let (dst, src, addr) = (self.reg(), self.src(), self.addr());
        let (space, ty, length) = (self.space(), self.pick(&ScalarType::ALL[..16]), self.length());
        let (primary, secondary) =
            (self.pick(PolicyPriority::ALL), self.maybe(|c| c.pick(PolicyPriority::ALL)));
        match self.below(18) {
            0 | 1 => MemoryOp::Ld { ty, dsts: self.dsts(length), access: self.access(true) },
            2 | 3 => MemoryOp::St { ty, srcs: self.srcs(length), access: self.access(false) },
            4 => MemoryOp::Ldu { space, ty, dsts: self.dsts(length), addr },
            5 => MemoryOp::Prefetch { space, level: self.pick(PrefetchLevel::ALL), addr },
            6 => MemoryOp::PrefetchUniform { addr },
            7 => MemoryOp::Discard { space, addr, size: 128 },
            8 => MemoryOp::ApplyPriority { space, addr, size: self.below(256) },
            9 => {
                MemoryOp::CreatePolicyFractional { primary, secondary, dst, fraction: self.maybe(Self::src) }
            }
            10 => {
                let (primary_size, total_size) = (self.src(), self.src());
                MemoryOp::CreatePolicyRange { space, primary, secondary, dst, addr, primary_size, total_size }
            }
            11 => MemoryOp::CreatePolicyCvt { dst, src },
            12 => MemoryOp::CpAsync(Box::new(self.cp_async())),
            13 => self.pick_group(),
            14 => MemoryOp::CpAsyncMbarrierArrive { noinc: self.flag(), space, addr },
            15 => MemoryOp::Alloca { ty, dst, size: src, align: self.maybe(|c| c.below(64)) },
            16 => MemoryOp::StackSave { ty, dst },
            _ => MemoryOp::StackRestore { ty, src },
        }
    }

    fn pick_group(&mut self) -> MemoryOp {
        match self.below(3) {
            0 => MemoryOp::CpAsyncCommitGroup,
            1 => MemoryOp::CpAsyncWaitGroup { pending: self.below(9) },
            _ => MemoryOp::CpAsyncWaitAll,
        }
    }

    fn cp_async(&mut self) -> CpAsync {
        let (src_size, ignore_src) = match self.below(3) {
            0 => (Some(self.src()), None),
            // What tells it from a size is that it is a predicate.
            1 => (None, Some(PredOperand::Reg { reg: RegId(self.below(PREDICATES)), negated: self.flag() })),
            _ => (None, None),
        };
        CpAsync {
            cache: self.pick(&[CacheOp::Ca, CacheOp::Cg]),
            dst_space: self.pick(&[Space::Shared, Space::SharedCta]),
            dst: self.addr(),
            src: self.addr(),
            size: self.below(17),
            src_size,
            ignore_src,
            prefetch: self.maybe(|c| c.pick(PrefetchSize::ALL)),
            policy: self.maybe(Self::src),
        }
    }

    fn atomic(&mut self) -> AtomicOp {
        let op = self.pick(AtomOp::ALL);
        let length = self.length();
        let rmw = Box::new(AtomicRmw {
            op,
            ty: self.pick(&ScalarType::ALL[..16]),
            space: self.space(),
            sem: self.maybe(|c| c.pick(FenceSem::ALL)),
            scope: self.maybe(|c| c.pick(Scope::ALL)),
            noftz: self.flag(),
            addr: self.addr(),
            b: self.srcs(length),
            c: (op == AtomOp::Cas).then(|| self.src()),
            policy: self.maybe(Self::src),
        });
        if self.flag() { AtomicOp::Red { rmw } } else { AtomicOp::Atom { dsts: self.dsts(length), rmw } }
    }

    fn control(&mut self) -> ControlOp {
        let uni = self.flag();
        match self.below(11) {
            0 => ControlOp::Bra { uni, target: self.label() },
            1 => ControlOp::BrxIdx { uni, index: self.src(), table: self.branch_table() },
            2 => {
                let target = match self.below(3) {
                    0 => CallTarget::Direct(SymbolId(2)),
                    1 => CallTarget::Prototype(self.value_reg(), self.prototype()),
                    _ => CallTarget::Table(self.value_reg(), self.call_table()),
                };
                let returns = (0..self.below(2)).map(|_| self.call_arg()).collect();
                let args = (0..self.below(4)).map(|_| self.call_arg()).collect();
                ControlOp::Call { uni, target, returns, args }
            }
            3 => ControlOp::Ret { uni },
            4 => ControlOp::Exit,
            5 => ControlOp::Trap,
            6 => ControlOp::Brkpt,
            7 => ControlOp::Nanosleep { duration: self.src() },
            8 => ControlOp::GridDepControl { action: self.pick(GridDep::ALL) },
            9 => ControlOp::PmEvent { mask: self.flag(), event: self.src() },
            _ => ControlOp::SetMaxNReg { increase: self.flag(), count: self.below(256) },
        }
    }

    fn sync(&mut self) -> SyncOp {
        let (sem, scope, restrict) =
            (self.pick(FenceSem::ALL), self.pick(Scope::ALL), self.pick(SyncRestrict::ALL));
        match self.below(9) {
            0 => {
                let kind = match self.below(3) {
                    0 => BarrierKind::Sync,
                    1 => BarrierKind::Arrive,
                    _ => BarrierKind::Red { op: self.pick(RedOp::ALL), dst: self.reg(), pred: self.pred() },
                };
                let (id, threads) = (self.src(), self.maybe(Self::src));
                SyncOp::Barrier { kind, aligned: self.flag(), id, threads }
            }
            1 => SyncOp::WarpBarrier { mask: self.src() },
            2 => SyncOp::ClusterBarrier(match self.flag() {
                true => ClusterBarrier::Arrive { relaxed: self.flag(), aligned: self.flag() },
                false => ClusterBarrier::Wait { aligned: self.flag() },
            }),
            3 => SyncOp::Membar { level: self.pick(MembarLevel::ALL) },
            4 => SyncOp::Fence { sem, scope, restrict: self.maybe(|_| restrict) },
            5 => SyncOp::FenceMbarrierInit,
            6 => SyncOp::FenceProxy { proxy: self.pick(Proxy::ALL) },
            7 => match self.flag() {
                true => SyncOp::FenceProxyTensormap { sem, scope, object: self.maybe(|c| (c.addr(), 128)) },
                false => SyncOp::FenceProxyAsyncGeneric { sem, restrict },
            },
            _ => SyncOp::Mbarrier(Box::new(self.mbarrier())),
        }
    }

    fn mbarrier(&mut self) -> MbarrierOp {
        let (space, addr, count) = (self.space(), self.addr(), self.src());
        let (sem, scope) = (self.maybe(|c| c.pick(FenceSem::ALL)), self.maybe(|c| c.pick(Scope::ALL)));
        match self.below(6) {
            0 => MbarrierOp::Init { space, addr, count },
            1 => MbarrierOp::Inval { space, addr },
            2 => MbarrierOp::Arrive {
                drop: self.flag(),
                expect_tx: self.flag(),
                no_complete: self.flag(),
                sem,
                scope,
                space,
                state: self.maybe_reg(),
                addr,
                count: self.maybe(|_| count),
            },
            3 => MbarrierOp::Tx { complete: self.flag(), scope, space, addr, count },
            4 => MbarrierOp::Wait {
                suspend: self.flag(),
                parity: self.flag(),
                sem,
                scope,
                space,
                dst: self.reg(),
                addr,
                state: count,
                time_limit: self.maybe(Self::src),
            },
            _ => MbarrierOp::PendingCount { dst: self.reg(), state: count },
        }
    }

    fn warp(&mut self) -> WarpOp {
        let (dst, pred, a, b) = (self.maybe_reg(), self.maybe_reg(), self.src(), self.src());
        match self.below(6) {
            0 => {
                let mask = self.maybe(Self::src);
                WarpOp::Shfl { mode: self.pick(ShuffleMode::ALL), dst, pred, a, b, c: self.src(), mask }
            }
            1 => {
                let mask = self.maybe(Self::src);
                WarpOp::Vote { mode: self.pick(VoteMode::ALL), dst: self.reg(), pred: self.pred(), mask }
            }
            2 => {
                WarpOp::Match { mode: self.pick(MatchMode::ALL), ty: self.int_type(), dst, pred, a, mask: b }
            }
            3 => {
                let (op, ty) = (self.pick(ReduxOp::ALL), self.int_type());
                WarpOp::Redux { op, ty, abs: self.flag(), nan: self.flag(), dst: self.reg(), src: a, mask: b }
            }
            4 => WarpOp::ActiveMask { dst: self.reg() },
            _ => WarpOp::Elect { dst, pred: self.reg(), mask: a },
        }
    }

    fn unsupported(&mut self) -> Op {
        // A dotted word before the first operand would be one more modifier.
        let operands = (0..self.below(6))
            .map(|index| match if index == 0 { 0 } else { self.below(5) } {
                0 => RawToken::Reg(self.reg()),
                1 => RawToken::Special(self.special()),
                2 => RawToken::Var(self.var()),
                3 => RawToken::Label(self.label()),
                _ => RawToken::Text(
                    self.pick(&[",", "[", "]", "+", "16", "0f3F800000", ".b0", "_"]).to_owned(),
                ),
            })
            .collect();
        let (mnemonic, reason) = self.pick(&[
            ("wgmma", "tensor cores and matrices are not run yet"),
            ("tex", "textures and surfaces are not run yet"),
            ("brandnew", "there is no instruction `brandnew`"),
        ]);
        Op::Unsupported(Box::new(Unsupported {
            mnemonic: mnemonic.to_owned(),
            modifiers: vec!["sync".to_owned(), "x4".to_owned(), "kind::f16".to_owned()],
            operands,
            reason: reason.to_owned(),
        }))
    }
}
