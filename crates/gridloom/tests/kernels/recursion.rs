use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("recursion.ptx");

#[test]
fn functions_call_themselves_and_each_other() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x: Vec<u32> = (0..=14).collect();
        let n = x.len();
        let (out, values) = (bench.zeros::<u32>(n)?, bench.buffer(&x)?);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("fibonacci", threads(n), (&out, &values, n as u32))?;
        assert_eq!(out.to_vec()?, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]);

        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("parity", threads(n), (&out, &values, n as u32))?;
        assert_eq!(out.to_vec()?, x.iter().map(|x| u32::from(x % 2 == 0)).collect::<Vec<u32>>());

        let m = [0, 0, 1, 1, 2, 2, 2];
        let k = [0, 8, 0, 8, 0, 3, 8];
        let args = (&out, &bench.buffer(&m)?, &bench.buffer(&k)?, 7);
        bench.run::<(PtrMut<u32>, Ptr<u32>, Ptr<u32>, u32)>("ackermann", threads(7), args)?;
        assert_eq!(out.to_vec()?[..7], [1, 9, 2, 10, 3, 9, 19]);
        Ok(())
    });
}

#[test]
fn each_thread_sorts_its_row_recursively() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (width, count) = (33, 40);
        let mut x = Random::new(170).vec(width * count, |random| random.between(-100, 100) as i32);
        let rows = bench.buffer(&x)?;
        bench.run::<(PtrMut<i32>, i32, u32)>(
            "quicksort",
            threads(count),
            (&rows, width as i32, count as u32),
        )?;
        x.chunks_mut(width).for_each(<[i32]>::sort_unstable);
        assert_eq!(rows.to_vec()?, x);
        Ok(())
    });
}
