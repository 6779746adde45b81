//! The colours of kinds of nodes, the same as on the page.

/// Returns the colour of a kind of node.
pub(crate) fn colour_of(kind: &str) -> &'static str {
    match kind {
        "kernel" => "#4c78a8",
        "memcpy" => "#54a24b",
        "memset" => "#88c9a1",
        "alloc" => "#b79a20",
        "free" => "#d8c373",
        "callback" => "#e45756",
        "record" | "event_record" => "#9d755d",
        "wait" | "event_wait" => "#bab0ac",
        "child" => "#79706e",
        "if" => "#c98bb9",
        "if-else" | "if_else" => "#a35f92",
        "switch" => "#7c4a8c",
        "while" => "#d67195",
        "empty" => "#c8ccd2",
        "opaque" => "#5f6b7a",
        _ => "#8f99a6",
    }
}

/// Returns a text colour that is readable on a colour.
pub(crate) fn ink_on(colour: &str) -> &'static str {
    let channel = |at: usize| u32::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0);
    let lightness = 299 * channel(1) + 587 * channel(3) + 114 * channel(5);
    if lightness > 150_000 { "#15181d" } else { "#ffffff" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_colours_have_dark_text() {
        assert_eq!(ink_on(colour_of("kernel")), "#ffffff");
        assert_eq!(ink_on(colour_of("memset")), "#15181d");
    }
}
