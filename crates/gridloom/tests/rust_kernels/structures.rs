//! Slices, arrays, tuples, options and structs.

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::*;

programs! {
    an_array(x: i32) -> i32, SMALL, { let a = [x, 2 * x, 3]; a[0] + a[1] * 10 + a[2] * 100 }
    an_array_with_an_index(x: usize) -> u32, [0, 1, 2, 3], { let a = [10, 20, 30, 40]; a[x] }
    an_array_that_changes(x: i32) -> i32, SMALL, { let mut a = [0; 4]; a[1] = x; a[2] += 5; a[3] = a[1] + a[2]; a[0] + a[3] }
    an_array_filled_by_a_loop(x: u32) -> u32, COUNTS, { let mut a = [0u32; 8]; for i in 0..8 { a[i] = x * i as u32; } let mut sum = 0; for i in 0..8 { sum = sum * 3 % 1009 + a[7 - i]; } sum }
    a_large_array(x: u32) -> u32, COUNTS, { let mut a = [x; 40]; for i in 1..40 { a[i] = (a[i - 1] * 5 + 1) % 127; } let b = a; a[39] = 0; b[39] + a[39] }
    arrays_are_copied(x: i32) -> i32, SMALL, { let mut a = [x, 1]; let b = a; a[0] = 7; a[0] * 100 + b[0] }
    arrays_of_arrays(x: usize) -> i32, [0, 1, 2], { let mut a = [[1, 2, 3], [4, 5, 6]]; a[1][x] += 10; a[x % 2][2] + a[1][x] }
    an_array_in_a_loop(x: i32) -> i32, SMALL, { let mut sum = 0; for y in [1, 2, x] { sum = sum * 10 + y; } sum }
    the_length_of_an_array(x: usize) -> usize, [0, 1], { [1u8, 2, 3].len() + x }
    a_constant_table(x: usize) -> u16, [0, 1, 2, 3, 4], { const TABLE: [u16; 5] = [3, 1, 4, 1, 5]; TABLE[x] * 10 + TABLE[2] }
    tuples(x: i32) -> i32, SMALL, { let t = (x, 2.5f32, x > 3); if t.2 { t.0 } else { t.1 as i32 } }
    nested_tuples(x: i32) -> i32, SMALL, { let ((a, b), c) = ((x, 2), 3); let mut t = (a, (b, c)); t.1.0 += 5; t.0 + t.1.0 * 10 + t.1.1 * 100 }
    options_of_values(x: i32) -> i32, SMALL, { let mut o = None; if x > 3 { o = Some(x); } if let Some(y) = o { y } else { -1 } }
    options_asked(x: u32) -> u32, COUNTS, { let o = x.checked_sub(4); o.is_some() as u32 + 2 * o.is_none() as u32 }
    references(x: i32) -> i32, SMALL, { let mut a = x; let r = &mut a; *r += 5; *r *= 2; let s = &a; *s + 1 }
    swapped_places(x: i32) -> i32, SMALL, { let (mut a, mut b) = (x, 100); std::mem::swap(&mut a, &mut b); let old = std::mem::replace(&mut a, 7); a + b * 3 + old * 5 }
}

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
    charge: i32,
}

// SAFETY: five numbers of four bytes each, of which all bytes are 0.
unsafe impl bytemuck::Zeroable for Particle {}
// SAFETY: five numbers of four bytes each, with nothing between them.
unsafe impl bytemuck::Pod for Particle {}

#[device]
impl Particle {
    const UNIT: f32 = 2.0;

    fn at(x: f32) -> Self {
        Particle { position: [x, 2.0 * x, 0.5], mass: Self::UNIT, charge: -1 }
    }

    fn norm(&self) -> f32 {
        let (x, y, z) = (self.position[0], self.position[1], self.position[2]);
        (x * x + y * y + z * z).sqrt()
    }

    fn push(&mut self, by: f32) {
        self.position[0] += by;
        self.charge += 1;
    }

    fn heavier(mut self, by: f32) -> Particle {
        self.mass *= by;
        self
    }
}

#[test]
fn structs_are_made_changed_and_written() {
    #[kernel]
    fn particles(x: &[Particle], out: Out<Particle>) {
        if let Some((i, out)) = out.mine() {
            let mut p = Particle::at(x[i].mass);
            p.push(x[i].norm());
            let q = p;
            p.push(1.0);
            *out = Particle { mass: q.position[0], ..p.heavier(3.0) };
            out.charge += x[i].charge;
        }
    }
    let input = [1.0f32, 2.0, -3.5].map(|x| Particle { position: [x, 1.0, 2.0], mass: x + 0.5, charge: 7 });
    same("particles", |x, out| particles(x, out), particles::load, &input);
}

#[derive(Clone, Copy, Debug, KernelType)]
struct Complex(f32, f32);

#[device]
impl std::ops::Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex(self.0 + other.0, self.1 + other.1)
    }
}

#[device]
impl std::ops::Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        Complex(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
    }
}

#[device]
impl Complex {
    fn size_squared(self) -> f32 {
        self.0 * self.0 + self.1 * self.1
    }
}

#[test]
fn operators_of_structs() {
    #[kernel]
    fn escape(x: &[f32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            let c = Complex(x[i], 0.3);
            let mut z = Complex(0.0, 0.0);
            let mut steps = 0;
            while z.size_squared() < 4.0 && steps < 50 {
                z = z * z + c;
                steps += 1;
            }
            *out = steps;
        }
    }
    same("escape", |x, out| escape(x, out), escape::load, &[-2.0, -1.0, -0.7, 0.0, 0.2, 0.4, 1.0]);
}

#[derive(Clone, Copy, KernelType)]
struct Pair<T> {
    first: T,
    second: T,
}

#[test]
fn generic_structs_and_patterns() {
    #[kernel]
    fn pairs(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let pair = Pair { first: x[i], second: 10 };
            let Pair { first, second: other } = pair;
            *out = match (Pair { first: other, second: first }) {
                Pair { first: 10, second: 3 } => 1000,
                Pair { second, .. } => second - first + other,
            };
        }
    }
    same("pairs", |x, out| pairs(x, out), pairs::load, &SMALL);
}

#[test]
fn slices_are_read_in_every_way() {
    #[kernel]
    fn read(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let mut sum = 0;
            for y in x {
                sum += *y;
            }
            for (k, y) in x.iter().enumerate() {
                sum = sum * 3 % 1009 + *y * k as i32;
            }
            let part = &x[i..];
            for y in part.iter() {
                sum += *y % 5;
            }
            let part = &part[..1];
            let inner = &x[1..=2];
            sum += part[0] + part.len() as i32 + inner[1] + x[..2][1];
            if let Some(y) = x.get(i + 3) {
                sum += *y;
            }
            if x.is_empty() || x.first().is_none() {
                sum = -1;
            }
            *out = sum;
        }
    }
    same("read", |x, out| read(x, out), read::load, &SMALL);
}

#[test]
fn threads_own_chunks_and_places_in_a_plane() {
    use gridloom::prelude::*;

    use crate::support::for_each_device;

    #[kernel]
    fn chunks(x: &[u32], out: Out<u32>) {
        if let Some(out) = out.chunk(3) {
            for (k, y) in out.iter_mut().enumerate() {
                *y = x[0] + k as u32;
            }
            out[1] += gridloom::thread::index() as u32 * 100;
        }
    }
    #[kernel]
    fn plane(width: usize, out: Out<u32>) {
        if let Some(((x, y), out)) = out.mine_2d(width) {
            *out = (100 * y + x) as u32 + gridloom::block::x() + 7 * gridloom::grid::size_y();
        }
    }
    for_each_device(|device| {
        let stream = device.stream()?;
        let mut expected = [0; 10];
        gridloom::host::run(1, 4, || chunks(&[5], Out::new(&mut expected)));
        let (x, out) = (device.buffer_from(&[5u32])?, device.buffer_from(&[0u32; 10])?);
        stream.launch(&chunks::load(device)?, LaunchConfig::new(1, 4), (&x, &out))?;
        assert_eq!(out.to_vec()?, expected);

        let mut expected = [0; 35];
        gridloom::host::run((2, 3), (4, 2), || plane(7, Out::new(&mut expected)));
        let out = device.buffer_from(&[0u32; 35])?;
        stream.launch(&plane::load(device)?, LaunchConfig::new((2, 3), (4, 2)), (7, &out))?;
        assert_eq!(out.to_vec()?, expected);
        assert_eq!(expected[34], 406 + 1 + 21);
        Ok(())
    });
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(i16)]
enum Phase {
    Solid = -2,
    Liquid,
    Gas = 700,
}

#[device]
impl Phase {
    fn of(x: i32) -> Phase {
        match x {
            ..=0 => Phase::Solid,
            1..=5 => Phase::Liquid,
            _ => Phase::Gas,
        }
    }

    fn next(self) -> Self {
        match self {
            Phase::Solid => Phase::Liquid,
            Phase::Liquid => Phase::Gas,
            Phase::Gas => self,
        }
    }

    fn is_fluid(&self) -> bool {
        *self != Phase::Solid
    }
}

#[derive(Clone, Copy, KernelType)]
struct Matter {
    phase: Phase,
    mass: f32,
}

#[test]
fn enums_without_fields() {
    #[kernel]
    fn matter(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let mut m = Matter { phase: Phase::of(x[i]), mass: 1.5 };
            let mut all = [Phase::Solid; 4];
            all[i % 4] = m.phase;
            if m.phase.is_fluid() {
                m.phase = m.phase.next();
            } else if let Phase::Solid = m.phase {
                m.mass = 2.5;
            }
            let (mut code, kind) = (all[3] as i32 + m.phase as i32 * 10, m.phase);
            if kind > Phase::Liquid && matches!(kind, Phase::Gas | Phase::Solid) {
                code += 100_000;
            }
            *out = code + (m.mass * 1000.0) as i32;
        }
    }
    same("matter", |x, out| matter(x, out), matter::load, &SMALL);
}
