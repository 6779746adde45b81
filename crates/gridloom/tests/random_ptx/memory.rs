//! Statements that read and write memory.

use super::generate::{Generator, Scope};
use super::program::{COLUMNS, INPUT_WORDS, OWN_BYTES, TABLE_WORDS};

/// Types of one element in memory, with its bytes.
const ELEMENTS: [(&str, u32); 12] = [
    ("u8", 1),
    ("s8", 1),
    ("u16", 2),
    ("s16", 2),
    ("b16", 2),
    ("u32", 4),
    ("s32", 4),
    ("f32", 4),
    ("b32", 4),
    ("b64", 8),
    ("s64", 8),
    ("f64", 8),
];

impl Generator {
    /// A register that holds an element in memory, or is wider.
    fn holder(&mut self, ty: &'static str, bytes: u32) -> String {
        match (ty, bytes) {
            ("f32" | "f64", _) => {
                // Not any other: a float register holds exactly its own format.
                let (prefix, size) = if ty == "f32" { ("%f", 8) } else { ("%d", 6) };
                format!("{prefix}{}", self.random.below(size))
            }
            (_, 1 | 2) if self.random.one_in(2) => format!("%h{}", self.random.below(8)),
            (_, 1 | 2) => self.dst("b32"),
            (_, 4) if self.random.one_in(5) => self.dst("b64"),
            (_, 4) => self.dst("b32"),
            _ => self.dst("b64"),
        }
    }

    /// A type, a vector of it of at most 16 bytes, and registers for its elements, all different.
    pub(crate) fn element(&mut self) -> (&'static str, String, String, u32) {
        let (ty, bytes) = self.random.pick(&ELEMENTS);
        let count = match bytes {
            8 => self.random.pick(&[1, 1, 2]),
            _ => self.random.pick(&[1, 1, 2, 4]),
        };
        let mut registers = vec![self.holder(ty, bytes)];
        while registers.len() < count {
            let prefix = registers[0].trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
            let next = self.holder(ty, bytes);
            if next.trim_end_matches(|c: char| c.is_ascii_digit()) == prefix && !registers.contains(&next) {
                registers.push(next);
            }
        }
        match count {
            1 => (ty, format!(".{ty}"), registers.swap_remove(0), bytes),
            _ => {
                (ty, format!(".v{count}.{ty}"), format!("{{{}}}", registers.join(", ")), bytes * count as u32)
            }
        }
    }

    /// An offset in memory of a thread that leaves room for `bytes` and is a multiple of them:
    /// fixed, or in `%t0`.
    fn offset(&mut self, bytes: u32) -> (Vec<String>, Option<u32>) {
        let last = OWN_BYTES - bytes;
        let mask = last & !(bytes - 1);
        match self.random.one_in(2) {
            true => (Vec::new(), Some(self.random.u32() & mask)),
            false => (vec![format!("and.b32 %t0, %r{}, {mask};", self.random.below(12))], None),
        }
    }

    pub(crate) fn memory(&mut self, scope: &Scope) -> Vec<String> {
        match self.random.below(30) {
            24..=27 => self.scattered(scope),
            28 => self.array(),
            29 if !scope.in_function && self.random.one_in(4) => self.nowhere(),
            29 if !scope.in_function => self.tickets(),
            0..=3 => self.own_access(scope),
            4 | 5 => self.input(scope),
            6 => self.table(),
            7 if !scope.in_function => self.column(),
            8 => self.own_atomic(scope),
            9 if !scope.in_function => self.common_atomic(),
            10 if !scope.in_function => self.argument(),
            11 => self.copy(scope),
            12 => self.question(),
            13 => self.ordered(),
            14 => self.vector_atomic(),
            15 | 16 => self.row(),
            17 if !scope.in_function && self.features.barriers => self.bytes_counted(),
            18 if !scope.in_function => self.rows(scope),
            19 if !scope.in_function => self.outside(),
            20 | 21 if !scope.in_function => self.wrapped(),
            22 => self.aligned(),
            _ => self.own_access(scope),
        }
    }

    /// A load or store in memory that nobody else uses.
    fn own_access(&mut self, _scope: &Scope) -> Vec<String> {
        let (_, ty, registers, bytes) = self.element();
        let (mut lines, offset) = self.offset(bytes);
        let space = self.random.pick(&["global", "shared", "local"]);
        let generic = self.random.one_in(4);
        let base = match space {
            "global" => "%mine",
            "shared" => "%own",
            _ => "stack",
        };
        let wide = space == "global" || generic;
        let (mut base, mut named) = (base.to_owned(), space == "local");
        if generic {
            match space {
                "shared" => lines.push("cvt.u64.u32 %td0, %own;\n    cvta.shared.u64 %td0, %td0;".into()),
                "local" => lines.push("mov.u64 %td0, stack;\n    cvta.local.u64 %td0, %td0;".into()),
                _ => lines.push("mov.b64 %td0, %mine;".into()),
            }
            base = "%td0".into();
            named = false;
        }
        let address = match offset {
            Some(0) => format!("[{base}]"),
            Some(offset) => format!("[{base}+{offset}]"),
            None if wide => {
                lines.push(format!("cvt.u64.u32 %td1, %t0;\n    add.u64 %td1, {base}, %td1;"));
                "[%td1]".into()
            }
            None if named => {
                lines.push("mov.u32 %t1, stack;\n    add.u32 %t1, %t1, %t0;".into());
                "[%t1]".into()
            }
            None => {
                lines.push(format!("add.u32 %t1, {base}, %t0;"));
                "[%t1]".into()
            }
        };
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        let space = if generic { String::new() } else { format!(".{space}") };
        let volatile = if space != ".local" && self.random.one_in(8) { ".volatile" } else { "" };
        lines.push(match self.random.one_in(2) {
            true => format!("{guard}ld{volatile}{space}{ty} {registers}, {address};"),
            false => format!("{guard}st{volatile}{space}{ty} {address}, {registers};"),
        });
        lines
    }

    /// A load from the buffer that all threads read: the same for all, next to each other, or
    /// anywhere.
    fn input(&mut self, scope: &Scope) -> Vec<String> {
        let (_, ty, registers, bytes) = self.element();
        let mut lines = Vec::new();
        let last = INPUT_WORDS * 4 - bytes;
        let mask = last & !(bytes - 1);
        let cache = self.random.pick(&["", "", ".nc"]);
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        let address = match self.random.below(5) {
            0 => format!("[%in+{}]", self.random.u32() & mask),
            1 => {
                // Neighbours read neighbours.
                let index = if scope.in_function { "%linear" } else { "%gid" };
                let start = self.random.below(64) as u32;
                lines.push(format!("add.u32 %t0, {index}, {start};"));
                lines.push(format!("mul.lo.u32 %t0, %t0, {bytes};\n    and.b32 %t0, %t0, {mask};"));
                lines.push("cvt.u64.u32 %td0, %t0;\n    add.s64 %td0, %in, %td0;".into());
                "[%td0]".into()
            }
            2 if !scope.loops.is_empty() => {
                // As loops walk over an array: a step a pass, from a place of the thread's own.
                let counter = scope.loops[self.random.below(scope.loops.len())];
                let (start, step) = (self.random.pick(&["%linear", "%lane"]), 1 + self.random.below(9));
                lines.push(format!("mad.lo.s32 %t0, %i{counter}, {step}, {start};"));
                lines.push(format!("shl.b32 %t0, %t0, 2;\n    and.b32 %t0, %t0, {mask};"));
                lines.push("cvt.s64.s32 %td0, %t0;\n    add.s64 %td0, %in, %td0;".into());
                "[%td0]".into()
            }
            3 if !scope.in_function => {
                lines.push(format!("and.b32 %t0, %u{}, {mask};", self.random.below(4)));
                lines.push("cvt.u64.u32 %td0, %t0;\n    add.u64 %td0, %in, %td0;".into());
                "[%td0]".into()
            }
            _ => {
                lines.push(format!("and.b32 %t0, %r{}, {mask};", self.random.below(12)));
                lines.push("cvt.s64.s32 %td0, %t0;\n    add.u64 %td0, %td0, %in;".into());
                "[%td0]".into()
            }
        };
        lines.push(format!("{guard}ld.global{cache}{ty} {registers}, {address};"));
        lines
    }

    /// A load from the buffer that all threads read, where nothing hides that neighbours read
    /// neighbours.
    fn row(&mut self) -> Vec<String> {
        let (_, ty, registers, bytes) = self.element();
        // Next to each other, or with a gap, as far as there is room.
        let gap = 1 + self.random.below(2) as u32;
        let Some(step) =
            [gap * bytes, bytes].into_iter().find(|step| (self.threads + 16) * step <= 4 * INPUT_WORDS)
        else {
            return Vec::new();
        };
        let start = bytes * self.random.below(16) as u32;
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        vec![
            format!("mad.wide.u32 %far, %linear, {step}, %in;"),
            format!("{guard}ld.global{ty} {registers}, [%far+{start}];"),
        ]
    }

    /// An access of threads from some thread on, whose address wraps around in those before, in
    /// memory of each thread's own.
    fn wrapped(&mut self) -> Vec<String> {
        let (_, ty, registers, bytes) = self.element();
        let first = self.random.below(self.threads as usize + 1) as u32;
        let p = self.predicate();
        let offset = first * OWN_BYTES + (self.random.u32() & (OWN_BYTES - bytes) & !(bytes - 1));
        let access = match self.random.one_in(2) {
            true => format!("st.shared{ty} [%td0+{offset}], {registers};"),
            false => format!("ld.shared{ty} {registers}, [%td0+{offset}];"),
        };
        let address = format!(
            "sub.u32 %t0, %linear, {first};\n    mul.wide.u32 %td0, %t0, {OWN_BYTES};\n    mov.u64 %td1, own;\n    \
             add.u64 %td0, %td0, %td1;"
        );
        let label = self.fresh();
        let mut lines = vec![format!("setp.ge.u32 {p}, %linear, {first};")];
        lines.push(match self.random.one_in(3) {
            true => format!("{address}\n    @{p} {access}"),
            false => format!("@!{p} bra O{label};\n    {address}\n    {access}\nO{label}:"),
        });
        lines
    }

    /// What the lowest and the highest bits of a thread's index are, as the lane and the warp are
    /// found, and something that some threads do by it.
    fn aligned(&mut self) -> Vec<String> {
        let (register, other) = (self.dst("b32"), self.dst("b32"));
        let index = self.random.pick(&["%linear", "%linear", "%t0"]);
        let scale = self.random.pick(&[1, 4, 3, 12]);
        let bits = 2 + self.random.below(5);
        let mask = (1u32 << bits) - 1;
        let operation = match self.random.below(5) {
            0 => format!("and.b32 %t1, {index}, {mask};"),
            1 => format!("and.b32 %t1, {index}, {};", !mask),
            2 => format!("shr.u32 %t1, {index}, {bits};"),
            3 => format!("or.b32 %t1, {index}, {};", self.random.u32() & !mask),
            _ => format!("xor.b32 %t1, {index}, {};", self.random.u32() & !mask),
        };
        let p = self.predicate();
        vec![
            format!("mul.lo.u32 %t0, %linear, {scale};\n    {operation}"),
            format!("setp.lt.u32 {p}, %t1, {};", self.random.below(40)),
            format!("@{p} add.u32 {register}, {register}, %t1;\n    mov.b32 {other}, %t1;"),
        ]
    }

    /// An access of some threads, whose address lies outside all memory in the others, under a
    /// guard or behind a branch.
    fn outside(&mut self) -> Vec<String> {
        let (ty, registers, bytes) = match self.random.one_in(2) {
            true => {
                let (_, ty, registers, bytes) = self.element();
                (ty, registers, bytes)
            }
            false => (".b32".to_owned(), self.dst("b32"), 4),
        };
        let mut lines = Vec::new();
        let (p, in_shared) = (self.predicate(), self.random.one_in(2));
        let (space, address) = match self.random.below(3) {
            0 if bytes <= 8 => {
                // Next to each other, from some thread on.
                let first = self.random.below(self.threads as usize + 1);
                lines.push(format!("setp.ge.u32 {p}, %linear, {first};"));
                lines.push(format!("sub.u32 %t0, %linear, {first};\n    mul.wide.s32 %td0, %t0, {bytes};"));
                lines.push("add.s64 %td0, %td0, %in;".into());
                ("global", "%td0")
            }
            _ if in_shared => {
                let place = self.random.pick(&["0x40000000", "0xfffffff0", "0x1000003", "%linear"]);
                lines.push(format!("selp.b32 %t0, %own, {place}, {p};"));
                ("shared", "%t0")
            }
            _ => {
                let place = self.random.pick(&["0", "0x7fffffffffffff00", "3", "%rd0"]);
                lines.push(format!("selp.b64 %td0, %mine, {place}, {p};"));
                ("global", "%td0")
            }
        };
        // What all threads read is not written.
        let stores = lines.len() == 1 && self.random.one_in(2);
        let access = match stores {
            true => format!("st.{space}{ty} [{address}], {registers};"),
            false => format!("ld.{space}{ty} {registers}, [{address}];"),
        };
        // The predicate stays as it is until the access is made.
        if self.random.one_in(2) {
            lines.push(format!("@{p} {access}"));
        } else {
            let label = self.fresh();
            lines.push(format!("@!{p} bra O{label};\n    {access}\nO{label}:"));
        }
        lines
    }

    /// Adds one to the word of shared memory that a byte selects. The order of additions does not
    /// matter. The range of the byte keeps the access in bounds.
    fn bytes_counted(&mut self) -> Vec<String> {
        if self.random.one_in(3) {
            return self.all_bytes_counted();
        }
        let step = self.random.pick(&[1, 1, 3]);
        let start = self.random.below(64);
        let mask = self.random.pick(&[15, 15, 7]);
        let value = match self.random.one_in(2) {
            true => "1".to_owned(),
            false => self.dst("b32"),
        };
        let guard = if self.random.one_in(5) { self.guard() } else { String::new() };
        let mut lines = vec![
            format!("mad.wide.u32 %far, %linear, {step}, %in;"),
            format!("ld.global.u8 %byte, [%far+{start}];\n    and.b32 %byte, %byte, {mask};"),
        ];
        let place = match self.random.below(3) {
            0 => {
                lines.push("mov.u32 %row, tally;\n    mad.lo.u32 %entry, %byte, 4, %row;".into());
                "%entry"
            }
            1 => {
                lines.push("shl.b32 %entry, %byte, 2;\n    cvt.u64.u32 %td0, %entry;".into());
                lines.push("mov.u64 %td1, tally;\n    add.u64 %td0, %td1, %td0;".into());
                "%td0"
            }
            _ => {
                lines.push("mul.wide.u32 %td0, %byte, 4;".into());
                lines.push("mov.u64 %td1, tally;\n    add.u64 %td0, %td0, %td1;".into());
                "%td0"
            }
        };
        lines.push(match self.random.one_in(4) {
            true => format!("{guard}atom.shared.add.u32 %t2, [{place}+64], {value};"),
            false => format!("{guard}red.shared.add.u32 [{place}+64], {value};"),
        });
        lines
    }

    /// Counts every byte of the input from some position on in the same way. All threads of the
    /// block take part.
    fn all_bytes_counted(&mut self) -> Vec<String> {
        let label = self.fresh();
        let limit = self.random.below(4 * INPUT_WORDS as usize);
        let step = match self.random.one_in(3) {
            true => format!("{}", 1 + self.random.below(300)),
            false => "%count".to_owned(),
        };
        vec![
            format!(
                "mov.u32 %t3, %linear;\n    mov.u32 %row, {step};\nB{label}:\n    cvt.u64.u32 %far, %t3;"
            ),
            "add.u64 %far, %far, %in;\n    ld.global.u8 %byte, [%far];\n    and.b32 %byte, %byte, 15;".into(),
            "mul.wide.u32 %td0, %byte, 4;\n    mov.u64 %td1, tally;\n    add.u64 %td0, %td0, %td1;".into(),
            "red.shared.add.u32 [%td0+64], 1;\n    add.u32 %t3, %t3, %row;".into(),
            format!("setp.lt.u32 %tq, %t3, {limit};\n    @%tq bra B{label};"),
        ]
    }

    fn table(&mut self) -> Vec<String> {
        let (_, ty, registers, bytes) = self.element();
        let space = self.random.pick(&["const", "global"]);
        let mask = (TABLE_WORDS * 4 - bytes) & !(bytes - 1);
        if self.random.one_in(2) {
            let offset = self.random.u32() & mask;
            return vec![format!("ld.{space}{ty} {registers}, [{space}_table+{offset}];")];
        }
        vec![
            format!("and.b32 %t0, %r{}, {mask};", self.random.below(12)),
            format!(
                "cvt.u64.u32 %td1, %t0;\n    mov.u64 %td0, {space}_table;\n    add.u64 %td0, %td0, %td1;"
            ),
            format!("ld.{space}{ty} {registers}, [%td0];"),
        ]
    }

    /// A word of the thread next to that of its neighbour.
    fn column(&mut self) -> Vec<String> {
        let column = self.random.below(COLUMNS as usize);
        let ty = self.random.pick(&["u32", "s32", "f32", "b32"]);
        let register = self.dst(if ty == "f32" { "f32" } else { "b32" });
        let register = if ty == "f32" && register.starts_with("%r") { "%f0".to_owned() } else { register };
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        let address = format!("[%column+COLUMN{column}]");
        vec![match self.random.one_in(2) {
            true => format!("{guard}ld.global.{ty} {register}, {address};"),
            false => format!("{guard}st.global.{ty} {address}, {register};"),
        }]
    }

    /// An access that no thread makes, near an argument that is no pointer. What compiled code
    /// assumes about pointers does not hold then, for the others neither. No statement writes the
    /// number of the block, which decides.
    fn nowhere(&mut self) -> Vec<String> {
        let d = self.dst("b32");
        let access = match self.random.one_in(2) {
            true => format!("ld.global.u32 {d}, [%td0];"),
            false => format!("st.global.u32 [%td0], {d};"),
        };
        vec![
            "setp.gt.u32 %tq, %group, 100000;\n    ld.param.u64 %td0, [p_x];".to_owned(),
            format!("mad.wide.u32 %td0, %linear, 4, %td0;\n    @%tq {access}"),
        ]
    }

    fn argument(&mut self) -> Vec<String> {
        let d = self.dst("b32");
        vec![match self.random.below(5) {
            0 => format!("ld.param.u32 {d}, [p_n];"),
            1 => format!("ld.param.u64 {}, [p_x];", self.dst("b64")),
            2 => format!("ld.param.f32 %f{}, [p_z];", self.random.below(8)),
            3 => format!("ld.param.u16 {d}, [p_x+{}];", 2 * self.random.below(4)),
            _ => format!("ld.param.s8 {d}, [p_x+{}];", self.random.below(8)),
        }]
    }

    /// A copy behind the thread's back, and the wait for it.
    fn copy(&mut self, _scope: &Scope) -> Vec<String> {
        let bytes = self.random.pick(&[4, 8, 16]);
        let to = (self.random.u32() & (OWN_BYTES - 1)) & !(bytes - 1);
        let from = (self.random.u32() & (4 * INPUT_WORDS - 1)) & !(bytes - 1);
        let part = if self.random.one_in(3) {
            format!(", {}", self.random.below(bytes as usize + 1))
        } else {
            String::new()
        };
        let mut lines = vec![
            format!("cp.async.ca.shared.global [%own+{to}], [%in+{from}], {bytes}{part};"),
            "cp.async.wait_all;".to_owned(),
        ];
        if self.random.one_in(2) {
            lines.insert(1, "cp.async.commit_group;".to_owned());
            lines[2] = "cp.async.wait_group 0;".to_owned();
        }
        lines
    }

    /// Accesses with an order, and fences, which change nothing for memory that only one thread
    /// uses.
    fn ordered(&mut self) -> Vec<String> {
        let offset = 8 * self.random.below(OWN_BYTES as usize / 8);
        let (space, base) = self.random.pick(&[("global", "%mine"), ("shared", "%own")]);
        let scope = self.random.pick(&["cta", "gpu", "sys"]);
        let (d, b) = (self.dst("b64"), self.dst("b32"));
        vec![match self.random.below(7) {
            0 => format!("ld.acquire.{scope}.{space}.b64 {d}, [{base}+{offset}];"),
            1 => format!("ld.relaxed.{scope}.{space}.b32 {b}, [{base}+{offset}];"),
            2 => format!("st.release.{scope}.{space}.b32 [{base}+{offset}], {b};"),
            3 => format!("st.relaxed.{scope}.{space}.b64 [{base}+{offset}], {d};"),
            4 => format!("fence.{}.{scope};", self.random.pick(&["sc", "acq_rel"])),
            5 => format!("membar.{};", self.random.pick(&["cta", "gl", "sys"])),
            _ => format!("prefetch.global.L2 [%in+{offset}];"),
        }]
    }

    fn question(&mut self) -> Vec<String> {
        let p = self.predicate();
        let asked = self.random.pick(&["global", "shared", "local", "const"]);
        let make = match self.random.below(4) {
            0 => "mov.b64 %td0, %mine;",
            1 => "cvt.u64.u32 %td0, %own;\n    cvta.shared.u64 %td0, %td0;",
            2 => "mov.u64 %td0, stack;\n    cvta.local.u64 %td0, %td0;",
            _ => "mov.u64 %td0, const_table;\n    cvta.const.u64 %td0, %td0;",
        };
        vec![make.to_owned(), format!("isspacep.{asked} {p}, %td0;")]
    }
}
