//! Literals and constant expressions.

use crate::common::{op, parse_errors};
use gridloom_ptx::op::{ConvertOp, Op};
use gridloom_ptx::{Imm, Operand};

fn value(text: &str) -> Imm {
    match op(&format!("mov.b64 %rd1, {text};")) {
        Op::Convert(ConvertOp::Mov { src: Operand::Imm(value), .. }) => value,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn integers_of_every_base() {
    let rows: &[(&str, i64)] = &[
        ("0", 0),
        ("42", 42),
        ("-42", -42),
        ("42U", 42),
        ("0x1F", 31),
        ("0XfFu", 255),
        ("017", 15),
        ("0b101", 5),
        ("0B11U", 3),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("0x8000000000000000", i64::MIN),
        ("18446744073709551615", -1),
        ("0xFFFFFFFFFFFFFFFF", -1),
        ("WARP_SZ", 32),
    ];
    for (text, expected) in rows {
        assert_eq!(value(text), Imm::Int(*expected), "{text}");
    }
}

#[test]
fn floating_point_by_bits_and_by_digits() {
    assert_eq!(value("0f3F800000"), Imm::F32(0x3f80_0000));
    assert_eq!(value("0F7fc00001"), Imm::F32(0x7fc0_0001));
    assert_eq!(value("-0f3F800000"), Imm::F32(0xbf80_0000));
    assert_eq!(value("0d3FF0000000000000"), Imm::F64(1f64.to_bits()));
    assert_eq!(value("0DbfF8000000000000"), Imm::F64((-1.5f64).to_bits()));
    assert_eq!(value("1.5"), Imm::F64(1.5f64.to_bits()));
    assert_eq!(value("2."), Imm::F64(2f64.to_bits()));
    assert_eq!(value("1e3"), Imm::F64(1000f64.to_bits()));
    assert_eq!(value("-2.5E-1"), Imm::F64((-0.25f64).to_bits()));
    // Signalling NaNs keep their payload.
    assert_eq!(value("0f7F800001"), Imm::F32(0x7f80_0001));
}

#[test]
fn operators_have_the_precedence_of_c() {
    let rows: &[(&str, i64)] = &[
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("1 << 4 | 1", 17),
        ("6 & 3 ^ 1", 3),
        ("~0", -1),
        ("!5", 0),
        ("!0", 1),
        ("-(-3)", 3),
        ("1 < 2 == 1", 1),
        ("3 >= 4 || 2 != 3 && 1", 1),
        ("1 ? 2 : 3", 2),
        ("0 ? 2 : 1 ? 4 : 5", 4),
        ("-8 >> 1", -4),
        ("(.u64)-8 >> 63", 1),
        ("(.s64)0xFFFFFFFFFFFFFFFF < 0", 1),
        ("0xFFFFFFFFFFFFFFFF > 0", 1),
        ("-1 < 0U", 0),
        ("1 << 64", 0),
        ("5 % 3", 2),
        ("5%3", 2),
        ("(.s64)2.9", 2),
        ("1.5 < 2", 1),
    ];
    for (text, expected) in rows {
        assert_eq!(value(text), Imm::Int(*expected), "{text}");
    }
    assert_eq!(value("1.5 + 1"), Imm::F64(2.5f64.to_bits()));
}

#[test]
fn bad_literals_are_errors() {
    assert_eq!(
        parse_errors("mov.b64 %rd1, 18446744073709551616;"),
        ["`18446744073709551616` is not a 64-bit integer"]
    );
    assert_eq!(parse_errors("mov.b64 %rd1, 089;"), ["`089` is not a 64-bit integer"]);
    assert_eq!(parse_errors("mov.b64 %rd1, 0x;"), ["`0x` is not a 64-bit integer"]);
    assert_eq!(parse_errors("mov.b64 %rd1, 1 / 0;"), ["division by zero in a constant expression"]);
    assert_eq!(parse_errors("mov.b64 %rd1, 0f3F80;").len(), 1);
    assert_eq!(parse_errors("mov.b64 %rd1, ~1.5;"), ["`~` needs an integer"]);
    assert_eq!(parse_errors("mov.b64 %rd1, 12abc;").len(), 1);
}
