use gridloom::prelude::*;

use super::compare::same_bits;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("reduce.ptx");

/// Returns the sum of each block in the kernel's order: each thread its own elements, then shuffles
/// down within warps, then over the warps.
fn block_sums<T: Copy>(x: &[T], blocks: usize, zero: T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let fold = |mut lanes: Vec<T>| {
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|lane| add(lanes[lane], lanes[lane + half])).collect();
        }
        lanes[0]
    };
    (0..blocks)
        .map(|block| {
            let own = |t: usize| x.iter().skip(block * 256 + t).step_by(blocks * 256);
            let lanes: Vec<T> = (0..256).map(|t| own(t).fold(zero, |sum, x| add(sum, *x))).collect();
            fold(lanes.chunks(32).map(|warp| fold(warp.to_vec())).collect())
        })
        .collect()
}

#[test]
fn sums_over_blocks_agree_bit_for_bit() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for (n, blocks) in [(1, 1), (256, 1), (1000, 2), (3001, 5)] {
            let config = LaunchConfig::new(blocks as u32, 256);
            let x = Random::new(180).f32s(n, -10.0, 10.0);
            let partial = bench.zeros::<f32>(blocks)?;
            let args = (&partial, &bench.buffer(&x)?, n as u32);
            bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("reduce_sum_f32", config, args)?;
            same_bits(&partial.to_vec()?, &block_sums(&x, blocks, 0.0, |a, b| a + b));

            let x = Random::new(181).i32s(n);
            let partial = bench.zeros::<i32>(blocks)?;
            let args = (&partial, &bench.buffer(&x)?, n as u32);
            bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("reduce_sum_s32", config, args)?;
            assert_eq!(partial.to_vec()?, block_sums(&x, blocks, 0, i32::wrapping_add));
        }
        Ok(())
    });
}

#[test]
fn minimum_and_maximum_meet_in_two_atomics() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(182).i32s(2000);
        let result = bench.buffer(&[i32::MAX, i32::MIN])?;
        let args = (&result, &bench.buffer(&x)?, 2000);
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("reduce_minmax", LaunchConfig::new(3, 256), args)?;
        assert_eq!(result.to_vec()?, [x.iter().min(), x.iter().max()].map(|x| *x.expect("not empty")));
        Ok(())
    });
}

#[test]
fn a_tree_in_shared_memory_adds_in_its_own_order() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 700;
        let x = Random::new(183).f32s(n, -10.0, 10.0);
        let partial = bench.zeros::<f32>(3)?;
        let args = (&partial, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("reduce_tree", LaunchConfig::new(3, 256), args)?;
        let sums: Vec<f32> = (0..3)
            .map(|block| {
                let mut s: Vec<f32> =
                    (0..256).map(|t| x.get(256 * block + t).copied().unwrap_or(0.0)).collect();
                for k in [128, 64, 32, 16, 8, 4, 2, 1] {
                    for t in 0..k {
                        s[t] += s[t + k];
                    }
                }
                s[0]
            })
            .collect();
        same_bits(&partial.to_vec()?, &sums);
        Ok(())
    });
}
