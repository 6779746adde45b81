//! Removal of unused loads. Every group loads what it may need of the machine and of what a block
//! shares. Cranelift removes unused computations, but no loads.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};

/// Removes loads of the code's own memory whose result is not used: those of the stack and of what
/// never changes, and some others. Computations that only these loads are for are removed too.
/// Loads of the kernel stay, because they may fault.
pub(super) fn remove_loads(func: &mut Function, others: &[Inst]) {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(func.dfg.num_values());
    let mut unused: Vec<Inst> = Vec::new();
    let mut is_other: SecondaryMap<Inst, bool> = SecondaryMap::new();
    others.iter().for_each(|&inst| is_other[inst] = true);
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                uses[func.dfg.resolve_aliases(value)] += 1;
            }
            if is_other[inst] || is_own(func, inst) || only_computes(func, inst) {
                unused.push(inst);
            }
        }
    }
    while let Some(inst) = unused.pop() {
        let is_removed = func.layout.inst_block(inst).is_none();
        if is_removed || func.dfg.inst_results(inst).iter().any(|&result| uses[result] > 0) {
            continue;
        }
        let operands: Vec<Value> = func.dfg.inst_values(inst).collect();
        func.layout.remove_inst(inst);
        for operand in operands {
            let operand = func.dfg.resolve_aliases(operand);
            uses[operand] -= 1;
            if let (0, ValueDef::Result(made_by, _)) = (uses[operand], func.dfg.value_def(operand))
                && (is_other[made_by] || is_own(func, made_by) || only_computes(func, made_by))
            {
                unused.push(made_by);
            }
        }
    }
}

/// Returns whether an instruction has no effect but its results.
fn only_computes(func: &Function, inst: Inst) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    !func.dfg.inst_results(inst).is_empty()
        && !opcode.can_load()
        && !opcode.can_store()
        && !opcode.is_call()
        && !opcode.can_trap()
        && !opcode.other_side_effects()
        && !opcode.is_terminator()
}

/// Returns whether an instruction loads from the stack or from memory that never changes.
fn is_own(func: &Function, inst: Inst) -> bool {
    let InstructionData::Load { opcode: Opcode::Load, arg, flags, .. } = func.dfg.insts[inst] else {
        return false;
    };
    let from_stack = match func.dfg.value_def(func.dfg.resolve_aliases(arg)) {
        ValueDef::Result(address, _) => func.dfg.insts[address].opcode() == Opcode::StackAddr,
        _ => false,
    };
    from_stack || func.dfg.mem_flags[flags].readonly()
}
