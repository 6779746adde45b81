//! Memory: blocks of host memory that stay, poisoned, for a while after they were freed, so that a
//! late use is seen.

use super::graphs::Work;
use super::streams::enqueue;
use super::{INVALID, OK, World, capture, exports, handle, world};
use gridloom_cuda::sys::*;
use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{c_uint, c_void};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuMemPoolCreate" => pool_create,
        "cuMemPoolSetAttribute" => pool_attribute,
        "cuMemPoolGetAttribute" => pool_use,
        "cuMemPoolTrimTo" => pool_trim,
        "cuDeviceGetGraphMemAttribute" => graph_memory,
        "cuDeviceSetGraphMemAttribute" => set_graph_memory,
        "cuDeviceGraphMemTrim" => trim_graph_memory,
        "cuMemAlloc_v2" => alloc_now,
        "cuMemAllocFromPoolAsync" => alloc_from_pool,
        "cuMemAllocAsync" => alloc_async,
        "cuMemFreeAsync" => free_async,
        "cuMemHostAlloc" => host_alloc,
        "cuMemFreeHost" => host_free,
        "cuMemAllocManaged" => managed_alloc,
        "cuMemFree_v2" => free,
        "cuMemcpyAsync" => copy,
        "cuMemcpyHtoDAsync_v2" => copy_from_host,
        "cuMemcpy3DAsync_v2" => copy_3d,
        "cuMemsetD8Async" => fill_8,
        "cuMemsetD16Async" => fill_16,
        "cuMemsetD32Async" => fill_32,
        "cuMemsetD2D8Async" => fill_2d_8,
        "cuMemsetD2D16Async" => fill_2d_16,
        "cuMemsetD2D32Async" => fill_2d_32,
        "cuPointerGetAttribute" => pointer,
    }
}

/// Freed bytes that are kept to see late uses.
const QUARANTINE: usize = 64 << 20;

/// Every block, by its address.
#[derive(Default)]
pub struct Blocks {
    blocks: BTreeMap<u64, HeapBlock>,
    /// Those that were freed, oldest first.
    freed: VecDeque<u64>,
    freed_bytes: usize,
}

struct HeapBlock {
    bytes: usize,
    freed: bool,
    managed: bool,
}

impl Blocks {
    pub fn count(&self) -> usize {
        self.blocks.len() - self.freed.len()
    }

    pub fn bytes(&self) -> usize {
        self.blocks.values().filter(|block| !block.freed).map(|block| block.bytes).sum()
    }

    /// A block that a test provides.
    pub fn insert(&mut self, address: u64, bytes: usize) {
        self.blocks.insert(address, HeapBlock { bytes, freed: false, managed: false });
    }

    /// Whether an address lies in managed memory.
    pub fn is_managed(&self, address: u64) -> bool {
        self.at(address).is_some_and(|block| block.managed)
    }

    /// Forgets a block that a test provided.
    pub fn remove(&mut self, address: &u64) -> Option<usize> {
        self.blocks.remove(address).map(|block| block.bytes)
    }

    fn at(&self, address: u64) -> Option<&HeapBlock> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes as u64).then_some(block)
    }

    fn free(&mut self, address: u64) -> bool {
        let Some(block) = self.blocks.get_mut(&address).filter(|block| !block.freed) else { return false };
        block.freed = true;
        self.freed_bytes += block.bytes;
        unsafe { (address as *mut u8).write_bytes(0xdd, block.bytes) };
        self.freed.push_back(address);
        while self.freed_bytes > QUARANTINE
            && let Some(oldest) = self.freed.pop_front()
            && let Some(block) = self.blocks.remove(&oldest)
        {
            self.freed_bytes -= block.bytes;
            unsafe { std::alloc::dealloc(oldest as *mut u8, layout(block.bytes).unwrap()) };
        }
        true
    }
}

/// Notes a use of memory. Addresses that the driver did not hand out are those of the host.
pub fn touch(what: &str, address: u64, bytes: usize) {
    world(|world| {
        let found = world.memory.at(address).map(|block| (block.freed, block.bytes));
        if let Some((true, size)) = found {
            world.violation(format!(
                "{what} uses {bytes} bytes at {address:#x}, in a block of {size} that was freed"
            ));
        }
    });
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 256).ok().filter(|layout| layout.size() < 1 << 32)
}

fn allocate(out: *mut CUdeviceptr, bytes: usize) -> CUresult {
    let Some(layout) = layout(bytes) else { return CUresult::CUDA_ERROR_OUT_OF_MEMORY };
    let address = unsafe { std::alloc::alloc(layout) } as u64;
    // What nobody wrote is never 0 by luck.
    unsafe { (address as *mut u8).write_bytes(0xcd, bytes) };
    world(|world| world.memory.insert(address, bytes));
    unsafe { *out = address };
    OK
}

fn deallocate(address: u64) -> CUresult {
    if world(|world| world.memory.free(address)) { OK } else { INVALID }
}

fn pool_create(out: *mut CUmemoryPool, _: *const CUmemPoolProps) -> CUresult {
    world(|world| {
        let number = world.fresh();
        world.pools.insert(number);
        unsafe { *out = handle(number) };
    });
    OK
}

fn pool_attribute(_: CUmemoryPool, _: CUmemPool_attribute, _: *mut c_void) -> CUresult {
    OK
}

/// A pool keeps nothing that nobody uses.
fn pool_use(_: CUmemoryPool, _: CUmemPool_attribute, out: *mut c_void) -> CUresult {
    unsafe { *out.cast::<u64>() = 0 };
    OK
}

/// The memory of captured alloc nodes is not counted.
fn graph_memory(_: CUdevice, _: CUgraphMem_attribute, out: *mut c_void) -> CUresult {
    unsafe { *out.cast::<u64>() = 0 };
    OK
}

fn set_graph_memory(_: CUdevice, _: CUgraphMem_attribute, _: *mut c_void) -> CUresult {
    OK
}

fn trim_graph_memory(_: CUdevice) -> CUresult {
    OK
}

fn pool_trim(_: CUmemoryPool, _: usize) -> CUresult {
    OK
}

fn alloc_from_pool(out: *mut CUdeviceptr, bytes: usize, _: CUmemoryPool, stream: CUstream) -> CUresult {
    alloc_async(out, bytes, stream)
}

/// On a captured stream the address is that of the node, which gets its memory with the graph.
fn alloc_async(out: *mut CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    if !capture::captures(stream) {
        return allocate(out, bytes);
    }
    let Some(layout) = layout(bytes) else { return CUresult::CUDA_ERROR_OUT_OF_MEMORY };
    let address = unsafe { std::alloc::alloc(layout) } as u64;
    unsafe { *out = address };
    capture::add(stream, Work::Alloc { address, bytes }).unwrap_or(INVALID)
}

/// Gives back the memory of an alloc node.
pub fn free_of_graph(address: u64, bytes: usize) {
    unsafe { std::alloc::dealloc(address as *mut u8, layout(bytes).unwrap()) };
}

fn alloc_now(out: *mut CUdeviceptr, bytes: usize) -> CUresult {
    match capture::prohibited() {
        OK => allocate(out, bytes),
        refused => refused,
    }
}

fn free_async(address: CUdeviceptr, stream: CUstream) -> CUresult {
    if let Some(outcome) = capture::add(stream, Work::Free(address)) {
        return outcome;
    }
    enqueue(stream, move || {
        if deallocate(address) != OK {
            world(|world| world.violation(format!("{address:#x} is freed and was not allocated")));
        }
    });
    OK
}

fn host_alloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> CUresult {
    let allocated = allocate(out.cast(), bytes);
    if allocated == OK && flags & CU_MEMHOSTALLOC_PORTABLE == 0 {
        let address = unsafe { *out } as u64;
        world(|world| world.pages.insert(address, bytes));
    }
    allocated
}

fn host_free(address: *mut c_void) -> CUresult {
    match capture::prohibited() {
        OK => {
            world(|world| world.pages.remove(&(address as u64)));
            deallocate(address as u64)
        }
        refused => refused,
    }
}

fn managed_alloc(out: *mut CUdeviceptr, bytes: usize, _: c_uint) -> CUresult {
    let allocated = allocate(out, bytes);
    if allocated == OK {
        world(|world| world.memory.blocks.get_mut(&unsafe { *out }).unwrap().managed = true);
    }
    allocated
}

/// The addresses of both sides of a copy.
pub fn sides(p: &CUDA_MEMCPY3D) -> [u64; 2] {
    let host = CUmemorytype::CU_MEMORYTYPE_HOST;
    let src = if p.srcMemoryType == host { p.srcHost as u64 } else { p.srcDevice };
    let dst = if p.dstMemoryType == host { p.dstHost as u64 } else { p.dstDevice };
    [src, dst]
}

fn free(address: CUdeviceptr) -> CUresult {
    deallocate(address)
}

fn copy(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    let parameters = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcDevice: src,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstDevice: dst,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    copy_3d(&parameters, stream)
}

fn copy_from_host(dst: CUdeviceptr, src: *const c_void, bytes: usize, stream: CUstream) -> CUresult {
    let parameters = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: src,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: dst,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    copy_3d(&parameters, stream)
}

fn copy_3d(parameters: *const CUDA_MEMCPY3D, stream: CUstream) -> CUresult {
    let parameters = Sendable(unsafe { *parameters });
    capture::add(stream, Work::Copy(parameters.0)).unwrap_or_else(|| {
        enqueue(stream, move || copy_planes(&{ parameters }.0));
        OK
    })
}

/// A description, whose pointers are addresses.
#[derive(Clone, Copy)]
struct Sendable<T>(T);

unsafe impl<T> Send for Sendable<T> {}

/// A copy as its description says.
pub fn copy_planes(p: &CUDA_MEMCPY3D) {
    let [src, dst] = sides(p);
    for plane in 0..p.Depth {
        for row in 0..p.Height {
            let from = (p.srcZ + plane) * p.srcHeight + p.srcY + row;
            let to = (p.dstZ + plane) * p.dstHeight + p.dstY + row;
            let from = src as usize + from * p.srcPitch + p.srcXInBytes;
            let to = dst as usize + to * p.dstPitch + p.dstXInBytes;
            touch("a copy", from as u64, p.WidthInBytes);
            touch("a copy", to as u64, p.WidthInBytes);
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, p.WidthInBytes) };
        }
    }
}

/// A fill as its description says.
pub fn fill(p: &CUDA_MEMSET_NODE_PARAMS) {
    let value = p.value.to_ne_bytes();
    for row in 0..p.height {
        let start = p.dst as usize + row * p.pitch;
        touch("a fill", start as u64, p.width * p.elementSize as usize);
        for column in 0..p.width {
            let at = start + column * p.elementSize as usize;
            unsafe { std::ptr::copy(value.as_ptr(), at as *mut u8, p.elementSize as usize) };
        }
    }
}

fn fill_later(p: CUDA_MEMSET_NODE_PARAMS, stream: CUstream) -> CUresult {
    capture::add(stream, Work::Fill(p)).unwrap_or_else(|| {
        enqueue(stream, move || fill(&p));
        OK
    })
}

fn row(dst: CUdeviceptr, value: u32, size: u32, width: usize) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst, pitch: width * size as usize, value, elementSize: size, width, height: 1 }
}

fn fill_8(dst: CUdeviceptr, value: u8, count: usize, stream: CUstream) -> CUresult {
    fill_later(row(dst, value.into(), 1, count), stream)
}

fn fill_16(dst: CUdeviceptr, value: u16, count: usize, stream: CUstream) -> CUresult {
    fill_later(row(dst, value.into(), 2, count), stream)
}

fn fill_32(dst: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) -> CUresult {
    fill_later(row(dst, value, 4, count), stream)
}

fn fill_2d_8(dst: CUdeviceptr, pitch: usize, value: u8, w: usize, h: usize, s: CUstream) -> CUresult {
    fill_later(CUDA_MEMSET_NODE_PARAMS { pitch, height: h, ..row(dst, value.into(), 1, w) }, s)
}

fn fill_2d_16(dst: CUdeviceptr, pitch: usize, value: u16, w: usize, h: usize, s: CUstream) -> CUresult {
    fill_later(CUDA_MEMSET_NODE_PARAMS { pitch, height: h, ..row(dst, value.into(), 2, w) }, s)
}

fn fill_2d_32(dst: CUdeviceptr, pitch: usize, value: c_uint, w: usize, h: usize, s: CUstream) -> CUresult {
    fill_later(CUDA_MEMSET_NODE_PARAMS { pitch, height: h, ..row(dst, value, 4, w) }, s)
}

/// Every address within a known block is that of memory on GPU 0.
fn pointer(out: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr) -> CUresult {
    if !world(|world| world.memory.at(address).is_some_and(|block| !block.freed)) {
        return INVALID;
    }
    let value = match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => CUmemorytype::CU_MEMORYTYPE_DEVICE.0,
        _ => 0,
    };
    unsafe { *out.cast::<u32>() = value };
    OK
}
