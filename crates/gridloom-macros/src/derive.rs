//! `#[derive(KernelType)]`.

use crate::tokens::here;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Member, Result};

/// Returns the name of the struct of a type's registers.
pub(crate) fn handle_name(name: &Ident) -> Ident {
    format_ident!("__{name}Twin")
}

pub(crate) fn kernel_type(input: DeriveInput) -> Result<TokenStream> {
    let data = match &input.data {
        Data::Struct(data) => data,
        Data::Enum(data) => return crate::derive_enum::kernel_enum(&input, data),
        Data::Union(_) => {
            return Err(Error::new(input.ident.span(), "`KernelType` is derived for structs and enums"));
        }
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new(lifetime.span(), "a `KernelType` is plain data and has no references"));
    }
    let name = &input.ident;
    let handle = handle_name(name);
    let vis = &input.vis;
    let mut generics = input.generics.clone();
    for param in &mut generics.params {
        if let GenericParam::Type(param) = param {
            param.bounds.push(syn::parse_quote!(::gridloom::__kernel::KernelType));
        }
    }
    let (declared, used, clause) = generics.split_for_impl();
    let members: Vec<Member> = data.fields.members().collect();
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    let visibilities: Vec<_> = data.fields.iter().map(|field| &field.vis).collect();
    let body = match &data.fields {
        Fields::Named(_) => {
            quote!({ #(#visibilities #members: ::gridloom::__kernel::V<#types>,)* })
        }
        Fields::Unnamed(_) => quote!((#(#visibilities ::gridloom::__kernel::V<#types>),*) #clause;),
        Fields::Unit => quote!({}),
    };
    let clause_before = if matches!(data.fields, Fields::Unnamed(_)) { quote!() } else { quote!(#clause) };
    let twins: Vec<TokenStream> = types
        .iter()
        .map(|ty| quote_spanned!(here(ty.span())=> <#ty as ::gridloom::__kernel::KernelType>))
        .collect();
    let quiet = crate::function::quiet();
    Ok(quote! {
        #quiet
        #[allow(non_camel_case_types)]
        #vis struct #handle #declared #clause_before #body

        #quiet
        impl #declared ::core::clone::Clone for #handle #used #clause {
            fn clone(&self) -> Self {
                *self
            }
        }
        #quiet
        impl #declared ::core::marker::Copy for #handle #used #clause {}

        #quiet
        impl #declared ::gridloom::__kernel::Typed for #name #used #clause {
            type Twin = ::gridloom::__kernel::V<#name #used>;
        }

        #quiet
        // SAFETY: the offsets of the parts are those of the type.
        #[allow(unsafe_code)]
        unsafe impl #declared ::gridloom::__kernel::KernelType for #name #used #clause {
            type Handle = #handle #used;

            fn declare() -> Self::Handle {
                #handle { #(#members: ::gridloom::__kernel::of_handle(#twins::declare()),)* }
            }
            fn get(handle: &Self::Handle) -> Self::Handle {
                #handle { #(#members: ::gridloom::__kernel::of_handle(#twins::get(&handle.#members.__handle)),)* }
            }
            fn assign(to: &Self::Handle, from: &Self::Handle) {
                #(#twins::assign(&to.#members.__handle, &from.#members.__handle);)*
            }
            fn own(value: &Self::Handle) -> Self::Handle {
                #handle { #(#members: ::gridloom::__kernel::of_handle(#twins::own(&value.#members.__handle)),)* }
            }
            fn stamp(handle: &Self::Handle) -> u64 {
                0 #(+ #twins::stamp(&handle.#members.__handle))*
            }
            fn receiver(handle: &Self::Handle) -> Self::Handle {
                *handle
            }
            fn place(mem: ::gridloom::__kernel::Mem) -> Self::Handle {
                #handle {
                    #(#members: ::gridloom::__kernel::of_handle(
                        #twins::place(mem.plus(::core::mem::offset_of!(Self, #members))),
                    ),)*
                }
            }
            fn lift(self) -> Self::Handle {
                #handle { #(#members: ::gridloom::__kernel::of_handle(#twins::lift(self.#members)),)* }
            }
            fn bytes(self, out: &mut [u8]) {
                #(
                    let start = ::core::mem::offset_of!(Self, #members);
                    let size = ::core::mem::size_of::<#types>();
                    #twins::bytes(self.#members, &mut out[start..start + size]);
                )*
            }
        }
    })
}

/// Returns the integer that an enum is, or starts with, by its `#[repr]`.
pub(crate) fn integer_of(input: &DeriveInput) -> Result<Ident> {
    const INTEGERS: [&str; 8] = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"];
    let mut found = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if let Some(name) = meta.path.get_ident()
                && INTEGERS.contains(&name.to_string().as_str())
            {
                found = Some(name.clone());
            }
            Ok(())
        })?;
    }
    found.ok_or_else(|| {
        Error::new(input.ident.span(), "an enum of device code says which integer it is: add `#[repr(u8)]`")
    })
}
