//! What of a callable's graph follows which parameter.

use gridloom_core::executable::Changes;
use gridloom_core::graph::NodeKey;
use smallvec::SmallVec;

use super::operands::Slot;
use super::params::Binding;
use super::recipe::{Recipe, What};
use crate::Result;

/// An argument of a kernel that comes from a parameter.
struct Place {
    node: NodeKey,
    index: u32,
    slot: Slot,
}

/// What follows the parameters of a callable.
pub(super) struct Plan {
    /// By parameter: the arguments of kernels that come from it.
    places: Vec<Vec<Place>>,
    recipes: Vec<Recipe>,
    /// The parameters that nodes follow which launch no kernel.
    elsewhere: u64,
    /// The parameters whose lengths decide the shapes of launches.
    shapes: u64,
    /// The parameters that decide which graph is called.
    graphs: u64,
}

/// The parameters that a call gives other values for: a bit for each.
#[derive(Clone, Copy)]
pub(super) struct Changed {
    pub(super) params: u64,
    /// Those of them whose lengths differ.
    pub(super) lengths: u64,
}

impl Plan {
    /// The plan of a graph with these recipes, for parameters like these.
    pub(super) fn new(bindings: &[Binding], recipes: Vec<Recipe>) -> Self {
        let mut plan = Plan { places: Vec::new(), recipes, elsewhere: 0, shapes: 0, graphs: 0 };
        plan.places.resize_with(bindings.len(), Vec::new);
        for (param, binding) in bindings.iter().enumerate() {
            plan.graphs |= u64::from(matches!(binding, Binding::Shape(_))) << param;
        }
        for recipe in &plan.recipes {
            match &recipe.what {
                What::Kernel(kernel) => {
                    plan.shapes |= kernel.shape.follows();
                    for (index, slot) in (0..).zip(&kernel.slots) {
                        if let Some(param) = slot.param() {
                            let place = Place { node: recipe.node, index, slot: slot.clone() };
                            plan.places[param.index].push(place);
                        }
                    }
                }
                What::Other(_) => plan.elsewhere |= recipe.follows,
            }
        }
        plan
    }

    /// Returns whether a call that differs in these parameters is one of the same graph.
    #[inline]
    pub(super) fn serves(&self, changed: u64) -> bool {
        changed & self.graphs == 0
    }

    /// How many nodes follow these parameters, and the bytes of their arguments.
    pub(super) fn count(&self, changed: Changed) -> (u64, u64) {
        let following = self.recipes.iter().filter(|recipe| recipe.follows & changed.params != 0);
        following.fold((0, 0), |(nodes, sum), recipe| (nodes + 1, sum + recipe.bytes))
    }

    /// Gives the nodes that follow changed parameters what these bindings say.
    pub(super) fn write(
        &self,
        changes: &mut Changes<'_>,
        bindings: &[Binding],
        changed: Changed,
    ) -> Result<()> {
        // Parameter by parameter, so that memory is looked up and checked once for all that are given it.
        let mut left = changed.params;
        while left != 0 {
            let param = left.trailing_zeros() as usize;
            left &= left - 1;
            for place in &self.places[param] {
                // SAFETY: the arguments are of the types that the kernels of the nodes were looked up with (`CallArguments`), and whoever
                // looked them up promised that they stay within what such arguments lead to where their contracts are kept
                // (`Module::kernel`), which is checked with every change.
                unsafe { place.slot.write(changes, (place.node, place.index), bindings)? };
            }
        }
        if changed.params & self.elsewhere != 0 || changed.lengths & self.shapes != 0 {
            self.write_operations(changes, bindings, changed)?;
        }
        Ok(())
    }

    /// Replaces what nodes do that launch no kernel, or one in another shape.
    fn write_operations(
        &self,
        changes: &mut Changes<'_>,
        bindings: &[Binding],
        changed: Changed,
    ) -> Result<()> {
        let mut operations: SmallVec<[_; 4]> = SmallVec::new();
        for recipe in self.recipes.iter().filter(|recipe| recipe.follows & changed.params != 0) {
            let operation = match &recipe.what {
                What::Kernel(kernel) if kernel.shape.follows() & changed.lengths == 0 => continue,
                What::Kernel(kernel) => kernel.operation(bindings),
                What::Other(make) => make(bindings),
            };
            let operation = operation.map_err(|error| error.at_node(changes.label(recipe.node)))?;
            operations.push((recipe.node, operation));
        }
        operations.into_iter().try_for_each(|(node, operation)| changes.operation(node, operation))
    }
}
