//! Building graphs from files.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use gridloom_core as core;
use gridloom_core::backend::{self, AsDevice, EventOptions};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::contract::ParamKind;
use gridloom_core::op::{
    AllocOp, ArgValue, ConditionalForm, CopySide, FreeTarget, KernelArgs, KernelOp, Launch, MemcpyOp,
    MemsetOp, Operation, PointerValue, Test,
};
use gridloom_file::document as file;
use gridloom_file::{Array, DType, GraphFile, Limits, hex};

use super::{GraphSaver, failed, invalid, types};
use crate::buffer::{Buffer, BufferSlice, Element, zeroed};
use crate::{Device, EdgeKind, Error, ErrorKind, Graph, Result};

/// The largest file that is read.
const MOST_BYTES: u64 = 4 << 30;
/// The bytes of zeros that are written at once to memory that the device cannot fill.
const ZEROS: usize = 1 << 20;

/// Options for loading saved graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The most memory for buffers and alloc nodes together, in bytes.
    pub memory_limit: u64,
}

impl LoadOptions {
    /// Returns the default options: at most 4 GiB of memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most memory for buffers and alloc nodes together, in bytes. A file that asks for
    /// more is an error.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Loads a saved graph.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    pub unsafe fn load(&self, path: impl AsRef<Path>, device: &Device) -> Result<LoadedGraph> {
        let path = path.as_ref();
        // SAFETY: the caller makes the same promise.
        unsafe { self.load_bytes(&read(path)?, device) }.map_err(|error| error.context(path.display()))
    }

    /// Loads the contents of a file.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    pub unsafe fn load_bytes(&self, bytes: &[u8], device: &Device) -> Result<LoadedGraph> {
        let limits = Limits::default().memory(self.memory_limit);
        let file = GraphFile::from_bytes(bytes, &limits).map_err(invalid)?;
        // SAFETY: the caller makes the same promise.
        unsafe { Building::new(&file, device)?.build() }
    }

    /// Loads a saved graph from anywhere, as [`Graph::load_checked`] does.
    #[cfg(feature = "cpu")]
    pub fn load_checked(&self, path: impl AsRef<Path>, device: &Device) -> Result<LoadedGraph> {
        let path = path.as_ref();
        self.load_bytes_checked(&read(path)?, device).map_err(|error| error.context(path.display()))
    }

    /// Loads the contents of a file from anywhere, as [`Graph::load_checked`] does.
    #[cfg(feature = "cpu")]
    pub fn load_bytes_checked(&self, bytes: &[u8], device: &Device) -> Result<LoadedGraph> {
        if !device.is_checked() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "{} does not check what kernels access; open a CPU device with CpuOptions::checked, or use the unsafe load",
                    device.name()
                ),
            ));
        }
        // SAFETY: the device checks that every access of a kernel is in memory of the device, which
        // holds plain bytes and is accessed by address only. Whatever the kernels do, a launch
        // fails or writes plain bytes.
        unsafe { self.load_bytes(bytes, device) }
    }
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { memory_limit: Limits::default().memory }
    }
}

/// Reads a whole file of at most [`MOST_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| failed(path, "read", error))?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(path, "read", error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::new(ErrorKind::InvalidFile, format!("{} is larger than 4 GiB", path.display())));
    }
    Ok(bytes)
}

/// A graph from a file, with its inputs and outputs.
pub struct LoadedGraph {
    graph: Graph,
    inputs: Vec<(Port, Region)>,
    outputs: Vec<(Port, Region)>,
}

/// An input or output of a saved graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// The name.
    pub name: String,
    /// The type of the elements.
    pub dtype: DType,
    /// The extent of each dimension.
    pub shape: Vec<u64>,
}

impl Port {
    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether there are no elements, which is never so for a port of a graph.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl LoadedGraph {
    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Port> {
        self.inputs.iter().map(|(port, _)| port)
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &Port> {
        self.outputs.iter().map(|(port, _)| port)
    }

    /// Returns the memory of an input or output. Fails if there is none of this name, or if its
    /// elements are not of this type. Elements that NumPy has no type for fit every type of their
    /// size.
    pub fn buffer<T: Element>(&self, name: &str) -> Result<BufferSlice<T>> {
        let (port, region) = self.find(name)?;
        let wanted = types::dtype::<T>();
        if port.dtype.size != wanted.size
            || (port.dtype.code != wanted.code && port.dtype.code != 'V' && wanted.code != 'V')
        {
            let message = format!("{name} has elements of type {}, not {wanted}", port.dtype);
            return Err(Error::new(ErrorKind::ParameterMismatch, message));
        }
        let size = size_of::<T>() as u64;
        let Base::Allocation(allocation) = &region.base else { return Err(unknown_memory()) };
        if (allocation.address() + region.offset) % align_of::<T>() as u64 != 0 || region.offset % size != 0 {
            let message = format!("{name} is not aligned for elements of {size} bytes");
            return Err(Error::new(ErrorKind::ParameterMismatch, message));
        }
        let (start, end) = (region.offset / size, (region.offset + region.bytes) / size);
        Buffer::from_allocation(self.graph.0.device(), allocation.clone()).slice(start as usize..end as usize)
    }

    /// Writes an array to an input, after all work enqueued on the device so far. Its elements must
    /// have the type of the input, and as many as the input has.
    pub fn set(&self, name: &str, array: &Array) -> Result<()> {
        let (port, region) = self.find(name)?;
        if array.dtype != port.dtype || array.data.len() as u64 != region.bytes {
            let message = format!(
                "{name} has {} elements of type {}; the array has {} of type {}",
                port.len(),
                port.dtype,
                array.len(),
                array.dtype
            );
            return Err(Error::new(ErrorKind::ParameterMismatch, message));
        }
        let device = self.graph.device();
        device.synchronize()?;
        write(device.as_device(), region, &array.data)
    }

    /// Reads an input or output, after all work enqueued on the device so far.
    pub fn get(&self, name: &str) -> Result<Array> {
        let (port, region) = self.find(name)?;
        let device = self.graph.device();
        device.synchronize()?;
        let mut data = zeroed(region.bytes as usize)?;
        let Base::Allocation(allocation) = &region.base else { return Err(unknown_memory()) };
        device.as_device().read(&**allocation, region.offset, &mut data)?;
        Array::new(port.dtype, port.shape.clone(), data).map_err(invalid)
    }

    /// Prepares to save the graph again, with the same inputs and outputs.
    pub fn saver(&self) -> GraphSaver {
        let mut saver = self.graph.saver();
        for (port, region) in &self.inputs {
            saver = saver.input_region(port, region.clone());
        }
        for (port, region) in &self.outputs {
            saver = saver.output_region(port, region.clone());
        }
        saver
    }

    fn find(&self, name: &str) -> Result<(&Port, &Region)> {
        let found = self.inputs.iter().chain(&self.outputs).find(|(port, _)| port.name == name);
        found.map(|(port, region)| (port, region)).ok_or_else(|| {
            let mut names: Vec<&str> =
                self.inputs.iter().chain(&self.outputs).map(|(port, _)| &*port.name).collect();
            names.sort_unstable();
            names.dedup();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!("no input or output is called {name}; the graph has {known}");
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

impl std::fmt::Debug for LoadedGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedGraph")
            .field("graph", &self.graph)
            .field("inputs", &self.inputs().collect::<Vec<_>>())
            .field("outputs", &self.outputs().collect::<Vec<_>>())
            .finish()
    }
}

fn write(device: &Arc<dyn backend::Device>, region: &Region, data: &[u8]) -> Result<()> {
    match &region.base {
        Base::Allocation(allocation) => device.write(&**allocation, region.offset, data),
        _ => Err(unknown_memory()),
    }
}

/// Returns the error for memory that the file does not have. The checks of the format make sure
/// that no document needs it.
fn unknown_memory() -> Error {
    Error::new(ErrorKind::InvalidFile, "the file refers to memory that it does not have")
}

/// A graph under construction.
struct Building<'a> {
    file: &'a GraphFile,
    device: &'a Arc<dyn backend::Device>,
    kernels: Vec<Arc<dyn backend::Kernel>>,
    buffers: Vec<Region>,
    constants: Vec<Arc<[u8]>>,
    events: Vec<Arc<dyn backend::Event>>,
    conditions: Vec<core::Condition>,
    graphs: Vec<core::Graph>,
    nodes: Vec<Vec<core::Node>>,
}

impl<'a> Building<'a> {
    /// Loads the modules, looks the kernels up and allocates the buffers.
    fn new(file: &'a GraphFile, device: &'a Device) -> Result<Self> {
        let device = device.as_device();
        let document = &file.document;
        let mut modules = Vec::with_capacity(file.modules.len());
        for (number, ptx) in file.modules.iter().enumerate() {
            let module = device.load_ptx(ptx);
            modules.push(module.map_err(|error| error.context(format_args!("module {number} of the file")))?);
        }
        let mut kernels = Vec::with_capacity(document.kernels.len());
        for file::Kernel { module, name, signature } in &document.kernels {
            let kernel = modules[*module].clone().kernel(name)?;
            kernels.push(match signature {
                Some(signature) => {
                    let signature = types::from_file(signature)
                        .map_err(|error| error.context(format_args!("kernel {name}")))?;
                    check_sizes(&*kernel, &signature)?;
                    signature.of_kernel(&kernel)
                }
                None => kernel,
            });
        }
        let stream = core::Stream::new(device)?;
        let mut buffers = Vec::with_capacity(document.buffers.len());
        for buffer in &document.buffers {
            buffers.push(match buffer {
                file::Buffer::Device(bytes) => allocate(device, &stream, *bytes, MemoryKind::Device)?,
                file::Buffer::Host(bytes) => allocate(device, &stream, *bytes, MemoryKind::Host)?,
                file::Buffer::Managed(bytes) => allocate(device, &stream, *bytes, MemoryKind::Managed)?,
                file::Buffer::Variable { module, name, bytes } => {
                    let variable = modules[*module].clone().global(name)?;
                    if variable.bytes() != *bytes {
                        let message = format!(
                            "the variable {name} has {} bytes, and the file says {bytes}",
                            variable.bytes()
                        );
                        return Err(Error::new(ErrorKind::InvalidFile, message));
                    }
                    Region::whole(variable)
                }
            });
        }
        stream.synchronize()?;
        let event = |event: &file::Event| {
            device.create_event(EventOptions::new().timing(event.timing).blocking(event.blocking))
        };
        Ok(Building {
            file,
            device,
            kernels,
            buffers,
            constants: file.constants.iter().map(|bytes| bytes.as_slice().into()).collect(),
            events: document.events.iter().map(event).collect::<Result<_>>()?,
            conditions: Vec::with_capacity(document.conditions.len()),
            graphs: vec![core::Graph::new(device)],
            nodes: Vec::with_capacity(document.graphs.len()),
        })
    }

    /// Builds the graphs, the outer ones first.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    unsafe fn build(mut self) -> Result<LoadedGraph> {
        let document = &self.file.document;
        for (number, nodes) in document.graphs.iter().enumerate() {
            let graph = self.graphs.get(number).cloned().ok_or_else(unknown_memory)?;
            // Conditions are in the order of their graphs.
            let open = &document.conditions[self.conditions.len()..];
            let own = open.iter().take_while(|condition| condition.graph == number);
            self.conditions.extend(own.map(|condition| graph.condition(condition.default)));
            self.nodes.push(Vec::with_capacity(nodes.nodes.len()));
            for (place, node) in nodes.nodes.iter().enumerate() {
                // SAFETY: the caller makes the same promise.
                let added = unsafe { self.add(&graph, number, node) };
                let label = || document.label(file::NodeRef(number, place));
                let added = added.map_err(|error| error.at_node(label()))?;
                self.nodes[number].push(added);
            }
        }
        let ports = |ports: &[file::Port]| {
            let port = |port: &file::Port| {
                let dtype = DType::parse(&port.dtype).map_err(invalid)?;
                let region = self.region(&port.region)?;
                Ok((Port { name: port.name.clone(), dtype, shape: port.shape.clone() }, region))
            };
            ports.iter().map(port).collect::<Result<Vec<_>>>()
        };
        let (inputs, outputs) = (ports(&document.inputs)?, ports(&document.outputs)?);
        for ((_, region), array) in inputs.iter().zip(&self.file.inputs) {
            write(self.device, region, &array.data)?;
        }
        let graph = Graph(self.graphs.swap_remove(0));
        Ok(LoadedGraph { graph, inputs, outputs })
    }

    /// Adds a node to the graph with this number.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    unsafe fn add(&mut self, graph: &core::Graph, number: usize, node: &file::Node) -> Result<core::Node> {
        let before: Vec<&core::Node> = node.after.iter().map(|&after| &self.nodes[number][after]).collect();
        let added = match &node.operation {
            file::Operation::Child(_) => graph.add_child(&before, &core::Graph::new(self.device))?,
            operation => match self.conditional(operation)? {
                Some(spec) => graph.add_conditional(&before, spec)?,
                // SAFETY: the caller makes the same promise.
                None => graph.add(&before, unsafe { self.operation(operation) }?)?,
            },
        };
        self.graphs.extend(added.bodies()?);
        if let Some(name) = &node.name {
            added.set_name(name)?;
        }
        let may_start_early =
            matches!(&node.operation, file::Operation::Kernel(launch) if launch.programmatic);
        if may_start_early || !node.programmatic.is_empty() {
            let programmatic: HashSet<usize> = node.programmatic.iter().copied().collect();
            let kind = |after: &usize| match programmatic.contains(after) {
                true => EdgeKind::Programmatic,
                false => EdgeKind::Full,
            };
            graph.set_edge_kinds(&added, &node.after.iter().map(kind).collect::<Vec<_>>())?;
        }
        Ok(added)
    }

    fn conditional(&self, operation: &file::Operation) -> Result<Option<ConditionalSpec>> {
        let (form, test, bodies) = match operation {
            file::Operation::If { test, .. } => (ConditionalForm::If, test, 1),
            file::Operation::IfElse { test, .. } => (ConditionalForm::IfElse, test, 2),
            file::Operation::While { test, .. } => (ConditionalForm::While, test, 1),
            file::Operation::Switch { test, bodies } => (ConditionalForm::Switch, test, bodies.len()),
            _ => return Ok(None),
        };
        let (at_least_once, max_passes) = match operation {
            file::Operation::While { at_least_once, max_passes, .. } => (*at_least_once, *max_passes),
            _ => (false, None),
        };
        let test = match test {
            file::Test::Condition(condition) => Test::Condition(self.condition(*condition)?),
            file::Test::Value(region) => Test::Value(self.region(region)?),
            file::Test::Count(passes) => Test::Count(*passes),
        };
        Ok(Some(ConditionalSpec { form, test, test_first: !at_least_once, max_passes, bodies }))
    }

    /// Makes the operation of a node without bodies.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    unsafe fn operation(&self, operation: &file::Operation) -> Result<Operation> {
        Ok(match operation {
            // SAFETY: the caller makes the same promise.
            file::Operation::Kernel(launch) => Operation::Kernel(unsafe { self.launch(launch) }?),
            file::Operation::Alloc { len, element_size, memory, peers } => {
                Operation::Alloc(Arc::new(AllocOp {
                    len: *len,
                    element_size: *element_size,
                    kind: match memory {
                        file::MemoryKind::Device => MemoryKind::Device,
                        file::MemoryKind::Host => MemoryKind::Host,
                        file::MemoryKind::Managed => MemoryKind::Managed,
                    },
                    peers: peers.iter().copied().collect(),
                }))
            }
            file::Operation::Free(alloc) => Operation::Free(FreeTarget::AllocNode(self.node(*alloc)?.key())),
            file::Operation::Memset { dst, value, element_size, width, height, pitch } => {
                Operation::Memset(Arc::new(MemsetOp {
                    dst: self.region(dst)?,
                    value: *value,
                    element_size: *element_size,
                    width: *width,
                    height: *height,
                    pitch: *pitch,
                }))
            }
            file::Operation::Memcpy { dst, src, width, height, depth } => {
                Operation::Memcpy(Arc::new(MemcpyOp {
                    dst: self.side(dst)?,
                    src: self.side(src)?,
                    width: *width,
                    height: *height,
                    depth: *depth,
                }))
            }
            file::Operation::Record(event) => Operation::EventRecord(self.events[*event].clone()),
            file::Operation::Wait(event) => Operation::EventWait(self.events[*event].clone()),
            file::Operation::Empty
            | file::Operation::Child(_)
            | file::Operation::If { .. }
            | file::Operation::IfElse { .. }
            | file::Operation::While { .. }
            | file::Operation::Switch { .. } => Operation::Empty,
        })
    }

    /// Makes a launch.
    ///
    /// # Safety
    /// As for [`Graph::load`].
    unsafe fn launch(&self, launch: &file::Launch) -> Result<Launch> {
        let kernel = &self.kernels[launch.kernel];
        let mut values = Vec::with_capacity(launch.args.len());
        let mut inside = Vec::new();
        for (index, arg) in launch.args.iter().enumerate() {
            let value = self.argument(&**kernel, index, arg, &mut inside);
            values.push(value.map_err(|error| error.context(format_args!("argument {index}")))?);
        }
        let mut args = KernelArgs::pack(kernel.name(), kernel.params(), values)?;
        for (index, offset, pointer) in inside {
            args.set(kernel.name(), index, offset, ArgValue::Pointer(pointer))?;
        }
        let mut config = LaunchConfig::new(Dim3::from(launch.grid), Dim3::from(launch.block));
        config.shared = launch.shared;
        config.cluster = launch.cluster.map(Dim3::from);
        config.cooperative = launch.cooperative;
        config.priority = launch.priority;
        config.programmatic = launch.programmatic;
        // SAFETY: the caller promises that the kernel keeps to its types and contract, which the
        // graph checks when the launch is added.
        Ok(Launch::new(unsafe { KernelOp::new(kernel.clone(), config, args) }))
    }

    /// Makes an argument. Pointers inside a structure are listed in `inside`.
    fn argument(
        &self,
        kernel: &dyn backend::Kernel,
        index: usize,
        arg: &file::Arg,
        inside: &mut Vec<(usize, usize, PointerValue)>,
    ) -> Result<ArgValue> {
        let wrong = |message: &str| Error::new(ErrorKind::InvalidFile, message);
        Ok(match arg {
            file::Arg::Integer(value) => {
                let param = kernel.signature().and_then(|signature| signature.params().get(index));
                let integer = match param.map(|param| param.kind) {
                    Some(ParamKind::Value(Some(integer)) | ParamKind::Length(integer)) => integer,
                    _ => return Err(wrong("an integer, and the kernel's signature has none there")),
                };
                let bytes = integer.write(*value).ok_or_else(|| wrong("an integer that does not fit"))?;
                ArgValue::plain(&bytes)
            }
            file::Arg::F32(text) => {
                let value: f32 = text.parse().map_err(|_| wrong("not a number"))?;
                ArgValue::plain(&value.to_le_bytes())
            }
            file::Arg::F64(text) => {
                let value: f64 = text.parse().map_err(|_| wrong("not a number"))?;
                ArgValue::plain(&value.to_le_bytes())
            }
            file::Arg::Bytes(text) => ArgValue::plain(&hex::decode(text).map_err(invalid)?),
            file::Arg::Memory(region) => ArgValue::Pointer(PointerValue::Region(self.region(region)?)),
            file::Arg::Condition(condition) => {
                ArgValue::Pointer(PointerValue::Condition(self.condition(*condition)?))
            }
            file::Arg::Structure { bytes, pointers } => {
                for file::Pointer { offset, to } in pointers {
                    let pointer = match to {
                        file::PointerTarget::Memory(region) => PointerValue::Region(self.region(region)?),
                        file::PointerTarget::Condition(condition) => {
                            PointerValue::Condition(self.condition(*condition)?)
                        }
                    };
                    inside.push((index, *offset as usize, pointer));
                }
                ArgValue::plain(&hex::decode(bytes).map_err(invalid)?)
            }
        })
    }

    fn side(&self, side: &file::CopySide) -> Result<CopySide> {
        Ok(CopySide { region: self.region(&side.region)?, pitch: side.pitch, rows: side.rows })
    }

    fn region(&self, region: &file::Region) -> Result<Region> {
        let base = match region.of {
            file::Memory::Buffer(buffer) => self.buffers[buffer].base.clone(),
            file::Memory::Alloc(alloc) => Base::AllocNode(self.node(alloc)?.key()),
            file::Memory::Constant(constant) => Base::Bytes(self.constants[constant].clone()),
        };
        Ok(Region { base, offset: region.offset, bytes: region.bytes })
    }

    fn node(&self, node: file::NodeRef) -> Result<&core::Node> {
        self.nodes.get(node.0).and_then(|nodes| nodes.get(node.1)).ok_or_else(|| {
            let label = self.file.document.label(node);
            Error::new(ErrorKind::InvalidFile, format!("it uses {label}, which comes later in the file"))
        })
    }

    fn condition(&self, condition: usize) -> Result<core::graph::ConditionKey> {
        let made = self.conditions.get(condition).map(core::Condition::key);
        let message = "it uses a condition of a graph that comes later in the file";
        made.ok_or_else(|| Error::new(ErrorKind::InvalidFile, message))
    }
}

/// Checks that the types of a signature have the sizes of the kernel's parameters.
fn check_sizes(kernel: &dyn backend::Kernel, signature: &core::op::contract::Signature) -> Result<()> {
    let Some(params) = kernel.params() else { return Ok(()) };
    let wrong =
        |message: String| Error::new(ErrorKind::InvalidFile, format!("kernel {}: {message}", kernel.name()));
    if params.len() != signature.params().len() {
        let (has, says) = (params.len(), signature.params().len());
        return Err(wrong(format!("it takes {has} parameters, and the file says {says}")));
    }
    for (index, (place, param)) in params.iter().zip(signature.params()).enumerate() {
        let size = match param.kind {
            ParamKind::Value(Some(integer)) | ParamKind::Length(integer) => u32::from(integer.bytes),
            ParamKind::Pointer { .. } | ParamKind::Condition => 8,
            _ => continue,
        };
        if place.size != size {
            let has = place.size;
            return Err(wrong(format!("parameter {index} has {has} bytes, and the file says {size}")));
        }
    }
    Ok(())
}

/// Allocates memory that is filled with 0.
fn allocate(
    device: &Arc<dyn backend::Device>,
    stream: &core::Stream,
    bytes: u64,
    kind: MemoryKind,
) -> Result<Region> {
    let region = Region::whole(device.allocate(bytes, kind)?);
    if device.kind() == backend::DeviceKind::Cpu {
        return Ok(region);
    }
    if kind != MemoryKind::Host {
        let dst = region.clone();
        let fill = MemsetOp { dst, value: 0, element_size: 1, width: bytes, height: 1, pitch: bytes };
        stream.enqueue(Operation::Memset(Arc::new(fill)))?;
        return Ok(region);
    }
    let zeros = vec![0; ZEROS.min(bytes as usize)];
    for start in (0..bytes).step_by(ZEROS) {
        let part = (bytes - start).min(ZEROS as u64);
        let piece = region.part(start, part).ok_or_else(unknown_memory)?;
        write(device, &piece, &zeros[..part as usize])?;
    }
    Ok(region)
}
