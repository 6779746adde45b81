//! Loops and branches around parallel loops.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Expr, Lit, Pat, Stmt, Type, parse_quote};

use super::analysis::{bounds, break_if, flag_of, has_let, may_write, names_of, uses_contents, writes};
use super::{Binding, Kind, Program, Sequential};
use crate::tokens::contains;

impl Program {
    /// Returns a loop or branch with parallel loops inside, or a parallel loop, behind the
    /// sequential code in `pending`.
    pub(super) fn step(&mut self, expr: &Expr, pending: &mut Sequential) -> TokenStream {
        match expr {
            Expr::ForLoop(around) => match bounds(&around.expr) {
                Some(bounds) => {
                    let before = self.sequential(std::mem::take(pending));
                    let kernel = self.parallel(around, &bounds);
                    quote!(#before #kernel)
                }
                None => self.for_(around, pending),
            },
            Expr::While(around) => self.while_(around, pending),
            Expr::Loop(around) => self.loop_(around, pending),
            Expr::If(branch) => self.if_(branch, pending),
            Expr::Block(block) => {
                let before = self.sequential(std::mem::take(pending));
                let inner = self.steps(&block.block.stmts, None);
                quote!(#before #inner)
            }
            Expr::Match(arms) => self.refuse(
                arms.expr.span(),
                "a `match` around parallel loops has patterns without names, of a value that is read without a call, and ends with `_`",
            ),
            other => self.refuse(
                other.span(),
                "a program has parallel loops at its top level and inside `while`, `loop`, `for` and `if`",
            ),
        }
    }

    /// Returns the `&mut i32` parameter that a condition tests, if that is all it does.
    fn tested_parameter(&self, cond: &Expr, is_nonzero: bool) -> Option<Ident> {
        let name = flag_of(cond, is_nonzero)?;
        let variable = self.variables.iter().rev().find(|variable| variable.name == *name)?;
        let is_i32 = |ty: &Type| ty.to_token_stream().to_string() == "i32";
        matches!(&variable.kind, Kind::Cell { element } if is_i32(element)).then(|| name.clone())
    }

    fn check_condition(&mut self, cond: &Expr) {
        if has_let(cond) {
            self.refuse(cond.span(), "the device decides by a value: compute a `bool` before, and test that");
        }
    }

    fn while_(&mut self, around: &syn::ExprWhile, pending: &mut Sequential) -> TokenStream {
        self.check_condition(&around.cond);
        let stmts = &around.body.stmts;
        if let Some(value) = self.tested_parameter(&around.cond, true)
            && !stmts.iter().any(|stmt| break_if(stmt).is_some())
        {
            let before = self.sequential(std::mem::take(pending));
            let body = self.steps(stmts, None);
            return quote! {
                #before
                __steps.while_nonzero(&#value, |__steps| { #body ::gridloom::Result::Ok(()) })?;
            };
        }
        let flag = self.hidden(parse_quote!(i32));
        let cond = &around.cond;
        let test: Stmt = parse_quote!(*#flag = (#cond) as i32;);
        pending.stmts.push(test.clone());
        let before = self.sequential(std::mem::take(pending));
        let body = self.body_and_test(stmts, &[], &flag, vec![test]);
        quote! {
            #before
            __steps.while_nonzero(&#flag, |__steps| { #body ::gridloom::Result::Ok(()) })?;
        }
    }

    /// Returns the body of a loop, behind which the loop is tested. `names` are those of its
    /// pattern.
    fn body_and_test(
        &mut self,
        stmts: &[Stmt],
        names: &[String],
        flag: &Ident,
        test: Vec<Stmt>,
    ) -> TokenStream {
        let tokens = quote!(#(#test)*);
        let (_, all) = self.used_lets(&tokens);
        let is_hidden = |name: &String| contains(&all, name);
        let hides = names.iter().any(is_hidden)
            || stmts.iter().any(|stmt| match stmt {
                Stmt::Local(local) => names_of(&local.pat).iter().any(is_hidden),
                _ => false,
            });
        if !hides {
            // One kernel with the last code of the body.
            let lets = self.lets.len();
            let stmts: Vec<Stmt> = stmts.iter().cloned().chain(test).collect();
            let body = self.steps(&stmts, Some(flag));
            self.lets.truncate(lets);
            return body;
        }
        // The names that the test uses mean something else in the body.
        let inner = self.lets.len() - usize::from(!names.is_empty());
        let body = self.steps(stmts, Some(flag));
        self.lets.truncate(inner);
        let test = self.sequential(Sequential { stmts: test, declared: Vec::new() });
        if !stmts.iter().any(|stmt| break_if(stmt).is_some()) {
            return quote!(#body #test);
        }
        quote! {
            #body
            __steps.if_nonzero(&#flag, |__steps| { #test ::gridloom::Result::Ok(()) })?;
        }
    }

    fn loop_(&mut self, around: &syn::ExprLoop, pending: &mut Sequential) -> TokenStream {
        let before = self.sequential(std::mem::take(pending));
        let stmts = &around.body.stmts;
        let breaks = stmts.iter().filter(|stmt| break_if(stmt).is_some()).count();
        if breaks == 0 {
            return self.refuse(
                around.span(),
                "a loop on the device is left by a statement `if … { break; }` of its body",
            );
        }
        if let (1, Some((last, others))) = (breaks, stmts.split_last())
            && let Some((cond, [])) = break_if(last)
            && let Some(value) = self.tested_parameter(cond, false)
        {
            let body = self.steps(others, None);
            return quote! {
                #before
                __steps.do_while(&#value, |__steps| { #body ::gridloom::Result::Ok(()) })?;
            };
        }
        let flag = self.hidden(parse_quote!(i32));
        let body = self.steps(stmts, Some(&flag));
        quote! {
            #before
            __steps.do_while(&#flag, |__steps| { #body ::gridloom::Result::Ok(()) })?;
        }
    }

    /// Returns the end of a pass that `if cond { before; break; }` may leave: the rest of the pass
    /// is behind a branch.
    pub(super) fn leave_loop(
        &mut self,
        mut pending: Sequential,
        flag: &Ident,
        (cond, before): (&Expr, &[Stmt]),
        rest: &[Stmt],
    ) -> TokenStream {
        self.check_condition(cond);
        if before.iter().any(|stmt| contains(stmt, "par")) {
            return self
                .refuse(cond.span(), "a branch that leaves a loop on the device has no parallel loops");
        }
        if before.is_empty() {
            pending.stmts.push(parse_quote!(*#flag = !(#cond) as i32;));
        } else {
            pending.stmts.push(parse_quote!({
                let __leaves = #cond;
                if __leaves { #(#before)* }
                *#flag = !__leaves as i32;
            }));
        }
        let before = self.sequential(pending);
        if rest.is_empty() {
            return before;
        }
        let rest = self.steps(rest, Some(flag));
        quote! {
            #before
            __steps.if_nonzero(&#flag, |__steps| { #rest ::gridloom::Result::Ok(()) })?;
        }
    }

    fn if_(&mut self, branch: &syn::ExprIf, pending: &mut Sequential) -> TokenStream {
        self.check_condition(&branch.cond);
        let value = self.tested_parameter(&branch.cond, true).unwrap_or_else(|| {
            let flag = self.hidden(parse_quote!(i32));
            let cond = &branch.cond;
            pending.stmts.push(parse_quote!(*#flag = (#cond) as i32;));
            flag
        });
        let before = self.sequential(std::mem::take(pending));
        let then = self.steps(&branch.then_branch.stmts, None);
        match &branch.else_branch {
            None => {
                quote! {
                    #before
                    __steps.if_nonzero(&#value, |__steps| { #then ::gridloom::Result::Ok(()) })?;
                }
            }
            Some((_, other)) => {
                let other = match &**other {
                    Expr::Block(block) => self.steps(&block.block.stmts, None),
                    nested => self.steps(&[Stmt::Expr(nested.clone(), None)], None),
                };
                quote! {
                    #before
                    __steps.if_else_nonzero(
                        &#value,
                        |__steps| { #then ::gridloom::Result::Ok(()) },
                        |__steps| { #other ::gridloom::Result::Ok(()) },
                    )?;
                }
            }
        }
    }

    /// Returns a loop over a range around parallel loops.
    fn for_(&mut self, around: &syn::ExprForLoop, pending: &mut Sequential) -> TokenStream {
        let stmts = &around.body.stmts;
        let leaves = stmts.iter().any(|stmt| break_if(stmt).is_some());
        if let (Some(passes), Pat::Wild(_), false) = (constant_passes(&around.expr), &*around.pat, leaves) {
            let before = self.sequential(std::mem::take(pending));
            let body = self.steps(stmts, None);
            return quote! {
                #before
                __steps.repeat(#passes, |__steps| { #body ::gridloom::Result::Ok(()) })?;
            };
        }
        let (range, pat) = (&around.expr, &around.pat);
        if !is_range(range) {
            return self.refuse(
                range.span(),
                "a loop around parallel loops goes over a range, or over `rev()` or `step_by()` of one: `for k in 0..n`",
            );
        }
        if !self.is_fixed(range, stmts) {
            return self.refuse(
                range.span(),
                "what this loop goes over changes inside of it: copy the bounds to variables before, `let end: u32 = …;`",
            );
        }
        // What the loop goes over is the same in each pass, so kernels find their place in it by
        // the number of the pass.
        let (flag, pass) = (self.hidden(parse_quote!(i32)), self.hidden(parse_quote!(u64)));
        let test: Stmt = parse_quote!(*#flag = ::gridloom::__kernel::has_pass(#range, *#pass) as i32;);
        pending.stmts.push(parse_quote!(*#pass = 0;));
        pending.stmts.push(test.clone());
        let before = self.sequential(std::mem::take(pending));
        let lets = self.lets.len();
        let mut names = names_of(pat);
        if names.is_empty() {
            // `_` names nothing, but the number of the pass is bound all the same.
            names.push("_".to_owned());
        }
        self.lets.push(Binding {
            names: names.clone(),
            tokens: quote!(let #pat = ::gridloom::__kernel::nth_pass(#range, *#pass);),
        });
        let end = vec![parse_quote!(*#pass += 1;), test];
        let body = self.body_and_test(stmts, &names, &flag, end);
        self.lets.truncate(lets);
        quote! {
            #before
            __steps.while_nonzero(&#flag, |__steps| { #body ::gridloom::Result::Ok(()) })?;
        }
    }

    /// Returns whether an expression has the same value before and after the statements.
    fn is_fixed(&self, expr: &Expr, stmts: &[Stmt]) -> bool {
        let tokens = expr.to_token_stream();
        let body = quote!(#(#stmts)*);
        let (_, all) = self.used_lets(&tokens);
        self.used(&all).into_iter().all(|variable| {
            let name = variable.name.to_string();
            match variable.kind {
                Kind::Scalar => true,
                Kind::Slice { .. } => !uses_contents(all.clone(), &name) || !writes(body.clone(), &name),
                Kind::Atomics { .. } => !uses_contents(all.clone(), &name),
                Kind::Cell { .. } | Kind::Local { .. } => !may_write(body.clone(), &name),
            }
        })
    }
}

/// Returns whether an expression is a range that ends, or one that is gone over in another order.
fn is_range(expr: &Expr) -> bool {
    match expr {
        Expr::Range(range) => range.start.is_some() && range.end.is_some(),
        Expr::Paren(paren) => is_range(&paren.expr),
        Expr::MethodCall(call) => {
            (call.method == "rev" || call.method == "step_by") && is_range(&call.receiver)
        }
        _ => false,
    }
}

/// Returns the number of passes of `0..N` with a number or a constant.
fn constant_passes(expr: &Expr) -> Option<TokenStream> {
    let Expr::Range(range) = expr else { return None };
    let (Some(start), Some(end), syn::RangeLimits::HalfOpen(_)) = (&range.start, &range.end, &range.limits)
    else {
        return None;
    };
    let is_zero = |expr: &Expr| matches!(expr, Expr::Lit(syn::ExprLit { lit: Lit::Int(zero), .. }) if zero.base10_digits() == "0");
    let is_constant = match &**end {
        Expr::Lit(syn::ExprLit { lit: Lit::Int(_), .. }) => true,
        Expr::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| crate::names::is_constant_name(&last.ident.to_string())),
        _ => false,
    };
    (is_zero(start) && is_constant).then(|| quote!((#end) as u64))
}
