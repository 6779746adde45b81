use gridloom::prelude::*;

use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("dynamic_shared.ptx");

#[test]
fn a_launch_gives_the_size_of_shared_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(1)?;
        for bytes in [0, 4, 1000, 16 * 1024] {
            bench.run::<(PtrMut<u32>,)>("shared_size", LaunchConfig::one().shared(bytes), (&out,))?;
            assert_eq!(out.to_vec()?, [bytes]);
        }
        Ok(())
    });
}

#[test]
fn arrays_of_the_launchs_size_can_be_split_and_stand_beside_static_ones() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 100u32;
        let x = Random::new(50).vec(n as usize, |random| random.between(-1000, 1000) as i32);
        let data = bench.buffer(&x)?;
        let doubles = bench.zeros::<f64>(n as usize)?;
        let config = LaunchConfig::new(1, n).shared(12 * n);
        bench.run::<(PtrMut<f64>, Ptr<i32>, i32)>("two_arrays", config, (&doubles, &data, n as i32))?;
        let expected: Vec<f64> =
            x.iter().rev().enumerate().map(|(i, &x)| f64::from(x) * 0.5 + i as f64).collect();
        assert_eq!(doubles.to_vec()?, expected);

        bench.run::<(PtrMut<i32>,)>("reverse", LaunchConfig::new(1, n).shared(4 * n), (&data,))?;
        assert_eq!(data.to_vec()?, x.iter().rev().copied().collect::<Vec<i32>>());

        let out = bench.zeros::<i32>(64)?;
        let args = (&out, &bench.buffer(&x[..64])?);
        bench.run::<(PtrMut<i32>, Ptr<i32>)>(
            "static_and_dynamic",
            LaunchConfig::new(1, 64).shared(256),
            args,
        )?;
        assert_eq!(out.to_vec()?, (0..64).map(|i| x[63 - i] + x[i ^ 1]).collect::<Vec<i32>>());
        Ok(())
    });
}
