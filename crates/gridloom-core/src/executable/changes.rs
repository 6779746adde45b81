//! Changes of an executable that are made together or not at all.
//!
//! Changed kernel arguments go to the [table](super::table), everything else to the definition.
//! When all changes are written, the backend is told once. If only arguments changed and the
//! backend supports it, the backend gets the new arguments in place. Otherwise it gets the
//! definition. A failed change or a panic undoes everything.

use std::sync::Arc;

use smallvec::SmallVec;

use super::State;
use super::current::Current;
use super::table::{ArgTable, RowId, Told};
use super::update::check_replaceable;
use crate::backend::{self, Allocation};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{
    Checker, ConditionKey, Definition, GraphKey, NodeKey, aligned, check_contract, compare, lifetimes,
    uses_outliving,
};
use crate::memory::{Region, RegionId};
use crate::op::contract::{ParamType, param_type};
use crate::op::{ArgValue, KernelOp, Operation, PointerValue};

/// What changes removed from an executable. Dropping it may run user code, so it must be dropped
/// outside of any lock.
#[derive(Default)]
pub struct Replaced {
    memory: SmallVec<[Arc<dyn Allocation>; 4]>,
    /// Everything else. It is boxed because most changes concern only arguments and are frequent.
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    operations: SmallVec<[(NodeKey, Operation); 1]>,
    /// The previous defaults of conditions.
    defaults: Vec<(ConditionKey, Option<u32>)>,
    /// The values that were given and refused.
    refused_operations: Vec<Operation>,
    refused_values: Vec<ArgValue>,
}

impl Replaced {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.more.is_none()
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

/// A set of changes to an executable in progress. See
/// [`Executable::change`](super::Executable::change).
///
/// If an argument or operation is set twice, the last value counts.
pub struct Changes<'a> {
    device: &'a Arc<dyn backend::Device>,
    state: &'a mut State,
    /// The replaced operations of the definition, and in the end everything that was replaced.
    replaced: &'a mut Replaced,
    /// Whether the definition is up to date, except for changed rows of the table.
    in_definition: bool,
    /// Whether a node now uses memory of an alloc node that it did not use before.
    uses_allocs: bool,
    /// Whether contracts are known to hold.
    is_checked: bool,
    /// Whether a new operation uses memory that another executable left.
    puts_outliving: bool,
    is_done: bool,
}

impl<'a> Changes<'a> {
    /// Makes the changes that `write` describes, or none.
    #[inline]
    pub(super) fn make<R>(
        device: &'a Arc<dyn backend::Device>,
        state: &'a mut State,
        replaced: &'a mut Replaced,
        write: impl FnOnce(&mut Changes<'a>) -> Result<R>,
    ) -> Result<R> {
        let mut changes = Changes {
            device,
            state,
            replaced,
            in_definition: false,
            uses_allocs: false,
            is_checked: false,
            puts_outliving: false,
            is_done: false,
        };
        let result = write(&mut changes)?;
        changes.finish()?;
        let is_outliving = changes.puts_outliving || changes.state.current.table.holds_outliving();
        changes.state.uses_outliving |= is_outliving;
        Ok(result)
    }

    /// Sets argument `index` of a kernel to a plain value.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`] with the resulting arguments.
    #[inline]
    pub unsafe fn plain(&mut self, node: NodeKey, index: u32, value: &[u8]) -> Result<()> {
        self.row(node)?.plain(index as usize, value)
    }

    /// Sets argument `index` of a kernel to the address of memory.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`] with the resulting arguments.
    #[inline]
    pub unsafe fn memory(&mut self, node: NodeKey, index: u32, memory: &Region) -> Result<()> {
        self.row(node)?.memory(index as usize, memory)
    }

    /// Sets argument `index` of a kernel to a value of its size.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`] with the resulting arguments.
    #[inline]
    pub unsafe fn argument(&mut self, node: NodeKey, index: u32, value: &ArgValue) -> Result<()> {
        self.row(node)?.value(index as usize, value)
    }

    /// Writes a value at byte `offset` of argument `index` of a kernel.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`] with the resulting arguments.
    pub unsafe fn argument_part(
        &mut self,
        node: NodeKey,
        index: u32,
        offset: usize,
        value: &ArgValue,
    ) -> Result<()> {
        self.row(node)?.set((index as usize, Some(offset)), value)
    }

    /// Sets argument `index` of a kernel to the result of `make`, which gets the declared type of
    /// the parameter. Fails if the kernel was launched without a signature.
    ///
    /// # Safety
    /// `make` returns a value of the parameter's type.
    #[inline]
    pub unsafe fn typed_argument(
        &mut self,
        node: NodeKey,
        index: u32,
        make: impl FnOnce(&ParamType) -> Result<ArgValue>,
    ) -> Result<()> {
        let mut row = self.row(node)?;
        let value = match row.table().param_type(row.row, index) {
            Some(param) => make(param),
            // The error says why there is no type.
            None => param_type(&*row.launch().kernel, index).and_then(make),
        };
        match value {
            Ok(value) => row.own_value(index as usize, value),
            Err(error) => Err(row.at_node(error)),
        }
    }

    /// Sets all arguments of a kernel. `write` writes them one after the other. Fails if the node
    /// launches another kernel.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`] with these arguments, if the node launches this kernel.
    #[inline]
    pub unsafe fn arguments(
        &mut self,
        node: NodeKey,
        kernel: &Arc<dyn backend::Kernel>,
        write: impl FnOnce(&mut ArgWriter<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let row = self.row(node)?;
        let Some(count) = row.table().count_of(row.row, kernel) else {
            return Err(row.launches_another(&**kernel));
        };
        let mut writer = ArgWriter { row, next: 0, count };
        write(&mut writer)?;
        writer.finish()
    }

    /// Replaces the operation of a node by another one of the same kind.
    pub fn operation(&mut self, node: NodeKey, operation: Operation) -> Result<()> {
        let definition = &*self.state.current.definition;
        let Some(there) = definition.get_node(node) else { return Err(no_such_node(node)) };
        let checker = Checker { device: &**self.device, graph: Some((definition, there.graph())) };
        let checked = match (there.operation(), &operation) {
            (Operation::Kernel(old), Operation::Kernel(new)) => {
                checker.check_kernel_after(old, new).and_then(|()| check_contract(new))
            }
            (old, new) => check_replaceable(old, new).and_then(|()| checker.check_replacing(new)),
        };
        if let Err(error) = checked {
            let error = error.at_node(definition.label(node));
            self.replaced.more().refused_operations.push(operation);
            return Err(error);
        }
        // The definition may lag behind the table, but then it knows of fewer uses, never of more.
        self.uses_allocs |= uses_other_allocs(there.operation(), &operation);
        self.put(node, operation);
        Ok(())
    }

    /// Puts a checked operation into the definition.
    pub(super) fn put(&mut self, node: NodeKey, operation: Operation) {
        self.enter_definition();
        self.puts_outliving |= uses_outliving(&operation);
        self.state.current.table.forget(node);
        if let Some(there) = self.state.current.definition.get_mut().nodes.get_mut(node) {
            let old = std::mem::replace(&mut there.operation, operation);
            self.replaced.more().operations.push((node, old));
        }
    }

    /// Takes over the operations of a graph in another definition. They are already checked. The
    /// topology must be equal. Only operations that differ are changed.
    pub(super) fn take_over(
        &mut self,
        graph: GraphKey,
        (source, other): (&Definition, GraphKey),
    ) -> Result<()> {
        self.is_checked = true;
        let mut operations: Vec<(NodeKey, Operation)> = Vec::new();
        let mut defaults = Vec::new();
        let is_whole = graph == self.root() && other == source.root();
        let State { current, backend, .. } = &mut *self.state;
        let Current { definition, table } = current;
        let backend = &mut **backend;
        if is_whole && let Some(pairs) = aligned(definition, source) {
            for (node, other) in pairs {
                let new = source.node(other).operation();
                if !take_arguments(definition, table, backend, node, new) {
                    operations.push((node, new.clone()));
                }
            }
        } else {
            current.bring_up_to_date();
            let Current { definition, table } = current;
            let comparison = compare(definition, graph, source, other);
            if let Some(first) = comparison.topology.into_iter().next() {
                let error = Error::new(ErrorKind::TopologyMismatch, format!("the graphs differ: {first}"));
                return Err(match first.node {
                    Some(node) => error.at_node(definition.label(node)),
                    None => error,
                });
            }
            defaults = comparison.defaults;
            for (node, _, new) in comparison.parameters {
                if !take_arguments(definition, table, backend, node, &new) {
                    operations.push((node, new));
                }
            }
        }
        operations.into_iter().for_each(|(node, operation)| self.put(node, operation));
        defaults.into_iter().for_each(|(condition, default)| self.put_default(condition, default));
        Ok(())
    }

    /// Puts another default of a condition into the definition.
    fn put_default(&mut self, condition: ConditionKey, default: Option<u32>) {
        self.enter_definition();
        if let Some(there) = self.state.current.definition.get_mut().conditions.get_mut(condition) {
            let old = std::mem::replace(&mut there.default, default);
            self.replaced.more().defaults.push((condition, old));
        }
    }

    /// Returns the outermost graph.
    pub(super) fn root(&self) -> GraphKey {
        self.state.current.definition.root()
    }

    /// Returns the name of a node, for errors.
    pub fn label(&self, node: NodeKey) -> String {
        self.state.current.definition.label(node)
    }

    /// Returns the definition as it was before the changes in progress.
    pub(super) fn definition(&mut self) -> &Definition {
        self.state.current.get()
    }

    /// Returns the row of a kernel node for changing.
    #[inline(always)]
    fn row(&mut self, node: NodeKey) -> Result<RowChange<'_, 'a>> {
        let row = match self.state.current.table.find_to_change(node) {
            Some(row) => row,
            None => self.make_row(node)?,
        };
        Ok(RowChange { changes: self, row })
    }

    #[cold]
    fn make_row(&mut self, node: NodeKey) -> Result<RowId> {
        let State { current: Current { definition, table }, backend, .. } = &mut *self.state;
        match definition.get_node(node).map(|node| node.operation()) {
            Some(Operation::Kernel(launch)) => {
                table.make(definition, node, launch, &mut **backend);
                Ok(table.find_to_change(node).expect("the row was just made"))
            }
            Some(other) => {
                let message = format!("a {} node launches no kernel", other.kind().name());
                Err(Error::new(ErrorKind::InvalidArgument, message).at_node(definition.label(node)))
            }
            None => Err(no_such_node(node)),
        }
    }

    /// Tells the backend and commits the changes.
    #[inline]
    fn finish(&mut self) -> Result<()> {
        let State { current: Current { definition, table }, backend, .. } = &mut *self.state;
        if !self.is_checked
            && let Some(row) = table.broken()
        {
            broken_contract(definition, table, row)?;
        }
        let mut told = Told::Nothing;
        if !self.in_definition && !self.uses_allocs {
            if !table.has_changes() {
                self.is_done = true;
                return Ok(());
            }
            told = table.tell(&mut **backend);
        }
        if told != Told::All {
            return self.update(told);
        }
        table.keep_ahead(definition);
        self.is_done = true;
        let memory = &mut self.replaced.memory;
        table.take_unused(memory);
        if !memory.is_empty() {
            backend.keep(&memory.iter().collect::<SmallVec<[_; 4]>>());
        }
        Ok(())
    }

    /// Writes changed rows to the definition and updates the backend from it. `told` says what the
    /// backend already knows.
    #[cold]
    fn update(&mut self, told: Told) -> Result<()> {
        self.enter_definition();
        let State { current: Current { definition, table }, backend, .. } = &mut *self.state;
        let definition = definition.get_mut();
        if told == Told::Part {
            backend.put_back(definition, &table.changed_nodes());
        }
        let More { operations, defaults, .. } = self.replaced.more();
        table.write_to(definition, operations);
        if self.uses_allocs {
            // Whether each use is ordered after the allocation and before its free depends on the
            // whole graph.
            lifetimes::check(definition)?;
        }
        let conditions: Vec<ConditionKey> = defaults.iter().map(|(condition, _)| *condition).collect();
        backend.update(definition, operations, &conditions)?;
        table.leave_to_definition(true);
        self.is_done = true;
        table.take_unused(&mut self.replaced.memory);
        Ok(())
    }

    /// Brings the definition up to date, so that operations can be replaced in it.
    fn enter_definition(&mut self) {
        if !self.in_definition {
            self.state.current.bring_up_to_date();
            self.in_definition = true;
        }
    }

    #[cold]
    fn take_back(&mut self) {
        let Current { definition, table } = &mut self.state.current;
        if self.in_definition {
            let definition = definition.get_mut();
            // In reverse, because a node may have been changed twice.
            for (node, operation) in self.replaced.more().operations.iter_mut().rev() {
                if let Some(there) = definition.nodes.get_mut(*node) {
                    std::mem::swap(&mut there.operation, operation);
                }
            }
            for (condition, default) in &mut self.replaced.more().defaults {
                if let Some(there) = definition.conditions.get_mut(*condition) {
                    std::mem::swap(&mut there.default, default);
                }
            }
            table.leave_to_definition(false);
        } else {
            table.take_back();
        }
        table.take_unused(&mut self.replaced.memory);
    }
}

impl Drop for Changes<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_done {
            self.take_back();
        }
    }
}

/// The arguments of one kernel, for changing.
// It is small because it is returned and moved for every change: the processor stalls when a larger
// value that was just written in parts is moved as a whole.
struct RowChange<'c, 'a> {
    changes: &'c mut Changes<'a>,
    row: RowId,
}

impl<'a> RowChange<'_, 'a> {
    /// Returns a copy for a call of a function that is not inlined. A value whose address is passed
    /// on has to stay in memory; this one then stays in registers.
    #[inline(always)]
    fn copy(&mut self) -> RowChange<'_, 'a> {
        RowChange { changes: self.changes, row: self.row }
    }

    #[inline(always)]
    fn table(&self) -> &ArgTable {
        &self.changes.state.current.table
    }

    #[inline(always)]
    fn table_mut(&mut self) -> &mut ArgTable {
        &mut self.changes.state.current.table
    }

    fn definition(&self) -> &Definition {
        &self.changes.state.current.definition
    }

    #[inline(always)]
    fn plain(&mut self, index: usize, value: &[u8]) -> Result<()> {
        if self.changes.state.current.table.set_plain(self.row, index, value) {
            return Ok(());
        }
        self.copy().set_bytes(index, value)
    }

    #[inline(always)]
    fn memory(&mut self, index: usize, memory: &Region) -> Result<()> {
        if !RegionId::of(memory).is_some_and(|memory| self.table_mut().was_checked(memory)) {
            self.copy().check(index, |checker| checker.check_memory(memory))?;
        }
        if self.changes.state.current.table.set_memory(self.row, index, memory) {
            return Ok(());
        }
        self.copy().set_region(index, memory)
    }

    #[inline(always)]
    fn value(&mut self, index: usize, value: &ArgValue) -> Result<()> {
        match value {
            ArgValue::Bytes(bytes) => self.plain(index, bytes),
            ArgValue::Pointer(PointerValue::Region(region)) => self.memory(index, region),
            ArgValue::Pointer(PointerValue::Condition(_)) => self.copy().set((index, None), value),
        }
    }

    /// Sets an argument to a value that was created under the lock.
    #[inline]
    fn own_value(&mut self, index: usize, value: ArgValue) -> Result<()> {
        self.value(index, &value).inspect_err(|_| self.changes.replaced.more().refused_values.push(value))
    }

    #[cold]
    fn set_bytes(self, index: usize, value: &[u8]) -> Result<()> {
        self.set((index, None), &ArgValue::plain(value))
    }

    #[cold]
    fn set_region(self, index: usize, memory: &Region) -> Result<()> {
        self.set((index, None), &ArgValue::Pointer(PointerValue::Region(memory.clone())))
    }

    /// Writes a value into an argument or a part of it.
    #[cold]
    fn set(mut self, place: (usize, Option<usize>), value: &ArgValue) -> Result<()> {
        if let ArgValue::Pointer(pointer) = value {
            self.copy().check(place.0, |checker| checker.check_target(pointer))?;
        }
        let Current { definition, table } = &mut self.changes.state.current;
        match table.set(self.row, launch_of(definition, table.node(self.row)), place, value) {
            Ok(uses_allocs) => {
                self.changes.uses_allocs |= uses_allocs;
                Ok(())
            }
            Err(error) => {
                table.forget_checked();
                Err(self.at_node(error))
            }
        }
    }

    #[inline]
    fn check(self, index: usize, check: impl FnOnce(&Checker<'_>) -> Result<()>) -> Result<()> {
        let definition = self.definition();
        let graph = definition.node(self.table().node(self.row)).graph();
        check(&Checker { device: &**self.changes.device, graph: Some((definition, graph)) })
            .map_err(|error| self.refused(index, error))
    }

    #[cold]
    fn refused(mut self, index: usize, error: Error) -> Error {
        self.table_mut().forget_checked();
        self.at_node(error.context(format_args!("argument {index} of {}", self.launch().kernel.name())))
    }

    /// Returns the launch in the definition. Its kernel, shape and layout are current; its
    /// arguments may lag behind.
    fn launch(&self) -> &KernelOp {
        launch_of(self.definition(), self.table().node(self.row))
    }

    #[cold]
    fn launches_another(self, kernel: &dyn backend::Kernel) -> Error {
        let message = format!(
            "the node launches {}, not {}; use set_kernel to launch another kernel",
            self.launch().kernel.name(),
            kernel.name()
        );
        self.at_node(Error::new(ErrorKind::InvalidArgument, message))
    }

    #[cold]
    fn wrong_count(self, takes: usize, given: &str) -> Error {
        let kernel = self.launch().kernel.name();
        let message = format!("kernel {kernel} takes {takes} parameters, {given} arguments were given");
        self.at_node(Error::new(ErrorKind::ParameterMismatch, message))
    }

    #[cold]
    fn at_node(&self, error: Error) -> Error {
        error.at_node(self.definition().label(self.table().node(self.row)))
    }
}

/// Writes the arguments of a kernel node one after the other.
///
/// The executable is locked meanwhile. The writer must not call it.
pub struct ArgWriter<'c, 'a> {
    row: RowChange<'c, 'a>,
    next: usize,
    /// The number of arguments that the kernel takes.
    count: usize,
}

impl ArgWriter<'_, '_> {
    /// Writes a plain value.
    #[inline]
    pub fn plain(&mut self, value: &[u8]) -> Result<()> {
        let index = self.take_place()?;
        self.row.plain(index, value)
    }

    /// Writes the address of memory. `region` is called only if the argument is not already the
    /// memory that `id` names.
    #[inline]
    pub fn memory(&mut self, id: Option<RegionId>, region: impl FnOnce() -> Result<Region>) -> Result<()> {
        let index = self.take_place()?;
        if id.is_some_and(|id| self.row.table().is_memory(self.row.row, index, id)) {
            return Ok(());
        }
        let region = region()?;
        self.row.memory(index, &region).inspect_err(|_| {
            let value = ArgValue::Pointer(PointerValue::Region(region));
            self.row.changes.replaced.more().refused_values.push(value);
        })
    }

    /// Writes any value.
    pub fn value(&mut self, value: ArgValue) -> Result<()> {
        let index = self.take_place()?;
        self.row.own_value(index, value)
    }

    #[inline(always)]
    fn take_place(&mut self) -> Result<usize> {
        let index = self.next;
        self.next += 1;
        if index < self.count { Ok(index) } else { Err(self.row.copy().wrong_count(self.count, "more")) }
    }

    #[inline(always)]
    fn finish(&mut self) -> Result<()> {
        if self.next == self.count {
            return Ok(());
        }
        Err(self.row.copy().wrong_count(self.count, &self.next.to_string()))
    }
}

/// Returns the launch of a node that has a row. Only kernel nodes have rows.
fn launch_of(definition: &Definition, node: NodeKey) -> &KernelOp {
    definition.node(node).operation().as_kernel().expect("a row is that of a kernel node")
}

/// Gives a node the arguments of `new`. Returns `false`, and changes nothing, if more than kernel
/// arguments differ.
#[inline]
fn take_arguments(
    definition: &Definition,
    table: &mut ArgTable,
    backend: &mut dyn backend::Executable,
    node: NodeKey,
    new: &Operation,
) -> bool {
    let old = definition.node(node).operation();
    let (Operation::Kernel(old_launch), Operation::Kernel(new_launch)) = (old, new) else {
        return old.same(new);
    };
    let row = match table.find(node) {
        Some(row) => row,
        None if old.same(new) => return true,
        None => table.make(definition, node, old_launch, backend),
    };
    table.take_arguments(row, new_launch)
}

#[cold]
fn broken_contract(definition: &Definition, table: &ArgTable, row: RowId) -> Result<()> {
    let node = table.node(row);
    let checked = table.check_contract(row, &*launch_of(definition, node).kernel);
    checked.map_err(|error| error.at_node(definition.label(node)))
}

#[cold]
fn no_such_node(node: NodeKey) -> Error {
    Error::new(ErrorKind::InvalidHandle, format!("there is no node {node:?} in this executable"))
}

/// Returns whether the new operation uses memory of an alloc node that the old one does not use.
fn uses_other_allocs(old: &Operation, new: &Operation) -> bool {
    let mut other = false;
    new.for_each_alloc_node(|alloc| {
        let mut known = false;
        old.for_each_alloc_node(|used| known |= used == alloc);
        other |= !known;
    });
    other
}
