//! Programs whose registers change between statements, to test that each statement stands on its
//! own.

use super::program::{Program, Statement};
use super::renaming::TEMPORARIES;
use crate::support::Random;

/// The most that is put between statements of one program, so that long ones stay quick.
const DISTURBANCES: u32 = 100;

/// Returns the program with other values put into registers before its statements: into those that
/// it computes with, into those that hold the same in all threads, and into temporary ones.
pub(crate) fn disturbed(mut program: Program, seed: u64) -> Program {
    let mut disturber = Disturber { random: Random::new(seed), left: DISTURBANCES };
    program.body = disturber.statements(program.body, true);
    for function in &mut program.functions {
        function.body = disturber.statements(std::mem::take(&mut function.body), false);
    }
    program
}

struct Disturber {
    random: Random,
    left: u32,
}

impl Disturber {
    /// Registers that hold the same in all threads change only where `everyone` comes.
    fn statements(&mut self, statements: Vec<Statement>, everyone: bool) -> Vec<Statement> {
        let mut all = Vec::new();
        for mut statement in statements {
            match &mut statement {
                Statement::If(parts) => {
                    parts.then = self.statements(std::mem::take(&mut parts.then), false);
                    parts.otherwise = self.statements(std::mem::take(&mut parts.otherwise), false);
                }
                Statement::Loop(parts) => {
                    parts.body = self.statements(std::mem::take(&mut parts.body), false);
                }
                Statement::Switch(parts) => {
                    for case in &mut parts.cases {
                        *case = self.statements(std::mem::take(case), false);
                    }
                }
                _ => {}
            }
            if !matches!(statement, Statement::Output(_)) && self.left > 0 {
                self.left -= 1;
                all.push(Statement::Code(self.lines(everyone)));
            }
            all.push(statement);
        }
        all
    }

    /// Sets registers to values that are far outside of all memory when used as an address or an
    /// index.
    fn lines(&mut self, everyone: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if everyone {
            let value = self.value();
            lines.extend((0..4).map(|index| format!("mov.b32 %u{index}, {value};")));
        }
        let (value, word) = (self.random.below(12), self.value());
        lines.push(format!("mov.b32 %r{value}, {word};"));
        lines.push(format!("mov.b64 %rd{}, 0x{:016x};", self.random.below(8), self.random.u64()));
        lines.push(format!("setp.ne.u32 %p{}, {word}, 0;", self.random.below(6)));
        lines.extend(TEMPORARIES.iter().map(|(name, ty)| match *ty {
            "pred" => format!("setp.ne.u32 {name}, {word}, 1;"),
            "b64" => format!("mov.b64 {name}, 0x7fffffffffffff00;"),
            _ => format!("mov.b32 {name}, {word};"),
        }));
        lines
    }

    fn value(&mut self) -> String {
        let random = self.random.u32();
        format!("0x{:08x}", self.random.pick(&[0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, random]))
    }
}
