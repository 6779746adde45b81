//! The graph optimiser: fewer and larger kernels that compute the same.
//!
//! [`GraphOptimizer`] stands between a checked graph and the backend that compiles it. Its passes
//! combine nodes by combining their kernels, from PTX to PTX ([`rewrite`]). The executable it
//! returns still answers for every node that the user wrote. The README of this crate explains why
//! results stay the same.

mod cache;
mod executable;
mod graph;
mod optimizations;
pub mod rewrite;

use gridloom_core::backend::Executable;
use gridloom_core::executable::{InstantiateOptions, Optimizer};
use gridloom_core::{Graph, Result};

pub use graph::Profile;
pub use optimizations::{Optimization, Optimizations};

/// Optimises graphs and compiles them.
#[derive(Clone, Copy, Debug)]
pub struct GraphOptimizer {
    wanted: Optimizations,
    profile: Option<Profile>,
}

impl GraphOptimizer {
    /// Creates an optimiser with these optimisations. Each is made only if it is worthwhile on the
    /// graph's device.
    #[must_use]
    pub fn new(wanted: Optimizations) -> Self {
        GraphOptimizer { wanted, profile: None }
    }

    /// Uses this profile instead of the device's own.
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
