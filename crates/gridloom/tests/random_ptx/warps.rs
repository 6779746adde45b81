//! Warp operations: shuffles, votes, matches, reductions and the warp barrier, among the lanes of a
//! mask.

use super::generate::{Generator, Scope, Together};

impl Generator {
    /// A warp operation among the lanes that are here.
    pub(crate) fn warp(&mut self, scope: &Scope) -> Option<Vec<String>> {
        // In a loop whose passes differ, it would matter how long each thread runs before others
        // take their turn.
        let known = scope.together >= Together::Warp && self.is_short || scope.loops.is_empty();
        if self.features.approximations
            && self.whole_warps
            && known
            && !self.features.functions
            && self.random.one_in(3)
        {
            return Some(self.active());
        }
        let mut mask = scope.mask.clone()?;
        // Where no lane is missing, compilers write the mask as a constant.
        let all = self.threads.is_multiple_of(32) && !self.features.exits && !scope.in_function;
        let all = all && scope.together >= Together::Warp;
        if all && self.random.one_in(2) {
            mask = self.random.pick(&["-1", "0xffffffff"]).to_owned();
        }
        // Or some of them, by a guard.
        if self.random.one_in(5) {
            let (some, p) = (format!("%m{}", self.fresh()), self.predicate());
            let mut lines =
                vec![format!("vote.sync.ballot.b32 {some}, {p}, {mask};\n    mov.pred %tg, {p};")];
            let guarded = self.warp_operation(scope, &some);
            let guarded = guarded.iter().flat_map(|line| line.split('\n'));
            lines.extend(guarded.map(|line| format!("@%tg {}", line.trim())));
            return Some(lines);
        }
        Some(match self.random.below(8) {
            0 if all => self.warp_tree(),
            1 if all => self.warp_scan(),
            2 => self.prefix(&mask),
            _ => self.warp_operation(scope, &mask),
        })
    }

    /// One operation among the lanes of a mask, without a branch.
    fn warp_operation(&mut self, scope: &Scope, mask: &str) -> Vec<String> {
        match self.random.below(12) {
            0 | 1 => self.shuffle(mask),
            2 | 10 | 11 => self.shuffle_by_registers(scope, mask),
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
                let (d, bits) = (self.dst("b32"), self.random.pick(&[0, 1, 3, 7, -1]));
                let source = if wide { self.dst(ty) } else { self.reg(scope, ty) };
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
                    return vec![format!("redux.sync.{op}.f32 %f{d}, %f{a}, {mask};")];
                }
                vec![format!("redux.sync.{op}.{ty} {}, {}, {mask};", self.dst("b32"), self.reg(scope, "b32"))]
            }
            8 => vec![format!("elect.sync {}|{}, {mask};", self.dst("b32"), self.predicate())],
            _ => self.exchange_in_warp(mask),
        }
    }

    /// A shuffle whose distance, segments and bound each lane has in registers. A lane that would
    /// read one that is not here keeps its own value.
    fn shuffle_by_registers(&mut self, scope: &Scope, mask: &str) -> Vec<String> {
        let (d, a, p) = (self.dst("b32"), self.reg(scope, "b32"), self.predicate());
        let mode = self.random.pick(&["up", "down", "bfly", "idx"]);
        let distance = match self.random.below(3) {
            0 => format!("mov.b32 %t1, {};", self.random.below(40)),
            1 if !scope.in_function => format!("mov.b32 %t1, %u{};", self.random.below(4)),
            _ => format!("mov.b32 %t1, {};", self.reg(scope, "b32")),
        };
        let bounds = match self.random.below(4) {
            0 => format!("mov.b32 %t2, {};", self.reg(scope, "b32")),
            1 => format!("and.b32 %t2, {}, 7967;", self.reg(scope, "b32")),
            // Segments of the same size in all lanes, or of a size that lanes choose.
            2 => {
                let shift = self.random.below(5);
                let clamp = if mode == "up" { 0 } else { 31 };
                format!(
                    "shl.b32 %t2, 31, {};\n    and.b32 %t2, %t2, 7936;\n    or.b32 %t2, %t2, {clamp};",
                    8 + shift
                )
            }
            _ => {
                let clamp = if mode == "up" { 0 } else { 31 };
                format!(
                    "and.b32 %t2, {}, 3;\n    add.u32 %t2, %t2, 8;\n    shl.b32 %t2, 31, %t2;\n    or.b32 %t2, %t2, {clamp};",
                    self.reg(scope, "b32")
                )
            }
        };
        let source = match mode {
            "up" => "sub.u32 %t1, %lane, %t1;",
            "down" => "add.u32 %t1, %lane, %t1;",
            "bfly" => "xor.b32 %t1, %lane, %t1;",
            _ => {
                "not.b32 %entry, %row;\n    and.b32 %t1, %t1, %entry;\n    and.b32 %entry, %lane, %row;\n    or.b32 %t1, %t1, %entry;"
            }
        };
        vec![
            format!("mov.b32 %t3, {a};\n    {distance}\n    {bounds}"),
            format!("shfl.sync.{mode}.b32 %t0|%tq, %t3, %t1, %t2, {mask};"),
            format!("and.b32 %t1, %t1, 31;\n    bfe.u32 %row, %t2, 8, 5;\n    {source}"),
            format!("and.b32 %t1, %t1, 31;\n    shr.u32 %t1, {mask}, %t1;\n    and.b32 %t1, %t1, 1;"),
            format!("setp.ne.and.u32 {p}, %t1, 0, %tq;"),
            format!("selp.b32 {d}, %t0, %t3, {p};"),
        ]
    }

    /// A sum or an extremum over all lanes of the warp, step by step or in a loop.
    fn warp_tree(&mut self) -> Vec<String> {
        let mode = self.random.pick(&["bfly", "down", "bfly", "up"]);
        let clamp = if mode == "up" { 0 } else { 31 };
        let float = self.random.one_in(3);
        let number = self.random.below(8);
        let (x, step) = match float {
            true => {
                let op = self.random.pick(&["add.f32", "max.f32", "fma.rn.f32"]);
                let third = if op.starts_with("fma") {
                    format!(", %f{}", self.random.below(8))
                } else {
                    String::new()
                };
                (
                    format!("%f{number}"),
                    format!(
                        "mov.b32 %f{0}, %t0;\n    {op} %f{number}, %f{number}, %f{0}{third};",
                        (number + 1) % 8
                    ),
                )
            }
            false => {
                let op = self.random.pick(&["add.u32", "min.s32", "max.u32", "xor.b32", "mul.lo.u32"]);
                (format!("%r{number}"), format!("{op} %r{number}, %r{number}, %t0;"))
            }
        };
        let shuffle =
            |distance: &str| format!("shfl.sync.{mode}.b32 %t0, {x}, {distance}, {clamp}, -1;\n    {step}");
        if self.random.one_in(2) {
            let mut distances = [16, 8, 4, 2, 1];
            if self.random.one_in(3) {
                distances.reverse();
            }
            return distances.iter().map(|distance| shuffle(&distance.to_string())).collect();
        }
        let label = self.fresh();
        vec![
            format!("mov.u32 %t3, 16;\nT{label}:\n    {}", shuffle("%t3")),
            format!("shr.u32 %t3, %t3, 1;\n    setp.ne.u32 %tq, %t3, 0;\n    @%tq bra T{label};"),
        ]
    }

    /// Sums of the lanes up to each.
    fn warp_scan(&mut self) -> Vec<String> {
        let number = self.random.below(12);
        let mut lines = Vec::new();
        for step in 0..5 {
            let distance = 1 << step;
            lines.push(format!("shfl.sync.up.b32 %t0|%tq, %r{number}, {distance}, 0, -1;"));
            lines.push(match self.random.below(3) {
                0 => format!("@%tq add.u32 %r{number}, %r{number}, %t0;"),
                1 => format!(
                    "setp.ge.u32 %tg, %lane, {distance};\n    selp.b32 %t0, %t0, 0, %tg;\n    add.u32 %r{number}, %r{number}, %t0;"
                ),
                _ => format!("selp.b32 %t0, %t0, 0, %tq;\n    add.u32 %r{number}, %r{number}, %t0;"),
            });
        }
        lines
    }

    /// The number of lanes before each for which something holds.
    fn prefix(&mut self, mask: &str) -> Vec<String> {
        let (p, d) = (self.predicate(), self.dst("b32"));
        let before = self.random.pick(&["%lanemask_lt", "%lanemask_le", "%lanemask_gt"]);
        vec![
            format!("vote.sync.ballot.b32 %t0, {p}, {mask};\n    mov.u32 %t1, {before};"),
            format!("and.b32 %t0, %t0, %t1;\n    popc.b32 {d}, %t0;"),
        ]
    }

    /// A question for the lanes that run here together, and maybe something among them. Machines
    /// decide which these are. These engines decide alike, unless lanes take turns.
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
}
