//! A random kernel as a tree of statements, and the PTX it is written as.
//!
//! Every statement stands on its own: it computes the addresses it uses, and waits for what it
//! waits for. So whichever are left out, what remains is a valid program without data races, and
//! only what it mentions needs to be declared.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::print::Printer;
use super::renaming;

/// Bytes of memory that belong to one thread, in each space.
pub(crate) const OWN_BYTES: u32 = 64;
/// Words of the buffer that every thread may read.
pub(crate) const INPUT_WORDS: u32 = 256;
/// Words of the tables in the module.
pub(crate) const TABLE_WORDS: u32 = 64;
/// Words of each thread that lie next to those of its neighbours.
pub(crate) const COLUMNS: u32 = 4;
/// Counters, of 64 bits each, that every thread may change by atomic operations.
pub(crate) const COUNTERS: u32 = 20;

/// A register file of the program: the prefix of its names, its type, its size, and bytes of a
/// value.
pub(crate) struct File {
    pub(crate) prefix: &'static str,
    pub(crate) ty: &'static str,
    pub(crate) size: u32,
    pub(crate) bytes: u32,
}

/// The registers that instructions compute with.
pub(crate) const FILES: [File; 6] = [
    File { prefix: "%rd", ty: "b64", size: 8, bytes: 8 },
    File { prefix: "%d", ty: "f64", size: 6, bytes: 8 },
    File { prefix: "%r", ty: "b32", size: 12, bytes: 4 },
    File { prefix: "%f", ty: "f32", size: 8, bytes: 4 },
    File { prefix: "%h", ty: "b16", size: 8, bytes: 2 },
    File { prefix: "%p", ty: "pred", size: 6, bytes: 4 },
];

/// A part of a program that can be left out.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// Instructions that belong together.
    Code(Vec<String>),
    If(Box<If>),
    Loop(Box<Loop>),
    Switch(Box<Switch>),
    /// Leaves the innermost loop where the predicate holds; nothing outside of loops.
    Break(String),
    /// Goes on with the next pass of the innermost loop where the predicate holds.
    Continue(String),
    /// Writes a value to the thread's record, at a place that printing decides.
    Output(Output),
}

/// `if` and `else`. Where lanes may part, and meet in warp operations inside, each side has the
/// mask of its lanes.
#[derive(Clone, Debug)]
pub(crate) struct If {
    /// Computes the condition, where it is not in a register already.
    pub(crate) prelude: Vec<String>,
    pub(crate) condition: String,
    /// A second condition and how the two are joined, as compilers join them: by branches.
    pub(crate) also: Option<(Join, String)>,
    /// Whether the condition is the same for the whole warp.
    pub(crate) uniform: bool,
    pub(crate) masks: Option<Masks>,
    pub(crate) then: Vec<Statement>,
    pub(crate) otherwise: Vec<Statement>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Join {
    And,
    Or,
}

/// Names of registers that hold masks of lanes.
#[derive(Clone, Debug)]
pub(crate) struct Masks {
    pub(crate) outer: String,
    pub(crate) then: String,
    pub(crate) otherwise: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Numbers the registers of the loop: `%i` counts passes up to `%n`.
    pub(crate) number: u32,
    /// Sets `%n`.
    pub(crate) trips: Vec<String>,
    /// Whether all lanes of the warp make as many passes.
    pub(crate) uniform: bool,
    /// Whether the test is at the end.
    pub(crate) at_least_once: bool,
    /// The mask outside and the one inside.
    pub(crate) masks: Option<(String, String)>,
    pub(crate) body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Switch {
    /// Sets `%index`, which is below the number of cases.
    pub(crate) index: Vec<String>,
    /// Who takes a case, if not all do.
    pub(crate) guard: Option<String>,
    pub(crate) uniform: bool,
    pub(crate) masks: Option<(String, String)>,
    pub(crate) cases: Vec<Vec<Statement>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// A register of one of the [`FILES`].
    Register { file: usize, index: u32 },
    /// Eight bytes of the thread's own shared or local memory.
    Memory { place: &'static str, space: &'static str, offset: u32 },
    /// A word of shared memory that all threads changed, read by the first.
    Counter(u32),
}

/// A function of `(mine, in, mask, x, y, z)` that returns a `.b32`.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) body: Vec<Statement>,
    /// Whether it calls itself.
    pub(crate) recursive: bool,
}

/// A kernel and how it is launched.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The blocks of a second launch of the same kernel, if there is one.
    pub(crate) then: Option<[u32; 3]>,
    /// Whether the threads' own shared memory is dynamic.
    pub(crate) dynamic: bool,
    /// Whether what threads put out lies next to what their neighbours do, and what they begin with
    /// comes from such places.
    pub(crate) columnar: bool,
    pub(crate) input: Vec<u32>,
    pub(crate) table: Vec<u32>,
    /// The arguments `p_n`, `p_x` and `p_z`.
    pub(crate) n: u32,
    pub(crate) x: u64,
    pub(crate) z: u32,
    pub(crate) functions: Vec<Function>,
    pub(crate) body: Vec<Statement>,
}

impl Program {
    pub(crate) fn threads_per_block(&self) -> u32 {
        self.block.iter().product()
    }

    pub(crate) fn threads(&self) -> u32 {
        self.threads_per_block() * self.grid.iter().product::<u32>()
    }

    /// Words of the buffer that every thread may read. Rows of all threads of a block lie in it,
    /// however large that is.
    pub(crate) fn input_words(&self) -> u32 {
        INPUT_WORDS.max(2 * self.threads_per_block() + INPUT_WORDS / 2)
    }

    pub(crate) fn shared_bytes(&self) -> u32 {
        if self.dynamic { self.threads_per_block() * OWN_BYTES } else { 0 }
    }

    /// Bytes that a thread writes to its record.
    pub(crate) fn record_bytes(&self) -> u32 {
        let mut end = 0;
        each(&self.body, &mut |statement| {
            if let Statement::Output(output) = statement {
                end = output.place(end).1;
            }
        });
        end.next_multiple_of(8).max(8)
    }

    /// Returns the module, with no more in it than the statements mention.
    pub(crate) fn text(&self) -> String {
        let mut body = Printer::new("L");
        body.columnar = self.columnar.then(|| self.threads());
        body.statements(&self.body);
        let mut code = body.text;
        for column in 0..COLUMNS {
            code = code.replace(&format!("COLUMN{column}"), &(4 * column * self.threads()).to_string());
        }
        let mut functions = String::new();
        for (number, function) in self.functions.iter().enumerate().rev() {
            if mentions(&code, &format!("f{number}")) || mentions(&functions, &format!("f{number}")) {
                functions.insert_str(0, &self.function_text(number, function));
            }
        }
        let mut text = String::from(".version 8.8\n.target sm_100a\n.address_size 64\n\n");
        let all = format!("{code}{functions}");
        let words: Vec<String> = self.table.iter().map(|word| format!("0x{word:08x}")).collect();
        for space in ["const", "global"] {
            let name = format!("{space}_table");
            if mentions(&all, &name) {
                let words = words.join(", ");
                let _ = writeln!(text, ".{space} .align 16 .b32 {name}[{TABLE_WORDS}] = {{{words}}};");
            }
        }
        // What functions use of the memory of threads, the kernel fills.
        let used: Vec<&str> = ["own", "swap"].into_iter().filter(|name| mentions(&functions, name)).collect();
        let setup = self.setup(&format!("{code}\n{}\n", used.join(" ")), false);
        let all = format!("{all}{setup}");
        if mentions(&all, "own") {
            let _ = match self.dynamic {
                true => writeln!(text, ".extern .shared .align 16 .b8 own[];"),
                false => {
                    let bytes = self.threads_per_block() * OWN_BYTES;
                    writeln!(text, ".shared .align 16 .b8 own[{bytes}];")
                }
            };
        }
        if mentions(&all, "swap") {
            let _ = writeln!(text, ".shared .align 8 .b64 swap[{}];", self.threads_per_block());
        }
        if mentions(&all, "left") {
            // With words that no thread has, or without.
            let _ = writeln!(text, ".shared .align 4 .b32 left[{}];", self.threads_per_block() + self.n % 2);
        }
        if mentions(&all, "tally") {
            let _ = writeln!(text, ".shared .align 8 .b64 tally[{COUNTERS}];");
        }
        text += &functions;
        text += "\n.visible .entry random(\n    .param .u64 p_in, .param .u64 p_out, .param .u64 p_mine, .param .u64 p_columns,\n";
        text += "    .param .u64 p_common, .param .u32 p_n, .param .u64 p_x, .param .f32 p_z)\n{\n";
        text += &declarations(&all_of(&setup, &code));
        text += &setup;
        text += &code;
        text + "    ret;\n}\n"
    }

    fn function_text(&self, number: usize, function: &Function) -> String {
        let mut printer = Printer::new("F");
        let mut code = if function.recursive {
            // Ends when the low bits of `x` are used up.
            [
                "    and.b32 %t0, %x, 7;\n    setp.eq.u32 %q, %t0, 0;\n    @%q bra LEAF;\n",
                "    sub.u32 %t1, %x, 1;\n    {\n    .param .b64 a0; .param .b64 a1; .param .b32 a2; .param .b32 a3; .param .b64 a4; \
                 .param .f32 a5; .param .b32 got;\n",
                "    st.param.b64 [a0], %mine;\n    st.param.b64 [a1], %in;\n    st.param.b32 [a2], 0;\n    st.param.b32 [a3], %t1;\n",
                "    st.param.b64 [a4], %rd0;\n    st.param.f32 [a5], %f0;\n",
                &format!("    call (got), f{number}, (a0, a1, a2, a3, a4, a5);\n    ld.param.b32 %r1, [got];\n    }}\nLEAF:\n"),
            ]
            .concat()
        } else {
            String::new()
        };
        printer.statements(&function.body);
        code += &printer.text;
        // Whatever was computed shows in the result.
        let computed = code.clone();
        for index in 2..12 {
            if mentions(&computed, &format!("%r{index}")) {
                let _ = writeln!(code, "    mad.lo.u32 %r0, %r0, 5, %r{index};");
            }
            if mentions(&computed, &format!("%f{index}")) {
                let _ = writeln!(code, "    mov.b32 %t0, %f{index};\n    xor.b32 %r0, %r0, %t0;");
            }
            if mentions(&computed, &format!("%rd{index}")) {
                let _ = writeln!(code, "    xor.b64 %rd0, %rd0, %rd{index};");
            }
        }
        code += "    mov.b32 %t0, %f0;\n    xor.b32 %t0, %t0, %r0;\n    cvt.u32.u64 %t1, %rd0;\n    add.u32 %t0, %t0, %t1;\n";
        code += "    xor.b32 %t0, %t0, %r1;\n    st.param.b32 [back], %t0;\n    ret;\n";
        let setup = self.setup(&code, true);
        format!(
            "\n.func (.param .b32 back) f{number}(\n    .param .b64 a_mine, .param .b64 a_in, .param .b32 a_mask, .param .b32 a_x, \
             .param .b64 a_y, .param .f32 a_z)\n{{\n{}{setup}{code}}}\n",
            declarations(&all_of(&setup, &code)),
        )
    }

    /// Returns what the code mentions, defined, each before what needs it.
    fn setup(&self, code: &str, in_function: bool) -> String {
        let mut parts: Vec<(String, String)> = Vec::new();
        let mut part = |name: &str, lines: &str| parts.push((name.to_owned(), lines.to_owned()));
        if in_function {
            part("%mine", "ld.param.b64 %mine, [a_mine];");
            part("%in", "ld.param.b64 %in, [a_in];");
            part("%m0", "ld.param.b32 %m0, [a_mask];");
            part("%x", "ld.param.b32 %x, [a_x];");
            part("%y", "ld.param.b64 %y, [a_y];");
            part("%z", "ld.param.f32 %z, [a_z];");
        } else {
            part("%in", "ld.param.u64 %in, [p_in];\ncvta.to.global.u64 %in, %in;");
            part("%common", "ld.param.u64 %common, [p_common];");
        }
        let [_, y, z] = self.block;
        part("%linear", &linear("%linear", "tid", "ntid", y * z > 1));
        part("%group", &linear("%group", "ctaid", "nctaid", self.grid[1] * self.grid[2] > 1));
        part(
            "%count",
            if y * z > 1 {
                "mov.u32 %count, %ntid.x;\nmov.u32 %extent, %ntid.y;\nmul.lo.u32 %count, %count, %extent;\n\
                 mov.u32 %extent, %ntid.z;\nmul.lo.u32 %count, %count, %extent;"
            } else {
                "mov.u32 %count, %ntid.x;"
            },
        );
        part("%gid", "mad.lo.u32 %gid, %group, %count, %linear;");
        part("%lane", "mov.u32 %lane, %laneid;");
        part("%warp", "shr.u32 %warp, %linear, 5;");
        if !in_function {
            part("%m0", "and.b32 %s0, %linear, -32;\nsub.u32 %s0, %count, %s0;\nbmsk.clamp.b32 %m0, 0, %s0;");
            part("%mine", "ld.param.u64 %base, [p_mine];\nmad.wide.u32 %mine, %gid, 64, %base;");
            part("%column", "ld.param.u64 %base, [p_columns];\nmad.wide.u32 %column, %gid, 4, %base;");
            let step = 8 * 11;
            part(
                "%start",
                &format!(
                    "mul.lo.u32 %s0, %gid, {step};\nand.b32 %s0, %s0, {};\ncvt.u64.u32 %start, %s0;\nadd.u64 %start, %start, %in;",
                    2 * INPUT_WORDS - 8
                ),
            );
            part(
                "%record",
                &format!(
                    "ld.param.u64 %base, [p_out];\nmad.wide.u32 %record, %gid, {}, %base;",
                    self.record_bytes()
                ),
            );
            for bytes in [2, 4, 8] {
                part(
                    &format!("%record{bytes}"),
                    &format!(
                        "ld.param.u64 %base, [p_out];\nmad.wide.u32 %record{bytes}, %gid, {bytes}, %base;"
                    ),
                );
                part(
                    &format!("%start{bytes}"),
                    &format!("mad.wide.u32 %start{bytes}, %linear, {bytes}, %in;"),
                );
            }
            let zero = |at| format!("@%q st.shared.b64 [tally+{at}], %sd0;");
            let zeros: Vec<String> = (0..8 * COUNTERS).step_by(8).map(zero).collect();
            part(
                "tally",
                &format!("mov.u64 %sd0, 0;\nsetp.eq.u32 %q, %linear, 0;\n{}\nbar.sync 0;", zeros.join("\n")),
            );
        }
        part("%own", "mov.u32 %own, own;\nmad.lo.u32 %own, %linear, 64, %own;");
        part("%swap", "mov.u32 %swap, swap;\nmad.lo.u32 %swap, %linear, 8, %swap;");
        if !in_function {
            let words = |space: &str, place: &str| -> String {
                let one = |offset| format!("st.{space}.v4.b32 [{place}+{offset}], {{%gid, %s0, %gid, %s0}};");
                let lines: Vec<String> = (0..OWN_BYTES).step_by(16).map(one).collect();
                format!("mov.b32 %s0, 0xbf812345;\n{}", lines.join("\n"))
            };
            part("own", &words("shared", "%own"));
            part("swap", "cvt.u64.u32 %sd0, %gid;\nst.shared.b64 [%swap], %sd0;");
            part("stack", &words("local", "stack"));
            for index in 0..4 {
                let lines = match index {
                    0 => "ld.param.u32 %u0, [p_n];".to_owned(),
                    1 => "mov.u32 %u1, %group;".to_owned(),
                    2 => "ld.param.u32 %u2, [p_x+4];".to_owned(),
                    _ => "mov.u32 %u3, %nctaid.x;".to_owned(),
                };
                part(&format!("%u{index}"), &lines);
            }
        } else {
            part(
                "stack",
                "st.local.v4.b32 [stack], {%x, %x, %x, %x};\nst.local.v4.b32 [stack+16], {%x, %x, %x, %x};\nst.local.v4.b32 [stack+32], {%x, %x, %x, %x};\nst.local.v4.b32 [stack+48], {%x, %x, %x, %x};",
            );
        }
        for (number, file) in (0u32..).zip(&FILES) {
            for index in 0..file.size {
                let name = format!("{}{index}", file.prefix);
                let lines = if in_function {
                    inner_value(file, index)
                } else {
                    // Somewhere in the half behind where the thread's own view of the buffer
                    // starts.
                    let place = number * 88 + index * 40;
                    let (start, offset) = match self.columnar {
                        true => (format!("%start{}", file.bytes), (place % 200) & !7),
                        false => ("%start".to_owned(), (place % (2 * INPUT_WORDS)) & !7),
                    };
                    match file.prefix {
                        "%p" => {
                            let ty = if self.columnar { "u32" } else { "u8" };
                            format!(
                                "ld.global.{ty} %s0, [{start}+{offset}];\nand.b32 %s0, %s0, 1;\nsetp.ne.u32 {name}, %s0, 0;"
                            )
                        }
                        _ => format!("ld.global.{} {name}, [{start}+{offset}];", file.ty),
                    }
                };
                part(&name, &lines);
            }
        }
        let mut needed: Vec<&str> = Vec::new();
        let mut seen = code.to_owned();
        for (name, lines) in parts.iter().rev() {
            if mentions(&seen, name) {
                needed.push(lines);
                seen += lines;
            }
        }
        needed.reverse();
        needed.join("\n").lines().map(|line| format!("    {line}\n")).collect()
    }
}

/// Returns the first value of a register in a function, from its arguments.
fn inner_value(file: &File, index: u32) -> String {
    let name = format!("{}{index}", file.prefix);
    let salt = index.wrapping_mul(0x9e37_79b9);
    match file.prefix {
        "%rd" => format!("add.u64 {name}, %y, {salt};"),
        "%d" => format!("add.u64 %sd0, %y, {};\nmov.b64 {name}, %sd0;", u64::from(salt) << 31),
        "%r" => format!("xor.b32 {name}, %x, {salt};"),
        "%f" if index == 0 => "mov.f32 %f0, %z;".to_owned(),
        "%f" => format!("mov.b32 %s0, %z;\nadd.u32 %s0, %s0, {salt};\nmov.b32 {name}, %s0;"),
        "%h" => format!("add.u32 %s0, %x, {salt};\ncvt.u16.u32 {name}, %s0;"),
        _ => format!("and.b32 %s0, %x, {};\nsetp.ne.u32 {name}, %s0, 0;", 1 << index),
    }
}

/// Returns the number of a thread or block. Registers are written once here, so that it shows that
/// neighbours have neighbouring numbers.
fn linear(name: &str, index: &str, extent: &str, several: bool) -> String {
    if several {
        format!(
            "mov.u32 {name}_z, %{index}.z;\nmov.u32 {name}_h, %{extent}.y;\nmov.u32 {name}_y, %{index}.y;\nmad.lo.u32 {name}_l, {name}_z, {name}_h, {name}_y;\n\
             mov.u32 {name}_w, %{extent}.x;\nmov.u32 {name}_x, %{index}.x;\nmad.lo.u32 {name}, {name}_l, {name}_w, {name}_x;"
        )
    } else {
        format!("mov.u32 {name}, %{index}.x;")
    }
}

fn all_of(setup: &str, code: &str) -> String {
    format!("{setup}{code}")
}

/// Declarations of the registers that a text uses.
fn declarations(text: &str) -> String {
    const NAMED: [(&str, &str); 3] = [
        (
            "b32",
            "%linear %group %count %gid %lane %warp %own %swap %x %index %u0 %u1 %u2 %u3 %s0 %s1 %s2 %t0 %t1 %t2 %t3 %byte %entry %row %extent \
             %linear_x %linear_y %linear_z %linear_w %linear_h %linear_l %group_x %group_y %group_z %group_w %group_h %group_l",
        ),
        (
            "b64",
            "%mine %in %start %start2 %start4 %start8 %common %column %record %record2 %record4 %record8 %y %sd0 %td0 \
             %td1 %td2 %far %base %near0 %near4 %across %word %table",
        ),
        ("pred", "%q %tq %tg"),
    ];
    let mut lines = String::new();
    for file in &FILES {
        let _ = writeln!(lines, "    .reg .{} {}<{}>;", file.ty, file.prefix, file.size);
    }
    for (ty, names) in NAMED {
        let used: Vec<&str> = names.split(' ').filter(|name| mentions(text, name)).collect();
        if !used.is_empty() {
            let _ = writeln!(lines, "    .reg .{ty} {};", used.join(", "));
        }
    }
    for (ty, names) in renaming::declared(text) {
        let names: Vec<&str> = names.into_iter().collect();
        let _ = writeln!(lines, "    .reg .{ty} {};", names.join(", "));
    }
    if mentions(text, "%z") {
        lines += "    .reg .f32 %z;\n";
    }
    // Masks, and the counters of loops.
    for prefix in ["%m", "%i", "%n"] {
        let is_one =
            |name: &&str| name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
        let names: BTreeSet<&str> = renaming::pieces(text).into_iter().filter(is_one).collect();
        if !names.is_empty() {
            let names: Vec<&str> = names.into_iter().collect();
            let _ = writeln!(lines, "    .reg .b32 {};", names.join(", "));
        }
    }
    if mentions(text, "stack") {
        let _ = writeln!(lines, "    .local .align 16 .b8 stack[{OWN_BYTES}];");
    }
    if mentions(text, "proto") {
        lines += "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _, .param .b32 _, .param .b32 _, \
                  .param .b64 _, .param .f32 _);\n";
    }
    lines
}

/// Returns whether a text has this word in it.
pub(crate) fn mentions(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(part);
        let after = text[at + word.len()..].chars().next().is_some_and(|c| part(c) && c != '%');
        !before && !after
    })
}

/// Visits every statement, inner ones after the one they are in.
pub(crate) fn each<'a>(statements: &'a [Statement], visit: &mut impl FnMut(&'a Statement)) {
    for statement in statements {
        visit(statement);
        match statement {
            Statement::If(parts) => {
                each(&parts.then, visit);
                each(&parts.otherwise, visit);
            }
            Statement::Loop(parts) => each(&parts.body, visit),
            Statement::Switch(parts) => parts.cases.iter().for_each(|case| each(case, visit)),
            _ => {}
        }
    }
}
