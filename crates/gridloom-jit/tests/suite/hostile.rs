//! Modules that no compiler writes, compiled: real ones changed at random, and long ones. Whatever
//! is in them, the compiler answers.
//!
//! `GRIDLOOM_RANDOM_MODULES=10000` changes more of them.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use gridloom_interp::{Layout, Program};
use gridloom_jit::CompiledKernel;

use crate::random_numbers::Random;

/// Compiles every kernel of a text, all of it. How many there were, and what could not be compiled.
fn compile(text: &str) -> (usize, Vec<String>) {
    let Ok(module) = gridloom_ptx::parse(text) else { return (0, Vec::new()) };
    let Ok(layout) = Layout::of(&module) else { return (0, Vec::new()) };
    let addresses = (1..).map(|index| index << 32).take(layout.variables().len()).collect();
    let names: Vec<String> = module.entries().map(|(_, function)| function.name.clone()).collect();
    let program = Program::new(Arc::new(module), layout, addresses);
    let (mut kernels, mut errors) = (0, Vec::new());
    for name in names {
        let Ok(kernel) = program.kernel(&name) else { continue };
        let Ok(compiled) = CompiledKernel::new(kernel) else { continue };
        kernels += 1;
        errors.extend(compiled.compile_all().err());
    }
    (kernels, errors)
}

/// Test files, without comments, which say nothing to the reader of the text.
fn real_files(longest: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["../gridloom/tests/ptx", "../gridloom/tests/kernels"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(folder).expect("the folder of test files");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a test file");
            let lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim_end());
            texts.push(
                lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect::<String>(),
            );
        }
    }
    texts.retain(|text| text.len() < longest);
    texts
}

/// Words, signs and the space between them.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '%' | '$') => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let (mut tokens, mut start, mut last) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        if at > start && (last != Some(kind(c)) || kind(c) == 2) {
            tokens.push(&text[start..at]);
            start = at;
        }
        last = Some(kind(c));
    }
    tokens.push(&text[start..]);
    tokens
}

/// Returns the text with a few of its words exchanged, left out, said twice, or made another of the
/// language.
fn mutate(text: &str, random: &mut Random) -> String {
    const TYPES: [&str; 19] = [
        "u8", "s8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "b128", "f16", "bf16",
        "f16x2", "bf16x2", "f32", "f64", "pred",
    ];
    const WORDS: [&str; 20] = [
        "shared",
        "global",
        "local",
        "const",
        "param",
        "ftz",
        "sat",
        "rn",
        "rz",
        "approx",
        "0",
        "1",
        "-1",
        "4294967295",
        "18446744073709551615",
        "exit",
        "ret",
        "wide",
        "v2",
        "v4",
    ];
    let mut words = tokens(text);
    for _ in 0..1 + random.below(3) {
        let (here, there) = (random.below(words.len()), random.below(words.len()));
        let next = |list: &[&str], words: &[&str]| (here..words.len()).find(|&at| list.contains(&words[at]));
        match random.below(8) {
            0 => words.swap(here, there),
            1 => {
                words.remove(here);
            }
            2 => words.insert(here, words[there]),
            3 => {
                if let Some(at) = next(&WORDS, &words) {
                    words[at] = WORDS[random.below(WORDS.len())];
                }
            }
            4 | 5 => {
                // One register for another.
                let registers: Vec<usize> =
                    (0..words.len()).filter(|&at| words[at].starts_with('%')).collect();
                if !registers.is_empty() {
                    let (to, from) =
                        (registers[random.below(registers.len())], registers[random.below(registers.len())]);
                    words[to] = words[from];
                }
            }
            _ => {
                if let Some(at) = next(&TYPES, &words) {
                    words[at] = TYPES[random.below(TYPES.len())];
                }
            }
        }
    }
    words.concat()
}

#[test]
fn real_modules_changed_at_random_are_compiled_or_refused() {
    let rounds =
        std::env::var("GRIDLOOM_RANDOM_MODULES").map_or(200, |rounds| rounds.parse().expect("a number"));
    let files = real_files(if rounds > 1000 { 12_000 } else { 4_000 });
    assert!(files.len() > 20, "{} files", files.len());
    let (mut random, mut ready) = (Random::new(1), 0);
    for round in 0..rounds {
        let text = mutate(&files[round % files.len()], &mut random);
        let outcome = std::panic::catch_unwind(|| compile(&text));
        match outcome {
            Ok((kernels, _)) => ready += kernels,
            Err(_) => panic!("panicked in round {round}, on this module:\n{text}"),
        }
    }
    assert!(
        ready > rounds / 3,
        "too few of the changed modules had kernels left: {ready} in {rounds} rounds"
    );
}

fn kernel(body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<8>;\n.reg .pred %p<4>;\n{body}\nret;\n}}\n"
    )
}

/// What takes a compiler of whole functions long is left to the interpreter, or taken in parts;
/// either way there is an answer soon.
#[test]
fn long_kernels_are_answered() {
    let mut straight = String::new();
    for i in 0..3_000 {
        let _ = writeln!(straight, "mad.lo.u32 %r{}, %r{}, %r{}, {i};", i % 8, (i + 3) % 8, (i + 5) % 8);
    }
    let mut branches = String::new();
    for i in 0..600 {
        let _ = writeln!(
            branches,
            "setp.gt.u32 %p0, %r{}, {i};\n@%p0 bra L{i};\nadd.u32 %r0, %r0, {i};\nL{i}:",
            i % 8
        );
    }
    let mut barriers = String::new();
    for i in 0..400 {
        let _ = writeln!(barriers, "bar.sync {};\nadd.u32 %r{}, %r0, 1;", i % 16, i % 8);
    }
    for body in [straight, branches, barriers] {
        compile(&kernel(&body));
    }
}
