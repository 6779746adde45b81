//! Random programs from a seed: what statements there are, and where each may stand.
//!
//! They end, have no data races, and every value they compute is one that PTX defines:
//!
//! - a thread writes memory of its own only, or memory that all threads change by operations whose
//!   order does not matter;
//! - what threads tell each other goes through barriers, or shuffles among the lanes of a mask;
//! - masks name exactly the lanes that come there: a branch where lanes part counts its two sides
//!   first, with a vote;
//! - loops count, and nothing else changes their counters.

use super::print::print;
use super::program::{
    COUNTERS, FILES, Function, INPUT_WORDS, If, Join, Loop, Masks, OWN_BYTES, Output, Program, Statement,
    Switch, TABLE_WORDS, mentions,
};
use super::renaming::renamed;
use crate::support::Random;

/// Who is sure to be at the same statement together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Together {
    /// A thread by itself.
    Lane,
    /// All live threads of a warp.
    Warp,
    /// All live threads of the block.
    Block,
}

/// Where a statement stands.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) together: Together,
    /// The register with the mask of the lanes that are here, where they are known.
    pub(crate) mask: Option<String>,
    pub(crate) depth: u32,
    pub(crate) in_function: bool,
    /// Loops around it, whose counters may be read.
    pub(crate) loops: Vec<u32>,
    /// Whether the innermost loop may be left from here.
    pub(crate) may_break: bool,
}

/// What a program is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Warp operations; lanes then never leave early from where others would wait for them.
    pub(crate) warps: bool,
    pub(crate) barriers: bool,
    pub(crate) memory: bool,
    pub(crate) branches: bool,
    pub(crate) functions: bool,
    pub(crate) floats: bool,
    /// Instructions whose exact result PTX leaves to the machine.
    pub(crate) approximations: bool,
    pub(crate) exits: bool,
    /// Nearly all memory is rows.
    pub(crate) rows: bool,
    /// Rows of whole words in few registers, so that groups are as large as they get.
    pub(crate) wide: bool,
}

pub(crate) struct Generator {
    pub(crate) random: Random,
    pub(crate) features: Features,
    pub(crate) threads: u32,
    /// Whether rows of the block are whole warps.
    pub(crate) whole_warps: bool,
    /// Whether there is only one block.
    pub(crate) alone: bool,
    /// Whether there are so few statements that no warp runs long enough for its lanes to take
    /// turns.
    pub(crate) is_short: bool,
    /// Functions there are already, which can be called: whether lanes meet in each.
    pub(crate) callable: Vec<bool>,
    names: u32,
    budget: u32,
}

const BLOCKS: [[u32; 3]; 26] = [
    [1, 1, 1],
    [7, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [40, 1, 1],
    [64, 1, 1],
    [64, 1, 1],
    [65, 1, 1],
    [96, 1, 1],
    [100, 1, 1],
    [48, 1, 1],
    [128, 1, 1],
    [160, 1, 1],
    [256, 1, 1],
    [16, 16, 1],
    [12, 12, 1],
    [8, 8, 2],
    [4, 16, 1],
    [8, 5, 1],
    [16, 3, 1],
    [32, 2, 1],
    [5, 7, 1],
    [3, 4, 5],
    [2, 3, 11],
];
/// Few programs have such blocks, because the reference is slow.
const LARGE_BLOCKS: [[u32; 3]; 4] = [[512, 1, 1], [32, 16, 1], [500, 1, 1], [8, 8, 8]];
/// Enough threads, beside the largest blocks, that it matters whether they run one after the other.
const LARGE_GRIDS: [[u32; 3]; 3] = [[20, 1, 1], [5, 4, 1], [3, 1, 7]];
/// Blocks whose rows are whole groups of 16 or 32.
const WIDE_BLOCKS: [[u32; 3]; 5] = [[32, 1, 1], [64, 1, 1], [96, 1, 1], [32, 3, 1], [16, 4, 1]];
const GRIDS: [[u32; 3]; 6] = [[1, 1, 1], [1, 1, 1], [2, 1, 1], [3, 1, 1], [2, 2, 1], [1, 2, 2]];

impl Program {
    /// The program of a seed. Without `approximations` every bit of its results is defined.
    pub(crate) fn random(seed: u64, approximations: bool) -> Self {
        let mut random = Random::new(seed);
        let block = random.pick(&BLOCKS);
        let grid = random.pick(&GRIDS);
        let rows = random.one_in(3);
        let block = if rows && !random.one_in(4) { random.pick(&WIDE_BLOCKS) } else { block };
        let size = random.below(200);
        let block = if size < 3 && !rows { random.pick(&LARGE_BLOCKS) } else { block };
        let grid = if size == 0 && !rows { random.pick(&LARGE_GRIDS) } else { grid };
        let features = Features {
            warps: random.below(5) < 2 && !rows,
            barriers: random.below(5) < 2,
            memory: random.below(4) < 3 || rows,
            branches: random.below(4) < 3,
            functions: random.one_in(4) && !rows,
            floats: random.below(4) < 3,
            approximations,
            exits: random.one_in(3),
            rows,
            wide: rows && random.one_in(2),
        };
        let input = random.vec(INPUT_WORDS as usize, word);
        let table = random.vec(TABLE_WORDS as usize, word);
        let (dynamic, n) = (random.one_in(3), random.below(9) as u32);
        let (x, z) = (u64::from(word(&mut random)) << 32 | u64::from(word(&mut random)), word(&mut random));
        let mut generator = Generator {
            random,
            features,
            threads: block.iter().product(),
            whole_warps: block[0].is_multiple_of(32),
            alone: grid == [1, 1, 1],
            is_short: true,
            callable: Vec::new(),
            names: 0,
            budget: 0,
        };
        let functions = generator.functions();
        // Mostly small: a hundred small ones find more than ten large ones, and sooner.
        let most = match generator.random.below(40) {
            _ if size < 3 => 12,
            // Longer than what is analysed in every way.
            0 => 400,
            1..=4 => 60,
            _ => 18,
        };
        let (least, most) = match (rows, most) {
            (true, 400) => (1, 40),
            (true, _) => (1, 4),
            (false, most) => (3, most),
        };
        generator.is_short = most < 60;
        generator.budget = least + generator.random.below(most) as u32;
        let body = generator.kernel();
        let then = generator.smaller(block, &print(&body));
        Program { grid, block, then, dynamic, columnar: rows, input, table, n, x, z, functions, body }
    }
}

/// Bits that instructions find interesting, as integers or as floats of 16, 32 or 64 bits.
fn word(random: &mut Random) -> u32 {
    const WORDS: [u32; 24] = [
        0,
        1,
        2,
        31,
        32,
        0xff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0xffff_8000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0x0000_0001,
        0x0080_0000,
        0x007f_ffff,
        0x7f7f_ffff,
        0x3c00_7c00,
        0x7bff_0001,
        0x4b00_0000,
        0x3fe0_0000,
    ];
    match random.below(6) {
        0 | 1 => random.pick(&WORDS),
        2 => (random.f64(-100.0, 100.0) as f32).to_bits(),
        3 => ((random.f64(-1e9, 1e9)).to_bits() >> 32) as u32,
        4 => u32::from_le_bytes([random.u32() as u8, 0, random.u32() as u8, 0]),
        _ => random.u32(),
    }
}

impl Generator {
    /// A number for registers that one statement introduces.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    /// Blocks of a second launch, whose threads are at most those of the first, unless barriers
    /// count them. Whole warps stay whole.
    fn smaller(&mut self, [x, y, z]: [u32; 3], text: &str) -> Option<[u32; 3]> {
        let counts =
            ["bar.sync 1,", "bar.sync 2,", "bar.arrive"].iter().any(|counting| text.contains(counting));
        if counts || !self.random.one_in(4) {
            return None;
        }
        let unit = if (x * y * z).is_multiple_of(32) { 32 } else { 1 };
        let rows = if x.is_multiple_of(unit) { x / unit } else { return None };
        let rows = 1 + self.random.below(rows as usize) as u32;
        Some([
            unit * rows,
            1 + self.random.below(y as usize) as u32,
            1 + self.random.below(z as usize) as u32,
        ])
    }

    fn functions(&mut self) -> Vec<Function> {
        let count = if self.features.functions { 1 + self.random.below(3) } else { 0 };
        (0..count)
            .map(|_| {
                let meets = self.features.warps && self.random.one_in(3);
                let recursive = !meets && self.random.one_in(4);
                let scope = Scope {
                    together: Together::Lane,
                    mask: meets.then(|| "%m0".to_owned()),
                    depth: 1,
                    in_function: true,
                    loops: Vec::new(),
                    may_break: false,
                };
                self.budget = 3 + self.random.below(12) as u32;
                let body = self.block(&scope);
                self.callable.push(meets);
                Function { body, recursive }
            })
            .collect()
    }

    fn kernel(&mut self) -> Vec<Statement> {
        let scope = Scope {
            together: Together::Block,
            mask: self.features.warps.then(|| "%m0".to_owned()),
            depth: 0,
            in_function: false,
            loops: Vec::new(),
            may_break: false,
        };
        let mut body = Vec::new();
        if self.features.exits && self.random.one_in(3) {
            // What most kernels start with.
            let last = self.random.below(self.threads as usize + 1);
            let mut lines = vec![format!("setp.ge.u32 %tq, %linear, {last};")];
            lines.extend(self.leave(&scope, "%tq"));
            body.push(Statement::Code(lines));
        }
        while self.budget > 0 {
            body.extend(self.block(&scope));
        }
        // Whatever the program touched shows.
        let text = print(&body);
        for (number, file) in FILES.iter().enumerate() {
            let touched = (0..file.size).filter(|index| mentions(&text, &format!("{}{index}", file.prefix)));
            body.extend(touched.map(|index| Statement::Output(Output::Register { file: number, index })));
        }
        for (place, space) in [("%own", "shared"), ("stack", "local")] {
            if mentions(&text, place) {
                let words = (0..OWN_BYTES).step_by(8);
                body.extend(words.map(|offset| Statement::Output(Output::Memory { place, space, offset })));
            }
        }
        // The second half counts bytes; see `bytes_counted`.
        let counts_bytes = text.contains("tally") && text.contains("%byte");
        let counted = (0..COUNTERS).filter(|&index| match index {
            8..16 => counts_bytes,
            _ => text.contains(&format!("[tally+{}]", 8 * index)),
        });
        body.extend(counted.map(|index| Statement::Output(Output::Counter(index))));
        body
    }

    /// Some statements for a place.
    fn block(&mut self, scope: &Scope) -> Vec<Statement> {
        let count = 1 + self.random.below(8);
        let mut statements = Vec::new();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let statement = self.statement(scope);
            statements.push(statement);
        }
        statements
    }

    fn statement(&mut self, scope: &Scope) -> Statement {
        match self.plain_statement(scope) {
            // As compilers name registers, and as people do.
            Statement::Code(lines) if !self.random.one_in(4) => {
                let (number, each) = (self.fresh(), self.random.below(3) < 2);
                Statement::Code(renamed(&lines, number, each))
            }
            statement => statement,
        }
    }

    fn plain_statement(&mut self, scope: &Scope) -> Statement {
        for _ in 0..4 {
            let made = match self.random.below(20) {
                0 | 1 if self.features.branches && scope.depth < 4 => Some(self.if_else(scope)),
                2 if self.features.branches && scope.depth < 3 => Some(self.repeat(scope)),
                3 if self.features.branches && scope.depth < 3 => Some(self.switch(scope)),
                4 if self.features.branches => self.jump(scope),
                5 | 6 if self.features.rows && self.features.barriers => self.barrier(scope),
                7..=19 if self.features.rows => Some(Statement::Code(self.rows(scope))),
                5..=8 if self.features.memory => Some(Statement::Code(self.memory(scope))),
                9 | 10 if self.features.warps => self.warp(scope).map(Statement::Code),
                11 if self.features.barriers => self.barrier(scope),
                12 if self.features.functions => self.call(scope).map(Statement::Code),
                _ => None,
            };
            if let Some(statement) = made {
                return statement;
            }
        }
        Statement::Code(if self.features.wide { self.rows(scope) } else { self.compute(scope) })
    }

    /// A predicate that holds something by now.
    pub(crate) fn predicate(&mut self) -> String {
        format!("%p{}", self.random.below(6))
    }

    fn condition(&mut self) -> String {
        let predicate = self.predicate();
        if self.random.one_in(3) { format!("!{predicate}") } else { predicate }
    }

    /// A condition that comes out the same for all that are together, and what computes it.
    fn uniform_condition(&mut self, scope: &Scope) -> (Vec<String>, Together) {
        let bit = 1 << self.random.below(3);
        let line = match self.random.below(3) {
            0 if scope.together >= Together::Warp => {
                return (
                    vec![format!("and.b32 %t0, %warp, {bit};"), "setp.ne.u32 %tq, %t0, 0;".into()],
                    Together::Warp,
                );
            }
            1 if scope.mask.is_some() && scope.together >= Together::Warp => {
                let (mode, predicate) = (self.random.pick(&["all", "any", "uni"]), self.condition());
                let mask = scope.mask.clone().unwrap_or_default();
                return (vec![format!("vote.sync.{mode}.pred %tq, {predicate}, {mask};")], Together::Warp);
            }
            _ => format!("and.b32 %t0, %u{}, {bit};", self.random.below(4)),
        };
        (vec![line, "setp.ne.u32 %tq, %t0, 0;".into()], scope.together)
    }

    fn inner(&self, scope: &Scope) -> Scope {
        Scope { depth: scope.depth + 1, ..scope.clone() }
    }

    fn if_else(&mut self, scope: &Scope) -> Statement {
        let uniform = scope.together >= Together::Warp && self.random.one_in(2);
        let with_else = self.random.one_in(2);
        if uniform {
            let (lines, together) = self.uniform_condition(scope);
            let inner = Scope { together: together.min(scope.together), ..self.inner(scope) };
            let then = self.block(&inner);
            let otherwise = if with_else { self.block(&inner) } else { Vec::new() };
            return Statement::If(Box::new(If {
                prelude: lines,
                condition: "%tq".into(),
                also: None,
                uniform: true,
                masks: None,
                then,
                otherwise,
            }));
        }
        let condition = self.condition();
        // Without masks nobody meets inside, however many lanes come along.
        let masks = match &scope.mask {
            Some(outer) if self.random.below(4) < 3 => Some(Masks {
                outer: outer.clone(),
                then: format!("%m{}", self.fresh()),
                otherwise: format!("%m{}", self.fresh()),
            }),
            _ => None,
        };
        let side = |mask: Option<&String>| Scope {
            together: Together::Lane,
            mask: mask.cloned(),
            ..self.inner(scope)
        };
        let (left, right) =
            (side(masks.as_ref().map(|m| &m.then)), side(masks.as_ref().map(|m| &m.otherwise)));
        let then = self.block(&left);
        let otherwise = if with_else { self.block(&right) } else { Vec::new() };
        let also = match masks {
            None if self.random.one_in(3) => {
                Some((self.random.pick(&[Join::And, Join::Or]), self.condition()))
            }
            _ => None,
        };
        Statement::If(Box::new(If {
            prelude: Vec::new(),
            condition,
            also,
            uniform: false,
            masks,
            then,
            otherwise,
        }))
    }

    fn repeat(&mut self, scope: &Scope) -> Statement {
        let number = self.fresh();
        let n = format!("%n{number}");
        let uniform = scope.together >= Together::Warp && self.random.one_in(2);
        let most = self.random.pick(&[1, 3, 3, 7]);
        let trips = match uniform {
            true if self.random.one_in(2) => vec![format!("mov.u32 {n}, {most};")],
            true => vec![format!("and.b32 {n}, %u{}, {most};", self.random.below(4))],
            false => vec![format!("and.b32 {n}, %r{}, {most};", self.random.below(12))],
        };
        let masks = match &scope.mask {
            Some(outer) if !uniform && self.random.below(4) < 3 => {
                Some((outer.clone(), format!("%m{}", self.fresh())))
            }
            _ => None,
        };
        let mut inner = self.inner(scope);
        inner.loops.push(number);
        if !uniform {
            inner.together = Together::Lane;
            inner.mask = masks.as_ref().map(|(_, mask)| mask.clone());
        }
        // Leaving a loop early changes who is in it; only where nobody is counted.
        inner.may_break = inner.mask.is_none() && inner.together == Together::Lane;
        let at_least_once = self.random.one_in(2);
        let body = self.block(&inner);
        Statement::Loop(Box::new(Loop { number, trips, uniform, at_least_once, masks, body }))
    }

    fn switch(&mut self, scope: &Scope) -> Statement {
        let uniform = scope.together >= Together::Warp && self.random.one_in(3);
        let count = 2 + self.random.below(3);
        // Threads that have parted may all take one case too.
        let value = match uniform || !scope.in_function && self.random.one_in(4) {
            true => format!("%u{}", self.random.below(4)),
            false => format!("%r{}", self.random.below(12)),
        };
        let index = match count.is_power_of_two() {
            true => format!("and.b32 %index, {value}, {};", count - 1),
            false => format!("rem.u32 %index, {value}, {count};"),
        };
        let masks = match &scope.mask {
            Some(outer) if !uniform => Some((outer.clone(), format!("%m{}", self.fresh()))),
            _ => None,
        };
        // Who does not take the branch goes on behind the cases.
        let guard = (!uniform && masks.is_none() && self.random.one_in(4)).then(|| self.condition());
        let mut inner = self.inner(scope);
        if !uniform {
            inner.together = Together::Lane;
            inner.mask = masks.as_ref().map(|(_, mask)| mask.clone());
        }
        let cases = (0..count).map(|_| self.block(&inner)).collect();
        Statement::Switch(Box::new(Switch { index: vec![index], guard, uniform, masks, cases }))
    }

    /// Leaves a loop, or the kernel.
    fn jump(&mut self, scope: &Scope) -> Option<Statement> {
        let condition = self.condition();
        if scope.may_break && self.random.one_in(2) {
            return Some(match self.random.one_in(2) {
                true => Statement::Break(condition),
                false => Statement::Continue(condition),
            });
        }
        // Where lanes meet, only those leave that nobody counts on: at the top, where the mask can
        // be corrected.
        let may = self.features.exits && (!self.features.warps || scope.depth == 0) && !scope.in_function;
        (may && self.random.one_in(3)).then(|| Statement::Code(self.leave(scope, &condition)))
    }

    fn leave(&mut self, scope: &Scope, condition: &str) -> Vec<String> {
        let how = self.random.pick(&["exit", "ret"]);
        let mut lines = Vec::new();
        if let Some(mask) = &scope.mask {
            lines.push(format!("vote.sync.ballot.b32 %t0, {condition}, {mask};"));
        }
        lines.push(format!("@{condition} {how};"));
        if let Some(mask) = &scope.mask {
            lines.push(format!("not.b32 %t0, %t0;\n    and.b32 {mask}, {mask}, %t0;"));
        }
        lines
    }

    fn call(&mut self, scope: &Scope) -> Option<Vec<String>> {
        if self.callable.is_empty() {
            return None;
        }
        let function = self.random.below(self.callable.len());
        let meets = self.callable[function];
        if meets && scope.mask.is_none() {
            return None;
        }
        let plain: Vec<usize> = (0..self.callable.len()).filter(|&other| !self.callable[other]).collect();
        let mut lines = Vec::new();
        let indirect = !meets && self.random.one_in(3);
        if indirect {
            let (one, other) = (self.random.pick(&plain), self.random.pick(&plain));
            lines.push(format!("mov.u64 %td0, f{one};"));
            if one != other {
                let predicate = self.predicate();
                lines.push(format!("mov.u64 %td1, f{other};"));
                lines.push(format!("selp.b64 %td0, %td0, %td1, {predicate};"));
            }
        }
        let mask = scope.mask.clone().unwrap_or_else(|| "0".into());
        let (x, y, z) = (self.random.below(12), self.random.below(8), self.random.below(8));
        let back = self.random.below(12);
        lines.push("{".into());
        lines.push(
            ".param .b64 a0; .param .b64 a1; .param .b32 a2; .param .b32 a3; .param .b64 a4; .param .f32 a5; .param .b32 got;".into(),
        );
        lines.push("st.param.b64 [a0], %mine;".into());
        lines.push("st.param.b64 [a1], %in;".into());
        lines.push(format!("st.param.b32 [a2], {mask};"));
        lines.push(format!("st.param.b32 [a3], %r{x};"));
        lines.push(format!("st.param.b64 [a4], %rd{y};"));
        lines.push(format!("st.param.f32 [a5], %f{z};"));
        lines.push(match indirect {
            true => "call (got), %td0, (a0, a1, a2, a3, a4, a5), proto;".into(),
            false => format!("call (got), f{function}, (a0, a1, a2, a3, a4, a5);"),
        });
        lines.push(format!("ld.param.b32 %r{back}, [got];"));
        lines.push("}".into());
        Some(lines)
    }
}
