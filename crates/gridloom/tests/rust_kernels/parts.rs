//! Parts of values: patterns of slices and of what is borrowed to change it, assignments to several
//! places, operators that assign.

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Point {
    x: i32,
    y: [[i32; 2]; 2],
}

#[device]
impl Default for Point {
    fn default() -> Self {
        Point { x: 7, y: [[1, 2], [3, 4]] }
    }
}

#[device]
impl std::ops::AddAssign for Point {
    /// Not what `+` would do.
    fn add_assign(&mut self, other: Point) {
        self.x += other.x;
        self.y[0][0] -= other.y[0][0];
    }
}

#[device]
impl std::ops::MulAssign<i32> for Point {
    fn mul_assign(&mut self, factor: i32) {
        self.x *= factor;
    }
}

#[device]
fn sum_of_squares<T, const N: usize>(all: [T; N], start: T) -> T
where
    T: Copy + std::ops::AddAssign + std::ops::Mul<Output = T>,
{
    let mut sum = start;
    for value in all {
        sum += value * value;
    }
    sum
}

programs! {
    operators_that_assign(x: i32) -> i32, SMALL, {
        let mut p = Point { x, ..Point::default() };
        p += Point::default();
        p *= 3;
        p.x + p.y[0][0] * 1000 + sum_of_squares([1, 2, x], 5)
    }
    patterns_of_what_is_changed(x: i32) -> i32, SMALL, {
        let mut a = [x, 2, 3, 4];
        let [first, .., last] = &mut a;
        *first += 10;
        std::mem::swap(first, last);
        let [_, second, ..] = &mut a;
        *second *= 2;
        let mut pair = (1, x);
        let (u, v) = &mut pair;
        *u += 5;
        *v += *u * 2;
        let mut p = Point::default();
        match &mut p {
            Point { x, .. } if *x > 9 => *x = 1,
            Point { y: [_, [z, _]], .. } => *z = 70,
        }
        let mut some = if x > 3 { Some((x, 2)) } else { None };
        if let Some((_, k)) = &mut some {
            *k += 4;
        }
        let mut points = [p, Point::default()];
        for Point { x, .. } in points.iter_mut() {
            *x += 1;
        }
        a[0] + a[1] * 3 + a[3] * 7 + pair.0 * 11 + pair.1 * 13 + points[0].x * 17 + points[1].x
            + points[0].y[1][0] * 19 + some.map_or(0, |(_, k)| k * 23)
    }
    assignments_to_several_places(x: i32) -> i32, SMALL, {
        let (mut a, mut b) = (x, x + 3);
        [a, b] = [b + 1, a + 2];
        let mut p = Point::default();
        (Point { x: a, y: [_, [b, _]] }, p.x) = (Point { x: b, y: [[a, a], [a + 1, 2]] }, 5);
        ((a, _), [b, p.y[1][0]]) = ((b, a), [a, p.x * 2]);
        a + b * 10 + p.x * 100 + p.y[1][0] * 1000
    }
}

#[kernel]
fn parts_of_slices(x: &[i32], out: Out<i32>) {
    if let Some((i, out)) = out.mine() {
        let w = &x[..i.min(4)];
        *out = match w {
            [] => -1,
            [a] => *a,
            [a, b] => a * b,
            [first, .., last] => first - last,
        };
        if let [a, rest @ ..] = w {
            *out += a + rest.len() as i32 + rest.iter().sum::<i32>();
        }
        if let Some((last, rest)) = w.split_last() {
            *out += last * 3 + rest.len() as i32;
        }
        if let Some((first, rest)) = w.split_first() {
            *out += first * 5 + rest.first().unwrap_or(&9);
        }
        let (left, right) = w.split_at(w.len() / 2);
        *out += left.len() as i32 * 100 - right.iter().min().unwrap_or(&3) + w.iter().max().map_or(0, |m| *m);
        *out += w.contains(&3) as i32 * 1000 + *x.get(i + 7).unwrap_or(&-5);
    }
}

#[test]
fn slices_are_matched_and_divided() {
    same("slices", |x, out| parts_of_slices(x, out), parts_of_slices::load, &SMALL);
}

#[kernel]
fn fills_by_patterns(x: &[i32], out: Out<i32>) {
    if let Some(part) = out.chunk(3)
        && let [a, b, rest @ ..] = part
    {
        *a = x[0] + 1;
        *b = *a * 2;
        rest.fill(5);
    }
}

#[kernel]
fn reverses(x: &[i32], out: Out<i32>) {
    if let Some(part) = out.chunk(x.len()) {
        for (element, v) in part.iter_mut().zip(x.iter()) {
            *element = *v;
        }
        for i in 0..part.len() / 2 {
            part.swap(i, part.len() - 1 - i);
        }
    }
}

#[test]
fn elements_of_a_slice_are_exchanged() {
    same("reverses", |x, out| reverses(x, out), reverses::load, &SMALL);
}

#[test]
fn a_part_of_a_result_is_written_through_a_pattern() {
    same("chunks", |x, out| fills_by_patterns(x, out), fills_by_patterns::load, &SMALL);
}
