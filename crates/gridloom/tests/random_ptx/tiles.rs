//! Algorithms of all threads of a block in shared memory, as compilers write them: reduction trees,
//! sorting networks, scans and stencils.

use super::generate::Generator;

impl Generator {
    /// A tree over the threads of the block: in each step those of the first half add what those of
    /// the second have, step by step or in a loop. Then each reads another's.
    pub(crate) fn tree(&mut self) -> Vec<String> {
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

    /// Sorts words of shared memory: in a network of powers of two, or by exchanging neighbours.
    pub(crate) fn sort(&mut self) -> Vec<String> {
        let (ty, value, other) = match self.random.one_in(3) {
            true => ("f32", format!("%f{}", self.random.below(4)), format!("%f{}", 4 + self.random.below(4))),
            false => {
                let ty = self.random.pick(&["u32", "s32"]);
                (ty, format!("%r{}", self.random.below(6)), format!("%r{}", 6 + self.random.below(6)))
            }
        };
        let label = self.fresh();
        let mut lines = vec![
            "bar.sync 0;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %row, %linear, 4, %t1;".to_owned(),
            format!("st.shared.{ty} [%row], {value};\n    bar.sync 0;"),
        ];
        // Of two that are compared, the first exchanges them.
        let exchange = |name: &str, ascending: &str| {
            [
                format!("ld.shared.{ty} {value}, [%row];\n    ld.shared.{ty} {other}, [%entry];"),
                format!("setp.gt.{ty} %tq, {value}, {other};\n    {ascending}"),
                format!("@!%tq bra {name};\n    st.shared.{ty} [%row], {other};\n    st.shared.{ty} [%entry], {value};"),
            ]
            .join("\n    ")
        };
        let threads = self.threads;
        if threads.is_power_of_two() && threads > 1 {
            let in_loop = self.random.one_in(2);
            let step = |this: &mut Self, name: &str, size: &str, distance: &str| {
                let partner = format!("xor.b32 %t0, %linear, {distance};");
                let first = match this.random.one_in(2) {
                    true => format!("setp.le.u32 %tq, %t0, %linear;\n    @%tq bra {name};"),
                    false => format!(
                        "and.b32 %t2, %linear, {distance};\n    setp.ne.u32 %tq, %t2, 0;\n    @%tq bra {name};"
                    ),
                };
                let way = format!(
                    "and.b32 %t2, %linear, {size};\n    setp.eq.xor.u32 %tq, %t2, 0, %tq;\n    not.pred %tq, %tq;"
                );
                format!(
                    "{partner}\n    {first}\n    mad.lo.u32 %entry, %t0, 4, %t1;\n    {}\n{name}:\n    bar.sync 0;",
                    exchange(name, &way)
                )
            };
            if in_loop {
                let body = step(self, &format!("N{label}"), "%t3", "%extent");
                lines.push(format!(
                    "mov.u32 %t3, 2;\nK{label}:\n    shr.u32 %extent, %t3, 1;\nJ{label}:\n    {body}"
                ));
                lines.push(format!(
                    "shr.u32 %extent, %extent, 1;\n    setp.ne.u32 %tq, %extent, 0;\n    @%tq bra J{label};"
                ));
                lines.push(format!(
                    "shl.b32 %t3, %t3, 1;\n    setp.le.u32 %tq, %t3, {threads};\n    @%tq bra K{label};"
                ));
            } else {
                let mut size = 2;
                while size <= threads {
                    let mut distance = size / 2;
                    while distance > 0 {
                        let name = format!("N{label}_{size}_{distance}");
                        lines.push(step(self, &name, &size.to_string(), &distance.to_string()));
                        distance /= 2;
                    }
                    size *= 2;
                }
            }
        } else {
            // Some passes over neighbours, by turns from even and from odd places.
            let passes = 1 + self.random.below(6);
            lines.push(format!(
                "mov.u32 %t3, 0;\nK{label}:\n    add.u32 %t0, %linear, %t3;\n    and.b32 %t0, %t0, 1;"
            ));
            lines.push(format!(
                "setp.ne.u32 %tq, %t0, 0;\n    @%tq bra N{label};\n    add.u32 %t2, %linear, 1;"
            ));
            lines.push(format!(
                "setp.ge.u32 %tq, %t2, %count;\n    @%tq bra N{label};\n    add.u32 %entry, %row, 4;"
            ));
            lines.push(exchange(&format!("N{label}"), ""));
            lines.push(format!("N{label}:\n    bar.sync 0;\n    add.u32 %t3, %t3, 1;"));
            lines.push(format!("setp.lt.u32 %tq, %t3, {passes};\n    @%tq bra K{label};"));
        }
        lines.push(format!("ld.shared.{ty} {value}, [%row];\n    bar.sync 0;"));
        lines
    }

    /// Sums of the words of all threads up to each, in steps of doubled distance.
    pub(crate) fn scan(&mut self) -> Vec<String> {
        let label = self.fresh();
        let (value, float) = (self.random.below(8), self.random.one_in(3));
        let (x, ty, add) = match float {
            true => (format!("%f{value}"), "f32", "add.f32"),
            false => (format!("%r{value}"), "u32", self.random.pick(&["add.u32", "max.s32", "xor.b32"])),
        };
        let y = if float { format!("%f{}", (value + 1) % 8) } else { "%t2".to_owned() };
        let none = if float { "mov.f32" } else { "mov.u32" };
        let zero = if float { "0f00000000" } else { "0" };
        let mut lines = vec![
            "bar.sync 0;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %row, %linear, 4, %t1;".to_owned(),
            format!("st.shared.{ty} [%row], {x};\n    bar.sync 0;"),
        ];
        let way = self.random.below(5);
        let step = |name: &str, distance: &str| {
            let before = format!("setp.ge.u32 %tq, %linear, {distance};\n    {none} {y}, {zero};");
            let there = format!("sub.u32 %t0, %linear, {distance};");
            let read = match way {
                0 => {
                    format!("{there}\n    mad.lo.u32 %t0, %t0, 4, %t1;\n    @%tq ld.shared.{ty} {y}, [%t0];")
                }
                1 => format!(
                    "{there}\n    mul.wide.u32 %td0, %t0, 4;\n    mov.u64 %td1, swap;\n    add.s64 %td0, %td1, %td0;\n    @%tq ld.shared.{ty} {y}, [%td0];"
                ),
                2 => format!(
                    "@!%tq bra {name};\n    {there}\n    mad.lo.u32 %t0, %t0, 4, %t1;\n    ld.shared.{ty} {y}, [%t0];\n{name}:"
                ),
                3 => format!(
                    "@!%tq bra {name};\n    {there}\n    mul.wide.s32 %td0, %t0, 4;\n    mov.u64 %td1, swap;\n    add.s64 %td0, %td1, %td0;\n    \
                     ld.shared.{ty} {y}, [%td0];\n{name}:"
                ),
                // All read, at a place that is valid in all.
                _ => format!(
                    "{there}\n    mad.lo.u32 %t0, %t0, 4, %t1;\n    selp.b32 %t0, %t0, %row, %tq;\n    ld.shared.{ty} {y}, [%t0];\n    @!%tq {none} {y}, {zero};"
                ),
            };
            format!(
                "{before}\n    {read}\n    bar.sync 0;\n    {add} {x}, {x}, {y};\n    st.shared.{ty} [%row], {x};\n    bar.sync 0;"
            )
        };
        if self.random.one_in(2) {
            let body = step(&format!("O{label}"), "%t3");
            lines.push(format!("mov.u32 %t3, 1;\nD{label}:\n    {body}\n    shl.b32 %t3, %t3, 1;"));
            lines.push(format!("setp.lt.u32 %tq, %t3, %count;\n    @%tq bra D{label};"));
        } else {
            let mut distance = 1;
            while distance < self.threads {
                lines.push(step(&format!("O{label}_{distance}"), &distance.to_string()));
                distance *= 2;
            }
        }
        lines
    }

    /// Some passes in which each thread computes with the words of its neighbours, and those at the
    /// border with their own.
    pub(crate) fn stencil(&mut self) -> Vec<String> {
        let label = self.fresh();
        let distance = self.random.pick(&[1, 1, 1, 2, 4, 7]);
        let passes = 1 + self.random.below(4);
        let value = self.random.below(8);
        let mut lines = vec![
            "bar.sync 0;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %row, %linear, 4, %t1;".to_owned(),
            format!("st.shared.f32 [%row], %f{value};\n    sub.u32 %t2, %count, 1;\n    mov.u32 %t3, 0;"),
            format!("P{label}:\n    bar.sync 0;\n    mov.f32 %f{0}, %f{value};", (value + 1) % 8),
        ];
        lines.push(match self.random.below(3) {
            0 => format!(
                "sub.s32 %t0, %linear, {distance};\n    max.s32 %t0, %t0, 0;\n    mad.lo.u32 %t0, %t0, 4, %t1;\n    ld.shared.f32 %f{0}, [%t0];",
                (value + 1) % 8
            ),
            1 => format!(
                "setp.lt.u32 %tq, %linear, {distance};\n    @%tq bra Q{label};\n    ld.shared.f32 %f{0}, [%row+-{1}];\nQ{label}:",
                (value + 1) % 8,
                4 * distance
            ),
            _ => format!(
                "setp.ge.s32 %tq, %linear, {distance};\n    @%tq ld.shared.f32 %f{0}, [%row+-{1}];",
                (value + 1) % 8,
                4 * distance
            ),
        });
        lines.push(match self.random.below(3) {
            0 => format!(
                "add.u32 %t0, %linear, {distance};\n    min.u32 %t0, %t0, %t2;\n    mad.lo.u32 %t0, %t0, 4, %t1;\n    ld.shared.f32 %f{0}, [%t0];\n    \
                 fma.rn.f32 %f{value}, %f{0}, 0f3E800000, %f{1};",
                (value + 2) % 8,
                (value + 1) % 8
            ),
            _ => format!(
                "add.u32 %t0, %linear, {distance};\n    setp.lt.u32 %tq, %t0, %count;\n    @!%tq bra R{label};\n    ld.shared.f32 %f{0}, [%row+{2}];\n    \
                 sub.f32 %f{value}, %f{0}, %f{1};\nR{label}:",
                (value + 2) % 8,
                (value + 1) % 8,
                4 * distance
            ),
        });
        lines.push(format!("bar.sync 0;\n    st.shared.f32 [%row], %f{value};\n    add.u32 %t3, %t3, 1;"));
        lines.push(format!("setp.lt.u32 %tq, %t3, {passes};\n    @%tq bra P{label};\n    bar.sync 0;"));
        lines
    }

    /// Passes over pairs of words at a distance that is a power of two, as transforms have them:
    /// each of half of the threads replaces a pair by sum and difference.
    pub(crate) fn butterfly(&mut self) -> Vec<String> {
        let (label, value) = (self.fresh(), self.random.below(12));
        let mut lines = vec![format!(
            "bar.sync 0;\n    mov.u32 %t1, swap;\n    mad.lo.u32 %row, %linear, 4, %t1;\n    st.shared.u32 [%row], %r{value};"
        )];
        let most = self.threads.max(2).ilog2() as usize;
        for step in 0..1 + self.random.below(3) {
            let bit = self.random.below(most);
            let distance = 1 << bit;
            let pair = match self.random.below(3) {
                0 if bit == 0 => "shl.b32 %t0, %linear, 1;".to_owned(),
                0 => format!(
                    "and.b32 %t2, %linear, {};\n    shl.b32 %t0, %linear, 1;\n    sub.u32 %t0, %t0, %t2;",
                    distance - 1
                ),
                1 => format!(
                    "shr.u32 %t0, %linear, {bit};\n    shl.b32 %t0, %t0, {};\n    and.b32 %t2, %linear, {};\n    or.b32 %t0, %t0, %t2;",
                    bit + 1,
                    distance - 1
                ),
                _ => format!(
                    "and.b32 %t0, %linear, {};\n    add.u32 %t0, %t0, %linear;",
                    (!(distance - 1)) as u32
                ),
            };
            let place = match self.random.below(3) {
                0 => "mad.lo.u32 %entry, %t0, 4, %t1;",
                1 => "shl.b32 %entry, %t0, 2;\n    add.u32 %entry, %entry, %t1;",
                _ => "mul.wide.u32 %td0, %t0, 4;\n    mov.u64 %td1, swap;\n    add.s64 %td0, %td0, %td1;",
            };
            let at = if place.contains("%td0") { "%td0" } else { "%entry" };
            let far = 4 * distance;
            let both = format!("add.u32 %t3, %t0, {distance};\n    setp.lt.u32 %tq, %t3, %count;");
            let work = [
                format!("ld.shared.u32 %t2, [{at}];"),
                format!("ld.shared.u32 %t3, [{at}+{far}];"),
                format!("st.shared.u32 [{at}+{far}], %t3;"),
                format!("st.shared.u32 [{at}], %t2;"),
            ];
            let compute = "add.u32 %byte, %t2, %t3;\n    sub.u32 %t3, %t2, %t3;\n    mov.b32 %t2, %byte;";
            lines.push(format!("bar.sync 0;\n    {pair}\n    {place}\n    {both}"));
            lines.push(match self.random.one_in(2) {
                true => format!("@%tq {}\n    @%tq {}\n    {compute}\n    @%tq {}\n    @%tq {}", work[0], work[1], work[2], work[3]),
                false => format!(
                    "@!%tq bra U{label}_{step};\n    {}\n    {}\n    {compute}\n    {}\n    {}\nU{label}_{step}:",
                    work[0], work[1], work[2], work[3]
                ),
            });
        }
        lines.push(format!("bar.sync 0;\n    ld.shared.u32 %r{value}, [%row];\n    bar.sync 0;"));
        lines
    }

    /// Rows of several elements for each thread, side by side with those of its neighbours, in
    /// shared memory or in memory of the grid. Then each thread reads what another has stored.
    pub(crate) fn wide_rows(&mut self) -> Vec<String> {
        let global = self.alone && self.random.one_in(2);
        let (ty, registers, bytes) = loop {
            let (_, ty, registers, bytes) = self.element();
            if bytes <= if global { 16 } else { 8 } {
                break (ty, registers, bytes);
            }
        };
        let space = if global { "global" } else { "shared" };
        let start = if global { "ld.param.u64 %td1, [p_columns];" } else { "mov.u64 %td1, swap;" };
        let guard = match self.random.below(3) {
            0 => self.guard(),
            1 => {
                let compare = self.random.pick(&["lt", "ge"]);
                let bound = self.random.below(self.threads as usize + 1);
                let bound = if self.random.one_in(2) { bound.min(5) } else { bound };
                format!("setp.{compare}.u32 %tq, %linear, {bound};\n    @%tq ")
            }
            _ => String::new(),
        };
        let mut lines = vec![
            format!("bar.sync 0;\n    {start}\n    mad.wide.u32 %far, %linear, {bytes}, %td1;"),
            format!("{guard}st.{space}{ty} [%far], {registers};\n    bar.sync 0;"),
        ];
        let (ty, registers) = self.element_of(bytes);
        let distance = 1 + self.random.below(self.threads as usize);
        lines.push(match self.random.below(4) {
            0 => format!("ld.{space}{ty} {registers}, [%far];"),
            1 => format!(
                "add.u32 %t0, %linear, {distance};\n    setp.lt.u32 %tq, %t0, %count;\n    @%tq ld.{space}{ty} {registers}, [%far+{}];",
                distance as u32 * bytes
            ),
            2 => format!(
                "sub.u32 %t0, %count, %linear;\n    sub.u32 %t0, %t0, 1;\n    mad.wide.u32 %td0, %t0, {bytes}, %td1;\n    ld.{space}{ty} {registers}, [%td0];"
            ),
            _ => format!(
                "add.u32 %t0, %linear, {distance};\n    rem.u32 %t0, %t0, %count;\n    mad.wide.u32 %td0, %t0, {bytes}, %td1;\n    ld.{space}{ty} {registers}, [%td0];"
            ),
        });
        lines.push("bar.sync 0;".into());
        lines
    }
}

/// Type, place and register of a store, from type and register.
fn stored(place: &str, typed: &str) -> String {
    let (ty, register) = typed.split_once(' ').unwrap_or((typed, ""));
    format!("{ty} [{place}], {register}")
}
