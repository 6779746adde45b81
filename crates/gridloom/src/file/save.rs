//! Writing graphs to files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gridloom_core::backend;
use gridloom_core::graph::{ConditionKey, Definition, EdgeEnd, EdgeKind, GraphKey, NodeKey};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::contract::{ParamKind, ParamType};
use gridloom_core::op::{
    ConditionalForm, ConditionalOp, CopySide, FreeTarget, KernelArgs, KernelOp, Operation, PointerValue, Test,
};
use gridloom_core::user_code;
use gridloom_file::document as file;
use gridloom_file::{Array, DType, GraphFile, hex};

use super::{failed, invalid, types};
use crate::buffer::{Element, Memory, zeroed};
use crate::{Error, ErrorKind, Graph, Result};

/// A graph that is about to be saved, with its inputs and outputs. Made by [`Graph::saver`].
#[derive(Clone)]
pub struct GraphSaver {
    graph: Graph,
    inputs: Vec<Marked>,
    outputs: Vec<Marked>,
}

/// Memory with a name.
#[derive(Clone)]
struct Marked {
    name: String,
    region: Region,
    dtype: DType,
    shape: Vec<u64>,
}

impl GraphSaver {
    pub(super) fn new(graph: &Graph) -> Self {
        GraphSaver { graph: graph.clone(), inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Marks a buffer, or a part of one, as an input. The file holds its contents at the time of
    /// saving, and whoever loads the graph can give other ones.
    ///
    /// A name consists of letters, digits, `_`, `-` and `.`. An input and an output of the same
    /// name are the same memory.
    pub fn input<T: Element>(mut self, name: &str, memory: &impl Memory<T>) -> Result<Self> {
        self.inputs.push(mark(name, memory)?);
        Ok(self)
    }

    /// Marks a buffer, or a part of one, as an output.
    pub fn output<T: Element>(mut self, name: &str, memory: &impl Memory<T>) -> Result<Self> {
        self.outputs.push(mark(name, memory)?);
        Ok(self)
    }

    /// Gives the inputs and outputs of this name a shape. Without one they have one dimension.
    pub fn shape(mut self, name: &str, shape: &[usize]) -> Result<Self> {
        let mut marked =
            self.inputs.iter_mut().chain(&mut self.outputs).filter(|marked| marked.name == name).peekable();
        if marked.peek().is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("no input or output is called {name}")));
        }
        for marked in marked {
            let elements = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent as u64));
            let has = marked.region.bytes / u64::from(marked.dtype.size.max(1));
            if elements != Some(has) {
                let message = format!("{name} has {has} elements, which are not an array of shape {shape:?}");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            marked.shape = shape.iter().map(|&extent| extent as u64).collect();
        }
        Ok(self)
    }

    pub(super) fn input_region(mut self, port: &super::Port, region: Region) -> Self {
        self.inputs.push(Marked {
            name: port.name.clone(),
            region,
            dtype: port.dtype,
            shape: port.shape.clone(),
        });
        self
    }

    pub(super) fn output_region(mut self, port: &super::Port, region: Region) -> Self {
        self = self.input_region(port, region);
        self.outputs.extend(self.inputs.pop());
        self
    }

    /// Writes the file. A file that is there is replaced once the new one is complete.
    ///
    /// Fails as [`Graph::save`] does.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes()?;
        // Beside the file, so that renaming stays on one file system.
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = Path::new(&beside);
        let written = std::fs::write(beside, bytes).and_then(|()| std::fs::rename(beside, path));
        written.map_err(|error| {
            drop(std::fs::remove_file(beside));
            failed(path, "written", error)
        })
    }

    /// Returns the contents of the file. Equal graphs have equal contents.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // A graph inside another one is saved as a graph of its own.
        let graph = match self.graph.owner().is_none() && self.graph.is_valid() {
            true => self.graph.clone(),
            false => self.graph.deep_clone()?.0,
        };
        let definition = graph.0.definition();
        let mut saving = Saving::new(&definition);
        saving.add_graphs()?;
        for marked in &self.inputs {
            let port = saving.port(marked)?;
            saving.file.document.inputs.push(port);
        }
        for marked in &self.outputs {
            let port = saving.port(marked)?;
            saving.file.document.outputs.push(port);
        }
        saving.check_aliases()?;
        let mut file = saving.file;
        let device = graph.0.device();
        let _wait = user_code::may_wait(device.id(), "saving a graph")?;
        device.wait_all()?;
        for marked in &self.inputs {
            file.inputs.push(marked.contents(&**device)?);
        }
        file.to_bytes().map_err(invalid)
    }
}

/// Marks memory with a name.
fn mark<T: Element>(name: &str, memory: &impl Memory<T>) -> Result<Marked> {
    let wrong = |message: String| Error::new(ErrorKind::InvalidArgument, message);
    gridloom_file::check_name(name).map_err(|error| wrong(error.to_string()))?;
    let region = memory.region()?;
    if !matches!(region.base, Base::Allocation(_)) {
        return Err(wrong(format!(
            "{name} is memory of an alloc node, which exists during a launch only; copy it to or from a buffer"
        )));
    }
    if memory.is_empty() {
        return Err(wrong(format!("{name} has no elements")));
    }
    Ok(Marked { name: name.to_owned(), region, dtype: types::dtype::<T>(), shape: vec![memory.len() as u64] })
}

impl Marked {
    /// Reads the memory, for which everything was waited for.
    fn contents(&self, device: &dyn backend::Device) -> Result<Array> {
        let mut data = zeroed(self.region.bytes as usize)?;
        if let Base::Allocation(allocation) = &self.region.base {
            device.read(&**allocation, self.region.offset, &mut data)?;
        }
        Array::new(self.dtype, self.shape.clone(), data).map_err(invalid)
    }
}

/// A file under construction. Everything that nodes refer to gets a number when it is first met.
struct Saving<'a> {
    definition: &'a Definition,
    file: GraphFile,
    graphs: Vec<GraphKey>,
    graph_numbers: HashMap<GraphKey, usize>,
    nodes: HashMap<NodeKey, file::NodeRef>,
    conditions: HashMap<ConditionKey, usize>,
    /// By the address of the PTX in memory.
    modules: HashMap<usize, usize>,
    /// By what the file says of them.
    kernels: HashMap<String, usize>,
    /// By address and size.
    buffers: HashMap<(u64, u64), usize>,
    constants: HashMap<Arc<[u8]>, usize>,
    /// By the address of the object.
    events: HashMap<usize, usize>,
}

impl<'a> Saving<'a> {
    fn new(definition: &'a Definition) -> Self {
        let mut saving = Saving {
            definition,
            file: GraphFile::default(),
            graphs: vec![definition.root()],
            graph_numbers: HashMap::new(),
            nodes: HashMap::new(),
            conditions: HashMap::new(),
            modules: HashMap::new(),
            kernels: HashMap::new(),
            buffers: HashMap::new(),
            constants: HashMap::new(),
            events: HashMap::new(),
        };
        saving.number();
        saving
    }

    /// Numbers graphs, nodes and conditions. A graph comes after the one around it.
    fn number(&mut self) {
        let mut number = 0;
        while let Some(&graph) = self.graphs.get(number) {
            for (place, &node) in self.definition.topological(graph).iter().enumerate() {
                self.nodes.insert(node, file::NodeRef(number, place));
                self.graphs.extend(self.definition.node(node).bodies());
            }
            number += 1;
        }
        self.graph_numbers = self.graphs.iter().enumerate().map(|(number, &graph)| (graph, number)).collect();
        let number_of = |graph: GraphKey| self.graph_numbers.get(&graph).copied();
        let mut conditions: Vec<_> = (self.definition.conditions())
            .filter_map(|(key, data)| Some((number_of(data.scope())?, key, data.default_value())))
            .collect();
        conditions.sort_by_key(|&(graph, ..)| graph);
        for (number, (graph, key, default)) in conditions.into_iter().enumerate() {
            self.conditions.insert(key, number);
            self.file.document.conditions.push(file::Condition { graph, default });
        }
    }

    fn add_graphs(&mut self) -> Result<()> {
        let definition = self.definition;
        for number in 0..self.graphs.len() {
            let order = definition.topological(self.graphs[number]);
            let nodes = order
                .iter()
                .map(|&node| self.node(node).map_err(|error| error.at_node(definition.label(node))));
            let graph = file::Graph { nodes: nodes.collect::<Result<_>>()? };
            self.file.document.graphs.push(graph);
        }
        self.check_events()
    }

    fn node(&mut self, key: NodeKey) -> Result<file::Node> {
        let node = self.definition.node(key);
        let number = |end: &EdgeEnd| self.nodes[&end.node].1;
        let is_programmatic = |end: &&EdgeEnd| end.kind == EdgeKind::Programmatic;
        Ok(file::Node {
            name: node.given_name().map(str::to_owned),
            after: node.predecessors().iter().map(number).collect(),
            programmatic: node.predecessors().iter().filter(is_programmatic).map(number).collect(),
            operation: self.operation(key)?,
        })
    }

    fn operation(&mut self, key: NodeKey) -> Result<file::Operation> {
        let node = self.definition.node(key);
        Ok(match node.operation() {
            Operation::Empty => file::Operation::Empty,
            Operation::Kernel(kernel) => file::Operation::Kernel(self.launch(kernel)?),
            Operation::Alloc(alloc) => file::Operation::Alloc {
                len: alloc.len,
                element_size: alloc.element_size,
                memory: memory_kind(alloc.kind),
                peers: alloc.peers.to_vec(),
            },
            Operation::Free(FreeTarget::AllocNode(alloc)) => file::Operation::Free(self.alloc(*alloc)?),
            Operation::Free(FreeTarget::Outliving(_)) => {
                return Err(refused("it frees memory that a launch of another graph left allocated"));
            }
            Operation::Memset(memset) => file::Operation::Memset {
                dst: self.region(&memset.dst)?,
                value: memset.value,
                element_size: memset.element_size,
                width: memset.width,
                height: memset.height,
                pitch: memset.pitch,
            },
            Operation::Memcpy(memcpy) => file::Operation::Memcpy {
                dst: self.side(&memcpy.dst)?,
                src: self.side(&memcpy.src)?,
                width: memcpy.width,
                height: memcpy.height,
                depth: memcpy.depth,
            },
            Operation::Child(_) => file::Operation::Child(self.bodies(key)[0]),
            Operation::Callback(_) => {
                return Err(refused("it calls code of this program, which a file cannot hold"));
            }
            Operation::EventRecord(event) => file::Operation::Record(self.event(event)),
            Operation::EventWait(event) => file::Operation::Wait(self.event(event)),
            Operation::Conditional(conditional) => self.conditional(key, conditional)?,
            Operation::Opaque(_) => {
                return Err(refused("it is a captured graph that could not be taken apart"));
            }
        })
    }

    /// Returns the numbers of the graphs inside a node.
    fn bodies(&self, node: NodeKey) -> Vec<usize> {
        self.definition.node(node).bodies().iter().map(|body| self.graph_numbers[body]).collect()
    }

    fn conditional(&mut self, key: NodeKey, op: &ConditionalOp) -> Result<file::Operation> {
        let test = match &op.test {
            Test::Condition(condition) => file::Test::Condition(self.condition(*condition)?),
            Test::Value(region) => file::Test::Value(self.region(region)?),
            Test::Count(passes) => file::Test::Count(*passes),
        };
        let bodies = self.bodies(key);
        Ok(match op.form {
            ConditionalForm::If => file::Operation::If { test, body: bodies[0] },
            ConditionalForm::IfElse => file::Operation::IfElse { test, bodies: [bodies[0], bodies[1]] },
            ConditionalForm::While => file::Operation::While {
                test,
                body: bodies[0],
                at_least_once: !op.test_first,
                max_passes: op.max_passes,
            },
            ConditionalForm::Switch => file::Operation::Switch { test, bodies },
        })
    }

    fn launch(&mut self, op: &KernelOp) -> Result<file::Launch> {
        if op.args().owner.is_some() {
            return Err(refused("its arguments need a value of this program, which a file cannot hold"));
        }
        let config = op.config();
        let params = op.kernel().signature().map(|signature| signature.params().to_vec());
        let args = (0..op.args().layout.len()).map(|index| {
            let param = params.as_ref().and_then(|params| params.get(index));
            self.argument(op.args(), index, param)
                .map_err(|error| error.context(format_args!("argument {index}")))
        });
        let args = args.collect::<Result<_>>()?;
        Ok(file::Launch {
            kernel: self.kernel(&**op.kernel())?,
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            shared: config.shared,
            cluster: config.cluster.map(|cluster| cluster.to_array()),
            cooperative: config.cooperative,
            priority: config.priority,
            programmatic: config.programmatic,
            args,
        })
    }

    fn argument(&mut self, args: &KernelArgs, index: usize, param: Option<&ParamType>) -> Result<file::Arg> {
        let bytes = args.value(index).unwrap_or_default();
        let mut pointers = Vec::new();
        for pointer in args.pointers_in(index) {
            let to = match &pointer.value {
                PointerValue::Region(region) => file::PointerTarget::Memory(self.region(region)?),
                PointerValue::Condition(key) => file::PointerTarget::Condition(self.condition(*key)?),
            };
            pointers.push(file::Pointer { offset: pointer.offset, to });
        }
        if let ([file::Pointer { offset: 0, to }], 8) = (&pointers[..], bytes.len()) {
            return Ok(match to {
                file::PointerTarget::Memory(region) => file::Arg::Memory(*region),
                file::PointerTarget::Condition(condition) => file::Arg::Condition(*condition),
            });
        }
        if !pointers.is_empty() {
            // Their bytes are addresses of this process.
            let mut bytes = bytes.to_vec();
            for pointer in &pointers {
                bytes[pointer.offset as usize..][..8].fill(0);
            }
            pointers.sort_by_key(|pointer| pointer.offset);
            return Ok(file::Arg::Structure { bytes: hex::encode(&bytes), pointers });
        }
        Ok(plain(bytes, param))
    }

    fn kernel(&mut self, kernel: &dyn backend::Kernel) -> Result<usize> {
        let Some(ptx) = kernel.ptx() else {
            return Err(refused("its kernel comes from machine code; a file holds PTX only"));
        };
        let signature = kernel.signature().map(|signature| types::to_file(signature)).transpose()?;
        let kernel = file::Kernel { module: self.module(ptx), name: kernel.name().to_owned(), signature };
        let kernels = &mut self.file.document.kernels;
        Ok(*self.kernels.entry(format!("{kernel:?}")).or_insert_with(|| {
            kernels.push(kernel);
            kernels.len() - 1
        }))
    }

    fn module(&mut self, ptx: &str) -> usize {
        let GraphFile { document, modules, .. } = &mut self.file;
        *self.modules.entry(ptx.as_ptr().addr()).or_insert_with(|| {
            modules.push(ptx.to_owned());
            document.modules = modules.len();
            modules.len() - 1
        })
    }

    fn condition(&self, key: ConditionKey) -> Result<usize> {
        self.conditions.get(&key).copied().ok_or_else(|| refused("its condition was deleted"))
    }

    fn alloc(&self, key: NodeKey) -> Result<file::NodeRef> {
        self.nodes.get(&key).copied().ok_or_else(|| refused("the alloc node of its memory was deleted"))
    }

    fn event(&mut self, event: &Arc<dyn backend::Event>) -> usize {
        let events = &mut self.file.document.events;
        *self.events.entry(Arc::as_ptr(event).addr()).or_insert_with(|| {
            let options = event.options();
            events.push(file::Event { timing: options.timing, blocking: options.blocking });
            events.len() - 1
        })
    }

    /// Refuses waits for events that something outside of the graph records.
    fn check_events(&self) -> Result<()> {
        let document = &self.file.document;
        let mut recorded = vec![false; document.events.len()];
        let nodes = || document.graphs.iter().flat_map(|graph| &graph.nodes);
        for node in nodes() {
            if let file::Operation::Record(event) = node.operation {
                recorded[event] = true;
            }
        }
        for (graph, nodes) in self.graphs.iter().zip(&document.graphs) {
            for (key, node) in self.definition.topological(*graph).iter().zip(&nodes.nodes) {
                if matches!(node.operation, file::Operation::Wait(event) if !recorded[event]) {
                    return Err(refused("it waits for an event that no node of the graph records")
                        .at_node(self.definition.label(*key)));
                }
            }
        }
        Ok(())
    }

    fn side(&mut self, side: &CopySide) -> Result<file::CopySide> {
        Ok(file::CopySide { region: self.region(&side.region)?, pitch: side.pitch, rows: side.rows })
    }

    fn region(&mut self, region: &Region) -> Result<file::Region> {
        let of = match &region.base {
            Base::Allocation(allocation) => file::Memory::Buffer(self.buffer(&**allocation)?),
            Base::AllocNode(alloc) => file::Memory::Alloc(self.alloc(*alloc)?),
            Base::Bytes(bytes) => {
                let GraphFile { document, constants, .. } = &mut self.file;
                file::Memory::Constant(*self.constants.entry(bytes.clone()).or_insert_with(|| {
                    constants.push(bytes.to_vec());
                    document.constants = constants.len();
                    constants.len() - 1
                }))
            }
        };
        Ok(file::Region { of, offset: region.offset, bytes: region.bytes })
    }

    fn buffer(&mut self, memory: &dyn backend::Allocation) -> Result<usize> {
        backend::check_not_freed(memory)?;
        let key = (memory.address(), memory.bytes());
        if let Some(&known) = self.buffers.get(&key) {
            return Ok(known);
        }
        let bytes = memory.bytes();
        let buffer = match memory.variable() {
            Some(backend::ModuleVariable { ptx: Some(ptx), name }) => {
                file::Buffer::Variable { module: self.module(ptx), name: name.to_owned(), bytes }
            }
            Some(backend::ModuleVariable { name, .. }) => {
                return Err(refused(&format!("it uses the variable {name} of a module of machine code")));
            }
            None => match memory.kind() {
                MemoryKind::Device => file::Buffer::Device(bytes),
                MemoryKind::Host => file::Buffer::Host(bytes),
                MemoryKind::Managed => file::Buffer::Managed(bytes),
            },
        };
        let buffers = &mut self.file.document.buffers;
        buffers.push(buffer);
        self.buffers.insert(key, buffers.len() - 1);
        Ok(buffers.len() - 1)
    }

    /// Refuses memory that is known under two sizes or overlaps, which a file would take apart.
    fn check_aliases(&self) -> Result<()> {
        let mut places: Vec<(u64, u64)> = self.buffers.keys().copied().collect();
        places.sort_unstable();
        match places.windows(2).any(|pair| pair[1].0 < pair[0].0.saturating_add(pair[0].1)) {
            true => Err(refused(
                "two buffers of the graph are parts of the same memory; use slices of one buffer",
            )),
            false => Ok(()),
        }
    }

    fn port(&mut self, marked: &Marked) -> Result<file::Port> {
        let Marked { name, region, dtype, shape } = marked;
        let region = self.region(region).map_err(|error| error.context(name))?;
        Ok(file::Port { name: name.clone(), region, dtype: dtype.to_string(), shape: shape.clone() })
    }
}

/// Returns a plain value: as a number if the kernel says what it is, else as bytes.
fn plain(bytes: &[u8], param: Option<&ParamType>) -> file::Arg {
    let raw = || file::Arg::Bytes(hex::encode(bytes));
    let Some(param) = param else { return raw() };
    match param.kind {
        ParamKind::Value(Some(integer)) | ParamKind::Length(integer) => {
            integer.read(bytes).map_or_else(raw, file::Arg::Integer)
        }
        _ => match (types::value_name(param), bytes) {
            (Some("f32"), &[a, b, c, d]) => match f32::from_le_bytes([a, b, c, d]) {
                value if value.is_nan() => raw(),
                value => file::Arg::F32(format!("{value:?}")),
            },
            (Some("f64"), &[a, b, c, d, e, f, g, h]) => match f64::from_le_bytes([a, b, c, d, e, f, g, h]) {
                value if value.is_nan() => raw(),
                value => file::Arg::F64(format!("{value:?}")),
            },
            _ => raw(),
        },
    }
}

fn memory_kind(kind: MemoryKind) -> file::MemoryKind {
    match kind {
        MemoryKind::Device => file::MemoryKind::Device,
        MemoryKind::Host => file::MemoryKind::Host,
        MemoryKind::Managed => file::MemoryKind::Managed,
    }
}

fn refused(reason: &str) -> Error {
    Error::new(ErrorKind::NotSupported, format!("the graph cannot be saved: {reason}"))
}
