//! Running a callable without graphs: every operation on its own, the host driving loops and branches.

use gridloom_core::graph::{Definition, GraphKey};
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Graph, Stream};

use crate::{Error, ErrorKind, Result};

/// Enqueues the work of a graph on a stream, in an order that respects its edges.
pub(super) fn run(graph: &Graph, stream: &Stream) -> Result<()> {
    let definition = graph.definition();
    run_graph(&definition, definition.root(), stream)
}

fn run_graph(definition: &Definition, graph: GraphKey, stream: &Stream) -> Result<()> {
    for &key in &*definition.topological(graph) {
        let outcome = match definition.node(key).operation() {
            Operation::Conditional(conditional) => run_conditional(definition, conditional, stream),
            Operation::Child(child) => run_graph(definition, *child, stream),
            operation => stream.enqueue(operation.clone()),
        };
        outcome.map_err(|error| error.at_node(definition.label(key)))?;
    }
    Ok(())
}

fn run_conditional(definition: &Definition, conditional: &ConditionalOp, stream: &Stream) -> Result<()> {
    let run = |body: GraphKey| run_graph(definition, body, stream);
    match conditional.form {
        ConditionalForm::If if test(conditional, stream)? != 0 => run(conditional.bodies[0]),
        ConditionalForm::If => Ok(()),
        ConditionalForm::IfElse => run(conditional.bodies[usize::from(test(conditional, stream)? == 0)]),
        ConditionalForm::Switch => {
            let case = usize::try_from(test(conditional, stream)?).ok();
            case.and_then(|case| conditional.bodies.get(case)).map_or(Ok(()), |&body| run(body))
        }
        ConditionalForm::While => {
            let mut left = conditional.max_passes.unwrap_or(u64::MAX);
            if let Test::Count(passes) = conditional.test {
                for _ in 0..passes.min(left) {
                    run(conditional.bodies[0])?;
                }
                return Ok(());
            }
            let mut again = !conditional.test_first || test(conditional, stream)? != 0;
            while again && left > 0 {
                run(conditional.bodies[0])?;
                left -= 1;
                again = test(conditional, stream)? != 0;
            }
            Ok(())
        }
    }
}

/// The integer that a conditional of a callable tests, after all that was enqueued.
fn test(conditional: &ConditionalOp, stream: &Stream) -> Result<i32> {
    let Test::Value(Region { base: Base::Allocation(allocation), offset, .. }) = &conditional.test else {
        return Err(Error::new(
            ErrorKind::NotSupported,
            "a callable without graphs tests values in memory only",
        ));
    };
    stream.synchronize()?;
    let mut value = [0; 4];
    stream.device().read(&**allocation, *offset, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}
