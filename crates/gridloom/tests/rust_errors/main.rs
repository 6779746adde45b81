//! Errors in kernels and programs: the compiler reports each at the code that is wrong, and says
//! what to do.
//!
//! The files in `cases` are compiled. Behind a wrong line, `//~^ [text]: message` states an error
//! whose span has this text and whose code and message begin so. Each such error must be there, and
//! no error on another line. `GRIDLOOM_BLESS=1` writes what the compiler says into the files.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// An error that the compiler reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reported {
    line: usize,
    text: String,
    message: String,
}

/// Words that only messages of this crate have. Others may change with the compiler, so that their
/// code stands for them.
const OWN_WORDS: [&str; 7] = [
    "device code",
    "a kernel cannot",
    "`block::sync`",
    "these arguments",
    "cannot be passed",
    "a loop around",
    "a parallel loop",
];

/// Returns the newest library that the tests of this build could use.
fn library(name: &str) -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.to_owned();
    let prefix = format!("lib{name}-");
    let is_library = |path: &PathBuf| {
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        file.starts_with(&prefix) && file.ends_with(".rlib")
    };
    let libraries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(is_library);
    libraries.max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok())
}

/// Returns the place in the file that a span is at, also where a macro wrote the code.
fn in_file<'a>(span: &'a Value, file: &str) -> &'a Value {
    let mut span = span;
    while span["file_name"].as_str() != Some(file) && span["expansion"]["span"].is_object() {
        span = &span["expansion"]["span"];
    }
    span
}

fn reported(diagnostic: &Value, file: &str) -> Vec<Reported> {
    let message = diagnostic["message"].as_str().unwrap_or_default();
    let message = match diagnostic["code"]["code"].as_str() {
        None => message.to_owned(),
        Some(code) if OWN_WORDS.iter().any(|words| message.contains(words)) => format!("{code} {message}"),
        Some(code) => code.to_owned(),
    };
    let spans = diagnostic["spans"].as_array().into_iter().flatten();
    let primary = spans.filter(|span| span["is_primary"] == true).map(|span| in_file(span, file));
    primary
        .map(|span| {
            let text = &span["text"][0];
            let column = |name: &str| text[name].as_u64().unwrap_or(1) as usize - 1;
            let (start, end) = (column("highlight_start"), column("highlight_end"));
            let line: Vec<char> = text["text"].as_str().unwrap_or_default().chars().collect();
            Reported {
                line: span["line_start"].as_u64().unwrap_or(0) as usize,
                text: line.get(start..end).unwrap_or_default().iter().collect(),
                message: message.clone(),
            }
        })
        .collect()
}

/// Compiles a file and returns its errors, in order.
fn errors_of(path: &Path) -> Option<Vec<Reported>> {
    let (gridloom, file) = (library("gridloom")?, path.to_str()?);
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--error-format", "json"])
        .args(["-A", "warnings", "--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .arg("-L")
        .arg(format!("dependency={}", gridloom.parent()?.display()))
        .arg("--extern")
        .arg(format!("gridloom={}", gridloom.display()))
        .arg(file)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let diagnostics = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = diagnostics.filter(|diagnostic| diagnostic["level"] == "error");
    let mut all: Vec<Reported> = errors.flat_map(|diagnostic| reported(&diagnostic, file)).collect();
    all.sort();
    all.dedup();
    Some(all)
}

/// Returns the errors that a file states.
fn stated(source: &str) -> Vec<Reported> {
    let (mut all, mut code) = (Vec::new(), 0);
    for (index, line) in source.lines().enumerate() {
        match line.trim_start().strip_prefix("//~^ [") {
            Some(rest) => {
                let (text, message) = rest.split_once("]: ").expect("`//~^ [text]: message`");
                all.push(Reported { line: code, text: text.to_owned(), message: message.to_owned() });
            }
            None => code = index + 1,
        }
    }
    all
}

fn bless(path: &Path, source: &str, errors: &[Reported]) {
    let mut lines = Vec::new();
    for (index, line) in source.lines().enumerate() {
        if line.trim_start().starts_with("//~^ ") {
            continue;
        }
        lines.push(line.to_owned());
        let indent = " ".repeat(line.len() - line.trim_start().len());
        let here = errors.iter().filter(|error| error.line == index + 1);
        lines.extend(here.map(|error| format!("{indent}//~^ [{}]: {}", error.text, error.message)));
    }
    std::fs::write(path, lines.join("\n") + "\n").expect("the case can be written");
}

/// Compares the errors of a file with those that it states.
fn check(name: &str, least: usize) {
    let root = std::env::var_os("GRIDLOOM_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        |data| PathBuf::from(data).join("crates/gridloom"),
    );
    let path = root.join("tests/rust_errors/cases").join(name);
    let Some(errors) = errors_of(&path) else {
        eprintln!("{name} skipped: there is no compiler, or no library to compile it with");
        return;
    };
    let source = std::fs::read_to_string(&path).expect("the case can be read");
    if std::env::var_os("GRIDLOOM_BLESS").is_some() {
        return bless(&path, &source, &errors);
    }
    let stated = stated(&source);
    assert!(stated.len() >= least, "{name} states {} errors", stated.len());
    for error in &stated {
        let is_reported = errors.iter().any(|found| {
            found.line == error.line && found.text == error.text && found.message.starts_with(&error.message)
        });
        assert!(
            is_reported,
            "{name}: not reported: {error:#?}\non this line: {:#?}",
            errors.iter().filter(|found| found.line == error.line).collect::<Vec<_>>()
        );
    }
    for found in &errors {
        assert!(stated.iter().any(|error| error.line == found.line), "{name}: not stated: {found:#?}");
    }
}

#[test]
fn code_that_kernels_cannot_have() {
    check("refused_kernels.rs", 50);
}

#[test]
fn code_that_programs_cannot_have() {
    check("refused_programs.rs", 19);
}

#[test]
fn types_that_do_not_fit() {
    check("wrong_types.rs", 40);
}

#[test]
fn values_that_are_moved_or_borrowed() {
    check("wrong_borrows.rs", 16);
}
