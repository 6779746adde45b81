//! Queries about code that need only its tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Type;

/// Returns the place of a span, with the names of the macro's call: all generated names mean the
/// same, wherever the code around them comes from.
pub(crate) fn here(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// Returns whether a word is among the tokens.
pub(crate) fn contains(tokens: impl ToTokens, word: &str) -> bool {
    fn search(tokens: TokenStream, word: &str) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == word,
            TokenTree::Group(group) => search(group.stream(), word),
            _ => false,
        })
    }
    search(tokens.into_token_stream(), word)
}

/// Returns whether a `break` among the tokens has a value.
pub(crate) fn breaks_with_value(tokens: impl ToTokens) -> bool {
    fn search(tokens: TokenStream) -> bool {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) if search(group.stream()) => return true,
                TokenTree::Ident(ident) if ident == "break" => {
                    // A label is a quote and a name.
                    if matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '\'') {
                        tokens.next();
                        tokens.next();
                    }
                    match tokens.peek() {
                        None => {}
                        Some(TokenTree::Punct(punct)) if matches!(punct.as_char(), ';' | ',') => {}
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {}
                        Some(_) => return true,
                    }
                }
                _ => {}
            }
        }
        false
    }
    search(tokens.into_token_stream())
}

/// Returns the type with `Self` replaced by what it means.
pub(crate) fn named_self(ty: &Type, self_type: Option<&Type>) -> Type {
    fn replace(tokens: TokenStream, own: &Type) -> TokenStream {
        let mut tokens = tokens.into_iter().peekable();
        let mut out = TokenStream::new();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if ident == "Self" => {
                    let has_more =
                        matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
                    out.extend(if has_more { quote!(<#own>) } else { quote!(#own) });
                }
                TokenTree::Group(group) => {
                    let mut new = Group::new(group.delimiter(), replace(group.stream(), own));
                    new.set_span(group.span());
                    out.extend([TokenTree::Group(new)]);
                }
                other => out.extend([other]),
            }
        }
        out
    }
    match self_type {
        Some(own) if contains(ty, "Self") => {
            syn::parse2(replace(ty.to_token_stream(), own)).unwrap_or_else(|_| ty.clone())
        }
        _ => ty.clone(),
    }
}
