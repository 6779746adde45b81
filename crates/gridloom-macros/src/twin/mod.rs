//! The translation of a body into the code that records it.
//!
//! Each expression is translated in one of two ways. As a *value* it gives what it is at that
//! moment. As a *place* it gives what can be read later, assigned to or referred to: variables,
//! fields, elements, what references lead to.

mod calls;
mod control;
mod macros;
mod questions;

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, Generics, Lit, Stmt, Type, UnOp};

use questions::{compound, diverges, is_literal, is_new, is_simple, line, text};

use crate::pattern::Names;
use crate::tokens::{contains, here, named_self};

/// A loop or block that can be left.
struct Target {
    /// The label in the source.
    label: Option<String>,
    /// The variable with its label in the recording.
    name: Ident,
    /// The variable with its result, where it has one.
    result: Option<Ident>,
    is_loop: bool,
}

/// What a variable is, as far as its declaration tells it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Variable {
    /// A value, or a reference to read.
    Value,
    /// A `&mut`: patterns name the places of its parts.
    Changed,
    /// A closure, which is recorded where it is called, and has no value.
    Closure,
}

/// Translates one function.
pub(crate) struct Translator {
    /// The variables in scope.
    scopes: Vec<HashMap<String, Variable>>,
    targets: Vec<Target>,
    pub(crate) errors: Vec<Error>,
    self_type: Option<Type>,
    counter: usize,
    /// Whether the function returns before its end.
    pub(crate) returns: bool,
    /// Whether the function has unsafe code.
    pub(crate) is_unsafe: bool,
    /// The name of the function.
    pub(crate) function: Option<String>,
    /// The type parameters.
    pub(crate) type_params: HashSet<String>,
    /// What the names of the pattern at hand are bound to.
    pub(crate) names: Names,
}

/// Types of device code whose twin is no plain value.
const NOT_PLAIN: &[&str] = &[
    "Out",
    "Own",
    "Shared",
    "SharedView",
    "SharedAtomics",
    "View2",
    "View3",
    "Atomic",
    "SetCondition",
    "Self",
];

/// Returns the type of the twin of a value. That of a type parameter, or of what is made of one, is
/// spelled out, so that the compiler infers the parameter from the value.
pub(crate) fn twin_type(ty: &Type, self_type: Option<&Type>, params: &HashSet<String>) -> TokenStream {
    let ty = named_self(ty, self_type);
    let span = here(ty.span());
    let of = |ty: &Type| twin_type(ty, self_type, params);
    if params.iter().any(|param| contains(&ty, param)) {
        match &ty {
            Type::Paren(inner) => return of(&inner.elem),
            Type::Group(inner) => return of(&inner.elem),
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(_) => {}
                elem => {
                    let elem = of(elem);
                    return quote_spanned!(span=> ::gridloom::__kernel::R<#elem>);
                }
            },
            Type::Tuple(tuple) => {
                let parts: Vec<TokenStream> = tuple.elems.iter().map(of).collect();
                return quote_spanned!(span=> (#(#parts,)*));
            }
            Type::Array(_) => return quote_spanned!(span=> ::gridloom::__kernel::V<#ty>),
            Type::Path(path) if path.qself.is_none() => {
                let last = path.path.segments.last();
                let name = last.map(|last| last.ident.to_string()).unwrap_or_default();
                if name == "Option"
                    && let Some(syn::PathArguments::AngleBracketed(arguments)) =
                        last.map(|last| &last.arguments)
                    && let Some(syn::GenericArgument::Type(inner)) = arguments.args.first()
                {
                    let inner = of(inner);
                    return quote_spanned!(span=> ::gridloom::__kernel::Opt<#inner>);
                }
                // An associated type may be anything.
                let is_associated = path.path.segments.len() > 1
                    && path
                        .path
                        .segments
                        .first()
                        .is_some_and(|first| params.contains(&first.ident.to_string()));
                if !NOT_PLAIN.contains(&name.as_str()) && !is_associated {
                    return quote_spanned!(span=> ::gridloom::__kernel::V<#ty>);
                }
            }
            _ => {}
        }
    }
    quote_spanned!(span=> <#ty as ::gridloom::__kernel::Typed>::Twin)
}

impl Translator {
    pub(crate) fn new(self_type: Option<Type>, generics: &Generics) -> Self {
        Translator {
            scopes: vec![HashMap::new()],
            targets: Vec::new(),
            errors: Vec::new(),
            self_type,
            counter: 0,
            returns: false,
            is_unsafe: false,
            function: None,
            names: Names::Values,
            type_params: generics.type_params().map(|param| param.ident.to_string()).collect(),
        }
    }

    pub(crate) fn declare(&mut self, name: &str) {
        self.declare_as(name, Variable::Value);
    }

    pub(crate) fn declare_as(&mut self, name: &str, variable: Variable) {
        self.scopes.last_mut().expect("a scope is open").insert(name.to_owned(), variable);
    }

    fn variable(&self, name: &str) -> Option<Variable> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    fn is_local(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    fn is_closure(&self, name: &str) -> bool {
        self.variable(name) == Some(Variable::Closure)
    }

    /// Returns whether an expression gives something to change: `&mut x`, a variable that is one,
    /// or the items of `iter_mut`.
    pub(crate) fn is_mut(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Paren(paren) => self.is_mut(&paren.expr),
            Expr::Reference(reference) => reference.mutability.is_some(),
            Expr::MethodCall(call) => call.method == "iter_mut" || call.method == "as_mut",
            Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| self.variable(&name.to_string()) == Some(Variable::Changed)),
            _ => false,
        }
    }

    /// Returns the variables in scope that are values.
    fn values_in_scope(&self) -> Vec<String> {
        let names: HashSet<&String> = self.scopes.iter().flat_map(HashMap::keys).collect();
        let mut names: Vec<String> =
            names.into_iter().filter(|name| !self.is_closure(name)).cloned().collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn refuse(&mut self, span: Span, message: impl std::fmt::Display) -> TokenStream {
        self.errors.push(Error::new(span, message));
        quote!(())
    }

    pub(crate) fn fresh(&mut self, what: &str) -> Ident {
        self.counter += 1;
        format_ident!("__{what}{}", self.counter)
    }

    pub(crate) fn scoped<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = act(self);
        self.scopes.pop();
        result
    }

    fn ty(&self, ty: &Type) -> TokenStream {
        twin_type(ty, self.self_type.as_ref(), &self.type_params)
    }

    /// Returns the body of a function.
    pub(crate) fn block_of_function(&mut self, block: &Block, wants_value: bool) -> TokenStream {
        self.block(block, wants_value)
    }

    /// Returns a block: its value where one is wanted, else `()`.
    fn block(&mut self, block: &Block, wants_value: bool) -> TokenStream {
        let statements = self.scoped(|this| this.statements(&block.stmts, wants_value));
        quote_spanned!(here(block.span())=> { #statements })
    }

    fn statements(&mut self, stmts: &[Stmt], wants_value: bool) -> TokenStream {
        let mut out = TokenStream::new();
        for (index, stmt) in stmts.iter().enumerate() {
            let is_last = index + 1 == stmts.len();
            out.extend(match stmt {
                Stmt::Local(local) => self.local(local),
                Stmt::Item(item) => self.item(item),
                Stmt::Expr(expr, None) if is_last && wants_value => {
                    if diverges(expr) {
                        let statement = self.statement(expr);
                        quote!(#statement __k::never())
                    } else {
                        self.value(expr)
                    }
                }
                Stmt::Expr(expr, semicolon) => {
                    let statement = self.statement(expr);
                    if is_last && wants_value && semicolon.is_some() && diverges(expr) {
                        quote!(#statement __k::never())
                    } else {
                        statement
                    }
                }
                Stmt::Macro(call) => {
                    let is_end = is_last && wants_value;
                    let expr = Expr::Macro(syn::ExprMacro { attrs: Vec::new(), mac: call.mac.clone() });
                    if is_end && !diverges(&expr) && call.semi_token.is_none() {
                        self.value(&expr)
                    } else {
                        let statement = self.statement(&expr);
                        if is_end && diverges(&expr) { quote!(#statement __k::never()) } else { statement }
                    }
                }
            });
        }
        out
    }

    fn item(&mut self, item: &syn::Item) -> TokenStream {
        match item {
            // The twin has the same constants and imports; other items stay with the function.
            syn::Item::Const(_) | syn::Item::Use(_) => item.to_token_stream(),
            other => self.refuse(
                other.span(),
                "device code cannot declare this inside of a function; move it out of the function",
            ),
        }
    }

    fn local(&mut self, local: &syn::Local) -> TokenStream {
        let (pat, ty) = match &local.pat {
            syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pat => (pat, None),
        };
        let annotation = ty.filter(|ty| !contains(ty, "_")).map(|ty| self.ty(ty));
        let Some(init) = &local.init else {
            let syn::Pat::Ident(name) = pat else {
                return self.refuse(pat.span(), "device code gives a pattern its value where it is declared");
            };
            let name = &name.ident;
            self.declare(&name.to_string());
            let annotation = annotation.map(|ty| quote!(: #ty));
            return quote_spanned!(here(local.span())=> let #name #annotation = __k::declare(););
        };
        let value = match &init.diverge {
            None => self.value(&init.expr),
            Some((_, otherwise)) => {
                // The value, or where to go instead.
                let (label, subject, is_other) =
                    (self.fresh("let"), self.fresh("subject"), self.fresh("fits"));
                let value = self.value(&init.expr);
                let otherwise = self.statement(otherwise);
                let tests =
                    self.scoped(|this| this.bind_value_of(&init.expr, pat, &quote!(#subject), Some(&label)));
                let bindings = self.bind_value_of(&init.expr, pat, &quote!(#subject), None);
                return quote_spanned!(here(local.span())=>
                    let #subject = #value;
                    let #is_other: __k::V<bool> = __k::var(__k::lit(true));
                    let #label = __k::block_begin();
                    {
                        #tests
                        __k::assign(&#is_other, __k::lit(false));
                    }
                    __k::block_end(#label);
                    {
                        let __c = __k::if_begin(__k::get(&#is_other));
                        #otherwise
                        __k::if_end(__c);
                    }
                    #bindings
                );
            }
        };
        if let syn::Pat::Ident(name) = pat
            && name.by_ref.is_none()
            && name.subpat.is_none()
        {
            let ident = &name.ident;
            // A closure is what it captures, and is recorded where it is called.
            let is_closure = matches!(&*init.expr, Expr::Closure(_));
            let value = match (&annotation, &*init.expr) {
                (Some(_), Expr::Reference(_)) => quote_spanned!(here(init.expr.span())=> __k::passed(#value)),
                _ => value,
            };
            let value = if name.mutability.is_some() && !is_closure {
                quote_spanned!(here(init.expr.span())=> __k::var(#value))
            } else {
                value
            };
            let is_mut = matches!(ty, Some(Type::Reference(reference)) if reference.mutability.is_some())
                || self.is_mut(&init.expr);
            let variable = match (is_closure, is_mut) {
                (true, _) => Variable::Closure,
                (_, true) => Variable::Changed,
                _ => Variable::Value,
            };
            self.declare_as(&ident.to_string(), variable);
            let annotation = annotation.map(|ty| quote!(: #ty));
            return quote_spanned!(here(local.span())=> let #ident #annotation = #value;);
        }
        let subject = self.fresh("subject");
        let bindings = self.bind_value_of(&init.expr, pat, &quote!(#subject), None);
        let annotation = annotation.map(|ty| quote!(: #ty));
        quote_spanned!(here(local.span())=> let #subject #annotation = #value; #bindings)
    }

    /// Returns an expression whose value is not used.
    pub(crate) fn statement(&mut self, expr: &Expr) -> TokenStream {
        let span = expr.span();
        match expr {
            Expr::Assign(assign) => self.assign(assign),
            Expr::Binary(binary) if compound(&binary.op).is_some() => self.compound_assign(binary),
            Expr::If(branch) => self.branch(branch, false),
            Expr::Match(arms) => self.match_(arms, false),
            Expr::Block(block) => self.labelled_block(block, false),
            Expr::Unsafe(block) => self.block(&block.block, false),
            Expr::Loop(around) => self.loop_(around, false),
            Expr::While(around) => self.while_(around),
            Expr::ForLoop(around) => self.for_(around),
            Expr::Break(leave) => self.break_(leave),
            Expr::Continue(next) => self.continue_(next),
            Expr::Return(ret) => self.return_(ret),
            Expr::Macro(call) => self.macro_(call, false),
            Expr::Paren(paren) => self.statement(&paren.expr),
            other => {
                let value = self.value(other);
                quote_spanned!(here(span)=> let _ = #value;)
            }
        }
    }

    fn assign(&mut self, assign: &syn::ExprAssign) -> TokenStream {
        let value = self.value(&assign.right);
        let span = assign.span();
        match &*assign.left {
            Expr::Infer(_) => quote_spanned!(here(span)=> let _ = #value;),
            Expr::Tuple(_) | Expr::Array(_) | Expr::Struct(_) | Expr::Call(_) => {
                // All values are there before the first place changes.
                let subject = self.fresh("subject");
                let assignments = self.assign_parts(&assign.left, &quote!(#subject));
                quote_spanned!(here(span)=> { let #subject = __k::get(&#value); #assignments })
            }
            place => {
                let place = self.place(place);
                quote_spanned!(here(span)=> { let __v = #value; __k::assign(&#place, __v); })
            }
        }
    }

    /// Assigns the parts of a value to the places on the left side.
    fn assign_parts(&mut self, left: &Expr, subject: &TokenStream) -> TokenStream {
        let span = left.span();
        let is_partial = |this: &mut Self, elems: &syn::punctuated::Punctuated<Expr, syn::Token![,]>| {
            let rest = elems.iter().find(|elem| matches!(elem, Expr::Range(_)));
            if let Some(rest) = rest {
                this.refuse(
                    rest.span(),
                    "device code has no `..` on the left of `=`; write `_` for each part",
                );
            }
            rest.is_some()
        };
        match left {
            Expr::Infer(_) => quote!(),
            Expr::Paren(paren) => self.assign_parts(&paren.expr, subject),
            Expr::Tuple(tuple) if !is_partial(self, &tuple.elems) => {
                let parts = tuple.elems.iter().enumerate().map(|(index, part)| {
                    let index = syn::Index::from(index);
                    self.assign_parts(part, &quote!(#subject.#index))
                });
                parts.collect()
            }
            Expr::Array(array) if !is_partial(self, &array.elems) => {
                let parts = array
                    .elems
                    .iter()
                    .enumerate()
                    .map(|(index, part)| self.assign_parts(part, &quote!(#subject.__element(#index))));
                parts.collect()
            }
            Expr::Tuple(_) | Expr::Array(_) => quote!(),
            Expr::Struct(parts) if parts.dot2_token.is_none() => {
                let parts = parts.fields.iter().map(|field| {
                    let member = &field.member;
                    self.assign_parts(&field.expr, &quote!(#subject.#member))
                });
                parts.collect()
            }
            Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Unary(_) => {
                let place = self.place(left);
                quote_spanned!(here(span)=> { let __v = __k::get(&#subject); __k::assign(&#place, __v); })
            }
            _ => self.refuse(span, "device code cannot assign to this; assign to one place after the other"),
        }
    }

    fn compound_assign(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let function = Ident::new(compound(&binary.op).unwrap_or("add"), binary.op.span());
        let (value, place) = (self.value(&binary.right), self.place(&binary.left));
        let (span, line) = (binary.span(), line(binary.op.span()));
        let assignment = match binary.op {
            BinOp::ShlAssign(_) | BinOp::ShrAssign(_) => {
                quote_spanned!(here(span)=> __k::assign(&__p, __k::#function(__k::get(&__p), __v, #line));)
            }
            _ => quote_spanned!(here(span)=> __k::#function(&__p, __v, #line);),
        };
        quote_spanned!(here(span)=> {
            let __v = #value;
            let __p = #place;
            #assignment
        })
    }

    /// Returns the value of an expression.
    pub(crate) fn value(&mut self, expr: &Expr) -> TokenStream {
        let span = expr.span();
        match expr {
            Expr::Lit(lit) => self.literal(lit),
            Expr::Path(path) => self.path(path),
            Expr::Paren(paren) => self.value(&paren.expr),
            Expr::Group(group) => self.value(&group.expr),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Cast(cast) => {
                // The type of a literal is that of the cast, where it can be.
                if is_literal(&cast.expr) {
                    return quote_spanned!(here(span)=> __k::lit(#cast));
                }
                let value = self.value(&cast.expr);
                let ty = named_self(&cast.ty, self.self_type.as_ref());
                quote_spanned!(here(span)=> __k::cast::<#ty, _>(#value))
            }
            Expr::Field(_) | Expr::Index(_) => {
                if let Expr::Index(index) = expr
                    && let Expr::Range(_) = &*index.index
                {
                    return self
                        .refuse(span, "a part of a slice is used through a reference: write `&x[a..b]`");
                }
                let place = self.place(expr);
                quote_spanned!(here(span)=> __k::get(&#place))
            }
            Expr::Reference(reference) => {
                if let Expr::Index(index) = &*reference.expr
                    && let Expr::Range(_) = &*index.index
                {
                    return self.place(&reference.expr);
                }
                let place = self.place(&reference.expr);
                if reference.mutability.is_some() && is_new(&reference.expr) {
                    return quote_spanned!(here(span)=> __k::refer(__k::var(#place)));
                }
                quote_spanned!(here(span)=> __k::refer(#place))
            }
            Expr::Tuple(tuple) => {
                let parts: Vec<TokenStream> = tuple.elems.iter().map(|part| self.value(part)).collect();
                quote_spanned!(here(span)=> (#(#parts,)*))
            }
            Expr::Array(array) => {
                let parts: Vec<TokenStream> = array.elems.iter().map(|part| self.value(part)).collect();
                quote_spanned!(here(span)=> __k::array([#(#parts),*]))
            }
            Expr::Repeat(repeat) => {
                let value = self.value(&repeat.expr);
                let len = &repeat.len;
                quote_spanned!(here(span)=> __k::repeat::<_, {#len}>(#value))
            }
            Expr::Struct(literal) => self.struct_(literal),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::If(branch) => self.branch(branch, true),
            Expr::Match(arms) => self.match_(arms, true),
            Expr::Block(block) => self.labelled_block(block, true),
            Expr::Unsafe(block) => self.block(&block.block, true),
            Expr::Loop(around) => self.loop_(around, true),
            Expr::While(_) | Expr::ForLoop(_) => {
                let statement = self.statement(expr);
                quote_spanned!(here(span)=> { #statement })
            }
            Expr::Assign(_) => {
                let statement = self.statement(expr);
                quote_spanned!(here(span)=> { #statement })
            }
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
                let statement = self.statement(expr);
                quote_spanned!(here(span)=> { #statement __k::never() })
            }
            Expr::Macro(call) => self.macro_(call, true),
            Expr::Closure(closure) => self.closure(closure),
            Expr::Range(range) => {
                let (start, end) = (
                    range.start.as_ref().map(|start| self.value(start)),
                    range.end.as_ref().map(|end| self.value(end)),
                );
                let limits = &range.limits;
                quote_spanned!(here(span)=> (#start #limits #end))
            }
            Expr::Const(block) => quote_spanned!(here(span)=> __k::constant(#block)),
            Expr::Async(_) | Expr::Await(_) => self.refuse(span, "device code cannot be `async`"),
            Expr::Try(_) => self.refuse(span, "device code has no `?`; use `match`, `if let` or `let else`"),
            Expr::TryBlock(_) => self.refuse(span, "device code has no `try` blocks"),
            Expr::RawAddr(_) => self.refuse(span, "device code has no raw addresses of its own memory"),
            Expr::Yield(_) => self.refuse(span, "device code has no generators"),
            Expr::Let(_) => {
                self.refuse(span, "device code takes `let` in the condition of `if` and `while` only")
            }
            Expr::Infer(_) => self.refuse(span, "there is no value here"),
            other => self.refuse(other.span(), "device code cannot use this expression"),
        }
    }

    fn literal(&mut self, expr: &syn::ExprLit) -> TokenStream {
        let lit = &expr.lit;
        match lit {
            Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_) => {
                quote_spanned!(here(lit.span())=> __k::lit(#lit))
            }
            Lit::Str(_) => {
                self.refuse(lit.span(), "device code has no strings, except in `assert!` and `panic!`")
            }
            Lit::Char(_) => self.refuse(lit.span(), "device code has no `char`; use a byte such as `b'a'`"),
            other => self
                .refuse(other.span(), "device code has no literals of this kind; use numbers, or an array"),
        }
    }

    fn path(&mut self, expr: &syn::ExprPath) -> TokenStream {
        let span = expr.span();
        if let Some(name) = expr.path.get_ident() {
            let text = name.to_string();
            if text == "self" {
                let own = Ident::new("__self", Span::call_site());
                return quote_spanned!(here(span)=> __k::get(&#own));
            }
            if self.is_closure(&text) {
                return quote_spanned!(here(span)=> #name);
            }
            if self.is_local(&text) {
                return quote_spanned!(here(span)=> __k::get(&#name));
            }
            if text == "None" {
                return quote_spanned!(here(span)=> __k::none());
            }
        }
        let path = self.named_path(expr);
        if self.is_unsafe {
            // A `static mut` has another value when the kernel runs: the compiler refuses it here.
            return quote_spanned!(here(span)=> __k::constant(const { #path }));
        }
        quote_spanned!(here(span)=> __k::constant(#path))
    }

    /// Returns the path with `Self` replaced by what it means.
    fn named_path(&self, expr: &syn::ExprPath) -> TokenStream {
        match (&self.self_type, expr.path.segments.first()) {
            (Some(self_type), Some(first)) if first.ident == "Self" && expr.path.segments.len() > 1 => {
                let rest = expr.path.segments.iter().skip(1);
                quote_spanned!(here(expr.span())=> <#self_type>::#(#rest)::*)
            }
            _ => expr.to_token_stream(),
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let span = binary.span();
        let function = match binary.op {
            BinOp::Add(_) => "add",
            BinOp::Sub(_) => "sub",
            BinOp::Mul(_) => "mul",
            BinOp::Div(_) => "div",
            BinOp::Rem(_) => "rem",
            BinOp::BitAnd(_) => "bit_and",
            BinOp::BitOr(_) => "bit_or",
            BinOp::BitXor(_) => "bit_xor",
            BinOp::Shl(_) => "shl",
            BinOp::Shr(_) => "shr",
            BinOp::Eq(_) => "eq",
            BinOp::Ne(_) => "ne",
            BinOp::Lt(_) => "lt",
            BinOp::Le(_) => "le",
            BinOp::Gt(_) => "gt",
            BinOp::Ge(_) => "ge",
            BinOp::And(_) | BinOp::Or(_) => return self.short_circuit(binary),
            _ => {
                let statement = self.compound_assign(binary);
                return quote_spanned!(here(span)=> { #statement });
            }
        };
        let function = Ident::new(function, binary.op.span());
        let (left, right) = (self.value(&binary.left), self.value(&binary.right));
        let line = line(binary.op.span());
        match binary.op {
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => {
                quote_spanned!(here(span)=> __k::#function(#left, #right))
            }
            _ => quote_spanned!(here(span)=> __k::#function(#left, #right, #line)),
        }
    }

    fn short_circuit(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let span = binary.span();
        let is_and = matches!(binary.op, BinOp::And(_));
        let (left, right) = (self.value(&binary.left), self.value(&binary.right));
        if is_simple(&binary.right) {
            let function = Ident::new(if is_and { "both" } else { "either" }, span);
            return quote_spanned!(here(span)=> __k::#function(#left, #right));
        }
        let goes_on = if is_and { quote!(__r) } else { quote!(__k::not(__k::get(&__r))) };
        quote_spanned!(here(span)=> {
            let __r: __k::V<bool> = __k::var(#left);
            let __c = __k::if_begin(#goes_on);
            __k::assign(&__r, #right);
            __k::if_end(__c);
            __r
        })
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> TokenStream {
        let span = unary.span();
        let line = line(span);
        match unary.op {
            UnOp::Neg(_) => {
                if let Expr::Lit(lit) = &*unary.expr
                    && let Lit::Int(_) | Lit::Float(_) = lit.lit
                {
                    return quote_spanned!(here(span)=> __k::lit(#unary));
                }
                let value = self.value(&unary.expr);
                quote_spanned!(here(span)=> __k::neg(#value, #line))
            }
            UnOp::Not(_) => {
                let value = self.value(&unary.expr);
                quote_spanned!(here(span)=> __k::not(#value))
            }
            UnOp::Deref(_) => {
                let value = self.value(&unary.expr);
                quote_spanned!(here(span)=> __k::get(&__k::deref(#value)))
            }
            _ => self.refuse(span, "device code has no such operator"),
        }
    }

    /// Returns the place of an expression; the value of what is none.
    pub(crate) fn place(&mut self, expr: &Expr) -> TokenStream {
        let span = expr.span();
        match expr {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) if name == "self" => {
                    let own = Ident::new("__self", Span::call_site());
                    quote_spanned!(here(span)=> #own)
                }
                Some(name) if self.is_local(&name.to_string()) => quote!(#name),
                _ => self.path(path),
            },
            Expr::Paren(paren) => self.place(&paren.expr),
            Expr::Group(group) => self.place(&group.expr),
            Expr::Field(field) => {
                let base = self.place(&field.base);
                let member = &field.member;
                quote_spanned!(here(span)=> (#base).#member)
            }
            Expr::Index(index) => {
                let base = self.place(&index.expr);
                let at = self.value(&index.index);
                let message = format!("index out of bounds: `{}`", text(index));
                let line = line(index.bracket_token.span.join());
                quote_spanned!(here(span)=> (#base).__at(#at, #line, #message))
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => {
                let reference = self.place(&unary.expr);
                quote_spanned!(here(span)=> __k::deref(#reference))
            }
            other => self.value(other),
        }
    }
}
