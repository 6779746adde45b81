//! The graph optimiser: fewer and larger kernels that compute the same.
//!
//! [`GraphOptimizer`] stands between a checked graph and the backend that compiles it. Its passes put nodes together by putting their kernels together, PTX to PTX
//! ([`rewrite`]); what it returns answers for every node of the graph as it was written. The README of this crate argues why results stay the same.

mod executable;
mod graph;
mod optimizations;
pub mod rewrite;

use gridloom_core::backend::Executable;
use gridloom_core::executable::{InstantiateOptions, Optimizer};
use gridloom_core::{Graph, Result};

pub use graph::Profile;
pub use optimizations::{Optimization, Optimizations};

/// Compiles graphs in the form that its optimisations give them.
#[derive(Clone, Copy, Debug)]
pub struct GraphOptimizer {
    wanted: Optimizations,
    profile: Option<Profile>,
}

impl GraphOptimizer {
    /// An optimiser that makes these optimisations, where they pay on the device of the graph.
    #[must_use]
    pub fn new(wanted: Optimizations) -> Self {
        GraphOptimizer { wanted, profile: None }
    }

    /// The same, for a device that is like this, whatever it says of itself.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        GraphOptimizer { profile: Some(profile), ..self }
    }
}

impl Optimizer for GraphOptimizer {
    fn compile(&self, graph: Graph, options: &InstantiateOptions) -> Result<Box<dyn Executable>> {
        let profile = self.profile.unwrap_or_else(|| Profile::of(&**graph.device()));
        Ok(Box::new(executable::OptimizedExecutable::new(graph, options, self.wanted, profile)?))
    }
}
