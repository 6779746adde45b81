//! Which threads have something to do in a round: where all others of a block are known to pass it by, their groups are left out.

use super::{Emitter, Meeting};
use crate::analysis::idle_threads::{Bound, IdleThreads};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::compiled::EXITED;

/// No block has more threads.
const MOST_THREADS: i64 = 1024;

impl Emitter<'_> {
    /// Which threads are idle in a round, by the number of its entry.
    pub(super) fn idle_behind(&self, entry: u32) -> Option<IdleThreads> {
        let barrier = (entry as usize).checked_sub(self.plan.entries.len())?;
        *self.plan.idle_threads.get(barrier)?
    }

    /// Where idle threads come to.
    pub(super) fn place_of(&self, idle: IdleThreads) -> u32 {
        idle.barrier.map_or(EXITED, |barrier| (self.plan.entries.len() + barrier) as u32)
    }

    /// From where up to where threads work in a round, in whole groups.
    pub(super) fn threads_that_work(&mut self, idle: IdleThreads, meeting: &Meeting) -> (Value, Value) {
        let signed = matches!(
            idle.works,
            IntCC::SignedLessThan
                | IntCC::SignedLessThanOrEqual
                | IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
        );
        // How much more than the bound is the first thread that works, and the first behind those that do.
        let (lowest, end) = match idle.works {
            IntCC::SignedLessThan | IntCC::UnsignedLessThan => (None, Some(0)),
            IntCC::SignedLessThanOrEqual | IntCC::UnsignedLessThanOrEqual => (None, Some(1)),
            IntCC::SignedGreaterThan | IntCC::UnsignedGreaterThan => (Some(1), None),
            IntCC::SignedGreaterThanOrEqual | IntCC::UnsignedGreaterThanOrEqual => (Some(0), None),
            _ => (Some(0), Some(1)),
        };
        let lanes = i64::from(self.lanes);
        let &Meeting { first, last, one_row, .. } = meeting;
        // A bound that is not below -1, where no thread is, nor above all threads, to the start of a group at or before it, or behind it. Only in one row
        // is the number of a thread its index.
        let [from, to] = [(lowest, 0, first), (end, lanes - 1, last)].map(|(more, up, otherwise)| {
            let Some(more) = more else { return otherwise };
            let bound = match idle.bound {
                Bound::Constant(bound) => {
                    let bound = if signed { i64::from(bound as i32).max(-1) } else { bound.into() };
                    let group = ((bound.min(MOST_THREADS) + more).max(0) + up) & -lanes;
                    return self.group_at(group, otherwise, meeting);
                }
                Bound::Definition(pc) => self.known_word(pc),
            };
            let most = self.b.ins().iconst(I32, MOST_THREADS);
            let bound = if signed {
                let least = self.b.ins().iconst(I32, -1);
                let bound = self.b.ins().smax(bound, least);
                self.b.ins().smin(bound, most)
            } else {
                self.b.ins().umin(bound, most)
            };
            let thread = self.b.ins().iadd_imm_s(bound, more);
            let zero = self.b.ins().iconst(I32, 0);
            let thread = self.b.ins().smax(thread, zero);
            let thread = self.b.ins().iadd_imm_s(thread, up);
            let group = self.b.ins().band_imm_s(thread, -lanes);
            let group = self.b.ins().smin(group, last);
            self.b.ins().select(one_row, group, otherwise)
        });
        (from, to)
    }

    /// The start of a group, where the block is one row and has it, or otherwise another; the same in all blocks of the call.
    fn group_at(&mut self, group: i64, otherwise: Value, meeting: &Meeting) -> Value {
        let known = self.round.bounds.iter().find(|(key, _)| *key == (group, otherwise));
        if let Some(&(_, value)) = known {
            return value;
        }
        let &Meeting { last, one_row, .. } = meeting;
        let value = self.at_start(|start| {
            let group = start.ins().iconst(I32, group);
            let group = start.ins().smin(group, last);
            start.ins().select(one_row, group, otherwise)
        });
        self.round.bounds.push(((group, otherwise), value));
        value
    }
}
