use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("atomics.ptx");
const T: u32 = 512;

fn numbers() -> std::ops::Range<u32> {
    0..T
}

#[test]
fn integer_atomics_add_up_over_all_threads() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let before = [1, 1000, u32::MAX, 0, u32::MAX, 0, 5, 0, 9, 77];
        let cells = bench.buffer(&before)?;
        bench.run::<(PtrMut<u32>,)>("atomic_integers", threads(T as usize), (&cells,))?;
        let got = cells.to_vec()?;
        let expected = [
            1 + numbers().sum::<u32>(),
            1000 - T,
            0,
            T - 1,
            0,
            u32::MAX,
            numbers().fold(5, |all, t| all ^ t),
            T % 10,
            (9 + 10 * T - T) % 10,
        ];
        assert_eq!(got[..9], expected);
        assert!(got[9] < T, "an exchange leaves the number of some thread, not {}", got[9]);
        Ok(())
    });
}

#[test]
fn signed_atomics_compare_as_signed() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let cells = bench.buffer(&[100, -100, 0])?;
        bench.run::<(PtrMut<i32>,)>("atomic_signed", threads(T as usize), (&cells,))?;
        assert_eq!(cells.to_vec()?, [-(T as i32 - 1), 0, -(T as i32)]);
        Ok(())
    });
}

#[test]
fn atomics_of_64_bits_carry_into_the_high_word() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let cells = bench.buffer(&[0, u64::MAX, 0, u64::MAX, 0, 0])?;
        bench.run::<(PtrMut<u64>,)>("atomic_longs", threads(T as usize), (&cells,))?;
        let wide = || numbers().map(u64::from);
        let expected = [
            wide().map(|t| (1 << 33) + t).sum(),
            0,
            u64::from(T - 1) << 32,
            1 << 63,
            u64::MAX,
            wide().fold(0, |all, t| all ^ (t << 32)),
        ];
        assert_eq!(cells.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn float_atomics_lose_no_addition() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let cells = bench.zeros::<f32>(4)?;
        bench.run::<(PtrMut<f32>,)>("atomic_floats", threads(T as usize), (&cells,))?;
        let got = cells.to_vec()?;
        assert_eq!(got[..2], [0.5 * T as f32, (T / 8 * 28) as f32]);
        let double = f64::from_bits(u64::from(got[2].to_bits()) | u64::from(got[3].to_bits()) << 32);
        assert_eq!(double, 0.25 * f64::from(T));
        Ok(())
    });
}

#[test]
fn compare_and_swap_loops_make_progress() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(1).f32s(T as usize, -50.0, 50.0);
        let most = x.iter().copied().fold(f32::MIN, f32::max);
        let cell = bench.buffer(&[-100.0f32])?;
        let args = (&cell, &bench.buffer(&x)?, T);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("cas_max_float", threads(T as usize), args)?;
        assert_eq!(cell.to_vec()?, [most]);

        let product = bench.buffer(&[1u64])?;
        bench.run::<(PtrMut<u64>, u32)>("cas_multiply", threads(T as usize), (&product, T))?;
        assert_eq!(product.to_vec()?, [3u64.wrapping_pow(T)]);

        let halves = bench.buffer(&[10u16, 20])?;
        bench.run::<(PtrMut<u16>, u32)>("cas_half", threads(T as usize), (&halves, T))?;
        assert_eq!(halves.to_vec()?, [10 + T as u16 / 2, 20 + T as u16 / 2]);
        Ok(())
    });
}

#[test]
fn threads_of_one_warp_can_take_turns_at_a_lock() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (lock, total) = (bench.zeros::<u32>(1)?, bench.zeros::<u32>(1)?);
        bench.run::<(PtrMut<u32>, PtrMut<u32>, u32)>("spin_lock", threads(256), (&lock, &total, 256))?;
        assert_eq!((lock.to_vec()?[0], total.to_vec()?[0]), (0, 256 * 257 / 2));
        Ok(())
    });
}

#[test]
fn tickets_of_a_counter_in_shared_memory_are_each_drawn_once() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.buffer(&[u32::MAX; 1000])?;
        bench.run::<(PtrMut<u32>, u32)>("shared_tickets", LaunchConfig::new(1, 96), (&out, 1000))?;
        assert_eq!(out.to_vec()?, (0..1000).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn atomics_of_every_scope_count_each_thread() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let cells = bench.zeros::<u32>(3)?;
        bench.run::<(PtrMut<u32>,)>("scopes", LaunchConfig::new(1, 200), (&cells,))?;
        assert_eq!(cells.to_vec()?, [200; 3]);
        Ok(())
    });
}
