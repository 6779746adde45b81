//! Made by `scripts/random-kernels`, from seed 0. Not to be edited.



use gridloom::{Out, device, kernel};



use super::same;



#[device]
fn mixed_f32(x: f32) -> u64 {
    if x.is_nan() { 12_345 } else { x.to_bits() as u64 }
}

#[device]
fn mixed_f64(x: f64) -> u64 {
    if x.is_nan() { 54_321 } else { x.to_bits() }
}

#[device]
fn helper_a(a: i32, b: f32) -> (i32, f32) {
    if a % 3 == 0 {
        return (a.wrapping_mul(7), b + 1.0);
    }
    (a ^ 0x55, b * 0.25)
}

#[device]
fn helper_b(a: i32, b: f32) -> (i32, f32) {
    let (mut c, mut n) = (a, 0);
    while c > 1 && n < 9 {
        c = if c % 2 == 0 { c / 2 } else { c.wrapping_mul(3).wrapping_add(1) };
        n += 1;
    }
    (n, b - c as f32)
}

#[kernel]
fn program_0(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        if (1e-3f64.trunc() <= 3.0f64.mul_add(1000.0f64, (-1.25f64))) {
            let mut v1: [u32; 4] = [y.wrapping_mul(y), y.checked_div(y).unwrap_or(y), (!y), u32::MIN.wrapping_mul(u32::MIN)];
            v1[(y.max(y) % 4) as usize] = 7u32.wrapping_add(100u32.wrapping_mul(y));
            let mut v2: u32 = v1[(y.rotate_right(y % 40) % 4) as usize];
            let mut v3: i16 = ((1i16.wrapping_add(0i16) ^ (if true { 3i16 } else { (-100i16) })) & (-0i16));
        }
        let mut v4: [u32; 4] = [(y << (1u32 % 32)), y.max(y), (y.count_ones() as u32), y.min(y)];
        v4[((y << (y % 32)) % 4) as usize] = (if (!false) { (y.leading_zeros() as u32) } else { (y.count_ones() as u32) });
        let mut v5: u32 = v4[((y << (y % 32)) % 4) as usize];
        let (mut v6, mut v7) = helper_a((if (false && false) { x.rotate_left(100u32 % 40) } else { (if true { x } else { (-1i32) }) }), ((-0.0f32) + (-1.25f32)));
        z = ((if false { (7.75f32 / v7) } else { z.mul_add(v7, (-1.25f32)) }) * (if ((-2i16) >= 3i16) { z.abs() } else { z.round() }));
        if ((true && true) || (if true { true } else { false })) {
            'l8: for v8 in (1..4u32).rev() {
                if (if (match 127u8 { 0 => true, 1 | 2 => true, 3..=20 => false, _ => false }) { (u64::MIN >= 31u64) } else { (100i64 == 127i64) }) {
                    v6 = v6.saturating_mul((!v6)).wrapping_add((if true { 127i32 } else { v6 }).wrapping_sub((x.trailing_zeros() as i32)));
                    z *= (-(z - v7));
                } else {
                    v5 = (!(if true { y } else { v8 })).wrapping_mul(v5);
                    y = (if (match u8::MIN { 0 => (false && false), 1 | 2 => (false || false), 3..=20 => (u32::MIN >= y), _ => (false && false) }) { ((100u32 << (v8 % 32)).leading_zeros() as u32) } else { (z as u32).wrapping_sub(y.wrapping_sub(v5)) });
                }
                z += (if (false && false) { (z / v7) } else { 0.1f32 });
                if (true || true) { break 'l8; }
                'l9: for v9 in 0..5u32 {
                    let mut v10: i32 = (x >> (v9 % 32)).rotate_right(1u32.wrapping_mul(v5) % 40).checked_sub(x.wrapping_sub((-7i32)).wrapping_mul(7i32.wrapping_mul(1i32))).unwrap_or((-0i32).wrapping_sub(v6.wrapping_sub(i32::MIN)));
                    v7 *= ((1e-3f64 as f32) + v7.mul_add(z, z));
                    if false { continue 'l9; }
                    v6 = ((i32::MIN.wrapping_add(x).trailing_zeros() as i32) as i32);
                }
            }
            let mut v11: u8 = (7u8 | (!2u8).rotate_left(v5.rotate_right(y % 40) % 40));
        } else {
            v7 = (if ((!false) || (v7 != v7)) { (if (if true { true } else { true }) { (-z) } else { (0.1f32 / 1000.0f32) }) } else { v7 });
            let mut v12: u64 = 7u64.wrapping_add(0u64).rotate_right(127u32 % 40).checked_div(u64::MAX).unwrap_or(0u64.rotate_left(y % 40).wrapping_sub(7u64.min(7u64)));
        }
        'l13: for v13 in (0..9u32).step_by(3) {
            let mut v14: i16 = (u8::MAX as i16).max(2i16.rotate_left(y % 40)).checked_sub((!3i16)).unwrap_or((if false { i16::MAX } else { 2i16 }).wrapping_mul(2i16.checked_add(i16::MAX).unwrap_or(31i16)));
            v6 = (!x.wrapping_add(v6)).wrapping_add(v6.saturating_mul(100i32).wrapping_sub((!x)));
        }
        let mut v15: f32 = (((3.0f64 - (-1.25f64)) / (i16::MIN as f64)) as f32);
        *out = [((y as u64).wrapping_mul(31).wrapping_add(v5 as u64)).wrapping_mul(31).wrapping_add(mixed_f32(v15)), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_0() {
    same(0, |x, out| program_0(x, out), program_0::load);
}

#[kernel]
fn program_1(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let (mut v1, mut v2) = helper_b(0i32, ((0u64 as f32) * (1000.0f64 as f32)));
        let mut v3 = 0u32;
        let mut v4: i32 = loop {
            v3 += 1;
            if ((false || false) && (false || true)) {
                v1 = (match y.wrapping_mul(y).saturating_sub((7u32 << (v3 % 32))) { 0 => v1.max(v1).wrapping_add(v1.checked_add(v1).unwrap_or(0i32)), 1 | 2 => (if false { x } else { 31i32 }).saturating_mul(x.wrapping_mul((-7i32))), 3..=20 => ((!x) & (if false { v1 } else { v1 })), _ => (if true { 100i32.rotate_right(y % 40) } else { x.rotate_left(v3 % 40) }) });
                y ^= y;
            } else {
                let mut v5: i16 = (127i16.wrapping_mul(0i16).rotate_right(y.wrapping_sub(v3) % 40) >> (((i64::MIN << (v3 % 64)) as u32) % 16));
                let mut v6 = 2u32.saturating_mul(y) % 6;
                while v6 > 0 {
                    v6 -= 1;
                    v1 &= v1;
                    v2 = (v2 + z).floor().abs();
                }
            }
            if v3 > 4 || false { break v1.wrapping_add(i32::MIN).checked_div(v1.wrapping_sub(x)).unwrap_or(x.checked_div(x).unwrap_or(x)); }
        };
        v4 = (if ((31u64 >= u64::MAX) || (true || false)) { ((x << (y % 32)).trailing_zeros() as i32) } else { x });
        let mut v7 = 100u32.rotate_right(y % 40) % 6;
        while v7 > 0 {
            v7 -= 1;
            v4 |= v4;
            y = v7.saturating_add(v7).wrapping_sub((if true { v7 } else { v7 })).rotate_right((if (3.0f64 == 1000.0f64) { (if false { v7 } else { 0u32 }) } else { y.checked_add(y).unwrap_or(v7) }) % 40);
        }
        if (false || (y <= y)) {
            y = (!(y << (7u32 % 32)).rotate_right(1u32.rotate_left(y % 40) % 40));
            let mut v8: [u64; 4] = [2u64.checked_div(u64::MIN).unwrap_or(127u64), (127u64 << (1u32 % 64)), (match 2i16 { 0 => 3u64, 1 | 2 => 100u64, 3..=20 => 2u64, _ => 2u64 }), 100u64.wrapping_mul(u64::MAX)];
            v8[(y.rotate_left(y % 40) % 4) as usize] = (y.rotate_right(y % 40) as u64);
            let mut v9: u64 = v8[((2u32 << (y % 32)) % 4) as usize];
        } else {
            let (mut v10, mut v11) = helper_b((if (true && true) { v4.wrapping_sub(v1) } else { (-2i32).rotate_left(y % 40) }), ((if false { v2 } else { v2 }) * 7.75f32.mul_add((-1.25f32), v2)));
            v10 |= (if (7u64 > u64::MIN) { 0i32.rotate_right(y % 40) } else { x.wrapping_add(v1) });
        }
        let mut v12: f64 = (if ((x == 0i32) || (!true)) { (((-0.0f64) + (-1.25f64)) / 7.75f64) } else { (-(if false { 1e-3f64 } else { 7.75f64 })) });
        v1 = (if (if (false || false) { (3.0f64 == v12) } else { (false || true) }) { ((-v2) as i32) } else { (!(x.trailing_zeros() as i32)) });
        *out = [((y as u64).wrapping_mul(31).wrapping_add(v4 as u64)).wrapping_mul(31).wrapping_add(mixed_f64(v12)), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_1() {
    same(1, |x, out| program_1(x, out), program_1::load);
}

#[kernel]
fn program_2(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1: [f64; 4] = [(x as f64), (match y { 0 => (-1.25f64), 1 | 2 => (-0.0f64), 3..=20 => 1000.0f64, _ => 0.1f64 }), 7.75f64.ceil(), (x as f64)];
        v1[((true as u32) % 4) as usize] = (match y { 0 => (7.75f64 * (-0.0f64)), 1 | 2 => (if false { 0.5f64 } else { 1e-3f64 }), 3..=20 => (1e-3f64 + 0.1f64), _ => 1e-3f64.mul_add((-0.0f64), (-0.0f64)) });
        let mut v2: f64 = v1[((y.count_ones() as u32) % 4) as usize];
        z = (if ((true && false) && (!false)) { ((0.5f64 * v2) as f32) } else { (if (1u8 == 2u8) { (1e-3f64 as f32) } else { (-z) }) });
        y |= (1i16.wrapping_mul((-31i16)) as u32);
        let mut v3 = 2u32 % 6;
        while v3 > 0 {
            v3 -= 1;
            v2 = (if (!(true && true)) { (1e-3f64 - v2).ceil() } else { (v2 + v2).ceil() });
            let mut v4: u64 = 1u64;
        }
        z -= (z - z).mul_add(z.mul_add(z, 3.0f32), (z + z));
        let mut v5: f32 = ((if (true && false) { v2.round() } else { 1e-3f64 }) as f32);
        let mut v6: [u64; 4] = [(match x { 0 => 127u64, 1 | 2 => 2u64, 3..=20 => u64::MAX, _ => 31u64 }), (!u64::MIN), (100u64.leading_zeros() as u64), (!31u64)];
        v6[((!7u32) % 4) as usize] = ((127u64.leading_zeros() as u64) | (!3u64));
        let mut v7: u64 = v6[((if true { y } else { 0u32 }) % 4) as usize];
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(mixed_f64(v2))).wrapping_mul(31).wrapping_add(mixed_f32(v5))).wrapping_mul(31).wrapping_add(v7 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_2() {
    same(2, |x, out| program_2(x, out), program_2::load);
}

#[kernel]
fn program_3(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        y = u32::MAX.checked_add((!y.wrapping_add(y))).unwrap_or((y.wrapping_mul(y) & 0u32));
        let mut v1 = 0u32;
        let mut v2: i64 = loop {
            v1 += 1;
            'l3: for v3 in (1..5u32).rev() {
                z = (((-3.0f64) as f32) / ((if true { z } else { z }) / ((-1.25f64) as f32)));
                let mut v4: i32 = x.rotate_left(y % 40).wrapping_add((!x)).wrapping_mul(2i32);
            }
            if v1 > 2 || (false || true) { break i64::MIN.wrapping_add(31i64).wrapping_add((-3i64)); }
        };
        v2 = (if ((if true { 3.0f64 } else { (-0.0f64) }) == ((-0.0f64) + (-1.25f64))) { (v2.saturating_mul(v2) >> (y.wrapping_sub(y) % 64)) } else { (match 0u8 { 0 => v2, 1 | 2 => v2.rotate_right(y % 40), 3..=20 => 127i64.wrapping_add(7i64), _ => (if false { 2i64 } else { v2 }) }) });
        let mut v5 = y.rotate_right(y % 40) % 6;
        while v5 > 0 {
            v5 -= 1;
            y = ((2u32 ^ (v5 ^ y)) ^ y.wrapping_mul(u32::MIN).max((!u32::MAX)));
            let mut v6: i16 = ((i16::MIN << (u32::MAX % 16)) as i16).max(100i16);
        }
        let mut v7 = (y & y) % 6;
        while v7 > 0 {
            v7 -= 1;
            y = ((if (true || false) { (!v7) } else { (match 0u32 { 0 => y, 1 | 2 => y, 3..=20 => v7, _ => v7 }) }).count_ones() as u32);
            let mut v8 = 0u32;
            let mut v9: u8 = loop {
                v8 += 1;
                let mut v10 = 0u32;
                let mut v11: u64 = loop {
                    v10 += 1;
                    let mut v12: i16 = i16::MIN.rotate_left(v8.wrapping_sub(100u32) % 40).checked_add(2i16.max((100u64 as i16))).unwrap_or((-100i16));
                    if v10 > 4 || (false && false) { break 3u64; }
                };
                if v8 > 2 || (v2 == v2) { break (!0u8).wrapping_sub(3u8.wrapping_add(7u8)); }
            };
        }
        z *= ((z / 1e-3f32) + z.abs());
        'l13: for v13 in 2..=((y ^ y) % 5) {
            let mut v14: i64 = (v2.trailing_zeros() as i64).min(v2);
            'l15: for v15 in 0..4u32 {
                let mut v16: [u32; 4] = [(!v13), (2u32.trailing_zeros() as u32), (!y), (y.count_ones() as u32)];
                v16[(y.checked_div(v13).unwrap_or(v13) % 4) as usize] = (!v15).checked_rem((match v2 { 0 => v15, 1 | 2 => v15, 3..=20 => 3u32, _ => v15 })).unwrap_or(y.checked_sub(v15).unwrap_or(v15));
                let mut v17: u32 = v16[(v15.rotate_left(y % 40) % 4) as usize];
                y = (!1u32).wrapping_sub(v13.saturating_mul(v15)).checked_sub(u32::MIN.max(y).rotate_right(2u32 % 40)).unwrap_or((if false { 127u32 } else { v17 }).wrapping_sub(v15.wrapping_mul(y)));
            }
            if false { break; }
            let mut v18: [i32; 4] = [(v2 as i32), (x.count_ones() as i32), (if true { x } else { x }), x.saturating_mul(x)];
            v18[((!v13) % 4) as usize] = ((match 7u64 { 0 => x, 1 | 2 => x, 3..=20 => x, _ => i32::MIN }) | (x | 1i32));
            let mut v19: i32 = v18[(v13.wrapping_mul(y) % 4) as usize];
        }
        *out = [(y as u64).wrapping_mul(31).wrapping_add(v2 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_3() {
    same(3, |x, out| program_3(x, out), program_3::load);
}

#[kernel]
fn program_4(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        z = ((if false { (1000.0f64 / (-0.0f64)) } else { (y as f64) }) as f32);
        if ((2u8.leading_zeros() as u8) >= 3u8.saturating_mul(31u8)) {
            if ((z >= z) || (7u32 > y)) {
                let mut v1 = 7u32.wrapping_sub(y) % 6;
                while v1 > 0 {
                    v1 -= 1;
                    y = u32::MIN;
                    let mut v2: i32 = x;
                }
                if (match (-1i16).wrapping_add(i16::MIN) { 0 => (false || false), 1 | 2 => (if true { true } else { true }), 3..=20 => (100i16 != (-1i16)), _ => (!false) }) {
                    let mut v3: i32 = x;
                    y |= (y << (1u32 % 32)).checked_sub(y).unwrap_or(1u32.saturating_sub(y));
                }
            } else {
                let mut v4: f32 = (-1.25f32).mul_add((match (!(-2i16)) { 0 => (z / z), 1 | 2 => (if true { z } else { z }), 3..=20 => (if true { z } else { z }), _ => (z / 1e-3f32) }), (-(if true { z } else { z })));
                y = (!(if true { y } else { y }).wrapping_sub((!y)));
            }
            let mut v5: u8 = (if (!false) { 7u8.wrapping_add(0u8) } else { (false as u8) }).rotate_right((y.wrapping_mul(y).leading_zeros() as u32) % 40);
        }
        let mut v6: [i64; 4] = [3i64.saturating_mul(7i64), (if true { (-2i64) } else { (-31i64) }), (-127i64), (-7i64).wrapping_sub(2i64)];
        v6[(y % 4) as usize] = (if (x < x) { 2i64.rotate_right(y % 40) } else { 7i64.saturating_add(i64::MIN) });
        let mut v7: i64 = v6[((y.count_ones() as u32) % 4) as usize];
        let mut v8: i16 = 31i16.wrapping_add(i16::MIN.wrapping_mul(1i16).wrapping_add((if true { 2i16 } else { (-1i16) })));
        let mut v9 = 100u32.checked_mul(y).unwrap_or(2u32) % 6;
        while v9 > 0 {
            v9 -= 1;
            if ((false && false) || (false || true)) {
                if (1e-3f64 < 7.75f64.floor()) {
                    v8 = ((v7 as i16) ^ (!v8)).wrapping_sub(((match v8 { 0 => v7, 1 | 2 => (-1i64), 3..=20 => 3i64, _ => 2i64 }) as i16));
                    v7 = (31i64.wrapping_sub(v7).rotate_right((false as u32) % 40) | (if false { 100i64 } else { 2i64 }).checked_rem((v7 ^ 2i64)).unwrap_or(v7.wrapping_mul(v7)));
                }
                let mut v10: [u32; 4] = [(v9 & v9), y, (y.leading_zeros() as u32), (if true { 2u32 } else { v9 })];
                v10[((!y) % 4) as usize] = v9.rotate_left(v9 % 40).saturating_sub((match v7 { 0 => v9, 1 | 2 => y, 3..=20 => 31u32, _ => y }));
                let mut v11: u32 = v10[(y.checked_sub(2u32).unwrap_or(v9) % 4) as usize];
            }
            if (if (true || true) { ((-31i64) == v7) } else { (if true { true } else { false }) }) {
                let mut v12: [u64; 4] = [100u64, (!0u64), (!u64::MIN), (31u64 & 2u64)];
                v12[(y.saturating_sub(2u32) % 4) as usize] = 1u64;
                let mut v13: u64 = v12[((y.count_ones() as u32) % 4) as usize];
                v8 = (match v13.wrapping_mul(v13) { 0 => (!(-1i16)), 1 | 2 => (match 31u8 { 0 => i16::MIN, 1 | 2 => v8, 3..=20 => 31i16, _ => v8 }), 3..=20 => v8.rotate_right(v9 % 40), _ => v8.min(2i16) }).wrapping_mul((match x.rotate_right(v9 % 40) { 0 => 0i16.max(v8), 1 | 2 => v8.saturating_add(v8), 3..=20 => (-127i16).wrapping_sub(i16::MIN), _ => v8.wrapping_add(v8) }));
            } else {
                let mut v14: [u32; 4] = [y.wrapping_mul(2u32), v9.wrapping_mul(v9), (v9.trailing_zeros() as u32), 127u32];
                v14[(v9.saturating_add(y) % 4) as usize] = y.rotate_right(v9 % 40).checked_rem(v9.wrapping_mul(y)).unwrap_or(v9);
                let mut v15: u32 = v14[(y.min(y) % 4) as usize];
                v8 |= 127i16.wrapping_mul(v8).wrapping_sub(v8);
            }
        }
        if (if false { (0u8 >= 100u8) } else { (true && false) }) {
            v8 = (if false { v8 } else { v8 }).wrapping_mul((31u8 as i16)).wrapping_add(v8.saturating_sub(0i16).max(v8.saturating_sub(v8)));
            let mut v16: [f32; 4] = [(1000.0f64 as f32), (z - z), 1000.0f32, ((-0.0f32) * z)];
            v16[(y % 4) as usize] = ((z - 7.75f32) * (0.1f64 as f32));
            let mut v17: f32 = v16[((y.count_ones() as u32) % 4) as usize];
        } else {
            z += z;
            if ((v8 >> (y % 16)) >= v8.saturating_mul(v8)) {
                if false {
                    y = (!((if true { y } else { y }).leading_zeros() as u32));
                    z *= (-(1000.0f32 + z));
                } else {
                    v7 = ((if true { v7 } else { v7 }).checked_add(v7).unwrap_or((match 7u8 { 0 => v7, 1 | 2 => v7, 3..=20 => 127i64, _ => 7i64 })) | (v7 << (y.checked_sub(y).unwrap_or(y) % 64)));
                    let mut v18: i64 = v7;
                }
                let (mut v19, mut v20) = helper_a((x ^ x.wrapping_mul(x)), z);
            } else {
                let mut v21: [u64; 4] = [(u8::MIN as u64), (u64::MAX & 31u64), (if true { u64::MAX } else { 2u64 }), 7u64];
                v21[((if true { y } else { y }) % 4) as usize] = (2u64.wrapping_mul(1u64).trailing_zeros() as u64);
                let mut v22: u64 = v21[(y.saturating_sub(y) % 4) as usize];
                y = y.wrapping_mul(3u32).saturating_sub(y).wrapping_add(y.rotate_right((y.leading_zeros() as u32) % 40));
            }
        }
        let mut v23: u8 = ((v8 as u8) ^ (v7 as u8)).min((2u8.rotate_left(100u32 % 40) ^ (127u8 << (y % 8))));
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(v7 as u64)).wrapping_mul(31).wrapping_add(v8 as u64)).wrapping_mul(31).wrapping_add(v23 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_4() {
    same(4, |x, out| program_4(x, out), program_4::load);
}

#[kernel]
fn program_5(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1 = 0u32;
        let mut v2: f32 = loop {
            v1 += 1;
            z = (((z - z) + z.mul_add(z, z)) * z.abs());
            if v1 > 1 || false { break (z * (z / 0.5f32)); }
        };
        z = (-((0.5f64 + 0.5f64) as f32));
        let mut v3 = 0u32;
        let mut v4: i16 = loop {
            v3 += 1;
            z = (((-z) + ((-1.25f32) * 0.1f32)) * (((-1.25f32) * v2) + (v2 - 1e-3f32)));
            if v3 > 2 || (if true { false } else { false }) { break ((if true { (-7i16) } else { (-127i16) }) ^ (3i64 as i16)); }
        };
        if ((false && false) && (!false)) {
            let mut v5: i16 = (!v4).wrapping_sub((if (if false { true } else { false }) { v4 } else { (match v4 { 0 => (-0i16), 1 | 2 => v4, 3..=20 => v4, _ => v4 }) }));
            'l6: for v6 in 2..=(y.wrapping_add(2u32) % 5) {
                let mut v7: u64 = (2u64.rotate_left(v6 % 40) | 31u64.rotate_left(7u32 % 40)).rotate_left((v6.rotate_left(7u32 % 40) & (v6 & v6)) % 40);
                if ((false && false) || (v2 != v2)) {
                    v7 = (match (!(v7 as u8)) { 0 => v7, 1 | 2 => v7, 3..=20 => (match v7.wrapping_mul(v7) { 0 => (true as u64), 1 | 2 => (3.0f64 as u64), 3..=20 => v7.max(v7), _ => (if false { u64::MAX } else { v7 }) }), _ => (!3u64).wrapping_mul((if true { v7 } else { 127u64 })) });
                    v5 ^= ((if true { 2i16 } else { v5 }) >> ((match 100i32 { 0 => v6, 1 | 2 => y, 3..=20 => v6, _ => 2u32 }) % 16));
                } else {
                    y = ((127u32.wrapping_mul(y).trailing_zeros() as u32).trailing_zeros() as u32);
                    let mut v8: u64 = v7.checked_sub(v7).unwrap_or(v7).wrapping_sub(v7.rotate_left(y % 40)).max(((v7.count_ones() as u64) & v7.wrapping_sub(v7)));
                }
                if (!false) { break 'l6; }
                if false {
                    let mut v9: f64 = (match (x >> (v6 % 32)).checked_mul(x.max((-2i32))).unwrap_or((x & x)) { 0 => ((v5 as f64) + (-7.75f64)), 1 | 2 => (3i64 as f64), 3..=20 => ((7.75f32 as f64) * (-0.1f64)), _ => (if (if false { true } else { true }) { 0.5f64.mul_add(3.0f64, 7.75f64) } else { (if false { 3.0f64 } else { 7.75f64 }) }) });
                    let mut v10: u64 = 127u64.wrapping_add((if (if true { true } else { false }) { (match i64::MIN { 0 => 3u64, 1 | 2 => 3u64, 3..=20 => 7u64, _ => 2u64 }) } else { 7u64 }));
                } else {
                    v5 |= (v5.count_ones() as i16).wrapping_add(v4);
                    y = (if (true || false) { v6.wrapping_sub(y) } else { y }).checked_div(u32::MIN.checked_rem(y).unwrap_or(1u32).wrapping_add((!0u32))).unwrap_or(100u32.saturating_sub(y).saturating_add(y));
                }
            }
        } else {
            let mut v11: i16 = (match 100u32.checked_sub(y).unwrap_or(y) { 0 => (if true { v4 } else { v4 }), 1 | 2 => v4.wrapping_add(v4), 3..=20 => (v4.count_ones() as i16), _ => v4.saturating_add(v4) }).wrapping_mul(v4.wrapping_add(v4).max(v4));
            let mut v12 = y.min(y) % 6;
            while v12 > 0 {
                v12 -= 1;
                v4 ^= ((1i64 as f32) as i16);
                let mut v13 = 0u32;
                let mut v14: i32 = loop {
                    v13 += 1;
                    v4 = 31i16.wrapping_mul(v4);
                    if v13 > 3 || (1i64 <= 1i64) { break x.rotate_right(v12 % 40).rotate_right(31u32 % 40); }
                };
            }
        }
        y = (((match v4 { 0 => y, 1 | 2 => y, 3..=20 => y, _ => y }) << ((match y { 0 => y, 1 | 2 => y, 3..=20 => y, _ => y }) % 32)) | 100u32);
        v2 = ((x >> (y % 32)) as f32).mul_add((7.75f64.abs() as f32), (0.1f64 as f32));
        let mut v15 = 0u32;
        let mut v16: i32 = loop {
            v15 += 1;
            y = (y.wrapping_mul(v15).max(y) << ((y << (3u32 % 32)).rotate_left(v15.saturating_add(v15) % 40) % 32));
            if v15 > 2 || (false || false) { break (!(if false { x } else { x })); }
        };
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(mixed_f32(v2))).wrapping_mul(31).wrapping_add(v4 as u64)).wrapping_mul(31).wrapping_add(v16 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_5() {
    same(5, |x, out| program_5(x, out), program_5::load);
}

#[kernel]
fn program_6(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        if (!(127i64 >= 31i64)) {
            let mut v1 = 0u32;
            let mut v2: i64 = loop {
                v1 += 1;
                let (mut v3, mut v4) = helper_a((x.rotate_right(y % 40) >> (y % 32)), z);
                if v1 > 4 || (7i64 > 1i64) { break (-127i64).checked_sub(2i64.wrapping_mul(i64::MIN)).unwrap_or(100i64.wrapping_mul(1i64)); }
            };
            let mut v5 = (y as u32) % 6;
            while v5 > 0 {
                v5 -= 1;
                let mut v6: i16 = 2i16;
                v2 = (!(if (0.1f64 >= (-0.0f64)) { (match y { 0 => v2, 1 | 2 => v2, 3..=20 => v2, _ => v2 }) } else { v2.saturating_mul(v2) }));
            }
        } else {
            'l7: for v7 in (1..2u32).rev() {
                z = (((0u64 as f32) + (z + z)) / ((z / z) + (if true { 0.1f32 } else { 1000.0f32 })));
                let (mut v8, mut v9) = helper_a((x.wrapping_mul(x) | (1u64 as i32)), (z * (1e-3f32 * z)));
            }
            z = ((y.saturating_add(y) as f32) - (1e-3f64.trunc() as f32));
        }
        if ((!false) && (!true)) {
            y = (if ((-0i32) < 7i32) { (y.leading_zeros() as u32) } else { 127u32.max(y) }).checked_rem(((y.count_ones() as u32) ^ y.checked_mul(y).unwrap_or(2u32))).unwrap_or(((7u64 as u32) >> (y.checked_add(y).unwrap_or(y) % 32)));
            if true {
                if (!((-0.0f64) <= 7.75f64)) {
                    y = (if (100u64 > u64::MIN) { y.checked_add(y).unwrap_or(y) } else { (if true { 3u32 } else { y }) }).wrapping_sub((((-127i64) >> (y % 64)) as u32));
                    z += ((z + z) - (0.5f64 as f32));
                }
                z += (if (x != x) { 1e-3f32.mul_add(z, z) } else { ((-127i64) as f32) });
            } else {
                z = (-(100i16 as f32));
                y ^= y.wrapping_add(7u32).wrapping_add(y.rotate_left(y % 40));
            }
        }
        if (7i64 <= 31i64.max(1i64)) {
            let mut v10: i64 = (-7i64);
            y |= ((y & y) & (y | y));
        } else {
            let mut v11: i64 = (match 127i64 { 0 => 31i64, 1 | 2 => 100i64, 3..=20 => 127i64, _ => i64::MAX }).wrapping_mul(31i64).wrapping_add((7i64 | (-31i64)).checked_div(0i64.wrapping_sub(3i64)).unwrap_or((127i64.trailing_zeros() as i64)));
            y ^= (0u32 >> (y % 32)).saturating_add(y.wrapping_mul(y));
        }
        let mut v12: u64 = (match (x ^ 2i32) { 0 => (0u64.count_ones() as u64), 1 | 2 => 3u64.wrapping_mul(u64::MAX), 3..=20 => u64::MAX.saturating_sub(7u64), _ => 7u64.saturating_mul(100u64) }).min(100u64);
        let mut v13 = 0u32.min(y) % 6;
        while v13 > 0 {
            v13 -= 1;
            z = z;
            z = (match (i64::MAX.wrapping_add((-7i64)).trailing_zeros() as i64) { 0 => (100u8 as f32).mul_add((if true { z } else { z }), z), 1 | 2 => (3.0f32 + (if true { z } else { 1000.0f32 })), 3..=20 => z, _ => ((-0.0f32) * z).mul_add((match x { 0 => z, 1 | 2 => z, 3..=20 => z, _ => 1000.0f32 }), (z + z)) });
        }
        let mut v14 = 0u32;
        let mut v15: i32 = loop {
            v14 += 1;
            'l16: for v16 in (0..9u32).step_by(3) {
                if (match 31u32 { 0 => (!false), 1 | 2 => (z != z), 3..=20 => (!true), _ => (if false { false } else { false }) }) {
                    v12 &= (v12.saturating_mul(v12).count_ones() as u64);
                    y ^= (!y).wrapping_sub((!v16));
                } else {
                    let mut v17: f32 = ((if true { z } else { 7.75f32 }) + z.ceil()).mul_add(((-1.25f64).mul_add(1000.0f64, 3.0f64) as f32), (z.abs() * (z - z)));
                    y &= (y.wrapping_mul(y).leading_zeros() as u32);
                }
                if (false && (false && false)) {
                    z = (z / ((-0.1f32) - (-z)));
                    let mut v18: f64 = 3.0f64;
                } else {
                    let mut v19: u32 = ((false as u32).trailing_zeros() as u32);
                    let mut v20: u8 = ((if false { u8::MAX } else { 1u8 }) & 100u8.wrapping_sub(7u8)).wrapping_mul(u8::MAX.checked_rem(7u8).unwrap_or(7u8).rotate_right(y % 40));
                }
            }
            if v14 > 3 || (if false { false } else { true }) { break ((match x { 0 => x, 1 | 2 => (-127i32), 3..=20 => x, _ => x }).count_ones() as i32); }
        };
        let (mut v21, mut v22) = helper_a((v15.wrapping_mul(x).leading_zeros() as i32), ((z / z) - (z + z)));
        *out = [((y as u64).wrapping_mul(31).wrapping_add(v12 as u64)).wrapping_mul(31).wrapping_add(v15 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_6() {
    same(6, |x, out| program_6(x, out), program_6::load);
}

#[kernel]
fn program_7(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        'l1: for v1 in (0..9u32).step_by(2) {
            z = (if (if (if true { true } else { true }) { (if true { false } else { true }) } else { (v1 <= v1) }) { (if (false || false) { (z - z) } else { z }) } else { ((z - z) * z.mul_add(z, z)) });
            let mut v2 = 0u32;
            let mut v3: i64 = loop {
                v2 += 1;
                if ((!true) || (3i64 <= 2i64)) {
                    y = (y.saturating_sub(v2).rotate_left(((-0i16) as u32) % 40) ^ (match 127u64.saturating_mul(3u64) { 0 => (0u64 as u32), 1 | 2 => (y.count_ones() as u32), 3..=20 => (if true { y } else { v1 }), _ => (if false { v2 } else { 31u32 }) }));
                    z = z;
                } else {
                    let mut v4: f64 = (((1e-3f64 * 3.0f64) + ((-0i64) as f64)) * (if true { (if false { 0.1f64 } else { (-1.25f64) }) } else { (-0.1f64) }));
                    z = ((if (127i64 >= 3i64) { 100i16.wrapping_mul((-7i16)) } else { (31i16 >> (v2 % 16)) }) as f32);
                }
                if v2 > 2 || (x == x) { break 7i64.rotate_left(1u32 % 40).max((true as i64)); }
            };
            if false { continue; }
            'l5: for v5 in 0..1u32 {
                let mut v6: i16 = ((-100i16).trailing_zeros() as i16).saturating_mul(3i16.rotate_left((if true { y } else { y }) % 40));
                let (mut v7, mut v8) = helper_a((x << (y % 32)).wrapping_add((!(-3i32))), (match v6 { 0 => 0.1f32, 1 | 2 => z, 3..=20 => z, _ => z }).mul_add((-z), (z * 7.75f32)));
            }
        }
        let mut v9 = (0u32 | y) % 6;
        while v9 > 0 {
            v9 -= 1;
            z *= ((1000.0f64 as f32) * (match v9 { 0 => 1000.0f32, 1 | 2 => 3.0f32, 3..=20 => z, _ => z }));
            z = (((z as f64) - (7.75f64 + 0.1f64)) as f32);
        }
        let mut v10 = (y.trailing_zeros() as u32) % 6;
        while v10 > 0 {
            v10 -= 1;
            'l11: for v11 in (0..9u32).step_by(3) {
                if ((0.1f64 - 3.0f64) == (-7.75f64)) {
                    y = (!(if false { 31u32 } else { v11 })).wrapping_sub((2u32.saturating_add(y) & (if false { y } else { v11 })));
                    y = ((((-0.0f64) / 0.1f64) * (x as f64)) as u32);
                } else {
                    let mut v12: bool = (match 1i32.saturating_mul(i32::MAX).wrapping_mul((if false { 31i32 } else { x })) { 0 => ((z * (-0.0f32)) >= z), 1 | 2 => (true && (127u8 > 7u8)), 3..=20 => (match 3u64.saturating_mul(1u64) { 0 => (31i32 >= x), 1 | 2 => (false && true), 3..=20 => true, _ => (3u64 != 127u64) }), _ => ((false || false) || (if false { false } else { false })) });
                    v12 = (if (!(0.1f64 != 0.1f64)) { ((!v12) || (2i32 != x)) } else { (match (-100i16).wrapping_sub((-7i16)) { 0 => (if true { v12 } else { v12 }), 1 | 2 => (!v12), 3..=20 => v12, _ => true }) });
                }
                let mut v13 = y % 6;
                while v13 > 0 {
                    v13 -= 1;
                    let mut v14: u64 = (!(if (if true { true } else { true }) { 3u64.rotate_right(100u32 % 40) } else { 31u64.wrapping_mul(0u64) }));
                    let mut v15: i16 = (if (match (-1i64).wrapping_sub(127i64) { 0 => (match v11 { 0 => true, 1 | 2 => false, 3..=20 => false, _ => true }), 1 | 2 => ((-127i16) == 0i16), 3..=20 => (if true { true } else { false }), _ => (u8::MAX < 2u8) }) { ((2i16 & 1i16) & (!i16::MIN)) } else { (match (v14 & v14) { 0 => 100i16.rotate_right(y % 40), 1 | 2 => i16::MIN.wrapping_sub(100i16), 3..=20 => (0i16 & 7i16), _ => (match v10 { 0 => 127i16, 1 | 2 => i16::MAX, 3..=20 => 3i16, _ => 2i16 }) }) });
                }
            }
            y = (((y >> (y % 32)) | (!y)).leading_zeros() as u32);
        }
        y |= (!(y << (y % 32)));
        y = ((match (if true { 3u8 } else { 127u8 }) { 0 => (31i16 ^ 3i16), 1 | 2 => 0i16.rotate_left(y % 40), 3..=20 => (!127i16), _ => 2i16 }) as u32);
        let mut v16: i32 = x;
        'l17: for v17 in (1..2u32).rev() {
            let (mut v18, mut v19) = helper_b((((-0i64) >> (v17 % 64)) as i32), 0.5f32);
            v19 -= (z + (31i32 as f32));
        }
        *out = [(y as u64).wrapping_mul(31).wrapping_add(v16 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_7() {
    same(7, |x, out| program_7(x, out), program_7::load);
}

#[kernel]
fn program_8(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let (mut v1, mut v2) = helper_a((x.count_ones() as i32).rotate_left((if false { y } else { y }) % 40), z.mul_add((-1.25f32), (-0.0f32)).mul_add(z.floor(), (-z)));
        v2 = ((if (true && true) { (if true { 1e-3f64 } else { 3.0f64 }) } else { (7.75f64 - (-0.0f64)) }) as f32);
        let mut v3 = 127u32 % 6;
        while v3 > 0 {
            v3 -= 1;
            let mut v4: u8 = (!(100u8.max(7u8) ^ u8::MIN));
            if ((match 31i16 { 0 => x, 1 | 2 => x, 3..=20 => v1, _ => v1 }) > (if true { i32::MIN } else { v1 })) {
                let (mut v5, mut v6) = helper_b(i32::MIN.wrapping_sub(3i32.min(v1)), 1000.0f32.floor());
                v4 = ((v4 ^ (if true { v4 } else { v4 })) << ((!y.wrapping_mul(y)) % 8));
            } else {
                let mut v7: [u8; 4] = [(match v4 { 0 => 2u8, 1 | 2 => v4, 3..=20 => u8::MAX, _ => 3u8 }), 3u8.wrapping_add(v4), (if true { v4 } else { v4 }), v4.wrapping_add(100u8)];
                v7[(3u32.max(y) % 4) as usize] = (if (!false) { v4 } else { v4.rotate_left(y % 40) });
                let mut v8: u8 = v7[(u32::MAX.min(3u32) % 4) as usize];
                let (mut v9, mut v10) = helper_a(x, ((0i64 >> (v3 % 64)) as f32));
            }
        }
        y &= (100u8.wrapping_add(0u8) as u32);
        y = 3u32.rotate_right(y % 40).saturating_sub(y.saturating_mul(y).rotate_right(y.wrapping_mul(y) % 40));
        let mut v11: u8 = 7u8;
        y = (if true { 2u32 } else { y }).saturating_mul(7u32.min(y)).wrapping_sub((y.saturating_add(y) & (match x { 0 => y, 1 | 2 => y, 3..=20 => y, _ => y })));
        *out = [(y as u64).wrapping_mul(31).wrapping_add(v11 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_8() {
    same(8, |x, out| program_8(x, out), program_8::load);
}

#[kernel]
fn program_9(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        if ((i64::MIN as f64) <= (-1.25f64)) {
            y = (!y.rotate_left(y % 40)).min((y.rotate_left(y % 40) | (y & y)));
            z = (match (if (0u64 < 100u64) { ((-1i64) & (-100i64)) } else { (if true { 31i64 } else { i64::MIN }) }) { 0 => (x as f32).trunc(), 1 | 2 => (if (100i64 > 127i64) { (z / z) } else { (z * z) }), 3..=20 => (if (3u8 >= 31u8) { ((-0.0f32) + z) } else { (z - z) }), _ => ((match x { 0 => 1000.0f64, 1 | 2 => 1000.0f64, 3..=20 => 1000.0f64, _ => (-0.0f64) }) as f32) });
        } else {
            let mut v1: i32 = ((7.75f64 as i32).max(0i32.min(x)) >> ((y.wrapping_mul(y).count_ones() as u32) % 32));
            let mut v2: [i32; 4] = [(v1 ^ x), (-0i32).rotate_left(y % 40), (-0i32).rotate_right(y % 40), i32::MAX.wrapping_sub(v1)];
            v2[(y % 4) as usize] = (y as i32);
            let mut v3: i32 = v2[((y << (y % 32)) % 4) as usize];
        }
        let mut v4: [f32; 4] = [(z * z), z.mul_add((-0.0f32), (-1.25f32)), (match i16::MAX { 0 => z, 1 | 2 => 0.1f32, 3..=20 => z, _ => z }), 0.5f32.mul_add(z, z)];
        v4[((3u32 >> (0u32 % 32)) % 4) as usize] = ((y as f64) as f32);
        let mut v5: f32 = v4[(0u32 % 4) as usize];
        v5 = ((!(y as u64)) as f32);
        let mut v6: f32 = (((1e-3f32 * v5) as f64) as f32);
        let mut v7: f64 = 3.0f64.ceil();
        v5 += (-v6);
        let mut v8 = (u32::MIN as u32) % 6;
        while v8 > 0 {
            v8 -= 1;
            if ((if false { true } else { false }) || (false || true)) {
                let mut v9 = 0u32;
                let mut v10: f64 = loop {
                    v9 += 1;
                    v5 = ((if (true || true) { (match 7u64 { 0 => z, 1 | 2 => v6, 3..=20 => (-1.25f32), _ => (-0.0f32) }) } else { (z - v6) }) - v5);
                    if v9 > 1 || (1i16 < i16::MIN) { break (v7 + v7).round(); }
                };
                let mut v11: bool = true;
            } else {
                let mut v12 = 0u32;
                let mut v13: i16 = loop {
                    v12 += 1;
                    v6 = 3.0f32;
                    if v12 > 4 || (0u32 == y) { break 2i16.wrapping_mul(1i16.saturating_add((-0i16))); }
                };
                v6 -= (match y.wrapping_mul(y) { 0 => (-1.25f32), 1 | 2 => (v5 - v6), 3..=20 => (v6 * 3.0f32), _ => z.round() });
            }
            v5 -= 3.0f32.mul_add(z, 7.75f32).floor();
        }
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(mixed_f32(v5))).wrapping_mul(31).wrapping_add(mixed_f32(v6))).wrapping_mul(31).wrapping_add(mixed_f64(v7)), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_9() {
    same(9, |x, out| program_9(x, out), program_9::load);
}

#[kernel]
fn program_10(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1: [f64; 4] = [0.1f64, (z as f64), (-1.25f64).mul_add(1000.0f64, 3.0f64), (100u64 as f64)];
        v1[(y.wrapping_sub(y) % 4) as usize] = ((if false { 0u64 } else { 7u64 }) as f64);
        let mut v2: f64 = v1[(y % 4) as usize];
        let mut v3 = (match y { 0 => y, 1 | 2 => 0u32, 3..=20 => u32::MIN, _ => 3u32 }) % 6;
        while v3 > 0 {
            v3 -= 1;
            y &= (if (z <= z) { y.rotate_right(y % 40) } else { (!y) });
            let mut v4: f32 = 0.1f32;
        }
        v2 += ((if true { v2 } else { 0.1f64 }) + (-v2));
        let mut v5: i64 = (((2i32 << (y % 32)) as i64) & (match 7u64 { 0 => 31i64, 1 | 2 => (-1i64), 3..=20 => i64::MAX, _ => 100i64 }).wrapping_add((match x { 0 => 100i64, 1 | 2 => 3i64, 3..=20 => 127i64, _ => (-0i64) })));
        'l6: for v6 in 2..=(y.wrapping_mul(y) % 5) {
            y ^= ((v6 | y).leading_zeros() as u32);
            let mut v7 = (y >> (v6 % 32)) % 6;
            while v7 > 0 {
                v7 -= 1;
                if (if (0u64 <= 127u64) { (!false) } else { (if false { true } else { true }) }) {
                    let mut v8: bool = (!true);
                    v8 = ((100i64.wrapping_mul(v5) as f64) >= ((v2 - v2) * (0.1f64 * 1e-3f64)));
                } else {
                    z -= (-z).trunc();
                    z = z;
                }
                'l9: for v9 in (1..5u32).rev() {
                    let mut v10: u64 = ((1u64.leading_zeros() as u64).wrapping_sub(7u64) << ((v7 >> (v7.rotate_left(v7 % 40) % 32)) % 64));
                    v5 = (v5 & v5).checked_div(v5.max(v5)).unwrap_or(v5.wrapping_mul(v5)).wrapping_add((if (false && false) { (v5.trailing_zeros() as i64) } else { 3i64.checked_add(v5).unwrap_or(v5) }));
                }
            }
        }
        let mut v11: [u8; 4] = [100u8.wrapping_add(100u8), u8::MAX.checked_sub(7u8).unwrap_or(31u8), 1u8, (3u8.leading_zeros() as u8)];
        v11[(y.rotate_right(y % 40) % 4) as usize] = (2u8.checked_div(u8::MAX).unwrap_or(3u8) >> (y.saturating_sub(y) % 8));
        let mut v12: u8 = v11[(y.saturating_sub(y) % 4) as usize];
        if (false || (if false { false } else { true })) {
            'l13: for v13 in (0..9u32).step_by(3) {
                let mut v14 = 0u32;
                let mut v15: i64 = loop {
                    v14 += 1;
                    v2 = ((if (if false { true } else { true }) { ((-0.0f32) as f64) } else { (v2 / v2) }) + 7.75f64);
                    if v14 > 4 || (match v12 { 0 => true, 1 | 2 => false, 3..=20 => false, _ => true }) { break v5; }
                };
                z = (if (if true { (!true) } else { (u64::MIN <= 2u64) }) { (if (!true) { z } else { (if false { z } else { 0.5f32 }) }) } else { (v2.mul_add(0.1f64, v2) as f32) });
                if (i16::MAX <= i16::MIN) { break 'l13; }
                let (mut v16, mut v17) = helper_b(x, (z + (z + 1000.0f32)));
            }
            let mut v18 = 31u32.wrapping_add(y) % 6;
            while v18 > 0 {
                v18 -= 1;
                let mut v19: bool = ((if false { (2u8 != v12) } else { (y <= 31u32) }) || false);
                y = (!v18);
            }
        }
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(mixed_f64(v2))).wrapping_mul(31).wrapping_add(v5 as u64)).wrapping_mul(31).wrapping_add(v12 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_10() {
    same(10, |x, out| program_10(x, out), program_10::load);
}

#[kernel]
fn program_11(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        y = y;
        'l1: for v1 in 0..4u32 {
            let mut v2: [i16; 4] = [31i16.saturating_sub(127i16), (if false { (-100i16) } else { (-3i16) }), 31i16.checked_rem(7i16).unwrap_or((-127i16)), 2i16.wrapping_mul(i16::MAX)];
            v2[(y.wrapping_add(y) % 4) as usize] = (match (y.trailing_zeros() as u32) { 0 => 100i16.wrapping_add((-2i16)), 1 | 2 => (u8::MIN as i16), 3..=20 => (match y { 0 => 3i16, 1 | 2 => (-7i16), 3..=20 => 2i16, _ => (-1i16) }), _ => (3i16.leading_zeros() as i16) });
            let mut v3: i16 = v2[((if false { v1 } else { y }) % 4) as usize];
            if true {
                let mut v4: f64 = ((if (if true { true } else { true }) { (1e-3f64 / 1e-3f64) } else { (1e-3f64 - 1e-3f64) }) + ((z * z) as f64));
                'l5: for v5 in 2..=((if true { y } else { v1 }) % 5) {
                    let mut v6: u32 = (v5 & 2u32).wrapping_mul((if false { v5 } else { v5 })).wrapping_mul(((match i16::MIN { 0 => 1i64, 1 | 2 => (-100i64), 3..=20 => 0i64, _ => (-2i64) }) as u32));
                    z = ((-z) * ((z + z) + (match 127i32 { 0 => z, 1 | 2 => z, 3..=20 => z, _ => z })));
                    if (true && true) { break; }
                    let mut v7: f32 = (if (true || (if true { false } else { true })) { (x.max(x) as f32) } else { (if (v3 < v3) { z.mul_add(z, z) } else { (-z) }) });
                }
            } else {
                let mut v8 = (31u32.count_ones() as u32) % 6;
                while v8 > 0 {
                    v8 -= 1;
                    let mut v9: i32 = (!((x ^ x).leading_zeros() as i32));
                    v3 = (match (-1i16).rotate_left(31u32.rotate_right(y % 40) % 40) { 0 => 100i16, 1 | 2 => ((x as i16) >> (v1.saturating_mul(y) % 16)), 3..=20 => (100u64 as i16), _ => (if true { v3 } else { (-3i16) }).rotate_right((!y) % 40) });
                }
                let mut v10: f32 = (x as f32);
            }
        }
        let mut v11 = y % 6;
        while v11 > 0 {
            v11 -= 1;
            let mut v12: f64 = (((match x { 0 => 1000.0f32, 1 | 2 => z, 3..=20 => z, _ => z }) as f64) / 1000.0f64.mul_add((-0.0f64), 3.0f64).ceil());
            if (!(31i16 <= 127i16)) {
                y ^= (y >> (1u32.rotate_right(v11 % 40) % 32));
                z *= z;
            }
        }
        y = (!y);
        if ((false || true) || (3.0f64 >= 0.1f64)) {
            y = y.wrapping_add(y.wrapping_sub(y).wrapping_sub(y.wrapping_add(y)));
            if (false || (!false)) {
                if true {
                    z *= 3.0f32.sqrt();
                    let mut v13: f32 = (0.1f64.mul_add((-1.25f64), 0.1f64).abs() as f32);
                } else {
                    z = (x as f32);
                    let mut v14: u64 = (!(2u64.rotate_left(3u32 % 40).trailing_zeros() as u64));
                }
                y = (if ((false || false) || (if false { false } else { true })) { (y.wrapping_add(u32::MAX) << (0u32.max(y) % 32)) } else { y.wrapping_sub(2u32).saturating_sub(y.max(1u32)) });
            }
        } else {
            y = y.wrapping_sub((y >> (y % 32))).min((!(y >> (y % 32))));
            let mut v15 = 0u32.wrapping_sub(3u32) % 6;
            while v15 > 0 {
                v15 -= 1;
                'l16: for v16 in 0..2u32 {
                    z *= (-(z - z));
                    let mut v17: u8 = (match 0i64.wrapping_mul((-0i64)) { 0 => u8::MIN, 1 | 2 => 0u8.rotate_left(y % 40), 3..=20 => 31u8, _ => (!31u8) }).wrapping_sub((match u8::MIN.wrapping_sub(127u8) { 0 => 100u8, 1 | 2 => 127u8.wrapping_mul(1u8), 3..=20 => 1u8, _ => (if true { u8::MAX } else { 3u8 }) }));
                    if (true && true) { break 'l16; }
                    y = (!7u32.min(v15).rotate_left(1u32.checked_sub(u32::MAX).unwrap_or(y) % 40));
                }
                let mut v18 = v15.wrapping_add(2u32) % 6;
                while v18 > 0 {
                    v18 -= 1;
                    z = ((-(z / (-1.25f32))) + ((31u8 as f32) + (if false { z } else { z })));
                    let mut v19: f64 = (127i64.min((-31i64)).wrapping_sub(i64::MAX.saturating_sub(100i64)) as f64);
                }
            }
        }
        let mut v20 = 0u32;
        let mut v21: bool = loop {
            v20 += 1;
            y |= (if (if false { false } else { false }) { v20.min(v20) } else { v20.min(y) });
            if v20 > 3 || (7i16 == (-100i16)) { break (match (if false { 7i16 } else { i16::MIN }) { 0 => (true && false), 1 | 2 => true, 3..=20 => (y == y), _ => (!true) }); }
        };
        let (mut v22, mut v23) = helper_b(x, ((0.1f64 as f32) - (if v21 { z } else { (-1.25f32) })));
        *out = [(y as u64).wrapping_mul(31).wrapping_add(v21 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_11() {
    same(11, |x, out| program_11(x, out), program_11::load);
}

#[kernel]
fn program_12(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1: [u8; 4] = [u8::MAX.checked_div(127u8).unwrap_or(127u8), 3u8, 3u8.wrapping_mul(100u8), (if true { 2u8 } else { 127u8 })];
        v1[(y.wrapping_sub(y) % 4) as usize] = ((!100u8) ^ (0i64 as u8));
        let mut v2: u8 = v1[(100u32.wrapping_add(y) % 4) as usize];
        let mut v3 = 0u32;
        let mut v4: i64 = loop {
            v3 += 1;
            let mut v5 = y.min(v3) % 6;
            while v5 > 0 {
                v5 -= 1;
                let mut v6: [i32; 4] = [(!x), (127i64 as i32), (if false { x } else { (-0i32) }), (!x)];
                v6[(v3.wrapping_add(127u32) % 4) as usize] = (if ((-100i64) >= 31i64) { (!x) } else { (!x) });
                let mut v7: i32 = v6[((100u64 as u32) % 4) as usize];
                if (!false) {
                    v7 = ((match v2.max(v2) { 0 => (match 100i32 { 0 => x, 1 | 2 => x, 3..=20 => v7, _ => x }), 1 | 2 => (if true { 0i32 } else { i32::MIN }), 3..=20 => v7.wrapping_sub(v7), _ => 127i32 }) >> ((!u32::MIN).wrapping_sub(u32::MIN.wrapping_sub(3u32)) % 32));
                    let mut v8: u8 = v2;
                }
            }
            if v3 > 2 || (true && false) { break (!(7i64.count_ones() as i64)); }
        };
        v4 = (if (true || true) { 7i64.rotate_right(y % 40) } else { v4.saturating_mul(v4) }).wrapping_mul((!v4.rotate_right(127u32 % 40)));
        if ((!v4) <= v4.wrapping_add(v4)) {
            let mut v9: u8 = (if (!true) { (!(v2 >> (y % 8))) } else { (if false { v2 } else { v2 }).wrapping_add((!0u8)) });
            let (mut v10, mut v11) = helper_b(x.min(0i32).wrapping_mul((x & 3i32)), (((-1.25f64) * 1000.0f64) as f32));
        } else {
            let mut v12: f64 = (-(-1.25f64).mul_add((-1.25f64), 1e-3f64)).ceil();
            v4 |= (match v4 { 0 => v4, 1 | 2 => v4, 3..=20 => v4, _ => 100i64 }).wrapping_mul((v4.count_ones() as i64));
        }
        let mut v13: [u8; 4] = [(if true { 2u8 } else { v2 }), v2, v2.min(v2), v2.saturating_sub(v2)];
        v13[((if true { y } else { y }) % 4) as usize] = v2;
        let mut v14: u8 = v13[(y.saturating_mul(y) % 4) as usize];
        if true {
            let mut v15: [f64; 4] = [(z as f64), (2u64 as f64), (z as f64), ((-0.0f64) - 7.75f64)];
            v15[(y.checked_sub(y).unwrap_or(u32::MIN) % 4) as usize] = ((z as f64) + (-7.75f64));
            let mut v16: f64 = v15[(y.wrapping_mul(100u32) % 4) as usize];
            'l17: for v17 in (0..9u32).step_by(3) {
                v2 |= (match (v4 << (y % 64)) { 0 => v2.checked_rem(31u8).unwrap_or(7u8), 1 | 2 => (if false { v2 } else { v14 }), 3..=20 => (v14 << (v17 % 8)), _ => v14 });
                let mut v18: i32 = x;
            }
        } else {
            if true {
                let mut v19: [i16; 4] = [i16::MAX.wrapping_sub(2i16), (i16::MIN >> (y % 16)), (-7i16).rotate_left(y % 40), i16::MIN.wrapping_mul(0i16)];
                v19[(y.max(y) % 4) as usize] = ((if false { (-100i16) } else { (-31i16) }) ^ (match x { 0 => (-127i16), 1 | 2 => (-3i16), 3..=20 => 7i16, _ => 0i16 }));
                let mut v20: i16 = v19[(y.checked_mul(1u32).unwrap_or(y) % 4) as usize];
                v14 = v14;
            } else {
                v4 = v4;
                v14 = (!v14.checked_div(v2).unwrap_or(v2)).wrapping_add((match y { 0 => v14, 1 | 2 => v2, 3..=20 => v14, _ => u8::MIN }).rotate_right(y.checked_rem(y).unwrap_or(y) % 40));
            }
            let mut v21: i64 = ((match 31u64 { 0 => 2i64, 1 | 2 => v4, 3..=20 => v4, _ => v4 }).count_ones() as i64).wrapping_mul((x as i64).checked_mul(31i64.wrapping_sub(31i64)).unwrap_or((match y { 0 => 0i64, 1 | 2 => v4, 3..=20 => v4, _ => 3i64 })));
        }
        let mut v22 = 0u32;
        let mut v23: u8 = loop {
            v22 += 1;
            let mut v24: [f64; 4] = [(-1e-3f64), (1e-3f32 as f64), (-1.25f64), ((-1.25f64) * 1e-3f64)];
            v24[((v22 as u32) % 4) as usize] = (z as f64);
            let mut v25: f64 = v24[(v22.max(y) % 4) as usize];
            if v22 > 3 || (false && false) { break (if false { v2 } else { v2 }).wrapping_mul(u8::MAX.wrapping_sub(v14)); }
        };
        *out = [((((y as u64).wrapping_mul(31).wrapping_add(v2 as u64)).wrapping_mul(31).wrapping_add(v4 as u64)).wrapping_mul(31).wrapping_add(v14 as u64)).wrapping_mul(31).wrapping_add(v23 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_12() {
    same(12, |x, out| program_12(x, out), program_12::load);
}

#[kernel]
fn program_13(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        z -= (match x { 0 => (-1.25f32), 1 | 2 => z, 3..=20 => 7.75f32, _ => z }).trunc();
        y = (match ((if false { z } else { z }) as i32) { 0 => y, 1 | 2 => (7i64 as u32), 3..=20 => 127u32.saturating_mul(127u32).saturating_sub(0u32.wrapping_add(y)), _ => y.min(7u32).rotate_right(2u32.checked_sub(y).unwrap_or(100u32) % 40) });
        let mut v1 = 0u32;
        let mut v2: i32 = loop {
            v1 += 1;
            if ((if true { true } else { false }) || (100u8 < 127u8)) {
                if true {
                    y = y.saturating_mul(y).saturating_sub(v1.wrapping_add(y)).wrapping_add((y.trailing_zeros() as u32).wrapping_add((if false { y } else { v1 })));
                    let mut v3: i16 = (if (if (2u8 == 7u8) { (if false { false } else { true }) } else { (!false) }) { (if false { 3i16 } else { (-3i16) }).wrapping_add((match y { 0 => 31i16, 1 | 2 => 7i16, 3..=20 => 7i16, _ => (-2i16) })) } else { 7i16.rotate_left((y.leading_zeros() as u32) % 40) });
                } else {
                    let mut v4: i64 = ((7i16 as i64) | 127i64.max(31i64).wrapping_add((100i64 ^ (-0i64))));
                    y = (v1 & v1).wrapping_mul((true as u32)).checked_div((u8::MAX as u32).wrapping_mul((y >> (y % 32)))).unwrap_or((2i32 as u32));
                }
                let mut v5 = y.checked_mul(100u32).unwrap_or(v1) % 6;
                while v5 > 0 {
                    v5 -= 1;
                    z -= ((if true { z } else { z }) / (if true { 1e-3f32 } else { z }));
                    y &= (v1 << (v1 % 32)).min(y.min(v1));
                }
            } else {
                'l6: for v6 in 0..1u32 {
                    z += ((z * z) / (7.75f32 * z));
                    y = (y.wrapping_add(31u32).wrapping_add(v1.rotate_left(1u32 % 40)) & (!v1));
                    if (if true { true } else { false }) { continue; }
                    let mut v7: u8 = u8::MAX.checked_sub(0u8).unwrap_or(1u8).wrapping_mul(0u8.wrapping_sub(7u8)).rotate_right(v1 % 40);
                }
                let (mut v8, mut v9) = helper_a((!31i32.wrapping_add(x)), (z.round() + z));
            }
            if v1 > 2 || (true && false) { break x; }
        };
        y = y.saturating_sub(y.min(y).wrapping_mul(y));
        let mut v10: u64 = (if ((false && true) && (if true { true } else { true })) { ((z / 7.75f32) as u64) } else { 0u64.wrapping_sub(u64::MAX) });
        v2 = (v2.wrapping_mul(x).saturating_add(v2.max(v2)).trailing_zeros() as i32);
        y = (y.trailing_zeros() as u32).wrapping_mul((if true { y } else { y })).wrapping_mul(y);
        *out = [((y as u64).wrapping_mul(31).wrapping_add(v2 as u64)).wrapping_mul(31).wrapping_add(v10 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_13() {
    same(13, |x, out| program_13(x, out), program_13::load);
}

#[kernel]
fn program_14(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1: i32 = (!(-3i32)).wrapping_add((match 7u8 { 0 => 100i32, 1 | 2 => x, 3..=20 => 127i32, _ => x })).wrapping_add(((1u8 & 2u8) as i32));
        let mut v2: [i32; 4] = [(v1 >> (0u32 % 32)), (z as i32), (i32::MIN << (y % 32)), (x >> (y % 32))];
        v2[(y.wrapping_sub(y) % 4) as usize] = (!(if false { v1 } else { (-3i32) }));
        let mut v3: i32 = v2[((y << (0u32 % 32)) % 4) as usize];
        let mut v4 = 0u32;
        let mut v5: i64 = loop {
            v4 += 1;
            'l6: for v6 in (0..9u32).step_by(1) {
                let (mut v7, mut v8) = helper_b((if (false || false) { 127i32 } else { (x & x) }), (x.wrapping_mul((-100i32)) as f32));
                let mut v9 = 0u32;
                let mut v10: u64 = loop {
                    v9 += 1;
                    let mut v11: f64 = ((match (0i16.count_ones() as i16) { 0 => (match 100u64 { 0 => 1000.0f64, 1 | 2 => 0.5f64, 3..=20 => (-1.25f64), _ => (-1.25f64) }), 1 | 2 => 0.5f64.mul_add(0.5f64, 1e-3f64), 3..=20 => 0.1f64, _ => 1000.0f64 }) / ((-7.75f64) / 7.75f64.mul_add(0.1f64, 0.1f64)));
                    if v9 > 2 || (true && false) { break (0.5f64 as u64).min((31u64.leading_zeros() as u64)); }
                };
                if (true || true) { break 'l6; }
                let mut v12: bool = (((-0.5f64) - (if true { 1e-3f64 } else { 0.1f64 })) != (z.sqrt() as f64));
            }
            if v4 > 4 || (if false { true } else { true }) { break (!(!i64::MAX)); }
        };
        let mut v13: [i32; 4] = [(true as i32), v1.max(x), (v5 as i32), (x << (1u32 % 32))];
        v13[((if true { y } else { 3u32 }) % 4) as usize] = (v5.wrapping_sub(v5) as i32);
        let mut v14: i32 = v13[((if true { y } else { y }) % 4) as usize];
        let mut v15: f64 = (match y { 0 => (1e-3f64 - 1e-3f64.sqrt()), 1 | 2 => 3.0f64, 3..=20 => (-0.0f64).trunc().abs(), _ => ((if true { 31i64 } else { v5 }) as f64) });
        let (mut v16, mut v17) = helper_b((!v1).wrapping_mul((127i32.trailing_zeros() as i32)), (1e-3f32 - (2i16 as f32)));
        v14 |= v16;
        *out = [(((((y as u64).wrapping_mul(31).wrapping_add(v1 as u64)).wrapping_mul(31).wrapping_add(v3 as u64)).wrapping_mul(31).wrapping_add(v5 as u64)).wrapping_mul(31).wrapping_add(v14 as u64)).wrapping_mul(31).wrapping_add(mixed_f64(v15)), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_14() {
    same(14, |x, out| program_14(x, out), program_14::load);
}

#[kernel]
fn program_15(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        'l1: for v1 in (0..9u32).step_by(3) {
            let mut v2: u32 = v1.wrapping_sub((v1 as u32));
            let mut v3 = 0u32;
            let mut v4: i64 = loop {
                v3 += 1;
                if (if (i64::MAX > 7i64) { (3i16 <= 1i16) } else { (!false) }) {
                    let mut v5: i64 = (!((-2i64).checked_add((-0i64)).unwrap_or(31i64) & (-0i64).wrapping_sub(i64::MAX)));
                    let mut v6: u64 = 100u64;
                }
                if v3 > 2 || (match (-2i16) { 0 => false, 1 | 2 => true, 3..=20 => true, _ => false }) { break (100i64 >> (y.rotate_left(v3 % 40) % 64)); }
            };
        }
        y = y.wrapping_add(y).checked_mul((y.trailing_zeros() as u32)).unwrap_or(y.saturating_add(y)).checked_div(y.wrapping_add(y).min((match 7u8 { 0 => 7u32, 1 | 2 => 1u32, 3..=20 => y, _ => y }))).unwrap_or((if (true || false) { u32::MIN.rotate_left(y % 40) } else { y.checked_add(31u32).unwrap_or(y) }));
        z = z.abs();
        y = (!((if true { 3u32 } else { u32::MIN }).count_ones() as u32));
        z *= ((0.5f64 as f32) - z.round());
        z -= (z - (1000.0f64 as f32));
        let mut v7: u32 = y;
        *out = [(y as u64).wrapping_mul(31).wrapping_add(v7 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_15() {
    same(15, |x, out| program_15(x, out), program_15::load);
}

#[kernel]
fn program_16(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        y ^= (if true { y } else { y }).wrapping_sub((!y));
        let mut v1: [u8; 4] = [31u8.saturating_mul(31u8), (u8::MAX.leading_zeros() as u8), 100u8.wrapping_add(0u8), (31u8.leading_zeros() as u8)];
        v1[(1u32.wrapping_add(y) % 4) as usize] = 7u8.wrapping_add(u8::MIN).checked_mul((if true { 2u8 } else { 31u8 })).unwrap_or((match 127u64 { 0 => 31u8, 1 | 2 => u8::MIN, 3..=20 => 127u8, _ => 127u8 }));
        let mut v2: u8 = v1[(y.rotate_left(7u32 % 40) % 4) as usize];
        let mut v3 = (2u32 | y) % 6;
        while v3 > 0 {
            v3 -= 1;
            let mut v4: u32 = (!0u32);
            let (mut v5, mut v6) = helper_a((if false { (if false { x } else { x }) } else { x.min(x) }), (if (v4 <= y) { (if false { z } else { z }) } else { (z / z) }));
        }
        if (7u64.saturating_mul(0u64) == (3u64.count_ones() as u64)) {
            z += ((z * 1e-3f32) - (3.0f32 - z));
            if ((y == y) && (true && true)) {
                let mut v7 = 0u32;
                let mut v8: u8 = loop {
                    v7 += 1;
                    z += z;
                    if v7 > 3 || (!true) { break v2; }
                };
                let mut v9 = y.rotate_left(y % 40) % 6;
                while v9 > 0 {
                    v9 -= 1;
                    y = (v9.rotate_right(v9 % 40) as u32);
                    v2 = (!100u8);
                }
            } else {
                let (mut v10, mut v11) = helper_b(x.wrapping_mul(x).saturating_mul(x.checked_sub(x).unwrap_or(x)), (if true { (if true { 0.5f32 } else { z }) } else { (if false { z } else { z }) }));
                let (mut v12, mut v13) = helper_b(v10, (2i64.rotate_right(y % 40) as f32));
            }
        }
        let mut v14: f64 = 1000.0f64.mul_add(((7.75f64 + (-0.0f64)) - (match v2 { 0 => (-0.0f64), 1 | 2 => 0.1f64, 3..=20 => 1000.0f64, _ => 1000.0f64 })), ((3.0f64 * (-1.25f64)) / (if true { 0.1f64 } else { 1000.0f64 })));
        let mut v15: i64 = i64::MAX.max((-3i64)).saturating_mul((-0i64).wrapping_mul((-1i64))).wrapping_sub(((!2i64).trailing_zeros() as i64));
        if ((-v14) > v14) {
            z *= (if (2u64 > 2u64) { (v14 as f32) } else { (match 1i32 { 0 => z, 1 | 2 => 7.75f32, 3..=20 => z, _ => z }) });
            let mut v16: i32 = (if ((true && false) && (true || true)) { (if (false || false) { x.max(x) } else { x.wrapping_sub(x) }) } else { (match (-0i16) { 0 => x, 1 | 2 => x, 3..=20 => x, _ => (-3i32) }).wrapping_mul((0i32 | x)) });
        }
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(v2 as u64)).wrapping_mul(31).wrapping_add(mixed_f64(v14))).wrapping_mul(31).wrapping_add(v15 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_16() {
    same(16, |x, out| program_16(x, out), program_16::load);
}

#[kernel]
fn program_17(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1 = (!2u32) % 6;
        while v1 > 0 {
            v1 -= 1;
            let mut v2 = (!v1) % 6;
            while v2 > 0 {
                v2 -= 1;
                if ((7.75f64 == 1000.0f64) && (0u64 != 31u64)) {
                    z -= (if (true || false) { z } else { (0.5f64 as f32) });
                    y = (v2.leading_zeros() as u32);
                }
                if ((z as f64) == (1u64 as f64)) {
                    y = ((v2.max(y).trailing_zeros() as u32) << (y.wrapping_add(y).min(v1.saturating_mul(y)) % 32));
                    y ^= u32::MIN.checked_mul(v1.wrapping_mul(y)).unwrap_or(y.saturating_mul(v1));
                }
            }
            let mut v3 = 0u32;
            let mut v4: i64 = loop {
                v3 += 1;
                let mut v5 = 0u32;
                let mut v6: u8 = loop {
                    v5 += 1;
                    let mut v7: i16 = 3i16.wrapping_sub(0i16).wrapping_sub((!(-31i16))).wrapping_sub((if (!false) { i16::MAX.saturating_mul(31i16) } else { (127i16 | 3i16) }));
                    if v5 > 3 || (u64::MAX <= 1u64) { break 127u8.wrapping_add(1u8).rotate_right(v5.wrapping_sub(u32::MAX) % 40); }
                };
                if v3 > 4 || ((-0.0f64) > 0.1f64) { break (-1i64).wrapping_add(31i64).min(((-100i64) >> (y % 64))); }
            };
        }
        y = y;
        let mut v8: [f32; 4] = [(z / (-1.25f32)), (z * z), (-z), (z + z)];
        v8[(2u32.wrapping_add(127u32) % 4) as usize] = (if true { z } else { 0.5f32 }).mul_add((z * z), (z + z));
        let mut v9: f32 = v8[(y.saturating_sub(3u32) % 4) as usize];
        v9 = (((if true { v9 } else { z }) - (z * 0.5f32)) + (if (i64::MIN == (-7i64)) { (z / z) } else { (v9 * z) }));
        let mut v10: [i32; 4] = [x.checked_sub(x).unwrap_or(x), x.wrapping_add(127i32), (!x), x.max(0i32)];
        v10[(7u32.checked_sub(y).unwrap_or(127u32) % 4) as usize] = (-7i32).wrapping_add(x).wrapping_mul((if false { x } else { 127i32 }));
        let mut v11: i32 = v10[((if true { y } else { y }) % 4) as usize];
        let mut v12: [i32; 4] = [x.wrapping_sub(x), (31u64 as i32), v11.checked_mul(v11).unwrap_or(x), (if false { v11 } else { v11 })];
        v12[(y % 4) as usize] = (if false { 100i32 } else { (-3i32) }).rotate_right((2u32 >> (y % 32)) % 40);
        let mut v13: i32 = v12[(0u32 % 4) as usize];
        let mut v14: [i32; 4] = [v13.max(x), x, x.min(v11), (match 31u8 { 0 => v13, 1 | 2 => v11, 3..=20 => v13, _ => v11 })];
        v14[((3.0f64 as u32) % 4) as usize] = (-7i32);
        let mut v15: i32 = v14[(y % 4) as usize];
        *out = [((((y as u64).wrapping_mul(31).wrapping_add(mixed_f32(v9))).wrapping_mul(31).wrapping_add(v11 as u64)).wrapping_mul(31).wrapping_add(v13 as u64)).wrapping_mul(31).wrapping_add(v15 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_17() {
    same(17, |x, out| program_17(x, out), program_17::load);
}

#[kernel]
fn program_18(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1: u8 = 1u8;
        v1 &= v1;
        if (y.wrapping_add(y) > (y >> (0u32 % 32))) {
            if (!(true && false)) {
                y |= (if true { y } else { y.saturating_add(y) });
                let mut v2 = 0u32;
                let mut v3: u64 = loop {
                    v2 += 1;
                    y &= (!(if true { v2 } else { y }));
                    if v2 > 1 || (false || false) { break 127u64.saturating_sub(u64::MAX.saturating_sub(u64::MIN)); }
                };
            } else {
                'l4: for v4 in (1..3u32).rev() {
                    v1 ^= (2i64.rotate_right(u32::MAX % 40) as u8);
                    y = ((-31i64) as u32);
                }
                if (if (true || false) { (match x { 0 => true, 1 | 2 => true, 3..=20 => false, _ => false }) } else { (7i16 >= 3i16) }) {
                    v1 = 3u8.wrapping_sub(2u8);
                    z = ((3.0f64.trunc() * (match i64::MAX { 0 => (-0.0f64), 1 | 2 => 1e-3f64, 3..=20 => 0.1f64, _ => 3.0f64 })) as f32);
                }
            }
            let mut v5: i64 = (!((-127i16) as i64).checked_rem((if true { (-31i64) } else { 7i64 })).unwrap_or((-2i64)));
        }
        if ((false || false) || (match v1 { 0 => false, 1 | 2 => false, 3..=20 => false, _ => true })) {
            let mut v6: i64 = (if (false || (2u64 != 2u64)) { (!(-0i64)).min((if false { (-100i64) } else { 2i64 })) } else { 2i64.wrapping_add((7i64 ^ 2i64)) });
            v1 &= v1.saturating_sub(v1).wrapping_mul(v1.wrapping_add(v1));
        } else {
            v1 = 0u8;
            v1 = (v1.leading_zeros() as u8).wrapping_sub((if true { v1 } else { v1 })).wrapping_mul((v1.leading_zeros() as u8).wrapping_sub(u8::MIN));
        }
        let mut v7: bool = ((match x.wrapping_sub(x) { 0 => (true || false), 1 | 2 => (if false { true } else { true }), 3..=20 => (if true { true } else { false }), _ => (!false) }) || (!(31i16 != 2i16)));
        let mut v8: u64 = (i16::MIN as u64);
        v1 &= (if (i16::MAX > 0i16) { (!v1) } else { v1 });
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(v1 as u64)).wrapping_mul(31).wrapping_add(v7 as u64)).wrapping_mul(31).wrapping_add(v8 as u64), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_18() {
    same(18, |x, out| program_18(x, out), program_18::load);
}

#[kernel]
fn program_19(input: &[i32], out: Out<[u64; 3]>) {
    if let Some((i, out)) = out.mine() {
        let x = input[i];
        let mut y = x as u32;
        let mut z = x as f32 * 0.5;
        let mut v1 = (if true { y } else { y }) % 6;
        while v1 > 0 {
            v1 -= 1;
            let (mut v2, mut v3) = helper_b((7i32.leading_zeros() as i32).wrapping_sub(x.wrapping_add(x)), (z - z).round());
            v3 -= (-(z * z));
        }
        let mut v4: [u8; 4] = [31u8, (match (-127i16) { 0 => 7u8, 1 | 2 => 0u8, 3..=20 => 7u8, _ => 2u8 }), (if true { 31u8 } else { 3u8 }), 7u8.rotate_right(y % 40)];
        v4[(7u32.max(y) % 4) as usize] = 3u8.max(127u8).wrapping_add(3u8);
        let mut v5: u8 = v4[(31u32.wrapping_add(y) % 4) as usize];
        if ((if true { (-3i16) } else { 1i16 }) >= (-31i16).min((-7i16))) {
            let mut v6: [i32; 4] = [(127i32.count_ones() as i32), (x.trailing_zeros() as i32), (x as i32), (x.trailing_zeros() as i32)];
            v6[((match 3i32 { 0 => y, 1 | 2 => y, 3..=20 => y, _ => y }) % 4) as usize] = x;
            let mut v7: i32 = v6[(y.wrapping_sub(y) % 4) as usize];
            y = 127u32.min(y).min(127u32.wrapping_add(y)).min(u32::MAX.rotate_left(100u32 % 40).saturating_add(u32::MIN.wrapping_sub(y)));
        }
        let mut v8: [f32; 4] = [(-z), z, (z - z), 7.75f32];
        v8[(y.rotate_right(y % 40) % 4) as usize] = (if (z == 0.5f32) { (z - z) } else { (-(-1.25f32)) });
        let mut v9: f32 = v8[(1u32 % 4) as usize];
        let mut v10: f32 = (match (3i64 ^ i64::MAX).wrapping_sub((7i64 | 7i64)) { 0 => ((if false { 3.0f32 } else { z }) * (-1000.0f32)), 1 | 2 => z.round().sqrt(), 3..=20 => (v5 as f32), _ => (z + (if false { z } else { z })) });
        v10 -= (if (false || true) { (v10 / z) } else { v10 });
        y |= (!(!0u32));
        *out = [(((y as u64).wrapping_mul(31).wrapping_add(v5 as u64)).wrapping_mul(31).wrapping_add(mixed_f32(v9))).wrapping_mul(31).wrapping_add(mixed_f32(v10)), mixed_f32(z), y as u64];
    }
}

#[test]
fn runs_alike_19() {
    same(19, |x, out| program_19(x, out), program_19::load);
}
