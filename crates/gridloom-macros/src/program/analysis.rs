//! Queries about the code of a program.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, Lit, Pat, Stmt, Type, UnOp};

use super::Kind;
use crate::tokens::contains;

/// Returns what a parameter of a type is.
pub(super) fn kind_of(ty: &Type) -> Kind {
    let Type::Reference(reference) = ty else { return Kind::Scalar };
    match &*reference.elem {
        Type::Slice(slice) => {
            if let Type::Path(path) = &*slice.elem
                && let Some(last) = path.path.segments.last()
                && last.ident == "Atomic"
                && let syn::PathArguments::AngleBracketed(arguments) = &last.arguments
                && let Some(syn::GenericArgument::Type(element)) = arguments.args.first()
            {
                return Kind::Atomics { element: element.clone() };
            }
            Kind::Slice { element: (*slice.elem).clone() }
        }
        element => Kind::Cell { element: element.clone() },
    }
}

/// Returns whether tokens assign to what starts with a name, or borrow it to change it.
pub(super) fn writes(tokens: TokenStream, name: &str) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_punct = |index: usize, sign: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if writes(group.stream(), name) => return true,
            TokenTree::Ident(ident) if ident == name => {
                if index >= 1 && matches!(&tokens[index - 1], TokenTree::Ident(before) if before == "mut") {
                    return true;
                }
                let is_mut_deref = index >= 2
                    && is_punct(index - 1, '*')
                    && matches!(&tokens[index - 2], TokenTree::Ident(before) if before == "mut");
                if is_mut_deref {
                    return true;
                }
                // Indices and fields belong to the place.
                let mut next = index + 1;
                loop {
                    match tokens.get(next) {
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => next += 1,
                        // Methods that change elements.
                        Some(TokenTree::Punct(punct))
                            if punct.as_char() == '.'
                                && matches!(tokens.get(next + 1), Some(TokenTree::Ident(method)) if changes_elements(&method.to_string())) =>
                        {
                            return true;
                        }
                        Some(TokenTree::Punct(punct))
                            if punct.as_char() == '.'
                                && !matches!(tokens.get(next + 2), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis) =>
                        {
                            next += 2;
                        }
                        _ => break,
                    }
                }
                if is_punct(next, '=') && !is_punct(next + 1, '=') && !is_punct(next + 1, '>') {
                    return true;
                }
                let is_operator =
                    ['+', '-', '*', '/', '%', '&', '|', '^'].iter().any(|sign| is_punct(next, *sign));
                if is_operator && is_punct(next + 1, '=') && !is_punct(next + 2, '=') {
                    return true;
                }
                for sign in ['<', '>'] {
                    if is_punct(next, sign) && is_punct(next + 1, sign) && is_punct(next + 2, '=') {
                        return true;
                    }
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns whether a method of slices changes elements.
fn changes_elements(method: &str) -> bool {
    method.ends_with("_mut") || matches!(method, "swap" | "fill" | "reverse" | "copy_from_slice")
}

/// Returns whether tokens may change a variable: they assign to it, borrow it to change it, or call
/// one of its methods.
pub(super) fn may_write(tokens: TokenStream, name: &str) -> bool {
    fn calls(tokens: TokenStream, name: &str) -> bool {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        tokens.iter().enumerate().any(|(index, token)| match token {
            TokenTree::Group(group) => calls(group.stream(), name),
            TokenTree::Ident(ident) if ident == name => {
                let mut next = index + 1;
                while matches!(tokens.get(next), Some(TokenTree::Punct(punct)) if punct.as_char() == '.') {
                    if matches!(tokens.get(next + 2), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
                    {
                        return true;
                    }
                    next += 2;
                }
                false
            }
            _ => false,
        })
    }
    writes(tokens.clone(), name) || calls(tokens, name)
}

/// Returns the bounds of a parallel loop, along each axis.
pub(super) fn bounds(expr: &Expr) -> Option<Vec<(TokenStream, TokenStream)>> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Path(path) = &*call.func else { return None };
    if path.path.segments.last().is_none_or(|last| last.ident != "par") || call.args.len() != 1 {
        return None;
    }
    let range = |expr: &Expr| match expr {
        Expr::Range(range) => match (&range.start, &range.end, &range.limits) {
            (Some(start), Some(end), syn::RangeLimits::HalfOpen(_)) => {
                Some((start.to_token_stream(), end.to_token_stream()))
            }
            _ => None,
        },
        _ => None,
    };
    match &call.args[0] {
        Expr::Tuple(tuple) => tuple.elems.iter().map(range).collect(),
        Expr::Paren(paren) => range(&paren.expr).map(|range| vec![range]),
        one => range(one).map(|range| vec![range]),
    }
}

/// Collects the names that a pattern binds.
pub(super) fn collect_names(tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident != "mut" && ident != "_" => names.push(ident.to_string()),
            TokenTree::Group(group) => collect_names(group.stream(), names),
            _ => {}
        }
    }
}

/// Returns the names that a pattern gives values to.
pub(super) fn names_of(pat: &Pat) -> Vec<String> {
    let mut names = Vec::new();
    collect_names(pat.to_token_stream(), &mut names);
    names
}

/// Returns whether tokens use a name for anything but `name.len()` and `name.is_empty()`.
pub(super) fn uses_contents(tokens: TokenStream, name: &str) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Group(group) => uses_contents(group.stream(), name),
        TokenTree::Ident(ident) if ident == name => {
            let is_dot = matches!(tokens.get(index + 1), Some(TokenTree::Punct(punct)) if punct.as_char() == '.');
            let is_length = matches!(tokens.get(index + 2), Some(TokenTree::Ident(method)) if method == "len" || method == "is_empty");
            !(is_dot && is_length)
        }
        _ => false,
    })
}

/// A place at which code leaves what is around it.
pub(super) enum Leaves {
    Return(Span),
    Loop(Span),
}

/// Returns the first place at which tokens return, or leave or continue a loop that is around them.
pub(super) fn leaves(tokens: TokenStream) -> Option<Leaves> {
    let mut labels = Vec::new();
    search_leaves(tokens, false, &mut labels)
}

fn search_leaves(tokens: TokenStream, mut is_in_loop: bool, labels: &mut Vec<String>) -> Option<Leaves> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let label_at = |index: usize| match (tokens.get(index), tokens.get(index + 1)) {
        (Some(TokenTree::Punct(quote)), Some(TokenTree::Ident(name))) if quote.as_char() == '\'' => {
            Some(name.to_string())
        }
        _ => None,
    };
    let is_outside = is_in_loop;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let found = search_leaves(group.stream(), is_in_loop, labels);
                if found.is_some() {
                    return found;
                }
                if group.delimiter() == Delimiter::Brace {
                    is_in_loop = is_outside;
                }
            }
            TokenTree::Punct(_) => {
                // `'label: loop`, and not `break 'label`.
                if let Some(name) = label_at(index)
                    && matches!(tokens.get(index + 2), Some(TokenTree::Punct(colon)) if colon.as_char() == ':')
                {
                    labels.push(name);
                }
            }
            TokenTree::Ident(word) if word == "return" => return Some(Leaves::Return(word.span())),
            TokenTree::Ident(word) if word == "while" || word == "loop" || word == "for" => is_in_loop = true,
            TokenTree::Ident(word) if word == "break" || word == "continue" => {
                let stays = match label_at(index + 1) {
                    Some(name) => labels.contains(&name),
                    None => is_in_loop,
                };
                if !stays {
                    return Some(Leaves::Loop(word.span()));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the condition and what comes before the `break` in `if condition { …; break; }`.
pub(super) fn break_if(stmt: &Stmt) -> Option<(&Expr, &[Stmt])> {
    let Stmt::Expr(Expr::If(branch), _) = stmt else { return None };
    if branch.else_branch.is_some() {
        return None;
    }
    let (last, before) = branch.then_branch.stmts.split_last()?;
    match last {
        Stmt::Expr(Expr::Break(leave), _) if leave.label.is_none() && leave.expr.is_none() => {
            Some((&branch.cond, before))
        }
        _ => None,
    }
}

/// Returns the name in `*name != 0`, or in `*name == 0`.
pub(super) fn flag_of(cond: &Expr, is_nonzero: bool) -> Option<&Ident> {
    if let Expr::Binary(binary) = cond
        && let Expr::Unary(unary) = &*binary.left
        && let UnOp::Deref(_) = unary.op
        && let Expr::Path(path) = &*unary.expr
        && let Expr::Lit(syn::ExprLit { lit: Lit::Int(zero), .. }) = &*binary.right
        && zero.base10_digits() == "0"
        && matches!((&binary.op, is_nonzero), (syn::BinOp::Ne(_), true) | (syn::BinOp::Eq(_), false))
    {
        return path.path.get_ident();
    }
    None
}

/// Returns whether a condition binds names.
pub(super) fn has_let(cond: &Expr) -> bool {
    contains(cond, "let")
}

/// Returns the name that a `let` declares, and its type where that is written there.
pub(super) fn declared_name(local: &syn::Local) -> Option<(&Ident, Option<&Type>)> {
    let (pat, ty) = match &local.pat {
        Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
        pat => (pat, None),
    };
    match pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some((&name.ident, ty.filter(|ty| !contains(ty, "_"))))
        }
        _ => None,
    }
}

/// Returns the type of a value, where the code itself tells it. `of` returns that of a variable,
/// and that of its elements.
pub(super) fn type_of(expr: &Expr, of: &dyn Fn(&Ident, bool) -> Option<Type>) -> Option<Type> {
    let named = |ty: &str| syn::parse_str(ty).ok();
    match expr {
        Expr::Paren(paren) => type_of(&paren.expr, of),
        Expr::Cast(cast) => (!contains(&cast.ty, "_")).then(|| (*cast.ty).clone()),
        Expr::Lit(syn::ExprLit { lit: Lit::Bool(_), .. }) => named("bool"),
        Expr::Lit(syn::ExprLit { lit: Lit::Int(lit), .. }) => named(lit.suffix()),
        Expr::Lit(syn::ExprLit { lit: Lit::Float(lit), .. }) => named(lit.suffix()),
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => of(name, false),
            // `f32::MAX` and the like.
            None => {
                let owner = path.path.segments.iter().rev().nth(1)?.ident.to_string();
                let last = path.path.segments.last()?.ident.to_string();
                let is_number = crate::names::SCALARS.contains(&owner.as_str());
                (is_number && crate::names::is_constant_name(&last)).then(|| named(&owner)).flatten()
            }
        },
        Expr::Unary(unary) => match (&unary.op, &*unary.expr) {
            (UnOp::Deref(_), Expr::Path(path)) => of(path.path.get_ident()?, true),
            (UnOp::Deref(_), _) => None,
            (_, inner) => type_of(inner, of),
        },
        Expr::Index(index) => match (&*index.expr, &*index.index) {
            (_, Expr::Range(_)) => None,
            (Expr::Path(path), _) => of(path.path.get_ident()?, true),
            _ => None,
        },
        Expr::MethodCall(call) if call.method == "len" && call.args.is_empty() => named("usize"),
        Expr::MethodCall(call) => match &call.turbofish {
            // `sum::<f32>()`.
            Some(stated) => match stated.args.first() {
                Some(syn::GenericArgument::Type(ty)) if !contains(ty, "_") => Some(ty.clone()),
                _ => None,
            },
            None if gives_its_type(&call.method.to_string()) => type_of(&call.receiver, of),
            None => None,
        },
        // `f32::from_bits(…)` and the like.
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return None };
            let mut names = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
            let (function, owner) = (names.next()?, names.next()?);
            let is_made = function.starts_with("from") || gives_its_type(&function);
            (is_made && crate::names::SCALARS.contains(&owner.as_str())).then(|| named(&owner)).flatten()
        }
        Expr::Binary(binary) => {
            use syn::BinOp::{
                Add, And, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Sub,
            };
            match binary.op {
                Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_) | And(_) | Or(_) => named("bool"),
                Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | BitAnd(_) | BitOr(_) | BitXor(_) => {
                    let is_number = |ty: &Type| {
                        let name = ty.to_token_stream().to_string();
                        crate::names::SCALARS.contains(&name.as_str())
                    };
                    // Two numbers have the same type.
                    type_of(&binary.left, of).or_else(|| type_of(&binary.right, of)).filter(is_number)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns whether a method of numbers gives a number of the same type.
fn gives_its_type(method: &str) -> bool {
    const METHODS: [&str; 38] = [
        "abs",
        "sqrt",
        "cbrt",
        "exp",
        "exp2",
        "ln",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "hypot",
        "floor",
        "ceil",
        "round",
        "trunc",
        "fract",
        "recip",
        "signum",
        "copysign",
        "mul_add",
        "powi",
        "powf",
        "pow",
        "min",
        "max",
        "clamp",
        "rem_euclid",
        "div_euclid",
        "rotate_left",
        "rotate_right",
    ];
    METHODS.contains(&method) || method.starts_with("wrapping_") || method.starts_with("saturating_")
}
