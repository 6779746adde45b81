use gridloom::prelude::*;

use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("scan.ptx");

fn scanned(x: &[u32]) -> Vec<u32> {
    x.iter()
        .scan(0u32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        })
        .collect()
}

#[test]
fn a_scan_in_three_launches_sums_everything_before() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for n in [1, 256, 257, 2000] {
            let x = Random::new(200).u32s(n);
            let blocks = n.div_ceil(256);
            let (out, sums, total) =
                (bench.zeros::<u32>(n)?, bench.zeros::<u32>(blocks)?, bench.zeros::<u32>(1)?);
            let config = LaunchConfig::new(blocks as u32, 256);
            type Scan = (PtrMut<u32>, PtrMut<u32>, Ptr<u32>, u32);
            bench.run::<Scan>("scan_block", config, (&out, &sums, &bench.buffer(&x)?, n as u32))?;
            bench.run::<Scan>(
                "scan_block",
                LaunchConfig::new(1, 256),
                (&sums, &total, &sums, blocks as u32),
            )?;
            bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("scan_add", config, (&out, &sums, n as u32))?;
            assert_eq!(out.to_vec()?, scanned(&x));
        }
        Ok(())
    });
}

#[test]
fn a_chained_scan_waits_for_the_block_before() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = 3000;
        let x = Random::new(201).u32s(n);
        let blocks = n.div_ceil(256);
        let (out, carry) = (bench.zeros::<u32>(n)?, bench.zeros::<u32>(2 * blocks + 1)?);
        let args = (&out, &carry, &bench.buffer(&x)?, n as u32);
        let config = LaunchConfig::new(blocks as u32, 256);
        bench.run::<(PtrMut<u32>, PtrMut<u32>, Ptr<u32>, u32)>("scan_chained", config, args)?;
        assert_eq!(out.to_vec()?, scanned(&x));
        Ok(())
    });
}
