//! Finds loops that the compiler of a kernel has unrolled, to make the passes one by one.
//!
//! For a loop over `start..bound`, `nvcc` writes two: one that makes passes one by one until four
//! times some number are left, and one that makes four at a time, in either order. A thread that
//! runs alone mispredicts the ends of both if the number of passes differs from thread to thread,
//! and often the branches around them. If the one loop does what four passes of the other do, then
//! that can make all passes, and one branch is mispredicted.
//!
//! That both are equal is found by executing them on [`terms`](crate::analysis::terms): pointers
//! that advance are the same function of the number of the element in both, and the other registers
//! have the same terms after four passes. The rest, the number of passes, is compared at run time
//! with what the code of the kernel found.

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
    /// Instructions to execute before the first pass.
    pub(crate) entry: Vec<Pc>,
    /// The instructions of a pass.
    pub(crate) pass: Vec<Pc>,
    /// The register with the number of the first element, and whether that has a sign.
    pub(crate) index: Slot,
    pub(crate) signed: bool,
    /// The register with the number of passes.
    pub(crate) count: Slot,
    /// What must hold of that number.
    pub(crate) check: Check,
    /// The block behind both loops.
    pub(crate) exit: usize,
}

/// What shows that both loops together make a number of passes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// This is one past the last element.
    End(Source),
    /// The second is zero behind the passes that are made so many at a time, if it is added to the
    /// number of the next element.
    Sum(u64, Slot),
    /// The second is the number of the passes that are made so many at a time.
    Passes(u64, Slot),
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
    first: Range<Pc>,
    /// What follows it up to its branch, and then up to the second loop.
    between: [Range<Pc>; 2],
    /// The second loop, without its branch.
    second: Range<Pc>,
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
            first: body(single)?,
            between: [body(middle)?, end..range(unrolled)?.start],
            second: body(unrolled)?,
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
        for pc in self.first.start..self.second.end {
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
        let guard = self.guard(&at_branch, branch)?;
        let around = Around { start, at_branch, carried, guard };
        if let Some(found) = self.find_rest_first(terms, &around) {
            return Some(found);
        }
        self.find_rest_last(terms, &around)
    }

    /// Returns what registers hold in a pass of a loop, and after it.
    fn passed(&self, terms: &mut Terms<'_>, around: &Around, of: &Range<Pc>) -> Option<State> {
        let mut state = around.start.clone();
        for Slot(slot) in around.carried.iter() {
            state[slot as usize] = terms.of(Form::Pass(slot));
        }
        terms.run(&mut state, of.clone(), false)?;
        Some(state)
    }

    /// Returns the register that counts the passes left in a loop made one by one.
    fn counter(&self, terms: &Terms<'_>, state: &State, branch: Pc) -> Option<Slot> {
        let left = self.tests(terms, self.guard(state, branch)?, false)?;
        let Form::Plus(counter, more, 32) = *terms.form(left) else { return None };
        let Form::Pass(counter) = *terms.form(counter) else { return None };
        let counts = more == u64::from(u32::MAX) && state[counter as usize] == left;
        counts.then_some(Slot(counter))
    }

    /// Returns the number of passes whose rest a term is, and how many are made at a time.
    fn rest_of(&self, terms: &Terms<'_>, rest: Term) -> Option<(Term, u64)> {
        let Form::Computed(Native { kind: Kind::Logic(LogicOp::And), .. }, of) = terms.form(rest) else {
            return None;
        };
        let (&passes, &Form::Constant(mask)) = (of.first()?, terms.form(*of.get(1)?)) else { return None };
        let times = mask + 1;
        (times.is_power_of_two() && (2..=16).contains(&times)).then_some((passes, times))
    }

    /// Returns a register that holds a term before both loops and is not written in them.
    fn holding(&self, around: &Around, term: Term) -> Option<Slot> {
        let holds =
            |slot: &u32| around.start[*slot as usize] == term && !around.carried.contains(Slot(*slot));
        (0..around.start.len() as u32).find(holds).map(Slot)
    }

    /// Returns whether a branch is taken if fewer passes are left than are made at a time.
    fn are_few(&self, terms: &mut Terms<'_>, guard: (Term, bool), (passes, times): (Term, u64)) -> bool {
        let Some((compare, signed, [of, with])) = self.comparison(terms, guard.0) else { return false };
        !guard.1
            && matches!((compare, signed), (Compare::Lt | Compare::Lo, false))
            && of == terms.plus(passes, u64::MAX, 32)
            && *terms.form(with) == Form::Constant(times - 1)
    }

    /// Finds a loop whose rest is made first.
    fn find_rest_first(&self, terms: &mut Terms<'_>, around: &Around) -> Option<UnrolledLoop> {
        let Around { start, at_branch, carried, guard } = around;
        let state = self.passed(terms, around, &self.first)?;
        let counter = self.counter(terms, &state, self.first.end)?;
        let rest = start[counter.0 as usize];
        let (passes, times) = self.rest_of(terms, rest)?;
        let count = self.holding(around, passes)?;
        if self.tests(terms, *guard, true)? != rest || at_branch[count.0 as usize] != passes {
            return None;
        }
        // The element that a pass of the second loop is for.
        let state = self.passed(terms, around, &self.second)?;
        let (guard, negated) = self.guard(&state, self.second.end)?;
        let (compare, signed, [next, _]) = self.comparison(terms, guard)?;
        let Form::Plus(index, step, 32) = *terms.form(next) else { return None };
        let Form::Pass(index) = *terms.form(index) else { return None };
        let less = matches!((compare, signed), (Compare::Lt, _) | (Compare::Lo, false));
        if negated || !less || step != times || state[index as usize] != next {
            return None;
        }
        let end = self.end()?;
        if matches!(end, Source::Slot(slot) if carried.contains(slot)) {
            return None;
        }
        let index = Slot(index);
        terms.assume_index(signed, times);
        let entered = self.prove(terms, around, index, (times, [1, times]), None)?;
        if !self.are_few(terms, entered, (passes, times)) {
            return None;
        }
        let entry = self.entry.clone().collect();
        Some(self.found(entry, &self.first, (index, signed), count, Check::End(end)))
    }

    /// Finds a loop whose rest is made last.
    fn find_rest_last(&self, terms: &mut Terms<'_>, around: &Around) -> Option<UnrolledLoop> {
        let (flow, Around { start, carried, guard, .. }) = (self.flow, around);
        let state = self.passed(terms, around, &self.second)?;
        let counter = self.counter(terms, &state, self.second.end)?;
        let rest = start[counter.0 as usize];
        let (passes, times) = self.rest_of(terms, rest)?;
        let count = self.holding(around, passes)?;
        let state = self.passed(terms, around, &self.first)?;
        let few = self.are_few(terms, *guard, (passes, times));
        if !few || state[counter.0 as usize] != terms.of(Form::Pass(counter.0)) {
            return None;
        }
        // When the first loop ends: when a counter of its own is zero, or a sum with the element.
        let left = self.tests(terms, self.guard(&state, self.first.end)?, false)?;
        let Form::Plus(of, step, 32) = *terms.form(left) else { return None };
        let is_step = |more: u64| more == times;
        for index in carried.iter() {
            let own = terms.of(Form::Pass(index.0));
            if state[index.0 as usize] != terms.plus(own, times, 32) || own == state[index.0 as usize] {
                continue;
            }
            let check = match *terms.form(of) {
                Form::Pass(left) if step == (times as u32).wrapping_neg().into() => {
                    let mut stays = true;
                    for pc in self.between.iter().cloned().flatten() {
                        flow.instruction(pc).for_each_definition(&mut |slot| stays &= slot.0 != left);
                    }
                    stays.then_some(Check::Passes(times, Slot(left)))
                }
                Form::Sum(a, b, 32) if is_step(step) && (a == own || b == own) => {
                    let with = if a == own { b } else { a };
                    self.holding(around, with).map(|slot| Check::Sum(times, slot))
                }
                _ => None,
            };
            let Some(check) = check else { continue };
            for signed in [false, true] {
                terms.assume_index(signed, times);
                let proved = self.prove(terms, around, index, (times, [times, 1]), Some(counter));
                // The first loop leaves the counter of the second as it is.
                let own = terms.of(Form::Pass(counter.0));
                if let Some(entered) = proved
                    && self.tests(terms, entered, true).is_some_and(|of| of == rest || of == own)
                {
                    let entry = self.entry.clone().chain(self.between[0].clone());
                    let entry = entry.chain(self.between[1].clone()).collect();
                    return Some(self.found(entry, &self.second, (index, signed), count, check));
                }
            }
        }
        None
    }

    fn found(
        &self,
        entry: Vec<Pc>,
        single: &Range<Pc>,
        (index, signed): (Slot, bool),
        count: Slot,
        check: Check,
    ) -> UnrolledLoop {
        let mut wanted = self.flow.blocks[self.exit].live_in.clone();
        let pass = self.needed(single, &mut wanted);
        UnrolledLoop { before: self.before, entry, pass, index, signed, count, check, exit: self.exit }
    }

    /// Returns what the second loop compares the number of the next element with.
    fn end(&self) -> Option<Source> {
        let guard = self.flow.instruction(self.second.end).guard?;
        let mut end = None;
        for pc in self.second.clone() {
            let instruction = self.flow.instruction(pc);
            instruction.for_each_definition(&mut |slot| {
                if slot == guard.slot {
                    end = match &instruction.op {
                        Op::Map(map) => map.sources().get(1).copied(),
                        _ => None,
                    };
                }
            });
        }
        end
    }

    /// Returns the instructions of a pass that wanted registers depend on.
    fn needed(&self, single: &Range<Pc>, wanted: &mut SlotSet) -> Vec<Pc> {
        let mut needed: Vec<Pc> = Vec::new();
        loop {
            let before = needed.len();
            for pc in single.clone().rev() {
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

    /// Returns the guard of the branch between both loops if they do the same in `times` passes, of
    /// which each makes so many at a time. `counter` counts those of the second.
    fn prove(
        &self,
        terms: &mut Terms<'_>,
        around: &Around,
        index: Slot,
        (times, steps): (u64, [u64; 2]),
        counter: Option<Slot>,
    ) -> Option<(Term, bool)> {
        let flow = self.flow;
        let Around { start, at_branch, carried, .. } = around;
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
        let [next, last] = steps.map(|step| terms.plus(element, step, 32));
        let (before, mut after_first) = loop {
            let mut before = start.clone();
            for slot in carried.iter() {
                before[slot.0 as usize] = terms.of(Form::Pass(slot.0));
            }
            for &(slot, function) in &functions {
                before[slot.0 as usize] = function;
            }
            before[index.0 as usize] = element;
            let mut state = before.clone();
            terms.run(&mut state, self.first.clone(), false)?;
            if at(&state, index) != next {
                return None;
            }
            let count = functions.len();
            functions.retain(|&(slot, function)| at(&state, slot) == terms.replaced(function, element, next));
            if functions.len() == count {
                break (before, state);
            }
        };
        for _ in 1..times / steps[0] {
            terms.run(&mut after_first, self.first.clone(), false)?;
        }

        // From the end of the first loop to the start of the second.
        let mut state = before.clone();
        terms.run(&mut state, self.between[0].clone(), false)?;
        let guard = self.guard(&state, self.between[0].end)?;
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
        if !unchanged(&entered) || at(&entered, index) != element {
            return None;
        }
        let mut advances = false;
        for pc in self.second.clone() {
            flow.instruction(pc).for_each_definition(&mut |slot| advances |= slot == index);
        }
        // What does not follow the passes must not be read in them.
        for slot in counter.into_iter().chain((!advances).then_some(index)) {
            state[slot.0 as usize] = terms.of(Form::Pass(slot.0));
        }
        terms.run(&mut state, self.second.clone(), false)?;
        if advances && at(&state, index) != last || !advances && wanted.contains(index) {
            return None;
        }
        let after_one = state.clone();
        for _ in 1..times / steps[1] {
            terms.run(&mut state, self.second.clone(), false)?;
        }
        // What a pass of the second loop finds is the same function of the element in the next one,
        // or what both make of it in so many passes.
        let is_passed = |form: &Form| matches!(form, Form::Pass(_));
        let is_same = |slot: Slot| {
            at(&entered, slot) == at(&before, slot)
                && matches!(*terms.form(at(&before, slot)), Form::Pass(own) if own == slot.0)
                && at(&state, slot) == at(&after_first, slot)
        };
        let head = &flow.blocks[flow.block_at(self.second.start)?].live_in;
        let read = |slot: &Slot| *slot != index && Some(*slot) != counter && head.contains(*slot);
        let (same, others): (Vec<Slot>, Vec<Slot>) =
            carried.iter().filter(read).partition(|&slot| is_same(slot));
        if carried.iter().any(|slot| slot != index && wanted.contains(slot) && !same.contains(&slot)) {
            return None;
        }
        for slot in others {
            let function = at(&entered, slot);
            let advanced = terms.replaced(function, element, last);
            if terms.depends(function, is_passed) || at(&after_one, slot) != advanced {
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
        (holds && !terms.is_full()).then_some(guard)
    }
}

/// What is known before both loops.
struct Around {
    /// What registers hold before the first loop, and at the branch that skips it.
    start: State,
    at_branch: State,
    /// The registers that are written in the loops or between them.
    carried: SlotSet,
    /// What that branch depends on.
    guard: (Term, bool),
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

    #[test]
    fn loops_whose_rest_is_made_last_are_found() {
        let hashes = include_str!("../../tests/suite/unrolled/rest_last.ptx");
        assert_eq!(found(hashes, "checksum"), 1);
        assert_eq!(found(hashes, "segment_max"), 1);
    }
}
