//! `.file`, `.loc` and `.section`.

use super::{Parse, Parser, shorten};
use crate::lexer::Kind;
use crate::model::{InlinedAt, Section, SectionData, SectionItem, SectionValue, SourceFile, SourceLocation};

impl Parser<'_> {
    /// Parses the rest of a statement after `.file`.
    pub(super) fn file(&mut self) -> Parse<()> {
        let index = self.debug_number()?;
        let name = self.string()?;
        let mut stamp = None;
        if self.eat(Kind::Comma) {
            let time = self.integer("a time stamp")?.cast_unsigned();
            self.comma()?;
            let size = self.integer("a size")?.cast_unsigned();
            stamp = Some((time, size));
        }
        self.eat(Kind::Semi);
        self.module.files.push(SourceFile { index, name, stamp });
        Ok(())
    }

    /// Parses the rest of a statement after `.loc`. It has no terminator.
    pub(super) fn location(&mut self) -> Parse<SourceLocation> {
        let file = self.debug_number()?;
        let line = self.debug_number()?;
        let column = if self.at_kind(Kind::Int) { self.debug_number()? } else { 0 };
        let mut location = SourceLocation { file, line, column, inlined: None };
        if self.eat(Kind::Comma) {
            let (word, span) = self.ident("`function_name`")?;
            if word != "function_name" {
                return self.error(span, format!("expected `function_name`, found `{}`", shorten(word)));
            }
            let function_label = self.section_name()?;
            let mut function_offset = 0;
            if matches!(self.kind(), Kind::Plus | Kind::Minus) {
                function_offset = self.integer("an offset")?;
            }
            self.comma()?;
            let (word, span) = self.ident("`inlined_at`")?;
            if word != "inlined_at" {
                return self.error(span, format!("expected `inlined_at`, found `{}`", shorten(word)));
            }
            let (file, line, column) = (self.debug_number()?, self.debug_number()?, self.debug_number()?);
            location.inlined =
                Some(Box::new(InlinedAt { function_label, function_offset, file, line, column }));
        }
        self.eat(Kind::Semi);
        Ok(location)
    }

    /// Parses a plain number. An expression could extend into the next statement.
    fn debug_number(&mut self) -> Parse<u32> {
        let token = self.expect(Kind::Int, "a number")?;
        match self.text_of(token).parse() {
            Ok(value) => Ok(value),
            Err(_) => {
                let message = format!("`{}` is not a 32-bit number", shorten(self.text_of(token)));
                self.error(token.span, message)
            }
        }
    }

    /// Parses a label or the name of a section.
    fn section_name(&mut self) -> Parse<String> {
        let token = self.token();
        if !matches!(token.kind, Kind::Ident | Kind::Dot) {
            return self.expected("a label");
        }
        self.advance();
        Ok(self.text_of(token).to_owned())
    }

    /// Parses a section after `.section`: its name, and its lines in braces.
    pub(super) fn section(&mut self) -> Parse<()> {
        let name = self.section_name()?;
        let mut section = Section { name, items: Vec::new() };
        self.expect(Kind::LBrace, "`{`")?;
        while !self.eat(Kind::RBrace) {
            let token = self.token();
            match token.kind {
                Kind::Ident => {
                    self.advance();
                    self.expect(Kind::Colon, "`:` after a label")?;
                    section.items.push(SectionItem::Label(self.text_of(token).to_owned()));
                }
                Kind::Dot => {
                    let width = match self.text_of(token) {
                        ".b8" => 1,
                        ".b16" => 2,
                        ".b32" => 4,
                        ".b64" => 8,
                        _ => return self.expected(".b8, .b16, .b32 or .b64"),
                    };
                    self.advance();
                    let mut values = vec![self.section_value()?];
                    while self.eat(Kind::Comma) {
                        values.push(self.section_value()?);
                    }
                    self.eat(Kind::Semi);
                    section.items.push(SectionItem::Data(SectionData { width, values }));
                }
                _ => return self.expected("a label or values"),
            }
        }
        self.module.sections.push(section);
        Ok(())
    }

    fn section_value(&mut self) -> Parse<SectionValue> {
        if self.at_constant() {
            return self.integer("a number").map(SectionValue::Int);
        }
        let label = self.section_name()?;
        if self.at_kind(Kind::Minus) && self.token_at(1).kind == Kind::Ident {
            self.advance();
            return Ok(SectionValue::Difference(label, self.section_name()?));
        }
        let mut offset = 0;
        if matches!(self.kind(), Kind::Plus | Kind::Minus) {
            offset = self.integer("an offset")?;
        }
        Ok(SectionValue::Label(label, offset))
    }
}
