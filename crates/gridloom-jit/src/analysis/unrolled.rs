//! Finds loops that the compiler of a kernel has unrolled, to make the passes one by one.
//!
//! For a loop over `start..bound`, `nvcc` writes two: one that makes the first few passes one by one
//! until four times some number are left, and one that makes four at a time. A thread that runs alone
//! mispredicts the ends of both if the number of passes differs from thread to thread, and often the
//! branches around them. If the second loop does what four passes of the first do, then the first can
//! make all passes, and one branch is mispredicted.
//!
//! That both are equal is found by executing them on [`terms`](crate::analysis::terms): pointers that
//! advance are the same function of the number of the element in both, and the other registers have
//! the same terms after four passes. The rest, the number of passes, is compared at run time with what
//! the code of the kernel found.

use crate::analysis::flow::{Flow, Role, SlotSet};
use crate::analysis::terms::{Form, State, Term, Terms};
use crate::native::{Class, Kind, Native};
use gridloom_interp::code::{Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::op::{Compare, LogicOp};
use std::ops::Range;

/// The most instructions of a loop, and those before it that are looked at.
const LONG: usize = 64;

/// A loop of which the passes can be made one by one.
#[derive(Clone, Debug)]
pub(crate) struct UnrolledLoop {
    /// The block that ends with the first branch.
    pub(crate) before: usize,
    /// Instructions between it and the first loop.
    pub(crate) entry: Range<Pc>,
    /// The instructions of a pass.
    pub(crate) pass: Vec<Pc>,
    /// The register with the number of the first element behind the entry, and one past the last.
    pub(crate) index: Slot,
    pub(crate) bound: Source,
    /// Whether both have a sign.
    pub(crate) signed: bool,
    /// The register with the number of passes.
    pub(crate) count: Slot,
    /// The block behind both loops.
    pub(crate) exit: usize,
}

/// Returns all such loops.
pub(crate) fn of(flow: &Flow<'_>, natives: &[Option<Native>]) -> Vec<UnrolledLoop> {
    (0..flow.blocks.len()).filter_map(|block| Finder::new(flow, natives, block)?.find()).collect()
}

/// The blocks of a pair of loops.
struct Finder<'a> {
    flow: &'a Flow<'a>,
    before: usize,
    entry: Range<Pc>,
    /// The first loop, without its branch.
    single: Range<Pc>,
    /// What follows it up to its branch, and then up to the second loop.
    between: [Range<Pc>; 2],
    /// The second loop, without its branch.
    unrolled: Range<Pc>,
    exit: usize,
    natives: &'a [Option<Native>],
}

impl<'a> Finder<'a> {
    fn new(flow: &'a Flow<'a>, natives: &'a [Option<Native>], single: usize) -> Option<Self> {
        let range = |block: usize| flow.blocks.get(block).map(|block| block.range.clone());
        // The target of the conditional branch at the end of a block.
        let target = |block: usize| {
            let last = flow.instruction(range(block)?.end - 1);
            match last.op {
                Op::Branch { target } if last.guard.is_some() => Some(target),
                _ => None,
            }
        };
        let is_loop =
            |block: usize| target(block).is_some_and(|pc| range(block).is_some_and(|r| r.start == pc));
        let falls = |block: usize| range(block).is_some_and(|r| flow.role(r.end - 1) == Role::Compiled);
        let short = |block: usize| range(block).is_some_and(|range| range.len() <= LONG);
        if !is_loop(single) || !short(single) {
            return None;
        }
        let middle = single + 1;
        let behind = flow.block_at(target(middle)?)?;
        let unrolled = if is_loop(middle + 1) { middle + 1 } else { middle + 2 };
        let leads = unrolled == middle + 1 || falls(middle + 1);
        if is_loop(middle) || !leads || !is_loop(unrolled) || behind != unrolled + 1 || !short(unrolled) {
            return None;
        }
        let start = range(middle)?.start;
        let (before, entry) = match single.checked_sub(1)? {
            before if target(before) == Some(start) => (before, range(single)?.start..range(single)?.start),
            entry if falls(entry) && flow.follows(entry) && target(entry - 1) == Some(start) => {
                (entry - 1, range(entry)?)
            }
            _ => return None,
        };
        let body = |block: usize| range(block).map(|range| range.start..range.end - 1);
        let end = range(middle)?.end;
        Some(Self {
            flow,
            before,
            entry,
            single: body(single)?,
            between: [body(middle)?, end..range(unrolled)?.start],
            unrolled: body(unrolled)?,
            exit: behind,
            natives,
        })
    }

    /// Returns a term that the branch behind some instructions depends on, and whether it is taken
    /// if the predicate is false.
    fn guard(&self, state: &State, branch: Pc) -> Option<(Term, bool)> {
        let guard = self.flow.instruction(branch).guard?;
        Some((state[guard.slot.0 as usize], guard.negated))
    }

    /// Returns the comparison of 32 bits that a term is.
    fn comparison(&self, terms: &Terms<'_>, term: Term) -> Option<(Compare, bool, [Term; 2])> {
        let Form::Computed(native, operands) = terms.form(term) else { return None };
        let Kind::Compare { compare, signed, combine: None, .. } = native.kind else { return None };
        let fits = native.operands[0] == Class::B32;
        Some((compare, signed, [*operands.first()?, *operands.get(1)?])).filter(|_| fits)
    }

    /// Returns whether a branch is taken if a term is zero, or, on request, if it is not.
    fn tests(&self, terms: &Terms<'_>, (guard, negated): (Term, bool), zero: bool) -> Option<Term> {
        let (compare, _, [of, with]) = self.comparison(terms, guard)?;
        let expected = if zero != negated { Compare::Eq } else { Compare::Ne };
        (compare == expected && *terms.form(with) == Form::Constant(0)).then_some(of)
    }

    fn find(&self) -> Option<UnrolledLoop> {
        let flow = self.flow;
        let slots = flow.code.functions[flow.function].slots;
        let terms = &mut Terms::new(flow, self.natives);
        let mut carried = SlotSet::new(slots);
        for pc in self.single.start..self.unrolled.end {
            flow.instruction(pc).for_each_definition(&mut |slot| {
                carried.insert(slot);
            });
        }
        let ahead = flow.blocks[self.before].range.clone();
        let branch = ahead.end - 1;
        let from = ahead.start.max(branch.saturating_sub(LONG as Pc));
        let mut start: State = (0..slots).map(|slot| terms.of(Form::Start(slot))).collect();
        terms.run(&mut start, from..branch, true)?;
        let at_branch = start.clone();
        terms.run(&mut start, self.entry.clone(), false)?;

        // How many passes the first loop makes.
        let passing = |terms: &mut Terms<'_>| -> State {
            let mut state = start.clone();
            for Slot(slot) in carried.iter() {
                state[slot as usize] = terms.of(Form::Pass(slot));
            }
            state
        };
        let mut state = passing(terms);
        terms.run(&mut state, self.single.clone(), false)?;
        let left = self.tests(terms, self.guard(&state, self.single.end)?, false)?;
        let Form::Plus(counter, more, 32) = *terms.form(left) else { return None };
        let Form::Pass(counter) = *terms.form(counter) else { return None };
        if more != u64::from(u32::MAX) || state[counter as usize] != left {
            return None;
        }
        let rest = start[counter as usize];
        let Form::Computed(Native { kind: Kind::Logic(LogicOp::And), .. }, of) = terms.form(rest).clone()
        else {
            return None;
        };
        let (&Form::Constant(mask), passes) = (terms.form(*of.get(1)?), of[0]) else { return None };
        let times = mask + 1;
        let skips = self.tests(terms, self.guard(&at_branch, branch)?, true)?;
        if !times.is_power_of_two() || !(2..=16).contains(&times) || skips != rest {
            return None;
        }
        // Where that number is.
        let keeps = |slot: u32| at_branch[slot as usize] == passes && start[slot as usize] == passes;
        let count = Slot((0..slots).find(|&slot| keeps(slot) && !carried.contains(Slot(slot)))?);

        // The element that a pass of the second loop is for.
        let mut state = passing(terms);
        terms.run(&mut state, self.unrolled.clone(), false)?;
        let (guard, negated) = self.guard(&state, self.unrolled.end)?;
        let (compare, signed, [next, _]) = self.comparison(terms, guard)?;
        let Form::Plus(index, step, 32) = *terms.form(next) else { return None };
        let Form::Pass(index) = *terms.form(index) else { return None };
        let less = matches!((compare, signed), (Compare::Lt, _) | (Compare::Lo, false));
        if negated || !less || step != times || state[index as usize] != next {
            return None;
        }
        let bound = self.bound()?;
        if matches!(bound, Source::Slot(slot) if carried.contains(slot)) {
            return None;
        }
        let index = Slot(index);
        terms.assume_index(signed, times);
        self.prove(terms, (&start, &at_branch), &carried, index, (passes, times))?;

        let mut wanted = flow.blocks[self.exit].live_in.clone();
        let pass = self.needed(&mut wanted);
        let (entry, exit) = (self.entry.clone(), self.exit);
        Some(UnrolledLoop { before: self.before, entry, pass, index, bound, signed, count, exit })
    }

    /// Returns what the second loop compares the number of the next element with.
    fn bound(&self) -> Option<Source> {
        let guard = self.flow.instruction(self.unrolled.end).guard?;
        let mut bound = None;
        for pc in self.unrolled.clone() {
            let instruction = self.flow.instruction(pc);
            instruction.for_each_definition(&mut |slot| {
                if slot == guard.slot {
                    bound = match &instruction.op {
                        Op::Map(map) => map.sources().get(1).copied(),
                        _ => None,
                    };
                }
            });
        }
        bound
    }

    /// Returns the instructions of a pass of the first loop that wanted registers depend on.
    fn needed(&self, wanted: &mut SlotSet) -> Vec<Pc> {
        let mut needed: Vec<Pc> = Vec::new();
        loop {
            let before = needed.len();
            for pc in self.single.clone().rev() {
                let instruction = self.flow.instruction(pc);
                let mut is_needed = false;
                instruction.for_each_definition(&mut |slot| is_needed |= wanted.contains(slot));
                if is_needed && !needed.contains(&pc) {
                    needed.push(pc);
                    instruction.for_each_use(&mut |source| {
                        if let Source::Slot(slot) = source {
                            wanted.insert(slot);
                        }
                    });
                }
            }
            if needed.len() == before {
                needed.sort_unstable();
                return needed;
            }
        }
    }

    /// Returns whether the second loop does in a pass what the first does in so many.
    fn prove(
        &self,
        terms: &mut Terms<'_>,
        (start, at_branch): (&State, &State),
        carried: &SlotSet,
        index: Slot,
        (passes, times): (Term, u64),
    ) -> Option<()> {
        let flow = self.flow;
        let at = |state: &State, Slot(slot): Slot| state[slot as usize];
        let element = terms.of(Form::Index);
        let first = at(start, index);
        if matches!(terms.form(first), Form::Constant(_)) {
            return None;
        }
        // Registers that are a function of the element: those that are before the first pass, and
        // remain so.
        let mut functions: Vec<(Slot, Term)> = Vec::new();
        for slot in carried.iter().filter(|&slot| slot != index) {
            functions.push((slot, terms.replaced(at(start, slot), first, element)));
        }
        let state_of = |terms: &mut Terms<'_>, functions: &[(Slot, Term)]| -> State {
            let mut state = start.clone();
            for slot in carried.iter() {
                state[slot.0 as usize] = terms.of(Form::Pass(slot.0));
            }
            for &(slot, function) in functions {
                state[slot.0 as usize] = function;
            }
            state[index.0 as usize] = element;
            state
        };
        let next = terms.plus(element, 1, 32);
        let mut state = loop {
            let mut state = state_of(terms, &functions);
            terms.run(&mut state, self.single.clone(), false)?;
            if at(&state, index) != next {
                return None;
            }
            let count = functions.len();
            functions.retain(|&(slot, function)| at(&state, slot) == terms.replaced(function, element, next));
            if functions.len() == count {
                break state;
            }
        };
        for _ in 1..times {
            terms.run(&mut state, self.single.clone(), false)?;
        }
        let after_passes = state;

        // From the end of the first loop to the start of the second.
        let before = state_of(terms, &functions);
        let mut state = before.clone();
        terms.run(&mut state, self.between[0].clone(), false)?;
        let (guard, negated) = self.guard(&state, self.between[0].end)?;
        let (compare, signed, [of, with]) = self.comparison(terms, guard)?;
        let skips = matches!((compare, signed), (Compare::Lt | Compare::Lo, false))
            && of == terms.plus(passes, u64::MAX, 32)
            && *terms.form(with) == Form::Constant(times - 1);
        if negated || !skips {
            return None;
        }
        let wanted = &flow.blocks[self.exit].live_in;
        let unchanged = |state: &State| {
            carried
                .iter()
                .filter(|&slot| wanted.contains(slot))
                .all(|slot| at(state, slot) == at(&before, slot))
        };
        if !unchanged(&state) {
            return None;
        }
        terms.run(&mut state, self.between[1].clone(), false)?;
        let entered = state.clone();
        terms.run(&mut state, self.unrolled.clone(), false)?;
        let last = terms.plus(element, times, 32);
        if !unchanged(&entered) || at(&entered, index) != element || at(&state, index) != last {
            return None;
        }
        // What a pass of the second loop finds is the same function of the element in the next one,
        // or what so many passes of the first loop make of it.
        let is_passed = |form: &Form| matches!(form, Form::Pass(_));
        let is_same = |slot: Slot| {
            at(&entered, slot) == at(&before, slot)
                && matches!(*terms.form(at(&before, slot)), Form::Pass(own) if own == slot.0)
                && at(&state, slot) == at(&after_passes, slot)
        };
        let head = &flow.blocks[flow.block_at(self.unrolled.start)?].live_in;
        let (same, others): (Vec<Slot>, Vec<Slot>) = carried
            .iter()
            .filter(|&slot| slot != index && head.contains(slot))
            .partition(|&slot| is_same(slot));
        if carried.iter().any(|slot| slot != index && wanted.contains(slot) && !same.contains(&slot)) {
            return None;
        }
        for slot in others {
            let function = at(&entered, slot);
            let advanced = terms.replaced(function, element, last);
            if terms.depends(function, is_passed) || at(&state, slot) != advanced {
                return None;
            }
        }
        // The instructions before the first loop are not executed if it makes no pass. What is read
        // behind it must not depend on that.
        let middle = &flow.blocks[flow.block_at(self.between[0].start)?].live_in;
        let mut holds = at(start, index) == at(at_branch, index);
        for pc in self.entry.clone() {
            flow.instruction(pc).for_each_definition(&mut |slot| {
                let read = middle.contains(slot) || wanted.contains(slot);
                holds &= !read || at(start, slot) == at(at_branch, slot);
            });
        }
        (holds && !terms.is_full()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native;
    use gridloom_interp::{Layout, Program};
    use std::sync::Arc;

    /// Returns how many loops of a kernel are found.
    fn found(text: &str, kernel: &str) -> usize {
        let module = gridloom_ptx::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let layout = Layout::of(&module).unwrap();
        let program = Program::new(Arc::new(module), layout, vec![]);
        let kernel = program.kernel(kernel).unwrap_or_else(|error| panic!("{error}"));
        let flow = Flow::of(kernel.code(), 0, 1);
        let natives: Vec<Option<Native>> = (flow.range.clone())
            .map(|pc| native::native(kernel.module(), kernel.code(), 0, flow.instruction(pc)))
            .collect();
        of(&flow, &natives).len()
    }

    #[test]
    fn loops_that_nvcc_has_unrolled_are_found() {
        let products = include_str!("../../../gridloom/benches/pocl/kernels.ptx");
        assert_eq!(found(products, "spmv"), 1);
        assert_eq!(found(products, "matmul"), 0);
        let sums = include_str!("../../../gridloom/benches/pocl/programs.ptx");
        assert_eq!(found(sums, "segment_sums"), 1);
    }
}
