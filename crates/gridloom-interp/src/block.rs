//! A block: its warps, shared memory and barriers, as a state machine that can be left and resumed.

use super::barrier::{self, Barriers};
use super::code::{BarrierAction, Code, Op};
use super::fault::{Fault, FaultKind, Raised, SourceLine, Waiting};
use super::lanes::{LANES, lanes_of};
use super::launch::Launch;
use super::memory::Memory;
use super::special::coordinates;
use super::warp::{Context, Warp};
use std::ops::Range;

/// How far a block has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some threads live.
    Running,
    /// All have exited.
    Done,
}

/// The state of a block. It outlives the block, so that its memory is used again for the next.
#[derive(Default)]
pub(crate) struct Block {
    index: [u32; 3],
    shared: Vec<u8>,
    warps: Vec<Warp>,
    /// Local memory of every thread, 32 per warp.
    local: Vec<Vec<u8>>,
    barriers: Barriers,
    last: Range<u64>,
}

impl Block {
    /// Starts the block of a linear index.
    pub(crate) fn reset(&mut self, launch: &Launch<'_>, linear: u64) {
        let code = &launch.kernel.code;
        let threads = launch.threads_per_block();
        let warps = threads.div_ceil(LANES as u32) as usize;
        self.index = coordinates(linear, launch.grid);
        self.shared.clear();
        self.shared.resize((launch.kernel.shared_bytes() + launch.dynamic_shared) as usize, 0);
        self.warps.resize_with(warps, Warp::default);
        self.local.resize_with(warps * LANES, Vec::new);
        self.barriers.reset(warps);
        self.last = 0..0;
        for ((i, warp), local) in (0..).zip(&mut self.warps).zip(self.local.chunks_mut(LANES)) {
            warp.reset(i, threads - i * LANES as u32, code, local);
        }
    }

    /// Gives every warp one turn.
    pub(crate) fn run(&mut self, launch: &Launch<'_>) -> Result<Progress, Box<Fault>> {
        let code = &launch.kernel.code;
        let mut ran = false;
        for i in 0..self.warps.len() {
            // A warp with lanes at a collective only may be complete since another of its lanes exited; it sees that itself.
            if self.warps[i].ready() == 0 {
                continue;
            }
            ran = true;
            let mut cx = Context {
                launch,
                code,
                memory: Memory {
                    shared: &mut self.shared,
                    local: &mut self.local[i * LANES..][..LANES],
                    params: launch.params,
                    map: launch.memory_map,
                    heap: launch.heap,
                    last: &mut self.last,
                },
                barriers: &mut self.barriers,
                block: self.index,
            };
            if let Err(raised) = self.warps[i].run(&mut cx) {
                return Err(self.fault(launch, i, raised));
            }
            barrier::release(&mut self.warps, &mut cx);
        }
        if self.warps.iter().all(|warp| warp.live == 0) {
            return Ok(Progress::Done);
        }
        if !ran {
            return Err(self.deadlock(launch));
        }
        Ok(Progress::Running)
    }

    fn thread(&self, launch: &Launch<'_>, warp: usize, lane: u32) -> [u32; 3] {
        coordinates((warp * LANES) as u64 + u64::from(lane), launch.block)
    }

    fn fault(&self, launch: &Launch<'_>, warp: usize, raised: Raised) -> Box<Fault> {
        let pc = self.warps[warp].pc[raised.lane.min(31) as usize];
        let (line, source) = position(&launch.kernel.code, pc);
        Box::new(Fault {
            kind: *raised.kind,
            kernel: launch.kernel.name().to_owned(),
            block: self.index,
            thread: self.thread(launch, warp, raised.lane.min(31)),
            line: Some(line).filter(|&line| line > 0),
            source,
        })
    }

    /// Every live thread waits, and nothing is left that could let one go on.
    fn deadlock(&mut self, launch: &Launch<'_>) -> Box<Fault> {
        let code = &launch.kernel.code;
        let mut first = None;
        let mut waiting: Vec<(u32, Waiting)> = Vec::new();
        for w in 0..self.warps.len() {
            for lane in lanes_of(self.warps[w].live) {
                first.get_or_insert((w, lane));
                let warp = &mut self.warps[w];
                let pc = warp.pc[lane as usize];
                let at = describe(warp, code, lane);
                match waiting.iter_mut().find(|(other, place)| *other == pc && place.at == at) {
                    Some((_, place)) => place.threads += 1,
                    None => {
                        let (line, source) = position(code, pc);
                        waiting.push((pc, Waiting { at, line, source, threads: 1 }));
                    }
                }
            }
        }
        let (warp, lane) = first.unwrap_or_default();
        Box::new(Fault {
            kind: FaultKind::Deadlock { waiting: waiting.into_iter().map(|(_, place)| place).collect() },
            kernel: launch.kernel.name().to_owned(),
            block: self.index,
            thread: self.thread(launch, warp, lane),
            line: None,
            source: None,
        })
    }
}

fn position(code: &Code, pc: u32) -> (u32, Option<SourceLine>) {
    code.positions.get(pc as usize).map_or((0, None), |position| (position.line, position.source.clone()))
}

/// What a lane waits at, in words.
fn describe(warp: &mut Warp, code: &Code, lane: u32) -> String {
    match &code.instructions[warp.pc[lane as usize] as usize].op {
        Op::Barrier(barrier) => {
            let base = warp.base[lane as usize];
            let id = warp.barrier[lane as usize];
            let what = if matches!(barrier.action, BarrierAction::Reduce { .. }) {
                "reducing barrier"
            } else {
                "barrier"
            };
            match barrier.threads {
                Some(threads) => {
                    format!("{what} {id} for {} threads", warp.registers(base, code).get(threads, lane))
                }
                None => format!("{what} {id}"),
            }
        }
        Op::Collective(_) => match warp.collective_of(code, lane) {
            Some((kind, members)) => format!("{kind} with mask {members:#x}"),
            None => "a collective".to_owned(),
        },
        _ => "an instruction".to_owned(),
    }
}
