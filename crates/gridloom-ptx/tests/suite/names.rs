//! The mutable visitor reaches every name of an instruction.

use crate::generate::Choices;
use gridloom_ptx::op::OperandMut;
use gridloom_ptx::{AddressBase, Operand, PredOperand, RegId, parse};
use proptest::prelude::*;

/// Returns the register of a place, if there is one.
fn reg(place: &OperandMut<'_>) -> Option<RegId> {
    match place {
        OperandMut::Def(reg) | OperandMut::Use(reg) => Some(**reg),
        OperandMut::Src(operand) => operand.as_reg(),
        OperandMut::Pred(PredOperand::Reg { reg, .. }) => Some(*reg),
        OperandMut::Addr(address) => match address.base {
            AddressBase::Reg(reg) => Some(reg),
            _ => None,
        },
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_registers_for_changing_are_those_for_reading(numbers in prop::collection::vec(any::<u64>(), 0..600)) {
        let module = Choices::new(&numbers).module();
        for (_, function) in module.functions() {
            for instruction in function.body.iter().flat_map(|body| &body.instructions) {
                let (mut read, mut named) = (Vec::new(), Vec::new());
                instruction.op.for_each_operand(&mut |place, _| read.extend(place.reg()));
                instruction.op.clone().for_each_name_mut(&mut |place| named.extend(reg(&place)));
                read.sort_unstable();
                named.sort_unstable();
                prop_assert_eq!(read, named, "{:?}", instruction);
            }
        }
    }
}

#[test]
fn labels_tables_functions_and_variables_are_names() {
    let module = parse(
        ".version 8.0 .target sm_80 .address_size 64
         .global .u32 counter;
         .func (.param .b32 out) helper(.param .b32 in) { ret; }
         .entry kernel(.param .u64 x) {
            .reg .b32 %r<3>; .reg .b64 %rd; .reg .pred %p;
            .param .b32 given; .param .b32 taken;
            table: .branchtargets first, second;
            ld.param.u64 %rd, [x];
            @%p bra second;
            brx.idx %r0, table;
         first: st.param.b32 [given], %r1;
            call (taken), helper, (given);
            mov.u64 %rd, counter;
         second: ret; }",
    )
    .unwrap();
    let (_, entry) = module.entry("kernel").unwrap();
    let mut seen = Vec::new();
    for mut instruction in entry.body.as_ref().unwrap().instructions.clone() {
        instruction.for_each_name_mut(&mut |place| {
            seen.push(match place {
                OperandMut::Label(_) => "label",
                OperandMut::BranchTable(_) => "table",
                OperandMut::Function(_) => "function",
                OperandMut::Var(_) => "variable",
                OperandMut::Src(Operand::Address { .. }) => "address",
                OperandMut::Addr(address) if matches!(address.base, AddressBase::Var(_)) => "memory",
                _ => return,
            });
        });
    }
    assert_eq!(seen, ["memory", "label", "table", "memory", "variable", "function", "variable", "address"]);
}
