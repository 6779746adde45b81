//! Queries about code that need only its tokens.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Type;

/// Returns the place of a span, with the names of the macro's call: all generated names mean the
/// same, wherever the code around them comes from.
pub(crate) fn here(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// Returns whether a word is among the tokens.
pub(crate) fn contains(tokens: impl ToTokens, word: &str) -> bool {
    find(tokens, word).is_some()
}

/// Returns the first of these words among the tokens.
pub(crate) fn find(tokens: impl ToTokens, word: &str) -> Option<Ident> {
    fn search(tokens: TokenStream, word: &str) -> Option<Ident> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(ident) if ident == word => Some(ident),
            TokenTree::Group(group) => search(group.stream(), word),
            _ => None,
        })
    }
    search(tokens.into_token_stream(), word)
}

/// Returns where an attribute `cfg` or `cfg_attr` is among the tokens: the compiler removes what is
/// behind it after the macro has read it.
pub(crate) fn conditional(tokens: TokenStream) -> Option<Span> {
    let mut is_attribute = false;
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            let mut inner = group.stream().into_iter();
            if is_attribute
                && let Some(TokenTree::Ident(name)) = inner.next()
                && (name == "cfg" || name == "cfg_attr")
            {
                return Some(name.span());
            }
            if let Some(found) = conditional(group.stream()) {
                return Some(found);
            }
        }
        is_attribute = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
    }
    None
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
