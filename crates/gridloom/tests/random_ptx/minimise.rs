//! Reduces a program to the smallest that still shows a difference, and writes a test file for it.

use std::fmt::Write;

use super::buffers::BUFFERS;
use super::program::{Program, Statement};

/// Leaves out of a program whatever it can without losing what `shows` sees.
pub(crate) fn minimise(mut program: Program, shows: &dyn Fn(&Program) -> bool) -> Program {
    loop {
        let before = size(&program);
        for grid in [[1, 1, 1], [2, 1, 1]] {
            keep(&mut program, shows, |program| program.grid = grid);
        }
        for block in [[1, 1, 1], [2, 1, 1], [4, 1, 1], [32, 1, 1], [33, 1, 1], [64, 1, 1]] {
            if block[0] < program.threads_per_block() {
                keep(&mut program, shows, |program| program.block = block);
            }
        }
        keep(&mut program, shows, |program| program.then = None);
        keep(&mut program, shows, |program| program.block = program.then.take().unwrap_or(program.block));
        keep(&mut program, shows, |program| program.dynamic = false);
        // Long stretches first, then one statement after the other, inner ones too.
        let mut stretch = program.body.len() / 2;
        while stretch > 1 {
            let mut start = 0;
            while start + stretch <= program.body.len() {
                let gone = keep(&mut program, shows, |program| {
                    program.body.drain(start..start + stretch);
                });
                if !gone {
                    start += stretch;
                }
            }
            stretch /= 2;
        }
        for which in 0..1 + program.functions.len() {
            let mut index = 0;
            while index < count(part(&mut program, which)) {
                let gone = keep(&mut program, shows, |program| {
                    let body = part(program, which);
                    *body = edit(body, &mut { index }, Edit::Remove);
                });
                let opened = !gone
                    && keep(&mut program, shows, |program| {
                        let body = part(program, which);
                        *body = edit(body, &mut { index }, Edit::Open);
                    });
                if !gone && !opened {
                    index += 1;
                }
            }
        }
        for words in [program.input.len(), 32, 8] {
            for start in (0..program.input.len()).step_by(words) {
                keep(&mut program, shows, |program| program.input[start..start + words].fill(0));
            }
        }
        if size(&program) >= before {
            return program;
        }
    }
}

fn part(program: &mut Program, which: usize) -> &mut Vec<Statement> {
    match which {
        0 => &mut program.body,
        _ => &mut program.functions[which - 1].body,
    }
}

/// Makes a change unless it loses what is looked for. Says whether it made it.
fn keep(program: &mut Program, shows: &dyn Fn(&Program) -> bool, change: impl FnOnce(&mut Program)) -> bool {
    let mut changed = program.clone();
    change(&mut changed);
    // What makes no difference to the text would be tried for ever.
    let kept = (changed.text() != program.text()
        || changed.input != program.input
        || changed.grid != program.grid
        || changed.block != program.block
        || changed.then != program.then)
        && shows(&changed);
    if kept {
        *program = changed;
    }
    kept
}

fn size(program: &Program) -> usize {
    program.text().len() + program.threads() as usize + usize::from(program.then.is_some())
}

#[derive(Clone, Copy)]
enum Edit {
    Remove,
    /// What is inside takes its place.
    Open,
}

fn count(statements: &[Statement]) -> usize {
    let mut count = 0;
    super::program::each(statements, &mut |_| count += 1);
    count
}

/// Returns the statements with the one of that number changed, counted as
/// [`each`](super::program::each) visits them.
fn edit(statements: &[Statement], number: &mut usize, how: Edit) -> Vec<Statement> {
    let mut edited = Vec::new();
    for statement in statements {
        let here = *number == 0;
        *number = number.wrapping_sub(1);
        if !here {
            let mut statement = statement.clone();
            match &mut statement {
                Statement::If(parts) => {
                    parts.then = edit(&parts.then, number, how);
                    parts.otherwise = edit(&parts.otherwise, number, how);
                }
                Statement::Loop(parts) => parts.body = edit(&parts.body, number, how),
                Statement::Switch(parts) => {
                    for case in &mut parts.cases {
                        *case = edit(case, number, how);
                    }
                }
                _ => {}
            }
            edited.push(statement);
        } else if let Edit::Open = how {
            let code = |line: String| Statement::Code(vec![line]);
            match statement {
                Statement::If(parts) => {
                    if let Some(masks) = &parts.masks {
                        edited.push(code(format!("mov.b32 {}, {};", masks.then, masks.outer)));
                        edited.push(code(format!("mov.b32 {}, {};", masks.otherwise, masks.outer)));
                    }
                    edited.extend(parts.then.iter().cloned());
                    edited.extend(parts.otherwise.iter().cloned());
                }
                Statement::Loop(parts) => {
                    edited.push(code(format!("mov.u32 %i{}, 0;", parts.number)));
                    if let Some((outer, inner)) = &parts.masks {
                        edited.push(code(format!("mov.b32 {inner}, {outer};")));
                    }
                    edited.extend(parts.body.iter().cloned());
                }
                Statement::Switch(parts) => {
                    if let Some((outer, inner)) = &parts.masks {
                        edited.push(code(format!("mov.b32 {inner}, {outer};")));
                    }
                    edited.extend(parts.cases.iter().flatten().cloned());
                }
                _ => edited.push(statement.clone()),
            }
        }
    }
    edited
}

/// Returns the program as a file for `tests/ptx`, which expects what the reference computed.
pub(crate) fn test_file(program: &Program, seed: u64, expected: &[Vec<u8>]) -> String {
    let text = program.text();
    let (grid, block) = (program.grid, program.block);
    let mut file =
        format!("// Found by comparing engines on random programs (seed {seed}), and made small.\n\n");
    if let Some([x, y, z]) = program.then {
        let _ = writeln!(
            file,
            "// It was then launched with block={x},{y},{z}, and the memory was that of both.\n"
        );
    }
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    let shared = program.shared_bytes();
    let _ = writeln!(file, "// RUN: kernel=random grid={gx},{gy},{gz} block={bx},{by},{bz} shared={shared}");
    let before = program.buffers(&text);
    for (name, bytes) in BUFFERS.iter().zip(&before) {
        let _ = match bytes.iter().all(|&byte| byte == 0) {
            true => writeln!(file, "// ARG: out u32 {}  # {name}", bytes.len() / 4),
            false => writeln!(file, "// ARG: in u32 [{}]  # {name}", words(bytes)),
        };
    }
    let _ = writeln!(file, "// ARG: u32 {}", program.n);
    let _ = writeln!(file, "// ARG: u64 0x{:016x}", program.x);
    let _ = writeln!(file, "// ARG: f32 0x{:08x}", program.z);
    for (index, (bytes, before)) in expected.iter().zip(&before).enumerate() {
        if index == 1 || bytes != before {
            let _ = writeln!(file, "// EXPECT: {index} u32 [{}]", words(bytes));
        }
    }
    file + "\n" + &text
}

fn words(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, word) in bytes.chunks_exact(4).enumerate() {
        let separator = match index {
            0 => "",
            _ if index % 12 == 0 => ",\n//     ",
            _ => ", ",
        };
        let _ = write!(text, "{separator}0x{:08x}", u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    }
    text
}
