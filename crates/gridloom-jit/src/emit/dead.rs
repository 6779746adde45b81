//! Loads that nothing uses. Of what a block shares, and of the machine, every group loads what it may need; Cranelift leaves out what is only
//! computed and not used, but no load.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, ValueDef};

/// Takes out loads of the code's own memory whose result is not used. Those of the kernel stay: they may fault.
pub(super) fn remove_loads(func: &mut Function) {
    let mut is_used = SecondaryMap::with_capacity(func.dfg.num_values());
    let mut own: Vec<Inst> = Vec::new();
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

/// Whether an instruction is a load from the stack, or of what stays as it is.
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
