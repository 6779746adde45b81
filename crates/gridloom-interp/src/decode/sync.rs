//! Barriers, fences and communication within a warp.

use super::Refusal;
use super::function::FunctionDecoder;
use crate::access;
use crate::code::{Barrier, BarrierAction, Collective, CollectiveKind, Mbarrier, MbarrierAction, Op};
use crate::lanes::{Slot, Source};
use gridloom_ptx::op::{BarrierKind, ClusterBarrier, MatchMode, MbarrierOp, SyncOp, WarpOp};
use gridloom_ptx::{Address, Operand, ScalarType, Space};

const WORD: ScalarType = ScalarType::B32;

impl FunctionDecoder<'_, '_> {
    pub(super) fn sync(&mut self, op: &SyncOp) -> Result<(), Refusal> {
        match op {
            SyncOp::Barrier { kind, id, threads, .. } => {
                let id = self.source(id, WORD)?;
                let threads = match threads {
                    Some(threads) => Some(self.source(threads, WORD)?),
                    None => None,
                };
                let action = match kind {
                    BarrierKind::Sync => BarrierAction::Sync,
                    BarrierKind::Arrive => BarrierAction::Arrive,
                    BarrierKind::Red { op, dst, pred } => BarrierAction::Reduce {
                        op: *op,
                        predicate: self.predicate(pred),
                        destination: self.slot(*dst),
                    },
                };
                self.emit(Op::Barrier(Box::new(Barrier { id, threads, action })));
            }
            SyncOp::WarpBarrier { mask } => {
                let (mask, zero) = (self.source(mask, WORD)?, self.constant(0));
                self.collective(CollectiveKind::Barrier, Some(mask), [zero; 3], None, None);
            }
            // Each block is a cluster of its own. Arriving has no further effect, and waiting is
            // the block's own barrier.
            SyncOp::ClusterBarrier(ClusterBarrier::Arrive { .. }) => self.emit(Op::Fence),
            SyncOp::ClusterBarrier(ClusterBarrier::Wait { .. }) => {
                let id = self.constant(0);
                self.emit(Op::Barrier(Box::new(Barrier { id, threads: None, action: BarrierAction::Sync })));
            }
            SyncOp::Membar { .. }
            | SyncOp::Fence { .. }
            | SyncOp::FenceMbarrierInit
            | SyncOp::FenceProxy { .. }
            | SyncOp::FenceProxyTensormap { .. }
            | SyncOp::FenceProxyAsyncGeneric { .. } => self.emit(Op::Fence),
            SyncOp::Mbarrier(op) => self.mbarrier(op)?,
        }
        Ok(())
    }

    fn mbarrier(&mut self, op: &MbarrierOp) -> Result<(), Refusal> {
        let (space, addr, action) = match op {
            MbarrierOp::PendingCount { dst, state } => {
                let (d, s) = (self.slot(*dst), self.source(state, ScalarType::B64)?);
                self.map([d], [s], |[state]| [access::pending_count(state)]);
                return Ok(());
            }
            MbarrierOp::Init { space, addr, count } => {
                (space, addr, MbarrierAction::Init { count: self.source(count, WORD)? })
            }
            MbarrierOp::Inval { space, addr } => (space, addr, MbarrierAction::Invalidate),
            MbarrierOp::Arrive { drop, expect_tx, space, state, addr, count, .. } => {
                let (count, state) = (self.count(count.as_ref())?, state.map(|state| self.slot(state)));
                (space, addr, MbarrierAction::Arrive { count, drop: *drop, state, expect_tx: *expect_tx })
            }
            MbarrierOp::Tx { complete, space, addr, count, .. } => {
                let count = self.source(count, WORD)?;
                (space, addr, MbarrierAction::Transactions { count, complete: *complete })
            }
            MbarrierOp::Wait { suspend, parity, space, dst, addr, state, .. } => {
                let state = self.source(state, if *parity { WORD } else { ScalarType::B64 })?;
                let destination = self.slot(*dst);
                let action = MbarrierAction::Wait { state, parity: *parity, suspend: *suspend, destination };
                (space, addr, action)
            }
        };
        let operand = self.memory_operand(*space, addr)?;
        self.emit(Op::Mbarrier(Box::new(Mbarrier { operand, action })));
        Ok(())
    }

    /// Decodes `cp.async.mbarrier.arrive`. The copies are already done, so it arrives at once.
    /// Without `.noinc` it first increments the expected arrivals, which cancels out.
    pub(super) fn copies_arrive(&mut self, noinc: bool, space: Space, addr: &Address) -> Result<(), Refusal> {
        let operand = self.memory_operand(space, addr)?;
        if noinc {
            let count = self.constant(1);
            let action = MbarrierAction::Arrive { count, drop: false, state: None, expect_tx: false };
            self.emit(Op::Mbarrier(Box::new(Mbarrier { operand, action })));
        } else {
            self.emit(Op::Nothing);
        }
        Ok(())
    }

    fn mask(&mut self, mask: Option<&Operand>) -> Result<Option<Source>, Refusal> {
        mask.map(|mask| self.source(mask, WORD)).transpose()
    }

    fn collective(
        &mut self,
        kind: CollectiveKind,
        mask: Option<Source>,
        [value, b, c]: [Source; 3],
        destination: Option<Slot>,
        predicate: Option<Slot>,
    ) {
        self.emit(Op::Collective(Box::new(Collective { kind, mask, value, b, c, destination, predicate })));
    }

    pub(super) fn warp(&mut self, op: &WarpOp) -> Result<(), Refusal> {
        let zero = self.constant(0);
        match op {
            WarpOp::Shfl { mode, dst, pred, a, b, c, mask } => {
                let (values, mask) = (self.sources([a, b, c], WORD)?, self.mask(mask.as_ref())?);
                let (d, p) = (dst.map(|d| self.slot(d)), pred.map(|p| self.slot(p)));
                self.collective(CollectiveKind::Shuffle(*mode), mask, values, d, p);
            }
            WarpOp::Vote { mode, dst, pred, mask } => {
                let (value, mask) = (self.predicate(pred), self.mask(mask.as_ref())?);
                let d = Some(self.slot(*dst));
                self.collective(CollectiveKind::Vote(*mode), mask, [value, zero, zero], d, None);
            }
            WarpOp::Match { mode, ty, dst, pred, a, mask } => {
                let (value, mask) = (self.source(a, *ty)?, self.source(mask, WORD)?);
                let (d, p) = (dst.map(|d| self.slot(d)), pred.map(|p| self.slot(p)));
                let kind = match mode {
                    MatchMode::Any => CollectiveKind::MatchAny,
                    MatchMode::All => CollectiveKind::MatchAll,
                };
                self.collective(kind, Some(mask), [value, zero, zero], d, p);
            }
            WarpOp::Redux { op, ty, abs, nan, dst, src, mask } => {
                let (value, mask) = (self.source(src, *ty)?, self.source(mask, WORD)?);
                let kind = CollectiveKind::Redux { op: *op, ty: *ty, abs: *abs, nan: *nan };
                let d = Some(self.slot(*dst));
                self.collective(kind, Some(mask), [value, zero, zero], d, None);
            }
            WarpOp::ActiveMask { dst } => self.emit(Op::ActiveMask { destination: self.slot(*dst) }),
            WarpOp::Elect { dst, pred, mask } => {
                let mask = self.source(mask, WORD)?;
                let (d, p) = (dst.map(|d| self.slot(d)), Some(self.slot(*pred)));
                self.collective(CollectiveKind::Elect, Some(mask), [zero; 3], d, p);
            }
        }
        Ok(())
    }
}
