//! Loops over independent pieces, shared out once they prove to be long.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Pool, Work};

/// How long the owner works alone before it judges how long the rest will take.
const PROBE_NS: u64 = 4_000;
/// A rest shorter than this is done before a sleeping worker has woken up.
const WORTH_NS: u64 = 20_000;
/// Pieces handed out at a time should take about this long: a kernel reads on where it was, and a thread that takes turns with others every few
/// microseconds loses more to what the machine has not fetched ahead than to anything it computes.
const PIECE_NS: u64 = 200_000;

/// The rest of a loop.
struct Rest<'a> {
    next: AtomicU64,
    end: u64,
    grain: u64,
    body: &'a (dyn Fn(Range<u64>) + Sync),
}

impl Work for Rest<'_> {
    fn available(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.end
    }

    fn help(&self) {
        loop {
            // Pieces are handed out in rising order: blocks may wait for blocks before them.
            let start = self.next.fetch_add(self.grain, Ordering::Relaxed);
            if start >= self.end {
                // Keeps the counter from ever wrapping.
                self.next.store(self.end, Ordering::Relaxed);
                return;
            }
            (self.body)(start..(start + self.grain).min(self.end));
        }
    }
}

impl Pool {
    /// Calls `body` with ranges that together are `0..count`, on this thread first and, if it takes long, on others too.
    pub(crate) fn for_each(&self, count: u64, body: &(dyn Fn(Range<u64>) + Sync)) {
        if self.threads == 1 || count < 2 {
            return body(0..count);
        }
        let start = Instant::now();
        let (mut done, mut chunk) = (0, 1);
        let elapsed = loop {
            body(done..done + chunk);
            done += chunk;
            if done == count {
                return;
            }
            let elapsed = start.elapsed().as_nanos() as u64;
            if elapsed >= PROBE_NS {
                break elapsed;
            }
            chunk = (chunk * 2).min(count - done);
        };
        let each = (elapsed / done).max(1);
        if each.saturating_mul(count - done) < WORTH_NS {
            return body(done..count);
        }
        let fair = (count - done).div_ceil(self.threads as u64 * 4);
        let grain = (PIECE_NS / each).clamp(1, fair.max(1));
        let rest = Rest { next: AtomicU64::new(done), end: count, grain, body };
        self.post(&rest, |_| {
            self.shared.sleep.announce((count - done).div_ceil(grain) as usize - 1);
            rest.help();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    fn long(counts: &[AtomicU32], range: Range<u64>) {
        for index in range {
            counts[index as usize].fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    #[test]
    fn every_index_is_visited_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            for count in [0, 1, 2, 7, 300] {
                let counts: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
                pool.for_each(count, &|range| long(&counts, range));
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads} {count}");
            }
        }
    }

    #[test]
    fn loops_inside_loops_come_to_their_end() {
        let pool = Pool::new(4);
        let total = AtomicU32::new(0);
        pool.for_each(20, &|outer| {
            for _ in outer {
                pool.for_each(20, &|inner| {
                    std::thread::sleep(Duration::from_micros(10));
                    total.fetch_add((inner.end - inner.start) as u32, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(total.into_inner(), 400);
    }

    #[test]
    fn a_panic_reaches_the_owner_and_the_pool_goes_on() {
        let pool = Pool::new(3);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.for_each(200, &|range| {
                std::thread::sleep(Duration::from_micros(30));
                assert!(!range.contains(&150), "stop");
            });
        }));
        assert!(outcome.is_err());
        let counts: Vec<AtomicU32> = (0..200).map(|_| AtomicU32::new(0)).collect();
        pool.for_each(200, &|range| long(&counts, range));
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn owners_on_several_threads_share_the_workers() {
        let pool = Pool::new(3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let counts: Vec<AtomicU32> = (0..100).map(|_| AtomicU32::new(0)).collect();
                    pool.for_each(100, &|range| long(&counts, range));
                    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                });
            }
        });
    }
}
