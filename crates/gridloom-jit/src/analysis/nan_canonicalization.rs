//! Finds registers in which a NaN need not be canonical.
//!
//! Single-precision arithmetic in PTX produces one NaN, `0x7fffffff`, whatever its operands were.
//! The host produces others. But arithmetic does not distinguish the NaNs of its operands. So in a
//! register that only arithmetic writes, the NaN is made canonical only where something else reads
//! the register: a store, a move, a suspension. In any other register that arithmetic writes, it
//! can wait until the end of the block.

use crate::analysis::flow::Flow;
use crate::native::{Class, Kind, Native};
use gridloom_interp::code::Op;
use gridloom_interp::lanes::{Slot, Source};

/// Returns whether an instruction does not distinguish the NaNs of its operands.
pub(crate) fn ignores_payload(native: &Native) -> bool {
    native.operands[0] == Class::F32
        && !matches!(native.kind, Kind::Copy | Kind::Select | Kind::Promote { .. } | Kind::FloatApprox { .. })
}

/// Returns whether an instruction's result comes from floating-point arithmetic.
pub(crate) fn computes(native: &Native) -> bool {
    let is_more = matches!(
        native.kind,
        Kind::FloatDivApprox { .. }
            | Kind::FloatRsqrt { .. }
            | Kind::FloatFmaDown
            | Kind::FloatApprox { .. }
            | Kind::FloatAbs { .. }
            | Kind::FloatNeg { .. }
            | Kind::RoundIntegral { .. }
    );
    native.result == Class::F32 && (native.kind.is_float_arithmetic() || is_more)
}

/// Returns for each slot whether it is such a register.
pub(crate) fn registers(flow: &Flow<'_>, natives: &[Option<Native>]) -> Vec<bool> {
    let function = &flow.code.functions[flow.function];
    let mut lazy: Vec<bool> =
        (0..function.slots).map(|slot| function.type_of(Slot(slot)).bits() == 32).collect();
    let mut written = vec![false; lazy.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for pc in flow.range.clone() {
            let instruction = flow.instruction(pc);
            let native = natives[(pc - flow.range.start) as usize].as_ref();
            let fits = match (&instruction.op, native) {
                (Op::Map(_), Some(native)) if computes(native) => true,
                (Op::Map(map), Some(Native { kind: Kind::Copy | Kind::Select, .. })) => {
                    map.sources().iter().take(2).all(|source| match source {
                        Source::Slot(Slot(slot)) => lazy[*slot as usize],
                        Source::Constant(index) => {
                            let bits = flow.code.constants[*index as usize][0] as u32;
                            bits & 0x7fff_ffff <= 0x7f80_0000
                        }
                    })
                }
                _ => false,
            };
            instruction.for_each_definition(&mut |Slot(slot)| {
                written[slot as usize] = true;
                if !fits && lazy[slot as usize] {
                    lazy[slot as usize] = false;
                    changed = true;
                }
            });
        }
    }
    lazy.iter().zip(written).map(|(&lazy, written)| lazy && written).collect()
}
