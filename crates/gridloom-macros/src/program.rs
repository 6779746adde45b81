//! `#[program]`: a function of device arrays, whose parallel loops become kernels and whose other
//! loops become loops of a graph.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Error, Expr, FnArg, ItemFn, Lit, Pat, ReturnType, Stmt, Type, UnOp};

use crate::function::companion;
use crate::tokens::{contains, here};

/// What a parameter of a program is.
#[derive(Clone)]
enum Kind {
    /// A plain value.
    Scalar,
    /// Memory of many elements.
    Slice { element: Type },
    /// Memory of atomic numbers.
    Atomics { element: Type },
    /// One value in memory.
    Cell { element: Type },
}

struct Param {
    name: Ident,
    ty: Type,
    kind: Kind,
}

/// A `let` between loops: computed again in each kernel that uses it.
struct Binding {
    names: Vec<String>,
    tokens: TokenStream,
}

struct Program {
    params: Vec<Param>,
    lets: Vec<Binding>,
    /// Names that sequential code on the device has given values to.
    lost: Vec<String>,
    kernels: Vec<TokenStream>,
    errors: Vec<Error>,
}

/// Expands a program.
pub(crate) fn program(attribute: TokenStream, function: ItemFn) -> TokenStream {
    let mut this = Program {
        params: Vec::new(),
        lets: Vec::new(),
        lost: Vec::new(),
        kernels: Vec::new(),
        errors: Vec::new(),
    };
    if !attribute.is_empty() {
        this.refuse(attribute.span(), "`#[program]` takes no arguments");
    }
    this.signature(&function);
    let steps = this.steps(&function.block.stmts);
    let name = &function.sig.ident;
    let names: Vec<&Ident> = this.params.iter().map(|param| &param.name).collect();
    let specs: Vec<TokenStream> = this.params.iter().map(Param::spec).collect();
    let kernels = &this.kernels;
    let handles: Vec<Ident> = (0..kernels.len()).map(kernel_name).collect();
    let errors: Vec<TokenStream> = this.errors.iter().map(Error::to_compile_error).collect();
    let contents = if errors.is_empty() {
        quote! {
            /// Makes the program a callable: its graph is built at the first call and replayed at
            /// every later one.
            pub fn load(device: &::gridloom::Device) -> ::gridloom::Result<::gridloom::Callable<(#(#specs,)*)>> {
                #(#kernels)*
                #(let #handles = #handles::load(device)?;)*
                ::core::result::Result::Ok(::gridloom::Callable::new(device, move |__steps, (#(#names,)*): (#(#specs,)*)| {
                    #steps
                    ::gridloom::Result::Ok(())
                }))
            }
        }
    } else {
        quote!()
    };
    let companion = companion(&function.vis, name, contents);
    quote! {
        #[allow(dead_code)]
        #function
        #companion
        #(#errors)*
    }
}

fn kernel_name(index: usize) -> Ident {
    format_ident!("__kernel{index}", span = Span::call_site())
}

impl Param {
    /// Returns the type of the callable's parameter.
    fn spec(&self) -> TokenStream {
        match &self.kind {
            Kind::Scalar => {
                let ty = &self.ty;
                quote!(::gridloom::callable::Scalar<#ty>)
            }
            Kind::Slice { element } | Kind::Atomics { element } => {
                quote!(::gridloom::callable::Param<[#element]>)
            }
            Kind::Cell { element } => quote!(::gridloom::callable::Param<#element>),
        }
    }
}

fn kind_of(ty: &Type) -> Kind {
    let Type::Reference(reference) = ty else { return Kind::Scalar };
    match &*reference.elem {
        Type::Slice(slice) => {
            if let Type::Path(path) = &*slice.elem
                && let Some(last) = path.path.segments.last()
                && last.ident == "Atomic"
                && let syn::PathArguments::AngleBracketed(arguments) = &last.arguments
                && let Some(syn::GenericArgument::Type(element)) = arguments.args.first()
            {
                return Kind::Atomics { element: element.clone() };
            }
            Kind::Slice { element: (*slice.elem).clone() }
        }
        element => Kind::Cell { element: element.clone() },
    }
}

/// Returns whether tokens assign to what starts with a name, or borrow it to change it.
fn writes(tokens: TokenStream, name: &str) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_punct = |index: usize, sign: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if writes(group.stream(), name) => return true,
            TokenTree::Ident(ident) if ident == name => {
                if index >= 1 && matches!(&tokens[index - 1], TokenTree::Ident(before) if before == "mut") {
                    return true;
                }
                let is_mut_deref = index >= 2
                    && is_punct(index - 1, '*')
                    && matches!(&tokens[index - 2], TokenTree::Ident(before) if before == "mut");
                if is_mut_deref {
                    return true;
                }
                // Indices and fields belong to the place.
                let mut next = index + 1;
                loop {
                    match tokens.get(next) {
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => next += 1,
                        Some(TokenTree::Punct(punct))
                            if punct.as_char() == '.'
                                && !matches!(tokens.get(next + 2), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis) =>
                        {
                            next += 2;
                        }
                        _ => break,
                    }
                }
                if is_punct(next, '=') && !is_punct(next + 1, '=') && !is_punct(next + 1, '>') {
                    return true;
                }
                let is_operator =
                    ['+', '-', '*', '/', '%', '&', '|', '^'].iter().any(|sign| is_punct(next, *sign));
                if is_operator && is_punct(next + 1, '=') && !is_punct(next + 2, '=') {
                    return true;
                }
                for sign in ['<', '>'] {
                    if is_punct(next, sign) && is_punct(next + 1, sign) && is_punct(next + 2, '=') {
                        return true;
                    }
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the bounds of a parallel loop, along each axis.
fn bounds(expr: &Expr) -> Option<Vec<(TokenStream, TokenStream)>> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Path(path) = &*call.func else { return None };
    if path.path.segments.last().is_none_or(|last| last.ident != "par") || call.args.len() != 1 {
        return None;
    }
    let range = |expr: &Expr| match expr {
        Expr::Range(range) => match (&range.start, &range.end, &range.limits) {
            (Some(start), Some(end), syn::RangeLimits::HalfOpen(_)) => {
                Some((start.to_token_stream(), end.to_token_stream()))
            }
            _ => None,
        },
        _ => None,
    };
    match &call.args[0] {
        Expr::Tuple(tuple) => tuple.elems.iter().map(range).collect(),
        Expr::Paren(paren) => range(&paren.expr).map(|range| vec![range]),
        one => range(one).map(|range| vec![range]),
    }
}

impl Program {
    fn refuse(&mut self, span: Span, message: &str) -> TokenStream {
        self.errors.push(Error::new(span, message));
        quote!()
    }

    fn signature(&mut self, function: &ItemFn) {
        let signature = &function.sig;
        if !signature.generics.params.is_empty() {
            self.refuse(signature.generics.span(), "a program has no generic parameters yet; name the types");
        }
        if let ReturnType::Type(_, ty) = &signature.output {
            self.refuse(ty.span(), "a program returns nothing; write its results to a `&mut` parameter");
        }
        if let Some(token) = &signature.unsafety {
            self.refuse(token.span(), "a program is safe; write `unsafe` code as kernels, and launch them");
        }
        if contains(&function.block, "unsafe") {
            self.refuse(
                signature.ident.span(),
                "a program is safe; write `unsafe` code as kernels, and launch them",
            );
        }
        for input in &signature.inputs {
            match input {
                FnArg::Typed(input) => match &*input.pat {
                    Pat::Ident(pat) if pat.mutability.is_none() => {
                        let kind = kind_of(&input.ty);
                        self.params.push(Param { name: pat.ident.clone(), ty: (*input.ty).clone(), kind });
                    }
                    pat => {
                        self.refuse(pat.span(), "a parameter of a program is a name");
                    }
                },
                FnArg::Receiver(receiver) => {
                    self.refuse(receiver.span(), "a program is a function, not a method");
                }
            }
        }
    }

    /// Returns the steps of a list of statements.
    fn steps(&mut self, stmts: &[Stmt]) -> TokenStream {
        let lets = self.lets.len();
        let (mut out, mut pending) = (TokenStream::new(), Vec::new());
        for stmt in stmts {
            if !contains(stmt, "par") {
                match stmt {
                    Stmt::Local(local) if pending.is_empty() && self.is_pure(local) => self.bind(local),
                    other => pending.push(other.clone()),
                }
                continue;
            }
            out.extend(self.sequential(std::mem::take(&mut pending)));
            let Stmt::Expr(expr, _) = stmt else {
                self.refuse(stmt.span(), "`par` is the range of a `for` loop");
                continue;
            };
            out.extend(self.step(expr));
        }
        out.extend(self.sequential(pending));
        self.lets.truncate(lets);
        out
    }

    /// Returns whether a `let` depends on arguments alone, and not on device memory.
    fn is_pure(&self, local: &syn::Local) -> bool {
        let reads = |param: &Param| match param.kind {
            Kind::Cell { .. } => contains(local, &param.name.to_string()),
            _ => false,
        };
        let text = local.to_token_stream().to_string();
        !contains(&local.pat, "mut")
            && local.init.as_ref().is_some_and(|init| init.diverge.is_none())
            && !self.params.iter().any(reads)
            && !text.contains('[')
            && !self.lost.iter().any(|name| contains(local, name))
    }

    fn bind(&mut self, local: &syn::Local) {
        let mut names = Vec::new();
        collect_names(local.pat.to_token_stream(), &mut names);
        self.lets.push(Binding { names, tokens: local.to_token_stream() });
    }

    /// Returns the `let`s that tokens use, in order, and all tokens together.
    fn used_lets(&self, tokens: &TokenStream) -> (TokenStream, TokenStream) {
        let (mut all, mut used) = (tokens.clone(), Vec::new());
        for binding in self.lets.iter().rev() {
            if binding.names.iter().any(|name| contains(&all, name)) {
                all.extend(binding.tokens.clone());
                used.push(&binding.tokens);
            }
        }
        let used = used.into_iter().rev();
        (quote!(#(#used)*), all)
    }

    fn check_lost(&mut self, tokens: &TokenStream, span: Span) {
        if let Some(name) = self.lost.iter().find(|name| contains(tokens, name)).cloned() {
            let message = format!(
                "`{name}` is computed on the device and ends with the code around it; keep it in a `&mut` parameter"
            );
            self.refuse(span, &message);
        }
    }

    /// Code that one thread runs.
    fn sequential(&mut self, stmts: Vec<Stmt>) -> TokenStream {
        let Some(first) = stmts.first() else { return quote!() };
        let span = first.span();
        let tokens = quote!(#(#stmts)*);
        self.check_lost(&tokens, span);
        for stmt in &stmts {
            if let Stmt::Local(local) = stmt {
                collect_names(local.pat.to_token_stream(), &mut self.lost);
            }
        }
        let (lets, all) = self.used_lets(&tokens);
        let (mut params, mut given, mut prologue) = (Vec::new(), Vec::new(), Vec::new());
        for param in self.params.iter().filter(|param| contains(&all, &param.name.to_string())) {
            let (name, ty) = (&param.name, &param.ty);
            given.push(quote!(&#name));
            match &param.kind {
                Kind::Slice { element } if writes(all.clone(), &name.to_string()) => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    prologue.push(quote! {
                        let __len = #name.len();
                        let Some(#name) = #name.chunk(__len) else { return };
                    });
                }
                Kind::Slice { element } => params.push(quote!(#name: &[#element])),
                Kind::Cell { element } if writes(all.clone(), &name.to_string()) => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    prologue.push(quote!(let Some((_, #name)) = #name.mine() else { return };));
                }
                Kind::Cell { element } => {
                    params.push(quote!(#name: &[#element]));
                    prologue.push(quote!(let #name = &#name[0];));
                }
                Kind::Scalar | Kind::Atomics { .. } => params.push(quote!(#name: #ty)),
            }
        }
        let kernel = kernel_name(self.kernels.len());
        self.kernels.push(quote_spanned! {here(span)=>
            #[::gridloom::kernel]
            fn #kernel(#(#params),*) { #lets #(#prologue)* #tokens }
        });
        quote!(__steps.launch(&#kernel, ::gridloom::LaunchConfig::one(), (#(#given,)*))?;)
    }

    /// Returns a loop or branch with parallel loops inside, or a parallel loop.
    fn step(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::ForLoop(around) => match bounds(&around.expr) {
                Some(bounds) => self.parallel(around, &bounds),
                None => self.repeat(around),
            },
            Expr::While(around) => {
                let value = self.flag(&around.cond, true);
                let body = self.steps(&around.body.stmts);
                quote!(__steps.while_nonzero(&#value, |__steps| { #body ::gridloom::Result::Ok(()) })?;)
            }
            Expr::Loop(around) => self.do_while(around),
            Expr::If(branch) => {
                let value = self.flag(&branch.cond, true);
                let then = self.steps(&branch.then_branch.stmts);
                match &branch.else_branch {
                    None => {
                        quote!(__steps.if_nonzero(&#value, |__steps| { #then ::gridloom::Result::Ok(()) })?;)
                    }
                    Some((_, other)) => {
                        let other = match &**other {
                            Expr::Block(block) => self.steps(&block.block.stmts),
                            nested => self.step(nested),
                        };
                        quote! {
                            __steps.if_else_nonzero(
                                &#value,
                                |__steps| { #then ::gridloom::Result::Ok(()) },
                                |__steps| { #other ::gridloom::Result::Ok(()) },
                            )?;
                        }
                    }
                }
            }
            Expr::Block(block) => self.steps(&block.block.stmts),
            other => self.refuse(
                other.span(),
                "a program has parallel loops at its top level and inside `while`, `loop`, `for` and `if`",
            ),
        }
    }

    /// Returns the integer in memory that decides: `*value != 0`.
    fn flag(&mut self, cond: &Expr, when_nonzero: bool) -> TokenStream {
        if let Expr::Binary(binary) = cond
            && let Expr::Unary(unary) = &*binary.left
            && let UnOp::Deref(_) = unary.op
            && let Expr::Path(path) = &*unary.expr
            && let Some(name) = path.path.get_ident()
            && let Expr::Lit(syn::ExprLit { lit: Lit::Int(zero), .. }) = &*binary.right
            && zero.base10_digits() == "0"
            && matches!((&binary.op, when_nonzero), (BinOp::Ne(_), true) | (BinOp::Eq(_), false))
            && self.params.iter().any(|param| {
                let is_i32 = |ty: &Type| ty.to_token_stream().to_string() == "i32";
                param.name == *name && matches!(&param.kind, Kind::Cell { element } if is_i32(element))
            })
        {
            return quote!(#name);
        }
        let sign = if when_nonzero { "!=" } else { "==" };
        self.refuse(
            cond.span(),
            &format!("the device decides by an integer in its memory: write `*flag {sign} 0` for a parameter `flag: &mut i32`, and set it before"),
        );
        quote!(())
    }

    /// `loop { …; if *flag == 0 { break; } }`.
    fn do_while(&mut self, around: &syn::ExprLoop) -> TokenStream {
        const FORM: &str = "a loop on the device ends with `if *flag == 0 { break; }`";
        let Some((Stmt::Expr(Expr::If(last), _), before)) = around.body.stmts.split_last() else {
            return self.refuse(around.span(), FORM);
        };
        let breaks = last.then_branch.stmts.len() == 1
            && matches!(&last.then_branch.stmts[0], Stmt::Expr(Expr::Break(leave), _) if leave.label.is_none() && leave.expr.is_none());
        if !breaks || last.else_branch.is_some() {
            return self.refuse(last.span(), FORM);
        }
        let value = self.flag(&last.cond, false);
        let body = self.steps(before);
        quote!(__steps.do_while(&#value, |__steps| { #body ::gridloom::Result::Ok(()) })?;)
    }

    /// `for _ in 0..N` around parallel loops.
    fn repeat(&mut self, around: &syn::ExprForLoop) -> TokenStream {
        let (Expr::Range(range), Pat::Wild(_)) = (&*around.expr, &*around.pat) else {
            return self.refuse(
                around.expr.span(),
                "a loop around parallel loops is `for _ in 0..N` with a constant; to count with a variable, count in device memory and use `while`",
            );
        };
        let is_from_zero =
            range.start.as_ref().is_some_and(|start| start.to_token_stream().to_string() == "0");
        let (Some(end), true, syn::RangeLimits::HalfOpen(_)) = (&range.end, is_from_zero, &range.limits)
        else {
            return self.refuse(range.span(), "a loop around parallel loops counts from 0: `for _ in 0..N`");
        };
        if let Some(param) = self.params.iter().find(|param| contains(end, &param.name.to_string())) {
            let message = format!(
                "`{}` is known when the program is called, and the graph is built before: count in device memory and use `while`",
                param.name
            );
            return self.refuse(end.span(), &message);
        }
        let body = self.steps(&around.body.stmts);
        quote!(__steps.repeat((#end) as u64, |__steps| { #body ::gridloom::Result::Ok(()) })?;)
    }

    fn parallel(&mut self, around: &syn::ExprForLoop, bounds: &[(TokenStream, TokenStream)]) -> TokenStream {
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
        self.check_lost(&tokens, span);
        let (lets, all) = self.used_lets(&tokens);
        let (mut params, mut given, mut before, mut owned, mut shape) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), None);
        let mut wrong = Vec::new();
        for param in self.params.iter().filter(|param| contains(&all, &param.name.to_string())) {
            let (name, ty, text) = (&param.name, &param.ty, param.name.to_string());
            given.push(quote!(&#name));
            match &param.kind {
                Kind::Slice { element } if writes(all.clone(), &text) => {
                    params.push(quote!(#name: ::gridloom::Out<#element>));
                    let message = format!("a parallel loop goes past the end of `{name}`");
                    before.push(quote!(assert!(__end <= #name.len(), #message);));
                    owned.push(quote!(let Some(mut #name) = #name.own() else { return };));
                    shape.get_or_insert_with(|| quote!(::gridloom::callable::per_element(&#name)));
                }
                Kind::Slice { element } => params.push(quote!(#name: &[#element])),
                Kind::Cell { element } => {
                    if writes(all.clone(), &text) {
                        wrong.push((name.span(), format!("all threads would write `{name}`: use an element for each index, or a parameter `&[Atomic<T>]`")));
                    }
                    params.push(quote!(#name: &[#element]));
                    before.push(quote!(let #name = &#name[0];));
                }
                Kind::Scalar | Kind::Atomics { .. } => params.push(quote!(#name: #ty)),
            }
        }
        for (span, message) in wrong {
            self.refuse(span, &message);
        }
        let shape = shape.or_else(|| self.length_of(ends[0]).filter(|_| ends.len() == 1));
        let Some(shape) = shape else {
            return self.refuse(around.expr.span(), "a parallel loop that writes no element of an array goes over the length of one: `par(0..x.len())`");
        };
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
        self.kernels.push(quote_spanned! {here(span)=>
            #[::gridloom::kernel]
            fn #kernel(#(#params),*) {
                #lets
                let __own = ::gridloom::thread::index();
                let __end = #end;
                #sizes
                #(#before)*
                #(#owned)*
                if __own >= (#start) && __own < __end {
                    #indices
                    '__par: for __once in 0..1 #body
                }
            }
        });
        quote!(__steps.launch(&#kernel, #shape, (#(#given,)*))?;)
    }

    /// Returns the shape of a loop over the length of a parameter.
    fn length_of(&self, end: &TokenStream) -> Option<TokenStream> {
        let (_, all) = self.used_lets(end);
        let name = self.params.iter().find(|param| {
            let has_length = matches!(param.kind, Kind::Slice { .. } | Kind::Atomics { .. });
            has_length && all.to_string().contains(&format!("{} . len", param.name))
        })?;
        let name = &name.name;
        Some(quote!(::gridloom::callable::per_element(&#name)))
    }
}

/// The names that a pattern gives values to.
fn collect_names(tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident != "mut" && ident != "_" => names.push(ident.to_string()),
            TokenTree::Group(group) => collect_names(group.stream(), names),
            _ => {}
        }
    }
}
