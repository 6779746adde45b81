//! Modules that no compiler writes: real ones changed at random, and ones that ask for too much. Whatever is in them, loading and looking up
//! their kernels answers, soon and without taking more memory than the text deserves; whether with a kernel or an error.

use std::fmt::Write;
use std::path::PathBuf;

use gridloom::prelude::*;

use crate::support::{Random, data, for_each_engine};

const HEADER: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n";
/// What a module may ask of the device here, so that asking for more is refused and not tried.
const MEMORY: u64 = 256 << 20;

fn real_files() -> Vec<String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["tests/ptx", "tests/kernels"] {
        let entries = std::fs::read_dir(data::folder(folder)).expect("the folder of test files");
        paths.extend(entries.map(|entry| entry.expect("an entry of the folder").path()));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).expect("a test file"));
    // Comments say nothing to the reader of the text, and the long files nothing that the short ones do not.
    let stripped = texts.map(|text| {
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim_end());
        lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect::<String>()
    });
    stripped.filter(|text| text.len() < 12_000).collect()
}

/// Loads a text and gets every kernel of it ready. How many there were.
fn prepare(device: &Device, text: &str) -> usize {
    let Ok(module) = device.load_ptx(text) else { return 0 };
    let kernels = module.kernel_names().into_iter().filter_map(|name| module.untyped_kernel(&name).ok());
    kernels.filter(|kernel| !kernel.info().is_empty()).count()
}

/// Words, numbers and signs of a text, with the space between them.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '%' || c == '$' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut last = None;
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

/// The text with a few of its words exchanged, left out, said twice, or made another of the language.
fn mutate(text: &str, random: &mut Random) -> String {
    const WORDS: [&str; 40] = [
        "u8",
        "s8",
        "u16",
        "s16",
        "b16",
        "u32",
        "s32",
        "b32",
        "u64",
        "s64",
        "b64",
        "b128",
        "f16",
        "bf16",
        "f16x2",
        "f32",
        "f64",
        "pred",
        "v2",
        "v4",
        "v8",
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
        "0x7fffffff",
        "exit",
        "ret",
        "bra",
    ];
    let mut words: Vec<&str> = tokens(text);
    for _ in 0..1 + random.below(4) {
        let (here, there) = (random.below(words.len()), random.below(words.len()));
        match random.below(6) {
            0 => words.swap(here, there),
            1 => words[here] = words[there],
            2 => {
                words.remove(here);
            }
            3 => words.insert(here, words[there]),
            _ => {
                // A word that means something, where one stood.
                let word = random.pick(&WORDS);
                let same = |other: &&str| {
                    other.chars().all(char::is_alphanumeric) == word.chars().all(char::is_alphanumeric)
                };
                if let Some(at) = (0..words.len()).cycle().skip(here).take(50).find(|&at| same(&words[at])) {
                    words[at] = word;
                }
            }
        }
    }
    words.concat()
}

#[test]
fn real_modules_changed_at_random_are_answered() {
    let files = real_files();
    assert!(files.len() > 40);
    for_each_engine(|options| {
        let device = Device::cpu_with(gridloom::CpuOptions { memory_limit: Some(MEMORY), ..options })?;
        let (mut random, mut ready) = (Random::new(1), 0);
        for round in 0..1500 {
            let text = mutate(&files[round % files.len()], &mut random);
            ready += prepare(&device, &text);
        }
        assert!(ready > 500, "too few of the changed modules had kernels left: {ready}");
        Ok(())
    });
}

fn kernel(body: &str) -> String {
    format!(
        "{HEADER}.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<8>;\n.reg .pred %p<4>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n{body}\nret;\n}}\n"
    )
}

/// The error of a text whose kernel `k` must not be had.
fn refusal(options: gridloom::CpuOptions, text: &str) -> Result<String> {
    let device = Device::cpu_with(gridloom::CpuOptions { memory_limit: Some(MEMORY), ..options })?;
    let error = match device.load_ptx(text) {
        Err(error) => error,
        Ok(module) => match module.untyped_kernel("k") {
            Err(error) => error,
            Ok(kernel) => panic!("not refused: {kernel:?}"),
        },
    };
    Ok(error.to_string())
}

#[test]
fn what_asks_for_too_much_is_refused_by_name() {
    let many_params = (0..5000).map(|i| format!(".param .u64 p{i}")).collect::<Vec<_>>().join(", ");
    let cases = [
        (kernel(".reg .b32 %x<4000000000>;"), "registers"),
        (kernel(".local .b8 big[1099511627776];"), "big"),
        (kernel(".shared .b8 big[1099511627776];\nmov.u32 %r0, big;"), "shared memory"),
        (format!("{HEADER}.global .b8 big[1099511627776];\n{}", &kernel("")[HEADER.len()..]), "big"),
        (format!("{HEADER}.global .b8 big[99999999999999999999];\n"), "99999999999999999999"),
        (format!("{HEADER}.visible .entry k(.param .b8 big[1099511627776])\n{{\nret;\n}}\n"), "parameters"),
        (format!("{HEADER}.visible .entry k({many_params})\n{{\nret;\n}}\n"), "parameters"),
    ];
    for_each_engine(|options| {
        for (text, culprit) in &cases {
            let error = refusal(options.clone(), text)?;
            assert!(error.contains(culprit), "expected {culprit:?} in: {error}");
        }
        Ok(())
    });
}

#[test]
fn a_large_variable_costs_nothing_until_it_is_used() {
    // More than most machines have twice; the device only promises it.
    let text = format!(
        "{HEADER}.visible .global .align 8 .b8 big[6000000000];\n.visible .global .u32 small[4] = {{1, 2}};\n"
    );
    for_each_engine(|options| {
        let module = Device::cpu_with(options)?.load_ptx(&text)?;
        assert_eq!(module.global::<u32>("small")?.to_vec()?, [1, 2, 0, 0]);
        Ok(())
    });
}

#[test]
fn large_modules_are_made_ready_all_the_same() {
    let mut straight = String::new();
    for i in 0..20_000 {
        let _ = writeln!(straight, "add.u32 %r{}, %r{}, {i};", i % 8, (i + 3) % 8);
    }
    let mut branches = String::new();
    for i in 0..4_000 {
        let _ = writeln!(
            branches,
            "setp.gt.u32 %p0, %r{}, {i};\n@%p0 bra L{i};\nadd.u32 %r0, %r0, {i};\nL{i}:",
            i % 8
        );
    }
    let targets: Vec<String> = (0..3_000).map(|i| format!("T{i}")).collect();
    let mut table =
        format!("mov.u32 %r0, 0;\nwhere: .branchtargets {};\nbrx.idx %r0, where;\n", targets.join(", "));
    for target in &targets {
        let _ = writeln!(table, "{target}: add.u32 %r1, %r1, 1;");
    }
    let mut loops = String::new();
    for i in 0..60 {
        let _ = writeln!(loops, "N{i}: add.u32 %r0, %r0, 1;");
    }
    for i in (0..60).rev() {
        let _ = writeln!(loops, "setp.lt.u32 %p0, %r0, {i};\n@%p0 bra N{i};");
    }
    let mut calls = HEADER.to_owned();
    for i in 0..1_000 {
        let next = if i == 0 { String::new() } else { format!("call f{};\n", i - 1) };
        let _ = writeln!(calls, ".func f{i}()\n{{\n{next}ret;\n}}");
    }
    calls += &kernel("call f999;")[HEADER.len()..];
    let mut barriers = String::new();
    for i in 0..1_000 {
        let _ = writeln!(barriers, "bar.sync {};\nadd.u32 %r0, %r0, 1;", i % 16);
    }
    let registers = kernel(".reg .b64 %x<262000>;\nmov.u64 %x261999, 1;");
    let texts = [
        kernel(&straight),
        kernel(&branches),
        kernel(&table),
        kernel(&loops),
        calls,
        kernel(&barriers),
        registers,
    ];
    for_each_engine(|options| {
        for text in &texts {
            assert_eq!(prepare(&Device::cpu_with(options.clone())?, text), 1, "{}", &text[..400]);
        }
        Ok(())
    });
}
