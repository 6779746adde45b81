//! Where threads of a group can be while others of them run: what decides which code is written for some threads only.
//!
//! Threads that part at a branch go on together as soon as they are at the same block. Of the blocks that threads are at, the first in the order of
//! the program is always run next, by all threads that are at it; the others wait. Ways that part meet behind both, and threads that have left a loop
//! wait behind it, so that this finds where they meet without looking for it, whatever the control flow.
//!
//! A block can be run by some threads only if others can be waiting meanwhile, or have exited. What those still need, they must keep: a register that such
//! a block writes is one of each thread by itself, and written in the threads that run.

use crate::analysis::flow::{Flow, Role, SlotSet};
use gridloom_interp::code::Op;
use gridloom_interp::lanes::{Slot, Source};

/// Blocks of a function in which threads that part are run together again; in larger ones each goes on alone.
const MOST: usize = 400;

/// A set of blocks, and the end of the function, which follows all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockSet(Vec<u64>);

impl BlockSet {
    fn new(blocks: usize) -> Self {
        Self(vec![0; (blocks + 1).div_ceil(64)])
    }

    fn insert(&mut self, block: usize) {
        self.0[block / 64] |= 1 << (block % 64);
    }

    fn remove(&mut self, block: usize) {
        self.0[block / 64] &= !(1 << (block % 64));
    }

    /// Whether others have made it larger.
    fn union(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            changed |= other & !*word != 0;
            *word |= other;
        }
        changed
    }

    pub(crate) fn contains(&self, block: usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 == 1
    }

    pub(crate) fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit)
        })
    }
}

/// For each block of a function which threads can be elsewhere while some run it.
pub(crate) struct Divergence {
    /// For each block that threads can come to after they have parted, where others can be then.
    waiting: Vec<Option<BlockSet>>,
    /// What those need.
    live: Vec<SlotSet>,
}

impl Divergence {
    /// Of code in which threads that part do not run together.
    pub(crate) fn none(flow: &Flow<'_>) -> Self {
        Self { waiting: vec![None; flow.blocks.len()], live: Vec::new() }
    }

    /// Of a function, given which registers can differ between threads.
    pub(crate) fn of(flow: &Flow<'_>, differs: impl Fn(Source) -> bool) -> Self {
        let blocks = flow.blocks.len();
        let mut this = Self::none(flow);
        if blocks > MOST {
            return this;
        }
        let ways: Vec<Vec<BlockSet>> = (0..blocks).map(|block| ways(flow, &differs, block)).collect();
        let mut work = Vec::new();
        let nowhere = BlockSet::new(blocks);
        for way in ways.iter().flatten().filter(|way| way.iter().nth(1).is_some()) {
            this.land(&nowhere, way, &mut work);
        }
        while let Some(block) = work.pop() {
            let Some(waiting) = this.waiting[block].clone() else { continue };
            for way in &ways[block] {
                this.land(&waiting, way, &mut work);
            }
            // Nobody may be at the block itself.
            this.land(&waiting, &nowhere, &mut work);
        }
        this.live = (this.waiting.iter())
            .map(|waiting| {
                let mut live = SlotSet::new(flow.code.functions[flow.function].slots);
                for block in waiting.iter().flat_map(BlockSet::iter).filter(|&block| block < blocks) {
                    live.union(&flow.blocks[block].live_in);
                }
                live
            })
            .collect();
        this
    }

    /// Notes that threads are at some blocks, of which the first is run next.
    fn land(&mut self, waiting: &BlockSet, way: &BlockSet, work: &mut Vec<usize>) {
        let mut at = waiting.clone();
        at.union(way);
        let Some(first) = at.first().filter(|&first| first < self.waiting.len()) else { return };
        at.remove(first);
        match &mut self.waiting[first] {
            Some(known) => {
                if known.union(&at) {
                    work.push(first);
                }
            }
            unknown => {
                *unknown = Some(at);
                work.push(first);
            }
        }
    }

    /// Whether threads can come to a block after they have parted, though maybe all of them.
    pub(crate) fn is_met(&self, block: usize) -> bool {
        self.waiting[block].is_some()
    }

    /// Where others can be while threads are at a block that they can come to after they have parted.
    pub(crate) fn waiting(&self, block: usize) -> Option<&BlockSet> {
        self.waiting[block].as_ref()
    }

    /// What threads need that can be elsewhere while others run a block; none if nobody can.
    pub(crate) fn kept(&self, block: usize) -> Option<&SlotSet> {
        let waits = self.waiting[block].as_ref()?.first().is_some();
        waits.then(|| &self.live[block])
    }

    /// Where threads can be behind a block from which they go to some others, and which others there were.
    pub(crate) fn behind(&self, block: Option<usize>, ways: &[usize]) -> BlockSet {
        let mut at = match block.and_then(|block| self.waiting[block].clone()) {
            Some(waiting) => waiting,
            None => BlockSet::new(self.waiting.len()),
        };
        ways.iter().for_each(|&way| at.insert(way));
        at
    }

    /// The place behind all blocks, of threads that have exited.
    pub(crate) fn end(&self) -> usize {
        self.waiting.len()
    }

    /// Calls `visit` with the registers that are written while threads that need another value wait.
    pub(crate) fn for_each_divided(&self, flow: &Flow<'_>, visit: &mut dyn FnMut(Slot)) {
        for (index, block) in flow.blocks.iter().enumerate() {
            let Some(kept) = self.kept(index) else { continue };
            for pc in block.range.clone() {
                flow.instruction(pc).for_each_definition(&mut |slot| {
                    if kept.contains(slot) {
                        visit(slot);
                    }
                });
            }
        }
    }
}

/// The sets of blocks that threads can go to together from one: more than one in a set where they part.
fn ways(flow: &Flow<'_>, differs: &impl Fn(Source) -> bool, index: usize) -> Vec<BlockSet> {
    let blocks = flow.blocks.len();
    let block = &flow.blocks[index];
    let last = block.range.end - 1;
    let instruction = flow.instruction(last);
    if flow.role(last) == Role::Interpreted {
        return Vec::new();
    }
    let behind = flow.block_at(block.range.end);
    let mut targets: Vec<usize> = match &instruction.op {
        Op::Branch { target } => flow.block_at(*target).into_iter().collect(),
        Op::BranchTable(table) => table.targets.iter().filter_map(|&target| flow.block_at(target)).collect(),
        Op::Exit | Op::Return => vec![blocks],
        _ => behind.into_iter().collect(),
    };
    let is_terminator = flow.role(last) == Role::Terminator;
    let mut part = matches!(&instruction.op, Op::BranchTable(table) if differs(table.index));
    if let (Some(guard), true) = (instruction.guard, is_terminator) {
        targets.extend(behind);
        part |= differs(Source::Slot(guard.slot));
    }
    let set = |targets: &[usize]| {
        let mut set = BlockSet::new(blocks);
        targets.iter().for_each(|&target| set.insert(target));
        set
    };
    if part { vec![set(&targets)] } else { targets.iter().map(|&target| set(&[target])).collect() }
}
