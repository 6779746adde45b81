//! The exact remainder of a floating-point division.

use gridloom_macros::device;

/// `a % b` of double precision.
#[device]
pub fn rem_f64(a: f64, b: f64) -> f64 {
    let (sign, a_bits) = (a.to_bits() & (1 << 63), a.to_bits() & !(1 << 63));
    let b_bits = b.to_bits() & !(1 << 63);
    if a_bits >= f64::INFINITY.to_bits() || b_bits > f64::INFINITY.to_bits() || b_bits == 0 {
        f64::NAN
    } else if a_bits < b_bits {
        a
    } else {
        // Whole numbers times powers of two.
        let mut a_exponent = (a_bits >> 52) as i32;
        let mut m = a_bits & 0x000f_ffff_ffff_ffff;
        if a_exponent == 0 {
            a_exponent = 1
        } else {
            m |= 1 << 52
        }
        let mut exponent = (b_bits >> 52) as i32;
        let mut n = b_bits & 0x000f_ffff_ffff_ffff;
        if exponent == 0 {
            exponent = 1
        } else {
            n |= 1 << 52
        }
        // As far at a time as a word has room for.
        let mut left = a_exponent.wrapping_sub(exponent);
        m %= n | (n == 0) as u64;
        while left > 0 && m != 0 {
            let step = left.min(11);
            m = m.wrapping_shl(step as u32) % (n | (n == 0) as u64);
            left = left.wrapping_sub(step);
        }
        // Back into a mantissa of 53 bits, or a subnormal number.
        let up = (m.leading_zeros() as i32).wrapping_sub(11).min(exponent.wrapping_sub(1)).max(0);
        let m = m.wrapping_shl(up as u32);
        let exponent = exponent.wrapping_sub(up);
        let bits =
            if m >= 1 << 52 { m.wrapping_sub(1 << 52) | ((exponent as u64).wrapping_shl(52)) } else { m };
        f64::from_bits(bits | sign)
    }
}

/// `a % b` of single precision: each number is one of double precision, and so is the remainder.
#[device]
pub fn rem_f32(a: f32, b: f32) -> f32 {
    let (a_bits, b_bits) = (a.to_bits() & 0x7fff_ffff, b.to_bits() & 0x7fff_ffff);
    let sign = a.to_bits() & 0x8000_0000;
    if a_bits >= 0x7f80_0000 || b_bits > 0x7f80_0000 || b_bits == 0 {
        f32::NAN
    } else if a_bits < b_bits {
        a
    } else {
        let mut a_exponent = (a_bits >> 23) as i32;
        let mut m = (a_bits & 0x007f_ffff) as u64;
        if a_exponent == 0 {
            a_exponent = 1
        } else {
            m |= 1 << 23
        }
        let mut exponent = (b_bits >> 23) as i32;
        let mut n = (b_bits & 0x007f_ffff) as u64;
        if exponent == 0 {
            exponent = 1
        } else {
            n |= 1 << 23
        }
        let mut left = a_exponent.wrapping_sub(exponent);
        m %= n | (n == 0) as u64;
        while left > 0 && m != 0 {
            let step = left.min(40);
            m = m.wrapping_shl(step as u32) % (n | (n == 0) as u64);
            left = left.wrapping_sub(step);
        }
        let m = m as u32;
        let up = (m.leading_zeros() as i32).wrapping_sub(8).min(exponent.wrapping_sub(1)).max(0);
        let m = m.wrapping_shl(up as u32);
        let exponent = exponent.wrapping_sub(up);
        let bits =
            if m >= 1 << 23 { m.wrapping_sub(1 << 23) | (exponent as u32).wrapping_shl(23) } else { m };
        f32::from_bits(bits | sign)
    }
}
