//! Checks on one operation. The call that adds or changes a node, or enqueues work on a stream,
//! makes them.

use std::fmt;
use std::sync::Arc;

use super::definition::{ConditionKey, Definition, GraphKey, NodeData, NodeKey};
use crate::backend::{self, DeviceId};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::memory::{Base, MemoryKind, OutlivingMemory, Region};
use crate::op::{
    AllocOp, CopySide, FreeTarget, KernelOp, MemcpyOp, MemsetOp, Operation, ParamLayout, PointerArg,
    PointerValue, Test,
};

/// The destination of an operation that is about to be checked.
pub(crate) struct Checker<'a> {
    pub(crate) device: &'a dyn backend::Device,
    /// The graph that gets the operation, or `None` for a stream.
    pub(crate) graph: Option<(&'a Definition, GraphKey)>,
}

impl Checker<'_> {
    pub(crate) fn check(&self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Empty => Ok(()),
            Operation::Callback(callback) => {
                callback.reads().iter().try_for_each(|region| self.check_host(region))
            }
            Operation::Kernel(kernel) => self.check_kernel(kernel).and_then(|()| check_contract(kernel)),
            Operation::Alloc(alloc) => self.check_alloc(alloc),
            Operation::Free(target) => self.check_free(target),
            Operation::Memset(memset) => self.check_memset(memset),
            Operation::Memcpy(memcpy) => self.check_memcpy(memcpy),
            Operation::EventRecord(event) | Operation::EventWait(event) => {
                self.check_device(&"the event", event.device())
            }
            Operation::Conditional(conditional) => self.check_test(&conditional.test),
            Operation::Child(_) => Ok(()),
            Operation::Opaque(opaque) => self.check_device(&"the opaque graph", opaque.device()),
        }
    }

    /// Checks an operation that replaces another one of its kind.
    pub(crate) fn check_replacing(&self, operation: &Operation) -> Result<()> {
        if let Operation::Conditional(conditional) = operation {
            return self.check_replaced_test(&conditional.test);
        }
        self.check(operation)
    }

    /// Checks an operation that is added after another one of the graph.
    pub(crate) fn check_after(&self, before: Option<&Operation>, operation: &Operation) -> Result<()> {
        match (before, operation) {
            (Some(Operation::Kernel(before)), Operation::Kernel(kernel)) => {
                self.check_kernel_after(before, kernel)?;
                check_contract(kernel)
            }
            _ => self.check(operation),
        }
    }

    fn check_device(&self, what: &dyn fmt::Display, device: DeviceId) -> Result<()> {
        if device != self.device.id() {
            bail!(
                WrongDevice,
                "{what} belongs to another device than this graph or stream ({})",
                self.device.name()
            );
        }
        Ok(())
    }

    /// Checks a launch that replaces another one or follows it in the same graph. What both have in
    /// common was checked with the other one. The contract is not checked here.
    #[inline]
    pub(crate) fn check_kernel_after(&self, old: &KernelOp, new: &KernelOp) -> Result<()> {
        if !is_same_form(old, new) {
            return self.check_kernel(new);
        }
        for (place, pointer) in new.args.pointers.iter().enumerate() {
            if old.args.pointers.get(place) != Some(pointer) || may_be_gone(&pointer.value) {
                self.check_argument(new, pointer)?;
            }
        }
        Ok(())
    }

    /// Checks memory that is passed to kernels.
    pub(crate) fn check_memory(&self, region: &Region) -> Result<()> {
        self.check_region(region).and_then(|()| check_on_device(region))
    }

    fn check_kernel(&self, op: &KernelOp) -> Result<()> {
        let kernel = &op.kernel;
        if kernel.device() != self.device.id() {
            self.check_device(&format_args!("kernel {}", kernel.name()), kernel.device())?;
        }
        op.config
            .check(self.device.limits(), kernel.limits())
            .map_err(|error| error.context(format_args!("launch of {}", kernel.name())))?;
        if op.args.bytes.len() > self.device.limits().max_parameter_bytes as usize {
            bail!(
                ParameterMismatch,
                "kernel {} is given {} bytes of arguments; this device passes at most {}",
                kernel.name(),
                op.args.bytes.len(),
                self.device.limits().max_parameter_bytes
            );
        }
        if let Some(params) = kernel.params() {
            let given = &op.args.layout;
            if params != given {
                bail!(
                    ParameterMismatch,
                    "kernel {} takes parameters of {} bytes, the arguments have {}",
                    kernel.name(),
                    sizes(params),
                    sizes(given)
                );
            }
        }
        let end = |place: &ParamLayout| u64::from(place.offset) + u64::from(place.size);
        if op.args.layout.iter().any(|place| end(place) > op.args.bytes.len() as u64) {
            bail!(
                ParameterMismatch,
                "the arguments of {} reach past their buffer of {} bytes",
                kernel.name(),
                op.args.bytes.len()
            );
        }
        op.args.pointers.iter().try_for_each(|pointer| self.check_argument(op, pointer))
    }

    fn check_argument(&self, op: &KernelOp, pointer: &PointerArg) -> Result<()> {
        self.check_pointer(op, pointer).map_err(|error| {
            error.context(format_args!("argument {} of {}", pointer.index, op.kernel.name()))
        })
    }

    fn check_pointer(&self, op: &KernelOp, pointer: &PointerArg) -> Result<()> {
        match op.args.layout.get(pointer.index as usize) {
            Some(place) if pointer.offset.checked_add(8).is_some_and(|end| end <= place.size) => {}
            Some(place) => bail!(
                ParameterMismatch,
                "a pointer at byte {} of a parameter of {} bytes",
                pointer.offset,
                place.size
            ),
            None => bail!(ParameterMismatch, "there are {} arguments", op.args.layout.len()),
        }
        self.check_target(&pointer.value)
    }

    /// Checks what an argument refers to.
    pub(crate) fn check_target(&self, pointer: &PointerValue) -> Result<()> {
        match pointer {
            PointerValue::Region(region) => self.check_memory(region),
            PointerValue::Condition(condition) => self.check_condition_visible(*condition),
        }
    }

    /// Checks memory that a callback is given to read.
    fn check_host(&self, region: &Region) -> Result<()> {
        self.check_region(region).map_err(|error| error.context("memory for the callback"))?;
        match &region.base {
            Base::Allocation(allocation) if allocation.kind() == MemoryKind::Host => Ok(()),
            base => bail!(
                InvalidArgument,
                "a callback reads host memory only, and {} is none; copy it to a buffer of Device::alloc_host first",
                self.name(base)
            ),
        }
    }

    fn check_free(&self, target: &FreeTarget) -> Result<()> {
        match target {
            FreeTarget::AllocNode(alloc) => {
                let Some((definition, graph)) = self.graph else {
                    bail!(InvalidArgument, "an alloc node can be freed only by a node of its graph");
                };
                let owner = self.check_alloc_node(*alloc)?;
                if owner != graph {
                    bail!(
                        WrongGraph,
                        "{} is in another graph of this hierarchy; free it in the graph that allocates it",
                        definition.label(*alloc)
                    );
                }
                Ok(())
            }
            FreeTarget::Outliving(allocation) => {
                self.check_device(&"the buffer to free", allocation.device())?;
                match allocation.outliving() {
                    None => bail!(
                        InvalidArgument,
                        "the buffer to free is not memory that a launch of a graph left allocated; drop or close it instead"
                    ),
                    Some(memory) if memory.is_freed() => {
                        bail!(InvalidHandle, "the buffer to free was freed already")
                    }
                    Some(_) => Ok(()),
                }
            }
        }
    }

    fn check_alloc(&self, op: &AllocOp) -> Result<()> {
        if let Some(peer) = op.peers.iter().find(|&&peer| !self.device.has_peer(peer)) {
            bail!(
                InvalidArgument,
                "there is no device {peer} that could reach memory of {}; leave it out of the peers",
                self.device.name()
            );
        }
        check_alloc_size(op)
    }

    /// Checks that the node is an alloc node visible from here. Returns the graph that it is in.
    fn check_alloc_node(&self, alloc: NodeKey) -> Result<GraphKey> {
        let Some((definition, graph)) = self.graph else {
            bail!(
                InvalidArgument,
                "memory of an alloc node exists only inside its graph, not for work on a stream"
            );
        };
        if !definition.nodes.owns(alloc) {
            bail!(WrongGraph, "the memory belongs to an alloc node of another graph");
        }
        let Some(node) = definition.get_node(alloc) else {
            bail!(InvalidHandle, "the alloc node of this buffer was deleted");
        };
        if !matches!(node.operation, Operation::Alloc(_)) {
            bail!(InvalidArgument, "{} is not an alloc node", definition.label(alloc));
        }
        if !definition.encloses(node.graph, graph) {
            bail!(
                WrongGraph,
                "the memory of {} is visible in its own graph and the graphs inside it, not here",
                definition.label(alloc)
            );
        }
        Ok(node.graph)
    }

    fn check_region(&self, region: &Region) -> Result<()> {
        let capacity = match &region.base {
            Base::Allocation(allocation) => {
                self.check_device(&"the buffer", allocation.device())?;
                if is_freed(allocation) {
                    bail!(InvalidHandle, "{} was freed by a launch", self.name(&region.base));
                }
                allocation.bytes()
            }
            Base::AllocNode(alloc) => {
                self.check_alloc_node(*alloc)?;
                let definition = self.graph.expect("checked with the alloc node").0;
                definition.node(*alloc).operation.as_alloc().map_or(0, |alloc| alloc.bytes())
            }
            Base::Bytes(bytes) => bytes.len() as u64,
        };
        match region.offset.checked_add(region.bytes) {
            Some(end) if end <= capacity => Ok(()),
            _ => bail!(
                InvalidArgument,
                "bytes {}..{} are past the end of {}, which has {capacity}",
                region.offset,
                region.offset.saturating_add(region.bytes),
                self.name(&region.base)
            ),
        }
    }

    /// Returns the name of a region's memory for errors.
    fn name(&self, base: &Base) -> String {
        match (base, self.graph) {
            (Base::Allocation(allocation), _) => {
                format!("the {} buffer at {:#x}", allocation.kind().name(), allocation.address())
            }
            (Base::AllocNode(alloc), Some((definition, _))) => definition.label(*alloc),
            (Base::AllocNode(_), None) => "an alloc node".to_owned(),
            (Base::Bytes(_), _) => "the copied host slice".to_owned(),
        }
    }

    fn check_memset(&self, op: &MemsetOp) -> Result<()> {
        if !matches!(op.element_size, 1 | 2 | 4) {
            bail!(InvalidArgument, "a memset value of {} bytes; it must have 1, 2 or 4", op.element_size);
        }
        self.check_region(&op.dst).map_err(|error| error.context("destination of the memset"))?;
        check_writable(&op.dst)?;
        if op.width == 0 || op.height == 0 {
            bail!(
                InvalidArgument,
                "a memset of {} by {} elements; both must be at least 1",
                op.width,
                op.height
            );
        }
        let row = op.width.checked_mul(u64::from(op.element_size));
        let needed = row.and_then(|row| {
            if op.height == 1 { Some(row) } else { (op.height - 1).checked_mul(op.pitch)?.checked_add(row) }
        });
        let (Some(row), Some(needed)) = (row, needed) else {
            bail!(
                InvalidArgument,
                "a memset of {} by {} elements has more bytes than there are addresses",
                op.width,
                op.height
            );
        };
        if op.height > 1 && op.pitch < row {
            bail!(InvalidArgument, "a pitch of {} bytes is shorter than a row of {row}", op.pitch);
        }
        if needed > op.dst.bytes {
            bail!(
                InvalidArgument,
                "a memset of {needed} bytes into a destination of {} ({})",
                op.dst.bytes,
                self.name(&op.dst.base)
            );
        }
        let unit = u64::from(op.element_size);
        if !address(&op.dst).is_multiple_of(unit) || (op.height > 1 && !op.pitch.is_multiple_of(unit)) {
            bail!(
                InvalidArgument,
                "a memset at byte {} of {} with a pitch of {}; both must be multiples of its {unit}-byte value",
                op.dst.offset,
                self.name(&op.dst.base),
                op.pitch
            );
        }
        Ok(())
    }

    fn check_memcpy(&self, op: &MemcpyOp) -> Result<()> {
        if op.width == 0 || op.height == 0 || op.depth == 0 {
            bail!(
                InvalidArgument,
                "a copy of {} by {} by {} bytes; every extent must be at least 1",
                op.width,
                op.height,
                op.depth
            );
        }
        check_writable(&op.dst.region)?;
        let mut spans = [0; 2];
        for (span, (side, what)) in spans.iter_mut().zip([(&op.dst, "destination"), (&op.src, "source")]) {
            self.check_region(&side.region)
                .map_err(|error| error.context(format_args!("{what} of the copy")))?;
            if (op.height > 1 || op.depth > 1) && side.pitch < op.width {
                bail!(
                    InvalidArgument,
                    "the {what}'s pitch of {} bytes is shorter than a row of {}",
                    side.pitch,
                    op.width
                );
            }
            if op.depth > 1 && side.rows < op.height {
                bail!(
                    InvalidArgument,
                    "the {what} has {} rows a plane, the copy takes {}",
                    side.rows,
                    op.height
                );
            }
            *span = match side_span(side, op) {
                Some(span) if span <= side.region.bytes => span,
                span => bail!(
                    InvalidArgument,
                    "the copy needs {} bytes of its {what}, which has {} ({})",
                    span.map_or_else(|| "too many".to_owned(), |span| span.to_string()),
                    side.region.bytes,
                    self.name(&side.region.base)
                ),
            };
        }
        let (dst, src) = (&op.dst.region, &op.src.region);
        if overlaps(op, spans) {
            bail!(
                InvalidArgument,
                "the copy reads bytes {}..{} and writes bytes {}..{} of {}; ranges must not overlap",
                src.offset,
                src.offset + spans[1],
                dst.offset,
                dst.offset + spans[0],
                self.name(&dst.base)
            );
        }
        Ok(())
    }

    fn check_condition_visible(&self, condition: ConditionKey) -> Result<()> {
        let Some((definition, graph)) = self.graph else {
            bail!(
                InvalidArgument,
                "a condition can be set only by kernels inside its graph, not by work on a stream"
            );
        };
        if !definition.conditions.owns(condition) {
            bail!(
                WrongGraph,
                "the condition belongs to another graph; make one with condition() of this graph"
            );
        }
        let Some(data) = definition.conditions.get(condition) else {
            bail!(InvalidHandle, "the condition was deleted with the graph it belonged to");
        };
        if !definition.encloses(data.scope, graph) {
            bail!(WrongGraph, "the condition belongs to a graph that is not around this one");
        }
        Ok(())
    }

    /// Checks a new test for an existing conditional, which may be tested by its own condition.
    fn check_replaced_test(&self, test: &Test) -> Result<()> {
        match test {
            Test::Condition(condition) => self.check_condition_visible(*condition),
            test => self.check_test(test),
        }
    }

    pub(crate) fn check_test(&self, test: &Test) -> Result<()> {
        match test {
            Test::Condition(condition) => {
                self.check_condition_visible(*condition)?;
                let definition = self.graph.expect("checked with the condition").0;
                let data = definition.conditions.get(*condition).expect("checked");
                if let Some(user) = data.used_by {
                    bail!(
                        InvalidState,
                        "the condition already decides {}; make another with graph.condition()",
                        definition.label(user)
                    );
                }
            }
            Test::Value(region) => {
                self.check_region(region)?;
                check_on_device(region)?;
                if region.bytes < 4 || !address(region).is_multiple_of(4) {
                    bail!(
                        InvalidArgument,
                        "the value to test must be an aligned 4-byte integer, the region has {} bytes at {} of {}",
                        region.bytes,
                        region.offset,
                        self.name(&region.base)
                    );
                }
            }
            Test::Count(_) => {}
        }
        Ok(())
    }
}

/// Checks that a launch keeps the contract of its kernel, if it has one.
#[inline]
pub(crate) fn check_contract(op: &KernelOp) -> Result<()> {
    match op.kernel.signature() {
        Some(signature) => signature.check(&*op.kernel, op),
        None => Ok(()),
    }
}

/// Returns whether two launches differ at most in the values of their arguments.
fn is_same_form(one: &KernelOp, other: &KernelOp) -> bool {
    Arc::ptr_eq(&one.kernel, &other.kernel)
        && one.config == other.config
        && one.args.bytes.len() == other.args.bytes.len()
        && one.args.layout == other.args.layout
}

/// Returns whether the target of an argument may be gone since it was checked: its memory may be
/// freed, or its node or graph deleted.
fn may_be_gone(value: &PointerValue) -> bool {
    match value {
        PointerValue::Region(Region { base: Base::Allocation(allocation), .. }) => is_freed(allocation),
        _ => true,
    }
}

fn is_freed(memory: &Arc<dyn backend::Allocation>) -> bool {
    memory.outliving().is_some_and(OutlivingMemory::is_freed)
}

/// Checks that no node uses memory that was freed since the node was checked.
pub(crate) fn check_nothing_freed(definition: &Definition, runs: impl Fn(NodeKey) -> bool) -> Result<()> {
    let Some(user) = find_use(definition, |node, memory| is_freed(memory) && runs(node)) else {
        return Ok(());
    };
    let message = "uses memory that a launch has freed since; give the node other memory";
    Err(Error::new(ErrorKind::InvalidHandle, message).at_node(definition.label(user)))
}

/// Returns the first node that uses an allocation for which `is_meant` returns `true`.
pub(crate) fn find_use(
    definition: &Definition,
    is_meant: impl Fn(NodeKey, &Arc<dyn backend::Allocation>) -> bool,
) -> Option<NodeKey> {
    let uses = |(key, node): &(NodeKey, &NodeData)| {
        let mut uses = false;
        node.operation.for_each_region(|region| {
            uses |= matches!(&region.base, Base::Allocation(memory) if is_meant(*key, memory));
        });
        uses
    };
    definition.nodes.iter().find(uses).map(|(key, _)| key)
}

/// Returns whether an operation uses memory that can be freed while it is used.
pub(crate) fn uses_outliving(operation: &Operation) -> bool {
    let mut uses = false;
    operation.for_each_region(|region| {
        uses |= matches!(&region.base, Base::Allocation(memory) if memory.outliving().is_some());
    });
    uses
}

fn check_writable(region: &Region) -> Result<()> {
    if matches!(region.base, Base::Bytes(_)) {
        bail!(
            InvalidArgument,
            "a copied host slice can be read, not written; use a host buffer as the destination"
        );
    }
    Ok(())
}

fn check_on_device(region: &Region) -> Result<()> {
    if matches!(region.base, Base::Bytes(_)) {
        bail!(
            InvalidArgument,
            "a copied host slice has no address on the device; copy it to a buffer and use that"
        );
    }
    Ok(())
}

/// Returns the address of a region as far as it is known. The memory of an alloc node is aligned
/// for any value, so its offset serves.
fn address(region: &Region) -> u64 {
    match &region.base {
        Base::Allocation(allocation) => allocation.address() + region.offset,
        Base::AllocNode(_) | Base::Bytes(_) => region.offset,
    }
}

/// Returns whether a copy with these spans (destination, source) writes what it reads.
fn overlaps(op: &MemcpyOp, [dst_span, src_span]: [u64; 2]) -> bool {
    let same_memory = match (&op.dst.region.base, &op.src.region.base) {
        // Compared by address, because several allocations may name one variable of a module.
        (Base::Allocation(_), Base::Allocation(_)) => true,
        (dst, src) => dst == src,
    };
    let (dst, src) = (address(&op.dst.region), address(&op.src.region));
    if !same_memory || dst >= src + src_span || src >= dst + dst_span {
        return false;
    }
    // Columns of one pitched buffer: the rows interleave but do not overlap.
    let pitch = op.dst.pitch;
    if pitch == op.src.pitch && pitch > 0 {
        let shift = dst.abs_diff(src) % pitch;
        return shift < op.width || pitch - shift < op.width;
    }
    true
}

fn side_span(side: &CopySide, op: &MemcpyOp) -> Option<u64> {
    let mut span = op.width;
    if op.height > 1 {
        span = span.checked_add((op.height - 1).checked_mul(side.pitch)?)?;
    }
    if op.depth > 1 {
        span = span.checked_add((op.depth - 1).checked_mul(side.rows)?.checked_mul(side.pitch)?)?;
    }
    Some(span)
}

fn check_alloc_size(op: &AllocOp) -> Result<()> {
    if op.len == 0 || op.element_size == 0 {
        bail!(InvalidArgument, "an allocation of 0 bytes; the length must be at least 1");
    }
    match op.len.checked_mul(u64::from(op.element_size)) {
        Some(bytes) if bytes <= isize::MAX as u64 => Ok(()),
        _ => bail!(
            InvalidArgument,
            "{} elements of {} bytes do not fit in the address space",
            op.len,
            op.element_size
        ),
    }
}

fn sizes(params: &[ParamLayout]) -> String {
    let list: Vec<String> = params.iter().map(|param| param.size.to_string()).collect();
    format!("[{}]", list.join(", "))
}
