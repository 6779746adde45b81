//! The attribute macros of kernels written in Rust: `kernel`, `device`, `program`, and the derive
//! macro `KernelType`. Programs use them through the `gridloom` crate, which documents them.

mod derive;
mod derive_enum;
mod function;
mod methods;
mod names;
mod options;
mod pattern;
mod program;
#[cfg(test)]
mod refusals;
mod tokens;
mod twin;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Makes a function a kernel. See `gridloom::kernel`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as syn::ItemFn);
    function::kernel(attribute.into(), function).into()
}

/// Makes a function, or the functions of an `impl`, callable from kernels. See `gridloom::device`.
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::Item);
    methods::device(attribute.into(), item).into()
}

/// Makes a function of device arrays a callable graph. See `gridloom::program`.
#[proc_macro_attribute]
pub fn program(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as syn::ItemFn);
    program::program(attribute.into(), function).into()
}

/// Makes a struct of plain fields a type of device code. See `gridloom::KernelType`.
#[proc_macro_derive(KernelType)]
pub fn kernel_type(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as syn::DeriveInput);
    derive::kernel_type(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
