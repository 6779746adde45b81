//! Programs in ordinary Rust, as somebody writes them who has not read which Rust kernels have.

use std::ops::{Add, Mul};

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::*;

const LIMITS: [i32; 4] = [0, 10, 100, 1000];
const SCALE: i32 = 3;

programs! {
    sums_by_iterators(x: i32) -> i32, SMALL, {
        let all = [x, x + 1, x * 2, 7];
        let sum: i32 = all.iter().sum();
        let product: i32 = all.iter().map(|v| v % 5).product();
        sum + product
    }
    folds_with_closures_that_capture(x: i32) -> i32, SMALL, {
        let weights = [1, 2, 3, 4];
        let shift = x & 3;
        weights.iter().enumerate().fold(0, |sum, (i, w)| sum + (*w << shift) * i as i32)
    }
    zips_and_maps(x: i32) -> i32, SMALL, {
        let a = [x, 2, 3];
        let b = [4, x, 6];
        a.iter().zip(b.iter()).map(|(p, q)| p * q).sum::<i32>()
    }
    ranges_that_step_and_go_backwards(x: u32) -> u32, COUNTS, {
        let mut sum = 0;
        for i in (0..x).rev() {
            sum = (sum * 3 + i) % 1000;
        }
        for i in (0..=x).step_by(2) {
            sum ^= i << 4;
        }
        sum
    }
    labelled_loops(x: u32) -> u32, COUNTS, {
        let mut found = 0;
        'rows: for i in 0..10u32 {
            for j in 0..10u32 {
                if i * j == x {
                    found = i * 100 + j;
                    break 'rows;
                }
                if j > i {
                    continue 'rows;
                }
            }
        }
        found
    }
    a_loop_with_a_value(x: u32) -> u32, COUNTS, {
        let mut n = x;
        let steps = loop {
            if n <= 1 {
                break x * 10;
            }
            n = if n % 2 == 0 { n / 2 } else { n - 1 };
        };
        steps + n
    }
    a_block_with_a_value_that_is_left(x: i32) -> i32, SMALL, {
        let kind = 'kind: {
            if x < 0 {
                break 'kind -1;
            }
            if x % 2 == 0 {
                break 'kind 2;
            }
            1
        };
        kind * 100 + x
    }
    matches_with_guards_ranges_and_bindings(x: i32) -> i32, I32S, {
        match x {
            i32::MIN..=-1 => -1,
            0 => 0,
            n @ 1..=9 if n % 2 == 1 => n * 10,
            n @ (2 | 4 | 6 | 8) => n,
            10..100 => 1,
            _ => 2,
        }
    }
    matches_on_tuples(x: i32) -> i32, SMALL, {
        match (x % 2, x % 3) {
            (0, 0) => 6,
            (0, _) => 2,
            (_, 0) => 3,
            (a, b) => a * 10 + b,
        }
    }
    if_let_chains(x: i32) -> i32, SMALL, {
        let half = if x % 2 == 0 { Some(x / 2) } else { None };
        if let Some(half) = half && let Some(more) = half.checked_sub(2) && more > 0 { more } else { -1 }
    }
    options_with_their_methods(x: i32) -> i32, SMALL, {
        let some = if x > 2 { Some(x) } else { None };
        some.map(|v| v * 2).filter(|v| v % 4 == 2).unwrap_or(x - 100)
    }
    arrays_of_arrays(x: i32) -> i32, SMALL, {
        let mut grid = [[0i32; 3]; 3];
        for (r, row) in grid.iter_mut().enumerate() {
            for (c, cell) in row.iter_mut().enumerate() {
                *cell = x * r as i32 + c as i32;
            }
        }
        grid[1][2] + grid[(x & 1) as usize][(x & 1) as usize + 1] * 10
    }
    tuples_in_tuples(x: i32) -> i32, SMALL, {
        let pair = (x, (x + 1, [x + 2, x + 3]));
        let (a, (b, [c, d])) = pair;
        a + 2 * b + 3 * c + 4 * d + pair.1.0
    }
    shadowed_names(x: i32) -> i32, SMALL, {
        let x = x + 1;
        let x = { let x = x * 2; x + 1 };
        let x = if x > 5 { let x = x - 5; x } else { x };
        x
    }
    constants_of_the_module_and_the_function(x: i32) -> i32, SMALL, {
        const OWN: i32 = SCALE * 7;
        let index = (x & 3) as usize;
        LIMITS[index] * SCALE + OWN
    }
    checked_and_saturating(x: i8) -> i32, I8S, {
        let a = x.checked_add(100).map_or(-1, |v| v as i32);
        let b = x.saturating_mul(3) as i32;
        let c = x.wrapping_sub(100) as i32;
        let (d, e) = x.overflowing_add(50);
        let f = x.checked_div(0).is_none() as i32;
        a + b * 3 + c * 5 + d as i32 * 7 + e as i32 * 1000 + f
    }
    unsigned_of_every_width(x: u64) -> u64, U64S, {
        let a = (x as u8).rotate_left(3) as u64;
        let b = (x as u16).swap_bytes() as u64;
        let c = (x as u32).leading_zeros() as u64 + (x as u32).trailing_zeros() as u64;
        let d = x.count_ones() as u64 + x.reverse_bits() % 97;
        a ^ (b << 8) ^ (c << 24) ^ (d << 40)
    }
    casts_of_all_kinds(x: i64) -> i64, I64S, {
        let a = x as u8 as i64;
        let b = x as i16 as i64;
        let c = x as f32 as i64;
        let d = (x as f64 * 0.5) as u32 as i64;
        let e = (x as u64 >> 63) as usize as i64;
        let f = (x % 2 == 0) as i64;
        a ^ (b << 3) ^ (c << 1) ^ (d << 7) ^ (e << 40) ^ (f << 50)
    }
    bits_of_floats(x: f32) -> u32, F32S, {
        let bits = x.to_bits();
        let back = f32::from_bits(bits ^ (1 << 31));
        if x.is_nan() { 7 } else { back.to_bits().wrapping_add(x.abs().to_bits()) }
    }
    signs_and_classes(x: f32) -> i32, F32S, {
        let a = if x.is_sign_negative() { 1 } else { 0 };
        let b = if x.is_finite() { 2 } else { 0 };
        let c = if x < 1.0 {
            4
        } else if x == 1.0 {
            8
        } else {
            16
        };
        if x.is_nan() { b + c } else { a + b + c }
    }
    clamps_and_orders(x: i32) -> i32, I32S, {
        let a = x.clamp(-5, 1000);
        let b = x.max(3).min(77);
        let c = x.signum() + (x > 2 && x != 8 || x == -1) as i32;
        a ^ b ^ c
    }
    powers_and_roots_of_integers(x: u32) -> u32, COUNTS, {
        let a = x.pow(3);
        let b = 2u32.pow(x % 8);
        let c = x.abs_diff(9) + x.div_ceil(4) + x.next_power_of_two();
        a ^ (b << 12) ^ (c << 20)
    }
    euclid(x: i32) -> i32, SMALL, {
        x.rem_euclid(5) * 100 + x.div_euclid(3) + (-x).rem_euclid(4)
    }
    bytes_and_letters(x: u8) -> u8, U8S, {
        match x {
            b'a'..=b'z' => x - b'a' + b'A',
            b'0' => b'z',
            _ => x.wrapping_add(1),
        }
    }
    swaps_and_replaces(x: i32) -> i32, SMALL, {
        let mut all = [x, x + 10, x + 20];
        all.swap(0, 2);
        let mut a = all[0];
        let mut b = all[1];
        std::mem::swap(&mut a, &mut b);
        (a, b) = (b - 1, a + 1);
        a * 7 + b + all[2]
    }
    compound_assignments(x: u32) -> u32, COUNTS, {
        let mut v = x;
        v += 3;
        v *= 5;
        v -= 1;
        v <<= 2;
        v |= 1;
        v ^= 0xff;
        v &= !2;
        v >>= 1;
        v %= 1000;
        v /= 3;
        v
    }
    any_all_and_position(x: i32) -> i32, SMALL, {
        let all = [1, 3, 5, 8, 13];
        let any = all.iter().any(|v| *v == x) as i32;
        let each = all.iter().all(|v| *v > x) as i32;
        let at = all.iter().position(|v| *v > x).map_or(-1, |i| i as i32);
        any + 2 * each + 10 * at
    }
    min_and_max_of_iterators(x: i32) -> i32, SMALL, {
        let all = [x * 3 % 7, x, 4];
        let least = all.iter().copied().min().unwrap_or(0);
        let most = all.iter().copied().max().unwrap_or(0);
        least * 100 + most
    }
}

/// A vector with operators, in the way people write one.
#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Vec2<T> {
    x: T,
    y: T,
}

#[device]
impl<T: Copy + Add<Output = T>> Add for Vec2<T> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Vec2 { x: self.x + other.x, y: self.y + other.y }
    }
}

#[device]
impl<T: Copy + Mul<Output = T>> Mul<T> for Vec2<T> {
    type Output = Self;

    fn mul(self, by: T) -> Self {
        Self { x: self.x * by, y: self.y * by }
    }
}

#[device]
impl<T: Copy + Add<Output = T> + Mul<Output = T>> Vec2<T> {
    const PARTS: u32 = 2;

    fn dot(self, other: Self) -> T {
        self.x * other.x + self.y * other.y
    }
}

#[device]
fn horner<T: Copy + Add<Output = T> + Mul<Output = T>, const N: usize>(factors: [T; N], at: T) -> T {
    let mut sum = factors[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * at + factors[i];
    }
    sum
}

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
#[repr(u8)]
enum Shape {
    Point,
    Circle(f32),
    Box { size: Vec2<f32>, corners: [f32; 4] },
}

#[device]
impl Shape {
    fn area(&self) -> f32 {
        match *self {
            Shape::Point => 0.0,
            Shape::Circle(r) => 3.0 * r * r,
            Shape::Box { size: Vec2 { x, y }, corners } => x * y - corners[0] - corners[3],
        }
    }
}

programs! {
    generic_vectors(x: i32) -> i32, SMALL, {
        let a = Vec2 { x, y: x + 1 };
        let b = Vec2 { y: 2, ..a };
        let c = (a + b) * 3;
        c.dot(a) + Vec2::<i32>::PARTS as i32
    }
    generic_functions_with_const_generics(x: i32) -> i32, SMALL, {
        horner([1, 2, 3], x) + horner::<i32, 2>([x, 5], 7)
    }
    enums_with_structs_and_arrays(x: f32) -> f32, [0.0, 1.0, 2.5, -3.0], {
        let shape = if x < 0.0 {
            Shape::Point
        } else if x < 2.0 {
            Shape::Circle(x)
        } else {
            Shape::Box { size: Vec2 { x, y: 2.0 }, corners: [x, 0.0, 0.0, 0.25] }
        };
        let twice = [shape, Shape::Circle(2.0)];
        twice[0].area() + twice[1].area() + matches!(shape, Shape::Point) as u32 as f32
    }
}

#[test]
fn slices_of_slices_chunks_and_windows() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let middle = &x[1..x.len() - 1];
            let inner = &middle[1..];
            let mut sum = inner[i % inner.len()] * 100 + inner.len() as i32 + middle[middle.len() - 1];
            for pair in x.chunks_exact(2) {
                sum = sum * 3 + pair[0] - pair[1];
            }
            for three in x.windows(3) {
                sum += three[0] * three[2];
            }
            *out = sum;
        }
    }
    same("slices of slices", |x, out| program(x, out), program::load, &[1, 5, 2, 8, 3, 9, 4]);
}

#[test]
fn early_returns_and_loops_over_slices_with_offsets() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        let Some((i, out)) = out.mine() else { return };
        if i % 5 == 4 {
            *out = -1;
            return;
        }
        let (mut sum, mut k) = (0, i);
        while k + 1 < x.len() {
            sum += x[k] * x[k + 1];
            k += 2;
        }
        for k in 0..x.len() {
            sum = (sum * 2 + x[(i + k) % x.len()]) % 1_000;
            if sum > 500 {
                sum -= 499;
            }
        }
        *out = sum;
    }
    for len in [1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 40] {
        let input: Vec<i32> = (0..len).map(|i| i * 7 % 11).collect();
        same("early returns", |x, out| program(x, out), program::load, &input);
    }
}

#[test]
fn short_loops_of_any_number_of_passes_and_any_start() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let mut sum = 0;
            for k in i..x.len() {
                sum += x[k] * (k as i32 + 1);
            }
            let end = x[i] & 15;
            let mut k = -3;
            while k < end {
                sum ^= x[(k & 7) as usize % x.len()] + k;
                k += 3;
            }
            let mut from = u32::MAX - (x[i] & 7) as u32;
            while from < u32::MAX {
                sum += x[(from % x.len() as u32) as usize];
                from += 1;
            }
            *out = sum;
        }
    }
    for len in 1..30 {
        let input: Vec<i32> = (0..len).map(|i| i * 13 % 17 - 5).collect();
        same("short loops", |x, out| program(x, out), program::load, &input);
    }
}
