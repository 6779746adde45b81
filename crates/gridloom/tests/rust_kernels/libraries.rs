//! Generics, traits, modules, operators, casts and bits, as somebody writes them.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use gridloom::{KernelType, Out, device, kernel};
use half::{bf16, f16};

use crate::harness::*;

#[derive(Clone, Copy, Debug, Default, KernelType)]
#[repr(C)]
struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Vec3 {
    const UP: Self = Self { x: 0.0, y: 1.0, z: 0.0 };
    const fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }
    fn splat(v: f32) -> Self {
        Self::new(v, v, v)
    }
    fn dot(self, o: Self) -> f32 {
        self.x * o.x + self.y * o.y + self.z * o.z
    }
    fn cross(self, o: Self) -> Self {
        Vec3::new(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)
    }
    fn length(self) -> f32 {
        self.dot(self).sqrt()
    }
    fn normalized(self) -> Self {
        self / self.length()
    }
    fn to_array(self) -> [f32; 3] {
        [self.x, self.y, self.z]
    }
    fn max_element(&self) -> f32 {
        self.to_array().iter().copied().fold(f32::MIN, |a, b| if b > a { b } else { a })
    }
    fn lerp(a: Vec3, b: Vec3, t: f32) -> Vec3 {
        a * (1.0 - t) + b * t
    }
}
#[device]
impl Add for Vec3 {
    type Output = Vec3;
    fn add(self, o: Vec3) -> Vec3 {
        Vec3 { x: self.x + o.x, y: self.y + o.y, z: self.z + o.z }
    }
}
#[device]
impl Sub for Vec3 {
    type Output = Self;
    fn sub(self, o: Self) -> Self::Output {
        self + -o
    }
}
#[device]
impl Neg for Vec3 {
    type Output = Vec3;
    fn neg(self) -> Vec3 {
        Vec3::new(-self.x, -self.y, -self.z)
    }
}
#[device]
impl Mul<f32> for Vec3 {
    type Output = Vec3;
    fn mul(self, k: f32) -> Vec3 {
        Vec3::new(self.x * k, self.y * k, self.z * k)
    }
}
#[device]
impl Mul for Vec3 {
    type Output = Vec3;
    fn mul(self, v: Vec3) -> Vec3 {
        Vec3::new(self.x * v.x, self.y * v.y, self.z * v.z)
    }
}
#[device]
impl Div<f32> for Vec3 {
    type Output = Vec3;
    fn div(self, k: f32) -> Vec3 {
        self * (1.0 / k)
    }
}
#[device]
impl PartialEq for Vec3 {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x && self.y == other.y && self.z == other.z
    }
}
#[device]
impl AddAssign for Vec3 {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

#[derive(Clone, Copy, KernelType)]
struct Ray {
    origin: Vec3,
    direction: Vec3,
}

#[derive(Clone, Copy, KernelType)]
struct Sphere {
    center: Vec3,
    radius: f32,
}

#[device]
impl Sphere {
    fn hit(&self, ray: &Ray) -> Option<f32> {
        let oc = ray.origin - self.center;
        let b = oc.dot(ray.direction);
        let c = oc.dot(oc) - self.radius * self.radius;
        let d = b * b - c;
        if d < 0.0 {
            return None;
        }
        let t = -b - d.sqrt();
        if t > 1e-3 { Some(t) } else { None }
    }
}

const SCENE: [Sphere; 3] = [
    Sphere { center: Vec3 { x: 0.0, y: 0.0, z: 5.0 }, radius: 1.0 },
    Sphere { center: Vec3 { x: 0.0, y: -101.0, z: 5.0 }, radius: 100.0 },
    Sphere { center: Vec3 { x: 1.5, y: 0.2, z: 4.0 }, radius: 0.7 },
];

#[kernel]
fn trace(x: &[f32], out: Out<f32>) {
    let Some((i, out)) = out.mine() else { return };
    let mut ray = Ray {
        origin: Vec3::default(),
        direction: Vec3::new(x[i].clamp(-2.0, 2.0) * 0.2, -0.1, 1.0).normalized(),
    };
    let mut light = Vec3::splat(0.0);
    let mut strength = 1.0;
    for _bounce in 0..3 {
        let mut nearest: Option<(usize, f32)> = None;
        for (k, s) in SCENE.iter().enumerate() {
            if let Some(t) = s.hit(&ray) {
                match nearest {
                    Some((_, best)) if best <= t => {}
                    _ => nearest = Some((k, t)),
                }
            }
        }
        let Some((k, t)) = nearest else {
            light += Vec3::lerp(Vec3::UP, Vec3::splat(1.0) * 0.5, ray.direction.y.abs()) * strength;
            break;
        };
        let p = ray.origin + ray.direction * t;
        let n = (p - SCENE[k].center) / SCENE[k].radius;
        light += Vec3::splat(0.1 * k as f32) * strength;
        strength *= 0.5;
        ray = Ray { origin: p, direction: ray.direction - n * (2.0 * ray.direction.dot(n)) };
    }
    *out = light.dot(Vec3::new(1.0, 2.0, 3.0))
        + light.max_element()
        + (light == Vec3::default()) as u8 as f32
        + light.cross(Vec3::UP).length();
}

mod linear {
    use gridloom::{KernelType, device};
    use std::ops::{Add, Mul};

    #[derive(Clone, Copy, Debug, PartialEq, KernelType)]
    pub(super) struct Matrix<T, const R: usize, const C: usize> {
        pub(super) m: [[T; C]; R],
    }

    #[device]
    impl<T: Copy + Default + Add<Output = T> + Mul<Output = T>, const R: usize, const C: usize> Matrix<T, R, C> {
        pub(super) const SIZE: usize = R * C;
        pub(super) fn zero() -> Self {
            Self { m: [[T::default(); C]; R] }
        }
        pub(super) fn transposed(&self) -> Matrix<T, C, R> {
            let mut t = Matrix::<T, C, R>::zero();
            for r in 0..R {
                for c in 0..C {
                    t.m[c][r] = self.m[r][c];
                }
            }
            t
        }
        pub(super) fn times<const K: usize>(&self, other: &Matrix<T, C, K>) -> Matrix<T, R, K> {
            let mut product = Matrix { m: [[T::default(); K]; R] };
            for r in 0..R {
                for k in 0..K {
                    let mut sum = T::default();
                    for c in 0..C {
                        sum = sum + self.m[r][c] * other.m[c][k];
                    }
                    product.m[r][k] = sum;
                }
            }
            product
        }
    }

    pub(super) mod deep {
        #[gridloom::device]
        pub(crate) fn mix(a: u32, b: u32) -> u32 {
            (a ^ b).wrapping_mul(0x9E37_79B9).rotate_left(super::SPIN) ^ self::more(b)
        }
        #[gridloom::device]
        fn more(b: u32) -> u32 {
            b >> 3 | crate::harness::U32S[3]
        }
    }
    const SPIN: u32 = 13;
}
use linear::Matrix;

#[device]
trait Semigroup: Copy {
    const ID: Self;
    fn join(self, other: Self) -> Self;
    fn repeat(self, n: u32) -> Self {
        let mut sum = Self::ID;
        let mut k = 0;
        while k < n {
            sum = sum.join(self);
            k += 1;
        }
        sum
    }
}
#[device]
impl Semigroup for i32 {
    const ID: i32 = 0;
    fn join(self, other: i32) -> i32 {
        self.wrapping_mul(3).wrapping_add(other)
    }
}
#[derive(Clone, Copy, KernelType)]
struct Max(f32);
#[device]
impl Semigroup for Max {
    const ID: Max = Max(f32::NEG_INFINITY);
    fn join(self, other: Self) -> Self {
        Max(self.0.max(other.0))
    }
}
#[device]
fn join_all<S: Semigroup, const N: usize>(all: [S; N]) -> S {
    let mut sum = S::ID;
    for v in all {
        sum = sum.join(v);
    }
    sum.join(all[0].repeat(2))
}

#[derive(Clone, Copy, KernelType)]
struct Complex<T>(T, T);
#[device]
impl<T> Mul for Complex<T>
where
    T: Copy + Mul<Output = T> + Add<Output = T> + Sub<Output = T>,
{
    type Output = Complex<T>;
    fn mul(self, Complex(c, d): Self) -> Self {
        let Self(a, b) = self;
        Complex(a * c - b * d, a * d + b * c)
    }
}
#[device]
impl<T: Copy + Mul<Output = T> + Add<Output = T>> Complex<T> {
    fn norm(&self) -> T {
        self.0 * self.0 + self.1 * self.1
    }
}

#[derive(Clone, Copy, KernelType)]
struct Modular<const P: u64>(u64);
#[device]
impl<const P: u64> PartialEq for Modular<P> {
    fn eq(&self, &Self(other): &Self) -> bool {
        self.0 == other
    }
}
#[device]
impl<const P: u64> Modular<P> {
    fn new(v: u64) -> Self {
        Self(v % P)
    }
    fn pow(self, mut e: u64) -> Self {
        let mut base = self;
        let mut acc = Self::new(1);
        while e > 0 {
            if e & 1 == 1 {
                acc = acc * base;
            }
            base = base * base;
            e >>= 1;
        }
        acc
    }
}
#[device]
impl<const P: u64> Mul for Modular<P> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Self(self.0 * o.0 % P)
    }
}

#[device]
fn largest<T: PartialOrd + Copy>(all: &[T]) -> T {
    let mut best = all[0];
    for &v in &all[1..] {
        if v > best {
            best = v;
        }
    }
    best
}

#[device]
fn apply<F: Fn(i32, i32) -> i32>(f: F, a: i32, b: i32) -> i32 {
    f(a, b) + f(b, a) * 10
}

programs! {
    generic_matrices(x: i32) -> i32, SMALL, {
        let a = Matrix { m: [[1, 2, x], [x, 5, 6]] };
        let p = a.times(&a.transposed());
        p.m[0][1] + p.m[1][1] * 3 + Matrix::<i32, 2, 3>::SIZE as i32 + Matrix::<u8, 4, 1>::zero().m[3][0] as i32
    }
    functions_of_inner_modules(x: u32) -> u32, U32S, {
        use linear::deep;
        deep::mix(x, 7) ^ linear::deep::mix(7, x) ^ self::linear::deep::mix(x, x)
    }
    traits_with_constants(x: i32) -> i32, SMALL, {
        join_all([x, 2, 3]) + join_all([Max(x as f32), Max(1.5)]).0 as i32 + <i32 as Semigroup>::ID + i32::ID
    }
    complex_numbers(x: i32) -> i64, SMALL, {
        let z = Complex(x as i64, 2);
        let mut w = z;
        for _ in 0..3 {
            w = w * z;
        }
        w.norm() + (Complex(1.5f32, 0.5) * Complex(2.0, x as f32)).norm() as i64
    }
    powers_modulo_a_prime(x: u64) -> u64, U64S, {
        let m = Modular::<1_000_007>::new(x).pow(x & 0xffff);
        m.0 + Modular::<97>::new(x).pow(5).0 + (Modular::<7>(3) == Modular(3)) as u64
    }
    generic_comparison(x: i32) -> i32, SMALL, {
        largest(&[3, x, 4]) + largest(&[x as f32 * 0.5, 2.0]) as i32 + largest::<u8>(&[1, 9, x as u8])
            as i32
    }
    closures_that_are_passed(x: i32) -> i32, SMALL, {
        let k = 3;
        apply(|a, b| a - b * k, x, 2) + apply(|a: i32, _| a.pow(2), x, 4)
    }
    casts_between_all_integers(x: i64) -> i64, I64S, {
        let all = [
            x as i8 as i64, x as u8 as i64, x as i16 as i64, x as u16 as i64, x as i32 as i64, x as u32 as i64,
            x as u64 as i64, x as usize as i64, x as isize as i64, x as i8 as u8 as i64, x as u8 as i8 as i64,
            x as i8 as u64 as i64, x as i16 as u32 as i64, x as u16 as i32 as i64, x as i32 as u16 as i16 as i64,
            (x as i32 as u64) as i64, (x as i8 as u16 as u64) as i64, (x < 0) as u8 as i64, !(x as u8) as i64,
        ];
        let mut h = 17i64;
        for v in all {
            h = h.wrapping_mul(31).wrapping_add(v);
        }
        h
    }
    casts_from_floats(x: f32) -> i64, F32S, {
        let all = [
            x as i8 as i64, x as u8 as i64, x as i16 as i64, x as u16 as i64, x as i32 as i64, x as u32 as i64,
            x as i64, x as u64 as i64, x as usize as i64, x as f64 as i64, (x as f64 * 1e3) as u8 as i64,
        ];
        let mut h = 17i64;
        for v in all {
            h = h.wrapping_mul(31).wrapping_add(v);
        }
        h
    }
    casts_from_doubles(x: f64) -> f64, F64S, {
        let a = x as f32 as f64;
        let b = x as i32 as f64 + x as u64 as f64 + x as i8 as f64;
        let c = (x as i64 as f32) as f64 + (x as u64 as f32) as f64;
        if x.is_nan() { b + c } else { a + b - c }
    }
    casts_to_floats(x: u64) -> f64, U64S, {
        x as f32 as f64 + x as f64 * 0.5 + (x as i64 as f32) as f64 + (x as u32 as f32) as f64 + (x as i16 as f32) as f64 + (x as u8 as f64) * 3.0
    }
    bit_tricks(x: u32) -> u32, U32S, {
        let mut v = x;
        v |= v >> 1;
        v |= v >> 2;
        v |= v >> 4;
        v |= v >> 8;
        v |= v >> 16;
        let low = x & x.wrapping_neg();
        let gray = x ^ x >> 1;
        let parity = x.count_ones() & 1;
        let next = { let c = x & x.wrapping_neg(); let r = x.wrapping_add(c); if c == 0 { 0 } else { (((r ^ x) >> 2) / c) | r } };
        let swapped = (x & 0x5555_5555) << 1 | (x >> 1) & 0x5555_5555;
        v ^ low.rotate_left(5) ^ gray.reverse_bits() ^ parity << 9 ^ next ^ swapped ^ x.leading_ones() ^ x.trailing_ones() << 4 ^ x.count_zeros() << 8 ^ x.is_power_of_two() as u32 ^ x.checked_ilog2().unwrap_or(99) << 3
    }
    morton_codes(x: u32) -> u64, U32S, {
        let spread = |v: u32| {
            let mut v = v as u64;
            v = (v | v << 16) & 0x0000_FFFF_0000_FFFF;
            v = (v | v << 8) & 0x00FF_00FF_00FF_00FF;
            v = (v | v << 4) & 0x0F0F_0F0F_0F0F_0F0F;
            v = (v | v << 2) & 0x3333_3333_3333_3333;
            (v | v << 1) & 0x5555_5555_5555_5555
        };
        spread(x) | spread(x.rotate_left(16)) << 1
    }
    checked_in_every_form(x: i32) -> i32, I32S, {
        let a = x.checked_add(1).and_then(|v| v.checked_mul(2)).unwrap_or(-7);
        let b = x.checked_neg().unwrap_or(11);
        let c = x.checked_rem(3).unwrap_or(12);
        let d = x.checked_shl(33).map_or(13, |v| v & 1);
        let e = x.checked_abs().is_some() as i32;
        let f = x.checked_pow(2).unwrap_or(14);
        let g = match x.overflowing_mul(65_537) { (v, false) => v, (v, true) => v >> 16 };
        let h = x.saturating_add(i32::MAX / 2).saturating_sub(-5).saturating_mul(2);
        let i = x.saturating_neg().saturating_abs();
        let j = x.wrapping_div(-1).wrapping_rem(7).wrapping_shr(35);
        let k = x.checked_sub_unsigned(5).unwrap_or(3) ^ x.wrapping_add_unsigned(7) ^ x.saturating_add_unsigned(9);
        let l = (x as u32).checked_add_signed(-4).unwrap_or(8) as i32 ^ (x as u32).checked_next_power_of_two().unwrap_or(1) as i32;
        a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l
    }
    conversions_with_from_and_into(x: u8) -> f64, U8S, {
        let a = u32::from(x);
        let b: u64 = x.into();
        let c = f32::from(x) + f32::from(a as u16);
        let d = f64::from(c) + f64::from(a);
        let e = i32::from(x > 7);
        d + b as f64 + e as f64
    }
    halves_of_every_kind(x: f32) -> f32, [0.0f32, 1.0, -2.5, 1000.25, 65504.0, 1e-7, -3.3, f32::INFINITY], {
        let h = f16::from_f32(x);
        let b = bf16::from_f32(x);
        let s = h + f16::from_f32(1.5) * h;
        let t = b * bf16::from_f32(0.25) - bf16::ONE;
        let m = if h > f16::from_f32(0.5) { h } else { -h };
        let c = if h < m { 1.0 } else { 2.0 };
        let bits = (h.to_bits() ^ b.to_bits()) as f32;
        let back = f16::from_bits(h.to_bits() & 0x7fff).to_f32() + bf16::from_bits(b.to_bits() | 1).to_f32();
        s.to_f32() + t.to_f32() + c + bits + back + m.max(h).to_f32() + f32::from(f16::ONE)
    }
    sums_of_halves(x: f32) -> f32, [0.1f32, -0.0, 1000.5, -3.3, 2049.0], {
        let all = [f16::from_f32(x), f16::from_f32(0.3), f16::from_f32(-2.7), f16::from_f32(x * 0.01)];
        let few = [bf16::from_f32(x), bf16::from_f32(0.1), bf16::from_f32(7.3)];
        let sum: f16 = all.iter().sum();
        let none: f16 = all[4..].iter().copied().sum();
        let other: bf16 = few.iter().copied().sum();
        let product: bf16 = few.iter().product();
        let zeros = [f16::from_f32(-0.0), f16::from_f32(0.0)];
        let bits = none.to_bits() as u32 + zeros[0].max(zeros[1]).to_bits() as u32 + zeros[1].min(zeros[0]).to_bits() as u32;
        sum.to_f32() + other.to_f32() * 3.0 + product.to_f32() + bits as f32
    }
    integer_roots_and_logarithms(x: u64) -> u64, U64S, {
        let r = x.isqrt();
        let l = if x > 0 { x.ilog2() as u64 * 100 + x.ilog10() as u64 } else { 0 };
        let d = x.div_ceil(3) ^ x.abs_diff(1 << 40) ^ (x >> 8).next_multiple_of(5);
        r ^ l << 20 ^ d
    }
    floats_in_every_method(x: f64) -> f64, [0.0f64, 0.3, -1.7, 2.5, -2.5, 3.999, 100.5, -0.75], {
        let a = x.floor() + x.ceil() * 2.0 + x.round() * 3.0 + x.trunc() * 5.0 + x.fract() * 7.0 + x.round_ties_even() * 9.0;
        let b = x.abs().sqrt() + x.mul_add(2.0, 1.0) + x.powi(3) + x.recip().clamp(-5.0, 5.0);
        let c = x.hypot(0.0).floor() + x.rem_euclid(1.5) + x.div_euclid(0.7) + x % 0.9 + x.copysign(-1.0) + x.signum();
        let d = x.to_degrees().to_radians().floor() + x.min(0.1).max(-0.1) + f64::EPSILON.log2();
        let e = x.is_sign_negative() as i32 as f64 + x.total_order();
        a + b + c + d + e
    }
}

#[device]
trait Order {
    fn total_order(self) -> f64;
}
#[device]
impl Order for f64 {
    fn total_order(self) -> f64 {
        let bits = self.to_bits() as i64;
        ((bits ^ ((bits >> 63) as u64 >> 1) as i64) >> 40) as f64
    }
}

#[kernel]
fn generic_kernel<
    T: Copy + Add<Output = T> + PartialOrd + gridloom::KernelType + gridloom::Element,
    const STEP: usize,
>(
    x: &[T],
    out: Out<T>,
) {
    let Some((i, out)) = out.mine() else { return };
    let mut sum = x[i];
    let mut k = i;
    while k < x.len() {
        if x[k] < sum {
            sum = x[k] + x[i];
        }
        k += STEP;
    }
    *out = sum;
}

#[test]
fn kernels_of_types_and_numbers() {
    same(
        "f32",
        |x, out| generic_kernel::<f32, 2>(x, out),
        generic_kernel::load::<f32, 2>,
        &[3.0, 1.0, -2.0, 5.5],
    );
    same(
        "u8",
        |x, out| generic_kernel::<u8, 3>(x, out),
        generic_kernel::load::<u8, 3>,
        &[3, 1, 9, 4, 7, 2, 100],
    );
}

#[test]
fn a_ray_tracer() {
    same("trace", |x, out| trace(x, out), trace::load, &[0.0, 0.1, -0.5, 0.75, 1.5, -2.0]);
}
