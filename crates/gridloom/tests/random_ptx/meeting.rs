//! Statements in which the threads of a block meet at barriers.

use super::generate::{Generator, Scope, Together};
use super::program::Statement;

impl Generator {
    /// Values of other threads in shared memory, at indices that are widened to addresses. Threads
    /// whose index is outside do not load.
    fn neighbours(&mut self) -> Vec<String> {
        let (value, back) = (self.dst("b64"), self.dst("b64"));
        let mut lines =
            vec!["bar.sync 0;".to_owned(), format!("st.shared.b64 [%swap], {value};"), "bar.sync 0;".into()];
        let (distance, u) = (1 + self.random.below(40), self.random.below(4));
        for _ in 0..1 + self.random.below(3) {
            let op = self.random.pick(&["sub.s32", "add.s32", "xor.b32", "mul.lo.s32"]);
            let other = match self.random.one_in(2) {
                true => distance.to_string(),
                false => format!("%u{u}"),
            };
            lines.push(format!("{op} %t0, %linear, {other};\n    setp.lt.u32 %tq, %t0, %count;"));
            let place = match self.random.below(4) {
                0 => "mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;\n    cvt.u64.u32 %td0, %t0;",
                1 => {
                    "cvt.s64.s32 %td0, %t0;\n    shl.b64 %td0, %td0, 3;\n    mov.u64 %td2, swap;\n    add.s64 %td0, %td2, %td0;"
                }
                2 => "mul.wide.u32 %td0, %t0, 8;\n    mov.u64 %td2, swap;\n    add.s64 %td0, %td0, %td2;",
                _ => "mul.wide.s32 %td0, %t0, 8;\n    mov.u64 %td2, swap;\n    add.s64 %td0, %td0, %td2;",
            };
            lines.push(place.into());
            let load = match self.random.below(3) {
                0 => format!("ld.shared.b32 {}, [%td0];", self.dst("b32")),
                1 => format!("ld.shared.b32 {}, [%td0+4];", self.dst("b32")),
                _ => format!("ld.shared.b64 {back}, [%td0];"),
            };
            if self.random.one_in(2) {
                lines.push(format!("@%tq {load}"));
            } else {
                let label = self.fresh();
                lines.push(format!("@!%tq bra S{label};\n    {load}\nS{label}:"));
            }
        }
        lines.push("bar.sync 0;".into());
        lines
    }

    /// Words of shared memory that nothing has written yet, or that each thread has written one of:
    /// a machine may leave anything there, and these engines zeros.
    fn what_is_left(&mut self) -> Vec<String> {
        let mut lines = vec!["mov.u64 %table, left;\n    mad.wide.u32 %word, %linear, 4, %table;".to_owned()];
        let other = |this: &mut Self| {
            let (d, step) = (this.dst("b32"), this.random.below(32));
            vec![
                format!("add.u32 %t0, %linear, {step};\n    rem.u32 %t0, %t0, %count;"),
                format!(
                    "mul.wide.u32 %td0, %t0, 4;\n    add.u64 %td0, %td0, %table;\n    ld.shared.b32 {d}, [%td0];"
                ),
            ]
        };
        match self.random.below(6) {
            0 => {
                lines.extend(other(self));
                lines.push("bar.sync 0;".into());
            }
            1 => {
                let own = self.dst("b32");
                lines.push(format!("ld.shared.b32 {own}, [%word];"));
            }
            _ => {}
        }
        let guard = if self.random.one_in(5) { self.guard() } else { String::new() };
        if !self.random.one_in(8) {
            let value = self.dst("b32");
            lines.push(format!("{guard}st.shared.b32 [%word], {value};"));
        }
        lines.push("bar.sync 0;".into());
        lines.extend(other(self));
        lines.push("bar.sync 0;".into());
        lines
    }

    /// A barrier of the block, or something around it.
    pub(crate) fn barrier(&mut self, scope: &Scope) -> Option<Statement> {
        if scope.together != Together::Block || scope.in_function {
            return None;
        }
        let lines = match self.random.below(26) {
            18..=19 => self.scatter(scope),
            20 => self.sort(),
            21 => self.scan(),
            22 => self.stencil(),
            23 => self.on_both_sides(),
            24 => self.butterfly(),
            25 => self.wide_rows(),
            0..=6 if self.features.rows && self.features.approximations => self.what_is_left(),
            13..=14 if self.features.approximations => self.what_is_left(),
            8..=10 => self.steps(),
            11..=12 => self.tree(),
            15..=17 => self.neighbours(),
            0 => vec![self.random.pick(&["bar.sync 0;", "barrier.sync 1;", "bar.sync 7;"]).to_owned()],
            1 => {
                let (op, p) = (self.random.pick(&["and", "or"]), self.predicate());
                let not = if self.random.one_in(3) { "!" } else { "" };
                vec![format!("bar.red.{op}.pred {}, 0, {not}{p};", self.predicate())]
            }
            2 => {
                // The same in all threads, so it may steer them from now on.
                let (u, p) = (self.random.below(4), self.predicate());
                vec![format!("bar.red.popc.u32 %u{u}, 0, {p};")]
            }
            3 => {
                let (u, a) = (self.random.below(4), self.random.below(4));
                let op = self.random.pick(&["add.u32", "xor.b32", "mul.lo.u32", "sub.u32"]);
                vec![format!("{op} %u{u}, %u{a}, {};", self.random.below(100))]
            }
            4 if !self.features.exits && self.threads > 32 => return Some(self.by_warps()),
            5 if !self.features.exits && self.threads > 32 => return Some(self.hand_over()),
            _ => {
                let (value, back) = (self.dst("b64"), self.dst("b64"));
                let step = 1 + self.random.below(100);
                vec![
                    "bar.sync 0;".into(),
                    format!("st.shared.b64 [%swap], {value};"),
                    "bar.sync 0;".into(),
                    format!("add.u32 %t0, %linear, {step};\n    rem.u32 %t0, %t0, %count;"),
                    "mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into(),
                    format!("ld.shared.b64 {back}, [%t0];"),
                    "bar.sync 0;".into(),
                ]
            }
        };
        Some(Statement::Code(lines))
    }

    /// Steps between barriers in each of which some threads work, by their index: each changes its
    /// word of shared memory, and maybe a register. Then each reads another's.
    fn steps(&mut self) -> Vec<String> {
        let value = self.dst("b64");
        let mut lines =
            vec!["bar.sync 0;".to_owned(), format!("st.shared.b64 [%swap], {value};"), "bar.sync 0;".into()];
        for _ in 0..1 + self.random.below(3) {
            let label = self.fresh();
            let index = match self.random.one_in(3) {
                true => {
                    lines.push("mov.u32 %row, %tid.x;".into());
                    "%row"
                }
                false => "%linear",
            };
            let compare = self.random.pick(&[
                "ge.u32", "ge.u32", "gt.u32", "lt.u32", "le.s32", "ge.s32", "gt.s32", "ne.u32", "ne.s32",
                "eq.u32",
            ]);
            let bound = match self.random.below(8) {
                0 => "%count".to_owned(),
                1 => format!("%u{}", self.random.below(4)),
                2 => self.random.pick(&["0", "1", "31", "32", "33", "64", "2000"]).to_owned(),
                3 if compare.ends_with("s32") => "-1".to_owned(),
                4 | 5 => (1 + self.random.below(8)).to_string(),
                _ => self.random.below(self.threads as usize + 2).to_string(),
            };
            let operands = match self.random.one_in(4) {
                true => format!("{bound}, {index}"),
                false => format!("{index}, {bound}"),
            };
            let not = if self.random.one_in(4) { "!" } else { "" };
            lines.push(format!("setp.{compare} %tq, {operands};\n    @{not}%tq bra S{label};"));
            let place = match self.random.one_in(2) {
                true => {
                    lines.push("cvt.u64.u32 %td1, %swap;".into());
                    "%td1"
                }
                false => "%swap",
            };
            lines.push(format!("ld.shared.b64 %td0, [{place}];"));
            if self.random.one_in(2) {
                let (d, a) = (self.random.below(12), self.random.below(12));
                lines.push(format!("mad.lo.u32 %r{d}, %r{a}, 5, %linear;"));
            }
            if self.random.one_in(3) {
                let (d, a) = (self.random.below(8), self.random.below(8));
                lines.push(format!("add.f32 %f{d}, %f{a}, 0f3F800000;"));
            }
            lines.push(format!("mad.lo.u64 %td0, %td0, 3, {};", self.dst("b64")));
            lines.push(format!("st.shared.b64 [{place}], %td0;\nS{label}:\n    bar.sync 0;"));
        }
        let (step, back) = (1 + self.random.below(100), self.dst("b64"));
        lines.push(format!("add.u32 %t0, %linear, {step};\n    rem.u32 %t0, %t0, %count;"));
        lines.push("mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into());
        lines.push(format!("ld.shared.b64 {back}, [%t0];"));
        lines.push("bar.sync 0;".into());
        lines
    }

    /// Threads of a warp that meet at one barrier from both sides of a branch.
    fn on_both_sides(&mut self) -> Vec<String> {
        let (p, label) = (self.predicate(), self.fresh());
        let (value, other, back) = (self.dst("b64"), self.dst("b64"), self.dst("b64"));
        let step = 1 + self.random.below(40);
        vec![
            format!("bar.sync 0;\n    mov.pred %tg, {p};\n    @!%tg bra B{label};"),
            format!("st.shared.b64 [%swap], {value};\n    barrier.sync 0;\n    bra E{label};\nB{label}:"),
            format!("st.shared.b64 [%swap], {other};\n    barrier.sync 0;\nE{label}:"),
            format!("add.u32 %t0, %linear, {step};\n    rem.u32 %t0, %t0, %count;"),
            format!("mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;\n    ld.shared.b64 {back}, [%t0];"),
            "barrier.sync 0;".into(),
        ]
    }

    /// Some warps meet at one barrier and the others at another, each by their number of threads.
    fn by_warps(&mut self) -> Statement {
        let warps = self.threads.div_ceil(32);
        let first = 1 + self.random.below(warps as usize - 1) as u32;
        let (value, back) = (self.dst("b64"), self.dst("b64"));
        let side = |id: u32, count: u32, step: &str| {
            [
                format!("bar.sync {id}, {};", 32 * count),
                format!("st.shared.b64 [%swap], {value};"),
                format!("barrier.sync {id}, {};", 32 * count),
                // The neighbour is in the same warp.
                format!("{step}\n    ld.shared.b64 {back}, [%t0];"),
                format!("bar.sync {id}, {};", 32 * count),
            ]
            .join("\n    ")
        };
        let label = self.fresh();
        Statement::Code(vec![
            format!("setp.ge.u32 %tq, %warp, {first};"),
            format!("@%tq bra B{label};"),
            side(
                1,
                first,
                "xor.b32 %t0, %linear, 1;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;",
            ),
            format!("bra E{label};\nB{label}:"),
            side(2, warps - first, "mov.b32 %t0, %swap;"),
            format!("bra E{label};\nE{label}:"),
            "bar.sync 0;".into(),
        ])
    }

    /// Lets the last warp wait for what the others wrote. They do not wait for it.
    fn hand_over(&mut self) -> Statement {
        let warps = self.threads.div_ceil(32);
        let (value, back) = (self.dst("b64"), self.dst("b64"));
        let label = self.fresh();
        Statement::Code(vec![
            "bar.sync 0;".into(),
            format!("st.shared.b64 [%swap], {value};"),
            format!("setp.eq.u32 %tq, %warp, {};", warps - 1),
            format!("@%tq bra B{label};"),
            format!("bar.arrive 3, {};\n    bra E{label};\nB{label}:", 32 * warps),
            format!("bar.sync 3, {};", 32 * warps),
            "and.b32 %t0, %linear, 31;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into(),
            format!("ld.shared.b64 {back}, [%t0];"),
            format!("bra E{label};\nE{label}:"),
            "bar.sync 0;".into(),
        ])
    }
}
