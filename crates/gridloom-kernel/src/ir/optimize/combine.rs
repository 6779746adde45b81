//! Combines consecutive checks into one branch.
//!
//! `check a; check b` becomes one test of both, in front of statements that find out which one
//! failed. Between the two checks there may be computations of the second, other values, memory
//! accesses, and short branches. A check may come earlier than in the source, because what a failed
//! launch has written is unspecified. The order of the checks is kept, so the check that fails is
//! the same.

use std::collections::HashSet;

use super::sink::count_writes;
use super::values::is_convergent;
use crate::ir::{Effect, Inst, Operand, Program, Reg, Site, Space, Stmt, Ty};

/// The most checks that become one.
const MOST: usize = 8;

pub(super) fn run(program: &mut Program) {
    let mut writes = vec![0u32; program.regs.len()];
    count_writes(&program.body, &mut writes);
    let mut body = std::mem::take(&mut program.body);
    Pass { writes, regs: &mut program.regs }.list(&mut body);
    program.body = body;
}

/// A condition, the value it fails the launch with, and what fails then.
type Test = (Operand, bool, Site);

/// Checks that become one, and the statements behind the first.
struct Group {
    tests: Vec<Test>,
    behind: Vec<Stmt>,
}

struct Pass<'a> {
    writes: Vec<u32>,
    regs: &'a mut Vec<Ty>,
}

impl Pass<'_> {
    fn list(&mut self, list: &mut Vec<Stmt>) {
        let mut group: Option<Group> = None;
        for mut stmt in std::mem::take(list) {
            stmt.inner_mut().into_iter().flatten().for_each(|inner| self.list(inner));
            match stmt {
                Stmt::Check { cond, fails_when, site } => {
                    let test = (cond, fails_when, site);
                    let joined = group
                        .as_mut()
                        .filter(|group| group.tests.len() < MOST)
                        .and_then(|group| Some((self.needed(&group.behind, &cond)?, group)));
                    match joined {
                        Some((needed, group)) => {
                            group.tests.push(test);
                            let mut index = 0;
                            group.behind.retain(|stmt| {
                                index += 1;
                                let is_needed = needed.contains(&(index - 1));
                                if is_needed {
                                    list.push(stmt.clone());
                                }
                                !is_needed
                            });
                        }
                        None => {
                            self.finish(list, group.take());
                            group = Some(Group { tests: vec![test], behind: Vec::new() });
                        }
                    }
                }
                Stmt::Inst(inst) if !is_convergent(&inst.op) => match &mut group {
                    Some(group) => group.behind.push(Stmt::Inst(inst)),
                    None => list.push(Stmt::Inst(inst)),
                },
                // A short branch is in nobody's way: the checks behind it may come before it.
                Stmt::If { cond, then, otherwise } if group.is_some() && is_short(&then, &otherwise) => {
                    if let Some(group) = &mut group {
                        group.behind.push(Stmt::If { cond, then, otherwise });
                    }
                }
                other => {
                    self.finish(list, group.take());
                    list.push(other);
                }
            }
        }
        self.finish(list, group);
    }

    /// Returns the statements that a condition is computed by, if all of them can be done before
    /// the others.
    fn needed(&self, behind: &[Stmt], cond: &Operand) -> Option<HashSet<usize>> {
        let mut wanted: HashSet<Reg> = cond.regs().collect();
        let mut needed = HashSet::new();
        let mut written_behind = HashSet::new();
        for (index, stmt) in behind.iter().enumerate().rev() {
            let Stmt::Inst(inst) = stmt else {
                for inner in stmt.inner().into_iter().flatten() {
                    let Stmt::Inst(inst) = inner else { return None };
                    written_behind.extend(inst.dst);
                }
                continue;
            };
            let Some(dst) = inst.dst else { continue };
            if wanted.contains(&dst) {
                if !can_come_first(inst) || self.writes.get(dst.0 as usize) != Some(&1) {
                    return None;
                }
                needed.insert(index);
                wanted.extend(inst.args.iter().flat_map(Operand::regs));
            } else {
                written_behind.insert(dst);
            }
        }
        wanted.is_disjoint(&written_behind).then_some(needed)
    }

    fn finish(&mut self, list: &mut Vec<Stmt>, group: Option<Group>) {
        let Some(Group { mut tests, behind }) = group else { return };
        let Some(last) = tests.pop() else { return };
        if tests.is_empty() {
            list.push(Stmt::Check { cond: last.0, fails_when: last.1, site: last.2 });
        } else {
            let mut all = None;
            for (cond, fails_when, _) in tests.iter().chain([&last]) {
                let holds = if *fails_when { self.compute(list, "not", vec![*cond]) } else { *cond };
                all = Some(match all {
                    None => holds,
                    Some(before) => self.compute(list, "and", vec![before, holds]),
                });
            }
            let mut which: Vec<Stmt> = tests
                .into_iter()
                .map(|(cond, fails_when, site)| Stmt::Check { cond, fails_when, site })
                .collect();
            which.push(Stmt::Fail(last.2));
            if let Some(cond) = all {
                list.push(Stmt::If { cond, then: Vec::new(), otherwise: which });
            }
        }
        list.extend(behind);
    }

    fn compute(&mut self, list: &mut Vec<Stmt>, op: &'static str, args: Vec<Operand>) -> Operand {
        self.regs.push(Ty::Bool);
        let dst = Reg(self.regs.len() as u32 - 1);
        let inst = Inst { op: op.into(), suffix: "pred", dst: Some(dst), args, effect: Effect::None };
        list.push(Stmt::Inst(inst));
        Operand::Reg(dst)
    }
}

/// Returns whether both sides of a branch are a few plain instructions.
fn is_short(then: &[Stmt], otherwise: &[Stmt]) -> bool {
    let sides = [then, otherwise];
    sides.iter().all(|side| side.len() <= MOST && side.iter().all(super::guarded::is_plain))
}

/// Returns whether an instruction can be done before a check that it follows.
fn can_come_first(inst: &Inst) -> bool {
    let is_memory = |arg: &Operand| matches!(arg, Operand::Mem(mem) if mem.space != Space::Param);
    inst.effect == Effect::None && !matches!(&*inst.op, "div" | "rem") && !inst.args.iter().any(is_memory)
}
