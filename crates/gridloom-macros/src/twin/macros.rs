//! Translation of the macros that device code may use.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Lit};

use super::Translator;
use super::questions::{line, text};
use crate::names;
use crate::tokens::here;

impl Translator {
    pub(super) fn macro_(&mut self, call: &syn::ExprMacro, wants_value: bool) -> TokenStream {
        let span = call.span();
        let line = line(span);
        let name = names::tail(&call.mac.path, 1);
        let args = || {
            call.mac.parse_body_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated)
        };
        let message_of = |args: &[&Expr], otherwise: String| match args.first() {
            Some(Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. })) => text.value(),
            Some(_) | None => otherwise,
        };
        match name.as_str() {
            "panic" | "unreachable" | "todo" | "unimplemented" => {
                let args = match args() {
                    Ok(args) => args,
                    Err(error) => return self.refuse(span, error),
                };
                let otherwise = match name.as_str() {
                    "panic" => "explicit panic",
                    "unreachable" => "internal error: entered unreachable code",
                    _ => "not implemented",
                };
                let message = message_of(&args.iter().collect::<Vec<_>>(), otherwise.into());
                let never = if wants_value { quote!(__k::never()) } else { quote!() };
                quote_spanned!(here(span)=> { __k::fail(#message, #line); #never })
            }
            "assert" | "debug_assert" => {
                let args = match args() {
                    Ok(args) => args,
                    Err(error) => return self.refuse(span, error),
                };
                let Some(cond) = args.first() else {
                    return self.refuse(span, "an assertion needs a condition");
                };
                let rest: Vec<&Expr> = args.iter().skip(1).collect();
                let message = message_of(&rest, format!("assertion failed: {}", text(cond)));
                let cond = self.value(cond);
                let check =
                    quote_spanned!(here(span)=> { let __v = #cond; __k::require(__v, #message, #line); });
                if name == "assert" { check } else { quote!(if ::core::cfg!(debug_assertions) { #check }) }
            }
            "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" => {
                let args = match args() {
                    Ok(args) => args,
                    Err(error) => return self.refuse(span, error),
                };
                let (Some(left), Some(right)) = (args.first(), args.iter().nth(1)) else {
                    return self.refuse(span, "this assertion compares two values");
                };
                let (function, sign) = if name.ends_with("eq") { ("eq", "==") } else { ("ne", "!=") };
                let rest: Vec<&Expr> = args.iter().skip(2).collect();
                let message =
                    message_of(&rest, format!("assertion failed: {} {sign} {}", text(left), text(right)));
                let function = Ident::new(function, span);
                let (left, right) = (self.value(left), self.value(right));
                let check = quote_spanned!(here(span)=> {
                    let __v = __k::#function(#left, #right);
                    __k::require(__v, #message, #line);
                });
                if name.starts_with("assert") {
                    check
                } else {
                    quote!(if ::core::cfg!(debug_assertions) { #check })
                }
            }
            "matches" => self.matches(call),
            "cfg" => {
                let tokens = &call.mac.tokens;
                quote_spanned!(here(span)=> __k::lit(::core::cfg!(#tokens)))
            }
            "println" | "print" => self.print(call, name == "println"),
            other => {
                let reason = match other {
                    "vec" => "device code has no heap; use an array".to_owned(),
                    "format" | "write" | "writeln" => "device code has no strings".to_owned(),
                    "eprintln" | "eprint" | "dbg" => {
                        "device code has no output of this kind; use `println!`".to_owned()
                    }
                    "asm" => "device code has no inline assembly".to_owned(),
                    other => format!("device code does not know the macro `{other}!`"),
                };
                self.refuse(call.mac.path.span(), reason)
            }
        }
    }

    /// Translates `println!` and `print!` to the text between the values, and the values.
    pub(super) fn print(&mut self, call: &syn::ExprMacro, ends_line: bool) -> TokenStream {
        let args =
            call.mac.parse_body_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated);
        let args = match args {
            Ok(args) => args,
            Err(error) => return self.refuse(call.span(), error),
        };
        let format = match args.first() {
            None => String::new(),
            Some(Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. })) => text.value(),
            Some(other) => return self.refuse(other.span(), "the text to print is a literal"),
        };
        let (mut texts, mut values) = (vec![String::new()], Vec::new());
        let mut given = args.iter().skip(1);
        let mut letters = format.chars().peekable();
        while let Some(letter) = letters.next() {
            let text = texts.last_mut().expect("there is a text");
            match letter {
                '{' | '}' if letters.peek() == Some(&letter) => {
                    letters.next();
                    text.push(letter);
                }
                '{' => {
                    let inside: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                    let value = match inside.as_str() {
                        "" | ":?" => match given.next() {
                            Some(value) => self.value(value),
                            None => return self.refuse(call.span(), "there is no value for a `{}`"),
                        },
                        name => match syn::parse_str::<Ident>(name) {
                            Ok(mut name) => {
                                name.set_span(here(call.span()));
                                self.value(&syn::parse_quote!(#name))
                            }
                            Err(_) => {
                                let message =
                                    "device code prints values as `{}` or `{name}`, without a format";
                                return self.refuse(call.span(), message);
                            }
                        },
                    };
                    values.push(value);
                    texts.push(String::new());
                }
                other => text.push(other),
            }
        }
        if let Some(unused) = given.next() {
            return self.refuse(unused.span(), "there is no `{}` for this value");
        }
        if ends_line {
            texts.last_mut().expect("there is a text").push('\n');
        }
        quote_spanned!(here(call.span())=> __k::print(&[#(#texts),*], vec![#(__k::printed(#values)),*]);)
    }

    pub(super) fn matches(&mut self, call: &syn::ExprMacro) -> TokenStream {
        let parsed = call.mac.parse_body_with(|input: syn::parse::ParseStream| {
            let value: Expr = input.parse()?;
            input.parse::<syn::Token![,]>()?;
            let pat = syn::Pat::parse_multi_with_leading_vert(input)?;
            let guard = if input.peek(syn::Token![if]) {
                input.parse::<syn::Token![if]>()?;
                Some(input.parse::<Expr>()?)
            } else {
                None
            };
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((value, pat, guard))
        });
        let (value, pat, guard) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.refuse(call.span(), error),
        };
        let (subject, label) = (self.fresh("subject"), self.fresh("matches"));
        let value = self.place(&value);
        let (tests, guard) = self.scoped(|this| {
            let tests = this.bind(&pat, &quote!(#subject), Some(&label));
            (tests, guard.map(|guard| this.value(&guard)))
        });
        let guard = guard.map(|guard| quote!(__k::leave_unless(#label, #guard);));
        quote_spanned!(here(call.span())=> {
            let __r: __k::V<bool> = __k::var(__k::lit(false));
            let #subject = __k::get(&#value);
            let #label = __k::block_begin();
            {
                #tests
                #guard
                __k::assign(&__r, __k::lit(true));
            }
            __k::block_end(#label);
            __r
        })
    }
}
