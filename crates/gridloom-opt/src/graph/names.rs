//! Node names in rewritten kernels, so that their faults name the node that the user wrote.

use std::any::Any;
use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::backend::{DeviceId, FaultPlace, Kernel, Origin, Origins};
use gridloom_core::launch::{KernelLimits, LaunchConfig};
use gridloom_core::op::Params;

use crate::cache::{Made, Recipe};
use crate::rewrite::{KernelSource, Sections};

/// The nodes whose work a rewritten kernel does.
#[derive(Clone, Debug)]
struct Parts {
    /// Their names, in the order of the parts.
    names: Vec<String>,
    /// The offset of the parameters of each.
    slices: Vec<u32>,
    sections: Arc<Sections>,
    /// Keeps the modules of the sections alive.
    _sources: Vec<KernelSource>,
}

impl Origins for Parts {
    fn origin(&self, place: &FaultPlace<'_>) -> Option<Origin> {
        let found = self.sections.find(place)?;
        let (node, slice) = (self.names.get(found.part)?.clone(), u64::from(*self.slices.get(found.part)?));
        let (module, function) = (found.module(), found.kernel()?);
        let body = function.body.as_ref()?;
        let instruction = body.instructions.get(found.instruction);
        let line = instruction.map(|instruction| module.source.position(instruction.span).0);
        let source = instruction.and_then(|instruction| instruction.location).map(|id| {
            let location = body.location(id);
            let file = module.files.iter().find(|file| file.index == location.file);
            (file.map_or_else(|| format!("file {}", location.file), |file| file.name.clone()), location.line)
        });
        let params = function.params.iter().map(|param| {
            let start = slice + param.offset;
            (param.var.name.clone(), start..start + param.var.size())
        });
        Some(Origin {
            node,
            kernel: function.name.clone(),
            block: found.block,
            thread: found.thread,
            line: line.filter(|&line| line > 0),
            source,
            params: params.collect(),
        })
    }
}

/// Returns a kernel that does the work of nodes with these names.
pub(crate) fn combined(made: &Made, recipe: &Recipe, names: Vec<String>) -> Arc<dyn Kernel> {
    let (slices, sections) = (made.slices.clone(), made.sections.clone());
    let parts = Parts { names, slices, sections, _sources: recipe.sources() };
    Arc::new(NamedKernel { kernel: made.kernel.clone(), origins: Arc::new(parts) })
}

/// Returns a kernel that was made from `kernel` by a prefix. If that is not a rewritten one,
/// `single` is the name of its node, and its source.
pub(crate) fn prefixed(
    made: &Made,
    kernel: &Arc<dyn Kernel>,
    single: Option<(String, KernelSource)>,
) -> Arc<dyn Kernel> {
    let whole = |(name, source): (String, KernelSource)| -> Arc<dyn Origins> {
        let sections = Arc::new(Sections::whole(&source));
        Arc::new(Parts { names: vec![name], slices: vec![0], sections, _sources: vec![source] })
    };
    let Some(origins) = kernel.origins().cloned().or_else(|| single.map(whole)) else {
        return made.kernel.clone();
    };
    let origins = Arc::new(Shifted { origins, by: made.shift });
    Arc::new(NamedKernel { kernel: made.kernel.clone(), origins })
}

/// The origins of a kernel with a prefix.
#[derive(Debug)]
struct Shifted {
    origins: Arc<dyn Origins>,
    by: u32,
}

impl Origins for Shifted {
    fn origin(&self, place: &FaultPlace<'_>) -> Option<Origin> {
        let instruction = place.instruction.checked_sub(self.by)?;
        self.origins.origin(&FaultPlace { instruction, ..*place })
    }
}

#[derive(Debug)]
struct NamedKernel {
    kernel: Arc<dyn Kernel>,
    origins: Arc<dyn Origins>,
}

// SAFETY: all answers are those of the backend's kernel that it runs.
unsafe impl Kernel for NamedKernel {
    fn device(&self) -> DeviceId {
        self.kernel.device()
    }

    fn name(&self) -> &str {
        self.kernel.name()
    }

    fn params(&self) -> Option<&Params> {
        self.kernel.params()
    }

    fn limits(&self) -> &KernelLimits {
        self.kernel.limits()
    }

    fn properties(&self) -> Vec<(String, String)> {
        self.kernel.properties()
    }

    fn resident_blocks(&self, config: &LaunchConfig) -> Result<Option<u64>> {
        self.kernel.resident_blocks(config)
    }

    fn ptx(&self) -> Option<&str> {
        self.kernel.ptx()
    }

    fn unsigned(&self) -> Option<&Arc<dyn Kernel>> {
        Some(&self.kernel)
    }

    fn origins(&self) -> Option<&Arc<dyn Origins>> {
        Some(&self.origins)
    }

    fn as_any(&self) -> &dyn Any {
        self.kernel.as_any()
    }
}
