//! Rows: words of neighbouring threads next to each other in memory, loaded, computed with and
//! stored in any order, with everything between a load and its use that a load must not be moved
//! past.

use super::generate::{Generator, Scope, Together};
use super::program::COLUMNS;

impl Generator {
    /// Loads of several rows, and arithmetic with them. In between: stores to where they were
    /// loaded from and to other places, atomic operations, fences, barriers behind which neighbours
    /// write what was read, and branches around some of it.
    pub(crate) fn rows(&mut self, scope: &Scope) -> Vec<String> {
        let meet = scope.together == Together::Block && self.features.barriers;
        // Words of neighbours are read between two barriers, and nothing is written there.
        let (mut reading, mut around) = (false, None::<(u32, usize)>);
        let mut lines = Vec::new();
        for _ in 0..4 + self.random.below(16) {
            match &mut around {
                Some((label, 0)) => {
                    lines.push(format!("B{label}:"));
                    around = None;
                }
                Some((_, left)) => *left -= 1,
                None => {}
            }
            match self.random.below(20) {
                0..=6 => self.load_row(reading, &mut lines),
                7..=9 if !reading => lines.push(self.store_row(&lines)),
                10 if !reading && !self.features.wide => lines.push(self.atomic_row()),
                11 => lines.push(
                    self.random.pick(&["membar.cta;", "fence.sc.gpu;", "fence.acq_rel.cta;"]).to_owned(),
                ),
                12 | 13 if meet && around.is_none() => {
                    reading = self.alone && !reading;
                    lines.push("bar.sync 0;".into());
                }
                14 if around.is_none() => {
                    let label = self.fresh();
                    lines.push(match self.random.below(3) {
                        0 => {
                            let bound = self.random.below(self.threads as usize + 1);
                            format!("setp.lt.u32 %tq, %linear, {bound};\n    @%tq bra B{label};")
                        }
                        1 => format!(
                            "and.b32 %t0, %u{}, 1;\n    setp.ne.u32 %tq, %t0, 0;\n    @%tq bra.uni B{label};",
                            self.random.below(4)
                        ),
                        _ => format!("@%p0 bra B{label};"),
                    });
                    around = Some((label, self.random.below(5)));
                }
                _ => lines.push(self.compute_rows()),
            }
        }
        if let Some((label, _)) = around {
            lines.push(format!("B{label}:"));
        }
        if reading {
            lines.push("bar.sync 0;".into());
        }
        lines
    }

    /// A register, of one kind: of few, so that most are used twice or overwritten.
    fn one_of_few(&mut self) -> usize {
        self.random.below(if self.features.wide { 3 } else { 4 })
    }

    fn guard_or_none(&mut self) -> String {
        match self.features.wide {
            true if self.random.one_in(8) => self.random.pick(&["@%p0 ", "@!%p0 "]).to_owned(),
            false if self.random.one_in(4) => self.guard(),
            _ => String::new(),
        }
    }

    /// A register for a word, and its type.
    fn word_of_row(&mut self) -> (&'static str, String) {
        let which = self.one_of_few();
        match self.random.below(4) {
            0 if !self.features.wide => (self.random.pick(&["u32", "s32", "b32"]), format!("%r{which}")),
            _ => ("f32", format!("%f{which}")),
        }
    }

    /// A load of the thread's own word, of one that all threads only read, or of a neighbour's.
    fn load_row(&mut self, reading: bool, lines: &mut Vec<String>) {
        let (ty, register) = self.word_of_row();
        let guard = self.guard_or_none();
        if self.random.one_in(3) {
            let cache = self.random.pick(&["", "", ".nc"]);
            let start = 4 * self.random.below(32);
            lines.push("mad.wide.u32 %across, %linear, 4, %in;".into());
            lines.push(format!("{guard}ld.global{cache}.{ty} {register}, [%across+{start}];"));
        } else if reading {
            // The last thread's neighbour is the first of the next column.
            let (column, away) = (self.random.below(COLUMNS as usize - 1), 4 * self.random.below(2));
            lines.push(format!("add.u64 %near{away}, %column, {away};"));
            lines.push(format!("{guard}ld.global.{ty} {register}, [%near{away}+COLUMN{column}];"));
        } else {
            let order = self.random.pick(&["", "", "", "", ".volatile", ".relaxed.gpu", ".acquire.gpu"]);
            let column = self.random.below(COLUMNS as usize);
            lines.push(format!("{guard}ld{order}.global.{ty} {register}, [%column+COLUMN{column}];"));
        }
    }

    /// A store of a word: often of one that was loaded just now, so that nothing has to be computed
    /// for it.
    fn store_row(&mut self, before: &[String]) -> String {
        let guard = self.guard_or_none();
        let recent = || before.iter().rev().take(3);
        let column = match recent().find_map(|line| line.split_once("%column+COLUMN")?.1.split_once(']')) {
            Some((column, _)) if self.random.one_in(2) => column.to_owned(),
            _ => self.random.below(COLUMNS as usize).to_string(),
        };
        let loaded = recent().find_map(|line| line.strip_prefix("ld.")?.split([' ', ',']).nth(1));
        let (ty, register) = match (loaded, self.random.below(4)) {
            (Some(loaded), 0 | 1) => ("b32", loaded.to_owned()),
            (_, 2) => ("u32", "%linear".to_owned()),
            _ => self.word_of_row(),
        };
        let part = match ty {
            ty if register.starts_with("%f") || self.features.wide => ty,
            ty => self.random.pick(&[ty, ty, "u8", "u16"]),
        };
        format!("{guard}st.global.{part} [%column+COLUMN{column}], {register};")
    }

    fn atomic_row(&mut self) -> String {
        let (guard, column) = (self.guard_or_none(), self.random.below(COLUMNS as usize));
        let (old, value) = (self.one_of_few(), self.one_of_few());
        match self.random.below(3) {
            0 => format!("{guard}atom.global.add.u32 %r{old}, [%column+COLUMN{column}], %r{value};"),
            1 => format!("{guard}red.global.xor.b32 [%column+COLUMN{column}], %r{value};"),
            _ => format!("{guard}atom.global.add.f32 %f{old}, [%column+COLUMN{column}], %f{value};"),
        }
    }

    fn compute_rows(&mut self) -> String {
        let guard = self.guard_or_none();
        let [d, a, b, c] = [(); 4].map(|()| self.one_of_few());
        match self.random.below(if self.features.wide { 6 } else { 10 }) {
            0..=3 => {
                let ops: &[&str] = match self.features.wide {
                    true => &["add", "sub", "mul"],
                    false => &["add", "sub", "mul", "add.ftz", "min", "max"],
                };
                let op = self.random.pick(ops);
                format!("{guard}{op}.f32 %f{d}, %f{a}, %f{b};")
            }
            4 | 5 => format!("{guard}fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{c};"),
            6 => format!("{guard}{}.b32 %r{d}, %r{a}, %r{b};", self.random.pick(&["xor", "and", "or"])),
            7 => format!("{guard}{}.s32 %r{d}, %r{a}, %r{b};", self.random.pick(&["add", "sub", "mul.lo"])),
            8 => format!("setp.{}.f32 %p{d}, %f{a}, %f{b};", self.random.pick(&["lt", "ge", "nan"])),
            _ => match self.random.below(3) {
                0 => format!("{guard}mov.b32 %r{d}, %f{a};"),
                1 => format!("{guard}mov.b32 %f{d}, %r{a};"),
                _ => format!("selp.f32 %f{d}, %f{a}, %f{b}, %p{c};"),
            },
        }
    }
}
