//! Selection of the threads to visit in a round. Groups whose threads are all known to be idle are
//! left out.

use super::{Emitter, Meeting};
use crate::analysis::idle_threads::{Bound, IdleThreads};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::compiled::EXITED;

/// The most threads of a block.
const MOST_THREADS: i64 = 1024;

impl Emitter<'_> {
    /// Returns which threads are idle in a round, by the number of its entry.
    pub(super) fn idle_behind(&self, entry: u32) -> Option<IdleThreads> {
        let barrier = (entry as usize).checked_sub(self.plan.entries.len())?;
        *self.plan.idle_threads.get(barrier)?
    }

    /// Returns the place that idle threads reach.
    pub(super) fn place_of(&self, idle: IdleThreads) -> u32 {
        idle.barrier.map_or(EXITED, |barrier| (self.plan.entries.len() + barrier) as u32)
    }

    /// Returns the range of threads that work in a round, in whole groups.
    pub(super) fn threads_that_work(&mut self, idle: IdleThreads, meeting: &Meeting) -> (Value, Value) {
        let signed = matches!(
            idle.works,
            IntCC::SignedLessThan
                | IntCC::SignedLessThanOrEqual
                | IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
        );
        // The distance from the bound to the first thread that works, and to one past the last.
        let (lowest, end) = match idle.works {
            IntCC::SignedLessThan | IntCC::UnsignedLessThan => (None, Some(0)),
            IntCC::SignedLessThanOrEqual | IntCC::UnsignedLessThanOrEqual => (None, Some(1)),
            IntCC::SignedGreaterThan | IntCC::UnsignedGreaterThan => (Some(1), None),
            IntCC::SignedGreaterThanOrEqual | IntCC::UnsignedGreaterThanOrEqual => (Some(0), None),
            _ => (Some(0), Some(1)),
        };
        let lanes = i64::from(self.lanes);
        let &Meeting { first, last, one_row, .. } = meeting;
        // The bound is limited to the range from -1 to the number of threads, and then rounded to
        // the start of a group: down for the first thread, up for the last. The number of a thread
        // is its index only if the block is one row.
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
            if self.plan.is_row { group } else { self.b.ins().select(one_row, group, otherwise) }
        });
        (from, to)
    }

    /// Returns the start of a group if the block is one row and has that group, else `otherwise`.
    /// It is the same in all blocks of the call.
    fn group_at(&mut self, group: i64, otherwise: Value, meeting: &Meeting) -> Value {
        let known = self.round.bounds.iter().find(|(key, _)| *key == (group, otherwise));
        if let Some(&(_, value)) = known {
            return value;
        }
        let &Meeting { last, one_row, .. } = meeting;
        let is_row = self.plan.is_row;
        let value = self.at_start(|start| {
            let group = start.ins().iconst(I32, group);
            let group = start.ins().smin(group, last);
            if is_row { group } else { start.ins().select(one_row, group, otherwise) }
        });
        self.round.bounds.push(((group, otherwise), value));
        value
    }
}
