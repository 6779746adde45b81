//! Random programs without races.
//!
//! Every cell has one lane that may touch it, its owner. Another lane that wants it synchronises
//! with the owner first, and so becomes the owner.

use std::ops::Range;

use super::program::{CELLS, Cell, Form, Lane, Program, Step};
use crate::support::Random;

/// Streams of a program, the main one among them.
pub(crate) const STREAMS: usize = 5;
const STEPS: usize = 14;
const DEPTH: usize = 2;

pub(crate) fn generate(random: &mut Random) -> Program {
    Scope::new(random, (0..CELLS).collect(), STREAMS - 1, DEPTH).generate(STEPS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has a capture of its own: the scope's lane, and forks.
    Handle,
    /// A stream that came in through an event.
    Stream,
    Joined,
}

struct Scope<'a> {
    random: &'a mut Random,
    steps: Vec<Step>,
    lanes: Vec<Kind>,
    /// The cells of the scope, each with its owner.
    cells: Vec<(Cell, Lane)>,
    /// Streams that no lane uses.
    streams: usize,
    depth: usize,
}

impl<'a> Scope<'a> {
    fn new(random: &'a mut Random, cells: Vec<Cell>, streams: usize, depth: usize) -> Self {
        let cells = cells.into_iter().map(|cell| (cell, 0)).collect();
        Scope { random, steps: Vec::new(), lanes: vec![Kind::Handle], cells, streams, depth }
    }

    fn generate(mut self, steps: usize) -> Program {
        for _ in 0..steps {
            match self.random.below(14) {
                0 => self.call(),
                1 => self.sync(),
                2 | 3 => self.new_stream(),
                4 | 5 => self.fork(),
                6 => self.join(),
                7 | 8 => self.conditional(),
                _ => self.compute(),
            }
        }
        self.come_together();
        Program(self.steps)
    }

    fn lane(&mut self, accept: impl Fn(Kind) -> bool) -> Option<Lane> {
        let lanes: Vec<Lane> = (0..self.lanes.len()).filter(|&lane| accept(self.lanes[lane])).collect();
        (!lanes.is_empty()).then(|| lanes[self.random.below(lanes.len())])
    }

    fn any_lane(&mut self) -> Lane {
        self.lane(|kind| kind != Kind::Joined).expect("the scope's own lane is never joined")
    }

    /// A cell that `lane` may touch from now on.
    fn take(&mut self, lane: Lane) -> Cell {
        let index = self.random.below(self.cells.len());
        let (cell, owner) = self.cells[index];
        if owner != lane {
            self.steps.push(Step::Sync { from: owner, to: lane });
            self.cells[index].1 = lane;
        }
        cell
    }

    fn compute(&mut self) {
        let lane = self.any_lane();
        let (out, x) = (self.take(lane), self.take(lane));
        let small = self.random.between(-4, 4) as i32;
        self.steps.push(match self.random.below(4) {
            0 => Step::Fill { lane, cell: out, value: small },
            1 if out != x => Step::Copy { lane, to: out, from: x },
            2 if out != x => Step::Mix { lane, out, x },
            _ => Step::Affine { lane, out, x, a: small, b: self.random.i32() },
        });
    }

    fn call(&mut self) {
        let lane = self.any_lane();
        self.steps.push(Step::Call { lane, by: 1 + self.random.below(5) as u32 });
    }

    /// Order for its own sake, also of a lane with itself.
    fn sync(&mut self) {
        let (from, to) = (self.any_lane(), self.any_lane());
        self.steps.push(Step::Sync { from, to });
        self.hand_over(from, to..to + 1);
    }

    fn new_stream(&mut self) {
        if self.streams > 0 {
            self.streams -= 1;
            let from = self.any_lane();
            let to = self.lanes.len();
            self.lanes.push(Kind::Stream);
            self.steps.push(Step::Sync { from, to });
            self.hand_over(from, to..to + 1);
        }
    }

    fn fork(&mut self) {
        let branches = 1 + self.random.below(2);
        if branches > self.streams {
            return;
        }
        self.streams -= branches;
        let lane = self.lane(|kind| kind == Kind::Handle).expect("the scope's own lane has a handle");
        let first = self.lanes.len();
        self.lanes.extend(std::iter::repeat_n(Kind::Handle, branches));
        self.steps.push(Step::Fork { lane, branches: (first..first + branches).collect() });
        self.hand_over(lane, first..first + branches);
    }

    /// What `from` had may now be touched by lanes that come after it.
    fn hand_over(&mut self, from: Lane, to: Range<Lane>) {
        for index in 0..self.cells.len() {
            if self.cells[index].1 == from && self.random.one_in(2) {
                self.cells[index].1 = to.start + self.random.below(to.len());
            }
        }
    }

    fn join(&mut self) {
        let Some(lane) = self.lane(|kind| kind == Kind::Handle) else { return };
        let forks = (1..self.lanes.len()).filter(|&fork| fork != lane && self.lanes[fork] == Kind::Handle);
        let branches: Vec<Lane> = forks.collect();
        let branches: Vec<Lane> = branches.into_iter().filter(|_| self.random.one_in(2)).collect();
        self.join_into(lane, branches);
    }

    fn join_into(&mut self, lane: Lane, branches: Vec<Lane>) {
        if branches.is_empty() {
            return;
        }
        for &branch in &branches {
            self.lanes[branch] = Kind::Joined;
            self.streams += 1;
        }
        for (_, owner) in self.cells.iter_mut().filter(|(_, owner)| branches.contains(owner)) {
            *owner = lane;
        }
        self.steps.push(Step::Join { lane, branches });
    }

    fn conditional(&mut self) {
        let Some(lane) = self.lane(|kind| kind == Kind::Handle) else { return };
        let own = |scope: &Self| -> Vec<Cell> {
            scope.cells.iter().filter(|&&(_, owner)| owner == lane).map(|&(cell, _)| cell).collect()
        };
        let mut cells = own(self);
        if self.depth == 0 || cells.len() < 2 {
            return;
        }
        let tested = cells.swap_remove(self.random.below(cells.len()));
        let (form, bodies, values) = match self.random.below(6) {
            0 => (Form::If, 1, 0..=1),
            1 => (Form::IfElse, 2, 0..=1),
            2 => (Form::Switch, 3, -1..=3),
            3 => (Form::While, 1, 0..=3),
            4 => (Form::DoWhile, 1, 1..=3),
            _ => (Form::Repeat(self.random.below(4) as u64), 1, 0..=0),
        };
        let value = self.random.between(*values.start(), *values.end()) as i32;
        self.steps.push(Step::Fill { lane, cell: tested, value });
        let bodies = (0..bodies).map(|_| {
            let steps = self.random.below(6);
            let scope = Scope::new(&mut *self.random, cells.clone(), self.streams, self.depth - 1);
            let mut body = scope.generate(steps);
            if matches!(form, Form::While | Form::DoWhile) {
                body.0.push(Step::Affine { lane: 0, out: tested, x: tested, a: 1, b: -1 });
            }
            body
        });
        let bodies = bodies.collect();
        self.steps.push(Step::Conditional { lane, form, tested, bodies });
    }

    /// Every lane leads back to the scope's own.
    fn come_together(&mut self) {
        let forks = (1..self.lanes.len()).filter(|&lane| self.lanes[lane] == Kind::Handle).collect();
        self.join_into(0, forks);
        for lane in 1..self.lanes.len() {
            if self.lanes[lane] == Kind::Stream {
                self.steps.push(Step::Sync { from: lane, to: 0 });
            }
        }
    }
}
