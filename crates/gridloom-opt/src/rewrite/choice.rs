//! Choices: kernels of which at most one runs, as one kernel that tests a word in memory.

use gridloom_ptx::op::{Compare, Order};
use gridloom_ptx::{Dim, DimSpecial, Operand, ParamId, ScalarType, Space, VarRef};

use super::assembly::{Assembly, Conditions, at, int, special};
use super::batch::{BatchGroup, Placed, check, one_group};
use super::program::State;
use super::source::KernelSource;
use super::{Layout, Predicate, Rewritten, SLICE_ALIGN, name_of};

/// A kernel of a choice.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the word must be for the kernel to run.
    pub predicate: Predicate,
    /// The kernel.
    pub kernel: KernelSource,
    /// Its grid.
    pub grid: [u32; 3],
}

/// Combines kernels of which at most one runs into one, which has as many blocks as the largest.
/// All have blocks of `block` threads.
///
/// The word must not change while the kernel runs. Its address is the [`State`] of the result.
/// `limit` is the most bytes of parameters. Returns the reason if the kernels cannot be combined.
pub fn choice(cases: &[Case], block: [u32; 3], limit: u32) -> Result<Rewritten, String> {
    let mut layout = Layout::new(limit);
    let state = State { at: layout.place(8, 8)? as u32, words: 1 };
    let (mut placed, mut slices, mut most) = (Vec::new(), Vec::new(), 0);
    for case in cases {
        let group = BatchGroup { kernel: case.kernel.clone(), grids: vec![case.grid] };
        check(&group, block)?;
        let align = case.kernel.param_align().max(SLICE_ALIGN);
        let first = layout.place(case.kernel.param_bytes(), align)?;
        let blocks = case.grid.iter().try_fold(1u32, |volume, &extent| volume.checked_mul(extent));
        let end = blocks.filter(|&blocks| blocks <= i32::MAX as u32).ok_or("its blocks are too many")?;
        placed.push((group, Placed { start: 0, end, first, stride: 0, grid: Some(case.grid) }));
        slices.push(first as u32);
        most = most.max(end);
    }
    let u32s = ScalarType::U32;
    let mut asm = Assembly::new(Conditions::Device);
    let block_index = asm.mov(u32s, special(DimSpecial::CtaId, Dim::X));
    let base = asm.mov(ScalarType::U64, Operand::Address { base: VarRef::Param(ParamId(0)), offset: 0 });
    let address = asm.load_param(ScalarType::U64, state.at.into());
    let word = asm.load(Space::Global, Order::Weak, u32s, at(address, 0));
    for (index, (case, (group, place))) in cases.iter().zip(&placed).enumerate() {
        let next = asm.label();
        let (other, with) = match case.predicate {
            Predicate::NonZero => (Compare::Eq, 0),
            Predicate::Zero => (Compare::Ne, 0),
            Predicate::Equals(number) => (Compare::Ne, number),
        };
        let other = asm.compare(other, u32s, word.into(), int(with.into()));
        asm.branch_if(other, false, next);
        if place.end < most {
            let beyond = asm.compare(Compare::Ge, u32s, block_index.into(), int(place.end.into()));
            asm.branch_if(beyond, false, next);
        }
        one_group(&mut asm, group, place, base, (block_index, index))?;
        asm.ret();
        asm.place(next);
    }
    asm.ret();
    let header = vec![0; layout.at as usize];
    let name = name_of(cases.iter().map(|case| &case.kernel));
    let (module, sections) = asm.finish(&name, block, layout.at, layout.align)?;
    Ok(Rewritten { module, name, header, slices, block, blocks: most, state: Some(state), sections })
}
