//! Kernel arguments as written on the command line.

use std::path::PathBuf;

use gridloom::kernel::Arg;
use gridloom::{Buffer, Device};
use half::{bf16, f16};

use crate::Failure;

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
            format!("'{text}' is no argument: write TYPE:VALUE, in:FILE, inout:FILE, out:FILE:BYTES or null")
        })?;
        match kind {
            "in" => Ok(Argument::File { path: rest.into(), back: false }),
            "inout" => Ok(Argument::File { path: rest.into(), back: true }),
            "out" => {
                let (path, bytes) =
                    rest.rsplit_once(':').ok_or_else(|| format!("'{text}' lacks a size: write out:FILE:BYTES"))?;
                let bytes = bytes.parse().ok().filter(|&bytes| bytes > 0);
                let bytes = bytes.ok_or_else(|| format!("'{text}' needs a size of at least one byte"))?;
                Ok(Argument::Out { path: path.into(), bytes })
            }
            _ => value(kind, rest).map(Argument::Value).ok_or_else(|| {
                format!("'{text}' is no value: write u8, u16, u32, u64, s8 … s64, b8 … b64, f16, bf16, f32, f64 or pred, a colon, and a value of that type")
            }),
        }
    }
}

fn value(kind: &str, text: &str) -> Option<Vec<u8>> {
    let integer = || -> Option<i128> {
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
            return None;
        }
        let magnitude = i128::from_str_radix(digits, radix).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    };
    Some(match kind {
        "u8" => u8::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "u16" => u16::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "u32" => u32::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "u64" => u64::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "s8" => i8::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "s16" => i16::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "s32" => i32::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "s64" => i64::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
        "b8" => bits(integer()?, 1)?,
        "b16" => bits(integer()?, 2)?,
        "b32" => bits(integer()?, 4)?,
        "b64" => bits(integer()?, 8)?,
        "pred" => vec![u8::from(integer()? != 0)],
        "f16" => f16::from_f64(text.parse().ok()?).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(text.parse().ok()?).to_le_bytes().to_vec(),
        "f32" => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        "f64" => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => return None,
    })
}

/// The low bytes of a number that fits them, signed or not.
fn bits(number: i128, bytes: u32) -> Option<Vec<u8>> {
    let range = -(1i128 << (8 * bytes - 1))..(1i128 << (8 * bytes));
    range.contains(&number).then(|| number.to_le_bytes()[..bytes as usize].to_vec())
}

/// An argument with the memory it needs.
pub(super) struct Prepared {
    pub(super) arg: Arg,
    /// Memory to write to a file afterwards.
    pub(super) output: Option<(PathBuf, Buffer<u8>)>,
}

impl Argument {
    /// Allocates and fills what it needs on the device.
    pub(super) fn prepare(&self, device: &Device) -> Result<Prepared, Failure> {
        Ok(match self {
            Argument::Value(bytes) => Prepared { arg: Arg::bytes(bytes), output: None },
            Argument::Null => Prepared { arg: Arg::value(0u64), output: None },
            Argument::File { path, back } => {
                let contents = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
                if contents.is_empty() {
                    return Err(format!("{}: the file is empty", path.display()).into());
                }
                let buffer = device.buffer_from(&contents)?;
                Prepared { arg: Arg::memory(&buffer)?, output: back.then(|| (path.clone(), buffer)) }
            }
            Argument::Out { path, bytes } => {
                let (buffer, stream) = (device.alloc::<u8>(*bytes)?, device.stream()?);
                stream.memset(&buffer, 0u8)?;
                stream.synchronize()?;
                Prepared { arg: Arg::memory(&buffer)?, output: Some((path.clone(), buffer)) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_bytes_of_their_types() {
        let cases: [(&str, &[u8]); 8] = [
            ("f32:2.5", &2.5f32.to_le_bytes()),
            ("s8:-1", &[0xff]),
            ("u64:0x10", &16u64.to_le_bytes()),
            ("b16:-1", &[0xff, 0xff]),
            ("b32:0xffffffff", &[0xff; 4]),
            ("f16:1", &[0x00, 0x3c]),
            ("bf16:1", &[0x80, 0x3f]),
            ("pred:1", &[1]),
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
}
