use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("dispatch.ptx");
const N: usize = 300;

#[test]
fn every_case_of_a_switch_statement_computes_its_own() {
    fn calculate(op: u32, a: i32, b: i32) -> i32 {
        match op {
            0 => a.wrapping_add(b),
            1 => a.wrapping_sub(b),
            2 => a.wrapping_mul(b),
            3 => a & b,
            4 => a | b,
            5 => a ^ b,
            6 => a << (b & 31),
            7 => a >> (b & 31),
            8 => a.min(b),
            9 => a.max(b),
            10 => !a,
            11 => a.rotate_left(b as u32 & 31),
            _ => -1,
        }
    }
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(30);
        let (op, a, b) = (random.vec(N, |random| random.below(14) as u32), random.i32s(N), random.i32s(N));
        let out = bench.zeros::<i32>(N)?;
        let args = (&out, &bench.buffer(&op)?, &bench.buffer(&a)?, &bench.buffer(&b)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<u32>, Ptr<i32>, Ptr<i32>, u32)>("calculate", threads(N), args)?;
        let expected: Vec<i32> = (0..N).map(|i| calculate(op[i], a[i], b[i])).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn an_automaton_branches_on_its_state() {
    fn automaton(start: u32, text: &[u8]) -> u32 {
        let (mut state, mut changes) = (start, 0);
        for &c in text {
            let next = match state {
                0 => u32::from(c == b'a'),
                1 if c == b'b' => 2,
                1 => u32::from(c == b'a'),
                2 if c < b'm' => 3,
                2 => 4,
                3 if c & 1 == 1 => 4,
                3 => 2,
                _ => u32::from(c) % 5,
            };
            changes += u32::from(next != state);
            state = next;
        }
        state * 1000 + changes
    }
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let text = b"abacus abbey xylophone ababab zebra mam";
        let out = bench.zeros::<u32>(50)?;
        let args = (&out, &bench.buffer(text)?, text.len() as u32, 50);
        bench.run::<(PtrMut<u32>, Ptr<u8>, u32, u32)>("automaton", threads(50), args)?;
        assert_eq!(out.to_vec()?, (0..50).map(|i| automaton(i % 5, text)).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn cases_without_break_fall_through() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = [0, 1, 2, 3, 4, 5, -1, i32::MAX];
        let out = bench.zeros::<i32>(8)?;
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>(
            "fall_through",
            threads(8),
            (&out, &bench.buffer(&x)?, 8),
        )?;
        assert_eq!(out.to_vec()?, [11111, 1111, 111, 11, 1, 0, 0, 0]);
        Ok(())
    });
}

#[test]
fn an_indirect_branch_takes_each_lane_its_own_way() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(31).u32s(N);
        let out = bench.zeros::<u32>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("branch_table", threads(N), args)?;
        let branch = |&x: &u32| match x % 4 {
            0 => x.wrapping_add(100),
            1 => x.wrapping_mul(3),
            2 => 7u32.wrapping_sub(x),
            _ => !x,
        };
        assert_eq!(out.to_vec()?, x.iter().map(branch).collect::<Vec<u32>>());
        Ok(())
    });
}
