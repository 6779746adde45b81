//! What the tests of the CPU device share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device};
use gridloom_core::graph::{ConditionalSpec, Graph, Node};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{
    AllocOp, CallbackOp, ConditionalForm, FreeTarget, MemcpyOp, MemsetOp, Operation, Test,
};
use gridloom_core::{Result, Stream};
use gridloom_cpu::{CpuDevice, CpuOptions};

pub(crate) fn device_with(options: CpuOptions) -> Arc<dyn Device> {
    CpuDevice::new(options).unwrap()
}

/// A device with this many threads, whatever the machine has.
pub(crate) fn device(threads: usize) -> Arc<dyn Device> {
    device_with(CpuOptions { threads: Some(threads), ..CpuOptions::default() })
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
    ConditionalSpec { form, test, test_first: true, limit: None, bodies }
}

pub(crate) fn repeat(count: u64) -> ConditionalSpec {
    conditional(ConditionalForm::While, Test::Count(count), 1)
}

/// A small generator of random numbers, the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
