//! Functions: signature and directives.

use super::body::FunctionState;
use super::scope::Entity;
use super::{Parse, Parser, shorten};
use crate::lexer::Kind;
use crate::model::{
    Directives, Function, FunctionKind, Item, Linkage, Param, ParamId, RegId, Span, Symbol, VarRef, VarSpace,
};

/// The list that a parameter is in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Return,
    Param,
}

impl<'a> Parser<'a> {
    /// Parses a function after `.entry` or `.func`: the signature, directives, and a body or `;`.
    pub(super) fn function(&mut self, kind: FunctionKind, linkage: Linkage) -> Parse<()> {
        let mut attributes = Vec::new();
        let mut directives = Directives::default();
        loop {
            if self.eat_dot("attribute") {
                self.attributes(&mut attributes)?;
            } else if self.eat_dot("noreturn") {
                directives.noreturn = true;
            } else {
                break;
            }
        }
        let mut registers = 0;
        let returns =
            if self.at_kind(Kind::LParen) { self.params(Role::Return, &mut registers)? } else { Vec::new() };
        let (name, span) = self.ident("the name of the function")?;
        let params =
            if self.at_kind(Kind::LParen) { self.params(Role::Param, &mut registers)? } else { Vec::new() };
        self.directives(&mut directives)?;
        let function = Function {
            name: name.to_owned(),
            kind,
            linkage,
            attributes,
            returns: returns.iter().map(|(_, param)| param.clone()).collect(),
            params: params.iter().map(|(_, param)| param.clone()).collect(),
            directives,
            body: None,
            alias_of: None,
            span,
        };
        if self.eat(Kind::Semi) {
            return self.declare_symbol(name, span, Symbol::Function(Box::new(function))).map(|_| ());
        }
        if !self.at_kind(Kind::LBrace) {
            return self.expected("`{` or `;` after the signature of a function");
        }
        self.define(name, span, function, &returns, &params)
    }

    /// Parses the body and adds it to the function's symbol.
    fn define(
        &mut self,
        name: &'a str,
        span: Span,
        function: Function,
        returns: &[(&'a str, Param)],
        params: &[(&'a str, Param)],
    ) -> Parse<()> {
        // The symbol is declared first, because a function may call itself.
        let id = self.declare_symbol(name, span, Symbol::Function(Box::new(function.clone())))?;
        if let Symbol::Function(old) = &self.module.symbols[id.index()]
            && old.body.is_some()
        {
            return self.error(span, format!("`{}` is defined twice", shorten(name)));
        }
        self.module.items.pop();
        self.module.items.push(Item::Define(id));
        self.fun = FunctionState::default();
        self.fun.names.open();
        let mut ok = true;
        for (list, role) in [(returns, Role::Return), (params, Role::Param)] {
            for (index, (name, param)) in list.iter().enumerate() {
                ok &= self.declare_param(name, param, role, index).is_ok();
            }
        }
        let body = self.function_body();
        let state = std::mem::take(&mut self.fun);
        body?;
        if let Symbol::Function(symbol) = &mut self.module.symbols[id.index()] {
            symbol.body = Some(Box::new(state.body));
        }
        if ok { Ok(()) } else { Err(super::Stop::Reported) }
    }

    /// Declares a formal parameter in the body.
    fn declare_param(&mut self, name: &'a str, param: &Param, role: Role, index: usize) -> Parse<()> {
        let span = param.var.span;
        if name != "_" && self.fun.names.declared_here(name) {
            return self.error(span, format!("two parameters are named `{}`", shorten(name)));
        }
        if param.register.is_some() {
            // Its name in the register table must be the one in the signature, even if the module
            // also uses it.
            self.fun.names.unique(name, false, |_| false);
            let reg = self.declare_register(name, None, param.var.ty, span)?;
            self.fun.names.insert(name, Entity::Reg(reg));
            return Ok(());
        }
        if name == "_" {
            return Ok(());
        }
        let id = ParamId(u32::try_from(index).unwrap_or(u32::MAX));
        let place = if role == Role::Return { VarRef::Return(id) } else { VarRef::Param(id) };
        // Reserves the name, so that no inner declaration takes it when scopes are flattened.
        self.fun.names.unique(name, false, |_| false);
        self.fun.names.insert(name, Entity::Var(place));
        Ok(())
    }

    /// Parses a list of parameters in parentheses. `registers` counts those that are registers.
    pub(super) fn params(&mut self, role: Role, registers: &mut u32) -> Parse<Vec<(&'a str, Param)>> {
        self.expect(Kind::LParen, "`(`")?;
        let mut params = Vec::new();
        let mut end = 0u64;
        while !self.at_kind(Kind::RParen) {
            let space = match self.peek_dot() {
                Some("param") => VarSpace::Param,
                Some("reg") => VarSpace::Reg,
                _ => return self.expected(".param"),
            };
            self.advance();
            let header = self.header(Linkage::Internal, space)?;
            // Prototypes may omit the name.
            let (name, span) =
                if self.at_kind(Kind::Ident) { self.ident("a name")? } else { ("_", self.span()) };
            let var = self.declarator(&header, name, span)?;
            let mut register = None;
            if space == VarSpace::Reg {
                if var.vector != 1 || !var.dims.is_empty() {
                    return self.error(span, "a register parameter is a scalar");
                }
                register = Some(RegId(*registers));
                *registers += 1;
            }
            let align = var.alignment().max(1);
            let offset = end.checked_next_multiple_of(align).unwrap_or(end);
            end = offset.saturating_add(var.size());
            params.push((name, Param { var, pointer: header.pointer, register, offset }));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, if role == Role::Return { "`)` after the return values" } else { "`)`" })?;
        Ok(params)
    }

    /// Parses the directives after a signature.
    fn directives(&mut self, directives: &mut Directives) -> Parse<()> {
        while let Some(word) = self.peek_dot() {
            self.advance();
            match word {
                "maxntid" => directives.maxntid = Some(self.extent()?),
                "reqntid" => directives.reqntid = Some(self.extent()?),
                "reqnctapercluster" => directives.reqnctapercluster = Some(self.extent()?),
                "minnctapersm" => directives.minnctapersm = Some(self.small("a number of blocks")?),
                "maxnctapersm" => directives.maxnctapersm = Some(self.small("a number of blocks")?),
                "maxnreg" => directives.maxnreg = Some(self.small("a number of registers")?),
                "maxclusterrank" => directives.maxclusterrank = Some(self.small("a number of blocks")?),
                "abi_preserve" => directives.abi_preserve = Some(self.small("a number of registers")?),
                "abi_preserve_control" => {
                    directives.abi_preserve_control = Some(self.small("a number of registers")?);
                }
                "noreturn" => directives.noreturn = true,
                "explicitcluster" => directives.explicitcluster = true,
                "blocksareclusters" => directives.blocksareclusters = true,
                "pragma" => {
                    let texts = self.pragma()?;
                    directives.pragmas.extend(texts);
                }
                _ => {
                    let mut numbers = Vec::new();
                    while self.at_constant() {
                        numbers.push(self.integer("a number")?);
                        if !self.eat(Kind::Comma) {
                            break;
                        }
                    }
                    directives.other.push((word.to_owned(), numbers));
                }
            }
        }
        Ok(())
    }

    /// Parses one to three numbers.
    fn extent(&mut self) -> Parse<[u32; 3]> {
        let mut extent = [1; 3];
        for (index, dim) in extent.iter_mut().enumerate() {
            if index > 0 && !self.eat(Kind::Comma) {
                break;
            }
            *dim = self.small("a number of threads or blocks")?;
        }
        Ok(extent)
    }
}
