//! Kernels and device functions: what their attribute expands to.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Block, Error, FnArg, GenericArgument, GenericParam, Generics, ItemFn, Pat, PathArguments, ReturnType,
    Signature, Type, TypeParamBound, Visibility, WherePredicate,
};

use crate::names;
use crate::options::Options;
use crate::tokens::{conditional, contains, here};
use crate::twin::{Translator, Variable, twin_type};

/// Returns the mistakes, and the body to use: where there are mistakes, one that is as good for the
/// compiler, so that each is reported once.
pub(crate) fn reported(errors: Vec<Error>, body: TokenStream) -> (TokenStream, TokenStream) {
    if errors.is_empty() {
        return (quote!(), body);
    }
    let errors = errors.into_iter().map(Error::into_compile_error);
    (quote!(#(#errors)*), quote!(::core::unreachable!()))
}

/// Refuses what no device function can be.
pub(crate) fn check_signature(signature: &Signature, errors: &mut Vec<Error>) {
    let mut refuse = |span: Span, message: &str| errors.push(Error::new(span, message));
    if let Some(token) = &signature.asyncness {
        refuse(token.span(), "device code cannot be `async`: a kernel runs to its end without waiting");
    }
    if let Some(abi) = &signature.abi {
        refuse(abi.span(), "device code has no ABI to name; remove `extern`");
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic.span(), "device code takes a fixed number of parameters");
    }
    for input in &signature.inputs {
        if let FnArg::Typed(input) = input
            && let Type::ImplTrait(given) = &*input.ty
            && closure_bound(given.bounds.iter(), &|_| quote!()).is_none()
        {
            refuse(input.ty.span(), "device code cannot take `impl Trait`; name a type parameter");
        }
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::ImplTrait(_) = &**ty
    {
        refuse(ty.span(), "device code cannot return `impl Trait`; name the type");
    }
}

/// Returns the type of a result with a lifetime for each reference: a twin has none to leave out.
fn with_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    match &mut ty {
        Type::Reference(reference) => {
            if reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident == "_") {
                reference.lifetime = Some(syn::parse_quote!('static));
            }
            *reference.elem = with_lifetimes(&reference.elem);
        }
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(|elem| *elem = with_lifetimes(elem)),
        Type::Paren(inner) => *inner.elem = with_lifetimes(&inner.elem),
        Type::Path(path) => {
            let arguments =
                path.path.segments.iter_mut().filter_map(|segment| match &mut segment.arguments {
                    PathArguments::AngleBracketed(arguments) => Some(arguments),
                    _ => None,
                });
            for argument in arguments.flat_map(|arguments| &mut arguments.args) {
                if let GenericArgument::Type(ty) = argument {
                    *ty = with_lifetimes(ty);
                }
            }
        }
        _ => {}
    }
    ty
}

/// The parts of a twin: parameters and body.
pub(crate) struct Twin {
    pub(crate) params: Vec<TokenStream>,
    pub(crate) output: TokenStream,
    pub(crate) body: TokenStream,
}

/// Translates a function. `self_type` is what `Self` means.
pub(crate) fn translate(
    signature: &Signature,
    block: &Block,
    self_type: Option<&Type>,
    errors: &mut Vec<Error>,
) -> Twin {
    let mut translator = Translator::new(self_type.cloned(), &signature.generics);
    translator.function = Some(signature.ident.to_string());
    translator.is_unsafe = signature.unsafety.is_some() || contains(block, "unsafe");
    if let Some(span) = conditional(block.to_token_stream()) {
        errors.push(Error::new(
            span,
            "device code has no `#[cfg]` inside of functions; write `if cfg!(…) { … }`",
        ));
    }
    let closures = closure_params(&signature.generics);
    translator.type_params.retain(|name| !closures.contains(name));
    let (mut params, mut bindings) = (Vec::new(), Vec::new());
    for (index, input) in signature.inputs.iter().enumerate() {
        match input {
            FnArg::Receiver(receiver) => {
                let is_mut = receiver.reference.is_some() && receiver.mutability.is_some();
                translator.declare_as("self", if is_mut { Variable::Changed } else { Variable::Value });
                let own = Ident::new("__self", Span::call_site());
                // Outside of an `impl` it is a mistake that is reported elsewhere.
                let Some(own_type) = self_type else { continue };
                if receiver.reference.is_some() {
                    params.push(quote!(#own: ::gridloom::__kernel::R<::gridloom::__kernel::V<#own_type>>));
                } else {
                    params.push(quote!(#own: ::gridloom::__kernel::V<#own_type>));
                    bindings.push(if receiver.mutability.is_some() {
                        quote!(let #own = __k::var(#own);)
                    } else {
                        quote!(let #own = __k::get(&#own);)
                    });
                }
            }
            FnArg::Typed(input) => {
                let twin_of = |ty: &Type| twin_type(ty, self_type, &translator.type_params);
                let closure = match &*input.ty {
                    Type::ImplTrait(given) => {
                        closure_bound(given.bounds.iter(), &twin_of).map(|bound| quote!(impl #bound))
                    }
                    Type::Path(path) => path
                        .path
                        .get_ident()
                        .filter(|name| closures.contains(&name.to_string()))
                        .map(|name| quote!(#name)),
                    _ => None,
                };
                let ty = closure.clone().unwrap_or_else(|| twin_of(&input.ty));
                match &*input.pat {
                    Pat::Ident(pat) if closure.is_some() => {
                        let name = &pat.ident;
                        translator.declare_as(&name.to_string(), Variable::Closure);
                        params.push(quote_spanned!(here(input.ty.span())=> #name: #ty));
                    }
                    Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                        let name = &pat.ident;
                        let is_mut = matches!(&*input.ty, Type::Reference(of) if of.mutability.is_some());
                        let variable = if is_mut { Variable::Changed } else { Variable::Value };
                        translator.declare_as(&name.to_string(), variable);
                        params.push(quote_spanned!(here(input.ty.span())=> #name: #ty));
                        if pat.mutability.is_some() {
                            bindings.push(quote!(let #name = __k::var(#name);));
                        }
                    }
                    pat => {
                        let name = format_ident!("__arg{index}", span = Span::call_site());
                        params.push(quote_spanned!(here(input.ty.span())=> #name: #ty));
                        bindings.push(translator.bind(pat, &quote!(#name), None));
                    }
                }
            }
        }
    }
    let (output, is_unit) = match &signature.output {
        ReturnType::Default => (quote!(()), true),
        ReturnType::Type(_, ty) => {
            let is_unit = matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty());
            if let Type::Never(never) = &**ty {
                errors.push(Error::new(
                    never.span(),
                    "device code cannot return `!`; use `panic!` where it is called",
                ));
            }
            (twin_type(&with_lifetimes(ty), self_type, &translator.type_params), is_unit)
        }
    };
    let name = signature.ident.to_string();
    let enter = quote! {
        let __frame = __k::enter(::core::file!(), #name, ::core::cfg!(debug_assertions));
    };
    let is_early = contains(block, "return");
    let body = if is_early {
        translator.returns = true;
        let statements = translator.block_of_function(block, !is_unit);
        if is_unit {
            quote! {
                #enter
                let __return = __k::block_begin();
                let __result = ();
                #(#bindings)*
                #statements
                __k::block_end(__return);
            }
        } else {
            quote! {
                #enter
                let __return = __k::block_begin();
                let __result: #output = __k::declare();
                #(#bindings)*
                __k::assign(&__result, #statements);
                __k::block_end(__return);
                __result
            }
        }
    } else {
        let statements = translator.block_of_function(block, !is_unit);
        quote! {
            #enter
            #(#bindings)*
            #statements
        }
    };
    errors.append(&mut translator.errors);
    let body = quote! {
        use ::gridloom::__kernel as __k;
        use __k::{DefaultTwin as _, IteratorMethods as _, RangeMethods as _};
        #body
    };
    Twin { params, output, body }
}

/// Returns the attributes of what is generated: it is read by nobody.
pub(crate) fn quiet() -> TokenStream {
    quote! {
        #[allow(
            unused, non_snake_case, unreachable_code, clippy::all, clippy::pedantic, clippy::nursery,
            clippy::restriction, dead_code, mismatched_lifetime_syntaxes, missing_docs, unreachable_pub,
            unsafe_code
        )]
        #[doc(hidden)]
    }
}

/// Returns the bound of a closure's twin, if one of the bounds is that of a closure.
fn closure_bound<'a>(
    mut bounds: impl Iterator<Item = &'a TypeParamBound>,
    twin_of: &dyn Fn(&Type) -> TokenStream,
) -> Option<TokenStream> {
    bounds.find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last()?;
        if !["Fn", "FnMut", "FnOnce"].contains(&last.ident.to_string().as_str()) {
            return None;
        }
        let PathArguments::Parenthesized(signature) = &last.arguments else { return None };
        let inputs = signature.inputs.iter().map(twin_of);
        let output = match &signature.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => twin_of(ty),
        };
        // Recording changes nothing that the closure has.
        Some(quote!(::core::ops::Fn(#(#inputs),*) -> #output + ::core::marker::Copy))
    })
}

/// Returns the bound of each type parameter that is a closure.
fn closure_bounds(generics: &Generics) -> Vec<(String, TokenStream)> {
    let params: HashSet<String> = generics.type_params().map(|param| param.ident.to_string()).collect();
    let twin_of = |ty: &Type| twin_type(ty, None, &params);
    let mut found = Vec::new();
    for param in generics.type_params() {
        found.extend(
            closure_bound(param.bounds.iter(), &twin_of).map(|bound| (param.ident.to_string(), bound)),
        );
    }
    for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
        if let WherePredicate::Type(predicate) = predicate
            && let Type::Path(path) = &predicate.bounded_ty
            && let Some(name) = path.path.get_ident()
        {
            found.extend(
                closure_bound(predicate.bounds.iter(), &twin_of).map(|bound| (name.to_string(), bound)),
            );
        }
    }
    found
}

/// Returns the type parameters that are closures.
fn closure_params(generics: &Generics) -> HashSet<String> {
    closure_bounds(generics).into_iter().map(|(name, _)| name).collect()
}

/// Returns the bounds that the twin of a type with these bounds needs.
fn twin_bounds<'a>(bounds: impl Iterator<Item = &'a TypeParamBound>) -> Vec<TypeParamBound> {
    let mut all = Vec::new();
    for bound in bounds {
        let TypeParamBound::Trait(bound) = bound else { continue };
        let Some(last) = bound.path.segments.last() else { continue };
        if let Some(twin) = names::twin_bound(&last.ident.to_string()) {
            let twin = Ident::new(twin, Span::call_site());
            // `Mul<f32>` asks for that operator; `Output` is the type itself.
            let right = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().find_map(|argument| match argument {
                        GenericArgument::Type(ty) => Some(quote!(<#ty>)),
                        _ => None,
                    })
                }
                _ => None,
            };
            let right = right.filter(|_| twin != "OpOrd" && twin != "OpEq");
            all.push(syn::parse_quote!(::gridloom::__kernel::#twin #right));
        }
    }
    all
}

/// Returns the generics of a twin, with what it needs of its types.
pub(crate) fn twin_generics(generics: &Generics, errors: &mut Vec<Error>) -> (TokenStream, TokenStream) {
    let closures = closure_bounds(generics);
    let is_closure = |name: &str| closures.iter().find(|(closure, _)| closure == name);
    let mut generics = generics.clone();
    for param in &mut generics.params {
        if let GenericParam::Type(param) = param {
            if let Some((_, bound)) = is_closure(&param.ident.to_string()) {
                param.bounds = syn::parse_quote!(#bound);
                continue;
            }
            if let Some(default) = &param.default {
                errors.push(Error::new(default.span(), "type parameters of device code have no defaults"));
            }
            let more = twin_bounds(param.bounds.iter());
            param.bounds.push(syn::parse_quote!(::gridloom::__kernel::KernelType));
            param.bounds.extend(more);
        }
    }
    if let Some(clause) = &mut generics.where_clause {
        clause.predicates = std::mem::take(&mut clause.predicates)
            .into_iter()
            .filter(|predicate| match predicate {
                WherePredicate::Type(of) => {
                    let ty = &of.bounded_ty;
                    is_closure(&quote!(#ty).to_string()).is_none()
                }
                _ => true,
            })
            .collect();
        for predicate in &mut clause.predicates {
            if let WherePredicate::Type(predicate) = predicate {
                let more = twin_bounds(predicate.bounds.iter());
                predicate.bounds.extend(more);
            }
        }
    }
    let (declared, _, clause) = generics.split_for_impl();
    (quote!(#declared), quote!(#clause))
}

/// Returns a struct of the function's name, which is where its twin is found: structs with braces
/// and functions can share a name.
pub(crate) fn companion(vis: &Visibility, name: &Ident, contents: TokenStream) -> TokenStream {
    let quiet = quiet();
    quote! {
        #[allow(non_camel_case_types, dead_code, missing_docs, unreachable_pub)]
        #[doc(hidden)]
        #vis struct #name {}
        #quiet
        impl #name {
            #contents
        }
    }
}

/// Expands a device function.
pub(crate) fn device_function(function: ItemFn) -> TokenStream {
    let mut errors = Vec::new();
    check_signature(&function.sig, &mut errors);
    let twin = translate(&function.sig, &function.block, None, &mut errors);
    let (generics, clause) = twin_generics(&function.sig.generics, &mut errors);
    let Twin { params, output, body } = twin;
    let (errors, body) = reported(errors, body);
    let twin = quote! {
        pub fn __twin #generics(#(#params),*) -> #output #clause { #body }
    };
    let companion = companion(&function.vis, &function.sig.ident, twin);
    quote!(#function #companion #errors)
}

/// Expands a kernel.
pub(crate) fn kernel(attribute: TokenStream, function: ItemFn) -> TokenStream {
    let mut errors = Vec::new();
    let options: Options = syn::parse2(attribute).unwrap_or_else(|error| {
        errors.push(error);
        Options::default()
    });
    check_signature(&function.sig, &mut errors);
    if let ReturnType::Type(_, ty) = &function.sig.output
        && !matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        errors
            .push(Error::new(ty.span(), "a kernel returns nothing; write its results to an `Out` parameter"));
    }
    for param in &function.sig.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.push(Error::new(
                lifetime.span(),
                "a kernel has no lifetime parameters; leave the lifetimes of its references out",
            ));
        }
    }
    for input in &function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.push(Error::new(receiver.span(), "a kernel is a function, not a method"));
            }
            FnArg::Typed(input) => {
                if let Type::ImplTrait(given) = &*input.ty
                    && closure_bound(given.bounds.iter(), &|_| quote!()).is_some()
                {
                    errors.push(Error::new(
                        input.ty.span(),
                        "a kernel cannot take `impl Trait`; call the function in the kernel, or choose it by a type parameter with a trait",
                    ));
                }
                if let Type::Reference(reference) = &*input.ty
                    && let (Some(mutability), Type::Slice(_)) = (&reference.mutability, &*reference.elem)
                {
                    errors.push(Error::new(
                        mutability.span(),
                        "threads of a kernel would all have the same `&mut`: take `Out<T>`, of which each thread owns its elements",
                    ));
                }
            }
        }
    }
    // A slice that is refused is taken for what it should be, so that it is reported once.
    let mut signature = function.sig.clone();
    for input in &mut signature.inputs {
        if let FnArg::Typed(input) = input
            && let Type::Reference(reference) = &*input.ty
            && let (true, Type::Slice(slice)) = (reference.mutability.is_some(), &*reference.elem)
        {
            let element = &slice.elem;
            input.ty = syn::parse_quote!(::gridloom::Out<#element>);
        }
    }
    let is_unsafe = function.sig.unsafety.is_some() || contains(&function.block, "unsafe");
    let twin = translate(&signature, &function.block, None, &mut errors);
    let (generics, clause) = twin_generics(&function.sig.generics, &mut errors);
    let host = quote! {
        #[allow(dead_code)]
        #function
    };
    let Twin { params, body, .. } = twin;
    let (errors, body) = reported(errors, body);
    let name = &function.sig.ident;
    let text = name.to_string();
    let types: Vec<&Type> = signature
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(input) => Some(&*input.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let given: Vec<TokenStream> = types
        .iter()
        .map(|ty| quote_spanned!(here(ty.span())=> <#ty as ::gridloom::__kernel::KernelParam>::Param))
        .collect();
    let recorded: Vec<TokenStream> = types
        .iter()
        .map(|ty| quote_spanned!(here(ty.span())=> ::gridloom::__kernel::param::<#ty>()))
        .collect();
    let names: Vec<Ident> =
        (0..types.len()).map(|index| format_ident!("__p{index}", span = Span::call_site())).collect();
    let (key, key_type) = instance_key(&function.sig.generics);
    let turbofish = turbofish(&function.sig.generics);
    let asked = options.recorded();
    let (unsafety, safety) = if is_unsafe {
        (
            quote!(unsafe),
            quote! {
                ///
                /// # Safety
                /// What the kernel promises in its `unsafe` blocks holds for every launch.
            },
        )
    } else {
        (quote!(), quote!())
    };
    let contents = quote! {
        pub fn __twin #generics(#(#params),*) #clause { #body }

        /// Loads the kernel onto a device.
        #safety
        pub #unsafety fn load #generics(
            device: &::gridloom::Device,
        ) -> ::gridloom::Result<::gridloom::Kernel<::gridloom::kernel::RustParams<(#(#given,)*)>>> #clause {
            // SAFETY: the kernel was recorded from a function that the compiler has checked, whose
            // accesses are checked where it runs, or promised in its `unsafe` blocks.
            unsafe { #name::__load #turbofish(device, false) }
        }

        /// Loads the kernel onto a device without the checks of its indices.
        ///
        /// # Safety
        /// No index of the kernel is out of range in any launch, and what it promises in `unsafe`
        /// blocks holds.
        pub unsafe fn load_unchecked #generics(
            device: &::gridloom::Device,
        ) -> ::gridloom::Result<::gridloom::Kernel<::gridloom::kernel::RustParams<(#(#given,)*)>>> #clause {
            // SAFETY: the caller promises it.
            unsafe { #name::__load #turbofish(device, true) }
        }

        unsafe fn __load #generics(
            device: &::gridloom::Device,
            is_unchecked: bool,
        ) -> ::gridloom::Result<::gridloom::Kernel<::gridloom::kernel::RustParams<(#(#given,)*)>>> #clause {
            #key
            // SAFETY: the caller promises it.
            unsafe {
                ::gridloom::__kernel::load(
                    device,
                    ::core::any::TypeId::of::<#key_type>(),
                    is_unchecked,
                    #text,
                    || {
                        #asked
                        #(let #names = #recorded;)*
                        #name::__twin #turbofish(#(#names),*);
                    },
                )
            }
        }
    };
    let companion = companion(&function.vis, name, contents);
    quote!(#host #companion #errors)
}

/// Returns a type that stands for the instance of a generic kernel.
fn instance_key(generics: &Generics) -> (TokenStream, TokenStream) {
    let (mut declared, mut used, mut named) = (Vec::new(), Vec::new(), Vec::new());
    for param in &generics.params {
        match param {
            GenericParam::Type(param) => {
                let name = &param.ident;
                declared.push(quote!(#name));
                used.push(quote!(#name));
                named.push(quote!(#name));
            }
            GenericParam::Const(param) => {
                let (name, ty) = (&param.ident, &param.ty);
                declared.push(quote!(const #name: #ty));
                used.push(quote!(#name));
            }
            GenericParam::Lifetime(_) => {}
        }
    }
    let key = quote! {
        struct __Key<#(#declared),*>(::core::marker::PhantomData<(#(#named,)*)>);
    };
    (key, quote!(__Key<#(#used),*>))
}

fn turbofish(generics: &Generics) -> TokenStream {
    let used: Vec<&Ident> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if used.is_empty() { quote!() } else { quote!(::<#(#used),*>) }
}
