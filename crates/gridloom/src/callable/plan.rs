//! Which nodes of a callable's graph depend on which parameter.

use gridloom_core::executable::Changes;
use gridloom_core::graph::NodeKey;
use smallvec::SmallVec;

use super::operands::{LaunchShape, Slot};
use super::params::Binding;
use super::recipe::{Recipe, RecipeKind};
use crate::{Error, LaunchConfig, Result};

/// A kernel argument that comes from a parameter.
struct DependentArg {
    node: NodeKey,
    index: u32,
    slot: Slot,
}

/// The nodes and arguments that depend on the parameters of a callable.
pub(super) struct Plan {
    /// The kernel arguments that come from each parameter.
    dependent_args: Vec<Vec<DependentArg>>,
    recipes: Vec<Recipe>,
    /// The parameters on which nodes other than kernels depend, as bits.
    other_params: u64,
    /// The parameters whose lengths determine launch shapes, as bits.
    shape_params: u64,
    /// Those of them that a function of the user turns into launch shapes.
    computed_params: u64,
    /// The parameters that select the graph, as bits.
    graph_params: u64,
}

/// The launch shapes that functions of the user computed for the lengths of one call, each with the
/// index of its recipe.
pub(super) struct ComputedShapes(SmallVec<[(usize, LaunchConfig); 4]>);

impl ComputedShapes {
    fn get(&self, recipe: usize) -> Option<LaunchConfig> {
        self.0.iter().find(|(of, _)| *of == recipe).map(|(_, config)| *config)
    }
}

/// The parameters whose values changed since the previous call, as bits.
#[derive(Clone, Copy)]
pub(super) struct Changed {
    pub(super) params: u64,
    /// Those whose lengths changed.
    pub(super) lengths: u64,
}

impl Plan {
    /// Plans a graph with these recipes. The bindings tell the kinds of the parameters.
    pub(super) fn new(bindings: &[Binding], recipes: Vec<Recipe>) -> Self {
        let mut plan = Plan {
            dependent_args: Vec::new(),
            recipes,
            other_params: 0,
            shape_params: 0,
            computed_params: 0,
            graph_params: 0,
        };
        plan.dependent_args.resize_with(bindings.len(), Vec::new);
        for (param, binding) in bindings.iter().enumerate() {
            plan.graph_params |= u64::from(matches!(binding, Binding::Shape(_))) << param;
        }
        for recipe in &plan.recipes {
            match &recipe.what {
                RecipeKind::Kernel(kernel) => {
                    plan.shape_params |= kernel.shape.follows();
                    if matches!(kernel.shape, LaunchShape::Computed(..)) {
                        plan.computed_params |= kernel.shape.follows();
                    }
                    for (index, slot) in (0..).zip(&kernel.slots) {
                        if let Some(param) = slot.param() {
                            let arg = DependentArg { node: recipe.node, index, slot: slot.clone() };
                            plan.dependent_args[param.index].push(arg);
                        }
                    }
                }
                RecipeKind::Other(_) => plan.other_params |= recipe.follows,
            }
        }
        plan
    }

    /// Returns whether a call with these changed parameters uses the same graph.
    #[inline]
    pub(super) fn serves(&self, changed: u64) -> bool {
        changed & self.graph_params == 0
    }

    /// Returns whether a call with these changes needs [`computed_shapes`](Plan::computed_shapes).
    #[inline]
    pub(super) fn needs_shapes(&self, changed: Changed) -> bool {
        changed.lengths & self.computed_params != 0
    }

    /// Calls the functions of the user that compute launch shapes, all for the lengths of one call.
    /// They may panic and may use callables, so this is not for a place under a lock.
    pub(super) fn computed_shapes(&self, bindings: &[Binding]) -> Result<ComputedShapes> {
        let mut shapes = SmallVec::new();
        for (index, recipe) in self.recipes.iter().enumerate() {
            if let RecipeKind::Kernel(kernel) = &recipe.what
                && matches!(kernel.shape, LaunchShape::Computed(..))
            {
                shapes.push((index, kernel.shape.config(bindings)?));
            }
        }
        Ok(ComputedShapes(shapes))
    }

    /// Returns how many nodes depend on the changed parameters, and how many bytes of arguments
    /// they have.
    pub(super) fn count(&self, changed: Changed) -> (u64, u64) {
        let following = self.recipes.iter().filter(|recipe| recipe.follows & changed.params != 0);
        following.fold((0, 0), |(nodes, sum), recipe| (nodes + 1, sum + recipe.bytes))
    }

    /// Writes the new values to the nodes that depend on changed parameters. `shapes` are those of
    /// these bindings, if the changes [need](Plan::needs_shapes) them.
    pub(super) fn write(
        &self,
        changes: &mut Changes<'_>,
        bindings: &[Binding],
        changed: Changed,
        shapes: Option<&ComputedShapes>,
    ) -> Result<()> {
        // Going parameter by parameter, memory is looked up and checked once for all its uses.
        let mut left = changed.params;
        while left != 0 {
            let param = left.trailing_zeros() as usize;
            left &= left - 1;
            for arg in &self.dependent_args[param] {
                // SAFETY: the arguments have the types that the kernels were looked up with
                // (`CallArguments`). Whoever looked them up promised that they stay within what
                // such arguments point to, as long as their contracts hold (`Module::kernel`). The
                // contracts are checked with every change.
                unsafe { arg.slot.write(changes, (arg.node, arg.index), bindings)? };
            }
        }
        if changed.params & self.other_params != 0 || changed.lengths & self.shape_params != 0 {
            self.write_operations(changes, bindings, changed, shapes)?;
        }
        Ok(())
    }

    /// Replaces the operations of nodes that launch no kernel or whose launch shape changed.
    fn write_operations(
        &self,
        changes: &mut Changes<'_>,
        bindings: &[Binding],
        changed: Changed,
        shapes: Option<&ComputedShapes>,
    ) -> Result<()> {
        let mut operations: SmallVec<[_; 4]> = SmallVec::new();
        let recipes = self.recipes.iter().enumerate();
        for (index, recipe) in recipes.filter(|(_, recipe)| recipe.follows & changed.params != 0) {
            let operation = match &recipe.what {
                RecipeKind::Kernel(kernel) if kernel.shape.follows() & changed.lengths == 0 => continue,
                RecipeKind::Kernel(kernel) => match shapes.and_then(|shapes| shapes.get(index)) {
                    Some(config) => kernel.operation_in(config, bindings),
                    None => kernel.operation(bindings),
                },
                RecipeKind::Other(make) => make(bindings),
            };
            let operation = operation.map_err(|error| error.at_node(changes.label(recipe.node)))?;
            operations.push((recipe.node, operation));
        }
        operations.into_iter().try_for_each(|(node, operation)| changes.operation(node, operation))
    }

    /// Adds to an error of a changed launch which arguments of the call are meant. `label` returns
    /// the labels of nodes. Where several nodes have the label of the error, it stays as it is.
    #[cold]
    pub(super) fn explain(&self, error: Error, label: impl Fn(NodeKey) -> String) -> Error {
        let Some(node) = error.node() else { return error };
        let mut launches = self.recipes.iter().filter_map(|recipe| match &recipe.what {
            RecipeKind::Kernel(kernel) if label(recipe.node) == node => Some(kernel),
            _ => None,
        });
        match (launches.next(), launches.next()) {
            (Some(launch), None) => launch.explain(error),
            _ => error,
        }
    }
}
