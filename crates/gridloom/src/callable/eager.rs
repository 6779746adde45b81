//! Running a callable without graphs: every operation is enqueued on its own, and the host drives
//! loops and branches.

use gridloom_core::graph::{Definition, GraphKey};
use gridloom_core::lower::{Bodies, ConditionalRule};
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{ConditionalOp, Operation, Test};
use gridloom_core::{Graph, Stream};

use crate::{Error, ErrorKind, Result};

/// Enqueues the operations of a graph on a stream, in an order that respects its edges.
pub(super) fn run(graph: &Graph, stream: &Stream) -> Result<()> {
    let definition = graph.definition();
    run_graph(&definition, definition.root(), stream)
}

fn run_graph(definition: &Definition, graph: GraphKey, stream: &Stream) -> Result<()> {
    for &key in &*definition.topological(graph) {
        let outcome = match definition.node(key).operation() {
            Operation::Conditional(op) => {
                ConditionalRule::new(op).run(op.bodies.len(), &mut Conditional { definition, op, stream })
            }
            Operation::Child(child) => run_graph(definition, *child, stream),
            operation => stream.enqueue(operation.clone()),
        };
        outcome.map_err(|error| error.at_node(definition.label(key)))?;
    }
    Ok(())
}

/// A conditional with its bodies.
struct Conditional<'a> {
    definition: &'a Definition,
    op: &'a ConditionalOp,
    stream: &'a Stream,
}

impl Bodies for Conditional<'_> {
    /// Returns the tested integer, after everything that was enqueued.
    fn test(&mut self) -> Result<u32> {
        let Test::Value(Region { base: Base::Allocation(allocation), offset, .. }) = &self.op.test else {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "a callable without graphs tests values in memory only",
            ));
        };
        self.stream.synchronize()?;
        let mut value = [0; 4];
        self.stream.device().read(&**allocation, *offset, &mut value)?;
        Ok(u32::from_ne_bytes(value))
    }

    fn run(&mut self, body: usize) -> Result<()> {
        run_graph(self.definition, self.op.bodies[body], self.stream)
    }

    fn passed(&mut self, _: u64) {}
}
