//! Listings: instructions as text for people to read.

use std::ops::Range;

/// Returns the instructions in a part of some code as one line of text.
#[cfg(any(feature = "disassembly", test))]
pub(super) fn line(code: &[u8], part: Range<usize>) -> String {
    use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};
    // Distances count from the start of the code.
    let mut decoder = Decoder::with_ip(64, &code[part.clone()], part.start as u64, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    let mut text = String::new();
    for instruction in &mut decoder {
        if !text.is_empty() {
            text.push_str("; ");
        }
        formatter.format(&instruction, &mut text);
    }
    text
}

/// Returns the bytes of a part of some code as one line of text.
#[cfg(not(any(feature = "disassembly", test)))]
pub(super) fn line(code: &[u8], part: Range<usize>) -> String {
    let bytes: Vec<String> = code[part].iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}
