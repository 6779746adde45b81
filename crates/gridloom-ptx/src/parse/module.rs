//! The module: header and statements at module scope.

use super::{Parse, Parser, Stop, shorten};
use crate::error::{Diagnostic, closest};
use crate::lexer::Kind;
use crate::model::{FunctionKind, Item, Linkage, Span, SpecialReg, Symbol, SymbolId, VarSpace, Version};

/// Directives that are allowed at module scope, for suggestions.
const DIRECTIVES: &[&str] = &[
    "version",
    "target",
    "address_size",
    "global",
    "const",
    "shared",
    "local",
    "entry",
    "func",
    "extern",
    "visible",
    "weak",
    "common",
    "file",
    "section",
    "loc",
    "pragma",
    "alias",
];

impl<'a> Parser<'a> {
    /// Parses the whole text into `self.module`.
    pub(super) fn module(&mut self) {
        if self.header_directives().is_err() {
            // Without a header this is hardly PTX, and further errors would not help.
            return;
        }
        while !self.at_kind(Kind::End) && !self.gave_up() {
            let before = self.at;
            if self.module_statement().is_err() {
                self.skip_statement();
            }
            if self.at == before {
                self.advance();
            }
        }
    }

    fn header_directives(&mut self) -> Parse<()> {
        if !self.eat_dot("version") {
            let help = if crate::looks_like_cuda(self.text) {
                crate::CUDA_HELP
            } else {
                "for example: .version 8.0"
            };
            return self.error_with_help(
                self.span(),
                "a PTX module starts with .version",
                Some(help.to_owned()),
            );
        }
        self.version()?;
        if !self.eat_dot("target") {
            return self.error_with_help(
                self.span(),
                "expected .target after .version",
                Some("for example: .target sm_80".to_owned()),
            );
        }
        self.target()?;
        if self.eat_dot("address_size") {
            self.address_size()?;
        }
        Ok(())
    }

    fn version(&mut self) -> Parse<()> {
        let token = self.token();
        let text = self.text_of(token);
        let parsed = match token.kind {
            Kind::Float => text.split_once('.').and_then(|(major, minor)| {
                Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
            }),
            Kind::Int => text.parse().ok().map(|major| Version { major, minor: 0 }),
            _ => None,
        };
        match parsed {
            Some(version) => {
                self.advance();
                self.module.version = version;
                Ok(())
            }
            None => self.expected("a version such as 8.0"),
        }
    }

    fn target(&mut self) -> Parse<()> {
        let mut words = Vec::new();
        loop {
            let (word, _) = self.ident("a target such as sm_80")?;
            words.push(word.to_owned());
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.module.target.words = words;
        Ok(())
    }

    fn address_size(&mut self) -> Parse<()> {
        let span = self.span();
        match self.integer("32 or 64")? {
            64 => {
                self.module.address_size = 64;
                Ok(())
            }
            32 => self.error_with_help(
                span,
                "32-bit addresses are not supported",
                Some("compile for a 64-bit host (-m64) and write .address_size 64".to_owned()),
            ),
            other => self.error(span, format!("an address has 32 or 64 bits, not {other}")),
        }
    }

    fn module_statement(&mut self) -> Parse<()> {
        if self.eat(Kind::Semi) {
            return Ok(());
        }
        let start = self.span();
        let Some(word) = self.peek_dot() else {
            return self.expected("a directive such as .entry or .global");
        };
        self.advance();
        match word {
            "version" => self.version(),
            "target" => self.target(),
            "address_size" => self.address_size(),
            "file" => self.file(),
            "section" => self.section(),
            "loc" => self.location().map(|_| ()),
            "pragma" => {
                let texts = self.pragma()?;
                self.module.items.push(Item::Pragma(texts));
                Ok(())
            }
            "alias" => self.alias(),
            _ => match Linkage::from_word(word) {
                Some(linkage) => match self.peek_dot() {
                    Some(word) => {
                        let at = self.span();
                        self.advance();
                        self.declaration(linkage, word, at)
                    }
                    None => self.expected("a declaration such as .entry or .global"),
                },
                None => self.declaration(Linkage::Internal, word, start),
            },
        }
    }

    fn declaration(&mut self, linkage: Linkage, word: &str, at: Span) -> Parse<()> {
        match word {
            "entry" => self.function(FunctionKind::Entry, linkage),
            "func" => self.function(FunctionKind::Func, linkage),
            _ => match VarSpace::from_word(word) {
                Some(VarSpace::Reg) => self.error_with_help(
                    at,
                    "a register outside a function",
                    Some("declare .reg inside the body that uses it".to_owned()),
                ),
                Some(VarSpace::Param) => self.error(at, "a parameter outside a function"),
                Some(space) => self.module_variables(linkage, space),
                None => {
                    let help = closest(word, DIRECTIVES.iter().copied())
                        .map(|near| format!("did you mean .{near}?"));
                    self.error_with_help(at, format!("unknown directive `.{}`", shorten(word)), help)
                }
            },
        }
    }

    fn alias(&mut self) -> Parse<()> {
        let (alias, alias_span) = self.ident("the alias")?;
        self.comma()?;
        let (aliasee, aliasee_span) = self.ident("the function it stands for")?;
        self.expect(Kind::Semi, "`;`")?;
        let Some(alias_id) = self.symbols.get(alias).copied() else {
            return self.error_with_help(
                alias_span,
                format!("`{}` is not declared", shorten(alias)),
                Some("declare the alias as a .func of the same type before".to_owned()),
            );
        };
        let Some(aliasee_id) = self.symbols.get(aliasee).copied() else {
            return self.unknown_symbol(aliasee, aliasee_span);
        };
        match &mut self.module.symbols[alias_id.index()] {
            Symbol::Function(function) => function.alias_of = Some(aliasee_id),
            Symbol::Variable(_) => return self.error(alias_span, "only a function can be an alias"),
        }
        self.module.items.push(Item::Alias { alias: alias_id, aliasee: aliasee_id });
        Ok(())
    }

    /// Parses the rest of a statement after `.pragma`: strings, and `;`.
    pub(super) fn pragma(&mut self) -> Parse<Vec<String>> {
        let mut texts = Vec::new();
        loop {
            texts.push(self.string()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`;`")?;
        Ok(texts)
    }

    /// Parses a string. Returns it without its quotes, as written.
    pub(super) fn string(&mut self) -> Parse<String> {
        let token = self.expect(Kind::Str, "a string")?;
        let text = self.text_of(token);
        Ok(text.get(1..text.len().saturating_sub(1)).unwrap_or("").to_owned())
    }

    /// Declares a symbol. A variable or prototype may be declared again, and one definition may
    /// follow.
    pub(super) fn declare_symbol(&mut self, name: &'a str, span: Span, symbol: Symbol) -> Parse<SymbolId> {
        if SpecialReg::is_reserved(name) {
            return self.error(span, format!("`{name}` is the name of a special register"));
        }
        let Some(id) = self.symbols.get(name).copied() else {
            let Ok(index) = u32::try_from(self.module.symbols.len()) else {
                return self.error(span, "too many symbols");
            };
            let id = SymbolId(index);
            self.symbols.insert(name, id);
            self.module.symbols.push(symbol);
            self.module.items.push(Item::Declare(id));
            return Ok(id);
        };
        match (&mut self.module.symbols[id.index()], symbol) {
            // The function's own parser adds the body.
            (Symbol::Function(old), Symbol::Function(new)) if old.kind == new.kind => {
                if old.body.is_none() {
                    let alias_of = old.alias_of;
                    **old = *new;
                    old.alias_of = alias_of;
                }
                self.module.items.push(Item::Declare(id));
                Ok(id)
            }
            // `.extern` first, then the variable itself; or the declaration again.
            (Symbol::Variable(old), Symbol::Variable(new))
                if old.space == new.space
                    && (old.linkage == Linkage::Extern || new.linkage == Linkage::Extern) =>
            {
                if old.linkage == Linkage::Extern && new.linkage != Linkage::Extern {
                    *old = new;
                    // Its initial value may refer to symbols declared in between.
                    self.module.items.push(Item::Define(id));
                }
                Ok(id)
            }
            _ => {
                let first = self.source.position(self.module.symbols[id.index()].span());
                self.error_with_help(
                    span,
                    format!("`{}` is already declared", shorten(name)),
                    Some(format!("the first declaration is on line {}", first.0)),
                )
            }
        }
    }

    pub(super) fn unknown_symbol<T>(&mut self, name: &str, span: Span) -> Parse<T> {
        let near = closest(name, self.module.symbols.iter().map(Symbol::name)).map(str::to_owned);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it before this line".to_owned(),
        };
        let diagnostic =
            Diagnostic::new(&self.source, span, format!("unknown variable or function `{}`", shorten(name)));
        self.report(diagnostic.with_help(help));
        Err(Stop::Reported)
    }

    /// Skips to the next statement, over whole bodies, after an error at module scope.
    fn skip_statement(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Semi if depth == 0 => {
                    self.advance();
                    return;
                }
                Kind::LBrace => depth += 1,
                Kind::RBrace => {
                    depth = depth.saturating_sub(1);
                    // This is the end of a body, unless more follows, as after the braces of an
                    // initial value.
                    if depth == 0 && matches!(self.token_at(1).kind, Kind::Dot | Kind::End) {
                        self.advance();
                        return;
                    }
                }
                _ => {}
            }
            self.advance();
        }
    }
}
