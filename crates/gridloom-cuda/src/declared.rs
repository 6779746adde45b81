//! Kernels as their PTX declares them.
//!
//! No driver reports which block size a kernel requires (`.reqntid`), or whether it waits for the
//! kernels before it (`griddepcontrol.wait`). Drivers before 12.4 report neither the kernels of a
//! module nor their parameters. The PTX text has all of these.

use gridloom_core::launch::Dim3;
use gridloom_core::log;
use gridloom_core::op::{ParamLayout, Params};
use std::sync::{Arc, OnceLock};

/// The kernels of a PTX text. The text is parsed at the first query.
#[derive(Debug)]
pub(crate) struct DeclaredKernels {
    source: Arc<str>,
    kernels: OnceLock<Vec<DeclaredKernel>>,
}

/// One `.entry` with a body.
#[derive(Debug)]
pub(crate) struct DeclaredKernel {
    pub(crate) name: String,
    /// `None` if a parameter has a size that no launch can provide.
    pub(crate) params: Option<Params>,
    /// `.reqntid`
    pub(crate) required_block: Option<Dim3>,
    /// Whether it always executes `griddepcontrol.wait`.
    pub(crate) waits: bool,
}

impl DeclaredKernels {
    /// Returns the kernels of a text, if the driver does not tell everything itself. Otherwise
    /// parsing the text would waste time and keeping it would waste memory.
    pub(crate) fn of(source: &Arc<str>, driver_tells_parameters: bool) -> Option<Arc<Self>> {
        let told = [".reqntid", "griddepcontrol"].iter().any(|word| source.contains(word));
        let needed = !driver_tells_parameters || told;
        needed.then(|| Arc::new(Self { source: Arc::clone(source), kernels: OnceLock::new() }))
    }

    /// Returns all kernels, in the order of the text. A text that only the driver can parse has
    /// none.
    pub(crate) fn all(&self) -> &[DeclaredKernel] {
        self.kernels.get_or_init(|| match gridloom_ptx::parse(&self.source) {
            Ok(module) => module.entries().map(|(_, function)| DeclaredKernel::of(function)).collect(),
            Err(error) => {
                log!(debug, %error, "the PTX could not be read for what its kernels declare");
                Vec::new()
            }
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&DeclaredKernel> {
        self.all().iter().find(|kernel| kernel.name == name)
    }
}

impl DeclaredKernel {
    fn of(function: &gridloom_ptx::Function) -> Self {
        Self {
            name: function.name.clone(),
            params: function.params.iter().map(layout).collect(),
            required_block: function.directives.reqntid.map(Dim3::from),
            waits: function.body.as_ref().is_some_and(|body| body.always_waits()),
        }
    }
}

fn layout(param: &gridloom_ptx::Param) -> Option<ParamLayout> {
    if param.var.is_unsized() {
        return None;
    }
    Some(ParamLayout {
        offset: u32::try_from(param.offset).ok()?,
        size: u32::try_from(param.var.size()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(body: &str) -> Arc<DeclaredKernels> {
        let text = format!(".version 8.0\n.target sm_70\n.address_size 64\n{body}");
        DeclaredKernels::of(&Arc::from(text), false).unwrap()
    }

    fn places(kernels: &DeclaredKernels, name: &str) -> Vec<(u32, u32)> {
        let params = kernels.find(name).unwrap().params.as_ref().unwrap();
        params.iter().map(|place| (place.offset, place.size)).collect()
    }

    #[test]
    fn parameters_lie_at_the_next_multiple_of_their_alignment() {
        let kernels = declared(
            ".visible .entry scalars(.param .u8 a, .param .u64 b, .param .u16 c, .param .f32 d) { ret; }\n\
             .visible .entry arrays(.param .u32 a, .param .align 8 .b8 b[20], .param .f64 c, .param .b8 d[3]) { ret; }\n\
             .visible .entry aligned(.param .b8 a[1], .param .align 16 .b8 b[32], .param .b32 c) { ret; }\n\
             .visible .entry none() { ret; }\n",
        );
        assert_eq!(places(&kernels, "scalars"), [(0, 1), (8, 8), (16, 2), (20, 4)]);
        assert_eq!(places(&kernels, "arrays"), [(0, 4), (8, 20), (32, 8), (40, 3)]);
        assert_eq!(places(&kernels, "aligned"), [(0, 1), (16, 32), (48, 4)]);
        assert_eq!(places(&kernels, "none"), []);
    }

    #[test]
    fn functions_that_are_no_kernels_are_not_among_them() {
        let kernels = declared(
            ".visible .func helper() { ret; }\n.visible .entry one() { ret; }\n.entry two() { ret; }\n",
        );
        let names: Vec<_> = kernels.all().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert!(kernels.find("helper").is_none());
    }

    #[test]
    fn required_blocks_are_those_of_the_text() {
        let kernels =
            declared(".visible .entry tile() .reqntid 16, 16 { ret; }\n.visible .entry free() { ret; }\n");
        assert_eq!(kernels.find("tile").unwrap().required_block, Some(Dim3::new(16, 16, 1)));
        assert_eq!(kernels.find("free").unwrap().required_block, None);
    }

    #[test]
    fn a_kernel_waits_if_it_never_ends_without() {
        let kernels = declared(
            ".visible .entry waits() { griddepcontrol.wait; ret; }\n\
             .visible .entry starts() { griddepcontrol.launch_dependents; ret; }\n",
        );
        assert!(kernels.find("waits").unwrap().waits && !kernels.find("starts").unwrap().waits);
    }

    #[test]
    fn a_text_that_cannot_be_read_declares_nothing() {
        assert!(DeclaredKernels::of(&Arc::from(".reqntid of no kernel"), true).unwrap().all().is_empty());
    }

    #[test]
    fn a_text_is_kept_only_where_the_driver_does_not_tell_everything() {
        assert!(DeclaredKernels::of(&Arc::from(".visible .entry one() { ret; }"), true).is_none());
        assert!(DeclaredKernels::of(&Arc::from(".visible .entry one() { ret; }"), false).is_some());
    }
}
