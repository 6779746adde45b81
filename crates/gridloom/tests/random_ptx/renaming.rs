//! Registers of one statement only: how often each is written decides what a compiler knows of it.
//!
//! Statements use a few temporary registers, which are written again and again. Compilers give
//! every value a register of its own, so that a register with the index of a thread has nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};

/// The temporary registers, with their types.
pub(crate) const TEMPORARIES: [(&str, &str); 19] = [
    ("%t0", "b32"),
    ("%t1", "b32"),
    ("%t2", "b32"),
    ("%t3", "b32"),
    ("%row", "b32"),
    ("%entry", "b32"),
    ("%byte", "b32"),
    ("%extent", "b32"),
    ("%td0", "b64"),
    ("%td1", "b64"),
    ("%td2", "b64"),
    ("%far", "b64"),
    ("%across", "b64"),
    ("%near0", "b64"),
    ("%near4", "b64"),
    ("%word", "b64"),
    ("%table", "b64"),
    ("%tq", "pred"),
    ("%tg", "pred"),
];

/// What a temporary register is.
fn type_of(name: &str) -> Option<&'static str> {
    TEMPORARIES.iter().find(|(other, _)| *other == name).map(|&(_, ty)| ty)
}

/// Splits a text into names of registers and what is between them.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let end = rest[at + 1..].find(|c| !part(c)).map_or(rest.len(), |length| at + 1 + length);
        pieces.push(&rest[..at]);
        pieces.push(&rest[at..end]);
        rest = &rest[end..];
    }
    pieces.push(rest);
    pieces
}

/// Where the operands that an instruction writes end, or 0 if it writes none.
fn end_of_written(instruction: &str) -> usize {
    const WRITE_NONE: [&str; 11] =
        ["st.", "st{", "red.", "bar", "membar", "fence", "prefetch", "cp.", "bra", "ret", "exit"];
    let plain = instruction.trim_start();
    if WRITE_NONE.iter().any(|name| plain.starts_with(name)) {
        return 0;
    }
    let mut open = 0;
    for (at, c) in instruction.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            ',' if open == 0 => return at,
            _ => {}
        }
    }
    0
}

/// Gives the temporary registers of a statement names of their own, which end with a number. Where
/// each definition has its own register, this holds up to the first branch.
pub(crate) fn renamed(lines: &[String], number: u32, each_definition: bool) -> Vec<String> {
    let mut versions: BTreeMap<&str, u32> = BTreeMap::new();
    let mut straight = each_definition;
    let mut text = Vec::new();
    for line in lines.iter().flat_map(|line| line.split('\n')) {
        let guarded = line.trim_start().starts_with('@');
        straight &= !line.contains("bra") && !line.trim_end().ends_with(':') && !line.contains("call");
        let written = if guarded { 0 } else { end_of_written(line) };
        let mut name = |piece: &str, defines: bool| {
            let Some(&(stem, _)) = TEMPORARIES.iter().find(|(stem, _)| *stem == piece) else {
                return piece.to_owned();
            };
            let version = versions.entry(stem).or_insert(0);
            *version += u32::from(defines && straight);
            match *version {
                0 => format!("{stem}_{number}"),
                version => format!("{stem}_{number}_{version}"),
            }
        };
        // What is read has the names from before.
        let read: String = pieces(&line[written..]).into_iter().map(|piece| name(piece, false)).collect();
        let written: String = pieces(&line[..written]).into_iter().map(|piece| name(piece, true)).collect();
        text.push(format!("{written}{read}"));
    }
    text
}

/// Returns the renamed registers that a text mentions, by their type.
pub(crate) fn declared(text: &str) -> BTreeMap<&'static str, BTreeSet<&str>> {
    let mut found: BTreeMap<&'static str, BTreeSet<&str>> = BTreeMap::new();
    for piece in pieces(text) {
        if let Some((stem, _)) = piece.split_once('_')
            && let Some(ty) = type_of(stem)
        {
            found.entry(ty).or_default().insert(piece);
        }
    }
    found
}

#[test]
fn each_definition_has_a_register_of_its_own_up_to_the_first_branch() {
    let lines = [
        "add.u32 %t0, %t0, %linear;\n    shfl.sync.up.b32 %t1|%tq, %t0, 1, 0, -1;".to_owned(),
        "@%tq add.u32 %t0, %t0, %t1;".to_owned(),
        "st.shared.u32 [%t0], %t1;\n    @%tq bra L;\n    add.u32 %t0, %t0, 1;".to_owned(),
    ];
    let expected = "add.u32 %t0_7_1, %t0_7, %linear;\n    shfl.sync.up.b32 %t1_7_1|%tq_7_1, %t0_7_1, 1, 0, -1;\n\
        @%tq_7_1 add.u32 %t0_7_1, %t0_7_1, %t1_7_1;\nst.shared.u32 [%t0_7_1], %t1_7_1;\n    @%tq_7_1 bra L;\n    add.u32 %t0_7_1, %t0_7_1, 1;";
    assert_eq!(renamed(&lines, 7, true).join("\n"), expected);
    assert_eq!(renamed(&lines[1..2], 8, false), ["@%tq_8 add.u32 %t0_8, %t0_8, %t1_8;"]);
}
