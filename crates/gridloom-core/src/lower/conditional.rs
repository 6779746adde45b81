//! Conditionals that the host decides: which body runs next, and when a loop ends.

use crate::error::Result;
use crate::op::{ConditionalForm, ConditionalOp, Test};

/// What decides a conditional, besides the tested value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionalRule {
    form: ConditionalForm,
    /// Whether a loop is tested before its first pass.
    test_first: bool,
    /// Whether a value is tested at all. Otherwise the limit is the count.
    tested: bool,
    /// The largest number of passes.
    limit: u64,
}

/// The bodies of a conditional, as a backend runs them.
pub trait Bodies {
    /// Returns the value that decides, as left by everything that ran before.
    fn test(&mut self) -> Result<u32>;

    /// Runs a body, by its index.
    fn run(&mut self, body: usize) -> Result<()>;

    /// Takes note of the number of bodies that this execution of the conditional has run so far:
    /// 0 when it starts, then the number after each body.
    fn passed(&mut self, passes: u64);
}

impl ConditionalRule {
    /// Returns the rule of a conditional node.
    pub fn new(op: &ConditionalOp) -> Self {
        let limit = op.max_passes.unwrap_or(u64::MAX);
        let (tested, limit) = match op.test {
            Test::Count(count) => (false, limit.min(count)),
            Test::Condition(_) | Test::Value(_) => (true, limit),
        };
        ConditionalRule { form: op.form, test_first: op.test_first, tested, limit }
    }

    /// Returns whether the decision needs the tested value.
    pub fn reads_value(&self) -> bool {
        self.tested
    }

    /// Runs a conditional that has this many bodies to its end, or until a body fails.
    #[inline]
    pub fn run(&self, count: usize, bodies: &mut impl Bodies) -> Result<()> {
        bodies.passed(0);
        let body = match self.form {
            ConditionalForm::While => return self.repeat(bodies),
            // An `if` has no second body.
            ConditionalForm::If | ConditionalForm::IfElse => usize::from(bodies.test()? == 0),
            ConditionalForm::Switch => bodies.test()? as usize,
        };
        if body < count {
            bodies.run(body)?;
            bodies.passed(1);
        }
        Ok(())
    }

    #[inline]
    fn repeat(&self, bodies: &mut impl Bodies) -> Result<()> {
        let mut passes = 0;
        while passes < self.limit {
            let tests = self.tested && (passes > 0 || self.test_first);
            if tests && bodies.test()? == 0 {
                break;
            }
            bodies.run(0)?;
            passes += 1;
            bodies.passed(passes);
        }
        Ok(())
    }
}
