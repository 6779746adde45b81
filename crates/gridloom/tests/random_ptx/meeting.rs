//! Statements that synchronise threads: warp operations and barriers.

use super::generate::{Generator, Scope, Together};
use super::program::Statement;

impl Generator {
    /// A warp operation among the lanes that are here.
    pub(crate) fn warp(&mut self, scope: &Scope) -> Option<Vec<String>> {
        // In a loop whose passes differ, it would matter how far each thread runs ahead.
        let known = scope.together >= Together::Warp || scope.loops.is_empty();
        if self.features.approximations
            && self.whole_warps
            && known
            && !self.features.functions
            && self.random.one_in(3)
        {
            return Some(self.active());
        }
        let mask = scope.mask.clone()?;
        Some(match self.random.below(10) {
            0..=2 => self.shuffle(&mask),
            3 | 4 => {
                let (p, mode) = (self.predicate(), self.random.pick(&["all", "any", "uni"]));
                let not = if self.random.one_in(3) { "!" } else { "" };
                vec![match self.random.one_in(3) {
                    true => format!("vote.sync.{mode}.pred {}, {not}{p}, {mask};", self.predicate()),
                    false => format!("vote.sync.ballot.b32 {}, {not}{p}, {mask};", self.dst("b32")),
                }]
            }
            5 => {
                // Few values, so that some are the same.
                let (ty, wide) = self.random.pick(&[("b32", false), ("b64", true)]);
                let (d, bits) = (self.dst("b32"), self.random.pick(&[0, 1, 3]));
                let source = self.dst(ty);
                let (value, lines) = if wide {
                    ("%td0", format!("and.b64 %td0, {source}, {bits};"))
                } else {
                    ("%t0", format!("and.b32 %t0, {source}, {bits};"))
                };
                let last = match self.random.one_in(2) {
                    true => format!("match.any.sync.{ty} {d}, {value}, {mask};"),
                    false => format!("match.all.sync.{ty} {d}|{}, {value}, {mask};", self.predicate()),
                };
                vec![lines, last]
            }
            6 | 7 => {
                let (op, ty) = self.random.pick(&[
                    ("add", "u32"),
                    ("add", "s32"),
                    ("min", "u32"),
                    ("min", "s32"),
                    ("max", "u32"),
                    ("max", "s32"),
                    ("and", "b32"),
                    ("or", "b32"),
                    ("xor", "b32"),
                    ("min", "f32"),
                    ("max.abs", "f32"),
                    ("min.abs.NaN", "f32"),
                    ("max.NaN", "f32"),
                ]);
                if ty == "f32" {
                    let (d, a) = (self.random.below(8), self.random.below(8));
                    return Some(vec![format!("redux.sync.{op}.f32 %f{d}, %f{a}, {mask};")]);
                }
                vec![format!("redux.sync.{op}.{ty} {}, {}, {mask};", self.dst("b32"), self.dst("b32"))]
            }
            8 => vec![format!("elect.sync {}|{}, {mask};", self.dst("b32"), self.predicate())],
            _ => self.exchange_in_warp(&mask),
        })
    }

    /// A question for the lanes that run here together, and maybe something among them. Machines
    /// decide which these are. These engines decide alike in groups that are warps.
    fn active(&mut self) -> Vec<String> {
        let mask = format!("%m{}", self.fresh());
        let mut lines = vec![format!("activemask.b32 {mask};")];
        match self.random.below(4) {
            0 => lines.push(format!("mov.b32 {}, {mask};", self.dst("b32"))),
            1 => {
                let p = self.predicate();
                lines.push(format!("vote.sync.ballot.b32 {}, {p}, {mask};", self.dst("b32")));
            }
            2 => {
                let op = self.random.pick(&["add.u32", "max.s32", "xor.b32"]);
                lines.push(format!("redux.sync.{op} {}, {}, {mask};", self.dst("b32"), self.dst("b32")));
            }
            _ => lines.extend(self.shuffle(&mask)),
        }
        lines
    }

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

    /// A shuffle. A lane that would read one that is not here keeps its own value.
    fn shuffle(&mut self, mask: &str) -> Vec<String> {
        let (d, a, p) = (self.dst("b32"), self.dst("b32"), self.predicate());
        let mode = self.random.pick(&["up", "down", "bfly", "idx"]);
        let lane = match self.random.below(3) {
            0 => self.dst("b32"),
            _ => self.random.below(32).to_string(),
        };
        let width = self.random.pick(&[32, 32, 16, 8, 4, 2, 1]);
        let clamp = (32 - width) << 8 | if mode == "up" { 0 } else { 31 };
        let source = match mode {
            "up" => "sub.u32 %t1, %lane, %t1;".to_owned(),
            "down" => "add.u32 %t1, %lane, %t1;".to_owned(),
            "bfly" => "xor.b32 %t1, %lane, %t1;".to_owned(),
            _ => format!(
                "and.b32 %t1, %t1, {};\n    and.b32 %t2, %lane, {};\n    or.b32 %t1, %t1, %t2;",
                width - 1,
                32 - width
            ),
        };
        vec![
            format!("mov.b32 %t3, {a};"),
            format!("and.b32 %t1, {lane}, 31;"),
            format!("shfl.sync.{mode}.b32 %t0|%tq, %t3, %t1, {clamp}, {mask};"),
            // Whether the lane read from is here.
            source,
            format!("and.b32 %t1, %t1, 31;\n    shr.u32 %t1, {mask}, %t1;\n    and.b32 %t1, %t1, 1;"),
            format!("setp.ne.and.u32 {p}, %t1, 0, %tq;"),
            format!("selp.b32 {d}, %t0, %t3, {p};"),
        ]
    }

    /// Values handed over in shared memory, between barriers of the warp.
    fn exchange_in_warp(&mut self, mask: &str) -> Vec<String> {
        let (value, back) = (self.dst("b64"), self.dst("b64"));
        let step = 1 + self.random.below(31);
        vec![
            format!("st.shared.b64 [%swap], {value};"),
            format!("bar.warp.sync {mask};"),
            format!("add.u32 %t0, %lane, {step};\n    and.b32 %t0, %t0, 31;"),
            // From a lane that is here, else from the thread itself.
            format!("shr.u32 %t1, {mask}, %t0;\n    and.b32 %t1, %t1, 1;\n    setp.ne.u32 %tq, %t1, 0;"),
            "sub.s32 %t0, %t0, %lane;\n    shl.b32 %t0, %t0, 3;\n    add.s32 %t0, %swap, %t0;".into(),
            "selp.b32 %t0, %t0, %swap, %tq;".into(),
            format!("ld.shared.b64 {back}, [%t0];"),
            format!("bar.warp.sync {mask};"),
        ]
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
        let lines = match self.random.below(18) {
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

    /// A tree over the threads of the block: in each step those of the first half add what those of
    /// the second have, step by step or in a loop. Then each reads another's.
    fn tree(&mut self) -> Vec<String> {
        let value = self.dst("b64");
        let mut lines =
            vec!["bar.sync 0;".to_owned(), format!("st.shared.b64 [%swap], {value};"), "bar.sync 0;".into()];
        let label = self.fresh();
        let half = self.threads as usize / 2;
        let (a, b) = (self.random.below(8), self.random.below(8));
        let sum = match self.random.below(3) {
            0 => ["b64 %td0", "b64 %td2", "mad.lo.u64 %td0, %td2, 3, %td0"].map(str::to_owned),
            1 => ["b64 %td0", "b64 %td2", "max.s64 %td0, %td0, %td2"].map(str::to_owned),
            _ => [format!("f32 %f{a}"), format!("f32 %f{b}"), format!("add.f32 %f{a}, %f{a}, %f{b}")],
        };
        let [mine, other, add] = sum;
        if self.random.one_in(2) {
            let first = match self.random.one_in(2) {
                true => format!("mov.u32 %t3, {half};"),
                false => "shr.u32 %t3, %count, 1;".to_owned(),
            };
            lines.push(format!(
                "{first}\nH{label}:\n    setp.ge.u32 %tq, %linear, %t3;\n    @%tq bra S{label};"
            ));
            lines.push(
                "add.u32 %t0, %linear, %t3;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into(),
            );
            lines.push(format!("ld.shared.{mine}, [%swap];\n    ld.shared.{other}, [%t0];\n    {add};"));
            lines.push(format!("st.shared.{};", stored("%swap", &mine)));
            lines.push(format!(
                "S{label}:\n    bar.sync 0;\n    shr.u32 %t3, %t3, 1;\n    setp.ne.u32 %tq, %t3, 0;"
            ));
            lines.push(format!("@%tq bra H{label};"));
        } else {
            let mut distance = half;
            // In a row of what is loaded, or with room between.
            let apart = if mine.starts_with("f32") { self.random.pick(&[4, 8]) } else { 8 };
            while distance > 0 {
                let compare = match self.random.below(3) {
                    0 => format!("setp.gt.u32 %tq, %linear, {}", distance - 1),
                    1 => format!("setp.le.s32 %tq, {distance}, %linear"),
                    _ => format!("setp.ge.u32 %tq, %linear, {distance}"),
                };
                lines.push(format!("{compare};\n    @%tq bra S{label}_{distance};"));
                lines.push(format!(
                    "mul.wide.u32 %td1, %linear, {apart};\n    mov.u64 %td2, swap;\n    add.u64 %td1, %td1, %td2;"
                ));
                let far = match self.random.one_in(2) {
                    true => format!("ld.shared.{other}, [%td1+{}];", apart * distance),
                    false => format!(
                        "add.u32 %t0, %linear, {distance};\n    mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, {apart}, %t1;\n    ld.shared.{other}, [%t0];"
                    ),
                };
                lines.push(format!("ld.shared.{mine}, [%td1];\n    {far}\n    {add};"));
                lines.push(format!("st.shared.{};", stored("%td1", &mine)));
                lines.push(format!("S{label}_{distance}:\n    bar.sync 0;"));
                distance /= 2;
            }
        }
        let (step, back) = (1 + self.random.below(100), self.dst("b64"));
        lines.push(format!("add.u32 %t0, %linear, {step};\n    rem.u32 %t0, %t0, %count;"));
        lines.push("mov.u32 %t1, swap;\n    mad.lo.u32 %t0, %t0, 8, %t1;".into());
        lines.push(format!("ld.shared.b64 {back}, [%t0];"));
        lines.push("bar.sync 0;".into());
        lines
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

/// Type, place and register of a store, from type and register.
fn stored(place: &str, typed: &str) -> String {
    let (ty, register) = typed.split_once(' ').unwrap_or((typed, ""));
    format!("{ty} [{place}], {register}")
}
