//! The passes of a loop that was unrolled, made one by one (`analysis::unrolled`).
//!
//! The code is written before the branch to the first of both loops. It leaves to what follows
//! both, or goes on to the branch if the number of passes is not what the analysis expects, or so
//! large that others should run meanwhile. No instruction of it can leave at another place.
//!
//! The pass is written several times, each with a branch to the end. The loop has one counter, the
//! number of the element in 64 bits. Pointers that advance by the size of an element are computed from
//! it, which is part of each access. What a pass only reads is a parameter of the loop: a value of its
//! own there, which stays in a register even if the register allocator keeps the value in memory
//! elsewhere.

use super::Emitter;
use crate::analysis::flow::SlotSet;
use crate::analysis::range::Access;
use crate::analysis::unrolled::{Check, UnrolledLoop};
use crate::native::{Class, Kind};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use cranelift_frontend::Variable;
use gridloom_interp::Space;
use gridloom_interp::code::{Op, Pc};
use gridloom_interp::lanes::{Slot, Source};

/// The most instructions of a pass that is written four times; others are written twice. A taken branch
/// costs a cycle, in which a short pass could be made.
const SHORT: usize = 8;

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
        let [first, last] = [index, end].map(|value| match signed {
            true => self.b.ins().sextend(I64, value),
            false => self.b.ins().uextend(I64, value),
        });
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let number = self.b.append_block_param(head, I64);
        let (advancing, kept) = self.advancing(unrolled);
        // Where pointers were for element 0.
        let advancing: Vec<(Slot, Value, i64)> = advancing
            .into_iter()
            .map(|(slot, step)| {
                let at = self.b.use_var(self.variables[slot.0 as usize][0]);
                let gone = self.b.ins().ishl_imm_u(first, i64::from(step.trailing_zeros()));
                (slot, self.b.ins().isub(at, gone), step)
            })
            .collect();
        let kept: Vec<(Variable, Value, Value)> = kept
            .into_iter()
            .map(|slot| {
                let variable = self.variables[slot.0 as usize][0];
                let value = self.b.use_var(variable);
                let ty = self.b.func.dfg.value_type(value);
                (variable, value, self.b.append_block_param(head, ty))
            })
            .collect();
        let times = match pass.len() {
            0..=SHORT => 4,
            _ => 2,
        };
        let lasts: Vec<Value> = (1..times).map(|time| self.b.ins().iadd_imm_s(last, -time)).collect();
        let arguments: Vec<BlockArg> = std::iter::once(first)
            .chain(kept.iter().map(|&(_, value, _)| value))
            .map(BlockArg::from)
            .collect();
        self.b.ins().jump(head, &arguments);
        self.b.switch_to_block(head);
        self.forget_all();
        self.forget_constants();
        for &(variable, _, param) in &kept {
            self.b.def_var(variable, param);
        }
        let counter = self.variables[unrolled.index.0 as usize][0];
        for time in 0..times {
            self.put_advanced(&advancing, number, time);
            let element = self.b.ins().iadd_imm_s(number, time);
            let short = self.b.ins().ireduce(I32, element);
            let register = self.convert(short, Class::B32, self.storage(unrolled.index));
            self.b.def_var(counter, register);
            self.widened_number = Some((short, element, *signed));
            for &pc in pass {
                self.pc = pc;
                self.instruction(flow.instruction(pc));
            }
            self.widened_number = None;
            self.settle_pending();
            self.forget_all();
            if let Some(&last) = lasts.get(time as usize) {
                let more = self.b.create_block();
                let ends = self.b.ins().icmp(IntCC::Equal, number, last);
                self.b.ins().brif(ends, done, &[], more, &[]);
                self.go_on_in(more);
            }
        }
        self.pc = branch;
        let next = self.b.ins().iadd_imm_s(number, times);
        let more = self.b.ins().icmp(IntCC::NotEqual, next, last);
        let arguments: Vec<BlockArg> = std::iter::once(next)
            .chain(kept.iter().map(|&(_, _, param)| param))
            .map(BlockArg::from)
            .collect();
        self.b.ins().brif(more, head, &arguments, done, &[]);
        self.b.seal_block(head);
        self.go_on_in(done);
        for (variable, value, _) in kept {
            self.b.def_var(variable, value);
        }
        self.put_advanced(&advancing, last, 0);
        let short = self.b.ins().ireduce(I32, last);
        let register = self.convert(short, Class::B32, self.storage(unrolled.index));
        self.b.def_var(counter, register);
        self.b.ins().jump(self.blocks[*exit], &[]);

        self.go_on_in(slow);
        for (variable, value) in held {
            self.b.def_var(variable, value);
        }
        self.forget_all();
        (self.live, self.facts, self.trunk) = (live, facts, None);
    }
    /// Returns the pointers that a pass advances by the size of an element, with that size, and the
    /// registers that it only reads.
    fn advancing(&self, unrolled: &UnrolledLoop) -> (Vec<(Slot, i64)>, Vec<Slot>) {
        let flow = self.plan.flow;
        let (mut written, mut read): (Vec<Slot>, Vec<Slot>) = (Vec::new(), Vec::new());
        let mut advancing = Vec::new();
        for &pc in &unrolled.pass {
            let instruction = flow.instruction(pc);
            instruction.for_each_definition(&mut |slot| written.push(slot));
            instruction.for_each_use(&mut |source| {
                if let Source::Slot(slot) = source
                    && !read.contains(&slot)
                {
                    read.push(slot);
                }
            });
            if let Some(found) = self.advance(pc) {
                advancing.push(found);
            }
        }
        advancing.retain(|(slot, _)| written.iter().filter(|other| *other == slot).count() == 1);
        read.retain(|slot| *slot != unrolled.index && !written.contains(slot));
        (advancing, read)
    }

    /// Returns a register of 64 bits to which an instruction adds the size of an element.
    fn advance(&self, pc: Pc) -> Option<(Slot, i64)> {
        let instruction = self.plan.flow.instruction(pc);
        let Op::Map(map) = &instruction.op else { return None };
        let native = self.plan.natives[(pc - self.plan.flow.range.start) as usize]?;
        let (&[slot], None) = (map.destinations(), instruction.guard) else { return None };
        let (source, step) = match (native.kind, map.sources()) {
            (Kind::AddConstant(step), &[source]) => (source, step),
            (Kind::Add, &[source, Source::Constant(index)] | &[Source::Constant(index), source]) => {
                (source, self.plan.flow.code.constants[index as usize][0])
            }
            _ => return None,
        };
        let fits = source == Source::Slot(slot) && self.storage(slot) == Class::B64;
        (fits && native.result == Class::B64 && matches!(step, 1 | 2 | 4 | 8)).then_some((slot, step as i64))
    }

    /// Gives registers that advance in each pass what they hold at an element, `more` behind the one
    /// of a number.
    fn put_advanced(&mut self, advancing: &[(Slot, Value, i64)], number: Value, more: i64) {
        for &(slot, start, step) in advancing {
            let gone = self.b.ins().ishl_imm_u(number, i64::from(step.trailing_zeros()));
            let at = self.b.ins().iadd(start, gone);
            let at = self.b.ins().iadd_imm_s(at, step * more);
            self.b.def_var(self.variables[slot.0 as usize][0], at);
        }
    }
}
