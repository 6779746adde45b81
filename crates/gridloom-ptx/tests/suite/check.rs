//! The checker, on modules that no parser made: it finds every invalid index and never panics.

use crate::common::module;
use gridloom_ptx::op::{CallTarget, ControlOp, IntOp, MemoryOp, Op};
use gridloom_ptx::{
    AddressBase, Body, BranchTableId, Guard, Item, LabelId, LocalVarId, Module, Operand, ParamId,
    PrototypeId, RegId, Symbol, SymbolId, VarRef, check,
};

const STATEMENTS: &str = "
    proto: .callprototype _ (.param .b32 _);
    table1: .branchtargets end;
    @%p1 add.s32 %r1, %r2, %r3;
    ld.shared.b32 %r1, [buffer];
    bra end;
    call %rd1, (arg), proto;
    brx.idx %r1, table1;
    mov.u64 %rd1, table;";

fn body(module: &mut Module) -> &mut Body {
    for symbol in &mut module.symbols {
        if let Symbol::Function(function) = symbol
            && let Some(body) = &mut function.body
        {
            return body;
        }
    }
    panic!("no body")
}

/// Changes the module, and expects the checker to say this, once, and printing not to panic.
fn finds(message: &str, change: impl FnOnce(&mut Module)) {
    let mut module = module(STATEMENTS);
    assert!(check(&module).is_empty());
    change(&mut module);
    let found: Vec<String> = check(&module).into_iter().map(|diagnostic| diagnostic.message).collect();
    assert_eq!(found, [message]);
    assert!(!module.to_string().is_empty());
}

#[test]
fn registers_that_do_not_exist() {
    let message = "a register that the function does not have";
    finds(message, |module| {
        if let Op::Int(IntOp::Arith { dst, .. }) = &mut body(module).instructions[0].op {
            *dst = RegId(10_000);
        }
    });
    finds(message, |module| {
        if let Op::Int(IntOp::Arith { b, .. }) = &mut body(module).instructions[0].op {
            *b = Operand::Reg(RegId(u32::MAX));
        }
    });
    finds(message, |module| {
        body(module).instructions[0].guard = Some(Guard { reg: RegId(92), negated: false })
    });
}

#[test]
fn variables_that_do_not_exist() {
    let message = "a variable or label that does not exist";
    let places = [
        VarRef::Local(LocalVarId(99)),
        VarRef::Param(ParamId(2)),
        VarRef::Return(ParamId(0)),
        VarRef::Symbol(SymbolId(99)),
    ];
    for place in places {
        finds(message, |module| {
            if let Op::Memory(MemoryOp::Ld { access, .. }) = &mut body(module).instructions[1].op {
                access.addr.base = AddressBase::Var(place);
            }
        });
    }
}

#[test]
fn targets_that_do_not_exist() {
    finds("a branch to a label that does not exist", |module| {
        body(module).instructions[2].op = ControlOp::Bra { uni: false, target: LabelId(7) }.into();
    });
    finds("label `end` stands beyond the end of the function", |module| body(module).labels[0].target = 1000);
    finds("`table1` names a label that does not exist", |module| {
        body(module).branch_tables[0].targets.push(LabelId(9));
    });
    finds("a branch through a table that does not exist", |module| {
        if let Op::Control(ControlOp::BrxIdx { table, .. }) = &mut body(module).instructions[4].op {
            *table = BranchTableId(3);
        }
    });
    finds("a call with a prototype that does not exist", |module| {
        if let Op::Control(ControlOp::Call { target, .. }) = &mut body(module).instructions[3].op {
            *target = CallTarget::Prototype(RegId(40), PrototypeId(3));
        }
    });
    finds("a call of something that is not a function", |module| {
        if let Op::Control(ControlOp::Call { target, .. }) = &mut body(module).instructions[3].op {
            *target = CallTarget::Direct(SymbolId(77));
        }
    });
    finds("a statement names a symbol that does not exist", |module| {
        module.items.push(Item::Declare(SymbolId(50)))
    });
}

#[test]
fn an_alias_that_leads_to_itself_leads_nowhere() {
    let mut module = module(STATEMENTS);
    let (id, _) = module.find("twice").expect("the function");
    if let Symbol::Function(function) = &mut module.symbols[id.index()] {
        function.alias_of = Some(id);
    }
    assert!(module.function(id).is_none());
}

#[test]
fn the_operand_that_is_wrong_is_underlined() {
    let text = ".version 8.0\n.target sm_80\n.entry k() {\n.reg .b32 %r<12>; .reg .b64 %r1x;\nadd.s32 %r1, %r11, %r1x;\n}";
    let found = check(&gridloom_ptx::parse(text).expect("a module"));
    let expected = "k.ptx:5:20: `add.s32`: `%r1x` is a .b64; a .s32 is needed here\n  add.s32 %r1, %r11, %r1x;\n                     ^~~~";
    assert_eq!(found[0].render("k.ptx"), expected);
}

#[test]
fn several_errors_come_in_the_order_of_the_text() {
    let found = check(&module("add.s32 %r1, %rd1, %f1; mov.u32 %r1, %rd1; @%r1 ret;"));
    let lines: Vec<u32> = found.iter().map(|diagnostic| diagnostic.column).collect();
    assert_eq!(found.len(), 4);
    assert!(lines.is_sorted());
}
