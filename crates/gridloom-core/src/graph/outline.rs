//! Outlines: definitions that hold on to no memory.

use std::any::Any;
use std::sync::Arc;

use super::Definition;
use crate::backend::{Allocation, DeviceId};
use crate::memory::{Base, MemoryKind, Region};
use crate::op::{CallbackOp, FreeTarget, Operation, Reference};

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
        Operation::Empty
        | Operation::Kernel(_)
        | Operation::Alloc(_)
        | Operation::Free(FreeTarget::AllocNode(_))
        | Operation::Memset(_)
        | Operation::Memcpy(_)
        | Operation::Child(_)
        | Operation::Conditional(_) => {
            let mut outlined = operation.with_references(&mut |reference| {
                if let Reference::Region(region) = reference {
                    *region = described(region);
                }
            });
            if let Operation::Kernel(launch) = &mut outlined {
                launch.make_mut().args.owner = None;
            }
            outlined
        }
        Operation::Free(FreeTarget::Outliving(memory)) => {
            Operation::Free(FreeTarget::Outliving(Described::of(&**memory)))
        }
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
    use crate::backend::{self, AsDevice, Device};
    use crate::launch::LaunchConfig;
    use crate::null::{FakeKernel, NullDevice};
    use crate::op::{ArgValue, KernelArgs, KernelOp, Launch, MemsetOp, PointerValue};

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

    #[test]
    fn an_outline_has_the_arguments_of_kernels_but_keeps_neither_memory_nor_owner_alive() {
        let null = NullDevice::new();
        let kernel: Arc<dyn backend::Kernel> = FakeKernel::new("fill").params([8]).on(&null);
        let device: Arc<dyn Device> = null.as_device().clone();
        let (memory, owner) = (device.allocate(64, MemoryKind::Device).unwrap(), Arc::new(7));
        let region = Region { base: Base::Allocation(memory.clone()), offset: 16, bytes: 48 };
        let value = ArgValue::Pointer(PointerValue::Region(region));
        let mut args = KernelArgs::pack(kernel.name(), kernel.params(), [value]).unwrap();
        args.owner = Some(owner.clone().into());
        // SAFETY: the null device runs nothing.
        let launch = Launch::new(unsafe { KernelOp::new(kernel, LaunchConfig::one(), args) });
        let graph = Graph::new(&device);
        let node = graph.add(&[], Operation::Kernel(launch)).unwrap();
        // SAFETY: the outline is only looked at.
        let outline = unsafe { graph.definition().outline() };
        let launch = outline.node(node.key()).operation().as_kernel().unwrap();
        let PointerValue::Region(outlined) = &launch.args().pointers[0].value else { panic!("no memory") };
        let Base::Allocation(described) = &outlined.base else { panic!("no allocation") };
        assert_eq!((described.address(), outlined.offset, outlined.bytes), (memory.address(), 16, 48));
        drop((node, graph));
        assert_eq!((Arc::strong_count(&memory), Arc::strong_count(&owner)), (1, 1));
    }
}
