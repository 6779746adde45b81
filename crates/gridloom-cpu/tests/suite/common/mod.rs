//! What the tests of the CPU device share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device, Module};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{
    AllocOp, ArgValue, CallbackOp, ConditionalForm, FreeTarget, KernelArgs, KernelOp, Launch, MemcpyOp,
    MemsetOp, Operation, PointerValue, Test,
};
use gridloom_core::{Condition, Graph, Node, Result, Stream};
use gridloom_cpu::{CpuDevice, CpuOptions};
use smallvec::SmallVec;

pub(crate) fn device_with(options: CpuOptions) -> Arc<dyn Device> {
    CpuDevice::new(options).unwrap()
}

/// A device with this many threads, whatever the machine has.
pub(crate) fn device(threads: usize) -> Arc<dyn Device> {
    device_with(CpuOptions::new().threads(threads))
}

pub(crate) fn stream(device: &Arc<dyn Device>) -> Stream {
    Stream::new(device).unwrap()
}

pub(crate) fn callback(closure: impl FnMut() + Send + 'static) -> Operation {
    Operation::Callback(CallbackOp::closure(closure))
}

pub(crate) fn buffer(device: &Arc<dyn Device>, bytes: u64) -> Arc<dyn Allocation> {
    device.allocate(bytes, MemoryKind::Device).unwrap()
}

pub(crate) fn fill(dst: Region, value: u32, element_size: u32) -> Operation {
    let width = dst.bytes / u64::from(element_size);
    Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 }))
}

pub(crate) fn copy(dst: Region, src: Region) -> Operation {
    let bytes = src.bytes;
    Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes)))
}

pub(crate) fn alloc(bytes: u64) -> Operation {
    let op = AllocOp { len: bytes, element_size: 1, kind: MemoryKind::Device, peers: Default::default() };
    Operation::Alloc(Arc::new(op))
}

pub(crate) fn free(alloc: &Node) -> Operation {
    Operation::Free(FreeTarget::AllocNode(alloc.key()))
}

/// The whole memory of an alloc node.
pub(crate) fn memory_of(alloc: &Node) -> Region {
    let Operation::Alloc(op) = alloc.operation().unwrap() else { panic!("not an alloc node") };
    Region { base: Base::AllocNode(alloc.key()), offset: 0, bytes: op.bytes() }
}

pub(crate) fn read(device: &Arc<dyn Device>, from: &Arc<dyn Allocation>) -> Vec<u8> {
    let mut bytes = vec![0; from.bytes() as usize];
    device.read(&**from, 0, &mut bytes).unwrap();
    bytes
}

pub(crate) fn read_u32(device: &Arc<dyn Device>, from: &Arc<dyn Allocation>) -> Vec<u32> {
    let bytes = read(device, from);
    bytes.chunks_exact(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

/// Launches a graph once on a stream of its own and waits for it.
pub(crate) fn run(graph: &Graph) -> Result<()> {
    let stream = Stream::new(graph.device()).unwrap();
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()
}

pub(crate) fn conditional(form: ConditionalForm, test: Test, bodies: usize) -> ConditionalSpec {
    ConditionalSpec { form, test, test_first: true, max_passes: None, bodies }
}

pub(crate) fn repeat(count: u64) -> ConditionalSpec {
    conditional(ConditionalForm::While, Test::Count(count), 1)
}

/// The kernels in `kernels.ptx`.
pub(crate) fn module(device: &Arc<dyn Device>) -> Arc<dyn Module> {
    device.load_ptx(include_str!("kernels.ptx")).unwrap()
}

/// A launch of a kernel of `module`.
pub(crate) fn launch(
    module: &Arc<dyn Module>,
    name: &str,
    config: LaunchConfig,
    args: impl IntoIterator<Item = ArgValue>,
) -> Operation {
    let kernel = module.clone().kernel(name).unwrap();
    let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
    // SAFETY: the tests give each kernel what it takes, and memory that is large enough.
    Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
}

pub(crate) fn value(value: u32) -> ArgValue {
    ArgValue::Bytes(SmallVec::from_slice(&value.to_ne_bytes()))
}

pub(crate) fn pointer(region: Region) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(region))
}

pub(crate) fn handle(condition: &Condition) -> ArgValue {
    ArgValue::Pointer(PointerValue::Condition(condition.key()))
}

/// Adds 1 to a number.
pub(crate) fn increment(module: &Arc<dyn Module>, number: &Arc<dyn Allocation>) -> Operation {
    let args = [pointer(Region::whole(number.clone())), value(1), value(1)];
    launch(module, "add", LaunchConfig::one(), args)
}

/// A number in device memory.
pub(crate) fn number(device: &Arc<dyn Device>, value: u32) -> Arc<dyn Allocation> {
    let number = buffer(device, 4);
    device.write(&*number, 0, &value.to_ne_bytes()).unwrap();
    number
}

/// Waits, for as long as a test may take, until something that happens soon has happened. Soon is
/// long under Miri, or beside much else on few cores.
pub(crate) fn eventually(happened: impl Fn() -> bool) {
    for _ in 0..120_000 {
        if happened() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("it did not happen");
}
