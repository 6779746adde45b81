//! Loops over independent indices, which are shared once they prove to be long.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Pool, Work};

/// The time that the owner works alone before it estimates the rest.
const PROBE_NS: u64 = 4_000;
/// The remaining time below which the rest ends before a sleeping worker has woken up.
const WORTH_NS: u64 = 20_000;
/// The longest time that a range should take while much is left. A kernel reads memory in order. A
/// thread that alternates with others every few microseconds loses more to data that is not
/// prefetched than to computation.
const LONGEST_NS: u64 = 200_000;
/// The shortest time of a range, towards the end. Longer ranges would leave threads waiting for the
/// last one.
const SHORTEST_NS: u64 = 25_000;

/// The time that one index of a loop took last. If it is longer than judging a loop takes, the next
/// loop is shared from its first index on.
#[derive(Default)]
pub(crate) struct Pace(AtomicU64);

impl Pace {
    fn known(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&each| each > WORTH_NS)
    }

    fn note(&self, each: u64) {
        self.0.store(each, Ordering::Relaxed);
    }
}

/// Does the indices of a range. Returns `Break` if the rest of the loop is not wanted any more.
type Body<'a> = dyn Fn(Range<u64>) -> ControlFlow<()> + Sync + 'a;

/// The rest of a loop.
struct Rest<'a> {
    next: AtomicU64,
    end: u64,
    /// The divisor of the remaining length that gives the length of the next range, within the two
    /// bounds below.
    shares: u64,
    shortest: u64,
    longest: u64,
    body: &'a Body<'a>,
}

impl Rest<'_> {
    /// Takes the next range. Ranges are handed out in rising order, because blocks may wait for
    /// earlier blocks.
    fn take(&self) -> Option<Range<u64>> {
        let after = |start: u64| {
            let left = self.end - start;
            start + (left / self.shares).clamp(self.shortest, self.longest).min(left)
        };
        let start = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |start| {
            (start < self.end).then(|| after(start))
        });
        start.ok().map(|start| start..after(start))
    }

    fn run(&self, range: Range<u64>) {
        if (self.body)(range).is_break() {
            self.next.store(self.end, Ordering::Relaxed);
        }
    }
}

impl Work for Rest<'_> {
    fn available(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.end
    }

    fn help(&self) {
        while let Some(range) = self.take() {
            self.run(range);
        }
    }
}

impl Pool {
    /// Calls `body` with ranges that together cover `0..count`. It starts on this thread. Others
    /// join if the loop takes long, or did so last time.
    pub(crate) fn for_each(&self, count: u64, pace: &Pace, body: &(dyn Fn(Range<u64>) + Sync)) {
        self.try_for_each(count, pace, &|range| {
            body(range);
            ControlFlow::Continue(())
        });
    }

    /// Does the same, but skips ranges that no thread has taken when `body` returns `Break`.
    pub(crate) fn try_for_each(&self, count: u64, pace: &Pace, body: &Body<'_>) {
        if self.threads == 1 || count < 2 {
            let _ = body(0..count);
            return;
        }
        let Some((done, each)) = pace.known().map(|each| (0, each)).or_else(|| probe(count, body)) else {
            return;
        };
        if each.saturating_mul(count - done) < WORTH_NS {
            let _ = body(done..count);
            return;
        }
        let shortest = (SHORTEST_NS / each).max(1);
        let rest = Rest {
            next: AtomicU64::new(done),
            end: count,
            shares: self.threads as u64 * 2,
            shortest,
            longest: (LONGEST_NS / each).max(1),
            body,
        };
        self.post(&rest, |_| {
            self.shared.sleep.announce((count - done).div_ceil(shortest) as usize - 1);
            if let Some(range) = rest.take() {
                let (length, start) = (range.end - range.start, Instant::now());
                rest.run(range);
                pace.note(start.elapsed().as_nanos() as u64 / length);
            }
            rest.help();
        });
    }
}

/// Starts a loop on this thread alone. Returns the number of finished indices and the time of each,
/// or `None` if the loop is finished or broken off.
fn probe(count: u64, body: &Body<'_>) -> Option<(u64, u64)> {
    let start = Instant::now();
    let (mut done, mut chunk) = (0, 1);
    loop {
        let flow = body(done..done + chunk);
        done += chunk;
        if done == count || flow.is_break() {
            return None;
        }
        let elapsed = start.elapsed().as_nanos() as u64;
        if elapsed >= PROBE_NS {
            return Some((done, (elapsed / done).max(1)));
        }
        chunk = (chunk * 2).min(count - done);
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
                pool.for_each(count, &Pace::default(), &|range| long(&counts, range));
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads} {count}");
            }
        }
    }

    #[test]
    fn loops_inside_loops_come_to_their_end() {
        let pool = Pool::new(4);
        let total = AtomicU32::new(0);
        pool.for_each(20, &Pace::default(), &|outer| {
            for _ in outer {
                pool.for_each(20, &Pace::default(), &|inner| {
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
            pool.for_each(200, &Pace::default(), &|range| {
                std::thread::sleep(Duration::from_micros(30));
                assert!(!range.contains(&150), "stop");
            });
        }));
        assert!(outcome.is_err());
        let counts: Vec<AtomicU32> = (0..200).map(|_| AtomicU32::new(0)).collect();
        pool.for_each(200, &Pace::default(), &|range| long(&counts, range));
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn owners_on_several_threads_share_the_workers() {
        let pool = Pool::new(3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let counts: Vec<AtomicU32> = (0..100).map(|_| AtomicU32::new(0)).collect();
                    pool.for_each(100, &Pace::default(), &|range| long(&counts, range));
                    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                });
            }
        });
    }

    #[test]
    fn ranges_get_shorter_towards_the_end_and_leave_nothing_out() {
        let body = |_: Range<u64>| ControlFlow::Continue(());
        let rest =
            Rest { next: AtomicU64::new(10), end: 1010, shares: 4, shortest: 7, longest: 100, body: &body };
        let ranges: Vec<Range<u64>> = std::iter::from_fn(|| rest.take()).collect();
        let lengths: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        assert_eq!((ranges[0].start, lengths[0]), (10, 100));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
        assert!(lengths.windows(2).all(|pair| pair[0] >= pair[1]), "{lengths:?}");
        assert!(lengths[..lengths.len() - 1].iter().all(|&length| length >= 7), "{lengths:?}");
        assert_eq!(ranges.last().unwrap().end, 1010);
    }

    #[test]
    fn a_loop_that_breaks_off_ends_however_long_it_is() {
        for threads in [1, 2, 5] {
            let (pool, done) = (Pool::new(threads), AtomicU32::new(0));
            pool.try_for_each(u64::MAX, &Pace::default(), &|_| match done.fetch_add(1, Ordering::Relaxed) {
                0..100 if threads > 1 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            });
            assert!(done.into_inner() < 200, "{threads}");
        }
    }

    #[test]
    fn a_loop_that_was_slow_is_shared_from_its_first_index_on() {
        let (pool, pace) = (Pool::new(2), Pace::default());
        pool.for_each(4, &pace, &|_| std::thread::sleep(Duration::from_millis(1)));
        // Each of two indices waits for the other, so that both have to run at once.
        let begun = AtomicU32::new(0);
        pool.for_each(2, &pace, &|_| {
            begun.fetch_add(1, Ordering::Relaxed);
            let start = Instant::now();
            while begun.load(Ordering::Relaxed) < 2 {
                assert!(start.elapsed() < Duration::from_secs(30), "the first index ran alone");
                std::thread::yield_now();
            }
        });
    }
}
