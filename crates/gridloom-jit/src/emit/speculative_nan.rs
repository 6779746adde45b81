//! Arithmetic that is speculative until it is known that no result is a NaN.
//!
//! In double precision, the interpreter computes the bits of a NaN. Checking after every
//! instruction takes a branch and a call that hardly ever happens. So a group continues as long as
//! only such arithmetic reads speculative results and nothing is stored. Then one branch checks all
//! of them. If there was a NaN, the interpreter continues from the first speculative instruction,
//! with the registers as they were there.
//!
//! Arithmetic on a NaN gives a NaN. So only results are checked that no such instruction reads.

use super::Emitter;
use super::value::Val;
use crate::analysis::flow::SlotSet;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use gridloom_interp::code::{Instruction, Op};
use gridloom_interp::lanes::{Slot, Source};
use std::rc::Rc;

/// The most speculative instructions. The registers before the first must be kept for as long.
const MOST: u32 = 24;

/// The speculative instructions so far.
pub(super) struct SpeculativeNan {
    /// Vectors of results: the value, which vector of its register it is, and a mask that is set
    /// where it is a NaN.
    masks: Vec<(Value, usize, Value)>,
    /// Uniform results: the value, and whether it is a NaN.
    truths: Vec<(Value, Value)>,
    /// The registers with speculative values.
    slots: SlotSet,
    count: u32,
    /// The exit before the first speculative instruction.
    pub(super) exit: Block,
}

/// Where the results of an instruction are NaNs.
pub(super) enum Doubt<'a> {
    /// A uniform result is one if a truth value holds.
    One(Value),
    /// Vectors hold one where a mask is not zero.
    Many(&'a [Value]),
}

/// Returns whether the result is a NaN if any operand is.
fn passes_on_nan(native: &Native) -> bool {
    is_arithmetic(native) && !matches!(native.kind, Kind::FloatMin { .. } | Kind::FloatMax { .. })
}

/// Returns whether an instruction may be speculative: only its result depends on which NaN an
/// operand is.
fn is_arithmetic(native: &Native) -> bool {
    (native.operands[0], native.result) == (Class::F64, Class::F64) && native.kind.is_float_arithmetic()
}

impl Emitter<'_> {
    /// Returns whether the results of an instruction can be speculative.
    pub(super) fn can_speculate(&self, native: &Native) -> bool {
        self.lanes > 1 && self.party.is_none() && !self.rematerializing && is_arithmetic(native)
    }

    /// Makes the results of an instruction speculative.
    pub(super) fn speculate(
        &mut self,
        native: &Native,
        operands: &[Val],
        results: &[Value],
        doubt: Doubt<'_>,
    ) {
        let mut speculation = match self.speculation.take() {
            Some(speculation) => speculation,
            None => {
                let exit = self.exit_before(false);
                let slots = SlotSet::new(self.plan.noncanonical_nan.len() as u32);
                SpeculativeNan { masks: Vec::new(), truths: Vec::new(), slots, count: 0, exit }
            }
        };
        if passes_on_nan(native) {
            let reads = |result: &Value| {
                operands.iter().any(|operand| match operand {
                    Val::One(value) => value == result,
                    Val::Many(parts) => parts.contains(result),
                    _ => false,
                })
            };
            speculation.masks.retain(|(result, ..)| !reads(result));
            speculation.truths.retain(|(result, _)| !reads(result));
        }
        match doubt {
            Doubt::One(truth) => speculation.truths.push((results[0], truth)),
            Doubt::Many(masks) => {
                for (part, &mask) in masks.iter().enumerate() {
                    speculation.masks.push((results[part], part, mask));
                }
            }
        }
        speculation.count += 1;
        self.speculation = Some(speculation);
    }

    /// Records that a register was written by a speculative instruction.
    pub(super) fn note_speculative(&mut self, slot: Slot, native: &Native) {
        if let Some(speculation) = &mut self.speculation
            && is_arithmetic(native)
        {
            speculation.slots.insert(slot);
        }
    }

    /// Ends speculation before an instruction that needs the actual value or could not be executed
    /// again.
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

    /// Checks the speculative results.
    pub(super) fn check_speculation(&mut self) {
        let Some(speculation) = self.speculation.take() else { return };
        let running = self.running.as_ref().map(|running| Rc::clone(&running.masks));
        let running = running.map(|masks| self.masks(&Val::Many(masks.to_vec()), Class::F64));
        let mut masks: Option<Value> = None;
        for &(_, part, mask) in &speculation.masks {
            let mut mask = self.vector_cast(mask, self.length.by(I64));
            if let Some(running) = running.as_ref().and_then(|running| running.get(part)) {
                // What the others have computed is not theirs.
                mask = self.b.ins().band(mask, *running);
            }
            masks = Some(masks.map_or(mask, |masks| self.b.ins().bor(masks, mask)));
        }
        let any = masks.map(|masks| self.b.ins().vany_true(masks));
        let truths = speculation.truths.iter().map(|&(_, truth)| truth);
        let truth = truths.reduce(|a, b| self.b.ins().bor(a, b));
        let any = match (any, truth) {
            (Some(any), Some(truth)) => self.b.ins().bor(any, truth),
            (Some(any), None) | (None, Some(any)) => any,
            (None, None) => return self.defect("a speculation without a value to check"),
        };
        let go_on = self.b.create_block();
        self.b.ins().brif(any, speculation.exit, &[], go_on, &[]);
        self.go_on_in(go_on);
    }
}
