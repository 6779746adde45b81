//! Conditionals that the device decides: their nodes, bodies, handles and the counting of passes.

use super::super::edges::{Edges, Nodes};
use super::super::node_map::{DeciderNodes, DriverNode};
use super::super::parameters::{Decider, has_decider};
use super::super::plan::{Step, Work};
use super::{Builder, PROGRAMMATIC_EDGES_SINCE, Runs};
use crate::driver::DriverResult;
use crate::sys::*;
use gridloom_core::graph::{ConditionKey, NodeKey};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::ptr;

impl Builder<'_> {
    /// Sets all counters of passes to 0 at the start of the launch, so that a conditional that is
    /// not reached made none.
    ///
    /// If the host drives the launch, it does that before the first unit. Conditionals that are
    /// always reached and that a kernel of Gridloom's decides do not need it, because that kernel
    /// resets the count.
    pub(super) fn add_reset(&mut self, steps: &[Step]) -> Result<()> {
        let definition = self.definition;
        let is_needed = |step: &Step| match (&step.work, definition.node(step.origin).operation()) {
            (Work::Native(bodies), Operation::Conditional(op)) => {
                (!has_decider(op) && self.is_counted(step)) || bodies.iter().any(|body| self.counts(body))
            }
            _ => false,
        };
        if self.runs == Runs::Alone
            && let Some((address, bytes)) = self.lowering.resources.counted()
            && steps.iter().any(is_needed)
        {
            self.reset = Some(self.add_fill(self.root, &Edges::none(), address, 0, bytes / 4)?);
        }
        Ok(())
    }

    fn is_counted(&self, step: &Step) -> bool {
        self.lowering.resources.counter(step.origin).is_some()
    }

    /// Returns whether the passes of any conditional among these steps, or inside one, are counted.
    fn counts(&self, steps: &[Step]) -> bool {
        steps.iter().any(|step| match &step.work {
            Work::Native(bodies) => self.is_counted(step) || bodies.iter().any(|body| self.counts(body)),
            _ => false,
        })
    }

    /// Returns the handle of a condition in this unit, made at its first use.
    pub(super) fn handle(&mut self, condition: ConditionKey) -> Result<CUgraphConditionalHandle> {
        if let Some(&handle) = self.handles.get(&condition) {
            return Ok(handle);
        }
        let handle = self.new_handle(self.lowering.resources.condition(condition).start)?;
        self.handles.insert(condition, handle);
        Ok(handle)
    }

    /// Calls [`cuGraphConditionalHandleCreate`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn new_handle(&self, default: u32) -> DriverResult<CUgraphConditionalHandle> {
        let mut handle = 0;
        // SAFETY: graph and context are alive; one handle is written.
        unsafe {
            self.driver.cu_graph_conditional_handle_create(
                &mut handle,
                self.root,
                self.ctx,
                default,
                CU_GRAPH_COND_ASSIGN_DEFAULT,
            )?;
        }
        Ok(handle)
    }

    pub(super) fn add_conditional(
        &mut self,
        graph: CUgraph,
        edges: Edges,
        origin: NodeKey,
        op: &ConditionalOp,
        bodies: &[Vec<Step>],
    ) -> Result<CUgraphNode> {
        let handle = match op.test {
            Test::Condition(condition) => {
                self.tested.insert(condition);
                self.handle(condition)?
            }
            Test::Value(_) | Test::Count(_) => self.new_handle(0)?,
        };
        let resources = self.lowering.resources;
        let decider = self.lowering.decider(self.held, origin, op, handle)?;
        // A decider counts passes itself. If only kernels of the user decide, separate nodes count.
        let counter = if decider.is_none() { resources.counter(origin) } else { None };
        let outermost = graph == self.root;
        let mut edges = edges;
        if outermost && let Some(reset) = self.reset {
            edges.add(reset);
        }
        let mut place = None;
        if let Some(decider) = &decider {
            let kernel = match decider {
                Decider::Loop { .. } => resources.builtins().loop_begin(&resources.shared)?,
                Decider::Choice(_) => resources.builtins().choose(&resources.shared)?,
            };
            let before = self.add_builtin(graph, edges, kernel, &decider.before())?;
            self.origins.push((before, origin));
            edges = Edges::full([before]);
            place = Some(DeciderNodes { handle, before, next: None });
        } else if let Some(counter) = counter
            && (!outermost || self.runs == Runs::Repeatedly)
        {
            // Each execution starts to count from 0. An outermost conditional has one execution for
            // each launch.
            let before = self.add_fill(graph, &edges, counter, 0, 2)?;
            self.origins.push((before, origin));
            edges = Edges::full([before]);
        }
        let (node, graphs) = self.add_conditional_node(graph, &edges, handle, op.form, bodies.len())?;
        for (&body, steps) in graphs.iter().zip(bodies) {
            if let Some(counter) = counter {
                // The counting node has no order to the work of the body.
                let counting = self.add_counting(body, op.form, counter)?;
                self.origins.push((counting, origin));
            }
            let nodes = self.add_steps(body, steps)?;
            let idle = self.fill_idle_body(body, steps)?;
            if let Some(next) = decider.as_ref().and_then(Decider::next) {
                let last = match idle {
                    Some(idle) => Edges::full([idle]),
                    None => self.end_of_pass(origin, steps, &nodes),
                };
                let kernel = resources.builtins().loop_next(&resources.shared)?;
                let added = self.add_builtin(body, last, kernel, &next)?;
                self.origins.push((added, origin));
                if let Some(place) = &mut place {
                    place.next = Some(added);
                }
            }
        }
        self.node_map.set(origin, DriverNode { unit: self.unit, node }, place);
        Ok(node)
    }

    /// Adds a fill to a body in which nothing runs, and returns it. Driver 580.159 lost the context
    /// about six times as often where bodies were empty, or had only the kernel that ends a pass
    /// (docs/driver-quirks.md).
    fn fill_idle_body(&mut self, body: CUgraph, steps: &[Step]) -> Result<Option<CUgraphNode>> {
        if steps.iter().any(|step| !matches!(step.work, Work::Join)) {
            return Ok(None);
        }
        self.add_idle_fill(body, &Edges::none()).map(Some)
    }

    /// Returns what the kernel that ends a pass waits for. If that is one kernel, and the
    /// driver and the GPU support it, the ending kernel starts while that kernel still runs.
    fn end_of_pass(&mut self, origin: NodeKey, steps: &[Step], nodes: &Nodes) -> Edges {
        let last = last_steps(steps);
        if let [step] = *last
            && matches!(steps[step].work, Work::Node)
            && let Operation::Kernel(op) = self.definition.node(steps[step].origin).operation()
            && !op.config().cooperative
            && op.config().cluster.is_none()
            && self.driver.supports(PROGRAMMATIC_EDGES_SINCE)
            && self.lowering.resources.shared.context.overlaps_kernels()
        {
            self.node_map.set_overlapping(steps[step].origin, origin);
            return Edges::programmatic(nodes[step]);
        }
        Edges::full(last.iter().map(|&step| nodes[step]))
    }

    /// Counts a pass of a body that kernels of the user decide.
    fn add_counting(&self, body: CUgraph, form: ConditionalForm, counter: u64) -> Result<CUgraphNode> {
        if form != ConditionalForm::While {
            return self.add_fill(body, &Edges::none(), counter, 1, 1);
        }
        let resources = self.lowering.resources;
        let kernel = resources.builtins().count(&resources.shared)?;
        self.add_builtin(body, Edges::none(), kernel, &counter.to_ne_bytes())
    }

    /// Adds the conditional node itself, and returns the graphs of its bodies.
    fn add_conditional_node(
        &self,
        graph: CUgraph,
        edges: &Edges,
        handle: CUgraphConditionalHandle,
        form: ConditionalForm,
        bodies: usize,
    ) -> Result<(CUgraphNode, SmallVec<[CUgraph; 2]>)> {
        let mut parameters = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: match form {
                ConditionalForm::If | ConditionalForm::IfElse => {
                    CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF
                }
                ConditionalForm::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
                ConditionalForm::Switch => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH,
            },
            size: bodies as u32,
            phGraph_out: ptr::null_mut(),
            ctx: self.ctx,
        };
        let node = self.add_general(graph, edges, &mut parameters)?;
        // SAFETY: the parameters are those of a conditional, set above.
        let out = unsafe { parameters.__bindgen_anon_1.conditional.phGraph_out };
        if out.is_null() {
            return Err(Error::new(ErrorKind::Driver, "the driver made a conditional without bodies"));
        }
        // SAFETY: on success the driver has stored an array of `size` graphs that lives as long as
        // the node.
        let graphs = unsafe { std::slice::from_raw_parts(out, bodies) };
        Ok((node, SmallVec::from_slice(graphs)))
    }

    /// Adds an IF that does nothing for each handle that nothing tests, because such a handle makes
    /// the driver refuse the whole graph. They come after `last`, the last conditional of the
    /// outermost graph, and one after the other: no conditionals of a graph may run side by side
    /// (see `add_steps`).
    pub(super) fn use_up_handles(&mut self, mut last: Option<CUgraphNode>) -> Result<()> {
        let untested = self.handles.iter().filter(|(condition, _)| !self.tested.contains(condition));
        for handle in untested.map(|(_, &handle)| handle).collect::<Vec<_>>() {
            let edges = Edges::full(last);
            let (node, bodies) =
                self.add_conditional_node(self.root, &edges, handle, ConditionalForm::If, 1)?;
            self.fill_idle_body(bodies[0], &[])?;
            last = Some(node);
        }
        Ok(())
    }
}

/// Returns the steps that no other step waits for.
fn last_steps(steps: &[Step]) -> SmallVec<[usize; 4]> {
    let mut is_last = vec![true; steps.len()];
    for step in steps {
        for &(before, _) in &step.after {
            is_last[before as usize] = false;
        }
    }
    (0..steps.len()).filter(|&step| is_last[step]).collect()
}
