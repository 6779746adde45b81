//! The buffers that a program is launched with.

use super::program::{COLUMNS, COUNTERS, OWN_BYTES, Program, mentions};

/// The buffers of a launch, in the order of the parameters.
pub(crate) const BUFFERS: [&str; 5] = ["p_in", "p_out", "p_mine", "p_columns", "p_common"];

impl Program {
    /// Returns what the buffers hold before a launch. One that the program does not use is one
    /// element, to keep files small.
    pub(crate) fn buffers(&self, text: &str) -> Vec<Vec<u8>> {
        let words = |count: u32, step: u32| -> Vec<u8> {
            let word = |index: u32| self.input[((index * step) as usize) % self.input.len()];
            (0..count).flat_map(|index| word(index).to_le_bytes()).collect()
        };
        let kernel =
            text.split(".entry").nth(1).and_then(|text| text.split_once('{')).map_or("", |(_, body)| body);
        let used = |name: &str| mentions(kernel, name);
        let sized = |name: &str, words: Vec<u8>| if used(name) { words } else { vec![0; 8] };
        vec![
            sized("p_in", words(self.input_words(), 1)),
            sized("p_out", vec![0; (self.record_bytes() * self.threads()) as usize]),
            sized("p_mine", words(self.threads() * OWN_BYTES / 4, 7)),
            sized("p_columns", words(self.threads() * COLUMNS, 3)),
            sized("p_common", words(2 * COUNTERS, 5)),
        ]
    }
}
