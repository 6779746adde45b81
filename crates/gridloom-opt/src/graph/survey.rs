//! Finds out which nodes can become part of a rewritten kernel.

use std::sync::Arc;

use gridloom_core::backend::Kernel;
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::launch::Dim3;
use gridloom_core::op::{NodeKind, Operation};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::builtin;
use crate::cache::Cache;
use crate::rewrite::{Accesses, KernelSource, Role, SourceId};

/// A node that may become part of a rewritten kernel.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) source: KernelSource,
    /// The grid. It is one block for operations that run in any shape.
    pub(crate) grid: [u32; 3],
    /// The threads of a block, or `None` for operations that run in any shape.
    pub(crate) block: Option<[u32; 3]>,
    /// The size of dynamic shared memory in bytes.
    pub(crate) shared: u32,
    /// The size of static shared memory in bytes.
    pub(crate) static_shared: u32,
}

impl Candidate {
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    pub(crate) fn is_builtin(&self) -> bool {
        self.block.is_none()
    }
}

/// The kernels of a graph as PTX, by the address of the kernel, which is kept alive here.
type Sources = FxHashMap<usize, (Arc<dyn Kernel>, Option<KernelSource>)>;

/// Looks up nodes, and records why some cannot be used.
pub(crate) struct Survey {
    cache: Arc<Cache>,
    sources: Mutex<Sources>,
    /// Nodes that must not change: disabled ones, and those made by the optimiser.
    pub(crate) pinned: FxHashSet<NodeKey>,
    /// The disabled nodes.
    pub(crate) disabled: FxHashSet<NodeKey>,
    /// The reasons, for the report.
    reasons: Mutex<Reasons>,
    /// Why no node of the graph is changed.
    held: Option<&'static str>,
    /// What kernels access, by kernel, blocks and threads.
    accesses: Mutex<FxHashMap<(SourceId, u32, u32), Option<Arc<Accesses>>>>,
}

/// The first reason of each node, in the order found.
#[derive(Default)]
struct Reasons {
    nodes: FxHashSet<NodeKey>,
    list: Vec<(NodeKey, String)>,
}

impl Survey {
    pub(crate) fn new(disabled: FxHashSet<NodeKey>, cache: Arc<Cache>) -> Self {
        Survey {
            cache,
            sources: Mutex::default(),
            pinned: disabled.clone(),
            disabled,
            reasons: Mutex::default(),
            held: None,
            accesses: Mutex::default(),
        }
    }

    /// Records why a node is not changed. Only the first reason counts.
    pub(crate) fn note(&self, node: NodeKey, reason: impl Into<String>) {
        let mut reasons = self.reasons.lock();
        if reasons.nodes.insert(node) {
            reasons.list.push((node, reason.into()));
        }
    }

    /// Records why a node that was to be changed is not. That counts more than why it did not join
    /// others before.
    pub(crate) fn note_failure(&self, node: NodeKey, reason: &str) {
        let mut reasons = self.reasons.lock();
        if reasons.nodes.insert(node) {
            reasons.list.push((node, reason.to_owned()));
        } else if let Some((_, there)) = reasons.list.iter_mut().find(|(other, _)| *other == node) {
            reason.clone_into(there);
        }
    }

    /// Says why no node of the graph is changed.
    pub(crate) fn hold(&mut self, reason: &'static str) {
        self.held = Some(reason);
    }

    /// Returns why nodes were not changed, and why no other node was, if there is such a reason.
    pub(crate) fn into_reasons(self) -> (Vec<(NodeKey, String)>, Option<&'static str>) {
        (self.reasons.into_inner().list, self.held)
    }

    /// Returns the source of the kernel that a node launches.
    pub(crate) fn source(&self, kernel: &Arc<dyn Kernel>) -> Option<KernelSource> {
        let address = Arc::as_ptr(kernel).cast::<()>() as usize;
        let mut sources = self.sources.lock();
        if let Some((_, source)) = sources.get(&address) {
            return source.clone();
        }
        let source = kernel.ptx().and_then(|text| self.cache.source(text, kernel.name()));
        sources.insert(address, (kernel.clone(), source.clone()));
        source
    }

    /// Returns what a kernel accesses in a launch along x, if that is known.
    pub(crate) fn accesses(&self, source: &KernelSource, blocks: u32, threads: u32) -> Option<Arc<Accesses>> {
        let mut known = self.accesses.lock();
        let find = || Accesses::of(source, blocks, threads).map(Arc::new);
        known.entry((source.id(), blocks, threads)).or_insert_with(find).clone()
    }

    /// Returns a node as a candidate for a role. Returns `None` if it is of another kind, or if
    /// there is an obstacle, which is recorded.
    pub(crate) fn candidate(&self, definition: &Definition, key: NodeKey, role: Role) -> Option<Candidate> {
        if self.pinned.contains(&key) {
            return None;
        }
        match self.look(definition, key, role) {
            Ok(candidate) => candidate,
            Err(reason) => {
                self.note(key, reason);
                None
            }
        }
    }

    fn look(&self, definition: &Definition, key: NodeKey, role: Role) -> Result<Option<Candidate>, String> {
        let operation = definition.node(key).operation();
        match operation {
            Operation::Kernel(launch) => {
                let config = launch.config();
                if config.cooperative {
                    return Err("its launch is cooperative".into());
                }
                if config.cluster.is_some_and(|cluster| cluster != Dim3::ONE) {
                    return Err("its launch has clusters".into());
                }
                if config.programmatic {
                    return Err("its launch is programmatic".into());
                }
                if config.priority.is_some() {
                    return Err("its launch has a priority".into());
                }
                let source = self.source(launch.kernel()).ok_or("the PTX of its kernel is not known")?;
                if let Some(reason) = source.obstacle(role) {
                    return Err(reason.to_owned());
                }
                let block = config.block.to_array();
                if role == Role::Step
                    && let Some(reason) = source.obstacle_in_block(block)
                {
                    return Err(reason.to_owned());
                }
                let args = launch.args();
                let same = |(place, (offset, size)): (&gridloom_core::op::ParamLayout, (u64, u64))| {
                    (u64::from(place.offset), u64::from(place.size)) == (offset, size)
                };
                let layout = source.layout();
                if args.layout.len() != layout.len() || !args.layout.iter().zip(layout).all(same) {
                    return Err("its arguments are laid out in another way than its PTX says".into());
                }
                Ok(Some(Candidate {
                    source,
                    grid: config.grid.to_array(),
                    block: Some(block),
                    shared: config.shared,
                    static_shared: launch.kernel().limits().static_shared,
                }))
            }
            Operation::Memset(_) | Operation::Memcpy(_) => {
                if let Some(reason) = builtin::obstacle(definition, operation) {
                    return Err(reason);
                }
                let is_fill = operation.kind() == NodeKind::Memset;
                let source = if is_fill { builtin::fill() } else { builtin::copy() };
                Ok(Some(Candidate { source, grid: [1; 3], block: None, shared: 0, static_shared: 0 }))
            }
            _ => Ok(None),
        }
    }
}
