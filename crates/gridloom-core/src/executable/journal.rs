//! The old contents of changed rows of the argument table, so that changes can be undone.

use super::row::{NONE, Pointer, Pointers, Row};
use crate::memory::RegionId;
use crate::speed::FEW_BYTES;

/// The contents of a row before the changes in progress.
pub(super) struct Record {
    /// The row, or [`NONE`] if the node's operation was replaced since.
    pub(super) row: u32,
    /// The bytes of the row, if they fit.
    pub(super) bytes: [u8; FEW_BYTES],
    /// The start of the bytes in [`Journal::bytes`], if they do not fit.
    pub(super) spilled: u32,
    /// Whether [`Journal::pointers`] has old pointers of the row.
    pub(super) has_pointers: bool,
    /// Whether an argument changed on which the contract of the kernel depends.
    pub(super) needs_check: bool,
}

/// Pointers of a row before one change.
pub(super) struct OldPointers {
    pub(super) row: u32,
    pub(super) old: Old,
}

pub(super) enum Old {
    /// The pointer at this index of the row.
    One(u32, Pointer),
    /// All pointers of the row. They are boxed because single pointers are replaced far more often.
    All(Box<Pointers>),
}

/// The old contents of changed rows, until the changes are committed or undone. Memory in the
/// journal counts as used.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) records: Vec<Record>,
    /// The bytes of rows that do not fit in their record.
    pub(super) bytes: Vec<u8>,
    /// Replaced pointers, in the order of the changes.
    pub(super) pointers: Vec<OldPointers>,
    /// The memory that was checked last.
    pub(super) checked: Option<RegionId>,
    /// Whether a record needs a check.
    pub(super) needs_check: bool,
}

impl Journal {
    /// Notes that the contract of a row's kernel has to be checked.
    #[inline]
    pub(super) fn require_check(&mut self, record: u32) {
        self.records[record as usize].needs_check = true;
        self.needs_check = true;
    }

    /// Records the contents of a row before its first change.
    #[inline(always)]
    pub(super) fn record(&mut self, number: usize, row: &mut Row) {
        if row.record == NONE {
            row.record = self.records.len() as u32;
            let spilled = self.bytes.len() as u32;
            let bytes = match row.bytes.short() {
                Some(bytes) => *bytes,
                None => self.spill(&row.bytes),
            };
            let row = number as u32;
            self.records.push(Record { row, bytes, spilled, has_pointers: false, needs_check: false });
        }
    }

    /// Records a pointer, with its index, before it is replaced in a row with a record. The journal
    /// takes over its use of memory.
    #[inline]
    pub(super) fn record_pointer(&mut self, (row, record): (usize, u32), (index, old): (u32, Pointer)) {
        self.records[record as usize].has_pointers = true;
        self.pointers.push(OldPointers { row: row as u32, old: Old::One(index, old) });
    }

    /// Records bytes that do not fit in a record.
    #[cold]
    fn spill(&mut self, bytes: &[u8]) -> [u8; FEW_BYTES] {
        self.bytes.extend_from_slice(bytes);
        [0; FEW_BYTES]
    }

    /// Returns the recorded bytes of a row with `len` bytes.
    pub(super) fn bytes_before<'a>(&'a self, record: &'a Record, len: usize) -> &'a [u8] {
        match record.bytes.get(..len) {
            Some(bytes) => bytes,
            None => &self.bytes[record.spilled as usize..][..len],
        }
    }

    /// Returns the bytes of a row before the changes in progress.
    pub(super) fn bytes_of<'a>(&'a self, row: &'a Row) -> &'a [u8] {
        match self.records.get(row.record as usize) {
            Some(record) => self.bytes_before(record, row.bytes.len()),
            None => &row.bytes,
        }
    }

    /// Returns the pointers of a row before the changes in progress.
    pub(super) fn pointers_of(&self, number: u32, row: &Row) -> Pointers {
        let mut pointers = row.pointers.clone();
        for OldPointers { old, .. } in self.pointers.iter().rev().filter(|old| old.row == number) {
            match old {
                Old::One(number, pointer) => pointers[*number as usize] = *pointer,
                Old::All(all) => pointers.clone_from(&**all),
            }
        }
        pointers
    }
}

impl Old {
    /// Puts the old pointers back into a row. Returns what they replace.
    pub(super) fn put_back(self, pointers: &mut Pointers) -> Old {
        match self {
            Old::One(number, pointer) => {
                Old::One(number, std::mem::replace(&mut pointers[number as usize], pointer))
            }
            Old::All(mut all) => {
                std::mem::swap(pointers, &mut *all);
                Old::All(all)
            }
        }
    }
}
