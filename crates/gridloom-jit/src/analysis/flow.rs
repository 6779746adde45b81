//! The control flow of one function: basic blocks, liveness, and the loops that could wait for
//! another thread.

use gridloom_interp::Space;
use gridloom_interp::code::{Code, Instruction, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use std::ops::Range;

/// Threads of a warp.
const WARP: u32 = 32;

/// How an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Compiled code executes it and continues after it.
    Compiled,
    /// Compiled code executes it as the end of a block.
    Terminator,
    /// The interpreter executes it: compiled code stops before it and is entered again after it.
    Interpreted,
}

/// A set of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet(Vec<u64>);

impl SlotSet {
    pub(crate) fn new(slots: u32) -> Self {
        Self(vec![0; slots.div_ceil(64) as usize])
    }

    pub(crate) fn insert(&mut self, Slot(slot): Slot) -> bool {
        let word = &mut self.0[slot as usize / 64];
        let before = *word;
        *word |= 1 << (slot % 64);
        before != *word
    }

    pub(crate) fn remove(&mut self, Slot(slot): Slot) {
        self.0[slot as usize / 64] &= !(1 << (slot % 64));
    }

    pub(crate) fn contains(&self, Slot(slot): Slot) -> bool {
        self.0[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(crate) fn union(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..).zip(&self.0).flat_map(|(i, &word)| {
            (0..64u32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| Slot(i * 64 + bit))
        })
    }
}

/// Instructions that are executed one after the other.
#[derive(Clone, Debug)]
pub(crate) struct BasicBlock {
    pub(crate) range: Range<Pc>,
    pub(crate) successors: Vec<Pc>,
    pub(crate) live_in: SlotSet,
    pub(crate) live_out: SlotSet,
}

/// The control flow of one function.
pub(crate) struct Flow<'a> {
    pub(crate) code: &'a Code,
    pub(crate) range: Range<Pc>,
    pub(crate) function: usize,
    pub(crate) is_kernel: bool,
    /// Whether a group is a whole warp, so that it executes collectives of the warp.
    is_whole_warp: bool,
    /// Whether results depend on which threads of a warp run together.
    asks_who_runs: bool,
    pub(crate) blocks: Vec<BasicBlock>,
    /// The targets of backward branches, and whether a thread in the loop may wait for another
    /// thread.
    pub(crate) loops: Vec<(Pc, bool)>,
    /// The number of predecessors of each block.
    predecessors: Vec<u32>,
    slots: u32,
}

impl<'a> Flow<'a> {
    /// Analyses a function, in code for groups of `lanes` threads.
    pub(crate) fn of(code: &'a Code, function: usize, lanes: u32) -> Self {
        let start = code.functions[function].entry;
        let next = code.functions.get(function + 1).map_or(code.instructions.len() as Pc, |f| f.entry);
        let mut flow = Flow {
            code,
            range: start..next,
            function,
            is_kernel: function == 0,
            is_whole_warp: lanes == WARP,
            asks_who_runs: code.instructions.iter().any(|instruction| match &instruction.op {
                Op::ActiveMask { .. } => true,
                Op::Collective(collective) => collective.mask.is_none(),
                _ => false,
            }),
            blocks: Vec::new(),
            loops: Vec::new(),
            predecessors: Vec::new(),
            slots: code.functions[function].slots,
        };
        flow.find_blocks();
        flow.find_predecessors();
        flow.find_live();
        flow.find_loops();
        flow
    }

    pub(crate) fn instruction(&self, pc: Pc) -> &'a Instruction {
        &self.code.instructions[pc as usize]
    }

    /// Returns how an instruction is executed.
    pub(crate) fn role(&self, pc: Pc) -> Role {
        self.role_in(pc, self.is_whole_warp)
    }

    /// Returns whether code for single threads leaves an instruction to the interpreter.
    pub(crate) fn is_interpreted_alone(&self, pc: Pc) -> bool {
        self.role_in(pc, false) == Role::Interpreted
    }

    fn role_in(&self, pc: Pc, is_whole_warp: bool) -> Role {
        let instruction = self.instruction(pc);
        match &instruction.op {
            Op::Map(_) | Op::Load(_) | Op::Fence | Op::Nothing => Role::Compiled,
            Op::Store(store) if store.operand.space != Space::Param => Role::Compiled,
            Op::Atomic(atomic) => crate::emit::atomic_role(atomic),
            Op::FrameAddress { .. } => Role::Compiled,
            Op::Special { register, .. } => crate::emit::special_role(*register),
            Op::Collective(_) | Op::ActiveMask { .. } if is_whole_warp && self.is_kernel => Role::Compiled,
            // A thread that runs ahead waits there for those of its warp that are still in this
            // pass.
            Op::Branch { target } if self.stops_before_passes(is_whole_warp) && *target <= pc => {
                Role::Interpreted
            }
            Op::BranchTable(table)
                if self.stops_before_passes(is_whole_warp)
                    && table.targets.iter().any(|&target| target <= pc) =>
            {
                Role::Interpreted
            }
            Op::Branch { .. } | Op::BranchTable(_) | Op::Exit => Role::Terminator,
            Op::Return if self.is_kernel => Role::Terminator,
            _ => Role::Interpreted,
        }
    }

    /// Returns whether the interpreter executes backward branches. It runs the threads of a warp
    /// that are at the earliest instruction first. As long as they only move forward, a thread may
    /// run ahead of others up to an instruction that asks which threads run together: the
    /// interpreter executes that once the others are there too. With a backward branch it would
    /// overtake them.
    pub(crate) fn stops_before_passes(&self, is_whole_warp: bool) -> bool {
        self.asks_who_runs && !(is_whole_warp && self.is_kernel)
    }

    /// Returns whether groups of this code leave backward branches to the interpreter.
    pub(crate) fn enters_passes(&self) -> bool {
        self.stops_before_passes(self.is_whole_warp)
    }

    fn find_blocks(&mut self) {
        let (start, end) = (self.range.start, self.range.end);
        let mut leads = vec![false; (end - start) as usize + 1];
        leads[0] = true;
        for pc in self.range.clone() {
            match &self.instruction(pc).op {
                Op::Branch { target } => leads[(target - start) as usize] = true,
                Op::BranchTable(table) => {
                    table.targets.iter().for_each(|target| leads[(target - start) as usize] = true);
                }
                _ => {}
            }
            if self.role(pc) != Role::Compiled {
                leads[(pc + 1 - start) as usize] = true;
            }
        }
        let starts: Vec<Pc> = self.range.clone().filter(|pc| leads[(pc - start) as usize]).collect();
        for (i, &first) in starts.iter().enumerate() {
            let behind = starts.get(i + 1).copied().unwrap_or(end);
            let last = behind - 1;
            let instruction = self.instruction(last);
            let conditional = instruction.guard.is_some();
            let mut successors = match &instruction.op {
                Op::Branch { target } => vec![*target],
                Op::BranchTable(table) => table.targets.clone(),
                Op::Return | Op::Exit | Op::Trap | Op::Breakpoint => vec![],
                _ => vec![behind],
            };
            if conditional && !successors.contains(&behind) {
                successors.push(behind);
            }
            successors.retain(|&successor| successor < end);
            self.blocks.push(BasicBlock {
                range: first..behind,
                successors,
                live_in: SlotSet::new(self.slots),
                live_out: SlotSet::new(self.slots),
            });
        }
    }

    /// Returns whether no thread that enters the function comes back from it: all that it reaches
    /// ends with a trap.
    pub(crate) fn never_returns(&self) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut work = vec![0];
        while let Some(index) = work.pop() {
            if self.blocks.get(index).is_none() || std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let block = &self.blocks[index];
            if block.range.clone().any(|pc| matches!(self.instruction(pc).op, Op::Return | Op::Exit)) {
                return false;
            }
            work.extend(block.successors.iter().filter_map(|&successor| self.block_at(successor)));
        }
        true
    }

    /// Returns the index of the block that starts at an instruction.
    pub(crate) fn block_at(&self, pc: Pc) -> Option<usize> {
        self.blocks.binary_search_by_key(&pc, |block| block.range.start).ok()
    }

    /// Returns whether the only predecessor of a block is the one before it.
    pub(crate) fn follows(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else { return false };
        let start = self.blocks[index].range.start;
        let leads = |block: &BasicBlock| block.successors.contains(&start);
        self.role(self.blocks[before].range.end - 1) != Role::Interpreted
            && leads(&self.blocks[before])
            && self.predecessors[index] == 1
    }

    /// Returns the only predecessor of a block, if compiled code goes from one to the other.
    pub(crate) fn only_predecessor(&self, index: usize) -> Option<usize> {
        let start = self.blocks[index].range.start;
        let before = self.blocks.iter().position(|block| block.successors.contains(&start))?;
        (self.predecessors[index] == 1 && index > 0).then_some(before)
    }

    fn find_predecessors(&mut self) {
        self.predecessors = vec![0; self.blocks.len()];
        for block in 0..self.blocks.len() {
            for successor in self.blocks[block].successors.clone() {
                if let Some(index) = self.block_at(successor) {
                    self.predecessors[index] += 1;
                }
            }
        }
    }

    fn find_live(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.blocks.len()).rev() {
                let mut live = SlotSet::new(self.slots);
                for &successor in &self.blocks[i].successors {
                    if let Some(block) = self.block_at(successor) {
                        live.union(&self.blocks[block].live_in);
                    }
                }
                self.blocks[i].live_out = live.clone();
                for pc in self.blocks[i].range.clone().rev() {
                    self.step_back(pc, &mut live);
                }
                if live != self.blocks[i].live_in {
                    self.blocks[i].live_in = live;
                    changed = true;
                }
            }
        }
    }

    /// Converts the set of slots live after an instruction to the set live before it.
    fn step_back(&self, pc: Pc, live: &mut SlotSet) {
        let instruction = self.instruction(pc);
        let certain = instruction.guard.is_none() && !matches!(instruction.op, Op::Call(_));
        if certain {
            instruction.for_each_definition(&mut |slot| live.remove(slot));
        }
        instruction.for_each_use(&mut |source| {
            if let Source::Slot(slot) = source {
                live.insert(slot);
            }
        });
    }

    /// Returns the slots that are live before each instruction of a block.
    pub(crate) fn live_before(&self, block: &BasicBlock) -> Vec<SlotSet> {
        let mut live = block.live_out.clone();
        let mut sets: Vec<SlotSet> = block
            .range
            .clone()
            .rev()
            .map(|pc| {
                self.step_back(pc, &mut live);
                live.clone()
            })
            .collect();
        sets.reverse();
        sets
    }

    /// Finds the loops. Every cycle has a branch to an earlier instruction.
    fn find_loops(&mut self) {
        let mut found: Vec<(Pc, Pc)> = Vec::new();
        for pc in self.range.clone() {
            let mut note = |target: Pc| {
                if target <= pc {
                    found.push((target, pc));
                }
            };
            match &self.instruction(pc).op {
                Op::Branch { target } => note(*target),
                Op::BranchTable(table) => table.targets.iter().for_each(|&target| note(target)),
                _ => {}
            }
        }
        for (head, end) in found {
            let waits = self.may_wait(head..end + 1);
            match self.loops.iter_mut().find(|(other, _)| *other == head) {
                Some((_, may_wait)) => *may_wait |= waits,
                None => self.loops.push((head, waits)),
            }
        }
    }

    /// Returns whether the exit of a loop depends on memory that another thread may write. Any
    /// other loop ends by itself or never.
    fn may_wait(&self, range: Range<Pc>) -> bool {
        let mut wanted = SlotSet::new(self.slots);
        let mut leaves = false;
        for pc in range.clone() {
            let instruction = self.instruction(pc);
            match &instruction.op {
                Op::Branch { .. } | Op::BranchTable(_) | Op::Return | Op::Exit => {
                    leaves |= instruction.guard.is_some() || !matches!(instruction.op, Op::Branch { .. });
                    instruction.for_each_use(&mut |source| {
                        if let Source::Slot(slot) = source {
                            wanted.insert(slot);
                        }
                    });
                }
                _ => {}
            }
        }
        if !leaves {
            return true;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for pc in range.clone() {
                let instruction = self.instruction(pc);
                let mut defines = false;
                instruction.for_each_definition(&mut |slot| defines |= wanted.contains(slot));
                if !defines {
                    continue;
                }
                let read_only = |space| matches!(space, Space::Param | Space::Const);
                match &instruction.op {
                    Op::Map(_) | Op::FrameAddress { .. } => {}
                    Op::Load(load) if read_only(load.operand.space) => {}
                    Op::Special { .. } if self.role(pc) == Role::Compiled => {}
                    _ => return true,
                }
                instruction.for_each_use(&mut |source| {
                    if let Source::Slot(slot) = source {
                        changed |= wanted.insert(slot);
                    }
                });
            }
        }
        false
    }
}

/// The most loads and stores of registers at all entries and exits of a function's code. They
/// dominate compile time.
const MOST_MOVES: usize = 1 << 18;

impl Flow<'_> {
    /// Returns about how many registers are loaded and stored at entries and exits.
    fn moves(&self) -> usize {
        let mut moves = 0usize;
        for block in &self.blocks {
            let live = block.live_in.iter().count();
            let ways = block.range.clone().filter(|&pc| match &self.instruction(pc).op {
                Op::Load(load) => load.operand.space == Space::Generic,
                Op::Store(store) => store.operand.space == Space::Generic,
                Op::Map(_) => false,
                _ => true,
            });
            moves = moves.saturating_add(live * (2 + ways.count()));
        }
        moves
    }

    /// Returns why a function is too large to compile, or `None`.
    pub(crate) fn too_large(&self) -> Option<String> {
        (self.moves() > MOST_MOVES)
            .then(|| "it uses so many registers at once that compiling it would take too long".to_owned())
    }
}

/// Returns why a kernel must be interpreted as a whole, or `None`.
pub(crate) fn refusal(code: &Code) -> Option<String> {
    const MOST: usize = 20_000;
    const MOST_BITS: usize = 1 << 26;
    let slots = code.functions.iter().map(|function| function.slots as usize).max().unwrap_or(0);
    if code.instructions.len().saturating_mul(slots) > MOST_BITS {
        return Some(format!(
            "{} instructions on {slots} registers are too many to compile",
            code.instructions.len()
        ));
    }
    if code.instructions.len() > MOST {
        return Some(format!(
            "{} instructions are more than the {MOST} that are compiled",
            code.instructions.len()
        ));
    }
    None
}
