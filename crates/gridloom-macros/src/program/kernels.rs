//! The kernels of a program: sequential code, and parallel loops.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Pat, Stmt};

use super::analysis::{may_write, names_of, writes};
use super::{Kind, Program, Sequential, Variable, is_bool, kernel_name};
use crate::tokens::{contains, here};

impl Program {
    /// Translates code that one thread runs to a kernel and its launch.
    pub(super) fn sequential(&mut self, code: Sequential) -> TokenStream {
        let Sequential { stmts, declared } = code;
        let Some(first) = stmts.first() else { return quote!() };
        let span = first.span();
        let tokens = quote!(#(#stmts)*);
        self.check_leaves(&tokens);
        let (lets, all) = self.used_lets(&tokens);
        let (mut params, mut given, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // A name that this code gives another meaning has its old one in that `let` alone.
        let hidden: Vec<String> = stmts
            .iter()
            .flat_map(|stmt| match stmt {
                Stmt::Local(local) => names_of(&local.pat),
                _ => Vec::new(),
            })
            .collect();
        for variable in self.used(&all) {
            let Variable { name, ty, kind } = variable;
            let text = name.to_string();
            let is_written = match kind {
                Kind::Local { .. } if hidden.contains(&text) => false,
                Kind::Cell { .. } | Kind::Local { .. } => may_write(tokens.clone(), &text),
                _ => writes(tokens.clone(), &text),
            };
            let memory = match kind {
                Kind::Local { cell } => cell,
                _ => name,
            };
            given.push(quote!(&#memory));
            match kind {
                Kind::Slice { element } if is_written => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    before.push(quote! {
                        let __len = #name.len();
                        let Some(#name) = #name.chunk(__len) else { return };
                    });
                }
                Kind::Slice { element } => params.push(quote!(#name: &[#element])),
                Kind::Cell { element } if is_written => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    before.push(quote!(let Some((_, #name)) = #name.mine() else { return };));
                }
                Kind::Cell { element } => {
                    params.push(quote!(#name: &[#element]));
                    before.push(quote!(let #name = &#name[0];));
                }
                Kind::Local { cell } => {
                    let stored = stored(ty);
                    if is_written {
                        params.push(quote!(#cell: ::gridloom::Out<#stored>));
                        before.push(quote!(let Some((_, #cell)) = #cell.mine() else { return };));
                        after.push(store(name, ty, cell));
                    } else {
                        params.push(quote!(#cell: &[#stored]));
                        before.push(quote!(let #cell = &#cell[0];));
                    }
                    let value = load(ty, cell);
                    before.push(quote!(let mut #name: #ty = #value;));
                }
                Kind::Scalar | Kind::Atomics { .. } => params.push(quote!(#name: #ty)),
            }
        }
        for Variable { name, ty, kind } in &declared {
            let Kind::Local { cell } = kind else { continue };
            let stored = stored(ty);
            given.push(quote!(&#cell));
            params.push(quote!(#cell: ::gridloom::Out<#stored>));
            before.push(quote!(let Some((_, #cell)) = #cell.mine() else { return };));
            after.push(store(name, ty, cell));
        }
        let kernel = kernel_name(self.kernels.len());
        self.kernels.push(quote_spanned! {here(span)=>
            #[::gridloom::kernel]
            fn #kernel(#(#params),*) { #(#before)* #lets #tokens #(#after)* }
        });
        self.variables.extend(declared);
        quote!(__steps.launch(&#kernel, ::gridloom::LaunchConfig::one(), (#(#given,)*))?;)
    }

    pub(super) fn parallel(
        &mut self,
        around: &syn::ExprForLoop,
        bounds: &[(TokenStream, TokenStream)],
    ) -> TokenStream {
        let span = around.span();
        let names: Vec<&Ident> = match &*around.pat {
            Pat::Ident(name) => vec![&name.ident],
            Pat::Tuple(tuple) => tuple
                .elems
                .iter()
                .filter_map(|pat| match pat {
                    Pat::Ident(name) => Some(&name.ident),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        if names.len() != bounds.len() || !(1..=3).contains(&names.len()) {
            return self.refuse(
                around.pat.span(),
                "a parallel loop names one index for each of its ranges: `for (x, y) in par((0..width, 0..height))`",
            );
        }
        if contains(&around.body, "return") {
            return self
                .refuse(span, "a parallel loop cannot be left; use `continue` to go on with the next index");
        }
        if contains(&around.body, "par") {
            return self.refuse(span, "parallel loops cannot be inside of each other; use `par((0..n, 0..m))`, or a plain inner loop");
        }
        if names.len() > 1 && bounds.iter().any(|(start, _)| start.to_string() != "0") {
            return self.refuse(
                around.expr.span(),
                "ranges of a plane or volume start at 0; test the indices inside",
            );
        }
        let body = &around.body;
        let ends: Vec<&TokenStream> = bounds.iter().map(|(_, end)| end).collect();
        let start = &bounds[0].0;
        let tokens = quote!(#body #(#ends)* #start);
        let (lets, all) = self.used_lets(&tokens);
        let (mut params, mut given, mut before, mut checks, mut owned, mut shape) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), None);
        let mut wrong = Vec::new();
        for Variable { name, ty, kind } in self.used(&all) {
            let text = name.to_string();
            let is_written = writes(tokens.clone(), &text);
            let memory = match kind {
                Kind::Local { cell } => cell,
                _ => name,
            };
            given.push(quote!(&#memory));
            if is_written && matches!(kind, Kind::Cell { .. } | Kind::Local { .. }) {
                wrong.push((name.span(), format!("all threads would write `{name}`: use an element for each index, or a parameter `&[Atomic<T>]`")));
            }
            match kind {
                Kind::Slice { element } if is_written => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    let message = format!("a parallel loop goes past the end of `{name}`");
                    checks.push(quote!(assert!(__end <= #name.len(), #message);));
                    owned.push(quote!(let Some(mut #name) = #name.own() else { return };));
                    shape.get_or_insert_with(|| quote!(::gridloom::callable::per_element(&#name)));
                }
                Kind::Slice { element } => params.push(quote!(#name: &[#element])),
                Kind::Cell { element } => {
                    params.push(quote!(#name: &[#element]));
                    before.push(quote!(let #name = &#name[0];));
                }
                Kind::Local { cell } => {
                    let stored = stored(ty);
                    params.push(quote!(#cell: &[#stored]));
                    before.push(quote!(let #cell = &#cell[0];));
                    let value = load(ty, cell);
                    before.push(quote!(let #name: #ty = #value;));
                }
                Kind::Scalar | Kind::Atomics { .. } => params.push(quote!(#name: #ty)),
            }
        }
        if !wrong.is_empty() {
            for (span, message) in wrong {
                self.refuse(span, &message);
            }
            return quote!();
        }
        // Without elements of its own, a thread takes every so many of the passes: the launch may
        // have any shape.
        let owns = shape.is_some();
        let shape = shape
            .or_else(|| self.length_of(ends[0]).filter(|_| ends.len() == 1))
            .unwrap_or_else(|| quote!(::gridloom::LaunchConfig::new(128, 256)));
        let (indices, end) = match (&names[..], &ends[..]) {
            ([i], [end]) => (quote!(let #i = __own;), quote!(#end)),
            ([x, y], [width, height]) => (
                quote!(let (#x, #y) = (__own % __width, __own / __width);),
                quote!({ let (__width, __height) = (#width, #height); __width * __height }),
            ),
            ([x, y, z], [width, height, depth]) => (
                quote!(let (#x, #y, #z) = (__own % __width, __own / __width % __height, __own / __width / __height);),
                quote!({ let (__width, __height, __depth) = (#width, #height, #depth); __width * __height * __depth }),
            ),
            _ => return quote!(),
        };
        let sizes = match &ends[..] {
            [width, _] => quote!(let __width = #width;),
            [width, height, _] => quote!(let (__width, __height) = (#width, #height);),
            _ => quote!(),
        };
        let kernel = kernel_name(self.kernels.len());
        if !owns {
            self.kernels.push(quote_spanned! {here(span)=>
                #[::gridloom::kernel]
                fn #kernel(#(#params),*) {
                    #(#before)*
                    #lets
                    let __end = #end;
                    #sizes
                    let mut __next = (#start) + ::gridloom::thread::index();
                    while __next < __end {
                        let __own = __next;
                        #indices
                        '__par: for __once in 0..1 #body
                        __next += ::gridloom::grid::threads();
                    }
                }
            });
            return quote!(__steps.launch(&#kernel, #shape, (#(#given,)*))?;);
        }
        self.kernels.push(quote_spanned! {here(span)=>
            #[::gridloom::kernel]
            fn #kernel(#(#params),*) {
                #(#before)*
                #lets
                let __own = ::gridloom::thread::index();
                let __end = #end;
                #sizes
                #(#checks)*
                #(#owned)*
                if __own >= (#start) && __own < __end {
                    #indices
                    '__par: for __once in 0..1 #body
                }
            }
        });
        quote!(__steps.launch(&#kernel, #shape, (#(#given,)*))?;)
    }

    /// Returns a shape for a loop whose end is computed from the length of a parameter.
    fn length_of(&self, end: &TokenStream) -> Option<TokenStream> {
        let (_, all) = self.used_lets(end);
        let variable = self.variables.iter().find(|variable| {
            let has_length = matches!(variable.kind, Kind::Slice { .. } | Kind::Atomics { .. });
            has_length && all.to_string().contains(&format!("{} . len", variable.name))
        })?;
        let name = &variable.name;
        Some(quote!(::gridloom::callable::per_element(&#name)))
    }
}

/// Returns the type with which a variable is kept in its cell.
fn stored(ty: &syn::Type) -> TokenStream {
    if is_bool(ty) { quote!(i32) } else { ty.to_token_stream() }
}

/// Returns the value of a variable in its cell.
fn load(ty: &syn::Type, cell: &Ident) -> TokenStream {
    if is_bool(ty) { quote!((*#cell != 0)) } else { quote!(*#cell) }
}

/// Gives a cell the value of its variable.
fn store(name: &Ident, ty: &syn::Type, cell: &Ident) -> TokenStream {
    if is_bool(ty) { quote!(*#cell = #name as i32;) } else { quote!(*#cell = #name;) }
}
