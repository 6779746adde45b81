//! Changes of kernel arguments without access to the graph.
//!
//! The core prepares a node of the user's graph under a number and then sends only the bytes of its
//! arguments. Each such node maps to a range of bytes in one launch of the optimised graph, or in
//! several if its kernel was repeated. New bytes are collected in a copy of the arguments of that
//! launch. The backend receives them once, before the next launch, no matter how many changed.
//!
//! The optimised graph must not keep memory alive that the user's graph no longer refers to. So a
//! launch whose arguments changed in this way has no pointers in the optimised graph until
//! [`Arguments::refresh`] reads them from the user's graph.

use gridloom_core::backend::Executable;
use gridloom_core::graph::NodeKey;
use gridloom_core::log;
use gridloom_core::lower::has_all_addresses;
use gridloom_core::op::{KernelArgs, KernelOp, Launch, Operation, PointerValue};
use gridloom_core::{Error, ErrorKind, Node, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::graph::{Form, Plan};

/// The nodes whose arguments change in place.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// By the number that the core gave them.
    prepared: Vec<Option<Prepared>>,
    /// The launches of the optimised graph. The index is the number under which the backend knows
    /// them.
    targets: Vec<Target>,
    by_node: FxHashMap<NodeKey, usize>,
    /// The targets that the backend has to be told about.
    dirty: Vec<usize>,
    /// Whether some launch of the optimised graph lacks its pointers.
    has_hollow: bool,
}

/// A node of the user's graph.
#[derive(Debug)]
struct Prepared {
    node: NodeKey,
    bytes: usize,
    /// The targets, and the offset of the node's arguments in theirs.
    places: SmallVec<[(usize, usize); 1]>,
    /// Addresses that must stay, and their offsets in the node's arguments: the plan rests on them.
    fixed: SmallVec<[(usize, [u8; 8]); 0]>,
}

impl Prepared {
    fn takes(&self, bytes: &[u8]) -> bool {
        let stays = |(at, address): &(usize, [u8; 8])| bytes.get(*at..*at + 8) == Some(&address[..]);
        self.bytes == bytes.len() && self.fixed.iter().all(stays)
    }
}

/// A launch of the optimised graph.
#[derive(Debug)]
struct Target {
    node: Node,
    bytes: Vec<u8>,
    is_dirty: bool,
    is_hollow: bool,
}

impl Arguments {
    /// Prepares a node. Returns whether its arguments can change in place.
    pub(crate) fn prepare(
        &mut self,
        plan: &Plan,
        direct: Option<&Node>,
        inner: &mut dyn Executable,
        (number, node, launch): (usize, NodeKey, &KernelOp),
    ) -> bool {
        let prepared = self.places(plan, direct, inner, node, launch);
        let can = prepared.is_some();
        if self.prepared.len() <= number {
            self.prepared.resize_with(number + 1, || None);
        }
        self.prepared[number] = prepared;
        can
    }

    fn places(
        &mut self,
        plan: &Plan,
        direct: Option<&Node>,
        inner: &mut dyn Executable,
        node: NodeKey,
        launch: &KernelOp,
    ) -> Option<Prepared> {
        let args = launch.args();
        let is_plain = args.owner.is_none()
            && has_all_addresses(args)
            && !args.pointers.iter().any(|pointer| matches!(pointer.value, PointerValue::Condition(_)));
        if !is_plain {
            return None;
        }
        let (mut places, mut fixed) = (SmallVec::new(), SmallVec::new());
        match plan.fused.get(&node) {
            None => places.push((self.target(direct?, inner)?, 0)),
            Some(fusions) => {
                for &index in fusions {
                    let fusion = &plan.fusions[index];
                    let target = self.target(&fusion.node, inner)?;
                    if let Form::Threads(_) = fusion.call.form {
                        for pointer in &args.pointers {
                            let at = args.layout.get(pointer.index as usize)?.offset + pointer.offset;
                            let address = args.bytes.get(at as usize..at as usize + 8)?;
                            fixed.push((at as usize, address.try_into().ok()?));
                        }
                    }
                    let pieces = fusion.call.pieces.iter().filter(|piece| piece.node == node);
                    places.extend(pieces.map(|piece| (target, piece.slice as usize)));
                }
            }
        }
        let bytes = args.bytes.len();
        let fits = |&(target, at): &(usize, usize)| at + bytes <= self.targets[target].bytes.len();
        places.iter().all(fits).then_some(Prepared { node, bytes, places, fixed })
    }

    /// Returns the number of a launch of the optimised graph. `None` if the backend cannot change
    /// its arguments in place.
    fn target(&mut self, node: &Node, inner: &mut dyn Executable) -> Option<usize> {
        let known = self.by_node.get(&node.key()).copied();
        if let Some(known) = known.filter(|&known| self.targets[known].is_hollow) {
            return Some(known);
        }
        let Operation::Kernel(launch) = node.operation().ok()? else { return None };
        let args = launch.args();
        let number = known.unwrap_or(self.targets.len());
        if args.owner.is_some() || !has_all_addresses(args) || !inner.prepare(number, node.key(), &launch) {
            return None;
        }
        let target =
            Target { node: node.clone(), bytes: args.bytes.to_vec(), is_dirty: false, is_hollow: false };
        match self.targets.get_mut(number) {
            Some(there) => there.bytes = target.bytes,
            None => self.targets.push(target),
        }
        self.by_node.insert(node.key(), number);
        Some(number)
    }

    /// Sets the arguments of prepared nodes. Returns `false`, and changes nothing, if that is not
    /// possible.
    #[inline]
    pub(crate) fn set(&mut self, arguments: &[(usize, &[u8])]) -> bool {
        let is_ready = |&(number, bytes): &(usize, &[u8])| matches!(self.prepared.get(number), Some(Some(prepared)) if prepared.takes(bytes));
        if !arguments.iter().all(is_ready) {
            return false;
        }
        for &(number, bytes) in arguments {
            let Some(Some(prepared)) = self.prepared.get(number) else { continue };
            for &(index, at) in &prepared.places {
                let target = &mut self.targets[index];
                target.bytes[at..at + bytes.len()].copy_from_slice(bytes);
                if !target.is_dirty {
                    target.is_dirty = true;
                    self.dirty.push(index);
                }
                if !target.is_hollow {
                    target.make_hollow();
                    self.has_hollow = true;
                }
            }
        }
        true
    }

    /// Tells the backend about changed arguments.
    #[inline]
    pub(crate) fn flush(&mut self, plan: &Plan, inner: &mut dyn Executable) -> Result<()> {
        if self.dirty.is_empty() { Ok(()) } else { self.tell(plan, inner) }
    }

    /// Writes the current bytes into the launches of the optimised graph that lack their pointers.
    /// A backend that cannot change a node in place compiles its graph again, and reads every other
    /// launch from there.
    pub(crate) fn write_bytes(&self) -> Result<()> {
        for target in self.targets.iter().filter(|target| target.is_hollow) {
            target.node.set_operation(target.hollow(&target.node.operation()?)?)?;
        }
        Ok(())
    }

    fn tell(&mut self, plan: &Plan, inner: &mut dyn Executable) -> Result<()> {
        while let Some(&index) = self.dirty.last() {
            if !inner.set_arguments(&[(index, &self.targets[index].bytes)])? {
                // The backend was in the middle of something else. The definition is the other way.
                let before = self.targets[index].node.operation()?;
                self.write_bytes()?;
                let target = &self.targets[index];
                let after = target.hollow(&before)?;
                target.node.set_operation(after.clone())?;
                inner.update(&plan.graph.definition(), &[(target.node.key(), before)], &[])?;
                if let Operation::Kernel(launch) = &after {
                    inner.prepare(index, target.node.key(), launch);
                }
            }
            self.targets[index].is_dirty = false;
            self.dirty.pop();
        }
        Ok(())
    }

    /// Gives the optimised graph the pointers that it lacks, from the user's graph.
    pub(crate) fn refresh(&mut self, operation: impl Fn(NodeKey) -> Option<Operation>) -> Result<()> {
        if !self.has_hollow {
            return Ok(());
        }
        for target in self.targets.iter_mut().filter(|target| target.is_hollow) {
            if let Some(operation) = operation(target.node.key()) {
                target.node.set_operation(operation)?;
                target.is_hollow = false;
            }
        }
        self.has_hollow = self.targets.iter().any(|target| target.is_hollow);
        Ok(())
    }

    /// Returns the nodes of the optimised graph that lack their pointers.
    pub(crate) fn hollow(&self) -> impl Iterator<Item = &Node> {
        self.targets.iter().filter(|target| target.is_hollow).map(|target| &target.node)
    }

    /// Takes over the operation of a node of the optimised graph that changed in another way.
    pub(crate) fn changed(&mut self, node: NodeKey, operation: &Operation) {
        let Some(target) = self.by_node.get(&node).and_then(|&index| self.targets.get_mut(index)) else {
            return;
        };
        if let Operation::Kernel(launch) = operation {
            target.bytes = launch.args().bytes.to_vec();
        }
        target.is_hollow = false;
    }

    /// Gives a node of the optimised graph its previous arguments, from the next launch on.
    pub(crate) fn put_back(&mut self, node: NodeKey, bytes: &[u8]) {
        let Some(&index) = self.by_node.get(&node) else { return };
        let target = &mut self.targets[index];
        if target.bytes.len() == bytes.len() {
            target.bytes.copy_from_slice(bytes);
            if !target.is_dirty {
                target.is_dirty = true;
                self.dirty.push(index);
            }
        }
    }

    /// Returns the numbers and nodes that the core prepared.
    pub(crate) fn prepared(&self) -> Vec<(usize, NodeKey)> {
        let number = |(number, prepared): (usize, &Option<Prepared>)| Some((number, prepared.as_ref()?.node));
        self.prepared.iter().enumerate().filter_map(number).collect()
    }
}

impl Target {
    /// Takes the pointers out of the optimised graph.
    #[cold]
    fn make_hollow(&mut self) {
        let hollow = self.node.operation().and_then(|operation| self.hollow(&operation));
        match hollow.and_then(|hollow| self.node.set_operation(hollow)) {
            Ok(()) => self.is_hollow = true,
            Err(error) => log!(debug, %error, "a rewritten kernel keeps its memory until it changes"),
        }
    }

    /// Returns the launch with the current bytes and no pointers.
    fn hollow(&self, operation: &Operation) -> Result<Operation> {
        let Operation::Kernel(launch) = operation else {
            return Err(Error::new(ErrorKind::InvalidState, "a rewritten node launches no kernel"));
        };
        let args = KernelArgs {
            bytes: self.bytes.as_slice().into(),
            layout: launch.args().layout.clone(),
            pointers: SmallVec::new(),
            owner: None,
        };
        // A contract cannot be checked where memory has no size.
        let kernel = launch.kernel().unsigned().unwrap_or(launch.kernel()).clone();
        // SAFETY: the launch is the one that was there, with arguments that the core checked, also
        // against the contract of the kernel. The user's graph, which names the same memory, keeps
        // it alive, and the executable's plan keeps its own.
        let launch = unsafe { KernelOp::new(kernel, *launch.config(), args) };
        Ok(Operation::Kernel(Launch::new(launch)))
    }
}
