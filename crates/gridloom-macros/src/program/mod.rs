//! `#[program]`: a function of device arrays, whose parallel loops become kernels and whose other
//! loops become loops of a graph.
//!
//! What lives on from one kernel to the next without being a parameter (variables, the conditions
//! and counters of loops) is kept in *cells*: memory of one value that the callable allocates.

mod analysis;
mod control;
mod kernels;
mod normalize;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, Expr, FnArg, ItemFn, Pat, ReturnType, Stmt, Type};

use crate::function::companion;
use crate::tokens::contains;
use analysis::{Leaves, break_if, declared_name, kind_of, leaves, names_of, type_of, uses_contents};

/// What a variable of a program is.
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
    /// A variable of the program itself, which is in this cell between kernels.
    Local { cell: Ident },
}

/// A parameter, a variable or a cell.
struct Variable {
    name: Ident,
    ty: Type,
    kind: Kind,
}

/// A `let` of values that do not change: computed again in each kernel that uses it.
struct Binding {
    names: Vec<String>,
    tokens: TokenStream,
}

/// Sequential code that becomes one kernel.
#[derive(Default)]
struct Sequential {
    stmts: Vec<Stmt>,
    /// The variables that it declares and later kernels use.
    declared: Vec<Variable>,
}

struct Program {
    /// Those in scope. A later one hides earlier ones of its name.
    variables: Vec<Variable>,
    lets: Vec<Binding>,
    /// The memory that the callable allocates, with the types of the values.
    cells: Vec<(Ident, Type)>,
    items: Vec<syn::Item>,
    kernels: Vec<TokenStream>,
    errors: Vec<Error>,
}

/// Expands a program.
pub(crate) fn program(attribute: TokenStream, function: ItemFn) -> TokenStream {
    let mut this = Program {
        variables: Vec::new(),
        lets: Vec::new(),
        cells: Vec::new(),
        items: Vec::new(),
        kernels: Vec::new(),
        errors: Vec::new(),
    };
    if !attribute.is_empty() {
        this.refuse(attribute.span(), "`#[program]` takes no arguments");
    }
    this.signature(&function);
    let names: Vec<Ident> = this.variables.iter().map(|param| param.name.clone()).collect();
    let specs: Vec<TokenStream> = this.variables.iter().map(Variable::spec).collect();
    let mut block = function.block.clone();
    normalize::normalize(&mut block);
    let steps = this.steps(&block.stmts, None);
    let name = &function.sig.ident;
    let Program { kernels, items, errors, cells, .. } = &this;
    let handles: Vec<Ident> = (0..kernels.len()).map(kernel_name).collect();
    let errors: Vec<TokenStream> = errors.iter().map(Error::to_compile_error).collect();
    let cells = cells.iter().map(|(name, ty)| quote!(let #name = __steps.__cell::<#ty>()?;));
    let body = if errors.is_empty() {
        quote! {
            #(#items)*
            #(#kernels)*
            #(let #handles = #handles::load(device)?;)*
            ::core::result::Result::Ok(::gridloom::Callable::new(device, move |__steps, (#(#names,)*): (#(#specs,)*)| {
                #(#cells)*
                #steps
                ::gridloom::Result::Ok(())
            }))
        }
    } else {
        quote!(::core::unreachable!())
    };
    let contents = quote! {
        /// Makes the program a callable: its graph is built at the first call and replayed at every
        /// later one.
        pub fn load(device: &::gridloom::Device) -> ::gridloom::Result<::gridloom::Callable<(#(#specs,)*)>> {
            #body
        }
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

impl Variable {
    /// Returns the type of the callable's parameter.
    fn spec(&self) -> TokenStream {
        match &self.kind {
            Kind::Slice { element } | Kind::Atomics { element } => {
                quote!(::gridloom::callable::Param<[#element]>)
            }
            Kind::Cell { element } => quote!(::gridloom::callable::Param<#element>),
            Kind::Scalar | Kind::Local { .. } => {
                let ty = &self.ty;
                quote!(::gridloom::callable::Scalar<#ty>)
            }
        }
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
                        self.variables.push(Variable {
                            name: pat.ident.clone(),
                            ty: (*input.ty).clone(),
                            kind,
                        });
                    }
                    Pat::Ident(pat) => {
                        let message = format!(
                            "a parameter of a program does not change: remove `mut`, and copy it to a variable, `let mut {0}: T = {0};`",
                            pat.ident
                        );
                        self.refuse(pat.span(), &message);
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

    /// Declares memory for one value, and returns its name.
    fn cell(&mut self, ty: Type) -> Ident {
        let name = format_ident!("__cell{}", self.cells.len(), span = Span::call_site());
        self.cells.push((name.clone(), ty));
        name
    }

    /// Declares memory for one value that conditions and counters are kept in.
    fn hidden(&mut self, ty: Type) -> Ident {
        let name = self.cell(ty.clone());
        self.variables.push(Variable {
            name: name.clone(),
            ty: ty.clone(),
            kind: Kind::Cell { element: ty },
        });
        name
    }

    /// Returns the variables in scope that tokens use.
    fn used(&self, tokens: &TokenStream) -> Vec<&Variable> {
        let mut used: Vec<&Variable> = Vec::new();
        for variable in self.variables.iter().rev() {
            if contains(tokens, &variable.name.to_string())
                && !used.iter().any(|other| other.name == variable.name)
            {
                used.push(variable);
            }
        }
        used.reverse();
        used
    }

    /// Returns the steps of a list of statements. In a loop that statements leave, `flag` is the
    /// cell that keeps it going.
    fn steps(&mut self, stmts: &[Stmt], flag: Option<&Ident>) -> TokenStream {
        let (lets, variables) = (self.lets.len(), self.variables.len());
        let (mut out, mut pending) = (TokenStream::new(), Sequential::default());
        for (index, stmt) in stmts.iter().enumerate() {
            let rest = &stmts[index + 1..];
            if let (Some(flag), Some((cond, before))) = (flag, break_if(stmt)) {
                out.extend(self.leave_loop(pending, flag, (cond, before), rest));
                self.lets.truncate(lets);
                self.variables.truncate(variables);
                return out;
            }
            if contains(stmt, "par") {
                let Stmt::Expr(expr, _) = stmt else {
                    self.refuse(stmt.span(), "`par` is the range of a `for` loop");
                    continue;
                };
                out.extend(self.step(expr, &mut pending));
                continue;
            }
            match stmt {
                Stmt::Item(item @ (syn::Item::Const(_) | syn::Item::Use(_))) => self.items.push(item.clone()),
                Stmt::Local(local) => {
                    let is_pure = self.is_pure(local, &pending.stmts);
                    // What the name means before is computed before.
                    let names = names_of(&local.pat);
                    if names.iter().any(|name| pending.stmts.iter().any(|earlier| contains(earlier, name))) {
                        out.extend(self.sequential(std::mem::take(&mut pending)));
                    }
                    if is_pure {
                        self.bind(local);
                    } else {
                        pending.stmts.push(stmt.clone());
                        let declared = self.declare(local, &pending.declared, rest, flag.is_some());
                        pending.declared.extend(declared);
                    }
                }
                other => pending.stmts.push(other.clone()),
            }
        }
        out.extend(self.sequential(pending));
        self.lets.truncate(lets);
        self.variables.truncate(variables);
        out
    }

    /// Returns the variable that a `let` of sequential code declares, if later kernels use it.
    fn declare(
        &mut self,
        local: &syn::Local,
        pending: &[Variable],
        rest: &[Stmt],
        is_left: bool,
    ) -> Option<Variable> {
        let ends = |stmt: &Stmt| contains(stmt, "par") || is_left && break_if(stmt).is_some();
        let end = rest.iter().position(ends)?;
        let name = names_of(&local.pat).into_iter().find(|name| {
            uses_after(&rest[end], name) || rest[end + 1..].iter().any(|stmt| contains(stmt, name))
        })?;
        let span = local.pat.span();
        let declared = declared_name(local).and_then(|(ident, stated)| {
            let known = || {
                local.init.as_ref().and_then(|init| {
                    type_of(&init.expr, &|name, is_part| self.type_of(name, is_part, pending))
                })
            };
            Some((ident, stated.cloned().or_else(known)?))
        });
        let Some((ident, ty)) = declared else {
            let message = format!(
                "`{name}` lives on the device from one kernel to the next: declare it alone and with its type, `let mut {name}: T = …`, or take it as a `&mut T` parameter"
            );
            self.refuse(span, &message);
            return None;
        };
        if local.init.is_none() {
            let message =
                format!("`{name}` lives on the device from one kernel to the next: give it a value here");
            self.refuse(span, &message);
            return None;
        }
        if self.lets.iter().any(|binding| binding.names.contains(&name)) {
            self.refuse(
                span,
                &format!("`{name}` is the name of another value already: choose a different one"),
            );
            return None;
        }
        let cell = self.cell(if is_bool(&ty) { syn::parse_quote!(i32) } else { ty.clone() });
        Some(Variable { name: ident.clone(), ty, kind: Kind::Local { cell } })
    }

    /// Returns the type of a variable, or that of what it holds.
    fn type_of(&self, name: &Ident, is_part: bool, pending: &[Variable]) -> Option<Type> {
        let mut known = pending.iter().rev().chain(self.variables.iter().rev());
        let variable = known.find(|variable| variable.name == *name)?;
        if self.lets.iter().any(|binding| binding.names.iter().any(|bound| name == bound)) {
            return None;
        }
        match (&variable.kind, is_part) {
            (Kind::Slice { element } | Kind::Cell { element }, true) => Some(element.clone()),
            (Kind::Scalar | Kind::Local { .. }, false) => Some(variable.ty.clone()),
            _ => None,
        }
    }

    /// Returns whether a `let` depends on what does not change during a call: plain arguments and
    /// lengths.
    fn is_pure(&self, local: &syn::Local, pending: &[Stmt]) -> bool {
        let tokens = local.init.as_ref().map(|init| init.expr.to_token_stream()).unwrap_or_default();
        let changes = |variable: &&Variable| match variable.kind {
            Kind::Scalar => false,
            Kind::Slice { .. } | Kind::Atomics { .. } => {
                uses_contents(tokens.clone(), &variable.name.to_string())
            }
            Kind::Cell { .. } | Kind::Local { .. } => true,
        };
        // It is computed before the sequential code that it is written behind.
        let is_declared_before = pending.iter().any(|stmt| match stmt {
            Stmt::Local(earlier) => {
                let names = names_of(&earlier.pat);
                names.iter().any(|name| contains(&tokens, name) || contains(&local.pat, name))
            }
            _ => false,
        });
        !contains(&local.pat, "mut")
            && local.init.as_ref().is_some_and(|init| init.diverge.is_none())
            && !is_declared_before
            && !self.used(&tokens).iter().any(changes)
            && leaves(tokens.clone()).is_none()
    }

    fn bind(&mut self, local: &syn::Local) {
        self.lets.push(Binding { names: names_of(&local.pat), tokens: local.to_token_stream() });
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

    /// Refuses sequential code that leaves the program or a loop around it.
    fn check_leaves(&mut self, tokens: &TokenStream) {
        match leaves(tokens.clone()) {
            Some(Leaves::Return(span)) => {
                self.refuse(span, "a program runs to its end: put what follows into an `if`");
            }
            Some(Leaves::Loop(span)) => {
                self.refuse(
                    span,
                    "a loop on the device is left by a statement `if … { break; }` of its body, and not continued from within",
                );
            }
            None => {}
        }
    }
}

/// Returns whether the kernels from a statement on use a name, without the kernel before it: that
/// one tests conditions.
fn uses_after(stmt: &Stmt, name: &str) -> bool {
    match stmt {
        Stmt::Expr(Expr::If(branch), _) => {
            let is_left = break_if(stmt).is_some();
            let otherwise = branch.else_branch.as_ref().map(|(_, other)| other);
            !is_left
                && (contains(&branch.then_branch, name)
                    || otherwise.is_some_and(|other| contains(other, name)))
        }
        other => contains(other, name),
    }
}

fn is_bool(ty: &Type) -> bool {
    ty.to_token_stream().to_string() == "bool"
}
