//! The graph of a program. Steps that touch the same buffer are ordered; all others may run at
//! once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gridloom::buffer::CopySource;
use gridloom::prelude::*;
use gridloom_core::memory::Region;

use super::program::{Buf, Program, Step, StepList};
use crate::support::{GraphKernels, Random};

/// Some elements of a buffer of either kind.
struct Part {
    region: Region,
    len: usize,
}

// SAFETY: the regions are whole integers of aligned buffers.
unsafe impl Memory<i32> for Part {
    fn region(&self) -> Result<Region> {
        Ok(self.region.clone())
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl CopySource<i32> for Part {
    fn source(&self) -> Result<(Region, usize)> {
        Ok((self.region.clone(), self.len))
    }
}

/// Who touched a buffer last in one graph.
#[derive(Default)]
struct Users {
    writer: Option<Node>,
    readers: Vec<Node>,
}

/// Adds programs to graphs.
pub(crate) struct Builder<'a> {
    kernels: &'a GraphKernels,
    program: &'a Program,
    externals: HashMap<Buf, Buffer<i32>>,
    locals: HashMap<Buf, AllocNode<i32>>,
    called: &'a Arc<AtomicU64>,
    random: Random,
    depth: usize,
    counted: Vec<(Node, usize)>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        kernels: &'a GraphKernels,
        program: &'a Program,
        buffers: &[Buffer<i32>],
        called: &'a Arc<AtomicU64>,
        seed: u64,
    ) -> Self {
        let external = (0..program.lens.len()).filter(|buf| program.is_external(*buf));
        Builder {
            kernels,
            program,
            externals: external.zip(buffers.iter().cloned()).collect(),
            locals: HashMap::new(),
            called,
            random: Random::new(seed),
            depth: 0,
            counted: Vec::new(),
        }
    }

    /// Returns the conditionals of the outermost graph, with their numbers.
    pub(crate) fn into_counted(self) -> Vec<(Node, usize)> {
        self.counted
    }

    /// Adds a block to a graph.
    pub(crate) fn add(&mut self, graph: &Graph, block: &StepList) -> Result<()> {
        // Nodes are added in any order, memory before its users: it is the edges alone that order
        // them.
        let is_alloc = |&step: &usize| matches!(block.0[step], Step::Alloc { .. });
        let (mut order, mut rest): (Vec<usize>, Vec<usize>) = (0..block.0.len()).partition(is_alloc);
        while !rest.is_empty() {
            order.push(rest.swap_remove(self.random.below(rest.len())));
        }
        let mut ends = vec![None; block.0.len()];
        for step in order {
            ends[step] = Some(self.step(graph, &block.0[step])?);
        }
        let mut users: HashMap<Buf, Users> = HashMap::new();
        let mut all: Vec<Node> = Vec::new();
        let mut allocated = Vec::new();
        for (step, ends) in block.0.iter().zip(ends) {
            let (first, last) = ends.expect("every step was added");
            let foot = step.footprint();
            let mut before: Vec<Node> = Vec::new();
            for buf in foot.reads.union(&foot.writes) {
                let users = users.entry(*buf).or_default();
                before.extend(users.writer.clone());
                if foot.writes.contains(buf) {
                    before.append(&mut users.readers);
                }
            }
            // Edges that nothing needs are allowed too.
            if !all.is_empty() && self.random.one_in(4) {
                before.push(all[self.random.below(all.len())].clone());
            }
            first.after(&before)?;
            for buf in foot.reads.union(&foot.writes) {
                let users = users.entry(*buf).or_default();
                if foot.writes.contains(buf) {
                    users.writer = Some(last.clone());
                } else {
                    users.readers.push(last.clone());
                }
            }
            all.push(last);
            if let Step::Alloc { buf, .. } = step {
                allocated.push(*buf);
            }
        }
        for buf in allocated {
            let free = graph.free(&self.locals[&buf])?;
            let Users { writer, readers } = users.remove(&buf).unwrap_or_default();
            free.after(writer.iter().chain(&readers))?;
        }
        Ok(())
    }

    fn part(&self, buf: Buf, at: usize, len: usize) -> Result<Part> {
        let whole = match self.externals.get(&buf) {
            Some(buffer) => buffer.region()?,
            None => self.locals[&buf].region()?,
        };
        let region = whole.part(4 * at as u64, 4 * len as u64).expect("the program stays inside its buffers");
        Ok(Part { region, len })
    }

    fn whole(&self, buf: Buf) -> Result<Part> {
        self.part(buf, 0, self.program.lens[buf])
    }

    /// Returns the elements from `at` on.
    fn tail(&self, buf: Buf, at: usize) -> Result<Part> {
        self.part(buf, at, self.program.lens[buf] - at)
    }

    /// A launch shape of at least `n` threads.
    fn shape(&mut self, n: usize) -> LaunchConfig {
        let block = [1, 7, 32, 64][self.random.below(4)];
        LaunchConfig::new(n.div_ceil(block) as u32, block as u32)
    }

    fn body(&mut self, graph: &Graph, block: &StepList) -> Result<()> {
        self.depth += 1;
        let added = self.add(graph, block);
        self.depth -= 1;
        added
    }

    fn count(&mut self, node: &Node, number: usize) {
        if self.depth == 0 {
            self.counted.push((node.clone(), number));
        }
    }

    /// Adds the nodes of a step, and returns the first and the last of them.
    fn step(&mut self, graph: &Graph, step: &Step) -> Result<(Node, Node)> {
        let kernels = self.kernels;
        let one = LaunchConfig::one();
        let node = match step {
            Step::Empty => graph.empty()?,
            Step::Affine { dst, src, a, b } => {
                let (out, x) = (self.whole(*dst)?, self.whole(*src)?);
                let n = out.len.min(x.len);
                graph.launch(&kernels.affine, self.shape(n), (&out, &x, n as u32, *a, *b))?
            }
            Step::Mix { dst, src } => {
                let (out, x) = (self.whole(*dst)?, self.whole(*src)?);
                let n = out.len.min(x.len);
                graph.launch(&kernels.mix, self.shape(n), (&out, &x, n as u32))?
            }
            Step::Increase { dst, by } => {
                let out = self.whole(*dst)?;
                graph.launch(&kernels.increase, self.shape(out.len), (&out, out.len as u32, *by))?
            }
            Step::Fill { dst, at, len, value, size } => {
                let part = self.part(*dst, *at, *len)?;
                // On a little-endian machine, as every device here is, the low bytes are the first.
                match size {
                    1 => graph.memset(&part, *value as u8)?,
                    2 => graph.memset(&part, *value as u16)?,
                    _ => graph.memset(&part, *value)?,
                }
            }
            Step::Fill2d { dst, at, pitch, width, height, value } => {
                graph.memset_2d(self.tail(*dst, *at)?.rows(*pitch)?, *value, *width, *height)?
            }
            Step::Copy { dst, at, src, from, len } => {
                graph.memcpy(&self.part(*dst, *at, *len)?, &self.part(*src, *from, *len)?)?
            }
            Step::Copy2d { dst, at, dst_pitch, src, from, src_pitch, width, height } => {
                let (to, from) =
                    (self.tail(*dst, *at)?.rows(*dst_pitch)?, self.tail(*src, *from)?.rows(*src_pitch)?);
                graph.memcpy_2d(to, from, *width, *height)?
            }
            Step::Upload { dst, at, values } => graph.memcpy(&self.part(*dst, *at, values.len())?, values)?,
            Step::Callback { amount } => {
                let (called, amount) = (self.called.clone(), *amount);
                graph.callback(move || {
                    called.fetch_add(amount, Ordering::SeqCst);
                })?
            }
            Step::Events => {
                let event = kernels.device.event()?;
                let record = graph.record(&event)?;
                let wait = record.wait(&event)?;
                return Ok((record, wait));
            }
            Step::Alloc { buf, value } => {
                let alloc = graph.alloc::<i32>(self.program.lens[*buf])?;
                let fill = alloc.memset(&alloc, *value)?;
                let first = (*alloc).clone();
                self.locals.insert(*buf, alloc);
                return Ok((first, fill));
            }
            Step::Child(body) => {
                // A graph of its own is copied when it is embedded; an embedded copy can be filled
                // in place too.
                if body.is_self_contained(&self.program.locals) && self.random.one_in(2) {
                    let child = Graph::new(&kernels.device);
                    self.body(&child, body)?;
                    graph.embed(&child)?
                } else {
                    let child = graph.embed(&Graph::new(&kernels.device))?;
                    self.body(&child.bodies()?[0], body)?;
                    child
                }
            }
            Step::Repeat { number, passes, limit, body } => {
                let repeat = graph.repeat(*passes)?;
                repeat.set_max_passes(*limit)?;
                self.count(&repeat, *number);
                self.body(&repeat.body(), body)?;
                (*repeat).clone()
            }
            Step::WhileNonzero { number, counter, passes, test_first, limit, body } => {
                let left = self.whole(*counter)?;
                let set = graph.memset(&left, *passes)?;
                let repeat = if *test_first { set.while_nonzero(&left)? } else { set.do_while(&left)? };
                repeat.set_max_passes(*limit)?;
                self.count(&repeat, *number);
                kernels.bump(&repeat.body(), &left, -1)?;
                self.body(&repeat.body(), body)?;
                return Ok((set, (*repeat).clone()));
            }
            Step::While { number, counter, passes, body } => {
                let left = self.whole(*counter)?;
                let condition = graph.condition(None)?;
                let set = graph.memset(&left, *passes)?;
                let repeat =
                    set.launch(&kernels.set_condition, one, (&condition, &left))?.while_loop(&condition)?;
                self.count(&repeat, *number);
                repeat.body().launch(&kernels.countdown, one, (&condition, &left))?;
                self.body(&repeat.body(), body)?;
                return Ok((set, (*repeat).clone()));
            }
            Step::If { number, selector, by_condition, bodies } => {
                let value = self.whole(*selector)?;
                let condition = graph.condition(None)?;
                let (first, node) = if *by_condition {
                    let set = graph.launch(&kernels.set_condition, one, (&condition, &value))?;
                    let node = match bodies.len() {
                        1 => (*set.if_then(&condition)?).clone(),
                        _ => (*set.if_else(&condition)?).clone(),
                    };
                    (set, node)
                } else {
                    let node = match bodies.len() {
                        1 => (*graph.if_nonzero(&value)?).clone(),
                        _ => (*graph.if_else_nonzero(&value)?).clone(),
                    };
                    (node.clone(), node)
                };
                self.bodies(&node, *number, bodies)?;
                return Ok((first, node));
            }
            Step::Switch { number, selector, by_condition, bodies } => {
                let value = self.whole(*selector)?;
                let condition = graph.condition(None)?;
                let (first, node) = if *by_condition {
                    let set = graph.launch(&kernels.set_condition, one, (&condition, &value))?;
                    let switch = set.switch(&condition, bodies.len())?;
                    (set, (*switch).clone())
                } else {
                    let switch = graph.switch_on(&value, bodies.len())?;
                    ((*switch).clone(), (*switch).clone())
                };
                self.bodies(&node, *number, bodies)?;
                return Ok((first, node));
            }
        };
        Ok((node.clone(), node))
    }

    fn bodies(&mut self, node: &Node, number: usize, bodies: &[StepList]) -> Result<()> {
        self.count(node, number);
        for (graph, block) in node.bodies()?.iter().zip(bodies) {
            self.body(graph, block)?;
        }
        Ok(())
    }
}
