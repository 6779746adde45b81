//! Programs that take few steps to optimise, though there are exponentially many ways through their
//! values or loops.

use super::{MOST, count, optimize};
use crate::ir::{Effect, Inst, Label, Operand, Program, Reg, Site, Stmt, Target, Ty};

/// How often a value is computed from the one before. Each has two ways to it.
const LEVELS: usize = 60;

/// How long a chain of values is. A recursion this deep overflows the stack.
const CHAIN: usize = 9_000;

/// Builds a program.
#[derive(Default)]
struct Builder {
    regs: Vec<Ty>,
}

impl Builder {
    /// Returns a register that nothing writes, with any value.
    fn any(&mut self, ty: Ty) -> Operand {
        self.regs.push(ty);
        Operand::Reg(Reg(self.regs.len() as u32 - 1))
    }

    fn compute(
        &mut self,
        list: &mut Vec<Stmt>,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        args: &[Operand],
    ) -> Operand {
        let dst = self.any(ty);
        list.push(assigned(op, suffix, dst, args));
        dst
    }

    fn logic(&mut self, list: &mut Vec<Stmt>, op: &'static str, args: &[Operand]) -> Operand {
        self.compute(list, op, "pred", Ty::Bool, args)
    }

    /// Returns a condition that nothing is known about.
    fn condition(&mut self, list: &mut Vec<Stmt>) -> Operand {
        let (a, b) = (self.any(Ty::U32), self.any(Ty::U32));
        self.compute(list, "setp.lt", "u32", Ty::Bool, &[a, b])
    }

    /// Returns a value that is computed from each before in two ways.
    fn shared(
        &mut self,
        list: &mut Vec<Stmt>,
        (outer, inner, suffix, ty): (&'static str, &'static str, &'static str, Ty),
        mut other: impl FnMut(&mut Self, &mut Vec<Stmt>) -> Operand,
    ) -> Operand {
        let mut value = other(self, list);
        for _ in 0..LEVELS {
            let (a, b) = (other(self, list), other(self, list));
            let one = self.compute(list, inner, suffix, ty, &[value, a]);
            let two = self.compute(list, inner, suffix, ty, &[value, b]);
            value = self.compute(list, outer, suffix, ty, &[one, two]);
        }
        value
    }

    /// Reads a condition, so that it is needed.
    fn keep(&mut self, list: &mut Vec<Stmt>, condition: Operand) {
        let handle = self.any(Ty::U64);
        let (one, zero) = (Operand::Imm(Ty::U32, 1), Operand::Imm(Ty::U32, 0));
        let value = self.compute(list, "selp", "b32", Ty::U32, &[one, zero, condition]);
        list.push(Stmt::SetCondition { handle, value });
    }

    /// Expects that the optimised kernel is at most twice as long.
    #[track_caller]
    fn expect_small(self, list: Vec<Stmt>) {
        let (before, after) = self.optimized(list);
        assert!(after <= 2 * before, "{before} statements became {after}");
    }

    /// Optimises a program by every pass. Returns how many statements it had and has.
    fn optimized(self, body: Vec<Stmt>) -> (usize, usize) {
        let mut program = Program { regs: self.regs, body, target: Target::Gpu, ..Program::default() };
        let before = count(&program.body);
        optimize(&mut program);
        (before, count(&program.body))
    }
}

fn assigned(op: &'static str, suffix: &'static str, dst: Operand, args: &[Operand]) -> Stmt {
    let Operand::Reg(dst) = dst else { panic!("{dst:?} is no register") };
    Stmt::Inst(Inst { op: op.into(), suffix, dst: Some(dst), args: args.to_vec(), effect: Effect::None })
}

fn check(cond: Operand) -> Stmt {
    Stmt::Check { cond, fails_when: false, site: Site(0) }
}

#[test]
fn each_part_of_a_condition_is_negated_once() {
    let (mut builder, mut list) = (Builder::default(), Vec::new());
    let condition = builder.shared(&mut list, ("or", "and", "pred", Ty::Bool), Builder::condition);
    let not = builder.logic(&mut list, "not", &[condition]);
    builder.keep(&mut list, not);
    builder.expect_small(list);
}

#[test]
fn each_part_of_a_condition_that_was_checked_is_known_once() {
    let (mut builder, mut list) = (Builder::default(), Vec::new());
    let condition = builder.shared(&mut list, ("and", "and", "pred", Ty::Bool), Builder::condition);
    list.push(check(condition));
    builder.keep(&mut list, condition);
    builder.expect_small(list);
}

#[test]
fn few_ranges_follow_from_one() {
    let (mut builder, mut list) = (Builder::default(), Vec::new());
    let value = builder.shared(&mut list, ("or", "or", "b32", Ty::U32), |builder, _| builder.any(Ty::U32));
    let most = Operand::Imm(Ty::U32, 100);
    let is_small = builder.compute(&mut list, "setp.lt", "u32", Ty::Bool, &[value, most]);
    list.push(check(is_small));
    builder.keep(&mut list, is_small);
    builder.expect_small(list);
}

#[test]
fn long_chains_of_conditions_fit_the_stack() {
    let (mut builder, mut list) = (Builder::default(), Vec::new());
    let mut all = builder.condition(&mut list);
    let mut any = builder.condition(&mut list);
    for _ in 0..CHAIN {
        let next = builder.any(Ty::Bool);
        all = builder.logic(&mut list, "and", &[all, next]);
        any = builder.logic(&mut list, "or", &[any, next]);
    }
    let not = builder.logic(&mut list, "not", &[any]);
    builder.keep(&mut list, not);
    list.push(check(all));
    builder.keep(&mut list, all);
    builder.expect_small(list);
}

#[test]
fn long_chains_of_numbers_fit_the_stack() {
    let (mut builder, mut list) = (Builder::default(), Vec::new());
    let mut value = builder.any(Ty::U32);
    for _ in 0..2 * CHAIN {
        let next = builder.any(Ty::U32);
        value = builder.compute(&mut list, "or", "b32", Ty::U32, &[value, next]);
    }
    let most = Operand::Imm(Ty::U32, 100);
    let is_small = builder.compute(&mut list, "setp.lt", "u32", Ty::Bool, &[value, most]);
    list.push(check(is_small));
    builder.keep(&mut list, is_small);
    builder.expect_small(list);
}

#[test]
fn loops_inside_of_loops_are_unrolled_up_to_a_size() {
    let (mut builder, handle) = (Builder::default(), Operand::Imm(Ty::U64, 1));
    let mut body = Vec::new();
    for level in 0..7 {
        let counter = builder.any(Ty::U32);
        if level == 0 {
            body.push(Stmt::SetCondition { handle, value: counter });
        }
        let (label, number) = (Label(level), |value| Operand::Imm(Ty::U32, value));
        let mut pass = Vec::new();
        let ends = builder.compute(&mut pass, "setp.ge", "u32", Ty::Bool, &[counter, number(8)]);
        pass.push(Stmt::Break { label, when: Some((ends, true)) });
        pass.append(&mut body);
        let mut step = Vec::new();
        let next = builder.compute(&mut step, "add", "u32", Ty::U32, &[counter, number(1)]);
        step.push(assigned("mov", "b32", counter, &[next]));
        body = vec![assigned("mov", "b32", counter, &[number(0)]), Stmt::Loop { label, body: pass, step }];
    }
    let (before, after) = builder.optimized(body);
    assert!(before < after && after <= MOST, "{before} statements became {after}");
}
