use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("vectors.ptx");
const N: usize = 70;

#[test]
fn vectors_of_floats_are_loaded_and_stored_whole() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(250);
        let x = random.vec(N, |random| std::array::from_fn::<f32, 4, _>(|_| random.f32(-5.0, 5.0)));
        let out = bench.zeros::<[f32; 4]>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32, 1.1f32);
        bench.run::<(PtrMut<[f32; 4]>, Ptr<[f32; 4]>, u32, f32)>("scale4", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().map(|x| x.map(|x| x * 1.1)).collect::<Vec<_>>());

        let x = random.vec(N, |random| [random.f64(-5.0, 5.0), random.f64(-5.0, 5.0)]);
        let out = bench.zeros::<f64>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<f64>, Ptr<[f64; 2]>, u32)>("sum2", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().map(|x| x[0] + x[1]).collect::<Vec<f64>>());
        Ok(())
    });
}

#[test]
fn vectors_of_small_integers_are_taken_apart_and_put_together() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(251);
        let (a, b) = (random.u32s(N), random.u32s(N));
        let bytes = |words: &[u32]| words.iter().map(|word| word.to_le_bytes()).collect::<Vec<[u8; 4]>>();
        let (a, b) = (bytes(&a), bytes(&b));
        let out = bench.zeros::<[u8; 4]>(N)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, N as u32);
        bench.run::<(PtrMut<[u8; 4]>, Ptr<[u8; 4]>, Ptr<[u8; 4]>, u32)>(
            "average_pixels",
            threads(N),
            args,
        )?;
        let average = |(a, b): (&[u8; 4], &[u8; 4])| {
            std::array::from_fn::<u8, 4, _>(|k| (u16::from(a[k]) + u16::from(b[k])).div_ceil(2) as u8)
        };
        assert_eq!(out.to_vec()?, a.iter().zip(&b).map(average).collect::<Vec<_>>());

        let x = random.vec(N, |random| [random.u32() as u16, random.u32() as u16]);
        let out = bench.zeros::<[u16; 2]>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<[u16; 2]>, Ptr<[u16; 2]>, u32)>("swap_halves", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().map(|x| [x[1], x[0]]).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn vectors_of_words_are_shuffled_and_packed() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(252);
        let x = random.vec(N, |random| std::array::from_fn::<i32, 4, _>(|_| random.i32()));
        let out = bench.zeros::<[i32; 4]>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<[i32; 4]>, Ptr<[i32; 4]>, u32)>("shuffle_ints", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().map(|x| [x[3], x[0], x[1], x[2]]).collect::<Vec<_>>());

        let (a, b) = (random.vec(N, Random::u64), random.vec(N, Random::u64));
        let out = bench.zeros::<[u64; 2]>(N)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, N as u32);
        bench.run::<(PtrMut<[u64; 2]>, Ptr<u64>, Ptr<u64>, u32)>("pack_longs", threads(N), args)?;
        assert_eq!(out.to_vec()?, a.iter().zip(&b).map(|(a, b)| [*a, *b]).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn loads_and_stores_through_every_cache_see_the_same_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(253).i32s(N);
        let out = bench.zeros::<i32>(5 * N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("cached_loads", threads(N), args)?;
        assert_eq!(out.to_vec()?, x.iter().flat_map(|&x| [x; 5]).collect::<Vec<i32>>());
        Ok(())
    });
}
