//! The sixteen barriers of a block.
//!
//! Arrivals are counted per thread, as on all GPUs with independent thread scheduling: lanes of one
//! warp may arrive at different times and at different instructions. A barrier without a thread
//! count is complete when every live thread has arrived. A barrier with a count is complete when
//! that many threads have. Counts are whole warps, so a warp whose live lanes have all arrived
//! counts as 32, even if it is the last, partial one.

use super::code::{BarrierAction, Code, Op};
use super::fault::FaultKind;
use super::lanes::lanes_of;
use super::warp::Warp;
use gridloom_ptx::op::RedOp;

const BARRIERS: u32 = 16;

#[derive(Default)]
pub(crate) struct Barriers {
    /// The barriers at which some thread has arrived, as bits.
    pending: u16,
    state: [State; BARRIERS as usize],
}

#[derive(Default)]
struct State {
    /// The expected number of threads, or `None` for all threads of the block.
    expected: Option<u32>,
    /// The lanes of each warp that have arrived, waiting or not.
    arrived: Vec<u32>,
}

impl Barriers {
    pub(crate) fn reset(&mut self, warps: usize) {
        self.pending = 0;
        for state in &mut self.state {
            state.expected = None;
            state.arrived.clear();
            state.arrived.resize(warps, 0);
        }
    }

    /// Returns whether some thread has arrived at a barrier that is not complete.
    pub(crate) fn are_pending(&self) -> bool {
        self.pending != 0
    }

    /// Records that a thread arrived at a barrier. Returns the barrier's number.
    pub(crate) fn arrive(
        &mut self,
        id: u32,
        threads: Option<u32>,
        waits: bool,
        warp: u32,
        lane: u32,
    ) -> Result<u8, FaultKind> {
        let illegal = |reason: String| Err(FaultKind::IllegalInstruction { reason });
        if id >= BARRIERS {
            return illegal(format!("barrier {id}; barriers are numbered from 0 to {}", BARRIERS - 1));
        }
        match threads {
            Some(count) if count == 0 || !count.is_multiple_of(32) => {
                return illegal(format!(
                    "barrier {id} for {count} threads; the count must be a multiple of 32"
                ));
            }
            None if !waits => return illegal(format!("arrival at barrier {id} without a thread count")),
            _ => {}
        }
        let state = &mut self.state[id as usize];
        state.expected = threads;
        state.arrived[warp as usize] |= 1 << lane;
        self.pending |= 1 << id;
        Ok(id as u8)
    }

    /// Returns a complete barrier, if there is one, and resets it.
    fn complete(&mut self, warps: &[Warp]) -> Option<u8> {
        let complete = lanes_of(self.pending.into()).find(|&id| {
            let State { expected, arrived } = &self.state[id as usize];
            match expected {
                None => warps.iter().zip(arrived).all(|(warp, arrived)| warp.live & !arrived == 0),
                Some(expected) => {
                    let count = |(warp, &arrived): (&Warp, &u32)| match arrived {
                        0 => 0,
                        _ if warp.live & !arrived == 0 => 32,
                        _ => arrived.count_ones(),
                    };
                    warps.iter().zip(arrived).map(count).sum::<u32>() >= *expected
                }
            }
        })?;
        self.pending &= !(1 << complete);
        self.state[complete as usize].arrived.fill(0);
        Some(complete as u8)
    }
}

/// Releases every thread that waits at a complete barrier.
pub(crate) fn release(warps: &mut [Warp], barriers: &mut Barriers, code: &Code) {
    while let Some(id) = barriers.complete(warps) {
        let waiting = |warp: &Warp| {
            let lanes = lanes_of(warp.at_barrier).filter(|&lane| warp.barrier[lane as usize] == id);
            lanes.fold(0, |mask, lane| mask | 1 << lane)
        };
        let (mut all, mut any, mut count) = (true, false, 0);
        for_each_reduction(warps, code, waiting, |warp, lane, base, reduction| {
            let (_, predicate, _) = reduction;
            let value = warp.registers(base, code).get(predicate, lane) != 0;
            (all, any, count) = (all & value, any | value, count + u64::from(value));
        });
        for_each_reduction(warps, code, waiting, |warp, lane, base, (op, _, destination)| {
            let result = match op {
                RedOp::Popc => count,
                RedOp::And => all.into(),
                RedOp::Or => any.into(),
            };
            warp.registers(base, code).set(destination, lane, result);
        });
        for warp in warps.iter_mut() {
            let lanes = waiting(warp);
            warp.release(lanes);
        }
    }
}

type Reduction = (RedOp, super::lanes::Source, super::lanes::Slot);

fn for_each_reduction(
    warps: &mut [Warp],
    code: &Code,
    waiting: impl Fn(&Warp) -> u32,
    mut visit: impl FnMut(&mut Warp, u32, u32, Reduction),
) {
    for warp in warps {
        for lane in lanes_of(waiting(warp)) {
            let (pc, base) = (warp.pc[lane as usize], warp.base[lane as usize]);
            if let Op::Barrier(barrier) = &code.instructions[pc as usize].op
                && let BarrierAction::Reduce { op, predicate, destination } = barrier.action
            {
                visit(warp, lane, base, (op, predicate, destination));
            }
        }
    }
}
