//! The accesses to each byte that a later access must follow.
//!
//! Memory is cut into pieces at the ends of accesses. A piece holds the writes that no later write
//! follows, and the reads since then. An access that follows all of them replaces them, because
//! whatever follows it also follows them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::AccessKind;
use super::access::{Access, Footprint, Space};
use crate::graph::definition::NodeKey;

/// A recorded access.
#[derive(Clone, Copy, Debug)]
struct Entry {
    node: NodeKey,
    footprint: Footprint,
}

#[derive(Clone, Debug, Default)]
struct Piece {
    /// One past the last byte of the piece.
    end: u64,
    writes: SmallVec<[Entry; 1]>,
    reads: SmallVec<[Entry; 2]>,
}

/// An earlier access that conflicts with a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) node: NodeKey,
    pub(super) kind: AccessKind,
    /// The first byte of a piece that both use. `bytes` is the length of the piece.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// The accesses to memory so far.
#[derive(Default)]
pub(super) struct History {
    spaces: FxHashMap<Space, BTreeMap<u64, Piece>>,
}

impl History {
    /// Returns the earlier accesses that conflict with a new one, each node once.
    pub(super) fn conflicts(&mut self, node: NodeKey, access: &Access<'_>) -> Vec<Conflict> {
        let pieces = self.spaces.entry(access.space).or_default();
        cut(pieces, access.start);
        cut(pieces, access.end);
        let mut conflicts: Vec<Conflict> = Vec::new();
        for (&start, piece) in pieces.range(access.start..access.end) {
            let bytes = piece.end - start;
            let mut add = |entry: &Entry, kind| {
                let is_new = conflicts.last().is_none_or(|last| last.node != entry.node);
                if is_new && entry.node != node && access.overlaps(&entry.footprint) {
                    conflicts.push(Conflict { node: entry.node, kind, start, bytes });
                }
            };
            piece.writes.iter().for_each(|entry| add(entry, AccessKind::Write));
            if access.kind == AccessKind::Write {
                piece.reads.iter().for_each(|entry| add(entry, AccessKind::Read));
            }
        }
        if conflicts.len() > 1 {
            let mut seen = rustc_hash::FxHashSet::default();
            conflicts.retain(|conflict| seen.insert(conflict.node));
        }
        conflicts
    }

    /// Adds an access whose conflicts are known. `ordered` returns whether the node follows an
    /// earlier node.
    pub(super) fn add(&mut self, node: NodeKey, access: &Access<'_>, ordered: impl Fn(NodeKey) -> bool) {
        let pieces = self.spaces.entry(access.space).or_default();
        let entry = Entry { node, footprint: access.footprint() };
        // A write with gaps does not replace what lies in the gaps.
        let replaces = |old: &Entry| {
            access.rows.is_none() && (old.node == node || ordered(old.node))
                || access.rows.is_some() && access.rows == old.footprint.rows && {
                    let same = access.start == old.footprint.start && access.end == old.footprint.end;
                    same && (old.node == node || ordered(old.node))
                }
        };
        match access.kind {
            AccessKind::Read => {
                let mut at = access.start;
                let mut gaps = Vec::new();
                for (&start, piece) in pieces.range_mut(access.start..access.end) {
                    if at < start {
                        gaps.push((at, start));
                    }
                    at = piece.end;
                    if piece.reads.last().is_none_or(|last| last.node != node) {
                        piece.reads.push(entry);
                    }
                }
                if at < access.end {
                    gaps.push((at, access.end));
                }
                for (start, end) in gaps {
                    let piece = Piece { end, reads: SmallVec::from_elem(entry, 1), ..Piece::default() };
                    pieces.insert(start, piece);
                }
            }
            AccessKind::Write => {
                let starts: SmallVec<[u64; 8]> =
                    pieces.range(access.start..access.end).map(|(&start, _)| start).collect();
                let mut left = Vec::new();
                for start in starts {
                    let Some(mut piece) = pieces.remove(&start) else { continue };
                    piece.writes.retain(|old| !replaces(old));
                    piece.reads.retain(|old| !replaces(old));
                    if !piece.writes.is_empty() || !piece.reads.is_empty() {
                        left.push((start, piece));
                    }
                }
                // One piece is enough where no earlier access is left.
                let mut at = access.start;
                for (start, mut piece) in left {
                    if at < start {
                        pieces.insert(at, written(entry, start));
                    }
                    at = piece.end;
                    piece.writes.push(entry);
                    pieces.insert(start, piece);
                }
                if at < access.end {
                    pieces.insert(at, written(entry, access.end));
                }
            }
        }
    }
}

fn written(entry: Entry, end: u64) -> Piece {
    Piece { end, writes: SmallVec::from_elem(entry, 1), ..Piece::default() }
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
