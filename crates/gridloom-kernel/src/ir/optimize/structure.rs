//! Turns blocks that are left early into branches, and removes jumps to the next statement.

use super::ends;
use crate::ir::{Label, Stmt};

pub(super) fn run(list: &mut Vec<Stmt>) {
    let stmts = std::mem::take(list);
    for stmt in stmts {
        if ends(list) {
            break;
        }
        push(list, stmt);
    }
}

fn push(list: &mut Vec<Stmt>, stmt: Stmt) {
    match stmt {
        Stmt::Block { label, mut body } => {
            run(&mut body);
            remove_last(&mut body, label);
            body = nested(body, label);
            remove_last(&mut body, label);
            if is_left(&body, label) {
                list.push(Stmt::Block { label, body });
            } else {
                list.extend(body);
            }
        }
        Stmt::If { cond, mut then, mut otherwise } => {
            run(&mut then);
            run(&mut otherwise);
            if !(then.is_empty() && otherwise.is_empty()) {
                list.push(Stmt::If { cond, then, otherwise });
            }
        }
        Stmt::Loop { label, mut body, mut step } => {
            run(&mut body);
            run(&mut step);
            remove_continue(&mut body, label);
            list.push(Stmt::Loop { label, body, step });
        }
        other => list.push(other),
    }
}

/// Returns whether a block is left somewhere in the statements.
fn is_left(list: &[Stmt], label: Label) -> bool {
    list.iter().any(|stmt| {
        matches!(stmt, Stmt::Break { label: to, .. } | Stmt::Continue(to) if *to == label)
            || stmt.inner().into_iter().any(|inner| is_left(inner, label))
    })
}

/// Removes jumps behind the statements from their ends.
fn remove_last(list: &mut Vec<Stmt>, label: Label) {
    match list.last_mut() {
        Some(Stmt::Break { label: to, .. }) if *to == label => {
            list.pop();
            remove_last(list, label);
        }
        Some(Stmt::If { then, otherwise, .. }) => {
            remove_last(then, label);
            remove_last(otherwise, label);
            if then.is_empty() && otherwise.is_empty() {
                list.pop();
            }
        }
        _ => {}
    }
}

/// Removes jumps to the step of a loop from the ends of its body.
fn remove_continue(list: &mut Vec<Stmt>, label: Label) {
    match list.last_mut() {
        Some(Stmt::Continue(to)) if *to == label => {
            list.pop();
        }
        Some(Stmt::If { then, otherwise, .. }) => {
            remove_continue(then, label);
            remove_continue(otherwise, label);
        }
        _ => {}
    }
}

/// Returns the statements of a block with the statements that follow a conditional exit moved into
/// a branch.
fn nested(list: Vec<Stmt>, label: Label) -> Vec<Stmt> {
    let mut before = Vec::new();
    let mut rest = list.into_iter();
    while let Some(stmt) = rest.next() {
        match stmt {
            Stmt::Break { label: to, when: Some((cond, when)) } if to == label => {
                let inner = nested(rest.collect(), label);
                let (then, otherwise) = if when { (Vec::new(), inner) } else { (inner, Vec::new()) };
                before.push(Stmt::If { cond, then, otherwise });
                return before;
            }
            // What follows is done only on the other side of the branch.
            Stmt::If { cond, mut then, mut otherwise }
                if leaves(&then, label) != leaves(&otherwise, label) =>
            {
                let inner: Vec<Stmt> = rest.collect();
                let other = if leaves(&then, label) {
                    then.pop();
                    &mut otherwise
                } else {
                    otherwise.pop();
                    &mut then
                };
                if !ends(other) {
                    other.extend(inner);
                }
                let then = nested(then, label);
                let otherwise = nested(otherwise, label);
                before.push(Stmt::If { cond, then, otherwise });
                return before;
            }
            other => before.push(other),
        }
    }
    before
}

/// Returns whether statements end by leaving a block.
fn leaves(list: &[Stmt], label: Label) -> bool {
    matches!(list.last(), Some(Stmt::Break { label: to, when: None }) if *to == label)
}
