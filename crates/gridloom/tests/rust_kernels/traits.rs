//! Traits: their methods in generic device code, operators of several types, and bounds of the
//! standard library.

use std::ops::{Add, Mul, Sub};

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::*;

mod shapes {
    use gridloom::device;

    #[device]
    pub(super) trait Surface {
        const SIDES: u32;

        fn distance(&self, x: f32, y: f32) -> f32;

        fn moved(self, by: f32) -> Self;

        fn named() -> i32;

        fn is_inside(&self, x: f32, y: f32) -> bool {
            self.distance(x, y) < 0.0
        }

        fn count_inside(&self, steps: u32) -> u32 {
            let mut count = 0;
            for i in 0..steps {
                if self.is_inside(i as f32 * 0.5, 1.0) {
                    count += 1;
                }
            }
            count + Self::SIDES * 100
        }
    }
}
use shapes::{Surface, SurfaceOnDevice as _};

#[derive(Clone, Copy, KernelType)]
struct Disc {
    radius: f32,
}

#[derive(Clone, Copy, KernelType)]
struct Slab {
    from: f32,
    to: f32,
}

#[device]
impl Surface for Disc {
    const SIDES: u32 = 1;

    fn distance(&self, x: f32, y: f32) -> f32 {
        (x * x + y * y).sqrt() - self.radius
    }

    fn moved(self, by: f32) -> Self {
        Disc { radius: self.radius + by }
    }

    fn named() -> i32 {
        7
    }
}

#[device]
impl Surface for Slab {
    const SIDES: u32 = 4;

    fn distance(&self, x: f32, y: f32) -> f32 {
        let inner = (self.from - x).max(x - self.to);
        inner.max(y - 2.0)
    }

    fn moved(self, by: f32) -> Self {
        Slab { from: self.from + by, to: self.to + by }
    }

    fn named() -> i32 {
        8
    }

    fn is_inside(&self, x: f32, y: f32) -> bool {
        self.distance(x, y) <= 0.0
    }
}

#[device]
fn inside<S: Surface + Copy>(surface: S, steps: u32) -> u32 {
    let further = surface.moved(1.0);
    further.count_inside(steps)
        + S::SIDES * 1000
        + S::named() as u32 * 10_000
        + Surface::count_inside(&surface, 3)
}

programs! {
    methods_of_a_trait_in_generic_functions(x: u32) -> u32, COUNTS, { inside(Disc { radius: 2.0 }, x % 20) * 3 + inside(Slab { from: 0.5, to: 3.0 }, x % 20) }
    methods_of_a_trait_of_a_known_type(x: f32) -> f32, [0.0, 1.0, 3.5], { let d = Disc { radius: 2.0 }; d.distance(x, 1.0) + Surface::distance(&d.moved(x), 1.0, x) }
}

#[test]
fn a_kernel_that_is_generic_over_a_trait() {
    #[kernel]
    fn program<S: Surface>(x: &[f32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            let unit = S::named() as u32;
            *out = S::SIDES * 10 + unit + x[i] as u32;
        }
    }
    let input = [1.0f32, 2.0, 3.0];
    same("disc", |x, out| program::<Disc>(x, out), program::load::<Disc>, &input);
    same("slab", |x, out| program::<Slab>(x, out), program::load::<Slab>, &input);
}

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Add for Vec3 {
    type Output = Vec3;

    fn add(self, other: Vec3) -> Vec3 {
        Vec3 { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}
#[device]
impl Sub for Vec3 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Vec3 { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}
#[device]
impl Mul<f32> for Vec3 {
    type Output = Vec3;

    fn mul(self, by: f32) -> Vec3 {
        Vec3 { x: self.x * by, y: self.y * by, z: self.z * by }
    }
}
#[device]
impl Mul for Vec3 {
    type Output = Vec3;

    fn mul(self, other: Vec3) -> Vec3 {
        Vec3 { x: self.x * other.x, y: self.y * other.y, z: self.z * other.z }
    }
}

#[device]
fn weighted<T: Copy + Add<Output = T> + Mul<f32, Output = T>>(a: T, b: T, by: f32) -> T {
    a * (1.0 - by) + b * by
}

#[device]
fn squared<T>(a: T) -> T
where
    T: Copy + Mul<Output = T>,
{
    a * a
}

#[device]
fn largest<T: Copy + PartialOrd>(a: T, b: T) -> T {
    if a < b { b } else { a }
}

programs! {
    operators_with_a_number(x: f32) -> f32, [0.0, 1.5, -2.0], { let v = Vec3 { x, y: 2.0, z: 0.5 }; let w = v * 2.0 + v * v - v; w.x + w.y * 10.0 + w.z * 100.0 }
    bounds_of_operators(x: f32) -> f32, [0.0, 1.5, -2.0], { let v = weighted(Vec3 { x, y: 2.0, z: 0.5 }, Vec3 { x: 1.0, y: x, z: 0.0 }, 0.25); weighted(v.x, v.y, 0.5) + squared(x) + squared(v).z }
    bounds_of_order(x: i32) -> i32, SMALL, { largest(x, 3) * 10 + largest(2.5f64, x as f64) as i32 + largest(x as u8, 7) as i32 }
    compound_assignment_with_a_number(x: f32) -> f32, [0.0, 1.5], { let mut v = Vec3 { x, y: 2.0, z: 0.5 }; v = v * 3.0; v.x + v.y + v.z }
}
