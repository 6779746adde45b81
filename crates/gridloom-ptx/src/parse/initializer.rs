//! Initial values of variables.

use super::variable::element_count;
use super::{Parse, Parser};
use crate::lexer::{Kind, Token};
use crate::model::{Image, Imm, Initializer, Relocation, ScalarType, Span, Symbol, Variable};

impl Parser<'_> {
    /// Parses `= value`, if there is one.
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
        // The number of elements below each level of braces. A vector is one more level.
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
        // A list must not exceed the part of the array it stands for.
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

    /// Leaves elements zero up to `to`, within the module's limit.
    fn skip_elements(&mut self, fill: &mut Fill, to: u64, list: Span) -> Parse<()> {
        let bytes = to.saturating_sub(fill.at).saturating_mul(fill.element);
        match self.padding_left.checked_sub(bytes) {
            Some(left) => self.padding_left = left,
            None => return self.error(list, "initial values leave too much of their variables out"),
        }
        fill.at = fill.at.max(to);
        Ok(())
    }

    /// Parses one value: a constant, an address, or a byte of an address.
    fn init_value(&mut self, fill: &mut Fill) -> Parse<()> {
        let offset = fill.at * fill.element;
        let end = usize::try_from(offset + fill.element).unwrap_or(usize::MAX);
        let masked = self.at_kind(Kind::Int) && self.token_at(1).kind == Kind::LParen;
        let address = self.at_kind(Kind::Ident) && !self.at_constant();
        // Skipped bytes are zero. `skip_elements` limits their number.
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

    /// Parses `x`, `x+4`, `generic(x)+4` and, with a mask before it, `0xFF00(x)`.
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

    fn int_mask(&self, token: Token) -> Option<u64> {
        let text = self.text_of(token).trim_end_matches(['u', 'U']);
        match text.get(..2) {
            Some("0x" | "0X") => u64::from_str_radix(text.get(2..)?, 16).ok(),
            _ => text.parse().ok(),
        }
    }

    /// Parses `{ addr_mode_0 = wrap, … }` of a texture, sampler or surface reference.
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
    /// The number of elements of the variable, or `None` if its list determines it.
    total: Option<u64>,
    ty: ScalarType,
    element: u64,
}

/// Returns the bytes of a constant as an element of type `ty`.
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
