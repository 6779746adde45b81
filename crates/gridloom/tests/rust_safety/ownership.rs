//! Elements that two threads would own.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use gridloom::prelude::*;
use gridloom::{Atomic, Out, block, host, kernel, thread};

use crate::support::for_each_device;

/// Adds 1 to what a thread owns: an element that two threads own would have 2.
macro_rules! owned_once {
    ($($name:ident, $len:expr, $config:expr, ($($param:ident: $ty:ty = $value:expr),*), |$out:ident| { $($body:tt)* })*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn attack($($param: $ty,)* $out: Out<u32>) { $($body)* }
            for_each_device(|device| {
                let out = device.buffer_from(&vec![0u32; $len])?;
                let stream = device.stream()?;
                stream.launch(&attack::load(device)?, $config, ($($value,)* &out,))?;
                let found = out.to_vec()?;
                assert!(found.iter().all(|&count| count <= 1), "{found:?}");
                assert!(found.contains(&1), "no thread owns anything");
                Ok(())
            });
        }
    )*};
}

owned_once! {
    elements_of_threads, 100, LaunchConfig::new(5, 32), (), |out| {
        if let Some((_, out)) = out.mine() { *out += 1; }
    }
    elements_in_rows_shorter_than_the_launch, 100, LaunchConfig::new((2, 2), (8, 8)), (w: usize = 5), |out| {
        if let Some((_, out)) = out.mine_2d(w) { *out += 1; }
    }
    elements_in_rows_of_no_element, 4, LaunchConfig::new(1, (2, 2)), (w: usize = 1, zero: usize = 0), |out| {
        let w = w + zero;
        if let Some((_, out)) = out.mine_2d(w) { *out += 1; }
    }
    elements_in_rows_whose_index_wraps_around, 8, LaunchConfig::new(1, (4, 8)), (w: usize = usize::MAX / 2 + 1), |out| {
        if let Some((_, out)) = out.mine_2d(w) { *out += 1; }
    }
    elements_in_planes_whose_index_wraps_around, 8, LaunchConfig::new(1, (2, 2, 8)), (w: usize = 1 << 32, h: usize = 1 << 32), |out| {
        if let Some((_, out)) = out.mine_3d(w, h) { *out += 1; }
    }
    elements_in_planes_lower_than_the_launch, 60, LaunchConfig::new((1, 1, 2), (4, 4, 4)), (w: usize = 3, h: usize = 2), |out| {
        if let Some((_, out)) = out.mine_3d(w, h) { *out += 1; }
    }
    chunks_whose_start_wraps_around, 8, LaunchConfig::new(4, 8), (n: usize = 1 << 62, one: usize = 1), |out| {
        let n = if n == 0 { 1 } else { n / (1 << 61) * one };
        if let Some(part) = out.chunk(n) { part[0] += 1; }
    }
    rows_in_columns, 100, LaunchConfig::new((2, 3), (8, 4)), (w: usize = 7, r: usize = 3), |out| {
        for (_, out) in out.each_mine_2d(w, r) { *out += 1; }
    }
    the_memory_of_blocks, 100, LaunchConfig::new((2, 3), (4, 4)), (n: usize = 13), |out| {
        if let Some(mut tile) = out.tile(n) {
            for (_, out) in tile.each_mine() { *out += 1; }
        }
    }
    pairs_of_a_block, 64, LaunchConfig::new(1, 24), (j: usize = 4), |out| {
        if let Some(tile) = out.tile(64) {
            let mut pairs = tile.pairs();
            pairs.exchange(j, |_, a, b| (a + 1, b + 1));
            let _ = block::sync(pairs);
        }
    }
}

#[test]
fn a_chunk_of_nothing_is_empty() {
    #[kernel]
    fn attack(zero: usize, out: Out<u32>) {
        if let Some(part) = out.chunk(zero) {
            assert!(part.is_empty());
        }
    }
    for_each_device(|device| {
        let out = device.buffer_from(&[7u32; 4])?;
        let stream = device.stream()?;
        stream.launch(&attack::load(device)?, LaunchConfig::new(2, 4), (0, &out))?;
        assert_eq!(out.to_vec()?, [7; 4]);
        Ok(())
    });
}

/// Atomic operations for a block, on memory that all blocks share, lose nothing.
#[test]
fn atomics_of_a_block_on_memory_of_all_blocks() {
    #[kernel]
    fn attack(counts: &[Atomic<u32>]) {
        for _ in 0..100 {
            counts[thread::index() % 2].block().fetch_add(1, Relaxed);
        }
    }
    for_each_device(|device| {
        let counts = device.buffer_from(&[0u32; 2])?;
        let kernel = attack::load(device)?;
        assert!(!kernel.ptx().unwrap_or_default().contains(".cta."), "blocks would race");
        let stream = device.stream()?;
        stream.launch(&kernel, LaunchConfig::new(64, 64), (&counts,))?;
        assert_eq!(counts.to_vec()?, [204_800; 2]);
        Ok(())
    });
}

/// On the host, references of one launch cannot be kept for those of another.
#[test]
#[should_panic(expected = "another launch")]
fn host_memory_is_for_one_launch() {
    let mut data = [0u32; 4];
    let memory = host::Memory::new(&mut data);
    let kept = Mutex::new(Vec::new());
    host::run_blocks(1, 4, || kept.lock().unwrap().extend(memory.out().mine()));
    host::run_blocks(2, 2, || kept.lock().unwrap().extend(memory.out().mine()));
}

#[test]
#[should_panic(expected = "twice")]
fn a_host_thread_asks_for_its_memory_once() {
    let mut data = [0u32; 4];
    let memory = host::Memory::new(&mut data);
    host::run(1, 4, || {
        let (one, other) = (memory.out().mine(), memory.out().mine());
        drop((one, other));
    });
}

#[test]
#[should_panic(expected = "divided in two ways")]
fn host_threads_divide_memory_alike() {
    let mut data = [0u32; 8];
    let memory = host::Memory::new(&mut data);
    host::run(1, 4, || {
        let out = memory.out();
        if thread::x() == 0 {
            drop(out.chunk(4));
        } else {
            drop(out.mine());
        }
    });
}
