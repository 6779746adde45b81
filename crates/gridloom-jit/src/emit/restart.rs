//! Restart points: checks that follow each other share one side exit.
//!
//! Until a store, an atomic operation or a collective, nothing that a group does is seen by others.
//! A check that fails can therefore leave the group at an earlier instruction, and the interpreter
//! executes what lies between once more. So the checks of a block share an exit, at its start if
//! less is live there. Addresses that only a later exit would store are not computed at all.
//!
//! The registers that are live at the restart point must be kept for as long. If they are no longer
//! needed for anything else and are many, the run ends and another restart point begins.

use super::Emitter;
use super::side_exits::Held;
use crate::analysis::flow::SlotSet;
use cranelift_codegen::ir::Block;
use gridloom_interp::code::{Op, Pc};

/// The most vectors and scalars that are kept for nothing but a restart.
const MOST_VECTORS: usize = 2;
const MOST_SCALARS: usize = 6;

/// An instruction that a group can leave at while it executes later ones.
pub(super) enum Restart {
    /// No check has needed an exit yet since this instruction, before which these registers are
    /// live.
    Unused { pc: Pc, live: SlotSet },
    /// An exit, and what it stores.
    Exit(Block, Vec<Held>),
}

impl Emitter<'_> {
    /// Begins a run at an instruction, before which some registers are live.
    pub(super) fn begin_restart(&mut self, pc: Pc, live: SlotSet) {
        self.restart = Some(Restart::Unused { pc, live });
    }

    /// Returns an exit for a check that hardly ever fails: before the current instruction, or
    /// before an earlier one with nothing but loads and computations in between. `fault` says
    /// whether the current instruction is then known to fault.
    pub(super) fn exit_before(&mut self, fault: bool) -> Block {
        let op = &self.plan.flow.instruction(self.pc).op;
        let waits = matches!(op, Op::Collective(_) | Op::ActiveMask { .. });
        if waits || self.rematerializing || self.party.is_some() || self.speculation.is_some() {
            return self.exit_here(fault);
        }
        let (pc, held) = match self.restart.take() {
            Some(Restart::Exit(exit, held)) if self.keeps_few(&held, MOST_VECTORS, MOST_SCALARS) => {
                self.restart = Some(Restart::Exit(exit, held));
                return exit;
            }
            Some(Restart::Unused { pc, live }) => match self.held_since(pc, live) {
                Some(held) => (pc, held),
                None => (self.pc, self.held_here()),
            },
            _ => (self.pc, self.held_here()),
        };
        let exit = self.b.create_block();
        self.write_exit_later(exit, pc, false, held.clone());
        self.restart = Some(Restart::Exit(exit, held));
        exit
    }

    fn held_here(&mut self) -> Vec<Held> {
        let live = self.live_here();
        self.held(live.iter())
    }

    /// Returns what registers held before an earlier instruction, if they still hold it and an exit
    /// there stores less than one here.
    fn held_since(&mut self, pc: Pc, mut live: SlotSet) -> Option<Vec<Held>> {
        if let Some(kept) = self.kept_by_waiting() {
            live.union(kept);
        }
        let mut written = false;
        for earlier in pc..self.pc {
            let instruction = self.plan.flow.instruction(earlier);
            instruction.for_each_definition(&mut |slot| written |= live.contains(slot));
        }
        if written || live.iter().count() > self.live_here().iter().count() {
            return None;
        }
        let held = self.held(live.iter());
        self.keeps_few(&held, 0, 1).then_some(held)
    }

    /// Returns whether few registers would be kept only for a restart.
    fn keeps_few(&mut self, held: &[Held], most_vectors: usize, most_scalars: usize) -> bool {
        let live = self.live_here();
        let (mut vectors, mut scalars) = (0, 0);
        for held in held {
            let slot = held.slot;
            // A value of each thread by itself may take any number of registers.
            let Some(values) = held.values() else { return false };
            let variables = self.variables[slot.0 as usize].clone();
            let stays = live.contains(slot)
                && self.scalarized_of(slot).is_none()
                && variables.iter().zip(values).all(|(&variable, &value)| self.b.use_var(variable) == value);
            if stays {
                continue;
            }
            for &value in values {
                if self.b.func.dfg.value_type(value).is_vector() {
                    vectors += 1;
                } else {
                    scalars += 1;
                }
            }
        }
        vectors <= most_vectors && scalars <= most_scalars
    }

    /// Begins another run after the current instruction if that cannot be executed again.
    pub(super) fn end_restart(&mut self) {
        let op = &self.plan.flow.instruction(self.pc).op;
        let again = matches!(
            op,
            Op::Map(_) | Op::Load(_) | Op::Special { .. } | Op::FrameAddress { .. } | Op::Nothing
        );
        if !again {
            self.begin_restart(self.pc + 1, self.live_after.clone());
        }
    }
}
