//! Changing what an executable does, without compiling it again.
//!
//! Every change is made by [`Changes`], all or none. Everything that can fail comes before, or inside, the one
//! backend call. What is replaced is dropped after all locks are released.

use super::changes::{Changes, Replaced};
use super::{Executable, State};
use crate::error::{Result, bail};
use crate::graph::{Graph, Node, NodeKey, lifetimes};
use crate::memory::Region;
use crate::op::{ConditionalOp, NodeKind, Operation, Test};

impl Executable {
    /// Takes over all parameters of a graph with the same topology, or changes nothing.
    ///
    /// Nodes are paired in the order in which they were added, graph by graph. Where the topologies differ, the error names the first node that does
    /// not match. Allocations, conditions and bodies are part of the topology. Nodes that are disabled stay so. Only what really differs reaches the device.
    pub fn update(&self, graph: &Graph) -> Result<()> {
        if graph.device().id() != self.device.id() {
            bail!(WrongDevice, "the graph is for another device than the executable");
        }
        let source = graph.definition();
        if graph.key() != source.root() {
            bail!(InvalidArgument, "an executable is updated from a root graph; this one is inside another");
        }
        lifetimes::check(&source)?;
        self.change(|changes| changes.take_over(changes.root(), (&source, source.root())))
    }

    /// Makes the changes that `write` gives, all or none, also where it fails or panics.
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
    /// The executable is locked meanwhile: `write` must not call it.
    #[inline]
    pub fn change<R>(&self, write: impl FnOnce(&mut Changes<'_>) -> Result<R>) -> Result<R> {
        // Declared before the lock is taken, and so dropped after it is released.
        let mut replaced = Replaced::default();
        let mut state = self.state.lock();
        let outcome = Changes::make(&*self.device, &mut state, &mut replaced, write);
        drop(state);
        replaced.end();
        outcome
    }

    /// The same as [`change`](Executable::change) for whoever has the executable to itself. What the changes
    /// replace comes to `replaced`, to be dropped when it suits.
    #[inline]
    pub fn change_exclusively<R>(
        &mut self,
        replaced: &mut Replaced,
        write: impl FnOnce(&mut Changes<'_>) -> Result<R>,
    ) -> Result<R> {
        Changes::make(&*self.device, self.state.get_mut(), replaced, write)
    }

    /// Replaces what several nodes do by operations of the same kinds, all or none.
    pub fn set_operations<'a>(
        &self,
        operations: impl IntoIterator<Item = (&'a Node, Operation)>,
    ) -> Result<()> {
        let keyed = operations.into_iter().map(|(node, operation)| Ok((self.own_key(node)?, operation)));
        // What is left of them after a failure is dropped when the lock is released.
        let mut keyed: Vec<(NodeKey, Operation)> = keyed.collect::<Result<_>>()?;
        self.change(|changes| {
            keyed.iter_mut().try_for_each(|(node, operation)| {
                changes.operation(*node, std::mem::replace(operation, Operation::Empty))
            })
        })
    }

    /// Points every use of the region `old` at the same byte of `new`, all or none, and says how many there were. See [`Graph::replace_region`].
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

    /// One node of the executable: what it does now, and ways to change it.
    // Always: what comes back from a call in parts is slow to move, about as slow as all else that is ours of a change.
    #[inline(always)]
    pub fn node(&self, node: &Node) -> Result<ExecutableNode<'_>> {
        if self.owns(node) {
            Ok(ExecutableNode { executable: self, key: node.key() })
        } else {
            Ok(ExecutableNode { executable: self, key: self.key_of_copy(node)? })
        }
    }
}

/// A node of an [`Executable`]. What is set here changes that executable alone, from its next launch on.
#[derive(Clone, Copy)]
pub struct ExecutableNode<'a> {
    executable: &'a Executable,
    key: NodeKey,
}

impl ExecutableNode<'_> {
    /// What the executable will do at this node when it is launched next.
    pub fn operation(&self) -> Operation {
        self.executable.state.lock().current.get().node(self.key).operation().clone()
    }

    /// The node's name.
    pub fn label(&self) -> String {
        self.executable.definition().label(self.key)
    }

    /// Replaces what the node does by an operation of the same kind, or changes nothing.
    pub fn set_operation(&self, operation: Operation) -> Result<()> {
        self.executable.change(|changes| changes.operation(self.key, operation))
    }

    /// The executable.
    pub fn executable(&self) -> &Executable {
        self.executable
    }

    /// The node's key in the definition.
    pub fn key(&self) -> NodeKey {
        self.key
    }

    /// Takes over the parameters of a graph with the same topology as the one embedded at this child node.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        let executable = self.executable;
        if graph.device().id() != executable.device.id() {
            bail!(WrongDevice, "the graph is for another device than the executable");
        }
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

    /// Whether the node does its work. Every node does at first.
    pub fn is_enabled(&self) -> bool {
        !self.executable.state.lock().disabled.contains(&self.key)
    }

    /// Lets a kernel, copy or fill do its work, or makes it do nothing while keeping its place in the order.
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        let mut state = self.executable.state.lock();
        let kind = state.current.get().node(self.key).operation().kind();
        if !matches!(kind, NodeKind::Kernel | NodeKind::Memcpy | NodeKind::Memset) {
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

/// Checks that one operation may take the place of another.
pub(crate) fn check_replaceable(old: &Operation, new: &Operation) -> Result<()> {
    if old.kind() != new.kind() {
        bail!(
            InvalidArgument,
            "a {} node cannot become a {} node; delete it and add another",
            old.kind().name(),
            new.kind().name()
        );
    }
    match new.kind() {
        NodeKind::Kernel
        | NodeKind::Memset
        | NodeKind::Memcpy
        | NodeKind::Callback
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Opaque => Ok(()),
        kind => match (old, new) {
            (Operation::Conditional(old), Operation::Conditional(new)) => {
                check_replaceable_conditional(old, new)
            }
            _ => bail!(InvalidArgument, "a {} node has no parameters that can be replaced", kind.name()),
        },
    }
}

/// A conditional may test other memory or make other passes; what decides it, and its bodies, stay.
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
