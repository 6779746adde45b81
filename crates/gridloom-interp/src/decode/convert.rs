//! Movement between registers, and between address spaces.

use super::Refusal;
use super::function::FunctionDecoder;
use crate::code::Meaning;
use crate::fault::Space;
use crate::lanes::Source;
use crate::memory;
use crate::numeric::convert::{self, PackType};
use gridloom_ptx::op::{self, ConvertOp};
use gridloom_ptx::{self as ptx, Operand, RegId, ScalarType};

impl FunctionDecoder<'_, '_> {
    pub(super) fn convert(&mut self, op: &ConvertOp) -> Result<(), Refusal> {
        match op {
            ConvertOp::Cvt(cvt) => self.cvt(cvt)?,
            ConvertOp::CvtPack { dst_ty, ty: _, dst, a, b, c } => {
                let to = match dst_ty {
                    op::PackType::U2 => PackType::U2,
                    op::PackType::S2 => PackType::S2,
                    op::PackType::U4 => PackType::U4,
                    op::PackType::S4 => PackType::S4,
                    op::PackType::U8 => PackType::U8,
                    op::PackType::S8 => PackType::S8,
                    op::PackType::U16 => PackType::U16,
                    op::PackType::S16 => PackType::S16,
                };
                let [a, b] = self.sources([a, b], ScalarType::S32)?;
                let c = match c {
                    Some(c) => self.source(c, ScalarType::B32)?,
                    None => self.constant(0),
                };
                let d = self.slot(*dst);
                self.map([d], [a, b, c], move |[a, b, c]| {
                    [convert::pack_sat(to, a as i32, b as i32, c as u32).into()]
                });
            }
            ConvertOp::Cvta { to, space, ty, dst, src } => {
                let (d, s, space) = (self.slot(*dst), self.source(src, *ty)?, self.space(*space));
                if *to {
                    self.map([d], [s], move |[a]| [memory::from_generic(space, a)]);
                } else {
                    self.map([d], [s], move |[a]| [memory::to_generic(space, a)]);
                }
            }
            ConvertOp::Isspacep { space, dst, src } => {
                let (d, s) = (self.slot(*dst), self.source(src, ScalarType::U64)?);
                let program = self.decoder.program;
                let constants: Vec<_> = (program.layout.variables().iter().zip(&program.addresses))
                    .filter(|(variable, _)| variable.constant)
                    .map(|(variable, &start)| start..start + variable.size)
                    .collect();
                let wanted = match space {
                    ptx::Space::Param | ptx::Space::ParamEntry => Space::Param,
                    space => self.space(*space),
                };
                self.map([d], [s], move |[a]| {
                    let space = match memory::split_generic(a).0 {
                        Space::Global if constants.iter().any(|range| range.contains(&a)) => Space::Const,
                        space => space,
                    };
                    [(space == wanted).into()]
                });
            }
            ConvertOp::Mapa { .. } => return Err(Refusal::because("clusters of blocks are not supported")),
            ConvertOp::Getctarank { dst, .. } => {
                // Each block is a cluster of its own, in which it has rank 0.
                let (d, zero) = (self.slot(*dst), self.constant(0));
                self.map_as(Meaning::Copy, [d], [zero], |[a]| [a]);
            }
            ConvertOp::Mov { ty, dst, src } if ty.bits() > 64 => {
                let (d, s) = (self.wide_slots(Some(*dst)), self.wide_sources(src)?);
                self.map_as(Meaning::Other, d, s, |halves| halves);
            }
            ConvertOp::Mov { ty, dst, src } => self.copy(self.slot(*dst), src, *ty)?,
            ConvertOp::MovVector { ty, dsts, srcs } => self.move_vector(*ty, dsts, srcs)?,
            ConvertOp::Pack { ty, dst, srcs } => self.pack(*ty, *dst, srcs)?,
            ConvertOp::Unpack { ty, dsts, src } => self.unpack(*ty, dsts, src)?,
        }
        Ok(())
    }

    /// Moves the elements of a vector. All are read before any is written, because sources and
    /// destinations may overlap.
    fn move_vector(
        &mut self,
        ty: ScalarType,
        dsts: &[Option<RegId>],
        srcs: &[Operand],
    ) -> Result<(), Refusal> {
        let mut words = Vec::with_capacity(srcs.len());
        for src in srcs {
            let word = self.temporary(ty);
            self.copy(word, src, ty)?;
            words.push(word);
        }
        for (dst, word) in dsts.iter().zip(words) {
            if let Some(dst) = dst {
                let d = self.slot(*dst);
                self.map([d], [Source::Slot(word)], |[a]| [a]);
            }
        }
        Ok(())
    }

    fn pack(&mut self, ty: ScalarType, dst: RegId, srcs: &[Operand]) -> Result<(), Refusal> {
        let bits = element_bits(ty, srcs.len())?;
        let element = bits_type(bits)?;
        let (destinations, per_word) = if ty.bits() > 64 {
            (self.wide_slots(Some(dst)).to_vec(), srcs.len() / 2)
        } else {
            (vec![self.slot(dst)], srcs.len())
        };
        for (destination, elements) in destinations.into_iter().zip(srcs.chunks(per_word.max(1))) {
            match elements {
                [only] => self.copy(destination, only, element)?,
                [low, high] => {
                    let s = self.sources([low, high], element)?;
                    self.map_as(Meaning::Pair { bits }, [destination], s, move |[low, high]| {
                        [low & ones(bits) | (high & ones(bits)) << bits]
                    });
                }
                elements => {
                    // The destination may also be an element, so it is written last.
                    let word = self.temporary(ScalarType::B64);
                    let zero = self.constant(0);
                    self.map_as(Meaning::Copy, [word], [zero], |[a]| [a]);
                    for (i, operand) in (0..).zip(elements) {
                        let s = [Source::Slot(word), self.source(operand, element)?];
                        self.map_as(Meaning::Other, [word], s, move |[word, a]| {
                            [word | (a & ones(bits)) << (i * bits)]
                        });
                    }
                    self.map_as(Meaning::Copy, [destination], [Source::Slot(word)], |[a]| [a]);
                }
            }
        }
        Ok(())
    }

    fn unpack(&mut self, ty: ScalarType, dsts: &[Option<RegId>], src: &Operand) -> Result<(), Refusal> {
        let bits = element_bits(ty, dsts.len())?;
        let (sources, per_word) = if ty.bits() > 64 {
            (self.wide_sources(src)?.to_vec(), dsts.len() / 2)
        } else {
            (vec![self.source(src, ty)?], dsts.len())
        };
        for (source, elements) in sources.into_iter().zip(dsts.chunks(per_word.max(1))) {
            for (i, dst) in (0..).zip(elements) {
                if let Some(dst) = dst {
                    let d = self.slot(*dst);
                    let meaning = Meaning::Field { start: i * bits, bits };
                    self.map_as(meaning, [d], [source], move |[a]| [a >> (i * bits) & ones(bits)]);
                }
            }
        }
        Ok(())
    }
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn element_bits(ty: ScalarType, count: usize) -> Result<u32, Refusal> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if count == 0 || !ty.bits().is_multiple_of(count) || ty.bits() / count > 64 || ty.bits() / count < 8 {
        return Err(Refusal::because(format!("a .{ty} of {count} elements")));
    }
    Ok(ty.bits() / count)
}

fn bits_type(bits: u32) -> Result<ScalarType, Refusal> {
    match bits {
        8 => Ok(ScalarType::B8),
        16 => Ok(ScalarType::B16),
        32 => Ok(ScalarType::B32),
        64 => Ok(ScalarType::B64),
        _ => Err(Refusal::because(format!("elements of {bits} bits"))),
    }
}
