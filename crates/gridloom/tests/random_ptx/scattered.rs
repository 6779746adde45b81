//! Scattered accesses: each thread at an index of its own, which is computed in 32 or 64 bits, may
//! be that of another thread too, and may be out of range in threads that make no access.

use super::generate::{Generator, Scope, Together};
use super::program::{COLUMNS, INPUT_WORDS, OWN_BYTES, TABLE_WORDS};

/// Memory that a thread may read at any index: its space, its size in bytes, the instruction that
/// moves its address to a register, whether addresses have 32 bits, and whether it belongs to the
/// thread.
struct Region {
    space: &'static str,
    bytes: u32,
    base: String,
    narrow: bool,
    own: bool,
}

impl Generator {
    /// Accesses of each thread at an index of its own.
    pub(crate) fn scattered(&mut self, scope: &Scope) -> Vec<String> {
        match self.random.below(4) {
            0 => self.walk(scope),
            _ => self.gather(scope),
        }
    }

    fn region(&mut self, scope: &Scope) -> Region {
        let region = |space, bytes, base: &str, narrow, own| Region {
            space,
            bytes,
            base: base.to_owned(),
            narrow,
            own,
        };
        match self.random.below(12) {
            0..=4 => region("global", 4 * INPUT_WORDS, "mov.b64 %td1, %in;", false, false),
            5 => region("global", OWN_BYTES, "mov.b64 %td1, %mine;", false, true),
            6 => region("shared", OWN_BYTES, "cvt.u64.u32 %td1, %own;", false, true),
            7 => region("shared", OWN_BYTES, "mov.b32 %t1, %own;", true, true),
            8 => region("local", OWN_BYTES, "mov.u32 %t1, stack;", true, true),
            9 => region("local", OWN_BYTES, "mov.u64 %td1, stack;", false, true),
            10 if !scope.in_function => region("param", 8, "mov.b64 %td1, p_x;", false, false),
            10 => region("global", OWN_BYTES, "mov.b64 %td1, %mine;", false, true),
            _ => {
                let space = self.random.pick(&["const", "global"]);
                region(space, 4 * TABLE_WORDS, &format!("mov.u64 %td1, {space}_table;"), false, false)
            }
        }
    }

    /// Sets `%t0` to a number of the thread's own, of any size.
    fn number(&mut self, scope: &Scope) -> Vec<String> {
        let index = self.random.pick(&["%linear", "%linear", "%lane"]);
        let some = self.random.below(12);
        let small = self.random.below(9);
        vec![match self.random.below(9) {
            0 | 1 => format!("mov.b32 %t0, %r{some};"),
            2 => format!("mad.lo.u32 %t0, {index}, {}, {small};", 1 + self.random.below(12)),
            // Some threads have the same.
            3 => format!("shr.u32 %t0, {index}, {};", 1 + self.random.below(4)),
            4 => format!("xor.b32 %t0, {index}, {};", self.random.below(64)),
            5 => {
                format!("and.b32 %t0, {index}, 1;\n    shl.b32 %t1, {index}, 1;\n    sub.u32 %t0, %t1, %t0;")
            }
            // From memory, as lists of neighbours are.
            6 => {
                let start = self.random.below(64);
                format!("mad.wide.u32 %far, %linear, 1, %in;\n    ld.global.u8 %t0, [%far+{start}];")
            }
            7 => match scope.loops.last() {
                Some(counter) => format!("mad.lo.u32 %t0, %i{counter}, {}, %r{some};", 1 + small),
                None => format!("sub.s32 %t0, {index}, {small};"),
            },
            _ => {
                let start = 4 * self.random.below(32);
                format!("mad.wide.u32 %far, %linear, 4, %in;\n    ld.global.u32 %t0, [%far+{start}];")
            }
        }]
    }

    /// Loads or stores of one to three elements near an index that is in range, or that is checked.
    fn gather(&mut self, scope: &Scope) -> Vec<String> {
        let region = self.region(scope);
        let (_, mut ty, mut registers, mut bytes) = self.element();
        while bytes > region.bytes {
            (_, ty, registers, bytes) = self.element();
        }
        let count = region.bytes / bytes;
        // More elements behind the first.
        let more = if count > 4 { self.random.below(3) as u32 } else { 0 };
        let last = count - more;
        let checked = self.random.one_in(2);
        let mut lines = Vec::new();
        let by_long = !region.narrow && self.random.one_in(4);
        let mask = if more > 0 { count / 2 - 1 } else { count - 1 };
        match by_long {
            true => {
                let number = self.random.below(8);
                lines.push(match checked {
                    true if self.random.one_in(2) => {
                        format!("shr.u64 %td0, %rd{number}, {};", 32 + self.random.below(32))
                    }
                    true => format!("mov.b64 %td0, %rd{number};"),
                    false => format!("and.b64 %td0, %rd{number}, {mask};"),
                });
                if checked {
                    lines.push(format!("setp.lt.u64 %tq, %td0, {last};"));
                }
            }
            false => {
                lines.extend(self.number(scope));
                if checked && self.random.one_in(3) {
                    lines.push(format!("sub.s32 %t0, %t0, {};", self.random.below(40)));
                }
                lines.push(match checked {
                    true => format!("setp.lt.u32 %tq, %t0, {last};"),
                    false => format!("and.b32 %t0, %t0, {mask};"),
                });
            }
        }
        let branch = (checked && self.random.one_in(2)).then(|| self.fresh());
        if let Some(label) = branch {
            lines.push(format!("@!%tq bra G{label};"));
        }
        lines.push(region.base.clone());
        // How far the address lies before the element.
        let back = match self.random.one_in(3) {
            true => bytes * self.random.below(5) as u32,
            false => 0,
        };
        let mut place = if region.narrow {
            lines.push(format!("mad.lo.u32 %t0, %t0, {bytes}, %t1;"));
            "%t0"
        } else {
            lines.push(match (by_long, self.random.below(6)) {
                (true, 0..=2) => format!("mul.lo.s64 %td0, %td0, {bytes};\n    add.s64 %td0, %td1, %td0;"),
                (true, _) => {
                    format!("shl.b64 %td0, %td0, {};\n    add.s64 %td0, %td0, %td1;", bytes.trailing_zeros())
                }
                (_, 0) => format!("mul.wide.u32 %td0, %t0, {bytes};\n    add.s64 %td0, %td1, %td0;"),
                (_, 1) => format!("mul.wide.s32 %td0, %t0, {bytes};\n    add.s64 %td0, %td0, %td1;"),
                (_, 2) => format!("mad.wide.s32 %td0, %t0, {bytes}, %td1;"),
                (_, 3) => format!(
                    "shl.b32 %t0, %t0, {};\n    cvt.u64.u32 %td0, %t0;\n    add.s64 %td0, %td1, %td0;",
                    bytes.trailing_zeros()
                ),
                (_, 4) => format!(
                    "cvt.u64.u32 %td0, %t0;\n    shl.b64 %td0, %td0, {};\n    add.s64 %td0, %td1, %td0;",
                    bytes.trailing_zeros()
                ),
                _ => format!(
                    "cvt.s64.s32 %td0, %t0;\n    mul.lo.s64 %td0, %td0, {bytes};\n    add.u64 %td0, %td0, %td1;"
                ),
            });
            "%td0"
        };
        if back > 0 {
            lines.push(match region.narrow {
                true => format!("add.s32 %t0, %t0, {back};"),
                false => format!("add.s64 %td0, %td0, {back};"),
            });
        }
        if branch.is_none() && checked && region.narrow && self.random.one_in(4) {
            // A place that is valid in all threads, though only some use it.
            lines.push(format!("selp.b32 %t2, {place}, %t1, %tq;"));
            place = "%t2";
            if back > 0 {
                lines.push(format!("@!%tq add.s32 %t2, %t2, {back};"));
            }
        }
        let guard = if checked && branch.is_none() { "@%tq " } else { "" };
        let cache =
            if region.space == "global" && !region.own { self.random.pick(&["", "", ".nc"]) } else { "" };
        let mut at = 0;
        for number in 0..=more {
            let offset = i64::from(at * bytes) - i64::from(back);
            let address = if offset == 0 { format!("[{place}]") } else { format!("[{place}+{offset}]") };
            let space = region.space;
            lines.push(match region.own && self.random.one_in(3) {
                true => format!("{guard}st.{space}{ty} {address}, {registers};"),
                false => format!("{guard}ld.{space}{cache}{ty} {registers}, {address};"),
            });
            let (same, other) = self.element_of(bytes);
            (ty, registers) = (same, other);
            at = (number + 1).min(more);
        }
        if let Some(label) = branch {
            lines.push(format!("G{label}:"));
        }
        lines
    }

    /// A type and registers for an element of so many bytes.
    pub(crate) fn element_of(&mut self, wanted: u32) -> (String, String) {
        loop {
            let (_, ty, registers, bytes) = self.element();
            if bytes == wanted {
                return (ty, registers);
            }
        }
    }

    /// A walk of each thread over the input, with a step of its own, until it is outside.
    fn walk(&mut self, scope: &Scope) -> Vec<String> {
        let (bytes, load) = self.random.pick(&[
            (1, "ld.global.u8 %t2"),
            (1, "ld.global.s8 %t2"),
            (2, "ld.global.u16 %t2"),
            (4, "ld.global.b32 %t2"),
            (8, "ld.global.v2.b32 {%t1, %t2}"),
        ]);
        let count = 4 * INPUT_WORDS / bytes;
        let label = self.fresh();
        let (sum, seed) = (self.random.below(12), self.random.below(12));
        let stride = count / 12 + self.random.below(9) as u32;
        let mut lines = self.number(scope);
        lines.push(format!("and.b32 %t0, %t0, {};", self.random.pick(&[0x1ff, 0x7ff, 0x3f])));
        lines.push(format!("and.b32 %t3, %r{seed}, 3;\n    add.u32 %t3, %t3, {stride};"));
        let address = match self.random.below(3) {
            0 => format!("mul.wide.u32 %td0, %t0, {bytes};\n    add.s64 %td0, %in, %td0;"),
            1 => format!("mul.wide.s32 %td0, %t0, {bytes};\n    add.s64 %td0, %in, %td0;"),
            _ => format!("cvt.u64.u32 %td0, %t0;\n    mad.lo.u64 %td0, %td0, {bytes}, %in;"),
        };
        let sums = match self.random.below(4) {
            0 => format!("add.u32 %r{sum}, %r{sum}, %t2;"),
            1 => format!("mad.lo.u32 %r{sum}, %r{sum}, 31, %t2;"),
            2 => format!("xor.b32 %r{sum}, %r{sum}, %t2;\n    shf.l.wrap.b32 %r{sum}, %r{sum}, %r{sum}, 3;"),
            _ => {
                let f = self.random.below(8);
                format!("cvt.rn.f32.s32 %f{f}, %t2;\n    xor.b32 %r{sum}, %r{sum}, %t2;")
            }
        };
        let stop = match self.random.below(4) {
            // Left in the middle too, by what was found.
            0 => format!("and.b32 %t2, %t2, 7;\n    setp.eq.u32 %tq, %t2, 5;\n    @%tq bra E{label};"),
            _ => String::new(),
        };
        if self.random.one_in(2) {
            lines.push(format!("W{label}:\n    setp.ge.u32 %tq, %t0, {count};\n    @%tq bra E{label};"));
            lines.push(format!("{address}\n    {load}, [%td0];\n    {sums}"));
            lines.extend((!stop.is_empty()).then_some(stop));
            lines.push(format!("add.u32 %t0, %t0, %t3;\n    bra W{label};\nE{label}:"));
        } else {
            lines.push(format!("setp.ge.u32 %tq, %t0, {count};\n    @%tq bra E{label};\nW{label}:"));
            lines.push(format!("{address}\n    {load}, [%td0];\n    {sums}"));
            lines.extend((!stop.is_empty()).then_some(stop));
            lines.push(format!(
                "add.u32 %t0, %t0, %t3;\n    setp.lt.u32 %tq, %t0, {count};\n    @%tq bra W{label};\nE{label}:"
            ));
        }
        lines
    }

    /// Stores of each thread to the place of another, each to a different one: of all threads of
    /// the block, or of some. Each then reads its own place.
    pub(crate) fn scatter(&mut self, scope: &Scope) -> Vec<String> {
        debug_assert!(scope.together == Together::Block);
        let mut lines = vec!["bar.sync 0;".to_owned()];
        let threads = self.threads;
        let distance = 1 + self.random.below(threads as usize + 3) as u32;
        let mut guard = String::new();
        lines.push(match self.random.below(8) {
            0 => "sub.u32 %t0, %count, %linear;\n    sub.u32 %t0, %t0, 1;".to_owned(),
            1 => format!("add.u32 %t0, %linear, {distance};\n    rem.u32 %t0, %t0, %count;"),
            2 if threads.is_power_of_two() => {
                format!("mad.lo.u32 %t0, %linear, {}, {distance};\n    and.b32 %t0, %t0, {};", 2 * distance + 1, threads - 1)
            }
            3 if threads.is_power_of_two() && threads > 1 => {
                format!("brev.b32 %t0, %linear;\n    shr.u32 %t0, %t0, {};", 32 - threads.trailing_zeros())
            }
            4 => {
                // Those that would store outside do not.
                guard = "@%tq ".to_owned();
                let op = self.random.pick(&["sub.s32", "add.s32", "xor.b32"]);
                format!("{op} %t0, %linear, {distance};\n    setp.lt.u32 %tq, %t0, %count;")
            }
            6 if threads.is_multiple_of(8) => {
                "shr.u32 %t1, %linear, 3;\n    and.b32 %t1, %t1, 7;\n    xor.b32 %t0, %linear, %t1;".to_owned()
            }
            5 if threads.is_multiple_of(4) => {
                format!(
                    "shr.u32 %t0, %linear, 2;\n    and.b32 %t1, %linear, 3;\n    mad.lo.u32 %t0, %t1, {}, %t0;",
                    threads / 4
                )
            }
            _ => "mov.b32 %t0, %linear;".to_owned(),
        });
        if guard.is_empty() && self.random.one_in(3) {
            guard = self.guard();
        }
        let in_shared = self.random.below(3) < 2;
        let (place, size) = match in_shared {
            true => {
                match self.random.below(3) {
                    0 => {
                        lines.push("mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into());
                        ("%t0", 8)
                    }
                    1 => {
                        lines.push("mul.wide.u32 %td0, %t0, 8;\n    mov.u64 %td1, swap;\n    add.s64 %td0, %td1, %td0;".into());
                        ("%td0", 8)
                    }
                    _ => {
                        lines.push("cvt.s64.s32 %td0, %t0;\n    shl.b64 %td0, %td0, 3;\n    mov.u64 %td1, swap;\n    add.s64 %td0, %td0, %td1;".into());
                        ("%td0", 8)
                    }
                }
            }
            false => {
                lines
                    .push("ld.param.u64 %td1, [p_columns];\n    mad.lo.u32 %t0, %group, %count, %t0;".into());
                lines.push("mad.wide.u32 %td0, %t0, 4, %td1;".into());
                ("%td0", 4)
            }
        };
        let column = self.random.below(COLUMNS as usize);
        let space = if in_shared { "shared" } else { "global" };
        for _ in 0..1 + self.random.below(2) {
            let (ty, registers, bytes) = loop {
                let (_, ty, registers, bytes) = self.element();
                if bytes <= size {
                    break (ty, registers, bytes);
                }
            };
            let inside = bytes * self.random.below((size / bytes) as usize) as u32;
            let address = match in_shared {
                true => format!("[{place}+{inside}]"),
                false if inside == 0 => format!("[{place}+COLUMN{column}]"),
                false => {
                    lines.push(format!("add.s64 %td2, {place}, {inside};"));
                    format!("[%td2+COLUMN{column}]")
                }
            };
            lines.push(format!("{guard}st.{space}{ty} {address}, {registers};"));
        }
        lines.push("bar.sync 0;".into());
        lines.push(match in_shared {
            true => format!("ld.shared.b64 {}, [%swap];", self.dst("b64")),
            false => format!("ld.global.b32 {}, [%column+COLUMN{column}];", self.dst("b32")),
        });
        lines
    }

    /// An array of each thread in local memory: written in order, then read and written at indices
    /// that differ, as sorts and histograms of one thread are.
    pub(crate) fn array(&mut self) -> Vec<String> {
        let label = self.fresh();
        let (a, b, d) = (self.random.below(12), self.random.below(12), self.random.below(12));
        let generic = self.random.one_in(3);
        let (base, space) = match generic {
            true => ("mov.u64 %td1, stack;\n    cvta.local.u64 %td1, %td1;", ""),
            false => ("mov.u64 %td1, stack;", ".local"),
        };
        let mut lines = vec![base.to_owned()];
        match self.random.below(3) {
            0 => {
                // Counts nibbles.
                lines.push(format!("mov.b32 %t3, %r{a};\n    mov.b32 %t2, {};", 1 + self.random.below(8)));
                lines.push(format!("A{label}:\n    and.b32 %t0, %t3, 15;\n    shr.u32 %t3, %t3, 4;"));
                lines.push("mul.wide.u32 %td0, %t0, 4;\n    add.s64 %td0, %td1, %td0;".into());
                lines.push(format!(
                    "ld{space}.u32 %t1, [%td0];\n    add.u32 %t1, %t1, %r{b};\n    st{space}.u32 [%td0], %t1;"
                ));
                lines.push(format!(
                    "sub.u32 %t2, %t2, 1;\n    setp.ne.u32 %tq, %t2, 0;\n    @%tq bra A{label};"
                ));
            }
            1 => {
                // Inserts a word where it belongs among those before it.
                let last = 1 + self.random.below(14);
                lines.push(format!("mov.b32 %t3, {last};\n    mov.b32 %t2, %r{a};"));
                lines.push(format!("A{label}:\n    setp.eq.u32 %tq, %t3, 0;\n    @%tq bra E{label};"));
                lines.push("mul.wide.u32 %td0, %t3, 4;\n    add.s64 %td0, %td1, %td0;".into());
                lines.push(format!(
                    "ld{space}.s32 %t0, [%td0+-4];\n    setp.le.s32 %tq, %t0, %t2;\n    @%tq bra E{label};"
                ));
                lines.push(format!(
                    "st{space}.s32 [%td0], %t0;\n    sub.u32 %t3, %t3, 1;\n    bra A{label};\nE{label}:"
                ));
                lines.push(format!("mul.wide.u32 %td0, %t3, 4;\n    add.s64 %td0, %td1, %td0;\n    st{space}.s32 [%td0], %t2;"));
            }
            _ => {
                for _ in 0..1 + self.random.below(3) {
                    let (ty, bytes) = self.random.pick(&[("u8", 1), ("u16", 2), ("u32", 4)]);
                    let source = self.random.below(12);
                    lines.push(format!("and.b32 %t0, %r{source}, {};", OWN_BYTES / bytes - 1));
                    lines.push(format!("mul.wide.u32 %td0, %t0, {bytes};\n    add.s64 %td0, %td1, %td0;"));
                    lines.push(match self.random.one_in(2) {
                        true => format!("st{space}.{ty} [%td0], %r{b};"),
                        false => format!("ld{space}.{ty} %r{d}, [%td0];"),
                    });
                }
            }
        }
        lines
    }
}
