//! Arithmetic whose results are in doubt until it is known that none of them is a NaN.
//!
//! In double precision the interpreter is asked for the bits of a NaN. To ask after every instruction takes a branch, and a call that is never made.
//! So a group goes on, as long as nothing but such arithmetic reads what is in doubt and nothing is stored; then one branch asks for all of it. Where
//! there was a NaN, the interpreter goes on from the first instruction that was in doubt, with what the registers held there.

use super::Emitter;
use super::value::Val;
use crate::analysis::flow::SlotSet;
use crate::native::{Class, Native};
use cranelift_codegen::ir::types::I64X2;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use gridloom_interp::code::{Instruction, Op};
use gridloom_interp::lanes::{Slot, Source};
use std::rc::Rc;

/// Instructions that are in doubt together at most: the registers as they were before must be held for as long.
const MOST: u32 = 24;

/// Instructions in speculation.
pub(super) struct SpeculativeNan {
    /// Where a result is a NaN, in any of the vectors so far; and whether one that is the same in all threads is.
    masks: Option<Value>,
    truth: Option<Value>,
    /// Registers in speculation.
    slots: SlotSet,
    count: u32,
    /// Where the group is left, before the first of them.
    pub(super) exit: Block,
}

/// Whether an instruction may be in doubt: it does not tell one NaN from another, but in what it gives.
fn is_arithmetic(native: &Native) -> bool {
    (native.operands[0], native.result) == (Class::F64, Class::F64) && native.kind.is_float_arithmetic()
}

impl Emitter<'_> {
    /// Whether results of an instruction can be left in speculation.
    pub(super) fn can_speculate(&self, native: &Native) -> bool {
        self.lanes > 1 && self.party.is_none() && !self.rematerializing && is_arithmetic(native)
    }

    /// Leaves results in doubt that are NaNs where one of some masks is not zero, or a truth value holds.
    pub(super) fn speculate(&mut self, masks: &[Value], truth: Option<Value>) {
        let mut speculation = match self.speculation.take() {
            Some(speculation) => speculation,
            None => {
                let live = self.live_here();
                let before = self.held(live.iter());
                let exit = self.b.create_block();
                self.write_exit_later(exit, self.pc, false, before);
                let slots = SlotSet::new(self.plan.noncanonical_nan.len() as u32);
                SpeculativeNan { masks: None, truth: None, slots, count: 0, exit }
            }
        };
        let running = self.running.as_ref().map(|running| Rc::clone(&running.masks));
        let running = running.map(|masks| self.masks(&Val::Many(masks.to_vec()), Class::F64));
        for (part, &mask) in masks.iter().enumerate() {
            let mut mask = self.vector_cast(mask, I64X2);
            if let Some(running) = running.as_ref().and_then(|running| running.get(part)) {
                // What the others have computed is not theirs.
                mask = self.b.ins().band(mask, *running);
            }
            speculation.masks = Some(speculation.masks.map_or(mask, |masks| self.b.ins().bor(masks, mask)));
        }
        if let Some(new) = truth {
            speculation.truth = Some(speculation.truth.map_or(new, |truth| self.b.ins().bor(truth, new)));
        }
        speculation.count += 1;
        self.speculation = Some(speculation);
    }

    /// Notes that a register was written by an instruction that is in doubt, or reads what is.
    pub(super) fn note_speculative(&mut self, slot: Slot, native: &Native) {
        if let Some(speculation) = &mut self.speculation
            && is_arithmetic(native)
        {
            speculation.slots.insert(slot);
        }
    }

    /// Ends the doubt where an instruction follows that needs to know, or could not be executed again.
    pub(super) fn check_speculation_before(&mut self, instruction: &Instruction) {
        let Some(speculation) = &self.speculation else { return };
        let native = self.plan.natives[(self.pc - self.plan.flow.range.start) as usize];
        let mut reads = false;
        instruction.for_each_use(&mut |source| {
            reads |= matches!(source, Source::Slot(slot) if speculation.slots.contains(slot));
        });
        let goes_on = match &instruction.op {
            Op::Map(_) => !reads || native.as_ref().is_some_and(is_arithmetic),
            Op::Load(_) | Op::Special { .. } | Op::FrameAddress { .. } | Op::Nothing => !reads,
            _ => false,
        };
        if !goes_on || speculation.count >= MOST {
            self.check_speculation();
        }
    }

    /// Asks whether what is in doubt holds.
    pub(super) fn check_speculation(&mut self) {
        let Some(speculation) = self.speculation.take() else { return };
        let any = speculation.masks.map(|masks| self.b.ins().vany_true(masks));
        let any = match (any, speculation.truth) {
            (Some(any), Some(truth)) => self.b.ins().bor(any, truth),
            (Some(any), None) | (None, Some(any)) => any,
            (None, None) => return self.defect("a doubt about nothing"),
        };
        let go_on = self.b.create_block();
        self.b.ins().brif(any, speculation.exit, &[], go_on, &[]);
        self.go_on_in(go_on);
    }
}
