//! The contents of `graph.json`: a graph as data, with everything it refers to in numbered lists.

use serde::{Deserialize, Serialize};

/// The name of the format, with which `graph.json` starts.
pub const FORMAT: &str = "gridloom-saved-graph";
/// The version of the format. It is raised when an older reader would misunderstand a file.
pub const VERSION: u32 = 1;

/// A graph and everything inside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The name of the format, [`FORMAT`].
    pub format: String,
    /// The version of the format, [`VERSION`].
    pub version: u32,
    /// The number of modules. Module `n` is the entry `modules/n.ptx`.
    pub modules: usize,
    /// The kernels that nodes launch.
    pub kernels: Vec<Kernel>,
    /// The memory outside of the graph.
    pub buffers: Vec<Buffer>,
    /// The number of arrays of bytes that copies read. Array `n` is the entry `constants/n.npy`.
    pub constants: usize,
    /// The events that nodes record and wait for.
    pub events: Vec<Event>,
    /// The conditions, in the order of the graphs that made them.
    pub conditions: Vec<Condition>,
    /// The graphs. The first is the outermost one. Each other one is inside a node of an earlier
    /// one.
    pub graphs: Vec<Graph>,
    /// The memory that a user fills before a launch.
    pub inputs: Vec<Port>,
    /// The memory that a user reads after a launch.
    pub outputs: Vec<Port>,
}

impl Default for Document {
    /// Creates a document without anything in it, not even a graph.
    fn default() -> Self {
        Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            modules: 0,
            kernels: Vec::new(),
            buffers: Vec::new(),
            constants: 0,
            events: Vec::new(),
            conditions: Vec::new(),
            graphs: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// A kernel of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The number of the module.
    pub module: usize,
    /// The name in the module.
    pub name: String,
    /// The types and the contract that launches are checked against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// The types of a kernel's parameters, and what it requires of its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// For pointers: the number of elements that their memory holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<(u32, Expr)>,
    /// Relations between numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
    /// Pairs of pointers whose memory has to be apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disjoint: Vec<(u32, u32)>,
}

/// The type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Param {
    /// A plain value of a type: a scalar such as `u32` or `f32`, or another type by its name.
    Value(String),
    /// A number of elements, of an integer type.
    Length(String),
    /// The address of elements that the kernel reads.
    Pointer(Element),
    /// The address of elements that the kernel reads and writes.
    PointerMut(Element),
    /// The handle of a condition.
    Condition,
}

/// What a pointer leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Element {
    /// The type: a scalar, or another type by its name.
    #[serde(rename = "type")]
    pub name: String,
    /// The size in bytes.
    pub size: u32,
    /// Whether the pointer may be null.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
}

/// Two numbers and a relation between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Bound {
    /// The first is at most the second.
    AtMost(Expr, Expr),
    /// The first is a multiple of the second.
    MultipleOf(Expr, Expr),
}

/// A number that is computed from a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Expr {
    /// A fixed number.
    Constant(i64),
    /// The value of an argument.
    Argument(u32),
    /// The number of elements behind a pointer.
    Length(u32),
    /// The number of blocks along an axis.
    Grid(Axis),
    /// The number of threads of a block along an axis.
    Block(Axis),
    /// A sum.
    Sum(Box<(Expr, Expr)>),
    /// The first number minus the second.
    Difference(Box<(Expr, Expr)>),
    /// A product.
    Product(Box<(Expr, Expr)>),
    /// The larger of two numbers.
    Max(Box<(Expr, Expr)>),
}

/// An axis of a grid or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The first.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

/// Memory outside of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Buffer {
    /// Device memory of this many bytes. It is filled with 0 unless it is an input.
    Device(u64),
    /// Host memory that the device can access.
    Host(u64),
    /// Memory that host and device share.
    Managed(u64),
    /// A variable of a module, with the initial value that the module gives it.
    Variable {
        /// The number of the module.
        module: usize,
        /// The name in the module.
        name: String,
        /// The size in bytes.
        bytes: u64,
    },
}

impl Buffer {
    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Buffer::Device(bytes) | Buffer::Host(bytes) | Buffer::Managed(bytes) => *bytes,
            Buffer::Variable { bytes, .. } => *bytes,
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Whether it keeps the time of its recording.
    pub timing: bool,
    /// Whether a waiting host thread sleeps.
    pub blocking: bool,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The number of the graph that made it.
    pub graph: usize,
    /// The value that every launch sets, if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<u32>,
}

/// The nodes of one graph. Each comes after those it depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The name that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The numbers of the nodes of the same graph that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// Those of them whose edges are programmatic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programmatic: Vec<usize>,
    /// What the node does.
    pub operation: Operation,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Nothing.
    Empty,
    /// Launches a kernel.
    Kernel(Launch),
    /// Allocates memory at each launch.
    Alloc {
        /// The number of elements.
        len: u64,
        /// The size of an element in bytes.
        element_size: u32,
        /// The kind of memory.
        memory: MemoryKind,
        /// The ordinals of other devices that can access it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        peers: Vec<u32>,
    },
    /// Frees the memory of an alloc node.
    Free(NodeRef),
    /// Fills memory.
    Memset {
        /// The memory.
        dst: Region,
        /// The value, in the low bytes.
        value: u32,
        /// The size of the value: 1, 2 or 4 bytes.
        element_size: u32,
        /// The number of elements in a row.
        width: u64,
        /// The number of rows.
        height: u64,
        /// The distance of rows in bytes.
        pitch: u64,
    },
    /// Copies memory.
    Memcpy {
        /// The destination.
        dst: CopySide,
        /// The source.
        src: CopySide,
        /// The number of bytes in a row.
        width: u64,
        /// The number of rows in a plane.
        height: u64,
        /// The number of planes.
        depth: u64,
    },
    /// Runs an embedded graph, by its number.
    Child(usize),
    /// Records an event, by its number.
    Record(usize),
    /// Waits for an event, by its number.
    Wait(usize),
    /// Runs its body if the value is not 0.
    If {
        /// The value that decides.
        test: Test,
        /// The number of the body.
        body: usize,
    },
    /// Runs the first body if the value is not 0, else the second.
    IfElse {
        /// The value that decides.
        test: Test,
        /// The numbers of the bodies.
        bodies: [usize; 2],
    },
    /// Runs its body while the value is not 0.
    While {
        /// The value that decides.
        test: Test,
        /// The number of the body.
        body: usize,
        /// Whether the first pass comes before the first test.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_least_once: bool,
        /// The largest number of passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_passes: Option<u64>,
    },
    /// Runs the body whose position is the value.
    Switch {
        /// The value that decides.
        test: Test,
        /// The numbers of the bodies.
        bodies: Vec<usize>,
    },
}

impl Operation {
    /// Returns the numbers of the graphs inside a node, in order.
    pub fn bodies(&self) -> &[usize] {
        match self {
            Operation::Child(body) | Operation::If { body, .. } | Operation::While { body, .. } => {
                std::slice::from_ref(body)
            }
            Operation::IfElse { bodies, .. } => bodies,
            Operation::Switch { bodies, .. } => bodies,
            _ => &[],
        }
    }

    /// Returns the word for the kind of node, as pictures show it.
    pub fn kind(&self) -> &'static str {
        match self {
            Operation::Empty => "empty",
            Operation::Kernel(_) => "kernel",
            Operation::Alloc { .. } => "alloc",
            Operation::Free(_) => "free",
            Operation::Memset { .. } => "memset",
            Operation::Memcpy { .. } => "memcpy",
            Operation::Child(_) => "child",
            Operation::Record(_) => "record",
            Operation::Wait(_) => "wait",
            Operation::If { .. } => "if",
            Operation::IfElse { .. } => "if-else",
            Operation::While { .. } => "while",
            Operation::Switch { .. } => "switch",
        }
    }
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The number of the kernel.
    pub kernel: usize,
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
    /// The number of threads of a block along each axis.
    pub block: [u32; 3],
    /// The dynamic shared memory of a block in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared: u32,
    /// The blocks of a cluster along each axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must be resident at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
    /// The priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Whether it may start before the kernels it follows have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// The arguments.
    pub args: Vec<Arg>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arg {
    /// An integer of the type that the kernel's signature says.
    Integer(i64),
    /// A 32-bit float, as Rust writes it.
    F32(String),
    /// A 64-bit float, as Rust writes it.
    F64(String),
    /// The bytes of any other value, as hexadecimal digits.
    Bytes(String),
    /// The address of memory.
    Memory(Region),
    /// The handle of a condition, by its number.
    Condition(usize),
    /// A structure with addresses or handles inside.
    Structure {
        /// Its bytes, as hexadecimal digits. Those of addresses and handles do not matter.
        bytes: String,
        /// The addresses and handles.
        pointers: Vec<Pointer>,
    },
}

/// An address or handle inside a structure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    /// Its offset in bytes.
    pub offset: u32,
    /// What it refers to.
    pub to: PointerTarget,
}

/// What an address or handle inside a structure refers to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PointerTarget {
    /// Memory.
    Memory(Region),
    /// A condition, by its number.
    Condition(usize),
}

/// A part of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The memory.
    pub of: Memory,
    /// The start in bytes.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u64,
}

/// Memory that a region is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Memory {
    /// A buffer, by its number.
    Buffer(usize),
    /// The memory of an alloc node.
    Alloc(NodeRef),
    /// An array of bytes in the file, by its number. It can only be read.
    Constant(usize),
}

/// A node of any graph: the number of the graph, and that of the node in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeRef(pub usize, pub usize);

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Device memory.
    Device,
    /// Host memory that the device can access.
    Host,
    /// Memory that host and device share.
    Managed,
}

/// One side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopySide {
    /// The memory.
    pub region: Region,
    /// The distance of rows in bytes.
    pub pitch: u64,
    /// The distance of planes in rows.
    pub rows: u64,
}

/// The value that a conditional tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// A condition, by its number.
    Condition(usize),
    /// A 32-bit integer in memory.
    Value(Region),
    /// A number of passes. Only loops have it.
    Count(u64),
}

/// Memory with a name, for whoever runs the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// The name: letters, digits, `_`, `-` and `.`. The contents of an input are the entry
    /// `inputs/NAME.npy`.
    pub name: String,
    /// The memory.
    pub region: Region,
    /// The type of the elements, as NumPy writes it.
    pub dtype: String,
    /// The shape of the array.
    pub shape: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_format_page_are_what_the_page_says() {
        let page = include_str!("../../../docs/file-format.md");
        let examples: Vec<&str> =
            page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        let [kernel, node, port] = examples[..] else { panic!("{} examples", examples.len()) };
        let kernel: Kernel = serde_json::from_str(kernel).unwrap();
        assert_eq!((&*kernel.name, kernel.signature.unwrap().params.len()), ("heat_step", 4));
        let node: Node = serde_json::from_str(node).unwrap();
        assert!(matches!(&node.operation, Operation::Kernel(launch) if launch.args.len() == 2));
        let port: Port = serde_json::from_str(port).unwrap();
        assert_eq!((&*port.dtype, &port.shape[..]), ("<f4", &[32, 32][..]));
    }
}
