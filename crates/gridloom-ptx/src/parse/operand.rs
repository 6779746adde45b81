//! Operands, with their names resolved.

use super::scope::Entity;
use super::{Parse, Parser, shorten};
use crate::error::closest;
use crate::lexer::{Kind, Token};
use crate::limits;
use crate::model::op::{IntArith, IntOp, RawToken};
use crate::model::{
    Address, AddressBase, Dim, DimSpecial, Dsts, Imm, LabelId, Operand, PredOperand, RegId, ScalarType, Span,
    SpecialReg, Srcs, Symbol, SymbolId, VarRef,
};

/// The meaning of an identifier among operands.
enum Name {
    Entity(Entity),
    Symbol(SymbolId),
    Special(SpecialReg),
}

impl<'a> Parser<'a> {
    /// Resolves the identifier at the cursor, with its component (`.x`) if it has one.
    fn name(&mut self) -> Parse<(Name, &'a str, Span)> {
        let (name, span) = self.ident("an operand")?;
        if let Some(entity) = self.fun.names.find(name) {
            if let Entity::Vector { first, count } = entity
                && let Some(index) = self.peek_dot().and_then(component)
                && index < count
            {
                self.advance();
                return Ok((Name::Entity(Entity::Reg(RegId(first.0 + index))), name, span));
            }
            return Ok((Name::Entity(entity), name, span));
        }
        if let Some(symbol) = self.symbols.get(name) {
            return Ok((Name::Symbol(*symbol), name, span));
        }
        let dim = self.peek_dot().and_then(Dim::from_word);
        if let Some(special) = dim.and_then(|dim| SpecialReg::from_name(name, Some(dim))) {
            self.advance();
            return Ok((Name::Special(special), name, span));
        }
        if let Some(special) = SpecialReg::from_name(name, None) {
            return Ok((Name::Special(special), name, span));
        }
        self.unknown_name(name, span)
    }

    fn unknown_name<T>(&mut self, name: &str, span: Span) -> Parse<T> {
        if DimSpecial::from_word(name).is_some() {
            return self
                .error(span, format!("`{name}` has three components: write {name}.x, {name}.y or {name}.z"));
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let range = self.fun.names.visible_ranges().find(|(prefix, _)| *prefix == stem);
        let what = if name.starts_with('%') { "register" } else { "name" };
        let help = match range {
            Some((prefix, 0)) => Some(format!("`{prefix}<0>` declares no registers")),
            Some((prefix, count)) if stem.len() < name.len() => {
                Some(format!("`{prefix}<{count}>` declares {prefix}0 to {prefix}{}", count - 1))
            }
            _ => {
                let locals = self.fun.names.visible().map(|(name, _)| name);
                closest(name, locals.chain(self.module.symbols.iter().map(Symbol::name)))
                    .map(|near| format!("did you mean `{near}`?"))
            }
        };
        self.error_with_help(span, format!("unknown {what} `{}`", shorten(name)), help)
    }

    /// Parses a source operand.
    pub(super) fn src(&mut self) -> Parse<Operand> {
        if self.at_constant() {
            return self.constant().map(Operand::Imm);
        }
        if !self.at_kind(Kind::Ident) {
            return self.expected("an operand");
        }
        let (name, text, span) = self.name()?;
        match name {
            Name::Entity(Entity::Reg(reg)) if matches!(self.kind(), Kind::Plus | Kind::Minus) => {
                self.sum(reg, span)
            }
            Name::Entity(Entity::Reg(reg)) => Ok(Operand::Reg(reg)),
            Name::Special(special) => Ok(Operand::Special(special)),
            Name::Entity(Entity::Var(base)) => self.address_operand(base),
            Name::Symbol(symbol) => self.address_operand(VarRef::Symbol(symbol)),
            Name::Entity(Entity::Vector { .. }) => {
                self.error(span, format!("`{}` is a vector; name one of its elements", shorten(text)))
            }
            Name::Entity(_) => self.error(span, format!("`{}` is a label, not a value", shorten(text))),
        }
    }

    /// Parses `%r1+4` as a value: an addition before the instruction that uses it.
    fn sum(&mut self, reg: RegId, span: Span) -> Parse<Operand> {
        let ty = match self.fun.body.registers.ty(reg) {
            ty if ty.is_float() || ty == ScalarType::Pred => {
                return self.error(span, format!("an offset from a .{ty} register"));
            }
            ty => match ty.size() {
                2 => ScalarType::U16,
                4 => ScalarType::U32,
                8 => ScalarType::U64,
                _ => return self.error(span, format!("an offset from a .{ty} register")),
            },
        };
        let offset = self.integer("an offset")?;
        let dst = self.scratch(ty, span)?;
        let (a, b) = (Operand::Reg(reg), Operand::Imm(Imm::Int(offset)));
        self.fun.sums.push(IntOp::Arith { op: IntArith::Add, ty, sat: false, relu: false, dst, a, b });
        Ok(Operand::Reg(dst))
    }

    /// Parses the offset after the name of a variable used as a value.
    fn address_operand(&mut self, base: VarRef) -> Parse<Operand> {
        let offset = self.offset(base)?;
        Ok(Operand::Address { base, offset })
    }

    /// Parses `+4`, `-4`, `[index]`, or nothing.
    fn offset(&mut self, base: VarRef) -> Parse<i64> {
        if matches!(self.kind(), Kind::Plus | Kind::Minus) {
            return self.integer("an offset");
        }
        if self.eat(Kind::LBracket) {
            let index = self.integer("an index")?;
            self.expect(Kind::RBracket, "`]`")?;
            return Ok(index.wrapping_mul(self.element_size(base)));
        }
        Ok(0)
    }

    fn element_size(&self, base: VarRef) -> i64 {
        let size = match base {
            VarRef::Symbol(id) => match self.module.symbol(id) {
                Symbol::Variable(variable) => variable.element_size(),
                Symbol::Function(_) => 1,
            },
            VarRef::Local(id) => {
                self.fun.body.locals.get(id.index()).map_or(1, |variable| variable.element_size())
            }
            VarRef::Param(_) | VarRef::Return(_) => 1,
        };
        size.cast_signed()
    }

    /// Parses a destination register. `_` becomes a new register that nothing reads.
    pub(super) fn dst(&mut self, ty: ScalarType) -> Parse<RegId> {
        let span = self.span();
        match self.opt_dst()? {
            Some(reg) => Ok(reg),
            None => self.scratch(ty, span),
        }
    }

    /// Declares a new register of type `ty`.
    pub(super) fn scratch(&mut self, ty: ScalarType, span: Span) -> Parse<RegId> {
        // It is as wide as the type, but at least 16 bits.
        let ty = match ty {
            ScalarType::Pred => ty,
            _ => match ty.size() {
                1 | 2 => ScalarType::B16,
                4 => ScalarType::B32,
                8 => ScalarType::B64,
                _ => ScalarType::B128,
            },
        };
        let name = self.fresh_name("%sink");
        self.declare_register(&name, None, ty, span)
    }

    /// Parses a destination register, or `None` for `_`.
    pub(super) fn opt_dst(&mut self) -> Parse<Option<RegId>> {
        if !self.at_kind(Kind::Ident) {
            return self.expected("a destination register");
        }
        if self.text_of(self.token()) == "_" {
            self.advance();
            return Ok(None);
        }
        self.reg("a destination register").map(Some)
    }

    /// Parses a register.
    pub(super) fn reg(&mut self, what: &str) -> Parse<RegId> {
        if !self.at_kind(Kind::Ident) {
            return self.expected(what);
        }
        let (name, text, span) = self.name()?;
        match name {
            Name::Entity(Entity::Reg(reg)) => Ok(reg),
            Name::Special(_) => self.error(span, format!("`{text}` can only be read; expected {what}")),
            _ => self.error(span, format!("expected {what}; `{}` is not a register", shorten(text))),
        }
    }

    /// Parses a predicate: `p`, `!p`, or a constant.
    pub(super) fn pred(&mut self) -> Parse<PredOperand> {
        let negated = self.at_kind(Kind::Bang) && self.token_at(1).kind == Kind::Ident;
        if negated {
            self.advance();
        }
        if !negated && self.at_constant() {
            let span = self.span();
            return match self.constant()? {
                Imm::Int(value) => Ok(PredOperand::Const(value != 0)),
                _ => self.error(span, "a predicate is not a floating point constant"),
            };
        }
        let reg = self.reg("a predicate register")?;
        Ok(PredOperand::Reg { reg, negated })
    }

    /// Parses one destination, or several in braces.
    pub(super) fn dsts(&mut self) -> Parse<Dsts> {
        if let Some((first, count)) = self.whole_vector() {
            return Ok((0..count).map(|index| Some(RegId(first.0 + index))).collect());
        }
        let mut dsts = Dsts::new();
        if !self.eat(Kind::LBrace) {
            dsts.push(self.opt_dst()?);
            return Ok(dsts);
        }
        loop {
            if dsts.len() == limits::VECTOR {
                return self.error(self.span(), format!("a vector has at most {} elements", limits::VECTOR));
            }
            dsts.push(self.opt_dst()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`}`")?;
        Ok(dsts)
    }

    /// Parses one source, or several in braces.
    pub(super) fn srcs(&mut self) -> Parse<Srcs> {
        if let Some((first, count)) = self.whole_vector() {
            return Ok((0..count).map(|index| Operand::Reg(RegId(first.0 + index))).collect());
        }
        let mut srcs = Srcs::new();
        if !self.eat(Kind::LBrace) {
            srcs.push(self.src()?);
            return Ok(srcs);
        }
        loop {
            if srcs.len() == limits::VECTOR {
                return self.error(self.span(), format!("a vector has at most {} elements", limits::VECTOR));
            }
            srcs.push(self.src()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`}`")?;
        Ok(srcs)
    }

    /// Parses a whole vector register and returns its elements.
    fn whole_vector(&mut self) -> Option<(RegId, u32)> {
        if !self.at_kind(Kind::Ident) || self.token_at(1).kind == Kind::Dot {
            return None;
        }
        match self.fun.names.find(self.text_of(self.token())) {
            Some(Entity::Vector { first, count }) => {
                self.advance();
                Some((first, count))
            }
            _ => None,
        }
    }

    /// Parses a whole special register such as `%tid` and returns its elements. There is a fourth
    /// one, which is always 0.
    pub(super) fn whole_special(&mut self) -> Option<Srcs> {
        if !self.at_kind(Kind::Ident) || self.token_at(1).kind == Kind::Dot {
            return None;
        }
        let special = DimSpecial::from_word(self.text_of(self.token()))?;
        self.advance();
        let dims = Dim::ALL.iter().map(|dim| Operand::Special(SpecialReg::Dim(special, *dim)));
        Some(dims.chain([Operand::Imm(Imm::Int(0))]).collect())
    }

    /// Parses `[base + offset]`, or the old form `name[index]`.
    pub(super) fn addr(&mut self) -> Parse<Address> {
        if self.at_kind(Kind::Ident) && self.token_at(1).kind == Kind::LBracket {
            let (base, _) = self.address_base()?;
            return Ok(base);
        }
        self.expect(Kind::LBracket, "an address such as [%rd1+8]")?;
        let address = self.addr_inner()?;
        self.expect(Kind::RBracket, "`]`")?;
        Ok(address)
    }

    /// Parses the contents of an address's brackets.
    pub(super) fn addr_inner(&mut self) -> Parse<Address> {
        if self.at_constant() {
            let offset = self.integer("an address")?;
            return Ok(Address { base: AddressBase::Absolute, offset });
        }
        self.address_base().map(|(address, _)| address)
    }

    fn address_base(&mut self) -> Parse<(Address, Span)> {
        let (name, text, span) = self.name()?;
        let (base, offset) = match name {
            Name::Entity(Entity::Reg(reg)) => {
                let signed = matches!(self.kind(), Kind::Plus | Kind::Minus);
                let offset = if signed { self.integer("an offset")? } else { 0 };
                (AddressBase::Reg(reg), offset)
            }
            Name::Entity(Entity::Var(var)) => (AddressBase::Var(var), self.offset(var)?),
            Name::Symbol(symbol) => {
                let var = VarRef::Symbol(symbol);
                (AddressBase::Var(var), self.offset(var)?)
            }
            _ => return self.error(span, format!("`{}` has no address", shorten(text))),
        };
        Ok((Address { base, offset }, span))
    }

    /// Parses the label of a branch.
    pub(super) fn label(&mut self) -> Parse<LabelId> {
        let (name, span) = self.ident("a label")?;
        if let Some(Entity::Label(label)) = self.fun.names.find(name) {
            return Ok(label);
        }
        let labels = self
            .fun
            .names
            .visible()
            .filter(|(_, entity)| matches!(entity, Entity::Label(_)))
            .map(|(name, _)| name);
        let help = closest(name, labels).map(|near| format!("did you mean `{near}`?"));
        self.error_with_help(span, format!("unknown label `{}`", shorten(name)), help)
    }

    /// Returns the meaning of a name inside the function, for names of tables and prototypes.
    pub(super) fn entity(&self, name: &str) -> Option<Entity> {
        self.fun.names.find(name)
    }

    /// Returns whether a word among operands stands for itself: `_`, `WARP_SZ`, or a whole `%tid`.
    fn is_plain_word(&self, token: Token) -> bool {
        let text = self.text_of(token);
        let whole = DimSpecial::from_word(text).is_some() && self.token_at(1).kind != Kind::Dot;
        matches!(text, "_" | "WARP_SZ") || (whole && self.fun.names.find(text).is_none())
    }

    /// Parses the operands of an instruction outside the model, up to its `;`.
    pub(super) fn raw_operands(&mut self) -> Parse<Vec<RawToken>> {
        let mut tokens = Vec::new();
        let mut braces = 0usize;
        loop {
            let token = self.token();
            match token.kind {
                Kind::Semi => return Ok(tokens),
                Kind::End | Kind::Unknown => return self.expected("`;`"),
                Kind::LBrace => braces += 1,
                Kind::RBrace if braces == 0 => return self.expected("`;`"),
                Kind::RBrace => braces -= 1,
                Kind::Ident if !self.is_plain_word(token) => {
                    let (name, _, _) = self.name()?;
                    match name {
                        Name::Special(special) => tokens.push(RawToken::Special(special)),
                        Name::Symbol(symbol) => tokens.push(RawToken::Var(VarRef::Symbol(symbol))),
                        Name::Entity(Entity::Reg(reg)) => tokens.push(RawToken::Reg(reg)),
                        Name::Entity(Entity::Var(var)) => tokens.push(RawToken::Var(var)),
                        Name::Entity(Entity::Label(label)) => tokens.push(RawToken::Label(label)),
                        Name::Entity(Entity::Vector { first, count }) => {
                            tokens.push(RawToken::Text("{".to_owned()));
                            for index in 0..count {
                                if index > 0 {
                                    tokens.push(RawToken::Text(",".to_owned()));
                                }
                                tokens.push(RawToken::Reg(RegId(first.0 + index)));
                            }
                            tokens.push(RawToken::Text("}".to_owned()));
                        }
                        Name::Entity(_) => {
                            return self.error(token.span, "a table where a value is expected");
                        }
                    }
                    continue;
                }
                _ => {}
            }
            self.advance();
            tokens.push(RawToken::Text(self.text_of(token).to_owned()));
        }
    }
}

fn component(word: &str) -> Option<u32> {
    Some(match word {
        "x" | "r" => 0,
        "y" | "g" => 1,
        "z" | "b" => 2,
        "w" | "a" => 3,
        _ => return None,
    })
}
