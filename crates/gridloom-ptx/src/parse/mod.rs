//! The parser: from tokens to the typed model.
//!
//! It makes one pass over the tokens, and looks ahead once per function body for its labels. A
//! statement that fails is reported and skipped, so that one run shows all errors.

mod body;
mod debug;
mod expr;
mod function;
mod initializer;
pub(crate) mod inst;
mod module;
mod operand;
mod scope;
mod variable;

use std::collections::HashMap;

use crate::error::{Diagnostic, Error};
use crate::lexer::{Kind, Token, tokenize};
use crate::limits;
use crate::model::{Module, Span, SymbolId, Target, Version};
use crate::source::Source;

/// Parses a PTX module.
///
/// An instruction outside the model is not an error: it becomes
/// [`Op::Unsupported`](crate::op::Op::Unsupported). The parser checks types and operand counts only
/// as far as the model requires. [`check`](crate::check()) does the rest.
///
/// # Errors
/// Returns all errors in the text, each with its line and column.
///
/// ```
/// let module = gridloom_ptx::parse(
///     ".version 8.0 .target sm_80 .address_size 64
///      .visible .entry nothing(.param .u64 p) { ret; }",
/// )?;
/// let (_, kernel) = module.entry("nothing").unwrap();
/// assert_eq!(kernel.params[0].var.size(), 8);
/// # Ok::<(), gridloom_ptx::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Module, Error> {
    // Texts meant for the driver end with a NUL.
    let text = text.trim_end_matches('\0');
    if text.len() > limits::TEXT_BYTES {
        let message = format!("the text has {} bytes; the limit is {}", text.len(), limits::TEXT_BYTES);
        return Err(Error::new(vec![Diagnostic::new(&Source::default(), Span::default(), message)]));
    }
    let mut parser = Parser::new(text);
    parser.module();
    if parser.diagnostics.is_empty() { Ok(parser.module) } else { Err(Error::new(parser.diagnostics)) }
}

/// Parses a PTX module from bytes that need not be UTF-8. Invalid bytes (in comments and file
/// names) are replaced.
///
/// # Errors
/// As for [`parse`].
pub fn parse_bytes(bytes: &[u8]) -> Result<Module, Error> {
    parse(&String::from_utf8_lossy(bytes))
}

/// The reason why a construct could not be parsed.
#[derive(Debug)]
enum Stop {
    /// It is wrong; the diagnostic has been recorded.
    Reported,
    /// It is an instruction outside the model, for this reason.
    Unsupported(String),
}

type Parse<T> = Result<T, Stop>;

struct Parser<'a> {
    text: &'a str,
    source: Source,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    module: Module,
    symbols: HashMap<&'a str, SymbolId>,
    /// How many zero bytes initialisers may still skip.
    padding_left: u64,
    /// The function being parsed; empty between functions.
    fun: body::FunctionState<'a>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let source = Source::new(text);
        let module = Module {
            version: Version { major: 0, minor: 0 },
            target: Target { words: Vec::new() },
            address_size: 64,
            symbols: Vec::new(),
            items: Vec::new(),
            files: Vec::new(),
            sections: Vec::new(),
            source: source.clone(),
        };
        Self {
            text,
            source,
            tokens: tokenize(text),
            at: 0,
            diagnostics: Vec::new(),
            module,
            symbols: HashMap::new(),
            padding_left: limits::IMAGE_PADDING,
            fun: body::FunctionState::default(),
        }
    }

    // --- tokens ---

    fn token(&self) -> Token {
        self.token_at(0)
    }

    fn token_at(&self, ahead: usize) -> Token {
        // The last token is `End`, and every position beyond it counts as `End` too.
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(END)
    }

    fn kind(&self) -> Kind {
        self.token().kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    fn text_of(&self, token: Token) -> &'a str {
        self.text.get(token.span.start()..token.span.end()).unwrap_or("")
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn at_kind(&self, kind: Kind) -> bool {
        self.kind() == kind
    }

    /// Returns whether the next token is the dotted word `word` (given without its dot).
    fn at_dot(&self, word: &str) -> bool {
        self.peek_dot() == Some(word)
    }

    /// Returns the next token's word, if it is a dotted one, without the dot.
    fn peek_dot(&self) -> Option<&'a str> {
        let token = self.token();
        (token.kind == Kind::Dot).then(|| self.text_of(token).get(1..).unwrap_or(""))
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.at_kind(kind);
        if found {
            self.advance();
        }
        found
    }

    fn eat_dot(&mut self, word: &str) -> bool {
        let found = self.at_dot(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parse<Token> {
        if self.at_kind(kind) { Ok(self.advance()) } else { self.expected(what) }
    }

    fn comma(&mut self) -> Parse<()> {
        self.expect(Kind::Comma, "`,`").map(|_| ())
    }

    fn ident(&mut self, what: &str) -> Parse<(&'a str, Span)> {
        let token = self.expect(Kind::Ident, what)?;
        Ok((self.text_of(token), token.span))
    }

    // --- diagnostics ---

    /// Reports that something other than `what` was found.
    fn expected<T>(&mut self, what: &str) -> Parse<T> {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Unknown => {
                let text = self.text_of(token);
                if text.starts_with("/*") {
                    "a comment that does not end".to_owned()
                } else if text.starts_with('"') {
                    "a string that does not end".to_owned()
                } else {
                    format!("`{}`, which starts nothing in PTX", shorten(text))
                }
            }
            _ => format!("`{}`", shorten(self.text_of(token))),
        };
        self.error(token.span, format!("expected {what}, found {found}"))
    }

    fn error<T>(&mut self, span: Span, message: impl Into<String>) -> Parse<T> {
        self.report(Diagnostic::new(&self.source, span, message));
        Err(Stop::Reported)
    }

    fn error_with_help<T>(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Parse<T> {
        let diagnostic = Diagnostic::new(&self.source, span, message);
        self.report(match help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        });
        Err(Stop::Reported)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if !self.gave_up() {
            self.diagnostics.push(diagnostic);
        }
    }

    fn gave_up(&self) -> bool {
        self.diagnostics.len() >= limits::DIAGNOSTICS
    }
}

const END: Token = Token { kind: Kind::End, span: Span::new(0, 0) };

/// Returns at most the first few words of `text`, for messages.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain("...".chars()).collect()
}
