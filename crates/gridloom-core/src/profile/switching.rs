//! What it takes to go from a kernel to a fill or a copy and back.
//!
//! Many devices run fills and copies elsewhere than kernels. Timer kernels around a fill then also
//! measure the way there and back, which timers around nothing do not show. So the instrumented
//! copy of a graph with fills or copies runs some chains before the graph, several times by turns:
//! timers around one fill, around two rows of fills, and around two rows of kernels with and
//! without a fill between any two ([`Switching::of_chains`]). Before each of them run kernels with
//! timers, because the way to a fill takes longer soon after other fills. Only chains that start
//! alike can be compared.
//!
//! A driver may choose where a fill or copy runs by its size, its shape and the memory. So each
//! kind of them has chains of its own, on scratch memory. Drivers also run the bodies of
//! conditionals in another way than other graphs, so the chains of nodes in bodies run in a loop.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::recording::{ChainTimes, Cost, FEW, MANY, Run, Switching, TURNS};
use crate::backend;
use crate::error::Result;
use crate::graph::{Definition, NodeKey};
use crate::memory::{Base, MemoryKind, Region};
use crate::op::{CopySide, MemcpyOp, MemsetOp, Operation};

/// How often each chain runs, in a graph with few kinds of fills and copies.
const MOST_ROUNDS: usize = 5;
/// How often each chain runs at least.
const LEAST_ROUNDS: usize = 3;
/// The most nodes of all chains, if that leaves enough rounds.
const MOST_NODES: usize = 2000;
/// How many kernels with timers run before each chain.
const BEFORE: usize = 3;
/// The most kinds of fills and copies with chains of their own. Others are taken for the kind that
/// is most like them.
const MOST_KINDS: usize = 16;
/// The most bytes that a fill or copy of a chain writes. Larger ones are taken for one of this
/// size.
const MOST_BYTES: u64 = 16 << 20;
/// The distance of rows in the memory of chains is a multiple of this many bytes.
const PITCH: u64 = 512;

/// A kind of fills or copies: all of them take the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TransferKind {
    to: MemoryKind,
    /// For copies: the memory of the source, or `None` for bytes of the caller. For fills: `None`.
    from: Option<MemoryKind>,
    is_copy: bool,
    /// Whether it has several rows.
    has_rows: bool,
    /// The bytes of an element of a fill, and 1 for copies.
    unit: u32,
    /// The bytes that it writes, and no more than [`MOST_BYTES`].
    bytes: u64,
    /// Whether it is in the body of a conditional.
    in_body: bool,
}

/// The node of a chain.
#[derive(Clone, Copy)]
pub(super) enum Link {
    /// A kernel that does next to nothing.
    Kernel,
    /// The fill or copy of the kind with this number.
    Transfer(usize),
}

/// The chains to run before a graph.
#[derive(Default)]
pub(super) struct Chains {
    /// The fill or copy of each kind, on scratch memory, and whether it is in a body.
    transfers: Vec<(Operation, bool)>,
    /// The kind of each node, and whether the node differs from the one of the chains by nothing
    /// but the place of its memory.
    kinds: FxHashMap<NodeKey, (usize, bool)>,
    /// Whether there was no memory for chains.
    pub(super) lacks_memory: bool,
}

impl Chains {
    /// Returns no chains, because there is no memory for them.
    pub(super) fn without_memory() -> Chains {
        Chains { lacks_memory: true, ..Chains::default() }
    }

    /// Finds the kinds of fills and copies among some nodes, each with whether it is in a body.
    pub(super) fn new(
        device: &Arc<dyn backend::Device>,
        definition: &Definition,
        nodes: impl Iterator<Item = (NodeKey, bool)>,
    ) -> Result<Chains> {
        let mut found: Vec<(TransferKind, NodeKey)> = Vec::new();
        let mut chains = Chains::default();
        for (node, in_body) in nodes {
            let Some(kind) = kind_of(definition, node, in_body) else { continue };
            let known = found.iter().position(|(known, _)| *known == kind);
            let number = known.unwrap_or_else(|| {
                if found.len() < MOST_KINDS {
                    found.push((kind, node));
                    return found.len() - 1;
                }
                let alike = (0..found.len()).min_by_key(|&at| distance(found[at].0, kind));
                alike.unwrap_or(0)
            });
            let written = definition.node(node).operation().bytes_written();
            let is_same = found[number].0 == kind && !kind.has_rows && written == Some(kind.bytes);
            chains.kinds.insert(node, (number, is_same));
        }
        let mut scratch = Scratch { device, sizes: FxHashMap::default(), memory: FxHashMap::default() };
        found.iter().for_each(|(kind, _)| scratch.reserve(*kind));
        for (kind, node) in found {
            let transfer = on_scratch(definition.node(node).operation(), kind, &mut scratch)?;
            chains.transfers.push((transfer, kind.in_body));
        }
        Ok(chains)
    }

    /// Returns the fill or copy of the kind with this number.
    pub(super) fn transfer(&self, kind: usize) -> &Operation {
        &self.transfers[kind].0
    }

    /// Returns how often each chain runs, in bodies or elsewhere. With many kinds of fills and
    /// copies that is less often.
    pub(super) fn rounds(&self, in_body: bool) -> usize {
        let nodes: usize = self.round(in_body).iter().map(|chain| 2 + chain.len()).sum();
        MOST_NODES.checked_div(nodes).unwrap_or(0).clamp(LEAST_ROUNDS, MOST_ROUNDS)
    }

    /// Returns the chains of one round, in bodies or elsewhere, in the order in which they run.
    pub(super) fn round(&self, in_body: bool) -> Vec<Vec<Link>> {
        if self.kinds_in(in_body).next().is_none() {
            return Vec::new();
        }
        let alone = TURNS.map(|turns| vec![Link::Kernel; turns + 1]);
        let of_kind = |kind| {
            let it = Link::Transfer(kind);
            let [few_turns, more_turns] = TURNS.map(|turns| {
                let turns = std::iter::repeat_n([it, Link::Kernel], turns).flatten();
                std::iter::once(Link::Kernel).chain(turns).collect()
            });
            [vec![it], vec![it; FEW], vec![it; MANY], few_turns, more_turns]
        };
        let chains = alone.into_iter().chain(self.kinds_in(in_body).flat_map(of_kind));
        let kernels = || std::iter::repeat_n(vec![Link::Kernel], BEFORE);
        chains.flat_map(|chain| kernels().chain([chain])).collect()
    }

    fn kinds_in(&self, in_body: bool) -> impl Iterator<Item = usize> {
        (0..self.transfers.len()).filter(move |&kind| self.transfers[kind].1 == in_body)
    }

    /// Returns what going to fills and copies and back takes. `rounds` has the runs of the timers
    /// of each [`round`](Chains::round), outside of bodies and in them.
    pub(super) fn ways(&self, rounds: [&[Vec<Run>]; 2], cost: Cost) -> Ways<'_> {
        let mut each = vec![Switching::default(); self.transfers.len()];
        for (rounds, in_body) in rounds.into_iter().zip([false, true]) {
            let over_rounds = |time: &dyn Fn(&[Run]) -> u64| -> Vec<u64> {
                rounds.iter().map(|round| time(round)).collect()
            };
            let inside = |chain: usize| {
                over_rounds(&|runs| runs.get(chain).map_or(0, |run| run.end_ns.saturating_sub(run.start_ns)))
            };
            let until_next = |chain: usize| {
                over_rounds(&|runs| match runs.get(chain..=chain + 1) {
                    Some([one, next]) => next.start_ns.saturating_sub(one.end_ns),
                    _ => 0,
                })
            };
            // Each chain comes after some kernels.
            let place = |chain: usize| chain * (BEFORE + 1) + BEFORE;
            let kernels = [0, 1].map(place).map(inside);
            for (at, kind) in self.kinds_in(in_body).enumerate() {
                // The chains of a kind come after those of the kernels alone.
                let first = TURNS.len() + 5 * at;
                let [one, few, many] = [first, first + 1, first + 2].map(place).map(inside);
                let by_turns = [first + 3, first + 4].map(place).map(inside);
                let [before, after] = [place(first) - 1, place(first)].map(until_next);
                each[kind] = Switching::of_chains(
                    ChainTimes {
                        one: &one,
                        few: &few,
                        many: &many,
                        kernels: [&kernels[0], &kernels[1]],
                        by_turns: [&by_turns[0], &by_turns[1]],
                        before: &before,
                        after: &after,
                    },
                    cost,
                );
            }
        }
        Ways { chains: self, each, cost }
    }
}

/// What going to each kind of fills and copies and back takes.
pub(super) struct Ways<'a> {
    chains: &'a Chains,
    each: Vec<Switching>,
    cost: Cost,
}

impl Ways<'_> {
    /// Returns what going to a node and back takes. `runs` are those of its timer.
    pub(super) fn to(&self, node: NodeKey, runs: &[Run]) -> Switching {
        let Some(&(kind, is_same)) = self.chains.kinds.get(&node) else { return Switching::default() };
        if is_same { self.each[kind].fitted_to(runs, self.cost) } else { self.each[kind] }
    }
}

/// Returns how unlike two kinds are. Another kind of memory counts more than any size.
fn distance(one: TransferKind, other: TransferKind) -> u32 {
    let differs = |differs: bool, by: u32| if differs { by } else { 0 };
    let size = |kind: TransferKind| ((kind.bytes as f64).log2() * 2.0) as u32;
    size(one).abs_diff(size(other))
        + differs(one.unit != other.unit, 3)
        + differs(one.has_rows != other.has_rows, 100)
        + differs((one.to, one.from) != (other.to, other.from), 1_000)
        + differs(one.is_copy != other.is_copy, 10_000)
        + differs(one.in_body != other.in_body, 100_000)
}

fn kind_of(definition: &Definition, node: NodeKey, in_body: bool) -> Option<TransferKind> {
    let memory = |region: &Region| match &region.base {
        Base::Allocation(allocation) => Some(allocation.kind()),
        &Base::AllocNode(node) => definition.node(node).operation().as_alloc().map(|alloc| alloc.kind),
        Base::Bytes(_) => None,
    };
    let operation = definition.node(node).operation();
    let bytes = operation.bytes_written().filter(|&bytes| bytes > 0)?.min(MOST_BYTES);
    Some(match operation {
        Operation::Memset(fill) => {
            let to = memory(&fill.dst)?;
            let (has_rows, unit) = (fill.height > 1, fill.element_size);
            TransferKind { to, from: None, is_copy: false, has_rows, unit, bytes, in_body }
        }
        Operation::Memcpy(copy) => {
            let (to, from) = (memory(&copy.dst.region)?, memory(&copy.src.region));
            let has_rows = copy.height > 1 || copy.depth > 1;
            TransferKind { to, from, is_copy: true, has_rows, unit: 1, bytes, in_body }
        }
        _ => return None,
    })
}

/// Memory that nothing but the chains uses: one allocation for each side and kind of memory.
struct Scratch<'a> {
    device: &'a Arc<dyn backend::Device>,
    sizes: FxHashMap<(bool, MemoryKind), u64>,
    memory: FxHashMap<(bool, MemoryKind), Arc<dyn backend::Allocation>>,
}

impl Scratch<'_> {
    /// Makes the memory large enough for a fill or copy of this kind.
    fn reserve(&mut self, kind: TransferKind) {
        let bytes = if kind.has_rows { 4 * kind.bytes + 2 * PITCH } else { kind.bytes };
        let sides = [Some((false, kind.to)), kind.from.map(|from| (true, from))];
        for side in sides.into_iter().flatten() {
            let size = self.sizes.entry(side).or_default();
            *size = bytes.max(*size);
        }
    }

    fn of(&mut self, is_source: bool, kind: MemoryKind) -> Result<Region> {
        let side = (is_source, kind);
        let memory = match self.memory.get(&side) {
            Some(memory) => memory.clone(),
            None => self.device.allocate(self.sizes[&side], kind)?,
        };
        self.memory.insert(side, memory.clone());
        Ok(Region::whole(memory))
    }
}

/// Returns a fill or copy like this one, on scratch memory.
fn on_scratch(operation: &Operation, kind: TransferKind, scratch: &mut Scratch<'_>) -> Result<Operation> {
    let to = scratch.of(false, kind.to)?;
    // Rows may lie anywhere in large memory. Those of a chain lie close together, and are fewer
    // where they are short.
    let all = kind.bytes;
    let shape = |width: u64, unit: u64| {
        let width = width.min(all / unit).max(1);
        (width, (all / (width * unit).max(PITCH)).max(2))
    };
    let part = |region: &Region, bytes: u64| region.part(0, bytes).unwrap_or_else(|| region.clone());
    Ok(match operation {
        Operation::Memset(fill) => {
            let unit = u64::from(fill.element_size);
            if !kind.has_rows {
                let width = fill.width.min(MOST_BYTES / unit);
                let dst = part(&to, width * unit);
                return Ok(Operation::Memset(Arc::new(MemsetOp { dst, width, ..(**fill).clone() })));
            }
            let (width, height) = shape(fill.width, unit);
            let pitch = (width * unit).next_multiple_of(PITCH);
            let dst = part(&to, pitch * (height - 1) + width * unit);
            Operation::Memset(Arc::new(MemsetOp { dst, width, height, pitch, ..(**fill).clone() }))
        }
        Operation::Memcpy(copy) => {
            let from = kind.from.map(|kind| scratch.of(true, kind)).transpose()?;
            // Bytes of the caller are only read, so a chain reads them too.
            let from = from.unwrap_or_else(|| copy.src.region.clone());
            if !kind.has_rows {
                let bytes = copy.width.min(MOST_BYTES).min(from.bytes);
                let copy = MemcpyOp::linear(part(&to, bytes), part(&from, bytes), bytes);
                return Ok(Operation::Memcpy(Arc::new(copy)));
            }
            let (width, height) = shape(copy.width, 1);
            let pitch = width.next_multiple_of(PITCH);
            let bytes = pitch * (height - 1) + width;
            if from.bytes < bytes {
                // Bytes of the caller that are close together.
                let bytes = copy.width.min(from.bytes);
                let copy = MemcpyOp::linear(part(&to, bytes), part(&from, bytes), bytes);
                return Ok(Operation::Memcpy(Arc::new(copy)));
            }
            let side = |region| CopySide { region: part(region, bytes), pitch, rows: height };
            Operation::Memcpy(Arc::new(MemcpyOp {
                dst: side(&to),
                src: side(&from),
                width,
                height,
                depth: 1,
            }))
        }
        other => other.clone(),
    })
}
