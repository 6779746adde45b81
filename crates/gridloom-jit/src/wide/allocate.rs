//! Register allocation.

use super::inst::{Clobbers, GENERAL, Inst, MASK, Op, RBP, RSP, VECTOR, caller_saved, general};
use super::select::{MachineBlock, Selected};
use regalloc2::{
    Algorithm, Block, Function, Inst as InstIndex, InstRange, MachineEnv, Operand, Output, PReg, PRegSet,
    RegAllocError, RegClass, RegallocOptions, VReg,
};
use std::sync::OnceLock;

/// A function whose blocks and instructions are in their final order.
pub(super) struct Placed {
    pub(super) insts: Vec<Inst>,
    pub(super) blocks: Vec<MachineBlock>,
    /// For each block, its first instruction; and the number of instructions.
    starts: Vec<u32>,
    predecessors: Vec<Vec<Block>>,
    successors: Vec<Vec<Block>>,
    operands: Vec<Operand>,
    vregs: usize,
}

impl Placed {
    /// Places the blocks on the edges of others behind those, and seldom run blocks last.
    pub(super) fn of(selected: &mut Selected) -> Self {
        let count = selected.blocks.len();
        let mut order: Vec<u32> = Vec::with_capacity(count);
        let mut is_placed = vec![false; count];
        let mut predecessors = vec![0; count];
        for block in &selected.blocks {
            block.successors.iter().for_each(|&next| predecessors[next as usize] += 1);
        }
        // Blocks on edges have the highest numbers.
        let edges = selected.first_edge;
        for cold in [false, true] {
            for number in 0..edges {
                if selected.blocks[number as usize].cold != cold {
                    continue;
                }
                order.push(number);
                for &next in &selected.blocks[number as usize].successors {
                    let is_edge = next >= edges && selected.blocks[next as usize].cold == cold;
                    if is_edge && !std::mem::replace(&mut is_placed[next as usize], true) {
                        order.push(next);
                    }
                }
            }
        }
        order.extend((edges..count as u32).filter(|&edge| !is_placed[edge as usize]));
        let mut numbers = vec![0; count];
        for (new, &old) in order.iter().enumerate() {
            numbers[old as usize] = new as u32;
        }
        let mut old: Vec<Option<MachineBlock>> =
            std::mem::take(&mut selected.blocks).into_iter().map(Some).collect();
        let mut blocks: Vec<MachineBlock> =
            order.iter().filter_map(|&number| old[number as usize].take()).collect();
        let mut insts = Vec::new();
        let mut starts = Vec::with_capacity(count + 1);
        let mut predecessors = vec![Vec::new(); count];
        let mut successors = Vec::with_capacity(count);
        for (number, block) in blocks.iter_mut().enumerate() {
            starts.push(insts.len() as u32);
            insts.append(&mut block.insts);
            for next in &mut block.successors {
                *next = numbers[*next as usize];
                predecessors[*next as usize].push(Block::new(number));
            }
            successors.push(block.successors.iter().map(|&next| Block::new(next as usize)).collect());
        }
        starts.push(insts.len() as u32);
        let operands = std::mem::take(&mut selected.operands);
        Self { insts, blocks, starts, predecessors, successors, operands, vregs: selected.vregs }
    }
}

impl Function for Placed {
    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        Block::new(0)
    }

    fn block_insns(&self, block: Block) -> InstRange {
        let [from, to] = [0, 1].map(|i| InstIndex::new(self.starts[block.index() + i] as usize));
        InstRange::new(from, to)
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.successors[block.index()]
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.predecessors[block.index()]
    }

    fn block_params(&self, block: Block) -> &[VReg] {
        &self.blocks[block.index()].params
    }

    fn is_ret(&self, inst: InstIndex) -> bool {
        matches!(self.insts[inst.index()].op, Op::Return)
    }

    fn is_branch(&self, inst: InstIndex) -> bool {
        matches!(self.insts[inst.index()].op, Op::Jump | Op::JumpIf(_) | Op::JumpTable)
    }

    fn branch_blockparams(&self, block: Block, _: InstIndex, _: usize) -> &[VReg] {
        &self.blocks[block.index()].arguments
    }

    fn inst_operands(&self, inst: InstIndex) -> &[Operand] {
        let (from, to) = self.insts[inst.index()].operands;
        &self.operands[from as usize..to as usize]
    }

    fn inst_clobbers(&self, inst: InstIndex) -> PRegSet {
        match self.insts[inst.index()].clobbers {
            Clobbers::Nothing => PRegSet::empty(),
            Clobbers::Register(number) => {
                let mut set = PRegSet::empty();
                set.add(general(number));
                set
            }
            Clobbers::Call => {
                let mut set = caller_saved();
                // What the call defines is no clobber.
                for operand in self.inst_operands(inst) {
                    if let (regalloc2::OperandKind::Def, regalloc2::OperandConstraint::FixedReg(register)) =
                        (operand.kind(), operand.constraint())
                    {
                        set.remove(register);
                    }
                }
                set
            }
        }
    }

    fn num_vregs(&self) -> usize {
        self.vregs
    }

    fn spillslot_size(&self, class: RegClass) -> usize {
        if class == VECTOR { 8 } else { 1 }
    }
}

fn environment() -> &'static MachineEnv {
    static ENVIRONMENT: OnceLock<MachineEnv> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let set = |class: RegClass, numbers: &mut dyn Iterator<Item = u8>| {
            let mut set = PRegSet::empty();
            numbers.for_each(|number| set.add(PReg::new(number.into(), class)));
            set
        };
        let free = |number: &u8| *number != RSP && *number != RBP;
        let saved = |number: &u8| super::inst::CALLEE_SAVED.contains(number);
        MachineEnv {
            preferred_regs_by_class: [
                set(GENERAL, &mut (0..16).filter(|number| free(number) && !saved(number))),
                // The others make instructions longer.
                set(VECTOR, &mut (0..16)),
                set(MASK, &mut (1..8)),
            ],
            non_preferred_regs_by_class: [
                set(GENERAL, &mut (0..16).filter(saved)),
                set(VECTOR, &mut (16..32)),
                PRegSet::empty(),
            ],
            scratch_by_class: [None; 3],
            fixed_stack_slots: Vec::new(),
        }
    })
}

/// Allocates registers.
pub(super) fn allocate(placed: &Placed) -> Result<Output, String> {
    let options = RegallocOptions {
        verbose_log: false,
        validate_ssa: cfg!(debug_assertions),
        algorithm: Algorithm::Ion,
    };
    regalloc2::run(placed, environment(), &options).map_err(|error: RegAllocError| format!("{error:?}"))
}
