use gridloom::prelude::*;

use crate::support::{Bench, for_each_device};

const PTX: &str = include_str!("special.ptx");

#[test]
fn clocks_do_not_run_backwards() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u64>(4)?;
        bench.run::<(PtrMut<u64>,)>("clocks", LaunchConfig::one(), (&out,))?;
        let out = out.to_vec()?;
        assert!(out[0] < out[1] && out[2] <= out[3] && out[2] > 0, "{out:?}");
        Ok(())
    });
}

#[test]
fn each_thread_knows_its_place_in_three_dimensions() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for (grid, block) in
            [(Dim3::new(1, 1, 1), Dim3::new(1, 1, 1)), (Dim3::new(3, 2, 2), Dim3::new(5, 3, 4))]
        {
            let all = (grid.volume() * block.volume()) as usize;
            let out = bench.zeros::<u32>(12 * all)?;
            bench.run::<(PtrMut<u32>,)>("coordinates", LaunchConfig::new(grid, block), (&out,))?;
            let points = |extents: Dim3| {
                let Dim3 { x, y, z } = extents;
                (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
            };
            let expected: Vec<u32> = points(grid)
                .flat_map(|b| points(block).map(move |t| [t, b, block.to_array(), grid.to_array()]))
                .flat_map(|four| four.concat())
                .collect();
            assert_eq!(out.to_vec()?, expected);
        }
        Ok(())
    });
}

#[test]
fn lanes_are_numbered_within_warps_of_32() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(2 * 3 * 50)?;
        bench.run::<(PtrMut<u32>,)>("warp_position", LaunchConfig::new(3, 50), (&out,))?;
        let expected: Vec<u32> = (0..150).flat_map(|g| [g % 50 % 32, 32]).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_thread_that_sleeps_wakes_up() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(1)?;
        bench.run::<(PtrMut<u32>,)>("nap", LaunchConfig::one(), (&out,))?;
        assert_eq!(out.to_vec()?, [1]);
        Ok(())
    });
}
