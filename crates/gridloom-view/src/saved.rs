//! Reader of saved graphs.
//!
//! Nodes have the numbers that `Graph::to_json` and profiles give to the nodes of the loaded graph:
//! each node is followed by what is inside it.

use std::collections::{HashMap, HashSet};

use gridloom_file::document::{
    self as file, Arg, Buffer, CopySide, Document, Launch, Memory, NodeRef, Operation, PointerTarget, Region,
    Test,
};
use gridloom_file::{GraphFile, Limits};

use crate::picture::{Body, Edge, Graph, Node, Picture, body_label, reference};
use crate::{MOST_NODES, ReadError};

/// Reads a saved graph. The sizes of its memory do not matter, because nothing is allocated.
///
/// # Errors
/// Fails if the archive is damaged or inconsistent, or has more nodes than [`MOST_NODES`].
pub fn read(bytes: &[u8]) -> Result<Picture, ReadError> {
    let file = GraphFile::from_bytes(bytes, &Limits::default().memory(u64::MAX))
        .map_err(|error| ReadError::new(error.to_string()))?;
    picture(&file)
}

/// Makes a picture of a saved graph.
///
/// # Errors
/// Fails if the document is inconsistent, or has more nodes than [`MOST_NODES`].
pub fn picture(file: &GraphFile) -> Result<Picture, ReadError> {
    let document = &file.document;
    document.check(&Limits::default().memory(u64::MAX)).map_err(|error| ReadError::new(error.to_string()))?;
    if document.graphs.iter().map(|graph| graph.nodes.len()).sum::<usize>() > MOST_NODES {
        return Err(ReadError::new(format!("more than {MOST_NODES} nodes")));
    }
    let origins: Vec<HashMap<&str, String>> = file.modules.iter().map(|ptx| origins(ptx)).collect();
    let origins =
        document.kernels.iter().map(|kernel| origins.get(kernel.module)?.get(&*kernel.name).cloned());
    let origins = origins.collect();
    let mut ports = HashMap::new();
    for port in document.inputs.iter().chain(&document.outputs) {
        ports.entry(port.region.of).or_insert(port.name.as_str());
    }
    let mut next = 0;
    let graph = Describe { document, origins, ports }.graph(0, &mut next);
    let mut picture = Picture { title: "graph".to_owned(), graph };
    picture.arrange();
    Ok(picture)
}

/// Returns where the kernels of a module come from: the line of their source if the PTX says, else
/// that of the PTX.
fn origins(ptx: &str) -> HashMap<&str, String> {
    let mut files = HashMap::new();
    // For each kernel its line in the PTX, and file and line of its first instruction.
    let mut kernels: Vec<(&str, usize, Option<(&str, &str)>)> = Vec::new();
    for (at, line) in ptx.lines().enumerate() {
        if let Some((_, rest)) = line.split_once(".entry") {
            let name = rest.trim_start();
            let end = name.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')));
            kernels.push((&name[..end.unwrap_or(name.len())], at + 1, None));
            continue;
        }
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix(".loc") {
            let mut words = rest.split_whitespace();
            if let (Some((_, _, location @ None)), Some(file), Some(line)) =
                (kernels.last_mut(), words.next(), words.next())
            {
                *location = Some((file, line.trim_end_matches(';')));
            }
        } else if let Some(rest) = line.strip_prefix(".file")
            && let (Some(number), Some(name)) = (rest.split_whitespace().next(), rest.split('"').nth(1))
        {
            files.entry(number).or_insert(name);
        }
    }
    let mut origins = HashMap::with_capacity(kernels.len());
    for (name, at, location) in kernels {
        let origin = match location {
            Some((file, line)) => {
                let file = files.get(file).copied().unwrap_or("source");
                format!("{}:{}", reference(file), reference(line))
            }
            None => format!("line {at} of the PTX"),
        };
        origins.entry(name).or_insert(origin);
    }
    origins
}

struct Describe<'a> {
    document: &'a Document,
    /// Where each kernel comes from.
    origins: Vec<Option<String>>,
    /// The names of inputs and outputs, by their memory.
    ports: HashMap<Memory, &'a str>,
}

impl Describe<'_> {
    /// Converts a graph. The nesting of graphs, which is checked, bounds the recursion.
    fn graph(&self, number: usize, next: &mut usize) -> Graph {
        let mut graph = Graph::default();
        let mut ids = Vec::with_capacity(self.document.graphs[number].nodes.len());
        for (place, node) in self.document.graphs[number].nodes.iter().enumerate() {
            let id = *next;
            *next += 1;
            ids.push(id);
            let kind = node.operation.kind();
            let bodies =
                node.operation.bodies().iter().enumerate().map(|(index, &body)| Body {
                    label: body_label(kind, index),
                    graph: self.graph(body, next),
                });
            let bodies = bodies.collect();
            let programmatic: HashSet<usize> = node.programmatic.iter().copied().collect();
            graph.edges.extend(node.after.iter().map(|after| Edge {
                from: ids[*after],
                to: id,
                programmatic: programmatic.contains(after),
            }));
            graph.nodes.push(Node {
                id,
                name: self.name(NodeRef(number, place)),
                kind: kind.to_owned(),
                facts: self.facts(&node.operation),
                bodies,
                ..Node::default()
            });
        }
        graph
    }

    fn name(&self, at: NodeRef) -> String {
        let Some(node) = self.document.node(at) else { return "?".to_owned() };
        match (&node.name, &node.operation) {
            (Some(name), _) => name.clone(),
            (None, Operation::Kernel(launch)) => {
                format!("kernel#{} {}", at.1, reference(&self.document.kernels[launch.kernel].name))
            }
            (None, Operation::Free(alloc)) => format!("free#{} of {}", at.1, self.reference(*alloc)),
            (None, operation) => format!("{}#{}", operation.kind(), at.1),
        }
    }

    /// Returns the name of a node as others show it.
    fn reference(&self, at: NodeRef) -> String {
        match self.document.node(at) {
            Some(file::Node { name: Some(name), .. }) => reference(name),
            _ => self.name(at),
        }
    }

    fn facts(&self, operation: &Operation) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
        match operation {
            Operation::Empty => {}
            Operation::Kernel(launch) => self.kernel(launch, &mut add),
            Operation::Alloc { len, element_size, memory, peers } => {
                add("elements", len.to_string());
                add("element_size", element_size.to_string());
                add("memory", format!("{memory:?}").to_lowercase());
                if !peers.is_empty() {
                    add("peers", format!("{peers:?}"));
                }
            }
            Operation::Free(alloc) => add("of", self.reference(*alloc)),
            Operation::Memset { dst, value, element_size, width, height, pitch } => {
                add("dst", self.region(dst));
                add("value", format!("{value:#x}"));
                add("element_size", element_size.to_string());
                add("width", width.to_string());
                if *height > 1 {
                    add("height", height.to_string());
                    add("pitch", pitch.to_string());
                }
            }
            Operation::Memcpy { dst, src, width, height, depth } => {
                let mut side = |name: &str, side: &CopySide| {
                    add(name, self.region(&side.region));
                    if *height > 1 || *depth > 1 {
                        add(&format!("{name}.pitch"), side.pitch.to_string());
                    }
                };
                side("dst", dst);
                side("src", src);
                add("width", width.to_string());
                if *height > 1 || *depth > 1 {
                    add("height", height.to_string());
                    add("depth", depth.to_string());
                }
            }
            Operation::Child(graph) => add("nodes", self.document.graphs[*graph].nodes.len().to_string()),
            Operation::Record(event) | Operation::Wait(event) => add("event", event.to_string()),
            Operation::If { test, .. } | Operation::IfElse { test, .. } | Operation::Switch { test, .. } => {
                self.test(test, &mut add);
            }
            Operation::While { test, at_least_once, max_passes, .. } => {
                self.test(test, &mut add);
                if *at_least_once {
                    add("tested", "after each pass".to_owned());
                }
                if let Some(most) = max_passes {
                    add("max_passes", most.to_string());
                }
            }
        }
        facts
    }

    fn kernel(&self, launch: &Launch, add: &mut dyn FnMut(&str, String)) {
        let extents = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join(" × ");
        add("kernel", reference(&self.document.kernels[launch.kernel].name));
        if let Some(origin) = &self.origins[launch.kernel] {
            add("source", origin.clone());
        }
        add("grid", extents(launch.grid));
        add("block", extents(launch.block));
        if launch.shared > 0 {
            add("shared", launch.shared.to_string());
        }
        if let Some(cluster) = launch.cluster {
            add("cluster", extents(cluster));
        }
        for (name, holds) in [("cooperative", launch.cooperative), ("programmatic", launch.programmatic)] {
            if holds {
                add(name, "true".to_owned());
            }
        }
        if let Some(priority) = launch.priority {
            add("priority", priority.to_string());
        }
        for (index, arg) in launch.args.iter().enumerate() {
            add(&format!("args[{index}]"), self.arg(arg));
        }
    }

    fn arg(&self, arg: &Arg) -> String {
        match arg {
            Arg::Integer(value) => value.to_string(),
            Arg::F32(text) | Arg::F64(text) => text.clone(),
            Arg::Bytes(digits) => format!("0x{digits}"),
            Arg::Memory(region) => self.region(region),
            Arg::Condition(condition) => format!("condition {condition}"),
            Arg::Structure { bytes, pointers } => {
                let targets = pointers.iter().map(|pointer| match &pointer.to {
                    PointerTarget::Memory(region) => self.region(region),
                    PointerTarget::Condition(condition) => format!("condition {condition}"),
                });
                format!("{} bytes with {}", bytes.len() / 2, targets.collect::<Vec<_>>().join("; "))
            }
        }
    }

    fn test(&self, test: &Test, add: &mut dyn FnMut(&str, String)) {
        match test {
            Test::Condition(condition) => {
                add("condition", condition.to_string());
                if let Some(default) = self.document.conditions[*condition].default {
                    add("default", default.to_string());
                }
            }
            Test::Value(region) => add("value", self.region(region)),
            Test::Count(passes) => add("passes", passes.to_string()),
        }
    }

    fn region(&self, region: &Region) -> String {
        let name = match region.of {
            Memory::Buffer(buffer) => match (self.ports.get(&region.of), &self.document.buffers[buffer]) {
                (Some(&port), _) => port.to_owned(),
                (None, Buffer::Variable { name, .. }) => format!("variable {}", reference(name)),
                (None, _) => format!("buffer {buffer}"),
            },
            Memory::Alloc(alloc) => self.reference(alloc),
            Memory::Constant(constant) => format!("constant {constant}"),
        };
        match region.offset {
            0 => format!("{name}, {} bytes", region.bytes),
            offset => format!("{name} + {offset}, {} bytes", region.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_comes_from_the_line_that_the_ptx_says() {
        let ptx = ".version 8.0\n.visible .entry other(\n)\n{\n.loc 1 3 0\n}\n.entry heat(\n)\n{\n\t.loc\t1 12 5\n}\n.file 1 \"heat.cu\"\n";
        let origins_of = origins(ptx);
        let origin = |name: &str| origins_of.get(name).map(String::as_str);
        assert_eq!(origin("heat"), Some("heat.cu:12"));
        assert_eq!(origin("other"), Some("heat.cu:3"));
        assert_eq!(origin("hea"), None);
        assert_eq!(origins(".entry a() { ret; }")["a"], "line 1 of the PTX");
    }
}
