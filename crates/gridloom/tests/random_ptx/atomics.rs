//! Atomic operations, on memory of one thread and on memory of all.

use super::generate::{Generator, Scope};
use super::program::OWN_BYTES;

impl Generator {
    /// An atomic operation on memory of the thread's own, so that the old value is defined too.
    pub(crate) fn own_atomic(&mut self, _scope: &Scope) -> Vec<String> {
        let (space, base) = self.random.pick(&[("global", "%mine"), ("shared", "%own")]);
        const OPERATIONS: [(&str, &[&str]); 7] = [
            ("and", &["b32", "b64"]),
            ("xor", &["b32", "b64"]),
            ("exch", &["b32", "b64"]),
            (
                "add",
                &[
                    "u32",
                    "s32",
                    "u64",
                    "f32",
                    "f64",
                    "noftz.f16",
                    "noftz.f16x2",
                    "noftz.bf16",
                    "noftz.bf16x2",
                ],
            ),
            ("inc", &["u32"]),
            ("dec", &["u32"]),
            ("min", &["u32", "s32", "u64", "s64"]),
        ];
        let (mut op, types) = self.random.pick(&OPERATIONS);
        let written = self.random.pick(types);
        let ty = written.trim_start_matches("noftz.");
        op = match op {
            "and" if self.random.one_in(2) => "or",
            "min" if self.random.one_in(2) => "max",
            op => op,
        };
        let bytes = super::integer::bits(ty) / 8;
        let offset = (self.random.u32() & (OWN_BYTES - 1)) & !(bytes - 1);
        let register = |this: &mut Self| match ty {
            "f32" => format!("%f{}", this.random.below(8)),
            "f64" => format!("%d{}", this.random.below(6)),
            _ => this.dst(match bytes {
                2 => "b16",
                4 => "b32",
                _ => "b64",
            }),
        };
        let (d, b, c) = (register(self), register(self), register(self));
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        let scope = self.random.pick(&["", "", ".relaxed.cta", ".relaxed.gpu"]);
        if self.random.one_in(5) {
            let ty = if bytes == 8 { "b64" } else { "b32" };
            let offset = offset & !7;
            let [d, b, c] = [(); 3].map(|()| self.dst(ty));
            return vec![format!("{guard}atom{scope}.{space}.cas.{ty} {d}, [{base}+{offset}], {b}, {c};")];
        }
        let _ = c;
        vec![match self.random.one_in(4) {
            true => {
                let no_return = if op == "exch" { "xor" } else { op };
                let written = if op == "exch" { if bytes == 8 { "b64" } else { "b32" } } else { written };
                format!("{guard}red{scope}.{space}.{no_return}.{written} [{base}+{offset}], {b};")
            }
            false => format!("{guard}atom{scope}.{space}.{op}.{written} {d}, [{base}+{offset}], {b};"),
        }]
    }

    /// An operation on a counter of all threads. Each counter has one operation, whose order does
    /// not matter.
    pub(crate) fn common_atomic(&mut self) -> Vec<String> {
        const OPERATIONS: [(&str, &str); 8] = [
            ("add", "u32"),
            ("add", "u64"),
            ("and", "b32"),
            ("or", "b64"),
            ("xor", "b32"),
            ("min", "s32"),
            ("max", "u64"),
            ("inc", "u32"),
        ];
        let counter = self.random.below(8);
        let (op, ty) = OPERATIONS[counter];
        let guard = if self.random.one_in(4) { self.guard() } else { String::new() };
        let value = match op {
            "inc" => "1000".to_owned(),
            _ => self.dst(if ty.ends_with("64") { "b64" } else { "b32" }),
        };
        // Shared counters are reset and read behind barriers, which are there only in programs that
        // have them.
        let place = match self.features.barriers && self.random.one_in(2) {
            true => format!(".shared.{op}.{ty} [tally+{}]", 8 * counter),
            false => format!(".global.{op}.{ty} [%common+{}]", 8 * counter),
        };
        vec![match self.random.one_in(4) {
            true => {
                // The old value is whatever it is; nobody looks at it.
                let unused = if ty.ends_with("64") { "%td2" } else { "%t2" };
                format!(
                    "{guard}atom{} {unused}, {}, {value};",
                    place.split(' ').next().unwrap_or(""),
                    place.split(' ').nth(1).unwrap_or("")
                )
            }
            false => format!("{guard}red{place}, {value};"),
        }]
    }

    /// Numbers that threads draw. Which thread has which does not matter for what is made of all of
    /// them together.
    pub(crate) fn tickets(&mut self) -> Vec<String> {
        let guard = if self.random.one_in(3) { self.guard() } else { String::new() };
        let shared = self.features.barriers && self.random.one_in(2);
        let place = |counter: u32| match shared {
            true => format!("[tally+{}]", 8 * counter),
            false => format!("[%common+{}]", 8 * counter),
        };
        let space = if shared { "shared" } else { "global" };
        let (ticket, sum) = (place(16), place(17));
        if self.random.one_in(3) {
            // A product that is exchanged if nobody else has done so meanwhile.
            let (label, product) = (self.fresh(), place(18));
            let factor = self.dst("b32");
            let around = match guard.split_once(' ') {
                Some((guard, _)) => match guard.strip_prefix("@!") {
                    Some(plain) => format!("@{plain} bra E{label};\n    "),
                    None => format!("@!{} bra E{label};\n    ", &guard[1..]),
                },
                None => String::new(),
            };
            return vec![
                format!("{around}or.b32 %t1, {factor}, 1;\n    ld.relaxed.gpu.{space}.u32 %t0, {product};"),
                format!("C{label}:\n    mul.lo.u32 %t2, %t0, %t1;\n    mov.b32 %t3, %t0;"),
                format!("atom.{space}.cas.b32 %t0, {product}, %t3, %t2;"),
                format!("setp.ne.u32 %tq, %t0, %t3;\n    @%tq bra C{label};\nE{label}:"),
            ];
        }
        let draw = match self.random.below(3) {
            0 => "add.u32 %t0",
            1 => "inc.u32 %t0",
            _ => "add.s32 %t0",
        };
        let (draw, value) = match draw {
            "inc.u32 %t0" => (draw, "0xffffffff"),
            _ => (draw, "1"),
        };
        let (op, register) = draw.split_once(' ').unwrap_or((draw, "%t0"));
        vec![
            format!("{guard}atom.{space}.{op} {register}, {ticket}, {value};"),
            format!("{guard}mad.lo.u32 %t0, %t0, %t0, %t0;\n    {guard}red.{space}.add.u32 {sum}, %t0;"),
        ]
    }

    /// Several elements at once, each atomically.
    pub(crate) fn vector_atomic(&mut self) -> Vec<String> {
        let (op, ty, prefix, bytes) = self.random.pick(&[
            ("add", "f32", "%f", 4),
            ("add.noftz", "f16", "%h", 2),
            ("max.noftz", "f16", "%h", 2),
            ("min.noftz", "bf16", "%h", 2),
            ("add.noftz", "f16x2", "%r", 4),
            ("min.noftz", "bf16x2", "%r", 4),
        ]);
        let count = self.random.pick(&[2, 4]);
        let start = self.random.below(8);
        let registers = |first: usize| {
            let names: Vec<String> =
                (0..count).map(|index| format!("{prefix}{}", (first + index) % 8)).collect();
            names.join(", ")
        };
        let size = bytes * count as u32;
        let offset = (self.random.u32() & (OWN_BYTES - 1)) & !(size - 1);
        let values = registers(start);
        vec![match self.random.one_in(2) {
            true => format!("red.global.{op}.v{count}.{ty} [%mine+{offset}], {{{values}}};"),
            false => {
                let old = registers(self.random.below(8));
                format!("atom.global.{op}.v{count}.{ty} {{{old}}}, [%mine+{offset}], {{{values}}};")
            }
        }]
    }
}
