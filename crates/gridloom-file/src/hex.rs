//! Bytes as hexadecimal digits.

use std::fmt::Write;

use crate::error::{Error, Result};

/// Returns bytes as hexadecimal digits, two for each.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the bytes that hexadecimal digits stand for.
pub fn decode(text: &str) -> Result<Vec<u8>> {
    let wrong = || Error::new("bytes are written as pairs of hexadecimal digits");
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
    pairs.iter().map(|&[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_back_and_other_text_is_refused() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all);
        for wrong in ["0", "0g", "é", "+1", " 1"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
