//! What each kind of node does, and what it holds while it waits to do it.
//!
//! Payloads are shared (`Arc`, [`Launch`]) because definitions are copied on write: a copy of a graph of 100,000 nodes copies
//! reference counts, not arguments.

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
    /// Nothing; a point for edges to meet.
    Empty,
    /// Runs a kernel.
    Kernel(Launch),
    /// Provides memory to the nodes ordered after it.
    Alloc(Arc<AllocOp>),
    /// Ends the life of memory.
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
    /// Runs bodies as a condition says.
    Conditional(Arc<ConditionalOp>),
    /// Runs a graph of the device's own that cannot be looked into.
    Opaque(Arc<dyn backend::Opaque>),
}

/// Some of the kinds of node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeKinds(u16);

impl NodeKinds {
    /// These kinds.
    pub const fn of(kinds: &[NodeKind]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u16;
            index += 1;
        }
        NodeKinds(bits)
    }

    /// These and `others`.
    pub const fn union(self, others: NodeKinds) -> Self {
        NodeKinds(self.0 | others.0)
    }

    /// Adds a kind.
    #[inline]
    pub fn insert(&mut self, kind: NodeKind) {
        self.0 |= 1 << kind as u16;
    }

    /// Whether any of `others` is among them.
    #[inline]
    pub fn any_of(self, others: NodeKinds) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether there is none but of `others`.
    #[inline]
    pub fn are_among(self, others: NodeKinds) -> bool {
        self.0 & !others.0 == 0
    }
}

/// The fifteen kinds of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Does nothing.
    Empty,
    /// Runs a kernel.
    Kernel,
    /// Provides memory.
    Alloc,
    /// Ends the life of memory.
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
    /// Runs the body whose index is the condition.
    Switch,
    /// Runs a graph of the device's own.
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

    /// The kind's name, as errors and pictures show it.
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
    /// Which of the fifteen kinds it is.
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

    /// Whether both do the same with the same: the same kernel object, equal arguments, the very same closure.
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

    /// Calls `visit` with every region of memory that the operation reads or writes.
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

    /// Calls `visit` with every condition that the operation is given or tests.
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

/// Memory provided at each launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocOp {
    /// Elements.
    pub len: u64,
    /// Bytes of each.
    pub element_size: u32,
    /// Where it lives.
    pub kind: MemoryKind,
    /// Other devices that can reach it, by ordinal.
    pub peers: SmallVec<[u32; 2]>,
}

impl AllocOp {
    /// Bytes in all. The product was checked when the node was added.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(u64::from(self.element_size))
    }
}

/// What a free node frees.
#[derive(Clone, Debug)]
pub enum FreeTarget {
    /// The memory of an alloc node of the same graph.
    AllocNode(NodeKey),
    /// Memory that outlived the launch of an executable.
    Outliving(Arc<dyn backend::Allocation>),
}

/// A fill: `height` rows of `width` elements, `pitch` bytes apart.
#[derive(Clone, Debug, PartialEq)]
pub struct MemsetOp {
    /// Where to; holds the last byte of the last row.
    pub dst: Region,
    /// The value, in the low `element_size` bytes.
    pub value: u32,
    /// 1, 2 or 4 bytes.
    pub element_size: u32,
    /// Elements in a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Bytes from one row to the next; ignored when there is one row.
    pub pitch: u64,
}

/// One side of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySide {
    /// The memory.
    pub region: Region,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Rows from one plane to the next.
    pub rows: u64,
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcpyOp {
    /// Where to.
    pub dst: CopySide,
    /// Where from.
    pub src: CopySide,
    /// Bytes in a row.
    pub width: u64,
    /// Rows in a plane.
    pub height: u64,
    /// Planes.
    pub depth: u64,
}

impl MemcpyOp {
    /// A copy of one row.
    pub fn linear(dst: Region, src: Region, bytes: u64) -> Self {
        let side = |region| CopySide { region, pitch: bytes, rows: 1 };
        MemcpyOp { dst: side(dst), src: side(src), width: bytes, height: 1, depth: 1 }
    }
}

/// A node that decides which of its bodies run, and how often.
#[derive(Clone, Debug)]
pub struct ConditionalOp {
    /// If, if-else, while or switch.
    pub form: ConditionalForm,
    /// What decides.
    pub test: Test,
    /// For loops: whether the test comes before the first pass (`while`) or only after each (`do while`).
    pub test_first: bool,
    /// For loops: the most passes of one execution of the node.
    pub max_passes: Option<u64>,
    /// The bodies, in order. An if-else has the *then* body first.
    pub bodies: SmallVec<[GraphKey; 2]>,
}

/// The four forms of conditional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionalForm {
    /// One body, run when the value is not 0.
    If,
    /// Two bodies: the first runs when the value is not 0, else the second.
    IfElse,
    /// One body, run while the value is not 0.
    While,
    /// As many bodies as there are cases.
    Switch,
}

impl ConditionalForm {
    /// The node kind of this form.
    pub fn kind(self) -> NodeKind {
        match self {
            ConditionalForm::If => NodeKind::If,
            ConditionalForm::IfElse => NodeKind::IfElse,
            ConditionalForm::While => NodeKind::While,
            ConditionalForm::Switch => NodeKind::Switch,
        }
    }
}

/// What a conditional node tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A condition, set by kernels.
    Condition(ConditionKey),
    /// A 32-bit integer in device memory, read each time.
    Value(Region),
    /// A counter owned by the graph, set to this at each execution of the node and counted down by one a pass.
    Count(u64),
}
