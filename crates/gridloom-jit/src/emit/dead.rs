//! Removal of unused loads. Every group loads what it may need of the machine and of what a block
//! shares. Cranelift removes unused computations, but no loads.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, ValueDef};

/// Removes loads of the code's own memory whose result is not used: those of the stack and of what
/// never changes, and some others. Loads of the kernel stay, because they may fault.
pub(super) fn remove_loads(func: &mut Function, others: &[Inst]) {
    let mut is_used = SecondaryMap::with_capacity(func.dfg.num_values());
    let mut own: Vec<Inst> = others.to_vec();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                is_used[func.dfg.resolve_aliases(value)] = true;
            }
            if is_own(func, inst) {
                own.push(inst);
            }
        }
    }
    for inst in own {
        if !is_used[func.dfg.first_result(inst)] {
            func.layout.remove_inst(inst);
        }
    }
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
