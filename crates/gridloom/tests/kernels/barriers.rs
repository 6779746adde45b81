use gridloom::prelude::*;

use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("barriers.ptx");

#[test]
fn barriers_reduce_a_vote_over_the_block() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (blocks, size) = (3, 96);
        let mut x = Random::new(2).vec(blocks * size, |random| random.between(-1, 1) as i32);
        x[size..2 * size].fill(1);
        x[2 * size..].fill(0);
        let out = bench.zeros::<i32>(3 * x.len())?;
        let config = LaunchConfig::new(blocks as u32, size as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>)>("block_votes", config, (&out, &bench.buffer(&x)?))?;
        let expected: Vec<i32> = x
            .chunks(size)
            .flat_map(|block| {
                let count = block.iter().filter(|&&x| x > 0).count();
                [count as i32, i32::from(count == size), i32::from(count > 0)].repeat(size)
            })
            .collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn blocks_of_a_cooperative_launch_wait_for_each_other() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (blocks, size, rounds) = (4, 64, 5);
        let mut data = Random::new(3).u32s(blocks * size);
        let buffer = bench.buffer(&data)?;
        let state = bench.zeros::<u32>(2)?;
        let config = LaunchConfig::new(blocks as u32, size as u32).cooperative();
        bench.run::<(PtrMut<u32>, PtrMut<u32>, u32)>("grid_barrier", config, (&buffer, &state, rounds))?;
        for _ in 0..rounds {
            let shifted = data[1..].iter().chain(&data[..1]);
            data = data.iter().zip(shifted).map(|(a, b)| a.wrapping_add(*b)).collect();
        }
        assert_eq!(buffer.to_vec()?, data);
        Ok(())
    });
}

#[test]
fn a_named_barrier_hands_over_from_one_warp_to_another() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<i32>(32)?;
        bench.run::<(PtrMut<i32>,)>("named_barriers", LaunchConfig::new(1, 64), (&out,))?;
        assert_eq!(out.to_vec()?, (0..32).map(|lane| 3 * lane + 1).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn threads_that_returned_are_not_waited_for() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(1)?;
        bench.run::<(PtrMut<u32>,)>("early_exit", LaunchConfig::new(1, 128), (&out,))?;
        assert_eq!(out.to_vec()?, [64]);
        Ok(())
    });
}

#[test]
fn the_last_block_sees_what_all_others_wrote() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(4).u32s(5000);
        let expected = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
        let (out, partial, counter) =
            (bench.zeros::<u32>(1)?, bench.zeros::<u32>(7)?, bench.zeros::<u32>(1)?);
        let values = bench.buffer(&x)?;
        for launch in 0..2 {
            bench.run::<(PtrMut<u32>, PtrMut<u32>, PtrMut<u32>, Ptr<u32>, u32)>(
                "last_block",
                LaunchConfig::new(7, 128),
                (&out, &partial, &counter, &values, x.len() as u32),
            )?;
            assert_eq!((out.to_vec()?[0], counter.to_vec()?[0]), (expected, 0), "launch {launch}");
        }
        Ok(())
    });
}
