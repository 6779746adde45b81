//! Kernel arguments as written on the command line.

use std::num::IntErrorKind;
use std::path::PathBuf;

use half::{bf16, f16};

/// One argument of the kernel.
#[derive(Debug, PartialEq)]
pub(super) enum Argument {
    /// A plain value, as its bytes.
    Value(Vec<u8>),
    /// The null pointer.
    Null,
    /// Memory filled from a file, and written back to it where `back`.
    File { path: PathBuf, back: bool },
    /// Zeroed memory of this many bytes, written to a file.
    Out { path: PathBuf, bytes: usize },
}

impl std::str::FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "null" {
            return Ok(Argument::Null);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(|| {
            format!("'{text}' is no argument: write TYPE:VALUE, bytes:HEX, in:FILE, inout:FILE, out:FILE:BYTES or null")
        })?;
        match kind {
            "in" => Ok(Argument::File { path: file(text, rest)?, back: false }),
            "inout" => Ok(Argument::File { path: file(text, rest)?, back: true }),
            "out" => {
                let (path, bytes) =
                    rest.rsplit_once(':').ok_or_else(|| format!("'{text}' lacks a size: write out:FILE:BYTES"))?;
                Ok(Argument::Out { path: file(text, path)?, bytes: size(text, bytes)? })
            }
            "bytes" => hex(rest).map(Argument::Value).map_err(|reason| format!("'{}' {reason}", shorten(text))),
            _ => value(kind, rest).map(Argument::Value).map_err(|refusal| match refusal {
                Refusal::NoValue => {
                    format!("'{text}' is no value: write u8, u16, u32, u64, i8 … i64 or s8 … s64, b8 … b64, f16, bf16, f32, f64 or pred, a colon, and a value of that type")
                }
                Refusal::OutOfRange(range) => format!("'{text}' is out of range: {range}"),
            }),
        }
    }
}

fn file(text: &str, path: &str) -> Result<PathBuf, String> {
    if path.is_empty() { Err(format!("'{text}' names no file")) } else { Ok(path.into()) }
}

fn size(text: &str, bytes: &str) -> Result<usize, String> {
    let refuse = |reason: &str| Err(format!("'{text}' {reason}"));
    match bytes.parse::<usize>() {
        Ok(0) => refuse("needs a size of at least one byte"),
        Ok(bytes) => Ok(bytes),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            refuse("is out of range: there are not so many addresses")
        }
        Err(_) => refuse("lacks a size in bytes: write out:FILE:BYTES"),
    }
}

/// Returns the bytes that pairs of hexadecimal digits stand for.
fn hex(digits: &str) -> Result<Vec<u8>, &'static str> {
    let digits = digits.strip_prefix("0x").unwrap_or(digits).as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16);
    if !digits.iter().all(|&byte| digit(byte).is_some()) {
        return Err("is not in hexadecimal digits, two a byte: bytes:0000803f");
    }
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return Err("needs two hexadecimal digits a byte, and at least one byte");
    }
    Ok(digits
        .chunks_exact(2)
        .map(|pair| (digit(pair[0]).unwrap_or(0) << 4 | digit(pair[1]).unwrap_or(0)) as u8)
        .collect())
}

/// Returns the beginning of a text that may be long.
fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain("…".chars()).collect()
    }
}

/// Why a value is none.
enum Refusal {
    NoValue,
    /// What the type holds.
    OutOfRange(String),
}

fn value(kind: &str, text: &str) -> Result<Vec<u8>, Refusal> {
    let bytes = match kind.strip_prefix(['u', 's', 'i', 'b']) {
        Some("8") => Some(1),
        Some("16") => Some(2),
        Some("32") => Some(4),
        Some("64") => Some(8),
        _ => None,
    };
    if let Some(bytes) = bytes {
        let (least, beyond) = match kind.as_bytes()[0] {
            b'u' => (0, 1i128 << (8 * bytes)),
            b's' | b'i' => (-(1i128 << (8 * bytes - 1)), 1i128 << (8 * bytes - 1)),
            _ => (-(1i128 << (8 * bytes - 1)), 1i128 << (8 * bytes)),
        };
        let number = integer(text)?;
        return match number.filter(|number| (least..beyond).contains(number)) {
            Some(number) => Ok(number.to_le_bytes()[..bytes].to_vec()),
            None => Err(Refusal::OutOfRange(format!("{kind} is {least} to {}", beyond - 1))),
        };
    }
    match kind {
        "pred" => match integer(text)? {
            Some(number @ (0 | 1)) => Ok(vec![number as u8]),
            _ => Err(Refusal::OutOfRange("pred is 0 or 1".to_owned())),
        },
        "f16" => float(kind, text, f16::MAX.into()).map(|value| f16::from_f64(value).to_le_bytes().to_vec()),
        "bf16" => {
            float(kind, text, bf16::MAX.into()).map(|value| bf16::from_f64(value).to_le_bytes().to_vec())
        }
        // Parsed as what it is: by way of an `f64` it would be rounded twice.
        "f32" => {
            float(kind, text, f32::MAX.into())?;
            text.parse::<f32>().map(|value| value.to_le_bytes().to_vec()).map_err(|_| Refusal::NoValue)
        }
        "f64" => float(kind, text, f64::MAX).map(|value| value.to_le_bytes().to_vec()),
        _ => Err(Refusal::NoValue),
    }
}

/// Parses a whole number, in decimal or hexadecimal digits. Returns `None` if it is too large for
/// any type.
fn integer(text: &str) -> Result<Option<i128>, Refusal> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    // A second sign would be taken as one of the number.
    if !digits.starts_with(|digit: char| digit.is_ascii_hexdigit()) {
        return Err(Refusal::NoValue);
    }
    match i128::from_str_radix(digits, radix) {
        Ok(magnitude) => Ok(Some(if negative { -magnitude } else { magnitude })),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Ok(None),
        Err(_) => Err(Refusal::NoValue),
    }
}

/// Reads a number of at most `max`, an infinity if that is what was written, or `nan`.
fn float(kind: &str, text: &str, max: f64) -> Result<f64, Refusal> {
    let value: f64 = text.parse().map_err(|_| Refusal::NoValue)?;
    let infinite_as_written = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    if value.abs() > max && !infinite_as_written {
        return Err(Refusal::OutOfRange(format!("{kind} is at most {max:e}; write inf for infinity")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_bytes_of_their_types() {
        let cases: [(&str, &[u8]); 13] = [
            ("f32:2.5", &2.5f32.to_le_bytes()),
            ("s8:-1", &[0xff]),
            ("i32:-2", &(-2i32).to_le_bytes()),
            ("u64:0x10", &16u64.to_le_bytes()),
            ("b16:-1", &[0xff, 0xff]),
            ("b32:0xffffffff", &[0xff; 4]),
            ("f16:1", &[0x00, 0x3c]),
            ("bf16:1", &[0x80, 0x3f]),
            ("pred:1", &[1]),
            ("bytes:0000803f07", &[0, 0, 0x80, 0x3f, 7]),
            ("bytes:0xFF", &[0xff]),
            ("f32:-inf", &f32::NEG_INFINITY.to_le_bytes()),
            ("f32:0.1", &0.1f32.to_le_bytes()),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Argument::Value(bytes.to_vec())), "{text}");
        }
    }

    #[test]
    fn files_and_null_are_told_apart() {
        assert_eq!("null".parse(), Ok(Argument::Null));
        assert_eq!("in:a:b".parse(), Ok(Argument::File { path: "a:b".into(), back: false }));
        assert_eq!("inout:x".parse(), Ok(Argument::File { path: "x".into(), back: true }));
        assert_eq!("out:C:/y:16".parse(), Ok(Argument::Out { path: "C:/y".into(), bytes: 16 }));
    }

    #[test]
    fn what_is_no_argument_is_named() {
        for text in [
            "",
            "f32",
            "f32:x",
            "u8:256",
            "u8:-1",
            "b8:-129",
            "out:file",
            "out:file:0",
            "out::8",
            "in:",
            "bytes:",
            "bytes:123",
            "bytes:0g",
            "bytes:é",
            "q:1",
            "s64:0x8000000000000000",
            "s8:--5",
            "s8:0x-5",
            "pred:--170141183460469231731687303715884105728",
        ] {
            let error = text.parse::<Argument>().expect_err(text);
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn values_out_of_range_say_what_the_range_is() {
        for (text, range) in [
            ("u8:256", "u8 is 0 to 255"),
            ("u8:-1", "u8 is 0 to 255"),
            ("s8:-129", "s8 is -128 to 127"),
            ("b8:-129", "b8 is -128 to 255"),
            ("u64:18446744073709551616", "u64 is 0 to 18446744073709551615"),
            ("s64:99999999999999999999999999999999999999999999", "s64 is -9223372036854775808 to"),
            ("pred:2", "pred is 0 or 1"),
            ("f16:65536", "f16 is at most 6.5504e4"),
            ("f32:1e39", "f32 is at most 3.4"),
            ("f32:-1e39", "f32 is at most 3.4"),
            ("f64:1e999", "f64 is at most 1.79"),
            ("out:file:99999999999999999999", "not so many addresses"),
        ] {
            let error = text.parse::<Argument>().expect_err(text);
            assert!(error.contains("is out of range") && error.contains(range), "{error}");
        }
    }
}
