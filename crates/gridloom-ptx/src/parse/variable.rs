//! Declarations of variables and registers, and initial values.

use super::scope::Entity;
use super::{Parse, Parser, shorten};
use crate::lexer::Kind;
use crate::limits;
use crate::model::{
    Attribute, Image, Imm, Initializer, Linkage, LocalVarId, PointerAttr, RegId, Relocation, ScalarType,
    Span, Symbol, VarRef, VarSpace, Variable,
};

/// What stands before the name in a declaration.
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
    /// The words between the state space and the name: `.align 8 .v2 .f32`, in any order.
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

    /// After `.ptr`: the space pointed to, and its alignment.
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

    /// After `.attribute`: the list in parentheses.
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

    /// The rest of a declaration after its name: dimensions.
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

    /// Variables at module scope, after the state space, up to and including `;`.
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

    /// Variables inside a function, after the state space, up to and including `;`.
    pub(super) fn local_variables(&mut self, linkage: Linkage, space: VarSpace) -> Parse<()> {
        let header = self.header(linkage, space)?;
        loop {
            let (name, span) = self.ident("a name")?;
            if self.at_kind(Kind::Less) {
                return self.error(span, "only registers can be declared as a range");
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

    fn range(&mut self) -> Parse<u32> {
        self.expect(Kind::Less, "`<`")?;
        let count = self.small_primary()?;
        self.expect(Kind::Greater, "`>`")?;
        Ok(count)
    }

    /// A plain integer; an expression would take the `>` that ends a range for an operator.
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
        self.fun.names.unique(name, is_range, |name| symbols.contains_key(name))
    }

    pub(super) fn fresh_name(&mut self, name: &str) -> String {
        let symbols = &self.symbols;
        self.fun.names.fresh(name, |name| symbols.contains_key(name))
    }

    /// After `.reg`: types and names, up to and including `;`.
    pub(super) fn registers(&mut self) -> Parse<()> {
        let header = self.header(Linkage::Internal, VarSpace::Reg)?;
        loop {
            let (name, span) = self.ident("the name of a register")?;
            if self.at_kind(Kind::Less) {
                let count = self.range()?;
                if header.vector != 1 {
                    return self.error(span, "a range of vector registers; declare them one by one");
                }
                if self.fun.names.range_declared_here(name) {
                    return self.error(span, format!("`{}<...>` is declared twice", shorten(name)));
                }
                let unique = self.unique_name(name, true);
                let first = self.declare_register(&unique, Some(count), header.ty, span)?;
                self.fun.names.insert_range(name, first, count);
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

    /// Adds to the register table, within the bound.
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

    // --- initial values ---

    /// `= value`, if there is one.
    pub(super) fn initializer(&mut self, variable: &mut Variable) -> Parse<()> {
        if !self.eat(Kind::Eq) {
            return Ok(());
        }
        if matches!(variable.ty, ScalarType::TexRef | ScalarType::SamplerRef | ScalarType::SurfRef) {
            variable.init = Some(self.opaque_fields()?);
            return Ok(());
        }
        if variable.ty == ScalarType::Pred {
            return self.error(variable.span, "a predicate cannot have an initial value");
        }
        let element = u64::from(variable.ty.size());
        // Elements below each level of braces; a vector is one level more.
        let mut counts: Vec<u64> = Vec::new();
        let mut below = 1u64;
        if variable.vector > 1 {
            counts.push(below);
            below *= u64::from(variable.vector);
        }
        for dim in variable.dims.iter().rev() {
            counts.push(below);
            below = below.saturating_mul(dim.unwrap_or(0));
        }
        counts.reverse();
        let open = variable.is_unsized();
        let total = if open { None } else { element_count(variable) };
        let mut fill = Fill { image: Image::default(), at: 0, total, ty: variable.ty, element };
        if self.at_kind(Kind::LBrace) {
            self.init_list(&mut fill, &counts, 0)?;
        } else {
            if !counts.is_empty() {
                return self.expected("`{`: an array or vector starts as a list");
            }
            self.init_value(&mut fill)?;
        }
        if open && let Some(first) = variable.dims.first_mut() {
            let stride = counts.first().copied().unwrap_or(1).max(1);
            *first = Some(fill.at.div_ceil(stride));
        }
        variable.init = Some(Initializer::Data(fill.image));
        Ok(())
    }

    fn init_list(&mut self, fill: &mut Fill, counts: &[u64], level: usize) -> Parse<()> {
        let open = self.span();
        self.expect(Kind::LBrace, "`{`")?;
        let start = fill.at;
        // A list may not reach beyond the part of the array it stands for.
        let end = if level == 0 {
            fill.total
        } else {
            counts.get(level - 1).map(|count| start.saturating_add(*count))
        };
        while !self.at_kind(Kind::RBrace) {
            if end.is_some_and(|end| fill.at >= end) {
                return self.error(self.span(), "more values than the variable has elements");
            }
            if self.at_kind(Kind::LBrace) {
                if level + 1 >= counts.len() {
                    return self.error(self.span(), "more braces than the variable has dimensions");
                }
                let stride = counts[level].max(1);
                let start = fill.at.next_multiple_of(stride);
                self.skip_elements(fill, start, open)?;
                self.init_list(fill, counts, level + 1)?;
                self.skip_elements(fill, start.saturating_add(stride), open)?;
            } else {
                self.init_value(fill)?;
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`}`").map(|_| ())
    }

    /// Leaves elements zero up to `to`, within the module's bound.
    fn skip_elements(&mut self, fill: &mut Fill, to: u64, list: Span) -> Parse<()> {
        let bytes = to.saturating_sub(fill.at).saturating_mul(fill.element);
        match self.padding_left.checked_sub(bytes) {
            Some(left) => self.padding_left = left,
            None => return self.error(list, "initial values leave too much of their variables out"),
        }
        fill.at = fill.at.max(to);
        Ok(())
    }

    /// One value: a constant, or an address, or a byte of an address.
    fn init_value(&mut self, fill: &mut Fill) -> Parse<()> {
        let offset = fill.at * fill.element;
        let end = usize::try_from(offset + fill.element).unwrap_or(usize::MAX);
        let masked = self.at_kind(Kind::Int) && self.token_at(1).kind == Kind::LParen;
        let address = self.at_kind(Kind::Ident) && !self.at_constant();
        // What was skipped over is zero; `skip_elements` bounds it.
        fill.image.bytes.resize(end, 0);
        if masked || address {
            let mut relocation = self.relocation(masked)?;
            relocation.offset = offset;
            relocation.size = u32::try_from(fill.element).unwrap_or(8);
            fill.image.relocations.push(relocation);
        } else {
            let value = self.constant()?;
            let bytes = encode(value, fill.ty);
            let start = end.saturating_sub(bytes.len());
            fill.image.bytes[start..].copy_from_slice(&bytes);
        }
        fill.at += 1;
        Ok(())
    }

    /// `x`, `x+4`, `generic(x)+4`, and with a mask before it, `0xFF00(x)`.
    fn relocation(&mut self, masked: bool) -> Parse<Relocation> {
        let mut byte = None;
        if masked {
            let span = self.span();
            let token = self.advance();
            let mask = match self.int_mask(token) {
                Some(mask) => mask,
                None => return self.error(span, "expected a mask such as 0xFF00"),
            };
            match (0..8u8).find(|byte| mask == 0xffu64 << (8 * byte)) {
                Some(found) => byte = Some(found),
                None => return self.error(span, "a mask selects one byte: 0xFF, 0xFF00, 0xFF0000 and so on"),
            }
            self.expect(Kind::LParen, "`(`")?;
        }
        let (mut name, mut span) = self.ident("a variable or function")?;
        let generic = name == "generic" && self.at_kind(Kind::LParen);
        let mut addend = 0i64;
        if generic {
            self.advance();
            (name, span) = self.ident("a variable or function")?;
            if matches!(self.kind(), Kind::Plus | Kind::Minus) {
                addend = self.integer("an offset")?;
            }
            self.expect(Kind::RParen, "`)`")?;
        }
        let Some(symbol) = self.symbols.get(name).copied() else {
            return self.unknown_symbol(name, span);
        };
        if matches!(self.kind(), Kind::Plus | Kind::Minus) {
            addend = addend.wrapping_add(self.integer("an offset")?);
        } else if self.eat(Kind::LBracket) {
            let index = self.integer("an index")?;
            self.expect(Kind::RBracket, "`]`")?;
            let element = match self.module.symbol(symbol) {
                Symbol::Variable(variable) => variable.element_size().cast_signed(),
                Symbol::Function(_) => 1,
            };
            addend = addend.wrapping_add(index.wrapping_mul(element));
        }
        if masked {
            self.expect(Kind::RParen, "`)`")?;
        }
        Ok(Relocation { offset: 0, size: 0, symbol, addend, generic, byte })
    }

    fn int_mask(&self, token: crate::lexer::Token) -> Option<u64> {
        let text = self.text_of(token).trim_end_matches(['u', 'U']);
        match text.get(..2) {
            Some("0x" | "0X") => u64::from_str_radix(text.get(2..)?, 16).ok(),
            _ => text.parse().ok(),
        }
    }

    /// `{ addr_mode_0 = wrap, … }` of a texture, sampler or surface reference.
    fn opaque_fields(&mut self) -> Parse<Initializer> {
        self.expect(Kind::LBrace, "`{`")?;
        let mut fields = Vec::new();
        while !self.at_kind(Kind::RBrace) {
            let (name, _) = self.ident("a field")?;
            self.expect(Kind::Eq, "`=`")?;
            let token = self.token();
            if !matches!(token.kind, Kind::Ident | Kind::Int) {
                return self.expected("a value");
            }
            self.advance();
            fields.push((name.to_owned(), self.text_of(token).to_owned()));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`}`")?;
        Ok(Initializer::Opaque(fields))
    }
}

/// The state of filling a variable's image.
struct Fill {
    image: Image,
    /// The next element.
    at: u64,
    /// Elements of the variable, unless it is as long as its list.
    total: Option<u64>,
    ty: ScalarType,
    element: u64,
}

/// Elements of a variable, vectors' elements counted; `None` if they overflow.
fn element_count(variable: &Variable) -> Option<u64> {
    variable
        .dims
        .iter()
        .try_fold(u64::from(variable.vector), |count, dim| count.checked_mul(dim.unwrap_or(1)))
}

/// The bytes of a constant as an element of type `ty`.
fn encode(value: Imm, ty: ScalarType) -> Vec<u8> {
    let bits: u64 = match (value, ty.size()) {
        (Imm::Int(_), 4) if ty.is_float() => u64::from(value.to_f32_bits()),
        (Imm::Int(_), 8) if ty.is_float() => value.to_f64_bits(),
        (Imm::Int(value), _) => value.cast_unsigned(),
        (Imm::F32(bits), 8) if !ty.is_float() => u64::from(bits),
        (_, 8 | 16) => value.to_f64_bits(),
        _ => u64::from(value.to_f32_bits()),
    };
    let mut bytes = bits.to_le_bytes().to_vec();
    bytes.resize(ty.size() as usize, 0);
    bytes
}
