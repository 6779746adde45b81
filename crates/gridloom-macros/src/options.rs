//! The arguments of `#[kernel]`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, Token, parenthesized};

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
                    if !input.peek(syn::token::Paren) {
                        return Err(Error::new(name.span(), USE));
                    }
                    let inner;
                    parenthesized!(inner in input);
                    let sizes = Punctuated::<Expr, Token![,]>::parse_terminated(&inner)?;
                    if !(1..=3).contains(&sizes.len()) {
                        return Err(Error::new(name.span(), USE));
                    }
                    check_sizes(&sizes)?;
                    options.block = Some(sizes.into_iter().collect());
                }
                "fmad" if !options.is_fused => options.is_fused = true,
                "block" | "fmad" => {
                    return Err(Error::new(name.span(), format!("`{name}` is given twice")));
                }
                _ => return Err(Error::new(name.span(), USE)),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>().map_err(|error| Error::new(error.span(), USE))?;
            }
        }
        Ok(options)
    }
}

/// Refuses sizes that no block has, as far as they are written as numbers.
fn check_sizes(sizes: &Punctuated<Expr, Token![,]>) -> syn::Result<()> {
    let mut threads: u64 = 1;
    for size in sizes {
        let Expr::Lit(literal) = size else { continue };
        let number = match &literal.lit {
            Lit::Int(number) => number.base10_parse::<u64>()?,
            _ => return Err(Error::new(size.span(), USE)),
        };
        threads = threads.saturating_mul(number);
        if number == 0 || threads > 1024 {
            return Err(Error::new(size.span(), "a block has from 1 to 1024 threads"));
        }
    }
    Ok(())
}

impl Options {
    /// Returns the statements at the start of the recording, which set the options.
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
