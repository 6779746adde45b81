//! Outlines: definitions that hold on to no memory.

use std::any::Any;
use std::sync::Arc;

use super::Definition;
use crate::backend::{Allocation, DeviceId};
use crate::memory::{Base, MemoryKind, Region};
use crate::op::{
    CallbackOp, ConditionalOp, CopySide, FreeTarget, KernelArgs, KernelOp, Launch, MemcpyOp, MemsetOp,
    Operation, PointerArg, PointerValue, Test,
};

impl Definition {
    /// Returns a copy that holds on to nothing but kernels, for analysis on another thread.
    ///
    /// Nodes, edges, kernels, shapes, values and names are those of the original. Memory is
    /// described and not kept alive. Callbacks, events and opaque nodes are callbacks that do
    /// nothing. So whatever the original uses is freed when the original lets go of it.
    ///
    /// # Safety
    /// Nothing made from the copy runs on a device, and no address in it is used.
    pub unsafe fn outline(&self) -> Definition {
        let mut copy = self.clone();
        let keys: Vec<_> = self.nodes.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(node) = copy.nodes.get_mut(key) {
                node.operation = outline(&node.operation);
            }
        }
        copy
    }
}

fn outline(operation: &Operation) -> Operation {
    match operation {
        Operation::Empty | Operation::Alloc(_) | Operation::Child(_) => operation.clone(),
        Operation::Kernel(launch) => {
            let args = launch.args();
            let pointer = |pointer: &PointerArg| {
                let value = match &pointer.value {
                    PointerValue::Region(region) => PointerValue::Region(described(region)),
                    PointerValue::Condition(condition) => PointerValue::Condition(*condition),
                };
                PointerArg { value, ..*pointer }
            };
            let args = KernelArgs {
                bytes: args.bytes.clone(),
                layout: args.layout.clone(),
                pointers: args.pointers.iter().map(pointer).collect(),
                owner: None,
            };
            // SAFETY: the launch never runs, as the caller of `Definition::outline` promises.
            let launch = unsafe { KernelOp::new(launch.kernel().clone(), *launch.config(), args) };
            Operation::Kernel(Launch::new(launch))
        }
        Operation::Free(FreeTarget::AllocNode(_)) => operation.clone(),
        Operation::Free(FreeTarget::Outliving(memory)) => {
            Operation::Free(FreeTarget::Outliving(Described::of(&**memory)))
        }
        Operation::Memset(fill) => {
            Operation::Memset(Arc::new(MemsetOp { dst: described(&fill.dst), ..(**fill).clone() }))
        }
        Operation::Memcpy(copy) => {
            let side = |side: &CopySide| CopySide { region: described(&side.region), ..*side };
            Operation::Memcpy(Arc::new(MemcpyOp { dst: side(&copy.dst), src: side(&copy.src), ..**copy }))
        }
        Operation::Conditional(conditional) => match &conditional.test {
            Test::Value(region) => Operation::Conditional(Arc::new(ConditionalOp {
                test: Test::Value(described(region)),
                ..(**conditional).clone()
            })),
            Test::Condition(_) | Test::Count(_) => operation.clone(),
        },
        Operation::Callback(_)
        | Operation::EventRecord(_)
        | Operation::EventWait(_)
        | Operation::Opaque(_) => Operation::Callback(CallbackOp::closure(|| {})),
    }
}

fn described(region: &Region) -> Region {
    let base = match &region.base {
        Base::Allocation(memory) => Base::Allocation(Described::of(&**memory)),
        Base::AllocNode(node) => Base::AllocNode(*node),
        Base::Bytes(bytes) => Base::Bytes(bytes.clone()),
    };
    Region { base, ..*region }
}

/// A description of memory that may be freed.
#[derive(Debug)]
struct Described {
    device: DeviceId,
    address: u64,
    bytes: u64,
    kind: MemoryKind,
}

impl Described {
    fn of(memory: &dyn Allocation) -> Arc<dyn Allocation> {
        let (device, address) = (memory.device(), memory.address());
        Arc::new(Described { device, address, bytes: memory.bytes(), kind: memory.kind() })
    }
}

// SAFETY: the caller of `Definition::outline` promises that no work uses the memory. The answers
// never change.
unsafe impl Allocation for Described {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;
    use crate::backend::{AsDevice, Device};
    use crate::null::NullDevice;

    #[test]
    fn an_outline_keeps_no_memory_alive() {
        let device = NullDevice::new();
        let device: Arc<dyn Device> = device.as_device().clone();
        let memory = device.allocate(64, MemoryKind::Device).unwrap();
        let graph = Graph::new(&device);
        let region = Region { base: Base::Allocation(memory.clone()), offset: 16, bytes: 32 };
        let fill = MemsetOp { dst: region, value: 7, element_size: 1, width: 32, height: 1, pitch: 32 };
        let node = graph.add(&[], Operation::Memset(Arc::new(fill))).unwrap();
        // SAFETY: the outline is only looked at.
        let outline = unsafe { graph.definition().outline() };
        drop(graph.clone());
        let Operation::Memset(fill) = outline.node(node.key()).operation() else { panic!("no fill") };
        assert_eq!((fill.dst.offset, fill.dst.bytes, fill.width, fill.value), (16, 32, 32, 7));
        drop((node, graph));
        assert_eq!(Arc::strong_count(&memory), 1);
    }
}
