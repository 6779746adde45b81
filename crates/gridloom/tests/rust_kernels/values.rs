//! Programs whose results depend on the order in which their parts are computed, on what is copied
//! and what is shared, and on what conversions do at the ends of their ranges.

use std::cmp::min;

use gridloom::{KernelType, device};

use crate::harness::*;

#[device]
fn bump(n: &mut i32) -> i32 {
    *n += 1;
    *n
}

#[device]
fn bump_by(n: &mut usize, by: usize) -> usize {
    *n += by;
    *n
}

const fn table() -> [u32; 8] {
    let mut t = [0; 8];
    let mut i = 0;
    while i < 8 {
        t[i] = (i * i) as u32 + 1;
        i += 1;
    }
    t
}
const TABLE: [u32; 8] = table();

programs! {
    operands_are_computed_from_left_to_right(x: i32) -> i32, SMALL, {
        let mut n = x;
        let a = n + { n += 10; n };
        let b = n.wrapping_sub({ n *= 2; n });
        let c = (n, { n += 1; n }, n);
        let d = [n, { n -= 3; n }, n];
        a + 3 * b + c.0 * 5 + c.1 * 7 + c.2 * 11 + d[0] * 13 + d[1] * 17 + d[2] * 19
    }
    what_is_assigned_is_computed_before_its_place(x: i32) -> i32, SMALL, {
        let mut n = 0usize;
        let mut a = [x, x + 1, x + 2, x + 3, 0, 0, 0, 0];
        a[bump_by(&mut n, 1)] += bump_by(&mut n, 2) as i32;
        a[bump_by(&mut n, 1)] = bump_by(&mut n, 1) as i32 * 100;
        let mut s = 0;
        for (i, v) in a.iter().enumerate() { s = s * 3 + *v * (i as i32 + 1); }
        s + n as i32
    }
    what_is_short_circuited_is_not_computed(x: i32) -> i32, SMALL, {
        let mut n = 0;
        let a = x > 2 && bump(&mut n) > 0;
        let b = x > 2 || bump(&mut n) > 5;
        let c = (x > 2) & (bump(&mut n) > 1);
        let d = (x > 2) | (bump(&mut n) > 1) ^ a;
        n * 16 + a as i32 + 2 * b as i32 + 4 * c as i32 + 8 * d as i32
    }
    copies_are_copies(x: i32) -> i32, SMALL, {
        let a = [[x, 1], [2, 3]];
        let mut b = a;
        b[0][0] += 100;
        let mut row = b[1];
        row[1] = 50;
        let c = b;
        b[1][1] = -1;
        let t = (a, c);
        let mut u = t;
        u.0[0] = [9, 9];
        a[0][0] + b[0][0] * 2 + row[1] * 3 + b[1][1] * 5 + c[1][1] * 7 + t.0[0][0] * 11 + u.0[0][1] * 13
    }
    deferred_initialisation(x: i32) -> i32, SMALL, {
        let y;
        let a; let b;
        if x % 2 == 0 { y = x * 2; a = 1; } else { y = x - 1; a = 2; }
        b = match y { 0 => 5, _ => { let z; z = y; z } };
        y + a * 10 + b * 100
    }
    destructuring_assignment(x: i32) -> i32, SMALL, {
        let (mut a, mut b, mut c) = (x, 2, [3, 4, 5]);
        (a, b) = (b, a);
        [c[0], _, c[2]] = [c[2], 0, c[0]];
        (c[1], (a, _, _)) = (a * 2, (b + 1, 7, 8));
        _ = bump(&mut b);
        a + b * 3 + c[0] * 5 + c[1] * 7 + c[2] * 11
    }
    swaps(x: i32) -> i32, SMALL, {
        let (mut a, mut b) = ([x, 1], [2, 3]);
        std::mem::swap(&mut a, &mut b);
        std::mem::swap(&mut a[0], &mut b[1]);
        let old = std::mem::replace(&mut a[1], 40);
        a[0] + a[1] * 3 + b[0] * 5 + b[1] * 7 + old * 11
    }
    literals(x: u32) -> u32, COUNTS, {
        let a = 0xff_u8 as u32 + 0b1010_1010u32 + 0o17 + 1_000;
        let b = b'a' as u32 + b'\n' as u32 + b'\x7f' as u32;
        let c = 1e2f32 as u32 + 2.5E-1_f64.to_bits() as u32;
        a + b * 3 + c % 1000 + x
    }
    casts_between_integers(x: i64) -> u64, I64S, {
        let a = x as i8 as i32 as u32 as u64;
        let b = x as u8 as i8 as i64 as u64;
        let c = x as u16 as i16 as i32 as i64 as u64;
        let d = x as i32 as usize as u64;
        let e = x as usize as isize as i16 as u16 as u64;
        let f = (x > 0) as u8 as i64 as u64;
        a ^ b.rotate_left(7) ^ c.rotate_left(15) ^ d.rotate_left(23) ^ e.rotate_left(31) ^ f
    }
    casts_of_floats(x: f32) -> [i64; 4], F32S, {
        [x as i8 as i64 ^ (x as u8 as i64) << 8, x as i16 as i64 ^ (x as u16 as i64) << 16, x as i32 as i64 ^ (x as u32 as i64) << 32, (x as i64) ^ (x as u64 as i64).rotate_left(9)]
    }
    casts_of_doubles(x: f64) -> [i64; 4], F64S, {
        [x as i8 as i64 ^ (x as u8 as i64) << 8, x as i16 as i64 ^ (x as u16 as i64) << 16, x as i32 as i64 ^ (x as u32 as i64) << 32, (x as i64) ^ (x as u64 as i64).rotate_left(9) ^ (x as f32).to_bits() as i64]
    }
    casts_to_floats(x: u64) -> [f32; 6], U64S, {
        [x as f32, x as i64 as f32, x as f64 as f32, x as u32 as f32, x as i16 as f32, x as i8 as f64 as f32]
    }
    least_and_greatest_with_nan(x: f32) -> [f32; 4], F32S, {
        [x.min(1.0), f32::NAN.max(x), x.max(-0.0).abs(), 2f32.min(x).max(f32::NAN)]
    }
    more_of_integers(x: i32) -> [i64; 8], I32S, {
        let (w, o) = x.overflowing_mul(3);
        [x.rem_euclid(7) as i64, x.div_euclid(-7) as i64, x.unsigned_abs() as i64, x.abs_diff(5) as i64, x.signum() as i64, x.leading_ones() as i64 * 100 + x.trailing_zeros() as i64, w as i64 + o as i64, x.swap_bytes() as i64 ^ x.reverse_bits() as i64]
    }
    for_over_inclusive_to_the_end(x: u8) -> u32, U8S, {
        let mut n = 0u32;
        for v in x..=u8::MAX { n += v as u32; }
        for v in (i8::MIN..=(x as i8)).step_by(50) { n = n.wrapping_mul(31).wrapping_add(v as u32); }
        n
    }
    loop_variables_that_change(x: i32) -> i32, SMALL, {
        let mut s = 0;
        for mut i in 0..5 { i *= x; s += i; }
        for i in 0..3 { let i = i + 10; s += i; }
        s
    }
    nested_labels(x: u32) -> u32, COUNTS, {
        let mut n = 0;
        'a: for i in 0..6u32 {
            let r = 'b: loop {
                for j in 0..i {
                    match (i + j) % 5 {
                        0 if j > 1 => continue 'a,
                        1 => break 'b j,
                        2 if x == i => break 'a,
                        _ => n += j,
                    }
                }
                break i * 10;
            };
            n += r;
        }
        n
    }
    closures_that_change_things(x: i32) -> i32, SMALL, {
        let mut total = 0;
        let mut count = 0;
        let mut add = |v: i32| { total += v; count += 1; total };
        let a = add(x);
        let b = add(2 * x);
        add(1);
        total + a * 3 + b * 5 + count * 7
    }
    booleans(x: u32) -> u32, COUNTS, {
        let (a, b) = (x & 1 == 1, x & 2 != 0);
        let mut c = a ^ b;
        c |= a & !b;
        c &= b | (x > 3);
        c ^= true;
        (c as u32) + 2 * (a < b) as u32 + 4 * (a == b) as u32 + 8 * a.then_some(3u32).unwrap_or(1) + 100 * b.then(|| x).unwrap_or(7)
    }
    tables_of_constants(x: u32) -> u32, COUNTS, {
        TABLE[(x % 8) as usize] + TABLE.len() as u32
    }
    renamed_functions_of_the_library(x: i32) -> i32, I32S, {
        std::cmp::max(min(x, 10), -10)
    }
    shifts_by_other_types(x: u32) -> u32, U32S, {
        (x >> 3u8) ^ (x << 5i64) ^ (x >> (x as usize % 32)) ^ ((x as u8) << (x % 8)) as u32 ^ ((x as i16) >> (x % 16) as i8) as u32
    }
}

#[derive(Clone, Copy, Default, Debug, PartialEq, KernelType)]
struct Outer {
    a: Inner,
    list: [Inner; 2],
    pair: Pair,
}
#[derive(Clone, Copy, Default, Debug, PartialEq, KernelType)]
struct Inner {
    x: i32,
    y: [i16; 3],
}

#[derive(Clone, Copy, Default, Debug, PartialEq, KernelType)]
struct Pair {
    n: i32,
    p: Inner,
}
#[device]
impl Inner {
    const ONE: i32 = 1;
    const fn new(x: i32) -> Self {
        Self { x, y: [x as i16, 2, 3] }
    }
    fn sum(&self) -> i32 {
        self.x * Self::ONE + self.y.iter().map(|&v| v as i32).sum::<i32>()
    }
    fn y_mut(&mut self, i: usize) -> &mut i16 {
        &mut self.y[i]
    }
    fn with(self, x: i32) -> Self {
        Inner { x, ..self }
    }
}

#[derive(Clone, Copy, KernelType)]
#[repr(u32)]
enum State {
    Start,
    Number { value: i32, digits: u32 },
    Done(i32),
}

#[device]
fn step(s: State, byte: u32) -> State {
    match s {
        State::Start if byte == 9 => State::Start,
        State::Start => State::Number { value: byte as i32, digits: 1 },
        State::Number { value, digits: d @ 0..=2 } => {
            State::Number { value: value * 10 + byte as i32, digits: d + 1 }
        }
        State::Number { value, .. } => State::Done(value),
        done @ State::Done(_) => done,
    }
}

programs! {
    nested_structs(x: i32) -> i32, SMALL, {
        let mut o = Outer { a: Inner::new(x), list: [Inner::new(1); 2], ..Outer::default() };
        o.pair = Pair { n: 5, p: o.a.with(9) };
        o.list[1].y[2] += x as i16;
        *o.list[(x & 1) as usize].y_mut(0) = 40;
        let Outer { a: Inner { x: ax, y: [_, y1, _] }, list: [l0, l1], pair: Pair { n, p } } = o;
        let r = &mut o.a;
        r.x += 1;
        *r.y_mut(1) -= 5;
        ax + y1 as i32 * 2 + l0.sum() * 3 + l1.sum() * 5 + n * 7 + p.sum() * 11 + o.a.sum() * 13
    }
    a_machine_of_states(x: u32) -> i32, COUNTS, {
        let mut s = State::Start;
        let mut n = 0;
        loop {
            s = step(s, (x + n) % 10);
            n += 1;
            match s {
                State::Done(v) => break v * 10 + n as i32,
                State::Number { digits, .. } if digits == 3 && x == 7 => break -1,
                _ if n > 20 => break -2,
                _ => {}
            }
        }
    }
    references_to_parts(x: i32) -> i32, SMALL, {
        let mut g = [[1, 2, 3], [4, 5, 6]];
        {
            let row = &mut g[(x & 1) as usize];
            row[0] = x;
            let cell = &mut row[2];
            *cell += 10;
        }
        for row in &mut g { for v in row.iter_mut() { *v += 1; } row[1] = 0; }
        let [[a, ..], [.., f]] = g;
        a * 3 + f * 5 + g[0][2] * 7 + g[1][0] * 11
    }
    options_of_pairs(x: i32) -> i32, SMALL, {
        let mut best: Option<(i32, f32)> = None;
        for i in 0..4 {
            let score = ((x + i * 5) % 7) as f32;
            match best {
                Some((_, s)) if s >= score => {}
                _ => best = Some((i, score)),
            }
        }
        let taken = best.take();
        let (i, s) = taken.unwrap_or((-1, 0.0));
        i * 100 + s as i32 + best.is_none() as i32
    }
}
