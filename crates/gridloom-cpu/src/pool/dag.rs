//! Tasks with dependencies, run by several threads.
//!
//! Each task has a counter of unfinished predecessors. Each participating thread has a deque of
//! ready tasks, from which the others steal.
//!
//! Everything that a run needs is allocated once. The thread that sees a counter reach 0 resets it
//! at once, so a finished run leaves the tasks ready for the next.

use super::{Pool, Work};
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Mutex, Steal, Stealer, Worker};

/// The successors of each task, one list after the other.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// The start of each task's list in `targets`, and the end of the last list.
    pub(crate) starts: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

impl Edges {
    /// Creates the edges from lists of predecessors: `predecessors[starts[t]..starts[t + 1]]` for
    /// task `t`.
    pub(crate) fn from_predecessors(starts: &[u32], predecessors: &[u32]) -> Self {
        let tasks = starts.len() - 1;
        let mut places = vec![0u32; tasks + 1];
        predecessors.iter().for_each(|&from| places[from as usize + 1] += 1);
        for task in 0..tasks {
            places[task + 1] += places[task];
        }
        let mut targets = vec![0; predecessors.len()];
        let mut next = places.clone();
        for to in 0..tasks {
            for &from in &predecessors[starts[to] as usize..starts[to + 1] as usize] {
                let place = &mut next[from as usize];
                targets[*place as usize] = to as u32;
                *place += 1;
            }
        }
        Edges { starts: places, targets }
    }

    fn of(&self, task: u32) -> &[u32] {
        &self.targets[self.starts[task as usize] as usize..self.starts[task as usize + 1] as usize]
    }
}

/// Tasks that can run any number of times, one run at a time.
pub(crate) struct Dag {
    edges: Edges,
    /// The number of predecessors of each task.
    predecessors: Vec<u32>,
    /// The number of unfinished predecessors in the current run.
    pending: Vec<AtomicU32>,
    roots: Vec<u32>,
    /// One deque for each thread that can take part, locked while it does.
    deques: Vec<Mutex<Worker<u32>>>,
    stealers: Vec<Stealer<u32>>,
    unfinished: AtomicUsize,
}

impl Dag {
    /// Creates tasks with these edges, for a pool of `threads` threads.
    pub(crate) fn new(edges: Edges, threads: usize) -> Self {
        let tasks = edges.starts.len() - 1;
        let mut predecessors = vec![0; tasks];
        edges.targets.iter().for_each(|&to| predecessors[to as usize] += 1);
        let deques: Vec<_> = (0..threads).map(|_| Worker::new_lifo()).collect();
        Dag {
            roots: (0..tasks as u32).filter(|&task| predecessors[task as usize] == 0).collect(),
            pending: predecessors.iter().copied().map(AtomicU32::new).collect(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            deques: deques.into_iter().map(Mutex::new).collect(),
            unfinished: AtomicUsize::new(0),
            predecessors,
            edges,
        }
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        4 * (self.edges.starts.len() + self.edges.targets.len() + 2 * self.pending.len() + self.roots.len())
    }

    /// Calls `execute` with every task, each after its predecessors. It must not panic.
    pub(crate) fn run(&self, pool: &Pool, execute: &(dyn Fn(u32) + Sync)) {
        let run = Run { dag: self, pool, execute };
        self.unfinished.store(self.pending.len(), Ordering::Relaxed);
        {
            let deque = self.deques[0].lock();
            // A deque returns the newest entry to its owner first.
            self.roots.iter().rev().for_each(|&root| deque.push(root));
        }
        pool.post(&run, |owner| {
            pool.shared.sleep.announce(self.roots.len() - 1);
            run.help();
            owner.wait_until(|| self.unfinished.load(Ordering::SeqCst) == 0);
        });
    }
}

struct Run<'a> {
    dag: &'a Dag,
    pool: &'a Pool,
    execute: &'a (dyn Fn(u32) + Sync),
}

impl Work for Run<'_> {
    fn available(&self) -> bool {
        self.dag.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    fn help(&self) {
        // A thread takes part once at a time, so there is a deque for each.
        let Some(deque) = self.dag.deques.iter().find_map(Mutex::try_lock) else {
            return;
        };
        let mut finished = 0;
        loop {
            let own = deque.pop().or_else(|| {
                // Reported before stealing: a stolen task may take long, and the owner may wait
                // only for these.
                self.finish(std::mem::take(&mut finished));
                self.steal()
            });
            let Some(mut task) = own else {
                return;
            };
            loop {
                (self.execute)(task);
                finished += 1;
                match self.complete(task, &deque) {
                    Some(next) => task = next,
                    None => break,
                }
            }
        }
    }
}

impl Run<'_> {
    /// Counts a finished task off at its successors. Returns one that became ready, and queues the
    /// others.
    fn complete(&self, task: u32, deque: &Worker<u32>) -> Option<u32> {
        let mut ready = None;
        let mut queued = 0;
        for &successor in self.dag.edges.of(task) {
            let pending = &self.dag.pending[successor as usize];
            if pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                pending.store(self.dag.predecessors[successor as usize], Ordering::Relaxed);
                match ready {
                    None => ready = Some(successor),
                    Some(_) => {
                        deque.push(successor);
                        queued += 1;
                    }
                }
            }
        }
        if queued > 0 {
            self.pool.shared.sleep.announce(queued);
        }
        ready
    }

    fn finish(&self, tasks: usize) {
        if tasks > 0 && self.dag.unfinished.fetch_sub(tasks, Ordering::SeqCst) == tasks {
            self.pool.shared.sleep.wake_owners();
        }
    }

    fn steal(&self) -> Option<u32> {
        loop {
            let mut contended = false;
            for stealer in &self.dag.stealers {
                match stealer.steal() {
                    Steal::Success(task) => return Some(task),
                    Steal::Retry => contended = true,
                    Steal::Empty => {}
                }
            }
            if !contended {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Tasks whose predecessors are given as lists.
    fn dag(lists: &[Vec<u32>], threads: usize) -> Dag {
        let mut starts = vec![0];
        let mut all = Vec::new();
        for list in lists {
            all.extend(list);
            starts.push(all.len() as u32);
        }
        Dag::new(Edges::from_predecessors(&starts, &all), threads)
    }

    fn check(lists: &[Vec<u32>], threads: usize) {
        let pool = Pool::new(threads);
        let dag = dag(lists, threads);
        for _ in 0..3 {
            let clock = AtomicU64::new(1);
            let times: Vec<AtomicU64> = lists.iter().map(|_| AtomicU64::new(0)).collect();
            dag.run(&pool, &|task| {
                for &before in &lists[task as usize] {
                    assert_ne!(times[before as usize].load(Ordering::SeqCst), 0);
                }
                let now = clock.fetch_add(1, Ordering::SeqCst);
                assert_eq!(times[task as usize].swap(now, Ordering::SeqCst), 0, "ran once");
            });
            assert!(times.iter().all(|time| time.load(Ordering::SeqCst) != 0));
        }
    }

    #[test]
    fn tasks_run_once_each_after_their_predecessors_and_can_run_again() {
        for threads in [1, 2, 6] {
            check(&[vec![]], threads);
            check(&[vec![], vec![0], vec![0], vec![1, 2]], threads);
            let side = 40;
            let wavefront: Vec<Vec<u32>> = (0..side * side)
                .map(|at| {
                    let left = (at % side > 0).then(|| at - 1);
                    let up = (at >= side).then(|| at - side);
                    left.into_iter().chain(up).collect()
                })
                .collect();
            check(&wavefront, threads);
            let mut fan: Vec<Vec<u32>> = vec![vec![]];
            fan.extend((0..500).map(|_| vec![0]));
            fan.push((1..=500).collect());
            check(&fan, threads);
        }
    }

    #[test]
    fn a_task_may_run_tasks_of_its_own() {
        let pool = Pool::new(3);
        let outer = dag(&[vec![], vec![], vec![], vec![0, 1, 2]], 3);
        let inner: Vec<Dag> = (0..4).map(|_| dag(&[vec![], vec![0], vec![0], vec![1, 2]], 3)).collect();
        let count = AtomicU64::new(0);
        for _ in 0..50 {
            outer.run(&pool, &|task| {
                inner[task as usize].run(&pool, &|_| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        assert_eq!(count.into_inner(), 50 * 16);
    }
}
