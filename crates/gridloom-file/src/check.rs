//! What must hold for a document before anything is built from it.
//!
//! The checks here are those of the format: every number refers to something that exists, graphs
//! form a tree, dependencies point backwards, and sizes are within limits. The rules of graphs
//! (ranges, contracts, order of memory) are checked by whoever builds the graph.

use std::collections::{HashMap, HashSet};

use crate::document::{
    Arg, Buffer, Document, Expr, FORMAT, Launch, Memory, Node, NodeRef, Operation, PointerTarget, Port,
    Region, Signature, Test, VERSION,
};
use crate::error::{Result, bail};
use crate::npy::{self, DType};
use crate::{Limits, hex};

/// The deepest nesting of graphs.
const MOST_NESTED: usize = 64;
/// The deepest nesting of expressions in a contract.
pub(crate) const MOST_NESTED_TERMS: usize = 24;
/// The longest name.
const LONGEST_NAME: usize = 64;

impl Document {
    /// Checks that the document is consistent and within limits.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        check_format(&self.format, self.version)?;
        self.check_tree()?;
        for (number, kernel) in self.kernels.iter().enumerate() {
            let place = || format!("kernel {number} ({})", kernel.name);
            check_index(kernel.module, self.modules, "module").map_err(|error| error.at(place()))?;
            if let Some(signature) = &kernel.signature {
                check_signature(signature).map_err(|error| error.at(place()))?;
            }
        }
        let mut memory: u64 = 0;
        for (number, buffer) in self.buffers.iter().enumerate() {
            if buffer.bytes() == 0 {
                bail!("buffer {number} has no bytes");
            }
            match buffer {
                Buffer::Variable { module, .. } => {
                    check_index(*module, self.modules, "module")
                        .map_err(|error| error.at(format_args!("buffer {number}")))?;
                }
                _ => memory = memory.saturating_add(buffer.bytes()),
            }
        }
        for (number, condition) in self.conditions.iter().enumerate() {
            check_index(condition.graph, self.graphs.len(), "graph")
                .map_err(|error| error.at(format_args!("condition {number}")))?;
        }
        if !self.conditions.is_sorted_by_key(|condition| condition.graph) {
            bail!("the conditions are not in the order of their graphs");
        }
        for (graph, nodes) in self.graphs.iter().enumerate() {
            for (number, node) in nodes.nodes.iter().enumerate() {
                self.check_node(node, number)
                    .map_err(|error| error.at(self.label(NodeRef(graph, number))))?;
                if let Operation::Alloc { len, element_size, .. } = node.operation {
                    memory = memory.saturating_add(len.saturating_mul(element_size.into()));
                }
            }
        }
        if memory > limits.memory {
            bail!(
                "the graph uses {memory} bytes of memory; the limit is {} bytes, and can be raised",
                limits.memory
            );
        }
        self.check_ports()
    }

    /// Returns the name of a node, or one made of its kind and numbers.
    pub fn label(&self, node: NodeRef) -> String {
        let NodeRef(graph, number) = node;
        match self.node(node) {
            Some(Node { name: Some(name), .. }) => name.clone(),
            Some(node) => format!("{} {number} of graph {graph}", node.operation.kind()),
            None => format!("node {number} of graph {graph}"),
        }
    }

    /// Returns a node.
    pub fn node(&self, NodeRef(graph, node): NodeRef) -> Option<&Node> {
        self.graphs.get(graph)?.nodes.get(node)
    }

    /// Checks that graphs form a tree, numbered in the order in which nodes refer to them.
    fn check_tree(&self) -> Result<()> {
        if self.graphs.is_empty() {
            bail!("there is no graph in the file");
        }
        let mut depths = vec![0];
        for graph in 0..self.graphs.len() {
            let Some(&depth) = depths.get(graph) else { bail!("graph {graph} is inside no node") };
            for node in &self.graphs[graph].nodes {
                for &body in node.operation.bodies() {
                    if body != depths.len() || body >= self.graphs.len() {
                        bail!(
                            "graph {body} is not where it belongs; graphs are numbered in the order of the nodes around them, and each is inside one node"
                        );
                    }
                    if depth + 1 > MOST_NESTED {
                        bail!("graphs are nested deeper than {MOST_NESTED}");
                    }
                    depths.push(depth + 1);
                }
            }
        }
        Ok(())
    }

    fn check_node(&self, node: &Node, number: usize) -> Result<()> {
        if let Some(&after) = node.after.iter().find(|&&after| after >= number) {
            bail!("it is after node {after}, which does not come before it in the file");
        }
        let mut seen = HashSet::new();
        if let Some(twice) = node.after.iter().find(|&&after| !seen.insert(after)) {
            bail!("it is after node {twice} twice");
        }
        if let Some(other) = node.programmatic.iter().find(|&after| !seen.remove(after)) {
            bail!("its edge from node {other} is programmatic, and there is no such edge");
        }
        match &node.operation {
            Operation::Empty | Operation::Alloc { .. } | Operation::Child(_) => Ok(()),
            Operation::Kernel(launch) => self.check_launch(launch),
            Operation::Free(alloc) => self.check_alloc(*alloc),
            Operation::Memset { dst, .. } => self.check_region(dst),
            Operation::Memcpy { dst, src, .. } => {
                self.check_region(&dst.region)?;
                self.check_region(&src.region)
            }
            Operation::Record(event) | Operation::Wait(event) => {
                check_index(*event, self.events.len(), "event")
            }
            Operation::If { test, .. }
            | Operation::IfElse { test, .. }
            | Operation::While { test, .. }
            | Operation::Switch { test, .. } => match test {
                Test::Condition(condition) => check_index(*condition, self.conditions.len(), "condition"),
                Test::Value(region) => self.check_region(region),
                Test::Count(_) => Ok(()),
            },
        }
    }

    fn check_launch(&self, launch: &Launch) -> Result<()> {
        check_index(launch.kernel, self.kernels.len(), "kernel")?;
        let kernel = &self.kernels[launch.kernel];
        if let Some(signature) = &kernel.signature
            && signature.params.len() != launch.args.len()
        {
            bail!(
                "{} arguments for {}, which takes {}",
                launch.args.len(),
                kernel.name,
                signature.params.len()
            );
        }
        for (number, arg) in launch.args.iter().enumerate() {
            self.check_arg(arg).map_err(|error| error.at(format_args!("argument {number}")))?;
        }
        Ok(())
    }

    fn check_arg(&self, arg: &Arg) -> Result<()> {
        match arg {
            Arg::Integer(_) => Ok(()),
            Arg::F32(text) => match text.parse::<f32>() {
                Ok(_) => Ok(()),
                Err(_) => bail!("{text:?} is not a number"),
            },
            Arg::F64(text) => match text.parse::<f64>() {
                Ok(_) => Ok(()),
                Err(_) => bail!("{text:?} is not a number"),
            },
            Arg::Bytes(text) => hex::decode(text).map(drop),
            Arg::Memory(region) => self.check_region(region),
            Arg::Condition(condition) => check_index(*condition, self.conditions.len(), "condition"),
            Arg::Structure { bytes, pointers } => {
                hex::decode(bytes)?;
                for pointer in pointers {
                    match &pointer.to {
                        PointerTarget::Memory(region) => self.check_region(region)?,
                        PointerTarget::Condition(condition) => {
                            check_index(*condition, self.conditions.len(), "condition")?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn check_region(&self, region: &Region) -> Result<()> {
        match region.of {
            Memory::Buffer(buffer) => check_index(buffer, self.buffers.len(), "buffer")?,
            Memory::Alloc(alloc) => self.check_alloc(alloc)?,
            Memory::Constant(constant) => check_index(constant, self.constants, "constant")?,
        }
        let size = match region.of {
            Memory::Buffer(buffer) => Some(self.buffers[buffer].bytes()),
            _ => None,
        };
        let end = region.offset.checked_add(region.bytes);
        if end.is_none_or(|end| size.is_some_and(|size| end > size)) {
            bail!("{} bytes at {} are not inside the memory", region.bytes, region.offset);
        }
        Ok(())
    }

    fn check_alloc(&self, alloc: NodeRef) -> Result<()> {
        match self.node(alloc).map(|node| &node.operation) {
            Some(Operation::Alloc { .. }) => Ok(()),
            _ => bail!("{} allocates no memory", self.label(alloc)),
        }
    }

    fn check_ports(&self) -> Result<()> {
        for ports in [&self.inputs, &self.outputs] {
            let mut names = HashSet::new();
            for port in ports {
                check_name(&port.name)?;
                if !names.insert(&port.name) {
                    bail!("the name {} is given twice", port.name);
                }
                self.check_port(port).map_err(|error| error.at(&port.name))?;
            }
        }
        // One name means one array.
        let outputs: HashMap<&str, &Port> =
            self.outputs.iter().map(|output| (output.name.as_str(), output)).collect();
        for input in &self.inputs {
            if let Some(output) = outputs.get(input.name.as_str())
                && (output.region, &output.dtype, &output.shape) != (input.region, &input.dtype, &input.shape)
            {
                bail!("{} is an input, and an output of other memory or shape", input.name);
            }
        }
        Ok(())
    }

    fn check_port(&self, port: &Port) -> Result<()> {
        self.check_region(&port.region)?;
        if !matches!(port.region.of, Memory::Buffer(_)) {
            bail!("only buffers can be inputs and outputs");
        }
        let bytes = npy::bytes_of(DType::parse(&port.dtype)?, &port.shape)?;
        if bytes != port.region.bytes {
            bail!("an array of {bytes} bytes for memory of {}", port.region.bytes);
        }
        Ok(())
    }
}

/// Checks that a document is of the format and version that this program reads.
pub(crate) fn check_format(format: &str, version: u32) -> Result<()> {
    if format != FORMAT {
        bail!("graph.json has the format {format:?}, not {FORMAT:?}");
    }
    if version != VERSION {
        bail!(
            "the file has version {version} of the format, and this program reads version {VERSION}; use a newer program, or save the graph again"
        );
    }
    Ok(())
}

/// Checks the name of an input or output, which is also a part of a file name.
pub fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.chars().all(is_plain) {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        bail!(
            "{shown:?} cannot be the name of an input or output; use up to {LONGEST_NAME} letters, digits, `_`, `-` and `.`, not starting with a dot"
        );
    }
    Ok(())
}

fn check_index(index: usize, count: usize, what: &str) -> Result<()> {
    match index < count {
        true => Ok(()),
        false => bail!("there is no {what} {index}; the file has {count}"),
    }
}

fn check_signature(signature: &Signature) -> Result<()> {
    let held = signature.holds.iter().map(|(_, expr)| expr);
    let sides = signature.bounds.iter().flat_map(|bound| match bound {
        crate::document::Bound::AtMost(one, other) | crate::document::Bound::MultipleOf(one, other) => {
            [one, other]
        }
    });
    for expr in held.chain(sides) {
        if depth(expr) > MOST_NESTED_TERMS {
            bail!("a number of its contract is nested deeper than {MOST_NESTED_TERMS}");
        }
    }
    Ok(())
}

/// Returns how deep the terms of an expression are nested. The JSON reader bounds it too.
pub(crate) fn depth(expr: &Expr) -> usize {
    match expr {
        Expr::Sum(two) | Expr::Difference(two) | Expr::Product(two) | Expr::Max(two) => {
            1 + depth(&two.0).max(depth(&two.1))
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GraphFile;

    #[test]
    fn a_document_of_another_format_or_version_is_not_written() {
        let graphs = vec![Default::default()];
        let document = Document { graphs, ..Document::default() };
        let written = |document| GraphFile { document, ..GraphFile::default() }.to_bytes();
        written(document.clone()).unwrap();
        let error = written(Document { format: "another".to_owned(), ..document.clone() }).unwrap_err();
        assert!(error.to_string().contains("has the format \"another\""), "{error}");
        let error = written(Document { version: VERSION + 1, ..document }).unwrap_err();
        assert!(error.to_string().contains("use a newer program"), "{error}");
    }
}
