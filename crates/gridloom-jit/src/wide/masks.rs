//! Finds vectors that are masks: each element is all ones or all zeros. They are held in mask
//! registers.

use super::intrinsic::Intrinsic;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};

/// Finds the vectors that are masks.
pub(super) fn find(func: &Function, order: &[Block]) -> SecondaryMap<Value, bool> {
    let mut is_mask = SecondaryMap::with_capacity(func.dfg.num_values());
    // Parameters of blocks are assumed to be masks until an argument is not.
    for &block in order {
        if func.layout.entry_block() != Some(block) {
            for &param in func.dfg.block_params(block) {
                let ty = func.dfg.value_type(param);
                is_mask[param] = ty.is_vector() && ty.lane_type().is_int() && ty.lane_bits() >= 32;
            }
        }
    }
    loop {
        let mut changed = false;
        for &block in order {
            for inst in func.layout.block_insts(block) {
                if let &[result] = func.dfg.inst_results(inst) {
                    let holds = is_mask_made(func, inst, &is_mask);
                    changed |= is_mask[result] != holds;
                    is_mask[result] = holds;
                }
                for call in
                    func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
                {
                    let params = func.dfg.block_params(call.block(&func.dfg.value_lists));
                    for (&param, arg) in params.iter().zip(call.args(&func.dfg.value_lists)) {
                        let holds = arg.as_value().is_some_and(|arg| is_mask[func.dfg.resolve_aliases(arg)]);
                        if is_mask[param] && !holds {
                            is_mask[param] = false;
                            changed = true;
                        }
                    }
                }
            }
        }
        if !changed {
            return is_mask;
        }
    }
}

/// Returns whether an instruction makes a mask, given which of its operands are masks.
fn is_mask_made(func: &Function, inst: Inst, is_mask: &SecondaryMap<Value, bool>) -> bool {
    let dfg = &func.dfg;
    let of = |value: Value| is_mask[dfg.resolve_aliases(value)];
    let result = dfg.first_result(inst);
    let ty = dfg.value_type(result);
    if !ty.is_vector() || ty.lane_bits() < 32 {
        return false;
    }
    match dfg.insts[inst] {
        InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
        InstructionData::Binary { opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor, args } => {
            args.into_iter().all(of)
        }
        InstructionData::Ternary { opcode: Opcode::Bitselect, args } => args.into_iter().all(of),
        InstructionData::Unary { opcode: Opcode::Bnot | Opcode::SwidenLow | Opcode::SwidenHigh, arg } => {
            of(arg)
        }
        InstructionData::Unary { opcode: Opcode::Splat, arg } => {
            match dfg.value_def(dfg.resolve_aliases(arg)) {
                ValueDef::Result(inst, _) => dfg.insts[inst].opcode() == Opcode::Bmask,
                _ => false,
            }
        }
        InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. } => {
            of(arg) && dfg.value_type(arg).lane_bits() == ty.lane_bits()
        }
        InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } => {
            let bytes = dfg.constants.get(constant_handle).as_slice();
            bytes
                .chunks(ty.lane_type().bytes() as usize)
                .all(|lane| lane.iter().all(|&byte| byte == 0) || lane.iter().all(|&byte| byte == 0xff))
        }
        InstructionData::Call { func_ref, ref args, .. } => match Intrinsic::of(func, func_ref) {
            Some(Intrinsic::MasksOfBits) => true,
            // The halves of 64-bit masks.
            Some(Intrinsic::Words) => {
                let args = args.as_slice(&dfg.value_lists);
                let halves = dfg.value_type(args[0]).lane_bits() == 64 && ty.lane_bits() == 32;
                halves && of(args[0]) && of(args[1]) && is_every_second(func, args[2])
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether indices of words select each second one, in order.
pub(super) fn is_every_second(func: &Function, indices: Value) -> bool {
    let dfg = &func.dfg;
    let ValueDef::Result(inst, _) = dfg.value_def(dfg.resolve_aliases(indices)) else { return false };
    let InstructionData::UnaryConst { constant_handle, .. } = dfg.insts[inst] else { return false };
    let bytes = dfg.constants.get(constant_handle).as_slice();
    bytes.chunks(4).enumerate().all(|(i, word)| {
        let index = u32::from_le_bytes(word.try_into().unwrap_or_default()) as usize;
        index / 2 == i
    })
}
