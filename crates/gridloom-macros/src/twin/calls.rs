//! Translation of calls of functions, methods and closures, and of struct expressions.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, Path};

use super::Translator;
use super::questions::{line, root};
use crate::names;
use crate::tokens::{contains, find, here};

/// Returns the call of a function of the standard library. The compiler checks that the name means
/// that function, and not another one of this name.
fn standard(
    path: &Path,
    meant: TokenStream,
    twin: TokenStream,
    args: &[TokenStream],
    span: Span,
) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.arguments = syn::PathArguments::None;
    }
    quote_spanned!(here(span)=> {
        __k::is_of_standard_library(#path::<u8>, ::core::#meant::<u8>);
        __k::#twin(#(#args),*)
    })
}

impl Translator {
    pub(super) fn struct_(&mut self, literal: &syn::ExprStruct) -> TokenStream {
        let span = literal.span();
        if literal.qself.is_some() {
            return self.refuse(span, "device code names a struct by its path");
        }
        let path = match (&self.self_type, literal.path.is_ident("Self")) {
            (Some(self_type), true) => in_expression(self_type),
            _ => literal.path.to_token_stream(),
        };
        if let Some((owner, variant)) = self.variant(&literal.path)
            && literal.rest.is_none()
        {
            let values: Vec<TokenStream> =
                literal.fields.iter().map(|field| self.value(&field.expr)).collect();
            let members: Vec<_> = literal.fields.iter().map(|field| field.member.clone()).collect();
            return self.made_variant(&owner, &variant, &members, &values, span);
        }
        let mut fields = Vec::new();
        for field in &literal.fields {
            let variable = self.fresh("field");
            let value = self.value(&field.expr);
            fields.push((field.member.clone(), variable, value));
        }
        let members: Vec<_> = fields.iter().map(|(member, ..)| member).collect();
        let variables: Vec<_> = fields.iter().map(|(_, variable, _)| variable).collect();
        let values: Vec<_> = fields.iter().map(|(.., value)| value).collect();
        let (rest, copied) = match &literal.rest {
            Some(rest) => {
                let rest = self.value(rest);
                (quote!(let __rest = #rest;), quote!(..__k::phantom(&__rest)))
            }
            None => (quote!(), quote!()),
        };
        let start = if literal.rest.is_some() { quote!(__k::assign(&__s, __rest);) } else { quote!() };
        quote_spanned!(here(span)=> {
            #(let #variables = #values;)*
            #rest
            let __s = __k::fresh_like(|| #path { #(#members: __k::phantom(&#variables),)* #copied });
            #start
            #(__k::assign(&__s.#members, #variables);)*
            __s
        })
    }

    pub(super) fn call(&mut self, call: &syn::ExprCall) -> TokenStream {
        let span = call.span();
        let Expr::Path(function) = &*call.func else {
            return self.refuse(call.func.span(), "device code calls functions and closures by their names");
        };
        let args: Vec<TokenStream> = call.args.iter().map(|arg| self.argument(arg)).collect();
        let path = &function.path;
        let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if let Some(ident) = path.get_ident() {
            if self.is_local(&name) {
                return quote_spanned!(here(span)=> #ident(#(#args),*));
            }
            if name == "Some" {
                return quote_spanned!(here(span)=> __k::some(#(#args),*));
            }
        }
        if path.segments.len() == 1 && self.function.as_ref() == Some(&name) && !self.is_local(&name) {
            return self.refuse(
                span,
                "device code cannot be recursive: it is recorded where it is called; use a loop",
            );
        }
        for segment in &path.segments {
            if let Some(reason) = names::refused_type(&segment.ident.to_string()) {
                return self
                    .refuse(segment.span(), format!("`{}` is not available: {reason}", segment.ident));
            }
        }
        // A function of a module may have any name.
        let owner = path.segments.iter().rev().nth(1).map(|owner| owner.ident.to_string());
        let is_of_type =
            |owner: &String| names::is_type_name(owner) || names::SCALARS.contains(&owner.as_str());
        if let Some(reason) = names::refused_method(&name).filter(|_| owner.as_ref().is_some_and(is_of_type))
        {
            return self.refuse(path.span(), format!("`{name}` is not available: {reason}"));
        }
        match names::tail(path, 2).as_str() {
            "mem::swap" => return standard(path, quote!(mem::swap), quote!(swap), &args, span),
            "mem::replace" => return standard(path, quote!(mem::replace), quote!(replace), &args, span),
            "cmp::min" | "min" => return standard(path, quote!(cmp::min), quote!(V::min), &args, span),
            "cmp::max" | "max" => return standard(path, quote!(cmp::max), quote!(V::max), &args, span),
            _ => {}
        }
        if names::is_type_name(&name) {
            return self.tuple_struct(function, &args, span);
        }
        let count = path.segments.len();
        let owner = (count > 1).then(|| path.segments[count - 2].ident.to_string());
        let last = path.segments.last().expect("a path has a segment");
        let (ident, generics) = (&last.ident, &last.arguments);
        let generics = match generics {
            syn::PathArguments::None => quote!(),
            generics => {
                let generics = generics.to_token_stream();
                if generics.to_string().starts_with("::") { generics } else { quote!(::#generics) }
            }
        };
        match owner.as_deref() {
            Some(owner) if names::SCALARS.contains(&owner) => {
                let ty = path_without_last(path);
                let line = line(span);
                quote_spanned!(here(span)=> { __k::at(#line); <<#ty as __k::Typed>::Twin>::#ident #generics(#(#args),*) })
            }
            Some("Self") if self.self_type.is_some() => {
                let (ty, twin) =
                    (self.self_type.as_ref(), format_ident!("__twin_{ident}", span = ident.span()));
                quote_spanned!(here(span)=> <#ty>::#twin #generics(#(#args),*))
            }
            Some(owner) if names::is_type_name(owner) || self.type_params.contains(owner) => {
                let twin = format_ident!("__twin_{ident}", span = ident.span());
                let ty = path_without_last(path);
                quote_spanned!(here(span)=> #ty::#twin #generics(#(#args),*))
            }
            _ => {
                let mut path = path.clone();
                if let Some(last) = path.segments.last_mut() {
                    last.arguments = syn::PathArguments::None;
                }
                quote_spanned!(here(span)=> #path::__twin #generics(#(#args),*))
            }
        }
    }

    /// Returns an argument. A reference to an array becomes a slice where the function takes one.
    fn argument(&mut self, arg: &Expr) -> TokenStream {
        let value = self.value(arg);
        match arg {
            Expr::Reference(reference) if !matches!(&*reference.expr, Expr::Index(index) if matches!(&*index.index, Expr::Range(_))) =>
            {
                quote_spanned!(here(arg.span())=> __k::passed(#value))
            }
            _ => value,
        }
    }

    pub(super) fn tuple_struct(
        &mut self,
        function: &syn::ExprPath,
        args: &[TokenStream],
        span: Span,
    ) -> TokenStream {
        let path = match (&self.self_type, function.path.is_ident("Self")) {
            (Some(self_type), true) => in_expression(self_type),
            _ => function.to_token_stream(),
        };
        if let Some((owner, variant)) = self.variant(&function.path) {
            let members: Vec<syn::Member> =
                (0..args.len()).map(|index| syn::Member::Unnamed(syn::Index::from(index))).collect();
            return self.made_variant(&owner, &variant, &members, args, span);
        }
        let variables: Vec<Ident> = args.iter().map(|_| self.fresh("field")).collect();
        let members = (0..args.len()).map(syn::Index::from);
        quote_spanned!(here(span)=> {
            #(let #variables = #args;)*
            let __s = __k::fresh_like(|| #path(#(__k::phantom(&#variables)),*));
            #(__k::assign(&__s.#members, #variables);)*
            __s
        })
    }

    /// Returns the enum and the variant that a path names: its last two names are written as types
    /// are.
    pub(crate) fn variant(&self, path: &Path) -> Option<(TokenStream, Ident)> {
        let count = path.segments.len();
        let (owner, variant) = (path.segments.get(count.checked_sub(2)?)?, path.segments.last()?);
        if !names::is_type_name(&owner.ident.to_string())
            || !variant.ident.to_string().starts_with(char::is_uppercase)
        {
            return None;
        }
        let owner = match &self.self_type {
            Some(self_type) if owner.ident == "Self" && count == 2 => quote!(#self_type),
            _ => path_without_last(path),
        };
        Some((owner, variant.ident.clone()))
    }

    /// Returns a value of a variant with fields.
    fn made_variant(
        &mut self,
        owner: &TokenStream,
        variant: &Ident,
        members: &[syn::Member],
        values: &[TokenStream],
        span: Span,
    ) -> TokenStream {
        let variables: Vec<Ident> = values.iter().map(|_| self.fresh("field")).collect();
        let (make, fields) =
            (crate::derive_enum::select_name(variant), crate::derive_enum::fields_name(variant));
        quote_spanned!(here(span)=> {
            #(let #variables = #values;)*
            let __s = <<#owner as __k::KernelType>::Handle>::#make();
            #(__k::assign(&__s.#fields.#members, #variables);)*
            __s
        })
    }

    pub(super) fn method_call(&mut self, call: &ExprMethodCall) -> TokenStream {
        let span = call.span();
        let name = call.method.to_string();
        if let Some(reason) = names::refused_method(&name) {
            return self.refuse(call.method.span(), format!("`{name}` is not available: {reason}"));
        }
        if matches!(name.as_str(), "min" | "max" | "unwrap_or") && gives_elements_to_write(&call.receiver) {
            return self.refuse(
                call.method.span(),
                format!("device code has no `{name}` of elements to write; write an `if` or a `for` loop"),
            );
        }
        let (method, generics) = (&call.method, &call.turbofish);
        let receiver = self.place(&call.receiver);
        let receiver = match root(&call.receiver) {
            Some(_) => quote_spanned!(here(call.receiver.span())=> __k::receiver(#receiver)),
            None => receiver,
        };
        let args: Vec<TokenStream> = if name == "expect" {
            call.args.iter().map(ToTokens::to_token_stream).collect()
        } else if name == "zip" {
            // It takes anything that a loop can go over.
            call.args.iter().map(|arg| self.value(arg)).collect()
        } else {
            call.args.iter().map(|arg| self.argument(arg)).collect()
        };
        let variables: Vec<Ident> = args.iter().map(|_| self.fresh("arg")).collect();
        let line = line(method.span());
        // A value is taken before the arguments are evaluated. Where it is still in its variable,
        // they must not change it.
        let is_named =
            root(&call.receiver).is_some_and(|variable| call.args.iter().any(|arg| contains(arg, &variable)));
        let (stamp, check) = if is_named {
            (quote!(let __stamp = __k::stamp(&__m);), quote!(__k::unchanged(&__m, __stamp);))
        } else {
            (quote!(), quote!())
        };
        if is_closure_free(call) {
            quote_spanned!(here(span)=> {
                let __m = #receiver;
                #stamp
                #(let #variables = #args;)*
                __k::at(#line);
                #check
                __m.#method #generics(#(#variables),*)
            })
        } else {
            quote_spanned!(here(span)=> { __k::at(#line); (#receiver).#method #generics(#(#args),*) })
        }
    }

    pub(super) fn closure(&mut self, closure: &syn::ExprClosure) -> TokenStream {
        let span = closure.span();
        if closure.asyncness.is_some() {
            return self.refuse(span, "device code cannot be `async`");
        }
        // A closure that moves has what its variables are now.
        let captured: Vec<Ident> = match closure.capture {
            Some(_) => {
                let used = self.values_in_scope().into_iter();
                // Its parameters hide variables of their names.
                used.filter(|name| !contains(&closure.inputs, name))
                    .filter_map(|name| find(&closure.body, &name))
                    .map(|name| if name == "self" { Ident::new("__self", Span::call_site()) } else { name })
                    .collect()
            }
            None => Vec::new(),
        };
        self.scoped(|this| {
            let (mut params, mut bindings) = (Vec::new(), Vec::new());
            for input in &closure.inputs {
                let (pat, ty) = match input {
                    syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                    pat => (pat, None),
                };
                let variable = this.fresh("param");
                let annotation =
                    ty.filter(|ty| !contains(ty, "_")).map(|ty| this.ty(ty)).map(|ty| quote!(: #ty));
                params.push(quote!(#variable #annotation));
                bindings.push(this.bind(pat, &quote!(#variable), None));
            }
            let targets = std::mem::take(&mut this.targets);
            let returns = std::mem::replace(&mut this.returns, false);
            let body = this.value(&closure.body);
            (this.targets, this.returns) = (targets, returns);
            let output = match &closure.output {
                syn::ReturnType::Default => quote!(),
                syn::ReturnType::Type(_, ty) => {
                    let ty = this.ty(ty);
                    quote!(-> #ty)
                }
            };
            if closure.capture.is_none() {
                return quote_spanned!(here(span)=> |#(#params),*| #output { #(#bindings)* #body });
            }
            quote_spanned!(here(span)=> {
                #(let #captured = __k::captured(&#captured);)*
                move |#(#params),*| #output { #(#bindings)* #body }
            })
        })
    }
}

/// Returns a type as it is named in an expression: `Type::<T>`.
fn in_expression(ty: &syn::Type) -> TokenStream {
    let mut ty = ty.clone();
    if let syn::Type::Path(named) = &mut ty
        && let Some(last) = named.path.segments.last_mut()
        && let syn::PathArguments::AngleBracketed(arguments) = &mut last.arguments
    {
        arguments.colon2_token = Some(syn::Token![::](Span::call_site()));
    }
    ty.to_token_stream()
}

fn path_without_last(path: &Path) -> TokenStream {
    let mut path = path.clone();
    path.segments.pop();
    let last = path.segments.pop().map(syn::punctuated::Pair::into_value);
    path.segments.extend(last);
    path.to_token_stream()
}

/// Returns whether an expression ends with calls of methods of which one is named like `iter_mut`.
fn gives_elements_to_write(expr: &Expr) -> bool {
    match expr {
        Expr::MethodCall(call) => {
            call.method.to_string().ends_with("_mut") || gives_elements_to_write(&call.receiver)
        }
        _ => false,
    }
}

/// Returns whether a call has no closure among its arguments: those are run by the method, and do
/// not come before it.
fn is_closure_free(call: &ExprMethodCall) -> bool {
    !call.args.iter().any(|arg| matches!(arg, Expr::Closure(_)))
}
