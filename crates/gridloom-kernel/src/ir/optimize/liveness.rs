//! Removes writes of variables that are not read before the next write, and instructions whose
//! result is unused and that have no effect.

use std::collections::HashMap;

use crate::ir::{Effect, Inst, Label, Operand, Program, Reg, Stmt};

pub(super) fn run(program: &mut Program) {
    loop {
        let mut analysis = Analysis::new(program.regs.len());
        // What loops need at their start is found by going round them until nothing is added.
        loop {
            analysis.changed = false;
            let mut live = analysis.none.clone();
            analysis.list(&program.body, &mut live);
            if !analysis.changed {
                break;
            }
        }
        let mut live = analysis.none.clone();
        if !analysis.remove(&mut program.body, &mut live) {
            return;
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, Reg(reg): Reg) {
        self.0[reg as usize / 64] |= 1 << (reg % 64);
    }

    fn remove(&mut self, Reg(reg): Reg) {
        self.0[reg as usize / 64] &= !(1 << (reg % 64));
    }

    fn contains(&self, Reg(reg): Reg) -> bool {
        self.0[reg as usize / 64] >> (reg % 64) & 1 == 1
    }

    /// Adds another set. Returns whether this one has grown.
    fn union(&mut self, other: &Set) -> bool {
        let mut grown = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            grown |= other & !*word != 0;
            *word |= other;
        }
        grown
    }
}

struct Analysis {
    none: Set,
    /// What is read behind each block and loop, and from the step of each loop on.
    behind: HashMap<Label, Set>,
    steps: HashMap<Label, Set>,
    /// What is read from the start of each loop on.
    heads: HashMap<Label, Set>,
    changed: bool,
}

impl Analysis {
    fn new(regs: usize) -> Self {
        Analysis {
            none: Set(vec![0; regs.div_ceil(64)]),
            behind: HashMap::new(),
            steps: HashMap::new(),
            heads: HashMap::new(),
            changed: false,
        }
    }

    fn head(&self, label: Label) -> Set {
        self.heads.get(&label).unwrap_or(&self.none).clone()
    }

    fn add_head(&mut self, label: Label, live: &Set) {
        let none = &self.none;
        self.changed |= self.heads.entry(label).or_insert_with(|| none.clone()).union(live);
    }

    /// Turns the registers that are live after a statement without inner statements into those that
    /// are live before it.
    fn simple(&mut self, stmt: &Stmt, live: &mut Set) {
        match stmt {
            Stmt::Inst(Inst { dst: Some(dst), .. }) => live.remove(*dst),
            Stmt::Break { label, when } => {
                let behind = self.behind.get(label).unwrap_or(&self.none).clone();
                match when {
                    None => *live = behind,
                    Some(_) => {
                        live.union(&behind);
                    }
                }
            }
            Stmt::Continue(label) => *live = self.steps.get(label).unwrap_or(&self.none).clone(),
            Stmt::Exit | Stmt::Fail(_) => *live = self.none.clone(),
            _ => {}
        }
        stmt.reads(&mut |operand| operand.regs().for_each(|reg| live.insert(reg)));
    }

    fn list(&mut self, list: &[Stmt], live: &mut Set) {
        for stmt in list.iter().rev() {
            match stmt {
                Stmt::If { cond, then, otherwise } => {
                    let mut other = live.clone();
                    self.list(then, live);
                    self.list(otherwise, &mut other);
                    live.union(&other);
                    cond.regs().for_each(|reg| live.insert(reg));
                }
                Stmt::Block { label, body } => {
                    self.behind.insert(*label, live.clone());
                    self.list(body, live);
                }
                Stmt::Loop { label, body, step } => {
                    self.behind.insert(*label, live.clone());
                    *live = self.head(*label);
                    self.list(step, live);
                    self.steps.insert(*label, live.clone());
                    self.list(body, live);
                    self.add_head(*label, live);
                }
                other => self.simple(other, live),
            }
        }
    }

    /// Removes what is not read. Returns whether anything was.
    fn remove(&mut self, list: &mut Vec<Stmt>, live: &mut Set) -> bool {
        let mut removed = false;
        for index in (0..list.len()).rev() {
            let is_dead = match &mut list[index] {
                Stmt::If { cond, then, otherwise } => {
                    let mut other = live.clone();
                    removed |= self.remove(then, live);
                    removed |= self.remove(otherwise, &mut other);
                    live.union(&other);
                    let is_dead = then.is_empty() && otherwise.is_empty();
                    if !is_dead {
                        cond.regs().for_each(|reg| live.insert(reg));
                    }
                    is_dead
                }
                Stmt::Block { label, body } => {
                    self.behind.insert(*label, live.clone());
                    removed |= self.remove(body, live);
                    body.is_empty()
                }
                Stmt::Loop { label, body, step } => {
                    self.behind.insert(*label, live.clone());
                    *live = self.head(*label);
                    removed |= self.remove(step, live);
                    self.steps.insert(*label, live.clone());
                    removed |= self.remove(body, live);
                    false
                }
                Stmt::Inst(Inst { dst: Some(dst), effect: Effect::None | Effect::Load, .. })
                    if !live.contains(*dst) =>
                {
                    true
                }
                Stmt::Inst(Inst { op, dst: Some(dst), args, .. })
                    if op == "mov" && args[0] == Operand::Reg(*dst) =>
                {
                    true
                }
                other => {
                    self.simple(&*other, live);
                    false
                }
            };
            if is_dead {
                list.remove(index);
                removed = true;
            }
        }
        removed
    }
}
