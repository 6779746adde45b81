//! Programs from seeds.

use std::collections::BTreeSet;

use super::program::{Buf, Program, Step, StepList};
use crate::support::Random;

/// Conditionals and children are nested at most this deep, below the root.
const DEPTH: usize = 3;

impl Program {
    /// The program of a seed.
    pub(crate) fn random(seed: u64) -> Self {
        let mut generator = Generator {
            random: Random::new(seed),
            // Some have so much to do that devices share it out among workers.
            scale: if seed % 8 == 7 { 60 } else { 1 },
            lens: Vec::new(),
            locals: BTreeSet::new(),
            numbers: 0,
        };
        let data: Vec<Buf> = (0..3).map(|_| generator.data_buffer()).collect();
        let selectors: Vec<Buf> = (0..2).map(|_| generator.buffer(1)).collect();
        let steps = 2 + generator.random.below(14);
        let body = generator.block(&Scope { data, selectors }, 0, steps);
        Program { lens: generator.lens, locals: generator.locals, body }
    }
}

/// The buffers that a block can use.
#[derive(Clone)]
struct Scope {
    data: Vec<Buf>,
    /// Buffers of one element, kept small, that branches test.
    selectors: Vec<Buf>,
}

struct Generator {
    random: Random,
    /// By how much data buffers are longer than usual.
    scale: usize,
    lens: Vec<usize>,
    locals: BTreeSet<Buf>,
    /// How many conditionals there are so far.
    numbers: usize,
}

impl Generator {
    fn buffer(&mut self, len: usize) -> Buf {
        self.lens.push(len);
        self.lens.len() - 1
    }

    fn data_buffer(&mut self) -> Buf {
        let len = 12 + self.random.below(56);
        self.buffer(len * self.scale)
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers - 1
    }

    fn block(&mut self, scope: &Scope, depth: usize, steps: usize) -> StepList {
        let mut scope = scope.clone();
        let mut block = StepList::default();
        for _ in 0..steps {
            let step = self.step(&mut scope, depth);
            block.0.push(step);
        }
        block
    }

    fn inner(&mut self, scope: &Scope, depth: usize) -> StepList {
        let steps = self.random.below(5);
        self.block(scope, depth + 1, steps)
    }

    fn pick(&mut self, bufs: &[Buf]) -> Buf {
        bufs[self.random.below(bufs.len())]
    }

    /// Two different data buffers.
    fn pair(&mut self, scope: &Scope) -> (Buf, Buf) {
        let first = self.random.below(scope.data.len());
        let second = (first + 1 + self.random.below(scope.data.len() - 1)) % scope.data.len();
        (scope.data[first], scope.data[second])
    }

    fn small(&mut self) -> i32 {
        self.random.between(-9, 9) as i32
    }

    fn step(&mut self, scope: &mut Scope, depth: usize) -> Step {
        let kinds = if depth < DEPTH { 19 } else { 13 };
        match self.random.below(kinds) {
            0 => Step::Empty,
            1 => {
                let (dst, src) = if self.random.one_in(2) {
                    self.pair(scope)
                } else {
                    let one = self.pick(&scope.data);
                    (one, one)
                };
                Step::Affine { dst, src, a: self.small(), b: self.small() }
            }
            2 => {
                let (dst, src) = self.pair(scope);
                Step::Mix { dst, src }
            }
            3 => Step::Increase { dst: self.pick(&scope.data), by: self.small() },
            // Selectors stay near the values that branches distinguish.
            4 => Step::Fill {
                dst: self.pick(&scope.selectors),
                at: 0,
                len: 1,
                value: self.random.between(-1, 3) as i32 as u32,
                size: 4,
            },
            5 => Step::Increase { dst: self.pick(&scope.selectors), by: self.random.between(-1, 1) as i32 },
            6 => {
                let dst = self.pick(&scope.data);
                let (at, len) = self.part(dst);
                Step::Fill { dst, at, len, value: self.random.u32(), size: 1 << self.random.below(3) }
            }
            7 => self.fill_2d(scope),
            8 => {
                let (dst, src) = self.pair(scope);
                let (from, len) = self.part(src);
                let len = len.min(self.lens[dst]);
                let at = self.random.below(self.lens[dst] - len + 1);
                Step::Copy { dst, at, src, from, len }
            }
            9 => self.copy_2d(scope),
            10 => {
                let dst = self.pick(&scope.data);
                let (at, len) = self.part(dst);
                let values = self.random.vec(len.min(40), Random::i32);
                Step::Upload { dst, at, values }
            }
            11 => {
                let choice = self.random.below(2);
                if choice == 0 {
                    Step::Callback { amount: 1 + self.random.below(9) as u64 }
                } else {
                    Step::Events
                }
            }
            12 => {
                let buf = self.data_buffer();
                self.locals.insert(buf);
                scope.data.push(buf);
                Step::Alloc { buf, value: self.small() }
            }
            13 => Step::Child(self.inner(scope, depth)),
            14 => Step::Repeat {
                number: self.number(),
                passes: self.random.below(4) as u64,
                limit: self.limit(),
                body: self.inner(scope, depth),
            },
            15 => {
                let test_first = self.random.one_in(2);
                Step::WhileNonzero {
                    number: self.number(),
                    counter: self.buffer(1),
                    passes: self.random.between(i64::from(!test_first), 3) as i32,
                    test_first,
                    limit: self.limit(),
                    body: self.inner(scope, depth),
                }
            }
            16 => Step::While {
                number: self.number(),
                counter: self.buffer(1),
                passes: self.random.between(0, 3) as i32,
                body: self.inner(scope, depth),
            },
            17 => {
                let bodies = 1 + self.random.below(2);
                Step::If {
                    number: self.number(),
                    selector: self.pick(&scope.selectors),
                    by_condition: self.random.one_in(2),
                    bodies: (0..bodies).map(|_| self.inner(scope, depth)).collect(),
                }
            }
            _ => {
                let bodies = 1 + self.random.below(3);
                Step::Switch {
                    number: self.number(),
                    selector: self.pick(&scope.selectors),
                    by_condition: self.random.one_in(2),
                    bodies: (0..bodies).map(|_| self.inner(scope, depth)).collect(),
                }
            }
        }
    }

    fn limit(&mut self) -> Option<u64> {
        self.random.one_in(4).then(|| self.random.below(3) as u64)
    }

    /// Returns the start and length of a part of a buffer that is not empty.
    fn part(&mut self, buf: Buf) -> (usize, usize) {
        let at = self.random.below(self.lens[buf]);
        (at, 1 + self.random.below(self.lens[buf] - at))
    }

    fn fill_2d(&mut self, scope: &Scope) -> Step {
        let dst = self.pick(&scope.data);
        let (width, height, value) = (1 + self.random.below(4), 1 + self.random.below(3), self.small());
        let (at, pitch) = self.rows(dst, width, height);
        Step::Fill2d { dst, at, pitch, width, height, value }
    }

    fn copy_2d(&mut self, scope: &Scope) -> Step {
        let (dst, src) = self.pair(scope);
        let (width, height) = (1 + self.random.below(3), 1 + self.random.below(2));
        let ((at, dst_pitch), (from, src_pitch)) =
            (self.rows(dst, width, height), self.rows(src, width, height));
        Step::Copy2d { dst, at, dst_pitch, src, from, src_pitch, width, height }
    }

    /// A start and a pitch with which rows of this shape fit. Every buffer holds three rows of
    /// four, tight.
    fn rows(&mut self, buf: Buf, width: usize, height: usize) -> (usize, usize) {
        let len = self.lens[buf];
        let room = if height > 1 { (len.max(width * height) - width * height) / (height - 1) } else { 4 };
        let pitch = width + self.random.below(room.min(5) + 1);
        let span = (height - 1) * pitch + width;
        if span > len {
            return (0, width);
        }
        (self.random.below(len - span + 1), pitch)
    }
}
