//! `#[device]`: functions, traits, and the functions of an `impl`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, ImplItem, Item, ItemImpl, ItemTrait, Pat, PathArguments, TraitItem, Type,
};

use crate::derive::handle_name;
use crate::function::{Twin, check_signature, device_function, quiet, reported, translate, twin_generics};
use crate::names::{ASSIGNING_OPERATORS, OPERATORS};

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
        Item::Trait(item) => device_trait(item),
        ref other => refuse(other.span(), "`#[device]` is for functions, traits and `impl` blocks"),
    }
}

/// Traits of the standard library that cannot have a twin.
const REFUSED_TRAITS: &[&str] = &[
    "Display",
    "Debug",
    "Clone",
    "Copy",
    "Drop",
    "Deref",
    "DerefMut",
    "Index",
    "IndexMut",
    "Iterator",
    "IntoIterator",
    "From",
    "Into",
    "TryFrom",
    "TryInto",
    "PartialOrd",
    "Ord",
    "Hash",
    "AsRef",
    "Fn",
    "FnMut",
    "FnOnce",
];

/// Returns the last name of a type's path, and its generic arguments.
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

/// Returns the type on the right side of an operator: that of the left side, where the trait names
/// none.
fn right_side(path: &syn::Path) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

/// Expands the operator of a type: the function that records it is the twin of the trait's method.
fn device_operator(block: &ItemImpl, path: &syn::Path, op: &str, method: &str) -> TokenStream {
    let mut errors = Vec::new();
    let own_type = &*block.self_ty;
    let (generics, clause) = twin_generics(&block.generics, &mut errors);
    let (op, method) = (format_ident!("{op}"), format_ident!("{method}"));
    let right = right_side(path).map(|ty| crate::tokens::named_self(&ty, Some(own_type)));
    let output = block.items.iter().find_map(|item| match item {
        ImplItem::Type(output) if output.ident == "Output" => Some(&output.ty),
        _ => None,
    });
    let mut twin = quote!();
    for item in &block.items {
        let ImplItem::Fn(function) = item else { continue };
        let mut signature = function.sig.clone();
        if let (syn::ReturnType::Type(_, ty), Some(output)) = (&mut signature.output, output)
            && quote!(#ty).to_string() == quote!(Self::Output).to_string()
        {
            **ty = output.clone();
        }
        check_signature(&signature, &mut errors);
        let Twin { params, output, body } =
            translate(&signature, &function.block, Some(own_type), &mut errors);
        twin = quote!(fn #method(#(#params),*) -> #output { #body });
    }
    if let Some(output) = output {
        let given = crate::tokens::named_self(output, Some(own_type));
        if quote!(#given).to_string() != quote!(#own_type).to_string() {
            errors.push(Error::new(
                output.span(),
                "an operator of device code has a result of the type of its left side; write a method for this one",
            ));
        }
    }
    let right = right.map(|right| quote!(<#right>));
    let quiet = quiet();
    let (errors, twin) = if errors.is_empty() {
        (
            quote!(),
            quote! {
                #quiet
                impl #generics ::gridloom::__kernel::#op #right for #own_type #clause { #twin }
            },
        )
    } else {
        let errors = errors.into_iter().map(Error::into_compile_error);
        (quote!(#(#errors)*), quote!())
    };
    quote!(#block #errors #twin)
}

/// Expands the equality of a type.
fn device_equality(block: &ItemImpl) -> TokenStream {
    let mut errors = Vec::new();
    let own_type = &*block.self_ty;
    let (generics, clause) = twin_generics(&block.generics, &mut errors);
    let mut twin = quote!();
    for item in &block.items {
        let ImplItem::Fn(function) = item else { continue };
        check_signature(&function.sig, &mut errors);
        let Twin { params, body, .. } =
            translate(&function.sig, &function.block, Some(own_type), &mut errors);
        if function.sig.ident != "eq" {
            errors.push(Error::new(
                function.sig.ident.span(),
                "device code has the `eq` of `PartialEq` alone: remove `ne`, which is its opposite",
            ));
        }
        twin = quote! {
            fn equal(
                a: ::gridloom::__kernel::V<Self>,
                b: ::gridloom::__kernel::V<Self>,
            ) -> ::gridloom::__kernel::V<bool> {
                let compare = |#(#params),*| { #body };
                compare(::gridloom::__kernel::refer(a), ::gridloom::__kernel::refer(b))
            }
        };
    }
    let quiet = quiet();
    let (errors, twin) = if errors.is_empty() {
        (
            quote!(),
            quote! {
                #quiet
                impl #generics ::gridloom::__kernel::OpEq for #own_type #clause { #twin }
            },
        )
    } else {
        let errors = errors.into_iter().map(Error::into_compile_error);
        (quote!(#(#errors)*), quote!())
    };
    quote!(#block #errors #twin)
}

/// Returns the name of a trait that gives values of device code the methods of a trait.
fn methods_name(name: &Ident) -> Ident {
    format_ident!("{name}OnDevice", span = name.span())
}

/// Returns the names of a function's parameters without the receiver, as its twin has them.
fn parameter_names(signature: &syn::Signature) -> Vec<Ident> {
    let named = signature.inputs.iter().enumerate().filter_map(|(index, input)| match input {
        FnArg::Typed(input) => Some(match &*input.pat {
            Pat::Ident(pat) => pat.ident.clone(),
            _ => format_ident!("__arg{index}", span = proc_macro2::Span::call_site()),
        }),
        FnArg::Receiver(_) => None,
    });
    named.collect()
}

/// Expands a trait. Beside each function it has a twin, and a second trait gives values of device
/// code its methods.
fn device_trait(mut item: ItemTrait) -> TokenStream {
    let mut errors = Vec::new();
    if let Some(param) = item.generics.params.first() {
        errors.push(Error::new(param.span(), "a trait of device code has no generic parameters"));
    }
    let own: Type = syn::parse_quote!(Self);
    let (mut twins, mut methods) = (Vec::new(), Vec::new());
    let quiet = quiet();
    for function in &item.items {
        let TraitItem::Fn(function) = function else { continue };
        check_signature(&function.sig, &mut errors);
        let empty: syn::Block = syn::parse_quote!({});
        let is_given = function.default.is_some();
        let mut ignored = Vec::new();
        let Twin { params, output, body } = translate(
            &function.sig,
            function.default.as_ref().unwrap_or(&empty),
            Some(&own),
            if is_given { &mut errors } else { &mut ignored },
        );
        let name = &function.sig.ident;
        let twin = format_ident!("__twin_{name}");
        let (generics, clause) = twin_generics(&function.sig.generics, &mut errors);
        let needs = quote!(Self: ::core::marker::Sized + ::gridloom::__kernel::KernelType);
        let clause = if clause.is_empty() { quote!(where #needs) } else { quote!(#clause, #needs) };
        let body = if is_given { quote!({ #body }) } else { quote!(;) };
        twins.push(quote! {
            #quiet
            fn #twin #generics(#(#params),*) -> #output #clause #body
        });
        if let Some(receiver) = function.sig.receiver() {
            let trait_name = &item.ident;
            let names = parameter_names(&function.sig);
            let rest = function.sig.inputs.iter().zip(&params).filter_map(|(input, param)| match input {
                FnArg::Typed(input) => {
                    // What `Self` means is the type whose values have the method.
                    let ty = crate::tokens::named_self(&input.ty, Some(&syn::parse_quote!(__T)));
                    Some((ty, param.clone()))
                }
                FnArg::Receiver(_) => None,
            });
            let typed: Vec<TokenStream> = rest
                .zip(&names)
                .map(|((ty, _), name)| quote!(#name: <#ty as ::gridloom::__kernel::Typed>::Twin))
                .collect();
            let result = match &function.sig.output {
                syn::ReturnType::Default => quote!(()),
                syn::ReturnType::Type(_, ty) => {
                    let ty = crate::tokens::named_self(ty, Some(&syn::parse_quote!(__T)));
                    quote!(<#ty as ::gridloom::__kernel::Typed>::Twin)
                }
            };
            let own = if receiver.reference.is_some() {
                quote!(::gridloom::__kernel::refer(*self))
            } else {
                quote!(::gridloom::__kernel::get(self))
            };
            let (own_generics, own_clause) = twin_generics(&function.sig.generics, &mut Vec::new());
            methods.push((
                quote!(fn #name #own_generics(&self, #(#typed),*) -> #result #own_clause),
                quote!({ <__T as #trait_name>::#twin(#own, #(#names),*) }),
            ));
        }
    }
    let (vis, name) = (&item.vis, &item.ident);
    let on_device = methods_name(name);
    let (declared, defined): (Vec<_>, Vec<_>) =
        methods.into_iter().map(|(head, body)| (quote!(#head;), quote!(#head #body))).unzip();
    let errors = errors.into_iter().map(Error::into_compile_error);
    let second = quote! {
        #quiet
        #vis trait #on_device<__T: ::gridloom::__kernel::KernelType + #name> {
            #(#declared)*
        }
        #quiet
        impl<__T: ::gridloom::__kernel::KernelType + #name> #on_device<__T> for ::gridloom::__kernel::V<__T> {
            #(#defined)*
        }
    };
    for twin in twins {
        item.items.push(TraitItem::Verbatim(twin));
    }
    quote!(#item #second #(#errors)*)
}

/// Expands the implementation of a trait that has `#[device]`.
fn device_trait_impl(mut block: ItemImpl) -> TokenStream {
    let mut errors = Vec::new();
    let own_type = (*block.self_ty).clone();
    let quiet = quiet();
    let mut twins = Vec::new();
    for item in &block.items {
        let ImplItem::Fn(function) = item else { continue };
        check_signature(&function.sig, &mut errors);
        let Twin { params, output, body } =
            translate(&function.sig, &function.block, Some(&own_type), &mut errors);
        let twin = format_ident!("__twin_{}", function.sig.ident, span = function.sig.ident.span());
        let (generics, clause) = twin_generics(&function.sig.generics, &mut errors);
        twins.push(quote! {
            #quiet
            fn #twin #generics(#(#params),*) -> #output #clause { #body }
        });
    }
    // The twins need of the type's parameters what those of a function need.
    for param in &mut block.generics.params {
        if let syn::GenericParam::Type(param) = param {
            param.bounds.push(syn::parse_quote!(::gridloom::__kernel::KernelType));
        }
    }
    if errors.is_empty() {
        block.items.extend(twins.into_iter().map(ImplItem::Verbatim));
    }
    let errors = errors.into_iter().map(Error::into_compile_error);
    quote!(#block #(#errors)*)
}

fn device_impl(block: ItemImpl) -> TokenStream {
    let mut errors = Vec::new();
    let own_type = (*block.self_ty).clone();
    // There is one `Default` of a type, so that its function can be found like a function of the
    // type.
    let is_default = |path: &syn::Path| crate::names::tail(path, 1) == "Default";
    if let Some((_, path, _)) = block.trait_.clone().filter(|(_, path, _)| !is_default(path)) {
        let name = crate::names::tail(&path, 1);
        if let Some((_, op, method)) =
            OPERATORS.iter().chain(ASSIGNING_OPERATORS).find(|(of_rust, ..)| *of_rust == name)
        {
            return device_operator(&block, &path, op, method);
        }
        if name == "PartialEq" {
            return device_equality(&block);
        }
        if name == "Eq" {
            return quote!(#block);
        }
        if REFUSED_TRAITS.contains(&name.as_str()) {
            let error = Error::new(
                path.span(),
                format!("device code cannot call `{name}`: it calls the operators and traits with `#[device]`; make it an `impl` without a trait"),
            )
            .into_compile_error();
            return quote!(#block #error);
        }
        return device_trait_impl(block);
    }
    let Some((name, arguments)) = type_name(&own_type) else {
        let error = Error::new(own_type.span(), "device code has methods of types that are named by a path")
            .into_compile_error();
        return quote!(#block #error);
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
        let vis = function.vis.clone();
        let (mistakes, body) = reported(std::mem::take(&mut errors), body);
        reports.push(mistakes);
        functions.push(quote! {
            #vis fn #twin #own_generics(#(#params),*) -> #output #own_clause { #body }
        });
        if function.sig.receiver().is_some() {
            let ident = &function.sig.ident;
            let rest = &params[1..];
            let names = parameter_names(&function.sig);
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
    }
}
