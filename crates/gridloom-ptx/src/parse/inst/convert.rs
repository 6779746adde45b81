//! Conversion and data movement between registers.

use super::Mods;
use crate::lexer::Kind;
use crate::model::op::{ConvertOp, Cvt, CvtRounding, Op, PackType};
use crate::model::{ScalarType, Space, Srcs};
use crate::parse::{Parse, Parser, Stop};

impl<'a> Parser<'a> {
    pub(super) fn convert(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let mnemonic = m.mnemonic;
        let op = match mnemonic {
            "cvt" if m.flag("pack") => {
                m.flag("sat");
                let dst_ty: PackType = self.need(m, "a type to pack such as .u8")?;
                let ty = self.need_type(m)?;
                let with_c = m.flag("b32");
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ScalarType::B32)?;
                let mut c = None;
                if with_c {
                    self.comma()?;
                    c = Some(self.src()?);
                }
                ConvertOp::CvtPack { dst_ty, ty, dst, a, b, c }
            }
            "cvt" => return self.cvt(m),
            "cvta" => {
                let to = m.flag("to");
                let space: Space = self.need(m, "a state space such as .global")?;
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, src) = self.unary(ty)?;
                ConvertOp::Cvta { to, space, ty, dst, src }
            }
            "isspacep" => {
                let space: Space = self.need(m, "a state space such as .global")?;
                m.finish()?;
                let (dst, src) = self.unary(ScalarType::Pred)?;
                ConvertOp::Isspacep { space, dst, src }
            }
            "mapa" => {
                let space = m.space();
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, src, rank) = self.binary_operands(ty)?;
                ConvertOp::Mapa { space, ty, dst, src, rank }
            }
            "getctarank" => {
                let space = m.space();
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, src) = self.unary(ScalarType::U32)?;
                ConvertOp::Getctarank { space, ty, dst, src }
            }
            _ => return self.mov(m),
        };
        Ok(op.into())
    }

    fn cvt(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let rounding: Option<CvtRounding> = m.take();
        let (ftz, relu) = (m.flag("ftz"), m.flag("relu"));
        let (satfinite, sat) = (m.flag("satfinite"), m.flag("sat"));
        let scaled = m.flag("scaled::n2::ue8m0");
        let (dst_ty, src_ty) = (self.need_type(m)?, self.need_type(m)?);
        m.finish()?;
        let dst = self.dst(dst_ty)?;
        self.comma()?;
        let mut srcs = Srcs::new();
        if self.at_kind(Kind::LBrace) {
            srcs = self.srcs()?;
        } else {
            srcs.push(self.src()?);
            if src_ty == ScalarType::F32 && is_pair(dst_ty) {
                self.comma()?;
                srcs.push(self.src()?);
            }
        }
        let mut random = None;
        if rounding == Some(CvtRounding::Rs) {
            self.comma()?;
            random = Some(self.src()?);
        }
        let mut scale = None;
        if scaled {
            self.comma()?;
            scale = Some(self.src()?);
        }
        let cvt =
            Cvt { dst_ty, src_ty, rounding, ftz, sat, satfinite, relu, scaled, dst, srcs, random, scale };
        Ok(ConvertOp::Cvt(Box::new(cvt)).into())
    }

    fn mov(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let vector = m.vector();
        let ty = self.need_type(m)?;
        m.finish()?;
        let first = self.span();
        let dsts = self.dsts()?;
        if vector > 1 {
            self.vector_length(first, vector, dsts.len())?;
            self.comma()?;
            let at = self.span();
            let srcs = match self.whole_special() {
                Some(srcs) => srcs,
                None => self.srcs()?,
            };
            self.vector_length(at, vector, srcs.len())?;
            return Ok(ConvertOp::MovVector { ty, dsts, srcs }.into());
        }
        self.comma()?;
        if dsts.len() > 1 {
            if self.at_kind(Kind::LBrace) {
                let message = "`mov` from a vector to a vector says of how many elements: `mov.v2`";
                return Err(Stop::Unsupported(message.to_owned()));
            }
            let src = self.src()?;
            return Ok(ConvertOp::Unpack { ty, dsts, src }.into());
        }
        let dst = match dsts.first().copied().flatten() {
            Some(dst) => dst,
            None => self.scratch(ty, first)?,
        };
        let srcs = self.srcs()?;
        Ok(match srcs.as_slice() {
            [src] => ConvertOp::Mov { ty, dst, src: *src },
            _ => ConvertOp::Pack { ty, dst, srcs },
        }
        .into())
    }
}

/// Returns whether a type packs two values that are converted from one operand each.
pub(crate) fn is_pair(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, F16x2 | Bf16x2 | E4m3x2 | E5m2x2 | E2m3x2 | E3m2x2 | E2m1x2 | Ue8m0x2)
}
