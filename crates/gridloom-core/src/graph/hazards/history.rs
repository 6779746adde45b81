//! The accesses to each byte that a later access must follow.
//!
//! Memory is cut into pieces at the ends of plain accesses. A piece holds the writes that no later
//! write follows, and the reads since then. An access that follows all of them replaces them,
//! because whatever follows it also follows them.
//!
//! Accesses with gaps are kept apart, because the ranges of many such accesses cover each other:
//! columns of one matrix, for example.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::AccessKind;
use super::access::{Access, Space};
use super::footprint::Footprint;
use crate::graph::definition::NodeKey;

/// The largest number of entries. A graph with more is not compared completely.
const MOST_ENTRIES: usize = 20_000_000;

#[derive(Clone, Debug, Default)]
struct Piece {
    /// One past the last byte of the piece.
    end: u64,
    writes: SmallVec<[NodeKey; 1]>,
    reads: SmallVec<[NodeKey; 2]>,
}

/// Accesses with gaps, by their first byte and a number.
#[derive(Default)]
struct Gapped {
    entries: BTreeMap<(u64, usize), (NodeKey, Footprint)>,
    added: usize,
    /// The most bytes between the ends of an entry.
    longest: u64,
}

/// The accesses to one space.
#[derive(Default)]
struct Accesses {
    pieces: BTreeMap<u64, Piece>,
    gapped_writes: Gapped,
    gapped_reads: Gapped,
}

/// An earlier access that conflicts with a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) node: NodeKey,
    pub(super) kind: AccessKind,
    /// The first byte of a range that both use. `bytes` is its length.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// The accesses to memory so far.
#[derive(Default)]
pub(super) struct History {
    spaces: FxHashMap<Space, Accesses>,
    entries: usize,
}

impl History {
    /// Returns whether there were too many accesses to keep.
    pub(super) fn gave_up(&self) -> bool {
        self.entries >= MOST_ENTRIES
    }

    /// Returns the earlier accesses that conflict with a new one, each node once.
    pub(super) fn conflicts(&mut self, node: NodeKey, access: &Access<'_>) -> Vec<Conflict> {
        let Accesses { pieces, gapped_writes, gapped_reads } = self.spaces.entry(access.space).or_default();
        let footprint = &access.footprint;
        if !footprint.has_gaps() {
            cut(pieces, footprint.start);
            cut(pieces, footprint.end);
        }
        let is_write = access.kind == AccessKind::Write;
        let mut conflicts = Conflicts { node, found: Vec::new(), seen: FxHashSet::default() };
        for (&start, piece) in pieces.range(first_at(pieces, footprint.start)..footprint.end) {
            if piece.writes.is_empty() && (!is_write || piece.reads.is_empty()) {
                continue;
            }
            let Some(shared) = footprint.overlap(&Footprint::plain(start, piece.end)) else { continue };
            piece.writes.iter().for_each(|&entry| conflicts.add(entry, AccessKind::Write, || Some(shared)));
            if is_write {
                piece.reads.iter().for_each(|&entry| conflicts.add(entry, AccessKind::Read, || Some(shared)));
            }
        }
        for (_, (entry, theirs)) in gapped_writes.around(footprint) {
            conflicts.add(*entry, AccessKind::Write, || footprint.overlap(theirs));
        }
        if is_write {
            for (_, (entry, theirs)) in gapped_reads.around(footprint) {
                conflicts.add(*entry, AccessKind::Read, || footprint.overlap(theirs));
            }
        }
        conflicts.found
    }

    /// Adds an access whose conflicts are known. `ordered` returns whether the node follows an
    /// earlier node.
    pub(super) fn add(&mut self, node: NodeKey, access: &Access<'_>, ordered: impl Fn(NodeKey) -> bool) {
        if self.gave_up() {
            return;
        }
        let accesses = self.spaces.entry(access.space).or_default();
        let footprint = access.footprint;
        let replaces = |old: NodeKey| old == node || ordered(old);
        self.entries += match (access.kind, footprint.has_gaps()) {
            (AccessKind::Read, false) => read(&mut accesses.pieces, node, footprint),
            (AccessKind::Write, false) => {
                // Accesses with gaps are replaced if they lie inside.
                let covers = |old: &Footprint| footprint.start <= old.start && old.end <= footprint.end;
                accesses.gapped_writes.remove(&footprint, |entry, old| covers(old) && replaces(entry));
                accesses.gapped_reads.remove(&footprint, |entry, old| covers(old) && replaces(entry));
                write(&mut accesses.pieces, node, footprint, replaces)
            }
            (AccessKind::Read, true) => accesses.gapped_reads.add(node, footprint),
            (AccessKind::Write, true) => {
                // What lies in the gaps is not replaced, but an access to the same rows is.
                accesses.gapped_writes.remove(&footprint, |entry, old| *old == footprint && replaces(entry));
                accesses.gapped_reads.remove(&footprint, |entry, old| *old == footprint && replaces(entry));
                accesses.gapped_writes.add(node, footprint)
            }
        };
    }
}

/// The conflicts of one access.
struct Conflicts {
    node: NodeKey,
    found: Vec<Conflict>,
    seen: FxHashSet<NodeKey>,
}

impl Conflicts {
    fn add(&mut self, entry: NodeKey, kind: AccessKind, shared: impl FnOnce() -> Option<(u64, u64)>) {
        // Neighbouring pieces often have the same entry.
        let is_last = self.found.last().is_some_and(|last| last.node == entry);
        if is_last || entry == self.node || self.seen.contains(&entry) {
            return;
        }
        if let Some((start, bytes)) = shared() {
            self.seen.insert(entry);
            self.found.push(Conflict { node: entry, kind, start, bytes });
        }
    }
}

impl Gapped {
    fn add(&mut self, node: NodeKey, footprint: Footprint) -> usize {
        self.longest = self.longest.max(footprint.end - footprint.start);
        self.entries.insert((footprint.start, self.added), (node, footprint));
        self.added += 1;
        1
    }

    /// Returns the entries that may overlap a footprint.
    fn around(&self, footprint: &Footprint) -> impl Iterator<Item = (&(u64, usize), &(NodeKey, Footprint))> {
        let first = footprint.start.saturating_sub(self.longest);
        self.entries.range((first, 0)..(footprint.end, 0))
    }

    fn remove(&mut self, footprint: &Footprint, is_gone: impl Fn(NodeKey, &Footprint) -> bool) {
        let gone =
            |(key, (node, old)): (&(u64, usize), &(NodeKey, Footprint))| is_gone(*node, old).then_some(*key);
        let gone: Vec<(u64, usize)> = self.around(footprint).filter_map(gone).collect();
        for key in gone {
            self.entries.remove(&key);
        }
    }
}

/// Records a plain read. Returns the number of entries that were added.
fn read(pieces: &mut BTreeMap<u64, Piece>, node: NodeKey, footprint: Footprint) -> usize {
    let mut at = footprint.start;
    let mut gaps = Vec::new();
    let mut added = 0;
    for (&start, piece) in pieces.range_mut(footprint.start..footprint.end) {
        if at < start {
            gaps.push((at, start));
        }
        at = piece.end;
        if piece.reads.last().is_none_or(|&last| last != node) {
            piece.reads.push(node);
            added += 1;
        }
    }
    if at < footprint.end {
        gaps.push((at, footprint.end));
    }
    for (start, end) in gaps {
        pieces.insert(start, Piece { end, reads: SmallVec::from_elem(node, 1), ..Piece::default() });
        added += 1;
    }
    added
}

/// Records a plain write. Returns the number of entries that were added.
fn write(
    pieces: &mut BTreeMap<u64, Piece>,
    node: NodeKey,
    footprint: Footprint,
    replaces: impl Fn(NodeKey) -> bool,
) -> usize {
    let starts: SmallVec<[u64; 8]> =
        pieces.range(footprint.start..footprint.end).map(|(&start, _)| start).collect();
    let mut left = Vec::new();
    for start in starts {
        let Some(mut piece) = pieces.remove(&start) else { continue };
        piece.writes.retain(|old| !replaces(*old));
        piece.reads.retain(|old| !replaces(*old));
        if !piece.writes.is_empty() || !piece.reads.is_empty() {
            left.push((start, piece));
        }
    }
    // One piece is enough where no earlier access is left.
    let written = |end| Piece { end, writes: SmallVec::from_elem(node, 1), ..Piece::default() };
    let mut at = footprint.start;
    let mut added = 1;
    for (start, mut piece) in left {
        if at < start {
            pieces.insert(at, written(start));
        }
        at = piece.end;
        piece.writes.push(node);
        pieces.insert(start, piece);
        added += 2;
    }
    if at < footprint.end {
        pieces.insert(at, written(footprint.end));
    }
    added
}

/// Returns the start of the piece that contains a byte, or the byte if there is none.
fn first_at(pieces: &BTreeMap<u64, Piece>, at: u64) -> u64 {
    match pieces.range(..=at).next_back() {
        Some((&start, piece)) if piece.end > at => start,
        _ => at,
    }
}

/// Cuts the piece that contains a byte in two, so that one starts there.
fn cut(pieces: &mut BTreeMap<u64, Piece>, at: u64) {
    let Some((&start, piece)) = pieces.range_mut(..at).next_back() else { return };
    if piece.end <= at || start == at {
        return;
    }
    let mut second = piece.clone();
    piece.end = at;
    second.end = second.end.max(at);
    pieces.insert(at, second);
}
