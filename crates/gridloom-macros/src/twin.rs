//! The translation of a body into the code that records it.
//!
//! Each expression is translated in one of two ways. As a *value* it gives what it is at that moment. As a *place* it gives
//! what can be read later, assigned to or referred to: variables, fields, elements, what references lead to.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, ExprMethodCall, Generics, Lit, Path, Stmt, Type, UnOp};

use crate::names;
use crate::tokens::{breaks_with_value, contains, here, named_self};

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

/// Translates one function.
pub(crate) struct Translator {
    /// The variables in scope.
    scopes: Vec<HashSet<String>>,
    targets: Vec<Target>,
    pub(crate) errors: Vec<Error>,
    self_type: Option<Type>,
    counter: usize,
    /// Whether the function returns before its end.
    pub(crate) returns: bool,
    /// The name of the function.
    pub(crate) function: Option<String>,
    /// The type parameters.
    type_params: HashSet<String>,
}

/// The type of the twin of a value.
pub(crate) fn twin_type(ty: &Type, self_type: Option<&Type>) -> TokenStream {
    let ty = named_self(ty, self_type);
    quote_spanned!(here(ty.span())=> <#ty as ::gridloom::__kernel::Typed>::Twin)
}

/// The source line of a span. There is none outside of the compiler, in tests.
fn line(span: Span) -> u32 {
    if cfg!(test) { 0 } else { span.unwrap().line() as u32 }
}

/// The source text of an expression, for messages.
fn text(expr: &impl ToTokens) -> String {
    let mut text = expr.to_token_stream().to_string();
    for (from, to) in [
        (" . ", "."),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        ("& ", "&"),
        (" :: ", "::"),
    ] {
        text = text.replace(from, to);
    }
    if text.len() > 80 {
        text = text.chars().take(77).collect::<String>() + "...";
    }
    text
}

/// Returns whether an expression only reads variables and compares: neither fails nor changes anything.
fn is_simple(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Paren(paren) => is_simple(&paren.expr),
        Expr::Field(field) => is_simple(&field.base),
        Expr::Cast(cast) => is_simple(&cast.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_simple(&unary.expr),
        Expr::Binary(binary) => {
            use BinOp::{And, BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Ne, Or};
            matches!(
                binary.op,
                Eq(_)
                    | Ne(_)
                    | Lt(_)
                    | Le(_)
                    | Gt(_)
                    | Ge(_)
                    | And(_)
                    | Or(_)
                    | BitAnd(_)
                    | BitOr(_)
                    | BitXor(_)
            ) && is_simple(&binary.left)
                && is_simple(&binary.right)
        }
        _ => false,
    }
}

/// Returns whether an expression goes somewhere else instead of having a value.
fn diverges(expr: &Expr) -> bool {
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Paren(paren) => diverges(&paren.expr),
        Expr::Block(block) if block.label.is_none() => block_diverges(&block.block),
        Expr::Unsafe(block) => block_diverges(&block.block),
        Expr::If(branch) => {
            block_diverges(&branch.then_branch)
                && branch.else_branch.as_ref().is_some_and(|(_, other)| diverges(other))
        }
        Expr::Loop(around) => !contains(&around.body, "break"),
        Expr::Match(arms) => !arms.arms.is_empty() && arms.arms.iter().all(|arm| diverges(&arm.body)),
        Expr::Macro(call) => {
            matches!(
                names::tail(&call.mac.path, 1).as_str(),
                "panic" | "unreachable" | "todo" | "unimplemented"
            )
        }
        _ => false,
    }
}

fn block_diverges(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(expr, _)) => diverges(expr),
        Some(Stmt::Macro(call)) => {
            matches!(
                names::tail(&call.mac.path, 1).as_str(),
                "panic" | "unreachable" | "todo" | "unimplemented"
            )
        }
        _ => false,
    }
}

/// The variable that a place belongs to.
fn root(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Unary(unary) => root(&unary.expr),
        _ => None,
    }
}

/// The function for `+` in `+=`.
fn compound(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "add",
        BinOp::SubAssign(_) => "sub",
        BinOp::MulAssign(_) => "mul",
        BinOp::DivAssign(_) => "div",
        BinOp::RemAssign(_) => "rem",
        BinOp::BitAndAssign(_) => "bit_and",
        BinOp::BitOrAssign(_) => "bit_or",
        BinOp::BitXorAssign(_) => "bit_xor",
        BinOp::ShlAssign(_) => "shl",
        BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

impl Translator {
    pub(crate) fn new(self_type: Option<Type>, generics: &Generics) -> Self {
        Translator {
            scopes: vec![HashSet::new()],
            targets: Vec::new(),
            errors: Vec::new(),
            self_type,
            counter: 0,
            returns: false,
            function: None,
            type_params: generics.type_params().map(|param| param.ident.to_string()).collect(),
        }
    }

    pub(crate) fn declare(&mut self, name: &str) {
        self.scopes.last_mut().expect("a scope is open").insert(name.to_owned());
    }

    fn is_local(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
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
        self.scopes.push(HashSet::new());
        let result = act(self);
        self.scopes.pop();
        result
    }

    fn ty(&self, ty: &Type) -> TokenStream {
        twin_type(ty, self.self_type.as_ref())
    }

    /// The body of a function.
    pub(crate) fn block_of_function(&mut self, block: &Block, wants_value: bool) -> TokenStream {
        self.block(block, wants_value)
    }

    /// A block: its value where one is wanted, else `()`.
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
                let tests = self.scoped(|this| this.bind(pat, &quote!(#subject), Some(&label)));
                let bindings = self.bind(pat, &quote!(#subject), None);
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
            let value = if name.mutability.is_some() && !is_closure {
                quote_spanned!(here(init.expr.span())=> __k::var(#value))
            } else {
                value
            };
            self.declare(&ident.to_string());
            let annotation = annotation.map(|ty| quote!(: #ty));
            return quote_spanned!(here(local.span())=> let #ident #annotation = #value;);
        }
        let subject = self.fresh("subject");
        let bindings = self.bind(pat, &quote!(#subject), None);
        let annotation = annotation.map(|ty| quote!(: #ty));
        quote_spanned!(here(local.span())=> let #subject #annotation = #value; #bindings)
    }

    /// An expression whose value is not used.
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
            Expr::Tuple(tuple) => {
                // All values are there before the first place changes.
                let subject = self.fresh("subject");
                let parts: Vec<TokenStream> = tuple
                    .elems
                    .iter()
                    .enumerate()
                    .map(|(index, place)| {
                        let index = syn::Index::from(index);
                        if let Expr::Infer(_) = place {
                            return quote!();
                        }
                        let place = self.place(place);
                        quote_spanned!(here(span)=> __k::assign(&#place, #subject.#index);)
                    })
                    .collect();
                quote_spanned!(here(span)=> { let #subject = #value; #(#parts)* })
            }
            place => {
                let place = self.place(place);
                quote_spanned!(here(span)=> { let __v = #value; __k::assign(&#place, __v); })
            }
        }
    }

    fn compound_assign(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let function = Ident::new(compound(&binary.op).unwrap_or("add"), binary.op.span());
        let (value, place) = (self.value(&binary.right), self.place(&binary.left));
        let (span, line) = (binary.span(), line(binary.op.span()));
        quote_spanned!(here(span)=> {
            let __v = #value;
            let __p = #place;
            __k::assign(&__p, __k::#function(__k::get(&__p), __v, #line));
        })
    }

    /// The value of an expression.
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
            if self.is_local(&text) {
                return quote_spanned!(here(span)=> __k::get(&#name));
            }
            if text == "None" {
                return quote_spanned!(here(span)=> __k::none());
            }
        }
        let path = self.named_path(expr);
        quote_spanned!(here(span)=> __k::constant(#path))
    }

    /// The path with `Self` replaced by what it means.
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
            let function = Ident::new(if is_and { "bit_and" } else { "bit_or" }, span);
            return quote_spanned!(here(span)=> __k::#function::<bool>(#left, #right, 0));
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

    /// The place of an expression; the value of what is none.
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

    fn struct_(&mut self, literal: &syn::ExprStruct) -> TokenStream {
        let span = literal.span();
        if literal.qself.is_some() {
            return self.refuse(span, "device code names a struct by its path");
        }
        let path = match (&self.self_type, literal.path.is_ident("Self")) {
            (Some(self_type), true) => quote!(#self_type),
            _ => literal.path.to_token_stream(),
        };
        let mut fields = Vec::new();
        for field in &literal.fields {
            let variable = self.fresh("field");
            let value = self.value(&field.expr);
            fields.push((field.member.clone(), variable, value));
        }
        let members: Vec<_> = fields.iter().map(|(member, ..)| member).collect();
        let variables: Vec<_> = fields.iter().map(|(_, variable, _)| variable).collect();
        let values: Vec<_> = fields.iter().map(|(.., value)| value).collect();
        let (rest, copied) = match &literal.rest {
            Some(rest) => {
                let rest = self.value(rest);
                (quote!(let __rest = #rest;), quote!(..__k::phantom(&__rest)))
            }
            None => (quote!(), quote!()),
        };
        let start = if literal.rest.is_some() { quote!(__k::assign(&__s, __rest);) } else { quote!() };
        quote_spanned!(here(span)=> {
            #(let #variables = #values;)*
            #rest
            let __s = __k::fresh_like(|| #path { #(#members: __k::phantom(&#variables),)* #copied });
            #start
            #(__k::assign(&__s.#members, #variables);)*
            __s
        })
    }

    fn call(&mut self, call: &syn::ExprCall) -> TokenStream {
        let span = call.span();
        let Expr::Path(function) = &*call.func else {
            return self.refuse(call.func.span(), "device code calls functions and closures by their names");
        };
        let args: Vec<TokenStream> = call.args.iter().map(|arg| self.value(arg)).collect();
        let path = &function.path;
        let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if let Some(ident) = path.get_ident() {
            if self.is_local(&name) {
                return quote_spanned!(here(span)=> #ident(#(#args),*));
            }
            if name == "Some" {
                return quote_spanned!(here(span)=> __k::some(#(#args),*));
            }
            if self.function.as_ref() == Some(&name) {
                return self.refuse(
                    span,
                    "device code cannot be recursive: it is recorded where it is called; use a loop",
                );
            }
        }
        for segment in &path.segments {
            if let Some(reason) = names::refused_type(&segment.ident.to_string()) {
                return self
                    .refuse(segment.span(), format!("`{}` is not available: {reason}", segment.ident));
            }
        }
        if let Some(reason) = names::refused_method(&name).filter(|_| path.segments.len() > 1) {
            return self.refuse(path.span(), format!("`{name}` is not available: {reason}"));
        }
        match names::tail(path, 2).as_str() {
            "mem::swap" => return quote_spanned!(here(span)=> __k::swap(#(#args),*)),
            "mem::replace" => return quote_spanned!(here(span)=> __k::replace(#(#args),*)),
            "cmp::min" | "min" => return quote_spanned!(here(span)=> __k::V::min(#(#args),*)),
            "cmp::max" | "max" => return quote_spanned!(here(span)=> __k::V::max(#(#args),*)),
            _ => {}
        }
        if names::is_type_name(&name) {
            return self.tuple_struct(function, &args, span);
        }
        let count = path.segments.len();
        let owner = (count > 1).then(|| path.segments[count - 2].ident.to_string());
        let last = path.segments.last().expect("a path has a segment");
        let (ident, generics) = (&last.ident, &last.arguments);
        let generics = match generics {
            syn::PathArguments::None => quote!(),
            generics => {
                let generics = generics.to_token_stream();
                if generics.to_string().starts_with("::") { generics } else { quote!(::#generics) }
            }
        };
        match owner.as_deref() {
            Some(owner) if names::SCALARS.contains(&owner) => {
                let ty = path_without_last(path);
                let line = line(span);
                quote_spanned!(here(span)=> { __k::at(#line); <<#ty as __k::Typed>::Twin>::#ident #generics(#(#args),*) })
            }
            Some("Self") if self.self_type.is_some() => {
                let (ty, twin) =
                    (self.self_type.as_ref(), format_ident!("__twin_{ident}", span = ident.span()));
                quote_spanned!(here(span)=> <#ty>::#twin #generics(#(#args),*))
            }
            Some(owner) if names::is_type_name(owner) || self.type_params.contains(owner) => {
                let twin = format_ident!("__twin_{ident}", span = ident.span());
                let ty = path_without_last(path);
                quote_spanned!(here(span)=> #ty::#twin #generics(#(#args),*))
            }
            _ => {
                let mut path = path.clone();
                if let Some(last) = path.segments.last_mut() {
                    last.arguments = syn::PathArguments::None;
                }
                quote_spanned!(here(span)=> #path::__twin #generics(#(#args),*))
            }
        }
    }

    fn tuple_struct(&mut self, function: &syn::ExprPath, args: &[TokenStream], span: Span) -> TokenStream {
        let path = match (&self.self_type, function.path.is_ident("Self")) {
            (Some(self_type), true) => quote!(#self_type),
            _ => function.to_token_stream(),
        };
        let variables: Vec<Ident> = args.iter().map(|_| self.fresh("field")).collect();
        let members = (0..args.len()).map(syn::Index::from);
        quote_spanned!(here(span)=> {
            #(let #variables = #args;)*
            let __s = __k::fresh_like(|| #path(#(__k::phantom(&#variables)),*));
            #(__k::assign(&__s.#members, #variables);)*
            __s
        })
    }

    fn method_call(&mut self, call: &ExprMethodCall) -> TokenStream {
        let span = call.span();
        let name = call.method.to_string();
        if let Some(reason) = names::refused_method(&name) {
            return self.refuse(call.method.span(), format!("`{name}` is not available: {reason}"));
        }
        let (method, generics) = (&call.method, &call.turbofish);
        let receiver = self.place(&call.receiver);
        let receiver = match root(&call.receiver) {
            Some(_) => quote_spanned!(here(call.receiver.span())=> __k::receiver(#receiver)),
            None => receiver,
        };
        let args: Vec<TokenStream> = if name == "expect" {
            call.args.iter().map(ToTokens::to_token_stream).collect()
        } else {
            call.args.iter().map(|arg| self.value(arg)).collect()
        };
        let variables: Vec<Ident> = args.iter().map(|_| self.fresh("arg")).collect();
        let line = line(method.span());
        // A value is taken before the arguments are evaluated. Where it is still in its variable, they must not change it.
        let is_named =
            root(&call.receiver).is_some_and(|variable| call.args.iter().any(|arg| contains(arg, &variable)));
        let (stamp, check) = if is_named {
            (quote!(let __stamp = __k::stamp(&__m);), quote!(__k::unchanged(&__m, __stamp);))
        } else {
            (quote!(), quote!())
        };
        if is_closure_free(call) {
            quote_spanned!(here(span)=> {
                let __m = #receiver;
                #stamp
                #(let #variables = #args;)*
                __k::at(#line);
                #check
                __m.#method #generics(#(#variables),*)
            })
        } else {
            quote_spanned!(here(span)=> (#receiver).#method #generics(#(#args),*))
        }
    }

    fn closure(&mut self, closure: &syn::ExprClosure) -> TokenStream {
        let span = closure.span();
        if closure.asyncness.is_some() {
            return self.refuse(span, "device code cannot be `async`");
        }
        self.scoped(|this| {
            let (mut params, mut bindings) = (Vec::new(), Vec::new());
            for input in &closure.inputs {
                let (pat, ty) = match input {
                    syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                    pat => (pat, None),
                };
                let variable = this.fresh("param");
                let annotation =
                    ty.filter(|ty| !contains(ty, "_")).map(|ty| this.ty(ty)).map(|ty| quote!(: #ty));
                params.push(quote!(#variable #annotation));
                bindings.push(this.bind(pat, &quote!(#variable), None));
            }
            let targets = std::mem::take(&mut this.targets);
            let returns = std::mem::replace(&mut this.returns, false);
            let body = this.value(&closure.body);
            (this.targets, this.returns) = (targets, returns);
            let output = match &closure.output {
                syn::ReturnType::Default => quote!(),
                syn::ReturnType::Type(_, ty) => {
                    let ty = this.ty(ty);
                    quote!(-> #ty)
                }
            };
            quote_spanned!(here(span)=> |#(#params),*| #output { #(#bindings)* #body })
        })
    }

    /// The conditions of an `if` or `while`, where some of them are patterns: leaves `label` where one does not hold.
    fn conditions(&mut self, cond: &Expr, label: &Ident) -> TokenStream {
        match cond {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) && contains_let(cond) => {
                let left = self.conditions(&binary.left, label);
                let right = self.conditions(&binary.right, label);
                quote!(#left #right)
            }
            Expr::Let(test) => {
                let subject = self.fresh("subject");
                let value = self.place(&test.expr);
                let bindings = self.bind(&test.pat, &quote!(#subject), Some(label));
                quote_spanned!(here(test.span())=> let #subject = __k::get(&#value); #bindings)
            }
            Expr::Paren(paren) => self.conditions(&paren.expr, label),
            other => {
                let value = self.value(other);
                quote_spanned!(here(other.span())=> __k::leave_unless(#label, #value);)
            }
        }
    }

    /// What an arm or branch gives: to the result where there is one.
    fn give(&mut self, expr: &Expr, result: Option<&Ident>) -> TokenStream {
        match result {
            Some(result) if !diverges(expr) => {
                let value = self.value(expr);
                quote_spanned!(here(expr.span())=> __k::assign(&#result, #value);)
            }
            _ => {
                let statement = self.statement(expr);
                quote!({ #statement })
            }
        }
    }

    fn give_block(&mut self, block: &Block, result: Option<&Ident>) -> TokenStream {
        match result {
            Some(result) if !block_diverges(block) => {
                let value = self.block(block, true);
                quote_spanned!(here(block.span())=> __k::assign(&#result, #value);)
            }
            _ => self.block(block, false),
        }
    }

    /// Declares a result, where one is wanted, and what to end with.
    fn result(&mut self, wants_value: bool, all_diverge: bool) -> (Option<Ident>, TokenStream, TokenStream) {
        match (wants_value, all_diverge) {
            (false, _) => (None, quote!(), quote!()),
            (true, true) => (None, quote!(), quote!(__k::never())),
            (true, false) => {
                let name = self.fresh("result");
                (Some(name.clone()), quote!(let #name = __k::declare();), quote!(#name))
            }
        }
    }

    fn branch(&mut self, branch: &syn::ExprIf, wants_value: bool) -> TokenStream {
        let span = branch.span();
        let has_else = branch.else_branch.is_some();
        let all_diverge = diverges(&Expr::If(branch.clone()));
        let (result, declared, end) = self.result(wants_value && has_else, all_diverge);
        if contains_let(&branch.cond) {
            let (outer, inner) = (self.fresh("if"), self.fresh("else"));
            let (conditions, then) = self.scoped(|this| {
                let conditions = this.conditions(&branch.cond, &inner);
                (conditions, this.give_block(&branch.then_branch, result.as_ref()))
            });
            let otherwise = branch.else_branch.as_ref().map(|(_, other)| self.give(other, result.as_ref()));
            return quote_spanned!(here(span)=> {
                #declared
                let #outer = __k::block_begin();
                let #inner = __k::block_begin();
                {
                    #conditions
                    #then
                    __k::leave(#outer);
                }
                __k::block_end(#inner);
                #otherwise
                __k::block_end(#outer);
                #end
            });
        }
        let cond = self.value(&branch.cond);
        let then = self.give_block(&branch.then_branch, result.as_ref());
        match &branch.else_branch {
            None => quote_spanned!(here(span)=> {
                let __c = __k::if_begin(#cond);
                #then
                __k::if_end(__c);
            }),
            Some((_, other)) => {
                let other = self.give(other, result.as_ref());
                quote_spanned!(here(span)=> {
                    #declared
                    let __c = __k::if_begin(#cond);
                    #then
                    __k::else_begin();
                    #other
                    __k::if_else_end(__c);
                    #end
                })
            }
        }
    }

    fn match_(&mut self, arms: &syn::ExprMatch, wants_value: bool) -> TokenStream {
        let span = arms.span();
        let all_diverge = diverges(&Expr::Match(arms.clone()));
        let (result, declared, end) = self.result(wants_value, all_diverge);
        let (subject, outer) = (self.fresh("subject"), self.fresh("match"));
        let value = self.place(&arms.expr);
        let count = arms.arms.len();
        let mut translated = TokenStream::new();
        for (index, arm) in arms.arms.iter().enumerate() {
            let label = self.fresh("arm");
            // The compiler has checked that the last arm fits whatever the others do not.
            let is_last = index + 1 == count && arm.guard.is_none();
            let (tests, guard, body) = self.scoped(|this| {
                let tests = this.bind(&arm.pat, &quote!(#subject), (!is_last).then_some(&label));
                let guard = arm.guard.as_ref().map(|(_, guard)| {
                    let guard = this.value(guard);
                    quote!(__k::leave_unless(#label, #guard);)
                });
                (tests, guard, this.give(&arm.body, result.as_ref()))
            });
            translated.extend(quote_spanned!(here(arm.span())=>
                let #label = __k::block_begin();
                {
                    #tests
                    #guard
                    #body
                    __k::leave(#outer);
                }
                __k::block_end(#label);
            ));
        }
        quote_spanned!(here(span)=> {
            #declared
            let #subject = __k::get(&#value);
            let #outer = __k::block_begin();
            #translated
            __k::block_end(#outer);
            #end
        })
    }

    fn labelled_block(&mut self, block: &syn::ExprBlock, wants_value: bool) -> TokenStream {
        let Some(label) = &block.label else { return self.block(&block.block, wants_value) };
        let (result, declared, end) = self.result(wants_value, false);
        let name = self.fresh("block");
        let label = Some(label.name.ident.to_string());
        self.targets.push(Target { label, name: name.clone(), result: result.clone(), is_loop: false });
        let body = self.give_block(&block.block, result.as_ref());
        self.targets.pop();
        quote_spanned!(here(block.span())=> {
            #declared
            let #name = __k::block_begin();
            #body
            __k::block_end(#name);
            #end
        })
    }

    fn in_loop(
        &mut self,
        label: Option<&syn::Label>,
        name: &Ident,
        result: Option<&Ident>,
        body: &Block,
    ) -> TokenStream {
        let label = label.map(|label| label.name.ident.to_string());
        self.targets.push(Target { label, name: name.clone(), result: result.cloned(), is_loop: true });
        let body = self.block(body, false);
        self.targets.pop();
        body
    }

    fn loop_(&mut self, around: &syn::ExprLoop, wants_value: bool) -> TokenStream {
        let has_value = breaks_with_value(&around.body);
        let (result, declared, end) = self.result(wants_value && has_value, false);
        let end = if wants_value && !has_value { quote!(()) } else { end };
        let name = self.fresh("loop");
        let body = self.in_loop(around.label.as_ref(), &name, result.as_ref(), &around.body);
        quote_spanned!(here(around.span())=> {
            #declared
            let #name = __k::loop_begin();
            #body
            __k::loop_step();
            __k::loop_end(#name);
            #end
        })
    }

    fn while_(&mut self, around: &syn::ExprWhile) -> TokenStream {
        let name = self.fresh("loop");
        let (conditions, body) = self.scoped(|this| {
            let conditions = this.conditions(&around.cond, &name);
            (conditions, this.in_loop(around.label.as_ref(), &name, None, &around.body))
        });
        quote_spanned!(here(around.span())=> {
            let #name = __k::loop_begin();
            #conditions
            #body
            __k::loop_step();
            __k::loop_end(#name);
        })
    }

    fn for_(&mut self, around: &syn::ExprForLoop) -> TokenStream {
        let (state, name, item) = (self.fresh("iterate"), self.fresh("loop"), self.fresh("item"));
        // An array or slice behind a reference is gone over element by element.
        let over = self.value(&around.expr);
        let line = line(around.expr.span());
        let (bindings, body) = self.scoped(|this| {
            let bindings = this.bind(&around.pat, &quote!(#item), None);
            (bindings, this.in_loop(around.label.as_ref(), &name, None, &around.body))
        });
        quote_spanned!(here(around.span())=> {
            let __o = #over;
            __k::at(#line);
            let #state = __k::iterate(__o);
            let #name = #state.label();
            let #item = #state.next();
            #bindings
            #body
            #state.end();
        })
    }

    fn target(&self, label: Option<&syn::Lifetime>, needs_loop: bool) -> Option<&Target> {
        let found = self.targets.iter().rev().find(|target| match label {
            Some(label) => target.label.as_deref() == Some(label.ident.to_string().as_str()),
            None => target.is_loop,
        });
        found.filter(|target| target.is_loop || !needs_loop)
    }

    fn break_(&mut self, leave: &syn::ExprBreak) -> TokenStream {
        let span = leave.span();
        let Some(target) = self.target(leave.label.as_ref(), false) else {
            return self.refuse(span, "there is no loop or block to leave here");
        };
        let (name, result) = (target.name.clone(), target.result.clone());
        let given = match (&leave.expr, result) {
            (Some(value), Some(result)) => {
                let value = self.value(value);
                quote!(__k::assign(&#result, #value);)
            }
            (Some(value), None) => self.statement(value),
            (None, _) => quote!(),
        };
        quote_spanned!(here(span)=> #given __k::leave(#name);)
    }

    fn continue_(&mut self, next: &syn::ExprContinue) -> TokenStream {
        match self.target(next.label.as_ref(), true) {
            Some(target) => {
                let name = &target.name;
                quote_spanned!(here(next.span())=> __k::again(#name);)
            }
            None => self.refuse(next.span(), "there is no loop to continue here"),
        }
    }

    fn return_(&mut self, ret: &syn::ExprReturn) -> TokenStream {
        let span = ret.span();
        if !self.returns {
            return self.refuse(span, "a closure of device code ends with its last expression");
        }
        match &ret.expr {
            Some(value) => {
                let value = self.value(value);
                quote_spanned!(here(span)=> { let __v = #value; __k::assign(&__result, __v); } __k::leave(__return);)
            }
            None => quote_spanned!(here(span)=> __k::leave(__return);),
        }
    }

    fn macro_(&mut self, call: &syn::ExprMacro, wants_value: bool) -> TokenStream {
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
            other => {
                let reason = match other {
                    "vec" => "device code has no heap; use an array".to_owned(),
                    "format" | "write" | "writeln" => "device code has no strings".to_owned(),
                    "println" | "print" | "eprintln" | "eprint" | "dbg" => {
                        "device code has no output of this kind yet; write to an `Out` parameter".to_owned()
                    }
                    "asm" => "device code has no inline assembly".to_owned(),
                    other => format!("device code does not know the macro `{other}!`"),
                };
                self.refuse(call.mac.path.span(), reason)
            }
        }
    }

    fn matches(&mut self, call: &syn::ExprMacro) -> TokenStream {
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

fn path_without_last(path: &Path) -> TokenStream {
    let mut path = path.clone();
    path.segments.pop();
    let last = path.segments.pop().map(syn::punctuated::Pair::into_value);
    path.segments.extend(last);
    path.to_token_stream()
}

/// Returns whether a call has no closure among its arguments: those are run by the method, and do not come before it.
fn is_closure_free(call: &ExprMethodCall) -> bool {
    !call.args.iter().any(|arg| matches!(arg, Expr::Closure(_)))
}

fn contains_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => contains_let(&binary.left) || contains_let(&binary.right),
        Expr::Paren(paren) => contains_let(&paren.expr),
        _ => false,
    }
}
