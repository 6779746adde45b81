//! The passes of a loop that was unrolled, made one by one (`analysis::unrolled`).
//!
//! The code is written before the branch to the first of both loops. It leaves to what follows
//! both, or goes on to the branch if the number of passes is not what the analysis expects, or so
//! large that others should run meanwhile. No instruction of it can leave at another place.

use super::Emitter;
use crate::analysis::flow::SlotSet;
use crate::analysis::range::Access;
use crate::analysis::unrolled::{Check, UnrolledLoop};
use crate::native::Class;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use gridloom_interp::Space;
use gridloom_interp::code::{Op, Pc};
use gridloom_interp::lanes::Source;

impl Emitter<'_> {
    /// Returns whether an instruction cannot leave the code.
    fn always_goes_on(&self, pc: Pc) -> bool {
        let flow = self.plan.flow;
        let Some(access) = Access::of(flow, pc) else {
            return matches!(flow.instruction(pc).op, Op::Map(_) | Op::Nothing);
        };
        match access.operand.space {
            Space::Global | Space::Const => self.plan.bounds_checks.is_good(access.operand, access.align),
            Space::Shared => self.plan.ranges.is_inside(&access, self.shared_bytes),
            _ => false,
        }
    }

    /// Emits the passes of a loop, before the branch at the end of a block, if they begin there.
    pub(super) fn make_passes_behind(&mut self, block: usize) {
        let plan = self.plan;
        let Some(unrolled) = plan.unrolled.iter().find(|unrolled| unrolled.before == block) else { return };
        let UnrolledLoop { entry, pass, index, signed, count, check, exit, .. } = unrolled;
        if self.lanes > 1 || !entry.iter().chain(pass).all(|&pc| self.always_goes_on(pc)) {
            return;
        }
        let flow = plan.flow;
        let (branch, live, facts) = (self.pc, self.live.clone(), self.facts.clone());
        // What the entry writes and the branch may need as it was.
        let mut written = SlotSet::new(plan.noncanonical_nan.len() as u32);
        for &pc in entry {
            flow.instruction(pc).for_each_definition(&mut |slot| {
                if flow.blocks[block].live_out.contains(slot) {
                    written.insert(slot);
                }
            });
        }
        let held = self.hold(&written);
        for &pc in entry {
            self.pc = pc;
            self.instruction(flow.instruction(pc));
        }
        self.pc = branch;
        // Whatever is read in a pass or behind the last one.
        for (block, at) in flow.blocks.iter().enumerate() {
            if block == *exit || pass.first().is_some_and(|pc| at.range.contains(pc)) {
                self.live.union(&at.live_in);
                self.live.union(&at.live_out);
            }
        }
        self.settle_pending();

        let slow = self.b.create_block();
        let word = |emitter: &mut Self, source: Source| {
            let value = emitter.get(source, Class::B32);
            emitter.lane(&value, Class::B32, 0)
        };
        let [index, passes] = [*index, *count].map(|slot| word(self, Source::Slot(slot)));
        let end = match *check {
            Check::End(end) => word(self, end),
            _ => self.b.ins().iadd(index, passes),
        };
        let (found, expected) = match *check {
            Check::End(_) => (self.b.ins().isub(end, index), passes),
            Check::Sum(times, slot) | Check::Passes(times, slot) => {
                let found = word(self, Source::Slot(slot));
                let at_once = self.b.ins().band_imm_s(passes, -(times as i64));
                match check {
                    Check::Passes(..) => (found, at_once),
                    _ => {
                        let next = self.b.ins().iadd(index, at_once);
                        (self.b.ins().iadd(found, next), self.b.ins().iconst(I32, 0))
                    }
                }
            }
        };
        let less = if *signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let fuel = self.b.use_var(self.fuel);
        for (condition, a, b) in
            [(less, index, end), (IntCC::Equal, found, expected), (IntCC::UnsignedLessThan, passes, fuel)]
        {
            let go_on = self.b.create_block();
            let holds = self.b.ins().icmp(condition, a, b);
            self.b.ins().brif(holds, go_on, &[], slow, &[]);
            self.go_on_in(go_on);
        }
        let rest = self.b.ins().isub(fuel, passes);
        self.b.def_var(self.fuel, rest);
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let left = self.b.declare_var(I32);
        self.b.def_var(left, passes);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        self.forget_all();
        self.forget_constants();
        for &pc in pass {
            self.pc = pc;
            self.instruction(flow.instruction(pc));
        }
        self.pc = branch;
        self.settle_pending();
        let passes = self.b.use_var(left);
        let passes = self.b.ins().iadd_imm_s(passes, -1);
        self.b.def_var(left, passes);
        self.b.ins().brif(passes, head, &[], done, &[]);
        self.b.seal_block(head);
        self.go_on_in(done);
        self.b.ins().jump(self.blocks[*exit], &[]);

        self.go_on_in(slow);
        for (variable, value) in held {
            self.b.def_var(variable, value);
        }
        self.forget_all();
        (self.live, self.facts, self.trunk) = (live, facts, None);
    }
}
