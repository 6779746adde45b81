//! `#[device]`: functions, and the functions of an `impl`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ImplItem, Item, ItemImpl, Pat, Type, Visibility};

use crate::derive::handle_name;
use crate::function::{Twin, check_signature, device_function, quiet, reported, translate, twin_generics};

pub(crate) fn device(attribute: TokenStream, item: Item) -> TokenStream {
    let refuse = |span, message: &str| {
        let error = Error::new(span, message).into_compile_error();
        quote!(#item #error)
    };
    if !attribute.is_empty() {
        return refuse(attribute.span(), "`#[device]` takes no arguments");
    }
    match item {
        Item::Fn(function) => device_function(function),
        Item::Impl(block) => device_impl(block),
        ref other => refuse(other.span(), "`#[device]` is for functions and `impl` blocks"),
    }
}

/// The last name of a type's path, and its generic arguments.
fn type_name(ty: &Type) -> Option<(Ident, TokenStream)> {
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let arguments = &last.arguments;
            Some((last.ident.clone(), quote!(#arguments)))
        }
        _ => None,
    }
}

fn operator(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "Add" => ("OpAdd", "add"),
        "Sub" => ("OpSub", "sub"),
        "Mul" => ("OpMul", "mul"),
        "Div" => ("OpDiv", "div"),
        "Rem" => ("OpRem", "rem"),
        "Neg" => ("OpNeg", "neg"),
        _ => return None,
    })
}

fn device_impl(block: ItemImpl) -> TokenStream {
    let mut errors = Vec::new();
    let own_type = (*block.self_ty).clone();
    let Some((name, arguments)) = type_name(&own_type) else {
        let error = Error::new(own_type.span(), "device code has methods of types that are named by a path")
            .into_compile_error();
        return quote!(#block #error);
    };
    let operator_of = match &block.trait_ {
        None => None,
        Some((_, path, _)) => match operator(&crate::names::tail(path, 1)) {
            Some(found) => Some(found),
            None => {
                let error = Error::new(
                    path.span(),
                    "device code can implement the operators `Add`, `Sub`, `Mul`, `Div`, `Rem` and `Neg` of two values of one type; other traits cannot be called from kernels, make it an `impl` without a trait",
                )
                .into_compile_error();
                return quote!(#block #error);
            }
        },
    };
    let (mut functions, mut methods, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    let (generics, clause) = twin_generics(&block.generics, &mut errors);
    for item in &block.items {
        let ImplItem::Fn(function) = item else { continue };
        check_signature(&function.sig, &mut errors);
        let Twin { params, output, body } =
            translate(&function.sig, &function.block, Some(&own_type), &mut errors);
        let twin = format_ident!("__twin_{}", function.sig.ident);
        let (own_generics, own_clause) = twin_generics(&function.sig.generics, &mut errors);
        let vis = match operator_of {
            Some(_) => Visibility::Inherited,
            None => function.vis.clone(),
        };
        let (mistakes, body) = reported(std::mem::take(&mut errors), body);
        reports.push(mistakes);
        functions.push(quote! {
            #vis fn #twin #own_generics(#(#params),*) -> #output #own_clause { #body }
        });
        if operator_of.is_none() && function.sig.receiver().is_some() {
            let ident = &function.sig.ident;
            let rest = &params[1..];
            let names: Vec<Ident> = function
                .sig
                .inputs
                .iter()
                .enumerate()
                .filter_map(|(index, input)| match input {
                    FnArg::Typed(input) => Some(match &*input.pat {
                        Pat::Ident(pat) => pat.ident.clone(),
                        _ => format_ident!("__arg{index}", span = proc_macro2::Span::call_site()),
                    }),
                    FnArg::Receiver(_) => None,
                })
                .collect();
            let is_reference = function.sig.receiver().is_some_and(|receiver| receiver.reference.is_some());
            let own = quote!(::gridloom::__kernel::of_handle::<#own_type>(*self));
            let own = if is_reference { quote!(::gridloom::__kernel::refer(#own)) } else { own };
            methods.push(quote! {
                #vis fn #ident #own_generics(&self, #(#rest),*) -> #output #own_clause {
                    <#own_type>::#twin(#own, #(#names),*)
                }
            });
        }
    }
    let quiet = quiet();
    let handle = handle_name(&name);
    let operators = operator_of.map(|(op, method)| {
        let (op, method) = (format_ident!("{op}"), format_ident!("{method}"));
        let twin = format_ident!("__twin_{method}");
        let (params, args) = if method == "neg" {
            (quote!(a: ::gridloom::__kernel::V<Self>), quote!(a))
        } else {
            (quote!(a: ::gridloom::__kernel::V<Self>, b: ::gridloom::__kernel::V<Self>), quote!(a, b))
        };
        quote! {
            #quiet
            impl #generics ::gridloom::__kernel::#op for #own_type #clause {
                fn #method(#params) -> ::gridloom::__kernel::V<Self> {
                    <#own_type>::#twin(#args)
                }
            }
        }
    });
    let methods = (!methods.is_empty()).then(|| {
        quote! {
            #quiet
            impl #generics #handle #arguments #clause { #(#methods)* }
        }
    });
    quote! {
        #block
        #(#reports)*
        #quiet
        impl #generics #own_type #clause { #(#functions)* }
        #methods
        #operators
    }
}
