//! Patterns: their tests and their bindings.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Pat};

use crate::derive_enum::{fields_name, test_name};
use crate::names;
use crate::tokens::here;
use crate::twin::{Translator, Variable};

/// Returns whether a name in a pattern is that of a constant. Were it another one, the twin would
/// not compile.
fn is_constant(pat: &syn::PatIdent) -> bool {
    let name = pat.ident.to_string();
    name == "None"
        || pat.mutability.is_none()
            && pat.by_ref.is_none()
            && pat.subpat.is_none()
            && (names::is_constant_name(&name) || names::is_type_name(&name))
}

/// What the names of a pattern are bound to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Names {
    /// Values.
    Values,
    /// References, because what is matched is a `&mut`: those of its parts.
    Parts,
    /// References, because this is inside of a pattern of a `&mut`.
    References,
}

impl Translator {
    /// Binds the names of a pattern to parts of the value of an expression, as `bind` does.
    pub(crate) fn bind_value_of(
        &mut self,
        expr: &Expr,
        pat: &Pat,
        subject: &TokenStream,
        otherwise: Option<&Ident>,
    ) -> TokenStream {
        let names = if self.is_mut(expr) { Names::Parts } else { Names::Values };
        let outer = std::mem::replace(&mut self.names, names);
        let bindings = self.bind(pat, subject, otherwise);
        self.names = outer;
        bindings
    }

    /// Writes the statements that test a place against a pattern and bind its names. Where it does
    /// not fit, `otherwise` is left; without it the pattern is known to fit.
    pub(crate) fn bind(
        &mut self,
        pat: &Pat,
        subject: &TokenStream,
        otherwise: Option<&Ident>,
    ) -> TokenStream {
        let outer = self.names;
        self.names = match (pat, outer) {
            (Pat::Reference(_), _) => Names::Values,
            (Pat::Ident(_) | Pat::Paren(_), names) => names,
            (_, Names::Parts) => Names::References,
            (_, names) => names,
        };
        let bindings = self.bind_in(pat, subject, otherwise);
        self.names = outer;
        bindings
    }

    fn bind_in(&mut self, pat: &Pat, subject: &TokenStream, otherwise: Option<&Ident>) -> TokenStream {
        let span = pat.span();
        let require = |condition: TokenStream| match otherwise {
            Some(label) => quote_spanned!(here(span)=> __k::leave_unless(#label, #condition);),
            None => quote!(),
        };
        match pat {
            Pat::Wild(_) | Pat::Rest(_) => quote!(),
            Pat::Paren(paren) => self.bind(&paren.pat, subject, otherwise),
            Pat::Type(typed) => self.bind(&typed.pat, subject, otherwise),
            Pat::Ident(ident) if is_constant(ident) => {
                if ident.ident == "None" {
                    return require(quote!(__k::not(__k::get(&#subject.__some))));
                }
                let name = &ident.ident;
                require(quote!(__k::eq(__k::get(&#subject), __k::constant(#name))))
            }
            Pat::Ident(ident) => {
                if ident.by_ref.is_some() {
                    return self.refuse(span, "device code has no `ref` in patterns; match on a value, and refer to its parts with `&`");
                }
                let name = &ident.ident;
                let value = if self.names == Names::References {
                    quote_spanned!(here(span)=> __k::refer(#subject))
                } else if ident.mutability.is_some() {
                    quote_spanned!(here(span)=> __k::var(__k::get(&#subject)))
                } else {
                    quote_spanned!(here(span)=> __k::get(&#subject))
                };
                let tests = ident
                    .subpat
                    .as_ref()
                    .map(|(_, sub)| self.bind(sub, subject, otherwise))
                    .unwrap_or_default();
                let is_part = self.names != Names::Values;
                self.declare_as(&name.to_string(), if is_part { Variable::Changed } else { Variable::Value });
                quote_spanned!(here(span)=> #tests let #name = #value;)
            }
            Pat::Lit(_) | Pat::Range(_) | Pat::Path(_) | Pat::Or(_) => match self.test(pat, subject) {
                Some(condition) => require(condition),
                None => quote!(),
            },
            Pat::Tuple(tuple) => self.parts(&tuple.elems, subject, otherwise),
            Pat::TupleStruct(tuple) => {
                let name = names::tail(&tuple.path, 1);
                if name == "Some" {
                    let Some(inner) = tuple.elems.first() else { return quote!() };
                    let test = require(quote!(__k::get(&#subject.__some)));
                    let bindings = self.bind(inner, &quote!(#subject.__value), otherwise);
                    return quote!(#test #bindings);
                }
                if let Some(reason) = names::refused_type(&name) {
                    return self.refuse(span, format!("`{name}` is not available: {reason}"));
                }
                if let Some((_, variant)) = self.variant(&tuple.path) {
                    let is_variant = test_name(&variant);
                    let test = require(quote_spanned!(here(span)=> #subject.#is_variant()));
                    let fields = fields_name(&variant);
                    let bindings = self.parts(&tuple.elems, &quote!(#subject.#fields), otherwise);
                    return quote!(#test #bindings);
                }
                self.parts(&tuple.elems, subject, otherwise)
            }
            Pat::Struct(fields) if self.variant(&fields.path).is_some() => {
                let Some((_, variant)) = self.variant(&fields.path) else { return quote!() };
                let is_variant = test_name(&variant);
                let test = require(quote_spanned!(here(span)=> #subject.#is_variant()));
                let of = fields_name(&variant);
                let parts = fields.fields.iter().map(|field| {
                    let member = &field.member;
                    self.bind(&field.pat, &quote!(#subject.#of.#member), otherwise)
                });
                let parts: TokenStream = parts.collect();
                quote!(#test #parts)
            }
            Pat::Struct(fields) => {
                let parts = fields.fields.iter().map(|field| {
                    let member = &field.member;
                    self.bind(&field.pat, &quote!(#subject.#member), otherwise)
                });
                parts.collect()
            }
            Pat::Reference(reference) => self.bind(&reference.pat, &quote!(__k::deref(#subject)), otherwise),
            Pat::Slice(slice) => {
                let count = slice.elems.len();
                let rest = slice.elems.iter().position(is_rest).unwrap_or(count);
                let has_rest = rest < count;
                let least = count - usize::from(has_rest);
                let fits = require(quote_spanned!(here(span)=> #subject.__fits(#least, #has_rest)));
                let parts = slice.elems.iter().enumerate().map(|(index, pat)| {
                    if let Pat::Ident(name) = pat
                        && index == rest
                    {
                        let (name, behind) = (&name.ident, count - index - 1);
                        self.declare(&name.to_string());
                        return quote_spanned!(here(pat.span())=> let #name = #subject.__rest(#index, #behind););
                    }
                    if let Pat::Ident(name) = pat
                        && !is_constant(name)
                        && name.mutability.is_none()
                        && name.subpat.is_none()
                        && self.names == Names::Values
                    {
                        // Those of a slice are references.
                        let name = &name.ident;
                        self.declare(&name.to_string());
                        return if index < rest {
                            quote_spanned!(here(pat.span())=> let #name = #subject.__bound(#index);)
                        } else {
                            let from_end = count - index;
                            quote_spanned!(here(pat.span())=> let #name = #subject.__bound_from_end(#from_end);)
                        };
                    }
                    let element = if index < rest {
                        quote_spanned!(here(pat.span())=> #subject.__element(#index))
                    } else {
                        let from_end = count - index;
                        quote_spanned!(here(pat.span())=> #subject.__element_from_end(#from_end))
                    };
                    self.bind(pat, &element, otherwise)
                });
                let parts: TokenStream = parts.collect();
                quote!(#fits #parts)
            }
            other => self.refuse(other.span(), "device code cannot match this pattern"),
        }
    }

    fn parts(
        &mut self,
        elems: &syn::punctuated::Punctuated<Pat, syn::Token![,]>,
        subject: &TokenStream,
        otherwise: Option<&Ident>,
    ) -> TokenStream {
        let count = elems.len();
        let rest = elems.iter().position(|pat| matches!(pat, Pat::Rest(_)));
        if let Some(rest) = rest
            && rest + 1 != count
        {
            return self.refuse(elems.span(), "device code takes `..` at the end of a tuple pattern only");
        }
        let parts = elems.iter().enumerate().map(|(index, pat)| {
            let index = syn::Index::from(index);
            self.bind(pat, &quote!(#subject.#index), otherwise)
        });
        parts.collect()
    }

    /// Returns the condition under which a pattern without names fits; `None` where it always does.
    fn test(&mut self, pat: &Pat, subject: &TokenStream) -> Option<TokenStream> {
        let span = pat.span();
        match pat {
            Pat::Wild(_) | Pat::Rest(_) => None,
            Pat::Paren(paren) => self.test(&paren.pat, subject),
            Pat::Lit(lit) => {
                let value = self.value(&Expr::Lit(lit.clone()));
                Some(quote_spanned!(here(span)=> __k::eq(__k::get(&#subject), #value)))
            }
            Pat::Path(path) if self.unit_variant(&path.path).is_some() => {
                let is_variant = test_name(&self.unit_variant(&path.path)?);
                Some(quote_spanned!(here(span)=> #subject.#is_variant()))
            }
            Pat::TupleStruct(tuple)
                if names::tail(&tuple.path, 1) != "Some" && self.variant(&tuple.path).is_some() =>
            {
                let (_, variant) = self.variant(&tuple.path)?;
                let (is_variant, fields) = (test_name(&variant), fields_name(&variant));
                let test = quote_spanned!(here(span)=> #subject.#is_variant());
                match self.all(tuple.elems.iter(), &quote!(#subject.#fields)) {
                    None => Some(test),
                    Some(inner) => Some(quote_spanned!(here(span)=> __k::both(#test, #inner))),
                }
            }
            Pat::Path(path) => {
                Some(quote_spanned!(here(span)=> __k::eq(__k::get(&#subject), __k::constant(#path))))
            }
            Pat::Ident(ident) if is_constant(ident) => {
                if ident.ident == "None" {
                    return Some(quote_spanned!(here(span)=> __k::not(__k::get(&#subject.__some))));
                }
                let name = ident.ident.to_token_stream();
                Some(quote_spanned!(here(span)=> __k::eq(__k::get(&#subject), __k::constant(#name))))
            }
            Pat::Range(range) => {
                let value = |this: &mut Self, bound: &Expr| this.value(bound);
                let low = range.start.as_ref().map(|low| {
                    let low = value(self, low);
                    quote_spanned!(here(span)=> __k::ge(__k::get(&#subject), #low))
                });
                let high = range.end.as_ref().map(|high| {
                    let high = value(self, high);
                    match range.limits {
                        syn::RangeLimits::Closed(_) => {
                            quote_spanned!(here(span)=> __k::le(__k::get(&#subject), #high))
                        }
                        syn::RangeLimits::HalfOpen(_) => {
                            quote_spanned!(here(span)=> __k::lt(__k::get(&#subject), #high))
                        }
                    }
                });
                match (low, high) {
                    (Some(low), Some(high)) => Some(quote_spanned!(here(span)=> __k::both(#low, #high))),
                    (low, high) => low.or(high),
                }
            }
            Pat::Or(or) => {
                let mut any = None;
                for case in &or.cases {
                    let case = self.test(case, subject)?;
                    any = Some(match any {
                        None => case,
                        Some(before) => {
                            quote_spanned!(here(span)=> __k::either(#before, #case))
                        }
                    });
                }
                any
            }
            Pat::Tuple(tuple) => self.all(tuple.elems.iter(), subject),
            Pat::TupleStruct(tuple) if names::tail(&tuple.path, 1) == "Some" => {
                let some = quote_spanned!(here(span)=> __k::get(&#subject.__some));
                match tuple.elems.first().and_then(|inner| self.test(inner, &quote!(#subject.__value))) {
                    None => Some(some),
                    Some(inner) => Some(quote_spanned!(here(span)=> __k::both(#some, #inner))),
                }
            }
            other => {
                self.refuse(
                    other.span(),
                    "device code takes no names, structs or references inside `|` patterns; write an arm for each",
                );
                None
            }
        }
    }

    /// Returns the variant without fields that a path names. A name in capital letters is that of a
    /// constant.
    fn unit_variant(&self, path: &syn::Path) -> Option<Ident> {
        let (_, variant) = self.variant(path)?;
        (!names::is_constant_name(&variant.to_string())).then_some(variant)
    }

    fn all<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a Pat>,
        subject: &TokenStream,
    ) -> Option<TokenStream> {
        let mut all = None;
        for (index, pat) in parts.enumerate() {
            let index = syn::Index::from(index);
            let Some(part) = self.test(pat, &quote!(#subject.#index)) else { continue };
            all = Some(match all {
                None => part,
                Some(before) => quote!(__k::both(#before, #part)),
            });
        }
        all
    }
}

/// Returns whether a pattern of a slice is `..` or `name @ ..`.
fn is_rest(pat: &Pat) -> bool {
    match pat {
        Pat::Rest(_) => true,
        Pat::Ident(name) => name.subpat.as_ref().is_some_and(|(_, sub)| matches!(**sub, Pat::Rest(_))),
        _ => false,
    }
}
