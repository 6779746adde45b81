//! Any text: what reads files of graphs answers, and what it takes can be drawn, compared and
//! written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match gridloom_view::read(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(mut picture) => {
            picture.arrange();
            assert!(!picture.to_dot().is_empty() && !picture.to_mermaid().is_empty());
            assert!(!picture.to_html(None).is_empty());
            assert!(!picture.to_svg().is_empty() && !picture.to_tree().is_empty());
            assert!(picture.diff(&picture).is_empty());
            // A graph without nodes, or nested deeper than is read, is refused here.
            let _ = gridloom_view::read(&picture.to_dot());
        }
    }
});
