//! The arguments of `#[kernel]`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Token, parenthesized};

/// What a kernel asks for in its attribute.
#[derive(Default)]
pub(crate) struct Options {
    /// The threads of a block along each axis: one to three numbers.
    block: Option<Vec<Expr>>,
    /// Whether products that are added become fused operations.
    is_fused: bool,
}

const USE: &str = "`#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            let name: Ident = input.parse().map_err(|error| Error::new(error.span(), USE))?;
            match name.to_string().as_str() {
                "block" if options.block.is_none() => {
                    let inner;
                    parenthesized!(inner in input);
                    let sizes = Punctuated::<Expr, Token![,]>::parse_terminated(&inner)?;
                    if !(1..=3).contains(&sizes.len()) {
                        return Err(Error::new(name.span(), USE));
                    }
                    options.block = Some(sizes.into_iter().collect());
                }
                "fmad" if !options.is_fused => options.is_fused = true,
                "block" | "fmad" => {
                    return Err(Error::new(name.span(), format!("`{name}` is given twice")));
                }
                _ => return Err(Error::new(name.span(), USE)),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    /// What the recording starts with.
    pub(crate) fn recorded(&self) -> TokenStream {
        let mut all = quote!();
        if let Some(sizes) = &self.block {
            let ones = std::iter::repeat_n(quote!(1), 3 - sizes.len());
            all.extend(quote!(::gridloom::__kernel::require_block([#((#sizes) as u64,)* #(#ones),*]);));
        }
        if self.is_fused {
            all.extend(quote!(::gridloom::__kernel::fuse_products();));
        }
        all
    }
}
