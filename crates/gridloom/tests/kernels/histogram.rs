use gridloom::prelude::*;

use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("histogram.ptx");

#[test]
fn bytes_are_counted_through_shared_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let data = Random::new(110).vec(5000, |random| (random.below(16) * random.below(16)) as u8);
        let mut expected = [3u32; 256];
        data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
        let bins = bench.buffer(&[3u32; 256])?;
        let args = (&bins, &bench.buffer(&data)?, data.len() as u32);
        bench.run::<(PtrMut<u32>, Ptr<u8>, u32)>("histogram256", LaunchConfig::new(4, 96), args)?;
        assert_eq!(bins.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn words_are_counted_by_global_atomics() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let data = Random::new(111).u32s(3000);
        let mut expected = [0u32; 37];
        data.iter().for_each(|&word| expected[word as usize % 37] += 1);
        let bins = bench.zeros::<u32>(37)?;
        let args = (&bins, &bench.buffer(&data)?, data.len() as u32, 37);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32, u32)>("histogram_global", LaunchConfig::new(3, 64), args)?;
        assert_eq!(bins.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn weights_are_added_up_in_float() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(112);
        let keys = random.vec(2000, |random| random.below(20) as u16);
        let weights = random.vec(2000, |random| random.between(-8, 8) as f32);
        let mut expected = [0.0f32; 20];
        keys.iter().zip(&weights).for_each(|(&key, weight)| expected[usize::from(key)] += weight);
        let bins = bench.zeros::<f32>(20)?;
        let args = (&bins, &bench.buffer(&keys)?, &bench.buffer(&weights)?, 2000);
        let config = LaunchConfig::new(5, 64);
        bench.run::<(PtrMut<f32>, Ptr<u16>, Ptr<f32>, u32)>("histogram_weighted", config, args)?;
        assert_eq!(bins.to_vec()?, expected);
        Ok(())
    });
}
