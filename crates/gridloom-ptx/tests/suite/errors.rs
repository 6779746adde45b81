//! Rendering of errors, and that all errors are reported.

use gridloom_ptx::{Error, parse};

fn fails(text: &str) -> Error {
    match parse(text) {
        Ok(_) => panic!("no error in {text}"),
        Err(error) => error,
    }
}

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

#[test]
fn an_error_shows_its_line_and_a_caret() {
    let error =
        fails(&format!("{HEADER}.entry k() {{\n\t.reg .b32 %r<4>;\n\tadd.s32\t%r1, %r2, %r7;\n\tret;\n}}\n"));
    let expected = "k.ptx:6:20: unknown register `%r7`\n  \tadd.s32\t%r1, %r2, %r7;\n  \t       \t          ^~~\n  help: `%r<4>` declares %r0 to %r3";
    assert_eq!(error.render("k.ptx"), expected);
}

#[test]
fn display_names_the_text_ptx() {
    let error = fails("hello");
    assert_eq!(
        error.to_string(),
        "<ptx>:1:1: a PTX module starts with .version\n  hello\n  ^~~~~\n  help: for example: .version 8.0"
    );
}

#[test]
fn every_statement_that_is_wrong_is_reported() {
    let error = fails(&format!(
        "{HEADER}.global .u33 x;\n.entry k() {{\n.reg .b32 %r<4>;\nadd.s32 %r1;\nmov.b32 %r1, %q;\nbra nowhere;\n}}\n.bogus;\n"
    ));
    let lines: Vec<u32> = error.diagnostics().iter().map(|diagnostic| diagnostic.line).collect();
    assert_eq!(lines, [4, 7, 8, 9, 11]);
}

#[test]
fn columns_count_characters() {
    let error = fails(&format!("{HEADER}/* größer */ .bogus\n"));
    let diagnostic = &error.diagnostics()[0];
    assert_eq!((diagnostic.line, diagnostic.column), (4, 14));
    assert!(diagnostic.render("f").contains("\n  /* größer */ .bogus\n               ^~~~~~"));
}

#[test]
fn a_long_line_is_shown_in_part() {
    let padding = " ".repeat(5000);
    let error = fails(&format!("{HEADER}{padding}.bogus{padding}"));
    let text = error.render("f");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() < 200), "{text}");
    assert_eq!(lines[1].find(".bogus"), lines[2].find('^'));
    assert_eq!(error.diagnostics()[0].column, 5001);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let error = fails(&format!("{HEADER}.bogus \u{1b}[31m"));
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn missing_header_directives_are_named() {
    assert!(fails("").to_string().contains("a PTX module starts with .version"));
    assert!(
        fails(".version 8.0\n.entry k() { ret; }").to_string().contains("expected .target after .version")
    );
    assert!(fails(".version 8.0 .target sm_80 .address_size 32").to_string().contains("32-bit addresses"));
    assert!(fails(".version eight").to_string().contains("expected a version such as 8.0, found `eight`"));
}

#[test]
fn near_misses_are_suggested() {
    let suggests = |text: &str, help: &str| {
        let error = fails(&format!("{HEADER}{text}"));
        assert!(error.diagnostics()[0].help.as_deref() == Some(help), "{error}");
    };
    suggests(".vizible .entry k() { ret; }", "did you mean .visible?");
    suggests(".entry k() { .reg .b32 count; mov.b32 coutn, 1; ret; }", "did you mean `count`?");
    suggests(".global .u32 table; .entry k() { .reg .b64 %r; mov.u64 %r, tabel; }", "did you mean `table`?");
    suggests(".reg .b32 %r;", "declare .reg inside the body that uses it");
}

#[test]
fn what_does_not_end_is_said_to_not_end() {
    assert!(fails(&format!("{HEADER}/* no end")).to_string().contains("a comment that does not end"));
    assert!(fails(&format!("{HEADER}.file 1 \"no end\n")).to_string().contains("a string that does not end"));
    assert!(
        fails(&format!("{HEADER}.entry k() {{ ret;"))
            .to_string()
            .contains("expected `}` at the end of the function, found the end of the text")
    );
    assert!(fails(&format!("{HEADER}.entry k() {{ ret }}")).to_string().contains("expected `;`, found `}`"));
}

#[test]
fn the_number_of_errors_is_bounded() {
    let text = format!("{HEADER}{}", ".bogus;\n".repeat(10_000));
    assert!(fails(&text).diagnostics().len() <= 50);
}
