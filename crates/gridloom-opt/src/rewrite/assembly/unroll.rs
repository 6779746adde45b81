//! Loops that only read and compute make several passes in a row without a test.
//!
//! In a kernel of a few blocks, a pass of a loop waits for its loads, and nothing else keeps the
//! multiprocessor busy meanwhile. An assembler starts the loads of all passes between two tests
//! together.
//!
//! Rule: the loop is straight code with a branch back at its end. It continues while a counter
//! that has one addition of a constant compares with a value that does not change. It only computes
//! and reads memory with plain loads. Before each group of passes, the distance of the counter to
//! that value is tested: all tests inside the group would have continued. So the passes of a
//! group are those of the loop, in the same order, with the same registers.

use gridloom_ptx::op::{
    Compare, CompareOp, ControlOp, Instruction, IntArith, IntOp, MemoryOp, Op, OperandRef, Order,
};
use gridloom_ptx::{Guard, Imm, LabelId, Operand, RegId, ScalarType, Space};

use super::{Assembly, int};

/// The most instructions of a kernel. A longer one may need all registers that it can get without
/// more loads under way.
const MAX_KERNEL: usize = 300;
/// The most instructions of a pass.
const MAX_INSTRUCTIONS: usize = 32;
/// The most loads of a group of passes.
const MAX_LOADS: usize = 32;
/// The most passes of a group, and those of a smaller group for what is left.
const GROUPS: [usize; 2] = [16, 4];
/// The largest step of a counter.
const MAX_STEP: i64 = 1 << 20;

/// A loop that the rule allows.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// The first instruction.
    start: usize,
    /// The branch back.
    end: usize,
    /// The comparison that decides about the branch.
    test: usize,
    counter: RegId,
    step: i64,
    compare: Compare,
    ty: ScalarType,
    bound: Operand,
    loads: usize,
}

/// Rewrites the loops of the assembly's body. Returns whether there are any.
pub(super) fn unroll(asm: &mut Assembly) -> bool {
    let body = &asm.body;
    if body.instructions.len() > MAX_KERNEL {
        return false;
    }
    let backward = |(at, instruction): (usize, &Instruction)| match &instruction.op {
        Op::Control(ControlOp::Bra { target, .. }) if body.target(*target) <= at => {
            find(asm, body.target(*target), at)
        }
        _ => None,
    };
    let loops: Vec<Loop> = body.instructions.iter().enumerate().filter_map(backward).collect();
    if loops.is_empty() {
        return false;
    }
    let old = std::mem::take(&mut asm.body.instructions);
    let labels = asm.body.labels.len();
    let mut moved = Vec::with_capacity(old.len() + 1);
    let mut at = 0;
    while at < old.len() {
        if let Some(found) = loops.iter().find(|found| found.start == at) {
            // Nothing but the branch back refers to what is inside.
            let new = asm.body.instructions.len() as u32;
            moved.extend((found.start..=found.end).map(|_| new));
            write(asm, found, &old[found.start..=found.end]);
            at = found.end + 1;
        } else {
            moved.push(asm.body.instructions.len() as u32);
            asm.body.instructions.push(old[at].clone());
            at += 1;
        }
    }
    moved.push(asm.body.instructions.len() as u32);
    for label in &mut asm.body.labels[..labels] {
        label.target = moved[label.target as usize];
    }
    for pragma in &mut asm.body.pragmas {
        pragma.at = moved[pragma.at as usize];
    }
    true
}

/// Returns the loop from `start` to the branch at `end`, if the rule allows it.
fn find(asm: &Assembly, start: usize, end: usize) -> Option<Loop> {
    let body = &asm.body;
    let inside = &body.instructions[start..end];
    if inside.is_empty() || inside.len() > MAX_INSTRUCTIONS {
        return None;
    }
    let is_inside = |at: u32| (start + 1..=end).contains(&(at as usize));
    if body.labels.iter().any(|label| is_inside(label.target))
        || body.pragmas.iter().any(|pragma| (start..=end).contains(&(pragma.at as usize)))
    {
        return None;
    }
    let Guard { reg: decides, negated: false } = body.instructions[end].guard? else { return None };
    let loads = inside.iter().map(|instruction| loads_of(&instruction.op)).sum::<Option<usize>>()?;
    let defines = |reg: RegId| {
        let mut found = Vec::new();
        for (at, instruction) in inside.iter().enumerate() {
            instruction.op.for_each_operand(&mut |operand, _| {
                if matches!(operand, OperandRef::Def(defined) if defined == reg) {
                    found.push(at);
                }
            });
        }
        found
    };
    let uses = |reg: RegId| inside.iter().any(|instruction| reads(instruction, reg));
    let &[test] = &defines(decides)[..] else { return None };
    if uses(decides) || inside[test].guard.is_some() {
        return None;
    }
    let Op::Compare(CompareOp::Setp {
        cmp,
        combine: None,
        ty,
        p: Some(_),
        q: None,
        a: Operand::Reg(counter),
        b,
        ..
    }) = &inside[test].op
    else {
        return None;
    };
    let is_fixed = match b {
        Operand::Reg(reg) => defines(*reg).is_empty(),
        Operand::Imm(Imm::Int(_)) => true,
        _ => false,
    };
    let &[addition] = &defines(*counter)[..] else { return None };
    if !is_fixed || addition > test || inside[addition].guard.is_some() {
        return None;
    }
    let Op::Int(IntOp::Arith { op, ty: added, sat: false, a, b: by, .. }) = &inside[addition].op else {
        return None;
    };
    let step = match (op, a, by) {
        (IntArith::Add, Operand::Reg(from), Operand::Imm(Imm::Int(by)))
        | (IntArith::Add, Operand::Imm(Imm::Int(by)), Operand::Reg(from))
            if from == counter =>
        {
            *by
        }
        (IntArith::Sub, Operand::Reg(from), Operand::Imm(Imm::Int(by))) if from == counter => {
            by.checked_neg()?
        }
        _ => return None,
    };
    let step = if ty.size() == 4 { i64::from(step as i32) } else { step };
    let is_whole = matches!(
        ty,
        ScalarType::U32
            | ScalarType::S32
            | ScalarType::B32
            | ScalarType::U64
            | ScalarType::S64
            | ScalarType::B64
    );
    let goes_on = match cmp {
        Compare::Lt | Compare::Lo | Compare::Le | Compare::Ls => step > 0,
        Compare::Gt | Compare::Hi | Compare::Ge | Compare::Hs => step < 0,
        Compare::Ne => step != 0,
        _ => false,
    };
    let is_integer = matches!(added, ScalarType::U32 | ScalarType::S32 | ScalarType::U64 | ScalarType::S64);
    (is_whole && goes_on && is_integer && added.size() == ty.size() && step.abs() <= MAX_STEP && loads > 0)
        .then_some(Loop {
            start,
            end,
            test: start + test,
            counter: *counter,
            step,
            compare: *cmp,
            ty: *ty,
            bound: *b,
            loads,
        })
}

/// Returns how many loads from global memory an instruction is, or `None` if it does more than
/// compute and read.
fn loads_of(op: &Op) -> Option<usize> {
    match op {
        Op::Int(_) | Op::Bits(_) | Op::Float(_) | Op::Compare(_) | Op::Convert(_) => Some(0),
        Op::Memory(MemoryOp::Ld { access, .. }) if access.order == Order::Weak => {
            Some(usize::from(matches!(access.space, Space::Global | Space::Generic)))
        }
        _ => None,
    }
}

/// Returns whether an instruction reads a register.
fn reads(instruction: &Instruction, reg: RegId) -> bool {
    let mut found = instruction.guard.is_some_and(|guard| guard.reg == reg);
    instruction.op.for_each_operand(&mut |operand, _| {
        found |= !matches!(operand, OperandRef::Def(_)) && operand.reg() == Some(reg);
    });
    found
}

/// Writes a loop in groups of passes, and at last as it was.
fn write(asm: &mut Assembly, found: &Loop, code: &[Instruction]) {
    let (pass, test) = (&code[..code.len() - 1], found.test - found.start);
    let decides = code[code.len() - 1].guard;
    let most = GROUPS.into_iter().filter(|group| group * found.loads <= MAX_LOADS);
    let done = asm.label();
    for group in most {
        let (again, next) = (asm.label(), asm.label());
        asm.place(again);
        continues_for(asm, found, group, next);
        for copy in 1..=group {
            let is_last = copy == group;
            let kept = pass.iter().enumerate().filter(|(at, _)| is_last || *at != test);
            asm.body.instructions.extend(kept.map(|(_, instruction)| instruction.clone()));
        }
        asm.emit_if(decides, ControlOp::Bra { uni: false, target: again });
        asm.branch(done);
        asm.place(next);
    }
    let rest = asm.label();
    asm.place(rest);
    asm.body.instructions.extend(pass.iter().cloned());
    asm.emit_if(decides, ControlOp::Bra { uni: false, target: rest });
    asm.place(done);
}

/// Emits a branch to `other` unless the next passes, except the last, would all continue.
fn continues_for(asm: &mut Assembly, found: &Loop, passes: usize, other: LabelId) {
    let Loop { counter, step, compare, ty, bound, .. } = *found;
    let is_wide = ty.size() == 8;
    let unsigned = if is_wide { ScalarType::U64 } else { ScalarType::U32 };
    let counter = Operand::Reg(counter);
    if compare != Compare::Ne {
        let before = asm.compare(compare, ty, counter, bound);
        asm.branch_if(before, true, other);
    }
    let (from, to) = if step > 0 { (counter, bound) } else { (bound, counter) };
    let distance = asm.arith(IntArith::Sub, unsigned, to, from);
    let is_or_equal = matches!(compare, Compare::Le | Compare::Ls | Compare::Ge | Compare::Hs);
    let least = (passes as i64 - 1) * step.abs() - i64::from(is_or_equal);
    let enough = asm.compare(Compare::Gt, unsigned, distance.into(), int(least));
    asm.branch_if(enough, true, other);
}
