//! Enums with fields.

use gridloom::prelude::*;
use gridloom::{KernelType, Out, block, device, host, kernel};

use crate::blocks::same_in_blocks;
use crate::harness::*;
use crate::support::for_each_device;

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
#[repr(u8)]
enum Shape {
    Empty,
    Circle(f32),
    Rectangle { width: f32, height: f32 },
    Many(u8, f64, [i16; 2]),
}

#[device]
impl Shape {
    fn of(x: i32) -> Self {
        match x % 5 {
            0 => Shape::Empty,
            1 => Self::Circle(x as f32),
            2 => Shape::Rectangle { height: 2.0, width: x as f32 * 0.5 },
            _ => Shape::Many(x as u8, x as f64 * 0.25, [x as i16, -3]),
        }
    }

    fn area(&self) -> f32 {
        match self {
            Shape::Empty => 0.0,
            Shape::Circle(r) => 3.0 * r * r,
            Shape::Rectangle { width, height } => width * height,
            Shape::Many(n, each, [..]) if *n > 100 => *each as f32,
            Shape::Many(n, each, pair) => *n as f32 * *each as f32 + pair[0] as f32,
        }
    }
}

programs! {
    values_of_variants(x: i32) -> f32, SMALL, { Shape::of(x.wrapping_abs() % 1000).area() }
    a_variable_that_changes_its_variant(x: i32) -> f32, SMALL, { let mut s = Shape::Empty; if x > 2 { s = Shape::Circle(2.0); } if x > 5 { s = Shape::Rectangle { width: 2.0, height: x as f32 }; } s.area() }
    one_variant_asked_for(x: i32) -> f32, SMALL, { if let Shape::Circle(r) = Shape::of(x.wrapping_abs() % 1000) { r } else { -1.0 } }
    variants_asked_by_a_macro(x: i32) -> i32, SMALL, { let s = Shape::of(x.wrapping_abs() % 1000); matches!(s, Shape::Empty | Shape::Circle(_)) as i32 + 2 * matches!(s, Shape::Many(_, _, _)) as i32 }
    or_else(x: i32) -> f32, SMALL, { let mut sum = 1.0; for k in 0..4 { let Shape::Rectangle { width, .. } = Shape::of(x.wrapping_abs() % 1000 + k) else { continue; }; sum += width; } sum }
    an_array_of_them(x: i32) -> f32, SMALL, { let mut all = [Shape::Empty; 3]; all[(x & 1) as usize] = Shape::Circle(1.5); all[2] = Shape::of(x.wrapping_abs() % 1000); let mut sum = 0.0; for s in all { sum = sum * 3.0 + s.area(); } sum }
    in_an_option(x: i32) -> f32, SMALL, { let mut o = None; if x > 1 { o = Some(Shape::of(x % 100)); } match o { Some(Shape::Circle(r)) => r, Some(other) => other.area() + 0.5, None => -1.0 } }
    as_constants(x: i32) -> f32, SMALL, { const UNIT: Shape = Shape::Rectangle { width: 1.0, height: 3.0 }; if x > 3 { UNIT.area() } else { Shape::Many(3, 0.5, [7, 8]).area() } }
}

#[test]
fn they_are_in_the_memory_of_a_block() {
    #[kernel]
    fn program(x: &[i32], out: Out<f32>) {
        let mut all = block::shared::<Shape, 16>(Shape::Empty);
        let i = gridloom::thread::rank();
        if let Some(slot) = all.mine() {
            *slot = Shape::of(if i < x.len() { x[i] } else { 0 });
        }
        let all = block::sync(all);
        if let Some((i, out)) = out.mine() {
            *out = all[15 - i].area() + all[i].area() * 0.5;
        }
    }
    same_in_blocks!(program, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0.0f32, 12, 1, 16);
}

/// A small machine, which people write first.
#[derive(Clone, Copy, Debug, KernelType)]
#[repr(u8)]
enum Op {
    Push(i32),
    Add,
    Mul,
    Swap { with: u32 },
}

#[device]
fn run(op: Op, stack: &mut [i32; 4], top: &mut usize) {
    match op {
        Op::Push(value) => {
            stack[*top] = value;
            *top += 1;
        }
        Op::Add | Op::Mul => {
            *top -= 1;
            let (a, b) = (stack[*top - 1], stack[*top]);
            stack[*top - 1] = if matches!(op, Op::Add) { a + b } else { a * b };
        }
        Op::Swap { with } => {
            let other = *top - 1 - with as usize;
            let kept = stack[other];
            stack[other] = stack[*top - 1];
            stack[*top - 1] = kept;
        }
    }
}

#[test]
fn a_machine_of_operations() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let code = [Op::Push(x[i]), Op::Push(7), Op::Push(3), Op::Swap { with: 1 }, Op::Mul, Op::Add];
            let (mut stack, mut top) = ([0; 4], 0);
            for op in code {
                run(op, &mut stack, &mut top);
            }
            *out = stack[0] * 10 + top as i32;
        }
    }
    same("machine", |x, out| program(x, out), program::load, &[0, 1, -5, 12]);
}
