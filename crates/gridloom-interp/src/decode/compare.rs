//! Comparison and selection.

use super::Refusal;
use super::float::with_float;
use super::function::FunctionDecoder;
use super::integer::with_integer;
use crate::lanes::Source;
use crate::numeric::compare::{self, Comparison};
use crate::numeric::format::Word;
use crate::numeric::integer::Integer;
use crate::numeric::{self, Bf16, F16, F32, Float};
use gridloom_ptx::op::{BoolOp, Combine, Compare, CompareOp};
use gridloom_ptx::{Operand, ScalarType};

/// Compares in one lane. Returns the results for the low and the high element; both are the same if
/// the type is not packed.
type Compared = Box<dyn Fn(u64, u64) -> (bool, bool) + Send + Sync>;

/// Returns the comparison, and whether it reads integers as unsigned regardless of their type.
fn comparison(compare: Compare) -> (Comparison, bool) {
    match compare {
        Compare::Eq => (Comparison::Eq, false),
        Compare::Ne => (Comparison::Ne, false),
        Compare::Lt => (Comparison::Lt, false),
        Compare::Le => (Comparison::Le, false),
        Compare::Gt => (Comparison::Gt, false),
        Compare::Ge => (Comparison::Ge, false),
        Compare::Lo => (Comparison::Lt, true),
        Compare::Ls => (Comparison::Le, true),
        Compare::Hi => (Comparison::Gt, true),
        Compare::Hs => (Comparison::Ge, true),
        Compare::Equ => (Comparison::Equ, false),
        Compare::Neu => (Comparison::Neu, false),
        Compare::Ltu => (Comparison::Ltu, false),
        Compare::Leu => (Comparison::Leu, false),
        Compare::Gtu => (Comparison::Gtu, false),
        Compare::Geu => (Comparison::Geu, false),
        Compare::Num => (Comparison::Num, false),
        Compare::Nan => (Comparison::Nan, false),
    }
}

/// Returns the comparison of values of a type.
fn comparer(cmp: Compare, ty: ScalarType, ftz: bool) -> Result<Compared, Refusal> {
    fn halves<F: Float<Bits = u16>>(cmp: Comparison, ftz: bool) -> Compared {
        Box::new(move |a, b| {
            let at = |shift: u32| compare::compare::<F>(cmp, (a >> shift) as u16, (b >> shift) as u16, ftz);
            (at(0), at(16))
        })
    }
    let (cmp, unsigned) = comparison(cmp);
    match ty {
        ScalarType::F16x2 => return Ok(halves::<F16>(cmp, ftz)),
        ScalarType::Bf16x2 => return Ok(halves::<Bf16>(cmp, ftz)),
        _ => {}
    }
    if ty.is_float() {
        with_float!(ty, F => Ok(Box::new(move |a, b| {
            let (a, b) = (<F as Float>::Bits::truncate(a), <F as Float>::Bits::truncate(b));
            let result = compare::compare::<F>(cmp, a, b, ftz);
            (result, result)
        })))
    } else {
        let ty = if unsigned { unsigned_type(ty) } else { ty };
        with_integer!(ty, T => Ok(Box::new(move |a, b| {
            let result = compare::compare_integer(cmp, T::from_bits(a), T::from_bits(b));
            (result, result)
        })))
    }
}

fn combine(op: Option<BoolOp>, result: bool, with: u64) -> bool {
    match op {
        None => result,
        Some(BoolOp::And) => result & (with != 0),
        Some(BoolOp::Or) => result | (with != 0),
        Some(BoolOp::Xor) => result ^ (with != 0),
    }
}

impl FunctionDecoder<'_, '_> {
    /// Returns the operands of a comparison, with the predicate it is combined with.
    fn compared(
        &mut self,
        ty: ScalarType,
        a: &Operand,
        b: &Operand,
        with: Option<&Combine>,
    ) -> Result<([Source; 3], Option<BoolOp>), Refusal> {
        let [a, b] = self.sources([a, b], ty)?;
        let c = match with {
            Some(combine) => self.predicate(&combine.pred),
            None => self.constant(0),
        };
        Ok(([a, b, c], with.map(|combine| combine.op)))
    }

    pub(super) fn compare(&mut self, op: &CompareOp) -> Result<(), Refusal> {
        match op {
            CompareOp::Setp { cmp, combine: with, ftz, ty, p, q, a, b } => {
                let (s, with) = self.compared(*ty, a, b, with.as_ref())?;
                let (p, q) = (self.slot_or_sink(*p), q.map(|q| self.slot(q)));
                let packed = ty.packed().is_some();
                // The common comparisons of loops, without an indirect call.
                if q.is_none() && with.is_none() && !packed && !ty.is_float() {
                    let (cmp, unsigned) = comparison(*cmp);
                    let ty = if unsigned { unsigned_type(*ty) } else { *ty };
                    with_integer!(ty, T => self.map([p], [s[0], s[1]], move |[a, b]| {
                        [compare::compare_integer(cmp, T::from_bits(a), T::from_bits(b)).into()]
                    }));
                    return Ok(());
                }
                let compare = comparer(*cmp, *ty, *ftz)?;
                let q = q.unwrap_or(self.slot_or_sink(None));
                self.map([p, q], s, move |[a, b, c]| {
                    let (low, high) = compare(a, b);
                    let second = if packed { high } else { !low };
                    [combine(with, low, c).into(), combine(with, second, c).into()]
                });
            }
            CompareOp::Set { cmp, combine: with, ftz, dst_ty, ty, dst, a, b } => {
                let (s, with) = self.compared(*ty, a, b, with.as_ref())?;
                let (d, compare) = (self.slot(*dst), comparer(*cmp, *ty, *ftz)?);
                let (low_one, high_one): (u64, u64) = match dst_ty {
                    ScalarType::F32 => (F32::ONE, 0),
                    ScalarType::F16 => (F16::ONE, 0),
                    ScalarType::Bf16 => (Bf16::ONE, 0),
                    ScalarType::F16x2 => (F16::ONE, F16::ONE << 16),
                    ScalarType::Bf16x2 => (Bf16::ONE, Bf16::ONE << 16),
                    ScalarType::U16x2 | ScalarType::S16x2 => (0xffff, 0xffff_0000),
                    // A mask of the whole register.
                    _ if ty.packed().is_some() => (0xffff, 0xffff_0000),
                    _ if dst_ty.bits() == 16 => (0xffff, 0),
                    _ => (0xffff_ffff, 0),
                };
                self.map([d], s, move |[a, b, c]| {
                    let (low, high) = compare(a, b);
                    let low = if combine(with, low, c) { low_one } else { 0 };
                    [low | if combine(with, high, c) { high_one } else { 0 }]
                });
            }
            CompareOp::Selp { ty, dst, a, b, cond } => {
                if ty.bits() > 64 {
                    return Err(Refusal::because(format!("selp on .{ty}")));
                }
                let [a, b] = self.sources([a, b], *ty)?;
                let (d, p) = (self.slot(*dst), self.predicate(cond));
                self.map([d], [a, b, p], |[a, b, p]| [if p != 0 { a } else { b }]);
            }
            CompareOp::Slct { ty, cond_ty, ftz, dst, a, b, c } => {
                let [a, b] = self.sources([a, b], *ty)?;
                let (d, s) = (self.slot(*dst), [a, b, self.source(c, *cond_ty)?]);
                if *cond_ty == ScalarType::F32 {
                    let ftz = *ftz;
                    self.map([d], s, move |[a, b, c]| {
                        [if compare::compare::<F32>(Comparison::Ge, c as u32, 0, ftz) { a } else { b }]
                    });
                } else {
                    self.map([d], s, |[a, b, c]| [if (c as i32) >= 0 { a } else { b }]);
                }
            }
        }
        Ok(())
    }
}

fn unsigned_type(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::S16 => ScalarType::U16,
        ScalarType::S32 => ScalarType::U32,
        ScalarType::S64 => ScalarType::U64,
        ty => ty,
    }
}
