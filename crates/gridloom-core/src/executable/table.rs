//! The argument table of an executable.
//!
//! The table has a row for each kernel node whose arguments were ever changed: its argument buffer,
//! and what the addresses in the buffer refer to. From then on the row is the truth about the
//! node's arguments. A change is written to the row and passed to the backend. The definition is
//! brought up to date when somebody reads it ([`ArgTable::bring_up_to_date`]). The [`Journal`]
//! holds the old contents of rows while changes are in progress, so that they can be undone.

use std::sync::Arc;

use smallvec::SmallVec;

use super::journal::{Journal, Old, OldPointers};
use super::memory_pool::MemoryPool;
use super::row::{ArgSlot, Holds, NONE, Pointer, Row, Target, identity, write_at};
use crate::backend::{self, Allocation};
use crate::error::Result;
use crate::graph::{CowDefinition, Definition, NodeKey};
use crate::memory::{Base, Region, RegionId};
use crate::op::contract::ParamType;
use crate::op::{ArgValue, KernelArgs, KernelOp, Launch, Operation, PointerValue};

/// The index of a row in the table. A node keeps its row.
pub(super) type RowId = usize;

/// How much of a change the backend was told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// The backend may have applied a part of it.
    Part,
    All,
}

/// The number of rows that one backend call can change.
const TOGETHER: usize = 8;

/// The arguments of the kernels of an executable.
#[derive(Default)]
pub(super) struct ArgTable {
    /// The index of each node's row plus 1, or 0, by the index of the node.
    numbers: Vec<u32>,
    rows: Vec<Row>,
    pool: MemoryPool,
    /// The rows that the definition lags behind.
    ahead: Vec<u32>,
    journal: Journal,
}

impl ArgTable {
    /// Returns the row of a node, if it has a valid one.
    #[inline(always)]
    pub(super) fn find(&self, node: NodeKey) -> Option<RowId> {
        let number = (*self.numbers.get(node.index())? as usize).wrapping_sub(1);
        self.rows.get(number).filter(|row| row.is_current && row.node == node).map(|_| number)
    }

    /// Creates the row of a node from its launch in the definition.
    #[cold]
    pub(super) fn make(
        &mut self,
        definition: &Definition,
        node: NodeKey,
        launch: &KernelOp,
        backend: &mut dyn backend::Executable,
    ) -> RowId {
        if self.numbers.is_empty() {
            self.numbers = vec![0; definition.node_bound()];
        }
        let known = &mut self.numbers[node.index()];
        let number = if *known == 0 { self.rows.len() } else { *known as usize - 1 };
        *known = number as u32 + 1;
        let in_place = backend.prepare(number, node, launch);
        let row = Row::new(node, launch, &mut self.pool, in_place);
        match self.rows.get_mut(number) {
            Some(there) => *there = row,
            None => self.rows.push(row),
        }
        number
    }

    /// Returns the node of a row.
    pub(super) fn node(&self, row: RowId) -> NodeKey {
        self.rows[row].node
    }

    /// Returns the row of a node for changing, if it has a valid one, and records its contents before
    /// its first change.
    #[inline(always)]
    pub(super) fn find_to_change(&mut self, node: NodeKey) -> Option<RowId> {
        let number = (*self.numbers.get(node.index())? as usize).wrapping_sub(1);
        let row = self.rows.get_mut(number).filter(|row| row.is_current && row.node == node)?;
        self.journal.record(number, row);
        Some(number)
    }

    /// Returns the number of arguments of a row, if its node launches this kernel.
    #[inline]
    pub(super) fn count_of(&self, row: RowId, kernel: &Arc<dyn backend::Kernel>) -> Option<usize> {
        let row = &self.rows[row];
        (row.kernel == identity(kernel)).then(|| row.slots.len())
    }

    /// Replaces a plain value by another one of the same size. Returns `false`, and changes
    /// nothing, if the argument is not a plain value of this size. The row must be recorded.
    #[inline(always)]
    pub(super) fn set_plain(&mut self, row: RowId, index: usize, value: &[u8]) -> bool {
        let row = &mut self.rows[row];
        match row.slots.get(index) {
            Some(slot) if slot.size as usize == value.len() && slot.holds == Holds::Value => {
                if slot.is_checked {
                    self.journal.require_check(row.record);
                }
                write_at(&mut row.bytes, slot.offset as usize, value);
                true
            }
            _ => false,
        }
    }

    /// Returns whether an argument is this memory. Memory that can be freed meanwhile does not
    /// count.
    #[inline]
    pub(super) fn is_memory(&self, row: RowId, index: usize, memory: RegionId) -> bool {
        let row = &self.rows[row];
        match row.slots.get(index).map(|slot| slot.holds) {
            Some(Holds::Pointer(pointer)) => match row.pointers[pointer as usize].target {
                Target::Memory { region, outlives, .. } => region == memory && !outlives,
                _ => false,
            },
            _ => false,
        }
    }

    /// Replaces the address of memory by that of other, checked memory. Returns `false`, and
    /// changes nothing, if the argument is not such an address. The row must be recorded.
    #[inline]
    pub(super) fn set_memory(&mut self, number: RowId, index: usize, memory: &Region) -> bool {
        let ArgTable { rows, pool, journal, .. } = self;
        let row = &mut rows[number];
        let Some(&ArgSlot { offset, holds: Holds::Pointer(pointer), .. }) = row.slots.get(index) else {
            return false;
        };
        let there = &mut row.pointers[pointer as usize];
        let (Target::Memory { region: old, .. }, Some(region), Base::Allocation(allocation)) =
            (&there.target, RegionId::of(memory), &memory.base)
        else {
            return false;
        };
        if old.bytes() != region.bytes() || row.checks_places {
            journal.require_check(row.record);
        }
        let entry = pool.add_use(allocation);
        let address = pool.address(entry).wrapping_add(memory.offset);
        journal.record_pointer((number, row.record), (u32::from(pointer), *there));
        there.target = pool.target(region, entry);
        write_at(&mut row.bytes, offset as usize, &address.to_ne_bytes());
        true
    }

    /// Writes a checked value at byte `offset` of an argument, or over the whole argument if
    /// `offset` is `None`. Checks count and sizes. The row must be recorded. `launch` is the row's
    /// launch in the definition. Returns whether the row now refers to memory of an alloc node that
    /// it did not refer to before.
    #[cold]
    pub(super) fn set(
        &mut self,
        row: RowId,
        launch: &KernelOp,
        (index, offset): (usize, Option<usize>),
        value: &ArgValue,
    ) -> Result<bool> {
        let mut args = self.args(row, launch);
        let provided = match value {
            ArgValue::Pointer(PointerValue::Region(Region { base: Base::AllocNode(node), .. })) => {
                Some(*node)
            }
            _ => None,
        };
        match offset {
            Some(offset) => args.set(launch.kernel.name(), index, offset, value.clone())?,
            None => args.set_whole(launch.kernel.name(), index, value.clone())?,
        }
        let uses = |pointer: &Pointer| matches!(pointer.target, Target::AllocNode { node, .. } if Some(node) == provided);
        let is_new_use = provided.is_some() && !self.rows[row].pointers.iter().any(uses);
        let pointers = args.pointers.iter().map(|pointer| self.pool.pointer(pointer)).collect();
        let number = row as u32;
        let row = &mut self.rows[row];
        self.journal.records[row.record as usize].has_pointers = true;
        self.journal.require_check(row.record);
        let old = Old::All(Box::new(std::mem::replace(&mut row.pointers, pointers)));
        self.journal.pointers.push(OldPointers { row: number, old });
        row.bytes.copy_from_slice(&args.bytes);
        row.find_pointers();
        Ok(is_new_use)
    }

    /// Takes over the arguments of a checked launch. Returns `false`, and changes nothing, if more
    /// than the arguments differs.
    #[inline]
    pub(super) fn take_arguments(&mut self, number: RowId, launch: &KernelOp) -> bool {
        let there = &self.rows[number];
        let args = &launch.args;
        let is_alike = there.is_simple
            && there.kernel == identity(&launch.kernel)
            && there.config == launch.config
            && there.bytes.len() == args.bytes.len()
            && there.pointers.len() == args.pointers.len()
            && args.owner.is_none();
        if !is_alike {
            return false;
        }
        let mut is_moved = false;
        for (pointer, given) in there.pointers.iter().zip(&args.pointers) {
            if (pointer.index, pointer.offset) != (given.index, given.offset) {
                return false;
            }
            is_moved |= !pointer.target.is(&given.value);
        }
        if !is_moved && there.bytes[..] == args.bytes[..] {
            return true;
        }
        let row = &mut self.rows[number];
        self.journal.record(number, row);
        self.journal.require_check(row.record);
        if is_moved {
            for ((index, pointer), given) in (0..).zip(&mut row.pointers).zip(&args.pointers) {
                if !pointer.target.is(&given.value) {
                    self.journal.record_pointer((number, row.record), (index, *pointer));
                    pointer.target = self.pool.pointer(given).target;
                }
            }
        }
        row.bytes.copy_from_slice(&args.bytes);
        true
    }

    /// Returns whether this memory was checked last, and records it as the memory checked last.
    #[inline]
    pub(super) fn was_checked(&mut self, memory: RegionId) -> bool {
        self.journal.checked.replace(memory) == Some(memory)
    }

    /// Returns whether an argument refers, or once referred, to memory that another executable
    /// left.
    #[inline]
    pub(super) fn holds_outliving(&self) -> bool {
        self.pool.holds_outliving()
    }

    /// Forgets the memory that was checked last: the check failed, or the memory may be freed
    /// before the next argument.
    #[inline]
    pub(super) fn forget_checked(&mut self) {
        self.journal.checked = None;
    }

    /// Returns the first changed row whose arguments break the contract of its kernel. The contract
    /// was kept before, so rows are skipped if nothing changed that it depends on.
    #[inline]
    pub(super) fn broken(&self) -> Option<RowId> {
        if !self.journal.needs_check {
            return None;
        }
        let records = self.journal.records.iter();
        let changed = records.filter(|record| record.needs_check && record.row != NONE);
        changed.map(|record| record.row as RowId).find(|&row| {
            let row = &self.rows[row];
            row.signature.as_deref().is_some_and(|signature| !signature.is_kept_by(row))
        })
    }

    /// Returns the type of an argument, if the launch has types.
    #[inline]
    pub(super) fn param_type(&self, row: RowId, index: u32) -> Option<&ParamType> {
        self.rows[row].signature.as_deref()?.params().get(index as usize)
    }

    /// Checks a row against the contract of its kernel.
    #[cold]
    pub(super) fn check_contract(&self, row: RowId, kernel: &dyn backend::Kernel) -> Result<()> {
        let row = &self.rows[row];
        row.signature.as_deref().map_or(Ok(()), |signature| signature.check(kernel, row))
    }

    /// Returns whether there are changed rows that are not yet committed.
    #[inline]
    pub(super) fn has_changes(&self) -> bool {
        !self.journal.records.is_empty()
    }

    /// Returns the nodes whose rows were changed.
    pub(super) fn changed_nodes(&self) -> SmallVec<[NodeKey; 8]> {
        let changed = self.journal.records.iter().filter(|record| record.row != NONE);
        changed.map(|record| self.rows[record.row as usize].node).collect()
    }

    /// Passes the arguments of the changed rows to the backend.
    #[inline]
    pub(super) fn tell(&self, backend: &mut dyn backend::Executable) -> Told {
        let records = &self.journal.records;
        if let [record] = &records[..] {
            let row = &self.rows[record.row as usize];
            return match row.in_place {
                true => match backend.set_arguments(&[(record.row as usize, &row.bytes)]) {
                    Ok(true) => Told::All,
                    Ok(false) => Told::Nothing,
                    Err(_) => Told::Part,
                },
                false => Told::Nothing,
            };
        }
        if !records.iter().all(|record| self.rows[record.row as usize].in_place) {
            return Told::Nothing;
        }
        let mut told = Told::Nothing;
        for together in records.chunks(TOGETHER) {
            let mut arguments: [(usize, &[u8]); TOGETHER] = [(0, &[]); TOGETHER];
            for (argument, record) in arguments.iter_mut().zip(together) {
                *argument = (record.row as usize, &self.rows[record.row as usize].bytes);
            }
            match backend.set_arguments(&arguments[..together.len()]) {
                Ok(true) => told = Told::Part,
                Ok(false) => return told,
                Err(_) => return Told::Part,
            }
        }
        Told::All
    }

    /// Commits changes that the backend was told. The definition then lags behind.
    #[inline]
    pub(super) fn keep_ahead(&mut self, definition: &mut CowDefinition) {
        for record in &self.journal.records {
            let row = &mut self.rows[record.row as usize];
            row.record = NONE;
            if !row.is_ahead {
                row.is_ahead = true;
                self.ahead.push(record.row);
            }
            if record.has_pointers && !row.is_hollow {
                row.is_hollow = true;
                if let Some(launch) = launch_mut(definition.get_mut(), row.node) {
                    // The journal still holds the same memory, so nothing is freed here.
                    launch.args.pointers.clear();
                }
            }
        }
        self.clear_journal();
    }

    /// Undoes changes that are not in the definition.
    #[cold]
    pub(super) fn take_back(&mut self) {
        // In reverse, because a pointer may have been changed twice.
        for OldPointers { row, old } in std::mem::take(&mut self.journal.pointers).into_iter().rev() {
            let row = &mut self.rows[row as usize];
            match old.put_back(&mut row.pointers) {
                Old::One(_, new) => self.pool.remove_use_of_pointer(&new),
                Old::All(new) => new.iter().for_each(|new| self.pool.remove_use_of_pointer(new)),
            }
        }
        for record in std::mem::take(&mut self.journal.records) {
            let row = &mut self.rows[record.row as usize];
            row.record = NONE;
            let len = row.bytes.len();
            row.bytes.copy_from_slice(self.journal.bytes_before(&record, len));
            row.find_pointers();
        }
        self.clear_journal();
    }

    /// Writes the rows to a definition that lags behind. Changes in progress are left out.
    pub(super) fn bring_up_to_date(&mut self, definition: &mut Definition) {
        for number in self.ahead.drain(..) {
            let row = &mut self.rows[number as usize];
            row.is_ahead = false;
            let was_hollow = std::mem::take(&mut row.is_hollow);
            let bytes = self.journal.bytes_of(row);
            let Some(launch) = launch_mut(definition, row.node) else { continue };
            launch.args.bytes.copy_from_slice(bytes);
            if was_hollow {
                launch.args.pointers = self
                    .journal
                    .pointers_of(number, row)
                    .iter()
                    .map(|pointer| self.pool.pointer_arg(pointer))
                    .collect();
            }
        }
    }

    /// Returns whether the definition is up to date, except for changes in progress.
    #[inline]
    pub(super) fn is_in_definition(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Writes changed rows to a definition that is up to date, and adds the replaced operations to
    /// `replaced`.
    pub(super) fn write_to(
        &mut self,
        definition: &mut Definition,
        replaced: &mut SmallVec<[(NodeKey, Operation); 1]>,
    ) {
        for record in &self.journal.records {
            let Some(row) = self.rows.get(record.row as usize) else { continue };
            let Some(node) = definition.nodes.get_mut(row.node) else { continue };
            if let Operation::Kernel(launch) = &node.operation {
                let new = KernelOp { args: self.args(record.row as usize, launch), ..(**launch).clone() };
                let new = Operation::Kernel(Launch::new(new));
                replaced.push((row.node, std::mem::replace(&mut node.operation, new)));
            }
        }
    }

    /// Ends changes that are in the definition, committed or undone. A row is rebuilt later if it
    /// was undone, or if the backend must be asked again whether it accepts arguments in place.
    pub(super) fn leave_to_definition(&mut self, is_kept: bool) {
        for record in std::mem::take(&mut self.journal.records) {
            if let Some(row) = self.rows.get_mut(record.row as usize) {
                row.record = NONE;
                let has_other_kinds = record.has_pointers && {
                    let kinds = |pointers: &[Pointer]| {
                        let kind = |pointer: &Pointer| std::mem::discriminant(&pointer.target);
                        pointers.iter().map(kind).collect::<SmallVec<[_; 8]>>()
                    };
                    kinds(&self.journal.pointers_of(record.row, row)) != kinds(&row.pointers)
                };
                if !is_kept || row.in_place || has_other_kinds {
                    self.pool.forget(row);
                }
            }
        }
        self.clear_journal();
    }

    /// Invalidates the row of a node whose operation is replaced in an up-to-date definition.
    pub(super) fn forget(&mut self, node: NodeKey) {
        let Some(number) = self.find(node) else { return };
        let row = &mut self.rows[number];
        if let Some(record) = self.journal.records.get_mut(row.record as usize) {
            record.row = NONE;
            row.record = NONE;
            // The row may be rebuilt for other arguments before the changes end.
            let of_row = self.journal.pointers.iter_mut().filter(|old| old.row == number as u32);
            of_row.for_each(|old| old.row = NONE);
        }
        self.pool.forget(row);
    }

    /// Moves memory that no argument refers to into `into`. The caller drops it outside of any
    /// lock.
    #[inline]
    pub(super) fn take_unused(&mut self, into: &mut SmallVec<[Arc<dyn Allocation>; 4]>) {
        self.pool.take_unused(into);
    }

    #[inline]
    fn clear_journal(&mut self) {
        if !self.journal.pointers.is_empty() {
            self.forget_old_pointers();
        }
        self.journal.records.clear();
        self.journal.bytes.clear();
        self.journal.checked = None;
        self.journal.needs_check = false;
    }

    fn forget_old_pointers(&mut self) {
        for OldPointers { old, .. } in self.journal.pointers.drain(..) {
            match old {
                Old::One(_, pointer) => self.pool.remove_use_of_pointer(&pointer),
                Old::All(pointers) => {
                    pointers.iter().for_each(|pointer| self.pool.remove_use_of_pointer(pointer));
                }
            }
        }
    }

    /// Returns the arguments of a row. `launch` is the row's launch in the definition.
    fn args(&self, row: RowId, launch: &KernelOp) -> KernelArgs {
        let row = &self.rows[row];
        KernelArgs {
            bytes: SmallVec::from_slice(&row.bytes),
            layout: launch.args.layout.clone(),
            pointers: row.pointers.iter().map(|pointer| self.pool.pointer_arg(pointer)).collect(),
            owner: launch.args.owner.clone(),
        }
    }
}

/// Returns the launch of a kernel node for changing.
fn launch_mut(definition: &mut Definition, node: NodeKey) -> Option<&mut KernelOp> {
    match definition.nodes.get_mut(node).map(|node| &mut node.operation) {
        Some(Operation::Kernel(launch)) => Some(launch.make_mut()),
        _ => None,
    }
}
