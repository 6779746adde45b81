//! `#[derive(KernelType)]` of enums.
//!
//! An enum without fields is represented by its integer. One with fields is represented by the
//! number of its variant and the fields of all variants, of which only those of one are in use.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Error, Fields, Member, Result};

use crate::derive::{handle_name, integer_of};

/// Returns the name of the method that tells whether a value is of a variant.
pub(crate) fn test_name(variant: &Ident) -> Ident {
    format_ident!("__is_{variant}", span = proc_macro2::Span::call_site())
}

/// Returns the name of the fields of a variant among those of all.
pub(crate) fn fields_name(variant: &Ident) -> Ident {
    format_ident!("__of_{variant}", span = proc_macro2::Span::call_site())
}

/// Returns the name of the method that makes a value of a variant.
pub(crate) fn select_name(variant: &Ident) -> Ident {
    format_ident!("__become_{variant}", span = proc_macro2::Span::call_site())
}

fn tests(data: &DataEnum) -> (Vec<Ident>, Vec<&Ident>) {
    data.variants.iter().map(|variant| (test_name(&variant.ident), &variant.ident)).unzip()
}

pub(crate) fn kernel_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    if let Some(param) = input.generics.params.first() {
        return Err(Error::new(param.span(), "an enum of device code has no generic parameters"));
    }
    if data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
        without_fields(input, data)
    } else {
        with_fields(input, data)
    }
}

/// Returns an enum with fields. Its layout is that of Rust's reference for an enum with an integer
/// representation: a union of structs, each of which starts with the integer.
fn with_fields(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let integer = integer_of(input)?;
    if let Some(variant) = data.variants.iter().find(|variant| variant.discriminant.is_some()) {
        return Err(Error::new(
            variant.span(),
            "an enum of device code with fields numbers its variants itself",
        ));
    }
    let (name, vis, handle) = (&input.ident, &input.vis, handle_name(&input.ident));
    let quiet = crate::function::quiet();
    let number = quote!(<#integer as ::gridloom::__kernel::KernelType>);
    let of = quote!(::gridloom::__kernel::of_handle);
    let variants: Vec<&Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
    let parts: Vec<Ident> = variants.iter().map(|variant| format_ident!("__{name}{variant}Twin")).collect();
    let layouts: Vec<Ident> =
        variants.iter().map(|variant| format_ident!("__{name}{variant}Layout")).collect();
    let numbers: Vec<Literal> = (0..variants.len()).map(Literal::usize_unsuffixed).collect();
    let (tests, fields, selects): (Vec<Ident>, Vec<Ident>, Vec<Ident>) = (
        variants.iter().map(|variant| test_name(variant)).collect(),
        variants.iter().map(|variant| fields_name(variant)).collect(),
        variants.iter().map(|variant| select_name(variant)).collect(),
    );
    let (mut declarations, mut declared, mut got, mut assigned, mut owned, mut stamped, mut placed) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut lifted, mut written) = (Vec::new(), Vec::new());
    for (index, variant) in data.variants.iter().enumerate() {
        let (part, layout, field, test) = (&parts[index], &layouts[index], &fields[index], &tests[index]);
        let (own, literal) = (&variant.ident, &numbers[index]);
        let members: Vec<Member> = variant.fields.members().collect();
        let types: Vec<_> = variant.fields.iter().map(|field| &field.ty).collect();
        let twins: Vec<TokenStream> =
            types.iter().map(|ty| quote!(<#ty as ::gridloom::__kernel::KernelType>)).collect();
        let body = match &variant.fields {
            Fields::Unnamed(_) => quote!((#(#vis ::gridloom::__kernel::V<#types>),*);),
            _ => quote!({ #(#vis #members: ::gridloom::__kernel::V<#types>,)* }),
        };
        let places: Vec<Ident> = (0..types.len()).map(|place| format_ident!("__{place}")).collect();
        declarations.push(quote! {
            #quiet
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy)]
            #vis struct #part #body
            #quiet
            #[allow(non_camel_case_types)]
            #[repr(C)]
            struct #layout { __number: #integer, #(#places: #types,)* }
        });
        declared.push(quote!(#part { #(#members: #of(#twins::declare()),)* }));
        got.push(quote!(#part { #(#members: #of(#twins::get(&handle.#field.#members.__handle)),)* }));
        owned.push(quote!(#part { #(#members: #of(#twins::own(&value.#field.#members.__handle)),)* }));
        stamped.push(quote!(0 #(+ #twins::stamp(&handle.#field.#members.__handle))*));
        placed.push(quote!(#part {
            #(#members: #of(#twins::place(mem.plus(::core::mem::offset_of!(#layout, #places)))),)*
        }));
        if !types.is_empty() {
            // Fields of different variants may be in the same memory.
            assigned.push(quote! {
                let __c = ::gridloom::__kernel::if_begin(from.#test());
                #(#twins::assign(&to.#field.#members.__handle, &from.#field.#members.__handle);)*
                ::gridloom::__kernel::if_end(__c);
            });
        }
        let pattern = quote!(#name::#own { #(#members: #places,)* });
        lifted.push(quote! {
            #pattern => {
                let mut handle = <Self as ::gridloom::__kernel::KernelType>::declare();
                handle.__number = ::gridloom::__kernel::lit(#literal);
                handle.#field = #part { #(#members: #of(#twins::lift(#places)),)* };
                handle
            }
        });
        written.push(quote! {
            #pattern => {
                #number::bytes(#literal, &mut out[..::core::mem::size_of::<#integer>()]);
                #(
                    let start = ::core::mem::offset_of!(#layout, #places);
                    let size = ::core::mem::size_of::<#types>();
                    #twins::bytes(#places, &mut out[start..start + size]);
                )*
            }
        });
    }
    Ok(quote! {
        #(#declarations)*

        #quiet
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        #vis struct #handle {
            #vis __number: ::gridloom::__kernel::V<#integer>,
            #(#vis #fields: #parts,)*
        }

        #quiet
        impl #handle {
            #(
                #vis fn #tests(&self) -> ::gridloom::__kernel::V<bool> {
                    ::gridloom::__kernel::eq(
                        ::gridloom::__kernel::get(&self.__number),
                        ::gridloom::__kernel::lit(#numbers),
                    )
                }
                #vis fn #selects() -> ::gridloom::__kernel::V<#name> {
                    let mut handle = <#name as ::gridloom::__kernel::KernelType>::declare();
                    handle.__number = ::gridloom::__kernel::lit(#numbers);
                    ::gridloom::__kernel::of_handle(handle)
                }
            )*
        }

        #quiet
        impl ::gridloom::__kernel::Typed for #name {
            type Twin = ::gridloom::__kernel::V<#name>;
        }

        #quiet
        // SAFETY: the offsets of the parts are those of the type.
        #[allow(unsafe_code)]
        unsafe impl ::gridloom::__kernel::KernelType for #name {
            type Handle = #handle;

            fn declare() -> Self::Handle {
                #handle { __number: #of(#number::declare()), #(#fields: #declared,)* }
            }
            fn get(handle: &Self::Handle) -> Self::Handle {
                #handle { __number: #of(#number::get(&handle.__number.__handle)), #(#fields: #got,)* }
            }
            fn assign(to: &Self::Handle, from: &Self::Handle) {
                #number::assign(&to.__number.__handle, &from.__number.__handle);
                #(#assigned)*
            }
            fn own(value: &Self::Handle) -> Self::Handle {
                #handle { __number: #of(#number::own(&value.__number.__handle)), #(#fields: #owned,)* }
            }
            fn stamp(handle: &Self::Handle) -> u64 {
                #number::stamp(&handle.__number.__handle) #(+ (#stamped))*
            }
            fn receiver(handle: &Self::Handle) -> Self::Handle {
                *handle
            }
            fn place(mem: ::gridloom::__kernel::Mem) -> Self::Handle {
                #handle { __number: #of(#number::place(mem)), #(#fields: #placed,)* }
            }
            fn lift(self) -> Self::Handle {
                match self { #(#lifted)* }
            }
            fn bytes(self, out: &mut [u8]) {
                match self { #(#written)* }
            }
        }
    })
}

/// Returns an enum without fields: its integer, under its own type.
fn without_fields(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let integer = integer_of(input)?;
    let (name, vis, handle) = (&input.ident, &input.vis, handle_name(&input.ident));
    let quiet = crate::function::quiet();
    let number = quote!(<#integer as ::gridloom::__kernel::KernelType>);
    let of = quote!(::gridloom::__kernel::of_handle::<#integer>);
    let (tests, variants) = tests(data);
    Ok(quote! {
        #quiet
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        #vis struct #handle {
            #vis __number: ::gridloom::__kernel::V<#integer>,
        }

        #quiet
        impl #handle {
            #(
                #vis fn #tests(&self) -> ::gridloom::__kernel::V<bool> {
                    ::gridloom::__kernel::eq(
                        ::gridloom::__kernel::get(&self.__number),
                        ::gridloom::__kernel::lit(#name::#variants as #integer),
                    )
                }
            )*
        }

        #quiet
        impl ::gridloom::__kernel::Typed for #name {
            type Twin = ::gridloom::__kernel::V<#name>;
        }

        #quiet
        // SAFETY: the offsets of the parts are those of the type.
        #[allow(unsafe_code)]
        unsafe impl ::gridloom::__kernel::KernelType for #name {
            type Handle = #handle;

            fn declare() -> Self::Handle {
                #handle { __number: #of(#number::declare()) }
            }
            fn get(handle: &Self::Handle) -> Self::Handle {
                #handle { __number: #of(#number::get(&handle.__number.__handle)) }
            }
            fn assign(to: &Self::Handle, from: &Self::Handle) {
                #number::assign(&to.__number.__handle, &from.__number.__handle);
            }
            fn own(value: &Self::Handle) -> Self::Handle {
                #handle { __number: #of(#number::own(&value.__number.__handle)) }
            }
            fn stamp(handle: &Self::Handle) -> u64 {
                #number::stamp(&handle.__number.__handle)
            }
            fn receiver(handle: &Self::Handle) -> Self::Handle {
                *handle
            }
            fn place(mem: ::gridloom::__kernel::Mem) -> Self::Handle {
                #handle { __number: #of(#number::place(mem)) }
            }
            fn lift(self) -> Self::Handle {
                #handle { __number: #of(#number::lift(self as #integer)) }
            }
            fn bytes(self, out: &mut [u8]) {
                #number::bytes(self as #integer, out);
            }
        }

        #quiet
        impl ::gridloom::__kernel::Cast for #name {
            type Number = #integer;

            fn number(value: ::gridloom::__kernel::V<Self>) -> ::gridloom::__kernel::V<#integer> {
                value.__number
            }
        }

        #quiet
        impl ::gridloom::__kernel::OpOrd for #name {
            fn compare(
                op: &'static str,
                a: ::gridloom::__kernel::V<Self>,
                b: ::gridloom::__kernel::V<Self>,
            ) -> ::gridloom::__kernel::V<bool> {
                <#integer as ::gridloom::__kernel::OpOrd>::compare(op, a.__number, b.__number)
            }
        }
    })
}
