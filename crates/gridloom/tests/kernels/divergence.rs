use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("divergence.ptx");

#[test]
fn lanes_leave_a_loop_after_their_own_number_of_passes() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x: Vec<u32> = (1..=300).collect();
        let out = bench.zeros::<u32>(x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("collatz", threads(x.len()), args)?;
        let steps = |&x: &u32| {
            let mut x = u64::from(x);
            (0..).find(|_| {
                let done = x == 1;
                x = if x.is_multiple_of(2) { x / 2 } else { 3 * x + 1 };
                done
            })
        };
        let expected: Vec<u32> = x.iter().map(|x| steps(x).expect("it ends")).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_picture_of_the_mandelbrot_set_agrees_in_every_point() {
    const LIMIT: u32 = 50;
    fn passes(px: i32, py: i32, width: i32, height: i32) -> u32 {
        let cx = -2.0f32 + 3.0 * px as f32 / width as f32;
        let cy = -1.5f32 + 3.0 * py as f32 / height as f32;
        let (mut x, mut y) = (0.0f32, 0.0f32);
        for pass in 0..LIMIT {
            let (xx, yy) = (x * x, y * y);
            if xx + yy > 4.0 {
                return pass;
            }
            y = 2.0 * x * y + cy;
            x = xx - yy + cx;
        }
        LIMIT
    }
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (width, height) = (33, 21);
        let out = bench.zeros::<u32>((width * height) as usize)?;
        let config = LaunchConfig::new((5, 3), (8, 8));
        bench.run::<(PtrMut<u32>, i32, i32, u32)>("mandelbrot", config, (&out, width, height, LIMIT))?;
        let points = (0..height).flat_map(|y| (0..width).map(move |x| passes(x, y, width, height)));
        assert_eq!(out.to_vec()?, points.collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn break_continue_and_return_leave_the_right_loops() {
    fn nested_exits(i: u32) -> u32 {
        let mut sum = 0;
        for a in 0..10 {
            if (a + i).is_multiple_of(3) {
                continue;
            }
            for b in 0..10 {
                if b > i % 7 {
                    break;
                }
                if a * b == 42 + i % 5 {
                    return 100_000 + sum;
                }
                sum += a * b + 1;
            }
            if sum > 300 + i {
                break;
            }
        }
        sum
    }
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(200)?;
        bench.run::<(PtrMut<u32>, u32)>("nested_exits", threads(200), (&out, 200))?;
        assert_eq!(out.to_vec()?, (0..200).map(nested_exits).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn divisors_and_searches_agree_with_the_host() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(40);
        let n = 200;
        let mut a = random.vec(n, |random| random.u32() % 10_000);
        let mut b = random.vec(n, |random| random.u32() % 10_000);
        (a[0], b[1]) = (0, 0);
        let out = bench.zeros::<u32>(n)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, n as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, Ptr<u32>, u32)>("gcd", threads(n), args)?;
        fn gcd(a: u32, b: u32) -> u32 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        assert_eq!(out.to_vec()?, a.iter().zip(&b).map(|(&a, &b)| gcd(a, b)).collect::<Vec<u32>>());

        let mut sorted = random.vec(77, |random| random.between(-50, 50) as i32);
        sorted.sort_unstable();
        let keys = random.vec(n, |random| random.between(-60, 60) as i32);
        let args = (&out, &bench.buffer(&sorted)?, 77, &bench.buffer(&keys)?, n as u32);
        bench.run::<(PtrMut<u32>, Ptr<i32>, u32, Ptr<i32>, u32)>("binary_search", threads(n), args)?;
        let below = |key: &i32| sorted.partition_point(|x| x < key) as u32;
        assert_eq!(out.to_vec()?, keys.iter().map(below).collect::<Vec<u32>>());
        Ok(())
    });
}
