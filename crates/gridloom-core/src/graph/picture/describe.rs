//! The parameters of a node in a few short lines, for pictures.

use super::numbering::Numbering;
use crate::graph::definition::{Definition, NodeKey};
use crate::memory::{Base, MemoryKind, Region};
use crate::op::{
    AllocOp, CallbackOp, ConditionalForm, ConditionalOp, FreeTarget, KernelArgs, KernelOp, MemcpyOp,
    MemsetOp, Operation, PointerValue, RawData, Test,
};

/// The largest number of arguments that are shown. Further ones are only counted.
const MOST_ARGS: usize = 12;

/// Describes the nodes of one definition.
pub(super) struct Describe<'a> {
    pub(super) definition: &'a Definition,
    pub(super) numbering: &'a Numbering,
}

impl Describe<'_> {
    /// Returns the name of a node without the names of the nodes around it.
    pub(super) fn name(&self, key: NodeKey) -> String {
        self.definition.short_label(key)
    }

    /// Returns the lines that describe a node, without its name.
    pub(super) fn lines(&self, key: NodeKey) -> Vec<String> {
        let node = self.definition.node(key);
        let mut lines = match &node.operation {
            Operation::Empty => Vec::new(),
            Operation::Kernel(kernel) => self.kernel(kernel),
            Operation::Alloc(alloc) => alloc_lines(alloc),
            Operation::Free(FreeTarget::AllocNode(_)) if node.name.is_none() => Vec::new(),
            Operation::Free(FreeTarget::AllocNode(alloc)) => vec![format!("of {}", self.name(*alloc))],
            Operation::Free(FreeTarget::Outliving(buffer)) => {
                vec![format!("of buffer {}", self.numbering.buffer(buffer))]
            }
            Operation::Memset(memset) => self.memset(memset),
            Operation::Memcpy(memcpy) => self.memcpy(memcpy),
            Operation::Child(graph) => vec![count(self.definition.node_count(*graph) as u64, "node")],
            Operation::Callback(callback) => vec![callback_line(callback)],
            Operation::EventRecord(event) | Operation::EventWait(event) => {
                let options = event.options();
                let mut line = format!("event {}", self.numbering.event(event));
                line.push_str(if options.timing { ", timed" } else { "" });
                line.push_str(if options.blocking { ", blocking" } else { "" });
                vec![line]
            }
            Operation::Conditional(conditional) => self.conditional(conditional),
            Operation::Opaque(opaque) => {
                vec![count(opaque.node_count() as u64, "node"), opaque.reason().to_owned()]
            }
        };
        if node.name.is_some() {
            let kind = node.operation.kind().name();
            lines.insert(
                0,
                match node.operation.as_kernel() {
                    Some(launch) => format!("{kind} {}", launch.kernel.name()),
                    None => kind.to_owned(),
                },
            );
        }
        lines
    }

    fn kernel(&self, op: &KernelOp) -> Vec<String> {
        let config = &op.config;
        let mut lines = vec![format!("{} blocks of {}", config.grid, config.block)];
        let mut attributes = Vec::new();
        if config.shared > 0 {
            attributes.push(format!("shared {} B", config.shared));
        }
        attributes.extend(config.cluster.map(|cluster| format!("clusters of {cluster}")));
        attributes.extend(config.cooperative.then(|| "cooperative".to_owned()));
        attributes.extend(config.programmatic.then(|| "programmatic".to_owned()));
        attributes.extend(config.priority.map(|priority| format!("priority {priority}")));
        if !attributes.is_empty() {
            lines.push(attributes.join(", "));
        }
        let total = op.args.layout.len();
        let mut args: Vec<String> =
            (0..total.min(MOST_ARGS)).map(|index| self.argument(&op.args, index)).collect();
        if total > MOST_ARGS {
            args.push(format!("{} more", total - MOST_ARGS));
        }
        if !args.is_empty() {
            lines.push(format!("({})", args.join(", ")));
        }
        lines
    }

    fn argument(&self, args: &KernelArgs, index: usize) -> String {
        let Some(bytes) = args.value(index) else { return "?".into() };
        let mut pointers = args.pointers_in(index).map(|pointer| match &pointer.value {
            PointerValue::Region(region) => self.region(region),
            PointerValue::Condition(condition) => match self.numbering.condition(*condition) {
                Some(number) => format!("condition {number}"),
                None => "condition".into(),
            },
        });
        if bytes.len() == 8 {
            return pointers.next().unwrap_or_else(|| value(bytes));
        }
        let pointers: Vec<String> = pointers.collect();
        if pointers.is_empty() {
            return value(bytes);
        }
        format!("{} with {}", value(bytes), pointers.join(", "))
    }

    fn memset(&self, op: &MemsetOp) -> Vec<String> {
        let digits = 2 * op.element_size as usize;
        let extents = match op.height {
            1 => format!("{} × {} B", op.width, op.element_size),
            height => format!("{} × {height} × {} B, pitch {} B", op.width, op.element_size, op.pitch),
        };
        vec![format!("{} ← 0x{:0digits$x}", self.region(&op.dst), op.value), extents]
    }

    fn memcpy(&self, op: &MemcpyOp) -> Vec<String> {
        let mut extents = format!("{} B", op.width);
        if op.height > 1 || op.depth > 1 {
            extents.push_str(&format!(" × {}", op.height));
        }
        if op.depth > 1 {
            extents.push_str(&format!(" × {}", op.depth));
        }
        if op.height > 1 || op.depth > 1 {
            extents.push_str(&format!(", pitch {} → {} B", op.src.pitch, op.dst.pitch));
        }
        let side = |region| memory_of(self.definition, region).map_or("?", MemoryKind::name);
        vec![
            format!("{} → {}", self.region(&op.src.region), self.region(&op.dst.region)),
            format!("{} → {}, {extents}", side(&op.src.region), side(&op.dst.region)),
        ]
    }

    fn conditional(&self, op: &ConditionalOp) -> Vec<String> {
        let mut lines = vec![match &op.test {
            Test::Condition(condition) => {
                let number = self.numbering.condition(*condition).unwrap_or_default();
                match self.definition.get_condition(*condition).and_then(|data| data.default) {
                    Some(default) => format!("condition {number}, default {default}"),
                    None => format!("condition {number}, no default"),
                }
            }
            Test::Value(region) => format!("value of {}", self.region(region)),
            Test::Count(passes) => count(*passes, "pass"),
        }];
        if op.form == ConditionalForm::While {
            lines.extend((!op.test_first).then(|| "tested after each pass".to_owned()));
            lines.extend(op.max_passes.map(|most| format!("at most {}", count(most, "pass"))));
        }
        lines
    }

    /// Describes a region by the name of its memory, with its range if it is not the whole memory.
    pub(super) fn region(&self, region: &Region) -> String {
        let (name, whole) = match &region.base {
            Base::Allocation(buffer) => {
                (format!("buffer {}", self.numbering.buffer(buffer)), Some(buffer.bytes()))
            }
            Base::AllocNode(alloc) => {
                let whole = match self.definition.get_node(*alloc).map(|node| &node.operation) {
                    Some(Operation::Alloc(alloc)) => Some(alloc.bytes()),
                    _ => None,
                };
                (self.name(*alloc), whole)
            }
            Base::Bytes(bytes) => ("host bytes".into(), Some(bytes.len() as u64)),
        };
        if region.offset == 0 && Some(region.bytes) == whole {
            return name;
        }
        format!("{name}[{}..{}]", region.offset, region.offset.saturating_add(region.bytes))
    }
}

/// Returns the kind of memory of a region, or `None` if its alloc node was deleted.
pub(super) fn memory_of(definition: &Definition, region: &Region) -> Option<MemoryKind> {
    match &region.base {
        Base::Allocation(buffer) => Some(buffer.kind()),
        Base::Bytes(_) => Some(MemoryKind::Host),
        Base::AllocNode(alloc) => match definition.get_node(*alloc).map(|node| &node.operation) {
            Some(Operation::Alloc(alloc)) => Some(alloc.kind),
            _ => None,
        },
    }
}

fn alloc_lines(op: &AllocOp) -> Vec<String> {
    let mut lines = vec![format!("{} × {} B, {}", op.len, op.element_size, op.kind.name())];
    if !op.peers.is_empty() {
        let peers: Vec<String> = op.peers.iter().map(u32::to_string).collect();
        lines.push(format!("also for devices {}", peers.join(", ")));
    }
    lines
}

fn callback_line(op: &CallbackOp) -> String {
    match op {
        CallbackOp::Closure(closure) => {
            match closure.reads().iter().map(|region| region.bytes).sum::<u64>() {
                0 => "closure".into(),
                bytes => format!("closure, reads {bytes} B"),
            }
        }
        CallbackOp::Raw(raw) => match raw.data() {
            RawData::Bytes(bytes) => format!("raw function, {} B", bytes.len()),
            RawData::Pointer(_) => "raw function, pointer".into(),
        },
    }
}

fn count(number: u64, what: &str) -> String {
    match (number, what) {
        (1, what) => format!("1 {what}"),
        (number, "pass") => format!("{number} passes"),
        (number, what) => format!("{number} {what}s"),
    }
}

/// Formats a plain argument. Its type is unknown and guessed from the value: small integers and
/// moderate floats are shown as such.
fn value(bytes: &[u8]) -> String {
    let moderate = |float: f64| float.abs() >= 1e-6 && float.abs() < 1e9;
    match bytes.len() {
        1 | 2 | 4 | 8 => {}
        len => return format!("{len} B"),
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match bytes.len() {
        4 => {
            let (integer, float) = (bits as u32 as i32, f32::from_bits(bits as u32));
            if integer.unsigned_abs() < 1 << 24 {
                integer.to_string()
            } else if moderate(f64::from(float)) {
                format!("{float}f")
            } else {
                format!("{bits:#010x}")
            }
        }
        8 => {
            let (integer, float) = (bits as i64, f64::from_bits(bits));
            if integer.unsigned_abs() < 1 << 48 {
                integer.to_string()
            } else if moderate(float) {
                format!("{float}")
            } else {
                format!("{bits:#018x}")
            }
        }
        _ => bits.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_shown_as_the_number_it_looks_like() {
        let cases: &[(&[u8], &str)] = &[
            (&[7], "7"),
            (&500u16.to_le_bytes(), "500"),
            (&32u32.to_le_bytes(), "32"),
            (&(-5i32).to_le_bytes(), "-5"),
            (&0.4f32.to_le_bytes(), "0.4f"),
            (&(-2.5f32).to_le_bytes(), "-2.5f"),
            (&0x7f80_0000u32.to_le_bytes(), "0x7f800000"),
            (&(1u64 << 40).to_le_bytes(), "1099511627776"),
            (&(-1i64).to_le_bytes(), "-1"),
            (&0.125f64.to_le_bytes(), "0.125"),
            (&u64::to_le_bytes(0x7ff0_0000_0000_0000), "0x7ff0000000000000"),
            (&[0; 12], "12 B"),
            (&[], "0 B"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(value(bytes), *shown, "{bytes:?}");
        }
    }
}
