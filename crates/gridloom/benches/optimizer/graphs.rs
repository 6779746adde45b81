//! Graphs of one pattern each.

use gridloom::prelude::*;

use crate::{Case, Work};

/// Kernels of a chain or fan.
pub(crate) const NODES: usize = 1_000;
/// Threads of a block.
const THREADS: u32 = 256;
/// Passes of a loop.
pub(crate) const PASSES: u32 = 1_000;
/// Pairs of a kernel and a fill.
pub(crate) const PAIRS: usize = 200;
/// Decisions of a chain of branches.
pub(crate) const DECISIONS: usize = 50;

/// The kernels that the graphs launch.
pub(crate) struct GraphKernels {
    pub(crate) neighbour: Kernel<(PtrMut<u32>, Ptr<u32>, Len<u32>, u32)>,
    countdown: Kernel<(ConditionHandle, PtrMut<u32>, u32)>,
    pass: Kernel<(ConditionHandle, PtrMut<u32>, u32, PtrMut<u32>, Ptr<u32>, u32, u32)>,
    decide: Kernel<(ConditionHandle, Ptr<u32>, PtrMut<u32>)>,
    stream: Kernel<(PtrMut<f32>, Ptr<f32>, u32, f32)>,
    fan: Vec<Kernel<(PtrMut<u32>, Ptr<u32>, u32)>>,
}

impl GraphKernels {
    pub(crate) fn new(plain: &Module, programs: &Module) -> Result<Self> {
        // SAFETY: neighbour, pass and stream read and write n elements of their arrays, and the
        // kernels of a fan one for each thread. countdown, pass and decide also read and write one
        // word of the others.
        unsafe {
            Ok(GraphKernels {
                neighbour: plain.kernel("neighbour")?,
                countdown: plain.kernel("countdown")?,
                pass: programs.kernel("pass")?,
                decide: programs.kernel("decide")?,
                stream: programs.kernel("stream")?,
                fan: (0..10).map(|index| programs.kernel(&format!("fan{index}"))).collect::<Result<_>>()?,
            })
        }
    }
}

/// The form of a branch.
#[derive(Clone, Copy)]
pub(crate) enum Branch {
    If,
    IfElse,
    Switch,
}

impl Branch {
    pub(crate) const ALL: [(Branch, &'static str); 3] =
        [(Branch::If, "if"), (Branch::IfElse, "if_else"), (Branch::Switch, "switch")];
}

impl Work {
    pub(crate) fn buffers(&self, blocks: u32) -> Result<[Buffer<u32>; 2]> {
        let words: Vec<u32> = (0..blocks * THREADS).collect();
        Ok([self.device.buffer_from(&words)?, self.device.buffer_from(&words)?])
    }

    pub(crate) fn chain(&self, blocks: u32) -> Result<Case> {
        let data = self.buffers(blocks)?;
        Ok(Case::new(self.chain_in(blocks, &data)?).words(data))
    }

    pub(crate) fn chain_in(&self, blocks: u32, data: &[Buffer<u32>; 2]) -> Result<Graph> {
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(blocks, THREADS);
        let args = |index: usize| (&data[(index + 1) % 2], &data[index % 2], blocks * THREADS, index as u32);
        let mut last = graph.launch(&self.graphs.neighbour, config, args(0))?;
        for index in 1..NODES {
            last = last.launch(&self.graphs.neighbour, config, args(index))?;
        }
        Ok(graph)
    }

    /// A chain of kernels that each stream through `n` floats.
    pub(crate) fn streaming(&self, n: u32) -> Result<Case> {
        let values: Vec<f32> = (0..n).map(|index| (index % 1000) as f32).collect();
        let data = [self.device.buffer_from(&values)?, self.device.buffer_from(&values)?];
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(1056u32.min(n / THREADS), THREADS);
        let args = |index: usize| (&data[(index + 1) % 2], &data[index % 2], n, index as f32);
        let mut last = graph.launch(&self.graphs.stream, config, args(0))?;
        for index in 1..NODES {
            last = last.launch(&self.graphs.stream, config, args(index))?;
        }
        Ok(Case::new(graph).floats(data))
    }

    /// Independent kernels of one block, of so many different ones.
    pub(crate) fn fan(&self, count: usize, different: usize) -> Result<Case> {
        let [from, _] = self.buffers(1)?;
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(1, THREADS);
        let mut data = vec![from];
        for index in 0..count {
            let to = self.device.buffer_from(&[0; THREADS as usize])?;
            let kernel = &self.graphs.fan[index % different];
            graph.launch(kernel, config, (&to, &data[0], index as u32))?;
            data.push(to);
        }
        Ok(Case::new(graph).words(data))
    }

    pub(crate) fn fills(&self) -> Result<Case> {
        let data = self.buffers(132)?;
        let cleared = self.device.buffer_from(&[1u32; 256])?;
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(132, THREADS);
        let mut last = graph.memset(&cleared, 7u32)?;
        for index in 0..PAIRS {
            let args = (&data[(index + 1) % 2], &data[index % 2], 132 * THREADS, index as u32);
            last = last.launch(&self.graphs.neighbour, config, args)?.memset(&cleared, index as u32)?;
        }
        Ok(Case::new(graph).words(data).words([cleared]))
    }

    /// A loop of kernels of one block.
    pub(crate) fn repeat(&self, kernels: usize) -> Result<Case> {
        let data = self.buffers(1)?;
        let left = self.device.buffer_from(&[PASSES])?;
        let graph = Graph::new(&self.device);
        let again = graph.condition(1)?;
        let repeat = graph.while_loop(&again)?;
        let body = repeat.body();
        let config = LaunchConfig::new(1, THREADS);
        let mut last = body.launch(&self.graphs.countdown, config, (&again, &left, PASSES))?;
        for index in 1..kernels {
            let args = (&data[(index + 1) % 2], &data[index % 2], THREADS, index as u32);
            last = last.launch(&self.graphs.neighbour, config, args)?;
        }
        Ok(Case::new(graph).words(data).words([left]).condition(again))
    }

    /// A loop of one kernel of so many blocks.
    pub(crate) fn repeat_wide(&self, blocks: u32) -> Result<Case> {
        let data = self.buffers(blocks)?;
        let left = self.device.buffer_from(&[PASSES])?;
        let graph = Graph::new(&self.device);
        let again = graph.condition(1)?;
        let repeat = graph.while_loop(&again)?;
        let args = (&again, &left, PASSES, &data[1], &data[0], blocks * THREADS, 5);
        repeat.body().launch(&self.graphs.pass, LaunchConfig::new(blocks, THREADS), args)?;
        Ok(Case::new(graph).words(data).words([left]).condition(again))
    }

    /// A chain of decisions, each followed by a branch with bodies of so many blocks.
    pub(crate) fn branches(&self, branch: Branch, blocks: u32, taken: bool) -> Result<Case> {
        let data = self.buffers(blocks)?;
        let count = self.device.buffer_from(&[0u32])?;
        let value = match (branch, taken) {
            (Branch::Switch, false) => 7,
            (_, taken) => u32::from(taken),
        };
        let value = self.device.buffer_from(&[value])?;
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(blocks, THREADS);
        let (mut conditions, mut last): (Vec<Condition>, Option<Node>) = (Vec::new(), None);
        for index in 0..DECISIONS {
            let condition = graph.condition(0)?;
            let args = (&condition, &value, &count);
            let small = LaunchConfig::new(1, 32);
            let decision = match &last {
                None => graph.launch(&self.graphs.decide, small, args)?,
                Some(last) => last.launch(&self.graphs.decide, small, args)?,
            };
            let args = |by: u32| {
                (&data[(index + 1) % 2], &data[index % 2], blocks * THREADS, 10 * index as u32 + by)
            };
            let neighbour = &self.graphs.neighbour;
            let node: Node = match branch {
                Branch::If => {
                    let node = decision.if_then(&condition)?;
                    node.body().launch(neighbour, config, args(1))?;
                    (*node).clone()
                }
                Branch::IfElse => {
                    let node = decision.if_else(&condition)?;
                    node.then_body().launch(neighbour, config, args(1))?;
                    node.else_body().launch(neighbour, config, args(2))?;
                    (*node).clone()
                }
                Branch::Switch => {
                    let node = decision.switch(&condition, 3)?;
                    for case in 0..3 {
                        node.body(case)?.launch(neighbour, config, args(case as u32))?;
                    }
                    (*node).clone()
                }
            };
            last = Some(node);
            conditions.push(condition);
        }
        Ok(conditions.into_iter().fold(Case::new(graph).words(data).words([count]), Case::condition))
    }
}
