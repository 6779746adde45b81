use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, for_each_device};

const PTX: &str = include_str!("heap.ptx");

#[test]
fn each_thread_can_allocate_and_free() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 100;
        let out = bench.zeros::<i32>(n)?;
        bench.run::<(PtrMut<i32>, i32)>("heap_sum", threads(n), (&out, n as i32))?;
        assert_eq!(out.to_vec()?, (1..=n as i32).map(|i| i * (i + 1) / 2).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn memory_of_one_launch_lives_until_another_frees_it() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 40;
        let (slots, out) = (bench.zeros::<u64>(n)?, bench.zeros::<i32>(n)?);
        bench.run::<(PtrMut<u64>, i32)>("heap_make", threads(n), (&slots, n as i32))?;
        let mut addresses = slots.to_vec()?;
        addresses.sort_unstable();
        assert!(addresses[0] != 0 && addresses.windows(2).all(|pair| pair[1] - pair[0] >= 32));
        bench.run::<(PtrMut<i32>, PtrMut<u64>, i32)>("heap_take", threads(n), (&out, &slots, n as i32))?;
        assert_eq!(out.to_vec()?, (0..n as i32).map(|i| 80 * i + 28).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn a_linked_list_and_virtual_functions_work() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<i32>(50)?;
        bench.run::<(PtrMut<i32>, i32)>("heap_list", LaunchConfig::one(), (&out, 50))?;
        assert_eq!(out.to_vec()?, (0..50).rev().collect::<Vec<i32>>());
        for (side, expected) in [(3, 9), (6, 42)] {
            bench.run::<(PtrMut<i32>, i32)>("new_delete", LaunchConfig::one(), (&out, side))?;
            assert_eq!(out.to_vec()?[0], expected);
        }
        Ok(())
    });
}
