//! The lexer. Every byte of the text belongs to a token, a comment or white space. Lexing never
//! fails: bytes that cannot be a token become [`Kind::Unknown`], which the parser reports.

use crate::model::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, a mnemonic, a register (`%r1`), or `_`.
    Ident,
    /// A dot and the word after it: `.f32`, `.L2::cache_hint`, `.128x256b`.
    Dot,
    /// An integer in any base.
    Int,
    /// A floating point constant: `1.5`, `2e-3`, `0f3F800000`, `0d…`.
    Float,
    /// A string, with its quotes.
    Str,
    Comma,
    Semi,
    Colon,
    LBrace,
    RBrace,
    LParen,
    RParen,
    LBracket,
    RBracket,
    At,
    Question,
    Bang,
    Tilde,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Caret,
    Less,
    LessEq,
    Shl,
    Greater,
    GreaterEq,
    Shr,
    Eq,
    EqEq,
    BangEq,
    /// A byte that starts no token, or an unterminated string or comment.
    Unknown,
    /// The end of the text.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether the last token ends a value, so that `%` after it is an operator.
    after_value: bool,
}

/// Returns all tokens of `text` (shorter than 4 GiB), ending with one [`Kind::End`].
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, after_value: false };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        let token = lexer.next();
        tokens.push(token);
        if token.kind == Kind::End {
            return tokens;
        }
    }
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| wanted(*byte)) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Token {
        let unterminated = self.skip_blank();
        let start = unterminated.unwrap_or(self.at);
        let kind = if unterminated.is_some() { Kind::Unknown } else { self.kind() };
        self.after_value = matches!(kind, Kind::Int | Kind::Float | Kind::RParen);
        // Lengths are bounded by the caller.
        #[allow(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB")]
        let span = Span::new(start as u32, self.at as u32);
        Token { kind, span }
    }

    /// Skips white space and comments. Returns the start of an unterminated comment.
    fn skip_blank(&mut self) -> Option<usize> {
        loop {
            self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
            match (self.peek(0), self.peek(1)) {
                (b'/', b'/') => self.skip_while(|byte| byte != b'\n'),
                (b'/', b'*') => {
                    let start = self.at;
                    self.at += 2;
                    loop {
                        self.skip_while(|byte| byte != b'*');
                        if self.at >= self.bytes.len() {
                            return Some(start);
                        }
                        self.at += 1;
                        if self.peek(0) == b'/' {
                            self.at += 1;
                            break;
                        }
                    }
                }
                // Line markers of a preprocessor.
                (b'#', b' ') if self.at == 0 || self.bytes[self.at - 1] == b'\n' => {
                    self.skip_while(|byte| byte != b'\n');
                }
                _ => return None,
            }
        }
    }

    fn kind(&mut self) -> Kind {
        let Some(first) = self.bytes.get(self.at).copied() else { return Kind::End };
        let second = self.peek(1);
        match first {
            b'0'..=b'9' => return self.number(),
            // `7 %3` divides; `%3` elsewhere, and `%r` everywhere, is a name.
            b'%' if !is_word(second) || (self.after_value && second.is_ascii_digit()) => {}
            b'%' | b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.at += 1;
                self.skip_while(is_word);
                return Kind::Ident;
            }
            b'.' if is_word(second) => return self.dot_word(),
            b'"' => return self.string(),
            _ => {}
        }
        let (kind, length) = match (first, second) {
            (b'&', b'&') => (Kind::AmpAmp, 2),
            (b'|', b'|') => (Kind::PipePipe, 2),
            (b'<', b'<') => (Kind::Shl, 2),
            (b'<', b'=') => (Kind::LessEq, 2),
            (b'>', b'>') => (Kind::Shr, 2),
            (b'>', b'=') => (Kind::GreaterEq, 2),
            (b'=', b'=') => (Kind::EqEq, 2),
            (b'!', b'=') => (Kind::BangEq, 2),
            (b',', _) => (Kind::Comma, 1),
            (b';', _) => (Kind::Semi, 1),
            (b':', _) => (Kind::Colon, 1),
            (b'{', _) => (Kind::LBrace, 1),
            (b'}', _) => (Kind::RBrace, 1),
            (b'(', _) => (Kind::LParen, 1),
            (b')', _) => (Kind::RParen, 1),
            (b'[', _) => (Kind::LBracket, 1),
            (b']', _) => (Kind::RBracket, 1),
            (b'@', _) => (Kind::At, 1),
            (b'?', _) => (Kind::Question, 1),
            (b'!', _) => (Kind::Bang, 1),
            (b'~', _) => (Kind::Tilde, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'%', _) => (Kind::Percent, 1),
            (b'&', _) => (Kind::Amp, 1),
            (b'|', _) => (Kind::Pipe, 1),
            (b'^', _) => (Kind::Caret, 1),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b'=', _) => (Kind::Eq, 1),
            _ => {
                // Consumes a whole character, so that spans are on character boundaries.
                self.at += 1;
                self.skip_while(|byte| byte & 0xc0 == 0x80);
                return Kind::Unknown;
            }
        };
        self.at += length;
        kind
    }

    fn dot_word(&mut self) -> Kind {
        self.at += 1;
        loop {
            self.skip_while(is_word);
            if self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
                self.at += 2;
            } else {
                return Kind::Dot;
            }
        }
    }

    fn string(&mut self) -> Kind {
        self.at += 1;
        loop {
            self.skip_while(|byte| !matches!(byte, b'"' | b'\\' | b'\n'));
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Kind::Str;
                }
                Some(b'\\') if self.peek(1).is_ascii_graphic() => self.at += 2,
                Some(b'\\') => self.at += 1,
                _ => return Kind::Unknown,
            }
        }
    }

    fn number(&mut self) -> Kind {
        if self.peek(0) == b'0' {
            let digits = match self.peek(1) {
                b'f' | b'F' => 8,
                b'd' | b'D' => 16,
                _ => 0,
            };
            if digits > 0 && (2..2 + digits).all(|ahead| self.peek(ahead).is_ascii_hexdigit()) {
                self.at += 2 + digits;
                let end = self.at;
                self.skip_while(is_word);
                return if self.at == end { Kind::Float } else { Kind::Unknown };
            }
            if matches!(self.peek(1), b'x' | b'X' | b'b' | b'B') {
                self.skip_while(is_word);
                return Kind::Int;
            }
        }
        self.skip_while(|byte| byte.is_ascii_digit());
        let mut kind = Kind::Int;
        if self.peek(0) == b'.' && (self.peek(1).is_ascii_digit() || !is_word(self.peek(1))) {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
            kind = Kind::Float;
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.skip_while(|byte| byte.is_ascii_digit());
                kind = Kind::Float;
            }
        }
        if kind == Kind::Int && matches!(self.peek(0), b'u' | b'U') {
            self.at += 1;
        }
        let end = self.at;
        self.skip_while(is_word);
        if self.at == end { kind } else { Kind::Unknown }
    }
}
