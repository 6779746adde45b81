//! Queries about expressions.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{BinOp, Block, Expr, Stmt, UnOp};

use crate::names;
use crate::tokens::contains;

/// Returns the source line of a span. There is none outside of the compiler, in tests.
pub(super) fn line(span: Span) -> u32 {
    if cfg!(test) { 0 } else { span.unwrap().line() as u32 }
}

/// Returns the source text of an expression, for messages.
pub(super) fn text(expr: &impl ToTokens) -> String {
    let mut text = expr.to_token_stream().to_string();
    for (from, to) in [
        (" . ", "."),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        ("& ", "&"),
        (" :: ", "::"),
    ] {
        text = text.replace(from, to);
    }
    if text.len() > 80 {
        text = text.chars().take(77).collect::<String>() + "...";
    }
    text
}

/// Returns whether an expression is a number as it is written.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(literal) => matches!(literal.lit, syn::Lit::Int(_) | syn::Lit::Float(_)),
        Expr::Paren(paren) => is_literal(&paren.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_literal(&unary.expr),
        _ => false,
    }
}

/// Returns whether an expression makes a value that has no place yet.
pub(super) fn is_new(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(paren) => is_new(&paren.expr),
        Expr::Lit(_) | Expr::Call(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Struct(_) => true,
        Expr::Array(_) | Expr::Repeat(_) | Expr::Tuple(_) => true,
        _ => false,
    }
}

/// Returns whether an expression only reads variables and compares: neither fails nor changes
/// anything.
pub(super) fn is_simple(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Paren(paren) => is_simple(&paren.expr),
        Expr::Field(field) => is_simple(&field.base),
        Expr::Cast(cast) => is_simple(&cast.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_simple(&unary.expr),
        Expr::Binary(binary) => {
            use BinOp::{And, BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Ne, Or};
            matches!(
                binary.op,
                Eq(_)
                    | Ne(_)
                    | Lt(_)
                    | Le(_)
                    | Gt(_)
                    | Ge(_)
                    | And(_)
                    | Or(_)
                    | BitAnd(_)
                    | BitOr(_)
                    | BitXor(_)
            ) && is_simple(&binary.left)
                && is_simple(&binary.right)
        }
        _ => false,
    }
}

/// Returns whether an expression goes somewhere else instead of having a value.
pub(super) fn diverges(expr: &Expr) -> bool {
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Paren(paren) => diverges(&paren.expr),
        Expr::Block(block) if block.label.is_none() => block_diverges(&block.block),
        Expr::Unsafe(block) => block_diverges(&block.block),
        Expr::If(branch) => {
            block_diverges(&branch.then_branch)
                && branch.else_branch.as_ref().is_some_and(|(_, other)| diverges(other))
        }
        Expr::Loop(around) => !contains(&around.body, "break"),
        Expr::Match(arms) => !arms.arms.is_empty() && arms.arms.iter().all(|arm| diverges(&arm.body)),
        Expr::Macro(call) => {
            matches!(
                names::tail(&call.mac.path, 1).as_str(),
                "panic" | "unreachable" | "todo" | "unimplemented"
            )
        }
        _ => false,
    }
}

pub(super) fn block_diverges(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(expr, _)) => diverges(expr),
        Some(Stmt::Macro(call)) => {
            matches!(
                names::tail(&call.mac.path, 1).as_str(),
                "panic" | "unreachable" | "todo" | "unimplemented"
            )
        }
        _ => false,
    }
}

/// Returns the variable that a place belongs to.
pub(super) fn root(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Unary(unary) => root(&unary.expr),
        _ => None,
    }
}

/// Returns the function for an operator that assigns. That of a shift returns what to assign.
pub(super) fn compound(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "add_assign",
        BinOp::SubAssign(_) => "sub_assign",
        BinOp::MulAssign(_) => "mul_assign",
        BinOp::DivAssign(_) => "div_assign",
        BinOp::RemAssign(_) => "rem_assign",
        BinOp::BitAndAssign(_) => "bitand_assign",
        BinOp::BitOrAssign(_) => "bitor_assign",
        BinOp::BitXorAssign(_) => "bitxor_assign",
        BinOp::ShlAssign(_) => "shl",
        BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

pub(super) fn contains_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => contains_let(&binary.left) || contains_let(&binary.right),
        Expr::Paren(paren) => contains_let(&paren.expr),
        _ => false,
    }
}
