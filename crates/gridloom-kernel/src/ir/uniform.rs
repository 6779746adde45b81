//! Finds values that are the same in all threads of a launch.

use std::collections::HashMap;

use super::optimize::variables;
use super::{Base, Inst, Label, Operand, Program, Reached, Reg, Site, Space, Stmt};
use std::collections::HashSet;

/// How far a value is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// In all threads of the launch.
    Launch,
    /// In all threads of each block.
    Block,
    /// In all threads of each warp.
    Warp,
    /// Each thread may have another one.
    Thread,
}

/// What is wrong, and where.
pub(crate) struct Divergence {
    pub(crate) site: Site,
}

/// Checks that what must be the same in all threads of a launch is.
pub(crate) fn check(program: &Program) -> Result<(), Divergence> {
    let mut analysis = Analysis {
        is_variable: variables(program),
        extents: vec![Extent::Launch; program.regs.len()],
        loops: HashMap::new(),
        same_in_warp: &program.same_in_warp,
        changed: true,
        wrong: None,
    };
    while analysis.changed {
        analysis.changed = false;
        analysis.wrong = None;
        analysis.list(&program.body, Extent::Launch);
    }
    match analysis.wrong {
        Some(site) => Err(Divergence { site }),
        None => Ok(()),
    }
}

struct Analysis<'a> {
    /// Which registers are written in more than one place, or read where their write may not have
    /// happened, so that it matters which way a thread came.
    is_variable: Vec<bool>,
    extents: Vec<Extent>,
    /// How far threads agree on leaving a loop or starting its next pass.
    loops: HashMap<Label, Extent>,
    same_in_warp: &'a HashSet<Reg>,
    changed: bool,
    wrong: Option<Site>,
}

/// The places that some threads have gone on to while others are still here.
type Left = HashMap<Label, Extent>;

impl Analysis<'_> {
    fn operand(&self, operand: &Operand) -> Extent {
        let by_name = match operand {
            Operand::Special(name) if name.starts_with("%nctaid") || name.starts_with("%ntid") => {
                Extent::Launch
            }
            Operand::Special(name) if name.starts_with("%ctaid") => Extent::Block,
            Operand::Special(_) => Extent::Thread,
            Operand::Mem(mem) => match (mem.space, mem.base) {
                (Space::ReadOnly | Space::Param, _) | (_, Base::Constant(_)) => Extent::Launch,
                (Space::SharedRead | Space::BlockRead, _) => Extent::Block,
                _ => Extent::Thread,
            },
            _ => Extent::Launch,
        };
        operand.regs().map(|reg| self.extents[reg.0 as usize]).fold(by_name, Extent::max)
    }

    fn write(&mut self, inst: &Inst, control: Extent) {
        let Some(dst) = inst.dst else { return };
        let control = if self.is_variable[dst.0 as usize] { control } else { Extent::Launch };
        let extent = inst.args.iter().map(|arg| self.operand(arg)).fold(control, Extent::max);
        let extent = if self.same_in_warp.contains(&dst) { extent.min(Extent::Warp) } else { extent };
        let slot = &mut self.extents[dst.0 as usize];
        if extent > *slot {
            *slot = extent;
            self.changed = true;
        }
    }

    /// Goes through statements that are reached by threads that agree this far. Returns where some
    /// threads have gone instead of behind them.
    fn list(&mut self, list: &[Stmt], control: Extent) -> Left {
        let mut left = Left::new();
        let merge = |left: &mut Left, label: Label, extent: Extent| {
            let slot = left.entry(label).or_insert(extent);
            *slot = (*slot).max(extent);
        };
        for stmt in list {
            let control = left.values().copied().fold(control, Extent::max);
            match stmt {
                Stmt::Inst(inst) => self.write(inst, control),
                Stmt::SameForAll { value, is_in_block, site } => {
                    let most = if *is_in_block { Extent::Block } else { Extent::Launch };
                    if self.operand(value) > most {
                        self.wrong.get_or_insert(*site);
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let inner = control.max(self.operand(cond));
                    for branch in [then, otherwise] {
                        for (label, extent) in self.list(branch, inner) {
                            merge(&mut left, label, extent.max(inner));
                        }
                    }
                }
                Stmt::Block { label, body } => {
                    let mut inner = self.list(body, control);
                    inner.remove(label);
                    for (label, extent) in inner {
                        merge(&mut left, label, extent);
                    }
                }
                Stmt::Loop { label, body, step } => {
                    let around = self.loops.get(label).copied().unwrap_or(Extent::Launch).max(control);
                    let mut inner = self.list(body, around);
                    for (label, extent) in self.list(step, around) {
                        merge(&mut inner, label, extent);
                    }
                    let all = inner.values().copied().fold(around, Extent::max);
                    if all > around {
                        self.loops.insert(*label, all);
                        self.changed = true;
                    }
                    inner.remove(label);
                    for (label, extent) in inner {
                        merge(&mut left, label, extent);
                    }
                }
                Stmt::Break { label, when } => {
                    let extent = when.as_ref().map_or(control, |(cond, _)| control.max(self.operand(cond)));
                    merge(&mut left, *label, extent);
                }
                Stmt::Continue(label) => merge(&mut left, *label, control),
                Stmt::Reached { by, site } => {
                    let most = match by {
                        Reached::Block => Extent::Block,
                        Reached::Warp => Extent::Warp,
                    };
                    if control > most {
                        self.wrong.get_or_insert(*site);
                    }
                }
                Stmt::Check { .. }
                | Stmt::Promise { .. }
                | Stmt::Fail(_)
                | Stmt::Exit
                | Stmt::Barrier
                | Stmt::Print { .. }
                | Stmt::SetCondition { .. } => {}
            }
        }
        left
    }
}
