//! The kernels that replace fills and copies.

use std::sync::{Arc, LazyLock};

use gridloom_core::graph::Definition;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{KernelArgs, MemcpyOp, MemsetOp, Operation, ParamLayout, PointerArg, PointerValue};

use super::fusion::{Extra, push};
use crate::rewrite::KernelSource;

/// The kernels, as PTX.
pub(crate) const TEXT: &str = include_str!("builtin.ptx");
/// The kernel that takes the decision of a branch.
pub(crate) const DECIDE: &str = "gridloom_decide";
/// The kernel that tests a loop before its first pass.
pub(crate) const BEGIN: &str = "gridloom_begin";
/// The kernel that ends a round of passes of a loop.
pub(crate) const NEXT: &str = "gridloom_next";
/// The name of the kernel that fills.
const FILL: &str = "gridloom_fill";
/// The name of the kernel that copies.
pub(crate) const COPY: &str = "gridloom_copy";

/// The most bytes of a fill or copy that becomes a kernel. The device handles larger ones better
/// itself.
pub(crate) const MAX_BYTES: u64 = 64 << 10;

static MODULE: LazyLock<Arc<gridloom_ptx::Module>> =
    LazyLock::new(|| Arc::new(gridloom_ptx::parse(TEXT).expect("the kernels of this crate are PTX")));

fn source(name: &str) -> KernelSource {
    KernelSource::new(MODULE.clone(), name).expect("a kernel of this crate")
}

/// Returns the kernel that fills.
pub(crate) fn fill() -> KernelSource {
    static SOURCE: LazyLock<KernelSource> = LazyLock::new(|| source(FILL));
    SOURCE.clone()
}

/// Returns the kernel that copies.
pub(crate) fn copy() -> KernelSource {
    static SOURCE: LazyLock<KernelSource> = LazyLock::new(|| source(COPY));
    SOURCE.clone()
}

/// The parameters of such a kernel: their bytes, and the offsets of addresses in them.
pub(crate) struct BuiltinArgs {
    pub(crate) bytes: Vec<u8>,
    pub(crate) pointers: Vec<PointerArg>,
}

/// An argument of one of these kernels.
pub(crate) enum Value<'a> {
    Address(&'a Region),
    Wide(u64),
    Word(u32),
}

/// Returns the arguments of one of these kernels.
pub(crate) fn args(values: &[Value<'_>]) -> KernelArgs {
    let mut args = KernelArgs::default();
    for value in values {
        match value {
            Value::Address(region) => push(&mut args, &Extra::Address((*region).clone())),
            Value::Wide(number) => push(&mut args, &Extra::Number(*number)),
            Value::Word(number) => {
                let offset = args.layout.buffer_bytes().next_multiple_of(4);
                args.bytes.resize(offset, 0);
                args.bytes.extend_from_slice(&number.to_le_bytes());
                args.layout.push(ParamLayout { offset: offset as u32, size: 4 });
            }
        }
    }
    args
}

/// Returns the arguments of [`COPY`] for a copy of whole words.
pub(crate) fn copy_words(dst: &Region, src: &Region) -> KernelArgs {
    let bytes = dst.bytes;
    args(&[
        Value::Address(dst),
        Value::Address(src),
        Value::Wide(bytes / 4),
        Value::Wide(1),
        Value::Wide(0),
        Value::Wide(0),
        Value::Word(4),
    ])
}

/// Returns why a fill or copy cannot become a kernel, or `None` if it can.
pub(crate) fn obstacle(definition: &Definition, operation: &Operation) -> Option<String> {
    let reachable = |region: &Region| match &region.base {
        Base::Allocation(allocation) => allocation.kind() != MemoryKind::Host,
        Base::AllocNode(key) => match definition.get_node(*key).map(|node| node.operation()) {
            Some(Operation::Alloc(alloc)) => alloc.kind != MemoryKind::Host && alloc.peers.is_empty(),
            _ => false,
        },
        Base::Bytes(_) => false,
    };
    let elsewhere = || Some("it touches memory of the host".to_owned());
    let large = |bytes: u64| Some(format!("it moves {bytes} bytes, more than {MAX_BYTES}"));
    match operation {
        Operation::Memset(fill) => {
            let bytes = fill.width.saturating_mul(fill.height).saturating_mul(fill.element_size.into());
            if !reachable(&fill.dst) {
                return elsewhere();
            }
            if bytes > MAX_BYTES { large(bytes) } else { None }
        }
        Operation::Memcpy(copy) => {
            let bytes = copy.width.saturating_mul(copy.height).saturating_mul(copy.depth);
            if !reachable(&copy.dst.region) || !reachable(&copy.src.region) {
                return elsewhere();
            }
            if copy.depth != 1 {
                return Some("it copies several planes".into());
            }
            if bytes > MAX_BYTES { large(bytes) } else { None }
        }
        _ => Some("it is no fill or copy".into()),
    }
}

/// Returns the parameters of [`fill`] for this operation.
pub(crate) fn fill_args(op: &MemsetOp) -> BuiltinArgs {
    let mut bytes = vec![0; fill().param_bytes() as usize];
    let pitch = if op.height == 1 { 0 } else { op.pitch };
    write(
        &mut bytes,
        &fill(),
        &[(1, op.value.into()), (2, op.element_size.into()), (3, op.width), (4, op.height), (5, pitch)],
    );
    let pointers = vec![pointer(&mut bytes, 0, &op.dst)];
    BuiltinArgs { bytes, pointers }
}

/// Returns the parameters of [`copy`] for this operation.
pub(crate) fn copy_args(op: &MemcpyOp) -> BuiltinArgs {
    let mut bytes = vec![0; copy().param_bytes() as usize];
    let pitch = |pitch: u64| if op.height == 1 { 0 } else { pitch };
    let (to, from) = (pitch(op.dst.pitch), pitch(op.src.pitch));
    let start = |region: &Region| match &region.base {
        Base::Allocation(allocation) => allocation.address().wrapping_add(region.offset),
        // Memory of alloc nodes is aligned to 256 bytes.
        _ => region.offset,
    };
    let words = [start(&op.dst.region), start(&op.src.region), op.width, to, from]
        .iter()
        .all(|n| n.is_multiple_of(4));
    let unit = if words { 4 } else { 1 };
    write(&mut bytes, &copy(), &[(2, op.width / unit), (3, op.height), (4, to), (5, from), (6, unit)]);
    let pointers = vec![pointer(&mut bytes, 0, &op.dst.region), pointer(&mut bytes, 8, &op.src.region)];
    BuiltinArgs { bytes, pointers }
}

fn write(bytes: &mut [u8], kernel: &KernelSource, values: &[(usize, u64)]) {
    let layout = kernel.layout();
    for &(index, value) in values {
        let (offset, size) = layout[index];
        bytes[offset as usize..(offset + size) as usize]
            .copy_from_slice(&value.to_le_bytes()[..size as usize]);
    }
}

fn pointer(bytes: &mut [u8], offset: u32, region: &Region) -> PointerArg {
    if let Base::Allocation(allocation) = &region.base {
        let address = allocation.address().wrapping_add(region.offset);
        bytes[offset as usize..offset as usize + 8].copy_from_slice(&address.to_le_bytes());
    }
    PointerArg { index: 0, offset, value: PointerValue::Region(region.clone()) }
}
