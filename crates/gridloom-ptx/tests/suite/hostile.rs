//! Texts that no compiler writes: cut, mixed up, deep, long, and large. Whatever comes in, the
//! parser answers; and what it takes, it prints and takes again.

use crate::random_numbers::Random;
use std::path::Path;

use gridloom_ptx::{check, parse, parse_bytes};

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// The property the fuzzer tests too.
fn answers(bytes: &[u8]) {
    match parse_bytes(bytes) {
        Err(error) => {
            assert!(!error.diagnostics().is_empty());
            assert!(!error.to_string().is_empty());
        }
        Ok(module) => {
            let _ = check(&module);
            let printed = module.to_string();
            let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert!(again == module, "prints as another module:\n{printed}");
        }
    }
}

fn fails(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("no error"),
        Err(error) => error.to_string(),
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> =
            std::fs::read_dir(folder).expect("the corpus").flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(std::fs::read(path).expect("a file of the corpus"));
            }
        }
    }
    // The small ones say as much as the large ones, and faster.
    files.sort_by_key(Vec::len);
    files.truncate(40);
    assert!(files.len() == 40);
    files
}

#[test]
fn a_text_cut_anywhere_is_answered() {
    for text in corpus().iter().take(6) {
        for end in (0..text.len()).step_by(7) {
            answers(&text[..end]);
        }
    }
}

#[test]
fn a_text_with_bytes_changed_is_answered() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let interesting = b"{}()[];:,.%@!|+-<>=_$\"/*0x9fFUw \n\0\xff";
    for text in corpus() {
        for _ in 0..40 {
            let mut text = text.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(text.len().max(1));
                match random.below(4) {
                    0 => text[at] = interesting[random.below(interesting.len())],
                    1 => text.insert(at, interesting[random.below(interesting.len())]),
                    2 => {
                        text.remove(at);
                    }
                    _ => text.truncate(at.max(1)),
                }
            }
            answers(&text);
        }
    }
}

#[test]
fn texts_with_words_mixed_up_are_answered() {
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let texts = corpus();
    let words: Vec<&[u8]> =
        texts.iter().flat_map(|text| text.split_inclusive(|byte| b" \t\n,".contains(byte))).collect();
    for text in &texts {
        for _ in 0..40 {
            let mut parts: Vec<&[u8]> = text.split_inclusive(|byte| b" \t\n,".contains(byte)).collect();
            for _ in 0..=random.below(6) {
                let at = random.below(parts.len().max(1));
                match random.below(3) {
                    0 => parts[at] = words[random.below(words.len())],
                    1 => parts.insert(at, words[random.below(words.len())]),
                    _ => {
                        let to = (at + random.below(8)).min(parts.len());
                        parts.drain(at..to);
                    }
                }
            }
            answers(&parts.concat());
        }
    }
}

#[test]
fn depth_is_bounded() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    assert!(
        fails(&format!("{HEADER}.entry k() {}", deep("{", "}"))).contains("scopes nested deeper than 64")
    );
    let expression = |text: &str| fails(&format!("{HEADER}.global .u32 x = {text};"));
    assert!(expression(&deep("(", ")")).contains("nested deeper than 64"));
    assert!(expression(&"-".repeat(100_000)).contains("nested deeper than 64"));
    assert!(expression(&"1?1:".repeat(100_000)).contains("nested deeper than 64"));
    assert!(expression(&"1?".repeat(100_000)).contains("nested deeper than 64"));
    assert!(expression(&"(.u64)".repeat(100_000)).contains("nested deeper than 64"));
    answers(format!("{HEADER}.global .u32 x[1][1][1][1][1][1][1][1] = {};", deep("{", "}")).as_bytes());
    answers(format!("{HEADER}.entry k() {{ ld.b32 {}", deep("{", "}")).as_bytes());
    answers(format!("{HEADER}.entry k() {{ brandnew {};}}", deep("{", "}")).as_bytes());
    answers(format!("{HEADER}.global .u32 x = 1{};", "+1".repeat(100_000)).as_bytes());
}

#[test]
fn registers_are_bounded() {
    let declares = |text: &str| format!("{HEADER}.entry k() {{ {text} ret; }}");
    assert!(parse(&declares(".reg .b32 %r<262144>;")).is_ok());
    assert!(fails(&declares(".reg .b32 %r<262145>;")).contains("at most 262144 registers"));
    assert!(fails(&declares(".reg .b32 %r<4294967295>;")).contains("at most 262144 registers"));
    assert!(fails(&declares(".reg .b32 %r<99999999999999999999>;")).contains("is not a number of registers"));
    assert!(
        fails(&declares(".reg .b32 %a<150000>; .reg .b32 %b<150000>;")).contains("at most 262144 registers")
    );
}

#[test]
fn ranges_of_variables_are_bounded() {
    let declares = |text: &str| format!("{HEADER}.entry k() {{ {text} ret; }}");
    answers(declares(".local .u32 x<4096>[2];").as_bytes());
    assert!(fails(&declares(".local .u32 x<4097>;")).contains("at most 4096 variables"));
    assert!(
        fails(&declares(&format!(".local .u32 {}<4096>;", "x".repeat(100_000))))
            .contains("at most 256 bytes")
    );
}

#[test]
fn diagnostics_of_a_long_line_are_small() {
    let wrong = "add.s32 %r, %r, %f;".repeat(20_000);
    let text = format!("{HEADER}.entry k() {{ .reg .b32 %r; .reg .f32 %f; {wrong} }}");
    let found = check(&parse(&text).expect("a module"));
    assert_eq!(found.len(), 50);
    assert!(found.iter().all(|diagnostic| diagnostic.source_line.len() < 1000));
    let shown = found[49].to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[2].find('^').map(|at| &lines[1][at..at + 3]), Some("%f;"));
}

#[test]
fn sizes_are_bounded() {
    let declares = |text: &str| fails(&format!("{HEADER}.global {text};"));
    assert!(declares(".b8 x[9223372036854775807]").contains("larger than"));
    assert!(declares(".b64 x[4294967296][4294967296]").contains("larger than"));
    assert!(declares(".b8 x[-1]").contains("cannot have -1 elements"));
    assert!(declares(".b8 x[1][1][1][1][1][1][1][1][1]").contains("at most 8 dimensions"));
    assert!(declares(".b8 x[][]").contains("only the first dimension"));
    assert!(declares(".b8 x[2][1000000000] = {{1}, {2}}").contains("leave too much"));
    assert!(declares(".align 3 .b8 x").contains("power of two"));
}

#[test]
fn long_texts_are_read_in_one_pass() {
    let repeated = |before: &str, part: &str, count: usize, after: &str| {
        answers(format!("{HEADER}{before}{}{after}", part.repeat(count)).as_bytes());
    };
    repeated(".entry k() {", "{ .reg .pred p; { .reg .pred p; } }", 20_000, "}");
    repeated(".func f(.param .b32 a) { ret; } .entry k() {", "{ .param .b32 a; call f, (a); }", 20_000, "}");
    repeated(".entry k() { .reg .b32 %r;", "add.u32 _, %r, %r;", 20_000, "}");
    repeated(".entry k() {", "l: ", 20_000, "}");
    repeated(".entry ", "k", 500_000, "() { ret; }");
    repeated(".entry k() { bra ", "k", 500_000, "; }");
    repeated("//", "/*", 500_000, "");
    repeated("", "/", 500_000, "");
    repeated("", "\0", 500_000, "x");
    repeated("", "\"", 500_001, "");
    repeated(".global .b8 x[] = {", "1,", 200_000, "0};");
    repeated(".entry k() { add", ".x", 200_000, " ; }");
    let many: String = (0..20_000).map(|index| format!(".global .u32 x{index};")).collect();
    answers(format!("{HEADER}{many}").as_bytes());
    let unknown: String = (0..20_000).map(|index| format!("mov.b32 %r, y{index};")).collect();
    answers(format!("{HEADER}{many}.entry k() {{ .reg .b32 %r; {unknown} }}").as_bytes());
}

#[test]
fn every_short_text_of_odd_bytes_is_answered() {
    for first in 0..=255u8 {
        for second in *b"{};.%\"/*(0" {
            answers(&[first, second]);
            answers(&[HEADER.as_bytes(), &[second, first, second]].concat());
            answers(&[HEADER.as_bytes(), b".entry k() {", &[first, second], b"}"].concat());
        }
    }
}
