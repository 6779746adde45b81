//! Rewriting of kernels, from PTX to PTX.
//!
//! - [`block_program`], [`structured_program`] and [`team_program`]: kernels become steps of one
//!   kernel, with barriers between them, under loops and branches. It has one block, a cluster, or
//!   as many blocks as run at once. It has those of the widest step if no thread needs what another
//!   one wrote.
//! - [`batch`]: independent kernels become parts of one grid.
//! - [`choice`]: kernels of which at most one runs become one that tests a word.
//! - [`prefixed`]: a kernel gets instructions before its own: a wait for the kernels it depends on,
//!   or a test whether to run at all.
//!
//! Each takes [`KernelSource`]s and returns a [`Rewritten`] kernel or the reason why not. A
//! rewritten kernel has passed the PTX checker.

mod accesses;
mod assembly;
mod batch;
mod calls;
mod choice;
mod flow;
mod meetings;
mod origins;
mod prefixed;
mod program;
mod settled;
mod source;
mod stops;
mod uniformity;

pub use accesses::{Accesses, Pointee};
pub use batch::{BatchGroup, batch};
pub use choice::{Case, choice};
pub use origins::{PlaceInPart, Sections};
pub use prefixed::{Gate, Predicate, Prefix, prefixed};
pub use program::{
    Control, ControlForm, LoopTest, Looping, Part, ProgramStep, State, Team, TeamBarrier, block_program,
    structured_program, team_program,
};
pub(crate) use source::SourceId;
pub use source::{KernelSource, Role};

use gridloom_ptx::Module;

/// How the names of rewritten kernels begin that are no copies of one.
const PREFIX: &str = "gridloom_fused";
/// The most kernels that a name names.
const MAX_NAMED: usize = 3;
/// The most bytes of the name of each.
const MAX_NAME: usize = 40;

/// The alignment of the parameters of a kernel inside the parameters of a rewritten one.
const SLICE_ALIGN: u64 = 16;

/// A kernel made from others.
///
/// It has one parameter, a structure: a header, then the parameters of each kernel, laid out as the
/// kernel declares them.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The module. It has no other kernel.
    pub module: Module,
    /// The name of the kernel.
    pub name: String,
    /// Its parameters, with the header filled in and zeros elsewhere.
    pub header: Vec<u8>,
    /// The offset of the parameters of each step or node, in the order given.
    pub slices: Vec<u32>,
    /// The threads of a block.
    pub block: [u32; 3],
    /// The number of blocks, in one dimension.
    pub blocks: u32,
    /// The memory that it needs between launches.
    pub state: Option<State>,
    /// Where its instructions come from.
    pub sections: Sections,
}

impl Rewritten {
    /// Returns the module as text.
    #[must_use]
    pub fn text(&self) -> String {
        self.module.to_string()
    }
}

/// Returns the name of a kernel that is made of these. It names the first of them, because that is
/// all that a driver or a debugger says of a kernel that fails.
fn name_of<'a>(kernels: impl IntoIterator<Item = &'a KernelSource>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for kernel in kernels {
        if !names.contains(&kernel.name()) {
            names.push(kernel.name());
        }
    }
    let mut name = PREFIX.to_owned();
    for one in names.iter().take(MAX_NAMED) {
        name.push('_');
        name.extend(one.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(MAX_NAME));
    }
    if names.len() > MAX_NAMED {
        name += &format!("_and_{}_more", names.len() - MAX_NAMED);
    }
    name
}

/// Lays out parameters one after the other.
#[derive(Debug)]
struct Layout {
    at: u64,
    align: u64,
    limit: u64,
}

impl Layout {
    fn new(limit: u32) -> Self {
        Layout { at: 0, align: SLICE_ALIGN, limit: limit.into() }
    }

    fn place(&mut self, bytes: u64, align: u64) -> Result<u64, String> {
        let at = self.at.next_multiple_of(align);
        let end = at + bytes;
        if end > self.limit {
            return Err(format!(
                "their arguments take more than the {} bytes that a kernel can take",
                self.limit
            ));
        }
        self.align = self.align.max(align);
        self.at = end;
        Ok(at)
    }
}

fn put(header: &mut [u8], at: u64, bytes: &[u8]) {
    header[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
}
