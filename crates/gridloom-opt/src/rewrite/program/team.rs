//! The blocks that run a program together.

use super::{ProgramStep, threads};

/// The most threads of a block.
const MAX_THREADS: u64 = 1024;
const WARP: u64 = 32;

/// What orders the steps of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TeamBarrier {
    /// The barrier of a block. There is one block.
    Block,
    /// The barrier of a cluster. The launch has one cluster.
    Cluster,
    /// A counter in memory. The launch is cooperative, so that all blocks run at once.
    Grid,
    /// Nothing: a thread accesses nothing that another thread writes. Every step has the threads of
    /// the launch, and its blocks or the first of them.
    Thread,
}

/// The blocks that run a program together.
///
/// A block is divided into slots of equal numbers of threads, each of which runs a block of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Team {
    /// The number of blocks.
    pub blocks: u32,
    /// The number of slots of each block.
    pub slots: u32,
    /// The dynamic shared memory of each slot in bytes.
    pub shared: u32,
    /// What orders the steps.
    pub barrier: TeamBarrier,
}

impl Team {
    /// One block with one slot.
    pub const ONE_BLOCK: Team = Team { blocks: 1, slots: 1, shared: 0, barrier: TeamBarrier::Block };

    pub(super) fn is_one_block(self) -> bool {
        (self.blocks, self.slots) == (1, 1)
    }

    /// Returns the dynamic shared memory of each block in bytes.
    #[must_use]
    pub fn dynamic_shared(self) -> u32 {
        self.shared.saturating_mul(self.slots)
    }

    /// Returns the threads of a slot for blocks of so many threads: a whole number of warps.
    #[must_use]
    pub fn slot_threads(largest: u64) -> u64 {
        largest.next_multiple_of(WARP)
    }

    /// Returns the threads of a block, which are all along x.
    pub(super) fn block(self, steps: &[ProgramStep]) -> Result<[u32; 3], String> {
        let largest = steps.iter().map(|step| threads(step.block)).max().ok_or("there are no steps")?;
        let all = Self::slot_threads(largest) * u64::from(self.slots);
        if all > MAX_THREADS {
            return Err(format!("{} blocks of {largest} threads do not fit one block", self.slots));
        }
        Ok([all as u32, 1, 1])
    }
}

/// The memory that a program keeps between launches. Its address is a parameter.
///
/// It starts with zeros. A launch that ends leaves it so that the next one can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The offset of the address in the parameters.
    pub at: u32,
    /// The number of words of 8 bytes.
    pub words: u32,
}

impl State {
    /// The alignment. What blocks wait for is apart from what they store, so that they do not share
    /// a line of a cache, for which the stores would wait.
    pub(crate) const ALIGN: u32 = 128;
    /// The offset of the counter of arrivals, of 4 bytes.
    pub(super) const ARRIVALS: i64 = 0;
    /// The offsets of the words that blocks arrive at by turns if they announce a condition, each
    /// with 8 bytes for the next launch.
    pub(super) const ANNOUNCED: [i64; 2] = [0, 16];
    /// The offset of the number of the last phase, of 8 bytes.
    pub(super) const PHASE: i64 = Self::ALIGN as i64;
    /// The offset of the first condition.
    const CONDITIONS: u32 = Self::ALIGN + 16;
    /// The size of a condition: two entries with a value and a phase of 8 bytes each.
    const CONDITION_BYTES: u32 = 32;
    /// Returns the number of words that a team needs.
    pub(super) fn words(team: Team, conditions: u32) -> u32 {
        match (team.barrier, team.blocks) {
            (TeamBarrier::Grid, _) => Self::condition(conditions) / 8,
            (_, 1) => 0,
            (_, _) if conditions == 0 => 0,
            (_, _) => Self::condition(conditions) / 8,
        }
    }

    /// Returns the offset of a condition. Its address is the handle that steps get.
    #[must_use]
    pub fn condition(number: u32) -> u32 {
        Self::CONDITIONS + number * Self::CONDITION_BYTES
    }
}
