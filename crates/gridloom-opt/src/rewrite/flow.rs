//! The control flow of a kernel, to find out whether threads of a block can exit while others still
//! synchronise.

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
                Op::Control(ControlOp::Ret { .. } | ControlOp::Exit | ControlOp::Trap) => next.push(end),
                _ => next.push(at + 1),
            }
            if instruction.guard.is_some() {
                next.push(at + 1);
            }
            next.sort_unstable();
            next.dedup();
        }
        let mut predecessors = vec![Vec::new(); end + 1];
        for (at, next) in successors.iter().enumerate() {
            for &to in next {
                predecessors[to].push(at);
            }
        }
        Flow { successors, predecessors }
    }

    fn end(&self) -> usize {
        self.successors.len() - 1
    }

    /// Returns the instructions from which one of `goals` can be reached, including the goals.
    fn reaching(&self, goals: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut reaches = vec![false; self.successors.len()];
        let mut open: Vec<usize> = goals.collect();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut reaches[at], true) {
                open.extend(&self.predecessors[at]);
            }
        }
        reaches
    }

    /// Returns the immediate post-dominator of every instruction: the first instruction on all its
    /// paths to the end. It is `None` if the end is not reachable.
    fn post_dominators(&self) -> Vec<Option<usize>> {
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

/// Returns whether a thread may exit while others of its block, from the same branch on, still
/// reach an instruction that synchronises threads (`meets`). Every branch counts as divergent.
pub(super) fn leaves_others_waiting(body: &Body, meets: &dyn Fn(&Op) -> bool) -> bool {
    let flow = Flow::of(body);
    let meetings = body.instructions.iter().enumerate().filter(|(_, instruction)| meets(&instruction.op));
    let meetings: Vec<usize> = meetings.map(|(at, _)| at).collect();
    if meetings.is_empty() {
        return false;
    }
    let reaches = flow.reaching(meetings.into_iter());
    let post = flow.post_dominators();
    let end = flow.end();
    (0..end).any(|at| {
        let parts = flow.successors[at].len() > 1;
        let reconverges = post[at].is_some_and(|after| after != end);
        // Some threads reach a synchronisation under a guard and others skip it, but they do not
        // exit.
        parts && !reconverges && flow.successors[at].iter().any(|&next| reaches[next])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str) -> bool {
        let source = format!(
            ".version 8.0 .target sm_80 .address_size 64 .entry k() {{ .reg .pred %p<2>; .reg .b32 %r; {text} }}"
        );
        let module = gridloom_ptx::parse(&source).unwrap();
        let (_, entry) = module.entry("k").unwrap();
        leaves_others_waiting(entry.body.as_ref().unwrap(), &|op| matches!(op, Op::Sync(_)))
    }

    #[test]
    fn an_early_return_before_a_barrier_leaves_others_waiting() {
        assert!(leaves("@%p0 ret; bar.sync 0; ret;"));
        assert!(leaves("@%p0 exit; bar.sync 0; ret;"));
        assert!(!leaves("@%p0 bra out; bar.sync 0; out: ret;"));
        assert!(leaves("@%p0 bra out; bar.sync 0; ret; out: ret;"));
        assert!(leaves("again: bar.sync 0; @%p0 ret; bra again;"));
    }

    #[test]
    fn a_return_after_every_barrier_leaves_nobody_waiting() {
        assert!(!leaves("bar.sync 0; @%p0 ret; mov.u32 %r, 0; ret;"));
        assert!(!leaves("again: bar.sync 0; @%p0 bra again; ret;"));
        assert!(!leaves("@%p0 ret; mov.u32 %r, 0; ret;"));
        assert!(!leaves(
            "@%p0 bra low; mov.u32 %r, 1; low: bar.sync 0; @%p1 bra out; mov.u32 %r, 2; out: ret;"
        ));
    }

    #[test]
    fn a_return_inside_a_loop_with_a_barrier_leaves_others_waiting() {
        assert!(leaves("spin: @%p0 ret; @%p1 bra spin; bar.sync 0; bra spin;"));
    }
}
