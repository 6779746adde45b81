use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("local_arrays.ptx");
const N: usize = 100;

#[test]
fn digits_are_collected_in_an_array_of_each_thread() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(130).vec(N, |random| random.u32() % 10_000_000);
        x[..3].copy_from_slice(&[0, 1203, 1000]);
        let out = bench.zeros::<u32>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("digits", threads(N), args)?;
        let reversed = |x: &u32| x.to_string().chars().rev().collect::<String>().parse::<u32>();
        let expected: Vec<u32> = x.iter().map(|x| reversed(x).expect("digits")).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn local_arrays_are_indexed_by_values_from_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(131);
        let (x, order) = (random.i32s(16 * N), random.u32s(16));
        let out = bench.zeros::<i32>(16 * N)?;
        let args = (&out, &bench.buffer(&x)?, &bench.buffer(&order)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, Ptr<u32>, u32)>("permute", threads(N), args)?;
        let permuted = x.chunks(16).flat_map(|row| order.iter().map(|&k| row[k as usize % 16]));
        assert_eq!(out.to_vec()?, permuted.collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn a_cellular_automaton_keeps_two_generations_in_local_arrays() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(132).u32s(N);
        let out = bench.zeros::<u32>(N)?;
        let args = (&out, &bench.buffer(&x)?, 10, N as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32, u32)>("life", threads(N), args)?;
        let step = |cells: u32| {
            (0..32).fold(0, |next, k| {
                let cell = |k: u32| cells >> (k % 32) & 1;
                next | (110 >> (cell(k + 1) << 2 | cell(k) << 1 | cell(k + 31)) & 1) << k
            })
        };
        let expected: Vec<u32> = x.iter().map(|&x| (0..10).fold(x, |cells, _| step(cells))).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_stack_machine_runs_its_program() {
    fn run(code: &[u8], input: i32) -> i32 {
        let mut stack = vec![input];
        for &op in code {
            let top = *stack.last().expect("never empty");
            match op {
                0..=2 => {
                    stack.pop();
                    let second = stack.last_mut().expect("two operands");
                    *second = match op {
                        0 => second.wrapping_add(top),
                        1 => second.wrapping_sub(top),
                        _ => second.wrapping_mul(top),
                    };
                }
                3 => stack.push(top),
                4 => {
                    let len = stack.len();
                    stack.swap(len - 1, len - 2);
                }
                5 => *stack.last_mut().expect("never empty") = top.wrapping_neg(),
                _ => stack.push(i32::from(op) - 16),
            }
        }
        stack.pop().expect("never empty")
    }
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(133).i32s(N);
        // x^2 - 3x + 7, then negated and taken from 100.
        let code = [3, 3, 2, 4, 16 + 3, 2, 1, 16 + 7, 0, 5, 16 + 100, 4, 1];
        let out = bench.zeros::<i32>(N)?;
        let args = (&out, &bench.buffer(&code)?, code.len() as u32, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<u8>, u32, Ptr<i32>, u32)>("stack_machine", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().map(|&x| run(&code, x)).collect::<Vec<i32>>());
        Ok(())
    });
}
