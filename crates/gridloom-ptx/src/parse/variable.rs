//! Declarations of variables and registers, and initial values.

use super::scope::{Entity, Members};
use super::{Parse, Parser, shorten};
use crate::lexer::Kind;
use crate::limits;
use crate::model::{
    Attribute, Linkage, LocalVarId, PointerAttr, RegId, ScalarType, Span, SpecialReg, Symbol, VarRef,
    VarSpace, Variable,
};

/// The part of a declaration before the name.
pub(super) struct Header {
    pub(super) linkage: Linkage,
    pub(super) space: VarSpace,
    align: Option<u32>,
    ty: ScalarType,
    vector: u32,
    attributes: Vec<Attribute>,
    pub(super) pointer: Option<PointerAttr>,
}

impl<'a> Parser<'a> {
    /// Parses the words between the state space and the name: `.align 8 .v2 .f32`, in any order.
    pub(super) fn header(&mut self, linkage: Linkage, space: VarSpace) -> Parse<Header> {
        let mut header = Header {
            linkage,
            space,
            align: None,
            ty: ScalarType::B8,
            vector: 1,
            attributes: Vec::new(),
            pointer: None,
        };
        let mut ty = None;
        // The bank of `.const[3]`.
        if self.eat(Kind::LBracket) {
            self.integer("a constant bank")?;
            self.expect(Kind::RBracket, "`]`")?;
        }
        while let Some(word) = self.peek_dot() {
            let span = self.span();
            self.advance();
            match word {
                "align" => header.align = Some(self.alignment()?),
                "attribute" => self.attributes(&mut header.attributes)?,
                "v2" => header.vector = 2,
                "v4" => header.vector = 4,
                "v8" => header.vector = 8,
                "ptr" => header.pointer = Some(self.pointer()?),
                _ => match ScalarType::from_word(word) {
                    Some(found) if ty.is_none() => ty = Some(found),
                    Some(_) => return self.error(span, "a variable has one type; this is its second"),
                    None => return self.error(span, format!("`.{}` is not a type", shorten(word))),
                },
            }
        }
        match ty {
            Some(ty) => header.ty = ty,
            None => return self.expected("a type such as .b32"),
        }
        Ok(header)
    }

    fn alignment(&mut self) -> Parse<u32> {
        let span = self.span();
        let align = self.small("an alignment")?;
        if align.is_power_of_two() {
            Ok(align)
        } else {
            self.error(span, format!("an alignment is a power of two, not {align}"))
        }
    }

    /// Parses what follows `.ptr`: the space pointed to, and its alignment.
    fn pointer(&mut self) -> Parse<PointerAttr> {
        let mut pointer = PointerAttr { space: None, align: None };
        while let Some(word) = self.peek_dot() {
            match word {
                "global" | "const" | "shared" | "local" | "param" => {
                    pointer.space = VarSpace::from_word(word)
                }
                "align" => {
                    self.advance();
                    pointer.align = Some(self.alignment()?);
                    continue;
                }
                _ => break,
            }
            self.advance();
        }
        Ok(pointer)
    }

    /// Parses the list in parentheses after `.attribute`.
    pub(super) fn attributes(&mut self, attributes: &mut Vec<Attribute>) -> Parse<()> {
        self.expect(Kind::LParen, "`(`")?;
        loop {
            let span = self.span();
            match self.peek_dot() {
                Some("managed") => {
                    self.advance();
                    attributes.push(Attribute::Managed);
                }
                Some("unified") => {
                    self.advance();
                    self.expect(Kind::LParen, "`(`")?;
                    let high = self.integer("a number")?;
                    self.comma()?;
                    let low = self.integer("a number")?;
                    self.expect(Kind::RParen, "`)`")?;
                    attributes.push(Attribute::Unified(high.cast_unsigned(), low.cast_unsigned()));
                }
                Some(word) => {
                    return self.error_with_help(
                        span,
                        format!("unknown attribute `.{}`", shorten(word)),
                        Some("PTX has .managed and .unified".to_owned()),
                    );
                }
                None => return self.expected("an attribute such as .managed"),
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`)`").map(|_| ())
    }

    /// Parses the rest of a declaration after its name: dimensions.
    pub(super) fn declarator(&mut self, header: &Header, name: &str, span: Span) -> Parse<Variable> {
        let mut dims = Vec::new();
        while self.at_kind(Kind::LBracket) {
            let at = self.span();
            self.advance();
            if dims.len() >= limits::DIMENSIONS {
                return self.error(at, format!("an array has at most {} dimensions", limits::DIMENSIONS));
            }
            if self.eat(Kind::RBracket) {
                if !dims.is_empty() {
                    return self.error(at, "only the first dimension of an array can be left open");
                }
                dims.push(None);
                continue;
            }
            let size_at = self.span();
            let size = self.integer("the size of the array")?;
            let Ok(size) = u64::try_from(size) else {
                return self.error(size_at, format!("an array cannot have {size} elements"));
            };
            dims.push(Some(size));
            self.expect(Kind::RBracket, "`]`")?;
        }
        let variable = Variable {
            name: name.to_owned(),
            linkage: header.linkage,
            space: header.space,
            align: header.align,
            ty: header.ty,
            vector: header.vector,
            dims,
            init: None,
            attributes: header.attributes.clone(),
            span,
        };
        if element_count(&variable).is_none_or(|count| {
            count
                .checked_mul(u64::from(variable.ty.size()))
                .is_none_or(|bytes| bytes > limits::VARIABLE_BYTES)
        }) {
            return self
                .error(span, format!("`{}` is larger than {} bytes", shorten(name), limits::VARIABLE_BYTES));
        }
        Ok(variable)
    }

    /// Parses variables at module scope, after the state space, up to and including `;`.
    pub(super) fn module_variables(&mut self, linkage: Linkage, space: VarSpace) -> Parse<()> {
        let header = self.header(linkage, space)?;
        loop {
            let (name, span) = self.ident("a name")?;
            let mut variable = self.declarator(&header, name, span)?;
            self.initializer(&mut variable)?;
            self.declare_symbol(name, span, Symbol::Variable(variable))?;
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`;`").map(|_| ())
    }

    /// Parses variables inside a function, after the state space, up to and including `;`.
    pub(super) fn local_variables(&mut self, linkage: Linkage, space: VarSpace) -> Parse<()> {
        let header = self.header(linkage, space)?;
        loop {
            let (name, span) = self.ident("a name")?;
            if self.at_kind(Kind::Less) {
                self.local_range(&header, name, span)?;
                if !self.eat(Kind::Comma) {
                    break;
                }
                continue;
            }
            let mut variable = self.declarator(&header, name, span)?;
            self.initializer(&mut variable)?;
            self.declare_local(name, variable)?;
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`;`").map(|_| ())
    }

    /// Parses `name<n>` of a variable in memory: n variables.
    fn local_range(&mut self, header: &Header, name: &'a str, span: Span) -> Parse<()> {
        let count = self.range()?;
        if self.fun.names.range_declared_here(name) {
            return self.error(span, format!("`{}<...>` is declared twice", shorten(name)));
        }
        let room =
            limits::LOCAL_RANGE.saturating_sub(u32::try_from(self.fun.body.locals.len()).unwrap_or(u32::MAX));
        if count > room {
            return self.error(span, format!("ranges declare at most {} variables", limits::LOCAL_RANGE));
        }
        // Every member has its own name, so a long name would be multiplied.
        if name.len() > limits::RANGE_NAME {
            return self.error(span, format!("the name of a range has at most {} bytes", limits::RANGE_NAME));
        }
        let first = LocalVarId(u32::try_from(self.fun.body.locals.len()).unwrap_or(u32::MAX));
        let variable = self.declarator(header, name, span)?;
        for _ in 0..count {
            let name = self.fresh_name(name);
            self.fun.body.locals.push(Variable { name, ..variable.clone() });
        }
        self.fun.names.insert_range(name, Members::Locals(first), count);
        Ok(())
    }

    fn range(&mut self) -> Parse<u32> {
        self.expect(Kind::Less, "`<`")?;
        let count = self.small_primary()?;
        self.expect(Kind::Greater, "`>`")?;
        Ok(count)
    }

    /// Parses a plain integer. An expression would take the `>` that ends a range as an operator.
    fn small_primary(&mut self) -> Parse<u32> {
        let token = self.expect(Kind::Int, "the number of registers")?;
        let text = self.text_of(token);
        match text.parse::<u32>() {
            Ok(value) => Ok(value),
            Err(_) => self.error(token.span, format!("`{}` is not a number of registers", shorten(text))),
        }
    }

    fn declare_local(&mut self, name: &'a str, mut variable: Variable) -> Parse<()> {
        if self.fun.names.declared_here(name) {
            return self.error(variable.span, format!("`{}` is declared twice in this scope", shorten(name)));
        }
        variable.name = self.unique_name(name, false);
        let id = LocalVarId(u32::try_from(self.fun.body.locals.len()).unwrap_or(u32::MAX));
        self.fun.body.locals.push(variable);
        self.fun.names.insert(name, Entity::Var(VarRef::Local(id)));
        Ok(())
    }

    pub(super) fn unique_name(&mut self, name: &str, is_range: bool) -> String {
        let symbols = &self.symbols;
        // A special register must keep its name, because the function may read it elsewhere.
        self.fun
            .names
            .unique(name, is_range, |name| symbols.contains_key(name) || SpecialReg::is_reserved(name))
    }

    pub(super) fn fresh_name(&mut self, name: &str) -> String {
        let symbols = &self.symbols;
        self.fun.names.fresh(name, |name| symbols.contains_key(name))
    }

    /// Parses types and names after `.reg`, up to and including `;`.
    pub(super) fn registers(&mut self) -> Parse<()> {
        let header = self.header(Linkage::Internal, VarSpace::Reg)?;
        loop {
            let (name, span) = self.ident("the name of a register")?;
            if self.at_kind(Kind::Less) {
                let count = self.range()?;
                if self.fun.names.range_declared_here(name) {
                    return self.error(span, format!("`{}<...>` is declared twice", shorten(name)));
                }
                let members = if header.vector == 1 {
                    let unique = self.unique_name(name, true);
                    Members::Regs(self.declare_register(&unique, Some(count), header.ty, span)?)
                } else {
                    // The elements of all vectors follow each other.
                    let unique = self.fresh_name(name);
                    let elements = count.saturating_mul(header.vector);
                    Members::Vectors(
                        self.declare_register(&unique, Some(elements), header.ty, span)?,
                        header.vector,
                    )
                };
                self.fun.names.insert_range(name, members, count);
            } else {
                self.register(name, span, header.ty, header.vector)?;
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`;`").map(|_| ())
    }

    /// Declares one register, or the elements of one vector register.
    pub(super) fn register(
        &mut self,
        name: &'a str,
        span: Span,
        ty: ScalarType,
        vector: u32,
    ) -> Parse<RegId> {
        if self.fun.names.declared_here(name) {
            return self.error(span, format!("`{}` is declared twice in this scope", shorten(name)));
        }
        if vector == 1 {
            let unique = self.unique_name(name, false);
            let reg = self.declare_register(&unique, None, ty, span)?;
            self.fun.names.insert(name, Entity::Reg(reg));
            return Ok(reg);
        }
        let mut first = None;
        for suffix in ["x", "y", "z", "w", "e4", "e5", "e6", "e7"].iter().take(vector as usize) {
            let unique = self.fresh_name(&format!("{name}${suffix}"));
            let reg = self.declare_register(&unique, None, ty, span)?;
            first.get_or_insert(reg);
        }
        let first = first.unwrap_or(RegId(0));
        self.fun.names.insert(name, Entity::Vector { first, count: vector });
        Ok(first)
    }

    /// Adds to the register table, within the limit.
    pub(super) fn declare_register(
        &mut self,
        name: &str,
        range: Option<u32>,
        ty: ScalarType,
        span: Span,
    ) -> Parse<RegId> {
        let count = u32::try_from(self.fun.body.registers.len()).unwrap_or(u32::MAX);
        let declared = count.checked_add(range.unwrap_or(1)).is_some_and(|total| total <= limits::REGISTERS);
        match declared.then(|| self.fun.body.registers.declare(name, range, ty, span)).flatten() {
            Some(first) => Ok(first),
            None => self.error(span, format!("a function has at most {} registers", limits::REGISTERS)),
        }
    }
}

/// Returns the number of elements of a variable, including those of vectors, or `None` on overflow.
pub(super) fn element_count(variable: &Variable) -> Option<u64> {
    variable
        .dims
        .iter()
        .try_fold(u64::from(variable.vector), |count, dim| count.checked_mul(dim.unwrap_or(1)))
}
