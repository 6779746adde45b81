//! Removal of moves that change nothing, after register allocation.
//!
//! The allocator divides the life of a value into parts, in registers and in memory, and moves the
//! value from part to part. A value has one place in memory, and is written once. So it is often
//! stored where it is already, also in each pass of a loop, and often loaded to be stored again.
//!
//! 1. From the start of the function to its end: which place in memory holds what each register
//!    holds. Moves between the two are left out.
//! 2. From the end to the start: which registers are read later. Moves to the others are left out.

use super::allocate::Placed;
use super::inst::{GENERAL, VECTOR};
use regalloc2::{Allocation, Block, Edit, Function, Inst, InstOrEdit, OperandKind, Output, PReg, ProgPoint};

/// General-purpose registers, vectors and masks.
const REGISTERS: usize = 16 + 32 + 8;

/// For each register, the number of the place in memory that holds the same, plus one, or zero.
type Copies = [u32; REGISTERS];

fn number(register: PReg) -> usize {
    let class = match register.class() {
        GENERAL => 0,
        VECTOR => 16,
        _ => 48,
    };
    class + register.hw_enc()
}

/// What happens to registers, in order.
enum Step {
    /// A move, by its number.
    Move { edit: usize, from: Place, to: Place },
    /// An instruction, with bits for the registers that it reads and overwrites.
    Inst { reads: u64, writes: u64 },
}

#[derive(Clone, Copy)]
enum Place {
    Register(usize),
    Memory(u32),
}

fn place(allocation: Allocation) -> Option<Place> {
    match (allocation.as_reg(), allocation.as_stack()) {
        (Some(register), _) => Some(Place::Register(number(register))),
        (_, Some(slot)) => Some(Place::Memory(slot.index() as u32 + 1)),
        _ => None,
    }
}

/// Removes moves that change nothing.
pub(super) fn remove_useless(placed: &Placed, output: &mut Output) {
    if output.edits.is_empty() {
        return;
    }
    let blocks: Vec<Vec<Step>> =
        (0..placed.num_blocks()).map(|block| steps(placed, output, Block::new(block))).collect();
    let mut useless = vec![false; output.edits.len()];
    find_known(placed, &blocks, &mut useless);
    find_dead(placed, &blocks, &mut useless);
    let mut useless = useless.into_iter();
    output.edits.retain(|_| !useless.next().unwrap_or(false));
}

fn steps(placed: &Placed, output: &Output, block: Block) -> Vec<Step> {
    let insts = placed.block_insns(block);
    let start = ProgPoint::before(insts.first());
    let mut edit = output.edits.partition_point(|(point, _)| *point < start);
    let mut steps = Vec::new();
    for item in output.block_insts_and_edits(placed, block) {
        match item {
            InstOrEdit::Edit(Edit::Move { from, to }) => {
                if let (Some(from), Some(to)) = (place(*from), place(*to)) {
                    steps.push(Step::Move { edit, from, to });
                }
                edit += 1;
            }
            InstOrEdit::Inst(inst) => steps.push(effect(placed, output, inst)),
        }
    }
    steps
}

fn effect(placed: &Placed, output: &Output, inst: Inst) -> Step {
    let (mut reads, mut writes) = (0, 0);
    for (operand, allocation) in placed.inst_operands(inst).iter().zip(output.inst_allocs(inst)) {
        let Some(register) = allocation.as_reg() else { continue };
        match operand.kind() {
            OperandKind::Use => reads |= 1 << number(register),
            OperandKind::Def => writes |= 1 << number(register),
        }
    }
    for register in placed.inst_clobbers(inst) {
        writes |= 1 << number(register);
    }
    Step::Inst { reads, writes }
}

/// Finds moves of a value to where it is already.
fn find_known(placed: &Placed, blocks: &[Vec<Step>], useless: &mut [bool]) {
    let mut at_start: Vec<Option<Copies>> = vec![None; blocks.len()];
    at_start[0] = Some([0; REGISTERS]);
    let mut changed = true;
    while changed {
        changed = false;
        for (block, steps) in blocks.iter().enumerate() {
            let Some(mut copies) = at_start[block] else { continue };
            for step in steps {
                follow(step, &mut copies);
            }
            for next in placed.block_succs(Block::new(block)) {
                let known = &mut at_start[next.index()];
                let Some(known) = known else {
                    *known = Some(copies);
                    changed = true;
                    continue;
                };
                for (known, copy) in known.iter_mut().zip(copies) {
                    if *known != copy && *known != 0 {
                        *known = 0;
                        changed = true;
                    }
                }
            }
        }
    }
    for (steps, copies) in blocks.iter().zip(at_start) {
        let mut copies = copies.unwrap_or([0; REGISTERS]);
        for step in steps {
            if let Step::Move { edit, from, to } = *step {
                useless[edit] = match (from, to) {
                    (Place::Register(register), Place::Memory(slot))
                    | (Place::Memory(slot), Place::Register(register)) => copies[register] == slot,
                    _ => false,
                };
            }
            follow(step, &mut copies);
        }
    }
}

/// Changes what is known by what happens.
fn follow(step: &Step, copies: &mut Copies) {
    match *step {
        Step::Move { from: Place::Register(from), to: Place::Register(to), .. } => copies[to] = copies[from],
        Step::Move { from: Place::Memory(slot), to: Place::Register(to), .. } => copies[to] = slot,
        Step::Move { from: Place::Register(from), to: Place::Memory(slot), .. } => {
            if copies[from] != slot {
                copies.iter_mut().filter(|copy| **copy == slot).for_each(|copy| *copy = 0);
                copies[from] = slot;
            }
        }
        Step::Move { from: Place::Memory(_), to: Place::Memory(slot), .. } => {
            copies.iter_mut().filter(|copy| **copy == slot).for_each(|copy| *copy = 0);
        }
        Step::Inst { mut writes, .. } => {
            while writes != 0 {
                copies[writes.trailing_zeros() as usize] = 0;
                writes &= writes - 1;
            }
        }
    }
}

/// Finds moves to registers that nothing reads afterwards.
fn find_dead(placed: &Placed, blocks: &[Vec<Step>], useless: &mut [bool]) {
    // The registers that are read at the start of a block, or later before they are written.
    let mut live = vec![0u64; blocks.len()];
    let behind = |live: &[u64], block: usize| {
        placed.block_succs(Block::new(block)).iter().fold(0, |all, next| all | live[next.index()])
    };
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..blocks.len()).rev() {
            let mut now = behind(&live, block);
            for step in blocks[block].iter().rev() {
                now = before(step, now, useless).0;
            }
            changed |= now != live[block];
            live[block] = now;
        }
    }
    for (block, steps) in blocks.iter().enumerate() {
        let mut now = behind(&live, block);
        for step in steps.iter().rev() {
            let (earlier, is_dead) = before(step, now, useless);
            now = earlier;
            if let (Step::Move { edit, .. }, true) = (step, is_dead) {
                useless[*edit] = true;
            }
        }
    }
}

/// Returns the registers that are read from a step on, given those that are read behind it, and
/// whether it is a move that nothing needs.
fn before(step: &Step, live: u64, useless: &[bool]) -> (u64, bool) {
    match *step {
        Step::Inst { reads, writes } => (live & !writes | reads, false),
        Step::Move { edit, .. } if useless[edit] => (live, false),
        Step::Move { from, to, .. } => {
            let read = match from {
                Place::Register(from) => 1 << from,
                Place::Memory(_) => 0,
            };
            match to {
                Place::Register(to) if live >> to & 1 == 0 => (live, true),
                Place::Register(to) => (live & !(1 << to) | read, false),
                Place::Memory(_) => (live | read, false),
            }
        }
    }
}
