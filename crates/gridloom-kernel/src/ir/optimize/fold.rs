//! Folds instructions with constant operands.

use crate::ir::Ty;
use crate::ir::ty::Class;

/// Returns how many bits an instruction computes with, and whether they are signed, by its suffix.
pub(super) fn integer_suffix(suffix: &str) -> Option<(u32, bool)> {
    Some(match suffix {
        "u32" | "b32" => (32, false),
        "s32" => (32, true),
        "u64" | "b64" => (64, false),
        "s64" => (64, true),
        _ => return None,
    })
}

/// Returns a value of so many bits, as the number that it stands for.
pub(super) fn number(bits: u64, width: u32, is_signed: bool) -> i128 {
    match (width, is_signed) {
        (32, false) => i128::from(bits as u32),
        (32, true) => i128::from(bits as i32),
        (_, false) => i128::from(bits),
        (_, true) => i128::from(bits as i64),
    }
}

/// Returns how a register of a type holds the lowest bits of a number.
pub(super) fn held(ty: Ty, value: i128) -> u64 {
    match (ty.class(), ty.is_signed()) {
        (Class::Pred, _) => u64::from(value != 0),
        (Class::B32, true) => i64::from(value as i32) as u64,
        (Class::B32, false) => u64::from(value as u32),
        _ => value as u64,
    }
}

/// Returns the result of an instruction on numbers, as the bits of a register of type `ty`.
pub(super) fn fold(op: &str, suffix: &str, ty: Ty, args: &[u64]) -> Option<u64> {
    if ty == Ty::Bool && suffix == "pred" {
        let flag = |index: usize| args[index] != 0;
        return Some(u64::from(match op {
            "and" => flag(0) & flag(1),
            "or" => flag(0) | flag(1),
            "xor" => flag(0) ^ flag(1),
            "not" => !flag(0),
            _ => return None,
        }));
    }
    if op == "cvt" {
        let value = match suffix {
            "u64.u32" => i128::from(args[0] as u32),
            "s64.s32" => i128::from(args[0] as i32),
            "u32.u64" => i128::from(args[0] as u32),
            "s32.s8" => i128::from(args[0] as i8),
            "s32.s16" => i128::from(args[0] as i16),
            _ => return None,
        };
        return Some(held(ty, value));
    }
    if op == "selp" {
        return Some(if args[2] != 0 { args[0] } else { args[1] });
    }
    if let ("f32" | "f64", true) = (suffix, ty.is_float()) {
        return fold_float(op, suffix, args);
    }
    let (width, is_signed) = integer_suffix(suffix)?;
    if let Some(order) = op.strip_prefix("setp.") {
        let (a, b) = (number(args[0], width, is_signed), number(args[1], width, is_signed));
        return Some(u64::from(match order {
            "eq" => a == b,
            "ne" => a != b,
            "lt" => a < b,
            "le" => a <= b,
            "gt" => a > b,
            "ge" => a >= b,
            _ => return None,
        }));
    }
    if !ty.is_integer() {
        return None;
    }
    if let "clz" | "popc" = op {
        let bits = if width == 32 { u64::from(args[0] as u32) } else { args[0] };
        return Some(u64::from(match op {
            "clz" => bits.leading_zeros() - (64 - width),
            _ => bits.count_ones(),
        }));
    }
    let n = |index: usize| number(args[index], width, is_signed);
    let value = match op {
        "add" => n(0) + n(1),
        "sub" => n(0) - n(1),
        "mul.lo" => n(0).wrapping_mul(n(1)),
        "mul.hi" => n(0).wrapping_mul(n(1)) >> width,
        "mad.lo" => n(0).wrapping_mul(n(1)).wrapping_add(n(2)),
        "mul.wide" if width == 32 => n(0) * n(1),
        "mad.wide" if width == 32 => n(0) * n(1) + number(args[2], 64, is_signed),
        "and" => n(0) & n(1),
        "or" => n(0) | n(1),
        "xor" => n(0) ^ n(1),
        "not" => !n(0),
        "neg" => -n(0),
        "min" => n(0).min(n(1)),
        "max" => n(0).max(n(1)),
        "shl" => match args[1] as u32 {
            count if count >= width => 0,
            count => n(0) << count,
        },
        "shr" => n(0) >> (args[1] as u32).min(if is_signed { width - 1 } else { 127 }),
        "div" if n(1) != 0 && !(is_signed && n(1) == -1) => n(0) / n(1),
        "rem" if n(1) != 0 && !(is_signed && n(1) == -1) => n(0) % n(1),
        _ => return None,
    };
    Some(held(ty, value))
}

/// Returns the result of an instruction that rounds as Rust does. A NaN is left to the device, which
/// has its own.
fn fold_float(op: &str, suffix: &str, args: &[u64]) -> Option<u64> {
    macro_rules! of {
        ($t:ty, $n:expr) => {{
            let n = $n;
            let value: $t = match op {
                "add.rn" => n(0) + n(1),
                "sub.rn" => n(0) - n(1),
                "mul.rn" => n(0) * n(1),
                "div.rn" => n(0) / n(1),
                "rcp.rn" => 1.0 / n(0),
                "sqrt.rn" => n(0).sqrt(),
                _ => return None,
            };
            (!value.is_nan()).then(|| value.to_bits().into())
        }};
    }
    match suffix {
        "f32" => of!(f32, |index: usize| f32::from_bits(args[index] as u32)),
        _ => of!(f64, |index: usize| f64::from_bits(args[index])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_wrap_around_in_their_register() {
        assert_eq!(fold("add", "u32", Ty::U32, &[0xffff_ffff, 2]), Some(1));
        assert_eq!(fold("sub", "u64", Ty::U64, &[0, 1]), Some(u64::MAX));
        assert_eq!(fold("mul.lo", "s32", Ty::I32, &[1 << 30, 4]), Some(0));
        assert_eq!(fold("add", "s32", Ty::I32, &[i32::MAX as u64, 1]), Some(i64::from(i32::MIN) as u64));
        assert_eq!(fold("mul.hi", "u64", Ty::U64, &[1 << 63, 6]), Some(3));
        assert_eq!(fold("shl", "b32", Ty::U32, &[1, 32]), Some(0));
        assert_eq!(fold("shr", "s32", Ty::I32, &[-8i64 as u64, 40]), Some(u64::MAX));
        assert_eq!(fold("mad.wide", "u32", Ty::U64, &[0xffff_ffff, 4, 8]), Some(0x4_0000_0004));
    }

    #[test]
    fn comparisons_are_of_the_type_that_they_name() {
        assert_eq!(fold("setp.lt", "s32", Ty::Bool, &[u64::MAX, 0]), Some(1));
        assert_eq!(fold("setp.lt", "u32", Ty::Bool, &[u64::MAX, 0]), Some(0));
        assert_eq!(fold("setp.lt", "f32", Ty::Bool, &[0, 1]), None);
    }

    #[test]
    fn floats_round_as_in_rust_and_nan_is_left() {
        let bits = |value: f32| u64::from(value.to_bits());
        assert_eq!(fold("mul.rn", "f32", Ty::F32, &[bits(0.1), bits(0.3)]), Some(bits(0.1 * 0.3)));
        assert_eq!(fold("rcp.rn", "f32", Ty::F32, &[bits(8_388_608.0)]), Some(bits(1.192_092_9e-7)));
        assert_eq!(fold("div.rn", "f32", Ty::F32, &[bits(1.0), bits(-0.0)]), Some(bits(f32::NEG_INFINITY)));
        assert_eq!(fold("sub.rn", "f32", Ty::F32, &[bits(f32::INFINITY), bits(f32::INFINITY)]), None);
        assert_eq!(fold("add.rn", "f64", Ty::F64, &[1, 1]), Some(2));
    }

    #[test]
    fn a_division_without_result_is_left() {
        assert_eq!(fold("div", "u32", Ty::U32, &[1, 0]), None);
        assert_eq!(fold("rem", "s32", Ty::I32, &[-5i64 as u64, 3]), Some(-2i64 as u64));
    }
}
