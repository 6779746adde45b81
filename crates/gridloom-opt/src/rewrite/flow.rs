//! The control flow of a kernel.

use gridloom_ptx::Body;
use gridloom_ptx::op::{ControlOp, Op};

/// Returns whether a kernel has a loop.
pub(crate) fn has_loop(body: &Body) -> bool {
    let flow = Flow::of(body);
    flow.successors.iter().enumerate().any(|(at, next)| next.iter().any(|&to| to <= at))
}

/// The successors of every instruction. The number of instructions stands for the end of the
/// kernel.
pub(super) struct Flow {
    pub(super) successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

impl Flow {
    pub(super) fn of(body: &Body) -> Self {
        let end = body.instructions.len();
        let mut successors = vec![Vec::new(); end + 1];
        for (at, instruction) in body.instructions.iter().enumerate() {
            let next = &mut successors[at];
            match &instruction.op {
                Op::Control(ControlOp::Bra { target, .. }) => next.push(body.target(*target)),
                Op::Control(ControlOp::BrxIdx { table, .. }) => {
                    let targets = &body.branch_tables[table.index()].targets;
                    next.extend(targets.iter().map(|label| body.target(*label)));
                }
                Op::Control(ControlOp::Ret { .. } | ControlOp::Exit) => next.push(end),
                // It stops the launch.
                Op::Control(ControlOp::Trap) => {}
                _ => next.push(at + 1),
            }
            if instruction.guard.is_some() {
                next.push(at + 1);
            }
            next.sort_unstable();
            next.dedup();
        }
        Flow::with(successors)
    }

    fn with(successors: Vec<Vec<usize>>) -> Self {
        let mut predecessors = vec![Vec::new(); successors.len()];
        for (at, next) in successors.iter().enumerate() {
            for &to in next {
                predecessors[to].push(at);
            }
        }
        Flow { successors, predecessors }
    }

    /// Returns the flow of threads that do not come to these instructions.
    pub(super) fn without(mut self, is_left_out: &[bool]) -> Self {
        for (at, next) in self.successors.iter_mut().enumerate() {
            if is_left_out[at] {
                next.clear();
            } else {
                next.retain(|&to| !is_left_out[to]);
            }
        }
        Flow::with(self.successors)
    }

    /// Returns the instructions that control comes from.
    pub(super) fn before(&self, at: usize) -> &[usize] {
        &self.predecessors[at]
    }

    pub(super) fn end(&self) -> usize {
        self.successors.len() - 1
    }

    /// Returns the instructions from which the end can be reached without any that `stops`.
    pub(super) fn reaching_end(&self, stops: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut reaches = vec![false; self.successors.len()];
        let mut open = vec![self.end()];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut reaches[at], true) {
                open.extend(self.predecessors[at].iter().copied().filter(|&before| !stops(before)));
            }
        }
        reaches
    }

    /// Returns the instructions between a branch and where its ways meet again.
    pub(super) fn region(&self, branch: usize, meet: Option<usize>) -> Vec<usize> {
        let mut seen = vec![false; self.successors.len()];
        let mut open = self.successors[branch].clone();
        let mut found = Vec::new();
        while let Some(at) = open.pop() {
            if Some(at) != meet && !std::mem::replace(&mut seen[at], true) {
                found.push(at);
                open.extend(&self.successors[at]);
            }
        }
        found
    }

    /// Returns the immediate post-dominator of every instruction: the first instruction on all its
    /// paths to the end. It is `None` if the end is not reachable.
    pub(super) fn post_dominators(&self) -> Vec<Option<usize>> {
        let end = self.end();
        // A reverse postorder of the reversed graph, from the end.
        let mut order = Vec::with_capacity(end + 1);
        let mut number = vec![usize::MAX; end + 1];
        let mut seen = vec![false; end + 1];
        let mut open = vec![(end, 0)];
        seen[end] = true;
        while let Some((at, next)) = open.last_mut() {
            match self.predecessors[*at].get(*next) {
                Some(&before) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[before], true) {
                        open.push((before, 0));
                    }
                }
                None => {
                    number[*at] = order.len();
                    order.push(*at);
                    open.pop();
                }
            }
        }
        let mut found: Vec<Option<usize>> = vec![None; end + 1];
        found[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for &at in order.iter().rev().filter(|&&at| at != end) {
                let mut common: Option<usize> = None;
                for &next in self.successors[at].iter().filter(|&&next| found[next].is_some()) {
                    common = Some(match common {
                        None => next,
                        Some(mut one) => {
                            let mut other = next;
                            while one != other {
                                while number[one] < number[other] {
                                    one = found[one].unwrap_or(end);
                                }
                                while number[other] < number[one] {
                                    other = found[other].unwrap_or(end);
                                }
                            }
                            one
                        }
                    });
                }
                if common.is_some() && found[at] != common {
                    found[at] = common;
                    changed = true;
                }
            }
        }
        found
    }
}
