//! Times between two timer kernels with a row of nodes between them.
//!
//! A profile takes a part of such a time for the node, and the rest for the way to the node and
//! back. This shows what the rest depends on: the length of the row, and what ran before it.

use std::collections::BTreeMap;

use gridloom::prelude::*;

use super::{Add, Work, as_written, median};

const TIMERS: &str = include_str!("../../../gridloom-core/src/profile/timers.ptx");
/// The words of a timer that keeps one run.
const WORDS: usize = 7;
const LENGTHS: [usize; 7] = [0, 1, 2, 3, 5, 9, 13];
const ROUNDS: usize = 9;
const LAUNCHES: usize = 5;

/// What runs before the row.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Two short kernels with timers.
    Timed,
    /// One kernel of 100 µs with a timer.
    Long,
    /// The node of the row, with a timer.
    Same,
    /// Two short kernels without timers.
    Kernels,
    /// One kernel of 100 µs and then timers around nothing.
    LongThenTimers,
}

type StartTimer = Kernel<(PtrMut<u64>,)>;
type EndTimer = Kernel<(PtrMut<u64>, u64)>;

/// A chain under construction.
struct Chain<'a> {
    last: Node,
    words: &'a Buffer<u64>,
    timers: usize,
    start: &'a StartTimer,
    end: &'a EndTimer,
}

impl Chain<'_> {
    fn add(&mut self, add: &Add<'_>) -> Result<()> {
        self.last = add(&self.last)?;
        Ok(())
    }

    /// Adds timers around some nodes. Returns the number of the timer.
    fn timed(&mut self, nodes: &[&Add<'_>]) -> Result<usize> {
        let number = self.timers;
        self.timers += 1;
        let words = self.words.slice(WORDS * number..WORDS * (number + 1))?;
        let one = LaunchConfig::new(1, 1);
        self.last = self.last.launch(self.start, one, (&words,))?;
        nodes.iter().try_for_each(|node| self.add(node))?;
        self.last = self.last.launch(self.end, one, (&words, 1u64))?;
        Ok(number)
    }
}

/// The times of rows of one length: the time between the timers, and from and to the next timers.
#[derive(Default)]
struct Times {
    inside: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
}

fn measure(
    work: &Work,
    (start, end): (&StartTimer, &EndTimer),
    node: &Add<'_>,
    before: Before,
) -> Result<BTreeMap<usize, Times>> {
    let words = work.device.alloc::<u64>(WORDS * 5 * LENGTHS.len() * ROUNDS)?;
    let (short, long) =
        (work.kernel(0, LaunchConfig::new(1, 32), 1), work.kernel(0, LaunchConfig::new(1, 32), 28_000));
    let graph = Graph::new(&work.device);
    let first = graph.memset(&words, 0u32)?;
    let mut chain = Chain { last: first, words: &words, timers: 0, start, end };
    let mut rows = Vec::new();
    for round in 0..ROUNDS {
        for at in 0..LENGTHS.len() {
            let length = LENGTHS[(at + 3 * round) % LENGTHS.len()];
            match before {
                Before::Timed => {
                    chain.timed(&[&short])?;
                    chain.timed(&[&short])?;
                }
                Before::Long | Before::LongThenTimers => _ = chain.timed(&[&long])?,
                Before::Same => _ = chain.timed(&[node])?,
                Before::Kernels => (0..2).try_for_each(|_| chain.add(&short))?,
            }
            if matches!(before, Before::LongThenTimers) {
                chain.timed(&[])?;
            }
            rows.push((length, chain.timed(&vec![node; length])?));
            chain.timed(&[&short])?;
        }
    }
    let executable = as_written(&graph)?;
    let mut times: BTreeMap<usize, Times> = BTreeMap::new();
    for launch in 0..LAUNCHES {
        executable.launch(&work.stream)?;
        work.stream.synchronize()?;
        if launch == 0 {
            continue;
        }
        let stamps = words.to_vec()?;
        // The clock counts from long ago, so that only differences fit a floating-point number.
        let origin = stamps[5];
        let stamp =
            |timer: usize, word: usize| stamps[timer * WORDS + word].wrapping_sub(origin) as i64 as f64 / 1e3;
        for &(length, timer) in &rows {
            let times = times.entry(length).or_default();
            times.inside.push(stamp(timer, 6) - stamp(timer, 5));
            times.after.push(stamp(timer + 1, 5) - stamp(timer, 6));
            if timer > 0 {
                times.before.push(stamp(timer, 5) - stamp(timer - 1, 6));
            }
        }
    }
    Ok(times)
}

/// The times of a row by two events of the stream, and by two event nodes of the graph.
fn by_events(work: &Work, node: &Add<'_>, length: usize) -> Result<[f64; 2]> {
    let executable = work.copies(length, node)?;
    let graph = Graph::new(&work.device);
    let (start, end) = (work.device.event()?, work.device.event()?);
    let short = work.kernel(0, LaunchConfig::new(1, 32), 1);
    let first = short(&short(&graph.empty()?)?)?.record(&start)?;
    let last = (0..length).try_fold(first, |last, _| node(&last))?;
    short(&last.record(&end)?)?;
    let inside = as_written(&graph)?;
    let mut times = [vec![], vec![]];
    for _ in 0..15 {
        times[0].push(work.by_events(&executable)?);
        inside.launch(&work.stream)?;
        work.stream.synchronize()?;
        times[1].push(end.elapsed_since(&start)?.as_secs_f64() * 1e6);
    }
    Ok([median(&times[0]), median(&times[1])])
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
pub(super) fn print(work: &Work) -> Result<()> {
    let module = work.device.load_ptx(TIMERS)?;
    // SAFETY: the kernels use the seven words that they are given.
    let start: StartTimer = unsafe { module.kernel("gridloom_timer_start")? };
    // SAFETY: as above.
    let end: EndTimer = unsafe { module.kernel("gridloom_timer_end")? };
    let mega = 1 << 20;
    let (from, to) = (work.device.alloc::<u32>(16 * mega)?, work.device.alloc::<u32>(16 * mega)?);
    let host = work.device.alloc_host::<u32>(256)?;
    let mut nodes: Vec<(String, Add<'_>)> =
        vec![("kernel".to_owned(), work.kernel(0, LaunchConfig::new(1, 32), 1))];
    for (name, len) in [("1 KiB", 1 << 8), ("64 KiB", 1 << 14), ("1 MiB", 1 << 18), ("16 MiB", 4 * mega)] {
        let (from, to) = (from.slice(..len)?, to.slice(..len)?);
        let fill = from.clone();
        nodes.push((format!("fill {name}"), Box::new(move |last| last.memset(&fill, 7u32))));
        nodes.push((format!("copy {name}"), Box::new(move |last| last.memcpy(&to, &from))));
    }
    let target = to.slice(..256)?;
    nodes.push(("upload 1 KiB".to_owned(), Box::new(move |last| last.memcpy(&target, &host))));
    for (name, node) in &nodes {
        println!("{name}");
        let show = |of: &str, times: &[f64]| {
            let all: Vec<String> = times.iter().map(|time| format!("{time:8.3}")).collect();
            println!("  {of:24}{}", all.join(""));
        };
        show("nodes in the row", &LENGTHS.map(|length| length as f64));
        let events: Vec<[f64; 2]> =
            LENGTHS.iter().map(|&length| by_events(work, node, length)).collect::<Result<_>>()?;
        show("events of the stream", &events.iter().map(|times| times[0]).collect::<Vec<_>>());
        show("event nodes", &events.iter().map(|times| times[1]).collect::<Vec<_>>());
        for before in [Before::Timed, Before::Long, Before::Same, Before::Kernels, Before::LongThenTimers] {
            let times = measure(work, (&start, &end), node, before)?;
            let quantile = |times: &[f64], part: usize| {
                let mut times = times.to_vec();
                times.sort_by(f64::total_cmp);
                times[times.len() * part / 4]
            };
            let each = |of: &dyn Fn(&Times) -> f64| times.values().map(of).collect::<Vec<f64>>();
            show(&format!("{before:?}"), &each(&|times| median(&times.inside)));
            show("  from the timer before", &each(&|times| median(&times.before)));
            show("  to the timer after", &each(&|times| median(&times.after)));
            show("  first quarter", &each(&|times| quantile(&times.inside, 1)));
            show("  last quarter", &each(&|times| quantile(&times.inside, 3)));
        }
    }
    Ok(())
}
