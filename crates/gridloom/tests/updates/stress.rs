//! Eight threads build, update, launch and drop graphs that they share.
//!
//! `GRIDLOOM_STRESS_SECONDS=60` goes on for that long.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gridloom::prelude::*;
use parking_lot::Mutex;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, Random, eventually, for_each_device, is_cpu};

const THREADS: usize = 8;
/// Graphs that exist at once.
const SLOTS: usize = 4;
/// Rounds of each thread where no time is given.
const ROUNDS: usize = 120;
/// Calls of closures in each launch: one at the root, one in each of two passes, one in a child.
const CALLS: i64 = 4;

/// What must add up in the end.
#[derive(Default)]
struct Books {
    closures: AtomicUsize,
    called: AtomicI64,
    launches: AtomicI64,
}

/// A closure's share of the books.
struct Entry(Arc<Books>);

impl Entry {
    fn closure(books: &Arc<Books>) -> impl FnMut() + Send + 'static {
        books.closures.fetch_add(1, Ordering::SeqCst);
        let entry = Entry(books.clone());
        move || {
            entry.0.called.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.closures.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A graph that threads share.
struct Work {
    graph: Graph,
    callbacks: [Node; 3],
    copy: Node,
    scratch: Buffer<i32>,
    executable: Executable,
    launches: Arc<AtomicI64>,
}

/// For each graph ever made: what its launches increase, and how many there were.
type Ledger = Mutex<Vec<(Buffer<i32>, Arc<AtomicI64>)>>;

impl Work {
    fn new(kernels: &GraphKernels, books: &Arc<Books>, ledger: &Ledger) -> Result<Arc<Self>> {
        let value = kernels.value(0)?;
        let launches: Arc<AtomicI64> = Arc::default();
        let scratch = kernels.device.alloc::<i32>(500)?;
        let graph = Graph::new(&kernels.device);
        let first = graph.callback(Entry::closure(books))?;
        let repeat = kernels.bump(&first, &value, 1)?.repeat(2)?;
        let second = repeat.body().callback(Entry::closure(books))?;
        let child = repeat.embed(&Graph::new(&kernels.device))?;
        let third = child.bodies()?[0].callback(Entry::closure(books))?;
        let copy = graph.memcpy(&scratch, &vec![1; 500])?;
        let executable = graph.instantiate()?;
        ledger.lock().push((value, launches.clone()));
        Ok(Arc::new(Work { graph, callbacks: [first, second, third], copy, scratch, executable, launches }))
    }

    /// One thing that a thread may do to it.
    fn act(&self, stream: &Stream, books: &Arc<Books>, random: &mut Random) -> Result<()> {
        let node = &self.callbacks[random.below(3)];
        match random.below(8) {
            0..=3 => {
                self.executable.launch(stream)?;
                self.launches.fetch_add(1, Ordering::SeqCst);
                books.launches.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            4 => self.executable.node(node)?.set_callback(Entry::closure(books)),
            5 => {
                let values = vec![random.i32(); 500];
                self.executable.node(&self.copy)?.set_memcpy(&self.scratch, &values)
            }
            6 => {
                node.set_callback(Entry::closure(books))?;
                self.executable.update(&self.graph)
            }
            _ => {
                let enabled = random.one_in(2);
                self.executable.node(&self.copy)?.set_enabled(enabled)?;
                self.graph.deep_clone()?.0.instantiate().map(drop)
            }
        }
    }
}

#[test]
fn threads_that_build_update_launch_and_drop_lose_nothing_and_leave_nothing() {
    let seconds = std::env::var("GRIDLOOM_STRESS_SECONDS").ok();
    let until = seconds.map(|text| {
        let seconds = text.parse().unwrap_or_else(|_| panic!("GRIDLOOM_STRESS_SECONDS={text} is no number"));
        Duration::from_secs(seconds)
    });
    for_each_device(|device| {
        let end = until.map(|time| Instant::now() + time);
        let go_on = |round: usize| match end {
            Some(end) => Instant::now() < end,
            None => round < ROUNDS,
        };
        let kernels = GraphKernels::new(device)?;
        let baseline = device.memory_use()?.0;
        let (books, ledger) = (Arc::new(Books::default()), Ledger::default());
        let slots: Vec<Mutex<Arc<Work>>> = (0..SLOTS)
            .map(|_| Work::new(&kernels, &books, &ledger).map(Mutex::new))
            .collect::<Result<_>>()?;
        let thread = |number: usize| -> Result<()> {
            let stream = device.stream()?;
            let mut random = Random::new(number as u64);
            let mut round = 0;
            while go_on(round) {
                let slot = &slots[random.below(SLOTS)];
                if random.one_in(10) {
                    let fresh = Work::new(&kernels, &books, &ledger)?;
                    // Dropped without the lock, by whoever holds it last.
                    let old = std::mem::replace(&mut *slot.lock(), fresh);
                    drop(old);
                }
                let work = slot.lock().clone();
                work.act(&stream, &books, &mut random)?;
                if random.one_in(20) {
                    stream.synchronize()?;
                }
                round += 1;
            }
            stream.synchronize()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || thread(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;

        let launches = books.launches.load(Ordering::SeqCst);
        assert!(launches > 0);
        assert_eq!(books.called.load(Ordering::SeqCst), CALLS * launches, "calls of closures");
        let ledger = ledger.into_inner();
        for (value, launches) in &ledger {
            assert_eq!(i64::from(read(value)?), launches.load(Ordering::SeqCst), "launches of one graph");
        }
        drop((slots, ledger));
        eventually("every closure is dropped", || books.closures.load(Ordering::SeqCst) == 0);
        if is_cpu(device) {
            eventually("all memory is freed", || device.memory_use().is_ok_and(|(used, _)| used == baseline));
        }
        Ok(())
    });
}
