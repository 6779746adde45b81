//! Recording of branches, loops and jumps out of them.

use crate::ir::{Label, Operand, Stmt};
use crate::record::recorder::with;
use crate::record::value::{V, Var};

/// Starts what is done where a condition holds.
pub fn if_begin(cond: V<bool>) -> V<bool> {
    with(|r| {
        let cond = cond.operand(r);
        r.open();
        V::of(cond)
    })
}

/// Goes on with what is done where it does not hold.
pub fn else_begin() {
    with(|r| r.open());
}

/// Ends an `if` without `else`.
pub fn if_end(cond: V<bool>) {
    with(|r| {
        let then = r.close();
        branch(r, cond, then, Vec::new());
    });
}

/// Ends an `if` with `else`.
pub fn if_else_end(cond: V<bool>) {
    with(|r| {
        let otherwise = r.close();
        let then = r.close();
        branch(r, cond, then, otherwise);
    });
}

fn branch(r: &mut super::recorder::Recorder, cond: V<bool>, then: Vec<Stmt>, otherwise: Vec<Stmt>) {
    match cond.operand(r) {
        Operand::Imm(_, bits) => {
            (if bits != 0 { then } else { otherwise }).into_iter().for_each(|stmt| r.push(stmt));
        }
        cond => r.push(Stmt::If { cond, then, otherwise }),
    }
}

/// Returns the result of a branch, in a variable that other branches also write.
pub fn result<X: Var>(value: X) -> X {
    let variable = X::declare();
    variable.assign(value);
    variable
}

/// Starts statements that can be left.
pub fn block_begin() -> Label {
    with(|r| {
        r.open();
        r.label()
    })
}

/// Ends statements that can be left.
pub fn block_end(label: Label) {
    with(|r| {
        let body = r.close();
        r.push(Stmt::Block { label, body });
    });
}

/// Starts a loop.
pub fn loop_begin() -> Label {
    with(|r| r.enter_loop());
    block_begin()
}

/// Ends the body of a loop and starts what comes before the next pass.
pub fn loop_step() {
    with(|r| r.open());
}

/// Ends a loop.
pub fn loop_end(label: Label) {
    with(|r| {
        let step = r.close();
        let body = r.close();
        r.push(Stmt::Loop { label, body, step });
        r.leave_loop();
    });
}

/// Leaves a block or loop.
pub fn leave(label: Label) {
    with(|r| r.push(Stmt::Break { label, when: None }));
}

/// Leaves a block or loop unless a condition holds.
pub fn leave_unless(label: Label, cond: V<bool>) {
    with(|r| match cond.operand(r) {
        Operand::Imm(_, 0) => r.push(Stmt::Break { label, when: None }),
        Operand::Imm(..) => {}
        cond => r.push(Stmt::Break { label, when: Some((cond, false)) }),
    });
}

/// Goes on with the next pass of a loop.
pub fn again(label: Label) {
    with(|r| r.push(Stmt::Continue(label)));
}

/// Ends the thread.
pub fn exit() {
    with(|r| r.push(Stmt::Exit));
}

/// Ends the launch with an error.
pub fn fail(message: &str, line: u32) {
    with(|r| {
        r.at(line);
        let site = r.site(message);
        r.push(Stmt::Fail(site));
    });
}

/// Ends the launch with an error unless a condition holds.
pub fn require(cond: V<bool>, message: &str, line: u32) {
    with(|r| {
        r.at(line);
        let cond = cond.operand(r);
        r.check(cond, false, message);
    });
}
