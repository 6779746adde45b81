use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("integers.ptx");

/// Runs `name(out, a, b, n)` with `W` results for each pair.
fn pairs<T: Element, R: Element + PartialEq + std::fmt::Debug, const W: usize>(
    device: &Device,
    name: &str,
    a: &[T],
    b: &[T],
    expected: impl Fn(T, T) -> [R; W],
) -> Result<()> {
    let bench = Bench::new(device, PTX)?;
    let n = a.len();
    let out = bench.zeros::<R>(W * n)?;
    let args = (&out, &bench.buffer(a)?, &bench.buffer(b)?, n as u32);
    bench.run::<(PtrMut<R>, Ptr<T>, Ptr<T>, u32)>(name, threads(n), args)?;
    let got = out.to_vec()?;
    for i in 0..n {
        assert_eq!(got[W * i..W * (i + 1)], expected(a[i], b[i]), "{name} of pair {i}");
    }
    Ok(())
}

const WORDS: [i32; 10] = [0, 1, -1, 7, -8, 1000, -1000, i32::MAX, i32::MIN, 0x00ff_ff00];

fn words(seed: u64) -> (Vec<i32>, Vec<i32>) {
    let mut random = Random::new(seed);
    let mut a: Vec<i32> = WORDS.iter().flat_map(|&a| [a; 10]).collect();
    let mut b: Vec<i32> = WORDS.repeat(10);
    a.extend(random.i32s(100));
    b.extend(random.i32s(100));
    (a, b)
}

fn unsigned(words: &[i32]) -> Vec<u32> {
    words.iter().map(|&word| word as u32).collect()
}

#[test]
fn divisions_truncate_signed_and_unsigned() {
    for_each_device(|device| {
        let (a, mut b) = words(120);
        for (a, b) in a.iter().zip(&mut b) {
            if *b == 0 || (*a == i32::MIN && *b == -1) {
                *b = 3;
            }
        }
        pairs(device, "divisions32", &a, &b, |a, b| {
            let (u, v) = (a as u32, b as u32);
            [a / b, a % b, (u / v) as i32, (u % v) as i32]
        })?;
        let wide = |(a, b): (&i32, &i32)| i64::from(*a) << 32 | i64::from(*b as u32);
        let a64: Vec<i64> = a.iter().zip(b.iter().rev()).map(wide).collect();
        let b64: Vec<i64> = b.iter().map(|&b| i64::from(b) * 65_539).collect();
        pairs(device, "divisions64", &a64, &b64, |a, b| {
            let (u, v) = (a as u64, b as u64);
            [a / b, a % b, (u / v) as i64, (u % v) as i64]
        })
    });
}

#[test]
fn divisions_by_constants_agree_with_divisions() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (a, _) = words(121);
        let out = bench.zeros::<i32>(6 * a.len())?;
        let args = (&out, &bench.buffer(&a)?, a.len() as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("constant_divisions", threads(a.len()), args)?;
        let six = |&a: &i32| {
            let u = a as u32;
            [a / 7, a % 7, (u / 10) as i32, (u % 1000) as i32, a / 8, a % 8]
        };
        assert_eq!(out.to_vec()?, a.iter().flat_map(six).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn bits_are_counted_reversed_and_shifted_across_words() {
    for_each_device(|device| {
        let (a, b) = words(122);
        pairs(device, "bits32", &unsigned(&a), &unsigned(&b), |a, b| {
            let lowest = if a == 0 { 0 } else { a.trailing_zeros() + 1 };
            let both = u64::from(b) << 32 | u64::from(a);
            [
                a.count_ones(),
                a.leading_zeros(),
                a.reverse_bits(),
                lowest,
                ((u64::from(a) * u64::from(b)) >> 32) as u32,
                ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
                (a as i32).abs_diff(b as i32),
                a & 0xffff | b << 16,
                ((both << 5) >> 32) as u32,
                (both >> 5) as u32,
            ]
        })?;
        let a64: Vec<u64> = a.iter().zip(&b).map(|(&a, &b)| (a as u64) << 32 | u64::from(b as u32)).collect();
        let b64: Vec<u64> = b.iter().map(|&b| i64::from(b).wrapping_mul(0x1_0001_0003) as u64).collect();
        pairs(device, "bits64", &a64, &b64, |a, b| {
            let lowest = if a == 0 { 0 } else { a.trailing_zeros() + 1 };
            [
                u64::from(a.count_ones()),
                u64::from(a.leading_zeros()),
                a.reverse_bits(),
                u64::from(lowest),
                ((u128::from(a) * u128::from(b)) >> 64) as u64,
                ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64,
            ]
        })
    });
}

#[test]
fn dot_products_of_bytes_and_halves_accumulate() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(123);
        let (a, b, c) = (random.u32s(100), random.u32s(100), random.i32s(100));
        let out = bench.zeros::<i32>(400)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, &bench.buffer(&c)?, 100);
        bench.run::<(PtrMut<i32>, Ptr<u32>, Ptr<u32>, Ptr<i32>, u32)>("dot_products", threads(100), args)?;
        let expected: Vec<i32> = (0..100)
            .flat_map(|i| {
                let (a, b) = (a[i].to_le_bytes(), b[i].to_le_bytes());
                let signed = (0..4).map(|k| i32::from(a[k] as i8) * i32::from(b[k] as i8)).sum::<i32>();
                let plain = (0..4).map(|k| i32::from(a[k]) * i32::from(b[k])).sum::<i32>();
                let halves = [0, 2].map(|k| i32::from(i16::from_le_bytes([a[k], a[k + 1]])));
                let pair = |from: usize| {
                    halves[0] * i32::from(b[from] as i8) + halves[1] * i32::from(b[from + 1] as i8)
                };
                [signed, plain, pair(0), pair(2)].map(|sum| c[i].wrapping_add(sum))
            })
            .collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn sums_saturate_where_asked_to() {
    for_each_device(|device| {
        let (a, b) = words(124);
        pairs(device, "saturating", &a, &b, |a, b| {
            [a.saturating_add(b), a.saturating_sub(b), ((i64::from(a) * i64::from(b)) >> 16) as i32]
        })
    });
}

#[test]
fn shifts_by_more_than_the_width_leave_zeros_or_signs() {
    for_each_device(|device| {
        let mut random = Random::new(125);
        let a = random.u32s(100);
        let s =
            random.vec(100, |random| if random.one_in(8) { random.u32() } else { random.below(40) as u32 });
        pairs(device, "shifts", &a, &s, |a, s| {
            let arithmetic = (a as i32) >> s.min(31);
            [a.checked_shl(s).unwrap_or(0), a.checked_shr(s).unwrap_or(0), arithmetic as u32]
        })
    });
}

#[test]
fn bit_fields_are_extracted_inserted_and_found() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut a = vec![0, 1, u32::MAX, 0x800, 0x8000_0000];
        a.extend(Random::new(126).u32s(100));
        let out = bench.zeros::<u32>(4 * a.len())?;
        let args = (&out, &bench.buffer(&a)?, a.len() as u32);
        bench.run::<(PtrMut<u32>, Ptr<u32>, u32)>("fields", threads(a.len()), args)?;
        let four = |&a: &u32| {
            let signed = ((a << 20) as i32) >> 25;
            let inserted = 0xffff_0000 & !(0xfff << 8) | (a & 0xfff) << 8;
            let top = if a == 0 { u32::MAX } else { 31 - a.leading_zeros() };
            [(a >> 5) & 0x7f, signed as u32, inserted, top]
        };
        assert_eq!(out.to_vec()?, a.iter().flat_map(four).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn carries_run_from_the_low_word_to_the_high_one() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(127);
        let mut wide = |len| {
            random.vec(len, |random| match random.below(4) {
                0 => u64::MAX,
                1 => 0,
                _ => random.u64(),
            })
        };
        let n = 60;
        let (a, b) = (wide(2 * n), wide(2 * n));
        let out = bench.zeros::<u64>(4 * n)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, n as u32);
        bench.run::<(PtrMut<u64>, Ptr<u64>, Ptr<u64>, u32)>("carries", threads(n), args)?;
        let join = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
        let all = |apply: fn(u128, u128) -> u128| {
            a.chunks(2).zip(b.chunks(2)).map(|(a, b)| apply(join(a), join(b))).collect::<Vec<u128>>()
        };
        let got: Vec<u128> = out.to_vec()?.chunks(2).map(join).collect();
        assert_eq!(got[..n], all(u128::wrapping_add), "sums");
        assert_eq!(got[n..], all(u128::wrapping_sub), "differences");
        Ok(())
    });
}

#[test]
fn products_can_be_wider_or_narrower_than_their_factors() {
    for_each_device(|device| {
        let (a, b) = words(128);
        pairs(device, "wide_products", &a, &b, |a, b| {
            let wide = i64::from(a) * i64::from(b);
            let low24 = |x: i32| i64::from((x << 8) >> 8);
            [wide, wide - 7, i64::from((low24(a) * low24(b)) as i32)]
        })
    });
}
