//! The definition and the meaning of a random program.

use crate::support::Random;

/// How many integers programs work on.
pub(crate) const CELLS: usize = 6;

/// One of the integers.
pub(crate) type Cell = usize;

/// A line of work within one scope. 0 is the scope's own; others come into being by [`Step::Sync`]
/// and [`Step::Fork`].
pub(crate) type Lane = usize;

/// Steps of one scope: the whole program, or one body of a conditional.
///
/// Steps that touch the same cell are ordered by their lanes and by synchronisation, in the order
/// of the list. So the list, read from front to back, says what the program does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program(pub(crate) Vec<Step>);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `out = a * x + b`
    Affine {
        lane: Lane,
        out: Cell,
        x: Cell,
        a: i32,
        b: i32,
    },
    /// `out = 31 * out + x`
    Mix {
        lane: Lane,
        out: Cell,
        x: Cell,
    },
    Fill {
        lane: Lane,
        cell: Cell,
        value: i32,
    },
    Copy {
        lane: Lane,
        to: Cell,
        from: Cell,
    },
    /// Adds to a count on the host.
    Call {
        lane: Lane,
        by: u32,
    },
    /// An event recorded in one lane and waited for in another, which a stream begins where it is
    /// new.
    Sync {
        from: Lane,
        to: Lane,
    },
    /// New lanes that branch off.
    Fork {
        lane: Lane,
        branches: Vec<Lane>,
    },
    Join {
        lane: Lane,
        branches: Vec<Lane>,
    },
    Conditional {
        lane: Lane,
        form: Form,
        tested: Cell,
        bodies: Vec<Program>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    If,
    IfElse,
    Switch,
    While,
    DoWhile,
    Repeat(u64),
}

/// What programs change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) cells: [i32; CELLS],
    pub(crate) calls: u32,
}

impl State {
    pub(crate) fn random(random: &mut Random) -> Self {
        State { cells: std::array::from_fn(|_| random.i32()), calls: 0 }
    }
}

impl Program {
    /// The meaning of the program.
    pub(crate) fn run(&self, state: &mut State) {
        for step in &self.0 {
            step.run(state);
        }
    }
}

impl Step {
    fn run(&self, state: &mut State) {
        let cells = &mut state.cells;
        match *self {
            Step::Affine { out, x, a, b, .. } => cells[out] = a.wrapping_mul(cells[x]).wrapping_add(b),
            Step::Mix { out, x, .. } => cells[out] = cells[out].wrapping_mul(31).wrapping_add(cells[x]),
            Step::Fill { cell, value, .. } => cells[cell] = value,
            Step::Copy { to, from, .. } => cells[to] = cells[from],
            Step::Call { by, .. } => state.calls += by,
            Step::Sync { .. } | Step::Fork { .. } | Step::Join { .. } => {}
            Step::Conditional { form, tested, ref bodies, .. } => match form {
                Form::Repeat(passes) => (0..passes).for_each(|_| bodies[0].run(state)),
                Form::While | Form::DoWhile => {
                    let mut first = form == Form::DoWhile;
                    while std::mem::take(&mut first) || state.cells[tested] != 0 {
                        bodies[0].run(state);
                    }
                }
                Form::If | Form::IfElse | Form::Switch => {
                    if let Some(body) = form.chosen(state.cells[tested]).and_then(|chosen| bodies.get(chosen))
                    {
                        body.run(state);
                    }
                }
            },
        }
    }
}

impl Form {
    /// Returns which body of a branch a value chooses; there may be none of that number.
    pub(crate) fn chosen(self, value: i32) -> Option<usize> {
        match self {
            Form::Switch => usize::try_from(value).ok(),
            _ => Some(usize::from(value == 0)),
        }
    }
}
