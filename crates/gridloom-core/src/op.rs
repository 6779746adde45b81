//! The operation of each kind of node, and what it holds.
//!
//! Payloads are shared (`Arc`, [`Launch`]) because definitions are copied on write. Copying a graph
//! of 100,000 nodes copies reference counts, not arguments.

mod arguments;
mod callback;
pub mod contract;
mod kernel;
mod owner;
mod params;

use std::sync::Arc;

use smallvec::SmallVec;

pub use crate::speed::Launch;
pub use callback::{CallbackOp, Closure, RawCallback, RawData, SendPointer};
pub use kernel::{ArgPacker, ArgValue, KernelArgs, KernelOp, PointerArg, PointerValue};
pub use owner::Owner;
pub use params::{ParamLayout, Params};

use crate::backend;
use crate::graph::{ConditionKey, GraphKey, NodeKey};
use crate::memory::{Base, MemoryKind, Region};

/// The work of one node.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

/// A set of kinds of node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeKinds(u16);

impl NodeKinds {
    /// Creates a set of these kinds.
    pub const fn of(kinds: &[NodeKind]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u16;
            index += 1;
        }
        NodeKinds(bits)
    }

    /// Returns the union of two sets.
    pub const fn union(self, others: NodeKinds) -> Self {
        NodeKinds(self.0 | others.0)
    }

    /// Adds a kind to the set.
    #[inline]
    pub fn insert(&mut self, kind: NodeKind) {
        self.0 |= 1 << kind as u16;
    }

    /// Returns whether the two sets have a kind in common.
    #[inline]
    pub fn any_of(self, others: NodeKinds) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns whether every kind of this set is also in `others`.
    #[inline]
    pub fn are_among(self, others: NodeKinds) -> bool {
        self.0 & !others.0 == 0
    }
}

/// A kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Does nothing.
    Empty,
    /// Runs a kernel.
    Kernel,
    /// Allocates memory.
    Alloc,
    /// Frees memory.
    Free,
    /// Fills memory.
    Memset,
    /// Copies memory.
    Memcpy,
    /// Runs an embedded graph.
    Child,
    /// Calls host code.
    Callback,
    /// Records an event.
    EventRecord,
    /// Waits for an event.
    EventWait,
    /// Runs its body when the condition is not 0.
    If,
    /// Runs one of two bodies.
    IfElse,
    /// Runs its body while the condition is not 0.
    While,
    /// Runs the body whose index equals the condition.
    Switch,
    /// Runs a graph that only the backend understands.
    Opaque,
}

impl NodeKind {
    /// All kinds, for tables and tests.
    pub const ALL: [NodeKind; 15] = [
        NodeKind::Empty,
        NodeKind::Kernel,
        NodeKind::Alloc,
        NodeKind::Free,
        NodeKind::Memset,
        NodeKind::Memcpy,
        NodeKind::Child,
        NodeKind::Callback,
        NodeKind::EventRecord,
        NodeKind::EventWait,
        NodeKind::If,
        NodeKind::IfElse,
        NodeKind::While,
        NodeKind::Switch,
        NodeKind::Opaque,
    ];

    /// The kinds that have bodies and decide which of them run.
    pub const CONDITIONALS: NodeKinds =
        NodeKinds::of(&[NodeKind::If, NodeKind::IfElse, NodeKind::While, NodeKind::Switch]);

    /// Returns the name of the kind, as errors and pictures show it.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Empty => "empty",
            NodeKind::Kernel => "kernel",
            NodeKind::Alloc => "alloc",
            NodeKind::Free => "free",
            NodeKind::Memset => "memset",
            NodeKind::Memcpy => "memcpy",
            NodeKind::Child => "child",
            NodeKind::Callback => "callback",
            NodeKind::EventRecord => "record",
            NodeKind::EventWait => "wait",
            NodeKind::If => "if",
            NodeKind::IfElse => "if-else",
            NodeKind::While => "while",
            NodeKind::Switch => "switch",
            NodeKind::Opaque => "opaque",
        }
    }
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
        match (self, other) {
            (Operation::Empty, Operation::Empty) => true,
            (Operation::Kernel(a), Operation::Kernel(b)) => {
                Launch::ptr_eq(a, b)
                    || Arc::ptr_eq(&a.kernel, &b.kernel) && a.config == b.config && a.args == b.args
            }
            (Operation::Alloc(a), Operation::Alloc(b)) => a == b,
            (Operation::Free(FreeTarget::AllocNode(a)), Operation::Free(FreeTarget::AllocNode(b))) => a == b,
            (Operation::Free(FreeTarget::Outliving(a)), Operation::Free(FreeTarget::Outliving(b))) => {
                Arc::ptr_eq(a, b)
            }
            (Operation::Memset(a), Operation::Memset(b)) => Arc::ptr_eq(a, b) || a == b,
            (Operation::Memcpy(a), Operation::Memcpy(b)) => Arc::ptr_eq(a, b) || a == b,
            (Operation::Child(a), Operation::Child(b)) => a == b,
            (Operation::Callback(a), Operation::Callback(b)) => a.same(b),
            (Operation::EventRecord(a), Operation::EventRecord(b))
            | (Operation::EventWait(a), Operation::EventWait(b)) => Arc::ptr_eq(a, b),
            (Operation::Conditional(a), Operation::Conditional(b)) => {
                a.form == b.form
                    && a.test == b.test
                    && a.test_first == b.test_first
                    && a.max_passes == b.max_passes
                    && a.bodies == b.bodies
            }
            (Operation::Opaque(a), Operation::Opaque(b)) => Arc::ptr_eq(a, b),
            _ => false,
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
            _ => {}
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
            _ => {}
        }
    }
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
#[derive(Clone, Debug)]
pub struct ConditionalOp {
    /// The form: if, if-else, while or switch.
    pub form: ConditionalForm,
    /// The value that decides.
    pub test: Test,
    /// For loops: whether the test also precedes the first iteration (`while`) or only follows each
    /// one (`do while`).
    pub test_first: bool,
    /// For loops: the largest number of iterations in one execution of the node.
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
    /// iteration decrements it.
    Count(u64),
}
