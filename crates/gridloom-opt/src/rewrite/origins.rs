//! Where the instructions of a rewritten kernel come from.

use std::sync::Arc;

use gridloom_core::backend::FaultPlace;
use gridloom_ptx::{Body, Function, Module, RegId, SymbolId};

use super::source::{KernelSource, SourceId};

/// Tells for each instruction of a rewritten kernel which part it does the work of. It does not
/// keep the kernels of the parts alive.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// In the order of their instructions, which do not overlap.
    sections: Vec<Section>,
}

/// The code of an inlined kernel.
#[derive(Clone, Debug)]
struct Section {
    kernel: SourceId,
    /// The index of the first instruction for each one of the kernel, and of the one after the
    /// last.
    starts: Vec<u32>,
    part: PartOf,
    shape: Shape,
}

/// The part that a section does the work of. Parts are steps or launches, in the order given.
#[derive(Clone, Debug)]
pub(crate) enum PartOf {
    /// This one.
    One(usize),
    /// The first plus the number in a register.
    Counted { first: usize, count: RegId },
    /// The launch that the block belongs to, of those from `first` on. The blocks of the launches
    /// follow each other from `start` on.
    Launches { first: usize, start: u32, grids: Vec<[u32; 3]> },
}

/// How the blocks and threads of a part are spread over those of the rewritten kernel.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// They are the same, except for the blocks of [`PartOf::Launches`].
    Same,
    /// Each slot of a block runs a block of the part.
    Slots { slots: u32, threads: u64, grid: [u32; 3], block: [u32; 3] },
}

/// The place of a thread in the kernel of a part.
#[derive(Clone, Debug)]
pub struct PlaceInPart {
    /// The index of the part.
    pub part: usize,
    module: Arc<Module>,
    entry: SymbolId,
    /// The block of the part.
    pub block: [u32; 3],
    /// The thread in that block.
    pub thread: [u32; 3],
    /// The index of the instruction in the kernel.
    pub instruction: usize,
}

impl PlaceInPart {
    /// Returns the module of the kernel.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the kernel.
    #[must_use]
    pub fn kernel(&self) -> Option<&Function> {
        self.module.function(self.entry)
    }
}

impl Sections {
    pub(crate) fn add(&mut self, kernel: &KernelSource, starts: Vec<u32>, part: PartOf, shape: Shape) {
        self.sections.push(Section { kernel: kernel.id(), starts, part, shape });
    }

    /// Returns those of a kernel that is the only part.
    pub(crate) fn whole(kernel: &KernelSource) -> Self {
        let starts = (0..=kernel.body().instructions.len() as u32).collect();
        let mut sections = Sections::default();
        sections.add(kernel, starts, PartOf::One(0), Shape::Same);
        sections
    }

    /// Gives registers the numbers that a fault has: those of wider ones count twice.
    pub(crate) fn number_registers(&mut self, body: &Body) {
        let types: Vec<bool> = body.registers.types().map(|ty| ty.bits() > 64).collect();
        for section in &mut self.sections {
            if let PartOf::Counted { count, .. } = &mut section.part {
                let wide = types[..count.index()].iter().filter(|is_wide| **is_wide).count();
                count.0 += wide as u32;
            }
        }
    }

    /// Returns where a thread is in the kernel that it does the work of. `None` if it is between
    /// kernels, or if nobody has the module of that kernel any more.
    #[must_use]
    pub fn find(&self, place: &FaultPlace<'_>) -> Option<PlaceInPart> {
        let at = place.instruction;
        let within = |section: &&Section| {
            section.starts.first().is_some_and(|&first| first <= at)
                && section.starts.last().is_some_and(|&end| at < end)
        };
        let section = self.sections.iter().find(within)?;
        let instruction = section.starts.partition_point(|&start| start <= at) - 1;
        let mut block = place.block;
        let part = match &section.part {
            PartOf::One(part) => *part,
            PartOf::Counted { first, count } => first + *place.registers.get(count.index())? as u32 as usize,
            PartOf::Launches { first, start, grids } => {
                let mut left = u64::from(block[0].checked_sub(*start)?);
                let launch = grids.iter().position(|grid| {
                    let blocks = volume(*grid);
                    let is_here = left < blocks;
                    left -= if is_here { 0 } else { blocks };
                    is_here
                })?;
                block = coordinates(left, grids[launch]);
                first + launch
            }
        };
        let mut thread = place.thread;
        if let Shape::Slots { slots, threads, grid, block: shape } = section.shape {
            let number = u64::from(thread[0]);
            let slot = u64::from(block[0]) * u64::from(slots) + number / threads;
            block = coordinates(slot, grid);
            thread = coordinates(number % threads, shape);
        }
        let (module, entry) = section.kernel.get()?;
        Some(PlaceInPart { part, module, entry, block, thread, instruction })
    }
}

fn volume(extents: [u32; 3]) -> u64 {
    extents.iter().map(|&extent| u64::from(extent)).product()
}

/// Returns the coordinates of a number in a box with these extents.
fn coordinates(number: u64, [width, height, _]: [u32; 3]) -> [u32; 3] {
    let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    [number % width, number / width % height, number / width / height].map(|n| n as u32)
}
