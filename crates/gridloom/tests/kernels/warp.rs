use gridloom::prelude::*;

use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("warp.ptx");
const T: usize = 192;

fn config() -> LaunchConfig {
    LaunchConfig::new(3, 64)
}

/// Returns the results for each thread, from the values of its warp and its lane.
fn by_lane<X: Copy, R, const W: usize>(x: &[X], result: impl Fn(&[X], usize) -> [R; W]) -> Vec<R> {
    x.chunks(32)
        .flat_map(|warp| (0..32).map(|lane| result(warp, lane)).collect::<Vec<_>>())
        .flatten()
        .collect()
}

#[test]
fn lanes_vote() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(260).vec(T, |random| random.between(-2, 2) as i32);
        x[32..64].fill(1);
        x[64..96].fill(0);
        let out = bench.zeros::<u32>(4 * T)?;
        bench.run::<(PtrMut<u32>, Ptr<i32>)>("votes", config(), (&out, &bench.buffer(&x)?))?;
        let expected = by_lane(&x, |warp, lane| {
            let ballot: u32 = warp.iter().enumerate().map(|(k, &x)| u32::from(x > 0) << k).sum();
            let below = (ballot & ((1 << lane) - 1)).count_ones();
            [ballot, u32::from(ballot == u32::MAX), u32::from(ballot != 0), below]
        });
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn lanes_find_others_with_the_same_value() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(261).vec(T, |random| random.below(4) as u32);
        x[32..64].fill(9);
        let out = bench.zeros::<u32>(2 * T)?;
        bench.run::<(PtrMut<u32>, Ptr<u32>)>("matches", config(), (&out, &bench.buffer(&x)?))?;
        let expected = by_lane(&x, |warp, lane| {
            let same: u32 = warp.iter().enumerate().map(|(k, &x)| u32::from(x == warp[lane]) << k).sum();
            [same, if same == u32::MAX { same } else { 0 }]
        });
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn lanes_reduce_in_one_instruction() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(262).u32s(T);
        let out = bench.zeros::<u32>(8 * T)?;
        bench.run::<(PtrMut<u32>, Ptr<u32>)>("reductions", config(), (&out, &bench.buffer(&x)?))?;
        let expected = by_lane(&x, |warp, _| {
            let fold = |apply: fn(u32, u32) -> u32| warp.iter().copied().reduce(apply).expect("32 lanes");
            [
                fold(u32::wrapping_add),
                fold(u32::min),
                fold(u32::max),
                fold(|a, b| a & b),
                fold(|a, b| a | b),
                fold(|a, b| a ^ b),
                fold(|a, b| (a as i32).min(b as i32) as u32),
                fold(|a, b| (a as i32).max(b as i32) as u32),
            ]
        });
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn lanes_read_each_others_registers() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(263).i32s(T);
        let out = bench.zeros::<i32>(5 * T)?;
        bench.run::<(PtrMut<i32>, Ptr<i32>)>("shuffles", config(), (&out, &bench.buffer(&x)?))?;
        let expected = by_lane(&x, |warp, lane| {
            let up = if lane >= 3 { lane - 3 } else { lane };
            let down = if lane + 5 < 32 { lane + 5 } else { lane };
            [(lane + 1) % 32, up, down, lane ^ 9, lane / 8 * 8 + 2].map(|from| warp[from])
        });
        assert_eq!(out.to_vec()?, expected);

        let x = Random::new(264).vec(T, |random| random.f64(-1.0, 1.0));
        let out = bench.zeros::<f64>(T)?;
        bench.run::<(PtrMut<f64>, Ptr<f64>)>("shuffle_wide", config(), (&out, &bench.buffer(&x)?))?;
        assert_eq!(out.to_vec()?, by_lane(&x, |warp, lane| [warp[31 - lane]]));
        Ok(())
    });
}

#[test]
fn positive_values_are_compacted_with_one_atomic_a_warp() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let n = T - 7;
        let x = Random::new(265).vec(n, |random| random.between(-50, 50) as i32);
        let (out, count) = (bench.zeros::<i32>(n)?, bench.zeros::<u32>(1)?);
        let args = (&out, &count, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<i32>, PtrMut<u32>, Ptr<i32>, u32)>("compact", config(), args)?;
        let mut expected: Vec<i32> = x.into_iter().filter(|&x| x > 0).collect();
        assert_eq!(count.to_vec()?, [expected.len() as u32]);
        let mut got = out.to_vec()?[..expected.len()].to_vec();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!(got, expected);
        Ok(())
    });
}

#[test]
fn parts_of_a_warp_vote_apart_in_divergent_branches() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(T)?;
        let none = [(); T];
        bench.run::<(PtrMut<u32>,)>("partial_masks", config(), (&out,))?;
        let thirds: u32 = (0..32).filter(|lane| lane % 3 == 0).map(|lane| 1 << lane).sum();
        let group = |lane: usize| if lane < 10 { 0x3ff } else { !0x3ff };
        assert_eq!(out.to_vec()?, by_lane(&none, |_, lane| [thirds & group(lane)]));

        bench.run::<(PtrMut<u32>,)>("elect", config(), (&out,))?;
        let elected: Vec<u32> = (0..T).map(|t| u32::from(t % 32 == t / 32 % 4)).collect();
        assert_eq!(out.to_vec()?, elected);
        Ok(())
    });
}

#[test]
fn lanes_know_the_masks_around_them() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(7 * T)?;
        bench.run::<(PtrMut<u32>,)>("lane_masks", config(), (&out,))?;
        let expected = by_lane(&[(); T], |_, lane| {
            let own = 1u32 << lane;
            let below = own - 1;
            [lane as u32, below, below | own, own, !below, !(below | own), u32::MAX]
        });
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}
