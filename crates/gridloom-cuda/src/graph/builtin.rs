//! Gridloom's own kernels: they set conditions from values in device memory.

use crate::device::Shared;
use crate::kernel::Kernel;
use gridloom_core::Result;
use gridloom_core::launch::LaunchConfig;
use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

/// The text of all of them.
const PTX: &str = include_str!("builtin.ptx");

/// Returns the text for a device. If kernels may overlap, the one that ends a pass starts
/// early and waits for the body itself.
pub(crate) fn text(overlaps: bool) -> Cow<'static, str> {
    if overlaps {
        PTX.replace(".target sm_70", ".target sm_90").replace("// WAIT", "griddepcontrol.wait;").into()
    } else {
        PTX.into()
    }
}

/// How a loop's condition is decided by [`LoopStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decide {
    /// By the value in memory and the limit.
    ByValue = 0,
    /// The first pass is made without a test.
    FirstPass = 1,
    /// Kernels of the user set the condition; only the limit overrules them.
    ByUser = 2,
}

/// The arguments of `gridloom_loop_begin` and `gridloom_loop_next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopStep {
    pub(super) handle: u64,
    /// The address of the value, or 0.
    pub(super) value: u64,
    /// The address of the count of passes.
    pub(super) state: u64,
    pub(super) limit: u64,
    pub(super) decide: Decide,
}

impl LoopStep {
    /// Returns the bytes in the layout of the kernel's parameters. Each lies at a multiple of its
    /// size, because the longer ones come first.
    pub(super) fn pack(&self) -> Vec<u8> {
        let words = [self.handle, self.value, self.state, self.limit];
        let decide = (self.decide as u32).to_ne_bytes();
        words.into_iter().flat_map(u64::to_ne_bytes).chain(decide).collect()
    }
}

/// The arguments of `gridloom_choose`.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) handle: u64,
    /// The address of the value.
    pub(super) value: u64,
    /// The address of the note whether a body runs.
    pub(super) state: u64,
    /// The values for which a body runs.
    pub(super) runs: RangeInclusive<u32>,
}

impl Choice {
    /// Returns the bytes in the layout of the kernel's parameters.
    pub(super) fn pack(&self) -> Vec<u8> {
        let runs = [*self.runs.start(), *self.runs.end()].into_iter().flat_map(u32::to_ne_bytes);
        [self.handle, self.value, self.state].into_iter().flat_map(u64::to_ne_bytes).chain(runs).collect()
    }
}

/// The kernels, each looked up when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Builtins {
    begin: OnceLock<Arc<Kernel>>,
    next: OnceLock<Arc<Kernel>>,
    choose: OnceLock<Arc<Kernel>>,
    count: OnceLock<Arc<Kernel>>,
}

/// Returns the configuration of all these kernels: one thread.
pub(super) fn one_thread() -> LaunchConfig {
    LaunchConfig::one()
}

impl Builtins {
    pub(super) fn loop_begin(&self, shared: &Shared) -> Result<&Arc<Kernel>> {
        find(&self.begin, shared, c"gridloom_loop_begin")
    }

    pub(super) fn loop_next(&self, shared: &Shared) -> Result<&Arc<Kernel>> {
        find(&self.next, shared, c"gridloom_loop_next")
    }

    pub(super) fn choose(&self, shared: &Shared) -> Result<&Arc<Kernel>> {
        find(&self.choose, shared, c"gridloom_choose")
    }

    pub(super) fn count(&self, shared: &Shared) -> Result<&Arc<Kernel>> {
        find(&self.count, shared, c"gridloom_count")
    }
}

fn find<'a>(slot: &'a OnceLock<Arc<Kernel>>, shared: &Shared, name: &CStr) -> Result<&'a Arc<Kernel>> {
    if let Some(kernel) = slot.get() {
        return Ok(kernel);
    }
    let kernel = shared.builtins()?.find_kernel(name)?;
    Ok(slot.get_or_init(|| kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_where_the_kernels_declare_them() {
        let step = LoopStep { handle: 1, value: 2, state: 3, limit: 4, decide: Decide::ByUser };
        let packed = step.pack();
        assert_eq!(
            (packed.len(), &packed[24..32], &packed[32..]),
            (36, &4u64.to_ne_bytes()[..], &2u32.to_ne_bytes()[..])
        );
        let choice = Choice { handle: 1, value: 2, state: 3, runs: 1..=u32::MAX }.pack();
        assert_eq!(
            (choice.len(), &choice[16..24], &choice[28..]),
            (32, &3u64.to_ne_bytes()[..], &u32::MAX.to_ne_bytes()[..])
        );
    }

    #[test]
    fn where_kernels_overlap_the_end_of_a_pass_waits_for_the_body_before_it_reads() {
        assert!(!text(false).contains("griddepcontrol"));
        let text = text(true);
        assert!(text.contains(".target sm_90\n"));
        let next = &text[text.find("gridloom_loop_next(").unwrap()..];
        let (wait, load) = (next.find("griddepcontrol.wait;").unwrap(), next.find("ld.global").unwrap());
        assert!(wait < load);
    }

    #[test]
    fn every_kernel_that_is_looked_up_is_in_the_text() {
        for name in ["loop_begin", "loop_next", "choose", "count"].map(|name| format!("gridloom_{name}")) {
            assert!(PTX.contains(&format!(".visible .entry {name}(")));
        }
    }
}
