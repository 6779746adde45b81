//! The operation of each kind of node, and what it holds.
//!
//! Payloads are shared (`Arc`, [`Launch`]) because definitions are copied on write. Copying a graph
//! of 100,000 nodes copies reference counts, not arguments.

mod arguments;
mod callback;
pub mod contract;
mod kernel;
mod kind;
mod owner;
mod params;

use std::sync::Arc;

use smallvec::SmallVec;

pub use crate::speed::Launch;
pub use callback::{CallbackOp, Closure, HostReads, RawCallback, RawData, SendPointer};
pub use kernel::{ArgPacker, ArgValue, KernelArgs, KernelOp, PointerArg, PointerValue};
pub use kind::{KindFacts, NodeKind, NodeKinds, Replace, Role, StreamUse};
pub use owner::Owner;
pub use params::{ParamLayout, Params};

use crate::backend;
use crate::graph::{ConditionKey, GraphKey, NodeKey};
use crate::memory::{Base, MemoryKind, Region};

/// The work of one node.
///
/// Code that treats kinds differently matches on it without a wildcard, or passes the kinds that it
/// does not name to code that does. The compiler then names every place that a new kind concerns.
/// For the same reason the enum is not `#[non_exhaustive]`: a backend that does not know a kind of
/// node cannot run graphs that hold it. Code that asks for one kind only uses a method such as
/// [`as_kernel`](Self::as_kernel).
#[derive(Clone, Debug)]
pub enum Operation {
    /// Does nothing. Edges can meet here.
    Empty,
    /// Runs a kernel.
    Kernel(Launch),
    /// Allocates memory for the nodes ordered after it.
    Alloc(Arc<AllocOp>),
    /// Frees memory.
    Free(FreeTarget),
    /// Fills memory with a repeated value.
    Memset(Arc<MemsetOp>),
    /// Copies memory.
    Memcpy(Arc<MemcpyOp>),
    /// Runs an embedded graph.
    Child(GraphKey),
    /// Calls host code.
    Callback(CallbackOp),
    /// Records an event.
    EventRecord(Arc<dyn backend::Event>),
    /// Waits for an event.
    EventWait(Arc<dyn backend::Event>),
    /// Runs bodies as a condition decides.
    Conditional(Arc<ConditionalOp>),
    /// Runs a graph that only the backend understands.
    Opaque(Arc<dyn backend::Opaque>),
}

impl Operation {
    /// Returns the kind of node.
    #[inline]
    pub fn kind(&self) -> NodeKind {
        match self {
            Operation::Empty => NodeKind::Empty,
            Operation::Kernel(_) => NodeKind::Kernel,
            Operation::Alloc(_) => NodeKind::Alloc,
            Operation::Free(_) => NodeKind::Free,
            Operation::Memset(_) => NodeKind::Memset,
            Operation::Memcpy(_) => NodeKind::Memcpy,
            Operation::Child(_) => NodeKind::Child,
            Operation::Callback(_) => NodeKind::Callback,
            Operation::EventRecord(_) => NodeKind::EventRecord,
            Operation::EventWait(_) => NodeKind::EventWait,
            Operation::Conditional(conditional) => conditional.form.kind(),
            Operation::Opaque(_) => NodeKind::Opaque,
        }
    }

    /// Returns whether both operations do the same: same kernel object, equal arguments, identical
    /// closure.
    pub fn same(&self, other: &Self) -> bool {
        match self {
            Operation::Empty => matches!(other, Operation::Empty),
            Operation::Kernel(a) => matches!(other, Operation::Kernel(b) if {
                Launch::ptr_eq(a, b)
                    || Arc::ptr_eq(&a.kernel, &b.kernel) && a.config == b.config && a.args == b.args
            }),
            Operation::Alloc(a) => matches!(other, Operation::Alloc(b) if a == b),
            Operation::Free(a) => matches!(other, Operation::Free(b) if a.same(b)),
            Operation::Memset(a) => matches!(other, Operation::Memset(b) if Arc::ptr_eq(a, b) || a == b),
            Operation::Memcpy(a) => matches!(other, Operation::Memcpy(b) if Arc::ptr_eq(a, b) || a == b),
            Operation::Child(a) => matches!(other, Operation::Child(b) if a == b),
            Operation::Callback(a) => matches!(other, Operation::Callback(b) if a.same(b)),
            Operation::EventRecord(a) => matches!(other, Operation::EventRecord(b) if Arc::ptr_eq(a, b)),
            Operation::EventWait(a) => matches!(other, Operation::EventWait(b) if Arc::ptr_eq(a, b)),
            Operation::Conditional(a) => matches!(other, Operation::Conditional(b) if a == b),
            Operation::Opaque(a) => matches!(other, Operation::Opaque(b) if Arc::ptr_eq(a, b)),
        }
    }

    /// Calls `visit` with every region of memory that the operation is known to read or write.
    pub fn for_each_region<'a>(&'a self, mut visit: impl FnMut(&'a Region)) {
        match self {
            Operation::Kernel(kernel) => {
                for pointer in &kernel.args.pointers {
                    if let PointerValue::Region(region) = &pointer.value {
                        visit(region);
                    }
                }
            }
            Operation::Memset(memset) => visit(&memset.dst),
            Operation::Memcpy(memcpy) => {
                visit(&memcpy.dst.region);
                visit(&memcpy.src.region);
            }
            Operation::Conditional(conditional) => {
                if let Test::Value(region) = &conditional.test {
                    visit(region);
                }
            }
            Operation::Callback(callback) => callback.reads().iter().for_each(visit),
            Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Child(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Opaque(_) => {}
        }
    }

    /// Calls `visit` with every alloc node whose memory the operation reads, writes or frees.
    pub fn for_each_alloc_node(&self, mut visit: impl FnMut(NodeKey)) {
        self.for_each_region(|region| {
            if let Base::AllocNode(alloc) = region.base {
                visit(alloc);
            }
        });
        if let Operation::Free(FreeTarget::AllocNode(alloc)) = self {
            visit(*alloc);
        }
    }

    /// Calls `visit` with every condition that the operation tests or passes to a kernel.
    pub fn for_each_condition(&self, mut visit: impl FnMut(ConditionKey)) {
        match self {
            Operation::Kernel(kernel) => {
                for pointer in &kernel.args.pointers {
                    if let PointerValue::Condition(condition) = pointer.value {
                        visit(condition);
                    }
                }
            }
            Operation::Conditional(conditional) => {
                if let Test::Condition(condition) = conditional.test {
                    visit(condition);
                }
            }
            Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Memset(_)
            | Operation::Memcpy(_)
            | Operation::Child(_)
            | Operation::Callback(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Opaque(_) => {}
        }
    }

    /// Returns the number of bytes that a copy or fill writes. For other operations it is unknown.
    pub(crate) fn bytes_written(&self) -> Option<u64> {
        match self {
            Operation::Memset(fill) => Some(fill.width * fill.height * u64::from(fill.element_size)),
            Operation::Memcpy(copy) => Some(copy.width * copy.height * copy.depth),
            Operation::Empty
            | Operation::Kernel(_)
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Child(_)
            | Operation::Callback(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Conditional(_)
            | Operation::Opaque(_) => None,
        }
    }

    /// Returns the graphs inside a node with this operation, in order.
    #[inline]
    pub fn bodies(&self) -> &[GraphKey] {
        if let Operation::Conditional(conditional) = self {
            &conditional.bodies
        } else if let Operation::Child(graph) = self {
            std::slice::from_ref(graph)
        } else {
            &[]
        }
    }

    /// Returns the launch of a kernel.
    #[inline]
    pub fn as_kernel(&self) -> Option<&Launch> {
        if let Operation::Kernel(launch) = self { Some(launch) } else { None }
    }

    /// Returns the allocation of an alloc node.
    pub fn as_alloc(&self) -> Option<&Arc<AllocOp>> {
        if let Operation::Alloc(alloc) = self { Some(alloc) } else { None }
    }

    /// Returns the conditional, whatever its form.
    pub fn as_conditional(&self) -> Option<&Arc<ConditionalOp>> {
        if let Operation::Conditional(conditional) = self { Some(conditional) } else { None }
    }

    /// Returns the event that the operation records or waits for.
    pub fn event(&self) -> Option<&Arc<dyn backend::Event>> {
        if let Operation::EventRecord(event) | Operation::EventWait(event) = self {
            Some(event)
        } else {
            None
        }
    }

    /// Returns whether dropping the operation may run user code: that of a closure, or of an owner
    /// that arguments keep alive.
    pub fn may_run_user_code(&self) -> bool {
        match self {
            Operation::Callback(_) => true,
            Operation::Kernel(kernel) => kernel.args.owner.is_some(),
            Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Memset(_)
            | Operation::Memcpy(_)
            | Operation::Child(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Conditional(_)
            | Operation::Opaque(_) => false,
        }
    }

    /// Returns the operation with every reference to memory and to its definition changed by
    /// `change`.
    pub(crate) fn with_references(&self, change: &mut impl FnMut(Reference<'_>)) -> Operation {
        match self {
            Operation::Kernel(kernel) => {
                let mut kernel = (**kernel).clone();
                for pointer in &mut kernel.args.pointers {
                    change(match &mut pointer.value {
                        PointerValue::Region(region) => Reference::Region(region),
                        PointerValue::Condition(condition) => Reference::Condition(condition),
                    });
                }
                Operation::Kernel(Launch::new(kernel))
            }
            Operation::Memset(memset) => {
                let mut memset = (**memset).clone();
                change(Reference::Region(&mut memset.dst));
                Operation::Memset(Arc::new(memset))
            }
            Operation::Memcpy(memcpy) => {
                let mut memcpy = (**memcpy).clone();
                change(Reference::Region(&mut memcpy.dst.region));
                change(Reference::Region(&mut memcpy.src.region));
                Operation::Memcpy(Arc::new(memcpy))
            }
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                let mut alloc = *alloc;
                change(Reference::AllocNode(&mut alloc));
                Operation::Free(FreeTarget::AllocNode(alloc))
            }
            Operation::Child(graph) => {
                let mut graph = *graph;
                change(Reference::Graph(&mut graph));
                Operation::Child(graph)
            }
            Operation::Conditional(conditional) => {
                let mut conditional = (**conditional).clone();
                match &mut conditional.test {
                    Test::Condition(condition) => change(Reference::Condition(condition)),
                    Test::Value(region) => change(Reference::Region(region)),
                    Test::Count(_) => {}
                }
                for body in &mut conditional.bodies {
                    change(Reference::Graph(body));
                }
                Operation::Conditional(Arc::new(conditional))
            }
            Operation::Callback(CallbackOp::Closure(closure)) if !closure.reads().is_empty() => {
                let mut reads: Box<[Region]> = closure.reads().into();
                reads.iter_mut().for_each(|region| change(Reference::Region(region)));
                Operation::Callback(CallbackOp::Closure(Arc::new(closure.with_reads(reads))))
            }
            Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(FreeTarget::Outliving(_))
            | Operation::Callback(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Opaque(_) => self.clone(),
        }
    }
}

/// Something that an operation refers to.
pub(crate) enum Reference<'a> {
    /// Memory, of an alloc node or not.
    Region(&'a mut Region),
    /// The alloc node whose memory is freed.
    AllocNode(&'a mut NodeKey),
    /// A condition of the definition.
    Condition(&'a mut ConditionKey),
    /// A graph inside the node.
    Graph(&'a mut GraphKey),
}

/// The allocation of an alloc node, made at each launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocOp {
    /// The number of elements.
    pub len: u64,
    /// The size of an element in bytes.
    pub element_size: u32,
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The ordinals of other devices that can access the memory.
    pub peers: SmallVec<[u32; 2]>,
}

impl AllocOp {
    /// Returns the size in bytes. Adding the node has checked that the product does not overflow.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(u64::from(self.element_size))
    }
}

/// The memory that a free node frees.
#[derive(Clone, Debug)]
pub enum FreeTarget {
    /// The memory of an alloc node of the same graph.
    AllocNode(NodeKey),
    /// Memory that outlived a launch of an executable.
    Outliving(Arc<dyn backend::Allocation>),
}

impl FreeTarget {
    /// Returns whether both are the same memory.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (FreeTarget::AllocNode(a), FreeTarget::AllocNode(b)) => a == b,
            (FreeTarget::Outliving(a), FreeTarget::Outliving(b)) => Arc::ptr_eq(a, b),
            (FreeTarget::AllocNode(_), FreeTarget::Outliving(_))
            | (FreeTarget::Outliving(_), FreeTarget::AllocNode(_)) => false,
        }
    }
}

/// A fill: `height` rows of `width` elements, `pitch` bytes apart.
#[derive(Clone, Debug, PartialEq)]
pub struct MemsetOp {
    /// The destination. It reaches to the last byte of the last row.
    pub dst: Region,
    /// The value, in the low `element_size` bytes.
    pub value: u32,
    /// The size of an element: 1, 2 or 4 bytes.
    pub element_size: u32,
    /// The number of elements in a row.
    pub width: u64,
    /// The number of rows.
    pub height: u64,
    /// The distance between rows in bytes. Ignored if there is one row.
    pub pitch: u64,
}

/// One side of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySide {
    /// The memory.
    pub region: Region,
    /// The distance between rows in bytes.
    pub pitch: u64,
    /// The distance between planes in rows.
    pub rows: u64,
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcpyOp {
    /// The destination.
    pub dst: CopySide,
    /// The source.
    pub src: CopySide,
    /// The number of bytes in a row.
    pub width: u64,
    /// The number of rows in a plane.
    pub height: u64,
    /// The number of planes.
    pub depth: u64,
}

impl MemcpyOp {
    /// Creates a copy of one row.
    pub fn linear(dst: Region, src: Region, bytes: u64) -> Self {
        let side = |region| CopySide { region, pitch: bytes, rows: 1 };
        MemcpyOp { dst: side(dst), src: side(src), width: bytes, height: 1, depth: 1 }
    }
}

/// A node that decides which of its bodies run, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionalOp {
    /// The form: if, if-else, while or switch.
    pub form: ConditionalForm,
    /// The value that decides.
    pub test: Test,
    /// For loops: whether the test also precedes the first pass (`while`) or only follows each
    /// one (`do while`).
    pub test_first: bool,
    /// For loops: the largest number of passes in one execution of the node.
    pub max_passes: Option<u64>,
    /// The bodies, in order. The *then* body of an if-else comes first.
    pub bodies: SmallVec<[GraphKey; 2]>,
}

/// The form of a conditional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionalForm {
    /// One body. It runs if the value is not 0.
    If,
    /// Two bodies. The first runs if the value is not 0, else the second.
    IfElse,
    /// One body. It runs while the value is not 0.
    While,
    /// One body per case. The body whose index equals the value runs, if there is one.
    Switch,
}

impl ConditionalForm {
    /// Returns the node kind of this form.
    pub fn kind(self) -> NodeKind {
        match self {
            ConditionalForm::If => NodeKind::If,
            ConditionalForm::IfElse => NodeKind::IfElse,
            ConditionalForm::While => NodeKind::While,
            ConditionalForm::Switch => NodeKind::Switch,
        }
    }
}

/// The value that a conditional node tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A condition that kernels set.
    Condition(ConditionKey),
    /// A 32-bit integer in device memory. It is read at each test.
    Value(Region),
    /// A counter owned by the graph. Each execution of the node sets it to this number, and each
    /// pass decrements it.
    Count(u64),
}
