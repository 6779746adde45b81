//! Literals and constant expressions.

use super::{Parse, Parser, shorten};
use crate::lexer::{Kind, Token};
use crate::limits;
use crate::model::{Imm, ScalarType};

/// A value during evaluation. Integers keep the signedness that PTX gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Const {
    Signed(i64),
    Unsigned(u64),
    F32(f32),
    F64(f64),
}

impl Const {
    pub(super) fn imm(self) -> Imm {
        match self {
            Const::Signed(value) => Imm::Int(value),
            Const::Unsigned(value) => Imm::Int(value.cast_signed()),
            Const::F32(value) => Imm::F32(value.to_bits()),
            Const::F64(value) => Imm::F64(value.to_bits()),
        }
    }

    fn is_true(self) -> bool {
        match self {
            Const::Signed(value) => value != 0,
            Const::Unsigned(value) => value != 0,
            Const::F32(value) => value != 0.0,
            Const::F64(value) => value != 0.0,
        }
    }

    fn bits(self) -> Option<u64> {
        match self {
            Const::Signed(value) => Some(value.cast_unsigned()),
            Const::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "mixing integers and floats rounds, as in C")]
    fn float(self) -> f64 {
        match self {
            Const::Signed(value) => value as f64,
            Const::Unsigned(value) => value as f64,
            Const::F32(value) => f64::from(value),
            Const::F64(value) => value,
        }
    }
}

impl<'a> Parser<'a> {
    /// Returns whether the next token can start a constant expression.
    pub(super) fn at_constant(&self) -> bool {
        match self.kind() {
            Kind::Int | Kind::Float | Kind::LParen | Kind::Minus | Kind::Plus | Kind::Tilde | Kind::Bang => {
                true
            }
            Kind::Ident => self.text_of(self.token()) == "WARP_SZ",
            _ => false,
        }
    }

    /// Parses a constant expression.
    pub(super) fn constant(&mut self) -> Parse<Imm> {
        self.ternary(0).map(Const::imm)
    }

    /// Parses a constant expression that is an integer.
    pub(super) fn integer(&mut self, what: &str) -> Parse<i64> {
        let span = self.span();
        if !self.at_constant() {
            return self.expected(what);
        }
        match self.constant()? {
            Imm::Int(value) => Ok(value),
            _ => self.error(span, format!("expected {what}, found a floating point constant")),
        }
    }

    /// Parses a constant expression that is an integer in the range of a `u32`.
    pub(super) fn small(&mut self, what: &str) -> Parse<u32> {
        let span = self.span();
        let value = self.integer(what)?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.error(span, format!("{what} must be between 0 and {}, not {value}", u32::MAX)),
        }
    }

    fn ternary(&mut self, depth: u32) -> Parse<Const> {
        if depth > limits::EXPR_DEPTH {
            return self.error(self.span(), format!("expression nested deeper than {}", limits::EXPR_DEPTH));
        }
        let condition = self.binary(0, depth)?;
        if !self.eat(Kind::Question) {
            return Ok(condition);
        }
        let yes = self.ternary(depth + 1)?;
        self.expect(Kind::Colon, "`:`")?;
        let no = self.ternary(depth + 1)?;
        Ok(if condition.is_true() { yes } else { no })
    }

    /// Parses operators of at least the precedence `least`, left to right.
    fn binary(&mut self, least: u8, depth: u32) -> Parse<Const> {
        let mut left = self.prefix(depth)?;
        loop {
            let operator = self.token();
            let Some(precedence) = precedence(operator.kind) else { return Ok(left) };
            if precedence < least {
                return Ok(left);
            }
            self.advance();
            let right = self.binary(precedence + 1, depth)?;
            left = self.apply(operator, left, right)?;
        }
    }

    fn prefix(&mut self, depth: u32) -> Parse<Const> {
        if depth > limits::EXPR_DEPTH {
            return self.error(self.span(), format!("expression nested deeper than {}", limits::EXPR_DEPTH));
        }
        let operator = self.token();
        match operator.kind {
            Kind::Plus => {
                self.advance();
                self.prefix(depth + 1)
            }
            Kind::Minus => {
                self.advance();
                Ok(match self.prefix(depth + 1)? {
                    Const::Signed(value) => Const::Signed(value.wrapping_neg()),
                    // This magnitude is a signed integer only when it is negated.
                    Const::Unsigned(value) if value == 1 << 63 => Const::Signed(i64::MIN),
                    Const::Unsigned(value) => Const::Unsigned(value.wrapping_neg()),
                    Const::F32(value) => Const::F32(-value),
                    Const::F64(value) => Const::F64(-value),
                })
            }
            Kind::Bang => {
                self.advance();
                let value = self.prefix(depth + 1)?;
                Ok(Const::Signed(i64::from(!value.is_true())))
            }
            Kind::Tilde => {
                self.advance();
                match self.prefix(depth + 1)? {
                    Const::Signed(value) => Ok(Const::Signed(!value)),
                    Const::Unsigned(value) => Ok(Const::Unsigned(!value)),
                    _ => self.error(operator.span, "`~` needs an integer"),
                }
            }
            Kind::LParen => {
                self.advance();
                let cast = self.peek_dot().and_then(ScalarType::from_word);
                if let Some(ty) = cast {
                    self.advance();
                    self.expect(Kind::RParen, "`)` after the type of a cast")?;
                    let value = self.prefix(depth + 1)?;
                    return self.cast(operator, ty, value);
                }
                let value = self.ternary(depth + 1)?;
                self.expect(Kind::RParen, "`)`")?;
                Ok(value)
            }
            Kind::Int => {
                self.advance();
                self.int_literal(operator)
            }
            Kind::Float => {
                self.advance();
                self.float_literal(operator)
            }
            Kind::Ident if self.text_of(operator) == "WARP_SZ" => {
                self.advance();
                Ok(Const::Signed(32))
            }
            _ => self.expected("a constant"),
        }
    }

    fn int_literal(&mut self, token: Token) -> Parse<Const> {
        let text = self.text_of(token);
        let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
        let unsigned = digits.len() != text.len();
        let lower = digits.to_ascii_lowercase();
        let parsed = if let Some(hex) = lower.strip_prefix("0x") {
            u64::from_str_radix(hex, 16)
        } else if let Some(binary) = lower.strip_prefix("0b") {
            u64::from_str_radix(binary, 2)
        } else if lower.len() > 1 && lower.starts_with('0') {
            u64::from_str_radix(&lower, 8)
        } else {
            lower.parse()
        };
        match parsed {
            Ok(value) => Ok(match i64::try_from(value) {
                Ok(value) if !unsigned => Const::Signed(value),
                _ => Const::Unsigned(value),
            }),
            Err(_) => {
                let message = format!("`{}` is not a 64-bit integer", shorten(text));
                self.error(token.span, message)
            }
        }
    }

    fn float_literal(&mut self, token: Token) -> Parse<Const> {
        let text = self.text_of(token);
        let hex = text.get(2..).unwrap_or("");
        match text.as_bytes() {
            [b'0', b'f' | b'F', ..] => {
                if let Ok(bits) = u32::from_str_radix(hex, 16) {
                    return Ok(Const::F32(f32::from_bits(bits)));
                }
            }
            [b'0', b'd' | b'D', ..] => {
                if let Ok(bits) = u64::from_str_radix(hex, 16) {
                    return Ok(Const::F64(f64::from_bits(bits)));
                }
            }
            _ => {
                if let Ok(value) = text.parse::<f64>() {
                    return Ok(Const::F64(value));
                }
            }
        }
        let message = format!("`{}` is not a floating point constant", shorten(text));
        self.error(token.span, message)
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast in a constant expression converts as in C, here saturating"
    )]
    fn cast(&mut self, operator: Token, ty: ScalarType, value: Const) -> Parse<Const> {
        match (ty, value.bits()) {
            (ScalarType::S64, Some(bits)) => Ok(Const::Signed(bits.cast_signed())),
            (ScalarType::U64, Some(bits)) => Ok(Const::Unsigned(bits)),
            (ScalarType::S64, None) => Ok(Const::Signed(value.float() as i64)),
            (ScalarType::U64, None) => Ok(Const::Unsigned(value.float() as u64)),
            (ScalarType::F64, _) => Ok(Const::F64(value.float())),
            _ => self.error(operator.span, format!("a constant can be cast to .s64 or .u64, not to .{ty}")),
        }
    }

    fn apply(&mut self, operator: Token, left: Const, right: Const) -> Parse<Const> {
        use Kind::*;
        match operator.kind {
            AmpAmp => return Ok(truth(left.is_true() && right.is_true())),
            PipePipe => return Ok(truth(left.is_true() || right.is_true())),
            _ => {}
        }
        let (Some(a), Some(b)) = (left.bits(), right.bits()) else {
            let (a, b) = (left.float(), right.float());
            return Ok(match operator.kind {
                Plus => Const::F64(a + b),
                Minus => Const::F64(a - b),
                Star => Const::F64(a * b),
                Slash => Const::F64(a / b),
                Less => truth(a < b),
                LessEq => truth(a <= b),
                Greater => truth(a > b),
                GreaterEq => truth(a >= b),
                EqEq => truth(a == b),
                BangEq => truth(a != b),
                _ => {
                    let message = format!("`{}` needs integers", self.text_of(operator));
                    return self.error(operator.span, message);
                }
            });
        };
        if matches!(operator.kind, Slash | Percent) && b == 0 {
            return self.error(operator.span, "division by zero in a constant expression");
        }
        // As in C, an unsigned operand makes the operation unsigned, and a shift has the type of
        // its left operand.
        let shift = u32::try_from(b).unwrap_or(u32::MAX);
        let signed_left = matches!(left, Const::Signed(_));
        let signed = signed_left && matches!(right, Const::Signed(_));
        let (sa, sb) = (a.cast_signed(), b.cast_signed());
        let value = match operator.kind {
            Plus => a.wrapping_add(b),
            Minus => a.wrapping_sub(b),
            Star => a.wrapping_mul(b),
            Slash if signed => sa.wrapping_div(sb).cast_unsigned(),
            Slash => a / b,
            Percent if signed => sa.wrapping_rem(sb).cast_unsigned(),
            Percent => a % b,
            Amp => a & b,
            Pipe => a | b,
            Caret => a ^ b,
            Shl => a.checked_shl(shift).unwrap_or(0),
            Shr if signed_left => (sa >> shift.min(63)).cast_unsigned(),
            Shr => a.checked_shr(shift).unwrap_or(0),
            Less => return Ok(truth(if signed { sa < sb } else { a < b })),
            LessEq => return Ok(truth(if signed { sa <= sb } else { a <= b })),
            Greater => return Ok(truth(if signed { sa > sb } else { a > b })),
            GreaterEq => return Ok(truth(if signed { sa >= sb } else { a >= b })),
            EqEq => return Ok(truth(a == b)),
            BangEq => return Ok(truth(a != b)),
            _ => return self.error(operator.span, "not an operator"),
        };
        let result_signed = if matches!(operator.kind, Shl | Shr) { signed_left } else { signed };
        Ok(if result_signed { Const::Signed(value.cast_signed()) } else { Const::Unsigned(value) })
    }
}

fn truth(value: bool) -> Const {
    Const::Signed(i64::from(value))
}

fn precedence(kind: Kind) -> Option<u8> {
    Some(match kind {
        Kind::PipePipe => 1,
        Kind::AmpAmp => 2,
        Kind::Pipe => 3,
        Kind::Caret => 4,
        Kind::Amp => 5,
        Kind::EqEq | Kind::BangEq => 6,
        Kind::Less | Kind::LessEq | Kind::Greater | Kind::GreaterEq => 7,
        Kind::Shl | Kind::Shr => 8,
        Kind::Plus | Kind::Minus => 9,
        Kind::Star | Kind::Slash | Kind::Percent => 10,
        _ => return None,
    })
}
