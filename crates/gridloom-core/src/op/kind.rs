//! The kinds of node, and one table of facts about them.
//!
//! Whatever depends only on the kind of a node is a column of this table. The rest of the workspace
//! asks the table instead of keeping lists of kinds. A new kind is a new row; the macro makes the
//! variant, the list of all kinds and the facts from it.

/// A kind of node, as a set of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindFacts {
    /// The name of the kind, as errors and pictures show it.
    pub name: &'static str,
    /// What a node of the kind becomes when its graph is lowered.
    pub role: Role,
    /// What a stream does with an operation of the kind.
    pub stream: StreamUse,
    /// Which part of an operation of the kind can be replaced.
    pub replace: Replace,
    /// Whether an executable can disable nodes of the kind.
    pub can_disable: bool,
    /// Whether a GPU can run the kind in the body of a conditional that it decides by itself.
    /// CUDA forbids the others there, so the host decides such conditionals.
    pub in_device_bodies: bool,
    /// Whether nodes of the kind start or end the life of memory.
    pub manages_memory: bool,
    /// Whether operations of the kind may read bytes that were copied from the caller.
    pub reads_bytes: bool,
    /// Whether a graph that kernels launch can hold nodes of the kind. CUDA forbids the others
    /// there.
    pub in_device_launches: bool,
}

/// What a node becomes when its graph is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An edge. The node only orders others, or its effect is planned before the launch.
    Order,
    /// The nodes of the graph inside it.
    Child,
    /// A decision which of the graphs inside it run.
    Conditional,
    /// A graph of the backend's own.
    Opaque,
    /// One piece of work.
    Work,
}

impl Role {
    /// Returns whether nodes of this role contain graphs.
    pub const fn has_bodies(self) -> bool {
        matches!(self, Role::Child | Role::Conditional)
    }
}

/// What a stream does with an operation outside of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamUse {
    /// It runs the operation.
    Runs,
    /// It accepts the operation and has nothing to do.
    Ignores,
    /// It refuses the operation, which belongs in a graph.
    Refuses,
}

/// Which part of an operation can be replaced by that of another one of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Everything.
    All,
    /// The tested memory, the count and the bound of a conditional. The rest is topology.
    Test,
    /// Nothing, because the operation is topology.
    Topology,
    /// Nothing, because there is nothing to replace.
    Nothing,
}

/// Makes [`NodeKind`] from the table of facts.
macro_rules! node_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident: $name:literal, $role:ident, $stream:ident, $replace:ident,
       $disable:literal, $bodies:literal, $memory:literal, $bytes:literal, $launches:literal;)+) => {
        /// A kind of node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum NodeKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl NodeKind {
            /// All kinds, for tables and tests.
            pub const ALL: &'static [NodeKind] = &[$(NodeKind::$kind),+];

            /// Returns the facts about the kind.
            #[inline]
            pub const fn facts(self) -> &'static KindFacts {
                match self {
                    $(NodeKind::$kind => &KindFacts {
                        name: $name,
                        role: Role::$role,
                        stream: StreamUse::$stream,
                        replace: Replace::$replace,
                        can_disable: $disable,
                        in_device_bodies: $bodies,
                        manages_memory: $memory,
                        reads_bytes: $bytes,
                        in_device_launches: $launches,
                    },)+
                }
            }
        }
    };
}

node_kinds! {
    //           name        role         stream   replace   can      in device  manages  reads    in device
    //                                                       disable  bodies     memory   bytes    launches
    /// Does nothing.
    Empty:       "empty",    Order,       Ignores, Nothing,  false,   true,      false,   false,   true;
    /// Runs a kernel.
    Kernel:      "kernel",   Work,        Runs,    All,      true,    true,      false,   false,   true;
    /// Allocates memory.
    Alloc:       "alloc",    Order,       Refuses, Topology, false,   true,      true,    false,   true;
    /// Frees memory.
    Free:        "free",     Order,       Refuses, Topology, false,   true,      true,    false,   true;
    /// Fills memory.
    Memset:      "memset",   Work,        Runs,    All,      true,    true,      false,   false,   true;
    /// Copies memory.
    Memcpy:      "memcpy",   Work,        Runs,    All,      true,    true,      false,   true,   true;
    /// Runs an embedded graph.
    Child:       "child",    Child,       Refuses, Topology, false,   true,      false,   false,   true;
    /// Calls host code.
    Callback:    "callback", Work,        Runs,    All,      false,   false,     false,   false,   false;
    /// Records an event.
    EventRecord: "record",   Work,        Runs,    All,      false,   false,     false,   false,   false;
    /// Waits for an event.
    EventWait:   "wait",     Work,        Runs,    All,      false,   false,     false,   false,   false;
    /// Runs its body when the condition is not 0.
    If:          "if",       Conditional, Refuses, Test,     false,   true,      false,   false,   false;
    /// Runs one of two bodies.
    IfElse:      "if-else",  Conditional, Refuses, Test,     false,   true,      false,   false,   false;
    /// Runs its body while the condition is not 0.
    While:       "while",    Conditional, Refuses, Test,     false,   true,      false,   false,   false;
    /// Runs the body whose index equals the condition.
    Switch:      "switch",   Conditional, Refuses, Test,     false,   true,      false,   false,   false;
    /// Runs a graph that only the backend understands.
    Opaque:      "opaque",   Opaque,      Refuses, All,      false,   true,      false,   false,   false;
}

/// Makes the set of all kinds whose facts satisfy a condition.
macro_rules! kinds_where {
    ($facts:ident => $condition:expr) => {{
        let (mut set, mut index) = (NodeKinds(0), 0);
        while index < NodeKind::ALL.len() {
            let $facts = NodeKind::ALL[index].facts();
            if $condition {
                set.insert(NodeKind::ALL[index]);
            }
            index += 1;
        }
        set
    }};
}

impl NodeKind {
    /// The kinds that have bodies and decide which of them run.
    pub const CONDITIONALS: NodeKinds = kinds_where!(facts => matches!(facts.role, Role::Conditional));

    /// The kinds that are one piece of work each.
    pub const WORK: NodeKinds = kinds_where!(facts => matches!(facts.role, Role::Work));

    /// The kinds that start or end the life of memory.
    pub const MEMORY: NodeKinds = kinds_where!(facts => facts.manages_memory);

    /// The kinds that may read bytes that were copied from the caller.
    pub const READERS_OF_BYTES: NodeKinds = kinds_where!(facts => facts.reads_bytes);

    /// The kinds no part of whose operations is topology.
    pub(crate) const PARAMETERS_ONLY: NodeKinds =
        kinds_where!(facts => matches!(facts.replace, Replace::All | Replace::Nothing));

    /// Returns the name of the kind, as errors and pictures show it.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }
}

/// A set of kinds of node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeKinds(u32);

const _: () = assert!(NodeKind::ALL.len() <= u32::BITS as usize, "a set has one bit for each kind");

impl NodeKinds {
    /// Creates a set of these kinds.
    pub const fn of(kinds: &[NodeKind]) -> Self {
        let (mut set, mut index) = (NodeKinds(0), 0);
        while index < kinds.len() {
            set.insert(kinds[index]);
            index += 1;
        }
        set
    }

    /// Returns the union of two sets.
    pub const fn union(self, others: NodeKinds) -> Self {
        NodeKinds(self.0 | others.0)
    }

    /// Adds a kind to the set.
    #[inline]
    pub const fn insert(&mut self, kind: NodeKind) {
        self.0 |= 1 << kind as u32;
    }

    /// Returns whether the two sets have a kind in common.
    #[inline]
    pub const fn any_of(self, others: NodeKinds) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns whether every kind of this set is also in `others`.
    #[inline]
    pub const fn are_among(self, others: NodeKinds) -> bool {
        self.0 & !others.0 == 0
    }
}
