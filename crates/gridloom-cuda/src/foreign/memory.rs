//! Addresses in a captured graph as regions of memory.

use super::import::{Importer, Unreadable};
use crate::interop;
use crate::memory::BorrowedMemory;
use crate::registry::MEMORY;
use crate::sys::*;
use gridloom_core::backend::{Allocation, Device};
use gridloom_core::graph::NodeKey;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{AllocOp, CopySide, MemcpyOp, MemsetOp, Operation};
use std::sync::Arc;

/// Memory that a node of the captured graph allocates: the driver gave it its address when it was
/// captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocated {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) node: NodeKey,
    /// How many graphs there are around the one that allocates it.
    pub(super) depth: usize,
}

/// One side of a copy as the driver describes it.
struct Side {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    offsets: [usize; 3],
    level: usize,
    pitch: usize,
    height: usize,
}

impl Importer<'_> {
    /// Returns the memory of Gridloom's that an address in a kernel argument leads to, up to its
    /// end.
    pub(super) fn pointed_at(&self, address: u64) -> Result<Option<Region>, Unreadable> {
        if let Some(allocated) = self.allocated_at(address)? {
            let offset = address - allocated.address;
            let bytes = allocated.bytes - offset;
            return Ok(Some(Region { base: Base::AllocNode(allocated.node), offset, bytes }));
        }
        let ours = MEMORY.containing(address).filter(|memory| memory.device() == Device::id(self.device));
        Ok(ours.map(|memory| {
            let offset = address - memory.address();
            let bytes = memory.bytes() - offset;
            Region { base: Base::Allocation(memory), offset, bytes }
        }))
    }

    /// Returns the memory that a node of the captured graph allocates, and that the address is in.
    fn allocated_at(&self, address: u64) -> Result<Option<Allocated>, Unreadable> {
        let is_in = |allocated: &&Allocated| {
            address.checked_sub(allocated.address).is_some_and(|offset| offset < allocated.bytes)
        };
        match self.allocated.iter().find(is_in) {
            Some(allocated) if allocated.depth != self.depth => {
                Err(Unreadable::new("memory that the graph allocates is used inside a graph within it"))
            }
            found => Ok(found.copied()),
        }
    }

    /// Returns the `bytes` at an address that a copy or fill uses.
    fn region(&self, address: u64, bytes: u64, place: CUmemorytype) -> Result<Region, Unreadable> {
        if let Some(known) = self.pointed_at(address)? {
            return known
                .part(0, bytes)
                .ok_or_else(|| Unreadable::new(format!("{bytes} bytes at {address:#x} exceed their block")));
        }
        let kind = if place == CUmemorytype::CU_MEMORYTYPE_HOST {
            MemoryKind::Host
        } else {
            match interop::kind_of(self.device, address) {
                Ok(kind) => kind,
                // Ordinary memory of the host, which the driver knows nothing of.
                Err(_) if place == CUmemorytype::CU_MEMORYTYPE_UNIFIED => MemoryKind::Host,
                Err(error) => return Err(error.into()),
            }
        };
        let owner = Some(self.owner.clone());
        let memory = BorrowedMemory::new(Device::id(self.device), address, bytes, kind, owner);
        Ok(Region { base: Base::Allocation(Arc::new(memory)), offset: 0, bytes })
    }

    /// Calls [`cuGraphMemcpyNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn copy(&self, node: CUgraphNode) -> Result<Operation, Unreadable> {
        let mut p = CUDA_MEMCPY3D::default();
        // SAFETY: the node is a copy of a graph that this thread alone uses; one description is
        // written.
        unsafe { self.reader.0.cu_graph_memcpy_node_get_params(node, &mut p)? };
        if p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0 {
            return Ok(Operation::Empty);
        }
        let src = Side {
            kind: p.srcMemoryType,
            host: p.srcHost as u64,
            device: p.srcDevice,
            offsets: [p.srcXInBytes, p.srcY, p.srcZ],
            level: p.srcLOD,
            pitch: p.srcPitch,
            height: p.srcHeight,
        };
        let dst = Side {
            kind: p.dstMemoryType,
            host: p.dstHost as u64,
            device: p.dstDevice,
            offsets: [p.dstXInBytes, p.dstY, p.dstZ],
            level: p.dstLOD,
            pitch: p.dstPitch,
            height: p.dstHeight,
        };
        let extents = [p.WidthInBytes as u64, p.Height as u64, p.Depth as u64];
        let (dst, src) = (self.side(&dst, extents)?, self.side(&src, extents)?);
        let [width, height, depth] = extents;
        Ok(Operation::Memcpy(Arc::new(MemcpyOp { dst, src, width, height, depth })))
    }

    fn side(&self, side: &Side, [width, height, depth]: [u64; 3]) -> Result<CopySide, Unreadable> {
        if side.kind == CUmemorytype::CU_MEMORYTYPE_ARRAY || side.level != 0 {
            return Err(Unreadable::new("a copy from or to an array"));
        }
        let base = if side.kind == CUmemorytype::CU_MEMORYTYPE_HOST { side.host } else { side.device };
        // One row has no pitch, and one plane no height.
        let pitch = if side.pitch == 0 { width } else { side.pitch as u64 };
        let rows = if side.height == 0 { height } else { side.height as u64 };
        let [x, y, z] = side.offsets.map(|offset| offset as u64);
        let span = || {
            let start = z.checked_mul(rows)?.checked_add(y)?.checked_mul(pitch)?.checked_add(x)?;
            let rows = (depth - 1).checked_mul(rows)?.checked_add(height - 1)?;
            Some((base.checked_add(start)?, rows.checked_mul(pitch)?.checked_add(width)?))
        };
        let (address, bytes) =
            span().ok_or_else(|| Unreadable::new("a copy of more bytes than there are addresses"))?;
        Ok(CopySide { region: self.region(address, bytes, side.kind)?, pitch, rows })
    }

    /// Calls [`cuGraphMemsetNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn fill(&self, node: CUgraphNode) -> Result<Operation, Unreadable> {
        let mut p = CUDA_MEMSET_NODE_PARAMS::default();
        // SAFETY: the node is a fill of a graph that this thread alone uses; one description is
        // written.
        unsafe { self.reader.0.cu_graph_memset_node_get_params(node, &mut p)? };
        if p.width == 0 || p.height == 0 {
            return Ok(Operation::Empty);
        }
        let (width, height, pitch) = (p.width as u64, p.height as u64, p.pitch as u64);
        let row = width.checked_mul(u64::from(p.elementSize));
        let bytes = row.and_then(|row| (height - 1).checked_mul(pitch)?.checked_add(row));
        let bytes = bytes.ok_or_else(|| Unreadable::new("a fill of more bytes than there are addresses"))?;
        let dst = self.region(p.dst, bytes, CUmemorytype::CU_MEMORYTYPE_UNIFIED)?;
        let (value, element_size) = (p.value, p.elementSize);
        Ok(Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height, pitch })))
    }

    /// Returns an allocation, with the address it has in the captured graph.
    /// ([`cuGraphMemAllocNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    pub(super) fn allocation(&self, node: CUgraphNode) -> Result<(AllocOp, u64), Unreadable> {
        let mut p = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        // SAFETY: the node is an allocation of a graph that this thread alone uses; one description
        // is written.
        unsafe { self.reader.0.cu_graph_mem_alloc_node_get_params(node, &mut p)? };
        let location = p.poolProps.location;
        // SAFETY: every location is a number, whatever it counts.
        let number = unsafe { location.__bindgen_anon_1.id };
        let is_here = location.type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE
            && number == self.device.context().device();
        if !is_here || p.accessDescCount > 1 {
            return Err(Unreadable::new("an allocation that is not for this GPU alone"));
        }
        let (len, peers) = (p.bytesize as u64, Default::default());
        Ok((AllocOp { len, element_size: 1, kind: MemoryKind::Device, peers }, p.dptr))
    }

    /// Returns the node whose memory a node of the captured graph frees.
    /// ([`cuGraphMemFreeNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    pub(super) fn freed(&self, node: CUgraphNode) -> Result<NodeKey, Unreadable> {
        let mut address = 0;
        // SAFETY: the node is a free of a graph that this thread alone uses; one address is
        // written.
        unsafe { self.reader.0.cu_graph_mem_free_node_get_params(node, &mut address)? };
        match self.allocated_at(address)? {
            Some(allocated) if allocated.address == address => Ok(allocated.node),
            _ => Err(Unreadable::new("memory is freed that was not allocated in the same graph")),
        }
    }
}
