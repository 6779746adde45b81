//! The JSON form, documented at [`Graph::to_json`](crate::graph::Graph::to_json).

use serde::Serialize;

use super::JSON_VERSION;
use super::describe::memory_of;
use super::numbering::Numbering;
use crate::graph::definition::{Definition, EdgeKind, GraphKey, NodeKey};
use crate::memory::{Base, Region};
use crate::op::{
    CallbackOp, ConditionalForm, ConditionalOp, CopySide, FreeTarget, KernelArgs, KernelOp, Operation,
    PointerValue, RawData, Test,
};

pub(super) fn write(definition: &Definition, graph: GraphKey) -> String {
    let numbering = Numbering::new(definition, graph);
    let view = View { definition, numbering: &numbering };
    let file = FileJson {
        format: "gridloom-graph",
        version: JSON_VERSION,
        conditions: view.conditions(),
        buffers: numbering
            .buffers
            .iter()
            .enumerate()
            .map(|(id, buffer)| BufferJson { id, memory: buffer.kind().name(), bytes: buffer.bytes() })
            .collect(),
        events: numbering
            .events
            .iter()
            .enumerate()
            .map(|(id, event)| {
                let options = event.options();
                EventJson { id, timing: options.timing, blocking: options.blocking }
            })
            .collect(),
        graph: view.graph(graph),
    };
    // Writing strings, numbers and lists to a string cannot fail.
    serde_json::to_string_pretty(&file).unwrap_or_default()
}

#[derive(Serialize)]
struct FileJson {
    format: &'static str,
    version: u32,
    conditions: Vec<ConditionJson>,
    buffers: Vec<BufferJson>,
    events: Vec<EventJson>,
    graph: GraphJson,
}

#[derive(Serialize)]
struct ConditionJson {
    id: usize,
    default: Option<u32>,
    tested_by: Option<usize>,
}

#[derive(Serialize)]
struct BufferJson {
    id: usize,
    memory: &'static str,
    bytes: u64,
}

#[derive(Serialize)]
struct EventJson {
    id: usize,
    timing: bool,
    blocking: bool,
}

#[derive(Serialize)]
struct GraphJson {
    nodes: Vec<NodeJson>,
    edges: Vec<EdgeJson>,
}

#[derive(Serialize)]
struct NodeJson {
    id: usize,
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<ParamsJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<GraphJson>,
}

#[derive(Serialize)]
struct EdgeJson {
    from: usize,
    to: usize,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ParamsJson {
    Kernel {
        kernel: String,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        cluster: Option<[u32; 3]>,
        #[serde(skip_serializing_if = "is_false")]
        cooperative: bool,
        #[serde(skip_serializing_if = "is_false")]
        programmatic: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        priority: Option<i32>,
        args: Vec<ArgJson>,
    },
    Alloc {
        len: u64,
        element_size: u32,
        memory: &'static str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        peers: Vec<u32>,
    },
    FreeAlloc {
        alloc: Option<usize>,
    },
    FreeBuffer {
        buffer: usize,
    },
    Memset {
        dst: RegionJson,
        value: u32,
        element_size: u32,
        width: u64,
        height: u64,
        pitch: u64,
    },
    Memcpy {
        dst: SideJson,
        src: SideJson,
        width: u64,
        height: u64,
        depth: u64,
    },
    Callback {
        function: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<usize>,
        #[serde(skip_serializing_if = "is_false")]
        pointer: bool,
    },
    Event {
        event: usize,
    },
    Conditional {
        #[serde(flatten)]
        test: TestJson,
        #[serde(skip_serializing_if = "Option::is_none")]
        test_first: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_passes: Option<u64>,
    },
    Opaque {
        nodes: usize,
        reason: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum TestJson {
    Condition(Option<usize>),
    Value(RegionJson),
    Count(u64),
}

#[derive(Serialize)]
struct ArgJson {
    #[serde(flatten)]
    value: ArgValueJson,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pointers: Vec<PointerJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ArgValueJson {
    Value(String),
    Memory(RegionJson),
    Condition(Option<usize>),
}

#[derive(Serialize)]
struct PointerJson {
    at: u32,
    #[serde(flatten)]
    value: ArgValueJson,
}

#[derive(Serialize)]
struct SideJson {
    region: RegionJson,
    memory: Option<&'static str>,
    pitch: u64,
    rows: u64,
}

#[derive(Serialize)]
struct RegionJson {
    #[serde(flatten)]
    base: BaseJson,
    offset: u64,
    bytes: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BaseJson {
    Alloc { alloc: Option<usize>, name: String },
    Buffer { buffer: usize },
    Host { host: bool },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

struct View<'a> {
    definition: &'a Definition,
    numbering: &'a Numbering,
}

impl View<'_> {
    fn conditions(&self) -> Vec<ConditionJson> {
        let view = |(id, &key)| {
            let data = self.definition.get_condition(key);
            ConditionJson {
                id,
                default: data.and_then(|data| data.default),
                tested_by: data.and_then(|data| data.used_by).and_then(|node| self.numbering.node(node)),
            }
        };
        self.numbering.conditions.iter().enumerate().map(view).collect()
    }

    /// Returns a graph with everything inside it. The nesting of graphs bounds the recursion.
    fn graph(&self, graph: GraphKey) -> GraphJson {
        let number = |node| self.numbering.node(node).expect("a node of the picture");
        let kind = |kind| match kind {
            EdgeKind::Full => "full",
            EdgeKind::Programmatic => "programmatic",
        };
        let edges = self.definition.edges(graph).into_iter();
        GraphJson {
            nodes: self.definition.nodes(graph).map(|node| self.node(number(node), node)).collect(),
            edges: edges
                .map(|(from, to, edge)| EdgeJson { from: number(from), to: number(to), kind: kind(edge) })
                .collect(),
        }
    }

    fn node(&self, id: usize, key: NodeKey) -> NodeJson {
        let node = self.definition.node(key);
        NodeJson {
            id,
            name: self.definition.short_label(key),
            kind: node.operation.kind().name(),
            params: self.params(&node.operation),
            bodies: node.bodies().iter().map(|&body| self.graph(body)).collect(),
        }
    }

    fn params(&self, operation: &Operation) -> Option<ParamsJson> {
        Some(match operation {
            Operation::Empty | Operation::Child(_) => return None,
            Operation::Kernel(kernel) => self.kernel(kernel),
            Operation::Alloc(alloc) => ParamsJson::Alloc {
                len: alloc.len,
                element_size: alloc.element_size,
                memory: alloc.kind.name(),
                peers: alloc.peers.to_vec(),
            },
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                ParamsJson::FreeAlloc { alloc: self.numbering.node(*alloc) }
            }
            Operation::Free(FreeTarget::Outliving(buffer)) => {
                ParamsJson::FreeBuffer { buffer: self.numbering.buffer(buffer) }
            }
            Operation::Memset(memset) => ParamsJson::Memset {
                dst: self.region(&memset.dst),
                value: memset.value,
                element_size: memset.element_size,
                width: memset.width,
                height: memset.height,
                pitch: memset.pitch,
            },
            Operation::Memcpy(memcpy) => ParamsJson::Memcpy {
                dst: self.side(&memcpy.dst),
                src: self.side(&memcpy.src),
                width: memcpy.width,
                height: memcpy.height,
                depth: memcpy.depth,
            },
            Operation::Callback(CallbackOp::Closure(_)) => {
                ParamsJson::Callback { function: "closure", bytes: None, pointer: false }
            }
            Operation::Callback(CallbackOp::Raw(raw)) => match raw.data() {
                RawData::Bytes(bytes) => {
                    ParamsJson::Callback { function: "raw", bytes: Some(bytes.len()), pointer: false }
                }
                RawData::Pointer(_) => ParamsJson::Callback { function: "raw", bytes: None, pointer: true },
            },
            Operation::EventRecord(event) | Operation::EventWait(event) => {
                ParamsJson::Event { event: self.numbering.event(event) }
            }
            Operation::Conditional(conditional) => self.conditional(conditional),
            Operation::Opaque(opaque) => {
                ParamsJson::Opaque { nodes: opaque.node_count(), reason: opaque.reason().to_owned() }
            }
        })
    }

    fn kernel(&self, op: &KernelOp) -> ParamsJson {
        let args = (0..op.args.layout.len()).map(|index| self.argument(&op.args, index));
        ParamsJson::Kernel {
            kernel: op.kernel.name().to_owned(),
            grid: op.config.grid.to_array(),
            block: op.config.block.to_array(),
            shared: op.config.shared,
            cluster: op.config.cluster.map(|cluster| cluster.to_array()),
            cooperative: op.config.cooperative,
            programmatic: op.config.programmatic,
            priority: op.config.priority,
            args: args.collect(),
        }
    }

    fn argument(&self, args: &KernelArgs, index: usize) -> ArgJson {
        let bytes = args.value(index).unwrap_or_default();
        let mut pointers = args.pointers_in(index).map(|pointer| PointerJson {
            at: pointer.offset,
            value: match &pointer.value {
                PointerValue::Region(region) => ArgValueJson::Memory(self.region(region)),
                PointerValue::Condition(key) => ArgValueJson::Condition(self.numbering.condition(*key)),
            },
        });
        if bytes.len() == 8
            && let Some(pointer) = pointers.next()
        {
            return ArgJson { value: pointer.value, pointers: Vec::new() };
        }
        ArgJson { value: ArgValueJson::Value(hex(bytes)), pointers: pointers.collect() }
    }

    fn conditional(&self, op: &ConditionalOp) -> ParamsJson {
        let is_loop = op.form == ConditionalForm::While;
        ParamsJson::Conditional {
            test: match &op.test {
                Test::Condition(key) => TestJson::Condition(self.numbering.condition(*key)),
                Test::Value(region) => TestJson::Value(self.region(region)),
                Test::Count(passes) => TestJson::Count(*passes),
            },
            test_first: is_loop.then_some(op.test_first),
            max_passes: op.max_passes.filter(|_| is_loop),
        }
    }

    fn side(&self, side: &CopySide) -> SideJson {
        SideJson {
            region: self.region(&side.region),
            memory: memory_of(self.definition, &side.region).map(|kind| kind.name()),
            pitch: side.pitch,
            rows: side.rows,
        }
    }

    fn region(&self, region: &Region) -> RegionJson {
        let base = match &region.base {
            Base::AllocNode(alloc) => BaseJson::Alloc {
                alloc: self.numbering.node(*alloc),
                name: self.definition.short_label(*alloc),
            },
            Base::Allocation(buffer) => BaseJson::Buffer { buffer: self.numbering.buffer(buffer) },
            Base::Bytes(_) => BaseJson::Host { host: true },
        };
        RegionJson { base, offset: region.offset, bytes: region.bytes }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
