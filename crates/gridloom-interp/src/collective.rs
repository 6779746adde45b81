//! Instructions that the lanes of a warp execute together: shuffles, votes, matches, reductions,
//! elections and the warp barrier.
//!
//! A lane waits at such an instruction until every live lane in its mask is at one of the same kind
//! with the same mask. They need not be at the same place in the program.

use super::code::{Code, Collective, CollectiveKind, Op};
use super::fault::{FaultKind, Raised};
use super::lanes::{LANES, Lanes, lanes_of};
use super::warp::{Context, Flow, Group, Warp};
use crate::numeric::F32;
use crate::numeric::compare::{self, Extremum};
use gridloom_ptx::ScalarType;
use gridloom_ptx::op::{ReduxOp, ShuffleMode, VoteMode};

/// The inputs and results of one collective, per lane.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The value that each lane contributes.
    pub value: Lanes,
    /// The second operand. For `shfl` it is the lane or distance.
    pub b: Lanes,
    /// The third operand. For `shfl` it holds clamp and segment.
    pub c: Lanes,
    /// The result of each lane.
    pub result: Lanes,
    /// The lanes whose predicate is true.
    pub predicate: u32,
}

impl Default for Exchange {
    fn default() -> Self {
        Self { value: [0; LANES], b: [0; LANES], c: [0; LANES], result: [0; LANES], predicate: 0 }
    }
}

impl Warp {
    /// Makes the active lanes of a group wait at a collective, and executes it if it is complete.
    pub(crate) fn meet(
        &mut self,
        cx: &mut Context<'_>,
        collective: &Collective,
        group: Group,
        active: u32,
    ) -> Result<Flow, Raised> {
        self.set_pc(group.mask, group.pc);
        let Some(mask) = collective.mask else {
            self.exchange(cx, active);
            return Ok(Flow::Next);
        };
        let registers = self.registers(group.base, cx.code);
        let masks = registers.lanes(mask);
        let members = masks[active.trailing_zeros() as usize] as u32;
        let mut uniform = true;
        for lane in lanes_of(active) {
            let own = masks[lane as usize] as u32;
            uniform &= own == members;
            if own & (1 << lane) == 0 {
                let reason = format!(
                    "lane {lane} executes {} with mask {own:#x}, which leaves it out",
                    collective.kind
                );
                return Err(FaultKind::IllegalInstruction { reason }.in_lane(lane));
            }
        }
        if uniform && members & self.live & !active == 0 {
            self.exchange(cx, active);
            return Ok(Flow::Next);
        }
        self.at_collective |= active;
        self.set_pc(group.mask & !active, group.pc + 1);
        Ok(Flow::Apart)
    }

    /// Executes the collectives at which all lanes have arrived.
    pub(crate) fn complete_collectives(&mut self, cx: &Context<'_>) {
        let mut unseen = self.at_collective;
        while unseen != 0 {
            let lane = unseen.trailing_zeros();
            let key = self.collective_of(cx.code, lane);
            let met = lanes_of(unseen).filter(|&other| self.collective_of(cx.code, other) == key);
            let met = met.fold(0, |mask, lane| mask | 1 << lane);
            unseen &= !met;
            let Some((_, members)) = key else { continue };
            if members & self.live & !met == 0 {
                self.exchange(cx, met);
                self.at_collective &= !met;
                for lane in lanes_of(met) {
                    self.pc[lane as usize] += 1;
                }
            }
        }
    }

    /// Returns the kind of collective that a waiting lane is at, and its mask.
    pub(crate) fn collective_of(&mut self, code: &Code, lane: u32) -> Option<(CollectiveKind, u32)> {
        let Op::Collective(collective) = &code.instructions[self.pc[lane as usize] as usize].op else {
            return None;
        };
        let base = self.base[lane as usize];
        let members = self.registers(base, code).get(collective.mask?, lane);
        Some((collective.kind, members as u32))
    }

    /// Executes the collective that the lanes are at. Each lane reads and writes the registers of
    /// its own instruction.
    fn exchange(&mut self, cx: &Context<'_>, lanes: u32) {
        let code = cx.code;
        let mut exchange = Exchange::default();
        let mut kind = None;
        let collective_at = |pc: u32| match &code.instructions[pc as usize].op {
            Op::Collective(collective) => Some(&**collective),
            _ => None,
        };
        for lane in lanes_of(lanes) {
            let i = lane as usize;
            let (pc, base) = (self.pc[i], self.base[i]);
            let Some(collective) = collective_at(pc) else { continue };
            let registers = self.registers(base, code);
            exchange.value[i] = registers.get(collective.value, lane);
            exchange.b[i] = registers.get(collective.b, lane);
            exchange.c[i] = registers.get(collective.c, lane);
            kind = Some(collective.kind);
        }
        let Some(kind) = kind else { return };
        exchange.compute(kind, lanes);
        for lane in lanes_of(lanes) {
            let i = lane as usize;
            let (pc, base) = (self.pc[i], self.base[i]);
            let Some(collective) = collective_at(pc) else { continue };
            let mut registers = self.registers(base, code);
            if let Some(destination) = collective.destination {
                registers.set(destination, lane, exchange.result[i]);
            }
            if let Some(predicate) = collective.predicate {
                registers.set(predicate, lane, (exchange.predicate >> lane & 1).into());
            }
        }
    }
}

impl Exchange {
    /// Computes the results of the given lanes. Those of other lanes are unchanged.
    pub fn compute(&mut self, kind: CollectiveKind, lanes: u32) {
        match kind {
            CollectiveKind::Shuffle(mode) => self.shuffle(mode, lanes),
            CollectiveKind::Vote(mode) => {
                let set = lanes_of(lanes).filter(|&lane| self.value[lane as usize] != 0);
                let set = set.fold(0u32, |mask, lane| mask | 1 << lane);
                let result = match mode {
                    VoteMode::All => u32::from(set == lanes),
                    VoteMode::Any => u32::from(set != 0),
                    VoteMode::Uni => u32::from(set == lanes || set == 0),
                    VoteMode::Ballot => set,
                };
                self.give_all(lanes, result.into());
            }
            CollectiveKind::MatchAny => {
                for lane in lanes_of(lanes) {
                    let same =
                        lanes_of(lanes).filter(|&o| self.value[o as usize] == self.value[lane as usize]);
                    self.result[lane as usize] = same.fold(0u32, |mask, lane| mask | 1 << lane).into();
                }
            }
            CollectiveKind::MatchAll => {
                let first = self.value[lanes.trailing_zeros() as usize];
                let same = lanes_of(lanes).all(|lane| self.value[lane as usize] == first);
                self.give_all(lanes, if same { lanes.into() } else { 0 });
                self.predicate |= if same { lanes } else { 0 };
            }
            CollectiveKind::Redux { op, ty, abs, nan } => {
                let values = lanes_of(lanes).map(|lane| self.value[lane as usize]);
                let values = values.map(|value| if abs { value & 0x7fff_ffff } else { value });
                let result = values.reduce(|a, b| reduce(op, ty, nan, a, b)).unwrap_or(0);
                self.give_all(lanes, result);
            }
            CollectiveKind::Elect => {
                let leader = lanes.trailing_zeros();
                self.give_all(lanes, leader.into());
                self.predicate |= 1 << leader;
            }
            CollectiveKind::Barrier => {}
        }
    }

    fn give_all(&mut self, lanes: u32, result: u64) {
        lanes_of(lanes).for_each(|lane| self.result[lane as usize] = result);
    }

    fn shuffle(&mut self, mode: ShuffleMode, lanes: u32) {
        for lane in lanes_of(lanes) {
            let i = lane as usize;
            let (source, valid) = shuffle_source(mode, lane, self.b[i] as u32, self.c[i] as u32);
            let source = if valid && lanes >> source & 1 == 1 { source } else { lane };
            self.result[i] = self.value[source as usize];
            self.predicate |= u32::from(valid) << lane;
        }
    }
}

/// Returns the lane that `shfl` reads from and whether it is in range, as the PTX manual defines. A
/// lane that reads from one that does not participate keeps its own value.
pub fn shuffle_source(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let b = b & 31;
    let (clamp, segment) = (c & 31, c >> 8 & 31);
    let last = (lane & segment) | (clamp & !segment);
    let first = lane & segment;
    match mode {
        ShuffleMode::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= last as i32),
        ShuffleMode::Down => (lane + b, lane + b <= last),
        ShuffleMode::Bfly => (lane ^ b, lane ^ b <= last),
        ShuffleMode::Idx => (first | (b & !segment), first | (b & !segment) <= last),
    }
}

fn reduce(op: ReduxOp, ty: ScalarType, nan: bool, a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    let result = match (op, ty) {
        (ReduxOp::And, _) => a & b,
        (ReduxOp::Or, _) => a | b,
        (ReduxOp::Xor, _) => a ^ b,
        (ReduxOp::Add, _) => a.wrapping_add(b),
        (ReduxOp::Min, ScalarType::S32) => (a as i32).min(b as i32) as u32,
        (ReduxOp::Max, ScalarType::S32) => (a as i32).max(b as i32) as u32,
        (ReduxOp::Min, ScalarType::F32) => compare::min::<F32>(a, b, Extremum { nan, ..Extremum::default() }),
        (ReduxOp::Max, ScalarType::F32) => compare::max::<F32>(a, b, Extremum { nan, ..Extremum::default() }),
        (ReduxOp::Min, _) => a.min(b),
        (ReduxOp::Max, _) => a.max(b),
    };
    result.into()
}

impl std::fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CollectiveKind::Shuffle(mode) => write!(f, "shfl.sync.{mode}"),
            CollectiveKind::Vote(mode) => write!(f, "vote.sync.{mode}"),
            CollectiveKind::MatchAny => f.write_str("match.any.sync"),
            CollectiveKind::MatchAll => f.write_str("match.all.sync"),
            CollectiveKind::Redux { op, ty, .. } => write!(f, "redux.sync.{op}.{ty}"),
            CollectiveKind::Elect => f.write_str("elect.sync"),
            CollectiveKind::Barrier => f.write_str("bar.warp.sync"),
        }
    }
}
