//! The graph optimiser: fewer and larger kernels that compute the same.
//!
//! Programs use it through the `gridloom` crate (`InstantiateOptions::optimize`).
//!
//! [`GraphOptimizer`] stands between a checked graph and the backend that compiles it. Its passes
//! combine nodes by combining their kernels, from PTX to PTX ([`rewrite`]). The executable that it
//! returns still has every node that the user wrote, for changes, errors and profiles. The README
//! of this crate argues why results stay the same.

mod arguments;
mod automatic;
mod cache;
mod executable;
mod graph;
mod optimizations;
pub mod rewrite;
mod status;
mod succession;
mod worker;

use std::sync::Arc;

use gridloom_core::backend::{Device, DeviceKind, Executable};
use gridloom_core::executable::{InstantiateOptions, Optimizer};
use gridloom_core::{Graph, Result};
use rustc_hash::FxHashSet;

use automatic::{AutomaticExecutable, Settings};
use executable::OptimizedExecutable;
use graph::Kernels;
pub use graph::Profile;
pub use optimizations::{Optimization, Optimizations, Optimize};

/// Optimises graphs and compiles them.
#[derive(Clone, Copy, Debug)]
pub struct GraphOptimizer {
    wanted: Optimizations,
    profile: Option<Profile>,
    /// The launches after which a graph is optimised while it runs. `None` if it is optimised when
    /// it is instantiated.
    after: Option<u32>,
    /// Whether every optimisation is made that the device supports, worthwhile or not.
    everything: bool,
}

impl GraphOptimizer {
    /// The launches after which [`automatic`](GraphOptimizer::automatic) makes kernels.
    pub const LAUNCHES: u32 = 32;

    /// Creates an optimiser with these optimisations. Each is made only if it is worthwhile on the
    /// graph's device.
    #[must_use]
    pub fn new(wanted: Optimizations) -> Self {
        GraphOptimizer { wanted, profile: None, after: None, everything: false }
    }

    /// Creates an optimiser that leaves instantiation as fast as it is without one. An executable
    /// that was launched [`LAUNCHES`](GraphOptimizer::LAUNCHES) times has its kernels rewritten on a
    /// thread of their own, and takes them over between two launches.
    #[must_use]
    pub fn automatic(wanted: Optimizations) -> Self {
        GraphOptimizer::new(wanted).after(Self::LAUNCHES)
    }

    /// Optimises executables while they run, after so many launches.
    #[must_use]
    pub fn after(self, launches: u32) -> Self {
        GraphOptimizer { after: Some(launches), ..self }
    }

    /// Makes every optimisation that the device supports, worthwhile or not. This is for tests.
    #[must_use]
    pub fn everything(self) -> Self {
        GraphOptimizer { everything: true, ..self }
    }

    /// Uses this profile instead of the device's own.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        GraphOptimizer { profile: Some(profile), ..self }
    }
}

// SAFETY: every operation is one of the checked graph, or a kernel made from its kernels, and is
// added with the checks of the core. Executables of the device are called by the one that holds
// them, which the core calls one call at a time.
unsafe impl Optimizer for GraphOptimizer {
    fn compile(&self, graph: Graph, options: &InstantiateOptions) -> Result<Box<dyn Executable>> {
        let mut profile = self.profile.unwrap_or_else(|| Profile::of(&**graph.device()));
        if self.everything {
            profile = profile.with_everything();
        }
        let (wanted, disabled) = ((self.wanted, profile), FxHashSet::default());
        let made = OptimizedExecutable::new(graph, options, wanted, disabled, Kernels::Make)?;
        Ok(Box::new(made.ok_or_else(executable::incomplete)?))
    }

    fn is_automatic(&self) -> bool {
        self.after.is_some()
    }

    fn adaptive(
        &self,
        device: &Arc<dyn Device>,
        plain: Box<dyn Executable>,
        options: &InstantiateOptions,
    ) -> Box<dyn Executable> {
        let Some(launches) = self.after else { return plain };
        if device.kind() == DeviceKind::Null {
            return plain;
        }
        let everything = || self.profile.unwrap_or_else(|| Profile::of(&**device)).with_everything();
        let profile = if self.everything { Some(everything()) } else { self.profile };
        let settings = Settings { wanted: self.wanted, profile, launches };
        Box::new(AutomaticExecutable::new(device, plain, options, settings))
    }
}
