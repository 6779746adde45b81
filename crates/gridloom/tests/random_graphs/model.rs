//! The reference: a program run step by step on the host.

use std::collections::HashMap;

use super::program::{Buf, Program, Step, StepList};

/// The state of a program's buffers.
pub(crate) struct Model<'a> {
    program: &'a Program,
    buffers: Vec<Vec<i32>>,
    /// What all callbacks added up to.
    pub(crate) called: u64,
    passes: HashMap<usize, u64>,
}

impl<'a> Model<'a> {
    /// The state before the first launch, from the contents of the buffers outside the graph.
    pub(crate) fn new(program: &'a Program, externals: Vec<Vec<i32>>) -> Self {
        let mut externals = externals.into_iter();
        let buffers = program
            .lens
            .iter()
            .enumerate()
            .map(|(buf, len)| match program.is_external(buf) {
                true => externals.next().expect("one for each"),
                false => vec![0; *len],
            })
            .collect();
        Model { program, buffers, called: 0, passes: HashMap::new() }
    }

    /// Returns the contents of the buffers outside the graph.
    pub(crate) fn externals(&self) -> impl Iterator<Item = &Vec<i32>> {
        self.buffers
            .iter()
            .enumerate()
            .filter(|(buf, _)| self.program.is_external(*buf))
            .map(|(_, values)| values)
    }

    /// Returns how many passes the conditional of this number made when it last ran.
    pub(crate) fn passes(&self, number: usize) -> u64 {
        self.passes.get(&number).copied().unwrap_or(0)
    }

    pub(crate) fn run(&mut self, block: &StepList) {
        block.0.iter().for_each(|step| self.step(step));
    }

    fn two(&mut self, dst: Buf, src: Buf, apply: impl Fn(i32, i32) -> i32) {
        for i in 0..self.buffers[dst].len().min(self.buffers[src].len()) {
            self.buffers[dst][i] = apply(self.buffers[dst][i], self.buffers[src][i]);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Empty | Step::Events => {}
            Step::Affine { dst, src, a, b } => {
                self.two(*dst, *src, |_, x| x.wrapping_mul(*a).wrapping_add(*b))
            }
            Step::Mix { dst, src } => self.two(*dst, *src, |y, x| y.wrapping_mul(31).wrapping_add(x)),
            Step::Increase { dst, by } => self.two(*dst, *dst, |_, x| x.wrapping_add(*by)),
            Step::Fill { dst, at, len, value, size } => {
                let bytes = &value.to_ne_bytes()[..*size];
                let word: Vec<u8> = bytes.iter().copied().cycle().take(4).collect();
                let word = i32::from_ne_bytes(word.try_into().expect("four bytes"));
                self.buffers[*dst][*at..at + len].fill(word);
            }
            Step::Fill2d { dst, at, pitch, width, height, value } => {
                for row in 0..*height {
                    let start = at + row * pitch;
                    self.buffers[*dst][start..start + width].fill(*value);
                }
            }
            Step::Copy { dst, at, src, from, len } => {
                for i in 0..*len {
                    self.buffers[*dst][at + i] = self.buffers[*src][from + i];
                }
            }
            Step::Copy2d { dst, at, dst_pitch, src, from, src_pitch, width, height } => {
                for row in 0..*height {
                    for i in 0..*width {
                        self.buffers[*dst][at + row * dst_pitch + i] =
                            self.buffers[*src][from + row * src_pitch + i];
                    }
                }
            }
            Step::Upload { dst, at, values } => {
                self.buffers[*dst][*at..at + values.len()].copy_from_slice(values);
            }
            Step::Callback { amount } => self.called += amount,
            Step::Alloc { buf, value } => self.buffers[*buf].fill(*value),
            Step::Child(body) => self.run(body),
            Step::Repeat { number, passes, limit, body } => {
                let passes = limit.map_or(*passes, |limit| limit.min(*passes));
                (0..passes).for_each(|_| self.run(body));
                self.passes.insert(*number, passes);
            }
            Step::WhileNonzero { number, counter, passes, test_first, limit, body } => {
                self.buffers[*counter][0] = *passes;
                let mut made = 0;
                let mut again = !test_first || *passes != 0;
                while again && limit.is_none_or(|limit| made < limit) {
                    self.run(body);
                    self.buffers[*counter][0] -= 1;
                    again = self.buffers[*counter][0] != 0;
                    made += 1;
                }
                self.passes.insert(*number, made);
            }
            Step::While { number, counter, passes, body } => {
                self.buffers[*counter][0] = *passes;
                for _ in 0..*passes {
                    self.run(body);
                    self.buffers[*counter][0] -= 1;
                }
                self.passes.insert(*number, *passes as u64);
            }
            Step::If { number, selector, bodies, .. } => {
                let chosen = usize::from(self.buffers[*selector][0] == 0);
                self.choose(*number, bodies, chosen);
            }
            Step::Switch { number, selector, bodies, .. } => {
                let chosen = self.buffers[*selector][0] as u32 as usize;
                self.choose(*number, bodies, chosen);
            }
        }
    }

    fn choose(&mut self, number: usize, bodies: &[StepList], chosen: usize) {
        if let Some(body) = bodies.get(chosen) {
            self.run(body);
        }
        self.passes.insert(number, u64::from(chosen < bodies.len()));
    }
}
