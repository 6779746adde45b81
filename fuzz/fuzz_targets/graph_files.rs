//! Any text: what reads files of graphs answers, and what it takes can be drawn and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match gridloom_view::read(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(mut picture) => {
            picture.arrange();
            assert!(!picture.to_dot().is_empty() && !picture.to_mermaid().is_empty());
            assert!(!picture.to_html(None).is_empty());
        }
    }
});
