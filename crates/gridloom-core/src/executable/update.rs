//! Updating an executable without instantiating it again.
//!
//! Every update goes through [`Changes`] and applies completely or not at all. Everything that can
//! fail happens before or inside the one backend call. Replaced values are dropped after all locks
//! are released.

use std::marker::PhantomData;

use super::changes::{Changes, Replaced};
use super::{Executable, State};
use crate::error::{Result, bail};
use crate::graph::{Graph, Node, NodeKey, lifetimes};
use crate::memory::Region;
use crate::op::{ConditionalOp, Operation, Replace, Test};
use crate::user_code;

impl Executable {
    /// Takes over all parameters of a graph with the same topology. On failure nothing changes.
    ///
    /// Nodes are paired in the order in which they were added, graph by graph. If the topologies
    /// differ, the error names the first node that does not match. Allocations, conditions and
    /// bodies are part of the topology. The defaults of conditions are parameters. Disabled nodes
    /// stay disabled. Only actual differences reach the device.
    pub fn update(&self, graph: &Graph) -> Result<()> {
        self.check_device_of(graph)?;
        let source = graph.definition();
        if graph.key() != source.root() {
            bail!(InvalidArgument, "an executable is updated from a root graph; this one is inside another");
        }
        lifetimes::check(&source)?;
        self.change(|changes| changes.take_over(changes.root(), (&source, source.root())))
    }

    fn check_device_of(&self, graph: &Graph) -> Result<()> {
        if graph.device().id() != self.device.id() {
            bail!(
                WrongDevice,
                "the graph is for another device ({}) than the executable ({})",
                graph.device().name(),
                self.device.name()
            );
        }
        Ok(())
    }

    /// Makes the changes that `write` describes. If `write` fails or panics, nothing changes.
    ///
    /// ```
    /// # use gridloom_core::{graph::Graph, launch::LaunchConfig, null::{FakeKernel, NullDevice}, op::*};
    /// # let device = NullDevice::new();
    /// # let kernel = FakeKernel::new("fill").params([4, 4]).on(&device);
    /// # let word = |value: u32| ArgValue::plain(&value.to_ne_bytes());
    /// # let graph = Graph::new(&device);
    /// // SAFETY: the kernel takes two words, and uses no memory.
    /// let launch = unsafe { KernelOp::pack(&kernel, LaunchConfig::one(), |args| {
    ///     args.push(word(1))?;
    ///     args.push(word(2))
    /// })? };
    /// let node = graph.add(&[], Operation::Kernel(launch))?;
    /// let executable = graph.instantiate()?;
    /// executable.change(|changes| {
    ///     // SAFETY: as above.
    ///     unsafe {
    ///         changes.plain(node.key(), 0, &3u32.to_ne_bytes())?;
    ///         changes.plain(node.key(), 1, &4u32.to_ne_bytes())
    ///     }
    /// })?;
    /// # Ok::<(), gridloom_core::Error>(())
    /// ```
    ///
    /// The executable is locked meanwhile. `write` must not call it.
    #[inline]
    pub fn change<R>(&self, write: impl FnOnce(&mut Changes<'_>) -> Result<R>) -> Result<R> {
        // Declared before the lock, and so dropped after the lock is released.
        let mut replaced = Replaced::default();
        let mut state = self.lock("change of an executable")?;
        let made = Changes::make(&self.device, &mut state, &mut replaced, write);
        drop(state);
        if replaced.is_empty() {
            // Most changes replace plain values only. Dropping the empty lists takes two calls.
            std::mem::forget(replaced);
        }
        made
    }

    /// Makes changes as [`change`](Executable::change) does, without locking. Replaced values go to
    /// `replaced`, and the caller drops them.
    #[inline]
    pub fn change_exclusively<R>(
        &mut self,
        replaced: &mut Replaced,
        write: impl FnOnce(&mut Changes<'_>) -> Result<R>,
    ) -> Result<R> {
        Changes::make(&self.device, self.state.get_mut(), replaced, write)
    }

    /// Replaces the operations of several nodes by others of the same kinds. On failure nothing
    /// changes.
    pub fn set_operations<'a>(
        &self,
        operations: impl IntoIterator<Item = (&'a Node, Operation)>,
    ) -> Result<()> {
        let keyed = operations.into_iter().map(|(node, operation)| Ok((self.own_key(node)?, operation)));
        // Operations left over after a failure are dropped after the lock is released.
        let mut keyed: Vec<(NodeKey, Operation)> = keyed.collect::<Result<_>>()?;
        self.change(|changes| {
            keyed.iter_mut().try_for_each(|(node, operation)| {
                changes.operation(*node, std::mem::replace(operation, Operation::Empty))
            })
        })
    }

    /// Replaces every use of the region `old` by the same byte of `new`. Returns the number of
    /// uses. On failure nothing changes. See [`Graph::replace_region`].
    ///
    /// # Safety
    /// As for [`Graph::replace_region`].
    pub unsafe fn replace_region(&self, old: &Region, new: &Region) -> Result<usize> {
        self.change(|changes| {
            let definition = changes.definition();
            // SAFETY: the caller makes the same promise.
            let replacement = unsafe { definition.with_memory_replaced(definition.root(), old, new) }?;
            for (node, operation) in replacement.operations {
                changes.operation(node, operation)?;
            }
            Ok(replacement.uses)
        })
    }

    /// Returns a node of the executable, to read and change what it does.
    // Always inlined: returning the result through memory takes about as long as the rest of a
    // change.
    #[inline(always)]
    pub fn node(&self, node: &Node) -> Result<ExecutableNode<'_>> {
        // Whatever a caller does with it takes the lock.
        user_code::may_use(self.device_id, "node of an executable")?;
        if self.owns(node) {
            Ok(ExecutableNode { executable: self, key: node.key(), on_thread: PhantomData })
        } else {
            Ok(ExecutableNode { executable: self, key: self.key_of_copy(node)?, on_thread: PhantomData })
        }
    }
}

/// A node of an [`Executable`]. Changes apply to that executable alone, from its next launch on.
///
/// It stays on its thread. A callback of the device can therefore not own one, and asking for one
/// there is refused: a thread that waits for the callback may hold the lock of the executable.
#[derive(Clone, Copy)]
pub struct ExecutableNode<'a> {
    executable: &'a Executable,
    key: NodeKey,
    on_thread: PhantomData<*const ()>,
}

impl ExecutableNode<'_> {
    /// Returns the operation that the next launch runs at this node.
    pub fn operation(&self) -> Operation {
        self.executable.state.lock().current.get().node(self.key).operation().clone()
    }

    /// Returns the node's name.
    pub fn label(&self) -> String {
        self.executable.definition().label(self.key)
    }

    /// Replaces the node's operation by another one of the same kind. On failure nothing changes.
    pub fn set_operation(&self, operation: Operation) -> Result<()> {
        self.executable.change(|changes| changes.operation(self.key, operation))
    }

    /// Returns the executable.
    pub fn executable(&self) -> &Executable {
        self.executable
    }

    /// Returns the node's key in the definition.
    pub fn key(&self) -> NodeKey {
        self.key
    }

    /// Takes over the parameters of a graph with the same topology as the one embedded at this
    /// child node.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        let executable = self.executable;
        executable.check_device_of(graph)?;
        let source = graph.definition();
        lifetimes::check(&source)?;
        executable.change(|changes| {
            let definition = changes.definition();
            let Operation::Child(child) = *definition.node(self.key).operation() else {
                bail!(InvalidArgument, "{} is not a child node", definition.label(self.key));
            };
            changes.take_over(child, (&source, graph.key()))
        })
    }

    /// Returns whether the node is enabled. Every node is enabled at first.
    pub fn is_enabled(&self) -> bool {
        !self.executable.state.lock().disabled.contains(&self.key)
    }

    /// Enables or disables a kernel, copy or fill. A disabled node does nothing but keeps its place
    /// in the order.
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        let mut state = self.executable.lock("change of an executable")?;
        let kind = state.current.get().node(self.key).operation().kind();
        if !kind.facts().can_disable {
            bail!(
                InvalidArgument,
                "{} cannot be disabled: only kernels, copies and fills can",
                state.current.get().label(self.key)
            );
        }
        if state.disabled.contains(&self.key) != enabled {
            return Ok(());
        }
        let State { current, backend, disabled, .. } = &mut *state;
        backend.set_enabled(current.get(), self.key, enabled)?;
        if enabled {
            disabled.remove(&self.key);
        } else {
            disabled.insert(self.key);
        }
        Ok(())
    }
}

/// Checks that one operation may replace another.
pub(crate) fn check_replaceable(old: &Operation, new: &Operation) -> Result<()> {
    if old.kind() != new.kind() {
        bail!(
            InvalidArgument,
            "a {} node cannot become a {} node; delete it and add another",
            old.kind().name(),
            new.kind().name()
        );
    }
    if let (Operation::Conditional(old), Operation::Conditional(new)) = (old, new) {
        return check_replaceable_conditional(old, new);
    }
    match new.kind().facts().replace {
        Replace::All | Replace::Test => Ok(()),
        Replace::Topology | Replace::Nothing => {
            bail!(InvalidArgument, "a {} node has no parameters that can be replaced", new.kind().name())
        }
    }
}

/// Checks that one conditional may replace another. The tested memory, the count and the loop bound
/// may change. The kind of test and the bodies may not.
fn check_replaceable_conditional(old: &ConditionalOp, new: &ConditionalOp) -> Result<()> {
    let same_test = match (&old.test, &new.test) {
        (Test::Value(_), Test::Value(_)) | (Test::Count(_), Test::Count(_)) => true,
        (old, new) => old == new,
    };
    if !same_test || old.test_first != new.test_first || old.bodies != new.bodies {
        bail!(
            InvalidArgument,
            "the bodies of a conditional, and what kind of value decides it, cannot be replaced; delete it and add another"
        );
    }
    Ok(())
}
