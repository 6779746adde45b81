//! A second version of a kernel for launches of ordinary size and shape.
//!
//! Lengths, sizes and the indices of threads have 64 bits, of which few launches need more than 32.
//! Where a kernel computes much with them, it gets two versions of its body behind one test: that
//! all lengths and sizes among its parameters, and the number of its block, are small. In the
//! first version the other passes then know that, and compute in 32 bits. The test has the same
//! result in all threads of a block, so that barriers stay where all of them come.
//!
//! That is for GPUs alone. A CPU computes indices that count up from one thread to the next once for
//! all threads of a warp, in 64 bits as fast as in 32, and in 64 bits it need not ask whether they
//! wrap around.
//!
//! A kernel that numbers the threads of a block, and asks for no place along the other axes, is
//! launched in one dimension most often. The first version is then for such launches, in which
//! neighbours have neighbouring numbers.

use std::collections::HashMap;

use super::count;
use crate::ir::{Base, Effect, Inst, Label, Mem, Operand, Program, Reg, Space, Stmt, Target, Ty};

/// Lengths and sizes below this are small.
const SMALL: u64 = 1 << 31;

/// Blocks whose number is below this have threads whose indices are small: a block has at most
/// 1,024 threads.
const SMALL_BLOCK: u64 = 1 << 21;

/// How much a kernel has to compute in 64 bits for a second version.
const WORTH: usize = 20;

/// Larger kernels have one version.
const MOST: usize = 3_000;

/// Returns how much statements compute in 64 bits, by what it costs.
pub(super) fn cost(list: &[Stmt]) -> usize {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Inst(inst) if matches!(inst.suffix, "u64" | "s64") => match &*inst.op {
            "div" | "rem" => 30,
            "mul.lo" | "mul.hi" | "mad.lo" => 3,
            op if op.starts_with("setp") => 2,
            "add" | "sub" | "min" | "max" | "shr" => 1,
            _ => 0,
        },
        _ => 0,
    };
    let inside = |stmt: &Stmt| {
        let times = if matches!(stmt, Stmt::Loop { .. }) { 4 } else { 1 };
        times * stmt.inner().into_iter().map(cost).sum::<usize>()
    };
    list.iter().map(|stmt| of(stmt) + inside(stmt)).sum()
}

/// What it costs to number threads in a shape that is not known.
const COST_OF_RANK: usize = 24;

/// Returns whether a version for launches of one dimension may be gained. On a CPU it is where
/// threads are numbered: the number of a block is computed once for all of its threads.
fn is_for_one_dimension(program: &Program) -> bool {
    let numbers = &AXES[..if program.target == Target::Gpu { AXES.len() } else { 2 }];
    program.uses_rank
        && !program.uses_axes
        && numbers.iter().any(|(_, size)| reads_special(&program.body, size))
}

/// Returns what a kernel costs that a second version may not.
pub(super) fn cost_of(program: &Program) -> usize {
    cost(&program.body) + if is_for_one_dimension(program) { COST_OF_RANK } else { 0 }
}

/// The sizes that are 1 in launches of one dimension, and the places along them: of threads, then of
/// blocks.
const AXES: [(&str, &str); 4] =
    [("%tid.y", "%ntid.y"), ("%tid.z", "%ntid.z"), ("%ctaid.y", "%nctaid.y"), ("%ctaid.z", "%nctaid.z")];

/// Returns the kernel with two versions of its body, if it may gain from them.
pub(super) fn versioned(program: &Program, cost: usize) -> Option<Program> {
    let is_for_one_dimension = is_for_one_dimension(program);
    let is_narrow = program.target == Target::Gpu;
    let is_worth = cost >= WORTH && !program.sizes.is_empty() && (is_narrow || is_for_one_dimension);
    if !is_worth || count(&program.body) > MOST {
        return None;
    }
    let mut program = program.clone();
    let body = std::mem::take(&mut program.body);
    let mut renamed =
        Renamed { program: &mut program, regs: HashMap::new(), labels: HashMap::new(), next: 0 };
    renamed.next = most_label(&body) + 1;
    let small = renamed.list(&body);
    let mut tests = Vec::new();
    let mut condition = None;
    let mut compute = |program: &mut Program,
                       op: &'static str,
                       suffix: &'static str,
                       ty: Ty,
                       args: Vec<Operand>| {
        program.regs.push(ty);
        let dst = Reg(program.regs.len() as u32 - 1);
        tests.push(Stmt::Inst(Inst { op: op.into(), suffix, dst: Some(dst), args, effect: Effect::None }));
        Operand::Reg(dst)
    };
    // All numbers together have a bit that only large numbers have.
    let mut all = None;
    let sizes = if is_narrow { program.sizes.clone() } else { Vec::new() };
    for param in sizes {
        let mem = Mem { space: Space::Param, base: Base::Param(param), index: None, offset: 0 };
        let size = compute(&mut program, "ld.param", "u64", Ty::U64, vec![Operand::Mem(mem)]);
        all = Some(match all {
            None => size,
            Some(before) => compute(&mut program, "or", "b64", Ty::U64, vec![before, size]),
        });
    }
    let mut parts = Vec::new();
    if is_narrow {
        parts.push(("setp.lt", all?, "u64", Operand::Imm(Ty::U64, SMALL)));
        let block = compute(&mut program, "mov", "u32", Ty::U32, vec![Operand::Special("%ctaid.x")]);
        parts.push(("setp.lt", block, "u32", Operand::Imm(Ty::U32, SMALL_BLOCK)));
        if reads_special(&body, "%nctaid.x") {
            let blocks = compute(&mut program, "mov", "u32", Ty::U32, vec![Operand::Special("%nctaid.x")]);
            parts.push(("setp.lt", blocks, "u32", Operand::Imm(Ty::U32, SMALL_BLOCK)));
        }
    }
    if is_for_one_dimension {
        for (place, size) in AXES {
            if reads_special(&body, place) || reads_special(&body, size) {
                let size = compute(&mut program, "mov", "u32", Ty::U32, vec![Operand::Special(size)]);
                parts.push(("setp.eq", size, "u32", Operand::Imm(Ty::U32, 1)));
            }
        }
    }
    for (order, value, suffix, bound) in parts {
        let is_small = compute(&mut program, order, suffix, Ty::Bool, vec![value, bound]);
        condition = Some(match condition {
            None => is_small,
            Some(before) => compute(&mut program, "and", "pred", Ty::Bool, vec![before, is_small]),
        });
    }
    tests.push(Stmt::If { cond: condition?, then: small, otherwise: body });
    program.body = tests;
    Some(program)
}

/// Returns the version for launches of ordinary size.
pub(super) fn small_version(program: &Program) -> Option<&[Stmt]> {
    program.body.iter().find_map(|stmt| match stmt {
        Stmt::If { then, .. } => Some(&then[..]),
        _ => None,
    })
}

fn reads_special(list: &[Stmt], name: &str) -> bool {
    list.iter().any(|stmt| {
        let mut found = false;
        stmt.reads(&mut |operand| found |= matches!(operand, Operand::Special(other) if *other == name));
        found || stmt.inner().into_iter().any(|inner| reads_special(inner, name))
    })
}

pub(super) fn most_label(list: &[Stmt]) -> u32 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Block { label, .. } | Stmt::Loop { label, .. } => label.0,
        _ => 0,
    };
    list.iter()
        .map(|stmt| stmt.inner().into_iter().map(most_label).fold(of(stmt), u32::max))
        .max()
        .unwrap_or(0)
}

/// A copy of statements with registers and labels of its own.
struct Renamed<'a> {
    program: &'a mut Program,
    regs: HashMap<Reg, Reg>,
    labels: HashMap<Label, Label>,
    next: u32,
}

impl Renamed<'_> {
    fn reg(&mut self, reg: Reg) -> Reg {
        let program = &mut *self.program;
        *self.regs.entry(reg).or_insert_with(|| {
            program.regs.push(program.regs[reg.0 as usize]);
            Reg(program.regs.len() as u32 - 1)
        })
    }

    fn label(&mut self, label: Label) -> Label {
        let next = &mut self.next;
        *self.labels.entry(label).or_insert_with(|| {
            *next += 1;
            Label(*next - 1)
        })
    }

    fn mem(&mut self, mem: Mem) -> Mem {
        let base = match mem.base {
            Base::Reg(reg) => Base::Reg(self.reg(reg)),
            other => other,
        };
        Mem { base, index: mem.index.map(|reg| self.reg(reg)), ..mem }
    }

    fn operand(&mut self, operand: &Operand) -> Operand {
        match *operand {
            Operand::Reg(reg) => Operand::Reg(self.reg(reg)),
            Operand::Mem(mem) => Operand::Mem(self.mem(mem)),
            other => other,
        }
    }

    fn list(&mut self, list: &[Stmt]) -> Vec<Stmt> {
        list.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Inst(inst) => {
                let args = inst.args.iter().map(|arg| self.operand(arg)).collect();
                let dst = inst.dst.map(|dst| self.reg(dst));
                Stmt::Inst(Inst { args, dst, ..inst.clone() })
            }
            Stmt::Check { cond, fails_when, site } => {
                Stmt::Check { cond: self.operand(cond), fails_when: *fails_when, site: *site }
            }
            Stmt::Promise { cond } => Stmt::Promise { cond: self.operand(cond) },
            Stmt::If { cond, then, otherwise } => {
                Stmt::If { cond: self.operand(cond), then: self.list(then), otherwise: self.list(otherwise) }
            }
            Stmt::Block { label, body } => Stmt::Block { label: self.label(*label), body: self.list(body) },
            Stmt::Loop { label, body, step } => {
                Stmt::Loop { label: self.label(*label), body: self.list(body), step: self.list(step) }
            }
            Stmt::Break { label, when } => {
                let when = when.as_ref().map(|(cond, value)| (self.operand(cond), *value));
                Stmt::Break { label: self.label(*label), when }
            }
            Stmt::Continue(label) => Stmt::Continue(self.label(*label)),
            Stmt::SameForAll { value, is_in_block, site } => {
                Stmt::SameForAll { value: self.operand(value), is_in_block: *is_in_block, site: *site }
            }
            Stmt::Print { text, arguments } => {
                Stmt::Print { text: self.mem(*text), arguments: self.mem(*arguments) }
            }
            Stmt::SetCondition { handle, value } => {
                Stmt::SetCondition { handle: self.operand(handle), value: self.operand(value) }
            }
            Stmt::Fail(_) | Stmt::Exit | Stmt::Reached { .. } | Stmt::Barrier => stmt.clone(),
        }
    }
}
