//! Translation of branches, loops and jumps out of them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr};

use super::questions::{block_diverges, contains_let, diverges, line};
use super::{Target, Translator};
use crate::tokens::{breaks_with_value, here};

impl Translator {
    /// Returns the conditions of an `if` or `while`, where some of them are patterns: leaves
    /// `label` where one does not hold.
    pub(super) fn conditions(&mut self, cond: &Expr, label: &Ident) -> TokenStream {
        match cond {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) && contains_let(cond) => {
                let left = self.conditions(&binary.left, label);
                let right = self.conditions(&binary.right, label);
                quote!(#left #right)
            }
            Expr::Let(test) => {
                let subject = self.fresh("subject");
                let value = self.place(&test.expr);
                let bindings = self.bind_value_of(&test.expr, &test.pat, &quote!(#subject), Some(label));
                quote_spanned!(here(test.span())=> let #subject = __k::get(&#value); #bindings)
            }
            Expr::Paren(paren) => self.conditions(&paren.expr, label),
            other => {
                let value = self.value(other);
                quote_spanned!(here(other.span())=> __k::leave_unless(#label, #value);)
            }
        }
    }

    /// Returns what an arm or branch gives: to the result where there is one.
    pub(super) fn give(&mut self, expr: &Expr, result: Option<&Ident>) -> TokenStream {
        match result {
            Some(result) if !diverges(expr) => {
                let value = self.value(expr);
                quote_spanned!(here(expr.span())=> __k::assign(&#result, #value);)
            }
            _ => {
                let statement = self.statement(expr);
                quote!({ #statement })
            }
        }
    }

    pub(super) fn give_block(&mut self, block: &Block, result: Option<&Ident>) -> TokenStream {
        match result {
            Some(result) if !block_diverges(block) => {
                let value = self.block(block, true);
                quote_spanned!(here(block.span())=> __k::assign(&#result, #value);)
            }
            _ => self.block(block, false),
        }
    }

    /// Declares a result, where one is wanted, and what to end with.
    pub(super) fn result(
        &mut self,
        span: Span,
        wants_value: bool,
        all_diverge: bool,
    ) -> (Option<Ident>, TokenStream, TokenStream) {
        match (wants_value, all_diverge) {
            (false, _) => (None, quote!(), quote!()),
            (true, true) => (None, quote!(), quote!(__k::never())),
            (true, false) => {
                let name = self.fresh("result");
                (Some(name.clone()), quote_spanned!(here(span)=> let #name = __k::declare();), quote!(#name))
            }
        }
    }

    pub(super) fn branch(&mut self, branch: &syn::ExprIf, wants_value: bool) -> TokenStream {
        let span = branch.span();
        let has_else = branch.else_branch.is_some();
        let all_diverge = diverges(&Expr::If(branch.clone()));
        let (result, declared, end) = self.result(span, wants_value && has_else, all_diverge);
        if contains_let(&branch.cond) {
            let (outer, inner) = (self.fresh("if"), self.fresh("else"));
            let (conditions, then) = self.scoped(|this| {
                let conditions = this.conditions(&branch.cond, &inner);
                (conditions, this.give_block(&branch.then_branch, result.as_ref()))
            });
            let otherwise = branch.else_branch.as_ref().map(|(_, other)| self.give(other, result.as_ref()));
            return quote_spanned!(here(span)=> {
                #declared
                let #outer = __k::block_begin();
                let #inner = __k::block_begin();
                {
                    #conditions
                    #then
                    __k::leave(#outer);
                }
                __k::block_end(#inner);
                #otherwise
                __k::block_end(#outer);
                #end
            });
        }
        let cond = self.value(&branch.cond);
        let then = self.give_block(&branch.then_branch, result.as_ref());
        match &branch.else_branch {
            None => quote_spanned!(here(span)=> {
                let __c = __k::if_begin(#cond);
                #then
                __k::if_end(__c);
            }),
            Some((_, other)) => {
                let other = self.give(other, result.as_ref());
                quote_spanned!(here(span)=> {
                    #declared
                    let __c = __k::if_begin(#cond);
                    #then
                    __k::else_begin();
                    #other
                    __k::if_else_end(__c);
                    #end
                })
            }
        }
    }

    pub(super) fn match_(&mut self, arms: &syn::ExprMatch, wants_value: bool) -> TokenStream {
        let span = arms.span();
        let all_diverge = diverges(&Expr::Match(arms.clone()));
        let (result, declared, end) = self.result(span, wants_value, all_diverge);
        let (subject, outer) = (self.fresh("subject"), self.fresh("match"));
        let value = self.place(&arms.expr);
        let count = arms.arms.len();
        let mut translated = TokenStream::new();
        for (index, arm) in arms.arms.iter().enumerate() {
            let label = self.fresh("arm");
            // The compiler has checked that the last arm fits whatever the others do not.
            let is_last = index + 1 == count && arm.guard.is_none();
            let (tests, guard, body) = self.scoped(|this| {
                let tests =
                    this.bind_value_of(&arms.expr, &arm.pat, &quote!(#subject), (!is_last).then_some(&label));
                let guard = arm.guard.as_ref().map(|(_, guard)| {
                    let guard = this.value(guard);
                    quote!(__k::leave_unless(#label, #guard);)
                });
                (tests, guard, this.give(&arm.body, result.as_ref()))
            });
            translated.extend(quote_spanned!(here(arm.span())=>
                let #label = __k::block_begin();
                {
                    #tests
                    #guard
                    #body
                    __k::leave(#outer);
                }
                __k::block_end(#label);
            ));
        }
        quote_spanned!(here(span)=> {
            #declared
            let #subject = __k::get(&#value);
            let #outer = __k::block_begin();
            #translated
            __k::block_end(#outer);
            #end
        })
    }

    pub(super) fn labelled_block(&mut self, block: &syn::ExprBlock, wants_value: bool) -> TokenStream {
        let Some(label) = &block.label else { return self.block(&block.block, wants_value) };
        let (result, declared, end) = self.result(block.span(), wants_value, false);
        let name = self.fresh("block");
        let label = Some(label.name.ident.to_string());
        self.targets.push(Target { label, name: name.clone(), result: result.clone(), is_loop: false });
        let body = self.give_block(&block.block, result.as_ref());
        self.targets.pop();
        quote_spanned!(here(block.span())=> {
            #declared
            let #name = __k::block_begin();
            #body
            __k::block_end(#name);
            #end
        })
    }

    pub(super) fn in_loop(
        &mut self,
        label: Option<&syn::Label>,
        name: &Ident,
        result: Option<&Ident>,
        body: &Block,
    ) -> TokenStream {
        let label = label.map(|label| label.name.ident.to_string());
        self.targets.push(Target { label, name: name.clone(), result: result.cloned(), is_loop: true });
        let body = self.block(body, false);
        self.targets.pop();
        body
    }

    pub(super) fn loop_(&mut self, around: &syn::ExprLoop, wants_value: bool) -> TokenStream {
        let has_value = breaks_with_value(&around.body);
        let (result, declared, end) = self.result(around.span(), wants_value && has_value, false);
        let end = if wants_value && !has_value { quote!(()) } else { end };
        let name = self.fresh("loop");
        let body = self.in_loop(around.label.as_ref(), &name, result.as_ref(), &around.body);
        quote_spanned!(here(around.span())=> {
            #declared
            let #name = __k::loop_begin();
            #body
            __k::loop_step();
            __k::loop_end(#name);
            #end
        })
    }

    pub(super) fn while_(&mut self, around: &syn::ExprWhile) -> TokenStream {
        let name = self.fresh("loop");
        let (conditions, body) = self.scoped(|this| {
            let conditions = this.conditions(&around.cond, &name);
            (conditions, this.in_loop(around.label.as_ref(), &name, None, &around.body))
        });
        quote_spanned!(here(around.span())=> {
            let #name = __k::loop_begin();
            #conditions
            #body
            __k::loop_step();
            __k::loop_end(#name);
        })
    }

    pub(super) fn for_(&mut self, around: &syn::ExprForLoop) -> TokenStream {
        let (state, name, item) = (self.fresh("iterate"), self.fresh("loop"), self.fresh("item"));
        // An array or slice behind a reference is gone over element by element.
        let over = self.value(&around.expr);
        let line = line(around.expr.span());
        let (bindings, body) = self.scoped(|this| {
            let bindings = this.bind_value_of(&around.expr, &around.pat, &quote!(#item), None);
            (bindings, this.in_loop(around.label.as_ref(), &name, None, &around.body))
        });
        quote_spanned!(here(around.span())=> {
            let __o = #over;
            __k::at(#line);
            let #state = __k::iterate(__o);
            let #name = #state.label();
            let #item = #state.next();
            #bindings
            #body
            #state.end();
        })
    }

    pub(super) fn target(&self, label: Option<&syn::Lifetime>, needs_loop: bool) -> Option<&Target> {
        let found = self.targets.iter().rev().find(|target| match label {
            Some(label) => target.label.as_deref() == Some(label.ident.to_string().as_str()),
            None => target.is_loop,
        });
        found.filter(|target| target.is_loop || !needs_loop)
    }

    pub(super) fn break_(&mut self, leave: &syn::ExprBreak) -> TokenStream {
        let span = leave.span();
        let Some(target) = self.target(leave.label.as_ref(), false) else {
            return self.refuse(span, "there is no loop or block to leave here");
        };
        if target.label.as_deref() == Some("__par") {
            return self
                .refuse(span, "a parallel loop cannot be left; use `continue` to go on with the next index");
        }
        let (name, result) = (target.name.clone(), target.result.clone());
        let given = match (&leave.expr, result) {
            (Some(value), Some(result)) => {
                let value = self.value(value);
                quote!(__k::assign(&#result, #value);)
            }
            (Some(value), None) => self.statement(value),
            (None, _) => quote!(),
        };
        quote_spanned!(here(span)=> #given __k::leave(#name);)
    }

    pub(super) fn continue_(&mut self, next: &syn::ExprContinue) -> TokenStream {
        match self.target(next.label.as_ref(), true) {
            Some(target) => {
                let name = &target.name;
                quote_spanned!(here(next.span())=> __k::again(#name);)
            }
            None => self.refuse(next.span(), "there is no loop to continue here"),
        }
    }

    pub(super) fn return_(&mut self, ret: &syn::ExprReturn) -> TokenStream {
        let span = ret.span();
        if !self.returns {
            return self.refuse(span, "a closure of device code ends with its last expression");
        }
        match &ret.expr {
            Some(value) => {
                let value = self.value(value);
                quote_spanned!(here(span)=> { let __v = #value; __k::assign(&__result, __v); } __k::leave(__return);)
            }
            None => quote_spanned!(here(span)=> __k::leave(__return);),
        }
    }
}
