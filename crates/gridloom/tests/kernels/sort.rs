use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("sort.ptx");

fn sorted<T: Ord + Copy>(x: &[T]) -> Vec<T> {
    let mut x = x.to_vec();
    x.sort_unstable();
    x
}

#[test]
fn one_block_sorts_in_shared_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for n in [1, 100, 1024] {
            let x = Random::new(210).u32s(n);
            let keys = bench.buffer(&x)?;
            bench.run::<(PtrMut<u32>, u32)>("bitonic_block", LaunchConfig::new(1, 512), (&keys, n as u32))?;
            assert_eq!(keys.to_vec()?, sorted(&x));
        }
        Ok(())
    });
}

#[test]
fn a_graph_of_bitonic_steps_sorts() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let step = bench.kernel::<(PtrMut<u32>, Len<u32>, u32, u32)>("bitonic_step")?;
        let n = 1024u32;
        let x = Random::new(211).u32s(n as usize);
        let keys = bench.buffer(&x)?;
        let graph = Graph::new(device);
        let mut last = graph.empty()?;
        for k in (1..=n.ilog2()).map(|bit| 1u32 << bit) {
            for j in (0..k.ilog2()).rev().map(|bit| 1u32 << bit) {
                // SAFETY: `n` is a power of two, and `j` is below it, so that no partner is past
                // the end.
                last = unsafe { last.launch_unchecked(&step, threads(n as usize), (&keys, n, k, j))? };
            }
        }
        let executable = graph.instantiate()?;
        executable.launch(&bench.stream)?;
        bench.stream.synchronize()?;
        assert_eq!(keys.to_vec()?, sorted(&x));
        Ok(())
    });
}

#[test]
fn eight_radix_passes_sort() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 1500;
        let x = Random::new(212).u32s(n);
        let (mut keys, mut other) = (bench.buffer(&x)?, bench.zeros::<u32>(n)?);
        for shift in (0..32).step_by(4) {
            let args = (&other, &keys, n as u32, shift);
            bench.run::<(PtrMut<u32>, Ptr<u32>, u32, u32)>("radix_pass", LaunchConfig::new(1, 256), args)?;
            (keys, other) = (other, keys);
        }
        assert_eq!(keys.to_vec()?, sorted(&x));
        Ok(())
    });
}

#[test]
fn each_thread_sorts_its_row_by_insertion() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (width, count) = (20, 50);
        let mut x = Random::new(213).i32s(width * count);
        let rows = bench.buffer(&x)?;
        bench.run::<(PtrMut<i32>, i32, i32)>(
            "insertion_sort",
            threads(count),
            (&rows, width as i32, count as i32),
        )?;
        x.chunks_mut(width).for_each(<[i32]>::sort_unstable);
        assert_eq!(rows.to_vec()?, x);
        Ok(())
    });
}
