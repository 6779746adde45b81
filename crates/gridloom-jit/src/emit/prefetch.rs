//! Prefetching of what a loop will load.
//!
//! A loop in which all threads of a grid traverse an array advances by the number of threads. That
//! is too far for the hardware prefetcher, and out-of-order execution hides the latency only if a
//! pass is a few dozen instructions. If the threads of a group access memory one by one, a pass is
//! longer than that. The line for a later pass is then prefetched. A prefetch is a hint: an invalid
//! address is not an error, and registers are preserved.

use super::Emitter;
use super::interleaved::HostAddress;
use crate::analysis::uniformity::Shape;
use crate::native::Kind;
use crate::runtime;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, Value};
use cranelift_codegen::isa::CallConv;
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Load, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};

/// How many passes ahead. Lines that are a power of two apart compete for the same cache sets, so
/// few may be in flight.
const AHEAD: i64 = 12;

/// The same where a prefetch is a call.
const AHEAD_BY_CALL: i64 = 2;

/// The size of a cache line in bytes.
const LINE: u32 = 64;

/// How many lines records of a group fill for those of the next group to be prefetched.
const FILLED: std::ops::RangeInclusive<i32> = 8..=32;

impl Emitter<'_> {
    /// Prefetches what the load of a row will load some passes later, if that is worthwhile. `host`
    /// is the address in the first thread.
    pub(super) fn prefetch(&mut self, load: &Load, host: Value) {
        let Some(fetch) = runtime::FETCH else { return };
        let row = self.lanes * load.extend.size * load.destinations.len() as u32;
        if self.lanes == 1 || row > LINE || load.operand.space != Space::Global {
            return;
        }
        let Some((slot, scale)) = self.advance_of(load) else { return };
        let step = self.b.use_var(self.variables[slot.0 as usize][0]);
        let step = match self.b.func.dfg.value_type(step) {
            I32 => self.b.ins().sextend(I64, step),
            I64 => step,
            _ => return,
        };
        let ahead = if self.is_wide() { AHEAD } else { AHEAD_BY_CALL };
        let more = self.b.ins().imul_imm_s(step, scale * ahead);
        let at = self.b.ins().iadd(host, more);
        if self.is_wide() {
            let offset = self.b.ins().iconst(I64, 0);
            self.intrinsic(Intrinsic::Prefetch, &[at, offset], None);
            return;
        }
        let mut signature = ir::Signature::new(CallConv::PreserveAll);
        signature.params.push(AbiParam::new(I64));
        let signature = self.b.import_signature(signature);
        let callee = self.b.ins().iconst(I64, fetch as *const () as i64);
        self.b.ins().call_indirect(signature, callee, &[at]);
    }

    /// Prefetches what the next group will access, if the threads of this one access records that
    /// follow each other and fill many lines. Such a group takes long, so that the processor does
    /// not come to the next one by itself while it waits, and the records are accessed in parts,
    /// not in their order.
    pub(super) fn prefetch_next_group(&mut self, places: &[HostAddress], writes: bool) {
        let (host, at) = places[0];
        let step = places.get(1).map_or(0, |place| place.1 - at);
        let rises = |(place, lane): (&HostAddress, i32)| *place == (host, at + lane * step);
        let span = step.saturating_mul(self.lanes as i32);
        if !self.is_wide()
            || !FILLED.contains(&(span / LINE as i32))
            || !places.iter().zip(0..).all(rises)
            || self.facts.prefetched.contains(&(host, writes))
        {
            return;
        }
        self.facts.prefetched.push((host, writes));
        let how = if writes { Intrinsic::PrefetchToWrite } else { Intrinsic::Prefetch };
        for line in (0..span).step_by(LINE as usize) {
            let offset = self.b.ins().iconst(I64, i64::from(at) + i64::from(span + line));
            self.intrinsic(how, &[host, offset], None);
        }
    }

    /// Returns the register that the address of a load advances by in every pass of its loop, and
    /// the factor. The pass must be one long block.
    fn advance_of(&self, load: &Load) -> Option<(Slot, i64)> {
        let flow = self.plan.flow;
        let index = flow.blocks.partition_point(|block| block.range.end <= self.pc);
        let block = &flow.blocks[index];
        let is_long = block.range.clone().any(|pc| matches!(flow.instruction(pc).op, Op::Atomic(_)));
        if !block.successors.contains(&block.range.start) || !is_long {
            return None;
        }
        let Base::Source(Source::Slot(mut slot)) = load.operand.base else { return None };
        let (mut at, mut scale) = (self.pc, 1i64);
        // Follows the address back to the register that counts the passes.
        while let Some(pc) = self.definition_in(block.range.start..at, slot) {
            let Op::Map(map) = &flow.instruction(pc).op else { return None };
            let native = self.plan.natives[(pc - flow.range.start) as usize]?;
            let sources = map.sources();
            let constant = |i: usize| match sources.get(i)? {
                Source::Constant(index) => Some(flow.code.constants[*index as usize][0] as i64),
                Source::Slot(_) => None,
            };
            let changes = |source: &Source| match source {
                Source::Slot(slot) => self.definition_in(block.range.clone(), *slot).map(|_| *slot),
                Source::Constant(_) => None,
            };
            let factor = match native.kind {
                Kind::MulWide { .. } | Kind::Mul => constant(1).or(constant(0))?,
                Kind::ShiftLeft => 1i64.checked_shl(u32::try_from(constant(1)?).ok()?)?,
                Kind::Copy | Kind::Add | Kind::AddConstant(_) | Kind::Extend { .. } => 1,
                _ => return None,
            };
            let mut changing = sources.iter().filter_map(changes);
            let (Some(next), None) = (changing.next(), changing.next()) else { return None };
            scale = scale.checked_mul(factor).filter(|scale| scale.unsigned_abs() < 1 << 16)?;
            (slot, at) = (next, pc);
        }
        let pc = self.definition_in(self.pc..block.range.end, slot)?;
        let Op::Map(map) = &flow.instruction(pc).op else { return None };
        let is_sum = self.plan.natives[(pc - flow.range.start) as usize]?.kind == Kind::Add;
        let step = match *map.sources() {
            [Source::Slot(counter), Source::Slot(step)] if counter == slot => step,
            [Source::Slot(step), Source::Slot(counter)] if counter == slot => step,
            _ => return None,
        };
        let stays = self.definition_in(block.range.clone(), step).is_none();
        let fits = is_sum && stays && self.plan.uniformity.get(step) == Shape::Uniform;
        fits.then_some((step, scale))
    }

    /// Returns the last definition of a register among some instructions.
    fn definition_in(&self, range: std::ops::Range<Pc>, slot: Slot) -> Option<Pc> {
        range.rev().find(|&pc| {
            let mut found = false;
            self.plan.flow.instruction(pc).for_each_definition(&mut |defined| found |= defined == slot);
            found
        })
    }
}
