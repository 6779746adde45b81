//! Batches: independent kernels as parts of one grid.

use gridloom_ptx::op::{Compare, IntArith, Order};
use gridloom_ptx::{Dim, DimSpecial, Operand, ParamId, RegId, ScalarType, Space, VarRef};

use super::assembly::{AfterReturn, Assembly, BlockIndex, Conditions, Inlining, ParamsAt, at, int, special};
use super::origins::{PartOf, Shape};
use super::source::{KernelSource, Role};
use super::{Layout, Rewritten, SLICE_ALIGN, name_of, put};

/// The launches of one kernel in a batch.
#[derive(Clone, Debug)]
pub struct BatchGroup {
    /// The kernel.
    pub kernel: KernelSource,
    /// The grid of each of its launches.
    pub grids: Vec<[u32; 3]>,
}

/// The place of a group's blocks and parameters.
pub(super) struct Placed {
    /// The first block.
    pub(super) start: u32,
    /// The block after the last.
    pub(super) end: u32,
    /// The offset of the first launch's entry.
    pub(super) first: u64,
    /// The distance of two entries in bytes.
    pub(super) stride: u64,
    /// The grid of all launches, if it is the same.
    pub(super) grid: Option<[u32; 3]>,
}

/// The bytes before the parameters of a launch, if the grids of a group differ: its first block and
/// its extents.
const SHAPE_BYTES: u64 = 16;

/// Combines launches into one kernel whose blocks are those of all launches, in order. All have
/// blocks of `block` threads.
///
/// `limit` is the most bytes of parameters. Returns the reason if the launches cannot be combined.
pub fn batch(groups: &[BatchGroup], block: [u32; 3], limit: u32) -> Result<Rewritten, String> {
    let mut layout = Layout::new(limit);
    let (mut placed, mut slices, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    let mut start = 0u32;
    for group in groups {
        check(group, block)?;
        let align = group.kernel.param_align().max(SLICE_ALIGN);
        let same = group.grids.iter().all(|grid| *grid == group.grids[0]);
        let before = if same { 0 } else { SHAPE_BYTES.next_multiple_of(align) };
        let mut place = Placed { start, end: start, first: 0, stride: 0, grid: same.then(|| group.grids[0]) };
        let mut blocks = 0u32;
        for (index, grid) in group.grids.iter().enumerate() {
            let entry = layout.place(before + group.kernel.param_bytes(), align)?;
            match index {
                0 => place.first = entry,
                1 => place.stride = entry - place.first,
                _ => {}
            }
            if !same {
                shapes.push((entry, [blocks, grid[0], grid[1], grid[2]]));
            }
            slices.push((entry + before) as u32);
            let volume = grid.iter().try_fold(1u32, |volume, &extent| volume.checked_mul(extent));
            blocks =
                volume.and_then(|volume| blocks.checked_add(volume)).ok_or("their blocks are too many")?;
        }
        start = start
            .checked_add(blocks)
            .filter(|&end| end <= i32::MAX as u32)
            .ok_or("their blocks are too many")?;
        place.end = start;
        placed.push(place);
    }
    let mut header = vec![0; layout.at.max(1) as usize];
    for (entry, words) in shapes {
        for (index, word) in words.into_iter().enumerate() {
            put(&mut header, entry + 4 * index as u64, &word.to_le_bytes());
        }
    }
    let mut asm = Assembly::new(Conditions::Device);
    let block_index = asm.mov(ScalarType::U32, special(DimSpecial::CtaId, Dim::X));
    let base = asm.mov(ScalarType::U64, Operand::Address { base: VarRef::Param(ParamId(0)), offset: 0 });
    let mut first_part = 0;
    for (index, (group, place)) in groups.iter().zip(&placed).enumerate() {
        let next = asm.label();
        if index + 1 < groups.len() {
            let beyond = asm.compare(Compare::Ge, ScalarType::U32, block_index.into(), int(place.end.into()));
            asm.branch_if(beyond, false, next);
        }
        let local = match place.start {
            0 => block_index,
            start => asm.arith(IntArith::Sub, ScalarType::U32, block_index.into(), int(start.into())),
        };
        one_group(&mut asm, group, place, base, (local, first_part))?;
        first_part += group.grids.len();
        asm.ret();
        asm.place(next);
    }
    asm.ret();
    let name = name_of(groups.iter().map(|group| &group.kernel));
    let (module, sections) = asm.finish(&name, block, layout.at, layout.align)?;
    Ok(Rewritten { module, name, header, slices, block, blocks: start, state: None, sections })
}

pub(super) fn check(group: &BatchGroup, block: [u32; 3]) -> Result<(), String> {
    let kernel = &group.kernel;
    let because = |reason: &str| Err(format!("{}: {reason}", kernel.name()));
    if let Some(reason) = kernel.obstacle(Role::Batched) {
        return because(reason);
    }
    if group.grids.is_empty() {
        return because("it is launched by nobody");
    }
    let threads = |block: [u32; 3]| block.iter().map(|&extent| u64::from(extent)).product::<u64>();
    let directives = &kernel.function().directives;
    if directives.reqntid.is_some_and(|required| required != block) {
        return because("it requires another block (.reqntid)");
    }
    if directives.maxntid.is_some_and(|max| threads(max) < threads(block)) {
        return because("it allows fewer threads (.maxntid)");
    }
    Ok(())
}

/// Emits the code for the blocks of a group, which `local` numbers from 0. `first` is the number of
/// its first launch among those of all groups.
pub(super) fn one_group(
    asm: &mut Assembly,
    group: &BatchGroup,
    place: &Placed,
    base: RegId,
    (local, first): (RegId, usize),
) -> Result<(), String> {
    let u32s = ScalarType::U32;
    let (params, within, extents) = match place.grid {
        Some(grid) => {
            let volume: u32 = grid.iter().product();
            let single = group.grids.len() == 1;
            let (launch, within) = match (single, volume) {
                (true, _) => (None, Some(local)),
                (false, 1) => (Some(local), None),
                (false, volume) => {
                    let launch = asm.arith(IntArith::Div, u32s, local.into(), int(volume.into()));
                    let within = asm.arith(IntArith::Rem, u32s, local.into(), int(volume.into()));
                    (Some(launch), Some(within))
                }
            };
            let params = match launch {
                None => ParamsAt::Offset(place.first),
                Some(launch) => {
                    let first =
                        asm.arith(IntArith::Add, ScalarType::U64, base.into(), int(place.first as i64));
                    ParamsAt::Register(asm.mul_add_wide(launch.into(), place.stride, first))
                }
            };
            let within = within.filter(|_| volume != 1);
            (params, within, grid.map(|extent| asm.mov(u32s, int(extent.into()))))
        }
        None => {
            let entry = search(asm, group, place, local, base);
            let mut word = |offset| asm.load(Space::Param, Order::Weak, u32s, at(entry, offset));
            let (first, extents) = (word(0), [word(4), word(8), word(12)]);
            let within = asm.arith(IntArith::Sub, u32s, local.into(), first.into());
            let before = SHAPE_BYTES.next_multiple_of(group.kernel.param_align().max(SLICE_ALIGN));
            let params = asm.arith(IntArith::Add, ScalarType::U64, entry.into(), int(before as i64));
            (ParamsAt::Register(params), Some(within), extents)
        }
    };
    let index = match within {
        None => [(); 3].map(|()| asm.mov(u32s, int(0))),
        Some(within) => {
            let x = asm.arith(IntArith::Rem, u32s, within.into(), extents[0].into());
            let row = asm.arith(IntArith::Div, u32s, within.into(), extents[0].into());
            let y = asm.arith(IntArith::Rem, u32s, row.into(), extents[1].into());
            let z = asm.arith(IntArith::Div, u32s, row.into(), extents[1].into());
            [x, y, z]
        }
    };
    let how = Inlining {
        params,
        index: BlockIndex::Registers { index, count: extents },
        after: AfterReturn::Ends,
        block: None,
        thread: None,
        coherent: false,
    };
    let starts = asm.inline(&group.kernel, how)?;
    let part = PartOf::Launches { first, start: place.start, grids: group.grids.clone() };
    asm.sections.add(&group.kernel, starts, part, Shape::Same);
    Ok(())
}

/// Returns the address of the entry of the launch that a block belongs to: the last one whose first
/// block is not after it.
fn search(asm: &mut Assembly, group: &BatchGroup, place: &Placed, local: RegId, base: RegId) -> RegId {
    let u32s = ScalarType::U32;
    let first = asm.arith(IntArith::Add, ScalarType::U64, base.into(), int(place.first as i64));
    let low = asm.mov(u32s, int(0));
    let high = asm.mov(u32s, int(group.grids.len() as i64));
    let (again, lower, done) = (asm.label(), asm.label(), asm.label());
    asm.place(again);
    let width = asm.arith(IntArith::Sub, u32s, high.into(), low.into());
    let found = asm.compare(Compare::Le, u32s, width.into(), int(1));
    asm.branch_if(found, false, done);
    let half = asm.shr(width.into(), 1);
    let middle = asm.arith(IntArith::Add, u32s, low.into(), half.into());
    let entry = asm.mul_add_wide(middle.into(), place.stride, first);
    let start = asm.load(Space::Param, Order::Weak, u32s, at(entry, 0));
    let before = asm.compare(Compare::Lt, u32s, local.into(), start.into());
    asm.branch_if(before, false, lower);
    asm.set(u32s, low, middle.into());
    asm.branch(again);
    asm.place(lower);
    asm.set(u32s, high, middle.into());
    asm.branch(again);
    asm.place(done);
    asm.mul_add_wide(low.into(), place.stride, first)
}
