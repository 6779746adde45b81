//! Graphs lowered to CUDA graphs, and how they run.
//!
//! 1. [`modes`] decides for each conditional whether the device or the host drives it.
//! 2. [`plan`] flattens embedded children and cuts the graph where the host drives a conditional.
//!    The result is a program of graphs and hosted conditionals. Neither step calls the driver. A
//!    plain graph needs neither: each of its nodes becomes one driver node.
//! 3. [`resources`] gives addresses to what only the graph has: memory of alloc nodes, copied host
//!    bytes, pass counters, conditions.
//! 4. [`lower`] turns each graph of the program into one `CUgraph` and one `CUgraphExec`, with the
//!    [`parameters`] and [`edges`] of its nodes. [`node_map`] maps nodes to driver nodes.
//! 5. [`inner`] is the compiled program, which launches keep alive. [`executable`] launches it.
//!    [`hosted`] drives the conditionals that the host decides. [`update`] changes nodes in place
//!    if the driver can, and compiles the graph again if not. [`ready`] changes arguments that
//!    change often.
//!
//! # Memory of alloc nodes
//!
//! The executable owns one block for each kind of memory, allocated at instantiation, and alloc and
//! free nodes become edges. Launches of one executable never overlap, so one block per executable
//! is enough. This also allows what CUDA's own alloc nodes do not: allocations in bodies of
//! conditionals, several executables at once, host and managed memory, and relaunching with memory
//! still allocated.

mod builtin;
mod edges;
mod executable;
mod handles;
mod hosted;
mod inner;
mod lower;
mod modes;
mod node_map;
mod parameters;
mod plan;
mod ready;
mod resources;
#[cfg(test)]
mod testing;
mod update;

use crate::device::Shared;
use crate::sys::*;
use executable::Executable;
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::{Error, ErrorKind, Result, backend};
use std::any::Any;
use std::sync::Arc;

pub(crate) use builtin::text as builtin_text;
pub(crate) use handles::CudaGraph;

/// The driver's handles of one `CUgraph` of an executable.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawGraph {
    /// The graph that the executable graph was made from. It must not be changed.
    pub graph: CUgraph,
    /// The executable graph.
    pub executable: CUgraphExec,
}

/// The place of a node among the driver's.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawNode {
    /// The index of its graph among those of the executable.
    pub graph: usize,
    /// The node, in that graph or in a body inside it.
    pub node: CUgraphNode,
}

/// Returns which kernels a graph has, if this is what launches of a graph keep alive.
pub(crate) fn about(kept: &dyn Any) -> Option<&str> {
    kept.downcast_ref::<inner::Inner>().map(inner::Inner::about)
}

fn own(executable: &dyn backend::Executable) -> Result<&Executable> {
    executable
        .as_any()
        .downcast_ref()
        .ok_or_else(|| Error::new(ErrorKind::NotSupported, "the executable does not belong to a CUDA device"))
}

/// Returns the driver's handles of an executable: one graph, or several if the host decides between
/// them.
pub(crate) fn raw_graphs(executable: &dyn backend::Executable) -> Result<Vec<RawGraph>> {
    let units = &own(executable)?.state.inner.units;
    units
        .iter()
        .map(|unit| Ok(RawGraph { graph: unit.raw_graph()?, executable: unit.executable.raw() }))
        .collect()
}

/// Returns the driver's handle of a node, or `None` if the node became something else.
pub(crate) fn raw_node(executable: &dyn backend::Executable, node: NodeKey) -> Result<Option<RawNode>> {
    let place = own(executable)?.state.inner.node_map.get(node);
    Ok(place.map(|place| RawNode { graph: place.unit, node: place.node }))
}

/// Compiles a checked definition.
pub(crate) fn instantiate(
    shared: &Arc<Shared>,
    definition: &Arc<Definition>,
    options: &InstantiateOptions,
) -> Result<Box<dyn backend::Executable>> {
    Ok(Executable::new(shared, definition, options)?)
}
