//! The bytes of an access: a plain range, or rows with gaps between them.

/// Pairs of rows that are compared one by one. Beyond that, rows with different gaps count as
/// overlapping.
const MOST_ROWS: u64 = 4096;

/// The bytes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Footprint {
    /// The first byte.
    pub(super) start: u64,
    /// One past the last byte.
    pub(super) end: u64,
    /// The rows between the two, if there are gaps between them.
    rows: Option<Rows>,
}

/// Rows with gaps between them, in planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rows {
    width: u64,
    pitch: u64,
    height: u64,
    /// The bytes from one plane to the next, at least those of a whole plane.
    plane: u64,
    depth: u64,
}

impl Footprint {
    /// Returns the bytes from `start` to `end`.
    pub(super) fn plain(start: u64, end: u64) -> Self {
        Footprint { start, end, rows: None }
    }

    /// Rows of `width` bytes, `pitch` bytes apart, `height` in a plane, in `depth` planes that are
    /// `plane` bytes apart. `end` is the end of the memory.
    pub(super) fn rows(
        start: u64,
        end: u64,
        [width, height, depth]: [u64; 3],
        pitch: u64,
        plane: u64,
    ) -> Self {
        let mut rows = Rows { width, pitch, height, plane, depth };
        if rows.depth > 1 && rows.height <= 1 {
            (rows.pitch, rows.height, rows.depth) = (plane, depth, 1);
        }
        if rows.depth > 1 && Some(rows.plane) == rows.pitch.checked_mul(rows.height) {
            (rows.height, rows.depth) = (rows.height.saturating_mul(rows.depth), 1);
        }
        if rows.height > 1 && rows.pitch == rows.width {
            (rows.width, rows.height) = (rows.width.saturating_mul(rows.height), 1);
            if rows.depth > 1 {
                (rows.pitch, rows.height, rows.depth) = (plane, depth, 1);
            }
        }
        let bytes = (rows.depth.max(1) - 1)
            .saturating_mul(rows.plane)
            .saturating_add((rows.height.max(1) - 1).saturating_mul(rows.pitch))
            .saturating_add(rows.width);
        let end = end.min(start.saturating_add(bytes));
        let has_gaps = rows.height > 1 && rows.pitch > rows.width;
        Footprint { start, end, rows: has_gaps.then_some(rows) }
    }

    /// Returns whether there are gaps.
    pub(super) fn has_gaps(&self) -> bool {
        self.rows.is_some()
    }

    /// Returns the first bytes that both have, as start and length. For many rows with different
    /// gaps the answer may be `Some` although they have none.
    pub(super) fn overlap(&self, other: &Footprint) -> Option<(u64, u64)> {
        match (self.rows, other.rows) {
            (None, None) => {
                let (start, end) = (self.start.max(other.start), self.end.min(other.end));
                (start < end).then(|| (start, end - start))
            }
            (Some(_), None) => self.touched(other.start, other.end),
            (None, Some(_)) => other.touched(self.start, self.end),
            (Some(ours), Some(theirs)) => {
                if ours.pitch == theirs.pitch && ours.depth == 1 && theirs.depth == 1 {
                    return if self.start <= other.start {
                        same_pitch(self.start, ours, other.start, theirs)
                    } else {
                        same_pitch(other.start, theirs, self.start, ours)
                    };
                }
                if ours.count() <= theirs.count() {
                    self.by_rows(ours, other)
                } else {
                    other.by_rows(theirs, self)
                }
            }
        }
    }

    /// Compares row by row.
    fn by_rows(&self, rows: Rows, other: &Footprint) -> Option<(u64, u64)> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        if start >= end {
            return None;
        }
        if rows.count() > MOST_ROWS {
            return Some((start, end - start));
        }
        (0..rows.depth).flat_map(|plane| (0..rows.height).map(move |row| (plane, row))).find_map(
            |(plane, row)| {
                let from = self.start.saturating_add(plane * rows.plane).saturating_add(row * rows.pitch);
                other.touched(from, from.saturating_add(rows.width).min(self.end))
            },
        )
    }

    /// Returns the first bytes of a plain range that are among these.
    fn touched(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (from, to) = (from.max(self.start), to.min(self.end));
        if from >= to {
            return None;
        }
        let Some(rows) = self.rows else { return Some((from, to - from)) };
        if rows.depth == 1 {
            return rows.touched(self.start, from, to);
        }
        let planes = (from - self.start) / rows.plane..=(to - 1 - self.start) / rows.plane;
        // A range that ends three planes later contains a whole one.
        planes.take(3).find_map(|plane| rows.touched(self.start.saturating_add(plane * rows.plane), from, to))
    }
}

impl Rows {
    fn count(&self) -> u64 {
        self.height.saturating_mul(self.depth)
    }

    /// Returns the first bytes of a plain range that are in rows of the plane at `base`.
    fn touched(&self, base: u64, from: u64, to: u64) -> Option<(u64, u64)> {
        let end =
            base.saturating_add((self.height - 1).saturating_mul(self.pitch)).saturating_add(self.width);
        let (from, to) = (from.max(base), to.min(end));
        if from >= to {
            return None;
        }
        let at = (from - base) % self.pitch;
        // In a row, or else in the gap after one.
        let (start, row_end) = if at < self.width {
            (from, from - at + self.width)
        } else {
            (from - at + self.pitch, from - at + self.pitch + self.width)
        };
        (start < to).then(|| (start, row_end.min(to) - start))
    }
}

/// Compares columns of one matrix: rows of the same pitch, of which `first` starts no later.
fn same_pitch(first: u64, ours: Rows, second: u64, theirs: Rows) -> Option<(u64, u64)> {
    let pitch = ours.pitch;
    let (row, shift) = ((second - first) / pitch, (second - first) % pitch);
    if row < ours.height && shift < ours.width {
        return Some((second, theirs.width.min(ours.width - shift)));
    }
    // Their rows may reach over the end of a line into our next row.
    let over = (shift + theirs.width).saturating_sub(pitch);
    (row + 1 < ours.height && over > 0).then(|| (second - shift + pitch, over.min(ours.width)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Random;
    use super::*;

    fn bytes(footprint: &Footprint) -> Vec<u64> {
        let Some(rows) = footprint.rows else { return (footprint.start..footprint.end).collect() };
        let row = |plane, row| footprint.start + plane * rows.plane + row * rows.pitch;
        (0..rows.depth)
            .flat_map(|plane| {
                (0..rows.height).flat_map(move |at| (0..rows.width).map(move |x| row(plane, at) + x))
            })
            .collect()
    }

    #[test]
    fn two_footprints_overlap_exactly_where_they_have_a_byte_in_common() {
        let mut numbers = Random(1);
        let mut below = |bound| numbers.below(bound);
        let mut random = || {
            let (width, height, depth) = (1 + below(5), 1 + below(4), 1 + below(3));
            let pitch = if below(3) == 0 { 8 } else { width + below(6) };
            let pitch = pitch.max(width);
            let plane = pitch * (height + below(3));
            Footprint::rows(below(60), 10_000, [width, height, depth], pitch, plane)
        };
        let (mut apart, mut together) = (0, 0);
        for _ in 0..50_000 {
            let (one, other) = (random(), random());
            assert_eq!(bytes(&one).last(), Some(&(one.end - 1)));
            let (ours, theirs) = (bytes(&one), bytes(&other));
            let common: Vec<u64> = ours.iter().copied().filter(|byte| theirs.contains(byte)).collect();
            match one.overlap(&other) {
                None => {
                    assert!(common.is_empty(), "{one:?} {other:?}");
                    apart += 1;
                }
                Some((start, length)) => {
                    for byte in start..start + length {
                        assert!(common.contains(&byte), "{one:?} {other:?} at {byte}");
                    }
                    assert!(length > 0);
                    together += 1;
                }
            }
            assert_eq!(one.overlap(&other).is_some(), other.overlap(&one).is_some());
        }
        assert!(apart > 1000 && together > 1000, "{apart} apart, {together} together");
    }
}
