//! Brings the statements of a program into the forms that become nodes of a graph: a `match` around
//! parallel loops becomes branches, and a `break` loses the label of the loop that it is in.

use syn::{Block, Expr, Pat, Stmt};

use super::analysis::names_of;
use crate::tokens::contains;

pub(super) fn normalize(block: &mut Block) {
    for stmt in &mut block.stmts {
        let Stmt::Expr(expr, _) = stmt else { continue };
        if let Expr::Match(arms) = expr
            && contains(&*arms, "par")
            && let Some(branches) = branches(arms)
        {
            *expr = branches;
        }
        expression(expr);
    }
}

fn expression(expr: &mut Expr) {
    match expr {
        Expr::While(around) => body_of_loop(around.label.as_ref(), &mut around.body),
        Expr::Loop(around) => body_of_loop(around.label.as_ref(), &mut around.body),
        Expr::ForLoop(around) if !contains(&around.expr, "par") => {
            body_of_loop(around.label.as_ref(), &mut around.body);
        }
        Expr::If(branch) => {
            normalize(&mut branch.then_branch);
            if let Some((_, otherwise)) = &mut branch.else_branch {
                expression(otherwise);
            }
        }
        Expr::Block(block) => normalize(&mut block.block),
        _ => {}
    }
}

fn body_of_loop(label: Option<&syn::Label>, body: &mut Block) {
    if let Some(label) = label {
        for stmt in &mut body.stmts {
            if let Stmt::Expr(Expr::If(branch), _) = stmt
                && let Some(Stmt::Expr(Expr::Break(leave), _)) = branch.then_branch.stmts.last_mut()
                && leave.label.as_ref() == Some(&label.name)
            {
                leave.label = None;
            }
        }
    }
    normalize(body);
}

/// Returns the branches that a `match` is, where its patterns bind no names and its last one always
/// fits.
fn branches(arms: &syn::ExprMatch) -> Option<Expr> {
    let subject = &arms.expr;
    if !is_place(subject) || arms.arms.iter().any(|arm| !names_of(&arm.pat).is_empty()) {
        return None;
    }
    let (last, before) = arms.arms.split_last()?;
    if !matches!(last.pat, Pat::Wild(_)) || last.guard.is_some() {
        return None;
    }
    let block = |body: &Expr| -> Expr {
        match body {
            Expr::Block(block) if block.label.is_none() => body.clone(),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => syn::parse_quote!({}),
            other => syn::parse_quote!({ #other; }),
        }
    };
    let mut chain = block(&last.body);
    for arm in before.iter().rev() {
        let (pat, then) = (&arm.pat, block(&arm.body));
        let guard = arm.guard.as_ref().map(|(word, guard)| quote::quote!(#word #guard));
        chain = syn::parse_quote!(if ::core::matches!(#subject, #pat #guard) #then else #chain);
    }
    Some(chain)
}

/// Returns whether reading an expression again changes nothing.
fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Paren(paren) => is_place(&paren.expr),
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Deref(_)) && is_place(&unary.expr),
        Expr::Binary(binary) => is_place(&binary.left) && is_place(&binary.right),
        Expr::Index(index) => is_place(&index.expr) && is_place(&index.index),
        _ => false,
    }
}
