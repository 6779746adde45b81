//! What the tests on a GPU share. Each is skipped, with a line that says so, where there is none.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]
#![allow(dead_code, unreachable_pub, reason = "each test program has this module and uses a part of it")]

use gridloom_core::backend::{Allocation, Kernel, Module};
use gridloom_core::graph::{ConditionalSpec, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{
    ArgValue, ConditionalForm, KernelArgs, KernelOp, Launch, MemcpyOp, MemsetOp, Operation, PointerValue,
    Test,
};
use gridloom_core::{Condition, Stream, backend};
use gridloom_cuda::driver::DriverOptions;
use gridloom_cuda::{CudaDevice, CudaVersion, Driver};
use std::sync::Arc;

pub const KERNELS: &str = include_str!("../kernels/gpu.ptx");

/// A GPU with the test kernels loaded.
pub struct Gpu {
    pub device: Arc<CudaDevice>,
    pub backend: Arc<dyn backend::Device>,
    pub module: Arc<dyn Module>,
    pub stream: Stream,
}

/// The GPU, or `None` with a line where there is none. `GRIDLOOM_REQUIRE_CUDA=1` makes that a
/// failure.
pub fn gpu() -> Option<Gpu> {
    open(CudaDevice::open(0))
}

/// The same GPU behind a driver that is capped at a version.
pub fn gpu_capped(version: CudaVersion) -> Option<Gpu> {
    gpu_with(DriverOptions::default().max_version(version))
}

/// The same GPU behind a driver with options of its own.
pub fn gpu_with(options: DriverOptions) -> Option<Gpu> {
    open(Driver::open(options).map_err(Into::into).and_then(|driver| CudaDevice::open_with(driver, 0)))
}

fn open(device: gridloom_core::Result<Arc<CudaDevice>>) -> Option<Gpu> {
    match device {
        Ok(device) => Some(Gpu::new(device)),
        Err(error) => {
            let required = std::env::var_os("GRIDLOOM_REQUIRE_CUDA").is_some_and(|value| value == "1");
            assert!(!required, "a GPU is required: {error}");
            eprintln!("skipped: {}", error.message());
            None
        }
    }
}

/// One argument of a kernel.
pub fn bytes<const N: usize>(value: [u8; N]) -> ArgValue {
    ArgValue::Bytes(value.as_slice().into())
}

pub fn int(value: i32) -> ArgValue {
    bytes(value.to_ne_bytes())
}

pub fn uint(value: u32) -> ArgValue {
    bytes(value.to_ne_bytes())
}

pub fn ulong(value: u64) -> ArgValue {
    bytes(value.to_ne_bytes())
}

pub fn at(buffer: &Arc<dyn Allocation>) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(Region::whole(buffer.clone())))
}

pub fn at_region(region: &Region) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(region.clone()))
}

pub fn handle(condition: &Condition) -> ArgValue {
    ArgValue::Pointer(PointerValue::Condition(condition.key()))
}

pub fn fill(dst: &Region, value: u32, element_size: u32) -> Operation {
    let width = dst.bytes / u64::from(element_size);
    Operation::Memset(Arc::new(MemsetOp {
        dst: dst.clone(),
        value,
        element_size,
        width,
        height: 1,
        pitch: 0,
    }))
}

pub fn copy(dst: &Region, src: &Region) -> Operation {
    Operation::Memcpy(Arc::new(MemcpyOp::linear(dst.clone(), src.clone(), dst.bytes)))
}

pub fn whole(buffer: &Arc<dyn Allocation>) -> Region {
    Region::whole(buffer.clone())
}

impl Gpu {
    /// A device with the test kernels.
    pub fn new(device: Arc<CudaDevice>) -> Self {
        let backend: Arc<dyn backend::Device> = device.clone();
        let module = backend.load_ptx(KERNELS).unwrap();
        let stream = Stream::new(&backend).unwrap();
        Gpu { device, backend, module, stream }
    }

    pub fn buffer(&self, bytes: u64) -> Arc<dyn Allocation> {
        self.backend.allocate(bytes, MemoryKind::Device).unwrap()
    }

    /// A buffer with these words in it.
    pub fn words(&self, words: &[i32]) -> Arc<dyn Allocation> {
        let buffer = self.buffer(4 * words.len() as u64);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.backend.write(&*buffer, 0, &bytes).unwrap();
        buffer
    }

    /// The words in a buffer, after everything enqueued so far has run.
    pub fn read(&self, buffer: &Arc<dyn Allocation>) -> Vec<i32> {
        self.backend.wait_all().unwrap();
        let mut bytes = vec![0; buffer.bytes() as usize];
        self.backend.read(&**buffer, 0, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|word| i32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    pub fn kernel(&self, name: &str) -> Arc<dyn Kernel> {
        self.module.clone().kernel(name).unwrap()
    }

    pub fn launch_with(
        &self,
        kernel: &Arc<dyn Kernel>,
        config: LaunchConfig,
        arguments: impl IntoIterator<Item = ArgValue>,
    ) -> Operation {
        let args = KernelArgs::pack(kernel.name(), kernel.params(), arguments).unwrap();
        // SAFETY: the tests give each kernel what it takes, and memory that is large enough.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel.clone(), config, args) }))
    }

    /// A launch of one thread.
    pub fn launch(&self, name: &str, arguments: impl IntoIterator<Item = ArgValue>) -> Operation {
        self.launch_with(&self.kernel(name), LaunchConfig::one(), arguments)
    }

    /// A launch of `add` over a whole buffer of words.
    pub fn add(&self, buffer: &Arc<dyn Allocation>, value: i32) -> Operation {
        let n = buffer.bytes() / 4;
        let arguments = [at(buffer), int(value), uint(n as u32)];
        self.launch_with(&self.kernel("add"), LaunchConfig::linear(n as usize), arguments)
    }

    /// A launch of `append` to a log of words.
    pub fn append(&self, log: &Arc<dyn Allocation>, tag: u32) -> Operation {
        self.launch("append", [at(log), uint(tag)])
    }

    pub fn graph(&self) -> Graph {
        Graph::new(&self.backend)
    }

    /// Launches once and waits.
    pub fn run(&self, graph: &Graph) {
        let executable = graph.instantiate().unwrap();
        executable.launch(&self.stream).unwrap();
        self.stream.synchronize().unwrap();
    }
}

/// A conditional with its bodies.
pub fn conditional(
    graph: &Graph,
    after: &[&Node],
    form: ConditionalForm,
    test: Test,
    bodies: usize,
) -> (Node, Vec<Graph>) {
    let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies };
    let node = graph.add_conditional(after, spec).unwrap();
    let bodies = node.bodies().unwrap();
    (node, bodies)
}
